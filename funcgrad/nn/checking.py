"""What layers ask of their arguments: arrays, sizes, and axes that fit.

Each check is one comparison on the way; what is found wrong is worded here, under the name of the
layer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError, describe, user_line

__all__ = ["array", "expect_last", "fits", "whole"]


def array(x: Any) -> Any:
    """Return an argument of a layer: arrays as they are, of lists and numbers arrays."""
    return x if hasattr(x, "shape") else fg.numpy.asarray(x)


def whole(layer: str, name: str, value: Any, least: int = 0) -> int:
    """Return a size as an integer."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise ArgumentError(
            f"{layer} cannot have {name}={value!r}",
            where=user_line(),
            fix=f"an integer, {least} or more",
        )
    return int(value)


def expect_last(layer: Any, x: Any, *sizes: int) -> None:
    """Raise unless the last axes of `x` have these sizes."""
    if x.shape[max(x.ndim - len(sizes), 0) :] != sizes:
        counted = f"the last axis counts {sizes[0]} features"
        if len(sizes) > 1:
            counted = f"the last axes have the shape it was made with: {sizes}"
        raise ShapeError(
            f"{type(layer).__name__} expects (..., {', '.join(map(str, sizes))}), "
            f"and was given {describe(x)}",
            where=user_line(),
            fix=counted,
        )


def fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Tell whether a shape broadcasts to another."""
    pairs = zip(reversed(shape), reversed(wanted), strict=False)
    return len(shape) <= len(wanted) and all(a in (1, b) for a, b in pairs)
