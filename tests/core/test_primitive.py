"""How a call of NumPy's becomes one of a primitive, and what that keeps for later."""

import tracemalloc
import warnings

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import TracerAttributeError

X = np.array([1.0, 2.0, 3.0])

# Static arguments belong to the caller, who may write to them before the pullback runs


@pytest.mark.parametrize(
    ("call", "static", "later", "expected"),
    [
        (np.repeat, np.array([1, 2, 1]), [2, 1, 1], [1.0, 5.0, 4.0]),
        (np.repeat, [1, 2, 1], [2, 1, 1], [1.0, 5.0, 4.0]),
        (np.ldexp, np.array([1, 2, 1]), [2, 1, 1], [2.0, 8.0, 6.0]),
        (np.add.reduceat, np.array([0, 2]), [0, 1], [1.0, 1.0, 2.0]),
        (
            lambda x, s: np.insert(np.zeros(3), s, x),
            np.array([1, 2, 1]),
            [0, 2, 0],
            [2.0, 5.0, 3.0],
        ),
        (lambda x, s: np.sum(x, where=s), [True, False, True], [False] * 3, [1.0, 0.0, 1.0]),
    ],
)
@pytest.mark.parametrize("transform", [fg.vjp, fg.linearize])
def test_static_argument_may_be_written_to_afterwards(transform, call, static, later, expected):
    kept = static.copy()
    out, linear = transform(lambda x: call(x, kept), X)
    kept[:] = later
    weights = np.arange(1.0, np.size(out) + 1).reshape(np.shape(out))[()]
    if transform is fg.vjp:
        np.testing.assert_array_equal(linear(weights)[0], expected)
    else:
        np.testing.assert_array_equal(np.sum(weights * linear(X)), np.dot(expected, X))


# where= of a ufunc: nothing is computed where it is false


def recorded(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, caught


@pytest.mark.parametrize("transform", ["grad", "jvp"])
def test_masked_ufunc_does_not_warn_of_what_is_not_computed(transform):
    x = np.array([-1.0, 0.0, 2.0])

    def f(x):
        return np.sum(np.log(x, out=np.zeros_like(x), where=x > 0))

    if transform == "grad":
        derivative, caught = recorded(lambda: fg.grad(f)(x))
        np.testing.assert_array_equal(derivative, [0.0, 0.0, 0.5])
    else:
        (value, slope), caught = recorded(lambda: fg.jvp(f, (x,), (np.ones(3),)))
        assert (value, slope) == (np.log(2.0), 0.5)
    assert not caught


def test_masked_ufunc_still_warns_of_what_is_computed():
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        fg.grad(lambda x: np.sum(np.log(x, out=np.zeros_like(x), where=x > -1)))(np.zeros(2))


def test_mask_of_a_ufunc_broadcasts_against_a_scalar():
    mask = np.array([True, False, True])
    value, slope = fg.value_and_grad(lambda a: np.sum(np.add(a, 1.0, where=mask)))(2.0)
    assert (value, slope) == (6.0, 2.0)


def test_masked_ufunc_has_a_second_derivative():
    def f(x):
        return np.sum(np.exp(x, out=np.zeros_like(x), where=x != 0))

    x = np.array([0.0, 1.0])
    second = fg.grad(lambda x: np.sum(fg.grad(f)(x)))(x)
    np.testing.assert_allclose(second, [0.0, 2.718281828459045], rtol=1e-15)


def test_forward_mode_does_not_warn_of_its_own_sum():
    x = np.array([np.inf, 1.0])
    (_, out_dot), caught = recorded(lambda: fg.jvp(lambda a, b: a + b, (x, x), (x, -x)))
    assert np.isnan(out_dot[0])
    assert [w.category for w in caught] == []


# Attributes


def test_hasattr_of_what_needs_the_memory_is_false():
    seen = []
    fg.grad(lambda x: seen.append((hasattr(x, "strides"), hasattr(x, "shape"))) or np.sum(x))(X)
    assert seen == [(False, True)]


def test_attribute_that_needs_the_memory_says_what_to_write():
    with pytest.raises(TracerAttributeError, match="stop_gradient"):
        fg.grad(lambda x: x.strides)(X)


@pytest.mark.parametrize("x", [X, 1.5, np.float64(1.5)])
def test_device_is_that_of_numpy(x):
    seen = []
    fg.grad(lambda x: seen.append(x.device) or np.sum(x))(x)
    assert seen == ["cpu"]


# Memory


def test_linearize_keeps_nothing_of_linear_operations():
    def f(x):
        for _ in range(20):
            x = np.reshape(np.copy(np.transpose(x)), x.shape) + np.concatenate([x, x])[:1000]
        return x

    x = np.arange(1e5).reshape(1000, 100)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        out, pushforward = fg.linearize(f, x)
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert held < 3 * x.nbytes  # the argument, and the result
    np.testing.assert_array_equal(pushforward(x), out)


# Odd arguments


def test_take_counts_booleans_as_numbers():
    gradient = fg.grad(lambda x: np.sum(np.take(x, [True, False, True]) * X))(X)
    np.testing.assert_array_equal(gradient, [2.0, 4.0, 0.0])


def test_norm_of_swapped_bytes():
    gradient = fg.grad(lambda x: np.linalg.norm(x, np.inf))(np.array([3.0, -3.0, 1.0], ">f8"))
    np.testing.assert_array_equal(gradient, [0.5, -0.5, 0.0])


def test_ediff1d_takes_a_traced_python_float():
    assert fg.grad(lambda end: np.sum(np.ediff1d(X, end)))(2.0) == 1.0


# What the caller gets is the caller's


@pytest.mark.parametrize("transform", [fg.vjp, fg.linearize])
def test_auxiliary_output_may_be_written_to(transform):
    def f(x):
        y = np.exp(x)
        return np.sum(y), {"y": y, "name": "exp"}

    _, linear, aux = transform(f, X, has_aux=True)
    before = linear(1.0) if transform is fg.vjp else linear(X)
    aux["y"][:] = 0.0
    after = linear(1.0) if transform is fg.vjp else linear(X)
    np.testing.assert_array_equal(after, before)
    assert np.all(np.asarray(after) > 0)
