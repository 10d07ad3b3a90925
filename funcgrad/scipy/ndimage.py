"""SciPy's image functions for traced code: ``from funcgrad.scipy import ndimage``.

`map_coordinates` (to the nearest pixel, or linearly) and the linear filters may be differentiated,
forward, in reverse and under `vmap`, to any order. Values are SciPy's own; the filters have the
derivatives of the same sums written with NumPy: the image with its border written out, convolved.
Every other name is SciPy's function, which takes plain values only.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.typing import ArrayLike
from scipy import ndimage

from funcgrad.core.level import TracerBase
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import ArgumentError, MissingRuleError, user_line
from funcgrad.rules import signal as convolutions
from funcgrad.rules.convolution import window
from funcgrad.rules.ndimage import sample
from funcgrad.scipy._twin import twin

# What is replaced; other names are looked up in SciPy when they are asked for.
__all__ = [
    "convolve",
    "convolve1d",
    "correlate",
    "correlate1d",
    "gaussian_filter",
    "gaussian_filter1d",
    "map_coordinates",
    "uniform_filter",
    "uniform_filter1d",
]


def map_coordinates(
    input: ArrayLike,
    coordinates: ArrayLike,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
) -> Any:
    """Look an image up at coordinates between its pixels, as `scipy.ndimage.map_coordinates`.

    Parameters
    ----------
    input : array_like
        The image, of any number of axes; differentiable.
    coordinates : array_like
        Of shape (axes of the image, ...), in pixels; differentiable.
    output : array or dtype, optional
        As in SciPy. Cannot be given if something is traced.
    order : int
        0 for the nearest pixel, 1 for linear interpolation. Splines of higher order, among them
        the default of SciPy, take plain values only.
    mode : str
        How the image goes on: "constant" and "grid-constant", "nearest", "reflect" (also
        "grid-mirror"), "mirror", "wrap" and "grid-wrap".
    cval : float
        What is around the image in the modes of constants.
    prefilter : bool
        Of no effect for `order` 0 and 1.

    Returns
    -------
    ndarray
        Of the shape of `coordinates` without its first axis.

    Raises
    ------
    MissingRuleError
        Something is traced, and `order` is 2 or more, or `output` is given.

    Notes
    -----
    On the grid, where two slopes meet, the derivative in `coordinates` is the one nearest to 0, and
    0 if they differ in sign. Where the value jumps it is the slope inside.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy import ndimage
    >>> image = np.array([[0.0, 1.0], [2.0, 5.0]])
    >>> look = lambda where: ndimage.map_coordinates(image, where[:, None], order=1)[0]
    >>> fg.grad(look)(np.array([0.5, 0.5]))
    array([3., 2.])
    """
    if not _is_traced(input, coordinates):
        return ndimage.map_coordinates(input, coordinates, output, order, mode, cval, prefilter)
    _check_output(output, "map_coordinates")
    if order not in (0, 1):
        ndimage.map_coordinates(np.zeros(1), np.zeros((1, 1)), None, order, mode)  # an error?
        raise MissingRuleError(
            f"scipy.ndimage.map_coordinates with order={order} has no rule for traced values",
            where=user_line(),
            fix="give order=1 (linear) or order=0 (nearest pixel)",
        )
    return sample(input, coordinates, linear=order == 1, mode=mode, cval=cval)


# Filters along one axis


def correlate1d(
    input: ArrayLike,
    weights: ArrayLike,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: float = 0.0,
    origin: int = 0,
) -> Any:
    """Correlate an image with weights along an axis, as `scipy.ndimage.correlate1d`.

    Parameters
    ----------
    input, weights : array_like
        Differentiable.
    axis : int
        Along which axis.
    output : array or dtype, optional
        As in SciPy. Cannot be given if something is traced.
    mode : str
        How the image goes on beyond its ends, see `map_coordinates`.
    cval : float
        What is around the image in the modes of constants.
    origin : int
        By how much the weights are moved.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy import ndimage
    >>> total = lambda w: np.sum(ndimage.correlate1d(np.arange(4.0), w))
    >>> fg.grad(total)(np.ones(3))
    array([3., 6., 9.])
    """
    if not _is_traced(input, weights):
        return ndimage.correlate1d(input, weights, axis, output, mode, cval, origin)
    _check_output(output, "correlate1d")

    def value(x: Any, w: Any) -> Any:
        return ndimage.correlate1d(x, w, axis, None, mode, cval, origin)

    def formula(x: Any, w: Any) -> Any:
        w = np.conj(w) if dtype_of(w).kind == "c" else w
        return _along(x, w, axis, mode, cval, shape_of(w)[0] // 2 + origin)

    return twin.bind(_array(input), _array(weights), value=value, formula=formula)


def convolve1d(
    input: ArrayLike,
    weights: ArrayLike,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: float = 0.0,
    origin: int = 0,
) -> Any:
    """Convolve an image with weights along an axis, as `scipy.ndimage.convolve1d`.

    Parameters
    ----------
    input, weights : array_like
        Differentiable.
    axis, output, mode, cval, origin
        See `correlate1d`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy import ndimage
    >>> total = lambda w: np.sum(ndimage.convolve1d(np.arange(4.0), w))
    >>> fg.grad(total)(np.ones(3))
    array([9., 6., 3.])
    """
    if not _is_traced(input, weights):
        return ndimage.convolve1d(input, weights, axis, output, mode, cval, origin)
    _check_output(output, "convolve1d")

    def value(x: Any, w: Any) -> Any:
        return ndimage.convolve1d(x, w, axis, None, mode, cval, origin)

    def formula(x: Any, w: Any) -> Any:
        return _along(x, w[::-1], axis, mode, cval, (shape_of(w)[0] - 1) // 2 - origin)

    return twin.bind(_array(input), _array(weights), value=value, formula=formula)


def gaussian_filter1d(
    input: ArrayLike,
    sigma: float,
    axis: int = -1,
    order: int = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: float = 0.0,
    truncate: float = 4.0,
    *,
    radius: int | None = None,
) -> Any:
    """Smooth an image along an axis, as `scipy.ndimage.gaussian_filter1d`.

    Parameters
    ----------
    input : array_like
        Differentiable.
    sigma : float
        Width of the Gaussian, in pixels; not differentiable.
    axis, output, mode, cval
        See `correlate1d`.
    order : int
        Of the derivative of the Gaussian.
    truncate : float
        After how many `sigma` to cut it off.
    radius : int, optional
        After how many pixels to cut it off.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy import ndimage
    >>> middle = lambda x: ndimage.gaussian_filter1d(x, 1.0, radius=1)[1]
    >>> fg.grad(middle)(np.zeros(3)).round(3)
    array([0.274, 0.452, 0.274])
    """
    if not _is_traced(input, sigma):
        return ndimage.gaussian_filter1d(
            input, sigma, axis, order, output, mode, cval, truncate, radius=radius
        )
    return gaussian_filter(
        input, sigma, order, output, mode, cval, truncate, radius=radius, axes=(axis,)
    )


def uniform_filter1d(
    input: ArrayLike,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: float = 0.0,
    origin: int = 0,
) -> Any:
    """Average an image over a window along an axis, as `scipy.ndimage.uniform_filter1d`.

    Parameters
    ----------
    input : array_like
        Differentiable.
    size : int
        Of the window.
    axis, output, mode, cval, origin
        See `correlate1d`.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy import ndimage
    >>> fg.grad(lambda x: ndimage.uniform_filter1d(x, 2)[1])(np.zeros(3))
    array([0.5, 0.5, 0. ])
    """
    if not _is_traced(input):
        return ndimage.uniform_filter1d(input, size, axis, output, mode, cval, origin)
    _check_output(output, "uniform_filter1d")

    def value(x: Any) -> Any:
        return ndimage.uniform_filter1d(x, size, axis, None, mode, cval, origin)

    formula = partial(_mean, size=size, axis=axis, mode=mode, cval=cval, origin=origin)
    return twin.bind(input, value=value, formula=formula)


# Filters along several axes


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
    if not _is_traced(input, sigma):
        return ndimage.gaussian_filter(
            input, sigma, order, output, mode, cval, truncate, radius=radius, axes=axes
        )
    _check_output(output, "gaussian_filter")
    if isinstance(sigma, TracerBase):
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
        chosen = _axes(axes, x)
        each = (_each(option, len(chosen)) for option in (sigma, order, mode, radius))
        for axis, width, nth, how, reach in zip(chosen, *each, strict=True):
            if width > 1e-15:
                if reach is None:
                    reach = int(truncate * width + 0.5)
                # What the filter makes of a single bright pixel are its weights, reversed.
                pixel = np.zeros(2 * reach + 1)
                pixel[reach] = 1
                weights = ndimage.gaussian_filter1d(
                    pixel, width, order=nth, mode="constant", radius=reach
                )[::-1]
                x = _along(x, weights, axis, how, cval, reach)
        return x

    return twin.bind(input, value=value, formula=formula)


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
    if not _is_traced(input):
        return ndimage.uniform_filter(input, size, output, mode, cval, origin, axes=axes)
    _check_output(output, "uniform_filter")

    def value(x: Any) -> Any:
        return ndimage.uniform_filter(x, size, None, mode, cval, origin, axes=axes)

    def formula(x: Any) -> Any:
        chosen = _axes(axes, x)
        each = (_each(option, len(chosen)) for option in (size, mode, origin))
        for axis, count, how, moved in zip(chosen, *each, strict=True):
            if count > 1:
                x = _mean(x, size=int(count), axis=axis, mode=how, cval=cval, origin=moved)
        return x

    return twin.bind(input, value=value, formula=formula)


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
    if not _is_traced(input, weights):
        return ndimage.correlate(input, weights, output, mode, cval, origin, **kwargs)
    _check_output(output, "correlate", kwargs)

    def value(x: Any, w: Any) -> Any:
        return ndimage.correlate(x, w, None, mode, cval, origin)

    def formula(x: Any, w: Any) -> Any:
        lengths = shape_of(w)
        befores = [n // 2 + o for n, o in zip(lengths, _each(origin, len(lengths)), strict=True)]
        return convolutions.correlate(
            _extended(x, lengths, befores, mode, cval), w, "valid", "direct"
        )

    return twin.bind(_array(input), _array(weights), value=value, formula=formula)


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
    if not _is_traced(input, weights):
        return ndimage.convolve(input, weights, output, mode, cval, origin, **kwargs)
    _check_output(output, "convolve", kwargs)

    def value(x: Any, w: Any) -> Any:
        return ndimage.convolve(x, w, None, mode, cval, origin)

    def formula(x: Any, w: Any) -> Any:
        lengths = shape_of(w)
        origins = _each(origin, len(lengths))
        befores = [(n - 1) // 2 - o for n, o in zip(lengths, origins, strict=True)]
        return convolutions.convolve(
            _extended(x, lengths, befores, mode, cval), w, "valid", "direct"
        )

    return twin.bind(_array(input), _array(weights), value=value, formula=formula)


# What the filters share

# NumPy's names for how an image goes on, by SciPy's.
_PAD_MODES: dict[str, Any] = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "constant",
    "grid-constant": "constant",
}


def _extended(
    x: Any, lengths: Sequence[int], befores: Sequence[int], mode: str, cval: float
) -> Any:
    """Write out what is around `x`, so that weights of these lengths fit in everywhere."""
    pairs = [(low, n - 1 - low) for n, low in zip(lengths, befores, strict=True)]
    how = _PAD_MODES[mode]
    options: Any = {"constant_values": cval} if how == "constant" else {}
    return np.pad(x, pairs, how, **options)


def _along(x: Any, weights: Any, axis: int, mode: str, cval: float, before: int) -> Any:
    """Correlate with weights along an axis, `before` of them lie in front of each pixel."""
    shape, (length,) = shape_of(x), shape_of(weights)
    lengths, befores = [1] * len(shape), [0] * len(shape)
    lengths[axis], befores[axis] = length, before
    rows = np.moveaxis(_extended(x, lengths, befores, mode, cval), axis, -1)
    made = window.bind(rows, weights[::-1], start=length - 1, length=shape[axis])
    return np.moveaxis(made, -1, axis)


def _mean(x: Any, *, size: int, axis: int, mode: str, cval: float, origin: int) -> Any:
    weights = np.full(size, 1 / size)
    return _along(x, weights, axis, mode, cval, size // 2 + origin)


def _each(option: Any, count: int) -> list[Any]:
    """Return one value of an option for each axis."""
    if option is None or isinstance(option, str) or np.ndim(option) == 0:
        return [option] * count
    return list(option)


def _axes(axes: Any, x: Any) -> tuple[int, ...]:
    ndim = len(shape_of(x))
    found: tuple[int, ...] = normalize_axis_tuple(range(ndim) if axes is None else axes, ndim)
    return found


def _array(x: Any) -> Any:
    return x if isinstance(x, TracerBase) else np.asarray(x)


def _is_traced(*args: Any) -> bool:
    return any(isinstance(arg, TracerBase) for arg in args)


def _check_output(output: Any, name: str, kwargs: dict[str, Any] | None = None) -> None:
    given = "output" if output is not None else next(iter(kwargs or ()), None)
    if given is not None:
        raise MissingRuleError(
            f"scipy.ndimage.{name} with {given}= has no rule for traced values",
            where=user_line(),
            fix="leave output away, and cast the result with .astype"
            if given == "output"
            else "give the weights an axis of length 1 for every axis that they leave alone",
        )


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(ndimage, name)
    except AttributeError as error:
        raise AttributeError(str(error).replace("'scipy.ndimage'", repr(__name__))) from None


def __dir__() -> list[str]:
    return sorted({*dir(ndimage), *__all__})
