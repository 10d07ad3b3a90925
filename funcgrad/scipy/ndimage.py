"""SciPy's image functions for traced code: ``from funcgrad.scipy import ndimage``.

`map_coordinates` (to the nearest pixel, or linearly) and the linear filters may be differentiated,
forward, in reverse and under `vmap`, to any order. Values are SciPy's own; the filters have the
derivatives of the same sums written with NumPy: the image with its border written out, convolved.
Every other name is SciPy's function, which takes plain values only.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import ndimage

from funcgrad.core.alternatives import INSTEAD, offer
from funcgrad.core.namespace import standing_in
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import MissingRuleError, user_line
from funcgrad.rules.scipy.adopt import in_place_of, plain_only
from funcgrad.rules.scipy.interpolating import sample
from funcgrad.rules.spelling import array_of
from funcgrad.scipy._borders import along, check_output, mean
from funcgrad.scipy._filters import convolve, correlate, gaussian_filter, uniform_filter
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


@in_place_of(ndimage.map_coordinates)
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
    check_output(output, "map_coordinates")
    if order not in (0, 1):
        ndimage.map_coordinates(np.zeros(1), np.zeros((1, 1)), None, order, mode)  # an error?
        raise MissingRuleError(
            f"scipy.ndimage.map_coordinates with order={order} has no rule for traced values",
            where=user_line(),
            fix="give order=1 (linear) or order=0 (nearest pixel)",
        )
    return sample(array_of(input), array_of(coordinates), linear=order == 1, mode=mode, cval=cval)


# Filters along one axis


@in_place_of(ndimage.correlate1d)
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
    check_output(output, "correlate1d")

    def value(x: Any, w: Any) -> Any:
        return ndimage.correlate1d(x, w, axis, None, mode, cval, origin)

    def formula(x: Any, w: Any) -> Any:
        w = np.conj(w) if dtype_of(w).kind == "c" else w
        return along(x, w, axis, mode, cval, shape_of(w)[0] // 2 + origin)

    return twin.bind(array_of(input), array_of(weights), value=value, formula=formula)


@in_place_of(ndimage.convolve1d)
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
    check_output(output, "convolve1d")

    def value(x: Any, w: Any) -> Any:
        return ndimage.convolve1d(x, w, axis, None, mode, cval, origin)

    def formula(x: Any, w: Any) -> Any:
        return along(x, w[::-1], axis, mode, cval, (shape_of(w)[0] - 1) // 2 - origin)

    return twin.bind(array_of(input), array_of(weights), value=value, formula=formula)


@in_place_of(ndimage.gaussian_filter1d)
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
    return gaussian_filter(
        input, sigma, order, output, mode, cval, truncate, radius=radius, axes=(axis,)
    )


@in_place_of(ndimage.uniform_filter1d)
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
    check_output(output, "uniform_filter1d")

    def value(x: Any) -> Any:
        return ndimage.uniform_filter1d(x, size, axis, None, mode, cval, origin)

    formula = partial(mean, size=size, axis=axis, mode=mode, cval=cval, origin=origin)
    return twin.bind(array_of(input), value=value, formula=formula)


# Functions without a rule -> what to write instead.
_WINDOWS = "numpy.lib.stride_tricks.sliding_window_view of the image, which numpy.pad continues"
_INSTEAD = {
    **dict.fromkeys(
        ("affine_transform", "geometric_transform", "rotate", "shift", "zoom"),
        "use map_coordinates with order=1, at the coordinates that each pixel comes from",
    ),
    **dict.fromkeys(
        ("grey_dilation", "maximum_filter", "maximum_filter1d"),
        f"use numpy.max of {_WINDOWS}",
    ),
    **dict.fromkeys(
        ("grey_erosion", "minimum_filter", "minimum_filter1d"), f"use numpy.min of {_WINDOWS}"
    ),
    **dict.fromkeys(("median_filter", "percentile_filter"), f"use numpy.percentile of {_WINDOWS}"),
    **dict.fromkeys(
        ("mean", "standard_deviation", "sum", "sum_labels", "variance"),
        "use numpy.bincount with weights",
    ),
    "center_of_mass": "divide the sums of image times coordinate by the sum of the image",
    "gaussian_gradient_magnitude": "use gaussian_filter with order=1 along each axis",
    "gaussian_laplace": "add gaussian_filter with order=2 along each axis",
    "laplace": "add correlate1d with [1, -2, 1] along each axis",
    "prewitt": "use correlate1d with [-1, 0, 1] along the axis and [1, 1, 1] along the others",
    "rank_filter": f"use numpy.sort of {_WINDOWS}",
    "sobel": "use correlate1d with [-1, 0, 1] along the axis and [1, 2, 1] along the others",
}

offer("scipy.ndimage", __all__)
INSTEAD.update({f"scipy.ndimage.{name}": instead for name, instead in _INSTEAD.items()})

__getattr__, __dir__ = standing_in(__name__, ndimage, __all__, plain_only)
