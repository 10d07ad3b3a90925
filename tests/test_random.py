"""Keys, samplers and their numbers.

The statistical tests use fixed keys, so they pass or fail for good. Their bounds are five or six
standard deviations, where those apply: a wrong sampler is far outside of them.
"""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import subprocess
import sys
import threading
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from funcgrad import random
from funcgrad.errors import ArgumentError, DtypeError, ShapeError, location
from funcgrad.random import continuous, discrete, portable, selection, stream

KEY = random.key(2024)
NORMAL_LIKE = ["normal", "exponential", "gumbel", "laplace"]
FLOAT_SAMPLERS = [*NORMAL_LIKE, "uniform"]
SAMPLERS: dict[str, tuple[Any, ...]] = {
    "bits": (3,),
    "uniform": (3,),
    "normal": (3,),
    "exponential": (3,),
    "gumbel": (3,),
    "laplace": (3,),
    "rademacher": (3,),
    "truncated_normal": (-1.0, 2.0, 3),
    "bernoulli": (0.5, 3),
    "randint": (3, 0, 9),
    "permutation": (3,),
    "choice": (9, 3),
    "categorical": (np.zeros(9),),
}


@pytest.fixture(autouse=True)
def _reuse_is_an_error() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def fresh(number: int) -> random.Key:
    return random.fold_in(KEY, number)


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


# Words and keys


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


# Reuse


def line() -> int:
    return sys._getframe(1).f_lineno


def test_reuse_warns_and_names_both_lines() -> None:
    key = random.key(0)
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        first = line() + 1
        random.normal(key)
        key.split()
        last = line() - 1
    (warning,) = record
    assert warning.category is random.KeyReuseWarning
    text = str(warning.message)
    assert f"first by normal() at {this_file()}:{first}, " in text
    assert f"then by split() at {this_file()}:{last}\n" in text
    assert text.startswith("a key was used twice")
    assert "\n  fix:   k1, k2 = " in text
    assert (warning.filename, warning.lineno) == (__file__, last)


def this_file() -> str:
    return location(sys._getframe().f_code, 0).removesuffix(":0")


@pytest.mark.parametrize("first", [*SAMPLERS, "split"])
def test_every_use_uses_a_key_up(first: str) -> None:
    for second in ("normal", "split"):
        key = random.key(0)
        getattr(random, first)(key, *SAMPLERS.get(first, ()))
        with pytest.raises(random.KeyReuseWarning, match=first):
            getattr(key, second)()


def test_reuse_can_be_silenced_and_warns_once_in_a_loop() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", random.KeyReuseWarning)
        key = random.key(0)
        assert key.normal() == key.normal()
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("default")
        for seed in range(5):
            key = random.key(seed)
            for _ in range(3):
                key.normal()
    assert len(record) == 1


def test_folding_looking_and_copying_use_nothing_up() -> None:
    key = random.key(0)
    assert key.fold_in(1) == key.fold_in(1)
    key.clone(), random.key_data(key), repr(key), hash(key), key.normal(), key.fold_in(1)


def test_children_remember_their_use_through_their_array() -> None:
    keys = random.split(random.key(0))
    keys[0].normal()
    with pytest.raises(random.KeyReuseWarning):
        keys[-2].normal()
    _, k2 = keys
    k2.normal()
    with pytest.raises(random.KeyReuseWarning):
        next(itertools.islice(keys, 1, None)).normal()


# Errors


@pytest.mark.parametrize("use", [*SAMPLERS, "split", "fold_in"])
def test_an_int_is_not_a_key(use: str) -> None:
    arguments = (1,) if use == "fold_in" else SAMPLERS.get(use, ())
    with pytest.raises(ArgumentError) as caught:
        getattr(random, use)(0, *arguments)
    what, where, fix = str(caught.value).split("\n")
    assert what == f"{use}() needs a key, got int 0: write key(0)"
    assert where.startswith(f"  where: argument 'key' of {use}() at ")
    assert "test_random.py:" in where
    assert fix == f"  fix:   random.{use}(random.key(0), ...)"


def test_other_wrong_keys_say_what_to_write() -> None:
    with pytest.raises(ArgumentError, match=r"got uint64\[2\]: write wrap_key_data\(data\)"):
        random.normal(random.key_data(KEY))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"got NoneType None: write key\(0\)"):
        random.normal(None)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"one key, got an array of keys of shape \(2,\)"):
        random.normal(random.split(random.key(0)))
    with pytest.raises(ArgumentError, match="clone"):
        random.clone(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [n for n in SAMPLERS if n not in ("permutation", "categorical")])
