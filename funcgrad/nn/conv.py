"""Convolutions of sequences, images and volumes, and the transposed ones, as PyTorch has them.

A convolution of networks slides a window over the image and takes the sum of products with a
kernel, which is not reversed. It is linear in the image and in the kernel. The axes of space come
last, ``(batch, channels, *space)``, and the batch may be missing. Complex numbers work too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.errors import ArgumentError, ShapeError, describe, user_line
from funcgrad.nn.windows import check_image, check_window, pads, same_pads, sizes
from funcgrad.rules.nn import convolution

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
]


def conv1d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Return the convolution of sequences with a kernel.

    Parameters
    ----------
    x : array_like
        Of shape (batch, channels, length) or (channels, length).
    weight : array_like
        Of shape (outputs, channels / groups, kernel length).
    bias, stride, padding, dilation, groups
        As of `conv2d`, for one axis.

    Returns
    -------
    ndarray
        Of shape (batch, outputs, length), without the batch if `x` has none.

    Examples
    --------
    >>> import numpy as np
    >>> conv1d(np.array([[1.0, 2.0, 4.0, 8.0]]), np.array([[[-1.0, 1.0]]]))
    array([[1., 2., 4.]])
    """
    return _conv("conv1d", 1, x, weight, bias, stride, padding, dilation, groups)


