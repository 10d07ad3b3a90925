"""Shaping: the same elements in another arrangement. All linear, so the tangent is arranged likewise."""

from __future__ import annotations

import numpy as np

from funcgrad.core.primitive import primitive
from funcgrad.core.zero import dtype_of, fit, shape_of
from funcgrad.rules.families import linear

__all__: list[str] = []


@primitive(linear, overrides=(np.reshape,), may_alias=True)
def reshape(a, *, shape, order="C", copy=None):
    """Give an array a new shape."""
    return np.reshape(a, shape, order=order)


@reshape.def_vjp
def reshape_vjp(primals, out, *, shape, order, copy):
    (a,) = primals
    old = shape_of(a)

    def reshape_pullback(out_bar):
        return np.reshape(out_bar, old, order=order)

    return reshape_pullback


@primitive(linear, overrides=(np.broadcast_to,), may_alias=True)
def broadcast_to(array, *, shape, subok=False):
    """Stretch axes of size one, and add leading ones, to a given shape."""
    return np.broadcast_to(array, shape)


@broadcast_to.def_vjp
def broadcast_to_vjp(primals, out, *, shape, subok):
    (array,) = primals
    old, dtype = shape_of(array), dtype_of(array)

    def broadcast_to_pullback(out_bar):
        return fit(out_bar, old, dtype)

    return broadcast_to_pullback


@primitive(linear, overrides=(np.expand_dims,), may_alias=True)
def expand_dims(a, *, axis):
    """Insert axes of size one."""
    return np.expand_dims(a, axis)


@expand_dims.def_vjp
def expand_dims_vjp(primals, out, *, axis):
    (a,) = primals
    shape = shape_of(a)

    def expand_dims_pullback(out_bar):
        return np.reshape(out_bar, shape)

    return expand_dims_pullback
