"""Gathering by positions that may be traced: under `vmap` each example has its own.

The one idea: an index is turned into positions in the flattened array, by arithmetic that NumPy
does on the indices, so that one primitive does for all forms of index. `gather` reads, `gather_add`
puts a cotangent back, `gather_set` assigns. `read_at` and `write_at` take any index; `taken` and
`put_back` take places along an axis, such as those of a permutation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.core.batch import count_examples, full_batch, together
from funcgrad.core.convert import zeros_like
from funcgrad.core.level import (
    TracerBase,
    concrete,
    detached,
    is_batched,
    is_recorded,
    looked_at,
    traced_here,
)
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import ShapeError, TracerConversionError, user_line

__all__ = [
    "gather",
    "gather_add",
    "gather_set",
    "mask_of",
    "positions_of",
    "put_back",
    "read_at",
    "taken",
    "under_mask",
    "where_true",
    "write_at",
]


# Positions


def positions_of(shape: tuple[int, ...], index: Any) -> Any:
    """Return where ``x[index]`` takes its elements from, in an `x` of `shape`, flattened.

    Raises
    ------
    IndexError
        As NumPy does.
    """
    entries = _entries(shape, index)
    arrays = [isinstance(item, tuple) for _, item in entries]
    block = np.broadcast_shapes(*(shape_of(item[0]) for _, item in entries if type(item) is tuple))
    lengths = [len(item) for _, item in entries if type(item) is np.ndarray]
    # With an array in the index, integers count as arrays; all of them make one block of axes, in
    # front if something stands between them.
    first = arrays.index(True) if block else 0
    together = all(arrays[first : first + sum(arrays)])
    start = sum(item is not _APART for _, item in entries[:first]) if together else 0
    rank = len(lengths) + len(block)
    found: Any = np.intp(0)
    axis = 0
    for stride, item in entries:
        if item is _APART:
            continue
        if type(item) is tuple:
            (array,) = item
            behind = (1,) * (len(lengths) - start)
            found = found + np.reshape(array * stride, (*shape_of(array), *behind))
        else:
            place = axis if axis < start else axis + len(block)
            found = found + np.reshape(item * stride, (-1, *(1,) * (rank - place - 1)))
            axis += 1
    return np.broadcast_to(found, (*lengths[:start], *block, *lengths[start:]))


def _entries(shape: tuple[int, ...], index: Any) -> list[tuple[int, Any]]:
    """Return (stride, item) for each item: a tuple of one array, or a range along an axis."""
    items = [_settled(item) for item in (index if isinstance(index, tuple) else (index,))]
    counts = [_axes_of(item) for item in items]
    used = sum(counts)
    if used > len(shape):
        raise IndexError(
            f"too many indices for array: array is {len(shape)}-dimensional, "
            f"but {used} were indexed"
        )
    if not any(item is Ellipsis for item in items):
        items.append(Ellipsis)
        counts.append(0)
    entries: list[tuple[int, Any]] = []
    axis = 0
    for item, count in zip(items, counts, strict=True):
        strides = [math.prod(shape[place + 1 :]) for place in range(len(shape))]
        if item is None:
            entries.append((0, np.zeros(1, np.intp)))
        elif item is Ellipsis:
            count = len(shape) - used
            places = range(axis, axis + count)
            entries += [(strides[place], np.arange(shape[place])) for place in places]
            if not count and item is not items[-1]:
                entries.append((0, _APART))
        elif isinstance(item, slice):
            entries.append((strides[axis], np.arange(shape[axis])[item]))
        elif dtype_of(item).kind == "b":
            _check_mask(item, shape, axis)
            places = range(axis, axis + count)
            entries += [
                (strides[place], (found,))
                for place, found in zip(places, item.nonzero(), strict=True)
            ]
        else:
            entries.append((strides[axis], (_within(item, axis, shape[axis]),)))
        axis += count
    return entries


# Stands for an Ellipsis of no axes, which keeps arrays apart all the same.
_APART: Any = object()


def _axes_of(item: Any) -> int:
    """Return how many axes of the array an item of an index takes."""
    if item is None or item is Ellipsis:
        return 0
    if not isinstance(item, slice) and dtype_of(item).kind == "b":
        return len(shape_of(item))
    return 1


def _check_mask(mask: Any, shape: tuple[int, ...], axis: int) -> None:
    for place, n in enumerate(mask.shape):
        if shape[axis + place] != n:
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis + place}; size of "
                f"axis is {shape[axis + place]} but size of corresponding boolean axis is {n}"
            )


def _settled(item: Any) -> Any:
    """Return an item of an index as it is, or as an array of integers or truth values."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    traced = item if isinstance(item, TracerBase) else None
    kind = "i" if traced is None else dtype_of(traced).kind
    item = detached(item)
    if not isinstance(item, TracerBase) and kind in "iub":
        item = np.asarray(item)
        return item.astype(np.intp, copy=False) if item.dtype.kind in "iu" else item
    assert traced is not None
    if kind == "b" and not is_batched(item):
        return item  # recorded; the shape of what it selects is part of the record
    if kind == "b":
        raise ShapeError(
            "a boolean mask that differs from example to example selects as many elements as it "
            "is true for, so the results would differ in shape",
            where=f"{user_line()}; {traced_here(traced)}",
            fix="keep all elements: np.where(mask, x, 0), or where=mask in a reduction",
        )
    if kind not in "iu":
        raise TracerConversionError(
            "a traced value cannot be an index",
            where=f"{user_line()}; {traced_here(traced)}",
            fix="use integers: np.floor(x).astype(int) gives plain ones",
        )
    return item.astype(np.intp)  # positions may be larger than the largest index


