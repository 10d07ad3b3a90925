"""`cond`, the condition number of matrices in any of their norms; and `matrix_rank`.

The condition number is a quotient of singular values, or the product of the norms of a matrix and
of its inverse. The rule makes its derivative of those of the norms; kinks and ties are theirs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.batch import broadcasting
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import shape_of, zero_wins
from funcgrad.rules.linalg.determinants import inverse_or_nan
from funcgrad.rules.linalg.norms import dual_of_matrices, weights
from funcgrad.rules.linalg.stacks import as_matrix, regular, transposed
from funcgrad.rules.matmul import conj
from funcgrad.rules.spelling import as_arrays

__all__: list[str] = []


@primitive(overrides=(np.linalg.cond,), canonical=as_arrays)
def cond(x, *, p=None):
    """Condition number of each matrix of a stack."""
    return np.linalg.cond(x, p)


def _dual_of_cond(x: Any, p: Any) -> Any:
    """Return the derivative of ``cond(x, p)``, of the shape of `x`."""
    if p is None or p in (2, -2):
        u, s, vh = np.linalg.svd(x, full_matrices=False)
        largest, least = s[..., :1], s[..., -1:]
        up, down = weights(s, 2, x.shape), weights(s, -2, x.shape)
        if p == -2:
            weight = down / largest - up * (least / largest**2)
        else:
            weight = up / least - down * (largest / least**2)
        return conj(np.matmul(u * np.expand_dims(weight, -2), vh))
    inverse = inverse_or_nan(x, np.equal(np.linalg.slogdet(x)[0], 0))
    size, other = (np.linalg.norm(y, p, axis=(-2, -1)) for y in (x, inverse))
    direct = dual_of_matrices(x, size, p)(as_matrix(other))
    indirect = dual_of_matrices(inverse, other, p)(as_matrix(size))
    back = transposed(inverse)
    return direct - np.matmul(np.matmul(back, indirect), back)


@cond.def_jvp
def cond_jvp(primals, tangents, out, *, p):
    (x,), (x_dot,) = primals, tangents
    product = zero_wins(_dual_of_cond(x, p) * x_dot, x_dot)
    return np.sum(np.real(product), axis=(-2, -1))


@cond.def_vjp
def cond_vjp(primals, out, *, p):
    (x,) = primals

    def cond_pullback(out_bar):
        out_bar = as_matrix(out_bar)
        return zero_wins(out_bar * _dual_of_cond(x, p), out_bar)

    return cond_pullback


broadcasting(cond, 2)


@cond.def_samples
def cond_samples(rng):
    for p in (None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"):
        yield Sample(regular(rng, 3, 3), p)
        yield Sample(regular(rng, 2, 1, 2, 2), p)
    yield Sample(rng.normal(size=(2, 3)), 2)
    yield Sample(rng.normal(size=(3, 2)), p=-2)
    yield Sample(np.stack([np.eye(2), np.ones((2, 2))]), 1, kinks=True)


@primitive(overrides=(np.linalg.matrix_rank,), canonical=as_arrays)
def matrix_rank(A, *, tol=None, hermitian=False, rtol=None):
    """Rank of each matrix of a stack; of a vector, whether it is not zero."""
    return np.linalg.matrix_rank(A, tol, hermitian, rtol=rtol)


matrix_rank.not_differentiable("a count of singular values")


@matrix_rank.def_batch
def matrix_rank_batch(args, batched, **params):
    (a,) = args
    if len(shape_of(a)) > 2:
        return matrix_rank.bind(a, **params)
    return np.any(np.not_equal(a, 0), axis=tuple(range(1, len(shape_of(a))))).astype(int)


@matrix_rank.def_samples
def matrix_rank_samples(rng):
    yield Sample(rng.normal(size=(2, 3)))
    yield Sample(np.stack([np.eye(2), np.ones((2, 2))]), 1e-8)
    yield Sample(np.eye(2), hermitian=True, rtol=1e-6)
    yield Sample(np.zeros(3))
    yield Sample(np.float64(2.0))
