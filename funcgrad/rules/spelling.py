"""NumPy's spelling of a primitive, where the mechanism cannot translate the call by itself.

A primitive takes arrays by position and statics by keyword. A function of NumPy that takes its
arrays in a list, or between two statics, is translated by a function of NumPy's own signature,
which `spells` enters in the registry in the primitive's place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.core.level import TracerBase
from funcgrad.core.primitive import FUNCTIONS, Primitive

__all__ = ["array_of", "axis_order", "holds_tracer", "newer", "spells", "stand_in"]

_NESTED = (list, tuple)


def spells(primitive: Primitive, *functions: Any) -> Callable[[Any], Any]:
    """Declare that the decorated function calls `primitive` for these NumPy functions."""
    primitive.overridden = (*primitive.overridden, *functions)

    def declare(fun: Any) -> Any:
        for function in functions:
            FUNCTIONS[function] = fun
        return fun

    return declare


def newer(*names: str) -> tuple[Any, ...]:
    """Return the NumPy functions of these names that the installed version has."""
    return tuple(getattr(np, name) for name in names if hasattr(np, name))


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
    return np.stack(parts)


def stand_in(shape: tuple[int, ...]) -> Any:
    """Return an array of `shape` that takes no memory, to ask NumPy what it would do."""
    return np.broadcast_to(np.False_, shape)


def axis_order(rearrange: Callable[..., Any], ndim: int, *args: Any) -> tuple[int, ...]:
    """Return where `rearrange` takes each axis from.

    An array of shape ``(0, 1, 2, ...)`` shows that by its shape, and NumPy's own function raises
    NumPy's own errors.
    """
    order: tuple[int, ...] = rearrange(np.empty(tuple(range(ndim))), *args).shape
    return order
