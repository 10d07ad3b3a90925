"""Reverse mode: record a tape, walk it back.

Running the function leaves one *node* for each operation, in creation order, so the backward pass
is a walk over the tape from its end: no sort, no recursion, each node once, and a node (with the
residuals in it) is let go as soon as it has been used.

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
from cmath import isfinite
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from funcgrad.core import assign
from funcgrad.core.elementwise import Elementwise, negates, passes, scales
from funcgrad.core.foreign import has_derivative
from funcgrad.core.level import Origin, Trace, escaped
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracer import Tracer, unwrap
from funcgrad.core.zero import (
    SHORT,
    as_numpy,
    dtype_of,
    fit,
    is_settled,
    repaired,
    shape_of,
    vdot,
    zero_wins_among,
)
from funcgrad.errors import MissingRuleError, describe, user_line

__all__ = ["OutlivingTrace", "ReverseTrace", "backward", "no_rule"]

_ndarray = np.ndarray
# Types of cotangents that can be added to a part of an array in place.
_ADDABLE = frozenset({np.ndarray, np.float64, np.float32, np.complex128, np.complex64, np.float16})
# Products that cannot become infinite or undefined, so that nobody need look.
_EXACT = frozenset({passes, negates})
# Types of which all values have the same shape and dtype.
_SCALARS = frozenset({float, complex, np.float64, np.float32, np.complex128})


class ReverseTrace(Trace):
    """Records a tape."""

    __slots__ = ("new_index", "record", "tape")

    tape: list[Any]
    record: Callable[..., Any]

    def __init__(self, origin: Origin):
        super().__init__(origin)
        self.tape = []
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
        self.tape = []

    def take_tape(self) -> list[Any]:
        """Return the tape, which is no longer the trace's then."""
        tape, self.tape = self.tape, []
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
            self.record((k, (_edge(primitive.safe0, kept, x._extra, value),)))
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
                edges.append(_edge(primitive.safe0, kept, i, x))
            if j >= 0:
                edges.append(_edge(primitive.safe1, kept2, j, y))
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
    """Records a tape that is walked back after the function has returned, any number of times."""

    __slots__ = ()
    outlives = True


def _edge(product: Callable[..., Any], kept: Any, i: int, value: Any) -> tuple[Any, ...]:
    """Make the edge of an elementwise operation whose argument `value` is unlike the result."""
    pull: Callable[[Any], Any]
    pull = _passed if product is passes else partial(product, kept=kept)
    if type(value) is _ndarray:
        return pull, i, value.shape, value.dtype
    return pull, i, shape_of(value), dtype_of(value)


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


def no_rule(
    primitive: Primitive, mode: str, args: Sequence[Any], params: dict[str, Any]
) -> MissingRuleError:
    """Make the error for a primitive that lacks the rule a transform needs."""
    shown = [describe(arg) for arg in args] + [f"{key}={params[key]!r}" for key in params]
    return MissingRuleError(
        f"primitive {primitive.name!r} has no {mode}",
        where=f"{user_line()} reached {primitive.name}({', '.join(shown)})",
        fix="write it with functions that have one, or add the rule: "
        "docs/how-to/add-a-primitive.md",
    )


def _pulled_among(
    bar: Any,
    out_bar: Any,
    i: int,
    shape: tuple[int, ...],
    dtype: Any,
    primitive: Primitive,
    params: dict[str, Any],
    values: list[Any],
    parents: list[int],
) -> Any:
    """Return `bar`, pulled back to argument `i` of a sum of products, with zero winning in each."""
    index = parents.index(i)
    others = [*values[:index], *values[index + 1 :], out_bar]
    if is_settled(bar, others) or parents.count(i) > 1:  # of x @ x: which of the two is not known
        return bar
    own = np.broadcast_to(np.zeros((), dtype), shape)  # only its shape and dtype count

    def product(*args: Any) -> Any:
        primals = [*args[:index], own, *args[index:-1]]
        pullbacks: Any = primitive.vjp(primals, None, **params)  # type: ignore[misc]
        return pullbacks[index](args[-1])

    return zero_wins_among(bar, product, others)


