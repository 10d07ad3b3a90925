"""Branches as operations: one equation of a program for a ``cond`` or a ``switch``.

The operation holds the programs of all branches, of which one is run. Its rules are branches of the
derivatives. The forward pass returns what the pullback of the branch that is taken needs, and zeros
in the place of what those of others would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from funcgrad.core.batch import full_batch
from funcgrad.core.level import Trace, TracerBase, is_batched, looked_at
from funcgrad.core.tracer import Tracer, unwrap
from funcgrad.core.zero import dtype_of, shape_of, spread
from funcgrad.staging.bodies import Body, BodyTrace, Interpreter, Unstructured, example_of
from funcgrad.staging.deriving import (
    as_number,
    cotangents,
    evaluated,
    full_tangents,
    if_finite,
    one_like,
    pushed_through,
    record,
    taped_at,
    zero_of,
)
from funcgrad.staging.equations import Constant, Var
from funcgrad.staging.loops import as_laid_out
from funcgrad.staging.splits import of_body, reached_from, split
from funcgrad.transforms.batching import BatchTrace
from funcgrad.transforms.calls import Rules, call, pushed

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["BranchRules", "Branches"]


class Branches:
    """The operation of an equation that runs one of several programs.

    The inputs of the equation are the number of the branch, from 0 on, or a truth value, of which
    True means the first branch; and what all branches take.

    Attributes
    ----------
    name : str
    bodies : tuple of Body
    is_truth : bool
        There are two, and a truth value says which.
    """

    may_alias = False

    def __init__(self, name: str, bodies: Sequence[Body], *, is_truth: bool):
        self.name = name
        self.bodies = tuple(bodies)
        self.is_truth = is_truth

    def with_bodies(self, bodies: Sequence[Body]) -> Branches:
        """Return branches with other programs, of which one is chosen likewise."""
        return Branches(self.name, bodies, is_truth=self.is_truth)

    @property
    def is_conditional(self) -> bool:
        """Tell whether a branch may find out that the program does not hold."""
        return any(body.is_conditional for body in self.bodies)

    def programs(self, inputs: Sequence[Any]) -> list[tuple[str, Program, list[Any]]]:
        """Return the programs within: their names, and what they are given from outside."""
        heads = ["if it holds", "if not"] if self.is_truth else map(str, range(len(self.bodies)))
        return [
            (head, body.program, list(inputs[1:]))
            for head, body in zip(heads, self.bodies, strict=True)
        ]

    def number(self, chosen: Any) -> int:
        """Return which branch is meant."""
        if self.is_truth:
            return 0 if chosen else 1
        return min(max(int(chosen), 0), len(self.bodies) - 1)

    def bind(self, *values: Any) -> tuple[Any, ...]:
        """Run the branch that is chosen."""
        if any(isinstance(value, TracerBase) for value in values):
            return tuple(apply(self, values))
        body = self.bodies[self.number(values[0])]
        with np.errstate(all="ignore"):
            return tuple(Interpreter(body.program).run(values[1:]))


def apply(branches: Branches, values: Sequence[Any]) -> list[Any]:
    """Run one of the branches, on values that may be traced."""
    body = branches.bodies[0]
    laid = [
        as_laid_out(value, var, body.layouts.get(var.number))
        for value, var in zip(values[1:], body.inputs, strict=True)
    ]
    try:
        made: list[Any] = call(BranchRules(branches), [values[0], *laid])[0]
    except Unstructured:
        if is_batched(values[0]):
            raise
        return chosen_alone(branches, [values[0], *laid])
    return made


def chosen_alone(branches: Branches, values: Sequence[Any]) -> list[Any]:
    """Run the branch that is meant, which becomes a condition of the program."""
    chosen = looked_at(values[0], "the condition of a branch")
    body = branches.bodies[branches.number(chosen)]
    return body.program.evaluate(values[1:])


class BranchRules(Rules):
    """Branches, as a function of what chooses and of what they take."""

    def __init__(self, branches: Branches):
        self.name = branches.name
        self.branches = branches
        self.operation = branches
        self.fixed = [True, *[False] * len(branches.bodies[0].inputs)]

    def run(self, leaves: list[Any]) -> tuple[list[Any], Any]:
        """Run the branch that is chosen."""
        if any(isinstance(leaf, TracerBase) for leaf in leaves):  # by what has no rule for them
            return chosen_alone(self.branches, leaves), None
        return list(self.branches.bind(*leaves)), None

    def _active(self, wanted: Sequence[bool]) -> tuple[list[int], list[bool]]:
        """Return which inputs are differentiated, and which results depend on those in a branch."""
        bodies = self.branches.bodies
        places = [
            place
            for place, (want, var) in enumerate(zip(wanted, bodies[0].inputs, strict=True))
            if want and var.dtype.kind in "fc"
        ]
        outs = [False] * len(bodies[0].outputs)
        for body in bodies:
            reached = reached_from(body.program, {body.inputs[place].number for place in places})
            for k, out in enumerate(body.outputs):
                if isinstance(out, Var) and out.number in reached and out.dtype.kind in "fc":
                    outs[k] = True
        return places, outs

    def _each(
        self,
        fun: Callable[[Body, list[Any], BodyTrace], Sequence[Any]],
        examples: Sequence[Any],
        *,
        is_split: bool = False,
    ) -> list[Body]:
        """Record something of each branch."""
        return [
            record(partial(fun, body), examples, self.name, is_split=is_split).body
            for body in self.branches.bodies
        ]

    def jvp(self, trace: Trace, leaves: list[Any], dots: list[Any]) -> Any:
        """Push tangents through the branch that is chosen."""
        places, outs = self._active([dot is not None for dot in dots[1:]])
        examples = list(map(example_of, leaves[1:]))
        count = len(examples)

        def step(body: Body, values: list[Any], own: BodyTrace) -> list[Any]:
            pushing: list[Any] = [None] * count
            for place, tangent in zip(places, values[count:], strict=True):
                pushing[place] = tangent
            made, made_dots = pushed(
                lambda inner: evaluated(body, inner), values[:count], pushing, own.origin
            )
            return [*made, *full_tangents(made, made_dots, outs)]

        bodies = self._each(step, [*examples, *[one_like(examples[place]) for place in places]])
        made = apply(
            self.branches.with_bodies(bodies),
            [*leaves, *[dots[place + 1] for place in places]],
        )
        found = iter(made[len(outs) :])
        tangents = [next(found) if is_one else None for is_one in outs]
        return (
            made[: len(outs)],
            None,
            if_finite(tangents, lambda: pushed_through(self._alone, leaves, dots, trace)),
        )

    def _alone(self, leaves: list[Any]) -> list[Any]:
        """Run the branch that is meant, operation by operation."""
        return chosen_alone(self.branches, leaves)

    def vjp(self, trace: Trace, leaves: list[Any], wanted: Sequence[bool]) -> Any:
        """Run the branch that is chosen, and return its pullback."""
        places, outs = self._active(wanted[1:])
        examples = list(map(example_of, leaves[1:]))
        bars: list[list[Var]] = []

        def step(body: Body, values: list[Any], own: BodyTrace) -> list[Any]:
            active = [k in places for k in range(len(values))]
            made, pull = taped_at(partial(evaluated, body), values, active, own)
            given, mine = cotangents(made, outs, own)
            bars.append(mine)
            pulled = pull(given)
            slopes = [
                as_number(zero_of(values[k]) if pulled[k] is None else pulled[k]) for k in places
            ]
            slopes = [spread(slope, values[k]) for slope, k in zip(slopes, places, strict=True)]
            return [*made, *slopes]

        joints = self._each(step, examples, is_split=True)
        parts = _Parts(self.branches, joints, bars, len(outs))
        made, kept = parts.early(leaves)
        kinds = [(shape_of(out), dtype_of(out)) for out in made]
        count = len(leaves)

        def pull(out_bars: list[Any]) -> list[Any]:
            given = [
                np.zeros(*kind)[()] if bar is None else bar
                for bar, kind, is_one in zip(out_bars, kinds, outs, strict=True)
                if is_one
            ]
            found: list[Any] = [None] * count
            for place, slope in zip(places, parts.late(leaves, kept, given), strict=True):
                found[place + 1] = slope
            return if_finite(
                found, lambda: list(taped_at(self._alone, leaves, wanted, trace)[1](out_bars))
            )

        return made, None, pull

    def linear(self, trace: Trace, leaves: list[Any], wanted: Sequence[bool]) -> Any:
        """Run the branch that is chosen, and return the function that pushes tangents."""
        places, outs = self._active(wanted[1:])
        examples = list(map(example_of, leaves[1:]))
        coming: list[list[Var]] = []

        def step(body: Body, values: list[Any], own: BodyTrace) -> list[Any]:
            pushing: list[Any] = [None] * len(values)
            tangents = [own.variable(one_like(example_of(values[place]))) for place in places]
            coming.append([tangent._extra for tangent in tangents])
            for place, tangent in zip(places, tangents, strict=True):
                pushing[place] = tangent
            made, made_dots = pushed(
                lambda inner: evaluated(body, inner), values, pushing, own.origin
            )
            return [*made, *full_tangents(made, made_dots, outs)]

        joints = self._each(step, examples, is_split=True)
        parts = _Parts(self.branches, joints, coming, len(outs))
        made, kept = parts.early(leaves)

        def push(dots: list[Any]) -> list[Any]:
            given = [
                zero_of(leaves[place + 1]) if dots[place + 1] is None else dots[place + 1]
                for place in places
            ]
            found = iter(parts.late(leaves, kept, given))
            tangents = [next(found) if is_one else None for is_one in outs]
            return if_finite(tangents, lambda: pushed_through(self._alone, leaves, dots, trace))

        return made, None, push

    def batch(
        self, trace: BatchTrace, leaves: list[Any], batched: Sequence[bool]
    ) -> tuple[list[Any], list[bool]]:
        """Run the branch that is chosen for all examples, which may not differ in that."""
        if batched[0]:
            raise Unstructured
        examples = list(map(example_of, leaves[1:]))
        flags = [False] * len(self.branches.bodies[0].outputs)

        def step(body: Body, values: list[Any], own: BodyTrace) -> list[Any]:
            with BatchTrace(trace.origin, trace.size) as inner:
                given = [
                    inner.variable(value) if flag else value
                    for value, flag in zip(values, batched[1:], strict=True)
                ]
                results = []
                for place, out in enumerate(evaluated(body, given)):
                    has_examples = type(out) is Tracer and out._trace is inner
                    value = out._value if has_examples else unwrap(out)
                    if has_examples:
                        flags[place] = True
                    elif flags[place]:
                        value = full_batch(value, False, trace.size)
                    results.append(value)
                return results

        self._each(step, examples)  # which shows which results have examples
        bodies = self._each(step, examples)
        return apply(self.branches.with_bodies(bodies), leaves), flags


class _Parts:
    """The early and the late part of branches: see `funcgrad.staging.splits`."""

    def __init__(
        self, branches: Branches, joints: Sequence[Body], coming: Sequence[list[Var]], count: int
    ):
        self.count = count
        splits = [
            split(body, late, body.outputs[count:])
            for body, late in zip(joints, coming, strict=True)
        ]
        kept = [(k, var) for k, made in enumerate(splits) for var in made.kept]
        early, late = [], []
        for k, (body, made, own) in enumerate(zip(joints, splits, coming, strict=True)):
            number = body.program.count
            constants: list[Constant] = []
            residuals: list[Any] = []
            arguments: list[Var] = []
            for branch, var in kept:
                if branch == k:
                    residuals.append(var)
                    arguments.append(var)
                    continue
                new = Var(number, var.shape, var.dtype, var.python)
                number += 1
                constants.append(Constant(new, _nothing_like(var)))
                residuals.append(new)
                arguments.append(attrs.evolve(new, number=number))
                number += 1
            inputs = body.inputs
            first = of_body(
                _with_constants(body, constants),
                inputs,
                made.early,
                [*body.outputs[:count], *residuals],
                count=number,
                notes=made.early_notes,
            )
            early.append(first)
            late.append(
                of_body(
                    body,
                    [*inputs, *arguments, *own],
                    made.late,
                    body.outputs[count:],
                    count=number,
                    notes=made.late_notes,
                )
            )
        self.early_branches = branches.with_bodies(early)
        self.late_branches = branches.with_bodies(late)

    def early(self, leaves: list[Any]) -> tuple[list[Any], list[Any]]:
        """Return the results, and what the late part needs."""
        made = apply(self.early_branches, leaves)
        return made[: self.count], made[self.count :]

    def late(self, leaves: list[Any], kept: list[Any], given: list[Any]) -> list[Any]:
        """Return the results of the late part."""
        return apply(self.late_branches, [*leaves, *kept, *given])


def _with_constants(body: Body, more: Sequence[Constant]) -> Body:
    program = attrs.evolve(body.program, constants=(*body.program.constants, *more))
    return attrs.evolve(body, program=program)


def _nothing_like(var: Var) -> Any:
    """Return zeros that take no memory."""
    if var.python is not None:
        return var.python(0)
    return np.broadcast_to(np.zeros((), var.dtype), var.shape) if var.shape else var.dtype.type(0)
