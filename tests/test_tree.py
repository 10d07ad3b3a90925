"""Pytrees: what is a node, the laws of flatten and unflatten, and the words of each error."""

import copy
import enum
import gc
import pickle
import subprocess
import sys
import weakref
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funcgrad.tree as tree
from funcgrad.errors import (
    ArgumentError,
    DeepTreeError,
    DtypeError,
    ShapeError,
    TreeMismatchError,
)


class Point(NamedTuple):
    x: Any
    y: Any


Pair = namedtuple("Pair", "first second")


@tree.pytree
class Linear:
    weight: Any
    bias: Any = None
    name: str = tree.static(default="linear")


@tree.pytree
class Empty:
    pass


@tree.pytree
class OnlyStatic:
    size: int = tree.static()


@tree.pytree
@dataclass
class Layer:
    scale: Any
    activation: str = field(default="tanh", metadata={"static": True})


@tree.pytree
@attrs.define
class Mutable:
    value: Any
    doubled: Any = attrs.field(init=False)

    def __attrs_post_init__(self):
        self.doubled = self.value * 2


class Interval:
    def __init__(self, low, high, unit):
        self.low, self.high, self.unit = low, high, unit

    def __eq__(self, other):
        return vars(self) == vars(other)

    __hash__ = None


tree.register(
    Interval,
    lambda node: ((node.low, node.high), node.unit),
    lambda unit, children: Interval(*children, unit),
    flatten_with_keys=lambda node: (
        [(tree.AttrKey("low"), node.low), (tree.AttrKey("high"), node.high)],
        node.unit,
    ),
)


class Bag:
    def __init__(self, *items):
        self.items = items

    def __eq__(self, other):
        return self.items == other.items

    __hash__ = None


tree.register(Bag, lambda bag: (list(bag.items), None), lambda _, items: Bag(*items))


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Name(enum.StrEnum):
    A = "a"
    B = "b"


TREES = [
    1.0,
    None,
    "text",
    {},
    [],
    (),
    (None,),
    {"a": 1.0},
    {"b": 2.0, "a": 1.0},
    {"b": [2.0, None, ()], "a": {"d": 1, "c": (2,)}},
    {2: 1, "a": 2, (1, "x"): 3, None: 4, 1.5: 5},
    {10: 1, 9: 2},
    [1, [2, [3, [4]]]],
    Point(1, {"b": 2, "a": 3}),
    Pair([1], (2, 3)),
    OrderedDict(b=1, a=[2, 3]),
    defaultdict(list, b=1, a=[2, 3]),
    Linear(1.0),
    Linear([1.0, {"w": 2.0}], bias=3.0, name="x"),
    [Linear(1.0), Linear(2.0, 3.0)],
    Empty(),
    OnlyStatic(3),
    Layer(1.0, "relu"),
    Mutable(2.0),
    Interval(1, [2, 3], "m"),
    Bag(1, (2, 3), Bag()),
]
each_tree = pytest.mark.parametrize("x", TREES, ids=repr)


def assert_words(caught, *lines):
    """Compare all three lines of an error."""
    what, where, fix = lines
    assert str(caught.value) == f"{what}\n  where: {where}\n  fix:   {fix}"


# The laws.


@each_tree
def test_unflatten_undoes_flatten(x):
    leaves, treedef = tree.flatten(x)
    rebuilt = tree.unflatten(treedef, leaves)
    assert rebuilt == x
    assert type(rebuilt) is type(x)
    assert repr(rebuilt) == repr(x) or type(x) in (Interval, Bag)


@each_tree
def test_flatten_undoes_unflatten(x):
    treedef = tree.structure(x)
    values = [object() for _ in range(treedef.num_leaves)]
    assert tree.flatten(treedef.unflatten(values)) == (values, treedef)


@each_tree
def test_map_of_the_identity_is_the_identity(x):
    assert tree.map(lambda leaf: leaf, x) == x
    assert tree.structure(tree.map(lambda leaf: leaf, x)) == tree.structure(x)


@each_tree
def test_map_calls_in_leaf_order(x):
    seen = []
    tree.map(seen.append, x)
    assert seen == tree.leaves(x)


@each_tree
def test_map_of_two_trees_sees_each_leaf_with_its_like(x):
    seen = []
    tree.map(lambda a, b: seen.append((a, b)), x, x)
    assert seen == [(leaf, leaf) for leaf in tree.leaves(x)]


@each_tree
def test_paths_list_the_leaves_in_order(x):
    pairs, treedef = tree.flatten_with_path(x)
    assert [leaf for _, leaf in pairs] == tree.leaves(x)
    assert treedef == tree.structure(x)
    assert len({path for path, _ in pairs}) == len(pairs)


@each_tree
def test_map_with_path_gives_each_leaf_its_path(x):
    seen = []
    mapped = tree.map_with_path(lambda *args: seen.append(args) or args[1], x, x)
    assert seen == [(path, leaf, leaf) for path, leaf in tree.leaves_with_path(x)]
    assert mapped == x


@each_tree
def test_structures_survive_pickling_and_copying(x):
    treedef = tree.structure(x)
    for other in (pickle.loads(pickle.dumps(treedef)), copy.deepcopy(treedef)):
        assert other == treedef
        assert hash(other) == hash(treedef)
        assert repr(other) == repr(treedef)
        assert other.unflatten(tree.leaves(x)) == x


@each_tree
def test_counts_agree_with_the_children(x):
    treedef = tree.structure(x)
    assert treedef.num_leaves == len(tree.leaves(x))
    if not treedef.is_leaf:
        assert treedef.num_leaves == sum(child.num_leaves for child in treedef.children())
    assert treedef.num_nodes == 1 + sum(child.num_nodes for child in treedef.children())


