"""What networks are made of, where a composition would be slow, greedy or wrong at the edges.

NumPy has no such functions: `funcgrad.nn` offers them, and loads this package.
"""

import importlib

__all__ = [
    "activations",
    "affine",
    "convolution",
    "cross_entropy",
    "layout",
    "lowering",
    "normal",
    "normalizing",
    "pooling",
    "recurrent",
    "scratch",
    "sequence",
    "softmax",
    "tiles",
    "winograd",
]

for _name in __all__:
    importlib.import_module(f"{__name__}.{_name}")
