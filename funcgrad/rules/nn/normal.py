"""The normal distribution function of each element, exact in both tails, at the dtype's precision.

The one idea: the tail is ``exp(-y**2 / 2)`` times a slowly varying function of `y`, so that it has
all its digits however small it is; the other half is 1 less the tail. It takes some forty passes,
which go over a piece of the array that is in the cache.
"""

from __future__ import annotations

import math

import numpy as np

from funcgrad.core.normal import upper_tail
from funcgrad.core.primitive import Sample, primitive
from funcgrad.rules.nn.activations import by_slope, one_real
from funcgrad.rules.nn.scratch import scratch

__all__ = ["normal_cdf"]


def _constants(*values):
    """Return arrays of single numbers, which NumPy takes more quickly than numbers."""
    return [np.array(value, np.float32) for value in values]


# Elements of a piece.
_PIECE = 1 << 15

# The tail over exp(-y**2 / 2) is a quotient of polynomials, to 6e-9 for `y` from 0 to 14.5: fitted
# for this module, by least squares with weights that were changed until the maxima of the relative
# error were alike. The highest power comes first; that of the denominator is 1.
_NUMERATOR = _constants(0.3989469104, 3.9381172481, 17.758908043, 42.4789829254, 48.4593788461)
_DENOMINATOR = _constants(
    9.8720208914, 45.5004736931, 116.5450521491, 162.2879865582, 96.9187571197
)
# From here on the tail is 0 in single precision.
_FAR = np.array(14.5, np.float32)
_MINUS_HALF = np.array(-0.5, np.float32)
# The upper half of the bits of the significand: a number whose square has no rounding error.
_UPPER_HALF = np.array(-4096, np.int32)
_SIGN = np.array(31, np.int32)
_ONE = np.array(1, np.float32).view(np.int32)


@primitive(canonical=one_real)
def normal_cdf(x):
    """The probability that a standard normal variable is less than `x`, exact in both tails."""
    x = np.asarray(x)
    out = np.empty_like(x)
    # All elements in a row, as they lie in memory.
    order = sorted(range(out.ndim), key=lambda axis: -out.strides[axis])
    given, made = x.transpose(order).reshape(-1), out.transpose(order).reshape(-1)
    with scratch() as memory:
        work = None
        for start in range(0, given.size, _PIECE):
            piece = given[start : start + _PIECE]
            target = made[start : start + _PIECE]
            if x.itemsize > 4:
                upper = upper_tail(np.abs(piece).astype(np.float64, copy=False), np.exp)
                target[...] = np.where(np.less(piece, 0), upper, 1 - upper)
                continue
            if work is None:
                work = memory.empty((4, piece.size), np.float32)
            parts = work[:, : piece.size]
            if x.itemsize == 4:
                _in_single_precision(piece, parts, target)
            else:
                _in_single_precision(piece.astype(np.float32), parts, parts[1])
                target[...] = parts[1]
    return out[()]


def _in_single_precision(x, work, out):
    """Fill in `out` for float32, to 1 unit in the last place on average, and 9 at most.

    In `work` are four arrays to work in, of which the second may be `out`.
    """
    y, tail, high, low = work
    np.abs(x, out=y)
    np.minimum(y, _FAR, out=y)
    np.multiply(y, _NUMERATOR[0], out=tail)
    for k in _NUMERATOR[1:-1]:
        np.add(tail, k, out=tail)
        np.multiply(tail, y, out=tail)
    np.add(tail, _NUMERATOR[-1], out=tail)
    np.add(y, _DENOMINATOR[0], out=low)
    for k in _DENOMINATOR[1:]:
        np.multiply(low, y, out=low)
        np.add(low, k, out=low)
    np.divide(tail, low, out=tail)
    # The square of y is that of `high`, and (y - high) (y + high).
    np.bitwise_and(y.view(np.int32), _UPPER_HALF, out=high.view(np.int32))
    np.subtract(y, high, out=low)
    np.add(y, high, out=y)
    np.multiply(low, y, out=low)
    np.multiply(high, high, out=high)
    for part in (high, low):
        np.multiply(part, _MINUS_HALF, out=part)
        np.exp(part, out=part)
        np.multiply(tail, part, out=tail)
    # The distance to 0 or to 1, whichever the sign of `x` says, without a branch for each.
    bits, end = low.view(np.int32), low
    np.right_shift(x.view(np.int32), _SIGN, out=bits)
    np.invert(bits, out=bits)
    np.bitwise_and(bits, _ONE, out=bits)
    np.subtract(end, tail, out=tail)
    np.abs(tail, out=out)


@by_slope(normal_cdf)
def _density(x):
    """The normal density."""
    return np.exp(np.square(x) * -0.5) * (1 / math.sqrt(2 * math.pi))


@normal_cdf.def_samples
def normal_cdf_samples(rng):
    yield Sample(rng.normal(size=(3, 4)), fun=normal_cdf, complex=False)
    yield Sample(np.float64(-5.0), fun=normal_cdf, complex=False)
    yield Sample(np.zeros((0, 3)), fun=normal_cdf, complex=False)
