"""Assignment to traced arrays: a tracer is a handle on an immutable value.

``y[i] = v`` computes a new value by the primitive that answers for `operator.setitem`, and the
handle `y` moves on to it; whatever was computed from the old value keeps that. NumPy would also
change every array that shares memory with `y`. Where such an array is alive, assignment is
refused, and so it is on the arguments of the transformed function, which belong to the caller.

Tracers that share memory share one `Alias`. Most arrays have none. Two things look like an
assignment with a view alive and are none:

- ``y[1:] += v`` takes a view, updates it in place and assigns it back. The update of the view
  writes through to `y` (`update`), so the assignment that follows finds its work done.
- ``y[1:] = y[:-1]`` and ``y += y.T`` hold a view while they assign. The view is spoilt instead
  (`StaleTrace`): should a name hold it, its next use raises.
"""

from __future__ import annotations

import operator
import sys
import weakref
from typing import Any, NoReturn

import numpy as np

from funcgrad.core.level import Trace, TracerBase, concrete, is_array, traced_here
from funcgrad.core.primitive import FUNCTIONS
from funcgrad.core.zero import shape_of
from funcgrad.errors import MutationError, ShapeError, describe, is_ours, user_line

__all__ = [
    "ARGUMENT",
    "Alias",
    "assign",
    "link",
    "move",
    "name_part",
    "update",
    "use_constant_trace",
]

_ndarray = np.ndarray


class Member:
    """One of the tracers that share memory, and what part of which other it is, if known."""

    __slots__ = ("base", "index", "tracer")

    def __init__(self, tracer: TracerBase, base: TracerBase | None, index: Any):
        self.tracer = weakref.ref(tracer)
        self.base = None if base is None else weakref.ref(base)
        self.index = index


class Alias:
    """The tracers that share one piece of memory, or the mark of a read-only argument."""

    __slots__ = ("limit", "members", "read_only", "written")

    def __init__(self, *, read_only: bool = False):
        self.read_only = read_only
        self.members: list[Member] = []
        self.limit = 8
        # The values of base and view after a write through the view, and the index of it.
        self.written: tuple[Any, Any, Any] | None = None

    def add(self, tracer: TracerBase, base: TracerBase | None = None, index: Any = None) -> None:
        """Let `tracer` share this memory, as ``base[index]`` if these are given."""
        tracer._alias = self
        if len(self.members) >= self.limit:  # a loop over the rows of an array makes many views
            self.members = [member for member in self.members if member.tracer() is not None]
            self.limit = 2 * len(self.members) + 8
        self.members.append(Member(tracer, base, index))

    def others(self, tracer: TracerBase, but: Any = None) -> list[TracerBase]:
        """Return the tracers, other than `tracer` and `but`, that are still alive."""
        alive = (member.tracer() for member in self.members)
        return [
            other
            for other in alive
            if other is not None and other is not tracer and other is not but
        ]

    def origin(self, view: TracerBase) -> tuple[TracerBase | None, Any]:
        """Return the array that `view` is a part of, and the index of the part."""
        for member in self.members:
            if member.tracer() is view and member.base is not None:
                return member.base(), member.index
        return None, None


# The alias of every argument of a transformed function, and of the views of one.
ARGUMENT = Alias(read_only=True)

# The trace of level 0, which lives above this module and enters itself here.
_constants: list[Trace] = []


def use_constant_trace(trace: Trace) -> None:
    """Say which trace a handle belongs to when a plain value was assigned to all of it."""
    _constants[:] = [trace]


