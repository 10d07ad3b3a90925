"""What the laws (test_laws.py) cannot know of variances, averages, and reductions without NaN."""

import warnings

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import ArgumentError


def hessians(fun, x):
    units = np.eye(x.size)
    yield np.array([fg.jvp(fg.grad(fun), (x,), (unit,))[1] for unit in units])
    yield np.array(
        [fg.grad(lambda y, unit=unit: np.sum(fg.grad(fun)(y) * unit))(x) for unit in units]
    )


# Standard deviation


@pytest.mark.parametrize("x", [[4.0, 4.0], [0.1, 0.1, 0.1], [7.0]])
def test_std_of_equal_values_has_gradient_zero(x):
    # The mean of three times 0.1 is not 0.1, and so this std is not 0.
    x = np.array(x)
    np.testing.assert_array_equal(fg.grad(np.std)(x), 0)
    assert fg.jvp(np.std, (x,), (np.arange(1.0, x.size + 1),))[1] == 0.0


def test_std_of_equal_values_has_a_finite_second_derivative():
    for found in hessians(np.std, np.array([4.0, 4.0])):
        assert np.all(np.isfinite(found))


def test_std_of_rows_of_which_one_is_constant():
    # Right: (x - mean) / (n * std), with std = sqrt(2 / 3)
    gradient = fg.grad(lambda x: np.sum(np.std(x, axis=1)))(np.array([[1.0, 2, 3], [5, 5, 5]]))
    np.testing.assert_allclose(gradient, [[-0.408248290463863, 0, 0.408248290463863], [0, 0, 0]])


def test_std_of_equal_values_about_another_mean_is_not_flat():
    # sqrt((x - 1)**2) at 4
    gradient = fg.grad(lambda x: np.std(x, mean=np.array([1.0])))(np.array([4.0, 4.0]))
    np.testing.assert_allclose(gradient, [0.5, 0.5])


def test_masked_std_of_equal_values_has_gradient_zero():
    mask = np.array([True, True, False])
    gradient = fg.grad(lambda x: np.std(x, where=mask))(np.array([0.3, 0.3, 9.0]))
    np.testing.assert_array_equal(gradient, 0)


# Variance


def test_variance_of_complex_numbers_is_real_and_ascends_along_the_conjugate():
    # var = (|a - m|**2 + |b - m|**2) / 2; d/da = df/dx - i df/dy = conj(a - m) * 2 / 2
    z = np.array([1 + 1j, 2 - 1j])
    value, gradient = fg.value_and_grad(np.var)(z)
    assert value == 1.25
    np.testing.assert_allclose(gradient, [-0.5 - 1j, 0.5 + 1j])


def test_variance_with_a_traced_mean_is_that_without():
    x = np.array([[1.0, 2.0, 6.0], [0.0, 3.0, 5.0]])

    def given(x):
        return np.sum(np.var(x, axis=1, mean=np.mean(x, axis=1, keepdims=True)) ** 2)

    plain = fg.grad(lambda x: np.sum(np.var(x, axis=1) ** 2))(x)
    np.testing.assert_allclose(fg.grad(given)(x), plain, rtol=1e-14)


def test_variance_of_a_constant_array_depends_on_a_traced_mean():
    # mean((x - m)**2), d/dm = -2 mean(x - m)
    gradient = fg.grad(lambda m: np.var(np.array([1.0, 3.0]), mean=m))(np.array([0.5]))
    np.testing.assert_allclose(gradient, [-3.0])


def test_correction_is_another_name_of_ddof():
    x = np.array([1.0, 2.0, 4.0])
    a = fg.grad(lambda x: np.var(x, correction=1))(x)
    b = fg.grad(lambda x: np.var(x, ddof=1))(x)
    np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(a, np.array([-4.0, -1.0, 5.0]) / 3)


def test_correction_and_ddof_together_raise_what_numpy_raises():
    with pytest.raises(ValueError, match="ddof and correction"):
        fg.grad(lambda x: np.var(x, ddof=1, correction=1))(np.ones(3))


def test_a_traced_ddof_is_refused():
    with pytest.raises(ArgumentError, match="'ddof' of var cannot be a traced value"):
        fg.grad(lambda x: np.var(np.ones(3) * x, ddof=x))(1.0)


def test_zero_wins_over_the_variance_of_infinite_values():
    def fun(x):
        with np.errstate(invalid="ignore"):
            spread = np.var(x, axis=1)
        return np.sum(np.where(np.isfinite(spread), spread, 0.0))

    x = np.array([[1.0, 3.0], [np.inf, 1.0]])
    np.testing.assert_allclose(fg.grad(fun)(x), [[-1, 1], [0, 0]])
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(fg.jvp(fun, (x,), (np.array([[0.0, 1], [0, 0]]),))[1], 1)


def test_gradient_of_a_half_precision_variance_is_half_precision():
    x = np.array([1.0, 2.0, 6.0], np.float16)
    gradient = fg.grad(np.var)(x)
    assert gradient.dtype == np.float16
    np.testing.assert_allclose(gradient, [-4 / 3, -2 / 3, 2], rtol=2e-3)


