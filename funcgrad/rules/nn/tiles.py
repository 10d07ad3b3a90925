"""Kernels of three by three, with four products in place of nine: Winograd's F(2 x 2, 3 x 3).

`funcgrad.rules.nn.winograd` has the formulas along one axis. Along both, a tile of two by two
results comes from four by four elements of the input, by sixteen products of numbers that are sums
of those (A. Lavin and S. Gray, *Fast algorithms for convolutional neural networks*, CVPR 2016,
section 4.1). The sums cost about six additions for a number of the input and of the result, so
that this takes less time where each of them is in many products: with many channels.

Arrays are laid out as ``(*space, batch, channels)``. Then the numbers of one kind, of all tiles,
are the rows of a matrix as they are: the windows need not be gathered, as the sums have taken both
axes of the kernel apart. The gradient in the input is a convolution with the reversed kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from funcgrad.rules.nn.layout import channels_last, channels_last_order, fresh
from funcgrad.rules.nn.scratch import Scratch
from funcgrad.rules.nn.winograd import kinds_of_rows, rows_of_kinds

__all__ = ["correlate", "is_worth_it", "kernel_sum"]

Sizes = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]

# Elements of the sums and products of one piece. With 2**20 of them (4 MB) the matrix products of
# OpenBLAS reached 230 GFLOP/s, and 170 on all tiles at once (two cores, 64 channels).
_PIECE = 1 << 20


def is_worth_it(
    dtype: Any, batch: int, shape: Any, size: Sizes, stride: Sizes, dilation: Sizes
) -> bool:
    """Tell whether this takes less time than products along one axis: by measurement.

    With `c` channels and `o` outputs, it saves a number of products in proportion to ``c * o``, and
    takes one of additions in proportion to ``c + o``; at 32 of each the two times are equal.
    """
    _, outputs, channels, *kernel = shape
    return bool(
        dtype == np.float32
        and list(kernel) == [3, 3]
        and set(stride) == set(dilation) == {1}
        and outputs * channels >= 16 * (outputs + channels)
        and min(size) >= 4
        and math.prod(size) * batch >= 4096
    )


def correlate(memory: Scratch, x: Any, w: Any, padding: Pairs, size: Sizes) -> Any:
    """Do what `lowering.correlate` does, for ``w[groups, outputs, channels, 3, 3]``."""
    groups, outputs, channels = w.shape[:3]
    batch = x.shape[0]
    x = channels_last(memory, x, _whole_tiles(padding, size), w.dtype)
    result = fresh((batch, groups * outputs, *size), channels_last_order(4), w.dtype)
    out = np.transpose(result, channels_last_order(4))
    matrices = _transformed_kernel(w)
    with np.errstate(all="ignore"):
        np.setbufsize(64)  # NumPy would copy what is not contiguous, a buffer at a time
        for rows, examples in _pieces(memory, size, batch, groups * (channels + outputs)):
            sums = _sums_of_input(memory, x[rows.start : rows.stop + 2, :, examples])
            products = memory.empty((*sums.shape[:-1], groups * outputs), w.dtype)
            np.matmul(_matrices(sums, groups), matrices, out=_matrices(products, groups))
            _add_up(products, out[rows, :, examples], (1, 0))
    return result


def kernel_sum(memory: Scratch, x: Any, y: Any, padding: Pairs, groups: int) -> Any:
    """Do what `lowering.kernel_sum` does, for a kernel of three by three.

    The result is ``w[groups, outputs, channels, 3, 3]``.
    """
    batch, channels, size = x.shape[0], x.shape[1], y.shape[2:]
    outputs = y.shape[1]
    x = channels_last(memory, x, _whole_tiles(padding, size), np.float32)
    y = channels_last(memory, y, tuple((0, n % 2) for n in size), np.float32)
    total = np.zeros((16, groups, channels // groups, outputs // groups), np.float32)
    with np.errstate(all="ignore"):
        np.setbufsize(64)
        for rows, examples in _pieces(memory, size, batch, channels + outputs):
            sums = _sums_of_input(memory, x[rows.start : rows.stop + 2, :, examples])
            bars = _cotangents(memory, _cotangents(memory, y[rows, :, examples], 0), 1)
            total += np.matmul(
                np.swapaxes(_matrices(sums, groups), -1, -2), _matrices(bars, groups)
            )
    total = total.reshape(4, 4, *total.shape[1:])
    return np.moveaxis(rows_of_kinds(rows_of_kinds(total, -1), -1), 1, 2).swapaxes(-1, -2)


def _whole_tiles(padding: Pairs, size: Sizes) -> Pairs:
    """Return padding with what the last tile sees beyond a result of odd size."""
    return tuple((low, high + n % 2) for (low, high), n in zip(padding, size, strict=True))


def _pieces(memory: Scratch, size: Sizes, batch: int, channels: int) -> Iterator[Any]:
    """Yield rows of the result, whole tiles of them, and examples, each time with room in memory.

    Many examples before many rows, as neighbours in memory are added fastest.
    """
    row = 16 * -(-size[1] // 2) * channels  # of tiles, of one example
    examples = _even(batch, max(1, _PIECE // row))
    step = 2 * _even(-(-size[0] // 2), max(1, _PIECE // (row * examples)))
    stop = size[0] + size[0] % 2
    for first in range(0, batch, examples):
        for start in range(0, stop, step):
            with memory.again():
                rows = slice(start, min(start + step, stop))
                yield rows, slice(first, min(first + examples, batch))


def _even(count: int, most: int) -> int:
    """Return the size of the fewest equal parts of so many that have no more than `most`."""
    return -(-count // -(-count // most))


def _matrices(made: Any, groups: int) -> Any:
    """Return sums or products as ``[kind, group, tile, channel]``."""
    channels = made.shape[-1] // groups
    return made.reshape(16, -1, groups, channels).swapaxes(1, 2)


# The sums. Axes of space are counted with those of batch and channels behind them, and what kind
# of sum it is, of four, is a new first axis each time.


def _along(axis: int, *index: Any) -> Any:
    """Index an axis of space: 0 or 1."""
    behind = (slice(None),) * (3 - axis)
    return (..., *index, *behind)


def _sums_of_input(memory: Scratch, x: Any) -> Any:
    for axis in (0, 1):
        tiles = x.shape[axis - 4] // 2 - 1
        d0, d1, d2, d3 = (x[_along(axis, slice(i, i + 2 * tiles, 2))] for i in range(4))
        made = memory.empty((4, *d0.shape), x.dtype)
        np.subtract(d0, d2, out=made[0])
        np.add(d1, d2, out=made[1])
        np.subtract(d2, d1, out=made[2])
        np.subtract(d3, d1, out=made[3])
        x = made
    return x


def _cotangents(memory: Scratch, y: Any, axis: int) -> Any:
    """Return those of the products, given those of the results."""
    y0, y1 = (y[_along(axis, slice(i, None, 2))] for i in range(2))
    made = memory.empty((4, *y0.shape), y.dtype)
    made[0] = y0
    np.add(y0, y1, out=made[1])
    np.subtract(y0, y1, out=made[2])
    made[3] = y1
    return made


def _add_up(m: Any, out: Any, axes: Sizes) -> None:
    """Add products up to results; the products are overwritten."""
    axis, *rest = axes
    even, odd = (out[_along(axis, slice(i, None, 2))] for i in range(2))
    np.add(m[0], m[1], out=m[0])
    np.subtract(m[1], m[2], out=m[1])
    # At an odd end there is one less.
    kept = _along(axis, slice(odd.shape[axis - 4]))
    m0, m1, m2, m3 = m[0], m[1][kept], m[2], m[3][kept]
    np.add(m0, m2, out=m0 if rest else even)
    np.add(m1, m3, out=m1 if rest else odd)
    if rest:
        _add_up(m0, even, tuple(rest))
        _add_up(m1, odd, tuple(rest))


def _transformed_kernel(w: Any) -> Any:
    """Return the matrices ``[kind, group, channel, output]`` that the sums are multiplied with."""
    w = np.moveaxis(w, 1, 2)  # as it lies in memory the outputs are last, so long sums are made
    w = np.ascontiguousarray(np.moveaxis(w, (3, 4), (0, 1)))
    for axis in (0, 1):
        w = kinds_of_rows(*np.moveaxis(w, -5 + axis, 0))
    return w.reshape(16, *w.shape[2:])
