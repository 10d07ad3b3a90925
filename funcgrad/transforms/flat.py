"""Pytree arguments to flat lists of traced leaves and back: what all transforms do first and last.

The one idea: which leaves are differentiated is decided by `is_differentiable` alone. Floating and
complex leaves are; strings, callables, Python integers and the like pass through untouched and
have None in the place of a derivative; an integer array is an error, because the derivative that
somebody expects of it does not exist.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core.foreign import PLAIN, refuse, refuse_leaf
from funcgrad.core.level import Origin, Trace, TracerBase, concrete
from funcgrad.core.tracer import Tracer, unwrap
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import (
    ArgumentError,
    DtypeError,
    ShapeError,
    TreeMismatchError,
    describe,
    user_line,
)

__all__ = [
    "Transformed",
    "call_origin",
    "check_callable",
    "check_like",
    "differentiable_leaves",
    "flatten_output",
    "lower",
    "lower_tree",
    "parameter_name",
    "select",
    "snapshot",
    "split_aux",
]


class Transformed:
    """A function made by a transform: callable, a method in a class body, and picklable.

    Subclasses implement `__call__`.
    """

    transform = "transform"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, transformed."""
        raise NotImplementedError

    def __init__(self, make: Callable[..., Any], fun: Callable[..., Any], options: dict[str, Any]):
        check_callable(self.transform, fun, "{}(f)(x), not {}(f(x))")
        self.fun = fun
        self._make = make
        self._options = options
        # Without `updated`, a transform of a transform would take over the inner one's state.
        functools.update_wrapper(self, fun, updated=())

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self) -> str | tuple[Any, ...]:
        # Used as a decorator, this object is what the function's name means now.
        found: Any = sys.modules.get(getattr(self.fun, "__module__", None) or "")
        name: str = getattr(self.fun, "__qualname__", "")
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is self:
            return name
        return _remake, (self._make, self.fun, self._options)

    def __repr__(self) -> str:
        return f"{self.transform}({getattr(self.fun, '__name__', self.fun)})"


def _remake(make: Callable[..., Any], fun: Any, options: dict[str, Any]) -> Any:
    return make(fun, **options)


def check_callable(transform: str, fun: Any, fix: str = "{}(f, ...), not {}(f(x), ...)") -> None:
    """Raise unless `fun` can be called."""
    if isinstance(fun, classmethod | property):
        kind = type(fun).__name__
        raise ArgumentError(
            f"{transform} takes a function, got a {kind}",
            where=user_line(),
            fix=f"write @{kind} above @{transform}",
        )
    if not callable(fun):
        raise ArgumentError(
            f"{transform} takes a function, got {describe(fun)}",
            where=user_line(),
            fix="write " + fix.format(transform, transform),
        )


def call_origin(transform: str, fun: Any, depth: int = 2) -> Origin:
    """Note who called, for messages."""
    frame = sys._getframe(depth)
    return Origin(transform, fun, frame.f_code, frame.f_lasti)


def lower(value: Any, trace: Trace) -> Any:
    """Return the value below `trace`; values that it does not trace are returned as they are."""
    if type(value) is Tracer:
        level = value._trace.level
        if level == trace.level:
            return unwrap(value._value)
        if value._trace.ended:  # kept from an earlier call
            value._trace.escaped()
        if level == 0:
            return value._value
        if level > trace.level:  # of an inner transform, which has ended
            value._trace.escaped()
    return value


def lower_tree(values: Any, trace: Trace) -> Any:
    """Apply `lower` to every leaf."""
    return tree.map(lambda leaf: lower(leaf, trace), values)


def split_aux(out: Any, trace: Trace) -> tuple[Any, Any]:
    """Split what a function with `has_aux` returned into the output and the auxiliary part."""
    if not isinstance(out, tuple) or len(out) != 2:
        raise ArgumentError(
            f"{trace.origin.transform} with has_aux=True needs a function that returns a pair "
            f"(value, aux), got {describe(out)}",
            where=str(trace.origin),
            fix="return value, aux; or leave has_aux=True away",
        )
    return out[0], lower_tree(out[1], trace)


