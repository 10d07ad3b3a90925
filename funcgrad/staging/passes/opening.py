"""Opening: writes an operation that is a few ufuncs in a row as those.

A layer is one operation so that eager code is short. In a program its parts are better by
themselves: each can write into memory that is there, and what is done for each element goes into
chains with what follows. The parts are what the operation's own forward function calls, so that the
results are the same to the last bit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.core.primitive import DECLARED, FUNCTIONS, UFUNCS
from funcgrad.staging.equations import Equation, Var
from funcgrad.staging.passes.rewriting import Layouts, Writing, layout_of

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["opened"]


def opened(program: Program, layouts: Layouts) -> Program:
    """Return a program in which layers are products and sums; note layouts of new variables."""
    if not any(equation.name in _PARTS for equation in program.equations):
        return program
    opening = _Opening(program, layouts)
    return opening.rewritten(opening.write)


class _Opening(Writing):
    line: Any = None  # of the equation that is written

    def write(self, equation: Equation) -> bool:
        """Write an equation by its parts, if it has some."""
        parts = _PARTS.get(equation.name)
        if parts is None or DECLARED.get(equation.name) is not equation.operation:
            return False
        self.line = equation.line
        return bool(parts(self, equation))

    def add(self, operation: Any, inputs: tuple[Any, ...], out: Var, **params: Any) -> Var:
        """Add an equation."""
        function = getattr(operation, "ufunc", None)
        self.equations.append(
            Equation(operation, inputs, params, (out,), False, function, self.line)
        )
        return out

    def reshape(self, x: Var, shape: tuple[int, ...]) -> Var:
        """Add a reshape, if `x` has not this shape."""
        if x.shape == shape:
            return x
        made = self.new(shape, x.dtype, "C")
        return self.add(FUNCTIONS[np.reshape], (x,), made, shape=shape, order="C", copy=None)


def _affine(opening: _Opening, equation: Equation) -> bool:
    """Write ``x @ weight.T + bias`` as a product, of matrices if `x` is a stack, and a sum."""
    x, weight, bias = equation.inputs
    (out,) = equation.outputs
    if not isinstance(x, Var) or not isinstance(weight, Var) or out is None or not x.shape:
        return False
    layout = layout_of(weight, opening.layouts)
    if layout not in ("C", "F"):
        return False
    *lead, size = x.shape
    outputs = weight.shape[0]
    # What is one row or one column is in both orders, and is said to be in C.
    turned = "F" if layout == "C" and min(weight.shape) > 1 else "C"
    matrix = opening.new(weight.shape[::-1], weight.dtype, turned)
    opening.add(FUNCTIONS[np.transpose], (weight,), matrix, axes=None)
    many = len(lead) > 1
    rows = opening.reshape(x, (math.prod(lead), size)) if many else x
    product = opening.new((*rows.shape[:-1], outputs), out.dtype, "C")
    opening.add(FUNCTIONS[np.matmul], (rows, matrix), product)
    product = opening.reshape(product, out.shape)
    opening.add(UFUNCS[np.add], (product, bias), out)
    return True


_PARTS: dict[str, Any] = {"affine": _affine}
