"""Reverse mode: record a tape, walk it back.

Running the function leaves one *node* for each operation, in creation order, so the backward pass is a
walk over the tape from its end: no sort, no recursion, each node once, and a node (with the
residuals in it) is let go as soon as it has been used.

A node is a tuple, its variable's number first. Elementwise operations, which are most, have one
or two edges right in the node, so that neither closures nor loops over arguments cost anything:

    (k, pull, i, kept)                          one argument i
    (k, pull, i, kept, pull2, j, kept2)         two arguments i and j
    (k, edges)                                  any other; k is a tuple for several results

where ``pull(out_bar, kept)`` is the cotangent for argument i. An edge is ``(pull, i, shape, dtype)``
with the shape and dtype of argument i, to which what ``pull(out_bar)`` returns is brought: a rule may
leave it broadcast, or promoted.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core import assign
from funcgrad.core.level import Origin, Trace
from funcgrad.core.primitive import Elementwise, Primitive
from funcgrad.core.tracer import Tracer, unwrap
from funcgrad.core.zero import dtype_of, fit, shape_of
from funcgrad.errors import MissingRuleError, describe, user_line

__all__ = ["ReverseTrace", "backward"]

_ndarray = np.ndarray
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
        self.record = self.escaped

    def take_tape(self) -> list[Any]:
        """Return the tape, which is no longer the trace's then."""
        tape, self.tape = self.tape, []
        return tape

    def variable(self, value: Any) -> Tracer:
        """Make an independent variable; they come first on the tape's numbering."""
        made = Tracer(self, value, self.new_index())
        made._alias = assign.ARGUMENT
        return made

    def unary(self, primitive: Elementwise, fun: Callable[[Any], Any], x: Any) -> Any:
        """Record an elementwise function of one argument."""
        value = x._value
        out = fun(value)
        if primitive.discrete:
            return out
        keep = primitive.keep0
        if keep == "x":
            kept = value
        elif keep == "out":
            kept = out
        else:
            kept = None if keep is None else keep(value, None, out)
        if (
            type(value) is type(out) is _ndarray
            and value.dtype is out.dtype
            or dtype_of(value) == dtype_of(out)
        ):
            pull = primitive.pull0
        else:
            pull, kept = primitive.fit0, (kept, shape_of(value), dtype_of(value))
        if pull is None:
            return self._unruled(primitive, 0, (x,), out)
        k = self.new_index()
        self.record((k, pull, x._extra, kept))
        return Tracer(self, out, k)

    def binary(
        self, primitive: Elementwise, fun: Callable[[Any, Any], Any], x: Any, y: Any
    ) -> Any:
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
        if primitive.discrete:
            return out
        kind = type(out)
        pull = pull2 = kept = kept2 = None
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
            if type(x) is kind and (
                kind in _SCALARS
                or (kind is _ndarray and x.shape == out.shape and x.dtype is out.dtype)
            ):
                pull = primitive.pull0
            else:
                pull, kept = primitive.fit0, (kept, shape_of(x), dtype_of(x))
            if pull is None and not self._unruled(primitive, 0, (x, y), True):
                i = -1
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
            if type(y) is kind and (
                kind in _SCALARS
                or (kind is _ndarray and y.shape == out.shape and y.dtype is out.dtype)
            ):
                pull2 = primitive.pull1
            else:
                pull2, kept2 = primitive.fit1, (kept2, shape_of(y), dtype_of(y))
            if pull2 is None:
                self._unruled(primitive, 1, (x, y), None)
                j = -1
        if j < 0:
            if i < 0:
                return out
            k = self.new_index()
            self.record((k, pull, i, kept))
        elif i < 0:
            k = self.new_index()
            self.record((k, pull2, j, kept2))
        else:
            k = self.new_index()
            self.record((k, pull, i, kept, pull2, j, kept2))
        return Tracer(self, out, k)

    def _unruled(
        self, primitive: Elementwise, index: int, args: Sequence[Any], out: Any
    ) -> Any:
        if index in primitive.reasons:
            return out
        raise no_rule(primitive, "vjp", args, {})

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Record any other operation."""
        values = []
        parents = []
        for arg in args:
            if type(arg) is Tracer:
                if arg._trace is self:
                    values.append(arg._value)
                    parents.append(arg._extra)
                    continue
                arg = unwrap(arg)
            values.append(arg)
            parents.append(-1)
        out = primitive.bind(*values, **params)
        if primitive.reason is not None:
            return out
        if primitive.vjp is None:
            raise no_rule(primitive, "vjp", values, params)
        pullbacks = primitive.vjp(values, out, **params)
        if callable(pullbacks):
            pullbacks = (pullbacks,)
        edges = [
            (pull, i, shape_of(value), dtype_of(value))
            for pull, i, value in zip(pullbacks, parents, values, strict=True)
            if i >= 0 and pull is not None
        ]
        if not edges:
            return out
        if type(out) is tuple:
            k = tuple(self.new_index() for _ in out)
            self.record((k, edges))
            return tuple(
                Tracer(self, part, index) if dtype_of(part).kind in "fc" else part
                for part, index in zip(out, k, strict=True)
            )
        if dtype_of(out).kind not in "fc":
            return out
        index = self.new_index()
        self.record((index, edges))
        made = Tracer(self, out, index)
        if primitive.may_alias:
            assign.link(made, args[0])
        return made


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


def backward(tape: list[Any], bars: dict[int, Any], wanted: int, *, consume: bool) -> list[Any]:
    """Pull the cotangents `bars` back through `tape`.

    Parameters
    ----------
    tape : list
        The nodes, in creation order.
    bars : dict from int to array_like
        The cotangent of each variable that has one; used up.
    wanted : int
        Return the cotangents of variables 0 to `wanted` - 1.
    consume : bool
        Let go of each node when it has been used, so that residuals are freed on the way.

    Returns
    -------
    list
        The cotangents, None where one is structurally zero.
    """
    take = tape.pop if consume else reversed(tape).__next__
    # A rule may divide by zero where its result is then not used; the user did not write that.
    with np.errstate(all="ignore"):
        for _ in range(len(tape)):
            node = take()
            k = node[0]
            if type(k) is tuple:
                out_bar = tuple(bars.pop(index, None) for index in k)
                if all(bar is None for bar in out_bar):
                    continue
            else:
                out_bar = bars.pop(k, None)
                if out_bar is None:
                    continue
            size = len(node)
            if size == 4:
                _, pull, i, kept = node
                bar = pull(out_bar, kept)
                before = bars.get(i)
                bars[i] = bar if before is None else before + bar
            elif size == 7:
                _, pull, i, kept, pull2, j, kept2 = node
                bar = pull(out_bar, kept)
                before = bars.get(i)
                bars[i] = bar if before is None else before + bar
                bar = pull2(out_bar, kept2)
                before = bars.get(j)
                bars[j] = bar if before is None else before + bar
            else:
                for pull, i, shape, dtype in node[1]:
                    bar = pull(out_bar)
                    if bar is not None:
                        if shape_of(bar) != shape or dtype_of(bar) != dtype:
                            bar = fit(bar, shape, dtype)
                        before = bars.get(i)
                        bars[i] = bar if before is None else before + bar
    return [bars.get(i) for i in range(wanted)]
