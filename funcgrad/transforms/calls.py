"""Calls of functions that bring derivative rules of their own, under every transform.

The one idea: what a transform needs of such a function is a `Rules` object, which works on flat
lists of leaves. The trace of the highest level among the leaves decides what is asked of it:
reverse mode asks for `vjp`, forward mode for `jvp` or `linear`. `vmap` wraps it in `Batched`, which
runs the very same rules on tracers that stand for one example, and hands the call on to the next
lower trace.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from funcgrad.core.batch import full_batch
from funcgrad.core.level import Origin, Trace, TracerBase, top_trace, traces_in_progress
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracer import Tracer, unwrap
from funcgrad.core.zero import dtype_of, fit, shape_of, spread
from funcgrad.errors import TracerLeakError, describe, user_line
from funcgrad.transforms.axis_names import Scope, axes_in_scope
from funcgrad.transforms.backward import backward
from funcgrad.transforms.batching import BatchTrace
from funcgrad.transforms.flat import is_differentiable, lower
from funcgrad.transforms.forward import ForwardTrace, LinearTrace
from funcgrad.transforms.stripping import StripTrace
from funcgrad.transforms.tape import ReverseTrace

__all__ = [
    "Aval",
    "CallingTrace",
    "Rules",
    "aval_of",
    "call",
    "is_closed_over",
    "is_floating",
    "pushed",
    "taped",
]

Leaves = list[Any]
# A linear map of the leaves' tangents, or the outputs' cotangents; None stands for zero.
Linear = Callable[[Leaves], Leaves]


class Aval:
    """The shape and dtype of a value that is not kept."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]):
        self.shape = shape
        self.dtype = dtype

    def zero(self) -> Any:
        """Return a zero of this shape and dtype."""
        return np.zeros(self.shape, self.dtype)[()]


def is_floating(leaf: Any) -> bool:
    """Tell whether a leaf can have a derivative."""
    return is_differentiable(leaf) is True


def aval_of(leaf: Any) -> Aval | None:
    """Return the shape and dtype of a leaf that can have a derivative, None of others."""
    return Aval(shape_of(leaf), dtype_of(leaf)) if is_floating(leaf) else None


class Rules:
    """A function of flat leaves, with its derivatives.

    Attributes
    ----------
    name : str
        What to call it in messages.
    fixed : sequence of bool
        Which leaves are not differentiated, whatever they are.
    owner : object
        Whose rules they are.
    equation : callable or None
        What the outputs solve, if the function is the solution of an equation: takes leaves like
        them, and returns leaves like its arguments, which are zero at the solution.
    operation : object
        For functions that a program has one equation for, such as a loop: the operation of that.
        Their rules are derived, so that the backward pass need not expect anything of them, and
        they have one for `vmap` too.
    """

    name: str
    fixed: Sequence[bool]
    owner: object = None
    operation: Any = None
    equation: Callable[[Leaves], Leaves] | None = None

    def run(self, leaves: Leaves) -> tuple[Leaves, Any]:
        """Return the leaves and the structure of the output."""
        raise NotImplementedError

    def vjp(self, trace: Trace, leaves: Leaves, wanted: Sequence[bool]) -> tuple[Leaves, Any, Any]:
        """Return leaves and structure of the output, and a `Linear` pullback.

        Parameters
        ----------
        trace : Trace
            The one that asks: its tracers are not among `leaves`, and must not be met.
        leaves : list
            The primals.
        wanted : sequence of bool
            Of which of them the cotangent counts.
        """
        raise NotImplementedError

    def jvp(self, trace: Trace, leaves: Leaves, dots: Leaves) -> tuple[Leaves, Any, Leaves]:
        """Return leaves and structure of the output, and the leaves' tangents."""
        raise NotImplementedError

    def linear(
        self, trace: Trace, leaves: Leaves, wanted: Sequence[bool]
    ) -> tuple[Leaves, Any, Any]:
        """Return leaves and structure of the output, and a `Linear` pushforward."""
        raise NotImplementedError

    def batch(
        self, trace: BatchTrace, leaves: Leaves, batched: Sequence[bool]
    ) -> tuple[Leaves, Sequence[bool]]:
        """Return the outputs for all examples, and which of them have any; of an `operation`."""
        raise NotImplementedError


