"""A key that is used twice: the warning, and what counts as a use."""

from __future__ import annotations

import itertools
import sys
import warnings
from typing import Any

import numpy as np
import pytest

from funcgrad import random
from funcgrad.errors import location

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
