"""Weights of PyTorch in models of funcgrad: the outputs are PyTorch's.

The files hold the ``state_dict`` of the layers named, in float32, written by the safetensors
package with torch 2.13; the outputs are what these gave there, in evaluation mode.
"""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad import nn
from funcgrad.errors import TreeMismatchError
from funcgrad.serialize import torch_names

HERE = Path(__file__).parent
F32 = np.float32
RELU = nn.functional.relu


def key(seed=0):
    return fg.random.key(seed)


class Net(nn.Module):
    """Convolution, batch normalisation, a two-layer LSTM in both directions, and a head."""

    features: nn.Sequential
    lstm: nn.LSTM
    head: nn.Sequential

    def __init__(self, dtype=F32):
        k1, k2, k3, k4 = fg.random.split(key(), 4)
        self.features = nn.Sequential(
            [
                nn.Conv2d(1, 2, 3, dtype=dtype, key=k1),
                nn.BatchNorm(2, dtype=dtype),
                RELU,
                nn.MaxPool2d(2, 2),
            ]
        )
        self.lstm = nn.LSTM(3, 2, num_layers=2, bidirectional=True, dtype=dtype, key=k2)
        self.head = nn.Sequential(
            [nn.Linear(4, 3, dtype=dtype, key=k3), np.tanh, nn.Linear(3, 2, dtype=dtype, key=k4)]
        )

    def __call__(self, x, state):
        x, state = self.features(x, state)
        x, _ = self.lstm(np.reshape(x, (x.shape[0], -1, x.shape[-1])))
        return self.head(x[:, -1]), state


def loaded(name, template, **options):
    names = torch_names(template, **options)
    return fg.load(HERE / f"{name}.safetensors", template, names=names)


def waves(length, size):
    return np.cos(np.arange(2 * length * size, dtype=F32).reshape(2, length, size))


def test_network_gives_what_it_gave_in_pytorch():
    model, state = loaded("net", nn.make_with_state(Net)())
    x = np.sin(np.arange(128, dtype=F32).reshape(2, 1, 8, 8))
    out, _ = nn.inference_mode(model)(x, state)
    want = [
        [-0.038999677, -0.43070543],
        [-0.042399794, -0.43142509],
    ]
    assert_allclose(out, want, rtol=0, atol=1e-6)


def test_statistics_of_batch_normalisation_are_in_the_state():
    model, state = loaded("net", nn.make_with_state(Net)())
    stored = fg.load(HERE / "net.safetensors")
    stats = state.get(model.features[1].running)
    assert_array_equal(stats.variance, stored["features.1.running_var"])
    assert stats.count == 2


def test_two_biases_of_an_lstm_are_added():
    model, _ = loaded("net", nn.make_with_state(Net)())
    stored = fg.load(HERE / "net.safetensors")
    want = stored["lstm.bias_ih_l1_reverse"] + stored["lstm.bias_hh_l1_reverse"]
    assert_array_equal(model.lstm.cells[1][1].bias, want)


