"""Forgetting what a tape has recorded: notes of the operations, and a node that does them again.

While a block of code runs, a trace that is *watched* records as always, and beside that takes a
note of each operation: which, on which variables, with which constants; no values. Afterwards
its part of the tape is replaced by one node with the notes. To pull a cotangent back, the node does
the operations again on a fresh tape. It is the operations that are repeated, not the Python code:
what that closes over may have changed in the meantime, and must not count.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core.elementwise import Elementwise
from funcgrad.core.level import Trace, TracerBase, traces_in_progress
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracer import Tracer, unwrap
from funcgrad.core.watching import repeating
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.transforms.backward import backward
from funcgrad.transforms.calls import Shared
from funcgrad.transforms.checkpoint_policies import Policy
from funcgrad.transforms.named_values import NAMED
from funcgrad.transforms.tape import OutlivingTrace, ReverseTrace

__all__ = ["forgetting", "recorders"]


def recorders(values: Any = ()) -> list[ReverseTrace]:
    """Return the traces that record here: open in this thread, or met in `values`."""
    found: dict[int, Any] = {trace.level: trace for trace in traces_in_progress()}
    for leaf in tree.leaves(values):
        while isinstance(leaf, TracerBase):
            found[leaf._trace.level] = leaf._trace
            leaf = leaf._value
    return [
        trace for trace in found.values() if isinstance(trace, ReverseTrace) and not trace.ended
    ]


@contextlib.contextmanager
def forgetting(traces: list[ReverseTrace], policy: Policy | None) -> Iterator[None]:
    """Replace what `traces` record in the block by one node each."""
    frames = [_begin(trace, policy) for trace in traces]
    try:
        yield
    except BaseException:
        for trace, frame in zip(traces, frames, strict=True):
            _end(trace, frame)
        raise
    for trace, frame in zip(traces, frames, strict=True):
        _replace(trace, frame)


# What is noted


class _Ref:
    """An argument that is a variable of the tape, by its number."""

    __slots__ = ("index",)

    def __init__(self, index: int):
        self.index = index


class _Note:
    """One operation: ``redo(trace, *args)`` does it again.

    Attributes
    ----------
    args : list
        Constants, and a `_Ref` for each variable.
    results : tuple of int
        The variables that it made; -1 for a result without derivative.
    saved : object
        The value to use in the place of computing it, or None.
    last : tuple of int
        The variables that no later operation uses.
    made : object
        What a debug mode remembers of it, or None.
    """

    __slots__ = ("args", "last", "made", "redo", "results", "saved")

    def __init__(self, redo: Any, args: list[Any], results: tuple[int, ...], saved: Any):
        self.redo = redo
        self.args = args
        self.results = results
        self.saved = saved
        self.last: tuple[int, ...] = ()
        self.made: Any = None


class _Frame:
    """What one trace records while one checkpointed function runs.

    Attributes
    ----------
    start : int
        Variables with a lower number come from outside; `outside` has their values.
    position : int
        Where on the tape the function's part begins.
    """

    __slots__ = ("notes", "outside", "policy", "position", "start")

    def __init__(self, start: int, position: int, policy: Policy | None):
        self.start = start
        self.position = position
        self.policy = policy
        self.notes: list[_Note] = []
        self.outside: dict[int, Any] = {}


# The frames of the traces that are watched, by level; the innermost last.
_frames: dict[int, list[_Frame]] = {}


def _begin(trace: ReverseTrace, policy: Policy | None) -> _Frame:
    frame = _Frame(trace.new_index(), len(trace.tape), policy)
    frames = _frames.get(trace.level)
    if frames is None:
        frames = _frames[trace.level] = []
        trace.__class__ = _watching(type(trace))
    frames.append(frame)
    return frame


def _end(trace: ReverseTrace, frame: _Frame) -> None:
    frames = _frames[trace.level]
    frames.remove(frame)
    if not frames:
        del _frames[trace.level]
        trace.__class__ = type(trace).unwatched  # type: ignore[attr-defined]


_watched: dict[Any, Any] = {}


def _watching(cls: Any) -> Any:
    """Return the class that a trace of class `cls` changes to while it is watched."""
    # A test in each operation, for all who use no checkpoint, would cost more than this does.
    made = _watched.get(cls)
    if made is None:
        made = type(f"Watched{cls.__name__}", (_Watched, cls), {"__slots__": (), "unwatched": cls})
        _watched[cls] = made
    return made


class _Watched:
    """Does what the trace does, and takes a note."""

    __slots__ = ()

    def unary(self: Any, primitive: Elementwise, fun: Callable[[Any], Any], x: Any) -> Any:
        """Record an elementwise function of one argument."""
        out = super().unary(primitive, fun, x)  # type: ignore[misc]
        if type(out) is Tracer:
            _take(self, _Ufunc(primitive, fun), primitive, (x,), {}, out)
        return out

    def binary(
        self: Any, primitive: Elementwise, fun: Callable[[Any, Any], Any], x: Any, y: Any
    ) -> Any:
        """Record an elementwise function of two arguments."""
        out = super().binary(primitive, fun, x, y)  # type: ignore[misc]
        if type(out) is Tracer:
            _take(self, _Ufunc(primitive, fun), primitive, (x, y), {}, out)
        return out

    def part(
        self: Any, primitive: Primitive, x: Any, index: Any, scatter: Callable[..., Any]
    ) -> Any:
        """Record ``x[index]`` with a basic index."""
        out = super().part(primitive, x, index, scatter)  # type: ignore[misc]
        if type(x._value) is np.ndarray:  # else it went to `process`
            _take(self, _Part(primitive, index, scatter), primitive, (x,), {"index": index}, out)
        return out

    def process(self: Any, primitive: Primitive, args: Sequence[Any], params: Any) -> Any:
        """Record any other operation."""
        out = super().process(primitive, args, params)  # type: ignore[misc]
        _take(self, _Operation(primitive, params), primitive, args, params, out)
        return out


def _take(
    trace: ReverseTrace, redo: Any, primitive: Any, args: Sequence[Any], params: Any, out: Any
) -> None:
    """Note an operation, unless its results carry no derivative."""
    outs = out if type(out) is tuple else (out,)
    results = tuple(
        part._extra if type(part) is Tracer and part._trace is trace else -1 for part in outs
    )
    if all(result < 0 for result in results):
        return
    frame = _frames[trace.level][-1]
    noted: list[Any] = []
    values = []
    for arg in args:
        if type(arg) is Tracer and arg._trace is trace:
            noted.append(_Ref(arg._extra))
            values.append(arg._value)
            if arg._extra < frame.start:
                frame.outside[arg._extra] = _kept(trace, arg._value)
        else:
            value = unwrap(arg)
            noted.append(trace.hold(value) if type(value) is np.ndarray else value)
            values.append(value)
    saved = None
    if frame.policy is not None:
        keep = frame.policy(primitive, *values, **params)
        if keep:
            saved = tuple(
                _kept(trace, part._value) if type(part) is Tracer else part for part in outs
            )
        if primitive is NAMED and (keep or params["name"] in getattr(frame.policy, "forgets", ())):
            _share(frame, noted[0], saved)
    note = _Note(redo, noted, results, saved)
    note.made = trace.tape.made.get(max(results)) if trace.tape.made else None
    frame.notes.append(note)


def _kept(trace: ReverseTrace, value: Any) -> Any:
    """Return a value that stays what it is, even if the function has returned."""
    return trace.own(value) if isinstance(trace, OutlivingTrace) else value


def _share(frame: _Frame, named: Any, saved: Any) -> None:
    """Let the operation that made a named value keep it, or not, as its name says."""
    if isinstance(named, _Ref):
        for note in reversed(frame.notes):
            if note.results == (named.index,):
                note.saved = saved
                return


class _Ufunc:
    """An elementwise operation, to be done again."""

    __slots__ = ("fun", "primitive")

    def __init__(self, primitive: Elementwise, fun: Callable[..., Any]):
        self.primitive = primitive
        self.fun = fun

    def __call__(self, trace: Any, args: list[Any], saved: Any) -> Any:
        fun = self.fun if saved is None else _Saved(self.primitive, saved)
        return (trace.unary if len(args) == 1 else trace.binary)(self.primitive, fun, *args)


class _Part:
    """A basic index, to be taken again."""

    __slots__ = ("index", "primitive", "scatter")

    def __init__(self, primitive: Primitive, index: Any, scatter: Callable[..., Any]):
        self.primitive = primitive
        self.index = index
        self.scatter = scatter

    def __call__(self, trace: Any, args: list[Any], saved: Any) -> Any:
        return trace.part(self.primitive, args[0], self.index, self.scatter)


class _Operation:
    """Any other operation, to be done again."""

    __slots__ = ("params", "primitive")

    def __init__(self, primitive: Any, params: dict[str, Any]):
        self.primitive = primitive
        self.params = params

    def __call__(self, trace: Any, args: list[Any], saved: Any) -> Any:
        again = getattr(self.primitive, "again", None)  # of a function with rules of its own
        if again is not None:
            return again(*args)
        primitive = self.primitive if saved is None else _Saved(self.primitive, saved)
        return trace.process(primitive, args, self.params)


class _Saved:
    """A primitive whose result is known: its forward function returns that."""

    def __init__(self, primitive: Any, saved: tuple[Any, ...]):
        self.primitive = primitive
        self.saved = saved

    def __getattr__(self, name: str) -> Any:
        return getattr(self.primitive, name)

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Return what is known."""
        return self.saved if len(self.saved) > 1 else self.saved[0]

    forward = bind = __call__


