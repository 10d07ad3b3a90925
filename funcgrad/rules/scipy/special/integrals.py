"""Exponential, trigonometric and logarithmic integrals; Lambert's W.

The derivative of an integral is the integrand, that of W follows from its equation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special as sp
from scipy.special import _ufuncs

from funcgrad.core.elementwise import elementwise
from funcgrad.core.primitive import Sample
from funcgrad.rules.scipy.special.declare import factors, where_defined

__all__: list[str] = []

# Exponential integrals

exp1 = elementwise(sp.exp1, domain=(0.5, 4.0))


@exp1.def_partial()
def exp1_partial(t, x, out):
    return t * where_defined(out, -np.exp(-x) / x)


expi = elementwise(sp.expi, domain=(0.5, 4.0))


@expi.def_partial()
def expi_partial(t, x):
    return t * (np.exp(x) / x)


expn = factors(sp.expn, "n x")
expn.no_partial(0, "SciPy rounds it to an integer")


@expn.def_partial(1)
def expn_partial_x(t, n, x, out):
    # Of order 0 it is exp(-x) / x, and SciPy has no order -1.
    n = np.trunc(n)
    is_first = np.equal(n, 0)
    lower = sp.expn(np.where(is_first, 0, n - 1), x)
    factor = np.where(is_first, np.exp(-x) * (1 + 1 / x) / x, lower)
    return t * -where_defined(out, factor)


@expn.def_samples
def expn_samples(rng):
    yield Sample(2, rng.uniform(0.5, 3.0, size=(2, 3)))
    yield Sample(np.array([0, 1, 3]), rng.uniform(0.5, 3.0, size=(2, 1)))
    yield Sample(1, np.float64(1.5))


# Integrals of sine and cosine over x

sici = factors(sp.sici, "x")
shichi = factors(sp.shichi, "x")


@sici.def_partial(0, result=0)
def sici_partial_si(t, x):
    return t * np.where(np.equal(x, 0), 1 - x * x / 6, np.sin(x) / _not_zero(x))


@sici.def_partial(0, result=1)
def sici_partial_ci(t, x):
    return t * (np.cos(x) / x)


@shichi.def_partial(0, result=0)
def shichi_partial_shi(t, x):
    return t * np.where(np.equal(x, 0), 1 + x * x / 6, np.sinh(x) / _not_zero(x))


@shichi.def_partial(0, result=1)
def shichi_partial_chi(t, x):
    return t * (np.cosh(x) / x)


def _not_zero(x: Any) -> Any:
    return np.where(np.equal(x, 0), 1, x)


@sici.def_samples
@shichi.def_samples
def sici_samples(rng):
    yield Sample(rng.uniform(0.5, 3.0, size=(2, 3)))
    yield Sample(np.float64(1.5))
    yield Sample(np.zeros((0, 3)))


spence = elementwise(sp.spence, domain=(0.5, 3.0))


@spence.def_partial()
def spence_partial(t, x):
    # log(x) / (1 - x), whose derivatives cancel near 1.
    w = x - 1
    is_near = np.less(np.abs(w), 0.25)
    near = np.where(is_near, w, 0)
    far = np.log(np.where(is_near, 2, x)) / np.where(is_near, 1, w)
    return -t * np.where(is_near, _log1p_ratio(near), far)


def _log1p_ratio(w: Any) -> Any:
    """Return log(1 + w) / w for abs(w) < 1/4, as 2 atanh(w / (w + 2)) / w."""
    z = w / (w + 2)
    square = z * z
    total = 1 / 27 + 0 * square
    for odd in range(25, 0, -2):  # the terms fall faster than 49**-n
        total = total * square + 1 / odd
    return 2 * total / (w + 2)


@spence.def_samples
def spence_samples(rng):
    yield Sample(np.array([1.0, 1.0 + 1e-9]), complex=False)


# Solutions of w exp(w) = z, and of w + log(w) = z

lambertw = factors(_ufuncs._lambertw, "z k tol", name="lambertw")
lambertw.no_partial(1, "it is the number of a branch")
lambertw.no_partial(2, "it is a tolerance")


@lambertw.def_partial(0)
def lambertw_partial_z(t, out):
    return t * (np.exp(-out) / (1 + out))


@lambertw.def_samples
def lambertw_samples(rng):
    yield Sample(rng.uniform(0.1, 3.0, size=(2, 3)), fun=sp.lambertw)
    yield Sample(np.array([-0.2, -0.1]), -1, fun=sp.lambertw, complex=False)
    yield Sample(np.array([0.0]), fun=sp.lambertw)


wrightomega = elementwise(sp.wrightomega)


@wrightomega.def_partial()
def wrightomega_partial(t, out):
    return t * (out / (1 + out))
