"""The words of the error for what is not finite: which operation, on what, in whose line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.core.level import batches_of, concrete
from funcgrad.debug.lines import Line
from funcgrad.debug.operations import Made, Operand
from funcgrad.errors import NonFiniteError, describe, is_ours

__all__ = ["Found", "error_backward", "error_forward"]

_TWICE = (
    "keep the operand of {name} inside its domain before {name} is called, and select again "
    "after it: ok = {ok}; np.where(ok, {call}, 0.0), where safe = np.where(ok, x, 1.0); "
    "or clip before: {clip}"
)
_DOMAINS = {
    "log": "x > 0",
    "log2": "x > 0",
    "log10": "x > 0",
    "log1p": "x > -1",
    "sqrt": "x > 0",
    "cbrt": "x != 0",
    "reciprocal": "x != 0",
    "arcsin": "np.abs(x) < 1",
    "arccos": "np.abs(x) < 1",
    "arctanh": "np.abs(x) < 1",
    "arccosh": "x > 1",
    "power": "x > 0",
    "float_power": "x > 0",
}
_LIMITS = {"arccosh": "1 + 1e-12, None", "log1p": "-1 + 1e-12, None"}
_OF_QUOTIENT = (
    "keep zeros out of the denominator before dividing, and select again after it: "
    "ok = y != 0; np.where(ok, x / np.where(ok, y, 1.0), 0.0); or add a small number to it"
)
_OF_INFINITY = (
    "keep infinities out: clip before np.exp, np.clip(x, None, 700.0), subtract the maximum, or "
    "use a function that does (np.logaddexp, funcgrad.nn.functional.softmax); where one is meant, "
    "select by np.where before the operation and again after it"
)
_OF_DATA = (
    "clean the data before the call: np.nan_to_num(x), np.where(np.isfinite(x), x, 0.0), or leave "
    "the rows out"
)


class Found:
    """An element that is not finite.

    Attributes
    ----------
    kind : {"value", "tangent"}
    plain : array_like
        The array that it is in, with the examples of `batches` along its first axes.
    index : tuple of int
        Where it is there.
    element : scalar
    """

    __slots__ = ("batches", "element", "index", "kind", "plain")

    def __init__(self, kind: str, plain: Any, batches: Any, index: tuple[int, ...], element: Any):
        self.kind = kind
        self.plain = plain
        self.batches = batches
        self.index = index
        self.element = element

    @property
    def word(self) -> str:
        """What it is."""
        return "NaN" if np.isnan(self.element) else "infinity"

    @property
    def a_word(self) -> str:
        """What it is, with an article."""
        return "a NaN" if self.word == "NaN" else "an infinity"

    @property
    def inner(self) -> tuple[int, ...]:
        """Where it is in the array of its example."""
        return self.index[len(self.batches) :]

    def described(self) -> str:
        """Write the array and the place: ``float64[3], NaN at [1]``."""
        shape = np.shape(self.plain)[len(self.batches) :]
        text = f"{np.asarray(self.plain).dtype}[{','.join(map(str, shape))}], {self.word}"
        return text + (f" at [{', '.join(map(str, self.inner))}]" if self.inner else "")

    def examples(self) -> list[str]:
        """Write which example of each `vmap` it is in."""
        return [
            f"basis vector {number} of the Jacobian"
            if is_ours(getattr(getattr(trace.origin.fun, "__code__", None), "co_filename", ""))
            else f"example {_number(trace, number)} of {trace.origin}"
            for trace, number in zip(self.batches, self.index, strict=False)
        ]


def _number(trace: Any, number: int) -> str:
    """Return which example it is by the user's count; `cond` and loops run some of the rows."""
    while hasattr(trace, "rows"):
        rows = trace.rows
        index = np.unravel_index(rows.flat[number], rows.sizes)
        if len(rows.bases) > 1:
            return str(tuple(int(part) for part in index))
        trace, number = rows.bases[0], int(index[0])
    return str(number)


def error_forward(
    made: Made, found: Found, guilty: Sequence[int], tangents: Sequence[Any]
) -> NonFiniteError:
    """Make the error for what an operation made in the forward pass.

    Parameters
    ----------
    made : Made
        The operation.
    found : Found
        What is not finite of its result.
    guilty : sequence of int
        The operands that were not finite either.
    tangents : sequence of list
        For each operand the tangents that it carries, as `Found` has them: kind, array, batches.
    """
    what = _what(made.name, found, bool(guilty))
    if guilty:
        what += f" by operand {guilty[0]}"
        name = made.operands[guilty[0]].name
        what += f", {name}" if name else ""
    lines = [f"{'tangent' if found.kind == 'tangent' else 'result'}: {found.described()}"]
    source = made.name
    for i, text in enumerate(_operands(made, found)):
        lines.append(text)
        if found.kind == "value":
            continue
        for _, plain, batches in tangents[i]:
            there = _value_there(plain, batches, found, made.elementwise)
            lines.append(f"tangent of operand {i}: {there}")
            maker = made.operands[i].maker
            if "inf" in there and maker is not None and source == made.name:
                source = maker[0]
    return _error(made, what, lines, found, _fix(made, bool(guilty), found, source))


def _what(name: str, found: Found, given: bool) -> str:
    whose = f"the derivative of {name}" if found.kind == "tangent" else name
    return f"{whose} {'was given' if given else 'made'} {found.a_word}"


