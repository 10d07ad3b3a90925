"""Arrays of other kinds: which of them funcgrad computes with, and what it says of the others.

The one idea: a value is welcome if it speaks both of NumPy's protocols, ``__array_ufunc__`` and
``__array_function__``, for then every rule works on it. Who speaks one of the two (a data frame)
takes our results apart by other means, and a subclass of `numpy.ndarray` with an arithmetic of
its own (a matrix, a masked array, a quantity with a unit) means something else by ``x * y`` than
the rules do. Both would give wrong derivatives, some without a word, so they are refused. What
can only be converted to an array is converted, as NumPy does.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number, Rational
from typing import Any

import numpy as np

from funcgrad.core.zero import dtype_of
from funcgrad.errors import DtypeError, user_line

__all__ = ["PLAIN", "argument", "has_derivative", "number", "refuse", "refuse_leaf"]

# The types that need no look: nearly every value is of one of them. The tracer enters itself.
PLAIN: set[type] = {
    np.ndarray,
    float,
    int,
    bool,
    complex,
    *(np.dtype(code).type for code in "?" + np.typecodes["AllInteger"] + np.typecodes["AllFloat"]),
}

# A subclass of ndarray that has one of these anew. One that only watches its ufuncs may pass.
_ARITHMETIC = ("__array_function__", "__add__", "__mul__", "__matmul__")


def _complaint(value: Any) -> tuple[str, str] | None:
    """Return what is wrong with the type of `value` and what to use, or None if it is welcome."""
    cls = type(value)
    if isinstance(value, np.ndarray):
        if isinstance(value, np.matrix):
            what = "x * y means something else for it than for an array"
            return what, "use np.asarray(m), and x @ m for the matrix product"
        names = {base.__name__ for base in cls.__mro__ if base.__module__.startswith("numpy.ma")}
        if "MaskedArray" in names:
            what = "every operation means something else for it than for an array"
            fix = "use m.filled(0), or another value, with np.where and m.mask; np.sum and others "
            return what, fix + "take where=~m.mask"
        if any(getattr(cls, name) is not getattr(np.ndarray, name) for name in _ARITHMETIC):
            what = "it has an arithmetic of its own"
            return what, "use np.asarray(q), and give the result its kind or unit afterwards"
        return None
    ufuncs, functions = (
        getattr(cls, name, None) is not None for name in ("__array_ufunc__", "__array_function__")
    )
    if ufuncs == functions:
        return None
    what = f"it has no {'__array_function__' if ufuncs else '__array_ufunc__'}, so that not every "
    return what + "NumPy function can be told of it", _conversion(value)


def _conversion(value: Any) -> str:
    name = type(value).__name__
    if hasattr(type(value), "to_numpy"):
        return f"use the array in it, .to_numpy() of the {name}"
    return f"use np.asarray(a) of the {name}"


def _name(value: Any) -> str:
    cls = type(value)
    module = cls.__module__.partition(".")[0]
    if isinstance(value, np.matrix) or module != "numpy":
        return f"{module}.{cls.__qualname__}"
    return "numpy.ma.MaskedArray" if cls.__name__ == "MaskedArray" else f"numpy {cls.__name__}"


def refuse(value: Any, where: Callable[[], str] = user_line) -> None:
    """Raise if `value` is an array of a kind that funcgrad cannot compute with."""
    complaint = _complaint(value)
    if complaint is not None:
        what, fix = complaint
        raise DtypeError(
            f"a {_name(value)} cannot be differentiated, or meet a traced value: {what}",
            where=where(),
            fix=fix,
        )


def refuse_leaf(leaf: Any, where: Callable[[], str]) -> None:
    """Raise if a leaf holds numbers, but is not of a kind that funcgrad can differentiate."""
    dtype = getattr(leaf, "dtype", None)
    if dtype is not None and getattr(dtype, "kind", "f") not in "fciub":
        return  # text, dates or objects: nobody expects a derivative
    refuse(leaf, where)
    cls = type(leaf)
    if (
        dtype is not None
        and hasattr(cls, "__array__")
        and hasattr(leaf, "shape")
        and getattr(cls, "__array_ufunc__", None) is None
    ):
        raise DtypeError(
            f"a {_name(leaf)} cannot be differentiated: it does not speak NumPy's protocols, "
            "__array_ufunc__ and __array_function__",
            where=where(),
            fix=_conversion(leaf),
        )


def argument(value: Any) -> Any:
    """Return what a function computes with: `value`, or the array that it can only become.

    Called where the type is not one of `PLAIN`.
    """
    refuse(value)
    cls = type(value)
    if hasattr(cls, "__array__") and getattr(cls, "__array_ufunc__", None) is None:
        made = np.asarray(value)
        if made.dtype.kind in "fciub":
            return made
    return value


def number(value: Any, single: bool) -> Any:
    """Return a number of another kind (a fraction) as a float, for a traced Python number.

    With an array NumPy would compute with Python objects, which have no derivatives: an error.
    `value` is returned if it is no number.
    """
    if not isinstance(value, Number):
        return value
    if single and isinstance(value, Rational):
        return float(value)  # as Python does
    raise DtypeError(
        f"a traced value cannot be combined with a number of type {type(value).__name__}: "
        "NumPy would make an array of objects of it, which has no derivative",
        where=user_line(),
        fix=f"write float(...) of the {type(value).__name__}",
    )


def has_derivative(out: Any, name: str) -> bool:
    """Tell whether a result of the operation `name` carries a derivative: a floating one does.

    Integers and truth values have none to carry. An array of objects would lose it.
    """
    kind = dtype_of(out).kind
    if kind == "O":
        raise DtypeError(
            f"{name} of a traced value and of objects makes an array of objects, which would "
            "lose the derivative",
            where=user_line(),
            fix="convert the objects first, with np.asarray(values, dtype=float)",
        )
    return kind in "fc"
