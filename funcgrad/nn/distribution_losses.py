"""Losses of distributions and of vectors: divergences, triplets, contrasts, rankings, overlaps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError, describe, user_line
from funcgrad.nn.reducing import beside, paired, reduced
from funcgrad.nn.regression_losses import cosine_similarity
from funcgrad.rules.nn import activations

__all__ = [
    "binary_dice_loss",
    "convex_kl_divergence",
    "cosine_embedding_loss",
    "dice_loss",
    "generalized_kl_divergence",
    "kl_divergence",
    "kl_divergence_with_log_targets",
    "make_fenchel_young_loss",
    "margin_ranking_loss",
    "multiclass_generalized_dice_loss",
    "ntxent",
    "ranking_softmax_loss",
    "smooth_labels",
    "triplet_margin_loss",
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


convex_kl_divergence = generalized_kl_divergence


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


def dice_loss(
    predictions: Any,
    targets: Any,
    *,
    class_weights: Any = None,
    smooth: Any = 1.0,
    alpha: Any = 0.5,
    beta: Any = 0.5,
    apply_softmax: bool = True,
    reduction: str = "mean",
    ignore_background: bool = False,
    axis: int | tuple[int, ...] | None = None,
) -> Any:
    """Return 1 less the overlap of predicted and true regions, for each class.

    Parameters
    ----------
    predictions : array_like, shape (batch, ..., classes)
        Logits, or probabilities without `apply_softmax`. An axis of one class may be left out.
    targets : array_like, shape (batch, ..., classes)
        Probabilities, for example one-hot.
    class_weights : array_like, shape (classes,), optional
        Factors of the losses.
    smooth : float
        Added to numerator and denominator.
    alpha, beta : float
        The weights of what is predicted and not true, and of what is true and not predicted: 0.5
        gives the Dice coefficient (Milletari et al., 2016), others Tversky's (Salehi et al.,
        2017), 1 the one of Jaccard.
    apply_softmax : bool
        Whether predictions are logits; of one class by the logistic function.
    reduction : {"mean", "sum", "none"}
        What to make of the classes.
    ignore_background : bool
        Whether the first class is left out.
    axis : int or tuple of int, optional
        The axes of the regions; by default all but the first and the last.

    Returns
    -------
    ndarray
        One for each example; with "none" and one for each class.

    Raises
    ------
    ShapeError
        The shapes differ.
    ArgumentError
        Without `apply_softmax`: probabilities do not sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> targets = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    >>> dice_loss(1000 * targets, targets)
    array([0.])
    """
    x, t = beside(predictions, targets), beside(targets, predictions)
    x, t = (
        x[..., None] if x.ndim == t.ndim - 1 else x,
        t[..., None] if t.ndim == x.ndim - 1 else t,
    )
    x, t = paired("dice_loss", x, t)
    if not apply_softmax:
        totals = fg.stop_gradient(np.sum(x, axis=-1))
        if not np.all(np.abs(totals - 1) < 1e-5):
            raise ArgumentError(
                "probabilities do not sum to 1 over the classes",
                where=f"{user_line()}, argument predictions of dice_loss",
                fix="give logits with apply_softmax=True, or normalise them",
            )
        probs = x
    elif x.shape[-1] == 1:
        probs = activations.sigmoid(x)
    else:
        probs = fg.nn.functional.softmax(x)
    axes = tuple(range(1, x.ndim - 1)) if axis is None else axis
    both = np.sum(probs * t, axis=axes)
    only_predicted, only_true = np.sum(probs, axis=axes) - both, np.sum(t, axis=axes) - both
    losses = 1 - (both + smooth) / (both + alpha * only_predicted + beta * only_true + smooth)
    if class_weights is not None:
        losses = losses * class_weights
    if ignore_background and x.shape[-1] > 1:
        losses = losses[..., 1:]
    if reduction == "none":
        return losses
    # Over the classes alone: one number for each example, as Optax has it.
    return np.mean(losses, axis=-1) if reduction == "mean" else np.sum(losses, axis=-1)


def multiclass_generalized_dice_loss(
    predictions: Any,
    targets: Any,
    *,
    smooth: Any = 1.0,
    apply_softmax: bool = True,
    ignore_background: bool = False,
) -> Any:
    """Return the mean of `dice_loss`, rare classes weighing more.

    Parameters
    ----------
    predictions, targets : array_like, shape (batch, ..., classes)
        See `dice_loss`.
    smooth, apply_softmax, ignore_background
        See `dice_loss`.

    Returns
    -------
    scalar
        With weights in proportion to 1 over the squared size of each class (Sudre et al., 2017).

    Raises
    ------
    ShapeError
        The shapes differ.

    Examples
    --------
    >>> import numpy as np
    >>> targets = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    >>> multiclass_generalized_dice_loss(1000 * targets, targets)
    np.float64(0.0)
    """
    x, t = paired("multiclass_generalized_dice_loss", predictions, targets)
    weights = 1 / (np.square(np.sum(t, axis=tuple(range(t.ndim - 1)))) + 1e-7)
    weights = weights / np.sum(weights) * t.shape[-1]
    losses = dice_loss(
        x,
        t,
        class_weights=weights,
        smooth=smooth,
        apply_softmax=apply_softmax,
        reduction="none",
        ignore_background=ignore_background,
    )
    return np.mean(losses)


def binary_dice_loss(
    predictions: Any, targets: Any, *, smooth: Any = 1.0, apply_sigmoid: bool = True
) -> Any:
    """Return `dice_loss` of one class.

    Parameters
    ----------
    predictions : array_like, shape (batch, ...)
        Logits; probabilities of one class, which are 1, without `apply_sigmoid`. There may be a
        last axis of one class.
    targets : array_like
        0 or 1, of the same shape.
    smooth : float
        Added to numerator and denominator.
    apply_sigmoid : bool
        Whether predictions are logits.

    Returns
    -------
    ndarray, shape (batch,)
        One for each example.

    Raises
    ------
    ShapeError
        The shapes differ.

    Examples
    --------
    >>> import numpy as np
    >>> binary_dice_loss(np.array([[1000.0, -1000.0]]), np.array([[1.0, 0.0]]))
    array([0.])
    """
    x, t = paired("binary_dice_loss", predictions, targets)
    if np.shape(x)[-1] != 1:
        x, t = x[..., None], t[..., None]
    return dice_loss(x, t, smooth=smooth, apply_softmax=apply_sigmoid)


def _summed(terms: Any, axis: Any, where: Any) -> Any:
    return np.sum(terms if where is None else np.where(where, terms, 0), axis=axis)
