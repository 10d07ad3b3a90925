"""Softmax with its two logarithms: of the probabilities, and of their sum.

No NumPy function is answered for here: `funcgrad.nn.functional` offers them. Each has a rule of its
own because it keeps one array for the backward pass where its parts would keep several, and does
not overflow where its parts do.

Infinite logits are limits of finite ones: of several equal to the largest, whether that is
infinite or minus infinity, each gets the same share, and every other none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.batch import along, ndim_of, shift, together
from funcgrad.core.primitive import Primitive, Sample, primitive
from funcgrad.core.zero import is_finite, shape_of
from funcgrad.rules.nn.activations import as_real

__all__ = [
    "along_axes",
    "along_together",
    "log_softmax",
    "log_sum_exp",
    "positive_axis",
    "softmax",
    "squeezed",
    "weighted_log_sum_exp",
    "weighted_sign",
]


# Arguments


def along_axes(args, params):
    """Make the arguments real and of one shape, `axis` a tuple of numbers that are not negative."""
    args = tuple([as_real(x) for x in args])
    if len(args) == 2 and shape_of(args[0]) != shape_of(args[1]):
        shape = np.broadcast_shapes(shape_of(args[0]), shape_of(args[1]))
        args = tuple([np.broadcast_to(x, shape) for x in args])
    ndim = len(shape_of(args[0]))
    axis = params["axis"]
    if axis is None:
        axes = tuple(range(ndim))
    elif isinstance(axis, tuple):
        axes = tuple([positive_axis(i, ndim) for i in axis])
    elif ndim == 0 and axis in (-1, 0):  # a number by itself
        axes = ()
    else:
        axes = (positive_axis(axis, ndim),)
    return args, {**params, "axis": axes}


def positive_axis(axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis % ndim


def along_together(made: Primitive) -> None:
    """Give a batching rule to a function of arrays of one shape (but for `axis`), along `axis`."""

    def along_together_batch(args, batched, *, axis, **params):
        axis = shift(axis, ndim_of(args[0], batched[0]))
        return made.bind(*together(args, batched), axis=axis, **params)

    made.def_batch(along_together_batch)


# Softmax and its logarithms


def _shifted(x: Any, axis: tuple[int, ...]) -> tuple[Any, Any]:
    """Return x less its maximum over `axis`, 0 wherever it equals that, and the maximum."""
    largest = np.maximum.reduce(x, axis=axis, keepdims=True, initial=-np.inf)
    if is_finite(largest):
        return x - largest, largest
    with np.errstate(invalid="ignore"):  # infinity less infinity
        return np.where(np.equal(x, largest), 0, x - largest), largest


@primitive(canonical=along_axes)
def softmax(x, *, axis=-1):
    """``exp(x) / sum(exp(x))`` over `axis`."""
    shifted, _ = _shifted(x, axis)
    if type(shifted) is not np.ndarray:  # a number
        e = np.exp(shifted)
        return e / np.add.reduce(e, axis=axis, keepdims=True)
    e = np.exp(shifted, out=shifted)
    return np.divide(e, np.add.reduce(e, axis=axis, keepdims=True), out=e)


@softmax.def_jvp
def softmax_jvp(primals, tangents, out, *, axis):
    (x_dot,) = tangents
    return out * (x_dot - np.sum(out * x_dot, axis=axis, keepdims=True))


@softmax.def_vjp
def softmax_vjp(primals, out, *, axis):
    def softmax_pullback(out_bar):
        return out * (out_bar - np.sum(out * out_bar, axis=axis, keepdims=True))

    return softmax_pullback


def _axis_samples(rng: Any, fun: Any) -> Any:
    yield Sample(rng.normal(size=(3, 4)), fun=fun)
    yield Sample(rng.normal(size=(3, 4)), fun=fun, axis=0)
    yield Sample(rng.normal(size=(2, 3, 4)), fun=fun, axis=(0, -1))
    yield Sample(rng.normal(size=(2, 3)), fun=fun, axis=None)
    yield Sample(rng.normal(size=(3, 1)), fun=fun, axis=1)
    yield Sample(np.zeros((0, 3)), fun=fun, axis=-1)
    yield Sample(np.array([-500.0, 300.0, 450.0]), fun=fun, kinks=True)


along(softmax)


@softmax.def_samples
def softmax_samples(rng):
    yield from _axis_samples(rng, softmax)


@primitive(canonical=along_axes)
def log_softmax(x, *, axis=-1):
    """``x - log(sum(exp(x)))`` over `axis`."""
    shifted, _ = _shifted(x, axis)
    total = np.log(np.add.reduce(np.exp(shifted), axis=axis, keepdims=True))
    return np.subtract(shifted, total, out=shifted if type(shifted) is np.ndarray else None)


@log_softmax.def_jvp
def log_softmax_jvp(primals, tangents, out, *, axis):
    (x_dot,) = tangents
    return x_dot - np.sum(np.exp(out) * x_dot, axis=axis, keepdims=True)


@log_softmax.def_vjp
def log_softmax_vjp(primals, out, *, axis):
    def log_softmax_pullback(out_bar):
        return out_bar - np.exp(out) * np.sum(out_bar, axis=axis, keepdims=True)

    return log_softmax_pullback


along(log_softmax)


@log_softmax.def_samples
def log_softmax_samples(rng):
    yield from _axis_samples(rng, log_softmax)


@primitive(canonical=along_axes)
def log_sum_exp(x, *, axis=None, keepdims=False):
    """``log(sum(exp(x)))`` over `axis`; the gradient is the softmax, which sums to 1."""
    shifted, largest = _shifted(x, axis)
    with np.errstate(divide="ignore"):  # the sum of nothing
        out = largest + np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))
    return out if keepdims else squeezed(out, axis)


def squeezed(out: Any, axis: tuple[int, ...]) -> Any:
    """Drop the axes that were reduced; a number rather than an array without axes."""
    out = np.squeeze(out, axis=axis)
    return out if out.ndim else out[()]


def _kept(t: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    """Put the axes that were reduced back."""
    return t if keepdims or not axis else np.expand_dims(t, axis)


@log_sum_exp.def_jvp
def log_sum_exp_jvp(primals, tangents, out, *, axis, keepdims):
    (x,) = primals
    (x_dot,) = tangents
    return np.sum(x_dot * softmax.bind(x, axis=axis), axis=axis, keepdims=keepdims)


@log_sum_exp.def_vjp
def log_sum_exp_vjp(primals, out, *, axis, keepdims):
    (x,) = primals

    def log_sum_exp_pullback(out_bar):
        return _kept(out_bar, axis, keepdims) * softmax.bind(x, axis=axis)

    return log_sum_exp_pullback


along(log_sum_exp)


@log_sum_exp.def_samples
def log_sum_exp_samples(rng):
    yield from _axis_samples(rng, log_sum_exp)
    yield Sample(rng.normal(size=(2, 3, 4)), fun=log_sum_exp, axis=(0, -1), keepdims=True)
    yield Sample(np.float64(0.7), fun=log_sum_exp)


@primitive(canonical=along_axes)
def weighted_log_sum_exp(x, weights, *, axis=None, keepdims=False):
    """``log(abs(sum(weights * exp(x))))`` over `axis`; weights may be negative."""
    shifted, largest = _shifted(_where_weighted(x, weights), axis)
    with np.errstate(divide="ignore"):
        total = np.abs(np.sum(weights * np.exp(shifted), axis=axis, keepdims=True))
        out = largest + np.log(total)
    return out if keepdims else squeezed(out, axis)


def _where_weighted(x: Any, weights: Any) -> Any:
    """Return `x`, and minus infinity for what counts for nothing, however large it is."""
    return np.where(np.equal(weights, 0), -np.inf, x)


def _terms(x: Any, weights: Any, out: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    """Return ``exp(x) / sum`` and ``weights * exp(x) / sum``."""
    power = np.exp(x - _kept(out, axis, keepdims))
    part = weights * power
    if not is_finite(part):  # what counts for nothing may be too large to compute
        part = np.where(np.equal(weights, 0), 0, part)
    sign = np.sign(np.sum(part, axis=axis, keepdims=True))
    return sign * power, sign * part


@weighted_log_sum_exp.def_jvp
def weighted_log_sum_exp_jvp(primals, tangents, out, *, axis, keepdims):
    x, weights = primals
    x_dot, weights_dot = tangents
    power, share = _terms(x, weights, out, axis, keepdims)
    terms = 0 if x_dot is None else share * x_dot
    if weights_dot is not None:
        terms = terms + power * weights_dot
    return np.sum(terms, axis=axis, keepdims=keepdims)


@weighted_log_sum_exp.def_vjp
def weighted_log_sum_exp_vjp(primals, out, *, axis, keepdims):
    x, weights = primals

    def weighted_log_sum_exp_pullback_x(out_bar):
        _, share = _terms(x, weights, out, axis, keepdims)
        return _kept(out_bar, axis, keepdims) * share

    def weighted_log_sum_exp_pullback_weights(out_bar):
        power, _ = _terms(x, weights, out, axis, keepdims)
        return _kept(out_bar, axis, keepdims) * power

    return weighted_log_sum_exp_pullback_x, weighted_log_sum_exp_pullback_weights


along_together(weighted_log_sum_exp)


@weighted_log_sum_exp.def_samples
def weighted_log_sum_exp_samples(rng):
    fun = weighted_log_sum_exp
    yield Sample(rng.normal(size=(3, 4)), rng.uniform(0.5, 2.0, size=(3, 4)), fun=fun)
    yield Sample(rng.normal(size=(3, 4)), -rng.uniform(0.5, 2.0, size=(3, 4)), fun=fun, axis=-1)
    yield Sample(rng.normal(size=(3,)), np.array([3.0, 0.0, -0.25]), fun=fun, keepdims=True)


@primitive(canonical=along_axes)
def weighted_sign(x, weights, *, axis=None, keepdims=False):
    """The sign of ``sum(weights * exp(x))`` over `axis`."""
    shifted, largest = _shifted(_where_weighted(x, weights), axis)
    total = np.sum(weights * np.exp(shifted), axis=axis, keepdims=True)
    sign = np.where(np.equal(largest, -np.inf), 0, np.sign(total))
    return sign if keepdims else squeezed(sign, axis)


weighted_sign.not_differentiable("a sign is piecewise constant")


along_together(weighted_sign)


@weighted_sign.def_samples
def weighted_sign_samples(rng):
    yield Sample(rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), fun=weighted_sign, order=0)
