"""Leaves: does the same to many small arrays in one go.

An optimizer does to each leaf of the parameters what it does to the others. Where leaves are small,
that costs the calls and not the arithmetic: fourteen operations on each of fifty leaves are seven
hundred calls. So chains of elementwise operations that differ in their arrays alone become one, on
arrays in which the leaves lie one behind the other: what goes into the chain is joined, what comes
out of it is split into views.

Which chains are alike says `funcgrad.staging.passes.alike`.

The views share memory with each other's neighbours, though no element: who keeps one of them keeps
them all. That is bounded by the size of what is joined, `TOGETHER`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from funcgrad.core.primitive import Primitive
from funcgrad.staging.equations import Equation, Var, vars_of
from funcgrad.staging.passes.alike import Chain, Finder
from funcgrad.staging.passes.rewriting import Layouts, Writing, with_inputs

if TYPE_CHECKING:
    from funcgrad.staging.passes.buffers import Plan
    from funcgrad.staging.program import Program

__all__ = ["JOIN", "SPLIT", "Joins", "with_leaves"]


def join_leaves(*pieces: Any, orders: tuple[str, ...]) -> Any:
    """Return the elements of arrays one after another, each in its order in memory."""
    turned = [x.T if order == "F" else x for x, order in zip(pieces, orders, strict=True)]
    return np.concatenate(turned, None)


def split_leaves(flat: Any, *, shapes: tuple[tuple[int, ...], ...], orders: tuple[str, ...]) -> Any:
    """Return arrays of these shapes, whose elements lie one after another in `flat`."""
    made, stop = [], 0
    for shape, order in zip(shapes, orders, strict=True):
        start, stop = stop, stop + math.prod(shape)
        made.append(flat[start:stop].reshape(shape, order=order))
    return tuple(made)


# They stand in no program that transforms see.
JOIN = Primitive(join_leaves, name="join_leaves")
SPLIT = Primitive(split_leaves, name="split_leaves", may_alias=True)


def with_leaves(
    program: Program, layouts: Layouts, takes_out: Callable[[Equation], bool]
) -> Program:
    """Return a program in which chains that many small arrays go through are one.

    Parameters
    ----------
    program : Program
    layouts : dict
        How arrays lie in memory: see `funcgrad.staging.strict`. Those of new ones are noted.
    takes_out : callable
        Tells of an equation whether its function can write into a given array: such results are
        joined where they are computed.
    """
    finder = Finder(program, layouts, takes_out)
    groups = finder.find()
    return _Batching(program, layouts, finder, groups).batched() if groups else program


class _Group:
    """Chains that become one."""

    __slots__ = ("chains",)

    def __init__(self, chains: list[Chain]):
        self.chains = chains


class _Batching(Writing):
    """Writes a program in which groups of chains are one each."""

    def __init__(
        self, program: Program, layouts: Layouts, finder: Finder, groups: list[list[Chain]]
    ):
        super().__init__(program, layouts)
        self.finder = finder
        # Which group an equation is in, by the number of its result; groups by their last equation.
        self.groups: dict[int, _Group] = {}
        self.ends: dict[int, _Group] = {}
        # Arrays that are joined already: by the numbers of the pieces.
        self.joined: dict[tuple[int, ...], Var] = {}
        for chains in groups:
            group = _Group(chains)
            for chain in chains:
                self.groups.update((_number(equation), group) for equation in chain.equations)
            self.ends[_number(chains[-1].equations[-1])] = group

    def batched(self) -> Program:
        """Return the program; a group stands where its last equation did, or before its use."""
        program = self.program
        positions: dict[int, int] = {}
        notes = {note.position for note in program.notes}
        waiting = {
            out.number: equation
            for equation in program.equations
            for out in equation.outputs
            if out is not None
        }
        done: set[int] = set()  # identities of equations and groups
        for position, equation in enumerate(program.equations):
            if position in notes:
                positions[position] = len(self.equations)
            group = self._group_of(equation)
            if group is None:
                self._settle(equation, waiting, done)
            elif self.ends.get(_number(equation)) is group:
                self._settle(group, waiting, done)
        positions[len(program.equations)] = len(self.equations)
        self._forget_unused()
        return self.program_now(positions)

    def _forget_unused(self) -> None:
        """Leave out what is split only to be joined again."""
        used = {var.number for equation in self.equations for var in vars_of(equation.inputs)}
        used.update(var.number for var in vars_of(self.program.outputs))
        used.update(var.number for note in self.program.notes for var in note.vars)
        for place, equation in enumerate(self.equations):
            if equation.operation is SPLIT:
                outs = [v if v is not None and v.number in used else None for v in equation.outputs]
                self.equations[place] = attrs.evolve(equation, outputs=tuple(outs))

    def _group_of(self, equation: Equation) -> _Group | None:
        out = equation.outputs[0] if equation.outputs else None
        return None if out is None else self.groups.get(out.number)

    def _settle(
        self, unit: Equation | _Group, waiting: dict[int, Equation], done: set[int]
    ) -> None:
        """Write an equation or a group, and before it what it needs."""
        stack: list[tuple[Any, bool]] = [(unit, False)]
        while stack:
            unit, is_ready = stack.pop()
            if id(unit) in done:
                continue
            if is_ready:
                done.add(id(unit))
                if isinstance(unit, _Group):
                    self._write(unit)
                else:
                    self.equations.append(unit)
                continue
            stack.append((unit, True))
            for var in self._needs(unit):
                producer = waiting.get(var.number)
                if producer is not None:
                    other = self._group_of(producer) or producer
                    if other is not unit and id(other) not in done:
                        stack.append((other, False))

    def _needs(self, unit: Equation | _Group) -> Iterator[Var]:
        if isinstance(unit, Equation):
            yield from vars_of(unit.inputs)
            return
        for chain in unit.chains:
            for equation in chain.equations:
                yield from vars_of(equation.inputs)

    def _write(self, group: _Group) -> None:
        """Write the chains of a group as one."""
        chains = group.chains
        first = chains[0]
        line = first.equations[0].line
        flat: dict[int, Var] = {}
        for pieces in zip(*[chain.inputs for chain in chains], strict=True):
            key = tuple([piece.number for piece in pieces])
            if key not in self.joined:
                made = self.joined[key] = self._flat(chains, first_of=pieces[0])
                orders = tuple([chain.order for chain in chains])
                self.equations.append(
                    Equation(JOIN, tuple(pieces), {"orders": orders}, (made,), False, None, line)
                )
            flat[pieces[0].number] = self.joined[key]
        used = self.finder.used_outside(chains)
        for place, rows in enumerate(zip(*[chain.equations for chain in chains], strict=True)):
            equation = rows[0]
            (out,) = equation.outputs
            assert out is not None
            made = flat[out.number] = self._flat(chains, first_of=out)
            inputs = tuple(
                [
                    flat[atom.number] if type(atom) is Var and atom.shape else atom
                    for atom in equation.inputs
                ]
            )
            whole = with_inputs(equation, inputs)
            self.equations.append(attrs.evolve(whole, outputs=(made,)))
            self.joined[tuple([_number(row) for row in rows])] = made
            wanted = [place in places for places in used]
            if any(wanted):
                outs = tuple(
                    [
                        row.outputs[0] if want else None
                        for row, want in zip(rows, wanted, strict=True)
                    ]
                )
                params = {
                    "shapes": tuple([chain.shape for chain in chains]),
                    "orders": tuple([chain.order for chain in chains]),
                }
                self.equations.append(Equation(SPLIT, (made,), params, outs, True, None, line))

    def _flat(self, chains: list[Chain], first_of: Var) -> Var:
        size = sum(math.prod(chain.shape) for chain in chains)
        return self.new((size,), first_of.dtype)


def _number(equation: Equation) -> int:
    (out,) = equation.outputs
    assert out is not None
    return out.number


def _places_of(shapes: Sequence[tuple[int, ...]]) -> list[tuple[int, int]]:
    """Return where arrays that lie one after another start and stop."""
    stops = list(itertools.accumulate(map(math.prod, shapes)))
    return list(zip([0, *stops[:-1]], stops, strict=True))


class Joins:
    """Arrays that are joined of others, some of which are written where they come to lie.

    Attributes
    ----------
    part_of : dict
        Variable number -> what it is a part of, and where it starts.
    parts : dict
        Number of what is joined -> (part, order, start, whether it is written there).
    """

    def __init__(
        self,
        program: Program,
        takes_out: Callable[[Equation], bool],
        layouts: Mapping[int, str],
        owners: dict[int, frozenset[int]],
        returned: set[int],
        plan: Plan,
    ):
        self.part_of: dict[int, tuple[Var, int]] = {}
        self.parts: dict[int, list[tuple[Var, str, int, bool]]] = {}
        joins = [equation for equation in program.equations if equation.operation is JOIN]
        if not joins:
            return
        free = {
            out.number
            for equation in program.equations
            for out in equation.outputs
            if out is not None
            and out.number not in returned
            and out.number not in owners
            and len(equation.outputs) == 1
            and takes_out(equation)
        }
        for equation in joins:
            (whole,) = equation.outputs
            assert whole is not None
            parts: list[Any] = list(vars_of(equation.inputs))
            places = _places_of([part.shape for part in parts])
            rows = []
            seen: set[int] = set()
            for part, (start, _), order in zip(
                parts, places, equation.params["orders"], strict=True
            ):
                is_there = part.number in free and layouts.get(part.number) == order
                rows.append((part, order, start, is_there and part.number not in seen))
                seen.add(part.number)
            if 2 * sum(is_there for _, _, _, is_there in rows) < len(rows):
                continue  # one call that copies all costs less than some that copy a few
            self.parts[whole.number] = rows
            if all(is_there for _, _, _, is_there in rows):
                plan.wholes[whole.number] = [part.number for part, _, _, _ in rows]
            for part, _, start, is_there in rows:
                if is_there:
                    free.discard(part.number)
                    self.part_of[part.number] = (whole, start)
                    owners[part.number] = frozenset({whole.number})
        for number, own in owners.items():  # views of parts are views of the whole
            if not own.isdisjoint(self.part_of):
                wholes = {self.part_of[n][0].number for n in own if n in self.part_of}
                owners[number] = own.difference(self.part_of) | wholes
