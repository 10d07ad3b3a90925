"""Elementwise functions: NumPy's arithmetic, exponential, trigonometric and hyperbolic ufuncs.

Each derivative is written once, as the product of a tangent or cotangent `t` with the local
factor, and serves both modes (see `funcgrad.core.elementwise`). The formulas are those
of M. Abramowitz and I. Stegun, *Handbook of Mathematical Functions*, chapter 4, arranged so that
they neither overflow nor cancel where the function itself does not, and hold on the branches that
NumPy takes for complex arguments.

Where a factor is undefined at one point but a least subgradient exists (``hypot`` at the origin,
``x ** 0`` at 0), it is that; where it is infinite (``sqrt`` at 0), so is the derivative, and the
mechanism sees to it that zero times infinity is zero. Functions with kinks or steps are in
`funcgrad.rules.comparing`.
"""

from __future__ import annotations

import numpy as np

from funcgrad.core.batch import broadcasting
from funcgrad.core.elementwise import elementwise
from funcgrad.core.level import concrete, is_recorded
from funcgrad.core.primitive import Primitive, Sample
from funcgrad.core.zero import dtype_of, is_finite, numpy_number

__all__: list[str] = []

_LOG_2 = float(np.log(2.0))
_LOG_10 = float(np.log(10.0))

# Arithmetic

add = elementwise(np.add)

add.def_identity(0)
add.def_identity(1)

subtract = elementwise(np.subtract)

subtract.def_identity(0)


subtract.def_identity(1, negative=True)


multiply = elementwise(np.multiply)


multiply.def_factor(0, "y")
multiply.def_factor(1, "x")


divide = elementwise(np.true_divide, domain=((-2.0, 2.0), (0.5, 2.0)))


@divide.def_partial(0)
def divide_partial_x(t, y):
    return t / y


@divide.def_partial(1)
def divide_partial_y(t, y, out):
    return -t * (out / y)  # y * y would overflow before the quotient does


negative = elementwise(np.negative)


negative.def_identity(negative=True)


positive = elementwise(np.positive)

positive.def_identity()


conjugate = elementwise(np.conjugate)


@conjugate.def_partial()
def conjugate_partial(t):
    return np.conj(t)


square = elementwise(np.square)


@square.def_partial()
def square_partial(t, x):
    return t * (x + x)  # which takes NumPy half as long as 2 * x


sqrt = elementwise(np.sqrt, domain=(0.5, 2.0))


@sqrt.def_partial()
def sqrt_partial(t, out):
    return t / (2 * out)


cbrt = elementwise(np.cbrt, domain=(0.5, 2.0))


@cbrt.def_partial()
def cbrt_partial(t, out):
    return t / (3 * out * out)


reciprocal = elementwise(np.reciprocal, domain=(0.5, 2.0))


@reciprocal.def_partial()
def reciprocal_partial(t, out):
    return -t * (out * out)


# Powers

power = elementwise(np.power, domain=((0.5, 2.0), (-2.0, 2.0)))
float_power = elementwise(np.float_power, domain=((0.5, 2.0), (-2.0, 2.0)))


@float_power.def_partial(0)
@power.def_partial(0)
def power_partial_x(t, x, y):
    if type(y) in (int, float):  # the usual case, for which no array need be tested
        if y == 2:
            return t * (2 * x)
        return t * 0 if y == 0 else t * (y * x ** (y - 1))
    # x ** 0 is 1 at x = 0 too, with derivative 0, where y * x ** (y - 1) is 0 * inf. Elsewhere the
    # formula stands, so that it can be differentiated in y.
    flat = np.equal(x, 0) & np.equal(y, 0)
    return t * np.where(flat, 0, y * np.power(x, np.where(flat, 1, y - 1)))


def _base_and_exponent(x, y, out):
    """Keep a Python number as NumPy's if NumPy made the power of it.

    Of a negative number that is undefined, and so is its derivative; Python's is complex.
    """
    if isinstance(concrete(out), np.generic):
        x = numpy_number(x)
    return x, y


