"""Normalisation layers: each standardises over some axes, then scales and shifts.

They differ in the axes only, so all are made of `standardize` (or of the root mean square), and of
a weight and a bias for each channel or element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError, describe, user_line
from funcgrad.nn.checking import array, expect_last, whole
from funcgrad.nn.module import Module
from funcgrad.nn.state import State, StateIndex
from funcgrad.rules.nn.normalizing import root_mean_square, standardize

__all__ = ["BatchNorm", "GroupNorm", "InstanceNorm", "LayerNorm", "RMSNorm", "RunningStats"]


class LayerNorm(Module):
    """Standardises over the last axes of each example (Ba et al., 2016).

    Parameters
    ----------
    shape : int or sequence of int
        The sizes of these axes.
    eps : float
        Added to the variance.
    use_weight, use_bias : bool
        Whether the result is scaled and shifted, by parameters of this shape.
    dtype : dtype, optional
        Of the parameters; float64 by default.

    Attributes
    ----------
    weight, bias : ndarray or None
        Ones and zeros at the start.

    Raises
    ------
    ArgumentError
        A size is negative, or no integer.
    ShapeError
        When called: the last axes have other sizes.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.nn.LayerNorm(2)(np.array([[1.0, 3.0], [5.0, 5.0]])).round(3)
    array([[-1.,  1.],
           [ 0.,  0.]])
    """

    weight: Any
    bias: Any
    shape: tuple[int, ...] = fg.static()
    eps: float = fg.static()

    def __init__(
        self,
        shape: int | Sequence[int],
        eps: float = 1e-5,
        use_weight: bool = True,
        use_bias: bool = True,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        self.shape = _sizes(self, shape)
        self.eps = eps
        self.weight = np.ones(self.shape, dtype or np.float64) if use_weight else None
        self.bias = np.zeros(self.shape, dtype or np.float64) if use_bias else None

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Normalise `x`, of shape ``(..., *shape)``."""
        x = array(x)
        expect_last(self, x, *self.shape)
        out, _ = standardize(x, axis=_last(self.shape), eps=self.eps)
        return _affine(out, self.weight, self.bias)


