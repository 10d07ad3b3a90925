"""Determinants: `det`, right at singular matrices and to all orders, and `slogdet`.

The derivative of a determinant is the matrix of cofactors, a polynomial. For a matrix that is far
from singular it is ``det(a) * inv(a).T``; `cofactors` takes that for as long as it is accurate.
Otherwise singular vectors, as constants, turn the matrix into one that is diagonal but for
derivatives, of which the large part can be inverted. With ``s = a22 - a21 @ inv(a11) @ a12`` for
what is left, the Schur complement, ``det(a) = det(a11) * det(s)`` and likewise for the cofactors;
and those of the small `s` come from the method of Faddeev and LeVerrier, which divides by nothing.
So every order of derivatives is right: of a matrix of rank n - 2, the second is not zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.batch import broadcasting
from funcgrad.core.level import any_of, detached, holds_anywhere, is_recorded, looked_at
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of, zero_wins
from funcgrad.rules.linalg.stacks import as_matrix, regular, transposed
from funcgrad.rules.matmul import conj
from funcgrad.rules.spelling import as_array, as_arrays

__all__ = ["cofactors", "inverse_or_nan"]

SlogdetResult: Any = type(np.linalg.slogdet(np.eye(1)))


def _precision(a: Any) -> float:
    """Return the size relative to the largest below which a singular value counts as small.

    Either way of computing the cofactors has an error of that, or less, where they meet.
    """
    precision: float = float(np.finfo(dtype_of(a)).eps) ** 0.4
    return precision


def _is_regular(a: Any, inverse: Any) -> bool:
    """Tell whether every matrix of a stack is far from singular, by its condition number."""
    regular = np.less(_squares(a) * _squares(inverse), _precision(a) ** -2)
    return bool(np.all(looked_at(np.all(regular), "whether the matrix is far from singular")))


def _squares(x: Any) -> Any:
    """Return the sum of squares of each matrix, without copies of it."""
    x = detached(x)
    rows = np.reshape(x, (*x.shape[:-2], x.shape[-2] * x.shape[-1]))
    return np.real(np.vecdot(rows, rows))


def cofactors(a: Any, value: Any) -> Any:
    """Return the derivative of ``value = det(a)``, of the shape of `a`."""
    # A program that was recorded for regular matrices must not come to the inverse with others.
    if is_recorded(value) and holds_anywhere(np.equal(value, 0), "whether the matrix is singular"):
        return _cofactors_by_parts(a)
    try:
        inverse = np.linalg.inv(a)
    except np.linalg.LinAlgError:
        pass
    else:
        if _is_regular(a, inverse):
            return as_matrix(value) * transposed(inverse)
    return _cofactors_by_parts(a)


@primitive()
def frames(a):
    """Singular vectors, with the determinant of both, the largest value, and which are large."""
    finite = np.isfinite(a).all((-2, -1), keepdims=True)
    u, s, vh = np.linalg.svd(np.where(finite, a, 0))
    largest = s[..., :1]
    return (
        u,
        vh,
        np.linalg.det(u) * np.linalg.det(vh),
        np.where(largest > 0, largest, 1)[..., 0],
        (s > _precision(a) * largest).astype(s.dtype),
    )


frames.not_differentiable("constants, on whose choice the cofactors do not depend")
broadcasting(frames, 2)


def _cofactors_by_parts(a: Any) -> Any:
    n = shape_of(a)[-1]
    u, vh, sign, scale, large = frames.bind(a)
    eye = np.eye(n)
    counts = n - np.sum(large, axis=-1)
    right, below = np.expand_dims(large, -2), np.expand_dims(large, -1)
    small = eye * (1 - right)  # projects on what is not large

    b = np.matmul(np.matmul(conj(transposed(u)), a / as_matrix(scale)), conj(transposed(vh)))
    a11 = below * b * right + small
    x = below * np.linalg.inv(a11) * right
    y = np.matmul(x, b * (1 - right))
    z = np.matmul((1 - below) * b, x)
    s = (1 - below) * (b - np.matmul(b, np.matmul(x, b))) * (1 - right)

    # Of the powers of s, the characteristic polynomial makes the determinant and the adjugate of
    # its block. The blocks of a stack differ in size: each is taken when it is done.
    det_s: Any = np.where(np.equal(counts, 0), 1.0, 0.0)
    adj_s: Any = np.zeros((n, n))
    power: Any = small
    coefficient: Any = 1.0
    for size in range(
        1, int(np.max(n - looked_at(np.sum(large, axis=-1), "its rank"), initial=0)) + 1
    ):
        if size > 1:
            power = np.matmul(s, power) + as_matrix(coefficient) * small
        coefficient = np.sum(s * transposed(power), axis=(-2, -1)) / -size
        done, odd = np.equal(counts, size), (-1) ** size
        det_s = np.where(done, odd * coefficient, det_s)
        adj_s = np.where(as_matrix(done), -odd * power, adj_s)

    adjugate = as_matrix(det_s) * x + np.matmul(np.matmul(small - y, adj_s), small - z)
    size_of = sign * scale ** (n - 1) * np.linalg.det(a11)
    adjugate = np.matmul(np.matmul(conj(transposed(vh)), adjugate), conj(transposed(u)))
    return as_matrix(size_of) * transposed(adjugate)


@primitive(overrides=(np.linalg.det,), canonical=as_arrays)
def det(a):
    """Determinant of each matrix of a stack; its derivative is the matrix of cofactors."""
    return np.linalg.det(a)


@det.def_jvp
def det_jvp(primals, tangents, out):
    (a,), (a_dot,) = primals, tangents
    return np.sum(zero_wins(cofactors(a, out) * a_dot, a_dot), axis=(-2, -1))


@det.def_vjp
def det_vjp(primals, out):
    (a,) = primals

    def det_pullback(out_bar):
        out_bar = as_matrix(out_bar)
        return zero_wins(out_bar * cofactors(a, out), out_bar)

    return det_pullback


broadcasting(det, 2)


@det.def_samples
def det_samples(rng):
    a = rng.normal(size=(3, 3))
    yield Sample(a)
    yield Sample(rng.normal(size=(2, 1, 2, 2)))
    yield Sample(rng.normal(size=(4, 4)))
    yield Sample(rng.normal(size=(1, 1)))
    yield Sample(np.zeros((0, 0)))
    yield Sample(np.zeros((0, 2, 2)))
    yield Sample(np.array([[2.0, 1.0], [4.0, 2.0]]))
    yield Sample(np.outer(a[0], a[1]))
    yield Sample(np.zeros((3, 3)))
    yield Sample(np.stack([a, np.outer(a[0], a[1]), 0 * a, a * [[1], [1], [0]]]))
    yield Sample(a @ np.diag([1, 1, 1e-9]) @ a.T)


def inverse_or_nan(a: Any, singular: Any) -> Any:
    """Return the inverse of each matrix of a stack, NaN where it is singular."""
    if not any_of(singular):
        return np.linalg.inv(a)
    singular = as_matrix(singular)
    return np.where(singular, np.nan, np.linalg.inv(np.where(singular, np.eye(shape_of(a)[-1]), a)))


@primitive(canonical=as_arrays)
def slogdet(a):
    """Sign and logarithm of the determinant of each matrix of a stack.

    With ``g = trace(inv(a) @ da)``, the logarithm changes by the real part of `g`, and a complex
    sign turns by the imaginary part.
    """
    return tuple(np.linalg.slogdet(a))


@slogdet.def_call(np.linalg.slogdet)
def slogdet_call(a):
    return SlogdetResult(*slogdet.bind(as_array(a)))


@slogdet.def_jvp
def slogdet_jvp(primals, tangents, out):
    (a,), (a_dot,), (sign, _) = primals, tangents, out
    inverse = transposed(inverse_or_nan(a, np.equal(sign, 0)))
    turn = np.sum(zero_wins(inverse * a_dot, a_dot), axis=(-2, -1))
    if dtype_of(sign).kind != "c":
        return None, np.real(turn)
    return sign * (1j * np.imag(turn)), np.real(turn)


@slogdet.def_vjp
def slogdet_vjp(primals, out):
    (a,), (sign, _) = primals, out

    def slogdet_pullback(out_bar):
        sign_bar, turn_bar = out_bar
        if sign_bar is not None and dtype_of(sign).kind == "c":
            spin = 1j * np.imag(sign_bar * sign)
            turn_bar = spin if turn_bar is None else turn_bar + spin
        if turn_bar is None:
            return None
        turn_bar = as_matrix(turn_bar)
        inverse = transposed(inverse_or_nan(a, np.equal(sign, 0)))
        return zero_wins(turn_bar * inverse, turn_bar)

    return slogdet_pullback


broadcasting(slogdet, 2)


@slogdet.def_samples
def slogdet_samples(rng):
    yield Sample(rng.normal(size=(3, 3)))
    yield Sample(regular(rng, 2, 1, 2, 2))
    yield Sample(-np.eye(1))
    yield Sample(np.zeros((0, 0)))
    yield Sample(np.zeros((0, 2, 2)))
    yield Sample(np.stack([np.eye(2), np.ones((2, 2))]), kinks=True)
