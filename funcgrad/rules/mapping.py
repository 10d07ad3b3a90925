"""Functions of functions: `apply_along_axis`, `apply_over_axes`, `piecewise`.

The user's function is called as NumPy calls it, with traced parts of the array, and the results
are joined.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from funcgrad.core.level import TracerBase, concrete, detached
from funcgrad.core.primitive import Sample, overrides
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.reducing import cast
from funcgrad.rules.spelling import array_of, holds_tracer

__all__: list[str] = []


@overrides(np.apply_along_axis)
def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    """Results of a function of the lines along `axis`, in the place of that axis."""
    arr = array_of(arr)
    ndim = len(shape_of(arr))
    axis = normalize_axis_index(axis, ndim)
    lines = np.moveaxis(arr, axis, -1)
    outer = shape_of(lines)[:-1]
    if 0 in outer:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    results = [array_of(func1d(lines[place], *args, **kwargs)) for place in np.ndindex(*outer)]
    shape, dtype = shape_of(results[0]), dtype_of(results[0])
    results = [cast(np.broadcast_to(result, shape), dtype) for result in results]
    made = np.reshape(np.stack(results), (*outer, *shape))
    for k in range(len(shape)):
        made = np.moveaxis(made, len(outer) + k, axis + k)
    return made


def _middle(x):
    return np.cumsum(x)[1:] * x[0]


def _pairs(x):
    return np.outer(x[:2], x)


@apply_along_axis.def_samples
def apply_along_axis_samples(rng):
    a = rng.normal(size=(2, 3, 2))
    yield Sample(np.sum, 1, a)
    yield Sample(_middle, 1, a)
    yield Sample(_pairs, 0, a)
    yield Sample(_middle, -1, a)
    yield Sample(np.linalg.norm, 0, a[0, 0] + 2)
    yield Sample(np.quantile, 1, a[0], 0.3, complex=False)


@overrides(np.apply_over_axes)
def apply_over_axes(func, a, axes):
    """Results of a function applied along one axis after the other."""
    made, ndim = a, len(shape_of(a))
    for axis in np.atleast_1d(axes).tolist():
        axis = ndim + axis if axis < 0 else axis
        result = func(made, axis)
        if len(shape_of(result)) != len(shape_of(made)):
            result = np.expand_dims(result, axis)
            if len(shape_of(result)) != len(shape_of(made)):
                raise ValueError("function is not returning an array of the correct shape")
        made = result
    return made


@apply_over_axes.def_samples
def apply_over_axes_samples(rng):
    a = rng.normal(size=(2, 3, 2))
    yield Sample(np.sum, a, [0, -1])
    yield Sample(np.cumsum, a, 1)


@overrides(np.piecewise)
def piecewise(x, condlist, funclist, *args, **kw):
    """Results of different functions where different conditions hold.

    A function gets the elements that it is for. Under `vmap`, where their number may differ from
    example to example, it gets all elements, and results elsewhere are not used.
    """
    x = array_of(x)
    if _is_single(condlist) or (not _is_condition(condlist[0]) and shape_of(x)):
        condlist = [condlist]
    # As truth values: the derivatives of a condition are lost anyway.
    conditions = [np.not_equal(detached(array_of(part)), 0) for part in condlist]
    count = len(funclist)
    if len(conditions) == count - 1:
        otherwise: Any = np.zeros((), bool)
        for condition in conditions:
            otherwise = np.logical_or(otherwise, condition)
        conditions.append(np.logical_not(otherwise))
    elif len(conditions) != count:
        number = len(conditions)
        raise ValueError(
            f"with {number} condition(s), either {number} or {number + 1} functions are expected"
        )
    y = np.zeros_like(x)
    for condition, func in zip(conditions, funclist, strict=True):
        y = _replaced(y, x, condition, func, args, kw)
    return y


def _is_single(condlist: Any) -> bool:
    return np.isscalar(concrete(condlist)) or not hasattr(condlist, "__getitem__")


def _is_condition(part: Any) -> bool:
    if isinstance(part, TracerBase):
        return len(shape_of(part)) > 0
    return isinstance(part, list | np.ndarray)


def _replaced(y: Any, x: Any, condition: Any, func: Any, args: Any, kw: Any) -> Any:
    """Return `y` with the results of `func` where the condition holds."""
    if holds_tracer(condition):
        with np.errstate(all="ignore"):
            made = func(x, *args, **kw) if callable(func) else func
        return cast(np.where(condition, made, y), dtype_of(x))
    if not callable(func):
        made = func
    elif not np.any(condition):
        return y
    else:
        made = func(x[condition], *args, **kw)
    y = y.copy()
    y[condition] = made
    return y


def _square(x):
    return x * x


def _scaled(x, factor):
    return factor * x


@piecewise.def_samples
def piecewise_samples(rng):
    x = rng.normal(size=(2, 3))
    yield Sample(x, [x < 0, x >= 0.3], [np.sin, _square])
    yield Sample(x, [x < 0], [np.sin, 2.0])
    yield Sample(x[0], x[0] < 0, [-1.0, np.exp])
    yield Sample(x, [x < 0, x < 0.5], [1.0, np.sin, _square])
    yield Sample(x, [x < 0.2], [_scaled, _scaled], np.float64(3.0))
    yield Sample(rng.normal(size=()), [True], [_square])
