"""What is added to a message of NumPy's, such as that of shapes which do not fit: the operands.

The message stays NumPy's own, and says nothing of names. Where an operation on traced values raised
it, the traceback still has them: the operands are in the frame of the operation, and what the user
calls them is in the frame before.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

from funcgrad import tree
from funcgrad.errors import describe, is_library, is_ours, location

__all__ = ["note_operands"]


def note_operands(error: BaseException, traceback: TracebackType | None, origin: object) -> None:
    """Add a note to an error that was raised by an operation on traced values, but only once."""
    if getattr(error, "__notes__", None):
        return
    found = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not is_ours(code.co_filename):
            found = None if is_library(code.co_filename) else traceback
        traceback = traceback.tb_next
    if found is None or found.tb_next is None:
        return  # raised by the user, or by another library
    frame = found.tb_frame
    operands = _operands(found.tb_next.tb_frame)
    if operands:
        shown = ", ".join(_shown(operand, frame) for operand in operands)
        place = location(frame.f_code, found.tb_lineno)
        error.add_note(f"  where: {place}, in {origin}; the operands: {shown}")


def _operands(frame: FrameType) -> list[Any]:
    """Return the arrays that the method of a tracer was called with, in their order."""
    given = frame.f_locals
    tracer = given.get("self")
    if not hasattr(tracer, "_trace"):
        return []
    if "inputs" in given:  # of a ufunc
        candidates = given["inputs"]
    elif "other" in given:  # of an operator
        reflected = frame.f_code.co_name.find("reflected") >= 0
        candidates = (given["other"], tracer) if reflected else (tracer, given["other"])
    elif frame.f_code.co_name == "__array_function__":
        candidates = tree.leaves(given.get("args", ()))
    else:  # of another method
        candidates = (tracer, *given.get("args", ()))
    return [x for x in candidates if isinstance(getattr(x, "shape", None), tuple)]


def _shown(operand: Any, frame: FrameType) -> str:
    """Write an operand with its name in the user's function, if it has one."""
    for variables in (frame.f_locals, frame.f_globals):
        for name, value in list(variables.items()):
            if value is operand:
                return f"{name}: {describe(operand)}"
    for path in _paths(operand, frame):
        return f"{path}: {describe(operand)}"
    return describe(operand)


def _paths(operand: Any, frame: FrameType) -> Iterator[str]:
    """Yield where an array is in the pytrees that the user's function refers to."""
    for name, value in list(frame.f_locals.items()):
        try:
            pairs = tree.flatten_with_path(value)[0]
        except Exception:  # no pytree: a dict with keys that cannot be sorted
            continue
        for path, leaf in pairs:
            if leaf is operand:
                yield name + tree.keystr(path)
