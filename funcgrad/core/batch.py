"""Batching rules that many primitives share, and what other batching rules are made of.

A batching rule carries an operation out on many examples at once: it is called with the arguments,
of which some have the examples along their first axis, and returns the result with the examples
along its first axis. So the work is in keeping the first axis first: an argument with fewer axes
than another gets axes of length 1 *behind* it, and axes that the caller counted move on by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from funcgrad.core.primitive import Primitive
from funcgrad.core.zero import dtype_of, shape_of

__all__ = [
    "align",
    "along",
    "broadcasting",
    "by_loop",
    "count_examples",
    "full_batch",
    "lacks_axes",
    "loop",
    "ndim_of",
    "shift",
    "together",
    "try_one",
]


def count_examples(args: Sequence[Any], batched: Sequence[bool]) -> int:
    """Return the number of examples."""
    return next(shape_of(x)[0] for x, is_batched in zip(args, batched, strict=True) if is_batched)


def ndim_of(x: Any, is_batched: bool) -> int:
    """Return the number of axes of one example."""
    return len(shape_of(x)) - is_batched


def full_batch(x: Any, is_batched: bool, size: int) -> Any:
    """Return `x` with the examples along its first axis, all the same if it has none."""
    return x if is_batched else np.broadcast_to(x, (size, *shape_of(x)))


def together(args: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    """Return `args` so that all have the examples along their first axis."""
    size = count_examples(args, batched)
    return [full_batch(x, is_batched, size) for x, is_batched in zip(args, batched, strict=True)]


def shift(axis: Any, ndim: int) -> Any:
    """Return the axis, or axes, of an array that holds examples of `ndim` axes.

    Parameters
    ----------
    axis : int, tuple of int, or None
        As counted in one example; None for all of them.
    ndim : int
        The number of axes of one example.

    Raises
    ------
    numpy.exceptions.AxisError
        One example has no such axis.
    """
    if axis is None:
        return tuple(range(1, ndim + 1))
    if isinstance(axis, tuple):
        return tuple([number + 1 for number in normalize_axis_tuple(axis, ndim)])
    return normalize_axis_index(axis, ndim) + 1


def lacks_axes(args: Sequence[Any], batched: Sequence[bool], core: Sequence[int]) -> bool:
    """Tell whether one example has fewer axes than the function works along.

    The axis of the examples would be taken for one of a matrix: such a rule leaves it to `loop`,
    which raises what NumPy raises, or returns what it makes of them.
    """
    return any(
        ndim_of(x, is_batched) < own
        for x, is_batched, own in zip(args, batched, core, strict=False)
    )


def align(args: Sequence[Any], batched: Sequence[bool], core: Sequence[int] = ()) -> list[Any]:
    """Return `args` so that they broadcast against each other example by example.

    Parameters
    ----------
    args : sequence of array_like
        Arrays that broadcast against each other, but for their last axes.
    batched : sequence of bool
        Which of them have the examples along their first axis.
    core : sequence of int, optional
        How many of the last axes of each do not take part in broadcasting.
    """
    core = core or (0,) * len(args)
    outer = [
        ndim_of(x, is_batched) - own for x, is_batched, own in zip(args, batched, core, strict=True)
    ]
    rank = max(outer)
    aligned = []
    for x, is_batched, have in zip(args, batched, outer, strict=True):
        if is_batched and have < rank:
            size, *rest = shape_of(x)
            x = np.reshape(x, (size, *(1,) * (rank - have), *rest))
        aligned.append(x)
    return aligned


def broadcasting(primitive: Primitive, *core: int) -> None:
    """Give a batching rule to a function whose array arguments broadcast against each other.

    Parameters
    ----------
    primitive : Primitive
        Its parameters count no axes, or count them from the end.
    *core : int
        How many of the last axes of each argument it works along, as a generalized ufunc does
        (``core=2`` for matrices); by default none.
    """

    def broadcasting_batch(args: Any, batched: Any, **params: Any) -> Any:
        if lacks_axes(args, batched, core):
            return loop(primitive.bind, args, batched, params)
        return primitive.bind(*align(args, batched, core), **params)

    primitive.def_batch(broadcasting_batch)


def along(primitive: Primitive, name: str = "axis") -> None:
    """Give a batching rule to a function of one array, along the axis or axes that `name` counts.

    None means the array with all its elements in one row.
    """

    def along_batch(args: Any, batched: Any, **params: Any) -> Any:
        (x,) = args
        if params[name] is None:
            size, *rest = shape_of(x)
            x = np.reshape(x, (size, math.prod(rest)))
            params[name] = -1
        else:
            params[name] = shift(params[name], len(shape_of(x)) - 1)
        return primitive.bind(x, **params)

    primitive.def_batch(along_batch)


def by_loop(primitive: Primitive) -> None:
    """Give a batching rule to a function that NumPy can only compute example by example."""

    def loop_batch(args: Any, batched: Any, **params: Any) -> Any:
        return loop(primitive.bind, args, batched, params)

    primitive.def_batch(loop_batch)


def loop(fun: Callable[..., Any], args: Any, batched: Any, params: dict[str, Any]) -> Any:
    """Call `fun` for each example, and stack the results."""
    size = count_examples(args, batched)
    if not size:  # of what shape would the results be?
        example = [
            _any_example(shape_of(x)[1:], dtype_of(x)) if is_batched else x
            for x, is_batched in zip(args, batched, strict=True)
        ]
        out = fun(*example, **params)
        return tuple(map(_none, out)) if isinstance(out, tuple) else _none(out)
    outs = [
        fun(
            *[x[i] if is_batched else x for x, is_batched in zip(args, batched, strict=True)],
            **params,
        )
        for i in range(size)
    ]
    if isinstance(outs[0], tuple):
        return tuple(map(np.stack, zip(*outs, strict=True)))
    return np.stack(outs)


def try_one(primitive: Primitive, args: Any, batched: Any, params: dict[str, Any]) -> None:
    """Carry the operation out on one example, to raise what NumPy raises."""
    loop(
        primitive.bind,
        [x[:1] if is_batched else x for x, is_batched in zip(args, batched, strict=True)],
        batched,
        params,
    )


def _any_example(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return an array that hardly a function refuses: matrices are one half of the identity."""
    made = np.ones(shape, dtype)
    if len(shape) > 1:
        made = made * np.eye(shape[-2], shape[-1]).astype(dtype)
    return made / 2 if made.dtype.kind in "fc" else made


def _none(out: Any) -> Any:
    return np.zeros((0, *shape_of(out)), dtype_of(out))
