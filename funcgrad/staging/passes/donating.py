"""Donating: which results are written into the memory of arguments that nobody needs any more.

An argument's memory is free after its last use; and at its last use already, where each element of
the result is computed of the element in the same place, as an optimizer's are. Nothing is written
before the last condition of the program: where that fails, another program is run on the same
arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import TYPE_CHECKING

from funcgrad.core.elementwise import Elementwise
from funcgrad.core.primitive import DECLARED
from funcgrad.staging.equations import Equation, Var, vars_of
from funcgrad.staging.passes.blocks import Block
from funcgrad.staging.passes.leaves import JOIN, SPLIT
from funcgrad.staging.passes.rewriting import VIEW

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["donations", "writable_from"]

_PLAIN = (JOIN, SPLIT, VIEW)


def donations(
    program: Program,
    donated: Set[int],
    owned: Callable[[Var], frozenset[int]],
    last: Mapping[int, int],
    layouts: Mapping[int, str],
    is_result: Callable[[Equation, Var], bool],
) -> dict[int, int]:
    """Return, for results, the arguments whose memory they take; all by number.

    Parameters
    ----------
    program : Program
    donated : set of int
        The arguments that may be taken.
    owned : callable
        Returns the numbers of the variables whose memory a variable may lie in.
    last : dict
        The last equation that uses the memory of a variable.
    layouts : dict
        How arrays lie in memory.
    is_result : callable
        Tells whether a result of an equation can be written into given memory, and is returned.
    """
    returned = {number for var in vars_of(program.outputs) for number in owned(var)}
    free = [v for v in program.inputs if v.number in donated and v.number not in returned]
    start = writable_from(program)
    found: dict[int, int] = {}
    for position in range(start, len(program.equations)):
        equation = program.equations[position]
        for out in vars_of(equation.outputs):
            if not free or not is_result(equation, out):
                continue
            for var in free:
                if (
                    var.shape == out.shape
                    and var.dtype == out.dtype
                    and layouts.get(var.number) == layouts.get(out.number)
                    and _is_done(equation, var, out, position, last.get(var.number, -1), owned)
                ):
                    found[out.number] = var.number
                    free.remove(var)
                    break
    return found


def writable_from(program: Program) -> int:
    """Return from which equation on it is certain that the program holds."""
    start = max([note.position for note in program.notes], default=0)
    for position, equation in enumerate(program.equations):
        if not _is_plain(equation):  # it may find out that the program does not hold
            start = max(start, position + 1)
    return start


def _is_plain(equation: Equation) -> bool:
    operation = equation.operation
    if operation.name == "bincount":  # of which the shape is looked at
        return False
    return (
        isinstance(operation, Elementwise | Block)
        or operation in _PLAIN
        or DECLARED.get(operation.name) is operation
    )


def _is_done(
    equation: Equation,
    var: Var,
    out: Var,
    position: int,
    last: int,
    owned: Callable[[Var], frozenset[int]],
) -> bool:
    """Tell whether an argument is of no more use when a result is written."""
    if last != position:
        return last < position
    if any(v is not var and var.number in owned(v) for v in vars_of(equation.inputs)):
        return False  # a view, whose elements are elsewhere
    operation = equation.operation
    if isinstance(operation, Elementwise):
        return True
    if not isinstance(operation, Block) or not {var.number, out.number} <= operation.cut:
        return False
    if any(var.number == fold.var.number for fold in operation.folds):
        return False
    for inner in reversed(operation.equations):  # from the last of the block to what makes `out`
        is_maker = any(v.number == out.number for v in vars_of(inner.outputs))
        if var.number in {v.number for v in vars_of(inner.inputs)}:
            return is_maker and isinstance(inner.operation, Elementwise)
        if is_maker:
            return True
    return False
