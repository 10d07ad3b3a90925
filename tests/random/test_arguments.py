"""What samplers are given: errors, shapes, dtypes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from funcgrad import random
from funcgrad.errors import ArgumentError, DtypeError, ShapeError

KEY = random.key(2024)
NORMAL_LIKE = ["normal", "exponential", "gumbel", "laplace"]
FLOAT_SAMPLERS = ["normal", "exponential", "gumbel", "laplace", "uniform"]
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


def fresh(number: int) -> random.Key:
    return random.fold_in(KEY, number)


# Errors
@pytest.mark.parametrize("use", [*SAMPLERS, "split", "fold_in"])
def test_an_int_is_not_a_key(use: str) -> None:
    arguments = (1,) if use == "fold_in" else SAMPLERS.get(use, ())
    with pytest.raises(ArgumentError) as caught:
        getattr(random, use)(0, *arguments)
    what, where, fix = str(caught.value).split("\n")
    assert what == f"{use}() needs a key, got int 0: write key(0)"
    assert where.startswith(f"  where: argument 'key' of {use}() at ")
    assert "test_arguments.py:" in where
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


def test_a_numpy_generator_is_not_a_key() -> None:
    for generator in (np.random.default_rng(0), np.random.RandomState(0)):
        with pytest.raises(ArgumentError, match=r"got .*: write key\(seed\)\n.*\n.*random\.key\(s"):
            random.normal(generator)  # type: ignore[arg-type]


def test_a_key_that_does_not_come_first_is_noticed() -> None:
    calls: dict[str, Any] = {
        "normal": lambda k: random.normal((3,), k),  # type: ignore[arg-type]
        "randint": lambda k: random.randint((3,), k, 1, 2),  # type: ignore[arg-type]
        "choice": lambda k: random.choice(5, k),  # type: ignore[arg-type]
        "split": lambda k: random.split(3, k),  # type: ignore[arg-type]
    }
    for name, call in calls.items():
        with pytest.raises(
            ArgumentError, match=rf"{name}\(\) got a key for .*: the key comes first"
        ):
            call(random.key(0))


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
