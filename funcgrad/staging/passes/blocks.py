"""Blocks: chains of operations on large arrays go through them block by block.

An operation on an array that does not fit the cache waits for memory, and a chain of ten reads and
writes all of it ten times. Done on blocks that fit, one after another, the chain reads each operand
and writes each result once; what lies between never leaves the cache, and a value of which only a
sum is wanted never exists as a whole.

Which operations can be in a chain says `funcgrad.staging.passes.rowwise`: those that compute each
row of their results from the same rows of their operands, and sums over all rows behind them.
`funcgrad.staging.passes.chains` finds them. Each element is computed as before, and sums are taken
in NumPy's order (see `funcgrad.staging.backends.halving`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from funcgrad.staging import machine
from funcgrad.staging.backends.halving import halves
from funcgrad.staging.equations import Equation, Note, Var, vars_of
from funcgrad.staging.passes.chains import Segment, connected
from funcgrad.staging.passes.rewriting import Layouts
from funcgrad.staging.passes.rowwise import (
    Fold,
    Scheme,
    in_rows,
    is_composite,
    schemes,
    shares_memory,
    work_of,
)

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["Block", "with_blocks"]

# Arrays of fewer bytes are done whole: what they gain by blocks is what the calls for them cost.
SMALLEST = 1 << 19
# The arrays of a block, together, may take so many times the second-level cache. Measured: of
# blocks that fit it, chains of 12 operations on 4e6 numbers took a fifth longer, as twice the
# calls cost more than the third-level cache does, which holds what the second does not.
CACHES = 5
# Elements in a block, at least and at most. With fewer, threads, which hand the lock of the
# interpreter over at each call, hinder each other.
FEWEST = 1 << 15
MOST = 1 << 17
# The work, in additions of numbers, for which it is worth while to wake other threads. Those of
# BLAS wait for more work for some milliseconds, and keep the processors busy by that.
WORK = 1 << 22
WORK_BESIDE_BLAS = 1 << 26
_BLAS = frozenset(
    {
        "affine",
        "conv",
        "conv_input",
        "conv_kernel",
        "dot",
        "einsum",
        "inner",
        "linalg_matmul",
        "matmul",
        "matvec",
        "multi_dot",
        "solve",
        "tensordot",
        "vdot",
        "vecmat",
    }
)
# As many elements NumPy adds up without halving them.
_UNHALVED = 128


class Block:
    """The operation of an equation that stands for a chain.

    Attributes
    ----------
    equations : tuple of Equation
        What is done for each block.
    folds : tuple of Fold
        The sums over all blocks.
    checked : tuple of Var
        What has to be finite, and nobody needs otherwise.
    axes : tuple of int or None
        The order of the axes in memory, if it is not C order; all arrays that are cut have it.
    cut : frozenset of int
        The numbers of the variables of which a block sees a part. It sees all of the others.
    is_flat : bool
        Blocks are parts of the memory of arrays of one shape. Otherwise they are rows.
    count : int
        The elements, or rows, of all blocks.
    depth, step : int
        How often they are halved, and where: see `funcgrad.staging.backends.halving.halves`.
    is_threaded : bool
        Blocks may be done in any order, and are enough work for that.
    """

    name = "blocks"
    may_alias = False

    def __init__(
        self,
        equations: tuple[Equation, ...],
        folds: tuple[Fold, ...],
        checked: tuple[Var, ...],
        scheme: Scheme,
        *,
        is_flat: bool,
        count: int,
        depth: int,
        is_threaded: bool,
    ):
        self.equations = equations
        self.folds = folds
        self.checked = checked
        self.axes = scheme.axes
        self.cut = frozenset(scheme.cut)
        self.is_flat = is_flat
        self.count = count
        self.depth = depth
        self.step = 8 if is_flat else 1
        self.is_threaded = is_threaded

    @property
    def size(self) -> int:
        """The elements, or rows, of the largest block."""
        return max(stop - start for start, stop in halves(self.count, self.depth, self.step))

    @property
    def statics(self) -> dict[str, Any]:
        """What to say of it in a program's text."""
        blocks = len(halves(self.count, self.depth, self.step))
        of = "elements" if self.is_flat else "rows"
        found: dict[str, Any] = {"blocks": blocks, of: self.size}
        return {**found, "threads": True} if self.is_threaded else found

    @property
    def parts(self) -> Iterator[Equation]:
        """All equations that it stands for."""
        yield from self.equations
        for fold in self.folds:
            yield fold.equation

    def arrays(self, equation: Equation) -> list[Var]:
        """Return the results that are written block by block, of the equation it belongs to."""
        sums = [fold.equation.outputs[0] for fold in self.folds]
        return [var for var in vars_of(equation.outputs) if all(var is not out for out in sums)]

    def shape_of_part(self, var: Var) -> tuple[int, ...]:
        """Return the shape of the largest part of a variable that is cut."""
        if self.is_flat:
            return (self.size,)
        shape = var.shape if self.axes is None else tuple([var.shape[i] for i in self.axes])
        return (self.size, *shape[1:])

    def last_uses(self) -> dict[int, int]:
        """Return, for each variable, the position of the last equation that needs its memory."""
        last: dict[int, int] = {}
        for position, equation in enumerate(self.equations):
            for var in (*vars_of(equation.inputs), *vars_of(equation.outputs)):
                last[var.number] = position
        for equation in reversed(self.equations):
            if shares_memory(equation):
                for var in vars_of(equation.inputs):
                    for out in vars_of(equation.outputs):
                        last[var.number] = max(last[var.number], last[out.number])
        return last


