"""What the reductions share: axes, counts, and the way back from a result to what it was made of.

A cotangent of a reduction lacks the reduced axes. `lift` puts them back with size one, so that it
broadcasts against the input; `stretch` broadcasts it, as a view. Where NumPy takes a
mask (``where=``) or a starting value (``initial=``), both are array arguments of the
primitive, behind the array itself, and only there if they were given.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.core.batch import count_examples, full_batch, loop, ndim_of, shift, try_one
from funcgrad.core.primitive import Primitive, store
from funcgrad.core.zero import dtype_of, selected, shape_of

__all__ = [
    "NOT_GIVEN",
    "axes_of",
    "batch_reduction",
    "cast",
    "count",
    "finish",
    "given",
    "kept_shape",
    "lift",
    "parts",
    "plus",
    "ratio",
    "select",
    "split",
    "stretch",
    "unsplit",
]

# NumPy's own mark of an argument that was left out, which its functions take like no argument.
NOT_GIVEN: Any = np._NoValue

_ndarray = np.ndarray
_HALF = np.dtype(np.float16)


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return `axis`, as NumPy's reductions take it, as a tuple of numbers from 0."""
    if axis is None:
        return tuple(range(ndim))
    if ndim == 0:
        return ()  # NumPy lets axis=0 and axis=-1 pass for a scalar
    if isinstance(axis, tuple):
        return tuple(operator.index(item) % ndim for item in axis)
    return (operator.index(axis) % ndim,)


def kept_shape(shape: tuple[int, ...], axis: Any, keepdims: Any) -> tuple[int, ...] | None:
    """Return the shape that `lift` gives to a result, or None if it broadcasts as it is."""
    if axis is None or keepdims:
        return None
    axes = axes_of(axis, len(shape))
    if sorted(axes) == list(range(len(axes))):
        return None  # leading axes: broadcasting adds them
    return tuple(1 if i in axes else size for i, size in enumerate(shape))


def lift(t: Any, kept: tuple[int, ...] | None) -> Any:
    """Return `t`, of the shape of a result, so that it broadcasts against the input."""
    if kept is None:
        return t
    return t.reshape(kept) if type(t) is _ndarray else np.reshape(t, kept)


def stretch(t: Any, kept: tuple[int, ...] | None, shape: tuple[int, ...]) -> Any:
    """Return a view of `t`, of the shape of a result, that has the shape of the input."""
    if isinstance(t, np.generic):
        # As np.broadcast_to does it, in a tenth of the time: every loss ends here.
        return _ndarray(shape, t.dtype, t, 0, (0,) * len(shape)) if shape else t
    return np.broadcast_to(lift(t, kept), shape)


def count(where: Any, shape: tuple[int, ...], axis: Any) -> Any:
    """Return how many elements go into each result: an int, or an array if there is a mask."""
    if where is True:
        return math.prod(shape[i] for i in axes_of(axis, len(shape)))
    return np.sum(np.broadcast_to(where, shape), axis=axis, dtype=np.intp, keepdims=True)


def select(where: Any, x: Any) -> Any:
    """Return `x` where the mask is true, and 0 elsewhere."""
    return x if where is True else selected(where, x)


def cast(x: Any, dtype: Any) -> Any:
    """Return `x` as `dtype`; as it is if that is None."""
    if dtype is None or dtype_of(x) == dtype:
        return x
    return x.astype(dtype) if hasattr(x, "astype") else np.dtype(dtype).type(x)


def ratio(t: Any, number: Any) -> Any:
    """Return ``t / number``, a count: in single precision for float16, which ends at 65504."""
    if dtype_of(t) == _HALF:
        t = cast(t, np.float32)
    elif type(t) is float:
        t = np.float64(t)  # of which a division by zero is no error
    return t / number


def plus(a: Any, b: Any) -> Any:
    """Return the sum of two tangents, of which None is zero."""
    return b if a is None else a if b is None else a + b


def split(x: Any, axes: tuple[int, ...]) -> Any:
    """Return `x` with `axes` made one axis, the last."""
    shape = shape_of(x)
    rest = [i for i in range(len(shape)) if i not in axes]
    order = (*rest, *axes)
    if order != tuple(range(len(shape))):
        x = np.transpose(x, order)
    return np.reshape(x, (*(shape[i] for i in rest), math.prod(shape[i] for i in axes)))


def unsplit(x: Any, axes: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Undo `split`, from which the array came with the shape `shape`."""
    order = [*(i for i in range(len(shape)) if i not in axes), *axes]
    x = np.reshape(x, tuple(shape[i] for i in order))
    if order == list(range(len(shape))):
        return x
    return np.transpose(x, tuple(order.index(i) for i in range(len(shape))))


def given(a: Any, where: Any, last: Any) -> tuple[Any, ...]:
    """Return the array arguments of a primitive, leaving away at the end what was not given."""
    if isinstance(where, list):
        where = np.array(where)  # which the caller can no longer write to
    if last is not NOT_GIVEN:
        return (a, where, last)
    return (a,) if where is True else (a, where)


def parts(primals: Sequence[Any]) -> tuple[Any, Any, Any]:
    """Return the array, the mask and what comes last; True and None for those not given."""
    if len(primals) == 1:
        return primals[0], True, None
    return primals[0], primals[1], primals[2] if len(primals) > 2 else None


def batch_reduction(made: Primitive) -> None:
    """Give a reduction its batching rule: the axes move on by one."""

    def reduction_batch(args: Any, batched: Any, **params: Any) -> Any:
        widest = max(map(ndim_of, args[:2], batched[:2]))
        # NumPy takes one starting value for all, and no mask that is wider than the array.
        if (len(args) > 2 and batched[2]) or widest > ndim_of(args[0], batched[0]):
            return loop(made.bind, args, batched, params)
        args = list(args)
        size = count_examples(args, batched)
        ndim = ndim_of(args[0], batched[0])
        args[0] = full_batch(args[0], batched[0], size)
        if len(args) > 1 and batched[1]:
            mask, lack = args[1], ndim - ndim_of(args[1], True)
            args[1] = np.reshape(mask, (size, *(1,) * lack, *shape_of(mask)[1:]))
        axis = params.pop("axis")
        if ndim == 0:  # of which some functions let axis=0 pass
            if axis is not None:
                try_one(made, args, [True, *batched[1:]], {"axis": axis, **params})
            axis = ()
        else:
            axis = shift(axis, ndim)
        return made.bind(*args, axis=axis, **params)

    made.def_batch(reduction_batch)


def finish(result: Any, out: Any) -> Any:
    """Return `result`, by way of ``out=`` if that was given."""
    return result if out is None else store(result, out)
