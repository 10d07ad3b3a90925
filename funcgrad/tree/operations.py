"""Functions on whole trees, under the names of ``jax.tree``: map, reduce and so on.

All are thin over the walks of ``treedef.py``, but for `map` of one tree: it builds no structure
and goes straight from a node to the new node. The leaf function is always called in leaf order,
so that it may draw from an iterator (of random keys, say), and inside comprehensions only: a
``StopIteration`` from it would end a ``zip`` or a ``map`` silently.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any, TypeAlias

from funcgrad.errors import ArgumentError
from funcgrad.tree.containers import LEAVES, container_of
from funcgrad.tree.depth import check_depth
from funcgrad.tree.order import ORDERS, order_of
from funcgrad.tree.paths import KeyPath
from funcgrad.tree.treedef import TreeDef, check_match, flatten, unflatten

__all__ = [
    "IsLeaf",
    "all",
    "beside",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "structure",
]

IsLeaf: TypeAlias = Callable[[Any], bool] | None
"""Says, asked about a node, whether the tree ends there."""


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply a function to every leaf.

    Parameters
    ----------
    f : callable
        Takes a leaf of `tree`, and what each tree of `rest` has in its place. Called in leaf
        order.
    tree : pytree
        The tree that decides the structure.
    *rest : pytree
        Trees of the same structure, or with any subtree where `tree` has a leaf.
    is_leaf : callable, optional
        Says where `tree` ends, as in `flatten`.

    Returns
    -------
    pytree
        Like `tree`, with what `f` returned in place of the leaves.

    Raises
    ------
    ArgumentError
        `f` is no function.
    TreeMismatchError
        A tree of `rest` is different. It says which, and the first path at which it is.
    DeepTreeError
        `tree` contains itself, or is nested too deeply.

    Examples
    --------
    >>> map(lambda x: 2 * x, {"w": 1.0, "b": [2.0, None]})
    {'w': 2.0, 'b': [4.0, None]}
    >>> map(lambda x, y: x + y, (1, 2), (10, 20))
    (11, 22)
    """
    if not callable(f):
        raise _function_first("map", f)
    if is_leaf is None and not rest:
        try:
            return _map_one(f, tree)
        except RecursionError:
            check_depth(tree)
            raise
    first, treedef = flatten(tree, is_leaf)
    if not rest:
        return unflatten(treedef, [f(leaf) for leaf in first])
    others = beside(treedef, rest, "tree.map")
    if len(others) == 1:  # nearly always; a call with two names is faster than one with a star
        pairs = zip(first, others[0], strict=True)
        return unflatten(treedef, [f(leaf, other) for leaf, other in pairs])
    return unflatten(treedef, [f(*row) for row in zip(first, *others, strict=True)])


def _function_first(name: str, given: object) -> ArgumentError:
    return ArgumentError(
        f"tree.{name} takes the function first",
        where=f"its first argument is of type {type(given).__name__}",
        fix=f"tree.{name}(f, tree)",
    )


def _map_one(f: Callable[[Any], Any], tree: Any) -> Any:
    cls = type(tree)
    if cls is dict:
        keys = tuple(tree)
        order = ORDERS.get(keys) or order_of(keys)
        if order.in_order:
            return {
                key: f(value) if type(value) in LEAVES else _map_one(f, value)
                for key, value in tree.items()
            }
        mapped = tree.copy()
        for key, value in zip(order.sorted, order.values(tree)):  # noqa: B905 - same length
            mapped[key] = f(value) if type(value) in LEAVES else _map_one(f, value)
        return mapped
    container = container_of(cls)
    if container is None:
        return f(tree)
    values, meta = container.flatten(tree)
    return container.unflatten(
        meta, [f(value) if type(value) in LEAVES else _map_one(f, value) for value in values]
    )


def beside(treedef: TreeDef, trees: tuple[Any, ...], name: str) -> list[list[Any]]:
    """List what each of the other trees has at the leaves of the first."""
    return [
        check_match(
            treedef,
            tree,
            what=f"the trees given to {name} do not match",
            where=functools.partial(_ordinal, i),
            against="the first tree",
            prefix=True,
        )
        for i, tree in enumerate(trees, start=2)
    ]