@pytest.mark.parametrize("i", range(len(TREES)))
def test_only_equal_trees_have_equal_structures_here(i):
    for j, other in enumerate(TREES):
        same = i == j or {i, j} <= {0, 2}  # 1.0 and "text" are both a leaf
        assert (tree.structure(TREES[i]) == tree.structure(other)) is same


plain_trees = st.recursive(
    st.one_of(st.none(), st.integers(), st.floats(allow_nan=False), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(
            st.one_of(st.text(max_size=2), st.integers(-2, 2), st.booleans(), st.none()),
            inner,
            max_size=4,
        ),
        st.builds(Point, inner, inner),
        st.dictionaries(st.text(max_size=2), inner, max_size=3).map(OrderedDict),
    ),
    max_leaves=20,
)


@given(plain_trees)
def test_laws_hold_for_any_tree(x):
    leaves, treedef = tree.flatten(x)
    assert repr(tree.unflatten(treedef, leaves)) == repr(x)
    assert repr(tree.map(lambda leaf: leaf, x)) == repr(x)
    assert [leaf for _, leaf in tree.leaves_with_path(x)] == leaves
    assert tree.flatten(x, is_leaf=lambda node: False) == (leaves, treedef)
    assert hash(tree.structure(x)) == hash(treedef)
    assert treedef.flatten_up_to(x) == leaves
    assert tree.combine(*tree.partition(x, lambda leaf: isinstance(leaf, str))) == x


@given(
    st.dictionaries(
        st.one_of(st.text(max_size=2), st.integers(), st.floats(allow_nan=False)), st.integers()
    ),
    st.randoms(),
)
def test_leaf_order_does_not_depend_on_insertion_order(x, random):
    items = list(x.items())
    random.shuffle(items)
    shuffled = dict(items)
    assert tree.leaves(shuffled) == tree.leaves(x)
    assert tree.structure(shuffled) == tree.structure(x)
    assert hash(tree.structure(shuffled)) == hash(tree.structure(x))
    assert list(tree.map(lambda leaf: leaf, shuffled)) == list(shuffled)
    assert tree.structure(x).flatten_up_to(shuffled) == tree.leaves(x)


# What is a node, what a leaf.


@pytest.mark.parametrize(
    "x", [1, "ab", b"ab", {1, 2}, frozenset(), range(3), np.ones(3), object(), len, int], ids=repr
)
def test_anything_else_is_a_leaf(x):
    (leaf,) = tree.leaves(x)
    assert leaf is x
    assert tree.structure(x).is_leaf


def test_unregistered_subclasses_are_leaves():
    class MyDict(dict):
        pass

    class MyList(list):
        pass

    class MyTuple(tuple):
        __slots__ = ()

    class MyLinear(Linear):
        pass

    for x in (MyDict(a=1), MyList([1]), MyTuple((1,)), MyLinear(1.0)):
        assert tree.leaves(x) == [x]


def test_subclasses_of_named_tuples_are_nodes_of_their_own():
    class Polar(Point):
        pass

    x = Polar(1, 2)
    assert tree.leaves(x) == [1, 2]
    assert type(tree.map(lambda leaf: leaf, x)) is Polar
    assert tree.structure(x) != tree.structure(Point(1, 2))


def test_registering_makes_a_type_a_node_that_was_met_as_a_leaf():
    class Late:
        def __init__(self, x):
            self.x = x

    assert len(tree.leaves([Late(1), Late(2)])) == 2
    tree.register(Late, lambda late: ((late.x, late.x), None), lambda _, c: Late(c[0]))
    assert tree.leaves([Late(1), Late(2)]) == [1, 1, 2, 2]


def test_none_has_no_leaves():
    assert tree.flatten([None, 1, None])[0] == [1]
    assert tree.map(lambda x: x + 1, [None, 1]) == [None, 2]


def test_is_leaf_ends_the_tree():
    x = {"a": (1, 2), "b": [None, (3,)]}
    leaves, treedef = tree.flatten(x, is_leaf=lambda node: type(node) is tuple or node is None)
    assert leaves == [(1, 2), None, (3,)]
    assert repr(treedef) == "TreeDef({'a': *, 'b': [*, *]})"
    assert treedef.unflatten(leaves) == x
    assert tree.map(len, x, is_leaf=lambda node: type(node) is tuple) == {"a": 2, "b": [None, 1]}
    assert tree.leaves(x, is_leaf=lambda node: True) == [x]


def test_is_leaf_is_asked_from_the_root_down():
    asked = []
    tree.leaves({"a": [1]}, is_leaf=asked.append)
    assert asked == [{"a": [1]}, [1], 1]


# Dicts.


def test_dict_leaves_come_in_sorted_key_order_and_rebuilt_in_insertion_order():
    x = {"c": 1, "a": 2, "b": 3}
    leaves, treedef = tree.flatten(x)
    assert leaves == [2, 3, 1]
    assert list(treedef.unflatten(leaves).items()) == list(x.items())
    assert list(tree.map(str, x).items()) == [("c", "1"), ("a", "2"), ("b", "3")]


def test_mixed_keys_sort_by_type_name_then_key():
    x = {"b": 1, 2: 2, (1,): 3, "a": 4, 1: 5, None: 6}
    keys = [path[0].key for path, _ in tree.leaves_with_path(x)]
    assert keys == [None, 1, 2, "a", "b", (1,)]


