"""The gamma function and what is made of it: beta, binomial, digamma, zeta and their like.

Derivatives are in M. Abramowitz and I. Stegun, *Handbook of Mathematical Functions*, chapter 6.
Two things need care. At the poles of the gamma function products such as 1/gamma are smooth, but
their formulas are 0 times infinity: there the reflection formula is used. And a difference of two
digammas of nearby arguments cancels: `digamma_gap` does not.

The derivative of the zeta function in its exponent has no closed form; it is summed as
L. Euler and C. Maclaurin do, which is exact to rounding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special as sp
from scipy.special import _ufuncs

from funcgrad.core.batch import broadcasting
from funcgrad.core.elementwise import elementwise
from funcgrad.core.level import any_of
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, zero_wins
from funcgrad.rules.scipy.special.declare import (
    factors,
    missing_partial,
    narrow,
    where_defined,
)
from funcgrad.rules.scipy.special.numerical import slope
from funcgrad.rules.spelling import as_arrays

__all__ = [
    "binom_slopes",
    "digamma_gap",
    "hurwitz",
    "multigammaln",
    "poch_slopes",
    "polygamma",
]

# B_2k / (2k)!, k = 1, 2, ...
_BERNOULLI = tuple(
    float(b) / math.factorial(2 * k)
    for k, b in enumerate(
        (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798), 1
    )
)

# Gamma itself

gamma = elementwise(sp.gamma, domain=(0.5, 4.0))


@gamma.def_partial()
def gamma_partial(t, x, out):
    return t * (out * sp.psi(x))


gammaln = elementwise(sp.gammaln, domain=(0.5, 4.0))
loggamma = elementwise(sp.loggamma, domain=(0.5, 4.0))


@gammaln.def_partial()
@loggamma.def_partial()
def gammaln_partial(t, x):
    return t * sp.psi(x)


rgamma = elementwise(sp.rgamma, domain=(-2.0, 3.0))


@rgamma.def_partial()
def rgamma_partial(t, x, out):
    return t * _rgamma_slope(x, out)


def _rgamma_slope(x: Any, out: Any) -> Any:
    """Return the derivative of 1/gamma, which has no poles: by reflection where gamma has them."""
    if type(x) is np.ndarray and x.dtype.kind == "f":
        slope = np.where(np.equal(x, np.inf), 0, -out * sp.psi(x))
        # A second digamma is needed near the poles only.
        near = np.less(x, 0.5) & np.less(np.abs(x - np.rint(x)), 0.01)
        slope[near] = _reflected_slope(x[near])
        return slope
    plain = np.where(np.equal(x, np.inf), 0, -out * sp.psi(x))
    return np.where(np.less(np.real(x), 0.5), _reflected_slope(x), plain)


def _reflected_slope(x: Any) -> Any:
    mirrored = sp.gamma(1 - x)
    return mirrored * (np.cos(np.pi * x) - np.sin(np.pi * x) / np.pi * sp.psi(1 - x))


@rgamma.def_samples
def rgamma_samples(rng):
    yield Sample(np.array([0.0, -1.0, -2.0, -0.5, 30.0]))  # smooth at the poles of gamma


gammasgn = elementwise(sp.gammasgn, domain=(-2.0, 3.0))
gammasgn.not_differentiable("a sign is piecewise constant")

# Digamma and polygamma

psi = elementwise(sp.psi, domain=(0.5, 4.0))


@psi.def_partial()
def psi_partial(t, x, out):
    return t * where_defined(out, hurwitz.bind(x, s=2))


@primitive()
def hurwitz(x, *, s):
    """The sum of ``(x + k) ** -s`` for k = 0, 1, ..., with an integer s > 1 and complex `x` too."""
    if dtype_of(x).kind != "c":
        return sp.zeta(s, x)
    # To the right, where the series of Euler and Maclaurin needs few terms.
    low = float(np.min(np.real(x), initial=20.0))
    shift = math.ceil(20.0 - low) if low > -1e4 else 0
    total = 0.0 * x
    for k in range(shift):
        total = total + (x + k) ** -s
    z = x + shift
    total = total + z ** (1 - s) / (s - 1) + 0.5 * z**-s
    rising = float(s)
    for k, b in enumerate(_BERNOULLI, 1):
        total = total + b * rising * z ** (1 - s - 2 * k)
        rising *= (s + 2 * k - 1) * (s + 2 * k)
    return total


@hurwitz.def_jvp
def hurwitz_jvp(primals, tangents, out, *, s):
    (x,), (x_dot,) = primals, tangents
    return x_dot * (-s * hurwitz.bind(x, s=s + 1))


@hurwitz.def_vjp
def hurwitz_vjp(primals, out, *, s):
    (x,) = primals

    def hurwitz_pullback(out_bar):
        return out_bar * (-s * hurwitz.bind(x, s=s + 1))

    return hurwitz_pullback


broadcasting(hurwitz)


@hurwitz.def_samples
def hurwitz_samples(rng):
    yield Sample(rng.uniform(0.5, 4.0, size=(2, 3)), fun=hurwitz, s=2)
    yield Sample(np.float64(1.5), fun=hurwitz, s=3)


@primitive(canonical=as_arrays)
def polygamma(n, x):
    """Derivatives of digamma; that of order `n` has the one of order ``n + 1`` as its own."""
    return sp.polygamma(n, x)


@polygamma.def_jvp
def polygamma_jvp(primals, tangents, out):
    n, x = primals
    n_dot, x_dot = tangents
    if n_dot is not None:
        raise missing_partial("polygamma", "n", "it counts derivatives")
    return zero_wins(x_dot * where_defined(out, polygamma.bind(n + 1, x)), x_dot)


@polygamma.def_vjp
def polygamma_vjp(primals, out):
    n, x = primals

    def polygamma_pullback_n(out_bar):
        raise missing_partial("polygamma", "n", "it counts derivatives")

    def polygamma_pullback_x(out_bar):
        return zero_wins(out_bar * where_defined(out, polygamma.bind(n + 1, x)), out_bar)

    return polygamma_pullback_n, polygamma_pullback_x


broadcasting(polygamma)


@polygamma.def_samples
def polygamma_samples(rng):
    x = rng.uniform(0.5, 3.0, size=(2, 3))
    yield Sample(1, x, fun=polygamma, complex=False)
    yield Sample(np.array([0, 1, 3]), x, fun=polygamma, complex=False)
    yield Sample(np.array([[0], [2]]), x[0], fun=polygamma, complex=False)
    yield Sample(2, np.float64(1.5), fun=polygamma, complex=False)


# Beta and binomial


def digamma_gap(x: Any, h: Any) -> Any:
    """Return ``psi(x + h) - psi(x)``, to nearly all digits for large `x` too."""
    y = x + h
    # Digammas are what takes time: no more of them than are asked for.
    found = sp.psi(y) - sp.psi(x)
    # Of each special case, one condition is mostly enough to see that there is none.
    at_pole = np.less_equal(x, 0)
    if any_of(at_pole):
        # Both at poles: the reflected digammas have the same difference, if h is an integer.
        at_pole = at_pole & np.less_equal(y, 0) & np.equal(x, np.floor(x))
        at_pole = at_pole & np.equal(y, np.floor(y))
        found = np.where(at_pole, sp.psi(1 - y) - sp.psi(1 - x), found)
    is_large = np.greater(x, 25)
    if any_of(is_large):
        found = np.where(is_large & np.greater(y, 25), _stirling_gap(x, h, y), found)
    is_close = np.less(1e3 * np.abs(h), x)
    if not any_of(is_close):
        return found
    # Taylor's series about the middle; the next term is a 1e-16th.
    middle = np.where(is_close, x + h / 2, 1)
    rate = hurwitz.bind(middle, s=2) + h * h / 4 * hurwitz.bind(middle, s=4)
    return np.where(is_close, h * rate, found)


def _stirling_gap(x: Any, h: Any, y: Any) -> Any:
    """Return ``psi(y) - psi(x)`` by Stirling's series, each term as a difference without loss.

    Below 15 it is too short, but there digammas are small, and their difference is exact enough.
    """
    a, b = 1 / x, 1 / y
    lost = -(h * a * b)  # b - a
    a2, b2 = a * a, b * b
    squares = lost * (a + b)  # b2 - a2
    return (
        np.log1p(h * a)
        - lost / 2
        - squares
        * (
            1 / 12
            - (b2 + a2) / 120
            + (b2 * b2 + a2 * b2 + a2 * a2) / 252
            - (b2 + a2) * (b2 * b2 + a2 * a2) / 240
        )
    )


beta = elementwise(sp.beta, domain=(0.5, 3.0))


@beta.def_partial(0)
def beta_partial_a(t, x, y, out):
    return t * (-out * digamma_gap(x, y))


@beta.def_partial(1)
def beta_partial_b(t, x, y, out):
    return t * (-out * digamma_gap(y, x))


betaln = elementwise(sp.betaln, domain=(0.5, 3.0))


@betaln.def_partial(0)
def betaln_partial_a(t, x, y):
    return t * -digamma_gap(x, y)


@betaln.def_partial(1)
def betaln_partial_b(t, x, y):
    return t * -digamma_gap(y, x)


binom = elementwise(sp.binom, domain=((2.5, 5.0), (0.5, 2.0)))


def binom_slopes(n: Any, k: Any, out: Any) -> tuple[Any, Any]:
    """Return the derivatives of ``out = binom(n, k)`` in `n` and in `k`."""
    rest = n - k + 1
    # Where one of the factors 1/gamma is zero, its slope is not.
    at_rest = np.less_equal(rest, 0) & np.equal(rest, np.floor(rest)) & np.greater(n, -1)
    at_k = np.less(k, 0) & np.equal(k, np.floor(k)) & np.greater(n, -1)
    first, second = sp.rgamma(k + 1), sp.rgamma(rest)
    top, second_slope = sp.gamma(n + 1), _rgamma_slope(rest, second)
    by_n = np.where(at_rest, top * first * second_slope, out * digamma_gap(rest, k))
    special = top * (_rgamma_slope(k + 1, first) * second - first * second_slope)
    plain = out * (sp.psi(rest) - sp.psi(k + 1))
    return by_n, np.where(at_rest | at_k, special, plain)


@binom.def_partial(0)
def binom_partial_n(t, x, y, out):
    return t * binom_slopes(x, y, out)[0]


@binom.def_partial(1)
def binom_partial_k(t, x, y, out):
    return t * binom_slopes(x, y, out)[1]


@binom.def_samples
def binom_samples(rng):
    yield Sample(np.array([5.0, 3.0, 4.5]), np.array([7.0, 5.0, -1.0]), order=1)


poch = elementwise(sp.poch, domain=((0.5, 3.0), (0.5, 2.0)))


def poch_slopes(z: Any, m: Any, out: Any) -> tuple[Any, Any]:
    """Return the derivatives of ``out = poch(z, m)`` in `z` and in `m`."""
    # Where 1/gamma(z) is zero, so is the product for nearly all m; but its slope in z is not.
    at_pole = np.less_equal(z, 0) & np.equal(z, np.floor(z))
    special = sp.gamma(z + m) * _rgamma_slope(z, sp.rgamma(z))
    by_z = np.where(at_pole & np.greater(z + m, 0), special, out * digamma_gap(z, m))
    return by_z, np.where(at_pole, 0, out * sp.psi(z + m))


@poch.def_partial(0)
def poch_partial_z(t, x, y, out):
    return t * poch_slopes(x, y, out)[0]


@poch.def_partial(1)
def poch_partial_m(t, x, y, out):
    return t * poch_slopes(x, y, out)[1]


@poch.def_samples
def poch_samples(rng):
    m = np.array([2.0, 3.0, 1.0, 2.0])
    yield Sample(np.array([-2.0, -1.0, -2.5, 40.0]), m, argnums=0, order=1)


@primitive(canonical=as_arrays)
def multigammaln(a, *, d):
    """Logarithm of the multivariate gamma function: a sum of `gammaln` in steps of a half."""
    return sp.multigammaln(a, d)


def _multigammaln_slope(a, d):
    total = 0.0
    for j in range(int(d)):
        total = total + sp.psi(a - j / 2)
    return total


@multigammaln.def_jvp
def multigammaln_jvp(primals, tangents, out, *, d):
    (a,), (a_dot,) = primals, tangents
    return a_dot * _multigammaln_slope(a, d)


@multigammaln.def_vjp
def multigammaln_vjp(primals, out, *, d):
    (a,) = primals

    def multigammaln_pullback(out_bar):
        return out_bar * _multigammaln_slope(a, d)

    return multigammaln_pullback


broadcasting(multigammaln)


@multigammaln.def_samples
def multigammaln_samples(rng):
    yield Sample(rng.uniform(2.0, 4.0, size=(2, 3)), 3, fun=multigammaln, complex=False)
    yield Sample(np.float64(1.5), 1, fun=multigammaln, complex=False)
    yield Sample(np.zeros((0, 2)), d=2, fun=multigammaln, complex=False)


# Zeta. What SciPy offers by these names are Python functions around two ufuncs.

zeta = factors(_ufuncs._zeta, "x q", name="zeta")


@zeta.def_partial(0)
def zeta_partial_x(t, x, q, out):
    # The series goes on where SciPy has no value: for complex x, or x < 1.
    return t * where_defined(out, _zeta_slope(x, q))


@zeta.def_partial(1)
def zeta_partial_q(t, x, q, out):
    return t * where_defined(out, -x * sp.zeta(x + 1, q))


@zeta.def_samples
def zeta_samples(rng):
    x, q = rng.uniform(1.5, 4.0, size=(2, 1)), rng.uniform(0.5, 3.0, size=3)
    yield Sample(x, q, fun=sp.zeta, complex=False)
    yield Sample(np.float64(2.5), 1.5, fun=sp.zeta, complex=False)
    yield Sample(2, q, fun=sp.zeta, complex=False)


def _zeta_slope(s: Any, q: Any) -> Any:
    """Return the derivative of the sum of ``(q + k) ** -s`` in `s`, by Euler and Maclaurin."""
    terms = 12
    given, s, q = s, s + np.float64(0), q + np.float64(0)
    total = 0.0
    for k in range(terms):
        total = total - np.log(q + k) * np.power(q + k, -s)
    z = q + terms
    log = np.log(z)
    power = np.power(z, -s)
    # The derivatives in s of z**(1-s)/(s-1), z**-s / 2 and of the terms with Bernoulli numbers.
    total = total - z * power / (s - 1) * (log + 1 / (s - 1)) - 0.5 * log * power
    rising, rate = s, 1.0  # s (s+1) ... and its derivative
    over = power / z
    for k, b in enumerate(_BERNOULLI, 1):
        total = total + b * over * (rate - rising * log)
        for factor in (s + 2 * k - 1, s + 2 * k):
            rising, rate = rising * factor, rate * factor + rising
        over = over / (z * z)
    return narrow(total, given)


def _riemann_slope(s: Any) -> Any:
    """Return the derivative of the Riemann zeta function."""
    near = np.where(np.equal(s, 1), 1, np.abs(s - 1))
    # The series is short of terms for negative s. There, differences.
    is_right = np.greater(s, 0)
    # All but the first term, which is 1, has vanished in the end.
    series = _zeta_slope(np.where(is_right, np.minimum(s, 1e3), 2), 1.0)
    differences = slope(sp.zeta, np.where(is_right, -0.5, s), np.minimum(near, 1))
    return np.where(is_right, series, differences)


if hasattr(_ufuncs, "_riemann_zeta"):  # since SciPy 1.15
    riemann_zeta = elementwise(_ufuncs._riemann_zeta, domain=(1.5, 4.0), name="riemann_zeta")

    @riemann_zeta.def_partial()
    def riemann_zeta_partial(t, x):
        if dtype_of(x).kind == "c":
            return t * _zeta_slope(x, 1.0)
        return t * _riemann_slope(x)


zetac = elementwise(sp.zetac, domain=(1.5, 4.0))


@zetac.def_partial()
def zetac_partial(t, x):
    return t * _riemann_slope(x)
