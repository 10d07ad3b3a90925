"""Names of axes: which `vmap` is meant by the "i" of ``psum(x, "i")``.

The one idea: it is the innermost one around that has the name, of those in a context variable, so
that each thread and each coroutine sees its own. While an operation is carried out on all examples
at once, their vmap is not among them: a function that is called for it, an integrand for instance,
has arrays of examples before it, or one of them by itself. A rule of the user's that runs later,
in the backward pass, brings the names with it that there were around its function.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.errors import ArgumentError, AxisNameError, describe, user_line

if TYPE_CHECKING:
    from funcgrad.transforms.batching import BatchTrace

__all__ = ["Axes", "Scope", "axes_in_scope", "check_name", "named", "vmaps_of", "without"]

Axes = tuple["BatchTrace", ...]

_axes: ContextVar[Axes] = ContextVar("axes", default=())

# The axes that have names, the outermost first.
axes_in_scope = _axes.get


class Scope:
    """A block of code with other named axes around it."""

    __slots__ = ("axes", "token")

    token: Token[Axes]

    def __init__(self, axes: Axes):
        self.axes = axes

    def __enter__(self) -> None:
        self.token = _axes.set(self.axes)

    def __exit__(self, *error: object) -> None:
        _axes.reset(self.token)


def named(trace: BatchTrace) -> Scope:
    """Let the name of `trace` be known, if it has one."""
    axes = _axes.get()
    return Scope(axes if trace.axis_name is None else (*axes, trace))


def without(trace: BatchTrace) -> Scope:
    """Let nothing be known of the name of `trace`, nor of what it hides."""
    name = trace.axis_name
    return Scope(tuple([axis for axis in _axes.get() if axis.axis_name != name]))


def check_name(name: object) -> None:
    """Raise unless `name` can be the name of an axis, or None."""
    if isinstance(name, tuple | int | np.integer) or not isinstance(name, Hashable):
        raise ArgumentError(
            f"axis_name of vmap must be a name, got {describe(name)}",
            where=user_line(),
            fix='write axis_name="i"; several axes are several vmaps, one in the other'
            if isinstance(name, tuple | list)
            else 'write axis_name="i"',
        )


def vmaps_of(axis_name: Any, collective: str) -> Axes:
    """Return the vmaps that have the axes named, one for each name."""
    names = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    found = tuple([_vmap_of(name, collective) for name in names])
    if len(set(names)) < len(names):
        raise ArgumentError(
            f"{collective} was given an axis twice: {axis_name!r}",
            where=user_line(),
            fix="name each axis once",
        )
    return found


def _vmap_of(name: Any, collective: str) -> BatchTrace:
    axes = _axes.get()
    for axis in reversed(axes):
        if axis.axis_name == name:
            return axis
    if axes:
        bound = ", ".join(f"{axis.axis_name!r} (of {axis.origin})" for axis in axes)
        now = f"names that are bound here: {bound}"
    else:
        now = "no axis name is bound here"
    fix = f"call it in a function under vmap(f, axis_name={name!r})"
    if name is None or isinstance(name, int | np.integer):
        fix = f'give the name of an axis of vmap, as {collective}(x, "i") under '
        fix += 'vmap(f, axis_name="i")'
        if name is not None:
            fix += "; for an axis of the array itself use NumPy"
    elif axes:
        fix += f"; or, if that axis is meant, write {axes[-1].axis_name!r}"
    raise AxisNameError(
        f"{collective} refers to the axis name {name!r}, which no vmap around it has; {now}",
        where=user_line(),
        fix=fix,
    )
