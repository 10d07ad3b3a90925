"""Kernels of three rows over images whose rows are one stream of points: no windows are gathered.

The one idea: laid out as ``(rows, batch, columns, channels)``, what a row of a kernel of `k`
columns sees from one place is `k` points in a row, one run of memory. The windows from every k-th
place on do not overlap, so they are the rows of a matrix as they are, and `k` matrix products,
each from another place on, do all of them. Between two rows of images there are as many points of
zeros as padding asks for; windows that see two images are computed in vain, which is why this is
for images of many columns.

Along the rows it is Winograd's F(2, 3), see `funcgrad.rules.nn.winograd` for the formulas: sums of
the rows of the images, four kinds of them, are what the streams are made of. All the arithmetic
beside the products is done on whole rows of all images.
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

# Elements of the sums and products of one piece.
_PIECE = 1 << 20
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
    """Tell whether this takes less time than gathering, where few windows are in vain."""
    groups, outputs, channels, *kernel = shape
    if not (
        dtype == np.float32
        and groups == 1
        and len(size) == 2
        and kernel[0] == 3
        and set(stride) == set(dilation) == {1}
        and outputs * channels >= 512
        and min(outputs, channels) >= 16
        and size[0] >= 4
        and size[0] * size[1] * batch >= 4096
    ):
        return False
    fits = all(0 <= n < k for pair, k in zip(padding, kernel, strict=True) for n in pair)
    return fits and kernel[1] - 1 - min(padding[1]) <= size[1] / 4


class Work:
    """What the pieces of one convolution share: sizes, and how streams are made."""

    def __init__(
        self, memory: Scratch, batch: int, weights: Any, space: Sizes, padding: Pairs, size: Sizes
    ):
        self.memory, self.batch, self.size = memory, batch, size
        self.outputs, self.channels, self.kernel = weights
        self.height = space[0]
        self.top = padding[0][0]
        low, high = padding[1]
        self.inside = slice(low, low + space[1])
        # The zeros after a row are those before the next one too.
        self.width = space[1] + max(low, high)
        self.tiles = -(-size[0] // 2)

    def pieces(self) -> Iterator[tuple[int, int]]:
        """Yield which tiles, rows of two rows of results, to treat at a time."""
        row = 4 * self.batch * self.width * (self.channels + self.outputs)
        step = max(1, min(self.tiles, _PIECE // row))
        step = -(-self.tiles // -(-self.tiles // step))
        for start in range(0, self.tiles, step):
            yield start, min(start + step, self.tiles)

    def stream(self, tiles: int, channels: int) -> tuple[Any, Any]:
        """Return ``[kind, point, channel]`` and ``[kind, tile, image, column, channel]`` of it.

        Around the points are as many of zeros as windows look beyond them.
        """
        beyond = self.kernel - 1
        points = tiles * self.batch * self.width
        windows = -(-points // self.kernel) * self.kernel
        made = self.memory.empty((4, beyond + windows + beyond, channels), np.float32)
        made[:, :beyond] = 0
        made[:, beyond + points :] = 0
        return made, made[:, beyond : beyond + points].reshape(
            4, tiles, self.batch, self.width, channels
        )

    def stream_of_sums(self, tiles: int) -> tuple[Any, Any]:
        """Return a stream and the part of it to put sums of the input in, with zeros around."""
        flat, image = self.stream(tiles, self.channels)
        image[:, :, :, : self.inside.start] = 0
        image[:, :, :, self.inside.stop :] = 0
        return flat, image[:, :, :, self.inside]

    def stream_of_bars(self, tiles: int) -> tuple[Any, Any]:
        """Return a stream for the cotangents of the products, with zeros in the two plain kinds."""
        flat, image = self.stream(tiles, self.outputs)
        image[::3, :, :, self.size[1] :] = 0
        return flat, image

    def windows(self, flat: Any, first: int) -> Any:
        """Return all windows from a point on as ``[kind, first, window, column and channel]``."""
        k = self.kernel
        kinds, points, channels = flat.shape
        kind, point, channel = flat.strides
        shape = (kinds, k, (points - 2 * (k - 1)) // k, k * channels)
        return as_strided(flat[:, first:], shape, (kind, point, k * point, channel))

    def places(self, flat: Any) -> Any:
        """Return the points that belong to these windows."""
        k = self.kernel
        kinds, points, channels = flat.shape
        inner = flat[:, k - 1 : points - (k - 1)]
        return inner.reshape(kinds, -1, k, channels).swapaxes(1, 2)

    def add_sums(self, x: Any, start: int, stop: int, made: Any) -> None:
        """Fill in the sums of the four rows of ``x[row, image, column, channel]`` of each tile."""
        # Those that see rows of padding one by one, all others at once.
        first = min(max(start, -(-self.top // 2)), stop)
        last = max(min(stop, (self.height + self.top) // 2 - 1), first)
        alone = [(t, t + 1) for t in (*range(start, first), *range(last, stop))]
        for a, b in [*alone, (first, last)][: None if first < last else -1]:
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
        inner = made[:, :, :, : self.size[1]]
        copy(inner[0], y0)
        copy(inner[3, : len(y1)], y1)
        inner[3, len(y1) :] = 0  # one less at an odd end
        np.add(made[0], made[3], out=made[1])
        np.subtract(made[0], made[3], out=made[2])

    def add_up(self, m: Any, y: Any, start: int, stop: int) -> None:
        """Add products up to rows of the result; they are overwritten."""
        m = m[:, :, :, : self.size[1]]
        y0, y1 = y[2 * start : 2 * stop : 2], y[2 * start + 1 : 2 * stop : 2]
        np.add(m[0], m[1], out=m[0])
        np.add(m[0], m[2], out=y0)
        np.subtract(m[1], m[2], out=m[1])
        np.add(m[1, : len(y1)], m[3, : len(y1)], out=y1)

    def spread(self, c: Any, start: int, x: Any) -> None:
        """Do the transpose of `add_sums`; the sums are overwritten."""
        c0, c1, c2, c3 = c[:, :, :, self.inside]
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


def correlate(memory: Scratch, x: Any, w: Any, padding: Pairs, size: Sizes) -> Any:
    """Do what `lowering.correlate` does, for ``w[1, outputs, channels, 3, columns]``."""
    outputs, channels, _, kernel = w.shape[1:]
    batch, _, *space = x.shape
    work = Work(memory, batch, (outputs, channels, kernel), tuple(space), padding, size)
    x = rows_first(memory, x, w.dtype)
    result = fresh((batch, outputs, *size), rows_first_order(4), w.dtype)
    out = np.transpose(result, rows_first_order(4))
    rows = np.ascontiguousarray(np.transpose(w[0], (2, 3, 1, 0)))  # row, column, channel, output
    matrices = kinds_of_rows(*rows).reshape(4, 1, kernel * channels, outputs)
    made = 0
    with np.errstate(all="ignore"):
        np.setbufsize(64)  # NumPy would copy what is not contiguous, a buffer at a time
        for start, stop in work.pieces():
            if stop - start != made:
                made = stop - start
                flat, sums = work.stream_of_sums(made)
                flat_products, products = work.stream(made, outputs)
            work.add_sums(x, start, stop, sums)
            windows = work.windows(flat, kernel - 1)
            np.matmul(windows, matrices, out=work.places(flat_products))
            work.add_up(products, out, start, stop)
    return result


def kernel_sum(memory: Scratch, x: Any, y: Any, padding: Pairs, kernel: int) -> Any:
    """Do what `lowering.kernel_sum` does, for a kernel of three rows.

    The result is ``w[1, outputs, channels, 3, columns]``.
    """
    batch, channels, *space = x.shape
    outputs, size = y.shape[1], y.shape[2:]
    work = Work(memory, batch, (outputs, channels, kernel), tuple(space), padding, size)
    x = rows_first(memory, x, np.float32)
    y = np.transpose(y, rows_first_order(4))
    total = np.zeros((4, kernel * channels, outputs), np.float32)
    made = 0
    with np.errstate(all="ignore"):
        np.setbufsize(64)
        for start, stop in work.pieces():
            if stop - start != made:
                made = stop - start
                flat, sums = work.stream_of_sums(made)
                flat_bars, bars = work.stream_of_bars(made)
            work.add_sums(x, start, stop, sums)
            work.add_bars(y, start, stop, bars)
            windows = np.swapaxes(work.windows(flat, kernel - 1), -1, -2)
            total += np.sum(np.matmul(windows, work.places(flat_bars)), 1)
    rows = rows_of_kinds(total.reshape(4, kernel, channels, outputs), axis=0)
    return np.transpose(rows, (3, 2, 0, 1))[None]


def scatter(memory: Scratch, y: Any, w: Any, padding: Pairs, size: Sizes) -> Any:
    """Do what `lowering.scatter` does: the transpose of `correlate`."""
    outputs, channels, _, kernel = w.shape[1:]
    batch, _, *places = y.shape
    work = Work(memory, batch, (outputs, channels, kernel), size, padding, tuple(places))
    y = np.transpose(y, rows_first_order(4))
    result = fresh((batch, channels, *size), rows_first_order(4), w.dtype)
    x = np.transpose(result, rows_first_order(4))
    rows = np.ascontiguousarray(np.transpose(w[0, ..., ::-1], (2, 3, 0, 1)))
    matrices = kinds_of_rows(*rows).reshape(4, 1, kernel * outputs, channels)
    made = 0
    with np.errstate(all="ignore"):
        np.setbufsize(64)
        for start, stop in work.pieces():
            if stop - start != made:
                made = stop - start
                flat_bars, bars = work.stream_of_bars(made)
                flat, sums = work.stream(made, channels)
            work.add_bars(y, start, stop, bars)
            np.matmul(work.windows(flat_bars, 0), matrices, out=work.places(flat))
            work.spread(sums, start, x)
    return result
