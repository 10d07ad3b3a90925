"""Joining: arrays put side by side, and taken apart again.

`concatenate` and `split_at` are transposes of each other, as are `stack` and `unstack`. A part's
pullback only slices the cotangent, which costs nothing; parts that are constant get none. NumPy's
other ways to join (`vstack`, `column_stack`, ...) are written with these, as NumPy writes them.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from funcgrad.core.batch import along, count_examples, ndim_of, shift, together
from funcgrad.core.level import TracerBase, concrete, looked_at
from funcgrad.core.primitive import Sample, overrides, primitive, store
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.families import linear
from funcgrad.rules.spelling import array_of, stand_in

__all__: list[str] = []


def _parts(arrays: Any) -> list[Any]:
    """Return the arrays to join; Python numbers stay so, for NumPy to judge their dtype."""
    if isinstance(arrays, TracerBase):
        return list(unstack(arrays)) if shape_of(arrays) else [arrays]
    return [array_of(part) if isinstance(part, list | tuple) else part for part in arrays]


@primitive(linear, name="concatenate")
def joined(*arrays, axis, dtype=None, casting="same_kind"):
    """Join along an axis; along none, the elements of all in C order."""
    return np.concatenate(arrays, axis, dtype=dtype, casting=casting)


@joined.def_vjp
def joined_vjp(primals, out, *, axis, dtype, casting):
    if axis is None:
        shapes = [shape_of(part) for part in primals]
        stops = itertools.accumulate(math.prod(shape) for shape in shapes)
        start, pullbacks = 0, []
        for shape, stop in zip(shapes, stops, strict=True):
            pullbacks.append(_flat_pullback(start, stop, shape))
            start = stop
        return tuple(pullbacks)
    lead = (slice(None),) * (axis % len(shape_of(out)))
    start, pullbacks = 0, []
    for part in primals:
        stop = start + shape_of(part)[axis]
        pullbacks.append(_slice_pullback((*lead, slice(start, stop))))
        start = stop
    return tuple(pullbacks)


def _slice_pullback(index):
    def concatenate_pullback(out_bar):
        return out_bar[index]

    return concatenate_pullback


def _flat_pullback(start, stop, shape):
    def concatenate_pullback(out_bar):
        return np.reshape(out_bar[start:stop], shape)

    return concatenate_pullback


@joined.def_batch
def joined_batch(args, batched, *, axis, dtype, casting):
    size = count_examples(args, batched)
    if axis is None:
        numbers = [isinstance(concrete(x), int | float | complex) for x in args]
        if any(numbers) and dtype is None:
            # Python numbers do not make float32 wider, but arrays of them would.
            dtype = np.result_type(
                *(
                    concrete(x) if number else dtype_of(x)
                    for x, number in zip(args, numbers, strict=True)
                )
            )
            casting = "unsafe"
    else:
        ndim = next(filter(None, map(ndim_of, args, batched)), 0)
        axis = shift(axis, ndim)
    parts = together(args, batched)
    if axis is None:
        axis = 1
        parts = [np.reshape(part, (size, math.prod(shape_of(part)[1:]))) for part in parts]
    return joined.bind(*parts, axis=axis, dtype=dtype, casting=casting)


@joined.def_call(np.concatenate)
def concatenate(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """Join arrays along an axis that they have."""
    made = joined.bind(*_parts(arrays), axis=axis, dtype=dtype, casting=casting)
    return made if out is None else store(made, out)


@joined.def_samples
def concatenate_samples(rng):
    x, y = rng.normal(size=(2, 3)), rng.normal(size=(2, 1))
    yield Sample([x, y], axis=-1)
    yield Sample((x, x, rng.normal(size=(0, 3))))
    yield Sample([x, y], axis=None)
    yield Sample([np.float64(1.5), y], axis=None)
    yield Sample([x, [[1.0, 2.0, 3.0]]], 0)
    yield Sample([x], dtype=np.float64)
    yield Sample(rng.normal(size=(2, 3, 2)), 1)


@primitive(linear, name="stack")
def stacked(*arrays, axis, dtype=None, casting="same_kind"):
    """Join along a new axis."""
    return np.stack(arrays, axis, dtype=dtype, casting=casting)


@stacked.def_vjp
def stacked_vjp(primals, out, *, axis, dtype, casting):
    lead = (slice(None),) * (axis % len(shape_of(out)))
    return tuple(_slice_pullback((*lead, place)) for place in range(len(primals)))


@stacked.def_batch
def stacked_batch(args, batched, *, axis, **params):
    parts = together(args, batched)
    return stacked.bind(*parts, axis=shift(axis, len(shape_of(parts[0]))), **params)


@stacked.def_call(np.stack)
def stack(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """Join arrays along a new axis."""
    made = stacked.bind(*_parts(arrays), axis=axis, dtype=dtype, casting=casting)
    return made if out is None else store(made, out)


@stacked.def_samples
def stack_samples(rng):
    x, y = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    for axis in (0, 1, -1):
        yield Sample([x, y], axis)
    yield Sample([np.float64(1.5), 2.0, np.float64(0.5)])
    yield Sample((x, np.ones((2, 3), int)))
    yield Sample(rng.normal(size=(2, 0)), axis=1)


@overrides(np.vstack)
def vstack(tup, *, dtype=None, casting="same_kind"):
    """Put arrays below each other."""
    rows = [np.atleast_2d(part) for part in _parts(tup)]
    return concatenate(rows, 0, dtype=dtype, casting=casting)


@overrides(np.hstack)
def hstack(tup, *, dtype=None, casting="same_kind"):
    """Put arrays beside each other."""
    parts = [np.atleast_1d(part) for part in _parts(tup)]
    axis = 0 if parts and len(shape_of(parts[0])) == 1 else 1
    return concatenate(parts, axis, dtype=dtype, casting=casting)


@overrides(np.dstack)
def dstack(tup):
    """Put arrays behind each other, along a third axis."""
    return concatenate([np.atleast_3d(part) for part in _parts(tup)], 2)


@overrides(np.column_stack)
def column_stack(tup):
    """Put arrays beside each other, those of one axis as columns."""
    columns = [np.atleast_2d(part).T if np.ndim(part) < 2 else part for part in _parts(tup)]
    return concatenate(columns, 1)


@vstack.def_samples
@hstack.def_samples
@dstack.def_samples
@column_stack.def_samples
def stack_alike_samples(rng):
    yield Sample([rng.normal(size=3), rng.normal(size=3)])
    yield Sample((rng.normal(size=(2, 3)), rng.normal(size=(2, 3))))
    yield Sample([np.float64(1.5), np.float64(0.5)])
    yield Sample([rng.normal(size=3), [1.0, 2.0, 3.0]])


# Blocks


@primitive(linear, name="block")
def block_of(*arrays, layout):
    """Assemble an array of blocks; `layout` is the nested list, with numbers for the arrays."""
    return np.block(_filled(layout, arrays))


def _filled(layout: Any, arrays: Any) -> Any:
    if isinstance(layout, list):
        return [_filled(item, arrays) for item in layout]
    return arrays[layout]


def _numbered(nested: Any, arrays: list[Any]) -> Any:
    if isinstance(nested, list):
        return [_numbered(item, arrays) for item in nested]
    arrays.append(nested)
    return len(arrays) - 1


def _depth(layout: Any) -> int:
    return 1 + _depth(layout[0]) if isinstance(layout, list) else 0


@block_of.def_vjp
def block_of_vjp(primals, out, *, layout):
    ndim = len(shape_of(out))
    shapes = [shape_of(array) for array in primals]
    shapes = [(1,) * (ndim - len(shape)) + shape for shape in shapes]
    starts = [[0] * ndim for _ in primals]

    def place(part: Any, axis: int) -> tuple[list[int], list[int]]:
        """Find where the blocks of `part` begin; return its shape and the blocks in it."""
        if not isinstance(part, list):
            return list(shapes[part]), [part]
        total, blocks = 0, []
        for item in part:
            size, inner = place(item, axis + 1)
            for block in inner:
                starts[block][axis] += total
            total += size[axis]
            blocks += inner
        size[axis] = total
        return size, blocks

    place(layout, ndim - _depth(layout))
    return tuple(
        _block_pullback(
            tuple(slice(low, low + n) for low, n in zip(start, shape, strict=True)),
            shape_of(array),
        )
        for start, shape, array in zip(starts, shapes, primals, strict=True)
    )


def _block_pullback(index, shape):
    def block_pullback(out_bar):
        return np.reshape(out_bar[index], shape)

    return block_pullback


@block_of.def_batch
def block_of_batch(args, batched, *, layout):
    size = count_examples(args, batched)
    rank = max(_depth(layout), *map(ndim_of, args, batched))
    parts = []
    for x, is_batched in zip(args, batched, strict=True):
        shape = shape_of(x)[is_batched:]
        lead = (size if is_batched else 1,) + (1,) * (rank - len(shape))
        part = np.reshape(x, (*lead, *shape))
        parts.append(np.broadcast_to(part, (size, *shape_of(part)[1:])))
    return block_of.bind(*parts, layout=layout)


@block_of.def_call(np.block)
def block(arrays):
    """Assemble an array of nested lists of blocks."""
    flat: list[Any] = []
    layout = _numbered(arrays, flat)
    return block_of.bind(*flat, layout=layout)


@block_of.def_samples
def block_samples(rng):
    a, b = rng.normal(size=(2, 2)), rng.normal(size=(2, 3))
    yield Sample([[a, b], [b, a]])
    yield Sample([a, b])
    yield Sample([[a, np.zeros((2, 1))], [np.float64(1.5), np.ones((1, 2))]])
    yield Sample([rng.normal(size=2), np.float64(1.5), 2.0])
    yield Sample([[[a], [a]], [[b[:, :2]], [a]]])
    yield Sample(a)


# Apart


@primitive(linear, may_alias=True)
def split_at(ary, *, stops, axis):
    """Cut along an axis into views that end at `stops`, the last at the end of the axis."""
    lead = (slice(None),) * axis
    starts = (0, *stops[:-1])
    return tuple(
        ary[(*lead, slice(start, stop))] for start, stop in zip(starts, stops, strict=True)
    )


@split_at.def_vjp
def split_at_vjp(primals, out, *, stops, axis):
    shapes, dtype = [shape_of(part) for part in out], dtype_of(primals[0])

    def split_pullback(out_bars):
        return np.concatenate(_filled_up(out_bars, shapes, dtype), axis=axis)

    return split_pullback


def _filled_up(bars: Any, shapes: Any, dtype: Any) -> list[Any]:
    """Write out the zeros among the cotangents of several results."""
    return [
        np.zeros(shape, dtype) if bar is None else bar
        for bar, shape in zip(bars, shapes, strict=True)
    ]


def _cut(split: Any, ary: Any, places: Any, axis: int, *args: Any) -> list[Any]:
    """Split as NumPy's function `split` does, which is asked for the lengths and for errors."""
    shape = shape_of(ary)
    places = looked_at(places, "where to split")
    parts = split(stand_in(shape), places, *args)
    axis = normalize_axis_index(axis, len(shape))
    stops = tuple(itertools.accumulate(part.shape[axis] for part in parts))
    if stops[-1] == shape[axis]:
        return list(split_at.bind(ary, stops=stops, axis=axis))
    # The places go backwards somewhere, and parts overlap.
    lead = (slice(None),) * axis
    places = [int(place) for place in places]
    starts, ends = [0, *places], [*places, shape[axis]]
    return [ary[(*lead, slice(start, end))] for start, end in zip(starts, ends, strict=True)]