def flatten_output(out: Any, origin: Origin) -> tuple[list[Any], Any]:
    """Flatten what the function returned; raise if there is nothing in it."""
    leaves, treedef = tree.flatten(out)
    if not leaves:
        what = "None" if out is None else f"{describe(out)}, which holds no array"
        raise ArgumentError(
            f"{origin.name} returned {what}, and {origin.transform} needs an array",
            where=str(origin),
            fix="end the function with return y",
        )
    return leaves, treedef


def snapshot(value: Any) -> Any:
    """Return a copy of an array that may be written to later; other values as they are.

    The copy has the strides of the original: in another layout, sums and matrix products could
    differ in the last bit.
    """
    if not isinstance(value, np.ndarray):
        return value
    flags = value.flags
    if flags.c_contiguous or flags.f_contiguous:
        return value.copy(order="K")
    low, high = np.lib.array_utils.byte_bounds(value)
    # Of every thousandth element, say, memory counts more.
    if type(value) is not np.ndarray or high - low > 4 * value.nbytes + 65536:
        return value.copy(order="K")
    start = value.__array_interface__["data"][0] - low
    buffer = np.empty(high - low, np.uint8)
    made: Any = np.ndarray(value.shape, value.dtype, buffer, start, value.strides)
    np.copyto(made, value)
    return made


# The transforms with an option for integer leaves.
_ALLOW_INT = ("grad", "value_and_grad")


def is_differentiable(leaf: Any) -> bool | None:
    """Tell whether `leaf` has a derivative: yes, no, or (None) it is an error to want one."""
    if isinstance(leaf, float | complex):
        return True
    if isinstance(leaf, np.ndarray | np.generic | TracerBase) or (
        hasattr(leaf, "dtype") and hasattr(leaf, "shape")
    ):
        kind = getattr(leaf.dtype, "kind", "O")
        return True if kind in "fc" else None if kind in "iub" else False
    return False


def differentiable_leaves(
    leaves: Sequence[Any],
    arguments: Sequence[Any],
    names: Sequence[str],
    *,
    transform: str,
    allow_int: bool = False,
    holomorphic: bool = False,
) -> list[int]:
    """Return the positions of the leaves to differentiate; raise for those that cannot be.

    Parameters
    ----------
    leaves : sequence
        The leaves of the tuple `arguments`, in order.
    arguments, names : sequence
        The arguments that they came from, and how to call each in a message.
    """
    positions = []
    for position, leaf in enumerate(leaves):
        if type(leaf) is np.ndarray and leaf.dtype.kind == "f" and not holomorphic:
            positions.append(position)
            continue
        wanted = is_differentiable(leaf)
        if type(leaf) not in PLAIN:
            refuse_leaf(leaf, functools.partial(_where, arguments, names, position))
        if wanted is None and not allow_int:
            where = _where(arguments, names, position)
            raise DtypeError(
                f"{transform} needs floating-point (real or complex) arrays, got {describe(leaf)}",
                where=where,
                fix="convert it with x.astype(float), keep it out of the arguments that are "
                "differentiated, or pass allow_int=True to leave it alone"
                if transform in _ALLOW_INT
                else "convert it with x.astype(float), or close over it: "
                f"{transform}(lambda x: f(x, n), ...)",
            )
        if wanted:
            if holomorphic and dtype_of(leaf).kind != "c":
                raise DtypeError(
                    f"{transform} with holomorphic=True needs complex arguments, "
                    f"got {describe(leaf)}",
                    where=_where(arguments, names, position),
                    fix="write x + 0j, or leave holomorphic=True away",
                )
            positions.append(position)
    count = len(positions)
    if not count or len(arguments) > 1:
        for argument, name in zip(arguments, names, strict=True):
            parts = tree.leaves(argument)
            if any(is_differentiable(part) for part in parts) or (allow_int and parts):
                continue
            raise _nothing_to_differentiate(transform, argument, name)
    return positions


