"""Distributions of counts.

Formulas of the standard form, as in `funcgrad.scipy.stats.continuous`. The binomial coefficients
are those of the gamma function, which continues them smoothly between integers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from funcgrad.core.level import looked_at
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.scipy.stats._base import Discrete
from funcgrad.scipy.stats._wrapped import selected

__all__ = ["bernoulli", "betabinom", "binom", "geom", "nbinom", "poisson"]


def _is_probability(p: Any) -> Any:
    return np.logical_and(np.greater_equal(p, 0), np.less_equal(p, 1))


def _is_count(n: Any) -> Any:
    return np.logical_and(np.greater_equal(n, 0), np.equal(np.floor(n), n))


def _log_choose(n: Any, k: Any) -> Any:
    return special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)


class _Bernoulli(Discrete):
    """Bernoulli distribution: 1 with probability `p`, else 0.

    Examples
    --------
    >>> from funcgrad.scipy.stats import bernoulli
    >>> float(bernoulli.cdf(0, p=0.25))
    0.75
    """

    _shapes = ("p",)
    _typical = (0.5,)
    _support = (0.0, 1.0)

    def _valid(self, p: Any) -> Any:
        return _is_probability(p)

    def _log_density(self, k: Any, p: Any) -> Any:
        return special.xlogy(k, p) + special.xlog1py(1 - k, -p)

    def _cdf(self, k: Any, p: Any) -> Any:
        return 1 - p + 0 * k

    def _sf(self, k: Any, p: Any) -> Any:
        return p + 0 * k

    def _ppf(self, q: Any, p: Any) -> Any:
        return selected(np.greater(q, 1 - p), 1.0, 0.0)

    def _isf(self, q: Any, p: Any) -> Any:
        return selected(np.less(q, p), 1.0, 0.0)

    def _entropy(self, p: Any) -> Any:
        return special.entr(p) + special.entr(1 - p)

    def _mean(self, p: Any) -> Any:
        return 1 * p

    def _var(self, p: Any) -> Any:
        return p * (1 - p)


class _Binom(Discrete):
    """Binomial distribution: successes among `n` trials, each of probability `p`.

    Examples
    --------
    >>> from funcgrad.scipy.stats import binom
    >>> round(float(binom.pmf(1, n=2, p=0.5)), 12)
    0.5
    """

    _shapes = ("n", "p")
    _typical = (1.0, 0.5)

    def _valid(self, n: Any, p: Any) -> Any:
        return np.logical_and(_is_count(n), _is_probability(p))

    def _bounds(self, n: Any, p: Any) -> tuple[Any, Any]:
        return 0.0, n

    def _log_density(self, k: Any, n: Any, p: Any) -> Any:
        return _log_choose(n, k) + special.xlogy(k, p) + special.xlog1py(n - k, -p)

    def _cdf(self, k: Any, n: Any, p: Any) -> Any:
        return special.betainc(selected(np.less(k, n), n - k, 1.0), k + 1, 1 - p)

    def _sf(self, k: Any, n: Any, p: Any) -> Any:
        return special.betainc(k + 1, selected(np.less(k, n), n - k, 1.0), p)

    def _mean(self, n: Any, p: Any) -> Any:
        return n * p

    def _var(self, n: Any, p: Any) -> Any:
        return n * p * (1 - p)


class _BetaBinom(Discrete):
    """Binomial distribution whose probability has the beta distribution of `a` and `b`.

    Examples
    --------
    >>> from funcgrad.scipy.stats import betabinom
    >>> round(float(betabinom.pmf(1, n=3, a=1.0, b=1.0)), 12)
    0.25
    """

    _shapes = ("n", "a", "b")
    _typical = (1.0, 1.0, 1.0)

    def _valid(self, n: Any, a: Any, b: Any) -> Any:
        return np.logical_and(_is_count(n), np.logical_and(np.greater(a, 0), np.greater(b, 0)))

    def _bounds(self, n: Any, a: Any, b: Any) -> tuple[Any, Any]:
        return 0.0, n

    def _log_density(self, k: Any, n: Any, a: Any, b: Any) -> Any:
        value = special.betaln(k + a, n - k + b) - special.betaln(a, b)
        return value - np.log(n + 1) - special.betaln(n - k + 1, k + 1)

    def _mean(self, n: Any, a: Any, b: Any) -> Any:
        return n * a / (a + b)

    def _var(self, n: Any, a: Any, b: Any) -> Any:
        return n * (a + b + n) * a * b / (np.square(a + b) * (a + b + 1))


class _Geom(Discrete):
    """Geometric distribution: trials up to the first success, each of probability `p`.

    Examples
    --------
    >>> from funcgrad.scipy.stats import geom
    >>> round(float(geom.pmf(2, p=0.5)), 12)
    0.25
    """

    _shapes = ("p",)
    _typical = (0.5,)
    _support = (1.0, np.inf)
    _middle = 1.0

    def _valid(self, p: Any) -> Any:
        return np.logical_and(np.greater(p, 0), np.less_equal(p, 1))

    def _log_density(self, k: Any, p: Any) -> Any:
        return special.xlog1py(k - 1, -p) + np.log(p)

    def _cdf(self, k: Any, p: Any) -> Any:
        return -np.expm1(special.xlog1py(k, -p))

    def _sf(self, k: Any, p: Any) -> Any:
        return np.exp(special.xlog1py(k, -p))

    def _logsf(self, k: Any, p: Any) -> Any:
        return special.xlog1py(k, -p)

    def _entropy(self, p: Any) -> Any:
        return (special.entr(p) + special.entr(1 - p)) / p

    def _mean(self, p: Any) -> Any:
        return 1 / p

    def _var(self, p: Any) -> Any:
        return (1 - p) / np.square(p)


class _NBinom(Discrete):
    """Negative binomial distribution: failures before the `n`-th success, of probability `p`.

    Examples
    --------
    >>> from funcgrad.scipy.stats import nbinom
    >>> round(float(nbinom.pmf(0, n=2, p=0.5)), 12)
    0.25
    """

    _shapes = ("n", "p")
    _typical = (1.0, 0.5)
    _support = (0.0, np.inf)

    def _valid(self, n: Any, p: Any) -> Any:
        possible = np.logical_and(np.greater(p, 0), np.less_equal(p, 1))
        return np.logical_and(np.greater(n, 0), possible)

    def _log_density(self, k: Any, n: Any, p: Any) -> Any:
        choose = special.gammaln(n + k) - special.gammaln(k + 1) - special.gammaln(n)
        return choose + n * np.log(p) + special.xlog1py(k, -p)

    def _cdf(self, k: Any, n: Any, p: Any) -> Any:
        return special.betainc(n, k + 1, p)

    def _sf(self, k: Any, n: Any, p: Any) -> Any:
        return special.betainc(k + 1, n, 1 - p)

    def _mean(self, n: Any, p: Any) -> Any:
        return n * (1 - p) / p

    def _var(self, n: Any, p: Any) -> Any:
        return n * (1 - p) / np.square(p)


class _Poisson(Discrete):
    """Poisson distribution of mean `mu`.

    Examples
    --------
    >>> from funcgrad.scipy.stats import poisson
    >>> float(poisson.logpmf(0, mu=3.0))
    -3.0
    """

    _shapes = ("mu",)
    _typical = (1.0,)
    _support = (0.0, np.inf)

    def _valid(self, mu: Any) -> Any:
        return np.greater_equal(mu, 0)

    def _log_density(self, k: Any, mu: Any) -> Any:
        return special.xlogy(k, mu) - special.gammaln(k + 1) - mu

    def _cdf(self, k: Any, mu: Any) -> Any:
        return special.gammaincc(k + 1, mu)

    def _sf(self, k: Any, mu: Any) -> Any:
        return special.gammainc(k + 1, mu)

    def _entropy(self, mu: Any) -> Any:
        # By summation; for large mu by a series in 1 / mu, of which the first term that is left
        # out is below 1e-13 there.
        large = np.greater(mu, _MANY)
        few = selected(large, 1.0, mu)
        most = min(_MANY, float(np.max(looked_at(mu, "the number of terms"), initial=0.0)))
        k = np.arange(math.ceil(most + 12 * math.sqrt(most)) + 40, dtype=dtype_of(mu))
        k = np.reshape(k, (-1,) + (1,) * len(shape_of(mu)))
        exact = np.sum(special.entr(np.exp(self._log_density(k, few))), axis=0)
        many = selected(large, mu, _MANY)
        series = 1 / 12 + (1 / 24 + (19 / 360 + 9 / (80 * many)) / many) / many
        return selected(large, 0.5 * np.log(2 * math.pi * math.e * many) - series / many, exact)

    def _mean(self, mu: Any) -> Any:
        return 1 * mu

    def _var(self, mu: Any) -> Any:
        return 1 * mu


_MANY = 400.0

bernoulli = _Bernoulli("bernoulli")
binom = _Binom("binom")
betabinom = _BetaBinom("betabinom")
geom = _Geom("geom")
nbinom = _NBinom("nbinom")
poisson = _Poisson("poisson")