def _ordinal(i: int) -> str:
    names = {2: "second", 3: "third", 4: "fourth", 5: "fifth"}
    return f"the {names[i]} tree" if i in names else f"tree {i}"


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """List the leaves of a tree.

    Parameters
    ----------
    tree : pytree
        The tree.
    is_leaf : callable, optional
        Says where it ends, as in `flatten`.

    Returns
    -------
    list
        The leaves, those of a dict in the order of its sorted keys.

    Examples
    --------
    >>> leaves({"b": [2.0, None], "a": 1.0})
    [1.0, 2.0]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: IsLeaf = None) -> TreeDef:
    """Return the structure of a tree.

    Parameters
    ----------
    tree : pytree
        The tree.
    is_leaf : callable, optional
        Says where it ends, as in `flatten`.

    Returns
    -------
    TreeDef
        The structure, which can be printed, compared, hashed and pickled.

    Examples
    --------
    >>> structure({"b": [2.0, None], "a": 1.0})
    TreeDef({'a': *, 'b': [*, None]})
    """
    return flatten(tree, is_leaf)[1]


def leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """List the leaves of a tree with their paths.

    Parameters
    ----------
    tree : pytree
        The tree.
    is_leaf : callable, optional
        Says where it ends, as in `flatten`.

    Returns
    -------
    list of (path, leaf)
        In the order of `leaves`. A path is a tuple of keys; `keystr` writes it.

    Examples
    --------
    >>> from funcgrad.tree import keystr
    >>> [(keystr(path), leaf) for path, leaf in leaves_with_path({"b": [2.0, None], "a": 1.0})]
    [("['a']", 1.0), ("['b'][0]", 2.0)]
    """
    found: list[tuple[KeyPath, Any]] = []
    try:
        _walk(tree, (), found, is_leaf)
    except RecursionError:
        check_depth(tree)
        raise
    return found


def _walk(tree: Any, path: KeyPath, found: list[tuple[KeyPath, Any]], is_leaf: IsLeaf) -> None:
    container = None
    if is_leaf is None or not is_leaf(tree):
        container = container_of(type(tree))
    if container is None:
        found.append((path, tree))
        return
    children, _ = container.flatten(tree)
    for key, child in zip(container.keys(tree), children, strict=True):
        _walk(child, (*path, key), found, is_leaf)


def flatten_with_path(
    tree: Any, is_leaf: IsLeaf = None
) -> tuple[list[tuple[KeyPath, Any]], TreeDef]:
    """Take a tree apart into leaves with their paths, and its structure.

    Parameters
    ----------
    tree : pytree
        The tree.
    is_leaf : callable, optional
        Says where it ends, as in `flatten`.

    Returns
    -------
    leaves : list of (path, leaf)
        As `leaves_with_path` gives them.
    treedef : TreeDef
        The structure.

    Examples
    --------
    >>> flatten_with_path({"a": 1.0})
    ([((DictKey('a'),), 1.0)], TreeDef({'a': *}))
    """
    return leaves_with_path(tree, is_leaf), structure(tree, is_leaf)


def map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply a function to every leaf and its path.

    Parameters
    ----------
    f : callable
        Takes the path, the leaf, and what each tree of `rest` has there.
    tree : pytree
        The tree that decides the structure.
    *rest : pytree
        Trees of the same structure, or with any subtree where `tree` has a leaf.
    is_leaf : callable, optional
        Says where `tree` ends, as in `flatten`.

    Returns
    -------
    pytree
        Like `tree`, with what `f` returned in place of the leaves.

    Raises
    ------
    TreeMismatchError
        A tree of `rest` is different.

    Examples
    --------
    >>> from funcgrad.tree import keystr
    >>> map_with_path(lambda path, x: f"{keystr(path)} is {x}", {"w": 1.0, "b": [2.0]})
    {'w': "['w'] is 1.0", 'b': ["['b'][0] is 2.0"]}
    """
    if not callable(f):
        raise _function_first("map_with_path", f)
    pairs, treedef = flatten_with_path(tree, is_leaf)
    others = beside(treedef, rest, "tree.map_with_path")
    return unflatten(
        treedef, [f(path, leaf, *row) for (path, leaf), *row in zip(pairs, *others, strict=True)]
    )


_NOTHING: Any = object()


def reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _NOTHING,
    is_leaf: IsLeaf = None,
) -> Any:
    """Combine all leaves to one value, from the first to the last.

    Parameters
    ----------
    function : callable
        Takes the value so far and a leaf.
    tree : pytree
        The tree.
    initializer : optional
        The value before the first leaf. Without it, the first leaf is.
    is_leaf : callable, optional
        Says where the tree ends, as in `flatten`.

    Returns
    -------
    object
        The last value.

    Raises
    ------
    ArgumentError
        There are no leaves, and no `initializer`.

    Examples
    --------
    >>> reduce(lambda total, x: total + x, {"a": 1, "b": [2, 3]})
    6
    """
    if not callable(function):
        raise _function_first("reduce", function)
    found = leaves(tree, is_leaf)
    if initializer is not _NOTHING:
        return functools.reduce(function, found, initializer)
    if not found:
        raise ArgumentError(
            "tree.reduce has nothing to combine",
            where="the tree has no leaves",
            fix="give an initializer: tree.reduce(f, tree, 0.0)",
        )
    return functools.reduce(function, found)


def all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Say whether every leaf is true.

    Parameters
    ----------
    tree : pytree
        The tree.
    is_leaf : callable, optional
        Says where it ends, as in `flatten`.

    Returns
    -------
    bool
        True for a tree without leaves.

    Examples
    --------
    >>> all({"a": True, "b": [1, 2]}), all((True, False))
    (True, False)
    """
    return builtins.all(leaves(tree, is_leaf))
