"""``fg.load`` into a tree that is given: what fits comes in, and what differs is named."""

import sys
from collections import OrderedDict, defaultdict, namedtuple
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg
from funcgrad import random, tree
from funcgrad.errors import (
    ArgumentError,
    TreeMismatchError,
)
from funcgrad.serialize import load, save


class State(NamedTuple):
    count: int
    mu: dict


@fg.pytree
class Linear:
    weight: np.ndarray
    bias: np.ndarray | None
    name: str = fg.static(default="linear")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tree.npz"


def there_and_back(value, path, **options):
    save(path, value)
    return load(path, **options)


SAVED = {"w": np.ones((2, 3)), "b": np.zeros(3), "n": 4}


# Into a tree that is given


@pytest.mark.parametrize(
    ("saved", "template"),
    [
        (2.5, np.float64(0)),
        (2.5, np.array(0.0)),
        (np.float64(2.5), 0.0),
        (np.array(2.5), 0.0),
        (np.array(2.5), np.float64(0)),
        (3, np.int64(0)),
        (np.int64(3), 0),
        (np.bool_(1), False),
        (np.array([2.5], ">f8"), np.zeros(1)),
        (2**70, 1),
    ],
    ids=lambda value: f"{type(value).__name__} {value}",
)
def test_number_is_of_the_kind_that_template_has(saved, template, path):
    out = there_and_back({"x": saved}, path, template={"x": template})["x"]
    assert type(out) is type(template)
    assert getattr(out, "dtype", None) == getattr(template, "dtype", None)
    assert out == saved


def test_containers_are_those_of_template(path):
    out = there_and_back({"a": [1, 2]}, path, template=OrderedDict(a=(0, 0)))
    assert tree.same(out, OrderedDict(a=(1, 2)))


def test_order_of_keys_is_that_of_template(path):
    out = there_and_back({"a": 1, "b": 2}, path, template={"b": 0, "a": 0})
    assert tree.same(out, {"b": 2, "a": 1})


def test_template_is_left_as_it_was(path):
    template = {"x": np.zeros(2)}
    there_and_back({"x": np.ones(2)}, path, template=template)
    assert_array_equal(template["x"], [0, 0])


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ({"w": np.ones((2, 3)), "b": np.zeros(3)}, "only in the file: ['n']"),
        (SAVED | {"more": 1.0}, "missing from the file: ['more']"),
        (
            SAVED | {"w": np.ones((3, 2))},
            "['w'] is float64[2,3] in the file, float64[3,2] in template",
        ),
        (
            SAVED | {"b": np.zeros(3, "f4")},
            "['b'] is float64[3] in the file, float32[3] in template",
        ),
        (SAVED | {"n": 4.0}, "['n'] is a Python int in the file, a Python float in template"),
        (SAVED | {"n": "4"}, "['n'] is a Python int in the file, a Python str in template"),
        (SAVED | {"n": True}, "['n'] is a Python int in the file, a Python bool in template"),
        (
            SAVED | {"n": np.zeros(1, int)},
            "['n'] is a Python int in the file, int64[1] in template",
        ),
        (SAVED | {"n": None}, "only in the file: ['n']"),
        (SAVED | {"n": random.key(0)}, "['n'] is a Python int in the file, Key[] in template"),
        (np.ones(2), "missing from the file: the root; only in the file: ['w'], ['b'], ['n']"),
    ],
)
def test_difference_is_named_by_its_path(template, words, path):
    save(path, SAVED)
    with pytest.raises(TreeMismatchError) as caught:
        load(path, template=template)
    assert words in caught.value.where
    assert "test_template.py:" in caught.value.where


def test_all_differences_are_named_at_once(path):
    save(path, SAVED)
    with pytest.raises(TreeMismatchError) as caught:
        load(path, template={"w": np.ones(2), "c": 0})
    for words in ("missing from the file: ['c']", "only in the file: ['b'], ['n']", "different: "):
        assert words in caught.value.where


def test_many_differences_are_cut_short(path):
    save(path, [])
    with pytest.raises(TreeMismatchError, match=r"\[5\] and 94 more"):
        load(path, template=list(range(100)))


def test_misspelt_name_is_guessed(path):
    save(path, {"weight": 1.0, "bias": 2.0})
    with pytest.raises(TreeMismatchError, match=r"rename in template \['wieght'\] to \['weight'\]"):
        load(path, template={"wieght": 1.0, "bias": 2.0})


def test_name_that_is_unlike_is_no_guess(path):
    save(path, [{"c": 1.0}, {"weight": 2.0}])
    with pytest.raises(TreeMismatchError, match="strict=False keeps what is missing"):
        load(path, template=[{"b": 1.0, "weight": 2.0}, {}])


def test_shape_and_dtype_are_enough_of_a_leaf(path):
    template = {"w": fg.ShapeDtypeStruct((2,), np.float64)}
    assert tree.same(there_and_back({"w": np.ones(2)}, path, template=template), {"w": np.ones(2)})


def test_number_of_keys_counts(path):
    save(path, random.split(random.key(0), 3))
    with pytest.raises(TreeMismatchError, match=r"Key\[3\] in the file, Key\[2\] in template"):
        load(path, template=random.split(random.key(0), 2))


def test_not_strict_keeps_the_missing_and_drops_the_rest(path):
    save(path, SAVED)
    out = load(path, template={"n": 0, "head": np.full(2, 7.0)}, strict=False)
    assert tree.same(out, {"n": 4, "head": np.full(2, 7.0)})


def test_not_strict_still_compares_shapes(path):
    save(path, SAVED)
    with pytest.raises(TreeMismatchError, match="different"):
        load(path, template={"w": np.ones(2)}, strict=False)


def test_not_strict_needs_something_to_load(path):
    save(path, SAVED)
    with pytest.raises(TreeMismatchError, match="missing"):
        load(path, template={"v": np.ones(2)}, strict=False)


def test_registered_class_needs_template(path):
    save(path, {"model": [Linear(np.ones(2), None)]})
    with pytest.raises(ArgumentError, match="instance of Linear") as caught:
        load(path)
    assert "['model'][0]" in caught.value.where
    assert "template=" in caught.value.fix


def test_default_factory_of_the_users_needs_template(path):
    value = defaultdict(lambda: 3, a=1)
    save(path, value)
    with pytest.raises(ArgumentError, match="defaultdict"):
        load(path)
    assert load(path, template=value)["b"] == 3


def test_unknown_named_tuple_is_an_error(path):
    local = namedtuple("Local", "x y")
    save(path, {"s": local(1, 2)})
    with pytest.raises(ArgumentError, match="does not know the named tuple") as caught:
        load(path)
    assert "['s'] is a" in caught.value.where


def test_unknown_named_tuple_is_made_up_unless_strict(path):
    local = namedtuple("Local", "x y")
    out = there_and_back(local(1, 2), path, strict=False)
    assert (type(out).__name__, out.x, out.y) == ("Local", 1, 2)


def test_named_tuple_with_other_fields_is_an_error(path, monkeypatch):
    save(path, State(1, {}))
    monkeypatch.setattr(sys.modules[__name__], "State", namedtuple("State", "count nu"))
    with pytest.raises(TreeMismatchError, match=r"has count, mu; .*State has count, nu"):
        load(path)
