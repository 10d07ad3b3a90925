"""Kernels of three rows, with two products in place of three: Winograd's F(2, 3).

Two rows of the result come from four of the input, ``d``, by four products with transformed kernel
rows, where six would do it plainly (A. Lavin and S. Gray, *Fast algorithms for convolutional
neural networks*, CVPR 2016, section 4.1)::

    m0 = (d0 - d2) g0                    y0 = m0 + m1 + m2
    m1 = (d1 + d2) (g0 + g1 + g2) / 2    y1 = m1 - m2 + m3
    m2 = (d2 - d1) (g0 - g1 + g2) / 2
    m3 = (d3 - d1) g2

It is done along the first axis of space alone: there the sums run over long pieces of memory, and
what rounding costs is hardly more than in a plain sum. The other axes are gathered as usual. Arrays
are laid out as in `funcgrad.rules.nn.lowering`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from funcgrad.rules.nn.scratch import Scratch

__all__ = [
    "correlate",
    "is_worth_it",
    "kernel_sum",
    "kinds_of_rows",
    "rows",
    "rows_of_kinds",
    "scatter",
]

Sizes = tuple[int, ...]

# Elements of the transformed columns of one matrix product.
_COLUMNS = 1 << 20
_HALF = np.float32(0.5)


def is_worth_it(
    dtype: Any, batch: int, shape: Any, size: Sizes, stride: Sizes, dilation: Sizes
) -> bool:
    """Tell whether this takes less time than gathering: where the products dominate."""
    _, outputs, channels, *kernel = shape
    return bool(
        dtype == np.float32  # whose users have traded digits for speed already
        and len(size) > 1
        and kernel[0] == 3
        and stride[0] == dilation[0] == 1
        and outputs * channels >= 512
        and min(outputs, channels) >= 16
        and size[0] >= 4
        and math.prod(size) * batch >= 4096
    )


def rows(size: Sizes) -> int:
    """Return the number of rows of the input that the tiles of a result of this size see."""
    return 2 * -(-size[0] // 2) + 2


class Work:
    """The arrays that the pieces of one convolution use in turn, and the two transformations."""

    def __init__(self, memory: Scratch, x: Any, outputs: int, kernel: Sizes, size: Sizes):
        self.memory = memory
        self.groups, self.channels, self.batch = x.shape[0], x.shape[1], x.shape[-1]
        self.outputs, self.size = outputs, size
        self.offsets = list(itertools.product(*map(range, kernel[1:])))
        self.depth = self.channels * len(self.offsets)
        self.tiles = -(-size[0] // 2)
        if x.shape[2] < rows(size):  # an odd number of rows: one more, of zeros
            full = memory.empty((*x.shape[:2], rows(size), *x.shape[3:]), x.dtype)
            full[:, :, : x.shape[2]] = x
            full[:, :, x.shape[2] :] = 0
            x = full
        self.x = x

    def pieces(self) -> Iterator[Any]:
        """Yield ``(start, stop, combined, columns, products)``: rows of tiles, and room for them.

        For combinations of four rows of `x`, for these as columns, and for a product of each.
        """
        elements = 4 * self.groups * self.depth * math.prod(self.size[1:]) * self.batch
        step = max(1, min(self.tiles, _COLUMNS // max(elements, 1)))
        step = -(-self.tiles // -(-self.tiles // step))
        made = 0
        for start in range(0, self.tiles, step):
            stop = min(start + step, self.tiles)
            if stop - start != made:
                made = stop - start
                lead = (4, self.groups)
                rows = (made, *self.size[1:], self.batch)
                dtype = self.x.dtype
                combined = self.memory.empty((*lead, self.channels, made, *self.x.shape[3:]), dtype)
                columns = self.memory.empty((*lead, self.channels, len(self.offsets), *rows), dtype)
                products = self.memory.empty((*lead, self.outputs, *rows), dtype)
            yield start, stop, combined, columns, products

    def seen(self, start: int, stop: int) -> list[Any]:
        """Return the four rows of `x` that each tile sees."""
        return [self.x[:, :, 2 * start + i : 2 * (stop - 1) + i + 1 : 2] for i in range(4)]

    def views(self, combined: Any, stride: Sizes, dilation: Sizes) -> Iterator[Any]:
        """Yield what each element of a row of the kernel sees of the combinations."""
        for offset in self.offsets:
            part = (
                slice(o * d, o * d + (n - 1) * s + 1, s)
                for o, n, s, d in zip(offset, self.size[1:], stride[1:], dilation[1:], strict=True)
            )
            yield combined[(slice(None),) * 4 + tuple(part)]

    def gather(
        self, start: int, stop: int, combined: Any, columns: Any, stride: Sizes, dilation: Sizes
    ) -> Any:
        """Fill in the columns, and return them as matrices."""
        d0, d1, d2, d3 = self.seen(start, stop)
        np.subtract(d0, d2, out=combined[0])
        np.add(d1, d2, out=combined[1])
        np.subtract(d2, d1, out=combined[2])
        np.subtract(d3, d1, out=combined[3])
        for k, view in enumerate(self.views(combined, stride, dilation)):
            columns[:, :, :, k] = view
        return self.flat(columns)

    def scatter(
        self, start: int, stop: int, combined: Any, columns: Any, stride: Sizes, dilation: Sizes
    ) -> None:
        """Do the transpose of `gather`: add to the rows of `x`."""
        combined[...] = 0
        for k, view in enumerate(self.views(combined, stride, dilation)):
            np.add(view, columns[:, :, :, k], out=view)
        c0, c1, c2, c3 = combined
        d0, d1, d2, d3 = self.seen(start, stop)
        # One after the other, as d0 of a tile is d2 of the tile before.
        np.add(d0, c0, out=d0)
        np.add(d3, c3, out=d3)
        np.subtract(c1, c3, out=c3)
        np.subtract(c3, c2, out=c3)
        np.add(d1, c3, out=d1)
        np.subtract(c1, c0, out=c1)
        np.add(c1, c2, out=c1)
        np.add(d2, c1, out=d2)

    def products_of(self, y: Any, start: int, stop: int, m: Any) -> Any:
        """Fill in the cotangents of the four products, given those of the results."""
        y0, y1 = y[:, :, 2 * start : 2 * stop : 2], y[:, :, 2 * start + 1 : 2 * stop : 2]
        count = y1.shape[2]  # one less than of y0 at an odd end
        m[0] = y0
        np.add(y0[:, :, :count], y1, out=m[1, :, :, :count])
        np.subtract(y0[:, :, :count], y1, out=m[2, :, :, :count])
        m[3, :, :, :count] = y1
        if count < y0.shape[2]:
            m[1:3, :, :, count:] = y0[:, :, count:]
            m[3, :, :, count:] = 0
        return self.flat(m)

    def flat(self, made: Any) -> Any:
        """Return columns or products as matrices."""
        width = math.prod(made.shape[-len(self.size) - 1 :])
        return made.reshape(4, self.groups, made.size // (4 * self.groups * width), width)


def correlate(memory: Scratch, x: Any, w: Any, out: Any, stride: Sizes, dilation: Sizes) -> None:
    """Do what `lowering.correlate` does, into `out`."""
    groups, outputs = w.shape[:2]
    work = Work(memory, x, outputs, w.shape[3:], out.shape[2:-1])
    matrices = _transformed(w).reshape(4, groups, outputs, work.depth)
    with np.errstate(all="ignore"):
        np.setbufsize(64)  # NumPy would copy what is not contiguous, a buffer at a time
        for start, stop, combined, columns, m in work.pieces():
            gathered = work.gather(start, stop, combined, columns, stride, dilation)
            np.matmul(matrices, gathered, out=work.flat(m))
            y0, y1 = out[:, :, 2 * start : 2 * stop : 2], out[:, :, 2 * start + 1 : 2 * stop : 2]
            count = y1.shape[2]  # one less than of y0 at an odd end
            np.add(m[0], m[1], out=m[0])
            np.add(m[0], m[2], out=y0)
            np.subtract(m[1], m[2], out=m[1])
            np.add(m[1][:, :, :count], m[3][:, :, :count], out=y1)


def kernel_sum(
    memory: Scratch, x: Any, y: Any, kernel: Sizes, stride: Sizes, dilation: Sizes
) -> Any:
    """Do what `lowering.kernel_sum` does: the transpose of `correlate` in `w`."""
    groups, outputs = y.shape[:2]
    work = Work(memory, x, outputs, kernel, y.shape[2:-1])
    total = np.zeros((4, groups, outputs, work.depth), x.dtype)
    with np.errstate(all="ignore"):
        np.setbufsize(64)
        for start, stop, combined, columns, m in work.pieces():
            gathered = work.gather(start, stop, combined, columns, stride, dilation)
            products = work.products_of(y, start, stop, m)
            total += np.matmul(products, np.swapaxes(gathered, -1, -2))
    v = total.reshape(4, groups, outputs, work.channels, *kernel[1:])
    return rows_of_kinds(v, axis=3)


def scatter(memory: Scratch, y: Any, w: Any, x: Any, stride: Sizes, dilation: Sizes) -> None:
    """Do what `lowering.scatter` does, into `x`: the transpose of `correlate`."""
    groups, outputs = w.shape[:2]
    work = Work(memory, x, outputs, w.shape[3:], y.shape[2:-1])
    matrices = np.swapaxes(_transformed(w).reshape(4, groups, outputs, work.depth), -1, -2)
    with np.errstate(all="ignore"):
        np.setbufsize(64)
        for start, stop, combined, columns, m in work.pieces():
            np.matmul(matrices, work.products_of(y, start, stop, m), out=work.flat(columns))
            work.scatter(start, stop, combined, columns, stride, dilation)


def _transformed(w: Any) -> Any:
    """Return the four combinations of the rows of a kernel."""
    return kinds_of_rows(w[:, :, :, 0], w[:, :, :, 1], w[:, :, :, 2])


def kinds_of_rows(g0: Any, g1: Any, g2: Any) -> Any:
    """Return what the four kinds of sums are multiplied with, for three rows of a kernel."""
    half, g1 = (g0 + g2) * _HALF, g1 * _HALF
    return np.stack([g0, half + g1, half - g1, g2])


def rows_of_kinds(v: Any, axis: int) -> Any:
    """Do the transpose of that; the rows are along `axis`."""
    half = (v[1] + v[2]) * _HALF
    return np.stack([v[0] + half, (v[1] - v[2]) * _HALF, v[3] + half], axis)