@pytest.mark.parametrize(
    "keys",
    [
        (Color.RED, Color.BLUE),
        ((1, "a"), ("a", 1)),
        (1j, 2j),
        (frozenset({1, 2}), frozenset({2, 3}), frozenset({1})),
        (len, max),
        (int, str),
    ],
    ids=str,
)
def test_keys_that_cannot_be_sorted_still_have_one_order(keys):
    x = {key: i for i, key in enumerate(keys)}
    y = {key: x[key] for key in reversed(keys)}
    assert tree.leaves(x) == tree.leaves(y)
    assert tree.structure(x) == tree.structure(y)
    assert list(tree.unflatten(*reversed(tree.flatten(y)))) == list(y)


def test_equal_keys_of_other_types_come_back_as_they_were():
    for keys in (("a", "b"), (Name.A, Name.B), (np.str_("a"), np.str_("b")), (1, 2), (True, 2)):
        x = dict.fromkeys(keys, 0.0)
        for rebuilt in (
            tree.unflatten(*reversed(tree.flatten(x))),
            tree.map(lambda leaf: leaf, x),
        ):
            assert [type(key) for key in rebuilt] == [type(key) for key in keys]
    assert tree.structure({1: 0, 2: 0}) == tree.structure({True: 0, 2.0: 0})


def test_keys_that_contain_types_do_not_disturb_the_cache():
    assert tree.leaves({1: 10}) == [10]
    assert tree.leaves({1: 10, int: 20}) == [10, 20]
    assert tree.leaves({(1,): 10, (int,): 20}) == [10, 20]
    assert tree.map(str, {1: 10, int: 20}) == {1: "10", int: "20"}


def test_ordered_dicts_keep_their_order_and_it_counts():
    x, y = OrderedDict(b=1, a=2), OrderedDict(a=2, b=1)
    assert tree.leaves(x) == [1, 2]
    assert tree.structure(x) != tree.structure(y)
    assert tree.structure(x) != tree.structure(dict(x))
    assert type(tree.map(str, x)) is OrderedDict


def test_default_dicts_keep_their_factory():
    x = defaultdict(list, b=1, a=2)
    mapped = tree.map(str, x)
    assert mapped == {"b": "1", "a": "2"}
    assert mapped.default_factory is list
    assert mapped["new"] == []
    assert tree.structure(x) != tree.structure(defaultdict(set, b=1, a=2))
    assert "new" not in x
    assert tree.structure(x).flatten_up_to(defaultdict(list, a=3, b=4)) == [3, 4]


def test_many_different_dicts_do_not_pile_up():
    from funcgrad.tree.containers import LEAVES
    from funcgrad.tree.order import ORDERS

    for i in range(5000):
        tree.leaves({f"k{i}": 0, "a": 1})
        tree.leaves(type(f"T{i}", (), {})())
    assert len(ORDERS) <= 4096
    assert len(LEAVES) <= 1024
    assert tree.leaves({"b": 1.0, "a": np.ones(())}) == [1.0, 1.0]


# Map and its kin.


def test_map_passes_on_what_f_raises():
    """A StopIteration from `f` must not end the walk silently."""
    keys = iter([1, 2])
    for x in ([0, 0, 0], (0, 0, 0), {"a": 0, "b": 0, "c": 0}, {"c": 0, "b": 0, "a": 0}):
        with pytest.raises(StopIteration):
            tree.map(lambda _: next(keys), x)
        with pytest.raises(StopIteration):
            tree.map(lambda _, y: next(keys), x, x)


def test_map_draws_from_an_iterator_in_leaf_order():
    numbers = iter(range(10))
    assert tree.map(lambda _: next(numbers), {"b": 0, "a": [0, 0]}) == {"b": 2, "a": [0, 1]}


def test_map_gives_subtrees_of_the_other_trees():
    assert tree.map(lambda a, b, c: (a, b, c), [1, 2], [(3,), None], [{}, 4]) == [
        (1, (3,), {}),
        (2, None, 4),
    ]


def test_map_matches_dicts_by_key():
    x, y = {"b": 1, "a": 2}, {"a": 20, "b": 10}
    assert tree.map(lambda a, b: a + b, x, y) == {"b": 11, "a": 22}
    assert list(tree.map(lambda a, b: a + b, x, y)) == ["b", "a"]
    assert tree.map(lambda a, b: a + b, y, x) == {"b": 11, "a": 22}


def test_map_does_not_change_its_argument():
    x = {"b": 1, "a": 2}
    tree.map(str, x)
    assert x == {"b": 1, "a": 2}


def test_reduce():
    assert tree.reduce(lambda a, b: f"{a}{b}", {"b": 3, "a": [1, 2]}) == "123"
    assert tree.reduce(lambda a, b: a + b, [], 0) == 0
    assert tree.reduce(lambda a, b: b, [1], None) == 1
    assert tree.reduce(lambda a, b: a + b, [(1,), (2,)], (), lambda x: type(x) is tuple) == (1, 2)


def test_reduce_of_nothing_says_so():
    with pytest.raises(ArgumentError) as caught:
        tree.reduce(max, [None])
    assert_words(
        caught,
        "tree.reduce has nothing to combine",
        "the tree has no leaves",
        "give an initializer: tree.reduce(f, tree, 0.0)",
    )


def test_all():
    assert tree.all({"a": True, "b": [1]})
    assert not tree.all({"a": True, "b": [0]})
    assert tree.all(None)
    assert tree.all([()], is_leaf=lambda x: x == ()) is False


def test_transpose():
    outer, inner = tree.structure(Point(0, 0)), tree.structure({"b": 0, "a": [0]})
    x = Point({"b": 1, "a": [2]}, {"b": 3, "a": [4]})
    turned = {"b": Point(1, 3), "a": [Point(2, 4)]}
    assert tree.transpose(outer, inner, x) == turned
    assert tree.transpose(outer, None, x) == turned
    assert tree.transpose(inner, outer, turned) == x


