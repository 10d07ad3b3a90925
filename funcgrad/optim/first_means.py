"""Variants of Adam that differ in the first mean: rectified, or of gradients and their changes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from funcgrad import cond
from funcgrad.optim.adaptive import ScaleByAdamState
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
from funcgrad.optim.decay import add_decayed_weights
from funcgrad.optim.leaves import as_hyperparameter, each_leaf, zeros_for
from funcgrad.optim.moments import looking_ahead, mean, mean_square
from funcgrad.optim.scaling import scale_by_learning_rate

__all__ = ["ScaleByAdanState", "adan", "radam", "scale_by_adan", "scale_by_radam"]


def scale_by_radam(
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    threshold: Any = 5.0,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Divide as `scale_by_adam` does, once the second mean is of enough gradients to be used [1]_.

    Parameters
    ----------
    b1, b2, eps, eps_root, nesterov
        As for `scale_by_adam`.
    threshold : float
        How many gradients are enough, roughly. Before, nothing is divided.

    Returns
    -------
    GradientTransformation
        Its state is a `ScaleByAdamState`.

    References
    ----------
    .. [1] L. Liu et al., "On the variance of the adaptive learning rate and beyond", ICLR 2020.

    Examples
    --------
    >>> optimizer = scale_by_radam()
    >>> updates, state = optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    >>> round(updates["w"], 6)
    4.0
    """
    b1, b2 = as_hyperparameter(b1, "b1"), as_hyperparameter(b2, "b2")
    eps, eps_root = as_hyperparameter(eps, "eps"), as_hyperparameter(eps_root, "eps_root")
    enough = as_hyperparameter(threshold, "threshold")
    most = 2.0 / (1.0 - b2) - 1.0  # the length of the mean, after many steps

    def init(params: Params) -> ScaleByAdamState:
        return ScaleByAdamState(0, zeros_for(params), zeros_for(params, real=True))

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(state, ScaleByAdamState, "radam")
        count = state.count + 1
        divisor1, divisor2 = 1 - b1**count, 1 - b2**count
        length = most - 2 * count * b2**count / divisor2

        def rectified(m: Any, v: Any) -> Any:
            square = (length - 4.0) * (length - 2.0) * most
            factor = np.sqrt(square / ((most - 4.0) * (most - 2.0) * length))
            return factor * m / (np.sqrt(v / divisor2 + eps_root) + eps)

        def step(g: Any, m: Any, v: Any) -> tuple[Any, Any, Any]:
            m, v = mean(g, m, b1), mean_square(g, v, b2)
            m_hat = looking_ahead(g, m, b1, count) if nesterov else m / divisor1
            return cond(length >= enough, rectified, lambda m, v: m, m_hat, v), m, v

        updates, mu, nu = each_leaf(step, updates, state.mu, state.nu)
        return updates, ScaleByAdamState(count, mu, nu)

    return GradientTransformation(init, update)


class ScaleByAdanState(NamedTuple):
    """Means of gradients, of their changes and of squares, the last gradients, and the count."""

    m: Updates
    v: Updates
    n: Updates
    g: Updates
    t: int


def scale_by_adan(
    b1: Any = 0.98,
    b2: Any = 0.92,
    b3: Any = 0.99,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
) -> GradientTransformation:
    """Follow the means of gradients and of their changes, divided by a root [1]_.

    Parameters
    ----------
    b1, b2, b3 : float
        Decay of the means of gradients, of their changes, and of squares.
    eps : float
        Added to the root.
    eps_root : float
        Added under the root.

    Returns
    -------
    GradientTransformation
        Its state is a `ScaleByAdanState`.

    References
    ----------
    .. [1] X. Xie et al., "Adan: adaptive Nesterov momentum algorithm for faster optimizing deep
       models", 2022.

    Examples
    --------
    >>> optimizer = scale_by_adan()
    >>> updates, state = optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    >>> round(updates["w"], 6), state.g
    (1.0, {'w': 4.0})
    """
    b1, b2 = as_hyperparameter(b1, "b1"), as_hyperparameter(b2, "b2")
    b3, eps = as_hyperparameter(b3, "b3"), as_hyperparameter(eps, "eps")
    eps_root = as_hyperparameter(eps_root, "eps_root")

    def init(params: Params) -> ScaleByAdanState:
        zeros = zeros_for(params)
        return ScaleByAdanState(zeros, zeros, zeros_for(params, real=True), zeros, 0)

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(state, ScaleByAdanState, "adan")
        first, t = state.t == 0, state.t + 1
        divisor1, divisor2, divisor3 = 1 - b1**t, 1 - b2**t, 1 - b3**t

        def step(g: Any, m: Any, v: Any, n: Any, last: Any) -> tuple[Any, ...]:
            change = cond(first, lambda: g * 0, lambda: g - last)
            m, v = mean(g, m, b1), mean(change, v, b2)
            n = mean_square(g + (1 - b2) * change, n, b3)
            ahead = m / divisor1 + (1 - b2) * (v / divisor2)
            return ahead / (np.sqrt(n / divisor3 + eps_root) + eps), m, v, n, g

        updates, m, v, n, g = each_leaf(step, updates, state.m, state.v, state.n, state.g)
        return updates, ScaleByAdanState(m, v, n, g, t)

    return GradientTransformation(init, update)


def radam(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    threshold: Any = 5.0,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Make a RAdam optimizer: Adam that needs no warm-up [1]_.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule.
    b1, b2, eps, eps_root, threshold, nesterov
        As for `scale_by_radam`.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer.

    References
    ----------
    .. [1] L. Liu et al., "On the variance of the adaptive learning rate and beyond", ICLR 2020.

    Examples
    --------
    >>> optimizer = radam(0.1)
    >>> updates, state = optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    >>> round(updates["w"], 6)
    -0.4
    """
    return chain(
        scale_by_radam(b1, b2, eps, eps_root, threshold, nesterov=nesterov),
        scale_by_learning_rate(learning_rate),
    )


def adan(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.98,
    b2: Any = 0.92,
    b3: Any = 0.99,
    eps: Any = 1e-8,
    eps_root: Any = 1e-8,
    weight_decay: ScalarOrSchedule = 0.0,
    mask: Any = None,
) -> GradientTransformationExtraArgs:
    """Make an Adan optimizer: Nesterov's momentum with adaptive steps [1]_.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule.
    b1, b2, b3, eps, eps_root
        As for `scale_by_adan`.
    weight_decay, mask
        As for `add_decayed_weights`. The learning rate multiplies the decay too.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer. Its `update` needs the parameters.

    References
    ----------
    .. [1] X. Xie et al., "Adan: adaptive Nesterov momentum algorithm for faster optimizing deep
       models", 2022.

    Examples
    --------
    >>> optimizer = adan(0.1)
    >>> params = {"w": 1.0}
    >>> updates, state = optimizer.update({"w": 4.0}, optimizer.init(params), params)
    >>> round(updates["w"], 6)
    -0.1
    """
    return chain(
        scale_by_adan(b1, b2, b3, eps, eps_root),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )
