"""Functions of large batches, a part of the batch at a time."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.errors import ArgumentError, DtypeError, ShapeError, describe, user_line
from funcgrad.optim.leaves import is_trainable, like_leaf

__all__ = ["AccumulationType", "microbatch"]


class AccumulationType(enum.Enum):
    """What becomes of the results of the parts of a batch.

    Examples
    --------
    >>> AccumulationType.MEAN
    <AccumulationType.MEAN: 'mean'>
    """

    MEAN = "mean"
    SUM = "sum"
    RUNNING_MEAN = "running mean"
    CONCAT = "concat"


def microbatch(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    microbatch_size: int | None,
    accumulator: Any = AccumulationType.SUM,
    *,
    argnames: str | Sequence[str] = (),
    in_axes: int | Sequence[int] = 0,
    num_real_microbatches: int | None = None,
) -> Callable[..., Any]:
    """Make a function of a large batch that is computed part by part, with less memory.

    Parameters
    ----------
    fun : callable
        Function of a batch, such as ``grad(loss)``.
    argnums : int or sequence of int
        The positional arguments that are batches: pytrees of arrays.
    microbatch_size : int, optional
        How many examples a part has; it must divide the batch. None returns `fun`.
    accumulator : AccumulationType, or pytree of them
        What becomes of the results: their ``SUM``, their ``MEAN``, their ``RUNNING_MEAN`` over the
        parts that were computed, or ``CONCAT``, all of them along the first axis. Like the result,
        or with one for a whole subtree.
    argnames : str or sequence of str
        The keyword arguments that are batches.
    in_axes : int or sequence of int
        The axes that count the examples: one for all, or one for each argument.
    num_real_microbatches : int, optional
        Compute only so many parts.

    Returns
    -------
    callable
        Takes the arguments of `fun`. Part ``i`` of ``n`` has the examples ``i, i + n, i + 2 n...``.

    Raises
    ------
    ShapeError
        When called: batches differ in size, or the parts do not divide them.
    DtypeError
        When called: a mean of what is no floating-point number.
    ArgumentError
        When called: there is no such accumulator.

    Examples
    --------
    >>> import numpy as np
    >>> total = microbatch(lambda x: np.sum(x**2), argnums=0, microbatch_size=2)
    >>> float(total(np.arange(6.0)))
    55.0
    """
    if microbatch_size is None:
        return fun
    size: int = microbatch_size
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
    places: tuple[int | str, ...] = (*numbers, *names)
    axes = (in_axes,) * len(places) if isinstance(in_axes, int) else tuple(in_axes)

    def parted(*args: Any, **kwargs: Any) -> Any:
        batches = [args[at] if isinstance(at, int) else kwargs[at] for at in places]
        count = _count_parts(batches, axes, size)
        real = count if num_real_microbatches is None else num_real_microbatches
        results = []
        for i in range(real):
            own_args, own_kwargs = list(args), dict(kwargs)
            for at, batch, axis in zip(places, batches, axes, strict=True):
                part = tree.map(lambda x, i=i, axis=axis: _part(x, i, count, axis), batch)
                if isinstance(at, int):
                    own_args[at] = part
                else:
                    own_kwargs[at] = part
            results.append(fun(*own_args, **own_kwargs))
        return _accumulated(accumulator, results, count)

    return parted


def _count_parts(batches: list[Any], axes: Sequence[int], size: int) -> int:
    sizes = {
        leaf.shape[axis]
        for batch, axis in zip(batches, axes, strict=True)
        for leaf in tree.leaves(batch)
    }
    if len(sizes) != 1:
        raise ShapeError(
            f"batches must have the same number of examples, got {sorted(sizes)}",
            where=user_line(),
            fix="give the axes that count the examples: in_axes=(0, 1), say",
        )
    (examples,) = sizes
    if examples % size:
        raise ShapeError(
            f"parts of {size} do not divide a batch of {examples}",
            where=user_line(),
            fix="choose a microbatch_size that divides the batch, or pad the batch",
        )
    return int(examples // size)


def _part(x: Any, i: int, count: int, axis: int) -> Any:
    return x[(slice(None),) * (axis % x.ndim) + (slice(i, None, count),)]


def _accumulated(accumulator: Any, results: list[Any], count: int) -> Any:
    kinds, treedef = tree.flatten(accumulator)
    columns = [treedef.flatten_up_to(result) for result in results]
    news = []
    for i, kind in enumerate(kinds):
        if not isinstance(kind, AccumulationType):
            raise ArgumentError(
                f"an accumulator must be an AccumulationType, got {describe(kind)}",
                where=user_line(),
                fix="write optim.AccumulationType.SUM",
            )
        parts = [column[i] for column in columns]
        news.append(tree.map(lambda *leaves, kind=kind: _merged(kind, leaves, count), *parts))
    return tree.unflatten(treedef, news)


def _merged(kind: AccumulationType, leaves: tuple[Any, ...], count: int) -> Any:
    first = leaves[0]
    if kind is AccumulationType.CONCAT:
        # The parts are interleaved; those that were not computed are zeros.
        missing = [np.zeros_like(first)] * (count - len(leaves))
        stacked = np.stack([*leaves, *missing], axis=1)
        return np.reshape(stacked, (-1, *np.shape(first)[1:]))
    if kind is not AccumulationType.SUM and not is_trainable(first):
        raise DtypeError(
            "a mean is of floating-point numbers",
            where=f"{user_line()}: the function returns {describe(first)}",
            fix="use AccumulationType.SUM for it",
        )
    total = first
    for leaf in leaves[1:]:
        total = total + leaf
    if kind is AccumulationType.MEAN:
        total = total / count
    elif kind is AccumulationType.RUNNING_MEAN:
        total = total / len(leaves)
    return like_leaf(total, first)