def test_transpose_names_what_does_not_fit():
    outer = tree.structure([0, 0])
    with pytest.raises(TreeMismatchError) as caught:
        tree.transpose(outer, None, [{"x": 1}, {"y": 2}])
    assert_words(
        caught,
        "the tree given to tree.transpose is not made of these structures",
        "inner tree 1 at the root: missing key 'x', unexpected key 'y' "
        "(compared with inner_treedef)",
        "give it the structure of inner_treedef",
    )
    with pytest.raises(ArgumentError, match="give inner_treedef"):
        tree.transpose(tree.structure([]), None, [])


def test_broadcast():
    full = {"a": [1, 2], "b": (3, None), "c": None}
    assert tree.broadcast(0, full) == {"a": [0, 0], "b": (0, None), "c": None}
    assert tree.broadcast({"a": 1, "b": (2, 3), "c": 4}, full)["b"] == (2, None)
    assert tree.broadcast({"a": None, "b": 5, "c": 6}, full, is_leaf=lambda x: x is None) == {
        "a": [None, None],
        "b": (5, None),
        "c": None,
    }


def test_broadcast_blames_the_prefix():
    with pytest.raises(TreeMismatchError) as caught:
        tree.broadcast({"a": (0, 1)}, {"a": np.ones((3, 4))})
    assert_words(
        caught,
        "the prefix does not fit the tree",
        "the prefix at ['a']: it has a tuple of 2, the tree has float64[3,4]",
        "give one value for that leaf, or one for the whole subtree",
    )


def test_partition_and_combine():
    model = Linear(np.ones(2), 1, "x")
    arrays, others = tree.partition(model, lambda leaf: isinstance(leaf, np.ndarray))
    assert arrays == Linear(model.weight, None, "x")
    assert others == Linear(None, 1, "x")
    assert tree.combine(arrays, others) == model
    assert tree.combine(others, arrays) == model


def test_partition_by_a_mask_or_its_prefix():
    x = {"a": [1, 2], "b": 3}
    assert tree.partition(x, {"a": [True, False], "b": np.bool_(True)}) == (
        {"a": [1, None], "b": 3},
        {"a": [None, 2], "b": None},
    )
    assert tree.partition(x, {"a": False, "b": lambda leaf: leaf == 3})[0] == {
        "a": [None, None],
        "b": 3,
    }
    assert tree.partition(x, True) == (x, {"a": [None, None], "b": None})
    assert tree.partition(x, {"a": True, "b": False}, is_leaf=lambda n: type(n) is list)[0] == {
        "a": [1, 2],
        "b": None,
    }


def test_partition_names_a_bad_mask():
    with pytest.raises(TreeMismatchError) as caught:
        tree.partition({"bias": 1}, {"bais": True})
    assert_words(
        caught,
        "the mask does not fit the tree given to tree.partition",
        "the mask at the root: missing key 'bias', unexpected key 'bais' (compared with the tree)",
        "rename 'bais' to 'bias'",
    )
    with pytest.raises(ArgumentError) as caught:
        tree.partition({"a": 1, "b": 2}, {"a": True, "b": 1})
    assert_words(
        caught,
        "a mask must have a bool, or a function of the leaf, at each leaf",
        "the mask at ['b']: int 1",
        "write True to select it, False to leave it",
    )


def test_combine_takes_the_first_value():
    assert tree.combine([1, None, None], [2, 3, None], [4, 5, None]) == [1, 3, None]
    assert tree.combine([1, None]) == [1, None]
    with pytest.raises(ArgumentError, match=r"tree\.combine needs a tree"):
        tree.combine()
    with pytest.raises(TreeMismatchError, match=r"given to tree\.combine do not match"):
        tree.combine([1], [1, 2])


# Structures.


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (1, "*"),
        (None, "None"),
        ({"b": (2, None), "a": 1}, "{'a': *, 'b': (*, None)}"),
        ([(1,), ()], "[(*,), ()]"),
        (Point(1, [2]), "Point(x=*, y=[*])"),
        (OrderedDict(b=1, a=2), "OrderedDict({'b': *, 'a': *})"),
        (defaultdict(list, a=1), "defaultdict(list, {'a': *})"),
        (Linear(1, 2), "Linear(weight=*, bias=*, name='linear')"),
        (OnlyStatic(3), "OnlyStatic(size=3)"),
        (Empty(), "Empty()"),
        (Interval(1, 2, "m"), "Interval(*, *, aux='m')"),
        (Bag(1, 2), "Bag(*, *)"),
    ],
    ids=str,
)
def test_structures_print_as_the_tree(x, text):
    assert repr(tree.structure(x)) == f"TreeDef({text})"


def test_structures_cannot_be_changed():
    treedef = tree.structure({"a": 1})
    for name in ("num_leaves", "meta", "other"):
        with pytest.raises(AttributeError):
            setattr(treedef, name, 2)
    treedef.children().clear()
    assert treedef.num_leaves == len(treedef.children()) == 1


def test_structures_hold_no_leaves():
    class Leaf:
        pass

    leaf = Leaf()
    alive = weakref.ref(leaf)
    treedef = tree.structure({"a": [leaf]})
    del leaf
    gc.collect()
    assert alive() is None
    assert treedef.num_leaves == 1


def test_structures_are_not_equal_to_other_things():
    assert tree.structure(1) != "*"
    assert tree.structure([1]) != [1]
    assert tree.structure(1) != tree.structure(None)


def test_first_structure_of_a_new_leaf_type_is_like_the_next():
    cls = type("New", (), {})
    first, second = tree.structure([cls(), cls()]), tree.structure([cls(), cls()])
    assert first == second
    assert first is second


