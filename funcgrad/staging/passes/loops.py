"""Loops and branches: leaves out what nobody wants of them, and has less to do at each step.

The programs of the steps go through all the other passes. What is computed of constants alone is
computed before the loop (`funcgrad.staging.passes.loop_rewriting`), and what can be done for all
steps at once is (`funcgrad.staging.passes.loop_products`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
import numpy as np

from funcgrad.staging.bodies import Body
from funcgrad.staging.branches import Branches
from funcgrad.staging.equations import Equation, vars_of
from funcgrad.staging.loops import Loop
from funcgrad.staging.passes.loop_products import LoopProducts
from funcgrad.staging.passes.loop_rewriting import body_of, needed_for
from funcgrad.staging.passes.rewriting import Layouts

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["with_loops"]

Improve = Callable[["Program", Layouts], "Program"]


def with_loops(program: Program, layouts: Layouts, improved: Improve) -> Program:
    """Return a program with shorter loops.

    Parameters
    ----------
    program : Program
    layouts : dict
        How arrays lie in memory; that of new ones is added.
    improved : callable
        Puts the program of a step through all passes.
    """
    if not any(isinstance(e.operation, Loop | Branches) for e in program.equations):
        return program
    used = {var.number for var in vars_of(program.outputs)}
    used.update(var.number for note in program.notes for var in note.vars)
    count = program.count
    groups: list[list[Equation]] = []
    zeros = {
        constant.var.number
        for constant in program.constants
        if isinstance(constant.value, np.ndarray) and not constant.value.any()
    }
    for equation in reversed(program.equations):
        if isinstance(equation.operation, Loop):
            made = LoopProducts(equation, used, count, layouts, zeros)
            group = _shortened(made, improved)
            count = made.count
        elif isinstance(equation.operation, Branches):
            group = [_with_branches(equation, used, improved)]
        else:
            group = [equation]
        for inner in group:
            used.update(var.number for var in vars_of(inner.inputs))
        groups.append(group)
    groups.reverse()
    before = [0]
    for group in groups:
        before.append(before[-1] + len(group))
    return attrs.evolve(
        program,
        equations=tuple([equation for group in groups for equation in group]),
        notes=tuple([attrs.evolve(note, position=before[note.position]) for note in program.notes]),
        count=count,
    )


def _shortened(made: LoopProducts, improved: Improve) -> list[Equation]:
    """Return what stands in the place of a loop."""
    made.prune()
    made.loop = _improved(made.loop, improved)
    made.hoist()
    if made.loop.length is not None:
        made.products_before()
        made.sums_behind()
        made.products_behind()
        made.turn_matrices()
    made.prune()
    loop = Equation(
        made.loop,
        (*made.constants, *made.carry, *made.rows),
        {},
        (*made.last, *made.outs),
        True,
        None,
        made.equation.line,
    )
    return [*made.before, loop, *made.behind]


def _with_branches(equation: Equation, used: set[int], improved: Improve) -> Equation:
    """Return branches without the outputs and the inputs that nobody needs."""
    branches: Branches = equation.operation
    outs = [k for k, var in enumerate(equation.outputs) if var is not None and var.number in used]
    bodies = [
        body_of(body, body.inputs, [body.outputs[k] for k in outs]) for body in branches.bodies
    ]
    bodies = [_passed(body, improved) for body in bodies]
    needed = [needed_for(body, body.outputs) for body in bodies]
    kept = [
        place
        for place in range(len(equation.inputs) - 1)
        if any(
            body.inputs[place].number in found for body, found in zip(bodies, needed, strict=True)
        )
    ]
    bodies = [
        body_of(body, [body.inputs[place] for place in kept], body.outputs) for body in bodies
    ]
    return attrs.evolve(
        equation,
        operation=branches.with_bodies(bodies),
        inputs=(equation.inputs[0], *[equation.inputs[place + 1] for place in kept]),
        outputs=tuple([equation.outputs[k] for k in outs]),
    )


def _improved(loop: Loop, improved: Improve) -> Loop:
    """Return a loop of which the programs have been through the passes."""
    test = None if loop.test is None else _passed(loop.test, improved)
    return loop.with_body(_passed(loop.body, improved), test=test)


def _passed(body: Body, improved: Improve) -> Body:
    layouts = dict(body.layouts)
    return Body(improved(body.program, layouts), layouts, body.aliases)
