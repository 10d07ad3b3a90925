"""Layers of convolutions and their transposes, of which `funcgrad.nn.functional` has the functions.

Each class takes the number of its spatial axes, and those named for it have one, two or three.
Arguments have the shape (..., channels, *spatial), with any number of axes before the channels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError, describe, user_line
from funcgrad.nn.linear import start
from funcgrad.nn.module import Module

__all__ = [
    "Conv",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]

Sizes = int | Sequence[int]
Padding = str | int | Sequence[int] | Sequence[tuple[int, int]]
# Padding modes of PyTorch, in NumPy's words.
_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


class Conv(Module):
    """A convolution: each output channel is a sum over windows of all channels of its group.

    Parameters
    ----------
    num_spatial_dims : int
        How many axes come after the channels: 1, 2 or 3.
    in_channels, out_channels : int
        The numbers of channels of arguments and results.
    kernel_size : int or sequence of int
        The size of the window.
    stride : int or sequence of int
        From one window to the next.
    padding : int, sequence of int, sequence of pairs of int, or str
        How much is added at both ends of each axis; or "SAME", "VALID".
    dilation : int or sequence of int
        From one element of a window to the next.
    groups : int
        Channels are put into this many groups, each with its own outputs.
    use_bias : bool
        Whether to add a constant to each output channel.
    padding_mode : {"zeros", "reflect", "replicate", "circular"}
        What is added at the ends.
    dtype : dtype, optional
        Of the parameters; float64 by default.
    key : Key
        For the initial values, uniform between plus and minus 1/sqrt(n) for n inputs of an
        output.

    Attributes
    ----------
    weight : ndarray, shape (out_channels, in_channels / groups, ...)
        The kernels.
    bias : ndarray, shape (out_channels, 1, ...), or None
        The constants.

    Raises
    ------
    ArgumentError
        Sizes are not positive, or groups do not divide the channels.
    ShapeError
        When called: the argument has too few axes, or another number of channels.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> layer = fg.nn.Conv(2, 3, 8, kernel_size=3, padding=1, key=fg.random.key(0))
    >>> layer(np.ones((10, 3, 5, 5))).shape
    (10, 8, 5, 5)
    """

    weight: Any
    bias: Any
    num_spatial_dims: int = fg.static()
    in_channels: int = fg.static()
    out_channels: int = fg.static()
    kernel_size: tuple[int, ...] = fg.static()
    stride: tuple[int, ...] = fg.static()
    padding: Any = fg.static()
    dilation: tuple[int, ...] = fg.static()
    groups: int = fg.static()
    use_bias: bool = fg.static()
    padding_mode: str = fg.static()

    def __init__(
        self,
        num_spatial_dims: int,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Padding = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        use_bias: bool = True,
        padding_mode: str = "zeros",
        dtype: npt.DTypeLike | None = None,
        *,
        key: fg.random.Key,
    ) -> None:
        name = type(self).__name__
        _check(name, num_spatial_dims, in_channels, out_channels, groups)
        if padding_mode.lower() not in _MODES:
            raise ArgumentError(
                f"{name} has no padding_mode={padding_mode!r}",
                where=user_line(),
                fix=f"one of {', '.join(_MODES)}",
            )
        self.num_spatial_dims = num_spatial_dims
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = _each(name, "kernel_size", kernel_size, num_spatial_dims)
        self.stride = _each(name, "stride", stride, num_spatial_dims)
        self.padding = padding
        self.dilation = _each(name, "dilation", dilation, num_spatial_dims)
        self.groups, self.use_bias = groups, use_bias
        self.padding_mode = padding_mode.lower()
        inputs = in_channels // groups
        fan_in = inputs * math.prod(self.kernel_size)
        weight_key, bias_key = fg.random.split(key)
        self.weight = start(weight_key, (out_channels, inputs, *self.kernel_size), fan_in, dtype)
        ones = (1,) * num_spatial_dims
        self.bias = start(bias_key, (out_channels, *ones), fan_in, dtype) if use_bias else None

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Convolve `x`, of shape ``(..., in_channels, *spatial)``."""
        x, lead = _one_batch(self, x, self.num_spatial_dims, self.in_channels)
        padding = self.padding
        if self.padding_mode != "zeros":
            x, padding = self._padded(x), 0
        bias = None if self.bias is None else np.reshape(self.bias, (-1,))
        convolve = (fg.nn.functional.conv1d, fg.nn.functional.conv2d, fg.nn.functional.conv3d)
        out = convolve[self.num_spatial_dims - 1](
            x, self.weight, bias, self.stride, padding, self.dilation, self.groups
        )
        return out if lead is None else np.reshape(out, (*lead, *out.shape[1:]))

    def _padded(self, x: Any) -> Any:
        """Pad with other values than zeros."""
        pairs = _pairs(self, x.shape[x.ndim - self.num_spatial_dims :])
        none = [(0, 0)] * (x.ndim - self.num_spatial_dims)
        return np.pad(x, [*none, *pairs], mode=_MODES[self.padding_mode])  # type: ignore[call-overload]


