"""Memory to work in, kept for the next call.

Fresh memory costs a page fault for every four kilobytes, which takes longer than the arithmetic
of a convolution does on them. So each thread keeps the memory that its last convolution worked
in, up to a limit, and hands it out again. What is in it means nothing to whoever gets it; results
never live in it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

__all__ = ["Scratch", "scratch"]

# Bytes that a thread keeps at most.
_LIMIT = 1 << 25
_ALIGNMENT = 64

_kept = threading.local()


class Scratch:
    """Memory that is handed out piece by piece, and taken back as a whole."""

    def __init__(self, memory: Any):
        self._memory = memory
        self._used = self._most = 0

    @property
    def needed(self) -> int:
        """How many bytes were asked for."""
        return self._most

    def empty(self, shape: Any, dtype: Any) -> Any:
        """Return an array, as `numpy.empty` does; it is valid until the ``with`` block ends."""
        dtype = np.dtype(dtype)
        size = math.prod(shape) * dtype.itemsize
        start = self._used
        self._used += -(-size // _ALIGNMENT) * _ALIGNMENT
        self._most = max(self._most, self._used)
        if self._used > self._memory.size:
            return np.empty(shape, dtype)
        return self._memory[start : start + size].view(dtype).reshape(shape)

    def zeros(self, shape: Any, dtype: Any) -> Any:
        """Return an array of zeros."""
        made = self.empty(shape, dtype)
        made[...] = 0
        return made

    @contextmanager
    def again(self) -> Iterator[None]:
        """Take back what is handed out within a ``with`` block, at its end."""
        used = self._used
        try:
            yield
        finally:
            self._used = used


@contextmanager
def scratch() -> Iterator[Scratch]:
    """Lend this thread's memory, which has what the call before needed, for a ``with`` block."""
    memory = getattr(_kept, "memory", None)
    _kept.memory = None  # a call within this one gets its own
    if memory is None:
        memory = np.empty(0, np.uint8)
    lent = Scratch(memory)
    try:
        yield lent
    finally:
        size = min(lent.needed, _LIMIT)
        if size > memory.size:
            raw = np.empty(size + _ALIGNMENT, np.uint8)
            offset = -raw.ctypes.data % _ALIGNMENT
            memory = raw[offset : offset + size]
        _kept.memory = memory
