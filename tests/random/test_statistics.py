"""Distributions and independence.

The tests use fixed keys, so they pass or fail for good. Their bounds are five or six standard
deviations, where those apply: a wrong sampler is far outside of them.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from funcgrad import random
from funcgrad.random import discrete, portable, selection

KEY = random.key(2024)


def fresh(number: int) -> random.Key:
    return random.fold_in(KEY, number)


def test_moments() -> None:
    n = 200_000
    euler = 0.5772156649015329
    for name, mean, variance, fourth in [
        ("uniform", 0.5, 1 / 12, 1 / 80),
        ("normal", 0.0, 1.0, 3.0),
        ("exponential", 1.0, 1.0, 9.0),
        ("gumbel", euler, math.pi**2 / 6, (math.pi**2 / 6) ** 2 * 5.4),
        ("laplace", 0.0, 2.0, 24.0),
        ("rademacher", 0.0, 1.0, 1.0),
    ]:
        x = getattr(fresh(2), name)(n)
        assert abs(x.mean() - mean) < 5 * math.sqrt(variance / n), name
        assert abs(x.var() - variance) < 5 * math.sqrt(fourth / n), name


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_distribution_functions(dtype: Any) -> None:
    """Kolmogorov's distance; 2.5 / sqrt(n) is exceeded with a probability of 1e-5."""
    n = 50_000
    for name, cdf in [
        ("uniform", lambda x: x),
        ("normal", lambda x: portable.normal_cdf(x)),
        ("exponential", lambda x: -np.expm1(-x)),
        ("gumbel", lambda x: np.exp(-np.exp(-x))),
        ("laplace", lambda x: np.where(x < 0, np.exp(-abs(x)) / 2, 1 - np.exp(-abs(x)) / 2)),
    ]:
        x = np.sort(getattr(fresh(3), name)(n, dtype)).astype(np.float64)
        assert np.abs(cdf(x) - (np.arange(n) + 0.5) / n).max() < 2.5 / math.sqrt(n), name


def test_uniform_stays_in_its_half_open_interval() -> None:
    x = fresh(4).uniform((1000,), np.float32, minval=-3.0, maxval=np.float64(2.0))
    assert x.dtype == np.float32
    assert x.min() >= -3.0
    assert x.max() < 2.0
    assert abs(x.mean() + 0.5) < 0.3
    # 16 and the next float32 are so close that most draws round to the upper bound.
    upper = np.nextafter(np.float32(16.0), np.float32(17.0))
    assert np.all(fresh(4).uniform(1000, np.float32, np.float32(16.0), upper) == 16.0)
    assert fresh(4).uniform(3, minval=[0.0, 10.0, 20.0], maxval=[1.0, 11.0, 20.0]).astype(
        int
    ).tolist() == [0, 10, 20]


@pytest.mark.parametrize(
    "bounds", [(-2.0, 2.0), (-1.0, 0.5), (2.0, 3.0), (-np.inf, -5.0), (6.0, 9.0)]
)
def test_truncated_normal_has_the_conditional_distribution(bounds: tuple[float, float]) -> None:
    lower, upper = bounds
    x = np.sort(fresh(5).truncated_normal(lower, upper, 20_000))
    assert lower <= x[0]
    assert x[-1] <= upper
    sign = -1.0 if lower > 0 else 1.0  # count from the left tail, where probabilities are exact
    start, end, p = (portable.normal_cdf(np.array(sign * v)) for v in (lower, upper, x))
    expected = (p - start) / (end - start)
    assert np.abs(expected - (np.arange(x.size) + 0.5) / x.size).max() < 2.5 / math.sqrt(x.size)
    single = fresh(5).truncated_normal(lower, upper, 100, np.float32)
    assert single.dtype == np.float32
    assert np.all((single >= lower) & (single <= upper))


def test_truncated_normal_broadcasts() -> None:
    x = fresh(5).truncated_normal([-1.0, 5.0], [1.0, 6.0], (3, 2))
    assert np.all((x >= [-1.0, 5.0]) & (x <= [1.0, 6.0]))
    assert fresh(5).truncated_normal(-1.0, [1.0, 2.0]).shape == (2,)
    assert isinstance(fresh(5).truncated_normal(-1.0, 1.0), np.float64)


def chi_square(counts: Any, probabilities: Any) -> float:
    """Return Pearson's statistic in standard deviations from its mean."""
    counts, p = np.asarray(counts), np.asarray(probabilities)
    expected = counts.sum() * p
    freedom = counts.size - 1
    return float((((counts - expected) ** 2 / expected).sum() - freedom) / math.sqrt(2 * freedom))


