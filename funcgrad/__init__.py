"""funcgrad: derivatives of plain NumPy functions.

>>> import numpy as np
>>> import funcgrad as fg
>>> fg.grad(lambda x: np.sum(np.sin(x)))(np.array([0.0, np.pi]))
array([ 1., -1.])
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from funcgrad import errors, nn, numpy, optim, random, rules, scipy, testing, tree
    from funcgrad.indexed import at
    from funcgrad.transforms.batching import vmap
    from funcgrad.transforms.derived import (
        elementwise_grad,
        hessian,
        hvp,
        jacfwd,
        jacobian,
        jacrev,
        value_and_jacfwd,
        value_and_jacobian,
        value_and_jacrev,
    )
    from funcgrad.transforms.forward import jvp, linearize
    from funcgrad.transforms.reverse import grad, value_and_grad, vjp
    from funcgrad.transforms.stop import stop_gradient
    from funcgrad.tree import pytree, static

__version__ = "0.1.0"

__all__ = [
    "at",
    "elementwise_grad",
    "errors",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linearize",
    "nn",
    "numpy",
    "optim",
    "pytree",
    "random",
    "rules",
    "scipy",
    "static",
    "stop_gradient",
    "testing",
    "tree",
    "value_and_grad",
    "value_and_jacfwd",
    "value_and_jacobian",
    "value_and_jacrev",
    "vjp",
    "vmap",
]

# Every name is loaded when it is first used, as in Scientific Python's SPEC 1, so that nobody
# waits for what their program does not need. Here are the functions, by the module that has them;
# all other names are modules.
_FUNCTIONS = {
    "at": "indexed",
    "elementwise_grad": "transforms.derived",
    "grad": "transforms.reverse",
    "hessian": "transforms.derived",
    "hvp": "transforms.derived",
    "jacfwd": "transforms.derived",
    "jacobian": "transforms.derived",
    "jacrev": "transforms.derived",
    "jvp": "transforms.forward",
    "linearize": "transforms.forward",
    "pytree": "tree.classes",
    "static": "tree.classes",
    "stop_gradient": "transforms.stop",
    "value_and_grad": "transforms.reverse",
    "value_and_jacfwd": "transforms.derived",
    "value_and_jacobian": "transforms.derived",
    "value_and_jacrev": "transforms.derived",
    "vjp": "transforms.reverse",
    "vmap": "transforms.batching",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'funcgrad' has no attribute {name!r}")
    module = importlib.import_module(f"funcgrad.{_FUNCTIONS.get(name, name)}")
    found = globals()[name] = getattr(module, name) if name in _FUNCTIONS else module
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
