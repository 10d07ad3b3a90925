"""Functions of networks are written as their parts, which compute the same, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.nn.functional as F
from funcgrad.rules.nn.normalizing import root_mean_square, standardize

RNG = np.random.default_rng(0)
ELEMENTWISE = {
    "gelu_tanh": lambda x: F.gelu(x, approximate=True),
    "sigmoid": F.sigmoid,
    "softplus": F.softplus,
}
ALONG = {
    "softmax": F.softmax,
    "log_softmax": F.log_softmax,
    "log_sum_exp": lambda x, axis: (
        F.logsumexp(x, axis=axis),
        F.logsumexp(x, axis=axis, keepdims=True),
    ),
    "standardize": lambda x, axis: standardize(x, axis=axis, eps=1e-5),
    "root_mean_square": lambda x, axis: root_mean_square(x, axis=axis, eps=1e-5),
}
SPECIAL = np.array([0.0, -0.0, 1e-30, -1e-30, 60.0, -60.0, 1e30, -1e30, np.inf, -np.inf, np.nan])


def assert_same(got, want):
    for one, other in zip(fg.tree.leaves(got), fg.tree.leaves(want), strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        np.testing.assert_array_equal(one, other)
        finite = ~np.isnan(other)
        np.testing.assert_array_equal(np.signbit(one[finite]), np.signbit(other[finite]))


def names_of(fun, *args):
    return fg.jit(fun).lower(*args).as_text()


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_functions_of_each_element(name, dtype):
    fun = ELEMENTWISE[name]
    x = np.concatenate([SPECIAL, RNG.normal(size=85) * 10]).astype(dtype)
    assert f"= {name}(" not in names_of(fun, x)
    with np.errstate(all="ignore"):
        for array in (x, x.reshape(8, 12), np.asfortranarray(x.reshape(8, 12)), x[::2]):
            assert_same(fg.jit(fun)(array), fun(array))


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("axis", [-1, 0, (0, 2)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_functions_along_axes(name, axis, dtype):
    def fun(x):
        return ALONG[name](x, axis=axis)

    x = RNG.normal(size=(4, 5, 6)).astype(dtype)
    assert f"= {name}(" not in names_of(fun, x)
    for array in (x, x.transpose(2, 0, 1), x[:, ::2]):
        assert_same(fg.jit(fun)(array), fun(array))


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1e30, -0.0])
def test_rows_that_are_not_finite(name, value):
    def fun(x):
        return ALONG[name](x, axis=1)

    compiled = fg.jit(fun)
    x = RNG.normal(size=(6, 4))
    compiled(x)
    x[1] = value
    x[2, 1:3] = value
    x[3, 0], x[3, 2] = value, np.inf
    with np.errstate(all="ignore"):
        assert_same(compiled(x), fun(x))


def test_what_has_no_parts_stays():
    assert "= softmax(" in names_of(lambda x: F.softmax(x), np.asfortranarray(np.ones((3, 4))))
    assert "= softmax(" in names_of(F.softmax, np.ones(3, np.float16))
    assert "= sigmoid(" in names_of(F.sigmoid, 1.0)
    for x in (np.zeros((0, 3)), np.ones((3, 0)), np.ones(4, np.float16), np.float64(2.0)):
        for fun in (F.softmax, F.sigmoid, F.log_softmax):
            with np.errstate(divide="ignore"):  # the logarithm of a sum of nothing
                assert_same(fg.jit(fun)(x), fun(x))


def test_parts_are_shared():
    """Of the logistic function and its product with the argument, say."""
    text = names_of(lambda x: F.sigmoid(x) + F.silu(x), np.ones(3))
    assert text.count("exp(") == 2


def test_parts_are_written_into_memory_that_is_there():
    source = fg.jit(F.softmax).lower(np.ones((3, 4))).as_source()
    assert "np.exp(b, t" in source
    namespace = {}
    exec(source, namespace)
    x = RNG.normal(size=(3, 4))
    x[0] = -np.inf
    np.testing.assert_array_equal(namespace["softmax"](x)[0], F.softmax(x))


def test_derivatives_are_those_of_the_whole():
    def loss(x):
        return np.sum(F.softmax(x) * F.log_softmax(x)) + np.sum(F.silu(x) * F.softplus(x))

    x = RNG.normal(size=(5, 6)) * 100  # where the parts by themselves would overflow
    np.testing.assert_array_equal(fg.jit(fg.grad(loss))(x), fg.grad(loss)(x))
    assert np.all(np.isfinite(fg.grad(fg.jit(loss))(x)))
