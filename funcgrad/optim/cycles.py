"""Schedules of several stretches: warm-ups, cycles and restarts.

One for which Optax has no name is here too: the warm-up of the first Transformers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from funcgrad.errors import ArgumentError, user_line
from funcgrad.optim.base import Schedule
from funcgrad.optim.schedules import (
    checked_pieces,
    chosen,
    cosine_decay_schedule,
    exponential_decay,
    join_schedules,
    linear_schedule,
)

__all__ = [
    "cosine_onecycle_schedule",
    "linear_onecycle_schedule",
    "piecewise_interpolate_schedule",
    "sgdr_schedule",
    "warmup_constant_schedule",
    "warmup_cosine_decay_schedule",
    "warmup_exponential_decay_schedule",
    "warmup_inverse_sqrt_schedule",
]


def warmup_constant_schedule(init_value: Any, peak_value: Any, warmup_steps: int) -> Schedule:
    """Make a schedule that rises in a straight line and then stays.

    Parameters
    ----------
    init_value, peak_value : float
        Where it starts, and where it stays.
    warmup_steps : int
        How many steps it rises.

    Returns
    -------
    callable
        The schedule.

    Examples
    --------
    >>> schedule = warmup_constant_schedule(0.0, 1.0, warmup_steps=2)
    >>> [schedule(count) for count in range(4)]
    [0.0, 0.5, 1.0, 1.0]
    """
    return linear_schedule(init_value, peak_value, warmup_steps)


def warmup_cosine_decay_schedule(
    init_value: Any,
    peak_value: Any,
    warmup_steps: int,
    decay_steps: int,
    end_value: Any = 0.0,
    exponent: Any = 1.0,
) -> Schedule:
    """Make a schedule that rises in a straight line and falls along the cosine.

    Parameters
    ----------
    init_value, peak_value, end_value : float
        Where it starts, turns and ends.
    warmup_steps : int
        How many steps it rises.
    decay_steps : int
        How many steps it takes in all, those of the warm-up included.
    exponent : float
        A power of the wave.

    Returns
    -------
    callable
        The schedule.

    Raises
    ------
    ArgumentError
        `decay_steps` is not larger than `warmup_steps`.

    Examples
    --------
    >>> schedule = warmup_cosine_decay_schedule(0.0, 1.0, warmup_steps=2, decay_steps=6)
    >>> [round(schedule(count), 3) for count in range(7)]
    [0.0, 0.5, 1.0, 0.854, 0.5, 0.146, 0.0]
    """
    alpha = 0.0 if peak_value == 0 else end_value / peak_value
    rest = cosine_decay_schedule(peak_value, decay_steps - warmup_steps, alpha, exponent)
    return join_schedules(
        [linear_schedule(init_value, peak_value, warmup_steps), rest], [warmup_steps]
    )


def warmup_exponential_decay_schedule(
    init_value: Any,
    peak_value: Any,
    warmup_steps: int,
    transition_steps: int,
    decay_rate: Any,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: Any = None,
) -> Schedule:
    """Make a schedule that rises in a straight line and decays exponentially.

    Parameters
    ----------
    init_value, peak_value : float
        Where it starts, and where it turns.
    warmup_steps : int
        How many steps it rises.
    transition_steps, decay_rate, transition_begin, staircase, end_value
        As for `exponential_decay`, counted from the end of the warm-up.

    Returns
    -------
    callable
        The schedule.

    Examples
    --------
    >>> schedule = warmup_exponential_decay_schedule(0.0, 1.0, 2, 1, 0.5)
    >>> [schedule(count) for count in range(5)]
    [0.0, 0.5, 1.0, 0.5, 0.25]
    """
    rest = exponential_decay(
        peak_value, transition_steps, decay_rate, transition_begin, staircase, end_value
    )
    return join_schedules(
        [linear_schedule(init_value, peak_value, warmup_steps), rest], [warmup_steps]
    )


def warmup_inverse_sqrt_schedule(
    peak_value: Any, warmup_steps: int, init_value: Any = 0.0
) -> Schedule:
    """Make a schedule that rises in a straight line and falls as one over the square root [1]_.

    Parameters
    ----------
    peak_value : float
        Where it turns.
    warmup_steps : int
        How many steps it rises; at least 1.
    init_value : float
        Where it starts.

    Returns
    -------
    callable
        From the turn on ``peak_value * sqrt(warmup_steps / count)``.

    Notes
    -----
    Optax has no such schedule. That of the paper for a width ``d`` has the peak
    ``1 / sqrt(d * warmup_steps)``.

    References
    ----------
    .. [1] A. Vaswani et al., "Attention is all you need", NeurIPS 2017.

    Examples
    --------
    >>> schedule = warmup_inverse_sqrt_schedule(1.0, warmup_steps=4)
    >>> [schedule(count) for count in (0, 2, 4, 16)]
    [0.0, 0.5, 1.0, 0.5]
    """
    if not warmup_steps > 0:
        raise ArgumentError(
            f"warmup_inverse_sqrt_schedule needs a positive warmup_steps, got {warmup_steps}",
            where=user_line(),
            fix="write how many steps the warm-up takes: warmup_steps=4000, say",
        )

    def falling(since: Any) -> Any:
        # Before the turn this is not taken, but computed all the same for traced counts.
        count = warmup_steps + chosen(since < 0, 0, since)
        return peak_value * (warmup_steps / count) ** 0.5

    return join_schedules(
        [linear_schedule(init_value, peak_value, warmup_steps), falling], [warmup_steps]
    )


def piecewise_interpolate_schedule(
    interpolate_type: str,
    init_value: Any,
    boundaries_and_scales: dict[int, float] | None = None,
) -> Schedule:
    """Make a schedule that goes from one value to the next, each a factor times the one before.

    Parameters
    ----------
    interpolate_type : {"linear", "cosine"}
        In straight lines, or in half waves of the cosine.
    init_value : float
        Where it starts.
    boundaries_and_scales : dict, optional
        The factor that is reached at each number of steps done.

    Returns
    -------
    callable
        The schedule.

    Raises
    ------
    ArgumentError
        A factor is negative, or there is no such interpolation.

    Examples
    --------
    >>> schedule = piecewise_interpolate_schedule("linear", 1.0, {2: 3.0, 4: 0.0})
    >>> [schedule(count) for count in range(6)]
    [1.0, 2.0, 3.0, 1.5, 0.0, 0.0]
    """
    if interpolate_type not in _BETWEEN:
        raise ArgumentError(
            f"interpolate_type must be 'linear' or 'cosine', got {interpolate_type!r}",
            where=user_line(),
            fix="write interpolate_type='linear'",
        )
    between = _BETWEEN[interpolate_type]
    pieces = checked_pieces(boundaries_and_scales, "piecewise_interpolate_schedule")

    def schedule(count: Any) -> Any:
        value, last, start = init_value, init_value, 0
        for boundary, factor in pieces:
            after = factor * last
            here = between(last, after, (count - start) / max(boundary - start, 1))
            value = chosen(count >= start, chosen(count < boundary, here, after), value)
            last, start = after, boundary
        return value

    return schedule


def _straight(start: Any, end: Any, part: Any) -> Any:
    return start + (end - start) * part


def _wave(start: Any, end: Any, part: Any) -> Any:
    return end + (start - end) / 2.0 * (np.cos(np.pi * part) + 1)


_BETWEEN = {"linear": _straight, "cosine": _wave}


def linear_onecycle_schedule(
    transition_steps: int,
    peak_value: Any,
    pct_start: float = 0.3,
    pct_final: float = 0.85,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """Make a schedule that rises once and falls, then falls further, in straight lines.

    Parameters
    ----------
    transition_steps : int
        How many steps it takes in all.
    peak_value : float
        Where it turns.
    pct_start, pct_final : float
        The parts of all steps at which it turns, and at which it is back where it started.
    div_factor : float
        It starts at ``peak_value / div_factor``,
    final_div_factor : float
        and ends at this part of that.

    Returns
    -------
    callable
        The schedule.

    Raises
    ------
    ArgumentError
        `transition_steps` is not positive.

    References
    ----------
    .. [1] L. N. Smith and N. Topin, "Super-convergence: very fast training of neural networks using
       large learning rates", 2017.

    Examples
    --------
    >>> schedule = linear_onecycle_schedule(100, 1.0, div_factor=10.0)
    >>> [float(schedule(count)) for count in (0, 30, 85, 100)]
    [0.1, 1.0, 0.1, 1e-05]
    """
    _check_steps(transition_steps, "linear_onecycle_schedule")
    return piecewise_interpolate_schedule(
        "linear",
        peak_value / div_factor,
        {
            int(pct_start * transition_steps): div_factor,
            int(pct_final * transition_steps): 1.0 / div_factor,
            transition_steps: 1.0 / final_div_factor,
        },
    )


def cosine_onecycle_schedule(
    transition_steps: int,
    peak_value: Any,
    pct_start: float = 0.3,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """Make a schedule that rises once and falls, in half waves of the cosine.

    Parameters
    ----------
    transition_steps : int
        How many steps it takes in all.
    peak_value : float
        Where it turns.
    pct_start : float
        The part of all steps at which it turns.
    div_factor : float
        It starts at ``peak_value / div_factor``,
    final_div_factor : float
        and ends at this part of that.

    Returns
    -------
    callable
        The schedule.

    Raises
    ------
    ArgumentError
        `transition_steps` is not positive.

    References
    ----------
    .. [1] L. N. Smith and N. Topin, "Super-convergence: very fast training of neural networks using
       large learning rates", 2017.

    Examples
    --------
    >>> schedule = cosine_onecycle_schedule(100, 1.0, div_factor=10.0)
    >>> [round(float(schedule(count)), 6) for count in (0, 15, 30, 100)]
    [0.1, 0.55, 1.0, 1e-05]
    """
    _check_steps(transition_steps, "cosine_onecycle_schedule")
    return piecewise_interpolate_schedule(
        "cosine",
        peak_value / div_factor,
        {
            int(pct_start * transition_steps): div_factor,
            transition_steps: 1.0 / (div_factor * final_div_factor),
        },
    )


def _check_steps(steps: int, name: str) -> None:
    if not steps > 0:
        raise ArgumentError(
            f"{name} needs a positive transition_steps, got {steps}",
            where=user_line(),
            fix="write how many steps the cycle takes: transition_steps=1000, say",
        )


def sgdr_schedule(cosine_kwargs: Iterable[dict[str, Any]]) -> Schedule:
    """Make a schedule that rises and falls several times: warm restarts [1]_.

    Parameters
    ----------
    cosine_kwargs : iterable of dict
        The arguments of `warmup_cosine_decay_schedule`, for each time.

    Returns
    -------
    callable
        The schedule.

    References
    ----------
    .. [1] I. Loshchilov and F. Hutter, "SGDR: stochastic gradient descent with warm restarts",
       ICLR 2017.

    Examples
    --------
    >>> once = dict(init_value=0.0, peak_value=1.0, warmup_steps=1, decay_steps=3)
    >>> schedule = sgdr_schedule([once, once])
    >>> [round(schedule(count), 3) for count in range(6)]
    [0.0, 1.0, 0.5, 0.0, 1.0, 0.5]
    """
    schedules, boundaries, steps = [], [], 0
    for arguments in cosine_kwargs:
        schedules.append(warmup_cosine_decay_schedule(**arguments))
        steps += arguments["decay_steps"]
        boundaries.append(steps)
    return join_schedules(schedules, boundaries[:-1])
