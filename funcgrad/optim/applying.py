"""Adding updates to parameters, and moving one set of parameters towards another."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad import cond, tree
from funcgrad.optim.base import Params, Updates
from funcgrad.optim.leaves import (
    as_hyperparameter,
    is_trainable,
    like_leaf,
    matched,
    shape_mismatch,
)

__all__ = ["apply_updates", "incremental_update", "periodic_update"]

_ndarray = np.ndarray


def apply_updates(params: Params, updates: Updates) -> Params:
    """Add updates to parameters.

    Parameters
    ----------
    params : pytree
        Arrays, numbers, and whatever else.
    updates : pytree
        Like `params`, with None for a leaf or a subtree that stays as it is.

    Returns
    -------
    pytree
        New parameters, each leaf of the kind, the shape and the dtype that it had.

    Raises
    ------
    TreeMismatchError
        `updates` have another structure.
    ShapeError
        An update has another shape than its parameter.

    Examples
    --------
    >>> import numpy as np
    >>> params = {"w": np.ones(2, np.float32), "activation": np.tanh, "scale": 1.0}
    >>> new = apply_updates(params, {"w": np.full(2, 0.5), "activation": None, "scale": -0.5})
    >>> new["w"], new["scale"], new["activation"] is np.tanh
    (array([1.5, 1.5], dtype=float32), 0.5, True)
    """
    changes, olds, treedef = matched(
        updates, params, "the updates do not fit the parameters", "the updates", "the parameters"
    )
    news = []
    for change, old in zip(changes, olds, strict=True):
        if change is None:
            news.append(old)
            continue
        if getattr(change, "shape", ()) != getattr(old, "shape", ()):
            # NumPy might broadcast them, and a slip would pass for a step.
            fix = "give each update the shape of its parameter"
            raise shape_mismatch(params, updates, "the update", "the parameter", fix)
        new = old + change
        if type(new) is not _ndarray or type(old) is not _ndarray or new.dtype != old.dtype:
            new = like_leaf(new, old)
        news.append(new)
    return tree.unflatten(treedef, news)


def incremental_update(new_tensors: Params, old_tensors: Params, step_size: Any) -> Params:
    """Move old parameters towards new ones: Polyak averaging, or a target network that follows.

    Parameters
    ----------
    new_tensors, old_tensors : pytree
        Of the same structure.
    step_size : float
        How far to go, from 0 to 1.

    Returns
    -------
    pytree
        ``step_size * new + (1 - step_size) * old``; leaves that are no floating-point numbers are
        the new ones.

    References
    ----------
    .. [1] B. Polyak and A. Juditsky, "Acceleration of stochastic approximation by averaging", 1992.

    Examples
    --------
    >>> incremental_update({"w": 1.0}, {"w": 0.0}, 0.25)
    {'w': 0.25}
    """
    step = as_hyperparameter(step_size, "step_size")

    def between(new: Any, old: Any) -> Any:
        if not is_trainable(new):
            return new
        return like_leaf(step * new + (1.0 - step) * old, new)

    return tree.map(between, new_tensors, old_tensors)


def periodic_update(
    new_tensors: Params, old_tensors: Params, steps: Any, update_period: Any
) -> Params:
    """Return new parameters every so many steps, else the old ones.

    Parameters
    ----------
    new_tensors, old_tensors : pytree
        Of the same structure.
    steps : int
        The number of steps done.
    update_period : int
        New ones are returned when this divides `steps`.

    Returns
    -------
    pytree
        One of the two.

    References
    ----------
    .. [1] S. Grossberg, "Competitive learning: from interactive activation to adaptive resonance",
       1987.

    Examples
    --------
    >>> [periodic_update("new", "old", steps, 2) for steps in range(4)]
    ['new', 'old', 'new', 'old']
    """
    return cond(steps % update_period == 0, lambda: new_tensors, lambda: old_tensors)
