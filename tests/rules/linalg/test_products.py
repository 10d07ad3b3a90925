"""Products of many matrices, powers, and numpy.linalg's names for functions of NumPy's own."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.rules.linalg.products import cheapest

A = np.array([[1.0, 2.0], [3.0, 4.0]])


def test_square_of_a_matrix():
    # d sum(A A) = 1 A' + A' 1
    bar = fg.grad(lambda a: np.sum(np.linalg.matrix_power(a, 2)))(A)
    assert_array_equal(bar, [[7, 11], [9, 13]])


def test_power_of_a_diagonal_matrix():
    bar = fg.grad(lambda a: np.trace(np.linalg.matrix_power(a, 5)))(np.diag([2.0, 3.0]))
    assert_allclose(bar, np.diag([5 * 16.0, 5 * 81.0]), rtol=1e-15)


def test_power_zero_is_constant():
    def f(a):
        return np.sum(a) + np.sum(np.linalg.matrix_power(a, 0))

    out, bar = fg.value_and_grad(f)(A)
    assert out == 12.0
    assert_array_equal(bar, np.ones((2, 2)))


def test_multi_dot_of_vectors_and_matrices():
    # f = u' A v
    u, v = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    bars = fg.grad(lambda u, a, v: np.linalg.multi_dot([u, a, v]), argnums=(0, 1, 2))(u, A, v)
    assert_array_equal(bars[0], [11, 25])
    assert_array_equal(bars[1], [[3, 4], [6, 8]])
    assert_array_equal(bars[2], [7, 10])


def test_multi_dot_with_a_constant_first():
    bar = fg.grad(lambda a: np.sum(np.linalg.multi_dot([np.eye(2), a, np.ones((2, 1))])))(A)
    assert_array_equal(bar, np.ones((2, 2)))


def test_multi_dot_of_many_examples_takes_the_cheapest_order():
    # (A B) C takes 10 * 1 * 10 + 10 * 10 * 1 products, A (B C) takes 1 * 10 * 1 + 10 * 1 * 1.
    assert cheapest([(10, 1), (1, 10), (10, 1)]) == {(0, 1): 0, (1, 2): 1, (0, 2): 0}


def test_vmap_of_multi_dot_with_vectors_at_the_ends():
    u = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    out = fg.vmap(lambda u: np.linalg.multi_dot([u, A, A, np.array([1.0, 0.0])]))(u)
    assert_array_equal(out, [7, 15, 22])  # the first column of A A is (7, 15)


@pytest.mark.parametrize(
    "call",
    [
        lambda a: np.linalg.matrix_power(a[:1], 2),
        lambda a: np.linalg.matrix_power(a[0], 2),
        lambda a: np.linalg.matrix_power(a, 1.5),
        lambda a: np.linalg.multi_dot([a]),
        lambda a: np.linalg.multi_dot([a, np.ones((3, 2))]),
        lambda a: np.linalg.multi_dot([a, np.ones((2, 2, 2)), a]),
        lambda a: np.linalg.outer(a, a),
        lambda a: np.linalg.cross(a, a),
        lambda a: np.linalg.matrix_transpose(a[0]),
        lambda a: np.linalg.matmul(a, np.ones((3, 2))),
    ],
)
def test_errors_are_those_of_numpy(call):
    with pytest.raises((ValueError, TypeError)) as expected:
        call(A)
    with pytest.raises(expected.type) as raised:
        fg.grad(call)(A)
    assert str(raised.value) == str(expected.value)


def test_power_0_of_many_matrices_is_the_identity_of_each():
    made = fg.vmap(lambda a: np.linalg.matrix_power(a, 0))(np.ones((2, 3, 3)))
    np.testing.assert_array_equal(made, [np.eye(3), np.eye(3)])
