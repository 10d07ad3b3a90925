"""The two loops of a derivative: one that makes the steps, and one for what comes after that.

The first keeps, row by row in arrays, what the second needs of the steps. See
`funcgrad.staging.splits` for what is computed where.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from funcgrad.core.level import concrete
from funcgrad.core.primitive import UFUNCS
from funcgrad.staging.bodies import Body
from funcgrad.staging.deriving import evaluated, zero_of
from funcgrad.staging.equations import Constant, Equation, Var
from funcgrad.staging.loops import Loop
from funcgrad.staging.splits import hoisted, of_body, split, without_zeros

__all__ = ["CotangentParts", "TangentParts", "cut"]


class _Parts:
    """The two loops of a derivative: one that makes the steps, and one with what comes late.

    Parameters
    ----------
    loop : Loop
    joint : Body
        A step, of the inputs of a step of `loop`, and what is computed of `coming` besides.
    coming : list of Var
        The cotangents of the results, or the tangents of the inputs.
    leaves : list
        The inputs of the loop.
    """

    def __init__(self, loop: Loop, joint: Body, coming: list[Var], leaves: Sequence[Any]):
        self.loop = loop
        self.count = len(loop.body.outputs)
        before, body = hoisted(joint, loop.constants, coming)
        self.hoisted: list[Any] = []
        if before is not None:
            self.hoisted = evaluated(before, leaves[: loop.constants])
        self.body = body
        self.constants = loop.constants + len(self.hoisted)
        inputs = body.inputs
        # Of what comes late; what is a number or a constant, and not there, is None.
        self.results = list(body.outputs[self.count :])
        made = self.split = split(
            body,
            coming,
            self.results,
            is_repeated=any(region.around is not None for region in loop.body.program.regions),
        )
        numbers = {var.number: place for place, var in enumerate(inputs)}
        passed = [numbers[var.number] for var in made.passed]
        first, second = self.constants, self.constants + loop.carries
        third = second + loop.has_number
        self.from_constants = [place for place in passed if place < first]
        self.has_number = bool(loop.has_number) and second in passed
        self.from_rows = [place - third for place in passed if place >= third]
        # What a step is given of the carry is kept like what it computes.
        self.kept = [*made.kept, *[inputs[place] for place in passed if first <= place < second]]
        results = list(body.outputs[: self.count])
        # An output that is kept is there already.
        self.from_outs = []
        for var in self.kept:
            known = [k for k in range(loop.carries, len(results)) if results[k] is var]
            self.from_outs.append(known[0] if known else len(results))
            if not known:
                results.append(var)
        self.early_loop = loop.with_body(
            of_body(body, inputs, made.early, results, notes=made.early_notes),
            constants=self.constants,
        )

    def forward(self, leaves: list[Any]) -> tuple[list[Any], Any]:
        """Return the results, and what the other loop needs: constants and rows."""
        constants, carry, rows = self.loop.split(leaves)
        constants = [*constants, *self.hoisted]
        made = self.early_loop.apply([*constants, *carry, *rows])
        return made[: self.count], (
            [constants[place] for place in self.from_constants],
            [*[rows[place] for place in self.from_rows], *[made[k] for k in self.from_outs]],
        )

    def late_loop(
        self,
        body: Body,
        equations: Sequence[Equation],
        constants: Sequence[Var],
        carry: Sequence[Var],
        rows: Sequence[Var],
        results: Sequence[Any],
        *,
        reverse: bool,
        count: int | None = None,
    ) -> Loop:
        """Return the loop of the late part, which is given more constants, a carry, and rows."""
        inputs, made, loop = self.body.inputs, self.split, self.loop
        second = self.constants + loop.carries
        arguments = [
            *[inputs[place] for place in self.from_constants],
            *constants,
            *carry,
            *([inputs[second]] if self.has_number else []),
            *[inputs[second + loop.has_number + place] for place in self.from_rows],
            *self.kept,
            *rows,
        ]
        return Loop(
            loop.name,
            of_body(body, arguments, equations, results, count=count, notes=made.late_notes),
            constants=len(self.from_constants) + len(constants),
            carries=len(carry),
            rows=len(self.from_rows) + len(self.kept) + len(rows),
            length=loop.length,
            start=loop.start if self.has_number else None,
            reverse=reverse,
        )


class CotangentParts(_Parts):
    """A loop that makes the steps, and one that pulls cotangents back through them.

    Parameters
    ----------
    outs : list of bool
        Which results have a cotangent.
    places : tuple of list
        Which inputs of a step do, among the constants, the carry and the rows.
    slopes : list
        For each of those, None if there is no cotangent after all.
    """

    def __init__(
        self,
        loop: Loop,
        joint: Body,
        bars: list[Var],
        outs: list[bool],
        places: Any,
        slopes: list[Any],
        leaves: Sequence[Any],
    ):
        super().__init__(loop, joint, bars, leaves)
        self.places = places
        found = iter(self.results)
        atoms = [None if slope is None else next(found) for slope in slopes]
        slope_of = dict(zip([p for part in places for p in part], atoms, strict=True))
        inputs = self.body.inputs
        # Cotangents of constants are added up along the way.
        self.sums = [place for place in places[0] if slope_of[place] is not None]
        number = self.body.program.count
        totals: list[Var] = []
        added: list[Var] = []
        extra: list[Equation] = []
        for place in self.sums:
            var, slope = inputs[place], slope_of[place]
            total, result = (Var(number + i, var.shape, var.dtype, None) for i in range(2))
            number += 2
            if var.shape:
                self.body.layouts.update({total.number: "C", result.number: "C"})
            extra.append(
                Equation(UFUNCS[np.add], (total, slope), {}, (result,), False, np.add, None)
            )
            totals.append(total)
            added.append(result)
        self.row_slopes = [place for place in places[2] if slope_of[place] is not None]
        self.bars = bars
        flagged = _flagged(outs)
        carried = [bar for bar, place in zip(bars, flagged, strict=True) if place < loop.carries]
        self.carried = [*totals, *carried]
        self.slopes = [
            *added,
            *[slope_of[place] for place in places[1]],
            *[slope_of[place] for place in self.row_slopes],
        ]
        self.extra = extra
        self.number = number
        self.zeros = [zero_of(leaves[place]) for place in self.sums]
        assert loop.length is not None
        self.kinds = [
            ((loop.length, *bar.shape), bar.dtype)
            for bar, place in zip(bars, flagged, strict=True)
            if place >= loop.carries
        ]

    def _backward_loop(self, is_there: Sequence[bool]) -> tuple[Loop, bool]:
        """Return the loop for outputs of which some have no cotangent.

        And whether it is given zeros for those all the same.
        """
        stacked = self.bars[len(self.bars) - len(is_there) :]
        absent = [bar for bar, there in zip(stacked, is_there, strict=True) if not there]
        late, results, body = [*self.split.late, *self.extra], self.slopes, self.body
        number = self.number
        if absent:
            coming = [*self.bars, *self.carried]
            late, replaced = without_zeros(_extended(body, late, number), late, absent, coming)
            constants = []
            if replaced:
                results = []
                for atom in self.slopes:
                    found = replaced.get(atom.number, atom) if isinstance(atom, Var) else atom
                    if found is None:
                        found = Var(number, atom.shape, atom.dtype, None)
                        constants.append(Constant(found, np.zeros(atom.shape, atom.dtype)[()]))
                        number += 1
                    results.append(found)
                stacked = [bar for bar, there in zip(stacked, is_there, strict=True) if there]
            if constants:
                body = attrs.evolve(
                    body,
                    program=attrs.evolve(
                        body.program, constants=(*body.program.constants, *constants)
                    ),
                )
        return self.late_loop(
            body,
            late,
            [],
            self.carried,
            stacked,
            results,
            reverse=not self.loop.reverse,
            count=number,
        ), len(stacked) == len(is_there)

    def backward(self, residuals: Any, bars: list[Any]) -> list[Any]:
        """Return the cotangents of the inputs of the loop."""
        loop = self.loop
        constants, rows = residuals
        carried = len(self.places[1])
        values = [*constants, *self.zeros, *bars[:carried], *rows]
        stacked = bars[carried:]
        made_loop, takes_all = self._backward_loop([bar is not None for bar in stacked])
        if takes_all:
            stacked = [
                np.zeros(kind[0], kind[1]) if bar is None else bar
                for bar, kind in zip(stacked, self.kinds, strict=True)
            ]
        values += [
            np.copy(bar, order="C") if _is_scattered(bar) else bar
            for bar in stacked
            if bar is not None
        ]
        made = made_loop.apply(values)
        found: list[Any] = [None] * (loop.constants + loop.carries + loop.rows)
        places = [*self.sums, *self.places[1], *[p - loop.has_number for p in self.row_slopes]]
        # What was moved before the loop stands among the inputs of a step, and not of the loop.
        for place, slope in zip(places, made, strict=True):
            found[place] = slope
        return found


class TangentParts(_Parts):
    """A loop that makes the steps, and one that pushes tangents through them."""

    def __init__(
        self,
        loop: Loop,
        joint: Body,
        dots: list[Var],
        outs: list[bool],
        places: Any,
        leaves: Sequence[Any],
    ):
        super().__init__(loop, joint, dots, leaves)
        self.places = places
        self.outs = outs
        constants, carry, rows = cut(dots, [len(part) for part in places])
        self.tangent_loop = self.late_loop(
            self.body,
            self.split.late,
            constants,
            carry,
            rows,
            self.results,
            reverse=loop.reverse,
        )
        self.zeros = [
            zero_of(leaves[place - (loop.has_number if place in places[2] else 0)])
            for part in places
            for place in part
        ]

    def late(self, residuals: Any, dots: list[Any]) -> list[Any]:
        """Return the tangents of the results."""
        loop = self.loop
        constants, rows = residuals
        given = [
            dots[place - (loop.has_number if place in self.places[2] else 0)]
            for part in self.places
            for place in part
        ]
        full = [zero if dot is None else dot for dot, zero in zip(given, self.zeros, strict=True)]
        own, carry, others = cut(full, [len(part) for part in self.places])
        made = self.tangent_loop.apply([*constants, *own, *carry, *rows, *others])
        found = iter(made)
        return [next(found) if is_one else None for is_one in self.outs]


def _extended(body: Body, equations: Sequence[Equation], count: int) -> Body:
    """Return a body with other equations."""
    program = attrs.evolve(body.program, equations=tuple(equations), count=count, notes=())
    return attrs.evolve(body, program=program)


def _is_scattered(bar: Any) -> bool:
    """Tell whether an array is stretched, or in another order than that of its axes."""
    value = concrete(bar)
    return type(value) is np.ndarray and not value.flags.c_contiguous


def _flagged(flags: Sequence[bool]) -> list[int]:
    return [place for place, flag in enumerate(flags) if flag]


def cut(values: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    """Cut a list into parts of these sizes."""
    parts, start = [], 0
    for size in sizes:
        parts.append(list(values[start : start + size]))
        start += size
    return parts
