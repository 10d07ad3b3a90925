"""Sums over blocks come out as NumPy's of the whole, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from funcgrad.staging.backends.halving import add_rows, halves, in_pairs

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("count", [1, 7, 100, 4096, 12345])
@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("step", [1, 8])
def test_halves_are_all_of_it_in_order(count, depth, step):
    ends = halves(count, depth, step)
    assert len(ends) == 2**depth
    assert (ends[0][0], ends[-1][1]) == (0, count)
    assert all(ends[k][1] == ends[k + 1][0] for k in range(len(ends) - 1))
    assert all(start % step == 0 for start, _ in ends)


def test_halves_are_alike():
    sizes = [stop - start for start, stop in halves(4_000_001, 6, 8)]
    assert max(sizes) - min(sizes) <= 8 * 6


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32])
def test_sums_of_halves_in_pairs_are_numpys(dtype):
    for count in [1024, 4096, 4097, 5000, *RNG.integers(2000, 100_000, 20).tolist()]:
        x = (RNG.normal(size=count) * 100).astype(dtype)
        for depth in (1, 2, 3):
            parts = [np.add.reduce(x[i:j], None, dtype) for i, j in halves(count, depth, 8)]
            assert in_pairs(np.array(parts)) == np.add.reduce(x, None, dtype)


def test_other_parts_would_not_do():
    x = RNG.normal(size=10_000).astype(np.float32)
    parts = [np.add.reduce(x[i : i + 1250]) for i in range(0, 10_000, 1250)]
    assert float(np.sum(np.array(parts))) != float(np.sum(x))


@pytest.mark.parametrize("shape", [(100, 2), (100, 3), (64, 50), (30, 4, 5)])
@pytest.mark.parametrize("size", [1, 3, 50])
def test_rows_are_added_as_numpy_adds_them(shape, size):
    for dtype in (np.float64, np.float32):
        x = RNG.normal(size=shape).astype(dtype)
        total, kept = np.zeros(shape[1:], dtype), x.copy()
        for start in range(0, shape[0], size):
            add_rows(total, x[start : start + size])
        np.testing.assert_array_equal(total, np.sum(x, axis=0))
        np.testing.assert_array_equal(x, kept)