def _within(item: Any, axis: int, n: int) -> Any:
    """Return indices counted from the front; raise if one is out of bounds."""
    recorded = is_recorded(item)
    if recorded:
        inside = np.greater_equal(item, -n) & np.less(item, n)
        looked_at(np.all(inside), f"whether indices along axis {axis} are within bounds")
    plain = concrete(item)
    outside = (plain < -n) | (plain >= n)
    if np.any(outside):
        raise IndexError(
            f"index {np.asarray(plain)[outside].ravel()[0]} is out of bounds for axis {axis} "
            f"with size {n}"
        )
    if recorded:  # one operation in the program: as good, within bounds
        return np.remainder(item, n)
    return np.where(np.less(item, 0), np.add(item, n), item)


def read_at(x: Any, index: Any) -> Any:
    """Return ``x[index]`` for an index that holds traced integers."""
    shape = shape_of(x)
    return gather.bind(np.reshape(x, (math.prod(shape),)), positions_of(shape, index))


def write_at(x: Any, value: Any, index: Any) -> Any:
    """Return a copy of `x` with ``x[index] = value``, for an index that is traced."""
    shape = shape_of(x)
    mask = mask_of(index)
    if mask is not None and (is_batched(mask) or _fits_all(x, value, mask)):
        return where_true(x, under_mask(x, value, mask), mask)
    positions = positions_of(shape, index)
    want, got = shape_of(positions), shape_of(value)
    while len(got) > len(want) and got[0] == 1:  # as NumPy lets pass when assigning
        got = got[1:]
    if got != shape_of(value):
        value = np.reshape(value, got)
    value = np.broadcast_to(value, want)
    made = gather_set.bind(np.reshape(x, (math.prod(shape),)), value, positions)
    return np.reshape(made, shape)


def mask_of(index: Any) -> Any:
    """Return the mask that `index` is, if it is one and traced: by `vmap`, or by a record."""
    mask = index[0] if isinstance(index, tuple) and len(index) == 1 else index
    if isinstance(mask, TracerBase) and dtype_of(mask).kind == "b":
        mask = detached(mask)
        return mask if isinstance(mask, TracerBase) else None
    return None


def where_true(x: Any, value: Any, mask: Any) -> Any:
    """Return a copy of `x` with a value of its shape, or a scalar, where `mask` is true."""
    shape = shape_of(mask)
    mask = np.reshape(mask, shape + (1,) * (len(shape_of(x)) - len(shape)))
    made = np.where(mask, value, x)
    return made if dtype_of(made) == dtype_of(x) else made.astype(dtype_of(x))


