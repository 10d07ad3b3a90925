"""Triangular factors: `cholesky` and `qr`.

The one idea: the factors have a triangle of freedom each, so that of a product such as
``inv(q) @ da @ inv(r)``, which is the turning of `q` plus a triangle, its lower part tells one from
the other. (M. B. Giles, "Collected matrix derivative results for forward and reverse mode
algorithmic differentiation", 2008; M. Seeger et al., "Auto-differentiating linear algebra", 2017;
for complex, wide and deep matrices D. A. O. Roberts and L. R. Roberts, "QR and LQ decomposition
matrix backpropagation algorithms for square, wide, and deep -- real or complex -- matrices and
their software implementation", 2020.)

LAPACK has `r` with a real diagonal, of whatever signs, which leaves no choice: these are the
derivatives of what NumPy returns. There are none where the first columns depend on each other, so
that `r` cannot be divided by: they are NaN if `r` has a 0 on its diagonal. In mode "complete" the
columns of `q` beyond those of the matrix are any basis of what is left, and do not turn among
themselves: their projector is right. In mode "raw" the factors are in a form of LAPACK's own, which
has no rule.

NumPy has no solver for triangular matrices. To invert one is as accurate, and faster than to solve
for as many right-hand sides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.batch import broadcasting
from funcgrad.core.level import any_of
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import MissingRuleError, user_line
from funcgrad.rules.linalg.spectra import as_read, quiet, read_back, triangle
from funcgrad.rules.linalg.stacks import adjoint, transposed
from funcgrad.rules.matmul import conj
from funcgrad.rules.reducing import plus
from funcgrad.rules.spelling import as_array, as_arrays

__all__: list[str] = []

QRResult: Any = type(np.linalg.qr(np.eye(1)))


def _half_lower(x: Any) -> Any:
    """Return the lower triangle, with half of the diagonal."""
    n, dtype = shape_of(x)[-1], dtype_of(x)
    return x * (np.tri(n, dtype=dtype) - np.eye(n, dtype=dtype) / 2)


def _over(x: Any, r: Any) -> Any:
    """Return ``x @ inv(r)``, NaN where `r`, a triangle, has a 0 on its diagonal."""
    zero = np.equal(np.diagonal(r, axis1=-2, axis2=-1), 0)
    if any_of(zero):
        hit = np.logical_and(np.expand_dims(zero, -1), np.eye(shape_of(r)[-1], dtype=bool))
        r = np.where(hit, np.nan, r)
    return np.matmul(x, np.linalg.inv(r))


@primitive(overrides=(np.linalg.cholesky,), canonical=as_arrays)
def cholesky(a, *, upper=False):
    """Triangular factor of a positive-definite matrix, ``l @ l^H`` or ``u^H @ u``.

    The tangent is ``l @ half_lower(inv(l) @ da @ inv(l)^H)``.
    """
    return np.linalg.cholesky(a, upper=upper)


@cholesky.def_jvp
def cholesky_jvp(primals, tangents, out, *, upper):
    (a,), (a_dot,) = primals, tangents
    lower = adjoint(out) if upper else out
    inverse = np.linalg.inv(lower)
    step = np.matmul(inverse, as_read(a_dot, triangle(a, not upper)))
    l_dot = np.matmul(lower, _half_lower(np.matmul(step, adjoint(inverse))))
    return adjoint(l_dot) if upper else l_dot


@cholesky.def_vjp
def cholesky_vjp(primals, out, *, upper):
    (a,) = primals
    weights = triangle(a, not upper)

    def cholesky_pullback(out_bar):
        lower, bar = (adjoint(out), transposed(out_bar)) if upper else (out, conj(out_bar))
        inverse = np.linalg.inv(lower)
        half = np.matmul(adjoint(inverse), _half_lower(np.matmul(adjoint(lower), bar)))
        a_bar = conj(np.matmul(half, inverse))
        return quiet(read_back(a_bar, weights), out_bar)

    return cholesky_pullback


broadcasting(cholesky, 2)


def _cholesky_of_product(x: Any, **kwargs: Any) -> Any:
    product = np.matmul(x, adjoint(x)) + np.eye(shape_of(x)[-2])
    return np.linalg.cholesky(product, **kwargs)


@cholesky.def_samples
def cholesky_samples(rng):
    for shape in ((3, 3), (2, 1, 2, 2), (1, 1), (0, 2, 2), (0, 0)):
        yield Sample(rng.normal(size=shape), fun=_cholesky_of_product)
    yield Sample(rng.normal(size=(3, 2)), upper=True, fun=_cholesky_of_product)
    # One triangle is read.
    a = 0.3 * rng.normal(size=(2, 3, 3)) + 2 * np.eye(3)
    yield Sample(a)
    yield Sample(a[0], upper=True)
    yield Sample([[2, 1], [1, 3]])


@primitive()
def qr(a, *, mode="reduced"):
    """Orthonormal and triangular factors of each matrix of a stack."""
    return tuple(np.linalg.qr(a, mode))


@primitive()
def qr_r(a):
    """The triangular factor alone."""
    return np.linalg.qr(a, "r")


@qr.def_call(np.linalg.qr)
def qr_call(a, mode="reduced"):
    """Choose by `mode`, and pack the results into NumPy's named tuple."""
    if mode == "r":
        return qr_r.bind(as_array(a))
    if mode in ("raw", "e", "economic"):
        raise MissingRuleError(
            f"numpy.linalg.qr with mode={mode!r} has no rule for traced values: it gives the "
            "factors in LAPACK's packed form",
            where=user_line(),
            fix="use mode='reduced', 'complete' or 'r'",
        )
    return QRResult(*qr.bind(as_array(a), mode=mode))


