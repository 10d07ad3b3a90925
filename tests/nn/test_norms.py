"""Normalisation layers: values by NumPy, derivatives, state, bad input."""

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError

RNG = np.random.default_rng(0)


def by_hand(x, axes, eps=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


@pytest.mark.parametrize("lead", [(), (5,), (2, 3)])
@pytest.mark.parametrize("shape", [4, (4,), (3, 4)])
def test_layer_norm(lead, shape):
    layer = fg.nn.LayerNorm(shape)
    x = RNG.normal(3, 2, size=(*lead, *layer.shape))
    axes = tuple(range(len(lead), x.ndim))
    np.testing.assert_allclose(layer(x), by_hand(x, axes), rtol=1e-12)


def test_layer_norm_scales_and_shifts():
    layer = fg.nn.LayerNorm(3).replace(weight=np.array([1.0, 2, 3]), bias=np.array([4.0, 5, 6]))
    x = RNG.normal(size=(2, 3))
    np.testing.assert_allclose(layer(x), by_hand(x, 1) * [1, 2, 3] + [4, 5, 6], rtol=1e-12)


def test_layer_norm_without_parameters():
    layer = fg.nn.LayerNorm(3, use_weight=False, use_bias=False)
    assert fg.tree.leaves(layer) == []
    x = RNG.normal(size=3)
    np.testing.assert_allclose(layer(x), by_hand(x, 0), rtol=1e-12)


def test_layer_norm_far_from_zero():
    x = np.array([1e8, 1e8 + 1, 1e8 + 2])
    np.testing.assert_allclose(fg.nn.LayerNorm(3)(x), by_hand(x - 1e8, 0), rtol=1e-10)


def test_layer_norm_of_equal_values_is_flat():
    grads = fg.grad(lambda x: fg.nn.LayerNorm(3)(x)[0])(np.ones(3))
    np.testing.assert_allclose(grads, np.array([2, -1, -1]) / 3 / np.sqrt(1e-5), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_narrow_floats_stay(dtype):
    x = RNG.normal(size=(3, 4)).astype(dtype)
    layer = fg.nn.LayerNorm(4, dtype=dtype)
    assert layer(x).dtype == dtype
    np.testing.assert_allclose(layer(x), by_hand(x.astype(float), 1), atol=5 * np.finfo(dtype).eps)


def test_rms_norm():
    layer = fg.nn.RMSNorm(4).replace(weight=np.arange(4.0))
    x = RNG.normal(size=(3, 4))
    expected = x / np.sqrt(np.mean(x**2, axis=1, keepdims=True) + 1e-5) * np.arange(4)
    np.testing.assert_allclose(layer(x), expected, rtol=1e-13)
    assert layer.bias is None


@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("spatial", [(), (4,), (3, 4)])
def test_group_norm(groups, spatial):
    layer = fg.nn.GroupNorm(groups, 6)
    x = RNG.normal(size=(2, 6, *spatial))
    grouped = x.reshape(2, groups, -1)
    expected = by_hand(grouped, 2).reshape(x.shape)
    np.testing.assert_allclose(layer(x), expected, rtol=1e-12)


def test_group_norm_scales_channels():
    layer = fg.nn.GroupNorm(1, 2, channel_axis=-2)
    layer = layer.replace(weight=np.array([1.0, 10.0]), bias=np.array([0.0, 5.0]))
    x = RNG.normal(size=(2, 3))
    expected = by_hand(x, (0, 1)) * [[1], [10]] + [[0], [5]]
    np.testing.assert_allclose(layer(x), expected, rtol=1e-12)
    np.testing.assert_allclose(fg.vmap(layer)(x[None]), expected[None], rtol=1e-12)


def test_instance_norm_is_of_each_channel():
    x = RNG.normal(size=(2, 3, 4, 5))
    np.testing.assert_allclose(fg.nn.InstanceNorm(3)(x), by_hand(x, (2, 3)), rtol=1e-12)


def batch_norm(*args, **options):
    return fg.nn.make_with_state(fg.nn.BatchNorm)(*args, **options)


@pytest.mark.parametrize("shape", [(8, 3), (8, 3, 4), (8, 3, 4, 5)])
def test_batch_norm_normalises_over_the_batch(shape):
    norm, state = batch_norm(3)
    x = RNG.normal(2, 3, size=shape)
    out, state = norm(x, state)
    axes = (0, *range(2, x.ndim))
    np.testing.assert_allclose(out, by_hand(x, axes), rtol=1e-12)
    running = state.get(norm.running)
    np.testing.assert_allclose(running.mean, x.mean(axes), rtol=1e-12)
    np.testing.assert_allclose(running.variance, x.var(axes), rtol=1e-12)


def test_batch_norm_remembers_a_weighted_mean():
    norm, state = batch_norm(1, momentum=0.5)
    for value in (1.0, 2.0, 4.0):
        _, state = norm(np.full((2, 1), value), state)
    # The weights are 1/4, 1/2 and 1, over their sum.
    expected = (0.25 * 1 + 0.5 * 2 + 1 * 4) / 1.75
    np.testing.assert_allclose(state.get(norm.running).mean, [expected], rtol=1e-14)
    assert state.get(norm.running).count == 3


def test_batch_norm_in_inference_uses_what_it_remembers():
    norm, state = batch_norm(2)
    x = RNG.normal(size=(50, 2))
    _, state = norm(x, state)
    y = RNG.normal(size=(3, 2))
    out, same = fg.nn.inference_mode(norm)(y, state)
    np.testing.assert_allclose(out, (y - x.mean(0)) / np.sqrt(x.var(0) + 1e-5), rtol=1e-12)
    assert same == state


def test_batch_norm_under_a_named_vmap_is_that_of_the_batch():
    whole, state = batch_norm(3)
    named, named_state = batch_norm(3, axis_name="batch")
    x = RNG.normal(size=(6, 3, 4))
    expected, state = whole(x, state)
    out, named_state = fg.vmap(named, in_axes=(0, None), out_axes=(0, None), axis_name="batch")(
        x, named_state
    )
    np.testing.assert_allclose(out, expected, rtol=1e-11)
    np.testing.assert_allclose(
        named_state.get(named.running).mean, state.get(whole.running).mean, rtol=1e-12
    )


def test_batch_norm_gradient_by_differences():
    norm, state = batch_norm(2)
    weights = RNG.normal(size=(5, 2))

    def loss(x):
        out, _ = norm(x, state)
        return np.sum(out * weights)

    fg.testing.check_grads(loss, (RNG.normal(size=(5, 2)),), order=2)


def test_state_comes_out_of_grad_as_aux():
    norm, state = batch_norm(2)
    x = RNG.normal(size=(5, 2))

    def loss(norm, state):
        out, state = norm(x, state)
        return np.sum(out**2), state

    grads, new = fg.grad(loss, has_aux=True)(norm, state)
    np.testing.assert_allclose(new.get(norm.running).mean, x.mean(0))
    assert isinstance(grads, fg.nn.BatchNorm)
    assert grads.weight.shape == (2,)


def test_batch_norm_in_sequential():
    def make(key):
        return fg.nn.Sequential(
            [fg.nn.Linear(3, 2, key=key), fg.nn.BatchNorm(2), np.tanh, fg.nn.BatchNorm(2)]
        )

    model, state = fg.nn.make_with_state(make)(fg.random.key(0))
    x = RNG.normal(size=(5, 3))
    out, state = model(x, state)
    h = by_hand(x @ model[0].weight.T + model[0].bias, 0)
    np.testing.assert_allclose(out, by_hand(np.tanh(h), 0), rtol=1e-11)
    assert [state.get(model[i].running).count for i in (1, 3)] == [1, 1]


def test_a_layer_used_twice_has_one_state():
    def make():
        norm = fg.nn.BatchNorm(2)
        return fg.nn.Sequential([norm, norm])

    model, state = fg.nn.make_with_state(make)()
    assert len(state.values) == 1
    _, state = model(RNG.normal(size=(4, 2)), state)
    assert state.get(model[0].running).count == 2


def test_parameters_and_state_are_float32_if_asked():
    norm, state = batch_norm(2, dtype=np.float32)
    out, state = norm(RNG.normal(size=(4, 2)).astype(np.float32), state)
    assert out.dtype == np.float32
    assert state.get(norm.running).mean.dtype == np.float32


def test_an_empty_batch_is_not_remembered():
    layer, state = batch_norm(3)
    out, after = layer(np.ones((0, 3, 4)), state)
    assert out.shape == (0, 3, 4)
    assert after == state


@pytest.mark.parametrize(
    "layer", [fg.nn.LayerNorm(2), fg.nn.RMSNorm(2), fg.nn.GroupNorm(1, 2), fg.nn.InstanceNorm(2)]
)
def test_lists_are_arrays(layer):
    x = [[[1.0, 3.0], [5.0, 4.0]]]
    np.testing.assert_array_equal(layer(x), layer(np.array(x)))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: fg.nn.LayerNorm(3)(np.ones((3, 4))),
            ShapeError,
            r"LayerNorm expects \(\.\.\., 3\)",
        ),
        (lambda: fg.nn.LayerNorm((2, 3))(np.ones(3)), ShapeError, r"\(\.\.\., 2, 3\)"),
        (lambda: fg.nn.RMSNorm(3)(np.float64(1)), ShapeError, "RMSNorm expects"),
        (lambda: fg.nn.GroupNorm(4, 6), ArgumentError, "6 channels cannot be put into 4 groups"),
        (lambda: fg.nn.GroupNorm(2, 4)(np.ones((2, 3))), ShapeError, "4 channels along axis 1"),
        (lambda: fg.nn.InstanceNorm(3)(np.ones(3)), ShapeError, "InstanceNorm expects 3 channels"),
        (lambda: batch_norm(3)[0](np.ones((2, 3))), ArgumentError, "needs its state"),
        (lambda: batch_norm(3)[0](np.ones((3, 2)), batch_norm(3)[1]), ShapeError, "3 channels"),
        (
            lambda: fg.nn.BatchNorm(3)(np.ones((2, 3)), batch_norm(3)[1]),
            ArgumentError,
            "make_with_state",
        ),
        (lambda: fg.nn.LayerNorm(4.0), ArgumentError, "LayerNorm cannot have shape=4.0"),
        (lambda: fg.nn.RMSNorm((2, -1)), ArgumentError, "RMSNorm cannot have shape=-1"),
        (lambda: fg.nn.GroupNorm(0, 6), ArgumentError, "groups=0"),
        (lambda: fg.nn.BatchNorm(-1), ArgumentError, "BatchNorm cannot have input_size=-1"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
