"""Padding: `numpy.pad` in every mode.

Constants, and copies of elements by a pattern of indices, are one primitive, linear in the array.
The other modes are composed of functions that have rules, in the steps in which NumPy takes them:
it pads axis by axis, and what it puts into the corners comes of what was padded before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.dispatch import of_shapes
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.arranging import untake
from funcgrad.rules.families import linear
from funcgrad.rules.reducing import cast
from funcgrad.rules.spelling import array_of, holds_tracer

__all__: list[str] = []

_BY_INDEX = ("edge", "reflect", "symmetric", "wrap")


@primitive(linear, name="pad")
def pad_axes(array, *, pad_width, mode, options):
    """Put elements around: constants, or copies of the array's own by a pattern of indices."""
    return np.pad(array, pad_width, mode, **options)


@pad_axes.def_jvp
def pad_axes_jvp(primals, tangents, out, *, pad_width, mode, options):
    if mode in _BY_INDEX:
        return pad_axes.bind(tangents[0], pad_width=pad_width, mode=mode, options=options)
    return np.pad(tangents[0], pad_width)


@pad_axes.def_vjp
def pad_axes_vjp(primals, out, *, pad_width, mode, options):
    shape = shape_of(primals[0])

    def pad_pullback(out_bar):
        if mode not in _BY_INDEX:
            middle = tuple(
                slice(low, low + n) for (low, _), n in zip(pad_width, shape, strict=True)
            )
            return out_bar[middle] if middle else out_bar
        for axis, pair in enumerate(pad_width):
            if pair != (0, 0):
                index = np.pad(np.arange(shape[axis]), (pair,), mode, **options)
                out_bar = untake(out_bar, index, shape[axis], axis)
        return out_bar

    return pad_pullback


@pad_axes.def_batch
def pad_axes_batch(args, batched, *, pad_width, mode, options):
    (array,) = args
    values = options.get("constant_values")
    if values is not None and np.ndim(values):
        pairs = np.broadcast_to(values, (len(pad_width), 2))
        options = {**options, "constant_values": np.concatenate([pairs[:1], pairs])}
    return pad_axes.bind(array, pad_width=((0, 0), *pad_width), mode=mode, options=options)


_STATISTICS = {"maximum": np.max, "mean": np.mean, "median": np.median, "minimum": np.min}


@pad_axes.def_call(np.pad)
def pad(array, pad_width, mode="constant", **kwargs):
    """Put elements around an array."""
    pairs = _pairs(pad_width, len(shape_of(array)))
    if callable(mode):
        return _pad_by(mode, array, pairs, kwargs)
    values = kwargs.get("constant_values", 0)
    if mode == "constant" and holds_tracer(values):
        return _pad_traced(array, pairs, values) if pairs else np.copy(array)
    composed = mode in _STATISTICS or mode == "linear_ramp"
    if mode in ("reflect", "symmetric"):
        composed = kwargs.get("reflect_type", "even") != "even"
    if not pairs:
        of_shapes(np.pad, array, 0, mode, **kwargs)  # raises what it does not take
        return np.copy(array)
    if not composed:
        return pad_axes.bind(array, pad_width=pairs, mode=mode, options=kwargs)
    # NumPy says what is wrong with the options, or with an array that has no elements.
    options = {name: 0 if holds_tracer(value) else value for name, value in kwargs.items()}
    shape = shape_of(array)
    full = np.pad(np.zeros([min(n, 1) for n in shape]), pairs, mode, **options)
    if 0 in full.shape:
        return pad_axes.bind(array, pad_width=pairs, mode="constant", options={})
    if mode in _STATISTICS:
        return _pad_statistics(array, pairs, _STATISTICS[mode], kwargs.get("stat_length"))
    if mode == "linear_ramp":
        return _pad_ramps(array, pairs, kwargs.get("end_values", 0))
    for axis, pair in enumerate(pairs):
        array = _pad_odd(array, axis, *pair, mode == "symmetric")
    return array