along(split_at)


@split_at.def_samples
def split_at_samples(rng):
    yield Sample(rng.normal(size=(2, 5)), stops=(2, 2, 5), axis=1, fun=split_at)


@overrides(np.split)
def split(ary, indices_or_sections, axis=0):
    """Cut into equal parts, or before given places."""
    return _cut(np.split, ary, indices_or_sections, axis, axis)


@overrides(np.array_split)
def array_split(ary, indices_or_sections, axis=0):
    """Cut into parts of about equal length, or before given places."""
    return _cut(np.array_split, ary, indices_or_sections, axis, axis)


@overrides(np.hsplit)
def hsplit(ary, indices_or_sections):
    """Cut into parts beside each other."""
    axis = 1 if len(shape_of(ary)) > 1 else 0
    return _cut(np.hsplit, ary, indices_or_sections, axis)


@overrides(np.vsplit)
def vsplit(ary, indices_or_sections):
    """Cut into parts below each other."""
    return _cut(np.vsplit, ary, indices_or_sections, 0)


@overrides(np.dsplit)
def dsplit(ary, indices_or_sections):
    """Cut into parts along the third axis."""
    return _cut(np.dsplit, ary, indices_or_sections, 2)


@split.def_samples
@array_split.def_samples
def split_samples(rng):
    x = rng.normal(size=(4, 6))
    yield Sample(x, 2)
    yield Sample(x, 3, axis=-1)
    yield Sample(x, [1, 4], 1)
    yield Sample(x, [2, -1], axis=1)
    yield Sample(x, [3, 1], axis=0)
    yield Sample(x, [2, 9], axis=0)


@hsplit.def_samples
@vsplit.def_samples
@dsplit.def_samples
def split_alike_samples(rng):
    yield Sample(rng.normal(size=(2, 4, 6)), 2)
    yield Sample(rng.normal(size=(2, 4, 6)), [1, 2])


@primitive(linear, overrides=np.unstack, may_alias=True)
def unstack(x, *, axis=0):
    """Take apart along an axis, which goes away."""
    return np.unstack(x, axis=axis)


@unstack.def_vjp
def unstack_vjp(primals, out, *, axis):
    shape, dtype = shape_of(primals[0]), dtype_of(primals[0])
    axis %= len(shape)
    inner = (*shape[:axis], *shape[axis + 1 :])

    def unstack_pullback(out_bars):
        return np.stack(_filled_up(out_bars, [inner] * len(out_bars), dtype), axis)

    return unstack_pullback


along(unstack)


@unstack.def_samples
def unstack_samples(rng):
    yield Sample(rng.normal(size=(2, 3)), fun=unstack)
    yield Sample(rng.normal(size=(2, 3)), axis=-1, fun=unstack)
    yield Sample(rng.normal(size=3), fun=unstack)
