"""Creation of arrays that a transform in progress can let traced values into.

``y = np.zeros(3)`` is a plain array, in which ``y[0] = x`` has no place for the derivative of `x`.
These functions return, inside a transform, constants that may be assigned to
(`funcgrad.core.constant`), and NumPy's arrays outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, SupportsIndex

import numpy as np
import numpy.typing as npt

from funcgrad.core.constant import assignable
from funcgrad.rules import creation
from funcgrad.rules.spelling import holds_tracer

__all__ = [
    "arange",
    "copy",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "geomspace",
    "identity",
    "linspace",
    "logspace",
    "ones",
    "ones_like",
    "tri",
    "zeros",
    "zeros_like",
]

Shape = SupportsIndex | Sequence[SupportsIndex]


def zeros(
    shape: Shape, dtype: npt.DTypeLike | None = None, order: Literal["C", "F"] = "C", **kwargs: Any
) -> Any:
    """Make an array of zeros, to which traced values may be assigned inside a transform.

    Parameters
    ----------
    shape, dtype, order, **kwargs
        As for `numpy.zeros`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import funcgrad as fg
    >>> import funcgrad.numpy as fnp
    >>> def f(x):
    ...     y = fnp.zeros(2)
    ...     y[0] = x * x
    ...     return y.sum()
    >>> fg.grad(f)(3.0)
    6.0
    """
    return assignable(np.zeros(shape, dtype, order, **kwargs))


def ones(
    shape: Shape, dtype: npt.DTypeLike | None = None, order: Literal["C", "F"] = "C", **kwargs: Any
) -> Any:
    """Make an array of ones, to which traced values may be assigned inside a transform.

    Parameters
    ----------
    shape, dtype, order, **kwargs
        As for `numpy.ones`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import funcgrad as fg
    >>> import funcgrad.numpy as fnp
    >>> def f(x):
    ...     y = fnp.ones(2)
    ...     y[0] = x * x
    ...     return y.sum()
    >>> fg.grad(f)(3.0)
    6.0
    """
    return assignable(np.ones(shape, dtype, order, **kwargs))


def empty(
    shape: Shape, dtype: npt.DTypeLike | None = None, order: Literal["C", "F"] = "C", **kwargs: Any
) -> Any:
    """Make an array to be filled by assignment, inside a transform with traced values.

    Parameters
    ----------
    shape, dtype, order, **kwargs
        As for `numpy.empty`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import funcgrad as fg
    >>> import funcgrad.numpy as fnp
    >>> def f(x):
    ...     y = fnp.empty(2)
    ...     y[:] = x * x
    ...     return y.sum()
    >>> fg.grad(f)(3.0)
    12.0
    """
    return assignable(np.empty(shape, dtype, order, **kwargs))


def full(
    shape: Shape,
    fill_value: Any,
    dtype: npt.DTypeLike | None = None,
    order: Literal["C", "F"] = "C",
    **kwargs: Any,
) -> Any:
    """Make an array of one value, which may be traced; traced values may be assigned to it.

    Parameters
    ----------
    shape, fill_value, dtype, order, **kwargs
        As for `numpy.full`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import funcgrad as fg
    >>> import funcgrad.numpy as fnp
    >>> fg.grad(lambda x: fnp.full((2, 3), x).sum())(1.0)
    6.0
    """
    if not holds_tracer(fill_value):
        return assignable(np.full(shape, fill_value, dtype, order, **kwargs))
    return creation.filled(fill_value, shape, dtype, order)


def full_like(a: Any, fill_value: Any, *args: Any, **kwargs: Any) -> Any:
    """Make an array like another of one value, which may be traced.

    Parameters
    ----------
    a, fill_value, *args, **kwargs
        As for `numpy.full_like`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> import funcgrad.numpy as fnp
    >>> fg.grad(lambda x: fnp.full_like(np.zeros((2, 3)), x).sum())(1.0)
    6.0
    """
    return creation.full_like(a, fill_value, *args, **kwargs)


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: npt.DTypeLike = float,
    order: Literal["C", "F"] = "C",
    **kwargs: Any,
) -> Any:
    """Make an array with ones on a diagonal; traced values may be assigned to it.

    Parameters
    ----------
    N, M, k, dtype, order, **kwargs
        As for `numpy.eye`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import funcgrad as fg
    >>> import funcgrad.numpy as fnp
    >>> def f(x):
    ...     y = fnp.eye(2)
    ...     y[0, 1] = x * x
    ...     return y.sum()
    >>> fg.grad(f)(3.0)
    6.0
    """
    return assignable(np.eye(N, M, k, dtype, order, **kwargs))


def identity(n: int, dtype: npt.DTypeLike | None = None, **kwargs: Any) -> Any:
    """Make an identity matrix; traced values may be assigned to it.

    Parameters
    ----------
    n, dtype, **kwargs
        As for `numpy.identity`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import funcgrad as fg
    >>> import funcgrad.numpy as fnp
    >>> def f(x):
    ...     y = fnp.identity(2)
    ...     y[0, 1] = x * x
    ...     return y.sum()
    >>> fg.grad(f)(3.0)
    6.0
    """
    return assignable(np.identity(n, dtype, **kwargs))


def tri(
    N: int, M: int | None = None, k: int = 0, dtype: npt.DTypeLike = float, **kwargs: Any
) -> Any:
    """Make an array with ones on and below a diagonal; traced values may be assigned to it.

    Parameters
    ----------
    N, M, k, dtype, **kwargs
        As for `numpy.tri`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import funcgrad as fg
    >>> import funcgrad.numpy as fnp
    >>> def f(x):
    ...     y = fnp.tri(2)
    ...     y[0, 1] = x * x
    ...     return y.sum()
    >>> fg.grad(f)(3.0)
    6.0
    """
    return assignable(np.tri(N, M, k, dtype, **kwargs))


def arange(*args: Any, **kwargs: Any) -> Any:
    """Make an array of numbers at equal steps; traced values may be assigned to it.

    Parameters
    ----------
    *args, **kwargs
        As for `numpy.arange`. None may be traced: with traced ends use `numpy.linspace`, which
        says how many numbers there are.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import funcgrad as fg
    >>> import funcgrad.numpy as fnp
    >>> def f(x):
    ...     y = fnp.arange(3.0)
    ...     y[0] = x * x
    ...     return y.sum()
    >>> fg.grad(f)(3.0)
    6.0
    """
    return assignable(np.arange(*args, **kwargs))


def _assignable(name: str, given: str, put: str = "y[0] = x * x") -> Any:
    """Wrap a function of NumPy's; `given` and `put` go into the example."""
    function = getattr(np, name)

    def made(*args: Any, **kwargs: Any) -> Any:
        return assignable(function(*args, **kwargs))

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"""Make a new array, to which traced values may be assigned inside a transform.

    Parameters
    ----------
    *args, **kwargs
        As for `numpy.{name}`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import funcgrad as fg
    >>> import funcgrad.numpy as fnp
    >>> def f(x):
    ...     y = fnp.{name}({given})
    ...     {put}
    ...     return y[0] + y[1]
    >>> fg.grad(f)(3.0)
    6.0
    """
    return made


copy = _assignable("copy", "[1.0, 2.0]")
empty_like = _assignable("empty_like", "[1.0, 2.0]", "y[:] = x * x / 2")
geomspace = _assignable("geomspace", "1.0, 4.0, 3")
linspace = _assignable("linspace", "0.0, 1.0, 3")
logspace = _assignable("logspace", "0.0, 2.0, 3")
ones_like = _assignable("ones_like", "[1.0, 2.0]")
zeros_like = _assignable("zeros_like", "[1.0, 2.0]")
