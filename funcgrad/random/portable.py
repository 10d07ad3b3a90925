"""Logarithm, exponential and normal quantile that give the same bits on every machine.

One idea: IEEE 754 fixes the result of ``+ - * /``, of `sqrt` and of `frexp` and `ldexp` to the
last bit, but not that of `log` or `exp`, which differ between C libraries, and in NumPy between
processors. So here is each function that a sampler needs, written with those operations alone.
Each operation is a NumPy or Python call of its own, hence no compiler can fuse two of them.
Accuracy is a few ulps, far below what any sample could show.

Formulas that only use operators are run on Python floats as well as on arrays. `xp` supplies
`frexp` and `sqrt`: `numpy` for arrays, `math` for floats.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.core.normal import upper_tail

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["exp", "log", "normal_cdf", "normal_quantile", "normal_quantile_floats"]

# log(2) in two parts; the first has 32 bits, so its product with any exponent is exact.
_LOG2_HIGH = 0.6931471803691238
_LOG2_LOW = 1.9082149292705877e-10


def log(x: Any, xp: Any = np) -> Any:
    """Evaluate the natural logarithm of float64 ``x > 0``: an array, or a float with ``xp=math``.

    With ``x = m 2**e`` and ``s = (m - 1) / (m + 1)``, ``log(m) = 2 atanh(s)``, whose series
    in ``s**2 < 0.0295`` is cut where its terms fall below half an ulp.
    """
    m, e = xp.frexp(x)
    low = m < 0.7071067811865476  # move m from [0.5, 1) to [sqrt(0.5), sqrt(2))
    m = m + m * low
    e = e - low
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = (2 / 19 * z + 2 / 17) * z + 2 / 15
    series = (((series * z + 2 / 13) * z + 2 / 11) * z + 2 / 9) * z + 2 / 7
    series = ((series * z + 2 / 5) * z + 2 / 3) * z
    return e * _LOG2_HIGH + (2.0 * s + (s * series + e * _LOG2_LOW))


def exp(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Evaluate the exponential of float64 `x` of at most 700; below -745 it is 0."""
    x = np.maximum(x, -800.0)
    k = np.rint(x * 1.4426950408889634)
    r = (x - k * _LOG2_HIGH) - k * _LOG2_LOW  # |r| <= log(2) / 2
    out = np.ones_like(r)
    for n in range(14, 0, -1):  # Taylor: 0.35**15 / 15! is 1e-19
        out = out * r / n + 1.0
    return np.ldexp(out, k.astype(np.int32))


def _central(q: Any) -> Any:
    """Evaluate the normal quantile of ``0.5 + q`` where ``abs(q) <= 0.425``: AS 241, PPND16."""
    r = 0.180625 - q * q
    num = (2509.0809287301226727 * r + 33430.575583588128105) * r + 67265.770927008700853
    num = ((num * r + 45921.953931549871457) * r + 13731.693765509461125) * r
    num = ((num + 1971.5909503065514427) * r + 133.14166789178437745) * r + 3.387132872796366608
    den = (5226.495278852854561 * r + 28729.085735721942674) * r + 39307.89580009271061
    den = ((den * r + 21213.794301586595867) * r + 5394.1960214247511077) * r
    den = ((den + 687.1870074920579083) * r + 42.313330701600911252) * r + 1.0
    return q * num / den


def _tail(r: Any) -> Any:
    """Evaluate it for a tail probability of ``exp(-r**2)``, ``r <= 5``; without the sign."""
    r = r - 1.6
    num = (7.7454501427834140764e-4 * r + 0.0227238449892691845833) * r + 0.24178072517745061177
    num = ((num * r + 1.27045825245236838258) * r + 3.64784832476320460504) * r
    num = ((num + 5.7694972214606914055) * r + 4.6303378461565452959) * r + 1.42343711074968357734
    den = (1.05075007164441684324e-9 * r + 5.475938084995344946e-4) * r + 0.0151986665636164571966
    den = ((den * r + 0.14810397642748007459) * r + 0.68976733498510000455) * r
    den = ((den + 1.6763848301838038494) * r + 2.05319162663775882187) * r + 1.0
    return num / den


def _far_tail(r: Any) -> Any:
    """Evaluate it where ``r > 5``, which is a probability below 1.4e-11."""
    r = r - 5.0
    num = (2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r
    num = ((num + 0.0012426609473880784386) * r + 0.026532189526576123093) * r
    num = ((num + 0.29656057182850489123) * r + 1.7848265399172913358) * r
    num = (num + 5.4637849111641143699) * r + 6.6579046435011037772
    den = (2.04426310338993978564e-15 * r + 1.4215117583164458887e-7) * r
    den = ((den + 1.8463183175100546818e-5) * r + 7.868691311456132591e-4) * r
    den = ((den + 0.0148753612908506148525) * r + 0.13692988092273580531) * r
    return num / ((den + 0.59983220655588793769) * r + 1.0)


def normal_quantile(q: NDArray[np.float64], tail: NDArray[np.float64]) -> NDArray[np.float64]:
    """Evaluate the inverse of the standard normal distribution function, by Wichura's AS 241 [1]_.

    Parameters
    ----------
    q : ndarray of float64, shape (n,)
        The probability less one half.
    tail : ndarray of float64, shape (n,)
        ``min(p, 1 - p) > 0`` for the same probability `p`; the caller knows it more exactly.

    Returns
    -------
    ndarray of float64, shape (n,)
        To about 1e-15, relative.

    References
    ----------
    .. [1] M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution",
       Applied Statistics 37, 1988.
    """
    out: NDArray[np.float64] = _central(q)
    (outer,) = np.nonzero(np.abs(q) > 0.425)  # 15% of random q
    r = np.sqrt(-log(tail[outer]))
    x = _tail(r)
    (far,) = np.nonzero(r > 5.0)
    if far.size:
        x[far] = _far_tail(r[far])
    out[outer] = np.copysign(x, q[outer])
    return out


def normal_quantile_floats(qs: list[float]) -> list[float]:
    """Evaluate `normal_quantile`, bit for bit, of a list; for a few dozen numbers it is quicker."""
    return [_central(q) if -0.425 <= q <= 0.425 else _outer_float(q) for q in qs]


def _outer_float(q: float) -> float:
    r = math.sqrt(-log(0.5 - abs(q), math))
    return math.copysign(_tail(r) if r <= 5.0 else _far_tail(r), q)


def normal_cdf(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Evaluate the normal distribution function, to about 1e-13 relative for ``x > -38``."""
    upper = upper_tail(np.abs(x), exp)
    return np.asarray(np.where(x < 0.0, upper, 1.0 - upper))
