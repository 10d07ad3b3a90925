"""Optimizers that divide each gradient by the root of its usual square, without a mean of its own.

`adagrad` sums the squares up, `rmsprop` and `adadelta` let them fade.
"""

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
)
from funcgrad.optim.combining import chain
from funcgrad.optim.decay import add_decayed_weights
from funcgrad.optim.leaves import abs_square, as_hyperparameter, each_leaf, full_for, zeros_for
from funcgrad.optim.moments import inverse_root, mean, mean_square
from funcgrad.optim.momentum import trace
from funcgrad.optim.scaling import scale_by_learning_rate

__all__ = [
    "ScaleByAdaDeltaState",
    "ScaleByRStdDevState",
    "ScaleByRStdDevWithCountState",
    "ScaleByRmsState",
    "ScaleByRmsWithCountState",
    "ScaleByRssState",
    "adadelta",
    "adagrad",
    "rmsprop",
    "scale_by_adadelta",
    "scale_by_rms",
    "scale_by_rss",
    "scale_by_stddev",
]


class ScaleByRssState(NamedTuple):
    """The sums of the squares of all gradients."""

    sum_of_squares: Updates


def scale_by_rss(initial_accumulator_value: Any = 0.1, eps: Any = 1e-7) -> GradientTransformation:
    """Divide gradients by the root of the sum of the squares of all so far.

    Parameters
    ----------
    initial_accumulator_value : float
        What the sums start with.
    eps : float
        Added under the root.

    Returns
    -------
    GradientTransformation
        Its state is a `ScaleByRssState`.

    References
    ----------
    .. [1] J. Duchi, E. Hazan and Y. Singer, "Adaptive subgradient methods for online learning and
       stochastic optimization", JMLR 2011.

    Examples
    --------
    >>> optimizer = scale_by_rss(initial_accumulator_value=9.0, eps=0.0)
    >>> optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    ({'w': 0.8}, ScaleByRssState(sum_of_squares={'w': 25.0}))
    """
    start = as_hyperparameter(initial_accumulator_value, "initial_accumulator_value")
    eps = as_hyperparameter(eps, "eps")

    def init(params: Params) -> ScaleByRssState:
        return ScaleByRssState(full_for(params, start, real=True))

    def step(g: Any, total: Any) -> tuple[Any, Any]:
        total = abs_square(g) + total
        return g * inverse_root(total, eps), total

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(state, ScaleByRssState, "scale_by_rss")
        updates, total = each_leaf(step, updates, state.sum_of_squares)
        return updates, ScaleByRssState(total)

    return GradientTransformation(init, update)


class ScaleByRmsState(NamedTuple):
    """Running means of the squares of gradients."""

    nu: Updates


class ScaleByRmsWithCountState(NamedTuple):
    """The number of steps done, and running means of the squares of gradients."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here
    nu: Updates


def scale_by_rms(
    decay: Any = 0.9,
    eps: Any = 1e-8,
    initial_scale: Any = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformation:
    """Divide gradients by the root of the running mean of their squares.

    Parameters
    ----------
    decay : float
        What remains of the mean at the next step.
    eps : float
        Added to the mean, or to the root.
    initial_scale : float
        What the mean starts with.
    eps_in_sqrt : bool
        Whether `eps` is under the root.
    bias_correction : bool
        Make up for the mean having started at zero.

    Returns
    -------
    GradientTransformation
        Its state is a `ScaleByRmsState`, with a count if `bias_correction` needs one.

    References
    ----------
    .. [1] G. Hinton, "Overview of mini-batch gradient descent", lecture 6 of "Neural networks for
       machine learning", 2012.

    Examples
    --------
    >>> optimizer = scale_by_rms(decay=0.75, eps=0.0)
    >>> optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    ({'w': 2.0}, ScaleByRmsState(nu={'w': 4.0}))
    """
    decay, eps = as_hyperparameter(decay, "decay"), as_hyperparameter(eps, "eps")
    start = as_hyperparameter(initial_scale, "initial_scale")
    kind: Any = ScaleByRmsWithCountState if bias_correction else ScaleByRmsState

    def init(params: Params) -> OptState:
        nu = full_for(params, start, real=True)
        return ScaleByRmsWithCountState(0, nu) if bias_correction else ScaleByRmsState(nu)

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(state, kind, "scale_by_rms")
        count = state.count + 1 if bias_correction else 0
        divisor = 1 - decay**count if bias_correction else 1

        def step(g: Any, v: Any) -> tuple[Any, Any]:
            v = mean_square(g, v, decay)
            return g / _root(v / divisor, eps, eps_in_sqrt), v

        updates, nu = each_leaf(step, updates, state.nu)
        new = ScaleByRmsWithCountState(count, nu) if bias_correction else ScaleByRmsState(nu)
        return updates, new

    return GradientTransformation(init, update)


def _root(square: Any, eps: Any, inside: bool) -> Any:
    return np.sqrt(square + eps) if inside else np.sqrt(square) + eps


class ScaleByRStdDevState(NamedTuple):
    """Running means of the gradients and of their squares."""

    mu: Updates
    nu: Updates


class ScaleByRStdDevWithCountState(NamedTuple):
    """The number of steps done, and running means of the gradients and of their squares."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here
    mu: Updates
    nu: Updates


