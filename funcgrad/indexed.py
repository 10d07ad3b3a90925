"""Updates of arrays as expressions: ``fg.at(x)[index].set(value)`` is `x` with a part replaced.

Where ``x[index] = value`` changes an array in place, these return a new one and leave `x` as it
is. They work on plain arrays, on traced ones and on the arguments of a function that is being
differentiated, and are differentiable in `x` and in `value`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.core.level import TracerBase, any_of, detached
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import ArgumentError, user_line
from funcgrad.rules.accumulate import accumulate, in_rounds
from funcgrad.rules.gathering import gather, read_at
from funcgrad.rules.indexing import settle, updated
from funcgrad.rules.spelling import holds_tracer, joined

__all__ = ["at"]

_MODES = (None, "promise_in_bounds", "clip", "drop", "fill", "wrap")


class at:
    """Make parts of an array available for updates that return a new array.

    Parameters
    ----------
    x : array_like
        The array; it is not changed. A list may hold traced values.

    See Also
    --------
    numpy.ufunc.at : the in-place operations that these are like.

    Notes
    -----
    ``at(x)[index]`` has the methods ``set``, ``add``, ``subtract``, ``multiply``, ``divide``,
    ``power``, ``min``, ``max``, ``apply`` and ``get``. All take ``mode``, which says what to do
    with integers in `index` that are out of bounds:

    - None (or ``"promise_in_bounds"``): raise IndexError, as NumPy does;
    - ``"clip"``: take the nearest element;
    - ``"wrap"``: start again from the other end;
    - ``"drop"`` (or ``"fill"``): leave such an update out; `get` gives ``fill_value`` there.

    Elements that `index` names several times are updated several times, but for `set`, where the
    last value stays.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> fg.at(x)[1:].set(0.0)
    array([1., 0., 0.])
    >>> fg.at(x)[[0, 0, 2]].add(10.0)
    array([21.,  2., 13.])
    >>> fg.grad(lambda v: np.sum(fg.at(x)[[0, 0]].multiply(v)))(np.array([5.0, 7.0]))
    array([7., 5.])
    """

    __slots__ = ("x",)

    def __init__(self, x: Any):
        x = joined(x)
        self.x = x if hasattr(x, "__array_function__") else np.asarray(x)

    def __getitem__(self, index: Any) -> Part:
        return Part(self.x, index)

    def __repr__(self) -> str:
        return f"at({self.x!r})"


class Part:
    """A part of an array, ``at(x)[index]``; its methods return the array with that part changed."""

    __slots__ = ("index", "x")

    def __init__(self, x: Any, index: Any):
        self.x = x
        # Indices that differ from example to example, under vmap, are traced.
        if holds_tracer(index):
            self.index = tuple(map(_settled, index)) if type(index) is tuple else _settled(index)
        else:
            self.index = settle(index)

    def __repr__(self) -> str:
        return f"at({self.x!r})[{self.index!r}]"

    def set(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
    ) -> Any:
        """Replace the part by `values`, as ``x[index] = values`` does.

        Parameters
        ----------
        values : array_like
            Of a shape that broadcasts to that of ``x[index]``.
        indices_are_sorted : bool
            Taken for compatibility; sorted indices are not faster.
        unique_indices : bool
            `index` names no element twice, which saves a test.
        mode : str, optional
            What to do with integers out of bounds; see `at`.

        Returns
        -------
        array
            Of the shape and dtype of `x`.

        Examples
        --------
        >>> import numpy as np
        >>> at(np.zeros(3))[-1].set(2.0)
        array([0., 0., 2.])
        """

        def change(x: Any, index: Any, values: Any) -> Any:
            return updated(x, values, index)

        return self._changed(mode, change, values)

    def add(self, values: Any, **options: Any) -> Any:
        """Add `values` to the part; elements named several times add up.

        Examples
        --------
        >>> import numpy as np
        >>> at(np.zeros(3))[[1, 1]].add([2.0, 3.0])
        array([0., 5., 0.])
        """
        return self._operate(np.add, values, **options)

    def subtract(self, values: Any, **options: Any) -> Any:
        """Subtract `values` from the part.

        Examples
        --------
        >>> import numpy as np
        >>> at(np.zeros(3))[1].subtract(2.0)
        array([ 0., -2.,  0.])
        """
        return self._operate(np.subtract, values, **options)

    def multiply(self, values: Any, **options: Any) -> Any:
        """Multiply the part by `values`.

        Examples
        --------
        >>> import numpy as np
        >>> at(np.ones(3))[1:].multiply(2.0)
        array([1., 2., 2.])
        """
        return self._operate(np.multiply, values, **options)

    mul = multiply

    def divide(self, values: Any, **options: Any) -> Any:
        """Divide the part by `values`.

        Examples
        --------
        >>> import numpy as np
        >>> at(np.ones(3))[1:].divide(2.0)
        array([1. , 0.5, 0.5])
        """
        return self._operate(np.true_divide, values, **options)

    def power(self, values: Any, **options: Any) -> Any:
        """Raise the part to the power of `values`.

        Examples
        --------
        >>> import numpy as np
        >>> at(np.array([2.0, 3.0]))[0].power(3.0)
        array([8., 3.])
        """
        return self._operate(np.power, values, **options)

    def min(self, values: Any, **options: Any) -> Any:
        """Take the smaller of the part and `values`; equal ones share the derivative evenly.

        Examples
        --------
        >>> import numpy as np
        >>> at(np.array([2.0, 3.0]))[:].min(2.5)
        array([2. , 2.5])
        """
        return self._operate(np.minimum, values, **options)

    def max(self, values: Any, **options: Any) -> Any:
        """Take the larger of the part and `values`; equal ones share the derivative evenly.

        Examples
        --------
        >>> import numpy as np
        >>> at(np.array([2.0, 3.0]))[:].max(2.5)
        array([2.5, 3. ])
        """
        return self._operate(np.maximum, values, **options)

    def apply(
        self,
        func: Callable[[Any], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
    ) -> Any:
        """Replace the part by ``func`` of it.

        Parameters
        ----------
        func : callable
            Takes an array and returns one of the same shape, each element by itself.
        indices_are_sorted, unique_indices, mode
            As for `set`.

        Examples
        --------
        >>> import numpy as np
        >>> at(np.array([4.0, 9.0]))[1].apply(np.sqrt)
        array([4., 3.])
        """

        def change(x: Any, index: Any) -> Any:
            return in_rounds(func, x, index, unique=unique_indices)

        return self._changed(mode, change)

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
        fill_value: Any = None,
    ) -> Any:
        """Return the part, ``x[index]``.

        Parameters
        ----------
        indices_are_sorted, unique_indices
            Taken for compatibility.
        mode : str, optional
            What to do with integers out of bounds; see `at`. ``"fill"`` if `fill_value` is given.
        fill_value : scalar, optional
            Stands where an integer is out of bounds: NaN by default, or the least integer (the
            greatest if unsigned, True if boolean).

        Examples
        --------
        >>> import numpy as np
        >>> at(np.array([1.0, 2.0]))[np.array([0, 5])].get(mode="fill", fill_value=-1.0)
        array([ 1., -1.])
        """
        if mode is None and fill_value is not None:
            mode = "fill"
        if mode not in ("fill", "drop"):
            index = self._within(mode)
            return read_at(self.x, index) if holds_tracer(index) else self.x[index]
        index, inside = _bounded(self.index, shape_of(self.x))
        if inside is None:
            return read_at(self.x, index) if holds_tracer(index) else self.x[index]
        if fill_value is None:
            fill_value = _fill_value(dtype_of(self.x))
        filler = np.asarray(fill_value, dtype_of(self.x))
        if not self.x.size:
            return np.full(inside.shape, filler)
        flat = np.reshape(self.x, (-1,))
        return np.where(inside, gather.bind(flat, np.maximum(index, 0)), filler)

    def _operate(
        self,
        ufunc: np.ufunc,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
    ) -> Any:

        def change(x: Any, index: Any, values: Any) -> Any:
            return accumulate(ufunc, x, index, values, unique=unique_indices)

        return self._changed(mode, change, values)

    def _changed(self, mode: str | None, change: Callable[..., Any], *values: Any) -> Any:
        """Return ``change(x, index, *values)``, with what is out of bounds dealt with."""
        if mode not in ("drop", "fill"):
            return change(self.x, self._within(mode), *values)
        shape = shape_of(self.x)
        places, inside = _bounded(self.index, shape)
        if inside is None:
            return change(self.x, places, *values)
        if holds_tracer(inside):  # one more element takes what is out of bounds
            flat = np.reshape(self.x, (-1,))
            longer = np.concatenate([flat, np.ones(1, dtype_of(flat))])
            made = change(longer, np.where(inside, places, flat.size), *values)
            return np.reshape(made[:-1], shape)
        kept = (np.broadcast_to(joined(value), inside.shape)[inside] for value in values)
        return change(self.x, np.unravel_index(places[inside], shape), *kept)

    def _within(self, mode: str | None) -> Any:
        """Return the index with its integers within bounds, if `mode` asks for that."""
        if mode not in _MODES:
            raise ArgumentError(
                f"mode={mode!r} of fg.at(x)[index] is unknown",
                where=user_line(),
                fix="use one of " + ", ".join(map(repr, _MODES)),
            )
        if mode is None or mode == "promise_in_bounds":
            return self.index
        return _moved(self.index, shape_of(self.x), mode)


def _settled(item: Any) -> Any:
    """Return an item of an index that holds tracers, without derivatives of its own."""
    return detached(joined(item)) if holds_tracer(item) else settle(item)


def _fill_value(dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "fc":
        return np.nan
    if dtype.kind == "b":
        return True
    return np.iinfo(dtype).max if dtype.kind == "u" else np.iinfo(dtype).min


def _is_integer(item: Any) -> bool:
    if isinstance(item, np.ndarray | TracerBase):
        return dtype_of(item).kind in "iu"
    return isinstance(item, int | np.integer) and not isinstance(item, bool)


def _by_axis(index: Any, shape: tuple[int, ...], change: Callable[[Any, int], Any]) -> Any:
    """Apply ``change(item, axis)`` to each integer, or array of them, in an index."""
    items = index if isinstance(index, tuple) else (index,)
    used = [_axes_of(item) for item in items]
    changed, axis = [], 0
    for item, count in zip(items, used, strict=True):
        if item is Ellipsis:
            count = len(shape) - sum(used)
        elif _is_integer(item) and axis < len(shape):
            item = change(item, axis)
        changed.append(item)
        axis += count
    return tuple(changed)


def _axes_of(item: Any) -> int:
    if item is None or item is Ellipsis or isinstance(item, bool | np.bool_):
        return 0
    is_mask = isinstance(item, np.ndarray | TracerBase) and dtype_of(item).kind == "b"
    return len(shape_of(item)) if is_mask else 1


def _moved(index: Any, shape: tuple[int, ...], mode: str) -> Any:
    """Bring the integers of an index within bounds."""

    def move(item: Any, axis: int) -> Any:
        size = max(shape[axis], 1)
        if mode == "wrap":
            return item % size
        return np.clip(np.where(np.less(item, 0), np.add(item, size), item), 0, size - 1)[()]

    return _by_axis(index, shape, move)


def _bounded(index: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Return flat positions and which are within bounds; or the index, and None if all are."""
    padded = list(shape)

    def onto_padding(item: Any, axis: int) -> Any:
        size = shape[axis]
        outside = np.less(item, -size) | np.greater_equal(item, size)
        if not any_of(outside):
            return item
        # The axis gets one more element, numbered -1, for all that is out of bounds. No slice
        # can see it: an axis is indexed by one item.
        padded[axis] = size + 1
        return np.where(outside, size, np.where(np.less(item, 0), np.add(item, size), item))[()]

    moved = _by_axis(index, shape, onto_padding)
    if padded == list(shape):
        return index, None
    numbers = np.full(padded, -1)
    inner = tuple(map(slice, shape))
    numbers[inner] = np.arange(numbers[inner].size).reshape(shape)
    places = read_at(numbers, moved) if holds_tracer(moved) else np.asarray(numbers[moved])
    return places, places >= 0
