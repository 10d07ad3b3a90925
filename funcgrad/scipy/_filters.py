"""Filters of images along several axes, for `funcgrad.scipy.ndimage`.

Traced, a filter has SciPy's values, and the derivatives of the same sums written with NumPy: the
image with its border written out, convolved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import ndimage

from funcgrad.core.zero import shape_of
from funcgrad.errors import ArgumentError, user_line
from funcgrad.rules.scipy import convolving
from funcgrad.rules.scipy.adopt import in_place_of
from funcgrad.rules.spelling import array_of, holds_tracer
from funcgrad.scipy._borders import (
    along,
    axes_of,
    check_output,
    each,
    extended,
    mean,
)
from funcgrad.scipy._twin import twin

__all__ = ["convolve", "correlate", "gaussian_filter", "uniform_filter"]


@in_place_of(ndimage.gaussian_filter)
def gaussian_filter(
    input: ArrayLike,
    sigma: float | Sequence[float],
    order: int | Sequence[int] = 0,
    output: Any = None,
    mode: str | Sequence[str] = "reflect",
    cval: float = 0.0,
    truncate: float = 4.0,
    *,
    radius: int | Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
) -> Any:
    """Smooth an image by a Gaussian, as `scipy.ndimage.gaussian_filter`.

    Parameters
    ----------
    input : array_like
        Differentiable.
    sigma : float or sequence of float
        Width of the Gaussian, in pixels, perhaps for each axis; not differentiable.
    order : int or sequence of int
        Of the derivative of the Gaussian.
    output, cval
        See `correlate1d`.
    mode : str or sequence of str
        How the image goes on beyond its ends, see `map_coordinates`.
    truncate : float
        After how many `sigma` to cut the Gaussian off.
    radius : int or sequence of int, optional
        After how many pixels to cut it off.
    axes : sequence of int, optional
        Along which axes; by default all.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy import ndimage
    >>> total = lambda x: np.sum(ndimage.gaussian_filter(x, 0.5))
    >>> fg.grad(total)(np.zeros((2, 2))).round(12)
    array([[1., 1.],
           [1., 1.]])
    """
    check_output(output, "gaussian_filter")
    if holds_tracer(sigma):
        raise ArgumentError(
            "sigma of a Gaussian filter decides how many pixels it covers, and cannot be traced",
            where=user_line(),
            fix="make the weights of sigma, and give them to funcgrad.scipy.ndimage.correlate1d",
        )

    def value(x: Any) -> Any:
        return ndimage.gaussian_filter(
            x, sigma, order, None, mode, cval, truncate, radius=radius, axes=axes
        )

    def formula(x: Any) -> Any:
        chosen = axes_of(axes, x)
        options = (each(option, len(chosen)) for option in (sigma, order, mode, radius))
        for axis, width, nth, how, reach in zip(chosen, *options, strict=True):
            if width > 1e-15:
                if reach is None:
                    reach = int(truncate * width + 0.5)
                # What the filter makes of a single bright pixel are its weights, reversed.
                pixel = np.zeros(2 * reach + 1)
                pixel[reach] = 1
                weights = ndimage.gaussian_filter1d(
                    pixel, width, order=nth, mode="constant", radius=reach
                )[::-1]
                x = along(x, weights, axis, how, cval, reach)
        return x

    return twin.bind(array_of(input), value=value, formula=formula)


@in_place_of(ndimage.uniform_filter)
def uniform_filter(
    input: ArrayLike,
    size: int | Sequence[int] = 3,
    output: Any = None,
    mode: str | Sequence[str] = "reflect",
    cval: float = 0.0,
    origin: int | Sequence[int] = 0,
    *,
    axes: Sequence[int] | None = None,
) -> Any:
    """Average an image over windows, as `scipy.ndimage.uniform_filter`.

    Parameters
    ----------
    input : array_like
        Differentiable.
    size : int or sequence of int
        Of the window, perhaps for each axis.
    output, mode, cval, axes
        See `gaussian_filter`.
    origin : int or sequence of int
        By how much the window is moved.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy import ndimage
    >>> fg.grad(lambda x: ndimage.uniform_filter(x, 2)[1, 1])(np.zeros((2, 2)))
    array([[0.25, 0.25],
           [0.25, 0.25]])
    """
    check_output(output, "uniform_filter")

    def value(x: Any) -> Any:
        return ndimage.uniform_filter(x, size, None, mode, cval, origin, axes=axes)

    def formula(x: Any) -> Any:
        chosen = axes_of(axes, x)
        options = (each(option, len(chosen)) for option in (size, mode, origin))
        for axis, count, how, moved in zip(chosen, *options, strict=True):
            if count > 1:
                x = mean(x, size=int(count), axis=axis, mode=how, cval=cval, origin=moved)
        return x

    return twin.bind(array_of(input), value=value, formula=formula)


@in_place_of(ndimage.correlate)
def correlate(
    input: ArrayLike,
    weights: ArrayLike,
    output: Any = None,
    mode: str = "reflect",
    cval: float = 0.0,
    origin: int | Sequence[int] = 0,
    **kwargs: Any,
) -> Any:
    """Correlate an image with weights of as many axes, as `scipy.ndimage.correlate`.

    Parameters
    ----------
    input, weights : array_like
        Differentiable.
    output, mode, cval
        See `correlate1d`.
    origin : int or sequence of int
        By how much the weights are moved.
    **kwargs
        `axes`, in releases of SciPy that have it. Cannot be given if something is traced.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy import ndimage
    >>> image = np.arange(9.0).reshape(3, 3)
    >>> fg.grad(lambda w: ndimage.correlate(image, w)[1, 1])(np.zeros((3, 3)))
    array([[0., 1., 2.],
           [3., 4., 5.],
           [6., 7., 8.]])
    """
    check_output(output, "correlate", kwargs)

    def value(x: Any, w: Any) -> Any:
        return ndimage.correlate(x, w, None, mode, cval, origin)

    def formula(x: Any, w: Any) -> Any:
        lengths = shape_of(w)
        befores = [n // 2 + o for n, o in zip(lengths, each(origin, len(lengths)), strict=True)]
        return convolving.correlate(extended(x, lengths, befores, mode, cval), w, "valid", "direct")

    return twin.bind(array_of(input), array_of(weights), value=value, formula=formula)


@in_place_of(ndimage.convolve)
def convolve(
    input: ArrayLike,
    weights: ArrayLike,
    output: Any = None,
    mode: str = "reflect",
    cval: float = 0.0,
    origin: int | Sequence[int] = 0,
    **kwargs: Any,
) -> Any:
    """Convolve an image with weights of as many axes, as `scipy.ndimage.convolve`.

    Parameters
    ----------
    input, weights : array_like
        Differentiable.
    output, mode, cval, origin, **kwargs
        See `correlate`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy import ndimage
    >>> image = np.arange(9.0).reshape(3, 3)
    >>> fg.grad(lambda w: ndimage.convolve(image, w)[1, 1])(np.zeros((3, 3)))
    array([[8., 7., 6.],
           [5., 4., 3.],
           [2., 1., 0.]])
    """
    check_output(output, "convolve", kwargs)

    def value(x: Any, w: Any) -> Any:
        return ndimage.convolve(x, w, None, mode, cval, origin)

    def formula(x: Any, w: Any) -> Any:
        lengths = shape_of(w)
        origins = each(origin, len(lengths))
        befores = [(n - 1) // 2 - o for n, o in zip(lengths, origins, strict=True)]
        return convolving.convolve(extended(x, lengths, befores, mode, cval), w, "valid", "direct")

    return twin.bind(array_of(input), array_of(weights), value=value, formula=formula)
