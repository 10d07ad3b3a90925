"""Rules of integration for samples, written so that they can be traced.

They compute what SciPy's functions of the same names do, but for rounding: integrals of the
straight lines, or of the parabolas, through neighbouring samples. Derivatives are taken of these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.zero import shape_of

__all__ = ["cumulative_simpson", "cumulative_trapezoid", "simpson", "trapezoid"]


def _last(y: Any, x: Any, dx: Any, axis: int) -> tuple[Any, Any]:
    """Return the samples along the last axis, and the distances between them."""
    y = np.moveaxis(y, axis, -1)
    count = shape_of(y)[-1]
    if x is not None:
        if len(shape_of(x)) > 1:
            x = np.moveaxis(x, axis, -1)
        return y, x[..., 1:] - x[..., :-1]
    if len(shape_of(dx)) > 1:
        dx = np.moveaxis(dx, axis, -1)
    elif shape_of(dx):
        return y, dx
    else:
        dx = np.reshape(dx, (1,))
    return y, np.broadcast_to(dx, (*shape_of(dx)[:-1], count - 1))


def _trapezoids(y: Any, h: Any) -> Any:
    return h * (y[..., 1:] + y[..., :-1]) / 2


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integrate the straight lines."""
    return np.sum(_trapezoids(*_last(y, x, dx, axis)), axis=-1)


def cumulative_trapezoid(
    y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Any:
    """Integrate the straight lines up to each sample."""
    sums = np.cumsum(_trapezoids(*_last(y, x, dx, axis)), axis=-1)
    return _with_initial(sums, initial, axis)


def _with_initial(sums: Any, initial: Any, axis: int) -> Any:
    if initial is not None:
        start = np.zeros((*shape_of(sums)[:-1], 1))
        if np.ndim(initial):
            initial = np.moveaxis(initial, axis, -1)
        sums = np.concatenate([start, sums], axis=-1) + initial
    return np.moveaxis(sums, -1, axis)


def _ahead(y0: Any, y1: Any, y2: Any, h0: Any, h1: Any) -> Any:
    """Integrate the parabola through three samples over the first of the two intervals."""
    return (
        h0
        / 6
        * (
            (2 * h0 + 3 * h1) / (h0 + h1) * y0
            + (h0 + 3 * h1) / h1 * y1
            - h0 * h0 / (h1 * (h0 + h1)) * y2
        )
    )


def _intervals(y: Any, h: Any) -> tuple[Any, Any]:
    """Return the integral over each interval, by parabolas to its right and to its left."""
    y0, y1, y2 = y[..., :-2], y[..., 1:-1], y[..., 2:]
    h0, h1 = h[..., :-1], h[..., 1:]
    return _ahead(y0, y1, y2, h0, h1), _ahead(y2, y1, y0, h1, h0)


def simpson(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integrate a parabola for each two intervals; one that is left over, by the last parabola."""
    y, h = _last(y, x, dx, axis)
    count = shape_of(y)[-1]
    if count < 3:
        return np.sum(_trapezoids(y, h), axis=-1)
    right, left = _intervals(y, h)
    total = np.sum((right + left)[..., ::2], axis=-1)
    if count % 2 == 0:
        # The pairs end one interval early.
        total = np.sum((right + left)[..., : count - 3 : 2], axis=-1) + left[..., -1]
    return total


def cumulative_simpson(
    y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Any:
    """Integrate parabolas up to each sample, for each two intervals the same one."""
    y, h = _last(y, x, dx, axis)
    count = shape_of(y)[-1]
    if count < 3:
        return _with_initial(np.cumsum(_trapezoids(y, h), axis=-1), initial, axis)
    right, left = _intervals(y, h)
    right = np.concatenate([right, right[..., -1:]], axis=-1)
    left = np.concatenate([left[..., :1], left], axis=-1)
    number = np.arange(count - 1)
    by_right = (number % 2 == 0) & (number < count - 2)
    return _with_initial(np.cumsum(np.where(by_right, right, left), axis=-1), initial, axis)
