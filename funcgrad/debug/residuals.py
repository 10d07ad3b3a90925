"""How much memory reverse mode keeps, and for which of the user's lines: `residuals`.

The one idea: the function is run as `grad` would run it, on a trace that notes the line of each
node. Then whatever the nodes can reach is asked for arrays: what a rule keeps is a variable of its
pullback. An array may be a view, so it is the owner of its memory that counts, and counts once.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple

import attrs
import numpy as np

from funcgrad import tree
from funcgrad.core.level import Origin, Trace, concrete
from funcgrad.core.primitive import Primitive
from funcgrad.debug.lines import Line, here
from funcgrad.errors import describe
from funcgrad.transforms.calls import Rules
from funcgrad.transforms.flat import (
    Transformed,
    call_origin,
    check_callable,
    differentiable_leaves,
    select,
)
from funcgrad.transforms.reverse import argument_numbers
from funcgrad.transforms.tape import ReverseTrace, owner_of

__all__ = ["Kept", "Residuals", "residuals"]

# What is there anyway, and leads from the tape to the user's own data.
_PASSED_OVER = (type, ModuleType, FrameType, CodeType, Trace, Origin, Primitive, Rules, Transformed)


class Kept(NamedTuple):
    """What reverse mode keeps because of one line.

    Attributes
    ----------
    bytes : int
        How much memory the arrays take.
    where : str
        The line, as ``file.py:12``.
    source : str
        Its text, "" where it cannot be had.
    arrays : tuple of str
        The arrays, as ``float64[3,4]``, the largest first.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> kept = fg.debug.residuals(lambda x: np.sum(np.exp(x)), np.ones(100)).rows[0]
    >>> kept.bytes, kept.arrays
    (800, ('float64[100]',))
    """

    bytes: int
    where: str
    source: str
    arrays: tuple[str, ...]


@attrs.frozen(repr=False, eq=False)
class Residuals:
    """What `residuals` found; prints as a table.

    Attributes
    ----------
    total : int
        How many bytes are kept, besides those of the arguments.
    arguments : int
        How many bytes of the arguments' own memory the backward pass reads.
    rows : tuple of Kept
        The parts of `total`, a line each, the largest first. An array that several lines need
        counts for the first of them.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> report = fg.debug.residuals(lambda x: np.sum(np.exp(x)), np.ones(100))
    >>> report.total, report.arguments, len(report.rows)
    (800, 0, 1)
    >>> print(str(report).splitlines()[0])
    800 B kept for the backward pass
    """

    total: int
    arguments: int
    rows: tuple[Kept, ...]

    def __repr__(self) -> str:
        head = f"{_size(self.total)} kept for the backward pass"
        if self.arguments:
            head += f", and {_size(self.arguments)} of the arguments"
        if not self.rows:
            return head
        widths = [
            max(map(len, column))
            for column in zip(*((_size(row.bytes), row.where) for row in self.rows), strict=True)
        ]
        lines = [
            f"{_size(row.bytes):>{widths[0] + 2}}  {row.where:<{widths[1]}}  {row.source}".rstrip()
            + f"\n{'':{widths[0] + 4}}{_counted(row.arrays)}"
            for row in self.rows
        ]
        return "\n".join([head, *lines])


def residuals(fun: Callable[..., Any], *args: Any, argnums: int | Sequence[int] = 0) -> Residuals:
    """Report how much memory `grad` keeps for its backward pass, and for which lines.

    Parameters
    ----------
    fun : callable
        The function to differentiate. Its output may be any pytree. It is run once.
    *args : pytree
        Its arguments. Memory depends on their shapes, and rarely on their values.
    argnums : int or sequence of int, optional
        Which of them to differentiate with respect to, as for `grad`: less is kept for fewer.

    Returns
    -------
    Residuals
        The bytes in total and by line of `fun`; print it. What is in the memory of arguments is
        counted apart, as it is there anyway.

    Raises
    ------
    ArgumentError
        `fun` is not a function, or `argnums` is out of range.
    DtypeError
        An argument has nothing to differentiate.

    See Also
    --------
    funcgrad.checkpoint : Keep less, and compute it again.

    Notes
    -----
    The bytes are those of the arrays on the tape when `fun` has returned, when there are most. A
    backward pass frees them on its way, and needs some memory of its own. A function under
    `checkpoint` counts for the line that calls it. An array that `fun` closes over counts if the
    backward pass reads it; small ones are copied, arguments too, and their copies count.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> def energy(x):
    ...     return np.sum(np.tanh(x) ** 2)
    >>> kept = fg.debug.residuals(energy, np.ones(1000))
    >>> kept.total
    8000
    >>> kept.rows[0].arrays
    ('float64[1000]',)
    """
    check_callable("debug.residuals", fun)
    origin = call_origin("debug.residuals", fun)
    numbers, _, _ = argument_numbers(argnums, None, origin.transform)
    chosen = select(fun, args, {}, numbers, (), origin.transform)
    leaves, treedef = tree.flatten(chosen.values)
    positions = differentiable_leaves(
        leaves, chosen.values, chosen.names, transform=origin.transform
    )
    given = {id(owner_of(leaf)) for leaf in map(concrete, tree.leaves(args)) if _is_array(leaf)}
    with _LineTrace(origin) as trace:
        traced = list(leaves)
        for position in positions:
            traced[position] = trace.variable(leaves[position])
        arguments, kwargs = chosen.replace(tree.unflatten(treedef, traced))
        fun(*arguments, **kwargs)
        del traced, arguments
        lines, tape = trace.lines, trace.take_tape()
    return _report(zip(lines, tape, strict=True), given)


class _LineTrace(ReverseTrace):
    """Records a tape, and the line of each node."""

    __slots__ = ("lines",)

    def __init__(self, origin: Origin):
        super().__init__(origin)
        self.lines: list[Line | None] = []
        self.record = self._record_line

    def _record_line(self, node: Any) -> None:
        # A checkpoint takes nodes off the tape, and puts one in their place.
        del self.lines[len(self.tape) :]
        self.lines.append(here())
        self.tape.append(node)


def _report(nodes: Any, given: set[int]) -> Residuals:
    """Add up what nodes keep; memory with an owner in `given` is the arguments'."""
    seen: dict[int, Any] = {}
    counted: set[int] = set()
    arguments = 0
    found: dict[str, tuple[Line | None, list[Any]]] = {}
    for line, node in nodes:
        for array in _arrays(node, seen):
            memory = owner_of(array)
            if id(memory) in counted:
                continue
            counted.add(id(memory))
            if id(memory) in given:
                arguments += memory.nbytes
            elif memory.nbytes:
                where = "an unknown line" if line is None else str(line)
                found.setdefault(where, (line, []))[1].append(memory)
    rows = []
    for where, (line, arrays) in found.items():
        arrays.sort(key=lambda array: -array.nbytes)
        size = sum(array.nbytes for array in arrays)
        source = "" if line is None else line.source
        rows.append(Kept(size, where, source, tuple(map(describe, arrays))))
    rows.sort(key=lambda row: -row.bytes)
    return Residuals(sum(row.bytes for row in rows), arguments, tuple(rows))


def _arrays(root: Any, seen: dict[int, Any]) -> Iterator[Any]:
    """Yield the arrays that `root` keeps alive, but for what has been seen, and note that."""
    waiting = [root]
    while waiting:
        held = waiting.pop()
        if id(held) in seen or isinstance(held, _PASSED_OVER):
            continue
        seen[id(held)] = held  # alive, so that its id is its own
        if _is_array(held):
            yield held
        elif isinstance(held, FunctionType):  # of its globals it keeps nothing
            waiting += [held.__closure__, held.__defaults__, held.__kwdefaults__]
        else:
            waiting += gc.get_referents(held)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def _size(count: float) -> str:
    """Write a number of bytes."""
    unit = "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if count < 999.5:
            break
        count, unit = count / 1000, larger
    return f"{count:.0f} {unit}" if unit == "B" or count >= 99.95 else f"{count:.3g} {unit}"


def _counted(arrays: Sequence[str]) -> str:
    """Write the same array once, with how many there are; the first few."""
    texts = [f"{n} x {text}" if n > 1 else text for text, n in Counter(arrays).items()]
    return ", ".join(texts if len(texts) <= 4 else [*texts[:4], f"{len(texts) - 4} more shapes"])
