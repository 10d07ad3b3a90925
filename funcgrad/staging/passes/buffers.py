"""Buffers: which results are written into memory that an earlier one no longer needs.

Fresh memory costs more than what is computed into it: an allocation for each small array, a page
fault for every four kilobytes of a large one. So a program that is run again and again keeps its
memory, and results that live and die within a run share it, each place being free again after the
last use of whatever shares memory with it (views count). Results that are returned get fresh
memory, always. Arrays that are joined (`funcgrad.staging.passes.leaves`) are written where they
come to lie, if what computes them can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.core.elementwise import Elementwise
from funcgrad.core.primitive import DECLARED
from funcgrad.staging.branches import Branches
from funcgrad.staging.equations import Equation, FunctionCall, Var, vars_of
from funcgrad.staging.loops import Loop
from funcgrad.staging.passes.blocks import Block
from funcgrad.staging.passes.donating import donations
from funcgrad.staging.passes.hosting import guests
from funcgrad.staging.passes.leaves import JOIN, SPLIT, Joins

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["Plan", "is_large", "is_written_into", "owners_of", "plan_buffers", "volatile"]


# Bytes of an array of which fresh memory costs more than to keep track of it.
LARGE = 1 << 17


def _arranged(memory: Any, shape: tuple[int, ...], order: str, start: int) -> Any:
    """Return an array of this shape and order of axes in flat memory."""
    count = _size(shape)
    if count != memory.size:
        memory = memory[start : start + count]
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
    views : list of (slot, shape, order, start)
        The arrays in them that results are written to.
    places : dict
        Variable number -> index into `views`.
    results : list of (shape, dtype, order)
        Large arrays that are returned, and written to by functions that take ``out=``.
    result_places : dict
        Variable number -> index into `results`.
    copied : list of bool
        Which outputs must be copied, as they share memory with what is not the caller's.
    pieces : dict
        For arrays that are joined of others, by number: the index into `views` of each part, and
        whether what belongs there is written there when it is computed.
    wholes : dict
        For those of which all parts are: the numbers of the parts.
    donated : dict
        Results that take the memory of an argument: the numbers of the two.
    """

    def __init__(self) -> None:
        self.slots: list[tuple[np.dtype[Any], int]] = []
        self.views: list[tuple[int, tuple[int, ...], str, int]] = []
        self.places: dict[int, int] = {}
        self.results: list[tuple[tuple[int, ...], np.dtype[Any], str]] = []
        self.result_places: dict[int, int] = {}
        self.copied: list[bool] = []
        self.pieces: dict[int, list[tuple[int, bool]]] = {}
        self.wholes: dict[int, list[int]] = {}
        self.donated: dict[int, int] = {}
        self._views: dict[Any, int] = {}

    def view(self, slot: int, shape: tuple[int, ...], order: str, start: int = 0) -> int:
        """Return the place of an array in a piece of memory."""
        key = (slot, shape, order, start)
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
        return tuple(
            [
                _arranged(memory[slot], shape, order, start)
                for slot, shape, order, start in self.views
            ]
        )


def owners_of(program: Program, aliases: Mapping[int, Sequence[int]]) -> dict[int, frozenset[int]]:
    """Return, for each variable, the variables whose memory it may lie in."""
    owners: dict[int, frozenset[int]] = {}

    def of(numbers: Sequence[int]) -> frozenset[int]:
        return frozenset().union(*[owners.get(n, frozenset({n})) for n in numbers])

    for equation in program.equations:
        operation = equation.operation
        if isinstance(operation, Elementwise | Block) or operation is JOIN:
            continue
        if isinstance(operation, Loop | Branches):
            # What is carried may be what the loop started from, or a row of its outputs.
            inner = of([v.number for v in vars_of((*equation.inputs, *equation.outputs))])
            owners.update(
                (v.number, inner | {v.number}) for v in vars_of(volatile(equation)) if v.shape
            )
            continue
        if operation is SPLIT:
            inner = of([v.number for v in vars_of(equation.inputs)])
            owners.update((var.number, inner) for var in vars_of(equation.outputs))
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


