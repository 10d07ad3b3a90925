"""LU factors from `scipy.linalg`: `lu`, `lu_factor`, `lu_solve`.

Rows are exchanged by the sizes of pivots, so that the permutation is constant near a matrix. With
``m = inv(lower) @ da @ inv(upper)``, of rows in the new order, the lower triangle of `m` is what
changes `lower` and the upper one what changes `upper`; a factor that is not square has a part
beside it that follows by elimination (F. de Hoog, R. Anderssen, M. Lukas, "Differentiation of
matrix functionals using triangular factorization", 2011).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg

from funcgrad.core.batch import by_loop
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.linalg.stacks import columns, transposed, uncolumns
from funcgrad.rules.reducing import plus
from funcgrad.rules.scipy.adopt import adopt, document, folding, in_place_of
from funcgrad.rules.scipy.linalg.triangular import half, read, solve_triangular
from funcgrad.rules.spelling import as_array

__all__ = ["lu", "lu_factor", "lu_solve"]


def _left(lower: Any, x: Any, trans: int = 0) -> Any:
    """Return ``inv(lower) @ x``, or of the transpose of `lower`."""
    return solve_triangular.bind(lower, x, trans=trans, lower=True, unit_diagonal=True)


def _right(x: Any, upper: Any, trans: int = 0) -> Any:
    """Return ``x @ inv(upper)``, or of the transpose of `upper`."""
    return transposed(solve_triangular.bind(upper, transposed(x), trans=1 - trans))


def _rows(x: Any, order: Any) -> Any:
    """Return ``x[order]``, of each matrix of a stack."""
    return np.take_along_axis(x, np.expand_dims(order, -1), axis=-2)


def _inverse(order: Any) -> Any:
    return np.argsort(order, axis=-1)


def factors_dot(lower: Any, upper: Any, a_dot: Any) -> Any:
    """Return the tangents of both factors; `a_dot` has the rows in the order of the factors."""
    (m, k), n = shape_of(lower)[-2:], shape_of(upper)[-1]
    top, corner = lower[..., :k, :], upper[..., :k]
    inner = _right(_left(top, a_dot[..., :k, :k]), corner)
    l_dot, u_dot = np.matmul(top, np.tril(inner, -1)), np.matmul(np.triu(inner), corner)
    if m > k:
        below = _right(a_dot[..., k:, :] - np.matmul(lower[..., k:, :], u_dot), corner)
        l_dot = np.concatenate([l_dot, below], axis=-2)
    if n > k:
        beside = _left(top, a_dot[..., k:] - np.matmul(l_dot, upper[..., k:]))
        u_dot = np.concatenate([u_dot, beside], axis=-1)
    return l_dot, u_dot


def pull_factors(lower: Any, upper: Any, l_bar: Any, u_bar: Any) -> Any:
    """Return the cotangent of the matrix, with the rows in the order of the factors."""
    (m, k), n = shape_of(lower)[-2:], shape_of(upper)[-1]
    top, corner = lower[..., :k, :], upper[..., :k]
    l_bar = np.zeros_like(lower) if l_bar is None else l_bar
    u_bar = np.zeros_like(upper) if u_bar is None else u_bar
    below = beside = None
    if m > k:
        below = _right(l_bar[..., k:, :], corner, 1)
        u_bar = u_bar - np.matmul(transposed(lower[..., k:, :]), below)
        l_bar = l_bar[..., :k, :]
    if n > k:
        beside = _left(top, u_bar[..., k:], 1)
        l_bar = l_bar - np.matmul(beside, transposed(upper[..., k:]))
        u_bar = u_bar[..., :k]
    inner = np.tril(np.matmul(transposed(top), l_bar), -1)
    inner = inner + np.triu(np.matmul(u_bar, transposed(corner)))
    a_bar = _right(_left(top, inner, 1), corner, 1)
    if below is not None:
        a_bar = np.concatenate([a_bar, below], axis=-2)
    return a_bar if beside is None else np.concatenate([a_bar, beside], axis=-1)


@primitive(name="scipy_lu")
def lu_parts(a, *, check_finite=True):
    """The order of the rows, and both factors."""
    return scipy.linalg.lu(a, check_finite=check_finite, p_indices=True)


@lu_parts.def_jvp
def lu_parts_jvp(primals, tangents, out, **options):
    (a_dot,), (p, lower, upper) = tangents, out
    return None, *factors_dot(lower, upper, _rows(a_dot, _inverse(p)))


@lu_parts.def_vjp
def lu_parts_vjp(primals, out, **options):
    p, lower, upper = out

    def lu_pullback(out_bar):
        _, l_bar, u_bar = out_bar
        return _rows(pull_factors(lower, upper, l_bar, u_bar), p)

    return lu_pullback


by_loop(lu_parts)


@in_place_of(scipy.linalg.lu)
def _lu(a, permute_l=False, overwrite_a=False, check_finite=True, p_indices=False):
    p, lower, upper = lu_parts.bind(as_array(a), check_finite=check_finite)
    if permute_l:
        return _rows(lower, p), upper
    if p_indices:
        return p, lower, upper
    places = np.equal(np.expand_dims(p, -1), np.arange(shape_of(lower)[-2]))
    return places.astype(np.real(np.zeros(1, dtype_of(lower))).dtype), lower, upper


lu = document(_lu, scipy.linalg.lu, "LU factors of a matrix, with the rows in another order.")
lu_parts.overridden = (lu,)


@lu_parts.def_samples
def lu_samples(rng):
    yield Sample(rng.normal(size=(3, 3)), p_indices=True)
    yield Sample(rng.normal(size=(3, 3)), permute_l=True)
    yield Sample(rng.normal(size=(4, 2)))
    yield Sample(rng.normal(size=(2, 4)))
    yield Sample(rng.normal(size=(2, 3, 2)), permute_l=True)
    yield Sample(rng.normal(size=(1, 1)), complex=False)  # SciPy's L is then real


lu_factor = adopt(
    scipy.linalg.lu_factor,
    "a",
    summary="LU factors in one matrix, and the pivots, for use in `lu_solve`.",
)


@primitive()
def order_of_pivots(piv):
    """The order of rows that a sequence of exchanges makes."""
    *lead, n = piv.shape
    order = np.broadcast_to(np.arange(n), piv.shape).copy()
    stacked, rows = (x.reshape(math.prod(lead), n) for x in (order, piv))
    each = np.arange(len(rows))
    for row in range(n):
        other = rows[:, row]
        stacked[each, other], stacked[:, row] = stacked[:, row], stacked[each, other]
    return stacked.reshape(*lead, n)


order_of_pivots.not_differentiable("positions")
by_loop(order_of_pivots)


def _split(lu: Any) -> tuple[Any, Any]:
    """Return the two factors that are in one square matrix."""
    return np.tril(lu, -1) + np.eye(shape_of(lu)[-1]), np.triu(lu)


@lu_factor.def_jvp
def lu_factor_jvp(primals, tangents, out, **options):
    (a_dot,) = tangents
    l_dot, u_dot = factors_dot(*_split(out[0]), _rows(a_dot, order_of_pivots.bind(out[1])))
    return np.tril(l_dot, -1) + np.triu(u_dot), None


@lu_factor.def_vjp
def lu_factor_vjp(primals, out, **options):
    def lu_factor_pullback(out_bar):
        bar = out_bar[0]
        if bar is None:
            return None
        a_bar = pull_factors(*_split(out[0]), np.tril(bar, -1), np.triu(bar))
        return _rows(a_bar, _inverse(order_of_pivots.bind(out[1])))

    return lu_factor_pullback


by_loop(lu_factor)


@lu_factor.def_samples
def lu_factor_samples(rng):
    yield Sample(rng.normal(size=(3, 3)))
    yield Sample(rng.normal(size=(1, 1)))


def _solve(lu, piv, b, *, trans=0, check_finite=True):
    return scipy.linalg.lu_solve((lu, piv), b, trans, check_finite=check_finite)


_SUMMARY = "Solution of a system, given the LU factors of its matrix."
lu_solve = adopt(scipy.linalg.lu_solve, summary=_SUMMARY, forward=_solve)


@lu_solve.def_jvp
def lu_solve_jvp(primals, tangents, out, *, trans=0, **options):
    (lu, piv, b), (lu_dot, _, right) = primals, tangents
    if lu_dot is not None:
        vector = len(shape_of(b)) == 1
        lower, upper = _split(lu)
        a_dot = np.matmul(half(lu_dot, True, 1), upper) + np.matmul(lower, half(lu_dot, False))
        a_dot = read(_rows(a_dot, _inverse(order_of_pivots.bind(piv))), trans)
        right = plus(right, -uncolumns(np.matmul(a_dot, columns(out, vector)), vector))
    return lu_solve.bind(lu, piv, right, trans=trans, **options)


@lu_solve.def_vjp
def lu_solve_vjp(primals, out, *, trans=0, **options):
    lu, piv, b = primals
    vector = len(shape_of(b)) == 1

    def lu_solve_pullback_b(out_bar):
        if trans == 2:
            bar = lu_solve.bind(lu, piv, np.conj(out_bar), trans=0, **options)
            return np.conj(bar)
        return lu_solve.bind(lu, piv, out_bar, trans=1 - trans, **options)

    def lu_solve_pullback_lu(out_bar):
        right = columns(lu_solve_pullback_b(out_bar), vector)
        a_bar = read(-np.matmul(right, transposed(columns(out, vector))), trans)
        a_bar = _rows(a_bar, order_of_pivots.bind(piv))
        lower, upper = _split(lu)
        l_bar = np.matmul(a_bar, transposed(upper))
        return np.tril(l_bar, -1) + np.triu(np.matmul(transposed(lower), a_bar))

    return lu_solve_pullback_lu, None, lu_solve_pullback_b


folding(lu_solve)


@in_place_of(scipy.linalg.lu_solve)
def _lu_solve(lu_and_piv, b, trans=0, overwrite_b=False, check_finite=True):
    lu, piv = lu_and_piv
    arrays = map(as_array, (lu, piv, b))
    return lu_solve.bind(*arrays, trans=trans, check_finite=check_finite)


lu_solve.call = document(_lu_solve, scipy.linalg.lu_solve, _SUMMARY)


def _factor_and_solve(a: Any, b: Any, trans: int = 0) -> Any:
    return lu_solve.call(lu_factor.call(a), b, trans)


@lu_solve.def_samples
def lu_solve_samples(rng):
    for trans in (0, 1, 2):
        yield Sample(rng.normal(size=(3, 3)), rng.normal(size=3), trans, fun=_factor_and_solve)
    yield Sample(rng.normal(size=(2, 2)), rng.normal(size=(2, 2)), fun=_factor_and_solve)