def test_shapes_are_checked_before_the_key_is_used(name: str) -> None:
    arguments: tuple[float, ...] = {
        "truncated_normal": (-1.0, 2.0),
        "bernoulli": (0.5,),
        "choice": (9,),
    }.get(name, ())
    named = {"minval": 0, "maxval": 9} if name == "randint" else {}
    draw, key = getattr(random, name), random.key(0)
    with pytest.raises(ShapeError, match=rf"{name}\(\) got shape=\(2, -1\), which has a neg"):
        draw(key, *arguments, shape=(2, -1), **named)
    bad: list[Any] = [2.0, "3", (2, None)]
    for shape in bad:
        with pytest.raises(ArgumentError, match=rf"{name}\(\) got shape=.* not made of int"):
            draw(key, *arguments, shape=shape, **named)
    good: list[Any] = [(3, (3,)), ((), ()), ([2, np.int8(3)], (2, 3)), ((2, 0), (2, 0))]
    for shape, lengths in good:
        assert draw(random.clone(key), *arguments, shape=shape, **named).shape == lengths
    assert draw(key, *arguments, shape=np.array([2, 1]), **named).shape == (2, 1)


def test_bad_parameters_are_named() -> None:
    key = random.key(0)
    bad = [
        (ArgumentError, "between which there is no integer", lambda: key.randint(3, 5, 5)),
        (ArgumentError, "between which there is no", lambda: key.randint(2, [0, 5], [9, 5])),
        (ArgumentError, "into int8", lambda: key.randint(3, 0, 129, np.int8)),
        (ArgumentError, "into int64", lambda: key.randint(3, [0, 1], 2**70)),
        (ArgumentError, "into uint64", lambda: key.randint(3, -1, 5, np.uint64)),
        (DtypeError, r"needs integers, got float 5\.0", lambda: key.randint(3, 0, 5.0)),
        (DtypeError, "draws integers, not float64", lambda: key.randint(3, 0, 5, float)),
        (ShapeError, "cannot broadcast", lambda: key.randint(3, [0, 1], 5)),
        (ArgumentError, r"outside \[0, 1\]", lambda: key.bernoulli(1.5)),
        (ArgumentError, r"outside \[0, 1\]", lambda: key.bernoulli([0.5, -0.1])),
        (ArgumentError, r"outside \[0, 1\]", lambda: key.bernoulli(math.nan)),
        (ShapeError, r"p of shape \(2,\) to shape=\(3,\)", lambda: key.bernoulli([0.5] * 2, 3)),
        (ArgumentError, "draw 4 of 3 entries wit", lambda: key.choice(3, (4,), replace=False)),
        (ArgumentError, "draw 2 of 1", lambda: key.choice(3, 2, replace=False, p=[0, 1, 0])),
        (ArgumentError, "draw 1 of 0", lambda: key.choice(0)),
        (ShapeError, r"p of shape \(2,\) for a population of 3", lambda: key.choice(3, p=[1, 2])),
        (ArgumentError, "negative, not finite", lambda: key.choice(2, p=[-1.0, 2.0])),
        (ArgumentError, "all zero", lambda: key.choice(2, p=[0.0, 0.0])),
        (ShapeError, "negative length", lambda: key.choice(-1)),
        (ArgumentError, "needs logits along an axis", lambda: key.categorical(1.0)),
        (
            ShapeError,
            r"the shape \(3,\) for logits",
            lambda: key.categorical(np.ones((2, 4)), 1, 3),
        ),
        (ArgumentError, "draw 5 of 4", lambda: key.categorical(np.ones(4), shape=5, replace=False)),
        (ArgumentError, "0 categories", lambda: key.categorical(np.ones(0))),
        (ArgumentError, "out of order", lambda: key.truncated_normal(1.0, 1.0)),
        (DtypeError, "draws float64, float32 or float16, not int64", lambda: key.normal(3, int)),
        (DtypeError, "not complex128", lambda: key.uniform(3, complex)),
        (ArgumentError, "nothing finite", lambda: key.uniform(minval=-1e308, maxval=1e308)),
        (ArgumentError, "nothing finite", lambda: key.uniform(minval=2.0)),
        (ShapeError, "cannot broadcast", lambda: key.uniform(minval=np.zeros(2))),
        (ArgumentError, "cannot draw -1 as uint8", lambda: key.rademacher(3, np.uint8)),
        (ShapeError, "negative length", lambda: key.permutation(-2)),
        (ArgumentError, r"got x=2\.5, which is not made of integers", lambda: key.permutation(2.5)),
    ]
    for kind, words, call in bad:
        with pytest.raises(kind, match=words) as caught:
            call()
        assert len(str(caught.value).split("\n")) == 3
    with pytest.raises(np.exceptions.AxisError):
        key.permutation(np.zeros(3), axis=1)
    key.normal()  # still unused


