"""Running means of powers of gradients, and counts: what adaptive optimizers are written with.

`mean`, `corrected` and their like are for one leaf, which is what the transformations use; the
public functions do the same for trees.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.errors import ArgumentError, describe, user_line
from funcgrad.optim.base import Params, Updates
from funcgrad.optim.leaves import abs_square, each_leaf, is_complex, like_leaf

__all__ = [
    "bias_correction",
    "inverse_root",
    "looking_ahead",
    "mean",
    "mean_square",
    "safe_increment",
    "update_infinity_moment",
    "update_moment",
]


def mean(g: Any, m: Any, decay: Any) -> Any:
    """Return the new running mean of a leaf."""
    return (1 - decay) * g + decay * m


def mean_square(g: Any, v: Any, decay: Any) -> Any:
    """Return the new running mean of the squares of magnitudes."""
    return (1 - decay) * abs_square(g) + decay * v


def looking_ahead(g: Any, m: Any, decay: Any, count: Any) -> Any:
    """Return the corrected mean as it would be after the same gradient once more (Nesterov)."""
    ahead, here = 1 - decay ** (count + 1), 1 - decay**count
    return decay * (m / ahead) + (1 - decay) * (g / here)


def inverse_root(x: Any, eps: Any) -> Any:
    """Return one over the root of ``x + eps``, 0 where x is 0."""
    positive = x > 0
    return np.where(positive, 1 / np.sqrt(np.where(positive, x + eps, 1)), 0)


def update_moment(updates: Updates, moments: Params, decay: Any, order: Any) -> Params:
    """Return the new running means of a power of the gradients.

    Parameters
    ----------
    updates : pytree
        The gradients; where they are None the mean stays.
    moments : pytree
        The means so far.
    decay : float
        What remains of a mean.
    order : float
        The power.

    Returns
    -------
    pytree
        ``(1 - decay) * g ** order + decay * moment``.

    Examples
    --------
    >>> update_moment({"w": 2.0}, {"w": 8.0}, decay=0.5, order=2)
    {'w': 6.0}
    """

    def step(g: Any, m: Any) -> tuple[Any, Any]:
        return g, mean(g**order, m, decay)

    return each_leaf(step, updates, moments)[1]


def update_infinity_moment(updates: Updates, moments: Params, decay: Any, eps: Any) -> Params:
    """Return the new decaying maxima of the magnitudes of the gradients.

    Parameters
    ----------
    updates : pytree
        The gradients; where they are None the maximum stays.
    moments : pytree
        The maxima so far.
    decay : float
        What remains of a maximum.
    eps : float
        Added to magnitudes.

    Returns
    -------
    pytree
        ``maximum(abs(g) + eps, decay * moment)``.

    Examples
    --------
    >>> update_infinity_moment({"w": -2.0}, {"w": 8.0}, decay=0.5, eps=0.0)
    {'w': 4.0}
    """

    def step(g: Any, m: Any) -> tuple[Any, Any]:
        return g, np.maximum(abs(g) + eps, decay * m)

    return each_leaf(step, updates, moments)[1]


def bias_correction(moment: Params, decay: Any, count: Any) -> Params:
    """Make up for running means having started at zero.

    Parameters
    ----------
    moment : pytree
        The means.
    decay : float
        What remained of them at each step.
    count : int
        The number of steps done.

    Returns
    -------
    pytree
        ``moment / (1 - decay ** count)``.

    Examples
    --------
    >>> bias_correction({"w": 1.0}, decay=0.5, count=1)
    {'w': 2.0}
    """
    divisor = 1 - decay**count
    return tree.map(lambda m: like_leaf(m / divisor, m), moment)


def safe_increment(count: Any) -> Any:
    """Add one to a count, and stay at the largest number of its dtype rather than overflow.

    Parameters
    ----------
    count : int, float or array
        The count. A Python int has no largest number.

    Returns
    -------
    int, float or array
        The next one, of the same kind.

    Raises
    ------
    ArgumentError
        `count` is no real number.

    Examples
    --------
    >>> import numpy as np
    >>> safe_increment(1), safe_increment(np.int8(126)), safe_increment(np.int8(127))
    (2, np.int8(127), np.int8(127))
    """
    if type(count) is int or type(count) is float:
        return count + 1
    dtype = getattr(count, "dtype", None)
    if dtype is None or dtype.kind not in "iuf" or is_complex(count):
        raise ArgumentError(
            f"a count must be a number, got {describe(count)}",
            where=user_line(),
            fix="start counting with 0",
        )
    limit = np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max
    least = np.where(count < limit, count, limit - dtype.type(1))
    return like_leaf(least + dtype.type(1), count)
