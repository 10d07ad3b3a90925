"""Logistic functions, entropies, Box-Cox transforms, losses and other elementary functions.

At the edge of their domains the values are limits (``xlogy(0, 0)`` is 0), and so are the
derivatives where these are finite; infinite ones, as of ``x log x`` at 0, stay so. Expressions that
cancel near a removable singularity, such as ``(x**p - 1) / p`` at 0, are summed as series there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special as sp

from funcgrad.core.elementwise import elementwise
from funcgrad.core.primitive import Sample

__all__: list[str] = []

_PI = float(np.pi)

# Logistic functions

expit = elementwise(sp.expit)


@expit.def_partial()
def expit_partial(t, x, out):
    if type(x) is np.ndarray and x.ndim and x.dtype.kind == "f":  # faster, as an even function
        e = np.abs(x)
        np.exp(np.negative(e, e), e)
        below = e + 1
        np.multiply(below, below, below)
        return np.divide(e, below, e) * t
    return t * (out * sp.expit(-x))  # 1 - out would be 0 for large x


logit = elementwise(sp.logit, domain=(0.1, 0.9))


@logit.def_partial()
def logit_partial(t, x):
    return t / (x * (1 - x))


log_expit = elementwise(sp.log_expit)


@log_expit.def_partial()
def log_expit_partial(t, x):
    return t * sp.expit(-x)


# Entropies

xlogy = elementwise(sp.xlogy, domain=((-2.0, 2.0), (0.5, 2.0)))


@xlogy.def_partial(0)
def xlogy_partial_x(t, y):
    return t * np.log(y)


@xlogy.def_partial(1)
def xlogy_partial_y(t, x, y):
    return t * _ratio(x, y)


def _ratio(x: Any, y: Any) -> Any:
    """Return ``x / y``, and 0 for 0 / 0: the function is 0 for all `y` there."""
    return x / np.where(np.logical_and(np.equal(x, 0), np.equal(y, 0)), 1, y)


xlog1py = elementwise(sp.xlog1py, domain=((-2.0, 2.0), (-0.5, 2.0)))


@xlog1py.def_partial(0)
def xlog1py_partial_x(t, y):
    return t * np.log1p(y)


@xlog1py.def_partial(1)
def xlog1py_partial_y(t, x, y):
    return t * _ratio(x, 1 + y)


@xlogy.def_samples
def xlogy_samples(rng):
    yield Sample(np.array([0.0, 0.0, 1.0]), np.array([0.0, 2.0, 0.0]), kinks=True, complex=False)


@xlog1py.def_samples
def xlog1py_samples(rng):
    yield Sample(np.array([0.0, 0.0, 1.0]), np.array([-1.0, 2.0, -1.0]), kinks=True, complex=False)


entr = elementwise(sp.entr, domain=(0.5, 2.0))


@entr.def_partial()
def entr_partial(t, x):
    return t * (-1 - np.log(x))


rel_entr = elementwise(sp.rel_entr, domain=(0.5, 2.0))
kl_div = elementwise(sp.kl_div, domain=(0.5, 2.0))


def _log_ratio(x: Any, y: Any) -> Any:
    """Return ``log(x / y)``, 0 for 0 / 0."""
    empty = np.equal(x, 0) & np.equal(y, 0)
    return np.log(np.where(empty, 1, x / np.where(empty, 1, y)))


@rel_entr.def_partial(0)
def rel_entr_partial_x(t, x, y):
    empty = np.equal(x, 0) & np.equal(y, 0)
    return t * np.where(empty, 0, _log_ratio(x, y) + 1)


@rel_entr.def_partial(1)
def rel_entr_partial_y(t, x, y):
    return t * -_ratio(x, y)


@kl_div.def_partial(0)
def kl_div_partial_x(t, x, y):
    return t * _log_ratio(x, y)


@kl_div.def_partial(1)
def kl_div_partial_y(t, x, y):
    return t * (1 - _ratio(x, y))


@rel_entr.def_samples
@kl_div.def_samples
def rel_entr_samples(rng):
    yield Sample(np.array([0.0, 0.0, 2.0]), np.array([0.0, 2.0, 2.0]), kinks=True)


# Powers: Box-Cox and its inverse


def _power_series(u: Any, coefficients: tuple[float, ...]) -> Any:
    total: Any = 0.0
    for c in reversed(coefficients):
        total = total * u + c
    return total


_BEND = tuple((k + 1) / math.factorial(k + 2) for k in range(22))
_TURN = tuple((-1) ** (k - 1) * (k - 1) / k for k in range(2, 20))


def _bend(u: Any) -> Any:
    """Return ``(exp(u) * (u - 1) + 1) / u**2``, the derivative of ``(exp(u) - 1) / u``."""
    is_small = np.less(np.abs(u), 1)
    safe = np.where(is_small, 1, u)
    plain = (np.exp(safe) * (safe - 1) + 1) / (safe * safe)
    return np.where(is_small, _power_series(np.where(is_small, u, 0), _BEND), plain)


def _turn(u: Any) -> Any:
    """Return ``(u / (1 + u) - log(1 + u)) / u**2``, the derivative of ``log(1 + u) / u``."""
    is_small = np.less(np.abs(u), 0.1)
    safe = np.where(is_small, 1, u)
    plain = (safe / (1 + safe) - np.log1p(safe)) / (safe * safe)
    return np.where(is_small, _power_series(np.where(is_small, u, 0), _TURN), plain)


def _boxcox_slope(log: Any, power: Any) -> Any:
    """Return the derivative of ``(exp(power * log) - 1) / power`` in `power`."""
    # At x = 0 the logarithm is infinite, and the function -1 / power.
    at_zero = np.equal(log, -np.inf)
    safe = np.where(at_zero, 1, log)
    usual = safe * safe * _bend(power * safe)
    return np.where(at_zero, 1 / np.where(at_zero, power * power, 1), usual)


boxcox = elementwise(sp.boxcox, domain=((0.5, 2.0), (-2.0, 2.0)))
boxcox1p = elementwise(sp.boxcox1p, domain=((-0.5, 2.0), (-2.0, 2.0)))


@boxcox.def_partial(0)
def boxcox_partial_x(t, x, y):
    return t * np.power(x, y - 1)


@boxcox.def_partial(1)
def boxcox_partial_lmbda(t, x, y):
    return t * _boxcox_slope(np.log(x), y)


@boxcox1p.def_partial(0)
def boxcox1p_partial_x(t, x, y):
    return t * np.exp((y - 1) * np.log1p(x))


@boxcox1p.def_partial(1)
def boxcox1p_partial_lmbda(t, x, y):
    return t * _boxcox_slope(np.log1p(x), y)


inv_boxcox = elementwise(sp.inv_boxcox, domain=((-0.5, 0.5), (-1.5, 1.5)))
inv_boxcox1p = elementwise(sp.inv_boxcox1p, domain=((-0.5, 0.5), (-1.5, 1.5)))


@inv_boxcox.def_partial(0)
def inv_boxcox_partial_x(t, x, y, out):
    return t * (out / (1 + y * x))


@inv_boxcox.def_partial(1)
def inv_boxcox_partial_lmbda(t, x, y, out):
    return t * (out * (x * x * _turn(y * x)))


@inv_boxcox1p.def_partial(0)
def inv_boxcox1p_partial_x(t, x, y, out):
    return t * ((out + 1) / (1 + y * x))


@inv_boxcox1p.def_partial(1)
def inv_boxcox1p_partial_lmbda(t, x, y, out):
    return t * ((out + 1) * (x * x * _turn(y * x)))


@boxcox.def_samples
@boxcox1p.def_samples
def boxcox_samples(rng):
    yield Sample(rng.uniform(0.5, 2.0, size=3), np.array([0.0, 1e-9, 3.0]))


@inv_boxcox.def_samples
@inv_boxcox1p.def_samples
def inv_boxcox_samples(rng):
    yield Sample(rng.uniform(0.5, 2.0, size=3), np.array([0.0, 1e-9, 3.0]))


# Exponentials, roots and logarithms that NumPy has as other ufuncs, or not at all

exp2 = elementwise(sp.exp2, name="special_exp2")
exp10 = elementwise(sp.exp10)
expm1 = elementwise(sp.expm1, name="special_expm1")
log1p = elementwise(sp.log1p, domain=(-0.5, 2.0), name="special_log1p")
cbrt = elementwise(sp.cbrt, domain=(0.5, 2.0), name="special_cbrt")
exprel = elementwise(sp.exprel)
powm1 = elementwise(sp.powm1, domain=((0.5, 2.0), (-2.0, 2.0)))
cosm1 = elementwise(sp.cosm1)
sindg = elementwise(sp.sindg)
cosdg = elementwise(sp.cosdg)
tandg = elementwise(sp.tandg)
cotdg = elementwise(sp.cotdg, domain=(30.0, 60.0))


@exp2.def_partial()
def exp2_partial(t, out):
    return t * (out * math.log(2.0))


@exp10.def_partial()
def exp10_partial(t, out):
    return t * (out * math.log(10.0))


@expm1.def_partial()
def expm1_partial(t, x):
    return t * np.exp(x)


@log1p.def_partial()
def log1p_partial(t, x):
    return t / (1 + x)


@cbrt.def_partial()
def cbrt_partial(t, out):
    return t / (3 * out * out)


@exprel.def_partial()
def exprel_partial(t, x):
    return t * np.where(np.equal(x, -np.inf), 0, _bend(x))


@exprel.def_samples
def exprel_samples(rng):
    yield Sample(np.array([0.0, 1e-9, 5.0, -5.0, 80.0]))


@powm1.def_partial(0)
def powm1_partial_x(t, x, y):
    return t * (y * np.power(x, y - 1))


@powm1.def_partial(1)
def powm1_partial_y(t, x, out):
    return t * ((out + 1) * np.log(x))


@cosm1.def_partial()
def cosm1_partial(t, x):
    return t * -np.sin(x)


@sindg.def_partial()
def sindg_partial(t, x):
    return t * (_PI / 180 * sp.cosdg(x))


@cosdg.def_partial()
def cosdg_partial(t, x):
    return t * (-_PI / 180 * sp.sindg(x))


@tandg.def_partial()
def tandg_partial(t, out):
    return t * (_PI / 180 * (1 + out * out))


@cotdg.def_partial()
def cotdg_partial(t, out):
    return t * (-_PI / 180 * (1 + out * out))


# Losses

huber = elementwise(sp.huber, domain=((1.0, 1.5), (-0.9, 0.9)))
pseudo_huber = elementwise(sp.pseudo_huber, domain=((0.5, 1.5), (-2.0, 2.0)))


@huber.def_partial(0)
def huber_partial_delta(t, x, y):
    return t * np.where(np.less_equal(np.abs(y), x), 0, np.abs(y) - x)


@huber.def_partial(1)
def huber_partial_r(t, x, y):
    return t * np.where(np.less_equal(np.abs(y), x), y, np.sign(y) * x)


@huber.def_samples
def huber_samples(rng):
    yield Sample(rng.uniform(0.5, 0.9, size=3), np.array([-2.0, 1.0, 3.0]))
    yield Sample(np.array([0.0, 1.0]), np.array([1.0, 1.0]), kinks=True)


@pseudo_huber.def_partial(0)
def pseudo_huber_partial_delta(t, x, y):
    # For delta going to 0 the function is delta * abs(r).
    is_flat = np.equal(x, 0)
    q = y / np.where(is_flat, 1, x)
    root = np.sqrt(1 + q * q)
    return t * np.where(is_flat, np.abs(y), x * np.power(q, 4) / (root * np.square(1 + root)))


@pseudo_huber.def_partial(1)
def pseudo_huber_partial_r(t, x, y):
    is_flat = np.equal(x, 0)
    q = y / np.where(is_flat, 1, x)
    return t * np.where(is_flat, 0, y / np.sqrt(1 + q * q))


round_ = elementwise(sp.round, name="special_round")
round_.not_differentiable("a rounded number is piecewise constant")
