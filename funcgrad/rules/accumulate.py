"""Accumulating: ``ufunc.at``, as a function that returns a new array.

An element that the index names several times is updated several times, one after the other.
Sums and extremes have primitives for that. For any other operation the updates are done in
rounds, in each of which every element is named once; nearly always there is one round.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.core.batch import count_examples, full_batch
from funcgrad.core.convert import zeros_like
from funcgrad.core.level import detached, is_differentiated, looked_at
from funcgrad.core.primitive import FUNCTIONS, Primitive, Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import DtypeError, user_line
from funcgrad.rules.gathering import (
    gather,
    gather_add,
    mask_of,
    positions_of,
    put_back,
    read_at,
    taken,
    under_mask,
    where_true,
    write_at,
)
from funcgrad.rules.indexing import place, read, repeats, settle, updated
from funcgrad.rules.spelling import holds_tracer, joined

__all__ = ["accumulate", "in_rounds"]

# The primitives


def _batched(made: Primitive) -> None:
    """Give an update its batching rule: by positions among all elements of an example."""

    @made.def_batch
    def update_batch(args: Any, batched: Any, *, index: Any) -> Any:
        x, value = args
        size = count_examples(args, batched)
        x = full_batch(x, batched[0], size)
        shape = shape_of(x)
        positions = place(shape[1:], index)
        if batched[1]:  # with all the axes of the part, so that the examples stay in front
            missing = positions.ndim - len(shape_of(value)) + 1
            value = np.reshape(value, (size, *(1,) * missing, *shape_of(value)[1:]))
        rows = np.reshape(x, (size, math.prod(shape[1:])))
        return np.reshape(made.bind(rows, value, index=(slice(None), positions)), shape)


@primitive()
def index_add(x, value, *, index):
    """A copy of `x` with `value` added at `index`; elements named twice add up."""
    out = x.copy("K") if isinstance(x, np.ndarray) else np.copy(x)
    if repeats(index):
        np.add.at(out, index, value)
    else:
        out[index] += value
    return out


@index_add.def_jvp
def index_add_jvp(primals, tangents, out, *, index):
    x_dot, value_dot = tangents
    if value_dot is None:
        return x_dot
    if x_dot is None:
        x_dot = zeros_like(primals[0])
    return index_add.bind(x_dot, value_dot, index=index)


@index_add.def_vjp
def index_add_vjp(primals, out, *, index):
    def index_add_pullback_x(out_bar):
        return out_bar

    def index_add_pullback_value(out_bar):
        return read(out_bar, index)

    return index_add_pullback_x, index_add_pullback_value


_batched(index_add)


def _added(x, value, index):
    return index_add.bind(x, value, index=settle(index))


@index_add.def_samples
def index_add_samples(rng):
    yield Sample(rng.normal(size=4), 1.5, [0, 2, 0], fun=_added)
    yield Sample(rng.normal(size=4), rng.normal(size=3), [0, 2, 0], fun=_added)
    yield Sample(rng.normal(size=4), rng.normal(size=()), [0, 2, 0], fun=_added)
    yield Sample(rng.normal(size=(3, 4)), rng.normal(size=4), slice(0, 2), fun=_added)


def _extreme(ufunc, name):
    def forward(x, value, *, index):
        out = x.copy("K") if isinstance(x, np.ndarray) else np.copy(x)
        ufunc.at(out, index, value)
        return out

    forward.__doc__ = f"A copy of `x` with ``{ufunc.__name__}`` of it and `value` at `index`."
    made = primitive(name=name)(forward)

    def shares(primals, out, index):
        """Who attained the result, and how many did: they share evenly."""
        x, value = map(detached, primals)
        out = detached(out)
        at = read(out, index)
        x_took = np.equal(x, out) | np.isnan(out)
        value_took = np.equal(value, at) | np.isnan(at)
        dtype = dtype_of(out)
        count = index_add.bind(x_took.astype(dtype), value_took.astype(dtype), index=index)
        return x_took, value_took, count

    @made.def_jvp
    def extreme_jvp(primals, tangents, out, *, index):
        x_dot, value_dot = tangents
        x_took, value_took, count = shares(primals, out, index)
        out_dot = np.zeros_like(detached(out)) if x_dot is None else np.where(x_took, x_dot, 0)
        if value_dot is not None:
            out_dot = index_add.bind(out_dot, np.where(value_took, value_dot, 0), index=index)
        return out_dot / count

    @made.def_vjp
    def extreme_vjp(primals, out, *, index):
        x_took, value_took, count = shares(primals, out, index)

        def extreme_pullback_x(out_bar):
            return np.where(x_took, out_bar / count, 0)

        def extreme_pullback_value(out_bar):
            share = read(out_bar / count, index)
            return np.where(value_took, share, 0)

        return extreme_pullback_x, extreme_pullback_value

    _batched(made)

    def bound(x, value, index):
        return made.bind(x, value, index=settle(index))

    @made.def_samples
    def extreme_samples(rng):
        yield Sample(rng.normal(size=4), rng.normal(size=3), [0, 2, 0], fun=bound, complex=False)
        yield Sample(rng.normal(size=(3, 4)), rng.normal(size=4), 1, fun=bound, complex=False)
        yield Sample(np.zeros(2), np.zeros(3), [0, 0, 1], fun=bound, kinks=True, complex=False)

    return made


index_maximum = _extreme(np.maximum, "index_maximum")
index_minimum = _extreme(np.minimum, "index_minimum")


# ufunc.at

_PRIMITIVES: dict[Any, Any] = {
    np.add: index_add,
    np.maximum: index_maximum,
    np.minimum: index_minimum,
}


def accumulate(ufunc: np.ufunc, x: Any, index: Any, value: Any, *, unique: bool = False) -> Any:
    """Return a copy of `x` after ``ufunc.at(x, index, value)``.

    Parameters
    ----------
    ufunc : numpy.ufunc
        Of two arguments.
    x, index, value
        As for `numpy.ufunc.at`.
    unique : bool
        The caller knows that `index` names no element twice.
    """
    value = joined(value)
    if holds_tracer(index):
        return _accumulate_at(ufunc, x, index, value, unique)
    index = settle(index)
    primitive = _PRIMITIVES.get(ufunc)
    if ufunc is np.subtract:
        primitive, value = index_add, np.negative(value)
    if primitive is not None:
        if not hasattr(value, "dtype"):
            value = np.asarray(value)[()] if isinstance(value, list | tuple) else value
        _check_cast(ufunc, x, value)
        return primitive.bind(x, value, index=index)

    def operate(part: Any, operand: Any) -> Any:
        return ufunc(part, operand)

    return in_rounds(operate, x, index, value, unique=unique)


def in_rounds(
    operate: Callable[..., Any], x: Any, index: Any, *values: Any, unique: bool = False
) -> Any:
    """Return a copy of `x` with ``operate(x[index], *values)`` at `index`, as often as named."""
    if holds_tracer(index):
        return _in_rounds_at(operate, x, index, values, unique)
    index = settle(index)
    if unique or not repeats(index):
        return updated(x, operate(x[index], *values), index)
    shape = shape_of(x)
    places = place(shape, index)
    flat = places.reshape(-1)
    order = np.argsort(flat, kind="stable")
    start = np.flatnonzero(np.diff(flat[order], prepend=-1))  # where another element begins
    rank = np.empty(flat.size, np.intp)
    rank[order] = np.arange(flat.size) - np.repeat(start, np.diff(start, append=flat.size))
    rounds = int(rank.max(initial=-1)) + 1
    if rounds <= 1:
        return updated(x, operate(x[index], *values), index)
    spread = [np.reshape(np.broadcast_to(value, places.shape), -1) for value in values]
    y = np.reshape(x, -1)
    for number in range(rounds):
        now = np.flatnonzero(rank == number)
        y = updated(y, operate(y[flat[now]], *(value[now] for value in spread)), flat[now])
    return np.reshape(y, shape)


def _accumulate_at(ufunc: np.ufunc, x: Any, index: Any, value: Any, unique: bool) -> Any:
    """Do as `accumulate` for an index that differs from example to example."""
    if ufunc in (np.add, np.subtract) and mask_of(index) is None:
        _check_cast(ufunc, x, value if hasattr(value, "dtype") else np.asarray(value)[()])
        value = np.negative(value) if ufunc is np.subtract else value
        shape, positions = shape_of(x), positions_of(shape_of(x), index)
        value = np.broadcast_to(value, shape_of(positions)).astype(dtype_of(x), copy=False)
        added = gather_add.bind(value, positions, size=math.prod(shape))
        return x + np.reshape(added, shape)

    def operate(part: Any, operand: Any) -> Any:
        return ufunc(part, operand)

    return _in_rounds_at(operate, x, index, (value,), unique)


def _in_rounds_at(
    operate: Callable[..., Any], x: Any, index: Any, values: tuple[Any, ...], unique: bool
) -> Any:
    """Do as `in_rounds` for an index that differs from example to example.

    There are as many rounds as the example needs that names an element most often. Others have
    nothing left to do by then: they work on an element more, behind the last.
    """
    mask = mask_of(index)
    if mask is not None:
        return _where_mask(operate, x, mask, values)
    shape = shape_of(x)
    positions = positions_of(shape, index)
    size, count = math.prod(shape), math.prod(shape_of(positions))
    rows = np.sort(
        np.reshape(looked_at(positions, "which elements are named twice"), (-1, count)), axis=1
    )
    if unique or np.all(np.diff(rows, axis=1)):
        return write_at(x, operate(read_at(x, index), *values), index)
    part = shape_of(positions)
    spread = [np.reshape(np.broadcast_to(joined(value), part), (count,)) for value in values]
    positions = np.reshape(positions, (count,))
    rank = _times_before(positions, count)
    y = np.reshape(x, (size,))
    for number in range(int(np.max(looked_at(rank, "how often an element is named"))) + 1):
        now = np.where(np.equal(rank, number), positions, size)
        longer = np.concatenate([y, np.ones(1, dtype_of(x))])
        y = write_at(longer, operate(gather.bind(longer, now), *spread), now)[:size]
    return np.reshape(y, shape)


def _times_before(positions: Any, count: int) -> Any:
    """Return how often each position has been named before, in a sequence of `count`."""
    order = np.argsort(positions, kind="stable")
    found = taken(positions, order, 0)
    numbers = np.arange(count)
    new = np.concatenate([np.ones(1, bool), np.not_equal(found[1:], found[:-1])])
    start = np.maximum.accumulate(np.where(new, numbers, 0))
    return put_back(numbers - start, order, 0, count, unique=True)


def _where_mask(operate: Callable[..., Any], x: Any, mask: Any, values: tuple[Any, ...]) -> Any:
    """Return a copy of `x` after the operation where `mask` is true, computed everywhere."""
    # Elements that are not to change are left out of it, as it may warn of them.
    chosen = where_true(np.ones_like(detached(x)), x, mask)
    values = tuple(under_mask(x, joined(value), mask) for value in values)
    return where_true(x, operate(chosen, *values), mask)


def _check_cast(ufunc: np.ufunc, x: Any, value: Any) -> None:
    kind = dtype_of(x)
    new = np.result_type(kind, dtype_of(value) if hasattr(value, "dtype") else value)
    lost = kind.kind not in "fc" and is_differentiated(value)
    if lost or not np.can_cast(new, kind, "same_kind"):
        raise DtypeError(
            f"{ufunc.__name__} of {dtype_of(value)} values cannot be put into an array of {kind}",
            where=user_line(),
            fix=f"convert the array first: y = y.astype({str(new)!r})",
        )


def _ufunc_at(ufunc: np.ufunc, handle: Any, index: Any, *values: Any) -> None:
    """`numpy.ufunc.at` on a traced array that was made inside the function."""
    if ufunc.nin == 2:
        handle[...] = accumulate(ufunc, handle, index, *values)
    else:
        handle[...] = in_rounds(ufunc, handle, index)


FUNCTIONS[np.ufunc.at] = _ufunc_at
