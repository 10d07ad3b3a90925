"""Gradient descent, plain and with momentum; sums and means of gradients."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from funcgrad.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    ScalarOrSchedule,
    Updates,
    check_state,
    identity,
)
from funcgrad.optim.combining import chain
from funcgrad.optim.leaves import as_hyperparameter, each_leaf, zeros_for
from funcgrad.optim.moments import mean
from funcgrad.optim.scaling import scale_by_learning_rate

__all__ = ["EmaState", "TraceState", "ema", "sgd", "trace"]


class TraceState(NamedTuple):
    """The decaying sums of past gradients, like the parameters.

    Attributes
    ----------
    trace : pytree
        The sums.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = fg.optim.trace(0.5)
    >>> state = optimizer.init({"w": 1.0})
    >>> for _ in range(2):
    ...     _, state = optimizer.update({"w": 4.0}, state)
    >>> state
    TraceState(trace={'w': 6.0})
    """

    trace: Updates


def trace(
    decay: Any, nesterov: bool = False, accumulator_dtype: Any = None
) -> GradientTransformation:
    """Replace gradients by decaying sums of all so far: the heavy ball.

    Parameters
    ----------
    decay : float
        What remains of a sum at the next step. This is a sum, not an average: with a constant
        gradient it grows to ``1 / (1 - decay)`` times that.
    nesterov : bool
        Look one step ahead, as Nesterov's method does.
    accumulator_dtype : dtype, optional
        To keep the sums in; that of the parameters by default.

    Returns
    -------
    GradientTransformation
        Its state is a `TraceState`.

    Raises
    ------
    TreeMismatchError, ShapeError
        From `update`: the gradients do not fit the state.

    Examples
    --------
    >>> optimizer = trace(0.5)
    >>> updates, state = optimizer.update({"w": 1.0}, optimizer.init({"w": 0.0}))
    >>> optimizer.update({"w": 1.0}, state)
    ({'w': 1.5}, TraceState(trace={'w': 1.5}))
    """
    decay = as_hyperparameter(decay, "decay")
    dtype = None if accumulator_dtype is None else np.dtype(accumulator_dtype)

    def init(params: Params) -> TraceState:
        return TraceState(zeros_for(params, dtype))

    def step(g: Any, total: Any) -> tuple[Any, Any]:
        total = g + decay * total
        return g + decay * total if nesterov else total, total

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(state, TraceState, "trace")
        updates, sums = each_leaf(step, updates, state.trace)
        return updates, TraceState(sums)

    return GradientTransformation(init, update)


class EmaState(NamedTuple):
    """The number of steps done, and the running means."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here
    ema: Params


def ema(decay: Any, debias: bool = True, accumulator_dtype: Any = None) -> GradientTransformation:
    """Replace updates by their running means.

    Parameters
    ----------
    decay : float
        What remains of the mean at the next step.
    debias : bool
        Make up for the mean having started at zero.
    accumulator_dtype : dtype, optional
        To keep the means in; that of the parameters by default.

    Returns
    -------
    GradientTransformation
        Its state is an `EmaState`.

    Examples
    --------
    >>> optimizer = ema(0.75)
    >>> optimizer.update({"w": 4.0}, optimizer.init({"w": 0.0}))
    ({'w': 4.0}, EmaState(count=1, ema={'w': 1.0}))
    """
    decay = as_hyperparameter(decay, "decay")

    def init(params: Params) -> EmaState:
        return EmaState(0, zeros_for(params, accumulator_dtype))

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(state, EmaState, "ema")
        count = state.count + 1
        divisor = 1 - decay**count if debias else 1

        def step(g: Any, m: Any) -> tuple[Any, Any]:
            m = mean(g, m, decay)
            return m / divisor, m

        updates, means = each_leaf(step, updates, state.ema)
        return updates, EmaState(count, means)

    return GradientTransformation(init, update)


def sgd(
    learning_rate: ScalarOrSchedule,
    momentum: Any = None,
    nesterov: bool = False,
    accumulator_dtype: Any = None,
) -> GradientTransformationExtraArgs:
    """Make an optimizer that goes against the gradient, with momentum if wanted.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule: it takes the number of steps done and returns a number.
    momentum : float, optional
        The `decay` of `trace`; no momentum by default.
    nesterov : bool
        Use Nesterov's form of momentum.
    accumulator_dtype : dtype, optional
        To keep the sums of gradients in.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer.

    References
    ----------
    .. [1] I. Sutskever, J. Martens, G. Dahl and G. Hinton, "On the importance of initialization and
       momentum in deep learning", ICML 2013.

    Examples
    --------
    >>> import numpy as np
    >>> optimizer = sgd(0.1)
    >>> optimizer.update(np.array([2000.0, 1.0]), optimizer.init(np.zeros(2)))[0]
    array([-2.e+02, -1.e-01])
    """
    first = (
        identity()
        if momentum is None
        else trace(as_hyperparameter(momentum, "momentum"), nesterov, accumulator_dtype)
    )
    return chain(first, scale_by_learning_rate(learning_rate))
