"""Samplers of entries: their order, and which of them.

One idea: without replacement, one random word an entry. The order of the words is a random order
of the entries; the order of the words made into exponential numbers and divided by the weights, or
made into Gumbel numbers and added to the logits, is that of a weighted draw. With replacement, one
draw is an integer, or the place of a uniform number among the cumulated weights.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.core.dispatch import look_at_all
from funcgrad.core.level import concrete, holds_anywhere
from funcgrad.errors import ShapeError, describe, user_line

from .arguments import parameter, shape_of, shape_tuple, untraced, wrong
from .batched import of_examples
from .continuous import to_exponential, to_gumbel, transform
from .discrete import scale
from .stream import draw, shaped

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from .arguments import Shape
    from .keys import Key

__all__ = ["categorical", "choice", "permutation"]

_FLOAT64 = np.dtype(np.float64)


def permutation(key: Key, x: Any, axis: int = 0, independent: bool = False) -> Any:
    """Put `x`, or the integers below `x`, in random order.

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    x : int or array_like
        An int `n` stands for ``np.arange(n)``. An array may be traced, and may be a duck array.
    axis : int, optional
        The axis along which to reorder.
    independent : bool, optional
        Whether every vector along `axis` gets an order of its own, rather than one for all.

    Returns
    -------
    ndarray, shape and dtype of `x`
        A reordered copy; int64 if `x` is an int.

    Raises
    ------
    ArgumentError
        `key` is not a single key, or `x` a number that is no integer.
    ShapeError
        `x` is negative.
    numpy.exceptions.AxisError
        `x` has no such axis.

    Notes
    -----
    The order of one random word an element. Two of `n` words are equal, which would favour one
    order over another, with a probability of ``n**2 / 2**65``.

    Examples
    --------
    >>> from funcgrad import random
    >>> order = random.permutation(random.key(0), 5)
    >>> sorted(order.tolist())
    [0, 1, 2, 3, 4]
    """
    x = parameter(x)
    if not shape_of(x):
        (n,) = shape_tuple(x, "permutation", "x")
        return order_of.bind(draw(key, n, "permutation"))
    shape = shape_of(x)
    axis = np.lib.array_utils.normalize_axis_index(axis, len(shape))
    n = shape[axis]
    if not independent:
        return look_at_all(np.take, x, order_of.bind(draw(key, n, "permutation")), axis)
    others = shape[:axis] + shape[axis + 1 :]
    order = order_of.bind(draw(key, prod(shape), "permutation").reshape(*others, n))
    return np.take_along_axis(x, np.moveaxis(order, -1, axis), axis)


def choice(
    key: Key,
    a: Any,
    shape: Shape = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
) -> Any:
    """Draw from the entries of `a`, or from the integers below `a`.

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    a : int or array_like
        The population; an int `n` stands for ``np.arange(n)``. An array may be traced.
    shape : int or sequence of int, optional
        How many to draw, and their arrangement.
    replace : bool, optional
        Whether an entry can be drawn more than once.
    p : array_like, shape (n,), optional
        Weights: each entry is drawn with probability ``p / sum(p)``. Equal by default; not
        differentiated.
    axis : int, optional
        The axis of `a` along which its entries lie.

    Returns
    -------
    ndarray
        Of the dtype of `a` (int64 for an int), its axis `axis` replaced by `shape`.

    Raises
    ------
    ArgumentError
        `key` is not a single key; without replacement, more entries are asked for than there are
        (of nonzero probability); `p` is negative, not finite or zero everywhere.
    ShapeError
        `shape` has a negative length, or `p` is not of shape ``(n,)``.
    TracerConversionError
        `p` is traced.

    Notes
    -----
    As in ``jax.random``, and unlike in `numpy.random.Generator.choice`, `p` need not sum to one:
    counts will do.

    Without replacement and with `p`, the entries with the smallest ``exponential / p`` are taken,
    in that order, which is the same as to draw them one after the other [1]_.

    References
    ----------
    .. [1] P. S. Efraimidis and P. G. Spirakis, "Weighted random sampling with a reservoir",
       Information Processing Letters 97, 2006.

    Examples
    --------
    >>> from funcgrad import random
    >>> k1, k2 = random.split(random.key(0))
    >>> random.choice(k1, np.array([2, 3, 5, 7]), (6,)).shape
    (6,)
    >>> sorted(random.choice(k2, 3, (2,), replace=False, p=[0.5, 0.0, 0.5]).tolist())
    [0, 2]
    """
    lengths, a = shape_tuple(shape, "choice"), parameter(a)
    if shape_of(a):
        axis = np.lib.array_utils.normalize_axis_index(axis, len(a.shape))
        (n,) = a.shape[axis : axis + 1]
    else:
        (n,) = shape_tuple(a, "choice", "a")
    count = prod(lengths)
    weights = None if p is None else _weights(p, n)
    possible = n
    if not (replace or weights is None):
        enough = np.less(np.count_nonzero(weights), count)
        if holds_anywhere(enough, "whether there are enough to draw from"):
            possible = min([np.count_nonzero(row) for row in _rows(weights)], default=n)
    if count and (n == 0 if replace else count > possible):
        raise wrong(
            f"cannot draw {count} of {possible} entries{'' if replace else ' without replacement'}",
            "shape",
            "choice",
            "give a population that is not empty"
            if replace
            else "give replace=True, or draw fewer",
        )
    index: Any
    if replace and weights is None:
        index = scale.bind(draw(key, 2 * count, "choice").reshape(2, count), np.uint64(n))
    elif weights is None:
        index = order_of.bind(draw(key, n, "choice"))[:count]
    elif replace:
        index = weighted.bind(draw(key, count, "choice"), weights)
    else:
        index = weighted_order.bind(draw(key, n, "choice"), weights)[:count]
    found = shaped(index.astype(np.int64, copy=False), lengths)
    return look_at_all(np.take, a, found, axis) if shape_of(a) else found


def categorical(
    key: Key, logits: Any, axis: int = -1, shape: Shape | None = None, replace: bool = True
) -> NDArray[np.int64]:
    """Draw indices with probabilities proportional to ``exp(logits)``.

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    logits : array_like, shape (..., n, ...)
        Logarithms of the probabilities, up to a constant; minus infinity is never drawn. May be
        traced; the result is piecewise constant in it.
    axis : int, optional
        The axis of `logits` that the categories lie along.
    shape : int or sequence of int, optional
        Shape of the result, ending in the shape of `logits` without `axis`, which is also the
        default; what stands before that are independent draws.
    replace : bool, optional
        Whether those draws can give the same index more than once.

    Returns
    -------
    ndarray of int64, shape `shape`
        Indices below `n`; a NumPy scalar if the shape is ``()``.

    Raises
    ------
    ArgumentError
        `key` is not a single key, `logits` is a number, there are no categories, or, without
        replacement, fewer than are to be drawn.
    ShapeError
        `shape` has a negative length, or does not end in the shape of `logits` without `axis`.

    Notes
    -----
    The largest of ``logits + gumbel``, which needs no normalization [1]_; without replacement the
    largest few.

    References
    ----------
    .. [1] C. J. Maddison, D. Tarlow and T. Minka, "A* sampling", NeurIPS 2014, section 2.

    Examples
    --------
    >>> from funcgrad import random
    >>> logits = np.log([[0.2, 0.8], [1.0, 1e-9]])
    >>> random.categorical(random.key(0), logits, shape=(1000, 2)).mean(axis=0).round(1)
    array([0.8, 0. ])
    """
    logits = parameter(logits)
    size = shape_of(logits)
    if not size:
        raise wrong(
            f"needs logits along an axis, got {describe(logits)}",
            "logits",
            "categorical",
            "give an array of one logit a category",
        )
    axis = np.lib.array_utils.normalize_axis_index(axis, len(size))
    batch = size[:axis] + size[axis + 1 :]
    lengths = batch if shape is None else shape_tuple(shape, "categorical")
    lead = lengths[: len(lengths) - len(batch)]
    if lead + batch != lengths:
        raise ShapeError(
            f"categorical() cannot give the shape {lengths} for logits of shape {size}",
            where=f"argument 'shape' of categorical() at {user_line()}",
            fix=f"end shape= in {batch}, the shape of logits without axis {axis}",
        )
    count = prod(lead)
    if prod(lengths) and size[axis] < (1 if replace else count):
        raise wrong(
            f"cannot draw {count} of {size[axis]} categories",
            "logits",
            "categorical",
            "give more logits, or replace=True",
        )
    full = lead + size if replace else size
    words = draw(key, prod(full), "categorical")
    noisy = logits + transform.bind(words, inverse=to_gumbel, kind=_FLOAT64).reshape(full)
    if replace:
        out: NDArray[np.int64] = np.argmax(noisy, axis=axis + len(lead))
        return out
    best = np.argsort(-np.moveaxis(noisy, axis, 0), axis=0, kind="stable")[:count]
    return np.reshape(best, lengths)


@of_examples(1)
def order_of(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the indices that sort words along the last axis, equal ones by position.

    Words are hardly ever equal, and a sort that need not be stable takes a fifth of the time.
    """
    order = np.argsort(words, axis=-1)
    ranked = np.take_along_axis(words, order, -1)
    if np.any(ranked[..., 1:] == ranked[..., :-1]):
        order = np.argsort(words, axis=-1, kind="stable")
    return order.astype(np.int64, copy=False)


