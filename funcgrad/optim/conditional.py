"""Transformations that are applied at some steps only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from funcgrad import cond, tree
from funcgrad.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    Updates,
    check_state,
    check_transformation,
    with_extra_args_support,
    zeros_like,
)

__all__ = [
    "ApplyIfFiniteState",
    "ConditionallyMaskState",
    "ConditionallyTransformState",
    "all_finite",
    "apply_if_finite",
    "conditionally_mask",
    "conditionally_transform",
]


class ConditionallyTransformState(NamedTuple):
    """The state of the transformation, and the number of steps done."""

    inner_state: OptState
    step: int


def conditionally_transform(
    inner: GradientTransformation,
    should_transform_fn: Callable[..., Any],
    forward_extra_args: bool = False,
) -> GradientTransformationExtraArgs:
    """Apply a transformation at some steps; at others updates pass unchanged.

    Parameters
    ----------
    inner : GradientTransformation
        What to apply.
    should_transform_fn : callable
        Takes the number of steps done and tells whether to apply it.
    forward_extra_args : bool
        Give it the extra arguments of `update`, too.

    Returns
    -------
    GradientTransformationExtraArgs
        Its state is a `ConditionallyTransformState`.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = conditionally_transform(fg.optim.scale(0.5), lambda step: step > 0)
    >>> updates, state = optimizer.update({"w": 1.0}, optimizer.init({"w": 0.0}))
    >>> updates, optimizer.update({"w": 1.0}, state)[0]
    ({'w': 1.0}, {'w': 0.5})
    """
    check_transformation(inner, "conditionally_transform", "argument 0")
    inner = with_extra_args_support(inner)

    def init(params: Params) -> ConditionallyTransformState:
        return ConditionallyTransformState(inner.init(params), 0)

    def update(
        updates: Updates, state: OptState, params: Params | None = None, **extra_args: Any
    ) -> tuple[Updates, OptState]:
        state = check_state(state, ConditionallyTransformState, "conditionally_transform")
        old = state.inner_state
        updates, new = cond(
            should_transform_fn(state.step, **(extra_args if forward_extra_args else {})),
            lambda updates, old, params: inner.update(updates, old, params, **extra_args),
            lambda updates, old, params: (updates, old),
            updates,
            old,
            params,
        )
        return updates, ConditionallyTransformState(new, state.step + 1)

    return GradientTransformationExtraArgs(init, update)


class ConditionallyMaskState(NamedTuple):
    """The number of steps done, and the state of the transformation."""

    step: int
    inner_state: OptState


def conditionally_mask(
    inner: GradientTransformation,
    should_transform_fn: Callable[..., Any],
    forward_extra_args: bool = False,
) -> GradientTransformationExtraArgs:
    """Apply a transformation at some steps; at others updates are zero.

    Parameters
    ----------
    inner, should_transform_fn, forward_extra_args
        As for `conditionally_transform`.

    Returns
    -------
    GradientTransformationExtraArgs
        Its state is a `ConditionallyMaskState`.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = conditionally_mask(fg.optim.scale(0.5), lambda step: step > 0)
    >>> updates, state = optimizer.update({"w": 1.0}, optimizer.init({"w": 0.0}))
    >>> updates, optimizer.update({"w": 1.0}, state)[0]
    ({'w': 0.0}, {'w': 0.5})
    """
    check_transformation(inner, "conditionally_mask", "argument 0")
    inner = with_extra_args_support(inner)

    def init(params: Params) -> ConditionallyMaskState:
        return ConditionallyMaskState(0, inner.init(params))

    def update(
        updates: Updates, state: OptState, params: Params | None = None, **extra_args: Any
    ) -> tuple[Updates, OptState]:
        state = check_state(state, ConditionallyMaskState, "conditionally_mask")
        updates, new = cond(
            should_transform_fn(state.step, **(extra_args if forward_extra_args else {})),
            lambda updates, old, params: inner.update(updates, old, params, **extra_args),
            lambda updates, old, params: (zeros_like(updates), old),
            updates,
            state.inner_state,
            params,
        )
        return updates, ConditionallyMaskState(state.step + 1, new)

    return GradientTransformationExtraArgs(init, update)


class ApplyIfFiniteState(NamedTuple):
    """How many gradients in a row were not finite, and in all; and the optimizer's state."""

    notfinite_count: int
    last_finite: bool
    total_notfinite: int
    inner_state: OptState


def apply_if_finite(
    inner: GradientTransformation, max_consecutive_errors: int
) -> GradientTransformationExtraArgs:
    """Skip steps whose gradients have NaN or infinities, unless there are many in a row.

    Parameters
    ----------
    inner : GradientTransformation
        What to apply.
    max_consecutive_errors : int
        After as many, the next one is not skipped: what is broken should show.

    Returns
    -------
    GradientTransformationExtraArgs
        Its state is an `ApplyIfFiniteState`.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = apply_if_finite(fg.optim.sgd(0.5), max_consecutive_errors=2)
    >>> updates, state = optimizer.update({"w": float("nan")}, optimizer.init({"w": 0.0}))
    >>> updates, state.total_notfinite, optimizer.update({"w": 1.0}, state)[0]
    ({'w': 0.0}, 1, {'w': -0.5})
    """
    check_transformation(inner, "apply_if_finite", "argument 0")
    inner = with_extra_args_support(inner)

    def init(params: Params) -> ApplyIfFiniteState:
        return ApplyIfFiniteState(0, True, 0, inner.init(params))

    def update(
        updates: Updates, state: OptState, params: Params | None = None, **extra_args: Any
    ) -> tuple[Updates, OptState]:
        state = check_state(state, ApplyIfFiniteState, "apply_if_finite")
        finite = all_finite(updates)
        in_a_row, total = cond(
            finite,
            lambda: (0, state.total_notfinite),
            lambda: (state.notfinite_count + 1, state.total_notfinite + 1),
        )
        updates, new = cond(
            finite | (in_a_row > max_consecutive_errors),
            lambda updates, old, params: inner.update(updates, old, params, **extra_args),
            lambda updates, old, params: (zeros_like(updates), old),
            updates,
            state.inner_state,
            params,
        )
        return updates, ApplyIfFiniteState(in_a_row, finite, total, new)

    return GradientTransformationExtraArgs(init, update)


def all_finite(updates: Updates) -> Any:
    """Tell whether all elements of all leaves are finite."""
    finite: Any = True
    for leaf in tree.leaves(updates):
        finite = finite & np.all(np.isfinite(leaf))
    return bool(finite) if isinstance(finite, np.bool_) else finite
