"""One loop of a program on its way to another form: what is left out, and moved before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from funcgrad.core.primitive import DECLARED
from funcgrad.staging.bodies import Body
from funcgrad.staging.equations import Equation, Var, vars_of
from funcgrad.staging.loops import Loop
from funcgrad.staging.passes.rewriting import Layouts
from funcgrad.staging.splits import hoisted, of_body

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["LoopRewriting", "body_of", "needed_for"]


class LoopRewriting:
    """One loop of a program, on the way to another form."""

    def __init__(
        self, equation: Equation, used: set[int], count: int, layouts: Layouts, zeros: set[int]
    ):
        self.equation = equation
        self.loop: Loop = equation.operation
        self.layouts = layouts
        self.zeros = zeros
        self.count = count
        self.constants, self.carry, self.rows = self.loop.split(equation.inputs)
        outputs: Any = equation.outputs
        self.last: list[Var] = list(outputs[: self.loop.carries])
        self.outs: list[Var] = list(outputs[self.loop.carries :])
        self.used = used
        self.before: list[Equation] = []
        self.behind: list[Equation] = []

    # What is wanted

    def prune(self) -> None:
        """Leave out outputs, what is carried, and inputs that nobody needs."""
        loop = self.loop
        program = loop.body.program
        count = loop.carries
        used = self.used | {var.number for e in self.behind for var in vars_of(e.inputs)}
        results = program.outputs
        outs = [k for k, var in enumerate(self.outs) if var.number in used]
        inputs = program.inputs
        first = loop.constants
        carried = inputs[first : first + count]
        wanted = {k for k, var in enumerate(self.last) if var.number in used}
        if loop.test is not None:
            needed = needed_for(loop.test, loop.test.program.outputs)
            tested = loop.test.inputs[first:]
            wanted |= {k for k, var in enumerate(tested) if var.number in needed}
        while True:
            roots = [*[results[k] for k in wanted], *[results[count + k] for k in outs]]
            found = needed_for(loop.body, roots)
            more = wanted | {k for k, var in enumerate(carried) if var.number in found}
            if more == wanted:
                break
            wanted = more
        keep = sorted(wanted)
        if len(keep) < count or len(outs) < len(self.outs):
            self.last = [self.last[k] for k in keep]
            self.carry = [self.carry[k] for k in keep]
            self.outs = [self.outs[k] for k in outs]
            kept = [carried[k] for k in keep]
            arguments = [*inputs[:first], *kept, *inputs[first + count :]]
            body = body_of(
                loop.body,
                arguments,
                [*[results[k] for k in keep], *[results[count + k] for k in outs]],
            )
            test = loop.test
            if test is not None:
                tests = test.inputs
                test = body_of(
                    test,
                    [*tests[:first], *[tests[first + k] for k in keep]],
                    test.program.outputs,
                )
            self.loop = loop.with_body(body, carries=len(keep), test=test)
        self._prune_inputs()

    def _prune_inputs(self) -> None:
        loop = self.loop
        found = needed_for(loop.body, loop.body.program.outputs)
        inputs = loop.body.inputs
        first = loop.constants
        of_test: set[int] = set()
        tests: Sequence[Var] = ()
        if loop.test is not None:
            of_test = needed_for(loop.test, loop.test.program.outputs)
            tests = loop.test.inputs
        constants = [
            k
            for k in range(first)
            if inputs[k].number in found or (tests and tests[k].number in of_test)
        ]
        second = first + loop.carries
        has_number = loop.has_number and inputs[second].number in found
        third = second + loop.has_number
        rows = [k for k in range(loop.rows) if inputs[third + k].number in found]
        if (
            len(constants) == first
            and len(rows) == loop.rows
            and bool(has_number) == bool(loop.has_number)
        ):
            return
        arguments = [
            *[inputs[k] for k in constants],
            *inputs[first:second],
            *([inputs[second]] if has_number else []),
            *[inputs[third + k] for k in rows],
        ]
        test = loop.test
        if test is not None:
            test = body_of(
                test, [*[tests[k] for k in constants], *tests[first:]], test.program.outputs
            )
        self.constants = [self.constants[k] for k in constants]
        self.rows = [self.rows[k] for k in rows]
        self.loop = loop.with_body(
            body_of(loop.body, arguments, loop.body.program.outputs),
            constants=len(constants),
            rows=len(rows),
            start=loop.start if has_number else None,
            test=test,
        )

    # What is computed outside

    def new(self, shape: tuple[int, ...], dtype: Any, layout: str | None = "C") -> Var:
        """Return a new variable of the program."""
        var = Var(self.count, shape, dtype, None)
        self.count += 1
        if layout is not None and shape:
            self.layouts[var.number] = layout
        return var

    def add(self, where: list[Equation], name: str, inputs: Any, out: Var, **params: Any) -> Var:
        """Add an equation before the loop or behind it."""
        where.append(
            Equation(DECLARED[name], tuple(inputs), params, (out,), False, None, self.equation.line)
        )
        return out

    def hoist(self) -> None:
        """Compute before the loop what depends on constants alone."""
        loop = self.loop
        if loop.test is not None:
            return
        before, body = hoisted(loop.body, loop.constants)
        if before is None:
            return
        known: dict[int, Any] = {
            var.number: atom for var, atom in zip(before.inputs, self.constants, strict=True)
        }
        own = {constant.var.number: constant for constant in before.program.constants}
        for equation in before.program.equations:
            if any(var.number in own for var in vars_of(equation.inputs)):
                return  # constants of its own: left where it is
        for equation in before.program.equations:
            outs: list[Var | None] = []
            for var in equation.outputs:
                if var is None:
                    outs.append(None)
                    continue
                new = self.new(var.shape, var.dtype, loop.body.layouts.get(var.number))
                new = attrs.evolve(new, python=var.python)
                known[var.number] = new
                outs.append(new)
            inputs = [
                known[atom.number] if isinstance(atom, Var) else atom for atom in equation.inputs
            ]
            self.before.append(attrs.evolve(equation, inputs=tuple(inputs), outputs=tuple(outs)))
        more = [known[atom.number] for atom in before.outputs]
        self.constants = [*self.constants, *more]
        self.loop = loop.with_body(body, constants=len(self.constants))


def body_of(
    body: Body,
    arguments: Sequence[Var],
    results: Sequence[Any],
    equations: Sequence[Equation] | None = None,
) -> Body:
    """Return a body with other arguments and results, and without some of its equations."""
    program = body.program
    return of_body(
        body,
        arguments,
        program.equations if equations is None else equations,
        results,
        notes=program.notes if equations is None else _moved(program, equations),
    )


def _moved(program: Program, kept: Sequence[Equation]) -> list[Any]:
    """Return the notes of a program of which some equations are left."""
    places = {id(equation) for equation in kept}
    before = [0]
    for equation in program.equations:
        before.append(before[-1] + (id(equation) in places))
    return [attrs.evolve(note, position=before[note.position]) for note in program.notes]


def needed_for(body: Body, roots: Sequence[Any]) -> set[int]:
    """Return the numbers of the variables that some are computed of."""
    found = {var.number for var in vars_of(roots)}
    found.update(
        var.number for note in body.program.notes if not note.is_of_finite for var in note.vars
    )
    for equation in reversed(body.program.equations):
        is_needed = getattr(equation.operation, "is_conditional", False)
        if is_needed or any(var.number in found for var in vars_of(equation.outputs)):
            found.update(var.number for var in vars_of(equation.inputs))
    return found
