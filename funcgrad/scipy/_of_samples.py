"""Integrals of samples, for `funcgrad.scipy.integrate`: SciPy's values, and our derivatives.

The derivatives are those of the same rules of integration written with NumPy, which are in
`funcgrad.scipy._samples`.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from scipy import integrate

from funcgrad.rules.scipy.adopt import is_traced
from funcgrad.rules.spelling import array_of
from funcgrad.scipy import _samples
from funcgrad.scipy._twin import twin

__all__ = ["cumulative_simpson", "cumulative_trapezoid", "simpson", "trapezoid"]


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integrate samples by the trapezoidal rule, as `scipy.integrate.trapezoid`.

    Parameters
    ----------
    y : array_like
        The samples; differentiable.
    x : array_like, optional
        Where they were taken; differentiable.
    dx : float
        The distance of samples if `x` is not given; differentiable.
    axis : int
        Along which axis.

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy.integrate import trapezoid
    >>> fg.grad(trapezoid)(np.zeros(4))
    array([0.5, 1. , 1. , 0.5])
    """
    return _of_samples("trapezoid", y, x, dx, axis)


def simpson(y: ArrayLike, x: ArrayLike | None = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integrate samples by Simpson's rule, as `scipy.integrate.simpson`.

    Parameters
    ----------
    y, x, dx, axis
        See `trapezoid`.

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy.integrate import simpson
    >>> 3 * fg.grad(simpson)(np.zeros(5))
    array([1., 4., 2., 4., 1.])
    """
    return _of_samples("simpson", y, x, dx, axis)


def cumulative_trapezoid(
    y: ArrayLike,
    x: ArrayLike | None = None,
    dx: Any = 1.0,
    axis: int = -1,
    initial: float | None = None,
) -> Any:
    """Integrate samples up to each of them, as `scipy.integrate.cumulative_trapezoid`.

    Parameters
    ----------
    y, x, dx, axis
        See `trapezoid`.
    initial : {0, None}
        Put 0 in front of the result.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy.integrate import cumulative_trapezoid
    >>> fg.grad(lambda y: np.sum(cumulative_trapezoid(y)))(np.zeros(3))
    array([1. , 1.5, 0.5])
    """
    return _of_samples("cumulative_trapezoid", y, x, dx, axis, initial=initial)


def cumulative_simpson(
    y: ArrayLike,
    *,
    x: ArrayLike | None = None,
    dx: Any = 1.0,
    axis: int = -1,
    initial: Any = None,
) -> Any:
    """Integrate samples up to each of them, as `scipy.integrate.cumulative_simpson`.

    Parameters
    ----------
    y, x, dx, axis
        See `trapezoid`.
    initial : array_like, optional
        Put this in front of the result, and add it to the rest. Not differentiable.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy.integrate import cumulative_simpson
    >>> 12 * fg.grad(lambda y: cumulative_simpson(y)[0])(np.zeros(3))
    array([ 5.,  8., -1.])
    """
    return _of_samples("cumulative_simpson", y, x, dx, axis, initial=initial)


def _of_samples(name: str, y: Any, x: Any, dx: Any, axis: int, **options: Any) -> Any:
    """Call a rule for samples: SciPy's for the value, ours for derivatives."""
    theirs, ours = getattr(integrate, name), getattr(_samples, name)
    if not is_traced(y, x, dx, *options.values()):
        return theirs(y, x=x, dx=dx, axis=axis, **options)

    place = "dx" if x is None else "x"
    # A number that is not traced stays one, and so decides no dtype.
    is_number = x is None and isinstance(dx, int | float)
    fixed = {"axis": axis, **options, **({"dx": dx} if is_number else {})}

    def value(y: Any, *more: Any) -> Any:
        return theirs(y, **dict(zip((place,), more, strict=False)), **fixed)

    def formula(y: Any, *more: Any) -> Any:
        return ours(y, **dict(zip((place,), more, strict=False)), **fixed)

    more = () if is_number else (array_of(dx if x is None else x),)
    return twin.bind(array_of(y), *more, value=value, formula=formula)
