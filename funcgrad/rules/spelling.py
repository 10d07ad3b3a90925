"""What helps to translate NumPy's calls: lists that hold tracers, and shapes.

The functions that translate a call (`Primitive.def_call`) and those composed of others
(`funcgrad.core.primitive.overrides`) use them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.core.level import TracerBase, traced_here
from funcgrad.core.zero import dtype_of
from funcgrad.errors import DtypeError, ShapeError, describe, user_line

__all__ = ["array_of", "axis_order", "holds_tracer", "refuse_batched", "stand_in"]

_NESTED = (list, tuple)


def holds_tracer(value: Any) -> bool:
    """Tell whether a value, or a list in lists, holds a tracer."""
    if isinstance(value, TracerBase):
        return True
    if isinstance(value, _NESTED):
        return any(holds_tracer(item) for item in value if isinstance(item, (TracerBase, *_NESTED)))
    return False


def array_of(value: Any) -> Any:
    """Return an array, or a tracer, of a value that may be nested lists with tracers in them."""
    if isinstance(value, TracerBase) or not holds_tracer(value):
        return value if hasattr(value, "shape") else np.asanyarray(value)
    parts: list[Any] = [array_of(item) for item in value]
    for part, item in zip(parts, value, strict=True):
        kind = dtype_of(part).kind
        if kind not in "fciub":
            raise DtypeError(
                "a list with traced values in it cannot become an array of "
                f"{'objects' if kind == 'O' else dtype_of(part)}, which would lose the derivatives",
                where=f"{user_line()}; the list holds {describe(item)}",
                fix="put numbers into it only, such as np.nan for what is missing",
            )
    return np.stack(parts)


def stand_in(shape: tuple[int, ...]) -> Any:
    """Return an array of `shape` that takes no memory, to ask NumPy what it would do."""
    return np.broadcast_to(np.False_, shape)


def refuse_batched(value: Any, what: str) -> None:
    """Raise if `value` differs from example to example, and with it the shape of the result."""
    if isinstance(value, TracerBase):
        raise ShapeError(
            f"{what}, which may differ from example to example",
            where=f"{user_line()}; {traced_here(value)}",
            fix="keep all elements, and use np.where(mask, x, 0), or where=mask in a reduction",
        )


def axis_order(rearrange: Callable[..., Any], ndim: int, *args: Any) -> tuple[int, ...]:
    """Return where `rearrange` takes each axis from.

    An array of shape ``(0, 1, 2, ...)`` shows that by its shape, and NumPy's own function raises
    NumPy's own errors.
    """
    order: tuple[int, ...] = rearrange(np.empty(tuple(range(ndim))), *args).shape
    return order
