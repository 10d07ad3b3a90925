"""The functions of scipy.special. Importing this package declares them all.

It needs SciPy, and is loaded when one of these functions first meets a traced value, or with
`funcgrad.scipy.special`.
"""

from funcgrad.rules.scipy.special import (
    alternatives,
    bessel,
    counting,
    distributions,
    elliptic,
    entropy,
    error,
    exponentials,
    gamma,
    hypergeometric,
    incomplete,
    integrals,
    spherical,
)

__all__ = [
    "alternatives",
    "bessel",
    "counting",
    "distributions",
    "elliptic",
    "entropy",
    "error",
    "exponentials",
    "gamma",
    "hypergeometric",
    "incomplete",
    "integrals",
    "spherical",
]
