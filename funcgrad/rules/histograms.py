"""Counting: `bincount` and the histograms, differentiable in the weights and in the edges.

The number of elements in a bin is piecewise constant; a sum of weights is linear in the weights.
Where NumPy makes the edges of the bins from the data, the first and last are its extremes, and
have the derivatives of those; so do densities, which are divided by the widths.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from funcgrad.core.batch import by_loop, count_examples, full_batch, loop
from funcgrad.core.level import (
    TracerBase,
    concrete,
    detached,
    holds_anywhere,
    is_batched,
    looked_at,
)
from funcgrad.core.primitive import Sample, overrides, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.gathering import gather, gather_add
from funcgrad.rules.reducing import cast
from funcgrad.rules.spelling import array_of, as_array, refuse_batched

__all__: list[str] = []


# bincount


@primitive(name="bincount")
def counted(x, weights, *, minlength):
    """How often each number is in `x`, or the sum of the weights there."""
    return np.bincount(x, weights, minlength)


@counted.def_jvp
def counted_jvp(primals, tangents, out, *, minlength):
    x, _ = primals
    _, weights_dot = tangents
    if weights_dot is None:
        return None
    return counted.bind(x, weights_dot, minlength=max(shape_of(out)[0], minlength))


@counted.def_vjp
def counted_vjp(primals, out, *, minlength):
    x, _ = primals

    def counted_pullback_weights(out_bar):
        return gather.bind(out_bar, x)

    return None, counted_pullback_weights


@counted.def_batch
def counted_batch(args, batched, *, minlength):
    """One row of bins after the other, as long as the longest of the examples needs."""
    x, weights = args
    size = count_examples(args, batched)
    shape = shape_of(x)[batched[0] :]
    if (
        len(shape) != 1
        or holds_anywhere(np.less(x, 0), "whether a number is negative")
        or (weights is not None and shape_of(weights)[batched[1] :] != shape)
    ):
        return loop(counted.bind, args, batched, {"minlength": minlength})  # raises
    length = minlength
    if holds_anywhere(np.greater_equal(x, minlength), "whether there are enough bins"):
        length = int(looked_at(np.max(x), "the number of bins")) + 1
    x = full_batch(x, batched[0], size)
    if weights is not None:
        weights = np.reshape(full_batch(weights, batched[1], size), -1)
    places = np.reshape(x + np.arange(size)[:, np.newaxis] * length, -1)
    made = counted.bind(places, weights, minlength=size * length)
    if not size and weights is not None and shape_of(x)[1]:
        made = cast(made, np.float64)  # NumPy counts where there is nothing to weigh
    return np.reshape(made, (size, length))


@counted.def_call(np.bincount)
def bincount(x, /, weights=None, minlength=0):
    """Count the numbers in `x`, with weights."""
    is_empty_list = isinstance(x, list | tuple) and not len(x)
    x = detached(array_of(x))
    if is_empty_list or dtype_of(x).kind == "b":
        x = cast(x, np.intp)
    if not isinstance(x, TracerBase):
        x = np.array(x)  # the caller may write to it
    weights = None if weights is None else array_of(weights)
    return counted.bind(x, weights, minlength=operator.index(minlength))


@counted.def_samples
def counted_samples(rng):
    x = np.array([3, 0, 3, 1])
    yield Sample(x, rng.normal(size=4))
    yield Sample(x, weights=rng.normal(size=4), minlength=6, argnames="weights")
    yield Sample([0, 0, 2], rng.normal(size=3))
    yield Sample(np.array([True, False]), rng.normal(size=2))
    yield Sample(np.zeros(0, int), rng.normal(size=0), 3, order=0)


# Edges


def _not_finite(first, last):
    return np.logical_not(np.logical_and(np.isfinite(first), np.isfinite(last)))


_AS_MANY = "a number of bins says how long the result is"
_GIVE_EDGES = "give the edges of the bins, or the same number for all examples"


def _outer_edges(a, span):
    """Return the first and the last edge: those given, or the extremes of the data."""
    if span is not None:
        first, last = span
        if holds_anywhere(np.greater(first, last), "whether the range is empty"):
            raise ValueError("max must be larger than min in range parameter.")
        if holds_anywhere(_not_finite(first, last), "whether the range is finite"):
            raise ValueError(f"supplied range of [{first}, {last}] is not finite")
    elif 0 in shape_of(a):
        first, last = 0, 1
    else:
        first, last = np.min(a), np.max(a)
        if holds_anywhere(_not_finite(first, last), "whether the range is finite"):
            raise ValueError(
                f"autodetected range of [{concrete(first)}, {concrete(last)}] is not finite"
            )
    same = looked_at(np.equal(first, last), "whether all values are the same")
    if np.all(same):
        first, last = first - 0.5, last + 0.5
    elif np.any(same):  # some examples of many
        same = np.equal(first, last)
        first, last = np.where(same, first - 0.5, first), np.where(same, last + 0.5, last)
    return first, last


def _edges(a, bins, span, weights):
    """Return the edges of the bins of `numpy.histogram`."""
    if isinstance(bins, str):
        refuse_batched(a, "bins given by a name are as many as the data ask for")
        plain = looked_at(a, "the number of bins")
        bins = len(np.histogram_bin_edges(plain, bins, span, weights)) - 1
    if np.ndim(bins) == 1:
        bins = as_array(bins)
        if holds_anywhere(np.greater(bins[..., :-1], bins[..., 1:]), "whether the edges increase"):
            raise ValueError("`bins` must increase monotonically, when an array")
        return bins
    if np.ndim(bins) != 0:
        raise ValueError("`bins` must be 1d, when an array")
    refuse_batched(detached(bins), _AS_MANY, _GIVE_EDGES)
    try:
        number = operator.index(bins)
    except TypeError as error:
        raise TypeError("`bins` must be an integer, a string, or an array") from error
    if number < 1:
        raise ValueError("`bins` must be positive, when an integer")
    first, last = _outer_edges(a, span)
    dtype = np.result_type(
        *(x if isinstance(x, int | float) else dtype_of(x) for x in (first, last, a))
    )
    if dtype.kind in "iu":
        dtype = np.result_type(dtype, float)
    edges = np.linspace(first, last, number + 1, dtype=dtype)
    if holds_anywhere(np.less_equal(np.diff(edges), 0), "whether the edges increase"):
        raise ValueError(f"Too many bins for data range. Cannot create {number} finite-sized bins.")
    return edges


@overrides(np.histogram_bin_edges)
def histogram_bin_edges(a, bins=10, range=None, weights=None):
    """Compute the edges of the bins: evenly from the least to the largest element, or as given."""
    return _edges(_raveled(a, weights)[0], bins, range, weights)


def _raveled(a, weights):
    """Return the data and the weights with one axis."""
    a = array_of(a)
    if dtype_of(a).kind == "b":
        a = cast(a, np.uint8)
    if weights is not None:
        weights = array_of(weights)
        if shape_of(weights) != shape_of(a):
            raise ValueError("weights should have the same shape as a.")
        weights = np.ravel(weights)
    return np.ravel(a), weights


@histogram_bin_edges.def_samples
def histogram_bin_edges_samples(rng):
    x = rng.normal(size=(2, 4))
    yield Sample(x, complex=False)
    yield Sample(x, 3, complex=False)
    yield Sample(x, 3, (-2.0, 3.0), complex=False)
    yield Sample(x, np.array([-1.0, 0.0, 3.0]), complex=False)
    yield Sample(x, "sturges", complex=False, batch=False)
    yield Sample(np.array([0.5]), 2, complex=False)
    yield Sample(np.zeros(0), 2, complex=False)


# Histograms of one variable


@primitive()
def tally(a, weights, edges, *, bins, span):
    """Sum of the weights in each bin, or the number of elements; `bins` tells how NumPy counts."""
    return np.histogram(a, edges if bins is None else bins, span, weights=weights)[0]


def _bin_of(a, edges):
    """Return the bin of each element, and whether it is in one; the last bin is closed."""
    number = shape_of(edges)[0] - 1
    a, edges = detached(a), detached(edges)
    found = np.searchsorted(edges, a, side="right") - 1
    at_end = np.equal(a, edges[-1])
    inside = np.logical_or(np.greater_equal(found, 0) & np.less(found, number), at_end)
    return np.clip(found, 0, max(number - 1, 0)), inside


@tally.def_jvp
def tally_jvp(primals, tangents, out, *, bins, span):
    a, _, edges = primals
    weights_dot = tangents[1]
    if weights_dot is None:
        return None
    places, inside = _bin_of(a, edges)
    return gather_add.bind(np.where(inside, weights_dot, 0), places, size=shape_of(out)[0])


@tally.def_vjp
def tally_vjp(primals, out, *, bins, span):
    a, _, edges = primals

    def tally_pullback_weights(out_bar):
        places, inside = _bin_of(a, edges)
        return np.where(inside, gather.bind(out_bar, places), 0)

    return None, tally_pullback_weights, None


by_loop(tally)


@tally.def_call(np.histogram)
def histogram(a, bins=10, range=None, density=None, weights=None):
    """`numpy.histogram`."""
    a, weights = _raveled(a, weights)
    if isinstance(bins, str) and weights is not None:
        raise TypeError(
            "Automated estimation of the number of bins is not supported for weighted data"
        )
    edges = _edges(a, bins, range, weights)
    even = np.ndim(bins) == 0 and not (range is not None and any(map(is_batched, range)))
    given = len(concrete(edges)) - 1 if isinstance(bins, str) else bins
    span = None
    if range is not None and even:
        span = tuple([looked_at(end, "the range") for end in range])
    counts = tally.bind(a, weights, edges, bins=given if even else None, span=span)
    if not density:
        return counts, edges
    return counts / cast(np.diff(edges), np.float64) / np.sum(counts), edges


@tally.def_samples
def tally_samples(rng):
    x, w = rng.normal(size=(2, 4)), rng.uniform(0.5, 1.5, size=(2, 4))
    real: Any = {"complex": False}
    edges = np.array([-1.0, -0.2, 0.1, 3.0])
    yield Sample(x, 3, **real)
    yield Sample(x, 3, density=True, **real)
    yield Sample(x, "sturges", density=True, batch=False, **real)
    yield Sample(x, edges, density=True, **real)
    yield Sample(x, 3, weights=w, argnames="weights", **real)
    yield Sample(x, 3, weights=w + 0.5j * w[::-1], argnames="weights", **real)
    yield Sample(x, 3, (-0.5, 0.7), weights=w, argnames="weights", **real)
    yield Sample(x, edges, weights=w, density=True, argnames="weights", **real)
    yield Sample(x, [-1, 0, 1], weights=w, density=True, argnames="weights", **real)
    yield Sample([1, 2, 1, 3], 3, weights=w[0], argnames="weights", **real)
    tied: Any = {"argnames": "weights", "kinks": True, "complex": False}
    yield Sample(np.array([1.0, 1.0]), 2, weights=w[0, :2], **tied)
    yield Sample(np.array([0.0, 1.0, 2.0, 3.0]), 3, weights=w[0], **tied)


# Histograms of several variables


@overrides(np.histogramdd)
def histogramdd(sample, bins=10, range=None, density=None, weights=None):
    """Count points in a grid of bins."""
    if len(shape_of(sample)) != 2:
        sample = np.transpose(np.atleast_2d(array_of(sample)))
    _, dims = shape_of(sample)
    columns = [sample[:, i] for i in np.arange(dims)]
    try:
        given = len(bins)
    except TypeError:
        bins = [bins] * dims
    else:
        if given != dims:
            raise ValueError(
                "The dimension of bins must be equal to the dimension of the sample x."
            )
    spans = [None] * dims if range is None else range
    if len(spans) != dims:
        raise ValueError("range argument must have one entry per dimension")
    edges = [_edges_of(*both, i) for i, both in enumerate(zip(columns, bins, spans, strict=True))]
    numbers = np.array([shape_of(edge)[0] + 1 for edge in edges])  # one outlier on each side
    places = [_cell(column, edge) for column, edge in zip(columns, edges, strict=True)]
    flat: Any = 0
    for place, number in zip(places, numbers, strict=True):
        flat = flat * number + place
    counts = np.bincount(flat, weights, minlength=numbers.prod())
    counts = cast(np.reshape(counts, tuple(numbers)), np.float64)
    counts = counts[(slice(1, -1),) * dims]
    if density:
        total = np.sum(counts)
        for i, edge in enumerate(edges):
            shape = (-1,) + (1,) * (dims - i - 1)
            counts = counts / np.reshape(np.diff(edge), shape)
        counts = counts / total
    return counts, edges


def _edges_of(column, bins, span, i):
    """Return the edges along one axis, which `histogramdd` makes a little otherwise."""
    if np.ndim(bins) == 0:
        refuse_batched(detached(bins), _AS_MANY, _GIVE_EDGES)
        if bins < 1:
            raise ValueError(f"`bins[{i}]` must be positive, when an integer")
        first, last = _outer_edges(column, span)
        try:
            number = operator.index(bins)
        except TypeError as error:
            raise TypeError(f"`bins[{i}]` must be an integer, when a scalar") from error
        return np.linspace(first, last, number + 1)
    if np.ndim(bins) != 1:
        raise ValueError(f"`bins[{i}]` must be a scalar or 1d array")
    edges = as_array(bins)
    if holds_anywhere(np.greater(edges[..., :-1], edges[..., 1:]), "whether the edges increase"):
        raise ValueError(f"`bins[{i}]` must be monotonically increasing, when an array")
    return edges


def _cell(column, edges):
    """Return the number of the bin, from 1 on; 0 is below all and the last is above."""
    column, edges = detached(column), detached(edges)
    place = np.searchsorted(edges, column, side="right")
    return place - np.equal(column, edges[-1])


@histogramdd.def_samples
def histogramdd_samples(rng):
    x, w = rng.normal(size=(6, 2)), rng.uniform(0.5, 1.5, size=6)
    real: Any = {"complex": False}
    yield Sample(x, 2, **real)
    yield Sample(x, (2, 3), density=True, **real)
    yield Sample(x, (2, np.array([-1.0, 0.0, 1.0])), weights=w, argnames="weights", **real)
    yield Sample(x, 2, [(-1, 1), None], weights=w, density=True, argnames="weights", **real)
    yield Sample([x[:, 0], x[:, 1], w], 2, weights=w, argnames="weights", **real)


@overrides(np.histogram2d)
def histogram2d(x, y, bins=10, range=None, density=None, weights=None):
    """Count points in a plane."""
    x, y = array_of(x), array_of(y)
    if len(x) != len(y):
        raise ValueError("x and y must have the same length.")
    try:
        number = len(bins)
    except TypeError:
        number = 1
    if number not in (1, 2):
        bins = [as_array(bins)] * 2
    counts, edges = histogramdd(np.stack([x, y], axis=-1), bins, range, density, weights)
    return counts, edges[0], edges[1]


@histogram2d.def_samples
def histogram2d_samples(rng):
    x, y, w = rng.normal(size=(3, 6))
    real: Any = {"complex": False}
    yield Sample(x, y, 2, **real)
    yield Sample(x, y, np.array([-1.0, 0.0, 0.5, 2.0]), density=True, **real)
    yield Sample(x, y, (2, 3), weights=w, density=True, argnames="weights", **real)
