"""funcgrad: derivatives of plain NumPy functions.

>>> import numpy as np
>>> import funcgrad as fg
>>> fg.grad(lambda x: np.sum(np.sin(x)))(np.array([0.0, np.pi]))
array([ 1., -1.])
"""

import importlib
from typing import TYPE_CHECKING, Any

from funcgrad import errors, rules, tree
from funcgrad.at import at
from funcgrad.transforms.forward import jvp, linearize
from funcgrad.transforms.reverse import grad, value_and_grad, vjp
from funcgrad.transforms.stop import stop_gradient
from funcgrad.tree import pytree, static

if TYPE_CHECKING:
    from funcgrad import nn, numpy, optim, random, testing

__version__ = "0.1.0"

__all__ = [
    "at",
    "errors",
    "grad",
    "jvp",
    "linearize",
    "nn",
    "numpy",
    "optim",
    "pytree",
    "random",
    "rules",
    "static",
    "stop_gradient",
    "testing",
    "tree",
    "value_and_grad",
    "vjp",
]

# What a program that only differentiates does not need loads when it is first named.
_LAZY = frozenset({"nn", "numpy", "optim", "random", "testing"})


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"funcgrad.{name}")
    raise AttributeError(f"module 'funcgrad' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