def _fits_all(x: Any, value: Any, mask: Any) -> bool:
    """Tell whether all elements of ``x[mask]`` are assigned the same."""
    got = shape_of(value)
    while got and got[0] == 1:
        got = got[1:]
    return len(got) <= len(shape_of(x)) - len(shape_of(mask))


def under_mask(x: Any, value: Any, mask: Any) -> Any:
    """Return `value` as it broadcasts against ``x[mask]``, in each element of which it is the same.

    Raises
    ------
    ShapeError
        There is a value for each element that the mask leaves, which are not equally many.
    """
    shape, own, got = shape_of(x), shape_of(mask), np.shape(value)
    rest = shape[len(own) :]
    while len(got) > len(rest) and got[0] == 1:
        got = got[1:]
    if shape[: len(own)] != own or len(got) > len(rest):
        positions_of(shape, mask)  # raises
    return value if got == np.shape(value) else np.reshape(value, got)


def _along(shape: tuple[int, ...], places: Any, axis: int) -> Any:
    """Return the positions of `places` along `axis`; along the others they broadcast."""
    stride = math.prod(shape[axis + 1 :])
    positions = places if stride == 1 else places * stride
    for other, n in enumerate(shape):
        if other != axis and n != 1:
            steps = np.arange(n) * math.prod(shape[other + 1 :])
            positions = positions + np.reshape(steps, (-1, *(1,) * (len(shape) - other - 1)))
    return positions


def taken(x: Any, places: Any, axis: int) -> Any:
    """Return elements of `x` along `axis`, counted from 0; the other axes broadcast."""
    shape = shape_of(x)
    flat = x if len(shape) == 1 else np.reshape(x, (math.prod(shape),))
    return gather.bind(flat, _along(shape, places, axis))


def put_back(t: Any, places: Any, axis: int, size: int, *, unique: bool = False) -> Any:
    """Return zeros of length `size` along `axis` with `t` added at `places`.

    `unique` says that they name no element twice.
    """
    shape = np.broadcast_shapes(shape_of(t), shape_of(places))
    if shape_of(t) != shape:
        t = np.broadcast_to(t, shape)
    whole = (*shape[:axis], size, *shape[axis + 1 :])
    positions = _along(whole, places, axis)
    if shape_of(positions) != shape:
        positions = np.broadcast_to(positions, shape)
    made = gather_add.bind(t, positions, size=math.prod(whole), unique=unique)
    return made if len(whole) == 1 else np.reshape(made, whole)


# The primitives: of arrays with one axis


def _many(x, positions, batched, size):
    """Return the examples in one row, and the positions in it."""
    x, positions = full_batch(x, batched[0], size), full_batch(positions, batched[-1], size)
    n = shape_of(x)[1]
    first = np.reshape(np.arange(size) * n, (size, *(1,) * (len(shape_of(positions)) - 1)))
    return np.reshape(x, (size * n,)), positions + first


@primitive()
def gather(x, positions):
    """``x[positions]``, of an `x` with one axis."""
    return x[positions]


@gather.def_jvp
def gather_jvp(primals, tangents, out):
    return gather.bind(tangents[0], primals[1])


@gather.def_vjp
def gather_vjp(primals, out):
    x, positions = primals
    (size,) = shape_of(x)

    def gather_pullback(out_bar):
        return gather_add.bind(out_bar, positions, size=size)

    return gather_pullback, None


@gather.def_batch
def gather_batch(args, batched):
    x, positions = args
    if not batched[0]:
        return gather.bind(x, positions)
    if not batched[1] and not isinstance(positions, TracerBase):
        return np.take(x, positions, axis=1)
    return gather.bind(*_many(x, positions, batched, count_examples(args, batched)))