class ConvTranspose(Module):
    """The transpose of a convolution: each element puts a multiple of the kernel into the result.

    Parameters
    ----------
    num_spatial_dims : int
        How many axes come after the channels: 1, 2 or 3.
    in_channels, out_channels : int
        The numbers of channels of arguments and results.
    kernel_size : int or sequence of int
        The size of the window.
    stride : int or sequence of int
        From one window to the next, in the result.
    padding : int or sequence of int
        How much is cut off at both ends of each axis.
    output_padding : int or sequence of int
        How much is added at the end of each axis, of the sizes that `stride` leaves open.
    dilation : int or sequence of int
        From one element of a window to the next.
    groups : int
        Channels are put into this many groups, each with its own outputs.
    use_bias : bool
        Whether to add a constant to each output channel.
    dtype : dtype, optional
        Of the parameters; float64 by default.
    key : Key
        For the initial values, uniform between plus and minus 1/sqrt(n), as in PyTorch: n is the
        number of outputs of a group times the size of the window.

    Attributes
    ----------
    weight : ndarray, shape (in_channels, out_channels / groups, ...)
        The kernels, as in PyTorch.
    bias : ndarray, shape (out_channels, 1, ...), or None
        The constants.

    Raises
    ------
    ArgumentError
        Sizes are not positive, or groups do not divide the channels.
    ShapeError
        When called: the argument has too few axes, or another number of channels.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> layer = fg.nn.ConvTranspose(2, 8, 3, kernel_size=2, stride=2, key=fg.random.key(0))
    >>> layer(np.ones((10, 8, 5, 5))).shape
    (10, 3, 10, 10)
    """

    weight: Any
    bias: Any
    num_spatial_dims: int = fg.static()
    in_channels: int = fg.static()
    out_channels: int = fg.static()
    kernel_size: tuple[int, ...] = fg.static()
    stride: tuple[int, ...] = fg.static()
    padding: Any = fg.static()
    output_padding: Any = fg.static()
    dilation: tuple[int, ...] = fg.static()
    groups: int = fg.static()
    use_bias: bool = fg.static()

    def __init__(
        self,
        num_spatial_dims: int,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        use_bias: bool = True,
        dtype: npt.DTypeLike | None = None,
        *,
        key: fg.random.Key,
    ) -> None:
        name = type(self).__name__
        _check(name, num_spatial_dims, in_channels, out_channels, groups)
        self.num_spatial_dims = num_spatial_dims
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = _each(name, "kernel_size", kernel_size, num_spatial_dims)
        self.stride = _each(name, "stride", stride, num_spatial_dims)
        self.padding, self.output_padding = padding, output_padding
        self.dilation = _each(name, "dilation", dilation, num_spatial_dims)
        self.groups, self.use_bias = groups, use_bias
        outputs = out_channels // groups
        fan = outputs * math.prod(self.kernel_size)
        weight_key, bias_key = fg.random.split(key)
        self.weight = start(weight_key, (in_channels, outputs, *self.kernel_size), fan, dtype)
        ones = (1,) * num_spatial_dims
        self.bias = start(bias_key, (out_channels, *ones), fan, dtype) if use_bias else None

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Apply the transpose to `x`, of shape ``(..., in_channels, *spatial)``."""
        x, lead = _one_batch(self, x, self.num_spatial_dims, self.in_channels)
        bias = None if self.bias is None else np.reshape(self.bias, (-1,))
        functional = fg.nn.functional
        transpose = (
            functional.conv_transpose1d,
            functional.conv_transpose2d,
            functional.conv_transpose3d,
        )[self.num_spatial_dims - 1]
        out = transpose(
            x,
            self.weight,
            bias,
            self.stride,
            self.padding,
            self.output_padding,
            self.groups,
            self.dilation,
        )
        return out if lead is None else np.reshape(out, (*lead, *out.shape[1:]))


class Conv1d(Conv):
    """A convolution over one axis.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, padding, dilation, groups, use_bias
        See `Conv`.
    padding_mode, dtype, key
        See `Conv`.

    Attributes
    ----------
    weight : ndarray, shape (out_channels, in_channels / groups, k)
        The kernels.
    bias : ndarray, shape (out_channels, 1), or None
        The constants.

    Raises
    ------
    ArgumentError, ShapeError
        As `Conv`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> layer = fg.nn.Conv1d(3, 8, kernel_size=3, key=fg.random.key(0))
    >>> layer(np.ones((10, 3, 5))).shape
    (10, 8, 3)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Padding = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        use_bias: bool = True,
        padding_mode: str = "zeros",
        dtype: npt.DTypeLike | None = None,
        *,
        key: fg.random.Key,
    ) -> None:
        super().__init__(
            1,
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            use_bias,
            padding_mode,
            dtype,
            key=key,
        )


