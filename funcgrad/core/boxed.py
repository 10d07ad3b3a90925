"""Leaves that are arrays of a kind of their own: an array of keys, which is made of numbers.

The one idea: such a leaf gives the one array that it is made of, and makes another leaf like itself
of another such array. A transform that only moves, takes or stacks elements does so to that array,
and need not know what the elements mean; inside the function it runs, the leaf is made of a tracer.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Boxed"]


class Boxed:
    """Base of the leaves that a transform may look into.

    The axes of the leaf (its `shape`) are the first axes of its content, which may have more axes
    behind those.
    """

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the leaf."""
        raise NotImplementedError

    def _unbox(self) -> Any:
        """Return the array, or tracer, that this leaf is made of."""
        raise NotImplementedError

    def _rebox(self, content: Any) -> Any:
        """Return a leaf like this one, of any shape, made of `content`."""
        raise NotImplementedError
