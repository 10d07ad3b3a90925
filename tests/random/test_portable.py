"""Functions that give the same bits on every machine."""

from __future__ import annotations

import math

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from funcgrad import random
from funcgrad.random import continuous, portable

KEY = random.key(2024)


def test_portable_functions_are_accurate() -> None:
    x = np.exp(np.linspace(-700.0, 700.0, 2001))
    assert_allclose(portable.log(x), np.log(x), rtol=1e-15, atol=1e-15)
    near_one = 1.0 - np.linspace(1e-9, 0.4, 1001)
    assert_allclose(portable.log(near_one), np.log(near_one), rtol=5e-16)
    x = np.linspace(-700.0, 3.0, 2001)
    assert_allclose(portable.exp(x), np.exp(x), rtol=1e-15)
    assert_array_equal(portable.exp(np.array([-np.inf, -800.0, 0.0])), [0.0, 0.0, 1.0])
    x = np.linspace(-37.0, 8.0, 1001)
    expected = [0.5 * math.erfc(-v / math.sqrt(2.0)) for v in x]
    assert_allclose(portable.normal_cdf(x), expected, rtol=3e-13)
    assert_array_equal(portable.normal_cdf(np.array([-np.inf, -50.0, 50.0, np.inf])), [0, 0, 1, 1])


def test_the_quantile_inverts_the_distribution_function() -> None:
    tail = np.exp(np.linspace(-690.0, math.log(0.5), 2001))
    x = portable.normal_quantile(tail - 0.5, tail)
    assert_allclose([0.5 * math.erfc(-v / math.sqrt(2.0)) for v in x], tail, rtol=1e-12)
    # Values by mpmath at 40 digits
    q = np.array([0.25, -0.475, 0.5 - 2.0**-40, -0.5 + 2.0**-54])
    expected = [0.6744897501960817, -1.959963984540054, 7.047700256664409, -8.292361075813596]
    assert_allclose(portable.normal_quantile(q, 0.5 - np.abs(q)), expected, rtol=1e-15)


def test_python_floats_and_arrays_give_the_same_bits() -> None:
    q = np.concatenate([np.linspace(-0.4999, 0.4999, 999), [0.5 - 2.0**-54, -0.5 + 2.0**-50]])
    assert portable.normal_quantile_floats(q.tolist()) == (
        portable.normal_quantile(q, 0.5 - np.abs(q)).tolist()
    )
    few, many = random.clone(KEY).normal(64), random.clone(KEY).normal(20_000)
    assert_array_equal(few, many[:64])


def test_extreme_words_give_finite_numbers_inside_the_range() -> None:
    ends = np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)
    for inverse in (
        continuous.to_normal,
        continuous.to_exponential,
        continuous.to_gumbel,
        continuous.to_laplace,
    ):
        assert np.all(np.isfinite(inverse(ends)))
    assert np.all(continuous.to_exponential(ends) > 0.0)
    x = continuous.to_normal(ends)
    assert x[0] == -x[-1]
    assert x[2] == -x[3]
    assert 8.2 < x[-1] < 8.3
