"""`numpy.linalg`: products of many matrices, powers, and its names for functions of NumPy's own.

The aliases are composed as NumPy composes them, so values and errors are the same.
"""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from funcgrad.core.batch import loop, ndim_of
from funcgrad.core.dispatch import of_shapes
from funcgrad.core.primitive import Sample, overrides, primitive
from funcgrad.core.zero import shape_of
from funcgrad.rules.families import multilinear
from funcgrad.rules.matmul import vecdot
from funcgrad.rules.spelling import as_array

__all__: list[str] = []


def multi_dot_args(args: Any, params: Any) -> Any:
    """Take the arrays out of their list."""
    arrays = args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args
    return tuple(map(as_array, arrays)), params


@primitive(multilinear, overrides=(np.linalg.multi_dot,), canonical=multi_dot_args)
def multi_dot(*arrays, out=None):
    """Product of several matrices, in the cheapest order; the first and last may be vectors."""
    return np.linalg.multi_dot(list(arrays))


@multi_dot.def_vjp
def multi_dot_vjp(primals, out):
    last = len(primals) - 1

    def matrix(k):
        """Factor `k`, transposed; a vector counts as a row in front and as a column behind."""
        x = primals[k]
        if len(shape_of(x)) == 2:
            return x.T
        return np.expand_dims(x, 1 if k == 0 else 0)

    def pullback_of(k):
        shape = shape_of(primals[k])
        full = shape_of(primals[0])[:-1] or (1,)
        full += shape_of(primals[last])[1:] or (1,)
        before = [matrix(j) for j in reversed(range(k))]
        behind = [matrix(j) for j in range(last, k, -1)]

        def multi_dot_pullback(out_bar):
            factors = [*before, np.reshape(out_bar, full), *behind]
            return np.reshape(np.linalg.multi_dot(factors), shape)

        return multi_dot_pullback

    return tuple(map(pullback_of, range(len(primals))))


@multi_dot.def_batch
def multi_dot_batch(args, batched):
    last = len(args) - 1
    ranks = list(map(ndim_of, args, batched))
    if last < 1 or set(ranks[1:-1]) - {2} or {ranks[0], ranks[last]} - {1, 2}:
        return loop(multi_dot.bind, args, batched, {})  # which NumPy refuses, most of them
    row, column = ranks[0] == 1, ranks[last] == 1
    stacks = [*args]
    if row:
        stacks[0] = np.expand_dims(stacks[0], -2)
    if column:
        stacks[last] = np.expand_dims(stacks[last], -1)
    product = _in_order(stacks, cheapest([shape_of(x)[-2:] for x in stacks]), 0, last)
    if row:
        product = np.squeeze(product, -2)
    return np.squeeze(product, -1) if column else product


def cheapest(shapes: list[tuple[int, ...]]) -> dict[tuple[int, int], int]:
    """Return where to cut the products of matrices `i` to `j` so that they cost least.

    By dynamic programming over ever longer products (Cormen et al., *Introduction to Algorithms*,
    "Matrix-chain multiplication").
    """
    cost = {(i, i): 0 for i in range(len(shapes))}
    cuts: dict[tuple[int, int], int] = {}
    for length in range(1, len(shapes)):
        for i in range(len(shapes) - length):
            j = i + length
            ends = shapes[i][0] * shapes[j][1]
            options = [(cost[i, k] + cost[k + 1, j] + ends * shapes[k][1], k) for k in range(i, j)]
            cost[i, j], cuts[i, j] = min(options)
    return cuts


def _in_order(stacks: list[Any], cuts: dict[tuple[int, int], int], i: int, j: int) -> Any:
    if i == j:
        return stacks[i]
    k = cuts[i, j]
    return np.matmul(_in_order(stacks, cuts, i, k), _in_order(stacks, cuts, k + 1, j))


@multi_dot.def_samples
def multi_dot_samples(rng):
    a, b = rng.normal(size=(2, 3)), rng.normal(size=(3, 4))
    c, d = rng.normal(size=(4, 2)), rng.normal(size=(2, 3))
    yield Sample([a, b])
    yield Sample([a, b, c])
    yield Sample([a, b, c, d])
    yield Sample([a[0], b, c, d[:, 0]])
    yield Sample([a[0], b, c])
    yield Sample([b, c, d[:, 0]])
    yield Sample([a[0], b[:, 0]])


