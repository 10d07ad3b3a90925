"""Kernels of three rows over images of which the batch is large: no windows are gathered.

The one idea: laid out as ``(rows, batch, columns, channels)``, what a row of a kernel of `k`
columns sees from one place is `k` points in a row, one run of memory. The windows from one column,
of all images, are the rows of a matrix as they are, each as far from the one before as the images
are wide; so there is a matrix product for each column of the result. At the sides a window has
fewer points, and nothing is multiplied by zeros of padding.

Along the rows it is Winograd's F(2, 3), see `funcgrad.rules.nn.winograd` for the formulas: the
images are replaced by sums of their rows, of four kinds. All the arithmetic beside the products is
done on whole rows of all images.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from funcgrad.rules.nn.layout import copy, fresh, rows_first, rows_first_order
from funcgrad.rules.nn.scratch import Scratch
from funcgrad.rules.nn.winograd import kinds_of_rows, rows_of_kinds

__all__ = ["correlate", "is_worth_it", "kernel_sum", "scatter"]

Sizes = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]

# Elements of the sums and products of one piece, if the matrices have enough rows then.
_PIECE = 1 << 21
# Multiplications of one matrix product: with fewer OpenBLAS does not use two threads.
_PRODUCT = 1 << 19
_ZERO = np.float32(0)


def is_worth_it(
    dtype: Any,
    batch: int,
    shape: Any,
    size: Sizes,
    stride: Sizes,
    padding: Pairs,
    dilation: Sizes,
) -> bool:
    """Tell whether this takes less time than gathering: where the matrices have many rows."""
    groups, outputs, channels, *kernel = shape
    return bool(
        dtype == np.float32
        and groups == 1
        and len(size) == 2
        and kernel[0] == 3
        and set(stride) == set(dilation) == {1}
        and outputs * channels >= 512
        and min(outputs, channels) >= 16
        and size[0] >= 4
        and batch * -(-size[0] // 2) >= _rows_needed(outputs, channels, kernel[1])
        and all(0 <= n < k for pair, k in zip(padding, kernel, strict=True) for n in pair)
    )


def _rows_needed(outputs: int, channels: int, kernel: int) -> int:
    return -(-_PRODUCT // (outputs * channels * kernel))


class Work:
    """What the pieces of one convolution share; `x` and `y` are shapes of images."""

    def __init__(self, memory: Scratch, x: Any, padding: Pairs, y: Any, kernel: int):
        self.memory, self.batch = memory, x[0]
        self.height, self.width = x[2:]
        self.places = y[3]
        self.channels, self.outputs, self.kernel = x[1], y[1], kernel
        self.top, self.left = padding[0][0], padding[1][0]
        self.tiles = -(-y[2] // 2)

    def pieces(self) -> Iterator[tuple[int, int, slice, Any, Any]]:
        """Yield ``(start, stop, images, sums, products)``: what to do, and room in memory for it.

        `start` and `stop` count tiles, rows of two rows of results.
        """
        rows = _rows_needed(self.outputs, self.channels, self.kernel)
        parts = max(1, self.batch // rows)
        batch = -(-self.batch // parts)
        row = 4 * batch * (self.width * self.channels + self.places * self.outputs)
        fewest = -(-self.tiles * row // _PIECE)
        count = max(1, min(fewest, self.tiles // -(-rows // batch)))
        shapes = (self.width, self.channels), (self.places, self.outputs)
        for first in range(0, self.batch, batch):
            images = slice(first, min(first + batch, self.batch))
            for i in range(count):
                start, stop = i * self.tiles // count, (i + 1) * self.tiles // count
                lead = (4, stop - start, images.stop - first)
                with self.memory.again():
                    room = (self.memory.empty((*lead, *shape), np.float32) for shape in shapes)
                    yield start, stop, images, *room

    def add_sums(self, x: Any, start: int, stop: int, made: Any) -> None:
        """Fill in the sums of the four rows of ``x[row, image, column, channel]`` of each tile."""
        # Those that see rows of padding one by one, all others at once.
        first = min(max(start, -(-self.top // 2)), stop)
        last = max(min(stop, (self.height + self.top) // 2 - 1), first)
        parts = [(t, t + 1) for t in (*range(start, first), *range(last, stop))]
        if first < last:
            parts.append((first, last))
        for a, b in parts:
            d0, d1, d2, d3 = (self.rows(x, a, b, i) for i in range(4))
            part = made[:, a - start : b - start]
            np.subtract(d0, d2, out=part[0])
            np.add(d1, d2, out=part[1])
            np.subtract(d2, d1, out=part[2])
            np.subtract(d3, d1, out=part[3])

    def rows(self, x: Any, start: int, stop: int, i: int) -> Any:
        """Return the i-th row of some tiles, of four: of one tile it may be one of padding."""
        row = 2 * start + i - self.top
        if stop - start == 1 and not 0 <= row < self.height:
            return _ZERO
        return x[row : row + 2 * (stop - start) - 1 : 2]

    def add_bars(self, y: Any, start: int, stop: int, made: Any) -> None:
        """Fill in the cotangents of the products of ``y[row, image, column, output]``."""
        y0, y1 = y[2 * start : 2 * stop : 2], y[2 * start + 1 : 2 * stop : 2]
        copy(made[0], y0)
        copy(made[3, : len(y1)], y1)
        made[3, len(y1) :] = 0  # one less at an odd end
        np.add(made[0], made[3], out=made[1])
        np.subtract(made[0], made[3], out=made[2])

    def add_up(self, m: Any, y: Any, start: int, stop: int) -> None:
        """Add products up to rows of the result; they are overwritten."""
        y0, y1 = y[2 * start : 2 * stop : 2], y[2 * start + 1 : 2 * stop : 2]
        np.add(m[0], m[1], out=m[0])
        np.add(m[0], m[2], out=y0)
        np.subtract(m[1], m[2], out=m[1])
        np.add(m[1, : len(y1)], m[3, : len(y1)], out=y1)

    def spread(self, c: Any, start: int, x: Any) -> None:
        """Do the transpose of `add_sums`; the sums are overwritten."""
        c0, c1, c2, c3 = c
        with self.memory.again():
            both = self.memory.empty(c1.shape, c1.dtype)
            np.add(c1, c2, out=both)
            np.subtract(both, c0, out=both)
            self.spread_rows(0, start, c0, both, x)
            np.subtract(c1, c2, out=c1)
            np.subtract(c1, c3, out=c1)
            self.spread_rows(1, start, c1, c3, x)

    def spread_rows(self, parity: int, start: int, own: Any, later: Any, x: Any) -> None:
        """Put `own` into every second row, and add `later` to the one after that."""
        low = max(0, -(-(self.top - parity) // 2))  # the first and the last in `x`
        high = (self.height - 1 + self.top - parity) // 2 + 1
        rows = x[2 * low + parity - self.top :: 2]
        stop = start + len(own)
        if low <= start < high:
            if start:  # where the piece before has put its last one
                rows[start - low] += own[0]
            else:
                rows[start - low] = own[0]
        a, b = max(start + 1, low), min(stop, high)
        if a < b:
            terms = own[a - start : b - start], later[a - start - 1 : b - start - 1]
            np.add(*terms, out=rows[a - low : b - low])
        if low <= stop < high:
            rows[stop - low] = later[-1]


def _seen(made: Any, places: int, left: int, kernel: int) -> Iterator[Any]:
    """Yield ``(places, elements of the kernel, windows)``: what of `made` is seen from where.

    The windows are ``[kind, place, tile and image, element and channel]``. Places between the
    sides, from which every element of the kernel sees something, are taken together.
    """
    kinds, tiles, batch, width, channels = made.shape
    kind, _, image, column, item = made.strides
    first = min(left, places)
    last = max(first, min(places, width + left - kernel + 1))
    parts = [(p, p + 1) for p in (*range(first), *range(last, places))]
    if first < last:
        parts.append((first, last))
    for start, stop in parts:
        low, high = max(0, left - start), min(kernel, width + left - stop + 1)
        windows = as_strided(
            made[:, :, :, start - left + low :],
            (kinds, stop - start, tiles * batch, (high - low) * channels),
            (kind, column, image, item),
        )
        yield slice(start, stop), slice(low, high), windows


def _by_place(made: Any, places: slice) -> Any:
    """Return some places of products as ``[kind, place, tile and image, output]``."""
    kinds, tiles, batch, width, outputs = made.shape
    return made.reshape(kinds, tiles * batch, width, outputs)[:, :, places].swapaxes(1, 2)


def _multiply(made: Any, rows: Any, left: int, out: Any) -> None:
    """Multiply what is seen of `made` by a kernel ``[row, column, channel, output]``."""
    kernel, _, outputs = rows.shape[1:]
    kinds = kinds_of_rows(*rows)[:, None]
    places = out.shape[3]
    for at, elements, windows in _seen(made, places, left, kernel):
        matrices = kinds[:, :, elements].reshape(4, 1, windows.shape[-1], outputs)
        np.matmul(windows, matrices, out=_by_place(out, at))


def correlate(memory: Scratch, x: Any, w: Any, padding: Pairs, size: Sizes) -> Any:
    """Do what `lowering.correlate` does, for ``w[1, outputs, channels, 3, columns]``."""
    result = fresh((x.shape[0], w.shape[1], *size), rows_first_order(4), w.dtype)
    work = Work(memory, x.shape, padding, result.shape, w.shape[-1])
    x = rows_first(memory, x, w.dtype)
    out = np.transpose(result, rows_first_order(4))
    rows = np.ascontiguousarray(np.transpose(w[0], (2, 3, 1, 0)))
    with np.errstate(all="ignore"):
        np.setbufsize(64)  # NumPy would copy what is not contiguous, a buffer at a time
        for start, stop, images, sums, products in work.pieces():
            work.add_sums(x[:, images], start, stop, sums)
            _multiply(sums, rows, work.left, products)
            work.add_up(products, out[:, images], start, stop)
    return result


def kernel_sum(memory: Scratch, x: Any, y: Any, padding: Pairs, kernel: int) -> Any:
    """Do what `lowering.kernel_sum` does, for a kernel of three rows.

    The result is ``w[1, outputs, channels, 3, columns]``.
    """
    channels, outputs = x.shape[1], y.shape[1]
    work = Work(memory, x.shape, padding, y.shape, kernel)
    x = rows_first(memory, x, np.float32)
    y = np.transpose(y, rows_first_order(4))
    total = np.zeros((4, kernel, channels, outputs), np.float32)
    with np.errstate(all="ignore"):
        np.setbufsize(64)
        for start, stop, images, sums, bars in work.pieces():
            work.add_sums(x[:, images], start, stop, sums)
            work.add_bars(y[:, images], start, stop, bars)
            for at, elements, windows in _seen(sums, work.places, work.left, kernel):
                part = np.matmul(np.swapaxes(windows, -1, -2), _by_place(bars, at))
                total[:, elements] += np.sum(part, 1).reshape(4, -1, channels, outputs)
    return np.transpose(rows_of_kinds(total, axis=0), (3, 2, 0, 1))[None]


def scatter(memory: Scratch, y: Any, w: Any, padding: Pairs, size: Sizes) -> Any:
    """Do what `lowering.scatter` does: the transpose of `correlate`."""
    kernel = w.shape[-1]
    result = fresh((y.shape[0], w.shape[2], *size), rows_first_order(4), w.dtype)
    work = Work(memory, result.shape, padding, y.shape, kernel)
    y = np.transpose(y, rows_first_order(4))
    x = np.transpose(result, rows_first_order(4))
    # A column of `x` sees places through the kernel from behind.
    rows = np.ascontiguousarray(np.transpose(w[0, ..., ::-1], (2, 3, 0, 1)))
    with np.errstate(all="ignore"):
        np.setbufsize(64)
        for start, stop, images, sums, bars in work.pieces():
            work.add_bars(y[:, images], start, stop, bars)
            _multiply(bars, rows, kernel - 1 - work.left, sums)
            work.spread(sums, start, x[:, images])
    return result
