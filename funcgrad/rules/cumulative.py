"""Running sums, products and extremes.

The one idea: derivatives of a running product, and of any other accumulation, obey a first-order
recurrence ``s[i] = b[i] + c[i] * s[i - 1]``. `affine_scan` computes it, and its own derivatives are
scans again, so that what is built on it has derivatives of every order without a division: zeros
among the factors are harmless.

`reverse` in a primitive of this module means that it runs from the end to the beginning.
"""

from __future__ import annotations

import itertools
import operator

import numpy as np

from funcgrad.core.batch import along, together
from funcgrad.core.level import any_of, concrete, detached, is_recorded
from funcgrad.core.primitive import Sample, overrides, primitive
from funcgrad.core.zero import dtype_of, is_finite, shape_of, zero_wins
from funcgrad.rules.families import linear
from funcgrad.rules.gathering import put_back, taken
from funcgrad.rules.reducing import cast, finish, plus, ratio

__all__ = [
    "affine_scan",
    "at_start",
    "cumprod",
    "cumsum",
    "exclusive_product",
    "is_tame",
    "running",
    "shift",
]

# Up to this many lines a loop over Python floats beats one over rows of an array.
_FEW_LINES = 16
_EXACT_IN_PYTHON = frozenset("efdFD")

# The tools


@primitive()
def shift(x, *, axis, step, fill):
    """Move the elements on along `axis` by `step`, 1 or -1, and put `fill` in the free place."""
    before = (slice(None),) * axis
    edge = np.full_like(x[(*before, slice(0, 1))], fill)
    if step == 1:
        return np.concatenate([edge, x[(*before, slice(None, -1))]], axis)
    return np.concatenate([x[(*before, slice(1, None))], edge], axis)


@shift.def_jvp
def shift_jvp(primals, tangents, out, *, axis, step, fill):
    (x_dot,) = tangents
    return shift.bind(x_dot, axis=axis, step=step, fill=0)


@shift.def_vjp
def shift_vjp(primals, out, *, axis, step, fill):
    def shift_pullback(out_bar):
        return shift.bind(out_bar, axis=axis, step=-step, fill=0)

    return shift_pullback


along(shift)


@shift.def_samples
def shift_samples(rng):
    yield Sample(rng.normal(size=(2, 3)), fun=shift, axis=1, step=1, fill=2.0)
    yield Sample(rng.normal(size=(2, 3)), fun=shift, axis=0, step=-1, fill=1.0)
    yield Sample(rng.normal(size=(2, 0)), fun=shift, axis=1, step=1, fill=1.0)


@primitive()
def affine_scan(b, c, *, axis, reverse):
    """Solve ``s[i] = b[i] + c[i] * s[i - 1]`` along `axis`, from ``s[-1] = 0``.

    One step after the other: the parallel forms, which multiply the `c` first, overflow where this
    does not. An `s` of 0 times an infinite `c` is 0: zero wins.
    """
    shape, dtype = b.shape, np.result_type(b, c)
    b, c = np.moveaxis(b, axis, 0), np.moveaxis(c, axis, 0)
    if reverse:
        b, c = b[::-1], c[::-1]
    s = np.empty(b.shape, dtype)
    lines = b.size // max(len(b), 1)
    if lines <= _FEW_LINES and dtype.char in _EXACT_IN_PYTHON:
        columns = (array.reshape(len(b), lines).T.tolist() for array in (b, c))
        solved = [
            list(itertools.accumulate(zip(*both, strict=True), _step, initial=0.0))[1:]
            for both in zip(*columns, strict=True)
        ]
        with np.errstate(over="ignore"):  # from double to single precision
            s[...] = np.array(solved, dtype).T.reshape(b.shape)
    else:
        before = np.zeros(b.shape[1:], dtype)
        finite = is_finite(c)
        for i in range(len(b)):
            product = c[i] * before
            before = s[i, ...] = b[i] + (product if finite else zero_wins(product, before))
    return np.moveaxis(s[::-1] if reverse else s, 0, axis).reshape(shape)


def _step(before, term):
    b, c = term
    return b + c * before if before else b


