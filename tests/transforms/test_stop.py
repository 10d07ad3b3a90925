"""`stop_gradient`: constants for all transforms, plain and of their own."""

import numpy as np
from numpy.testing import assert_array_equal

import funcgrad as fg
from funcgrad.transforms.stop import stop_gradient

X = np.array([0.5, -1.25, 2.0, 0.75])


def test_stop_gradient_drops_derivatives_at_all_levels():
    def f(x):
        return np.sum(stop_gradient(x) * x)

    assert_array_equal(fg.grad(f)(X), X)
    assert_array_equal(fg.jvp(f, (X,), (np.ones(4),))[1], np.sum(X))
    second = fg.grad(lambda x: np.sum(fg.grad(lambda y: np.sum(stop_gradient(y * x) * y))(x)))(X)
    assert_array_equal(second, np.zeros(4))


def test_stop_gradient_returns_plain_values_of_its_own():
    kept = []

    def f(x):
        y = x * 2
        plain = stop_gradient({"y": y, "name": "a", "n": 3, "f": np.sum, "none": None, "c": 0 * y})
        assert type(plain["y"]) is np.ndarray
        plain["y"][0] = 100.0
        kept.append(plain)
        return np.sum(y * y)

    assert_array_equal(fg.grad(f)(np.array([1.0, 2.0])), [8, 16])
    assert kept[0]["name"] == "a"
    assert kept[0]["n"] == 3
    assert kept[0]["f"] is np.sum
    assert kept[0]["none"] is None


def test_stop_gradient_of_a_number_is_a_number():
    assert fg.grad(lambda x: float(stop_gradient(x)) * x)(3.0) == 3.0
    assert stop_gradient(3.0) == 3.0
    assert stop_gradient(X) is X