# A rule may divide by zero where its result is then not used; the user did not write that. As a
# decorator the context costs half as much.
@np.errstate(all="ignore")
def backward(tape: list[Any], bars: list[Any], wanted: int, *, consume: bool) -> list[Any]:
    """Pull the cotangents `bars` back through `tape`.

    Parameters
    ----------
    tape : list
        The nodes, in creation order.
    bars : list
        The cotangent of each variable, None where there is none; used up.
    wanted : int
        Return the cotangents of variables 0 to `wanted` - 1.
    consume : bool
        Let go of each node when it has been used, so that residuals are freed on the way.

    Returns
    -------
    list
        The cotangents, None where one is structurally zero.
    """
    # Variables of which the cotangent is an array made here. It stays one when others are added.
    own: set[int] = set()
    take = tape.pop if consume else reversed(tape).__next__
    for _ in range(len(tape)):
        node = take()
        size = len(node)
        if size == 4:  # one edge: nearly half of all nodes
            k, pull, i, kept = node
            out_bar = bars[k]
            if out_bar is None:
                continue
            bars[k] = None
            if pull is passes:
                bar = out_bar
            elif pull is negates:
                bar = -out_bar
            elif pull is scales and type(kept) is float and kept - kept == 0.0:
                bar = out_bar * kept  # by a finite number: nothing can become undefined
            else:
                try:
                    bar = pull(out_bar, kept)
                except ArithmeticError:
                    bar = as_numpy(pull, out_bar, kept)
                if type(bar) is not _ndarray or bar.size > SHORT or not isfinite(vdot(bar, bar)):
                    bar = repaired(bar, pull, out_bar, kept)
            before = bars[i]
            bars[i] = bar if before is None else before + bar
        elif size == 7:
            k, pull, i, kept, pull2, j, kept2 = node
            out_bar = bars[k]
            if out_bar is None:
                continue
            bars[k] = None
            try:
                bar = pull(out_bar, kept)
                bar2 = pull2(out_bar, kept2)
            except ArithmeticError:
                bar = as_numpy(pull, out_bar, kept)
                bar2 = as_numpy(pull2, out_bar, kept2)
            # Both have the shape of the result; one product tests them together.
            if not (pull in _EXACT and pull2 in _EXACT) and (
                type(bar) is not _ndarray
                or type(bar2) is not _ndarray
                or bar.size > SHORT
                or not isfinite(vdot(bar, bar2))
            ):
                bar = repaired(bar, pull, out_bar, kept)
                bar2 = repaired(bar2, pull2, out_bar, kept2)
            before = bars[i]
            bars[i] = bar if before is None else before + bar
            before = bars[j]
            bars[j] = bar2 if before is None else before + bar2
        elif size == 6:
            k, scatter, i, index, shape, dtype = node
            out_bar = bars[k]
            if out_bar is None:
                continue
            bars[k] = None
            before = bars[i]
            # Add to the whole in place, if it is ours alone: a loop over the elements of an array
            # takes linear time.
            plain = type(out_bar) in _ADDABLE and out_bar.dtype is dtype
            if plain and before is None:
                bars[i] = before = np.zeros(shape, dtype)
                before[index] = out_bar
                own.add(i)
            elif plain and i in own:
                before[index] += out_bar
            else:
                bar = fit(scatter(out_bar, shape, index), shape, dtype)
                bars[i] = bar if before is None else before + bar
        else:
            if size == 2:
                k, edges = node
                factors = None
            else:
                k, edges, factors = node
            if type(k) is tuple:
                out_bar = tuple([bars[index] for index in k])
                if all(bar is None for bar in out_bar):
                    continue
                for index in k:
                    bars[index] = None
            else:
                out_bar = bars[k]
                if out_bar is None:
                    continue
                bars[k] = None
            for pull, i, shape, dtype in edges:
                bar = pull(out_bar)
                if bar is not None:
                    if factors is not None and (
                        type(bar) is not _ndarray
                        or bar.size > SHORT
                        or not isfinite(vdot(bar, bar))
                    ):
                        bar = _pulled_among(bar, out_bar, i, shape, dtype, *factors)
                    if type(bar) is not _ndarray or bar.shape != shape or bar.dtype is not dtype:
                        bar = fit(bar, shape, dtype)
                    before = bars[i]
                    bars[i] = bar if before is None else before + bar
    return bars[:wanted]
