"""Keys as values, and the words that they stand for."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from funcgrad import random
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.random import stream

KEY = random.key(2024)


def philox(counter: list[int], key: list[int]) -> list[int]:
    """One block of Philox4x64-10 by the paper, in Python integers."""
    mask = 2**64 - 1
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = 0xD2E7470EE14C6C93 * c0, 0xCA5A826395121157 * c2
        c0, c1, c2, c3 = (p1 >> 64) ^ c1 ^ k0, p1 & mask, (p0 >> 64) ^ c3 ^ k1, p0 & mask
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) & mask, (k1 + 0xBB67AE8584CAA73B) & mask
    return [c0, c1, c2, c3]


def test_the_cipher_is_the_published_one() -> None:
    """The first vector of Random123's known answers; NumPy adds one to the counter before."""
    answer = [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B]
    assert philox([0] * 4, [0] * 2) == answer
    last = 2**64 - 1
    assert stream.words(np.zeros(2, np.uint64), (last,) * 4, 4).tolist() == answer


def test_words_split_and_fold_are_blocks_of_separate_domains() -> None:
    k = random.key_data(KEY).tolist()
    draws = [*philox([1, 0, 0, 0], k), *philox([2, 0, 0, 0], k)]
    assert random.bits(random.clone(KEY), 7).tolist() == draws[:7]
    children = random.key_data(random.split(random.clone(KEY), 3)).ravel().tolist()
    assert children == [*philox([1, 0, 0, 1], k), *philox([2, 0, 0, 1], k)][:6]
    assert random.key_data(random.fold_in(KEY, 7)).tolist() == philox([8, 1, 0, 2], k)[:2]
    assert random.key_data(random.key(7)).tolist() == philox([8, 1, 0, 3], [0, 0])[:2]


def test_a_large_seed_is_absorbed_limb_by_limb() -> None:
    first = philox([5 + 1, 2, 0, 3], [0, 0])[:2]
    assert random.key_data(random.key(2**64 + 5)).tolist() == philox([1 + 1, 1, 0, 3], first)[:2]


def test_seeds_of_any_size_and_sign_give_keys_of_their_own() -> None:
    seeds = [0, 1, -1, 2**31, 2**32, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64 - 1, 2**64]
    seeds += [2**64 + 1, -(2**64), 2**128, -(2**128), 10**40, -(10**40), *range(2, 200)]
    assert len({random.key(seed) for seed in seeds}) == len(seeds)
    assert random.key(np.int32(-3)) == random.key(-3) == random.key(np.array(-3))
    assert len({random.fold_in(KEY, seed) for seed in seeds} | {KEY}) == len(seeds) + 1
    assert random.fold_in(KEY, 2**70) != random.fold_in(random.fold_in(KEY, 0), 64)


@pytest.mark.parametrize("seed", [1.0, "1", None, True, [1], np.array([1]), 1j])
def test_a_seed_is_an_integer(seed: Any) -> None:
    with pytest.raises(ArgumentError, match=r"key\(\) needs an integer, got .*\n  where: arg.*\n"):
        random.key(seed)
    with pytest.raises(ArgumentError, match=r"fold_in\(\) needs an integer"):
        random.fold_in(KEY, seed)


def test_a_key_is_a_value() -> None:
    a, b = random.key(5), random.key(5)
    assert a == b
    assert hash(a) == hash(b)
    assert a is not b
    assert a != random.key(6)
    assert a != 5
    assert a != "5"
    assert random.split(a, 1) != random.split(b, 1)[0]
    assert (a.shape, a.ndim, a.size, bool(a)) == ((), 0, 1, True)
    with pytest.raises(AttributeError):
        a.shape = (3,)  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        a._data[0] = 0
    random.key_data(a)[0] = 0  # a copy
    assert a == random.Key(b)


def test_keys_print_their_bits() -> None:
    assert repr(random.key(0)) == "Key(63e00f8d4f9b120498b01c6cb8662a73)"
    assert repr(random.split(random.key(0))) == (
        "Key([910c31f44554ed3f967700683ad211da, 6e9797e8c7e4da64b17573bb288313ab], shape=(2,))"
    )
    assert repr(random.split(random.key(0), (5, 5))).endswith(", ...], shape=(5, 5))")


def test_copies_and_pickles_are_equal_and_begin_unused() -> None:
    key = random.key(1)
    expected = key.normal()
    keys = random.split(random.key(2), (2, 3))
    for again in (copy.copy, copy.deepcopy, lambda k: pickle.loads(pickle.dumps(k)), random.clone):
        assert again(key) == key
        assert again(key).normal() == expected
        assert again(keys) == keys


def test_an_array_of_keys_unpacks_indexes_and_iterates() -> None:
    k1, k2, k3 = keys = random.split(random.key(0), 3)
    assert len(keys) == 3
    assert keys.shape == (3,)
    assert keys.size == 3
    assert keys[0] is k1
    assert keys[-1] is k3
    assert keys[1:] == random.wrap_key_data(random.key_data(keys)[1:])
    assert [k.shape for k in keys] == [()] * 3
    assert len({k1, k2, k3}) == 3
    grid = random.split(random.key(0), (2, 3))
    assert grid.shape == (2, 3)
    assert grid[1].shape == (3,)
    assert grid[1, 2].shape == ()
    assert grid[..., 0].shape == (2,)
    assert grid[None].shape == (1, 2, 3)
    assert grid[:, np.array([True, False, True])].shape == (2, 2)
    assert grid[0] == keys
    assert next(iter(grid))[1] == k2
    assert random.split(random.key(0), 0).shape == (0,)
    assert not random.split(random.key(0), 0)
    with pytest.raises(IndexError):
        keys[3]
    with pytest.raises(IndexError):
        keys[0, 0]


def test_a_single_key_does_not_unpack() -> None:
    with pytest.raises(ArgumentError, match=r"cannot be unpacked\n.*\n  fix:   k1, k2 = random.s"):
        _, _ = random.key(0)
    with pytest.raises(TypeError, match="cannot be indexed"):
        random.key(0)[0]
    with pytest.raises(TypeError, match="has no length"):
        len(random.key(0))


def test_a_key_is_no_array() -> None:
    for key in (random.key(0), random.split(random.key(0))):
        with pytest.raises(ArgumentError, match="not an array of numbers"):
            np.asarray(key)
        with pytest.raises(TypeError):
            key + np.ones(3)


def test_wrap_key_data_undoes_key_data_and_checks() -> None:
    keys = random.split(random.key(0), (2, 3))
    data = random.key_data(keys)
    assert data.shape == (2, 3, 2)
    assert data.dtype == np.uint64
    wrapped = random.wrap_key_data(data)
    data[...] = 0
    assert wrapped == keys
    with pytest.raises(DtypeError, match=r"needs uint64, got int64\[2\]"):
        random.wrap_key_data(np.zeros(2, np.int64))
    with pytest.raises(ShapeError, match=r"last axis of length 2, got the shape \(3,\)"):
        random.wrap_key_data(np.zeros(3, np.uint64))


@pytest.mark.parametrize("num", [2.0, "2", None, True, (2, 1.5)])
def test_num_of_split_is_an_integer(num: Any) -> None:
    key = random.key(0)
    with pytest.raises(ArgumentError, match=r"split\(\)"):
        random.split(key, num)
    with pytest.raises(ShapeError, match="negative length"):
        random.split(key, -1)
    random.split(key)  # errors did not use it up
