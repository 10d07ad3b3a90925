"""Dead code: leaves out the equations of which no result is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from funcgrad.staging.equations import Region, Var, vars_of

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["without_dead_code"]


def without_dead_code(program: Program) -> Program:
    """Return a program without the equations of which no result is used."""
    equations = program.equations
    live = {var.number for var in vars_of(program.outputs)}
    # What is not used may be as infinite as it likes.
    live.update(v.number for note in program.notes if not note.is_of_finite for v in note.vars)
    by_stop: dict[int, list[Region]] = {}
    for region in program.regions:
        by_stop.setdefault(region.stop, []).append(region)
    kept = [False] * len(equations)
    for position in range(len(equations), -1, -1):
        for region in by_stop.get(position, ()):
            if any(var.number in live for var in vars_of(region.outputs)):
                live.update(var.number for var in vars_of(region.inputs))
        if position == 0:
            break
        equation = equations[position - 1]
        # What is in a loop or a branch may say that the program does not hold for these values.
        is_needed = getattr(equation.operation, "is_conditional", False)
        if is_needed or any(out is not None and out.number in live for out in equation.outputs):
            kept[position - 1] = True
            for atom in equation.inputs:
                if type(atom) is Var:
                    live.add(atom.number)
    if all(kept) and all(constant.var.number in live for constant in program.constants):
        return program
    before = [0]  # how many are kept before each position
    for keep in kept:
        before.append(before[-1] + keep)
    return attrs.evolve(
        program,
        equations=tuple(e for e, keep in zip(equations, kept, strict=True) if keep),
        constants=tuple(c for c in program.constants if c.var.number in live),
        notes=tuple(
            attrs.evolve(note, vars=used, position=before[note.position])
            for note in program.notes
            if (used := tuple(var for var in note.vars if var.number in live))
        ),
        regions=tuple(
            attrs.evolve(region, start=before[region.start], stop=before[region.stop])
            for region in program.regions
            if before[region.start] < before[region.stop]
            and (region.redo is None or any(v.number in live for v in vars_of(region.outputs)))
        ),
    )
