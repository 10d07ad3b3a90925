"""`sinc` and `i0`: functions given by an integral, with derivatives of every order from it.

Both are an average of a function of ``s * x`` over weights in `s`, so that each derivative brings
a power of `s` under the integral and is the same function with another number. That avoids what the
textbook formulas do at 0, where they divide by `x`.

    sinc(x) = integral of cos(pi x s) over s from 0 to 1
    i0(x)   = average of exp(x cos(u)) over the circle of angles u

The second is (9.6.16) in M. Abramowitz and I. Stegun, *Handbook of Mathematical Functions*.
"""

from __future__ import annotations

import math

import numpy as np

from funcgrad.core.batch import broadcasting
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, zero_wins

__all__: list[str] = []


def _declare_rules(made, derivative):
    """Declare the rules of a function, or of its derivative of order `nth`."""

    @made.def_jvp
    def integral_jvp(primals, tangents, out, nth=0):
        (x,), (x_dot,) = primals, tangents
        return zero_wins(x_dot * derivative.bind(x, nth=nth + 1), x_dot)

    @made.def_vjp
    def integral_vjp(primals, out, nth=0):
        (x,) = primals

        def integral_pullback(out_bar):
            return zero_wins(out_bar * derivative.bind(x, nth=nth + 1), out_bar)

        return integral_pullback

    broadcasting(made)


@primitive(overrides=(np.sinc,))
def sinc(x):
    """Normalised sinc function, sin(pi x) / (pi x)."""
    return np.sinc(x)


@sinc.def_jvp
def sinc_jvp(primals, tangents, out):
    (x,), (x_dot,) = primals, tangents
    return zero_wins(x_dot * sinc_slope.bind(x, out), x_dot)


@sinc.def_vjp
def sinc_vjp(primals, out):
    (x,) = primals

    def sinc_pullback(out_bar):
        return zero_wins(out_bar * sinc_slope.bind(x, out), out_bar)

    return sinc_pullback


broadcasting(sinc)


@primitive()
def sinc_slope(x, value):
    """First derivative of sinc, given its value, which takes half the time to compute.

    It is a function of `x` alone, so there is no derivative in `value`.
    """
    turns = np.pi * np.asarray(x)
    with np.errstate(all="ignore"):
        out = np.asarray((np.cos(turns) - value) / x)
    near = np.abs(turns) <= 0.5
    if np.any(near):
        # Where sinc is nearly the cosine, by the series, of which 9 terms suffice.
        out[near] = _sinc_series(turns[near], 1, 9)
    return out[()]


@sinc_slope.def_jvp
def sinc_slope_jvp(primals, tangents, out):
    x, x_dot = primals[0], tangents[0]
    return None if x_dot is None else zero_wins(x_dot * sinc_derivative.bind(x, nth=2), x_dot)


@sinc_slope.def_vjp
def sinc_slope_vjp(primals, out):
    x = primals[0]

    def sinc_slope_pullback(out_bar):
        return zero_wins(out_bar * sinc_derivative.bind(x, nth=2), out_bar)

    return sinc_slope_pullback, None


broadcasting(sinc_slope)


@primitive()
def sinc_derivative(x, *, nth):
    """Derivative of order `nth` of sinc.

    With S_n for it, ``x S_n + n S_(n-1) = pi**(n-1) sin(pi x + n pi / 2)`` gives one order from the
    one before, and loses no digits as long as pi x is larger than n. Nearer to 0 the power series
    serves.
    """
    x = np.asarray(x)
    turns = np.pi * x
    near = np.abs(turns) <= nth + 1
    out = np.empty_like(turns)
    out[near] = _sinc_series(turns[near], nth, (nth + 1) // 2 + nth + 17)
    far = x[~near]
    away = np.sinc(far)
    for n in range(1, nth + 1):
        away = (np.pi ** (n - 1) * np.sin(np.pi * far + n * (np.pi / 2)) - n * away) / far
    out[~near] = away
    return out[()]


def _sinc_series(y, nth, stop):
    """Sum (-1)**k y**(2k-n) pi**n / ((2k+1) (2k-n)!) over k < `stop`, by Horner's scheme."""
    first = (nth + 1) // 2
    total = np.zeros_like(y)
    square = y * y
    for k in range(stop - 1, first - 1, -1):
        total *= square
        total += (-1) ** k / ((2 * k + 1) * math.factorial(2 * k - nth))
    return np.pi**nth * total * y ** (2 * first - nth)


_declare_rules(sinc_derivative, sinc_derivative)


@sinc.def_samples
def sinc_samples(rng):
    yield Sample(3 * rng.normal(size=(2, 3)))
    yield Sample(np.array([0.0, 1.0, -2.0, 1e-9, 0.4, 30.5]))
    yield Sample(np.zeros((0, 3)))
    yield Sample(np.float64(0.3))


@sinc_slope.def_samples
def sinc_slope_samples(rng):
    x = np.array([0.0, 0.1, 0.5, -1.3, 4.0])
    yield Sample(x, fun=_slope_alone)


def _slope_alone(x):
    return sinc_slope.bind(x, np.sinc(x))


@sinc_derivative.def_samples
def sinc_derivative_samples(rng):
    for nth in (1, 2, 5):
        yield Sample(np.array([0.0, 0.5, -1.3, 4.0]), nth=nth, fun=sinc_derivative)


@primitive(overrides=(np.i0,))
def i0(x):
    """Modified Bessel function of the first kind, order 0."""
    return np.i0(x)


# The trapezoidal rule converges at once for a periodic function: with 240 points on the circle,
# folded into a quarter of it, all digits are right up to where the function overflows.
_POINTS = 60


@primitive()
def i0_derivative(x, *, nth):
    """Derivative of order `nth` of i0: the average of cos(u)**nth exp(x cos(u))."""
    # The terms that the rule misses are Bessel functions of the order of all points on the circle,
    # which are as small as exp(-order**2 / (2 x)) beside the function.
    size = float(np.max(np.abs(x), initial=0.0, where=np.isfinite(x)))
    points = min(math.ceil(math.sqrt(80 * min(size, 1e3)) / 4) + nth // 4 + 7, _POINTS)
    s = np.cos(np.arange(points + 1) * (np.pi / (2 * points)))
    weights = s**nth / points
    weights[[0, -1]] /= 2
    s, weights = s.astype(dtype_of(x)), weights.astype(dtype_of(x))
    # Opposite points of the circle together, so that nothing cancels.
    both = np.cosh if nth % 2 == 0 else np.sinh
    return np.sum(weights * both(np.expand_dims(x, -1) * s), axis=-1)


_declare_rules(i0, i0_derivative)
_declare_rules(i0_derivative, i0_derivative)


@i0.def_samples
def i0_samples(rng):
    yield Sample(rng.normal(size=(2, 3)))
    yield Sample(np.array([0.0, 10.0, -20.0]))
    yield Sample(np.zeros((0, 3)))
    yield Sample(np.float64(0.3))


@i0_derivative.def_samples
def i0_derivative_samples(rng):
    for nth in (1, 2):
        yield Sample(np.array([0.0, 0.5, -1.3, 4.0]), nth=nth, fun=i0_derivative, complex=False)
