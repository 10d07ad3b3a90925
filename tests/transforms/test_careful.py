"""The backward pass looks at a segment of the tape at a time: nobody can tell."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.scipy import linalg

LENGTHS = (0, 1, 30, 58, 60, 62, 63, 64, 65, 100, 129)


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("length", LENGTHS)
def test_zero_wins_wherever_segments_end(length):
    def f(x):
        z = x
        for _ in range(length):
            z = z * 1.0
        return np.sum(np.where(z > 0, np.sqrt(z), 0.0) + 3 * x)

    assert_allclose(fg.grad(f)(np.array([0.0, 4.0])), [3.0, 3.25], rtol=1e-15)
    _, pullback = fg.vjp(f, np.array([0.0, 4.0]))
    for _ in range(2):
        assert_allclose(pullback(1.0)[0], [3.0, 3.25], rtol=1e-15)


@pytest.mark.parametrize("length", LENGTHS)
def test_rules_of_users_see_what_a_careful_pass_makes(length):
    """They may make a number of NaN, which would then not be noticed."""

    @fg.custom_vjp
    def zap(x):
        return x

    zap.defvjp(lambda x: (x, None), lambda _, x_bar: (np.nan_to_num(x_bar),))

    def f(x):
        y = zap(x)
        z = y
        for _ in range(length):
            z = z * 1.0
        return np.sum(np.where(z > 0, np.sqrt(z), 0.0) + 3 * y)

    assert_allclose(fg.grad(f)(np.array([0.0, 1.0])), [3.0, 3.5], rtol=1e-15)


def test_rules_of_users_are_called_once():
    calls = []

    @fg.custom_vjp
    def counted(x):
        return x

    def backward(_, x_bar):
        calls.append(float(x_bar))
        return (x_bar,)

    counted.defvjp(lambda x: (x, None), backward)
    fg.grad(lambda x: np.sqrt(x[1]) + counted(x[0]))(np.array([1.0, 0.0]))
    assert calls == [1.0]


def test_rules_of_users_are_noticed_inside_a_checkpoint():
    @fg.custom_vjp
    def zap(x):
        return x

    zap.defvjp(lambda x: (x, None), lambda _, x_bar: (np.nan_to_num(x_bar, nan=7.0),))

    def f(x):
        y = fg.checkpoint(lambda x: zap(x) * 1.0)(x)
        return np.sum(np.where(y > 0, np.sqrt(y), 0.0))

    assert_array_equal(fg.grad(f)(np.array([0.0, 0.25])), [0.0, 1.0])


def test_functions_that_refuse_what_is_not_finite():
    b = np.array([[2.0, 0.0], [1.0, 3.0]])

    def f(solve):
        def loss(x):
            y = solve(b, x)
            return np.sum(np.where(y > 0, np.sqrt(y), 0.0))

        return loss

    x = np.array([0.0, 2.0])
    expected = fg.grad(f(np.linalg.solve))(x)
    got = fg.grad(f(lambda b, x: linalg.solve_triangular(b, x, lower=True)))(x)
    assert_allclose(got, expected, rtol=1e-14)
    assert np.all(np.isfinite(got))


def test_errors_of_rules_are_raised():
    @fg.custom_vjp
    def broken(x):
        return x

    def backward(_, x_bar):
        raise RuntimeError("mine")

    broken.defvjp(lambda x: (x, None), backward)
    with pytest.raises(RuntimeError, match="mine"):
        fg.grad(broken)(1.0)


@pytest.mark.parametrize("size", [2, 3000])
def test_arguments_of_einsum_may_change_before_the_pullback_runs(size):
    a, b = np.arange(float(size)), np.ones(size)
    _, pullback = fg.vjp(lambda a, b: np.einsum("i,i", a, b), a, b)
    a[:] = 9.0
    b[:] = 9.0
    a_bar, b_bar = pullback(1.0)
    assert_array_equal(a_bar, np.ones(size))
    assert_array_equal(b_bar, np.arange(float(size)))


@pytest.mark.parametrize("size", [10, 2048, 2049, 5000])
def test_array_made_inside_may_be_assigned_to_after_its_use(size):
    def f(x):
        y = np.zeros_like(x)
        z = y * x
        y[1] += x[1]
        return np.sum(z + y)

    expected = np.zeros(size)
    expected[1] = 1.0
    assert_array_equal(fg.grad(f)(np.ones(size)), expected)

    def g(x):
        y = np.zeros_like(x)
        np.add.at(y, [0, 1], x[:2])
        return np.sum(y * x)

    expected[:2] = 2.0
    assert_array_equal(fg.grad(g)(np.ones(size)), expected)
