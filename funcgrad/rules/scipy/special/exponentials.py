"""Logarithms of sums of exponentials, and softmax: SciPy's functions with a derivative.

SciPy computes the values. The derivatives are shares, which add up to 1; where infinite terms make
SciPy's formula undefined they are limits, as everywhere in funcgrad (`funcgrad.rules.nn.softmax`):
of terms that are all minus infinity each gets the same share.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from scipy import special as sp

from funcgrad.core.batch import loop, together
from funcgrad.core.level import concrete
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, is_finite, shape_of, zero_wins
from funcgrad.rules.nn import softmax as nn
from funcgrad.rules.spelling import as_array

__all__ = ["log_softmax", "logsumexp", "softmax", "weighted_logsumexp"]


def _prepared(args, params):
    """Canonical form: arrays of one shape, `axis` a tuple of numbers that are not negative."""
    args = tuple(map(as_array, args))
    shape = np.broadcast_shapes(*map(shape_of, args))
    if len(args) == 2:
        args = tuple([_spread(x, shape, y) for x, y in zip(args, args[::-1], strict=True)])
    axis = params["axis"]
    if axis is None:
        axis = tuple(range(len(shape)))
    elif not shape and axis in (0, -1):  # a number by itself
        axis = ()
    return args, {**params, "axis": normalize_axis_tuple(axis, len(shape))}


def _spread(x: Any, shape: tuple[int, ...], other: Any) -> Any:
    """Return `x` in the given shape, as an array in which a Python number has the other's dtype."""
    if isinstance(concrete(x), int | float | complex) and not isinstance(concrete(x), np.generic):
        return x * np.ones(shape, dtype_of(other))
    return x if shape_of(x) == shape else np.broadcast_to(x, shape)


def _along(primitive: Any) -> None:
    """Give the batching rule to functions in canonical form."""

    def along_batch(args: Any, batched: Any, *, axis: Any, **params: Any) -> Any:
        whole = together(args, batched)
        if not shape_of(whole[0])[0]:  # SciPy does not reduce an empty array over several axes
            return loop(primitive.bind, args, batched, {"axis": axis, **params})
        return primitive.bind(*whole, axis=tuple([i + 1 for i in axis]), **params)

    primitive.def_batch(along_batch)


