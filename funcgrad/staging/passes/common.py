"""Common subexpressions: computes once what is computed twice of the same."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.staging.equations import Equation, Literal, Var
from funcgrad.staging.passes.rewriting import Layouts, Replacing, is_pure

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["with_common_subexpressions"]


def with_common_subexpressions(program: Program, layouts: Layouts) -> Program:
    """Return a program in which no equation repeats another."""
    made = Replacing(program)
    known: dict[Any, tuple[Var | None, ...]] = {}
    for equation in program.equations:
        made.begin()
        inputs = made.inputs(equation)
        key = _key(equation, inputs)
        if key is not None:
            before = known.get(key)
            if before is not None:
                for var, other in zip(equation.outputs, before, strict=True):
                    if var is not None and other is not None:
                        made.replaced[var.number] = other
                continue
            known[key] = equation.outputs
        made.keep(equation, inputs)
    return made.program_now()


def _key(equation: Equation, inputs: Any) -> Any:
    """Return what two equations have in common that compute the same; None if that is unknown."""
    operation, function = equation.operation, equation.function
    if not is_pure(operation):
        return None  # it may do more than compute
    parts: list[Any] = [operation.name]
    if function is not None:
        if type(function) is partial:
            return None
        parts.append(function)
    for atom in inputs:
        if type(atom) is Var:
            parts.append(atom.number)
        else:
            parts.append(_of_value(atom))
    for name, value in equation.params.items():
        parts.append(name)
        parts.append(_static(value))
    key = tuple(parts)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _of_value(atom: Literal) -> Any:
    value = atom.value
    return type(value), repr(value)


def _static(value: Any) -> Any:
    """Return a hashable that is equal for the same static values alone."""
    kind = type(value)
    if kind is slice:
        return slice, _static(value.start), _static(value.stop), _static(value.step)
    if kind is tuple or kind is list:
        return kind, tuple(map(_static, value))
    if kind is np.ndarray:
        if value.nbytes > 1024 or value.dtype.kind == "O":
            return id(value)
        return value.dtype, value.shape, value.tobytes()
    if kind is float or kind is complex or kind is int or kind is bool:
        return kind, repr(value)
    return value