@primitive()
def gather_add(t, positions, *, size, unique=False):
    """`size` zeros with `t` added at `positions`; those named twice add up, if not `unique`."""
    zeros = np.zeros(size, dtype_of(t))
    if unique:
        zeros[positions] = t
    else:
        np.add.at(zeros, np.ravel(positions), np.ravel(t))
    return zeros


@gather_add.def_jvp
def gather_add_jvp(primals, tangents, out, **params):
    return gather_add.bind(tangents[0], primals[1], **params)


@gather_add.def_vjp
def gather_add_vjp(primals, out, **params):
    positions = primals[1]

    def gather_add_pullback(out_bar):
        return gather.bind(out_bar, positions)

    return gather_add_pullback, None


@gather_add.def_batch
def gather_add_batch(args, batched, *, size, **params):
    t, positions = together(args, batched)
    examples = shape_of(t)[0]
    first = np.reshape(np.arange(examples) * size, (-1, *(1,) * (len(shape_of(positions)) - 1)))
    made = gather_add.bind(t, positions + first, size=examples * size, **params)
    return np.reshape(made, (examples, size))


@primitive()
def gather_set(x, value, positions):
    """A copy of `x`, with one axis, with ``x[positions] = value``, of the shape of `positions`."""
    made = x.copy()
    made[positions] = value
    return made


@gather_set.def_jvp
def gather_set_jvp(primals, tangents, out):
    x, value, positions = primals
    x_dot, value_dot, _ = tangents
    x_dot = zeros_like(x) if x_dot is None else x_dot
    value_dot = zeros_like(value) if value_dot is None else value_dot
    return gather_set.bind(x_dot, value_dot, positions)


@gather_set.def_vjp
def gather_set_vjp(primals, out):
    x, value, positions = primals
    value_shape, dtype = shape_of(value), dtype_of(x)

    def gather_set_pullback_x(out_bar):
        return gather_set.bind(out_bar, np.zeros(value_shape, dtype), positions)

    def gather_set_pullback_value(out_bar):
        # Of a position named twice the last value stays: found out by assigning numbers.
        numbers = np.reshape(np.arange(math.prod(value_shape)), value_shape)
        blank = np.zeros(shape_of(out_bar), np.intp)
        stays = np.equal(
            gather.bind(gather_set.bind(blank, numbers, positions), positions), numbers
        )
        return np.where(stays, gather.bind(out_bar, positions), 0)

    return gather_set_pullback_x, gather_set_pullback_value, None


@gather_set.def_batch
def gather_set_batch(args, batched):
    x, value, positions = args
    size = count_examples(args, batched)
    n = shape_of(x)[-1]
    x, positions = _many(x, positions, (batched[0], batched[2]), size)
    made = gather_set.bind(x, full_batch(value, batched[1], size), positions)
    return np.reshape(made, (size, n))


def _gathered(x, positions):
    return gather.bind(x, positions)


def _added(t, positions, size, unique=False):
    return gather_add.bind(t, positions, size=size, unique=unique)


def _set(x, value, positions):
    return gather_set.bind(x, value, positions)


@gather.def_samples
def gather_samples(rng):
    x = rng.normal(size=4)
    for positions in (np.array([3, 0, 0]), np.array([[1], [2]]), np.zeros(0, int), np.array(2)):
        yield Sample(x, positions, fun=_gathered)


@gather_add.def_samples
def gather_add_samples(rng):
    yield Sample(rng.normal(size=3), np.array([3, 0, 0]), 4, fun=_added)
    yield Sample(rng.normal(size=(2, 1)), np.array([[1], [2]]), 4, fun=_added)
    yield Sample(rng.normal(size=(2, 1)), np.array([[3], [1]]), 4, fun=_added, unique=True)
    yield Sample(rng.normal(size=0), np.zeros(0, int), 4, fun=_added)


@gather_set.def_samples
def gather_set_samples(rng):
    x = rng.normal(size=4)
    yield Sample(x, rng.normal(size=3), np.array([3, 0, 0]), fun=_set)
    yield Sample(x, rng.normal(size=(2, 1)), np.array([[1], [2]]), fun=_set)
    yield Sample(x, rng.normal(size=0), np.zeros(0, int), fun=_set)
