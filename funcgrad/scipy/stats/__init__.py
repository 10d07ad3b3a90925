"""SciPy's statistics for traced code: ``from funcgrad.scipy.stats import norm``.

Distributions whose densities and functions may be differentiated, forward, in reverse and under
`vmap`, to any order, with respect to the point, the shape parameters, `loc` and `scale`. They are
called as those of `scipy.stats` are, and can be frozen (``norm(loc, scale).logpdf(x)``). Every
other name, and every method that has no formula here (`rvs`, `fit`, ...), is SciPy's own; it takes
plain values only.

Values are composed of `numpy` and `scipy.special` functions. They agree with SciPy's to a relative
1e-12, not in every bit. The dtype follows NumPy's promotion, so float32 stays float32, where SciPy
often computes in float64. Outside of the support a density is 0 (its logarithm -inf), and its
derivatives are 0; with invalid parameters all is NaN, as in SciPy.
"""

from __future__ import annotations

from scipy import stats

from funcgrad.core.alternatives import offer
from funcgrad.core.namespace import standing_in
from funcgrad.scipy.stats._wrapped import without_formula
from funcgrad.scipy.stats.bounded import truncnorm, uniform, vonmises, wrapcauchy
from funcgrad.scipy.stats.continuous import (
    cauchy,
    gennorm,
    gumbel_l,
    gumbel_r,
    laplace,
    logistic,
    norm,
    skewnorm,
    t,
)
from funcgrad.scipy.stats.descriptive import (
    entropy,
    gmean,
    hmean,
    kurtosis,
    mode,
    moment,
    rankdata,
    sem,
    skew,
    variation,
    zscore,
)
from funcgrad.scipy.stats.discrete import bernoulli, betabinom, binom, geom, nbinom, poisson
from funcgrad.scipy.stats.gammas import beta, chi2, f, gamma, invgamma
from funcgrad.scipy.stats.kde import gaussian_kde
from funcgrad.scipy.stats.multivariate import dirichlet, multinomial, multivariate_normal
from funcgrad.scipy.stats.positive import (
    expon,
    halfcauchy,
    halfnorm,
    lognorm,
    pareto,
    rayleigh,
    weibull_min,
)

# What is replaced; other names are looked up in SciPy when they are asked for.
__all__ = [
    "bernoulli",
    "beta",
    "betabinom",
    "binom",
    "cauchy",
    "chi2",
    "dirichlet",
    "entropy",
    "expon",
    "f",
    "gamma",
    "gaussian_kde",
    "gennorm",
    "geom",
    "gmean",
    "gumbel_l",
    "gumbel_r",
    "halfcauchy",
    "halfnorm",
    "hmean",
    "invgamma",
    "kurtosis",
    "laplace",
    "logistic",
    "lognorm",
    "mode",
    "moment",
    "multinomial",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "rankdata",
    "rayleigh",
    "sem",
    "skew",
    "skewnorm",
    "t",
    "truncnorm",
    "uniform",
    "variation",
    "vonmises",
    "weibull_min",
    "wrapcauchy",
    "zscore",
]


offer("scipy.stats", __all__)

__getattr__, __dir__ = standing_in(__name__, stats, __all__, without_formula)
