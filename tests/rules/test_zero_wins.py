"""A branch that was not taken has no say, whatever it computed: its derivative is 0."""

import numpy as np
import pytest

import funcgrad as fg

inf = np.inf
X = np.array([1.0, 2.0])

# Functions of `X` that are infinite or undefined, with infinite or undefined slopes.
BRANCHES = {
    "log": lambda x: np.sum(np.log(x - X)),
    "sqrt": lambda x: np.sum(np.sqrt(x - X)),
    "power": lambda x: np.sum((x - X) ** -0.5),
    "divide": lambda x: np.sum(x) / np.sum(x - X),
    "var": lambda x: np.var(x * inf),
    "std": lambda x: np.std(x * inf),
    "prod": lambda x: np.prod(x * inf),
    "cumprod": lambda x: np.cumprod(x * inf)[1],
    "cumprod of many": lambda x: np.cumprod(np.outer(x * inf, np.ones(40)), axis=0)[1, 3],
    "divide.accumulate": lambda x: np.true_divide.accumulate(x - X)[1],
    "norm": lambda x: np.linalg.norm(x - X, 0.5),
    "average": lambda x: np.average(x, weights=x * inf),
    "trapezoid": lambda x: np.trapezoid(x * inf),
    "sinc": lambda x: np.sum(np.sinc(x * inf)),
    "i0": lambda x: np.sum(np.i0(x * 1e4)),
    "geomspace": lambda x: np.geomspace(x[0], x[1] * 1e-320, 3)[1],
}


@pytest.mark.parametrize("name", BRANCHES)
def test_branch_not_taken_has_no_say(name):
    def f(x):
        return np.where(True, x[0], BRANCHES[name](x))

    with np.errstate(all="ignore"):
        gradient = fg.grad(f)(X)
        slopes = [fg.jvp(f, (X,), (direction,))[1] for direction in np.eye(2)]
        pushforward = fg.linearize(f, X)[1]
        pushed = [pushforward(direction) for direction in np.eye(2)]
    np.testing.assert_array_equal(gradient, [1.0, 0.0])
    np.testing.assert_array_equal(slopes, [1.0, 0.0])
    np.testing.assert_array_equal(pushed, [1.0, 0.0])
