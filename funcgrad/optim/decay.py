"""Weight decay: a pull of each parameter towards zero."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from funcgrad.optim.base import (
    EmptyState,
    GradientTransformation,
    OptState,
    Params,
    ScalarOrSchedule,
    Updates,
    check_state,
    missing_params,
)
from funcgrad.optim.leaves import as_hyperparameter, is_complex, map_with_params, rate_at
from funcgrad.optim.masking import masked

__all__ = ["WeightDecaySchedule", "add_decayed_weights", "decay_of_steps"]


class WeightDecaySchedule(NamedTuple):
    """The number of steps done, for a weight decay that depends on it.

    Attributes
    ----------
    count : int
        The number of steps done.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = fg.optim.add_decayed_weights(fg.optim.linear_schedule(0.1, 0.0, 10))
    >>> optimizer.init({"w": 1.0})
    WeightDecaySchedule(count=0)
    """

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here


def add_decayed_weights(
    weight_decay: ScalarOrSchedule = 0.0, mask: Any = None
) -> GradientTransformation:
    """Add the parameters, times a factor, to the updates.

    Parameters
    ----------
    weight_decay : float or callable
        The factor, or a schedule for it.
    mask : pytree of bool, or callable, optional
        Which parameters decay; see `masked`. All by default.

    Returns
    -------
    GradientTransformation
        Needs the parameters in `update`.

    Raises
    ------
    ArgumentError
        From `update`: there are no parameters.

    Notes
    -----
    What is added is the gradient of ``weight_decay / 2 * abs(param) ** 2``, so its place is before
    `scale_by_learning_rate`.

    Examples
    --------
    >>> optimizer = add_decayed_weights(0.5)
    >>> optimizer.update({"w": 1.0}, optimizer.init({"w": 4.0}), {"w": 4.0})
    ({'w': 3.0}, EmptyState())
    """
    made = _decaying(weight_decay, conjugated=True)
    return made if mask is None else masked(made, mask)


def decay_of_steps(weight_decay: ScalarOrSchedule) -> GradientTransformation:
    """Do the same to what is a step already, behind `scale_by_learning_rate`."""
    return _decaying(weight_decay, conjugated=False)


def _decaying(weight_decay: ScalarOrSchedule, conjugated: bool) -> GradientTransformation:
    fixed = None if callable(weight_decay) else as_hyperparameter(weight_decay, "weight_decay")

    def init(params: Params) -> OptState:
        return WeightDecaySchedule(0) if fixed is None else EmptyState()

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        if params is None:
            raise missing_params("add_decayed_weights")
        factor = fixed
        if factor is None:
            count = check_state(state, WeightDecaySchedule, "add_decayed_weights").count
            factor = rate_at(weight_decay, count)
            state = WeightDecaySchedule(count + 1)
        if type(factor) in (int, float) and factor == 0:
            return updates, state
        return _decayed(updates, params, factor, conjugated), state

    return GradientTransformation(init, update)


def _decayed(updates: Updates, params: Params, factor: Any, conjugated: bool) -> Updates:
    def decayed(leaf: Any, weight: Any) -> Any:
        if conjugated and is_complex(weight):
            weight = np.conjugate(weight)  # as in the gradient of abs(weight) ** 2
        return leaf + factor * weight

    return map_with_params(decayed, updates, params)
