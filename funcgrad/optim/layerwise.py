"""Optimizers that give each layer a step of its own size, by the norms of its parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from funcgrad import cond
from funcgrad.optim.adaptive import scale_by_adam
from funcgrad.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    ScalarOrSchedule,
    Updates,
    check_state,
    missing_params,
)
from funcgrad.optim.combining import chain
from funcgrad.optim.decay import add_decayed_weights, decay_of_steps
from funcgrad.optim.leaves import (
    abs_square,
    as_hyperparameter,
    each_leaf,
    is_complex,
    scalars_for,
    zeros_for,
)
from funcgrad.optim.masking import masked
from funcgrad.optim.moments import mean
from funcgrad.optim.momentum import trace
from funcgrad.optim.norms import scale_by_trust_ratio
from funcgrad.optim.scaling import scale_by_learning_rate

__all__ = ["ScaleByNovogradState", "fromage", "lamb", "lars", "novograd", "scale_by_novograd"]


def fromage(
    learning_rate: ScalarOrSchedule, min_norm: Any = 1e-6
) -> GradientTransformationExtraArgs:
    """Make a Frobenius-matched optimizer: each step a part of the norm of its layer [1]_.

    Parameters
    ----------
    learning_rate : float or callable
        The part: a number, or a schedule.
    min_norm : float
        The least that norms count for.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer. Its `update` needs the parameters.

    References
    ----------
    .. [1] J. Bernstein et al., "On the distance between two neural networks and the stability of
       learning", NeurIPS 2020.

    Examples
    --------
    >>> optimizer = fromage(0.75)
    >>> params = {"w": 4.0}
    >>> updates, state = optimizer.update({"w": 0.1}, optimizer.init(params), params)
    >>> round(updates["w"], 6)
    -3.2
    """
    if callable(learning_rate):
        schedule = learning_rate

        def rate(count: Any) -> Any:
            return schedule(count) * _shrinking(schedule(count))

        def decay(count: Any) -> Any:
            return _shrinking(schedule(count)) - 1

        return chain(
            scale_by_trust_ratio(min_norm), scale_by_learning_rate(rate), decay_of_steps(decay)
        )
    fixed = as_hyperparameter(learning_rate, "learning_rate")
    return chain(
        scale_by_trust_ratio(min_norm),
        scale_by_learning_rate(fixed * _shrinking(fixed)),
        decay_of_steps(_shrinking(fixed) - 1),
    )


def _shrinking(rate: Any) -> Any:
    """Return what keeps norms from growing with every step at a right angle."""
    return 1 / (1 + rate**2) ** 0.5


def lars(
    learning_rate: ScalarOrSchedule,
    weight_decay: ScalarOrSchedule = 0.0,
    weight_decay_mask: Any = True,
    trust_coefficient: Any = 0.001,
    eps: Any = 0.0,
    trust_ratio_mask: Any = True,
    momentum: Any = 0.9,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Make a LARS optimizer: momentum for large batches, with layer-wise rates [1]_.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule.
    weight_decay, weight_decay_mask
        As for `add_decayed_weights`.
    trust_coefficient, eps
        As for `scale_by_trust_ratio`.
    trust_ratio_mask : pytree of bool, or callable
        Which parameters the ratio is for; see `masked`.
    momentum : float
        The `decay` of a `trace` of the steps.
    nesterov : bool
        Use Nesterov's form of momentum.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer. Its `update` needs the parameters.

    References
    ----------
    .. [1] Y. You, I. Gitman and B. Ginsburg, "Large batch training of convolutional networks",
       2017.

    Examples
    --------
    >>> optimizer = lars(0.5, trust_coefficient=0.1)
    >>> params = {"w": 4.0}
    >>> optimizer.update({"w": 0.1}, optimizer.init(params), params)[0]
    {'w': -0.2}
    """
    return chain(
        add_decayed_weights(weight_decay, weight_decay_mask),
        masked(
            scale_by_trust_ratio(trust_coefficient=trust_coefficient, eps=eps), trust_ratio_mask
        ),
        scale_by_learning_rate(learning_rate),
        trace(as_hyperparameter(momentum, "momentum"), nesterov),
    )


