"""Noise on gradients, from explicit keys."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from funcgrad import random, tree
from funcgrad.errors import ArgumentError, user_line
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
from funcgrad.optim.leaves import as_hyperparameter, like_leaf
from funcgrad.optim.scaling import scale_by_learning_rate

__all__ = ["AddNoiseState", "add_noise", "noisy_sgd"]


class AddNoiseState(NamedTuple):
    """The number of steps done, and the key for the noise to come."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here
    rng_key: Any


def add_noise(
    eta: Any, gamma: Any, key: Any = None, *, seed: int | None = None
) -> GradientTransformation:
    """Add normal noise that fades with the number of steps [1]_.

    Parameters
    ----------
    eta : float
        Variance of the noise at the first step.
    gamma : float
        The variance at step ``n`` is ``eta / n ** gamma``.
    key : Key or int
        Where the noise comes from. The state holds the key for what is to come.
    seed : int, optional
        The old name of `key`.

    Returns
    -------
    GradientTransformation
        Its state is an `AddNoiseState`.

    Raises
    ------
    ArgumentError
        There is a key and a seed.

    Warns
    -----
    DeprecationWarning
        There is a seed.
    UserWarning
        There is neither; then the key is 0.

    References
    ----------
    .. [1] A. Neelakantan et al., "Adding gradient noise improves learning for very deep networks",
       2015.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = add_noise(eta=0.01, gamma=0.55, key=fg.random.key(0))
    >>> updates, state = optimizer.update({"w": 1.0}, optimizer.init({"w": 0.0}))
    >>> 0.5 < updates["w"] < 1.5, updates["w"] == 1.0, state.count
    (True, False, 1)
    """
    eta, gamma = as_hyperparameter(eta, "eta"), as_hyperparameter(gamma, "gamma")
    if seed is not None:
        if key is not None:
            raise ArgumentError(
                "add_noise takes a key or a seed, and got both",
                where=user_line(),
                fix="leave the seed out",
            )
        warnings.warn("seed is deprecated: write key=seed", DeprecationWarning, stacklevel=2)
        key = seed
    if key is None:
        warnings.warn("add_noise takes key 0, as there is none", stacklevel=2)
        key = 0
    start = key if isinstance(key, random.Key) else random.key(key)

    def init(params: Params) -> AddNoiseState:
        return AddNoiseState(0, random.clone(start))

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(state, AddNoiseState, "add_noise")
        count = state.count + 1
        leaves, treedef = tree.flatten(updates)
        # A clone: who repeats an update, of a state that was saved, repeats its noise.
        key, *keys = random.split(random.clone(state.rng_key), 1 + len(leaves))
        size = np.sqrt(eta / count**gamma)
        news = [
            like_leaf(leaf + size * _noise(one, leaf), leaf)
            for leaf, one in zip(leaves, keys, strict=True)
        ]
        return tree.unflatten(treedef, news), AddNoiseState(count, key)

    return GradientTransformation(init, update)


def _noise(key: Any, leaf: Any) -> Any:
    dtype = getattr(leaf, "dtype", np.dtype(type(leaf)))
    return random.normal(key, getattr(leaf, "shape", ()), dtype)


def noisy_sgd(
    learning_rate: ScalarOrSchedule,
    eta: Any = 0.01,
    gamma: Any = 0.55,
    key: Any = None,
    *,
    seed: int | None = None,
) -> GradientTransformationExtraArgs:
    """Make a gradient descent optimizer with noise on gradients [1]_.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule.
    eta, gamma, key, seed
        As for `add_noise`.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer.

    References
    ----------
    .. [1] A. Neelakantan et al., "Adding gradient noise improves learning for very deep networks",
       2015.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = noisy_sgd(0.1, key=fg.random.key(0))
    >>> updates, state = optimizer.update({"w": 1.0}, optimizer.init({"w": 0.0}))
    >>> -0.15 < updates["w"] < -0.05
    True
    """
    return chain(add_noise(eta, gamma, key, seed=seed), scale_by_learning_rate(learning_rate))
