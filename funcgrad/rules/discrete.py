"""Positions, counts and truth values: functions whose results carry no derivative.

Under `grad` and `jvp` they return plain arrays, so that code can branch on them. Those with a
batching rule are primitives; of the others, which are rare in a function of many examples, each
example is looked at by itself (`funcgrad.core.dispatch.discrete`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.core.batch import broadcasting
from funcgrad.core.dispatch import discrete
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import shape_of
from funcgrad.rules.reducing import NOT_GIVEN, batch_reduction, finish, given

__all__: list[str] = []

_POSITION = "a position"
_TRUTH = "a truth value"

# Tests of all elements


def _declare_test(function: Any, ufunc: Any) -> None:
    name = function.__name__

    def test(a, where=True, *, axis, keepdims):
        return function(a, axis, None, keepdims, where=where)

    test.__doc__ = f"`numpy.{name}`."
    made = primitive(name=name)(test)
    made.not_differentiable(_TRUTH)
    batch_reduction(made)

    @made.def_call(function)
    def call(a, axis=None, out=None, keepdims=NOT_GIVEN, *, where=True):
        if where is NOT_GIVEN:
            where = True
        return finish(made.bind(*given(a, where, NOT_GIVEN), axis=axis, keepdims=keepdims), out)

    @made.def_call(ufunc.reduce)
    def method(array, axis=0, dtype=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True):
        result = made.bind(*given(array, where, NOT_GIVEN), axis=axis, keepdims=keepdims)
        if initial is not NOT_GIVEN:
            result = ufunc(result, initial)
        return finish(result, out)

    @made.def_samples
    def samples(rng):
        a = np.array([[1.0, 0.0, 2.0], [1.0, 3.0, 2.0]])
        for axis in (None, 0, -1, (0, 1), ()):
            yield Sample(a, axis=axis)
        yield Sample(a, 1, None, True)
        yield Sample(a, axis=1, where=np.array([True, False, True]))
        yield Sample(np.zeros((0, 2)), axis=0)
        yield Sample(np.float64(1.0))
        yield Sample(a, fun=ufunc.reduce)


_declare_test(np.all, np.logical_and)
_declare_test(np.any, np.logical_or)


@primitive(overrides=(np.count_nonzero,))
def count_nonzero(a, *, axis=None, keepdims=False):
    """How many elements are not 0."""
    return np.count_nonzero(a, axis, keepdims=keepdims)


count_nonzero.not_differentiable("a count")
batch_reduction(count_nonzero)


@count_nonzero.def_samples
def count_nonzero_samples(rng):
    a = np.array([[1.0, 0.0, 2.0], [1.0, 3.0, 0.0]])
    for axis in (None, 0, -1, (0, 1)):
        yield Sample(a, axis=axis)
    yield Sample(a, 1, keepdims=True)


# Positions of extremes


def _declare_position(function: Any) -> None:
    name = function.__name__

    def position(a, *, axis=None, out=None, keepdims=NOT_GIVEN):
        return function(a, axis, keepdims=keepdims)

    position.__doc__ = f"`numpy.{name}`."
    made = primitive(name=name, overrides=(function,))(position)
    made.not_differentiable(_POSITION)

    @made.def_batch
    def position_batch(args, batched, *, axis, keepdims):
        (a,) = args
        size, *shape = shape_of(a)
        if axis is None:
            found = made.bind(np.reshape(a, (size, math.prod(shape))), axis=1, keepdims=NOT_GIVEN)
            whole = keepdims is not NOT_GIVEN and keepdims
            return np.reshape(found, (size, *(1,) * len(shape))) if whole else found
        axis = axis + 1 if axis >= 0 else axis
        if not -len(shape) <= axis <= len(shape):
            raise np.exceptions.AxisError(axis - (axis > 0), len(shape))
        return made.bind(a, axis=axis, keepdims=keepdims)

    @made.def_samples
    def samples(rng):
        a = np.array([[1.0, 4.0, 2.0], [5.0, 3.0, 5.0]])
        for axis in (None, 0, -1):
            yield Sample(a, axis)
        yield Sample(a, axis=1, keepdims=True)
        yield Sample(a, keepdims=True)
        yield Sample(np.float64(1.0))


for _function in (np.argmax, np.argmin, np.nanargmax, np.nanargmin):
    _declare_position(_function)


# Tests of each element


@primitive(overrides=(np.isclose,))
def isclose(a, b, *, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether elements are equal within a tolerance."""
    return np.isclose(a, b, rtol, atol, equal_nan)


isclose.not_differentiable(_TRUTH)
broadcasting(isclose)


@isclose.def_samples
def isclose_samples(rng):
    a = np.array([1.0, 2.0, np.nan])
    yield Sample(a, a + 1e-9)
    yield Sample(a, a, equal_nan=True)
    yield Sample(a, np.array([[1.0], [2.1]]), 0.1)


def _declare_property(function: Any) -> None:
    def test(x, *, out=None):
        return function(x)

    test.__doc__ = f"`numpy.{function.__name__}`."
    made = primitive(name=function.__name__, overrides=(function,))(test)
    made.not_differentiable(_TRUTH)
    broadcasting(made)

    @made.def_samples
    def samples(rng):
        x = np.array([1.0, -np.inf, np.inf, np.nan])
        yield Sample(x, complex=function in (np.isreal, np.iscomplex))
        yield Sample(np.float64(1.0), complex=function in (np.isreal, np.iscomplex))


for _property in (np.iscomplex, np.isneginf, np.isposinf, np.isreal):
    _declare_property(_property)


discrete(
    np.allclose,
    np.argwhere,
    np.array_equal,
    np.array_equiv,
    np.diag_indices_from,
    np.flatnonzero,
    np.isin,
    np.nonzero,
    np.ravel_multi_index,
    np.tril_indices_from,
    np.triu_indices_from,
    np.unravel_index,
)
