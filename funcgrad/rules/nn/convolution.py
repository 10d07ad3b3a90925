"""Convolutions of images: three primitives that are each other's transposes.

The one idea: a convolution is one form, linear in each of an input, a kernel and an output,

    sum over n, o, c, p, k of x[n, c, p * stride + k * dilation - low] w[o, c, k] y[n, o, p]

and its derivative in one of them is a function of the other two. `conv` is that in `y`,
`conv_input` that in `x` (what networks call a transposed convolution) and `conv_kernel` that in
`w`. So each rule is one of the other two primitives, at every order.

Arrays are ``x[batch, channels, *space]``, ``w[outputs, channels / groups, *kernel]`` and
``y[batch, outputs, *places]``; `padding` is ``((low, high), ...)``, and zeros are around `x`. The
arithmetic is in `funcgrad.rules.nn.lowering`, the functions for users in `funcgrad.nn.conv`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.core.batch import count_examples
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.families import linear, multilinear
from funcgrad.rules.nn import layout, lowering
from funcgrad.rules.nn.lowering import output_size

__all__ = ["as_floats", "conv", "conv_input", "conv_kernel", "laid_out", "output_size"]


def as_floats(x: Any) -> Any:
    """Make an array of a list, and float64 of integers."""
    if not hasattr(x, "dtype"):
        x = np.asarray(x)
    return x.astype(np.float64) if dtype_of(x).kind in "biu" else x


def both_floats(args, params):
    """Canonical form: two arrays of floating or complex numbers."""
    a, b = args
    return (as_floats(a), as_floats(b)), params


@primitive(multilinear, canonical=both_floats)
def conv(x, w, *, stride, padding, dilation, groups):
    """The form's derivative in `y`: a convolution (a correlation, as signal processing says)."""
    return lowering.correlate(
        x, w, stride=stride, padding=padding, dilation=dilation, groups=groups
    )


@primitive(multilinear, canonical=both_floats)
def conv_input(y, w, *, size, stride, padding, dilation, groups):
    """The form's derivative in `x`, which has `size` elements along the axes of space."""
    return lowering.scatter(
        y, w, size=size, stride=stride, padding=padding, dilation=dilation, groups=groups
    )


@primitive(multilinear, canonical=both_floats)
def conv_kernel(x, y, *, kernel, stride, padding, dilation, groups):
    """The form's derivative in `w`, of which each window has `kernel` elements."""
    return lowering.kernel_sum(
        x, y, kernel=kernel, stride=stride, padding=padding, dilation=dilation, groups=groups
    )


# The order in memory

# Fewer elements are laid out in less time than it takes to ask for it.
_FEW = 1 << 14


@primitive(linear, may_alias=True)
def in_order(x, *, axes):
    """Return `x` with its axes in memory in this order, the slowest first: itself, if they are."""
    return layout.in_order(x, axes)


@in_order.def_vjp
def in_order_vjp(primals, out, *, axes):
    def in_order_pullback(out_bar):
        return out_bar

    return in_order_pullback


@in_order.def_batch
def in_order_batch(args, batched, *, axes):
    # The examples beside the batch, which they are going to join.
    at = axes.index(0)
    axes = tuple(axis + 1 for axis in axes)
    return in_order.bind(*args, axes=(*axes[:at], 0, *axes[at:]))


@in_order.def_samples
def in_order_samples(rng):
    x = rng.normal(size=(2, 3, 2, 4))
    yield Sample(x, axes=(1, 2, 3, 0), fun=in_order)
    yield Sample(x, axes=(2, 3, 0, 1), fun=in_order)
    yield Sample(x[:0, :1], axes=(3, 1, 0, 2), fun=in_order)


def laid_out(x: Any, w: Any, **params: Any) -> Any:
    """Lay images out as their convolution with `w` wants them, if that costs more than asking.

    Once for the value and for the gradient of the kernel, which would each do it for itself.
    """
    shape = shape_of(x)
    if math.prod(shape) < _FEW:
        return x
    dtype, _ = lowering.working_dtype(x, w)
    axes = lowering.best_order(shape, shape_of(w), dtype, **params)
    return in_order.bind(x, axes=axes)


# Derivatives


@conv.def_vjp
def conv_vjp(primals, out, **params):
    x, w = primals
    size, kernel = shape_of(x)[2:], shape_of(w)[2:]

    def conv_pullback_x(y):
        return conv_input.bind(y, w, size=size, **params)

    def conv_pullback_w(y):
        return conv_kernel.bind(x, y, kernel=kernel, **params)

    return conv_pullback_x, conv_pullback_w


@conv_input.def_vjp
def conv_input_vjp(primals, out, *, size, **params):
    y, w = primals
    kernel = shape_of(w)[2:]

    def conv_input_pullback_y(x):
        return conv.bind(x, w, **params)

    def conv_input_pullback_w(x):
        return conv_kernel.bind(x, y, kernel=kernel, **params)

    return conv_input_pullback_y, conv_input_pullback_w


@conv_kernel.def_vjp
def conv_kernel_vjp(primals, out, *, kernel, **params):
    x, y = primals
    size = shape_of(x)[2:]

    def conv_kernel_pullback_x(w):
        return conv_input.bind(y, w, size=size, **params)

    def conv_kernel_pullback_y(w):
        return conv.bind(x, w, **params)

    return conv_kernel_pullback_x, conv_kernel_pullback_y


# Many examples: those of images join the batch, those of kernels the channels or the outputs. If
# both arguments of a product come from examples, each example is a group of its own.


def _into_batch(x):
    """Put the examples of images into their batch."""
    shape = shape_of(x)
    return np.reshape(x, (shape[0] * shape[1], *shape[2:]))


