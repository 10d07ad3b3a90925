"""Modules that stand in for others: `funcgrad.numpy` for NumPy, `funcgrad.scipy.stats` for SciPy's.

Such a module has some names of its own. Every other is looked up in the other module when it is
asked for, so that code changes one import and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

__all__ = ["standing_in"]


def standing_in(
    name: str,
    module: ModuleType,
    own: Iterable[str] = (),
    replace: Callable[[Any, str], Any] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make ``__getattr__`` and ``__dir__`` of a module that stands in for another.

    Parameters
    ----------
    name : str
        Its ``__name__``.
    module : module
        The other one.
    own : iterable of str
        The names that are replaced.
    replace : callable, optional
        ``replace(value, name)`` returns what to give in place of a value of the other module.

    Examples
    --------
    >>> import math
    >>> __getattr__, __dir__ = standing_in("mine", math, ["angle"])
    >>> __getattr__("pi") is math.pi
    True
    >>> "angle" in __dir__()
    True
    """

    def __getattr__(attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        try:
            found = getattr(module, attribute)
        except AttributeError as error:
            raise AttributeError(str(error).replace(repr(module.__name__), repr(name))) from None
        return found if replace is None else replace(found, attribute)

    def __dir__() -> list[str]:
        return sorted({*dir(module), *own})

    return __getattr__, __dir__
