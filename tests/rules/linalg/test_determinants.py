"""Determinants: cofactors of singular matrices to all orders, and the sign of complex ones."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg


def by_permutations(a):
    """Return the determinant as the sum over all permutations: a polynomial, division-free."""
    n = a.shape[-1]
    total = 0.0
    for order in itertools.permutations(range(n)):
        sign = round(np.linalg.det(np.eye(n)[list(order)]))
        term = sign
        for row, column in enumerate(order):
            term = term * a[row, column]
        total = total + term
    return total


def of_rank(rng, n, rank, imaginary=0):
    left = rng.normal(size=(n, rank)) + imaginary * rng.normal(size=(n, rank))
    return left @ rng.normal(size=(rank, n))


def test_singular_matrix_has_cofactors():
    bar = fg.grad(np.linalg.det)(np.array([[2.0, 1.0], [4.0, 2.0]]))
    assert_allclose(bar, [[2, -4], [-1, 2]], rtol=1e-14)


def test_rank_smaller_by_two_has_gradient_zero():
    bar = fg.grad(np.linalg.det)(np.ones((3, 3)))
    assert_allclose(bar, np.zeros((3, 3)), atol=1e-14)


@pytest.mark.parametrize("imaginary", [0, 1j])
@pytest.mark.parametrize("rank", [4, 3, 2, 1, 0])
def test_derivatives_of_three_orders_are_those_of_the_polynomial(rank, imaginary):
    rng = np.random.default_rng(rank)
    a = of_rank(rng, 4, rank, imaginary)
    u, v, w = rng.normal(size=(3, 4, 4)) + imaginary * rng.normal(size=(3, 4, 4))

    def orders(f):
        def first(a):
            return fg.jvp(f, (a,), (u,))[1]

        def second(a):
            return fg.jvp(first, (a,), (v,))[1]

        third = fg.jvp(second, (a,), (w,))[1]
        pulled = fg.vjp(lambda a: fg.vjp(f, a)[1](f(a) * 0 + 1)[0], a)[1](u)[0]
        return first(a), second(a), third, pulled

    for got, expected in zip(orders(np.linalg.det), orders(by_permutations), strict=True):
        assert_allclose(got, expected, rtol=1e-11, atol=1e-12)


def test_nearly_singular_matrix_loses_no_digits():
    # Of diag(1, 1e-9) turned by 45 degrees: half the sum and half the difference.
    large, small = (1 + 1e-9) / 2, (1 - 1e-9) / 2
    bar = fg.grad(np.linalg.det)(np.array([[large, small], [small, large]]))
    assert_allclose(bar, [[large, -small], [-small, large]], rtol=1e-15)


def test_matrices_of_every_rank_in_one_stack():
    a = np.stack([np.diag(d) for d in ([1.0, 2, 3], [1, 2, 0], [1, 0, 0], [0, 0, 0])])
    bar = fg.grad(lambda a: np.sum(np.linalg.det(a)))(a)
    expected = [np.diag([6.0, 3, 2]), np.diag([0.0, 0, 2]), np.zeros((3, 3)), np.zeros((3, 3))]
    assert_allclose(bar, expected, atol=1e-15)


def test_zero_matrix_in_a_stack_leaves_a_large_one_alone():
    a = np.random.default_rng(0).normal(size=(40, 40))
    bar = fg.grad(lambda a: np.sum(np.linalg.det(a)))(np.stack([a, 0 * a]))
    expected = np.linalg.det(a) * np.linalg.inv(a).T
    assert_allclose(bar[0], expected, rtol=0, atol=1e-10 * np.max(np.abs(expected)))
    assert_array_equal(bar[1], 0 * a)


def test_second_derivative_by_vmap_where_the_rank_is_smaller_by_two():
    # det(diag(0, 0, 2) + t I) = 2 t**2 + t**3
    a = np.stack([np.diag([0.0, 0.0, 2.0]), np.eye(3)])

    def second(a):
        return fg.jvp(lambda a: fg.jvp(np.linalg.det, (a,), (np.eye(3),))[1], (a,), (np.eye(3),))[1]

    assert_allclose(fg.vmap(second)(a), [4.0, 6.0], rtol=1e-14)


def test_determinant_of_nothing_has_no_derivative():
    out, bar = fg.value_and_grad(np.linalg.det)(np.zeros((0, 0)))
    assert out == 1.0
    assert bar.shape == (0, 0)


def test_nan_stays_nan_in_its_own_matrix():
    a = np.stack([np.eye(2), np.full((2, 2), np.nan), np.ones((2, 2))])
    with np.errstate(invalid="ignore"):  # NumPy's warning
        bar = fg.grad(lambda a: np.sum(np.linalg.det(a)))(a)
    assert_allclose(bar[[0, 2]], [np.eye(2), [[1, -1], [-1, 1]]], atol=1e-15)
    assert np.all(np.isnan(bar[1]))


def test_slogdet_is_numpys_named_tuple():
    out = fg.vjp(np.linalg.slogdet, np.eye(2))[0]
    assert type(out) is type(np.linalg.slogdet(np.eye(2)))


def test_gradient_of_the_logarithm_is_the_inverse():
    bar = fg.grad(lambda a: np.linalg.slogdet(a).logabsdet)(np.array([[2.0, 1.0], [0.0, -4.0]]))
    assert_allclose(bar, [[0.5, 0.0], [0.125, -0.25]], rtol=1e-15)


def test_sign_of_a_complex_determinant_turns():
    # Of one number it is z / |z|, at 2j: moving by 1 turns it by -1/2 towards 1.
    def sign(a):
        return np.linalg.slogdet(a)[0]

    z = np.array([[2j]])
    assert_allclose(fg.jvp(sign, (z,), (np.array([[1 + 0j]]),))[1], 0.5, atol=1e-15)
    assert_allclose(fg.jvp(sign, (z,), (np.array([[1j]]),))[1], 0.0, atol=1e-15)


def test_zero_wins_over_a_singular_matrix():
    a = np.stack([np.eye(2), np.ones((2, 2))])

    def f(a):
        _, logs = np.linalg.slogdet(a)
        return np.sum(np.where(np.isfinite(logs), logs, 0))

    assert_allclose(fg.grad(f)(a), [np.eye(2), np.zeros((2, 2))], atol=1e-15)


@pytest.mark.parametrize("function", [np.linalg.det, np.linalg.slogdet])
@pytest.mark.parametrize("shape", [(2,), (2, 3)])
def test_errors_are_those_of_numpy(function, shape):
    a = np.ones(shape)
    with pytest.raises(np.linalg.LinAlgError) as expected:
        function(a)
    with pytest.raises(np.linalg.LinAlgError) as raised:
        fg.vjp(function, a)
    assert str(raised.value) == str(expected.value)