# Shapes, dtypes


@pytest.mark.parametrize("name", FLOAT_SAMPLERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, "float32", float, None])
def test_float_draws_have_their_dtype_and_shape(name: str, dtype: Any) -> None:
    for shape in [(), (5,), (2, 3), (0,), (3, 0), (100, 2)]:
        out: Any = getattr(random, name)(random.clone(KEY), shape, dtype)
        assert out.dtype == np.dtype(dtype)
        assert out.shape == shape
        assert isinstance(out, np.ndarray if shape else np.generic)
        if shape:
            out[...] = 0  # writable, and nobody else's


@pytest.mark.parametrize("name", NORMAL_LIKE)
def test_a_float32_draw_is_the_rounded_float64_draw(name: str) -> None:
    for count in (10, 1000):
        double = getattr(random, name)(random.clone(KEY), count)
        single = getattr(random, name)(random.clone(KEY), count, np.float32)
        assert_array_equal(double.astype(np.float32), single)


def test_a_method_is_the_function() -> None:
    for name, arguments in SAMPLERS.items():
        out = getattr(random.clone(KEY), name)(*arguments)
        assert_array_equal(out, getattr(random, name)(random.clone(KEY), *arguments))
    assert KEY.fold_in(3) == random.fold_in(KEY, 3)
    assert random.clone(KEY).split(3) == random.split(random.clone(KEY), 3)


def test_discrete_draws_have_their_dtypes() -> None:
    assert fresh(0).bits(3).dtype == np.uint64
    assert fresh(0).bits(3, np.uint8).dtype == np.uint8
    assert fresh(0).bernoulli().dtype == bool
    assert fresh(0).rademacher(2).dtype == np.int64
    assert fresh(0).rademacher(3, np.float32).dtype == np.float32
    assert fresh(0).randint((), 0, 5).dtype == np.int64
    assert fresh(0).randint(4, 0, 5, np.uint8).dtype == np.uint8
    assert fresh(0).permutation(4).dtype == fresh(0).choice(4, 2).dtype == np.int64
    assert fresh(0).categorical(np.zeros(3)).dtype == np.int64
    assert fresh(0).permutation(np.zeros(4, np.float32)).dtype == np.float32


def test_complex_normals_have_variance_one() -> None:
    z = fresh(1).normal((200, 100), np.complex128)
    assert z.dtype == np.complex128
    assert z.shape == (200, 100)
    assert abs(np.mean(abs(z) ** 2) - 1.0) < 0.05
    assert abs(np.mean(z * z)) < 0.05
    assert fresh(1).normal(3, np.complex64).dtype == np.complex64
    assert isinstance(fresh(1).normal((), np.complex64), np.complex64)


# Portable functions


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


# Statistics


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
    assert_array_equal(selection._order(words), np.argsort(words, axis=-1, kind="stable"))


def test_choice_frequencies() -> None:
    p = np.array([0.0, 0.2, 0.0, 0.5, 0.3, 0.0])
    x = fresh(13).choice(6, (50_000,), p=3.0 * p)  # weights need not sum to one
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


# Traced parameters


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """A duck array that answers NumPy's protocols and refuses to become an array."""

    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value)
        self.shape, self.dtype, self.ndim = self.value.shape, self.value.dtype, self.value.ndim

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("a traced value was converted")

    def __bool__(self) -> bool:
        raise TypeError("a traced value was branched on")

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        return Traced(getattr(ufunc, method)(*map(bare, args), **kwargs))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return Traced(func(*map(bare, args), **{k: bare(v) for k, v in kwargs.items()}))

    def __getitem__(self, index: Any) -> Traced:
        return Traced(self.value[index])

    def astype(self, dtype: Any) -> Traced:
        return Traced(self.value.astype(dtype))


def bare(value: Any) -> Any:
    return value.value if isinstance(value, Traced) else value


