"""Sequential, MLP, Lambda, Flatten, Dropout and the inference switch."""

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError

F = fg.nn.functional
RNG = np.random.default_rng(0)


def key(seed=0):
    return fg.random.key(seed)


def test_sequential_composes():
    layers = [fg.nn.Linear(3, 4, key=key()), np.tanh, fg.nn.Linear(4, 2, key=key(1))]
    model = fg.nn.Sequential(layers)
    x = RNG.normal(size=(5, 3))
    np.testing.assert_array_equal(model(x), layers[2](np.tanh(layers[0](x))))
    np.testing.assert_array_equal(model[:2](x), np.tanh(layers[0](x)))
    assert list(model) == layers


def test_sequential_of_nothing_is_the_identity():
    assert fg.nn.Sequential([])(3.0) == 3.0


def test_sequential_gives_each_layer_another_key():
    drop = fg.nn.Dropout(0.5)
    once = fg.nn.Sequential([drop])(np.ones(1000), key=key())
    twice = fg.nn.Sequential([drop, drop])(np.ones(1000), key=key())
    assert np.mean(once > 0) == pytest.approx(0.5, abs=0.08)
    assert np.mean(twice > 0) == pytest.approx(0.25, abs=0.07)


def test_functions_in_sequential_get_no_key():
    model = fg.nn.Sequential([np.sin])
    assert model(1.0, key=key()) == np.sin(1.0)


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_mlp_has_depth_hidden_layers(depth):
    model = fg.nn.MLP(3, 2, 5, depth, activation=np.tanh, final_activation=np.exp, key=key())
    sizes = [layer.weight.shape for layer in model.layers]
    assert sizes == [(m, n) for n, m in zip([3, *[5] * depth], [*[5] * depth, 2], strict=True)]
    x = h = RNG.normal(size=(7, 3))
    for layer in model.layers[:-1]:
        h = np.tanh(h @ layer.weight.T + layer.bias)
    last = model.layers[-1]
    np.testing.assert_allclose(model(x), np.exp(h @ last.weight.T + last.bias), rtol=1e-13)


def test_mlp_biases_and_scalars():
    model = fg.nn.MLP("scalar", "scalar", 4, 2, use_bias=False, use_final_bias=True, key=key())
    assert [layer.bias is None for layer in model.layers] == [True, True, False]
    assert model(1.0).shape == ()
    assert model(np.ones(6)).shape == (6,)


def test_mlp_relu_is_the_default():
    model = fg.nn.MLP(3, 3, 4, 1, key=key())
    x = RNG.normal(size=3)
    expected = model.layers[1](np.maximum(model.layers[0](x), 0))
    np.testing.assert_allclose(model(x), expected, rtol=1e-14)


def test_mlp_gradient_per_example():
    model = fg.nn.MLP(3, 1, 4, 2, activation=np.tanh, key=key())
    x = RNG.normal(size=(5, 3))

    def loss(model, x):
        return np.sum(model(x) ** 2)

    each = fg.vmap(fg.grad(loss), in_axes=(None, 0))(model, x)
    whole = fg.grad(loss)(model, x)
    np.testing.assert_allclose(
        np.sum(each.layers[0].weight, axis=0), whole.layers[0].weight, rtol=1e-12
    )


@pytest.mark.parametrize(
    ("layer", "shape", "expected"),
    [
        (fg.nn.Flatten(), (2, 3, 4), (2, 12)),
        (fg.nn.Flatten(0), (2, 3, 4), (24,)),
        (fg.nn.Flatten(-2), (5, 2, 3, 4), (5, 2, 12)),
        (fg.nn.Flatten(1, 2), (5, 2, 3, 4), (5, 6, 4)),
        (fg.nn.Flatten(), (2, 3), (2, 3)),
        (fg.nn.Flatten(), (0, 3, 4), (0, 12)),
    ],
)
def test_flatten(layer, shape, expected):
    x = RNG.normal(size=shape)
    np.testing.assert_array_equal(layer(x), x.reshape(expected))


