"""linear_transpose: the transpose of linear functions, and what it says of others."""

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.transforms.callback import ShapeDtypeStruct
from funcgrad.transforms.transpose import linear_transpose

A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def test_matrix():
    transposed = linear_transpose(lambda x: A @ x, np.full(3, np.nan))
    assert np.array_equal(transposed(np.array([1.0, -1.0]))[0], [-3.0, -3.0, -3.0])


def test_several_arguments_and_pytrees():
    def f(x, p):
        return {"s": A @ x + p["y"], "t": 2.0 * p["z"]}

    transposed = linear_transpose(f, np.ones(3), {"y": np.ones(2), "z": 1.0})
    x_bar, p_bar = transposed({"s": np.array([1.0, 0.0]), "t": 3.0})
    assert np.array_equal(x_bar, A[0])
    assert np.array_equal(p_bar["y"], [1.0, 0.0])
    assert p_bar["z"] == 6.0


def test_arguments_given_by_shape_and_dtype():
    transposed = linear_transpose(np.sum, ShapeDtypeStruct((2,), np.float32))
    (x_bar,) = transposed(np.float32(2.0))
    assert np.array_equal(x_bar, [2.0, 2.0])
    assert x_bar.dtype == np.float32


def test_complex_transpose_conjugates_nothing():
    assert linear_transpose(lambda z: 1j * z, 0j)(1 + 0j) == (1j,)


def test_transpose_of_the_transpose():
    transposed = linear_transpose(lambda x: A @ x, np.zeros(3))
    again = linear_transpose(lambda y: transposed(y)[0], np.zeros(2))
    assert np.array_equal(again(np.eye(3)[1])[0], A[:, 1])


def test_under_other_transforms():
    transposed = linear_transpose(lambda x: A @ x, np.zeros(3))
    assert np.array_equal(fg.vmap(transposed)(np.eye(2))[0], A)
    assert np.array_equal(fg.jacfwd(lambda y: transposed(y)[0])(np.zeros(2)), A.T)


@pytest.mark.parametrize("fun", [lambda x: x + 1.0, lambda x: np.ones(3) + x])
def test_function_that_is_not_linear(fun):
    with pytest.raises(ArgumentError, match="does not map zero to zero"):
        linear_transpose(fun, 1.0)


def test_integer_argument():
    with pytest.raises(DtypeError, match="linear_transpose needs floating-point"):
        linear_transpose(lambda n: n, np.arange(3))


def test_cotangent_of_another_shape():
    with pytest.raises(ShapeError, match="cotangent has shape"):
        linear_transpose(lambda x: A @ x, np.zeros(3))(np.zeros(3))


@pytest.mark.parametrize(
    "fun", [np.sin, lambda x: x**2, lambda x: x * np.sum(x), lambda x: np.maximum(x, 0)]
)
@pytest.mark.parametrize("shape", [(), (3,)])
def test_what_is_zero_at_zero_need_not_be_linear(fun, shape):
    with pytest.raises(ArgumentError, match="is not its derivative times its argument"):
        fg.linear_transpose(fun, np.zeros(shape))


def test_long_linear_functions_in_float32_pass():
    a = np.random.default_rng(0).normal(size=(200, 200)).astype(np.float32) / 14

    def chain(x):
        for _ in range(20):
            x = a @ x
        return x

    (out,) = fg.linear_transpose(chain, np.zeros(200, np.float32))(np.ones(200, np.float32))
    expected = np.ones(200)
    for _ in range(20):
        expected = a.T.astype(float) @ expected
    np.testing.assert_allclose(out, expected, atol=1e-4 * np.abs(expected).max())