@affine_scan.def_jvp
def affine_scan_jvp(primals, tangents, out, *, axis, reverse):
    _, c = primals
    b_dot, c_dot = tangents
    if c_dot is not None:
        c_dot = c_dot * shift.bind(out, axis=axis, step=-1 if reverse else 1, fill=0)
    return affine_scan.bind(plus(b_dot, c_dot), c, axis=axis, reverse=reverse)


@affine_scan.def_vjp
def affine_scan_vjp(primals, out, *, axis, reverse):
    _, c = primals
    step = -1 if reverse else 1

    def affine_scan_pullback_b(out_bar):
        c_next = shift.bind(c, axis=axis, step=-step, fill=0)
        return affine_scan.bind(out_bar, c_next, axis=axis, reverse=not reverse)

    def affine_scan_pullback_c(out_bar):
        b_bar = affine_scan_pullback_b(out_bar)
        return b_bar * shift.bind(out, axis=axis, step=step, fill=0)

    return affine_scan_pullback_b, affine_scan_pullback_c


@affine_scan.def_batch
def affine_scan_batch(args, batched, *, axis, reverse):
    b, c = together(args, batched)
    return affine_scan.bind(b, c, axis=axis + 1, reverse=reverse)


@affine_scan.def_samples
def affine_scan_samples(rng):
    for shape, axis in (((3,), 0), ((2, 3), 1), ((2, 20), 0), ((0,), 0)):
        b, c = rng.normal(size=shape), rng.normal(size=shape)
        yield Sample(b, c, fun=affine_scan, axis=axis, reverse=False)
        yield Sample(b, c, fun=affine_scan, axis=axis, reverse=True)


def at_start(shape, axis):
    """Return a mask, broadcasting against `shape`, of where a scan along `axis` starts."""
    n = shape[axis]
    return (np.arange(n) == 0).reshape((n,) + (1,) * (len(shape) - axis - 1))


def running(ufunc, array, axis):
    """Return `axis` of ``ufunc.accumulate`` counted from 0; raise what NumPy would."""
    ndim = len(shape_of(array))
    if not isinstance(axis, int) or not -ndim <= axis < ndim:
        ufunc.accumulate(np.ones(shape_of(array)), axis)  # raises what it does not take
        axis = operator.index(axis[0] if isinstance(axis, tuple) else axis or 0)
    return axis % ndim


# Sums


@primitive(linear)
def cumsum(a, *, axis, reverse):
    """Add up along `axis`."""
    return _reversed(np.cumsum, a, axis) if reverse else np.cumsum(a, axis)


def _reversed(function, a, axis):
    """Accumulate from the end, into an array that is not a view."""
    if a.dtype.kind not in "fc":
        return np.flip(function(np.flip(a, axis), axis), axis)
    out = np.empty_like(a)
    function(np.flip(a, axis), axis, out=np.flip(out, axis))
    return out


@cumsum.def_vjp
def cumsum_vjp(primals, out, *, axis, reverse):
    def cumsum_pullback(out_bar):
        return cumsum.bind(out_bar, axis=axis, reverse=not reverse)

    return cumsum_pullback


along(cumsum)


# Products


@primitive()
def cumprod(a, *, axis, reverse):
    """Multiply up along `axis`."""
    return _reversed(np.cumprod, a, axis) if reverse else np.cumprod(a, axis)


def is_tame(a, out):
    """Tell whether all factors and products are far from 0 and from infinity."""
    if is_recorded(a) or is_recorded(out):
        return False  # on other values they may not be
    low, high = _RANGE[np.finfo(dtype_of(out)).dtype.itemsize]
    for x in (concrete(a), concrete(out)):
        size = np.abs(x)
        if not (low < size.min(initial=1) and size.max(initial=1) < high):
            return False
    return True


# Where a quotient of two numbers neither overflows nor loses digits, by the size of a float.
_RANGE = {2: (1e-2, 1e2), 4: (1e-15, 1e15), 8: (1e-100, 1e100), 16: (1e-100, 1e100)}


