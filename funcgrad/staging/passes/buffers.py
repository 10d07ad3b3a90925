"""Buffers: which results are written into memory that an earlier one no longer needs.

Fresh memory costs more than what is computed into it: an allocation for each small array, a page
fault for every four kilobytes of a large one. So a program that is run again and again keeps its
memory, and results that live and die within a run share it, each place being free again after the
last use of whatever shares memory with it (views count). Results that are returned get fresh
memory, always.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.core.elementwise import Elementwise
from funcgrad.staging.equations import Equation, FunctionCall, Var, vars_of
from funcgrad.staging.passes.blocks import Block

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["Plan", "owners_of", "plan_buffers"]


# Bytes of an array of which fresh memory costs more than to keep track of it.
LARGE = 1 << 17


def _arranged(memory: Any, shape: tuple[int, ...], order: str) -> Any:
    """Return an array of this shape and order of axes in flat memory."""
    if order in ("C", "F"):
        return memory.reshape(shape, order=order)
    axes = [int(axis) for axis in order]
    return memory.reshape([shape[axis] for axis in axes]).transpose(np.argsort(axes))


class Plan:
    """Where results are written.

    Attributes
    ----------
    slots : list of (dtype, size)
        Pieces of memory.
    views : list of (slot, shape, order)
        The arrays in them that results are written to.
    places : dict
        Variable number -> index into `views`.
    results : list of (shape, dtype, order)
        Large arrays that are returned, and written to by functions that take ``out=``.
    result_places : dict
        Variable number -> index into `results`.
    copied : list of bool
        Which outputs must be copied, as they share memory with what is not the caller's.
    """

    def __init__(self) -> None:
        self.slots: list[tuple[np.dtype[Any], int]] = []
        self.views: list[tuple[int, tuple[int, ...], str]] = []
        self.places: dict[int, int] = {}
        self.results: list[tuple[tuple[int, ...], np.dtype[Any], str]] = []
        self.result_places: dict[int, int] = {}
        self.copied: list[bool] = []
        self._views: dict[Any, int] = {}

    def view(self, slot: int, shape: tuple[int, ...], order: str) -> int:
        """Return the place of an array in a piece of memory."""
        key = (slot, shape, order)
        place = self._views.get(key)
        if place is None:
            place = self._views[key] = len(self.views)
            self.views.append(key)
        return place

    def result(self, var: Var, order: str) -> None:
        """Plan the memory of a result."""
        self.result_places[var.number] = len(self.results)
        self.results.append((var.shape, var.dtype, order))

    def allocate(self) -> tuple[Any, ...]:
        """Return the arrays of `views`, in fresh memory."""
        memory: list[Any] = [np.empty(size, dtype) for dtype, size in self.slots]
        return tuple([_arranged(memory[slot], shape, order) for slot, shape, order in self.views])


def owners_of(program: Program, aliases: Mapping[int, Sequence[int]]) -> dict[int, frozenset[int]]:
    """Return, for each variable, the variables whose memory it may lie in."""
    owners: dict[int, frozenset[int]] = {}

    def of(numbers: Sequence[int]) -> frozenset[int]:
        return frozenset().union(*[owners.get(n, frozenset({n})) for n in numbers])

    for equation in program.equations:
        operation = equation.operation
        if isinstance(operation, Elementwise | Block):
            continue
        inputs = [v.number for v in vars_of(equation.inputs)]
        for place, out in enumerate(equation.outputs):
            if out is None:
                continue
            shared = list(aliases.get(out.number, ()))
            if isinstance(operation, FunctionCall) or any(n not in inputs for n in shared):
                shared = inputs  # nobody knows, or an identity has put others in their place
            elif operation.may_alias and place == 0:
                shared += inputs[:1]
            if shared:
                owners[out.number] = of(shared) | (
                    frozenset() if out.number in aliases else frozenset({out.number})
                )
    return owners


def plan_buffers(
    program: Program,
    takes_out: Callable[[Equation], bool],
    layouts: Mapping[int, str],
    aliases: Mapping[int, Sequence[int]],
) -> Plan:
    """Plan the memory of a program.

    Parameters
    ----------
    program : Program
    takes_out : callable
        Tells of an equation whether its function can write into a given array.
    layouts : dict
        How arrays lie in memory, and
    aliases : dict
        what shares it: see `funcgrad.staging.strict`. Arrays with gaps get memory from NumPy, so
        that they lie as they would without this.
    """
    plan = Plan()
    owners = owners_of(program, aliases)

    def owned(var: Var) -> frozenset[int]:
        return owners.get(var.number) or frozenset({var.number})

    returned = _outputs(program, owned, plan)
    last: dict[int, int] = {}
    for position, equation in enumerate(program.equations):
        for atoms in (equation.outputs, equation.inputs):
            for atom in atoms:
                if type(atom) is Var:
                    if atom.number in owners:
                        last.update(dict.fromkeys(owners[atom.number], position))
                    else:
                        last[atom.number] = position
    for note in program.notes:
        for var in note.vars:
            for number in owned(var):
                last[number] = max(last.get(number, 0), note.position)
    free: dict[Any, list[int]] = {}
    slot_of: dict[int, int] = {}
    dying: dict[int, list[int]] = {}
    for number, position in last.items():
        dying.setdefault(position, []).append(number)

    def release(number: int) -> None:
        slot = slot_of.pop(number, None)
        if slot is not None:
            free[plan.slots[slot]].append(slot)

    def place(out: Var, order: str) -> None:
        key = (out.dtype, _size(out.shape))
        places = free.get(key)
        if places is None:
            places = free[key] = []
        if places:
            slot = places.pop()
        else:
            slot = len(plan.slots)
            plan.slots.append(key)
        slot_of[out.number] = slot
        plan.places[out.number] = plan.view(slot, out.shape, order)

    for position, equation in enumerate(program.equations):
        out = equation.outputs[0] if equation.outputs else None
        ends = dying.get(position, ())
        if isinstance(equation.operation, Block):
            for var in vars_of(equation.outputs):
                if var.number not in returned:
                    place(var, layouts[var.number])
                else:
                    plan.result(var, layouts[var.number])
            _plan_block(equation.operation, equation.outputs, plan, free)
        elif (
            out is not None
            and len(equation.outputs) == 1
            and out.shape
            and out.number in layouts
            and (out.number not in returned or _is_kept(out, layouts))
            and takes_out(equation)
        ):
            order = layouts[out.number]
            if out.number in returned:
                plan.result(out, order)
            elif isinstance(equation.operation, Elementwise):
                # In place, where the places of the elements are the same.
                for atom in equation.inputs:
                    if (
                        isinstance(atom, Var)
                        and atom.number in ends
                        and atom.shape == out.shape
                        and layouts.get(atom.number) == order
                        and not _is_read_otherwise(equation, atom, owned)
                    ):
                        release(atom.number)
            if out.number not in returned:
                place(out, order)
        for number in ends:
            release(number)
    return plan


def _plan_block(
    block: Block, outputs: Sequence[Var | None], plan: Plan, free: dict[Any, list[int]]
) -> None:
    """Plan the memory for a part of each value between the operations of a block."""
    kept = {var.number for var in vars_of(outputs)}
    last: dict[int, int] = {}
    for position, equation in enumerate(block.equations):
        for var in (*vars_of(equation.inputs), *vars_of(equation.outputs)):
            last[var.number] = position
    shape = (block.size,) if block.is_flat else (block.size, *block.shape[1:])
    taken: list[int] = []
    slot_of: dict[int, int] = {}
    mine: dict[Any, list[int]] = {}
    for position, equation in enumerate(block.equations):
        (out,) = equation.outputs
        assert out is not None
        # In place where an operand ends: its elements are where those of the result go.
        for var in vars_of(equation.inputs):
            if last[var.number] == position and var.number in slot_of:
                slot = slot_of.pop(var.number)
                mine.setdefault(plan.slots[slot], []).append(slot)
        if out.number in kept:
            continue
        key = (out.dtype, _size(shape))
        places = mine.get(key) or free.get(key)
        if places:
            slot = places.pop()
        else:
            slot = len(plan.slots)
            plan.slots.append(key)
        if slot not in taken:
            taken.append(slot)
        slot_of[out.number] = slot
        plan.places[out.number] = plan.view(slot, shape, "C")
    for slot in taken:
        places = free.setdefault(plan.slots[slot], [])
        if slot not in places:
            places.append(slot)


def _is_read_otherwise(
    equation: Equation, var: Var, owned: Callable[[Var], frozenset[int]]
) -> bool:
    """Tell whether another input is a view of a variable, which has its elements elsewhere."""
    if len(equation.inputs) == 1:
        return False
    return any(
        other is not var and type(other) is Var and var.number in owned(other)
        for other in equation.inputs
    )


def _outputs(program: Program, owned: Callable[[Var], frozenset[int]], plan: Plan) -> set[int]:
    """Decide which outputs are copied; return the numbers whose memory is the caller's."""
    foreign = {var.number for var in program.inputs}
    foreign.update(constant.var.number for constant in program.constants)
    sizes = {
        var.number: _size(var.shape)
        for equation in program.equations
        for var in vars_of(equation.outputs)
    }
    returned: set[int] = set()
    for atom in program.outputs:
        if not isinstance(atom, Var):
            plan.copied.append(False)
            continue
        numbers = owned(atom)
        copied = atom.python is None and (
            bool(numbers & foreign or numbers & returned)
            # A part of a larger array would keep that alive; a stretched one cannot be written to.
            or any(sizes[number] != sizes[atom.number] for number in numbers)
        )
        plan.copied.append(copied)
        if not copied:
            returned |= numbers
    return returned


def _is_kept(out: Var, layouts: Mapping[int, str]) -> bool:
    """Tell whether memory of a result is used again: only who owns it knows if others hold it."""
    return _bytes(out) >= LARGE and layouts[out.number] in ("C", "F")


def _bytes(var: Var) -> int:
    return math.prod(var.shape) * var.dtype.itemsize


def _size(shape: tuple[int, ...]) -> int:
    return math.prod(shape)
