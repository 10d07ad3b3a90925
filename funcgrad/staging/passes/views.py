"""Views: operations on stretched arrays are done on what was stretched.

The gradient of a sum stretches a number to the shape of what was summed, that of a mean along an
axis a column. NumPy's functions stretch their operands by themselves, in the same order, so that
``broadcast_to(t, shape) * x`` is ``t * x``, to the last bit. What is left of the stretched array is
nothing, or a view. A transposed array is one as it is: BLAS takes it as such.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from funcgrad.core.elementwise import Elementwise
from funcgrad.staging.equations import Equation, Var
from funcgrad.staging.passes.rewriting import Layouts, is_pure, with_inputs

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["with_views"]


def with_views(program: Program, layouts: Layouts) -> Program:
    """Return a program in which functions of elements take operands before they are stretched."""
    if not any(equation.name == "broadcast_to" for equation in program.equations):
        return program
    stretched: dict[int, Var] = {}
    equations = []
    for equation in program.equations:
        if equation.name == "broadcast_to" and is_pure(equation.operation):
            (x,), (out,) = equation.inputs, equation.outputs
            if isinstance(x, Var) and x.python is None and out is not None:
                stretched[out.number] = stretched.get(x.number, x)
        elif _stretches(equation):
            equation = _of_smaller(equation, stretched)
        equations.append(equation)
    return attrs.evolve(program, equations=tuple(equations))


def _stretches(equation: Equation) -> bool:
    """Tell whether a function stretches its operands, and does no more with their shapes."""
    # An array to the power of a number goes ways of its own.
    return (
        isinstance(equation.operation, Elementwise)
        and len(equation.inputs) == 2
        and not equation.params
        and equation.name not in ("power", "float_power")
    )


def _of_smaller(equation: Equation, stretched: dict[int, Var]) -> Equation:
    (out,) = equation.outputs
    inputs: list[Any] = list(equation.inputs)
    if out is None or not any(isinstance(x, Var) and x.number in stretched for x in inputs):
        return equation
    for place, x in enumerate(inputs):
        if not isinstance(x, Var) or x.number not in stretched:
            continue
        other = inputs[1 - place]
        small = stretched[x.number]
        shape = other.shape if isinstance(other, Var) else ()
        if shape and np.broadcast_shapes(small.shape, shape) == out.shape:
            inputs[place] = small
    return with_inputs(equation, tuple(inputs))
