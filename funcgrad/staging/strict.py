"""The trace of `jit`: records as the other does, and refuses what a program could not repeat.

A program is used for other values than those it was recorded with. So where the user's function
asks for a value (``if x > 0``, ``float(x)``, ``range(n)``) that is an error here, which names the
argument that the value depends on and what to write instead. Where code of ours asks, such as
`cond` for the branch to take, the answer is noted as a condition, as in every recording.

Besides, it takes down how each array lies in memory, and what shares memory with what: only a run
on real arrays shows that, and whoever reuses memory must know it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core.level import Origin, TracerBase, traced_here
from funcgrad.core.primitive import Primitive
from funcgrad.errors import ShapeError, TracerValueError, is_ours, user_line
from funcgrad.staging.equations import Var, vars_of
from funcgrad.staging.refusals import (
    AS_TEXT,
    check_arguments,
    check_result,
    in_words,
    remedy,
)
from funcgrad.staging.trace import RecordTrace

__all__ = ["StrictTrace", "layout_in_memory"]

_ndarray = np.ndarray
_OURS = __name__.partition(".")[0] + "."
# Parts of ours that ask on behalf of whoever called them.
_BETWEEN = (f"{_OURS}core.", f"{_OURS}staging.", f"{_OURS}numpy.", "numpy.")

# Functions whose results have as many elements as the values say.
_BY_VALUE = frozenset(
    {
        "argwhere",
        "bincount",
        "extract",
        "flatnonzero",
        "intersect1d",
        "nonzero",
        "setdiff1d",
        "setxor1d",
        "union1d",
        "unique",
        "unique_all",
        "unique_counts",
        "unique_inverse",
        "unique_values",
    }
)
# What is looked at in order to know how many elements there are.
_COUNTED = frozenset({"which elements are the same", "which elements are 0"})


class StrictTrace(RecordTrace):
    """Records for `jit`.

    Attributes
    ----------
    paths : callable
        Returns the paths of the variables that `variable` makes, in order, for messages.
    layouts : dict
        For each variable, by number, that is an array without gaps: ``"C"``, ``"F"``, or the order
        of its axes in memory, the slowest first, such as ``"120"``.
    aliases : dict
        For a variable, by number, the numbers of those that it shares memory with.
    """

    __slots__ = ("_arguments", "aliases", "layouts", "paths")

    def __init__(
        self, origin: Origin, paths: Callable[[], Sequence[str]], *, careful: bool = False
    ):
        super().__init__(origin, careful=careful)
        self.paths = paths
        self.layouts: dict[int, str] = {}
        self.aliases: dict[int, list[int]] = {}
        self._arguments: list[int] = []

    def new_var(self, value: Any) -> Var:
        """Make a variable for a value, and take down its layout."""
        var = super().new_var(value)
        if type(value) is _ndarray and var.shape:
            layout = layout_in_memory(value)
            if layout is not None:
                self.layouts[var.number] = layout
        return var

    def variable(self, value: Any) -> Any:
        """Make the tracer of an argument."""
        made = super().variable(value)
        self._arguments.append(made._extra.number)
        return made

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Record an operation, and what shares memory."""
        if primitive.name in _BY_VALUE and not params.get("minlength"):
            raise self._of_unknown_shape(primitive.name)
        made = super().process(primitive, args, params)
        for out in made if type(made) is tuple else (made,):
            value = out._value
            if type(value) is not _ndarray:
                continue
            for arg in args:
                if type(arg) is type(out) and arg._trace is self:
                    below = arg._value
                    if type(below) is _ndarray and np.may_share_memory(value, below):
                        self.aliases.setdefault(out._extra.number, []).append(arg._extra.number)
        return made

    def function(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Record a call of a function that is no primitive, unless its results vary in shape."""
        if getattr(function, "__name__", "") in _BY_VALUE:
            raise self._of_unknown_shape(function.__name__)
        return super().function(function, args, kwargs)

    def look(self, tracer: TracerBase, what: str, *, library: bool = False) -> Any:
        """Note that the run depends on a value; raise if it is the user's function that looks."""
        if not self.ended:
            if what in _COUNTED:
                raise self._of_unknown_shape(what)
            if not library and not _is_asked_by_us():
                raise self._branching(tracer, what)
        return super().look(tracer, what, library=library)

    def asked(self, tracer: TracerBase, what: str) -> Any:
        """Raise, as the shape of something depends on a value."""
        if self.ended:
            self.escaped()
        raise self._branching(tracer, what)

    def show(self, tracer: TracerBase) -> None:
        """Raise, as the text would be that of the first call."""
        raise self._branching(tracer, AS_TEXT)

    def check(self, args: Any, kwargs: Any, treedef: Any, leaves: Any, names: Any) -> None:
        """Raise if the function has written to its arguments."""
        check_arguments(args, kwargs, treedef, leaves, names, self.origin.name)

    def check_result(self, leaf: Any, path: str) -> None:
        """Raise if what is returned, and is no array, holds traced values."""
        check_result(leaf, path, self.origin.name)

    def _branching(self, tracer: TracerBase, what: str) -> TracerValueError:
        found = self._depends_on(tracer._extra)
        names = list(dict.fromkeys(path.partition("[")[0].partition(".")[0] for path in found))
        depends = f", depends on {', '.join(found[:4])}" if found else ""
        return TracerValueError(
            f"jit({self.origin.name}) compiles for all values of its arguments, but here the "
            f"function asks for one: {in_words(what, tracer)}",
            where=f"{user_line()}; {traced_here(tracer)}{depends}",
            fix=remedy(what, tracer, names),
        )

    def _of_unknown_shape(self, name: str) -> ShapeError:
        what = name if " " in name else f"the shape of what {name} returns"
        if name == "nonzero":
            what = "the shape of x[mask], or of what nonzero returns,"
        return ShapeError(
            f"{what} depends on the values, and jit({self.origin.name}) compiles for all of them",
            where=f"{user_line()}; in {self.origin}",
            fix="keep all elements and mask them: np.where(mask, x, 0), or np.sum(x, where=mask); "
            "or call it outside of jit",
        )

    def _depends_on(self, var: Var) -> list[str]:
        """Return the paths of the arguments that a variable is computed of."""
        wanted = {var.number}
        for _, inputs, _, outputs, _, _, _ in reversed(self.rows):
            if any(out is not None and out.number in wanted for out in outputs):
                wanted.update(v.number for v in vars_of(inputs))
        paths = self.paths()
        return [
            path for path, number in zip(paths, self._arguments, strict=False) if number in wanted
        ]


def layout_in_memory(value: Any) -> str | None:
    """Return ``"C"``, ``"F"``, or the order of the axes, the slowest first; None with gaps."""
    flags = value.flags
    if flags.c_contiguous:
        return "C"
    if flags.f_contiguous:
        return "F"
    shape, strides = value.shape, value.strides
    if len(shape) > 9 or 0 in shape:
        return None
    order = sorted(range(len(shape)), key=lambda axis: (-strides[axis], -shape[axis]))
    step = value.itemsize
    for axis in reversed(order):
        if shape[axis] != 1 and strides[axis] != step:
            return None
        step *= shape[axis]
    return "".join(map(str, order))


def _is_asked_by_us() -> bool:
    """Tell whether it is a function of this package that asks for a value, and not the user's."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__", "") + "."
        if not module.startswith(_BETWEEN):
            return module.startswith(_OURS) or is_ours(frame.f_code.co_filename)
        frame = frame.f_back
    return False
