"""Schedules: numbers that depend on how many steps are done, one stretch at a time.

A schedule is a function from the number of steps done, 0 at the first, to a number. Any callable
will do; these are the usual ones. They take Python's numbers and return them, and work for traced
counts and for arrays of counts. `cycles` has those that are joined from several.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from funcgrad.errors import ArgumentError, describe, user_line
from funcgrad.optim.base import Schedule

__all__ = [
    "constant_schedule",
    "cosine_decay_schedule",
    "exponential_decay",
    "inverse_time_schedule",
    "join_schedules",
    "linear_schedule",
    "piecewise_constant_schedule",
    "polynomial_schedule",
]


def constant_schedule(value: Any) -> Schedule:
    """Make a schedule that always gives the same.

    Parameters
    ----------
    value : float
        What it gives.

    Returns
    -------
    callable
        The schedule.

    Examples
    --------
    >>> constant_schedule(0.1)(1000)
    0.1
    """

    def schedule(count: Any) -> Any:
        return value

    return schedule


def linear_schedule(
    init_value: Any, end_value: Any, transition_steps: int, transition_begin: int = 0
) -> Schedule:
    """Make a schedule that goes from one value to another in a straight line, and stays there.

    Parameters
    ----------
    init_value, end_value : float
        Where it starts and ends.
    transition_steps : int
        How many steps it takes; 0 or less keeps `init_value`.
    transition_begin : int
        When it starts.

    Returns
    -------
    callable
        The schedule.

    Examples
    --------
    >>> schedule = linear_schedule(1.0, 0.0, transition_steps=4)
    >>> [schedule(count) for count in (0, 1, 4, 9)]
    [1.0, 0.75, 0.0, 0.0]
    """
    return polynomial_schedule(init_value, end_value, 1, transition_steps, transition_begin)


def polynomial_schedule(
    init_value: Any,
    end_value: Any,
    power: Any,
    transition_steps: int,
    transition_begin: int = 0,
) -> Schedule:
    """Make a schedule that goes from one value to another along a power of what is left.

    Parameters
    ----------
    init_value, end_value : float
        Where it starts and ends.
    power : float
        1 is a straight line; with more it is fast at first.
    transition_steps : int
        How many steps it takes; 0 or less keeps `init_value`.
    transition_begin : int
        When it starts.

    Returns
    -------
    callable
        ``(init_value - end_value) * (1 - t) ** power + end_value``, where ``t`` goes from 0 to 1.

    Examples
    --------
    >>> schedule = polynomial_schedule(1.0, 0.0, power=2, transition_steps=4)
    >>> [schedule(count) for count in (0, 1, 4, 9)]
    [1.0, 0.5625, 0.0, 0.0]
    """
    if transition_steps <= 0:
        return constant_schedule(init_value)
    begin = max(transition_begin, 0)

    def schedule(count: Any) -> Any:
        left = 1 - clipped(count - begin, 0, transition_steps) / transition_steps
        return (init_value - end_value) * left**power + end_value

    return schedule


def piecewise_constant_schedule(
    init_value: Any, boundaries_and_scales: dict[int, float] | None = None
) -> Schedule:
    """Make a schedule in steps, each a factor times the one before.

    Parameters
    ----------
    init_value : float
        Where it starts.
    boundaries_and_scales : dict, optional
        The factor that comes in at each number of steps done.

    Returns
    -------
    callable
        The schedule.

    Raises
    ------
    ArgumentError
        A factor is negative, or they are in no dict.

    Examples
    --------
    >>> schedule = piecewise_constant_schedule(1.0, {10: 0.5, 20: 0.5})
    >>> [schedule(count) for count in (9, 10, 20)]
    [1.0, 0.5, 0.25]
    """
    pieces = checked_pieces(boundaries_and_scales, "piecewise_constant_schedule")

    def schedule(count: Any) -> Any:
        value = init_value
        for boundary, factor in pieces:
            value = chosen(count < boundary, value, factor * value)
        return value

    return schedule


def exponential_decay(
    init_value: Any,
    transition_steps: int,
    decay_rate: Any,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: Any = None,
) -> Schedule:
    """Make a schedule that is multiplied by the same factor in every equal stretch.

    Parameters
    ----------
    init_value : float
        Where it starts.
    transition_steps : int
        How many steps a stretch has; 0 or less keeps `init_value`.
    decay_rate : float
        The factor; 0 keeps `init_value`.
    transition_begin : int
        When it starts.
    staircase : bool
        Multiply at the end of each stretch, all at once.
    end_value : float, optional
        Where it stops.

    Returns
    -------
    callable
        ``init_value * decay_rate ** ((count - transition_begin) / transition_steps)``.

    Examples
    --------
    >>> schedule = exponential_decay(1.0, transition_steps=10, decay_rate=0.5, end_value=0.3)
    >>> [schedule(count) for count in (0, 10, 20)]
    [1.0, 0.5, 0.3]
    """
    if transition_steps <= 0 or decay_rate == 0:
        return constant_schedule(init_value)
    begin = max(transition_begin, 0)

    def schedule(count: Any) -> Any:
        since = count - begin
        part = since / transition_steps
        if staircase:
            part = math.floor(part) if _is_number(part) else np.floor(part)
        value = chosen(since <= 0, init_value, init_value * decay_rate**part)
        if end_value is None:
            return value
        beyond = value < end_value if decay_rate < 1 else value > end_value
        return chosen(beyond, end_value, value)

    return schedule


def inverse_time_schedule(
    init_value: Any, transition_steps: int, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """Make a schedule that falls as one over the time.

    Parameters
    ----------
    init_value : float
        Where it starts.
    transition_steps : int
        The unit of time, in steps.
    decay_rate : float
        How much the divisor grows in a unit of time.
    staircase : bool
        Count full units of time only.

    Returns
    -------
    callable
        ``init_value / (1 + decay_rate * count / transition_steps)``.

    Notes
    -----
    Optax has no such schedule; older frameworks call it "decay".

    Examples
    --------
    >>> schedule = inverse_time_schedule(1.0, transition_steps=1, decay_rate=0.5)
    >>> [schedule(count) for count in (0, 2, 6)]
    [1.0, 0.5, 0.25]
    """

    def schedule(count: Any) -> Any:
        time = count // transition_steps if staircase else count / transition_steps
        return init_value / (1 + decay_rate * time)

    return schedule


def cosine_decay_schedule(
    init_value: Any, decay_steps: int, alpha: Any = 0.0, exponent: Any = 1.0
) -> Schedule:
    """Make a schedule that falls along half a wave of the cosine.

    Parameters
    ----------
    init_value : float
        Where it starts.
    decay_steps : int
        How many steps it takes.
    alpha : float
        Where it ends, as a part of `init_value`.
    exponent : float
        A power of the wave.

    Returns
    -------
    callable
        The schedule.

    Raises
    ------
    ArgumentError
        `decay_steps` is not positive.

    References
    ----------
    .. [1] I. Loshchilov and F. Hutter, "SGDR: stochastic gradient descent with warm restarts",
       ICLR 2017.

    Examples
    --------
    >>> schedule = cosine_decay_schedule(1.0, decay_steps=10)
    >>> [round(schedule(count), 3) for count in (0, 5, 10, 20)]
    [1.0, 0.5, 0.0, 0.0]
    """
    if not decay_steps > 0:
        raise ArgumentError(
            f"cosine_decay_schedule needs a positive decay_steps, got {decay_steps}",
            where=user_line(),
            fix="write how many steps the decay takes: decay_steps=1000, say",
        )

    def schedule(count: Any) -> Any:
        angle = math.pi * chosen(count < decay_steps, count, decay_steps) / decay_steps
        wave = 0.5 * (1 + (math.cos(angle) if _is_number(angle) else np.cos(angle)))
        return init_value * ((1 - alpha) * wave**exponent + alpha)

    return schedule


def join_schedules(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """Make a schedule of several, one after another.

    Parameters
    ----------
    schedules : sequence of callable
        Each is given the number of steps since it took over.
    boundaries : sequence of int
        When the second takes over, the third, and so on.

    Returns
    -------
    callable
        The schedule.

    Raises
    ------
    ArgumentError
        There is no schedule, or not one boundary between each and the next.

    Examples
    --------
    >>> warmup, rest = linear_schedule(0.0, 1.0, 4), constant_schedule(0.5)
    >>> [join_schedules([warmup, rest], [4])(count) for count in (0, 2, 4, 5)]
    [0.0, 0.5, 0.5, 0.5]
    """
    if len(schedules) != len(boundaries) + 1:
        raise ArgumentError(
            f"join_schedules got {len(schedules)} schedules and {len(boundaries)} boundaries",
            where=user_line(),
            fix="give one boundary fewer than schedules: join_schedules([warmup, rest], [100])",
        )
    first, *others = schedules

    def schedule(count: Any) -> Any:
        value = first(count)
        for boundary, after in zip(boundaries, others, strict=False):
            value = chosen(count < boundary, value, after(count - boundary))
        return value

    return schedule


# Numbers, arrays and traced values alike


def _is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float


def chosen(pred: Any, yes: Any, no: Any) -> Any:
    """Return one or the other, element by element where there are several."""
    return (yes if pred else no) if isinstance(pred, bool | np.bool_) else np.where(pred, yes, no)


def clipped(value: Any, low: Any, high: Any) -> Any:
    """Return the value, or the limit that it is beyond."""
    return min(max(value, low), high) if _is_number(value) else np.clip(value, low, high)


def checked_pieces(scales: Mapping[int, Any] | None, name: str) -> list[tuple[int, Any]]:
    """Return the numbers of steps, in order, with their factors, which are not negative."""
    if scales is not None and not isinstance(scales, Mapping):
        raise ArgumentError(
            f"{name} takes factors by the number of steps, not {describe(scales)}",
            where=user_line(),
            fix="write {1000: 0.1}, say",
        )
    pieces = sorted((scales or {}).items())
    for _, factor in pieces:
        if not factor >= 0:
            raise ArgumentError(
                f"{name} takes factors that are not negative, got {factor}",
                where=user_line(),
                fix="write by what each value is to be multiplied: {1000: 0.1}, say",
            )
    return pieces
