"""Sets: each value has the derivative of the element that it is."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg
from funcgrad.errors import ShapeError

A, B = np.array([3.0, 1.0, 3.0, 2.0]), np.array([2.0, 5.0])
WEIGHTS = np.array([1.0, 10.0, 100.0, 1000.0])


def gradients(function, **options):
    def total(a, b):
        values = function(a, b, **options)
        return np.sum(values * WEIGHTS[: len(values)])

    return fg.vjp(total, A, B)[1](1.0)


def test_union_goes_to_the_first_element_of_each_value():
    a_bar, b_bar = gradients(np.union1d)  # 1 2 3 5
    assert_array_equal(a_bar, [100, 1, 0, 10])
    assert_array_equal(b_bar, [0, 1000])


def test_intersection_goes_to_the_first_array():
    a_bar, b_bar = gradients(np.intersect1d)  # 2
    assert_array_equal(a_bar, [0, 0, 0, 1])
    assert_array_equal(b_bar, [0, 0])


def test_difference():
    a_bar, b_bar = gradients(np.setdiff1d)  # 1 3
    assert_array_equal(a_bar, [10, 1, 0, 0])
    assert_array_equal(b_bar, [0, 0])


def test_exclusive_or():
    a_bar, b_bar = gradients(np.setxor1d)  # 1 3 5
    assert_array_equal(a_bar, [10, 1, 0, 0])
    assert_array_equal(b_bar, [0, 100])


def test_indices_of_an_intersection_are_plain():
    def value(a):
        values, first, second = np.intersect1d(a, B, return_indices=True)
        assert_array_equal(first, [3])
        assert_array_equal(second, [0])
        return np.sum(values)

    assert_array_equal(fg.grad(value)(A), [0, 0, 0, 1])


@pytest.mark.parametrize("function", [np.unique_all, np.unique_counts, np.unique_inverse])
def test_results_have_numpys_names(function):
    def total(a):
        found = function(a)
        assert type(found) is type(function(A))
        return np.sum(found.values * np.argsort(np.argsort(found.values)))

    assert_array_equal(fg.grad(total)(A), [2, 0, 0, 1])


def test_values_need_not_be_sorted():
    x = np.random.default_rng(0).integers(0, 50, size=200) * 0.5
    values, pullback = fg.vjp(np.unique_values, x)
    assert_array_equal(values, np.unique_values(x))
    (gradient,) = pullback(values.copy())
    first = np.unique(x, return_index=True)[1]
    assert_array_equal(gradient[first], x[first])
    assert np.count_nonzero(gradient) <= len(first)


@pytest.mark.parametrize("function", [np.unique_values, np.unique_all])
def test_their_number_depends_on_the_values(function):
    with pytest.raises(ShapeError, match="as many elements as the values ask for"):
        fg.vmap(function)(np.eye(2))