def link(view: Any, base: Any, params: Any) -> None:
    """Note that `view`, just made from `base` with `params`, may share its memory.

    A tuple of results is looked at one by one.
    """
    if type(view) is tuple:
        for part in view:
            link(part, base, params)
        return
    if not isinstance(view, TracerBase) or not isinstance(base, TracerBase):
        return
    below = view._value
    if base._alias is ARGUMENT and type(below) is _ndarray and below.base is base._value:
        view._alias = ARGUMENT  # the usual case: part of an argument
        return
    if view._trace.lead and not is_array(view):
        return  # an element of each example: a scalar
    if type(below) is not _ndarray:
        below = concrete(below)
        if not isinstance(below, _ndarray):
            return  # a scalar is a value, whatever it was taken from
    if below.base is None and below.flags.owndata:
        # It is nobody's view; but np.real(x) of a real x, say, is x itself.
        if below is not concrete(base):
            return
    elif not _shares(below, concrete(base)):
        return
    alias = base._alias
    if alias is ARGUMENT:
        view._alias = ARGUMENT
        return
    if alias is None:
        alias = Alias()
        alias.add(base)
    if "index" in params:
        alias.add(view, base, params["index"])
    else:
        alias.add(view)


def name_part(view: Any, base: TracerBase, name: str) -> None:
    """Note that `view`, just made, is the part of `base` of that name, so that it can be written.

    Where they share no memory there is nothing to note.
    """
    alias = base._alias
    if alias is None or alias is ARGUMENT or view is base:
        return
    if isinstance(view, TracerBase) and view._alias is alias:
        alias.members[-1] = Member(view, base, name)


def _shares(below: Any, above: Any) -> bool:
    owner = below.base
    if owner is above or below is above:
        return True
    if type(owner) is _ndarray and type(above) is _ndarray:
        # NumPy makes all views of an array point to the one that owns the memory.
        return owner is above.base
    return bool(np.may_share_memory(below, above))


def move(handle: TracerBase, new: Any) -> None:
    """Make `handle` stand for the value of `new`, which shares its memory with nobody."""
    if isinstance(new, TracerBase):
        handle._trace, handle._value, handle._extra = new._trace, new._value, new._extra
    else:
        handle._trace, handle._value, handle._extra = _constants[0], new, None
    handle._alias = None


def check_assignable(handle: TracerBase, others: list[TracerBase]) -> None:
    """Raise `MutationError` unless `handle` may be assigned to; `others` share its memory."""
    if handle._alias is ARGUMENT:
        raise MutationError(
            "an argument of a transformed function (or a view of one) was assigned to in place",
            where=f"{user_line()}; {_named(handle)}, {traced_here(handle)}",
            fix="copy it first: y = x.copy(); y[i] = v. "
            "Or use y = funcgrad.at(x)[i].set(v), and x = x + y in place of x += y",
        )
    if others:
        raise _sharing(handle, others[0])
    value = concrete(handle)
    if not is_array(handle):
        raise MutationError(
            f"a scalar was assigned to in place: {describe(handle)}",
            where=user_line(),
            fix="write x = v",
        )
    # An array of its own is read-only while the backward pass needs its values of now.
    if isinstance(value, _ndarray) and not value.flags.writeable and value.base is not None:
        raise MutationError(
            "assignment destination is read-only: it is a broadcast view",
            where=f"{user_line()}; {_named(handle)}, {traced_here(handle)}",
            fix="copy it first: y = y.copy(); y[i] = v",
        )


def _sharing(handle: TracerBase, other: TracerBase) -> MutationError:
    return MutationError(
        "these two share memory, and one of them was assigned to in place, which would have to "
        "change both",
        where=f"{user_line()}; {_named(handle)}: {describe(handle)}, and "
        f"{_named(other)}: {traced_here(other)}",
        fix="copy one of them first: v = y[1:].copy(). Or use y = funcgrad.at(y)[i].set(v)"
        if _named(handle) != _NAMELESS
        else "index once: A[0, 1] = v in place of A[0][1] = v. Or copy one of them first",
    )


_NAMELESS = "an array without a name"


def _named(tracer: TracerBase) -> str:
    """Return what the user's function calls `tracer`, or what it is without a name."""
    frame: Any = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is not None:
        for name, value in frame.f_locals.items():
            if value is tracer:
                return f"{name!r}"
    return _NAMELESS


