"""Updates at indices that differ from example to example. Others are in tests/test_at.py."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.errors import ShapeError

X = np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
INDEX = np.array([[0, 2, 0], [3, 3, 1]])
VALUES = np.array([[10.0, 20.0, 30.0], [40.0, 50.0, 60.0]])


def looped(ufunc, index, values):
    made = X.copy()
    for row, places, new in zip(made, index, values, strict=True):
        ufunc.at(row, places, new)
    return made


def test_sums_add_up_where_an_example_names_an_element_twice():
    found = fg.vmap(lambda x, i, v: fg.at(x)[i].add(v))(X, INDEX, VALUES)
    assert_array_equal(found, looped(np.add, INDEX, VALUES))
    found = fg.vmap(lambda x, i, v: fg.at(x)[i].subtract(v))(X, INDEX, VALUES)
    assert_array_equal(found, looped(np.subtract, INDEX, VALUES))


def test_gradients_of_sums_go_to_every_value():
    def total(v, i, x):
        return np.sum(fg.at(x)[i].add(v) * np.arange(4.0))

    gradient = fg.vmap(fg.grad(total))(VALUES, INDEX, X)
    assert_array_equal(gradient, INDEX)


@pytest.mark.parametrize(
    ("method", "ufunc"),
    [("multiply", np.multiply), ("divide", np.divide), ("max", np.maximum), ("min", np.minimum)],
)
def test_other_updates_of_different_elements(method, ufunc):
    index = np.array([[0, 2, 1], [3, 0, 1]])
    found = fg.vmap(lambda x, i, v: getattr(fg.at(x)[i], method)(v))(X, index, VALUES)
    assert_allclose(found, looped(ufunc, index, VALUES), rtol=1e-15)


@pytest.mark.parametrize(
    ("method", "ufunc"),
    [
        ("multiply", np.multiply),
        ("divide", np.divide),
        ("power", np.power),
        ("max", np.maximum),
        ("min", np.minimum),
    ],
)
def test_other_updates_of_one_element_twice(method, ufunc):
    values = VALUES / 30
    found = fg.vmap(lambda x, i, v: getattr(fg.at(x)[i], method)(v))(X, INDEX, values)
    assert_allclose(found, looped(ufunc, INDEX, values), rtol=1e-15)


def test_functions_applied_to_one_element_twice():
    found = fg.vmap(lambda x, i: fg.at(x)[i].apply(np.sqrt))(X, INDEX)
    want = X.copy()
    want[0, [0, 2]] = X[0, 0] ** 0.25, X[0, 2] ** 0.5
    want[1, [3, 1]] = X[1, 3] ** 0.25, X[1, 1] ** 0.5
    assert_allclose(found, want, rtol=1e-15)


def test_ufunc_at_of_one_element_twice():
    def f(x, i, v):
        y = x.copy()
        np.multiply.at(y, i, v)
        return y

    assert_array_equal(fg.vmap(f)(X, INDEX, VALUES), looped(np.multiply, INDEX, VALUES))


def test_gradients_of_products_of_one_element_twice():
    def total(v, i, x):
        return np.sum(fg.at(x)[i].multiply(v))

    gradient = fg.vmap(fg.grad(total))(VALUES, INDEX, X)
    # The first example is x0 v0 v2 + x2 v1, the second x3 v0 v1 + x1 v2.
    assert_array_equal(gradient, [[30.0, 3.0, 10.0], [400.0, 320.0, 6.0]])


def test_rounds_leave_out_examples_that_are_done():
    # A division by zero in what stands in for them would warn.
    index = np.array([[0, 0, 0], [1, 2, 3]])
    with np.errstate(all="raise"):
        found = fg.vmap(lambda x, i: fg.at(x)[i].divide(2.0))(X, index)
    assert_array_equal(found, [[0.125, 2, 3, 4], [5, 3, 3.5, 4]])


MASKS = {
    "add": lambda part: part.add(1.0),
    "subtract": lambda part: part.subtract(1.0),
    "multiply": lambda part: part.multiply(3.0),
    "divide": lambda part: part.divide(4.0),
    "power": lambda part: part.power(2.0),
    "min": lambda part: part.min(3.5),
    "max": lambda part: part.max(3.5),
    "set": lambda part: part.set(9.0),
    "apply": lambda part: part.apply(np.sqrt),
}


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_that_differs(name):
    def f(x):
        return MASKS[name](fg.at(x)[x > 2.5])

    assert_array_equal(fg.vmap(f)(X), np.stack(list(map(f, X))))


def test_a_mask_of_rows_that_differs():
    x = np.arange(12.0).reshape(2, 3, 2)

    def f(x):
        return fg.at(x)[np.sum(x, axis=1) > 6].multiply(np.array([10.0, 100.0]))

    assert_array_equal(fg.vmap(f)(x), np.stack(list(map(f, x))))


def test_what_a_mask_leaves_out_is_not_computed():
    x = np.array([[-1.0, 4.0], [9.0, -2.0]])
    with np.errstate(all="raise"):
        found = fg.vmap(lambda x: fg.at(x)[x > 0].apply(np.sqrt))(x)
    assert_array_equal(found, [[-1, 2], [3, -2]])


def test_gradient_under_a_mask_that_differs():
    def total(x):
        return np.sum(fg.at(x)[x > 2.5].multiply(x[0]))

    gradient = fg.vmap(fg.grad(total))(X)
    # x0 + x1 + x0 (x2 + x3), and x0 (x0 + x1 + x2 + x3).
    assert_array_equal(gradient, [[8.0, 1.0, 1.0, 1.0], [31.0, 5.0, 5.0, 5.0]])


def test_a_value_for_each_element_under_a_mask_that_differs_is_refused():
    with pytest.raises(ShapeError, match="as many elements as it is true for"):
        fg.vmap(lambda x: fg.at(x)[x > 2.5].add(np.array([1.0, 2.0])))(X)


def test_mask_by_ufunc_at():
    def f(x):
        y = x.copy()
        np.add.at(y, x > 2.5, 1.0)
        return y

    assert_array_equal(fg.vmap(f)(X), np.stack(list(map(f, X))))


BEYOND = np.array([[0, 5, -1], [-7, 3, 3]])


@pytest.mark.parametrize("mode", ["clip", "wrap", "drop", "fill"])
@pytest.mark.parametrize("method", ["set", "add", "multiply", "max", "min"])
def test_indices_out_of_bounds_that_differ(method, mode):
    def f(x, i, v):
        return getattr(fg.at(x)[i], method)(v, mode=mode)

    want = [f(x, i, v) for x, i, v in zip(X, BEYOND, VALUES, strict=True)]
    assert_array_equal(fg.vmap(f)(X, BEYOND, VALUES), np.stack(want))


@pytest.mark.parametrize("mode", ["clip", "wrap", "fill"])
def test_reading_indices_out_of_bounds_that_differ(mode):
    def f(x, i):
        return fg.at(x)[i].get(mode=mode)

    want = np.stack([f(x, i) for x, i in zip(X, BEYOND, strict=True)])
    assert_array_equal(fg.vmap(f)(X, BEYOND), want)


def test_plain_array_read_at_indices_that_differ():
    found = fg.vmap(lambda i: fg.at(X[0])[i].get(mode="fill", fill_value=-1.0))(BEYOND)
    assert_array_equal(found, [[1, -1, 4], [-1, 4, 4]])


def test_one_index_for_all_examples_may_name_an_element_twice():
    index = [1, 1, 0]
    found = fg.vmap(lambda x, v: fg.at(x)[index].multiply(v))(X, VALUES)
    assert_array_equal(found, looped(np.multiply, [index, index], VALUES))
    found = fg.vmap(lambda x, v: fg.at(x)[index].max(v))(X, VALUES)
    assert_array_equal(found, looped(np.maximum, [index, index], VALUES))
