"""Pooling layers: functions of windows, of which `funcgrad.nn.functional` has the functions.

They have no parameters. Arguments have the shape (..., channels, *spatial), with any number of axes
before the channels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError, describe, user_line
from funcgrad.nn.module import Module

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AdaptivePool",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "Pool",
]

F = fg.nn.functional
Sizes = int | Sequence[int]


class Pool(Module):
    """A pooling function as a layer: what the named layers have in common, or one of your own.

    Parameters
    ----------
    function : callable
        Takes an array (batch, channels, *spatial), and the options by keyword.
    num_spatial_dims : int
        How many axes come after the channels.
    options : dict
        Keyword arguments of `function`.

    Raises
    ------
    ShapeError
        When called: the argument has too few axes.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> pool = fg.nn.Pool(fg.nn.functional.max_pool2d, 2, {"kernel_size": 2})
    >>> pool(np.arange(16.0).reshape(1, 4, 4))
    array([[[ 5.,  7.],
            [13., 15.]]])
    """

    function: Callable[..., Any] = fg.static()
    num_spatial_dims: int = fg.static()
    options: dict[str, Any] = fg.static(factory=dict)

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Pool `x`, of shape (..., channels, *spatial)."""
        return _pooled(self, self.function, x, self.num_spatial_dims, self.options)


class AdaptivePool(Module):
    """Pooling to a given size: windows are chosen so that they tile the argument.

    Parameters
    ----------
    target_shape : int or sequence of int
        The sizes of the spatial axes of the result; an integer for all of them.
    num_spatial_dims : int
        How many axes come after the channels: 1, 2 or 3.
    operation : callable
        What is made of each window: `numpy.mean` or `numpy.max`.

    Raises
    ------
    ArgumentError
        The operation is another one.
    ShapeError
        When called: the argument has too few axes.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.nn.AdaptivePool(2, 1, np.mean)(np.arange(4.0).reshape(1, 4))
    array([[0.5, 2.5]])
    """

    target_shape: tuple[int, ...] = fg.static()
    num_spatial_dims: int = fg.static()
    operation: Callable[..., Any] = fg.static()

    def __init__(
        self, target_shape: Sizes, num_spatial_dims: int, operation: Callable[..., Any]
    ) -> None:
        if operation not in (np.mean, np.max, np.average, np.amax):
            raise ArgumentError(
                "AdaptivePool takes the mean or the maximum of each window",
                where=user_line(),
                fix="numpy.mean or numpy.max",
            )
        self.target_shape = (
            (target_shape,) * num_spatial_dims
            if isinstance(target_shape, int)
            else tuple(target_shape)
        )
        self.num_spatial_dims = num_spatial_dims
        self.operation = operation

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Pool `x`, of shape (..., channels, *spatial)."""
        mean = self.operation in (np.mean, np.average)
        function = (_ADAPTIVE_MEAN if mean else _ADAPTIVE_MAX)[self.num_spatial_dims - 1]
        return _pooled(self, function, x, self.num_spatial_dims, {"output_size": self.target_shape})


_ADAPTIVE_MEAN = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)
_ADAPTIVE_MAX = (F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d)


def _pooled(
    module: Module, function: Callable[..., Any], x: Any, dims: int, options: dict[str, Any]
) -> Any:
    """Call `function` with all axes before the channels as one."""
    shape = np.shape(x)
    if len(shape) <= dims:
        raise ShapeError(
            f"{type(module).__name__} expects (..., channels, "
            f"{', '.join(('depth', 'height', 'width')[3 - dims :])}), and was given {describe(x)}",
            where=user_line(),
            fix="x[None] adds an axis of one channel",
        )
    lead = shape[: -dims - 1]
    if len(lead) < 2:
        return function(x, **options)
    out = function(np.reshape(x, (math.prod(lead), *shape[-dims - 1 :])), **options)
    return np.reshape(out, (*lead, *out.shape[1:]))


class MaxPool1d(Module):
    """The largest element of each window, over one axis.

    Parameters
    ----------
    kernel_size : int or sequence of int
        The size of a window.
    stride : int or sequence of int, optional
        From one window to the next; by default `kernel_size`, as in PyTorch.
    padding : int, sequence of int, sequence of pairs of int, or str
        How much is added at the ends; it is never the largest.
    dilation : int or sequence of int
        From one element of a window to the next.
    ceil_mode : bool
        Whether windows that reach beyond the end count.

    Raises
    ------
    ShapeError
        When called: the argument has too few axes.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.nn.MaxPool1d(2)(np.ones((10, 3, 6))).shape
    (10, 3, 3)
    """

    kernel_size: Sizes = fg.static()
    stride: Sizes | None = fg.static(default=None)
    padding: Any = fg.static(default=0)
    dilation: Sizes = fg.static(default=1)
    ceil_mode: bool = fg.static(default=False)

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Pool `x`, of shape (..., channels, *spatial)."""
        return _pooled(
            self,
            F.max_pool1d,
            x,
            1,
            {
                "kernel_size": self.kernel_size,
                "stride": self.stride,
                "padding": self.padding,
                "dilation": self.dilation,
                "ceil_mode": self.ceil_mode,
            },
        )


