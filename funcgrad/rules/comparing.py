"""Elementwise functions with kinks and steps: absolute values, extremes, comparisons, rounding.

At a kink the factor is the subgradient of least norm: 0 for ``abs`` at 0, one half for each of two
equal arguments of ``maximum``. At a step the derivative is that of the pieces; a function of which
all pieces are constant has none, and returns plain values under `grad` and `jvp`, so that code can
branch on them.
"""

from __future__ import annotations

import numpy as np

from funcgrad.core.batch import broadcasting
from funcgrad.core.elementwise import Elementwise, elementwise
from funcgrad.core.level import any_of
from funcgrad.core.primitive import Sample, overrides, primitive, store
from funcgrad.core.zero import dtype_of, selected

__all__: list[str] = []

# Absolute value and sign

absolute = elementwise(np.absolute)


@absolute.def_pull()
def absolute_pull(t, x):
    return t * (np.conj(np.sign(x)) if dtype_of(x).kind == "c" else np.sign(x))


@absolute.def_push()
def absolute_push(t, x):
    return np.real(t * np.conj(np.sign(x))) if dtype_of(x).kind == "c" else t * np.sign(x)


@absolute.def_samples
def absolute_samples(rng):
    yield Sample(np.array([0.0, -0.0, 1.0, -2.0]), kinks=True, complex=False)
    yield Sample(np.array([0j, 3 - 4j]), kinks=True)


fabs = elementwise(np.fabs)


@fabs.def_partial()
def fabs_partial(t, x):
    return t * np.sign(x)


_real_sign = Elementwise(np.sign, name="sign", domain=(-2.0, 2.0))
_real_sign.not_differentiable("piecewise constant")

# The sign of a complex number is its direction z / abs(z), which is not constant.
_complex_sign = Elementwise(np.sign, name="sign", domain=(-2.0, 2.0))


@_complex_sign.def_pull()
def complex_sign_pull(t, x, out):
    return (t - np.real(t * out) * np.conj(out)) / _length(x)


@_complex_sign.def_push()
def complex_sign_push(t, x, out):
    return (t - np.real(t * np.conj(out)) * out) / _length(x)


def _length(x):
    r = np.abs(x)
    return np.where(np.equal(r, 0), np.inf, r)  # at 0 the sign is 0, and its derivative too


@overrides(np.sign)
def sign(x, /, out=None, *, where=True, dtype=None, **how):
    """Sign of real numbers, which is piecewise constant, and direction of complex ones."""
    if dtype is not None:
        x = x.astype(dtype)
    result = _complex_sign.bind(x) if dtype_of(x).kind == "c" else _real_sign.bind(x)
    if where is not True:
        result = np.where(where, result, 0 if out is None else out[0])
    return result if out is None else store(result, out, stretch=True)


@sign.def_samples
def sign_samples(rng):
    yield Sample(rng.normal(size=3))
    yield Sample(np.array([0j, 3 - 4j]), kinks=True)


copysign = elementwise(np.copysign, domain=((0.5, 2.0), (-2.0, 2.0)))


@copysign.def_partial(0)
def copysign_partial_x(t, x, out):
    return t * (np.sign(x) * np.sign(out))


copysign.no_partial(1, "only the sign of the second argument counts")


@copysign.def_samples
def copysign_samples(rng):
    yield Sample(np.array([-1.0, -2.0, 3.0, 4.0]), np.array([1.0, -0.0, 0.0, -3.0]), argnums=0)
    yield Sample(np.array([0.0, -0.0]), np.array([1.0, -1.0]), kinks=True)


# The larger and the smaller. Equal arguments share: one half each. These are selections: a
# cotangent that is infinite must not become NaN in the argument that was not taken.


def _taken(mask, t, x, y):
    """Return `t` where an argument was taken, and half of it where both were."""
    tie = np.equal(x, y)
    return selected(mask, np.where(tie, 0.5 * t, t) if any_of(tie) else t)


maximum = elementwise(np.maximum)


@maximum.def_partial(0)
def maximum_partial_x(t, x, y):
    return _taken(np.logical_not(np.less(x, y)), t, x, y)


@maximum.def_partial(1)
def maximum_partial_y(t, x, y):
    return _taken(np.logical_not(np.less(y, x)), t, x, y)


minimum = elementwise(np.minimum)


@minimum.def_partial(0)
def minimum_partial_x(t, x, y):
    return _taken(np.logical_not(np.greater(x, y)), t, x, y)


