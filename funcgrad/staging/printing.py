"""How a program prints: a line for each equation, with names, shapes and dtypes.

Arguments are called by their paths (``params['w']``), constants by capitals, and what equations
compute a, b, ... z, aa and so on.
"""

from __future__ import annotations

import itertools
import string
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad import tree
from funcgrad.errors import describe
from funcgrad.staging.equations import (
    HOLE,
    Atom,
    Equation,
    FunctionCall,
    Leaf,
    Literal,
    Note,
    Var,
    describe_kind,
    vars_of,
)

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = [
    "Names",
    "array_text",
    "call_text",
    "letters",
    "literal_text",
    "name_of",
    "params_text",
    "static_text",
    "text_of",
]

# Arrays with no more elements are printed by value.
_FEW = 6
# Of those with no more it is seen whether all elements are the same.
_MANY = 1 << 16
_WIDTH = 100
# The lines of the user's stand in this column, or behind the longest equation if that is shorter.
_COLUMN = 64


class Names:
    """What the variables of a program are called.

    Those of the programs within, the steps of a loop or branches, are in `inner`, by equation.
    """

    def __init__(self, program: Program):
        self.inner: dict[int, list[tuple[str, Program, Names]]] = {}
        self.by_number: dict[int, str] = {}
        taken = set()
        for leaf in program.arguments:
            if isinstance(leaf.atom, Var):
                self.by_number[leaf.atom.number] = leaf.path
            taken.add(leaf.path)
        taken.update(list(_heads(taken)))
        capitals = letters(string.ascii_uppercase, taken)
        for constant in program.constants:
            self.by_number[constant.var.number] = next(capitals)
        small = letters(string.ascii_lowercase, taken)
        self._name(program, capitals, small)

    def _name(self, program: Program, capitals: Iterator[str], small: Iterator[str]) -> None:
        for equation in program.equations:
            for var in equation.outputs:
                if var is not None:
                    self.by_number[var.number] = next(small)
            for part in getattr(equation.operation, "parts", ()):  # of what is done in blocks
                for var in vars_of(part.outputs):
                    self.by_number.setdefault(var.number, next(small))
        for place, equation in enumerate(program.equations):
            for head, inner, known in getattr(equation.operation, "programs", lambda _: ())(
                equation.inputs
            ):
                names = Names.__new__(Names)
                names.inner = {}
                names.by_number = {
                    var.number: next(small) if atom is None else self.of(atom)
                    for var, atom in zip(inner.inputs, known, strict=True)
                }
                for constant in inner.constants:
                    names.by_number[constant.var.number] = next(capitals)
                names._name(inner, capitals, small)
                own = [
                    names.typed(var)
                    for var, atom in zip(inner.inputs, known, strict=True)
                    if atom is None
                ]
                title = f"{head}({', '.join(own)}):" if own else f"{head}:"
                self.inner.setdefault(place, []).append((title, inner, names))

    def of(self, atom: Atom | None) -> str:
        """Return the name of a variable, or how a literal is written."""
        if atom is None:
            return "_"
        if isinstance(atom, Literal):
            return literal_text(atom.value)
        return self.by_number[atom.number]

    def typed(self, var: Var | None) -> str:
        """Return ``name: float64[3]``."""
        return "_" if var is None else f"{self.of(var)}: {var.kind}"


def _heads(paths: set[str]) -> Iterator[str]:
    """Yield the names of the arguments that paths begin with."""
    for path in paths:
        yield path.partition("[")[0].partition(".")[0]


# Words of Python, which a name made of letters could happen to be.
_WORDS = frozenset({"as", "if", "in", "is", "or", "do", "for", "def", "del", "not", "and", "try"})


def letters(alphabet: str, taken: set[str]) -> Iterator[str]:
    """Yield a, b, ..., z, aa, ab, ... but for names that are taken."""
    for length in itertools.count(1):
        for letters in itertools.product(alphabet, repeat=length):
            name = "".join(letters)
            if name not in taken and name not in _WORDS:
                yield name


