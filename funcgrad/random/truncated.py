"""The normal distribution between two bounds, in which its draws are differentiable.

One idea: with ``F`` the normal distribution function, ``F(x)`` is uniform between the probabilities
of the bounds, so a draw is a function of a uniform number and the bounds, and moves with them.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.core.batch import broadcasting
from funcgrad.core.level import holds_anywhere
from funcgrad.core.primitive import Primitive
from funcgrad.errors import describe

from . import portable
from .arguments import float_dtype, parameter, shape_around, shape_of, wrong
from .continuous import opened
from .stream import draw

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from .arguments import Shape
    from .keys import Key

__all__ = ["truncated_normal"]

_FLOAT64 = np.dtype(np.float64)


def truncated_normal(
    key: Key,
    lower: Any,
    upper: Any,
    shape: Shape | None = None,
    dtype: DTypeLike = np.float64,
) -> NDArray[Any]:
    """Draw from the standard normal distribution restricted to ``[lower, upper]``.

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    lower, upper : array_like of float
        Bounds, which may be infinite; they may be traced, and the result is differentiable in them.
    shape : int or sequence of int, optional
        Shape of the result; by default the common shape of `lower` and `upper`.
    dtype : dtype_like, optional
        float64, float32 or float16.

    Returns
    -------
    ndarray of `dtype`, shape `shape`
        A NumPy scalar if the shape is ``()``.

    Raises
    ------
    ArgumentError
        `key` is not a single key, or somewhere `lower` is not less than `upper`.
    ShapeError
        `shape` has a negative length, or the bounds do not broadcast to it.
    DtypeError
        `dtype` is no float dtype.

    Notes
    -----
    By inversion between the probabilities of the bounds, taken in the left tail where both bounds
    are positive, so it is right up to 38 standard deviations away from the mean. The derivative
    is that at a fixed uniform number, as with any reparametrized draw.

    Examples
    --------
    >>> from funcgrad import random
    >>> weights = random.truncated_normal(random.key(0), -2.0, 2.0, (64, 10))
    >>> bool(abs(weights).max() <= 2.0)
    True
    """
    kind = float_dtype(dtype, "truncated_normal")
    low, high = parameter(lower, _FLOAT64), parameter(upper, _FLOAT64)
    shapes = {"lower": shape_of(low), "upper": shape_of(high)}
    lengths = shape_around(shape, shapes, "truncated_normal")
    if holds_anywhere(np.logical_not(np.less(low, high)), "whether the bounds are in order"):
        raise wrong(
            f"got bounds out of order: lower={describe(lower)}, upper={describe(upper)}",
            "lower",
            "truncated_normal",
            "give lower < upper everywhere",
        )
    u = opened(draw(key, prod(lengths), "truncated_normal")).reshape(lengths)
    out: NDArray[Any] = between.bind(u, low, high, kind=kind)
    return out if lengths else out[()]


def _between(
    u: NDArray[np.float64], low: Any, high: Any, *, kind: np.dtype[Any]
) -> NDArray[np.float64]:
    """Return the normal number between the bounds to which the share `u` in (0, 1) belongs.

    Counted in probability, from the lower bound, or from the upper one where `low` is positive.
    """
    low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    mirrored = low > 0.0
    left, right = np.where(mirrored, -high, low), np.where(mirrored, -low, high)
    start = portable.normal_cdf(left)
    p = start + (portable.normal_cdf(right) - start) * u
    shape = np.shape(p)
    p = np.clip(p, 5e-324, 1.0 - 2.0**-53).ravel()
    x = portable.normal_quantile(p - 0.5, np.minimum(p, 1.0 - p)).reshape(shape)
    x = np.where(mirrored, -x, x).astype(kind)
    out: NDArray[Any] = np.clip(x, low.astype(kind), high.astype(kind))
    return out


between = Primitive(_between, name="random.truncated_normal")
broadcasting(between)

# From F(x) = (1 - s) F(low) + s F(high), with `s` the share counted from the lower bound, follows
# f(x) dx = (1 - s) f(low) dlow + s f(high) dhigh, with f the density.


def _slope_low(u: Any, low: Any, x: Any, mirrored: Any) -> Any:
    return np.where(mirrored, u, 1.0 - u) * _density_ratio(low, x)


def _slope_high(u: Any, high: Any, x: Any, mirrored: Any) -> Any:
    return np.where(mirrored, 1.0 - u, u) * _density_ratio(high, x)


def _density_ratio(bound: Any, x: Any) -> Any:
    """Return ``f(bound) / f(x)``; of an infinite bound that is 0."""
    return np.exp(0.5 * ((x - bound) * (x + bound)))


@between.def_jvp
def between_jvp(primals: Any, tangents: Any, out: Any, *, kind: Any) -> Any:
    """Move `x` with the bounds that move."""
    u, low, high = primals
    _, low_dot, high_dot = tangents
    mirrored = np.greater(low, 0.0)
    total: Any = 0.0
    if low_dot is not None:
        total = total + low_dot * _slope_low(u, low, out, mirrored)
    if high_dot is not None:
        total = total + high_dot * _slope_high(u, high, out, mirrored)
    return total.astype(kind)


@between.def_vjp
def between_vjp(primals: Any, out: Any, *, kind: Any) -> Any:
    """Weight with the slopes; a uniform number has no derivative."""
    u, low, high = primals
    mirrored = np.greater(low, 0.0)

    def between_pullback_low(out_bar: Any) -> Any:
        return out_bar * _slope_low(u, low, out, mirrored)

    def between_pullback_high(out_bar: Any) -> Any:
        return out_bar * _slope_high(u, high, out, mirrored)

    return None, between_pullback_low, between_pullback_high
