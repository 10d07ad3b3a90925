"""Derivatives in shape parameters and orders that have no closed form: by central differences.

The incomplete gamma and beta functions in their shapes, Bessel functions in their order: there are
series for some, none for most, and SciPy computes the functions themselves to nearly the last
digit. So a difference formula of eighth order is exact enough: its step is a power of two near 1/64
of the `scale` on which the function changes. Truncation costs some 1e-13 then, and rounding 64
times that of the function; about 12 digits are right, and 10 of a second derivative.

The formula is written with the function itself. So it can be differentiated in turn: in the
other arguments by their closed form, which makes mixed derivatives as exact, and in the same
argument by differences of differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.core.level import detached
from funcgrad.rules.scipy.special.declare import narrow

__all__ = ["slope", "tail_slope"]

# B. Fornberg, "Generation of finite difference formulas on arbitrarily spaced grids", Mathematics
# of Computation 51 (1988), table 1: first derivative, centred, order 8.
_WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
_TINY = 1e-290  # where probabilities lose their digits


def slope(fun: Callable[[Any], Any], p: Any, scale: Any) -> Any:
    """Return the derivative of `fun` at `p`, whose argument changes it on the given scale."""
    double = p + np.float64(0)  # single precision would not do for differences
    # A power of two: adding it to a parameter rounds nothing, or little. It counts as a constant.
    step = np.exp2(np.round(np.log2(detached(scale + np.float64(0)))) - 6)
    total = 0.0
    for count, weight in enumerate(_WEIGHTS, 1):
        ahead, behind = fun(double + count * step), fun(double - count * step)
        total = total + weight * (ahead - behind)
    return narrow(total / step, p)


def tail_slope(lower: Callable[[Any], Any], upper: Callable[[Any], Any], p: Any, scale: Any) -> Any:
    """Return the derivative in `p` of a probability `lower`, where ``upper = 1 - lower``.

    The logarithm of the smaller of both is what changes evenly, far in the tails too.
    """
    double = p + np.float64(0)
    first, second = lower(double), upper(double)
    is_lower = np.less_equal(first, second)
    tail = np.where(is_lower, first, second)
    lost = np.less(tail, _TINY)

    def log_tail(q: Any) -> Any:
        chosen = np.where(is_lower, lower(q), upper(q))
        return np.log(np.where(lost | np.equal(chosen, 0), 1, chosen))

    rate = slope(log_tail, double, scale)
    return narrow(np.where(lost, 0, np.where(is_lower, tail, -tail) * rate), p)
