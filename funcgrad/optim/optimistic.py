"""Optimistic gradients: for games, where plain descent goes in circles."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

from funcgrad import cond
from funcgrad.errors import ArgumentError, user_line
from funcgrad.optim.adaptive import scale_by_adam
from funcgrad.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    ScalarOrSchedule,
    Updates,
    check_state,
)
from funcgrad.optim.combining import chain
from funcgrad.optim.leaves import as_hyperparameter, each_leaf, zeros_for
from funcgrad.optim.scaling import scale_by_learning_rate

__all__ = [
    "ScaleByOptimisticGradientState",
    "optimistic_adam",
    "optimistic_adam_v2",
    "optimistic_gradient_descent",
    "scale_by_optimistic_gradient",
]


class ScaleByOptimisticGradientState(NamedTuple):
    """Whether there was no step yet, and the last gradients."""

    is_initial_step: bool
    previous_gradient: Updates


def scale_by_optimistic_gradient(alpha: Any = 1.0, beta: Any = 1.0) -> GradientTransformation:
    """Add to each gradient its change since the last step [1]_.

    Parameters
    ----------
    alpha : float
        Multiplies the gradient.
    beta : float
        Multiplies its change.

    Returns
    -------
    GradientTransformation
        Its state is a `ScaleByOptimisticGradientState`.

    References
    ----------
    .. [1] A. Mokhtari, A. Ozdaglar and S. Pattathil, "A unified analysis of extra-gradient and
       optimistic gradient methods for saddle point problems", 2019.

    Examples
    --------
    >>> optimizer = scale_by_optimistic_gradient()
    >>> updates, state = optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    >>> optimizer.update({"w": 5.0}, state)[0]
    {'w': 6.0}
    """
    alpha, beta = as_hyperparameter(alpha, "alpha"), as_hyperparameter(beta, "beta")

    def init(params: Params) -> ScaleByOptimisticGradientState:
        return ScaleByOptimisticGradientState(True, zeros_for(params))

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(state, ScaleByOptimisticGradientState, "scale_by_optimistic_gradient")
        first = state.is_initial_step

        def step(g: Any, last: Any) -> tuple[Any, Any]:
            last = cond(first, lambda: g, lambda: last)
            return (alpha + beta) * g - beta * last, g

        updates, last = each_leaf(step, updates, state.previous_gradient)
        return updates, ScaleByOptimisticGradientState(False, last)

    return GradientTransformation(init, update)


def optimistic_gradient_descent(
    learning_rate: ScalarOrSchedule, alpha: Any = 1.0, beta: Any = 1.0
) -> GradientTransformationExtraArgs:
    """Make an optimistic gradient descent optimizer [1]_.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule.
    alpha, beta
        As for `scale_by_optimistic_gradient`.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer.

    References
    ----------
    .. [1] A. Mokhtari, A. Ozdaglar and S. Pattathil, "A unified analysis of extra-gradient and
       optimistic gradient methods for saddle point problems", 2019.

    Examples
    --------
    >>> optimizer = optimistic_gradient_descent(0.5)
    >>> updates, state = optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    >>> optimizer.update({"w": 5.0}, state)[0]
    {'w': -3.0}
    """
    return chain(scale_by_optimistic_gradient(alpha, beta), scale_by_learning_rate(learning_rate))


def optimistic_adam(
    learning_rate: Any,
    optimism: Any = None,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    *,
    nesterov: bool = True,
) -> GradientTransformationExtraArgs:
    """Make an optimistic Adam optimizer; `optimistic_adam_v2` takes its place.

    Parameters
    ----------
    learning_rate : float
        A number.
    optimism : float, optional
        Multiplies changes of steps; the learning rate by default.
    b1, b2, eps, eps_root, mu_dtype, nesterov
        As for `scale_by_adam`.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer.

    Raises
    ------
    ArgumentError
        The learning rate is a schedule.

    Warns
    -----
    DeprecationWarning
        Always, as in Optax.

    References
    ----------
    .. [1] C. Daskalakis et al., "Training GANs with optimism", ICLR 2018.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     optimizer = optimistic_adam(0.1, nesterov=False)
    >>> updates, state = optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    >>> round(updates["w"], 6)
    -0.1
    """
    warnings.warn(
        "optimistic_adam is deprecated: write optimistic_adam_v2(learning_rate)",
        DeprecationWarning,
        stacklevel=2,
    )
    if callable(learning_rate):
        raise ArgumentError(
            "optimistic_adam takes a number for the learning rate, no schedule",
            where=user_line(),
            fix="write optimistic_adam_v2(schedule)",
        )
    return chain(
        scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        scale_by_optimistic_gradient(
            learning_rate, learning_rate if optimism is None else optimism
        ),
        scale_by_learning_rate(1.0),
    )


def optimistic_adam_v2(
    learning_rate: ScalarOrSchedule,
    *,
    alpha: Any = 1.0,
    beta: Any = 1.0,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    nesterov: bool = True,
) -> GradientTransformationExtraArgs:
    """Make an optimistic Adam optimizer [1]_.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule.
    alpha, beta
        As for `scale_by_optimistic_gradient`.
    b1, b2, eps, eps_root, mu_dtype, nesterov
        As for `scale_by_adam`.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer.

    References
    ----------
    .. [1] C. Daskalakis et al., "Training GANs with optimism", ICLR 2018.

    Examples
    --------
    >>> optimizer = optimistic_adam_v2(0.1, nesterov=False)
    >>> updates, state = optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    >>> round(updates["w"], 6)
    -0.1
    """
    return chain(
        scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        scale_by_optimistic_gradient(alpha, beta),
        scale_by_learning_rate(learning_rate),
    )
