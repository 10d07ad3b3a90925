"""What `jit` refuses, and what to write instead.

A program is a function of arrays. What the user's function does besides computing results of its
arguments, a program would not do again: it would be wrong at the second call, and nobody would
know. So it is an error at the first, which names the line and the way out.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from funcgrad import tree
from funcgrad.core import exits
from funcgrad.core.boxed import Boxed
from funcgrad.core.level import TracerBase, concrete
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import (
    ArgumentError,
    FuncgradError,
    MutationError,
    TracerLeakError,
    describe,
    user_line,
)

__all__ = ["AS_TEXT", "check_arguments", "check_function", "check_result", "in_words", "remedy"]

AS_ARRAY = "an array of its values"
AS_TEXT = "its value in a text"
_LENGTHS = ("an index", "int()", "the argument")


def check_function(fun: Any) -> None:
    """Raise for functions that give their results piece by piece, or later."""
    inner = fun
    while isinstance(inner, functools.partial):
        inner = inner.func
    kinds: tuple[tuple[Callable[[Any], bool], str, str], ...] = (
        (inspect.isgeneratorfunction, "a generator function", "return a list in place of yield"),
        (inspect.iscoroutinefunction, "an async function", "compile the part that computes"),
        (inspect.isasyncgenfunction, "an async generator", "compile the part that computes"),
    )
    for is_one, kind, fix in kinds:
        if is_one(inner):
            raise ArgumentError(
                f"jit cannot compile {getattr(inner, '__name__', 'this')}, {kind}: what it "
                "computes is not done when it returns",
                where=user_line(),
                fix=fix,
            )


def check_arguments(
    args: Any, kwargs: Any, treedef: Any, leaves: Sequence[int], names: Sequence[str], name: str
) -> None:
    """Raise if a function has written to the lists and dicts of its arguments.

    Parameters
    ----------
    args, kwargs : pytree
        What it was given.
    treedef : TreeDef
        The structure of that.
    leaves : sequence of int
        The identities of the leaves.
    names : sequence of str
        What the arguments are called.
    name : str
        What the function is called.
    """
    found, after = tree.flatten((args, kwargs))
    if after == treedef and list(map(id, found)) == list(leaves):
        return
    again = tree.leaves((args, kwargs))
    if after == treedef and any(a is not b for a, b in zip(found, again, strict=True)):
        return  # a class that makes its leaves anew each time
    given, named = tree.unflatten(treedef, list(leaves))
    before = [*given, *[named[key] for key in sorted(named)]]
    now = [*args, *[kwargs[key] for key in sorted(kwargs)]]
    for path, old, new in zip(names, before, now, strict=True):
        own, structure = tree.flatten(new)
        if structure != tree.structure(old) or list(map(id, own)) != tree.leaves(old):
            kind = type(new).__name__
            raise MutationError(
                f"{name} changed the {kind} that it was given as {path}: under jit that would "
                "happen once alone, and to a copy",
                where=f"{path} of {name}, {user_line()}",
                fix=f"change a copy, {kind}({path}) for instance, and return what the caller needs",
            )


def check_result(leaf: Any, path: str, name: str) -> None:
    """Raise if what a function returns, and is no array, holds traced values or makes them."""
    place = f"the result{path} of {name}"
    if isinstance(leaf, types.GeneratorType | types.CoroutineType | map | filter | zip):
        raise ArgumentError(
            f"{place} is {type(leaf).__name__}, of which nothing is computed yet",
            where=user_line(),
            fix="return a list of it",
        )
    for part in _held(leaf):
        if isinstance(part, TracerBase):
            raise TracerLeakError(
                f"{place} is {_kind(leaf)}, in which there is a traced value",
                where=f"{user_line()}; {describe(part)}",
                fix="return arrays in dicts, lists, tuples and named tuples, or register the class "
                "with funcgrad.pytree; a function returned by another one cannot be compiled",
            )


def _held(leaf: Any) -> Iterator[Any]:
    """Yield what an object holds that is no pytree: attributes, or what a function closes over."""
    if isinstance(leaf, Boxed | type | types.ModuleType):
        return
    if isinstance(leaf, functools.partial):
        yield from tree.leaves((leaf.args, leaf.keywords))
    if isinstance(leaf, types.FunctionType):
        for cell in leaf.__closure__ or ():
            try:
                yield from tree.leaves(cell.cell_contents)
            except ValueError:  # of a name that is assigned to later
                continue
        return
    if isinstance(leaf, set | frozenset):
        yield from leaf
    for value in getattr(leaf, "__dict__", {}).values():
        yield from tree.leaves(value)


def _kind(leaf: Any) -> str:
    if isinstance(leaf, types.FunctionType):
        return f"the function {leaf.__name__}"
    return f"an object of the class {type(leaf).__name__}"


def in_words(what: str, tracer: TracerBase) -> str:
    """Write what is asked for: ``the truth value of a number``."""
    shape = shape_of(concrete(tracer))
    kind = "a number" if shape == () else f"an array of shape {shape}"
    if what == AS_ARRAY:
        return f"the value of {kind}, to put it into a plain array"
    if what == AS_TEXT:
        return f"the value of {kind}, to put it into a text"
    return f"{what} of {kind}"


def remedy(what: str, tracer: TracerBase, names: Sequence[str]) -> str:
    """Say what to write where a value is asked for that depends on these arguments."""
    static = f"jit(..., static_argnames={names[0]!r})" if names else "static_argnames"
    fixed = (
        f"make what it depends on static: {static}; for a loop of that length use "
        "funcgrad.fori_loop or funcgrad.while_loop"
    )
    if what == "the truth value":
        return (
            "use funcgrad.cond(pred, f, g, x) or np.where(pred, a, b); or, if it has few "
            f"values, make what it depends on static: {static}"
        )
    if what.startswith(_LENGTHS):
        return fixed
    if what == AS_TEXT:
        return "use funcgrad.debug.print(fmt, x), which is done when the function is compiled"
    if what == AS_ARRAY:
        return _as_array(tracer, fixed)
    if what == "float()":
        return (
            "keep the array, and use NumPy's functions, which take it: np.sin(x) in place of "
            f"math.sin(x); or make what it depends on static: {static}"
        )
    return (
        "keep the array, and return what is wanted from the function; or make what it "
        f"depends on static: {static}"
    )


# What array functions want with a count, where it is no element: how long something is.
_BY_COUNT = frozenset({"arange", "argpartition", "partition", "repeat"})


def _as_array(tracer: TracerBase, fixed: str) -> str:
    """Say what to write in place of what makes a plain array, as the other transforms do.

    For a count that may be a length or an axis, what is to be `fixed`.
    """
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "__array__":
        frame = frame.f_back
    default = "use funcgrad.numpy.array or funcgrad.numpy.asarray"
    if frame is None or frame.f_back is None:
        return default
    kind, is_number = dtype_of(tracer).kind, shape_of(tracer) == ()
    use, name = exits.use_of(frame.f_back), exits.called_by(frame.f_back)
    if is_number and kind in "iub" and name in _BY_COUNT:
        return fixed
    if is_number and kind == "b" and (use == "index" or name == "take"):
        return "use np.where(condition, a, b) of the two elements"
    if is_number and kind in "iu" and (use == "index" or name == "take"):
        return (
            "write funcgrad.numpy.take(a, i, axis=0), or funcgrad.at(a)[i].get() for an index of "
            "any kind; or make the array an argument of the function"
        )
    error = exits.array_error(tracer, frame.f_back, None)
    return error.fix if isinstance(error, FuncgradError) else default