@overrides(np.linalg.matrix_power)
def matrix_power(a, n):
    """Power of a square matrix by squaring, in NumPy's order of products."""
    shape = shape_of(a)
    if len(shape) < 2 or shape[-1] != shape[-2] or not hasattr(n, "__index__") or index(n) == 0:
        return of_shapes(np.linalg.matrix_power, a, n)  # an error, or a constant
    n = index(n)
    if n < 0:
        a, n = np.linalg.inv(a), -n
    if n == 3:  # NumPy multiplies from the other side than the loop would
        return np.matmul(np.matmul(a, a), a)
    power = result = None
    while n:
        power = a if power is None else np.matmul(power, power)
        n, bit = divmod(n, 2)
        if bit:
            result = power if result is None else np.matmul(result, power)
    return result


@matrix_power.def_samples
def matrix_power_samples(rng):
    a = 0.5 * rng.normal(size=(2, 3, 3))
    for n in (1, 2, 3, 4, 7):
        yield Sample(a, n)
    for n in (-1, -2, -3):
        yield Sample(a + 2 * np.eye(3), n)


@overrides(np.linalg.matmul)
def linalg_matmul(x1, x2):
    """`matmul` by its name in `numpy.linalg`."""
    return np.matmul(x1, x2)


@linalg_matmul.def_samples
def linalg_matmul_samples(rng):
    yield Sample(rng.normal(size=(2, 3)), rng.normal(size=(3, 2)))


@overrides(np.linalg.vecdot)
def linalg_vecdot(x1, x2, *, axis=-1):
    """`vecdot` by its name in `numpy.linalg`."""
    return vecdot(x1, x2, axis=index(axis))


@linalg_vecdot.def_samples
def linalg_vecdot_samples(rng):
    yield Sample(rng.normal(size=(2, 3)), rng.normal(size=(2, 3)), axis=0)


@overrides(np.linalg.outer)
def linalg_outer(x1, x2):
    """`outer` of two vectors."""
    x1, x2 = as_array(x1), as_array(x2)
    if len(shape_of(x1)) != 1 or len(shape_of(x2)) != 1:
        return of_shapes(np.linalg.outer, x1, x2)  # an error
    return np.outer(x1, x2)


@linalg_outer.def_samples
def linalg_outer_samples(rng):
    yield Sample(rng.normal(size=2), rng.normal(size=3))


@overrides(np.linalg.cross)
def linalg_cross(x1, x2, *, axis=-1):
    """`cross` of vectors of length three."""
    x1, x2 = as_array(x1), as_array(x2)
    if shape_of(x1)[axis] != 3 or shape_of(x2)[axis] != 3:
        return of_shapes(np.linalg.cross, x1, x2, axis=axis)  # an error
    return np.cross(x1, x2, axis=axis)


@linalg_cross.def_samples
def linalg_cross_samples(rng):
    yield Sample(rng.normal(size=(3, 2)), rng.normal(size=(3, 2)), axis=0)


@overrides(np.linalg.tensordot)
def linalg_tensordot(x1, x2, *, axes=2):
    """`tensordot` by its name in `numpy.linalg`."""
    return np.tensordot(x1, x2, axes=axes)


@linalg_tensordot.def_samples
def linalg_tensordot_samples(rng):
    yield Sample(rng.normal(size=(2, 3)), rng.normal(size=(3, 2)), axes=1)


@overrides(np.linalg.matrix_transpose)
def linalg_matrix_transpose(x):
    """`matrix_transpose` by its name in `numpy.linalg`."""
    return np.matrix_transpose(x)


@linalg_matrix_transpose.def_samples
def linalg_matrix_transpose_samples(rng):
    yield Sample(rng.normal(size=(2, 3, 4)))


@overrides(np.linalg.diagonal)
def linalg_diagonal(x, *, offset=0):
    """`diagonal` of the last two axes."""
    return np.diagonal(x, offset, axis1=-2, axis2=-1)


@linalg_diagonal.def_samples
def linalg_diagonal_samples(rng):
    yield Sample(rng.normal(size=(2, 3, 4)), offset=1)


@overrides(np.linalg.trace)
def linalg_trace(x, *, offset=0, dtype=None):
    """`trace` over the last two axes."""
    return np.trace(x, offset, axis1=-2, axis2=-1, dtype=dtype)


@linalg_trace.def_samples
def linalg_trace_samples(rng):
    yield Sample(rng.normal(size=(2, 3, 3)), offset=-1)
