"""Cross-entropies as PyTorch has them: with weights, labels that do not count, and smoothing."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.errors import ArgumentError, DtypeError, ShapeError, describe, user_line
from funcgrad.nn import cross_entropies as entropies
from funcgrad.nn.reducing import beside, paired, reduced
from funcgrad.rules.nn import activations
from funcgrad.rules.nn.cross_entropy import extremes

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "nll_loss",
]


def cross_entropy(
    logits: Any,
    targets: Any,
    weight: Any = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    axis: int = -1,
    *,
    reduction: str = "none",
) -> Any:
    """Return the cross-entropy of the softmax of logits, with the arguments of PyTorch.

    Parameters
    ----------
    logits : array_like
        Logarithms of probabilities, up to a constant, of any size.
    targets : array_like
        Integers: the true class of each example, of the shape of `logits` without `axis`. Or real
        numbers: probabilities, of the shape of `logits`.
    weight : array_like, shape (classes,), optional
        A factor for each class.
    ignore_index : int
        A label that does not count.
    label_smoothing : float
        The share of probability that is given to all classes alike.
    axis : int
        Where the classes are: here the last axis by default, in PyTorch the one after the batch.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        One for each example, of which ignored ones are 0. The mean is over the weights of the true
        classes, of those that count.

    Raises
    ------
    ShapeError
        Labels do not have the shape of the logits without `axis`.
    ArgumentError
        A label is negative, or not less than the number of classes; `label_smoothing` is not from
        0 to 1; or there is no such reduction.
    DtypeError
        Labels are neither integers nor real numbers, or one real number for each example.

    Examples
    --------
    >>> import numpy as np
    >>> logits = np.array([[2.0, 1.0, 0.1], [1.0, 1.0, 1.0]])
    >>> cross_entropy(logits, np.array([0, 2])).round(6)
    array([0.41703 , 1.098612])
    >>> cross_entropy(logits, np.array([0, -100]), reduction="mean").round(6)
    np.float64(0.41703)
    """
    x = activations.as_real(logits)
    targets = targets if hasattr(targets, "dtype") else np.asarray(targets)
    if not 0 <= label_smoothing <= 1:
        raise ArgumentError(
            f"label_smoothing is a share from 0 to 1, not {label_smoothing}",
            where=user_line(),
            fix="label_smoothing=0.1 gives a tenth of the probability to all classes alike",
        )
    weights = None if weight is None else _of_classes(weight, x, axis)
    if targets.dtype.kind not in "biu":
        if targets.dtype.kind == "f" and targets.ndim == np.ndim(x) - 1:
            raise DtypeError(
                "class labels must be integers",
                where=f"{user_line()} passes {describe(targets)} for logits {describe(x)}",
                fix="labels.astype(int); probabilities have the shape of the logits",
            )
        count = np.shape(x)[axis] if np.ndim(x) else 0
        x, targets = paired("cross_entropy", x, targets, "logits and probabilities")
        targets = (1 - label_smoothing) * targets + label_smoothing / count
        if weights is not None:
            targets = targets * weights
        return reduced(entropies.softmax_cross_entropy(x, targets, axis), reduction)
    labels, counted = _counted(targets, ignore_index)
    losses = entropies.softmax_cross_entropy_with_integer_labels(x, labels, axis)
    own = _own_weight(weights, labels, axis)
    losses = losses if own is None else losses * own
    if label_smoothing:
        log_probs = fg.nn.functional.log_softmax(x, axis)
        rest = -np.mean(log_probs if weights is None else log_probs * weights, axis=axis)
        losses = (1 - label_smoothing) * losses + label_smoothing * rest
    return _reduced_of_counted(losses, counted, own, reduction)


def nll_loss(
    log_predictions: Any,
    labels: Any,
    weight: Any = None,
    ignore_index: int = -100,
    axis: int = -1,
    *,
    reduction: str = "none",
) -> Any:
    """Return minus the log-probability of each true class.

    Parameters
    ----------
    log_predictions : array_like
        Logarithms of probabilities.
    labels : array_like of int
        The true classes, of this shape without `axis`.
    weight : array_like, shape (classes,), optional
        A factor for each class.
    ignore_index : int
        A label that does not count.
    axis : int
        Where the classes are.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        One for each example; reduced as `cross_entropy`.

    Raises
    ------
    ShapeError
        Labels do not have the shape of the logits without `axis`.
    ArgumentError
        A label is negative, or not less than the number of classes, or there is no such reduction.
    DtypeError
        Labels are neither integers nor real numbers.

    Examples
    --------
    >>> import numpy as np
    >>> nll_loss(np.log([[0.5, 0.25, 0.25]]), np.array([0])).round(6)
    array([0.693147])
    """
    x, labels = activations.as_real(log_predictions), entropies.as_labels(labels)
    weights = None if weight is None else _of_classes(weight, x, axis)
    labels, counted = _counted(labels, ignore_index)
    entropies.check_labels(labels, x, axis)
    losses = -np.squeeze(np.take_along_axis(x, np.expand_dims(labels, axis), axis=axis), axis=axis)
    own = _own_weight(weights, labels, axis)
    losses = losses if own is None else losses * own
    return _reduced_of_counted(losses, counted, own, reduction)


def binary_cross_entropy(
    predictions: Any, targets: Any, weight: Any = None, *, reduction: str = "none"
) -> Any:
    """Return the cross-entropy of probabilities with targets.

    Parameters
    ----------
    predictions : array_like
        Probabilities of the positive class.
    targets : array_like
        0 or 1, or probabilities between, of the same shape.
    weight : array_like, optional
        A factor of each loss.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        One for each; infinite where something that was ruled out is true (PyTorch: 100).

    Raises
    ------
    ShapeError
        The shapes differ.
    ArgumentError
        A prediction is less than 0 or more than 1.
    DtypeError
        An argument is complex.

    Notes
    -----
    Start from logits where you can: `binary_cross_entropy_with_logits`.

    Examples
    --------
    >>> import numpy as np
    >>> binary_cross_entropy(np.array([0.5, 1.0]), np.array([0.0, 1.0])).round(6)
    array([0.693147, 0.      ])
    """
    p, t = paired("binary_cross_entropy", predictions, targets)
    for probability in extremes(p, 0, 1) if hasattr(p, "dtype") else (p,):
        if probability < 0 or probability > 1:
            raise ArgumentError(
                f"{probability} is no probability: binary_cross_entropy takes numbers from 0 to 1",
                where=f"{user_line()} passes predictions {describe(predictions)}",
                fix="binary_cross_entropy_with_logits takes what a linear layer returns",
            )
    losses = 0 - _times_log(t, p) - _times_log(1 - t, 1 - p)
    return reduced(losses if weight is None else losses * beside(weight, losses), reduction)


def binary_cross_entropy_with_logits(
    logits: Any,
    targets: Any,
    weight: Any = None,
    pos_weight: Any = None,
    *,
    reduction: str = "none",
) -> Any:
    """Return `sigmoid_binary_cross_entropy` with weights, as in PyTorch.

    Parameters
    ----------
    logits : array_like
        Log-odds of the positive class, of any size.
    targets : array_like
        0 or 1, or probabilities between, of the same shape.
    weight : array_like, optional
        A factor of each loss.
    pos_weight : array_like, optional
        A factor of the part of positive examples.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        One for each.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Examples
    --------
    >>> import numpy as np
    >>> binary_cross_entropy_with_logits(np.array([0.0]), np.array([1.0]), pos_weight=2.0).round(6)
    array([1.386294])
    """
    x, t = paired("binary_cross_entropy_with_logits", logits, targets, "logits and targets")
    positive = t if pos_weight is None else t * beside(pos_weight, x)
    losses = positive * activations.softplus(-x) + (1 - t) * activations.softplus(x)
    return reduced(losses if weight is None else losses * beside(weight, losses), reduction)


def _of_classes(weight: Any, x: Any, axis: int) -> Any:
    """Put one weight for each class along the axis of the classes."""
    ndim, weight = np.ndim(x), beside(weight, x)
    count = np.shape(x)[axis] if ndim else 0
    if np.shape(weight) != (count,):
        raise ShapeError(
            f"there are {count} classes, and weights {describe(weight)}",
            where=f"{user_line()}, argument weight",
            fix="one weight for each class",
        )
    return np.reshape(weight, (count,) + (1,) * (ndim - 1 - axis % ndim))


def _counted(labels: Any, ignore_index: int) -> tuple[Any, Any]:
    """Return labels with 0 for those that do not count, and which do."""
    counted = np.not_equal(labels, ignore_index)
    return np.where(counted, labels, 0), counted


def _own_weight(weights: Any, labels: Any, axis: int) -> Any:
    return None if weights is None else fg.numpy.take(np.reshape(weights, (-1,)), labels)


def _reduced_of_counted(losses: Any, counted: Any, own: Any, reduction: str) -> Any:
    losses = np.where(counted, losses, 0)
    weights = np.where(counted, 1 if own is None else own, 0).astype(losses.dtype)
    return reduced(losses, reduction, weights)


def _times_log(t: Any, p: Any) -> Any:
    """Return ``t * log(p)``, 0 where t is."""
    none = np.equal(t, 0)
    with np.errstate(divide="ignore"):
        return np.where(none, 0, t * np.log(np.where(none, 1, p)))