@pytest.mark.parametrize(
    "draw",
    [
        lambda k, t: k.uniform((3,), minval=t(-1.0)),
        lambda k, t: k.uniform((2, 3), np.float32, t(np.zeros(3)), t(np.ones(3))),
        lambda k, t: k.uniform((), maxval=t(2.0)),
        lambda k, t: k.bernoulli(t(0.3), (4,)),
        lambda k, t: k.bernoulli(t(np.array([0.3, 0.9]))),
        lambda k, t: k.categorical(t(np.zeros((2, 3)))),
        lambda k, t: k.categorical(t(np.zeros((2, 3))), 0, (5, 3)),
        lambda k, t: k.categorical(t(np.zeros((2, 3))), shape=(3, 2), replace=False),
        lambda k, t: k.permutation(t(np.arange(5.0))),
        lambda k, t: k.permutation(t(np.ones((2, 3))), 1, True),
        lambda k, t: k.choice(t(np.arange(5.0)), (2, 2)),
        lambda k, t: k.choice(t(np.arange(5.0)), (2,), False, np.arange(5)),
        lambda k, t: t(3.0) + t(2.0) * k.normal(4),
    ],
)
def test_parameters_may_be_traced(draw: Any) -> None:
    plain, traced = draw(random.clone(KEY), np.asarray), draw(random.clone(KEY), Traced)
    assert isinstance(traced, Traced)
    assert traced.dtype == plain.dtype
    assert traced.shape == plain.shape
    assert_array_equal(traced.value, plain)


# No state, threads, import


def test_no_state_passes_from_one_call_to_the_next() -> None:
    state: Any = np.random.get_state()  # noqa: NPY002  # NumPy's global state, untouched
    expected = [fresh(i).normal(100) for i in range(20)]
    random.bits(fresh(99), 3)  # leaves a half-used block
    for i in reversed(range(20)):
        fresh(i).randint((), 0, 2**31, np.int32)
        assert_array_equal(fresh(i).normal(100), expected[i])
    after: Any = np.random.get_state()  # noqa: NPY002
    assert_array_equal(after[1], state[1])


