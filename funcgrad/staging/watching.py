"""What a compiled function closes over, to notice that it has changed.

A program has the values of closures and globals that the function saw when it was recorded. If a
name means another array, or another number, by the next call, the function would see that; so the
program is out of date. What a name means is compared by identity: an array that is written to is
not noticed.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

from funcgrad.errors import is_library, is_ours

__all__ = ["Watched"]

# How deep functions that call functions are looked through.
_DEPTH = 4
_IGNORED = (type, types.ModuleType, types.BuiltinFunctionType, types.FunctionType)
_NUMBERS = frozenset({int, float, complex, bool, str})


class Watched:
    """The names that a function looks up outside of it, with what they mean now."""

    __slots__ = ("_cells", "_globals")

    def __init__(self, fun: Callable[..., Any]):
        self._cells: list[tuple[str, types.CellType, Any]] = []
        self._globals: list[tuple[str, dict[str, Any], Any]] = []
        for function in _functions(fun, set(), 0):
            self._watch(function)

    def _watch(self, function: types.FunctionType) -> None:
        code = function.__code__
        written = _written(code)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            value = _content(cell)
            if name not in written and _is_watched(value):
                self._cells.append((name, cell, value))
        for name in code.co_names:
            if name in function.__globals__ and name not in written:
                value = function.__globals__[name]
                if _is_watched(value):
                    self._globals.append((name, function.__globals__, value))

    def changed(self) -> str | None:
        """Return the name of something that means another thing now; None if there is nothing."""
        for name, cell, value in self._cells:
            now = _content(cell)
            if now is not value and not _is_same(now, value):
                return name
        for name, names, value in self._globals:
            now = names.get(name)
            if now is not value and not _is_same(now, value):
                return name
        return None


def _is_same(now: Any, value: Any) -> bool:
    """Tell whether two numbers, or strings, are the same though not the same object."""
    return type(now) is type(value) and type(now) in _NUMBERS and repr(now) == repr(value)


def _is_watched(value: Any) -> bool:
    return not isinstance(value, _IGNORED) and not callable(value)


_EMPTY = object()


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that is assigned to later
        return _EMPTY


@functools.lru_cache(maxsize=512)
def _written(code: types.CodeType) -> frozenset[str]:
    """Return the names outside of a function that it assigns to by itself."""
    return frozenset(
        str(instruction.argval)
        for instruction in dis.get_instructions(code)
        if instruction.opname in ("STORE_DEREF", "STORE_GLOBAL")
    )


def _functions(fun: Any, seen: set[int], depth: int) -> Iterator[types.FunctionType]:
    """Yield the user's functions that `fun` is made of or may call."""
    if depth > _DEPTH or id(fun) in seen:
        return
    seen.add(id(fun))
    if isinstance(fun, functools.partial | types.MethodType):
        inner: Any = fun.func if isinstance(fun, functools.partial) else fun.__func__
        yield from _functions(inner, seen, depth)
        return
    if not isinstance(fun, types.FunctionType):
        inner = getattr(fun, "fun", None)  # of a transform
        if callable(inner):
            yield from _functions(inner, seen, depth)
        return
    filename = fun.__code__.co_filename
    if is_ours(filename) or is_library(filename):
        return
    yield fun
    for cell in fun.__closure__ or ():
        content = _content(cell)
        if callable(content):
            yield from _functions(content, seen, depth + 1)
    for name in fun.__code__.co_names:
        value = fun.__globals__.get(name)
        if isinstance(value, types.FunctionType):
            yield from _functions(value, seen, depth + 1)
