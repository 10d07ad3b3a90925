"""Standardising: to mean 0 and variance 1, which every normalisation layer is made of.

One primitive, since its parts would be eight operations forward and some twenty backward, where
the rules below, of the result alone, take four passes over the data.
"""

from __future__ import annotations

import numpy as np

from funcgrad.core.batch import along
from funcgrad.core.primitive import Sample, primitive
from funcgrad.rules.nn.softmax import along_axes

__all__ = ["root_mean_square", "standardize"]


@primitive(canonical=along_axes)
def standardize(x, *, axis=-1, eps=0.0):
    """``(x - mean) / sqrt(variance + eps)`` over `axis`, and 1 over this root, one for each slice.

    The variance is computed from the differences to the mean: it is as exact where the mean is
    large.
    """
    centred = x - np.mean(x, axis=axis, keepdims=True)
    variance = np.mean(np.square(centred), axis=axis, keepdims=True)
    inverse = 1 / np.sqrt(variance + eps)
    return np.multiply(centred, inverse, out=centred), inverse


@standardize.def_jvp
def standardize_jvp(primals, tangents, out, *, axis, eps):
    (x_dot,) = tangents
    normal, inverse = out
    along_normal = np.mean(normal * x_dot, axis=axis, keepdims=True)
    moved = x_dot - np.mean(x_dot, axis=axis, keepdims=True) - normal * along_normal
    return moved * inverse, -np.square(inverse) * along_normal


@standardize.def_vjp
def standardize_vjp(primals, out, *, axis, eps):
    normal, inverse = out

    def standardize_pullback(out_bar):
        normal_bar, inverse_bar = out_bar
        x_bar = None
        if normal_bar is not None:
            along_normal = np.mean(normal * normal_bar, axis=axis, keepdims=True)
            x_bar = normal_bar - np.mean(normal_bar, axis=axis, keepdims=True)
            x_bar = (x_bar - normal * along_normal) * inverse
        return _with_inverse(x_bar, normal, inverse, inverse_bar)

    return standardize_pullback


def _with_inverse(x_bar, normal, inverse, inverse_bar):
    """Add what comes back through the root that was divided by."""
    if inverse_bar is None:
        return x_bar
    count = normal.size / max(inverse.size, 1)
    part = normal * (-np.square(inverse) * inverse_bar / max(count, 1))
    return part if x_bar is None else x_bar + part


along(standardize)


@standardize.def_samples
def standardize_samples(rng):
    def draw(*shape):
        return rng.normal(size=shape)

    yield Sample(draw(3, 4), fun=standardize, complex=False, eps=0.1)
    yield Sample(draw(3, 4), fun=standardize, complex=False, axis=0)
    yield Sample(draw(2, 3, 4), fun=standardize, complex=False, axis=(0, 2), eps=1e-5)
    yield Sample(draw(5), fun=standardize, complex=False, axis=None)
    yield Sample(draw(0, 4), fun=standardize, complex=False, eps=0.1)


@primitive(canonical=along_axes)
def root_mean_square(x, *, axis=-1, eps=0.0):
    """``x / sqrt(mean of x**2 + eps)`` over `axis`, and 1 over this root, of one element there."""
    inverse = 1 / np.sqrt(np.mean(np.square(x), axis=axis, keepdims=True) + eps)
    return x * inverse, inverse


@root_mean_square.def_jvp
def root_mean_square_jvp(primals, tangents, out, *, axis, eps):
    (x_dot,) = tangents
    normal, inverse = out
    along_normal = np.mean(normal * x_dot, axis=axis, keepdims=True)
    return (x_dot - normal * along_normal) * inverse, -np.square(inverse) * along_normal


@root_mean_square.def_vjp
def root_mean_square_vjp(primals, out, *, axis, eps):
    normal, inverse = out

    def root_mean_square_pullback(out_bar):
        normal_bar, inverse_bar = out_bar
        x_bar = None
        if normal_bar is not None:
            along_normal = np.mean(normal * normal_bar, axis=axis, keepdims=True)
            x_bar = (normal_bar - normal * along_normal) * inverse
        return _with_inverse(x_bar, normal, inverse, inverse_bar)

    return root_mean_square_pullback


along(root_mean_square)


@root_mean_square.def_samples
def root_mean_square_samples(rng):
    def draw(*shape):
        return rng.normal(size=shape)

    yield Sample(draw(3, 4), fun=root_mean_square, complex=False, eps=0.1)
    yield Sample(draw(3, 4), fun=root_mean_square, complex=False, axis=0)
    yield Sample(draw(2, 3, 4), fun=root_mean_square, complex=False, axis=(0, 2), eps=1e-5)
    yield Sample(draw(0, 4), fun=root_mean_square, complex=False, eps=0.1)
