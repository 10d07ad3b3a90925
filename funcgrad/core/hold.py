"""Plain arrays that the backward pass will read again: they must not change until then.

A residual that is not traced, ``buffer`` in ``x * buffer``, belongs to the user, who may write to
it before the backward pass comes by; the gradient would be wrong without a word. Small arrays
are copied, which costs less than the operation that they are used in. Large ones are made read-only
while the function runs, so that writing to one is an error; memory does not grow.
"""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np

from funcgrad.errors import MutationError, location

__all__ = ["Holder"]

_ndarray = np.ndarray
# Copying this many bytes takes about a microsecond, as does tracing an operation.
_SMALL = 16384
# Who holds each locked array, by its id. A nested trace may use what the outer one keeps, and
# another thread too: the last to let go of it makes it writeable again.
_holders: dict[int, list[Holder]] = {}
_guard = threading.Lock()
# How NumPy says that it may not write.
_READ_ONLY = re.compile("read-only|not writeable|writable")


class Holder:
    """Keeps the constants of one trace from changing.

    Parameters
    ----------
    outlives : bool
        The residuals are used after the function has returned, when nothing can be read-only any
        more: keep one copy of each large array.
    """

    __slots__ = ("copies", "locked", "outlives")

    def __init__(self, *, outlives: bool):
        self.outlives = outlives
        self.locked: list[Any] = []
        self.copies: dict[int, Any] = {}

    def hold(self, array: Any) -> Any:
        """Return `array`, or a copy, that keeps its present values."""
        if array.nbytes <= _SMALL:
            return array.copy(order="K")
        known = self.copies.get(id(array))
        if known is not None:
            return known
        if not self._lock(array):
            return array.copy(order="K")
        if self.outlives:
            # Valid for the whole run, as `array` is read-only from now on, and alive in `locked`.
            self.copies[id(array)] = copy = array.copy(order="K")
            return copy
        return array

    def _lock(self, array: Any) -> bool:
        """Make `array` and what it is a view of read-only; False where that could not be undone."""
        chain = [array]
        while type(chain[-1].base) is _ndarray:
            chain.append(chain[-1].base)
        if not chain[-1].flags.owndata:  # memory that NumPy does not own: no way back
            return not any(part.flags.writeable for part in chain)
        with _guard:
            for part in chain:
                holders = _holders.get(id(part))
                if holders is None:
                    if not part.flags.writeable:
                        continue  # by the user's own wish
                    part.flags.writeable = False
                    holders = _holders[id(part)] = []
                if self not in holders:
                    holders.append(self)
                    self.locked.append(part)
        return True

    def release(self, error: BaseException | None, origin: object) -> None:
        """Make what was locked writeable again; explain `error` if it came from the lock."""
        if not self.locked:
            return
        with _guard:
            # A view may be writeable only if what it is a view of is, which is locked after it.
            for part in sorted(self.locked, key=_depth):
                self._unlock(part)
            self.locked.clear()
        if type(error) is ValueError and _READ_ONLY.search(str(error)):
            raise MutationError(
                "a plain array was assigned to in place after a traced operation had used it; "
                "the backward pass needs its old values",
                where=f"{_last_line(error)}, in {origin}",
                fix="assign to a copy: buffer = buffer.copy(), or make the array with "
                "funcgrad.numpy.zeros",
            ) from error

    def _unlock(self, part: Any) -> None:
        holders = _holders[id(part)]
        holders.remove(self)
        if holders:
            return
        owners = _holders.get(id(part.base))
        if owners is None:
            del _holders[id(part)]
            part.flags.writeable = True
        else:  # a view of what another trace still holds, which will see to both
            holders.append(owners[0])
            owners[0].locked.append(part)


def _depth(array: Any) -> int:
    """Return how many arrays lie between `array` and the owner of its memory."""
    depth = 0
    while type(array.base) is _ndarray:
        array = array.base
        depth += 1
    return depth


def _last_line(error: BaseException) -> str:
    """Return the line that raised `error`."""
    trace = error.__traceback__
    if trace is None:
        return "an unknown line"
    while trace.tb_next is not None:
        trace = trace.tb_next
    return location(trace.tb_frame.f_code, trace.tb_lineno)