power.keep0 = float_power.keep0 = _base_and_exponent


@float_power.def_partial(1)
@power.def_partial(1)
def power_partial_y(t, x, out):
    # 0 ** y is 0 for all y > 0, so its derivative in y is 0, where 0 * log(0) is not.
    return t * (out * np.log(np.where(np.equal(x, 0), 1, x)))


@float_power.def_samples
@power.def_samples
def power_samples(rng):
    x = rng.uniform(0.5, 2.0, size=4)
    for y in (0, 1, 2, 3, -1, -2, 0.5, -1.5):
        yield Sample(x, y)
    yield Sample(-x, 3)
    yield Sample(-x, np.array([0, 1, 2, -3]), argnums=0)
    yield Sample(-x, [0, 1, 2, -3], argnums=0)
    yield Sample(np.zeros(4), [0, 1, 2, 3], argnums=0, kinks=True)
    yield Sample(np.zeros(4), np.array([0.0, 1.0, 2.0, 3.0]), kinks=True)
    yield Sample(2.0, x, argnums=1)


# Exponential and logarithm

exp = elementwise(np.exp)


@exp.def_partial()
def exp_partial(t, out):
    return t * out


exp2 = elementwise(np.exp2)


@exp2.def_partial()
def exp2_partial(t, out):
    return t * (out * _LOG_2)


expm1 = elementwise(np.expm1)


@expm1.def_partial()
def expm1_partial(t, x):
    return t * np.exp(x)  # out + 1 would be 0 where the exponential is merely small


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


logaddexp = elementwise(np.logaddexp)


@logaddexp.def_partial(0)
def logaddexp_partial_x(t, x, y):
    return t * _share.bind(_gap(x, y))


@logaddexp.def_partial(1)
def logaddexp_partial_y(t, x, y):
    return t * _share.bind(_gap(y, x))


def _one_share(gap):
    """Return 1 / (1 + exp(-gap)), by which the term that is larger by `gap` counts."""
    return 1 / (1 + np.exp(-gap))


_share = Primitive(_one_share, name="share")
broadcasting(_share)


@_share.def_jvp
def share_jvp(primals, tangents, out):
    """Compute ``out * (1 - out)``, where 1 - out would lose its digits in the tail."""
    return tangents[0] * (out * _share.bind(-primals[0]))


@_share.def_vjp
def share_vjp(primals, out):
    """Keep the slope alone."""
    slope = out * _share.bind(-primals[0])

    def share_pullback(out_bar):
        return out_bar * slope

    return share_pullback


logaddexp2 = elementwise(np.logaddexp2)


@logaddexp2.def_partial(0)
def logaddexp2_partial_x(t, x, y):
    return t * _share2(_gap(y, x))


@logaddexp2.def_partial(1)
def logaddexp2_partial_y(t, x, y):
    return t * _share2(_gap(x, y))


def _share2(gap):
    """Return 1 / (1 + 2**gap)."""
    if type(gap) is np.ndarray:
        return 1 / (1 + np.exp2(gap))
    return np.exp2(-np.logaddexp2(0, gap))


def _gap(x, y):
    """Return x - y, and 0 for equal infinities: such terms share evenly."""
    if not _has_infinite(x, y):
        return x - y
    # Of infinities only: where finite terms are equal, the difference still has its slope.
    return np.where(np.logical_and(np.equal(x, y), np.isinf(x)), 0, x - y)


def _has_infinite(x, y):
    if is_recorded(x) and is_recorded(y):
        return True  # on other values they may
    x, y = concrete(x), concrete(y)
    return not np.all(np.isfinite(x)) and not np.all(np.isfinite(y))


@logaddexp2.def_samples
@logaddexp.def_samples
def logaddexp_samples(rng):
    inf = np.inf
    yield Sample(np.array([800.0, -800.0, 1.0]), np.array([-800.0, 1.0, 40.0]))
    yield Sample(
        np.array([-inf, -inf, 1.0, inf, inf]), np.array([-inf, 1.0, -inf, 1.0, inf]), kinks=True
    )


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
    return t / _root(x)


