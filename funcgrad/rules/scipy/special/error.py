"""The error function, the normal distribution and their inverses; Dawson's and Fresnel's integrals.

Formulas are in Abramowitz and Stegun, chapter 7. Those of the scaled functions, such as
``2 x erfcx(x) - 2 / sqrt(pi)``, cancel for large arguments, where an asymptotic series takes over.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special as sp

from funcgrad.core.elementwise import elementwise
from funcgrad.core.primitive import Sample
from funcgrad.core.zero import dtype_of
from funcgrad.rules.scipy.special.declare import factors

__all__: list[str] = []

_PI = float(np.pi)
_SCALE = 2.0 / float(np.sqrt(np.pi))
_ROOT_2 = float(np.sqrt(2.0))
_ROOT_2PI = float(np.sqrt(2.0 * np.pi))
_HALF = float(np.sqrt(np.pi / 2.0))

erf = elementwise(sp.erf)


@erf.def_partial()
def erf_partial(t, x):
    return t * (_SCALE * np.exp(-x * x))


erfc = elementwise(sp.erfc)


@erfc.def_partial()
def erfc_partial(t, x):
    return t * (-_SCALE * np.exp(-x * x))


erfi = elementwise(sp.erfi)


@erfi.def_partial()
def erfi_partial(t, x):
    return t * (_SCALE * np.exp(x * x))


def _inverse_powers(x: Any, ratio: float) -> Any:
    """Return the sum of ``1 * 3 ... (2n + 1) * (ratio / x**2) ** (n + 1)``, n = 0, 1, ..., 8."""
    step = ratio / (x * x)
    total: Any = 1.0
    for n in range(8, 0, -1):
        total = 1 + (2 * n + 1) * step * total
    return step * total


erfcx = elementwise(sp.erfcx)


@erfcx.def_partial()
def erfcx_partial(t, x, out):
    factor = 2 * x * out - _SCALE
    if dtype_of(x).kind == "c":
        return t * factor
    return t * np.where(np.greater(x, 20), _SCALE * _inverse_powers(x, -0.5), factor)


@erfcx.def_samples
def erfcx_samples(rng):
    yield Sample(np.array([5.0, 25.0, 1e3, -3.0]), complex=False)


dawsn = elementwise(sp.dawsn)


@dawsn.def_partial()
def dawsn_partial(t, x, out):
    factor = 1 - 2 * x * out
    if dtype_of(x).kind == "c":
        return t * factor
    return t * np.where(np.greater(np.abs(x), 20), -_inverse_powers(x, 0.5), factor)


@dawsn.def_samples
def dawsn_samples(rng):
    yield Sample(np.array([5.0, -25.0, 1e3]), complex=False)


wofz = elementwise(sp.wofz)


@wofz.def_partial()
def wofz_partial(t, x, out):
    return t * (_SCALE * 1j - 2 * x * out)


erfinv = elementwise(sp.erfinv, domain=(-0.9, 0.9))


@erfinv.def_partial()
def erfinv_partial(t, out):
    return t * (np.exp(out * out) / _SCALE)


erfcinv = elementwise(sp.erfcinv, domain=(0.1, 1.9))


@erfcinv.def_partial()
def erfcinv_partial(t, out):
    return t * (np.exp(out * out) / -_SCALE)


# The normal distribution

ndtr = elementwise(sp.ndtr)


@ndtr.def_partial()
def ndtr_partial(t, x):
    return t * (np.exp(-0.5 * x * x) / _ROOT_2PI)


log_ndtr = elementwise(sp.log_ndtr)


@log_ndtr.def_partial()
def log_ndtr_partial(t, x):
    # The ratio of density and distribution, neither of which could be computed in the tail.
    return t / (_HALF * sp.erfcx(-x / _ROOT_2))


@log_ndtr.def_samples
def log_ndtr_samples(rng):
    yield Sample(np.array([-40.0, -5.0, 5.0]), complex=False)


ndtri = elementwise(sp.ndtri, domain=(0.1, 0.9))


@ndtri.def_partial()
def ndtri_partial(t, out):
    return t * (_ROOT_2PI * np.exp(0.5 * out * out))


ndtri_exp = elementwise(sp.ndtri_exp, domain=(-3.0, -0.1))


@ndtri_exp.def_partial()
def ndtri_exp_partial(t, out):
    return t * (_HALF * sp.erfcx(-out / _ROOT_2))


@ndtri_exp.def_samples
def ndtri_exp_samples(rng):
    yield Sample(np.array([-800.0, -50.0]), kinks=True)  # SciPy's own is not exact to 8 digits


owens_t = elementwise(sp.owens_t)


@owens_t.def_partial(0)
def owens_t_partial_h(t, x, y):
    return t * (np.exp(-0.5 * x * x) * sp.erf(x * y / _ROOT_2) / (-2 * _ROOT_2PI))


@owens_t.def_partial(1)
def owens_t_partial_a(t, x, y):
    square = 1 + y * y
    return t * (np.exp(-0.5 * x * x * square) / (2 * _PI * square))


# Integrals of sines and cosines of squares

fresnel = factors(sp.fresnel, "z")


@fresnel.def_partial(0, result=0)
def fresnel_partial_s(t, z):
    return t * np.sin(_PI / 2 * z * z)


@fresnel.def_partial(0, result=1)
def fresnel_partial_c(t, z):
    return t * np.cos(_PI / 2 * z * z)


@fresnel.def_samples
def fresnel_samples(rng):
    yield Sample(rng.normal(size=(2, 3)))
    yield Sample(np.float64(0.7))
    yield Sample(np.zeros((0, 3)))


# The Voigt profile: the real part of the Faddeeva function w

voigt_profile = factors(sp.voigt_profile, "x sigma gamma")


def _voigt_slopes(x: Any, sigma: Any, gamma: Any) -> tuple[Any, Any]:
    """Return the derivative by ``x + i gamma`` of the profile, and its second one times `sigma`.

    The profile solves the heat equation, so the second is the derivative in `sigma`.
    """
    is_narrow = np.equal(sigma, 0)
    at = x + 1j * gamma
    wide = np.where(is_narrow, 1.0, sigma)
    z = at / (wide * _ROOT_2)
    w = sp.wofz(z)
    first, second = _SCALE * 1j - 2 * z * w, -2 * w - 2 * z * (_SCALE * 1j - 2 * z * w)
    # These cancel for large z, where w is i / (sqrt(pi) z) times a series in z**-2.
    is_far = np.greater(np.abs(z), 30) & np.greater_equal(np.imag(z), 0)
    far = np.where(is_far, z, 30.0)
    step = 0.5 / (far * far)
    series: Any = 0.0
    slope: Any = 0.0
    for n in range(8, -1, -1):
        series = 1 + (2 * n + 3) * step * series
        slope = 2 * n + 2 + (2 * n + 3) * step * slope
    first = np.where(is_far, -_SCALE * 1j * step * series, first)
    second = np.where(is_far, _SCALE * 1j * step * slope / far, second)
    # Of no width it is Cauchy's density.
    safe = np.where(is_narrow & np.not_equal(at, 0), at, 1.0)
    cauchy = 1j / (_PI * safe * safe)
    by_at = np.where(is_narrow, -cauchy, first / (2 * wide * wide * np.sqrt(_PI)))
    by_sigma = np.where(
        is_narrow, sigma * 2 * cauchy / safe, second / (2 * wide * wide * _ROOT_2PI)
    )
    is_peak = is_narrow & np.equal(at, 0)
    return np.where(is_peak, np.nan, by_at), np.where(is_peak, np.nan, by_sigma)


@voigt_profile.def_partial(0)
def voigt_profile_partial_x(t, x, sigma, gamma):
    return t * np.real(_voigt_slopes(x, sigma, gamma)[0])


@voigt_profile.def_partial(1)
def voigt_profile_partial_sigma(t, x, sigma, gamma):
    return t * np.real(_voigt_slopes(x, sigma, gamma)[1])


@voigt_profile.def_partial(2)
def voigt_profile_partial_gamma(t, x, sigma, gamma):
    return t * -np.imag(_voigt_slopes(x, sigma, gamma)[0])


@voigt_profile.def_samples
def voigt_profile_samples(rng):
    yield Sample(rng.normal(size=3), np.array([0.5, 1.0, 2.0]), np.array([0.4, 1.0, 0.7]))
    yield Sample(rng.normal(size=(2, 1)), np.array([0.5, 1.0, 2.0]), np.float64(0.7))