# The node


class _Block:
    """The notes of one run of a checkpointed function: an operation like others, made of those.

    Attributes
    ----------
    outside : list of int
        The variables that it starts from.
    results : tuple of int
        All variables that it made. Any of them may be used later, by a function that is not pure
        or by another transform, so each counts as an output.
    """

    def __init__(self, frame: _Frame):
        self.notes = frame.notes
        self.policy = frame.policy
        self.outside = list(frame.outside)
        self.results = tuple(k for note in self.notes for k in note.results if k >= 0)
        later: set[int] = set()
        for note in reversed(self.notes):
            used = {arg.index for arg in note.args if isinstance(arg, _Ref)}
            made = {k for k in note.results if k >= 0}
            note.last = tuple((used | made) - later)
            if isinstance(note.redo, _Block):
                note.saved = made & later  # what this one must hand on
            later |= used

    def __call__(self, trace: Any, args: list[Any], saved: Any) -> tuple[Any, ...]:
        """Do it again inside of another block, and forget it again."""
        env = dict(zip(self.outside, args, strict=True))
        with forgetting([trace], self.policy):
            self.run(trace, env, saved)
        return tuple(env.get(k) for k in self.results)

    def run(self, trace: Any, env: dict[int, Any], keep: Any) -> None:
        """Do the operations again, on the variables in `env`; leave those in it that `keep` has."""
        for note in self.notes:
            args = [env[arg.index] if isinstance(arg, _Ref) else arg for arg in note.args]
            saved = note.saved
            if isinstance(note.redo, _Block):
                saved = saved | keep
            if note.made is None:
                out = note.redo(trace, args, saved)
            else:
                with repeating(note.made):
                    out = note.redo(trace, args, saved)
            del args
            outs = out if type(out) is tuple else (out,)
            for k, part in zip(note.results, outs, strict=True):
                if k >= 0 and part is not None:
                    env[k] = part
            del out, outs
            for k in note.last:
                if k not in keep:
                    env.pop(k, None)


