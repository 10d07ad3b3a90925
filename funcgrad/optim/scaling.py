"""Factors of updates: constants, schedules, the learning rate; and of gradients in a function."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from funcgrad import custom_vjp, stop_gradient, tree
from funcgrad.optim.base import (
    GradientTransformation,
    OptState,
    Params,
    ScalarOrSchedule,
    Schedule,
    Updates,
    check_state,
    identity,
    init_empty_state,
)
from funcgrad.optim.leaves import (
    as_hyperparameter,
    is_complex,
    like_leaf,
    map_updates,
    rate_at,
)

__all__ = [
    "ScaleByLearningRateState",
    "ScaleByScheduleState",
    "descend",
    "scale",
    "scale_by_learning_rate",
    "scale_by_rate",
    "scale_by_schedule",
    "scale_gradient",
]


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
    factor = as_hyperparameter(step_size, "step_size")

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        return _times(factor, updates, conjugated=False), state

    return GradientTransformation(init_empty_state, update)


def descend() -> GradientTransformation:
    """Make the last part of an optimizer whose step sizes are done: against the gradient."""

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        return _times(-1.0, updates, conjugated=True), state

    return GradientTransformation(init_empty_state, update)


def _times(factor: Any, updates: Updates, conjugated: bool) -> Updates:
    def times(leaf: Any) -> Any:
        conjugate = np.conjugate(leaf) if conjugated and is_complex(leaf) else leaf
        return _as_part_of(leaf, factor) * conjugate

    return map_updates(times, updates)


def _as_part_of(leaf: Any, factor: Any) -> Any:
    """Return a factor in the precision of a leaf.

    A schedule gives a Python float, which takes that by itself, or under `jit` a float64, with
    which the whole leaf would be multiplied in double precision.
    """
    dtype = getattr(factor, "dtype", None)
    if dtype is None or dtype.kind != "f" or np.shape(factor) != () or not np.shape(leaf):
        return factor
    return factor.astype(np.finfo(leaf.dtype).dtype) if leaf.dtype.kind in "fc" else factor


class ScaleByScheduleState(NamedTuple):
    """The number of steps done.

    Attributes
    ----------
    count : int
        The number of steps done.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = fg.optim.scale_by_schedule(fg.optim.linear_schedule(1.0, 0.0, 10))
    >>> state = optimizer.init({"w": 1.0})
    >>> _, state = optimizer.update({"w": 1.0}, state)
    >>> state
    ScaleByScheduleState(count=1)
    """

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here


class ScaleByLearningRateState(NamedTuple):
    """The number of steps done, and the learning rate of the last of them.

    Before the first step it is the rate that this will have. Nothing is read from here: to change
    a rate by hand, see `inject_hyperparams`.

    Attributes
    ----------
    count : int
        The number of steps done.
    learning_rate : float
        That of the last of them.

    Examples
    --------
    >>> import funcgrad as fg
    >>> state = fg.optim.sgd(0.1).init({"w": 1.0})
    >>> state[-1]
    ScaleByLearningRateState(count=0, learning_rate=0.1)
    >>> state[-1].learning_rate
    0.1
    """

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here
    learning_rate: Any


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

    def init(params: Params) -> ScaleByScheduleState:
        return ScaleByScheduleState(0)

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        count = check_state(state, ScaleByScheduleState, "a schedule").count
        factor = rate_at(step_size_fn, count)
        return _times(factor, updates, conjugated=False), ScaleByScheduleState(count + 1)

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
        Its state is a `ScaleByLearningRateState`, empty without a learning rate.

    Notes
    -----
    The gradient of a complex parameter is conjugated here, since `funcgrad.grad` gives
    ``df/dx - i df/dy``, and ``df/dx + i df/dy`` is the direction in which f grows.

    Examples
    --------
    >>> optimizer = scale_by_learning_rate(0.1)
    >>> optimizer.update({"w": 2.0, "z": 1.0 + 1.0j}, optimizer.init({"w": 1.0, "z": 0j}))
    ({'w': -0.2, 'z': (-0.1+0.1j)}, ScaleByLearningRateState(count=1, learning_rate=0.1))
    """
    if learning_rate is None:
        return identity()
    return scale_by_rate(learning_rate, -1 if flip_sign else 1, conjugated=True)


def scale_by_rate(
    learning_rate: ScalarOrSchedule, sign: int, *, conjugated: bool
) -> GradientTransformation:
    """Make what `scale_by_learning_rate` returns; `conjugated` says whether it descends."""
    if callable(learning_rate):
        schedule = learning_rate
    else:
        fixed = _as_rate(as_hyperparameter(learning_rate, "learning_rate"))

        def schedule(count: Any) -> Any:
            return fixed

    def init(params: Params) -> ScaleByLearningRateState:
        return ScaleByLearningRateState(0, _as_rate(rate_at(schedule, 0)))

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        count = check_state(state, ScaleByLearningRateState, "scale_by_learning_rate").count
        rate = _as_rate(rate_at(schedule, count))
        new = ScaleByLearningRateState(count + 1, rate)
        return _times(sign * rate, updates, conjugated=conjugated), new

    return GradientTransformation(init, update)


def _as_rate(rate: Any) -> Any:
    return float(rate) if type(rate) is int else rate


# Inside of a function


def scale_gradient(inputs: Any, scale: Any) -> Any:
    """Return the inputs; their gradients are multiplied by a factor.

    Parameters
    ----------
    inputs : pytree
        Of arrays and numbers.
    scale : float
        The factor.

    Returns
    -------
    pytree
        The same.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.grad(lambda x: scale_gradient(x, 0.5) ** 2)(3.0)
    3.0
    """
    if type(scale) in (int, float):
        if scale == 1:
            return inputs
        if scale == 0:
            return stop_gradient(inputs)
    return _scaled(inputs, scale)


@custom_vjp
def _scaled(inputs: Any, scale: Any) -> Any:
    return inputs


def _forward(inputs: Any, scale: Any) -> tuple[Any, Any]:
    return inputs, scale


def _backward(scale: Any, bar: Any) -> tuple[Any, None]:
    return tree.map(lambda leaf: like_leaf(leaf * scale, leaf), bar), None


_scaled.defvjp(_forward, _backward)
