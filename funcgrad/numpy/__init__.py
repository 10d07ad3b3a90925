"""NumPy's namespace for traced code: ``import funcgrad.numpy as fnp``.

Plain NumPy functions take traced values, with no import of ours. Some cannot: `numpy.array` of a
list with traced values in it, `numpy.zeros`, which sees no argument that is traced, `numpy.take`,
which does not look whether the indices are, or `numpy.vectorize`, which makes Python objects of its
arguments. Those are replaced here; every other name is NumPy's own object, so
``fnp.sin is np.sin``.

Inside a transform the creation functions return arrays that can be assigned traced values
(``y = fnp.zeros(3); y[0] = x``); outside they return what NumPy's do.
"""

from __future__ import annotations

import numpy as np

from funcgrad.core.namespace import standing_in
from funcgrad.numpy.aside import (
    amax,
    amin,
    interp,
    max,
    min,
    nanmax,
    nanmin,
    nanprod,
    nansum,
    pad,
    prod,
    repeat,
    resize,
    roll,
    select,
    sum,
    take,
)
from funcgrad.numpy.create import (
    arange,
    copy,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    geomspace,
    identity,
    linspace,
    logspace,
    ones,
    ones_like,
    tri,
    zeros,
    zeros_like,
)
from funcgrad.numpy.gather import c_, r_
from funcgrad.numpy.nested import (
    array,
    asanyarray,
    asarray,
    asarray_chkfinite,
    ascontiguousarray,
    asfortranarray,
    isscalar,
)
from funcgrad.numpy.vectorized import frompyfunc, kaiser, vectorize

# What is replaced; other names are looked up in NumPy when they are asked for.
__all__ = [
    "amax",
    "amin",
    "arange",
    "array",
    "asanyarray",
    "asarray",
    "asarray_chkfinite",
    "ascontiguousarray",
    "asfortranarray",
    "c_",
    "copy",
    "empty",
    "empty_like",
    "eye",
    "frompyfunc",
    "full",
    "full_like",
    "geomspace",
    "identity",
    "interp",
    "isscalar",
    "kaiser",
    "linspace",
    "logspace",
    "max",
    "min",
    "nanmax",
    "nanmin",
    "nanprod",
    "nansum",
    "ones",
    "ones_like",
    "pad",
    "prod",
    "r_",
    "repeat",
    "resize",
    "roll",
    "select",
    "sum",
    "take",
    "tri",
    "vectorize",
    "zeros",
    "zeros_like",
]


__getattr__, __dir__ = standing_in(__name__, np, __all__)
