"""`associative_scan`, against running sums and a loop."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.control import associative_scan
from funcgrad.errors import ArgumentError, ShapeError, TreeMismatchError


def compose(f, g):
    """Of affine maps ``x -> a x + b``: first f, then g."""
    return f[0] * g[0], g[0] * f[1] + g[1]


def recurrence(a, b):
    ys = [b[0]]
    for k in range(1, len(a)):
        ys.append(a[k] * ys[-1] + b[k])
    return np.stack(ys)


@pytest.mark.parametrize("n", [*range(1, 10), 16, 17])
def test_recurrence(n):
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(2, n))
    assert_allclose(associative_scan(compose, (a, b))[1], recurrence(a, b), rtol=1e-12)


def test_order_is_kept():
    """Of matrices, whose product depends on it."""
    a = np.random.default_rng(0).normal(size=(7, 2, 2))
    want = [np.linalg.multi_dot([np.eye(2), *a[: k + 1]]) for k in range(7)]
    assert_allclose(associative_scan(np.matmul, a), want, rtol=1e-12)


def test_reverse_combines_the_last_first():
    a = np.random.default_rng(0).normal(size=(5, 2, 2))
    want = [np.linalg.multi_dot([np.eye(2), *a[k:][::-1]]) for k in range(5)]
    assert_allclose(associative_scan(np.matmul, a, reverse=True), want, rtol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("reverse", [False, True])
def test_axis(axis, reverse):
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    flipped = np.flip(x, axis) if reverse else x
    want = np.cumsum(flipped, axis)
    want = np.flip(want, axis) if reverse else want
    assert_allclose(associative_scan(np.add, x, reverse=reverse, axis=axis), want, rtol=1e-12)


def test_no_elements():
    assert associative_scan(np.add, np.ones((0, 2))).shape == (0, 2)


def test_gradient():
    a, b = np.random.default_rng(0).normal(size=(2, 6))
    found = fg.grad(lambda a, b: np.sum(associative_scan(compose, (a, b))[1] ** 2), (0, 1))(a, b)
    want = fg.grad(lambda a, b: np.sum(recurrence(a, b) ** 2), (0, 1))(a, b)
    assert_allclose(found, want, rtol=1e-11)


def test_vmap():
    a, b = np.random.default_rng(0).normal(size=(2, 3, 5))
    found = fg.vmap(lambda a, b: associative_scan(compose, (a, b))[1])(a, b)
    assert_allclose(found, [recurrence(*row) for row in zip(a, b, strict=True)], rtol=1e-12)


def test_few_calls():
    calls = []
    associative_scan(lambda a, b: calls.append(1) or a + b, np.ones(1024))
    assert len(calls) < 20


def test_input_is_left_alone():
    x = np.arange(5.0)
    associative_scan(np.add, x)[0] = 7.0
    assert_array_equal(x, np.arange(5.0))


def test_different_numbers_of_elements():
    with pytest.raises(ShapeError, match=r"elems\[1\]: float64\[2\] has 2"):
        associative_scan(compose, (np.ones(3), np.ones(2)))


def test_no_such_axis():
    with pytest.raises(ShapeError, match=r"axis 1 of float64\[3\]"):
        associative_scan(np.add, np.ones(3), axis=1)


def test_no_arrays():
    with pytest.raises(ArgumentError, match="no arrays"):
        associative_scan(np.add, ())


def test_function_that_changes_the_structure():
    with pytest.raises(TreeMismatchError, match="must return the structure it is given"):
        associative_scan(lambda a, b: a[0], (np.ones(3), np.ones(3)))


def test_function_that_changes_the_shape():
    with pytest.raises(ShapeError, match=r"expected float64\[2\], found float64\[1\]"):
        associative_scan(lambda a, b: (a + b)[:1], np.ones(5))
