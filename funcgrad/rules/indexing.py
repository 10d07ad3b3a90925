"""Indexing: reading parts of an array, and its mirror image, putting parts into one.

The one idea: ``x[index]`` is linear in `x`, and its transpose puts a cotangent back where it came
from, into zeros: `scatter_add`, which is linear too and whose transpose is ``t[index]`` again.
Assignment, `index_update`, is the third primitive here.

An index is settled first: lists become arrays, and arrays are copied, as the caller may write to
them before the backward pass.
"""

from __future__ import annotations

import math
import operator
from types import EllipsisType, NoneType
from typing import Any

import numpy as np

from funcgrad.core.batch import count_examples, full_batch
from funcgrad.core.convert import zeros_like
from funcgrad.core.level import TracerBase, concrete, is_differentiated, traced_here
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, fit, shape_of
from funcgrad.errors import DtypeError, TracerConversionError, describe, user_line
from funcgrad.rules.families import linear
from funcgrad.rules.gathering import read_at, write_at
from funcgrad.rules.spelling import holds_tracer, joined

__all__ = [
    "getitem",
    "index_update",
    "place",
    "read",
    "refuse_traced",
    "repeats",
    "scatter_add",
    "settle",
    "updated",
]

_BASIC = frozenset({int, slice, NoneType, EllipsisType})


def settle(index: Any) -> Any:
    """Return an index that nobody else can change, with lists turned into arrays."""
    kind = type(index)
    if kind in _BASIC:
        return index
    if kind is tuple:
        for item in index:
            if type(item) not in _BASIC:
                return tuple(map(_settle_item, index))
        return index
    return _settle_item(index)


def _settle_item(item: Any) -> Any:
    if isinstance(item, np.ndarray):
        return item.copy()
    refuse_traced(item)
    if isinstance(item, list | tuple):
        try:
            array = np.asarray(item)
        except ValueError:  # ragged: NumPy has the words for it
            return item
        if array.size == 0 and array.dtype.kind == "f":
            return array.astype(np.intp)  # an empty list has no integers to show
        return array if array.dtype.kind in "iub" else item
    return item


def refuse_traced(item: Any) -> None:
    """Raise if an item of an index, or a list in it, is traced."""
    if isinstance(item, TracerBase):
        raise TracerConversionError(
            "a traced value cannot be an index",
            where=f"{user_line()}; {traced_here(item)}",
            fix="use integers: np.floor(x).astype(int) gives plain ones",
        )
    if isinstance(item, list | tuple):
        for part in item:
            refuse_traced(part)


def repeats(index: Any) -> bool:
    """Tell whether a settled index may name an element twice: only arrays of integers can."""
    if type(index) in _BASIC:
        return False
    for item in index if type(index) is tuple else (index,):
        if type(item) not in _BASIC and getattr(item, "ndim", False) and item.dtype.kind != "b":
            return True
    return False


def place(shape: tuple[int, ...], index: Any) -> np.ndarray:
    """Return the positions, in the flattened array, of the elements that `index` names."""
    if type(index) is np.ndarray and index.dtype.kind != "b" and shape:  # rows: the usual case
        width = int(np.prod(shape[1:], dtype=np.intp))
        rows = np.where(index < 0, index + shape[0], index)
        cells = rows[..., np.newaxis] * width + np.arange(width)
        return cells.reshape(index.shape + shape[1:])
    size = int(np.prod(shape, dtype=np.intp))
    return np.asarray(np.arange(size).reshape(shape)[index])


# Reading


@primitive(linear, may_alias=True)
def getitem(x, *, index):
    """``x[index]``, for any index that NumPy takes."""
    return x[index]


@getitem.def_vjp
def getitem_vjp(primals, out, *, index):
    shape = shape_of(primals[0])

    def getitem_pullback(out_bar):
        return _scatter(out_bar, shape, index)

    return getitem_pullback


def _scatter(t, shape, index):
    return scatter_add.bind(t, shape=shape, index=index)


def _is_basic(index):
    kind = type(index)
    if kind is tuple:
        return all(type(item) in _BASIC for item in index)
    return kind in _BASIC


def read(t, index):
    """Return ``t[index]`` of a cotangent; that of an array without axes may be a Python number."""
    if type(concrete(t)) in (float, complex):
        t = t * np.float64(1)
    return getitem.bind(t, index=index)


@getitem.def_batch
def getitem_batch(args, batched, *, index):
    (x,) = args
    if _is_basic(index):
        return getitem.bind(x, index=_behind(index))
    size, *shape = shape_of(x)
    if _is_apart(index):  # NumPy would put the indexed axes in front of the examples
        index = place(tuple(shape), index)
        x = np.reshape(x, (size, math.prod(shape)))
    return getitem.bind(x, index=_behind(index))


def _behind(index):
    """Return an index for many examples."""
    return (slice(None), *(index if type(index) is tuple else (index,)))


