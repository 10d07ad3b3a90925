"""Bessel functions and their relatives: in the argument by recurrence, in the order numerically.

The recurrences of Abramowitz and Stegun, chapters 9 to 12, are taken in the form with both
neighbours, ``(J[v-1] - J[v+1]) / 2``, which has no 1/x and so holds at 0 too. In a real order the
derivative is by differences (`funcgrad.rules.scipy.special.numerical`): some 1e-11 relative to the
size of the function, as far as SciPy's own values go. Where SciPy rounds the order to an integer
(`kn`, `yn`), there is none.

Some scaled functions are not holomorphic: their scale, ``exp(-abs(z.real))``, is a real function
of one part of `z`, and each mode has a product of its own for that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special as sp

from funcgrad.core.elementwise import elementwise
from funcgrad.core.primitive import Sample
from funcgrad.core.zero import dtype_of
from funcgrad.rules.scipy.special.declare import factors
from funcgrad.rules.scipy.special.numerical import slope

__all__: list[str] = []

_INTEGER = "SciPy cuts it off to an integer"

# Orders 0 and 1

j0 = elementwise(sp.j0)


@j0.def_partial()
def j0_partial(t, x):
    return t * -sp.j1(x)


j1 = elementwise(sp.j1)


@j1.def_partial()
def j1_partial(t, x):
    return t * (0.5 * (sp.j0(x) - sp.jv(2, x)))


y0 = elementwise(sp.y0, domain=(0.5, 4.0))


@y0.def_partial()
def y0_partial(t, x):
    return t * -sp.y1(x)


y1 = elementwise(sp.y1, domain=(0.5, 4.0))


@y1.def_partial()
def y1_partial(t, x, out):
    return t * (sp.y0(x) - out / x)


i0 = elementwise(sp.i0, name="special_i0")


@i0.def_partial()
def i0_partial(t, x):
    return t * sp.i1(x)


i1 = elementwise(sp.i1)


@i1.def_partial()
def i1_partial(t, x):
    return t * (0.5 * (sp.i0(x) + sp.iv(2, x)))


i0e = elementwise(sp.i0e, domain=(0.5, 4.0))


def _scaled_slope(x: Any, plain: Any, order: int, sign: int) -> Any:
    """Return the slope of a scaled function: `plain`, or for large arguments Hankel's expansion.

    There `plain` is a difference of numbers that are nearly equal. The expansion is ``x**-0.5``
    times a series in 1/x (Abramowitz and Stegun, 9.7.1 and 9.7.2), differentiated term by term.
    """
    size = np.abs(x)
    is_large = np.greater(size, 30)
    far = np.where(is_large, size, 30.0)
    terms = [1.0]
    for k in range(1, 20):
        terms.append(terms[-1] * sign * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    series: Any = 0.0
    for k in reversed(range(20)):
        series = series / far + (k + 0.5) * terms[k]
    scale = float(1 / np.sqrt(2 * np.pi)) if sign < 0 else float(np.sqrt(np.pi / 2))
    slope = -scale * series / (far * np.sqrt(far))
    if sign < 0 and order == 0:
        slope = slope * np.sign(x)  # an even function
    return np.where(is_large, slope, plain)


@i0e.def_partial()
def i0e_partial(t, x, out):
    return t * _scaled_slope(x, sp.i1e(x) - np.sign(x) * out, 0, -1)


i1e = elementwise(sp.i1e, domain=(0.5, 4.0))


@i1e.def_partial()
def i1e_partial(t, x, out):
    plain = 0.5 * (sp.i0e(x) + sp.ive(2, x)) - np.sign(x) * out
    return t * _scaled_slope(x, plain, 1, -1)


@i0e.def_samples
@i1e.def_samples
def scaled_samples(rng):
    yield Sample(np.array([-1.5, -0.5, -40.0, 40.0]))
    yield Sample(np.array([0.0]), kinks=True)


k0 = elementwise(sp.k0, domain=(0.5, 4.0))


@k0.def_partial()
def k0_partial(t, x):
    return t * -sp.k1(x)


k1 = elementwise(sp.k1, domain=(0.5, 4.0))


@k1.def_partial()
def k1_partial(t, x):
    return t * (-0.5 * (sp.k0(x) + sp.kv(2, x)))


k0e = elementwise(sp.k0e, domain=(0.5, 4.0))


@k0e.def_partial()
def k0e_partial(t, x, out):
    return t * _scaled_slope(x, out - sp.k1e(x), 0, 1)


k1e = elementwise(sp.k1e, domain=(0.5, 4.0))


@k1e.def_partial()
def k1e_partial(t, x, out):
    return t * _scaled_slope(x, out - 0.5 * (sp.k0e(x) + sp.kve(2, x)), 1, 1)


# Real orders


def _order_slope(ufunc: Callable[..., Any], v: Any, z: Any) -> Any:
    """Return the derivative in the order: functions of small or large argument change faster."""

    def of_order(order: Any) -> Any:
        return ufunc(order, z)

    size = np.abs(z)
    rate = np.abs(np.log(0.5 * np.where(np.equal(size, 0), 1, size) / (1 + np.abs(v))))
    return slope(of_order, v, 2 / (1 + rate))


def _pulls_order(ufunc: np.ufunc) -> Callable[..., Any]:
    """Make the product with the derivative in the order."""

    def order_partial(t, x, y):
        return t * _order_slope(ufunc, x, y)

    return order_partial


_ORDERS = (0.5, 3.0)
_POSITIVE = (0.5, 4.0)

jv = elementwise(sp.jv, domain=(_ORDERS, _POSITIVE))
yv = elementwise(sp.yv, domain=(_ORDERS, _POSITIVE))
iv = elementwise(sp.iv, domain=(_ORDERS, _POSITIVE))
kv = elementwise(sp.kv, domain=(_ORDERS, _POSITIVE))
kve = elementwise(sp.kve, domain=(_ORDERS, _POSITIVE))
jve = elementwise(sp.jve, domain=(_ORDERS, _POSITIVE))
yve = elementwise(sp.yve, domain=(_ORDERS, _POSITIVE))
ive = elementwise(sp.ive, domain=(_ORDERS, _POSITIVE))
hankel1 = elementwise(sp.hankel1, domain=(_ORDERS, _POSITIVE))
hankel2 = elementwise(sp.hankel2, domain=(_ORDERS, _POSITIVE))
hankel1e = elementwise(sp.hankel1e, domain=(_ORDERS, _POSITIVE))
hankel2e = elementwise(sp.hankel2e, domain=(_ORDERS, _POSITIVE))

for _made in (jv, yv, iv, kv, kve, jve, yve, ive, hankel1, hankel2, hankel1e, hankel2e):
    _made.def_partial(0)(_pulls_order(_made.ufunc))


@jv.def_partial(1)
def jv_partial_z(t, x, y):
    return t * (0.5 * (sp.jv(x - 1, y) - sp.jv(x + 1, y)))


@yv.def_partial(1)
def yv_partial_z(t, x, y):
    return t * (0.5 * (sp.yv(x - 1, y) - sp.yv(x + 1, y)))


@iv.def_partial(1)
def iv_partial_z(t, x, y):
    return t * (0.5 * (sp.iv(x - 1, y) + sp.iv(x + 1, y)))


@kv.def_partial(1)
def kv_partial_z(t, x, y):
    return t * (-0.5 * (sp.kv(x - 1, y) + sp.kv(x + 1, y)))


@kve.def_partial(1)
def kve_partial_z(t, x, y, out):
    return t * (out - 0.5 * (sp.kve(x - 1, y) + sp.kve(x + 1, y)))


@hankel1.def_partial(1)
def hankel1_partial_z(t, x, y):
    return t * (0.5 * (sp.hankel1(x - 1, y) - sp.hankel1(x + 1, y)))


@hankel2.def_partial(1)
def hankel2_partial_z(t, x, y):
    return t * (0.5 * (sp.hankel2(x - 1, y) - sp.hankel2(x + 1, y)))


@hankel1e.def_partial(1)
def hankel1e_partial_z(t, x, y, out):
    return t * (0.5 * (sp.hankel1e(x - 1, y) - sp.hankel1e(x + 1, y)) - 1j * out)


@hankel2e.def_partial(1)
def hankel2e_partial_z(t, x, y, out):
    return t * (0.5 * (sp.hankel2e(x - 1, y) - sp.hankel2e(x + 1, y)) + 1j * out)


@jv.def_samples
def jv_samples(rng):
    yield Sample(2, rng.normal(size=(2, 3)))
    yield Sample(np.array([0, 1, 3]), rng.normal(size=(2, 3)))
    yield Sample(0, np.array([0.0]))


@yv.def_samples
@iv.def_samples
@kv.def_samples
@kve.def_samples
def order_samples(rng):
    yield Sample(2, rng.uniform(0.5, 4.0, size=(2, 3)))
    yield Sample(np.array([0, 1, 3]), rng.uniform(0.5, 4.0, size=3))


# Scaled by a function of one part of the argument


def _jve_rate(x, y):
    return 0.5 * (sp.jve(x - 1, y) - sp.jve(x + 1, y))


def _yve_rate(x, y):
    return 0.5 * (sp.yve(x - 1, y) - sp.yve(x + 1, y))


def _scaled_by_imaginary(made: Any, rate: Callable[..., Any]) -> None:
    """Declare the products of a function with the scale ``exp(-abs(z.imag))``."""

    @made.def_push(1)
    def push_z(t, x, y, out):
        product = t * rate(x, y)
        if dtype_of(y).kind != "c":
            return product
        return product - np.sign(np.imag(y)) * out * np.imag(t)

    @made.def_pull(1)
    def pull_z(t, x, y, out):
        product = t * rate(x, y)
        if dtype_of(y).kind != "c":
            return product
        return product + 1j * np.sign(np.imag(y)) * np.real(t * out)


_scaled_by_imaginary(jve, _jve_rate)
_scaled_by_imaginary(yve, _yve_rate)


@ive.def_push(1)
def ive_push_z(t, x, y, out):
    rate = 0.5 * (sp.ive(x - 1, y) + sp.ive(x + 1, y))
    return t * rate - np.sign(np.real(y)) * out * np.real(t)


@ive.def_pull(1)
def ive_pull_z(t, x, y, out):
    rate = 0.5 * (sp.ive(x - 1, y) + sp.ive(x + 1, y))
    return t * rate - np.sign(np.real(y)) * np.real(t * out)


# Integer orders

kn = factors(sp.kn, "n x")
yn = factors(sp.yn, "n x")
kn.no_partial(0, _INTEGER)
yn.no_partial(0, _INTEGER)


@kn.def_partial(1)
def kn_partial_x(t, n, x):
    n = np.trunc(n)
    return t * (-0.5 * (sp.kv(n - 1, x) + sp.kv(n + 1, x)))


@yn.def_partial(1)
def yn_partial_x(t, n, x):
    n = np.trunc(n)
    return t * (0.5 * (sp.yn(n - 1, x) - sp.yn(n + 1, x)))


@kn.def_samples
@yn.def_samples
def integer_samples(rng):
    yield Sample(2, rng.uniform(0.5, 4.0, size=(2, 3)))
    yield Sample(np.array([0, 1, 3]), rng.uniform(0.5, 4.0, size=(2, 1)))
    yield Sample(1, np.float64(1.5))


# Struve functions

struve = elementwise(sp.struve, domain=(_ORDERS, _POSITIVE))
modstruve = elementwise(sp.modstruve, domain=(_ORDERS, _POSITIVE))
struve.def_partial(0)(_pulls_order(sp.struve))
modstruve.def_partial(0)(_pulls_order(sp.modstruve))


def _struve_power(v: Any, x: Any) -> Any:
    return np.power(0.5 * x, v) * sp.rgamma(v + 1.5) * (0.5 / float(np.sqrt(np.pi)))


@struve.def_partial(1)
def struve_partial_x(t, x, y):
    pair = 0.5 * (sp.struve(x - 1, y) - sp.struve(x + 1, y))
    return t * (pair + _struve_power(x, y))


@modstruve.def_partial(1)
def modstruve_partial_x(t, x, y):
    pair = 0.5 * (sp.modstruve(x - 1, y) + sp.modstruve(x + 1, y))
    return t * (pair + _struve_power(x, y))


# Airy functions: Ai, Ai', Bi, Bi', each a solution of y'' = z y

airy = factors(sp.airy, "z")


@airy.def_partial(0, result=0)
def airy_partial_ai(t, out):
    return t * out[1]


@airy.def_partial(0, result=1)
def airy_partial_aip(t, z, out):
    return t * (z * out[0])


@airy.def_partial(0, result=2)
def airy_partial_bi(t, out):
    return t * out[3]


@airy.def_partial(0, result=3)
def airy_partial_bip(t, z, out):
    return t * (z * out[2])


@airy.def_samples
def airy_samples(rng):
    yield Sample(rng.normal(size=(2, 3)))
    yield Sample(np.float64(0.0))


# Kelvin functions: y = ber + i bei solves x^2 y'' + x y' = i x^2 y

ber, bei = elementwise(sp.ber, domain=_POSITIVE), elementwise(sp.bei, domain=_POSITIVE)
ker, kei = elementwise(sp.ker, domain=_POSITIVE), elementwise(sp.kei, domain=_POSITIVE)
berp, beip = elementwise(sp.berp, domain=_POSITIVE), elementwise(sp.beip, domain=_POSITIVE)
kerp, keip = elementwise(sp.kerp, domain=_POSITIVE), elementwise(sp.keip, domain=_POSITIVE)


@ber.def_partial()
def ber_partial(t, x):
    return t * sp.berp(x)


@bei.def_partial()
def bei_partial(t, x):
    return t * sp.beip(x)


@ker.def_partial()
def ker_partial(t, x):
    return t * sp.kerp(x)


@kei.def_partial()
def kei_partial(t, x):
    return t * sp.keip(x)


@berp.def_partial()
def berp_partial(t, x, out):
    return t * (-_over(out, x) - sp.bei(x))


@beip.def_partial()
def beip_partial(t, x, out):
    # Near 0 it is x / 2.
    return t * (np.where(np.equal(x, 0), 0.5, -_over(out, x)) + sp.ber(x) * np.not_equal(x, 0))


@kerp.def_partial()
def kerp_partial(t, x, out):
    return t * (-out / x - sp.kei(x))


@keip.def_partial()
def keip_partial(t, x, out):
    return t * (-out / x + sp.ker(x))


def _over(out: Any, x: Any) -> Any:
    """Return ``out / x``, 0 at 0."""
    return out / np.where(np.equal(x, 0), 1, x)