@of_examples(1, 1)
def weighted(words: NDArray[np.uint64], weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return an index for each word, shape (..., count), by weights of shape (..., n)."""
    total = np.cumsum(weights, axis=-1)
    # u is in (0, 1], and where the sum does not grow there is nothing to find.
    u = 1.0 - (words >> 11) * 2.0**-53
    if not u.size:
        return np.empty(np.broadcast_shapes(total.shape[:-1], u.shape[:-1]) + u.shape[-1:], int)
    wanted = u * total[..., -1:]
    if total.ndim == 1:
        found: NDArray[np.int64] = np.searchsorted(total, wanted)
        return found
    rows = np.broadcast_to(total, (*wanted.shape[:-1], total.shape[-1]))
    out = np.empty(wanted.shape, np.int64)
    for place in np.ndindex(wanted.shape[:-1]):
        out[place] = np.searchsorted(rows[place], wanted[place])
    return out


@of_examples(1, 1)
def weighted_order(words: NDArray[np.uint64], weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the indices in the order in which they are drawn, those of weight 0 last."""
    times = transform.forward(words, inverse=to_exponential, kind=_FLOAT64)
    waiting = np.full(np.broadcast_shapes(times.shape, weights.shape), np.inf)
    np.divide(times, weights, waiting, where=weights > 0.0)
    return np.argsort(waiting, axis=-1, kind="stable")


def _weights(p: ArrayLike, n: int) -> Any:
    """Return the weights of `choice`, checked; traced if they differ between examples."""
    fix = "write funcgrad.stop_gradient(p), or draw indices by random.categorical(key, np.log(p))"
    weights = untraced(p, np.float64, "p", "choice", fix)
    if weights.shape != (n,):
        raise ShapeError(
            f"choice() got p of shape {weights.shape} for a population of {n}",
            where=f"argument 'p' of choice() at {user_line()}",
            fix="give one probability an entry, along the axis that is drawn from",
        )
    total = np.sum(weights)
    wrong_ones = (
        np.logical_not(np.greater_equal(weights, 0.0)),
        np.logical_not(np.logical_and(np.greater(total, 0.0), np.less(total, np.inf))),
    )
    if n and any(holds_anywhere(mask, "whether p are probabilities") for mask in wrong_ones):
        raise wrong(
            f"got probabilities that are negative, not finite or all zero: p={describe(weights)}",
            "p",
            "choice",
            "give probabilities of at least 0, of which one is positive",
        )
    return weights


def _rows(weights: Any) -> Any:
    """Return the weights of each example under vmap, or else the one row of them."""
    values = concrete(weights)
    return values.reshape(prod(values.shape[:-1]), values.shape[-1])
