"""What an exported module does around its program: it checks arguments, and lends memory.

These functions are copied into such modules, so they need NumPy alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.staging.recycling import recycled

__all__ = [
    "Memory",
    "checked_array",
    "checked_count",
    "checked_fixed",
    "checked_keys",
    "checked_number",
]

# Sets of arrays that are kept for the next call.
_KEPT = 4


class Memory:
    """The arrays that a program works in; each call has a set of its own, as threads may meet."""

    def __init__(self, make: Callable[[], Any], results: list[Any]):
        self._make = make
        self._kept: list[Any] = []
        self._results = results
        self._returned: list[list[Any]] = [[] for _ in results]

    def run(self, program: Callable[..., Any], *values: Any) -> Any:
        """Run a program."""
        try:
            work = self._kept.pop()
        except IndexError:
            work = self._make()
        results = [
            recycled(kept, *result)
            for kept, result in zip(self._returned, self._results, strict=True)
        ]
        try:
            with np.errstate(all="ignore"):
                return program((*work, *results), *values)
        finally:
            if len(self._kept) < _KEPT:
                self._kept.append(work)


def checked_array(value: Any, path: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return an array if it is like the one that the program was made for."""
    if type(value) is np.ndarray and value.shape == shape and value.dtype == dtype:
        return value
    wanted = f"{dtype}[{','.join(map(str, shape))}]"
    if not isinstance(value, np.ndarray | np.generic):
        raise TypeError(f"{path} must be an array, {wanted}, got {type(value).__name__}")
    if value.shape != shape or value.dtype != dtype:
        kind = ValueError if value.shape != shape else TypeError
        got = f"{value.dtype}[{','.join(map(str, value.shape))}]"
        raise kind(f"{path} must be {wanted}, got {got}")
    return value


def checked_number(value: Any, path: str, kind: type) -> Any:
    """Return a number of Python, of the type that the program was made for."""
    allowed: dict[type, Any] = {
        bool: bool | np.bool,
        int: int | np.integer,
        float: int | float | np.integer | np.floating,
        complex: int | float | complex | np.number,
    }
    if not isinstance(value, allowed[kind]) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{path} must be a number, {kind.__name__}, got {type(value).__name__}")
    return kind(value)


def checked_keys(value: Any, path: str, keys: list[Any]) -> None:
    """Raise unless a dict has these keys and no others."""
    if not hasattr(value, "keys"):
        raise TypeError(f"{path} must be a dict, got {type(value).__name__}")
    missing = [key for key in keys if key not in value]
    more = [key for key in value if key not in keys]
    if missing or more:
        parts = [f"misses {missing}"] * bool(missing) + [f"has {more} besides"] * bool(more)
        raise ValueError(f"{path} {' and '.join(parts)}")


def checked_count(value: Any, path: str, count: int) -> None:
    """Raise unless a list or tuple has so many elements."""
    if not isinstance(value, list | tuple):
        raise TypeError(f"{path} must be a list or a tuple, got {type(value).__name__}")
    if len(value) != count:
        raise ValueError(f"{path} must have {count} elements, got {len(value)}")


def checked_fixed(value: Any, path: str, fixed: Any) -> None:
    """Raise unless a value is the one that the program was made for."""
    same = np.array_equal(value, fixed) if isinstance(fixed, np.ndarray) else value == fixed
    if type(value) is not type(fixed) or not same:
        raise ValueError(f"{path} must be {fixed!r}, for which this was made, got {value!r}")
