"""strict: derivatives by plain IEEE arithmetic, where zero does not win."""

import threading

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import debug

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

# Function, where, gradient by default, gradient when strict: what JAX 0.10 gives for the latter,
# as noted in the table of conventions, where the rule is a product.
CASES = {
    "where of log": (lambda x: np.where(x > 0, np.log(x), 0.0), 0.0, 0.0, np.nan),
    "where of sqrt": (lambda x: np.where(x < 2, x * x, np.sqrt(x - 2)), 1.0, 2.0, np.nan),
    "sqrt of the sum of squares": (lambda x: np.sqrt(np.sum(x**2)), np.zeros(2), 0.0, np.nan),
    "branch not taken": (lambda x: np.where(x < 2, x * x, np.reciprocal(x - 1)), 1.0, 2.0, np.nan),
    "sigmoid that overflows": (lambda x: 1 / (1 + np.exp(-x)), -900.0, 0.0, np.nan),
    "missing data": (
        lambda w: np.sum(np.where([True, False], np.array([[1.0, 2.0], [np.nan, 1.0]]) @ w, 0.0)),
        np.ones(2),
        [1.0, 2.0],
        [np.nan, 2.0],
    ),
}


@pytest.mark.parametrize(("fun", "x", "usual", "strict"), CASES.values(), ids=CASES)
def test_reverse_mode(fun, x, usual, strict):
    np.testing.assert_array_equal(fg.grad(fun)(x), np.broadcast_to(usual, np.shape(x)))
    with debug.strict():
        np.testing.assert_array_equal(fg.grad(fun)(x), np.broadcast_to(strict, np.shape(x)))
    np.testing.assert_array_equal(fg.grad(fun)(x), np.broadcast_to(usual, np.shape(x)))


def slope(fun, x):
    return fg.jvp(fun, (x,), (1.0,))[1]


def test_forward_mode_multiplies_a_zero_tangent():
    def f(x):
        return np.sqrt(np.where(x > 0, x, 0.0))

    assert slope(f, -4.0) == 0.0
    with debug.strict():
        assert np.isnan(slope(f, -4.0))
    assert fg.jacfwd(f)(-4.0) == 0.0


def test_forward_mode_selects_all_the_same():
    def f(x):
        return np.where(x > 0, np.log(x), 0.0)

    with debug.strict():
        assert slope(f, 0.0) == 0.0


def test_linearize():
    _, push = fg.linearize(lambda x: np.sqrt(np.where(x > 0, x, 0.0)), -4.0)
    assert push(1.0) == 0.0
    with debug.strict():
        assert np.isnan(push(1.0))


def test_pullback_counts_where_it_is_called():
    _, pullback = fg.vjp(lambda x: np.where(x > 0, np.log(x), 0.0), 0.0)
    assert pullback(1.0) == (0.0,)
    with debug.strict():
        assert np.isnan(pullback(1.0)[0])


def test_vmap_of_grad():
    gradient = fg.vmap(fg.grad(lambda x: np.where(x > 0, np.log(x), 0.0)))
    np.testing.assert_array_equal(gradient(np.array([0.0, 2.0])), [0.0, 0.5])
    with debug.strict():
        np.testing.assert_array_equal(gradient(np.array([0.0, 2.0])), [np.nan, 0.5])


KINKS = {
    "norm": (np.linalg.norm, np.zeros(2), [0.0, 0.0]),
    "abs": (np.abs, 0.0, 0.0),
    "prod": (np.prod, np.array([0.0, 5.0, 7.0]), [35.0, 0.0, 0.0]),
    "power": (lambda x: np.sum(x ** np.array([0.0, 1.0, 3.0])), 0.0, 1.0),
    "max": (np.max, np.array([2.0, 7.0, 7.0]), [0.0, 0.5, 0.5]),
}


@pytest.mark.parametrize(("fun", "x", "gradient"), KINKS.values(), ids=KINKS)
def test_conventions_at_kinks_stay(fun, x, gradient):
    with debug.strict():
        np.testing.assert_array_equal(fg.grad(fun)(x), gradient)


def test_finite_derivatives_are_the_same():
    def f(x):
        return np.sum(np.tanh(x) / (1 + x**2)) + np.linalg.norm(x)

    x = np.array([0.3, -1.0, 2.0])
    usual = fg.grad(f)(x)
    with debug.strict():
        np.testing.assert_array_equal(fg.grad(f)(x), usual)


def test_other_threads_are_not_strict():
    found = []
    with debug.strict():
        thread = threading.Thread(
            target=lambda: found.append(fg.grad(CASES["where of log"][0])(0.0))
        )
        thread.start()
        thread.join()
    assert found == [0.0]


def test_decorator():
    gradient = debug.strict()(fg.grad(CASES["where of log"][0]))
    assert np.isnan(gradient(0.0))