def test_unflatten_counts_the_leaves():
    treedef = tree.structure({"a": 1, "b": 2})
    for leaves in ([1], [1, 2, 3], []):
        with pytest.raises(TreeMismatchError) as caught:
            tree.unflatten(treedef, leaves)
        assert_words(
            caught,
            "wrong number of leaves",
            f"2 leaves expected by TreeDef({{'a': *, 'b': *}}), {len(leaves)} given",
            "give one value for each *, in the order in which flatten lists them",
        )
    with pytest.raises(TreeMismatchError, match="1 leaf expected by TreeDef"):
        tree.unflatten(tree.structure(0), [])
    assert tree.unflatten(treedef, iter([1, 2])) == {"a": 1, "b": 2}


def test_unflatten_wants_the_structure_first():
    with pytest.raises(ArgumentError) as caught:
        tree.unflatten([1], tree.structure([1]))
    assert_words(
        caught,
        "unflatten takes the structure first",
        "its first argument is of type list",
        "unflatten(treedef, leaves)",
    )


@pytest.mark.parametrize("name", ["map", "map_with_path", "reduce"])
def test_the_function_comes_first(name):
    with pytest.raises(ArgumentError) as caught:
        getattr(tree, name)({"a": 1}, np.sum)
    assert_words(
        caught,
        f"tree.{name} takes the function first",
        "its first argument is of type dict",
        f"tree.{name}(f, tree)",
    )


@pytest.mark.parametrize(
    "f",
    [
        tree.flatten,
        tree.leaves_with_path,
        lambda x: tree.map(str, x),
        lambda x: tree.map(lambda a, b: a, x, x),
        lambda x: tree.flatten(x, is_leaf=lambda node: node == 3),
        lambda x: tree.check_match(tree.structure([1]), x, what="...", where="..."),
    ],
)
def test_trees_that_contain_themselves_are_told(f):
    inner: Any = {"b": 1}
    inner["c"] = ([2], inner)
    with pytest.raises(DeepTreeError) as caught:
        f([(), inner])
    assert_words(
        caught,
        "the tree contains itself",
        "[1]['c'][1] is the object at [1]",
        "put a copy there, or leave it out",
    )


def test_one_object_at_two_places_is_fine():
    inner = [1, 2]
    assert tree.leaves({"a": inner, "b": [inner, inner]}) == [1, 2] * 3


def test_a_recursion_error_of_the_users_function_is_left_alone():
    def endless(x):
        return endless(x)

    with pytest.raises(RecursionError) as caught:
        tree.map(endless, {"a": 1})
    assert not isinstance(caught.value, DeepTreeError)


def test_deep_trees_raise_recursion_error():
    x: Any = 1.0
    for _ in range(100_000):
        x = [x]
    for f in (tree.leaves, lambda x: tree.map(str, x), tree.leaves_with_path):
        with pytest.raises(RecursionError, match="the tree is nested too deeply"):
            f(x)
    shallow: Any = 1.0
    for _ in range(200):
        shallow = {"a": shallow}
    assert tree.leaves(tree.map(lambda v: v, shallow)) == [1.0]


# Mismatches: what map says.


@pytest.mark.parametrize(
    ("first", "second", "where", "fix"),
    [
        (
            {"a": {"weight": 1, "bias": 2}},
            {"a": {"wieght": 1, "bias": 2}},
            "['a']: missing key 'weight', unexpected key 'wieght' (compared with the first tree)",
            "rename 'wieght' to 'weight'",
        ),
        (
            {"a": 1},
            {"a": 1, "b": 2, 3: 4},
            "the root: unexpected keys 3, 'b' (compared with the first tree)",
            None,
        ),
        (
            {"a": 1, "b": 2},
            {"a": 1},
            "the root: missing key 'b' (compared with the first tree)",
            None,
        ),
        ([1, [2, 3]], [1, [2]], "[1]: it has a list of 1, the first tree has a list of 2", None),
        ([1, (2, 3)], [1, 4.0], "[1]: it has float 4.0, the first tree has a tuple of 2", None),
        (
            {"w": (1, 2)},
            {"w": np.ones((3, 4))},
            "['w']: it has float64[3,4], the first tree has a tuple of 2",
            None,
        ),
        (
            {"w": {"x": 1, "y": 2}},
            {"w": [1, 2]},
            "['w']: it has a list of 2, the first tree has a dict with 'x', 'y'",
            None,
        ),
        ([{}], [[]], "[0]: it has a list of 0, the first tree has an empty dict", None),
        ([None], [1], "[0]: it has int 1, the first tree has None", None),
        (
            [(1,)],
            [None],
            "[0]: it has None, the first tree has a tuple of 1",
            "give a value there; None is an empty container, not a leaf",
        ),
        (Point(1, [2]), Point(1, 2), ".y: it has int 2, the first tree has a list of 1", None),
        (
            Point(1, 2),
            (1, 2),
            "the root: it has a tuple of 2, the first tree has a Point of 2",
            None,
        ),
        (
            OrderedDict(a=1, b=2),
            OrderedDict(b=1, a=2),
            "the root: its keys are in the order 'b', 'a', those of the first tree in the order "
            "'a', 'b'",
            None,
        ),
        (
            [Linear(1, 2)],
            [Linear(1, 2, "x")],
            "[0]: static field 'name' of Linear is 'x', in the first tree 'linear'",
            "build both with the same 'name': it belongs to the structure",
        ),
        (
            Linear({"a": 1}),
            Linear({"b": 1}),
            ".weight: missing key 'a', unexpected key 'b' (compared with the first tree)",
            None,
        ),
        (
            Interval(1, 2, "m"),
            Interval(1, 2, "s"),
            "the root: the auxiliary data of Interval is 's', in the first tree 'm'",
            None,
        ),
        (
            Interval(1, [2], "m"),
            Interval(1, 2, "m"),
            ".high: it has int 2, the first tree has a list of 1",
            None,
        ),
        (Bag(1, (2,)), Bag(1, 2), "[1]: it has int 2, the first tree has a tuple of 1", None),
        (Bag(1), Bag(1, 2), "the root: it has a Bag of 2, the first tree has a Bag of 1", None),
        (
            defaultdict(list, a=1),
            defaultdict(set, a=1),
            "the root: its default factory is set, that of the first tree is list",
            None,
        ),
        (
            {f"k{i}": 0 for i in range(9)},
            {},
            "the root: missing keys 'k0', 'k1', 'k2', 'k3', 'k4', 'k5' and 3 more "
            "(compared with the first tree)",
            None,
        ),
    ],
    ids=str,
)
def test_map_names_the_first_difference(first, second, where, fix):
    with pytest.raises(TreeMismatchError) as caught:
        tree.map(lambda a, b: None, first, second)
    assert_words(
        caught,
        "the trees given to tree.map do not match",
        f"the second tree at {where}",
        fix or "give it the structure of the first tree",
    )


