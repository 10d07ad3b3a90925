"""Levels: a number for each transform in progress, and what an escaped tracer says.

The one idea: every call of a transform opens a *trace* with a level higher than all before it,
and an operation is handled by the trace of the highest level among its arguments. A tracer of
a lower level is a constant to it. Nested and mixed transforms follow from that with no stack
that threads or generators could confuse. What a trace does with an operation is the business
of `funcgrad.transforms`.
"""

from __future__ import annotations

import importlib
import itertools
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import CodeType, TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from funcgrad.core.hold import Holder
from funcgrad.core.operands import note_operands
from funcgrad.errors import (
    TracerConversionError,
    TracerLeakError,
    describe,
    is_ours,
    location,
    user_line,
)

if TYPE_CHECKING:
    from funcgrad.core.elementwise import Elementwise
    from funcgrad.core.primitive import Primitive

__all__ = [
    "FIX_ASSIGNMENT",
    "Origin",
    "Trace",
    "TracerBase",
    "any_of",
    "at_opening",
    "batches_of",
    "concrete",
    "detached",
    "escaped",
    "holds_anywhere",
    "holds_tracer",
    "is_array",
    "is_batched",
    "is_careful",
    "is_differentiated",
    "is_recorded",
    "is_tracing",
    "looked_at",
    "top_trace",
    "traced_here",
    "traces_in_progress",
    "traces_integers",
]

FIX_ASSIGNMENT = (
    "in the line that makes the array write np.zeros_like(x) of a traced x, or "
    "funcgrad.numpy.zeros(shape); or join the parts with np.stack or np.concatenate"
)

_next_level = itertools.count(1).__next__


class _Active(threading.local):
    """The traces that are open in this thread, the outermost first."""

    def __init__(self) -> None:
        self.traces: list[Trace] = []


_active = _Active()


class Origin:
    """The transform call that a trace belongs to, for messages: ``grad(loss) at train.py:41``."""

    # What it takes to say it, as it is made at every call and hardly ever said.
    __slots__ = ("code", "fun", "instruction", "transform")

    def __init__(
        self, transform: str, fun: Any, code: CodeType | None = None, instruction: int = 0
    ):
        self.transform = transform
        self.fun = fun
        self.code = code
        self.instruction = instruction

    @property
    def name(self) -> str:
        """The name of the function."""
        name: str = getattr(self.fun, "__name__", type(self.fun).__name__)
        return name

    def __str__(self) -> str:
        return f"{self.transform}({self.name}){self._place()}"

    def _place(self) -> str:
        if self.code is None or is_ours(self.code.co_filename):
            return ""
        line = self.code.co_firstlineno
        for start, end, number in self.code.co_lines():
            if start <= self.instruction < end and number is not None:
                line = number
        return f" at {location(self.code, line)}"


def escaped(origin: Origin, *_: Any) -> NoReturn:
    """Raise, and say which transform a tracer escaped from; whatever was to be done with it."""
    raise TracerLeakError(
        f"a value traced by {origin.transform}({origin.name}) "
        "was used after that call had ended: it escaped",
        where=f"{user_line()}; the value was traced by {origin}",
        fix="return it from the function (with has_aux=True beside the result) "
        "instead of storing it; funcgrad.debug.value(x) reads its value, and "
        "funcgrad.debug.check_leaks() tells where it was made",
    )


def load_rules(_: Trace) -> None:
    """Import the rules, by name, before the first trace: until then nobody needs them."""
    importlib.import_module("funcgrad.rules")
    if load_rules in at_opening:  # another thread may have come first
        at_opening.remove(load_rules)


# What is done with each trace when it is opened: nothing, after the first, unless a debug mode is
# on.
at_opening: list[Callable[[Trace], None]] = [load_rules]


