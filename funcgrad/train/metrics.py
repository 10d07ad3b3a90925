"""What is measured beside the loss: functions of all predictions and all targets.

They are called once with everything, not averaged over batches: the F1 score of a data set is not
the mean of those of its parts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from funcgrad.errors import ArgumentError, ShapeError, describe, user_line

__all__ = [
    "accuracy",
    "bleu",
    "confusion_matrix",
    "f1_score",
    "perplexity",
    "precision",
    "r2_score",
    "recall",
    "top_k_accuracy",
]


def accuracy(predictions: Any, targets: Any) -> float:
    """Return the share of examples whose class is right.

    Parameters
    ----------
    predictions : array_like
        Scores, of shape (..., classes), of which the largest counts; or classes, of the shape of
        `targets`. Scores of two classes in one number (log-odds) count as the class 1 above 0.
    targets : array_like of int, shape (...,)
        The true classes.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    ShapeError
        The shapes do not fit.
    ArgumentError
        There are no examples.

    Examples
    --------
    >>> import numpy as np
    >>> accuracy(np.array([[2.0, 1.0], [0.0, 3.0], [1.0, 0.0]]), np.array([0, 1, 1]))
    0.6666666666666666
    """
    classes, targets = _classes("accuracy", predictions, targets)
    return float(np.mean(classes == targets))


def top_k_accuracy(predictions: Any, targets: Any, k: int = 5) -> float:
    """Return the share of examples whose class is among the k with the largest scores.

    Parameters
    ----------
    predictions : array_like, shape (..., classes)
        Scores.
    targets : array_like of int, shape (...,)
        The true classes.
    k : int
        How many count.

    Returns
    -------
    float
        From 0 to 1. Of equal scores the first classes count as larger.

    Raises
    ------
    ShapeError
        The shapes do not fit.
    ArgumentError
        There are no examples, or less than k classes.

    Examples
    --------
    >>> import numpy as np
    >>> top_k_accuracy(np.array([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2]]), np.array([2, 2]), k=2)
    0.5
    """
    scores, targets = np.asarray(predictions), np.asarray(targets)
    if scores.shape[:-1] != targets.shape or scores.ndim == 0:
        raise _unfit("top_k_accuracy", scores, targets)
    _some("top_k_accuracy", targets)
    if not 1 <= k <= scores.shape[-1]:
        raise ArgumentError(
            f"top_k_accuracy cannot take the best {k} of {scores.shape[-1]} classes",
            where=f"{user_line()}, argument k",
            fix=f"from 1 to {scores.shape[-1]}",
        )
    best = np.argsort(-scores, axis=-1, kind="stable")[..., :k]
    return float(np.mean(np.any(best == targets[..., None], axis=-1)))


def confusion_matrix(predictions: Any, targets: Any, classes: int | None = None) -> Any:
    """Count how often each class was taken for each.

    Parameters
    ----------
    predictions, targets
        See `accuracy`.
    classes : int, optional
        How many there are; by default as many as scores, or up to the largest that occurs.

    Returns
    -------
    ndarray of int, shape (classes, classes)
        At ``[true, predicted]``.

    Raises
    ------
    ShapeError
        The shapes do not fit.
    ArgumentError
        There are no examples, or a class is not in range.

    Examples
    --------
    >>> import numpy as np
    >>> confusion_matrix(np.array([0, 1, 1]), np.array([0, 1, 0]))
    array([[1, 1],
           [0, 1]])
    """
    if classes is None and np.ndim(predictions) == np.ndim(targets) + 1:
        classes = int(np.shape(predictions)[-1])
    found, targets = _classes("confusion_matrix", predictions, targets)
    largest = int(max(found.max(), targets.max()))
    count = largest + 1 if classes is None else classes
    if largest >= count or min(found.min(), targets.min()) < 0:
        raise ArgumentError(
            f"class {largest if largest >= count else int(min(found.min(), targets.min()))} "
            f"is none of {count}",
            where=f"{user_line()}, confusion_matrix",
            fix="count the classes from 0",
        )
    flat = targets.ravel().astype(np.intp) * count + found.ravel().astype(np.intp)
    return np.bincount(flat, minlength=count * count).reshape(count, count)


def precision(predictions: Any, targets: Any, average: str = "macro") -> Any:
    """Return, for each class, the share of the examples taken for it that are of it.

    Parameters
    ----------
    predictions, targets
        See `accuracy`.
    average : {"macro", "micro", "weighted", "binary", "none"}
        What is made of the classes: the mean; all examples together; the mean weighted by how many
        examples a class has; class 1 alone; or an array with all.

    Returns
    -------
    float or ndarray
        0 for a class that nothing was taken for.

    Raises
    ------
    ShapeError
        The shapes do not fit.
    ArgumentError
        There are no examples, or no such average.

    Examples
    --------
    >>> import numpy as np
    >>> precision(np.array([0, 1, 1]), np.array([0, 1, 0]), average="none")
    array([1. , 0.5])
    """
    matrix = confusion_matrix(predictions, targets)
    return _averaged(np.diagonal(matrix), matrix.sum(axis=0), matrix, average)


def recall(predictions: Any, targets: Any, average: str = "macro") -> Any:
    """Return, for each class, the share of its examples that were taken for it.

    Parameters
    ----------
    predictions, targets
        See `accuracy`.
    average : {"macro", "micro", "weighted", "binary", "none"}
        See `precision`.

    Returns
    -------
    float or ndarray
        0 for a class without examples.

    Raises
    ------
    ShapeError
        The shapes do not fit.
    ArgumentError
        There are no examples, or no such average.

    Examples
    --------
    >>> import numpy as np
    >>> recall(np.array([0, 1, 1]), np.array([0, 1, 0]), average="none")
    array([0.5, 1. ])
    """
    matrix = confusion_matrix(predictions, targets)
    return _averaged(np.diagonal(matrix), matrix.sum(axis=1), matrix, average)


def f1_score(predictions: Any, targets: Any, average: str = "macro") -> Any:
    """Return the harmonic mean of `precision` and `recall`, for each class.

    Parameters
    ----------
    predictions, targets
        See `accuracy`.
    average : {"macro", "micro", "weighted", "binary", "none"}
        See `precision`.

    Returns
    -------
    float or ndarray
        0 for a class that neither occurs nor was found.

    Raises
    ------
    ShapeError
        The shapes do not fit.
    ArgumentError
        There are no examples, or no such average.

    Examples
    --------
    >>> import numpy as np
    >>> f1_score(np.array([0, 1, 1]), np.array([0, 1, 0]))
    0.6666666666666666
    """
    matrix = confusion_matrix(predictions, targets)
    both = matrix.sum(axis=0) + matrix.sum(axis=1)
    return _averaged(2 * np.diagonal(matrix), both, matrix, average)


def perplexity(loss: Any) -> float:
    """Return the number of equally likely choices that has the same cross-entropy.

    Parameters
    ----------
    loss : array_like
        Cross-entropies in natural units, of which the mean is taken.

    Returns
    -------
    float
        ``exp(mean(loss))``; infinite where that is too large.

    Examples
    --------
    >>> import numpy as np
    >>> round(perplexity(np.log([4.0, 4.0])), 6)
    4.0
    """
    mean = float(np.mean(np.asarray(loss)))
    return math.exp(mean) if mean < 709 else math.inf


def r2_score(predictions: Any, targets: Any) -> float:
    """Return the share of the variance of the targets that is explained.

    Parameters
    ----------
    predictions, targets : array_like
        Of one shape.

    Returns
    -------
    float
        1 for exact predictions, 0 for their mean, negative for worse.

    Raises
    ------
    ShapeError
        The shapes differ.
    ArgumentError
        There are no examples.

    Examples
    --------
    >>> import numpy as np
    >>> r2_score(np.array([1.0, 2.0, 2.0]), np.array([1.0, 2.0, 3.0]))
    0.5
    """
    found, targets = np.asarray(predictions), np.asarray(targets)
    if found.shape != targets.shape:
        raise _unfit("r2_score", found, targets)
    _some("r2_score", targets)
    rest = np.sum(np.square(targets - found))
    whole = np.sum(np.square(targets - np.mean(targets)))
    if whole == 0:
        return 1.0 if rest == 0 else -math.inf
    return float(1 - rest / whole)


def bleu(
    candidates: Sequence[Sequence[Hashable]],
    references: Sequence[Sequence[Sequence[Hashable]]],
    max_n: int = 4,
) -> float:
    """Return how much translations share with reference translations (Papineni et al., 2002).

    Parameters
    ----------
    candidates : sequence of sequences
        One sequence of tokens for each sentence.
    references : sequence of sequences of sequences
        One or more reference translations for each.
    max_n : int
        Runs of up to this many tokens count.

    Returns
    -------
    float
        From 0 to 1, of the corpus: not smoothed.

    Raises
    ------
    ArgumentError
        There are not as many sets of references as candidates, or none.

    Examples
    --------
    >>> bleu(["the cat sat on the mat".split()], [["the cat sat on a mat".split()]]).__round__(6)
    0.537285
    """
    if len(candidates) != len(references) or not candidates or not all(references):
        raise ArgumentError(
            f"bleu got {len(candidates)} candidates and {len(references)} sets of references",
            where=user_line(),
            fix="for each candidate give a list of one or more references",
        )
    matched, total = [0] * max_n, [0] * max_n
    length = reference_length = 0
    for candidate, options in zip(candidates, references, strict=True):
        length += len(candidate)
        reference_length += min(
            (abs(len(option) - len(candidate)), len(option)) for option in options
        )[1]
        for n in range(1, max_n + 1):
            counts = _runs(candidate, n)
            best: Counter[Any] = Counter()
            for option in options:
                best |= _runs(option, n)
            matched[n - 1] += sum((counts & best).values())
            total[n - 1] += sum(counts.values())
    if min(matched) == 0:
        return 0.0
    mean = sum(math.log(m / t) for m, t in zip(matched, total, strict=True)) / max_n
    brevity = 1.0 if length > reference_length else math.exp(1 - reference_length / length)
    return brevity * math.exp(mean)


def _runs(tokens: Sequence[Hashable], n: int) -> Counter[Any]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def _classes(name: str, predictions: Any, targets: Any) -> tuple[Any, Any]:
    """Return predicted and true classes, of one shape."""
    found, targets = np.asarray(predictions), np.asarray(targets)
    if found.ndim == targets.ndim + 1 and found.shape[:-1] == targets.shape:
        _some(name, targets)
        if found.shape[-1] == 1:
            return (found[..., 0] > 0).astype(np.intp), targets
        return np.argmax(found, axis=-1), targets
    if found.shape != targets.shape:
        raise _unfit(name, found, targets)
    _some(name, targets)
    return ((found > 0).astype(np.intp) if found.dtype.kind == "f" else found), targets


def _some(name: str, targets: Any) -> None:
    if not targets.size:
        raise ArgumentError(
            f"{name} got no examples",
            where=user_line(),
            fix="look at what read or selected the data",
        )


def _unfit(name: str, predictions: Any, targets: Any) -> ShapeError:
    return ShapeError(
        f"predictions and targets of {name} do not fit",
        where=f"{user_line()} passes {describe(predictions)} and {describe(targets)}",
        fix="scores of shape (..., classes), or values of the shape of the targets",
    )


def _averaged(hits: Any, of: Any, matrix: Any, average: str) -> Any:
    each = hits / np.where(of > 0, of, 1)
    if average == "none":
        return each
    if average == "macro":
        return float(np.mean(each))
    if average == "micro":
        return float(np.sum(hits) / max(np.sum(of), 1))
    if average == "weighted":
        return float(np.sum(each * matrix.sum(axis=1)) / np.sum(matrix))
    if average == "binary" and len(each) == 2:
        return float(each[1])
    raise ArgumentError(
        f"there is no average {average!r} of {len(each)} classes",
        where=user_line(),
        fix='"macro", "micro", "weighted", "none", or "binary" for two classes',
    )
