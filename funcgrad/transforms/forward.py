"""Forward mode: `jvp` pushes a tangent along with the value, `linearize` records how to.

A tracer of a `ForwardTrace` carries its tangent. One of a `LinearTrace` carries a number, and
each operation leaves a note of how to push tangents through it; the notes, played in order, are
the linear map that `linearize` returns.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from funcgrad import tree
from funcgrad.core import assign
from funcgrad.core.convert import like
from funcgrad.core.elementwise import Elementwise
from funcgrad.core.foreign import has_derivative
from funcgrad.core.level import Origin, Trace
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracer import Tracer, unwrap
from funcgrad.core.zero import dtype_of, shape_of, spread
from funcgrad.errors import ArgumentError, ShapeError, describe, user_line
from funcgrad.transforms.flat import (
    call_origin,
    check_callable,
    check_like,
    differentiable_leaves,
    flatten_output,
    lower,
    snapshot,
    split_aux,
)
from funcgrad.transforms.tape import no_rule

__all__ = [
    "ForwardTrace",
    "LinearTrace",
    "Untransposed",
    "UntransposedTrace",
    "check_pair",
    "factor_of",
    "fit_tangent",
    "jvp",
    "linearize",
    "note",
    "push",
    "push_through",
    "wrap_outputs",
]


class _Aval(NamedTuple):
    """The shape and dtype of an array that is not kept."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def _without_values(x: Any) -> Any:
    """Return an array of the shape and dtype of `x` that takes no memory."""
    return np.broadcast_to(np.zeros((), x.dtype), x.shape) if type(x) is np.ndarray else x


def factor_of(
    primitive: Elementwise, index: int, x: Any, y: Any, out: Any, args: Any
) -> tuple[Any, Any] | None:
    """Return ``push, kept`` such that ``push(x_dot, kept)`` is the tangent by one argument."""
    keep, push = (
        (primitive.keep0, primitive.push0) if index == 0 else (primitive.keep1, primitive.push1)
    )
    if push is None:
        if index in primitive.reasons:
            return None
        raise no_rule(primitive, "jvp", args, {})
    if keep is None:
        kept = None
    elif keep == "x":
        kept = x
    elif keep == "y":
        kept = y
    elif keep == "out":
        kept = out
    else:
        kept = keep(x, y, out)
    return push, kept


def push_through(
    primitive: Elementwise, index: int, x_dot: Any, x: Any, y: Any, out: Any, args: Any
) -> Any:
    """Push one tangent through an elementwise primitive, to the shape and dtype of `out`."""
    product = factor_of(primitive, index, x, y, out, args)
    return None if product is None else spread(product[0](x_dot, product[1]), out)


# A derivative may divide by zero where it is not used. As a decorator the context costs half as
# much.
@np.errstate(all="ignore")
def _pushed(primitive: Elementwise, x_dot: Any, y_dot: Any, x: Any, y: Any, out: Any) -> Any:
    """Push tangents through an elementwise primitive."""
    if x_dot is not None:
        x_dot = push_through(primitive, 0, x_dot, x, y, out, (x, y))
    if y_dot is None:
        return x_dot
    y_dot = push_through(primitive, 1, y_dot, x, y, out, (x, y))
    return x_dot if y_dot is None else y_dot if x_dot is None else x_dot + y_dot


@np.errstate(all="ignore")
def _pushed_by_rule(
    primitive: Primitive, primals: Any, tangents: Any, out: Any, params: dict[str, Any]
) -> Any:
    """Push tangents through any other primitive."""
    out_dot = primitive.jvp(primals, tangents, out, **params)  # type: ignore[misc]
    try:
        return fit_tangent(out_dot, out)
    except ShapeError as error:
        what = error.what.replace("a forward rule", f"the jvp of primitive {primitive.name!r}", 1)
        raise ShapeError(what, where=error.where, fix=error.fix) from None


