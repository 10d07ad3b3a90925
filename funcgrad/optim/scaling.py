"""Factors: constant ones, ones that a schedule gives, and the learning rate."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from funcgrad.optim.base import (
    GradientTransformation,
    OptState,
    Params,
    ScalarOrSchedule,
    Schedule,
    Updates,
    as_hyperparameter,
    check_state,
    identity,
    init_empty_state,
    map_updates,
    rate_at,
)

__all__ = ["ScaleByScheduleState", "scale", "scale_by_learning_rate", "scale_by_schedule"]


def scale(step_size: Any) -> GradientTransformation:
    """Multiply updates by a constant.

    Parameters
    ----------
    step_size : float
        The factor.

    Returns
    -------
    GradientTransformation
        Without state.

    Examples
    --------
    >>> optimizer = scale(-0.1)
    >>> optimizer.update({"w": 2.0}, optimizer.init({"w": 1.0}))
    ({'w': -0.2}, EmptyState())
    """
    return _scaled(as_hyperparameter(step_size, "step_size"), conjugated=False)


def _times(factor: Any, updates: Updates, conjugated: bool) -> Updates:
    if not conjugated:
        return map_updates(lambda leaf: factor * leaf, updates)

    def descend(leaf: Any) -> Any:
        if type(leaf) is complex or getattr(leaf, "dtype", _FLOAT).kind == "c":
            leaf = np.conjugate(leaf)
        return factor * leaf

    return map_updates(descend, updates)


_FLOAT = np.dtype(np.float64)


def _scaled(factor: Any, *, conjugated: bool) -> GradientTransformation:
    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        return _times(factor, updates, conjugated), state

    return GradientTransformation(init_empty_state, update)


class ScaleByScheduleState(NamedTuple):
    """The number of steps done."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here


def scale_by_schedule(step_size_fn: Schedule) -> GradientTransformation:
    """Multiply updates by a factor that depends on the number of steps done.

    Parameters
    ----------
    step_size_fn : callable
        Takes the number of steps done, 0 at the first; returns the factor.

    Returns
    -------
    GradientTransformation
        Its state is a `ScaleByScheduleState`.

    Examples
    --------
    >>> optimizer = scale_by_schedule(lambda count: -0.1 / (1 + count))
    >>> updates, state = optimizer.update({"w": 2.0}, optimizer.init({"w": 1.0}))
    >>> optimizer.update({"w": 2.0}, state)
    ({'w': -0.1}, ScaleByScheduleState(count=2))
    """
    return _scheduled(step_size_fn, 1, conjugated=False)


def _scheduled(schedule: Schedule, sign: int, *, conjugated: bool) -> GradientTransformation:
    def init(params: Params) -> ScaleByScheduleState:
        return ScaleByScheduleState(0)

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        count = check_state(state, ScaleByScheduleState, "a schedule").count
        factor = sign * rate_at(schedule, count)
        return _times(factor, updates, conjugated), ScaleByScheduleState(count + 1)

    return GradientTransformation(init, update)


def scale_by_learning_rate(
    learning_rate: ScalarOrSchedule | None = None, *, flip_sign: bool = True
) -> GradientTransformation:
    """Turn gradients into steps: against them, and as far as the learning rate says.

    Parameters
    ----------
    learning_rate : float or callable, optional
        A number, or a schedule: it takes the number of steps done and returns a number. None
        leaves the updates as they are.
    flip_sign : bool
        Go against the gradient; False goes along with it.

    Returns
    -------
    GradientTransformation
        Its state is empty, or a `ScaleByScheduleState`.

    Notes
    -----
    The gradient of a complex parameter is conjugated here, since `funcgrad.grad` gives
    ``df/dx - i df/dy``, and ``df/dx + i df/dy`` is the direction in which f grows.

    Examples
    --------
    >>> optimizer = scale_by_learning_rate(0.1)
    >>> optimizer.update({"w": 2.0, "z": 1.0 + 1.0j}, optimizer.init({"w": 1.0, "z": 0j}))
    ({'w': -0.2, 'z': (-0.1+0.1j)}, EmptyState())
    """
    if learning_rate is None:
        return identity()
    sign = -1 if flip_sign else 1
    if callable(learning_rate):
        return _scheduled(learning_rate, sign, conjugated=True)
    return _scaled(sign * as_hyperparameter(learning_rate, "learning_rate"), conjugated=True)