def conv2d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Return the convolution of images with a kernel.

    Parameters
    ----------
    x : array_like
        Images, of shape (batch, channels, height, width), or one image without the batch.
    weight : array_like
        The kernel, of shape (outputs, channels / groups, height, width).
    bias : array_like, optional
        A number for each output, which is added.
    stride : int or tuple of int
        How far the window moves from one place to the next, down and to the right.
    padding : int, tuple of int, tuple of pairs of int, or str
        How many zeros to put around the images: on all sides, ``(above and below, left and
        right)``, or ``((above, below), (left, right))``. ``"VALID"`` puts none; ``"SAME"``
        so many that the result has ``ceil(size / stride)`` elements, an odd one behind.
    dilation : int or tuple of int
        The distance of the elements of the kernel from one another, in the image.
    groups : int
        Into how many parts channels and outputs are cut, each part for itself.

    Returns
    -------
    ndarray
        Of shape (batch, outputs, height, width), without the batch if `x` has none; of the dtype
        that products of `x` and `weight` have, integers becoming float64. The order of the axes
        in memory is what was fastest to compute.

    Raises
    ------
    ShapeError
        The shapes do not fit together, or the window is larger than the padded image.
    ArgumentError
        `stride`, `padding`, `dilation` or `groups` are not as described.

    Notes
    -----
    With many channels, a kernel of three rows and float32, the products of two neighbouring rows
    are shared (Winograd's F(2, 3) along one axis), and with still more channels and a kernel of
    three by three those of neighbouring places (F(2 x 2, 3 x 3)): as exact as a sum in another
    order, to twice the rounding error.

    Examples
    --------
    >>> import numpy as np
    >>> conv2d(np.ones((1, 3, 3)), np.ones((1, 1, 3, 3)), padding=1)
    array([[[4., 6., 4.],
            [6., 9., 6.],
            [4., 6., 4.]]])
    """
    return _conv("conv2d", 2, x, weight, bias, stride, padding, dilation, groups)


def conv3d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Return the convolution of volumes with a kernel.

    Parameters
    ----------
    x : array_like
        Of shape (batch, channels, depth, height, width), or without the batch.
    weight : array_like
        Of shape (outputs, channels / groups, depth, height, width).
    bias, stride, padding, dilation, groups
        As of `conv2d`, for three axes.

    Returns
    -------
    ndarray
        Of shape (batch, outputs, depth, height, width), without the batch if `x` has none.

    Examples
    --------
    >>> import numpy as np
    >>> conv3d(np.ones((1, 2, 2, 2)), np.ones((1, 1, 2, 2, 2)))
    array([[[[8.]]]])
    """
    return _conv("conv3d", 3, x, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """Return the transposed convolution of sequences with a kernel.

    Parameters
    ----------
    x : array_like
        Of shape (batch, channels, length) or (channels, length).
    weight : array_like
        Of shape (channels, outputs / groups, kernel length).
    bias, stride, padding, output_padding, groups, dilation
        As of `conv_transpose2d`, for one axis.

    Returns
    -------
    ndarray
        Of shape (batch, outputs, length), without the batch if `x` has none.

    Examples
    --------
    >>> import numpy as np
    >>> conv_transpose1d(np.array([[1.0, 2.0]]), np.array([[[1.0, 0.5]]]), stride=2)
    array([[1. , 0.5, 2. , 1. ]])
    """
    return _transposed(
        "conv_transpose1d", 1, x, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose2d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """Return the transposed convolution of images with a kernel.

    That is the transpose of the linear map `conv2d`, as a function of its image: each element of
    `x` puts a multiple of the kernel into the result, `stride` elements from the next.

    Parameters
    ----------
    x : array_like
        Images, of shape (batch, channels, height, width), or one image without the batch.
    weight : array_like
        The kernel, of shape (channels, outputs / groups, height, width).
    bias : array_like, optional
        A number for each output, which is added.
    stride : int or tuple of int
        How far apart in the result neighbouring elements of `x` are.
    padding : int, tuple of int, tuple of pairs of int, or str
        How much of the result to leave away at its sides, written as for `conv2d`: the padding of
        the convolution that this transposes. ``"SAME"`` leaves ``size * stride`` elements.
    output_padding : int or tuple of int
        How many elements the result has more at its end, less than `stride` or `dilation`.
    groups : int
        Into how many parts channels and outputs are cut, each part for itself.
    dilation : int or tuple of int
        The distance of the elements of the kernel from one another, in the result.

    Returns
    -------
    ndarray
        Of shape (batch, outputs, height, width), without the batch if `x` has none, where the
        height is ``(n - 1) * stride - 2 * padding + dilation * (k - 1) + output_padding + 1`` for
        `n` rows of `x` and `k` of the kernel, and the width likewise.

    Raises
    ------
    ShapeError
        The shapes do not fit together, or nothing would be left of the result.
    ArgumentError
        `stride`, `padding`, `output_padding`, `groups` or `dilation` are not as described.

    Examples
    --------
    >>> import numpy as np
    >>> conv_transpose2d(np.array([[[1.0, 2.0]]]), np.ones((1, 1, 2, 2)), stride=2)
    array([[[1., 1., 2., 2.],
            [1., 1., 2., 2.]]])
    """
    return _transposed(
        "conv_transpose2d", 2, x, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose3d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """Return the transposed convolution of volumes with a kernel.

    Parameters
    ----------
    x : array_like
        Of shape (batch, channels, depth, height, width), or without the batch.
    weight : array_like
        Of shape (channels, outputs / groups, depth, height, width).
    bias, stride, padding, output_padding, groups, dilation
        As of `conv_transpose2d`, for three axes.

    Returns
    -------
    ndarray
        Of shape (batch, outputs, depth, height, width), without the batch if `x` has none.

    Examples
    --------
    >>> import numpy as np
    >>> conv_transpose3d(np.ones((1, 1, 1, 2)), np.ones((1, 1, 1, 1, 2)))
    array([[[[1., 2., 1.]]]])
    """
    return _transposed(
        "conv_transpose3d", 3, x, weight, bias, stride, padding, output_padding, groups, dilation
    )


# All of them


def _conv(
    name: str,
    count: int,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Any:
    x, weight = convolution.as_floats(x), convolution.as_floats(weight)
    check_image(name, x, count)
    groups = _check_weight(name, weight, count, groups, ("outputs", "channels"))
    channels, outputs = x.shape[-count - 1], weight.shape[0]
    if channels != weight.shape[1] * groups or outputs % groups:
        _refuse(name, x, weight, groups, f"(outputs, {channels} / groups, ...)")
    _check_bias(name, bias, outputs)
    size, kernel = x.shape[-count:], weight.shape[2:]
    stride, dilation = sizes(stride, count, "stride"), sizes(dilation, count, "dilation")
    pairs = pads(padding, count, lambda: same_pads(size, kernel, stride, dilation))
    check_window(name, size, kernel, pairs, dilation)
    images = x if x.ndim == count + 2 else np.expand_dims(x, 0)
    params = {"stride": stride, "padding": pairs, "dilation": dilation, "groups": groups}
    images = convolution.laid_out(images, weight, **params)
    out = convolution.conv.bind(images, weight, **params)
    return _finished(out, bias, count, x)


def _transposed(
    name: str,
    count: int,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Any:
    x, weight = convolution.as_floats(x), convolution.as_floats(weight)
    check_image(name, x, count)
    groups = _check_weight(name, weight, count, groups, ("channels", "outputs"))
    channels, outputs = x.shape[-count - 1], weight.shape[1] * groups
    if channels != weight.shape[0] or channels % groups:
        _refuse(name, x, weight, groups, f"({channels}, outputs / groups, ...)")
    _check_bias(name, bias, outputs)
    places = x.shape[-count:]
    stride, dilation = sizes(stride, count, "stride"), sizes(dilation, count, "dilation")
    more = sizes(output_padding, count, "output_padding", 0)
    if any(m >= max(s, d) for m, s, d in zip(more, stride, dilation, strict=True)):
        raise ArgumentError(
            f"{name}: output_padding={output_padding} is as large as stride and dilation",
            where=user_line(),
            fix="use a smaller one, or put zeros behind the result with np.pad",
        )
    full = tuple(  # what the windows reach
        (n - 1) * s + d * (k - 1) + 1
        for n, s, d, k in zip(places, stride, dilation, weight.shape[2:], strict=True)
    )

    def same() -> tuple[tuple[int, int], ...]:
        # Where the kernel is shorter than the stride, the rest comes behind.
        nonlocal more
        excess = [have - n * s for have, n, s in zip(full, places, stride, strict=True)]
        more = tuple(max(-e, 0) for e in excess)
        return tuple((max(e, 0) // 2, max(e, 0) - max(e, 0) // 2) for e in excess)

    pairs = pads(padding, count, same)
    if isinstance(padding, str) and padding.lower() == "valid":  # as in JAX: at least n * stride
        rest = (n * s - have for n, s, have in zip(places, stride, full, strict=True))
        more = tuple(max(m, r) for m, r in zip(more, rest, strict=True))
    size = tuple(
        have - low - high + m for have, (low, high), m in zip(full, pairs, more, strict=True)
    )
    if min(size) < 1 or min(places) < 1:
        raise ShapeError(
            f"{name}: of a result of {full} elements, padding {pairs} leaves {size}",
            where=user_line(),
            fix="use less padding: here it says how much to leave away",
        )
    # What the result has more at its end is what padding had left away there; then zeros, of which
    # a convolution leaves fewer than `stride` out of account.
    ends = tuple(low + n for n, (low, _) in zip(size, pairs, strict=True))
    extra = tuple(max(e - f - s + 1, 0) for e, f, s in zip(ends, full, stride, strict=True))
    pairs = tuple((low, max(f - e, 0)) for e, f, (low, _) in zip(ends, full, pairs, strict=True))
    images = x if x.ndim == count + 2 else np.expand_dims(x, 0)
    out = convolution.conv_input.bind(
        images,
        weight,
        size=tuple(n - e for n, e in zip(size, extra, strict=True)),
        stride=stride,
        padding=pairs,
        dilation=dilation,
        groups=groups,
    )
    if any(extra):
        out = np.pad(out, ((0, 0), (0, 0), *((0, e) for e in extra)))
    return _finished(out, bias, count, x)


def _finished(out: Any, bias: Any, count: int, x: Any) -> Any:
    if bias is not None:
        bias = convolution.as_floats(bias)
        out = out + np.reshape(bias, (bias.shape[0], *(1,) * count))
    return out if x.ndim == count + 2 else np.squeeze(out, 0)


def _check_weight(name: str, weight: Any, count: int, groups: Any, axes: tuple[str, str]) -> int:
    """Refuse a kernel with another number of axes, and return `groups` as a number."""
    if weight.ndim != count + 2 or min(weight.shape[2:]) < 1:
        raise ShapeError(
            f"{name} takes a kernel of shape ({axes[0]}, {axes[1]} / groups, and {count} lengths "
            f"of at least 1), got {describe(weight)}",
            where=user_line(),
            fix="make the kernel of that shape, or use the function for another number of axes",
        )
    return sizes(groups, 1, "groups")[0]


def _refuse(name: str, x: Any, weight: Any, groups: int, shape: str) -> None:
    raise ShapeError(
        f"{name}: images {describe(x)} and kernel {describe(weight)} do not fit together "
        f"with groups={groups}",
        where=user_line(),
        fix=f"use a kernel of shape {shape}, with channels and outputs divisible by groups",
    )


def _check_bias(name: str, bias: Any, outputs: int) -> None:
    if bias is not None and np.shape(bias) != (outputs,):
        raise ShapeError(
            f"{name} takes a bias with a number for each of {outputs} outputs, "
            f"got shape {np.shape(bias)}",
            where=user_line(),
            fix=f"use a bias of shape ({outputs},)",
        )
