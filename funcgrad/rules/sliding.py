"""Windows that slide over an array: `sliding_window_view`, and its mirror image.

A view holds each element as often as there are windows over it. Its transpose adds all of these up
again: `overlap_add`, as it is known in signal processing. Either is the derivative of the other.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.lib.stride_tricks import sliding_window_view

from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.families import linear
from funcgrad.rules.spelling import array_of

__all__: list[str] = []


@primitive(linear, name="sliding_window_view", may_alias=True)
def windows(x, *, window_shape, axis):
    """All windows of `window_shape` along the axes `axis`; their own axes come last."""
    return sliding_window_view(x, window_shape, axis)


@windows.def_vjp
def windows_vjp(primals, out, *, window_shape, axis):
    shape = shape_of(primals[0])

    def windows_pullback(out_bar):
        return overlap_add.bind(out_bar, shape=shape, window_shape=window_shape, axis=axis)

    return windows_pullback


@windows.def_batch
def windows_batch(args, batched, *, window_shape, axis):
    return windows.bind(*args, window_shape=window_shape, axis=tuple(i + 1 for i in axis))


@windows.def_call(sliding_window_view)
def _traced_windows(x, window_shape, axis=None, *, subok=False, writeable=False):
    """`sliding_window_view`."""
    x = array_of(x)
    ndim = len(shape_of(x))
    window_shape = tuple(window_shape) if np.iterable(window_shape) else (window_shape,)
    if any(size < 0 for size in window_shape):
        raise ValueError("`window_shape` cannot contain negative values")
    given = f"got {len(window_shape)} window_shape elements and"
    if axis is None:
        axes = tuple(range(ndim))
        if len(window_shape) != ndim:
            raise ValueError(
                "Since axis is `None`, must provide window_shape for all dimensions of `x`; "
                f"{given} `x.ndim` is {ndim}."
            )
    else:
        axes = normalize_axis_tuple(axis, ndim, allow_duplicate=True)
        if len(window_shape) != len(axes):
            raise ValueError(
                "Must provide matching length window_shape and axis; "
                f"{given} {len(axes)} axes elements."
            )
    return windows.bind(x, window_shape=window_shape, axis=axes)


@windows.def_samples
def windows_samples(rng):
    x = rng.normal(size=(4, 5))
    yield Sample(x, (2, 3))
    yield Sample(x, 2, axis=0)
    yield Sample(x, 3, -1)
    yield Sample(x, (2, 2), axis=(1, 1))
    yield Sample(x, (3, 2), axis=(1, 0))
    yield Sample(rng.normal(size=3), 3)
    yield Sample(rng.normal(size=3), 1)


@primitive(linear)
def overlap_add(t, *, shape, window_shape, axis):
    """Add windows up where they lie in an array of `shape`."""
    out = np.zeros(shape, dtype_of(t))
    places = np.shape(t)[: len(shape)]
    # By the elements of a window or by the windows, whichever are fewer.
    if math.prod(window_shape) <= math.prod(places):
        for element in np.ndindex(*window_shape):
            out[_reached(element, axis, places)] += t[(..., *element)]
        return out
    for place in np.ndindex(*places):
        view = sliding_window_view(out, window_shape, axis, writeable=True)
        _add(view[place], t[place], axis)
    return out


def _add(view: np.ndarray, t: np.ndarray, axis: tuple[int, ...]) -> None:
    if len(set(axis)) == len(axis):
        view += t
    else:  # a window that slides along one axis twice meets an element twice
        for element in np.ndindex(*view.shape):
            view[element] += t[element]


def _reached(element: Any, axis: tuple[int, ...], places: tuple[int, ...]) -> Any:
    """Return the slices that one element of the window is at, over all windows."""
    start = [0] * len(places)
    for offset, number in zip(element, axis, strict=True):
        start[number] += offset
    return tuple(slice(s, s + n) for s, n in zip(start, places, strict=True))


@overlap_add.def_vjp
def overlap_add_vjp(primals, out, *, shape, window_shape, axis):
    def overlap_add_pullback(out_bar):
        return windows.bind(out_bar, window_shape=window_shape, axis=axis)

    return overlap_add_pullback


@overlap_add.def_batch
def overlap_add_batch(args, batched, *, shape, window_shape, axis):
    (t,) = args
    return overlap_add.bind(
        t,
        shape=(shape_of(t)[0], *shape),
        window_shape=window_shape,
        axis=tuple(i + 1 for i in axis),
    )


def _added(t, shape, window_shape, axis):
    return overlap_add.bind(t, shape=shape, window_shape=window_shape, axis=axis)


@overlap_add.def_samples
def overlap_add_samples(rng):
    yield Sample(rng.normal(size=(3, 3, 2, 3)), (4, 5), (2, 3), (0, 1), fun=_added)
    yield Sample(rng.normal(size=(2, 5, 3)), (4, 5), (3,), (0,), fun=_added)
    yield Sample(rng.normal(size=(2, 4)), (5,), (4,), (0,), fun=_added)
    yield Sample(rng.normal(size=(2, 2, 3)), (5,), (2, 3), (0, 0), fun=_added)
