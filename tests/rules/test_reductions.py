"""What the laws (test_laws.py) cannot know of sums, means, products and extremes."""

import gc
import tracemalloc
import warnings

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import FuncgradError


def hessian_columns(fun, x):
    """The Hessian by forward over reverse and by reverse over reverse."""
    units = np.eye(x.size)
    pushed = [fg.jvp(fg.grad(fun), (x,), (unit,))[1] for unit in units]
    pulled = [fg.grad(lambda y, unit=unit: np.sum(fg.grad(fun)(y) * unit))(x) for unit in units]
    return np.array(pushed), np.array(pulled)


def kept_bytes(fun, x):
    """How much memory the pullback of ``fun(x)`` holds on to, beside its copy of `x`."""
    fg.vjp(fun, x)
    gc.collect()
    tracemalloc.start()
    try:
        kept = fg.vjp(fun, x)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - x.nbytes
    finally:
        tracemalloc.stop()
        del kept


# Sums and means


@pytest.mark.parametrize("reduce", [np.sum, np.mean])
def test_a_sum_keeps_no_array(reduce):
    x = np.ones(100_000)
    assert kept_bytes(lambda x: reduce(x + 1.0), x) < 20_000


def test_the_pullback_of_sum_is_a_view():
    x = np.ones((300, 1000))
    _, pullback = fg.vjp(lambda x: np.sum(x * 1.0, axis=1, keepdims=True) * 1.0, x)
    tracemalloc.start()
    (x_bar,) = pullback(np.full((300, 1), 2.0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.6 * x.nbytes  # the product of the multiplication, and not the broadcast sum
    np.testing.assert_array_equal(x_bar, 2.0)


def test_sum_of_an_axis_without_elements_has_an_empty_gradient():
    value, gradient = fg.value_and_grad(lambda x: np.sum(np.sum(x, axis=1)))(np.zeros((3, 0)))
    assert value == 0.0
    assert gradient.shape == (3, 0)


def test_masked_sum_has_derivative_one_where_the_mask_is_true():
    mask = np.array([True, False, True])
    gradient = fg.grad(lambda x: np.sum(np.sum(x, axis=0, where=mask)))(np.ones((2, 3)))
    np.testing.assert_array_equal(gradient, [[1, 0, 1], [1, 0, 1]])


def test_a_mask_that_was_computed_from_the_array_works():
    gradient = fg.grad(lambda x: np.sum(x, where=x > 1.5))(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(gradient, [0, 1, 1])


def test_a_mask_may_be_a_list():
    gradient = fg.grad(lambda x: np.mean(x, where=[True, False, True]))(np.ones(3))
    np.testing.assert_array_equal(gradient, [0.5, 0, 0.5])


def test_a_traced_starting_value_has_derivative_one():
    gradient = fg.grad(lambda x: np.sum(np.sum(x[1:], initial=x[0])))(np.array([5.0, 1.0, 2.0]))
    np.testing.assert_array_equal(gradient, [1, 1, 1])


def test_a_traced_starting_value_of_each_row_is_counted_for_each():
    def total(start):
        x = np.zeros_like(start) + np.ones((4, 3))
        return np.sum(np.sum(x, axis=1, initial=start))

    assert fg.grad(total)(np.float64(2.0)) == 4.0


@pytest.mark.parametrize("reduce", [np.sum, np.max, np.add.reduce])
def test_a_traced_starting_value_of_a_plain_array_is_refused(reduce):
    with pytest.raises(FuncgradError, match="traced value"):
        fg.grad(lambda start: reduce(np.ones(3), initial=start))(2.0)


def test_a_python_float_is_summed():
    assert fg.grad(lambda x: np.sum(x) + np.mean(x) + np.max(x) + np.prod(x))(3.0) == 4.0


def test_sum_of_integers_made_on_the_way_is_plain():
    def fun(x):
        total = np.sum(x, dtype=np.int64)
        assert type(total) is np.int64
        return np.sum(x) * total

    np.testing.assert_array_equal(fg.grad(fun)(np.array([1.5, 2.5])), [3, 3])


def test_real_part_of_a_complex_sum_has_a_real_derivative():
    gradient = fg.grad(lambda x: np.real(np.sum(x, dtype=complex)))(np.array([1.0, 2.0]))
    assert gradient.dtype == np.float64
    np.testing.assert_array_equal(gradient, [1, 1])


def test_sum_in_double_precision_has_a_gradient_in_single():
    gradient = fg.grad(lambda x: np.sum(x, dtype=np.float64))(np.ones(3, np.float32))
    assert gradient.dtype == np.float32


def test_sum_writes_into_out():
    def fun(x):
        out = np.zeros_like(x)
        np.sum(np.outer(x, x), axis=0, out=out)
        return out[0]

    np.testing.assert_array_equal(fg.grad(fun)(np.array([1.0, 2.0])), [4, 1])


def test_methods_reduce_like_the_functions():
    def fun(x):
        return x.sum() + x.mean(0)[0] + x.max(axis=1)[0] + x.min() + x.prod()

    gradient = fg.grad(fun)(np.array([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_array_equal(gradient, [[1 + 0.5 + 1 + 24, 1 + 1 + 12], [1 + 0.5 + 8, 1 + 6]])


@pytest.mark.parametrize("transform", ["jvp", "vjp"])
def test_mean_of_nothing_warns_as_numpy_does_and_no_more(transform):
    def seen(call):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            value = call()
        assert np.isnan(value)
        return [str(warning.message) for warning in caught]

    x = np.zeros(0)
    calls = {
        "jvp": lambda: fg.jvp(np.mean, (x,), (x,))[0],
        "vjp": lambda: fg.vjp(np.mean, x)[0],
    }
    assert seen(calls[transform]) == seen(lambda: np.mean(x))


def test_mean_of_many_halves_shares_exactly():
    # 70000 is beyond the largest float16, and a sum of ones ends at infinity.
    x = np.zeros(70_000, np.float16)
    gradient = fg.grad(np.mean)(x)
    assert gradient.dtype == np.float16
    assert np.sum(gradient, dtype=np.float64) == pytest.approx(1.0, rel=2e-2)
    assert fg.jvp(np.mean, (x,), (np.ones_like(x),))[1] == np.float16(1.0)


def test_mean_of_masked_rows_without_an_element_has_gradient_zero():
    def fun(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            means = np.mean(x, axis=1, where=np.array([[True, True], [False, False]]))
        return np.where(np.isnan(means), 0.0, means).sum()

    np.testing.assert_array_equal(fg.grad(fun)(np.ones((2, 2))), [[0.5, 0.5], [0, 0]])


# Products


def test_product_with_one_zero():
    np.testing.assert_array_equal(fg.grad(np.prod)(np.array([0.0, 5.0, 7.0])), [35, 0, 0])


def test_product_with_two_zeros_has_gradient_zero():
    np.testing.assert_array_equal(fg.grad(np.prod)(np.array([2.0, 3.0, 0.0, 0.0])), [0, 0, 0, 0])


def test_hessian_of_a_product_with_two_zeros():
    expected = np.zeros((4, 4))
    expected[2, 3] = expected[3, 2] = 6.0
    for found in hessian_columns(np.prod, np.array([2.0, 3.0, 0.0, 0.0])):
        np.testing.assert_array_equal(found, expected)


def test_third_derivative_of_a_product_of_zeros():
    def along(fun):
        return lambda x: fg.jvp(fun, (x,), (np.ones(3),))[1]

    # (t * t * t)''' = 6
    assert along(along(along(np.prod)))(np.zeros(3)) == 6.0


def test_product_that_underflows_has_the_gradient_of_its_factors():
    # The product is 0 in floating point, and no quotient of it could be right.
    gradient = fg.grad(np.prod)(np.array([1e-200, 1e-200, 2.0]))
    np.testing.assert_allclose(gradient, [2e-200, 2e-200, 0.0])


def test_starting_value_of_a_product_scales_the_derivative():
    np.testing.assert_array_equal(
        fg.grad(lambda x: np.prod(x, initial=3.0))(np.array([2.0, 5.0])), [15, 6]
    )


def test_masked_elements_of_a_product_have_derivative_zero():
    mask = np.array([True, False, True])
    np.testing.assert_array_equal(
        fg.grad(lambda x: np.prod(x, where=mask))(np.array([2.0, 0.0, 5.0])), [5, 0, 2]
    )


def test_complex_product_is_differentiated_without_conjugation():
    gradient = fg.grad(np.prod, holomorphic=True)(np.array([1 + 2j, 3 - 1j]))
    np.testing.assert_array_equal(gradient, [3 - 1j, 1 + 2j])


# Extremes


@pytest.mark.parametrize("reduce", [np.max, np.amax, np.maximum.reduce, np.fmax.reduce, np.nanmax])
def test_equal_maxima_share(reduce):
    np.testing.assert_array_equal(fg.grad(reduce)(np.array([2.0, 7.0, 7.0])), [0, 0.5, 0.5])


@pytest.mark.parametrize("reduce", [np.min, np.amin, np.minimum.reduce, np.fmin.reduce, np.nanmin])
def test_equal_minima_share(reduce):
    np.testing.assert_array_equal(fg.grad(reduce)(np.array([2.0, 7.0, 2.0])), [0.5, 0, 0.5])


def test_equal_maxima_share_in_forward_mode():
    x, x_dot = np.array([2.0, 7.0, 7.0]), np.array([1.0, 10.0, 100.0])
    assert fg.jvp(np.max, (x,), (x_dot,))[1] == 55.0


def test_many_equal_maxima_in_half_precision_share():
    x = np.zeros(70_000, np.float16)
    gradient = fg.grad(np.max)(x)
    assert gradient.dtype == np.float16
    assert np.sum(gradient, dtype=np.float64) == pytest.approx(1.0, rel=2e-2)
    assert fg.jvp(np.max, (x,), (np.ones_like(x),))[1] == np.float16(1.0)


def test_maxima_of_several_axes_share_over_all():
    x = np.array([[[1.0, 4.0], [4.0, 0.0]], [[5.0, 0.0], [5.0, 5.0]]])
    gradient = fg.grad(lambda x: np.sum(np.max(x, axis=(1, -1))))(x)
    third = 1 / 3
    np.testing.assert_allclose(gradient, [[[0, 0.5], [0.5, 0]], [[third, 0], [third, third]]])


def test_maximum_with_nan_gives_the_cotangent_to_the_nan():
    x = np.array([1.0, np.nan, 3.0, np.nan])
    np.testing.assert_array_equal(fg.grad(np.max)(x), [0, 0.5, 0, 0.5])


def test_fmax_of_nothing_but_nan_shares_among_them():
    np.testing.assert_array_equal(fg.grad(np.fmax.reduce)(np.array([np.nan, np.nan])), [0.5, 0.5])


def test_maximum_of_all_minus_infinity_shares():
    np.testing.assert_array_equal(fg.grad(np.max)(np.full(4, -np.inf)), [0.25] * 4)


def test_starting_value_that_wins_leaves_no_derivative():
    gradient = fg.grad(lambda x: np.max(x, initial=3.0))(np.array([2.0, 1.0]))
    np.testing.assert_array_equal(gradient, [0, 0])


def test_starting_value_that_ties_takes_its_share():
    gradient = fg.grad(lambda x: np.max(x, initial=3.0))(np.array([2.0, 3.0]))
    np.testing.assert_array_equal(gradient, [0, 0.5])


def test_starting_value_that_ties_in_single_precision_takes_its_share():
    x = np.array([0.1, 0.0], np.float32)
    gradient = fg.grad(lambda x: np.max(x, initial=np.float64(0.1)))(x)
    np.testing.assert_array_equal(gradient, [0.5, 0])


def test_traced_starting_value_of_a_maximum():
    gradient = fg.grad(lambda x: np.max(x[1:], initial=x[0]))(np.array([5.0, 1.0, 2.0]))
    np.testing.assert_array_equal(gradient, [1, 0, 0])


def test_masked_maximum_is_not_given_to_masked_elements():
    x = np.array([5.0, 5.0, 1.0])
    gradient = fg.grad(lambda x: np.max(x, where=np.array([True, False, True]), initial=-np.inf))(x)
    np.testing.assert_array_equal(gradient, [1, 0, 0])


def test_maximum_keeps_a_byte_for_each_element():
    x = np.arange(100_000.0)
    assert kept_bytes(lambda x: np.max(x + 1.0), x) < 130_000


def test_second_derivative_of_a_maximum_is_that_of_what_it_chooses():
    for found in hessian_columns(lambda x: np.max(x**2), np.array([1.0, -3.0])):
        np.testing.assert_array_equal(found, [[0, 0], [0, 2]])


def test_maximum_of_an_empty_array_raises_what_numpy_raises():
    with pytest.raises(ValueError, match="zero-size array to reduction operation maximum"):
        fg.grad(np.max)(np.zeros(0))


def test_an_axis_out_of_range_raises_what_numpy_raises():
    with pytest.raises(np.exceptions.AxisError, match="axis 2 is out of bounds"):
        fg.grad(lambda x: np.sum(x, axis=2))(np.zeros((2, 2)))


# Discrete results


@pytest.mark.parametrize(
    ("reduce", "expected"),
    [
        (np.argmax, 1),
        (np.argmin, 0),
        (np.nanargmax, 1),
        (np.nanargmin, 0),
        (np.count_nonzero, 2),
        (np.all, True),
        (np.any, True),
        (np.logical_and.reduce, True),
        (np.logical_or.reduce, True),
    ],
)
def test_what_counts_tests_or_locates_gives_plain_results(reduce, expected):
    def fun(x):
        found = reduce(x)
        assert isinstance(found, int | np.generic)
        assert found == expected
        return np.sum(x)

    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(fg.grad(fun)(x), [1, 1])
    assert fg.jvp(fun, (x,), (x,))[1] == 3.0


def test_a_number_has_the_axes_that_numpy_gives_it():
    np.testing.assert_array_equal(fg.vmap(lambda x: np.sum(x, axis=0))(np.ones(2)), [1.0, 1.0])
    assert fg.grad(lambda x: np.sum(x, axis=0))(2.0) == 1.0
    for fun in (np.sum, np.mean, np.nanmax):
        with pytest.raises(np.exceptions.AxisError):
            fg.vmap(lambda x, fun=fun: fun(x, axis=3))(np.ones(2))
    with pytest.raises(np.exceptions.AxisError):
        fg.vmap(lambda x: np.mean(x, axis=0))(np.ones(2))
