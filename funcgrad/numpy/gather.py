"""``r_[...]`` and ``c_[...]`` with traced values among what they join."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.level import concrete
from funcgrad.core.zero import shape_of
from funcgrad.rules.spelling import array_of, holds_tracer

__all__ = ["c_", "r_"]

_NUMBERS = (int, float, complex, bool)


class Joiner:
    """Joins what is written in brackets: slices as ranges, numbers, arrays; as NumPy's does.

    Parameters
    ----------
    numpy : object
        ``numpy.r_`` or ``numpy.c_``, which is asked if nothing is traced.
    axis : int
        Along which to join.
    ndmin : int
        How many axes each part has at least.
    trans1d : int
        Where the axes of a part with fewer than `ndmin` come among those; -1 is last.

    Examples
    --------
    >>> import funcgrad as fg
    >>> import funcgrad.numpy as fnp
    >>> fg.grad(lambda x: fnp.r_[x, 1:3, x * x].sum())(3.0)
    7.0
    >>> fg.jacobian(lambda x: fnp.c_[[x, 1.0], [2.0, x]])(3.0)
    array([[1., 0.],
           [0., 1.]])
    """

    def __init__(self, numpy: Any, axis: int, ndmin: int, trans1d: int):
        self._numpy = numpy
        self._settings = axis, ndmin, trans1d

    def __getitem__(self, key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        if not holds_tracer(items):
            return self._numpy[key]
        axis, ndmin, trans1d = self._settings
        if isinstance(items[0], str):
            numbers = [int(word) for word in items[0].split(",")]  # "r" and "c" make a matrix
            axis, ndmin, trans1d = (*numbers, *self._settings[len(numbers) :])
            items = items[1:]
        parts = [_part(item, ndmin, trans1d) for item in items]
        # Numbers take the dtype of the arrays beside them.
        weak = [
            concrete(item) if _is_number(item) else part
            for item, part in zip(items, parts, strict=True)
        ]
        return np.concatenate(parts, axis, dtype=np.result_type(*weak))

    def __len__(self) -> int:
        return 0


def _is_number(item: Any) -> bool:
    return type(concrete(item)) in _NUMBERS


def _part(item: Any, ndmin: int, trans1d: int) -> Any:
    if isinstance(item, slice):
        part = np.r_[item]
    else:
        part = array_of(item)
        if not shape_of(part):
            return np.reshape(part, (1,) * max(ndmin, 1))
    missing = ndmin - len(shape_of(part))
    if missing <= 0:
        return part
    front = trans1d if trans1d >= 0 else trans1d + missing + 1
    return np.reshape(part, (1,) * front + shape_of(part) + (1,) * (missing - front))


r_ = Joiner(np.r_, 0, 1, -1)
c_ = Joiner(np.c_, -1, 2, 0)