def _is_complete(shape: tuple[int, ...], mode: str) -> bool:
    """Tell whether `q` has columns beyond those of the matrix."""
    return mode == "complete" and shape[-2] > shape[-1]


def _turning(w: Any) -> Any:
    """Return the anti-Hermitian matrix that differs from `w` by a triangle with real diagonal."""
    lower = np.tril(w, -1)
    turn = lower - adjoint(lower)
    if dtype_of(w).kind == "c":
        turn = turn + 1j * np.imag(w) * np.eye(shape_of(w)[-1], dtype=np.real(w).dtype)
    return turn


@qr.def_jvp
def qr_jvp(primals, tangents, out, *, mode):
    (a_dot,), (q, r) = tangents, out
    m, n = shape_of(a_dot)[-2:]
    k = min(m, n)
    q1, r1 = q[..., :k], r[..., :k, :k]
    step = _over(a_dot[..., :k], r1)
    w = np.matmul(adjoint(q1), step)
    turn = _turning(w)
    r_dot = np.matmul(w - turn, r1)
    if n > k:
        rest = np.matmul(adjoint(q1), a_dot[..., k:]) - np.matmul(turn, r[..., k:])
        r_dot = np.concatenate([r_dot, rest], axis=-1)
    q_dot = np.matmul(q1, turn)
    if m > k:
        q_dot = q_dot + step - np.matmul(q1, w)
    if _is_complete((m, n), mode):
        q2 = q[..., k:]
        others = -np.matmul(q1, np.matmul(adjoint(step), q2))
        q_dot = np.concatenate([q_dot, others], axis=-1)
        r_dot = np.concatenate([r_dot, np.zeros_like(r[..., k:, :])], axis=-2)
    return quiet(q_dot, a_dot), quiet(r_dot, a_dot)


def _pull_qr(a: Any, q: Any, r: Any, q_bar: Any, r_bar: Any, complete: bool) -> Any:
    """Pull back, in the sense of Re tr(x_bar^H x_dot); a cotangent of None is 0."""
    m, n = shape_of(a)[-2:]
    k = min(m, n)
    if complete:
        q2, r = q[..., k:], r[..., :k, :]
        if r_bar is not None:
            r_bar = r_bar[..., :k, :]
        if q_bar is not None:
            turned = np.matmul(q2, np.matmul(adjoint(q_bar[..., k:]), q[..., :k]))
            q_bar = q_bar[..., :k] - turned
        q = q[..., :k]
    rest_bar = None
    if n > k and r_bar is not None:
        rest_bar = np.matmul(q, r_bar[..., k:])
        q_bar = plus(q_bar, np.matmul(a[..., k:], adjoint(r_bar[..., k:])))
        r_bar = r_bar[..., :k]
    r1 = r[..., :k]
    inner = None if r_bar is None else np.matmul(r1, adjoint(r_bar))
    if q_bar is not None:
        inner = plus(inner, -np.matmul(adjoint(q_bar), q))
    lower = _half_lower(inner)
    a_bar = plus(q_bar, np.matmul(q, lower + adjoint(lower)))
    a_bar = _over(a_bar, adjoint(r1))
    if n > k:
        if rest_bar is None:
            rest_bar = np.zeros_like(a[..., k:])
        a_bar = np.concatenate([a_bar, rest_bar], axis=-1)
    return a_bar


@qr.def_vjp
def qr_vjp(primals, out, *, mode):
    (a,), (q, r) = primals, out
    complete = _is_complete(shape_of(a), mode)

    def qr_pullback(out_bar):
        q_bar, r_bar = (None if bar is None else conj(bar) for bar in out_bar)
        return quiet(conj(_pull_qr(a, q, r, q_bar, r_bar, complete)), *out_bar)

    return qr_pullback


broadcasting(qr, 2)


def _qr_projectors(a: Any, mode: Any = "reduced") -> Any:
    q, r = np.linalg.qr(a, mode)
    k = min(shape_of(a)[-2:])
    rest = q[..., k:]
    return q[..., :k], r, np.matmul(rest, adjoint(rest))


@qr.def_samples
def qr_samples(rng):
    for shape in ((3, 3), (4, 2), (2, 4), (2, 1, 3, 2), (2, 2, 3), (3, 1), (1, 3), (1, 1)):
        yield Sample(rng.normal(size=shape))
    for shape in ((3, 3), (4, 2), (2, 3), (2, 3, 1)):
        yield Sample(rng.normal(size=shape), "complete", fun=_qr_projectors)
    for shape in ((0, 2, 2), (0, 2), (2, 0), (0, 0)):
        yield Sample(np.zeros(shape))
    yield Sample(np.zeros((2, 0)), mode="complete")


@qr_r.def_jvp
def qr_r_jvp(primals, tangents, out):
    return qr_jvp(primals, tangents, np.linalg.qr(primals[0]), mode="reduced")[1]


@qr_r.def_vjp
def qr_r_vjp(primals, out):
    (a,) = primals
    q = np.linalg.qr(a)[0]

    def qr_r_pullback(out_bar):
        return quiet(conj(_pull_qr(a, q, out, None, conj(out_bar), False)), out_bar)

    return qr_r_pullback


broadcasting(qr_r, 2)


@qr_r.def_samples
def qr_r_samples(rng):
    for shape in ((3, 3), (4, 2), (2, 4), (2, 1, 3, 2), (0, 2, 2), (2, 0)):
        yield Sample(rng.normal(size=shape), mode="r", fun=np.linalg.qr)
