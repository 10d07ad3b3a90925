"""`linear_transpose`: the transpose of a linear function, which is its pullback anywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core.level import concrete, is_batched
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
        `fun` is not linear: it does not map zero to zero, or some other point as its derivative
        at zero does.
    DtypeError
        An argument is not floating.

    See Also
    --------
    vjp : the transpose of the derivative of any function.

    Notes
    -----
    To see whether it is linear, `fun` is also called at one other point, with plain arrays.

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
    if any(np.any(concrete(leaf) != 0) for leaf in _parts(out)):
        raise _not_linear(origin, "does not map zero to zero")
    somewhere = tree.map(_somewhere, tuple(primals))
    if not _agree(_parts(fun(*somewhere)), out, pullback, somewhere):
        raise _not_linear(origin, "is not its derivative times its argument")

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


def _somewhere(primal: Any) -> Any:
    """Return numbers that no function treats in a special way, like an argument."""
    if isinstance(primal, float | complex) and not isinstance(primal, np.generic):
        return type(primal)(0.7391)
    if hasattr(primal, "shape") and hasattr(primal, "dtype"):
        count = np.arange(1, np.prod(primal.shape, dtype=np.intp) + 1)
        return (
            (0.2 + 0.7 * np.modf(count * 0.6180339887)[0])
            .reshape(primal.shape)
            .astype(primal.dtype)[()]
        )
    return primal


def _parts(value: Any) -> list[Any]:
    return [leaf for leaf in tree.leaves(value) if is_differentiable(leaf)]


def _agree(values: list[Any], out: Any, pullback: Any, somewhere: Any) -> bool:
    """Tell whether a weighted sum of the values is that of the arguments with pulled weights."""
    weights = tree.map(_somewhere, out)
    pulled = pullback(weights)
    if any(map(is_batched, (*values, *_parts(pulled)))):
        return True  # each example is another function, and sums over all would not line up
    left = [(concrete(a), concrete(b)) for a, b in zip(_parts(weights), values, strict=True)]
    right = [
        (concrete(a), concrete(b)) for a, b in zip(_parts(pulled), _parts(somewhere), strict=True)
    ]
    size = sum(float(np.sum(np.abs(a * b))) for a, b in (*left, *right))
    eps = max((float(np.finfo(a.dtype).eps) for a, _ in left if hasattr(a, "dtype")), default=1e-15)
    difference = abs(sum(np.sum(a * b) for a, b in left) - sum(np.sum(a * b) for a, b in right))
    # Rounding in a long function; one that is not linear differs by about the whole.
    return not difference > max(1e-6, 1e3 * eps) * size


def _not_linear(origin: Any, why: str) -> ArgumentError:
    return ArgumentError(
        f"{origin.name} is not linear: it {why}",
        where=f"{user_line()}, in {origin}",
        fix="leave out what is added to it, or transpose its derivative: funcgrad.vjp(f, x)[1]",
    )
