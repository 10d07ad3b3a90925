"""Arranging: elements picked, repeated, reversed or shifted along axes.

All linear. What picks elements by a static pattern of indices (`repeat`, `numpy.insert`,
`numpy.pad` ...) has as its transpose a sum over the places that each element went to; `sum_groups`
computes such sums, and `repeat` is in turn its transpose, so derivatives of any order stay within
these two.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from funcgrad.core.batch import along, shift, try_one
from funcgrad.core.dispatch import look_at_all
from funcgrad.core.level import detached
from funcgrad.core.primitive import Sample, overrides, primitive
from funcgrad.core.zero import shape_of
from funcgrad.rules.families import linear
from funcgrad.rules.spelling import array_of, holds_tracer, joined, refuse_batched

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
    if not places:
        try_one(roll, args, batched, {"shift": shift, "axis": axis})
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


@roll.def_call(np.roll)
def traced_roll(a, shift, axis=None):
    """Shift along axes, also by a number of places that differs from example to example."""
    shift = detached(joined(shift))
    if not holds_tracer(shift):
        return roll(a, shift, axis)
    a = array_of(a)
    if axis is None:
        flat = np.reshape(a, (prod(shape_of(a)),))
        return np.reshape(_rolled(flat, shift, 0), shape_of(a))
    pairs = np.broadcast_arrays(shift, axis)
    if len(shape_of(pairs[0])) > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    shifts, axes = (np.reshape(part, (-1,)) for part in pairs)
    for number, place in enumerate(axes):
        a = _rolled(a, shifts[number], normalize_axis_index(int(place), len(shape_of(a))))
    return a


def _rolled(a: Any, shift: Any, axis: int) -> Any:
    n = shape_of(a)[axis]
    if not n:
        return a
    return look_at_all(np.take, a, (np.arange(n) - shift.astype(np.intp)) % n, axis)


# Repeated


def _same_for_all(value: Any, what: str) -> Any:
    """Return a static argument without a trace; raise if the examples would differ in shape."""
    value = detached(joined(value))
    refuse_batched(value, what, "repeat equally often in all examples")
    return value


def repeat_args(args, params):
    """Say which axis; without one the elements are taken in C order."""
    (a,) = args
    params["repeats"] = _same_for_all(
        params["repeats"], "numpy.repeat makes an array as long as an argument says"
    )
    if params["axis"] is None:
        return (np.ravel(a),), {**params, "axis": 0}
    a = array_of(a)
    a = a if shape_of(a) else np.reshape(a, (1,))
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
