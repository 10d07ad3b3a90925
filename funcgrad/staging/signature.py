"""Signatures: what decides whether a compiled program fits a call.

The structure of the arguments, the shapes and dtypes of arrays, the types of numbers (those of
Python take the dtype of what they meet, so a float is not a float64), and the content of all that
is static.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core.boxed import Boxed
from funcgrad.core.foreign import PLAIN, refuse
from funcgrad.core.tracer import Tracer
from funcgrad.errors import ArgumentError, describe, user_line
from funcgrad.staging.donation import reason_of
from funcgrad.staging.record import is_recordable

__all__ = ["Held", "Kinds", "is_traced", "refuse_donated"]

_shape = operator.attrgetter("shape")
_dtype = operator.attrgetter("dtype")
_NUMBERS = frozenset({bool, int, float, complex})


class Held:
    """A static value, which is equal to others of the same content.

    Parameters
    ----------
    value : object
    name : callable
        Returns what to call it in messages.
    """

    __slots__ = ("_hash", "value")

    def __init__(self, value: Any, name: Callable[[], str]):
        self.value = value
        try:
            self._hash = tree.content_hash(value)
        except TypeError:
            value = _without_hash(value)
            raise ArgumentError(
                f"{name()} is static, and {describe(value)} can be compared with others neither "
                "by content nor by hash",
                where=f"{name()}, {user_line()}",
                fix=f"give {type(value).__name__} the methods __eq__ and __hash__, for instance by "
                "@dataclass(frozen=True); lists, dicts and arrays are compared by content",
            ) from None

    def keep(self) -> None:
        """Keep the content that the value has now, whoever writes to it later."""
        self.value = _copied(self.value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and tree.same(self.value, other.value)

    def __repr__(self) -> str:
        return repr(self.value)


def _without_hash(value: Any) -> Any:
    """Return the part of a value that has no hash."""
    parts = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list | tuple):
        for part in parts:
            try:
                tree.content_hash(part)
            except TypeError:
                return _without_hash(part)
    return value


def _copied(value: Any) -> Any:
    """Copy what can be written to and is compared by content."""
    kind = type(value)
    if kind is list or kind is tuple:
        return kind(map(_copied, value))
    if kind is dict:
        return {key: _copied(item) for key, item in value.items()}
    if kind is set:
        return set(value)
    return value.copy() if kind is np.ndarray else value


class Kinds:
    """What leaves of certain types, in a certain structure, are to a compiled function.

    Parameters
    ----------
    leaves : sequence
        An example.
    paths : callable
        Returns their paths, for messages.
    """

    __slots__ = (
        "_arrays",
        "_boxed",
        "_paths",
        "_static",
        "entries",
        "has_boxed",
        "is_plain",
        "variable",
    )

    def __init__(self, leaves: Sequence[Any], paths: Callable[[], Sequence[str]]):
        self._paths = paths
        self._boxed = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Boxed)]
        self.has_boxed = bool(self._boxed)
        variable = [i for i, leaf in enumerate(leaves) if is_recordable(leaf, True)]
        for i in variable:
            if type(leaves[i]) not in PLAIN and not isinstance(leaves[i], Boxed):
                refuse(leaves[i])
        self.variable = variable
        self._static = [i for i in range(len(leaves)) if i not in set(variable)]
        self._arrays = [i for i in variable if type(leaves[i]) not in _NUMBERS]
        # All leaves are arrays, so that they are what the program computes with.
        self.is_plain = len(self._arrays) == len(leaves) and not self._boxed
        self.entries: dict[Any, Any] = {}

    def sort(self, leaves: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
        """Return the signature of the leaves, and the values of those that are variables."""
        if self.is_plain:
            return (*map(_shape, leaves), *map(_dtype, leaves)), leaves
        if self._boxed:
            leaves = list(leaves)
            for i in self._boxed:
                leaves[i] = leaves[i]._unbox()
        arrays = [leaves[i] for i in self._arrays]
        key = (*map(_shape, arrays), *map(_dtype, arrays))
        if self._static:
            key += tuple([self._hold(leaves[i], i) for i in self._static])
        return key, [leaves[i] for i in self.variable]

    def _hold(self, leaf: Any, place: int) -> Held:
        return leaf if type(leaf) is Held else Held(leaf, lambda: self._paths()[place])


def refuse_donated(leaves: Sequence[Any], paths: Callable[[], Sequence[str]]) -> None:
    """Raise if the memory of one of these leaves has been taken for the results of a function."""
    for place, leaf in enumerate(leaves):
        gone = reason_of(leaf)
        if gone is not None:
            path = paths()[place]
            raise ArgumentError(
                f"{path} has been donated: {gone[0]} took its memory for its results, when it was "
                f"given as {gone[1]}",
                where=f"{path}, {user_line()}",
                fix=f"use what {gone[0]} returned, or give it a copy: x.copy()",
            )


def is_traced(leaves: Sequence[Any]) -> bool:
    """Tell whether a transform watches one of these leaves."""
    for leaf in leaves:
        if type(leaf) is Tracer or (isinstance(leaf, Boxed) and type(leaf._unbox()) is Tracer):
            return True
    return False
