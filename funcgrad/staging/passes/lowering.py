"""Lowering: writes operations as ufuncs that do the same faster, to the last bit.

What is a ufunc of its argument and a number (`relu`) is written as that one, so that it can go into
memory that is there, and into blocks. `where` of large arrays, which takes a branch for each
element, becomes an operation on the bits of its operands: with a mask of ones or zeros in all bits,
``where(m, x, 0)`` is ``x & mask``, and ``where(m, x, y)`` is ``y ^ ((x ^ y) & mask)``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from funcgrad.core.primitive import DECLARED, UFUNCS
from funcgrad.staging.equations import Equation, Literal, Var
from funcgrad.staging.passes.rewriting import VIEW, Layouts, layout_of, number_of

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
    return _Lowering(program, layouts).program()


class _Lowering:
    def __init__(self, source: Program, layouts: Layouts):
        self.source = source
        self.layouts = layouts
        self.count = source.count
        self.equations: list[Equation] = []

    def program(self) -> Program:
        source = self.source
        positions = []
        for equation in source.equations:
            positions.append(len(self.equations))
            if DECLARED.get(equation.name) is not equation.operation:
                self.equations.append(equation)
            elif equation.name in _UFUNCS:
                self.equations.append(_as_ufunc(equation))
            elif equation.name != "where" or not self._by_bits(equation):
                self.equations.append(equation)
        positions.append(len(self.equations))
        return attrs.evolve(
            source,
            equations=tuple(self.equations),
            notes=tuple([attrs.evolve(n, position=positions[n.position]) for n in source.notes]),
            count=self.count,
        )

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
        new = Var(-1, out.shape, integer, None)
        narrow = self._view(mask, np.dtype(np.int8), out, equation)
        if not is_x:  # zeros where the mask holds
            bits = self._ufunc(np.subtract, (narrow, Literal(integer.type(1))), new, equation)
        else:
            bits = self._ufunc(np.multiply, (narrow, Literal(integer.type(-1))), new, equation)
        if is_x and is_y:
            first = self._view(x, integer, out, equation)
            second = self._view(y, integer, out, equation)
            differ = self._ufunc(np.bitwise_xor, (first, second), new, equation)
            taken = self._ufunc(np.bitwise_and, (differ, bits), new, equation)
            made = self._ufunc(np.bitwise_xor, (second, taken), new, equation)
        else:
            kept = self._view(x if is_x else y, integer, out, equation)
            made = self._ufunc(np.bitwise_and, (kept, bits), new, equation)
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

    def _new(self, like: Var, out: Var, dtype: Any) -> Var:
        made = Var(self.count, like.shape, dtype, None)
        self.count += 1
        self.layouts[made.number] = self.layouts[out.number]
        return made

    def _view(self, x: Any, dtype: Any, out: Var, equation: Equation) -> Var:
        if x.dtype == dtype:
            return x  # type: ignore[no-any-return]
        made = self._new(out, out, dtype)
        self.equations.append(
            Equation(VIEW, (x,), {"dtype": dtype}, (made,), False, None, equation.line)
        )
        return made

    def _ufunc(self, ufunc: Any, inputs: tuple[Any, ...], like: Var, equation: Equation) -> Var:
        (out,) = equation.outputs
        assert out is not None
        made = self._new(like, out, like.dtype)
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


def _as_ufunc(equation: Equation) -> Equation:
    (x,) = equation.inputs
    if not isinstance(x, Var) or not x.shape or equation.params:
        return equation
    ufunc, number = _UFUNCS[equation.name]
    return Equation(
        UFUNCS[ufunc], (x, Literal(number)), {}, equation.outputs, False, ufunc, equation.line
    )
