"""Results like their primals: a Python float for a Python float, a fresh array for an array.

A derivative has the kind of what it belongs to. That matters beyond neatness: the gradient of a
Python float stays weakly typed, so an update with it does not turn float32 arrays into float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.level import TracerBase, concrete, is_array
from funcgrad.core.primitive import Primitive
from funcgrad.core.zero import dtype_of, fit, shape_of

__all__ = ["like", "python_number", "zeros_like"]


def _python_number(x: Any) -> Any:
    return x.item() if hasattr(x, "item") else x


# Not a NumPy function: the conversion that Python code writes as ``float(x)``, but traced.
python_number = Primitive(_python_number, name="python_number")


@python_number.def_jvp
def python_number_jvp(primals: Any, tangents: Any, out: Any) -> Any:
    """Convert the tangent likewise."""
    (x_dot,) = tangents
    return python_number.bind(x_dot)


@python_number.def_batch
def python_number_batch(args: Any, batched: Any) -> Any:
    """Leave examples in their array: no Python number holds several."""
    (x,) = args
    return x


@python_number.def_vjp
def python_number_vjp(primals: Any, out: Any) -> Any:
    """Hand the cotangent back as it is."""
    (x,) = primals
    dtype = dtype_of(x)

    def python_number_pullback(out_bar: Any) -> Any:
        return fit(out_bar, (), dtype)

    return python_number_pullback


def zeros_like(primal: Any) -> Any:
    """Return a zero of the kind of `primal`."""
    if type(primal) is np.ndarray:
        return np.zeros(primal.shape, primal.dtype)
    value = concrete(primal)
    if isinstance(value, float | complex) and not isinstance(value, np.generic):
        return type(value)(0)
    if not is_array(primal):
        return dtype_of(primal).type(0)
    return np.zeros_like(primal)


def like(bar: Any, primal: Any, seen: set[int]) -> Any:
    """Return `bar` as the kind of value that `primal` is, sharing memory with nothing.

    Parameters
    ----------
    bar : array_like or None
        A derivative of the shape of `primal`; None is a structural zero.
    primal : array_like
        What it belongs to; a traced value counts as what it stands for.
    seen : set of int
        The ids of arrays that are already somebody else's; `bar` is added.
    """
    if bar is None:
        return zeros_like(primal)
    if type(primal) is np.ndarray and type(bar) is np.ndarray:  # nearly always
        if bar.dtype is not primal.dtype and bar.dtype != primal.dtype:
            bar = fit(bar, primal.shape, primal.dtype)
        if bar.base is not None or id(bar) in seen or not bar.flags.writeable:
            bar = bar.copy()
        seen.add(id(bar))
        return bar
    bar = fit(bar, shape_of(primal), dtype_of(primal))
    value = concrete(primal)
    if isinstance(value, float | complex) and not isinstance(value, np.generic):
        return _number(bar, type(value))
    if not is_array(primal):
        return _scalar(bar, dtype_of(primal))
    if isinstance(value, np.ndarray):
        if isinstance(bar, TracerBase) or isinstance(primal, TracerBase):
            return _traced_array(bar, primal)
        if isinstance(bar, np.generic | np.ndarray | float | complex):
            return np.array(bar, dtype=primal.dtype)
        return bar
    if isinstance(bar, np.ndarray | np.generic) and not isinstance(primal, TracerBase):
        return zeros_like(primal) + bar  # of another kind of array, which the primal is
    return bar


def _scalar(bar: Any, dtype: np.dtype[Any]) -> Any:
    """Return a derivative as a NumPy scalar."""
    if isinstance(bar, TracerBase):
        return bar[()] if is_array(bar) else bar  # type: ignore[index]
    return dtype.type(bar) if isinstance(bar, np.ndarray | float | complex) else bar


def _number(bar: Any, kind: type) -> Any:
    """Return a derivative as a Python number."""
    if isinstance(bar, TracerBase):
        return bar if type(concrete(bar)) is kind else python_number.bind(bar)
    return complex(bar) if kind is complex else float(bar)


def _traced_array(bar: Any, primal: Any) -> Any:
    """Return a derivative, inside of a transform, as an array that may be assigned to."""
    if not is_array(bar) and shape_of(bar) == ():
        bar = np.copy(bar)  # operations on a 0-d array made it a scalar
    value = concrete(bar)
    if isinstance(bar, TracerBase):
        if isinstance(value, np.ndarray) and not value.flags.writeable:
            return bar.copy()  # type: ignore[attr-defined]
        return type(bar)(bar._trace, bar._value, bar._extra)  # a handle of its own
    return np.full_like(primal, bar)