def exclusive_product(a, axis, reverse):
    """Return the products of all elements before each (behind each, if `reverse`)."""
    product = cumprod.bind(a, axis=axis, reverse=reverse)
    return shift.bind(product, axis=axis, step=-1 if reverse else 1, fill=1)


@cumprod.def_jvp
def cumprod_jvp(primals, tangents, out, *, axis, reverse):
    (a,), (a_dot,) = primals, tangents
    if is_tame(a, out):
        return out * cumsum.bind(a_dot / a, axis=axis, reverse=reverse)
    before = shift.bind(out, axis=axis, step=-1 if reverse else 1, fill=1)
    return affine_scan.bind(zero_wins(a_dot * before, a_dot), a, axis=axis, reverse=reverse)


@cumprod.def_vjp
def cumprod_vjp(primals, out, *, axis, reverse):
    """The cotangents that come by way of later products add up from the end: a scan.

    Unless a factor is 0, or nearly, the derivative is that of a sum of logarithms.
    """
    (a,) = primals
    step = -1 if reverse else 1
    if is_tame(a, out):

        def tame_pullback(out_bar):
            return cumsum.bind(out_bar * out, axis=axis, reverse=not reverse) / a

        return tame_pullback

    def cumprod_pullback(out_bar):
        a_next = shift.bind(a, axis=axis, step=-step, fill=0)
        behind = affine_scan.bind(out_bar, a_next, axis=axis, reverse=not reverse)
        before = shift.bind(out, axis=axis, step=step, fill=1)
        return zero_wins(behind * before, behind)

    return cumprod_pullback


along(cumprod)


# NumPy's spellings of both


