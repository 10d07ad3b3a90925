"""What to write in place of a function that has no rule: a table by hand, and the nearest name.

`INSTEAD` knows by full names what nobody could guess; the modules of `funcgrad.scipy` add to it.
For all other functions the registries are asked which name with a rule is most like theirs.
"""

from __future__ import annotations

import difflib
from typing import Any

import numpy as np

from funcgrad.core.primitive import FUNCTIONS, UFUNCS

__all__ = ["INSTEAD", "advice", "names_with_rules", "offer", "public_module", "reason"]

_PLAIN = "save what the transform returns, or the aux value of has_aux=True"
_DATES = "count the days outside of what is differentiated"

# Full name -> what to write instead.
INSTEAD: dict[str, str] = {
    "numpy.busday_count": _DATES,
    "numpy.busday_offset": _DATES,
    "numpy.datetime_as_string": _DATES,
    "numpy.is_busday": _DATES,
    "numpy.save": _PLAIN,
    "numpy.savetxt": _PLAIN,
    "numpy.savez": _PLAIN,
    "numpy.savez_compressed": _PLAIN,
}
# Full name -> why there is no rule, where there is more to say than that nobody wrote one.
_WHY: dict[str, str] = {
    **dict.fromkeys(
        ("numpy.save", "numpy.savetxt", "numpy.savez", "numpy.savez_compressed"),
        "it writes a file, which cannot hold a traced value",
    ),
    **dict.fromkeys(
        (
            "numpy.busday_count",
            "numpy.busday_offset",
            "numpy.datetime_as_string",
            "numpy.is_busday",
        ),
        "it takes dates, which have no derivatives",
    ),
}
_ADD = "or add the rule: docs/how-to/add-a-primitive.md"


def reason(name: str) -> str:
    """Say why a function has no rule."""
    return _WHY.get(name, "funcgrad knows no derivative of it")


def advice(name: str) -> str:
    """Say what to write instead of a function, given its full name."""
    if name in INSTEAD:
        return INSTEAD[name]
    module, _, last = name.rpartition(".")
    near = difflib.get_close_matches(last, names_with_rules(module), n=1, cutoff=0.6)
    write = "write it with functions that have one"
    if near:
        write += f", such as {module}.{near[0]}"
    return f"{write}, {_ADD}"


def names_with_rules(module: str) -> list[str]:
    """Return the names of the functions of a module that traced values may be given to."""
    found = _OWN.get(module, set()) | {
        fun.__name__
        for fun in (*UFUNCS, *FUNCTIONS)
        if hasattr(fun, "__name__") and _home(fun) == module
    }
    return sorted(name for name in found if not name.startswith("_"))


# Module of SciPy -> the names that funcgrad replaces in it.
_OWN: dict[str, set[str]] = {}


def offer(module: str, names: Any) -> None:
    """Declare that these names of a module take traced values, in funcgrad's module of its name."""
    _OWN.setdefault(module, set()).update(names)


def _home(fun: Any) -> str:
    """Return the public module of a NumPy function, or of a ufunc of NumPy or SciPy."""
    if isinstance(fun, np.ufunc):
        return "numpy" if getattr(np, fun.__name__, None) is fun else "scipy.special"
    return public_module(fun)


def public_module(fun: Any) -> str:
    """Return the module that a function is offered by: ``scipy.linalg._basic`` hides in another."""
    parts = (getattr(fun, "__module__", None) or "numpy").split(".")
    return ".".join([part for part in parts if not part.startswith("_")])