def _replace(trace: ReverseTrace, frame: _Frame) -> None:
    """Put one node in the place of what `frame` has seen on the tape."""
    _end(trace, frame)
    block = _Block(frame)
    if not _covers(block, trace.tape[frame.position :]):
        return
    outer = _frames.get(trace.level)
    if outer is not None:
        around = outer[-1]
        for k, value in frame.outside.items():
            if k < around.start:
                around.outside[k] = value
        around.notes.append(
            _Note(block, [_Ref(k) for k in block.outside], block.results, frozenset())
        )
    values = list(frame.outside.values())
    pull = _Pull(block, values, trace)
    parts = Shared(pull, range(len(values)))
    edges = [
        (parts.part(number), k, shape_of(value), dtype_of(value))
        for number, (k, value) in enumerate(zip(block.outside, values, strict=True))
    ]
    del trace.tape[frame.position :]
    trace.record((block.results, edges))


def _covers(block: _Block, nodes: list[Any]) -> bool:
    """Tell whether the notes are all that the tape has; another thread may have come between."""
    known = set(block.results)
    made = [k for node in nodes for k in (node[0] if type(node[0]) is tuple else (node[0],))]
    return bool(made) and known.issuperset(made)


class _Pull:
    """The pullback of a block: do the operations again, recording, and walk back."""

    __slots__ = ("block", "origin", "values")

    def __init__(self, block: _Block, values: list[Any], trace: Trace):
        self.block = block
        self.values = values
        self.origin = trace.origin

    def __call__(self, out_bar: tuple[Any, ...]) -> list[Any]:
        """Return the cotangents of the variables outside."""
        block = self.block
        bars = {k: bar for k, bar in zip(block.results, out_bar, strict=True) if bar is not None}
        # Traces of lower levels record what is done here, and may forget it likewise.
        with forgetting(recorders(), None):
            with ReverseTrace(self.origin) as trace:
                env = {
                    k: trace.variable(value)
                    for k, value in zip(block.outside, self.values, strict=True)
                }
                block.run(trace, env, bars.keys())
                start = trace.blank()
                for k, bar in bars.items():
                    made = env[k]
                    if type(made) is Tracer and made._trace is trace:
                        number = made._extra
                        before = start[number]
                        start[number] = bar if before is None else before + bar
                del env
                tape = trace.take_tape()
            return backward(tape, start, len(self.values), consume=True)