class Conv2d(Conv):
    """A convolution over images.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, padding, dilation, groups, use_bias
        See `Conv`.
    padding_mode, dtype, key
        See `Conv`.

    Attributes
    ----------
    weight : ndarray, shape (out_channels, in_channels / groups, k, k)
        The kernels.
    bias : ndarray, shape (out_channels, 1, 1), or None
        The constants.

    Raises
    ------
    ArgumentError, ShapeError
        As `Conv`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> layer = fg.nn.Conv2d(3, 8, kernel_size=3, key=fg.random.key(0))
    >>> layer(np.ones((10, 3, 5, 5))).shape
    (10, 8, 3, 3)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Padding = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        use_bias: bool = True,
        padding_mode: str = "zeros",
        dtype: npt.DTypeLike | None = None,
        *,
        key: fg.random.Key,
    ) -> None:
        super().__init__(
            2,
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            use_bias,
            padding_mode,
            dtype,
            key=key,
        )


class Conv3d(Conv):
    """A convolution over volumes.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, padding, dilation, groups, use_bias
        See `Conv`.
    padding_mode, dtype, key
        See `Conv`.

    Attributes
    ----------
    weight : ndarray, shape (out_channels, in_channels / groups, k, k, k)
        The kernels.
    bias : ndarray, shape (out_channels, 1, 1, 1), or None
        The constants.

    Raises
    ------
    ArgumentError, ShapeError
        As `Conv`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> layer = fg.nn.Conv3d(3, 8, kernel_size=3, key=fg.random.key(0))
    >>> layer(np.ones((10, 3, 5, 5, 5))).shape
    (10, 8, 3, 3, 3)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Padding = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        use_bias: bool = True,
        padding_mode: str = "zeros",
        dtype: npt.DTypeLike | None = None,
        *,
        key: fg.random.Key,
    ) -> None:
        super().__init__(
            3,
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            use_bias,
            padding_mode,
            dtype,
            key=key,
        )


class ConvTranspose1d(ConvTranspose):
    """The transpose of a convolution over one axis.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, padding, output_padding, dilation, groups
        See `ConvTranspose`.
    use_bias, dtype, key
        See `ConvTranspose`.

    Attributes
    ----------
    weight : ndarray, shape (in_channels, out_channels / groups, k)
        The kernels.
    bias : ndarray, shape (out_channels, 1), or None
        The constants.

    Raises
    ------
    ArgumentError, ShapeError
        As `ConvTranspose`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> layer = fg.nn.ConvTranspose1d(8, 3, kernel_size=2, stride=2, key=fg.random.key(0))
    >>> layer(np.ones((10, 8, 5))).shape
    (10, 3, 10)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        use_bias: bool = True,
        dtype: npt.DTypeLike | None = None,
        *,
        key: fg.random.Key,
    ) -> None:
        super().__init__(
            1,
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            output_padding,
            dilation,
            groups,
            use_bias,
            dtype,
            key=key,
        )


class ConvTranspose2d(ConvTranspose):
    """The transpose of a convolution over images.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, padding, output_padding, dilation, groups
        See `ConvTranspose`.
    use_bias, dtype, key
        See `ConvTranspose`.

    Attributes
    ----------
    weight : ndarray, shape (in_channels, out_channels / groups, k, k)
        The kernels.
    bias : ndarray, shape (out_channels, 1, 1), or None
        The constants.

    Raises
    ------
    ArgumentError, ShapeError
        As `ConvTranspose`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> layer = fg.nn.ConvTranspose2d(8, 3, kernel_size=2, stride=2, key=fg.random.key(0))
    >>> layer(np.ones((10, 8, 5, 5))).shape
    (10, 3, 10, 10)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        use_bias: bool = True,
        dtype: npt.DTypeLike | None = None,
        *,
        key: fg.random.Key,
    ) -> None:
        super().__init__(
            2,
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            output_padding,
            dilation,
            groups,
            use_bias,
            dtype,
            key=key,
        )


