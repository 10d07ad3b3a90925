"""funcgrad: derivatives of plain NumPy functions.

>>> import numpy as np
>>> import funcgrad as fg
>>> fg.grad(lambda x: np.sum(np.sin(x)))(np.array([0.0, np.pi]))
array([ 1., -1.])
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from funcgrad import (
        control,
        data,
        debug,
        errors,
        experimental,
        nn,
        numpy,
        optim,
        random,
        rules,
        scipy,
        serialize,
        testing,
        train,
        tree,
        viz,
    )
    from funcgrad.control import (
        associative_scan,
        cond,
        fori_loop,
        map,
        scan,
        switch,
        while_loop,
    )
    from funcgrad.implicit import (
        custom_linear_solve,
        custom_root,
        fixed_point,
        implicit_diff,
    )
    from funcgrad.indexed import at
    from funcgrad.serialize import CheckpointManager, load, save
    from funcgrad.staging.export import export
    from funcgrad.staging.jit import jit
    from funcgrad.staging.record import make_program
    from funcgrad.transforms import checkpoint_policies
    from funcgrad.transforms.batching import vmap
    from funcgrad.transforms.callback import ShapeDtypeStruct, pure_callback
    from funcgrad.transforms.collectives import (
        axis_index,
        axis_size,
        pmax,
        pmean,
        pmin,
        psum,
    )
    from funcgrad.transforms.custom import custom_jvp, custom_vjp
    from funcgrad.transforms.custom_batching import custom_vmap
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
    from funcgrad.transforms.exchanges import (
        all_gather,
        all_to_all,
        ppermute,
        pshuffle,
        psum_scatter,
    )
    from funcgrad.transforms.forward import jvp, linearize
    from funcgrad.transforms.named_values import checkpoint_name
    from funcgrad.transforms.remat import checkpoint, remat
    from funcgrad.transforms.reverse import grad, value_and_grad, vjp
    from funcgrad.transforms.stop import stop_gradient
    from funcgrad.transforms.transpose import linear_transpose
    from funcgrad.tree import pytree, static

__version__ = "0.1.0"

__all__ = [
    "CheckpointManager",
    "ShapeDtypeStruct",
    "all_gather",
    "all_to_all",
    "associative_scan",
    "at",
    "axis_index",
    "axis_size",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "cond",
    "control",
    "custom_jvp",
    "custom_linear_solve",
    "custom_root",
    "custom_vjp",
    "custom_vmap",
    "data",
    "debug",
    "elementwise_grad",
    "errors",
    "experimental",
    "export",
    "fixed_point",
    "fori_loop",
    "grad",
    "hessian",
    "hvp",
    "implicit_diff",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "linear_transpose",
    "linearize",
    "load",
    "make_program",
    "map",
    "nn",
    "numpy",
    "optim",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "pshuffle",
    "psum",
    "psum_scatter",
    "pure_callback",
    "pytree",
    "random",
    "remat",
    "rules",
    "save",
    "scan",
    "scipy",
    "serialize",
    "static",
    "stop_gradient",
    "switch",
    "testing",
    "train",
    "tree",
    "value_and_grad",
    "value_and_jacfwd",
    "value_and_jacobian",
    "value_and_jacrev",
    "viz",
    "vjp",
    "vmap",
    "while_loop",
]

# Every name is loaded when it is first used, as in Scientific Python's SPEC 1, so that nobody
# waits for what their program does not need. Here are the functions, by the module that has them;
# all other names are modules.
_FUNCTIONS = {
    "CheckpointManager": "serialize",
    "ShapeDtypeStruct": "transforms.callback",
    "all_gather": "transforms.exchanges",
    "all_to_all": "transforms.exchanges",
    "associative_scan": "control",
    "at": "indexed",
    "axis_index": "transforms.collectives",
    "axis_size": "transforms.collectives",
    "checkpoint": "transforms.remat",
    "checkpoint_name": "transforms.named_values",
    "checkpoint_policies": "transforms.remat",
    "cond": "control",
    "custom_jvp": "transforms.custom",
    "custom_linear_solve": "implicit",
    "custom_root": "implicit",
    "custom_vjp": "transforms.custom",
    "custom_vmap": "transforms.custom_batching",
    "elementwise_grad": "transforms.derived",
    "export": "staging.export",
    "fixed_point": "implicit",
    "fori_loop": "control",
    "grad": "transforms.reverse",
    "hessian": "transforms.derived",
    "hvp": "transforms.derived",
    "implicit_diff": "implicit",
    "jacfwd": "transforms.derived",
    "jacobian": "transforms.derived",
    "jacrev": "transforms.derived",
    "jit": "staging.jit",
    "jvp": "transforms.forward",
    "linear_transpose": "transforms.transpose",
    "linearize": "transforms.forward",
    "load": "serialize",
    "make_program": "staging.record",
    "map": "control",
    "pmax": "transforms.collectives",
    "pmean": "transforms.collectives",
    "pmin": "transforms.collectives",
    "ppermute": "transforms.exchanges",
    "pshuffle": "transforms.exchanges",
    "psum": "transforms.collectives",
    "psum_scatter": "transforms.exchanges",
    "pure_callback": "transforms.callback",
    "pytree": "tree.classes",
    "remat": "transforms.remat",
    "save": "serialize",
    "scan": "control",
    "static": "tree.classes",
    "stop_gradient": "transforms.stop",
    "switch": "control",
    "value_and_grad": "transforms.reverse",
    "value_and_jacfwd": "transforms.derived",
    "value_and_jacobian": "transforms.derived",
    "value_and_jacrev": "transforms.derived",
    "vjp": "transforms.reverse",
    "vmap": "transforms.batching",
    "while_loop": "control",
}


# Names that users of JAX look for, and where to find them here.
_ELSEWHERE = {
    "lax": "its loops, branches and collectives are here: funcgrad.scan, cond, psum, ...",
    "make_jaxpr": "write funcgrad.make_program",
    "pmap": "one machine is all there is: write funcgrad.vmap",
    "tree_flatten": "write funcgrad.tree.flatten",
    "tree_leaves": "write funcgrad.tree.leaves",
    "tree_map": "write funcgrad.tree.map",
    "tree_unflatten": "write funcgrad.tree.unflatten",
    "tree_util": "write funcgrad.tree",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        hint = f"; {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
        raise AttributeError(f"module 'funcgrad' has no attribute {name!r}{hint}")
    module = importlib.import_module(f"funcgrad.{_FUNCTIONS.get(name, name)}")
    found = globals()[name] = getattr(module, name) if name in _FUNCTIONS else module
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
