"""Python numbers among arrays of a narrow dtype: they take that dtype, as in NumPy's operations."""

import numpy as np
import pytest

import funcgrad as fg

X = np.array([1.0, -2.0, 3.0], np.float32)


def cond(x):
    return fg.cond(x > 0, lambda x: x, lambda x: 0.0, x)


def switch(x):
    return fg.switch(x.astype(int), [lambda x: x, lambda x: 0, lambda x: 1.0], x)


def while_loop(x):
    return fg.while_loop(lambda c: c[0] < x, lambda c: (c[0] + 1, c[1] + x), (0, 0.0))[1]


def fori_loop(x):
    return fg.fori_loop(0, x.astype(int), lambda i, c: c + x, 0.0)


@pytest.mark.parametrize(
    ("fun", "expected"),
    [
        (cond, [1.0, 0.0, 3.0]),
        (switch, [0.0, -2.0, 1.0]),
        (while_loop, [1.0, 0.0, 9.0]),
        (fori_loop, [1.0, 0.0, 9.0]),
    ],
)
def test_examples_that_return_a_python_number(fun, expected):
    made = fg.vmap(fun)(X)
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made, expected)


def test_gradient_beside_a_python_number():
    made = fg.vmap(fg.grad(cond))(X)
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made, [1.0, 0.0, 1.0])


def running(x, start=0.0):
    return fg.scan(lambda total, x: (total + x, total), start, x)[1]


def test_outputs_of_scan_that_begin_with_a_python_number():
    made = running(X)
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made, [0.0, 1.0, -1.0])


def test_outputs_of_scan_under_vmap_that_begin_with_a_python_number():
    made = fg.vmap(running)(np.stack([X, 2 * X]))
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made, [[0.0, 1.0, -1.0], [0.0, 2.0, -2.0]])


def test_outputs_of_scan_that_begin_with_a_traced_python_number():
    weights = np.array([1.0, 10.0, 100.0], np.float32)
    made = fg.grad(lambda start: np.sum(weights * running(X, start)))(0.5)
    assert made == 111.0


def test_outputs_of_map_some_of_which_are_python_numbers():
    made = fg.map(lambda x: 0 if x < 0 else x, X)
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made, [1.0, 0.0, 3.0])


def test_python_numbers_alone_keep_their_dtype():
    assert fg.vmap(lambda x: fg.cond(x > 0, lambda x: 1, lambda x: 0, x))(X).dtype == np.int64
    assert fg.scan(lambda c, x: (c, 1.5), 0.0, X)[1].dtype == np.float64
