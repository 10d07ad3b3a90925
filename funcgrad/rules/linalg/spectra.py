"""What the rules of eigenvalues and of singular values share: gaps, repeated values, triangles.

The one idea: eigenvectors turn into each other at a rate that is inverse to the gap between their
eigenvalues. Where two values are equal there is no such rate, as any basis of their common space
would do. There the rules have 0 in place of the inverse gap: functions that do not depend on
the choice of the basis do not ask for it. If a cotangent does ask, the rules say so by a
`funcgrad.errors.RepeatedValueWarning`. In forward mode nobody can tell what will be asked.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from funcgrad.core.level import any_of, concrete
from funcgrad.core.zero import dtype_of, is_finite, shape_of
from funcgrad.errors import RepeatedValueWarning, is_ours, user_line
from funcgrad.rules.linalg.stacks import adjoint, hermitian_part

__all__ = [
    "as_read",
    "asks_for",
    "gaps",
    "negligible",
    "quiet",
    "read_back",
    "reciprocal",
    "sums",
    "triangle",
    "warn_of_repeated",
]


# Gaps


def gaps(w: Any) -> Any:
    """Return the matrix of ``w[j] - w[i]``."""
    return np.expand_dims(w, -2) - np.expand_dims(w, -1)


def sums(w: Any) -> Any:
    """Return the matrix of ``w[j] + w[i]``."""
    return np.expand_dims(w, -2) + np.expand_dims(w, -1)


def negligible(x: Any, w: Any) -> Any:
    """Tell which elements of a matrix are 0 but for the rounding errors of the values `w`."""
    bound = 8 * np.finfo(dtype_of(w)).eps * np.sum(np.abs(w), axis=-1)
    return np.less_equal(np.abs(x), np.expand_dims(bound, (-2, -1)))


def reciprocal(x: Any, zero: Any) -> Any:
    """Return ``1 / x``, and 0 where `zero` is true."""
    return np.where(zero, 0, 1 / np.where(zero, 1, x))


# Hermitian matrices, of which NumPy reads one triangle


def triangle(a: Any, lower: bool) -> Any:
    """Return the weights by which the elements of `a` count, None if all count as they are.

    A Hermitian matrix stands for itself, and its derivative is that along Hermitian matrices. Of
    one that is not Hermitian NumPy reads a triangle: each element there stands for two.
    """
    off = np.abs(a - adjoint(a))
    bound = np.sqrt(np.finfo(dtype_of(a)).eps) * np.sum(np.abs(a), axis=(-2, -1), keepdims=True)
    hermitian = np.all(np.less_equal(off, bound), axis=(-2, -1), keepdims=True)
    if not any_of(np.logical_not(hermitian)):
        return None
    n = shape_of(a)[-1]
    read = 2 * np.tri(n, k=-1) + np.eye(n)
    return np.where(hermitian, 1.0, read if lower else read.T)


def as_read(x_dot: Any, weights: Any) -> Any:
    """Return the tangent of the Hermitian matrix that NumPy reads."""
    return hermitian_part(x_dot if weights is None else x_dot * weights)


def read_back(x_bar: Any, weights: Any) -> Any:
    """Return the cotangent of the matrix given, from one of the Hermitian matrix."""
    x_bar = hermitian_part(x_bar)
    return x_bar if weights is None else x_bar * weights


# What a cotangent asks for


def quiet(x_bar: Any, *bars: Any) -> Any:
    """Return `x_bar`, of which zero wins: 0 for the matrices of which all `bars` are 0.

    Parameters
    ----------
    x_bar : array_like
        Cotangents of a stack of matrices.
    *bars : array_like or None
        What they were made of, with as many axes.
    """
    if is_finite(x_bar):
        return x_bar
    given = [np.any(np.not_equal(x, 0), (-2, -1), keepdims=True) for x in bars if x is not None]
    asked = given[0]
    for more in given[1:]:
        asked = np.logical_or(asked, more)
    return np.where(asked, x_bar, 0)


def asks_for(part: Any, where: Any, among: Any) -> bool:
    """Tell whether a part of a cotangent is more than the rounding errors of it, at some places."""
    if not np.any(concrete(where)):
        return False
    size = np.max(np.abs(among), axis=(-2, -1), keepdims=True)
    bound = np.sqrt(np.finfo(dtype_of(size)).eps) * size
    return bool(np.any(concrete(np.logical_and(where, np.greater(np.abs(part), bound)))))


def warn_of_repeated(what: str) -> None:
    """Warn that a gradient lacks what does not exist."""
    depth, frame = 2, sys._getframe(1)
    while is_ours(frame.f_code.co_filename) and frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    warnings.warn(
        f"the gradient depends on {what}: its undefined part was left out\n"
        f"  where: {user_line()}\n"
        "  fix:   write the function without single vectors: by the values alone, by projectors "
        "onto whole eigenspaces, or by a matrix function (solve, funcgrad.scipy.linalg.expm, ...); "
        "or move the values apart",
        RepeatedValueWarning,
        stacklevel=depth,
    )
