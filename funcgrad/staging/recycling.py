"""Memory of large results, used again when nobody holds them any more.

What a caller has is the caller's. But when it lets go of a result, such as the parameters of the
step before last, the memory is as good as fresh memory, and is there already. Whether somebody
holds an array, or a view of it, is seen from the count of references to it. This needs NumPy alone,
and goes with exported modules.
"""

from __future__ import annotations

import sys
from sys import getrefcount
from typing import Any

import numpy as np

__all__ = ["recycled"]


def _take(kept: list[Any]) -> Any:
    """Return an array of these that nobody else holds; None if there is none."""
    for _ in range(len(kept)):
        try:
            found = kept.pop(0)
        except IndexError:  # another thread has taken it
            return None
        if getrefcount(found) == _ALONE and found.flags.writeable:
            return found
        kept.append(found)
    return None


def _count(kept: list[Any]) -> int:
    """Return the count of references to an array that `_take` sees if nobody else holds it."""
    found = kept.pop(0)
    return getrefcount(found)


_ALONE = _count([np.empty(1)])
# Without the lock of the interpreter a count says nothing.
_COUNTS = getattr(sys, "_is_gil_enabled", lambda: True)()
# Arrays of each result that are kept track of: what the caller has, and what it had before.
_TRACKED = 2


def recycled(kept: list[Any], shape: tuple[int, ...], dtype: Any, order: Any) -> Any:
    """Return an array for a result, and keep track of it in the list."""
    found: Any = _take(kept)
    if found is None or found.shape != shape or found.dtype != dtype:
        found = np.empty(shape, dtype, order)
    if _COUNTS and len(kept) < _TRACKED:
        kept.append(found)
    return found
