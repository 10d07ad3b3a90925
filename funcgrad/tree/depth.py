"""What to say of a tree that the recursive walks cannot reach the end of.

They run into Python's recursion limit when a list or dict contains itself, or is nested very
deeply. Looking for that beforehand would cost each walk, so it is done afterwards, without
recursion: by going down until an object is met on its own path.
"""

from __future__ import annotations

import sys
from typing import Any

from funcgrad.errors import DeepTreeError
from funcgrad.tree.containers import container_of
from funcgrad.tree.paths import keystr

__all__ = ["check_depth"]


def check_depth(tree: Any) -> None:
    """Raise if the tree is the reason for a `RecursionError`: it contains itself, or is deep.

    Where it is not, the caller's own functions or stack are.
    """
    limit = sys.getrecursionlimit() // 2
    path: list[Any] = []  # keys
    nodes = [tree]  # on the path, from the root; they stay alive, so that their ids are theirs
    on_path = {id(tree): 0}
    pending = [_children(tree)]
    while pending:
        if not pending[-1]:
            pending.pop()
            del on_path[id(nodes.pop())]
            if path:
                path.pop()
            continue
        key, child = pending[-1].pop()
        if container_of(type(child)) is None:
            continue
        if id(child) in on_path:
            first = keystr(tuple(path[: on_path[id(child)]])) or "the root"
            again = keystr((*path, key))
            raise DeepTreeError(
                "the tree contains itself",
                where=f"{_short(again)} is the object at {_short(first)}",
                fix="put a copy there, or leave it out",
            )
        if len(path) >= limit:
            below = _short(keystr(tuple(path)))
            raise DeepTreeError(
                "the tree is nested too deeply",
                where=f"more than {limit} nodes below each other: {below}",
                fix="put the leaves into one list, or stack them in an array",
            )
        path.append(key)
        on_path[id(child)] = len(nodes)
        nodes.append(child)
        pending.append(_children(child))


def _children(tree: Any) -> list[tuple[Any, Any]]:
    """List keys and children, the first at the end."""
    container = container_of(type(tree))
    if container is None:
        return []
    children, _ = container.flatten(tree)
    return list(zip(container.keys(tree), children, strict=True))[::-1]


def _short(path: str) -> str:
    return path if len(path) <= 60 else f"{path[:57]}..."