def test_map_names_the_tree_and_calls_nothing():
    called = []
    with pytest.raises(TreeMismatchError, match=r"where: the third tree at \[1\]: "):
        tree.map(lambda *_: called.append(1), [1, ()], [2, ()], [3, []])
    with pytest.raises(TreeMismatchError, match=r"where: tree 6 at the root: "):
        tree.map(lambda *_: called.append(1), [1], [1], [1], [1], [1], 6)
    with pytest.raises(TreeMismatchError, match=r"given to tree\.map_with_path do not match"):
        tree.map_with_path(lambda *_: called.append(1), [1], (1,))
    assert not called


def test_flatten_up_to_names_the_difference():
    with pytest.raises(TreeMismatchError) as caught:
        tree.structure({"a": (1,)}).flatten_up_to({"a": 1})
    assert_words(
        caught,
        "the tree does not fit the structure",
        "the tree at ['a']: it has int 1, the structure has a tuple of 1",
        "give it the containers of TreeDef({'a': (*,)})",
    )


def test_check_match_returns_the_leaves_and_speaks_in_the_words_of_its_caller():
    treedef = tree.structure({"b": 1, "a": [2]})
    words = {
        "what": lambda: "the cotangent does not fit the output of vjp(f)",
        "where": "the cotangent",
        "against": "the output",
        "fix": "give it the structure that f returns",
    }
    assert tree.check_match(treedef, {"a": [3], "b": 4}, **words) == [3, 4]
    with pytest.raises(TreeMismatchError) as caught:
        tree.check_match(treedef, {"a": [(3,)], "b": 4}, **words)
    assert_words(
        caught,
        "the cotangent does not fit the output of vjp(f)",
        "the cotangent at ['a'][0]: it has a tuple of 1, the output has a leaf",
        "give it the structure that f returns",
    )
    assert tree.check_match(treedef, {"a": [(3,)], "b": 4}, prefix=True, **words) == [(3,), 4]


@pytest.mark.parametrize("x", [None, {}, [], [1], Point(1, 2), Linear(1.0)], ids=repr)
def test_check_match_refuses_a_node_for_a_leaf(x):
    with pytest.raises(TreeMismatchError, match=r"it has .*, the expected tree has a leaf"):
        tree.check_match(tree.structure(1.0), x, what="w", where="x")


# Keys.


def test_keys_print_compare_and_hash():
    path = (tree.DictKey("w"), tree.SequenceKey(0), tree.AttrKey("bias"))
    assert [str(key) for key in path] == ["['w']", "[0]", ".bias"]
    assert (path[0].key, path[1].idx, path[2].name) == ("w", 0, "bias")
    assert [repr(key) for key in path] == ["DictKey('w')", "SequenceKey(0)", "AttrKey('bias')"]
    assert pickle.loads(pickle.dumps(path)) == path
    assert hash(path) == hash(tuple(path))
    assert tree.DictKey(0) != tree.SequenceKey(0)
    assert tree.DictKey(0) != 0
    with pytest.raises(AttributeError):
        path[0].key = "v"


def test_keystr():
    ((path, _),) = tree.leaves_with_path({"layers": [Linear(1.0)]})
    assert tree.keystr(path) == "['layers'][0].weight"
    assert tree.keystr(path, simple=True, separator=".") == "layers.0.weight"
    assert tree.keystr(()) == ""


# Classes.


def test_pytree_classes_are_frozen_attrs_classes():
    layer = Linear(1.0)
    assert attrs.has(Linear)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        layer.weight = 2.0
    assert attrs.evolve(layer, bias=1.0) == Linear(1.0, 1.0)
    assert not hasattr(layer, "__dict__")
    assert pickle.loads(pickle.dumps(layer)) == layer


def test_pytree_instances_are_equal_by_content():
    a, b = Linear(np.ones(3)), Linear(np.ones(3))
    assert a == b
    assert hash(a) == hash(b)
    assert a != Linear(np.zeros(3))
    assert a != Linear(np.ones(3, np.float32))
    assert a != Linear(np.ones(3), name="x")
    assert a != 1.0


def test_pytree_leaves_an_equality_of_the_class_alone():
    @tree.pytree
    class Always:
        x: Any

        def __eq__(self, other):
            return True

        __hash__ = None

    assert Always(1) == Always(2)


def test_pytree_runs_no_init_when_it_rebuilds():
    @tree.pytree
    class Positive:
        x: float = attrs.field(converter=float, validator=attrs.validators.gt(0))

    assert tree.map(lambda x: None, Positive(1)) == tree.map(lambda x: None, Positive(2))
    assert tree.map(lambda x: -x, Positive(1)).x == -1.0


