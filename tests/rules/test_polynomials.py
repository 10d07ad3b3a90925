"""Polynomials: roots and their coefficients, division, fits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg


def test_roots_of_a_quadratic():
    """Of ``x**2 - s x + p``, with roots 1 and 3: ``dx = (x ds - dp) / (2 x - s)``."""
    p = np.array([1.0, -4.0, 3.0])
    place = int(np.argmax(np.roots(p)))
    gradient = fg.grad(lambda p: np.roots(p)[place])(p)
    assert_allclose(gradient, [-9 / 2, -3 / 2, -1 / 2], rtol=1e-13)


def test_complex_roots_of_real_coefficients():
    # 1j and -1j: of x**2 + c, the imaginary part is sqrt(c).
    gradient = fg.grad(lambda c: np.max(np.imag(np.roots(np.stack([1.0 + 0 * c, 0 * c, c])))))(4.0)
    assert gradient == pytest.approx(0.25)


def test_second_derivative_of_a_root():
    # The root of x**2 - c is sqrt(c).
    def root(c):
        return np.max(np.roots(np.stack([1 + 0 * c, 0 * c, -c])))

    assert fg.grad(fg.grad(root))(4.0) == pytest.approx(-1 / 32)


def test_root_at_zero_moves_with_the_last_coefficient():
    # Of x**2 - x + e, near 0, the root is e.
    gradient = fg.grad(lambda p: np.min(np.abs(np.roots(p) - 0.0) ** 2))(np.array([1.0, -1.0, 0.0]))
    assert_array_equal(gradient, [0, 0, 0])
    _, out_dot = fg.jvp(np.roots, (np.array([1.0, -1.0, 0.0]),), (np.array([0.0, 0.0, 1.0]),))
    assert_allclose(out_dot, [-1, 1], rtol=1e-14)


def test_zeros_in_front_move_the_roots_that_are_there():
    # Of e x**2 + x - 2, the root near 2 moves by -4 e.
    _, out_dot = fg.jvp(np.roots, (np.array([0.0, 1.0, -2.0]),), (np.array([1.0, 0.0, 0.0]),))
    assert_allclose(out_dot, [-4], rtol=1e-14)


def test_coefficients_from_roots():
    # (x - a)(x - b) = x**2 - (a + b) x + ab
    _, pullback = fg.vjp(np.poly, np.array([2.0, 5.0]))
    assert_array_equal(pullback(np.array([7.0, 1.0, 0.0]))[0], [-1, -1])
    assert_array_equal(pullback(np.array([0.0, 0.0, 1.0]))[0], [5, 2])


def test_characteristic_polynomial_of_a_matrix():
    a = np.array([[2.0, 1.0], [1.0, 3.0]])
    _, pullback = fg.vjp(np.poly, a)
    assert_allclose(pullback(np.array([0.0, 1.0, 0.0]))[0], [[-1, 0], [0, -1]], atol=1e-14)
    assert_allclose(pullback(np.array([0.0, 0.0, 1.0]))[0], [[3, -1], [-1, 2]], atol=1e-14)


def test_division_gives_the_derivative_of_quotient_and_remainder():
    # x**2 + b x + c = (x + b - a)(x + a) + c - a (b - a), divided by x + a
    def divide(a, b, c):
        return np.polydiv(np.stack([1 + 0 * b, b, c]), np.stack([1 + 0 * a, a]))

    (q, r), pullback = fg.vjp(divide, 2.0, 5.0, 7.0)
    assert_array_equal(q, [1, 3])
    assert_array_equal(r, [1])
    assert pullback((np.array([0.0, 1.0]), np.array([0.0]))) == (-1.0, 1.0, 0.0)
    assert pullback((np.array([0.0, 0.0]), np.array([1.0]))) == (-1.0, -2.0, 1.0)


def test_product_without_zeros_in_front():
    value, pullback = fg.vjp(lambda p: np.polymul(p, [2.0, 3.0]), np.array([0.0, 1.0, 4.0]))
    assert_array_equal(value, np.polymul([0.0, 1.0, 4.0], [2.0, 3.0]))
    assert_array_equal(pullback(np.array([1.0, 10.0, 100.0]))[0], [0, 32, 320])


def test_sums_of_unequal_length():
    p_bar, q_bar = fg.vjp(np.polysub, np.ones(3), np.ones(2))[1](np.array([1.0, 10.0, 100.0]))
    assert_array_equal(p_bar, [1, 10, 100])
    assert_array_equal(q_bar, [-10, -100])


def test_derivative_and_integral():
    weights = np.array([1.0, 10.0, 100.0])
    assert_array_equal(fg.grad(lambda p: np.polyder(p) @ weights)(np.ones(4)), [3, 20, 100, 0])
    gradient = fg.grad(lambda p: np.polyint(p, 2, [5.0, 6.0]) @ weights)(np.ones(1))
    assert_array_equal(gradient, [0.5])


def test_fit_is_linear_in_the_values():
    # jax.jacrev of jax.numpy.polyfit, jax 0.10.2.
    x = np.array([0.0, 1.0, 2.0, 4.0])
    _, pullback = fg.vjp(lambda y: np.polyfit(x, y, 1), np.array([1.0, 2.0, 4.0, 3.0]))
    slope = [-0.2, -0.0857142857142857, 0.028571428571428553, 0.25714285714285706]
    assert_allclose(pullback(np.array([1.0, 0.0]))[0], slope, atol=1e-14)
    assert_allclose(pullback(np.array([0.0, 1.0]))[0], [0.6, 0.4, 0.2, -0.2], atol=1e-14)


def test_fit_in_the_points():
    """The slope is ``sum((x - mean) y) / sum((x - mean)**2)``; jax gives NaN for the point at 0."""
    y = np.array([0.5, -1.0, 2.0, 2.5])
    x = np.array([0.0, 1.0, 2.0, 4.0])
    slope, gradient = fg.value_and_grad(lambda x: np.polyfit(x, y, 1)[0])(x)
    d = x - x.mean()
    expected = (y - y.mean() - 2 * slope * d) / np.sum(d * d)
    assert_allclose(gradient, expected, rtol=1e-12)
    assert_allclose(gradient[1:], [-0.11102040816326536, 0.07510204081632652, -0.1812244897959183])


def test_fit_ignores_points_of_weight_zero():
    x, y = np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 77.0])
    weights = np.array([1.0, 1.0, 0.0])
    gradient = fg.grad(lambda y: np.polyfit(x, y, 1, w=weights)[0])(y)
    assert_allclose(gradient, [-1, 1, 0], atol=1e-14)


def test_vander_at_zero():
    gradient = fg.grad(lambda x: np.sum(np.vander(x, 3) @ [100.0, 10.0, 1.0]))(np.array([0.0, 2.0]))
    assert_array_equal(gradient, [10, 410])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: np.vander(np.stack([x, x])), ValueError, "one-dimensional"),
        (lambda x: np.polyfit(x, x, -1), ValueError, "expected deg >= 0"),
        (lambda x: np.polyfit(x, x[:2], 1), TypeError, "same length"),
        (lambda x: np.polyder(x, -1), ValueError, "must be positive"),
        (lambda x: np.polyint(x, 3, [1.0, 2.0]), ValueError, "k must be a scalar"),
        (lambda x: np.poly(np.stack([x, x])), ValueError, "square 2d"),
        (lambda x: np.roots(np.stack([x, x])), ValueError, "rank-1"),
    ],
)
def test_numpys_errors(call, error, words):
    x = np.array([1.0, 2.0, 4.0])
    with pytest.raises(error, match=words):
        call(x)
    with pytest.raises(error, match=words):
        fg.jvp(call, (x,), (x,))
