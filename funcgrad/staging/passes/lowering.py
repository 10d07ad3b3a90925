"""Lowering: writes operations as ufuncs that do the same faster, to the last bit.

What is a ufunc of its argument and a number (`relu`) is written as that one, so that it can go into
memory that is there, and into blocks. `where` of large arrays, which takes a branch for each
element, becomes an operation on the bits of its operands: with a mask of ones or zeros in all bits,
``where(m, x, 0)`` is ``x & mask``, and ``where(m, x, y)`` is ``y ^ ((x ^ y) & mask)``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.core.primitive import DECLARED, UFUNCS
from funcgrad.staging.equations import Equation, Literal, Var
from funcgrad.staging.passes.rewriting import VIEW, Layouts, Writing, layout_of, number_of

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["lowered"]

# Primitive -> ufunc, and its second operand.
_UFUNCS: dict[str, tuple[Any, Any]] = {"relu": (np.maximum, 0)}
# Elements of the smallest array of which `where` is done by bits.
_MANY = 4096
_INTEGERS = {4: np.dtype(np.int32), 8: np.dtype(np.int64)}


def lowered(program: Program, layouts: Layouts) -> Program:
    """Return a program in which some operations are ufuncs; note the layouts of new variables."""
    if not any(e.name in _UFUNCS or e.name == "where" for e in program.equations):
        return program
    lowering = _Lowering(program, layouts)
    return lowering.rewritten(lowering.write)


class _Lowering(Writing):
    def write(self, equation: Equation) -> bool:
        """Write an equation as ufuncs, if it can be."""
        if DECLARED.get(equation.name) is not equation.operation:
            return False
        if equation.name in _UFUNCS:
            return self._as_ufunc(equation)
        return equation.name == "where" and self._by_bits(equation)

    def _as_ufunc(self, equation: Equation) -> bool:
        (x,) = equation.inputs
        if not isinstance(x, Var) or not x.shape or equation.params:
            return False
        ufunc, number = _UFUNCS[equation.name]
        inputs = x, Literal(number)
        self.equations.append(
            Equation(UFUNCS[ufunc], inputs, {}, equation.outputs, False, ufunc, equation.line)
        )
        return True

    def _by_bits(self, equation: Equation) -> bool:
        """Write a `where` by bits, if it can be."""
        (out,) = equation.outputs
        mask, x, y = equation.inputs
        if out is None or out.dtype.kind not in "fi" or out.dtype.itemsize not in _INTEGERS:
            return False
        layout = layout_of(out, self.layouts)
        if math.prod(out.shape) < _MANY or layout is None:
            return False
        if not self._is_alike(mask, out, layout, np.dtype(bool)):
            return False
        is_x = self._is_alike(x, out, layout, out.dtype)
        is_y = self._is_alike(y, out, layout, out.dtype)
        if not (is_x and (is_y or _is_zero(y))) and not (is_y and _is_zero(x)):
            return False
        integer: Any = _INTEGERS[out.dtype.itemsize]
        narrow = self._view(mask, np.dtype(np.int8), out, equation)
        if not is_x:  # zeros where the mask holds
            bits = self._ufunc(np.subtract, (narrow, Literal(integer.type(1))), integer, equation)
        else:
            bits = self._ufunc(np.multiply, (narrow, Literal(integer.type(-1))), integer, equation)
        if is_x and is_y:
            first = self._view(x, integer, out, equation)
            second = self._view(y, integer, out, equation)
            differ = self._ufunc(np.bitwise_xor, (first, second), integer, equation)
            taken = self._ufunc(np.bitwise_and, (differ, bits), integer, equation)
            made = self._ufunc(np.bitwise_xor, (second, taken), integer, equation)
        else:
            kept = self._view(x if is_x else y, integer, out, equation)
            made = self._ufunc(np.bitwise_and, (kept, bits), integer, equation)
        self.equations.append(
            Equation(VIEW, (made,), {"dtype": out.dtype}, (out,), False, None, equation.line)
        )
        return True

    def _is_alike(self, atom: Any, out: Var, layout: str, dtype: Any) -> bool:
        return (
            isinstance(atom, Var)
            and atom.shape == out.shape
            and atom.dtype == dtype
            and layout_of(atom, self.layouts) == layout
        )

    def _view(self, x: Any, dtype: Any, out: Var, equation: Equation) -> Var:
        if x.dtype == dtype:
            return x  # type: ignore[no-any-return]
        made = self.new(out.shape, dtype, self.layouts[out.number])
        self.equations.append(
            Equation(VIEW, (x,), {"dtype": dtype}, (made,), False, None, equation.line)
        )
        return made

    def _ufunc(self, ufunc: Any, inputs: tuple[Any, ...], dtype: Any, equation: Equation) -> Var:
        (out,) = equation.outputs
        assert out is not None
        made = self.new(out.shape, dtype, self.layouts[out.number])
        self.equations.append(
            Equation(UFUNCS[ufunc], inputs, {}, (made,), False, ufunc, equation.line)
        )
        return made


def _is_zero(atom: Any) -> bool:
    """Tell whether an input is a zero, all bits of which are zeros."""
    number = number_of(atom)
    return (
        isinstance(number, int | float | np.floating | np.integer)
        and number == 0
        and not np.signbit(number)
    )
