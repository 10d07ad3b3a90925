"""Sums, means and extremes over the examples of a `vmap`, by the name of its axis.

Under ``vmap(f, axis_name="i")`` the function `f` sees one example, and ``psum(x, "i")`` is the sum
of `x` over all of them. The operations themselves, with their rules, are in
`funcgrad.transforms.across`; here they are applied to pytrees, and along several axes. Those by
which examples exchange values are in `funcgrad.transforms.exchanges`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core.boxed import Boxed
from funcgrad.core.constant import assignable
from funcgrad.core.tracer import Tracer
from funcgrad.errors import ArgumentError, describe, user_line
from funcgrad.transforms import across
from funcgrad.transforms.axis_names import Axes, vmaps_of

__all__ = ["axis_index", "axis_size", "each_leaf", "pmax", "pmean", "pmin", "psum", "size_of"]


def each_leaf(collective: str, x: Any, operation: Callable[[Any], Any]) -> Any:
    """Apply an operation to every leaf, of which each must be an array or a number."""

    def apply(path: Any, leaf: Any) -> Any:
        number = isinstance(leaf, bool | int | float | complex)
        if not number and (isinstance(leaf, Boxed) or not hasattr(leaf, "dtype")):
            where = tree.keystr(path)
            raise ArgumentError(
                f"{collective} takes arrays and numbers, got {describe(leaf)}",
                where=f"{'the leaf ' + where + ' of ' if where else ''}its argument, {user_line()}",
                fix="pass the bits of the keys: funcgrad.random.key_data(keys)"
                if isinstance(leaf, Boxed)
                else "leave that leaf out, as funcgrad.tree.partition does",
            )
        made = operation(leaf)
        # So that it can be indexed by what differs from example to example.
        return assignable(made) if type(made) is np.ndarray else made

    return tree.map_with_path(apply, x)


def psum(x: Any, axis_name: Any) -> Any:
    """Sum over all examples of a `vmap`.

    Parameters
    ----------
    x : pytree of array_like
        What to sum: each example's own, or the same for all.
    axis_name : hashable or tuple of hashable
        The `axis_name` of the vmap, or several of nested ones.

    Returns
    -------
    pytree of ndarray
        The sums, the same for all examples: outside of the derivatives they are plain arrays. Small
        integers and truth values become ``int64``, as in `numpy.sum`. A Python number is multiplied
        by the number of examples.

    Raises
    ------
    AxisNameError
        No vmap around has an axis of that name.
    ArgumentError
        Only some of the examples come here: in a branch of `cond` whose predicate differs from
        example to example, or in a `while_loop` that has ended for some.

    Notes
    -----
    Inside of the vmap, ``grad(lambda x: psum(f(x), "i"))`` is the gradient of what *all* examples
    return, as in JAX: they all return the sum, so that it is the number of examples times the
    gradient of one. Differentiate `pmean` for the gradient of the mean. Outside of the vmap there
    is only one way to read a derivative.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> x = np.array([1.0, 2.0, 5.0])
    >>> fg.vmap(lambda x: x / fg.psum(x, "i"), axis_name="i")(x)
    array([0.125, 0.25 , 0.625])
    >>> fg.vmap(lambda x: fg.psum(x, "i"), axis_name="i", out_axes=None)(x)
    np.float64(8.0)
    """
    traces = vmaps_of(axis_name, "psum")
    return each_leaf("psum", x, lambda leaf: _psum(leaf, traces))


def _psum(leaf: Any, traces: Axes) -> Any:
    if isinstance(leaf, bool | int | float | complex) and not isinstance(leaf, np.generic):
        return leaf * size_of(traces)  # no matter which examples are here
    for trace in reversed(traces):
        leaf = across.psum.bind(leaf, trace=trace)
    return leaf


def size_of(traces: Axes) -> int:
    """Return the number of examples of several vmaps, one in the other."""
    return math.prod([trace.size for trace in traces])


def pmean(x: Any, axis_name: Any) -> Any:
    """Average over all examples of a `vmap`.

    Parameters
    ----------
    x : pytree of array_like
        What to average: each example's own, or the same for all.
    axis_name : hashable or tuple of hashable
        The `axis_name` of the vmap, or several of nested ones.

    Returns
    -------
    pytree of ndarray
        ``psum(x, axis_name)`` divided by the number of examples, the same for all of them.

    Raises
    ------
    AxisNameError, ArgumentError
        As for `psum`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> def normalize(x):  # over the batch
    ...     mean = fg.pmean(x, "batch")
    ...     return (x - mean) / np.sqrt(fg.pmean((x - mean) ** 2, "batch"))
    >>> fg.vmap(normalize, axis_name="batch")(np.array([1.0, 1.0, 5.0, 5.0]))
    array([-1., -1.,  1.,  1.])
    """
    traces = vmaps_of(axis_name, "pmean")
    size = size_of(traces)
    return each_leaf("pmean", x, lambda leaf: _psum(leaf, traces) / size)


def pmax(x: Any, axis_name: Any) -> Any:
    """Take the maximum over all examples of a `vmap`, element by element.

    Parameters
    ----------
    x : pytree of array_like
        Of what: each example's own, or the same for all.
    axis_name : hashable or tuple of hashable
        The `axis_name` of the vmap, or several of nested ones.

    Returns
    -------
    pytree of ndarray
        The maxima, the same for all examples. Examples that share a maximum share its derivative in
        equal parts.

    Raises
    ------
    AxisNameError, ArgumentError
        As for `psum`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.vmap(lambda x: x / fg.pmax(x, "i"), axis_name="i")(np.array([1.0, 4.0, 2.0]))
    array([0.25, 1.  , 0.5 ])
    """
    return _extreme("pmax", across.pmax, x, axis_name)


def pmin(x: Any, axis_name: Any) -> Any:
    """Take the minimum over all examples of a `vmap`, element by element.

    Parameters
    ----------
    x : pytree of array_like
        Of what: each example's own, or the same for all.
    axis_name : hashable or tuple of hashable
        The `axis_name` of the vmap, or several of nested ones.

    Returns
    -------
    pytree of ndarray
        The minima, the same for all examples. Examples that share a minimum share its derivative in
        equal parts.

    Raises
    ------
    AxisNameError, ArgumentError
        As for `psum`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.vmap(lambda x: x - fg.pmin(x, "i"), axis_name="i")(np.array([3.0, 1.0, 2.0]))
    array([2., 0., 1.])
    """
    return _extreme("pmin", across.pmin, x, axis_name)


def _extreme(name: str, primitive: Any, x: Any, axis_name: Any) -> Any:
    traces = vmaps_of(axis_name, name)

    def extreme(leaf: Any) -> Any:
        if not traces:
            return leaf
        # In one step, so that all that tie share equally: along the other axes after gathering.
        for trace in traces[1:]:
            leaf = across.all_gather.bind(leaf, trace=trace, axis=0)
        axes = tuple(range(len(traces) - 1))
        return primitive.bind(leaf, trace=traces[0], axes=axes)

    return each_leaf(name, x, extreme)


def axis_index(axis_name: Any) -> Any:
    """Return the number of the example along an axis of `vmap`.

    Parameters
    ----------
    axis_name : hashable or tuple of hashable
        The `axis_name` of the vmap, or several of nested ones: then the last varies fastest.

    Returns
    -------
    int array
        A scalar, from 0 to the number of examples less 1.

    Raises
    ------
    AxisNameError
        No vmap around has an axis of that name.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.vmap(lambda x: x + 10 * fg.axis_index("i"), axis_name="i")(np.zeros(3))
    array([ 0., 10., 20.])
    """
    index: Any = 0
    for number, trace in enumerate(vmaps_of(axis_name, "axis_index")):
        own = Tracer(trace, np.arange(trace.size), None)
        index = index * trace.size + own if number else own
    return index


def axis_size(axis_name: Any) -> int:
    """Return the number of examples along an axis of `vmap`.

    Parameters
    ----------
    axis_name : hashable or tuple of hashable
        The `axis_name` of the vmap, or several of nested ones: then of all combinations.

    Returns
    -------
    int

    Raises
    ------
    AxisNameError
        No vmap around has an axis of that name.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.vmap(lambda x: x / fg.axis_size("i"), axis_name="i")(np.array([2.0, 4.0]))
    array([1., 2.])
    """
    return size_of(vmaps_of(axis_name, "axis_size"))
