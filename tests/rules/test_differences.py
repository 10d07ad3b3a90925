"""Numerical derivatives and unwrapped phases."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg

F = np.array([1.0, 4.0, 2.0, 7.0, 3.0])
X = np.array([0.0, 0.5, 1.7, 2.0, 3.1])
WEIGHTS = np.array([1.0, -2.0, 3.0, 0.5, 4.0])


def test_gradient_on_uneven_points():
    # torch.gradient(f, spacing=(x,)), torch 2.13, with the weights above.
    _, pullback = fg.vjp(np.gradient, F, X)
    f_bar, x_bar = pullback(WEIGHTS)
    expected = [
        [0.8235294117647061, -0.8333333333333335, -9.29971988795518, 5.575757575757574],
        [-11.307958477508652, 6.611111111111118, 194.88618977002562, -205.32047750229563],
    ]
    assert_allclose(f_bar, [*expected[0], 3.7337662337662336], rtol=1e-13)
    assert_allclose(x_bar, [*expected[1], 15.131135098667565], rtol=1e-12)


def test_parabola_has_its_exact_derivative_wherever_the_points_are():
    """With ``edge_order=2`` the result is ``2 x``, and moves with each point by 2."""

    def slopes(x):
        return np.gradient(x * x, x, edge_order=2)

    value, out_dot = fg.jvp(slopes, (X,), (WEIGHTS,))
    assert_allclose(value, 2 * X, atol=1e-14)
    assert_allclose(out_dot, 2 * WEIGHTS, atol=1e-13)


def test_points_that_happen_to_be_even_have_derivatives_of_their_own():
    x = np.arange(5.0)
    value, pullback = fg.vjp(lambda x: np.gradient(F, x), x)
    assert_array_equal(value, np.gradient(F, x))
    (gradient,) = pullback(np.array([0.0, 1.0, 0.0, 0.0, 0.0]))
    step = 1e-6
    for i in range(5):
        up, down = x.copy(), x.copy()
        up[i], down[i] = x[i] + step, x[i] - step
        expected = (np.gradient(F, up)[1] - np.gradient(F, down)[1]) / (2 * step)
        assert gradient[i] == pytest.approx(expected, abs=1e-8)


def test_one_spacing_for_all_axes():
    f = np.array([[1.0, 2.0], [4.0, 8.0]])
    value, pullback = fg.vjp(lambda h: np.gradient(f, h), 2.0)
    assert_array_equal(value, np.gradient(f, 2.0))
    ones = (np.ones((2, 2)), np.zeros((2, 2)))
    assert pullback(ones) == (-18.0 / 4,)  # 2 * (3 + 6) / h


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda f: np.gradient(f, 1.0, 2.0), TypeError, "invalid number"),
        (lambda f: np.gradient(f, f[:2]), ValueError, "must match"),
        (lambda f: np.gradient(f, edge_order=3), ValueError, "not supported"),
        (lambda f: np.gradient(f[:1]), ValueError, "too small"),
        (lambda f: np.gradient(f, axis=1), np.exceptions.AxisError, "axis 1"),
    ],
)
def test_numpys_errors(call, error, words):
    with pytest.raises(error, match=words):
        call(F)
    with pytest.raises(error, match=words):
        fg.jvp(call, (F,), (F,))


def test_even_points_in_a_batch():
    x = np.stack([np.arange(5.0), X])
    found = fg.vmap(lambda x: np.gradient(F, x))(x)
    assert_allclose(found, [np.gradient(F, points) for points in x], rtol=1e-14)


def test_unwrap_has_the_derivative_of_its_argument():
    phase = np.array([0.0, 3.0, -3.0, 2.0])
    value, pullback = fg.vjp(np.unwrap, phase)
    assert_array_equal(value, np.unwrap(phase))
    assert value[2] > 3.0
    assert_array_equal(pullback(WEIGHTS[:4])[0], WEIGHTS[:4])


def test_unsigned_coordinates_of_gradient_may_decrease():
    f = np.array([1.0, 2.0, 4.0])
    points = np.array([[3, 2, 0], [0, 1, 3]], np.uint8)
    slopes = fg.vmap(lambda x: np.gradient(f, x))(points)
    np.testing.assert_allclose(slopes, [[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]])


def test_unwrap_takes_one_axis():
    with pytest.raises(TypeError):
        fg.vmap(lambda p: np.unwrap(p, axis=None))(np.ones((2, 3)))
