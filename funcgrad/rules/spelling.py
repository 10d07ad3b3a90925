"""What helps to translate NumPy's calls: lists that hold tracers, and shapes.

The functions that translate a call (`Primitive.def_call`) and those composed of others
(`funcgrad.core.primitive.overrides`) use them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.core.level import TracerBase, concrete, holds_tracer, is_batched, traced_here
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import DtypeError, ShapeError, describe, user_line

__all__ = [
    "array_of",
    "as_array",
    "as_arrays",
    "axis_order",
    "holds_tracer",
    "joined",
    "order_a",
    "prototype",
    "refuse_batched",
    "stand_in",
]

_NESTED = (list, tuple)


# Three ways to make an array of what a caller may write as one. They differ in what stays as it is:
# with `array_of` nothing but arrays, with `as_array` Python numbers too, which take the dtype of
# the other operand, and with `joined` all that NumPy can take from there: lists without tracers.


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


def as_array(value: Any) -> Any:
    """Return `value` if it is an array or a Python number, else what `array_of` makes of it."""
    if hasattr(value, "shape") or isinstance(value, int | float | complex):
        return value
    return array_of(value)


def as_arrays(args: Any, params: Any) -> Any:
    """Make arrays of nested lists: the `canonical` of functions that have no more to it."""
    return tuple(map(as_array, args)), params


def joined(value: Any) -> Any:
    """Return `value`, with a list that holds traced values turned into an array."""
    return array_of(value) if isinstance(value, _NESTED) and holds_tracer(value) else value


def prototype(value: Any) -> Any:
    """Return a plain array, or scalar, like one example: its shape, dtype and order in memory."""
    if not isinstance(value, TracerBase):
        return value
    plain, shape = concrete(value), shape_of(value)
    lead = len(shape_of(plain)) - len(shape)  # axes of examples
    if 0 in shape_of(plain)[:lead]:
        return np.empty(shape, dtype_of(value))[()]
    return plain[(0,) * lead] if lead else plain


def order_a(value: Any) -> str:
    """Return which order "A" is for an array, or for one example."""
    plain = prototype(value)
    return "F" if isinstance(plain, np.ndarray) and plain.flags.fnc else "C"


def stand_in(shape: tuple[int, ...]) -> Any:
    """Return an array of `shape` that takes no memory, to ask NumPy what it would do."""
    return np.broadcast_to(np.False_, shape)


def refuse_batched(
    value: Any,
    what: str,
    fix: str = "keep all elements, and use np.where(mask, x, 0), or where=mask in a reduction",
) -> None:
    """Raise if `value` differs from example to example, and with it the shape of the result."""
    if is_batched(value):
        raise ShapeError(
            f"{what}, which may differ from example to example",
            where=f"{user_line()}; {traced_here(value)}",
            fix=fix,
        )


def axis_order(rearrange: Callable[..., Any], ndim: int, *args: Any) -> tuple[int, ...]:
    """Return where `rearrange` takes each axis from.

    An array of shape ``(0, 1, 2, ...)`` shows that by its shape, and NumPy's own function raises
    NumPy's own errors.
    """
    order: tuple[int, ...] = rearrange(np.empty(tuple(range(ndim))), *args).shape
    return order
