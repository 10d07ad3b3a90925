"""Windows that slide over the last axes: their sums, their maxima, and what is in them.

The one idea: for each element of the window there is a strided view of the array, which holds what
that element sees at all places. So a window function is one vectorised operation on a view for
each element of the window, and none for each place. Its transpose adds to the same views.

All functions here work along the last ``len(window)`` axes, whatever is in front. `padding` is
``((low, high), ...)``: so many elements, 0 or (for the maximum) of no account, around the array.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from funcgrad.core.batch import align, together
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import selected, shape_of
from funcgrad.rules.families import linear
from funcgrad.rules.nn.activations import one_number
from funcgrad.rules.nn.convolution import as_floats
from funcgrad.rules.nn.lowering import output_size

__all__ = ["fold", "max_window", "sum_window", "unfold"]

Sizes = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]


def one_floating(args, params):
    """Canonical form: an array of floating or complex numbers."""
    (x,) = args
    return (as_floats(x),), params


# Arrays and views


def padded(x: Any, padding: Pairs, value: Any = 0) -> Any:
    """Return `x` with `value` around it, laid out in memory as `x` is."""
    if not any(map(any, padding)):
        return x
    lead = x.ndim - len(padding)
    space = tuple(n + low + high for n, (low, high) in zip(x.shape[lead:], padding, strict=True))
    made = laid_out_like(x, (*x.shape[:lead], *space), value)
    made[inside(x.shape[lead:], padding)] = x
    return made


def laid_out_like(x: Any, shape: Sizes, value: Any = 0, dtype: Any = None) -> Any:
    """Make an array whose axes follow each other in memory as those of `x` do.

    It is full of `value`, or of nothing in particular if that is None.
    """
    order = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
    made = np.empty([shape[axis] for axis in order], x.dtype if dtype is None else dtype)
    if value is not None:
        made.fill(value)
    return made.transpose([order.index(axis) for axis in range(x.ndim)])


def inside(size: Sizes, padding: Pairs) -> Any:
    """Return the index of the array that padding was put around."""
    return (..., *(slice(low, low + n) for n, (low, _) in zip(size, padding, strict=True)))


def views(
    x: Any, window: Sizes, stride: Sizes, dilation: Sizes, places: Sizes
) -> Iterator[tuple[Sizes, Any]]:
    """Yield each element of the window, and the view of what it sees at all places."""
    for offset in itertools.product(*map(range, window)):
        index = (
            slice(o * d, o * d + (n - 1) * s + 1, s)
            for o, n, s, d in zip(offset, places, stride, dilation, strict=True)
        )
        yield offset, x[(..., *index)]


def places_of(x: Any, window: Sizes, stride: Sizes, padding: Pairs, dilation: Sizes) -> Sizes:
    """Return the number of places that the window can take, along each axis."""
    return output_size(shape_of(x)[-len(window) :], window, stride, padding, dilation)


def axis_by_axis(
    window: Sizes, stride: Sizes, dilation: Sizes
) -> Iterator[tuple[Sizes, Sizes, Sizes]]:
    """Yield windows along a single axis, one after another the same as the window given."""
    ones = (1,) * len(window)
    for axis in range(len(window)):
        before, after = ones[:axis], ones[axis + 1 :]
        yield (
            (*before, window[axis], *after),
            (*before, stride[axis], *after),
            (*before, dilation[axis], *after),
        )


def by_views(combine: Any, x: Any, window: Sizes, stride: Sizes, dilation: Sizes) -> Any:
    """Reduce what is in each window by a ufunc that is commutative and associative."""
    for sizes, steps, gaps in axis_by_axis(window, stride, dilation):
        places = places_of(x, sizes, steps, ((0, 0),) * len(window), gaps)
        seen = [view for _, view in views(x, sizes, steps, gaps, places)]
        if len(seen) == 1:
            x = seen[0]
            continue
        x = combine(seen[0], seen[1])
        for view in seen[2:]:
            combine(x, view, out=x)
    return x


def scattered(
    terms: Any, size: Sizes, window: Sizes, stride: Sizes, padding: Pairs, dilation: Sizes
) -> Any:
    """Add ``terms(offset)`` to the view of each element of the window, of an array of zeros."""
    first = terms((0,) * len(window))
    lead, places = first.shape[: first.ndim - len(size)], first.shape[first.ndim - len(size) :]
    space = tuple(n + low + high for n, (low, high) in zip(size, padding, strict=True))
    x = laid_out_like(first, (*lead, *space))
    for offset, view in views(x, window, stride, dilation, places):
        np.add(view, terms(offset) if any(offset) else first, out=view)
    return x[inside(size, padding)]


# Sums


@primitive(linear, canonical=one_floating)
def sum_window(x, *, window, stride, padding):
    """The sum of what is in the window, at each place."""
    ones = (1,) * len(window)
    out = by_views(np.add, padded(x, padding), window, stride, ones)
    return out.copy() if np.may_share_memory(out, x) else out


@primitive(linear, canonical=one_floating)
def spread_window(y, *, size, window, stride, padding):
    """The transpose: each place gives to all that is in its window; of `size` elements."""
    lead = y.ndim - len(size)
    # Along one axis after the other: a window of k * k costs 2 * k additions.
    for axis in range(len(size)):
        here = lead + axis
        full = list(y.shape)
        full[here] = size[axis] + sum(padding[axis])
        x = laid_out_like(y, tuple(full))
        count = y.shape[here]
        for k in range(window[axis]):
            index = [slice(None)] * y.ndim
            index[here] = slice(k, k + (count - 1) * stride[axis] + 1, stride[axis])
            view = x[tuple(index)]
            np.add(view, y, out=view)
        index = [slice(None)] * y.ndim
        index[here] = slice(padding[axis][0], padding[axis][0] + size[axis])
        y = x[tuple(index)]
    return y


@sum_window.def_vjp
def sum_window_vjp(primals, out, *, window, **params):
    (x,) = primals
    size = shape_of(x)[-len(window) :]

    def sum_window_pullback(y):
        return spread_window.bind(y, size=size, window=window, **params)

    return sum_window_pullback


@spread_window.def_vjp
def spread_window_vjp(primals, out, *, size, **params):
    def spread_window_pullback(x):
        return sum_window.bind(x, **params)

    return spread_window_pullback


# Maxima


@primitive(canonical=one_number)
def max_window(x, *, window, stride, padding, dilation):
    """The largest of what is in the window, at each place; equal ones share the derivative."""
    low = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf
    out = by_views(np.maximum, padded(x, padding, low), window, stride, dilation)
    return out.copy() if np.may_share_memory(out, x) else out


def _hits(
    x: Any, out: Any, window: Sizes, stride: Sizes, padding: Pairs, dilation: Sizes
) -> tuple[Any, Any]:
    """Return a function that marks the maxima that one element of the window sees, and its sum."""
    lost = np.isnan(out)
    with_nan = bool(lost.any())
    around = padded(x, padding, -np.inf if with_nan else np.nan)  # nothing is equal to NaN
    places = shape_of(out)[-len(window) :]
    seen = dict(views(around, window, stride, dilation, places))

    def hit(offset: Sizes) -> Any:
        view = seen[offset]
        return np.equal(view, out) | np.isnan(view) if with_nan else np.equal(view, out)

    kind = np.uint8 if math.prod(window) < 256 else np.intp
    number: Any = None
    for offset in seen:
        mask = hit(offset)
        if number is None:
            number = mask.astype(kind)
        else:
            np.add(number, mask, out=number)
    return hit, np.maximum(number, 1)  # there is none where the window sees nothing but padding


@primitive()
def pick_maxima(t, x, out, *, window, stride, padding, dilation):
    """The mean of `t` over the maxima of `x` in the window, which are `out`."""
    hit, number = _hits(x, out, window, stride, padding, dilation)
    around = padded(t, padding)
    total: Any = 0
    for offset, view in views(around, window, stride, dilation, shape_of(out)[-len(window) :]):
        total = total + selected(hit(offset), view)
    return (total / number).astype(t.dtype, copy=False)


@primitive()
def give_to_maxima(y, x, out, *, window, stride, padding, dilation):
    """The transpose: the maxima of `x` in the window share what `y` gives to the place."""
    if window == stride and set(dilation) == {1} and not any(map(any, padding)):
        given = _given_apart(y, x, out, window)
        if given is not None:
            return given
    hit, number = _hits(x, out, window, stride, padding, dilation)
    share = (y / number).astype(y.dtype, copy=False) if np.any(number > 1) else y

    def terms(offset: Sizes) -> Any:
        return selected(hit(offset), share)

    size = shape_of(x)[-len(window) :]
    return scattered(terms, size, window, stride, padding, dilation)


_INTEGERS = {4: np.int32, 8: np.int64}


def _given_apart(y: Any, x: Any, out: Any, window: Sizes) -> Any:
    """Do what `give_to_maxima` does if no two windows see one element; None if a maximum is NaN.

    What an element gets is written once, by bits: all are ones where it is a maximum.
    """
    if y.dtype.kind != "f" or y.itemsize not in _INTEGERS or math.prod(window) > 127 or not y.size:
        return None
    if np.isnan(np.max(out)):
        return None
    integer = _INTEGERS[y.itemsize]
    places = out.shape[-len(window) :]
    ones = (1,) * len(window)
    seen = dict(views(x, window, window, ones, places))
    masks = {offset: np.equal(view, out) for offset, view in seen.items()}
    number = sum(mask.view(np.int8) for mask in masks.values())
    share = laid_out_like(out, y.shape, 0, y.dtype)
    if np.max(number) > 1:
        np.divide(y, np.maximum(number, 1), out=share, casting="same_kind")
    else:
        share[...] = y
    covers = all(
        n == k * w for n, k, w in zip(x.shape[-len(window) :], places, window, strict=True)
    )
    given = laid_out_like(x, x.shape, None if covers else 0, y.dtype)
    bits = share.view(integer)
    minus = np.array(-1, integer)
    for offset, target in views(given.view(integer), window, window, ones, places):
        # Minus one, all bits of which are ones, where it is a maximum.
        mask = np.multiply(masks[offset].view(np.int8), minus)
        np.bitwise_and(bits, mask, out=target)
    return given


@max_window.def_jvp
def max_window_jvp(primals, tangents, out, **params):
    return pick_maxima.bind(tangents[0], primals[0], out, **params)


@max_window.def_vjp
def max_window_vjp(primals, out, **params):
    (x,) = primals

    def max_window_pullback(y):
        return give_to_maxima.bind(y, x, out, **params)

    return max_window_pullback


def _linear_in_the_first(made: Any, transposed: Any) -> None:
    """Declare the rules of both: where the maxima are is piecewise constant."""

    @made.def_jvp
    def first_jvp(primals, tangents, out, **params):
        if tangents[0] is None:
            return None
        return made.bind(tangents[0], *primals[1:], **params)

    @made.def_vjp
    def first_vjp(primals, out, **params):
        _, x, largest = primals

        def first_pullback(t):
            return transposed.bind(t, x, largest, **params)

        return first_pullback, None, None

    @made.def_batch
    def first_batch(args, batched, **params):
        return made.bind(*together(args, batched), **params)


_linear_in_the_first(pick_maxima, give_to_maxima)
_linear_in_the_first(give_to_maxima, pick_maxima)


# Everything in the windows


@primitive(linear, canonical=one_floating)
def unfold(x, *, window, stride, padding, dilation):
    """What is in the windows: ``[..., channels * elements, places]`` of ``x[..., channels, *]``."""
    around = padded(x, padding)
    places = places_of(x, window, stride, padding, dilation)
    lead = shape_of(x)[: -len(window)]
    out = np.empty((*lead, math.prod(window), *places), x.dtype)
    for k, (_, view) in enumerate(views(around, window, stride, dilation, places)):
        np.moveaxis(out, len(lead), 0)[k] = view
    return out.reshape(*lead[:-1], lead[-1] * math.prod(window), math.prod(places))


@primitive(linear, canonical=one_floating)
def fold(y, *, size, window, stride, padding, dilation):
    """The transpose: the sums of what all windows hold, of `size` elements."""
    places = output_size(size, window, stride, padding, dilation)
    *lead, depth, _ = shape_of(y)
    elements = math.prod(window)
    parts = y.reshape(math.prod(lead) * (depth // elements), elements, *places)

    def terms(offset: Sizes) -> Any:
        k = int(np.ravel_multi_index(offset, window))
        return parts[:, k]

    out = scattered(terms, size, window, stride, padding, dilation)
    return out.reshape(*lead, depth // elements, *size)


@unfold.def_vjp
def unfold_vjp(primals, out, *, window, **params):
    (x,) = primals
    size = shape_of(x)[-len(window) :]

    def unfold_pullback(y):
        return fold.bind(y, size=size, window=window, **params)

    return unfold_pullback


@fold.def_vjp
def fold_vjp(primals, out, *, size, **params):
    def fold_pullback(x):
        return unfold.bind(x, **params)

    return fold_pullback


def _in_front(made: Any) -> None:
    """Declare the rule for many examples: one more axis in front, where nobody counts."""

    @made.def_batch
    def front_batch(args, batched, **params):
        return made.bind(*align(args, batched), **params)


for _made in (sum_window, spread_window, max_window, unfold, fold):
    _in_front(_made)


# Samples

# space, window, stride, padding, dilation
_CASES: tuple[Any, ...] = (
    ((5,), (2,), (2,), ((0, 0),), (1,)),
    ((6,), (3,), (1,), ((1, 2),), (2,)),
    ((4, 5), (2, 3), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    ((4, 4), (2, 2), (2, 2), ((1, 0), (1, 1)), (1, 1)),
    ((5, 5), (1, 2), (2, 3), ((0, 0), (0, 0)), (1, 2)),
    ((3, 3), (1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    ((3, 3, 3), (2, 2, 1), (1, 1, 1), ((0, 0), (1, 0), (0, 0)), (1, 1, 1)),
)


def _samples(rng: Any, dilated: bool = True) -> Any:
    for lead in ((2,), (2, 0)):
        for space, window, stride, padding, dilation in _CASES[: None if all(lead) else 1]:
            params = {"window": window, "stride": stride, "padding": padding}
            if dilated:
                params["dilation"] = dilation
            else:
                dilation = (1,) * len(window)
            places = output_size(space, window, stride, padding, dilation)
            x, y = rng.normal(size=(*lead, *space)), rng.normal(size=(*lead, *places))
            yield x, y, params


@sum_window.def_samples
def sum_window_samples(rng):
    for x, _, params in _samples(rng, dilated=False):
        yield Sample(x, fun=sum_window, **params)


@spread_window.def_samples
def spread_window_samples(rng):
    for x, y, params in _samples(rng, dilated=False):
        size = x.shape[-len(params["window"]) :]
        yield Sample(y, fun=spread_window, size=size, **params)


@max_window.def_samples
def max_window_samples(rng):
    for x, _, params in _samples(rng):
        yield Sample(x, fun=max_window, complex=False, **params)
    params = {"window": (2,), "stride": (1,), "padding": ((1, 1),), "dilation": (1,)}
    ties = np.array([2.0, 2.0, -1.0, 2.0, 2.0, 2.0])
    yield Sample(ties, fun=max_window, kinks=True, complex=False, **params)
    lows = np.array([-np.inf, -np.inf, 1.0])
    yield Sample(lows, fun=max_window, kinks=True, complex=False, **params)


@pick_maxima.def_samples
def pick_maxima_samples(rng):
    for x, _, params in _samples(rng):
        out = max_window(x, **params)
        yield Sample(rng.normal(size=x.shape), x, out, fun=pick_maxima, argnums=0, **params)


@give_to_maxima.def_samples
def give_to_maxima_samples(rng):
    for x, y, params in _samples(rng):
        yield Sample(y, x, max_window(x, **params), fun=give_to_maxima, argnums=0, **params)


@unfold.def_samples
def unfold_samples(rng):
    for x, _, params in _samples(rng):
        yield Sample(x, fun=unfold, **params)


@fold.def_samples
def fold_samples(rng):
    for x, _, params in _samples(rng):
        size = x.shape[-len(params["window"]) :]
        y = rng.normal(size=unfold(x, **params).shape)
        yield Sample(y, fun=fold, size=size, **params)