class RMSNorm(Module):
    """Divides by the root mean square over the last axes of each example (Zhang, Sennrich, 2019).

    Parameters
    ----------
    shape : int or sequence of int
        The sizes of these axes.
    eps : float
        Added to the mean square.
    use_weight, use_bias : bool
        Whether the result is scaled and shifted, by parameters of this shape.
    dtype : dtype, optional
        Of the parameters; float64 by default.

    Attributes
    ----------
    weight, bias : ndarray or None
        Ones and zeros at the start.

    Raises
    ------
    ArgumentError
        A size is negative, or no integer.
    ShapeError
        When called: the last axes have other sizes.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.nn.RMSNorm(2)(np.array([1.0, 7.0])).round(3)
    array([0.2, 1.4])
    """

    weight: Any
    bias: Any
    shape: tuple[int, ...] = fg.static()
    eps: float = fg.static()

    def __init__(
        self,
        shape: int | Sequence[int],
        eps: float = 1e-5,
        use_weight: bool = True,
        use_bias: bool = False,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        self.shape = _sizes(self, shape)
        self.eps = eps
        self.weight = np.ones(self.shape, dtype or np.float64) if use_weight else None
        self.bias = np.zeros(self.shape, dtype or np.float64) if use_bias else None

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Normalise `x`, of shape ``(..., *shape)``."""
        x = array(x)
        expect_last(self, x, *self.shape)
        out, _ = root_mean_square(x, axis=_last(self.shape), eps=self.eps)
        return _affine(out, self.weight, self.bias)


class GroupNorm(Module):
    """Standardises over groups of channels, with all that comes after them (Wu and He, 2018).

    Parameters
    ----------
    groups : int
        The number of groups.
    channels : int
        The number of channels, a multiple of `groups`.
    eps : float
        Added to the variance.
    channelwise_affine : bool
        Whether each channel is scaled and shifted.
    dtype : dtype, optional
        Of the parameters; float64 by default.
    channel_axis : int
        The axis of the channels: 1 for a batch of shape (N, C, ...). Counted from the end, any
        number of axes may come before: -3 for images (..., C, H, W).

    Attributes
    ----------
    weight, bias : ndarray, shape (channels,), or None
        Ones and zeros at the start.

    Raises
    ------
    ArgumentError
        `groups` does not divide `channels`, or one of them is no integer.
    ShapeError
        When called: there are not as many channels.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> x = np.arange(8.0).reshape(1, 4, 2)
    >>> out = fg.nn.GroupNorm(2, 4)(x)
    >>> bool(np.allclose(out.reshape(2, 4).mean(axis=1), 0))
    True
    """

    weight: Any
    bias: Any
    groups: int = fg.static()
    channels: int = fg.static()
    eps: float = fg.static()
    channel_axis: int = fg.static()

    def __init__(
        self,
        groups: int,
        channels: int,
        eps: float = 1e-5,
        channelwise_affine: bool = True,
        dtype: npt.DTypeLike | None = None,
        *,
        channel_axis: int = 1,
    ) -> None:
        name = type(self).__name__
        if whole(name, "channels", channels) % whole(name, "groups", groups, 1):
            raise ArgumentError(
                f"{channels} channels cannot be put into {groups} groups of one size",
                where=user_line(),
                fix="a number of groups that divides the number of channels",
            )
        self.groups, self.channels, self.eps = groups, channels, eps
        self.channel_axis = channel_axis
        self.weight = np.ones(channels, dtype or np.float64) if channelwise_affine else None
        self.bias = np.zeros(channels, dtype or np.float64) if channelwise_affine else None

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Normalise `x`."""
        x = array(x)
        axis = _channel_axis(self, x, self.channels, self.channel_axis)
        shape = x.shape
        grouped = (*shape[:axis], self.groups, self.channels // self.groups, *shape[axis + 1 :])
        axes = tuple(range(axis + 1, len(grouped)))
        out, _ = standardize(np.reshape(x, grouped), axis=axes, eps=self.eps)
        return _affine(np.reshape(out, shape), *_beside(self, len(shape) - axis - 1))


class InstanceNorm(GroupNorm):
    """Standardises over all that comes after each channel (Ulyanov et al., 2016).

    Parameters
    ----------
    channels : int
        The number of channels.
    eps : float
        Added to the variance.
    channelwise_affine : bool
        Whether each channel is scaled and shifted; not by default, as in PyTorch.
    dtype : dtype, optional
        Of the parameters; float64 by default.
    channel_axis : int
        The axis of the channels: 1 for a batch of shape (N, C, ...). Counted from the end, any
        number of axes may come before: -3 for images (..., C, H, W).

    Attributes
    ----------
    weight, bias : ndarray, shape (channels,), or None
        Ones and zeros at the start.

    Raises
    ------
    ShapeError
        When called: there are not as many channels.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.nn.InstanceNorm(1)(np.array([[[1.0, 3.0]]])).round(3)
    array([[[-1.,  1.]]])
    """

    def __init__(
        self,
        channels: int,
        eps: float = 1e-5,
        channelwise_affine: bool = False,
        dtype: npt.DTypeLike | None = None,
        *,
        channel_axis: int = 1,
    ) -> None:
        super().__init__(
            channels, channels, eps, channelwise_affine, dtype, channel_axis=channel_axis
        )


class RunningStats(Module):
    """What `BatchNorm` remembers.

    Parameters
    ----------
    mean, variance : ndarray, shape (channels,)
        Averages over the batches so far, later ones weighing more.
    count : ndarray of int, shape ()
        The number of batches.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.nn.RunningStats(np.zeros(3), np.ones(3), np.array(0)).count
    array(0)
    """

    mean: Any
    variance: Any
    count: Any


class BatchNorm(Module):
    """Standardises each channel over the whole batch (Ioffe and Szegedy, 2015).

    Parameters
    ----------
    input_size : int
        The number of channels.
    axis_name : str or tuple of str, optional
        The name of a `vmap` over the batch. By default the batch is an axis of the argument.
    eps : float
        Added to the variance.
    channelwise_affine : bool
        Whether each channel is scaled and shifted.
    momentum : float
        The weight of what is remembered, against that of the new batch. The first batches weigh
        as if there had been no others: their average is right from the start.
    inference : bool
        Whether to use what is remembered instead of the batch; see `inference_mode`.
    dtype : dtype, optional
        Of the parameters and of what is remembered; float64 by default.
    channel_axis : int, optional
        The axis of the channels: by default 1, for a batch of shape (N, C, ...), or 0 with an
        `axis_name`. All other axes count as batch.

    Attributes
    ----------
    weight, bias : ndarray, shape (input_size,), or None
        Ones and zeros at the start.
    running : StateIndex
        Of a `RunningStats` in the state.

    Raises
    ------
    ShapeError
        When called: there are not as many channels.
    ArgumentError
        When called: without state.

    See Also
    --------
    make_with_state : how to make it.

    Notes
    -----
    The variance that is remembered is divided by n, not by n - 1, as in Equinox and Flax.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> norm, state = fg.nn.make_with_state(fg.nn.BatchNorm)(2)
    >>> x = np.array([[1.0, 10.0], [3.0, 10.0]])
    >>> out, state = norm(x, state)
    >>> out.round(3)
    array([[-1.,  0.],
           [ 1.,  0.]])
    >>> out, _ = fg.nn.inference_mode(norm)(np.array([[2.0, 10.0]]), state)
    >>> out.round(3)
    array([[0., 0.]])
    """

    weight: Any
    bias: Any
    running: StateIndex
    input_size: int = fg.static()
    axis_name: Any = fg.static()
    eps: float = fg.static()
    momentum: float = fg.static()
    inference: bool = fg.static()
    channel_axis: int = fg.static()

    stateful = True

    def __init__(
        self,
        input_size: int,
        axis_name: str | Sequence[str] | None = None,
        eps: float = 1e-5,
        channelwise_affine: bool = True,
        momentum: float = 0.99,
        inference: bool = False,
        dtype: npt.DTypeLike | None = None,
        *,
        channel_axis: int | None = None,
    ) -> None:
        input_size = whole("BatchNorm", "input_size", input_size)
        dtype = dtype or np.float64
        self.weight = np.ones(input_size, dtype) if channelwise_affine else None
        self.bias = np.zeros(input_size, dtype) if channelwise_affine else None
        self.running = StateIndex(
            RunningStats(np.zeros(input_size, dtype), np.ones(input_size, dtype), np.array(0))
        )
        self.input_size, self.axis_name = input_size, axis_name
        self.eps, self.momentum, self.inference = eps, momentum, inference
        self.channel_axis = int(axis_name is None) if channel_axis is None else channel_axis

    def __call__(
        self,
        x: Any,
        state: State | None = None,
        *,
        key: fg.random.Key | None = None,
        inference: bool | None = None,
    ) -> tuple[Any, State]:
        """Return `x` normalised, and the state with this batch in its averages."""
        if state is None:
            raise ArgumentError(
                "BatchNorm needs its state",
                where=user_line(),
                fix="model, state = fg.nn.make_with_state(Model)(...), "
                "then out, state = model(x, state)",
            )
        axis = _channel_axis(self, x, self.input_size, self.channel_axis)
        trailing = x.ndim - axis - 1
        old = state.get(self.running)
        if self.inference if inference is None else inference:
            mean, inverse = old.mean, 1 / np.sqrt(old.variance + self.eps)
            out = (x - _column(mean, trailing)) * _column(inverse, trailing)
            return _affine(out, *_beside(self, trailing)), state
        axes = tuple(i for i in range(x.ndim) if i != axis)
        if x.size == 0:  # there is nothing to remember
            return _affine(x, *_beside(self, trailing)), state
        if self.axis_name is None:
            out, _ = standardize(x, axis=axes, eps=self.eps)
            plain = fg.stop_gradient(x)
            mean, variance = np.mean(plain, axis=axes), np.var(plain, axis=axes)
        else:
            mean = fg.pmean(np.mean(x, axis=axes), self.axis_name)
            centred = x - _column(mean, trailing)
            variance = fg.pmean(np.mean(np.square(centred), axis=axes), self.axis_name)
            out = centred / np.sqrt(_column(variance, trailing) + self.eps)
            mean, variance = fg.stop_gradient(mean), fg.stop_gradient(variance)
        count = old.count + 1
        # The weight of what is remembered, of a mean of `count` batches: 0 for the first.
        kept = self.momentum * (1 - self.momentum**old.count) / (1 - self.momentum**count)
        kept = kept.astype(old.mean.dtype)
        new = RunningStats(
            kept * old.mean + (1 - kept) * mean.astype(old.mean.dtype),
            kept * old.variance + (1 - kept) * variance.astype(old.mean.dtype),
            count,
        )
        return _affine(out, *_beside(self, trailing)), state.set(self.running, new)


def _sizes(layer: Module, shape: Any) -> tuple[int, ...]:
    sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    return tuple(whole(type(layer).__name__, "shape", size) for size in sizes)


def _affine(out: Any, weight: Any, bias: Any) -> Any:
    if weight is not None:
        out = out * weight
    return out if bias is None else out + bias


def _column(values: Any, trailing: int) -> Any:
    """Give one value for each channel as many axes of size 1 as come after the channels."""
    return np.reshape(values, (-1,) + (1,) * trailing) if trailing else values


def _beside(module: Any, trailing: int) -> tuple[Any, Any]:
    weight, bias = module.weight, module.bias
    return (
        None if weight is None else _column(weight, trailing),
        None if bias is None else _column(bias, trailing),
    )


def _last(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(range(-len(shape), 0))


def _channel_axis(module: Module, x: Any, channels: int, axis: int) -> int:
    shape = np.shape(x)
    if not -len(shape) <= axis < len(shape) or shape[axis] != channels:
        raise ShapeError(
            f"{type(module).__name__} expects {channels} channels along axis {axis}, "
            f"and was given {describe(x)}",
            where=user_line(),
            fix="channel_axis= says where the channels are, for example -3 for (..., C, H, W)",
        )
    return axis % len(shape)
