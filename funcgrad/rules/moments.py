"""Variance, standard deviation, weighted average and range.

With the deviations ``d = a - mean``, which add up to zero, the variance is ``sum(|d|**2) / n`` and
its derivative ``2 * conj(d) / n``: how the mean moves does not count. That of its root
is ``conj(d) / (n * std)``, of length ``1 / sqrt(n)`` wherever it is defined, and 0 where all
elements are equal, the subgradient of least norm.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from funcgrad.core.batch import align, count_examples, full_batch, loop, ndim_of, shift
from funcgrad.core.level import TracerBase, holds_anywhere, is_recorded, looked_at
from funcgrad.core.primitive import Sample, overrides, primitive
from funcgrad.core.zero import dtype_of, is_finite, shape_of, zero_wins
from funcgrad.errors import ArgumentError, user_line
from funcgrad.rules.reducing import (
    NOT_GIVEN,
    axes_of,
    cast,
    count,
    finish,
    given,
    kept_shape,
    lift,
    parts,
    plus,
    ratio,
    select,
)
from funcgrad.rules.reductions import axis_samples, mask_samples

__all__ = ["declare_spread"]


def _deviations(a, where, mean, axis, dtype):
    """Return the differences from the mean, 0 where masked out."""
    if mean is None:
        wide = np.float32 if dtype is None and dtype_of(a) == np.float16 else dtype
        total = np.sum(a, axis=axis, dtype=wide, keepdims=True, where=where)
        mean = total / count(where, shape_of(a), axis)
    return select(where, a - mean)


def _real(x):
    return np.real(x) if dtype_of(x).kind == "c" else x


def _guarded(product, t, out):
    """Let zero win in a product with the deviations: those are finite if the result is."""
    return product if is_finite(out) else zero_wins(product, t)


def spread_rules(made, root, with_mask):
    """Declare the rules of a variance, or with `root` of a standard deviation.

    Parameters
    ----------
    made : Primitive
    root : bool
    with_mask : callable
        ``with_mask(a, where)`` is the mask of the elements that count.
    """

    def scaled(t, a, where, mean, out, axis, ddof):
        """Return `t` times the factor of the (conjugate) deviations in the derivative."""
        number = count(where, shape_of(a), axis) - ddof
        number = max(number, 0) if where is True else np.maximum(number, 0)
        per_element = ratio(t, number)
        if where is not True or number == 0:
            per_element = zero_wins(per_element, t)
        if not root:
            return 2 * per_element
        sloping = np.not_equal(out, 0)
        if mean is None:  # equal elements can have a mean that differs from them by rounding
            low = np.min(a, axis=axis, keepdims=True, initial=np.inf, where=where)
            high = np.max(a, axis=axis, keepdims=True, initial=-np.inf, where=where)
            sloping = sloping & np.not_equal(low, high)
        factor = per_element / np.where(sloping, out, 1)
        return np.where(sloping, _guarded(factor, t, out), 0)

    @made.def_jvp
    def spread_jvp(primals, tangents, out, *, axis, dtype, ddof, keepdims):
        a, where, mean = parts(primals)
        where = with_mask(a, where)
        d = _deviations(a, where, mean, axis, dtype)
        d_dot = tangents[0]
        if len(tangents) > 2 and tangents[2] is not None:
            d_dot = plus(d_dot, -tangents[2])
        product = d * d_dot if dtype_of(d).kind != "c" else np.real(np.conj(d) * d_dot)
        wide = np.float32 if dtype_of(product) == np.float16 else None
        product = select(where, _guarded(product, d_dot, out))
        t = np.sum(product, axis=axis, dtype=wide, keepdims=True)
        lifted = _real(lift(out, kept_shape(shape_of(a), axis, keepdims)))
        return np.reshape(scaled(t, a, where, mean, lifted, axis, ddof), shape_of(out))

    @made.def_vjp
    def spread_vjp(primals, out, *, axis, dtype, ddof, keepdims):
        a, where, mean = parts(primals)
        kept = kept_shape(shape_of(a), axis, keepdims)

        def spread_pullback(out_bar):
            mask = with_mask(a, where)
            lifted = _real(lift(out, kept))
            t = scaled(_real(lift(out_bar, kept)), a, mask, mean, lifted, axis, ddof)
            d = _deviations(a, mask, mean, axis, dtype)
            d = np.conj(d) if dtype_of(d).kind == "c" else d
            return select(mask, _guarded(d * t, t, out))

        def spread_pullback_mean(out_bar):
            return -spread_pullback(out_bar)

        return (spread_pullback, None, spread_pullback_mean)[: len(primals)]


def declare_spread(function, root, with_mask):
    """Declare ``np.var`` or a function of the same signature."""

    def spread(a, where=True, mean=NOT_GIVEN, *, axis, dtype, ddof, keepdims):
        return function(
            a, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, where=where, mean=mean
        )

    made = primitive(name=function.__name__)(spread)

    @made.def_batch
    def spread_batch(args, batched, *, axis, **params):
        ndim = ndim_of(args[0], batched[0])
        if max(map(ndim_of, args, batched)) > ndim:  # of a mask, or of means
            return loop(made.bind, args, batched, {"axis": axis, **params})
        a = full_batch(args[0], batched[0], count_examples(args, batched))
        args = align((a, *args[1:]), (True, *batched[1:]))
        axis = shift(() if axis is None and ndim == 0 else axis, ndim)
        return made.bind(*args, axis=axis, **params)

    @made.def_call(function)
    def call(
        a,
        axis=None,
        dtype=None,
        out=None,
        ddof=0,
        keepdims=False,
        *,
        where=True,
        mean=NOT_GIVEN,
        correction=NOT_GIVEN,
    ):
        if correction is not NOT_GIVEN:
            if ddof != 0:
                raise ValueError("ddof and correction can't be provided simultaneously.")
            ddof = correction
        if is_recorded(ddof):
            ddof = looked_at(ddof, "the argument 'ddof'")
        if isinstance(ddof, TracerBase):
            raise ArgumentError(
                f"the argument 'ddof' of {made.name} cannot be a traced value",
                where=user_line(),
                fix=f"multiply the result of numpy.{made.name} by n / (n - ddof)",
            )
        args = given(a, where, NOT_GIVEN if mean is None else mean)
        return finish(made.bind(*args, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims), out)

    spread_rules(made, root, with_mask)
    return made


def _as_given(a, where):
    return where


def _spread_samples(rng):
    yield from axis_samples(rng)
    yield from mask_samples(rng)
    a = rng.normal(size=(3, 4))
    yield Sample(a, 1, np.float64)
    yield Sample(a, ddof=1)
    yield Sample(a, axis=0, correction=1.5, keepdims=True)
    yield Sample(a, axis=1, mean=rng.normal(size=(3, 1)), argnames="mean")
    yield Sample(a, mean=np.array([[0.5]]), where=a > -1.0, argnames="mean")
    yield Sample(np.array([[4.0, 4.0], [0.1, 0.1]]), axis=1, kinks=True)


declare_spread(np.var, False, _as_given).def_samples(_spread_samples)
declare_spread(np.std, True, _as_given).def_samples(_spread_samples)


@overrides(np.average)
def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    """Average with weights: composed as NumPy does it."""
    a = a if hasattr(a, "shape") else np.asanyarray(a)
    shape = shape_of(a)
    if axis is not None:
        normalize_axis_tuple(axis, len(shape), argname="axis")  # raises
    if weights is None:
        made = np.mean(a, axis=axis, keepdims=keepdims)
        total = dtype_of(made).type(math.prod(shape) / math.prod(shape_of(made)))
    else:
        weights = weights if hasattr(weights, "shape") else np.asanyarray(weights)
        if shape_of(weights) != shape:
            weights = _weights_along(weights, shape, axis)
        dtype = np.result_type(dtype_of(a), dtype_of(weights))
        if dtype_of(a).kind in "biu":
            dtype = np.result_type(dtype, np.float64)
        total = np.sum(weights, axis=axis, dtype=dtype, keepdims=keepdims)
        if holds_anywhere(np.equal(total, 0.0), "whether weights add up to 0"):
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
        made = np.sum(cast(a, dtype) * cast(weights, dtype), axis=axis, keepdims=keepdims) / total
    if not returned:
        return made
    if shape_of(total) != shape_of(made):
        total = np.broadcast_to(total, shape_of(made)).copy()
    return made, total


def _weights_along(weights, shape, axis):
    """Return weights for `axis` alone so that they broadcast against the array."""
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    axes = axes_of(axis, len(shape))
    if shape_of(weights) != tuple(shape[i] for i in axes):
        raise ValueError(
            "Shape of weights must be consistent with shape of a along specified axis."
        )
    if list(axes) != sorted(axes):
        weights = np.transpose(weights, tuple(sorted(range(len(axes)), key=axes.__getitem__)))
    return np.reshape(weights, tuple(n if i in axes else 1 for i, n in enumerate(shape)))


@average.def_samples
def average_samples(rng):
    a = rng.normal(size=(2, 3, 2))
    yield Sample(a)
    yield Sample(a, axis=1)
    yield Sample(a, axis=(0, -1), keepdims=True)
    yield Sample(a, weights=rng.uniform(0.5, 1.5, size=(2, 3, 2)), argnames="weights")
    yield Sample(a, 1, rng.uniform(0.5, 1.5, size=3))
    yield Sample(a, axis=(2, 0), weights=rng.uniform(0.5, 1.5, size=(2, 2)), argnames="weights")
    yield Sample(a, axis=0, weights=[1, 3], keepdims=True)
    yield Sample([1, 2, 3], weights=rng.uniform(0.5, 1.5, size=3), argnames="weights")
    yield Sample(a, weights=rng.uniform(0.5, 1.5, size=(2, 3, 2)), returned=True)
    yield Sample(a, axis=1, weights=[1.0, 2.0, 0.5], returned=True)
    yield Sample(a, axis=1, returned=True)


@overrides(np.ptp)
def ptp(a, axis=None, out=None, keepdims=False):
    """Subtract the smallest element from the largest."""
    made = np.max(a, axis=axis, keepdims=keepdims) - np.min(a, axis=axis, keepdims=keepdims)
    return finish(made, out)


ptp.def_samples(axis_samples)
