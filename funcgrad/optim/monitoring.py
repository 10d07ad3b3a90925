"""Measurements of updates on their way through a chain, kept in the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from funcgrad.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    Updates,
    check_state,
    stateless,
    with_extra_args_support,
)
from funcgrad.optim.combining import chain
from funcgrad.optim.momentum import ema

__all__ = ["MonitorState", "SnapshotState", "measure_with_ema", "monitor", "snapshot"]


class SnapshotState(NamedTuple):
    """The last measurement, by its name."""

    measurement: dict[str, Any]


def snapshot(measure_name: str, measure: Callable[[Updates], Any]) -> GradientTransformation:
    """Keep a measurement of the last updates in the state.

    Parameters
    ----------
    measure_name : str
        What it is called.
    measure : callable
        Takes the updates, at first the parameters, and returns a pytree.

    Returns
    -------
    GradientTransformation
        Changes nothing. Its state is a `SnapshotState`.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = snapshot("norm", fg.optim.global_norm)
    >>> updates, state = optimizer.update([3.0, 4.0], optimizer.init([0.0, 0.0]))
    >>> updates, float(state.measurement["norm"])
    ([3.0, 4.0], 5.0)
    """

    def init(params: Params) -> SnapshotState:
        return SnapshotState({measure_name: measure(params)})

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        return updates, SnapshotState({measure_name: measure(updates)})

    return GradientTransformation(init, update)


class MonitorState(NamedTuple):
    """The last measurements, by their names, and the states of those that have one."""

    measurements: dict[str, Any]
    measure_states: tuple[OptState, ...]


def monitor(
    measures: Mapping[str, GradientTransformation | Callable[[Updates], Any]],
) -> GradientTransformationExtraArgs:
    """Keep measurements of the last updates in the state.

    Parameters
    ----------
    measures : mapping
        What is measured, by names: functions of the updates, or transformations whose updates are
        the measurements, such as `measure_with_ema`.

    Returns
    -------
    GradientTransformationExtraArgs
        Changes nothing. Its state is a `MonitorState`, without measurements at first.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = monitor({"norm": fg.optim.global_norm})
    >>> updates, state = optimizer.update([3.0, 4.0], optimizer.init([0.0, 0.0]))
    >>> updates, float(state.measurements["norm"])
    ([3.0, 4.0], 5.0)
    """
    parts = {name: with_extra_args_support(_measuring(one)) for name, one in measures.items()}

    def init(params: Params) -> MonitorState:
        return MonitorState({}, tuple([part.init(params) for part in parts.values()]))

    def update(
        updates: Updates, state: OptState, params: Params | None = None, **extra_args: Any
    ) -> tuple[Updates, OptState]:
        olds = check_state(state, MonitorState, "monitor").measure_states
        found, news = {}, []
        for (name, part), old in zip(parts.items(), olds, strict=True):
            found[name], new = part.update(updates, old, params, **extra_args)
            news.append(new)
        return updates, MonitorState(found, tuple(news))

    return GradientTransformationExtraArgs(init, update)


def _measuring(measure: Any) -> GradientTransformation:
    if callable(measure):
        return stateless(lambda updates, params: measure(updates))
    return measure  # type: ignore[no-any-return]


def measure_with_ema(
    measure: Callable[[Updates], Any],
    decay: Any,
    debias: bool = True,
    accumulator_dtype: Any = None,
) -> GradientTransformationExtraArgs:
    """Make a running mean of a measurement, for `monitor`.

    Parameters
    ----------
    measure : callable
        Takes the updates and returns a pytree.
    decay, debias, accumulator_dtype
        As for `ema`.

    Returns
    -------
    GradientTransformationExtraArgs
        Its updates are the means.

    Examples
    --------
    >>> import funcgrad as fg
    >>> mean_norm = measure_with_ema(fg.optim.global_norm, decay=0.9, debias=False)
    >>> optimizer = monitor({"norm": mean_norm})
    >>> _, state = optimizer.update([3.0, 4.0], optimizer.init([0.0, 0.0]))
    >>> round(float(state.measurements["norm"]), 6)
    0.5
    """
    means = ema(decay, debias, accumulator_dtype)
    of_measurement = GradientTransformation(
        lambda params: means.init(measure(params)), means.update
    )
    return chain(stateless(lambda updates, params: measure(updates)), of_measurement)
