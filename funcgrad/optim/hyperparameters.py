"""Hyperparameters in the state, where they can be read, and changed between steps."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from funcgrad.errors import ArgumentError, user_line
from funcgrad.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    Schedule,
    Updates,
    check_state,
    with_extra_args_support,
)
from funcgrad.optim.leaves import rate_at

__all__ = [
    "InjectStatefulHyperparamsState",
    "WrappedSchedule",
    "WrappedScheduleState",
    "inject_hyperparams",
    "inject_stateful_hyperparams",
]


class WrappedScheduleState(NamedTuple):
    """The number of steps done."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here


class WrappedSchedule:
    """A schedule with a state: how many steps are done.

    Any other object that has ``init()``, ``update(state, **extra_args)`` and is called with a state
    can be a schedule for `inject_hyperparams`, too.
    """

    def __init__(self, schedule_fn: Schedule) -> None:
        self.schedule_fn = schedule_fn

    def init(self) -> WrappedScheduleState:
        """Return the state of no steps."""
        return WrappedScheduleState(0)

    def update(self, state: WrappedScheduleState, **extra_args: Any) -> WrappedScheduleState:
        """Return the next state."""
        return WrappedScheduleState(state.count + 1)

    def __call__(self, state: WrappedScheduleState, **extra_args: Any) -> Any:
        """Return the value."""
        return rate_at(self.schedule_fn, state.count)


class InjectStatefulHyperparamsState(NamedTuple):
    """The number of steps done, the hyperparameters in force, and what they and the steps need."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here
    hyperparams: dict[str, Any]
    hyperparams_states: dict[str, Any]
    inner_state: OptState


def inject_hyperparams(
    inner_factory: Callable[..., GradientTransformation],
    static_args: str | Iterable[str] = (),
    hyperparam_dtype: Any = None,
) -> Callable[..., GradientTransformationExtraArgs]:
    """Make a function that makes optimizers keep their hyperparameters in the state.

    Parameters
    ----------
    inner_factory : callable
        Makes the optimizer: `adam`, say.
    static_args : str or iterable of str
        Arguments that are not to be in the state; functions that are no schedules must be here.
    hyperparam_dtype : dtype, optional
        For numbers in the state; Python's numbers by default.

    Returns
    -------
    callable
        Takes the arguments of `inner_factory`. Numbers become ``state.hyperparams``, from where
        each update takes them; functions are schedules, and what they give is found there.

    Raises
    ------
    ArgumentError
        `static_args` has a name that is no argument of `inner_factory`.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = inject_hyperparams(fg.optim.sgd)(learning_rate=0.1)
    >>> state = optimizer.init({"w": 0.0})
    >>> state.hyperparams["learning_rate"] = 0.5
    >>> updates, state = optimizer.update({"w": 1.0}, state)
    >>> updates, state.hyperparams
    ({'w': -0.5}, {'learning_rate': 0.5})
    """
    static = {static_args} if isinstance(static_args, str) else set(static_args)
    signature = inspect.signature(inner_factory)
    unknown = sorted(static - signature.parameters.keys())
    if unknown:
        raise ArgumentError(
            f"static_args has {unknown[0]!r}, which is no argument of "
            f"{getattr(inner_factory, '__name__', inner_factory)}",
            where=user_line(),
            fix=f"its arguments are: {', '.join(signature.parameters)}",
        )

    @functools.wraps(inner_factory)
    def made(*args: Any, **kwargs: Any) -> GradientTransformationExtraArgs:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        schedules: dict[str, Any] = {}
        numbers: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            if name in static or isinstance(value, bool):
                others[name] = value
            elif callable(value):
                schedules[name] = value if _has_state(value) else WrappedSchedule(value)
            elif isinstance(value, int | float | np.generic) or hasattr(value, "dtype"):
                numbers[name] = value
            else:
                others[name] = value
        return _injected(inner_factory, schedules, numbers, others, hyperparam_dtype)

    return made


def _has_state(schedule: Any) -> bool:
    return hasattr(schedule, "init") and hasattr(schedule, "update")


def _injected(
    factory: Callable[..., GradientTransformation],
    schedules: dict[str, Any],
    numbers: dict[str, Any],
    others: dict[str, Any],
    dtype: Any,
) -> GradientTransformationExtraArgs:
    def converted(value: Any) -> Any:
        plain = isinstance(value, float | np.floating)
        return np.asarray(value, dtype) if plain and dtype is not None else value

    def init(params: Params) -> InjectStatefulHyperparamsState:
        states = {name: schedule.init() for name, schedule in schedules.items()}
        values = {name: converted(value) for name, value in numbers.items()}
        for name, schedule in schedules.items():
            values[name] = converted(schedule(states[name]))
        inner = factory(**others, **values).init(params)
        return InjectStatefulHyperparamsState(0, values, states, inner)

    def update(
        updates: Updates, state: OptState, params: Params | None = None, **extra_args: Any
    ) -> tuple[Updates, OptState]:
        state = check_state(state, InjectStatefulHyperparamsState, "inject_hyperparams")
        olds = state.hyperparams_states
        values = {name: converted(value) for name, value in state.hyperparams.items()}
        states = {}
        for name, schedule in schedules.items():
            values[name] = converted(schedule(olds[name], **extra_args))
            states[name] = schedule.update(olds[name], **extra_args)
        inner = with_extra_args_support(factory(**others, **values))
        updates, inner_state = inner.update(updates, state.inner_state, params, **extra_args)
        return updates, InjectStatefulHyperparamsState(state.count + 1, values, states, inner_state)

    return GradientTransformationExtraArgs(init, update)


def inject_stateful_hyperparams(
    inner_factory: Callable[..., GradientTransformation],
    static_args: str | Iterable[str] = (),
    hyperparam_dtype: Any = None,
) -> Callable[..., GradientTransformationExtraArgs]:
    """Do what `inject_hyperparams` does, under its older name.

    Parameters
    ----------
    inner_factory, static_args, hyperparam_dtype
        As for `inject_hyperparams`.

    Returns
    -------
    callable
        Takes the arguments of `inner_factory`.

    Warns
    -----
    DeprecationWarning
        Always, as in Optax.

    Examples
    --------
    >>> import warnings
    >>> import funcgrad as fg
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     optimizer = inject_stateful_hyperparams(fg.optim.sgd)(0.1)
    >>> optimizer.init({"w": 0.0}).hyperparams
    {'learning_rate': 0.1}
    """
    warnings.warn(
        "inject_stateful_hyperparams is deprecated: write inject_hyperparams",
        DeprecationWarning,
        stacklevel=2,
    )
    return inject_hyperparams(inner_factory, static_args, hyperparam_dtype)
