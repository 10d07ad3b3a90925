"""Neural networks: modules, layers, activation functions, losses and initializers.

>>> import funcgrad as fg
>>> print(fg.nn.functional.relu(-1.0))
0.0
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from funcgrad.nn import functional, initializers, losses
    from funcgrad.nn.containers import MLP, Dropout, Flatten, Lambda, Sequential, inference_mode
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
    from funcgrad.nn.printing import count_parameters
    from funcgrad.nn.state import State, StateIndex, make_with_state

__all__ = [
    "MLP",
    "BatchNorm",
    "Bilinear",
    "Dropout",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "Identity",
    "InstanceNorm",
    "Lambda",
    "LayerNorm",
    "Linear",
    "Module",
    "RMSNorm",
    "RunningStats",
    "Sequential",
    "State",
    "StateIndex",
    "count_parameters",
    "functional",
    "inference_mode",
    "initializers",
    "losses",
    "make_with_state",
]

# Loaded when first used: whoever writes networks of plain functions does not wait for attrs.
_MODULES = {
    "BatchNorm": "norms",
    "Bilinear": "linear",
    "Dropout": "containers",
    "Embedding": "linear",
    "Flatten": "containers",
    "GroupNorm": "norms",
    "Identity": "linear",
    "InstanceNorm": "norms",
    "Lambda": "containers",
    "LayerNorm": "norms",
    "Linear": "linear",
    "MLP": "containers",
    "Module": "module",
    "RMSNorm": "norms",
    "RunningStats": "norms",
    "Sequential": "containers",
    "State": "state",
    "StateIndex": "state",
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