class ConvTranspose3d(ConvTranspose):
    """The transpose of a convolution over volumes.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, padding, output_padding, dilation, groups
        See `ConvTranspose`.
    use_bias, dtype, key
        See `ConvTranspose`.

    Attributes
    ----------
    weight : ndarray, shape (in_channels, out_channels / groups, k, k, k)
        The kernels.
    bias : ndarray, shape (out_channels, 1, 1, 1), or None
        The constants.

    Raises
    ------
    ArgumentError, ShapeError
        As `ConvTranspose`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> layer = fg.nn.ConvTranspose3d(8, 3, kernel_size=2, stride=2, key=fg.random.key(0))
    >>> layer(np.ones((10, 8, 5, 5, 5))).shape
    (10, 3, 10, 10, 10)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        use_bias: bool = True,
        dtype: npt.DTypeLike | None = None,
        *,
        key: fg.random.Key,
    ) -> None:
        super().__init__(
            3,
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            output_padding,
            dilation,
            groups,
            use_bias,
            dtype,
            key=key,
        )


def _check(name: str, dims: int, in_channels: int, out_channels: int, groups: int) -> None:
    if dims not in (1, 2, 3):
        raise ArgumentError(
            f"{name} cannot have num_spatial_dims={dims!r}", where=user_line(), fix="1, 2 or 3"
        )
    if min(in_channels, out_channels, groups) < 1 or in_channels % groups or out_channels % groups:
        raise ArgumentError(
            f"{name} cannot have {in_channels} channels in, {out_channels} out, "
            f"and {groups} groups",
            where=user_line(),
            fix="numbers from 1 up, of which groups divides the others",
        )


def _each(name: str, what: str, sizes: Sizes, count: int) -> tuple[int, ...]:
    """Return one size for each spatial axis."""
    made = (sizes,) * count if isinstance(sizes, int) else tuple(sizes)
    if len(made) != count or any(size < 1 for size in made):
        raise ArgumentError(
            f"{name} cannot have {what}={sizes!r}",
            where=user_line(),
            fix=f"an integer from 1 up, or {count} of them",
        )
    return made


def _one_batch(module: Module, x: Any, dims: int, channels: int) -> tuple[Any, Any]:
    """Return `x` with one batch axis at most, and the axes that were made one, or None."""
    shape = np.shape(x)
    if len(shape) <= dims or shape[-dims - 1] != channels:
        spatial = ("length", "height, width", "depth, height, width")[dims - 1]
        raise ShapeError(
            f"{type(module).__name__} expects (..., {channels}, {spatial}), "
            f"and was given {describe(x)}",
            where=user_line(),
            fix=f"{channels} channels along axis {-dims - 1}; "
            "np.moveaxis(x, -1, ...) if they are last",
        )
    lead = shape[: -dims - 1]
    if len(lead) < 2:
        return x, None
    return np.reshape(x, (math.prod(lead), *shape[-dims - 1 :])), lead


def _pairs(module: Conv, spatial: Sequence[int]) -> list[tuple[int, int]]:
    """Return how much is padded before and after, along each spatial axis."""
    padding, count = module.padding, module.num_spatial_dims
    if isinstance(padding, str):
        if padding.upper() == "VALID":
            return [(0, 0)] * count
        pairs = []
        for size, window, step, gap in zip(
            spatial, module.kernel_size, module.stride, module.dilation, strict=True
        ):
            whole = max((-(-size // step) - 1) * step + (window - 1) * gap + 1 - size, 0)
            pairs.append((whole // 2, whole - whole // 2))
        return pairs
    if isinstance(padding, int):
        return [(padding, padding)] * count
    return [(pair, pair) if isinstance(pair, int) else tuple(pair) for pair in padding]