def test_too_few_elements_warn_as_numpy_does_and_no_more():
    def seen(call):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        return [str(warning.message) for warning in caught]

    x = np.array([1.0])
    expected = seen(lambda: np.std(x, ddof=1))
    assert seen(lambda: fg.vjp(lambda x: np.std(x, ddof=1), x)) == expected
    assert seen(lambda: fg.jvp(lambda x: np.std(x, ddof=1), (x,), (x,))) == expected


# Average and range


def test_average_depends_on_its_weights():
    # sum(w * a) / sum(w): d/dw = (a - average) / sum(w), here (a - 2.5) / 4
    a, w = np.array([1.0, 3.0]), np.array([1.0, 3.0])
    np.testing.assert_allclose(fg.grad(lambda w: np.average(a, weights=w))(w), [-0.375, 0.125])
    np.testing.assert_allclose(fg.grad(lambda a: np.average(a, weights=w))(a), [0.25, 0.75])


def test_average_returns_the_sum_of_traced_weights():
    gradient = fg.grad(lambda w: np.average([1.0, 3.0], weights=w, returned=True)[1])(np.ones(2))
    np.testing.assert_array_equal(gradient, [1, 1])


def test_average_with_weights_that_sum_to_zero_raises_what_numpy_raises():
    with pytest.raises(ZeroDivisionError, match="sum to zero"):
        fg.grad(lambda w: np.average([1.0, 2.0], weights=w))(np.array([1.0, -1.0]))


def test_average_with_weights_of_another_shape_raises_what_numpy_raises():
    with pytest.raises(TypeError, match="Axis must be specified"):
        fg.grad(lambda x: np.average(x, weights=[1.0, 2.0]))(np.ones((3, 2)))
    with pytest.raises(ValueError, match="consistent"):
        fg.grad(lambda x: np.average(x, axis=0, weights=[1.0, 2.0]))(np.ones((3, 2)))


def test_range_gives_one_to_the_largest_and_takes_it_from_the_smallest():
    gradient = fg.grad(np.ptp)(np.array([1.0, 5.0, 5.0, 2.0]))
    np.testing.assert_array_equal(gradient, [-1, 0.5, 0.5, 0])


# Without NaN


def test_the_gradient_of_a_nan_is_zero_whatever_it_is_computed_from():
    x = np.array([np.nan, 3.0, 5.0])
    gradient = fg.grad(lambda x: np.nanmean(x**2))(x)
    np.testing.assert_array_equal(gradient, [0, 3, 5])


def test_forward_mode_ignores_the_tangent_of_a_nan():
    x = np.array([np.nan, 3.0, 5.0])
    assert fg.jvp(lambda x: np.nanmean(x**2), (x,), (np.ones(3),))[1] == 8.0


@pytest.mark.parametrize(
    ("reduce", "expected"),
    [
        (np.nansum, [1, 0, 1, 1]),
        (np.nanprod, [20, 0, 8, 10]),
        (np.nanmax, [0, 0, 1, 0]),
        (np.nanmin, [1, 0, 0, 0]),
        (np.nanmean, [1 / 3, 0, 1 / 3, 1 / 3]),
        (np.nanvar, [-10 / 9, 0, 8 / 9, 2 / 9]),
        # d std = d var / (2 std), and std = sqrt(14) / 3
        (np.nanstd, [-0.4454354031873739, 0, 0.3563483225498992, 0.0890870806374748]),
    ],
)
def test_gradient_over_what_is_not_nan(reduce, expected):
    x = np.array([2.0, np.nan, 5.0, 4.0])
    np.testing.assert_allclose(fg.grad(reduce)(x), expected, rtol=1e-14)


def test_nanstd_of_equal_values_has_gradient_zero():
    np.testing.assert_array_equal(fg.grad(np.nanstd)(np.array([0.1, np.nan, 0.1, 0.1])), 0)


def test_running_sum_and_product_without_nan():
    x = np.array([2.0, np.nan, 5.0])
    np.testing.assert_array_equal(fg.grad(lambda x: np.sum(np.nancumsum(x)))(x), [3, 0, 1])
    np.testing.assert_array_equal(fg.grad(lambda x: np.sum(np.nancumprod(x)))(x), [7, 0, 2])


def test_nothing_but_nan_warns_as_numpy_does():
    with pytest.warns(RuntimeWarning, match="All-NaN slice"):
        fg.vjp(np.nanmax, np.array([np.nan, np.nan]))
    with pytest.warns(RuntimeWarning, match="Mean of empty slice"):
        fg.vjp(np.nanmean, np.array([np.nan, np.nan]))


def test_second_derivative_without_nan():
    x = np.array([1.0, np.nan, 2.0])
    for found in hessians(lambda x: np.nansum(x**3), x):
        np.testing.assert_array_equal(found, np.diag([6.0, 0.0, 12.0]))
