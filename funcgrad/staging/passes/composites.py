"""Composites: functions of networks are written as the ufuncs and sums that they are made of.

As one operation each, `softmax`, `sigmoid` and their kin have derivatives that overflow nowhere and
keep little, but a program that is compiled has them behind it. As ufuncs they are written into
memory that is there, share what they have in common, and go into blocks. The parts are those of the
functions in `funcgrad.rules.nn`, in their order, so that the results are the same to the last bit;
the laws of `jit` hold them to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.core.primitive import DECLARED, UFUNCS
from funcgrad.staging.equations import Equation, Literal, Var
from funcgrad.staging.passes.rewriting import LARGEST, SHIFTED, Layouts, Writing, layout_of

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["with_parts"]


def with_parts(program: Program, layouts: Layouts) -> Program:
    """Return a program with the parts of composites; note the layouts of new variables."""
    if not any(equation.name in _PARTS for equation in program.equations):
        return program
    parts = _Parts(program, layouts)
    return parts.rewritten(parts.write)


class _Parts(Writing):
    _line: Any = None
    _layout = "C"

    def write(self, equation: Equation) -> bool:
        """Write an equation by its parts, if it has some."""
        write = _PARTS.get(equation.name)
        if write is None or not self.begins(equation):
            return False
        write(self, equation.inputs[0], equation.params.get("axis"), equation)
        return True

    def begins(self, equation: Equation) -> bool:
        """Tell whether an equation can be written by parts, and begin to."""
        x, out = equation.inputs[0], equation.outputs[0]
        if DECLARED.get(equation.name) is not equation.operation or out is None:
            return False
        if not isinstance(x, Var) or not x.shape or x.dtype not in (np.float32, np.float64):
            return False
        layout = layout_of(x, self.layouts)
        axis = equation.params.get("axis")
        if axis is not None:
            # Sums go in the order of the memory, which is known of the parts of C order.
            if layout != "C" or not axis or 0 in x.shape:
                return False
            if type(equation.params.get("eps", 0.0)) not in (int, float):
                return False
            if equation.name == "log_sum_exp" and len(axis) == len(x.shape):
                return False
        elif layout is None or layout != layout_of(out, self.layouts):
            return False
        self._line, self._layout = equation.line, layout
        return True

    def __call__(self, function: Any, *inputs: Any, out: Var | None = None, **params: Any) -> Var:
        """Write one operation: a ufunc, or a primitive with what is static."""
        atoms = tuple([x if isinstance(x, Var) else Literal(x) for x in inputs])
        if out is None:
            (first, *_) = found = [atom for atom in atoms if isinstance(atom, Var)]
            shape = np.broadcast_shapes(*[var.shape for var in found])
            if "axis" in params:
                shape = tuple(
                    [1 if i in params["axis"] else size for i, size in enumerate(first.shape)]
                )
            out = self.new(shape, first.dtype, self._layout)
        is_ufunc = isinstance(function, np.ufunc)
        self.equations.append(
            Equation(
                UFUNCS[function] if is_ufunc else function,
                atoms,
                params,
                (out,),
                False,
                function if is_ufunc else None,
                self._line,
            )
        )
        return out

    def total(self, name: str, x: Var, axis: Any) -> Var:
        """Write a sum or a mean."""
        return self(DECLARED[name], x, axis=axis, dtype=None, keepdims=True)


def _sigmoid_of(w: _Parts, x: Var, out: Var | None = None) -> Var:
    e = w(np.exp, w(np.minimum, x, 0))
    return w(np.divide, e, w(np.add, e, w(np.exp, w(np.negative, w(np.maximum, x, 0)))), out=out)


def _sigmoid(w: _Parts, x: Var, axis: Any, equation: Equation) -> None:
    _sigmoid_of(w, x, equation.outputs[0])


def _softplus(w: _Parts, x: Var, axis: Any, equation: Equation) -> None:
    positive = w(np.maximum, x, 0)
    rest = w(np.log1p, w(np.exp, w(np.negative, w(np.absolute, x))))
    w(np.add, positive, rest, out=equation.outputs[0])


# As in `funcgrad.rules.nn.activations`.
_SLOPE, _CUBE, _FAR = math.sqrt(8 / math.pi), math.sqrt(8 / math.pi) * 0.044715, 50


def _gelu_tanh(w: _Parts, x: Var, axis: Any, equation: Equation) -> None:
    y = w(np.minimum, w(np.maximum, x, -_FAR), _FAR)
    inner = w(np.multiply, y, w(np.add, _SLOPE, w(np.multiply, _CUBE, w(np.square, y))))
    w(np.multiply, x, _sigmoid_of(w, inner), out=equation.outputs[0])


def _shifted(w: _Parts, x: Var, axis: Any) -> tuple[Var, Var]:
    largest = w(LARGEST, x, axis=axis)
    shifted = w(SHIFTED, x, largest)
    return shifted, largest


def _softmax(w: _Parts, x: Var, axis: Any, equation: Equation) -> None:
    e = w(np.exp, _shifted(w, x, axis)[0])
    w(np.divide, e, w.total("reduce_sum", e, axis), out=equation.outputs[0])


def _log_softmax(w: _Parts, x: Var, axis: Any, equation: Equation) -> None:
    shifted, _ = _shifted(w, x, axis)
    total = w.total("reduce_sum", w(np.exp, shifted), axis)
    w(np.subtract, shifted, w(np.log, total), out=equation.outputs[0])


def _log_sum_exp(w: _Parts, x: Var, axis: Any, equation: Equation) -> None:
    shifted, largest = _shifted(w, x, axis)
    total = w(np.log, w.total("reduce_sum", w(np.exp, shifted), axis))
    (out,) = equation.outputs
    if equation.params["keepdims"]:
        w(np.add, largest, total, out=out)
    else:
        w(DECLARED["squeeze"], w(np.add, largest, total), axis=axis, out=out)


def _standardize(w: _Parts, x: Var, axis: Any, equation: Equation) -> None:
    out, inverse = equation.outputs
    centred = w(np.subtract, x, w.total("reduce_mean", x, axis))
    variance = w.total("reduce_mean", w(np.square, centred), axis)
    root = w(np.sqrt, w(np.add, variance, equation.params["eps"]))
    w(np.multiply, centred, w(np.divide, 1, root, out=inverse), out=out)


def _root_mean_square(w: _Parts, x: Var, axis: Any, equation: Equation) -> None:
    out, inverse = equation.outputs
    square = w.total("reduce_mean", w(np.square, x), axis)
    root = w(np.sqrt, w(np.add, square, equation.params["eps"]))
    w(np.multiply, x, w(np.divide, 1, root, out=inverse), out=out)


_PARTS: dict[str, Callable[[_Parts, Any, Any, Equation], None]] = {
    "gelu_tanh": _gelu_tanh,
    "log_softmax": _log_softmax,
    "log_sum_exp": _log_sum_exp,
    "root_mean_square": _root_mean_square,
    "sigmoid": _sigmoid,
    "softmax": _softmax,
    "softplus": _softplus,
    "standardize": _standardize,
}
