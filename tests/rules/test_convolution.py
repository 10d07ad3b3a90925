"""Convolution, correlation and polynomials: known gradients, conjugation, errors."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg

A, V = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0])


def test_full_convolution_multiplies_the_sums():
    bars = fg.grad(lambda a, v: np.sum(np.convolve(a, v)), argnums=(0, 1))(A, V)
    assert_array_equal(bars[0], [9, 9, 9])
    assert_array_equal(bars[1], [6, 6])


def test_valid_convolution():
    # [1*5 + 2*4, 2*5 + 3*4]
    bars = fg.grad(lambda a, v: np.sum(np.convolve(a, v, "valid")), argnums=(0, 1))(A, V)
    assert_array_equal(bars[0], [5, 9, 4])
    assert_array_equal(bars[1], [5, 3])


def test_correlation_conjugates_its_second_sequence():
    # f = a conj(v)
    a, v = np.array([1 + 2j]), np.array([3 + 4j])
    _, pullback = fg.vjp(np.correlate, a, v)
    a_bar, v_bar = pullback(np.array([1j]))
    assert_array_equal(a_bar, [1j * (3 - 4j)])
    assert_array_equal(v_bar, [-1j * (1 - 2j)])


def test_gradient_of_a_polynomial_is_its_derivative():
    # 2 x**2 + 3 x + 5
    p, x = np.array([2.0, 3.0, 5.0]), np.array([1.0, -2.0])
    bars = fg.grad(lambda p, x: np.sum(np.polyval(p, x)), argnums=(0, 1))(p, x)
    assert_array_equal(bars[0], [5, -1, 2])
    assert_array_equal(bars[1], [7, -5])


@pytest.mark.parametrize(
    "call",
    [
        lambda a: np.convolve(a, []),
        lambda a: np.convolve(a, np.ones((2, 2))),
        lambda a: np.convolve(a, V, "other"),
        lambda a: np.correlate(a, []),
        lambda a: np.correlate(a, np.ones((2, 2))),
    ],
)
def test_errors_are_those_of_numpy(call):
    with pytest.raises((ValueError, TypeError)) as expected:
        call(A)
    with pytest.raises(expected.type) as raised:
        fg.grad(call)(A)
    assert str(raised.value) == str(expected.value)
