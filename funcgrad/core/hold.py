"""Plain arrays that the backward pass will read again: they must not change until then.

A residual that is not traced, ``buffer`` in ``x * buffer``, belongs to the user, who may write to
it before the backward pass comes by; the gradient would be wrong without a word. Small arrays
are copied, which costs less than the operation that they are used in. Large ones are made read-only
while the function runs, so that writing to one is an error; memory does not grow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.errors import MutationError, location

__all__ = ["Holder"]

_ndarray = np.ndarray
# Copying this many bytes takes about a microsecond, as does tracing an operation.
_SMALL = 16384


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
        for part in chain:
            if part.flags.writeable:
                part.flags.writeable = False
                self.locked.append(part)
        return True

    def release(self, error: BaseException | None, origin: object) -> None:
        """Make what was locked writeable again; explain `error` if it came from the lock."""
        if not self.locked:
            return
        while self.locked:  # owners before their views, which may not be writeable without them
            self.locked.pop().flags.writeable = True
        if type(error) is ValueError and "read-only" in str(error):
            raise MutationError(
                "a plain array was assigned to in place after a traced operation had used it; "
                "the backward pass needs its old values",
                where=f"{_last_line(error)}, in {origin}",
                fix="assign to a copy: buffer = buffer.copy(), or make the array with "
                "funcgrad.numpy.zeros",
            ) from error


def _last_line(error: BaseException) -> str:
    """Return the line that raised `error`."""
    trace = error.__traceback__
    if trace is None:
        return "an unknown line"
    while trace.tb_next is not None:
        trace = trace.tb_next
    return location(trace.tb_frame.f_code, trace.tb_lineno)
