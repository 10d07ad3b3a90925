"""Elliptic integrals and functions, and the arithmetic-geometric mean.

The complete integrals are hypergeometric functions of their parameter, of which all derivatives are
known; the usual formulas divide by it and cancel near 0. The incomplete ones, and their derivatives
in the parameter, are integrals of Carlson's (NIST Digital Library of Mathematical Functions, 19.25
and 19.18), without a singularity that is not theirs. Carlson's integrals but the first are
differentiated by differences (`funcgrad.rules.scipy.special.numerical`): about 12 digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special as sp

from funcgrad.core.elementwise import elementwise
from funcgrad.core.primitive import Sample
from funcgrad.rules.scipy.special.declare import factors, where_defined
from funcgrad.rules.scipy.special.numerical import slope

__all__: list[str] = []

_PI = float(np.pi)

# Complete elliptic integrals

ellipk = elementwise(sp.ellipk, domain=(-1.0, 0.9))
ellipe = elementwise(sp.ellipe, domain=(-1.0, 0.9))
ellipkm1 = elementwise(sp.ellipkm1, domain=(0.1, 2.0))


def _ellipk_slope(x: Any) -> Any:
    return _PI / 8 * sp.hyp2f1(1.5, 1.5, 2.0, x)


def _ellipe_slope(x: Any) -> Any:
    return -_PI / 8 * sp.hyp2f1(0.5, 1.5, 2.0, x)


@ellipk.def_partial()
def ellipk_partial(t, x, out):
    return t * where_defined(out, _ellipk_slope(x))


@ellipe.def_partial()
def ellipe_partial(t, x, out):
    return t * where_defined(out, _ellipe_slope(x))


def _ellipkm1_slope(x: Any, out: Any) -> Any:
    # 1 - x would lose a small x, where the usual formula is good.
    m = 1 - x
    is_small = np.less(x, 0.5)
    usual = (sp.ellipe(m) - x * out) / (2 * x * np.where(is_small, m, 1))
    return -np.where(is_small, usual, _PI / 8 * sp.hyp2f1(1.5, 1.5, 2.0, m))


@ellipkm1.def_partial()
def ellipkm1_partial(t, x, out):
    return t * _ellipkm1_slope(x, out)


@ellipk.def_samples
@ellipe.def_samples
def elliptic_samples(rng):
    yield Sample(np.array([0.0, 1e-9, -5.0]))


@ellipkm1.def_samples
def ellipkm1_samples(rng):
    yield Sample(np.array([1e-3, 1.0]))


# Incomplete elliptic integrals

ellipkinc = elementwise(sp.ellipkinc, domain=((-1.5, 1.5), (-1.0, 0.8)))
ellipeinc = elementwise(sp.ellipeinc, domain=((-1.5, 1.5), (-1.0, 0.8)))


@ellipkinc.def_partial(0)
def ellipkinc_partial_phi(t, x, y, out):
    return t * where_defined(out, 1 / np.sqrt(1 - y * np.square(np.sin(x))))


@ellipeinc.def_partial(0)
def ellipeinc_partial_phi(t, x, y, out):
    return t * where_defined(out, np.sqrt(1 - y * np.square(np.sin(x))))


def _by_parameter(phi: Any, of_period: Any, integral: Any) -> Any:
    """Return the derivative in `m`: that of whole periods, and that of the angle that is left."""
    periods = np.round(phi / _PI)
    rest = phi - periods * _PI
    sine, cosine = np.sin(rest), np.cos(rest)
    whole = np.where(np.equal(periods, 0), 0, 2 * periods * of_period)
    return whole + sine * sine * sine / 6 * integral(cosine * cosine, sine * sine)


@ellipkinc.def_partial(1)
def ellipkinc_partial_m(t, x, y):
    def integral(cosine2, sine2):
        return sp.elliprd(cosine2, 1.0, 1 - y * sine2)

    return t * _by_parameter(x, _ellipk_slope(y), integral)


@ellipeinc.def_partial(1)
def ellipeinc_partial_m(t, x, y):
    def integral(cosine2, sine2):
        return -sp.elliprd(cosine2, 1 - y * sine2, 1.0)

    return t * _by_parameter(x, _ellipe_slope(y), integral)


@ellipkinc.def_samples
@ellipeinc.def_samples
def incomplete_samples(rng):
    yield Sample(np.array([0.5, 2.0, -4.0]), np.array([0.9, 0.3, -2.0]))


# Jacobi's elliptic functions sn, cn, dn and the amplitude

ellipj = factors(sp.ellipj, "u m")
ellipj.no_partial(1, "SciPy has no values on both sides of the ends of its domain")


@ellipj.def_partial(0, result=0)
def ellipj_partial_sn(t, out):
    return t * (out[1] * out[2])


@ellipj.def_partial(0, result=1)
def ellipj_partial_cn(t, out):
    return t * -(out[0] * out[2])


@ellipj.def_partial(0, result=2)
def ellipj_partial_dn(t, m, out):
    return t * (-m * out[0] * out[1])


@ellipj.def_partial(0, result=3)
def ellipj_partial_ph(t, out):
    return t * out[2]


@ellipj.def_samples
def ellipj_samples(rng):
    yield Sample(rng.normal(size=(2, 3)), np.array([0.0, 0.3, 0.8]), argnums=0)
    yield Sample(np.float64(0.7), 0.3)


# The arithmetic-geometric mean, which is pi (a + b) / 4 K, by K of 1 - m = 4 a b / (a + b)^2

agm = elementwise(sp.agm, domain=(0.5, 2.0))


def _agm_slope(a: Any, b: Any, out: Any) -> Any:
    """Return the derivative in `a`."""
    total = a + b
    p = 4 * (a / total) * (b / total)
    k = sp.ellipkm1(p)
    turn = _ellipkm1_slope(p, k) / k * 4 * (b / total) * ((b - a) / total)
    return out / total * (1 - turn)


@agm.def_partial(0)
def agm_partial_a(t, x, y, out):
    return t * _agm_slope(x, y, out)


@agm.def_partial(1)
def agm_partial_b(t, x, y, out):
    return t * _agm_slope(y, x, out)


@agm.def_samples
def agm_samples(rng):
    yield Sample(np.array([1.0, 1e-3]), np.array([1.0, 1.0]))


# Carlson's symmetric integrals

elliprf = factors(sp.elliprf, "x y z")
elliprc = elementwise(sp.elliprc, domain=((0.5, 2.0), (0.5, 2.0)))
elliprd = factors(sp.elliprd, "x y z")
elliprg = factors(sp.elliprg, "x y z")
elliprj = factors(sp.elliprj, "x y z p")


@elliprf.def_partial(0)
def elliprf_partial_x(t, x, y, z):
    return t * (sp.elliprd(y, z, x) / -6)


@elliprf.def_partial(1)
def elliprf_partial_y(t, x, y, z):
    return t * (sp.elliprd(z, x, y) / -6)


@elliprf.def_partial(2)
def elliprf_partial_z(t, x, y, z):
    return t * (sp.elliprd(x, y, z) / -6)


@elliprc.def_partial(0)
def elliprc_partial_x(t, x, y):
    return t * (sp.elliprd(y, y, x) / -6)


@elliprc.def_partial(1)
def elliprc_partial_y(t, x, y):
    return t * (sp.elliprd(x, y, y) / -3)


def _slope_in(ufunc: np.ufunc, index: int, args: tuple[Any, ...]) -> Any:
    """Return the derivative in one argument, each of which has a singularity at 0."""

    def of_one(p: Any) -> Any:
        return ufunc(*args[:index], p, *args[index + 1 :])

    return slope(of_one, args[index], np.abs(args[index]))


def _declare_of_three(made: Any, index: int) -> None:
    ufunc = made.ufunc

    @made.def_partial(index)
    def carlson_partial(t, x, y, z):
        return t * _slope_in(ufunc, index, (x, y, z))


def _declare_of_four(made: Any, index: int) -> None:
    ufunc = made.ufunc

    @made.def_partial(index)
    def carlson_partial(t, x, y, z, p):
        return t * _slope_in(ufunc, index, (x, y, z, p))


for _index in range(3):
    _declare_of_three(elliprd, _index)
    _declare_of_three(elliprg, _index)
for _index in range(4):
    _declare_of_four(elliprj, _index)


@elliprf.def_samples
@elliprd.def_samples
@elliprg.def_samples
def carlson_samples(rng):
    x, y, z = rng.uniform(0.5, 2.0, size=(3, 3))
    yield Sample(x, y, z[:, None])
    yield Sample(np.float64(1.0), 1.0, np.float64(1.0))


@elliprj.def_samples
def elliprj_samples(rng):
    x, y, z, p = rng.uniform(0.5, 2.0, size=(4, 3))
    yield Sample(x, y, z, p)
