"""Losses of classes by scores: hinges, sparse ones, and cross-entropies with other weights."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.nn import cross_entropies as entropies
from funcgrad.nn.piecewise import sparse_plus
from funcgrad.nn.reducing import beside, paired, reduced
from funcgrad.rules.nn import activations

__all__ = [
    "hinge_loss",
    "multiclass_hinge_loss",
    "multiclass_perceptron_loss",
    "multiclass_sparsemax_loss",
    "perceptron_loss",
    "poly_loss_cross_entropy",
    "safe_softmax_cross_entropy",
    "sigmoid_focal_loss",
    "sparsemax",
    "sparsemax_loss",
]


def hinge_loss(predictor_outputs: Any, targets: Any, *, reduction: str = "none") -> Any:
    """Return by how much each output falls short of 1 on its side.

    Parameters
    ----------
    predictor_outputs : array_like
        Real numbers, of which the sign is the class.
    targets : array_like
        The true classes, -1 or 1; of the same shape.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        ``maximum(0, 1 - outputs * targets)``, one for each.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Examples
    --------
    >>> import numpy as np
    >>> hinge_loss(np.array([2.0, 0.5]), np.array([1.0, -1.0]))
    array([0. , 1.5])
    """
    outputs, targets = paired("hinge_loss", predictor_outputs, targets, "outputs and targets")
    return reduced(activations.relu(1 - outputs * targets), reduction)


def perceptron_loss(predictor_outputs: Any, targets: Any, *, reduction: str = "none") -> Any:
    """Return how far each output is on the wrong side.

    Parameters
    ----------
    predictor_outputs : array_like
        Real numbers, of which the sign is the class.
    targets : array_like
        The true classes, -1 or 1; of the same shape.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        ``maximum(0, -outputs * targets)``, one for each.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Notes
    -----
    Rosenblatt (1958).

    Examples
    --------
    >>> import numpy as np
    >>> perceptron_loss(np.array([2.0, 0.5]), np.array([1.0, -1.0]))
    array([0. , 0.5])
    """
    outputs, targets = paired("perceptron_loss", predictor_outputs, targets, "outputs and targets")
    return reduced(activations.relu(-outputs * targets), reduction)


def sparsemax_loss(logits: Any, labels: Any, *, reduction: str = "none") -> Any:
    """Return the loss of `sparse_sigmoid`, which is exactly 0 beyond a margin.

    Parameters
    ----------
    logits : array_like
        Log-odds of the positive class, of any size.
    labels : array_like
        0 or 1; of the same shape, or one number.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        ``sparse_plus(-logits)`` of positive examples, ``sparse_plus(logits)`` of the others.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Notes
    -----
    Martins and Astudillo (2016).

    Examples
    --------
    >>> import numpy as np
    >>> sparsemax_loss(np.array([2.0, 0.0]), np.array([1, 1]))
    array([0.  , 0.25])
    """
    logits, labels = paired("sparsemax_loss", logits, labels, "logits and labels")
    return reduced(sparse_plus(np.where(labels != 0, -logits, logits)), reduction)


def multiclass_hinge_loss(scores: Any, labels: Any, *, reduction: str = "none") -> Any:
    """Return by how much another class comes near the score of the true one.

    Parameters
    ----------
    scores : array_like, shape (..., classes)
        Real numbers, one for each class.
    labels : array_like of int, shape (...,)
        The true classes.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        ``max(scores + 1 - one_hot(labels)) - scores[labels]``, one for each example.

    Raises
    ------
    DtypeError
        Labels are not integers, or scores are complex.
    ShapeError
        Labels have not the shape of the scores without the last axis.
    ArgumentError
        A label is negative, or not less than the number of classes.

    Notes
    -----
    Crammer and Singer (2001).

    Examples
    --------
    >>> import numpy as np
    >>> multiclass_hinge_loss(np.array([[1.0, 3.0, 2.5]]), np.array([1]))
    array([0.5])
    """
    scores, labels = _scored(scores, labels)
    one_hot = fg.nn.functional.one_hot(labels, scores.shape[-1], dtype=scores.dtype)
    return reduced(np.max(scores + 1 - one_hot, axis=-1) - _true_score(scores, labels), reduction)


def multiclass_perceptron_loss(scores: Any, labels: Any, *, reduction: str = "none") -> Any:
    """Return by how much another class exceeds the score of the true one.

    Parameters
    ----------
    scores : array_like, shape (..., classes)
        Real numbers, one for each class.
    labels : array_like of int, shape (...,)
        The true classes.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        ``max(scores) - scores[labels]``, one for each example.

    Raises
    ------
    DtypeError
        Labels are not integers, or scores are complex.
    ShapeError
        Labels have not the shape of the scores without the last axis.
    ArgumentError
        A label is negative, or not less than the number of classes.

    Notes
    -----
    Collins (2002).

    Examples
    --------
    >>> import numpy as np
    >>> multiclass_perceptron_loss(np.array([[1.0, 3.0, 2.5]]), np.array([2]))
    array([0.5])
    """
    scores, labels = _scored(scores, labels)
    return reduced(np.max(scores, axis=-1) - _true_score(scores, labels), reduction)


def multiclass_sparsemax_loss(scores: Any, labels: Any, *, reduction: str = "none") -> Any:
    """Return the loss whose slope is the nearest distribution to the scores, less the true one.

    Parameters
    ----------
    scores : array_like, shape (..., classes)
        Real numbers, one for each class.
    labels : array_like of int, shape (...,)
        The true classes.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        One for each example; 0 if the true score exceeds all others by 1.

    Raises
    ------
    DtypeError
        Labels are not integers, or scores are complex.
    ShapeError
        Labels have not the shape of the scores without the last axis.
    ArgumentError
        A label is negative, or not less than the number of classes.

    Notes
    -----
    Martins and Astudillo (2016).

    Examples
    --------
    >>> import numpy as np
    >>> multiclass_sparsemax_loss(np.array([[0.0, 1.0, 0.5]]), np.array([1]))
    array([0.0625])
    """
    scores, labels = _scored(scores, labels)
    probs = sparsemax(scores)
    relative = scores - np.expand_dims(_true_score(scores, labels), -1)
    losses = np.sum(probs * relative, axis=-1) + 0.5 * (1 - np.sum(np.square(probs), axis=-1))
    return reduced(losses, reduction)


def sigmoid_focal_loss(
    logits: Any, labels: Any, *, alpha: Any = None, gamma: Any = 2.0, reduction: str = "none"
) -> Any:
    """Return binary cross-entropies, less weight given to what is right already.

    Parameters
    ----------
    logits : array_like
        Log-odds of the positive class, of any size.
    labels : array_like
        0 or 1, or probabilities between; of the same shape, or one number.
    alpha : float, optional
        The weight of positive examples; that of the others is ``1 - alpha``. All 1 by default.
    gamma : float
        How much less: 0 gives the cross-entropy.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        ``(1 - p) ** gamma * -log(p)`` with the probability p of the truth, one for each.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Notes
    -----
    Lin et al. (2017).

    Examples
    --------
    >>> import numpy as np
    >>> sigmoid_focal_loss(np.array([0.0, 4.0]), np.array([1.0, 1.0])).round(6)
    array([1.73287e-01, 6.00000e-06])
    """
    logits, labels = paired("sigmoid_focal_loss", logits, labels, "logits and labels")
    losses = entropies.sigmoid_binary_cross_entropy(logits, labels)
    # The probability of what is not true, from logarithms: it may be very small.
    wrong = (1 - labels) * activations.sigmoid(logits) + labels * activations.sigmoid(-logits)
    losses = losses * wrong**gamma
    if alpha is not None:
        losses = losses * (alpha * labels + (1 - alpha) * (1 - labels))
    return reduced(losses, reduction)


def poly_loss_cross_entropy(
    logits: Any,
    labels: Any,
    *,
    epsilon: Any = 2.0,
    axis: int | tuple[int, ...] | None = -1,
    where: Any = None,
    reduction: str = "none",
) -> Any:
    """Return cross-entropies with another weight for the first term of their series.

    Parameters
    ----------
    logits : array_like
        Logarithms of probabilities, up to a constant.
    labels : array_like
        Probabilities of the classes, for example one-hot; of the same shape.
    epsilon : float
        What is added to this weight.
    axis : int or tuple of int, optional
        Where the classes are; None for all axes.
    where : array_like of bool, optional
        The classes that count.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        ``cross_entropy + epsilon * sum(labels * (1 - softmax(logits)))``, without `axis`.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Notes
    -----
    Leng et al. (2022).

    Examples
    --------
    >>> import numpy as np
    >>> poly_loss_cross_entropy(np.array([0.0, 0.0]), np.array([1.0, 0.0])).round(6)
    np.float64(1.693147)
    """
    probs = fg.nn.functional.softmax(logits, axis, where)
    labels = beside(labels, logits)
    if where is not None:
        labels = np.where(where, labels, 0)
    rest = np.sum(labels * (1 - probs), axis=axis)
    losses = entropies.softmax_cross_entropy(logits, labels, axis, where) + epsilon * rest
    return reduced(losses, reduction)


def safe_softmax_cross_entropy(logits: Any, labels: Any, *, reduction: str = "none") -> Any:
    """Return `softmax_cross_entropy`, which is safe here: classes of label 0 add nothing.

    Parameters
    ----------
    logits : array_like
        Logarithms of probabilities, up to a constant.
    labels : array_like
        Probabilities of the classes, for example one-hot; of the same shape.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        Without the last axis.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Examples
    --------
    >>> import numpy as np
    >>> safe_softmax_cross_entropy(np.array([0.0, -np.inf]), np.array([1.0, 0.0]))
    np.float64(-0.0)
    """
    return reduced(entropies.softmax_cross_entropy(logits, labels), reduction)


def sparsemax(x: Any) -> Any:
    """Return the nearest distributions to vectors: many of their probabilities are exactly 0.

    Parameters
    ----------
    x : array_like, shape (..., n)
        Real numbers.

    Returns
    -------
    ndarray
        ``maximum(x - t, 0)``, with t such that they sum to 1.

    Notes
    -----
    The projection onto the simplex, by sorting (Held et al., 1974; Martins and Astudillo, 2016).

    Examples
    --------
    >>> import numpy as np
    >>> sparsemax(np.array([0.0, 1.0, 0.5]))
    array([0.  , 0.75, 0.25])
    """
    x = activations.as_real(x)
    ordered = -np.sort(-fg.stop_gradient(x), axis=-1)
    count = np.arange(1, np.shape(x)[-1] + 1)
    above = ordered * count > np.cumsum(ordered, axis=-1) - 1
    support = np.sum(above, axis=-1, keepdims=True)
    smallest = np.take_along_axis(ordered, support - 1, axis=-1)
    inside = fg.stop_gradient(x) >= smallest
    threshold = (np.sum(np.where(inside, x, 0), axis=-1, keepdims=True) - 1) / np.sum(
        inside, axis=-1, keepdims=True
    ).astype(x.dtype)
    return np.where(inside, x - threshold, 0)


def _scored(scores: Any, labels: Any) -> tuple[Any, Any]:
    """Return scores and labels that fit."""
    scores, labels = activations.as_real(scores), entropies.as_labels(labels)
    entropies.check_labels(labels, scores, -1)
    return scores, labels


def _true_score(scores: Any, labels: Any) -> Any:
    return np.take_along_axis(scores, np.expand_dims(labels, -1), axis=-1)[..., 0]
