"""Training: a loop, its steps as pure functions, metrics, and what was measured.

>>> import funcgrad as fg
>>> fg.train.accuracy([1, 0, 1], [1, 1, 1])
0.6666666666666666
"""

from funcgrad.train.evaluating import evaluate
from funcgrad.train.fitting import FitResult, fit
from funcgrad.train.history import History
from funcgrad.train.metrics import (
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
from funcgrad.train.steps import TrainState, make_step, predict
from funcgrad.train.stopping import EarlyStopping

__all__ = [
    "EarlyStopping",
    "FitResult",
    "History",
    "TrainState",
    "accuracy",
    "bleu",
    "confusion_matrix",
    "evaluate",
    "f1_score",
    "fit",
    "make_step",
    "perplexity",
    "precision",
    "predict",
    "r2_score",
    "recall",
    "top_k_accuracy",
]
