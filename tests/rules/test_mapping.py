"""Functions of functions: what they call, and what becomes of it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg

X = np.array([[1.0, 2.0], [3.0, 4.0]])


def test_apply_along_axis_takes_results_of_more_axes():
    def total(x):
        return np.sum(np.apply_along_axis(lambda row: np.outer(row, row), 1, x)[:, 0, 1])

    assert_array_equal(fg.grad(total)(X), [[2, 1], [4, 3]])


def test_apply_along_axis_passes_arguments_on():
    gradient = fg.grad(lambda x: np.apply_along_axis(np.dot, 0, x, np.array([1.0, 10.0])).sum())(X)
    assert_array_equal(gradient, [[1, 1], [10, 10]])


def test_apply_along_axis_lets_the_function_branch():
    def steeper(row):
        return 2 * row[0] if row[0] > 2 else row[1]

    assert_array_equal(
        fg.grad(lambda x: np.apply_along_axis(steeper, 1, x).sum())(X), [[0, 1], [2, 0]]
    )


def test_apply_along_axis_of_nothing_is_an_error():
    with pytest.raises(ValueError, match="iteration dimensions are 0"):
        fg.jvp(lambda x: np.apply_along_axis(np.sum, 0, x), (np.ones((2, 0)),), (np.ones((2, 0)),))


def test_piecewise_gives_each_function_its_elements():
    sizes = []

    def low(t):
        sizes.append(t.shape)
        return t * t

    gradient = fg.grad(lambda x: np.sum(np.piecewise(x, [x < 2.5], [low, 7.0])))(X)
    assert_array_equal(gradient, [[2, 4], [0, 0]])
    assert sizes == [(2,)]


def test_piecewise_lets_the_last_condition_win():
    gradient = fg.grad(
        lambda x: np.sum(np.piecewise(x, [x > 0, x > 3], [lambda t: 2 * t, lambda t: 5 * t]))
    )(X)
    assert_array_equal(gradient, [[2, 2], [2, 5]])


def test_piecewise_under_vmap_is_finite_where_a_branch_is_not_taken():
    def root(x):
        return np.sum(np.piecewise(x, [x > 0], [np.sqrt, 0.0]))

    x = np.array([[-1.0, 4.0], [0.0, 0.25]])
    assert_allclose(fg.vmap(root)(x), [2.0, 0.5])
    assert_allclose(fg.vmap(fg.grad(root))(x), [[0, 0.25], [0, 1.0]])


def test_piecewise_counts_its_functions():
    with pytest.raises(ValueError, match="with 1 condition"):
        fg.jvp(lambda x: np.piecewise(x, [x > 0], [1.0, 2.0, 3.0]), (X,), (X,))


def test_apply_over_axes_keeps_the_axes():
    value, pullback = fg.vjp(lambda x: np.apply_over_axes(np.sum, x, [0, 1]), X)
    assert value.shape == (1, 1)
    assert_array_equal(pullback(np.array([[2.0]]))[0], [[2, 2], [2, 2]])
