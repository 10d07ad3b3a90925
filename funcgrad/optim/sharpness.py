"""Sharpness-aware minimization: gradients where the function is worst nearby."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from funcgrad import cond, tree
from funcgrad.errors import ArgumentError, user_line
from funcgrad.optim.applying import apply_updates
from funcgrad.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    Updates,
    check_state,
    check_transformation,
    missing_params,
    needing_more,
)
from funcgrad.optim.leaves import each_leaf, is_trainable
from funcgrad.optim.norms import normalize_by_update_norm

__all__ = ["SAMState", "normalize", "sam"]


def normalize() -> GradientTransformation:
    """Scale all updates so that their norm is 1.

    Returns
    -------
    GradientTransformation
        Without state.

    Notes
    -----
    In Optax it is in ``contrib``.

    Examples
    --------
    >>> optimizer = normalize()
    >>> optimizer.update({"w": 3.0, "b": 4.0}, optimizer.init({"w": 1.0, "b": 1.0}))[0]
    {'w': 0.6, 'b': 0.8}
    """
    return normalize_by_update_norm(1.0, 0.0)


class SAMState(NamedTuple):
    """The steps since the parameters were at their place, both states, and that place."""

    steps_since_sync: int
    opt_state: OptState
    adv_state: OptState
    cache: Params | None


def sam(
    optimizer: GradientTransformation,
    adv_optimizer: GradientTransformation,
    sync_period: int = 2,
    reset_state: bool = True,
    opaque_mode: bool = False,
    batch_axis_name: str | None = None,
) -> GradientTransformationExtraArgs:
    """Take steps by gradients from where an adversary has moved the parameters to [1]_.

    Parameters
    ----------
    optimizer : GradientTransformation
        What takes the steps.
    adv_optimizer : GradientTransformation
        What moves the parameters uphill, against the sign of its updates:
        ``chain(normalize(), sgd(0.05))``, say.
    sync_period : int
        How many updates make a step; the last is the step itself.
    reset_state : bool
        Let the adversary begin anew after every step.
    opaque_mode : bool
        Do all of it in one update, which then needs ``grad_fn(params, i)`` as a keyword argument.
        Otherwise every second update, with a `sync_period` of 2, is the step, and in between the
        parameters are at the adversary's place.
    batch_axis_name : None
        Only there because Optax has it.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer. Its `update` needs the parameters.

    Raises
    ------
    ArgumentError
        `sync_period` is less than 1, or `batch_axis_name` is given; from `update`: something that
        it needs is missing.

    Notes
    -----
    In Optax it is in ``contrib``.

    References
    ----------
    .. [1] P. Foret, A. Kleiner, H. Mobahi and B. Neyshabur, "Sharpness-aware minimization for
       efficiently improving generalization", ICLR 2021.

    Examples
    --------
    >>> import funcgrad as fg
    >>> gradient = fg.grad(lambda w: w**2)
    >>> optimizer = sam(fg.optim.sgd(0.25), fg.optim.chain(normalize(), fg.optim.sgd(0.5)))
    >>> w, state = 2.0, optimizer.init(2.0)
    >>> for _ in range(2):
    ...     updates, state = optimizer.update(gradient(w), state, w)
    ...     w = fg.optim.apply_updates(w, updates)
    ...     print(w)
    2.5
    0.75
    """
    check_transformation(optimizer, "sam", "argument 0")
    check_transformation(adv_optimizer, "sam", "argument 1")
    if sync_period < 1:
        raise ArgumentError(
            f"sync_period must be at least 1, got {sync_period}",
            where=user_line(),
            fix="write sync_period=2",
        )
    if batch_axis_name is not None:
        raise ArgumentError(
            "there are no named axes to average gradients over",
            where=user_line(),
            fix="leave batch_axis_name out, and take the mean in grad_fn",
        )

    def init(params: Params) -> SAMState:
        cache = None if opaque_mode else tree.map(lambda p: p if is_trainable(p) else None, params)
        return SAMState(0, optimizer.init(params), adv_optimizer.init(params), cache)

    def uphill(updates: Updates, state: OptState, params: Params) -> tuple[Updates, OptState]:
        updates, state = adv_optimizer.update(updates, state, params)
        return tree.map(lambda u: -u, updates), state

    def step_by_step(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        *,
        grad_fn: Callable[[Params, int], Updates] | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, OptState]:
        state = check_state(state, SAMState, "sam")
        if params is None:
            raise missing_params("sam")
        done = state.steps_since_sync

        def away(updates: Updates, state: SAMState, params: Params) -> tuple[Updates, Any]:
            updates, adv_state = uphill(updates, state.adv_state, params)
            return updates, (state.opt_state, adv_state)

        def back(updates: Updates, state: SAMState, params: Params) -> tuple[Updates, Any]:
            updates, opt_state = optimizer.update(updates, state.opt_state, state.cache)
            # From where the parameters are, by way of where they were.
            updates, _ = each_leaf(
                lambda u, c, p: (c - p + u, c), updates, state.cache, params=params
            )
            adv_state = adv_optimizer.init(params) if reset_state else state.adv_state
            return updates, (opt_state, adv_state)

        updates, (opt_state, adv_state) = cond(
            done == sync_period - 1, back, away, updates, state, params
        )

        def here() -> Params:
            return tree.map(lambda p: p if is_trainable(p) else None, params)

        cache = cond(done == 0, here, lambda: state.cache)
        return updates, SAMState((done + 1) % sync_period, opt_state, adv_state, cache)

    def at_once(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        *,
        grad_fn: Callable[[Params, int], Updates] | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, OptState]:
        state = check_state(state, SAMState, "sam")
        if params is None:
            raise missing_params("sam")
        if grad_fn is None:
            raise ArgumentError(
                "sam in opaque_mode needs a function for gradients",
                where=user_line(),
                fix="write optimizer.update(gradients, state, params, grad_fn=grad_fn)",
            )
        place, adv_state = params, state.adv_state
        for i in range(sync_period - 1):
            updates, adv_state = uphill(updates, adv_state, place)
            place = apply_updates(place, updates)
            updates = grad_fn(place, i)
        if reset_state:
            adv_state = adv_optimizer.init(params)
        updates, opt_state = optimizer.update(updates, state.opt_state, params)
        return updates, SAMState(0, opt_state, adv_state, None)

    return needing_more(init, at_once if opaque_mode else step_by_step)
