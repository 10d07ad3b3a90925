"""Traced values that were stored away: which are alive when their transform ends, and where.

The one idea: a value is stored away if something of the user's can still reach it: a global, a
variable of a function that is running, one that a function closes over, a class. So the garbage
collector is asked what refers to it, what refers to that, and so on up to something with a name.
"""

from __future__ import annotations

import gc
import sys
import warnings
from types import CellType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from funcgrad.core.level import Trace, TracerBase
from funcgrad.debug.operations import Record
from funcgrad.errors import TracerLeakWarning, describe, is_ours

__all__ = ["report"]

# How many steps up, and of how many holders at each.
_STEPS = 8
_BREADTH = 1000
# How many values of one transform are searched for, and reported.
_SEARCHES = 100
_REPORTS = 5
# What is no place that the user stores anything in: it has many holders, or is a value that is
# stored away itself, which is reported.
_PASSED_OVER = (FrameType, ModuleType, CodeType, Trace, TracerBase)


def report(record: Record) -> None:
    """Warn of each value of a trace that has ended, and that the user can still reach."""
    names = _locals()
    alive = _alive(record)
    if len(alive) > 2 * _SEARCHES:
        alive = alive[:_SEARCHES] + alive[-_SEARCHES:]
    found = _holder(alive, names)
    del alive
    if found is None:
        return
    gc.collect()  # what only refers to itself is not stored
    messages: list[str] = []
    for ref, made in list(record.known.values())[:_SEARCHES]:
        tracer = ref()
        if tracer is None or tracer._trace is not record.trace:
            continue
        holder = _holder([tracer], names)
        if holder is not None:
            messages.append(
                f"a value traced by {record.origin} outlives it: {describe(tracer)}, stored in "
                f"{holder}\n"
                f"  where: {_maker(record, tracer, made)}\n"
                "  fix:   return it from the function (with has_aux=True beside the result), or "
                "store funcgrad.stop_gradient(x) or funcgrad.debug.value(x)"
            )
            if len(messages) > _REPORTS:
                messages[-1] = f"and more values traced by {record.origin}"
                break
    for message in messages:
        _warn(message)


def _alive(record: Record) -> list[Any]:
    """Return the tracers that are there, but for handles that have moved to another trace."""
    alive = [ref() for ref, _ in list(record.known.values())]
    return [tracer for tracer in alive if tracer is not None and tracer._trace is record.trace]


def _maker(record: Record, tracer: Any, made: Any) -> str:
    if made is None:
        return f"it is {record.name(tracer) or 'part of an argument'}"
    text = f"made by {made.name} at {made.line}"
    if made.line is not None and made.line.source:
        text += f"\n           {made.line.source}"
    return text


def _warn(message: str) -> None:
    depth = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
        depth += 1
    warnings.warn(message, TracerLeakWarning, stacklevel=depth)


def _locals() -> dict[int, str]:
    """Name what the variables of the user's functions that are running refer to, by id."""
    names: dict[int, str] = {}
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_ours(frame.f_code.co_filename) and frame.f_locals is not frame.f_globals:
            for name, value in frame.f_locals.items():
                names.setdefault(id(value), f"variable `{name}` of {frame.f_code.co_name}")
        frame = frame.f_back
    return names


def _holder(front: list[Any], names: dict[int, str]) -> str | None:
    """Say what of the user's holds one of some values: ``list in global `history` of train``."""
    # By id: what was come from, and the words for the way up to there.
    came: dict[int, Any] = {}
    words = dict.fromkeys(map(id, front), "")
    own = {id(front), id(came)}  # lists and such of this function, which refer to it as well
    for _ in range(_STEPS):
        for child in front:
            if id(child) in names:
                return _join(_with(child, None, came, words), names[id(child)])
        if not front:
            return None
        below = set(map(id, front))
        above = gc.get_referrers(*front)
        fresh: list[Any] = []
        own |= {id(above), id(fresh)}
        for holder in above[:_BREADTH]:
            if id(holder) in own or id(holder) in words or isinstance(holder, _PASSED_OVER):
                continue
            child = next((one for one in gc.get_referents(holder) if id(one) in below), None)
            if child is None:
                continue  # no longer
            so_far = _with(child, holder, came, words)
            root = _root(holder, child, came.get(id(child)))
            if root is not None:
                return _join(so_far, root)
            words[id(holder)] = so_far
            came[id(holder)] = child
            fresh.append(holder)
        front = fresh
    return None


def _with(node: Any, holder: Any, came: dict[int, Any], words: dict[int, str]) -> str:
    """Return the words for the way up to `node` and `node` itself, which `holder` refers to."""
    child = came.get(id(node))
    if child is None:
        return words[id(node)]
    return _join(words[id(node)], _word(node, child, came.get(id(child)), holder))


def _join(inner: str, outer: str) -> str:
    return f"{inner} in {outer}" if inner and outer else inner or outer


def _name_in(variables: Any, *values: Any) -> str | None:
    """Return under which name one of `values` is in a dict of variables."""
    for name, value in variables.items():
        if any(value is one for one in values if one is not None):
            return str(name)
    return None


def _root(holder: Any, child: Any, before: Any) -> str | None:
    """Name what refers to `child`, if that is something of the user's with a name."""
    if isinstance(holder, dict) and "__name__" in holder and "__builtins__" in holder:
        return f"global `{_name_in(holder, child)}` of {holder['__name__']}"
    if isinstance(holder, type):
        return f"attribute `{_name_in(vars(holder), child, before)}` of class {holder.__name__}"
    return None


def _word(holder: Any, child: Any, before: Any, above: Any) -> str:
    """Return words for an object on the way, "" for one that goes without saying."""
    if isinstance(holder, dict):  # perhaps the one of an object, or class, with its attributes
        attributes = isinstance(above, type) or getattr(above, "__dict__", None) is holder
        return "" if attributes else "dict"
    if isinstance(holder, CellType):
        return ""
    if isinstance(holder, tuple):
        return "" if isinstance(child, CellType) else "tuple"
    if isinstance(holder, FunctionType):
        closure = holder.__closure__
        if closure is not None and isinstance(before, CellType) and closure is child:
            name = holder.__code__.co_freevars[closure.index(before)]
            return f"variable `{name}` that {holder.__name__} closes over"
        return f"function {holder.__name__}"
    variables = getattr(holder, "__dict__", None)
    if variables is None:
        slots = [n for cls in type(holder).__mro__ for n in getattr(cls, "__slots__", ())]
        variables = {name: getattr(holder, name, None) for name in slots}
    attribute, kind = _name_in(variables, child, before), type(holder).__name__
    return kind if attribute is None else f"attribute `{attribute}` of {kind}"
