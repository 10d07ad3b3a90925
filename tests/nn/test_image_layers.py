"""Convolution and pooling layers: the functions with the layer's parameters, and more axes."""

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError

F = fg.nn.functional
nn = fg.nn
RNG = np.random.default_rng(0)


def key():
    return fg.random.key(0)


def shape(n, *lead):
    return (*lead, 4, *(7, 6, 5)[:n])


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2, "padding": 1},
        {"dilation": 2, "groups": 2},
        {"padding": "SAME"},
        {"use_bias": False},
    ],
)
def test_conv_is_the_function(n, options):
    layer = getattr(nn, f"Conv{n}d")(4, 6, 2, **options, key=key())
    x = RNG.normal(size=shape(n, 3))
    options.pop("use_bias", None)
    bias = None if layer.bias is None else layer.bias.ravel()
    expected = getattr(F, f"conv{n}d")(x, layer.weight, bias, **options)
    np.testing.assert_array_equal(layer(x), expected)
    np.testing.assert_allclose(layer(x[0]), expected[0], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(fg.vmap(layer)(x), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(layer(x[None, :, :])[0], expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize(
    "options", [{}, {"stride": 2, "output_padding": 1}, {"groups": 2, "padding": 1, "dilation": 2}]
)
def test_transposed_conv_is_the_function(n, options):
    layer = getattr(nn, f"ConvTranspose{n}d")(4, 6, 3, **options, key=key())
    x = RNG.normal(size=shape(n, 2))
    expected = getattr(F, f"conv_transpose{n}d")(x, layer.weight, layer.bias.ravel(), **options)
    np.testing.assert_array_equal(layer(x), expected)
    np.testing.assert_allclose(layer(x[None])[0], expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("mode", "numpy_mode"),
    [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap"), ("ZEROS", "constant")],
)
@pytest.mark.parametrize("padding", [1, (1, 2), [(0, 1), (2, 1)], "SAME"])
def test_padding_modes(mode, numpy_mode, padding):
    layer = nn.Conv2d(4, 2, 3, padding=padding, padding_mode=mode, key=key())
    x = RNG.normal(size=(2, 4, 5, 6))
    pairs = {1: [(1, 1)] * 2, (1, 2): [(1, 1), (2, 2)], "SAME": [(1, 1)] * 2}
    around = padding if isinstance(padding, list) else pairs[padding]
    padded = np.pad(x, [(0, 0), (0, 0), *around], mode=numpy_mode)
    expected = F.conv2d(padded, layer.weight, layer.bias.ravel())
    np.testing.assert_allclose(layer(x), expected, rtol=1e-12, atol=1e-14)


def test_same_padding_of_strided_windows_is_as_with_zeros():
    x = np.pad(RNG.normal(size=(1, 1, 4)), [(0, 0), (0, 0), (3, 3)])
    zeros = nn.Conv1d(1, 1, 3, stride=2, padding="SAME", key=key())
    edge = nn.Conv1d(1, 1, 3, stride=2, padding="SAME", padding_mode="replicate", key=key())
    np.testing.assert_allclose(zeros(x), edge(x), rtol=1e-12, atol=1e-14)


def test_conv_starts_as_in_pytorch():
    layer = nn.Conv2d(16, 40, 5, groups=4, key=key())
    assert layer.weight.shape == (40, 4, 5, 5)
    assert layer.bias.shape == (40, 1, 1)
    np.testing.assert_allclose(np.abs(layer.weight).max(), 0.1, rtol=1e-2)


def test_conv_gradients_are_a_layer():
    layer = nn.Conv2d(2, 3, 3, dtype=np.float32, key=key())
    x = RNG.normal(size=(4, 2, 5, 5)).astype(np.float32)
    grads = fg.grad(lambda layer: np.sum(layer(x) ** 2))(layer)
    assert grads.weight.shape == layer.weight.shape
    assert grads.bias.dtype == np.float32
    np.testing.assert_allclose(grads.bias, 2 * layer(x).sum((0, 2, 3)).reshape(3, 1, 1), rtol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("options", [{}, {"stride": 1, "padding": 1}, {"ceil_mode": True}])
def test_pool_is_the_function(n, kind, options):
    layer = getattr(nn, f"{kind.title()}Pool{n}d")(2, **options)
    x = RNG.normal(size=shape(n, 3))
    expected = getattr(F, f"{kind}_pool{n}d")(x, 2, **options)
    np.testing.assert_array_equal(layer(x), expected)
    np.testing.assert_array_equal(layer(x[0]), expected[0])
    np.testing.assert_array_equal(layer(x[None])[0], expected)
    np.testing.assert_array_equal(fg.vmap(layer)(x), expected)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_adaptive_pool_is_the_function(n, kind):
    layer = getattr(nn, f"Adaptive{kind.title()}Pool{n}d")(3)
    x = RNG.normal(size=shape(n, 2))
    expected = getattr(F, f"adaptive_{kind}_pool{n}d")(x, (3,) * n)
    np.testing.assert_array_equal(layer(x), expected)
    general = nn.AdaptivePool(3, n, np.max if kind == "max" else np.mean)
    np.testing.assert_array_equal(general(x[None])[0], expected)


def test_pooling_has_no_parameters():
    assert fg.tree.leaves(nn.MaxPool2d(2)) == []


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: nn.Conv2d(3, 2, 3, key=key())(np.ones((2, 4, 5, 5))),
            ShapeError,
            r"Conv2d expects \(\.\.\., 3, height, width\), and was given float64\[2,4,5,5\]",
        ),
        (lambda: nn.Conv1d(3, 2, 3, key=key())(np.ones(3)), ShapeError, "Conv1d expects"),
        (lambda: nn.Conv2d(3, 2, 3, groups=2, key=key()), ArgumentError, "2 groups"),
        (lambda: nn.Conv2d(3, 2, (3, 3, 3), key=key()), ArgumentError, "kernel_size="),
        (lambda: nn.Conv2d(3, 2, 0, key=key()), ArgumentError, "kernel_size=0"),
        (lambda: nn.Conv(4, 3, 2, 3, key=key()), ArgumentError, "num_spatial_dims=4"),
        (lambda: nn.Conv2d(3, 2, 3, padding_mode="x", key=key()), ArgumentError, "padding_mode"),
        (
            lambda: nn.ConvTranspose2d(3, 2, 3, key=key())(np.ones((3, 4))),
            ShapeError,
            "ConvTranspose2d expects",
        ),
        (lambda: nn.MaxPool2d(2)(np.ones((3, 4))), ShapeError, "MaxPool2d expects"),
        (lambda: nn.AdaptivePool(2, 1, np.sum), ArgumentError, r"numpy\.mean or numpy\.max"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
