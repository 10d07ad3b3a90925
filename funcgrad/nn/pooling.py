"""Pooling: the maximum or the mean of what is in a window, as PyTorch has it.

Images are ``(batch, channels, *space)``, or without the batch. Of several equal maxima in a window
each gets the same share of the derivative, so that it adds up to 1 whatever the window holds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.errors import ArgumentError, ShapeError, describe, user_line
from funcgrad.nn.windows import Pairs, Sizes, check_image, check_window, pads, same_pads, sizes
from funcgrad.rules.nn import convolution, pooling

__all__ = [
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "fold",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "unfold",
]


def max_pool1d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:
    """Return the largest element of each window of a sequence.

    Parameters
    ----------
    x : array_like
        Of shape (batch, channels, length) or (channels, length).
    kernel_size, stride, padding, dilation, ceil_mode
        As of `max_pool2d`, for one axis.

    Returns
    -------
    ndarray
        Of the shape of `x` but for the length, and of its dtype.

    Examples
    --------
    >>> import numpy as np
    >>> max_pool1d(np.array([[1.0, 4.0, 2.0, 3.0, 5.0]]), 2, ceil_mode=True)
    array([[4., 3., 5.]])
    """
    return max_pool("max_pool1d", 1, x, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:
    """Return the largest element of each window of an image.

    Parameters
    ----------
    x : array_like
        Real numbers, of shape (batch, channels, height, width) or (channels, height, width).
    kernel_size : int or tuple of int
        The height and width of the window.
    stride : int or tuple of int, optional
        How far the window moves; by default its own size.
    padding : int, tuple of int, tuple of pairs of int, or str
        How far the window may begin before the image and end behind it, written as for `conv2d`.
        What is outside is never the largest.
    dilation : int or tuple of int
        The distance of the elements of the window from one another.
    ceil_mode : bool
        Also place a window that begins within the image (or its padding in front) and ends
        outside.

    Returns
    -------
    ndarray
        Of the shape of `x` but for the height and the width, and of its dtype.

    Raises
    ------
    ShapeError
        The window is larger than the padded image.
    ArgumentError
        An argument is not as described, or a window could lie outside of the image altogether.

    Examples
    --------
    >>> import numpy as np
    >>> max_pool2d(np.arange(16.0).reshape(1, 4, 4), 2)
    array([[[ 5.,  7.],
            [13., 15.]]])
    """
    return max_pool("max_pool2d", 2, x, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:
    """Return the largest element of each window of a volume.

    Parameters
    ----------
    x : array_like
        Of shape (batch, channels, depth, height, width), or without the batch.
    kernel_size, stride, padding, dilation, ceil_mode
        As of `max_pool2d`, for three axes.

    Returns
    -------
    ndarray
        Of the shape of `x` but for the last three axes, and of its dtype.

    Examples
    --------
    >>> import numpy as np
    >>> max_pool3d(np.arange(8.0).reshape(1, 2, 2, 2), 2)
    array([[[[7.]]]])
    """
    return max_pool("max_pool3d", 3, x, kernel_size, stride, padding, dilation, ceil_mode)


def avg_pool1d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    """Return the mean of each window of a sequence.

    Parameters
    ----------
    x : array_like
        Of shape (batch, channels, length) or (channels, length).
    kernel_size, stride, padding, ceil_mode, count_include_pad
        As of `avg_pool2d`, for one axis.

    Returns
    -------
    ndarray
        Of the shape of `x` but for the length, and of its dtype.

    Examples
    --------
    >>> import numpy as np
    >>> avg_pool1d(np.array([[1.0, 3.0, 5.0, 7.0]]), 2)
    array([[2., 6.]])
    """
    return avg_pool("avg_pool1d", 1, x, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    """Return the mean of each window of an image.

    Parameters
    ----------
    x : array_like
        Of shape (batch, channels, height, width) or (channels, height, width).
    kernel_size : int or tuple of int
        The height and width of the window.
    stride : int or tuple of int, optional
        How far the window moves; by default its own size.
    padding : int, tuple of int, tuple of pairs of int, or str
        How many zeros to put around the image, written as for `conv2d`.
    ceil_mode : bool
        Also place a window that begins within the image (or its padding in front) and ends
        outside; what is beyond the padding never counts.
    count_include_pad : bool
        Whether the zeros around the image count, in the mean.

    Returns
    -------
    ndarray
        Of the shape of `x` but for the height and the width; of its dtype, integers becoming
        float64.

    Raises
    ------
    ShapeError
        The window is larger than the padded image.
    ArgumentError
        An argument is not as described, or a window could lie outside of the image altogether.

    Examples
    --------
    >>> import numpy as np
    >>> avg_pool2d(np.arange(16.0).reshape(1, 4, 4), 2)
    array([[[ 2.5,  4.5],
            [10.5, 12.5]]])
    """
    return avg_pool("avg_pool2d", 2, x, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool3d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    """Return the mean of each window of a volume.

    Parameters
    ----------
    x : array_like
        Of shape (batch, channels, depth, height, width), or without the batch.
    kernel_size, stride, padding, ceil_mode, count_include_pad
        As of `avg_pool2d`, for three axes.

    Returns
    -------
    ndarray
        Of the shape of `x` but for the last three axes, and of its dtype.

    Examples
    --------
    >>> import numpy as np
    >>> avg_pool3d(np.arange(8.0).reshape(1, 2, 2, 2), 2)
    array([[[[3.5]]]])
    """
    return avg_pool("avg_pool3d", 3, x, kernel_size, stride, padding, ceil_mode, count_include_pad)


def unfold(x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """Return what is in each window of an image, as the columns of a matrix.

    Parameters
    ----------
    x : array_like
        Of shape (batch, channels, height, width) or (channels, height, width).
    kernel_size, dilation, stride : int or tuple of int
        As of `max_pool2d`.
    padding : int, tuple of int, tuple of pairs of int, or str
        How many zeros to put around the image, written as for `conv2d`.

    Returns
    -------
    ndarray
        Of shape (batch, channels * elements of the window, places of the window), without the
        batch if `x` has none.

    Examples
    --------
    >>> import numpy as np
    >>> unfold(np.arange(6.0).reshape(1, 2, 3), 2)
    array([[0., 1.],
           [1., 2.],
           [3., 4.],
           [4., 5.]])
    """
    x = convolution.as_floats(x)
    window, stride, pairs, dilation = _windows(
        "unfold", 2, x, kernel_size, stride, padding, dilation, False
    )
    return pooling.unfold.bind(x, window=window, stride=stride, padding=pairs, dilation=dilation)


def fold(
    x: Any,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Any:
    """Put the columns of a matrix into the windows of an image, and add them up.

    Parameters
    ----------
    x : array_like
        Of the shape of what `unfold` returns.
    output_size : int or tuple of int
        The height and width of the image.
    kernel_size, dilation, padding, stride
        As of `unfold`, of which this is the transpose.

    Returns
    -------
    ndarray
        Of shape (batch, channels, height, width), without the batch if `x` has none.

    Raises
    ------
    ShapeError
        `x` is not of the shape that `unfold` returns for such an image.

    Examples
    --------
    >>> import numpy as np
    >>> fold(np.ones((4, 2)), (2, 3), 2)
    array([[[1., 2., 1.],
            [1., 2., 1.]]])
    """
    x = convolution.as_floats(x)
    size, window = sizes(output_size, 2, "output_size"), sizes(kernel_size, 2, "kernel_size")
    stride, dilation = sizes(stride, 2, "stride"), sizes(dilation, 2, "dilation")
    pairs = pads(padding, 2, lambda: same_pads(size, window, stride, dilation))
    check_window("fold", size, window, pairs, dilation)
    places = math.prod(convolution.output_size(size, window, stride, pairs, dilation))
    if x.ndim not in (2, 3) or x.shape[-2] % math.prod(window) or x.shape[-1] != places:
        raise ShapeError(
            f"fold takes (batch, channels * {math.prod(window)}, {places}) or that without the "
            f"batch, for such images, got {describe(x)}",
            where=user_line(),
            fix="use what unfold returns",
        )
    return pooling.fold.bind(
        x, size=size, window=window, stride=stride, padding=pairs, dilation=dilation
    )


# All of them


def _windows(
    name: str,
    count: int,
    x: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
) -> tuple[Sizes, Sizes, Pairs, Sizes]:
    """Return window, stride, padding (with what `ceil_mode` adds behind) and dilation."""
    check_image(name, x, count)
    size = x.shape[-count:]
    window = sizes(kernel_size, count, "kernel_size")
    steps = window if stride is None else sizes(stride, count, "stride")
    gaps = sizes(dilation, count, "dilation")
    pairs = pads(padding, count, lambda: same_pads(size, window, steps, gaps))
    if ceil_mode:
        pairs = tuple(
            (low, high + _rest(n + low + high - d * (k - 1) - 1, s, n + low))
            for n, k, s, (low, high), d in zip(size, window, steps, pairs, gaps, strict=True)
        )
    check_window(name, size, window, pairs, gaps)  # one longer than the image may fit by now
    return window, steps, pairs, gaps


def _rest(room: int, step: int, end: int) -> int:
    """Return how much further the image must reach for one window more, if one may begin there."""
    missing = -room % step
    return missing if missing and room + missing < end else 0


def _refuse_outside(name: str, padding: Any, window: Sizes, gaps: Sizes, pairs: Pairs) -> None:
    """Refuse a window that sees nothing but padding."""
    reach = [d * (k - 1) for k, d in zip(window, gaps, strict=True)]
    if any(max(pair) > r for pair, r in zip(pairs, reach, strict=True)):
        raise ArgumentError(
            f"{name}: with padding={padding}, a window of {window} can lie outside of the image",
            where=user_line(),
            fix="use less padding than the window is long",
        )


def max_pool(
    name: str,
    count: int,
    x: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
) -> Any:
    """Return the largest element of each window along the last `count` axes, for `name`."""
    x = x if hasattr(x, "dtype") else np.asarray(x)
    window, steps, pairs, gaps = _windows(
        name, count, x, kernel_size, stride, padding, dilation, ceil_mode
    )
    _refuse_outside(name, padding, window, gaps, pairs)
    return pooling.max_window(x, window=window, stride=steps, padding=pairs, dilation=gaps)


def avg_pool(
    name: str,
    count: int,
    x: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
) -> Any:
    """Return the mean of each window along the last `count` axes, for `name`."""
    x = convolution.as_floats(x)
    args = (name, count, x, kernel_size, stride, padding, 1)
    window, steps, pairs, gaps = _windows(*args, ceil_mode)
    asked = pads(padding, count, lambda: same_pads(x.shape[-count:], window, steps, gaps))
    _refuse_outside(name, padding, window, gaps, asked)
    total = pooling.sum_window.bind(x, window=window, stride=steps, padding=pairs)
    if count_include_pad and pairs == asked:
        return total / math.prod(window)
    number: Any = 1
    for axis, (n, k, s) in enumerate(zip(x.shape[-count:], window, steps, strict=True)):
        low, high = asked[axis]
        starts = np.arange(total.shape[axis - count]) * s - low
        first, last = (-low, n + high) if count_include_pad else (0, n)
        counts = np.minimum(starts + k, last) - np.maximum(starts, first)
        number = number * counts.reshape(-1, *(1,) * (count - 1 - axis))
    return total / number.astype(total.real.dtype)
