"""Repeating or cutting to size: `resize` and `trim_zeros`."""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from funcgrad.core.level import looked_at
from funcgrad.core.primitive import Sample, overrides
from funcgrad.core.zero import shape_of
from funcgrad.rules.spelling import array_of, refuse_batched

__all__: list[str] = []


@overrides(np.resize)
def resize(a, new_shape):
    """Give an array a new shape, of its elements over and over again."""
    shape = (new_shape,) if isinstance(new_shape, int | np.integer) else tuple(new_shape)
    if any(n < 0 for n in shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    a = np.ravel(array_of(a))
    (size,), want = shape_of(a), math.prod(shape)
    if size == 0 or want == 0:
        return np.zeros_like(a, shape=shape)
    if want <= size:
        return np.reshape(a[:want], shape)
    repeats = -(-want // size)
    again = np.reshape(np.broadcast_to(a, (repeats, size)), (repeats * size,))
    return np.reshape(again[:want], shape)


@resize.def_samples
def resize_samples(rng):
    x = rng.normal(size=(2, 3))
    yield Sample(x, (2, 2))
    yield Sample(x, 8)
    yield Sample(x, (3, 5))
    yield Sample(x, (0, 2))
    yield Sample(rng.normal(size=0), 2, order=0)


@overrides(np.trim_zeros)
def trim_zeros(filt, trim="fb", axis=None):
    """Cut off zeros in front and behind."""
    filt = array_of(filt)
    refuse_batched(filt, "numpy.trim_zeros cuts off as many elements as are 0")
    plain = looked_at(np.not_equal(filt, 0), "which elements are 0")
    trim = trim.lower()
    if trim not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    ndim = len(shape_of(filt))
    axes = range(ndim) if axis is None else normalize_axis_tuple(axis, ndim, argname="axis")
    found = np.argwhere(plain)
    index = [slice(None)] * ndim
    for number in axes:
        if not len(found):
            index[number] = slice(0, 0)
            continue
        start, stop = found[:, number].min(), found[:, number].max() + 1
        index[number] = slice(
            int(start) if "f" in trim else None, int(stop) if "b" in trim else None
        )
    return filt[tuple(index)]


@trim_zeros.def_samples
def trim_zeros_samples(rng):
    x = np.array([0.0, 0.0, 1.5, 0.0, -2.0, 0.0])
    yield Sample(x, kinks=True, batch=False)
    yield Sample(x, "f", kinks=True, batch=False)
    yield Sample(x, "B", kinks=True, batch=False)
    yield Sample(np.zeros(3), kinks=True, batch=False)
    yield Sample(rng.normal(size=(2, 3)), batch=False)
