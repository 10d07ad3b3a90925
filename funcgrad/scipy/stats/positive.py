"""Distributions of positive numbers whose functions are elementary, or those of the normal one.

Formulas of the standard form, as in `funcgrad.scipy.stats.continuous`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from funcgrad.scipy.stats._base import Continuous, Positive
from funcgrad.scipy.stats._wrapped import selected
from funcgrad.scipy.stats.continuous import LOG_2PI

__all__ = [
    "expon",
    "halfcauchy",
    "halfnorm",
    "lognorm",
    "pareto",
    "rayleigh",
    "weibull_min",
]


class _Expon(Positive):
    """Exponential distribution, with density ``exp(-x)``.

    Examples
    --------
    >>> from funcgrad.scipy.stats import expon
    >>> float(expon.logsf(6.0, scale=2.0))
    -3.0
    """

    def _log_density(self, x: Any) -> Any:
        return -x

    def _cdf(self, x: Any) -> Any:
        return -np.expm1(-x)

    def _sf(self, x: Any) -> Any:
        return np.exp(-x)

    def _logsf(self, x: Any) -> Any:
        return -x

    def _ppf(self, q: Any) -> Any:
        return -np.log1p(-q)

    def _isf(self, q: Any) -> Any:
        return -np.log(q)

    def _entropy(self) -> Any:
        return 1.0

    def _mean(self) -> Any:
        return 1.0

    def _var(self) -> Any:
        return 1.0


class _LogNorm(Positive):
    """Distribution of ``exp(y)`` where `y` is normal, with standard deviation `s`.

    Examples
    --------
    >>> from funcgrad.scipy.stats import lognorm
    >>> float(lognorm.cdf(1.0, s=0.5))
    0.5
    """

    _shapes = ("s",)
    _typical = (1.0,)
    _closed = False

    def _log_density(self, x: Any, s: Any) -> Any:
        log_x = np.log(x)
        return -0.5 * np.square(log_x / s) - np.log(s) - log_x - 0.5 * LOG_2PI

    def _cdf(self, x: Any, s: Any) -> Any:
        return special.ndtr(np.log(x) / s)

    def _sf(self, x: Any, s: Any) -> Any:
        return special.ndtr(-np.log(x) / s)

    def _logcdf(self, x: Any, s: Any) -> Any:
        return special.log_ndtr(np.log(x) / s)

    def _logsf(self, x: Any, s: Any) -> Any:
        return special.log_ndtr(-np.log(x) / s)

    def _ppf(self, q: Any, s: Any) -> Any:
        return np.exp(s * special.ndtri(q))

    def _isf(self, q: Any, s: Any) -> Any:
        return np.exp(-s * special.ndtri(q))

    def _entropy(self, s: Any) -> Any:
        return 0.5 * (1 + LOG_2PI) + np.log(s)

    def _mean(self, s: Any) -> Any:
        return np.exp(0.5 * np.square(s))

    def _var(self, s: Any) -> Any:
        return np.exp(np.square(s)) * np.expm1(np.square(s))


class _WeibullMin(Positive):
    """Weibull distribution, whose `sf` is ``exp(-x**c)``.

    Examples
    --------
    >>> from funcgrad.scipy.stats import weibull_min
    >>> float(weibull_min.logsf(3.0, c=2.0))
    -9.0
    """

    _shapes = ("c",)
    _typical = (1.0,)

    def _log_density(self, x: Any, c: Any) -> Any:
        return np.log(c) + special.xlogy(c - 1, x) - np.power(x, c)

    def _cdf(self, x: Any, c: Any) -> Any:
        return -np.expm1(-np.power(x, c))

    def _sf(self, x: Any, c: Any) -> Any:
        return np.exp(-np.power(x, c))

    def _logsf(self, x: Any, c: Any) -> Any:
        return -np.power(x, c)

    def _ppf(self, q: Any, c: Any) -> Any:
        return np.power(-np.log1p(-q), 1 / c)

    def _isf(self, q: Any, c: Any) -> Any:
        return np.power(-np.log(q), 1 / c)

    def _entropy(self, c: Any) -> Any:
        return np.euler_gamma * (1 - 1 / c) - np.log(c) + 1

    def _mean(self, c: Any) -> Any:
        return special.gamma(1 + 1 / c)

    def _var(self, c: Any) -> Any:
        return special.gamma(1 + 2 / c) - np.square(special.gamma(1 + 1 / c))


class _HalfNorm(Positive):
    """Distribution of ``abs(y)`` where `y` is normal.

    Examples
    --------
    >>> from funcgrad.scipy.stats import halfnorm, norm
    >>> bool(halfnorm.sf(1.0) == 2 * norm.sf(1.0))
    True
    """

    def _log_density(self, x: Any) -> Any:
        return 0.5 * math.log(2 / math.pi) - 0.5 * np.square(x)

    def _cdf(self, x: Any) -> Any:
        return special.erf(x / math.sqrt(2))

    def _sf(self, x: Any) -> Any:
        return 2 * special.ndtr(-x)

    def _logsf(self, x: Any) -> Any:
        small = np.less(x, 1)  # where the sum of both logarithms would cancel
        near = np.log1p(-special.erf(selected(small, x, 1.0) / math.sqrt(2)))
        return selected(small, near, math.log(2) + special.log_ndtr(-x))

    def _ppf(self, q: Any) -> Any:
        return special.ndtri(0.5 * (1 + q))

    def _isf(self, q: Any) -> Any:
        return -special.ndtri(0.5 * q)

    def _entropy(self) -> Any:
        return 0.5 * math.log(math.pi / 2) + 0.5

    def _mean(self) -> Any:
        return math.sqrt(2 / math.pi)

    def _var(self) -> Any:
        return 1 - 2 / math.pi


class _HalfCauchy(Positive):
    """Distribution of ``abs(y)`` where `y` has the Cauchy distribution.

    Examples
    --------
    >>> from funcgrad.scipy.stats import halfcauchy
    >>> float(halfcauchy.cdf(1.0))
    0.5
    """

    def _log_density(self, x: Any) -> Any:
        return math.log(2 / math.pi) - 2 * np.log(np.hypot(1.0, x))

    def _cdf(self, x: Any) -> Any:
        return np.arctan(x) * (2 / math.pi)

    def _sf(self, x: Any) -> Any:
        return np.arctan2(1.0, x) * (2 / math.pi)

    def _ppf(self, q: Any) -> Any:
        return np.tan((math.pi / 2) * q)

    def _isf(self, q: Any) -> Any:
        return 1 / np.tan((math.pi / 2) * q)

    def _entropy(self) -> Any:
        return math.log(2 * math.pi)

    def _mean(self) -> Any:
        return math.inf

    def _var(self) -> Any:
        return math.inf


class _Rayleigh(Positive):
    """Rayleigh distribution, with density ``x exp(-x**2 / 2)``.

    Examples
    --------
    >>> from funcgrad.scipy.stats import rayleigh
    >>> float(rayleigh.logsf(4.0, scale=2.0))
    -2.0
    """

    _closed = False

    def _log_density(self, x: Any) -> Any:
        return np.log(x) - 0.5 * np.square(x)

    def _cdf(self, x: Any) -> Any:
        return -np.expm1(-0.5 * np.square(x))

    def _sf(self, x: Any) -> Any:
        return np.exp(-0.5 * np.square(x))

    def _logsf(self, x: Any) -> Any:
        return -0.5 * np.square(x)

    def _ppf(self, q: Any) -> Any:
        return np.sqrt(-2 * np.log1p(-q))

    def _isf(self, q: Any) -> Any:
        return np.sqrt(-2 * np.log(q))

    def _entropy(self) -> Any:
        return 0.5 * np.euler_gamma + 1 - 0.5 * math.log(2)

    def _mean(self) -> Any:
        return math.sqrt(math.pi / 2)

    def _var(self) -> Any:
        return 2 - math.pi / 2


class _Pareto(Continuous):
    """Pareto distribution, whose `sf` is ``x**-b`` from 1 on.

    Examples
    --------
    >>> from funcgrad.scipy.stats import pareto
    >>> float(pareto.sf(4.0, b=2.0))
    0.0625
    """

    _shapes = ("b",)
    _typical = (1.0,)
    _support = (1.0, np.inf)
    _middle = 2.0

    def _log_density(self, x: Any, b: Any) -> Any:
        return np.log(b) - (b + 1) * np.log(x)

    def _cdf(self, x: Any, b: Any) -> Any:
        return -np.expm1(-b * np.log(x))

    def _sf(self, x: Any, b: Any) -> Any:
        return np.power(x, -b)

    def _logsf(self, x: Any, b: Any) -> Any:
        return -b * np.log(x)

    def _ppf(self, q: Any, b: Any) -> Any:
        return np.exp(-np.log1p(-q) / b)

    def _isf(self, q: Any, b: Any) -> Any:
        return np.power(q, -1 / b)

    def _entropy(self, b: Any) -> Any:
        return 1 + 1 / b - np.log(b)

    def _mean(self, b: Any) -> Any:
        finite = np.greater(b, 1)
        many = selected(finite, b, 2.0)
        return selected(finite, many / (many - 1), np.inf)

    def _var(self, b: Any) -> Any:
        finite = np.greater(b, 2)
        many = selected(finite, b, 3.0)
        return selected(finite, many / (np.square(many - 1) * (many - 2)), np.inf)


expon = _Expon("expon")
lognorm = _LogNorm("lognorm")
weibull_min = _WeibullMin("weibull_min")
halfnorm = _HalfNorm("halfnorm")
halfcauchy = _HalfCauchy("halfcauchy")
rayleigh = _Rayleigh("rayleigh")
pareto = _Pareto("pareto")
