"""Step sizes that nobody has to choose: from the value, from distances, from a plateau."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from funcgrad import cond, tree
from funcgrad.errors import ArgumentError, user_line
from funcgrad.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    ScalarOrSchedule,
    Updates,
    check_state,
    init_empty_state,
    missing_params,
    needing_more,
)
from funcgrad.optim.combining import chain
from funcgrad.optim.leaves import (
    abs_square,
    as_hyperparameter,
    each_leaf,
    is_trainable,
    like_leaf,
    map_updates,
    scalars_for,
)
from funcgrad.optim.momentum import sgd

__all__ = [
    "ReduceLROnPlateauState",
    "ScaleByDistanceOverGradientsState",
    "polyak_sgd",
    "reduce_on_plateau",
    "scale_by_distance_over_gradients",
    "scale_by_polyak",
]


def scale_by_polyak(
    f_min: Any = 0.0,
    max_learning_rate: Any = 1.0,
    eps: Any = 0.0,
    variant: str = "sps",
) -> GradientTransformationExtraArgs:
    """Multiply updates by how far the value is from its minimum, over their squared norm [1]_.

    Parameters
    ----------
    f_min : float
        The least value that the function has.
    max_learning_rate : float
        The largest factor.
    eps : float
        Added to the squared norm.
    variant : {"sps", "sps+"}
        With the plus, never go back when the value is below `f_min`.

    Returns
    -------
    GradientTransformationExtraArgs
        Its `update` needs the ``value`` of the function as a keyword argument.

    Raises
    ------
    ArgumentError
        There is no such variant.

    References
    ----------
    .. [1] N. Loizou et al., "Stochastic Polyak step-size for SGD: an adaptive learning rate for
       fast convergence", AISTATS 2021.

    Examples
    --------
    >>> optimizer = scale_by_polyak()
    >>> optimizer.update({"w": 4.0}, optimizer.init({"w": 2.0}), value=4.0)
    ({'w': 1.0}, EmptyState())
    """
    if variant not in ("sps", "sps+"):
        raise ArgumentError(
            f"variant must be 'sps' or 'sps+', got {variant!r}",
            where=user_line(),
            fix="write variant='sps'",
        )
    least, eps = as_hyperparameter(f_min, "f_min"), as_hyperparameter(eps, "eps")
    most = as_hyperparameter(max_learning_rate, "max_learning_rate")

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        *,
        value: Any,
        **extra_args: Any,
    ) -> tuple[Updates, OptState]:
        square: Any = 0.0
        for leaf in tree.leaves(updates):
            square = square + np.sum(abs_square(leaf))
        gap = value - least
        if variant == "sps+":
            gap = np.maximum(gap, 0.0)
        vanishing = square + eps <= np.finfo(np.float64).eps
        step = np.minimum(gap / np.where(vanishing, 1.0, square + eps), most)
        step = as_hyperparameter(np.where(vanishing, 0.0, step)[()], "the step")
        return map_updates(lambda g: step * g, updates), state

    return needing_more(init_empty_state, update)


def polyak_sgd(
    max_learning_rate: Any = 1.0,
    scaling: ScalarOrSchedule = 1.0,
    f_min: Any = 0.0,
    eps: Any = 0.0,
    variant: str = "sps",
) -> GradientTransformationExtraArgs:
    """Make a gradient descent optimizer with Polyak's step size [1]_.

    Parameters
    ----------
    max_learning_rate : float
        The largest learning rate.
    scaling : float or callable
        Multiplies the step: a number, or a schedule.
    f_min, eps, variant
        As for `scale_by_polyak`.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer. Its `update` needs the ``value`` of the function as a keyword argument.

    References
    ----------
    .. [1] N. Loizou et al., "Stochastic Polyak step-size for SGD: an adaptive learning rate for
       fast convergence", AISTATS 2021.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = polyak_sgd()
    >>> value, gradient = fg.value_and_grad(lambda w: w**2)(2.0)
    >>> optimizer.update(gradient, optimizer.init(2.0), value=value)[0]
    -1.0
    """
    return chain(sgd(scaling), scale_by_polyak(f_min, max_learning_rate, eps, variant))


class ScaleByDistanceOverGradientsState(NamedTuple):
    """The largest distances from the start, sums of squared gradients, and the start."""

    max_dist: Updates
    grad_sum_of_squares: Updates
    init_params: Params


def scale_by_distance_over_gradients(
    reps_rel: Any = 1e-6,
    eps: Any = 1e-8,
    param_dtype: Any = np.float32,
    global_scale: Any = 1.0,
) -> GradientTransformation:
    """Multiply updates by how far the parameter came, over the root of its summed squares [1]_.

    Parameters
    ----------
    reps_rel : float
        The first distance, as a part of one plus the norm of the parameter.
    eps : float
        Added under the root.
    param_dtype : dtype
        To keep the start in.
    global_scale : float
        Multiplies all.

    Returns
    -------
    GradientTransformation
        Its state is a `ScaleByDistanceOverGradientsState`. Needs the parameters in `update`.

    Raises
    ------
    ArgumentError
        From `update`: there are no parameters.

    References
    ----------
    .. [1] M. Ivgi, O. Hinder and Y. Carmon, "DoG is SGD's best friend: a parameter-free dynamic
       step size schedule", ICML 2023.

    Examples
    --------
    >>> optimizer = scale_by_distance_over_gradients(reps_rel=0.1, eps=0.0)
    >>> params = {"w": 4.0}
    >>> optimizer.update({"w": 2.0}, optimizer.init(params), params)[0]
    {'w': 0.5}
    """
    part, eps = as_hyperparameter(reps_rel, "reps_rel"), as_hyperparameter(eps, "eps")
    factor = as_hyperparameter(global_scale, "global_scale")
    dtype = np.dtype(param_dtype)

    def kept(leaf: Any) -> Any:
        if not is_trainable(leaf):
            return None
        wide = np.result_type(dtype, np.complex64) if np.iscomplexobj(leaf) else dtype
        return leaf.astype(wide) if hasattr(leaf, "astype") else wide.type(leaf)

    def init(params: Params) -> ScaleByDistanceOverGradientsState:
        return ScaleByDistanceOverGradientsState(
            scalars_for(params, lambda leaf: part * (1 + np.sqrt(np.sum(abs_square(leaf))))),
            scalars_for(params),
            tree.map(kept, params),
        )

    def step(g: Any, far: Any, total: Any, start: Any, param: Any) -> tuple[Any, Any, Any, Any]:
        far = np.maximum(far, np.sqrt(np.sum(abs_square(param - start))))
        total = total + np.sum(abs_square(g))
        return factor * (far / np.sqrt(total + eps)) * g, far, total, start

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(
            state, ScaleByDistanceOverGradientsState, "scale_by_distance_over_gradients"
        )
        if params is None:
            raise missing_params("scale_by_distance_over_gradients")
        updates, far, total, _ = each_leaf(
            step,
            updates,
            state.max_dist,
            state.grad_sum_of_squares,
            state.init_params,
            params=params,
            same_shape=False,
        )
        return updates, ScaleByDistanceOverGradientsState(far, total, state.init_params)

    return GradientTransformation(init, update)


class ReduceLROnPlateauState(NamedTuple):
    """The factor in force, the best value so far, and how long it has been so."""

    scale: Any
    best_value: Any
    plateau_count: int
    cooldown_count: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here
    avg_value: Any


def reduce_on_plateau(
    factor: float = 0.1,
    patience: int = 10,
    rtol: float = 1e-4,
    atol: float = 0.0,
    cooldown: int = 0,
    accumulation_size: int = 1,
    min_scale: float = 0.0,
) -> GradientTransformationExtraArgs:
    """Multiply updates by a factor that falls when the value no longer does.

    Parameters
    ----------
    factor : float
        What the factor is multiplied by, between 0 and 1.
    patience : int
        How many values without improvement it takes.
    rtol, atol : float
        An improvement is below ``(1 - rtol) * best - atol``.
    cooldown : int
        For how many values after a reduction nothing is counted.
    accumulation_size : int
        How many values are averaged to one.
    min_scale : float
        The least factor.

    Returns
    -------
    GradientTransformationExtraArgs
        Its `update` needs the ``value`` as a keyword argument. Its state is a
        `ReduceLROnPlateauState`, in and out; ``state.scale`` is the factor in force.

    Raises
    ------
    ArgumentError
        `factor` or a tolerance is out of range.

    Notes
    -----
    Put it behind the optimizer: ``chain(adam(0.1), reduce_on_plateau())``. In Optax it is in
    ``contrib``.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = fg.optim.chain(fg.optim.sgd(1.0), reduce_on_plateau(factor=0.5, patience=2))
    >>> state, steps = optimizer.init(0.0), []
    >>> for value in [3.0, 2.0, 2.0, 2.0, 2.0]:
    ...     update, state = optimizer.update(1.0, state, value=value)
    ...     steps.append(update)
    >>> steps, state[1].scale
    ([-1.0, -1.0, -1.0, -0.5, -0.5], 0.5)
    """
    _check_plateau(factor, rtol, atol)

    def init(params: Params) -> ReduceLROnPlateauState:
        return ReduceLROnPlateauState(1.0, float("inf"), 0, 0, 0, 0.0)

    def judged(state: ReduceLROnPlateauState) -> ReduceLROnPlateauState:
        improved = state.avg_value < (1 - rtol) * state.best_value - atol
        best = cond(improved, lambda: state.avg_value, lambda: state.best_value)
        waited = cond(improved, lambda: 0, lambda: state.plateau_count + 1)
        lost = waited == patience

        def cooling() -> tuple[Any, Any, Any]:
            return state.scale, 0, state.cooldown_count - 1

        def counting() -> tuple[Any, Any, Any]:
            result: tuple[Any, Any, Any] = cond(
                lost,
                lambda: (_larger(state.scale * factor, min_scale), 0, cooldown),
                lambda: (_larger(state.scale, min_scale), waited, 0),
            )
            return result

        scale, waited, cool = cond(state.cooldown_count > 0, cooling, counting)
        return ReduceLROnPlateauState(scale, best, waited, cool, 0, 0.0)

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        *,
        value: Any,
        **extra_args: Any,
    ) -> tuple[Updates, OptState]:
        state = check_state(state, ReduceLROnPlateauState, "reduce_on_plateau")
        count = state.count + 1
        average = (state.count * state.avg_value + as_hyperparameter(value, "value")) / count
        state = state._replace(count=count, avg_value=like_leaf(average, state.avg_value))
        state = cond(count == accumulation_size, judged, lambda same: same, state)
        return map_updates(lambda g: state.scale * g, updates), state

    return needing_more(init, update)


def _larger(a: Any, b: Any) -> Any:
    return max(a, b) if type(a) is float else np.maximum(a, b)


def _check_plateau(factor: float, rtol: float, atol: float) -> None:
    if not 0 < factor < 1:
        raise ArgumentError(
            f"factor must be between 0 and 1, got {factor}",
            where=user_line(),
            fix="write factor=0.1, say",
        )
    if not (0 <= rtol <= 1 and atol >= 0 and rtol + atol > 0):
        raise ArgumentError(
            "rtol must be from 0 to 1, atol not negative, and one of them positive, "
            f"got {rtol} and {atol}",
            where=user_line(),
            fix="write rtol=1e-4, say",
        )
