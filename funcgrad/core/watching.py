"""What the debug modes of `funcgrad.debug` have the core look at, and nothing when they are off.

The one idea: nothing that runs often asks whether a mode is on. A watcher changes the class of a
trace when that is opened (`Trace.at_opening`); the backward pass and the rules ask only where
something is not finite.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

__all__ = ["DOING", "STRICT", "WATCHER", "repeating", "switch", "watcher"]

# Whether zero does not win: see `funcgrad.core.zero`.
STRICT: ContextVar[bool] = ContextVar("funcgrad_strict", default=False)
# What looks at operations in this context; None where `switch` decides.
WATCHER: ContextVar[Any] = ContextVar("funcgrad_watcher", default=None)

_of_process: list[Any] = [None]


def watcher() -> Any:
    """Return what looks at operations here, or None."""
    found = WATCHER.get()
    if found is None:
        found = _of_process[0]
    return found or None  # it may say that it watches for nothing


def switch(new: Any) -> Any:
    """Set what looks at operations wherever a context says nothing; return what did before."""
    old, _of_process[0] = _of_process[0], new
    return old


class _Doing(threading.local):
    """The operation, if any, of which the steps are being done in this thread."""

    def __init__(self) -> None:
        self.now: Any = None


DOING = _Doing()


@contextlib.contextmanager
def repeating(made: Any) -> Iterator[None]:
    """Let what is done in the block count as steps of an operation; None changes nothing."""
    before = DOING.now
    if made is not None:
        DOING.now = made
    try:
        yield
    finally:
        DOING.now = before