def _nothing_to_differentiate(transform: str, argument: Any, name: str) -> DtypeError:
    unknown = next((leaf for leaf in tree.leaves(argument) if _is_unregistered(leaf)), None)
    if isinstance(argument, int) and not isinstance(argument, bool):
        # One with many digits is no float.
        fix = "write a float"
        if abs(argument) < 2**53:
            fix += f": {float(argument)!r} for {argument!r}"
    elif unknown is not None:
        cls = type(unknown).__name__
        fix = f"make {cls} a node of pytrees with @funcgrad.pytree above the class, or with "
        fix += f"funcgrad.tree.register({cls}, flatten, unflatten); or pass its arrays in a dict"
    else:
        fix = "give it a float or an array of floats, or choose another argument with argnums="
    return DtypeError(
        f"{transform} needs a floating-point (real or complex) leaf to differentiate, "
        f"got {describe(argument)}",
        where=f"{name}, {user_line()}",
        fix=fix,
    )


def _is_unregistered(leaf: Any) -> bool:
    """Tell whether a leaf holds values which somebody may have expected to be leaves."""
    if isinstance(leaf, dict | list | tuple):
        return bool(leaf)
    return (
        not isinstance(leaf, type)
        and not callable(leaf)
        and bool(
            getattr(leaf, "__dict__", None)
            or getattr(type(leaf), "__dataclass_fields__", None)
            or getattr(type(leaf), "__attrs_attrs__", None)
        )
    )


def _where(arguments: Sequence[Any], names: Sequence[str], position: int) -> str:
    path, _ = tree.flatten_with_path(tuple(arguments))[0][position]
    inner: str = tree.keystr(path[1:])
    at = f" at {inner}" if inner else ""
    return f"{names[path[0].idx]}{at}, {user_line()}"


