"""`tree.at`: replacing parts of trees."""

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import ArgumentError
from funcgrad.tree import at

TREE = {"a": [1.0, 2.0], "b": None, "c": (3.0, (4.0, 5.0))}


@pytest.mark.parametrize(
    ("where", "new", "expected"),
    [
        (lambda t: t["a"][0], 9, {**TREE, "a": [9, 2.0]}),
        (lambda t: t["a"], 9, {**TREE, "a": 9}),
        (lambda t: t["c"], (7, 8), {**TREE, "c": (7, 8)}),
        (lambda t: (t["a"][1], t["c"][1]), ("x", "y"), {**TREE, "a": [1.0, "x"], "c": (3.0, "y")}),
        (lambda t: t["b"], 6.0, {**TREE, "b": 6.0}),
        (lambda t: t, 0, 0),
        (lambda t: [t["c"], t["a"]], [1, 2], {**TREE, "a": 2, "c": 1}),
    ],
)
def test_parts_are_replaced(where, new, expected):
    assert at(where, TREE, new) == expected


def test_the_tree_itself_stays():
    before = {"a": [1.0]}
    at(lambda t: t["a"][0], before, 2.0)
    assert before == {"a": [1.0]}


def test_replace_fn_is_given_what_is_there():
    assert at(lambda t: t["c"], TREE, replace_fn=fg.tree.leaves)["c"] == [3.0, 4.0, 5.0]
    assert at(lambda t: t["a"], TREE, replace_fn=lambda a: [-x for x in a])["a"] == [-1.0, -2.0]


def test_one_none_of_several():
    assert at(lambda t: t[1], [None, None], 3, is_leaf=lambda x: x is None) == [None, 3]


def test_derivatives_go_through():
    def loss(x, tree):
        changed = at(lambda t: t["w"][0], tree, 3 * x)
        return changed["w"][0] * changed["w"][1]

    assert fg.grad(loss)(2.0, {"w": [1.0, 5.0]}) == 15.0


def test_arrays_are_shared():
    tree = {"a": np.ones(2), "b": 1.0}
    assert at(lambda t: t["b"], tree, 2.0)["a"] is tree["a"]


@pytest.mark.parametrize(
    "where", [lambda t: 3, lambda t: (t["c"], t["c"][0]), lambda t: (t["a"], t["a"])]
)
def test_what_is_no_part_is_refused(where):
    with pytest.raises(ArgumentError, match="no part of the tree"):
        at(where, TREE, (1, 2))


def test_a_part_of_a_leaf_is_refused():
    with pytest.raises(AttributeError, match="a leaf, float, has no part 'real'"):
        at(lambda t: t["a"][0].real, TREE, 1)


def test_as_many_replacements_as_parts():
    with pytest.raises(ArgumentError, match="points at 2 parts"):
        at(lambda t: (t["a"], t["c"]), TREE, (1, 2, 3))


def test_nothing_to_replace():
    assert at(lambda t: [], TREE, []) == TREE


@pytest.mark.parametrize("options", [{}, {"replace": 1, "replace_fn": abs}])
def test_one_of_replace_and_replace_fn(options):
    with pytest.raises(ArgumentError, match="either replace or replace_fn"):
        at(lambda t: t["a"], TREE, **options)