def _restored(t: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    """Put the axes that were summed back."""
    return t if keepdims or not axis else np.expand_dims(t, axis)


# Softmax


@primitive(canonical=_prepared, name="special_softmax")
def softmax(x, *, axis=None):
    """``exp(x) / sum(exp(x))`` over `axis`."""
    return sp.softmax(x, axis=axis)


softmax.def_jvp(nn.softmax_jvp)
softmax.def_vjp(nn.softmax_vjp)


@primitive(canonical=_prepared, name="special_log_softmax")
def log_softmax(x, *, axis=None):
    """``x - log(sum(exp(x)))`` over `axis`."""
    return sp.log_softmax(x, axis=axis)


log_softmax.def_jvp(nn.log_softmax_jvp)
log_softmax.def_vjp(nn.log_softmax_vjp)
_along(softmax)
_along(log_softmax)


def _axis_samples(fun: Any, rng: Any) -> Any:
    yield Sample(rng.normal(size=(2, 3)), fun=fun, complex=False)
    yield Sample(rng.normal(size=(2, 3)), fun=fun, axis=-1, complex=False)
    yield Sample(rng.normal(size=(2, 3, 2)), fun=fun, axis=(0, -1), complex=False)
    yield Sample(np.array([-500.0, 300.0, 450.0]), fun=fun, axis=0, kinks=True, complex=False)
    yield Sample(rng.normal(size=(3, 1)), fun=fun, axis=1, complex=False)


@softmax.def_samples
def softmax_samples(rng):
    yield from _axis_samples(softmax, rng)


@log_softmax.def_samples
def log_softmax_samples(rng):
    yield from _axis_samples(log_softmax, rng)


# The logarithm of a sum of exponentials. For complex terms, the one with the sum's phase; with
# `return_sign`, its real part and the phase factor by themselves.


def _split(out: Any, return_sign: bool) -> tuple[Any, Any]:
    return out if return_sign else (out, None)


def _shares(a: Any, b: Any, out: Any, axis: Any, keepdims: bool, return_sign: bool) -> Any:
    """Return ``exp(a) / sum(b * exp(a))``: what the result gains for each unit of ``b * a``."""
    log, sign = _split(out, return_sign)
    log = _restored(log, axis, keepdims)
    with np.errstate(all="ignore"):
        gap = a - log
        if not is_finite(gap):
            gap = np.where(np.equal(a, log), 0, gap)  # infinity less infinity
        shares = np.exp(gap)
        if sign is not None:
            shares = shares / _restored(sign, axis, keepdims)
    if is_finite(log):
        return shares
    # Of terms that are infinite alike, or nothing but zeros, each has the same share.
    weights = np.ones_like(a) if b is None else b
    even = np.where(np.equal(a, log), 1.0, 0.0) * np.not_equal(weights, 0)
    total = np.sum(even * weights, axis=axis, keepdims=True)
    even = even / np.where(np.equal(total, 0), 1, total)
    return np.where(np.isfinite(log), shares, even)


def _logsumexp_jvp(terms: Any, out: Any, axis: Any, keepdims: bool, return_sign: bool) -> Any:
    total = np.sum(terms, axis=axis, keepdims=keepdims)
    if not return_sign:
        return total
    _, sign = out
    turn = 1j * sign * np.imag(total) if dtype_of(sign).kind == "c" else None
    return np.real(total), turn


def _log_bar(out_bar: Any, out: Any, axis: Any, keepdims: bool, return_sign: bool) -> Any:
    """Return the cotangent of the complex logarithm, ready to meet each term."""
    if not return_sign:
        return _restored(out_bar, axis, keepdims)
    log_bar, sign_bar = out_bar
    _, sign = out
    if dtype_of(sign).kind == "c" and sign_bar is not None:
        # sign = exp(i Im L): a real function of the imaginary part.
        turn = -1j * np.real(1j * sign * sign_bar)
        log_bar = turn if log_bar is None else log_bar + turn
    return None if log_bar is None else _restored(log_bar, axis, keepdims)


@primitive(canonical=_prepared)
def logsumexp(a, *, axis=None, keepdims=False, return_sign=False):
    """``log(sum(exp(a)))`` over `axis`."""
    return _by_scipy(a, axis, keepdims, return_sign, None)


def _by_scipy(a: Any, axis: Any, keepdims: bool, return_sign: bool, b: Any) -> Any:
    # SciPy makes a row of a number, which it does not sum over no axes.
    whole = axis if shape_of(a) else None
    out = sp.logsumexp(a, axis=whole, b=b, keepdims=keepdims, return_sign=return_sign)
    return tuple(out) if isinstance(out, tuple) else out


@logsumexp.def_jvp
def logsumexp_jvp(primals, tangents, out, *, axis, keepdims, return_sign):
    (a,), (a_dot,) = primals, tangents
    terms = a_dot * _shares(a, None, out, axis, keepdims, return_sign)
    return _logsumexp_jvp(terms, out, axis, keepdims, return_sign)


@logsumexp.def_vjp
def logsumexp_vjp(primals, out, *, axis, keepdims, return_sign):
    (a,) = primals

    def logsumexp_pullback(out_bar):
        bar = _log_bar(out_bar, out, axis, keepdims, return_sign)
        if bar is None:
            return None
        return bar * _shares(a, None, out, axis, keepdims, return_sign)

    return logsumexp_pullback


@primitive(canonical=_prepared, name="weighted_logsumexp")
def weighted_logsumexp(a, b, *, axis=None, keepdims=False, return_sign=False):
    """``log(sum(b * exp(a)))`` over `axis`; what has no weight may be of any size."""
    return _by_scipy(a, axis, keepdims, return_sign, b)


def _weighed(b: Any, shares: Any) -> Any:
    product = b * shares
    return product if is_finite(product) else np.where(np.equal(b, 0), 0, product)


@weighted_logsumexp.def_jvp
def weighted_logsumexp_jvp(primals, tangents, out, *, axis, keepdims, return_sign):
    (a, b), (a_dot, b_dot) = primals, tangents
    shares = _shares(a, b, out, axis, keepdims, return_sign)
    terms: Any = 0.0
    if a_dot is not None:
        terms = terms + a_dot * _weighed(b, shares)
    if b_dot is not None:
        terms = terms + zero_wins(b_dot * shares, b_dot)
    return _logsumexp_jvp(terms, out, axis, keepdims, return_sign)


@weighted_logsumexp.def_vjp
def weighted_logsumexp_vjp(primals, out, *, axis, keepdims, return_sign):
    a, b = primals

    def weighted_logsumexp_pullback_a(out_bar):
        bar = _log_bar(out_bar, out, axis, keepdims, return_sign)
        if bar is None:
            return None
        return bar * _weighed(b, _shares(a, b, out, axis, keepdims, return_sign))

    def weighted_logsumexp_pullback_b(out_bar):
        bar = _log_bar(out_bar, out, axis, keepdims, return_sign)
        if bar is None:
            return None
        shares = _shares(a, b, out, axis, keepdims, return_sign)
        return zero_wins(bar * shares, np.broadcast_to(bar, shape_of(a)))

    return weighted_logsumexp_pullback_a, weighted_logsumexp_pullback_b


_along(logsumexp)
_along(weighted_logsumexp)


@logsumexp.def_samples
def logsumexp_samples(rng):
    fun = logsumexp
    yield Sample(rng.normal(size=(2, 3)), fun=fun)
    yield Sample(rng.normal(size=(2, 3, 2)), fun=fun, axis=(0, -1), keepdims=True)
    yield Sample(rng.normal(size=(2, 3)), fun=fun, axis=-1, return_sign=True)
    yield Sample(np.array([-np.inf, -np.inf]), fun=fun, kinks=True, complex=False)
    yield Sample(np.array([-np.inf, 900.0]), fun=fun, kinks=True, complex=False)
    yield Sample(np.float64(0.7), fun=fun)


@weighted_logsumexp.def_samples
def weighted_logsumexp_samples(rng):
    fun = weighted_logsumexp
    a, b = rng.normal(size=(2, 3)), rng.uniform(0.5, 2.0, size=(2, 3))
    yield Sample(a, b, fun=fun)
    yield Sample(a, b[0], fun=fun, axis=0, keepdims=True)
    yield Sample(a, -b, fun=fun, axis=1, return_sign=True)
    yield Sample(np.array([0.3, 900.0]), np.array([2.0, 0.0]), fun=fun, kinks=True, complex=False)
