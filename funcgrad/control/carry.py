"""The carry of a loop, which keeps its structure, shapes and dtypes from step to step.

The one idea: after each step every leaf is compared with what it was, which is cheap while all is
well; the words of an error are made when there is one. There is one change that is allowed, at the
first step: a number, or integer array, that the loop started from takes the dtype of what the step
makes of it, as ``0`` does in a sum of floats.

The step is given its carry read-only: were it changed in place, the outputs of all steps would
be one array.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core import assign
from funcgrad.core.boxed import Boxed
from funcgrad.core.level import Origin, concrete, is_array
from funcgrad.core.tracer import Tracer, unwrap
from funcgrad.errors import (
    ArgumentError,
    DtypeError,
    FuncgradError,
    MutationError,
    ShapeError,
    TreeMismatchError,
    location,
    user_line,
)

__all__ = ["Carry", "aval_of", "explained", "place_of", "read_only", "shown"]

_ndarray = np.ndarray
_PYTHON: dict[type, np.dtype[Any]] = {kind: np.dtype(kind) for kind in (bool, int, float, complex)}
_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
# How NumPy says that it may not write.
_REFUSED = re.compile("read-only|not writeable|writable")


def place_of(fun: Any) -> str:
    """Write which function of the user's, and where it is: ``step (train.py:12)``."""
    name = getattr(fun, "__name__", type(fun).__name__)
    inner = fun
    while hasattr(inner, "func") or hasattr(inner, "__wrapped__"):  # functools.partial, wraps
        inner = inner.func if hasattr(inner, "func") else inner.__wrapped__
    code = getattr(inner, "__code__", None) or getattr(type(inner).__call__, "__code__", None)
    return name if code is None else f"{name} ({location(code, code.co_firstlineno)})"


def aval_of(leaf: Any) -> tuple[Any, Any]:
    """Return shape and dtype; for what is no array, None and its type."""
    kind = type(leaf)
    if kind in _PYTHON:
        return (), _PYTHON[kind]
    if kind is Tracer and not hasattr(concrete(leaf), "dtype"):
        return leaf.shape, _PYTHON.get(type(concrete(leaf)), leaf.dtype)
    if isinstance(leaf, Boxed):
        return leaf.shape, kind
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if shape is None or dtype is None:
        return None, kind
    return shape, dtype


def shown(aval: tuple[Any, Any]) -> str:
    """Write shape and dtype as messages show them."""
    shape, dtype = aval
    name = dtype.__name__ if isinstance(dtype, type) else str(dtype)
    return name if shape is None else f"{name}[{','.join(map(str, shape))}]"


def read_only(leaf: Any) -> Any:
    """Return a leaf that cannot be assigned to, and has the value that it has now."""
    if type(leaf) is _ndarray:
        leaf = leaf.view()
        leaf.flags.writeable = False
    elif type(leaf) is Tracer and leaf._alias is not assign.ARGUMENT and is_array(leaf):
        leaf = unwrap(leaf) if leaf._trace.level else Tracer(leaf._trace, leaf._value, leaf._extra)
        leaf._alias = assign.ARGUMENT
    return leaf


def explained(
    error: Exception, origin: Origin, fun: Any, parameters: Sequence[str], step: int
) -> Exception:
    """Return what to raise in the place of an error of the user's function.

    Parameters
    ----------
    error : Exception
        What it raised.
    origin : Origin
        The call of the loop.
    fun : callable
        The function, called with arguments that may be named `parameters`.
    step : int
        At which step.
    """
    if isinstance(error, FuncgradError):
        pass
    elif isinstance(error, ValueError) and _REFUSED.search(str(error)):
        made: FuncgradError = MutationError(
            f"{place_of(fun)} assigned in place, at step {step}, to an array that is read-only, "
            f"as are the carry of {origin.transform} and the slices that it goes over",
            where=f"{user_line()}; {origin}",
            fix="write c = c + x in place of c += x, and copy before you assign to elements: "
            "c = c.copy(); c[i] = x",
        )
        made.__cause__ = error
        return made
    elif isinstance(error, TypeError) and not _takes(fun, len(parameters)):
        many = len(parameters) > 1
        made = ArgumentError(
            f"{origin.transform} calls its function with {len(parameters)} "
            f"argument{'s' if many else ''}, which {place_of(fun)} does not take: {error}",
            where=str(origin),
            fix=f"define it as def f({', '.join(parameters)})"
            + ("" if many else ", and take that apart inside: a, b = " + parameters[0]),
        )
        made.__cause__ = error
        return made
    error.add_note(f"in step {step} of {origin}")
    return error


def _takes(fun: Any, count: int) -> bool:
    """Tell whether a function can be called with that many arguments, as far as that is known."""
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True