def with_blocks(program: Program, layouts: Layouts) -> Program:
    """Return a program in which chains of operations on large arrays are blocks."""
    if not _has_large(program):
        return program
    maker = _Maker(program, layouts)
    equations: list[Equation] = []
    positions: dict[int, int] = {0: 0}
    # Nothing is moved over a condition, after which the program may go no further; but what is not
    # finite is only computed in vain, and that is seen wherever it is looked at.
    barriers = {note.position for note in program.notes if not note.is_of_finite}
    start = 0
    for stop in sorted(barriers | {len(program.equations)}):
        equations.extend(maker.arranged(program.equations[start:stop]))
        positions[stop] = len(equations)
        start = stop
    made: dict[int, int] = {}
    for position, equation in enumerate(equations):
        checked = equation.operation.checked if isinstance(equation.operation, Block) else ()
        for var in (*vars_of(equation.outputs), *checked):
            made[var.number] = position + 1
    notes = []
    for note in program.notes:
        place = positions[max(stop for stop in positions if stop <= note.position)]
        if note.is_of_finite:
            place = max([place, *[made.get(var.number, 0) for var in note.vars]])
        notes.append(attrs.evolve(note, position=place))
    return attrs.evolve(program, equations=tuple(equations), notes=tuple(notes))


class _Maker:
    """Makes blocks of the equations of a program."""

    def __init__(self, program: Program, layouts: Layouts):
        self.layouts = layouts
        self.uses: dict[int, list[Any]] = {}
        for equation in program.equations:
            for var in vars_of(equation.inputs):
                self.uses.setdefault(var.number, []).append(equation)
        for var in vars_of(program.outputs):
            self.uses.setdefault(var.number, []).append(None)
        for note in program.notes:
            for var in note.vars:
                use = note if note.is_of_finite else None
                self.uses.setdefault(var.number, []).append(use)
        spins = any(equation.name in _BLAS for equation in program.equations)
        self.least_work = WORK_BESIDE_BLAS if spins else WORK

    def arranged(self, equations: Sequence[Equation]) -> Iterator[Equation]:
        """Yield equations in another order, with chains as blocks."""
        segment = Segment(equations, _is_large)
        for position, equation in enumerate(equations):
            if segment.done[position]:
                continue
            made = self._block_from(segment, position) if _is_large(equation) else None
            places, group = made or ([position], [equation])
            yield from group
            segment.finish(places)

    def _block_from(
        self, segment: Segment, position: int
    ) -> tuple[list[int], list[Equation]] | None:
        """Return which equations a block from `position` on stands for, and those in its place."""
        equations = segment.equations
        for scheme in schemes(equations[position], self.layouts):
            before, found, folds = segment.gathered(position, scheme)
            if not found:
                continue
            found, folds = connected(equations, found, folds, scheme)
            chain = [equations[place] for place in found]
            block = self._closed(chain, list(folds.values()), scheme)
            if block is not None:
                kept = {id(fold.equation) for fold in block.operation.folds}
                sums = [place for place, fold in folds.items() if id(fold.equation) in kept]
                return [*before, *found, *sums], [*[equations[place] for place in before], block]
        return None

    def _closed(self, chain: list[Equation], folds: list[Fold], scheme: Scheme) -> Equation | None:
        """Return the equation of a chain and the sums behind it, if there is something to gain."""
        if not _is_worth_it(chain, folds):
            return None
        is_flat = scheme.is_flat(chain, folds, self.layouts)
        cut = {
            var.number: var
            for equation in chain
            for var in (*vars_of(equation.inputs), *vars_of(equation.outputs))
            if var.number in scheme.cut
        }
        largest = max(map(_elements, cut.values()))
        # What else the scheme has met is in other chains.
        scheme.cut.intersection_update(cut)
        count = largest if is_flat else scheme.count
        row = largest // count
        inputs, outputs, _ = self._ends(chain, folds)
        most = _elements_in_block(chain, [*inputs, *outputs], cut, largest)
        depth = 0
        while -(-count // (1 << depth)) * row > most and count >= 2 << depth:
            depth += 1
        if depth == 0 or -(-count // (1 << depth)) * row > 4 * MOST:
            return None
        folds = [fold for fold in folds if _is_in_order(fold, count, depth, is_flat)]
        inputs, outputs, checked = self._ends(chain, folds)
        if not outputs or not _is_worth_it(chain, folds):
            return None
        work = largest * sum(map(work_of, chain))
        is_ordered = any(fold.leading for fold in folds)
        block = Block(
            tuple(map(in_rows, chain)),
            tuple(folds),
            tuple(checked),
            scheme,
            is_flat=is_flat,
            count=count,
            depth=depth,
            is_threaded=not is_ordered
            and work >= self.least_work
            and largest >> depth >= FEWEST // 2,
        )
        return Equation(block, tuple(inputs), {}, tuple(outputs), True, None, chain[0].line)

    def _ends(
        self, chain: list[Equation], folds: list[Fold]
    ) -> tuple[list[Var], list[Var], list[Var]]:
        """Return what a chain takes from others, what they take from it, and what is checked."""
        sums = [fold.equation for fold in folds]
        inner = set(map(id, [*chain, *sums]))
        own = {var.number for equation in chain for var in vars_of(equation.outputs)}
        inputs: dict[int, Var] = {}
        outputs, checked = [], []
        for equation in chain:
            for var in vars_of(equation.inputs):
                if var.number not in own:
                    inputs[var.number] = var
            for out in vars_of(equation.outputs):
                outer = [use for use in self.uses.get(out.number, ()) if id(use) not in inner]
                if not all(isinstance(use, Note) for use in outer):
                    outputs.append(out)
                elif outer:
                    checked.append(out)
        for equation in sums:
            outputs += vars_of(equation.outputs)
        return list(inputs.values()), outputs, checked


def _is_worth_it(chain: list[Equation], folds: list[Fold]) -> bool:
    return bool(chain) and (len(chain) + len(folds) > 1 or is_composite(chain[0]))


def _has_large(program: Program) -> bool:
    """Tell whether there is an array that does not fit the cache."""
    kinds = {
        (var.shape, var.dtype)
        for equation in program.equations
        for var in equation.outputs
        if var is not None
    }
    kinds.update((var.shape, var.dtype) for var in program.inputs)
    kinds.update((constant.var.shape, constant.var.dtype) for constant in program.constants)
    return any(math.prod(shape) * dtype.itemsize >= SMALLEST for shape, dtype in kinds)


def _is_large(equation: Equation) -> bool:
    """Tell whether an equation reads or writes an array that does not fit the cache."""
    return any(
        _elements(var) * var.dtype.itemsize >= SMALLEST
        for var in (*vars_of(equation.inputs), *vars_of(equation.outputs))
    )


def _elements(var: Var) -> int:
    return math.prod(var.shape)


def _elements_in_block(
    chain: list[Equation], ends: list[Var], cut: dict[int, Var], largest: int
) -> int:
    """Return how many elements of the largest array make a block that fits the cache."""

    def share(var: Var) -> float:
        return _elements(var) / largest * var.dtype.itemsize if var.number in cut else 0.0

    always = sum(map(share, ends))
    outer = {var.number for var in ends}
    last = {
        var.number: position
        for position, equation in enumerate(chain)
        for var in (*vars_of(equation.outputs), *vars_of(equation.inputs))
    }
    now = most = 0.0
    for position, equation in enumerate(chain):
        between = [var for var in vars_of(equation.outputs) if var.number not in outer]
        now += sum(map(share, between))
        most = max(most, now)
        for var in {v.number: v for v in (*vars_of(equation.inputs), *between)}.values():
            if last[var.number] == position and var.number not in outer:
                now -= share(var)
    fitting = CACHES * machine.cache_bytes() / max(always + most, 1.0)
    return int(min(max(fitting, FEWEST), MOST))


def _is_in_order(fold: Fold, count: int, depth: int, is_flat: bool) -> bool:
    """Tell whether a sum over blocks is taken in NumPy's order."""
    if fold.leading:
        return True
    if _elements(fold.var) >> depth < _UNHALVED:
        return False
    if is_flat:
        return True
    row = _elements(fold.var) // count
    rows = [(start * row, stop * row) for start, stop in halves(count, depth, 1)]
    return rows == halves(count * row, depth, 8)
