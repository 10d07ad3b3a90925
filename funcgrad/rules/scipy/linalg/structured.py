"""Matrices of structure from `scipy.linalg`: `block_diag`, `toeplitz`, `hankel`, `circulant`.

They place given numbers, so that they are composed of functions that have rules. Without traced
arguments the calls are SciPy's own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from funcgrad.core.level import concrete, holds_anywhere
from funcgrad.core.primitive import DECLARED, Composed, Sample
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.matmul import conj
from funcgrad.rules.scipy.adopt import document, in_place_of
from funcgrad.rules.spelling import array_of

__all__ = ["block_diag", "circulant", "companion", "hankel", "toeplitz"]


def _composed(function: Any, summary: str) -> Any:
    """Declare the decorated function, for traced arguments, as that of SciPy's name."""

    def declare(fun: Any) -> Composed:
        call = document(in_place_of(function)(fun), function, summary)
        made = Composed(call, (call,))
        made.name = f"scipy_{function.__name__}"
        DECLARED[made.name] = made
        return made

    return declare


@_composed(scipy.linalg.block_diag, "Matrix with the given ones along its diagonal.")
def block_diag(*arrs):
    blocks = [np.atleast_2d(array_of(block)) for block in arrs]
    dtype = np.result_type(*map(dtype_of, blocks))
    width = sum(shape_of(block)[-1] for block in blocks)
    rows, before = [], 0
    for block in blocks:
        *lead, height, own = shape_of(block)
        left = np.zeros((*lead, height, before), dtype)
        before += own
        right = np.zeros((*lead, height, width - before), dtype)
        rows.append(np.concatenate([left, block, right], axis=-1))
    return np.concatenate(rows, axis=-2)


@block_diag.def_samples
def block_diag_samples(rng):
    yield Sample(rng.normal(size=(2, 2)), rng.normal(size=(1, 3)), rng.normal(size=2))
    yield Sample(rng.normal(size=()), rng.normal(size=(2, 1)))
    yield Sample(rng.normal(size=(2, 0)), rng.normal(size=(1, 1)))


def _vector(x: Any) -> Any:
    return np.atleast_1d(array_of(x))


@_composed(scipy.linalg.toeplitz, "Matrix of constant diagonals.")
def toeplitz(c, r=None):
    c = _vector(c)
    r = conj(c) if r is None else _vector(r)
    m, n = shape_of(c)[-1], shape_of(r)[-1]
    values = np.concatenate([c[..., ::-1], r[..., 1:]], axis=-1)
    return values[..., m - 1 - np.arange(m)[:, None] + np.arange(n)]


@toeplitz.def_samples
def toeplitz_samples(rng):
    yield Sample(rng.normal(size=3))
    yield Sample(rng.normal(size=3), rng.normal(size=4))
    yield Sample(rng.normal(size=1), [1.0, 2.0])


@_composed(scipy.linalg.hankel, "Matrix of constant diagonals from the right to the left.")
def hankel(c, r=None):
    c = _vector(c)
    r = np.zeros_like(c) if r is None else _vector(r)
    m, n = shape_of(c)[-1], shape_of(r)[-1]
    values = np.concatenate([c, r[..., 1:]], axis=-1)
    return values[..., np.arange(m)[:, None] + np.arange(n)]


@hankel.def_samples
def hankel_samples(rng):
    yield Sample(rng.normal(size=3))
    yield Sample(rng.normal(size=3), rng.normal(size=2))


@_composed(scipy.linalg.circulant, "Matrix whose columns are one vector, turned on.")
def circulant(c):
    c = _vector(c)
    n = shape_of(c)[-1]
    return c[..., (np.arange(n)[:, None] - np.arange(n)) % n]


@circulant.def_samples
def circulant_samples(rng):
    yield Sample(rng.normal(size=3))
    yield Sample(rng.normal(size=1))


@_composed(scipy.linalg.companion, "Matrix whose characteristic polynomial has these coefficients.")
def companion(a):
    a = _vector(a)
    if shape_of(a)[-1] < 2 or holds_anywhere(
        np.equal(a[..., :1], 0), "whether the first coefficient is 0"
    ):
        return scipy.linalg.companion(concrete(a))  # an error
    first = -a[..., 1:] / (1.0 * a[..., :1])
    n = shape_of(first)[-1]
    below = np.broadcast_to(np.eye(n - 1, n), (*shape_of(first)[:-1], n - 1, n))
    return np.concatenate([np.expand_dims(first, -2), below.astype(dtype_of(first))], axis=-2)


@companion.def_samples
def companion_samples(rng):
    yield Sample(rng.uniform(1, 2, size=4))
    yield Sample(rng.uniform(1, 2, size=2))
