"""`affine`, what a layer of matrices does: one primitive for the product and the constant.

A small model spends more time between its operations than in them. As one operation a layer keeps
no transposed weight and no product without its constant, and pulls back with two products of
matrices. A batch of any number of axes is one product of matrices.
"""

from __future__ import annotations

from math import prod

import numpy as np

from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import shape_of
from funcgrad.rules.matmul import rows, rows_times, solid

__all__ = ["affine"]


@primitive()
def affine(x, weight, bias):
    """``x @ weight.T + bias``, for `x` of shape (..., inputs); all of one dtype."""
    out = rows_times(x, weight.T)
    return np.add(out, bias, out=out) if type(out) is np.ndarray else out + bias


@affine.def_jvp
def affine_jvp(primals, tangents, out):
    x, weight, _ = primals
    x_dot, weight_dot, bias_dot = tangents
    total = 0
    if x_dot is not None:
        total = rows_times(x_dot, weight.T)
    if weight_dot is not None:
        total = total + rows_times(x, weight_dot.T)
    if bias_dot is None:
        return total
    return total + (bias_dot if len(shape_of(x)) == 1 else np.broadcast_to(bias_dot, shape_of(out)))


@affine.def_vjp
def affine_vjp(primals, out):
    x, weight, _ = primals

    def affine_pullback_x(out_bar):
        return rows_times(solid(out_bar), weight)

    def affine_pullback_weight(out_bar):
        return np.matmul(rows(solid(out_bar)).T, rows(x))

    def affine_pullback_bias(out_bar):
        ndim = len(shape_of(out_bar))
        return out_bar if ndim == 1 else np.sum(out_bar, axis=tuple(range(ndim - 1)))

    return affine_pullback_x, affine_pullback_weight, affine_pullback_bias


@affine.def_batch
def affine_batch(args, batched):
    x, weight, bias = args
    x_batched, weight_batched, bias_batched = batched
    if not weight_batched and not bias_batched:
        return affine.bind(x, weight, bias)
    lead = shape_of(x)[x_batched:-1]  # of one example
    if weight_batched:
        # All axes before the last in one: a product of matrices for each example.
        matrix = np.reshape(x, (*shape_of(x)[:x_batched], prod(lead), shape_of(x)[-1]))
        out = np.matmul(matrix, np.swapaxes(weight, -1, -2))
        out = np.reshape(out, (shape_of(out)[0], *lead, shape_of(out)[-1]))
    else:
        out = np.matmul(x, weight.T)
        out = out if x_batched else np.expand_dims(out, 0)
    if bias_batched:
        count, size = shape_of(bias)
        bias = np.reshape(bias, (count, *(1,) * len(lead), size))
    return out + bias


@affine.def_samples
def affine_samples(rng):
    def draw(*shape):
        return rng.normal(size=shape)

    weight, bias = draw(3, 2), draw(3)
    yield Sample(draw(2), weight, bias, fun=affine, complex=False)
    yield Sample(draw(4, 2), weight, bias, fun=affine, complex=False)
    yield Sample(draw(2, 4, 2), weight, bias, fun=affine, complex=False)
    yield Sample(draw(0, 2), weight, bias, fun=affine, complex=False)
    yield Sample(draw(4, 0), draw(3, 0), bias, fun=affine, complex=False)
