"""The normal distribution function in single and double precision, against the error function."""

import numpy as np
import pytest
from scipy.special import ndtr

from funcgrad.rules.nn.normal import normal_cdf

POINTS = np.concatenate([np.linspace(-13, 13, 100_001), [-0.0, 0.0]])


def test_single_precision_is_exact_in_both_tails():
    x = POINTS.astype(np.float32)
    np.testing.assert_allclose(normal_cdf(x), ndtr(x.astype(float)), rtol=8e-7, atol=0)


def test_double_precision_is_exact_in_both_tails():
    np.testing.assert_allclose(normal_cdf(POINTS), ndtr(POINTS), rtol=1e-12, atol=0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_far_out_are_0_and_1(dtype):
    x = np.array([-np.inf, -60.0, 0.0, 60.0, np.inf, np.nan], dtype)
    out = normal_cdf(x)
    assert out.dtype == dtype
    np.testing.assert_allclose(out, [0, 0, 0.5, 1, 1, np.nan], rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_order_in_memory(dtype):
    x = np.linspace(-3, 3, 24, dtype=dtype).reshape(2, 3, 4)
    expected = ndtr(x.astype(float))
    for order in ((2, 0, 1), (0, 2, 1), (2, 1, 0)):
        turned = x.transpose(order)
        np.testing.assert_allclose(normal_cdf(turned), expected.transpose(order), rtol=1e-6)
    np.testing.assert_allclose(normal_cdf(x[:, ::2, ::-1]), expected[:, ::2, ::-1], rtol=1e-6)


def test_pieces_of_a_large_array_are_alike():
    x = np.linspace(-5, 5, 100_000, dtype=np.float32)
    np.testing.assert_array_equal(normal_cdf(x)[70_000:70_100], normal_cdf(x[70_000:70_100]))
