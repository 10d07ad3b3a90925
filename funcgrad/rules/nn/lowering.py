"""Convolutions of plain arrays: everything becomes matrix products.

The one idea: inside, the batch is the *last* axis, so that an array is laid out as
``(groups, channels, *space, batch)``. What a kernel element sees of it is then made of long runs of
memory, so gathering it for all kernel elements (the columns of a matrix product) costs little
beside the product itself, whatever the size of the images. Columns are made for a few rows of
the images at a time, which keeps them in the cache and needs little memory.

Where the products are so many that fewer of them are worth more additions, `tiles`, `runs` or
`winograd` does the work, see there.

There are three products, one for each way to fill in two of the three arguments of the form
``sum x[n, c, p*stride + k*dilation] * w[o, c, k] * y[n, o, p]``: `correlate` gives `y`, `scatter`
gives `x`, `kernel_sum` gives `w`. `funcgrad.rules.nn.convolution` makes primitives of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from funcgrad.core.zero import is_finite
from funcgrad.rules.nn import runs, tiles, winograd
from funcgrad.rules.nn.layout import (
    batch_last,
    batch_last_order,
    channels_last_order,
    fresh,
    rows_first_order,
)
from funcgrad.rules.nn.scratch import Scratch, scratch

__all__ = ["correlate", "kernel_sum", "output_size", "scatter"]

Sizes = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]

# Elements of the columns of one matrix product: small enough for the cache, and large enough for
# BLAS to work on them with several threads.
_COLUMNS = 1 << 20


def output_size(
    size: Sizes, kernel: Sizes, stride: Sizes, padding: Pairs, dilation: Sizes
) -> Sizes:
    """Return the number of places that a window of `kernel` elements can take, along each axis."""
    return tuple(
        (n + low + high - d * (k - 1) - 1) // s + 1
        for n, k, s, (low, high), d in zip(size, kernel, stride, padding, dilation, strict=True)
    )


def spans(kernel: Sizes, dilation: Sizes) -> Sizes:
    """Return the distance between the first and the last element of the window."""
    return tuple(d * (k - 1) for k, d in zip(kernel, dilation, strict=True))


def working_dtype(*arrays: Any) -> tuple[Any, Any]:
    """Return the dtype to compute in, and that of the result."""
    dtype = np.result_type(*[x.dtype for x in arrays])
    return (np.dtype(np.float32) if dtype == np.float16 else dtype), dtype


# Windows


def offsets(kernel: Sizes) -> Iterator[tuple[int, Sizes]]:
    """Number the elements of a window."""
    return enumerate(itertools.product(*map(range, kernel)))


def seen(offset: Sizes, size: Sizes, stride: Sizes, dilation: Sizes, first: int = 0) -> Any:
    """Return the index of what one kernel element sees from `size` places, from row `first` on."""
    starts = (first, *(0,) * (len(size) - 1))
    return (
        slice(None),
        slice(None),
        *(
            slice(start * s + o * d, (start + n - 1) * s + o * d + 1, s)
            for o, n, s, d, start in zip(offset, size, stride, dilation, starts, strict=True)
        ),
    )


def pieces(rows: int, elements: int) -> Iterator[tuple[int, int]]:
    """Cut `rows` rows of so many elements into pieces, of one length but for the last."""
    step = max(1, min(rows, _COLUMNS // max(elements, 1)))
    step = -(-rows // -(-rows // step)) if rows else 1
    for start in range(0, rows, step):
        yield start, min(start + step, rows)


def columns(
    memory: Scratch, x: Any, size: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes
) -> Iterator[Any]:
    """Yield pieces of the matrix whose columns are the windows: ``(start, stop, matrix)``.

    `start` and `stop` count columns. The memory is used again for the next piece.
    """
    groups, channels, batch = x.shape[0], x.shape[1], x.shape[-1]
    depth = channels * math.prod(kernel)
    row = math.prod(size[1:]) * batch
    if math.prod(kernel) == 1 and set(stride) == {1}:
        yield 0, size[0] * row, x.reshape(groups, channels, size[0] * row)
        return
    held = None
    for start, stop in pieces(size[0], groups * depth * row):
        part = (stop - start, *size[1:])
        if held is None or held.shape[3] != stop - start:
            held = memory.empty((groups, channels, math.prod(kernel), *part, batch), x.dtype)
        for k, offset in offsets(kernel):
            held[:, :, k] = x[seen(offset, part, stride, dilation, start)]
        yield start * row, stop * row, held.reshape(groups, depth, (stop - start) * row)


# The three products


def best_order(
    shape: Sizes,
    weights: Sizes,
    dtype: Any,
    *,
    stride: Sizes,
    padding: Pairs,
    dilation: Sizes,
    groups: int,
) -> Sizes:
    """Return the order of axes in memory in which `correlate` works on images of this shape."""
    size = output_size(shape[2:], weights[2:], stride, padding, dilation)
    in_groups = (groups, weights[0] // groups, *weights[1:])
    if tiles.is_worth_it(dtype, shape[0], in_groups, size, stride, dilation):
        return channels_last_order(len(shape))
    if runs.is_worth_it(dtype, shape[0], in_groups, size, stride, padding, dilation):
        return rows_first_order(len(shape))
    return batch_last_order(len(shape))


def correlate(
    x: Any, w: Any, *, stride: Sizes, padding: Pairs, dilation: Sizes, groups: int
) -> Any:
    """Return `y`: the sum over the channels and the elements of the window."""
    dtype, out_dtype = working_dtype(x, w)
    size = output_size(x.shape[2:], w.shape[2:], stride, padding, dilation)
    w = in_groups(w, dtype, groups)
    with scratch() as memory:
        out = _correlate(memory, x, w, size, stride, padding, dilation)
    return out.astype(out_dtype, copy=False)


def _correlate(
    memory: Scratch, x: Any, w: Any, size: Sizes, stride: Sizes, padding: Pairs, dilation: Sizes
) -> Any:
    groups, outputs, channels, *kernel = w.shape
    if tiles.is_worth_it(w.dtype, x.shape[0], w.shape, size, stride, dilation):
        with memory.again():
            result = tiles.correlate(memory, x, w, padding, size)
        if _is_finite(result):
            return result
    elif runs.is_worth_it(w.dtype, x.shape[0], w.shape, size, stride, padding, dilation):
        with memory.again():
            result = runs.correlate(memory, x, w, padding, size)
        if _is_finite(result):
            return result
    result, out = _fresh_batch_last(x.shape[0], groups, outputs, size, w.dtype)
    x = split(batch_last(memory, x, padding, w.dtype), groups)
    if winograd.is_worth_it(x.dtype, x.shape[-1], w.shape, size, stride, dilation):
        winograd.correlate(memory, x, w, out, stride, dilation)
        if _is_finite(out):
            return result
    matrix = w.reshape(groups, outputs, channels * math.prod(kernel))
    flat = out.reshape(groups, outputs, math.prod(out.shape[2:]))
    for start, stop, part in columns(memory, x, size, tuple(kernel), stride, dilation):
        np.matmul(matrix, part, out=flat[:, :, start:stop])
    return result


def _fresh_batch_last(
    batch: int, groups: int, channels: int, space: Any, dtype: Any
) -> tuple[Any, Any]:
    """Return an array ``[batch, groups * channels, *space]``, and its memory in our order."""
    shape = (batch, groups * channels, *space)
    made = fresh(shape, batch_last_order(len(shape)), dtype)
    return made, split(np.transpose(made, batch_last_order(len(shape))), groups)


def split(x: Any, groups: int) -> Any:
    """Return ``x[channels, *space, batch]`` as ``[groups, channels, *space, batch]``."""
    return np.reshape(x, (groups, x.shape[0] // groups, *x.shape[1:]), copy=False)


def in_groups(w: Any, dtype: Any, groups: int) -> Any:
    """Return a kernel as ``w[groups, outputs, channels, *kernel]``."""
    return w.astype(dtype, copy=False).reshape(groups, w.shape[0] // groups, *w.shape[1:])


def _is_finite(out: Any) -> bool:
    """Tell whether to trust sums of differences: an infinity would turn into NaN in them."""
    with np.errstate(all="ignore"):
        return is_finite(np.ravel(out, "K"))


def kernel_sum(
    x: Any,
    y: Any,
    *,
    kernel: Sizes,
    stride: Sizes,
    padding: Pairs,
    dilation: Sizes,
    groups: int,
) -> Any:
    """Return `w`: the sum over the examples and the places of the window."""
    dtype, out_dtype = working_dtype(x, y)
    size = y.shape[2:]
    shape = (groups, y.shape[1] // groups, x.shape[1] // groups, *kernel)
    with scratch() as memory:
        total = None
        if tiles.is_worth_it(dtype, x.shape[0], shape, size, stride, dilation):
            with memory.again():
                total = tiles.kernel_sum(memory, x, y, padding, groups)
        elif runs.is_worth_it(dtype, x.shape[0], shape, size, stride, padding, dilation):
            with memory.again():
                total = runs.kernel_sum(memory, x, y, padding, kernel[1])
        if total is None or not _is_finite(total):
            total = _kernel_sum(memory, x, y, dtype, shape, stride, padding, dilation)
    _, outputs, channels = shape[:3]
    return total.reshape(groups * outputs, channels, *kernel).astype(out_dtype, copy=False)


def _kernel_sum(
    memory: Scratch,
    x: Any,
    y: Any,
    dtype: Any,
    shape: Any,
    stride: Sizes,
    padding: Pairs,
    dilation: Sizes,
) -> Any:
    groups, outputs, channels, *kernel = shape
    size = y.shape[2:]
    x = split(batch_last(memory, x, padding, dtype), groups)
    y = split(batch_last(memory, y, ((0, 0),) * len(size), dtype), groups)
    if winograd.is_worth_it(dtype, x.shape[-1], shape, size, stride, dilation):
        total = winograd.kernel_sum(memory, x, y, tuple(kernel), stride, dilation)
        if _is_finite(total):
            return total
    depth = channels * math.prod(kernel)
    total = np.zeros((groups, outputs, depth), dtype)
    flat = y.reshape(groups, outputs, math.prod(y.shape[2:]))
    for start, stop, part in columns(memory, x, size, tuple(kernel), stride, dilation):
        # BLAS takes half the time for a long sum if the matrix of more rows is the left one.
        if outputs < depth:
            total += np.swapaxes(np.matmul(part, np.swapaxes(flat[:, :, start:stop], 1, 2)), 1, 2)
        else:
            total += np.matmul(flat[:, :, start:stop], np.swapaxes(part, 1, 2))
    return total


def scatter(
    y: Any,
    w: Any,
    *,
    size: Sizes,
    stride: Sizes,
    padding: Pairs,
    dilation: Sizes,
    groups: int,
) -> Any:
    """Return `x` of `size` elements: the sum of all that the window puts at each."""
    dtype, out_dtype = working_dtype(y, w)
    w = in_groups(w, dtype, groups)
    kernel = w.shape[3:]
    with scratch() as memory:
        if _runs_back(dtype, y.shape, w.shape, stride, padding, dilation):
            with memory.again():
                x = runs.scatter(memory, y, w, padding, size)
            if _is_finite(x):
                return x.astype(out_dtype, copy=False)
        if set(stride) == {1} and _gathers(dtype, y.shape, w.shape, size, dilation):
            # A correlation with the reversed kernel: copying is cheaper than adding.
            turned = tuple(
                (reach - low, reach - high)
                for reach, (low, high) in zip(spans(kernel, dilation), padding, strict=True)
            )
            back = (slice(None, None, -1),) * len(kernel)
            w = np.ascontiguousarray(np.swapaxes(w, 1, 2)[(..., *back)])
            x = _correlate(memory, y, w, size, stride, turned, dilation)
        else:
            y = split(batch_last(memory, y, ((0, 0),) * len(size), dtype), groups)
            x = _scatter(memory, y, w, size, stride, padding, dilation)
    return x.astype(out_dtype, copy=False)


def _runs_back(
    dtype: Any, shape: Any, weights: Any, stride: Sizes, padding: Pairs, dilation: Sizes
) -> bool:
    """Tell whether `runs` takes less time than gathering windows or scattering them."""
    groups, outputs, channels, *kernel = weights
    batch, _, *places = shape
    turned = (groups, channels, outputs, *kernel)
    size = tuple(places)
    return not tiles.is_worth_it(dtype, batch, turned, size, stride, dilation) and runs.is_worth_it(
        dtype, batch, weights, size, stride, padding, dilation
    )


def _gathers(dtype: Any, shape: Any, weights: Any, size: Sizes, dilation: Sizes) -> bool:
    """Tell whether gathering windows takes less time than scattering them: by measurement."""
    groups, outputs, channels, *kernel = weights
    batch, _, *places = shape
    turned = (groups, channels, outputs, *kernel)
    stride = (1,) * len(size)
    if tiles.is_worth_it(dtype, batch, turned, size, stride, dilation):
        return True
    fast = winograd.is_worth_it(dtype, batch, turned, size, stride, dilation)
    less = 2 / 3 if fast else 1
    scattering = channels * math.prod(places) * less * (0.2 + 0.01 * outputs)
    gathering = outputs * math.prod(size) * less * (0.12 + 0.01 * channels)
    return bool(gathering < scattering)


def _scatter(
    memory: Scratch,
    y: Any,
    w: Any,
    size: Sizes,
    stride: Sizes,
    padding: Pairs,
    dilation: Sizes,
) -> Any:
    groups, channels = w.shape[0], w.shape[2]
    places, batch = y.shape[2:-1], y.shape[-1]
    fast = winograd.is_worth_it(y.dtype, batch, w.shape, places, stride, dilation)
    full = [n + low + high for n, (low, high) in zip(size, padding, strict=True)]
    if fast:
        full[0] = max(full[0], winograd.rows(places))
    inside = [slice(low, low + n) for n, (low, _) in zip(size, padding, strict=True)]
    result, x = _fresh_batch_last(batch, groups, channels, size, y.dtype)
    whole = x
    if tuple(full) != size:  # what is cut off at the end is put together in other memory
        whole = memory.empty((groups, channels, *full, batch), y.dtype)
    whole[...] = 0
    if fast:
        winograd.scatter(memory, y, w, whole, stride, dilation)
        if not _is_finite(whole):
            fast = False
            whole[...] = 0
    if not fast:
        _add_windows(memory, y, w, whole, stride, dilation)
    if whole is not x:
        x[...] = whole[(slice(None), slice(None), *inside)]
    return result


def _add_windows(memory: Scratch, y: Any, w: Any, x: Any, stride: Sizes, dilation: Sizes) -> None:
    """Add all that the windows hold to `x`."""
    groups, outputs, channels, *kernel = w.shape
    places, batch = y.shape[2:-1], y.shape[-1]
    depth, row = channels * math.prod(kernel), math.prod(places[1:]) * batch
    matrix = np.swapaxes(w.reshape(groups, outputs, depth), 1, 2)
    flat = y.reshape(groups, outputs, places[0] * row)
    terms = None
    with np.errstate():
        if row >= 128:
            np.setbufsize(64)  # NumPy would copy what is not contiguous, a buffer at a time
        for start, stop in pieces(places[0], groups * depth * row):
            part = (stop - start, *places[1:])
            if terms is None or terms.shape[2] != (stop - start) * row:
                terms = memory.empty((groups, depth, (stop - start) * row), x.dtype)
            np.matmul(matrix, flat[:, :, start * row : stop * row], out=terms)
            split = terms.reshape(groups, channels, math.prod(kernel), *part, batch)
            for k, offset in offsets(tuple(kernel)):
                target = x[seen(offset, part, stride, dilation, start)]
                np.add(target, split[:, :, k], out=target)
