"""SciPy's namespace for traced code: ``from funcgrad.scipy import special, stats, linalg``.

SciPy's ufuncs (`scipy.special.gammaln`, ...) take traced values as they are, with no import of
ours. Its other functions cannot; those are here under SciPy's names. SciPy itself is imported when
one of these modules is, and not before; it comes with ``pip install "funcgrad[scipy]"``.
"""

from __future__ import annotations

import importlib
from types import ModuleType

__all__ = ["integrate", "linalg", "ndimage", "optimize", "signal", "special", "stats"]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "scipy":
            raise ModuleNotFoundError(
                f'{__name__}.{name} needs SciPy\n  fix:   pip install "funcgrad[scipy]"',
                name="scipy",
            ) from error
        raise


def __dir__() -> list[str]:
    return sorted(__all__)
