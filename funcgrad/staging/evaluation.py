"""Evaluation: carries out the equations of a program, on plain values or traced ones.

Each equation is carried out as the function would: by its primitive, at the highest level among its
inputs. So a program has the derivatives, and the batched version, of the function. What the run
took from the values (`Note`) is looked at again, and has to be as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.core.level import TracerBase, is_recorded, looked_at
from funcgrad.core.zero import are_finite, dtype_of, shape_of
from funcgrad.errors import SpecialisedError, describe, user_line
from funcgrad.staging.equations import (
    Equation,
    Literal,
    Note,
    Region,
    Var,
    describe_kind,
    vars_of,
)

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["Run"]


class Run:
    """One evaluation of a program."""

    def __init__(self, program: Program, *, check: bool):
        self.program = program
        self.check = check
        self.values: list[Any] = [None] * program.count
        self.last = _last_uses(program)
        self.notes: dict[int, list[Note]] = {}
        for note in program.notes if check else ():
            self.notes.setdefault(note.position, []).append(note)

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the values of the outputs."""
        program, values = self.program, self.values
        for var, value in zip(program.inputs, inputs, strict=True):
            values[var.number] = value
        for constant in program.constants:
            values[constant.var.number] = constant.value
        with np.errstate(all="ignore"):  # a backward pass may divide by zero where it is not used
            self._between(0, len(program.equations), list(program.regions))
        self._hold(len(program.equations))
        own = {constant.var.number for constant in program.constants}
        return [
            _copied(self._of(atom))
            if isinstance(atom, Var) and atom.number in own
            else self._of(atom)
            for atom in program.outputs
        ]

    def _of(self, atom: Any) -> Any:
        if isinstance(atom, Var):
            return self.values[atom.number]
        return atom.value if isinstance(atom, Literal) else atom

    def _between(self, start: int, stop: int, regions: list[Region]) -> None:
        """Evaluate some of the equations, in which there are these regions."""
        position = start
        while regions:
            region = regions.pop(0)
            inner = []
            while regions and regions[0].stop <= region.stop and regions[0].start >= region.start:
                inner.append(regions.pop(0))
            self._equations(position, region.start)
            if region.around is not None:
                with region.around(self.values):
                    self._between(region.start, region.stop, inner)
            elif region.redo is not None and self._meets_tracer(region):
                self._redo(region)
            else:
                self._between(region.start, region.stop, inner)
            position = region.stop
        self._equations(position, stop)

    def _meets_tracer(self, region: Region) -> bool:
        return any(isinstance(self._of(atom), TracerBase) for atom in region.inputs)

    def _redo(self, region: Region) -> None:
        assert region.redo is not None
        made, _ = region.redo([self._of(atom) for atom in region.inputs])
        for atom, value in zip(region.outputs, made, strict=True):
            if isinstance(atom, Var):
                self.values[atom.number] = value

    def _equations(self, start: int, stop: int) -> None:
        values = self.values
        equations = self.program.equations
        for position in range(start, stop):
            if position in self.notes:
                self._hold(position)
            equation = equations[position]
            made = equation.evaluate([self._of(atom) for atom in equation.inputs])
            for var, value in zip(equation.outputs, made, strict=True):
                if var is None:
                    continue
                if shape_of(value) != var.shape:
                    raise self._of_other_shape(equation, var, value)
                values[var.number] = value
            for number in self.last.get(position, ()):
                values[number] = None

    def _of_other_shape(self, equation: Equation, var: Var, value: Any) -> SpecialisedError:
        return SpecialisedError(
            f"the program of {self.program.name} was recorded with {equation.name} giving "
            f"{var.kind}, but it gives {describe_kind(value)} for these arguments",
            where=str(equation.line or user_line()),
            fix="record another program for them",
        )

    def _hold(self, position: int) -> None:
        """Raise if a note at this position does not hold."""
        for note in self.notes.get(position, ()):
            values = [self.values[var.number] for var in note.vars]
            if note.is_of_finite:
                if are_finite(values) or any(map(is_recorded, values)):
                    continue
                was = now = ""
            else:
                value = looked_at(values[0], note.what)
                with np.errstate(all="ignore"):
                    same = np.equal(value, note.value)
                    if value is not None and dtype_of(np.asarray(value)).kind in "fc":
                        same = same | (np.isnan(value) & np.isnan(note.value))
                if np.all(same):
                    continue
                was, now = _short(note.value), _short(value)
            raise SpecialisedError(
                f"the program of {self.program.name} is specialised on {note.what}, which was "
                f"{was} when it was recorded, and is {now} for these arguments"
                if not note.is_of_finite
                else f"the program of {self.program.name} was recorded where all derivatives were "
                "finite, and for these arguments some are not",
                where=f"{note.line or user_line()}; "
                + ", ".join(var.kind for var in note.vars[:3]),
                fix="record another program for these arguments"
                + (", or one with make_program(f, careful=True)" if note.is_of_finite else ""),
            )


def _short(value: Any) -> str:
    value = value.item() if getattr(value, "shape", None) == () else value
    text = " ".join(repr(value).split())
    return text if len(text) <= 40 else describe(value)


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _last_uses(program: Program) -> dict[int, list[int]]:
    """Return the numbers of the variables that are used for the last time, by equation."""
    last: dict[int, int] = {}
    for position, equation in enumerate(program.equations):
        for var in (*vars_of(equation.inputs), *vars_of(equation.outputs)):
            last[var.number] = position
    for note in program.notes:
        for var in note.vars:
            last[var.number] = max(last.get(var.number, 0), note.position)
    for region in program.regions:  # of which the inputs are needed to do it again
        for var in (*vars_of(region.inputs), *vars_of(region.outputs)):
            last[var.number] = max(last.get(var.number, 0), region.stop)
    for var in vars_of(program.outputs):
        last.pop(var.number, None)
    found: dict[int, list[int]] = {}
    for number, position in last.items():
        found.setdefault(position, []).append(number)
    return found
