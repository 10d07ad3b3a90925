"""Losses of numbers: what is made of the difference between predictions and targets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.nn.reducing import paired, reduced
from funcgrad.rules.nn.activations import as_real

__all__ = [
    "absolute_error",
    "cosine_distance",
    "cosine_similarity",
    "gaussian_nll_loss",
    "huber_loss",
    "l1_loss",
    "l2_loss",
    "log_cosh",
    "mae",
    "mse",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "squared_error",
]


def squared_error(predictions: Any, targets: Any = None, *, reduction: str = "none") -> Any:
    """Return the square of each error.

    Parameters
    ----------
    predictions : array_like
        Real numbers.
    targets : array_like, optional
        Of the same shape, or one number. Zero by default: then `predictions` are errors.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        ``(predictions - targets) ** 2``, one for each.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Examples
    --------
    >>> import numpy as np
    >>> squared_error(np.array([1.0, 3.0]), np.array([1.0, 1.0]))
    array([0., 4.])
    """
    return reduced(np.square(_errors("squared_error", predictions, targets)), reduction)


def l2_loss(predictions: Any, targets: Any = None, *, reduction: str = "none") -> Any:
    """Return half of the square of each error.

    Parameters
    ----------
    predictions : array_like
        Real numbers.
    targets : array_like, optional
        Of the same shape, or one number. Zero by default: then `predictions` are errors.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        ``(predictions - targets) ** 2 / 2``, one for each.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Notes
    -----
    The half makes the slope the error itself, as in Optax.

    Examples
    --------
    >>> import numpy as np
    >>> l2_loss(np.array([1.0, 3.0]), np.array([1.0, 1.0]))
    array([0., 2.])
    """
    return reduced(np.square(_errors("l2_loss", predictions, targets)) * 0.5, reduction)


def absolute_error(predictions: Any, targets: Any = None, *, reduction: str = "none") -> Any:
    """Return the size of each error; also called `l1_loss`.

    Parameters
    ----------
    predictions : array_like
        Real numbers.
    targets : array_like, optional
        Of the same shape, or one number. Zero by default: then `predictions` are errors.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        ``abs(predictions - targets)``, one for each.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Examples
    --------
    >>> import numpy as np
    >>> absolute_error(np.array([1.0, 3.0]), np.array([1.0, 1.0]))
    array([0., 2.])
    """
    return reduced(np.abs(_errors("absolute_error", predictions, targets)), reduction)


def huber_loss(
    predictions: Any, targets: Any = None, *, delta: Any = 1.0, reduction: str = "none"
) -> Any:
    """Return a loss that is square for small errors and straight for large ones.

    Parameters
    ----------
    predictions : array_like
        Real numbers.
    targets : array_like, optional
        Of the same shape, or one number. Zero by default: then `predictions` are errors.
    delta : float
        Where it becomes straight.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        ``error ** 2 / 2``, and ``delta * (abs(error) - delta / 2)`` beyond `delta`; one for each.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Notes
    -----
    Huber (1964).

    Examples
    --------
    >>> import numpy as np
    >>> huber_loss(np.array([0.5, 3.0]), np.array([0.0, 0.0]))
    array([0.125, 2.5  ])
    """
    error = _errors("huber_loss", predictions, targets)
    inner = np.clip(error, -delta, delta)
    return reduced(inner * (error - 0.5 * inner), reduction)


def smooth_l1_loss(
    predictions: Any, targets: Any = None, *, beta: float = 1.0, reduction: str = "none"
) -> Any:
    """Return `huber_loss` over its `delta`, as PyTorch has it.

    Parameters
    ----------
    predictions : array_like
        Real numbers.
    targets : array_like, optional
        Of the same shape, or one number. Zero by default: then `predictions` are errors.
    beta : float
        Where it becomes straight; 0 gives `absolute_error`.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        ``error ** 2 / (2 * beta)``, and ``abs(error) - beta / 2`` beyond `beta`; one for each.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Notes
    -----
    Girshick (2015).

    Examples
    --------
    >>> import numpy as np
    >>> smooth_l1_loss(np.array([0.5, 3.0]), np.array([0.0, 0.0]), beta=2.0)
    array([0.0625, 2.    ])
    """
    if beta == 0:
        return absolute_error(predictions, targets, reduction=reduction)
    return reduced(huber_loss(predictions, targets, delta=beta) / beta, reduction)


def log_cosh(predictions: Any, targets: Any = None, *, reduction: str = "none") -> Any:
    """Return the logarithm of the hyperbolic cosine of each error.

    Parameters
    ----------
    predictions : array_like
        Real numbers.
    targets : array_like, optional
        Of the same shape, or one number. Zero by default: then `predictions` are errors.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        Nearly ``error ** 2 / 2`` for small errors and ``abs(error) - log(2)`` for large ones.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Examples
    --------
    >>> import numpy as np
    >>> log_cosh(np.array([0.0, 1000.0])).round(6)
    array([  0.      , 999.306853])
    """
    error = _errors("log_cosh", predictions, targets)
    return reduced(np.logaddexp(error, -error) - np.log(2).astype(error.dtype), reduction)


def gaussian_nll_loss(
    predictions: Any,
    targets: Any,
    variance: Any,
    *,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "none",
) -> Any:
    """Return minus the logarithm of normal densities.

    Parameters
    ----------
    predictions : array_like
        Real numbers.
    targets : array_like
        Of the same shape, or one number.
    variance : array_like
        The variances, of the same shape, or one number.
    full : bool
        Whether to add the constant, ``log(2 * pi) / 2``.
    eps : float
        The least variance that is divided by.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        ``(log(variance) + error ** 2 / variance) / 2``, one for each.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Examples
    --------
    >>> import numpy as np
    >>> gaussian_nll_loss(np.array([1.0]), np.array([3.0]), 4.0).round(6)
    array([1.193147])
    """
    error = _errors("gaussian_nll_loss", predictions, targets)
    error, variance = paired("gaussian_nll_loss", error, variance, "errors and variance")
    # Below eps a constant: no slope pulls a variance towards 0.
    variance = np.where(variance < eps, eps, variance)
    losses = 0.5 * (np.log(variance) + np.square(error) / variance)
    return reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


def poisson_nll_loss(
    predictions: Any,
    targets: Any,
    *,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "none",
) -> Any:
    """Return minus the logarithm of Poisson probabilities, but for a constant.

    Parameters
    ----------
    predictions : array_like
        Real numbers.
    targets : array_like
        Of the same shape, or one number.
    log_input : bool
        Whether predictions are logarithms of rates.
    full : bool
        Whether to add Stirling's approximation of ``log(targets!)``, for targets above 1.
    eps : float
        Added to rates that are not logarithms.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        ``exp(predictions) - targets * predictions``, one for each.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Examples
    --------
    >>> import numpy as np
    >>> poisson_nll_loss(np.array([0.0]), np.array([2.0]))
    array([1.])
    """
    x, targets = paired("poisson_nll_loss", predictions, targets)
    losses = np.exp(x) - targets * x if log_input else x - targets * np.log(x + eps)
    if full:
        counts = np.where(targets > 1, targets, 1)
        stirling = counts * np.log(counts) - counts + 0.5 * np.log(2 * math.pi * counts)
        losses = losses + np.where(targets > 1, stirling, 0)
    return reduced(losses, reduction)


def cosine_similarity(
    predictions: Any,
    targets: Any,
    *,
    epsilon: float = 0.0,
    axis: int | tuple[int, ...] | None = -1,
    where: Any = None,
    reduction: str = "none",
) -> Any:
    """Return the cosine of the angle between vectors.

    Parameters
    ----------
    predictions : array_like
        Real numbers: vectors along `axis`.
    targets : array_like
        Of the same shape.
    epsilon : float
        The least squared length that is divided by. With a vector of length 0 the result is 0.
    axis : int or tuple of int, optional
        Along which the vectors lie; None for all axes.
    where : array_like of bool, optional
        The elements that count.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        From -1 to 1, one for each pair.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Examples
    --------
    >>> import numpy as np
    >>> cosine_similarity(np.array([3.0, 4.0]), np.array([1.0, 0.0]))
    np.float64(0.6)
    """
    a, b = paired("cosine_similarity", predictions, targets)
    if where is not None:
        a, b = np.where(where, a, 0), np.where(where, b, 0)
    return reduced(np.sum(_unit(a, axis, epsilon) * _unit(b, axis, epsilon), axis=axis), reduction)


def cosine_distance(
    predictions: Any,
    targets: Any,
    *,
    epsilon: float = 0.0,
    axis: int | tuple[int, ...] | None = -1,
    where: Any = None,
    reduction: str = "none",
) -> Any:
    """Return 1 less the cosine of the angle between vectors.

    Parameters
    ----------
    predictions : array_like
        Real numbers: vectors along `axis`.
    targets : array_like
        Of the same shape.
    epsilon : float
        The least squared length that is divided by.
    axis : int or tuple of int, optional
        Along which the vectors lie; None for all axes.
    where : array_like of bool, optional
        The elements that count.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        From 0 to 2, one for each pair.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Examples
    --------
    >>> import numpy as np
    >>> cosine_distance(np.array([3.0, 4.0]), np.array([1.0, 0.0]))
    np.float64(0.4)
    """
    similarity = cosine_similarity(predictions, targets, epsilon=epsilon, axis=axis, where=where)
    return reduced(1 - similarity, reduction)


l1_loss = absolute_error


def mse(predictions: Any, targets: Any) -> Any:
    """Return the mean of the squares of the errors.

    Parameters
    ----------
    predictions : array_like
        Real numbers.
    targets : array_like
        Of the same shape, or one number.

    Returns
    -------
    scalar
        ``mean((predictions - targets) ** 2)``.

    Raises
    ------
    ShapeError
        The shapes differ.

    Examples
    --------
    >>> import numpy as np
    >>> mse(np.array([1.0, 3.0]), np.array([1.0, 1.0]))
    np.float64(2.0)
    """
    return np.mean(np.square(_errors("mse", predictions, targets)))


def mae(predictions: Any, targets: Any) -> Any:
    """Return the mean of the sizes of the errors.

    Parameters
    ----------
    predictions : array_like
        Real numbers.
    targets : array_like
        Of the same shape, or one number.

    Returns
    -------
    scalar
        ``mean(abs(predictions - targets))``.

    Raises
    ------
    ShapeError
        The shapes differ.

    Examples
    --------
    >>> import numpy as np
    >>> mae(np.array([1.0, 3.0]), np.array([1.0, 1.0]))
    np.float64(1.0)
    """
    return np.mean(np.abs(_errors("mae", predictions, targets)))


def _errors(name: str, predictions: Any, targets: Any) -> Any:
    if targets is None:
        return as_real(predictions)
    predictions, targets = paired(name, predictions, targets)
    return predictions - targets


def _unit(x: Any, axis: Any, epsilon: float) -> Any:
    """Bring vectors to length 1; those of length 0 stay, without a slope."""
    square = np.sum(np.square(x), axis=axis, keepdims=True)
    length = np.sqrt(np.where(square > epsilon, square, epsilon or 1))
    return x / length
