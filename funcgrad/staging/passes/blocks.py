"""Blocks: chains of elementwise operations on large arrays go through them block by block.

An operation on an array that does not fit the cache waits for memory, and a chain of ten reads and
writes all of it ten times. Done on blocks that fit, one after another, the chain reads each operand
and writes each result once; what lies between never leaves the cache. Each element is computed
as before.

Operations that stand between those of a chain are done before or after it, as they need.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from funcgrad.core.elementwise import Elementwise
from funcgrad.staging.backends.expressions import ufunc_of
from funcgrad.staging.equations import Equation, Var, vars_of
from funcgrad.staging.passes.rewriting import Layouts, is_pure

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["Block", "with_blocks"]

# Arrays of fewer bytes fit the cache as they are.
SMALLEST = 1 << 19
# Elements in a block: measured, with caches of two megabytes.
ELEMENTS = 1 << 16


class Block:
    """The operation of an equation that stands for a chain of elementwise ones.

    Attributes
    ----------
    equations : tuple of Equation
    shape : tuple of int
        Of all results.
    is_flat : bool
        The operands are of that shape, or numbers, and lie in C order; blocks are parts of their
        memory. Otherwise they are rows: ``x[i:j]``.
    size : int
        Of a block: elements, or rows.
    """

    name = "blocks"
    may_alias = False

    def __init__(
        self, equations: tuple[Equation, ...], shape: tuple[int, ...], is_flat: bool, size: int
    ):
        self.equations = equations
        self.shape = shape
        self.is_flat = is_flat
        self.size = size


# How many equations are looked through for more of a chain.
_AHEAD = 2000


def with_blocks(program: Program, layouts: Layouts) -> Program:
    """Return a program in which chains of elementwise operations on large arrays are blocks."""
    if not any(_is_large(out) for e in program.equations for out in e.outputs):
        return program
    uses: dict[int, list[Equation | None]] = {}
    for equation in program.equations:
        for var in vars_of(equation.inputs):
            uses.setdefault(var.number, []).append(equation)
    for var in vars_of(program.outputs):
        uses.setdefault(var.number, []).append(None)
    for note in program.notes:
        for var in note.vars:
            uses.setdefault(var.number, []).append(None)
    equations: list[Equation] = []
    positions: dict[int, int] = {}
    # Nothing is moved over a condition, after which the program may go no further.
    barriers = sorted({note.position for note in program.notes} | {len(program.equations)})
    start = 0
    for stop in barriers:
        equations.extend(_arranged(program.equations[start:stop], uses, layouts))
        positions[stop] = len(equations)
        start = stop
    return attrs.evolve(
        program,
        equations=tuple(equations),
        notes=tuple([attrs.evolve(n, position=positions[n.position]) for n in program.notes]),
    )


def _arranged(
    equations: Sequence[Equation], uses: dict[int, list[Equation | None]], layouts: Layouts
) -> Iterator[Equation]:
    """Yield equations in another order, with chains as blocks."""
    done = [False] * len(equations)
    # What is computed in this part of the program, and not yet.
    missing = {var.number for equation in equations for var in vars_of(equation.outputs)}
    for position, equation in enumerate(equations):
        if done[position]:
            continue
        done[position] = True
        if not _is_blockable(equation, layouts):
            yield equation
            missing.difference_update(var.number for var in vars_of(equation.outputs))
            continue
        before, chain = _chain(equations, position, done, missing, layouts)
        yield from before
        yield from _closed(chain, uses, layouts)


def _chain(
    equations: Sequence[Equation],
    position: int,
    done: list[bool],
    missing: set[int],
    layouts: Layouts,
) -> tuple[list[Equation], list[Equation]]:
    """Return what a chain needs that is computed later, and the chain from `position` on."""
    first = equations[position]
    shape = first.outputs[0].shape  # type: ignore[union-attr]
    own = {var.number for var in vars_of(first.outputs)}
    missing.difference_update(own)
    found, before = [position], []
    for place in range(position + 1, min(len(equations), position + _AHEAD)):
        if done[place]:
            continue
        equation = equations[place]
        inputs = [var.number for var in vars_of(equation.inputs)]
        out = equation.outputs[0] if len(equation.outputs) == 1 else None
        if out is None or not missing.isdisjoint(inputs):
            continue
        if out.shape == shape and _is_blockable(equation, layouts):
            found.append(place)
            own.add(out.number)
        elif own.isdisjoint(inputs) and not out.shape and is_pure(equation.operation):
            before.append(equation)
            done[place] = True
        else:
            continue
        missing.discard(out.number)
    chain = []
    for place in _connected(equations, found):
        done[place] = True
        chain.append(equations[place])
    for place in found:
        if not done[place]:  # of another chain
            missing.update(var.number for var in vars_of(equations[place].outputs))
    return before, chain


def _connected(equations: Sequence[Equation], found: list[int]) -> list[int]:
    """Return the places of the equations that share arrays with the first, or with one that does.

    What they need of each other is among them.
    """
    groups: dict[int, int] = {}  # of each variable, as far as known by now
    leader = list(range(len(found)))

    def lead(k: int) -> int:
        while leader[k] != k:
            k = leader[k]
        return k

    for k, place in enumerate(found):
        equation = equations[place]
        for var in (*vars_of(equation.inputs), *vars_of(equation.outputs)):
            if var.shape:
                a, b = lead(k), lead(groups.setdefault(var.number, k))
                leader[max(a, b)] = min(a, b)
    return [place for k, place in enumerate(found) if lead(k) == 0]


def _is_large(out: Any) -> bool:
    return out is not None and _bytes(out) >= SMALLEST


def _bytes(var: Var) -> int:
    return math.prod(var.shape) * var.dtype.itemsize


def _is_blockable(equation: Equation, layouts: Layouts) -> bool:
    out = equation.outputs[0]
    if len(equation.outputs) != 1 or out is None or not out.shape or not _is_large(out):
        return False
    if not isinstance(equation.operation, Elementwise) or ufunc_of(equation) is None:
        return False
    if layouts.get(out.number) != "C" or out.shape[0] == 1:
        return False
    # Of operands that are stretched only those that are numbers, or the same for all rows.
    return all(
        not isinstance(atom, Var)
        or atom.shape == out.shape
        or len(atom.shape) < len(out.shape)
        or atom.shape[0] == 1
        for atom in equation.inputs
    )


def _closed(
    chain: list[Equation], uses: dict[int, list[Equation | None]], layouts: Layouts
) -> list[Equation]:
    """Return the equation of a chain, or those in it if there is nothing to gain."""
    if len(chain) < 2:
        return chain
    inner = set(map(id, chain))
    own = {var.number for equation in chain for var in vars_of(equation.outputs)}
    shape = chain[0].outputs[0].shape  # type: ignore[union-attr]
    inputs: dict[int, Var] = {}
    outputs = []
    is_flat = True
    for equation in chain:
        (out,) = equation.outputs
        assert out is not None
        for var in vars_of(equation.inputs):
            if var.number not in own:
                inputs[var.number] = var
            if var.shape and var.shape != shape:
                is_flat = False
            elif var.shape:
                is_flat = is_flat and layouts.get(var.number) == "C"
        if any(use is None or id(use) not in inner for use in uses.get(out.number, ())):
            outputs.append(out)
    if is_flat:
        size = ELEMENTS
    else:
        size = ELEMENTS // max(math.prod(shape[1:]), 1)
        if size < 1 or shape[0] < 2 * size:
            return chain
    if not outputs:
        return chain
    block = Block(tuple(chain), shape, is_flat, size)
    return [Equation(block, tuple(inputs.values()), {}, tuple(outputs), True, None, chain[0].line)]