def is_written_into(equation: Equation, layouts: Mapping[int, str]) -> bool:
    """Tell whether all results of an equation can be written into given arrays at once."""
    operation = equation.operation
    fits = getattr(operation, "fits", None)
    return (
        fits is not None
        and DECLARED.get(operation.name) is operation
        and not equation.params
        and all(isinstance(x, Var) and x.python is None for x in equation.inputs)
        and all(
            out is not None and out.shape and layouts.get(out.number) == "C"
            for out in equation.outputs
        )
        and bool(fits(*equation.inputs))
    )


def volatile(equation: Equation) -> Sequence[Var | None]:
    """Return the results that lie in memory which the next run uses: what loops carry."""
    operation = equation.operation
    if isinstance(operation, Loop):
        return equation.outputs[: operation.carries]
    return equation.outputs if isinstance(operation, Branches) else ()


def plan_buffers(
    program: Program,
    takes_out: Callable[[Equation], bool],
    layouts: Mapping[int, str],
    aliases: Mapping[int, Sequence[int]],
    *,
    is_inner: bool = False,
    donated: Set[int] = frozenset(),
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
    is_inner : bool
        It is a step of a loop, and done again before anybody has used its results.
    donated : set of int
        Arguments, by number, whose memory results may take.
    """
    plan = Plan()
    owners = owners_of(program, aliases)

    def owned(var: Var) -> frozenset[int]:
        return owners.get(var.number) or frozenset({var.number})

    if is_inner:  # what is carried on is in memory of its own
        returned = {number for atom in vars_of(program.outputs) for number in owned(atom)}
    else:
        returned = _outputs(program, owned, plan)
    joins = Joins(program, takes_out, layouts, owners, returned, plan)
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
    for var in vars_of(program.outputs):  # also of what is copied only in the end
        last.update(dict.fromkeys(owned(var), len(program.equations)))

    def is_result(equation: Equation, out: Var) -> bool:
        if out.number not in returned or out.number not in layouts:
            return False
        if isinstance(equation.operation, Block):
            is_written = any(var is out for var in equation.operation.arrays(equation))
        else:
            is_written = len(equation.outputs) == 1 and takes_out(equation)
        return is_written and _is_kept(out, layouts)

    hosted: dict[int, int] = {}
    hosts: dict[int, Var] = {}
    if not is_inner and any(map(is_large, program.outputs)):
        if donated:
            plan.donated = donations(program, donated, owned, last, layouts, is_result)
        hosts = {
            out.number: out
            for equation in program.equations
            if isinstance(equation.operation, Elementwise)
            for out in equation.outputs
            if out is not None and is_result(equation, out)
        }
    if hosts:
        placed = returned | set(joins.part_of) | set(joins.parts)
        hosted = guests(program, set(hosts), placed, takes_out, owners, last, layouts, plan.donated)
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
        if out is not None and out.number in joins.part_of:
            whole, start = joins.part_of[out.number]
            if whole.number not in plan.places:
                place(whole, "C")
            plan.places[out.number] = plan.view(
                slot_of[whole.number], out.shape, layouts[out.number], start
            )
        elif out is not None and out.number in joins.parts:
            slot = slot_of[out.number]
            plan.pieces[out.number] = [
                (plan.view(slot, part.shape, order, start), is_there)
                for part, order, start, is_there in joins.parts[out.number]
            ]
        elif out is not None and out.number in hosted:
            host = hosts[hosted[out.number]]
            if host.number in plan.donated:
                plan.donated[out.number] = plan.donated[host.number]
            else:
                if host.number not in plan.result_places:
                    plan.result(host, layouts[host.number])
                plan.result_places[out.number] = plan.result_places[host.number]
        elif isinstance(equation.operation, Loop) or is_written_into(equation, layouts):
            carries = getattr(equation.operation, "carries", 0)
            for var in vars_of(equation.outputs[carries:]):
                if var.number not in returned and var.number in layouts:
                    place(var, layouts[var.number])
                elif var.number in layouts and _is_kept(var, layouts) and not is_inner:
                    plan.result(var, layouts[var.number])
        elif isinstance(equation.operation, Block):
            for var in equation.operation.arrays(equation):
                if var.number not in returned:
                    place(var, layouts[var.number])
                elif (
                    layouts[var.number] in ("C", "F")
                    and var.number not in plan.donated
                    and not is_inner
                ):
                    plan.result(var, layouts[var.number])
            _plan_block(equation.operation, equation.outputs, takes_out, plan, free)
        elif (
            out is not None
            and len(equation.outputs) == 1
            and out.shape
            and out.number in layouts
            and (out.number not in returned or (_is_kept(out, layouts) and not is_inner))
            and takes_out(equation)
        ):
            order = layouts[out.number]
            if out.number in plan.donated or out.number in plan.result_places:
                pass
            elif out.number in returned:
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
    block: Block,
    outputs: Sequence[Var | None],
    takes_out: Callable[[Equation], bool],
    plan: Plan,
    free: dict[Any, list[int]],
) -> None:
    """Plan the memory for a part of each value between the operations of a block."""
    kept = {var.number for var in vars_of(outputs)}
    last = block.last_uses()
    taken: list[int] = []
    slot_of: dict[int, int] = {}
    mine: dict[Any, list[int]] = {}

    def release(number: int) -> None:
        slot = slot_of.pop(number, None)
        if slot is not None:
            mine.setdefault(plan.slots[slot], []).append(slot)

    for position, equation in enumerate(block.equations):
        ends = [number for number in slot_of if last[number] == position]
        out = equation.outputs[0]
        if out is not None and out.number not in kept and takes_out(equation):
            if isinstance(equation.operation, Elementwise):
                # In place where an operand ends: its elements are where those of the result go.
                for var in vars_of(equation.inputs):
                    if var.number in ends and var.shape == out.shape:
                        release(var.number)
            shape = block.shape_of_part(out)
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
        for number in ends:
            release(number)
    for slot in taken:
        places = free.setdefault(plan.slots[slot], [])
        if slot not in places:
            places.append(slot)


def _is_read_otherwise(
    equation: Equation, var: Var, owned: Callable[[Var], frozenset[int]]
) -> bool:
    """Tell whether another input is a view of a variable, which has its elements elsewhere."""
    for other in equation.inputs:
        if other is not var and type(other) is Var and var.number in owned(other):
            return True
    return False


def _outputs(program: Program, owned: Callable[[Var], frozenset[int]], plan: Plan) -> set[int]:
    """Decide which outputs are copied; return the numbers whose memory is the caller's."""
    foreign = {var.number for var in program.inputs}
    foreign.update(constant.var.number for constant in program.constants)
    for equation in program.equations:
        foreign.update(var.number for var in vars_of(volatile(equation)))
    wanted = {number for v in vars_of(program.outputs) for number in (v.number, *owned(v))}
    sizes = {
        out.number: _size(out.shape)
        for equation in program.equations
        for out in equation.outputs
        if out is not None and out.number in wanted
    }
    split = {
        var.number
        for equation in program.equations
        if equation.operation is SPLIT
        for var in vars_of(equation.outputs)
    }
    returned: set[int] = set()
    for atom in program.outputs:
        if not isinstance(atom, Var):
            plan.copied.append(False)
            continue
        numbers = owned(atom)
        if atom.number in split:  # no other has its elements
            split.discard(atom.number)
            returned |= numbers
            plan.copied.append(False)
            continue
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
    return is_large(out) and layouts[out.number] in ("C", "F")


def is_large(atom: Any) -> bool:
    """Tell whether fresh memory for an array costs more than to keep track of it."""
    return isinstance(atom, Var) and math.prod(atom.shape) * atom.dtype.itemsize >= LARGE


def _size(shape: tuple[int, ...]) -> int:
    return math.prod(shape)
