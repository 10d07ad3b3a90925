"""The cipher for many keys at once, in NumPy.

One idea: NumPy's own Philox is quick once it runs, but a few microseconds go by for each key before
it does. Where many keys give a few words each, it is quicker to write the cipher [1]_ with NumPy's
operations on arrays, in which every element has a key and a counter of its own.

.. [1] J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as easy as
   1, 2, 3", Proc. SC11, 2011: Philox4x64-10.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["encrypt", "high_product"]

_ROUNDS = 10
_MULTIPLIERS = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_STEPS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)  # of the key, each round
_LOW_HALF = np.uint64(2**32 - 1)
_BLOCK = 4096  # counters at a time, so that the intermediate arrays stay in the cache


def encrypt(counter: Sequence[Any], data: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Encrypt four-word counters under keys.

    Parameters
    ----------
    counter : sequence of four array_like of uint64
        Least significant word first; they broadcast against each other and the keys.
    data : ndarray of uint64, shape (n, ..., 2)
        The keys.

    Returns
    -------
    ndarray of uint64, shape (n, ..., 4)
        A fresh array.
    """
    parts = [np.asarray(part, np.uint64) for part in (*counter, data[..., 0], data[..., 1])]
    shape = np.broadcast_shapes(*[part.shape for part in parts])
    parts = [np.broadcast_to(part, shape) for part in parts]
    out = np.empty((*shape, 4), np.uint64)
    rows = max(1, _BLOCK // max(1, prod(shape[1:])))
    for start in range(0, len(out), rows):
        block = slice(start, start + rows)
        for number, word in enumerate(_rounds(*[part[block] for part in parts])):
            out[block, ..., number] = word
    return out


def _rounds(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> tuple[Any, Any, Any, Any]:
    first, second = _MULTIPLIERS
    for _ in range(_ROUNDS):
        c0, c1, c2, c3 = (
            high_product(second, c2) ^ c1 ^ k0,
            second * c2,
            high_product(first, c0) ^ c3 ^ k1,
            first * c0,
        )
        k0, k1 = k0 + _STEPS[0], k1 + _STEPS[1]
    return c0, c1, c2, c3


def high_product(a: Any, b: Any) -> Any:
    """Return the upper 64 bits of the 128-bit product of two words, by halves of 32 bits."""
    a1, a0, b1, b0 = a >> 32, a & _LOW_HALF, b >> 32, b & _LOW_HALF
    if isinstance(b, np.uint64) and b1 == 0:  # the same, without the terms that are zero
        return (a1 * b0 + (a0 * b0 >> 32)) >> 32
    middle = a1 * b0 + (a0 * b0 >> 32)
    return a1 * b1 + (middle >> 32) + ((a0 * b1 + (middle & _LOW_HALF)) >> 32)