def scale_by_stddev(
    decay: Any = 0.9,
    eps: Any = 1e-8,
    initial_scale: Any = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformation:
    """Divide gradients by their standard deviation: centred `scale_by_rms`.

    Parameters
    ----------
    decay, eps, initial_scale, eps_in_sqrt, bias_correction
        As for `scale_by_rms`.

    Returns
    -------
    GradientTransformation
        Its state is a `ScaleByRStdDevState`, with a count if `bias_correction` needs one.

    References
    ----------
    .. [1] A. Graves, "Generating sequences with recurrent neural networks", 2013.

    Examples
    --------
    >>> optimizer = scale_by_stddev(decay=0.5, eps=0.0)
    >>> optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    ({'w': 2.0}, ScaleByRStdDevState(mu={'w': 2.0}, nu={'w': 8.0}))
    """
    decay, eps = as_hyperparameter(decay, "decay"), as_hyperparameter(eps, "eps")
    start = as_hyperparameter(initial_scale, "initial_scale")
    kind: Any = ScaleByRStdDevWithCountState if bias_correction else ScaleByRStdDevState

    def made(count: Any, mu: Updates, nu: Updates) -> OptState:
        if bias_correction:
            return ScaleByRStdDevWithCountState(count, mu, nu)
        return ScaleByRStdDevState(mu, nu)

    def init(params: Params) -> OptState:
        return made(0, zeros_for(params), full_for(params, start, real=True))

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(state, kind, "scale_by_stddev")
        count = state.count + 1 if bias_correction else 0
        divisor = 1 - decay**count if bias_correction else 1

        def step(g: Any, m: Any, v: Any) -> tuple[Any, Any, Any]:
            m, v = mean(g, m, decay), mean_square(g, v, decay)
            variance = v / divisor - abs_square(m / divisor)
            return g / _root(variance, eps, eps_in_sqrt), m, v

        updates, mu, nu = each_leaf(step, updates, state.mu, state.nu)
        return updates, made(count, mu, nu)

    return GradientTransformation(init, update)


class ScaleByAdaDeltaState(NamedTuple):
    """Running means of the squares of gradients, and of the squares of updates."""

    e_g: Updates
    e_x: Updates


def scale_by_adadelta(rho: Any = 0.9, eps: Any = 1e-6) -> GradientTransformation:
    """Give updates the size of past updates rather than of gradients.

    Parameters
    ----------
    rho : float
        What remains of the means at the next step.
    eps : float
        Added under roots.

    Returns
    -------
    GradientTransformation
        Its state is a `ScaleByAdaDeltaState`.

    References
    ----------
    .. [1] M. D. Zeiler, "ADADELTA: an adaptive learning rate method", 2012.

    Examples
    --------
    >>> optimizer = scale_by_adadelta(rho=0.75, eps=1e-6)
    >>> updates, state = optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    >>> round(updates["w"], 6), state.e_g
    (0.002, {'w': 4.0})
    """
    rho, eps = as_hyperparameter(rho, "rho"), as_hyperparameter(eps, "eps")

    def init(params: Params) -> ScaleByAdaDeltaState:
        return ScaleByAdaDeltaState(zeros_for(params, real=True), zeros_for(params, real=True))

    def step(g: Any, gradients: Any, steps: Any) -> tuple[Any, Any, Any]:
        gradients = mean_square(g, gradients, rho)
        g = np.sqrt(steps + eps) / np.sqrt(gradients + eps) * g
        return g, gradients, mean_square(g, steps, rho)

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(state, ScaleByAdaDeltaState, "adadelta")
        updates, e_g, e_x = each_leaf(step, updates, state.e_g, state.e_x)
        return updates, ScaleByAdaDeltaState(e_g, e_x)

    return GradientTransformation(init, update)


def adagrad(
    learning_rate: ScalarOrSchedule,
    initial_accumulator_value: Any = 0.1,
    eps: Any = 1e-7,
) -> GradientTransformationExtraArgs:
    """Make an Adagrad optimizer: the more a parameter has moved, the less it moves [1]_.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule.
    initial_accumulator_value, eps
        As for `scale_by_rss`.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer.

    References
    ----------
    .. [1] J. Duchi, E. Hazan and Y. Singer, "Adaptive subgradient methods for online learning and
       stochastic optimization", JMLR 2011.

    Examples
    --------
    >>> optimizer = adagrad(0.5, initial_accumulator_value=9.0, eps=0.0)
    >>> optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))[0]
    {'w': -0.4}
    """
    return chain(
        scale_by_rss(initial_accumulator_value, eps), scale_by_learning_rate(learning_rate)
    )


def rmsprop(
    learning_rate: ScalarOrSchedule,
    decay: Any = 0.9,
    eps: Any = 1e-8,
    initial_scale: Any = 0.0,
    eps_in_sqrt: bool = True,
    centered: bool = False,
    momentum: Any = None,
    nesterov: bool = False,
    bias_correction: bool = False,
) -> GradientTransformationExtraArgs:
    """Make an RMSProp optimizer [1]_, centred [2]_ if wanted.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule.
    decay, eps, initial_scale, eps_in_sqrt, bias_correction
        As for `scale_by_rms`. PyTorch has `eps` outside of the root.
    centered : bool
        Divide by the standard deviation.
    momentum : float, optional
        The `decay` of a `trace` of the steps; none by default.
    nesterov : bool
        Use Nesterov's form of momentum.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer.

    References
    ----------
    .. [1] G. Hinton, "Overview of mini-batch gradient descent", lecture 6 of "Neural networks for
       machine learning", 2012.
    .. [2] A. Graves, "Generating sequences with recurrent neural networks", 2013.

    Examples
    --------
    >>> optimizer = rmsprop(0.5, decay=0.75, eps=0.0)
    >>> optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))[0]
    {'w': -1.0}
    """
    scaled = scale_by_stddev if centered else scale_by_rms
    parts = [
        scaled(decay, eps, initial_scale, eps_in_sqrt, bias_correction),
        scale_by_learning_rate(learning_rate),
    ]
    if momentum is not None:
        parts.append(trace(as_hyperparameter(momentum, "momentum"), nesterov))
    return chain(*parts)


def adadelta(
    learning_rate: ScalarOrSchedule | None = None,
    rho: Any = 0.9,
    eps: Any = 1e-6,
    weight_decay: ScalarOrSchedule = 0.0,
    weight_decay_mask: Any = None,
) -> GradientTransformationExtraArgs:
    """Make an Adadelta optimizer: steps of the size of past steps [1]_.

    Parameters
    ----------
    learning_rate : float or callable, optional
        A number, or a schedule. Without one, updates go along the gradient, as in Optax: give 1.
    rho, eps
        As for `scale_by_adadelta`.
    weight_decay, weight_decay_mask
        As for `add_decayed_weights`.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer. Its `update` needs the parameters.

    References
    ----------
    .. [1] M. D. Zeiler, "ADADELTA: an adaptive learning rate method", 2012.

    Examples
    --------
    >>> optimizer = adadelta(1.0, rho=0.75)
    >>> params = {"w": 1.0}
    >>> updates, state = optimizer.update({"w": 4.0}, optimizer.init(params), params)
    >>> round(updates["w"], 6)
    -0.002
    """
    return chain(
        add_decayed_weights(weight_decay, weight_decay_mask),
        scale_by_adadelta(rho, eps),
        scale_by_learning_rate(learning_rate),
    )
