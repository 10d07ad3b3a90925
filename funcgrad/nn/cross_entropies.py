"""Cross-entropies, under Optax's names.

All start from logits, the outputs of the last layer, and not from probabilities: a probability that
has rounded to 0 or 1 has lost what the gradient needs, where logits of any size have not.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from funcgrad.errors import ArgumentError, DtypeError, ShapeError, describe, user_line
from funcgrad.nn.reducing import beside, paired, reduced
from funcgrad.rules.nn import activations
from funcgrad.rules.nn import cross_entropy as entropy

__all__ = [
    "sigmoid_binary_cross_entropy",
    "softmax_cross_entropy",
    "softmax_cross_entropy_with_integer_labels",
]


def softmax_cross_entropy(
    logits: Any,
    labels: Any,
    axis: int | tuple[int, ...] | None = -1,
    where: Any = None,
    *,
    reduction: str = "none",
) -> Any:
    """Return the cross-entropy of the softmax of `logits` with the distributions `labels`.

    Parameters
    ----------
    logits : array_like
        Logarithms of probabilities, up to a constant, of any size; minus infinity rules a class
        out.
    labels : array_like
        Probabilities of the classes, for example one-hot. Broadcast against `logits`.
    axis : int or tuple of int, optional
        Where the classes are; None for all axes.
    where : array_like of bool, optional
        The classes that count, broadcast against `logits`; the others are ruled out.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        ``-sum(labels * log_softmax(logits))``, without `axis`; of the dtype of the two.

    Raises
    ------
    DtypeError
        An argument is complex.

    See Also
    --------
    softmax_cross_entropy_with_integer_labels : for one true class each, faster.

    Notes
    -----
    A class of probability 0 that has the label 0 adds nothing (Optax has NaN there).

    Examples
    --------
    >>> import numpy as np
    >>> softmax_cross_entropy(np.array([1e4, 0.0]), np.array([0.0, 1.0]))
    np.float64(10000.0)
    """
    if where is not None:
        where = _like_logits(where, logits, axis)
        logits = np.where(where, activations.as_real(logits), -np.inf)
        labels = np.where(where, activations.as_real(labels), 0)
    loss, _ = entropy.cross_entropy(logits, beside(labels, logits), axis=axis)
    return reduced(loss, reduction)


def softmax_cross_entropy_with_integer_labels(
    logits: Any,
    labels: Any,
    axis: int | tuple[int, ...] = -1,
    where: Any = None,
    *,
    reduction: str = "none",
) -> Any:
    """Return the cross-entropy of the softmax of `logits` with the true classes.

    Parameters
    ----------
    logits : array_like
        Logarithms of probabilities, up to a constant, of any size; minus infinity rules a class
        out.
    labels : array_like of int
        The number of the true class, counted along `axis`. Of the shape of `logits` without `axis`.
    axis : int or tuple of int
        Where the classes are. With several axes classes are counted over all of them, the last
        fastest.
    where : array_like of bool, optional
        The classes that count, broadcast against `logits`; the others are ruled out. Where no
        class counts the loss is 0.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        Minus the logarithm of the probability of each true class, of the shape of `labels`.

    Raises
    ------
    DtypeError
        `labels` are not integers, or `logits` are complex.
    ShapeError
        `labels` do not have the shape of `logits` without `axis`.
    ArgumentError
        A label is negative, or not less than the number of classes.

    Examples
    --------
    >>> import numpy as np
    >>> logits = np.array([[2.0, 1.0, 0.1], [1000.0, 0.0, 0.0]])
    >>> softmax_cross_entropy_with_integer_labels(logits, np.array([0, 1]))
    array([4.17030016e-01, 1.00000000e+03])
    """
    logits, labels = activations.as_real(logits), as_labels(labels)
    if where is not None:
        where = _like_logits(where, logits, axis)
        where = np.broadcast_to(where, logits.shape)
    if isinstance(axis, tuple):
        logits, where, axis = _one_class_axis(logits, where, axis)
    check_labels(labels, logits, axis)
    if where is None:
        loss, _ = entropy.label_entropy(logits, labels, axis=axis)
        return reduced(loss, reduction)
    some = np.any(where, axis=axis)
    # A row in which nothing counts keeps its logits, for a loss that is then not taken.
    ruled_out = np.logical_not(where) & np.expand_dims(some, axis)
    loss, _ = entropy.label_entropy(np.where(ruled_out, -np.inf, logits), labels, axis=axis)
    return reduced(np.where(some, loss, 0), reduction)


def sigmoid_binary_cross_entropy(logits: Any, labels: Any, *, reduction: str = "none") -> Any:
    """Return the cross-entropy of the logistic function of `logits` with `labels`.

    Parameters
    ----------
    logits : array_like
        Log-odds of the positive class, of any size.
    labels : array_like
        Probabilities of the positive class, 0 or 1 for known ones; of the same
        shape, or one number.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray
        ``-labels * log(sigmoid(logits)) - (1 - labels) * log(sigmoid(-logits))``.

    Raises
    ------
    ShapeError
        The shapes differ.
    DtypeError
        An argument is complex.

    Examples
    --------
    >>> import numpy as np
    >>> sigmoid_binary_cross_entropy(np.array([0.0, 1e4]), np.array([1.0, 0.0]))
    array([6.93147181e-01, 1.00000000e+04])
    """
    logits, labels = paired("sigmoid_binary_cross_entropy", logits, labels, "logits and labels")
    losses = labels * activations.softplus(-logits) + (1 - labels) * activations.softplus(logits)
    return reduced(losses, reduction)


def as_labels(labels: Any) -> Any:
    if not hasattr(labels, "dtype"):
        labels = np.asarray(labels)
    if labels.dtype.kind not in "iu":
        raise DtypeError(
            "class labels must be integers",
            where=f"{user_line()} passes {describe(labels)}",
            fix="convert them with labels.astype(int), or use softmax_cross_entropy for "
            "probabilities",
        )
    return labels


def _like_logits(where: Any, logits: Any, axis: Any) -> Any:
    """Give a mask without the class axis that axis, as Optax does."""
    if not hasattr(where, "ndim"):
        where = np.asarray(where)
    return where if where.ndim == np.ndim(logits) else np.expand_dims(where, axis)


def _one_class_axis(logits: Any, where: Any, axis: tuple[int, ...]) -> tuple[Any, Any, int]:
    """Move several class axes to the end and make them one."""
    ndim = logits.ndim
    classes = tuple([i % ndim for i in axis])
    others = tuple([i for i in range(ndim) if i not in classes])
    shape = (*[logits.shape[i] for i in others], -1)
    logits = np.reshape(np.transpose(logits, others + classes), shape)
    if where is not None:
        where = np.reshape(np.transpose(where, others + classes), shape)
    return logits, where, len(others)


def check_labels(labels: Any, logits: Any, axis: int) -> None:
    shape = list(logits.shape)
    count = shape.pop(operator.index(axis))
    if labels.shape != tuple(shape):
        raise ShapeError(
            "the labels do not fit the logits",
            where=f"{user_line()} passes labels {describe(labels)} and logits {describe(logits)}",
            fix=f"give labels of shape {tuple(shape)}, that of the logits without axis {axis}",
        )
    for label in entropy.extremes(labels, 0, count - 1):
        if not 0 <= label < count:
            raise ArgumentError(
                f"class label {label} is out of range for {count} classes",
                where=f"{user_line()} passes labels {describe(labels)}",
                fix=f"count the classes from 0 to {count - 1}, along axis {axis} of the logits",
            )
