"""Neural networks: modules, layers, activation functions, losses and initializers.

>>> import funcgrad as fg
>>> print(fg.nn.functional.relu(-1.0))
0.0
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from funcgrad.nn import functional, initializers, losses
    from funcgrad.nn.adaptive_pools import (
        AdaptiveAvgPool1d,
        AdaptiveAvgPool2d,
        AdaptiveAvgPool3d,
        AdaptiveMaxPool1d,
        AdaptiveMaxPool2d,
        AdaptiveMaxPool3d,
        AdaptivePool,
    )
    from funcgrad.nn.attention import KeyValueCache, MultiheadAttention, RotaryPositionalEmbedding
    from funcgrad.nn.cells import GRUCell, LSTMCell, RNNCell
    from funcgrad.nn.containers import MLP, Dropout, Flatten, Lambda, Sequential, inference_mode
    from funcgrad.nn.convolutions import (
        Conv,
        Conv1d,
        Conv2d,
        Conv3d,
        ConvTranspose,
        ConvTranspose1d,
        ConvTranspose2d,
        ConvTranspose3d,
    )
    from funcgrad.nn.linear import Bilinear, Embedding, Identity, Linear
    from funcgrad.nn.module import Module
    from funcgrad.nn.norms import (
        BatchNorm,
        GroupNorm,
        InstanceNorm,
        LayerNorm,
        RMSNorm,
        RunningStats,
    )
    from funcgrad.nn.pools import (
        AvgPool1d,
        AvgPool2d,
        AvgPool3d,
        MaxPool1d,
        MaxPool2d,
        MaxPool3d,
        Pool,
    )
    from funcgrad.nn.printing import count_parameters
    from funcgrad.nn.recurrent import GRU, LSTM, RNN
    from funcgrad.nn.state import State, StateIndex, make_with_state
    from funcgrad.nn.transformer import (
        TransformerDecoder,
        TransformerDecoderBlock,
        TransformerEncoder,
        TransformerEncoderBlock,
    )
    from funcgrad.nn.wrappers import PReLU, Shared, SpectralNorm, WeightNorm

__all__ = [
    "GRU",
    "LSTM",
    "MLP",
    "RNN",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AdaptivePool",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "BatchNorm",
    "Bilinear",
    "Conv",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Dropout",
    "Embedding",
    "Flatten",
    "GRUCell",
    "GroupNorm",
    "Identity",
    "InstanceNorm",
    "KeyValueCache",
    "LSTMCell",
    "Lambda",
    "LayerNorm",
    "Linear",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "Module",
    "MultiheadAttention",
    "PReLU",
    "Pool",
    "RMSNorm",
    "RNNCell",
    "RotaryPositionalEmbedding",
    "RunningStats",
    "Sequential",
    "Shared",
    "SpectralNorm",
    "State",
    "StateIndex",
    "TransformerDecoder",
    "TransformerDecoderBlock",
    "TransformerEncoder",
    "TransformerEncoderBlock",
    "WeightNorm",
    "count_parameters",
    "functional",
    "inference_mode",
    "initializers",
    "losses",
    "make_with_state",
]

# Loaded when first used: whoever writes networks of plain functions does not wait for attrs.
_MODULES = {
    "AdaptiveAvgPool1d": "adaptive_pools",
    "AdaptiveAvgPool2d": "adaptive_pools",
    "AdaptiveAvgPool3d": "adaptive_pools",
    "AdaptiveMaxPool1d": "adaptive_pools",
    "AdaptiveMaxPool2d": "adaptive_pools",
    "AdaptiveMaxPool3d": "adaptive_pools",
    "AdaptivePool": "adaptive_pools",
    "AvgPool1d": "pools",
    "AvgPool2d": "pools",
    "AvgPool3d": "pools",
    "BatchNorm": "norms",
    "Bilinear": "linear",
    "Conv": "convolutions",
    "Conv1d": "convolutions",
    "Conv2d": "convolutions",
    "Conv3d": "convolutions",
    "ConvTranspose": "convolutions",
    "ConvTranspose1d": "convolutions",
    "ConvTranspose2d": "convolutions",
    "ConvTranspose3d": "convolutions",
    "Dropout": "containers",
    "Embedding": "linear",
    "Flatten": "containers",
    "GRU": "recurrent",
    "GRUCell": "cells",
    "GroupNorm": "norms",
    "Identity": "linear",
    "InstanceNorm": "norms",
    "KeyValueCache": "attention",
    "LSTM": "recurrent",
    "LSTMCell": "cells",
    "Lambda": "containers",
    "LayerNorm": "norms",
    "Linear": "linear",
    "MLP": "containers",
    "MaxPool1d": "pools",
    "MaxPool2d": "pools",
    "MaxPool3d": "pools",
    "Module": "module",
    "MultiheadAttention": "attention",
    "PReLU": "wrappers",
    "Pool": "pools",
    "RMSNorm": "norms",
    "RNN": "recurrent",
    "RNNCell": "cells",
    "RotaryPositionalEmbedding": "attention",
    "RunningStats": "norms",
    "Sequential": "containers",
    "Shared": "wrappers",
    "SpectralNorm": "wrappers",
    "State": "state",
    "StateIndex": "state",
    "TransformerDecoder": "transformer",
    "TransformerDecoderBlock": "transformer",
    "TransformerEncoder": "transformer",
    "TransformerEncoderBlock": "transformer",
    "WeightNorm": "wrappers",
    "count_parameters": "printing",
    "inference_mode": "containers",
    "make_with_state": "state",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'funcgrad.nn' has no attribute {name!r}")
    module = importlib.import_module(f"funcgrad.nn.{_MODULES.get(name, name)}")
    found = globals()[name] = getattr(module, name) if name in _MODULES else module
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
