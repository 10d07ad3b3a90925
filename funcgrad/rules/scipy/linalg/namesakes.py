"""What `scipy.linalg` has under the same name as NumPy: `solve`, `inv`, `det`, `pinv` and `norm`.

SciPy computes the values, with its own options, and the rules are those of the functions of the
same name in `numpy.linalg`. Where an option says that a matrix has a structure, SciPy reads a part
of it, and the derivative is that of what is read. The decompositions are in
`funcgrad.rules.scipy.linalg.decompositions`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from funcgrad.core.batch import broadcasting, by_loop
from funcgrad.core.primitive import Sample
from funcgrad.core.zero import dtype_of, shape_of, zero_wins
from funcgrad.rules.linalg import norms
from funcgrad.rules.linalg.determinants import cofactors
from funcgrad.rules.linalg.leastsquares import inverse_dot, pull_inverse
from funcgrad.rules.linalg.spectra import as_read, read_back, triangle
from funcgrad.rules.linalg.stacks import (
    adjoint,
    as_matrix,
    columns,
    hermitian_part,
    regular,
    transposed,
    uncolumns,
)
from funcgrad.rules.reducing import plus
from funcgrad.rules.scipy.adopt import adopt, folding

__all__ = [
    "det",
    "inv",
    "norm",
    "pinv",
    "pinvh",
    "solve",
]

# What SciPy reads of a matrix

_HERMITIAN = {"sym", "symmetric", "her", "hermitian", "pos", "positive definite"}


def _is_symmetric(a: Any, assume_a: Any) -> bool:
    """Tell whether a matrix is symmetric and not Hermitian."""
    return dtype_of(a).kind == "c" and assume_a in ("sym", "symmetric")


def _part(x: Any, assume_a: Any) -> Any:
    """Return what counts of a matrix of structure."""
    if assume_a == "upper triangular":
        return np.triu(x)
    if assume_a == "lower triangular":
        return np.tril(x)
    if assume_a == "diagonal":
        return x * np.eye(shape_of(x)[-1])
    if assume_a == "tridiagonal":
        return np.triu(np.tril(x, 1), -1)
    return x


def _whole(a: Any, assume_a: Any, lower: Any) -> Any:
    """Return the matrix that SciPy takes `a` for."""
    if assume_a not in _HERMITIAN:
        return _part(a, assume_a)
    half = np.tril(a, -1) if lower else np.triu(a, 1)
    diagonal = a * np.eye(shape_of(a)[-1])
    if _is_symmetric(a, assume_a):
        return half + transposed(half) + diagonal
    return half + adjoint(half) + np.real(diagonal)


def _push_whole(a: Any, a_dot: Any, assume_a: Any, lower: Any) -> Any:
    if assume_a not in _HERMITIAN:
        return _part(a_dot, assume_a)
    if _is_symmetric(a, assume_a):
        return (a_dot + transposed(a_dot)) / 2
    return as_read(a_dot, triangle(a, lower))


def _pull_whole(a: Any, a_bar: Any, assume_a: Any, lower: Any) -> Any:
    if assume_a not in _HERMITIAN:
        return _part(a_bar, assume_a)
    if _is_symmetric(a, assume_a):
        return (a_bar + transposed(a_bar)) / 2
    return read_back(a_bar, triangle(a, lower))


solve = adopt(scipy.linalg.solve, "a", "b", summary="Solution of a system of linear equations.")


@solve.def_jvp
def solve_jvp(primals, tangents, out, *, assume_a=None, lower=False, transposed=False, **options):
    (a, b), (a_dot, b_dot) = primals, tangents
    vector = len(shape_of(b)) == 1
    right: Any = None if b_dot is None else columns(b_dot, vector)
    if a_dot is not None:
        a_dot = _push_whole(a, a_dot, assume_a, lower)
        if transposed:
            a_dot = np.swapaxes(a_dot, -1, -2)
        right = plus(right, -np.matmul(a_dot, columns(out, vector)))
    a = _whole(a, assume_a, lower)
    return uncolumns(np.linalg.solve(np.swapaxes(a, -1, -2) if transposed else a, right), vector)


@solve.def_vjp
def solve_vjp(primals, out, *, assume_a=None, lower=False, transposed=False, **options):
    a, b = primals
    vector = len(shape_of(b)) == 1

    def back(out_bar):
        whole = _whole(a, assume_a, lower)
        whole = whole if transposed else np.swapaxes(whole, -1, -2)
        return np.linalg.solve(whole, columns(out_bar, vector))

    def solve_pullback_a(out_bar):
        a_bar = -np.matmul(back(out_bar), np.swapaxes(columns(out, vector), -1, -2))
        a_bar = np.swapaxes(a_bar, -1, -2) if transposed else a_bar
        return _pull_whole(a, a_bar, assume_a, lower)

    def solve_pullback_b(out_bar):
        return uncolumns(back(out_bar), vector)

    return solve_pullback_a, solve_pullback_b


folding(solve)


def _solve_hermitian(a: Any, b: Any, **options: Any) -> Any:
    return solve.call(hermitian_part(a), b, **options)


@solve.def_samples
def solve_samples(rng):
    a, b = regular(rng, 3, 3), rng.normal(size=(3, 2))
    yield Sample(a, b[:, 0])
    yield Sample(a, b)
    yield Sample(a, b, transposed=True, complex=False)
    yield Sample(a, b, assume_a="gen")
    yield Sample(a, b, assume_a="sym", complex=False)
    yield Sample(a + a.T, b, assume_a="her", lower=True, fun=_solve_hermitian)
    yield Sample(a @ a.T + np.eye(3), b, assume_a="pos", fun=_solve_hermitian)


inv = adopt(scipy.linalg.inv, "a", summary="Inverse of a matrix.")


@inv.def_jvp
def inv_jvp(primals, tangents, out, *, assume_a=None, lower=False, **options):
    (a,), (a_dot,) = primals, tangents
    a_dot = _push_whole(a, a_dot, assume_a, lower)
    return -np.matmul(np.matmul(out, a_dot), out)


@inv.def_vjp
def inv_vjp(primals, out, *, assume_a=None, lower=False, **options):
    (a,) = primals

    def inv_pullback(out_bar):
        back = transposed(out)
        return _pull_whole(a, -np.matmul(np.matmul(back, out_bar), back), assume_a, lower)

    return inv_pullback


by_loop(inv)


@inv.def_samples
def inv_samples(rng):
    yield Sample(regular(rng, 3, 3))
    yield Sample(regular(rng, 1, 1))


det = adopt(scipy.linalg.det, "a", summary="Determinant; its derivative is made of cofactors.")


@det.def_jvp
def det_jvp(primals, tangents, out, **options):
    (a,), (a_dot,) = primals, tangents
    return np.sum(zero_wins(cofactors(a, out) * a_dot, a_dot), axis=(-2, -1))


@det.def_vjp
def det_vjp(primals, out, **options):
    (a,) = primals

    def det_pullback(out_bar):
        out_bar = as_matrix(out_bar)
        return zero_wins(out_bar * cofactors(a, out), out_bar)

    return det_pullback


broadcasting(det, 2)


@det.def_samples
def det_samples(rng):
    yield Sample(rng.normal(size=(3, 3)))
    yield Sample(rng.normal(size=(2, 2, 2)))
    yield Sample(np.ones((2, 2)))


_RANK = {"return_rank": "use numpy.linalg.matrix_rank for the rank"}
pinv = adopt(scipy.linalg.pinv, "a", summary="Pseudoinverse of a matrix.", refused=_RANK)


@pinv.def_jvp
def pinv_jvp(primals, tangents, out, **options):
    (a,), (a_dot,) = primals, tangents
    return inverse_dot(a, a_dot, out)


@pinv.def_vjp
def pinv_vjp(primals, out, **options):
    (a,) = primals

    def pinv_pullback(out_bar):
        return pull_inverse(a, out, out_bar)

    return pinv_pullback


by_loop(pinv)


@pinv.def_samples
def pinv_samples(rng):
    yield Sample(rng.normal(size=(3, 2)))
    yield Sample(rng.normal(size=(2, 3)), rtol=1e-10)


pinvh = adopt(
    scipy.linalg.pinvh, "a", summary="Pseudoinverse of a Hermitian matrix.", refused=_RANK
)


@pinvh.def_jvp
def pinvh_jvp(primals, tangents, out, *, lower=True, **options):
    (a,), (a_dot,) = primals, tangents
    a_dot = as_read(a_dot, triangle(a, lower))
    return inverse_dot(_whole(a, "her", lower), a_dot, out)


@pinvh.def_vjp
def pinvh_vjp(primals, out, *, lower=True, **options):
    (a,) = primals

    def pinvh_pullback(out_bar):
        a_bar = pull_inverse(_whole(a, "her", lower), out, out_bar)
        return read_back(a_bar, triangle(a, lower))

    return pinvh_pullback


by_loop(pinvh)


def _pinvh_of_part(a: Any, **options: Any) -> Any:
    return pinvh.call(hermitian_part(a), **options)


@pinvh.def_samples
def pinvh_samples(rng):
    yield Sample(regular(rng, 3, 3), fun=_pinvh_of_part)
    yield Sample(regular(rng, 2, 2), lower=False, fun=_pinvh_of_part)


norm = adopt(scipy.linalg.norm, "a", summary="Norm of a vector or a matrix.")


@norm.def_jvp
def norm_jvp(primals, tangents, out, *, ord=None, axis=None, keepdims=False, **options):
    (a,), (a_dot,) = primals, tangents
    return norms.push_norm(a, a_dot, out, ord, *norms.settings(a, ord, axis), keepdims)


@norm.def_vjp
def norm_vjp(primals, out, *, ord=None, axis=None, keepdims=False, **options):
    (a,) = primals
    return norms.pull_norm(a, out, ord, *norms.settings(a, ord, axis), keepdims)


@norm.def_batch
def norm_batch(args, batched, *, ord=None, axis=None, keepdims=False, **options):
    return norms.norm_batch(args, batched, ord=ord, axis=axis, keepdims=keepdims)


@norm.def_samples
def norm_samples(rng):
    yield Sample(rng.normal(size=3))
    yield Sample(rng.normal(size=(2, 3)), axis=1)
    for ord in (1, 2, np.inf, "fro", "nuc"):
        yield Sample(rng.normal(size=(2, 2)), ord)
