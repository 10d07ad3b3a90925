"""Norms of vectors and matrices: `numpy.linalg.norm` and its siblings.

The one idea: a norm's derivative is the product of a tangent or cotangent with one array of the
shape of `x`, the dual vector. `_dual` returns that product as a function; forward mode then sums
the real part over the axes, reverse mode needs no more.

Norms have kinks, where the dual is the one of least norm: 0 at the origin, in equal shares between
elements that are all the largest. Second derivatives are finite there too, as a quotient by a norm
of 0 is one by infinity.

The spectral and the nuclear norm need singular values and have no rule yet.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.primitive import Sample, overrides, primitive
from funcgrad.core.zero import dtype_of, shape_of, zero_wins
from funcgrad.errors import MissingRuleError, user_line
from funcgrad.rules.axes import ratio
from funcgrad.rules.matmul import as_arrays, conj

__all__: list[str] = []


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
    if ord in (1, -1):
        summed, chosen = rows, columns
    elif ord in (np.inf, -np.inf):
        summed, chosen = columns, rows
    else:
        raise MissingRuleError(
            f"numpy.linalg.norm with ord={ord!r} of a matrix has no rule for traced values: it "
            "needs singular values",
            where=user_line(),
            fix="use another norm: ord='fro', 1 or numpy.inf",
        )

    def product(t):
        sums = np.sum(np.abs(x), axis=summed, keepdims=True)
        extreme = np.max if ord > 0 else np.min
        hit = np.equal(sums, extreme(sums, axis=chosen, keepdims=True))
        return _shared(t, x, hit, (chosen,))

    return product


def _shared(t: Any, x: Any, hit: Any, axes: tuple[int, ...]) -> Any:
    """Share `t` equally between the elements that are hit; selected, for 0 * inf is not 0."""
    count = np.sum(hit, axis=axes, keepdims=True, dtype=np.intp)
    return np.where(hit, ratio(t * _phase(x), count), 0)


def _settings(x: Any, ord: Any, axis: Any) -> tuple[tuple[int, ...], bool]:
    """Return the axes of a norm, counted from the front, and whether they are those of a matrix."""
    ndim = len(shape_of(x))
    if axis is None:
        axes = tuple(range(ndim))
    else:
        axes = tuple(i % ndim for i in (axis if isinstance(axis, tuple) else (int(axis),)))
    return axes, len(axes) == 2 and not (axis is None and ord is None)


def _norm_jvp(x, x_dot, out, ord, axes, matrix, keepdims):
    if ord == 0:
        return None  # a count
    norm = out if keepdims else np.expand_dims(out, axes)
    product = _dual(x, norm, ord, axes, matrix)
    return np.sum(np.real(zero_wins(product(x_dot), x_dot)), axis=axes, keepdims=keepdims)


def _norm_vjp(x, out, ord, axes, matrix, keepdims):
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
    return _norm_jvp(x, x_dot, out, ord, *_settings(x, ord, axis), keepdims)


@norm.def_vjp
def norm_vjp(primals, out, *, ord, axis, keepdims):
    (x,) = primals
    return _norm_vjp(x, out, ord, *_settings(x, ord, axis), keepdims)


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
    for kind in ("fro", "f", 1, -1, np.inf, -np.inf):
        yield Sample(x, kind)
        yield Sample(rng.normal(size=(2, 3, 2)), kind, (2, 0))
        yield Sample(rng.normal(size=(2, 3, 2)), kind, (0, 1), keepdims=True)


@primitive(overrides=(np.linalg.vector_norm,), canonical=as_arrays)
def vector_norm(x, *, axis=None, keepdims=False, ord=2):
    """Norm of vectors along any axes."""
    return np.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)


@vector_norm.def_jvp
def vector_norm_jvp(primals, tangents, out, *, axis, keepdims, ord):
    (x,), (x_dot,) = primals, tangents
    return _norm_jvp(x, x_dot, out, ord, _settings(x, ord, axis)[0], False, keepdims)


@vector_norm.def_vjp
def vector_norm_vjp(primals, out, *, axis, keepdims, ord):
    (x,) = primals
    return _norm_vjp(x, out, ord, _settings(x, ord, axis)[0], False, keepdims)


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
    yield Sample(rng.normal(size=(2, 3, 2)), ord=1, keepdims=True)
