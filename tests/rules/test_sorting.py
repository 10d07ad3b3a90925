"""Sorting: ties, and what follows its element. The samples run in test_laws.py."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg

TIED = np.array([2.0, 1.0, 2.0, 1.0])
WEIGHTS = np.array([1.0, 10.0, 100.0, 1000.0])


def test_sort_gives_equal_elements_their_places_in_order():
    gradient = fg.grad(lambda x: np.sum(np.sort(x) * WEIGHTS))(TIED)
    assert_array_equal(gradient, [100, 1, 1000, 10])


def test_sort_along_all_axes_goes_back_to_the_shape_of_the_array():
    x = np.array([[3.0, 1.0], [0.0, 2.0]])
    gradient = fg.grad(lambda x: np.sum(np.sort(x, axis=None) * WEIGHTS))(x)
    assert_array_equal(gradient, [[1000, 10], [1, 100]])


def test_sort_puts_nan_last_and_derivatives_with_it():
    x = np.array([np.nan, 5.0, 4.0])
    gradient = fg.grad(lambda x: np.nansum(np.sort(x) * [1.0, 10.0, 100.0]))(x)
    assert_array_equal(gradient, [0, 10, 1])


def test_partition_has_the_derivative_of_where_each_element_went():
    x = np.arange(30.0)[::-1] * 7 % 31
    order = np.argsort(x)
    moved, pullback = fg.vjp(lambda x: np.partition(x, 11), x)
    weights = np.arange(1.0, 31.0)
    (gradient,) = pullback(weights)
    for value, weight in zip(moved, weights, strict=True):
        assert gradient[x == value] == weight
    assert moved[11] == x[order[11]]


def test_partition_gives_each_of_equal_elements_one_place():
    gradient = fg.grad(lambda x: np.sum(np.partition(x, 1) * WEIGHTS))(TIED)
    assert_array_equal(np.sort(gradient), WEIGHTS)


def test_partition_in_place_of_an_array_made_inside():
    def smallest(x):
        y = x.copy()
        y.partition(0)
        return y[0]

    assert_array_equal(fg.grad(smallest)(np.array([3.0, 1.0, 2.0])), [0, 1, 0])


def test_sort_complex_of_real_numbers_takes_the_real_part_back():
    gradient = fg.grad(lambda x: np.sum(np.real((2 + 3j) * np.sort_complex(x))))(TIED)
    assert_array_equal(gradient, [2, 2, 2, 2])


@pytest.mark.parametrize(
    "find",
    [
        np.argsort,
        lambda x: np.argpartition(x, 1),
        lambda x: np.lexsort((x, x)),
        lambda x: np.searchsorted(x, 0.5),
        lambda x: np.searchsorted([0.0, 1.0], x, "right"),
        lambda x: np.digitize(x, [0.0, 1.5]),
    ],
)
def test_positions_are_plain_under_grad(find):
    seen = []
    fg.grad(lambda x: seen.append(find(x)) or np.sum(x))(np.array([0.0, 1.0]))
    assert type(seen[0]) in (np.ndarray, np.int64)
    assert_array_equal(seen[0], find(np.array([0.0, 1.0])))


def test_each_example_has_its_own_permutation():
    x = np.array([[3.0, 1.0, 2.0], [1.0, 3.0, 2.0]])
    tag = np.array([10.0, 20.0, 30.0])
    found = fg.vmap(lambda x: np.take_along_axis(tag, np.argsort(x), 0))(x)
    assert_array_equal(found, [[20, 30, 10], [10, 30, 20]])


def test_each_example_has_its_own_sorted_sequence():
    a, v = np.array([[0.0, 1.0, 2.0], [0.0, 10.0, 20.0]]), np.array([[1.0, 5.0], [1.0, 15.0]])
    assert_array_equal(fg.vmap(np.searchsorted)(a, v), [[1, 3], [1, 2]])
    assert_array_equal(fg.vmap(np.digitize)(v, a), [[2, 3], [1, 2]])


def test_gradient_of_sort_under_vmap_follows_each_example():
    x = np.array([[3.0, 1.0, 2.0], [1.0, 3.0, 2.0]])
    gradient = fg.vmap(fg.grad(lambda x: np.sum(np.sort(x) * [1.0, 10.0, 100.0])))(x)
    assert_array_equal(gradient, [[100, 1, 10], [1, 100, 10]])


def test_sort_complex_of_small_integers_is_in_single_precision():
    made = fg.vmap(np.sort_complex)(np.array([[3, 1]], np.uint8))
    assert made.dtype == np.complex64
    np.testing.assert_array_equal(made, [[1, 3]])