@pytest.mark.parametrize("n", [2, 3, 7, 10, 1000])
def test_randint_is_uniform(n: int) -> None:
    x = fresh(6).randint(100_000, -3, n - 3)
    assert abs(chi_square(np.bincount(x + 3, minlength=n), np.full(n, 1 / n))) < 5


def test_randint_has_no_modulo_bias() -> None:
    """Below 3 * 2**62, words modulo the bound would hit the first third twice as often."""
    x = fresh(7).randint(30_000, 0, 3 * 2**62, np.uint64)
    assert abs(chi_square(np.bincount((x >> 62).astype(int), minlength=3), [1 / 3] * 3)) < 5


def test_randint_is_exact_128_bit_arithmetic() -> None:
    words = fresh(8).bits((2, 50))
    for width in (1, 2, 6, 2**32 - 1, 2**32, 2**32 + 1, 10**15, 2**63, 2**64 - 1, 2**64):
        expected = [
            (((high << 64) + low) * width) >> 128 for high, low in zip(*words.tolist(), strict=True)
        ]
        word = np.uint64(width % 2**64)
        assert discrete.scale(words, word).tolist() == expected
        assert discrete.scale(words, np.full(50, word)).tolist() == expected
    top = np.full((2, 1), 2**64 - 1, np.uint64)
    assert discrete.scale(top, np.uint64(10)).tolist() == [9]


def test_randint_reaches_the_ends_of_every_dtype() -> None:
    for kind in "bBhHiIlL":
        dtype = np.dtype(kind)
        info = np.iinfo(dtype)
        x = fresh(9).randint(2000, info.min, int(info.max) + 1, dtype)
        spread = float(info.max) - float(info.min)
        assert x.dtype == dtype
        assert float(x.max()) - float(x.min()) > 0.99 * spread
    assert fresh(9).randint(3, 2**63 - 1, 2**63).tolist() == [2**63 - 1] * 3
    x = fresh(9).randint((500, 3), [0, 10, -5], [[3, 11, 0]])
    assert x.min(axis=0).tolist() == [0, 10, -5]
    assert x.max(axis=0).tolist() == [2, 10, -1]
    x = fresh(9).randint((500, 2), -5, np.array([0, 3], np.uint64))
    assert x.min(axis=0).tolist() == [-5, -5]
    assert x.max(axis=0).tolist() == [-1, 2]
    x = fresh(9).randint(2, np.array([2**64 - 2, 5], np.uint64), 2**64 - 1, np.uint64)
    assert x[0] == 2**64 - 2


def test_bernoulli_frequencies() -> None:
    p = np.array([0.0, 0.1, 0.5, 1.0])
    x = fresh(10).bernoulli(p, (20_000, 4))
    assert_allclose(x.mean(axis=0), p, atol=0.02)
    assert not x[:, 0].any()
    assert x[:, 3].all()
    assert isinstance(fresh(10).bernoulli(), np.bool_)
    assert fresh(10).bernoulli([0.5] * 3).shape == (3,)


def test_permutations_are_uniform() -> None:
    root = fresh(11)
    orders = Counter(tuple(root.fold_in(i).permutation(4).tolist()) for i in range(12_000))
    assert len(orders) == 24
    assert abs(chi_square(list(orders.values()), np.full(24, 1 / 24))) < 5


def test_permutation_of_arrays() -> None:
    x = np.arange(12).reshape(3, 4)
    rows, columns = fresh(12).permutation(x), fresh(12).permutation(x, axis=-1)
    assert sorted(map(tuple, rows)) == sorted(map(tuple, x))
    assert sorted(map(tuple, columns.T)) == sorted(map(tuple, x.T))
    big = np.tile(np.arange(50), (20, 1))
    apart = fresh(12).permutation(big, axis=1, independent=True)
    assert_array_equal(np.sort(apart, axis=1), big)
    assert len({tuple(row) for row in apart}) == 20
    down = fresh(12).permutation(big.T, axis=0, independent=True)
    assert_array_equal(down, apart.T)
    assert fresh(12).permutation(0).shape == (0,)
    assert fresh(12).permutation(["a", "b"]).shape == (2,)
    assert fresh(12).permutation(np.int64(5)).tolist() == fresh(12).permutation(5).tolist()


