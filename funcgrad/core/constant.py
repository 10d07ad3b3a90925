"""Constants that may be assigned to: what ``np.zeros_like(x)`` gives for a traced `x`.

Such an array has no derivative, but ``y[i] = v`` may give it one, which a plain `numpy.ndarray`
could not receive. So it is a tracer of level 0, below all transforms: operations on it compute
plain values, other traces take the value out, and an assignment of a traced value moves the
handle up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core import assign
from funcgrad.core.elementwise import Elementwise
from funcgrad.core.level import Origin, Trace, is_tracing, traces_integers
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracer import Tracer, unwrap

__all__ = ["CONSTANT", "assignable", "readable"]


class ConstantTrace(Trace):
    """The trace of level 0: computes, and wraps again what may be assigned to."""

    __slots__ = ()

    def __init__(self) -> None:
        self.ended = False
        self.level = 0
        self.origin = Origin("constant", None)
        self.holder = None

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Compute on the values."""
        out = primitive.bind(*map(unwrap, args), **params)
        if primitive.reason is not None:
            return out
        wrapped = tuple(map(_wrap, out)) if isinstance(out, tuple) else _wrap(out)
        if primitive.may_alias:
            assign.link(wrapped, args[0], params)
        return wrapped

    def unary(self, primitive: Elementwise, fun: Callable[[Any], Any], x: Any) -> Any:
        """Compute on the value."""
        out = fun(unwrap(x))
        return out if primitive.reason is not None else _wrap(out)

    def binary(self, primitive: Elementwise, fun: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
        """Compute on the values."""
        out = fun(unwrap(x), unwrap(y))
        return out if primitive.reason is not None else _wrap(out)


CONSTANT = ConstantTrace()
assign.use_constant_trace(CONSTANT)


def _wrap(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind in (
        "fciub" if traces_integers() else "fc"
    ):
        return Tracer(CONSTANT, value, None)
    return value


def readable(value: Any) -> Any:
    """Return somebody's array so that integers, where those are traced, can index it.

    It is not to be assigned to, as arguments are not.
    """
    made = _wrap(value) if traces_integers() else value
    if made is not value:
        made._alias = assign.ARGUMENT
    return made


def assignable(value: Any) -> Any:
    """Return a fresh array so that a transform in progress can let traced values into it."""
    return _wrap(value) if is_tracing() else value
