"""Losses, under Optax's names: one number for each example, unless `reduction` says otherwise.

Where Optax has no such loss the names are PyTorch's. Predictions and targets have one shape: what
would be broadcast without a word, as (n, 1) against (n,), is refused. Start from logits, the
outputs of the last layer, wherever a loss does: a probability that has rounded to 0 or 1 has lost
what the gradient needs.
"""

from __future__ import annotations

from funcgrad.nn.classification_losses import (
    hinge_loss,
    multiclass_hinge_loss,
    multiclass_perceptron_loss,
    multiclass_sparsemax_loss,
    perceptron_loss,
    poly_loss_cross_entropy,
    safe_softmax_cross_entropy,
    sigmoid_focal_loss,
    sparsemax,
    sparsemax_loss,
)
from funcgrad.nn.cross_entropies import (
    sigmoid_binary_cross_entropy,
    softmax_cross_entropy,
    softmax_cross_entropy_with_integer_labels,
)
from funcgrad.nn.ctc import (
    ctc_loss,
    ctc_loss_with_forward_probs,
)
from funcgrad.nn.distribution_losses import (
    convex_kl_divergence,
    generalized_kl_divergence,
    kl_divergence,
    kl_divergence_with_log_targets,
    make_fenchel_young_loss,
    smooth_labels,
)
from funcgrad.nn.label_losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    nll_loss,
)
from funcgrad.nn.overlap_losses import (
    binary_dice_loss,
    dice_loss,
    multiclass_generalized_dice_loss,
)
from funcgrad.nn.pair_losses import (
    cosine_embedding_loss,
    margin_ranking_loss,
    ntxent,
    ranking_softmax_loss,
    triplet_margin_loss,
)
from funcgrad.nn.regression_losses import (
    absolute_error,
    cosine_distance,
    cosine_similarity,
    gaussian_nll_loss,
    huber_loss,
    l1_loss,
    l2_loss,
    log_cosh,
    mae,
    mse,
    poisson_nll_loss,
    smooth_l1_loss,
    squared_error,
)

__all__ = [
    "absolute_error",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "binary_dice_loss",
    "convex_kl_divergence",
    "cosine_distance",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "ctc_loss",
    "ctc_loss_with_forward_probs",
    "dice_loss",
    "gaussian_nll_loss",
    "generalized_kl_divergence",
    "hinge_loss",
    "huber_loss",
    "kl_divergence",
    "kl_divergence_with_log_targets",
    "l1_loss",
    "l2_loss",
    "log_cosh",
    "mae",
    "make_fenchel_young_loss",
    "margin_ranking_loss",
    "mse",
    "multiclass_generalized_dice_loss",
    "multiclass_hinge_loss",
    "multiclass_perceptron_loss",
    "multiclass_sparsemax_loss",
    "nll_loss",
    "ntxent",
    "perceptron_loss",
    "poisson_nll_loss",
    "poly_loss_cross_entropy",
    "ranking_softmax_loss",
    "safe_softmax_cross_entropy",
    "sigmoid_binary_cross_entropy",
    "sigmoid_focal_loss",
    "smooth_l1_loss",
    "smooth_labels",
    "softmax_cross_entropy",
    "softmax_cross_entropy_with_integer_labels",
    "sparsemax",
    "sparsemax_loss",
    "squared_error",
    "triplet_margin_loss",
]
