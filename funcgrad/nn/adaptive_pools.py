"""Adaptive pooling layers: the size of the result is given, and the windows follow from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.errors import ArgumentError, user_line
from funcgrad.nn.module import Module
from funcgrad.nn.pools import Sizes, pooled

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AdaptivePool",
]

F = fg.nn.functional


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
        """Pool `x`, of shape ``(..., channels, *spatial)``."""
        mean = self.operation in (np.mean, np.average)
        function = (_ADAPTIVE_MEAN if mean else _ADAPTIVE_MAX)[self.num_spatial_dims - 1]
        return pooled(self, function, x, self.num_spatial_dims, {"output_size": self.target_shape})


_ADAPTIVE_MEAN = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)
_ADAPTIVE_MAX = (F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d)


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
