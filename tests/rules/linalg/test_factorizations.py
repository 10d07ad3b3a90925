"""Cholesky and QR factors: known derivatives, all modes, and matrices that have none."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.errors import MissingRuleError

POSITIVE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.2], [0.5, -0.2, 2.0]])
G = np.array([[1.0, -2.0, 0.5], [3.0, 0.7, -1.1], [0.4, 2.2, -0.6]])
TALL = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.25]])
WIDE = np.array([[1, 2 - 1j, 0.5], [0.25j, -1, 3]])


def both_modes(f, x):
    """Return the gradient of `f` by reverse and by forward mode."""
    basis = np.eye(x.size).reshape((x.size, *x.shape))
    forward = np.array([fg.jvp(f, (x,), (e,))[1] for e in basis]).reshape(x.shape)
    return fg.grad(f)(x), forward


# Cholesky


@pytest.mark.parametrize("upper", [False, True])
def test_logarithm_of_the_determinant_has_the_inverse_as_its_gradient(upper):
    def f(a):
        return 2 * np.sum(np.log(np.diagonal(np.linalg.cholesky(a, upper=upper))))

    for bar in both_modes(f, POSITIVE):
        assert_allclose(bar, np.linalg.inv(POSITIVE), rtol=1e-13)


def test_factor_of_two_by_two():
    # [[a, b], [b, c]] has l[1, 0] = b / sqrt(a): at a = 4, b = 2 its slopes are -1/8 and 1/2, the
    # latter in two halves.
    a = np.array([[4.0, 2.0], [2.0, 5.0]])
    for bar in both_modes(lambda a: np.linalg.cholesky(a)[1, 0], a):
        assert_allclose(bar, [[-0.125, 0.25], [0.25, 0]], atol=1e-15)


def test_complex_factor_of_two_by_two():
    # Here b = 2 + 2j below: l[1, 0] = b / sqrt(a), l[1, 1]**2 = c - |b|**2 / a.
    a = np.array([[4, 2 - 2j], [2 + 2j, 6]])
    bar = fg.grad(lambda a: np.real(np.linalg.cholesky(a)[1, 1]) ** 2)(a)
    assert_allclose(bar, [[0.5, -0.5 - 0.5j], [-0.5 + 0.5j, 1]], atol=1e-15)


def test_one_triangle_counts_twice():
    full = fg.grad(lambda a: np.sum(np.linalg.cholesky(a)))(POSITIVE)
    bar = fg.grad(lambda a: np.sum(np.linalg.cholesky(a)))(np.tril(POSITIVE))
    assert_allclose(bar, np.tril(2 * full) - np.diag(np.diag(full)), rtol=1e-13)


def test_factor_and_its_derivative_multiply_to_the_direction():
    direction = G + G.T
    factor, dot = fg.jvp(np.linalg.cholesky, (POSITIVE,), (direction,))
    assert_allclose(dot @ factor.T + factor @ dot.T, direction, atol=1e-14)
    assert_array_equal(np.triu(dot, 1), np.zeros((3, 3)))


def test_third_derivative_of_the_logarithm_of_the_determinant():
    def f(t):
        factor = np.linalg.cholesky(POSITIVE + t * (G + G.T))
        return 2 * np.sum(np.log(np.diagonal(factor)))

    step = np.linalg.solve(POSITIVE, G + G.T)
    expected = 2 * np.trace(step @ step @ step)
    assert_allclose(fg.grad(fg.grad(fg.grad(f)))(0.0), expected, rtol=1e-11)


def test_matrix_that_is_not_positive_definite_is_refused_as_by_numpy():
    for transform in (fg.vjp, lambda f, x: fg.jvp(f, (x,), (x,))):
        with pytest.raises(np.linalg.LinAlgError, match="Matrix is not positive definite"):
            transform(np.linalg.cholesky, -POSITIVE)


# QR


@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_result_is_the_named_tuple_of_numpy(mode):
    out, _ = fg.vjp(lambda a: np.linalg.qr(a, mode), TALL)
    assert type(out) is type(np.linalg.qr(TALL))


def test_rotation_and_length_of_a_column():
    # One column (3, 4): r is its length, up to its sign q the direction.
    a = np.array([[3.0], [4.0]])
    for bar in both_modes(lambda a: np.abs(np.linalg.qr(a)[1][0, 0]), a):
        assert_allclose(bar, [[0.6], [0.8]], rtol=1e-15)
    for bar in both_modes(lambda a: np.linalg.qr(a)[0][0, 0] ** 2, a):
        # x**2 / (x**2 + y**2)
        assert_allclose(bar, [[2 * 3 * 16 / 625], [-2 * 9 * 4 / 625]], rtol=1e-14)


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_logarithm_of_the_volume(mode):
    def f(a):
        r = np.linalg.qr(a, mode)
        r = r if mode == "r" else r[1]
        return np.sum(np.log(np.abs(np.diagonal(r))))

    for bar in both_modes(f, G):
        assert_allclose(bar, np.linalg.inv(G).T, rtol=1e-12)
    for bar in both_modes(f, TALL):
        assert_allclose(bar, np.linalg.pinv(TALL).T, rtol=1e-12)


@pytest.mark.parametrize("a", [G, TALL, TALL.T, WIDE])
def test_product_of_the_factors_has_the_direction_as_its_derivative(a):
    direction = np.cos(np.arange(a.size)).reshape(a.shape) + 0 * a
    for mode in ("reduced", "complete"):
        _, dot = fg.jvp(lambda a, m=mode: np.matmul(*np.linalg.qr(a, m)), (a,), (direction,))
        assert_allclose(dot, direction, atol=1e-14)


def test_wide_complex_qr_agrees_with_pytorch():
    def f(a):
        q, r = np.linalg.qr(a)
        sizes = np.abs(q) ** 2 * np.array([[1, 3], [-2, 0.5]])
        return np.sum(sizes) + np.sum(np.real(r**2 * np.array([[1, 2j, -1], [0, 1, 0.5]])))

    # torch 2.13, conjugated: our convention
    expected = [
        [5.0550712 - 15.60537176j, 1.96523746 + 8.55508149j, -1.44929006 + 0.92089249j],
        [5.00972232 + 11.7202848j, -2.22032594 - 4.13905015j, 2.31643002 - 1.79716024j],
    ]
    assert_allclose(fg.grad(f)(WIDE), expected, rtol=1e-7)


def test_projector_on_what_is_left_of_the_space():
    def f(a):
        n = np.linalg.qr(a, "complete")[0][:, 2:]
        return np.sum(n @ n.T * G)

    def by_inverse(a):
        return np.sum((np.eye(3) - a @ np.linalg.solve(a.T @ a, a.T)) * G)

    for bar in both_modes(f, TALL):
        assert_allclose(bar, fg.grad(by_inverse)(TALL), atol=1e-13)


def test_complete_rotation_stays_a_rotation():
    q, q_dot = fg.jvp(lambda a: np.linalg.qr(a, "complete")[0], (TALL,), (G[:, :2],))
    assert_allclose(q.T @ q_dot, -(q_dot.T @ q), atol=1e-14)


def test_third_derivative_of_the_volume():
    def f(t):
        return np.sum(np.log(np.abs(np.diagonal(np.linalg.qr(G + t * np.eye(3), "r")))))

    step = np.linalg.inv(G)
    expected = 2 * np.trace(step @ step @ step)
    assert_allclose(fg.grad(fg.grad(fg.grad(f)))(0.0), expected, rtol=1e-10)


@pytest.mark.parametrize("mode", ["raw", "economic"])
def test_packed_factors_have_no_rule_and_the_error_says_what_to_use(mode):
    with pytest.raises(MissingRuleError, match="use mode='reduced', 'complete' or 'r'"):
        fg.grad(lambda a: np.sum(np.linalg.qr(a, mode)[0]))(G)


def test_unknown_mode_is_refused_as_by_numpy():
    with pytest.raises(ValueError, match="Unrecognized mode 'full stop'"):
        fg.grad(lambda a: np.sum(np.linalg.qr(a, "full stop")[0]))(G)


def test_dependent_columns_have_no_derivative_and_do_not_disturb_others():
    stack = np.stack([np.zeros((2, 2)), TALL[:2]])
    bars = fg.grad(lambda a: np.sum(np.linalg.qr(a)[1]))(stack)
    assert np.all(np.isnan(bars[0]))
    assert_allclose(bars[1], fg.grad(lambda a: np.sum(np.linalg.qr(a)[1]))(TALL[:2]), rtol=1e-14)


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_a_zero_cotangent_wins_over_dependent_columns(mode):
    def f(a):
        r = np.linalg.qr(a, mode)
        r = r if mode == "r" else r[1]
        return np.where(np.array(True), np.sum(a), np.sum(r))

    for bar in both_modes(f, np.zeros((3, 2))):
        assert_array_equal(bar, np.ones((3, 2)))
