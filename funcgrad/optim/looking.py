"""Lookahead: fast parameters that explore, and slow ones that follow from time to time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from funcgrad import cond
from funcgrad.errors import ArgumentError, describe, user_line
from funcgrad.optim.base import (
    GradientTransformation,
    OptState,
    Params,
    Updates,
    check_state,
    check_transformation,
    zeros_like,
)
from funcgrad.optim.leaves import as_hyperparameter, each_leaf

__all__ = ["LookaheadParams", "LookaheadState", "lookahead"]


class LookaheadState(NamedTuple):
    """The state of the fast optimizer, and the steps since the parameters were made equal."""

    fast_state: OptState
    steps_since_sync: int


class LookaheadParams(NamedTuple):
    """The fast parameters, which are trained, and the slow ones, which are used in the end.

    Attributes
    ----------
    fast, slow : pytree
        Of the same structure.

    Examples
    --------
    >>> LookaheadParams.init_synced({"w": 1.0})
    LookaheadParams(fast={'w': 1.0}, slow={'w': 1.0})
    """

    fast: Params
    slow: Params

    @classmethod
    def init_synced(cls, params: Params) -> LookaheadParams:
        """Return both as they are at the start: equal.

        Parameters
        ----------
        params : pytree
            The parameters.

        Returns
        -------
        LookaheadParams
            The pair.
        """
        return cls(fast=params, slow=params)


def lookahead(
    fast_optimizer: GradientTransformation,
    sync_period: int,
    slow_step_size: Any,
    reset_state: bool = False,
) -> GradientTransformation:
    """Let slow parameters follow fast ones every so many steps, and these start from there [1]_.

    Parameters
    ----------
    fast_optimizer : GradientTransformation
        What moves the fast parameters.
    sync_period : int
        How many steps they do before they are made equal.
    slow_step_size : float
        How far slow parameters go towards fast ones, from 0 to 1.
    reset_state : bool
        Let the fast optimizer begin anew whenever they are made equal.

    Returns
    -------
    GradientTransformation
        Its `update` takes gradients of the fast parameters, and `LookaheadParams` for the
        parameters; its updates are `LookaheadParams` too.

    Raises
    ------
    ArgumentError
        `sync_period` is less than 1; from `update`: the parameters are no `LookaheadParams`.

    References
    ----------
    .. [1] M. Zhang et al., "Lookahead optimizer: k steps forward, 1 step back", NeurIPS 2019.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = lookahead(fg.optim.sgd(1.0), sync_period=2, slow_step_size=0.5)
    >>> params = LookaheadParams.init_synced(0.0)
    >>> state = optimizer.init(params)
    >>> for _ in range(2):
    ...     updates, state = optimizer.update(-1.0, state, params)
    ...     params = fg.optim.apply_updates(params, updates)
    ...     print(params)
    LookaheadParams(fast=1.0, slow=0.0)
    LookaheadParams(fast=1.0, slow=1.0)
    """
    check_transformation(fast_optimizer, "lookahead", "argument 0")
    if sync_period < 1:
        raise ArgumentError(
            f"sync_period must be at least 1, got {sync_period}",
            where=user_line(),
            fix="write sync_period=6, say",
        )
    part = as_hyperparameter(slow_step_size, "slow_step_size")

    def init(params: Params) -> LookaheadState:
        fast = params.fast if isinstance(params, LookaheadParams) else params
        return LookaheadState(fast_optimizer.init(fast), 0)

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[LookaheadParams, OptState]:
        state = check_state(state, LookaheadState, "lookahead")
        if not isinstance(params, LookaheadParams):
            raise ArgumentError(
                f"lookahead needs LookaheadParams, got {describe(params)}",
                where=user_line(),
                fix="make them with LookaheadParams.init_synced(params), and give them to update",
            )
        updates, fast_state = fast_optimizer.update(updates, state.fast_state, params.fast)

        def both(fun: Callable[[Any, Any], Any]) -> Updates:
            """Return updates from the fast update and how far the fast parameter is ahead."""

            def step(u: Any, slow: Any, fast: Any) -> tuple[Any, Any]:
                return fun(u, fast + u - slow), slow

            return each_leaf(step, updates, params.slow, params=params.fast)[0]

        def synced() -> LookaheadParams:
            return LookaheadParams(
                fast=both(lambda u, ahead: u - (1 - part) * ahead),
                slow=both(lambda u, ahead: part * ahead),
            )

        def apart() -> LookaheadParams:
            return LookaheadParams(fast=updates, slow=zeros_like(updates))

        now = state.steps_since_sync == sync_period - 1
        if reset_state:
            fast_state = cond(
                now, lambda state: fast_optimizer.init(params.fast), lambda state: state, fast_state
            )
        new = LookaheadState(fast_state, (state.steps_since_sync + 1) % sync_period)
        return cond(now, synced, apart), new

    return GradientTransformation(init, update)
