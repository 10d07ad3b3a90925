"""The rules of loops: their derivatives, and loops of many examples, are loops again.

- `jvp`: the carry and the rows have their tangents beside them.
- `vjp`: a loop that makes the steps and keeps what their pullbacks need, row by row in arrays, and
  a loop over those arrays, from the last step to the first, that carries the cotangent of the carry
  and adds up those of the constants.
- `linear`: a loop that keeps what pushing tangents needs, and a loop that pushes them.
- `vmap`: the loop of a step on all examples.

Each is recorded from the program of a step, on examples of its inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from funcgrad.core.batch import full_batch
from funcgrad.core.level import Trace, TracerBase, looked_at
from funcgrad.core.tracer import Tracer, unwrap
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.staging.bodies import Body, BodyTrace, Unstructured, example_of
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
from funcgrad.staging.equations import Var
from funcgrad.staging.loop_parts import CotangentParts, TangentParts, cut
from funcgrad.staging.loops import Loop, as_laid_out, unrolled
from funcgrad.staging.splits import reached_from, with_arguments
from funcgrad.transforms.batching import BatchTrace
from funcgrad.transforms.calls import Rules, call, pushed

__all__ = ["LoopRules", "apply", "laid_out"]


def apply(loop: Loop, values: Sequence[Any]) -> list[Any]:
    """Make a loop, on values that may be traced."""
    try:
        return call(LoopRules(loop), laid_out(loop, values))[0]
    except Unstructured:
        return unrolled(loop, values)


Loop.on_traced = apply


def laid_out(loop: Loop, values: Sequence[Any]) -> list[Any]:
    """Return values as the steps of a loop expect them: what they carry, and the constants."""
    inputs, layouts = loop.body.inputs, loop.body.layouts
    count = loop.constants + loop.carries
    made = [
        as_laid_out(value, var, layouts.get(var.number))
        for value, var in zip(values[:count], inputs, strict=False)
    ]
    return [*made, *values[count:]]


def _is_active(var: Any) -> bool:
    return isinstance(var, Var) and var.dtype.kind in "fc"


class LoopRules(Rules):
    """A loop, as a function of its inputs."""

    def __init__(self, loop: Loop):
        self.name = loop.name
        self.loop = loop
        self.operation = loop
        self.fixed = [False] * (loop.constants + loop.carries + loop.rows)

    def run(self, leaves: list[Any]) -> tuple[list[Any], Any]:
        """Make all the steps."""
        if any(isinstance(leaf, TracerBase) for leaf in leaves):  # by what has no rule for loops
            return unrolled(self.loop, leaves), None
        return list(self.loop.bind(*leaves)), None

    # What depends on what

    def _examples(self, leaves: Sequence[Any]) -> list[Any]:
        """Return an example of what a step is given."""
        loop = self.loop
        constants, carry, rows = loop.split([example_of(leaf) for leaf in leaves])
        if loop.length == 0:
            raise Unstructured
        place = loop.steps[0] if loop.length else 0
        return loop.given(constants, carry, rows, place)

    def _of_step(self, flags: Sequence[Any], number: Any) -> list[Any]:
        """Return what is given for each input of the loop for each input of a step."""
        loop = self.loop
        constants, carry, rows = loop.split(flags)
        return [*constants, *carry, *([number] if loop.has_number else []), *rows]

    def _spread(self, wanted: Sequence[bool]) -> tuple[list[bool], list[bool]]:
        """Return of which inputs and outputs a derivative may be, given those of the inputs.

        What is carried depends on the carry of the step before.
        """
        loop = self.loop
        inputs, outputs = loop.body.inputs, loop.body.outputs
        active = [
            want and _is_active(var)
            for want, var in zip(self._of_step(wanted, False), inputs, strict=True)
        ]
        first = loop.constants
        while True:
            numbers = {var.number for var, is_one in zip(inputs, active, strict=True) if is_one}
            reached = reached_from(loop.body.program, numbers)
            outs = [_is_active(out) and out.number in reached for out in outputs]
            more = [
                place for place in range(loop.carries) if outs[place] and not active[first + place]
            ]
            if not more:
                break
            for place in more:
                if not _is_active(inputs[first + place]):
                    raise Unstructured
                active[first + place] = True
        # What keeps its cotangent must be carried along, even if it is not reached.
        for place in range(loop.carries):
            outs[place] = outs[place] or active[first + place]
        return active, outs

    def _places(self, flags: Sequence[bool]) -> tuple[list[int], list[int], list[int]]:
        """Return which inputs of a step are flagged, among the constants, the carry, the rows."""
        first = self.loop.constants
        second = first + self.loop.carries
        places = [place for place, flag in enumerate(flags) if flag]
        return (
            [place for place in places if place < first],
            [place for place in places if first <= place < second],
            [place for place in places if place >= second],
        )

    # Derivatives

    def jvp(self, trace: Trace, leaves: list[Any], dots: list[Any]) -> Any:
        """Push tangents through all the steps."""
        loop = self.loop
        active, outs = self._spread([dot is not None for dot in dots])
        examples = self._examples(leaves)
        places = self._places(active)
        more = [[one_like(examples[place]) for place in part] for part in places]
        constants, carry, rows = self._parts(examples)
        sizes = [len(part) for part in (constants, more[0], carry, more[1], rows, more[2])]

        def step(values: list[Any], own: BodyTrace) -> list[Any]:
            parts = cut(values, sizes)
            given = [*parts[0], *parts[2], *parts[4]]
            pushing: list[Any] = [None] * len(given)
            for part, tangents in zip(places, parts[1::2], strict=True):
                for place, tangent in zip(part, tangents, strict=True):
                    pushing[place] = tangent
            made, made_dots = pushed(
                lambda inner: evaluated(loop.body, inner), given, pushing, own.origin
            )
            found = full_tangents(made, made_dots, outs)
            count = sum(outs[: loop.carries])
            k = loop.carries
            return [*made[:k], *found[:count], *made[k:], *found[count:]]

        given = [*constants, *more[0], *carry, *more[1], *rows, *more[2]]
        body = record(step, given, loop.name).body
        given_dots = self._of_step(
            [zero_of(leaf) if dot is None else dot for leaf, dot in zip(leaves, dots, strict=True)],
            None,
        )
        tangents = [[given_dots[place] for place in part] for part in places]
        doubled = loop.with_body(
            body,
            constants=loop.constants + len(tangents[0]),
            carries=loop.carries + len(tangents[1]),
            rows=loop.rows + len(tangents[2]),
            test=None if loop.test is None else _longer(loop, body, len(tangents[0])),
        )
        constants, carry, rows = loop.split(leaves)
        values = [*constants, *tangents[0], *carry, *tangents[1], *rows, *tangents[2]]
        made = doubled.apply(values)
        count, k = len(tangents[1]), loop.carries
        primal = [*made[:k], *made[k + count : k + count + loop.outs]]
        found = iter([*made[k : k + count], *made[k + count + loop.outs :]])
        tangents_made = [next(found) if is_one else None for is_one in outs]
        return (
            primal,
            None,
            if_finite(tangents_made, lambda: pushed_through(self._one_by_one, leaves, dots, trace)),
        )

    def _one_by_one(self, leaves: list[Any]) -> list[Any]:
        """Make one step after the other, operation by operation."""
        return unrolled(self.loop, leaves)

    def vjp(self, trace: Trace, leaves: list[Any], wanted: Sequence[bool]) -> Any:
        """Make all the steps, and return the pullback of them."""
        loop = self.loop
        if loop.test is not None:
            return self._counted(leaves).vjp(trace, leaves, wanted)
        active, outs = self._spread(wanted)
        examples = self._examples(leaves)
        places = self._places(active)
        all_places = [place for part in places for place in part]
        bars: list[Var] = []
        slopes: list[Any] = []

        def step(values: list[Any], own: BodyTrace) -> list[Any]:
            made, pull = taped_at(partial(evaluated, loop.body), values, active, own)
            given, mine = cotangents(made, outs, own)
            bars.extend(mine)
            pulled = pull(given)
            for place in all_places:
                slope = pulled[place]
                if slope is None and place in places[1]:
                    slope = zero_of(values[place])
                slopes.append(None if slope is None else as_number(slope))
            return [*made, *[slope for slope in slopes if slope is not None]]

        joint = record(step, examples, loop.name, is_split=True).body
        parts = CotangentParts(loop, joint, bars, outs, places, slopes, leaves)
        made, residuals = parts.forward(leaves)
        kinds = [(shape_of(out), dtype_of(out)) for out in made]

        def pull(out_bars: list[Any]) -> list[Any]:
            given = [
                np.zeros(*kind)[()] if bar is None and place < loop.carries else bar
                for place, (bar, kind) in enumerate(zip(out_bars, kinds, strict=True))
                if outs[place]
            ]
            return if_finite(
                parts.backward(residuals, given),
                lambda: list(taped_at(self._one_by_one, leaves, wanted, trace)[1](out_bars)),
            )

        return made, None, pull

    def linear(self, trace: Trace, leaves: list[Any], wanted: Sequence[bool]) -> Any:
        """Make all the steps, and return the function that pushes tangents."""
        loop = self.loop
        if loop.test is not None:
            return self._counted(leaves).linear(trace, leaves, wanted)
        active, outs = self._spread(wanted)
        examples = self._examples(leaves)
        places = self._places(active)
        dots: list[Var] = []

        def step(values: list[Any], own: BodyTrace) -> list[Any]:
            pushing: list[Any] = [None] * len(values)
            for place in (place for part in places for place in part):
                tangent = own.variable(one_like(values[place]._value))
                dots.append(tangent._extra)
                pushing[place] = tangent
            made, made_dots = pushed(
                lambda inner: evaluated(loop.body, inner), values, pushing, own.origin
            )
            return [*made, *full_tangents(made, made_dots, outs)]

        joint = record(step, examples, loop.name, is_split=True).body
        parts = TangentParts(loop, joint, dots, outs, places, leaves)
        made, residuals = parts.forward(leaves)

        def push(out_dots: list[Any]) -> list[Any]:
            return if_finite(
                parts.late(residuals, out_dots),
                lambda: pushed_through(self._one_by_one, leaves, out_dots, trace),
            )

        return made, None, push

    def _counted(self, leaves: list[Any]) -> LoopRules:
        """Return the rules of a loop with a test as one of as many steps as it makes here.

        How many those are becomes a condition of the program.
        """
        loop = self.loop
        assert loop.test is not None
        first = loop.constants

        def step(values: list[Any], own: BodyTrace) -> list[Any]:
            count = values[first]
            return [count + 1, *evaluated(loop.body, [*values[:first], *values[first + 1 :]])]

        constants, carry, _ = loop.split([example_of(leaf) for leaf in leaves])
        body = record(step, [*constants, 0, *carry], loop.name).body
        test = with_arguments(loop.test, first, body.inputs[first : first + 1])
        counting = loop.with_body(body, carries=loop.carries + 1, test=test)
        found = counting.apply([*leaves[:first], 0, *leaves[first:]])
        count = int(looked_at(found[0], "the number of steps of a loop"))
        if not count:
            raise Unstructured
        return LoopRules(loop.with_body(loop.body, length=count, test=None))

    # Examples

    def batch(
        self, trace: BatchTrace, leaves: list[Any], batched: Sequence[bool]
    ) -> tuple[list[Any], list[bool]]:
        """Make all the steps for all examples at once."""
        loop = self.loop
        constants, carry, rows = loop.split(leaves)
        flags, carried, of_rows = loop.split(batched)
        rows = [
            np.copy(np.swapaxes(row, 0, 1)) if flag else row
            for row, flag in zip(rows, of_rows, strict=True)
        ]
        while True:
            carry = [
                full_batch(value, False, trace.size) if flag and not before else value
                for value, flag, before in zip(carry, carried, loop.split(batched)[1], strict=True)
            ]
            given = [*constants, *carry, *rows]
            made = self._batched_body(trace, given, [*flags, *carried, *of_rows])
            body, test, outs = made
            more = [flag or before for flag, before in zip(outs, carried, strict=False)]
            if more == carried:
                break
            carry, carried = loop.split(leaves)[1], more
        changed = loop.with_body(body, test=test)
        found = changed.apply(given)
        outs[: loop.carries] = carried
        k = loop.carries
        return [
            *found[:k],
            *[
                np.swapaxes(out, 0, 1) if flag else out
                for out, flag in zip(found[k:], outs[k:], strict=True)
            ],
        ], outs

    def _batched_body(
        self, trace: BatchTrace, leaves: list[Any], batched: Sequence[bool]
    ) -> tuple[Body, Body | None, list[bool]]:
        """Return a step for all examples, the test, and which results have examples."""
        loop = self.loop
        examples = self._examples(leaves)
        flags = self._of_step(batched, False)
        found: list[bool] = []

        def step(values: list[Any], own: BodyTrace) -> list[Any]:
            with BatchTrace(trace.origin, trace.size) as inner:
                made = evaluated(loop.body, _examples_of(inner, values, flags))
                results = []
                for place, out in enumerate(made):
                    has_examples = type(out) is Tracer and out._trace is inner
                    found.append(has_examples)
                    value = out._value if has_examples else unwrap(out)
                    if place < loop.carries and flags[loop.constants + place] and not has_examples:
                        value = full_batch(value, False, trace.size)
                    results.append(value)
                return results

        body = record(step, examples, loop.name).body
        if loop.test is None:
            return body, None, found
        count = loop.constants + loop.carries

        def test(values: list[Any], own: BodyTrace) -> list[Any]:
            with BatchTrace(trace.origin, trace.size) as inner:
                (said,) = evaluated(loop.test, _examples_of(inner, values, flags[:count]))  # type: ignore[arg-type]
                if type(said) is Tracer and said._trace is inner:
                    raise Unstructured  # it differs from example to example
                return [said]

        return body, record(test, examples[:count], loop.name).body, found

    def _parts(self, values: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Return the constants, the carry, and the others of what a step is given."""
        first = self.loop.constants
        second = first + self.loop.carries
        values = list(values)
        return values[:first], values[first:second], values[second:]


def _longer(loop: Loop, body: Body, constants: int) -> Body:
    """Return the test of a loop for one with more constants and more to carry, at their ends."""
    assert loop.test is not None
    first = loop.constants
    test = with_arguments(loop.test, first, body.inputs[first : first + constants])
    count = len(test.inputs)
    return with_arguments(test, count, body.inputs[count:])


def _examples_of(trace: BatchTrace, values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [
        trace.variable(value) if flag else value for value, flag in zip(values, flags, strict=True)
    ]
