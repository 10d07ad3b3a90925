"""How models print: a call of the class, arrays as dtype and shape, with counts of parameters."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import numpy as np

import funcgrad as fg

__all__ = ["count_parameters", "show"]

_WIDTH = 100


def count_parameters(tree: Any) -> int:
    """Count the numbers in the floating-point and complex arrays of a tree.

    Parameters
    ----------
    tree : pytree
        A model, or parameters in any other form.

    Returns
    -------
    int
        How many numbers an optimizer would change. An array that is in the tree twice counts
        twice.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.nn.count_parameters({"w": np.ones((3, 2)), "b": np.ones(2), "step": np.array(3)})
    8
    """
    return sum(
        int(np.prod(leaf.shape, dtype=np.intp))
        for leaf in fg.tree.leaves(tree)
        if hasattr(leaf, "dtype") and np.issubdtype(leaf.dtype, np.inexact)
    )


def show(module: Any) -> str:
    """Write a module in as many lines as it takes, with the number of its parameters."""
    return _noted(_lines(module, 0), module, 0)


def _noted(text: str, module: Any, least: int) -> str:
    count = count_parameters(module)
    if count <= least:
        return text
    return f"{text}  # {count:,} parameter{'s' if count > 1 else ''}"


def _lines(value: Any, indent: int) -> str:
    opening, parts, closing = _parts(value)
    if parts is None:
        return opening
    flat = opening + ", ".join(name + _lines(part, 0) for name, part in parts) + closing
    if "\n" not in flat and len(flat) + indent <= _WIDTH:
        return flat
    inner = indent + 2
    shown = []
    for name, part in parts:
        text = f"{' ' * inner}{name}{_lines(part, inner)},"
        if isinstance(part, fg.nn.Module):
            text = _noted(text, part, 0)
        shown.append(text)
    return "\n".join([opening, *_folded(shown, inner), " " * indent + closing])


def _folded(texts: list[str], indent: int) -> list[str]:
    """Write parts that look alike once, with their number, if there are more than three."""
    folded: list[str] = []
    for text, alike in itertools.groupby(texts):
        count = len(list(alike))
        if count > 3:
            folded += [text, f"{' ' * indent}# and {count - 1:,} more like it"]
        else:
            folded += [text] * count
    return folded


def _parts(value: Any) -> tuple[str, list[tuple[str, Any]] | None, str]:
    """Return how a value opens, its named parts (None for a leaf), and how it closes."""
    kind = type(value)
    if isinstance(value, fg.nn.Module):
        fields = [(f"{field.name}=", getattr(value, field.name)) for field in attrs.fields(kind)]
        return f"{kind.__name__}(", fields, ")"
    if kind is dict:
        return "{", [(f"{key!r}: ", part) for key, part in value.items()], "}"
    if kind is list:
        return "[", [("", part) for part in value], "]"
    if kind is tuple:
        return "(", [("", part) for part in value], ",)" if len(value) == 1 else ")"
    if hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, np.generic):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]", None, ""
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__, None, ""
    return repr(value), None, ""
