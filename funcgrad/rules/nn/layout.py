"""How images lie in memory while convolutions work on them.

The one idea: numbers that are treated alike should be neighbours. With the batch as the last axis,
what a kernel element sees of all images is made of long runs of memory, whatever the number of
channels; with batch and channels last, as ``(*space, batch, channels)``, so is every point of the
images, and the channels of a point are ready to be a row of a matrix.

Results are arrays of the usual axes ``(batch, channels, *space)`` that lie in memory in one of
these orders. NumPy's elementwise functions keep the order of what they are given, so layers in a
row pay for the change of order once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from funcgrad.rules.nn.scratch import Scratch

__all__ = [
    "batch_last",
    "batch_last_order",
    "channels_last",
    "channels_last_order",
    "fresh",
    "in_order",
    "rows_first",
    "rows_first_order",
]

Order = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]

# Numbers of one image point that are moved together: enough to fill cache lines where they go, and
# few enough for the lines that they come from to stay in the cache until all of them is used.
_TOGETHER = 16


def batch_last_order(ndim: int) -> Order:
    """Return the axes from the slowest to the fastest: channels, space, batch."""
    return (*range(1, ndim), 0)


def channels_last_order(ndim: int) -> Order:
    """Return the axes from the slowest to the fastest: space, batch, channels."""
    return (*range(2, ndim), 0, 1)


def rows_first_order(ndim: int) -> Order:
    """Return the axes from the slowest to the fastest: rows, batch, other space, channels."""
    return (2, 0, *range(3, ndim), 1)


def fresh(shape: Any, order: Order, dtype: Any) -> Any:
    """Return an uninitialised array with its axes in memory in `order`, the slowest first.

    It is its own memory, no view: as the result of a derivative it need not be copied.
    """
    dtype = np.dtype(dtype)
    strides = [0] * len(shape)
    step = dtype.itemsize
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    model = as_strided(np.empty(1, dtype), shape, strides)  # of which no element is looked at
    return np.empty_like(model, subok=False)


def in_order(x: Any, order: Order) -> Any:
    """Return `x` with its axes in memory in `order`: itself, if they are."""
    view = np.transpose(x, order)
    if view.flags.c_contiguous:
        return x
    made = fresh(x.shape, order, x.dtype)
    copy(np.transpose(made, order), view)
    return made


def batch_last(memory: Scratch, x: Any, padding: Pairs, dtype: Any) -> Any:
    """Return ``x[batch, channels, *space]`` as ``[channels, *space, batch]``, zeros around it.

    Negative padding takes elements away.
    """
    view = np.transpose(x, batch_last_order(x.ndim))
    return _laid_out(memory, view, ((0, 0), *padding, (0, 0)), dtype)


def channels_last(memory: Scratch, x: Any, padding: Pairs, dtype: Any) -> Any:
    """Return ``x[batch, channels, *space]`` as ``[*space, batch, channels]``, zeros around it."""
    view = np.transpose(x, channels_last_order(x.ndim))
    return _laid_out(memory, view, (*padding, (0, 0), (0, 0)), dtype)


def rows_first(memory: Scratch, x: Any, dtype: Any) -> Any:
    """Return ``x[batch, channels, *space]`` as ``[rows, batch, *other_space, channels]``."""
    view = np.transpose(x, rows_first_order(x.ndim))
    return _laid_out(memory, view, ((0, 0),) * x.ndim, dtype)


def _laid_out(memory: Scratch, view: Any, padding: Pairs, dtype: Any) -> Any:
    if any(low < 0 or high < 0 for low, high in padding):
        kept = tuple(
            slice(max(-low, 0), n - max(-high, 0))
            for n, (low, high) in zip(view.shape, padding, strict=True)
        )
        view = view[kept]
        padding = tuple((max(low, 0), max(high, 0)) for low, high in padding)
    if not any(low or high for low, high in padding):
        if view.flags.c_contiguous and view.dtype == dtype:
            return view
        made = memory.empty(view.shape, dtype)
        copy(made, view)
        return made
    shape = [n + low + high for n, (low, high) in zip(view.shape, padding, strict=True)]
    made = memory.zeros(shape, dtype)
    inside = tuple(slice(low, low + n) for n, (low, _) in zip(view.shape, padding, strict=True))
    copy(made[inside], view)
    return made


def copy(target: Any, source: Any) -> None:
    """Copy to an array whose last axis is the fastest, in blocks that the cache can hold."""
    far = source.strides[-1] > source.itemsize or source.strides[-1] < 0
    if not far or source.size <= 1 << 15 or math.prod(source.shape[:-1]) == 1:
        target[...] = source
        return
    # If what is moved to the last axis comes from farther away than the axis before, one by one
    # along that too.
    for start in range(0, source.shape[-1], _TOGETHER):
        block = (..., slice(start, start + _TOGETHER))
        if source.strides[-2] > source.strides[-1]:
            for k in range(source.shape[-2]):
                target[(..., k, *block[1:])] = source[(..., k, *block[1:])]
        else:
            target[block] = source[block]
