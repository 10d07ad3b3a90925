"""Alike: finds chains of operations that differ in their arrays alone, and in their sizes.

Only operations are taken that IEEE 754 (or the integers) leave no choice, wherever an element
stands: so each is computed as before, to the last bit, if many are done at once
(`funcgrad.staging.passes.leaves`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from funcgrad.core.elementwise import Elementwise
from funcgrad.staging.backends.expressions import ufunc_of
from funcgrad.staging.equations import Equation, FunctionCall, Literal, Var, vars_of
from funcgrad.staging.passes.rewriting import Layouts

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["EXACT", "LARGEST", "TOGETHER", "Chain", "Finder"]

# Elements of the largest array for which a copy costs less than the calls. All together are as many
# at most: who keeps one of the results keeps the others too, so what that can cost is bounded.
LARGEST = TOGETHER = 1 << 14

# Microseconds, measured: a call on an array that fits the first cache, a piece of what is joined
# and an element of it, a view of what is split.
_CALL, _PIECE, _ELEMENT, _VIEW = 0.35, 0.12, 5e-5, 0.22
_JOINING = 0.6
# What has to be saved, for which so many equations are needed.
_WORTH = 1.0
_FEWEST = 4

# Their results follow from the operands alone. Of `maximum` the sign of a zero does not, and of
# `exp` NumPy has more than one version.
EXACT = frozenset(
    {
        "absolute",
        "add",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "ceil",
        "copysign",
        "divide",
        "equal",
        "floor",
        "greater",
        "greater_equal",
        "invert",
        "isfinite",
        "isinf",
        "isnan",
        "less",
        "less_equal",
        "logical_and",
        "logical_not",
        "logical_or",
        "multiply",
        "negative",
        "not_equal",
        "positive",
        "reciprocal",
        "rint",
        "sign",
        "signbit",
        "sqrt",
        "square",
        "subtract",
        "trunc",
    }
)


class Chain:
    """Elementwise equations on arrays of one shape and order, each using results of others."""

    __slots__ = ("equations", "inputs", "order", "shape")

    def __init__(self, shape: tuple[int, ...], order: str):
        self.shape = shape
        self.order = order
        self.equations: list[Equation] = []
        # The arrays that come from outside.
        self.inputs: list[Var] = []

    def form(self) -> tuple[Any, ...]:
        """Return what the chain does, whatever the arrays; take down the arrays."""
        own: dict[int, int] = {}
        outer: dict[int, int] = {}
        rows: list[Any] = []
        for place, equation in enumerate(self.equations):
            (out,) = equation.outputs
            assert out is not None
            row: list[Any] = [id(equation.operation), id(equation.function), out.dtype]
            for atom in equation.inputs:
                if type(atom) is Literal:
                    row += ("number", type(atom.value), repr(atom.value))
                elif not atom.shape:  # type: ignore[union-attr]
                    row += ("scalar", atom.number)  # type: ignore[union-attr]
                elif atom.number in own:  # type: ignore[union-attr]
                    row += ("own", own[atom.number])  # type: ignore[union-attr]
                else:
                    assert isinstance(atom, Var)
                    if atom.number not in outer:
                        outer[atom.number] = len(outer)
                        self.inputs.append(atom)
                    row += ("outer", outer[atom.number], atom.dtype)
            own[out.number] = place
            rows.append(tuple(row))
        return tuple(rows)


class Finder:
    """Finds the chains of a program that can be one.

    Parameters
    ----------
    program : Program
    layouts : dict
        How arrays lie in memory: see `funcgrad.staging.strict`.
    takes_out : callable
        Tells of an equation whether its function can write into a given array.
    """

    def __init__(self, program: Program, layouts: Layouts, takes_out: Callable[[Equation], bool]):
        self.program = program
        self.layouts = layouts
        self.takes_out = takes_out
        # Whether arrays of a shape are small enough.
        self.small: dict[tuple[int, ...], bool] = {}
        self._found_uses: dict[int, list[Equation | None]] | None = None

    def find(self) -> list[list[Chain]]:
        """Return the groups of chains that are to be one."""
        program, groups = self.program, []
        ends = {note.position for note in program.notes} | {len(program.equations)}
        for position, equation in enumerate(program.equations):
            if type(equation.operation) is FunctionCall:  # it may do more than compute
                ends.update((position, position + 1))
        barriers = sorted(ends)
        start = 0
        producers: dict[int, Equation] | None = None
        for stop in barriers:  # nothing is moved over a condition either
            is_long = stop - start >= _FEWEST
            chains = self._chains(program.equations[start:stop]) if is_long else []
            start = stop
            if len(chains) < 2:
                continue
            if producers is None:
                producers = {
                    out.number: equation
                    for equation in program.equations
                    for out in equation.outputs
                    if out is not None
                }
            sizes: dict[Any, list[Chain]] = {}  # only those of one length can be alike
            for level, chain in chains:
                sizes.setdefault((level, len(chain.equations)), []).append(chain)
            for some in sizes.values():
                alike: dict[Any, list[Chain]] = {}
                for chain in some if len(some) > 1 else ():
                    alike.setdefault(chain.form(), []).append(chain)
                for found in alike.values():
                    for few in _few_enough(found):
                        if len(few) > 1 and self._is_worth_it(few, producers):
                            groups.append(few)
        return groups

    def _chains(self, equations: Sequence[Equation]) -> list[tuple[int, Chain]]:
        """Return chains, with their levels: those of one level do not depend on each other."""
        level: dict[int, int] = {}  # of what is computed here
        chain_of: dict[int, Chain] = {}
        merged: dict[int, Chain] = {}  # chains that have become part of another, by identity
        levels: dict[int, int] = {}  # of chains, by identity
        chains: list[Chain] = []

        def now(chain: Chain) -> Chain:
            while id(chain) in merged:
                chain = merged[id(chain)]
            return chain

        for equation in equations:
            order = self._order(equation)
            highest = 0
            for atom in equation.inputs:
                if type(atom) is Var and atom.number in level:
                    own = level[atom.number]
                    if order is None and atom.number in chain_of:
                        own += 1
                    highest = max(highest, own)
            for out in equation.outputs:
                if out is not None:
                    level[out.number] = highest
            if order is None:
                continue
            (out,) = equation.outputs
            assert out is not None
            mine: Chain | None = None
            for atom in equation.inputs:
                if type(atom) is not Var or atom.number not in chain_of:
                    continue
                other = now(chain_of[atom.number])
                if other is mine or levels[id(other)] != highest:
                    continue
                if mine is None:
                    mine = other
                else:
                    # In the order of the program, so that they come in the same order for all.
                    merged[id(other)] = mine
                    mine.equations += other.equations
                    other.equations = []
            if mine is None:
                mine = Chain(out.shape, order)
                levels[id(mine)] = highest
                chains.append(mine)
            mine.equations.append(equation)
            chain_of[out.number] = mine
        return [(levels[id(chain)], chain) for chain in chains if chain.equations]

    def _order(self, equation: Equation) -> str | None:
        """Return the order in memory of an equation's small arrays; None if it cannot be joined."""
        operation = equation.operation
        if type(operation) is not Elementwise or operation.name not in EXACT:
            return None
        out = equation.outputs[0]
        if out is None:
            return None
        shape, layouts = out.shape, self.layouts
        if shape not in self.small:
            self.small[shape] = bool(shape) and 0 < math.prod(shape) <= LARGEST
        order = layouts.get(out.number)
        if not self.small[shape] or (order != "C" and order != "F"):
            return None
        if out.dtype.kind not in "fiub" or ufunc_of(equation) is None:
            return None
        for atom in equation.inputs:
            if type(atom) is Var and atom.shape:
                if atom.shape != shape or layouts.get(atom.number) != order:
                    return None
                if atom.dtype.kind not in "fiub":
                    return None
        return order

    def _is_worth_it(self, chains: list[Chain], producers: dict[int, Equation]) -> bool:
        """Tell whether the calls that are saved cost more than joining and splitting."""
        size = sum(math.prod(chain.shape) for chain in chains)
        saved = (len(chains) - 1) * len(chains[0].equations) * _CALL
        for pieces in zip(*[chain.inputs for chain in chains], strict=True):
            if not all(self._is_written(piece, producers) for piece in pieces):
                saved -= _JOINING + len(chains) * _PIECE + size * _ELEMENT
        outer = self.used_outside(chains)
        saved -= sum(map(len, outer)) * _VIEW
        return saved > _WORTH

    def _is_written(self, piece: Var, producers: dict[int, Equation]) -> bool:
        producer = producers.get(piece.number)
        return producer is not None and self.takes_out(producer)

    def used_outside(self, chains: list[Chain]) -> list[list[int]]:
        """Return which results of each chain are used outside of it, by their places."""
        uses = self._uses()
        found = []
        for chain in chains:
            inner = set(map(id, chain.equations))
            places = []
            for place, equation in enumerate(chain.equations):
                (out,) = equation.outputs
                assert out is not None
                if any(use is None or id(use) not in inner for use in uses.get(out.number, ())):
                    places.append(place)
            found.append(places)
        return found

    def _uses(self) -> dict[int, list[Equation | None]]:
        """Return the equations that use a variable; None for results and conditions."""
        found = self._found_uses
        if found is None:
            found = self._found_uses = {}
            for equation in self.program.equations:
                for atom in equation.inputs:
                    if type(atom) is Var:
                        found.setdefault(atom.number, []).append(equation)
            for var in vars_of(self.program.outputs):
                found.setdefault(var.number, []).append(None)
            for note in self.program.notes:
                for var in note.vars:
                    found.setdefault(var.number, []).append(None)
        return found


def _few_enough(chains: list[Chain]) -> Iterator[list[Chain]]:
    """Yield parts of a list that are small enough to lie in the cache."""
    few: list[Chain] = []
    size = 0
    for chain in chains:
        own = math.prod(chain.shape)
        if size + own > TOGETHER:
            yield few
            few, size = [], 0
        few.append(chain)
        size += own
    yield few
