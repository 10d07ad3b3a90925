"""What the laws (test_laws.py) cannot know of running sums, products, extremes, and other folds."""

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import MissingRuleError


def gradient_of_sum(fun, x):
    return fg.grad(lambda x: np.sum(fun(x)))(np.array(x))


# Products


def test_running_product_with_a_zero():
    np.testing.assert_array_equal(gradient_of_sum(np.cumprod, [3.0, 0.0, 2.0]), [1, 9, 0])


def test_running_product_that_starts_with_zero():
    np.testing.assert_array_equal(gradient_of_sum(np.cumprod, [0.0, 5.0, 1.0, 2.0]), [21, 0, 0, 0])


def test_second_derivative_of_a_running_product_with_zeros():
    # a + ab + abc + abcd at [2, 0, 0, 3]
    expected = np.array([[0, 1, 0, 0], [1, 0, 8, 0], [0, 8, 0, 0], [0, 0, 0, 0]])
    x = np.array([2.0, 0.0, 0.0, 3.0])
    gradient = fg.grad(lambda x: np.sum(np.cumprod(x)))
    for unit, column in zip(np.eye(4), expected, strict=True):
        np.testing.assert_array_equal(fg.jvp(gradient, (x,), (unit,))[1], column)
        pulled = fg.grad(lambda x, unit=unit: np.sum(gradient(x) * unit))(x)
        np.testing.assert_array_equal(pulled, column)


def test_long_running_product_of_large_factors_stays_exact_where_no_cotangent_comes_from():
    # Products of the later factors overflow; they belong to elements that are not used.
    x = np.array([2.0, 3.0, *[1e200] * 20])
    with np.errstate(over="ignore"):
        gradient = fg.grad(lambda x: np.cumprod(x)[1])(x)
    np.testing.assert_array_equal(gradient, [3, 2] + [0] * 20)


@pytest.mark.parametrize("shape", [(5000,), (50, 40), (4, 3, 50)])
def test_running_product_of_ones_counts_what_follows(shape):
    gradient = fg.grad(lambda x: np.sum(np.cumprod(x, axis=0)))(np.ones(shape))
    expected = np.arange(shape[0], 0, -1.0).reshape((-1,) + (1,) * (len(shape) - 1))
    np.testing.assert_array_equal(gradient, np.broadcast_to(expected, shape))


# Sums


