"""Donated arguments: results take their memory, and what was donated says so when it is used.

An array of NumPy's own making may be looked at in ways that nobody can see, so its memory is never
taken. A result of a function that takes donated arguments is another matter: it is an array on
memory that nobody else has, and whoever takes a view of it shows up among the references to that
memory. If there is none, the next call may write into it. So of a loop ``state = step(state)`` the
first step copies what it is given, and from the second on the state stays where it is.

The array that was donated is then made one of no elements and of a dtype that nothing computes
with, whose name says what has happened. So `funcgrad` can name the argument, and NumPy's own errors
mention it.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Collection, Sequence, Set
from sys import getrefcount
from typing import Any

import numpy as np

__all__ = ["copy_on_own_memory", "gone", "invalidate", "is_ours", "reason_of", "shared"]

# Marks the arrays that own the memory of results: no other array has this very dtype.
_MEMORY = np.dtype(np.uint8, metadata={"funcgrad": "memory of results"})
# Without the lock of the interpreter a count of references says nothing.
_COUNTS = getattr(sys, "_is_gil_enabled", lambda: True)()
_NOTHING: frozenset[int] = frozenset()
# Memory of arrays that were invalidated and still exist: a `memoryview` of one may look there.
_kept: dict[int, tuple[Any, Any]] = {}


def _references(x: Any) -> int:
    """Count the references to the array that owns the memory of `x`."""
    return getrefcount(x.base)


def copy_on_own_memory(x: Any, order: Any = "C") -> Any:
    """Return a copy of an array, in C or F order in memory, that can be donated."""
    memory = np.empty(x.nbytes, _MEMORY)
    made = memory.view(x.dtype).reshape(x.shape, order=order)
    made[...] = x
    return made


_ALONE = _references(copy_on_own_memory(np.empty(1)))


def is_ours(x: Any, order: str = "") -> bool:
    """Tell whether an array lies on memory that only this array uses, and in this order."""
    if type(x) is not np.ndarray or type(x.base) is not np.ndarray:
        return False
    flags = x.flags
    if x.base.dtype is not _MEMORY or not flags.writeable or not flags.forc:
        return False
    if order and not (flags.f_contiguous if order == "F" else flags.c_contiguous):
        return False
    return bool(_COUNTS and x.size and _references(x) == _ALONE)


def gone(function: str, path: str) -> Any:
    """Return the state of an array that was donated to a function: no elements, and the reason."""
    what = f"{path} of {function}, which took its memory: use what it returned"
    dtype = np.dtype([(f"donated as {what}", "V1")], metadata={"donated": (function, path)})
    return (1, (0,), dtype, False, b"")


def invalidate(x: Any, state: Any) -> None:
    """Take the elements of an array away from whoever has it; `state` is what it will be."""
    number = id(x)
    _kept[number] = (weakref.ref(x, functools.partial(_forget, number)), x.base)
    x.__setstate__(state)


def _forget(number: int, _: Any) -> None:
    _kept.pop(number, None)


def reason_of(leaf: Any) -> tuple[str, str] | None:
    """Return the function and the path with which an array was donated; None if it was not."""
    if type(leaf) is not np.ndarray or leaf.dtype.metadata is None:
        return None
    found: tuple[str, str] | None = leaf.dtype.metadata.get("donated")
    return found


def shared(values: Sequence[Any], places: Collection[int]) -> Set[int]:
    """Return the places of arrays that are among the values more than once."""
    if len(set(map(id, values))) == len(values):
        return _NOTHING
    count: dict[int, int] = {}
    for value in values:
        count[id(value)] = count.get(id(value), 0) + 1
    return {place for place in places if count[id(values[place])] > 1}
