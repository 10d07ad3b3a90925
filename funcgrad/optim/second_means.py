"""Variants of Adam that differ in the second mean: its maximum, or what it is a mean of."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

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
from funcgrad.optim.leaves import abs_square, as_hyperparameter, each_leaf, full_for, zeros_for
from funcgrad.optim.moments import looking_ahead, mean, mean_square
from funcgrad.optim.scaling import scale_by_learning_rate

__all__ = [
    "ScaleByAmsgradState",
    "ScaleByBeliefState",
    "adabelief",
    "adamax",
    "adamaxw",
    "amsgrad",
    "scale_by_adamax",
    "scale_by_amsgrad",
    "scale_by_belief",
    "scale_by_yogi",
    "yogi",
]


class ScaleByAmsgradState(NamedTuple):
    """The state of Adam, and the maxima of the second mean."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here
    mu: Updates
    nu: Updates
    nu_max: Updates


def scale_by_amsgrad(
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    bias_correction_mu: bool = True,
    bias_correction_nu: bool = True,
) -> GradientTransformation:
    """Divide as `scale_by_adam` does, by the largest root so far [1]_.

    Parameters
    ----------
    b1, b2, eps, eps_root, mu_dtype
        As for `scale_by_adam`.
    bias_correction_mu, bias_correction_nu : bool
        Make up for the means having started at zero.

    Returns
    -------
    GradientTransformation
        Its state is a `ScaleByAmsgradState`.

    References
    ----------
    .. [1] S. Reddi, S. Kale and S. Kumar, "On the convergence of Adam and beyond", ICLR 2018.

    Examples
    --------
    >>> optimizer = scale_by_amsgrad()
    >>> updates, state = optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    >>> round(updates["w"], 6), state.count
    (1.0, 1)
    """
    b1, b2 = as_hyperparameter(b1, "b1"), as_hyperparameter(b2, "b2")
    eps, eps_root = as_hyperparameter(eps, "eps"), as_hyperparameter(eps_root, "eps_root")

    def init(params: Params) -> ScaleByAmsgradState:
        real = zeros_for(params, real=True)
        return ScaleByAmsgradState(0, zeros_for(params, mu_dtype), real, real)

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(state, ScaleByAmsgradState, "amsgrad")
        count = state.count + 1
        divisor1 = 1 - b1**count if bias_correction_mu else 1
        divisor2 = 1 - b2**count if bias_correction_nu else 1

        def step(g: Any, m: Any, v: Any, most: Any) -> tuple[Any, ...]:
            m, v = mean(g, m, b1), mean_square(g, v, b2)
            most = np.maximum(most, v / divisor2)
            return (m / divisor1) / (np.sqrt(most + eps_root) + eps), m, v, most

        updates, *new = each_leaf(step, updates, state.mu, state.nu, state.nu_max)
        return updates, ScaleByAmsgradState(count, *new)

    return GradientTransformation(init, update)


