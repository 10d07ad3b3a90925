"""The tail of the normal distribution, for random numbers and for activation functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["upper_tail"]

# Chebyshev series in t = (y - 5) / (y + 5) of (y + 2) exp(y**2 / 2) P(X > y) over y in [0, inf),
# a change of variable after Shepherd and Laframboise (Math. Comp. 36, 1981); the coefficients
# were computed for this module, by interpolation at 60 Chebyshev nodes with 50 digits.
_MILLS = (
    0.6177300168361769,
    -0.2851542100520654,
    0.08079162008407426,
    -0.01597813796614723,
    0.001232249661209281,
    0.0005360347035416817,
    -0.00027383091325208336,
    6.737159002094401e-05,
    -9.126688139619657e-06,
    1.1296850129043267e-07,
    2.1354149331593803e-07,
    -3.218671228434009e-08,
    -2.2991104340875014e-09,
    1.1790545751585976e-09,
    -2.4347453508476862e-11,
    -3.661177178029473e-11,
    2.738698134381691e-12,
    1.1748962142783317e-12,
    -1.3170717946466529e-13,
    -4.1971366654688764e-14,
    5.331431428432849e-15,
)


def upper_tail(y: Any, exp: Callable[[Any], Any]) -> Any:
    """Return the probability of more than `y` >= 0, float64, to 1e-13 relative up to 38.

    `exp` evaluates the exponential: where results have to be the same on every machine, not
    NumPy's.
    """
    y = np.minimum(y, 50.0)  # beyond 39 the result is 0
    t = (y - 5.0) / (y + 5.0)
    high, low = np.zeros_like(t), np.zeros_like(t)
    for coefficient in _MILLS[:0:-1]:  # Clenshaw's recurrence
        high, low = 2.0 * t * high - low + coefficient, high
    return exp(-0.5 * y * y) * (t * high - low + _MILLS[0]) / (y + 2.0)