def _out_of_batch(x, size):
    """Undo `_into_batch`."""
    shape = shape_of(x)
    return np.reshape(x, (size, shape[0] // size, *shape[1:]))


def _into_axis(x, axis, groups=1):
    """Put the examples into an axis (as one example counts it), inside of its groups."""
    shape = list(shape_of(x))
    size, *rest = shape
    x = np.reshape(x, (size, *rest[:axis], groups, rest[axis] // groups, *rest[axis + 1 :]))
    x = np.moveaxis(x, 0, axis + 1)
    return np.reshape(x, (*rest[:axis], size * rest[axis], *rest[axis + 1 :]))


def _out_of_axis(x, axis, size, groups=1):
    """Undo `_into_axis`."""
    shape = shape_of(x)
    own = shape[axis] // size
    x = np.reshape(x, (*shape[:axis], groups, size, own // groups, *shape[axis + 1 :]))
    x = np.moveaxis(x, axis + 1, 0)
    return np.reshape(x, (size, *shape[:axis], own, *shape[axis + 1 :]))


def _for_some(rule):
    """Make a batching rule for at least one example one for any number."""

    def conv_batch(args, batched, **params):
        if count_examples(args, batched):
            return rule(args, batched, **params)
        one = [
            np.ones((1, *shape_of(x)[1:]), dtype_of(x)) if own else x
            for x, own in zip(args, batched, strict=True)
        ]
        return rule(one, batched, **params)[:0]

    return conv_batch


@conv.def_batch
@_for_some
def conv_batch(args, batched, *, groups, **params):
    x, w = args
    size = count_examples(args, batched)
    if not batched[1]:
        return _out_of_batch(conv.bind(_into_batch(x), w, groups=groups, **params), size)
    if batched[0]:
        y = conv.bind(_into_axis(x, 1), _into_axis(w, 0), groups=size * groups, **params)
        return _out_of_axis(y, 1, size)
    y = conv.bind(x, _into_axis(w, 0, groups), groups=groups, **params)
    return _out_of_axis(y, 1, size, groups)


@conv_input.def_batch
@_for_some
def conv_input_batch(args, batched, *, groups, **params):
    y, w = args
    size = count_examples(args, batched)
    if not batched[1]:
        return _out_of_batch(conv_input.bind(_into_batch(y), w, groups=groups, **params), size)
    if batched[0]:
        x = conv_input.bind(_into_axis(y, 1), _into_axis(w, 0), groups=size * groups, **params)
        return _out_of_axis(x, 1, size)
    x = conv_input.bind(y, _into_axis(w, 1), groups=groups, **params)
    return _out_of_axis(x, 1, size, groups)


@conv_kernel.def_batch
@_for_some
def conv_kernel_batch(args, batched, *, groups, **params):
    x, y = args
    size = count_examples(args, batched)
    if not batched[1]:
        w = conv_kernel.bind(_into_axis(x, 1, groups), y, groups=groups, **params)
        return _out_of_axis(w, 1, size)
    if batched[0]:
        w = conv_kernel.bind(_into_axis(x, 1), _into_axis(y, 1), groups=size * groups, **params)
        return _out_of_axis(w, 0, size)
    w = conv_kernel.bind(x, _into_axis(y, 1, groups), groups=groups, **params)
    return _out_of_axis(w, 0, size, groups)


# Samples

# (batch, channels), space, (outputs, channels / groups), kernel, stride, padding, dilation, groups
_CASES: tuple[Any, ...] = (
    ((2, 2), (5,), (3, 2), (2,), (1,), ((0, 0),), (1,), 1),
    ((2, 4), (6,), (4, 2), (3,), (2,), ((1, 2),), (1,), 2),
    ((2, 2), (4, 5), (3, 2), (2, 3), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    ((1, 2), (4, 5), (2, 2), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
    ((2, 2), (5, 6), (4, 1), (2, 2), (2, 3), ((1, 0), (2, 1)), (2, 1), 2),
    ((2, 2), (3, 3), (2, 2), (1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    ((1, 3), (3, 3), (3, 1), (2, 2), (1, 1), ((2, 2), (0, 0)), (1, 1), 3),
    ((1, 2), (3, 4, 3), (2, 2), (2, 2, 1), (1, 2, 1), ((0, 0), (1, 0), (0, 0)), (1, 1, 2), 1),
    ((0, 2), (3, 3), (2, 2), (2, 2), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
)


def _samples(rng: Any) -> Any:
    for images, space, weights, kernel, stride, padding, dilation, groups in _CASES:
        places = output_size(space, kernel, stride, padding, dilation)
        x = rng.normal(size=(*images, *space))
        w = rng.normal(size=(*weights, *kernel))
        y = rng.normal(size=(images[0], weights[0], *places))
        params = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        yield x, w, y, params


@conv.def_samples
def conv_samples(rng):
    for x, w, _, params in _samples(rng):
        yield Sample(x, w, fun=conv, **params)


@conv_input.def_samples
def conv_input_samples(rng):
    for x, w, y, params in _samples(rng):
        yield Sample(y, w, fun=conv_input, size=x.shape[2:], **params)
    # Many outputs for one input: the windows are gathered, elsewhere they are scattered.
    y, w = rng.normal(size=(1, 1, 4, 5)), rng.normal(size=(1, 6, 2, 3))
    params = {"stride": (1, 1), "dilation": (1, 1), "groups": 1}
    yield Sample(y, w, fun=conv_input, size=(5, 7), padding=((0, 0), (0, 0)), **params)
    yield Sample(y, w, fun=conv_input, size=(1, 3), padding=((2, 2), (3, 1)), **params)


@conv_kernel.def_samples
def conv_kernel_samples(rng):
    for x, w, y, params in _samples(rng):
        yield Sample(x, y, fun=conv_kernel, kernel=w.shape[2:], **params)