def literal_text(value: Any) -> str:
    """Write a number; that of a NumPy scalar with its dtype."""
    if isinstance(value, np.generic):
        return f"{value.dtype}({value.item()!r})"
    return repr(value)


def static_text(value: Any) -> str:
    """Write a static value in short."""
    if isinstance(value, slice):
        parts = [value.start, value.stop] + ([] if value.step is None else [value.step])
        return ":".join("" if part is None else static_text(part) for part in parts)
    if value is Ellipsis:
        return "..."
    if isinstance(value, np.dtype):
        return str(value)
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, np.ndarray):
        return array_text(value)
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, tuple):
        inner = ", ".join(map(static_text, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, list):
        return f"[{', '.join(map(static_text, value))}]"
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    text = " ".join(repr(value).split())
    return text if len(text) <= 40 else text[:37] + "..."


def array_text(value: Any) -> str:
    """Write an array by value if it is small, or else by its shape and dtype."""
    if getattr(value, "size", _FEW + 1) > _FEW or not isinstance(value, np.ndarray):
        return describe(value)
    return " ".join(np.array2string(value, separator=", ", threshold=_FEW).split())


def params_text(equation: Equation) -> str:
    """Write the static parameters of an equation that say something: ``axis=0``."""
    operation, shown = equation.operation, []
    defaults = getattr(operation, "_static_defaults", {})
    for name, value in equation.params.items():
        if value is None or type(value).__name__ in ("_NoValueType", "_NotGiven"):
            continue
        if name in defaults and tree.same(value, defaults[name]):
            continue
        if value is False and name == "keepdims":
            continue
        if name == "index":
            inner = value if isinstance(value, tuple) and value else (value,)
            shown.append(f"[{', '.join(map(static_text, inner))}]")
        else:
            shown.append(f"{name}={static_text(value)}")
    return ", ".join(shown)


def call_text(equation: Equation, names: Names) -> str:
    """Write the right side of an equation."""
    operation = equation.operation
    inputs = [names.of(atom) for atom in equation.inputs]
    if isinstance(operation, FunctionCall):
        given = iter(inputs)
        args, kwargs = tree.unflatten(
            operation.treedef,
            [
                _Written(next(given)) if leaf is HOLE else _Written(static_text(leaf))
                for leaf in operation.leaves
            ],
        )
        parts = [*map(repr, args), *(f"{key}={value!r}" for key, value in kwargs.items())]
        return f"{equation.name}({', '.join(parts)})"
    params = params_text(equation)
    statics = getattr(operation, "statics", None)
    if statics:
        params = ", ".join(f"{name}={static_text(value)}" for name, value in statics.items())
    return f"{name_of(equation)}({', '.join([*inputs, *([params] if params else [])])})"


def name_of(equation: Equation) -> str:
    """Return the name of the operation, by that of the NumPy function it answers for if it can."""
    for function in getattr(equation.operation, "overridden", ())[:1]:
        name = getattr(function, "__name__", "")
        if getattr(np, name, None) is function:
            return str(name)
    return equation.name


class _Written:
    """Prints as it is told."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def text_of(program: Program, *, lines: bool) -> str:
    """Write a program."""
    names = Names(program)
    rows: list[tuple[str, str]] = [(row, "") for row in _header(program)]
    for constant in program.constants:
        rows.append((f"  const {names.typed(constant.var)}{_value_text(constant.value)}", ""))
    rows += _body(program, names, 1)
    rows += [(row, "") for row in _returned(program, names)]
    if not lines:
        return "\n".join(row for row, _ in rows)
    column = min(_COLUMN, max((len(row) + 2 for row, line in rows if line), default=0))
    return "\n".join(f"{row:<{column - 2}}  # {line}" if line else row for row, line in rows)


def _body(program: Program, names: Names, depth: int) -> list[tuple[str, str]]:
    """Write the equations, each with the line of the user's."""
    starts: dict[int, list[Any]] = {}
    for region in program.regions:
        starts.setdefault(region.start, []).append(region)
    notes: dict[int, list[Note]] = {}
    for note in program.notes:
        notes.setdefault(note.position, []).append(note)
    ends: list[int] = []
    rows: list[tuple[str, str]] = []
    for position in range(len(program.equations) + 1):
        while ends and ends[-1] <= position:
            ends.pop()
        for text, line in _noted(notes.get(position, ()), names):
            rows.append((f"{'  ' * (len(ends) + depth)}# {text}", line))
        for region in starts.get(position, ()):
            rows.append((f"{'  ' * (len(ends) + depth)}{region.name}:", ""))
            ends.append(region.stop)
        if position == len(program.equations):
            break
        equation = program.equations[position]
        left = ", ".join(map(names.typed, equation.outputs))
        if equation.several:
            left = f"({left})"
        row = f"{'  ' * (len(ends) + depth)}{left} = {call_text(equation, names)}"
        rows.append((row, str(equation.line or "")))
        for part in getattr(equation.operation, "parts", ()):
            text = f"{', '.join(map(names.typed, part.outputs))} = {call_text(part, names)}"
            rows.append((f"{'  ' * (len(ends) + depth + 1)}{text}", str(part.line or "")))
        for title, inner, own in names.inner.get(position, ()):
            deep = len(ends) + depth + 1
            rows.append((f"{'  ' * deep}{title}", ""))
            for constant in inner.constants:
                text = f"const {own.typed(constant.var)}{_value_text(constant.value)}"
                rows.append((f"{'  ' * (deep + 1)}{text}", ""))
            rows += _body(inner, own, deep + 1)
            last = ", ".join(map(own.of, inner.outputs))
            rows.append((f"{'  ' * (deep + 1)}return {last}", ""))
    return rows


def _noted(notes: Any, names: Names) -> Iterator[tuple[str, str]]:
    """Yield what notes say, those of finite values in one line."""
    finite = [note for note in notes if note.is_of_finite]
    if finite:
        found = dict.fromkeys(names.of(var) for note in finite for var in note.vars)
        shown = list(found)
        text = ", ".join(shown if len(shown) <= 4 else [*shown[:3], f"{len(shown) - 3} more"])
        yield f"specialised on finite {text}", str(finite[0].line or "")
    for note in notes:
        if not note.is_of_finite:
            (var,) = note.vars
            value = static_text(note.value)
            text = f"specialised on {names.of(var)} = {value} ({note.what})"
            yield text, str(note.line or "")


def _value_text(value: Any) -> str:
    """Write what a constant is, if that is short."""
    if not isinstance(value, np.ndarray):
        return ""
    if value.size <= _FEW:
        return f" = {array_text(value)}"
    first = value.flat[0]
    return f", all {first.item()!r}" if value.size < _MANY and np.all(value == first) else ""


def _header(program: Program) -> list[str]:
    """Write the name of the function, and its arguments."""
    leaves = [_Written(_leaf_text(leaf)) for leaf in program.arguments]
    args, kwargs = tree.unflatten(program.in_tree, leaves)
    parts = [
        f"{name}: {value!r}"
        for name, value in zip(program.argument_names, (*args, *kwargs.values()), strict=True)
    ]
    row = f"program {program.name}({', '.join(parts)})"
    if len(row) <= _WIDTH:
        return [row]
    return [f"program {program.name}(", *(f"    {part}," for part in parts), ")"]


def _leaf_text(leaf: Leaf) -> str:
    if leaf.atom is None:
        return static_text(leaf.value)
    if leaf.box is not None:
        return describe(leaf.box)
    return describe_kind(leaf.atom.value) if isinstance(leaf.atom, Literal) else leaf.atom.kind


def _returned(program: Program, names: Names) -> list[str]:
    texts = []
    for leaf in program.results:
        if leaf.atom is None:
            texts.append(static_text(leaf.value))
        elif isinstance(leaf.atom, Literal):
            texts.append(names.of(leaf.atom))
        else:
            texts.append(names.typed(leaf.atom))
    if len(texts) == 1 and not program.results[0].path:
        return [f"  return {texts[0]}"]
    if not texts:
        return [f"  return {tree.unflatten(program.out_tree, [])!r}"]
    return ["  return"] + [
        f"    {leaf.path} = {text}" for leaf, text in zip(program.results, texts, strict=True)
    ]
