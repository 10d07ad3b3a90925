"""Reductions: sums, products, extremes and moments over axes, and their running forms."""

from __future__ import annotations

import numpy as np

from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import shape_of
from funcgrad.rules.families import linear

__all__: list[str] = []


@primitive(linear, overrides=(np.sum,))
def reduce_sum(a, *, axis=None, dtype=None, out=None, keepdims=False, initial=0, where=True):
    """Sum over `axis`."""
    return np.sum(a, axis=axis, dtype=dtype, keepdims=keepdims, where=where)


@reduce_sum.def_vjp
def reduce_sum_vjp(primals, out, *, axis, dtype, keepdims, initial, where):
    (a,) = primals
    shape = shape_of(a)  # the residual is the shape, not the array

    def reduce_sum_pullback(out_bar):
        if axis is not None and not keepdims:
            out_bar = np.expand_dims(out_bar, axis)
        return np.broadcast_to(out_bar, shape)

    return reduce_sum_pullback


@reduce_sum.def_samples
def reduce_sum_samples(rng):
    yield Sample(rng.normal(size=(2, 3, 4)), axis=(0, -1))
    yield Sample(rng.normal(size=(0, 3)), axis=0)
