"""Signatures: what decides whether a compiled program fits a call.

The structure of the arguments, the shapes and dtypes of arrays, the types of numbers (those of
Python take the dtype of what they meet, so a float is not a float64), and the content of all that
is static.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from funcgrad import tree
from funcgrad.core.boxed import Boxed
from funcgrad.core.foreign import PLAIN, refuse
from funcgrad.core.tracer import Tracer
from funcgrad.errors import ArgumentError, describe, user_line
from funcgrad.staging.record import is_recordable

__all__ = ["Held", "Kinds", "is_traced"]

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
            raise ArgumentError(
                f"{name()} is static, and {describe(value)} can be compared with others neither "
                "by content nor by hash",
                where=f"{name()}, {user_line()}",
                fix=f"give {type(value).__name__} the methods __eq__ and __hash__, for instance by "
                "@dataclass(frozen=True); lists, dicts and arrays are compared by content",
            ) from None

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and tree.same(self.value, other.value)

    def __repr__(self) -> str:
        return repr(self.value)


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


def is_traced(leaves: Sequence[Any]) -> bool:
    """Tell whether a transform watches one of these leaves."""
    for leaf in leaves:
        if type(leaf) is Tracer or (isinstance(leaf, Boxed) and type(leaf._unbox()) is Tracer):
            return True
    return False
