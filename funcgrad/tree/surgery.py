"""`at`: change parts of a tree out of place, by a function that points at them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.errors import ArgumentError, user_line
from funcgrad.tree.operations import IsLeaf
from funcgrad.tree.treedef import flatten

__all__ = ["at"]

_NOT_GIVEN: Any = object()


class _Spot:
    """Stands for a leaf while `where` runs: each is another object, so it can be found again."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"a leaf, {type(self.value).__name__}, has no part {name!r} to replace"
        )


def at(
    where: Callable[[Any], Any],
    tree: Any,
    replace: Any = _NOT_GIVEN,
    *,
    replace_fn: Callable[[Any], Any] | None = None,
    is_leaf: IsLeaf = None,
) -> Any:
    """Return a tree with the parts that `where` points at replaced.

    Parameters
    ----------
    where : callable
        Takes a tree like `tree`, and returns the part to replace, or a tuple or list of parts.
    tree : pytree
        The tree, which stays as it is.
    replace : object, optional
        What to put there: any tree. For several parts, as many in a tuple or list.
    replace_fn : callable, optional
        Instead of `replace`: takes what is there and returns what to put there.
    is_leaf : callable, optional
        Tells which nodes are to be treated as leaves. To replace one None of several, write
        ``is_leaf=lambda x: x is None``.

    Returns
    -------
    pytree
        `tree` with these parts replaced; the rest is shared.

    Raises
    ------
    ArgumentError
        `where` returns what is no part of the tree, or the same part twice, or parts that lie in
        one another; or the numbers of parts and of replacements differ.

    Examples
    --------
    >>> import funcgrad as fg
    >>> params = {"encoder": {"w": 1.0, "b": 2.0}, "head": [3.0, 4.0]}
    >>> fg.tree.at(lambda p: p["encoder"]["b"], params, 0.0)
    {'encoder': {'w': 1.0, 'b': 0.0}, 'head': [3.0, 4.0]}
    >>> fg.tree.at(lambda p: p["head"], params, replace_fn=len)
    {'encoder': {'w': 1.0, 'b': 2.0}, 'head': 2}
    """
    if (replace is _NOT_GIVEN) == (replace_fn is None):
        raise ArgumentError(
            "tree.at takes either replace or replace_fn",
            where=user_line(),
            fix="fg.tree.at(where, tree, new_value), or fg.tree.at(where, tree, replace_fn=f)",
        )
    values, treedef = flatten(tree, is_leaf)
    marked = treedef.unflatten([_Spot(value) for value in values])
    pointed = where(marked)
    # A tuple or list that is itself a node of the tree is one part.
    several = type(pointed) in (tuple, list) and not _found(marked, [pointed])
    parts = list(pointed) if several else [pointed]
    if len({id(part) for part in parts}) < len(parts) or len(_found(marked, parts)) != len(parts):
        raise ArgumentError(
            "where returns something that is no part of the tree, or is in it twice, "
            "or lies in another of the parts",
            where=f"{user_line()}; the tree is {treedef}",
            fix="return attributes or items of its argument, unchanged; "
            "for one None of several write is_leaf=lambda x: x is None",
        )
    if replace_fn is not None:
        news = [replace_fn(_restored(part, {})) for part in parts]
    elif not several:
        news = [replace]
    elif type(replace) in (tuple, list) and len(replace) == len(parts):
        news = list(replace)
    else:
        raise ArgumentError(
            f"where points at {len(parts)} parts of the tree, and replace is not as many values",
            where=user_line(),
            fix=f"give a tuple of {len(parts)} values",
        )
    return _restored(marked, {id(part): new for part, new in zip(parts, news, strict=True)})


def _found(marked: Any, parts: list[Any]) -> list[Any]:
    """Return the parts that are in a tree, in its order."""
    ids = {id(part) for part in parts}
    leaves, _ = flatten(marked, lambda node: id(node) in ids)
    return [leaf for leaf in leaves if id(leaf) in ids]


def _restored(marked: Any, news: dict[int, Any]) -> Any:
    """Put values in the place of marks, and of the parts with these ids."""
    leaves, treedef = flatten(marked, lambda node: id(node) in news)
    return treedef.unflatten([_new(leaf, news) for leaf in leaves])


def _new(leaf: Any, news: dict[int, Any]) -> Any:
    if id(leaf) in news:
        return news[id(leaf)]
    return leaf.value
