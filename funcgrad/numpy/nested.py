"""Conversion to arrays: `array`, `asarray` and their kin, of tracers and of lists that hold them.

NumPy asks a list's elements for their values, which a tracer refuses. Here such lists are stacked,
level by level. Whatever holds no tracer goes to NumPy's function as it is.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from funcgrad.core.constant import assignable, readable
from funcgrad.core.level import TracerBase, concrete, holds_anywhere, is_tracing
from funcgrad.core.primitive import FUNCTIONS
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import TracerConversionError
from funcgrad.rules.spelling import array_of, holds_tracer

__all__ = [
    "array",
    "asanyarray",
    "asarray",
    "asarray_chkfinite",
    "ascontiguousarray",
    "asfortranarray",
    "isscalar",
]

Order = Literal["K", "A", "C", "F"] | None


def _converted(value: Any, dtype: Any, copy: bool | None, order: Any, ndmin: int = 0) -> Any:
    """Return a tracer for a value that is one or holds some."""
    made: Any = array_of(value)
    fresh = made is not value
    if fresh and copy is False:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    if dtype is not None and np.dtype(dtype) != dtype_of(made):
        if copy is False:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        made, fresh = FUNCTIONS[np.astype](made, dtype), True
    # A number becomes an array without axes.
    if not isinstance(concrete(made), np.ndarray):
        made, fresh = np.copy(made) if _is_traced(made) else np.asarray(made), True
    if not _is_traced(made):  # cast to integers, say
        return np.array(made, order=order, ndmin=ndmin, copy=None)
    if (copy and not fresh) or not _is_laid_out(made, order):
        made = np.copy(made, order=order or "K")
    missing = ndmin - len(shape_of(made))
    return np.reshape(made, (1,) * missing + shape_of(made)) if missing > 0 else made


def _is_traced(value: Any) -> bool:
    return isinstance(value, TracerBase)


def _is_laid_out(made: Any, order: Any) -> bool:
    flags = getattr(concrete(made), "flags", None)
    if flags is None or order in (None, "K", "A"):
        return True
    return bool(flags.c_contiguous if order == "C" else flags.f_contiguous)


def array(
    object: Any,
    dtype: npt.DTypeLike | None = None,
    *,
    copy: bool | None = True,
    order: Order = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: Any = None,
) -> Any:
    """Make an array, also of nested lists that hold traced values.

    Parameters
    ----------
    object : array_like
        An array, a number, or lists and tuples of them to any depth.
    dtype, copy, order, subok, ndmin, like
        As for `numpy.array`.

    Returns
    -------
    ndarray
        In a transform, if `object` holds traced values: a traced array, a copy that can be
        assigned to.

    Examples
    --------
    >>> import funcgrad as fg
    >>> import funcgrad.numpy as fnp
    >>> def f(x):
    ...     return fnp.sum(fnp.array([[x, 2.0], [x * x, 0.0]]))
    >>> fg.grad(f)(3.0)
    7.0
    """
    if not isinstance(object, TracerBase) and not (is_tracing() and holds_tracer(object)):
        try:
            made = np.array(
                object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin, like=like
            )
            # A new array may be assigned to inside a transform, like those of `zeros`.
            return made if made is object else assignable(made)
        except TracerConversionError:  # in a thread of its own
            pass
    return _converted(object, dtype, copy, order, ndmin)


def asarray(
    a: Any,
    dtype: npt.DTypeLike | None = None,
    order: Order = None,
    *,
    device: str | None = None,
    copy: bool | None = None,
    like: Any = None,
) -> Any:
    """Convert to an array, also nested lists that hold traced values.

    Parameters
    ----------
    a : array_like
        An array, which is returned as it is, a number, or lists and tuples of them.
    dtype, order, device, copy, like
        As for `numpy.asarray`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import funcgrad as fg
    >>> import funcgrad.numpy as fnp
    >>> fg.grad(lambda x: fnp.asarray([x, 2 * x]).sum())(1.0)
    3.0
    """
    return _as(np.asarray, a, dtype, order, copy, like)


def asanyarray(
    a: Any,
    dtype: npt.DTypeLike | None = None,
    order: Order = None,
    *,
    device: str | None = None,
    copy: bool | None = None,
    like: Any = None,
) -> Any:
    """Convert to an array, and let subclasses of it pass; as `asarray`.

    Parameters
    ----------
    a : array_like
        An array, a number, or lists and tuples of them, which may be traced.
    dtype, order, device, copy, like
        As for `numpy.asanyarray`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import funcgrad as fg
    >>> import funcgrad.numpy as fnp
    >>> fg.grad(lambda x: fnp.asanyarray([x, 2 * x]).sum())(1.0)
    3.0
    """
    return _as(np.asanyarray, a, dtype, order, copy, like)


def _as(convert: Any, a: Any, dtype: Any, order: Any, copy: bool | None, like: Any) -> Any:
    if not isinstance(a, TracerBase) and not (is_tracing() and holds_tracer(a)):
        try:
            made = convert(a, dtype, order, copy=copy, like=like)
            # Of a list it is a new array, which may be assigned to inside a transform.
            return assignable(made) if isinstance(a, list | tuple) else readable(made)
        except TracerConversionError:  # in a thread of its own
            pass
    return _converted(a, dtype, copy, order)


def ascontiguousarray(a: Any, dtype: npt.DTypeLike | None = None, *, like: Any = None) -> Any:
    """Convert to an array of at least one axis that is contiguous in C order.

    Parameters
    ----------
    a : array_like
        May be traced, or hold traced values.
    dtype, like
        As for `numpy.ascontiguousarray`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import funcgrad as fg
    >>> import funcgrad.numpy as fnp
    >>> fg.grad(lambda x: fnp.ascontiguousarray([x, 2 * x]).sum())(1.0)
    3.0
    """
    if not isinstance(a, TracerBase) and not holds_tracer(a):
        return np.ascontiguousarray(a, dtype, like=like)
    return _converted(a, dtype, None, "C", 1)


def asfortranarray(a: Any, dtype: npt.DTypeLike | None = None, *, like: Any = None) -> Any:
    """Convert to an array that is contiguous in Fortran order.

    Parameters
    ----------
    a : array_like
        May be traced, or hold traced values.
    dtype, like
        As for `numpy.asfortranarray`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import funcgrad as fg
    >>> import funcgrad.numpy as fnp
    >>> fg.grad(lambda x: fnp.asfortranarray([[x, 2 * x]]).sum())(1.0)
    3.0
    """
    if not isinstance(a, TracerBase) and not holds_tracer(a):
        return np.asfortranarray(a, dtype, like=like)
    return _converted(a, dtype, None, "F", 1)


def asarray_chkfinite(a: Any, dtype: npt.DTypeLike | None = None, order: Order = None) -> Any:
    """Convert to an array, and raise if an element is not finite.

    Parameters
    ----------
    a : array_like
        May be traced, or hold traced values.
    dtype, order
        As for `numpy.asarray_chkfinite`.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        An element is NaN or infinite.

    Examples
    --------
    >>> import funcgrad as fg
    >>> import funcgrad.numpy as fnp
    >>> fg.grad(lambda x: fnp.asarray_chkfinite([x, 2 * x]).sum())(1.0)
    3.0
    """
    made = asarray(a, dtype, order)
    if holds_anywhere(np.logical_not(np.isfinite(made)), "whether all is finite"):
        raise ValueError("array must not contain infs or NaNs")
    return made


def isscalar(element: Any) -> bool:
    """Tell whether `element` is a number, traced or not.

    Parameters
    ----------
    element : object

    Returns
    -------
    bool

    Examples
    --------
    >>> import funcgrad as fg
    >>> import funcgrad.numpy as fnp
    >>> fg.grad(lambda x: x * fnp.isscalar(x))(2.0)
    1.0
    """
    return bool(np.isscalar(concrete(element)))
