"""Two negations in a chain of products are none."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg

X = np.array([1.5, -2.0, 0.0, -0.0, np.inf, 3.0])
Y = np.array([-1.0, 3.0, 2.0, 5.0, 0.5, np.nan])


def negations(fun, *args):
    return fg.jit(fun).lower(*args).as_text().count("negative(")


@pytest.mark.parametrize(
    ("fun", "left"),
    [
        (lambda x, y: -(-x * y), 0),
        (lambda x, y: -(y * (-x) / y), 0),
        (lambda x, y: -(y / (-x)), 0),
        (lambda x, y: -(-x + y), 2),  # a sum
        (lambda x, y: (-(-x * y), -x), 1),  # which is used elsewhere
        (lambda x, y: -x * y, 1),
        (lambda x, y: -(-(-x * y) * y), 1),
    ],
)
def test_pairs_of_signs_are_left_out(fun, left):
    assert negations(fun, X, Y) == left
    with np.errstate(all="ignore"):
        wanted = fun(X, Y)
    for made, one in zip(fg.tree.leaves(fg.jit(fun)(X, Y)), fg.tree.leaves(wanted), strict=True):
        assert_array_equal(made, one)
        known = ~np.isnan(one)
        assert_array_equal(np.signbit(made)[known], np.signbit(one)[known])


def test_complex_products_keep_theirs():
    assert negations(lambda x, y: -(-x * y), X + 1j, Y + 1j) == 2


def test_the_slope_of_a_logistic_function_has_none():
    def fun(x):
        return np.sum((1 / (1 + np.exp(-x))) ** 2)

    assert negations(fg.grad(fun), X[:2]) == 1  # that of the exponent
    assert_array_equal(fg.jit(fg.grad(fun))(X[:2]), fg.grad(fun)(X[:2]))
