"""Cross-entropy of logits: with distributions of classes, and with the numbers of true classes.

The one idea: the logarithms of the probabilities are a second result of both, and that is all they
keep for the backward pass: one array of the size of the logits, and no second softmax.
`funcgrad.nn.losses` offers the first result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.level import concrete, holds_anywhere, is_recorded
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import is_finite, shape_of
from funcgrad.rules.nn.activations import as_real
from funcgrad.rules.nn.softmax import (
    along_axes,
    along_together,
    log_softmax,
    log_softmax_jvp,
    log_softmax_vjp,
    positive_axis,
    squeezed,
)

__all__ = ["cross_entropy", "extremes", "label_entropy"]


@primitive(canonical=along_axes)
def cross_entropy(logits, labels, *, axis=-1):
    """``-sum(labels * log_softmax(logits))`` over `axis`, and ``log_softmax(logits)``."""
    log_probs = log_softmax.forward(logits, axis=axis)
    if is_finite(log_probs):
        terms = labels * log_probs
    else:  # of what has probability 0 nothing is expected: 0 log 0 = 0
        with np.errstate(invalid="ignore"):
            terms = np.where(np.equal(labels, 0), 0, labels * log_probs)
    return -np.sum(terms, axis=axis), log_probs


@cross_entropy.def_jvp
def cross_entropy_jvp(primals, tangents, out, *, axis):
    _, labels = primals
    logits_dot, labels_dot = tangents
    _, log_probs = out
    log_probs_dot = None
    total = 0
    if logits_dot is not None:
        log_probs_dot = log_softmax_jvp((None,), (logits_dot,), log_probs, axis=axis)
        total = total - np.sum(labels * log_probs_dot, axis=axis)
    if labels_dot is not None:
        total = total - np.sum(_times_log(labels_dot, labels, log_probs), axis=axis)
    return total, log_probs_dot


def _times_log(t: Any, labels: Any, log_probs: Any) -> Any:
    """Return ``t * log_probs``, 0 where an impossible class is not expected either."""
    product = t * log_probs
    if is_finite(product):
        return product
    return t * np.where(np.equal(labels, 0) & np.isinf(log_probs), 0, log_probs)


@cross_entropy.def_vjp
def cross_entropy_vjp(primals, out, *, axis):
    _, labels = primals
    _, log_probs = out

    def cross_entropy_pullback_logits(out_bar):
        loss_bar, log_probs_bar = out_bar
        x_bar = None
        if log_probs_bar is not None:
            x_bar = log_softmax_vjp((None,), log_probs, axis=axis)(log_probs_bar)
        if loss_bar is not None:
            expected = np.sum(labels, axis=axis, keepdims=True) * np.exp(log_probs)
            part = (expected - labels) * np.expand_dims(loss_bar, axis)
            x_bar = part if x_bar is None else x_bar + part
        return x_bar

    def cross_entropy_pullback_labels(out_bar):
        loss_bar, _ = out_bar
        if loss_bar is None:
            return None
        return -_times_log(np.expand_dims(loss_bar, axis), labels, log_probs)

    return cross_entropy_pullback_logits, cross_entropy_pullback_labels


along_together(cross_entropy)


@cross_entropy.def_samples
def cross_entropy_samples(rng):
    yield Sample(rng.normal(size=(3, 4)), rng.uniform(size=(3, 4)), fun=cross_entropy)
    yield Sample(rng.normal(size=(3, 4)), rng.uniform(size=(3, 4)), fun=cross_entropy, axis=0)
    yield Sample(rng.normal(size=(3, 4)), rng.uniform(size=(4,)), fun=cross_entropy)
    yield Sample(np.zeros((0, 3)), np.zeros((0, 3)), fun=cross_entropy)


def extremes(labels: Any, least: Any, most: Any) -> tuple[Any, ...]:
    """Return the smallest and the largest label, under `vmap` those of all examples.

    For checks that all are in a range: of recorded ones that are, there are none. The record says
    that it depends on that.
    """
    if is_recorded(labels):
        outside = np.logical_or(np.less(labels, least), np.greater(labels, most))
        if not holds_anywhere(outside, "whether all labels are in range"):
            return ()
    plain = np.asarray(concrete(labels))  # under `jit` a number of Python may be traced
    return (plain.min(), plain.max()) if plain.size else ()


def _labelled(args, params):
    """Canonical form of `label_entropy`: real logits, one axis that is not negative."""
    logits, labels = args
    logits = as_real(logits)
    return (logits, labels), {"axis": positive_axis(params["axis"], len(shape_of(logits)))}


@primitive(canonical=_labelled)
def label_entropy(logits, labels, *, axis=-1):
    """Minus the element of ``log_softmax(logits)`` at each label, and all of them.

    `labels`, integers, have the shape of `logits` without `axis`.
    """
    log_probs = log_softmax.forward(logits, axis=(axis,))
    picked = np.take_along_axis(log_probs, np.expand_dims(labels, axis), axis=axis)
    return -squeezed(picked, (axis,)), log_probs


def _is_label(log_probs: Any, labels: Any, axis: int) -> Any:
    """Mark the element at each label."""
    shape = shape_of(log_probs)
    classes = np.arange(shape[axis]).reshape((-1,) + (1,) * (len(shape) - axis - 1))
    return np.equal(classes, np.expand_dims(labels, axis))


@label_entropy.def_jvp
def label_entropy_jvp(primals, tangents, out, *, axis):
    _, labels = primals
    x_dot, _ = tangents
    _, log_probs = out
    log_probs_dot = log_softmax_jvp((None,), (x_dot,), log_probs, axis=(axis,))
    # A product with the mask is safe here: tangents of logits are finite where it is 0.
    return -np.sum(log_probs_dot * _is_label(log_probs, labels, axis), axis=axis), log_probs_dot


@label_entropy.def_vjp
def label_entropy_vjp(primals, out, *, axis):
    _, labels = primals
    _, log_probs = out

    def label_entropy_pullback(out_bar):
        loss_bar, log_probs_bar = out_bar
        x_bar = None
        if log_probs_bar is not None:
            x_bar = log_softmax_vjp((None,), log_probs, axis=(axis,))(log_probs_bar)
        if loss_bar is not None:
            part = np.exp(log_probs) - _is_label(log_probs, labels, axis)
            part = part * np.expand_dims(loss_bar, axis)
            x_bar = part if x_bar is None else x_bar + part
        return x_bar

    return label_entropy_pullback, None


along_together(label_entropy)


@label_entropy.def_samples
def label_entropy_samples(rng):
    labels, middle = np.array([2, 0, 3]), np.array([[1, 0], [2, 2]])
    yield Sample(rng.normal(size=(3, 4)), labels, fun=label_entropy, argnums=0)
    yield Sample(rng.normal(size=(4, 3)), labels, fun=label_entropy, argnums=0, axis=0)
    yield Sample(rng.normal(size=(2, 3, 2)), middle, fun=label_entropy, argnums=0, axis=1)
    yield Sample(rng.normal(size=(4,)), np.int64(1), fun=label_entropy, argnums=0)
    yield Sample(np.zeros((0, 3)), np.zeros(0, int), fun=label_entropy, argnums=0)
