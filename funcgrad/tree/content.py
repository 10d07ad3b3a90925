"""Equality and hash by content, for what is part of a structure rather than a leaf.

Static fields and auxiliary data decide whether two structures are the same, and through that
whether a compiled program may be used again. Python's own ``==`` is not up to it: it is
ambiguous for arrays, it says that NaN differs from itself, and that ``1``, ``1.0`` and ``True``
are one value. Here two values are the same when a pure function cannot tell them apart.
"""

from __future__ import annotations

from typing import Any

__all__ = ["content_hash", "same"]

# Hashing every byte of a large array would cost more than the comparison that it saves.
_HASHED_BYTES = 4096


def same(a: Any, b: Any) -> bool:
    """Say whether two values have the same type and content.

    Parameters
    ----------
    a, b : object
        Lists, tuples, dicts and slices are compared item by item, arrays by shape, dtype and
        bytes, floats by how they print, anything else by ``==``.

    Returns
    -------
    bool
        Whether they are the same.

    Examples
    --------
    >>> same([1, {"a": float("nan")}], [1, {"a": float("nan")}])
    True
    >>> same(1, 1.0), same(0.0, -0.0)
    (False, False)
    """
    if a is b:
        return True
    cls = type(a)
    if cls is not type(b):
        return False
    if cls is float or cls is complex:  # NaN is itself, and -0.0 is not 0.0
        return repr(a) == repr(b)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    if cls is slice:
        return same(_parts(a), _parts(b))
    if _is_array(a):
        return _same_arrays(a, b)
    return bool(a == b)


def content_hash(value: Any) -> int:
    """Hash a value so that `same` values have equal hashes.

    Parameters
    ----------
    value : object
        What `same` compares by content need not be hashable; anything else must be.

    Returns
    -------
    int
        The hash.

    Raises
    ------
    TypeError
        Something in `value` is unhashable.

    Examples
    --------
    >>> content_hash([1, {"a": 2}]) == content_hash([1, {"a": 2}])
    True
    """
    cls = type(value)
    if cls is float or cls is complex:  # hash(nan) depends on the object
        return hash(repr(value))
    if isinstance(value, list | tuple):
        return hash((cls, *map(content_hash, value)))
    if isinstance(value, dict):
        return hash((cls, frozenset((key, content_hash(item)) for key, item in value.items())))
    if isinstance(value, set):
        return hash((cls, frozenset(value)))
    if cls is slice:
        return hash((cls, content_hash(_parts(value))))
    if _is_array(value):
        content = _bytes(value) if getattr(value, "nbytes", _HASHED_BYTES) < _HASHED_BYTES else None
        return hash((cls, tuple(value.shape), str(value.dtype), content))
    return hash(value)


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, type)


def _parts(value: slice) -> tuple[Any, Any, Any]:
    return value.start, value.stop, value.step


def _same_arrays(a: Any, b: Any) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    content = _bytes(a)
    if content is not None:
        return content == _bytes(b)
    return bool(((a == b) | ((a != a) & (b != b))).all())


def _bytes(array: Any) -> bytes | None:
    """Return the bytes of an array that has a buffer: a traced or remote array has none."""
    if getattr(array.dtype, "hasobject", True):  # its bytes would be addresses
        return None
    try:
        return memoryview(array).tobytes()
    except (TypeError, ValueError, BufferError):
        return None
