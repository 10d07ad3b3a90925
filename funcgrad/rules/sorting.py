"""Sorting: a permutation that depends on the values, and is constant between them.

Equal elements keep their order (the permutation is the stable one), so each has a place of its
own and the derivative follows it there.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from funcgrad.core.batch import along, broadcasting, loop, shift, together
from funcgrad.core.dispatch import of_shapes
from funcgrad.core.level import any_of, detached
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.families import linear
from funcgrad.rules.gathering import gather, put_back, taken
from funcgrad.rules.spelling import array_of, as_array

__all__ = ["stable_order"]

# Permutations: they have no derivative


@primitive(overrides=np.argsort)
def argsort(a, *, axis=-1, kind=None, order=None, stable=None):
    """The permutation that sorts along `axis`."""
    return np.argsort(a, axis=axis, kind=kind, order=order, stable=stable)


argsort.not_differentiable("positions are piecewise constant")
along(argsort)


@argsort.def_samples
def argsort_samples(rng):
    x = rng.normal(size=(3, 4))
    yield Sample(x)
    yield Sample(x, 0, "stable")
    yield Sample(x, axis=None)
    yield Sample(np.array([2.0, 1.0, 2.0, 1.0]), stable=True)


@primitive()
def stable_order(a, *, axis):
    """The permutation that sorts along `axis` and keeps equal elements in order."""
    # NumPy's other sort is up to ten times as fast, and as good unless elements are equal.
    order = np.argsort(a, axis=axis)
    found = np.moveaxis(np.take_along_axis(a, order, axis), axis, 0)
    if np.any(found[1:] == found[:-1]) or np.any(np.isnan(found[-1:])):
        return np.argsort(a, axis=axis, kind="stable")
    return order


stable_order.not_differentiable("positions are piecewise constant")
along(stable_order)


@stable_order.def_samples
def stable_order_samples(rng):
    yield Sample(rng.normal(size=(3, 4)), fun=stable_order, axis=1)
    yield Sample(np.array([2.0, 1.0, 2.0, 1.0]), fun=stable_order, axis=0)
    yield Sample(np.array([np.nan, 1.0, np.nan, -2.0]), fun=stable_order, axis=0)


@primitive(overrides=np.argpartition)
def argpartition(a, *, kth, axis=-1, kind="introselect", order=None):
    """The permutation that puts the `kth` element along `axis` where it is when sorted."""
    return np.argpartition(a, kth, axis=axis, kind=kind, order=order)


argpartition.not_differentiable("positions are piecewise constant")
along(argpartition)


@argpartition.def_samples
def argpartition_samples(rng):
    x = rng.normal(size=(3, 4))
    yield Sample(x, 1)
    yield Sample(x, [0, 2], axis=0)
    yield Sample(x, 5, None)


@primitive()
def lexsort(*keys, axis):
    """The permutation that sorts by several keys, of which the last counts most."""
    return np.lexsort(keys, axis)


lexsort.not_differentiable("positions are piecewise constant")


@lexsort.def_call(np.lexsort)
def _traced_lexsort(keys, axis=-1):
    keys = [array_of(key) for key in keys]
    if not keys:
        return np.lexsort((), axis)  # raises
    return lexsort.bind(*keys, axis=axis)


@lexsort.def_batch
def lexsort_batch(args, batched, *, axis):
    keys = together(args, batched)
    return lexsort.bind(*keys, axis=shift(axis, len(shape_of(keys[0])) - 1))


@lexsort.def_samples
def lexsort_samples(rng):
    x = rng.normal(size=(2, 4))
    yield Sample((x[0], x[1]))
    yield Sample((x[0], np.array([1, 0, 1, 0])))
    yield Sample(x)
    yield Sample((x, x[::-1]), 0)


# Sorting, and sorting in part


def _flat_or_along(args, params):
    """Sort the flattened array along its axis where NumPy does that for an axis of None."""
    (a,) = args
    a = a if hasattr(a, "shape") else as_array(a)
    if params["axis"] is None:
        a, params["axis"] = np.ravel(a), 0
    params["axis"] = normalize_axis_index(params["axis"], len(shape_of(a)))
    return (a,), params


def _moves(made, places_of):
    """Give rules to a function that moves elements along an axis: ``out = a[places]``."""

    @made.def_jvp
    def moved_jvp(primals, tangents, out, *, axis, **params):
        places = places_of(primals[0], out, axis, **params)
        return taken(tangents[0], places, axis)

    @made.def_vjp
    def moved_vjp(primals, out, *, axis, **params):
        (a,) = primals
        size = shape_of(a)[axis]
        places = places_of(a, out, axis, **params)

        def moved_pullback(out_bar):
            return put_back(out_bar, places, axis, size, unique=True)

        return moved_pullback

    along(made)


@primitive(overrides=np.sort, canonical=_flat_or_along)
def sort(a, *, axis=-1, kind=None, order=None, stable=None):
    """The elements of `a` in increasing order along `axis`."""
    return np.sort(a, axis=axis, kind=kind, order=order, stable=stable)


def _sorted_places(a, out, axis, **params):
    return stable_order.bind(detached(a), axis=axis)


_moves(sort, _sorted_places)


@sort.def_samples
def sort_samples(rng):
    x = rng.normal(size=(3, 4))
    yield Sample(x)
    yield Sample(x, 0)
    yield Sample(x, axis=None)
    yield Sample(x, axis=-2, kind="stable")
    yield Sample(x, axis=1, stable=True)
    yield Sample(rng.normal(size=(0, 2)), axis=0)
    yield Sample(rng.normal(size=()), axis=None)
    yield Sample(np.array([2.0, 1.0, 2.0, 1.0]), kinks=True)


@primitive(overrides=np.partition, canonical=_flat_or_along)
def partition(a, *, kth, axis=-1, kind="introselect", order=None):
    """The elements of `a` along `axis`, with the `kth` where it is when sorted."""
    return np.partition(a, kth, axis=axis, kind=kind, order=order)


def _partitioned_places(a, out, axis, *, kth, kind, order):
    """Return where each element of `out` comes from: that of the same rank.

    `numpy.argpartition` need not move the elements beside the `kth` as `numpy.partition` does, but
    usually it does.
    """
    a, out = detached(a), detached(out)
    places = np.argpartition(a, kth, axis=axis, kind=kind)
    if not any_of(np.not_equal(taken(a, places, axis), out)):
        return places
    origin = stable_order.bind(a, axis=axis)
    rank = np.argsort(stable_order.bind(out, axis=axis), axis=axis)
    return taken(origin, rank, axis)


_moves(partition, _partitioned_places)


@partition.def_samples
def partition_samples(rng):
    x = rng.normal(size=(3, 5))
    yield Sample(x, 2)
    yield Sample(x, -1, 0)
    yield Sample(x, [0, 3])
    yield Sample(x, 7, axis=None)
    yield Sample(x, (1, 2), axis=-2)
    yield Sample(rng.normal(size=1), 0)
    yield Sample(np.array([2.0, 1.0, 2.0, 1.0, 2.0]), 2, kinks=True)


@primitive(linear)
def complex_of(x):
    """Numbers as complex ones, of the precision that `numpy.sort_complex` gives them."""
    char = np.asarray(x).dtype.char
    return np.asarray(x).astype("F" if char in "bhBH" else "G" if char == "g" else "D")


@complex_of.def_vjp
def complex_of_vjp(primals, out):
    def complex_of_pullback(out_bar):
        return out_bar

    return complex_of_pullback


broadcasting(complex_of)


@complex_of.def_call(np.sort_complex)
def sort_complex(a):
    """Elements by their real parts, then by their imaginary parts, as complex numbers."""
    made = np.sort(as_array(a))
    return made if dtype_of(made).kind == "c" else complex_of.bind(made)


@complex_of.def_samples
def complex_of_samples(rng):
    yield Sample(rng.normal(size=(2, 3)))
    yield Sample(rng.normal(size=3) + 1j * rng.normal(size=3))


# Searching in what is sorted: positions, too


@primitive()
def searchsorted(a, v, *, side, sorter):
    """Where to insert `v` into the sorted sequence `a`."""
    return np.searchsorted(a, v, side, sorter)


searchsorted.not_differentiable("positions are piecewise constant")


@searchsorted.def_call(np.searchsorted)
def _traced_searchsorted(a, v, side="left", sorter=None):
    a = array_of(a)
    if sorter is not None:
        if len(shape_of(a)) != 1 or np.shape(sorter) != shape_of(a):
            of_shapes(np.searchsorted, a, v, side, sorter)  # raises
        a, sorter = gather.bind(a, array_of(sorter)), None
    return searchsorted.bind(a, array_of(v), side=side, sorter=sorter)


@searchsorted.def_batch
def searchsorted_batch(args, batched, **params):
    # One sorted sequence for all examples needs no loop.
    if batched[0]:
        return loop(searchsorted.bind, args, batched, params)
    return searchsorted.bind(*args, **params)


@searchsorted.def_samples
def searchsorted_samples(rng):
    a = np.sort(rng.normal(size=5))
    yield Sample(a, rng.normal(size=(2, 3)))
    yield Sample(a, rng.normal(size=3), "right")
    yield Sample(a, a, side="right")
    yield Sample(a[[3, 1, 4, 0, 2]], rng.normal(size=2), sorter=[3, 1, 4, 0, 2])
    yield Sample(a, np.float64(0.1))


@primitive()
def digitize(x, bins, *, right):
    """The number of the bin that each element is in."""
    return np.digitize(x, bins, right)


digitize.not_differentiable("positions are piecewise constant")


@digitize.def_call(np.digitize)
def _traced_digitize(x, bins, right=False):
    return digitize.bind(array_of(x), array_of(bins), right=right)


@digitize.def_batch
def digitize_batch(args, batched, **params):
    return (
        loop(digitize.bind, args, batched, params) if batched[1] else digitize.bind(*args, **params)
    )


@digitize.def_samples
def digitize_samples(rng):
    yield Sample(rng.normal(size=(2, 3)), np.array([-1.0, 0.0, 1.0]))
    yield Sample(rng.normal(size=3), np.array([1.0, 0.0, -1.0]), right=True)
    yield Sample(rng.normal(size=3), [0, 1])
