"""Loops as source: a ``for`` over the rows, with the lines of a step inside.

The memory of a step is used again in the next. What is carried goes to and fro between two arrays,
if it is computed by a function that writes where it is told to; outputs are written by such
functions right into their rows. What of the carry is computed otherwise is just given the next
name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from funcgrad.staging.bodies import Body
from funcgrad.staging.branches import Branches
from funcgrad.staging.equations import Equation, Var, vars_of
from funcgrad.staging.loops import Loop
from funcgrad.staging.passes.blocks import Block
from funcgrad.staging.passes.buffers import owners_of, volatile

if TYPE_CHECKING:
    from funcgrad.staging.backends.numpy import _Emitter

__all__ = ["BranchWriter", "LoopWriter", "fresh", "writer_of"]


def writer_of(emitter: _Emitter, equation: Equation) -> Any:
    """Return what writes an equation with programs inside; None for others."""
    if isinstance(equation.operation, Loop):
        return LoopWriter(emitter, equation)
    if isinstance(equation.operation, Branches):
        return BranchWriter(emitter, equation)
    return None


class LoopWriter:
    """Writes one loop.

    Parameters
    ----------
    emitter : _Emitter
        That of the program around.
    equation : Equation
        Of a `Loop`.
    """

    def __init__(self, emitter: _Emitter, equation: Equation):
        self.emitter = emitter
        self.equation = equation
        self.loop: Loop = equation.operation
        loop = self.loop
        constants, init, rows = loop.split(equation.inputs)
        self.init, self.rows = init, rows
        outputs: Any = equation.outputs
        self.outs: list[Var] = list(outputs[loop.carries :])
        body = loop.body
        inputs = body.inputs
        given, carry, others = loop.split(inputs)
        names = {
            var.number: emitter.writer.atom(atom)
            for var, atom in zip(given, constants, strict=True)
        }
        self.carry = [emitter.free("carry") for _ in carry]
        names.update((v.number, name) for v, name in zip(carry, self.carry, strict=True))
        self.number = emitter.free("step") if loop.has_number else None
        if self.number is not None:
            names[others[0].number] = self.number
            others = others[1:]
        self.row_names = [emitter.free("row") for _ in others]
        names.update((v.number, name) for v, name in zip(others, self.row_names, strict=True))
        self.body = emitter.within(body, names)
        self.test = None
        if loop.test is not None:
            own = dict(
                zip(
                    [var.number for var in loop.test.inputs],
                    [*[names[var.number] for var in given], *self.carry],
                    strict=True,
                )
            )
            self.test = emitter.within(loop.test, own)
        self._plan(body)
        for var, name in zip(outputs[: loop.carries], self.carry, strict=True):
            emitter.names[var.number] = name

    def _plan(self, body: Body) -> None:
        """Decide where results are written."""
        loop, emitter = self.loop, self.emitter
        program = self.body.program
        owners = owners_of(program, body.aliases)
        taking = {
            out.number
            for equation in program.equations
            for out in self._written(equation)
            if out is not None and out.shape and out.number in body.layouts
        }
        # What lies in memory that the next step writes to.
        self.volatile = {
            var.number for equation in program.equations for var in vars_of(volatile(equation))
        }

        def owned(atom: Any) -> frozenset[int]:
            return owners.get(atom.number) or frozenset({atom.number})

        results: Sequence[Any] = program.outputs
        carried: list[Var] = list(program.inputs[loop.constants :][: loop.carries])
        self.copied = [
            isinstance(atom, Var) and not owned(atom).isdisjoint(self.volatile)
            for atom in results[: loop.carries]
        ]
        decided: set[int] = set()
        # Outputs that are written right into their rows.
        self.places = [emitter.free("out") for _ in self.outs]
        self.is_written = []
        for atom, var, name in zip(results[loop.carries :], self.outs, self.places, strict=True):
            is_written = (
                isinstance(atom, Var)
                and atom.number in taking
                and atom.number not in owners
                and atom.number not in decided
                and atom.number not in self.body.plan.places
                and body.layouts[atom.number] == "C"
                and emitter.layouts.get(var.number) == "C"
            )
            if is_written:
                decided.add(atom.number)
                self.body.targets[atom.number] = name
            self.is_written.append(is_written)
        # What is carried between two arrays; nothing else may hold one of them for longer.
        numbers = {var.number for var in carried}
        kept = any(
            isinstance(atom, Var)
            and atom not in carried[place : place + 1]
            and not owned(atom).isdisjoint(numbers)
            for place, atom in enumerate(results[: loop.carries])
        )
        self.spare: list[tuple[str, str, str] | None] = []
        for atom, var in zip(results[: loop.carries], carried, strict=True):
            order = body.layouts.get(var.number)
            is_swapped = (
                not kept
                and isinstance(atom, Var)
                and atom.number in taking
                and atom.number not in owners
                and atom.number not in decided
                and atom.number not in self.body.plan.places
                and order is not None
                and body.layouts[atom.number] == order
            )
            if not is_swapped:
                self.spare.append(None)
                continue
            assert order is not None
            spare = emitter.free("spare")
            decided.add(atom.number)
            self.body.targets[atom.number] = spare
            self.spare.append((spare, emitter.memory(var, order), emitter.memory(var, order)))

    def _written(self, equation: Equation) -> Sequence[Var | None]:
        """Return the results of an equation that are written into an array that it is given."""
        operation = equation.operation
        if isinstance(operation, Block):
            return list(operation.arrays(equation))
        if isinstance(operation, Loop):
            return equation.outputs[operation.carries :]
        return self.body.written(equation)

    def lines(self) -> Iterator[str]:
        """Write the loop."""
        emitter = self.emitter
        write = emitter.writer.atom
        for name, atom, spare in zip(self.carry, self.init, self.spare, strict=True):
            if spare is None:
                yield f"    {name} = {write(atom)}"
            else:
                other, first, second = spare
                yield f"    np.copyto({first}, {write(atom)})"
                yield f"    {name}, {other} = {first}, {second}"
        for var in self.outs:
            target = emitter.target(var) or fresh(var, emitter.layouts.get(var.number, "C"))
            yield f"    {emitter.names[var.number]} = {target}"
        yield from self._head()
        for line in self.body.equations():
            yield f"    {line}"
        yield from self._end()

    def _head(self) -> Iterator[str]:
        loop, emitter = self.loop, self.emitter
        if self.test is not None:
            yield "    while True:"
            for line in self.test.equations():
                yield f"    {line}"
            (said,) = self.test.program.outputs
            yield f"        if not {self.test.writer.atom(said)}:"
            yield "            break"
            return
        assert loop.length is not None
        back = "[::-1]" if loop.reverse else ""
        pairs = [
            (name, f"{emitter.writer.atom(row)}{back}")
            for name, row in zip(self.row_names, self.rows, strict=True)
        ]
        self.index = None
        for name, var, is_written in zip(self.places, self.outs, self.is_written, strict=True):
            if len(var.shape) > 1 or is_written:
                pairs.append((name, f"{emitter.names[var.number]}{back}"))
            elif self.index is None:
                self.index = emitter.free("i")
                pairs.append((self.index, _numbers(0, loop.length, loop.reverse)))
        if self.number is not None:
            assert loop.start is not None
            pairs.append((self.number, _numbers(loop.start, loop.length, loop.reverse)))
        if not pairs:
            pairs = [("_", _numbers(0, loop.length, False))]
        names = ", ".join(name for name, _ in pairs)
        arrays = ", ".join(array for _, array in pairs)
        yield f"    for {names} in {arrays if len(pairs) == 1 else f'zip({arrays})'}:"

    def _end(self) -> Iterator[str]:
        """Write what is done with the results of a step."""
        write = self.body.writer.atom
        results = self.body.program.outputs
        carries = self.loop.carries
        for name, var, atom, is_written in zip(
            self.places, self.outs, results[carries:], self.is_written, strict=True
        ):
            if is_written:
                continue
            if len(var.shape) > 1:
                yield f"        np.copyto({name}, {write(atom)})"
            else:
                yield f"        {self.emitter.names[var.number]}[{self.index}] = {write(atom)}"
        left, right = [], []
        for name, atom, spare, copied in zip(
            self.carry, results[:carries], self.spare, self.copied, strict=True
        ):
            if spare is not None:
                left += [name, spare[0]]
                right += [spare[0], name]
            elif write(atom) != name:
                left.append(name)
                right.append(f'{write(atom)}.copy("K")' if copied else write(atom))
        if left:
            yield f"        {', '.join(left)} = {', '.join(right)}"
        elif self.body.is_empty and all(self.is_written):
            yield "        pass"


class BranchWriter:
    """Writes an ``if`` with the programs of branches.

    Parameters
    ----------
    emitter : _Emitter
        That of the program around.
    equation : Equation
        Of `Branches`.
    """

    def __init__(self, emitter: _Emitter, equation: Equation):
        self.emitter = emitter
        self.equation = equation
        operation: Branches = equation.operation
        self.is_truth = operation.is_truth
        self.chosen, *inputs = [emitter.writer.atom(atom) for atom in equation.inputs]
        self.branches = [
            emitter.within(
                body, {var.number: name for var, name in zip(body.inputs, inputs, strict=True)}
            )
            for body in operation.bodies
        ]

    def lines(self) -> Iterator[str]:
        """Write the branches."""
        emitter, last = self.emitter, len(self.branches) - 1
        number = self.chosen
        if not self.is_truth and last > 1:
            number = emitter.free("branch")
            yield f"    {number} = {self.chosen}"
        left = [emitter.names[var.number] for var in vars_of(self.equation.outputs)]
        for place, branch in enumerate(self.branches):
            if place == last:
                yield "    else:" if last else "    if True:"
            elif self.is_truth:
                yield f"    if {number}:"
            else:
                yield f"    {'el' if place else ''}if {number} <= {place}:"
            for line in branch.equations():
                yield f"    {line}"
            if left:
                right = [branch.writer.atom(atom) for atom in branch.program.outputs]
                yield f"        {', '.join(left)} = {', '.join(right)}"
            elif branch.is_empty:
                yield "        pass"


def _numbers(start: int, length: int, reverse: bool) -> str:
    if reverse:
        return f"range({start + length - 1}, {start - 1}, -1)"
    return f"range({start}, {start + length})" if start else f"range({length})"


def fresh(var: Var, order: str) -> str:
    """Write an array like a variable, in fresh memory."""
    dtype = f"np.dtype({var.dtype.str!r})"
    if order in ("C", "F"):
        return f"np.empty({var.shape}, {dtype}, {order!r})"
    axes = [int(axis) for axis in order]
    there = tuple([var.shape[axis] for axis in axes])
    back = tuple([axes.index(axis) for axis in range(len(axes))])
    return f"np.empty({there}, {dtype}).transpose({back})"
