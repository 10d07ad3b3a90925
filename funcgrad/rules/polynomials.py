"""NumPy's polynomials in the old form: coefficients, the highest power first."""

from __future__ import annotations

import numpy as np

from funcgrad.core.level import concrete
from funcgrad.core.primitive import Sample, overrides
from funcgrad.rules.matmul import as_array

__all__: list[str] = []


@overrides(np.polyval)
def polyval(p, x):
    """Value of a polynomial by Horner's scheme, in NumPy's order of operations."""
    p, x = as_array(p), as_array(x)
    y = np.zeros_like(concrete(x))
    for coefficient in p:
        y = y * x + coefficient
    return y


@polyval.def_samples
def polyval_samples(rng):
    yield Sample(rng.normal(size=4), rng.normal(size=(2, 3)))
    yield Sample(rng.normal(size=3), rng.normal(size=()))
    yield Sample([1, 2, 3], rng.normal(size=2))
    yield Sample(rng.normal(size=3), 2)
    yield Sample(rng.normal(size=1), rng.normal(size=2))