class ForwardTrace(Trace):
    """Carries tangents along."""

    __slots__ = ()

    def variable(self, value: Any, tangent: Any) -> Tracer:
        """Make an independent variable."""
        made = Tracer(self, unwrap(value), unwrap(tangent))
        made._alias = assign.ARGUMENT
        return made

    def split(self, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the values and the tangents of arguments, None for that of a constant."""
        if self.ended:
            self.escaped()
        primals, tangents = [], []
        for arg in args:
            if type(arg) is Tracer and arg._trace is self:
                primals.append(arg._value)
                tangents.append(arg._extra)
            else:
                primals.append(unwrap(arg))
                tangents.append(None)
        return primals, tangents

    def unary(self, primitive: Elementwise, fun: Callable[[Any], Any], x: Any) -> Any:
        """Push through an elementwise function of one argument."""
        if self.ended:
            self.escaped()
        value = x._value
        out = fun(value)
        if primitive.discrete:
            return out
        out_dot = _pushed(primitive, x._extra, None, value, None, out)
        return out if out_dot is None else Tracer(self, out, out_dot)

    def binary(self, primitive: Elementwise, fun: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
        """Push through an elementwise function of two arguments."""
        if self.ended:
            self.escaped()
        x_dot = y_dot = None
        if type(x) is Tracer:
            if x._trace is self:
                x_dot = x._extra
                x = x._value
            else:
                x = unwrap(x)
        if type(y) is Tracer:
            if y._trace is self:
                y_dot = y._extra
                y = y._value
            else:
                y = unwrap(y)
        out = fun(x, y)
        if primitive.discrete:
            return out
        out_dot = _pushed(primitive, x_dot, y_dot, x, y, out)
        return out if out_dot is None else Tracer(self, out, out_dot)

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Push through any other operation."""
        primals, tangents = self.split(args)
        out = primitive.bind(*primals, **params)
        if primitive.reason is not None:
            return out
        if primitive.jvp is None:
            raise no_rule(primitive, "jvp", primals, params)
        out_dot = _pushed_by_rule(primitive, primals, tangents, out, params)
        return wrap_outputs(self, primitive, args, params, out, out_dot)


class Untransposed(BaseException):  # which no code between may take for an error
    """Forward mode was to transpose a backward rule, and shall not."""


class UntransposedTrace(ForwardTrace):
    """Carries tangents along, by forward rules only."""

    __slots__ = ()

    def transposing(self) -> None:
        """Give up."""
        raise Untransposed


def fit_tangent(out_dot: Any, out: Any) -> Any:
    """Bring the tangent that a rule made to the shape and dtype of the output."""
    if type(out) is tuple:
        if not isinstance(out_dot, tuple | list) or len(out_dot) != len(out):
            several = isinstance(out_dot, tuple | list)
            raise ShapeError(
                "a forward rule returned "
                f"{f'{len(out_dot)} tangents' if several else describe(out_dot)} "
                f"for {len(out)} results",
                where=user_line(),
                fix="return a tuple with a tangent for each, None where it is zero",
            )
        return tuple(
            dot if dot is None else spread(dot, part)
            for dot, part in zip(out_dot, out, strict=True)
        )
    return out_dot if out_dot is None else spread(out_dot, out)


def wrap_outputs(
    trace: Trace, primitive: Primitive, args: Any, params: Any, out: Any, extra: Any
) -> Any:
    """Make tracers of the results that have a derivative."""
    made: Any
    if type(out) is tuple:
        made = tuple(
            part
            if dot is None or not has_derivative(part, primitive.name)
            else Tracer(trace, part, dot)
            for part, dot in zip(out, extra, strict=True)
        )
    elif extra is None or not has_derivative(out, primitive.name):
        return out
    else:
        made = Tracer(trace, out, extra)
    if primitive.may_alias:
        assign.link(made, args[0], params)
    return made


class LinearTrace(ForwardTrace):
    """Notes how to push tangents, for later; `_extra` of its tracers is a number."""

    __slots__ = ("new_index", "notes")
    outlives = True

    def __init__(self, origin: Origin):
        super().__init__(origin)
        self.notes: list[Any] = []
        self.new_index = itertools.count().__next__

    def close(self) -> None:
        """Let go of the notes."""
        self.notes = []  # which an escaped tracer would keep alive

    def _held(self, primals: list[Any], numbers: list[Any]) -> list[Any]:
        """Return `primals` with the plain arrays among them kept from changing."""
        return [
            self.hold(x) if number is None and type(x) is np.ndarray else x
            for x, number in zip(primals, numbers, strict=True)
        ]

    def take_notes(self) -> list[Any]:
        """Return the notes, which are no longer the trace's then."""
        notes, self.notes = self.notes, []
        return notes

    def unary(self, primitive: Elementwise, fun: Callable[[Any], Any], x: Any) -> Any:
        """Note an elementwise function of one argument."""
        return self._elementwise(primitive, fun, (x,))

    def binary(self, primitive: Elementwise, fun: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
        """Note an elementwise function of two arguments."""
        return self._elementwise(primitive, fun, (x, y))

    def _elementwise(self, primitive: Elementwise, fun: Callable[..., Any], args: Any) -> Any:
        primals, numbers = self.split(args)
        out = fun(*primals)
        if primitive.discrete:
            return out
        primals = self._held(primals, numbers)
        x, y = primals if len(primals) == 2 else (primals[0], None)
        parts = []
        for index, number in enumerate(numbers):
            product = None if number is None else factor_of(primitive, index, x, y, out, primals)
            if product is not None:
                parts.append((index, *product))
        if not parts:
            return out
        like_out = _Aval(shape_of(out), dtype_of(out))

        def pushforward(dots: Sequence[Any]) -> Any:
            out_dot = None
            for index, push, kept in parts:
                if dots[index] is not None:
                    part = spread(push(dots[index], kept), like_out)
                    out_dot = part if out_dot is None else out_dot + part
            return out_dot

        return self._note(primitive, args, {}, numbers, out, pushforward)

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Note any other operation."""
        primals, numbers = self.split(args)
        out = primitive.bind(*primals, **params)
        if primitive.reason is not None:
            return out
        jvp_rule = primitive.jvp
        if jvp_rule is None:
            raise no_rule(primitive, "jvp", primals, params)
        like_out = out
        if primitive.linear:  # only shapes and dtypes are asked for
            primals = [_without_values(x) for x in primals]
            several = type(out) is tuple
            like_out = tuple(map(_without_values, out)) if several else _without_values(out)
        else:
            primals = self._held(primals, numbers)

        def pushforward(dots: Sequence[Any]) -> Any:
            return fit_tangent(jvp_rule(primals, dots, like_out, **params), like_out)

        return self._note(primitive, args, params, numbers, out, pushforward)

    def _note(
        self, primitive: Any, args: Any, params: Any, numbers: Any, out: Any, pushforward: Any
    ) -> Any:
        several = type(out) is tuple
        number = tuple(self.new_index() for _ in out) if several else self.new_index()
        self.notes.append((number, pushforward, numbers))
        return wrap_outputs(self, primitive, args, params, out, number)


class _PassingTrace(LinearTrace):
    """Notes how to push tangents, within the call of a transform."""

    __slots__ = ()
    outlives = False


def _call(fun: Callable[..., Any], args: Any, has_aux: bool, trace: Any) -> tuple[Any, Any]:
    out = fun(*args)
    return split_aux(out, trace) if has_aux else (out, None)


def jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
) -> Any:
    """Evaluate `fun` and its directional derivative.

    Parameters
    ----------
    fun : callable
        Pure function of ``len(primals)`` pytrees of arrays, returning a pytree of arrays.
    primals : tuple or list of pytree
        Where to evaluate it.
    tangents : tuple or list of pytree
        The direction, with the structure, shapes and dtypes of `primals`. None stands for zero,
        for a whole tree or for a leaf; it is the only tangent of a leaf that is not floating.
    has_aux : bool
        `fun` returns a pair: the output, and a pytree of whatever else is wanted from the run.

    Returns
    -------
    out : pytree
        ``fun(*primals)``.
    out_dot : pytree
        The derivative of `out` in the direction `tangents`; None for leaves that are not floating.
    aux : pytree
        Only with `has_aux`.

    Raises
    ------
    ArgumentError
        `primals` and `tangents` are not tuples or lists of the same length.
    TreeMismatchError, ShapeError, DtypeError
        A tangent is not like its primal.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> out, out_dot = fg.jvp(np.sin, (0.0,), (2.0,))
    >>> float(out), float(out_dot)
    (0.0, 2.0)
    """
    check_callable("jvp", fun)
    origin = call_origin("jvp", fun)
    return push(fun, primals, tangents, ForwardTrace(origin), has_aux)


def push(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    trace: ForwardTrace,
    has_aux: bool = False,
) -> Any:
    """Do the work of `jvp` for the transform that `trace` belongs to."""
    origin = trace.origin
    check_pair(primals, tangents, origin)
    primals = tuple(primals)
    leaves, treedef = tree.flatten(primals)
    names = [f"argument {number}" for number in range(len(primals))]
    differentiable_leaves(leaves, primals, names, transform=origin.transform)
    dots = check_like(_as_zero(tangents, primals), primals, treedef, leaves, "tangent")
    with trace:
        traced = [
            leaf if dot is None else trace.variable(leaf, dot)
            for leaf, dot in zip(leaves, dots, strict=True)
        ]
        out, aux = _call(fun, tree.unflatten(treedef, traced), has_aux, trace)
        out_leaves, out_treedef = flatten_output(out, origin)
    values = [lower(leaf, trace) for leaf in out_leaves]
    seen = {id(dot) for dot in dots}
    seen.update(map(id, values))
    seen.update(map(id, leaves))
    out_dots = [
        like(leaf._extra if type(leaf) is Tracer and leaf._trace is trace else None, value, seen)
        if _has_tangent(value)
        else None
        for leaf, value in zip(out_leaves, values, strict=True)
    ]
    result = tree.unflatten(out_treedef, values), tree.unflatten(out_treedef, out_dots)
    return (*result, aux) if has_aux else result


def _has_tangent(value: Any) -> bool:
    return isinstance(value, float | complex) or (
        hasattr(value, "dtype") and getattr(value.dtype, "kind", "O") in "fc"
    )


def _as_zero(tangents: Sequence[Any], primals: Sequence[Any]) -> tuple[Any, ...]:
    """Spell out a tangent of None for a whole argument leaf by leaf."""
    return tuple(
        tree.map(lambda _: None, primal) if tangent is None else tangent
        for tangent, primal in zip(tangents, primals, strict=True)
    )


def check_pair(primals: Any, tangents: Any, origin: Origin) -> None:
    """Raise unless there is one tangent for each primal."""
    for what, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, tuple | list):
            raise ArgumentError(
                f"{what} of {origin.transform} must be a tuple or list with one item for each "
                f"argument, got {describe(value)}",
                where=user_line(),
                fix=f"write {origin.transform}(f, (x,), (x_dot,))",
            )
    if len(primals) != len(tangents):
        raise ArgumentError(
            f"{origin.transform} got {len(primals)} primals but {len(tangents)} tangents",
            where=user_line(),
            fix="give one tangent for each primal; None stands for zero",
        )


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Evaluate `fun` and return its derivative as a linear function of tangents.

    Parameters
    ----------
    fun : callable
        Pure function of ``len(primals)`` pytrees of arrays, returning a pytree of arrays.
    *primals : pytree of array_like
        Where to linearize.
    has_aux : bool
        `fun` returns a pair: the output, and a pytree of whatever else is wanted from the run.

    Returns
    -------
    out : pytree
        ``fun(*primals)``.
    pushforward : callable
        Takes ``len(primals)`` tangents, like the primals; returns the tangent of `out`. Costs less
        than `jvp` when called often, as `fun` is not run again; keeps the residuals alive.
    aux : pytree
        Only with `has_aux`.

    Raises
    ------
    TreeMismatchError, ShapeError, DtypeError
        From `pushforward`: a tangent is not like its primal.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> out, pushforward = fg.linearize(lambda x: x**2, 3.0)
    >>> out, pushforward(1.0), pushforward(10.0)
    (9.0, 6.0, 60.0)
    """
    check_callable("linearize", fun)
    names = [f"argument {number}" for number in range(len(primals))]
    out, pushforward, aux = note(fun, primals, names, call_origin("linearize", fun), has_aux)
    return (out, pushforward, aux) if has_aux else (out, pushforward)


def note(
    fun: Callable[..., Any],
    primals: tuple[Any, ...],
    names: Sequence[str],
    origin: Origin,
    has_aux: bool = False,
    holomorphic: bool = False,
    outlives: bool = True,
) -> tuple[Any, Callable[..., Any], Any]:
    """Do the work of `linearize` for the transform that `origin` names.

    If the pushforward does not outlive that transform, nothing is copied that a caller might
    change.
    """
    leaves, treedef = tree.flatten(primals)
    positions = differentiable_leaves(
        leaves, primals, names, transform=origin.transform, holomorphic=holomorphic
    )
    if outlives:  # as for `vjp`, the residuals do
        leaves = [snapshot(leaf) for leaf in leaves]
    with (LinearTrace if outlives else _PassingTrace)(origin) as trace:
        traced = list(leaves)
        for position in positions:
            traced[position] = trace.variable(leaves[position], trace.new_index())
        out, aux = _call(fun, tree.unflatten(treedef, traced), has_aux, trace)
        aux = tree.map(snapshot, aux)
        del traced
        out_leaves, out_treedef = flatten_output(out, origin)
        notes = trace.take_notes()
    numbers = [
        leaf._extra if type(leaf) is Tracer and leaf._trace is trace else None
        for leaf in out_leaves
    ]
    values = [snapshot(lower(leaf, trace)) for leaf in out_leaves]
    out = tree.unflatten(out_treedef, values)
    own_primals = tree.unflatten(treedef, leaves)

    def pushforward(*tangents: Any) -> Any:
        """Push tangents of the primals forward to the output."""
        if len(tangents) != len(own_primals):
            raise ArgumentError(
                f"the pushforward of {origin} takes {len(own_primals)} tangents, one for each "
                f"argument, got {len(tangents)}",
                where=user_line(),
                fix="give one tangent for each argument of the function; None stands for zero",
            )
        dots: dict[int, Any] = {}
        seen = set()
        spelled = _as_zero(tangents, own_primals)
        checked = check_like(spelled, own_primals, treedef, leaves, "tangent")
        for number, position in enumerate(positions):
            if checked[position] is not None:
                seen.add(id(checked[position]))
                dots[number] = checked[position]
        with np.errstate(all="ignore"):
            for number, push, parents in notes:
                found = [None if parent is None else dots.get(parent) for parent in parents]
                if all(dot is None for dot in found):
                    continue
                out_dot = push(found)
                if type(number) is tuple:
                    dots.update(
                        (n, dot) for n, dot in zip(number, out_dot, strict=True) if dot is not None
                    )
                elif out_dot is not None:
                    dots[number] = out_dot
        out_dots = [
            like(None if number is None else dots.get(number), value, seen)
            if _has_tangent(value)
            else None
            for number, value in zip(numbers, values, strict=True)
        ]
        return tree.unflatten(out_treedef, out_dots)

    return out, pushforward, aux
