"""Exchanges: how the examples of a `vmap` get at each other's values, by the name of its axis.

As in `funcgrad.transforms.collectives`, the operations themselves are in
`funcgrad.transforms.across`: along one new axis, or from one example to another. What is joined, or
dealt out, along axes that there are already is a matter of shapes, before or after.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from funcgrad.core.zero import shape_of
from funcgrad.errors import ArgumentError, ShapeError, describe, user_line
from funcgrad.transforms import across
from funcgrad.transforms.axis_names import Axes, vmaps_of
from funcgrad.transforms.collectives import each_leaf, size_of

__all__ = ["all_gather", "all_to_all", "ppermute", "pshuffle", "psum_scatter"]


def all_gather(x: Any, axis_name: Any, *, axis: int = 0, tiled: bool = False) -> Any:
    """Collect the values of all examples of a `vmap` in one array.

    Parameters
    ----------
    x : pytree of array_like
        What to collect: each example's own, or the same for all.
    axis_name : hashable or tuple of hashable
        The `axis_name` of the vmap, or several of nested ones: then the last varies fastest.
    axis : int
        Where in the result the examples are to be.
    tiled : bool
        Join the arrays along their own `axis`, instead of stacking them along a new one.

    Returns
    -------
    pytree of ndarray
        The same for all examples.

    Raises
    ------
    AxisNameError, ArgumentError
        As for `psum`.

    See Also
    --------
    psum_scatter : its transpose.

    Examples
    --------
    How many examples are smaller:

    >>> import numpy as np
    >>> import funcgrad as fg
    >>> rank = fg.vmap(lambda x: np.sum(fg.all_gather(x, "i") < x), axis_name="i")
    >>> rank(np.array([2.5, 0.5, 1.5]))
    array([2, 0, 1])
    """
    traces = vmaps_of(axis_name, "all_gather")

    def gather(leaf: Any) -> Any:
        shape = shape_of(leaf)
        at = normalize_axis_index(axis, len(shape) + (not tiled))
        made = leaf
        for trace in reversed(traces):
            made = across.all_gather.bind(made, trace=trace, axis=at)
        joined = (size_of(traces) * shape[at],) if tiled else (size_of(traces),)
        return np.reshape(made, (*shape[:at], *joined, *shape[at + tiled :]))

    return each_leaf("all_gather", x, gather)


def psum_scatter(x: Any, axis_name: Any, *, scatter_dimension: int = 0, tiled: bool = False) -> Any:
    """Sum over all examples of a `vmap`, and give each of them its own part of the sum.

    Parameters
    ----------
    x : pytree of array_like
        What to sum.
    axis_name : hashable or tuple of hashable
        The `axis_name` of the vmap, or several of nested ones: then the last varies fastest.
    scatter_dimension : int
        The axis along which the sum is dealt out. It has as many elements as there are examples, or
        with `tiled` a multiple of that.
    tiled : bool
        Keep that axis, with what is dealt to one example; else each gets one element, and the axis
        is gone.

    Returns
    -------
    pytree of ndarray
        ``psum(x, axis_name)[axis_index(axis_name)]``, if `scatter_dimension` is 0.

    Raises
    ------
    ShapeError
        The axis cannot be dealt out to that many examples.
    AxisNameError, ArgumentError
        As for `psum`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.vmap(lambda x: fg.psum_scatter(x, "i"), axis_name="i")(np.array([[1, 2], [10, 20]]))
    array([11, 22])
    """
    traces = vmaps_of(axis_name, "psum_scatter")

    def scatter(leaf: Any) -> Any:
        at, made = _dealt("psum_scatter", leaf, scatter_dimension, traces, tiled)
        for trace in traces:
            made = across.psum_scatter.bind(made, trace=trace, axis=at)
        return made

    return each_leaf("psum_scatter", x, scatter)


def _dealt(collective: str, leaf: Any, axis: int, traces: Axes, tiled: bool) -> tuple[int, Any]:
    """Return `leaf` with an axis for each of the vmaps in the place of one, and where they are."""
    shape = shape_of(leaf)
    at = normalize_axis_index(axis, len(shape))
    size = size_of(traces)
    if shape[at] % size if tiled else shape[at] != size:
        raise ShapeError(
            f"{collective} deals out axis {at} of {describe(leaf)}, of size {shape[at]}, to "
            f"{size} examples",
            where=user_line(),
            fix=f"give an axis whose size is {'a multiple of ' if tiled else ''}{size}"
            + ("" if tiled or shape[at] % size else ", or tiled=True"),
        )
    rest = (shape[at] // size,) if tiled else ()
    sizes = [trace.size for trace in traces]
    return at, np.reshape(leaf, (*shape[:at], *sizes, *rest, *shape[at + 1 :]))


def all_to_all(
    x: Any, axis_name: Any, split_axis: int, concat_axis: int, *, tiled: bool = False
) -> Any:
    """Deal out an axis to all examples of a `vmap`, and collect what they deal out.

    Parameters
    ----------
    x : pytree of array_like
        What to exchange.
    axis_name : hashable
        The `axis_name` of the vmap.
    split_axis : int
        The axis that is dealt out. It has as many elements as there are examples, or with `tiled` a
        multiple of that.
    concat_axis : int
        Where in the result the examples are that it came from.
    tiled : bool
        Keep the axis that is dealt out, with the part for one example, and join what is collected
        along an axis that there is; else the one is gone, and the other new.

    Returns
    -------
    pytree of ndarray

    Raises
    ------
    ShapeError
        The axis cannot be dealt out to that many examples.
    AxisNameError, ArgumentError
        As for `psum`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> x = np.array([[11, 12], [21, 22]])
    >>> fg.vmap(lambda x: fg.all_to_all(x, "i", 0, 0), axis_name="i")(x)
    array([[11, 21],
           [12, 22]])
    """
    traces = _one_axis("all_to_all", axis_name)

    def exchange(leaf: Any) -> Any:
        ndim = len(shape_of(leaf))
        split, dealt = _dealt("all_to_all", leaf, split_axis, traces, tiled)
        concat = normalize_axis_index(concat_axis, ndim)
        made = across.all_to_all.bind(dealt, trace=traces[0], split_axis=split, concat_axis=concat)
        if not tiled:
            return made
        shape = shape_of(made)
        joined = shape[concat] * shape[concat + 1]
        return np.reshape(made, (*shape[:concat], joined, *shape[concat + 2 :]))

    return each_leaf("all_to_all", x, exchange)


def _one_axis(collective: str, axis_name: Any) -> Axes:
    traces = vmaps_of(axis_name, collective)
    if len(traces) != 1:
        raise ArgumentError(
            f"{collective} works along one axis, got {axis_name!r}",
            where=user_line(),
            fix="give one name",
        )
    return traces


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Send values from some examples of a `vmap` to others.

    Parameters
    ----------
    x : pytree of array_like
        What to send.
    axis_name : hashable
        The `axis_name` of the vmap.
    perm : sequence of pairs of int
        The number of an example that sends, and of the one that receives. No number may send, or
        receive, twice.

    Returns
    -------
    pytree of ndarray
        What each example has received; zero where nothing was sent.

    Raises
    ------
    AxisNameError
        No vmap around has an axis of that name.
    ArgumentError
        `perm` does not consist of pairs of examples, or one sends or receives twice; or only some
        of the examples come here, see `psum`.

    Examples
    --------
    Differences from the neighbour on the left, around the ring:

    >>> import numpy as np
    >>> import funcgrad as fg
    >>> def difference(x):
    ...     n = fg.axis_size("i")
    ...     return x - fg.ppermute(x, "i", [(k, (k + 1) % n) for k in range(n)])
    >>> fg.vmap(difference, axis_name="i")(np.array([1.0, 4.0, 9.0]))
    array([-8.,  3.,  5.])
    """
    (trace,) = _one_axis("ppermute", axis_name)
    pairs = _checked(perm, trace.size)
    return each_leaf(
        "ppermute", x, lambda leaf: across.ppermute.bind(leaf, trace=trace, perm=pairs)
    )


