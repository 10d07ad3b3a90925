"""Linear systems and inverses: `solve`, `inv`, and their forms for arrays of more axes.

The one idea: of ``a @ x = b`` follows ``a @ dx = db - da @ x``, so that the derivative of a
solution is a solution for the same matrix, and its transpose one for the transposed matrix
(M. B. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation", 2008). The values are NumPy's, and so is what becomes of a singular matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.batch import align, broadcasting, lacks_axes, loop
from funcgrad.core.primitive import Sample, overrides, primitive
from funcgrad.core.zero import shape_of
from funcgrad.rules.linalg.stacks import columns, regular, transposed, uncolumns
from funcgrad.rules.matmul import contract
from funcgrad.rules.reducing import plus
from funcgrad.rules.spelling import as_array, as_arrays

__all__: list[str] = []


@primitive(overrides=(np.linalg.solve,), canonical=as_arrays)
def solve(a, b):
    """Solution of ``a @ x = b``; `b` is one vector if it has one axis, else a stack of matrices."""
    return np.linalg.solve(a, b)


@solve.def_jvp
def solve_jvp(primals, tangents, out):
    (a, b), (a_dot, b_dot) = primals, tangents
    vector = len(shape_of(b)) == 1
    right: Any = None if b_dot is None else columns(b_dot, vector)
    if a_dot is not None:
        right = plus(right, -np.matmul(a_dot, columns(out, vector)))
    return uncolumns(np.linalg.solve(a, right), vector)


@solve.def_vjp
def solve_vjp(primals, out):
    a, b = primals
    vector = len(shape_of(b)) == 1
    ndim = len(shape_of(a))

    def back(out_bar):
        return np.linalg.solve(transposed(a), columns(out_bar, vector))

    def solve_pullback_a(out_bar):
        right, x = -back(out_bar), columns(out, vector)
        if ndim == 2:  # one matrix for all: the stack of its cotangents is never formed
            summed = (*range(len(shape_of(x)) - 2), len(shape_of(x)) - 1)
            return contract(right, x, summed, summed)
        return np.matmul(right, transposed(x))

    def solve_pullback_b(out_bar):
        return uncolumns(back(out_bar), vector)

    return solve_pullback_a, solve_pullback_b


@solve.def_batch
def solve_batch(args, batched):
    a, b = args
    if lacks_axes(args, batched, (2, 1)):
        return loop(solve.bind, args, batched, {})  # raises
    vector = len(shape_of(b)) - batched[1] == 1
    if vector and not batched[1]:
        return solve.bind(a, b)
    a, b = align((a, columns(b, vector)), batched, (2, 2))
    return uncolumns(solve.bind(a, b), vector)


@solve.def_samples
def solve_samples(rng):
    yield Sample(regular(rng, 3, 3), rng.normal(size=3))
    yield Sample(regular(rng, 3, 3), rng.normal(size=(3, 2)))
    yield Sample(regular(rng, 2, 3, 3), rng.normal(size=3))
    yield Sample(regular(rng, 2, 2, 2), rng.normal(size=(2, 3)))
    yield Sample(regular(rng, 2, 2), rng.normal(size=(3, 2, 1)))
    yield Sample(regular(rng, 2, 1, 2, 2), rng.normal(size=(3, 2, 2)))
    yield Sample(regular(rng, 1, 2, 2), rng.normal(size=(3, 2, 2)))
    yield Sample(regular(rng, 1, 1), rng.normal(size=(1, 1)))
    yield Sample(np.zeros((0, 0)), np.zeros((0, 2)))
    yield Sample(np.zeros((0, 2, 2)), np.zeros((0, 2, 1)))
    yield Sample(regular(rng, 2, 2), np.zeros((2, 0)))
    yield Sample([[2, 1], [0, 3]], rng.normal(size=2))
    yield Sample(regular(rng, 2, 2), [1.0, 2.0])


@primitive(overrides=(np.linalg.inv,), canonical=as_arrays)
def inv(a):
    """Inverse of each matrix of a stack; d inv(a) = -inv(a) da inv(a)."""
    return np.linalg.inv(a)


@inv.def_jvp
def inv_jvp(primals, tangents, out):
    (a_dot,) = tangents
    return -np.matmul(np.matmul(out, a_dot), out)


@inv.def_vjp
def inv_vjp(primals, out):
    def inv_pullback(out_bar):
        back = transposed(out)
        return -np.matmul(np.matmul(back, out_bar), back)

    return inv_pullback


broadcasting(inv, 2)


@inv.def_samples
def inv_samples(rng):
    yield Sample(regular(rng, 3, 3))
    yield Sample(regular(rng, 2, 1, 2, 2))
    yield Sample(regular(rng, 1, 1))
    yield Sample(np.zeros((0, 0)))
    yield Sample(np.zeros((0, 2, 2)))


@overrides(np.linalg.tensorsolve)
def tensorsolve(a, b, axes=None):
    """Solution of ``tensordot(a, x, x.ndim) == b``, by way of `solve` as in NumPy."""
    a, b = as_array(a), as_array(b)
    ndim = len(shape_of(a))
    if axes is not None:
        order = list(range(ndim))
        for k in axes:
            order.remove(k)
            order.insert(ndim, k)
        a = np.transpose(a, order)
    shape = shape_of(a)[-(ndim - len(shape_of(b))) :]
    size = int(np.prod(shape))
    if np.prod(shape_of(a)) != size**2:
        raise np.linalg.LinAlgError(
            "Input arrays must satisfy the requirement \
            prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])"
        )
    return np.reshape(np.linalg.solve(np.reshape(a, (size, size)), np.ravel(b)), shape)


@tensorsolve.def_samples
def tensorsolve_samples(rng):
    a = regular(rng, 6, 6)
    yield Sample(a.reshape(2, 3, 6), rng.normal(size=(2, 3)))
    yield Sample(a.reshape(6, 2, 3), rng.normal(size=6))
    yield Sample(a.reshape(3, 2, 6).transpose(0, 2, 1), rng.normal(size=(3, 2)), axes=(1,))
    yield Sample(regular(rng, 1, 1), rng.normal(size=1))


@overrides(np.linalg.tensorinv)
def tensorinv(a, ind=2):
    """Inverse for ``tensordot(a, x, ind)``, by way of `inv` as in NumPy."""
    a = as_array(a)
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    shape = shape_of(a)
    if not shape:
        return np.linalg.tensorinv(np.ones(()), ind)  # an error
    inverse = np.linalg.inv(np.reshape(a, (int(np.prod(shape[ind:])), -1)))
    return np.reshape(inverse, shape[ind:] + shape[:ind])


@tensorinv.def_samples
def tensorinv_samples(rng):
    a = regular(rng, 6, 6)
    yield Sample(a.reshape(2, 3, 6))
    yield Sample(a.reshape(6, 3, 2), 1)
    yield Sample(regular(rng, 2, 2), ind=1)
