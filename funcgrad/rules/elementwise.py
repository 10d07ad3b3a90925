"""Elementwise functions: NumPy's arithmetic, exponential, trigonometric and rounding ufuncs.

Each derivative is written once, as the product of a tangent or cotangent `t` with the local factor, and
serves both modes (see `funcgrad.core.primitive.Elementwise`). The formulas are those of
M. Abramowitz and I. Stegun, *Handbook of Mathematical Functions*, chapter 4, arranged so that they neither
overflow nor cancel where the function itself does not.

At a kink the factor is the subgradient of least norm: 0 for ``abs`` at 0, one half for each of two
equal arguments of ``maximum``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.primitive import elementwise
from funcgrad.core.zero import dtype_of

__all__: list[str] = []

# Arithmetic

add = elementwise(np.add)


add.def_identity(0)


add.def_identity(1)


subtract = elementwise(np.subtract)


subtract.def_identity(0)


@subtract.def_partial(1)
def subtract_partial_y(t):
    return -t


multiply = elementwise(np.multiply)


@multiply.def_partial(0)
def multiply_partial_x(t, y):
    return t * y


@multiply.def_partial(1)
def multiply_partial_y(t, x):
    return t * x


divide = elementwise(np.true_divide, domain=((-2.0, 2.0), (0.5, 2.0)))


@divide.def_partial(0)
def divide_partial_x(t, y):
    return t / y


@divide.def_partial(1)
def divide_partial_y(t, y, out):
    return -t * (out / y)


negative = elementwise(np.negative)


@negative.def_partial()
def negative_partial(t):
    return -t


positive = elementwise(np.positive)


positive.def_identity()


power = elementwise(np.power, domain=((0.5, 2.0), (-2.0, 2.0)))
float_power = elementwise(np.float_power, domain=((0.5, 2.0), (-2.0, 2.0)))


@float_power.def_partial(0)
@power.def_partial(0)
def power_partial_x(t, x, y):
    if type(y) in (int, float):  # the usual case: no test of an array of exponents
        if y == 2:
            return t * (2 * x)
        return t * 0 if y == 0 else t * (y * x ** (y - 1))
    # 0 ** 0 is 1 for any exponent-0 power: constant in x, where y * x ** (y - 1) is 0 * inf.
    flat = np.equal(x, 0) & np.equal(y, 0)
    return t * np.where(flat, 0, y * np.power(x, np.where(flat, 1, y - 1)))


@float_power.def_partial(1)
@power.def_partial(1)
def power_partial_y(t, x, out):
    # 0 ** y is 0 for all y > 0, so its derivative in y is 0, where 0 * log(0) is not.
    return t * (out * np.log(np.where(np.equal(x, 0), 1, x)))


square = elementwise(np.square)


@square.def_partial()
def square_partial(t, x):
    return t * (2 * x)


sqrt = elementwise(np.sqrt, domain=(0.5, 2.0))


@sqrt.def_partial()
def sqrt_partial(t, out):
    return t / (2 * out)


cbrt = elementwise(np.cbrt, domain=(0.5, 2.0), kinds="f")


@cbrt.def_partial()
def cbrt_partial(t, out):
    return t / (3 * out * out)


reciprocal = elementwise(np.reciprocal, domain=(0.5, 2.0))


@reciprocal.def_partial()
def reciprocal_partial(t, out):
    return -t * (out * out)


remainder = elementwise(np.remainder, domain=((-2.0, 2.0), (2.5, 3.0)), kinds="f")


remainder.def_identity(0)


@remainder.def_partial(1)
def remainder_partial_y(t, x, y):
    return -t * np.floor(x / y)


fmod = elementwise(np.fmod, domain=((3.0, 5.5), (2.0, 2.9)), kinds="f")


fmod.def_identity(0)


@fmod.def_partial(1)
def fmod_partial_y(t, x, y):
    return -t * np.trunc(x / y)


# Exponential and logarithm

exp = elementwise(np.exp)


@exp.def_partial()
def exp_partial(t, out):
    return t * out


exp2 = elementwise(np.exp2)
_LOG_2 = float(np.log(2.0))
_LOG_10 = float(np.log(10.0))


@exp2.def_partial()
def exp2_partial(t, out):
    return t * (out * _LOG_2)


expm1 = elementwise(np.expm1)


@expm1.def_partial()
def expm1_partial(t, out):
    return t * (out + 1)


log = elementwise(np.log, domain=(0.5, 2.0))


@log.def_partial()
def log_partial(t, x):
    return t / x


log2 = elementwise(np.log2, domain=(0.5, 2.0))


@log2.def_partial()
def log2_partial(t, x):
    return t / (x * _LOG_2)


log10 = elementwise(np.log10, domain=(0.5, 2.0))


@log10.def_partial()
def log10_partial(t, x):
    return t / (x * _LOG_10)


log1p = elementwise(np.log1p, domain=(-0.5, 2.0))


@log1p.def_partial()
def log1p_partial(t, x):
    return t / (1 + x)


def _share(difference: Any, base: Any) -> Any:
    """1 / (1 + base ** -difference): the weight of the first of two log-added terms."""
    return np.exp(-np.logaddexp(0, -difference)) if base is None else np.exp2(
        -np.logaddexp2(0, -difference)
    )


logaddexp = elementwise(np.logaddexp, kinds="f")
logaddexp2 = elementwise(np.logaddexp2, kinds="f")


@logaddexp.def_partial(0)
def logaddexp_partial_x(t, x, y):
    return t * _share(_gap(x, y), None)


@logaddexp.def_partial(1)
def logaddexp_partial_y(t, x, y):
    return t * _share(_gap(y, x), None)


@logaddexp2.def_partial(0)
def logaddexp2_partial_x(t, x, y):
    return t * _share(_gap(x, y), 2)


@logaddexp2.def_partial(1)
def logaddexp2_partial_y(t, x, y):
    return t * _share(_gap(y, x), 2)


def _gap(x: Any, y: Any) -> Any:
    """Return x - y, and 0 for equal infinities: such terms share evenly."""
    return np.where(np.equal(x, y) & np.isinf(x), 0, x - y)


# Trigonometric

sin = elementwise(np.sin)


@sin.def_partial()
def sin_partial(t, x):
    return t * np.cos(x)


cos = elementwise(np.cos)


@cos.def_partial()
def cos_partial(t, x):
    return -t * np.sin(x)


tan = elementwise(np.tan, domain=(-1.0, 1.0))


@tan.def_partial()
def tan_partial(t, out):
    return t * (1 + out * out)


arcsin = elementwise(np.arcsin, domain=(-0.9, 0.9))


@arcsin.def_partial()
def arcsin_partial(t, x):
    return t / np.sqrt((1 - x) * (1 + x))  # 1 - x * x would cancel near 1


arccos = elementwise(np.arccos, domain=(-0.9, 0.9))


@arccos.def_partial()
def arccos_partial(t, x):
    return -t / np.sqrt((1 - x) * (1 + x))


arctan = elementwise(np.arctan)


@arctan.def_partial()
def arctan_partial(t, x):
    return t / (1 + x * x)


arctan2 = elementwise(np.arctan2, domain=((0.5, 2.0), (-2.0, 2.0)), kinds="f")


def _over_square(t: Any, x: Any, y: Any) -> Any:
    """Return t * x / (x**2 + y**2), 0 at the origin, without overflow of the squares."""
    r = np.hypot(x, y)
    r = np.where(np.equal(r, 0), 1, r)
    return t * (x / r / r)


@arctan2.def_partial(0)
def arctan2_partial_x(t, x, y):
    return _over_square(t, y, x)


@arctan2.def_partial(1)
def arctan2_partial_y(t, x, y):
    return -_over_square(t, x, y)


hypot = elementwise(np.hypot, domain=((0.5, 2.0), (-2.0, 2.0)), kinds="f")


@hypot.def_partial(0)
def hypot_partial_x(t, x, out):
    return t * (x / np.where(np.equal(out, 0), 1, out))


@hypot.def_partial(1)
def hypot_partial_y(t, y, out):
    return t * (y / np.where(np.equal(out, 0), 1, out))


# Hyperbolic

sinh = elementwise(np.sinh)


@sinh.def_partial()
def sinh_partial(t, x):
    return t * np.cosh(x)


cosh = elementwise(np.cosh)


@cosh.def_partial()
def cosh_partial(t, x):
    return t * np.sinh(x)


tanh = elementwise(np.tanh)


@tanh.def_partial()
def tanh_partial(t, out):
    return t * (1 - out * out)


arcsinh = elementwise(np.arcsinh)


@arcsinh.def_partial()
def arcsinh_partial(t, x):
    return t / np.sqrt(1 + x * x)


arccosh = elementwise(np.arccosh, domain=(1.5, 3.0))


@arccosh.def_partial()
def arccosh_partial(t, x):
    return t / (np.sqrt(x - 1) * np.sqrt(x + 1))


arctanh = elementwise(np.arctanh, domain=(-0.9, 0.9))


@arctanh.def_partial()
def arctanh_partial(t, x):
    return t / ((1 - x) * (1 + x))


# Angles

for _ufunc, _factor in (
    (np.deg2rad, np.pi / 180),
    (np.radians, np.pi / 180),
    (np.rad2deg, 180 / np.pi),
    (np.degrees, 180 / np.pi),
):
    _made = elementwise(_ufunc, kinds="f")

    def _scaled(t, *, _factor=_factor):
        return t * _factor

    _made.def_partial()(_scaled)


# Absolute value and sign


absolute = elementwise(np.absolute)


@absolute.def_pull()
def absolute_pull(t, x):
    if dtype_of(x).kind == "c":
        r = np.abs(x)
        return t * (np.conj(x) / np.where(np.equal(r, 0), 1, r))
    return t * np.sign(x)


@absolute.def_push()
def absolute_push(t, x):
    if dtype_of(x).kind == "c":
        r = np.abs(x)
        return np.real(t * np.conj(x)) / np.where(np.equal(r, 0), 1, r)
    return t * np.sign(x)


fabs = elementwise(np.fabs, kinds="f")


@fabs.def_partial()
def fabs_partial(t, x):
    return t * np.sign(x)


conjugate = elementwise(np.conjugate)


@conjugate.def_partial()
def conjugate_partial(t):
    return np.conj(t)


copysign = elementwise(np.copysign, domain=((0.5, 2.0), (-2.0, 2.0)), kinds="f")


@copysign.def_partial(0)
def copysign_partial_x(t, x, out):
    return t * (np.sign(x) * np.sign(out))


copysign.no_partial(1, "only the sign of the second argument counts")

# The larger and the smaller. Equal arguments share: one half each.


def _chosen(t: Any, x: Any, y: Any, out: Any) -> Any:
    """Return `t` where `x` was taken for `out`, half of it where `y` equals it, else 0."""
    taken = np.equal(x, out) | (np.isnan(x) & np.isnan(out))
    both = taken & (np.equal(y, out) | (np.isnan(y) & np.isnan(out)))
    return np.where(taken, np.where(both, t * 0.5, t), 0 * t)


for _ufunc in (np.maximum, np.minimum, np.fmax, np.fmin):
    _made = elementwise(_ufunc, kinds="f")

    @_made.def_partial(0)
    def _extreme_partial_x(t, x, y, out):
        return _chosen(t, x, y, out)

    @_made.def_partial(1)
    def _extreme_partial_y(t, x, y, out):
        return _chosen(t, y, x, out)


heaviside = elementwise(np.heaviside, domain=((0.5, 2.0), (0.5, 2.0)), kinds="f")
heaviside.no_partial(0, "a step")


@heaviside.def_partial(1)
def heaviside_partial_y(t, x):
    return np.where(np.equal(x, 0), t, 0 * t)


# Functions with discrete values: plain results under grad and jvp, so that code can branch on them.

for _ufunc, _reason in (
    (np.equal, "a comparison"),
    (np.not_equal, "a comparison"),
    (np.less, "a comparison"),
    (np.less_equal, "a comparison"),
    (np.greater, "a comparison"),
    (np.greater_equal, "a comparison"),
    (np.logical_and, "a truth value"),
    (np.logical_or, "a truth value"),
    (np.logical_xor, "a truth value"),
    (np.logical_not, "a truth value"),
    (np.isfinite, "a truth value"),
    (np.isinf, "a truth value"),
    (np.isnan, "a truth value"),
    (np.signbit, "a truth value"),
    (np.sign, "piecewise constant"),
    (np.floor, "piecewise constant"),
    (np.ceil, "piecewise constant"),
    (np.trunc, "piecewise constant"),
    (np.rint, "piecewise constant"),
    (np.floor_divide, "piecewise constant"),
    (np.spacing, "piecewise constant"),
    (np.nextafter, "a step between neighbouring floats, of no size in exact numbers"),
):
    elementwise(_ufunc).not_differentiable(_reason)
