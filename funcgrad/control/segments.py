"""``checkpoint_every`` of the loops: forget what some steps record, and do them again backward.

A loop in reverse mode keeps what each step needs. With `Segments` it keeps the carry of every n-th
step only, and what the steps in between need is computed again when the backward pass comes to
them: what `checkpoint` does for a function, for n steps of a loop.
"""

from __future__ import annotations

import operator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from funcgrad.core.level import Origin
from funcgrad.errors import ArgumentError, describe
from funcgrad.transforms.forgetting import forgetting, recorders

__all__ = ["Segments"]


class Segments:
    """The segments of a loop, as a context around it; `step` is called before each step.

    Parameters
    ----------
    every : int or None
        How many steps there are in a segment; None for no segments.
    origin : Origin
        The call of the loop, for messages.
    """

    __slots__ = ("_block", "_left", "every")

    def __init__(self, every: Any, origin: Origin):
        self.every = _checked(every, origin)
        self._left = 0
        self._block: AbstractContextManager[None] | None = None

    def __enter__(self) -> Self:
        return self

    def step(self, values: Any) -> None:
        """Begin another segment, if it is time to; `values` are what the step is given."""
        if self.every is None:
            return
        if not self._left:
            self._end()
            traces = recorders(values)
            if not traces:  # nothing is recorded now; perhaps a later step brings something
                return
            self._block = forgetting(traces, None)
            self._block.__enter__()
            self._left = self.every
        self._left -= 1

    def _end(self) -> None:
        block, self._block = self._block, None
        if block is not None:
            block.__exit__(None, None, None)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        block, self._block = self._block, None
        if block is not None:
            block.__exit__(kind, error, traceback)


def _checked(every: Any, origin: Origin) -> int | None:
    if every is None:
        return None
    try:
        number = operator.index(every)
    except TypeError:
        number = 0
    if number < 1 or isinstance(every, bool):
        raise ArgumentError(
            f"checkpoint_every of {origin.transform} must be a positive number of steps, "
            f"got {describe(every)}",
            where=str(origin),
            fix="write checkpoint_every=32, or about the square root of the number of steps",
        )
    return number
