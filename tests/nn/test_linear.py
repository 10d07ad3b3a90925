"""Layers of matrices: values by hand, any number of leading axes, derivatives, bad input."""

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import ArgumentError, DtypeError, ShapeError

RNG = np.random.default_rng(0)


def key():
    return fg.random.key(0)


@pytest.mark.parametrize("lead", [(), (4,), (2, 3), (0,)])
def test_linear_is_a_product_plus_bias(lead):
    layer = fg.nn.Linear(3, 2, key=key())
    x = RNG.normal(size=(*lead, 3))
    expected = np.einsum("...i,oi->...o", x, layer.weight) + layer.bias
    np.testing.assert_allclose(layer(x), expected, rtol=1e-14)
    if lead == (4,):
        np.testing.assert_allclose(fg.vmap(layer)(x), expected, rtol=1e-14)


def test_linear_without_bias():
    layer = fg.nn.Linear(3, 2, use_bias=False, key=key())
    assert layer.bias is None
    np.testing.assert_array_equal(layer(np.eye(3)), layer.weight.T)


def test_linear_scalars():
    down, up = fg.nn.Linear(3, "scalar", key=key()), fg.nn.Linear("scalar", 3, key=key())
    assert down(np.ones(3)).shape == ()
    assert down(np.ones((5, 3))).shape == (5,)
    np.testing.assert_allclose(up(2.0), 2 * up.weight[:, 0] + up.bias)
    assert up(np.ones(5)).shape == (5, 3)


def test_linear_starts_as_in_equinox():
    layer = fg.nn.Linear(400, 300, dtype=np.float32, key=key())
    assert layer.weight.dtype == layer.bias.dtype == np.float32
    assert np.abs(layer.weight).max() <= 0.05
    assert layer.weight.var() == pytest.approx(0.05**2 / 3, rel=0.02)
    assert np.abs(layer.bias).max() <= 0.05


def test_linear_gradients():
    layer = fg.nn.Linear(3, 2, key=key())
    x = RNG.normal(size=(5, 3))
    grads = fg.grad(lambda layer: np.sum(layer(x) ** 2))(layer)
    residual = 2 * (x @ layer.weight.T + layer.bias)
    np.testing.assert_allclose(grads.weight, residual.T @ x, rtol=1e-13)
    np.testing.assert_allclose(grads.bias, residual.sum(0), rtol=1e-13)


@pytest.mark.parametrize("lead", [(), (4,), (2, 3)])
def test_bilinear_is_a_form_for_each_output(lead):
    layer = fg.nn.Bilinear(3, 4, 2, key=key())
    a, b = RNG.normal(size=(*lead, 3)), RNG.normal(size=(*lead, 4))
    expected = np.einsum("...i,oij,...j->...o", a, layer.weight, b) + layer.bias
    np.testing.assert_allclose(layer(a, b), expected, rtol=1e-13)


def test_bilinear_arguments_broadcast():
    layer = fg.nn.Bilinear(3, 4, 2, key=key())
    a, b = RNG.normal(size=(5, 1, 3)), RNG.normal(size=(6, 4))
    expected = np.einsum("ai,oij,bj->abo", a[:, 0], layer.weight, b) + layer.bias
    np.testing.assert_allclose(layer(a, b), expected, rtol=1e-13)


def test_embedding_takes_rows():
    table = np.arange(12.0).reshape(4, 3)
    layer = fg.nn.Embedding(weight=table)
    np.testing.assert_array_equal(layer(2), table[2])
    np.testing.assert_array_equal(layer(np.array([[3, 0]])), table[[[3, 0]]])
    np.testing.assert_array_equal(fg.vmap(layer)(np.array([1, 2])), table[[1, 2]])


def test_embedding_takes_a_row_by_a_number_of_python_under_jit():
    table = np.arange(6.0).reshape(3, 2)
    row = fg.jit(fg.nn.Embedding(weight=table))
    np.testing.assert_array_equal(row(2), [4.0, 5.0])
    np.testing.assert_array_equal(row(0), [0.0, 1.0])


