"""Counting: weights, edges and densities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.errors import ShapeError

A = np.array([1.0, 2.0, 4.0, 3.0])
W = np.array([0.5, 1.0, 2.0, 1.5])
BY_TEN = np.array([1.0, 10.0, 100.0])


def test_bincount_gives_each_weight_the_cotangent_of_its_bin():
    gradient = fg.grad(lambda w: np.sum(np.bincount([2, 0, 2, 1], w) * BY_TEN))(W)
    assert_array_equal(gradient, [100, 1, 100, 10])


def test_bincount_of_conditions_under_vmap():
    x = np.array([[0.1, 0.7, 0.2], [0.9, 0.8, 0.3]])
    counts = fg.vmap(lambda x: np.bincount((x > 0.5).astype(int), minlength=2))(x)
    assert_array_equal(counts, [[2, 1], [1, 2]])


def test_bincount_under_vmap_is_as_long_as_the_longest():
    counts = fg.vmap(np.bincount)(np.array([[0, 1], [0, 3]]))
    assert_array_equal(counts, [[1, 1, 0, 0], [1, 0, 0, 1]])


def test_histogram_gives_each_weight_the_cotangent_of_its_bin():
    def total(w):
        return np.sum(np.histogram(A, 3, weights=w)[0] * BY_TEN)

    assert_array_equal(fg.grad(total)(W), [1, 10, 100, 100])  # the last bin is closed


def test_weights_outside_of_the_range_do_not_count():
    def total(w):
        return np.sum(np.histogram(A, [1.5, 2.5, 3.5], weights=w)[0])

    assert_array_equal(fg.grad(total)(W), [0, 1, 0, 1])


def test_counts_are_plain_integers_under_grad():
    seen = []

    def total(x):
        counts, edges = np.histogram(x, 3)
        seen.append(counts)
        return np.sum(edges * [1.0, 10.0, 100.0, 1000.0])

    # The edges are 1, 2, 3, 4, in even steps between the extremes.
    expected_low, expected_high = 1 + 10 * 2 / 3 + 100 / 3, 10 / 3 + 100 * 2 / 3 + 1000
    assert_allclose(fg.grad(total)(A), [expected_low, 0, expected_high, 0])
    assert type(seen[0]) is np.ndarray
    assert_array_equal(seen[0], [1, 1, 2])


def test_density_falls_as_its_bins_grow_wider():
    def first(x):
        return np.histogram(x, 3, density=True)[0][0]

    # One of four in a bin of width (max - min) / 3: 0.75 / (max - min), of range 3.
    assert_allclose(fg.grad(first)(A), [0.75 / 9, 0, -0.75 / 9, 0])


def test_density_with_edges_of_the_users():
    def first(edges):
        return np.histogram(A, edges, density=True)[0][0]

    # 1 / (4 * (e1 - e0))
    assert_allclose(fg.grad(first)(np.array([0.5, 1.5, 4.5])), [0.25, -0.25, 0])


def test_histogram2d_in_its_weights():
    def corner(w):
        counts, *_ = np.histogram2d(A, A[::-1].copy(), 2, weights=w)
        return counts[0, 1] + 10 * counts[1, 0]

    # 1 and 2 are in the lower half, at 3 and 4 of the other; 4 and 3 the other way round.
    assert_array_equal(fg.grad(corner)(W), [1, 1, 10, 10])


def test_histogramdd_density_in_the_data():
    def first(x):
        return np.histogramdd(x, (1, 2), density=True)[0][0, 0]

    x = np.array([[0.0, 0.0], [1.0, 2.0], [0.5, 1.7]])
    # (1/3) / (range0 * range1 / 2)
    gradient = fg.grad(first)(x)
    assert_allclose(gradient, [[1 / 3, 1 / 6], [-1 / 3, -1 / 6], [0, 0]])


def test_each_example_has_its_own_bins():
    x = np.array([[0.0, 1.0, 3.0], [0.0, 10.0, 30.0]])
    counts, edges = fg.vmap(lambda x: np.histogram(x, 3))(x)
    assert_array_equal(counts, [[1, 1, 1], [1, 1, 1]])
    assert_allclose(edges, [[0, 1, 2, 3], [0, 10, 20, 30]])


def test_bins_by_name_are_refused_under_vmap():
    with pytest.raises(ShapeError, match="as many as the data ask for"):
        fg.vmap(lambda x: np.histogram(x, "auto"))(np.eye(3))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: np.histogram(x, 0), "must be positive"),
        (lambda x: np.histogram(x, [2.0, 1.0]), "increase monotonically"),
        (lambda x: np.histogram(x, 2, (3, 1)), "max must be larger"),
        (lambda x: np.histogram(x / 0.0, 2), "is not finite"),
        (lambda x: np.histogramdd(x, 2, [(0, 1), (0, 1)]), "one entry per dimension"),
        (lambda x: np.histogram2d(x, x[:2]), "same length"),
    ],
)
def test_numpys_errors(call, words):
    with np.errstate(all="ignore"):
        with pytest.raises(ValueError, match=words):
            call(A)
        with pytest.raises(ValueError, match=words):
            fg.jvp(call, (A,), (A,))


def test_a_negative_number_of_one_example_is_refused_by_bincount():
    with pytest.raises(ValueError, match="negative"):
        fg.vmap(np.bincount)(np.array([[1, 2], [0, -1]]))


def test_the_range_of_a_histogram_may_differ_from_example_to_example():
    def counts_and_edges(a):
        return np.histogram(a, 2, (np.min(a), np.max(a) + 1.0))

    counts, edges = fg.vmap(counts_and_edges)(np.array([[0.0, 1.0, 1.0], [5.0, 5.0, 8.0]]))
    np.testing.assert_array_equal(counts, [[1, 2], [2, 1]])
    np.testing.assert_array_equal(edges, [[0.0, 1.0, 2.0], [5.0, 7.0, 9.0]])


def test_the_number_of_bins_may_not_differ_from_example_to_example():
    with pytest.raises(ValueError, match="how long the result is"):
        fg.vmap(lambda bins: np.histogram(np.arange(3.0), bins))(np.array([1, 2]))
