"""Shaping: the same elements in another shape or order of axes.

All linear, so the tangent is shaped likewise; and the cotangent is shaped back, for which a rule
keeps no more than the old shape. Results are views wherever NumPy's are (`may_alias`), and so are
refused by assignment. A permutation of axes, however NumPy spells it, is a `transpose`.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from funcgrad.core.batch import shift, try_one
from funcgrad.core.primitive import Sample, overrides, primitive
from funcgrad.core.zero import shape_of
from funcgrad.rules.casting import same
from funcgrad.rules.families import linear
from funcgrad.rules.spelling import array_of, axis_order, order_a, prototype, stand_in

__all__: list[str] = []


# Shape


def reshape_args(args, params):
    """Say C or F where NumPy looks at the memory of the array."""
    if params["order"] == "A":
        params["order"] = order_a(args[0])
    return args, params


@primitive(linear, overrides=np.reshape, canonical=reshape_args, may_alias=True)
def reshape(a, *, shape, order="C", copy=None):
    """Give an array a new shape."""
    if copy is None:
        return np.reshape(a, shape, order)
    return np.reshape(a, shape, order, copy=copy)


@reshape.def_vjp
def reshape_vjp(primals, out, *, shape, order, copy):
    (a,) = primals
    old = shape_of(a)

    def reshape_pullback(out_bar):
        return np.reshape(out_bar, old, order)

    return reshape_pullback


@reshape.def_batch
def reshape_batch(args, batched, *, shape, order, copy):
    (a,) = args
    size, *old = shape_of(a)
    new = _completed(tuple(old), shape)
    if order == "F":  # as in C order with all axes reversed, but for the first
        a = np.reshape(_reversed_axes(a), (size, *new[::-1]))
        return _reversed_axes(a)
    return reshape.bind(a, shape=(size, *new), order="C", copy=copy)


def _completed(old: tuple[int, ...], shape: Any) -> tuple[int, ...]:
    """Return the new shape with -1 worked out; raise as NumPy does if it does not fit."""
    new = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
    count = math.prod(old)
    known = math.prod(n for n in new if n != -1)
    if -1 in new and known and count % known == 0:
        return tuple(count // known if n == -1 else n for n in new)
    if new.count(-1) or known != count:
        np.reshape(stand_in(old), new)  # raises
    return new


def _reversed_axes(a: Any) -> Any:
    """Reverse the order of all axes but the first."""
    return np.transpose(a, (0, *range(len(shape_of(a)) - 1, 0, -1)))


@reshape.def_samples
def reshape_samples(rng):
    x = rng.normal(size=(2, 3, 4))
    yield Sample(x, (4, -1))
    yield Sample(x, (3, 8), order="F")
    yield Sample(x[0, 0], (2, 2), order="F")
    yield Sample(x, 24)
    yield Sample(x, shape=(1, 24, 1))
    yield Sample(rng.normal(size=(0, 3)), (3, 0, 2))
    yield Sample(np.float64(1.5), (1, 1))
    yield Sample(rng.normal(size=(1, 1)), ())


def ravel_args(args, params):
    """Say C or F, of axes in their order in memory for ``"K"``."""
    (a,) = args
    order = params["order"]
    if order == "A":
        return args, {"order": order_a(a)}
    if order == "K":
        return (np.transpose(a, _memory_order(prototype(a))),), {"order": "C"}
    return args, params


@primitive(linear, overrides=np.ravel, canonical=ravel_args, may_alias=True)
def ravel(a, *, order="C"):
    """Give an array one axis."""
    return np.ravel(a, order)


@ravel.def_vjp
def ravel_vjp(primals, out, *, order):
    (a,) = primals
    shape = shape_of(a)

    def ravel_pullback(out_bar):
        return np.reshape(out_bar, shape, order)

    return ravel_pullback


@ravel.def_batch
def ravel_batch(args, batched, *, order):
    return reshape_batch(args, batched, shape=(-1,), order=order, copy=None)


def _memory_order(value: Any) -> tuple[int, ...]:
    """Return the axes from the longest stride to the shortest, as NumPy orders them for ``"K"``.

    An axis that is stretched from one element has no stride, and keeps its place.
    """
    shape = shape_of(value)
    if not hasattr(value, "strides"):  # not an array in memory
        return tuple(range(len(shape)))
    # An axis of one element has a stride of no meaning.
    steps = [abs(step) if n != 1 else 0 for step, n in zip(value.strides, shape, strict=True)]
    order: list[int] = []  # from the inside out
    for axis in reversed(range(len(shape))):
        place = len(order)
        for position in reversed(range(len(order))):
            inner = steps[order[position]]
            if steps[axis] and inner:
                if inner <= steps[axis]:
                    break
                place = position
        order.insert(place, axis)
    return tuple(reversed(order))


@ravel.def_samples
def ravel_samples(rng):
    x = rng.normal(size=(2, 3, 4))
    yield Sample(x)
    yield Sample(x, "F")
    yield Sample(x[0, 0], order="K")  # of several axes, these go by the layout in memory
    yield Sample(x[0, 0], order="A")
    yield Sample(np.float64(1.5))
    yield Sample(rng.normal(size=(0, 3)))


@primitive(linear, overrides=np.squeeze, may_alias=True)
def squeeze(a, *, axis=None):
    """Remove axes of size one."""
    return np.squeeze(a, axis)


@squeeze.def_vjp
def squeeze_vjp(primals, out, *, axis):
    return _reshape_back(primals)


@squeeze.def_batch
def squeeze_batch(args, batched, *, axis):
    (a,) = args
    _, *shape = shape_of(a)
    if axis is None:
        axis = tuple(i for i, n in enumerate(shape) if n == 1)
    if not shape:
        try_one(squeeze, args, batched, {"axis": axis})
    return squeeze.bind(a, axis=shift(axis, len(shape)) if shape else ())


@squeeze.def_samples
def squeeze_samples(rng):
    x = rng.normal(size=(1, 3, 1))
    yield Sample(x)
    yield Sample(x, axis=-1)
    yield Sample(x, (0, 2))
    yield Sample(rng.normal(size=(1, 1)))
    yield Sample(rng.normal(size=(1, 0)))
    yield Sample(np.float64(1.5))


@primitive(linear, overrides=np.expand_dims, may_alias=True)
def expand_dims(a, *, axis):
    """Insert axes of size one."""
    return np.expand_dims(a, axis)


@expand_dims.def_vjp
def expand_dims_vjp(primals, out, *, axis):
    return _reshape_back(primals)


@expand_dims.def_batch
def expand_dims_batch(args, batched, *, axis):
    (a,) = args
    added = len(axis) if isinstance(axis, list | tuple) else 1
    axis = tuple(axis) if isinstance(axis, list | tuple) else operator.index(axis)
    return expand_dims.bind(a, axis=shift(axis, len(shape_of(a)) - 1 + added))


@expand_dims.def_samples
def expand_dims_samples(rng):
    x = rng.normal(size=(2, 3))
    yield Sample(x, 0)
    yield Sample(x, axis=-1)
    yield Sample(x, axis=(0, -2))
    yield Sample(np.float64(1.5), 0)


def _reshape_back(primals):
    (a,) = primals
    shape = shape_of(a)

    def pullback(out_bar):
        return np.reshape(out_bar, shape)

    return pullback


def _at_least(arrays: tuple[Any, ...], widen: Any) -> Any:
    made = tuple(widen(array_of(array)) for array in arrays)
    return made[0] if len(made) == 1 else made


def _as_1d(a: Any) -> Any:
    # An array that is wide enough is returned itself, as NumPy does; so is a tracer.
    return a if shape_of(a) else np.reshape(a, 1)


def _as_2d(a: Any) -> Any:
    ndim = len(shape_of(a))
    return a if ndim > 1 else np.expand_dims(a, 0) if ndim else np.reshape(a, (1, 1))


def _as_3d(a: Any) -> Any:
    ndim = len(shape_of(a))
    if ndim > 2:
        return a
    return np.reshape(a, (1, 1, 1)) if not ndim else np.expand_dims(a, (0, 2) if ndim == 1 else 2)


@overrides(np.atleast_1d)
def atleast_1d(*arys):
    """Give scalars one axis."""
    return _at_least(arys, _as_1d)


@overrides(np.atleast_2d)
def atleast_2d(*arys):
    """Put axes in front until there are two."""
    return _at_least(arys, _as_2d)


@overrides(np.atleast_3d)
def atleast_3d(*arys):
    """Put axes around until there are three."""
    return _at_least(arys, _as_3d)


@atleast_1d.def_samples
@atleast_2d.def_samples
@atleast_3d.def_samples
def atleast_samples(rng):
    yield Sample(np.float64(1.5))
    yield Sample(rng.normal(size=3))
    yield Sample(rng.normal(size=(2, 3)))
    yield Sample(rng.normal(size=(2, 3, 2)))
    yield Sample(np.float64(1.5), rng.normal(size=3), [1.0, 2.0])


# Order of axes


@primitive(linear, overrides=np.transpose, may_alias=True)
def transpose(a, *, axes=None):
    """Permute the axes of an array."""
    return np.transpose(a, axes)


@transpose.def_vjp
def transpose_vjp(primals, out, *, axes):
    if axes is None:
        inverse = None
    else:
        axes = (axes,) if isinstance(axes, int) else axes
        inverse = [0] * len(axes)
        for place, axis in enumerate(axes):
            inverse[axis] = place

    def transpose_pullback(out_bar):
        return np.transpose(out_bar, inverse)

    return transpose_pullback


@transpose.def_batch
def transpose_batch(args, batched, *, axes):
    (a,) = args
    ndim = len(shape_of(a)) - 1
    if axes is None:
        return _reversed_axes(a)
    axes = (axes,) if isinstance(axes, int) else tuple(axes)
    if len(axes) != ndim:
        raise ValueError("axes don't match array")
    return transpose.bind(a, axes=(0, *shift(axes, ndim)))


@transpose.def_samples
def transpose_samples(rng):
    x = rng.normal(size=(2, 3, 4))
    yield Sample(x)
    yield Sample(x, (1, 2, 0))
    yield Sample(x, axes=(-1, 0, -2))
    yield Sample(rng.normal(size=(0, 2)))
    yield Sample(np.float64(1.5))


def _permuted(a: Any, rearrange: Any, *args: Any) -> Any:
    return transpose.bind(a, axes=axis_order(rearrange, len(shape_of(a)), *args))


@overrides(np.swapaxes)
def swapaxes(a, axis1, axis2):
    """Exchange two axes."""
    return _permuted(a, np.swapaxes, axis1, axis2)


@swapaxes.def_samples
def swapaxes_samples(rng):
    yield Sample(rng.normal(size=(2, 3, 4)), 0, -1)
    yield Sample(rng.normal(size=(2, 3)), 1, 1)


@overrides(np.moveaxis)
def moveaxis(a, source, destination):
    """Move axes to other places."""
    return _permuted(a, np.moveaxis, source, destination)


@moveaxis.def_samples
def moveaxis_samples(rng):
    yield Sample(rng.normal(size=(2, 3, 4)), 0, -1)
    yield Sample(rng.normal(size=(2, 3, 4, 2)), (0, -1), (2, 0))


@overrides(np.rollaxis)
def rollaxis(a, axis, start=0):
    """Move one axis back until it lies at `start`."""
    return _permuted(a, np.rollaxis, axis, start)


@rollaxis.def_samples
def rollaxis_samples(rng):
    yield Sample(rng.normal(size=(2, 3, 4)), 2)
    yield Sample(rng.normal(size=(2, 3, 4)), 0, 3)


@overrides(np.matrix_transpose)
def matrix_transpose(x, /):
    """Exchange the last two axes."""
    return _permuted(x, np.matrix_transpose)


@matrix_transpose.def_samples
def matrix_transpose_samples(rng):
    yield Sample(rng.normal(size=(2, 3)))
    yield Sample(rng.normal(size=(2, 3, 4)))


# Broadcasting


@primitive(linear, overrides=np.broadcast_to, may_alias=True)
def broadcast_to(array, *, shape, subok=False):
    """Stretch axes of size one, and add leading ones, to a given shape."""
    return np.broadcast_to(array, shape)


@broadcast_to.def_vjp
def broadcast_to_vjp(primals, out, *, shape, subok):
    return same


@broadcast_to.def_batch
def broadcast_to_batch(args, batched, *, shape, subok):
    (array,) = args
    size, *old = shape_of(array)
    new = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
    if len(old) > len(new):
        np.broadcast_to(stand_in(tuple(old)), new)  # raises
    array = np.reshape(array, (size, *(1,) * (len(new) - len(old)), *old))
    return broadcast_to.bind(array, shape=(size, *new), subok=subok)


@broadcast_to.def_samples
def broadcast_to_samples(rng):
    yield Sample(rng.normal(size=(3, 1)), (2, 3, 4))
    yield Sample(rng.normal(size=3), shape=(3,))
    yield Sample(rng.normal(size=(1, 3)), (0, 3))
    yield Sample(np.float64(1.5), (2, 2))
    yield Sample(rng.normal(size=1), 3)


@overrides(np.broadcast_arrays)
def broadcast_arrays(*args, subok=False):
    """Stretch arrays to their common shape."""
    arrays = [array_of(arg) for arg in args]
    shape = np.broadcast_shapes(*map(shape_of, arrays))
    return tuple(a if shape_of(a) == shape else np.broadcast_to(a, shape) for a in arrays)


@broadcast_arrays.def_samples
def broadcast_arrays_samples(rng):
    yield Sample(rng.normal(size=(3, 1)), rng.normal(size=4), np.float64(0.5))
    yield Sample(rng.normal(size=3), rng.normal(size=3))
    yield Sample(rng.normal(size=(0, 1)), rng.normal(size=(1, 2)))
