"""Constants: computes what depends on constants alone, and takes uniform arrays for numbers.

An array of which all elements are the same, beside another of the shape of the result, does what
the number does, without being read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.core.elementwise import Elementwise
from funcgrad.staging.equations import Constant, Equation, Literal, Var
from funcgrad.staging.passes.rewriting import Layouts, Replacing, is_pure

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["with_constants_folded"]

# Bytes of the largest result that is kept.
_MANY = 1 << 16


def with_constants_folded(program: Program, layouts: Layouts) -> Program:
    """Return a program that computes nothing of constants alone."""
    made = Replacing(program)
    values = {constant.var.number: constant.value for constant in program.constants}
    uniform: dict[int, Literal | None] = {}
    constants = list(program.constants)
    for equation in program.equations:
        made.begin()
        inputs = made.inputs(equation)
        if values and isinstance(equation.operation, Elementwise):
            inputs = _with_numbers(equation, inputs, values, uniform)
        if _is_foldable(equation, inputs, values):
            folded = _folded(equation, inputs, values)
            if folded is not None:
                var = equation.outputs[0]
                assert var is not None
                if isinstance(folded, np.ndarray):
                    constants.append(Constant(var, folded))
                    values[var.number] = folded
                    made.replaced[var.number] = var
                else:
                    made.replaced[var.number] = Literal(folded)
                continue
        if inputs is not equation.inputs:
            made.replaced.setdefault(-1, Literal(None))  # something has changed
        made.keep(equation, inputs)
    return made.program_now(constants) if made.replaced else program


def _with_numbers(
    equation: Equation,
    inputs: tuple[Any, ...],
    values: dict[int, Any],
    uniform: dict[int, Literal | None],
) -> tuple[Any, ...]:
    if len(inputs) != 2 or equation.params:
        return inputs
    out = equation.outputs[0]
    for place, (atom, other) in enumerate((inputs, inputs[::-1])):
        if (
            type(atom) is Var
            and atom.number in values
            and type(other) is Var
            and out is not None
            and other.shape == out.shape
            and other.shape
            and other.dtype == atom.dtype
            and atom.shape
        ):
            if atom.number not in uniform:
                uniform[atom.number] = _uniform(values[atom.number])
            number = uniform[atom.number]
            if number is not None:
                return (number, other) if place == 0 else (other, number)
    return inputs


def _uniform(value: Any) -> Literal | None:
    """Return the element of an array that has it everywhere."""
    if type(value) is not np.ndarray or not value.size or value.dtype.kind not in "fciub":
        return None
    first = value.flat[0]
    if value.flat[-1] != first or not np.all(value == first):  # a NaN is no number to be had here
        return None
    if first == 0 and value.dtype.kind == "c":
        return None
    if first == 0 and np.any(np.signbit(value) != np.signbit(first)):  # zeros of either sign
        return None
    return Literal(first)


def _is_foldable(equation: Equation, inputs: tuple[Any, ...], values: dict[int, Any]) -> bool:
    for atom in inputs:
        if type(atom) is Var and atom.number not in values:
            return False
    operation = equation.operation
    out = equation.outputs[0]
    return (
        is_pure(operation)
        and len(equation.outputs) == 1
        and out is not None
        and out.dtype.itemsize * int(np.prod(out.shape, dtype=int)) <= _MANY
    )


def _folded(equation: Equation, inputs: tuple[Any, ...], values: dict[int, Any]) -> Any:
    given = [values[atom.number] if type(atom) is Var else atom.value for atom in inputs]
    try:
        with np.errstate(all="ignore"):
            if equation.function is not None:
                made = equation.function(*given)
            else:
                made = equation.operation.forward(*given, **equation.params)
    except Exception:  # it is raised when the program runs, as in the function
        return None
    if isinstance(made, tuple):
        return None
    return made.copy(order="K") if isinstance(made, np.ndarray) else made