ALL = {f"use_{name}_bias": True for name in ("query", "key", "value", "output")}
LAYERS = {
    "attention": (
        nn.MultiheadAttention(2, 4, dtype=F32, key=key(), **ALL),
        lambda layer: layer(waves(3, 4), waves(3, 4), waves(3, 4)),
        [
            [
                [-1.8461015, 0.94548655, 0.8437373, -1.4240412],
                [-2.3344369, 1.3815536, 1.3655617, -1.6719003],
                [-1.5095651, 0.52248669, 0.38627476, -0.91401917],
            ],
            [
                [-2.203414, 1.1808722, 1.1407528, -1.6300642],
                [-2.1681046, 1.1131566, 1.0900695, -1.4070182],
                [-1.4909041, 0.60140765, 0.44516072, -1.0162243],
            ],
        ],
    ),
    "attention_sizes": (
        nn.MultiheadAttention(2, 4, 3, 2, dtype=F32, key=key(), qk_size=2, vo_size=2, **ALL),
        lambda layer: layer(waves(3, 4), waves(5, 3), waves(5, 2)),
        [
            [
                [0.33984661, 0.033954963, 0.012944818, 0.42836565],
                [0.32870257, 0.028762266, 0.055700958, 0.45138609],
                [0.29274988, 0.0080940127, 0.090903163, 0.44624779],
            ],
            [
                [0.40842032, 0.032386512, 0.10897094, 0.45835894],
                [0.43048966, 0.056794271, 0.083499074, 0.47200105],
                [0.43748307, 0.041681036, 0.098453194, 0.45498064],
            ],
        ],
    ),
    "gru": (
        nn.GRU(2, 3, dtype=F32, key=key()),
        lambda layer: layer(waves(3, 2))[0],
        [
            [
                [-0.031746864, -0.020149885, -0.35487482],
                [-0.099535741, 0.095560744, 0.15557435],
                [-0.11075158, 0.48999384, 0.0059966743],
            ],
            [
                [-0.038931839, 0.065005958, -0.39728093],
                [-0.10732108, 0.030921059, 0.11586294],
                [-0.1054167, 0.47167104, 0.10436187],
            ],
        ],
    ),
    "encoder": (
        nn.TransformerEncoder(2, 2, 4, dtype=F32, mlp_size=3, activation=RELU, key=key()),
        lambda layer: layer(waves(3, 4)),
        [
            [
                [0.20409168, 1.1129534, 0.38166428, -0.066037714],
                [0.19727568, 1.0186863, 0.43051824, 0.3005223],
                [0.20430149, 0.96789926, 0.41657901, 0.54066753],
            ],
            [
                [0.21047574, 1.1392423, 0.32635295, -0.17365631],
                [0.21175511, 0.9519617, 0.4467186, 0.6878475],
                [0.19754003, 1.0341901, 0.47138405, 0.2796534],
            ],
        ],
    ),
    "decoder": (
        nn.TransformerDecoder(1, 2, 4, dtype=F32, mlp_size=3, activation=RELU, key=key()),
        lambda layer: layer(waves(3, 4), waves(2, 4), is_causal=False),
        [
            [
                [-0.55538905, 0.042905297, 0.39286023, -0.68971694],
                [-0.50091034, -0.098217964, 0.33938506, -1.5380946],
                [-0.53080928, -0.1196753, 0.36951506, -1.8921293],
            ],
            [
                [-0.53596878, 0.052601103, 0.37265119, -0.48121765],
                [-0.50589144, -0.10757109, 0.34460947, -1.6482016],
                [-0.56494677, -0.032778431, 0.40637457, -1.4412245],
            ],
        ],
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layer_gives_what_it_gave_in_pytorch(name):
    template, run, want = LAYERS[name]
    assert_allclose(run(loaded(name, template)), want, rtol=0, atol=2e-6)


def test_cell_is_named_without_a_layer():
    cell = nn.LSTMCell(3, 2, dtype=F32, key=key())
    assert torch_names(cell)[".weight_hh"] == "weight_hh"


def test_prefix_stands_before_each_name():
    model = nn.Sequential([nn.Linear(2, 3, key=key())])
    assert set(torch_names(model, prefix="model.").values()) == {"model.0.weight", "model.0.bias"}


def test_own_modules_are_named_by_their_fields():
    class Block(nn.Module):
        fc: nn.Linear
        layers: list

    model = Block(nn.Linear(2, 3, key=key()), [nn.LayerNorm(3)])
    assert set(torch_names(model).values()) == {
        "fc.weight",
        "fc.bias",
        "layers.0.weight",
        "layers.0.bias",
    }


def test_functions_have_no_names():
    assert set(torch_names(nn.Sequential([np.tanh]))) == set()


def test_model_of_float64_is_told_of_the_dtype():
    with pytest.raises(TreeMismatchError, match=r"float32\[2,1,3,3\].*float64.*\n.*dtype="):
        loaded("net", nn.make_with_state(Net)(np.float64))


def test_weights_that_are_missing_are_named():
    layer = nn.GRU(2, 3, num_layers=2, dtype=F32, key=key())
    with pytest.raises(TreeMismatchError) as caught:
        loaded("gru", layer)
    assert ".cells[1][0].weight_ih ('weight_ih_l1' there)" in caught.value.where


def test_weights_that_are_left_over_are_named():
    with pytest.raises(TreeMismatchError, match="only in the file: bias_hh_l0, bias_ih_l0"):
        fg.load(
            HERE / "gru.safetensors",
            {"w": np.zeros((9, 2), F32), "v": np.zeros((9, 3), F32)},
            names={"['w']": "weight_ih_l0", "['v']": "weight_hh_l0"},
        )
