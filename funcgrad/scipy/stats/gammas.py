"""Distributions whose probabilities are incomplete gamma and beta functions.

Formulas of the standard form, as in `funcgrad.scipy.stats.continuous`. Logarithms of what may be 0
at the bound of the support are written with `xlogy`, so that ``0 log 0`` is 0 there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from funcgrad.scipy.stats._base import Continuous, Positive
from funcgrad.scipy.stats._wrapped import selected

__all__ = [
    "beta",
    "chi2",
    "f",
    "gamma",
    "invgamma",
]


class _Gamma(Positive):
    """Gamma distribution, with density proportional to ``x**(a-1) exp(-x)``.

    Examples
    --------
    >>> from funcgrad.scipy.stats import gamma
    >>> float(gamma.mean(2.0, scale=3.0))
    6.0
    """

    _shapes = ("a",)
    _typical = (1.0,)

    def _log_density(self, x: Any, a: Any) -> Any:
        return special.xlogy(a - 1, x) - x - special.gammaln(a)

    def _cdf(self, x: Any, a: Any) -> Any:
        return special.gammainc(a, x)

    def _sf(self, x: Any, a: Any) -> Any:
        return special.gammaincc(a, x)

    def _ppf(self, q: Any, a: Any) -> Any:
        return special.gammaincinv(a, q)

    def _isf(self, q: Any, a: Any) -> Any:
        return special.gammainccinv(a, q)

    def _entropy(self, a: Any) -> Any:
        return a + special.gammaln(a) + (1 - a) * special.psi(a)

    def _mean(self, a: Any) -> Any:
        return 1 * a

    def _var(self, a: Any) -> Any:
        return 1 * a


class _Chi2(Positive):
    """Chi-squared distribution with `df` degrees of freedom.

    Examples
    --------
    >>> from funcgrad.scipy.stats import chi2
    >>> float(chi2.pdf(0.0, df=2.0))
    0.5
    """

    _shapes = ("df",)
    _typical = (2.0,)

    def _log_density(self, x: Any, df: Any) -> Any:
        half = 0.5 * df
        return special.xlogy(half - 1, 0.5 * x) - 0.5 * x - special.gammaln(half) - math.log(2)

    def _cdf(self, x: Any, df: Any) -> Any:
        return special.gammainc(0.5 * df, 0.5 * x)

    def _sf(self, x: Any, df: Any) -> Any:
        return special.gammaincc(0.5 * df, 0.5 * x)

    def _ppf(self, q: Any, df: Any) -> Any:
        return 2 * special.gammaincinv(0.5 * df, q)

    def _isf(self, q: Any, df: Any) -> Any:
        return 2 * special.gammainccinv(0.5 * df, q)

    def _entropy(self, df: Any) -> Any:
        return gamma._entropy(0.5 * df) + math.log(2)

    def _mean(self, df: Any) -> Any:
        return 1 * df

    def _var(self, df: Any) -> Any:
        return 2 * df


class _InvGamma(Positive):
    """Distribution of ``1 / y`` where `y` has the gamma distribution.

    Examples
    --------
    >>> from funcgrad.scipy.stats import invgamma
    >>> float(invgamma.mean(3.0))
    0.5
    """

    _shapes = ("a",)
    _typical = (1.0,)
    _closed = False

    def _log_density(self, x: Any, a: Any) -> Any:
        return -(a + 1) * np.log(x) - special.gammaln(a) - 1 / x

    def _cdf(self, x: Any, a: Any) -> Any:
        return special.gammaincc(a, 1 / x)

    def _sf(self, x: Any, a: Any) -> Any:
        return special.gammainc(a, 1 / x)

    def _ppf(self, q: Any, a: Any) -> Any:
        return 1 / special.gammainccinv(a, q)

    def _isf(self, q: Any, a: Any) -> Any:
        return 1 / special.gammaincinv(a, q)

    def _entropy(self, a: Any) -> Any:
        return a - (a + 1) * special.psi(a) + special.gammaln(a)

    def _mean(self, a: Any) -> Any:
        finite = np.greater(a, 1)
        return selected(finite, 1 / (selected(finite, a, 2.0) - 1), np.inf)

    def _var(self, a: Any) -> Any:
        finite = np.greater(a, 2)
        many = selected(finite, a, 3.0)
        return selected(finite, 1 / (np.square(many - 1) * (many - 2)), np.inf)


def _share(a: Any, b: Any, part: Any, rest: Any) -> Any:
    """Return ``betainc(a, b, part / (part + rest))``: by the rest where the quotient nears 1."""
    near = np.greater(part, rest)
    first, second = selected(near, rest, part), selected(near, part, rest)
    quotient = first / (first + second)
    return selected(
        near,
        special.betaincc(b, a, selected(near, quotient, 0.5)),
        special.betainc(a, b, selected(near, 0.5, quotient)),
    )


class _F(Positive):
    """F distribution with `dfn` and `dfd` degrees of freedom.

    Examples
    --------
    >>> from funcgrad.scipy.stats import f
    >>> float(f.mean(2.0, 4.0))
    2.0
    """

    _shapes = ("dfn", "dfd")
    _typical = (2.0, 2.0)

    def _log_density(self, x: Any, dfn: Any, dfd: Any) -> Any:
        n, m = 0.5 * dfn, 0.5 * dfd
        value = special.xlogy(n - 1, x) - (n + m) * np.log(dfd + dfn * x)
        return value + m * np.log(dfd) + n * np.log(dfn) - special.betaln(n, m)

    def _cdf(self, x: Any, dfn: Any, dfd: Any) -> Any:
        return _share(0.5 * dfn, 0.5 * dfd, dfn * x, dfd)

    def _sf(self, x: Any, dfn: Any, dfd: Any) -> Any:
        return _share(0.5 * dfd, 0.5 * dfn, dfd, dfn * x)

    def _ppf(self, q: Any, dfn: Any, dfd: Any) -> Any:
        n, m = 0.5 * dfn, 0.5 * dfd
        return dfd * special.betaincinv(n, m, q) / (dfn * special.betainccinv(m, n, q))

    def _isf(self, q: Any, dfn: Any, dfd: Any) -> Any:
        n, m = 0.5 * dfn, 0.5 * dfd
        return dfd * special.betainccinv(n, m, q) / (dfn * special.betaincinv(m, n, q))

    def _entropy(self, dfn: Any, dfd: Any) -> Any:
        n, m = 0.5 * dfn, 0.5 * dfd
        value = np.log(dfd) - np.log(dfn) + special.betaln(n, m) + (1 - n) * special.psi(n)
        return value - (1 + m) * special.psi(m) + (n + m) * special.psi(n + m)

    def _mean(self, dfn: Any, dfd: Any) -> Any:
        finite = np.greater(dfd, 2)
        many = selected(finite, dfd, 3.0)
        return selected(finite, many / (many - 2), np.inf) + 0 * dfn

    def _var(self, dfn: Any, dfd: Any) -> Any:
        finite = np.greater(dfd, 4)
        many = selected(finite, dfd, 5.0)
        value = 2 * np.square(many / (many - 2)) * (dfn + many - 2) / (dfn * (many - 4))
        return selected(finite, value, np.inf)


class _Beta(Continuous):
    """Beta distribution, with density proportional to ``x**(a-1) (1-x)**(b-1)``.

    Examples
    --------
    >>> from funcgrad.scipy.stats import beta
    >>> float(beta.mean(1.0, 3.0))
    0.25
    """

    _shapes = ("a", "b")
    _typical = (1.0, 1.0)
    _support = (0.0, 1.0)
    _middle = 0.5

    def _log_density(self, x: Any, a: Any, b: Any) -> Any:
        return special.xlogy(a - 1, x) + special.xlog1py(b - 1, -x) - special.betaln(a, b)

    def _cdf(self, x: Any, a: Any, b: Any) -> Any:
        return special.betainc(a, b, x)

    def _sf(self, x: Any, a: Any, b: Any) -> Any:
        return special.betaincc(a, b, x)

    def _ppf(self, q: Any, a: Any, b: Any) -> Any:
        return special.betaincinv(a, b, q)

    def _isf(self, q: Any, a: Any, b: Any) -> Any:
        return special.betainccinv(a, b, q)

    def _entropy(self, a: Any, b: Any) -> Any:
        value = special.betaln(a, b) - (a - 1) * special.psi(a) - (b - 1) * special.psi(b)
        return value + (a + b - 2) * special.psi(a + b)

    def _mean(self, a: Any, b: Any) -> Any:
        return a / (a + b)

    def _var(self, a: Any, b: Any) -> Any:
        return a * b / (np.square(a + b) * (a + b + 1))


gamma = _Gamma("gamma")
chi2 = _Chi2("chi2")
invgamma = _InvGamma("invgamma")
f = _F("f")
beta = _Beta("beta")
