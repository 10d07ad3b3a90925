"""Assembly: parts of an array that are added up into zeros are put beside each other.

The cotangent of an array of which slices were used is a sum: for each slice, of zeros with its
cotangent in its place. Where the slices share no element that is a concatenation, in one step. Only
the sign of a zero can come out otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from funcgrad.core.primitive import DECLARED
from funcgrad.staging.equations import Constant, Equation, Var
from funcgrad.staging.passes.rewriting import Layouts, Writing, counted_uses, is_sum, makers

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["with_assembly"]


def with_assembly(program: Program, layouts: Layouts) -> Program:
    """Return a program in which sums of slices in zeros are concatenations."""
    if sum(equation.name == "scatter_add" for equation in program.equations) < 2:
        return program
    assembly = _Assembly(program, layouts)
    made = assembly.rewritten(assembly.write)
    if not assembly.is_changed:
        return program
    return attrs.evolve(made, constants=(*program.constants, *assembly.constants))


class _Assembly(Writing):
    def __init__(self, program: Program, layouts: Layouts):
        super().__init__(program, layouts)
        self.constants: list[Constant] = []
        self.is_changed = False
        self.made_by = makers(program)
        self.uses = counted_uses(program)

    def write(self, equation: Equation) -> bool:
        """Write a concatenation in the place of the last sum, if it is one."""
        made = self._assembled(equation)
        if made is None:
            return False
        self.is_changed = True
        self.equations.extend(made)
        return True

    def _assembled(self, equation: Equation) -> list[Equation] | None:
        """Return what stands in the place of the last sum; None if it is something else."""
        if not is_sum(equation):
            return None
        (out,) = equation.outputs
        assert out is not None
        if self.layouts.get(out.number) != "C" or 0 in out.shape:
            return None
        if self.uses[out.number] == 1 and self._is_added(out):
            return None  # it is part of a larger sum
        parts: list[Equation] = []
        if not self._take(equation, out, parts):
            return None
        places = [_slices(part.params["index"], out.shape) for part in parts]
        axes = {
            axis
            for place in places
            for axis, (start, stop) in enumerate(place or ())
            if (start, stop) != (0, out.shape[axis])
        }
        if None in places or len(axes) != 1:
            return None
        (axis,) = axes
        found = sorted(
            ((place[axis], part) for place, part in zip(places, parts, strict=True) if place),
            key=lambda pair: pair[0],
        )
        ends = [stop for (_, stop), _ in found]
        if any(start < stop for ((start, _), _), stop in zip(found[1:], ends, strict=False)):
            return None
        return self._joined(found, axis, out, equation)

    def _is_added(self, out: Var) -> bool:
        return any(
            is_sum(equation) and any(var is out for var in equation.inputs)
            for equation in self.program.equations
        )

    def _take(self, equation: Equation, out: Var, parts: list[Equation]) -> bool:
        """Take a sum apart; tell whether it is of slices in zeros."""
        for atom in equation.inputs:
            made = self.made_by.get(atom.number) if isinstance(atom, Var) else None
            if (
                made is None
                or not isinstance(atom, Var)
                or self.uses[atom.number] != 1
                or atom.shape != out.shape
                or atom.dtype != out.dtype
            ):
                return False
            if is_sum(made):
                if not self._take(made, out, parts):
                    return False
                continue
            (part,) = made.inputs if len(made.inputs) == 1 else (None,)
            if (
                made.operation is not DECLARED["scatter_add"]
                or not isinstance(part, Var)
                or part.dtype != out.dtype
                or part.python is not None
            ):
                return False
            parts.append(made)
        return True

    def _joined(self, found: Any, axis: int, out: Var, equation: Equation) -> list[Equation]:
        equations = []
        inputs: list[Var] = []
        end = 0
        for (start, stop), part in (*found, ((out.shape[axis], out.shape[axis]), None)):
            if start > end:
                shape = (*out.shape[:axis], start - end, *out.shape[axis + 1 :])
                nothing = self.new(shape, out.dtype)
                self.constants.append(Constant(nothing, np.zeros(shape, out.dtype)))
                inputs.append(nothing)
            end = stop
            if part is None:
                continue
            (x,) = part.inputs
            shape = (*out.shape[:axis], stop - start, *out.shape[axis + 1 :])
            if x.shape != shape:
                new = self.new(shape, out.dtype)
                params: dict[str, Any] = {"order": "C", "copy": None, "shape": shape}
                equations.append(
                    Equation(DECLARED["reshape"], (x,), params, (new,), False, None, part.line)
                )
                x = new
            inputs.append(x)
        params = {"axis": axis, "dtype": None, "casting": "same_kind"}
        equations.append(
            Equation(
                DECLARED["concatenate"], tuple(inputs), params, (out,), False, None, equation.line
            )
        )
        return equations


def _slices(index: Any, shape: tuple[int, ...]) -> list[tuple[int, int]] | None:
    """Return where a basic index begins and ends along each axis; None of others."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in [part for part in parts if isinstance(part, type(Ellipsis))]:
        place = next(k for k, part in enumerate(parts) if part is Ellipsis)
        missing = len(shape) - (len(parts) - 1)
        parts = [*parts[:place], *[slice(None)] * missing, *parts[place + 1 :]]
    if len(parts) > len(shape):
        return None
    parts += [slice(None)] * (len(shape) - len(parts))
    found = []
    for part, size in zip(parts, shape, strict=True):
        if type(part) is slice:
            start, stop, step = part.indices(size)
            if step != 1 or stop <= start:
                return None
            found.append((start, stop))
        elif type(part) is int:
            found.append((part % size, part % size + 1))
        else:
            return None
    return found
