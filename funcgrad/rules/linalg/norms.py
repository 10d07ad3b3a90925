"""Norms of vectors and matrices: `numpy.linalg.norm` and its siblings.

The one idea: a norm's derivative is the product of a tangent or cotangent with one array of the
shape of `x`, the dual vector. `_dual` returns that product as a function; forward mode then sums
the real part over the axes, reverse mode needs no more.

Norms have kinks, where the dual is the one of least norm: 0 at the origin, in equal shares between
elements that are all the largest. Second derivatives are finite there too, as a quotient by a norm
of 0 is one by infinity.

The dual of a norm made of singular values, ``u @ diag(s) @ vh``, is ``u @ diag(w) @ vh`` with
weights `w` in the place of `s` (G. A. Watson, "Characterization of the subdifferential of some
matrix norms", 1992). Singular values are equal, or 0, if they are so within rounding.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from funcgrad.core.batch import shift
from funcgrad.core.primitive import Sample, overrides, primitive
from funcgrad.core.zero import dtype_of, shape_of, zero_wins
from funcgrad.rules.matmul import conj
from funcgrad.rules.reducing import ratio
from funcgrad.rules.spelling import as_arrays

__all__ = [
    "by_singular_values",
    "dual_of_matrices",
    "norm_batch",
    "pull_norm",
    "push_norm",
    "settings",
    "weights",
]


def _nonzero(x: Any) -> Any:
    """Return `x` with infinity for 0, so that a quotient by it is 0, to all orders."""
    return np.where(np.equal(x, 0), np.inf, x)


def _phase(x: Any) -> Any:
    """Return the derivative of ``abs(x)``, 0 at 0."""
    if dtype_of(x).kind == "c":
        return conj(x) / _nonzero(np.abs(x))
    return np.sign(x)


def _dual(x: Any, norm: Any, ord: Any, axes: tuple[int, ...], matrix: bool) -> Any:
    """Return the function that multiplies by the derivative; `norm` has the axes of `x`."""
    if ord is None or (ord in ("fro", "f") if matrix else ord == 2):

        def product(t):
            return t * (conj(x) / _nonzero(norm))

    elif matrix and ord in (2, -2, "nuc"):

        def product(t):
            y = np.moveaxis(x, axes, (-2, -1))
            return t * np.moveaxis(by_singular_values(y, ord), (-2, -1), axes)

    elif matrix:
        return _dual_of_matrix(x, ord, axes)
    elif ord == 1:

        def product(t):
            return t * _phase(x)

    elif ord in (np.inf, -np.inf):

        def product(t):
            hit = np.equal(np.abs(x), norm)
            return _shared(t, x, hit, axes)

    else:

        def product(t):
            size = np.abs(x)
            # Relative to the norm, so that no power overflows. An element at 0 has derivative 0 for
            # powers above 1, and between two infinite slopes for those below.
            share = np.where(np.equal(size, 0), 1, size / _nonzero(norm))
            return t * (_phase(x) * share ** (ord - 1))

    return product


def _dual_of_matrix(x: Any, ord: Any, axes: tuple[int, ...]) -> Any:
    rows, columns = axes
    summed, chosen = (rows, columns) if ord in (1, -1) else (columns, rows)

    def product(t):
        sums = np.sum(np.abs(x), axis=summed, keepdims=True)
        if ord > 0:
            extreme = np.max(sums, axis=chosen, keepdims=True, initial=0)
        else:
            extreme = np.min(sums, axis=chosen, keepdims=True)
        hit = np.equal(sums, extreme)
        return _shared(t, x, hit, (chosen,))

    return product


def by_singular_values(x: Any, ord: Any) -> Any:
    """Return the derivative of the spectral norms of matrices, of the least, or of the nuclear."""
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    return conj(np.matmul(u * np.expand_dims(weights(s, ord, shape_of(x)), -2), vh))


def weights(s: Any, ord: Any, shape: tuple[int, ...]) -> Any:
    """Return the derivative of a norm in the singular values: constants, but for its kinks."""
    if 0 in shape_of(s):
        return s
    largest, least = s[..., :1], s[..., -1:]
    rounding = np.finfo(dtype_of(s)).eps * max(shape[-2:]) * largest
    if ord == "nuc":
        return np.greater(s, rounding) * 1.0
    if ord == 2:
        hit = np.logical_and(np.greater_equal(s, largest - rounding), np.greater(s, 0))
    else:
        hit = np.logical_and(np.less_equal(s, least + rounding), np.greater(least, rounding))
    return hit / np.maximum(np.sum(hit, axis=-1, keepdims=True), 1)


def dual_of_matrices(x: Any, norm: Any, ord: Any) -> Any:
    """Return the function that multiplies by the derivative of norms of the last two axes."""
    ndim = len(shape_of(x))
    return _dual(x, np.expand_dims(norm, (-2, -1)), ord, (ndim - 2, ndim - 1), True)


def _shared(t: Any, x: Any, hit: Any, axes: tuple[int, ...]) -> Any:
    """Share `t` equally between the elements that are hit; selected, for 0 * inf is not 0."""
    count = np.sum(hit, axis=axes, keepdims=True, dtype=np.intp)
    return np.where(hit, ratio(t * _phase(x), count), 0)


def settings(x: Any, ord: Any, axis: Any) -> tuple[tuple[int, ...], bool]:
    """Return the axes of a norm, counted from the front, and whether they are those of a matrix."""
    ndim = len(shape_of(x))
    if axis is None:
        axes = tuple(range(ndim))
    else:
        axes = tuple(i % ndim for i in (axis if isinstance(axis, tuple) else (int(axis),)))
    return axes, len(axes) == 2 and not (axis is None and ord is None)


def push_norm(x, x_dot, out, ord, axes, matrix, keepdims):
    if ord == 0:
        return None  # a count
    norm = out if keepdims else np.expand_dims(out, axes)
    product = _dual(x, norm, ord, axes, matrix)
    return np.sum(np.real(zero_wins(product(x_dot), x_dot)), axis=axes, keepdims=keepdims)


def pull_norm(x, out, ord, axes, matrix, keepdims):
    if ord == 0:
        return (None,)
    norm = out if keepdims else np.expand_dims(out, axes)
    product = _dual(x, norm, ord, axes, matrix)

    def norm_pullback(out_bar):
        if not keepdims:
            out_bar = np.expand_dims(out_bar, axes)
        return zero_wins(product(out_bar), out_bar)

    return norm_pullback


@primitive(overrides=(np.linalg.norm,), canonical=as_arrays)
def norm(x, *, ord=None, axis=None, keepdims=False):
    """Norm of vectors along an axis, or of matrices along two."""
    return np.linalg.norm(x, ord, axis, keepdims)


@norm.def_jvp
def norm_jvp(primals, tangents, out, *, ord, axis, keepdims):
    (x,), (x_dot,) = primals, tangents
    return push_norm(x, x_dot, out, ord, *settings(x, ord, axis), keepdims)


@norm.def_vjp
def norm_vjp(primals, out, *, ord, axis, keepdims):
    (x,) = primals
    return pull_norm(x, out, ord, *settings(x, ord, axis), keepdims)


@norm.def_batch
def norm_batch(args, batched, *, ord, axis, keepdims):
    (x,) = args
    size, *one = shape_of(x)
    if axis is None and ord is None:  # of all elements, however many axes there are
        length = norm.bind(np.reshape(x, (size, prod(one))), ord=None, axis=1, keepdims=False)
        return np.reshape(length, (size, *(1,) * len(one))) if keepdims else length
    if axis is not None and not isinstance(axis, tuple):
        axis = (int(axis),)
    return norm.bind(x, ord=ord, axis=shift(axis, len(one)), keepdims=keepdims)


@norm.def_samples
def norm_samples(rng):
    x = rng.normal(size=(2, 3))
    yield Sample(rng.normal(size=3))
    yield Sample(rng.normal(size=()))
    yield Sample(x)
    yield Sample(rng.normal(size=(2, 2, 2)), keepdims=True)
    yield Sample(rng.normal(size=(2, 3, 2)), axis=(0, -1), keepdims=True)
    yield Sample(x, axis=0)
    yield Sample(x, axis=(-1,), keepdims=True)
    yield Sample(np.zeros((2, 0)), axis=1, kinks=True)
    for ord in (None, 1, 2, np.inf, -np.inf, 3, 2.5, 0.5, -1):
        yield Sample(rng.normal(size=4), ord)
        yield Sample(x, ord, 1, keepdims=True)
    yield Sample(x, 0, 1, order=0)
    yield Sample(np.zeros((0, 2)), 2, kinks=True)
    yield Sample(np.zeros((2, 0)), "nuc", kinks=True)
    for kind in ("fro", "f", 1, -1, np.inf, -np.inf, 2, -2, "nuc"):
        yield Sample(x, kind)
        yield Sample(rng.normal(size=(2, 3, 2)), kind, (2, 0))
        yield Sample(rng.normal(size=(2, 3, 2)), kind, (0, 1), keepdims=True)


@primitive(overrides=(np.linalg.vector_norm,), canonical=as_arrays)
def vector_norm(x, *, axis=None, keepdims=False, ord=2):
    """Norm of vectors along any axes."""
    return np.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)


@vector_norm.def_jvp
def vectorpush_norm(primals, tangents, out, *, axis, keepdims, ord):
    (x,), (x_dot,) = primals, tangents
    return push_norm(x, x_dot, out, ord, settings(x, ord, axis)[0], False, keepdims)


@vector_norm.def_vjp
def vectorpull_norm(primals, out, *, axis, keepdims, ord):
    (x,) = primals
    return pull_norm(x, out, ord, settings(x, ord, axis)[0], False, keepdims)


@vector_norm.def_batch
def vector_norm_batch(args, batched, *, axis, keepdims, ord):
    (x,) = args
    axis = shift(axis, len(shape_of(x)) - 1)
    return vector_norm.bind(x, axis=axis, keepdims=keepdims, ord=ord)


@vector_norm.def_samples
def vector_norm_samples(rng):
    x = rng.normal(size=(2, 3, 2))
    for ord in (2, 1, np.inf, 3):
        yield Sample(x, ord=ord)
        yield Sample(x, axis=-1, ord=ord)
        yield Sample(x, axis=(2, 0), keepdims=True, ord=ord)


@overrides(np.linalg.matrix_norm)
def matrix_norm(x, *, keepdims=False, ord="fro"):
    """Norm of the matrices of the last two axes."""
    return np.linalg.norm(x, ord, (-2, -1), keepdims)


@matrix_norm.def_samples
def matrix_norm_samples(rng):
    yield Sample(rng.normal(size=(2, 3, 2)))
    for ord in (1, 2, -2, "nuc"):
        yield Sample(rng.normal(size=(2, 3, 2)), ord=ord, keepdims=True)