def _is_apart(index):
    """Tell whether something stands between arrays, or integers, of an index."""
    if type(index) is not tuple:
        return False
    arrays = [hasattr(item, "dtype") or type(item) in (int, bool) for item in index]
    if sum(arrays) < 2:
        return False
    first = arrays.index(True)
    return not all(arrays[first : first + sum(arrays)])


@getitem.def_call(operator.getitem)
def _traced_getitem(x, index):
    # The way of every x[i]: without the mapping of NumPy's signature, which takes as long again.
    if _is_basic(index):
        return x._trace.part(getitem, x, index, _scatter)
    if holds_tracer(index):
        return read_at(x, tuple(map(joined, index)) if type(index) is tuple else joined(index))
    return x._trace.process(getitem, (x,), {"index": settle(index)})


@getitem.def_samples
def getitem_samples(rng):
    x, y = rng.normal(size=5), rng.normal(size=(3, 4, 5))
    index: Any
    for index in (0, -1, slice(1, None), slice(None, None, -2), ..., None, (), [0, 2, 2], [], True):
        yield Sample(x, index)
    mask = np.array([True, False, True, True, False])
    yield Sample(x, mask)
    yield Sample(x, np.zeros(5, bool))
    yield Sample(x, np.array([[0, -1], [4, 4]]))
    for index in (
        1,
        (1, 2, 3),
        (..., 0),
        (slice(None), 1),
        (0, ..., slice(4, 1, -2)),
        (slice(None), None, 2),
        [0, 0, 2],
        ([0, 2], [1, 1]),
        ([0, 2], slice(1, 3), [1, 1]),  # separated: the indexed axes come first
        (slice(1, 3), [0, -1], [[1], [2]]),
        (0, slice(None), mask),
        (slice(None), [3, 3, 0], mask[:3].nonzero()[0][:1]),
        np.arange(60).reshape(3, 4, 5) % 3 == 0,
        (np.arange(12).reshape(3, 4) % 5 == 0, 1),
        (slice(0, 0),),
        (False, ...),
    ):
        yield Sample(y, index)
    yield Sample(rng.normal(size=()), ())
    yield Sample(rng.normal(size=()), ...)
    yield Sample(rng.normal(size=()), True)
    yield Sample(rng.normal(size=(0, 3)), (slice(None), 1))
    yield Sample(rng.normal(size=(1, 3)), 0)


# Putting back


@primitive(linear)
def scatter_add(t, *, shape, index):
    """Zeros of `shape` with `t` added at `index`; elements named twice add up."""
    if not isinstance(t, np.ndarray | np.generic | float | complex):
        zeros = np.zeros(shape, dtype_of(t), like=t)  # another kind of array
    else:
        zeros = np.zeros(shape, dtype_of(t))
    if not repeats(index):
        zeros[index] = t
    elif (
        zeros.ndim == 1 or np.size(t) < 64 or (type(index) is tuple and 4 * np.size(t) < zeros.size)
    ):
        np.add.at(zeros, index, t)
    else:
        # add.at has a fast loop for one axis only: 4 times as fast as with several indices, as
        # measured, and up to 20 times as fast as on rows. bincount and a sort are no faster.
        np.add.at(zeros.reshape(-1), place(shape, index).reshape(-1), np.reshape(t, -1))
    return zeros


@scatter_add.def_vjp
def scatter_add_vjp(primals, out, *, shape, index):
    def scatter_add_pullback(out_bar):
        return read(out_bar, index)

    return scatter_add_pullback


@scatter_add.def_batch
def scatter_add_batch(args, batched, *, shape, index):
    (t,) = args
    size = shape_of(t)[0]
    if _is_basic(index) or not _is_apart(index):
        return scatter_add.bind(t, shape=(size, *shape), index=_behind(index))
    flat = _behind(place(shape, index))
    made = scatter_add.bind(t, shape=(size, math.prod(shape)), index=flat)
    return np.reshape(made, (size, *shape))


def _scattered(t, shape, index):
    return scatter_add.bind(t, shape=shape, index=settle(index))


@scatter_add.def_samples
def scatter_add_samples(rng):
    yield Sample(rng.normal(size=2), (4,), slice(1, 3), fun=_scattered)
    yield Sample(rng.normal(size=3), (4,), [1, 1, 2], fun=_scattered)
    yield Sample(rng.normal(size=(3, 30)), (4, 30), [1, 1, 2], fun=_scattered)
    yield Sample(rng.normal(size=(30, 3)), (4, 30), ([1, 1, 2], [[-1]] * 30), fun=_scattered)
    yield Sample(rng.normal(size=()), (2, 2), (0, 1), fun=_scattered)


# Assigning


@primitive()
def index_update(x, value, *, index):
    """A copy of `x` with ``x[index] = value``. Of an element named twice, the last value stays."""
    out = x.copy("K") if isinstance(x, np.ndarray) else np.copy(x)
    out[index] = value
    return out


