"""Losses of distributions: divergences, smoothed labels, and losses made of a maximum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.nn.reducing import paired, reduced
from funcgrad.rules.nn import activations

__all__ = [
    "convex_kl_divergence",
    "generalized_kl_divergence",
    "kl_divergence",
    "kl_divergence_with_log_targets",
    "make_fenchel_young_loss",
    "smooth_labels",
]


def kl_divergence(
    log_predictions: Any,
    targets: Any,
    axis: int | tuple[int, ...] | None = -1,
    where: Any = None,
    *,
    reduction: str = "none",
) -> Any:
    """Return the divergence of Kullback and Leibler from predictions to targets.

    Parameters
    ----------
    log_predictions : array_like
        Logarithms of probabilities.
    targets : array_like
        Probabilities, of the same shape.
    axis : int or tuple of int, optional
        Where the probabilities sum to 1; None for all axes.
    where : array_like of bool, optional
        The elements that count.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        ``sum(targets * (log(targets) - log_predictions))``, without `axis`. Targets of 0 add
        nothing.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Notes
    -----
    Kullback and Leibler (1951).

    Examples
    --------
    >>> import numpy as np
    >>> kl_divergence(np.log([0.5, 0.5]), np.array([1.0, 0.0])).round(6)
    np.float64(0.693147)
    """
    log_p, q = paired("kl_divergence", log_predictions, targets)
    gone = np.equal(q, 0)
    terms = q * (np.log(np.where(gone, 1, q)) - np.where(gone, 0, log_p))
    return reduced(_summed(terms, axis, where), reduction)


def kl_divergence_with_log_targets(
    log_predictions: Any,
    log_targets: Any,
    axis: int | tuple[int, ...] | None = -1,
    where: Any = None,
    *,
    reduction: str = "none",
) -> Any:
    """Return `kl_divergence` with targets as logarithms.

    Parameters
    ----------
    log_predictions : array_like
        Logarithms of probabilities.
    log_targets : array_like
        Logarithms of probabilities, of the same shape.
    axis : int or tuple of int, optional
        Where the probabilities sum to 1; None for all axes.
    where : array_like of bool, optional
        The elements that count.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        ``sum(exp(log_targets) * (log_targets - log_predictions))``, without `axis`.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Examples
    --------
    >>> import numpy as np
    >>> kl_divergence_with_log_targets(np.log([0.5, 0.5]), np.array([0.0, -np.inf])).round(6)
    np.float64(0.693147)
    """
    log_p, log_q = paired("kl_divergence_with_log_targets", log_predictions, log_targets)
    gone = np.isneginf(log_q)
    terms = np.exp(log_q) * (np.where(gone, 0, log_q) - np.where(gone, 0, log_p))
    return reduced(_summed(terms, axis, where), reduction)


def generalized_kl_divergence(
    log_predictions: Any,
    targets: Any,
    axis: int | tuple[int, ...] | None = -1,
    where: Any = None,
    *,
    reduction: str = "none",
) -> Any:
    """Return the divergence for positive numbers that need not sum to 1.

    Parameters
    ----------
    log_predictions : array_like
        Logarithms of positive numbers.
    targets : array_like
        Numbers, 0 or more, of the same shape.
    axis : int or tuple of int, optional
        Where to sum; None for all axes.
    where : array_like of bool, optional
        The elements that count.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        `kl_divergence` and ``sum(exp(log_predictions) - targets)``, without `axis`.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Notes
    -----
    Also called `convex_kl_divergence`, since it is jointly convex.

    Examples
    --------
    >>> import numpy as np
    >>> generalized_kl_divergence(np.log([1.0, 2.0]), np.array([1.0, 2.0]))
    np.float64(0.0)
    """
    log_p, q = paired("generalized_kl_divergence", log_predictions, targets)
    losses = kl_divergence(log_p, q, axis, where) + _summed(np.exp(log_p) - q, axis, where)
    return reduced(losses, reduction)


convex_kl_divergence = generalized_kl_divergence


def smooth_labels(
    labels: Any, alpha: Any, *, axis: int | tuple[int, ...] | None = -1, where: Any = None
) -> Any:
    """Return labels with a share of their probability given to all classes alike.

    Parameters
    ----------
    labels : array_like
        Probabilities of the classes, for example one-hot.
    alpha : float
        The share.
    axis : int or tuple of int, optional
        Where the classes are; None for all axes.
    where : array_like of bool, optional
        The classes that count.

    Returns
    -------
    ndarray
        ``(1 - alpha) * labels + alpha / number of classes``.

    Notes
    -----
    Szegedy et al. (2016).

    Examples
    --------
    >>> import numpy as np
    >>> smooth_labels(np.array([1.0, 0.0]), 0.2)
    array([0.9, 0.1])
    """
    labels = activations.as_real(labels)
    counted = np.ones(np.shape(labels)) if where is None else where
    count = np.sum(counted, axis=axis, keepdims=True).astype(labels.dtype)
    return (1 - alpha) * labels + alpha / count


def make_fenchel_young_loss(max_fun: Callable[..., Any]) -> Callable[..., Any]:
    """Make the loss that belongs to a smooth form of the maximum.

    Parameters
    ----------
    max_fun : callable
        Takes a vector, and returns a number; `logsumexp`, for example.

    Returns
    -------
    callable
        Takes scores and targets, of shape (..., n), and returns ``max_fun(scores) - sum(targets *
        scores)`` for each vector.

    Notes
    -----
    Blondel et al. (2020).

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> loss = fg.nn.losses.make_fenchel_young_loss(fg.nn.functional.logsumexp)
    >>> loss(np.array([0.0, 0.0]), np.array([1.0, 0.0])).round(6)
    np.float64(0.693147)
    """

    def fenchel_young_loss(scores: Any, targets: Any, *args: Any, **kwargs: Any) -> Any:
        scores, targets = paired("the loss", scores, targets, "scores and targets")

        def of_one(scores: Any, targets: Any) -> Any:
            return max_fun(scores, *args, **kwargs) - np.sum(targets * scores)

        for _ in range(np.ndim(scores) - 1):
            of_one = fg.vmap(of_one)
        return of_one(scores, targets)

    return fenchel_young_loss


def _summed(terms: Any, axis: Any, where: Any) -> Any:
    return np.sum(terms if where is None else np.where(where, terms, 0), axis=axis)