def _pairs(pad_width: Any, ndim: int) -> tuple[tuple[int, int], ...]:
    if isinstance(pad_width, dict):  # from NumPy 2.3 on: axis -> width or pair
        found = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            found[axis] = (width, width) if isinstance(width, int) else tuple(width)
        return tuple(found)
    widths = np.asarray(pad_width)
    if widths.dtype.kind != "i":
        raise TypeError("`pad_width` must be of integral type.")
    return tuple((int(low), int(high)) for low, high in np.broadcast_to(widths, (ndim, 2)))


def _pad_traced(array: Any, pairs: Any, values: Any) -> Any:
    dtype = dtype_of(array)
    values = np.broadcast_to(array_of(values), (len(pairs), 2))
    for axis, pair in enumerate(pairs):
        shape = shape_of(array)
        low, high = (
            np.broadcast_to(
                values[axis, side].astype(dtype), (*shape[:axis], pair[side], *shape[axis + 1 :])
            )
            for side in (0, 1)
        )
        array = np.concatenate((low, array, high), axis=axis)
    return array


def _pad_by(function: Any, array: Any, pairs: Any, kwargs: Any) -> Any:
    """Let a function of the user's write to each line of the array with zeros around."""
    array = pad_axes.bind(array, pad_width=pairs, mode="constant", options={}) if pairs else array
    for axis, pair in enumerate(pairs):
        lines = np.moveaxis(array, axis, -1)
        shape = shape_of(lines)
        written = []
        for place in np.ndindex(*shape[:-1]):
            line = lines[place].copy()
            function(line, pair, axis, kwargs)
            written.append(line)
        if written:
            array = np.moveaxis(np.reshape(np.stack(written), shape), -1, axis)
    return array


def _pad_statistics(array: Any, pairs: Any, statistic: Any, lengths: Any) -> Any:
    """Repeat a statistic of so many elements at each end of each axis."""
    dtype = dtype_of(array)
    if lengths is not None:
        lengths = np.broadcast_to(np.asarray(lengths), (len(pairs), 2)).tolist()
    for axis, (low, high) in enumerate(pairs):
        n = shape_of(array)[axis]
        first, last = (n, n) if lengths is None else (min(length, n) for length in lengths[axis])
        left = statistic(_part(array, axis, 0, first), axis=axis, keepdims=True)
        right = left
        if not first == last == n:
            right = statistic(_part(array, axis, n - last, n), axis=axis, keepdims=True)
        if dtype.kind in "iu":
            left, right = np.round(left), np.round(right)
        array = _surrounded(array, axis, _repeated(left, axis, low), _repeated(right, axis, high))
    return array


def _pad_ramps(array: Any, pairs: Any, ends: Any) -> Any:
    """Go in equal steps from an end value to the edge."""
    ends = _ends(ends, len(pairs))
    for axis, pair in enumerate(pairs):
        n = shape_of(array)[axis]
        edges = _part(array, axis, 0, 1), _part(array, axis, n - 1, n)
        left, right = (
            np.linspace(
                start=end,
                stop=np.squeeze(edge, axis),
                num=width,
                endpoint=False,
                dtype=dtype_of(array),
                axis=axis,
            )
            for end, edge, width in zip(ends[axis], edges, pair, strict=True)
        )
        array = _surrounded(array, axis, left, np.flip(right, axis))
    return array


def _ends(ends: Any, ndim: int) -> Any:
    """Return a pair of end values for each axis, of the types as which NumPy takes them."""
    if holds_tracer(ends):
        ends = np.broadcast_to(array_of(ends), (ndim, 2))
        return [[ends[axis, 0], ends[axis, 1]] for axis in range(ndim)]
    ends = np.array(ends)
    if ends.size == 1 and ends.ndim < 3:
        return [[ends.ravel()[0]] * 2] * ndim
    if ends.size == 2 and ends.ndim < 3 and ends.shape != (2, 1):
        return [list(ends.ravel())] * ndim
    return np.broadcast_to(ends, (ndim, 2)).tolist()


