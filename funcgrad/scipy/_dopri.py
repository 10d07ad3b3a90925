"""Discretise, then differentiate: explicit Runge-Kutta steps that can be traced.

The one idea: how long each step is, is decided from values alone; then the steps are made again
with traced values. So the derivatives are those of the computed numbers, exactly, with the
lengths of the steps as constants. Each step takes a fixed fraction of the time between two
outputs, so that the derivatives by these times are exact as well.

The method is the pair of orders 5 and 4 of J. R. Dormand and P. J. Prince, *A family of embedded
Runge-Kutta formulae*, J. Comput. Appl. Math. 6 (1980) 19-26, with the fifth order carried on. The
control of the steps is the usual one, as in E. Hairer, S. P. Norsett and G. Wanner, *Solving
Ordinary Differential Equations I*, section II.4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.level import TracerBase, looked_at
from funcgrad.core.zero import shape_of
from funcgrad.errors import ArgumentError, user_line

__all__ = ["MOST_STEPS", "integrate"]

# Between two outputs.
MOST_STEPS = 10_000

_NODES = (0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1)
_STAGES = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
# The fifth order minus the fourth.
_ERROR = (71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


def _combined(weights: Any, slopes: Any) -> Any:
    total = None
    for weight, slope in zip(weights, slopes, strict=False):
        if weight:
            term = weight * slope
            total = term if total is None else total + term
    return total


def _step(rate: Any, y: Any, t: Any, h: Any, leaves: Any, first: Any) -> tuple[Any, list[Any]]:
    """Return the next value, and the slopes of all stages, of which `first` is known."""
    slopes = [first]
    for node, weights in zip(_NODES[1:], _STAGES[1:], strict=True):
        value = y + h * _combined(weights, slopes)
        slopes.append(rate(value, t + node * h, *leaves))
    return value, slopes  # the last stage is at the next value


def integrate(y0: Any, t: Any, *leaves: Any, rate: Any, options: Any) -> Any:
    """Return the solution at the times `t`, in rows."""
    plan = _Plan(rate, options)
    if not any(isinstance(x, TracerBase) for x in (y0, t, *leaves)):
        return plan.run(y0, t, leaves)
    what = "the steps of the integration"
    plan.run(looked_at(y0, what), looked_at(t, what), [looked_at(leaf, what) for leaf in leaves])
    return _follow(plan.fractions, rate, y0, t, leaves)


def _follow(fractions: Any, rate: Any, y0: Any, t: Any, leaves: Any) -> Any:
    """Make the steps of a plan."""
    y = y0 * 1.0
    rows = [y]
    slope = rate(y, t[0], *leaves) if len(fractions) else None
    for i, parts in enumerate(fractions):
        width = t[i + 1] - t[i]
        for start, length in parts:
            y, slopes = _step(rate, y, t[i] + start * width, length * width, leaves, slope)
            slope = slopes[-1]
        rows.append(y)
    return np.stack(rows)


class _Plan:
    """The steps between each two outputs, as fractions: where they start and how long they are."""

    def __init__(self, rate: Any, options: dict[str, Any]):
        self.rate = rate
        self.rtol = 1.49012e-8 if options.get("rtol") is None else options["rtol"]
        self.atol = 1.49012e-8 if options.get("atol") is None else options["atol"]
        self.most = options.get("mxstep") or MOST_STEPS
        self.longest = options.get("hmax") or np.inf
        self.fractions: list[list[tuple[float, float]]] = []

    def run(self, y0: Any, t: Any, leaves: Any) -> Any:
        """Integrate plain values, and note the steps."""
        y = np.asarray(y0, float) * 1.0
        rows = [y]
        if len(t) > 1:
            slope = self.rate(y, t[0], *leaves)
            h = self._first_step(y, slope)
        for i in range(len(t) - 1):
            width = t[i + 1] - t[i]
            parts: list[tuple[float, float]] = []
            done, tried = 0.0, 0
            while width and done < 1:
                if tried == self.most:
                    raise _too_many(self.most, t[i] + done * width)
                tried += 1
                length = min(h, self.longest) / abs(width)
                if done + length * (1 + 1e-10) >= 1:
                    length = 1 - done
                step = length * width
                new, slopes = _step(self.rate, y, t[i] + done * width, step, leaves, slope)
                error = self._error(y, new, step * _combined(_ERROR, slopes))
                if error <= 1:
                    parts.append((done, length))
                    # The last step ends at 1, whatever the sum was rounded to.
                    done = 1.0 if length == 1 - done else done + length
                    y, slope = new, slopes[-1]
                taken = abs(step)
                if error <= 1 and done == 1.0 and taken < h:
                    continue  # cut short, which says nothing of the next step
                h = taken * min(5.0, max(0.2, 0.9 * error**-0.2 if error else 5.0))
            self.fractions.append(parts)
            rows.append(y)
        return np.stack(rows)

    def _error(self, y: Any, new: Any, error: Any) -> float:
        """Return the estimated error in units of what is tolerated; NaN counts as too much."""
        scale = self.atol + self.rtol * np.maximum(np.abs(y), np.abs(new))
        size = float(np.sqrt(np.mean((error / scale) ** 2))) if shape_of(y)[0] else 0.0
        return size if np.isfinite(size) else 1e10

    def _first_step(self, y: Any, slope: Any) -> float:
        scale = self.atol + self.rtol * np.abs(y)
        size = np.sqrt(np.mean((y / scale) ** 2))
        speed = np.sqrt(np.mean((slope / scale) ** 2))
        return float(0.01 * size / speed) if size > 1e-5 and speed > 1e-5 else 1e-6


def _too_many(most: int, t: float) -> ArgumentError:
    return ArgumentError(
        f"odeint with adjoint='discrete' made {most} steps between two outputs, and is at t = {t}",
        where=user_line(),
        fix="give a larger mxstep or larger tolerances; if the equations are stiff, "
        "adjoint='continuous'",
    )
