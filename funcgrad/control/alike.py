"""Branches that return alike: the same structure and shapes, whichever is chosen.

The one idea: only the branch that is chosen is called, so what the other would return is not known.
But it was called another time perhaps. So of each pair of functions it is remembered what they
returned when they were first called; when both have been, on operands that are alike, the two are
compared, and from then on nothing more is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.control.carry import aval_of, place_of, shown
from funcgrad.core.level import Origin, TracerBase
from funcgrad.errors import ShapeError

__all__ = ["CHECKING", "Returned", "call_branch", "check_alike"]

# Whether to run the branches that are not chosen, and compare: `funcgrad.debug.check_branches`.
CHECKING: ContextVar[bool] = ContextVar("funcgrad_check_branches", default=False)

# How many groups of branches are remembered.
_MANY = 1000


class Returned:
    """What a branch returned, without the values."""

    __slots__ = ("avals", "paths", "place", "structure")

    def __init__(self, fun: Callable[..., Any], out: Any):
        pairs, self.structure = tree.flatten_with_path(out)
        self.paths = [path for path, _ in pairs]
        self.avals = [aval_of(leaf) for _, leaf in pairs]
        self.place = place_of(fun)


def check_alike(first: Returned, other: Returned, out: Any, origin: Origin) -> None:
    """Raise unless two branches return the same structure and shapes; `out` is of the other."""
    if first.structure != other.structure:
        tree.check_match(
            first.structure,
            out,
            what=f"the branches of {origin.transform} must return the same structure",
            where=f"{origin}: what {other.place} returned,",
            against=f"what {first.place} returned",
        )
    for path, aval, aval2 in zip(first.paths, first.avals, other.avals, strict=True):
        if aval[0] != aval2[0]:
            words = tree.keystr(path)
            raise ShapeError(
                f"the branches of {origin.transform} must return the same shapes: "
                f"{first.place} returned {shown(aval)}, {other.place} {shown(aval2)}",
                where=f"the output{f' at {words}' if words else ''} of {origin}",
                fix="return arrays of one shape from all branches",
            )


def call_branch(
    number: int, branches: Sequence[Any], operands: tuple[Any, ...], origin: Origin
) -> Any:
    """Call the branch that is chosen, and compare what it returns with what others did."""
    # A function may be made anew for each call: its code is what stays the same.
    key = tuple([id(getattr(branch, "__code__", branch)) for branch in branches])
    if CHECKING.get():
        return _all_called(number, branches, operands, origin)
    group = _groups.get(key)
    out = branches[number](*operands)
    if group is not None and (group.settled or number in group.returned):
        return out
    if not all(type(branch) in _REMEMBERED for branch in branches):
        return out
    if group is None:
        if len(_groups) > _MANY:
            _groups.clear()
        group = _groups[key] = _Group(branches)
    group.compare(number, branches, operands, out, origin)
    return out


def _all_called(
    number: int, branches: Sequence[Any], operands: tuple[Any, ...], origin: Origin
) -> Any:
    out = branches[number](*operands)
    first = Returned(branches[number], out)
    token = CHECKING.set(False)
    try:
        for other in branches:
            try:
                made = other(*operands)
            except Exception:  # it was not chosen, perhaps for this reason
                continue
            check_alike(first, Returned(other, made), made, origin)
    finally:
        CHECKING.reset(token)
    return out


# What is remembered


# Other objects with a `__call__` may be made anew for each call, of anything.
_REMEMBERED = frozenset({FunctionType, MethodType, BuiltinFunctionType, np.ufunc})


class _Group:
    """The branches of one call, or of calls with the same functions.

    Attributes
    ----------
    settled : bool
        All have been called.
    returned : dict
        By number of the branch, on what it was first called and what it returned.
    """

    __slots__ = ("held", "returned", "settled")

    def __init__(self, branches: Sequence[Any]):
        # So that no other object comes to have the same id.
        self.held = [getattr(branch, "__code__", branch) for branch in branches]
        self.returned: dict[int, tuple[Any, Returned]] = {}
        self.settled = False

    def compare(
        self,
        number: int,
        branches: Sequence[Any],
        operands: tuple[Any, ...],
        out: Any,
        origin: Origin,
    ) -> None:
        """Compare what a branch returned with what others did, and remember it."""
        asked = _situation(branches, operands)
        made = Returned(branches[number], out)
        for before, first in self.returned.values():
            if before == asked:
                check_alike(first, made, out, origin)
        self.returned[number] = asked, made
        self.settled = len(self.returned) == len(self.held)


_groups: dict[tuple[Any, ...], _Group] = {}


def _situation(branches: Sequence[Any], operands: tuple[Any, ...]) -> Any:
    """Return what decides which shapes branches return, to be compared with that of another call.

    The shapes of the operands, and of whatever else the functions refer to; of an integer its
    value.
    """
    found = _looks(operands)
    for branch in branches:
        if isinstance(branch, MethodType):
            found += _looks(branch.__self__)
            branch = branch.__func__
        if type(branch) is FunctionType:
            found += _looks((branch.__defaults__, branch.__kwdefaults__))
            for cell in branch.__closure__ or ():
                try:
                    found += _looks(cell.cell_contents)
                except ValueError:  # empty
                    found.append(None)
            for name in branch.__code__.co_names:
                found += _looks(branch.__globals__.get(name))
    return found


def _looks(value: Any) -> list[Any]:
    try:
        leaves, treedef = tree.flatten(value)
    except Exception:  # no pytree: a dict with keys that cannot be sorted
        return [object()]
    return [treedef, *map(_look, leaves)]


def _look(leaf: Any) -> Any:
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if isinstance(shape, tuple) and dtype is not None:
        if shape == () and dtype.kind in "iub" and not isinstance(leaf, TracerBase):
            return dtype, int(leaf)
        return shape, dtype
    if isinstance(leaf, float | complex):
        return type(leaf)
    if isinstance(leaf, int | str | bytes):
        return type(leaf), leaf
    if isinstance(leaf, FunctionType):
        return id(leaf.__code__) if leaf.__closure__ is None else object()
    if isinstance(leaf, ModuleType | type | np.ufunc | BuiltinFunctionType):
        return id(leaf)
    return object()  # what it is now says nothing of what it is then: equal to nothing
