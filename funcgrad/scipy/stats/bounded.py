"""Distributions between two bounds, and of angles.

Formulas of the standard form, as in `funcgrad.scipy.stats.continuous`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from funcgrad.scipy.stats._base import Continuous
from funcgrad.scipy.stats._wrapped import selected
from funcgrad.scipy.stats.continuous import LOG_2PI, norm

__all__ = [
    "truncnorm",
    "uniform",
    "vonmises",
    "wrapcauchy",
]


class _TruncNorm(Continuous):
    """Normal distribution between `a` and `b`, which are counted from `loc` in units of `scale`.

    Examples
    --------
    >>> from funcgrad.scipy.stats import truncnorm
    >>> round(float(truncnorm.cdf(0.0, a=-1.0, b=1.0)), 12)
    0.5
    """

    _shapes = ("a", "b")
    _typical = (-1.0, 1.0)

    def _valid(self, a: Any, b: Any) -> Any:
        return np.less(a, b)

    def _bounds(self, a: Any, b: Any) -> tuple[Any, Any]:
        return a, b

    def _inner(self, a: Any, b: Any) -> Any:
        low = selected(np.isfinite(a), a, np.minimum(b, 1.0) - 1)
        high = selected(np.isfinite(b), b, np.maximum(a, -1.0) + 1)
        return 0.5 * (low + high)

    def _log_density(self, x: Any, a: Any, b: Any) -> Any:
        return norm._log_density(x) - _log_mass(a, b)

    def _logcdf(self, x: Any, a: Any, b: Any) -> Any:
        total = _log_mass(a, b)
        return _log_part(_log_mass(a, x) - total, _log_mass(x, b) - total)

    def _logsf(self, x: Any, a: Any, b: Any) -> Any:
        total = _log_mass(a, b)
        return _log_part(_log_mass(x, b) - total, _log_mass(a, x) - total)

    def _cdf(self, x: Any, a: Any, b: Any) -> Any:
        return np.exp(self._logcdf(x, a, b))

    def _sf(self, x: Any, a: Any, b: Any) -> Any:
        return np.exp(self._logsf(x, a, b))

    def _ppf(self, q: Any, a: Any, b: Any) -> Any:
        # From the tail that is the nearer one, as logarithms.
        total = _log_mass(a, b)
        left = np.less(a, 0)
        start = special.log_ndtr(selected(left, a, -b))
        log_share = selected(left, np.log(q), np.log1p(-q)) + total
        x = special.ndtri_exp(np.logaddexp(start, log_share))
        return selected(left, x, -x)

    def _isf(self, q: Any, a: Any, b: Any) -> Any:
        return -self._ppf(q, -b, -a)

    def _entropy(self, a: Any, b: Any) -> Any:
        total = _log_mass(a, b)
        _, edge = _edges(a, b, total)
        return 0.5 * (LOG_2PI + 1) + total + 0.5 * edge

    def _mean(self, a: Any, b: Any) -> Any:
        step, _ = _edges(a, b, _log_mass(a, b))
        return step

    def _var(self, a: Any, b: Any) -> Any:
        step, edge = _edges(a, b, _log_mass(a, b))
        return 1 + edge - np.square(step)


def _log_mass(a: Any, b: Any) -> Any:
    """Return the logarithm of the normal probability between `a` and `b`, where ``a < b``."""
    # With both in the upper tail, the same by symmetry in the lower, where nothing cancels.
    flip = np.greater(a, 0)
    low, high = selected(flip, -b, a), selected(flip, -a, b)
    tail = np.less_equal(high, 0)
    log_high = special.log_ndtr(selected(tail, high, 0.0))
    log_low = special.log_ndtr(selected(tail, low, -1.0))
    with np.errstate(divide="ignore"):  # between equal bounds, log(0)
        in_tail = log_high + np.log(-np.expm1(log_low - log_high))
    around = special.ndtr(selected(tail, 0.0, low)) + special.ndtr(-selected(tail, 1.0, high))
    return selected(tail, in_tail, np.log1p(-around))


def _edges(a: Any, b: Any, log_mass: Any) -> tuple[Any, Any]:
    """Return ``phi(a) - phi(b)`` and ``a phi(a) - b phi(b)``, for the density `phi` of `norm`."""
    a, b = (selected(np.isfinite(bound), bound, 1e3) for bound in (a, b))  # phi(1e3) is 0
    at_a, at_b = (np.exp(norm._log_density(bound) - log_mass) for bound in (a, b))
    return at_a - at_b, a * at_a - b * at_b


def _log_part(log_part: Any, log_rest: Any) -> Any:
    """Return the logarithm of a part of 1, from the rest where the part is nearly all."""
    large = np.greater(log_part, -0.1)
    of_rest = np.log1p(-np.exp(selected(large, log_rest, -1.0)))
    return selected(large, of_rest, log_part)


class _Uniform(Continuous):
    """Uniform distribution between `loc` and ``loc + scale``.

    Examples
    --------
    >>> from funcgrad.scipy.stats import uniform
    >>> float(uniform.pdf(3.0, loc=1.0, scale=4.0))
    0.25
    """

    _support = (0.0, 1.0)
    _middle = 0.5

    def _log_density(self, x: Any) -> Any:
        return 0 * x

    def _density(self, x: Any) -> Any:
        return 0 * x + 1

    def _cdf(self, x: Any) -> Any:
        return 1 * x

    def _ppf(self, q: Any) -> Any:
        return 1 * q

    def _entropy(self) -> Any:
        return 0.0

    def _mean(self) -> Any:
        return 0.5

    def _var(self) -> Any:
        return 1 / 12


class _VonMises(Continuous):
    """Von Mises distribution of angles, with density proportional to ``exp(kappa cos(x))``.

    Examples
    --------
    >>> from funcgrad.scipy.stats import vonmises
    >>> round(float(vonmises.pdf(1.0, kappa=0.0)), 6)
    0.159155
    """

    _shapes = ("kappa",)
    _typical = (1.0,)

    def _valid(self, kappa: Any) -> Any:
        return np.greater_equal(kappa, 0)

    def _log_density(self, x: Any, kappa: Any) -> Any:
        below = -2 * np.square(np.sin(0.5 * x))  # cos(x) - 1
        return kappa * below - LOG_2PI - np.log(special.i0e(kappa))

    def _entropy(self, kappa: Any) -> Any:
        scaled = special.i0e(kappa)
        return LOG_2PI + np.log(scaled) + kappa * (1 - special.i1e(kappa) / scaled)


class _WrapCauchy(Continuous):
    """Cauchy distribution wrapped around a circle, on ``[0, 2 pi]``, with ``0 < c < 1``.

    Examples
    --------
    >>> from funcgrad.scipy.stats import wrapcauchy
    >>> round(float(wrapcauchy.pdf(0.0, c=0.5)), 6)
    0.477465
    """

    _shapes = ("c",)
    _typical = (0.5,)
    _support = (0.0, 2 * math.pi)
    _middle = 1.0

    def _valid(self, c: Any) -> Any:
        return np.logical_and(np.greater(c, 0), np.less(c, 1))

    def _density(self, x: Any, c: Any) -> Any:
        # 1 + c**2 - 2 c cos(x) is a sum of two squares.
        below = np.square(1 - c) + 4 * c * np.square(np.sin(0.5 * x))
        return (1 - c) * (1 + c) / (2 * math.pi * below)

    def _log_density(self, x: Any, c: Any) -> Any:
        return np.log(self._density(x, c))

    def _cdf(self, x: Any, c: Any) -> Any:
        ratio = (1 + c) / (1 - c)
        first = np.less(x, math.pi)
        angle = 0.5 * selected(first, x, 2 * math.pi - x)
        part = np.arctan2(ratio * np.sin(angle), np.cos(angle)) / math.pi
        return selected(first, part, 1 - part)

    def _ppf(self, q: Any, c: Any) -> Any:
        ratio = (1 - c) / (1 + c)
        first = np.less(q, 0.5)
        angle = math.pi * selected(first, q, 1 - q)
        part = 2 * np.arctan2(ratio * np.sin(angle), np.cos(angle))
        return selected(first, part, 2 * math.pi - part)

    def _entropy(self, c: Any) -> Any:
        return LOG_2PI + np.log1p(-np.square(c))


truncnorm = _TruncNorm("truncnorm")
uniform = _Uniform("uniform")
vonmises = _VonMises("vonmises")
wrapcauchy = _WrapCauchy("wrapcauchy")
