"""Splitting a body: what needs values that come late, and what can be computed before.

The body of a derivative computes a step and its pullback together, of the step's inputs and of the
cotangents, which come when all steps have been made. What does not depend on those is the forward
pass; what the rest needs of it is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from funcgrad.staging.bodies import Body
from funcgrad.staging.equations import Equation, FunctionCall, Leaf, Note, Region, Var, vars_of
from funcgrad.staging.passes.dead_code import without_dead_code
from funcgrad.staging.passes.rewriting import is_pure

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = [
    "Split",
    "depending",
    "hoisted",
    "of_body",
    "reached_from",
    "repeated_views",
    "split",
    "with_arguments",
    "without_zeros",
]


def depending(program: Program, numbers: set[int]) -> set[int]:
    """Return the numbers of the variables that are computed of some."""
    found = set(numbers)
    for equation in program.equations:
        if any(var.number in found for var in vars_of(equation.inputs)):
            found.update(var.number for var in vars_of(equation.outputs))
    return found


def reached_from(program: Program, numbers: set[int]) -> set[int]:
    """Return the numbers of the variables that may have a derivative, given those that have one.

    A function with rules of its own may give one to all that it returns, whatever it computes.
    """
    found = depending(program, numbers)
    while True:
        before = len(found)
        for region in program.regions:
            if region.redo is not None and any(v.number in found for v in vars_of(region.inputs)):
                found.update(var.number for var in vars_of(region.outputs))
        if len(found) == before:
            return found
        found = depending(program, found)


def of_body(
    body: Body,
    arguments: Sequence[Var],
    equations: Sequence[Equation],
    results: Sequence[Any],
    *,
    count: int | None = None,
    notes: Sequence[Note] = (),
    regions: Sequence[Region] = (),
) -> Body:
    """Return a body with these arguments, equations and results, of the variables of another.

    The functions with rules of their own in it are those of `regions`, whose places are among
    these equations. Without any, a derivative of the body is that of what it computes.
    """
    program = attrs.evolve(
        body.program,
        count=body.program.count if count is None else count,
        argument_names=tuple([f"x{i}" for i in range(len(arguments))]),
        arguments=tuple([Leaf(f"x{i}", var) for i, var in enumerate(arguments)]),
        equations=tuple(equations),
        results=tuple([Leaf("", atom) for atom in results]),
        notes=tuple(notes),
        regions=tuple(regions),
    )
    return Body(without_dead_code(program), body.layouts, body.aliases)


def with_arguments(body: Body, place: int, like: Sequence[Var]) -> Body:
    """Return a body with more arguments at a place, which it does not use."""
    program = body.program
    new = [Var(program.count + i, var.shape, var.dtype, var.python) for i, var in enumerate(like)]
    inputs = (*program.inputs[:place], *new, *program.inputs[place:])
    program = attrs.evolve(
        program,
        count=program.count + len(new),
        argument_names=tuple([f"x{i}" for i in range(len(inputs))]),
        arguments=tuple([Leaf(f"x{i}", var) for i, var in enumerate(inputs)]),
    )
    return attrs.evolve(body, program=program)


def hoisted(body: Body, constants: int, coming: Sequence[Var] = ()) -> tuple[Body | None, Body]:
    """Split off what is computed of the first arguments alone.

    Parameters
    ----------
    body : Body
    constants : int
        How many arguments those are.
    coming : sequence of Var
        Variables that come late, and are not among the arguments.

    Returns
    -------
    before : Body or None
        Of the constants; None if there is nothing.
    body : Body
        Its constants are followed by the results of `before`.
    """
    program = body.program
    inputs = program.inputs
    varying = depending(program, {var.number for var in (*inputs[constants:], *coming)})
    early: list[Equation] = []
    rest: list[Equation] = []
    for equation in program.equations:
        own = {var.number for var in vars_of(equation.outputs)}
        fixed = own.isdisjoint(varying) and not isinstance(equation.operation, FunctionCall)
        (early if fixed and own else rest).append(equation)
    if not early or program.notes:
        return None, body
    made = {var.number: var for equation in early for var in vars_of(equation.outputs)}
    used: dict[int, Var] = {}
    for atoms in [*[equation.inputs for equation in rest], program.outputs]:
        used.update((var.number, var) for var in vars_of(atoms) if var.number in made)
    # What only FunctionCalls that stay compute of the constants is not varying, and not made.
    needed = list(used.values())
    before = of_body(body, inputs[:constants], early, needed)
    arguments = (*inputs[:constants], *needed, *inputs[constants:])
    return before, of_body(body, arguments, rest, program.outputs)


@attrs.frozen(eq=False)
class Split:
    """A body in two parts.

    Attributes
    ----------
    early, late : list of Equation
    early_notes, late_notes : list of Note
    kept : list of Var
        What `late` needs that `early` computes, and
    passed : list of Var
        of the arguments of the body, but for those that come late.
    """

    early: list[Equation]
    late: list[Equation]
    early_notes: list[Note]
    late_notes: list[Note]
    kept: list[Var]
    passed: list[Var]


def split(
    body: Body, coming: Sequence[Var], results: Sequence[Any], *, is_repeated: bool = False
) -> Split:
    """Split a body at what depends on variables that come late.

    Parameters
    ----------
    body : Body
    coming : sequence of Var
        What comes late.
    results : sequence of Var or Literal
        What is wanted of the late part.
    is_repeated : bool
        What was computed after `coming` had come is late too: `checkpoint` computes again what it
        does not keep.
    """
    program = body.program
    first = min([var.number for var in coming], default=0) if is_repeated else program.count
    depends = depending(program, {var.number for var in coming})
    early: list[Equation] = []
    late: list[Equation] = []
    ahead = [0]  # how many are early before each position
    for equation in program.equations:
        is_late = any(var.number in depends for var in vars_of(equation.inputs)) or any(
            var.number > first for var in vars_of(equation.outputs)
        )
        (late if is_late else early).append(equation)
        ahead.append(len(early))
    leaves = [Leaf("", atom) for atom in results]
    views = repeated_views(early, late, leaves)
    late = [*views, *late]
    early_notes, late_notes = [], []
    for note in program.notes:
        before = ahead[note.position]
        if any(var.number in depends or var.number > first for var in note.vars):
            position = note.position - before + len(views)
            late_notes.append(attrs.evolve(note, position=position))
        else:
            early_notes.append(attrs.evolve(note, position=before))
    needed: dict[int, Var] = {}
    for atoms in [
        *[equation.inputs for equation in late],
        results,
        *[note.vars for note in late_notes],
    ]:
        needed.update((var.number, var) for var in vars_of(atoms))
    for equation in late:
        for var in vars_of(equation.outputs):
            needed.pop(var.number, None)
    for var in (*coming, *[constant.var for constant in program.constants]):
        needed.pop(var.number, None)
    arguments = {var.number for var in program.inputs}
    return Split(
        early,
        late,
        early_notes,
        late_notes,
        [var for number, var in needed.items() if number not in arguments],
        [var for number, var in needed.items() if number in arguments],
    )


def without_zeros(
    body: Body, equations: Sequence[Equation], zeros: Sequence[Var], coming: Sequence[Var]
) -> tuple[list[Equation], dict[int, Any]]:
    """Leave out what is computed of zeros, in equations that are linear in what comes late.

    Parameters
    ----------
    body : Body
    equations : sequence of Equation
        Some of its.
    zeros : sequence of Var
        Those of what comes late that are zero.
    coming : sequence of Var

    Returns
    -------
    equations : list of Equation
    replaced : dict
        By number, what stands for a variable; None for one that is zero.
    """
    depends = depending(body.program, {var.number for var in coming})
    found: dict[int, Any] = {var.number: None for var in zeros}
    kept = []
    for equation in equations:
        late = [var for var in vars_of(equation.inputs) if var.number in depends]
        nothing = [found.get(var.number, var) is None for var in late]
        if not any(nothing):
            inputs = [
                found.get(atom.number, atom) if isinstance(atom, Var) else atom
                for atom in equation.inputs
            ]
            kept.append(attrs.evolve(equation, inputs=tuple(inputs)))
            continue
        (out, *more) = equation.outputs
        if all(nothing) and out is not None and out.dtype.kind in "fc":
            found.update((var.number, None) for var in vars_of(equation.outputs))
            continue
        other = [var for var, is_zero in zip(late, nothing, strict=True) if not is_zero]
        if equation.name != "add" or more or len(other) != 1 or out is None:
            return list(equations), {}
        (var,) = other
        same = found.get(var.number, var)
        if same.shape != out.shape or same.dtype != out.dtype:
            return list(equations), {}
        found[out.number] = same
    return kept, found


# Operations that take no time, so that their operand is handed over and not their result.
_VIEWS = frozenset({"broadcast_to", "expand_dims", "reshape", "squeeze", "transpose", "view"})


def repeated_views(
    forward: Sequence[Equation], backward: Sequence[Equation], slopes: Sequence[Leaf]
) -> list[Equation]:
    """Return the equations of the forward pass that the backward pass repeats."""
    needed = {var.number for equation in backward for var in vars_of(equation.inputs)}
    needed.update(var.number for var in vars_of(leaf.atom for leaf in slopes))
    found = []
    for equation in reversed(forward):
        if (
            equation.name in _VIEWS
            and is_pure(equation.operation)
            and any(var.number in needed for var in vars_of(equation.outputs))
        ):
            found.append(equation)
            needed.update(var.number for var in vars_of(equation.inputs))
    return found[::-1]
