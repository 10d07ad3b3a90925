"""Source that is taken along: functions with all that they mention, once each."""

from __future__ import annotations

import functools
import operator

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.core import zero
from funcgrad.core.primitive import DECLARED
from funcgrad.staging.backends.copying import Copier, NoSource


def made(value, taken=()):
    """Return what a value is called in a module, and that module after it has run."""
    copier = Copier({"np", *taken})
    name = copier.written(value)
    namespace = {"np": np}
    exec("\n".join([*copier.imports, *copier.parts]), namespace)
    return eval(name, namespace), copier


@pytest.mark.parametrize(
    "value",
    [
        None,
        ...,
        "a'b",
        (1, (2.5, "x"), []),
        {"a": [1, None], 2: {3}},
        frozenset({"b", "a"}),
        slice(1, None, -1),
        np.dtype(np.float32),
        np.float32(0.1),
        np.int8(-3),
        int,
        np.ndarray,
        np.sin,
        np.linalg.inv,
        np.fft.fft,
        operator.add,
        functools.reduce,
    ],
    ids=str,
)
def test_values_come_back(value):
    found, _ = made(value)
    assert found == value
    assert type(found) is type(value)


def test_sets_are_written_in_one_order():
    assert Copier(set()).written({"b", "a", "c"}) == "{'a', 'b', 'c'}"


def test_partial_functions_come_back():
    mask = np.array([True, False])
    found, _ = made(functools.partial(np.add, where=mask))
    np.testing.assert_array_equal(found([1.0, 2.0], 1.0, np.zeros(2)), [2.0, 0.0])


def test_functions_take_along_what_they_call():
    found, copier = made(DECLARED["log_softmax"].forward)
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(found(x, axis=-1), fg.nn.functional.log_softmax(x))
    assert not any("funcgrad" in part for part in (*copier.imports, *copier.parts))


def test_each_definition_stands_once():
    copier = Copier({"np"})
    for _ in range(2):
        copier.written(zero.zero_wins)
        copier.written(zero.is_finite)
    heads = [part.partition("(")[0] for part in copier.parts]
    assert len(heads) == len(set(heads))


def test_names_that_are_taken_are_not_used():
    found, copier = made(zero.dtype_of, taken={"dtype_of", "_FLOAT"})
    assert found(1.0) == np.float64
    assert not any(part.startswith("def dtype_of(") for part in copier.parts)


def test_functions_that_close_over_values_take_these_along():
    found, _ = made(DECLARED["arctan2_accumulate"].forward)
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(found(x, axis=0), np.arctan2.accumulate(x))


def test_nothing_is_traced_in_a_copy():
    found, copier = made(zero.is_finite)
    assert found(np.ones(3))
    assert not found(np.array([np.inf]))
    assert not any("TracerBase" in part for part in copier.parts)


@pytest.mark.parametrize("value", [made, lambda x: x, object(), np.array([None])], ids=repr)
def test_what_is_the_users_has_no_source(value):
    with pytest.raises(NoSource):
        Copier(set()).written(value)
