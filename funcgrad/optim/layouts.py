"""All parameters as one vector."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    Updates,
    check_transformation,
    with_extra_args_support,
)
from funcgrad.optim.leaves import is_trainable, like_leaf, matched

__all__ = ["flatten"]


def flatten(inner: GradientTransformation) -> GradientTransformationExtraArgs:
    """Give a transformation all parameters as one vector: faster for many small ones.

    Parameters
    ----------
    inner : GradientTransformation
        What to apply. One that looks at layers sees only one.

    Returns
    -------
    GradientTransformationExtraArgs
        Its state is that of `inner`, for a vector. Where a gradient is None, `inner` sees zeros
        (if `update` has the parameters) and the update is None.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> optimizer = flatten(fg.optim.trace(0.5))
    >>> gradients = {"w": np.ones((2, 1)), "b": 3.0}
    >>> updates, state = optimizer.update(gradients, optimizer.init(gradients))
    >>> updates["b"], state
    (3.0, TraceState(trace=array([3., 1., 1.])))
    """
    check_transformation(inner, "flatten", "argument 0")
    inner = with_extra_args_support(inner)

    def init(params: Params) -> OptState:
        return inner.init(_joined([leaf for leaf in tree.leaves(params) if is_trainable(leaf)]))

    def update(
        updates: Updates, state: OptState, params: Params | None = None, **extra_args: Any
    ) -> tuple[Updates, OptState]:
        weights = None
        if params is None:
            leaves, treedef = tree.flatten(updates)
            filled = leaves
        else:
            leaves, olds, treedef = matched(
                updates,
                params,
                "the gradients do not fit the parameters",
                "the gradients",
                "the parameters",
            )
            filled = [
                np.zeros_like(old) if leaf is None and is_trainable(old) else leaf
                for leaf, old in zip(leaves, olds, strict=True)
            ]
            weights = _joined(
                [old for old, leaf in zip(olds, filled, strict=True) if leaf is not None]
            )
        flat, state = inner.update(
            _joined([leaf for leaf in filled if leaf is not None]), state, weights, **extra_args
        )
        news: list[Any] = []
        start = 0
        for leaf, full in zip(leaves, filled, strict=True):
            end = start if full is None else start + np.size(full)
            part = flat[start:end]
            news.append(None if leaf is None else like_leaf(np.reshape(part, np.shape(leaf)), leaf))
            start = end
        return tree.unflatten(treedef, news), state

    return GradientTransformationExtraArgs(init, update)


def _joined(leaves: list[Any]) -> Any:
    return np.concatenate([np.reshape(leaf, -1) for leaf in leaves]) if leaves else np.zeros(0)
