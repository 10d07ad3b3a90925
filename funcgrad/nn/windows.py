"""What convolutions and pooling take alike: sizes, strides, and the ways to write padding.

All is brought to one form: a tuple with an int for each axis of space, and for padding a pair
``(low, high)``. The axes of space are the last ones of an image.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

from funcgrad.errors import ArgumentError, ShapeError, describe, user_line

__all__ = ["check_image", "check_window", "pads", "sizes"]

Sizes = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]


def sizes(value: Any, count: int, name: str, least: int = 1) -> Sizes:
    """Return one int for each of `count` axes, of an int or a sequence of so many."""
    try:
        found = tuple(map(index, value)) if hasattr(value, "__len__") else (index(value),)
    except TypeError:
        found = ()
    if len(found) == 1:
        found *= count
    if len(found) != count or min(found) < least:
        raise ArgumentError(
            f"{name}={value!r} is neither an integer nor {count} of them, all at least {least}",
            where=user_line(),
            fix=f"write {name}={max(least, 1)} or {name}={(max(least, 1),) * count}",
        )
    return found


def pads(value: Any, count: int, same: Callable[[], Pairs]) -> Pairs:
    """Return a pair for each of `count` axes.

    Parameters
    ----------
    value : int, sequence of int, sequence of pairs of int, or str
        ``"valid"`` is no padding; ``"same"`` is what `same` returns.
    """
    if isinstance(value, str):
        name = value.lower()
        if name == "valid":
            return ((0, 0),) * count
        if name == "same":
            return same()
    elif hasattr(value, "__len__") and any(hasattr(item, "__len__") for item in value):
        try:
            pairs = tuple((index(low), index(high)) for low, high in value)
        except (TypeError, ValueError):
            pairs = ()
        if len(pairs) == 1:
            pairs *= count
        if len(pairs) == count and all(min(pair) >= 0 for pair in pairs):
            return pairs
    else:
        return tuple((size, size) for size in sizes(value, count, "padding", 0))
    example = "(0, 1)" + ", (0, 1)" * (count - 1)
    raise ArgumentError(
        f"padding={value!r} is no padding for {count} axes",
        where=user_line(),
        fix=f'write padding=1, padding={(1,) * count}, padding=({example},), "SAME" or "VALID"',
    )


def same_pads(size: Sizes, window: Sizes, stride: Sizes, dilation: Sizes) -> Pairs:
    """Return the padding with which there is a place for every `stride` elements, rounded up."""
    pairs = []
    for n, k, s, d in zip(size, window, stride, dilation, strict=True):
        total = max((-(-n // s) - 1) * s + d * (k - 1) + 1 - n, 0)
        pairs.append((total // 2, total - total // 2))
    return tuple(pairs)


def check_image(name: str, x: Any, count: int) -> None:
    """Refuse what is neither an image, ``(channels, *space)``, nor a batch of them."""
    if x.ndim not in (count + 1, count + 2):
        space = ", ".join(("depth", "height", "width")[-count:])
        raise ShapeError(
            f"{name} takes (batch, channels, {space}) or (channels, {space}), got {describe(x)}",
            where=user_line(),
            fix="put axes in with x[None], or use the function for another number of axes",
        )


def check_window(name: str, size: Sizes, window: Sizes, padding: Pairs, dilation: Sizes) -> None:
    """Refuse a window that has no place in the padded image."""
    full = tuple(n + low + high for n, (low, high) in zip(size, padding, strict=True))
    extent = tuple(d * (k - 1) + 1 for k, d in zip(window, dilation, strict=True))
    if any(n < k for n, k in zip(full, extent, strict=True)):
        dilated = "" if extent == window else f", dilated to {extent},"
        around = "" if full == size else f", padded to {full}"
        raise ShapeError(
            f"{name}: a window of {window}{dilated} is larger than the input of {size}{around}",
            where=user_line(),
            fix='use a smaller window, more padding (or padding="SAME"), or larger images',
        )
