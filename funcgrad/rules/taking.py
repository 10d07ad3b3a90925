"""Taking elements along an axis: `numpy.take` and `numpy.take_along_axis`."""

from __future__ import annotations

import math

import numpy as np

from funcgrad.core.batch import shift
from funcgrad.core.level import TracerBase, detached
from funcgrad.core.primitive import Sample, overrides, primitive, store
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.families import linear
from funcgrad.rules.gathering import read_at
from funcgrad.rules.indexing import refuse_traced, scatter_add
from funcgrad.rules.spelling import array_of, holds_tracer, joined

__all__: list[str] = []


def _take_args(args, params):
    indices = params["indices"]
    refuse_traced(indices)
    if not isinstance(indices, int):
        indices = np.array(indices)
        params["indices"] = (indices.astype(np.intp) if indices.dtype.kind == "b" else indices)[()]
    return args, params


@primitive(linear, canonical=_take_args)
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


@take.def_batch
def take_batch(args, batched, *, indices, axis, mode):
    (a,) = args
    size, *shape = shape_of(a)
    if axis is None:
        a, axis = np.reshape(a, (size, math.prod(shape))), 1
    else:
        axis = shift(axis, len(shape))
    return take.bind(a, indices=indices, axis=axis, mode=mode)


@take.def_call(np.take)
def traced_take(a, indices, axis=None, out=None, mode="raise"):
    """Take by indices that may be traced, as they are where they differ between examples."""
    if not holds_tracer(indices) or dtype_of(joined(indices)).kind not in "iu":
        return take(a, indices, axis, out, mode)
    a, indices = array_of(a), joined(indices)
    shape = shape_of(a)
    if axis is None:
        a, shape, axis = np.reshape(a, (math.prod(shape),)), (math.prod(shape),), 0
    axis = shift(axis, len(shape)) - 1
    if mode == "clip":
        indices = np.clip(indices, 0, shape[axis] - 1)
    elif mode == "wrap":
        indices = np.remainder(indices, shape[axis])
    taken = read_at(a, (slice(None),) * axis + (indices,))
    return taken if out is None else store(taken, out)


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
    if flat:
        arr = np.ravel(arr)
    return read_at(arr, index) if holds_tracer(index) else arr[index]


def _along_axis(shape, indices, axis):
    """Return the index that `indices` stand for, and whether it is one of the flat array."""
    indices = detached(joined(indices))
    if not isinstance(indices, TracerBase):
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
