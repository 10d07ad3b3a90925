"""Fused operations: lines of NumPy code that are done in one go where nobody differentiates them.

A derivative rule is NumPy code, so that it can be differentiated again. Where a rule is a loop, or
many operations on small arrays, that costs more than the arithmetic: each operation makes a fresh
array, and a recording unrolls the loop. A fused operation does the same in arrays that it uses
again. To what differentiates, it is the lines that it stands for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.core.level import top_trace
from funcgrad.core.primitive import Primitive, register

__all__ = ["Fused", "fused"]


class Fused(Primitive):
    """An operation with the derivatives, and unless it has a rule the batching, of its lines.

    Attributes
    ----------
    lines : callable
        NumPy code, on arguments that may be traced, that returns what the forward function does.
    """

    __slots__ = ("lines",)

    def __init__(self, forward: Callable[..., Any], lines: Callable[..., Any]):
        super().__init__(forward, name=forward.__name__)
        self.lines = lines
        register(self, ())

    def bind(self, *args: Any, **params: Any) -> Any:
        """Carry the operation out, or its lines if the topmost trace is to look into them."""
        trace = top_trace(args)
        if trace is None:
            return self.forward(*args, **params)
        if trace.records or trace.level == 0 or (trace.lead and self.batch is not None):
            return super().bind(*args, **params)
        return self.lines(*args, **params)


def fused(lines: Callable[..., Any]) -> Callable[[Callable[..., Any]], Fused]:
    """Declare that the decorated function does in one go, on plain arrays, what `lines` does.

    Parameters
    ----------
    lines : callable
        NumPy code on traced arguments. Both take arrays by position, what is static by keyword.
    """

    def declare(forward: Callable[..., Any]) -> Fused:
        return Fused(forward, lines)

    return declare
