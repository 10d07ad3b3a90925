"""Gradients of several small batches for one step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from funcgrad import cond, tree
from funcgrad.errors import ArgumentError, describe, user_line
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
from funcgrad.optim.leaves import abs_square, each_leaf, like_leaf, zeros_for

__all__ = [
    "ApplyEvery",
    "MultiSteps",
    "MultiStepsState",
    "apply_every",
    "skip_large_updates",
    "skip_not_finite",
]


class ApplyEvery(NamedTuple):
    """How many gradients were summed up, and the sums."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here
    grad_acc: Updates


def apply_every(k: int = 1) -> GradientTransformation:
    """Sum updates up, and let the sum pass every so many steps; in between they are zero.

    Parameters
    ----------
    k : int
        How many are summed up.

    Returns
    -------
    GradientTransformation
        Its state is an `ApplyEvery`.

    See Also
    --------
    MultiSteps : which does not step the optimizer in between, and takes the mean.

    Examples
    --------
    >>> optimizer = apply_every(2)
    >>> updates, state = optimizer.update({"w": 1.0}, optimizer.init({"w": 0.0}))
    >>> updates, optimizer.update({"w": 2.0}, state)[0]
    ({'w': 0.0}, {'w': 3.0})
    """

    def init(params: Params) -> ApplyEvery:
        return ApplyEvery(0, zeros_for(params))

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(state, ApplyEvery, "apply_every")
        done = state.count % k

        def step(g: Any, total: Any) -> tuple[Any, Any]:
            total = cond(done != 0, lambda: total + g, lambda: g)
            return cond(done == k - 1, lambda: total, lambda: zeros_like(total)), total

        updates, sums = each_leaf(step, updates, state.grad_acc)
        return updates, ApplyEvery((state.count + 1) % k, sums)

    return GradientTransformation(init, update)


def skip_not_finite(
    updates: Updates, gradient_step: Any, params: Params | None
) -> tuple[Any, dict[str, Any]]:
    """Tell `MultiSteps` to skip gradients that have NaN or infinities.

    Parameters
    ----------
    updates : pytree
        The gradients.
    gradient_step, params
        Not looked at.

    Returns
    -------
    should_skip : bool
        Whether an element is not finite.
    skip_state : dict
        ``should_skip`` and ``num_not_finite``.

    Examples
    --------
    >>> skip_not_finite({"w": float("nan"), "b": 1.0}, 0, None)
    (True, {'should_skip': True, 'num_not_finite': 1})
    """
    count: Any = 0
    for leaf in tree.leaves(updates):
        count = count + np.sum(np.logical_not(np.isfinite(leaf)))
    count = _plain(count)
    return count > 0, {"should_skip": count > 0, "num_not_finite": count}


def skip_large_updates(
    updates: Updates, gradient_step: Any, params: Params | None, max_squared_norm: Any
) -> tuple[Any, dict[str, Any]]:
    """Tell `MultiSteps` to skip gradients that are too large, or NaN.

    Parameters
    ----------
    updates : pytree
        The gradients.
    gradient_step, params
        Not looked at.
    max_squared_norm : float
        The limit for the squared norm of all. Give it with ``functools.partial``.

    Returns
    -------
    should_skip : bool
        Whether the squared norm is not below the limit.
    skip_state : dict
        ``should_skip`` and ``norm_squared``.

    Examples
    --------
    >>> skip_large_updates({"w": 3.0, "b": 4.0}, 0, None, max_squared_norm=9.0)
    (True, {'should_skip': True, 'norm_squared': 25.0})
    """
    square: Any = 0.0
    for leaf in tree.leaves(updates):
        square = square + np.sum(abs_square(leaf))
    square = _plain(square)
    skip = _plain(np.logical_not(square < max_squared_norm))
    return skip, {"should_skip": skip, "norm_squared": square}


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _never(updates: Updates, gradient_step: Any, params: Params | None) -> tuple[bool, tuple[()]]:
    return False, ()


class MultiStepsState(NamedTuple):
    """How far the accumulation is, the steps done, the optimizer's state, and the sums."""

    mini_step: int
    gradient_step: int
    inner_opt_state: OptState
    acc_grads: Updates
    skip_state: Any = ()


