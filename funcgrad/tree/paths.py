"""Key paths: how a message or a file name says where in a pytree a leaf sits.

A path is a tuple of keys, one for each container on the way from the root to the leaf. A key
prints as the Python that takes that step, so a whole path reads like the expression that would
reach the leaf: ``['layers'][0].bias``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

__all__ = ["AttrKey", "DictKey", "KeyPath", "SequenceKey", "keystr"]


class _Key:
    """One step of a path: a value and the spelling of the step. Immutable, hashable."""

    __slots__ = ("_value",)
    _value: Any

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return bool(self._value == other._value)

    def __hash__(self) -> int:
        return hash((type(self), self._value))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._value,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._value!r})"

    def __str__(self) -> str:
        return f"[{self._value!r}]"


class DictKey(_Key):
    """The step into a mapping.

    Parameters
    ----------
    key : hashable
        The key of the mapping.

    Examples
    --------
    >>> str(DictKey("w"))
    "['w']"
    """

    __slots__ = ()

    @property
    def key(self) -> Any:
        """The key of the mapping."""
        return self._value


class SequenceKey(_Key):
    """The step into a list, a tuple, or a registered class that does not name its children.

    Parameters
    ----------
    idx : int
        The position.

    Examples
    --------
    >>> str(SequenceKey(0))
    '[0]'
    """

    __slots__ = ()

    @property
    def idx(self) -> int:
        """The position."""
        return int(self._value)


class AttrKey(_Key):
    """The step to an attribute, of a named tuple or of a class with fields.

    Parameters
    ----------
    name : str
        The name of the attribute.

    Examples
    --------
    >>> str(AttrKey("bias"))
    '.bias'
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name of the attribute."""
        return str(self._value)

    def __str__(self) -> str:
        return f".{self._value}"


KeyPath: TypeAlias = tuple[Any, ...]
"""One key for each container between the root and a leaf.

Examples
--------
>>> import funcgrad as fg
>>> def written(path: fg.tree.KeyPath) -> str:
...     return fg.tree.keystr(path)
>>> [written(path) for path, leaf in fg.tree.leaves_with_path({"w": [1.0, 2.0]})]
["['w'][0]", "['w'][1]"]
"""


def keystr(keys: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """Write a path the way Python would reach the leaf.

    Parameters
    ----------
    keys : iterable of keys
        As `flatten_with_path` gives it.
    simple : bool, default False
        Leave out brackets, quotes and dots, for names in files and tables.
    separator : str, default ""
        Stands between the keys.

    Returns
    -------
    str
        The keys, joined.

    Examples
    --------
    >>> path = (DictKey("layers"), SequenceKey(0), AttrKey("bias"))
    >>> keystr(path)
    "['layers'][0].bias"
    >>> keystr(path, simple=True, separator="/")
    'layers/0/bias'
    """
    return separator.join(
        str(key._value) if simple and isinstance(key, _Key) else str(key) for key in keys
    )
