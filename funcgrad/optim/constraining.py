"""Updates that are kept within bounds: without means, without NaN, without negative results."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from funcgrad import tree
from funcgrad.optim.base import (
    GradientTransformation,
    OptState,
    Params,
    Updates,
    check_state,
    init_empty_state,
    missing_params,
)
from funcgrad.optim.leaves import is_trainable, map_updates, map_with_params

__all__ = ["ZeroNansState", "centralize", "keep_params_nonnegative", "zero_nans"]


def centralize() -> GradientTransformation:
    """Subtract from the gradients of each unit their mean [1]_.

    Returns
    -------
    GradientTransformation
        Without state. A unit is what one index of the first axis selects; vectors stay.

    References
    ----------
    .. [1] H. Yong et al., "Gradient centralization: a new optimization technique for deep neural
       networks", ECCV 2020.

    Examples
    --------
    >>> import numpy as np
    >>> optimizer = centralize()
    >>> optimizer.update(np.array([[1.0, 3.0], [0.0, 4.0]]), optimizer.init({}))[0]
    array([[-1.,  1.],
           [-2.,  2.]])
    """

    def centred(leaf: Any) -> Any:
        axes = tuple(range(1, len(getattr(leaf, "shape", ()))))
        return leaf - np.mean(leaf, axis=axes, keepdims=True) if axes else leaf

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        return map_updates(centred, updates), state

    return GradientTransformation(init_empty_state, update)


def keep_params_nonnegative() -> GradientTransformation:
    """Shorten steps that would make an element of a parameter negative; it becomes zero.

    Returns
    -------
    GradientTransformation
        Needs the parameters in `update`. Its place is at the end of a chain.

    Raises
    ------
    ArgumentError
        From `update`: there are no parameters.

    Examples
    --------
    >>> optimizer = keep_params_nonnegative()
    >>> params = {"w": 1.0, "b": 4.0}
    >>> optimizer.update({"w": -2.0, "b": -2.0}, optimizer.init(params), params)[0]
    {'w': -1.0, 'b': -2.0}
    """

    def kept(leaf: Any, param: Any) -> Any:
        return np.where(param + leaf < 0.0, -param, leaf)

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        if params is None:
            raise missing_params("keep_params_nonnegative")
        return map_with_params(kept, updates, params), state

    return GradientTransformation(init_empty_state, update)


class ZeroNansState(NamedTuple):
    """Whether there was a NaN in the last gradient of each parameter."""

    found_nan: Updates


def zero_nans() -> GradientTransformation:
    """Replace NaN by zero.

    Returns
    -------
    GradientTransformation
        Its state is a `ZeroNansState`, which tells where there were any.

    Examples
    --------
    >>> import numpy as np
    >>> optimizer = zero_nans()
    >>> optimizer.update({"w": np.array([1.0, np.nan])}, optimizer.init({"w": np.zeros(2)}))
    ({'w': array([1., 0.])}, ZeroNansState(found_nan={'w': True}))
    """

    def init(params: Params) -> ZeroNansState:
        return ZeroNansState(tree.map(lambda leaf: False if is_trainable(leaf) else None, params))

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        check_state(state, ZeroNansState, "zero_nans")
        found = tree.map(lambda leaf: _as_bool(np.any(np.isnan(leaf))), updates)
        return map_updates(lambda g: np.where(np.isnan(g), 0, g), updates), ZeroNansState(found)

    return GradientTransformation(init, update)


def _as_bool(value: Any) -> Any:
    return bool(value) if isinstance(value, np.bool_) else value
