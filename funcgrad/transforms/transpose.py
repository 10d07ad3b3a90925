"""`linear_transpose`: the transpose of a linear function, which is its pullback anywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core.level import concrete
from funcgrad.errors import ArgumentError, user_line
from funcgrad.transforms.flat import call_origin, check_callable, is_differentiable
from funcgrad.transforms.reverse import record

__all__ = ["linear_transpose"]


def linear_transpose(fun: Callable[..., Any], *primals: Any) -> Callable[[Any], tuple[Any, ...]]:
    """Transpose a linear function.

    Parameters
    ----------
    fun : callable
        Linear function of ``len(primals)`` pytrees of arrays, returning a pytree of arrays.
    *primals : pytree
        What its arguments look like: arrays, numbers, or anything with a `shape` and a `dtype`,
        such as `ShapeDtypeStruct`. Their values do not matter.

    Returns
    -------
    callable
        Takes a cotangent like the output of `fun`; returns a tuple of ``len(primals)`` cotangents.

    Raises
    ------
    ArgumentError
        `fun` is not linear: it does not map zero to zero.
    DtypeError
        An argument is not floating.

    See Also
    --------
    vjp : the transpose of the derivative of any function.

    Notes
    -----
    A function such as `numpy.sin` that is not linear, though it maps zero to zero, is not noticed:
    its derivative at zero is transposed.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> a = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> transposed = fg.linear_transpose(lambda x: a @ x, np.zeros(2))
    >>> transposed(np.array([1.0, 0.0]))
    (array([1., 2.]),)
    """
    check_callable("linear_transpose", fun)
    origin = call_origin("linear_transpose", fun)
    names = [f"argument {number}" for number in range(len(primals))]
    out, pullback, _ = record(fun, tree.map(_zero, tuple(primals)), names, origin)
    for leaf in tree.leaves(out):
        if is_differentiable(leaf) and np.any(concrete(leaf) != 0):
            raise ArgumentError(
                f"{origin.name} is not linear: it does not map zero to zero",
                where=f"{user_line()}, in {origin}",
                fix="leave out what is added to it, or transpose its derivative: "
                "funcgrad.vjp(f, x)[1]",
            )

    def transposed(out_bar: Any) -> tuple[Any, ...]:
        """Pull a cotangent of the output back to the arguments."""
        return pullback(out_bar)

    return transposed


def _zero(primal: Any) -> Any:
    if isinstance(primal, float | complex) and not isinstance(primal, np.generic):
        return type(primal)(0)
    if hasattr(primal, "shape") and hasattr(primal, "dtype"):
        return np.zeros(primal.shape, primal.dtype)
    return primal
