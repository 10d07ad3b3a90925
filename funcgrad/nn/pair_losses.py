"""Losses that compare vectors or scores with one another: triplets, contrasts, rankings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.errors import ShapeError, describe, user_line
from funcgrad.nn.reducing import paired, reduced
from funcgrad.nn.regression_losses import cosine_similarity
from funcgrad.rules.nn import activations

__all__ = [
    "cosine_embedding_loss",
    "margin_ranking_loss",
    "ntxent",
    "ranking_softmax_loss",
    "triplet_margin_loss",
]


def triplet_margin_loss(
    anchors: Any,
    positives: Any,
    negatives: Any,
    axis: int = -1,
    norm_degree: float = 2,
    margin: Any = 1.0,
    eps: float = 1e-6,
    *,
    reduction: str = "none",
) -> Any:
    """Return by how much a wrong vector is nearer than it should be.

    Parameters
    ----------
    anchors, positives, negatives : array_like
        Vectors along `axis`, of one shape: each anchor belongs with its positive.
    axis : int
        Along which the vectors lie.
    norm_degree : float
        Of the distance.
    margin : float
        By how much negatives should be farther than positives.
    eps : float
        Added to the sum under the root.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        ``maximum(distance to positives - distance to negatives + margin, 0)``, without `axis`.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Notes
    -----
    Schroff et al. (2015). Odd degrees take absolute values, where Optax has NaN.

    Examples
    --------
    >>> import numpy as np
    >>> triplet_margin_loss(np.zeros(2), np.array([3.0, 4.0]), np.array([0.0, 5.5])).round(6)
    np.float64(0.5)
    """
    a, p = paired("triplet_margin_loss", anchors, positives, "anchors and positives")
    a, n = paired("triplet_margin_loss", a, negatives, "anchors and negatives")

    def distance(difference: Any) -> Any:
        powers = np.sum(np.abs(difference) ** norm_degree, axis=axis)
        return (powers + eps) ** (1 / norm_degree)

    return reduced(activations.relu(distance(a - p) - distance(a - n) + margin), reduction)


def cosine_embedding_loss(
    first: Any, second: Any, targets: Any, *, margin: float = 0.0, reduction: str = "none"
) -> Any:
    """Return how far the angles of pairs are from what they should be.

    Parameters
    ----------
    first, second : array_like, shape (..., n)
        Pairs of vectors.
    targets : array_like, shape (...,)
        1 for pairs that belong together, -1 for others.
    margin : float
        The cosine that is small enough for others.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        ``1 - cosine``, or ``maximum(0, cosine - margin)``, one for each pair.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.array([[1.0, 0.0]]), np.array([[1.0, 1.0]])
    >>> cosine_embedding_loss(a, b, np.array([-1])).round(6)
    array([0.707107])
    """
    cosine, targets = paired(
        "cosine_embedding_loss", cosine_similarity(first, second), targets, "pairs and targets"
    )
    apart = activations.relu(cosine - margin)
    return reduced(np.where(targets > 0, 1 - cosine, apart), reduction)


def margin_ranking_loss(
    first: Any, second: Any, targets: Any, *, margin: float = 0.0, reduction: str = "none"
) -> Any:
    """Return by how much numbers are in the wrong order.

    Parameters
    ----------
    first, second : array_like
        Real numbers, of one shape.
    targets : array_like
        1 where the first should be larger, -1 where the second; of this shape, or one number.
    margin : float
        By how much.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        ``maximum(0, -targets * (first - second) + margin)``, one for each.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Examples
    --------
    >>> import numpy as np
    >>> margin_ranking_loss(np.array([1.0]), np.array([3.0]), 1)
    array([2.])
    """
    a, b = paired("margin_ranking_loss", first, second, "the two arguments")
    difference, targets = paired("margin_ranking_loss", a - b, targets, "arguments and targets")
    return reduced(activations.relu(margin - targets * difference), reduction)


def ntxent(embeddings: Any, labels: Any, temperature: Any = 0.07) -> Any:
    """Return the contrastive loss of embeddings, of which those with equal labels belong together.

    Parameters
    ----------
    embeddings : array_like, shape (n, d)
        Vectors, of which the directions count.
    labels : array_like of int, shape (n,)
        Which belong together.
    temperature : float
        By which cosines are divided.

    Returns
    -------
    scalar
        The mean over all pairs that belong together of the cross-entropy of the second, among
        itself and all that do not belong to the first.

    Raises
    ------
    ShapeError
        There are not as many labels as vectors.

    Notes
    -----
    Chen et al. (2020), with several positives for each.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> bool(ntxent(x, np.array([0, 0, 1])) < 1e-4)
    True
    """
    x = activations.as_real(embeddings)
    labels = np.asarray(labels) if not hasattr(labels, "shape") else labels
    if x.ndim != 2 or labels.shape != x.shape[:1]:
        raise ShapeError(
            "ntxent needs one label for each vector",
            where=f"{user_line()} passes {describe(x)} and {describe(labels)}",
            fix="embeddings of shape (n, d) and labels of shape (n,)",
        )
    squares = np.sum(np.square(x), axis=1, keepdims=True)
    eps = np.finfo(x.dtype).eps
    unit = x / np.sqrt(np.where(squares > eps, squares, eps))
    logits = unit @ unit.T / temperature
    same = np.equal(labels[:, None], labels)
    matches = np.logical_and(same, ~np.eye(len(x), dtype=bool))
    others = fg.nn.functional.logsumexp(np.where(same, -np.inf, logits), axis=1, keepdims=True)
    losses = np.logaddexp(others, logits) - logits
    return np.sum(np.where(matches, losses, 0)) / np.sum(matches).astype(x.dtype)


def ranking_softmax_loss(
    logits: Any,
    labels: Any,
    *,
    where: Any = None,
    weights: Any = None,
    reduce_fn: Callable[..., Any] | None = np.mean,
) -> Any:
    """Return cross-entropies of relevances and the softmax of scores, for lists of items.

    Parameters
    ----------
    logits : array_like, shape (..., items)
        Scores.
    labels : array_like, shape (..., items)
        Relevances, 0 or more.
    where : array_like of bool, optional
        The items that count.
    weights : array_like, optional
        Of the items.
    reduce_fn : callable, optional
        What to make of the losses of all lists; the mean by default. None for one of each.

    Returns
    -------
    ndarray
        ``-sum(weights * labels * log_softmax(logits))``, reduced.

    Raises
    ------
    ShapeError
        The shapes differ.

    Notes
    -----
    Cao et al. (2007), ListNet.

    Examples
    --------
    >>> import numpy as np
    >>> ranking_softmax_loss(np.array([1.0, 1.0]), np.array([0.0, 1.0])).round(6)
    np.float64(0.693147)
    """
    logits, labels = paired("ranking_softmax_loss", logits, labels, "logits and labels")
    labels = labels.astype(logits.dtype)
    if weights is not None:
        labels = labels * weights
    if where is None:
        losses = fg.nn.losses.softmax_cross_entropy(logits, labels)
        return losses if reduce_fn is None else reduce_fn(losses)
    losses = fg.nn.losses.softmax_cross_entropy(logits, labels, where=where)
    some = np.any(where, axis=-1)
    if reduce_fn is None:
        return np.where(some, losses, 0)
    if not np.any(fg.stop_gradient(some)) and reduce_fn is np.mean:
        return np.sum(losses * 0)
    return reduce_fn(losses, where=some)