def test_pytree_inheritance():
    @tree.pytree
    class Base:
        x: Any
        tag: str = tree.static(default="t", kw_only=True)

    @tree.pytree
    class Derived(Base):
        y: Any

    assert tree.leaves(Derived(1, 2)) == [1, 2]
    assert repr(tree.structure(Derived(1, 2))) == "TreeDef(Derived(x=*, y=*, tag='t'))"
    assert Derived(1, 2) == Derived(1, 2)
    assert Derived(1, 2) != Base(1)


def test_dataclasses_and_attrs_classes_stay_what_they_are():
    layer = Layer(1.0)
    layer.scale = 2.0
    assert tree.map(lambda x: x + 1, layer) == Layer(3.0)
    assert repr(tree.structure(layer)) == "TreeDef(Layer(scale=*, activation='tanh'))"
    assert tree.leaves(Mutable(2.0)) == [2.0, 4.0]


def test_dataclass_with_class_variables_and_slots():
    from typing import ClassVar

    @tree.pytree
    @dataclass(frozen=True, slots=True)
    class Slotted:
        count: ClassVar[int] = 3
        x: Any
        y: Any = 2

    assert tree.map(lambda x: x * 2, Slotted(1)) == Slotted(2, 4)


def test_register_dataclass_takes_any_class_with_attributes():
    class Plain:
        def __init__(self, a, b, c):
            self.a, self.b, self.c = a, b, c

    assert tree.register_dataclass(Plain, ("b", "a"), ("c",)) is Plain
    x = Plain(1, 2, "c")
    assert tree.leaves(x) == [2, 1]
    assert vars(tree.map(str, x)) == {"a": "1", "b": "2", "c": "c"}
    assert [tree.keystr(path) for path, _ in tree.leaves_with_path(x)] == [".b", ".a"]


def test_static_keeps_the_options_and_metadata_of_a_field():
    @tree.pytree
    class Options:
        n: int = tree.static(default=2, converter=int, metadata={"unit": "m"})

    assert Options("3").n == 3
    assert attrs.fields(Options).n.metadata == {"unit": "m", "static": True}


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), True),
        (np.array([0.0]), np.array([-0.0]), False),
        (np.arange(3), np.arange(3.0), False),
        (np.arange(3), np.arange(4), False),
        (np.arange(6)[::2], np.array([0, 2, 4]), True),
        (np.array(["a"], object), np.array(["a"], object), True),
        (np.array(["2020"], "M8[Y]"), np.array(["2020"], "M8[Y]"), True),
        (np.float64(2), np.float64(2), True),
        (np.float64(2), 2.0, False),
        ([1, {"a": (2,)}], [1, {"a": (2,)}], True),
        ([1, {"a": (2,)}], [1, {"a": (3,)}], False),
        ([1], (1,), False),
        (1, 1.0, False),
        (1, True, False),
        (float("nan"), float("nan"), True),
        (0.0, -0.0, False),
        (1j, 1j, True),
        (np.tanh, np.tanh, True),
        (np.zeros(10_000), np.zeros(10_000), True),
    ],
    ids=repr,
)
def test_static_fields_compare_and_hash_by_content(a, b, equal):
    first, second = tree.structure(OnlyStatic(a)), tree.structure(OnlyStatic(b))
    assert (first == second) is equal
    assert tree.same(a, b) is equal
    if equal:
        assert hash(first) == hash(second)
        assert tree.content_hash(a) == tree.content_hash(b)


def test_unhashable_static_values_fail_only_when_hashed():
    treedef = tree.structure([OnlyStatic(bytearray(b"x"))])
    assert treedef == tree.structure([OnlyStatic(bytearray(b"x"))])
    with pytest.raises(ArgumentError) as caught:
        hash(treedef)
    assert_words(
        caught,
        "the structure of OnlyStatic cannot be hashed",
        "the static field 'size' of OnlyStatic is of type bytearray",
        "use a tuple, a frozenset or another value that can be hashed",
    )
    assert isinstance(caught.value, TypeError)
    with pytest.raises(ArgumentError, match="the auxiliary data of Interval is of type bytearray"):
        hash(tree.structure(Interval(1, 2, bytearray(b"x"))))


def test_a_class_is_registered_once():
    for cls in (dict, tuple, type(None), Interval, Linear):
        with pytest.raises(ArgumentError, match=f"{cls.__qualname__} is a pytree node already"):
            tree.register(cls, lambda x: ((), None), lambda aux, children: None)
    with pytest.raises(ArgumentError, match="only a class can be registered"):
        tree.register(3, lambda x: ((), None), lambda aux, children: None)


def test_registered_functions_get_what_jax_gives_them():
    class Box:
        def __init__(self, items):
            self.items = items

    calls = []

    def unflatten(aux, children):
        calls.append((aux, children))
        return Box(children)

    tree.register(Box, lambda box: (iter(box.items), "aux"), unflatten)
    tree.map(str, Box([1, 2]))
    assert tree.structure(Box([1, 2])).unflatten([3, 4]).items == (3, 4)
    assert calls == [("aux", ("1", "2")), ("aux", (3, 4))]


def test_a_structure_of_an_unknown_class_says_so_when_loaded():
    from funcgrad.tree.containers import container_for

    with pytest.raises(ArgumentError, match="int is no pytree node"):
        container_for(int)


# ravel.