def test_equal_words_keep_their_position() -> None:
    words = np.array([[5, 1, 5, 1] * 20, range(80)], np.uint64)
    assert_array_equal(selection.order_of.bind(words), np.argsort(words, axis=-1, kind="stable"))


def test_choice_frequencies() -> None:
    p = np.array([0.0, 0.2, 0.0, 0.5, 0.3, 0.0])
    x = fresh(13).choice(6, (50_000,), p=3.0 * p)  # weights, as in jax.random
    counts = np.bincount(x, minlength=6)
    assert counts[[0, 2, 5]].sum() == 0
    assert abs(chi_square(counts[p > 0], p[p > 0])) < 5
    x = fresh(13).choice(np.arange(10, 15), (50_000,))
    assert abs(chi_square(np.bincount(x - 10, minlength=5), np.full(5, 0.2))) < 5


def test_choice_without_replacement_draws_one_after_the_other() -> None:
    p = np.array([0.5, 0.3, 0.2, 0.0])
    root = fresh(14)
    draws = [root.fold_in(i).choice(4, 2, replace=False, p=p).tolist() for i in range(20_000)]
    pairs = [(a, b) for a in range(3) for b in range(3) if a != b]
    counts = Counter(map(tuple, draws))
    assert set(counts) == set(pairs)
    expected = [p[a] * p[b] / (1.0 - p[a]) for a, b in pairs]
    assert abs(chi_square([counts[pair] for pair in pairs], expected)) < 5
    x = fresh(14).choice(10, (2, 5), replace=False)
    assert sorted(x.ravel().tolist()) == list(range(10))


def test_choice_shapes() -> None:
    a = np.arange(24).reshape(2, 3, 4)
    assert fresh(15).choice(a, (5, 6), axis=1).shape == (2, 5, 6, 4)
    assert fresh(15).choice(a, axis=-1).shape == (2, 3)
    assert isinstance(fresh(15).choice(5), np.int64)
    assert fresh(15).choice(0, 0).shape == fresh(15).choice(4, 0, p=[1] * 4).shape == (0,)
    assert fresh(15).choice(0, 0, p=[]).shape == (0,)
    assert fresh(15).choice(4, (), replace=False).shape == ()


def test_categorical_frequencies() -> None:
    p = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]])
    with np.errstate(divide="ignore"):
        logits = np.log(p) + 1000.0
    x = fresh(16).categorical(logits, shape=(30_000, 2))
    assert x.shape == (30_000, 2)
    assert abs(chi_square(np.bincount(x[:, 0], minlength=3), p[0])) < 5
    assert abs(chi_square(np.bincount(x[:, 1], minlength=2), [0.5, 0.5])) < 5
    assert fresh(16).categorical(logits.T, axis=0).shape == (2,)
    assert fresh(16).categorical(logits.T, 0, (4, 5, 2)).shape == (4, 5, 2)
    assert isinstance(fresh(16).categorical(logits[0]), np.int64)
    x = fresh(16).categorical(logits, shape=(3, 2), replace=False)[:, 0]
    assert sorted(x.tolist()) == [0, 1, 2]
    assert fresh(16).categorical([[0.0, 1.0]] * 3, axis=1, shape=(2, 3), replace=False).shape == (
        2,
        3,
    )


def test_parent_children_and_cousins_are_uncorrelated() -> None:
    n = 20_000
    parent = random.key(3)
    kin = [parent.clone(), *parent.split(4), *(parent.fold_in(i) for i in range(4))]
    kin += [random.key(4), random.key(2), *kin[1].clone().split(2)]
    draws = np.array([k.clone().normal(n) for k in kin])
    correlation = np.corrcoef(draws) - np.eye(len(kin))
    assert np.abs(correlation).max() < 5 / math.sqrt(n)
    shifted = draws[0, 1:] @ draws[1, :-1] / n
    assert abs(shifted) < 5 / math.sqrt(n)


def test_streams_share_no_words() -> None:
    root = random.key(0)
    kin = [root, *root.clone().split(3), root.fold_in(0), root.fold_in(1), random.key(1)]
    words = np.concatenate([k.clone().bits(5000) for k in kin] + [random.key_data(k) for k in kin])
    assert np.unique(words).size == words.size


def test_every_bit_is_fair() -> None:
    n = 20_000
    words = fresh(17).bits(n)
    ones = ((words[:, None] >> np.arange(64, dtype=np.uint64)) & 1).sum(axis=0)
    assert np.abs(ones - n / 2).max() < 5 * math.sqrt(n / 4)