class CallingTrace(Trace):
    """A trace of another kind, which says by itself what becomes of a function with rules."""

    __slots__ = ()

    def call(self, rules: Rules, leaves: Leaves) -> tuple[Leaves, Any]:
        """Do what the function `call` does, for leaves that are traced by this."""
        raise NotImplementedError

    def solves(self) -> None:
        """Be told that a solution has a derivative by an equation that is not traced by this."""


def call(rules: Rules, leaves: Leaves) -> tuple[Leaves, Any]:
    """Call a function with rules on leaves that may be traced.

    Returns
    -------
    leaves : list
        Of the output, traced where it has a derivative.
    treedef : TreeDef
        Its structure.
    """
    trace = top_trace(leaves)
    if isinstance(trace, BatchTrace):
        values, batched = trace.split(leaves)
        if rules.operation is None:
            return _on_many(rules, trace, values, batched)
        made, varying = rules.batch(trace, values, batched)
        return [
            Tracer(trace, out, None) if varies else out
            for out, varies in zip(made, varying, strict=True)
        ], None
    if isinstance(trace, StripTrace):
        outs, treedef = call(rules, trace.values(leaves))
        return [trace.wrap(out) if is_floating(out) else out for out in outs], treedef
    try:
        if isinstance(trace, ReverseTrace):
            return _reverse(rules, trace, leaves)
        if isinstance(trace, ForwardTrace):
            return _forward(rules, trace, leaves)
        if isinstance(trace, CallingTrace):
            return trace.call(rules, leaves)
    except _ClosedOverExamples as found:
        # No argument differs from example to example, but something that the function closes over.
        return _on_many(rules, found.trace, leaves, [False] * len(leaves))
    return rules.run(leaves)


def _on_many(
    rules: Rules, trace: BatchTrace, leaves: Leaves, batched: Sequence[bool]
) -> tuple[Leaves, Any]:
    outs, treedef = call(Batched(rules, trace, batched), leaves)
    return [Tracer(trace, out, None) if is_floating(out) else out for out in outs], treedef


def _reverse(rules: Rules, trace: ReverseTrace, leaves: Leaves) -> tuple[Leaves, Any]:
    wanted = [
        type(leaf) is Tracer and leaf._trace is trace and not fixed
        for leaf, fixed in zip(leaves, rules.fixed, strict=True)
    ]
    if not any(wanted):
        return rules.run([_below(leaf, trace) for leaf in leaves])
    if _is_own_tape(trace, rules.owner):
        return rules.run(leaves)
    # The user may write to a plain array before the backward pass reads it.
    leaves = [trace.hold(leaf) if type(leaf) is np.ndarray else leaf for leaf in leaves]
    primitive = _Taped(rules, trace, wanted)
    for other in (trace, *traces_in_progress()) if rules.operation is None else ():
        if isinstance(other, ReverseTrace):
            other.tape.careful = True
    made = iter(trace.process(primitive, leaves, {}))
    outs = [next(made) if is_floating(out) else out for out in primitive.outs]
    return outs, primitive.treedef


def _below(leaf: Any, trace: Trace) -> Any:
    if type(leaf) is Tracer and leaf._trace is trace:
        if trace.ended:
            trace.escaped()
        return leaf._value
    return leaf


class _Taped(Primitive):
    """One call of a function with rules, as reverse mode records it.

    Its forward function runs the rule, which gives the pullback at once; `vjp` then returns that.
    """

    linear = multilinear = may_alias = False
    reason = jvp = batch = None

    def __init__(self, rules: Rules, trace: ReverseTrace, wanted: Sequence[bool]):
        # Not `Primitive.__init__`, which looks at a signature.
        self.name = rules.name
        self.rules = rules
        self.trace = trace
        self.wanted = wanted
        self.axes = axes_in_scope()  # which the rules may name, also when they run later
        self.outs: Leaves = []
        self.treedef: Any = None
        self.pull: Any = None

    def forward(self, *values: Any) -> tuple[Any, ...]:
        """Return the outputs that have a derivative."""
        self.outs, self.treedef, self.pull = self.rules.vjp(self.trace, list(values), self.wanted)
        check_closed(self.outs, self.trace, self.rules.name)
        self.outs = [unwrap(out) for out in self.outs]
        return tuple(out for out in self.outs if is_floating(out))

    bind = forward  # the rule is ordinary code to the traces of lower levels

    def again(self, *values: Any) -> tuple[Any, ...]:
        """Do the same call on other values, which may be traced: `checkpoint` repeats it."""
        with Scope(self.axes):
            outs, _ = call(self.rules, list(values))
        return tuple(out for out, first in zip(outs, self.outs, strict=True) if is_floating(first))

    def vjp(self, primals: Any, out: Any) -> tuple[Any, ...]:
        """Return a pullback for each leaf that wants one."""
        places = [place for place, kept in enumerate(self.outs) if is_floating(kept)]
        count = len(self.outs)
        pull = self.pull
        # The residuals belong to the pullback now.
        self.pull = None
        self.outs = [kept if not is_floating(kept) else _FLOATING for kept in self.outs]

        def pulled(out_bar: Any) -> Leaves:
            bars: Leaves = [None] * count
            for place, bar in zip(places, out_bar, strict=True):
                bars[place] = bar
            with Scope(self.axes):
                result: Leaves = pull(bars)
            return result

        parts = Shared(pulled, [i for i, want in enumerate(self.wanted) if want])
        return tuple(parts.part(index) if want else None for index, want in enumerate(self.wanted))


