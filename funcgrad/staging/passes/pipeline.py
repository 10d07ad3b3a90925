"""The passes in their order, and the program after each for whoever wants to see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from funcgrad.staging.passes.assembly import with_assembly
from funcgrad.staging.passes.common import with_common_subexpressions
from funcgrad.staging.passes.composites import with_parts
from funcgrad.staging.passes.constants import with_constants_folded
from funcgrad.staging.passes.dead_code import without_dead_code
from funcgrad.staging.passes.identities import with_identities
from funcgrad.staging.passes.loops import with_loops
from funcgrad.staging.passes.lowering import lowered
from funcgrad.staging.passes.opening import opened
from funcgrad.staging.passes.rewriting import Layouts, without_regions
from funcgrad.staging.passes.signs import with_signs
from funcgrad.staging.passes.views import with_views

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["PASSES", "optimised", "stages"]


def _without_dead_code(program: Program, layouts: Layouts) -> Program:
    return without_dead_code(program)


def _with_loops(program: Program, layouts: Layouts) -> Program:
    return with_loops(program, layouts, optimised)


def _lowered(program: Program, layouts: Layouts) -> Program:
    return lowered(with_parts(program, layouts), layouts)


PASSES: tuple[tuple[str, Callable[[Program, Layouts], Program]], ...] = (
    ("regions", without_regions),
    ("dead code", _without_dead_code),
    ("opening", opened),
    ("lowering", _lowered),
    ("constants", with_constants_folded),
    ("identities", with_identities),
    ("signs", with_signs),
    ("assembly", with_assembly),
    ("loops", _with_loops),
    ("common subexpressions", with_common_subexpressions),
    ("views", with_views),
    ("dead code", _without_dead_code),
)


def stages(program: Program, layouts: Layouts) -> Iterator[tuple[str, Program]]:
    """Yield the name of each pass, and the program after it."""
    for name, improve in PASSES:
        program = improve(program, layouts)
        yield name, program


def optimised(program: Program, layouts: Layouts) -> Program:
    """Return a program that does the same in fewer steps, to the last bit.

    Parameters
    ----------
    program : Program
    layouts : dict
        How arrays lie in memory: see `funcgrad.staging.strict`.
    """
    for _, improve in PASSES:
        program = improve(program, layouts)
    return program
