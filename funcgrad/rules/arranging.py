"""Arranging: elements picked, repeated, reversed or shifted along axes.

All linear. What picks elements by a static pattern of indices (`repeat`, `insert`, `numpy.pad` ...)
has as its transpose a sum over the places that each element went to; `sum_groups` computes such
sums, and `repeat` is in turn its transpose, so derivatives of any order stay within these two.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from funcgrad.core.batch import along, count_examples, full_batch, ndim_of, shift
from funcgrad.core.primitive import Sample, overrides, primitive
from funcgrad.core.zero import shape_of
from funcgrad.rules.families import linear
from funcgrad.rules.spelling import array_of

__all__ = ["untake"]

# Reversed, turned, shifted


@primitive(linear, overrides=np.flip, may_alias=True)
def flip(m, *, axis=None):
    """Reverse the order of the elements along axes."""
    return np.flip(m, axis)


@flip.def_vjp
def flip_vjp(primals, out, *, axis):
    def flip_pullback(out_bar):
        return np.flip(out_bar, axis)

    return flip_pullback


@flip.def_batch
def flip_batch(args, batched, *, axis):
    (m,) = args
    return flip.bind(m, axis=shift(axis, len(shape_of(m)) - 1))


@flip.def_samples
def flip_samples(rng):
    x = rng.normal(size=(2, 3, 2))
    yield Sample(x)
    yield Sample(x, 1)
    yield Sample(x, axis=(0, -1))
    yield Sample(np.float64(1.5))


@overrides(np.fliplr)
def fliplr(m):
    """Reverse the columns."""
    if len(shape_of(m)) < 2:
        raise ValueError("Input must be >= 2-d.")
    return flip.bind(m, axis=1)


@overrides(np.flipud)
def flipud(m):
    """Reverse the rows."""
    if not shape_of(m):
        raise ValueError("Input must be >= 1-d.")
    return flip.bind(m, axis=0)


@fliplr.def_samples
@flipud.def_samples
def flip_matrix_samples(rng):
    yield Sample(rng.normal(size=(2, 3)))
    yield Sample(rng.normal(size=(2, 3, 2)))


@primitive(linear, overrides=np.rot90, may_alias=True)
def rot90(m, *, k=1, axes=(0, 1)):
    """Turn by quarters in the plane of two axes."""
    return np.rot90(m, k, axes)


@rot90.def_vjp
def rot90_vjp(primals, out, *, k, axes):
    def rot90_pullback(out_bar):
        return np.rot90(out_bar, -k, axes)

    return rot90_pullback


@rot90.def_batch
def rot90_batch(args, batched, *, k, axes):
    (m,) = args
    return rot90.bind(m, k=k, axes=shift(tuple(axes), len(shape_of(m)) - 1))


@rot90.def_samples
def rot90_samples(rng):
    x = rng.normal(size=(2, 3))
    for k in (-1, 0, 1, 2, 7):
        yield Sample(x, k)
    yield Sample(rng.normal(size=(2, 3, 4)), k=1, axes=(-1, 0))


@primitive(linear, overrides=np.roll)
def roll(a, *, shift, axis=None):
    """Shift along axes; what falls off one end comes in at the other."""
    return np.roll(a, shift, axis)


@roll.def_vjp
def roll_vjp(primals, out, *, shift, axis):
    back = np.negative(shift)

    def roll_pullback(out_bar):
        return np.roll(out_bar, back, axis)

    return roll_pullback


@roll.def_batch
def roll_batch(args, batched, *, shift, axis):
    (a,) = args
    size, *shape = shape_of(a)
    if axis is None:
        rolled = roll.bind(np.reshape(a, (size, prod(shape))), shift=shift, axis=1)
        return np.reshape(rolled, (size, *shape))
    # An axis may come twice.
    axes = axis if np.iterable(axis) else (axis,)
    places = tuple([normalize_axis_index(place, len(shape)) + 1 for place in axes])
    return roll.bind(a, shift=shift, axis=places)


@roll.def_samples
def roll_samples(rng):
    x = rng.normal(size=(3, 4))
    yield Sample(x, 2)
    yield Sample(x, -1, axis=0)
    yield Sample(x, (1, 2), axis=(0, 1))
    yield Sample(x, (1, 2), axis=(1, 1))
    yield Sample(x, 5, axis=(0, -1))
    yield Sample(rng.normal(size=(0, 2)), 1, axis=1)


# Repeated


def repeat_args(args, params):
    """Say which axis; without one the elements are taken in C order."""
    (a,) = args
    if params["axis"] is None:
        return (np.ravel(a),), {**params, "axis": 0}
    a = array_of(a)
    axis = normalize_axis_index(params["axis"], len(shape_of(a)))
    return (a,), {**params, "axis": axis}


@primitive(linear, overrides=np.repeat, canonical=repeat_args)
def repeat(a, *, repeats, axis=None):
    """Repeat each element along an axis, all as often or each as often as an array says."""
    return np.repeat(a, repeats, axis)


@repeat.def_vjp
def repeat_vjp(primals, out, *, repeats, axis):
    (a,) = primals
    shape = shape_of(a)
    counts = np.asarray(repeats)
    if counts.size == 1:
        grouped = (*shape[: axis + 1], int(counts.reshape(())), *shape[axis + 1 :])

        def repeat_pullback(out_bar):
            return np.sum(np.reshape(out_bar, grouped), axis=axis + 1)
    else:

        def repeat_pullback(out_bar):
            return sum_groups.bind(out_bar, counts=counts, axis=axis)

    return repeat_pullback


along(repeat)


@repeat.def_samples
def repeat_samples(rng):
    x = rng.normal(size=(2, 3))
    yield Sample(x, 2)
    yield Sample(x, 3, axis=0)
    yield Sample(x, [2, 0, 1], axis=-1)
    yield Sample(x, np.array([2]), axis=1)
    yield Sample(x, [1, 0, 2, 0, 3, 1])
    yield Sample(x, 0, axis=1)
    yield Sample(x, [0, 0], axis=0)
    yield Sample(np.float64(1.5), 3)
    yield Sample(rng.normal(size=(0, 2)), 2, axis=0)


@primitive(linear)
def sum_groups(a, *, counts, axis):
    """Sum along an axis in groups of so many elements each: the transpose of `repeat`."""
    full = counts > 0
    starts = (np.cumsum(counts) - counts)[full]
    if full.all() and len(starts):
        return np.add.reduceat(a, starts, axis=axis)
    shape = shape_of(a)
    out = np.zeros_like(a, shape=(*shape[:axis], len(counts), *shape[axis + 1 :]))
    if len(starts):
        out[(slice(None),) * axis + (full,)] = np.add.reduceat(a, starts, axis=axis)
    return out


@sum_groups.def_vjp
def sum_groups_vjp(primals, out, *, counts, axis):
    def sum_groups_pullback(out_bar):
        return repeat.bind(out_bar, repeats=counts, axis=axis)

    return sum_groups_pullback


along(sum_groups)


@sum_groups.def_samples
def sum_groups_samples(rng):
    x = rng.normal(size=(2, 5))
    yield Sample(x, counts=np.array([1, 0, 4]), axis=1, fun=sum_groups)
    yield Sample(x, counts=np.array([1, 1]), axis=0, fun=sum_groups)


def untake(out_bar: Any, index: Any, n: int, axis: int) -> Any:
    """Sum what was taken by ``np.take(x, index, axis)`` back into `n` places.

    The index is static: sorting it costs less than adding element by element.
    """
    if len(index) > 1 and np.any(index[1:] < index[:-1]):
        order = np.argsort(index, kind="stable")
        out_bar = np.take(out_bar, order, axis=axis)
    return sum_groups.bind(out_bar, counts=np.bincount(index, minlength=n), axis=axis)


@primitive(linear, overrides=np.tile)
def tile(A, *, reps):
    """Repeat an array as a whole along axes."""
    return np.tile(A, reps)


@tile.def_vjp
def tile_vjp(primals, out, *, reps):
    (a,) = primals
    shape = shape_of(a)
    reps = tuple(reps) if np.ndim(reps) else (reps,)
    ndim = max(len(reps), len(shape))
    reps = (1,) * (ndim - len(reps)) + reps
    parts = (1,) * (ndim - len(shape)) + shape
    split = tuple(n for pair in zip(reps, parts, strict=True) for n in pair)
    axes = tuple(range(0, 2 * ndim, 2))

    def tile_pullback(out_bar):
        return np.reshape(np.sum(np.reshape(out_bar, split), axis=axes), shape)

    return tile_pullback


@tile.def_batch
def tile_batch(args, batched, *, reps):
    (a,) = args
    size, *shape = shape_of(a)
    reps = tuple(reps) if np.ndim(reps) else (reps,)
    ndim = max(len(reps), len(shape))
    a = np.reshape(a, (size, *(1,) * (ndim - len(shape)), *shape))
    return tile.bind(a, reps=(1,) * (1 + ndim - len(reps)) + reps)


@tile.def_samples
def tile_samples(rng):
    x = rng.normal(size=(2, 3))
    yield Sample(x, 2)
    yield Sample(x, (2, 1, 3))
    yield Sample(x, (0, 1))
    yield Sample(x, np.array([3, 2]))
    yield Sample(np.float64(1.5), (2, 2))
    yield Sample(x, 1)


# Inserted, deleted


def delete_args(args, params):
    """Say which axis; without one the elements are taken in C order."""
    arr = array_of(args[0])
    axis = params["axis"]
    if axis is None:
        if len(shape_of(arr)) != 1:
            arr = np.ravel(arr)
        axis = 0
    return (arr,), {**params, "axis": normalize_axis_index(axis, len(shape_of(arr)))}


@primitive(linear, overrides=np.delete, canonical=delete_args)
def delete(arr, *, obj, axis=None):
    """Leave out elements along an axis."""
    return np.delete(arr, obj, axis)


@delete.def_vjp
def delete_vjp(primals, out, *, obj, axis):
    n = shape_of(primals[0])[axis]
    kept = np.delete(np.arange(n), obj)

    def delete_pullback(out_bar):
        return untake(out_bar, kept, n, axis)

    return delete_pullback


along(delete)


@delete.def_samples
def delete_samples(rng):
    x = rng.normal(size=(3, 4))
    yield Sample(x, 1)
    yield Sample(x, -1, axis=0)
    yield Sample(x, [0, 2, 2], axis=1)
    yield Sample(x, slice(None, None, 2), axis=1)
    yield Sample(x, np.array([True, False, True]), axis=0)
    yield Sample(x, [], axis=0)
    yield Sample(x, [0, 1, 2], axis=0)


@primitive(linear, name="insert")
def insert_into(arr, values, *, obj, axis):
    """Put elements in between, along an axis."""
    return np.insert(arr, obj, values, axis)


@insert_into.def_vjp
def insert_into_vjp(primals, out, *, obj, axis):
    arr, values = primals
    n = shape_of(arr)[axis]
    shape, full = shape_of(values), shape_of(out)
    added = np.zeros(full[axis] - n, bool)
    old = np.flatnonzero(np.insert(np.ones(n, bool), obj, added))

    def arr_pullback(out_bar):
        return np.take(out_bar, old, axis=axis)

    def values_pullback(out_bar):
        # Numbers in the place of the values show where NumPy puts each, however it broadcasts.
        size = int(np.prod(shape))
        numbers = np.arange(size).reshape(shape)
        before = np.full((*full[:axis], n, *full[axis + 1 :]), -1)
        source = np.insert(before, obj, numbers, axis).ravel()
        places = np.flatnonzero(source >= 0)
        picked = np.take(np.ravel(out_bar), places)
        return np.reshape(untake(picked, source[places], size, 0), shape)

    return arr_pullback, values_pullback


@insert_into.def_batch
def insert_into_batch(args, batched, *, obj, axis):
    arr, values = args
    n, own = map(ndim_of, args, batched)
    lead, shape = shape_of(values)[: batched[1]], shape_of(values)[batched[1] :]
    if own < n:
        values = np.reshape(values, (*lead, *(1,) * (n - own), *shape))
    if not isinstance(obj, slice) and np.ndim(obj) == 0:
        # NumPy takes the values for one place as those for several, but for the order of axes.
        values = np.moveaxis(values, batched[1], axis + batched[1])
        obj = [obj]
    arr = full_batch(arr, batched[0], count_examples(args, batched))
    return insert_into.bind(arr, values, obj=obj, axis=axis + 1)


@insert_into.def_call(np.insert)
def insert(arr, obj, values, axis=None):
    """Put elements in between, along an axis."""
    arr, values = array_of(arr), array_of(values)
    if axis is None:
        if len(shape_of(arr)) != 1:
            arr = np.ravel(arr)
        axis = 0
    axis = normalize_axis_index(axis, len(shape_of(arr)))
    if isinstance(obj, np.ndarray | list):
        obj = obj.copy()  # the caller may write to it
    return insert_into.bind(arr, values, obj=obj, axis=axis)


@insert_into.def_samples
def insert_samples(rng):
    x = rng.normal(size=(2, 3))
    yield Sample(x, 1, np.float64(1.5))
    yield Sample(x, 1, rng.normal(size=2), axis=1)
    yield Sample(x, [1], rng.normal(size=(2, 1)), axis=1)
    yield Sample(x, [2, 0, 2], rng.normal(size=(2, 3)), axis=-1)
    yield Sample(x, slice(0, 2), np.float64(0.5), axis=1)
    yield Sample(x, -1, rng.normal(size=(2, 3)), axis=0)
    yield Sample(x, [], rng.normal(size=(2, 0)), axis=1)


@overrides(np.append)
def append(arr, values, axis=None):
    """Put an array behind another."""
    arr, values = array_of(arr), array_of(values)
    if axis is None:
        if len(shape_of(arr)) != 1:
            arr = np.ravel(arr)
        values = np.ravel(values)
        axis = len(shape_of(arr)) - 1
    return np.concatenate((arr, values), axis=axis)


@append.def_samples
def append_samples(rng):
    x = rng.normal(size=(2, 3))
    yield Sample(x, rng.normal(size=(1, 3)), axis=0)
    yield Sample(x, np.float64(1.5))
    yield Sample(x, [1.0, 2.0])
