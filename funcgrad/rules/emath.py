"""`numpy.emath`: functions that become complex where real numbers have no result.

Whether they do depends on the values: one element out of the domain makes all of them complex.
Under `vmap`, one example does that for all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.level import looked_at
from funcgrad.core.primitive import Sample, overrides
from funcgrad.core.zero import dtype_of
from funcgrad.rules.reducing import cast
from funcgrad.rules.spelling import array_of

__all__: list[str] = []


def _complex(x: Any) -> Any:
    """Return `x` as complex numbers, of the precision that NumPy chooses."""
    return cast(x, np.complex64 if dtype_of(x).char in "bBhHfF" else np.complex128)


def _negative_to_complex(x: Any) -> Any:
    x = array_of(x)
    return _complex(x) if _some(np.isreal(x) & np.less(np.real(x), 0)) else x


def _some(mask: Any) -> bool:
    """Tell whether a mask holds anywhere, of which the dtype of the result depends."""
    return bool(np.any(looked_at(np.any(mask), "whether the result is complex")))


def _large_to_complex(x: Any) -> Any:
    x = array_of(x)
    return _complex(x) if _some(np.isreal(x) & np.greater(np.abs(x), 1)) else x


def _declare(function: Any, of: Any, convert: Any, samples: Any) -> None:
    def extended(x):
        return of(convert(x))

    extended.__name__ = f"emath_{function.__name__}"
    extended.__doc__ = f"`numpy.emath.{function.__name__}`."
    overrides(function)(extended).def_samples(samples)


def _plain_samples(rng):
    yield Sample(rng.uniform(0.2, 0.8, size=(2, 3)))
    yield Sample(rng.uniform(0.2, 0.8, size=()))


def _low_samples(rng):
    yield from _plain_samples(rng)
    yield Sample(np.array([-1.5, 0.5]), complex=False)


def _high_samples(rng):
    yield from _plain_samples(rng)
    yield Sample(np.array([-1.5, 0.5, 2.5]), complex=False)


for _name in ("sqrt", "log", "log2", "log10"):
    _declare(getattr(np.emath, _name), getattr(np, _name), _negative_to_complex, _low_samples)
for _name in ("arccos", "arcsin", "arctanh"):
    _declare(getattr(np.emath, _name), getattr(np, _name), _large_to_complex, _high_samples)


@overrides(np.emath.logn)
def emath_logn(n, x):
    """Logarithm to the base `n`."""
    return np.log(_negative_to_complex(x)) / np.log(_negative_to_complex(n))


@emath_logn.def_samples
def emath_logn_samples(rng):
    yield Sample(2, rng.uniform(0.5, 2.0, size=3))
    yield Sample(np.float64(3.0), np.array([-1.0, 2.0]), complex=False)


@overrides(np.emath.power)
def emath_power(x, p):
    """Power, complex if a base is negative."""
    x, p = _negative_to_complex(x), array_of(p)
    if _some(np.isreal(p) & np.less(np.real(p), 0)):
        p = p * 1.0
    return np.power(x, p)


@emath_power.def_samples
def emath_power_samples(rng):
    yield Sample(rng.uniform(0.5, 2.0, size=3), rng.normal(size=3))
    yield Sample(np.array([-1.5, 2.0]), np.float64(0.5), complex=False)
    yield Sample(rng.uniform(0.5, 2.0, size=3), -2)
