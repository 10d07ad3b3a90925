"""Metrics: values by hand, and as scikit-learn and NLTK computed them."""

import numpy as np
import pytest

from funcgrad.errors import ArgumentError, ShapeError
from funcgrad.train import (
    accuracy,
    bleu,
    confusion_matrix,
    f1_score,
    perplexity,
    precision,
    r2_score,
    recall,
    top_k_accuracy,
)

FOUND = np.array([0, 1, 2, 2, 1, 0, 0, 2])
TRUE = np.array([0, 1, 1, 2, 2, 0, 1, 0])


def test_accuracy_of_classes_and_of_scores():
    assert accuracy(FOUND, TRUE) == 0.5
    assert accuracy(np.eye(3)[FOUND], TRUE) == 0.5
    assert accuracy(np.eye(3)[FOUND].reshape(2, 4, 3), TRUE.reshape(2, 4)) == 0.5


def test_accuracy_of_log_odds():
    assert accuracy(np.array([[2.0], [-1.0], [0.5]]), np.array([1, 1, 1])) == 2 / 3
    assert accuracy(np.array([2.0, -1.0, 0.5]), np.array([1, 1, 1])) == 2 / 3


def test_top_k():
    scores = np.array([[0.1, 0.5, 0.4], [0.6, 0.3, 0.1], [0.3, 0.3, 0.4]])
    targets = np.array([2, 2, 0])
    assert top_k_accuracy(scores, targets, 1) == 0.0
    assert top_k_accuracy(scores, targets, 2) == 2 / 3
    assert top_k_accuracy(scores, targets, 3) == 1.0


def test_confusion_matrix():
    np.testing.assert_array_equal(confusion_matrix(FOUND, TRUE), [[2, 0, 1], [1, 1, 1], [0, 1, 1]])
    assert confusion_matrix(FOUND, TRUE, classes=5).shape == (5, 5)


# By scikit-learn 1.7 of the confusion matrix above.
@pytest.mark.parametrize(
    ("metric", "average", "expected"),
    [
        (precision, "none", [2 / 3, 1 / 2, 1 / 3]),
        (recall, "none", [2 / 3, 1 / 3, 1 / 2]),
        (f1_score, "none", [2 / 3, 0.4, 0.4]),
        (precision, "macro", 0.5),
        (recall, "macro", 0.5),
        (f1_score, "macro", 0.48888888888888893),
        (f1_score, "micro", 0.5),
        (f1_score, "weighted", 0.5),
    ],
)
def test_precision_recall_f1(metric, average, expected):
    np.testing.assert_allclose(metric(FOUND, TRUE, average), expected, rtol=1e-14)


def test_binary():
    assert precision(np.array([1, 1, 0]), np.array([1, 0, 0]), "binary") == 0.5
    assert recall(np.array([1, 1, 0]), np.array([1, 0, 0]), "binary") == 1.0


def test_a_class_that_is_never_found_counts_as_zero():
    assert precision(np.array([0, 0]), np.array([0, 1]), "none").tolist() == [0.5, 0.0]


def test_perplexity():
    assert perplexity(np.log([2.0, 8.0])) == pytest.approx(4.0)
    assert perplexity(1e4) == np.inf


def test_r2():
    assert r2_score(np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 3.0])) == 0.5
    assert r2_score(np.ones(3), np.ones(3)) == 1.0


def test_bleu():
    # By hand: 5 of 6 words, 3 of 5 pairs, 2 of 4 triples, 1 of 3 runs of four.
    candidate, reference = (
        ["the", "cat", "sat", "on", "the", "mat"],
        ["the", "cat", "sat", "on", "a", "mat"],
    )
    expected = (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25
    assert bleu([candidate], [[reference]]) == pytest.approx(expected, rel=1e-14)
    assert bleu([reference], [[reference]]) == 1.0
    short = bleu([reference[:5]], [[reference]])
    assert short == pytest.approx(np.exp(1 - 6 / 5), rel=1e-14)
    assert bleu([["no"]], [[reference]]) == 0.0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: accuracy(np.ones((3, 2)), np.ones(4, int)), ShapeError, "accuracy do not fit"),
        (lambda: accuracy(np.ones(0), np.ones(0)), ArgumentError, "no examples"),
        (lambda: top_k_accuracy(np.ones((2, 3)), np.ones(2, int), 4), ArgumentError, "best 4 of 3"),
        (lambda: confusion_matrix(FOUND, TRUE, 2), ArgumentError, "class 2 is none of 2"),
        (lambda: f1_score(FOUND, TRUE, "binary"), ArgumentError, "'binary' of 3 classes"),
        (lambda: r2_score(np.ones((3, 1)), np.ones(3)), ShapeError, "r2_score"),
        (lambda: bleu([["a"]], [[]]), ArgumentError, "bleu got"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
