"""Optimizers that keep means of rows and columns rather than of every element."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from funcgrad import tree
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
from funcgrad.optim.clipping import clip_by_block_rms
from funcgrad.optim.combining import chain
from funcgrad.optim.decay import add_decayed_weights
from funcgrad.optim.leaves import (
    abs_square,
    as_hyperparameter,
    each_leaf,
    like_leaf,
    matched,
    wrong_shape,
    zeros_for,
)
from funcgrad.optim.moments import inverse_root, mean
from funcgrad.optim.momentum import ema
from funcgrad.optim.norms import scale_by_param_block_rms
from funcgrad.optim.scaling import descend, scale_by_rate

__all__ = [
    "FactoredState",
    "ScaleBySM3State",
    "adafactor",
    "scale_by_factored_rms",
    "scale_by_sm3",
    "sm3",
]


class FactoredState(NamedTuple):
    """The number of steps done, and means of squares: of rows and columns, or of all elements.

    Of the three means of a parameter those that are not kept are an array of one zero.
    """

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here
    v_row: Updates
    v_col: Updates
    v: Updates


def _decay_rate_pow(count: Any, exponent: Any) -> Any:
    """Return a decay that comes closer to one with every step."""
    return 1.0 - (count + 1.0) ** (-exponent)


def scale_by_factored_rms(
    factored: bool = True,
    decay_rate: Any = 0.8,
    step_offset: Any = 0,
    min_dim_size_to_factor: int = 128,
    epsilon: Any = 1e-30,
    decay_rate_fn: Callable[[Any, Any], Any] = _decay_rate_pow,
) -> GradientTransformation:
    """Divide gradients by the root of their mean square, known by its rows and columns [1]_.

    Parameters
    ----------
    factored : bool
        Keep means of rows and columns where a parameter is large enough; False keeps all.
    decay_rate : float
        Exponent of what is remembered: ``1 - count ** -decay_rate``.
    step_offset : int
        Subtracted from the number of steps done, when training goes on from somewhere.
    min_dim_size_to_factor : int
        How long the two longest axes of a parameter must be at least.
    epsilon : float
        Added to squares.
    decay_rate_fn : callable
        Makes the decay of the number of steps done and `decay_rate`.

    Returns
    -------
    GradientTransformation
        Its state is a `FactoredState`. Needs the parameters in `update`.

    Raises
    ------
    ArgumentError
        From `update`: there are no parameters.

    Notes
    -----
    The decay is a float64, where that of Optax is a float32 whatever the parameters are.

    References
    ----------
    .. [1] N. Shazeer and M. Stern, "Adafactor: adaptive learning rates with sublinear memory cost",
       ICML 2018.

    Examples
    --------
    >>> import numpy as np
    >>> optimizer = scale_by_factored_rms(min_dim_size_to_factor=2)
    >>> params = np.ones((2, 3))
    >>> updates, state = optimizer.update(2 * params, optimizer.init(params), params)
    >>> updates[0], state.v_row, state.v_col
    (array([1., 1., 1.]), array([4., 4.]), array([4., 4., 4.]))
    """
    decay_rate, epsilon = (
        as_hyperparameter(decay_rate, "decay_rate"),
        as_hyperparameter(epsilon, "epsilon"),
    )
    offset = as_hyperparameter(step_offset, "step_offset")

    def axes(shape: tuple[int, ...]) -> tuple[int, int] | None:
        """Return the second longest axis and the longest, if they are long enough."""
        if not factored or len(shape) < 2:
            return None
        *_, second, first = np.argsort(shape).tolist()
        return None if shape[second] < min_dim_size_to_factor else (second, first)

    def init(params: Params) -> FactoredState:
        real = zeros_for(params, real=True)

        def means(which: int) -> Any:
            def one(zeros: Any) -> Any:
                pair = axes(getattr(zeros, "shape", ()))
                if (pair is None) is not (which == 2):
                    return np.zeros(1, getattr(zeros, "dtype", None))
                return zeros if pair is None else np.sum(zeros, axis=pair[1 - which])

            return tree.map(one, real)

        return FactoredState(0, means(0), means(1), means(2))

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(state, FactoredState, "scale_by_factored_rms")
        if params is None:
            raise missing_params("scale_by_factored_rms")
        decay = as_hyperparameter(decay_rate_fn(state.count - offset, decay_rate), "the decay")

        def step(g: Any, row: Any, col: Any, v: Any, param: Any) -> tuple[Any, Any, Any, Any]:
            if getattr(g, "shape", ()) != getattr(param, "shape", ()):
                wrong_shape(updates, params, "the parameter")
            square = abs_square(g) + epsilon
            pair = axes(getattr(g, "shape", ()))
            if pair is None:
                v = mean(square, v, decay)
                return g * v**-0.5, row, col, v
            second, first = pair
            row = mean(np.mean(square, axis=first), row, decay)
            col = mean(np.mean(square, axis=second), col, decay)
            whole = np.mean(row, axis=second - (second > first), keepdims=True)
            factor = np.expand_dims((row / whole) ** -0.5, first)
            return g * factor * np.expand_dims(col**-0.5, second), row, col, v

        updates, *means = each_leaf(
            step, updates, state.v_row, state.v_col, state.v, params=params, same_shape=False
        )
        return updates, FactoredState(state.count + 1, *means)

    return GradientTransformation(init, update)


def adafactor(
    learning_rate: ScalarOrSchedule | None = None,
    min_dim_size_to_factor: int = 128,
    decay_rate: Any = 0.8,
    decay_offset: Any = 0,
    multiply_by_parameter_scale: bool = True,
    clipping_threshold: Any = 1.0,
    momentum: Any = None,
    dtype_momentum: Any = np.float32,
    weight_decay_rate: ScalarOrSchedule | None = None,
    eps: Any = 1e-30,
    factored: bool = True,
    weight_decay_mask: Any = None,
) -> GradientTransformationExtraArgs:
    """Make an Adafactor optimizer: adaptive, with little memory [1]_.

    Parameters
    ----------
    learning_rate : float or callable, optional
        A number, or a schedule; 1 by default.
    min_dim_size_to_factor, decay_rate, factored
        As for `scale_by_factored_rms`.
    decay_offset : int
        Its `step_offset`.
    multiply_by_parameter_scale : bool
        Give steps the size of parameters.
    clipping_threshold : float, optional
        The threshold of `clip_by_block_rms`; None does not clip.
    momentum : float, optional
        The decay of a running mean of the steps; none by default.
    dtype_momentum : dtype
        To keep that mean in.
    weight_decay_rate, weight_decay_mask
        As for `add_decayed_weights`; the learning rate does not multiply the decay.
    eps : float
        Added to squares.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer. Its `update` needs the parameters.

    References
    ----------
    .. [1] N. Shazeer and M. Stern, "Adafactor: adaptive learning rates with sublinear memory cost",
       ICML 2018.

    Examples
    --------
    >>> optimizer = adafactor(0.1)
    >>> params = {"w": 4.0}
    >>> updates, state = optimizer.update({"w": 0.5}, optimizer.init(params), params)
    >>> round(updates["w"], 6)
    -0.4
    """
    parts = [scale_by_factored_rms(factored, decay_rate, decay_offset, min_dim_size_to_factor, eps)]
    if clipping_threshold is not None:
        parts.append(clip_by_block_rms(clipping_threshold))
    if learning_rate is not None:
        parts.append(scale_by_rate(learning_rate, 1, conjugated=False))
    if multiply_by_parameter_scale:
        parts.append(scale_by_param_block_rms())
    if momentum is not None:
        parts.append(ema(momentum, debias=False, accumulator_dtype=dtype_momentum))
    if weight_decay_rate is not None:
        parts.append(add_decayed_weights(weight_decay_rate, weight_decay_mask))
    return chain(*parts, descend())


class ScaleBySM3State(NamedTuple):
    """For each axis of a parameter, maxima over the others; and running means of the updates."""

    mu: Updates
    nu: Updates


def scale_by_sm3(b1: Any = 0.9, b2: Any = 1.0, eps: Any = 1e-8) -> GradientTransformation:
    """Divide gradients by the root of sums of squares, known by maxima along each axis [1]_.

    Parameters
    ----------
    b1 : float
        Decay of the running mean of the updates.
    b2 : float
        What remains of sums of squares; with less than 1 they are means.
    eps : float
        Added under the root.

    Returns
    -------
    GradientTransformation
        Its state is a `ScaleBySM3State`.

    References
    ----------
    .. [1] R. Anil et al., "Memory-efficient adaptive optimization", NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> optimizer = scale_by_sm3(b1=0.0, eps=0.0)
    >>> params = np.ones((2, 3))
    >>> updates, state = optimizer.update(2 * params, optimizer.init(params))
    >>> updates[0], state.mu
    (array([1., 1., 1.]), [array([4., 4.]), array([4., 4., 4.])])
    """
    b1, b2 = as_hyperparameter(b1, "b1"), as_hyperparameter(b2, "b2")
    eps = as_hyperparameter(eps, "eps")

    def init(params: Params) -> ScaleBySM3State:
        def maxima(zeros: Any) -> Any:
            shape = getattr(zeros, "shape", ())
            dtype = getattr(zeros, "dtype", None)
            return [np.zeros(size, dtype) for size in shape] if shape else [zeros]

        return ScaleBySM3State(tree.map(maxima, zeros_for(params, real=True)), zeros_for(params))

    def step(g: Any, axes: list[Any], m: Any) -> tuple[Any, list[Any]]:
        count = len(getattr(g, "shape", ()))
        spread = [
            np.reshape(one, [-1 if i == k else 1 for k in range(count)]) if count else one
            for i, one in enumerate(axes)
        ]
        weight = 1.0 if type(b2) in (int, float) and b2 == 1 else 1.0 - b2
        total = weight * abs_square(g) + b2 * functools.reduce(np.minimum, spread)
        news = [
            np.max(total, axis=tuple([k for k in range(count) if k != i])) if count > 1 else total
            for i in range(len(axes))
        ]
        news = [like_leaf(new, old) for new, old in zip(news, axes, strict=True)]
        return mean(g * inverse_root(total, eps), m, b1), news

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(state, ScaleBySM3State, "sm3")
        leaves, means, treedef = matched(updates, state.nu)
        olds = treedef.flatten_up_to(state.mu)
        steps: list[Any] = []
        news: list[Any] = []
        maxima: list[Any] = []
        for g, axes, m in zip(leaves, olds, means, strict=True):
            if g is None:
                new, kept, tops = None, m, axes
            elif getattr(g, "shape", ()) != getattr(m, "shape", ()):
                wrong_shape(updates, state.nu)
            else:
                value, tops = step(g, axes, m)
                new, kept = like_leaf(value, g), like_leaf(value, m)
            steps.append(new)
            news.append(kept)
            maxima.append(tops)
        unflatten = tree.unflatten
        return unflatten(treedef, steps), ScaleBySM3State(
            unflatten(treedef, maxima), unflatten(treedef, news)
        )

    return GradientTransformation(init, update)


def sm3(learning_rate: Any, momentum: Any = 0.9) -> GradientTransformationExtraArgs:
    """Make an SM3 optimizer: Adagrad with little memory [1]_.

    Parameters
    ----------
    learning_rate : float
        A number.
    momentum : float
        Decay of the running mean of the updates.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer.

    References
    ----------
    .. [1] R. Anil et al., "Memory-efficient adaptive optimization", NeurIPS 2019.

    Examples
    --------
    >>> optimizer = sm3(0.5, momentum=0.0)
    >>> updates, state = optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    >>> round(updates["w"], 6)
    -0.5
    """
    return chain(scale_by_sm3(momentum), scale_by_rate(learning_rate, -1, conjugated=True))
