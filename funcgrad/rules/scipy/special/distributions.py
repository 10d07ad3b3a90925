"""Distribution functions, as SciPy's ufuncs: chi-squared, gamma, Student, F, and the discrete ones.

In the variable the derivative is the density. In degrees of freedom and shapes it is that of the
incomplete gamma and beta functions they are made of, or taken from the distribution's own tails
(`funcgrad.rules.scipy.special.numerical`); some 1e-11 relative either way. Counts of the discrete
distributions are rounded by SciPy and have no derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special as sp

from funcgrad.core.elementwise import elementwise
from funcgrad.core.primitive import Sample
from funcgrad.rules.scipy.special.declare import factors, where_defined
from funcgrad.rules.scipy.special.incomplete import beta_density, gamma_density, gamma_slope
from funcgrad.rules.scipy.special.numerical import tail_slope

__all__: list[str] = []

_COUNT = "it is a count, which SciPy rounds"
_ROOT_2PI = float(np.sqrt(2.0 * np.pi))

# Chi-squared: gammainc(v / 2, x / 2)

chdtr = elementwise(sp.chdtr, domain=((0.5, 4.0), (0.5, 4.0)))


@chdtr.def_partial(0)
def chdtr_partial_v(t, x, y):
    return t * (0.5 * gamma_slope(0.5 * x, 0.5 * y))


@chdtr.def_partial(1)
def chdtr_partial_x(t, x, y):
    return t * (0.5 * gamma_density(0.5 * x, 0.5 * y))


chdtrc = elementwise(sp.chdtrc, domain=((0.5, 4.0), (0.5, 4.0)))


@chdtrc.def_partial(0)
def chdtrc_partial_v(t, x, y):
    return t * (-0.5 * gamma_slope(0.5 * x, 0.5 * y))


@chdtrc.def_partial(1)
def chdtrc_partial_x(t, x, y):
    return t * (-0.5 * gamma_density(0.5 * x, 0.5 * y))


chdtri = elementwise(sp.chdtri, domain=((0.5, 4.0), (0.1, 0.9)))


@chdtri.def_partial(0)
def chdtri_partial_v(t, x, out):
    half, at = 0.5 * x, 0.5 * out
    return t * (-gamma_slope(half, at) / gamma_density(half, at))


@chdtri.def_partial(1)
def chdtri_partial_p(t, x, out):
    return t / (-0.5 * gamma_density(0.5 * x, 0.5 * out))


# Gamma: gammainc(b, a * x)

gdtr = factors(sp.gdtr, "a b x")
gdtrc = factors(sp.gdtrc, "a b x")


@gdtr.def_partial(0)
def gdtr_partial_a(t, a, b, x):
    return t * (x * gamma_density(b, a * x))


@gdtr.def_partial(1)
def gdtr_partial_b(t, a, b, x):
    return t * gamma_slope(b, a * x)


@gdtr.def_partial(2)
def gdtr_partial_x(t, a, b, x):
    return t * (a * gamma_density(b, a * x))


@gdtrc.def_partial(0)
def gdtrc_partial_a(t, a, b, x):
    return t * (-x * gamma_density(b, a * x))


@gdtrc.def_partial(1)
def gdtrc_partial_b(t, a, b, x):
    return t * -gamma_slope(b, a * x)


@gdtrc.def_partial(2)
def gdtrc_partial_x(t, a, b, x):
    return t * (-a * gamma_density(b, a * x))


@gdtr.def_samples
@gdtrc.def_samples
def gdtr_samples(rng):
    a, b, x = rng.uniform(0.5, 3.0, size=(3, 4))
    yield Sample(a, b, x)
    yield Sample(np.float64(1.5), b, x[:, None])


gdtrix = factors(sp.gdtrix, "a b p")


@gdtrix.def_partial(0)
def gdtrix_partial_a(t, a, out):
    return t * (-out / a)


@gdtrix.def_partial(1)
def gdtrix_partial_b(t, a, b, out):
    return t * (-gamma_slope(b, a * out) / (a * gamma_density(b, a * out)))


@gdtrix.def_partial(2)
def gdtrix_partial_p(t, a, b, out):
    return t / (a * gamma_density(b, a * out))


@gdtrix.def_samples
def gdtrix_samples(rng):
    a, b = rng.uniform(0.5, 3.0, size=(2, 4))
    yield Sample(a, b, rng.uniform(0.1, 0.9, size=4), order=1)


# Student's t


def _student_density(df: Any, x: Any) -> Any:
    is_normal = np.equal(df, np.inf)
    df = np.where(is_normal, 1.0, df)
    log = -0.5 * (df + 1) * np.log1p(x * x / df) - 0.5 * np.log(df)
    student = np.exp(log - sp.betaln(0.5 * df, 0.5))
    return np.where(is_normal, np.exp(-0.5 * x * x) / _ROOT_2PI, student)


def _student_slope(df: Any, x: Any) -> Any:
    """Return the derivative of ``stdtr(df, x)`` in `df`."""

    def lower(p: Any) -> Any:
        return sp.stdtr(p, x)

    def upper(p: Any) -> Any:
        return sp.stdtr(p, -x)

    is_normal = np.equal(df, np.inf)
    df = np.where(is_normal, 1.0, df)
    return np.where(is_normal, 0, tail_slope(lower, upper, df, df))


stdtr = elementwise(sp.stdtr, domain=((1.0, 6.0), (-2.0, 2.0)))


@stdtr.def_partial(0)
def stdtr_partial_df(t, x, y):
    return t * _student_slope(x, y)


@stdtr.def_partial(1)
def stdtr_partial_x(t, x, y):
    return t * _student_density(x, y)


stdtrit = elementwise(sp.stdtrit, domain=((1.5, 6.0), (0.1, 0.9)))


@stdtrit.def_partial(0)
def stdtrit_partial_df(t, x, out):
    return t * (-_student_slope(x, out) / _student_density(x, out))


@stdtrit.def_partial(1)
def stdtrit_partial_p(t, x, out):
    return t / _student_density(x, out)


# Fisher's F: betainc(m / 2, n / 2, m x / (m x + n))


def _fisher_density(m: Any, n: Any, x: Any) -> Any:
    total = m * x + n
    return m * n / (total * total) * beta_density(0.5 * m, 0.5 * n, m * x / total)


def _fisher_slopes(m: Any, n: Any, x: Any) -> tuple[Any, Any]:
    """Return two functions for the derivatives of ``fdtr(m, n, x)`` in `m` and `n`."""

    def by_m() -> Any:
        def lower(p: Any) -> Any:
            return sp.fdtr(p, n, x)

        def upper(p: Any) -> Any:
            return sp.fdtrc(p, n, x)

        return tail_slope(lower, upper, m, m)

    def by_n() -> Any:
        def lower(p: Any) -> Any:
            return sp.fdtr(m, p, x)

        def upper(p: Any) -> Any:
            return sp.fdtrc(m, p, x)

        return tail_slope(lower, upper, n, n)

    return by_m, by_n


fdtr = factors(sp.fdtr, "dfn dfd x")
fdtrc = factors(sp.fdtrc, "dfn dfd x")


@fdtr.def_partial(0)
def fdtr_partial_dfn(t, dfn, dfd, x):
    return t * _fisher_slopes(dfn, dfd, x)[0]()


@fdtr.def_partial(1)
def fdtr_partial_dfd(t, dfn, dfd, x):
    return t * _fisher_slopes(dfn, dfd, x)[1]()


@fdtr.def_partial(2)
def fdtr_partial_x(t, dfn, dfd, x):
    return t * _fisher_density(dfn, dfd, x)


@fdtrc.def_partial(0)
def fdtrc_partial_dfn(t, dfn, dfd, x):
    return t * -_fisher_slopes(dfn, dfd, x)[0]()


@fdtrc.def_partial(1)
def fdtrc_partial_dfd(t, dfn, dfd, x):
    return t * -_fisher_slopes(dfn, dfd, x)[1]()


@fdtrc.def_partial(2)
def fdtrc_partial_x(t, dfn, dfd, x):
    return t * -_fisher_density(dfn, dfd, x)


@fdtr.def_samples
@fdtrc.def_samples
def fdtr_samples(rng):
    m, n, x = rng.uniform(1.0, 5.0, size=(3, 4))
    yield Sample(m, n, x)
    yield Sample(np.float64(2.5), n, x[:, None])


fdtri = factors(sp.fdtri, "dfn dfd p")


@fdtri.def_partial(0)
def fdtri_partial_dfn(t, dfn, dfd, out):
    return t * (-_fisher_slopes(dfn, dfd, out)[0]() / _fisher_density(dfn, dfd, out))


@fdtri.def_partial(1)
def fdtri_partial_dfd(t, dfn, dfd, out):
    return t * (-_fisher_slopes(dfn, dfd, out)[1]() / _fisher_density(dfn, dfd, out))


@fdtri.def_partial(2)
def fdtri_partial_p(t, dfn, dfd, out):
    return t / _fisher_density(dfn, dfd, out)


@fdtri.def_samples
def fdtri_samples(rng):
    m, n = rng.uniform(1.0, 5.0, size=(2, 4))
    yield Sample(m, n, rng.uniform(0.1, 0.9, size=4), order=1)


# Poisson, binomial and negative binomial: sums of probabilities up to a count

pdtr = factors(sp.pdtr, "k m")
pdtrc = factors(sp.pdtrc, "k m")
pdtri = factors(sp.pdtri, "k y")


@pdtr.def_partial(1)
def pdtr_partial_m(t, k, m, out):
    return t * where_defined(out, -gamma_density(np.floor(k) + 1, m))


@pdtrc.def_partial(1)
def pdtrc_partial_m(t, k, m, out):
    return t * where_defined(out, gamma_density(np.floor(k) + 1, m))


@pdtri.def_partial(1)
def pdtri_partial_y(t, k, out):
    return t / -gamma_density(np.floor(k) + 1, out)


bdtr = factors(sp.bdtr, "k n p")
bdtrc = factors(sp.bdtrc, "k n p")
bdtri = factors(sp.bdtri, "k n y")


@bdtr.def_partial(2)
def bdtr_partial_p(t, k, n, p, out):
    return t * where_defined(out, -_binomial_density(k, n, p))


@bdtrc.def_partial(2)
def bdtrc_partial_p(t, k, n, p, out):
    return t * where_defined(out, _binomial_density(k, n, p))


@bdtri.def_partial(2)
def bdtri_partial_y(t, k, n, out):
    return t / where_defined(out, -_binomial_density(k, n, out))


def _binomial_density(k: Any, n: Any, p: Any) -> Any:
    """Return the derivative of the probability of more than `k` out of `n` successes."""
    count, n = np.floor(k), np.trunc(n)
    inside = np.greater_equal(count, 0) & np.less(count, n)  # else it is 0 or 1 for all p
    density = beta_density(np.where(inside, count + 1, 1.0), np.where(inside, n - count, 1.0), p)
    return np.where(inside, density, 0)


def _negative_binomial_density(k: Any, n: Any, p: Any) -> Any:
    return beta_density(1.0 * np.trunc(n), np.trunc(k) + 1.0, p)


nbdtr = factors(sp.nbdtr, "k n p")
nbdtrc = factors(sp.nbdtrc, "k n p")


@nbdtr.def_partial(2)
def nbdtr_partial_p(t, k, n, p, out):
    return t * where_defined(out, _negative_binomial_density(k, n, p))


@nbdtrc.def_partial(2)
def nbdtrc_partial_p(t, k, n, p, out):
    return t * where_defined(out, -_negative_binomial_density(k, n, p))


for _made in (pdtr, pdtrc, pdtri, bdtr, bdtrc, bdtri, nbdtr, nbdtrc):
    for _index in range(len(_made.arguments) - 1):
        _made.no_partial(_index, _COUNT)


@pdtr.def_samples
@pdtrc.def_samples
def pdtr_samples(rng):
    yield Sample(np.array([0, 1, 4]), rng.uniform(0.5, 3.0, size=(2, 3)))
    yield Sample(2.0, np.float64(1.5))


@pdtri.def_samples
def pdtri_samples(rng):
    yield Sample(np.array([0, 1, 4]), rng.uniform(0.1, 0.9, size=(2, 3)), order=1)


@bdtr.def_samples
@bdtrc.def_samples
def bdtr_samples(rng):
    k = np.array([0, 1, 4])
    yield Sample(k, np.array([3, 4, 4]), rng.uniform(0.1, 0.9, size=(2, 3)))


@bdtri.def_samples
def bdtri_samples(rng):
    k = np.array([0, 1, 3])
    yield Sample(k, np.array([3, 4, 4]), rng.uniform(0.1, 0.9, size=(2, 3)), order=1)


@nbdtr.def_samples
@nbdtrc.def_samples
def nbdtr_samples(rng):
    k = np.array([0, 1, 4])
    yield Sample(k, np.array([3, 4, 4]), rng.uniform(0.1, 0.9, size=(2, 3)))


# Kolmogorov's limit: an alternating series, and one of theta functions where that is slow

kolmogorov = elementwise(sp.kolmogorov, domain=(0.4, 2.0))
kolmogi = elementwise(sp.kolmogi, domain=(0.1, 0.9))


def _kolmogorov_slope(x: Any) -> Any:
    is_small = np.less(x, 1)
    # Below 0.02 it is 1 to the last bit, and its slope 0; above 30 it is 0.
    large = np.where(is_small, 1, np.minimum(x, 30))
    small = np.where(is_small, np.maximum(x, 0.02), 1)
    far: Any = 0.0
    near: Any = 0.0
    for k in range(1, 6):
        far = far + (-1) ** k * k * k * np.exp(-2 * k * k * large * large)
        odd = ((2 * k - 1) * np.pi) ** 2 / (4 * small * small)
        near = near + (1 - odd) * np.exp(-0.5 * odd)
    near = near * (float(np.sqrt(2 * np.pi)) / (small * small))
    return np.where(is_small, near, 8 * large * far)


@kolmogorov.def_partial()
def kolmogorov_partial(t, x):
    return t * _kolmogorov_slope(x)


@kolmogi.def_partial()
def kolmogi_partial(t, out):
    return t / _kolmogorov_slope(out)