def _pad_odd(array: Any, axis: int, low: int, high: int, with_edge: bool) -> Any:
    """Continue an axis by its point reflection about the edge, again and again."""
    period = shape_of(array)[axis]
    if period == 1:
        pair = [(0, 0)] * len(shape_of(array))
        pair[axis] = (low, high)
        return np.pad(array, pair, "edge")
    while low > 0 or high > 0:
        n = shape_of(array)[axis]
        # What is reflected must be whole periods, or the pattern would break.
        if with_edge:
            usable, skip = n // period * period, 0
        else:
            usable, skip = (n - 1) // (period - 1) * (period - 1), 1
        left, right = min(usable, low), min(usable, high)
        before = 2 * _part(array, axis, 0, 1) - np.flip(_part(array, axis, skip, skip + left), axis)
        behind = 2 * _part(array, axis, n - 1, n) - np.flip(
            _part(array, axis, n - skip - right, n - skip), axis
        )
        array = _surrounded(array, axis, before, behind)
        low, high = low - left, high - right
    return array


def _part(array: Any, axis: int, start: int, stop: int) -> Any:
    """Return a slice along an axis."""
    return array[(slice(None),) * axis + (slice(start, stop),)]


def _repeated(x: Any, axis: int, count: int) -> Any:
    shape = list(shape_of(x))
    shape[axis] = count
    return np.broadcast_to(x, shape)


def _surrounded(array: Any, axis: int, left: Any, right: Any) -> Any:
    dtype = dtype_of(array)
    return np.concatenate([cast(left, dtype), array, cast(right, dtype)], axis=axis)


def _doubled(line, widths, axis, options):
    low, high = widths
    line[:low] = 2 * line[low]
    if high:
        line[-high:] = options.get("last", 0) * line[-high - 1]


@pad_axes.def_samples
def pad_samples(rng):
    x = rng.normal(size=(3, 4))
    yield Sample(x, 2)
    yield Sample(x, (1, 2), constant_values=1.5)
    yield Sample(x, ((0, 1), (2, 0)), mode="constant", constant_values=((1.0, 2.0), (3.0, 4.0)))
    yield Sample(x, ((1,), (2,)))
    for mode in _BY_INDEX:
        yield Sample(x, ((1, 2), (0, 3)), mode=mode)
        yield Sample(x, ((7, 0), (0, 9)), mode=mode)
    yield Sample(rng.normal(size=(1, 2)), 3, mode="reflect")
    yield Sample(rng.normal(size=(0, 2)), ((1, 1), (0, 0)))
    yield Sample(np.array(1.5), 2)
    yield Sample(x, 0, mode="wrap")
    yield Sample(x, ((1, 2), (2, 0)), _doubled, last=3.0)
    yield Sample(rng.normal(size=2), 1, _doubled)
    for mode in _STATISTICS:
        ordered = mode != "mean"  # and complex numbers have no natural order
        yield Sample(x, ((1, 2), (0, 3)), mode=mode, complex=not ordered)
        yield Sample(x, 1, mode=mode, stat_length=2, complex=not ordered)
        yield Sample(
            x, ((1, 0), (2, 1)), mode=mode, stat_length=((1, 9), (2, 3)), complex=not ordered
        )
    yield Sample(x, ((1, 2), (0, 3)), mode="linear_ramp")
    yield Sample(x, 2, mode="linear_ramp", end_values=1.5)
    yield Sample(x, 1, mode="linear_ramp", end_values=(1.0, 2.0))
    yield Sample(x, 3, mode="linear_ramp", end_values=((1.0, 2.0), (3.0, 4.0)))
    yield Sample(
        x, 2, mode="linear_ramp", end_values=np.array([[1.0], [2.0]]), argnames="end_values"
    )
    yield Sample(
        x, 2, mode="constant", constant_values=rng.normal(size=2), argnames="constant_values"
    )
    for mode in ("reflect", "symmetric"):
        yield Sample(x, ((1, 2), (0, 3)), mode=mode, reflect_type="odd")
        yield Sample(x, ((7, 0), (11, 9)), mode=mode, reflect_type="odd")
        yield Sample(rng.normal(size=(1, 2)), 3, mode=mode, reflect_type="odd")
    yield Sample(rng.normal(size=(0, 2)), ((0, 0), (1, 1)), mode="mean")
