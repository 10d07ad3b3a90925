"""Hosting: what a result is computed of is written into the memory of the result before it.

In ``a = x * y``, ``r = a + z`` the array `a` ends where the result `r` begins, element by element.
So `a` can be written to where `r` will be, and needs no memory of its own. A chain of ten
operations on a large array goes through one piece of memory less, which is then in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import TYPE_CHECKING

from funcgrad.core.elementwise import Elementwise
from funcgrad.staging.equations import Equation, vars_of
from funcgrad.staging.passes.donating import writable_from

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["guests"]


def guests(
    program: Program,
    hosts: Set[int],
    excluded: Set[int],
    takes_out: Callable[[Equation], bool],
    owners: Mapping[int, frozenset[int]],
    last: Mapping[int, int],
    layouts: Mapping[int, str],
    donated: Mapping[int, int],
) -> dict[int, int]:
    """Return the results in whose memory variables are computed before; all by number.

    Parameters
    ----------
    program : Program
    hosts : set of int
        The results that are written to memory of their own.
    excluded : set of int
        Variables that have a place already.
    takes_out : callable
        Tells of an equation whether its function can write into a given array.
    owners : dict
        The variables in whose memory others lie.
    last : dict
        The last equation that uses the memory of a variable.
    layouts : dict
        How arrays lie in memory.
    donated : dict
        Results that take the memory of an argument: the numbers of the two.
    """
    viewed = {n for number, own in owners.items() for n in own if n != number} | set(owners)
    makers = {
        out.number: position
        for position, equation in enumerate(program.equations)
        if len(equation.outputs) == 1 and takes_out(equation)
        for out in vars_of(equation.outputs)
    }
    start = writable_from(program) if donated else 0
    found: dict[int, int] = {}
    for position in range(len(program.equations) - 1, -1, -1):
        equation = program.equations[position]
        out = equation.outputs[0] if equation.outputs else None
        if out is None or not isinstance(equation.operation, Elementwise):
            continue
        host = out.number if out.number in hosts else found.get(out.number)
        if host is None:
            continue
        for var in vars_of(equation.inputs):
            maker = makers.get(var.number)
            if (
                maker is None
                or last.get(var.number) != position
                or var.number in viewed
                or var.number in excluded
                or var.shape != out.shape
                or var.dtype != out.dtype
                or layouts.get(var.number) != layouts.get(out.number)
            ):
                continue
            argument = donated.get(host)
            if argument is not None:
                until = last.get(argument, -1)
                is_over = until < maker or (
                    until == maker
                    and argument not in viewed
                    and isinstance(program.equations[maker].operation, Elementwise)
                )
                if maker < start or not is_over:
                    continue
            found[var.number] = host
            break
    return found
