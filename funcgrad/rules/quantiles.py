"""Quantiles, percentiles and medians, also those that ignore NaN.

The one idea: every method takes a quantile at a *position* among the sorted elements, between two
of them, and that position does not depend on their values. NumPy itself says which: it is the
quantile of the numbers 0, 1, 2, ... So the derivative in the elements goes to those two, in shares
that add up to 1; equal elements have the places in which a stable sort puts them. The derivative
in `q` is the distance of the two elements, times how fast the position moves with `q`; at an
element, where the slope changes, it is the smaller slope, and 0 at both ends.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.core.batch import count_examples, full_batch, loop, shift
from funcgrad.core.level import detached
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of, zero_wins
from funcgrad.errors import MissingRuleError, user_line
from funcgrad.rules.gathering import put_back, taken
from funcgrad.rules.reducing import NOT_GIVEN, axes_of, finish, plus, split, unsplit
from funcgrad.rules.sorting import stable_order
from funcgrad.rules.spelling import array_of, as_array

__all__: list[str] = []

# How many positions there are to the unit of q, beyond the number of elements. A method that is
# not named takes one of the elements, or their middle: it steps.
_SPEED = {
    "linear": -1.0,
    "interpolated_inverted_cdf": 0.0,
    "hazen": 0.0,
    "weibull": 1.0,
    "median_unbiased": 1 / 3,
    "normal_unbiased": 1 / 4,
}


# Positions among the sorted elements


@primitive()
def quantile_positions(q, number, *, function, method, scale):
    """Where the quantiles `q` of `number` sorted elements are; the axes of `q` come first."""
    out = np.zeros(np.shape(q) + np.shape(number))
    for n in np.unique(number):
        if n:
            ranks = np.arange(float(n))
            place = function(ranks) if method is None else function(ranks, q, method=method)
            out[..., np.equal(number, n)] = np.asarray(place)[..., np.newaxis]
    return out


def _speed(out, number, method, scale):
    """Return how fast the positions move with `q`, or None if they step."""
    if method not in _SPEED:
        return None
    inside = np.greater(out, 0) & np.less(out, number - 1)
    return np.where(inside, (number + _SPEED[method]) / scale, 0)


@quantile_positions.def_jvp
def quantile_positions_jvp(primals, tangents, out, *, function, method, scale):
    q_dot, _ = tangents
    speed = _speed(out, primals[1], method, scale)
    return None if speed is None or q_dot is None else _for_each(q_dot, shape_of(out)) * speed


@quantile_positions.def_vjp
def quantile_positions_vjp(primals, out, *, function, method, scale):
    q, number = primals
    speed = _speed(out, number, method, scale)
    if speed is None:
        return None, None
    behind = tuple(range(len(shape_of(q)), len(shape_of(out))))

    def quantile_positions_pullback(out_bar):
        return np.sum(out_bar * speed, axis=behind)

    return quantile_positions_pullback, None


@quantile_positions.def_batch
def quantile_positions_batch(args, batched, **params):
    q, number = args
    if batched[0]:
        return loop(quantile_positions.bind, args, batched, params)
    return np.moveaxis(quantile_positions.bind(q, number, **params), len(shape_of(q)), 0)


@quantile_positions.def_samples
def quantile_positions_samples(rng):
    for method in _SPEED:
        yield Sample(
            np.array([0.3, 0.5]),
            np.array([3, 4, 3]),
            fun=quantile_positions,
            function=np.quantile,
            method=method,
            scale=1,
            complex=False,
        )


@primitive()
def weighted_positions(weights, q, *, function, method):
    """Where the quantiles `q` of elements with `weights`, sorted along the last axis, are."""
    ranks = np.broadcast_to(np.arange(float(weights.shape[-1])), weights.shape)
    return function(ranks, q, axis=-1, method=method, weights=weights)


weighted_positions.not_differentiable("which elements are taken is piecewise constant")


@weighted_positions.def_batch
def weighted_positions_batch(args, batched, **params):
    weights, q = args
    if batched[1]:
        return loop(weighted_positions.bind, args, batched, params)
    return np.moveaxis(weighted_positions.bind(weights, q, **params), len(shape_of(q)), 0)


@weighted_positions.def_samples
def weighted_positions_samples(rng):
    yield Sample(
        np.array([[0.2, 0.5, 0.5], [0.0, 1.0, 2.0]]),
        0.5,
        fun=weighted_positions,
        function=np.quantile,
        method="inverted_cdf",
    )


# The rules


class _Choice:
    """Which elements a call takes, and in what shares.

    The array is seen as lines of the elements that are sorted together, the last axis; along the
    last axis of what is taken from it are the quantiles.
    """

    def __init__(self, primals: Any, out: Any, settings: Any, axis: Any, method: Any):
        _, function, skips, self.scale = settings
        a, *rest = primals
        q = rest[0] if rest else np.float64(0.5)
        self.method, self.skips = method, skips
        self.shape, self.q_shape, self.out_shape = shape_of(a), shape_of(q), shape_of(out)
        self.count = math.prod(self.q_shape)
        self.axes = tuple(sorted(axes_of(axis, len(self.shape))))
        lines = split(detached(a), self.axes)
        *outer, self.size = shape_of(lines)
        self.outer = tuple(outer)
        self.order = stable_order.bind(lines, axis=len(outer))
        present = np.logical_not(np.isnan(lines)) if skips else True
        self.number: Any = np.sum(present, axis=-1) if skips else np.full(self.outer, self.size)
        if len(rest) > 1:
            weights = np.where(present, self._weights(detached(rest[1])), 0)
            weights = taken(weights, self.order, len(outer))
            place = weighted_positions.bind(weights, detached(q), function=function, method=method)
            place = np.where(np.isnan(place), 0, place)
        else:
            place = quantile_positions.bind(
                q, self.number, function=function, method=method, scale=self.scale
            )
        self.place = np.moveaxis(np.reshape(place, (self.count, *self.outer)), 0, -1)
        low = np.floor(detached(self.place))
        self.share = self.place - low  # of the upper element
        self.low = low.astype(np.intp)
        self.at_low = self._at(self.low)
        self.at_high = self._at(np.minimum(self.low + 1, max(self.size - 1, 0)))

    def _weights(self, weights: Any) -> Any:
        """Return the weights of each line; those for one axis are the same for all."""
        if shape_of(weights) != self.shape:
            weights = _broadcasting(weights, self.shape, self.axes)
        return split(np.broadcast_to(weights, self.shape), self.axes)

    def _at(self, rank: Any) -> Any:
        """Return where the elements of that rank are."""
        return taken(self.order, rank, len(self.outer))

    def _take(self, x: Any, places: Any) -> Any:
        return taken(split(x, self.axes), places, len(self.outer))

    def mix(self, x: Any) -> Any:
        """Return the elements of `x` that are taken, in their shares."""
        low, high = self._take(x, self.at_low), self._take(x, self.at_high)
        share = self.share.astype(_real(dtype_of(x)))
        mixed = np.where(np.equal(share, 0), low, low + share * (high - low))
        return np.reshape(np.moveaxis(mixed, -1, 0), self.out_shape)

    def unmix(self, t: Any) -> Any:
        """Put `t`, of the shape of the result, back where the elements were taken from."""
        t = np.moveaxis(np.reshape(t, (self.count, *self.outer)), 0, -1)
        share = self.share.astype(_real(dtype_of(t)))
        t = np.concatenate([(1 - share) * t, share * t], axis=-1)
        places = np.concatenate([self.at_low, self.at_high], axis=-1)
        made = put_back(t, places, len(self.outer), self.size)
        return unsplit(made, self.axes, self.shape)

    def slope(self, a: Any) -> Any:
        """Return the derivative in `q` of each result, or None if it is 0."""
        if self.method not in _SPEED or not self.size:
            return None
        low = self._take(a, self.at_low)
        gap = self._take(a, self.at_high) - low
        before = low - self._take(a, self._at(np.maximum(self.low - 1, 0)))
        gap = np.where(np.equal(self.share, 0), np.minimum(gap, before), gap)
        number = np.expand_dims(self.number, -1)
        slope = gap * _speed(detached(self.place), number, self.method, self.scale)
        return np.reshape(np.moveaxis(slope, -1, 0), self.out_shape)


def _broadcasting(weights, shape, axes):
    """Return weights for `axes` alone so that they broadcast against the array."""
    return np.reshape(weights, tuple(n if i in axes else 1 for i, n in enumerate(shape)))


def _real(dtype):
    return np.zeros((), dtype).real.dtype


def _rules(made, settings):
    """Give the rules to a quantile; its array arguments are ``a``, or ``a, q``, and weights."""

    @made.def_jvp
    def quantile_jvp(primals, tangents, out, *, axis, method, keepdims):
        a_dot, *rest = tangents
        choice = _Choice(primals, out, settings, axis, method)
        out_dot = None if a_dot is None else choice.mix(a_dot)
        if rest and rest[0] is not None:
            slope = choice.slope(primals[0])
            if slope is not None:
                q_dot = _for_each(rest[0], shape_of(out))
                out_dot = plus(out_dot, zero_wins(slope * q_dot, q_dot))
        return out_dot

    @made.def_vjp
    def quantile_vjp(primals, out, *, axis, method, keepdims):
        choice = _Choice(primals, out, settings, axis, method)
        a = primals[0]
        behind = tuple(range(len(choice.q_shape), len(choice.out_shape)))

        def quantile_pullback_a(out_bar):
            return choice.unmix(out_bar)

        def quantile_pullback_q(out_bar):
            slope = choice.slope(a)
            if slope is None:
                return None
            return np.sum(zero_wins(slope * out_bar, out_bar), axis=behind)

        return (quantile_pullback_a, quantile_pullback_q, None)[: len(primals)]

    @made.def_batch
    def quantile_batch(args, batched, *, axis, method, keepdims):
        params = {"axis": axis, "method": method, "keepdims": keepdims}
        a, *rest = args
        size = count_examples(args, batched)
        # Without elements NumPy takes no quantiles, or puts their axis elsewhere.
        if 0 in (size, *shape_of(a)) or (rest and batched[1]):
            return loop(made.bind, args, batched, params)
        ndim = len(shape_of(a)) - batched[0]
        params["axis"] = shift(axis, ndim)
        shape = (size, *shape_of(a)[batched[0] :])
        a = full_batch(a, batched[0], size)
        if len(rest) > 1:
            weights = rest[1]
            if shape_of(weights)[batched[2] :] != shape[1:]:
                axes = axes_of(axis, ndim)
                axes = (0, *(i + 1 for i in axes)) if batched[2] else tuple(i + 1 for i in axes)
                weights = _broadcasting(weights, shape, axes)
            rest[1] = np.broadcast_to(weights, shape)
        out = made.bind(a, *rest, **params)
        return np.moveaxis(out, len(shape_of(rest[0])) if rest else 0, 0)


def _for_each(q_dot, shape):
    """Return what belongs to the quantiles so that it broadcasts against the result."""
    return np.reshape(q_dot, shape_of(q_dot) + (1,) * (len(shape) - len(shape_of(q_dot))))


def _declare_quantile(function, base, skips, scale):
    def quantile(a, q, weights=None, *, axis, method, keepdims):
        return function(a, q, axis, method=method, keepdims=keepdims, weights=weights)

    made = primitive(name=function.__name__)(quantile)

    @made.def_call(function)
    def call(
        a,
        q,
        axis=None,
        out=None,
        overwrite_input=False,
        method="linear",
        keepdims=False,
        *,
        weights=None,
    ):
        a, q = as_array(a), array_of(q) if isinstance(q, list | tuple) else q
        args = (a, q) if weights is None else (a, q, array_of(weights))
        keepdims = bool(keepdims) and keepdims is not NOT_GIVEN
        axis = tuple(axis) if isinstance(axis, list) else axis
        if skips and len(shape_of(q)) > 1 and isinstance(axis, tuple) and len(axis) > 1:
            # NumPy 2.4 puts the axes of such a q among those of the array.
            raise MissingRuleError(
                f"numpy.{made.name} has no rule for a q of several axes together with several axes",
                where=user_line(),
                fix="flatten q, and reshape the result",
            )
        return finish(made.bind(*args, axis=axis, method=method, keepdims=keepdims), out)

    _rules(made, (function, base, skips, scale))

    @made.def_samples
    def samples(rng):
        a = rng.normal(size=(2, 5, 3))
        q = np.array([0.17, 0.61]) * scale
        yield Sample(a, 0.3 * scale)
        yield Sample(a, q, axis=1)
        yield Sample(a, np.float64(0.3 * scale), (0, -1), keepdims=True, argnums=(0, 1))
        yield Sample(a, q.reshape(1, 2), axis=1, keepdims=True)
        yield Sample(a, q, axis=(2, 1), keepdims=True)
        yield Sample(a, 0.5 * scale, 1, argnums=0)
        for method in ("inverted_cdf", "averaged_inverted_cdf", "closest_observation", *_SPEED):
            yield Sample(a[0], q, 0, method=method)
        for method in ("lower", "higher", "midpoint", "nearest"):
            yield Sample(a[0], q, -2, method=method)
        yield Sample(a[0], [0.0, 1.0 * scale], 0, argnums=0)
        yield Sample(np.array([2.0, 1.0, 2.0, 1.0]), q, kinks=True)
        weights = rng.uniform(0.5, 1.5, size=(2, 5, 3))
        inverted: Any = {"method": "inverted_cdf"}
        yield Sample(a, q, 1, weights=weights, argnames="weights", **inverted)
        yield Sample(a, 0.4 * scale, weights=weights, argnames="weights", **inverted)
        yield Sample(rng.normal(size=1), q, argnums=0)
        yield Sample([1, 3, 2], q)
        if skips:
            b = a.copy()
            b[0, 1, 2] = b[1, 2, 0] = np.nan
            yield Sample(b, q, 1, kinks=True)
            yield Sample(b, q, kinks=True)
            yield Sample(b, q, 1, weights=weights, kinks=True, **inverted)
        else:
            yield Sample(a, q.reshape(1, 2), axis=(2, 1))
            yield Sample(a, q, axis=1, weights=weights[0, :, 0], **inverted)
            yield Sample(np.array([np.nan, 1.0, 2.0]), 0.5 * scale, kinks=True)

    return made


_declare_quantile(np.quantile, np.quantile, False, 1)
_declare_quantile(np.percentile, np.percentile, False, 100)
_declare_quantile(np.nanquantile, np.quantile, True, 1)
_declare_quantile(np.nanpercentile, np.percentile, True, 100)


# Medians


def _declare_median(function, skips):
    def median(a, *, axis, method, keepdims):
        return function(a, axis, keepdims=keepdims)

    made = primitive(name=function.__name__)(median)

    @made.def_call(function)
    def call(a, axis=None, out=None, overwrite_input=False, keepdims=False):
        keepdims = bool(keepdims) and keepdims is not NOT_GIVEN
        axis = tuple(axis) if isinstance(axis, list) else axis
        return finish(made.bind(as_array(a), axis=axis, method=None, keepdims=keepdims), out)

    _rules(made, (function, np.median, skips, 1))

    @made.def_samples
    def samples(rng):
        a = rng.normal(size=(2, 5, 3))
        yield Sample(a)
        yield Sample(a, 0)
        yield Sample(a, 1, keepdims=True)
        yield Sample(a, axis=(0, -1))
        yield Sample(rng.normal(size=1))
        yield Sample(rng.normal(size=()))
        yield Sample(np.array([2.0, 1.0, 2.0, 1.0, 2.0]), kinks=True)
        b = a.copy()
        b[0, 1, 2] = b[1, 2, 0] = np.nan
        yield Sample(b, 1, kinks=True)

    return made


_declare_median(np.median, False)
_declare_median(np.nanmedian, True)
