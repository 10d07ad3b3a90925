"""`scipy.signal`: linear filters along an axis, and what else is linear in a signal.

The one idea: the transpose of a filter is the same filter run backwards in time, and its
coefficients get the sums of products of that with the signal, one for each lag.

The functions here compute by SciPy. They are called through `funcgrad.scipy.signal`, as SciPy's
own functions do not ask tracers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import signal

from funcgrad.core.batch import along, loop, shift
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.convolution import window
from funcgrad.rules.families import linear
from funcgrad.rules.fft import fitted
from funcgrad.rules.scipy.convolving import flip
from funcgrad.rules.spelling import as_arrays

__all__ = ["detrend", "hilbert", "lfilter"]


def filter_args(args: Any, params: Any) -> Any:
    """Make vectors of coefficients that are numbers."""
    (b, a, x), params = as_arrays(args, params)
    b, a = (c if shape_of(c) else np.reshape(c, (1,)) for c in (b, a))
    return (b, a, x), params


@primitive(canonical=filter_args, name="scipy.signal.lfilter")
def lfilter(b, a, x, *, axis=-1):
    """Solve ``A y = B x`` for y: `A` and `B` stand for the convolutions with `a` and `b`."""
    return signal.lfilter(b, a, x, axis)


def _one(x: Any) -> Any:
    return np.ones(1, dtype_of(x))


@lfilter.def_jvp
def lfilter_jvp(primals, tangents, out, *, axis):
    """``A y_dot = b_dot * x + B x_dot - a_dot * y``."""
    b, a, x = primals
    b_dot, a_dot, x_dot = tangents
    terms = []
    if b_dot is not None:
        terms.append(lfilter.bind(b_dot, a, x, axis=axis))
    if a_dot is not None:
        terms.append(-lfilter.bind(a_dot, a, out, axis=axis))
    if x_dot is not None:
        terms.append(lfilter.bind(b, a, x_dot, axis=axis))
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


@lfilter.def_vjp
def lfilter_vjp(primals, out, *, axis):
    """The transpose of a filter is the filter run backwards in time."""
    b, a, x = primals
    n_b, n_a = shape_of(b)[0], shape_of(a)[0]

    def backwards(c, out_bar):
        return flip(lfilter.bind(c, a, flip(out_bar, (axis,)), axis=axis), (axis,))

    def lags(weights, y, count):
        """Sum ``weights[t] * y[t - k]`` over the times t, for each lag k."""
        weights, y = (np.moveaxis(z, axis, -1) for z in (weights, y))
        length = shape_of(y)[-1]
        if not length:
            return np.zeros(count, dtype_of(weights))
        rows = window.bind(weights, y[..., ::-1], start=length - 1, length=count)
        return np.sum(np.reshape(rows, (-1, count)), axis=0)

    def lfilter_pullback_b(out_bar):
        return lags(backwards(_one(a), out_bar), x, n_b)

    def lfilter_pullback_a(out_bar):
        return -lags(backwards(_one(a), out_bar), out, n_a)

    def lfilter_pullback_x(out_bar):
        return backwards(b, out_bar)

    return lfilter_pullback_b, lfilter_pullback_a, lfilter_pullback_x


@lfilter.def_batch
def lfilter_batch(args, batched, *, axis):
    b, a, x = args
    if batched[0] or batched[1] or not shape_of(x)[0]:
        return loop(lfilter.bind, args, batched, {"axis": axis})
    return lfilter.bind(b, a, x, axis=shift(axis, len(shape_of(x)) - 1))


@primitive(linear, canonical=as_arrays, name="scipy.signal.detrend")
def detrend(data, *, axis=-1, type="linear", bp=0):
    """Subtract a straight line, or the mean; an orthogonal projection."""
    return signal.detrend(data, axis, type, bp)


@detrend.def_vjp
def detrend_vjp(primals, out, *, axis, type, bp):
    def detrend_pullback(out_bar):
        return detrend.bind(out_bar, axis=axis, type=type, bp=bp)

    return detrend_pullback


@detrend.def_batch
def detrend_batch(args, batched, *, axis, type, bp):
    (data,) = args
    if not shape_of(data)[0]:  # SciPy does not take an empty array
        return loop(detrend.bind, args, batched, {"axis": axis, "type": type, "bp": bp})
    axis = shift(axis, len(shape_of(data)) - 1)
    return detrend.bind(data, axis=axis, type=type, bp=bp)


@primitive(linear, canonical=as_arrays, name="scipy.signal.hilbert")
def hilbert(x, *, N=None, axis=-1):
    """Analytic signal: the inverse transform of the spectrum with its negative half left out."""
    return signal.hilbert(x, N, axis)


@hilbert.def_vjp
def hilbert_vjp(primals, out, *, N, axis):
    shape, dtype = shape_of(primals[0]), dtype_of(primals[0])
    length = shape[axis]
    n = length if N is None else N
    weights = np.zeros(n, dtype)
    weights[0] = 1
    weights[1 : (n + 1) // 2] = 2
    if n % 2 == 0:
        weights[n // 2] = 1
    weights = weights.reshape((-1,) + (1,) * (len(shape) - 1 - axis % len(shape)))

    def hilbert_pullback(out_bar):
        x_bar = np.fft.fft(weights * np.fft.ifft(out_bar, axis=axis), axis=axis)
        return fitted(x_bar, axis, length)

    return hilbert_pullback


along(hilbert)


@lfilter.def_samples
def lfilter_samples(rng):
    b, a = rng.normal(size=3), np.array([1.5, 0.4, -0.3])
    x = rng.normal(size=6)
    yield Sample(b, a, x)
    yield Sample(b[:1], a, x)
    yield Sample(b, a[:1], x)
    yield Sample(b, np.float64(1.5), x)
    yield Sample(np.append(b, [0.2, 0.1]), a, x[:3])
    yield Sample(b, a, rng.normal(size=(2, 5)))
    yield Sample(b, a, rng.normal(size=(5, 2)), 0)
    yield Sample(b, a, rng.normal(size=(2, 4, 2)), axis=-2)


@detrend.def_samples
def detrend_samples(rng):
    x = rng.normal(size=(3, 5))
    yield Sample(x)
    yield Sample(x, 0, "constant")
    yield Sample(x, type="linear", bp=2)
    yield Sample(x, bp=[2, 3])
    yield Sample(x[0])


@hilbert.def_samples
def hilbert_samples(rng):
    for shape in ((5,), (6,), (1,), (2, 3)):
        yield Sample(rng.normal(size=shape), complex=False)
    for n in (3, 8):
        yield Sample(rng.normal(size=(5, 2)), N=n, axis=0, complex=False)
