"""Running a function without the derivatives that it closes over: `stripped`.

The one idea: a trace of a higher level than all that the function refers to sees every operation on
its argument, and takes the tracers of lower levels out of the other operands before it carries
the operation out. So whatever the result has to do with the argument is computed on plain
values, wherever the traced ones came from: a cell, a global name, a dict in an attribute. Of a
`vmap` it can take one example likewise.

What is done inside with the argument alone (a derivative of the function, say) is traced as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core import assign
from funcgrad.core.elementwise import Elementwise
from funcgrad.core.level import Origin, Trace, TracerBase, batches_of, traces_in_progress
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracer import Tracer, unwrap
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.transforms.flat import is_differentiable

__all__ = [
    "Picks",
    "StripTrace",
    "differentiating",
    "enclosing",
    "examples_of",
    "one_by_one",
    "only_below",
    "rewrapped",
    "stripped",
    "within",
]

# Of a `vmap`, by its level, the number of the example to take.
Picks = Mapping[int, int]


class StripTrace(Trace):
    """Carries operations out on operands without the tracers of some levels.

    Those are the levels in `ranges`, from the first up to the second exclusively. What stands for
    one example of a `vmap` remains, but of those in `picks`, of which the one is taken.
    """

    __slots__ = ("picks", "ranges")

    def __init__(self, origin: Origin, ranges: Sequence[tuple[int, int]], picks: Picks):
        super().__init__(origin)
        self.ranges = ranges
        self.picks = picks

    def drops(self, trace: Trace) -> bool:
        """Tell whether to take out the tracers of a trace."""
        if trace.traces_all:
            return False
        return isinstance(trace, StripTrace) or any(
            low <= trace.level < high for low, high in self.ranges
        )

    def covers(self, base: Trace) -> bool:
        """Tell whether one example of `base` has been taken."""
        return base.level in self.picks

    def variable(self, leaf: Any) -> Any:
        """Return a leaf of the function's argument so that operations on it are seen."""
        leaf = self.strip(leaf)
        if is_differentiable(leaf) is not True:
            return leaf
        made = Tracer(self, unwrap(leaf), None)
        made._alias = assign.ARGUMENT
        return made

    def strip(self, value: Any) -> Any:
        """Return a value without the tracers to take out."""
        if not isinstance(value, TracerBase):
            return value
        trace = value._trace
        if trace is self:
            return unwrap(value._value)
        if trace.level == 0:
            return value
        below = self.strip(value._value)
        if trace.level in self.picks:
            return below[self.picks[trace.level]]
        if self.drops(trace):
            if trace.ended:
                trace.escaped()
            return unwrap(below)
        return value if below is value._value else type(value)(trace, below, value._extra)

    def values(self, args: Sequence[Any]) -> list[Any]:
        """Return what to compute with."""
        return [unwrap(self.strip(arg)) for arg in args]

    def wrap(self, out: Any) -> Any:
        """Return a result so that operations on it are seen, if it can have a derivative."""
        out = self.strip(out)
        return Tracer(self, out, None) if is_differentiable(out) is True else out

    def enter(self, value: Any) -> Any:
        """Return a value computed elsewhere so that operations on it are seen.

        Traces of higher levels keep what they have of it, for a value at this level.
        """
        if not isinstance(value, TracerBase) or value._trace.level <= self.level:
            return self.wrap(value)
        extra = value._extra
        if is_differentiable(extra) is True:  # a tangent
            extra = self.enter(extra)
        return type(value)(value._trace, self.enter(value._value), extra)

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Carry out an operation."""
        if self.ended:
            self.escaped()
        out = primitive.bind(*self.values(args), **params)
        if primitive.reason is not None:
            return out
        made = tuple(map(self.wrap, out)) if type(out) is tuple else self.wrap(out)
        if primitive.may_alias:
            assign.link(made, args[0], params)
        return made

    def unary(self, primitive: Elementwise, fun: Callable[[Any], Any], x: Any) -> Any:
        """Carry out an elementwise function of one argument."""
        if self.ended:
            self.escaped()
        out = fun(*self.values((x,)))
        return out if primitive.discrete else self.wrap(out)

    def binary(self, primitive: Elementwise, fun: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
        """Carry out an elementwise function of two arguments."""
        if self.ended:
            self.escaped()
        out = fun(*self.values((x, y)))
        return out if primitive.discrete else self.wrap(out)


_NOTHING: Picks = {}
_ABOVE_ALL = 2**62


def _level_now() -> int:
    """Return a level that is higher than those of all traces so far."""
    return Trace(_ORIGIN).level


def enclosing() -> StripTrace | None:
    """Return the innermost trace of this kind in progress in this thread."""
    for trace in reversed(traces_in_progress()):
        if isinstance(trace, StripTrace):
            return trace
    return None


def stripped(
    fun: Callable[..., Any], origin: Origin, low: int = 1, picks: Picks = _NOTHING
) -> Callable[..., Any]:
    """Return a function that computes `fun` without what is traced now, at `low` and above.

    Where a function is being run that is stripped itself, of that too.

    Parameters
    ----------
    fun : callable
        Function of pytrees.
    origin : Origin
        On whose behalf.
    low : int
        The lowest level to take out.
    picks : mapping of int to int
        Of which `vmap`, by its level, to take which example.
    """
    if not traces_in_progress():
        return fun
    outer = enclosing()
    ranges: Sequence[tuple[int, int]] = ((low, _level_now()),)
    if outer is not None:
        ranges = (*outer.ranges, *ranges)
        picks = {**outer.picks, **picks}

    def without(*args: Any) -> Any:
        with StripTrace(origin, ranges, picks) as trace:
            out = fun(*tree.map(trace.variable, args))
            return tree.map(lambda leaf: unwrap(trace.strip(leaf)), out)

    return without


def within(fun: Callable[..., Any], origin: Origin) -> Callable[..., Any]:
    """Return a function that computes `fun` as the function being run would, if that is stripped.

    Its results are without what is taken out there; `rewrapped` puts them back.
    """
    return fun if enclosing() is None else stripped(fun, origin, low=_ABOVE_ALL)


def rewrapped(leaves: Sequence[Any]) -> list[Any]:
    """Return results for the function being run so that, if it is stripped, what follows is too."""
    outer = enclosing()
    return list(leaves) if outer is None else list(map(outer.enter, leaves))


def only_below(value: Any, level: int, picks: Picks = _NOTHING) -> Any:
    """Return a leaf without the derivatives of `level` and above."""
    if not isinstance(value, TracerBase):
        return value
    return unwrap(StripTrace(_ORIGIN, ((level, _ABOVE_ALL),), picks).strip(value))


_ORIGIN = Origin("stripped", None)


def differentiating(values: Sequence[Any], above: int = 0) -> Trace | None:
    """Return the trace of the lowest level above another that differentiates one of `values`."""
    found = None
    for value in values:
        while isinstance(value, TracerBase) and value._trace.level > above:
            trace = value._trace
            own = not trace.traces_all and not isinstance(trace, StripTrace)
            if own and (found is None or trace.level < found.level):
                found = trace
            value = value._value
    return found


def examples_of(values: Sequence[Any]) -> list[Any]:
    """Return the vmaps in which one of `values` differs from example to example, innermost last.

    The axes of their examples come in this order in the plain array. It is that of levels but for
    a pushforward that is itself called under a later `vmap`: there that comes first.
    """
    chains = list(map(batches_of, values))
    found: list[Any] = []
    for chain in sorted(chains, key=len, reverse=True):  # the longest know the most of the order
        for place, trace in enumerate(chain):
            if trace in found:
                continue
            start = max([0, *(found.index(other) + 1 for other in chain[:place])])
            end = min([len(found), *(found.index(x) for x in chain[place + 1 :] if x in found)])
            below = sum(other.level < trace.level for other in found[start:end])
            found.insert(start + below, trace)
    return found


def one_by_one(
    call: Callable[[Picks], list[Any]], traces: Sequence[Any], empty: Sequence[Any]
) -> list[Any]:
    """Return the leaves that `call` computes for one example, of all examples of some vmaps.

    If there are none, they are like those in `empty`.
    """
    sizes = [trace.size for trace in traces]
    rows = [
        call({trace.level: i for trace, i in zip(traces, index, strict=True)})
        for index in np.ndindex(*sizes)
    ]
    made = []
    if not rows:
        rows = [
            [
                leaf
                if is_differentiable(leaf) is False
                else np.zeros(shape_of(leaf), dtype_of(leaf))
                for leaf in empty
            ]
        ]
    for column in zip(*rows, strict=True):
        if is_differentiable(column[0]) is False and not isinstance(column[0], int):
            made.append(column[0])  # a string, a function: it has no examples
            continue
        whole: Any = np.stack(column)
        if 0 in sizes:
            whole = whole[:0]
        whole = np.reshape(whole, (*sizes, *whole.shape[1:]))
        for trace in traces:
            whole = Tracer(trace, whole, None)
        made.append(whole)
    return made
