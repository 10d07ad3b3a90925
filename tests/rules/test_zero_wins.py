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


# Data of which rows are missing, and masked out after they have met the weights.
DATA = np.array([[1.0, 2.0], [np.nan, 3.0], [np.inf, 5.0]])
KNOWN = np.array([True, False, False])
PRODUCTS = {
    "matmul": lambda w: DATA @ w,
    "matmul of matrices": lambda w: (DATA @ w[:, None])[:, 0],
    "matmul from the left": lambda w: w @ DATA.T,
    "dot": lambda w: np.dot(DATA, w),
    "inner": lambda w: np.inner(DATA, w),
    "tensordot": lambda w: np.tensordot(DATA, w, 1),
    "einsum": lambda w: np.einsum("ij,j->i", DATA, w),
    "einsum of three": lambda w: np.einsum("ij,j,j->i", DATA, w, np.ones(2)),
    "vecdot": lambda w: np.vecdot(DATA, w),
    "matvec": lambda w: np.matvec(DATA, w),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("target", [1.0, -2.0])  # the first with an error of exactly 0
def test_missing_rows_do_not_spoil_the_weights(name, target):
    def loss(w):
        return np.sum(np.where(KNOWN, (PRODUCTS[name](w) - target) ** 2, 0.0))

    w, x = np.array([0.5, 0.25]), DATA[0]
    gradient, hessian = 2 * (x @ w - target) * x, 2 * np.outer(x, x)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(fg.grad(loss)(w), gradient, atol=1e-12)
        for e, slope, row in zip(np.eye(2), gradient, hessian, strict=True):
            np.testing.assert_allclose(fg.jvp(loss, (w,), (e,))[1], slope, atol=1e-12)
            np.testing.assert_allclose(fg.linearize(loss, w)[1](e), slope, atol=1e-12)
            np.testing.assert_allclose(fg.jvp(fg.grad(loss), (w,), (e,))[1], row, atol=1e-12)
            slope_along = fg.grad(lambda w, e=e: np.sum(fg.grad(loss)(w) * e))
            np.testing.assert_allclose(slope_along(w), row, atol=1e-12)


def test_a_zero_beside_what_is_not_finite_keeps_its_second_derivative():
    def f(x):
        return np.sum(np.where(np.isfinite(x), x**2, 0.0))

    x = np.array([0.0, np.nan, 3.0])
    _, second = fg.jvp(fg.grad(f), (x,), (np.ones(3),))
    np.testing.assert_array_equal(second, [2.0, 0.0, 2.0])
