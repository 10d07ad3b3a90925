"""PReLU, weight and spectral normalisation, shared weights."""

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError

nn = fg.nn
RNG = np.random.default_rng(0)


def key(seed=0):
    return fg.random.key(seed)


def test_prelu_learns_its_slope():
    x = np.array([-2.0, 3.0, -1.0])
    grads = fg.grad(lambda layer: np.sum(layer(x)))(nn.PReLU(0.1))
    assert grads.negative_slope == -3.0
    np.testing.assert_allclose(nn.PReLU([0.1, 0.2, 0.3])(x), [-0.2, 3.0, -0.3])


@pytest.mark.parametrize("axis", [0, 1, None])
def test_weight_norm_starts_as_the_layer(axis):
    layer = nn.Linear(3, 2, key=key())
    normed = nn.WeightNorm(layer, axis=axis)
    x = RNG.normal(size=(4, 3))
    np.testing.assert_allclose(normed(x), layer(x), rtol=1e-13)


def test_weight_norm_lengths():
    layer = nn.Linear(3, 2, use_bias=False, key=key())
    normed = nn.WeightNorm(layer).replace(g=np.array([[1.0], [5.0]]))
    rows = normed(np.eye(3)).T
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 5], rtol=1e-13)


def test_weight_norm_gradient_is_across_the_direction():
    normed = nn.WeightNorm(nn.Linear(3, 2, key=key()))
    x = RNG.normal(size=(4, 3))
    grads = fg.grad(lambda layer: np.sum(np.sin(layer(x))))(normed)
    along = np.sum(grads.layer.weight * normed.layer.weight, axis=1)
    np.testing.assert_allclose(along, 0, atol=1e-13)


def test_weight_norm_of_convolutions():
    layer = nn.Conv2d(2, 3, 3, key=key())
    x = RNG.normal(size=(1, 2, 5, 5))
    np.testing.assert_allclose(nn.WeightNorm(layer)(x), layer(x), rtol=1e-12, atol=1e-14)


def spectral(make_layer, **options):
    return nn.make_with_state(lambda: nn.SpectralNorm(make_layer(), **options, key=key(1)))()


def test_spectral_norm_makes_the_norm_one():
    layer, state = spectral(
        lambda: nn.Linear(4, 3, use_bias=False, key=key()), num_power_iterations=100
    )
    out, _ = layer(np.eye(4), state)
    assert np.linalg.norm(out, 2) == pytest.approx(1, rel=1e-9)


def test_spectral_norm_steps_are_kept_in_the_state():
    layer, state = spectral(lambda: nn.Linear(4, 3, key=key()))
    _, after = layer(np.ones(4), state)
    assert not np.array_equal(state.get(layer.vectors)[0], after.get(layer.vectors)[0])
    _, same = nn.inference_mode(layer)(np.ones(4), state)
    assert same == state


def test_spectral_norm_gradient_by_differences():
    layer, state = spectral(lambda: nn.Linear(3, 2, key=key()), num_power_iterations=0)

    def loss(weight):
        out, _ = layer.replace(layer=layer.layer.replace(weight=weight))(np.ones(3), state)
        return np.sum(np.sin(out))

    fg.testing.check_grads(loss, (layer.layer.weight,), order=2)


def test_shared_weights_have_one_gradient():
    model = {"embed": RNG.normal(size=(5, 2)), "head": RNG.normal(size=(2, 5))}
    tied = nn.Shared(model, lambda m: m["head"], lambda m: m["embed"].T)
    np.testing.assert_array_equal(tied()["head"], model["embed"].T)

    def loss(tied):
        whole = tied()
        return np.sum(np.sin(whole["embed"] @ whole["head"]))

    grads = fg.grad(loss)(tied)
    assert grads.pytree["head"] is None
    np.testing.assert_allclose(
        grads.pytree["embed"],
        fg.grad(lambda e: np.sum(np.sin(e @ e.T)))(model["embed"]),
        rtol=1e-13,
    )


def test_several_shared_parts():
    tied = nn.Shared([1.0, 2.0, 3.0], lambda t: (t[1], t[2]), lambda t: (t[0], 10 * t[0]))
    assert tied() == [1.0, 1.0, 10.0]
    assert fg.tree.leaves(tied) == [1.0]


def test_weight_norm_counts_axes_from_the_end():
    layer = nn.Linear(3, 2, key=key())
    assert nn.WeightNorm(layer, axis=-1).g.shape == (1, 3)
    assert nn.WeightNorm(layer, axis=-1) == nn.WeightNorm(layer, axis=1)


def test_prelu_is_of_the_dtype_asked_for():
    layer = nn.PReLU(dtype=np.float32)
    out = layer(np.array([-2.0, 3.0], np.float32))
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, [-0.5, 3.0])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nn.WeightNorm(nn.Identity()), ArgumentError, "has no weight 'weight'"),
        (lambda: nn.SpectralNorm(np.tanh, key=key()), ArgumentError, "for SpectralNorm"),
        (
            lambda: spectral(lambda: nn.Linear(3, 2, key=key()))[0](np.ones(3)),
            ArgumentError,
            "needs its state",
        ),
        (
            lambda: nn.Shared([np.ones(2), np.ones(3)], lambda t: t[0], lambda t: t[1]),
            ShapeError,
            r"float64\[3\] cannot stand for float64\[2\]",
        ),
        (
            lambda: nn.WeightNorm(nn.Linear(3, 2, key=key()), axis=2),
            ArgumentError,
            "axis 2 is none",
        ),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
