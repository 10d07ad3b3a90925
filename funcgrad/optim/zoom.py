"""The zoom line search: a step that falls enough and ends where the slope is small.

First steps grow until they enclose a good one, then the interval shrinks towards it by cubic and
quadratic interpolation (Nocedal and Wright, algorithms 3.5 and 3.6, with the approximate condition
of Hager and Zhang, which holds when the value cannot be computed well enough to tell).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from funcgrad import value_and_grad
from funcgrad.errors import ArgumentError, user_line
from funcgrad.optim.base import (
    GradientTransformationExtraArgs,
    OptState,
    Params,
    Updates,
    check_state,
    missing_params,
    needing_more,
)
from funcgrad.optim.leaves import map_updates, zeros_for
from funcgrad.optim.lines import Point, arguments_of, as_number, error_of, moved, quiet, slope_along

__all__ = [
    "ScaleByZoomLinesearchState",
    "ZoomLinesearchInfo",
    "scale_by_zoom_linesearch",
]


class ZoomLinesearchInfo(NamedTuple):
    """How many steps were tried, and by how much the last one misses the two conditions."""

    num_linesearch_steps: int
    decrease_error: Any
    curvature_error: Any


class ScaleByZoomLinesearchState(NamedTuple):
    """The step size, the value and the gradient where it leads, and how it was found."""

    learning_rate: Any
    value: Any
    grad: Updates
    info: ZoomLinesearchInfo


def scale_by_zoom_linesearch(
    max_linesearch_steps: int,
    max_learning_rate: Any = None,
    tol: Any = 0.0,
    increase_factor: Any = 2.0,
    slope_rtol: Any = 1e-4,
    curv_rtol: Any = 0.9,
    approx_dec_rtol: Any = 1e-6,
    stepsize_precision: Any = 1e-5,
    initial_guess_strategy: str = "keep",
    verbose: bool = False,
) -> GradientTransformationExtraArgs:
    """Multiply updates by a step size that meets the strong Wolfe conditions [1]_ [2]_.

    Parameters
    ----------
    max_linesearch_steps : int
        How many step sizes are tried at most.
    max_learning_rate : float, optional
        The largest step size.
    tol : float
        By how much the conditions may be missed.
    increase_factor : float
        What steps are multiplied by while they are too short.
    slope_rtol : float
        What part of the fall that the slope promises is enough.
    curv_rtol : float
        What part of the slope may be left.
    approx_dec_rtol : float, optional
        How exact the value is, as a part of it, for the approximate condition; None leaves that
        out.
    stepsize_precision : float
        How short the interval may become.
    initial_guess_strategy : {"keep", "one"}
        Begin with the last step size, or with 1.
    verbose : bool
        Print why a search failed.

    Returns
    -------
    GradientTransformationExtraArgs
        Its `update` needs the parameters, and as keyword arguments the ``value`` and the ``grad``
        there, and ``value_fn``, the function; others are arguments of that. Its place is at the end
        of a chain, behind a step that descends.

    Raises
    ------
    ArgumentError
        There is no such strategy; from `update`: there are no parameters, or an argument that
        `value_fn` does not take.

    Notes
    -----
    A search decides by values, so it cannot run under `vmap`. After one that found no step at all
    the next begins with 1, where one of Optax stays at 0.

    References
    ----------
    .. [1] J. Nocedal and S. J. Wright, *Numerical Optimization*, 2nd ed., Springer, 2006, ch. 3.
    .. [2] W. W. Hager and H. Zhang, "Algorithm 851: CG_DESCENT, a conjugate gradient method with
       guaranteed descent", ACM TOMS 2006.

    Examples
    --------
    >>> import funcgrad as fg
    >>> def square(w):
    ...     return w**2
    >>> optimizer = fg.optim.chain(fg.optim.sgd(1.0), scale_by_zoom_linesearch(10))
    >>> state = optimizer.init(3.0)
    >>> updates, state = optimizer.update(6.0, state, 3.0, value=9.0, grad=6.0, value_fn=square)
    >>> updates, state[1].learning_rate
    (-3.0, 0.5)
    """
    if initial_guess_strategy not in ("keep", "one"):
        raise ArgumentError(
            f"initial_guess_strategy must be 'keep' or 'one', got {initial_guess_strategy!r}",
            where=user_line(),
            fix="write initial_guess_strategy='keep'",
        )
    settings = _Settings(
        max_linesearch_steps,
        max_learning_rate,
        tol,
        increase_factor,
        slope_rtol,
        curv_rtol,
        approx_dec_rtol,
        stepsize_precision,
    )

    def init(params: Params) -> ScaleByZoomLinesearchState:
        info = ZoomLinesearchInfo(0, math.inf, math.inf)
        return ScaleByZoomLinesearchState(1.0, math.inf, zeros_for(params), info)

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        *,
        value: Any,
        grad: Updates,
        value_fn: Callable[..., Any],
        **extra_args: Any,
    ) -> tuple[Updates, OptState]:
        name = "scale_by_zoom_linesearch"
        state = check_state(state, ScaleByZoomLinesearchState, name)
        if params is None:
            raise missing_params(name)
        arguments = arguments_of(value_fn, extra_args, name)
        evaluate = value_and_grad(value_fn, allow_int=True)

        def at(stepsize: Any) -> Point:
            with quiet():
                value, grad = evaluate(moved(params, stepsize, updates), **arguments)
                return Point(stepsize, as_number(value), slope_along(updates, grad), grad)

        start = Point(0.0, as_number(value), slope_along(updates, grad), grad)
        # A search that failed leaves 0, from where no other would get away.
        guess = (state.learning_rate or 1.0) if initial_guess_strategy == "keep" else 1.0
        point, info = _search(at, start, guess, settings, verbose)
        rate = point.stepsize
        return (
            map_updates(lambda u: rate * u, updates),
            ScaleByZoomLinesearchState(rate, point.value, point.grad, info),
        )

    return needing_more(init, update)


class _Settings(NamedTuple):
    max_steps: int
    max_stepsize: Any
    tol: Any
    increase_factor: Any
    slope_rtol: Any
    curv_rtol: Any
    approx_dec_rtol: Any
    precision: Any

    def errors(self, point: Point, start: Point) -> tuple[Any, Any]:
        """Return by how much a point misses the two conditions."""
        rise = point.value - start.value
        excess = rise - self.slope_rtol * point.stepsize * start.slope
        if self.approx_dec_rtol is not None:
            # Enough, too: hardly any rise, and a slope as after the fall of a parabola.
            slack = rise - self.approx_dec_rtol * abs(start.value)
            turned = point.slope - (2 * self.slope_rtol - 1.0) * start.slope
            # NaN anywhere makes the sum NaN, which comparisons would pass over.
            undefined = excess + slack + turned
            excess = min(max(turned, slack), excess)
            if undefined != undefined:
                excess = undefined
        return error_of(excess), error_of(abs(point.slope) - self.curv_rtol * abs(start.slope))


def _search(
    at: Callable[[Any], Point], start: Point, guess: Any, settings: _Settings, verbose: bool
) -> tuple[Point, ZoomLinesearchInfo]:
    """Return a point that meets the conditions, or the best that there is."""
    tol = settings.tol
    safe = start  # the lowest point so far that falls enough
    point = start
    ends: tuple[Point, Point, Point] | None = None  # low end, high end, and one more for the cubic
    count = 0
    while True:
        small = False
        if ends is None:
            last = point
            stepsize = guess if count == 0 else settings.increase_factor * last.stepsize
            limited = settings.max_stepsize is not None and stepsize >= settings.max_stepsize
            point = at(settings.max_stepsize if limited else stepsize)
            decrease, curvature = settings.errors(point, start)
            met = max(decrease, curvature) <= tol
            if decrease <= tol:
                safe = point
            beyond = decrease > 0.0 or (point.value >= last.value and count > 0)
            if beyond or point.slope >= 0.0:
                ends = (last, point, last) if beyond else (point, last, point)
            done = met or (limited and ends is None)
        else:
            small = abs(ends[1].stepsize - ends[0].stepsize) <= settings.precision
            point = at(_between(*ends))
            decrease, curvature = settings.errors(point, start)
            if decrease <= tol and point.value < safe.value:
                safe = point
            done = max(decrease, curvature) <= tol
            ends = _narrowed(*ends, point, decrease)
        count += 1
        if done:
            break
        if count >= settings.max_steps or (small and safe.stepsize > 0.0):
            if verbose:
                _report(start, point, decrease, curvature, safe)
            if safe.stepsize > 0.0 or decrease == math.inf:
                point = safe
            break
    return point, ZoomLinesearchInfo(count, decrease, curvature)


def _narrowed(
    low: Point, high: Point, other: Point, middle: Point, decrease: Any
) -> tuple[Point, Point, Point]:
    """Return the part of an interval that has a good point."""
    if decrease > 0.0 or middle.value >= low.value:
        return low, middle, high
    if middle.slope * (high.stepsize - low.stepsize) >= 0.0:
        return middle, low, high
    return middle, high, low


def _between(low: Point, high: Point, other: Point) -> Any:
    """Return a step size inside of an interval, by the best interpolation that gives one."""
    left, right = sorted([low.stepsize, high.stepsize])
    length = right - left
    cubic = _cubic_minimum(low, high, other)
    if left + 0.2 * length < cubic < right - 0.2 * length:
        return cubic
    quadratic = _quadratic_minimum(low, high)
    if left + 0.1 * length < quadratic < right - 0.1 * length:
        return quadratic
    return (low.stepsize + high.stepsize) / 2.0


def _cubic_minimum(a: Point, b: Point, c: Point) -> Any:
    """Return where a cubic through three points, with the slope at one, has its minimum, or NaN."""
    db, dc = b.stepsize - a.stepsize, c.stepsize - a.stepsize
    divisor = (db * dc) * (db * dc) * (db - dc)
    if divisor == 0:
        return math.nan
    rb, rc = b.value - a.value - a.slope * db, c.value - a.value - a.slope * dc
    third = (dc * dc * rb - db * db * rc) / divisor
    second = (db * db * db * rc - dc * dc * dc * rb) / divisor
    radicand = second * second - 3.0 * third * a.slope
    if not (radicand >= 0 and third != 0):
        return math.nan
    return a.stepsize + (radicand**0.5 - second) / (3.0 * third)


def _quadratic_minimum(a: Point, b: Point) -> Any:
    """Return where the parabola through two points, with the slope at one, is least, or NaN."""
    db = b.stepsize - a.stepsize
    if db == 0:
        return math.nan
    second = (b.value - a.value - a.slope * db) / (db * db)
    return a.stepsize - a.slope / (2.0 * second) if second != 0 else math.nan


def _report(start: Point, point: Point, decrease: Any, curvature: Any, safe: Point) -> None:
    lines = [
        "scale_by_zoom_linesearch: no step size meets the conditions.",
        f"  value: {start.value}, slope: {start.slope}",
        f"  last step size: {point.stepsize}, errors: {decrease} of the fall, {curvature} of the "
        "slope",
    ]
    if safe.stepsize > 0:
        lines.append(f"  the step size {safe.stepsize} falls enough, but leaves too much slope")
    elif not start.slope < 0:
        lines.append("  the slope is not negative: the updates do not descend")
    elif decrease == math.inf:
        lines.append("  the step is 0, as no finite value was found")
    print("\n".join(lines))  # noqa: T201 - what `verbose` asks for