def test_ravel_and_back():
    x = {"w": np.arange(6.0).reshape(2, 3), "b": np.float32(7), "n": None, "e": np.zeros((0, 2))}
    vector, unravel = tree.ravel(x)
    np.testing.assert_array_equal(vector, [7, 0, 1, 2, 3, 4, 5])
    back = unravel(vector)
    assert tree.structure(back) == tree.structure(x)
    for leaf, other in zip(tree.leaves(x), tree.leaves(back), strict=True):
        np.testing.assert_array_equal(leaf, other)
        assert leaf.dtype == other.dtype
        assert leaf.shape == other.shape


def test_ravel_promotes_and_casts_back():
    vector, unravel = tree.ravel([np.ones(2, np.float32), np.ones(1, np.int8)])
    assert vector.dtype == np.float32
    assert [leaf.dtype for leaf in unravel(vector)] == [np.float32, np.int8]
    vector, unravel = tree.ravel([np.ones(2, np.float16), 0.1])
    assert vector.dtype == np.float64
    assert unravel(vector)[1] == 0.1


def test_ravel_keeps_python_numbers():
    x = {"f": 1.5, "i": 2, "t": True, "c": 1j}
    vector, unravel = tree.ravel(x)
    assert vector.dtype == np.complex128
    back = unravel(vector)
    assert back == x
    assert [type(leaf) for leaf in back.values()] == [float, int, bool, complex]
    assert tree.ravel([True, False])[0].dtype == np.bool_
    assert tree.ravel(3)[0].dtype == np.dtype(int)


def test_ravel_drops_the_imaginary_part_that_promotion_added():
    x = [np.ones(2), np.array([1j])]
    vector, unravel = tree.ravel(x)
    back = unravel(vector)
    assert [leaf.dtype for leaf in back] == [np.float64, np.complex128]


def test_ravel_of_nothing():
    vector, unravel = tree.ravel({"a": None})
    assert vector.shape == (0,)
    assert vector.dtype == np.float64
    assert unravel(vector) == {"a": None}


def test_ravel_copies():
    x = np.zeros(3)
    vector, unravel = tree.ravel(x)
    vector[0] = 1
    assert x[0] == 0
    assert unravel(vector).shape == (3,)


def test_unravel_can_be_pickled_and_takes_lists():
    vector, unravel = tree.ravel({"a": np.ones(2), "b": 1.0})
    again = pickle.loads(pickle.dumps(unravel))
    assert again([1, 2, 3])["b"] == 3.0
    assert repr(again) == "Unravel(float64[3] -> TreeDef({'a': *, 'b': *}))"
    np.testing.assert_array_equal(again(vector)["a"], [1, 1])


def test_unravel_checks_the_vector():
    _, unravel = tree.ravel({"a": np.ones(2), "b": 1.0})
    for wrong in (np.zeros(2), np.zeros((3, 1)), 1.0):
        with pytest.raises(ShapeError, match="the leaves have 3 elements"):
            unravel(wrong)
    with pytest.raises(ShapeError) as caught:
        unravel(np.zeros((1, 3)))
    assert_words(
        caught,
        "the vector does not have the length of the tree",
        "unravel got float64[1,3], the leaves have 3 elements",
        "give a vector of shape (3,)",
    )
    with pytest.raises(DtypeError, match="a complex vector cannot become a tree of real leaves"):
        unravel(np.zeros(3, complex))


@pytest.mark.parametrize("leaf", ["text", len, np.array(["a"]), np.array([None]), object()])
def test_ravel_names_a_leaf_that_is_not_numeric(leaf):
    with pytest.raises(DtypeError, match=r"where: the tree at \['a'\]\[1\]: "):
        tree.ravel({"a": [1.0, leaf]})


class Duck:
    """A duck array: it answers NumPy functions and has no buffer."""

    def __init__(self, array):
        self.array = array

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: self.array.dtype)
    ndim = property(lambda self: self.array.ndim)

    def __array__(self, dtype=None, copy=None):
        raise TypeError("a duck has no buffer")

    def __array_function__(self, func, types, args, kwargs):
        def strip(x):
            return x.array if isinstance(x, Duck) else x

        args = [tuple(map(strip, a)) if isinstance(a, list) else strip(a) for a in args]
        return Duck(func(*args, **kwargs))

    def __getitem__(self, index):
        return Duck(self.array[index])

    def astype(self, dtype):
        return Duck(self.array.astype(dtype))


def test_ravel_lets_duck_arrays_through():
    x = {"a": Duck(np.ones((2, 2), np.float32)), "b": 3.0, "c": np.zeros(1)}
    vector, unravel = tree.ravel(x)
    assert type(vector) is Duck
    np.testing.assert_array_equal(vector.array, [1, 1, 1, 1, 3, 0])
    back = unravel(vector)
    assert [type(leaf) for leaf in back.values()] == [Duck, Duck, Duck]
    assert [leaf.shape for leaf in back.values()] == [(2, 2), (), (1,)]
    assert back["a"].dtype == np.float32


# Imports.


def test_import_brings_neither_attrs_nor_difflib():
    """Start-up: what only some users need is loaded when they need it."""
    code = """
import sys, numpy
before = set(sys.modules)
import funcgrad.tree
print({"attr", "attrs", "difflib", "dataclasses"} & (set(sys.modules) - before))
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"


def test_the_files_import_only_those_before_them():
    import ast
    import pathlib

    order = ["paths", "content", "order", "containers", "depth", "mismatch", "treedef"]
    order += ["operations", "regroup", "surgery", "classes", "ravel", "__init__"]
    folder = pathlib.Path(tree.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} == set(order)
    for i, name in enumerate(order):
        module = ast.parse((folder / f"{name}.py").read_text())
        for node in module.body:
            if isinstance(node, ast.ImportFrom) and node.module.startswith("funcgrad"):
                assert node.module in {"funcgrad.errors"} | {
                    f"funcgrad.tree.{other}" for other in order[:i]
                }
