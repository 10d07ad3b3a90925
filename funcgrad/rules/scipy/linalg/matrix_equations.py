"""Equations for whole matrices from `scipy.linalg`: Sylvester's, Lyapunov's, and the polar form.

All are linear in the unknown, so that a tangent solves the same equation with another right side,
and a cotangent the one with transposed matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from funcgrad.core.batch import by_loop
from funcgrad.core.primitive import Sample
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import MissingRuleError, user_line
from funcgrad.rules.linalg.stacks import adjoint, regular, transposed
from funcgrad.rules.matmul import conj
from funcgrad.rules.reducing import plus
from funcgrad.rules.scipy.adopt import adopt

__all__ = [
    "polar",
    "solve_continuous_lyapunov",
    "solve_discrete_lyapunov",
    "solve_sylvester",
    "sylvester",
]


def alike(*arrays: Any) -> list[Any]:
    """Return the arrays, all complex if one is.

    SciPy (1.17) takes the real Schur form of real matrices to a solver for complex ones if another
    argument is complex, and gives a wrong solution.
    """
    if any(dtype_of(x).kind == "c" for x in arrays):
        return [x if dtype_of(x).kind == "c" else x + 0j for x in arrays]
    return list(arrays)


def unlike(rng: Any, *shapes: tuple[int, ...]) -> list[Any]:
    """Draw complex arrays; the first is a matrix that is far from singular."""
    arrays = [rng.normal(size=shape) + 1j * rng.normal(size=shape) for shape in shapes]
    return [arrays[0] + 3 * np.eye(shapes[0][0]), *arrays[1:]]


solve_sylvester = adopt(
    scipy.linalg.solve_sylvester, "a", "b", "q", summary="Solution of ``a @ x + x @ b = q``."
)


def sylvester(a: Any, b: Any, q: Any) -> Any:
    """Solve Sylvester's equation in a rule, where dtypes may differ."""
    return solve_sylvester.bind(*alike(a, b, q))


@solve_sylvester.def_jvp
def solve_sylvester_jvp(primals, tangents, out):
    (a, b, _), (a_dot, b_dot, right) = primals, tangents
    if a_dot is not None:
        right = plus(right, -np.matmul(a_dot, out))
    if b_dot is not None:
        right = plus(right, -np.matmul(out, b_dot))
    return sylvester(a, b, right)


@solve_sylvester.def_vjp
def solve_sylvester_vjp(primals, out):
    a, b, _ = primals

    def solve_sylvester_pullback_q(out_bar):
        return sylvester(transposed(a), transposed(b), out_bar)

    def solve_sylvester_pullback_a(out_bar):
        return -np.matmul(solve_sylvester_pullback_q(out_bar), transposed(out))

    def solve_sylvester_pullback_b(out_bar):
        return -np.matmul(transposed(out), solve_sylvester_pullback_q(out_bar))

    return solve_sylvester_pullback_a, solve_sylvester_pullback_b, solve_sylvester_pullback_q


by_loop(solve_sylvester)


@solve_sylvester.def_samples
def solve_sylvester_samples(rng):
    a, b, q = unlike(rng, (3, 3), (2, 2), (3, 2))
    yield Sample(a.real, b.real, q.real, complex=False)
    yield Sample(a, b, q)
    yield Sample(np.eye(2), np.diag([1.0, 2.0]), rng.normal(size=(2, 2)))
    yield Sample(regular(rng, 1, 1), regular(rng, 1, 1), rng.normal(size=(1, 1)))


solve_continuous_lyapunov = adopt(
    scipy.linalg.solve_continuous_lyapunov,
    "a",
    "q",
    summary="Solution of ``a @ x + x @ a.conj().T = q``.",
)


@solve_continuous_lyapunov.def_jvp
def solve_continuous_lyapunov_jvp(primals, tangents, out):
    (a, _), (a_dot, right) = primals, tangents
    if a_dot is not None:
        right = plus(right, -np.matmul(a_dot, out) - np.matmul(out, adjoint(a_dot)))
    return solve_continuous_lyapunov.bind(*alike(a, right))


@solve_continuous_lyapunov.def_vjp
def solve_continuous_lyapunov_vjp(primals, out):
    a, _ = primals

    def solve_continuous_lyapunov_pullback_q(out_bar):
        return solve_continuous_lyapunov.bind(*alike(transposed(a), out_bar))

    def solve_continuous_lyapunov_pullback_a(out_bar):
        bar = solve_continuous_lyapunov_pullback_q(out_bar)
        return -np.matmul(bar, transposed(out)) - conj(np.matmul(transposed(bar), out))

    return solve_continuous_lyapunov_pullback_a, solve_continuous_lyapunov_pullback_q


