"""What is in a file against a tree that is to take it, leaf by leaf, by the paths.

Paths decide, and not the types of containers: a class may be renamed or moved, and a list may
become a tuple, between saving and loading. What differs is said of all leaves at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from funcgrad import random, tree
from funcgrad.errors import TreeMismatchError, describe, user_line
from funcgrad.serialize.structure import leaf_value, place, unique_names

__all__ = ["fitting_leaves"]

_SHOWN = 6


def fitting_leaves(
    nodes: Mapping[str, Any],
    like: Any,
    read: Callable[[str], NDArray[Any]],
    *,
    strict: bool,
    file: str,
) -> list[Any]:
    """Return the leaves that `nodes` describe, in the order and the kinds of those of `like`."""
    pairs = tree.leaves_with_path(like)
    wanted = unique_names((tree.keystr(path), leaf) for path, leaf in pairs)
    values = {name: leaf_value(node, read) for name, node in nodes.items() if name in wanted}
    missing = [name for name in wanted if name not in values]
    extra = [name for name in nodes if name not in wanted]
    other = [name for name, value in values.items() if not _fits(value, wanted[name])]
    nothing = bool(wanted) and not values
    if other or nothing or (strict and (missing or extra)):
        raise _mismatch(file, wanted, values, missing, extra, other)
    return [
        _of_kind(values[name], leaf) if name in values else leaf for name, leaf in wanted.items()
    ]


def _fits(value: Any, leaf: Any) -> bool:
    # Python's numbers and strings have one type each, whatever their size.
    alike = type(value) is type(leaf) and not hasattr(leaf, "shape")
    return alike or _signature(value) == _signature(leaf)


def _signature(value: Any) -> tuple[Any, Any]:
    """Return what must be equal: the shape, and the dtype or something in its place.

    A number is the same as an array of shape (): which of them it is changes in training.
    """
    if isinstance(value, random.Key):
        return random.Key, value.shape
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(dtype, np.dtype):
        return dtype.newbyteorder("="), shape
    if type(value) is int and not -(2**63) <= value < 2**63:
        return "an int of more than 64 bits", ()
    if type(value) in (bool, int, float, complex):
        return np.dtype(type(value)), ()
    return type(value), ()


def _of_kind(value: Any, leaf: Any) -> Any:
    """Return a value that fits, as an array, a NumPy scalar or a Python number like `leaf`."""
    if type(value) is type(leaf) and not hasattr(leaf, "dtype"):
        return value
    if isinstance(leaf, np.generic):
        return np.asarray(value, leaf.dtype)[()]
    if hasattr(leaf, "dtype"):
        return np.asarray(value, leaf.dtype)
    return value.item() if isinstance(value, (np.ndarray, np.generic)) else value


def _mismatch(
    file: str,
    wanted: Mapping[str, Any],
    values: Mapping[str, Any],
    missing: list[str],
    extra: list[str],
    other: list[str],
) -> TreeMismatchError:
    parts = []
    if missing:
        parts.append(f"missing from the file: {_listed(map(place, missing))}")
    if extra:
        parts.append(f"only in the file: {_listed(map(place, extra))}")
    if other:
        parts.append(
            "different: "
            + _listed(
                f"{place(name)} is {_words(values[name])} in the file, "
                f"{_words(wanted[name])} in like"
                for name in other
            )
        )
    return TreeMismatchError(
        f"{file} does not fit the tree given as like",
        where=f"{'; '.join(parts)}; loaded at {user_line()}",
        fix=_fix(missing, extra, other),
    )


def _fix(missing: list[str], extra: list[str], other: list[str]) -> str:
    # difflib brings `re`, which a load that goes well has no use for.
    from difflib import get_close_matches  # noqa: PLC0415

    left, pairs = list(extra), []
    for name in missing:
        parent, last = _parted(name)
        beside = {_parted(other)[1]: other for other in left if _parted(other)[0] == parent}
        near = get_close_matches(last, beside, n=1)
        if near:
            left.remove(beside[near[0]])
            pairs.append(f"{name} to {beside[near[0]]}")
    if pairs:
        return f"rename in like {_listed(pairs)}"
    if other:
        return "build like as the tree that was saved; load(path) without like gives that tree"
    return (
        "build like as the tree that was saved; strict=False keeps what is missing "
        "as it is in like, and leaves out what is only in the file"
    )


def _parted(name: str) -> tuple[str, str]:
    """Part a path into that of the container and the bare name of the last step."""
    last = max(name.rfind("["), name.rfind("."), 0)
    return name[:last], name[last:].strip("[]'.")


def _words(value: Any) -> str:
    return describe(value) if hasattr(value, "shape") else f"a Python {type(value).__name__}"


def _listed(items: Iterable[str]) -> str:
    items = list(items)
    more = len(items) - _SHOWN
    return ", ".join(items[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
