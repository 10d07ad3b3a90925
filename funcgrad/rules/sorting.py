"""Sorting: a permutation that depends on the values, and is constant between them.

Equal elements keep their order (the permutation is the stable one), so each has a place of its
own and the derivative follows it there.
"""

from __future__ import annotations

import numpy as np

from funcgrad.core.level import concrete
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import shape_of

__all__: list[str] = []


@primitive(overrides=(np.sort,))
def sort(a, *, axis=-1, kind=None, order=None, stable=None):
    """The elements of `a` in increasing order along `axis`."""
    return np.sort(a, axis=axis, kind=kind, order=order, stable=stable)


@sort.def_jvp
def sort_jvp(primals, tangents, out, *, axis, kind, order, stable):
    (a,), (a_dot,) = primals, tangents
    places = np.argsort(concrete(a), axis=axis, kind="stable")
    if axis is None:
        return np.take(a_dot, places)
    return np.take_along_axis(a_dot, places, axis=axis)


@sort.def_vjp
def sort_vjp(primals, out, *, axis, kind, order, stable):
    (a,) = primals
    shape = shape_of(a)
    places = np.argsort(concrete(a), axis=axis, kind="stable")

    def sort_pullback(out_bar):
        # The inverse of a permutation is the permutation that sorts it.
        inverse = np.argsort(places, axis=axis)
        if axis is None:
            return np.reshape(np.take(out_bar, inverse), shape)
        return np.take_along_axis(out_bar, inverse, axis=axis)

    return sort_pullback


@sort.def_samples
def sort_samples(rng):
    x = rng.normal(size=(3, 4))
    yield Sample(x)
    yield Sample(x, 0)
    yield Sample(x, axis=None)
    yield Sample(x, axis=-2, kind="stable")
    yield Sample(x, axis=1, stable=True)
    yield Sample(rng.normal(size=(0, 2)), axis=0)
    yield Sample(np.array([2.0, 1.0, 2.0, 1.0]), kinks=True)
