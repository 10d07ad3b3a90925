"""Taking pytrees apart, and putting them together, by code made for one structure."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import NamedTuple

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import tree
from funcgrad.staging.structures import builder, flattener


class State(NamedTuple):
    count: int
    mean: dict


Checked = namedtuple("Checked", "value")

TREES = [
    1.0,
    (),
    [],
    {},
    None,
    (1.0,),
    [1.0, (2.0, [3.0])],
    {"b": 1.0, "a": [2.0, None], "c": {}},
    {2: 1.0, 1: 2.0},
    State(1, {"w": 2.0}),
    [Checked(1.0), Checked((2.0, 3.0))],
    OrderedDict([("b", 1.0), ("a", {"x": 2.0})]),
    {"layer": fg.nn.Linear(2, 3, key=fg.random.key(0)), "x": (1.0, 2.0)},
    {("a", 1): 1.0, ("b", 2): 2.0},
]


@pytest.mark.parametrize("value", TREES, ids=repr)
def test_leaves_come_in_the_same_order(value):
    args = (value, 7.0)
    assert all(a is b for a, b in zip(flattener(args)(*args), tree.leaves(args), strict=True))


@pytest.mark.parametrize("value", TREES, ids=repr)
def test_what_is_put_together_is_the_same(value):
    leaves, treedef = tree.flatten(value)
    made = builder(treedef, len(leaves))(leaves)
    assert type(made) is type(value)
    assert tree.structure(made) == treedef
    assert all(a is b for a, b in zip(tree.leaves(made), leaves, strict=True))
    if isinstance(value, dict):
        assert list(made) == list(value)


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ((1.0, 2.0), [1.0, 2.0]),
        ((1.0, 2.0), (1.0, 2.0, 3.0)),
        ([None, 1.0], [2.0, 1.0]),
        (State(1, {"w": 2.0}), (1, {"w": 2.0})),
        ({"a": 1.0}, OrderedDict(a=1.0)),
        (
            {"layer": fg.nn.Linear(2, 3, key=fg.random.key(0))},
            {"layer": fg.nn.Linear(2, 3, use_bias=False, key=fg.random.key(0))},
        ),
    ],
    ids=repr,
)
def test_another_structure_is_noticed(value, other):
    assert flattener((value,))(other) is None


def test_other_keys_are_noticed():
    with pytest.raises(KeyError):
        flattener(({"a": 1.0},))({"b": 1.0})


def test_calls_with_several_structures_in_turn():
    compiled = fg.jit(lambda t, scale: tree.map(lambda x: x * scale, t))
    for _ in range(3):
        for value in ({"a": 1.0, "b": 2.0}, {"a": 1.0, "c": 2.0}, [1.0, 2.0], (1.0, 2.0), 3.0):
            made = compiled(value, 2.0)
            assert made == tree.map(lambda x: x * 2.0, value)
            assert type(made) is type(value)


def test_a_leaf_that_is_a_node_the_next_time():
    compiled = fg.jit(lambda t: tree.map(np.negative, t))
    assert compiled([1.0, 2.0]) == [-1.0, -2.0]
    assert compiled([1.0, (2.0, 3.0)]) == [-1.0, (-2.0, -3.0)]
    assert compiled([1.0, None]) == [-1.0, None]
    assert compiled([1.0, 2.0]) == [-1.0, -2.0]


def test_keys_of_random_numbers_that_are_traced():
    compiled = fg.jit(lambda keys: keys["a"].normal(()))
    plain = compiled({"a": fg.random.key(0)})
    compiled({"a": fg.random.key(0)})
    many = fg.vmap(lambda key: compiled({"a": key}))(fg.random.key(0).split(3))
    assert many.shape == (3,)
    assert plain.shape == ()
