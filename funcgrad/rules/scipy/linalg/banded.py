"""Banded systems from `scipy.linalg`: `solve_banded` and `solveh_banded`.

SciPy stores a matrix of few diagonals by rows of diagonals, ``ab[u + i - j, j] = a[i, j]``. The one
idea: all that the rules need, a product and a transpose in that storage, is a shift of each
diagonal. The corners of `ab`, which belong to no element, have derivative zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from funcgrad.core.batch import count_examples, full_batch
from funcgrad.core.primitive import Sample
from funcgrad.core.zero import shape_of
from funcgrad.rules.linalg.stacks import columns, uncolumns
from funcgrad.rules.matmul import conj
from funcgrad.rules.reducing import plus
from funcgrad.rules.scipy.adopt import adopt, document, fold, folding, in_place_of
from funcgrad.rules.spelling import as_array

__all__ = ["solve_banded", "solveh_banded"]


def _places(n: int, below: int, above: int) -> tuple[Any, Any]:
    """Return the row of the matrix for each place of the storage, and whether there is one."""
    rows = np.arange(-above, below + 1)[:, None] + np.arange(n)
    return np.clip(rows, 0, max(n - 1, 0)), (rows >= 0) & (rows < n)


def _flipped(ab: Any, below: int, above: int) -> Any:
    """Return the storage of the transposed matrix, of which `above` and `below` are swapped."""
    n = shape_of(ab)[-1]
    columns, inside = _places(n, above, below)
    diagonals = np.arange(below + above, -1, -1)[:, None]
    return np.where(inside, ab[..., diagonals, columns], 0)


def _product(ab: Any, x: Any, below: int, above: int) -> Any:
    """Return the product of a banded matrix with the columns of `x`."""
    n = shape_of(ab)[-1]
    ab = _flipped(ab, below, above)  # by rows of the matrix
    columns, _ = _places(n, above, below)
    return np.sum(np.expand_dims(ab, -1) * x[..., columns, :], axis=-3)


def _outer(y: Any, x: Any, below: int, above: int) -> Any:
    """Return ``y @ x.T`` in the storage."""
    rows, inside = _places(shape_of(x)[-2], below, above)
    return np.where(inside, np.sum(y[..., rows, :] * np.expand_dims(x, -3), axis=-1), 0)


_SUMMARY = "Solution of a system with a banded matrix."


def _solve(ab, b, *, l_and_u, check_finite=True):
    return scipy.linalg.solve_banded(l_and_u, ab, b, check_finite=check_finite)


solve_banded = adopt(scipy.linalg.solve_banded, summary=_SUMMARY, forward=_solve)


@solve_banded.def_jvp
def solve_banded_jvp(primals, tangents, out, *, l_and_u, **options):
    (ab, b), (ab_dot, right) = primals, tangents
    if ab_dot is not None:
        vector = len(shape_of(b)) == 1
        turn = _product(ab_dot, columns(out, vector), *l_and_u)
        right = plus(right, -uncolumns(turn, vector))
    return solve_banded.bind(ab, right, l_and_u=l_and_u, **options)


@solve_banded.def_vjp
def solve_banded_vjp(primals, out, *, l_and_u, **options):
    ab, b = primals
    below, above = l_and_u
    vector = len(shape_of(b)) == 1

    def solve_banded_pullback_b(out_bar):
        back = _flipped(ab, below, above)
        return solve_banded.bind(back, out_bar, l_and_u=(above, below), **options)

    def solve_banded_pullback_ab(out_bar):
        right = columns(solve_banded_pullback_b(out_bar), vector)
        return _outer(-right, columns(out, vector), below, above)

    return solve_banded_pullback_ab, solve_banded_pullback_b


@solve_banded.def_batch
def solve_banded_batch(args, batched, *, l_and_u, **options):
    ab, b = args
    size = count_examples(args, batched)
    wide = len(shape_of(ab)) - batched[0] > 2 or len(shape_of(b)) - batched[1] > 2
    if not (batched[0] and size) or wide:
        return fold(solve_banded, args, batched, {"l_and_u": l_and_u, **options})
    # The systems one after the other are one banded system, without elements between them.
    _, diagonals, n = shape_of(ab)
    _, inside = _places(n, *l_and_u)
    ab = np.reshape(np.swapaxes(np.where(inside, ab, 0), 0, 1), (diagonals, size * n))
    b = full_batch(b, batched[1], size)
    stacked = np.reshape(b, (size * n, *shape_of(b)[2:]))
    return np.reshape(solve_banded.bind(ab, stacked, l_and_u=l_and_u, **options), shape_of(b))


@in_place_of(scipy.linalg.solve_banded)
def _solve_banded(l_and_u, ab, b, overwrite_ab=False, overwrite_b=False, check_finite=True):
    below, above = l_and_u
    settings = {"l_and_u": (int(below), int(above)), "check_finite": check_finite}
    return solve_banded.bind(as_array(ab), as_array(b), **settings)


solve_banded.call = document(_solve_banded, scipy.linalg.solve_banded, _SUMMARY)
solve_banded.overridden = (solve_banded.call,)


@solve_banded.def_samples
def solve_banded_samples(rng):
    for l_and_u, shape in (((1, 1), (4,)), ((1, 2), (4, 2)), ((0, 1), (3,)), ((2, 0), (3, 1))):
        ab = rng.normal(size=(sum(l_and_u) + 1, shape[0]))
        ab[l_and_u[1]] += 4.0
        yield Sample(l_and_u, ab, rng.normal(size=shape))
    yield Sample((0, 0), rng.uniform(1, 2, size=(1, 1)), rng.normal(size=1))


solveh_banded = adopt(
    scipy.linalg.solveh_banded,
    "ab",
    "b",
    summary="Solution of a system with a Hermitian, positive definite, banded matrix.",
)


def _whole(ab: Any, lower: Any) -> Any:
    """Return the storage of the whole matrix, of which `ab` has one side."""
    count = shape_of(ab)[-2] - 1
    if lower:
        other = conj(_flipped(ab, count, 0))
        return np.concatenate([other[..., :-1, :], np.real(ab[..., :1, :]), ab[..., 1:, :]], -2)
    other = conj(_flipped(ab, 0, count))
    return np.concatenate([ab[..., :-1, :], np.real(ab[..., -1:, :]), other[..., 1:, :]], -2)


def _pull_whole(bar: Any, lower: Any) -> Any:
    """Return the cotangent of one side, which stands for both."""
    count = shape_of(bar)[-2] // 2
    diagonal = np.real(bar[..., count : count + 1, :])
    if lower:
        other = conj(_flipped(bar[..., : count + 1, :], 0, count))
        side = bar[..., count + 1 :, :] + other[..., 1:, :]
        return np.concatenate([diagonal, side], -2)
    other = conj(_flipped(bar[..., count:, :], count, 0))
    side = bar[..., :count, :] + other[..., :-1, :]
    return np.concatenate([side, diagonal], -2)


@solveh_banded.def_jvp
def solveh_banded_jvp(primals, tangents, out, *, lower=False, **options):
    (ab, b), (ab_dot, right) = primals, tangents
    if ab_dot is not None:
        vector = len(shape_of(b)) == 1
        count = shape_of(ab)[-2] - 1
        turn = _product(_whole(ab_dot, lower), columns(out, vector), count, count)
        right = plus(right, -uncolumns(turn, vector))
    return solveh_banded.bind(ab, right, lower=lower, **options)


@solveh_banded.def_vjp
def solveh_banded_vjp(primals, out, *, lower=False, **options):
    ab, b = primals
    vector = len(shape_of(b)) == 1

    def solveh_banded_pullback_b(out_bar):
        return conj(solveh_banded.bind(ab, conj(out_bar), lower=lower, **options))

    def solveh_banded_pullback_ab(out_bar):
        right = columns(solveh_banded_pullback_b(out_bar), vector)
        count = shape_of(ab)[-2] - 1
        return _pull_whole(_outer(-right, columns(out, vector), count, count), lower)

    return solveh_banded_pullback_ab, solveh_banded_pullback_b


folding(solveh_banded)


@solveh_banded.def_samples
def solveh_banded_samples(rng):
    for lower in (False, True):
        ab = rng.normal(size=(3, 4))
        ab[0 if lower else -1] = rng.uniform(6, 8, size=4)
        yield Sample(ab, rng.normal(size=4), lower=lower)
        yield Sample(ab[:2] if lower else ab[1:], rng.normal(size=(4, 2)), lower=lower)