class Trace:
    """One transform in progress. Subclasses say what becomes of each operation.

    Used as a context manager: tracers made by it are valid inside the ``with`` block only.
    """

    __slots__ = ("ended", "holder", "level", "origin")

    # Whether what an operation keeps is used after the function has returned.
    outlives = False
    # How many axes come before those of the array that a tracer of this trace stands for.
    lead = 0
    # Whether what has no derivative is traced too: integers, truth values, positions.
    traces_all = False
    # Whether the operations are to be repeated on other values, so that nothing may depend on these
    # without being noted.
    records = False
    # Whether a backward pass shall do at once what it else does where something is not finite.
    careful = False

    def __init__(self, origin: Origin):
        self.ended = False
        self.level = _next_level()
        self.origin = origin
        self.holder: Holder | None = None

    def __enter__(self) -> Self:
        if at_opening:
            for prepare in tuple(at_opening):
                prepare(self)
        _active.traces.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        traces = _active.traces
        if traces and traces[-1] is self:
            traces.pop()
        elif self in traces:  # a generator may end later than what it was started in
            traces.remove(self)
        self.ended = True
        try:
            self.close()
        finally:
            if self.holder is not None:
                self.holder.release(error, self.origin)
        # ``a[0] = x`` with an ndarray `a` asks for float(x), and NumPy hides our answer behind
        # "setting an array element with a sequence".
        if kind in (ValueError, SystemError) and error is not None:
            cause = error.__cause__
            if isinstance(cause, TracerConversionError):
                # It knows the function; or it is in C code of SciPy that overlooks errors.
                if cause.fix.startswith("use funcgrad.") or kind is SystemError:
                    raise cause.with_traceback(traceback) from None
                raise TracerConversionError(
                    "an element of a plain NumPy array cannot be a traced value",
                    where=cause.where,
                    fix=FIX_ASSIGNMENT,
                ).with_traceback(traceback) from None
            note_operands(error, traceback, self.origin)

    def noted(self, name: str, args: Sequence[Any], outs: Sequence[Any]) -> None:
        """Take notice of a call of a function with rules of its own that `process` did not see."""

    def transposing(self) -> None:
        """Take notice that forward mode is about to transpose a backward rule of the user's."""

    def covers(self, base: Trace) -> bool:
        """Tell whether what is run now is run on some of the examples of `base`, a vmap, only."""
        return False

    def close(self) -> None:
        """Make every later use of this trace's tracers raise, and free what they kept alive."""

    def hold(self, array: Any) -> Any:
        """Return a plain array of the user's, or a copy, that keeps its present values."""
        if self.holder is None:
            self.holder = Holder(outlives=self.outlives)
        return self.holder.hold(array)

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Carry out `primitive` on arguments of which at least one is a tracer of this trace."""
        raise NotImplementedError

    def part(
        self, primitive: Primitive, x: Any, index: Any, scatter: Callable[[Any, Any, Any], Any]
    ) -> Any:
        """Short path of `process` for ``x[index]`` with slices and integers.

        ``scatter(out_bar, shape, index)`` is the pullback.
        """
        return self.process(primitive, (x,), {"index": index})

    def unary(self, primitive: Elementwise, fun: Callable[[Any], Any], x: Any) -> Any:
        """Short path of `process` for an elementwise function of one argument."""
        raise NotImplementedError

    def binary(self, primitive: Elementwise, fun: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
        """Short path of `process` for an elementwise function of two arguments."""
        raise NotImplementedError

    def function(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Carry out a function that is no primitive, whose results have no derivative.

        For traces that record.
        """
        raise NotImplementedError

    def called(
        self, name: str, run: Callable[..., Any], again: Callable[..., Any], leaves: list[Any]
    ) -> Any:
        """Carry out ``run(leaves)``, of a function with rules that `again` follows when traced.

        For traces that record. Both functions return leaves and a structure.
        """
        raise NotImplementedError

    def region(self, name: str, **fields: Any) -> AbstractContextManager[Any]:
        """Note that what is carried out in the block belongs together.

        For traces that record.
        """
        raise NotImplementedError

    def look(self, tracer: TracerBase, what: str, *, library: bool = False) -> Any:
        """Return the value of a tracer, on which the function goes on to depend by `what`.

        For traces that record: what they recorded holds for this value alone. `library` says that
        it is not the user who asks, but a rule of ours.
        """
        return tracer._value

    def look_finite(self, values: Sequence[TracerBase]) -> bool:
        """Tell whether the function may rely on all of these values being finite.

        For traces that record. Who is told no does what is right in either case.
        """
        return False

    def detach(self, tracer: TracerBase, below: Any) -> Any:
        """Return a tracer of what is left of `tracer` without derivatives, which is `below`.

        For traces that trace all.
        """
        return type(tracer)(self, below, None)

    def escaped(self) -> NoReturn:
        """Raise, because a tracer of this trace was used after it had been closed."""
        escaped(self.origin)


class TracerBase:
    """What every tracer holds; `funcgrad.core.tracer.Tracer` gives it NumPy's behaviour.

    Attributes
    ----------
    _trace : Trace
        The transform that this tracer belongs to.
    _value : array_like
        The primal: an array, a scalar, or a tracer of a lower level.
    _extra : object
        What the trace keeps with it: a tape index, a tangent, ...
    _alias : object
        None for an array that shares no memory; see `funcgrad.core.assign`.
    """

    __slots__ = ("__weakref__", "_alias", "_extra", "_trace", "_value")

    _trace: Trace
    _value: Any
    _extra: Any
    _alias: Any

    def __init__(self, trace: Trace, value: Any, extra: Any):
        self._trace = trace
        self._value = value
        self._extra = extra
        self._alias = None


