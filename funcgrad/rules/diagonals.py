"""Diagonals and triangles: parts of matrices, and matrices of them.

`diagonal` and `place_diagonal` are transposes of each other.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from funcgrad.core.batch import lacks_axes, loop, shift
from funcgrad.core.primitive import Sample, overrides, primitive
from funcgrad.core.zero import shape_of
from funcgrad.rules.families import linear

__all__: list[str] = []


@primitive(linear, overrides=np.diagonal, may_alias=True)
def diagonal(a, *, offset=0, axis1=0, axis2=1):
    """Take a diagonal of each matrix in the planes of two axes."""
    return np.diagonal(a, offset, axis1, axis2)


@diagonal.def_vjp
def diagonal_vjp(primals, out, *, offset, axis1, axis2):
    (a,) = primals
    shape = shape_of(a)

    def diagonal_pullback(out_bar):
        return place_diagonal.bind(out_bar, shape=shape, offset=offset, axis1=axis1, axis2=axis2)

    return diagonal_pullback


@diagonal.def_batch
def diagonal_batch(args, batched, *, offset, axis1, axis2):
    (a,) = args
    ndim = len(shape_of(a)) - 1
    return diagonal.bind(a, offset=offset, axis1=shift(axis1, ndim), axis2=shift(axis2, ndim))


@diagonal.def_samples
def diagonal_samples(rng):
    x = rng.normal(size=(3, 4))
    for offset in (0, 2, -1, 7):
        yield Sample(x, offset)
    yield Sample(rng.normal(size=(2, 3, 4)), axis1=-1, axis2=0)
    yield Sample(rng.normal(size=(2, 3, 4)), 1, 1, 2)
    yield Sample(rng.normal(size=(0, 3)))


@primitive(linear)
def place_diagonal(d, *, shape, offset=0, axis1=0, axis2=1):
    """Make an array of zeros but for a diagonal: the transpose of `diagonal`."""
    out = np.zeros_like(d, shape=shape)
    ends = [normalize_axis_index(axis, len(shape)) for axis in (axis1, axis2)]
    planes = np.moveaxis(out, ends, (-2, -1))
    along = np.arange(shape_of(d)[-1])
    planes[..., along - min(offset, 0), along + max(offset, 0)] = d
    return out


@place_diagonal.def_vjp
def place_diagonal_vjp(primals, out, *, shape, offset, axis1, axis2):
    def place_diagonal_pullback(out_bar):
        return diagonal.bind(out_bar, offset=offset, axis1=axis1, axis2=axis2)

    return place_diagonal_pullback


@place_diagonal.def_batch
def place_diagonal_batch(args, batched, *, shape, offset, axis1, axis2):
    (d,) = args
    axis1, axis2 = shift(axis1, len(shape)), shift(axis2, len(shape))
    shape = (shape_of(d)[0], *shape)
    return place_diagonal.bind(d, shape=shape, offset=offset, axis1=axis1, axis2=axis2)


@place_diagonal.def_samples
def place_diagonal_samples(rng):
    yield Sample(
        rng.normal(size=(2, 3)), shape=(3, 2, 4), offset=1, axis1=0, axis2=-1, fun=place_diagonal
    )
    yield Sample(rng.normal(size=3), shape=(5, 3), offset=-2, fun=place_diagonal)


@overrides(np.diag)
def diag(v, k=0):
    """Take a diagonal of a matrix, or make the matrix of one."""
    shape = shape_of(v)
    if len(shape) == 2:
        return diagonal.bind(v, offset=k, axis1=0, axis2=1)
    if len(shape) != 1:
        raise ValueError("Input must be 1- or 2-d.")
    n = shape[0] + abs(k)
    return place_diagonal.bind(v, shape=(n, n), offset=k, axis1=0, axis2=1)


@overrides(np.diagflat)
def diagflat(v, k=0):
    """Make the matrix that has the elements on a diagonal."""
    return diag(np.ravel(v), k)


@diag.def_samples
@diagflat.def_samples
def diag_samples(rng):
    x = rng.normal(size=3)
    for k in (0, 1, -2):
        yield Sample(x, k)
    yield Sample(rng.normal(size=(2, 3)))
    yield Sample(rng.normal(size=(3, 2)), k=-1)
    yield Sample(rng.normal(size=0))


@primitive(linear, overrides=np.tril)
def tril(m, *, k=0):
    """Set what is above a diagonal to zero."""
    return np.tril(m, k)


@tril.def_vjp
def tril_vjp(primals, out, *, k):
    def tril_pullback(out_bar):
        return np.tril(out_bar, k)

    return tril_pullback


@primitive(linear, overrides=np.triu)
def triu(m, *, k=0):
    """Set what is below a diagonal to zero."""
    return np.triu(m, k)


@triu.def_vjp
def triu_vjp(primals, out, *, k):
    def triu_pullback(out_bar):
        return np.triu(out_bar, k)

    return triu_pullback


@tril.def_batch
def tril_batch(args, batched, *, k):
    if lacks_axes(args, batched, (1,)):
        return loop(tril.bind, args, batched, {"k": k})  # raises
    return np.tril(_matrices(*args), k)


@triu.def_batch
def triu_batch(args, batched, *, k):
    if lacks_axes(args, batched, (1,)):
        return loop(triu.bind, args, batched, {"k": k})  # raises
    return np.triu(_matrices(*args), k)


def _matrices(m):
    """Return examples that are matrices; NumPy makes one of a vector, of equal rows."""
    shape = shape_of(m)
    if len(shape) != 2:
        return m
    size, n = shape
    return np.broadcast_to(np.expand_dims(m, 1), (size, n, n))


@tril.def_samples
@triu.def_samples
def triangle_samples(rng):
    x = rng.normal(size=(3, 4))
    for k in (0, 1, -2):
        yield Sample(x, k)
    yield Sample(rng.normal(size=(2, 3, 3)))
    yield Sample(rng.normal(size=3))  # one row, broadcast
    yield Sample(rng.normal(size=(0, 2)))


@primitive(linear, overrides=np.trace)
def trace(a, *, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """Sum a diagonal of each matrix in the planes of two axes."""
    return np.trace(a, offset, axis1, axis2, dtype)


@trace.def_vjp
def trace_vjp(primals, out, *, offset, axis1, axis2, dtype):
    shape = shape_of(primals[0])
    first, second = shape[axis1], shape[axis2]
    n = max(0, min(first + min(offset, 0), second - max(offset, 0)))
    ends = shape_of(out)

    def trace_pullback(out_bar):
        d = np.broadcast_to(np.expand_dims(out_bar, -1), (*ends, n))
        return place_diagonal.bind(d, shape=shape, offset=offset, axis1=axis1, axis2=axis2)

    return trace_pullback


@trace.def_batch
def trace_batch(args, batched, *, axis1, axis2, **params):
    (a,) = args
    ndim = len(shape_of(a)) - 1
    return trace.bind(a, axis1=shift(axis1, ndim), axis2=shift(axis2, ndim), **params)


@trace.def_samples
def trace_samples(rng):
    x = rng.normal(size=(3, 4))
    for offset in (0, 2, -1, 7):
        yield Sample(x, offset)
    yield Sample(rng.normal(size=(2, 3, 4)), axis1=-1, axis2=0)
    yield Sample(x, 0, 0, 1, np.float64)
