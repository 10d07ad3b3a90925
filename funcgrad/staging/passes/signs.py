"""Signs: leaves out two negations in a chain of products, which are none.

The derivative of ``1 / (1 + exp(-x))`` negates twice what it multiplies. The sign of a product is
exact, so that the results are the same to the last bit.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from funcgrad.staging.equations import Equation, Var
from funcgrad.staging.passes.rewriting import Layouts, Replacing, counted_uses, layout_of, makers

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["with_signs"]

# How many products are looked through.
_DEPTH = 8
_PRODUCTS = {
    "multiply": (np.multiply, operator.mul),
    "divide": (np.divide, operator.truediv),
}


def with_signs(program: Program, layouts: Layouts) -> Program:
    """Return a program in which no product is negated twice."""
    made_by, uses = makers(program), counted_uses(program)

    def negated(var: object, depth: int) -> Var | None:
        """Return a result of a negation that a product is made of, and nothing else is."""
        if not isinstance(var, Var) or uses[var.number] != 1 or not depth:
            return None
        equation = made_by.get(var.number)
        if equation is None or var.number in gone:
            return None
        if _is_negation(equation, layouts):
            return var
        if equation.function in _PRODUCTS.get(equation.name, ()) and var.dtype.kind == "f":
            for atom in equation.inputs:
                found = negated(atom, depth - 1)
                if found is not None:
                    return found
        return None

    gone: set[int] = set()
    for equation in program.equations:
        if _is_negation(equation, layouts):
            (out,) = equation.outputs
            inner = negated(equation.inputs[0], _DEPTH)
            if out is not None and inner is not None:
                gone.update((out.number, inner.number))
    if not gone:
        return program
    made = Replacing(program)
    for equation in program.equations:
        made.begin()
        inputs = made.inputs(equation)
        (first, *_) = equation.outputs
        if first is not None and first.number in gone:
            made.replaced[first.number] = inputs[0]
        else:
            made.keep(equation, inputs)
    return made.program_now()


def _is_negation(equation: Equation, layouts: Layouts) -> bool:
    if equation.name != "negative" or equation.function not in (np.negative, operator.neg):
        return False
    (x,), (out,) = equation.inputs, equation.outputs
    return (
        isinstance(x, Var)
        and out is not None
        and out.dtype.kind == "f"
        and x.dtype == out.dtype
        and x.python is out.python
        and bool(out.shape)
        and layout_of(x, layouts) == layout_of(out, layouts)
    )