def scale_by_adamax(b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> GradientTransformation:
    """Divide the running mean of the gradients by a decaying maximum of their magnitudes [1]_.

    Parameters
    ----------
    b1, b2 : float
        Decay of the mean and of the maximum.
    eps : float
        Added to magnitudes.

    Returns
    -------
    GradientTransformation
        Its state is a `ScaleByAdamState`.

    References
    ----------
    .. [1] D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015,
       section 7.

    Examples
    --------
    >>> optimizer = scale_by_adamax(eps=0.0)
    >>> updates, state = optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    >>> round(updates["w"], 6), state.nu
    (1.0, {'w': 4.0})
    """
    b1, b2 = as_hyperparameter(b1, "b1"), as_hyperparameter(b2, "b2")
    eps = as_hyperparameter(eps, "eps")

    def init(params: Params) -> ScaleByAdamState:
        return ScaleByAdamState(0, zeros_for(params), zeros_for(params, real=True))

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(state, ScaleByAdamState, "adamax")
        count = state.count + 1
        divisor = 1 - b1**count

        def step(g: Any, m: Any, most: Any) -> tuple[Any, Any, Any]:
            m, most = mean(g, m, b1), np.maximum(abs(g) + eps, b2 * most)
            return (m / divisor) / most, m, most

        updates, mu, nu = each_leaf(step, updates, state.mu, state.nu)
        return updates, ScaleByAdamState(count, mu, nu)

    return GradientTransformation(init, update)


class ScaleByBeliefState(NamedTuple):
    """The number of steps done, the mean of gradients, and that of squared deviations from it."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here
    mu: Updates
    nu: Updates


def scale_by_belief(
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-16,
    eps_root: Any = 1e-16,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Divide the running mean of gradients by how far gradients are from it [1]_.

    Parameters
    ----------
    b1, b2 : float
        Decay of the two means.
    eps : float
        Added to the root.
    eps_root : float
        Added to the second mean at every step.
    nesterov : bool
        Look one step ahead.

    Returns
    -------
    GradientTransformation
        Its state is a `ScaleByBeliefState`.

    References
    ----------
    .. [1] J. Zhuang et al., "AdaBelief optimizer: adapting stepsizes by the belief in observed
       gradients", NeurIPS 2020.

    Examples
    --------
    >>> optimizer = scale_by_belief(b1=0.5, eps=0.0, eps_root=0.0)
    >>> updates, state = optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    >>> round(updates["w"], 6), state.mu
    (2.0, {'w': 2.0})
    """
    b1, b2 = as_hyperparameter(b1, "b1"), as_hyperparameter(b2, "b2")
    eps, eps_root = as_hyperparameter(eps, "eps"), as_hyperparameter(eps_root, "eps_root")

    def init(params: Params) -> ScaleByBeliefState:
        return ScaleByBeliefState(0, zeros_for(params), zeros_for(params, real=True))

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(state, ScaleByBeliefState, "adabelief")
        count = state.count + 1
        divisor1, divisor2 = 1 - b1**count, 1 - b2**count

        def step(g: Any, m: Any, v: Any) -> tuple[Any, Any, Any]:
            m = mean(g, m, b1)
            v = mean_square(g - m, v, b2) + eps_root
            m_hat = looking_ahead(g, m, b1, count) if nesterov else m / divisor1
            return m_hat / (np.sqrt(v / divisor2) + eps), m, v

        updates, mu, nu = each_leaf(step, updates, state.mu, state.nu)
        return updates, ScaleByBeliefState(count, mu, nu)

    return GradientTransformation(init, update)


def scale_by_yogi(
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-3,
    eps_root: Any = 0.0,
    initial_accumulator_value: Any = 1e-6,
) -> GradientTransformation:
    """Divide as `scale_by_adam` does, by a second mean that grows slowly [1]_.

    Parameters
    ----------
    b1, b2, eps, eps_root
        As for `scale_by_adam`.
    initial_accumulator_value : float
        What both means start with.

    Returns
    -------
    GradientTransformation
        Its state is a `ScaleByAdamState`.

    References
    ----------
    .. [1] M. Zaheer et al., "Adaptive methods for nonconvex optimization", NeurIPS 2018.

    Examples
    --------
    >>> optimizer = scale_by_yogi(eps=0.0, initial_accumulator_value=0.0)
    >>> updates, state = optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    >>> round(updates["w"], 6), round(state.nu["w"], 6)
    (1.0, 0.016)
    """
    b1, b2 = as_hyperparameter(b1, "b1"), as_hyperparameter(b2, "b2")
    eps, eps_root = as_hyperparameter(eps, "eps"), as_hyperparameter(eps_root, "eps_root")
    start = as_hyperparameter(initial_accumulator_value, "initial_accumulator_value")

    def init(params: Params) -> ScaleByAdamState:
        return ScaleByAdamState(0, full_for(params, start), full_for(params, start, real=True))

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(state, ScaleByAdamState, "yogi")
        count = state.count + 1
        divisor1, divisor2 = 1 - b1**count, 1 - b2**count

        def step(g: Any, m: Any, v: Any) -> tuple[Any, Any, Any]:
            m, square = mean(g, m, b1), abs_square(g)
            v = v - (1 - b2) * np.sign(v - square) * square
            return (m / divisor1) / (np.sqrt(v / divisor2 + eps_root) + eps), m, v

        updates, mu, nu = each_leaf(step, updates, state.mu, state.nu)
        return updates, ScaleByAdamState(count, mu, nu)

    return GradientTransformation(init, update)


def amsgrad(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    bias_correction_mu: bool = True,
    bias_correction_nu: bool = True,
) -> GradientTransformationExtraArgs:
    """Make an AMSGrad optimizer: Adam whose steps do not grow again [1]_.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule.
    b1, b2, eps, eps_root, mu_dtype, bias_correction_mu, bias_correction_nu
        As for `scale_by_amsgrad`.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer.

    References
    ----------
    .. [1] S. Reddi, S. Kale and S. Kumar, "On the convergence of Adam and beyond", ICLR 2018.

    Examples
    --------
    >>> optimizer = amsgrad(0.1)
    >>> updates, state = optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    >>> round(updates["w"], 6)
    -0.1
    """
    return chain(
        scale_by_amsgrad(b1, b2, eps, eps_root, mu_dtype, bias_correction_mu, bias_correction_nu),
        scale_by_learning_rate(learning_rate),
    )


def adamax(
    learning_rate: ScalarOrSchedule, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8
) -> GradientTransformationExtraArgs:
    """Make an Adamax optimizer: Adam with a maximum for the second mean [1]_.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule.
    b1, b2, eps
        As for `scale_by_adamax`.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer.

    References
    ----------
    .. [1] D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015,
       section 7.

    Examples
    --------
    >>> optimizer = adamax(0.1)
    >>> updates, state = optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    >>> round(updates["w"], 6)
    -0.1
    """
    return chain(scale_by_adamax(b1, b2, eps), scale_by_learning_rate(learning_rate))


def adamaxw(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: Any = None,
) -> GradientTransformationExtraArgs:
    """Make an Adamax optimizer with weight decay that the adaptive scale does not touch [1]_.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule.
    b1, b2, eps
        As for `scale_by_adamax`.
    weight_decay, mask
        As for `add_decayed_weights`. The learning rate multiplies the decay too.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer. Its `update` needs the parameters.

    References
    ----------
    .. [1] I. Loshchilov and F. Hutter, "Decoupled weight decay regularization", ICLR 2019.

    Examples
    --------
    >>> optimizer = adamaxw(0.1, weight_decay=0.5)
    >>> params = {"w": 2.0}
    >>> optimizer.update({"w": 0.0}, optimizer.init(params), params)[0]
    {'w': -0.1}
    """
    return chain(
        scale_by_adamax(b1, b2, eps),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


def adabelief(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-16,
    eps_root: Any = 1e-16,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Make an AdaBelief optimizer: long steps where gradients are as expected [1]_.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule.
    b1, b2, eps, eps_root, nesterov
        As for `scale_by_belief`.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer.

    References
    ----------
    .. [1] J. Zhuang et al., "AdaBelief optimizer: adapting stepsizes by the belief in observed
       gradients", NeurIPS 2020.

    Examples
    --------
    >>> optimizer = adabelief(0.1, b1=0.5)
    >>> updates, state = optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    >>> round(updates["w"], 6)
    -0.2
    """
    return chain(
        scale_by_belief(b1, b2, eps, eps_root, nesterov=nesterov),
        scale_by_learning_rate(learning_rate),
    )


def yogi(
    learning_rate: ScalarOrSchedule, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-3
) -> GradientTransformationExtraArgs:
    """Make a Yogi optimizer: Adam whose steps shrink slowly [1]_.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule.
    b1, b2, eps
        As for `scale_by_yogi`.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer.

    References
    ----------
    .. [1] M. Zaheer et al., "Adaptive methods for nonconvex optimization", NeurIPS 2018.

    Examples
    --------
    >>> optimizer = yogi(0.1)
    >>> updates, state = optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    >>> round(updates["w"], 3)
    -0.1
    """
    return chain(scale_by_yogi(b1, b2, eps), scale_by_learning_rate(learning_rate))
