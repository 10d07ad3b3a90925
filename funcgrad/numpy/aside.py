"""Functions with arguments that NumPy does not look at: ``np.take(a, i)`` with a plain `a`.

NumPy hands a call over to us if one of certain arguments is traced: mostly the array. The functions
here look at all of them. What they call is what NumPy's function would have called.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.dispatch import look_at_all
from funcgrad.rules.spelling import joined

__all__ = [
    "amax",
    "amin",
    "interp",
    "max",
    "min",
    "nanmax",
    "nanmin",
    "nanprod",
    "nansum",
    "pad",
    "prod",
    "repeat",
    "resize",
    "roll",
    "select",
    "sum",
    "take",
]


def _looking(name: str, argument: str) -> Any:
    function = getattr(np, name)

    def made(*args: Any, **kwargs: Any) -> Any:
        if args and function is not np.select:  # whose lists are not arrays
            args = (joined(args[0]), *args[1:])
        return look_at_all(function, *args, **kwargs)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"""Do as `numpy.{name}`, also where only {argument} is traced.

    Parameters
    ----------
    *args, **kwargs
        As for `numpy.{name}`.

    Returns
    -------
    ndarray or scalar
    """
    return made


amax = _looking("amax", "`initial`")
amin = _looking("amin", "`initial`")
interp = _looking("interp", "`left`, `right` or `period`")
max = _looking("max", "`initial`")
min = _looking("min", "`initial`")
nanmax = _looking("nanmax", "`initial`")
nanmin = _looking("nanmin", "`initial`")
nanprod = _looking("nanprod", "`initial`")
nansum = _looking("nansum", "`initial`")
pad = _looking("pad", "`constant_values` or `end_values`")
prod = _looking("prod", "`initial`")
repeat = _looking("repeat", "`repeats`")
resize = _looking("resize", "an element of a list")
roll = _looking("roll", "`shift`")
select = _looking("select", "`default`")
sum = _looking("sum", "`initial`")
take = _looking("take", "`indices`")
