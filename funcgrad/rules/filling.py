"""NumPy's functions that write into their first argument: on traced arrays, functional updates.

Each finds the positions that NumPy would write to and assigns to them, so the rules of
`funcgrad.core.assign` hold: arguments are read-only, and a plain array takes no traced value.
Under `vmap`, positions and masks may differ from example to example.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.level import TracerBase, detached, holds_anywhere, traced_here
from funcgrad.core.primitive import FUNCTIONS
from funcgrad.core.tracer import unwrap
from funcgrad.core.zero import shape_of
from funcgrad.errors import MutationError, describe, numpy_function, user_line
from funcgrad.rules.gathering import read_at, write_at
from funcgrad.rules.spelling import joined

__all__: list[str] = []


def _receives(target: Any, name: str, *values: Any) -> bool:
    """Tell whether `target` is a handle; raise if it is a plain array that cannot take a value."""
    if isinstance(target, TracerBase):
        return True
    for value in values:
        if not isinstance(value, TracerBase) or value._trace.level == 0:
            continue
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


def _places(value: Any) -> Any:
    """Return positions, or a mask, as a plain array, or as a tracer if the examples differ."""
    value = detached(joined(value))
    return value if isinstance(value, TracerBase) else np.asarray(value)


def _differ(places: Any) -> bool:
    """Tell whether positions, or a mask, differ from example to example."""
    return isinstance(places, TracerBase)


def _again(values: Any, numbers: Any) -> Any:
    """Return the values of these numbers, where too few values start again."""
    return read_at(values, numbers % max(values.size, 1))


def _write(target: Any, positions: Any, values: Any) -> None:
    """Do ``target.flat[positions] = values``, where too few values start again."""
    positions = np.reshape(positions, (-1,))
    if not positions.size:
        return
    values = joined(values)
    if shape_of(values) or not isinstance(values, TracerBase):
        values = _again(np.ravel(values), np.arange(positions.size))
    if _differ(positions):
        made = write_at(np.reshape(target, (target.size,)), values, positions)
        target[...] = np.reshape(made, shape_of(target))
    else:
        target[np.unravel_index(positions, shape_of(target))] = values


def copyto(dst, src, casting="same_kind", where=True):
    """`numpy.copyto`."""
    src = joined(src)
    if not _receives(dst, "copyto", src, where):
        return np.copyto(dst, unwrap(src), casting=casting, where=unwrap(where))
    if isinstance(src, list | tuple):
        src = np.asarray(src)
    if hasattr(src, "dtype") and not np.can_cast(src.dtype, dst.dtype, casting):
        raise TypeError(
            f"Cannot cast array data from {src.dtype!r} to {dst.dtype!r} "
            f"according to the rule {casting!r}"
        )
    dst[...] = src if where is True else np.where(detached(where), src, dst)
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
    if not _receives(a, "put", v, ind):
        return np.put(a, ind, unwrap(v), mode=mode)
    positions = _places(ind)
    if mode == "clip":
        positions = np.clip(positions, 0, a.size - 1)
    elif mode == "wrap":
        positions = positions % a.size
    elif not _differ(positions):
        positions = np.arange(a.size)[positions]
    _write(a, positions, v)
    return None


def place(arr, mask, vals):
    """`numpy.place`."""
    if not _receives(arr, "place", vals, mask):
        return np.place(arr, unwrap(mask), unwrap(vals))
    mask = _places(mask)
    if _differ(mask):
        values = np.ravel(joined(vals))
        if not values.size:
            if holds_anywhere(mask, "whether there is a place to fill"):
                raise ValueError("Cannot insert from an empty array!")
            return None
        numbers = np.cumsum(np.reshape(mask, (-1,)).astype(np.intp)) - 1  # of the true ones
        arr[...] = _where(mask, _again(values, np.maximum(numbers, 0)), arr)
        return None
    positions = np.flatnonzero(mask)
    if positions.size and not np.size(vals):
        raise ValueError("Cannot insert from an empty array!")
    _write(arr, positions, vals)
    return None


def putmask(a, mask, values):
    """`numpy.putmask`."""
    if not _receives(a, "putmask", values, mask):
        return np.putmask(a, unwrap(mask), unwrap(values))
    mask = _places(mask)
    values = np.ravel(joined(values))
    if not values.size:
        return None
    # Unlike `place`, each position takes the value of its own number.
    if _differ(mask):
        a[...] = _where(mask, _again(values, np.arange(a.size)), a)
        return None
    positions = np.flatnonzero(mask)
    if positions.size:
        _write(a, positions, _again(values, positions))
    return None


def _where(mask: Any, values: Any, array: Any) -> Any:
    """Return `array` with the values, of which there is one for each element, under the mask."""
    shape = shape_of(array)
    return np.where(np.reshape(mask, shape), np.reshape(values, shape), array)


def put_along_axis(arr, indices, values, axis):
    """`numpy.put_along_axis`."""
    if not _receives(arr, "put_along_axis", values, indices):
        return np.put_along_axis(arr, indices, unwrap(values), axis)
    numbers = np.arange(arr.size).reshape(shape_of(arr))
    positions = np.take_along_axis(numbers, _places(indices), axis)
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