arccos = elementwise(np.arccos, domain=(-0.9, 0.9))


@arccos.def_partial()
def arccos_partial(t, x):
    return -t / _root(x)


def _root(x):
    """Return sqrt(1 - x**2) without the cancellation near 1, on the branches of arcsin."""
    if dtype_of(x).kind == "c":
        # The sign of a zero imaginary part says on which side of the cut x is. 1 - x and 1 + x
        # would lose it.
        return np.sqrt(-(x - 1)) * np.sqrt(x - -1)
    return np.sqrt((1 - x) * (1 + x))


arctan = elementwise(np.arctan)


@arctan.def_partial()
def arctan_partial(t, x):
    return t / (1 + x * x)


arctan2 = elementwise(np.arctan2, domain=((0.5, 2.0), (-2.0, 2.0)))


@arctan2.def_partial(0)
def arctan2_partial_x(t, x, y):
    return _over_square(t, y, x)


@arctan2.def_partial(1)
def arctan2_partial_y(t, x, y):
    return -_over_square(t, x, y)


def _over_square(t, x, y):
    """Return t * x / (x**2 + y**2), 0 at the origin, whatever becomes of the squares."""
    square = x * x + y * y
    if _is_normal(square):
        return t * (x / square)
    r = np.hypot(x, y)  # which takes twenty times as long
    r = np.where(np.equal(r, 0), 1, r)
    return t * (x / r / r)


def _is_normal(square):
    """Tell whether sums of squares neither overflowed nor lost digits by underflow."""
    if is_recorded(square):
        return False  # on other values they may have
    limits = np.finfo(dtype_of(square))
    return is_finite(square) and np.min(concrete(square), initial=1) > limits.tiny / limits.eps


hypot = elementwise(np.hypot, domain=((0.5, 2.0), (-2.0, 2.0)))


@hypot.def_partial(0)
def hypot_partial_x(t, x, out):
    return t * (x / np.where(np.equal(out, 0), np.inf, out))  # as of abs: 0, to all orders


@hypot.def_partial(1)
def hypot_partial_y(t, y, out):
    return t * (y / np.where(np.equal(out, 0), np.inf, out))


@arctan2.def_samples
@hypot.def_samples
def plane_samples(rng):
    yield Sample(np.array([0.0, 0.0, 1.0, -2.0]), np.array([1.0, -2.0, 0.0, 0.0]), kinks=True)
    yield Sample(np.array([0.0, -0.0]), np.array([0.0, 0.0]), kinks=True)


deg2rad = elementwise(np.deg2rad)
radians = elementwise(np.radians)
rad2deg = elementwise(np.rad2deg)
degrees = elementwise(np.degrees)


@radians.def_partial()
@deg2rad.def_partial()
def radians_partial(t):
    return t * (np.pi / 180)


@degrees.def_partial()
@rad2deg.def_partial()
def degrees_partial(t):
    return t * (180 / np.pi)


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
    if dtype_of(x).kind == "c":
        return t / np.sqrt(x * x - -1)  # see _root
    root = np.sqrt(x * x + 1)  # np.hypot takes twenty times as long
    if not is_finite(root):  # the square overflowed
        root = np.where(np.isinf(root), np.abs(x), root)
    return t / root


arccosh = elementwise(np.arccosh, domain=(1.5, 3.0))


@arccosh.def_partial()
def arccosh_partial(t, x):
    if dtype_of(x).kind == "c":
        return t / (np.sqrt(x - 1) * np.sqrt(x - -1))  # see _root
    root = np.sqrt((x - 1) * (x + 1))
    if not is_finite(root):  # the product overflowed
        root = np.where(np.isinf(root), np.abs(x), root)
    return t / root


arctanh = elementwise(np.arctanh, domain=(-0.9, 0.9))


@arctanh.def_partial()
def arctanh_partial(t, x):
    return t / ((1 - x) * (1 + x))