def is_tracing() -> bool:
    """Tell whether a transform is in progress in this thread."""
    return bool(_active.traces)


def traces_in_progress() -> tuple[Trace, ...]:
    """Return the traces that are open in this thread, the outermost first."""
    return tuple(_active.traces)


def is_careful() -> bool:
    """Tell whether a backward pass in this thread shall expect values that are not finite."""
    for trace in _active.traces:  # noqa: SIM110 - once a gradient, where `any` costs thrice as much
        if trace.careful:
            return True
    return False


def traces_integers() -> bool:
    """Tell whether integers may be traced in this thread: under `vmap`, or when recording."""
    return any(trace.traces_all for trace in _active.traces)


def holds_tracer(value: Any) -> bool:
    """Tell whether a value, or a list in lists, holds a tracer."""
    if isinstance(value, list | tuple):
        return any(map(holds_tracer, value))
    return isinstance(value, TracerBase)


def top_trace(args: Sequence[Any]) -> Trace | None:
    """Return the trace of the highest level among `args`, or None when nothing is traced."""
    top = None
    for arg in args:
        if isinstance(arg, TracerBase):
            trace = arg._trace
            if top is None or trace.level > top.level:
                top = trace
    return top


def concrete(value: Any) -> Any:
    """Return the plain array or number at the bottom of `value`."""
    while isinstance(value, TracerBase):
        value = value._value
    return value


def detached(value: Any) -> Any:
    """Return `value` without its derivatives: plain, in a batch still, or still recorded.

    For rules that ask where elements lie or which was taken, and not for numbers.
    """
    if not isinstance(value, TracerBase):
        return value
    trace, below = value._trace, detached(value._value)
    return trace.detach(value, below) if trace.traces_all else below


def is_recorded(value: Any) -> bool:
    """Tell whether what is done with `value` is recorded, to be repeated on other values."""
    while isinstance(value, TracerBase):
        if value._trace.records:
            return True
        value = value._value
    return False


def looked_at(value: Any, what: str) -> Any:
    """Return the plain array or number at the bottom of `value`, as `concrete` does.

    For code that does something else if the numbers are others. Where it is recorded, the record
    says so: `what` is a few words for it, such as ``the number of steps``.
    """
    while isinstance(value, TracerBase):
        trace = value._trace
        value = trace.look(value, what, library=True) if trace.records else value._value
    return value


def any_of(mask: Any) -> bool:
    """Tell whether a mask holds anywhere; of one that is recorded, that it may.

    For code that has less to do where it does not, and gives the same either way.
    """
    if is_recorded(mask):
        return 0 not in mask.shape
    return bool(np.any(concrete(mask)))


def holds_anywhere(mask: Any, what: str) -> bool:
    """Tell whether a mask holds anywhere, in any example.

    For checks: where it is recorded, the record says that it depends on that.
    """
    return bool(np.any(looked_at(np.any(mask), what)))


def batches_of(value: Any) -> tuple[Trace, ...]:
    """Return the vmaps in which a value has examples, in the order of their axes."""
    found = []
    while isinstance(value, TracerBase):
        if value._trace.lead:
            found.append(value._trace)
        value = value._value
    return tuple(found[::-1])


def is_batched(value: Any) -> bool:
    """Tell whether `value` differs from example to example, at any level."""
    while isinstance(value, TracerBase):
        if value._trace.lead:
            return True
        value = value._value
    return False


def is_differentiated(value: Any) -> bool:
    """Tell whether a transform that takes derivatives watches `value`: not `vmap` by itself."""
    while isinstance(value, TracerBase):
        if value._trace.level > 0 and not value._trace.traces_all:
            return True
        value = value._value
    return False


def is_array(value: Any) -> bool:
    """Tell whether `value` stands for an array rather than a scalar.

    Of examples without axes the values are in one array: they count as scalars, as which NumPy
    would have them one by one.
    """
    while isinstance(value, TracerBase):
        if value._trace.lead:
            return len(value.shape) > 0  # type: ignore[attr-defined]
        value = value._value
    return hasattr(value, "shape") and not isinstance(value, np.generic)


def traced_here(tracer: TracerBase) -> str:
    """Describe a tracer for a message: ``float64[3], traced by grad(loss) at train.py:41``."""
    what = describe(tracer if is_array(tracer) or tracer._trace.lead else concrete(tracer))
    if tracer._trace.level == 0:
        return f"{what}, a constant array made in the function"
    return f"{what}, traced by {tracer._trace.origin}"
