"""Numbers and arrays as source: what is written is the same again to the last bit.

Arrays also lie in memory in the same order again, as the order of a sum depends on that. They are
written in brackets if they are short, and in base 85 if they are not.
"""

from __future__ import annotations

import base64
import math
import textwrap
from typing import Any

import numpy as np

from funcgrad.staging.strict import layout_in_memory

__all__ = ["arranged_text", "array_text", "number_text"]

# Arrays with more elements are not written in brackets.
_FEW = 32
_WIDTH = 88


def number_text(value: Any) -> str:
    """Write a number of Python."""
    if isinstance(value, complex):
        # The sign of a zero in `-0.0 + 1j` is lost on the way.
        return f"complex({number_text(value.real)}, {number_text(value.imag)})"
    if isinstance(value, float) and not math.isfinite(value):
        return "np.nan" if value != value else "np.inf" if value > 0 else "-np.inf"
    return repr(value)


def array_text(value: np.ndarray[Any, Any]) -> str | None:
    """Write an array of numbers; None for others."""
    if value.dtype.kind not in "fciub":
        return None
    dtype = repr(value.dtype.name if value.dtype.isnative else value.dtype.str)
    if not value.size:
        return f"np.empty({value.shape}, {dtype})"
    layout = layout_in_memory(value) if value.ndim else "C"
    order = "C" if layout is None else layout
    first = value.flat[0]
    if value.size > 1 and order in ("C", "F") and value.tobytes() == first.tobytes() * value.size:
        last = "" if order == "C" else ", order='F'"
        return f"np.full({value.shape}, {number_text(first.item())}, {dtype}{last})"
    if value.size <= _FEW and value.dtype.kind != "c" and np.all(np.isfinite(value)):
        last = "" if order == "C" or value.ndim < 2 else f", order={order!r}"
        if order in ("C", "F"):
            return f"np.array({value.tolist()!r}, {dtype}{last})"
    axes = list(range(value.ndim)) if order == "C" else list(range(value.ndim))[::-1]
    if order not in ("C", "F"):
        axes = [int(axis) for axis in order]
    data = base64.b85encode(value.transpose(axes).tobytes()).decode()
    rows = "\n".join(f"        {row!r}" for row in textwrap.wrap(data, _WIDTH))
    flat = f"np.frombuffer(\n    base64.b85decode(\n{rows}\n    ),\n    {value.dtype.str!r},\n)"
    return arranged_text(flat, value.shape, order)


def arranged_text(memory: str, shape: tuple[int, ...], order: str) -> str:
    """Write an array of this shape and order of axes in flat memory."""
    if order in ("C", "F"):
        if len(shape) == 1:
            return memory
        return f"{memory}.reshape({shape}{'' if order == 'C' else ', order=' + repr(order)})"
    axes = [int(axis) for axis in order]
    back = tuple(np.argsort(axes).tolist())
    return f"{memory}.reshape({tuple([shape[axis] for axis in axes])}).transpose({back})"
