"""Pooling to a given size: the image is cut into a grid of parts, as PyTorch cuts it.

Where the parts are all alike, this is the pooling of `funcgrad.nn.pooling`; elsewhere there is one
operation for each part.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from funcgrad.errors import ShapeError, describe, user_line
from funcgrad.nn.pooling import avg_pool, max_pool
from funcgrad.nn.windows import Sizes, check_image, sizes
from funcgrad.rules.nn import convolution

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
]


def adaptive_avg_pool1d(x: Any, output_size: Any) -> Any:
    """Return the means of `output_size` parts of a sequence.

    Parameters
    ----------
    x : array_like
        Of shape (batch, channels, length) or (channels, length).
    output_size : int or tuple of int
        As of `adaptive_avg_pool2d`, for one axis.

    Returns
    -------
    ndarray
        Of the shape of `x` but for the length.

    Examples
    --------
    >>> import numpy as np
    >>> adaptive_avg_pool1d(np.array([[1.0, 3.0, 5.0]]), 2)
    array([[2., 4.]])
    """
    return _average("adaptive_avg_pool1d", 1, x, output_size)


def adaptive_avg_pool2d(x: Any, output_size: Any) -> Any:
    """Return the means of the parts of an image, cut into a grid.

    Parameters
    ----------
    x : array_like
        Of shape (batch, channels, height, width) or (channels, height, width).
    output_size : int or tuple of int or None
        How many parts there are, down and to the right; None for as many as elements. Part `i` of
        `m` holds the elements from ``floor(i * n / m)`` to ``ceil((i + 1) * n / m)`` of `n`, so
        neighbours may overlap by one.

    Returns
    -------
    ndarray
        Of the shape of `x` but for the height and the width.

    Raises
    ------
    ArgumentError
        `output_size` is not as described.

    Examples
    --------
    >>> import numpy as np
    >>> adaptive_avg_pool2d(np.arange(12.0).reshape(1, 3, 4), (1, 2))
    array([[[4.5, 6.5]]])
    """
    return _average("adaptive_avg_pool2d", 2, x, output_size)


def adaptive_avg_pool3d(x: Any, output_size: Any) -> Any:
    """Return the means of the parts of a volume, cut into a grid.

    Parameters
    ----------
    x : array_like
        Of shape (batch, channels, depth, height, width), or without the batch.
    output_size : int or tuple of int or None
        As of `adaptive_avg_pool2d`, for three axes.

    Returns
    -------
    ndarray
        Of the shape of `x` but for the last three axes.

    Examples
    --------
    >>> import numpy as np
    >>> adaptive_avg_pool3d(np.arange(8.0).reshape(1, 2, 2, 2), (1, 1, 2))
    array([[[[3., 4.]]]])
    """
    return _average("adaptive_avg_pool3d", 3, x, output_size)


def adaptive_max_pool1d(x: Any, output_size: Any) -> Any:
    """Return the largest elements of `output_size` parts of a sequence.

    Parameters
    ----------
    x : array_like
        Of shape (batch, channels, length) or (channels, length).
    output_size : int or tuple of int
        As of `adaptive_avg_pool2d`, for one axis.

    Returns
    -------
    ndarray
        Of the shape of `x` but for the length.

    Examples
    --------
    >>> import numpy as np
    >>> adaptive_max_pool1d(np.array([[1.0, 3.0, 5.0]]), 2)
    array([[3., 5.]])
    """
    return _largest("adaptive_max_pool1d", 1, x, output_size)


def adaptive_max_pool2d(x: Any, output_size: Any) -> Any:
    """Return the largest elements of the parts of an image, cut into a grid.

    Parameters
    ----------
    x : array_like
        Of shape (batch, channels, height, width) or (channels, height, width).
    output_size : int or tuple of int or None
        As of `adaptive_avg_pool2d`.

    Returns
    -------
    ndarray
        Of the shape of `x` but for the height and the width.

    Examples
    --------
    >>> import numpy as np
    >>> adaptive_max_pool2d(np.arange(12.0).reshape(1, 3, 4), (1, 2))
    array([[[ 9., 11.]]])
    """
    return _largest("adaptive_max_pool2d", 2, x, output_size)


def adaptive_max_pool3d(x: Any, output_size: Any) -> Any:
    """Return the largest elements of the parts of a volume, cut into a grid.

    Parameters
    ----------
    x : array_like
        Of shape (batch, channels, depth, height, width), or without the batch.
    output_size : int or tuple of int or None
        As of `adaptive_avg_pool2d`, for three axes.

    Returns
    -------
    ndarray
        Of the shape of `x` but for the last three axes.

    Examples
    --------
    >>> import numpy as np
    >>> adaptive_max_pool3d(np.arange(8.0).reshape(1, 2, 2, 2), (1, 1, 2))
    array([[[[6., 7.]]]])
    """
    return _largest("adaptive_max_pool3d", 3, x, output_size)


# All of them


def _parts(name: str, count: int, x: Any, output_size: Any) -> list[list[slice]]:
    """Return the parts that each axis is cut into."""
    check_image(name, x, count)
    size = x.shape[-count:]
    given = output_size if hasattr(output_size, "__len__") else (output_size,) * count
    if len(given) == count:
        given = [n if m is None else m for m, n in zip(given, size, strict=True)]
    numbers = sizes(given, count, "output_size")
    if min(size) < 1:
        raise ShapeError(
            f"{name} takes images with elements, got {describe(x)}",
            where=user_line(),
            fix="leave empty images out",
        )
    return [
        [slice(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]
        for n, m in zip(size, numbers, strict=True)
    ]


def _even(parts: list[list[slice]], x: Any) -> Sizes | None:
    """Return the size of the parts, if all have the same and none overlap."""
    size = x.shape[-len(parts) :]
    if any(n % len(cuts) for n, cuts in zip(size, parts, strict=True)):
        return None
    return tuple(n // len(cuts) for n, cuts in zip(size, parts, strict=True))


def _average(name: str, count: int, x: Any, output_size: Any) -> Any:
    x = convolution.as_floats(x)
    parts = _parts(name, count, x, output_size)
    window = _even(parts, x)
    if window is not None:
        return avg_pool(name, count, x, window, None, 0, False, True)
    for axis, cuts in zip(range(-count, 0), parts, strict=True):  # a mean of means
        behind = (slice(None),) * (-axis - 1)
        means = [np.mean(x[(..., cut, *behind)], axis=axis, keepdims=True) for cut in cuts]
        x = np.concatenate(means, axis=axis)
    return x


def _largest(name: str, count: int, x: Any, output_size: Any) -> Any:
    x = x if hasattr(x, "dtype") else np.asarray(x)
    parts = _parts(name, count, x, output_size)
    window = _even(parts, x)
    if window is not None:
        return max_pool(name, count, x, window, None, 0, 1, False)
    last = tuple(range(-count, 0))
    largest = [np.max(x[(..., *cuts)], axis=last) for cuts in itertools.product(*parts)]
    return np.reshape(np.stack(largest, axis=-1), (*x.shape[:-count], *map(len, parts)))
