"""Backtracking: from a large step to smaller ones, until the value falls enough."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from funcgrad import value_and_grad
from funcgrad.optim.base import (
    GradientTransformationExtraArgs,
    OptState,
    Params,
    Updates,
    check_state,
    missing_params,
    needing_more,
)
from funcgrad.optim.leaves import map_updates, zeros_for
from funcgrad.optim.lines import arguments_of, as_number, error_of, moved, quiet, slope_along

__all__ = [
    "BacktrackingLinesearchInfo",
    "ScaleByBacktrackingLinesearchState",
    "scale_by_backtracking_linesearch",
]


class BacktrackingLinesearchInfo(NamedTuple):
    """How many steps were tried, and by how much the last one did not fall enough."""

    num_linesearch_steps: int
    decrease_error: Any


class ScaleByBacktrackingLinesearchState(NamedTuple):
    """The step size, the value and the gradient where it leads, and how it was found."""

    learning_rate: Any
    value: Any
    grad: Updates
    info: BacktrackingLinesearchInfo


def scale_by_backtracking_linesearch(
    max_backtracking_steps: int,
    slope_rtol: Any = 1e-4,
    decrease_factor: Any = 0.8,
    increase_factor: Any = 1.5,
    max_learning_rate: Any = 1.0,
    atol: Any = 0.0,
    rtol: Any = 0.0,
    store_grad: bool = False,
    verbose: bool = False,
) -> GradientTransformationExtraArgs:
    """Multiply updates by a step size for which the value falls enough (Armijo's rule) [1]_.

    Parameters
    ----------
    max_backtracking_steps : int
        How often the step is made smaller at most.
    slope_rtol : float
        What part of the fall that the slope promises is enough.
    decrease_factor : float
        What the step is multiplied by.
    increase_factor : float
        What the last step size is multiplied by, to begin with.
    max_learning_rate : float
        The largest step size.
    atol, rtol : float
        What the value may rise all the same; `rtol` is a part of the value.
    store_grad : bool
        Keep the gradient at the new point in the state, for `value_and_grad_from_state`.
    verbose : bool
        Print why a search failed.

    Returns
    -------
    GradientTransformationExtraArgs
        Its `update` needs the parameters, and as keyword arguments the ``value`` and the ``grad``
        there, and ``value_fn``, the function; others are arguments of that. Its place is at the end
        of a chain, behind a step that descends.

    Raises
    ------
    ArgumentError
        From `update`: there are no parameters, or an argument that `value_fn` does not take.

    Notes
    -----
    A search decides by values, so it cannot run under `vmap`. After one that found no step at all
    the next begins with 1, where one of Optax stays at 0.

    References
    ----------
    .. [1] J. Nocedal and S. J. Wright, *Numerical Optimization*, 2nd ed., Springer, 2006, ch. 3.

    Examples
    --------
    >>> import funcgrad as fg
    >>> def square(w):
    ...     return w**2
    >>> optimizer = fg.optim.chain(
    ...     fg.optim.sgd(1.0), scale_by_backtracking_linesearch(10, decrease_factor=0.5)
    ... )
    >>> state = optimizer.init(3.0)
    >>> updates, state = optimizer.update(6.0, state, 3.0, value=9.0, grad=6.0, value_fn=square)
    >>> updates, state[1].learning_rate
    (-3.0, 0.5)
    """

    def init(params: Params) -> ScaleByBacktrackingLinesearchState:
        grad = zeros_for(params) if store_grad else None
        info = BacktrackingLinesearchInfo(0, math.inf)
        return ScaleByBacktrackingLinesearchState(1.0, math.inf, grad, info)

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        *,
        value: Any,
        grad: Updates,
        value_fn: Callable[..., Any],
        **extra_args: Any,
    ) -> tuple[Updates, OptState]:
        name = "scale_by_backtracking_linesearch"
        state = check_state(state, ScaleByBacktrackingLinesearchState, name)
        if params is None:
            raise missing_params(name)
        arguments = arguments_of(value_fn, extra_args, name)
        value = as_number(value)
        slope = slope_along(updates, grad)
        # A search that failed leaves 0, from where no other would get away.
        rate = min(increase_factor * (state.learning_rate or 1.0), max_learning_rate)
        error: Any = math.inf
        tried = 0
        while not error <= atol and tried <= max_backtracking_steps:
            if tried > 0:
                rate = decrease_factor * rate
            with quiet():
                point = moved(params, rate, updates)
                new = as_number(value_fn(point, **arguments))
            error = error_of(new - (1.0 + rtol) * value - rate * slope_rtol * slope)
            tried += 1
        new_grad = None
        if store_grad:
            new, new_grad = value_and_grad(value_fn, allow_int=True)(point, **arguments)
            new = as_number(new)
        if verbose and not error <= atol:
            _report(value, slope, rate, error)
        if error == math.inf:
            rate = 0.0
        info = BacktrackingLinesearchInfo(tried, error)
        return (
            map_updates(lambda u: rate * u, updates),
            ScaleByBacktrackingLinesearchState(rate, new, new_grad, info),
        )

    return needing_more(init, update)


def _report(value: Any, slope: Any, rate: Any, error: Any) -> None:
    print(  # noqa: T201 - what `verbose` asks for
        "scale_by_backtracking_linesearch: the value did not fall enough.\n"
        f"  value: {value}, slope: {slope}, step size: {rate}, error: {error}"
        + ("\n  the step is 0, as no finite value was found" if error == math.inf else "")
    )