def test_embedding_gradient_counts_uses():
    layer = fg.nn.Embedding(4, 2, key=key())
    grads = fg.grad(lambda layer: np.sum(layer(np.array([1, 1, 3]))))(layer)
    np.testing.assert_array_equal(grads.weight, [[0, 0], [2, 2], [0, 0], [1, 1]])


def test_embedding_padding_is_zero_and_stays_so():
    layer = fg.nn.Embedding(4, 2, padding_idx=1, key=key())
    np.testing.assert_array_equal(layer(np.array([1, 0]))[0], [0, 0])
    grads = fg.grad(lambda layer: np.sum(layer(np.array([1, 2, 1]))))(layer)
    np.testing.assert_array_equal(grads.weight, [[0, 0], [0, 0], [1, 1], [0, 0]])


def test_embedding_is_standard_normal():
    weight = fg.nn.Embedding(200, 50, key=key()).weight
    assert weight.std() == pytest.approx(1, rel=0.03)


def test_identity():
    x = np.ones(3)
    assert fg.nn.Identity("anything")(x) is x


def test_lists_are_arrays():
    layer = fg.nn.Linear(2, 3, key=key())
    np.testing.assert_array_equal(layer([[1.0, 2.0]]), layer(np.array([[1.0, 2.0]])))
    form = fg.nn.Bilinear(2, 2, 3, key=key())
    np.testing.assert_array_equal(
        form([1.0, 2.0], [3, 4]), form(np.array([1.0, 2]), np.array([3, 4]))
    )


def test_a_number_is_scaled():
    layer = fg.nn.Linear("scalar", "scalar", key=key())
    assert layer(3.0) == 3 * layer.weight[0, 0] + layer.bias[0]


def test_another_dtype_of_the_argument_is_promoted():
    layer = fg.nn.Linear(2, 3, key=key())
    x = np.array([[1.0, 2.0]])
    for kind in (np.float32, np.int64, np.complex128):
        out = layer(x.astype(kind))
        assert out.dtype == np.result_type(kind, np.float64)
        np.testing.assert_allclose(out, layer(x), rtol=1e-12)


def test_many_weights_under_vmap():
    layers = fg.vmap(lambda k: fg.nn.Linear(2, 3, key=k))(fg.random.split(key(), 4))
    x = RNG.normal(size=(5, 2))
    out = fg.vmap(lambda layer: layer(x))(layers)
    np.testing.assert_allclose(out[2], x @ layers.weight[2].T + layers.bias[2], rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: fg.nn.Linear(3, 2, key=key())(np.ones((3, 4))),
            ShapeError,
            r"Linear expects \(..., 3\), and was given float64\[3,4\]",
        ),
        (lambda: fg.nn.Linear(3, 2, key=key())(np.float64(1)), ShapeError, "Linear expects"),
        (lambda: fg.nn.Linear(-3, 2, key=key()), ArgumentError, "in_features=-3"),
        (lambda: fg.nn.Linear(3, 2.5, key=key()), ArgumentError, "out_features=2.5"),
        (
            lambda: fg.nn.Bilinear(3, 4, 2, key=key())(np.ones(3), np.ones(3)),
            ShapeError,
            r"Bilinear expects \(..., 4\)",
        ),
        (lambda: fg.nn.Embedding(3, 2), ArgumentError, "two sizes and a key"),
        (lambda: fg.nn.Embedding(weight=np.ones(3)), ShapeError, "2 axes"),
        (lambda: fg.nn.Embedding(3, 2, key=key())(1.0), DtypeError, "integers"),
        (
            lambda: fg.nn.Embedding(3, 2, key=key())(3),
            IndexError,
            "3 is none of the 3 rows of an Embedding",
        ),
        (lambda: fg.nn.Embedding(3, 2, key=key())(np.array([0, -1])), IndexError, "-1 is none"),
        (lambda: fg.nn.Embedding(3, 2, padding_idx=3, key=key()), ArgumentError, "padding_idx=3"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