class MaxPool2d(Module):
    """The largest element of each window, over images.

    Parameters
    ----------
    kernel_size : int or sequence of int
        The size of a window.
    stride : int or sequence of int, optional
        From one window to the next; by default `kernel_size`, as in PyTorch.
    padding : int, sequence of int, sequence of pairs of int, or str
        How much is added at the ends; it is never the largest.
    dilation : int or sequence of int
        From one element of a window to the next.
    ceil_mode : bool
        Whether windows that reach beyond the end count.

    Raises
    ------
    ShapeError
        When called: the argument has too few axes.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.nn.MaxPool2d(2)(np.ones((10, 3, 6, 6))).shape
    (10, 3, 3, 3)
    """

    kernel_size: Sizes = fg.static()
    stride: Sizes | None = fg.static(default=None)
    padding: Any = fg.static(default=0)
    dilation: Sizes = fg.static(default=1)
    ceil_mode: bool = fg.static(default=False)

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Pool `x`, of shape (..., channels, *spatial)."""
        return _pooled(
            self,
            F.max_pool2d,
            x,
            2,
            {
                "kernel_size": self.kernel_size,
                "stride": self.stride,
                "padding": self.padding,
                "dilation": self.dilation,
                "ceil_mode": self.ceil_mode,
            },
        )


class MaxPool3d(Module):
    """The largest element of each window, over volumes.

    Parameters
    ----------
    kernel_size : int or sequence of int
        The size of a window.
    stride : int or sequence of int, optional
        From one window to the next; by default `kernel_size`, as in PyTorch.
    padding : int, sequence of int, sequence of pairs of int, or str
        How much is added at the ends; it is never the largest.
    dilation : int or sequence of int
        From one element of a window to the next.
    ceil_mode : bool
        Whether windows that reach beyond the end count.

    Raises
    ------
    ShapeError
        When called: the argument has too few axes.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.nn.MaxPool3d(2)(np.ones((10, 3, 6, 6, 6))).shape
    (10, 3, 3, 3, 3)
    """

    kernel_size: Sizes = fg.static()
    stride: Sizes | None = fg.static(default=None)
    padding: Any = fg.static(default=0)
    dilation: Sizes = fg.static(default=1)
    ceil_mode: bool = fg.static(default=False)

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Pool `x`, of shape (..., channels, *spatial)."""
        return _pooled(
            self,
            F.max_pool3d,
            x,
            3,
            {
                "kernel_size": self.kernel_size,
                "stride": self.stride,
                "padding": self.padding,
                "dilation": self.dilation,
                "ceil_mode": self.ceil_mode,
            },
        )


class AvgPool1d(Module):
    """The mean of each window, over one axis.

    Parameters
    ----------
    kernel_size : int or sequence of int
        The size of a window.
    stride : int or sequence of int, optional
        From one window to the next; by default `kernel_size`, as in PyTorch.
    padding : int, sequence of int, sequence of pairs of int, or str
        How many zeros are added at the ends.
    ceil_mode : bool
        Whether windows that reach beyond the end count.
    count_include_pad : bool
        Whether padding counts in the mean.

    Raises
    ------
    ShapeError
        When called: the argument has too few axes.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.nn.AvgPool1d(2)(np.ones((10, 3, 6))).shape
    (10, 3, 3)
    """

    kernel_size: Sizes = fg.static()
    stride: Sizes | None = fg.static(default=None)
    padding: Any = fg.static(default=0)
    ceil_mode: bool = fg.static(default=False)
    count_include_pad: bool = fg.static(default=True)

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Pool `x`, of shape (..., channels, *spatial)."""
        return _pooled(
            self,
            F.avg_pool1d,
            x,
            1,
            {
                "kernel_size": self.kernel_size,
                "stride": self.stride,
                "padding": self.padding,
                "ceil_mode": self.ceil_mode,
                "count_include_pad": self.count_include_pad,
            },
        )


class AvgPool2d(Module):
    """The mean of each window, over images.

    Parameters
    ----------
    kernel_size : int or sequence of int
        The size of a window.
    stride : int or sequence of int, optional
        From one window to the next; by default `kernel_size`, as in PyTorch.
    padding : int, sequence of int, sequence of pairs of int, or str
        How many zeros are added at the ends.
    ceil_mode : bool
        Whether windows that reach beyond the end count.
    count_include_pad : bool
        Whether padding counts in the mean.

    Raises
    ------
    ShapeError
        When called: the argument has too few axes.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.nn.AvgPool2d(2)(np.ones((10, 3, 6, 6))).shape
    (10, 3, 3, 3)
    """

    kernel_size: Sizes = fg.static()
    stride: Sizes | None = fg.static(default=None)
    padding: Any = fg.static(default=0)
    ceil_mode: bool = fg.static(default=False)
    count_include_pad: bool = fg.static(default=True)

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Pool `x`, of shape (..., channels, *spatial)."""
        return _pooled(
            self,
            F.avg_pool2d,
            x,
            2,
            {
                "kernel_size": self.kernel_size,
                "stride": self.stride,
                "padding": self.padding,
                "ceil_mode": self.ceil_mode,
                "count_include_pad": self.count_include_pad,
            },
        )


