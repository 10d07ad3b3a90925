"""Examples of a `vmap` that go different ways: each branch is run on the rows that take it.

The one idea: a predicate that differs from example to example (from row to row) splits the rows,
and what depends on them is taken apart with it. `unbatch` turns a value that is traced by `vmap`
into a plain array with all rows along its first axis, `rebatch` turns such an array back. Both are
primitives, with derivatives like any other, so that a gradient goes back to the rows it came from.
Between the two, a `RowsTrace` runs the user's function on some of the rows, as a `vmap` of its own.
Whatever else the function refers to, and that is traced by the `vmap` too, has all the rows: the
trace takes its own rows of it when the two meet.

Where a predicate is traced by several vmaps, one in the other, a row is one example of each.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core import assign
from funcgrad.core.boxed import Boxed
from funcgrad.core.level import Trace, TracerBase, batches_of, concrete, looked_at, top_trace
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracer import Tracer, unwrap
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import ArgumentError, user_line
from funcgrad.transforms.batching import BatchTrace
from funcgrad.transforms.flat import lower

__all__ = ["Piece", "Rows", "RowsTrace", "adopt", "merge", "of_one_dtype", "split"]

_PYTHON = frozenset({bool, int, float, complex})


class _Unbatch(Primitive):
    """All the rows of a value that `trace` batches, along its first axis."""

    def bind(self, *args: Any, **params: Any) -> Any:
        """Carry it out at the highest level, or here when that is `trace`."""
        (x,) = args
        trace = params["trace"]
        top = top_trace(args)
        if top is trace:
            return unwrap(x._value)
        if top is None or top.level < trace.level:
            return self.forward(x, trace=trace)
        return top.process(self, args, params)


class _Rebatch(Primitive):
    """The reverse: a value that `trace` batches, of all its rows."""

    def bind(self, *args: Any, **params: Any) -> Any:
        """Carry it out at the highest level, or here when that is below `trace`."""
        top = top_trace(args)
        if top is None or top.level < params["trace"].level:
            return self.forward(*args, **params)
        return top.process(self, args, params)


def _unbatch(x: Any, *, trace: Any) -> Any:
    return np.broadcast_to(x, (trace.size, *shape_of(x)))  # the same in all rows


def _rebatch(x: Any, *, trace: Any) -> Any:
    return trace.variable(x) if isinstance(trace, RowsTrace) else Tracer(trace, unwrap(x), None)


unbatch = _Unbatch(_unbatch, name="unbatch")
rebatch = _Rebatch(_rebatch, name="rebatch")
unbatch.linear = rebatch.linear = True


def _unbatch_jvp(primals: Any, tangents: Any, out: Any, *, trace: Any) -> Any:
    return unbatch.bind(tangents[0], trace=trace)


def _rebatch_jvp(primals: Any, tangents: Any, out: Any, *, trace: Any) -> Any:
    return rebatch.bind(tangents[0], trace=trace)


def _unbatch_vjp(primals: Any, out: Any, *, trace: Any) -> Any:
    def unbatch_pullback(out_bar: Any) -> Any:
        return rebatch.bind(out_bar, trace=trace)

    return unbatch_pullback


def _rebatch_vjp(primals: Any, out: Any, *, trace: Any) -> Any:
    def rebatch_pullback(out_bar: Any) -> Any:
        return unbatch.bind(out_bar, trace=trace)

    return rebatch_pullback


def _unbatch_batch(args: Any, batched: Any, *, trace: Any) -> Any:
    return np.swapaxes(unbatch.bind(args[0], trace=trace), 0, 1)


def _rebatch_batch(args: Any, batched: Any, *, trace: Any) -> Any:
    return rebatch.bind(np.swapaxes(args[0], 0, 1), trace=trace)


unbatch.def_jvp(_unbatch_jvp)
rebatch.def_jvp(_rebatch_jvp)
unbatch.def_vjp(_unbatch_vjp)
rebatch.def_vjp(_rebatch_vjp)
unbatch.def_batch(_unbatch_batch)
rebatch.def_batch(_rebatch_batch)


def _chain(value: Any) -> tuple[Trace, ...]:
    """Return the traces that batch `value`, lowest level first."""
    return batches_of(value._unbox() if isinstance(value, Boxed) else value)


def _varies(value: Any, base: Trace) -> bool:
    """Tell whether `value` or its derivative differs from row to row.

    What is differentiated inside of the vmap has a gradient for each row, also where it is itself
    the same in all of them.
    """
    if isinstance(value, Boxed):
        value = value._unbox()
    varies = False
    while isinstance(value, TracerBase):
        trace = value._trace
        if trace is base or (trace.level > base.level and not trace.traces_all):
            varies = True
        elif isinstance(trace, RowsTrace) and trace.covers(base):
            return False  # only some of the rows are left
        value = value._value
    return varies


class Rows:
    """Some of the examples of one or more vmaps.

    Parameters
    ----------
    bases : tuple of BatchTrace
        The vmaps, lowest level first.
    flat : ndarray, optional
        The numbers of the rows, of all the combinations in C order; by default all.
    """

    __slots__ = ("bases", "flat", "size", "sizes", "whole")

    def __init__(self, bases: tuple[Any, ...], flat: Any = None):
        self.bases = bases
        self.sizes = tuple(base.size for base in bases)
        self.whole = flat is None
        self.flat = np.arange(int(np.prod(self.sizes, dtype=int))) if flat is None else flat
        self.size = len(self.flat)

    def take(self, value: Any) -> Any:
        """Return these rows of `value` along its first axis, or None if it is one for all rows."""
        own = [base for base in self.bases if _varies(value, base)]
        if not own:
            return None
        return _inside(value, lambda content: self._take(content, own))

    def _take(self, value: Any, own: list[Any]) -> Any:
        for base in reversed(own):
            value = unbatch.bind(value, trace=base)
        if len(self.bases) == 1:
            return value if self.whole else value[self.flat]
        index = np.unravel_index(self.flat, self.sizes)
        key = [part for base, part in zip(self.bases, index, strict=True) if base in own]
        return value[tuple(key)]


def _inside(leaf: Any, change: Callable[[Any], Any]) -> Any:
    """Apply a function to a leaf, or to what it is made of."""
    return leaf._rebox(change(leaf._unbox())) if isinstance(leaf, Boxed) else change(leaf)


def split(value: Any, what: str) -> tuple[Rows, Any]:
    """Return all the rows of a batched scalar, and its plain values row by row.

    `what` says in the notes of a program on what it is specialised.
    """
    plain = np.asarray(looked_at(value, what))
    assert plain.ndim == len(batches_of(value))
    return Rows(batches_of(value)), plain.reshape(-1)


_running = threading.local()


class RowsTrace(BatchTrace):
    """Runs a function on some rows of other batch traces."""

    __slots__ = ("_known", "enclosing", "rows")

    def __init__(self, rows: Rows):
        super().__init__(rows.bases[-1].origin, rows.size)
        self.rows = rows
        self.enclosing: tuple[RowsTrace, ...] = tuple(_stack())
        # What was taken of values from outside: a loop meets the same ones at every step.
        self._known: dict[int, tuple[Any, Any, Any]] = {}

    def __enter__(self) -> RowsTrace:
        super().__enter__()
        _stack().append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        _stack().pop()
        self._known.clear()
        super().__exit__(*error)

    def variable(self, value: Any) -> Tracer:
        """Make the tracer for one row of an array with all rows of this trace."""
        made = super().variable(value)
        made._alias = None  # the array is no one's but ours
        return made

    def covers(self, base: Trace) -> bool:
        """Tell whether the rows are those of `base`, or some of its."""
        return any(
            own is base or (isinstance(own, RowsTrace) and own.covers(base))
            for own in self.rows.bases
        )

    def split(self, args: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        """Return the values of arguments, of others than ours our rows, and which have rows."""
        own = [
            arg if type(arg) is not Tracer or arg._trace is self else self.adopt(arg)
            for arg in args
        ]
        return super().split(own)

    def adopt(self, value: Any) -> Any:
        """Return a value from outside with the rows of this trace, if it has rows at all."""
        if not isinstance(value, TracerBase | Boxed):
            return value
        below = value._value if isinstance(value, TracerBase) else None
        known = self._known.get(id(value))
        if known is not None and known[0] is value and known[1] is below:
            return known[2]
        made = value
        for region in (*self.enclosing, self):
            taken = region.rows.take(made)
            if taken is not None:
                made = region.put(taken)
        if made is not value:
            if type(made) is Tracer:
                made._alias = assign.ARGUMENT  # assigning to these rows would not reach the others
            if len(self._known) > 100:  # not what a user refers to by name
                self._known.clear()
            self._known[id(value)] = (value, below, made)
        return made

    def put(self, taken: Any) -> Any:
        """Return what stands for one row of an array with all rows of this trace."""
        return _inside(taken, lambda content: rebatch.bind(content, trace=self))

    def draw(self, leaf: Any) -> tuple[bool, Any]:
        """Return an output with its rows along the first axis, and whether it has them."""
        leaf = self.adopt(lower_ended(leaf, self))
        if self not in _chain(leaf):
            return False, leaf
        return True, _inside(leaf, lambda content: unbatch.bind(content, trace=self))


def lower_ended(leaf: Any, trace: Trace) -> Any:
    """Return a leaf unless it belongs to a transform that has ended, which is an error."""
    content = leaf._unbox() if isinstance(leaf, Boxed) else leaf
    if type(content) is Tracer and content._trace is not trace:
        lower(content, trace)
    return leaf


def _stack() -> list[RowsTrace]:
    stack: list[RowsTrace] | None = getattr(_running, "stack", None)
    if stack is None:
        stack = _running.stack = []
    return stack


def adopt(leaves: list[Any]) -> list[Any]:
    """Return `leaves` with the rows on which the calling function is being run, if it is."""
    stack = _stack()
    return [stack[-1].adopt(leaf) for leaf in leaves] if stack else leaves


# Row numbers, and for each leaf whether it has rows, and the leaf.
Piece = tuple[Any, list[tuple[bool, Any]]]


def merge(rows: Rows, pieces: Sequence[Piece], place: Callable[[int], str]) -> list[Any]:
    """Put the outputs for parts of the rows together.

    Parameters
    ----------
    rows : Rows
        All the rows.
    pieces : sequence of Piece
        Together they have every row once.
    place : callable
        Says where a leaf is, for messages.
    """
    if len(pieces) > 1:
        pieces = [piece for piece in pieces if len(piece[0])] or pieces[:1]
    order = np.concatenate([numbers for numbers, _ in pieces])
    back = None if np.all(order[:-1] < order[1:]) else np.argsort(order)
    made = []
    for position in range(len(pieces[0][1])):
        parts = [(len(numbers), *leaves[position]) for numbers, leaves in pieces]
        made.append(_merge_leaf(rows, parts, back, lambda at=position: place(at)))  # type: ignore[misc]
    return made


def _merge_leaf(
    rows: Rows, parts: list[tuple[int, bool, Any]], back: Any, place: Callable[[], str]
) -> Any:
    _, _, first = parts[0]
    if not any(has_rows for _, has_rows, _ in parts) and all(leaf is first for *_, leaf in parts):
        return first
    if isinstance(first, Boxed):
        contents = [(size, has_rows, leaf._unbox()) for size, has_rows, leaf in parts]
        return first._rebox(_merge_leaf(rows, contents, back, place))
    for _, _, leaf in parts:
        if not is_stackable(leaf):
            raise ArgumentError(
                f"a {type(leaf).__name__} cannot differ from example to example",
                where=f"{place()}, {user_line()}",
                fix="return an array or a number there, or the same object from all branches",
            )
    leaves = of_one_dtype([leaf for *_, leaf in parts])
    filled = [
        leaf if has_rows else np.broadcast_to(leaf, (size, *shape_of(leaf)))
        for (size, has_rows, _), leaf in zip(parts, leaves, strict=True)
    ]
    made = filled[0] if len(filled) == 1 else np.concatenate(filled)
    if back is not None:
        made = made[back]
    if len(rows.bases) > 1:
        made = np.reshape(made, (*rows.sizes, *shape_of(made)[1:]))
    for base in rows.bases:
        made = rebatch.bind(made, trace=base)
    return made


def of_one_dtype(leaves: list[Any]) -> list[Any]:
    """Return leaves of which the Python numbers take the dtype of the arrays, as in operations."""
    weak = [type(concrete(leaf)) in _PYTHON for leaf in leaves]
    if all(weak) or not any(weak):
        return leaves
    dtype = np.result_type(
        *[
            type(concrete(leaf))(0) if is_weak else dtype_of(leaf)
            for leaf, is_weak in zip(leaves, weak, strict=True)
        ]
    )
    return [
        leaf if not is_weak else leaf.astype(dtype) if type(leaf) is Tracer else dtype.type(leaf)
        for leaf, is_weak in zip(leaves, weak, strict=True)
    ]


def is_stackable(leaf: Any) -> bool:
    """Tell whether a leaf is an array or a number."""
    return isinstance(leaf, bool | int | float | complex) or (
        hasattr(leaf, "shape") and hasattr(leaf, "dtype")
    )
