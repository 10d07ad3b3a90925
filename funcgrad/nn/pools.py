"""Pooling layers: functions of windows, of which `funcgrad.nn.functional` has the functions.

They have no parameters. Arguments have the shape (..., channels, *spatial), with any number of axes
before the channels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

import funcgrad as fg
from funcgrad.errors import ShapeError, describe, user_line
from funcgrad.nn.module import Module

__all__ = [
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "Pool",
    "Sizes",
    "pooled",
]

F = fg.nn.functional
Sizes = int | Sequence[int]
_MAX = (F.max_pool1d, F.max_pool2d, F.max_pool3d)
_AVG = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)


class Pool(Module):
    """A pooling function as a layer: what the named layers have in common, or one of your own.

    Parameters
    ----------
    function : callable
        Takes an array ``(batch, channels, *spatial)``, and the options by keyword.
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
        """Pool `x`, of shape ``(..., channels, *spatial)``."""
        return pooled(self, self.function, x, self.num_spatial_dims, self.options)


def pooled(
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


class _MaxPool(Module):
    """What the three have in common: all but the number of their axes."""

    kernel_size: Sizes = fg.static()
    stride: Sizes | None = fg.static(default=None)
    padding: Any = fg.static(default=0)
    dilation: Sizes = fg.static(default=1)
    ceil_mode: bool = fg.static(default=False)

    dims: ClassVar[int]

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Pool `x`, of shape ``(..., channels, *spatial)``."""
        return pooled(
            self,
            _MAX[self.dims - 1],
            x,
            self.dims,
            {
                "kernel_size": self.kernel_size,
                "stride": self.stride,
                "padding": self.padding,
                "dilation": self.dilation,
                "ceil_mode": self.ceil_mode,
            },
        )


class MaxPool1d(_MaxPool):
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

    dims: ClassVar[int] = 1


class MaxPool2d(_MaxPool):
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

    dims: ClassVar[int] = 2


class MaxPool3d(_MaxPool):
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

    dims: ClassVar[int] = 3


class _AvgPool(Module):
    """What the three have in common: all but the number of their axes."""

    kernel_size: Sizes = fg.static()
    stride: Sizes | None = fg.static(default=None)
    padding: Any = fg.static(default=0)
    ceil_mode: bool = fg.static(default=False)
    count_include_pad: bool = fg.static(default=True)

    dims: ClassVar[int]

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Pool `x`, of shape ``(..., channels, *spatial)``."""
        return pooled(
            self,
            _AVG[self.dims - 1],
            x,
            self.dims,
            {
                "kernel_size": self.kernel_size,
                "stride": self.stride,
                "padding": self.padding,
                "ceil_mode": self.ceil_mode,
                "count_include_pad": self.count_include_pad,
            },
        )


class AvgPool1d(_AvgPool):
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

    dims: ClassVar[int] = 1


class AvgPool2d(_AvgPool):
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

    dims: ClassVar[int] = 2


class AvgPool3d(_AvgPool):
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

    dims: ClassVar[int] = 3