def test_running_sum_flattens_without_axis():
    gradient = gradient_of_sum(np.cumsum, [[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(gradient, [[4, 3], [2, 1]])


def test_running_sum_of_a_number_is_an_array():
    value, pullback = fg.vjp(np.cumsum, 2.0)
    np.testing.assert_array_equal(value, [2.0])
    assert pullback(np.array([3.0])) == (3.0,)


@pytest.mark.parametrize("accumulate", [np.add.accumulate, np.cumulative_sum])
def test_other_spellings_of_the_running_sum(accumulate):
    np.testing.assert_array_equal(gradient_of_sum(accumulate, [1.0, 2.0, 3.0]), [3, 2, 1])


def test_running_sum_with_the_initial_zero():
    value, pullback = fg.vjp(lambda x: np.cumulative_sum(x, include_initial=True), np.ones(2))
    np.testing.assert_array_equal(value, [0, 1, 2])
    np.testing.assert_array_equal(pullback(np.array([100.0, 10.0, 1.0]))[0], [11, 1])


def test_running_sum_of_a_matrix_needs_an_axis():
    with pytest.raises(ValueError, match="``axis`` argument is required"):
        fg.grad(lambda x: np.sum(np.cumulative_sum(x)))(np.ones((2, 2)))


def test_accumulating_a_scalar_raises_what_numpy_raises():
    with pytest.raises(TypeError, match="cannot accumulate on a scalar"):
        fg.grad(np.add.accumulate)(2.0)


def test_an_axis_out_of_range_raises_what_numpy_raises():
    with pytest.raises(np.exceptions.AxisError):
        fg.grad(lambda x: np.sum(np.cumsum(x, axis=1)))(np.ones(3))


def test_running_sum_in_integers_is_plain():
    def fun(x):
        assert isinstance(np.cumsum(x, dtype=int), np.ndarray)
        return np.sum(x)

    np.testing.assert_array_equal(fg.grad(fun)(np.ones(2)), [1, 1])


# Extremes


def test_running_maxima_share_with_those_before_that_equal_them():
    # 1, 3, max(3, 3), max(3, 3, 2): what is reached twice is shared by two.
    x = np.array([1.0, 3.0, 3.0, 2.0])
    weights = np.array([1.0, 10.0, 100.0, 1000.0])
    gradient = fg.grad(lambda x: np.sum(np.maximum.accumulate(x) * weights))(x)
    np.testing.assert_array_equal(gradient, [1, 10 + 50 + 500, 50 + 500, 0])


def test_running_maxima_share_in_forward_mode():
    x, x_dot = np.array([1.0, 3.0, 3.0, 2.0]), np.array([1.0, 10.0, 100.0, 1000.0])
    np.testing.assert_array_equal(fg.jvp(np.maximum.accumulate, (x,), (x_dot,))[1], [1, 10, 55, 55])


def test_running_minimum_follows_the_nan():
    gradient = gradient_of_sum(np.minimum.accumulate, [1.0, np.nan, 0.0])
    np.testing.assert_array_equal(gradient, [1, 2, 0])


def test_running_fmax_passes_over_the_nan():
    gradient = gradient_of_sum(np.fmax.accumulate, [np.nan, 1.0, np.nan, 0.0])
    np.testing.assert_array_equal(gradient, [1, 3, 0, 0])


# Log-sums


@pytest.mark.parametrize("reduce", [np.logaddexp.reduce, np.logaddexp2.reduce])
def test_log_sum_of_all_minus_infinity_shares(reduce):
    gradient = fg.grad(reduce)(np.full(3, -np.inf))
    np.testing.assert_allclose(gradient, [1 / 3] * 3)


def test_log_sum_of_an_infinity_gives_all_to_it():
    gradient = fg.grad(np.logaddexp.reduce)(np.array([np.inf, 1.0, np.inf]))
    np.testing.assert_array_equal(gradient, [0.5, 0, 0.5])


def test_log_sum_of_large_numbers_has_the_weights_of_a_softmax():
    gradient = fg.grad(np.logaddexp.reduce)(np.array([1e4, -1e4, 1e4 + np.log(3.0)]))
    np.testing.assert_allclose(gradient, [0.25, 0, 0.75], rtol=1e-11)


def test_second_derivative_of_a_log_sum_is_the_covariance_of_its_weights():
    x = np.log(np.array([1.0, 3.0]))
    for unit, column in zip(np.eye(2), [[0.1875, -0.1875], [-0.1875, 0.1875]], strict=True):
        found = fg.jvp(fg.grad(np.logaddexp.reduce), (x,), (unit,))[1]
        np.testing.assert_allclose(found, column, rtol=1e-13)


def test_running_log_sum_of_all_minus_infinity_keeps_the_total():
    gradient = fg.grad(lambda x: np.logaddexp.accumulate(x)[-1])(np.full(3, -np.inf))
    assert np.sum(gradient) == 1.0


def test_hypot_of_zeros_has_gradient_zero():
    np.testing.assert_array_equal(fg.grad(np.hypot.reduce)(np.zeros(3)), 0)


def test_hypot_is_the_length():
    np.testing.assert_allclose(
        fg.grad(np.hypot.reduce)(np.array([2.0, -3.0, 6.0])), [2 / 7, -3 / 7, 6 / 7]
    )


# Folds


def test_difference_of_many_takes_all_from_the_first():
    np.testing.assert_array_equal(fg.grad(np.subtract.reduce)(np.ones(4)), [1, -1, -1, -1])


def test_quotient_of_many():
    # a / b / c at (12, 2, 3): 1/6, -1, -2/3
    np.testing.assert_allclose(
        fg.grad(np.divide.reduce)(np.array([12.0, 2.0, 3.0])), [1 / 6, -1, -2 / 3]
    )


def test_masked_difference_needs_no_derivative_of_the_masked():
    mask = np.array([True, False])
    gradient = fg.grad(lambda x: np.subtract.reduce(x, where=mask, initial=9.0))(np.ones(2))
    np.testing.assert_array_equal(gradient, [-1, 0])


def test_masked_fold_without_a_neutral_element_is_refused():
    with pytest.raises(MissingRuleError, match=r"copysign\.reduce with where="):
        fg.grad(lambda x: np.copysign.reduce(x, where=np.array([True, False]), initial=1.0))(
            np.ones(2)
        )


@pytest.mark.parametrize("ufunc", [np.power, np.arctan2])
def test_a_fold_whose_value_numpy_miscomputes_is_refused(ufunc):
    with pytest.raises(MissingRuleError, match=rf"{ufunc.__name__}\.reduce has no rule"):
        fg.grad(ufunc.reduce)(np.array([2.0, 3.0, 2.0]))


def test_running_power():
    # a, a**b, a**(b*c) at (2, 3, 2), summed
    log2 = np.log(2.0)
    expected = [1 + 3 * 4 + 6 * 32, 8 * log2 + 2 * 64 * log2, 3 * 64 * log2]
    gradient = gradient_of_sum(np.power.accumulate, [2.0, 3.0, 2.0])
    np.testing.assert_allclose(gradient, expected)


def test_folds_of_steps_are_plain():
    def fun(x):
        assert type(np.floor_divide.reduce(x)) is np.float64
        assert type(np.floor_divide.accumulate(x)) is np.ndarray
        return np.sum(x)

    np.testing.assert_array_equal(fg.grad(fun)(np.ones(2)), [1, 1])


# reduceat


def test_pieces_that_overlap_add_up():
    weights = np.array([1.0, 10.0, 100.0])
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    gradient = fg.grad(lambda x: np.sum(np.add.reduceat(x, [0, 3, 1]) * weights))(x)
    np.testing.assert_array_equal(gradient, [1, 101, 101, 110, 100])


def test_pieces_of_any_ufunc():
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    value, pullback = fg.vjp(lambda x: np.multiply.reduceat(x, [0, 3, 1]), x)
    np.testing.assert_array_equal(value, [6, 4, 120])
    np.testing.assert_array_equal(
        pullback(np.array([1.0, 10.0, 100.0]))[0], [6, 6003, 4002, 3010, 2400]
    )


def test_an_index_out_of_range_raises_what_numpy_raises():
    with pytest.raises(IndexError, match="index 7 out-of-bounds"):
        fg.grad(lambda x: np.sum(np.add.reduceat(x, [0, 7])))(np.ones(3))


@pytest.mark.parametrize("scale", [1.0, 1e-60, 1e60])
def test_cumprod_by_logarithms_and_by_a_scan_agree(scale):
    """Products far from 0 and from infinity have a shorter rule than others."""
    a = np.array([0.5, -2.0, 1.5, 0.25, 3.0]) * scale
    t = np.array([1.0, -1.0, 2.0, 0.5, 3.0]) / scale ** np.arange(1.0, 6.0)
    (gradient,) = fg.vjp(np.cumprod, a)[1](t)
    base, weights = a / scale, t * scale ** np.arange(1.0, 6.0)
    expected = [
        sum(weights[k] * np.prod(np.delete(base[: k + 1], i)) for k in range(i, 5))
        for i in range(5)
    ]
    np.testing.assert_allclose(gradient * scale, expected, rtol=1e-13)


def test_running_extreme_with_ties_in_one_line_alone():
    a = np.array([[1.0, 3.0, 2.0], [2.0, 2.0, 1.0]])
    _, pullback = fg.vjp(lambda a: np.maximum.accumulate(a, axis=1), a)
    np.testing.assert_array_equal(pullback(np.ones((2, 3)))[0], [[1, 2, 0], [2, 1, 0]])


def test_a_row_takes_its_own_running_sum():
    def squares(x):
        y = x * 1.0
        np.cumsum(y, out=y)
        return np.sum(y * y)  # x0**2 + (x0 + x1)**2

    np.testing.assert_allclose(fg.grad(squares)(np.array([1.0, 2.0])), [8.0, 6.0])


def test_running_sums_take_one_axis():
    with pytest.raises(ValueError, match="multiple axes"):
        fg.grad(lambda x: np.sum(np.cumulative_sum(x, axis=(0, 1))))(np.ones((2, 2)))
