"""NumPy's functions that write into their first argument: on traced arrays, functional updates.

Each finds the positions that NumPy would write to and assigns to them, so the rules of
`funcgrad.core.assign` hold: arguments are read-only, and a plain array takes no traced value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.level import TracerBase, concrete, traced_here
from funcgrad.core.primitive import FUNCTIONS
from funcgrad.core.tracer import unwrap
from funcgrad.core.zero import shape_of
from funcgrad.errors import MutationError, describe, numpy_function, user_line
from funcgrad.rules.indexing import joined

__all__: list[str] = []


def _receives(target: Any, value: Any, name: str) -> bool:
    """Tell whether `target` is a handle; raise if it is a plain array that cannot take `value`."""
    if isinstance(target, TracerBase):
        return True
    if isinstance(value, TracerBase) and value._trace.level > 0:
        if numpy_function() in ("full", "full_like"):
            raise MutationError(
                "a plain NumPy array cannot be filled with a traced value",
                where=f"{user_line()}; the array is {describe(target)}, "
                f"the value {traced_here(value)}",
                fix="use funcgrad.numpy.full(shape, x)",
            )
        raise MutationError(
            f"numpy.{name} would write a traced value into a plain NumPy array",
            where=f"{user_line()}; the array is {describe(target)}, the value {traced_here(value)}",
            fix="make the array with np.zeros_like(x) of a traced x or with "
            "funcgrad.numpy.zeros, or use y = funcgrad.at(y)[index].set(v)",
        )
    return False


def _write(target: Any, positions: Any, values: Any) -> None:
    """Do ``target.flat[positions] = values``, where too few values start again."""
    positions = np.reshape(positions, -1)
    if not positions.size:
        return
    values = joined(values)
    if shape_of(values) or not isinstance(values, TracerBase):
        values = np.ravel(values)
        values = np.take(values, np.arange(positions.size) % max(values.size, 1))
    target[np.unravel_index(positions, shape_of(target))] = values


def copyto(dst, src, casting="same_kind", where=True):
    """`numpy.copyto`."""
    src = joined(src)
    if not _receives(dst, src, "copyto"):
        return np.copyto(dst, unwrap(src), casting=casting, where=unwrap(where))
    if isinstance(src, list | tuple):
        src = np.asarray(src)
    if hasattr(src, "dtype") and not np.can_cast(src.dtype, dst.dtype, casting):
        raise TypeError(
            f"Cannot cast array data from {src.dtype!r} to {dst.dtype!r} "
            f"according to the rule {casting!r}"
        )
    dst[...] = src if where is True else np.where(concrete(where), src, dst)
    return None


def fill_diagonal(a, val, wrap=False):
    """`numpy.fill_diagonal`."""
    shape = shape_of(a)
    if len(shape) < 2:
        raise ValueError("array must be at least 2-d")
    end = None
    if len(shape) == 2:
        step = shape[1] + 1
        if not wrap:
            end = shape[1] * shape[1]
    else:
        if len(set(shape)) != 1:
            raise ValueError("All dimensions of input must be of equal length")
        step = 1 + int(np.cumprod(shape[:-1]).sum())
    _write(a, np.arange(a.size)[:end:step], val)


def put(a, ind, v, mode="raise"):
    """`numpy.put`."""
    if not _receives(a, v, "put"):
        return np.put(a, ind, unwrap(v), mode=mode)
    positions = np.asarray(ind)
    if mode == "clip":
        positions = np.clip(positions, 0, a.size - 1)
    elif mode == "wrap":
        positions = positions % a.size
    else:
        positions = np.arange(a.size)[positions]
    _write(a, positions, v)
    return None


def place(arr, mask, vals):
    """`numpy.place`."""
    if not _receives(arr, vals, "place"):
        return np.place(arr, unwrap(mask), unwrap(vals))
    positions = np.flatnonzero(concrete(mask))
    if positions.size and not np.size(vals):
        raise ValueError("Cannot insert from an empty array!")
    _write(arr, positions, vals)
    return None


def putmask(a, mask, values):
    """`numpy.putmask`."""
    if not _receives(a, values, "putmask"):
        return np.putmask(a, unwrap(mask), unwrap(values))
    positions = np.flatnonzero(concrete(mask))
    values = np.ravel(joined(values))
    if positions.size and values.size:
        # Unlike `place`, each position takes the value of its own number.
        _write(a, positions, np.take(values, positions % values.size))
    return None


def put_along_axis(arr, indices, values, axis):
    """`numpy.put_along_axis`."""
    if not _receives(arr, values, "put_along_axis"):
        return np.put_along_axis(arr, indices, unwrap(values), axis)
    numbers = np.arange(arr.size).reshape(shape_of(arr))
    positions = np.take_along_axis(numbers, np.asarray(indices), axis)
    values = joined(values)
    _write(arr, positions, np.broadcast_to(values, positions.shape))
    return None


for _function, _handler in (
    (np.copyto, copyto),
    (np.fill_diagonal, fill_diagonal),
    (np.place, place),
    (np.put, put),
    (np.put_along_axis, put_along_axis),
    (np.putmask, putmask),
):
    FUNCTIONS[_function] = _handler