by_loop(solve_continuous_lyapunov)


@solve_continuous_lyapunov.def_samples
def solve_continuous_lyapunov_samples(rng):
    a, q = unlike(rng, (3, 3), (3, 3))
    yield Sample(a.real, q.real, complex=False)
    yield Sample(a, q)
    yield Sample(regular(rng, 1, 1), rng.normal(size=(1, 1)))


solve_discrete_lyapunov = adopt(
    scipy.linalg.solve_discrete_lyapunov,
    "a",
    "q",
    summary="Solution of ``a @ x @ a.conj().T - x + q = 0``.",
)


@solve_discrete_lyapunov.def_jvp
def solve_discrete_lyapunov_jvp(primals, tangents, out, **options):
    (a, _), (a_dot, right) = primals, tangents
    if a_dot is not None:
        turn = np.matmul(np.matmul(a_dot, out), adjoint(a))
        other = np.matmul(np.matmul(a, out), adjoint(a_dot))
        right = plus(right, turn + other)
    return solve_discrete_lyapunov.bind(a, right, **options)


@solve_discrete_lyapunov.def_vjp
def solve_discrete_lyapunov_vjp(primals, out, **options):
    a, _ = primals

    def solve_discrete_lyapunov_pullback_q(out_bar):
        return solve_discrete_lyapunov.bind(transposed(a), out_bar, **options)

    def solve_discrete_lyapunov_pullback_a(out_bar):
        bar = solve_discrete_lyapunov_pullback_q(out_bar)
        turn = np.matmul(np.matmul(bar, conj(a)), transposed(out))
        other = np.matmul(np.matmul(transposed(bar), a), out)
        return turn + conj(other)

    return solve_discrete_lyapunov_pullback_a, solve_discrete_lyapunov_pullback_q


by_loop(solve_discrete_lyapunov)


@solve_discrete_lyapunov.def_samples
def solve_discrete_lyapunov_samples(rng):
    yield Sample(0.3 * rng.normal(size=(3, 3)), rng.normal(size=(3, 3)))
    yield Sample(0.3 * rng.normal(size=(2, 2)), rng.normal(size=(2, 2)), method="bilinear")


polar = adopt(
    scipy.linalg.polar,
    "a",
    summary="Unitary and positive factor of a matrix, of full rank as far as it is traced.",
)


def _as_right(a: Any, out: Any, side: str) -> Any:
    """Return `a` and its factors as those of ``a = u @ p``, that is, with more rows than columns.

    ``a = p @ u`` is the same of the adjoint.
    """
    u, p = out
    if side == "left":
        a, u = adjoint(a), adjoint(u)
    if shape_of(a)[-2] < shape_of(a)[-1]:
        raise MissingRuleError(
            f"scipy.linalg.polar(a, side={side!r}) of a matrix of shape {shape_of(a)} has a "
            "singular factor, of which there is no derivative",
            where=user_line(),
            fix=f"use side={'right' if side == 'left' else 'left'!r}",
        )
    return a, u, p


@polar.def_jvp
def polar_jvp(primals, tangents, out, *, side="right"):
    (a,), (a_dot,) = primals, tangents
    a, u, p = _as_right(a, out, side)
    if side == "left":
        a_dot = adjoint(a_dot)
    gram = np.matmul(adjoint(a), a_dot)
    p_dot = sylvester(p, p, gram + adjoint(gram))
    u_dot = transposed(np.linalg.solve(transposed(p), transposed(a_dot - np.matmul(u, p_dot))))
    return (adjoint(u_dot) if side == "left" else u_dot), p_dot


@polar.def_vjp
def polar_vjp(primals, out, *, side="right"):
    (a,) = primals
    full, u, p = _as_right(a, out, side)

    def polar_pullback(out_bar):
        u_bar, p_bar = out_bar
        a_bar = None
        if u_bar is not None:
            if side == "left":
                u_bar = adjoint(u_bar)
            a_bar = transposed(np.linalg.solve(p, transposed(u_bar)))
            p_bar = plus(p_bar, -np.matmul(transposed(u), a_bar))
        back = transposed(p)
        bar = sylvester(back, back, p_bar)
        gram = np.matmul(conj(full), bar) + conj(np.matmul(full, transposed(bar)))
        a_bar = plus(a_bar, gram)
        return adjoint(a_bar) if side == "left" else a_bar

    return polar_pullback


by_loop(polar)


@polar.def_samples
def polar_samples(rng):
    yield Sample(rng.normal(size=(3, 2)))
    yield Sample(regular(rng, 2, 2), side="left")
    yield Sample(rng.normal(size=(2, 3)), "left")
