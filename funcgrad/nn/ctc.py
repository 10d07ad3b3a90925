"""Connectionist temporal classification (Graves et al., 2006), with Optax's arguments.

The one idea: the probability of a sequence of labels is summed over all its alignments, from left
to right. ``emit[n]`` is that of all alignments so far that end in label n, and ``blank[n]`` of
those that end in a blank after n labels; both as logarithms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError, describe, user_line
from funcgrad.nn.cross_entropies import as_labels
from funcgrad.nn.reducing import beside, reduced
from funcgrad.rules.nn.activations import as_real
from funcgrad.rules.nn.cross_entropy import extremes

__all__ = ["ctc_loss", "ctc_loss_with_forward_probs"]


def ctc_loss(
    logits: Any,
    logit_paddings: Any,
    labels: Any,
    label_paddings: Any,
    *,
    blank_id: int = 0,
    log_epsilon: float = -1e5,
    reduction: str = "none",
) -> Any:
    """Return minus the log-probability of sequences of labels, whatever their alignment.

    Parameters
    ----------
    logits : array_like, shape (batch, time, classes)
        Logarithms of probabilities, up to a constant, at each time.
    logit_paddings : array_like, shape (batch, time)
        1 where a sequence has ended, else 0.
    labels : array_like of int, shape (batch, length)
        The labels, without blanks.
    label_paddings : array_like, shape (batch, length)
        1 where the labels have ended, else 0.
    blank_id : int
        The class that stands for no label.
    log_epsilon : float
        What stands for the logarithm of 0.
    reduction : {"none", "mean", "sum"}
        What to make of the losses.

    Returns
    -------
    ndarray, shape (batch,)
        One for each sequence. About ``-log_epsilon`` if there are more labels than times.

    Raises
    ------
    ShapeError
        The shapes do not fit.
    ArgumentError
        A label, or the blank, is none of the classes.
    DtypeError
        Labels are not integers.

    Examples
    --------
    >>> import numpy as np
    >>> logits = np.zeros((1, 2, 3))
    >>> ctc_loss(logits, np.zeros((1, 2)), np.array([[1]]), np.zeros((1, 1))).round(6)
    array([1.098612])
    """
    loss, _, _ = ctc_loss_with_forward_probs(
        logits, logit_paddings, labels, label_paddings, blank_id=blank_id, log_epsilon=log_epsilon
    )
    return reduced(loss, reduction)


def ctc_loss_with_forward_probs(
    logits: Any,
    logit_paddings: Any,
    labels: Any,
    label_paddings: Any,
    *,
    blank_id: int = 0,
    log_epsilon: float = -1e5,
) -> tuple[Any, Any, Any]:
    """Return `ctc_loss`, and the probabilities that it comes from.

    Parameters
    ----------
    logits, logit_paddings, labels, label_paddings, blank_id, log_epsilon
        See `ctc_loss`.

    Returns
    -------
    loss : ndarray, shape (batch,)
        One for each sequence.
    blank : ndarray, shape (time, batch, length + 1)
        The logarithms, at each time, of the probability of all alignments that end in a blank
        after n labels; at the last time those are added that end in label n.
    emit : ndarray, shape (time, batch, length)
        The same of those that end in label n.

    Raises
    ------
    ShapeError
        The shapes do not fit.
    ArgumentError
        A label, or the blank, is none of the classes.
    DtypeError
        Labels are not integers.

    Examples
    --------
    >>> import numpy as np
    >>> logits = np.zeros((1, 2, 3))
    >>> _, blank, emit = ctc_loss_with_forward_probs(
    ...     logits, np.zeros((1, 2)), np.array([[1]]), np.zeros((1, 1))
    ... )
    >>> blank.shape, emit.shape
    ((2, 1, 2), (2, 1, 1))
    """
    logits, labels = as_real(logits), as_labels(labels)
    logit_paddings = beside(logit_paddings, logits)
    label_paddings = beside(label_paddings, logits)
    if (
        logits.ndim != 3
        or labels.ndim != 2
        or labels.shape != label_paddings.shape
        or logits.shape[:2] != logit_paddings.shape
        or labels.shape[0] != logits.shape[0]
    ):
        raise ShapeError(
            "the shapes of the arguments of ctc_loss do not fit",
            where=f"{user_line()}: logits {describe(logits)}, paddings "
            f"{describe(logit_paddings)}; labels {describe(labels)}, paddings "
            f"{describe(label_paddings)}",
            fix="(batch, time, classes), (batch, time), (batch, length) and (batch, length)",
        )
    labels = np.where(label_paddings != 0, 0, labels)  # padding may be any number
    for label in (*extremes(labels, 0, logits.shape[2] - 1), blank_id):
        if not 0 <= label < logits.shape[2]:
            raise ArgumentError(
                f"label {label} is out of range for {logits.shape[2]} classes",
                where=f"{user_line()} passes labels {describe(labels)}, blank_id={blank_id} and "
                f"logits {describe(logits)}",
                fix="labels count from 0, the blank included",
            )
    batch = logits.shape[0]
    length = labels.shape[1]
    dtype = logits.dtype
    log_probs = np.swapaxes(fg.nn.functional.log_softmax(logits), 0, 1)  # times first
    log_blank = log_probs[:, :, blank_id : blank_id + 1]
    at = np.broadcast_to(labels, (log_probs.shape[0], *labels.shape))
    log_label = np.take_along_axis(log_probs, at, axis=2)
    # A label that repeats the one before needs a blank between the two.
    repeats = np.equal(labels[:, :-1], labels[:, 1:])
    repeats = np.concatenate([repeats, np.zeros((batch, 1), bool)], axis=1)[:, :length]
    ended = np.expand_dims(np.swapaxes(logit_paddings, 0, 1) != 0, -1)

    def step(carry: Any, now: Any) -> Any:
        blank, emit = carry
        label, gap, over = now
        # Label n comes after the blank behind label n - 1, or after that label, if it is another.
        before = _and(blank, np.where(repeats, emit + log_epsilon, emit))
        new_emit = np.logaddexp(before[:, :-1], emit) + label
        new_blank = _and(before + gap, np.where(repeats, emit, emit + log_epsilon) + gap)
        carry = np.where(over, blank, new_blank), np.where(over, emit, new_emit)
        return carry, carry

    nothing = np.full((batch, length), log_epsilon, dtype)
    start = np.concatenate([np.zeros((batch, 1), dtype), nothing], axis=1), nothing
    _, (blanks, emits) = fg.scan(step, start, (log_label, log_blank, ended))
    last = _and(blanks[-1], emits[-1])
    blanks = np.concatenate([blanks[:-1], last[None]])
    lengths = length - np.sum(label_paddings != 0, axis=1)
    at_end = np.equal(np.arange(length + 1), np.expand_dims(lengths, -1))
    return -np.sum(np.where(at_end, last, 0), axis=1), blanks, emits


def _and(blank: Any, emit: Any) -> Any:
    """Add to the alignments behind n labels those that end in label n."""
    return np.concatenate([blank[:, :1], np.logaddexp(blank[:, 1:], emit)], axis=1)
