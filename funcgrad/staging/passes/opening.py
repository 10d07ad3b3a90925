"""Opening: writes an operation that is a few ufuncs in a row as those.

A layer is one operation so that eager code is short. In a program its parts are better by
themselves: each can write into memory that is there, and what is done for each element goes into
chains with what follows. The parts are what the operation's own forward function calls, so that the
results are the same to the last bit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from funcgrad.core.primitive import DECLARED, FUNCTIONS, UFUNCS
from funcgrad.staging.equations import Equation, Var
from funcgrad.staging.passes.rewriting import Layouts, layout_of

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["opened"]


def opened(program: Program, layouts: Layouts) -> Program:
    """Return a program in which layers are products and sums; note layouts of new variables."""
    if not any(equation.name in _PARTS for equation in program.equations):
        return program
    return _Opening(program, layouts).program()


class _Opening:
    def __init__(self, source: Program, layouts: Layouts):
        self.source = source
        self.layouts = layouts
        self.count = source.count
        self.equations: list[Equation] = []
        self.line: Any = None

    def program(self) -> Program:
        source = self.source
        positions = []
        for equation in source.equations:
            positions.append(len(self.equations))
            parts = _PARTS.get(equation.name)
            is_known = DECLARED.get(equation.name) is equation.operation
            self.line = equation.line
            if parts is None or not is_known or not parts(self, equation):
                self.equations.append(equation)
        positions.append(len(self.equations))
        return attrs.evolve(
            source,
            equations=tuple(self.equations),
            notes=tuple([attrs.evolve(n, position=positions[n.position]) for n in source.notes]),
            count=self.count,
        )

    def new(self, shape: tuple[int, ...], dtype: Any, layout: str) -> Var:
        """Return a new variable of an array that lies so in memory."""
        made = Var(self.count, shape, dtype, None)
        self.count += 1
        self.layouts[made.number] = layout
        return made

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
