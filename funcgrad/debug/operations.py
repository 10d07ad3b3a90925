"""Every operation of the traces that are open, noted while a debug mode is on.

The one idea: a trace that is observed has been given another class, which does what its own does
and takes a note: what was done, in which of the user's lines, on what. Steps of an operation (the
rules that it is made of, at the levels below) count as that operation, not as some of their own.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core import assign
from funcgrad.core.boxed import Boxed
from funcgrad.core.elementwise import Elementwise
from funcgrad.core.level import Trace, TracerBase, batches_of, concrete, traces_in_progress
from funcgrad.core.tracer import Tracer
from funcgrad.core.watching import DOING, repeating, watcher
from funcgrad.debug.lines import Line, here
from funcgrad.transforms.forward import LinearTrace
from funcgrad.transforms.tape import ReverseTrace

__all__ = ["Made", "Operand", "observe", "observe_open", "record_of", "release"]


class Operand:
    """An argument of an operation.

    Attributes
    ----------
    plain : array_like
        Its value, without any tracer.
    batches : tuple of Trace
        In which vmaps it has examples, in the order of its axes.
    name : str
        Which argument of the user's function it is, or "".
    maker : tuple of (str, Line) or None
        Which operation made it.
    variable : int
        Its number on the tape of the trace that carries the operation out, or -1.
    """

    __slots__ = ("batches", "maker", "name", "plain", "variable")

    def __init__(self, arg: Any, trace: Trace):
        self.plain = concrete(arg)
        self.batches = batches_of(arg)
        self.name = ""
        self.maker: tuple[str, Line | None] | None = None
        self.variable = -1
        if isinstance(arg, TracerBase):
            if arg._trace is trace and isinstance(trace, ReverseTrace):
                self.variable = arg._extra
            record = _records.get(arg._trace.level)
            if record is not None:
                known = record.known.get(id(arg))
                if known is not None and known[1] is not None:
                    self.maker = known[1].name, known[1].line
                elif arg._alias is assign.ARGUMENT:
                    self.name = record.name(arg)
        elif isinstance(arg, np.ndarray):
            record = _records.get(trace.level)
            self.name = "" if record is None else record.name(arg)


class Made:
    """What is remembered of an operation."""

    __slots__ = ("elementwise", "line", "name", "operands", "origin")

    def __init__(self, name: str, args: Sequence[Any], trace: Trace, elementwise: bool):
        self.name = name
        self.line = here()
        self.origin = _records[trace.level].origin
        self.elementwise = elementwise
        self.operands = [Operand(arg, trace) for arg in args]


class Record:
    """What is remembered of one trace.

    Attributes
    ----------
    known : dict
        By id, a weak reference to each tracer that is alive, and what made it: None for arguments.
    error : BaseException or None
        What was being handled when the trace was opened.
    """

    __slots__ = ("_names", "error", "known", "origin", "trace")

    def __init__(self, trace: Trace):
        self.trace = trace
        self.origin = str(trace.origin)  # without the function, and what that closes over
        self.error = sys.exc_info()[1]
        self.known: dict[int, tuple[Any, Made | None]] = {}
        self._names: dict[int, tuple[Any, str]] | None = None

    def enter(self, out: Any, made: Made | None) -> None:
        """Note what made a tracer, or the tracers of several results."""
        for part in out if type(out) is tuple else (out,):
            if type(part) is Tracer and part._trace is self.trace:
                forget = functools.partial(_forget, self.known, id(part))
                self.known[id(part)] = weakref.ref(part, forget), made
                if made is not None and isinstance(self.trace, ReverseTrace):
                    noted = self.trace.tape.made
                    if noted is not None:
                        noted[part._extra] = made

    def name(self, value: Any) -> str:
        """Return which argument a value is, such as ``argument params at ['w'] of loss``."""
        if self._names is None:
            self._names = {
                id(leaf): (weakref.ref(leaf), name) for leaf, name in _arguments(self.trace)
            }
        ref, name = self._names.get(id(value), (None, ""))
        return name if ref is not None and ref() is value else ""


def _forget(known: dict[int, Any], key: int, _: Any) -> None:
    known.pop(key, None)


def _arguments(trace: Trace) -> Iterator[tuple[Any, str]]:
    """Yield the arrays among the arguments of the function that `trace` runs, with names."""
    code = _code_of(trace.origin.fun)
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    if frame is None:
        return
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    variables = frame.f_locals
    for name in code.co_varnames[:count]:
        if name not in variables:
            continue
        for path, leaf in tree.flatten_with_path(variables[name])[0]:
            content = leaf._unbox() if isinstance(leaf, Boxed) else leaf
            if isinstance(content, TracerBase | np.ndarray):
                inner = tree.keystr(path)
                at = f" at {inner}" if inner else ""
                yield content, f"argument {name}{at} of {trace.origin.name}"


def _code_of(fun: Any) -> Any:
    """Return the code of what the user calls a function, below decorators and transforms."""
    while True:
        inner = getattr(fun, "func", None) or getattr(fun, "__wrapped__", None)
        if inner is None:
            break
        fun = inner
    return getattr(fun, "__code__", None) or getattr(type(fun).__call__, "__code__", None)


# The records of the traces that are observed, by level.
_records: dict[int, Record] = {}


def record_of(trace: Trace) -> Record | None:
    """Return what is remembered of a trace."""
    return _records.get(trace.level)


def observe(trace: Trace) -> None:
    """Observe a trace, if anybody watches here."""
    if watcher() is None or trace.level in _records or trace.level == 0 or trace.records:
        return
    _records[trace.level] = Record(trace)
    trace.__class__ = _observing(type(trace))
    if isinstance(trace, ReverseTrace):
        trace.tape.made = {}
        trace.tape.careful = True


def observe_open() -> list[Trace]:
    """Observe the traces that are open in this thread; return those that were not before."""
    before = set(_records)
    for trace in traces_in_progress():
        observe(trace)
    return [trace for trace in traces_in_progress() if trace.level not in before]


def release(traces: Sequence[Any]) -> None:
    """Observe these traces no longer."""
    for trace in traces:
        _records.pop(trace.level, None)
        if "unobserved" in vars(type(trace)):
            trace.__class__ = type(trace).unobserved


_observed: dict[Any, Any] = {}


def _observing(cls: Any) -> Any:
    """Return the class that a trace of class `cls` changes to while it is observed."""
    made = _observed.get(cls)
    if made is None:
        made = type(
            f"Observed{cls.__name__}", (_Observed, cls), {"__slots__": (), "unobserved": cls}
        )
        _observed[cls] = made
    return made


class _Observed:
    """Does what the trace does, and takes notes."""

    __slots__ = ()

    def variable(self: Any, value: Any, *rest: Any) -> Any:
        """Make an independent variable."""
        out = super().variable(value, *rest)  # type: ignore[misc]
        record = _records.get(self.level)
        if record is not None:
            record.enter(out, None)
        return out

    def unary(self: Any, primitive: Elementwise, fun: Callable[[Any], Any], x: Any) -> Any:
        """Carry out an elementwise function of one argument."""
        return _carried_out(self, super().unary, primitive, (primitive, fun, x), (x,))  # type: ignore[misc]

    def binary(
        self: Any, primitive: Elementwise, fun: Callable[[Any, Any], Any], x: Any, y: Any
    ) -> Any:
        """Carry out an elementwise function of two arguments."""
        return _carried_out(self, super().binary, primitive, (primitive, fun, x, y), (x, y))  # type: ignore[misc]

    def part(self: Any, primitive: Any, x: Any, index: Any, scatter: Callable[..., Any]) -> Any:
        """Carry out ``x[index]`` with a basic index."""
        return _carried_out(self, super().part, primitive, (primitive, x, index, scatter), (x,))  # type: ignore[misc]

    def process(self: Any, primitive: Any, args: Sequence[Any], params: Any) -> Any:
        """Carry out any other operation."""
        return _carried_out(self, super().process, primitive, (primitive, args, params), args)  # type: ignore[misc]

    def noted(self: Any, name: str, args: Sequence[Any], outs: Sequence[Any]) -> None:
        """Take notice of a call of a function with rules of its own."""
        watch, record = watcher(), _records.get(self.level)
        if watch is None or record is None:
            return
        made = DOING.now or Made(name, args, self, False)
        record.enter(tuple(outs), made)
        if DOING.now is None:
            watch.look(made, args, tuple(outs))

    def close(self: Any) -> None:
        """Refuse further operations, and look for values that were stored away."""
        super().close()  # type: ignore[misc]
        record, watch = _records.pop(self.level, None), watcher()
        if record is not None and watch is not None and sys.exc_info()[1] is record.error:
            watch.closed(record)


def _carried_out(
    trace: Any, do: Callable[..., Any], primitive: Any, call: Any, args: Sequence[Any]
) -> Any:
    """Do an operation, note it, and let the watcher look at what it made."""
    watch, record = watcher(), _records.get(trace.level)
    if watch is None or record is None:
        return do(*call)
    notes: list[Any] = trace.notes if isinstance(trace, LinearTrace) else []
    count = len(notes)
    step_of = DOING.now
    made = step_of
    if made is None:
        made = Made(primitive.name, args, trace, isinstance(primitive, Elementwise))
    if step_of is not None or hasattr(primitive, "again"):
        out = do(*call)  # a function with rules of its own is code of the user's
    else:
        with repeating(made):
            out = do(*call)
    record.enter(out, made)
    if len(notes) > count:
        number, push, parents = notes[-1]
        notes[-1] = number, _Push(push, made), parents
    if step_of is None:
        watch.look(made, args, out)
        if not any(isinstance(one, ReverseTrace | LinearTrace) for one in traces_in_progress()):
            made.operands = []  # nothing comes back to it
    return out


class _Push:
    """How `linearize` pushes tangents through an operation, looked at."""

    __slots__ = ("made", "push")

    def __init__(self, push: Callable[[Any], Any], made: Made):
        self.push = push
        self.made = made

    def __call__(self, dots: Any) -> Any:
        """Push tangents."""
        watch = watcher()
        if watch is None or DOING.now is not None:
            return self.push(dots)
        with repeating(self.made):
            out_dot = self.push(dots)
        watch.look_at_pushed(self.made, dots, out_dot)
        return out_dot
