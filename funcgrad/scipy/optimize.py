"""SciPy's optimization with exact derivatives: ``from funcgrad.scipy import optimize``.

`minimize`, `root`, `least_squares`, `curve_fit` and their kin run SciPy's own methods on functions
of pytrees in plain NumPy, and feed them exact gradients, Jacobians and products with Hessians.
Their solutions may be differentiated themselves, by the implicit function theorem. Every other name
is SciPy's, which takes plain values only.
"""

from __future__ import annotations

from scipy import optimize

from funcgrad.core.alternatives import INSTEAD, offer
from funcgrad.core.namespace import standing_in
from funcgrad.rules.scipy.adopt import plain_only
from funcgrad.scipy._fitting import curve_fit, least_squares
from funcgrad.scipy._minimize import minimize, minimize_scalar
from funcgrad.scipy._roots import (
    bisect,
    brenth,
    brentq,
    fsolve,
    newton,
    ridder,
    root,
    root_scalar,
    toms748,
)

# What is replaced; other names are looked up in SciPy when they are asked for.
__all__ = [
    "bisect",
    "brenth",
    "brentq",
    "curve_fit",
    "fsolve",
    "least_squares",
    "minimize",
    "minimize_scalar",
    "newton",
    "ridder",
    "root",
    "root_scalar",
    "toms748",
]

# Functions without a derivative -> what to write instead.
_INSTEAD = {
    "fixed_point": "use funcgrad.fixed_point",
    "leastsq": "use least_squares",
    **dict.fromkeys(["fmin", "fmin_bfgs", "fmin_cg", "fmin_l_bfgs_b"], "use minimize"),
}

offer("scipy.optimize", __all__)
INSTEAD.update({f"scipy.optimize.{name}": instead for name, instead in _INSTEAD.items()})

__getattr__, __dir__ = standing_in(__name__, optimize, __all__, plain_only)
