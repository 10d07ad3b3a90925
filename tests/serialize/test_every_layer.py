"""Every class of `fg.nn` in a file and out of it, pickled, and copied."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import nn, random

KEYS = iter(random.split(random.key(0), 40))


def with_key(make, *args, **options):
    return make(*args, **options, key=next(KEYS))


def head(pair):
    return pair[1].weight


def embedding(pair):
    return pair[0].weight


MODELS = {
    "AdaptiveAvgPool1d": nn.AdaptiveAvgPool1d(2),
    "AdaptiveAvgPool2d": nn.AdaptiveAvgPool2d((2, 3)),
    "AdaptiveAvgPool3d": nn.AdaptiveAvgPool3d(2),
    "AdaptiveMaxPool1d": nn.AdaptiveMaxPool1d(2),
    "AdaptiveMaxPool2d": nn.AdaptiveMaxPool2d((2, 3)),
    "AdaptiveMaxPool3d": nn.AdaptiveMaxPool3d(2),
    "AdaptivePool": nn.AdaptivePool(2, 1, np.mean),
    "AvgPool1d": nn.AvgPool1d(2),
    "AvgPool2d": nn.AvgPool2d(2),
    "AvgPool3d": nn.AvgPool3d(2),
    "BatchNorm": nn.make_with_state(nn.BatchNorm)(3, "batch"),
    "Bilinear": with_key(nn.Bilinear, 2, 3, 4),
    "Conv": with_key(nn.Conv, 2, 2, 3, 3),
    "Conv1d": with_key(nn.Conv1d, 2, 3, 3),
    "Conv2d": with_key(nn.Conv2d, 2, 4, 3, padding="SAME", groups=2),
    "Conv3d": with_key(nn.Conv3d, 2, 3, 3),
    "ConvTranspose": with_key(nn.ConvTranspose, 2, 2, 3, 3),
    "ConvTranspose1d": with_key(nn.ConvTranspose1d, 2, 3, 3),
    "ConvTranspose2d": with_key(nn.ConvTranspose2d, 2, 3, 3),
    "ConvTranspose3d": with_key(nn.ConvTranspose3d, 2, 3, 3),
    "Dropout": nn.Dropout(0.5),
    "Embedding": with_key(nn.Embedding, 4, 3),
    "Flatten": nn.Flatten(),
    "GRU": with_key(nn.GRU, 3, 4),
    "GRUCell": with_key(nn.GRUCell, 3, 4),
    "GroupNorm": nn.GroupNorm(2, 4),
    "Identity": nn.Identity(),
    "InstanceNorm": nn.InstanceNorm(4),
    "KeyValueCache": nn.KeyValueCache(np.ones((2, 3)), np.zeros((2, 3))),
    "LSTM": with_key(nn.LSTM, 3, 4),
    "LSTMCell": with_key(nn.LSTMCell, 3, 4),
    "Lambda": nn.Lambda(np.tanh),
    "LayerNorm": nn.LayerNorm(3),
    "Linear": with_key(nn.Linear, 3, "scalar", dtype=np.float32),
    "MLP": with_key(nn.MLP, 3, 2, 4, 2),
    "MaxPool1d": nn.MaxPool1d(2),
    "MaxPool2d": nn.MaxPool2d(2),
    "MaxPool3d": nn.MaxPool3d(2),
    "MultiheadAttention": with_key(nn.MultiheadAttention, 2, 4),
    "PReLU": nn.PReLU(),
    "Pool": nn.Pool(np.max, 1),
    "RMSNorm": nn.RMSNorm(3),
    "RNN": with_key(nn.RNN, 3, 4),
    "RNNCell": with_key(nn.RNNCell, 3, 4),
    "RotaryPositionalEmbedding": nn.RotaryPositionalEmbedding(4),
    "RunningStats": nn.RunningStats(np.ones(2), np.ones(2), np.array(3)),
    "Sequential": nn.inference_mode(nn.Sequential([nn.Lambda(np.tanh), nn.Dropout(0.1)])),
    "Shared": nn.Shared(
        (with_key(nn.Embedding, 4, 3), with_key(nn.Linear, 3, 4, use_bias=False)), head, embedding
    ),
    "SpectralNorm": with_key(nn.make_with_state(nn.SpectralNorm), nn.Linear(3, 3, key=next(KEYS))),
    "TransformerDecoder": with_key(nn.TransformerDecoder, 2, 2, 4),
    "TransformerDecoderBlock": with_key(nn.TransformerDecoderBlock, 2, 4, memory_size=3),
    "TransformerEncoder": with_key(nn.TransformerEncoder, 2, 2, 4),
    "TransformerEncoderBlock": with_key(nn.TransformerEncoderBlock, 2, 4, rotary=True),
    "WeightNorm": nn.WeightNorm(with_key(nn.Linear, 3, 3)),
}
INNER = {"Module", "State", "StateIndex"}  # the base, and what is in the pairs above


def saved(model, path):
    fg.save(path, model)
    return fg.load(path, template=model)


def pickled(model, path):
    return pickle.loads(pickle.dumps(model))


def deep_copied(model, path):
    return copy.deepcopy(model)


def test_every_class_is_tried():
    classes = {name for name in nn.__all__ if inspect.isclass(getattr(nn, name))}
    assert set(MODELS) | INNER == classes


@pytest.mark.parametrize("way", [saved, pickled, deep_copied])
@pytest.mark.parametrize("name", MODELS)
def test_layer_comes_back(name, way, tmp_path):
    model = MODELS[name]
    found = way(model, tmp_path / "model.npz")
    assert fg.tree.structure(found) == fg.tree.structure(model)
    assert fg.tree.same(found, model)
    assert repr(found) == repr(model)
    mine = [leaf for leaf in fg.tree.leaves(model) if isinstance(leaf, np.ndarray)]
    others = [leaf for leaf in fg.tree.leaves(found) if isinstance(leaf, np.ndarray)]
    assert not any(np.shares_memory(a, b) for a, b in zip(mine, others, strict=True))
