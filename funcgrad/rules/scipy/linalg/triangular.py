"""Triangular systems and Cholesky factors from `scipy.linalg`.

Each function reads a triangle of a matrix, so that its derivative in the other is zero. But for
`cho_factor`, which leaves there what was in the matrix: tangents and cotangents pass through.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from funcgrad.core.batch import by_loop
from funcgrad.core.primitive import Sample
from funcgrad.core.zero import shape_of
from funcgrad.rules.linalg import factorizations
from funcgrad.rules.linalg.stacks import (
    adjoint,
    columns,
    hermitian_part,
    regular,
    transposed,
    uncolumns,
)
from funcgrad.rules.matmul import conj
from funcgrad.rules.reducing import plus
from funcgrad.rules.scipy.adopt import adopt, document, folding, in_place_of, pull, push
from funcgrad.rules.spelling import as_array

__all__ = ["cho_factor", "cho_solve", "cholesky", "half", "solve_triangular"]


def half(x: Any, lower: Any, skip: int = 0) -> Any:
    """Return a triangle of `x`, without that many diagonals."""
    return np.tril(x, -skip) if lower else np.triu(x, skip)


solve_triangular = adopt(
    scipy.linalg.solve_triangular, "a", "b", summary="Solution of a triangular system."
)

# How the matrix is read for each value of `trans`.
_TRANS = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


def read(a: Any, trans: Any) -> Any:
    """Return `a`, its transpose or its adjoint."""
    trans = _TRANS[trans]
    return a if trans == 0 else transposed(a) if trans == 1 else adjoint(a)


@solve_triangular.def_jvp
def solve_triangular_jvp(primals, tangents, out, *, trans=0, **options):
    (a, b), (a_dot, right) = primals, tangents
    if a_dot is not None:
        vector = len(shape_of(b)) == 1
        skip = int(options.get("unit_diagonal", False))
        a_dot = read(half(a_dot, options.get("lower", False), skip), trans)
        right = plus(right, -uncolumns(np.matmul(a_dot, columns(out, vector)), vector))
    return solve_triangular.bind(a, right, trans=trans, **options)


@solve_triangular.def_vjp
def solve_triangular_vjp(primals, out, *, trans=0, **options):
    a, b = primals
    vector = len(shape_of(b)) == 1

    def solve_triangular_pullback_b(out_bar):
        if _TRANS[trans] == 2:
            return conj(solve_triangular.bind(a, conj(out_bar), trans=0, **options))
        return solve_triangular.bind(a, out_bar, trans=1 - _TRANS[trans], **options)

    def solve_triangular_pullback_a(out_bar):
        right = columns(solve_triangular_pullback_b(out_bar), vector)
        a_bar = read(-np.matmul(right, transposed(columns(out, vector))), trans)
        skip = int(options.get("unit_diagonal", False))
        return half(a_bar, options.get("lower", False), skip)

    return solve_triangular_pullback_a, solve_triangular_pullback_b


folding(solve_triangular)


@solve_triangular.def_samples
def solve_triangular_samples(rng):
    a = regular(rng, 3, 3)
    yield Sample(a, rng.normal(size=3))
    yield Sample(a, rng.normal(size=(3, 2)), lower=True)
    for trans in (1, 2, "T", "C"):
        yield Sample(a, rng.normal(size=3), trans, True)
    yield Sample(a, rng.normal(size=(3, 1)), trans="N", unit_diagonal=True)
    yield Sample(a, rng.normal(size=(3, 2)), trans=2, lower=True, unit_diagonal=True)


# Cholesky factors. The rules are those of NumPy's, which reads the same triangle.

cholesky = adopt(
    scipy.linalg.cholesky,
    "a",
    summary="Cholesky factor; the derivative is that along Hermitian matrices.",
)


@cholesky.def_jvp
def cholesky_jvp(primals, tangents, out, *, lower=False, **options):
    return push(factorizations.cholesky, primals, tangents, out, upper=not lower)


@cholesky.def_vjp
def cholesky_vjp(primals, out, *, lower=False, **options):
    return pull(factorizations.cholesky, primals, out, upper=not lower)


by_loop(cholesky)


def _positive(x: Any) -> Any:
    """Return a positive definite matrix made of any."""
    return np.matmul(x, adjoint(x)) + 0.5 * np.eye(shape_of(x)[-1])


def _cholesky_of_product(x: Any, **options: Any) -> Any:
    return cholesky.call(_positive(x), **options)


@cholesky.def_samples
def cholesky_samples(rng):
    yield Sample(rng.normal(size=(3, 3)), fun=_cholesky_of_product)
    yield Sample(rng.normal(size=(2, 2)), lower=True, fun=_cholesky_of_product)


def _factor(a, *, lower=False, check_finite=True):
    return scipy.linalg.cho_factor(a, lower, check_finite=check_finite)[0]


cho_factor = adopt(
    scipy.linalg.cho_factor,
    "a",
    summary="Cholesky factor, in a triangle of a matrix, for use in `cho_solve`.",
    forward=_factor,
)


@cho_factor.def_jvp
def cho_factor_jvp(primals, tangents, out, *, lower=False, **options):
    (a_dot,) = tangents
    factor = half(out, lower)
    factor_dot = push(factorizations.cholesky, primals, tangents, factor, upper=not lower)
    return factor_dot + half(a_dot, not lower, 1)


@cho_factor.def_vjp
def cho_factor_vjp(primals, out, *, lower=False, **options):
    pullback = pull(factorizations.cholesky, primals, half(out, lower), upper=not lower)

    def cho_factor_pullback(out_bar):
        return pullback(half(out_bar, lower)) + half(out_bar, not lower, 1)

    return cho_factor_pullback


by_loop(cho_factor)
_bare = cho_factor.call


@in_place_of(scipy.linalg.cho_factor)
def _cho_factor(a, lower=False, overwrite_a=False, check_finite=True):
    return _bare(a, lower=lower, check_finite=check_finite), lower


cho_factor.call = document(
    _cho_factor,
    scipy.linalg.cho_factor,
    "Cholesky factor, in a triangle of a matrix, for use in `cho_solve`.",
)


def _factor_of_product(x: Any, lower: bool = False) -> Any:
    return cho_factor.call(_positive(x), lower)[0]


@cho_factor.def_samples
def cho_factor_samples(rng):
    yield Sample(rng.normal(size=(3, 3)), fun=_factor_of_product)
    yield Sample(rng.normal(size=(2, 2)), True, fun=_factor_of_product)


def _solve_by_factor(c, b, *, lower, check_finite=True):
    return scipy.linalg.cho_solve((c, lower), b, check_finite=check_finite)


cho_solve = adopt(
    scipy.linalg.cho_solve,
    "c_and_lower",
    "b",
    summary="Solution of a system, given the Cholesky factor of its matrix.",
    forward=_solve_by_factor,
)


@cho_solve.def_jvp
def cho_solve_jvp(primals, tangents, out, *, lower, **options):
    (c, b), (c_dot, right) = primals, tangents
    if c_dot is not None:
        vector = len(shape_of(b)) == 1
        x = columns(out, vector)
        factor, c_dot = half(c, lower), half(c_dot, lower)
        if not lower:
            factor, c_dot = adjoint(factor), adjoint(c_dot)
        turn = np.matmul(c_dot, np.matmul(adjoint(factor), x))
        turn = turn + np.matmul(factor, np.matmul(adjoint(c_dot), x))
        right = plus(right, -uncolumns(turn, vector))
    return cho_solve.bind(c, right, lower=lower, **options)


@cho_solve.def_vjp
def cho_solve_vjp(primals, out, *, lower, **options):
    c, b = primals
    vector = len(shape_of(b)) == 1

    def cho_solve_pullback_b(out_bar):
        # The matrix is Hermitian: its transpose is its conjugate.
        return conj(cho_solve.bind(c, conj(out_bar), lower=lower, **options))

    def cho_solve_pullback_c(out_bar):
        right = -columns(cho_solve_pullback_b(out_bar), vector)
        x = columns(out, vector)
        factor = half(c, lower)
        if not lower:
            factor = adjoint(factor)
        c_bar = np.matmul(right, np.matmul(transposed(x), conj(factor)))
        c_bar = c_bar + conj(np.matmul(x, np.matmul(transposed(right), factor)))
        return half(c_bar if lower else adjoint(c_bar), lower)

    return cho_solve_pullback_c, cho_solve_pullback_b


folding(cho_solve)


@in_place_of(scipy.linalg.cho_solve)
def _cho_solve(c_and_lower, b, overwrite_b=False, check_finite=True):
    c, lower = c_and_lower
    return cho_solve.bind(as_array(c), as_array(b), lower=lower, check_finite=check_finite)


cho_solve.call = document(
    _cho_solve,
    scipy.linalg.cho_solve,
    "Solution of a system, given the Cholesky factor of its matrix.",
)


def _solve_lower(c: Any, b: Any) -> Any:
    return cho_solve.call((c, True), b)


def _solve_upper(c: Any, b: Any) -> Any:
    return cho_solve.call((c, False), b)


def _solve_positive(a: Any, b: Any) -> Any:
    return cho_solve.call(cho_factor.call(hermitian_part(a)), b)


@cho_solve.def_samples
def cho_solve_samples(rng):
    yield Sample(regular(rng, 3, 3), rng.normal(size=3), fun=_solve_lower)
    yield Sample(regular(rng, 3, 3), rng.normal(size=(3, 2)), fun=_solve_upper)
    yield Sample(6 * np.eye(3) + regular(rng, 3, 3), rng.normal(size=3), fun=_solve_positive)
