"""Linear interpolation: `numpy.interp`, differentiable in the points, the knots and their values.

Between two knots the result is a mean of their values, in shares by distance; knots move the
result against the slope. At a knot the slope changes: there the one of the two that is nearest to
0 counts, which gives the subgradient of least norm (Clarke's subdifferential is what lies between
the two), and is 0 where the two differ in sign. Beyond the ends the result is constant, so at the
first and the last knot the derivative in `x` is 0; but where ``left=`` or ``right=`` makes the
result jump there, the slope inside counts.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from funcgrad.core.batch import loop
from funcgrad.core.level import any_of, detached, holds_anywhere
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of, zero_wins
from funcgrad.rules.gathering import gather, gather_add
from funcgrad.rules.reducing import cast, plus
from funcgrad.rules.spelling import array_of

__all__: list[str] = []


@primitive()
def interp(x, xp, fp, left, right):
    """Linear interpolation between the knots `xp`, of values `fp`."""
    return np.interp(x, xp, fp, left, right)


def _near_zero(a, b):
    """Return the number between `a` and `b` that is nearest to 0."""
    if dtype_of(a).kind != "c":
        smaller = np.where(np.less(np.abs(a), np.abs(b)), a, b)
        return np.where(np.greater(a * b, 0), smaller, 0)
    ahead = b - a
    length = np.real(ahead * np.conj(ahead))
    share = -np.real(np.conj(ahead) * a) / np.where(np.equal(length, 0), 1, length)
    return a + np.clip(detached(share), 0, 1) * ahead


class _Segment:
    """Between which knots each point lies, its share of the upper one, and the slope there."""

    def __init__(self, primals):
        self.x, self.xp, self.fp, self.left, self.right = primals
        self.knots, self.points = knots, points = detached(self.xp), detached(self.x)
        self.last = shape_of(knots)[0] - 1
        self.found = np.searchsorted(knots, points, side="right")
        self.below, self.above = np.less(points, knots[0]), np.greater(points, knots[-1])
        self.inside = np.logical_not(np.logical_or(self.below, self.above))
        self.low = np.clip(self.found - 1, 0, max(self.last - 1, 0))
        self.high = np.minimum(self.low + 1, self.last)

    # Each rule needs some of these, and only where they are asked for.

    @cached_property
    def start(self):
        return gather.bind(self.xp, self.low)

    @cached_property
    def width(self):
        width = gather.bind(self.xp, self.high) - self.start
        return np.where(np.equal(width, 0), 1, width)

    @cached_property
    def share(self):
        share = np.clip((self.x - self.start) / self.width, 0, 1)
        return np.where(self.below, 0, np.where(self.above, 1, share))

    @cached_property
    def slope(self):
        slope = (gather.bind(self.fp, self.high) - gather.bind(self.fp, self.low)) / self.width
        slope = self._at_knots(slope, self.xp, self.fp, self.points, self.knots)
        return np.where(self.inside, slope, 0)

    def _at_knots(self, slope, xp, fp, points, knots):
        """Return the slopes, with the one of least norm for points on a knot."""
        here = np.clip(self.found - 1, 0, self.last)
        hit = np.equal(gather.bind(knots, here), points)
        if not any_of(hit):
            return slope
        single = np.equal(np.searchsorted(knots, points, side="left"), self.found - 1)
        before = np.maximum(here - 1, 0)
        width = gather.bind(xp, here) - gather.bind(xp, before)
        back = (gather.bind(fp, here) - gather.bind(fp, before)) / np.where(
            np.equal(width, 0), 1, width
        )
        first, last = np.equal(here, 0), np.equal(here, self.last)
        # At the ends one of the two is flat, unless the result jumps.
        ahead = np.where(last, 0, slope)
        if self.left is not None:
            back = np.where(first & np.not_equal(self.left, detached(fp)[0]), ahead, back)
        if self.right is not None:
            ahead = np.where(last & np.not_equal(self.right, detached(fp)[-1]), back, ahead)
        # A knot that is there twice is a jump, and the slope behind it counts.
        return np.where(hit & single, _near_zero(back, ahead), slope)

    def shares(self):
        """Return the derivatives in the values of the lower and the upper knot."""
        valued = self.inside
        if self.left is None:
            valued = np.logical_or(valued, self.below)
        if self.right is None:
            valued = np.logical_or(valued, self.above)
        return np.where(valued, 1 - self.share, 0), np.where(valued, self.share, 0)


@interp.def_jvp
def interp_jvp(primals, tangents, out):
    segment = _Segment(primals)
    x_dot, xp_dot, fp_dot, left_dot, right_dot = tangents
    out_dot = None
    if x_dot is not None:
        out_dot = zero_wins(segment.slope * x_dot, x_dot)
    if xp_dot is not None:
        low, high = gather.bind(xp_dot, segment.low), gather.bind(xp_dot, segment.high)
        out_dot = plus(out_dot, -segment.slope * (low + segment.share * (high - low)))
    if fp_dot is not None:
        lower, upper = segment.shares()
        part = lower * gather.bind(fp_dot, segment.low) + upper * gather.bind(fp_dot, segment.high)
        out_dot = plus(out_dot, part)
    if left_dot is not None:
        out_dot = plus(out_dot, np.where(segment.below, left_dot, 0))
    if right_dot is not None:
        out_dot = plus(out_dot, np.where(segment.above, right_dot, 0))
    return out_dot


@interp.def_vjp
def interp_vjp(primals, out):
    size = shape_of(primals[1])[0]
    segment = _Segment(primals)

    def at_knots(lower, upper):
        return gather_add.bind(lower, segment.low, size=size) + gather_add.bind(
            upper, segment.high, size=size
        )

    def interp_pullback_x(out_bar):
        return zero_wins(segment.slope * out_bar, out_bar)

    def interp_pullback_xp(out_bar):
        t = -segment.slope * out_bar
        return at_knots((1 - segment.share) * t, segment.share * t)

    def interp_pullback_fp(out_bar):
        lower, upper = segment.shares()
        return at_knots(lower * out_bar, upper * out_bar)

    def interp_pullback_left(out_bar):
        return np.sum(np.where(segment.below, out_bar, 0))

    def interp_pullback_right(out_bar):
        return np.sum(np.where(segment.above, out_bar, 0))

    return (
        interp_pullback_x,
        interp_pullback_xp,
        interp_pullback_fp,
        interp_pullback_left,
        interp_pullback_right,
    )


@interp.def_batch
def interp_batch(args, batched):
    if any(batched[1:]):  # each example has its own knots
        return loop(interp.bind, args, batched, {})
    return interp.bind(*args)


@interp.def_call(np.interp)
def _traced_interp(x, xp, fp, left=None, right=None, period=None):
    """`numpy.interp`: with a period the knots are sorted, and repeated once at either end."""
    # As floats, before small integers wrap around in a difference.
    x, xp, fp = (
        cast(part, np.float64) if dtype_of(part).kind in "biu" else part
        for part in map(array_of, (x, xp, fp))
    )
    if period is not None:
        if holds_anywhere(np.equal(period, 0), "whether the period is 0"):
            raise ValueError("period must be a non-zero value")
        period, left, right = np.abs(period), None, None
        kind = np.complex128 if dtype_of(fp).kind == "c" else np.float64
        x, xp, fp = cast(x, np.float64), cast(xp, np.float64), cast(fp, kind)
        if len(shape_of(xp)) != 1 or len(shape_of(fp)) != 1:
            raise ValueError("Data points must be 1-D sequences")
        if shape_of(xp)[0] != shape_of(fp)[0]:
            raise ValueError("fp and xp are not of the same length")
        x, xp = x % period, xp % period
        order = np.argsort(xp)
        xp, fp = gather.bind(xp, order), gather.bind(fp, order)
        xp = np.concatenate((xp[-1:] - period, xp, xp[0:1] + period))
        fp = np.concatenate((fp[-1:], fp, fp[0:1]))
    return interp.bind(x, xp, fp, left, right)


@interp.def_samples
def interp_samples(rng):
    xp, fp = np.array([-1.0, 0.0, 0.7, 2.0]), rng.normal(size=4)
    x = np.array([[-0.4, 0.2, 1.5], [0.9, -2.0, 2.5]])
    real: Any = {"complex": False}
    values = fp + 1j * rng.normal(size=4)
    yield Sample(x, xp, fp, **real)
    yield Sample(x, xp, values, **real)
    yield Sample(x, xp, fp, left=np.float64(5.0), right=-3.0, argnames=("left", "right"), **real)
    yield Sample(np.float64(0.3), xp, fp, **real)
    yield Sample(0.3, xp, fp, **real)
    yield Sample(rng.normal(size=()), xp, fp, **real)
    yield Sample(x, [-1, 0, 1], [3.0, 2.0, 5.0], **real)
    yield Sample(x, [-1, 0, 1], fp[:3], **real)
    yield Sample(np.array([0.2, 3.1, -1.7]), xp, fp, period=4.0, **real)
    yield Sample(np.array([0.2, 3.1, -1.7]), 3 * xp, values, period=2.5, **real)
    yield Sample(np.zeros(0), xp, fp, **real)
    yield Sample(x, xp[:1], fp[:1], **real)
    yield Sample(xp, xp, fp, kinks=True, **real)
    yield Sample(xp, xp, values, kinks=True, **real)
    yield Sample(xp, xp, fp, 1.0, 2.0, kinks=True, **real)
    yield Sample(x, np.array([-1.0, 0.0, 0.0, 2.0]), fp, **real)
