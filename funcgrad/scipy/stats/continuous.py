"""Distributions on the whole line.

Formulas of the standard form; `funcgrad.scipy.stats._base` does the rest. Tails are written so that
they neither cancel nor overflow. Further files have the distributions of angles and between two
bounds (`bounded`), of positive numbers (`positive`), and those whose probabilities are incomplete
gamma and beta functions (`gammas`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from funcgrad.core.zero import dtype_of
from funcgrad.scipy.stats._base import Continuous
from funcgrad.scipy.stats._wrapped import none_of, selected

__all__ = [
    "cauchy",
    "gennorm",
    "gumbel_l",
    "gumbel_r",
    "laplace",
    "logistic",
    "norm",
    "skewnorm",
    "t",
]

LOG_2PI = math.log(2 * math.pi)
_LOG_2 = math.log(2)
_SQRT_2PI = math.sqrt(2 * math.pi)


class _Norm(Continuous):
    """Normal distribution of mean `loc` and standard deviation `scale`.

    Examples
    --------
    >>> from funcgrad.scipy.stats import norm
    >>> float(norm.cdf(3.0, loc=3.0, scale=2.0))
    0.5
    """

    def _log_density(self, x: Any) -> Any:
        return -0.5 * np.square(x) - 0.5 * LOG_2PI

    def _density(self, x: Any) -> Any:
        return np.exp(-0.5 * np.square(x)) / _SQRT_2PI

    def _cdf(self, x: Any) -> Any:
        return special.ndtr(x)

    def _sf(self, x: Any) -> Any:
        return special.ndtr(-x)

    def _logcdf(self, x: Any) -> Any:
        return special.log_ndtr(x)

    def _logsf(self, x: Any) -> Any:
        return special.log_ndtr(-x)

    def _ppf(self, q: Any) -> Any:
        return special.ndtri(q)

    def _isf(self, q: Any) -> Any:
        return -special.ndtri(q)

    def _entropy(self) -> Any:
        return 0.5 * (LOG_2PI + 1)

    def _mean(self) -> Any:
        return 0.0

    def _var(self) -> Any:
        return 1.0


class _Cauchy(Continuous):
    """Cauchy distribution, with density ``1 / (pi (1 + x**2))``.

    Examples
    --------
    >>> from funcgrad.scipy.stats import cauchy
    >>> float(cauchy.cdf(0.0))
    0.5
    """

    def _log_density(self, x: Any) -> Any:
        return -math.log(math.pi) - 2 * np.log(np.hypot(1.0, x))  # x * x would overflow

    def _density(self, x: Any) -> Any:
        return 1 / (math.pi * np.square(np.hypot(1.0, x)))

    def _cdf(self, x: Any) -> Any:
        return np.arctan2(1.0, -x) / math.pi  # no difference from 1/2, which would cancel

    def _sf(self, x: Any) -> Any:
        return np.arctan2(1.0, x) / math.pi

    def _ppf(self, q: Any) -> Any:
        # In the middle the tangent of the difference is exact, in the tails that of q itself.
        middle = np.less(np.abs(q - 0.5), 0.25)
        inner = np.tan(math.pi * (selected(middle, q, 0.5) - 0.5))
        upper = np.greater(q, 0.5)
        tail = selected(middle, 0.25, selected(upper, 1 - q, q))
        outer = 1 / np.tan(math.pi * tail)
        return selected(middle, inner, selected(upper, outer, -outer))

    def _isf(self, q: Any) -> Any:
        return -self._ppf(q)

    def _entropy(self) -> Any:
        return math.log(4 * math.pi)

    def _mean(self) -> Any:
        return math.nan

    def _var(self) -> Any:
        return math.nan


class _T(Continuous):
    """Student's t distribution with `df` degrees of freedom; infinitely many are the normal one.

    Examples
    --------
    >>> from funcgrad.scipy.stats import t
    >>> float(t.sf(0.0, df=3.0))
    0.5
    """

    _shapes = ("df",)
    _typical = (1.0,)

    def _log_density(self, x: Any, df: Any) -> Any:
        def finite(df: Any) -> Any:
            # betaln, not a difference of two gammaln, which cancels for large df.
            value = -_betaln_half(0.5 * df) - 0.5 * np.log(df)
            return value - 0.5 * (df + 1) * np.log1p(np.square(x) / df)

        return _with_normal(df, finite, norm._log_density, x)

    def _cdf(self, x: Any, df: Any) -> Any:
        def finite(df: Any) -> Any:
            return special.stdtr(df, x)

        return _with_normal(df, finite, norm._cdf, x)

    def _sf(self, x: Any, df: Any) -> Any:
        return self._cdf(-x, df)

    def _ppf(self, q: Any, df: Any) -> Any:
        def finite(df: Any) -> Any:
            return special.stdtrit(df, q)

        return _with_normal(df, finite, norm._ppf, q)

    def _isf(self, q: Any, df: Any) -> Any:
        return -self._ppf(q, df)

    def _entropy(self, df: Any) -> Any:
        # With many degrees of freedom the differences cancel; then a series in 1 / df.
        many = np.greater(df, 100)
        few = 0.5 * selected(many, 1.0, df)
        exact = (few + 0.5) * (special.psi(few + 0.5) - special.psi(few))
        exact = exact + 0.5 * np.log(2 * few) + _betaln_half(few)
        r = 1 / selected(many, df, 100.0)
        series = 1 + r * (0.25 + r * (-1 / 6 + r * (-0.125 + r * (0.3 + r * 0.25))))
        return selected(many, norm._entropy() + r * series, exact)

    def _mean(self, df: Any) -> Any:
        return selected(np.greater(df, 1), 0.0, np.inf)

    def _var(self, df: Any) -> Any:
        finite = np.greater(df, 2)
        many = selected(np.logical_and(finite, np.isfinite(df)), df, 4.0)
        value = selected(np.isinf(df), 1.0, many / (many - 2))
        return selected(finite, value, selected(np.greater(df, 1), np.inf, np.nan))


def _betaln_half(a: Any) -> Any:
    # Of float32 and a Python number SciPy's ufuncs make float64.
    return special.betaln(a, dtype_of(a).type(0.5))


def _with_normal(df: Any, finite: Any, normal: Any, x: Any) -> Any:
    """Return ``finite(df)``, or ``normal(x)`` where there are infinitely many degrees."""
    endless = np.isinf(df)
    if none_of(endless):
        return finite(df)
    return selected(endless, normal(x), finite(selected(endless, 1.0, df)))


class _Laplace(Continuous):
    """Laplace distribution, with density ``exp(-abs(x)) / 2``.

    Examples
    --------
    >>> from funcgrad.scipy.stats import laplace
    >>> float(laplace.pdf(0.0))
    0.5
    """

    def _log_density(self, x: Any) -> Any:
        return -_LOG_2 - np.abs(x)

    def _cdf(self, x: Any) -> Any:
        right = np.greater(x, 0)
        left_tail = 0.5 * np.exp(selected(right, 0.0, x))
        right_tail = 0.5 * np.exp(-selected(right, x, 0.0))
        return selected(right, 1 - right_tail, left_tail)

    def _sf(self, x: Any) -> Any:
        return self._cdf(-x)

    def _logcdf(self, x: Any) -> Any:
        right = np.greater(x, 0)
        right_tail = 0.5 * np.exp(-selected(right, x, 0.0))
        return selected(right, np.log1p(-right_tail), x - _LOG_2)

    def _logsf(self, x: Any) -> Any:
        return self._logcdf(-x)

    def _ppf(self, q: Any) -> Any:
        right = np.greater(q, 0.5)
        tail = np.log(2 * selected(right, 1 - q, q))
        return selected(right, -tail, tail)

    def _isf(self, q: Any) -> Any:
        return -self._ppf(q)

    def _entropy(self) -> Any:
        return _LOG_2 + 1

    def _mean(self) -> Any:
        return 0.0

    def _var(self) -> Any:
        return 2.0


class _Logistic(Continuous):
    """Logistic distribution, whose `cdf` is ``1 / (1 + exp(-x))``.

    Examples
    --------
    >>> from funcgrad.scipy.stats import logistic
    >>> float(logistic.cdf(0.0))
    0.5
    """

    def _log_density(self, x: Any) -> Any:
        return -np.logaddexp(0.0, -x) - np.logaddexp(0.0, x)

    def _cdf(self, x: Any) -> Any:
        return special.expit(x)

    def _sf(self, x: Any) -> Any:
        return special.expit(-x)

    def _logcdf(self, x: Any) -> Any:
        return -np.logaddexp(0.0, -x)

    def _logsf(self, x: Any) -> Any:
        return -np.logaddexp(0.0, x)

    def _ppf(self, q: Any) -> Any:
        return special.logit(q)

    def _isf(self, q: Any) -> Any:
        return -special.logit(q)

    def _entropy(self) -> Any:
        return 2.0

    def _mean(self) -> Any:
        return 0.0

    def _var(self) -> Any:
        return math.pi**2 / 3


class _GumbelR(Continuous):
    """Gumbel distribution of maxima, whose `cdf` is ``exp(-exp(-x))``.

    Examples
    --------
    >>> from funcgrad.scipy.stats import gumbel_r
    >>> float(gumbel_r.logcdf(0.0))
    -1.0
    """

    def _log_density(self, x: Any) -> Any:
        return -x - np.exp(-x)

    def _cdf(self, x: Any) -> Any:
        return np.exp(-np.exp(-x))

    def _sf(self, x: Any) -> Any:
        return -np.expm1(-np.exp(-x))

    def _logcdf(self, x: Any) -> Any:
        return -np.exp(-x)

    def _ppf(self, q: Any) -> Any:
        return -np.log(-np.log(q))

    def _isf(self, q: Any) -> Any:
        return -np.log(-np.log1p(-q))

    def _entropy(self) -> Any:
        return np.euler_gamma + 1

    def _mean(self) -> Any:
        return np.euler_gamma

    def _var(self) -> Any:
        return math.pi**2 / 6


class _GumbelL(Continuous):
    """Gumbel distribution of minima, whose `sf` is ``exp(-exp(x))``.

    Examples
    --------
    >>> from funcgrad.scipy.stats import gumbel_l
    >>> float(gumbel_l.logsf(0.0))
    -1.0
    """

    def _log_density(self, x: Any) -> Any:
        return x - np.exp(x)

    def _cdf(self, x: Any) -> Any:
        return -np.expm1(-np.exp(x))

    def _sf(self, x: Any) -> Any:
        return np.exp(-np.exp(x))

    def _logsf(self, x: Any) -> Any:
        return -np.exp(x)

    def _ppf(self, q: Any) -> Any:
        return np.log(-np.log1p(-q))

    def _isf(self, q: Any) -> Any:
        return np.log(-np.log(q))

    def _entropy(self) -> Any:
        return np.euler_gamma + 1

    def _mean(self) -> Any:
        return -np.euler_gamma

    def _var(self) -> Any:
        return math.pi**2 / 6


class _GenNorm(Continuous):
    """Generalized normal distribution, with density proportional to ``exp(-abs(x)**beta)``.

    Examples
    --------
    >>> from funcgrad.scipy.stats import gennorm
    >>> float(gennorm.pdf(0.0, beta=1.0))
    0.5
    """

    _shapes = ("beta",)
    _typical = (1.0,)

    def _log_density(self, x: Any, beta: Any) -> Any:
        return np.log(0.5 * beta) - special.gammaln(1 / beta) - np.power(np.abs(x), beta)

    def _cdf(self, x: Any, beta: Any) -> Any:
        # abs(x)**beta hides the slope at 0, which is the density there.
        zero = np.equal(x, 0)
        away = selected(zero, 1.0, x)
        half = 0.5 * np.sign(away)
        tail = half * special.gammaincc(1 / beta, np.power(np.abs(away), beta))
        tangent = 0.5 + x * self._density(0.0, beta)
        return selected(zero, tangent, (0.5 + half) - tail)

    def _sf(self, x: Any, beta: Any) -> Any:
        return self._cdf(-x, beta)

    def _ppf(self, q: Any, beta: Any) -> Any:
        # The middle, where the distance from 0 has no derivative, has that of the density.
        half = np.equal(q, 0.5)
        away = selected(half, 0.25, q)
        upper = np.greater(away, 0.5)
        tail = 2 * selected(upper, 1 - away, away)
        distance = np.power(special.gammainccinv(1 / beta, tail), 1 / beta)
        tangent = (q - 0.5) / self._density(0.0, beta)
        return selected(half, tangent, selected(upper, distance, -distance))

    def _isf(self, q: Any, beta: Any) -> Any:
        return -self._ppf(q, beta)

    def _entropy(self, beta: Any) -> Any:
        return 1 / beta - np.log(0.5 * beta) + special.gammaln(1 / beta)

    def _mean(self, beta: Any) -> Any:
        return 0 * beta

    def _var(self, beta: Any) -> Any:
        return np.exp(special.gammaln(3 / beta) - special.gammaln(1 / beta))


class _SkewNorm(Continuous):
    """Skewed normal distribution, with density ``2 phi(x) Phi(a x)``.

    Examples
    --------
    >>> from funcgrad.scipy.stats import norm, skewnorm
    >>> bool(skewnorm.pdf(0.0, 4.0) == norm.pdf(0.0))
    True
    """

    _shapes = ("a",)
    _typical = (0.0,)

    def _valid(self, a: Any) -> Any:
        return np.isfinite(a)

    def _log_density(self, x: Any, a: Any) -> Any:
        return _LOG_2 + norm._log_density(x) + special.log_ndtr(a * x)

    def _mean(self, a: Any) -> Any:
        return math.sqrt(2 / math.pi) * a / np.hypot(1.0, a)

    def _var(self, a: Any) -> Any:
        return 1 - np.square(self._mean(a))


norm = _Norm("norm")
cauchy = _Cauchy("cauchy")
t = _T("t")
laplace = _Laplace("laplace")
logistic = _Logistic("logistic")
gumbel_r = _GumbelR("gumbel_r")
gumbel_l = _GumbelL("gumbel_l")
gennorm = _GenNorm("gennorm")
skewnorm = _SkewNorm("skewnorm")
