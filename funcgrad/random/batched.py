"""Functions of random words that also take the words of many keys, under `vmap`.

One idea: inside a function that `vmap` runs, a key holds a tracer of its bits, and words drawn from
it are traced. What is arithmetic goes through tracers by itself; a function that looks at its
numbers (sorts them, branches on them) is a primitive, and its forward function takes any number of
axes before those that it works along, so it has nothing to do but to let the axis of examples pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcgrad.core.batch import broadcasting
from funcgrad.core.level import TracerBase
from funcgrad.core.primitive import Primitive

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["has_examples", "of_examples"]


def of_examples(*core: int) -> Callable[[Callable[..., Any]], Primitive]:
    """Make a primitive of the decorated function, which has no derivative.

    Parameters
    ----------
    *core : int
        How many of the last axes of each argument the function works along; before them its
        arguments broadcast.
    """

    def declare(fun: Callable[..., Any]) -> Primitive:
        made = Primitive(fun, name=f"random.{fun.__name__}")
        made.not_differentiable("random words have no derivative")
        broadcasting(made, *core)
        return made

    return declare


def has_examples(value: Any) -> bool:
    """Tell whether `value` is traced, by `vmap` or a record, and has no derivative to lose."""
    if not isinstance(value, TracerBase) or value._trace.level == 0:
        return False
    while isinstance(value, TracerBase):
        if value._trace.level and not value._trace.traces_all:
            return False
        value = value._value
    return True