def assign(handle: TracerBase, index: Any, value: Any) -> None:
    """Do ``handle[index] = value`` as a functional update, and move the handle on.

    An `index` that is a string names a part: ``handle.real = value``.
    """
    alias = handle._alias
    view = None
    others: list[TracerBase] = []
    if alias is not None and alias is not ARGUMENT:
        if isinstance(value, TracerBase) and value._alias is alias and value is not handle:
            if _is_written(alias, handle, index, value):
                return
            view = value
        others = alias.others(handle, view)
    check_assignable(handle, others)
    move(handle, _written(handle, value, index))
    if view is not None:
        view._trace = StaleTrace(_sharing(handle, view), view._trace)


def _written(handle: TracerBase, value: Any, index: Any) -> Any:
    """Return the value of `handle` with `value` at `index`, or in the part of that name."""
    if type(index) is str:
        return FUNCTIONS[setattr](handle, value, index)
    return FUNCTIONS[operator.setitem](handle, value, index=index)


def update(handle: TracerBase, new: Any, operand: Any) -> TracerBase:
    """Do ``handle op= operand``, where `new` is ``handle op operand``, of the same shape.

    It is cast to the dtype of `handle`.
    """
    alias = handle._alias
    base = index = view = None
    others: list[TracerBase] = []
    if alias is not None and alias is not ARGUMENT:
        base, index = alias.origin(handle)
        if (
            isinstance(operand, TracerBase)
            and operand._alias is alias
            and operand is not handle
            and operand is not base
        ):
            view = operand
        others = alias.others(handle, view)
        if len(others) == 1 and others[0] is base:
            others = []  # the base can be written to as well
        else:
            base = None
    check_assignable(handle, others)
    shape, got = shape_of(handle), shape_of(new)
    if got != shape:
        raise ShapeError(
            f"an in-place operation would change the shape from {shape} to {got}",
            where=f"{user_line()}; {traced_here(handle)}",
            fix="write x = x + y in place of x += y",
        )
    dtype = concrete(handle).dtype
    if concrete(new).dtype != dtype:
        if not np.can_cast(concrete(new).dtype, dtype, casting="same_kind"):
            raise MutationError(
                f"an in-place operation cannot cast {concrete(new).dtype} to {dtype}",
                where=f"{user_line()}; {traced_here(handle)}",
                fix="write x = x + y in place of x += y",
            )
        new = new.astype(dtype)
    move(handle, new)
    if base is not None and alias is not None:
        check_assignable(base, [])
        move(base, _written(base, new, index))
        base._alias = handle._alias = alias  # they still share, as far as the user can see
        alias.written = base._value, handle._value, index
    if view is not None:
        view._trace = StaleTrace(_sharing(handle, view), view._trace)
    return handle


def _is_written(alias: Alias, base: TracerBase, index: Any, view: TracerBase) -> bool:
    """Tell whether ``base[index]`` already is `view`, by a write through it."""
    if alias.written is None:
        return False
    base_value, view_value, place = alias.written
    return (
        base._value is base_value
        and view._value is view_value
        and type(index) is type(place)
        and _plain_index(index)
        and bool(index == place)
    )


def _plain_index(index: Any) -> bool:
    """Tell whether an index holds no array, so that it compares as a whole."""
    if isinstance(index, tuple):
        return all(map(_plain_index, index))
    return not isinstance(index, _ndarray | list | TracerBase)


class StaleTrace(Trace):
    """The trace of a view whose base has been assigned to: any use of it raises."""

    __slots__ = ("error",)

    def __init__(self, error: MutationError, before: Trace):
        self.level = sys.maxsize  # above all others, so that it is asked whatever the operation
        self.origin = before.origin
        self.holder = None
        self.ended = True
        self.error = error

    def escaped(self, *_: Any) -> NoReturn:
        """Raise, whatever was to be done."""
        raise type(self.error)(self.error.what, where=self.error.where, fix=self.error.fix)

    process = unary = binary = escaped  # type: ignore[assignment]  # they take different arguments