class Selection:
    """The arguments that a transform differentiates: where they are, and how to replace them."""

    __slots__ = ("args", "kwargs", "names", "places", "values")

    def __init__(self, args: list[Any], kwargs: dict[str, Any], places: list[Any]):
        self.args = args
        self.kwargs = kwargs
        self.places = places
        self.values = tuple(
            args[place] if isinstance(place, int) else kwargs[place] for place in places
        )
        self.names = [
            f"argument {place}" if isinstance(place, int) else f"argument {place!r}"
            for place in places
        ]

    def replace(self, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the call's arguments with the selected ones replaced."""
        args, kwargs = list(self.args), dict(self.kwargs)
        for place, value in zip(self.places, values, strict=True):
            if isinstance(place, int):
                args[place] = value
            else:
                kwargs[place] = value
        return args, kwargs


def select(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    argnums: tuple[int, ...],
    argnames: tuple[str, ...],
    transform: str,
) -> Selection:
    """Find the arguments that `argnums` and `argnames` mean, however they were passed."""
    places: list[Any] = []
    for number in argnums:
        if -len(args) <= number < len(args):
            places.append(number % len(args))
            continue
        name = parameter_name(fun, number) if number >= 0 else None
        if name is None or name not in kwargs:
            raise ArgumentError(
                f"argnums={number} of {transform} is out of range: "
                f"the call has {len(args)} positional argument{'s' * (len(args) != 1)}",
                where=user_line(),
                fix="count from 0, or name a keyword argument with argnames=",
            )
        places.append(name)
    for name in argnames:
        if name in kwargs:
            places.append(name)
            continue
        position = _position(fun, name)
        if position is None or position >= len(args):
            raise ArgumentError(
                f"argnames={name!r} of {transform} names no argument of the call",
                where=f"{user_line()}; the call has the keywords {sorted(kwargs)}",
                fix="pass it by that name",
            )
        places.append(position)
    if len(set(places)) != len(places):
        raise ArgumentError(
            f"argnums and argnames of {transform} name the same argument: {argnums}, {argnames}",
            where=user_line(),
            fix="name each argument once",
        )
    return Selection(list(args), kwargs, places)


def _parameters(fun: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):  # some builtins have no signature
        return []
    return [
        parameter.name
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]


def parameter_name(fun: Callable[..., Any], number: int) -> str | None:
    """Return the name of a positional parameter, if the function has that many."""
    names = _parameters(fun)
    return names[number] if number < len(names) else None


def _position(fun: Callable[..., Any], name: str) -> int | None:
    names = _parameters(fun)
    return names.index(name) if name in names else None


def check_like(
    dots: Any, primals: Any, treedef: Any, leaves: Sequence[Any], what: str
) -> list[Any]:
    """Return the leaves of a tangent or cotangent, checked against what it belongs to.

    Parameters
    ----------
    dots : pytree
        The tangent or cotangent as the user gave it; None stands for zero.
    primals : pytree
        What it must look like; `treedef` and `leaves` are its parts.
    what : str
        ``"tangent"`` or ``"cotangent"``, for messages.
    """
    parts: list[Any]
    if type(dots) is np.ndarray and len(leaves) == 1 and primals is leaves[0]:
        parts = [dots]
    elif dots is None:
        parts = [None] * len(leaves)
    else:
        try:
            parts = treedef.flatten_up_to(dots)
        except TreeMismatchError as error:
            raise TreeMismatchError(
                f"the {what} does not have the structure of what it belongs to",
                where=error.where.replace("the tree", f"the {what}", 1),
                fix=error.fix,
            ) from None
    checked: list[Any] = []
    for index, (dot, primal) in enumerate(zip(parts, leaves, strict=True)):
        if dot is None:
            checked.append(None)
            continue
        if not is_differentiable(primal):
            if np.any(dot):
                raise DtypeError(
                    f"the {what} of a leaf that has no derivative must be None",
                    where=_leaf_where(primals, index, what) + f", which is {describe(primal)}",
                    fix="give None there",
                )
            checked.append(None)
            continue
        shape, dtype = shape_of(primal), dtype_of(primal)
        if type(dot) not in PLAIN:
            refuse(dot, functools.partial(_leaf_where, primals, index, what))
        if isinstance(dot, list | tuple | str) or not (
            isinstance(dot, float | complex | int) or hasattr(dot, "dtype")
        ):
            raise DtypeError(
                f"a {what} must be an array or a number, got {describe(dot)}",
                where=_leaf_where(primals, index, what),
                fix=f"give one of shape {shape} and dtype {dtype}",
            )
        if shape_of(dot) != shape:
            raise ShapeError(
                f"the {what} has shape {shape_of(dot)}, but what it belongs to has shape {shape}",
                where=_leaf_where(primals, index, what),
                fix=f"give a {what} of shape {shape}; np.broadcast_to and np.reshape help",
            )
        if not hasattr(dot, "dtype"):  # a Python number takes the dtype that is needed
            if isinstance(dot, complex) and dtype.kind != "c":
                raise _wrong_dtype(dot, dtype, primals, index, what)
            dot = dtype.type(dot) if not isinstance(primal, float | complex) else type(primal)(dot)
        elif dot.dtype != dtype:
            if not isinstance(concrete(dot), float) or isinstance(concrete(dot), np.generic):
                raise _wrong_dtype(dot, dtype, primals, index, what)
            dot = dot.astype(dtype)  # a traced Python float
        checked.append(dot)
    return checked


def _wrong_dtype(dot: Any, dtype: Any, primals: Any, index: int, what: str) -> DtypeError:
    return DtypeError(
        f"the {what} is {describe(dot)}, but what it belongs to has dtype {dtype}",
        where=_leaf_where(primals, index, what),
        fix=f"convert the {what} with .astype({str(dtype)!r})",
    )


def _leaf_where(primals: Any, index: int, what: str) -> str:
    path, _ = tree.flatten_with_path(primals)[0][index]
    return (f"the {what} at {tree.keystr(path)}" if path else f"the {what}") + f", {user_line()}"
