"""What a branch refers to without its being an operand: ``lambda: np.sqrt(x)``.

The one idea: a function keeps what it refers to in cells, and a copy of it with other cells is the
same function of other values. So a branch that is run on some rows is given those rows of all that
it names, and computes nothing of the rest. Functions that it calls by name are copied likewise. One
that assigns to a name outside of itself (``nonlocal``) is left alone: nobody would see it. So is
what lies in containers and attributes; of that a `RowsTrace` takes its rows when it meets them.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any

from funcgrad.core.level import TracerBase

__all__ = ["rebound"]


def rebound(fun: Any, change: Callable[[Any], Any]) -> Any:
    """Return a function with `change` applied to the traced values that it refers to."""
    if type(fun) is functools.partial:
        args = [_changed(value, change) for value in fun.args]
        kwargs = {name: _changed(value, change) for name, value in fun.keywords.items()}
        return functools.partial(rebound(fun.func, change), *args, **kwargs)
    if type(fun) is not FunctionType:
        return fun
    found: dict[int, FunctionType] = {}
    if not _collect(fun, found):
        return fun
    copies = {key: _copy(inner, found, change) for key, inner in found.items()}
    for key, inner in found.items():
        for cell, copied in zip(
            inner.__closure__ or (), copies[key].__closure__ or (), strict=True
        ):
            if cell is not copied:
                content = cell.cell_contents
                known = copies.get(id(content))
                copied.cell_contents = change(content) if known is None else known
    return copies[id(fun)]


def _changed(value: Any, change: Callable[[Any], Any]) -> Any:
    return change(value) if isinstance(value, TracerBase) else value


def _collect(fun: FunctionType, found: dict[int, FunctionType]) -> bool:
    """Note a function and those that it refers to; tell whether one of them refers to a tracer."""
    if id(fun) in found or _assigns(fun.__code__):
        return False
    defaults = [*(fun.__defaults__ or ()), *(fun.__kwdefaults__ or {}).values()]
    traced = any(isinstance(value, TracerBase) for value in defaults)
    if fun.__closure__ is None and not traced:
        return False
    found[id(fun)] = fun
    for cell in fun.__closure__ or ():
        content = _content(cell)
        if isinstance(content, TracerBase):
            traced = True
        elif type(content) is FunctionType:
            traced = _collect(content, found) or traced
    return traced


def _copy(
    fun: FunctionType, found: dict[int, FunctionType], change: Callable[[Any], Any]
) -> FunctionType:
    """Copy a function, with empty cells in the place of those that will hold something else."""
    cells = tuple(
        CellType()
        if isinstance(content := _content(cell), TracerBase) or id(content) in found
        else cell
        for cell in fun.__closure__ or ()
    )
    defaults = fun.__defaults__ and tuple(_changed(value, change) for value in fun.__defaults__)
    made = FunctionType(fun.__code__, fun.__globals__, fun.__name__, defaults, cells)
    if fun.__kwdefaults__:
        made.__kwdefaults__ = {
            name: _changed(value, change) for name, value in fun.__kwdefaults__.items()
        }
    made.__dict__.update(fun.__dict__)
    made.__qualname__ = fun.__qualname__
    return made


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned to yet
        return None


@functools.lru_cache(maxsize=1024)
def _assigns(code: CodeType, outside: frozenset[str] | None = None) -> bool:
    """Tell whether a function, or one defined in it, assigns to a name outside of the first."""
    names = frozenset(code.co_freevars) if outside is None else outside
    names &= frozenset(code.co_freevars)
    if not names:
        return False
    for step in dis.get_instructions(code):
        if step.opname in ("STORE_DEREF", "DELETE_DEREF") and step.argval in names:
            return True
    return any(_assigns(inner, names) for inner in code.co_consts if isinstance(inner, CodeType))
