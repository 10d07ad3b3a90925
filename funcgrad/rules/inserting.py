"""Inserting and deleting: elements put between those of an array along an axis, or left out.

Both are linear, with places that are static. From places that differ from example to example come
indices, to take elements by: to insert, the places are sorted together with those of the elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from funcgrad.core.batch import along, count_examples, full_batch, ndim_of
from funcgrad.core.dispatch import look_at_all
from funcgrad.core.level import TracerBase, concrete, detached, holds_anywhere, looked_at
from funcgrad.core.primitive import Sample, overrides, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.arranging import untake
from funcgrad.rules.families import linear
from funcgrad.rules.spelling import array_of, joined, refuse_batched

__all__: list[str] = []


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


@delete.def_call(np.delete)
def traced_delete(arr, obj, axis=None):
    """Leave out elements along an axis, also one that differs from example to example."""
    obj = obj if isinstance(obj, slice) else detached(joined(obj))
    if shape_of(obj) or dtype_of(obj).kind not in "iu":
        refuse_batched(
            obj,
            "numpy.delete leaves out as many elements as an argument names",
            "leave them out one by one, each by one integer",
        )
        obj = looked_at(obj, "which elements are left out")
    if not isinstance(obj, TracerBase):
        return delete(arr, obj, axis)
    (arr,), params = delete_args((arr,), {"axis": axis})
    axis = params["axis"]
    n = shape_of(arr)[axis]
    place = _counted_from_front(obj, n, n - 1, axis)
    left = np.arange(n - 1)
    return look_at_all(np.take, arr, left + np.greater_equal(left, place), axis)


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
    obj = obj if isinstance(obj, slice) else detached(joined(obj))
    if isinstance(obj, TracerBase):
        return _inserted(arr, obj, values, axis)
    if isinstance(obj, np.ndarray | list):
        obj = obj.copy()  # the caller may write to it
    return insert_into.bind(arr, values, obj=obj, axis=axis)


def _inserted(arr: Any, obj: Any, values: Any, axis: int) -> Any:
    """Insert before places that differ from example to example, by sorting all by their places."""
    shape = shape_of(arr)
    n = shape[axis]
    if dtype_of(obj).kind == "b":
        refuse_batched(obj, "numpy.insert inserts where a mask is true", "use np.where(mask, x, y)")
        return insert_into.bind(arr, values, obj=looked_at(obj, "the places"), axis=axis)
    places = np.reshape(_counted_from_front(obj, n, n, axis), (-1,))
    values = np.reshape(values, (1,) * (len(shape) - len(shape_of(values))) + shape_of(values))
    if not shape_of(obj):
        # NumPy takes the values for one place as those for several, but for the order of axes.
        values = np.moveaxis(values, 0, axis)
    count = shape_of(places)[0]
    if count == 1:  # all of them go there
        count = shape_of(values)[axis]
        places = np.broadcast_to(places, (count,))
    values = np.broadcast_to(values, (*shape[:axis], count, *shape[axis + 1 :]))
    order = np.argsort(np.concatenate([places, np.arange(n)]), kind="stable")
    both = np.concatenate([values.astype(dtype_of(arr)), arr], axis=axis)
    return look_at_all(np.take, both, order, axis)


def _counted_from_front(obj: Any, n: int, last: int, axis: int) -> Any:
    """Return places from 0 to `last`; raise if one is out of bounds."""
    outside = np.logical_or(np.less(obj, -n), np.greater(obj, last))
    if holds_anywhere(outside, f"whether places along axis {axis} are within bounds"):
        outside = np.asarray(concrete(obj))[np.asarray(concrete(outside))]
        raise IndexError(f"index {outside[0]} is out of bounds for axis {axis} with size {n}")
    obj = obj.astype(np.intp)
    return np.where(np.less(obj, 0), np.add(obj, n), obj)


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
