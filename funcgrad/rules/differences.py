"""Differences of neighbours, and the sum of trapezoids, which is made of them."""

from __future__ import annotations

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from funcgrad.core.primitive import Sample, overrides, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.families import linear
from funcgrad.rules.spelling import array_of

__all__: list[str] = []

_NO_VALUE = np._NoValue


@primitive(linear, name="diff")
def difference(a, *, n, axis):
    """Differences of neighbours along an axis, `n` times over."""
    return np.diff(a, n, axis)


@difference.def_vjp
def difference_vjp(primals, out, *, n, axis):
    shape = shape_of(primals[0])
    if not shape or n >= shape[axis]:
        return (None,)  # nothing is left
    width = [(0, 0)] * len(shape)
    width[axis] = (n, n)

    def diff_pullback(out_bar):
        # Summation by parts: backward differences, of what is zero beyond the ends.
        made = np.diff(np.pad(out_bar, width), n, axis)
        return -made if n % 2 else made

    return diff_pullback


@difference.def_call(np.diff)
def diff(a, n=1, axis=-1, prepend=_NO_VALUE, append=_NO_VALUE):
    """Differences of neighbours along an axis."""
    if n == 0:
        return a
    if n < 0:
        raise ValueError("order must be non-negative but got " + repr(n))
    a = array_of(a)
    if not shape_of(a):
        raise ValueError("diff requires input that is at least one dimensional")
    axis = normalize_axis_index(axis, len(shape_of(a)))
    parts = [_edge(prepend, a, axis), a, _edge(append, a, axis)]
    parts = [part for part in parts if part is not None]
    if len(parts) > 1:
        a = np.concatenate(parts, axis)
    return difference.bind(a, n=n, axis=axis)


def _edge(value, a, axis):
    if value is _NO_VALUE:
        return None
    value = array_of(value)
    if shape_of(value) == ():
        shape = list(shape_of(a))
        shape[axis] = 1
        value = np.broadcast_to(value, tuple(shape))
    return value


@difference.def_samples
def difference_samples(rng):
    x = rng.normal(size=(3, 4))
    for n in (0, 1, 2, 3, 4, 6):
        yield Sample(x, n)
    yield Sample(x, axis=0)
    yield Sample(x, 1, -1, np.float64(0.5), rng.normal(size=(3, 2)))
    yield Sample(x, prepend=0.0)
    yield Sample(rng.normal(size=0))


@overrides(np.ediff1d)
def ediff1d(ary, to_end=None, to_begin=None):
    """Differences of neighbours, flattened, with numbers put before and behind."""
    ary = np.ravel(array_of(ary))
    dtype = dtype_of(ary)
    parts = [np.diff(ary)]
    for name, value in (("to_begin", to_begin), ("to_end", to_end)):
        if value is not None:
            value = array_of(value)
            if not np.can_cast(dtype_of(value), dtype, casting="same_kind"):
                raise TypeError(
                    f"dtype of `{name}` must be compatible with input `ary` under the "
                    "`same_kind` rule."
                )
            parts.insert(0 if name == "to_begin" else 2, np.ravel(value))
    return np.concatenate(parts, dtype=dtype) if len(parts) > 1 else parts[0]


@ediff1d.def_samples
def ediff1d_samples(rng):
    x = rng.normal(size=(2, 3))
    yield Sample(x)
    yield Sample(x, np.float64(1.5), rng.normal(size=2))
    yield Sample(rng.normal(size=0))


@overrides(np.trapezoid)
def trapezoid(y, x=None, dx=1.0, axis=-1):
    """Integrate by the trapezoidal rule."""
    y = array_of(y)
    ndim = len(shape_of(y))
    if x is None:
        d = dx
    else:
        x = array_of(x)
        if len(shape_of(x)) == 1:
            d = np.diff(x)
            shape = [1] * ndim
            shape[axis] = shape_of(d)[0]
            d = np.reshape(d, shape)
        else:
            d = np.diff(x, axis=axis)
    place = normalize_axis_index(axis, ndim)
    lead = (slice(None),) * place
    return np.sum(d * (y[(*lead, slice(1, None))] + y[(*lead, slice(None, -1))]) / 2.0, axis=axis)


@trapezoid.def_samples
def trapezoid_samples(rng):
    y = rng.normal(size=(3, 4))
    yield Sample(y)
    yield Sample(y, dx=0.5, axis=0)
    yield Sample(y, rng.normal(size=4))
    yield Sample(y, rng.normal(size=(3, 4)), axis=0)
    yield Sample(rng.normal(size=(2, 1)))