def error_backward(
    made: Made | None,
    variable: int,
    found: Found,
    out_bar: Any,
    given: bool,
    source: Made | None,
    summed: bool,
) -> NonFiniteError:
    """Make the error for a cotangent that the pullback of an operation made.

    Parameters
    ----------
    made : Made or None
        The operation, where it was noted.
    variable : int
        Of which variable of the tape the cotangent is.
    found : Found
        What is not finite in it.
    out_bar : array_like or tuple
        The cotangent of the result.
    given : bool
        That was not finite either.
    source : Made or None
        The operation whose pullback first made an infinity.
    summed : bool
        What is not finite is the sum with the cotangent by another use of the same operand.
    """
    if made is None:
        return NonFiniteError(
            f"the backward pass made {found.a_word}",
            where="an operation that was recorded before the debug mode was on",
            fix="call the function too, as by funcgrad.vjp, where the mode is on",
        )
    what = _what(f"the pullback of {made.name}", found, given)
    if summed:
        what = (
            f"the cotangents by the pullback of {made.name} and by other uses of its operand add "
            f"up to {found.a_word}"
        )
    which = [i for i, operand in enumerate(made.operands) if operand.variable == variable]
    names = " and ".join(f"operand {i}" for i in which) or "an operand"
    lines = [
        f"{'sum of the cotangents' if summed else 'cotangent'} of {names}: {found.described()}"
    ]
    lines += _operands(made, found)
    if summed and source is not None:
        lines.append(
            f"the first infinity was made by the pullback of {source.name}{_at(source.line)}"
        )
    for bar in out_bar if type(out_bar) is tuple else (out_bar,):
        if bar is not None:
            text = _value_there(concrete(bar), batches_of(bar), found, made.elementwise)
            line = f"cotangent of the result: {text}"
            if source is not None and source is not made and "inf" in text:
                line += f", made by the pullback of {source.name}{_at(source.line)}"
            lines.append(line)
    name = made.name if source is None else source.name
    return _error(made, what, lines, found, _fix(made, given, found, name))


def _at(line: Line | None) -> str:
    return "" if line is None else f" at {line}"


def _operands(made: Made, found: Found) -> list[str]:
    lines = []
    for i, operand in enumerate(made.operands):
        text = _value_there(operand.plain, operand.batches, found, made.elementwise)
        lines.append(f"operand {i}: {text}{_origin_of(operand)}")
    return lines


def _origin_of(operand: Operand) -> str:
    if operand.name:
        return f"; {operand.name}"
    if operand.maker is not None:
        name, line = operand.maker
        return f"; made by {name}{_at(line)}"
    return ""


def _value_there(plain: Any, batches: Any, found: Found, elementwise: bool) -> str:
    """Write what an array holds where the result was found not to be finite, or in all."""
    try:
        array = np.asarray(plain)
    except Exception:
        return describe(plain)
    if array.dtype.kind not in "biufc":
        return describe(plain)
    numbers = dict(zip(found.batches, found.index, strict=False))
    own = array[tuple(numbers.get(trace, slice(None)) for trace in batches)]
    shown = f"{array.dtype}[{','.join(map(str, own.shape))}]"
    if isinstance(plain, bool | int | float | complex):
        return f"the number {plain}"
    if elementwise:
        shape = np.shape(found.plain)[len(found.batches) :]
        try:
            there: Any = np.broadcast_to(own, np.broadcast_shapes(shape, own.shape))
            there = there[(Ellipsis, *found.inner)]
        except (ValueError, IndexError):
            there = own
        if there.shape == ():
            return f"{shown}, {there[()]!s}" + (" there" if own.shape else "")
    bad: Any = np.argwhere(~np.isfinite(own)) if own.dtype.kind in "fc" else ()
    if len(bad):
        index = tuple(int(n) for n in bad[0])
        place = f" at [{', '.join(map(str, index))}]" if index else ""
        return f"{shown}, {own[index]!s}{place}"
    if not own.size:
        return f"{shown}, empty"
    if own.shape == ():
        return f"{shown}, {own[()]!s}"
    if own.dtype.kind == "c":
        return f"{shown}, all finite"
    return f"{shown}, from {own.min()!s} to {own.max()!s}"


def _fix(made: Made, given: bool, found: Found, name: str) -> str:
    """Say what to write; `name` is the operation with the infinite slope, or the one itself."""
    if given and any(operand.name for operand in made.operands):
        return _OF_DATA
    if name in _DOMAINS:
        rest = ", y" if name.endswith("power") else ""
        limits = _LIMITS.get(name, "1e-12, None")
        if name in ("arcsin", "arccos", "arctanh"):
            limits = "-1 + 1e-12, 1 - 1e-12"
        return _TWICE.format(
            name=name,
            ok=_DOMAINS[name],
            call=f"np.{name}(safe{rest})",
            clip=f"np.{name}(np.clip(x, {limits}){rest})",
        )
    if name in ("divide", "true_divide", "floor_divide", "remainder", "fmod"):
        return _OF_QUOTIENT
    if found.word == "infinity" or name in ("exp", "exp2", "expm1", "sinh", "cosh"):
        return _OF_INFINITY
    if any(_is_infinite(operand.plain) for operand in made.operands):
        return _OF_INFINITY
    return (
        "select its operands by np.where before the operation, and its result again after it, or "
        "clip them before"
    )


def _is_infinite(plain: Any) -> bool:
    array = np.asarray(plain)
    return array.dtype.kind in "fc" and bool(np.any(np.isinf(array)))


def _error(made: Made, what: str, lines: list[str], found: Found, fix: str) -> NonFiniteError:
    where = f"{made.line or 'an unknown line'}, in {made.origin}"
    if isinstance(made.line, Line) and made.line.source:
        where += f"\n           {made.line.source}"
    where += "".join(f"\n         {line}" for line in (*lines, *found.examples()))
    return NonFiniteError(what, where=where, fix=fix)