class MultiSteps:
    """An optimizer that takes a step every so many gradients, by their mean.

    Parameters
    ----------
    opt : GradientTransformation
        What takes the steps.
    every_k_schedule : int or callable
        How many gradients make a step; a callable is given the number of steps done.
    use_grad_mean : bool
        Take the mean of the gradients; False takes their sum.
    should_skip_update_fn : callable, optional
        ``(updates, gradient_step, params) -> (should_skip, skip_state)`` tells which gradients are
        left out, such as `skip_not_finite`.
    accumulator_dtype : dtype, optional
        To keep means or sums in; that of the parameters by default (Optax: float32).

    Raises
    ------
    ArgumentError
        `opt` is no transformation, or `every_k_schedule` no count.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = MultiSteps(fg.optim.sgd(1.0), every_k_schedule=2)
    >>> state, steps = optimizer.init(0.0), []
    >>> for gradient in [1.0, 3.0, 5.0, 7.0]:
    ...     update, state = optimizer.update(gradient, state)
    ...     steps.append(update)
    >>> steps, state.gradient_step, optimizer.has_updated(state)
    ([0.0, -2.0, 0.0, -6.0], 2, True)
    """

    def __init__(
        self,
        opt: GradientTransformation,
        every_k_schedule: int | Callable[[Any], Any],
        use_grad_mean: bool = True,
        should_skip_update_fn: Callable[..., tuple[Any, Any]] | None = None,
        accumulator_dtype: Any = None,
    ) -> None:
        check_transformation(opt, "MultiSteps", "argument 0")
        if not callable(every_k_schedule) and not every_k_schedule >= 1:
            raise ArgumentError(
                f"MultiSteps takes a step every so many gradients, not every {every_k_schedule!r}",
                where=user_line(),
                fix="write every_k_schedule=4, say",
            )
        self._opt = with_extra_args_support(opt)
        self._every_k = every_k_schedule
        self._use_grad_mean = use_grad_mean
        self._should_skip = should_skip_update_fn or _never
        self._dtype = accumulator_dtype

    @property
    def inner_opt(self) -> GradientTransformationExtraArgs:
        """The optimizer that takes the steps."""
        return self._opt

    def init(self, params: Params) -> MultiStepsState:
        """Make the state.

        Parameters
        ----------
        params : pytree
            The parameters.

        Returns
        -------
        MultiStepsState
            Of no gradients yet.
        """
        _, skip_state = self._should_skip(zeros_for(params), 0, params)
        sums = zeros_for(params, self._dtype)
        return MultiStepsState(0, 0, self._opt.init(params), sums, skip_state)

    def update(
        self,
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, MultiStepsState]:
        """Take one more gradient in.

        Parameters
        ----------
        updates : pytree
            The gradients of one batch.
        state : MultiStepsState
            What `init` or the last `update` returned.
        params : pytree, optional
            The parameters.
        **extra_args
            For the optimizer.

        Returns
        -------
        updates : pytree
            Those of the optimizer when there are enough gradients, else zeros.
        state : MultiStepsState
            The next one.
        """
        state = check_state(state, MultiStepsState, "MultiSteps")
        skip, skip_state = self._should_skip(updates, state.gradient_step, params)
        if getattr(skip, "shape", ()) != ():
            raise ArgumentError(
                f"should_skip_update_fn must return one bool, got {describe(skip)}",
                where=user_line(),
                fix="end it with np.any(...) or np.all(...)",
            )
        state = state._replace(skip_state=skip_state)
        result: tuple[Updates, MultiStepsState] = cond(
            skip,
            lambda updates, state, params: (zeros_like(updates), state),
            lambda updates, state, params: self._taken(updates, state, params, extra_args),
            updates,
            state,
            params,
        )
        return result

    def _taken(
        self,
        updates: Updates,
        state: MultiStepsState,
        params: Params | None,
        extra_args: dict[str, Any],
    ) -> tuple[Updates, MultiStepsState]:
        every = self._every_k(state.gradient_step) if callable(self._every_k) else self._every_k
        done = state.mini_step + 1

        def step(g: Any, total: Any) -> tuple[Any, Any]:
            total = total + (g - total) / done if self._use_grad_mean else g + total
            return total, total

        gradients, sums = each_leaf(step, updates, state.acc_grads)

        def emit(gradients: Updates, sums: Updates, state: MultiStepsState) -> tuple[Any, ...]:
            steps, inner = self._opt.update(gradients, state.inner_opt_state, params, **extra_args)
            new = state._replace(
                mini_step=state.mini_step * 0,
                gradient_step=state.gradient_step + 1,
                inner_opt_state=inner,
                acc_grads=tree.map(lambda total: like_leaf(total * 0, total), sums),
            )
            return steps, new

        def wait(gradients: Updates, sums: Updates, state: MultiStepsState) -> tuple[Any, ...]:
            return zeros_like(updates), state._replace(mini_step=done, acc_grads=sums)

        new: tuple[Updates, MultiStepsState] = cond(
            done >= every, emit, wait, gradients, sums, state
        )
        return new

    def has_updated(self, state: OptState) -> Any:
        """Tell whether the last gradient completed a step.

        Parameters
        ----------
        state : MultiStepsState
            What `update` returned.

        Returns
        -------
        bool
            Whether it did.
        """
        return _plain((state.mini_step == 0) & (state.gradient_step > 0))

    def gradient_transformation(self) -> GradientTransformationExtraArgs:
        """Return the pair of functions.

        Returns
        -------
        GradientTransformationExtraArgs
            Its functions are `init` and `update`.
        """
        return GradientTransformationExtraArgs(self.init, self.update)