def test_dropout_keeps_the_mean():
    x = np.full(100_000, 3.0)
    out = fg.nn.Dropout(0.3)(x, key=key())
    np.testing.assert_allclose(np.unique(out), [0, 3 / 0.7])
    assert out.mean() == pytest.approx(3.0, rel=0.01)


def test_dropout_gradient_is_that_of_what_is_kept():
    drop = fg.nn.Dropout(0.5)
    out = drop(np.ones(100), key=key())
    grads = fg.grad(lambda x: np.sum(drop(x, key=key())))(np.ones(100))
    np.testing.assert_array_equal(grads, out)


def test_dropout_with_a_key_for_each_example():
    drop = fg.nn.Dropout(0.5)
    keys = fg.random.split(key(), 4)
    out = fg.vmap(lambda x, k: drop(x, key=k))(np.ones((4, 50)), keys)
    assert len({row.tobytes() for row in out}) == 4


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64])
def test_dropout_keeps_the_dtype(dtype):
    assert fg.nn.Dropout(0.5)(np.ones(5, dtype), key=key()).dtype == dtype


def test_dropout_at_the_ends():
    x = np.ones(5)
    assert fg.nn.Dropout(0.0)(x) is x
    np.testing.assert_array_equal(fg.nn.Dropout(1.0)(x, key=key()), np.zeros(5))


def test_inference_overrides_both_ways():
    x = np.ones(50)
    assert fg.nn.Dropout(0.5)(x, inference=True) is x
    off = fg.nn.Dropout(0.5, inference=True)
    assert off(x) is x
    assert (off(x, key=key(), inference=False) == 0).any()


def test_inference_mode_reaches_every_layer():
    class Net(fg.nn.Module):
        parts: dict
        drop: fg.nn.Dropout

    net = Net({"a": [fg.nn.Dropout(0.1)], "b": fg.nn.Linear(2, 2, key=key())}, fg.nn.Dropout(0.2))
    off = fg.nn.inference_mode(net)
    assert off.parts["a"][0].inference
    assert off.drop.inference
    assert off.parts["b"].weight is net.parts["b"].weight
    assert fg.nn.inference_mode(off, value=False) == net


def test_inference_mode_leaves_properties_alone():
    class Net(fg.nn.Module):
        drop: fg.nn.Dropout

        @property
        def inference(self):
            return self.drop.inference

    assert fg.nn.inference_mode(Net(fg.nn.Dropout(0.5))).inference


def test_an_error_notes_the_place_of_the_layer():
    model = fg.nn.Sequential([np.tanh, fg.nn.Linear(4, 2, key=key())])
    with pytest.raises(ShapeError) as caught:
        model(np.ones(3))
    assert caught.value.__notes__ == ["  layer: layers[1] of Sequential, Linear"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fg.nn.Sequential([np.tanh, 3]), ArgumentError, "layer 1 of Sequential"),
        (lambda: fg.nn.Dropout(1.5), ArgumentError, "from 0 to 1, not 1.5"),
        (lambda: fg.nn.Dropout(0.5)(np.ones(3)), ArgumentError, "needs a key"),
        (lambda: fg.nn.Flatten()(np.ones(3)), ShapeError, "does not fit"),
        (lambda: fg.nn.MLP(2, 2, 3, -1, key=key()), ArgumentError, "depth=-1"),
        (lambda: fg.nn.MLP(2, 2, 3, 1, key=key())(np.ones(3)), ShapeError, r"\(\.\.\., 2\)"),
        (
            lambda: fg.nn.Sequential(fg.nn.Dropout(0.5)),
            ArgumentError,
            "Sequential takes a list of layers, not Dropout",
        ),
        (lambda: fg.nn.MLP(2, 1, 4, 2, "relu", key=key()), ArgumentError, "and was given 'relu'"),
        (lambda: fg.nn.MLP(2, 1, [4, 4], 2, key=key()), ArgumentError, r"width_size=\[4, 4\]"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