def test_threads_draw_the_same_numbers() -> None:
    expected = [fresh(i).normal(500) for i in range(40)]
    wrong: list[int] = []

    def work() -> None:
        for _ in range(5):
            for i in range(40):
                if not np.array_equal(fresh(i).normal(500), expected[i]):
                    wrong.append(i)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_draw_in_the_middle_of_a_draw_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal handler or finalizer may draw between setting the state and taking the words."""

    class Interrupted:
        def __init__(self) -> None:
            self.inner = np.random.Philox(key=0)

        def __setattr__(self, name: str, value: Any) -> None:
            object.__setattr__(self, name, value)
            if name == "state":
                self.inner.state = value
                random.key(0).bits(3)

        def random_raw(self, count: int) -> Any:
            return self.inner.random_raw(count)

    expected = fresh(1).bits(5)
    key = fresh(1)
    monkeypatch.setattr(stream, "_idle", [np.random.Philox(key=0), Interrupted()])
    assert_array_equal(key.bits(5), expected)
    assert len(stream._idle) == 2  # both are back


def test_importing_does_not_load_numpy_random() -> None:
    """NumPy loads it on first use, which costs a fifth of `import numpy`."""
    program = (
        "import sys, numpy\n"
        "before = 'numpy.random' in sys.modules\n"
        "import funcgrad.random\n"
        "assert before == ('numpy.random' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# Golden values: the same on every machine and with every NumPy. They change only with a note in
# CHANGELOG.md, because they change everybody's results.

LOGITS = [-2.0, -1.0, 0.5, 1.0]
WEIGHTS = [0.0, 1.0, 2.0, 3.0, 4.0]
CALLS: dict[str, Any] = {
    **{
        f"{name} {dtype}": lambda k, name=name, dtype=dtype: getattr(k, name)((4,), dtype)
        for name in FLOAT_SAMPLERS
        for dtype in ("float64", "float32")
    },
    "normal complex128": lambda k: k.normal(2, np.complex128).view(np.float64),
    "normal, many": lambda k: k.normal(1000)[-3:],
    "uniform, scaled": lambda k: k.uniform(3, minval=-0.3, maxval=0.7),
    "truncated_normal float64": lambda k: k.truncated_normal([-1.0, 2.0, -np.inf, -2.0], np.inf),
    "truncated_normal float32": lambda k: k.truncated_normal(-2.0, 2.0, 4, np.float32),
    "bits": lambda k: k.bits(3),
    "bits uint16": lambda k: k.bits(4, np.uint16),
    "bernoulli": lambda k: k.bernoulli(0.4, 12),
    "rademacher": lambda k: k.rademacher(12),
    "randint": lambda k: k.randint(6, -50, 50),
    "randint, wide": lambda k: k.randint(2, -(2**63), 2**63),
    "permutation": lambda k: k.permutation(10),
    "choice": lambda k: k.choice(100, 6),
    "choice, p": lambda k: k.choice(5, 8, p=WEIGHTS),
    "choice, no replace": lambda k: k.choice(100, 5, replace=False),
    "choice, no replace, p": lambda k: k.choice(5, 4, replace=False, p=WEIGHTS),
    "categorical": lambda k: k.categorical(LOGITS, shape=(8,)),
    "split": lambda k: random.key_data(k.split(2)).ravel(),
    "fold_in": lambda k: random.key_data(k.fold_in(-(10**30))),
}
GOLDEN: dict[str, list[Any]] = {
    "normal float64": [
        -0.6908097427325931,
        -0.03391266106238616,
        -0.05021938467385495,
        0.7666309938978764,
    ],
    "normal float32": [
        -0.6908097267150879,
        -0.03391266241669655,
        -0.05021938309073448,
        0.766631007194519,
    ],
    "exponential float64": [
        1.4071399033073244,
        0.7205730582668562,
        0.7340237970852722,
        0.25057958985489465,
    ],
    "exponential float32": [
        1.4071398973464966,
        0.7205730676651001,
        0.7340238094329834,
        0.2505795955657959,
    ],
    "gumbel float64": [
        -0.3415592069540211,
        0.32770846928430286,
        0.30921382979607276,
        1.3839786849491547,
    ],
    "gumbel float32": [
        -0.34155920147895813,
        0.32770848274230957,
        0.3092138171195984,
        1.3839787244796753,
    ],
    "laplace float64": [
        -0.7139927227473789,
        -0.027425877706911034,
        -0.04087661652532675,
        0.8135064114602203,
    ],
    "laplace float32": [
        -0.713992714881897,
        -0.02742587774991989,
        -0.040876615792512894,
        0.8135064244270325,
    ],
    "uniform float64": [
        0.2448425560675177,
        0.48647339846421067,
        0.47997378215360775,
        0.7783495288223772,
    ],
    "uniform float32": [
        0.244842529296875,
        0.4864733815193176,
        0.4799737334251404,
        0.7783495187759399,
    ],
    "normal complex128": [
        -0.4884762535959509,
        -0.023979872605294245,
        -0.035510467449898615,
        0.5420899744529711,
    ],
    "normal, many": [-1.2366861891499765, -1.805632988566273, -0.9121559474337769],
    "uniform, scaled": [-0.055157443932482286, 0.18647339846421068, 0.17997378215360776],
    "truncated_normal float64": [
        -0.34605084439301703,
        2.2880489955338477,
        -0.05021938467385509,
        0.7837006391315187,
    ],
    "truncated_normal float32": [
        -0.6543216705322266,
        -0.03236907348036766,
        -0.047932595014572144,
        0.7247084975242615,
    ],
    "bits": [4516547970130382688, 8973850280137024990, 8853953521478023867],
    "bits uint16": [16046, 31881, 31455, 51009],
    "bernoulli": [True, False, False, False, True, False, True, True, True, False, False, True],
    "rademacher": [1, 1, 1, -1, 1, -1, 1, 1, 1, -1, -1, 1],
    "randint": [-26, -2, -3, 27, -22, 12],
    "randint, wide": [-4706824066724393120, -249521756717750818],
    "permutation": [7, 8, 6, 0, 4, 2, 1, 5, 9, 3],
    "choice": [24, 48, 47, 77, 28, 62],
    "choice, p": [4, 3, 3, 2, 4, 3, 4, 4],
    "choice, no replace": [72, 17, 11, 42, 7],
    "choice, no replace, p": [3, 4, 2, 1],
    "categorical": [3, 2, 2, 1, 0, 3, 0, 2],
    "split": [3790395674960893468, 3911625547731933490, 3651702335786410907, 10675326350529935650],
    "fold_in": [11640657347946862615, 11022230328523280742],
}


@pytest.mark.parametrize("name", CALLS)
def test_numbers_do_not_change(name: str) -> None:
    assert CALLS[name](random.key(42)).tolist() == GOLDEN[name]