@index_update.def_jvp
def index_update_jvp(primals, tangents, out, *, index):
    x_dot, value_dot = tangents
    if x_dot is None:
        x_dot = zeros_like(primals[0])
    return index_update.bind(x_dot, 0 if value_dot is None else value_dot, index=index)


@index_update.def_vjp
def index_update_vjp(primals, out, *, index):
    x, value = primals
    shape, value_shape = shape_of(x), np.shape(value)

    def index_update_pullback_x(out_bar):
        return index_update.bind(out_bar, 0, index=index)

    def index_update_pullback_value(out_bar):
        value_bar = read(out_bar, index)
        if repeats(index):
            value_bar = np.where(_last(shape, index), value_bar, 0)
        return _squeezed(value_bar, value_shape)

    return index_update_pullback_x, index_update_pullback_value


@index_update.def_batch
def index_update_batch(args, batched, *, index):
    x, value = args
    size = count_examples(args, batched)
    x = full_batch(x, batched[0], size)
    shape = shape_of(x)[1:]
    if batched[1]:  # with all the axes of the part, so that the examples stay in front
        part = place(shape, index).shape
        own = shape_of(value)[1:]
        while len(own) > len(part):  # too many axes of size one
            own = own[1:]
        value = np.reshape(value, (size, *(1,) * (len(part) - len(own)), *own))
    if not _is_apart(index):
        return index_update.bind(x, value, index=_behind(index))
    flat = _behind(place(shape, index))
    made = index_update.bind(np.reshape(x, (size, math.prod(shape))), value, index=flat)
    return np.reshape(made, (size, *shape))


def _last(shape, index):
    """Tell, for each value assigned, whether it is the one that stays: by trying with numbers."""
    where = np.empty(shape, np.intp)
    numbers = np.arange(where[index].size).reshape(where[index].shape)
    where[index] = numbers
    return where[index] == numbers


def _squeezed(value_bar, shape):
    """Undo the broadcasting of an assigned value, which may have too many axes of size one."""
    extra = len(shape) - len(shape_of(value_bar))
    if extra <= 0:
        return value_bar  # what is left to do is done for every cotangent
    return np.reshape(fit(value_bar, shape[extra:], dtype_of(value_bar)), shape)


def _check_dtype(x, value):
    kind, new = dtype_of(x).kind, dtype_of(value).kind
    if isinstance(value, list | tuple):
        new = np.result_type(np.asarray(value)).kind
    if new == "c" and kind != "c":
        raise DtypeError(
            f"a complex value was assigned into an array of {dtype_of(x)}, "
            "which would drop its imaginary part",
            where=f"{user_line()}; the value is {describe(value)}",
            fix="assign np.real(v), or make the array complex: y = y.astype(complex)",
        )
    if kind not in "fc" and is_differentiated(value):
        raise DtypeError(
            f"a traced value was assigned into an array of {dtype_of(x)}, which has no derivative",
            where=f"{user_line()}; the value is {traced_here(value)}",
            fix="make the array floating: y = y.astype(float)",
        )


@index_update.def_call(operator.setitem)
def updated(x: Any, value: Any, index: Any) -> Any:
    """Return a copy of `x` with ``x[index] = value``, as NumPy would assign it."""
    value = joined(value)
    _check_dtype(x, value)
    if holds_tracer(index):
        index = tuple(map(joined, index)) if type(index) is tuple else joined(index)
        return write_at(x, value, index)
    return index_update.bind(x, value, index=settle(index))


def _copied_and_assigned(x, value, index):
    y = x.copy()
    y[index] = value
    return y


@index_update.def_samples
def index_update_samples(rng):
    def draw(*shape):
        return rng.normal(size=shape)

    index: Any
    for index, value in (
        ([1, 3], 1.5),
        (0, draw()),
        (slice(1, 3), draw(2)),
        (slice(None, None, -1), draw(5)),
        (slice(1, 3), draw()),
        (slice(1, 3), draw(1, 2)),
        (..., draw(5)),
        ([0, 0, 3], draw(3)),
        ([0, 0, 3], draw(1)),
        ([[0, 1], [1, 0]], draw(2, 2)),
        (np.array([True, False, True, True, False]), draw(3)),
        (np.array([True, False, True, True, False]), 1.5),
        (slice(0, 0), draw()),
        ([], draw()),
    ):
        yield Sample(draw(5), value, index, fun=_copied_and_assigned)
    for index, value in (
        ((slice(None), 1), draw(3)),
        (1, draw(4)),
        (([0, 2, 0], [1, 1, 1]), draw(3)),
        ([2, 2], draw(2, 4)),
        ((slice(None), [1, 1]), draw(3, 1)),
        (np.arange(12).reshape(3, 4) % 5 == 0, draw(3)),
        ((slice(None), None, 2), draw(3, 1)),
    ):
        yield Sample(draw(3, 4), value, index, fun=_copied_and_assigned)
    # Under vmap, an example without axes counts as a scalar, which nothing can be assigned to.
    yield Sample(np.array(1.0), draw(), (), fun=_copied_and_assigned, batch=False)
