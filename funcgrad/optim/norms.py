"""Factors made of norms: of all updates, or layer by layer, as trust ratios.

The norms have derivatives everywhere: where they would be zero, those are zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.optim.base import (
    GradientTransformation,
    OptState,
    Params,
    Updates,
    init_empty_state,
    missing_params,
)
from funcgrad.optim.clipping import global_norm
from funcgrad.optim.leaves import abs_square, as_hyperparameter, map_updates, map_with_params

__all__ = [
    "normalize_by_update_norm",
    "safe_norm",
    "safe_root_mean_squares",
    "scale_by_param_block_norm",
    "scale_by_param_block_rms",
    "scale_by_trust_ratio",
]


def safe_norm(
    x: Any,
    min_norm: Any,
    ord: int | float | str | None = None,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
) -> Any:
    """Return the norm, but not less than a least one.

    Parameters
    ----------
    x : array_like
        Of what.
    min_norm : float
        The least.
    ord, axis, keepdims
        As for `numpy.linalg.norm`.

    Returns
    -------
    ndarray
        The larger of the two. Where it is the least, the derivative is zero, and not NaN.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> float(safe_norm(np.array([3.0, 4.0]), 1e-3)), float(safe_norm(np.zeros(2), 1e-3))
    (5.0, 0.001)
    >>> fg.grad(safe_norm)(np.zeros(2), 1e-3)
    array([0., 0.])
    """
    order: Any = ord
    norm = np.linalg.norm(x, ord=order, axis=axis, keepdims=keepdims)
    return np.where(norm <= min_norm, min_norm, norm)[()]


def safe_root_mean_squares(x: Any, min_rms: Any) -> Any:
    """Return the root of the mean of squares, but not less than a least one.

    Parameters
    ----------
    x : array_like
        Of what; complex numbers count by their magnitudes.
    min_rms : float
        The least.

    Returns
    -------
    ndarray
        The larger of the two. Where it is the least, the derivative is zero, and not NaN.

    Examples
    --------
    >>> import numpy as np
    >>> float(safe_root_mean_squares(np.array([1.0, 7.0]), 1e-3))
    5.0
    """
    rms = root_mean_square(x)
    return np.where(rms <= min_rms, min_rms, rms)[()]


def root_mean_square(x: Any) -> Any:
    """Return the root of the mean of squares, with derivative zero where it is zero."""
    square = np.mean(abs_square(x))
    return np.where(square == 0, 0, np.sqrt(np.where(square == 0, 1, square)))[()]


def normalize_by_update_norm(scale_factor: Any = 1.0, eps: Any = 1e-6) -> GradientTransformation:
    """Scale all updates so that their norm is given.

    Parameters
    ----------
    scale_factor : float
        The norm.
    eps : float
        Added to the norm of the gradients.

    Returns
    -------
    GradientTransformation
        Without state.

    Examples
    --------
    >>> optimizer = normalize_by_update_norm(5.0, eps=0.0)
    >>> optimizer.update({"w": 30.0, "b": 40.0}, optimizer.init({"w": 1.0, "b": 1.0}))
    ({'w': 3.0, 'b': 4.0}, EmptyState())
    """
    wanted = as_hyperparameter(scale_factor, "scale_factor")
    eps = as_hyperparameter(eps, "eps")

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        divisor = (as_hyperparameter(global_norm(updates), "the norm") + eps) / wanted
        # With NaN for a norm of zero and no eps, as other undefined directions.
        if type(divisor) is float and divisor == 0:
            divisor = np.nan
        return map_updates(lambda g: g / divisor, updates), state

    return GradientTransformation(init_empty_state, update)


def scale_by_param_block_norm(min_scale: Any = 1e-3) -> GradientTransformation:
    """Multiply the update of each parameter by the norm of that parameter.

    Parameters
    ----------
    min_scale : float
        The least factor.

    Returns
    -------
    GradientTransformation
        Needs the parameters in `update`.

    Raises
    ------
    ArgumentError
        From `update`: there are no parameters.

    Examples
    --------
    >>> optimizer = scale_by_param_block_norm()
    >>> optimizer.update({"w": 1.0}, optimizer.init({"w": 4.0}), {"w": 4.0})
    ({'w': 4.0}, EmptyState())
    """
    least = as_hyperparameter(min_scale, "min_scale")
    return _by_parameter("scale_by_param_block_norm", lambda g, p: g * safe_norm(p, least))


def scale_by_param_block_rms(min_scale: Any = 1e-3) -> GradientTransformation:
    """Multiply the update of each parameter by the root mean square of that parameter.

    Parameters
    ----------
    min_scale : float
        The least factor.

    Returns
    -------
    GradientTransformation
        Needs the parameters in `update`.

    Raises
    ------
    ArgumentError
        From `update`: there are no parameters.

    Examples
    --------
    >>> optimizer = scale_by_param_block_rms()
    >>> optimizer.update({"w": 1.0}, optimizer.init({"w": 4.0}), {"w": 4.0})
    ({'w': 4.0}, EmptyState())
    """
    least = as_hyperparameter(min_scale, "min_scale")
    return _by_parameter(
        "scale_by_param_block_rms", lambda g, p: g * safe_root_mean_squares(p, least)
    )


def scale_by_trust_ratio(
    min_norm: Any = 0.0, trust_coefficient: Any = 1.0, eps: Any = 0.0
) -> GradientTransformation:
    """Give each update the norm of its parameter, or a part of it [1]_.

    Parameters
    ----------
    min_norm : float
        The least that norms of updates and parameters count for.
    trust_coefficient : float
        The part.
    eps : float
        Added to norms of updates.

    Returns
    -------
    GradientTransformation
        Needs the parameters in `update`. Where one of the norms is zero, updates stay.

    Raises
    ------
    ArgumentError
        From `update`: there are no parameters.

    References
    ----------
    .. [1] Y. You et al., "Large batch optimization for deep learning: training BERT in 76 minutes",
       ICLR 2020.

    Examples
    --------
    >>> optimizer = scale_by_trust_ratio()
    >>> optimizer.update({"w": -1.0}, optimizer.init({"w": 4.0}), {"w": 4.0})
    ({'w': -4.0}, EmptyState())
    """
    least = as_hyperparameter(min_norm, "min_norm")
    part = as_hyperparameter(trust_coefficient, "trust_coefficient")
    eps = as_hyperparameter(eps, "eps")

    def scaled(g: Any, param: Any) -> Any:
        size, length = safe_norm(param, least), safe_norm(g, least)
        undefined = (size == 0) | (length == 0)
        ratio = part * size / np.where(undefined, 1, length + eps)
        return g * np.where(undefined, 1, ratio)[()]

    return _by_parameter("scale_by_trust_ratio", scaled)


def _by_parameter(name: str, fun: Any) -> GradientTransformation:
    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        if params is None:
            raise missing_params(name)
        return map_with_params(fun, updates, params), state

    return GradientTransformation(init_empty_state, update)