# Stands for an output that has a derivative, where only that counts.
_FLOATING = 0.0


class Shared:
    """The pullbacks of one node that compute all cotangents at once.

    The backward pass asks for them one after another, with the same `out_bar`; the first does the
    work, and the last lets go of it.
    """

    __slots__ = ("fun", "last", "store")

    def __init__(self, fun: Callable[[Any], Any], wanted: Sequence[int]):
        self.fun = fun
        self.last = wanted[-1]
        # In each thread its own: a pullback may be called in several at once.
        self.store = threading.local()

    def part(self, index: int) -> Callable[[Any], Any]:
        """Return the pullback for argument number `index`."""

        def pullback(out_bar: Any) -> Any:
            store = self.store
            if getattr(store, "key", None) is not out_bar:
                store.key, store.parts = out_bar, self.fun(out_bar)
            made = store.parts[index]
            if index == self.last:
                store.key = store.parts = None
            return made

        return pullback


def _forward(rules: Rules, trace: ForwardTrace, leaves: Leaves) -> tuple[Leaves, Any]:
    primals, dots = trace.split(leaves)
    extras = [
        None if fixed else dot for dot, fixed in zip(dots, rules.fixed, strict=True)
    ]  # tangents, or numbers of them
    wanted = [extra is not None for extra in extras]
    if not any(wanted):
        return rules.run(primals)
    if not isinstance(trace, LinearTrace):
        outs, treedef, out_dots = rules.jvp(trace, primals, extras)
        check_closed([*outs, *out_dots], trace, rules.name)
        outs, out_dots = list(map(unwrap, outs)), list(map(unwrap, out_dots))
        made = [
            out if dot is None or not is_floating(out) else Tracer(trace, out, spread(dot, out))
            for out, dot in zip(outs, out_dots, strict=True)
        ]
        trace.noted(rules.name, leaves, made)
        return made, treedef
    primals = [trace.hold(x) if type(x) is np.ndarray else x for x in primals]
    outs, treedef, push = rules.linear(trace, primals, wanted)
    check_closed(outs, trace, rules.name)
    outs = list(map(unwrap, outs))
    avals = [aval_of(out) for out in outs]
    numbers = [None if aval is None else trace.new_index() for aval in avals]
    axes = axes_in_scope()

    def pushforward(dots: Sequence[Any]) -> tuple[Any, ...]:
        with Scope(axes):
            out_dots = push([dot if want else None for dot, want in zip(dots, wanted, strict=True)])
        return tuple(
            dot if dot is None else spread(dot, aval)
            for dot, aval in zip(out_dots, avals, strict=True)
            if aval is not None
        )

    trace.notes.append((tuple(n for n in numbers if n is not None), pushforward, extras))
    return [
        out if number is None else Tracer(trace, out, number)
        for out, number in zip(outs, numbers, strict=True)
    ], treedef


# Values that the function closes over


def is_closed_over(value: Any, trace: Trace) -> bool:
    """Tell whether `value` is made of one that `trace` traces."""
    while isinstance(value, TracerBase):
        if value._trace is trace:
            return True
        value = value._value
    return False


class _ClosedOverExamples(Exception):
    """A function turned out to close over a value that `vmap` traces."""

    def __init__(self, trace: BatchTrace):
        super().__init__()
        self.trace = trace