def _declare_cumulative(made, ufunc, flat, inclusive):
    """Let `made` answer for functions like ``np.cumsum`` and ``np.cumulative_sum``."""

    @made.def_call(flat)
    def along(a, axis=None, dtype=None, out=None):
        axis = None if axis is None else operator.index(axis)
        if len(shape_of(a)) != 1 and (axis is None or shape_of(a) == ()):
            a = np.reshape(a, -1)  # not of a row, which would make a view of it
        return accumulate(a, 0 if axis is None else axis, dtype, out)

    @made.def_call(ufunc.accumulate)
    def accumulate(array, axis=0, dtype=None, out=None):
        axis = running(ufunc, array, axis)
        return finish(made.bind(cast(array, dtype), axis=axis, reverse=False), out)

    @made.def_call(inclusive)
    def with_start(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
        if len(shape_of(x)) > 1 and axis is None:
            inclusive(concrete(x))  # raises
        axis = 0 if axis is None else axis
        result = accumulate(np.reshape(x, -1) if shape_of(x) == () else x, axis, dtype)
        if include_initial:
            shape = list(shape_of(result))
            shape[axis] = 1
            start = np.full(shape, ufunc.identity, dtype_of(result))
            result = np.concatenate([start, result], axis=axis)
        return finish(result, out)

    @made.def_samples
    def samples(rng):
        a = rng.normal(size=(2, 3, 2))
        for axis in (None, 0, 1, -1):
            yield Sample(a, axis=axis)
        yield Sample(a, 1, np.float64)
        yield Sample(rng.normal(size=(2, 0)), axis=1)
        yield Sample(np.float64(1.5))
        yield Sample(a, fun=ufunc.accumulate)
        yield Sample(a, 2, fun=ufunc.accumulate)
        yield Sample(np.array([3.0, 0.0, 2.0, 0.0, 5.0]))
        yield Sample(a, fun=inclusive, axis=1)
        yield Sample(a, fun=inclusive, axis=-1, include_initial=True)
        yield Sample(a[0, :, 0], fun=inclusive, include_initial=True)
        yield Sample(np.float64(1.5), fun=inclusive, include_initial=True)


_declare_cumulative(cumsum, np.add, np.cumsum, np.cumulative_sum)
_declare_cumulative(cumprod, np.multiply, np.cumprod, np.cumulative_prod)


@overrides(np.nancumsum)
def nancumsum(a, axis=None, dtype=None, out=None):
    """Add up, NaN counting as 0."""
    return np.cumsum(np.where(np.isnan(a), 0, a), axis, dtype, out)


@nancumsum.def_samples
def nancumsum_samples(rng):
    a = rng.normal(size=(2, 3))
    a[0, 1] = np.nan
    yield Sample(a, kinks=True)
    yield Sample(a, axis=1, kinks=True)
    yield Sample(rng.normal(size=(2, 3)), axis=0)


@overrides(np.nancumprod)
def nancumprod(a, axis=None, dtype=None, out=None):
    """Multiply up, NaN counting as 1."""
    return np.cumprod(np.where(np.isnan(a), 1, a), axis, dtype, out)


nancumprod.def_samples(nancumsum_samples)

# Extremes. The elements that equal the running extreme, and came since it last changed, share.


def _declare_running_extreme(ufunc):
    def running_extreme(a, *, axis):
        return ufunc.accumulate(a, axis)

    made = primitive(name=f"{ufunc.__name__}_accumulate")(running_extreme)

    def ties(a, out, axis):
        """Return the masks of elements that are the extreme so far, and of where it stays."""
        before = shift.bind(out, axis=axis, step=1, fill=0)
        hit = np.equal(a, out) | (np.isnan(a) & np.isnan(out))
        stays = np.equal(before, out) | (np.isnan(before) & np.isnan(out))
        return hit, stays & ~at_start(shape_of(a), axis)

    def single(primals, out, axis):
        """Return where each extreme is, or None if some are shared or NaN."""
        a, out = detached(primals[0]), detached(out)
        hit, stays = ties(a, out, axis)
        if any_of(np.logical_and(hit, stays) | np.isnan(out)):
            return None
        count = np.reshape(
            np.arange(shape_of(a)[axis]), (-1,) + (1,) * (len(shape_of(a)) - axis - 1)
        )
        return np.maximum.accumulate(np.where(stays, 0, count), axis)

    def sharing(hit, stays, axis):
        return affine_scan.bind(
            hit.astype(np.float64), stays.astype(np.float64), axis=axis, reverse=False
        )

    @made.def_jvp
    def running_extreme_jvp(primals, tangents, out, *, axis):
        (a,), (a_dot,) = primals, tangents
        places = single(primals, out, axis)
        if places is not None:
            return taken(a_dot, places, axis)
        hit, stays = ties(a, out, axis)
        total = affine_scan.bind(
            np.where(hit, a_dot, 0), stays.astype(dtype_of(a)), axis=axis, reverse=False
        )
        return ratio(total, sharing(hit, stays, axis))

    @made.def_vjp
    def running_extreme_vjp(primals, out, *, axis):
        (a,) = primals
        places = single(primals, out, axis)
        if places is not None:
            size = shape_of(a)[axis]

            def single_pullback(out_bar):
                return put_back(out_bar, places, axis, size)

            return single_pullback
        hit, stays = ties(a, out, axis)
        dtype = dtype_of(out)

        def running_extreme_pullback(out_bar):
            share = ratio(out_bar, sharing(hit, stays, axis))
            stays_next = shift.bind(stays.astype(dtype), axis=axis, step=-1, fill=0)
            return np.where(hit, affine_scan.bind(share, stays_next, axis=axis, reverse=True), 0)

        return running_extreme_pullback

    along(made)

    @made.def_call(ufunc.accumulate)
    def accumulate(array, axis=0, dtype=None, out=None):
        axis = running(ufunc, array, axis)
        return finish(made.bind(cast(array, dtype), axis=axis), out)

    @made.def_samples
    def samples(rng):
        yield Sample(rng.normal(size=(4, 3)))
        yield Sample(rng.normal(size=(2, 5)), axis=-1)
        yield Sample(np.array([1.0, 3.0, 3.0, 2.0, 3.0, 4.0, 4.0, -1.0, -1.0]), kinks=True)
        yield Sample(np.array([np.nan, 1.0, np.nan, 2.0]), kinks=True)
        yield Sample(rng.normal(size=(0, 2)))


for _ufunc in (np.maximum, np.minimum, np.fmax, np.fmin):
    _declare_running_extreme(_ufunc)
