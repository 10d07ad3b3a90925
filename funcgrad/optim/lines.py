"""What line searches share: points on the line from the parameters along the updates.

Line searches decide by numbers, and so run outside of `vmap` only. Slopes of complex parameters
are ``real(sum(update * gradient))``, with gradients as `funcgrad.grad` gives them and updates that
`scale_by_learning_rate` has conjugated.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from funcgrad import tree, value_and_grad
from funcgrad.errors import ArgumentError, user_line
from funcgrad.optim.base import OptState, Params, Updates
from funcgrad.optim.leaves import as_hyperparameter, like_leaf, matched
from funcgrad.optim.states import found_in

__all__ = [
    "Point",
    "arguments_of",
    "as_number",
    "error_of",
    "moved",
    "quiet",
    "slope_along",
    "value_and_grad_from_state",
]


class Point(NamedTuple):
    """A point on the line: how far it is, and the function there."""

    stepsize: Any
    value: Any
    slope: Any
    grad: Updates


def quiet() -> Any:
    """Say nothing of values that are infinite or NaN: steps that lead there are not taken."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


def slope_along(updates: Updates, grad: Updates) -> Any:
    """Return the derivative along the updates."""
    leaves, slopes, _ = matched(
        updates, grad, "the argument grad does not fit the updates", "the updates", "grad"
    )
    total: Any = 0.0
    for u, g in zip(leaves, slopes, strict=True):
        if u is not None and g is not None:
            total = total + np.real(np.sum(u * g))
    return as_hyperparameter(total, "the slope")


def moved(params: Params, stepsize: Any, updates: Updates) -> Params:
    """Return the parameters at a point of the line."""
    leaves, olds, treedef = matched(
        updates, params, "the updates do not fit the parameters", "the updates", "the parameters"
    )
    news = [
        p if u is None else like_leaf(p + stepsize * u, p)
        for u, p in zip(leaves, olds, strict=True)
    ]
    return tree.unflatten(treedef, news)


def as_number(value: Any) -> Any:
    """Return a value of the function as a Python number, unless it is traced."""
    return as_hyperparameter(value, "the value of value_fn")


def error_of(excess: Any) -> Any:
    """Return by how much a condition is not met: 0 if it is, infinite where that is undefined."""
    if excess != excess:
        return math.inf
    return excess if excess > 0 else 0.0


def arguments_of(
    value_fn: Callable[..., Any], extra_args: dict[str, Any], name: str
) -> dict[str, Any]:
    """Return the extra arguments, for the function; raise if it does not take one of them."""
    known = inspect.signature(value_fn).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values()):
        return extra_args
    for key in extra_args:
        if key not in known:
            raise ArgumentError(
                f"{name} got the argument {key!r}, which value_fn does not take",
                where=user_line(),
                fix=f"leave it out; value_fn takes {', '.join(known)}",
            )
    return extra_args


def value_and_grad_from_state(
    value_fn: Callable[..., Any],
) -> Callable[..., tuple[Any, Updates]]:
    """Make a `value_and_grad` that takes both from a line search's state, where it has them.

    Parameters
    ----------
    value_fn : callable
        Returns the value, of the parameters first.

    Returns
    -------
    callable
        Takes the arguments of `value_fn`, and ``state=``. It calls `value_fn` only if the state has
        no finite value, as before the first step.

    Raises
    ------
    ArgumentError
        When called: the state has no value or no gradient to give.

    Examples
    --------
    >>> import funcgrad as fg
    >>> def square(w):
    ...     return w**2
    >>> optimizer = fg.optim.lbfgs()
    >>> params, state = 3.0, optimizer.init(3.0)
    >>> for _ in range(2):
    ...     value, grad = value_and_grad_from_state(square)(params, state=state)
    ...     updates, state = optimizer.update(
    ...         grad, state, params, value=value, grad=grad, value_fn=square
    ...     )
    ...     params = fg.optim.apply_updates(params, updates)
    >>> params
    0.0
    """

    def from_state(
        params: Params, *fn_args: Any, state: OptState, **fn_kwargs: Any
    ) -> tuple[Any, Updates]:
        value = next(found_in(state, lambda node: getattr(node, "value", None)), None)
        grad = next(found_in(state, lambda node: getattr(node, "grad", None)), None)
        if value is None or grad is None:
            raise ArgumentError(
                f"the state has no {'value' if value is None else 'gradient'} to give",
                where=user_line(),
                fix="use a line search that keeps both: scale_by_zoom_linesearch, or "
                "scale_by_backtracking_linesearch(..., store_grad=True)",
            )
        if np.isfinite(value):
            return value, grad
        result: tuple[Any, Updates] = value_and_grad(value_fn, allow_int=True)(
            params, *fn_args, **fn_kwargs
        )
        return result

    return from_state
