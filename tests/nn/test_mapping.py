"""Every function of `nn.functional` and `nn.losses` under `vmap`: the same as one call for each."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import funcgrad as fg
from funcgrad.nn import functional as F
from funcgrad.nn import losses

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(3, 4))
LABELS = np.array([2, 0, 3])
PROBABILITIES = np.array([[0.1, 0.2, 0.3, 0.4], [1.0, 0.0, 0.0, 0.0], [0.25] * 4])
IMAGES = {1: RNG.normal(size=(3, 2, 5)), 2: RNG.normal(size=(3, 2, 5, 4))}
IMAGES[3] = RNG.normal(size=(3, 2, 3, 4, 3))

# Name -> the arguments that differ from example to example, and the others.
CALLS = {
    "log_sigmoid": ((ROWS,), ()),
    "log_softmax": ((ROWS,), ()),
    "logsumexp": ((ROWS,), ()),
    "one_hot": ((LABELS,), (4,)),
    "relu": ((ROWS,), ()),
    "sigmoid": ((ROWS,), ()),
    "sigmoid_binary_cross_entropy": ((ROWS, PROBABILITIES), ()),
    "silu": ((ROWS,), ()),
    "softmax": ((ROWS,), ()),
    "softmax_cross_entropy": ((ROWS, PROBABILITIES), ()),
    "softmax_cross_entropy_with_integer_labels": ((ROWS, LABELS), ()),
    "softplus": ((ROWS,), ()),
    "swish": ((ROWS,), ()),
    "tanh": ((ROWS,), ()),
    "unfold": ((IMAGES[2],), (2,)),
}
CALLS["fold"] = ((RNG.normal(size=(3, 4, 6)),), ((3, 4), 2))
for count in (1, 2, 3):
    weights = RNG.normal(size=(3, 2, 2, *(2,) * count))
    CALLS[f"adaptive_avg_pool{count}d"] = ((IMAGES[count],), (2,))
    CALLS[f"adaptive_max_pool{count}d"] = ((IMAGES[count],), (2,))
    CALLS[f"avg_pool{count}d"] = ((IMAGES[count],), (2,))
    CALLS[f"max_pool{count}d"] = ((IMAGES[count],), (2,))
    CALLS[f"conv{count}d"] = ((IMAGES[count], weights), ())
    CALLS[f"conv_transpose{count}d"] = ((IMAGES[count], weights), ())

POINTWISE = (
    "arctan", "celu", "elu", "gelu", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_swish",
    "hard_tanh", "identity", "leaky_relu", "mish", "relu6", "rrelu", "selu", "soft_shrink",
    "soft_sign", "sparse_plus", "sparse_sigmoid", "squareplus", "tanh_shrink",
)  # fmt: skip
CALLS |= dict.fromkeys((*POINTWISE, "softmin", "glu", "standardize"), ((ROWS,), ()))
CALLS |= dict.fromkeys(("logmeanexp", "sparsemax"), ((ROWS,), ()))
CALLS["log1mexp"] = ((np.abs(ROWS) + 0.1,), ())
CALLS["threshold"] = ((ROWS,), (0.3, -1.0))
QUERIES = RNG.normal(size=(3, 5, 2, 4))
CALLS["dot_product_attention"] = ((QUERIES, QUERIES + 1, QUERIES - 1), ())
OTHERS, SIGNS = RNG.normal(size=(3, 4)), np.sign(RNG.normal(size=(3, 4)))
for name in (
    "absolute_error", "cosine_distance", "cosine_similarity", "huber_loss", "l1_loss", "l2_loss",
    "log_cosh", "mae", "mse", "smooth_l1_loss", "squared_error",
):  # fmt: skip
    CALLS[name] = ((ROWS, OTHERS), ())
for name in ("hinge_loss", "perceptron_loss"):
    CALLS[name] = ((ROWS, SIGNS), ())
for name in ("binary_cross_entropy_with_logits", "sigmoid_focal_loss", "sparsemax_loss"):
    CALLS[name] = ((ROWS, (SIGNS > 0).astype(float)), ())
for name in ("cross_entropy", "multiclass_hinge_loss", "multiclass_perceptron_loss"):
    CALLS[name] = ((ROWS, LABELS), ())
for name in ("multiclass_sparsemax_loss", "nll_loss"):
    CALLS[name] = ((ROWS, LABELS), ())
for name in ("poly_loss_cross_entropy", "ranking_softmax_loss", "safe_softmax_cross_entropy"):
    CALLS[name] = ((ROWS, PROBABILITIES), ())
for name in ("convex_kl_divergence", "generalized_kl_divergence", "kl_divergence"):
    CALLS[name] = ((ROWS, PROBABILITIES), ())
CALLS["kl_divergence_with_log_targets"] = ((ROWS, OTHERS), ())
CALLS["binary_cross_entropy"] = ((np.abs(np.tanh(ROWS)), PROBABILITIES), ())
CALLS["gaussian_nll_loss"] = ((ROWS, OTHERS, np.exp(ROWS)), ())
CALLS["poisson_nll_loss"] = ((ROWS, np.exp(OTHERS)), ())
CALLS["smooth_labels"] = ((PROBABILITIES,), (0.1,))
CALLS["triplet_margin_loss"] = ((ROWS, OTHERS, ROWS + OTHERS), ())
CALLS["margin_ranking_loss"] = ((ROWS, OTHERS, SIGNS), ())
CALLS["cosine_embedding_loss"] = ((ROWS, OTHERS, SIGNS[:, 0]), ())
MAPS = RNG.normal(size=(3, 2, 5, 4))
for name in ("dice_loss", "multiclass_generalized_dice_loss", "binary_dice_loss"):
    CALLS[name] = ((MAPS, np.abs(np.tanh(MAPS))), ())
CALLS["ntxent"] = ((MAPS[:, 0], np.array([[0, 1, 0, 1, 1]] * 3)), ())
SPOKEN = (MAPS, np.zeros((3, 2, 5)), np.array([[[1, 2], [3, 1]]] * 3), np.zeros((3, 2, 2)))
CALLS["ctc_loss"] = (SPOKEN, ())
CALLS["ctc_loss_with_forward_probs"] = (SPOKEN, ())
# Their arguments are not arrays alone; tests of their own.
APART = {"gumbel_softmax", "make_fenchel_young_loss"}

NAMES = sorted({*F.__all__, *losses.__all__} - APART)


def function_of(name):
    return getattr(losses if name in losses.__all__ else F, name)


def test_every_function_is_called():
    assert set(NAMES) == set(CALLS)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_vmap_is_a_loop(name):
    function, (mapped, others) = function_of(name), CALLS[name]
    got = fg.vmap(lambda *args: function(*args, *others))(*mapped)
    expected = [function(*args, *others) for args in zip(*mapped, strict=True)]
    check(got, expected)


def check(got, expected):
    """Compare with the results one by one, of which there may be several each."""
    if not isinstance(got, tuple):
        got, expected = (got,), [(x,) for x in expected]
    for ours, theirs in zip(got, zip(*expected, strict=True), strict=True):
        assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", sorted(set(CALLS) - {"one_hot"}))
def test_vmap_of_the_first_argument_alone_is_a_loop(name):
    function, ((first, *rest), others) = function_of(name), CALLS[name]
    rest = [x[0] for x in rest]
    got = fg.vmap(lambda x: function(x, *rest, *others))(first)
    check(got, [function(x, *rest, *others) for x in first])


@pytest.mark.parametrize("labels", [[0, 4, 1], [0, -1, 1]])
def test_labels_out_of_range_are_refused_under_vmap(labels):
    with pytest.raises(fg.errors.ArgumentError, match="out of range for 4 classes"):
        fg.vmap(losses.softmax_cross_entropy_with_integer_labels)(ROWS, np.array(labels))


def test_labels_may_differ_where_logits_do_not():
    got = fg.vmap(losses.softmax_cross_entropy_with_integer_labels, (None, 0))(ROWS[0], LABELS)
    assert_allclose(got, np.log(np.sum(np.exp(ROWS[0]))) - ROWS[0][LABELS], rtol=1e-14)


# Windows longer than the image, and kernels shorter than the stride


@pytest.mark.parametrize(
    ("size", "window", "stride", "padding", "largest", "mean"),
    [  # computed with PyTorch 2
        (2, 3, None, 0, 2.0, 1.5),
        (1, 3, None, 0, 1.0, 1.0),
        (2, 3, 2, 0, 2.0, 1.5),
        (1, 2, 2, 0, 1.0, 1.0),
        (2, 5, 3, 1, 2.0, 0.75),
    ],
)
def test_ceil_mode_takes_a_window_longer_than_the_image(
    size, window, stride, padding, largest, mean
):
    x = np.arange(1.0, size + 1).reshape(1, 1, size)
    assert_allclose(F.max_pool1d(x, window, stride, padding, ceil_mode=True), [[[largest]]])
    assert_allclose(F.avg_pool1d(x, window, stride, padding, ceil_mode=True), [[[mean]]])
    slope = fg.grad(lambda x: np.sum(F.max_pool1d(x, window, stride, padding, ceil_mode=True)))(x)
    assert_allclose(slope[0, 0], [*[0.0] * (size - 1), 1.0])


def test_ceil_mode_refuses_a_window_that_fits_nowhere():
    with pytest.raises(ValueError, match="max_pool1d"):
        F.max_pool1d(np.ones((1, 1, 1)), 4, 2, ceil_mode=True)


def test_valid_transposed_convolution_is_as_long_as_in_jax():
    x, weight = np.ones((1, 1, 3)), np.ones((1, 1, 2))
    out = F.conv_transpose1d(x, weight, stride=4, padding="VALID")
    assert_allclose(out, [[[1, 1, 0, 0] * 3]])
    assert F.conv_transpose1d(x, weight, stride=4).shape == (1, 1, 10)  # PyTorch's
    assert F.conv_transpose1d(x, weight, stride=1, padding="VALID").shape == (1, 1, 4)
