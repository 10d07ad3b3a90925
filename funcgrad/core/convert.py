"""Results like their primals: a Python float for a Python float, a fresh array for an array.

A derivative has the kind of what it belongs to. That matters beyond neatness: the gradient of a
Python float stays weakly typed, so an update with it does not turn float32 arrays into float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.level import TracerBase
from funcgrad.core.primitive import Primitive
from funcgrad.core.zero import dtype_of, fit, shape_of

__all__ = ["like", "python_number", "zeros_like"]


def _python_number(x: Any) -> Any:
    return x.item() if hasattr(x, "item") else x


# Not a NumPy function: the conversion that Python code writes as ``float(x)``, but traced.
python_number = Primitive(_python_number, name="python_number")


@python_number.def_jvp
def python_number_jvp(primals: Any, tangents: Any, out: Any) -> Any:
    """The tangent is converted likewise."""
    (x_dot,) = tangents
    return python_number.bind(x_dot)


@python_number.def_vjp
def python_number_vjp(primals: Any, out: Any) -> Any:
    """The cotangent goes back as it is."""
    (x,) = primals
    dtype = dtype_of(x)

    def python_number_pullback(out_bar: Any) -> Any:
        return fit(out_bar, (), dtype)

    return python_number_pullback


def zeros_like(primal: Any) -> Any:
    """Return a zero of the kind of `primal`."""
    if isinstance(primal, float | complex) and not isinstance(primal, np.generic):
        return type(primal)(0)
    if isinstance(primal, np.generic):
        return primal.dtype.type(0)
    if type(primal) is np.ndarray:
        return np.zeros(primal.shape, primal.dtype)
    return np.zeros_like(primal)


def like(bar: Any, primal: Any, seen: set[int]) -> Any:
    """Return `bar` as the kind of value that `primal` is, sharing memory with nothing.

    Parameters
    ----------
    bar : array_like or None
        A derivative of the shape of `primal`; None is a structural zero.
    primal : array_like
        What it belongs to.
    seen : set of int
        The ids of arrays that are already somebody else's; `bar` is added.
    """
    if bar is None:
        return zeros_like(primal)
    kind = type(primal)
    if kind is np.ndarray:
        if type(bar) is np.ndarray:
            if bar.dtype is not primal.dtype and bar.dtype != primal.dtype:
                bar = fit(bar, primal.shape, primal.dtype)
            if bar.base is not None or id(bar) in seen or not bar.flags.writeable:
                bar = bar.copy()
            seen.add(id(bar))
            return bar
        if not isinstance(bar, TracerBase):
            return np.array(bar, dtype=primal.dtype)  # 0-d: operations made it a scalar
        return fit(bar, primal.shape, primal.dtype)
    if kind is float or kind is complex:
        if isinstance(bar, TracerBase):
            return python_number.bind(fit(bar, (), dtype_of(primal)))
        return kind(bar) if kind is complex else float(np.real(bar))
    bar = fit(bar, shape_of(primal), dtype_of(primal))
    if isinstance(primal, np.generic) and isinstance(bar, np.ndarray | float | complex):
        return primal.dtype.type(bar)
    return bar
