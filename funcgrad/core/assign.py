"""Assignment to traced arrays: a tracer is a handle on an immutable value.

``y[i] = v`` computes a new value by the primitive that answers for `operator.setitem`, and the
handle `y` moves on to it. NumPy would also change every array that shares memory with `y`; a
handle cannot, so assignment is refused where such an array is alive, and on the arguments of
the transformed function, which belong to the caller.

Tracers that share memory share one `Alias`. Most arrays have none.
"""

from __future__ import annotations

import operator
import weakref
from typing import Any

import numpy as np

from funcgrad.core.level import TracerBase, concrete, traced_here
from funcgrad.core.primitive import FUNCTIONS
from funcgrad.core.zero import shape_of
from funcgrad.errors import MutationError, ShapeError, describe, user_line

__all__ = ["ARGUMENT", "Alias", "assign", "link", "move"]


class Alias:
    """The tracers that share one piece of memory, or the mark of a read-only argument."""

    __slots__ = ("limit", "members", "read_only")

    def __init__(self, *, read_only: bool = False):
        self.read_only = read_only
        self.members: list[weakref.ref[TracerBase]] = []
        self.limit = 8

    def add(self, tracer: TracerBase) -> None:
        """Let `tracer` share this memory."""
        tracer._alias = self
        if self.read_only:
            return
        if len(self.members) >= self.limit:  # a loop over the rows of an array makes many views
            self.members = [member for member in self.members if member() is not None]
            self.limit = 2 * len(self.members) + 8
        self.members.append(weakref.ref(tracer))

    def others(self, tracer: TracerBase) -> list[TracerBase]:
        """Return the tracers, other than `tracer`, that are still alive."""
        alive = (member() for member in self.members)
        return [other for other in alive if other is not None and other is not tracer]


# The alias of every argument of a transformed function, and of the views of one.
ARGUMENT = Alias(read_only=True)


def link(view: Any, base: Any) -> None:
    """Note that `view`, just made from `base`, may share its memory."""
    if not isinstance(view, TracerBase) or not isinstance(base, TracerBase):
        return
    below, above = concrete(view), concrete(base)
    if type(below) is np.ndarray and type(above) is np.ndarray:
        if not np.may_share_memory(below, above):
            return
    elif not isinstance(below, np.ndarray):
        return  # a scalar is a value, whatever it was taken from
    alias = base._alias
    if alias is None:
        alias = Alias()
        alias.add(base)
    alias.add(view)


def move(handle: TracerBase, new: Any) -> None:
    """Make `handle` stand for the value of `new`."""
    if isinstance(new, TracerBase):
        handle._trace, handle._value, handle._extra = new._trace, new._value, new._extra
    else:  # only a constant can be replaced by a constant
        handle._value = new
    if handle._alias is not None:
        handle._alias = None


def check_assignable(handle: TracerBase) -> None:
    """Raise `MutationError` unless `handle` may be assigned to."""
    alias = handle._alias
    if alias is not None and alias.read_only:
        raise MutationError(
            "an argument of a transformed function (or a view of one) was assigned to in place",
            where=f"{user_line()}; {traced_here(handle)}",
            fix="copy it first: y = x.copy(); y[i] = v. "
            "Or use y = funcgrad.at(x)[i].set(v), and x = x + y in place of x += y",
        )
    others = [] if alias is None else alias.others(handle)
    if others:
        raise MutationError(
            "these two share memory: the array assigned to, and a view of it (or the array that "
            "it is a view of)",
            where=f"{user_line()}; {describe(concrete(handle))} and "
            f"{describe(concrete(others[0]))}, traced by {handle._trace.origin}",
            fix="copy one of them first: y = y.copy(); y[i] = v. "
            "Or use y = funcgrad.at(y)[i].set(v)",
        )
    value = concrete(handle)
    if shape_of(value) == () and not isinstance(value, np.ndarray):
        raise MutationError(
            f"a scalar was assigned to in place: {describe(value)}",
            where=user_line(),
            fix="write x = v",
        )
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        raise MutationError(
            "assignment destination is read-only: it is a broadcast view",
            where=f"{user_line()}; {traced_here(handle)}",
            fix="copy it first: y = y.copy(); y[i] = v",
        )


def assign(handle: TracerBase, index: Any, value: Any) -> None:
    """Do ``handle[index] = value`` as a functional update, and move the handle on."""
    check_assignable(handle)
    move(handle, FUNCTIONS[operator.setitem](handle, value, index=index))


def update(handle: TracerBase, new: Any) -> TracerBase:
    """Do ``handle op= y``, where `new` is ``handle op y``: same shape, and cast to its dtype."""
    shape, got = np.shape(concrete(handle)), np.shape(concrete(new))
    if got != shape:
        raise ShapeError(
            f"an in-place operation would change the shape from {shape} to {got}",
            where=f"{user_line()}; {traced_here(handle)}",
            fix="write x = x + y in place of x += y",
        )
    check_assignable(handle)
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
    return handle
