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

NAMES = sorted({*F.__all__, *losses.__all__})


def function_of(name):
    return getattr(losses if name in losses.__all__ else F, name)


def test_every_function_is_called():
    assert set(NAMES) == set(CALLS)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_vmap_is_a_loop(name):
    function, (mapped, others) = function_of(name), CALLS[name]
    got = fg.vmap(lambda *args: function(*args, *others))(*mapped)
    expected = [function(*args, *others) for args in zip(*mapped, strict=True)]
    assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", sorted(set(CALLS) - {"one_hot"}))
def test_vmap_of_the_first_argument_alone_is_a_loop(name):
    function, ((first, *rest), others) = function_of(name), CALLS[name]
    rest = [x[0] for x in rest]
    got = fg.vmap(lambda x: function(x, *rest, *others))(first)
    expected = [function(x, *rest, *others) for x in first]
    assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


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
