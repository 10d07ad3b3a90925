"""Quantiles: shares of two elements, the derivative in q, ties and NaN."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.errors import MissingRuleError

X = np.array([0.3, -1.2, 2.5, 0.9, -0.4])


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        # Computed with torch 2.13: torch.quantile(x, 0.3, interpolation=...).
        ("linear", [0.2, 0.0, 0.0, 0.0, 0.8]),
        ("lower", [0.0, 0.0, 0.0, 0.0, 1.0]),
        ("higher", [1.0, 0.0, 0.0, 0.0, 0.0]),
        ("midpoint", [0.5, 0.0, 0.0, 0.0, 0.5]),
        ("nearest", [0.0, 0.0, 0.0, 0.0, 1.0]),
    ],
)
def test_gradient_in_the_elements(method, expected):
    gradient = fg.grad(lambda x: np.quantile(x, 0.3, method=method))(X)
    assert_allclose(gradient, expected, atol=1e-15)


def test_gradient_of_percentiles():
    # jax.jacrev of jax.numpy.percentile, jax 0.10.2.
    _, pullback = fg.vjp(lambda x: np.percentile(x, [20.0, 70.0]), X)
    assert_allclose(pullback(np.array([1.0, 0.0]))[0], [0, 0.2, 0, 0, 0.8], atol=1e-14)
    assert_allclose(pullback(np.array([0.0, 1.0]))[0], [0.2, 0, 0, 0.8, 0], atol=1e-14)


def test_derivative_in_q_is_the_slope_between_the_elements():
    # jax.grad in q: 4 * (0.3 - -0.4).
    assert fg.grad(lambda q: np.quantile(X, q))(0.3) == pytest.approx(2.8, rel=1e-12)
    assert fg.grad(lambda q: np.percentile(X, q))(30.0) == pytest.approx(0.028, rel=1e-12)


@pytest.mark.parametrize(
    ("method", "speed"),
    [
        ("interpolated_inverted_cdf", 5),
        ("hazen", 5),
        ("weibull", 6),
        ("median_unbiased", 5 + 1 / 3),
        ("normal_unbiased", 5 + 1 / 4),
    ],
)
def test_derivative_in_q_of_other_methods(method, speed):
    # Hyndman and Fan (1996): the position grows by n + 1 - alpha - beta for each unit of q.
    gradient = fg.grad(lambda q: np.quantile(X, q, method=method))(0.55)
    gap = 0.9 - 0.3 if np.quantile(X, 0.55, method=method) > 0.3 else 0.3 - -0.4
    assert gradient == pytest.approx(speed * gap, rel=1e-9)


def test_methods_that_step_have_no_derivative_in_q():
    for method in ("inverted_cdf", "averaged_inverted_cdf", "nearest", "midpoint"):
        assert fg.grad(lambda q, m=method: np.quantile(X, q, method=m))(0.3) == 0.0


def test_at_an_element_the_smaller_slope_counts_in_q():
    # The middle of five elements: gaps of 0.7 below and of 0.6 above.
    assert fg.grad(lambda q: np.quantile(X, q))(0.5) == pytest.approx(4 * 0.6, rel=1e-12)
    assert fg.grad(lambda q: np.quantile(X, q))(0.0) == 0.0
    assert fg.grad(lambda q: np.quantile(X, q))(1.0) == 0.0


def test_second_derivative_in_elements_and_q():
    """The slope 4 * (0.3 - -0.4) grows with the upper element and falls with the lower."""

    def slope(x):
        return fg.grad(lambda q: np.quantile(x, q))(0.3)

    assert_allclose(fg.grad(slope)(X), [4, 0, 0, 0, -4], atol=1e-12)


def test_median_of_an_even_number_is_shared_by_two():
    assert_array_equal(fg.grad(np.median)(X[:4]), [0.5, 0, 0, 0.5])


def test_median_of_equal_elements_belongs_to_the_one_in_the_middle():
    assert_array_equal(fg.grad(np.median)(np.array([1.0, 1.0, 1.0])), [0, 1, 0])


def test_median_over_several_axes():
    x = np.array([[[1.0, 5.0], [2.0, 9.0]], [[4.0, 7.0], [8.0, 3.0]]])
    gradient = fg.grad(lambda x: np.sum(np.median(x, axis=(0, 2)) * [1.0, 10.0]))(x)
    # 1 4 5 7 and 2 3 8 9
    assert_array_equal(gradient, [[[0, 0.5], [0, 0]], [[0.5, 0], [5, 5]]])


def test_nan_forms_take_the_elements_that_are_there():
    x = np.array([0.3, np.nan, 2.5, 0.9, -0.4])
    # torch.nanquantile
    assert_allclose(fg.grad(lambda x: np.nanquantile(x, 0.3))(x), [0.9, 0, 0, 0, 0.1], atol=1e-15)
    assert_array_equal(fg.grad(np.nanmedian)(x), [0.5, 0, 0, 0.5, 0])


def test_a_line_of_nan_alone_has_no_gradient_to_speak_of():
    x = np.array([[np.nan, np.nan], [1.0, 3.0]])
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        _, pullback = fg.vjp(lambda x: np.nanmedian(x, axis=1), x)
    assert_array_equal(pullback(np.array([0.0, 1.0]))[0], [[0, 0], [0.5, 0.5]])


def test_weighted_quantile_is_one_of_the_elements():
    weights = np.array([1.0, 1.0, 5.0, 1.0, 1.0])
    for q, place in ((0.5, 2), (0.2, 4), (0.05, 1)):
        gradient = fg.grad(
            lambda x, q=q: np.quantile(x, q, weights=weights, method="inverted_cdf")
        )(X)
        assert_array_equal(gradient, np.eye(5)[place])


def test_weighted_quantiles_of_lines_with_weights_of_their_own():
    x = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    weights = np.array([[5.0, 1.0, 1.0], [1.0, 1.0, 5.0]])

    def total(x):
        return np.sum(np.quantile(x, 0.5, axis=1, weights=weights, method="inverted_cdf"))

    assert_array_equal(fg.grad(total)(x), [[1, 0, 0], [0, 0, 1]])


def test_out_and_what_numpy_refuses():
    def into(x):
        y = np.zeros_like(x[0])
        np.median(x, axis=0, out=y)
        return np.sum(y)

    assert_array_equal(fg.grad(into)(np.array([[1.0], [3.0], [2.0]])), [[0], [0], [1]])
    with pytest.raises(ValueError, match=r"range \[0, 1\]"):
        fg.grad(lambda x: np.quantile(x, 1.5))(X)
    with pytest.raises(np.exceptions.AxisError):
        fg.grad(lambda x: np.median(x, axis=1))(X)


def test_what_numpy_lays_out_wrongly_is_refused():
    with pytest.raises(MissingRuleError, match="several axes"):
        fg.grad(lambda x: np.sum(np.nanquantile(x, [[0.5], [0.2]], axis=(0, 1))))(np.eye(2))


def test_each_example_has_its_own_quantile():
    q = np.array([0.25, 0.75])
    x = np.array([[1.0, 2.0, 4.0], [10.0, 20.0, 40.0]])
    assert_allclose(fg.vmap(np.quantile)(x, q), [1.5, 30.0])
    gradient = fg.vmap(fg.grad(np.quantile))(x, q)
    assert_allclose(gradient, [[0.5, 0.5, 0], [0, 0.5, 0.5]])
