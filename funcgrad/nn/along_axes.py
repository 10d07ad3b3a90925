"""Functions that make something of all elements along an axis: for `funcgrad.nn.functional`.

Each is stable: exponentials are taken of differences to the largest element.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.errors import ShapeError, describe, user_line
from funcgrad.rules.nn import activations, normalizing
from funcgrad.rules.nn.activations import as_real

__all__ = [
    "glu",
    "gumbel_softmax",
    "logmeanexp",
    "softmin",
    "standardize",
]


def glu(x: Any, axis: int = -1) -> Any:
    """Return one half of an array times the logistic function of the other.

    Parameters
    ----------
    x : array_like
        Real numbers.
    axis : int
        Along which the halves lie, of an even size.

    Returns
    -------
    ndarray
        ``a * sigmoid(b)`` of the two halves.

    Raises
    ------
    ShapeError
        There are no halves.

    Notes
    -----
    Dauphin et al. (2017).

    Examples
    --------
    >>> import numpy as np
    >>> glu(np.array([2.0, 4.0, 0.0, 0.0]))
    array([1., 2.])
    """
    x = as_real(x)
    shape = np.shape(x)
    if not -len(shape) <= axis < len(shape) or shape[axis] % 2:
        raise ShapeError(
            f"glu cannot halve {describe(x)} along axis {axis}",
            where=user_line(),
            fix="give an axis of an even size",
        )
    a, b = np.split(x, 2, axis=axis)
    return a * activations.sigmoid(b)


def softmin(x: Any, axis: int | tuple[int, ...] | None = -1) -> Any:
    """Return `softmax` of the negative of each element.

    Parameters
    ----------
    x : array_like
        Real numbers.
    axis : int or tuple of int, optional
        Where to sum; None for all axes.

    Returns
    -------
    ndarray
        Positive numbers that sum to 1, in the proportions of ``exp(-x)``.

    Examples
    --------
    >>> import numpy as np
    >>> softmin(np.array([1.0, 1.0, 1000.0]))
    array([0.5, 0.5, 0. ])
    """
    return fg.nn.functional.softmax(-as_real(x), axis)


def gumbel_softmax(
    logits: Any, key: fg.random.Key, temperature: float = 1.0, hard: bool = False, axis: int = -1
) -> Any:
    """Return a smooth form of a random choice with probabilities ``softmax(logits)``.

    Parameters
    ----------
    logits : array_like
        Logarithms of probabilities, up to a constant.
    key : Key
        For the choice.
    temperature : float
        The nearer to 0, the nearer to a choice of one.
    hard : bool
        Whether to return the choice itself, one-hot, with the derivative of the smooth form.
    axis : int
        Along which to choose.

    Returns
    -------
    ndarray
        Positive numbers that sum to 1, of the shape and dtype of `logits`.

    Notes
    -----
    Jang et al. (2017); Maddison et al. (2017).

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> gumbel_softmax(np.zeros(3), fg.random.key(0), hard=True).sum()
    np.float64(1.0)
    """
    logits = as_real(logits)
    noise = fg.random.gumbel(key, np.shape(logits), logits.dtype)
    soft = fg.nn.functional.softmax((logits + noise) / temperature, axis)
    if not hard:
        return soft
    best, count = np.argmax(soft, axis=axis), np.shape(soft)[axis]
    chosen = fg.nn.functional.one_hot(best, count, dtype=soft.dtype, axis=axis)
    return chosen + (soft - fg.stop_gradient(soft))


def logmeanexp(
    x: Any, axis: int | tuple[int, ...] | None = None, where: Any = None, keepdims: bool = False
) -> Any:
    """Return the logarithm of a mean of exponentials.

    Parameters
    ----------
    x : array_like
        Real numbers of any size.
    axis : int or tuple of int, optional
        Where to average; all axes by default.
    where : array_like of bool, optional
        The elements that count, broadcast against `x`.
    keepdims : bool
        Keep the axes that were averaged, with size 1.

    Returns
    -------
    ndarray
        ``logsumexp(x) - log(n)`` of n elements.

    Examples
    --------
    >>> import numpy as np
    >>> logmeanexp(np.array([1000.0, 1000.0]))
    np.float64(1000.0)
    """
    x = as_real(x)
    counted = np.ones(np.shape(x)) if where is None else np.broadcast_to(where, np.shape(x))
    count = np.sum(counted, axis=axis, keepdims=keepdims).astype(x.dtype)
    total = fg.nn.functional.logsumexp(x, axis=axis, keepdims=keepdims, where=where)
    return total - np.log(count)


def standardize(
    x: Any,
    axis: int | tuple[int, ...] | None = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 1e-5,
    where: Any = None,
) -> Any:
    """Return an array less its mean, over its standard deviation.

    Parameters
    ----------
    x : array_like
        Real numbers.
    axis : int or tuple of int, optional
        Over which mean and variance are taken; None for all axes.
    mean, variance : array_like, optional
        Instead of those of `x`; broadcast against it.
    epsilon : float
        Added to the variance.
    where : array_like of bool, optional
        The elements that count in mean and variance.

    Returns
    -------
    ndarray
        ``(x - mean) / sqrt(variance + epsilon)``, of the dtype of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> standardize(np.array([1.0, 3.0]), epsilon=0.0)
    array([-1.,  1.])
    """
    x = as_real(x)
    if mean is None and variance is None and where is None:
        return normalizing.standardize(x, axis=axis, eps=epsilon)[0]
    options: dict[str, Any] = {"axis": axis, "keepdims": True}
    if where is not None:
        options["where"] = where
    if mean is None:
        mean = np.mean(x, **options)
    if variance is None:
        variance = np.mean(np.square(x - mean), **options)
    return (x - mean) / np.sqrt(variance + epsilon)
