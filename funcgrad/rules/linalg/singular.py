"""Singular values and vectors: `svd` in all its forms, and `svdvals`.

The one idea: with ``a = u * s @ v^H`` and ``p = u^H @ da @ v``, the singular values move by the
diagonal of `p`. Its Hermitian part turns `u` and `v` likewise, at a rate inverse to the difference
of two singular values; its anti-Hermitian part turns them against each other, at a rate inverse to
their sum. (Z.-Q. Wan and S.-X. Zhang, "Automatic differentiation for complex valued SVD", 2019;
J. Townsend, "Differentiating the singular value decomposition", 2016; M. B. Giles, "Collected
matrix derivative results for forward and reverse mode algorithmic differentiation", 2008.)

Pairs of vectors may be multiplied by a factor of size 1. Functions that do not depend on that have
the right derivative; others get that of vectors which do not turn on the spot. The same goes for
the vectors of the full matrices beyond the last singular value, which are any basis of what is
left: their projector is right.

Repeated values: see `funcgrad.rules.linalg.spectra`. A value that `numpy.linalg.matrix_rank` takes
for 0 is a kink, where the derivative is the subgradient of least norm: 0, as of its vectors, which
have none. So the gradient of the nuclear norm is ``u @ v^H`` over the positive singular values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.batch import broadcasting
from funcgrad.core.level import concrete
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.linalg.spectra import (
    asks_for,
    gaps,
    negligible,
    quiet,
    reciprocal,
    sums,
    warn_of_repeated,
)
from funcgrad.rules.linalg.stacks import adjoint, diagonal_of, from_diagonal, transposed
from funcgrad.rules.matmul import conj
from funcgrad.rules.reducing import plus
from funcgrad.rules.spelling import as_array, as_arrays

__all__: list[str] = []

SVDResult: Any = type(np.linalg.svd(np.eye(1)))

_VECTORS = "single singular vectors of a repeated or zero singular value"


def _is_zero(s: Any, shape: tuple[int, ...]) -> Any:
    """Tell which singular values are 0, as `numpy.linalg.matrix_rank` does."""
    return np.less_equal(s, s[..., :1] * (max(shape[-2:]) * np.finfo(dtype_of(s)).eps))


def _rates(s: Any, zero: Any) -> tuple[Any, Any, Any, Any]:
    """Return the rates of turning alike and against each other, and where there is none of each."""
    equal = negligible(gaps(s), s)
    both = np.logical_and(np.expand_dims(zero, -1), np.expand_dims(zero, -2))
    off = ~np.eye(shape_of(s)[-1], dtype=bool)
    return reciprocal(gaps(s), equal), reciprocal(sums(s), both), np.logical_and(equal, off), both


def _bordered(inner: Any, below: Any) -> Any:
    """Return ``[[inner, -below^H], [below, 0]]``, a rotation if `inner` is one."""
    size = shape_of(below)[-2]
    corner = np.zeros((*shape_of(below)[:-1], size), dtype_of(below))
    top = np.concatenate([inner, -adjoint(below)], axis=-1)
    return np.concatenate([top, np.concatenate([below, corner], axis=-1)], axis=-2)


@primitive()
def svd(a, *, full_matrices=True):
    """Singular value decomposition ``u * s @ vh`` of each matrix of a stack."""
    return tuple(np.linalg.svd(a, full_matrices))


@svd.def_call(np.linalg.svd)
def svd_call(a, full_matrices=True, compute_uv=True, hermitian=False):
    """Choose by what is wanted; the Hermitian form is made of eigenvectors, as NumPy makes it."""
    a = as_array(a)
    if not hermitian:
        if compute_uv:
            return SVDResult(*svd.bind(a, full_matrices=full_matrices))
        return svdvals.bind(a)
    if not compute_uv:
        return np.sort(np.abs(np.linalg.eigvalsh(a)))[..., ::-1]
    w, v = np.linalg.eigh(a)
    sign = np.copysign(1.0, w)
    s = np.abs(w)
    order = np.argsort(s)[..., ::-1]
    sign = np.take_along_axis(sign, order, axis=-1)
    s = np.take_along_axis(s, order, axis=-1)
    u = np.take_along_axis(v, order[..., None, :], axis=-1)
    return SVDResult(u, s, np.conjugate(transposed(u * sign[..., None, :])))


@svd.def_jvp
def svd_jvp(primals, tangents, out, *, full_matrices):
    (a_dot,), (u, s, vh) = tangents, out
    shape, k = shape_of(a_dot), shape_of(s)[-1]
    m, n = shape[-2:]
    v, zero = adjoint(vh), _is_zero(s, shape)
    p = np.matmul(adjoint(u), np.matmul(a_dot, v))
    core = p[..., :k, :k]
    alike, against, _, _ = _rates(s, zero)
    alike = alike * ((core + adjoint(core)) / 2)
    against = against * ((core - adjoint(core)) / 2)
    u_turn, v_turn = alike + against, alike - against
    by_s = np.expand_dims(reciprocal(s, zero), -2)
    if full_matrices and m > n:
        u_turn = _bordered(u_turn, p[..., k:, :] * by_s)
    if full_matrices and n > m:
        v_turn = _bordered(v_turn, adjoint(p[..., k:]) * by_s)
    u_dot, v_dot = np.matmul(u, u_turn), np.matmul(v, v_turn)
    if not full_matrices and m > n:
        u_dot = u_dot + (np.matmul(a_dot, v) - np.matmul(u, p)) * by_s
    if not full_matrices and n > m:
        v_dot = v_dot + (np.matmul(adjoint(a_dot), u) - np.matmul(v, adjoint(p))) * by_s
    s_dot = np.where(zero, 0, np.real(diagonal_of(core)))
    return u_dot, s_dot, adjoint(v_dot)


def _side(x: Any, x_bar: Any, k: int, size: int, by_s: Any, zero: Any) -> tuple[Any, Any]:
    """Pull a cotangent of `u` back to its turning, and to what leads out of the first `k` columns.

    Likewise of `v`. Without such columns that is None.
    """
    inner = np.matmul(adjoint(x), x_bar)
    if size == k:
        return inner, None
    if shape_of(x)[-1] == k:
        outer = x_bar - np.matmul(x, inner)
    else:
        below = inner[..., k:, :k] - adjoint(inner[..., :k, k:])
        outer = np.matmul(x[..., k:], below)
    if asks_for(outer, np.expand_dims(zero, -2), x_bar):
        warn_of_repeated(_VECTORS)
    return inner[..., :k, :k], outer * by_s


@svd.def_vjp
def svd_vjp(primals, out, *, full_matrices):
    (a,), (u, s, vh) = primals, out
    shape, k = shape_of(a), shape_of(s)[-1]

    def svd_pullback(out_bar):
        u_bar, s_bar, vh_bar = out_bar
        zero = _is_zero(s, shape)
        by_s = np.expand_dims(reciprocal(s, zero), -2)
        u1, v1 = u[..., :k], adjoint(vh[..., :k, :])
        if u_bar is None and vh_bar is None:
            s_row = np.expand_dims(np.where(zero, 0, s_bar), -2)
            return quiet(conj(np.matmul(u1 * s_row, adjoint(v1))), s_row)
        u_side: Any = None
        v_side: Any = None
        u_out = v_out = None
        if u_bar is not None:
            u_side, u_out = _side(u, conj(u_bar), k, shape[-2], by_s, zero)
        if vh_bar is not None:
            v_side, v_out = _side(adjoint(vh), transposed(vh_bar), k, shape[-1], by_s, zero)
        alike, against, equal, both = _rates(s, zero)
        together = plus(u_side, v_side)
        apart = u_side if v_side is None else plus(u_side, -v_side)
        _check(together, apart, s_bar, equal, both)
        together, apart = alike * together, against * apart
        p_bar = (together + adjoint(together) + apart - adjoint(apart)) / 2
        if s_bar is not None:
            p_bar = p_bar + from_diagonal(np.where(zero, 0, s_bar))
        left = np.matmul(u1, p_bar)
        a_bar = np.matmul(left if u_out is None else left + u_out, adjoint(v1))
        if v_out is not None:
            a_bar = a_bar + np.matmul(u1, adjoint(v_out))
        lifted = None if s_bar is None else np.expand_dims(s_bar, -2)
        return quiet(conj(a_bar), u_bar, lifted, vh_bar)

    return svd_pullback


def _check(together: Any, apart: Any, s_bar: Any, equal: Any, both: Any) -> None:
    """Warn if the cotangents of the singular vectors, in their own basis, ask for too much."""
    if not np.any(concrete(np.logical_or(equal, both))):
        return
    turn = together - adjoint(together)  # 0 if the basis of the space does not matter
    asked = asks_for(turn, equal, together) or asks_for(apart - adjoint(apart), both, apart)
    if s_bar is not None:
        # With a weight on the value itself the vectors count one by one after all.
        split = np.not_equal(s_bar, 0)
        split = np.logical_or(np.expand_dims(split, -1), np.expand_dims(split, -2))
        stretch = together + adjoint(together)
        asked = asked or asks_for(stretch, np.logical_and(equal, split), together)
    if asked:
        warn_of_repeated(_VECTORS)


broadcasting(svd, 2)


def _svd_invariants(a: Any, **kwargs: Any) -> Any:
    u, s, vh = np.linalg.svd(a, **kwargs)
    k = shape_of(s)[-1]
    u1, vh1 = u[..., :k], vh[..., :k, :]
    whole = np.matmul(u1 * np.expand_dims(np.sin(s), -2), vh1)
    left, right = np.matmul(u1, adjoint(u1)), np.matmul(adjoint(vh1), vh1)
    rest = (
        np.matmul(u[..., k:], adjoint(u[..., k:])),
        np.matmul(adjoint(vh[..., k:, :]), vh[..., k:, :]),
    )
    return s, whole, left, right, rest, np.abs(u1), np.abs(vh1)


@svd.def_samples
def svd_samples(rng):
    for shape in ((3, 3), (3, 2), (2, 3), (2, 1, 2, 3), (3, 1), (1, 3), (1, 1)):
        for full_matrices in (True, False):
            yield Sample(rng.normal(size=shape), full_matrices=full_matrices, fun=_svd_invariants)
    yield Sample(rng.normal(size=(3, 2)), False, complex=False)
    yield Sample(rng.normal(size=(2, 2)), complex=False)
    yield Sample(rng.normal(size=(2, 3)), compute_uv=False)
    yield Sample(rng.normal(size=(2, 3, 3)), hermitian=True, fun=_hermitian_invariants)
    yield Sample(rng.normal(size=(3, 3)), hermitian=True, compute_uv=False)
    for empty in (np.zeros((0, 2, 3)), np.zeros((0, 0)), np.zeros((2, 0))):
        yield Sample(empty)
        yield Sample(empty, full_matrices=False)


def _hermitian_invariants(a: Any, **kwargs: Any) -> Any:
    return _svd_invariants((a + adjoint(a)) / 2, **kwargs)


@primitive(overrides=(np.linalg.svdvals,), canonical=as_arrays)
def svdvals(x):
    """Singular values of each matrix of a stack, descending."""
    return np.linalg.svd(x, compute_uv=False)


@svdvals.def_jvp
def svdvals_jvp(primals, tangents, out):
    (x,), (x_dot,) = primals, tangents
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    s_dot = np.real(np.sum(conj(u) * np.matmul(x_dot, adjoint(vh)), axis=-2))
    return np.where(_is_zero(s, shape_of(x)), 0, s_dot)


@svdvals.def_vjp
def svdvals_vjp(primals, out):
    (x,) = primals
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    zero = _is_zero(s, shape_of(x))
    left = conj(u)

    def svdvals_pullback(out_bar):
        s_bar = np.expand_dims(np.where(zero, 0, out_bar), -2)
        return quiet(np.matmul(left * s_bar, conj(vh)), s_bar)

    return svdvals_pullback


broadcasting(svdvals, 2)


@svdvals.def_samples
def svdvals_samples(rng):
    for shape in ((3, 3), (3, 2), (2, 3), (2, 1, 2, 3), (1, 1), (0, 2, 3), (2, 0)):
        yield Sample(rng.normal(size=shape))
    yield Sample([[2, 1], [1, 3]])
