"""Where blocks begin and end, and how sums over blocks come out as those of whole arrays do.

NumPy adds up the elements of an array by halves: the sum of the first half, plus the sum of the
second, and so on down to a hundred elements or so; where it halves them is a multiple of eight. So
if blocks are such halves of halves, and their sums are added in pairs, the result is NumPy's, to
the last bit. Sums over the first axis, on the other hand, take one row after another.

Programs call these functions as they run. They need NumPy alone, and stand in standalone sources.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["add_rows", "halves", "in_pairs"]


def halves(count: int, depth: int, step: int) -> list[tuple[int, int]]:
    """Return the ends of the parts into which `count` elements are halved `depth` times.

    Parameters
    ----------
    count, depth : int
    step : int
        All ends but the last are multiples of it.

    Returns
    -------
    list of (int, int)

    Examples
    --------
    >>> halves(100, 2, 8)
    [(0, 24), (24, 48), (48, 72), (72, 100)]
    """
    ends = [(0, count)]
    for _ in range(depth):
        parts = []
        for start, stop in ends:
            half = (stop - start) // 2
            middle = start + half - half % step
            parts += [(start, middle), (middle, stop)]
        ends = parts
    return ends


def in_pairs(sums: Any) -> Any:
    """Return the sum of the sums of the parts that `halves` makes.

    Parameters
    ----------
    sums : ndarray
        Of as many elements as there are parts, a power of two.

    Returns
    -------
    scalar

    Examples
    --------
    >>> float(in_pairs(np.array([1.0, 2.0, 3.0, 4.0])))
    10.0
    """
    while len(sums) > 1:
        sums = sums[0::2] + sums[1::2]
    return sums[0]


def add_rows(total: Any, rows: Any) -> None:
    """Add rows to what those before them have come to, one after another.

    Parameters
    ----------
    total : ndarray
        Changed in place.
    rows : ndarray
        Of one more axis. What it holds is the same afterwards, but not in between.

    Examples
    --------
    >>> total = np.zeros(2)
    >>> add_rows(total, np.ones((3, 2)))
    >>> total
    array([3., 3.])
    """
    first = rows[0].copy()
    np.add(total, first, rows[0])
    np.add.reduce(rows, 0, None, total)
    rows[0] = first
