"""Losses of how far two sets overlap, for segmentation: those of Dice."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.errors import ArgumentError, user_line
from funcgrad.nn.reducing import beside, paired
from funcgrad.rules.nn import activations

__all__ = [
    "binary_dice_loss",
    "dice_loss",
    "multiclass_generalized_dice_loss",
]


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
