"""Schedule-free optimizers: averages of the parameters take the place of a falling rate."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from funcgrad import tree
from funcgrad.errors import ArgumentError, user_line
from funcgrad.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    ScalarOrSchedule,
    Updates,
    check_state,
    check_transformation,
    missing_params,
    with_extra_args_support,
)
from funcgrad.optim.combining import chain
from funcgrad.optim.cycles import warmup_constant_schedule
from funcgrad.optim.decay import add_decayed_weights
from funcgrad.optim.leaves import (
    as_hyperparameter,
    each_leaf,
    is_complex,
    is_trainable,
    like_leaf,
    rate_at,
)
from funcgrad.optim.momentum import sgd
from funcgrad.optim.scaling import scale_by_learning_rate
from funcgrad.optim.squares import scale_by_rms

__all__ = [
    "ScheduleFreeState",
    "schedule_free",
    "schedule_free_adamw",
    "schedule_free_eval_params",
    "schedule_free_sgd",
]


class ScheduleFreeState(NamedTuple):
    """What the average is made with, and the parameters of the optimizer below, ``z``."""

    b1: Any
    weight_sum: Any
    step_count: int
    max_lr: Any
    base_optimizer_state: OptState
    z: Params


def schedule_free_eval_params(state: OptState, params: Params) -> Params:
    """Return the averaged parameters, which are for use; those that are trained are others.

    Parameters
    ----------
    state : ScheduleFreeState
        The state of `schedule_free`.
    params : pytree
        The parameters that are trained.

    Returns
    -------
    pytree
        The averages.

    Raises
    ------
    ArgumentError
        The state is that of another optimizer.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer, w = schedule_free(fg.optim.sgd(1.0), learning_rate=1.0, b1=0.5), 4.0
    >>> updates, state = optimizer.update(1.0, optimizer.init(w), w)
    >>> w = fg.optim.apply_updates(w, updates)
    >>> schedule_free_eval_params(state, w)
    3.0
    """
    state = check_state(state, ScheduleFreeState, "schedule_free_eval_params")
    zs, treedef = tree.flatten(state.z, is_leaf=lambda z: z is None)
    news = [
        y if z is None else like_leaf((y - (1.0 - state.b1) * z) / state.b1, y)
        for y, z in zip(treedef.flatten_up_to(params), zs, strict=True)
    ]
    return tree.unflatten(treedef, news)


def schedule_free(
    base_optimizer: GradientTransformation,
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    weight_lr_power: Any = 2.0,
    state_dtype: Any = None,
) -> GradientTransformationExtraArgs:
    """Take gradients between an optimizer's parameters and their average [1]_.

    Parameters
    ----------
    base_optimizer : GradientTransformation
        The optimizer, without momentum.
    learning_rate : float or callable
        Its learning rate, for the weights of the average.
    b1 : float
        How near to the average gradients are taken, from 0 (not 0 itself) to 1.
    weight_lr_power : float
        Steps weigh as their learning rate to this power.
    state_dtype : dtype, optional
        To keep the optimizer's parameters in; that of the parameters by default.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer. Its `update` needs the parameters; `schedule_free_eval_params` returns those
        that are for use.

    Raises
    ------
    ArgumentError
        `b1` is 0; from `update`: there are no parameters.

    Notes
    -----
    In Optax it is in ``contrib``.

    References
    ----------
    .. [1] A. Defazio et al., "The road less scheduled", NeurIPS 2024.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer, w = schedule_free(fg.optim.sgd(1.0), learning_rate=1.0, b1=0.5), 4.0
    >>> updates, state = optimizer.update(1.0, optimizer.init(w), w)
    >>> updates, state.z
    (-1.0, 3.0)
    """
    check_transformation(base_optimizer, "schedule_free", "argument 0")
    base = with_extra_args_support(base_optimizer)
    b1 = as_hyperparameter(b1, "b1")
    if type(b1) in (int, float) and b1 == 0:
        raise ArgumentError(
            "b1 must not be 0: gradients would tell nothing about the average",
            where=user_line(),
            fix="write b1=0.9",
        )
    power = as_hyperparameter(weight_lr_power, "weight_lr_power")
    fixed = None if callable(learning_rate) else as_hyperparameter(learning_rate, "learning_rate")

    def kept(leaf: Any) -> Any:
        if not is_trainable(leaf):
            return None
        if state_dtype is not None:
            dtype = np.dtype(state_dtype)
            if is_complex(leaf):
                dtype = np.result_type(dtype, np.complex64)
            return leaf.astype(dtype) if hasattr(leaf, "astype") else dtype.type(leaf)
        return np.copy(leaf) if type(leaf) is np.ndarray else leaf

    def init(params: Params) -> ScheduleFreeState:
        return ScheduleFreeState(b1, 0.0, 1, 0.0, base.init(params), tree.map(kept, params))

    def update(
        updates: Updates, state: OptState, params: Params | None = None, **extra_args: Any
    ) -> tuple[Updates, OptState]:
        state = check_state(state, ScheduleFreeState, "schedule_free")
        if params is None:
            raise missing_params("schedule_free")
        rate = rate_at(learning_rate, state.step_count) if fixed is None else fixed
        largest: Any = np.maximum(state.max_lr, rate)
        weight = largest**power
        total = state.weight_sum + weight
        part: Any = np.where(total == 0, 0.0, weight / np.where(total == 0, 1.0, total))[()]
        part, largest, total = [
            float(x) if isinstance(x, np.floating) else x for x in (part, largest, total)
        ]
        updates, base_state = base.update(updates, state.base_optimizer_state, params, **extra_args)

        def step(u: Any, z: Any, y: Any) -> tuple[Any, Any]:
            new_z = like_leaf(z + u, z)
            average = (1.0 - part) * ((y - (1.0 - b1) * z) / b1) + part * new_z
            return b1 * average + (1.0 - b1) * new_z - y, new_z

        updates, z = each_leaf(step, updates, state.z, params=params)
        return updates, ScheduleFreeState(
            state.b1, total, state.step_count + 1, largest, base_state, z
        )

    return GradientTransformationExtraArgs(init, update)


def schedule_free_sgd(
    learning_rate: Any = 1.0,
    warmup_steps: int | None = None,
    b1: Any = 0.9,
    weight_decay: Any = None,
    weight_lr_power: Any = 2.0,
    state_dtype: Any = None,
) -> GradientTransformationExtraArgs:
    """Make a schedule-free gradient descent optimizer [1]_.

    Parameters
    ----------
    learning_rate : float
        A number.
    warmup_steps : int, optional
        How many steps the learning rate rises from 0; none by default.
    b1, weight_lr_power, state_dtype
        As for `schedule_free`.
    weight_decay : float, optional
        As for `add_decayed_weights`.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer. Its `update` needs the parameters.

    References
    ----------
    .. [1] A. Defazio et al., "The road less scheduled", NeurIPS 2024.

    Examples
    --------
    >>> optimizer = schedule_free_sgd(0.5)
    >>> optimizer.update(1.0, optimizer.init(4.0), 4.0)[0]
    -0.5
    """
    rate = _warmed_up(learning_rate, warmup_steps)
    optimizer = sgd(rate)
    if weight_decay is not None:
        optimizer = chain(add_decayed_weights(weight_decay), optimizer)
    return schedule_free(optimizer, rate, b1, weight_lr_power, state_dtype)


def schedule_free_adamw(
    learning_rate: Any = 0.0025,
    warmup_steps: int | None = None,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    weight_decay: Any = 0.0,
    weight_lr_power: Any = 2.0,
    state_dtype: Any = None,
) -> GradientTransformationExtraArgs:
    """Make a schedule-free AdamW optimizer [1]_.

    Parameters
    ----------
    learning_rate : float
        A number.
    warmup_steps : int, optional
        How many steps the learning rate rises from 0; none by default.
    b1, weight_lr_power, state_dtype
        As for `schedule_free`.
    b2, eps : float
        As for `scale_by_adam`.
    weight_decay : float
        As for `add_decayed_weights`.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer. Its `update` needs the parameters.

    References
    ----------
    .. [1] A. Defazio et al., "The road less scheduled", NeurIPS 2024.

    Examples
    --------
    >>> optimizer = schedule_free_adamw(0.5)
    >>> round(optimizer.update(4.0, optimizer.init(1.0), 1.0)[0], 6)
    -0.5
    """
    rate = _warmed_up(learning_rate, warmup_steps)
    optimizer = chain(
        scale_by_rms(b2, eps, eps_in_sqrt=False, bias_correction=True),
        add_decayed_weights(weight_decay),
        scale_by_learning_rate(rate),
    )
    return schedule_free(optimizer, rate, b1, weight_lr_power, state_dtype)


def _warmed_up(learning_rate: Any, warmup_steps: int | None) -> ScalarOrSchedule:
    if warmup_steps is None:
        return learning_rate
    return warmup_constant_schedule(0, learning_rate, warmup_steps)
