"""Condition numbers and ranks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg

D = np.diag([4.0, 2.0])


@pytest.mark.parametrize("p", [None, 2, 1, np.inf])
def test_condition_of_a_diagonal_matrix_is_a_quotient(p):
    bar = fg.grad(lambda x: np.linalg.cond(x, p))(D)
    assert_allclose(np.diag(bar), [1 / 2, -4 / 4], rtol=1e-14)


@pytest.mark.parametrize("p", [-2, -1, -np.inf])
def test_condition_by_the_least_is_the_other_quotient(p):
    bar = fg.grad(lambda x: np.linalg.cond(x, p))(D)
    assert_allclose(np.diag(bar), [-2 / 16, 1 / 4], rtol=1e-14)


def test_condition_in_the_frobenius_norm():
    # (a**2 + b**2) / (a b) of diag(a, b)
    bar = fg.grad(lambda x: np.linalg.cond(x, "fro"))(D)
    a, b = 4.0, 2.0
    assert_allclose(np.diag(bar), [1 / b - b / a**2, 1 / a - a / b**2], rtol=1e-14)


def test_condition_in_the_nuclear_norm():
    # (a + b) (1 / a + 1 / b) = 2 + a / b + b / a
    bar = fg.grad(lambda x: np.linalg.cond(x, "nuc"))(D)
    assert_allclose(np.diag(bar), [1 / 2 - 2 / 16, 1 / 4 - 4 / 4], rtol=1e-14)


def test_zero_wins_over_a_singular_matrix():
    x = np.stack([D, np.ones((2, 2))])

    def f(x):
        sizes = np.linalg.cond(x, 1)
        return np.sum(np.where(np.isfinite(sizes), sizes, 0))

    bar = fg.grad(f)(x)
    assert_allclose(np.diag(bar[0]), [0.5, -1], rtol=1e-14)
    assert_array_equal(bar[1], np.zeros((2, 2)))


def test_rank_is_plain_under_grad_and_counted_for_each_example_under_vmap():
    seen = []
    fg.grad(lambda x: seen.append(np.linalg.matrix_rank(x)) or np.sum(x))(D)
    assert seen == [2]
    assert_array_equal(fg.vmap(np.linalg.matrix_rank)(np.stack([D, 0 * D + 1, 0 * D])), [2, 1, 0])
    assert_array_equal(fg.vmap(np.linalg.matrix_rank)(np.array([[0.0, 0], [0, 2]])), [0, 1])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.linalg.cond(x[:0]),
        lambda x: np.linalg.cond(x[:1], 1),
        lambda x: np.linalg.cond(x, 3),
        lambda x: np.linalg.cond(x[0]),
    ],
)
def test_errors_are_those_of_numpy(call):
    with pytest.raises(ValueError, match=r".") as expected:
        call(D)
    with pytest.raises(expected.type) as raised:
        fg.grad(call)(D)
    assert str(raised.value) == str(expected.value)
