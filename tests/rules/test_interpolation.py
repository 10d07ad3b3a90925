"""`interp`: gradients from elsewhere, knots, ends, periods and batches."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg

XP = np.array([0.0, 1.0, 3.0, 4.0])
FP = np.array([1.0, -2.0, 0.5, 4.0])
X = np.array([0.2, 1.7, -3.0, 9.0])


def weighted(x, xp, fp, **options):
    return np.sum(np.interp(x, xp, fp, **options) * [1.0, 2.0, 3.0, 4.0])


def gradients(*args, **options):
    _, pullback = fg.vjp(lambda *args: weighted(*args, **options), *args)
    return pullback(1.0)


def test_gradients_in_points_knots_and_values():
    # jax.grad of jax.numpy.interp, jax 0.10.2.
    x_bar, xp_bar, fp_bar = gradients(X, XP, FP)
    assert_allclose(x_bar, [-3.0, 2.5, 0, 0], atol=1e-14)
    assert_allclose(xp_bar, [2.4, -1.025, -0.875, 0.0], atol=1e-14)
    assert_allclose(fp_bar, [3.8, 1.5, 0.7, 4.0], atol=1e-14)


def test_gradients_with_a_period():
    # jax.grad of jax.numpy.interp with period=2.5, at points that are on no knot.
    x = np.array([0.2, 1.7, -2.9, 8.1])
    step = 1e-6
    for k, got in enumerate(gradients(x, XP, FP, period=2.5)):
        for i in range(4):
            args = [x.copy(), XP.copy(), FP.copy()]
            args[k][i] += step
            up = weighted(*args, period=2.5)
            args[k][i] -= 2 * step
            down = weighted(*args, period=2.5)
            assert got[i] == pytest.approx((up - down) / (2 * step), rel=1e-6, abs=1e-7)


def test_at_a_knot_the_slope_nearest_to_zero_counts():
    # Slopes -3, 1.25, 3.5 between the knots: signs differ at 1.0, and 1.25 is the smaller at 3.0.
    slope = fg.grad(np.interp)
    assert slope(1.0, XP, FP) == 0.0
    assert slope(3.0, XP, FP) == 1.25
    assert slope(3.0, XP, -FP) == -1.25


def test_at_a_knot_the_knot_moves_against_the_slope():
    _, xp_bar, fp_bar = fg.vjp(np.interp, 3.0, XP, FP)[1](1.0)
    assert_array_equal(xp_bar, [0, 0, -1.25, 0])
    assert_array_equal(fp_bar, [0, 0, 1, 0])


def test_at_the_ends_the_flat_side_counts():
    slope = fg.grad(np.interp)
    assert slope(0.0, XP, FP) == 0.0
    assert slope(4.0, XP, FP) == 0.0


def test_at_the_ends_the_slope_inside_counts_if_the_result_jumps():
    slope = fg.grad(lambda x: np.interp(x, XP, FP, left=7.0, right=7.0))
    assert slope(0.0) == -3.0
    assert slope(4.0) == 3.5


def test_a_knot_that_is_there_twice_is_a_jump():
    xp = np.array([0.0, 1.0, 1.0, 2.0])
    assert fg.grad(np.interp)(1.0, xp, FP) == 3.5
    assert fg.grad(np.interp)(0.5, xp, FP) == -3.0


def test_complex_values_at_a_knot():
    # Slopes 1 and 1j meet; nearest to zero between them is (1 + 1j) / 2.
    fp = np.array([0.0, 1.0, 1.0 + 1.0j])
    _, out_dot = fg.jvp(lambda x: np.interp(x, np.arange(3.0), fp), (1.0,), (1.0,))
    assert out_dot == pytest.approx(0.5 + 0.5j)


def test_values_left_and_right_are_differentiable():
    def total(x, left, right):
        return weighted(x, XP, FP, left=left, right=right)

    _, left_bar, right_bar = fg.vjp(total, X, 1.0, 2.0)[1](1.0)
    assert (left_bar, right_bar) == (3.0, 4.0)


def test_a_single_knot_is_a_constant():
    x_bar, xp_bar, fp_bar = gradients(X, np.array([1.0]), np.array([5.0]))
    assert_array_equal(x_bar, [0, 0, 0, 0])
    assert_array_equal(xp_bar, [0])
    assert_array_equal(fp_bar, [10])


def test_second_derivative_in_a_knot():
    # Between 0 and k the result is 1 + x * (f - 1) / k.
    def value(k):
        return np.interp(0.25, np.array([0.0, 1.0, 3.0]) * k, np.array([1.0, -2.0, 0.5]))

    # (f - 1) * x * 2 / k**3 at k = 1
    assert fg.grad(fg.grad(value))(1.0) == pytest.approx(-3.0 * 0.25 * 2)


def test_each_example_has_its_own_knots():
    xp = np.stack([XP, 2 * XP])
    found = fg.vmap(lambda xp: np.interp(0.5, xp, FP))(xp)
    assert_allclose(found, [-0.5, 0.25])
    slopes = fg.vmap(fg.grad(lambda x, xp: np.interp(x, xp, FP)), (None, 0))(0.5, xp)
    assert_allclose(slopes, [-3.0, -1.5])


def test_numpys_errors():
    with pytest.raises(ValueError, match="period must be a non-zero value"):
        fg.grad(lambda x: np.interp(x, XP, FP, period=0))(1.0)
    with pytest.raises(ValueError, match="same length"):
        fg.grad(lambda x: np.interp(x, XP, FP[:2]))(1.0)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, bool])
def test_the_slope_between_small_integers_does_not_wrap_around(dtype):
    values = np.array([1, 0], dtype)
    slope = fg.grad(lambda x: np.interp(x, np.array([0, 1], np.uint8), values))(0.5)
    assert slope == -1.0
