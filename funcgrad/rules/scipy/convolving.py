"""`scipy.signal`: convolution and correlation in any number of dimensions.

The one idea: each mode keeps a part of the full convolution. The cotangent,
put back in its place among zeros, is convolved with the other array reversed, and of that the part
where they overlap in full is the cotangent of the one array. The convolutions differ in how they
compute, and each pulls back by its own method.

The functions here compute by SciPy. They are called through `funcgrad.scipy.signal`, as SciPy's
own functions do not ask tracers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from scipy import signal

from funcgrad.core.batch import by_loop, count_examples, full_batch, loop
from funcgrad.core.primitive import Primitive, Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.convolution import window
from funcgrad.rules.families import multilinear
from funcgrad.rules.matmul import conj
from funcgrad.rules.spelling import as_arrays

__all__ = [
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "fftconvolve",
    "flip",
    "oaconvolve",
]


# What the convolutions share


def flip(x: Any, axes: Any) -> Any:
    """Return `x` reversed along `axes`."""
    index = [slice(None)] * len(shape_of(x))
    for axis in axes:
        index[axis] = slice(None, None, -1)
    return x[tuple(index)]


def _axes(axes: Any, ndim: int) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(ndim))
    found: tuple[int, ...] = normalize_axis_tuple(axes, ndim)
    return found


def _full(shape1: Any, shape2: Any, axes: Any) -> tuple[int, ...]:
    """Return the shape of the full convolution along `axes`; other axes are broadcast."""
    pairs = enumerate(zip(shape1, shape2, strict=True))
    return tuple(m + n - 1 if axis in axes else max(m, n) for axis, (m, n) in pairs)


def _starts(mode: str, shape1: Any, shape2: Any, axes: Any) -> tuple[int, ...]:
    """Return where in the full convolution starts what `mode` keeps."""
    full = _full(shape1, shape2, axes)
    if mode == "full":
        return (0,) * len(full)
    if mode == "same":
        return tuple((have - want) // 2 for have, want in zip(full, shape1, strict=True))
    pairs = enumerate(zip(shape1, shape2, strict=True))
    return tuple(min(m, n) - 1 if axis in axes else 0 for axis, (m, n) in pairs)


def _pullbacks(
    product: Any, primals: Any, mode: str, axes: Any = None, starts: Any = None
) -> tuple[Any, Any]:
    """Return the pullbacks of a convolution to both arrays.

    ``product(x, y, mode)`` convolves. `starts` is for where a correlation is not in line with the
    convolution of the same mode.
    """
    in1, in2 = primals
    shape1, shape2 = shape_of(in1), shape_of(in2)
    axes = _axes(axes, len(shape1))
    full = _full(shape1, shape2, axes)
    if starts is None:
        starts = _starts(mode, shape1, shape2, axes)

    def pull(out_bar, other, mine):
        theirs = shape_of(other)
        if not (all(mine) and all(theirs)):
            return np.zeros(mine, dtype_of(out_bar))
        other = flip(other, axes)
        if mode == "valid" and all(mine[axis] >= theirs[axis] for axis in axes):
            return product(out_bar, other, "full")
        if mode == "valid" and all(mine[axis] <= theirs[axis] for axis in axes):
            return product(other, out_bar, "valid")
        widths = [
            (start, have - start - length)
            for start, have, length in zip(starts, full, shape_of(out_bar), strict=True)
        ]
        if any(pair != (0, 0) for pair in widths):
            out_bar = np.pad(out_bar, widths)
        return product(out_bar, other, "valid")

    def convolution_pullback_1(out_bar):
        return pull(out_bar, in2, shape1)

    def convolution_pullback_2(out_bar):
        return pull(out_bar, in1, shape2)

    return convolution_pullback_1, convolution_pullback_2


def _conjugated(pullback: Any, axes: Any) -> Any:
    """Return the pullback to what was reversed and conjugated first, as in a correlation."""

    def conjugated_pullback(out_bar):
        return conj(flip(pullback(out_bar), axes))

    return conjugated_pullback


# Any number of dimensions


@primitive(multilinear, canonical=as_arrays, name="scipy.signal.convolve")
def convolve(in1, in2, *, mode="full", method="auto"):
    """Convolution by one of two methods."""
    return signal.convolve(in1, in2, mode, method)


def _product(method: str) -> Any:
    def product(x, y, mode):
        return convolve.bind(x, y, mode=mode, method=method)

    return product


@convolve.def_vjp
def convolve_vjp(primals, out, *, mode, method):
    return _pullbacks(_product(method), primals, mode)


@convolve.def_batch
def convolve_batch(args, batched, *, mode, method):
    one1, one2 = (
        shape_of(x)[1:] if is_batched else shape_of(x)
        for x, is_batched in zip(args, batched, strict=True)
    )
    exact = np.result_type(*map(dtype_of, args)).kind in "biu"
    some = count_examples(args, batched) > 0  # of none SciPy makes something else
    if some and not exact and len(one1) == len(one2) > 0 and all(one1) and all(one2):
        if method == "auto":
            stand_ins = (np.broadcast_to(0.0, shape) for shape in (one1, one2))
            method = signal.choose_conv_method(*stand_ins, mode)
        if method == "fft":
            return _batch(fftconvolve, args, batched, mode, None)
        if len(one1) == 1 and method == "direct":
            (length,) = signal.convolve(np.zeros(one1), np.zeros(one2), mode, "direct").shape
            (start,) = _starts(mode, one1, one2, (0,))
            return window.bind(*args, start=start, length=length)
    return loop(convolve.bind, args, batched, {"mode": mode, "method": method})


@primitive(multilinear, canonical=as_arrays, name="scipy.signal.correlate")
def correlate(in1, in2, *, mode="full", method="auto"):
    """Correlation: the convolution with `in2` reversed and conjugated."""
    return signal.correlate(in1, in2, mode, method)


@correlate.def_vjp
def correlate_vjp(primals, out, *, mode, method):
    in1, in2 = primals
    axes = range(len(shape_of(in2)))
    pull1, pull2 = _pullbacks(_product(method), (in1, conj(flip(in2, axes))), mode)
    return pull1, _conjugated(pull2, axes)


@correlate.def_batch
def correlate_batch(args, batched, *, mode, method):
    in1, in2 = args
    in2 = conj(flip(in2, range(batched[1], len(shape_of(in2)))))
    return convolve_batch((in1, in2), batched, mode=mode, method=method)


# By Fourier transforms


@primitive(multilinear, canonical=as_arrays, name="scipy.signal.fftconvolve")
def fftconvolve(in1, in2, *, mode="full", axes=None):
    """Convolution by Fourier transforms."""
    return signal.fftconvolve(in1, in2, mode, axes)


@primitive(multilinear, canonical=as_arrays, name="scipy.signal.oaconvolve")
def oaconvolve(in1, in2, *, mode="full", axes=None):
    """Convolution by Fourier transforms of parts that overlap."""
    return signal.oaconvolve(in1, in2, mode, axes)


def _batch(made: Primitive, args: Any, batched: Any, mode: str, axes: Any) -> Any:
    one1, one2 = (
        shape_of(x)[1:] if is_batched else shape_of(x)
        for x, is_batched in zip(args, batched, strict=True)
    )
    some = count_examples(args, batched) > 0
    if len(one1) != len(one2) or 0 in (*one1, *one2) or not some:  # an error, or an empty result
        return loop(made.bind, args, batched, {"mode": mode, "axes": axes})
    in1, in2 = (
        x if is_batched else np.expand_dims(x, 0)
        for x, is_batched in zip(args, batched, strict=True)
    )
    if not one1:  # numbers
        return in1 * in2
    if mode == "same" and not batched[0]:  # it keeps the size of `in1` along every axis
        in1 = full_batch(args[0], False, shape_of(in2)[0])
    axes = tuple(axis + 1 for axis in _axes(axes, len(one1)))
    return made.bind(in1, in2, mode=mode, axes=axes)


def _declare_by_fft(made: Primitive) -> None:
    @made.def_vjp
    def by_fft_vjp(primals, out, *, mode, axes):
        def product(x, y, mode):
            return made.bind(x, y, mode=mode, axes=axes)

        return _pullbacks(product, primals, mode, axes)

    @made.def_batch
    def by_fft_batch(args, batched, *, mode, axes):
        return _batch(made, args, batched, mode, axes)


_declare_by_fft(fftconvolve)
_declare_by_fft(oaconvolve)


# Two dimensions, with zeros around


@primitive(multilinear, canonical=as_arrays, name="scipy.signal.convolve2d")
def convolve2d(in1, in2, *, mode="full"):
    """Convolution of matrices."""
    return signal.convolve2d(in1, in2, mode)


def _product2d(x: Any, y: Any, mode: str) -> Any:
    return convolve2d.bind(x, y, mode=mode)


@convolve2d.def_vjp
def convolve2d_vjp(primals, out, *, mode):
    return _pullbacks(_product2d, primals, mode)


@primitive(multilinear, canonical=as_arrays, name="scipy.signal.correlate2d")
def correlate2d(in1, in2, *, mode="full"):
    """Correlation of matrices."""
    return signal.correlate2d(in1, in2, mode)


@correlate2d.def_vjp
def correlate2d_vjp(primals, out, *, mode):
    in1, in2 = primals
    pairs = zip(shape_of(in1), shape_of(in2), strict=True)
    if mode == "valid" and any(m < n for m, n in pairs):
        # SciPy swaps them and reverses the result. Of complex matrices it then conjugates the
        # smaller one, that is `in1`.
        pull2, pull1 = _correlation2d_pullbacks(in2, in1, mode)
        return _of_reversed(pull1), _of_reversed(pull2)
    return _correlation2d_pullbacks(in1, in2, mode)


def _correlation2d_pullbacks(in1: Any, in2: Any, mode: str) -> tuple[Any, Any]:
    starts = None
    if mode == "same":  # an even length has its middle on the other side than in convolve2d
        starts = tuple(n // 2 for n in shape_of(in2))
    pull1, pull2 = _pullbacks(_product2d, (in1, conj(flip(in2, (0, 1)))), mode, starts=starts)
    return pull1, _conjugated(pull2, (0, 1))


def _of_reversed(pullback: Any) -> Any:
    def reversed_pullback(out_bar):
        return pullback(flip(out_bar, (0, 1)))

    return reversed_pullback


by_loop(convolve2d)
by_loop(correlate2d)


# Samples

_LENGTHS = ((4, 3), (2, 5), (3, 3), (1, 2))
_SHAPES = (((3, 4), (2, 3)), ((2, 2), (3, 4)), ((1, 3), (3, 3)))
_MODES = ("full", "same", "valid")


def _pairs(rng: Any, pairs: Any) -> Any:
    """Yield arrays of these lengths or shapes, with each mode that is possible for them."""
    for shape1, shape2 in pairs:
        less = [
            m < n
            for m, n in zip(np.atleast_1d(shape1), np.atleast_1d(shape2), strict=True)
            if m != n
        ]
        for mode in _MODES:
            if mode != "valid" or all(less) or not any(less):
                yield rng.normal(size=shape1), rng.normal(size=shape2), mode


@convolve.def_samples
@correlate.def_samples
def convolve_samples(rng):
    for args in _pairs(rng, (*_LENGTHS, *_SHAPES)):
        yield Sample(*args, "direct")
    for args in _pairs(rng, (*_LENGTHS[:2], *_SHAPES[:1])):
        yield Sample(*args, "fft")
    yield Sample(rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 1, 2)), "same")
    yield Sample(np.float64(2.0), np.float64(3.0))
    yield Sample([1.0, 2.0], rng.normal(size=3))


@fftconvolve.def_samples
@oaconvolve.def_samples
def fftconvolve_samples(rng):
    for args in _pairs(rng, (*_LENGTHS[:2], (12, 2), *_SHAPES)):
        yield Sample(*args)
    for mode in _MODES:
        yield Sample(rng.normal(size=(2, 4)), rng.normal(size=(1, 3)), mode, axes=1)
        yield Sample(rng.normal(size=(1, 4)), rng.normal(size=(2, 3)), mode, axes=-1)
        yield Sample(rng.normal(size=(4, 3)), rng.normal(size=(2, 3)), mode, axes=[0])
    yield Sample(np.float64(2.0), np.float64(3.0))


@convolve2d.def_samples
@correlate2d.def_samples
def convolve2d_samples(rng):
    for args in _pairs(rng, (*_SHAPES, ((4, 4), (2, 4)))):
        yield Sample(*args)
