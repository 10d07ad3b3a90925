"""Sets: each value of the result is an element of an argument, and has its derivative.

NumPy itself says which values there are; each is then looked up among the elements, of which the
first that equals it has the derivative, as it is in `numpy.unique`. How many there are depends on
the values, so under `vmap` these functions are refused where the values differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.level import detached, looked_at
from funcgrad.core.primitive import Sample, overrides
from funcgrad.rules.reducing import cast
from funcgrad.rules.spelling import array_of, refuse_batched

__all__: list[str] = []

_ONE: Any = {"complex": False, "batch": False}  # of samples


def _plain(x: Any, name: str) -> Any:
    refuse_batched(x, f"numpy.{name} gives as many elements as the values ask for")
    return looked_at(x, "which elements are the same")


def _looked_up(values: Any, *arrays: Any) -> Any:
    """Return `values` as elements of the arrays: the first of each."""
    elements = np.concatenate([np.ravel(x) for x in arrays])
    plain = detached(elements)
    order = np.argsort(plain, kind="stable")
    first = np.searchsorted(plain[order], values)
    return cast(np.take(elements, order[first]), values.dtype)


def _two(function: Any, ar1: Any, ar2: Any, *args: Any) -> Any:
    ar1, ar2 = array_of(ar1), array_of(ar2)
    name = function.__name__
    return ar1, ar2, function(_plain(ar1, name), _plain(ar2, name), *args)


@overrides(np.union1d)
def union1d(ar1, ar2):
    """Values that are in either array."""
    ar1, ar2, values = _two(np.union1d, ar1, ar2)
    return _looked_up(values, ar1, ar2)


@overrides(np.setdiff1d)
def setdiff1d(ar1, ar2, assume_unique=False):
    """Values that are in the first array alone."""
    ar1, ar2, values = _two(np.setdiff1d, ar1, ar2, assume_unique)
    return _looked_up(values, ar1)


@overrides(np.setxor1d)
def setxor1d(ar1, ar2, assume_unique=False):
    """Values that are in one of the arrays, and not in the other."""
    ar1, ar2, values = _two(np.setxor1d, ar1, ar2, assume_unique)
    return _looked_up(values, ar1, ar2)


@overrides(np.intersect1d)
def intersect1d(ar1, ar2, assume_unique=False, return_indices=False):
    """Values that are in both arrays; the derivative is that of the first array."""
    ar1, ar2, found = _two(np.intersect1d, ar1, ar2, assume_unique, return_indices)
    if return_indices:
        values, *indices = found
        return _looked_up(values, ar1, ar2), *indices
    return _looked_up(found, ar1, ar2)


@union1d.def_samples
@setdiff1d.def_samples
@setxor1d.def_samples
def pair_samples(rng):
    x, y = rng.normal(size=4), rng.normal(size=(2, 2))
    yield Sample(x, y, **_ONE)
    yield Sample(np.array([3.0, 1.0, 3.0]), [1, 2], kinks=True, **_ONE)
    yield Sample(x, x[[2, 0]], kinks=True, **_ONE)


@intersect1d.def_samples
def intersect1d_samples(rng):
    x = rng.normal(size=4)
    yield Sample(x, x[[2, 0]], kinks=True, **_ONE)
    yield Sample(x, x[[2, 0]], return_indices=True, kinks=True, **_ONE)
    yield Sample(np.array([3.0, 1.0, 3.0]), [1, 2], kinks=True, **_ONE)


# The functions of the array API, each with some of what `numpy.unique` returns


def _unique(function: Any, x: Any) -> Any:
    x = array_of(x)
    plain = _plain(x, function.__name__)
    found = function(plain)
    values, *rest = found if isinstance(found, tuple) else (found,)
    plain = np.ravel(plain)
    order = np.argsort(plain, kind="stable")
    index = order[np.searchsorted(plain[order], values)]  # NumPy need not have sorted them
    nan = np.isnan(values)
    index[nan] = np.flatnonzero(np.isnan(plain))[: np.sum(nan)]  # each is a value of its own
    made = np.take(np.ravel(x), index)
    return type(found)(made, *rest) if isinstance(found, tuple) else made


@overrides(np.unique_values)
def unique_values(x):
    """The different values of an array."""
    return _unique(np.unique_values, x)


@overrides(np.unique_counts)
def unique_counts(x):
    """The different values, and how often each occurs."""
    return _unique(np.unique_counts, x)


@overrides(np.unique_inverse)
def unique_inverse(x):
    """The different values, and where each element is among them."""
    return _unique(np.unique_inverse, x)


@overrides(np.unique_all)
def unique_all(x):
    """The different values, where they occur first, where elements are, how often they occur."""
    return _unique(np.unique_all, x)


@unique_values.def_samples
@unique_counts.def_samples
@unique_inverse.def_samples
@unique_all.def_samples
def unique_samples(rng):
    yield Sample(rng.normal(size=4), **_ONE)
    yield Sample(rng.normal(size=(2, 3)), **_ONE)
    yield Sample(np.array([2.0, 1.0, 2.0]), kinks=True, **_ONE)
    yield Sample(np.array([2.0, np.nan, 1.0, np.nan]), kinks=True, **_ONE)