def check_closed(values: Leaves, trace: Trace, name: str) -> None:
    """Raise if one of `values`, computed below `trace`, depends on what is traced above."""
    for value in values:
        if not isinstance(value, TracerBase):
            continue
        found = value._trace
        if isinstance(found, BatchTrace) and found.level > trace.level and not found.ended:
            raise _ClosedOverExamples(found)
        if found.level > trace.level or is_closed_over(value, trace):
            raise closure_error(value, name, found.origin)


def closure_error(value: Any, name: str, origin: Origin) -> TracerLeakError:
    """Make the error for a value that a custom rule would have to differentiate, and cannot."""
    return TracerLeakError(
        f"{name} (or a rule of it) closes over {describe(value)}, a value traced by {origin}, "
        "of which the rule gives no derivative",
        where=user_line(),
        fix=f"pass that value to {name} as an argument, which the rule then gets",
    )


# Linear functions by their tape


class _Within(ReverseTrace):
    """Records for another trace, which sees to it that constants keep their values."""

    __slots__ = ("outer", "owner")

    def __init__(self, origin: Origin, outer: Trace, owner: object):
        super().__init__(origin)
        self.outer = outer
        self.owner = owner

    def hold(self, array: Any) -> Any:
        """Let the other trace hold the array, as long as that needs it."""
        return self.outer.hold(array)


def _is_own_tape(trace: Trace, owner: object) -> bool:
    """Tell whether a linear map that a rule of `owner` made is being recorded.

    A forward rule may call its own function on tangents, if that is linear. There it is transposed
    like any code: by its rule it would be transposed by calling itself, and so on without end.
    """
    while isinstance(trace, _Within):
        if trace.owner is owner and owner is not None:
            return True
        trace = trace.outer
    return False


def taped(
    fun: Callable[[Leaves], Leaves],
    inputs: Leaves,
    trace: Trace,
    *,
    owner: object = None,
    at_once: bool = False,
) -> tuple[Leaves, Linear]:
    """Run a function of flat leaves, and return its outputs and its pullback.

    Parameters
    ----------
    fun : callable
        Takes and returns a list of leaves; None where there is nothing.
    inputs : list
        Where to run it; None leaves stay None.
    trace : Trace
        On whose behalf.
    owner : object
        Whose rule `fun` is.
    at_once : bool
        The pullback is called at once, so that no constant can change before.
    """
    made = ReverseTrace(trace.origin) if at_once else _Within(trace.origin, trace, owner)
    with made as own, np.errstate(all="ignore"):
        places = [place for place, x in enumerate(inputs) if x is not None]
        variables = list(inputs)
        for place in places:
            variables[place] = own.variable(inputs[place])
        outs = fun(variables)
        del variables
        tape, count = own.take_tape(), len(own.blank())
    numbers = [out._extra if type(out) is Tracer and out._trace is own else None for out in outs]
    avals = [
        None if number is None else aval_of(out) for number, out in zip(numbers, outs, strict=True)
    ]
    values = [lower(out, own) for out in outs]
    size = len(inputs)

    def pull(out_bars: Leaves) -> Leaves:
        bars: Leaves = [None] * count
        for number, bar, aval in zip(numbers, out_bars, avals, strict=True):
            if number is not None and bar is not None and aval is not None:
                bar = fit(bar, aval.shape, aval.dtype)
                bars[number] = bar if bars[number] is None else bars[number] + bar
        pulled: Leaves = [None] * size
        for place, bar in zip(
            places, backward(tape, bars, len(places), consume=False), strict=True
        ):
            pulled[place] = bar
        return pulled

    return values, pull


def pushed(
    fun: Callable[[Leaves], Leaves], inputs: Leaves, dots: Leaves, origin: Origin
) -> tuple[Leaves, Leaves]:
    """Run a function of flat leaves, and return its outputs and their tangents."""
    with ForwardTrace(origin) as own:
        outs = fun(
            [
                x if dot is None else own.variable(x, dot)
                for x, dot in zip(inputs, dots, strict=True)
            ]
        )
        out_dots = [
            out._extra if type(out) is Tracer and out._trace is own else None for out in outs
        ]
        return [lower(out, own) for out in outs], out_dots


# Many examples at once


