"""Clipping: of each element, or of all gradients together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.optim.base import (
    GradientTransformation,
    OptState,
    Params,
    Updates,
    as_hyperparameter,
    init_empty_state,
    map_updates,
)

__all__ = ["clip", "clip_by_global_norm", "global_norm"]


def clip(max_delta: Any) -> GradientTransformation:
    """Limit each element of the updates to ``-max_delta ... max_delta``.

    Parameters
    ----------
    max_delta : float
        The limit; of the real and of the imaginary part of complex numbers.

    Returns
    -------
    GradientTransformation
        Without state.

    Examples
    --------
    >>> import numpy as np
    >>> optimizer = clip(1.0)
    >>> optimizer.update({"w": np.array([-3.0, 0.5])}, optimizer.init({"w": np.zeros(2)}))
    ({'w': array([-1. ,  0.5])}, EmptyState())
    """
    limit = as_hyperparameter(max_delta, "max_delta")

    def clipped(leaf: Any) -> Any:
        if np.iscomplexobj(leaf):
            imag = np.clip(np.imag(leaf), -limit, limit)
            return np.clip(np.real(leaf), -limit, limit) + 1j * imag
        return np.clip(leaf, -limit, limit)

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        return map_updates(clipped, updates), state

    return GradientTransformation(init_empty_state, update)


def global_norm(updates: Updates) -> Any:
    """Return the Euclidean norm of all leaves together.

    Parameters
    ----------
    updates : pytree
        Of arrays and numbers.

    Returns
    -------
    float
        A float64, whatever the dtypes. It does not overflow unless it is too large itself. Its
        gradient at zeros is zero.

    Examples
    --------
    >>> import numpy as np
    >>> global_norm({"w": np.array([3.0, 0.0]), "b": 4.0})
    np.float64(5.0)
    """
    leaves = tree.leaves(updates)
    plain = all(isinstance(leaf, np.ndarray | np.generic | float | complex) for leaf in leaves)
    if plain:
        total = sum([_square(leaf) for leaf in leaves])
        if _SMALL < total < math.inf:
            return np.float64(math.sqrt(total))
        return np.float64(_scaled_norm(leaves))
    total = sum([np.sum(np.square(np.abs(leaf))) for leaf in leaves])
    # The square root has no derivative at 0, where the norm has a subgradient: zeros.
    return np.where(np.equal(total, 0), 0, np.sqrt(np.where(np.equal(total, 0), 1, total)))[()]


# Squares below this may have lost digits, or all of them.
_SMALL = 1e-30


def _square(leaf: Any) -> float:
    """Return the sum of squares; infinite or 0 if it leaves the range of the dtype."""
    # vdot flattens, conjugates and adds in one pass, without a temporary array.
    return float(np.vdot(leaf, leaf).real)


def _scaled_norm(leaves: list[Any]) -> float:
    """Return the norm in a way that neither overflows nor underflows."""
    sizes = [np.abs(leaf).astype(np.float64).ravel() for leaf in leaves]
    largest = max([float(np.max(size, initial=0.0)) for size in sizes], default=0.0)
    if largest == 0 or not math.isfinite(largest):
        return largest
    return largest * math.sqrt(sum([float(np.sum(np.square(size / largest))) for size in sizes]))


def clip_by_global_norm(max_norm: Any) -> GradientTransformation:
    """Scale all updates down together if their norm is larger than a limit.

    Parameters
    ----------
    max_norm : float
        The largest `global_norm` that passes unchanged.

    Returns
    -------
    GradientTransformation
        Without state.

    Examples
    --------
    >>> import numpy as np
    >>> optimizer = clip_by_global_norm(1.0)
    >>> optimizer.update({"w": np.array([3.0, 4.0])}, optimizer.init({"w": np.zeros(2)}))
    ({'w': array([0.6, 0.8])}, EmptyState())
    """
    limit = as_hyperparameter(max_norm, "max_norm")

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        norm = as_hyperparameter(global_norm(updates), "the norm")
        if norm <= limit:
            return updates, state
        factor = limit / norm  # NaN if the norm is: what is broken should show
        return map_updates(lambda leaf: leaf * factor, updates), state

    return GradientTransformation(init_empty_state, update)
