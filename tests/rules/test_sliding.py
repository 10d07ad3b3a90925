"""Sliding windows, and sizes: views, overlaps, `resize` and `trim_zeros`."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.errors import MutationError, ShapeError


def test_each_element_gets_a_part_from_every_window_over_it():
    gradient = fg.grad(lambda x: np.sum(sliding_window_view(x, 3)))(np.zeros(5))
    assert_array_equal(gradient, [1, 2, 3, 2, 1])


def test_moving_average_of_an_image():
    x = np.arange(12.0).reshape(3, 4)

    def smooth(x):
        return np.mean(sliding_window_view(x, (2, 2)), axis=(2, 3))

    _, pullback = fg.vjp(smooth, x)
    gradient = pullback(np.array([[4.0, 0.0, 0.0], [0.0, 0.0, 8.0]]))[0]
    assert_array_equal(gradient, [[1, 1, 0, 0], [1, 1, 2, 2], [0, 0, 2, 2]])


def test_long_windows_and_short_ones_have_the_same_transpose():
    x = np.random.default_rng(0).normal(size=20)
    for size in (3, 10, 17):
        windows, pullback = fg.vjp(lambda x, size=size: sliding_window_view(x, size), x)
        t = np.random.default_rng(1).normal(size=windows.shape)
        expected = np.zeros(20)
        for i, row in enumerate(t):
            expected[i : i + size] += row
        assert_allclose(pullback(t)[0], expected, rtol=1e-13)


def test_windows_are_views():
    def write(x):
        y = x.copy()
        windows = sliding_window_view(y, 2)
        y[0] = 5.0
        return np.sum(windows)

    with pytest.raises(MutationError):
        fg.grad(write)(np.ones(3))


@pytest.mark.parametrize(
    ("shape", "axis", "words"),
    [
        (5, None, "cannot be larger"),
        (-1, None, "negative"),
        ((2, 2), None, "axis is `None`"),
        ((2, 2), 0, "matching length"),
    ],
)
def test_numpys_errors(shape, axis, words):
    x = np.ones(3)
    with pytest.raises(ValueError, match=words):
        sliding_window_view(x, shape, axis)
    with pytest.raises(ValueError, match=words):
        fg.jvp(lambda x: sliding_window_view(x, shape, axis), (x,), (x,))


def test_resize_repeats_elements():
    gradient = fg.grad(lambda x: np.sum(np.resize(x, (2, 4)) * np.arange(8.0).reshape(2, 4)))
    assert_array_equal(gradient(np.ones(3)), [0 + 3 + 6, 1 + 4 + 7, 2 + 5])


def test_trim_zeros_keeps_zeros_inside():
    x = np.array([0.0, 2.0, 0.0, 3.0, 0.0])
    value, pullback = fg.vjp(np.trim_zeros, x)
    assert_array_equal(value, [2, 0, 3])
    assert_array_equal(pullback(np.array([1.0, 10.0, 100.0]))[0], [0, 1, 10, 100, 0])
    with pytest.raises(ShapeError, match="cuts off as many elements as are 0"):
        fg.vmap(np.trim_zeros)(np.stack([x, x]))


def test_bits_of_conditions_under_vmap():
    x = np.array([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]])
    assert_array_equal(fg.vmap(lambda x: np.packbits(x > 0))(x), [[160], [32]])


def test_complex_results_where_real_numbers_have_none():
    # sqrt(-4) = 2j, and d sqrt(x) = dx / (2 sqrt(x))
    value, out_dot = fg.jvp(np.emath.sqrt, (-4.0,), (1.0,))
    assert value == 2j
    assert out_dot == pytest.approx(-0.25j)
    assert fg.jvp(np.emath.sqrt, (4.0,), (1.0,)) == (2.0, 0.25)


def test_emath_under_vmap_is_complex_if_one_example_is():
    found = fg.vmap(np.emath.log)(np.array([1.0, -1.0]))
    assert_allclose(found, [0, np.pi * 1j])


def test_pad_by_a_function_of_the_users():
    def mirrored(line, widths, axis, options):
        low, high = widths
        line[:low] = options["sign"] * line[low]
        line[len(line) - high :] = options["sign"] * line[-high - 1]

    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    value, pullback = fg.vjp(lambda x: np.pad(x, 1, mirrored, sign=-1.0), x)
    assert_array_equal(value, np.pad(x, 1, mirrored, sign=-1.0))
    assert_array_equal(pullback(np.ones((4, 4)))[0], [[0, 0], [0, 0]])
    assert_array_equal(pullback(np.eye(4))[0], [[2, 0], [0, 2]])