class Batched(Rules):
    """The rules of a function of one example, on many at once.

    Leaves for which `batched` is true have the examples along their first axis, and so has every
    output that can have a derivative. What cannot stays as the function returned it.
    """

    def __init__(self, inner: Rules, trace: BatchTrace, batched: Sequence[bool]):
        self.name = inner.name
        self.fixed = inner.fixed
        self.owner = inner.owner
        self.inner = inner
        self.trace = trace
        self.batched = batched
        self.equation = None if inner.equation is None else self._equation

    def run(self, leaves: Leaves) -> tuple[Leaves, Any]:
        """Run the function on all examples."""
        with _reopened(self.trace):
            outs, treedef = self.inner.run(self._examples(leaves))
            return self._collected(outs), treedef

    def vjp(self, trace: Trace, leaves: Leaves, wanted: Sequence[bool]) -> tuple[Leaves, Any, Any]:
        """Run the backward rule on all examples; sum over them where a leaf was shared."""
        with _reopened(self.trace):
            outs, treedef, pull = self.inner.vjp(trace, self._examples(leaves), wanted)
            outs = self._collected(outs)

        def batched_pull(bars: Leaves) -> Leaves:
            with _reopened(self.trace):
                own = [None if bar is None else self.trace.variable(bar) for bar in bars]
                pulled = pull(own)
                return [
                    None if bar is None else self._summed(bar, is_batched)
                    for bar, is_batched in zip(pulled, self.batched, strict=True)
                ]

        return outs, treedef, batched_pull

    def jvp(self, trace: Trace, leaves: Leaves, dots: Leaves) -> tuple[Leaves, Any, Leaves]:
        """Run the forward rule on all examples."""
        with _reopened(self.trace):
            primals, dots = self._examples(leaves), self._dots(dots)
            outs, treedef, out_dots = self.inner.jvp(trace, primals, dots)
            return self._collected(outs), treedef, self._collected(out_dots)

    def linear(
        self, trace: Trace, leaves: Leaves, wanted: Sequence[bool]
    ) -> tuple[Leaves, Any, Any]:
        """Push the tangents of all examples."""
        with _reopened(self.trace):
            outs, treedef, push = self.inner.linear(trace, self._examples(leaves), wanted)
            outs = self._collected(outs)

        def batched_push(dots: Leaves) -> Leaves:
            with _reopened(self.trace):
                return self._collected(push(self._dots(dots)))

        return outs, treedef, batched_push

    def _equation(self, outs: Leaves) -> Leaves:
        """Return the residuals of all examples."""
        with _reopened(self.trace):
            found = self.inner.equation(list(map(self.trace.variable, outs)))  # type: ignore[misc]
            return self._collected(found)

    def _examples(self, leaves: Leaves) -> Leaves:
        return [
            self.trace.variable(leaf) if is_batched else leaf
            for leaf, is_batched in zip(leaves, self.batched, strict=True)
        ]

    def _dots(self, dots: Leaves) -> Leaves:
        # All of them batched, as tracers of a later level may be among them: those would not know
        # that they are below this one.
        return [
            None
            if dot is None
            else self.trace.variable(full_batch(dot, is_batched, self.trace.size))
            for dot, is_batched in zip(dots, self.batched, strict=True)
        ]

    def _collected(self, outs: Leaves) -> Leaves:
        return [self._full(out) if is_floating(out) else out for out in outs]

    def _full(self, out: Any) -> Any:
        own = type(out) is Tracer and out._trace is self.trace
        return full_batch(out._value if own else unwrap(out), own, self.trace.size)

    def _summed(self, bar: Any, is_batched: bool) -> Any:
        full = self._full(bar)
        return full if is_batched else np.sum(full, axis=0)


_guard = threading.Lock()
# How many threads have reopened a trace, by its level.
_users: dict[int, int] = {}


@contextlib.contextmanager
def _reopened(trace: BatchTrace) -> Iterator[None]:
    """Let `trace` go on for the time of the block, should it have ended.

    The residuals of a pullback are tracers of the `vmap` that ran the forward rule, and that may be
    run again by `checkpoint`. What is computed stays in the block, so that no later trace meets it.
    """
    with _guard:
        again = trace.ended or trace.level in _users
        if again:
            _users[trace.level] = _users.get(trace.level, 0) + 1
            trace.ended = False
    if not again:
        yield
        return
    try:
        with BatchTrace(trace.origin, trace.size):  # so that this thread knows of a `vmap`
            yield
    finally:
        with _guard:
            _users[trace.level] -= 1
            if not _users[trace.level]:
                del _users[trace.level]
                trace.ended = True