@minimum.def_partial(1)
def minimum_partial_y(t, x, y):
    return _taken(np.logical_not(np.greater(y, x)), t, x, y)


fmax = elementwise(np.fmax)
fmin = elementwise(np.fmin)


# Here a NaN was not taken, which only the result can tell.


@fmin.def_partial(0)
@fmax.def_partial(0)
def fmax_partial_x(t, x, y, out):
    return _taken(np.equal(x, out), t, x, y)


@fmin.def_partial(1)
@fmax.def_partial(1)
def fmax_partial_y(t, x, y, out):
    return _taken(np.equal(y, out), t, x, y)


@fmin.def_samples
@fmax.def_samples
@minimum.def_samples
@maximum.def_samples
def extreme_samples(rng):
    yield Sample(
        np.array([1.0, -2.0, 0.0, np.inf]), np.array([1.0, -2.0, -0.0, np.inf]), kinks=True
    )
    yield Sample(np.array([1.0, np.nan, 2.0]), np.array([np.nan, 0.0, 3.0]), kinks=True)
    yield Sample(np.array([0.0, 1.0, -1.0]), 0, kinks=True)


# Steps with slopes between them

remainder = elementwise(np.remainder, domain=((-2.0, 2.0), (2.5, 3.0)))

remainder.def_identity(0)


@remainder.def_partial(1)
def remainder_partial_y(t, x, y, out):
    return -t * np.rint((x - out) / y)  # floor(x / y) would round up to the multiple at times


fmod = elementwise(np.fmod, domain=((3.0, 5.5), (2.0, 2.9)))

fmod.def_identity(0)


@fmod.def_partial(1)
def fmod_partial_y(t, x, y, out):
    return -t * np.rint((x - out) / y)


@fmod.def_samples
@remainder.def_samples
def remainder_samples(rng):
    yield Sample(np.array([5.5, -5.5, 5.5, -5.5]), np.array([2.0, 2.0, -2.0, -2.0]))
    yield Sample(np.array([1.0, 4.0, -4.0, 0.0]), np.array([0.1, 2.0, 2.0, 2.0]), kinks=True)


heaviside = elementwise(np.heaviside, domain=((0.5, 2.0), (0.5, 2.0)))
heaviside.no_partial(0, "a step")


@heaviside.def_partial(1)
def heaviside_partial_y(t, x):
    return np.where(np.equal(x, 0), t, 0)


@heaviside.def_samples
def heaviside_samples(rng):
    yield Sample(np.array([-1.0, 0.0, 0.0, 2.0]), rng.normal(size=4), argnums=1)


# x and the smallest step there is: in exact numbers, x itself.
nextafter = elementwise(np.nextafter)
nextafter.def_identity(0)
nextafter.no_partial(1, "only the direction counts")


# Functions with discrete values

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
    (np.isnat, "a truth value"),
    (np.signbit, "a truth value"),
    (np.floor, "piecewise constant"),
    (np.ceil, "piecewise constant"),
    (np.trunc, "piecewise constant"),
    (np.rint, "piecewise constant"),
    (np.floor_divide, "piecewise constant"),
    (np.spacing, "piecewise constant"),
    # These refuse floats; they are named here so that NumPy itself says so.
    (np.bitwise_and, "of integers"),
    (np.bitwise_or, "of integers"),
    (np.bitwise_xor, "of integers"),
    (np.bitwise_count, "of integers"),
    (np.invert, "of integers"),
    (np.left_shift, "of integers"),
    (np.right_shift, "of integers"),
    (np.gcd, "of integers"),
    (np.lcm, "of integers"),
):
    elementwise(_ufunc).not_differentiable(_reason)


@primitive(overrides=(np.round, np.around), name="round")
def round_(a, *, decimals=0, out=None):
    """Nearest multiple of a power of ten."""
    return np.round(a, decimals)


round_.not_differentiable("piecewise constant")
broadcasting(round_)


@round_.def_samples
def round_samples(rng):
    x = 100 * rng.normal(size=(2, 3))
    yield Sample(x)
    yield Sample(x, 1)
    yield Sample(x, decimals=-1, fun=np.around)
    yield Sample(np.float64(2.5))


@primitive(overrides=(np.fix,))
def fix(x, *, out=None):
    """Nearest integer towards zero."""
    return np.fix(x)


fix.not_differentiable("piecewise constant")
broadcasting(fix)


@fix.def_samples
def fix_samples(rng):
    yield Sample(10 * rng.normal(size=(2, 3)))