class Carry:
    """The structure, shapes and dtypes of a carry, and what becomes of it at a step.

    Parameters
    ----------
    origin : Origin
        The call of the loop, for messages.
    fun : callable
        The function that makes a step.
    init : pytree
        What the loop starts from.
    """

    __slots__ = (
        "_avals",
        "_first",
        "_given",
        "_single",
        "_weak",
        "fun",
        "leaves",
        "origin",
        "treedef",
    )

    def __init__(self, origin: Origin, fun: Callable[..., Any], init: Any):
        self.origin = origin
        self.fun = fun
        self.leaves, self.treedef = tree.flatten(init)
        self._avals = [aval_of(leaf) for leaf in self.leaves]
        self._weak = [type(concrete(leaf)) in _PYTHON for leaf in self.leaves]
        self._single = self.treedef.is_leaf
        self._first = True
        self._given: list[Any] = []

    def present(self, leaves: list[Any]) -> Any:
        """Return the pytree that a step is given."""
        self.leaves = leaves
        self._given = given = [read_only(leaf) for leaf in leaves]
        if self._single:
            return given[0]
        return tree.unflatten(self.treedef, self._given)

    def accept(self, made: Any, step: int, beside: Any = None) -> list[Any]:
        """Return the leaves of what a step made, having compared them with what they must be.

        `beside` is what the step returned with the carry.
        """
        if self._single and type(made) is _ndarray:
            leaves = [made]
        else:
            leaves, treedef = tree.flatten(made)
            if treedef is not self.treedef and treedef != self.treedef:
                self._complain_of_structure(made, step, beside)
        for position, aval in enumerate(self._avals):
            leaf = leaves[position]
            if leaf is self._given[position]:
                leaves[position] = self.leaves[position]  # not the view of it
            elif type(leaf) is _ndarray:
                if leaf.shape != aval[0] or (leaf.dtype is not aval[1] and leaf.dtype != aval[1]):
                    leaves[position] = self._settle(position, leaf, step)
            elif aval_of(leaf) != aval:
                leaves[position] = self._settle(position, leaf, step)
        self._first = False
        return leaves

    def _settle(self, position: int, leaf: Any, step: int) -> Any:
        """Return a leaf whose aval is another than before, if that may be."""
        old, new = self._avals[position], aval_of(leaf)
        if old[0] is not None and new[0] == old[0] and isinstance(new[1], np.dtype):
            have, get = _RANK.get(_kind(old[1])), _RANK.get(new[1].kind)
            if have is not None and get is not None:
                rises = get >= have if self._weak[position] else get > have and have < 2
                if self._first and rises:
                    self._avals[position] = new
                    return leaf
                if type(concrete(leaf)) in _PYTHON and get <= have:
                    # A Python number takes the dtype that is needed, as in NumPy.
                    dtype = old[1]
                    return leaf.astype(dtype) if type(leaf) is Tracer else dtype.type(leaf)
        is_kind = old[0] == new[0] or old[0] is None or new[0] is None
        kind = DtypeError if is_kind else ShapeError
        raise kind(
            f"the carry of {self.origin.transform} must keep its shape and dtype, but changed at "
            f"step {step}: expected {shown(old)}, found {shown(new)}",
            where=f"the carry{self._at(position)} that {place_of(self.fun)} returned; "
            f"{self.origin}",
            fix=self._advice(old, new),
        )

    def _advice(self, old: Any, new: Any) -> str:
        if old[0] is None or new[0] is None:
            return "return a value of the kind that was given"
        if old[0] != new[0]:
            return "return it with the shape it was given, or start from one of the shape returned"
        if isinstance(old[1], np.dtype) and isinstance(new[1], np.dtype):
            return f"return it with .astype({str(old[1])!r}), or start from one of {new[1]}"
        return "return a value of the kind that was given"

    def _at(self, position: int) -> str:
        pairs, _ = tree.flatten_with_path(tree.unflatten(self.treedef, self.leaves))
        path = tree.keystr(pairs[position][0])
        return f" at {path}" if path else ""

    def _complain_of_structure(self, made: Any, step: int, beside: Any) -> None:
        what = (
            f"the carry of {self.origin.transform} must keep its structure, but changed at "
            f"step {step}"
        )
        try:
            tree.check_match(
                self.treedef,
                made,
                what=what,
                where=f"{self.origin}: the carry that {place_of(self.fun)} returned,",
                against="the carry that it was given",
            )
        except TreeMismatchError as error:
            if beside is None or tree.structure(beside) != self.treedef:
                raise
            raise TreeMismatchError(
                what,
                where=error.where,
                fix="return carry, y in this order; it seems to be y, carry",
            ) from None

    def finish(self, leaves: list[Any]) -> Any:
        """Return the carry to the caller."""
        for position, leaf in enumerate(leaves):
            if (
                type(leaf) is _ndarray
                and not leaf.flags.writeable
                and leaf is not self.leaves[position]
            ):
                leaves[position] = leaf.copy()  # a view of the carry of the step before
        return tree.unflatten(self.treedef, leaves)


def _kind(dtype: Any) -> str:
    return dtype.kind if isinstance(dtype, np.dtype) else "O"


def as_pair(out: Any, origin: Origin, fun: Any, step: int) -> tuple[Any, Any]:
    """Split what a step of `scan` returned."""
    if isinstance(out, tuple | list) and len(out) == 2:
        return out[0], out[1]
    what = f"a {type(out).__name__}"
    if isinstance(out, tuple | list):
        what += f" of {len(out)}"
    raise ArgumentError(
        f"scan needs a function that returns a pair (carry, y), got {what} at step {step}",
        where=f"{place_of(fun)}; {origin}",
        fix="end it with return carry, y; y may be None",
    )
