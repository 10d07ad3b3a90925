"""Reverse mode, forward: record a tape, which `funcgrad.transforms.backward` walks back.

Running the function leaves one *node* for each operation, in creation order, so the backward pass
is a walk over the tape from its end.

A node is a tuple, its variable's number first. Elementwise operations, which are most, have one
or two edges right in the node, so that neither closures nor loops over arguments cost anything:

    (k, pull, i, kept)                          one argument i
    (k, pull, i, kept, pull2, j, kept2)         two arguments i and j
    (k, scatter, i, index, shape, dtype)        x[index] with slices and integers
    (k, edges)                                  any other; k is a tuple for several results
    (k, edges, factors)                         a sum of products of the arguments, and these

where ``pull(out_bar, kept)`` is the cotangent for argument i. An edge is
``(pull, i, shape, dtype)`` with the shape and dtype of argument i, to which what
``pull(out_bar)`` returns is brought: a rule may leave it broadcast, or promoted.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from funcgrad.core import assign
from funcgrad.core.elementwise import Elementwise, passes
from funcgrad.core.foreign import has_derivative
from funcgrad.core.level import Origin, Trace, escaped
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracer import Tracer, unwrap
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import ArgumentError, MissingRuleError, describe, user_line
from funcgrad.transforms.flat import snapshot

__all__ = ["OutlivingTrace", "Product", "ReverseTrace", "Tape", "no_rule", "owner_of"]

_ndarray = np.ndarray
# Types of which all values have the same shape and dtype.
_SCALARS = frozenset({float, complex, np.float64, np.float32, np.complex128})


class Tape(list[Any]):
    """The nodes, in creation order.

    Attributes
    ----------
    careful : bool
        Rules that a user wrote are on it, or a debug mode wants to see every node.
    made : dict or None
        What a debug mode remembers of the operations, by the variables that they made.
    """

    # Of the class: one is made for every gradient.
    careful = False
    made: dict[int, Any] | None = None


class ReverseTrace(Trace):
    """Records a tape."""

    __slots__ = ("new_index", "record", "tape")

    tape: Tape
    record: Callable[..., Any]

    def __init__(self, origin: Origin):
        super().__init__(origin)
        self.tape = Tape()
        # Bound methods, replaced by ones that raise when the trace is closed: an escaped tracer
        # is noticed without a test on the way. The counter is atomic, as several threads may
        # record; a node is appended before its tracer exists, so order along the tape is safe.
        self.record = self.tape.append
        self.new_index = itertools.count().__next__

    def close(self) -> None:
        """Refuse further operations."""
        # Not a method of this trace, which would make a cycle for the garbage collector; and no
        # tape, which an escaped tracer would keep alive.
        self.record = partial(escaped, self.origin)
        self.tape = Tape()

    def take_tape(self) -> list[Any]:
        """Return the tape, which is no longer the trace's then."""
        tape, self.tape = self.tape, Tape()
        return tape

    def blank(self) -> list[Any]:
        """Return a list with room for the cotangent of every variable so far."""
        return [None] * self.new_index()

    def plain(self, out: Any) -> Any:
        """Return a result that carries no derivative, unless this trace has ended."""
        if self.ended:
            self.escaped()
        return out

    def variable(self, value: Any) -> Tracer:
        """Make an independent variable; they come first on the tape's numbering."""
        made = Tracer(self, unwrap(value), self.new_index())
        made._alias = assign.ARGUMENT
        return made

    def unary(self, primitive: Elementwise, fun: Callable[[Any], Any], x: Any) -> Any:
        """Record an elementwise function of one argument."""
        value = x._value
        out = fun(value)
        if not primitive.smooth:
            if primitive.discrete:
                return self.plain(out)
            raise no_rule(primitive, "vjp", (value,), {})
        keep = primitive.keep0
        if keep == "x":
            kept = value
        elif keep == "out":
            kept = out
        else:
            kept = None if keep is None else keep(value, None, out)
        k = self.new_index()
        kind = type(out)
        if (
            kind is type(value)
            and (value.dtype is out.dtype if kind is _ndarray else kind in _SCALARS)
        ) or dtype_of(value) == dtype_of(out):
            self.record((k, primitive.pull0, x._extra, kept))
        else:
            self.record((k, (_edge(primitive.pull0, kept, x._extra, value),)))
        return Tracer(self, out, k)

    def binary(self, primitive: Elementwise, fun: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
        """Record an elementwise function of two arguments, of which one or both are ours."""
        i = j = -1
        if type(x) is Tracer:
            if x._trace is self:
                i = x._extra
                x = x._value
            else:
                x = unwrap(x)
        if type(y) is Tracer:
            if y._trace is self:
                j = y._extra
                y = y._value
            else:
                y = unwrap(y)
        out = fun(x, y)
        if not primitive.smooth:
            if primitive.discrete:
                return self.plain(out)
            i, j = _ruled(primitive, i, j, (x, y))
            if i < 0 and j < 0:
                return out
        # The user may write to a plain array before the backward pass reads it.
        if j < 0:
            if type(y) is _ndarray and primitive.needs_y:
                y = self.hold(y)
        elif i < 0 and type(x) is _ndarray and primitive.needs_x:
            x = self.hold(x)
        # Is an argument like the result, so that its cotangent needs no sum and no cast?
        kind = type(out)
        array = kind is _ndarray
        if array:
            shape, dtype = out.shape, out.dtype
        plain = True
        kept = kept2 = None
        if i >= 0:
            keep = primitive.keep0
            if keep == "y":
                kept = y
            elif keep == "x":
                kept = x
            elif keep == "out":
                kept = out
            elif keep is not None:
                kept = keep(x, y, out)
            if not (
                type(x) is kind
                and (x.shape == shape and x.dtype is dtype if array else kind in _SCALARS)
            ):
                plain = False
        if j >= 0:
            keep = primitive.keep1
            if keep == "x":
                kept2 = x
            elif keep == "y":
                kept2 = y
            elif keep == "out":
                kept2 = out
            elif keep is not None:
                kept2 = keep(x, y, out)
            if not (
                type(y) is kind
                and (y.shape == shape and y.dtype is dtype if array else kind in _SCALARS)
            ):
                plain = False
        k = self.new_index()
        if not plain:
            edges = []
            if i >= 0:
                edges.append(_edge(primitive.pull0, kept, i, x))
            if j >= 0:
                edges.append(_edge(primitive.pull1, kept2, j, y))
            self.record((k, edges))
        elif j < 0:
            self.record((k, primitive.pull0, i, kept))
        elif i < 0:
            self.record((k, primitive.pull1, j, kept2))
        else:
            self.record((k, primitive.pull0, i, kept, primitive.pull1, j, kept2))
        return Tracer(self, out, k)

    def part(
        self, primitive: Primitive, x: Any, index: Any, scatter: Callable[[Any, Any, Any], Any]
    ) -> Any:
        """Record ``x[index]`` with a basic index."""
        value = x._value
        if type(value) is not _ndarray:
            return self.process(primitive, (x,), {"index": index})
        out = value[index]
        k = self.new_index()
        self.record((k, scatter, x._extra, index, value.shape, value.dtype))
        made = Tracer(self, out, k)
        if type(out) is _ndarray:
            if x._alias is assign.ARGUMENT:
                made._alias = assign.ARGUMENT  # part of an argument, the usual case
            else:
                assign.link(made, x, {"index": index})
        return made

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Record any other operation."""
        if len(args) == 1 and type(args[0]._value) is _ndarray:
            return self._single(primitive, args[0], params)
        values = []
        parents = []
        nested = False
        for arg in args:
            i = -1
            if type(arg) is Tracer:
                if arg._trace is self:
                    i = arg._extra
                    arg = arg._value
                else:
                    arg = unwrap(arg)
                nested = nested or type(arg) is Tracer
            values.append(arg)
            parents.append(i)
        out = (primitive.bind if nested else primitive.forward)(*values, **params)
        if primitive.reason is not None:
            return self.plain(out)
        if primitive.vjp is None:
            raise no_rule(primitive, "vjp", values, params)
        if not primitive.linear:  # of which only shapes are kept
            for index, i in enumerate(parents):
                if i < 0 and type(values[index]) is _ndarray:
                    values[index] = self.hold(values[index])
        pullbacks = primitive.vjp(values, out, **params)
        if type(pullbacks) is not tuple:
            pullbacks = (pullbacks,)
        if len(pullbacks) != len(values):
            raise _wrong_count(primitive, pullbacks, len(values))
        edges = []
        for pull, i, value in zip(pullbacks, parents, values, strict=True):
            if i >= 0 and pull is not None:
                if type(value) is _ndarray:
                    edges.append((pull, i, value.shape, value.dtype))
                else:
                    edges.append((pull, i, shape_of(value), dtype_of(value)))
        if not edges:
            return self.plain(out)
        if not primitive.multilinear:
            return self._record(primitive, args[0], params, out, edges)
        # A sum of products, in which zero may have to win: note its factors as well. If only one
        # is wanted, its value is not needed, and nothing but its shape is kept.
        if len(edges) == 1:
            values[parents.index(edges[0][1])] = None
        index = self.new_index()
        self.record((index, edges, (primitive, params, values, parents)))
        return Tracer(self, out, index)

    def _single(self, primitive: Primitive, x: Tracer, params: dict[str, Any]) -> Any:
        """Record an operation on one array, not nested: the same as `process`, in half the time."""
        value = x._value
        out = primitive.forward(value, **params)
        if primitive.reason is not None:
            return self.plain(out)
        if primitive.vjp is None:
            raise no_rule(primitive, "vjp", (value,), params)
        pull = primitive.vjp((value,), out, **params)
        if type(pull) is tuple:
            if len(pull) != 1:
                raise _wrong_count(primitive, pull, 1)
            (pull,) = pull
        if pull is None:
            return self.plain(out)
        dtype = value.dtype
        edges = ((pull, x._extra, value.shape, dtype),)
        if getattr(out, "dtype", None) is not dtype:  # several results, or a Python number
            return self._record(primitive, x, params, out, edges)
        index = self.new_index()
        self.record((index, edges))
        made = Tracer(self, out, index)
        if primitive.may_alias:
            assign.link(made, x, params)
        return made

    def _record(
        self, primitive: Primitive, first: Any, params: dict[str, Any], out: Any, edges: Any
    ) -> Any:
        """Put a node with these edges on the tape, and wrap the result or results."""
        made: Any
        if type(out) is tuple:
            k = tuple(self.new_index() for _ in out)
            self.record((k, edges))
            made = tuple(
                Tracer(self, part, index) if has_derivative(part, primitive.name) else part
                for part, index in zip(out, k, strict=True)
            )
        elif has_derivative(out, primitive.name):
            index = self.new_index()
            self.record((index, edges))
            made = Tracer(self, out, index)
        else:
            return out
        if primitive.may_alias:
            assign.link(made, first, params)
        return made


class OutlivingTrace(ReverseTrace):
    """Records a tape that is walked back after the function has returned, any number of times.

    By then the caller may have written to the arguments, or to the results. So what the tape keeps
    of the arguments' memory it copies, and it knows which arrays it keeps.
    """

    __slots__ = ("copies", "guarded", "kept")
    outlives = True

    def __init__(self, origin: Origin):
        super().__init__(origin)
        self.record = self._record_owned
        # By the ids of the arrays that own the memory: that of the arguments, and what is kept.
        self.guarded: set[int] = set()
        self.kept: set[int] = set()
        self.copies: dict[int, tuple[Any, Any]] = {}

    def close(self) -> None:
        """Refuse further operations."""
        super().close()
        self.copies = {}

    def guard(self, leaves: Sequence[Any]) -> None:
        """Keep nothing of the memory of these arrays."""
        self.guarded.update(id(owner_of(leaf)) for leaf in leaves if isinstance(leaf, _ndarray))

    def is_free(self, array: Any) -> bool:
        """Tell whether neither the tape nor an argument has a part in the memory of `array`."""
        owner = id(owner_of(array))
        return owner not in self.guarded and owner not in self.kept

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Record any other operation, on copies of what it may keep of the arguments."""
        if not primitive.linear:
            args = [self._owned_argument(arg) for arg in args]
        out = super().process(primitive, args, params)
        if not primitive.linear:
            for value in (*args, *(out if type(out) is tuple else (out,))):
                self.own(unwrap(value._value) if type(value) is Tracer else value)
        return out

    def _owned_argument(self, arg: Any) -> Any:
        if type(arg) is not Tracer or arg._trace is not self:
            return arg
        value = self.own(arg._value)
        if value is arg._value:
            return arg
        made = Tracer(self, value, arg._extra)
        made._alias = arg._alias
        return made

    def own(self, value: Any) -> Any:
        """Return an array that may be kept: a copy if it is in the memory of an argument."""
        if type(value) is tuple:
            return tuple(map(self.own, value))
        if not isinstance(value, _ndarray):
            return value
        owner = id(owner_of(value))
        if owner not in self.guarded:
            self.kept.add(owner)
            return value
        if id(value) not in self.copies:
            self.copies[id(value)] = value, snapshot(value)
        return self.copies[id(value)][1]

    def _record_owned(self, node: Any) -> None:
        """Put a node on the tape."""
        size = len(node)
        if size in (4, 7):
            node = (*node[:3], self.own(node[3]), *node[4:6], *map(self.own, node[6:]))
        elif size < 4:
            for edge in node[1]:
                if type(edge[0]) is Product:
                    edge[0].kept = self.own(edge[0].kept)
        self.tape.append(node)


def owner_of(array: Any) -> Any:
    """Return the array that owns the memory of `array`."""
    while isinstance(array.base, _ndarray):
        array = array.base
    return array


def _edge(product: Callable[..., Any], kept: Any, i: int, value: Any) -> tuple[Any, ...]:
    """Make the edge of an elementwise operation whose argument `value` is unlike the result."""
    pull: Callable[[Any], Any]
    pull = _passed if product is passes else Product(product, kept)
    if type(value) is _ndarray:
        return pull, i, value.shape, value.dtype
    return pull, i, shape_of(value), dtype_of(value)


class Product:
    """The product with a residual, to be called with the cotangent."""

    __slots__ = ("kept", "product")

    def __init__(self, product: Callable[..., Any], kept: Any):
        self.product = product
        self.kept = kept

    def __call__(self, out_bar: Any) -> Any:
        """Return the product."""
        return self.product(out_bar, self.kept)


def _passed(out_bar: Any) -> Any:
    return out_bar


def _ruled(primitive: Elementwise, i: int, j: int, args: Sequence[Any]) -> tuple[int, int]:
    """Drop arguments on which the result does not depend smoothly; raise if a rule is missing."""
    for index, pull in enumerate((primitive.pull0, primitive.pull1)):
        if pull is None and (i, j)[index] >= 0:
            if index not in primitive.reasons:
                raise no_rule(primitive, "vjp", args, {})
            i, j = (-1, j) if index == 0 else (i, -1)
    return i, j


def _wrong_count(primitive: Primitive, pullbacks: Any, count: int) -> ArgumentError:
    """Make the error for a rule that does not return one pullback for each argument."""
    return ArgumentError(
        f"the vjp of primitive {primitive.name!r} returned {len(pullbacks)} pullbacks, expected "
        f"{count}: one for each array argument",
        where=user_line(),
        fix="return a tuple with a function of out_bar for each argument, None where there is no "
        "derivative",
    )


def no_rule(
    primitive: Primitive, mode: str, args: Sequence[Any], params: dict[str, Any]
) -> MissingRuleError:
    """Make the error for a primitive that lacks the rule a transform needs."""
    shown = [describe(arg) for arg in args] + [f"{key}={params[key]!r}" for key in params]
    declaration = f"def_{mode.split()[0].removesuffix('ing')}"
    if isinstance(primitive, Elementwise):
        declaration = "def_partial"
    return MissingRuleError(
        f"primitive {primitive.name!r} has no {mode}",
        where=f"{user_line()} reached {primitive.name}({', '.join(shown)})",
        fix="write it with functions that have one, or add the rule, with "
        f"@{primitive.name}.{declaration}: docs/how-to/add-a-primitive.md",
    )