class AvgPool3d(Module):
    """The mean of each window, over volumes.

    Parameters
    ----------
    kernel_size : int or sequence of int
        The size of a window.
    stride : int or sequence of int, optional
        From one window to the next; by default `kernel_size`, as in PyTorch.
    padding : int, sequence of int, sequence of pairs of int, or str
        How many zeros are added at the ends.
    ceil_mode : bool
        Whether windows that reach beyond the end count.
    count_include_pad : bool
        Whether padding counts in the mean.

    Raises
    ------
    ShapeError
        When called: the argument has too few axes.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.nn.AvgPool3d(2)(np.ones((10, 3, 6, 6, 6))).shape
    (10, 3, 3, 3, 3)
    """

    kernel_size: Sizes = fg.static()
    stride: Sizes | None = fg.static(default=None)
    padding: Any = fg.static(default=0)
    ceil_mode: bool = fg.static(default=False)
    count_include_pad: bool = fg.static(default=True)

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Pool `x`, of shape (..., channels, *spatial)."""
        return _pooled(
            self,
            F.avg_pool3d,
            x,
            3,
            {
                "kernel_size": self.kernel_size,
                "stride": self.stride,
                "padding": self.padding,
                "ceil_mode": self.ceil_mode,
                "count_include_pad": self.count_include_pad,
            },
        )


class AdaptiveAvgPool1d(AdaptivePool):
    """The mean of windows that tile one axis, as many as the result shall have elements.

    Parameters
    ----------
    target_shape : int or sequence of int
        The sizes of the spatial axes of the result.

    Raises
    ------
    ShapeError
        When called: the argument has too few axes.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.nn.AdaptiveAvgPool1d(3)(np.ones((10, 3, 6))).shape
    (10, 3, 3)
    """

    def __init__(self, target_shape: Sizes) -> None:
        super().__init__(target_shape, 1, np.mean)


class AdaptiveAvgPool2d(AdaptivePool):
    """The mean of windows that tile images, as many as the result shall have elements.

    Parameters
    ----------
    target_shape : int or sequence of int
        The sizes of the spatial axes of the result.

    Raises
    ------
    ShapeError
        When called: the argument has too few axes.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.nn.AdaptiveAvgPool2d(3)(np.ones((10, 3, 6, 6))).shape
    (10, 3, 3, 3)
    """

    def __init__(self, target_shape: Sizes) -> None:
        super().__init__(target_shape, 2, np.mean)


class AdaptiveAvgPool3d(AdaptivePool):
    """The mean of windows that tile volumes, as many as the result shall have elements.

    Parameters
    ----------
    target_shape : int or sequence of int
        The sizes of the spatial axes of the result.

    Raises
    ------
    ShapeError
        When called: the argument has too few axes.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.nn.AdaptiveAvgPool3d(3)(np.ones((10, 3, 6, 6, 6))).shape
    (10, 3, 3, 3, 3)
    """

    def __init__(self, target_shape: Sizes) -> None:
        super().__init__(target_shape, 3, np.mean)


class AdaptiveMaxPool1d(AdaptivePool):
    """The largest element of windows that tile one axis, as many as the result shall have elements.

    Parameters
    ----------
    target_shape : int or sequence of int
        The sizes of the spatial axes of the result.

    Raises
    ------
    ShapeError
        When called: the argument has too few axes.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.nn.AdaptiveMaxPool1d(3)(np.ones((10, 3, 6))).shape
    (10, 3, 3)
    """

    def __init__(self, target_shape: Sizes) -> None:
        super().__init__(target_shape, 1, np.max)


class AdaptiveMaxPool2d(AdaptivePool):
    """The largest element of windows that tile images, as many as the result shall have elements.

    Parameters
    ----------
    target_shape : int or sequence of int
        The sizes of the spatial axes of the result.

    Raises
    ------
    ShapeError
        When called: the argument has too few axes.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.nn.AdaptiveMaxPool2d(3)(np.ones((10, 3, 6, 6))).shape
    (10, 3, 3, 3)
    """

    def __init__(self, target_shape: Sizes) -> None:
        super().__init__(target_shape, 2, np.max)


class AdaptiveMaxPool3d(AdaptivePool):
    """The largest element of windows that tile volumes, as many as the result shall have elements.

    Parameters
    ----------
    target_shape : int or sequence of int
        The sizes of the spatial axes of the result.

    Raises
    ------
    ShapeError
        When called: the argument has too few axes.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.nn.AdaptiveMaxPool3d(3)(np.ones((10, 3, 6, 6, 6))).shape
    (10, 3, 3, 3, 3)
    """

    def __init__(self, target_shape: Sizes) -> None:
        super().__init__(target_shape, 3, np.max)
