"""Functions that take trees apart and join them in another way: transpose, broadcast, partition.

`partition` and `combine` are how parameters are told from the rest of a model: split, transform
one half, join again. A half keeps the whole structure, with None, which has no leaves, where
the other half has a leaf.
"""

from __future__ import annotations

from typing import Any

from funcgrad.errors import ArgumentError, describe
from funcgrad.tree.containers import container_of
from funcgrad.tree.operations import IsLeaf, beside, flatten_with_path, leaves, structure
from funcgrad.tree.paths import KeyPath, keystr
from funcgrad.tree.treedef import TreeDef, check_match, flatten, unflatten

__all__ = ["broadcast", "combine", "partition", "transpose"]


def transpose(
    outer_treedef: TreeDef, inner_treedef: TreeDef | None, pytree_to_transpose: Any
) -> Any:
    """Turn a tree of trees inside out.

    Parameters
    ----------
    outer_treedef : TreeDef
        The structure of `pytree_to_transpose`, down to where the inner trees begin.
    inner_treedef : TreeDef or None
        The structure of each inner tree. None takes that of the first.
    pytree_to_transpose : pytree
        The tree of trees.

    Returns
    -------
    pytree
        Of structure `inner_treedef`, with a tree of structure `outer_treedef` at each leaf.

    Raises
    ------
    TreeMismatchError
        `pytree_to_transpose` does not have these structures.

    Examples
    --------
    >>> records = [{"x": 1, "y": 2}, {"x": 3, "y": 4}]
    >>> transpose(structure([0, 0]), structure({"x": 0, "y": 0}), records)
    {'x': [1, 3], 'y': [2, 4]}
    """
    what = "the tree given to tree.transpose is not made of these structures"
    subtrees = check_match(
        outer_treedef,
        pytree_to_transpose,
        what=what,
        where="the tree",
        against="outer_treedef",
        prefix=True,
    )
    if inner_treedef is None:
        if not subtrees:
            raise ArgumentError(
                "tree.transpose cannot find the inner structure",
                where="outer_treedef has no leaves",
                fix="give inner_treedef",
            )
        inner_treedef = structure(subtrees[0])
    rows = [
        check_match(
            inner_treedef,
            subtree,
            what=what,
            where=f"inner tree {i}",
            against="inner_treedef",
        )
        for i, subtree in enumerate(subtrees)
    ]
    columns = [
        unflatten(outer_treedef, [row[j] for row in rows]) for j in range(inner_treedef.num_leaves)
    ]
    return unflatten(inner_treedef, columns)


def broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Repeat the leaves of a prefix for every leaf of a tree that is below them.

    Parameters
    ----------
    prefix_tree : pytree
        Like `full_tree`, with a leaf in place of any subtree.
    full_tree : pytree
        The tree that decides the structure.
    is_leaf : callable, optional
        Says where `prefix_tree` ends: ``lambda x: x is None`` makes None a value to repeat.

    Returns
    -------
    pytree
        Of the structure of `full_tree`, with leaves of `prefix_tree`.

    Raises
    ------
    TreeMismatchError
        `prefix_tree` is no prefix of `full_tree`.

    Examples
    --------
    >>> broadcast({"a": 0, "b": 1}, {"a": [1.0, 2.0], "b": (3.0, None)})
    {'a': [0, 0], 'b': (1, None)}
    """
    values, treedef = flatten(prefix_tree, is_leaf)
    subtrees = check_match(
        treedef,
        full_tree,
        what="the prefix does not fit the tree",
        where="the prefix",
        against="the tree",
        fix="give one value for that leaf, or one for the whole subtree",
        prefix=True,
        blame="expected",
    )
    repeated = [
        value for value, subtree in zip(values, subtrees, strict=True) for _ in leaves(subtree)
    ]
    return unflatten(structure(full_tree), repeated)


def partition(tree: Any, predicate_or_mask: Any, is_leaf: IsLeaf = None) -> tuple[Any, Any]:
    """Split a tree into the leaves that are selected and the others.

    Parameters
    ----------
    tree : pytree
        The tree.
    predicate_or_mask : callable or pytree of bool
        A function of a leaf, or a tree with True, False or such a function at each leaf of
        `tree`, or for whole subtrees.
    is_leaf : callable, optional
        Says where `tree` ends, as in `flatten`.

    Returns
    -------
    selected, rest : pytree
        Like `tree`, each with None where the other has the leaf. `combine` undoes this.

    Raises
    ------
    TreeMismatchError
        The mask does not fit `tree`.
    ArgumentError
        The mask has something else than bools and functions.

    Examples
    --------
    >>> selected, rest = partition({"w": 1.5, "name": "dense"}, lambda x: isinstance(x, float))
    >>> selected, rest
    ({'w': 1.5, 'name': None}, {'w': None, 'name': 'dense'})
    >>> combine(selected, rest)
    {'w': 1.5, 'name': 'dense'}
    """
    found, treedef = flatten(tree, is_leaf)
    if callable(predicate_or_mask) and container_of(type(predicate_or_mask)) is None:
        chosen = [bool(predicate_or_mask(leaf)) for leaf in found]
    else:
        # Subtrees that `is_leaf` makes leaves must count as one in the mask too.
        whole = tree if is_leaf is None else unflatten(treedef, [True] * len(found))
        mask = _mask(predicate_or_mask, whole)
        chosen = [
            _is_chosen(value, path, leaf) for (path, value), leaf in zip(mask, found, strict=True)
        ]
    return (
        unflatten(
            treedef, [leaf if yes else None for leaf, yes in zip(found, chosen, strict=True)]
        ),
        unflatten(
            treedef, [None if yes else leaf for leaf, yes in zip(found, chosen, strict=True)]
        ),
    )


def _mask(mask: Any, tree: Any) -> list[tuple[KeyPath, Any]]:
    """Return the value of the mask, and its path there, for each leaf of `tree`."""
    pairs, treedef = flatten_with_path(mask)
    subtrees = check_match(
        treedef,
        tree,
        what="the mask does not fit the tree given to tree.partition",
        where="the mask",
        against="the tree",
        fix="give one bool for that leaf, or one for the whole subtree",
        prefix=True,
        blame="expected",
    )
    return [pair for pair, subtree in zip(pairs, subtrees, strict=True) for _ in leaves(subtree)]


def _is_chosen(value: Any, path: KeyPath, leaf: Any) -> bool:
    if callable(value):
        return bool(value(leaf))
    # NumPy's bool has a dtype, and knows no other way to be told without importing NumPy.
    if isinstance(value, bool) or (getattr(value, "dtype", None) == "bool" and value.shape == ()):
        return bool(value)
    raise ArgumentError(
        "a mask must have a bool, or a function of the leaf, at each leaf",
        where=f"the mask at {keystr(path) or 'the root'}: {describe(value)}",
        fix="write True to select it, False to leave it",
    )


def combine(*trees: Any) -> Any:
    """Merge trees: at each place, the first value that is not None.

    Parameters
    ----------
    *trees : pytree
        Trees of one structure, but for None in place of leaves.

    Returns
    -------
    pytree
        The merged tree.

    Raises
    ------
    ArgumentError
        No tree was given.
    TreeMismatchError
        The trees have different structures.

    Examples
    --------
    >>> combine({"a": 1, "b": None, "c": None}, {"a": None, "b": 2, "c": None})
    {'a': 1, 'b': 2, 'c': None}
    """
    if not trees:
        raise ArgumentError(
            "tree.combine needs a tree",
            where="combine()",
            fix="combine(selected, rest), the trees that partition returned",
        )
    first, treedef = flatten(trees[0], _is_none)
    others = beside(treedef, trees[1:], "tree.combine")
    return unflatten(treedef, [_first(row) for row in zip(first, *others, strict=True)])


def _is_none(value: Any) -> bool:
    return value is None


def _first(values: tuple[Any, ...]) -> Any:
    return next((value for value in values if value is not None), None)
