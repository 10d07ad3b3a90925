"""pure_callback: plain arrays for foreign code, under each transform."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import funcgrad as fg
from funcgrad.errors import (
    ArgumentError,
    DtypeError,
    MissingRuleError,
    ShapeError,
    TreeMismatchError,
)
from funcgrad.transforms.callback import ShapeDtypeStruct, pure_callback
from funcgrad.transforms.custom import custom_jvp, custom_vjp

X = np.array([1.0, 2.0, 3.0])


def doubled(x):
    assert type(x) in (np.ndarray, np.float64, float)
    return 2.0 * x


def test_value_without_transforms():
    assert pure_callback(math.gamma, 1.0, 5.0) == 24.0


def test_one_call_for_each_example():
    out = fg.vmap(lambda x: pure_callback(math.gamma, x, x))(X + 2.0)
    assert np.array_equal(out, [2.0, 6.0, 24.0])


@pytest.mark.parametrize(
    ("method", "shapes"),
    [
        ("expand_dims", [(3,), (1, 2)]),
        ("broadcast_all", [(3,), (3, 2)]),
    ],
)
def test_one_call_for_all_examples(method, shapes):
    seen = []

    def outer(x, y):
        seen.append([np.shape(x), np.shape(y)])
        return x[:, None] * y

    def one(x, y):
        return pure_callback(outer, ShapeDtypeStruct(2, float), x, y, vmap_method=method)

    out = fg.vmap(one, (0, None))(X, np.array([1.0, 10.0]))
    assert np.array_equal(out, np.outer(X, [1.0, 10.0]))
    assert seen == [shapes]


def test_nested_vmap():
    def product(x, y):
        return pure_callback(lambda x, y: float(x) * float(y), 1.0, x, y)

    table = fg.vmap(lambda x: fg.vmap(lambda y: product(x, y))(X))(X)
    assert np.array_equal(table, np.outer(X, X))


def test_no_examples():
    out = fg.vmap(lambda x: pure_callback(doubled, ShapeDtypeStruct(2, float), x))(np.ones((0, 2)))
    assert out.shape == (0, 2)


def test_with_a_rule_for_reverse_mode():
    @custom_vjp
    def f(x):
        return pure_callback(doubled, x, x)

    f.defvjp(lambda x: (f(x), None), lambda residuals, out_bar: (7.0 * out_bar,))
    assert np.array_equal(fg.grad(lambda x: np.sum(f(x)))(X), [7.0, 7.0, 7.0])
    assert np.array_equal(fg.vmap(fg.grad(f))(X), [7.0, 7.0, 7.0])
    assert np.array_equal(fg.jvp(f, (X,), (X,))[1], 7.0 * X)


def test_with_a_rule_for_forward_mode():
    @custom_jvp
    def f(x):
        return pure_callback(math.sin, x, x)

    f.defjvp(lambda primals, tangents: (f(*primals), np.cos(primals[0]) * tangents[0]))
    assert_allclose(fg.grad(f)(1.0), math.cos(1.0))
    assert_allclose(fg.vmap(fg.grad(fg.grad(f)))(X), -np.sin(X))


def test_pytrees_and_keywords():
    def foreign(p, *, scale):
        return {"y": p["x"] * scale, "n": 3}

    spec = {"y": ShapeDtypeStruct((), float), "n": 0}
    out = fg.vmap(lambda x: pure_callback(foreign, spec, {"x": x}, scale=2.0))(X)
    assert np.array_equal(out["y"], 2.0 * X)
    assert np.array_equal(out["n"], [3, 3, 3])


@pytest.mark.parametrize("transform", [fg.grad, lambda f: lambda x: fg.jvp(f, (x,), (1.0,))])
def test_derivative_says_to_give_a_rule(transform):
    with pytest.raises(MissingRuleError, match=r"pure_callback\(gamma\) has no derivative") as info:
        transform(lambda x: pure_callback(math.gamma, x, x))(2.0)
    assert "custom_vjp" in str(info.value)


@pytest.mark.parametrize(
    ("returned", "error", "words"),
    [
        (np.ones(3), TreeMismatchError, "structure of result_shape_dtypes"),
        ({"y": np.ones(3)}, ShapeError, r"float64\[3\] at \['y'\], expected float32\[2\]"),
        ({"y": np.ones(2)}, DtypeError, r"float64\[2\] at \['y'\], expected float32\[2\]"),
    ],
)
def test_wrong_result(returned, error, words):
    with pytest.raises(error, match=words):
        pure_callback(lambda: returned, {"y": ShapeDtypeStruct(2, np.float32)})


def test_wrong_arguments():
    with pytest.raises(ArgumentError, match="takes a function"):
        pure_callback(3, 1.0)
    with pytest.raises(ArgumentError, match="vmap_method"):
        pure_callback(doubled, 1.0, 1.0, vmap_method="loop")
    with pytest.raises(ArgumentError, match="must have a shape and a dtype, got str 'x'"):
        pure_callback(doubled, "x", 1.0)


def test_shape_and_dtype_compare():
    assert ShapeDtypeStruct((2,), float) == ShapeDtypeStruct(2, np.float64)
    assert ShapeDtypeStruct((2,), float) != ShapeDtypeStruct((2,), np.float32)
    assert len({ShapeDtypeStruct((2,), float), ShapeDtypeStruct(2, np.float64)}) == 1
    assert repr(ShapeDtypeStruct((2, 3), "f4")) == "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"
    assert ShapeDtypeStruct((2, 3), float).ndim == 2
