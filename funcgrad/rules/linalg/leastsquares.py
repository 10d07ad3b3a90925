"""Pseudoinverses and least squares: `pinv` and `lstsq`.

Both are differentiable where the rank does not change, with the derivative of G. H. Golub and
V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose
variables separate", SIAM J. Numer. Anal. 10 (1973). What `rcond` cuts off counts as exactly zero
for the derivative also. The cotangents are transposes in the sense of Re sum(x_bar * x_dot).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.batch import by_loop, loop
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import shape_of
from funcgrad.rules.linalg.spectra import as_read, read_back, triangle
from funcgrad.rules.linalg.stacks import adjoint, columns, hermitian_part, transposed, uncolumns
from funcgrad.rules.matmul import conj
from funcgrad.rules.reducing import NOT_GIVEN, plus
from funcgrad.rules.spelling import as_arrays

__all__ = ["inverse_dot", "pull_inverse"]

_EPS = float(np.finfo(np.float64).eps)


def inverse_dot(a: Any, a_dot: Any, p: Any) -> Any:
    """Return the tangent of ``p = pinv(a)``, formula 4.12 of Golub and Pereyra."""
    dual = adjoint(a_dot)
    left = np.matmul(np.matmul(p, adjoint(p)), dual)
    right = np.matmul(dual, np.matmul(adjoint(p), p))
    return (
        left
        - np.matmul(np.matmul(left, a), p)
        + right
        - np.matmul(p, np.matmul(a, right))
        - np.matmul(np.matmul(p, a_dot), p)
    )


def pull_inverse(a: Any, p: Any, p_bar: Any) -> Any:
    """Return the cotangent of `a` from that of ``p = pinv(a)``, the transpose of `inverse_dot`."""
    dual, bar, back = adjoint(p), transposed(p_bar), transposed(p)
    left = np.matmul(np.matmul(bar, p), dual)
    right = np.matmul(np.matmul(dual, p), bar)
    outside = left - np.matmul(a, np.matmul(p, left)) + right - np.matmul(np.matmul(right, p), a)
    return conj(outside) - np.matmul(np.matmul(back, p_bar), back)


@primitive(overrides=(np.linalg.pinv,), canonical=as_arrays)
def pinv(a, *, rcond=None, hermitian=False, rtol=NOT_GIVEN):
    """Pseudoinverse of each matrix of a stack."""
    return np.linalg.pinv(a, rcond, hermitian, rtol=rtol)


@pinv.def_jvp
def pinv_jvp(primals, tangents, out, *, rcond, hermitian, rtol):
    (a,), (a_dot,) = primals, tangents
    if hermitian:
        a, a_dot = _hermitian(a), as_read(a_dot, triangle(a, True))
    return inverse_dot(a, a_dot, out)


@pinv.def_vjp
def pinv_vjp(primals, out, *, rcond, hermitian, rtol):
    (a,) = primals

    def pinv_pullback(out_bar):
        if hermitian:
            return read_back(pull_inverse(_hermitian(a), out, out_bar), triangle(a, True))
        return pull_inverse(a, out, out_bar)

    return pinv_pullback


def _hermitian(a: Any) -> Any:
    """Return the matrix of which NumPy reads the lower triangle."""
    lower = np.tril(a, -1)
    return lower + adjoint(lower) + np.real(a) * np.eye(shape_of(a)[-1])


@pinv.def_batch
def pinv_batch(args, batched, **params):
    (a,) = args
    stacked = len(shape_of(a)) - 3
    cutoffs = (params["rcond"], params["rtol"])
    if stacked < 0 or any(len(shape_of(cutoff)) > stacked for cutoff in cutoffs):
        return loop(pinv.bind, args, batched, params)  # its axis is not that of the examples
    return pinv.bind(a, **params)


def _hermitian_pinv(a: Any) -> Any:
    return np.linalg.pinv(hermitian_part(a), hermitian=True)


@pinv.def_samples
def pinv_samples(rng):
    a = rng.normal(size=(3, 2))
    yield Sample(a)
    yield Sample(a.T)
    yield Sample(rng.normal(size=(2, 1, 2, 2)) + 2 * np.eye(2))
    yield Sample(rng.normal(size=(2, 3, 2)), rcond=np.array([1e-10, 1e-12]))
    yield Sample(rng.normal(size=(2, 3)), rtol=1e-8)
    yield Sample(rng.normal(size=(2, 3)), rtol=None)
    yield Sample(rng.normal(size=(1, 1)))
    yield Sample(np.zeros((0, 3)))
    yield Sample(np.zeros((0, 2, 3)))
    yield Sample(rng.normal(size=(2, 3, 3)), fun=_hermitian_pinv)
    # Differences would change the rank.
    yield Sample(np.outer(rng.normal(size=3), a[:, 0]), kinks=True)
    yield Sample(np.zeros((2, 3)), kinks=True)


@primitive(overrides=(np.linalg.lstsq,), canonical=as_arrays)
def lstsq(a, b, *, rcond=None):
    """Least-squares solution, the sums of squared residuals, the rank and the singular values."""
    return tuple(np.linalg.lstsq(a, b, rcond))


def _pseudoinverse(a: Any, rcond: Any) -> Any:
    """Return that of `a`, of the rank that `lstsq` sees, which computes in double precision."""
    if rcond is None:
        rcond = _EPS * max(shape_of(a))
    elif rcond < 0:
        rcond = _EPS  # as LAPACK has it
    return np.linalg.pinv(a, rcond)


@lstsq.def_jvp
def lstsq_jvp(primals, tangents, out, *, rcond):
    (a, b), (a_dot, b_dot) = primals, tangents
    vector = len(shape_of(b)) == 1
    x = columns(out[0], vector)
    left = columns(b, vector) - np.matmul(a, x)
    right: Any = None if b_dot is None else columns(b_dot, vector)
    if a_dot is not None:
        right = plus(right, -np.matmul(a_dot, x))
    p = _pseudoinverse(a, rcond)
    x_dot = np.matmul(p, right)
    s_dot = None
    if a_dot is not None:
        dual = adjoint(a_dot)
        turn = np.matmul(dual, np.matmul(adjoint(p), x))
        x_dot = (
            x_dot
            + np.matmul(p, np.matmul(adjoint(p), np.matmul(dual, left)))
            + turn
            - np.matmul(p, np.matmul(a, turn))
        )
        u, _, vh = np.linalg.svd(a, full_matrices=False)
        s_dot = np.real(np.sum(conj(u) * np.matmul(a_dot, adjoint(vh)), axis=0))
    left_dot = None
    if shape_of(out[1])[0]:
        left_dot = 2 * np.sum(np.real(conj(left) * right), axis=0)
    return uncolumns(x_dot, vector), left_dot, None, s_dot


@lstsq.def_vjp
def lstsq_vjp(primals, out, *, rcond):
    a, b = primals
    vector = len(shape_of(b)) == 1

    def right_bar(out_bar, p):
        """Pull back to ``b_dot - a_dot @ x``."""
        x_bar, left_bar = out_bar[:2]
        bar = None if x_bar is None else np.matmul(transposed(p), columns(x_bar, vector))
        if left_bar is not None and shape_of(out[1])[0]:
            left = columns(b, vector) - np.matmul(a, columns(out[0], vector))
            bar = plus(bar, 2 * left_bar * conj(left))
        return bar

    def lstsq_pullback_a(out_bar):
        x_bar, _, _, s_bar = out_bar
        p = _pseudoinverse(a, rcond)
        x = columns(out[0], vector)
        right = right_bar(out_bar, p)
        a_bar = None if right is None else -np.matmul(right, transposed(x))
        if x_bar is not None:
            bar = transposed(columns(x_bar, vector))  # (k, n)
            back = np.matmul(bar, p)
            left = columns(b, vector) - np.matmul(a, x)
            residual = np.matmul(left, np.matmul(back, adjoint(p)))
            turn = np.matmul(np.matmul(adjoint(p), x), bar - np.matmul(back, a))
            a_bar = plus(a_bar, conj(residual + turn))
        if s_bar is not None:
            u, _, vh = np.linalg.svd(a, full_matrices=False)
            a_bar = plus(a_bar, conj(np.matmul(u * s_bar, vh)))
        return a_bar

    def lstsq_pullback_b(out_bar):
        right = right_bar(out_bar, _pseudoinverse(a, rcond))
        return None if right is None else uncolumns(right, vector)

    return lstsq_pullback_a, lstsq_pullback_b


by_loop(lstsq)


def _two_of_rank(a: Any, b: Any) -> Any:
    """Return what does not change with the rank: the rank of the product is at most two."""
    return np.linalg.lstsq(np.matmul(a, a[:2]), b, 1e-8)[0]


@lstsq.def_samples
def lstsq_samples(rng):
    a = rng.normal(size=(4, 2))
    yield Sample(a, rng.normal(size=4))
    yield Sample(a, rng.normal(size=(4, 3)))
    yield Sample(a.T, rng.normal(size=2))
    yield Sample(rng.normal(size=(2, 2)) + 2 * np.eye(2), rng.normal(size=(2, 1)), rcond=-1)
    yield Sample(a, rng.normal(size=(4, 0)))
    yield Sample(a, [1.0, 2.0, 3.0, 4.0])
    yield Sample(rng.normal(size=(4, 2)), rng.normal(size=4), fun=_two_of_rank)
