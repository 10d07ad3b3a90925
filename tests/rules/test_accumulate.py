"""Updates at indices that differ from example to example. Others are in tests/test_at.py."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.errors import MissingRuleError

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


def test_other_updates_of_one_element_twice_are_refused():
    with pytest.raises(MissingRuleError, match="names an element twice"):
        fg.vmap(lambda x, i, v: fg.at(x)[i].multiply(v))(X, INDEX, VALUES)


def test_one_index_for_all_examples_may_name_an_element_twice():
    index = [1, 1, 0]
    found = fg.vmap(lambda x, v: fg.at(x)[index].multiply(v))(X, VALUES)
    assert_array_equal(found, looped(np.multiply, [index, index], VALUES))
    found = fg.vmap(lambda x, v: fg.at(x)[index].max(v))(X, VALUES)
    assert_array_equal(found, looped(np.maximum, [index, index], VALUES))
