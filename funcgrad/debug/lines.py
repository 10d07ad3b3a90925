"""Where the user's code is, noted for each operation, and put into words for few of them."""

from __future__ import annotations

import linecache
import sys
from types import CodeType
from typing import Any

from funcgrad.errors import is_library, is_ours, location

__all__ = ["Line", "here"]

# Of each source file: 0 for funcgrad and NumPy, 1 for other libraries, 2 for the user's.
_kinds: dict[str, int] = {}


def _kind(filename: str) -> int:
    found = _kinds.get(filename)
    if found is None:
        found = 0 if is_ours(filename) else 1 if is_library(filename) else 2
        _kinds[filename] = found
    return found


class Line:
    """A line of source code."""

    __slots__ = ("code", "number")

    def __init__(self, code: CodeType, number: int):
        self.code = code
        self.number = number

    def __str__(self) -> str:
        return location(self.code, self.number)

    @property
    def source(self) -> str:
        """The text of the line, "" where it cannot be had."""
        return linecache.getline(self.code.co_filename, self.number).strip()


def here() -> Line | None:
    """Return the innermost line of the user's; if all are in libraries, the innermost of those."""
    frame: Any = sys._getframe(1)
    library = None
    while frame is not None:
        kind = _kind(frame.f_code.co_filename)
        if kind == 2:
            return Line(frame.f_code, frame.f_lineno)
        if kind == 1 and library is None:
            library = Line(frame.f_code, frame.f_lineno)
        frame = frame.f_back
    return library