def lamb(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-6,
    eps_root: Any = 0.0,
    weight_decay: ScalarOrSchedule = 0.0,
    mask: Any = None,
) -> GradientTransformationExtraArgs:
    """Make a LAMB optimizer: Adam for large batches, with layer-wise rates [1]_.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule.
    b1, b2, eps, eps_root
        As for `scale_by_adam`.
    weight_decay, mask
        As for `add_decayed_weights`.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer. Its `update` needs the parameters.

    References
    ----------
    .. [1] Y. You et al., "Large batch optimization for deep learning: training BERT in 76 minutes",
       ICLR 2020.

    Examples
    --------
    >>> optimizer = lamb(0.5)
    >>> params = {"w": 4.0}
    >>> updates, state = optimizer.update({"w": 0.1}, optimizer.init(params), params)
    >>> round(updates["w"], 6)
    -2.0
    """
    return chain(
        scale_by_adam(b1, b2, eps, eps_root),
        add_decayed_weights(weight_decay, mask),
        scale_by_trust_ratio(),
        scale_by_learning_rate(learning_rate),
    )


class ScaleByNovogradState(NamedTuple):
    """The number of steps done, sums of gradients, and means of the squared norm of each."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here
    mu: Updates
    nu: Updates


def scale_by_novograd(
    b1: Any = 0.9,
    b2: Any = 0.25,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    weight_decay: Any = 0.0,
    mu_dtype: Any = None,
) -> GradientTransformation:
    """Sum gradients, divided by the usual norm of those of their layer [1]_.

    Parameters
    ----------
    b1 : float
        What remains of the sum at the next step.
    b2 : float
        Decay of the mean of squared norms.
    eps : float
        Added to the root.
    eps_root : float
        Added under the root.
    weight_decay : float
        How much of the parameter is added before summing.
    mu_dtype : dtype, optional
        To keep the sums in; that of the parameters by default.

    Returns
    -------
    GradientTransformation
        Its state is a `ScaleByNovogradState`. Needs the parameters in `update`, if they decay.

    References
    ----------
    .. [1] B. Ginsburg et al., "Stochastic gradient methods with layer-wise adaptive moments for
       training of deep networks", 2019.

    Examples
    --------
    >>> optimizer = scale_by_novograd(eps=0.0)
    >>> optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    ({'w': 1.0}, ScaleByNovogradState(count=1, mu={'w': 1.0}, nu={'w': 16.0}))
    """
    b1, b2 = as_hyperparameter(b1, "b1"), as_hyperparameter(b2, "b2")
    eps, eps_root = as_hyperparameter(eps, "eps"), as_hyperparameter(eps_root, "eps_root")
    decay = as_hyperparameter(weight_decay, "weight_decay")
    decays = not (type(decay) in (int, float) and decay == 0)

    def init(params: Params) -> ScaleByNovogradState:
        return ScaleByNovogradState(0, zeros_for(params, mu_dtype), scalars_for(params))

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(state, ScaleByNovogradState, "novograd")
        if decays and params is None:
            raise missing_params("novograd with weight decay")
        first = state.count == 0

        def step(g: Any, m: Any, v: Any, *param: Any) -> tuple[Any, Any, Any]:
            square = np.sum(abs_square(g))
            v = cond(first, lambda: square, lambda: mean(square, v, b2))
            g = g / (np.sqrt(v + eps_root) + eps)
            if decays:
                (weight,) = param
                g = g + decay * (np.conjugate(weight) if is_complex(weight) else weight)
            m = cond(first, lambda: g, lambda: b1 * m + g)
            return m, m, v

        updates, mu, nu = each_leaf(
            step, updates, state.mu, state.nu, params=params if decays else None
        )
        return updates, ScaleByNovogradState(state.count + 1, mu, nu)

    return GradientTransformation(init, update)


def novograd(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.25,
    eps: Any = 1e-6,
    eps_root: Any = 0.0,
    weight_decay: Any = 0.0,
) -> GradientTransformationExtraArgs:
    """Make a NovoGrad optimizer: momentum of layer-wise normalised gradients [1]_.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule.
    b1, b2, eps, eps_root, weight_decay
        As for `scale_by_novograd`.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer. Its `update` needs the parameters, if they decay.

    References
    ----------
    .. [1] B. Ginsburg et al., "Stochastic gradient methods with layer-wise adaptive moments for
       training of deep networks", 2019.

    Examples
    --------
    >>> optimizer = novograd(0.5, eps=0.0)
    >>> optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))[0]
    {'w': -0.5}
    """
    return chain(
        scale_by_novograd(b1, b2, eps, eps_root, weight_decay),
        scale_by_learning_rate(learning_rate),
    )
