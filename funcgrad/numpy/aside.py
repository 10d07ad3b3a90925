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


def _looking(name: str, argument: str, example: str, shown: str = "1.0") -> Any:
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

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> import funcgrad.numpy as fnp
    >>> {example}
    {shown}
    """
    return made


def _with_initial(name: str, slope: str) -> Any:
    """Make one of the reductions that start from `initial`."""
    example = f"fg.grad(lambda x: fnp.{name}([1.0, 2.0], initial=x))({{at}})"
    return _looking(name, "`initial`", example.format(at="0.5" if "min" in name else "3.0"), slope)


amax = _with_initial("amax", "1.0")
amin = _with_initial("amin", "1.0")
max = _with_initial("max", "1.0")
min = _with_initial("min", "1.0")
nanmax = _with_initial("nanmax", "1.0")
nanmin = _with_initial("nanmin", "1.0")
nanprod = _with_initial("nanprod", "2.0")
nansum = _with_initial("nansum", "1.0")
prod = _with_initial("prod", "2.0")
sum = _with_initial("sum", "1.0")

interp = _looking(
    "interp",
    "`left`, `right` or `period`",
    "fg.grad(lambda x: fnp.interp(9.0, [0.0, 1.0], [5.0, 6.0], right=x))(2.0)",
)
pad = _looking(
    "pad",
    "`constant_values` or `end_values`",
    "fg.grad(lambda x: fnp.pad(np.zeros(2), 1, constant_values=x).sum())(3.0)",
    "2.0",
)
repeat = _looking(
    "repeat",
    "`repeats`",
    "fg.grad(lambda x: fnp.repeat([x, 1.0], 3).sum())(2.0)",
    "3.0",
)
resize = _looking(
    "resize",
    "an element of a list",
    "fg.grad(lambda x: fnp.resize([x, 1.0], 4).sum())(2.0)",
    "2.0",
)
roll = _looking(
    "roll",
    "`shift`",
    "fg.vmap(lambda n: fnp.roll(np.arange(3), n))(np.array([1, 2]))[0]",
    "array([2, 0, 1])",
)
select = _looking(
    "select",
    "`default`",
    "fg.grad(lambda x: fnp.select([False], [1.0], default=x))(2.0)",
)
take = _looking(
    "take",
    "`indices`",
    "fg.vmap(lambda i: fnp.take([10.0, 20.0, 30.0], i))(np.array([2, 0]))",
    "array([30., 10.])",
)
