"""What the filters of images share: how an image goes on beyond its border, and their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from funcgrad.core.zero import shape_of
from funcgrad.errors import MissingRuleError, user_line
from funcgrad.rules.convolution import window

__all__ = [
    "along",
    "axes_of",
    "check_output",
    "each",
    "extended",
    "mean",
]

# NumPy's names for how an image goes on, by SciPy's.
_PAD_MODES: dict[str, Any] = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "constant",
    "grid-constant": "constant",
}


def extended(x: Any, lengths: Sequence[int], befores: Sequence[int], mode: str, cval: float) -> Any:
    """Write out what is around `x`, so that weights of these lengths fit in everywhere."""
    pairs = [(low, n - 1 - low) for n, low in zip(lengths, befores, strict=True)]
    how = _PAD_MODES[mode]
    options: Any = {"constant_values": cval} if how == "constant" else {}
    return np.pad(x, pairs, how, **options)


def along(x: Any, weights: Any, axis: int, mode: str, cval: float, before: int) -> Any:
    """Correlate with weights along an axis, `before` of them lie in front of each pixel."""
    shape, (length,) = shape_of(x), shape_of(weights)
    lengths, befores = [1] * len(shape), [0] * len(shape)
    lengths[axis], befores[axis] = length, before
    rows = np.moveaxis(extended(x, lengths, befores, mode, cval), axis, -1)
    made = window.bind(rows, weights[::-1], start=length - 1, length=shape[axis])
    return np.moveaxis(made, -1, axis)


def mean(x: Any, *, size: int, axis: int, mode: str, cval: float, origin: int) -> Any:
    weights = np.full(size, 1 / size)
    return along(x, weights, axis, mode, cval, size // 2 + origin)


def each(option: Any, count: int) -> list[Any]:
    """Return one value of an option for each axis."""
    if option is None or isinstance(option, str) or np.ndim(option) == 0:
        return [option] * count
    return list(option)


def axes_of(axes: Any, x: Any) -> tuple[int, ...]:
    ndim = len(shape_of(x))
    found: tuple[int, ...] = normalize_axis_tuple(range(ndim) if axes is None else axes, ndim)
    return found


def check_output(output: Any, name: str, kwargs: dict[str, Any] | None = None) -> None:
    given = "output" if output is not None else next(iter(kwargs or ()), None)
    if given is not None:
        raise MissingRuleError(
            f"scipy.ndimage.{name} with {given}= has no rule for traced values",
            where=user_line(),
            fix="leave output away, and cast the result with .astype"
            if given == "output"
            else "give the weights an axis of length 1 for every axis that they leave alone",
        )