def _checked(perm: Any, size: int) -> tuple[tuple[int, int], ...]:
    """Return `perm` as pairs of integers."""
    try:
        pairs = tuple([(operator.index(start), operator.index(end)) for start, end in tuple(perm)])
    except (TypeError, ValueError):
        raise ArgumentError(
            f"perm of ppermute must be a list of pairs of int, got {describe(perm)}",
            where=user_line(),
            fix="write [(0, 1), (1, 2)]: from example 0 to 1, and from 1 to 2",
        ) from None
    for place, what in enumerate(("sends", "receives")):
        numbers = [pair[place] for pair in pairs]
        for number in numbers:
            if not 0 <= number < size:
                raise ArgumentError(
                    f"perm of ppermute names example {number}, and there are {size}",
                    where=user_line(),
                    fix=f"give numbers from 0 to {size - 1}",
                )
            if numbers.count(number) > 1:
                raise ArgumentError(
                    f"perm of ppermute has an example that {what} twice: number {number}",
                    where=user_line(),
                    fix="name each sender once and each receiver once; all_gather gives all "
                    "examples the values of all",
                )
    return pairs


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Put the values of all examples of a `vmap` into another order.

    Parameters
    ----------
    x : pytree of array_like
        What to reorder.
    axis_name : hashable
        The `axis_name` of the vmap.
    perm : sequence of int
        For each example the number of the one whose value it gets.

    Returns
    -------
    pytree of ndarray

    Raises
    ------
    AxisNameError, ArgumentError
        As for `ppermute`; `perm` does not name every example once.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> x = np.array([10.0, 20.0, 30.0])
    >>> fg.vmap(lambda x: fg.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(x)
    array([30., 10., 20.])
    """
    (trace,) = _one_axis("pshuffle", axis_name)
    try:
        sources = [operator.index(source) for source in perm]
    except TypeError:
        sources = []
    if sorted(sources) != list(range(trace.size)):
        raise ArgumentError(
            f"perm of pshuffle must name each of the {trace.size} examples once, "
            f"got {describe(perm)}",
            where=user_line(),
            fix="give a permutation of range(n), or pairs to ppermute",
        )
    pairs = tuple(zip(sources, range(trace.size), strict=True))
    return each_leaf(
        "pshuffle", x, lambda leaf: across.ppermute.bind(leaf, trace=trace, perm=pairs)
    )
