"""Taking elements along an axis: `numpy.take` and `numpy.take_along_axis`."""

from __future__ import annotations

import numpy as np

from funcgrad.core.primitive import Sample, overrides, primitive
from funcgrad.core.zero import shape_of
from funcgrad.rules.families import linear
from funcgrad.rules.indexing import refuse_traced, scatter_add

__all__: list[str] = []


def _take_args(args, params):
    indices = params["indices"]
    refuse_traced(indices)
    if not isinstance(indices, int):
        indices = np.array(indices)
        params["indices"] = (indices.astype(np.intp) if indices.dtype.kind == "b" else indices)[()]
    return args, params


@primitive(linear, overrides=(np.take,), canonical=_take_args)
def take(a, *, indices, axis=None, out=None, mode="raise"):
    """Elements of `a` along `axis`, or of the flattened array."""
    return np.take(a, indices, axis=axis, mode=mode)


@take.def_vjp
def take_vjp(primals, out, *, indices, axis, mode):
    shape = shape_of(primals[0])

    def take_pullback(out_bar):
        whole = shape if axis is not None else (int(np.prod(shape, dtype=np.intp)),)
        before = 0 if axis is None else axis % len(shape)
        size = whole[before]
        index = indices
        if mode == "clip":
            index = np.clip(index, 0, size - 1)
        elif mode == "wrap" and size:
            index = index % size
        x_bar = scatter_add.bind(out_bar, shape=whole, index=(slice(None),) * before + (index,))
        return np.reshape(x_bar, shape)

    return take_pullback


@take.def_samples
def take_samples(rng):
    x = rng.normal(size=(3, 4))
    yield Sample(x, 5)
    yield Sample(x, [0, -1, 0])
    yield Sample(x, [[0, 11], [3, 3]])
    yield Sample(x, 1, axis=0)
    yield Sample(x, np.array([2, 2, 0]), 1)
    yield Sample(x, np.array([[2], [0]]), axis=-1)
    yield Sample(x, [-1, 7, 2], 1, mode="clip")
    yield Sample(x, [-1, 7, 2], 0, mode="wrap")
    yield Sample(x, np.array([], int), axis=0)
    yield Sample(rng.normal(size=(0, 2)), [1, 1], axis=1)
    yield Sample(rng.normal(size=()), 0)


@overrides(np.take_along_axis)
def take_along_axis(arr, indices, axis=-1):
    """Elements of `arr` along `axis`, by an array of indices beside it."""
    index, flat = _along_axis(shape_of(arr), indices, axis)
    return (np.ravel(arr) if flat else arr)[index]


def _along_axis(shape, indices, axis):
    """Return the index that `indices` stand for, and whether it is one of the flat array."""
    indices = np.asarray(indices)
    flat = axis is None
    if flat:
        if indices.ndim != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        shape, axis = (int(np.prod(shape, dtype=np.intp)),), 0
    else:
        axis = np.lib.array_utils.normalize_axis_index(axis, len(shape))
    if indices.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if len(shape) != indices.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    index = [
        indices
        if other == axis
        else np.arange(size).reshape((1,) * other + (-1,) + (1,) * (len(shape) - other - 1))
        for other, size in enumerate(shape)
    ]
    return tuple(index), flat


@take_along_axis.def_samples
def take_along_axis_samples(rng):
    x = rng.normal(size=(3, 4))
    yield Sample(x, np.array([[0, 0], [3, 1], [-1, 2]]), 1)
    yield Sample(x, np.array([[0, 2, 2, 1]]), axis=0)
    yield Sample(x, np.array([[1]]), axis=-2)
    yield Sample(x, np.array([11, 0, 0]), axis=None)
    yield Sample(x, np.zeros((3, 0), int), axis=1)
