"""Functions of samples: `mode`, `rankdata`, `sem`, `zscore`, `entropy`, means and moments.

Plain values go to SciPy's own function. For traced ones the same is composed of NumPy functions,
for SciPy's default ``nan_policy="propagate"``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from scipy import special, stats

from funcgrad.core.batch import along
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import shape_of
from funcgrad.errors import MissingRuleError, user_line
from funcgrad.rules.spelling import array_of, holds_tracer

__all__ = [
    "entropy",
    "gmean",
    "hmean",
    "kurtosis",
    "mode",
    "moment",
    "rankdata",
    "sem",
    "skew",
    "variation",
    "zscore",
]


def _in_place_of(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Declare what is called instead of SciPy's function when an argument is traced."""

    def declare(composed: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(composed)
        def either(*args: Any, **kwds: Any) -> Any:
            if not any(map(holds_tracer, (*args, *kwds.values()))):
                return function(*args, **kwds)
            policy = kwds.pop("nan_policy", "propagate")
            if policy != "propagate":
                raise MissingRuleError(
                    f"scipy.stats.{composed.__name__} has no rule for nan_policy={policy!r}",
                    where=user_line(),
                    fix='use "propagate", and np.nanmean and its like for what leaves out NaN',
                )
            return composed(*args, **kwds)

        return either

    return declare


def _count(x: Any, axis: Any) -> int:
    """Return how many elements there are along `axis`."""
    shape = shape_of(x)
    if axis is None:
        return math.prod(shape)
    return math.prod(shape[k] for k in normalize_axis_tuple(axis, len(shape)))


@_in_place_of(stats.sem)
def sem(a: Any, axis: Any = 0, ddof: int = 1, *, keepdims: bool = False) -> Any:
    """Return the standard error of the mean, as `scipy.stats.sem`.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad.scipy.stats import sem
    >>> float(sem(np.array([1.0, 2.0, 3.0, 2.0, 2.0]), ddof=0)) == (0.4 / 5) ** 0.5
    True
    """
    a = array_of(a)
    spread = np.std(a, axis=axis, ddof=ddof, keepdims=keepdims)
    return spread / math.sqrt(_count(a, axis))


@_in_place_of(stats.zscore)
def zscore(a: Any, axis: Any = 0, ddof: int = 0) -> Any:
    """Return how many standard deviations each element is from the mean, as `scipy.stats.zscore`.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad.scipy.stats import zscore
    >>> zscore(np.array([1.0, 3.0]))
    array([-1.,  1.])
    """
    a = array_of(a)
    mean = np.mean(a, axis=axis, keepdims=True)
    return (a - mean) / np.std(a, axis=axis, ddof=ddof, keepdims=True)


@_in_place_of(stats.variation)
def variation(a: Any, axis: Any = 0, *, ddof: int = 0, keepdims: bool = False) -> Any:
    """Return the standard deviation by the mean, as `scipy.stats.variation`.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad.scipy.stats import variation
    >>> float(variation(np.array([1.0, 3.0])))
    0.5
    """
    spread = np.std(a, axis=axis, ddof=ddof, keepdims=keepdims)
    return spread / np.mean(a, axis=axis, keepdims=keepdims)


@_in_place_of(stats.entropy)
def entropy(
    pk: Any, qk: Any = None, base: Any = None, axis: Any = 0, *, keepdims: bool = False
) -> Any:
    """Return the entropy of probabilities, or that relative to others, as `scipy.stats.entropy`.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad.scipy.stats import entropy
    >>> round(float(entropy(np.array([2.0, 2.0]), base=2)), 12)
    1.0
    """
    pk = array_of(pk)
    pk = pk / np.sum(pk, axis=axis, keepdims=True)
    if qk is None:
        terms = special.entr(pk)
    else:
        qk = array_of(qk)
        terms = special.rel_entr(pk, qk / np.sum(qk, axis=axis, keepdims=True))
    total = np.sum(terms, axis=axis, keepdims=keepdims)
    return total if base is None else total / np.log(base)


@_in_place_of(stats.gmean)
def gmean(
    a: Any, axis: Any = 0, dtype: Any = None, weights: Any = None, *, keepdims: bool = False
) -> Any:
    """Return the geometric mean, as `scipy.stats.gmean`.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad.scipy.stats import gmean
    >>> round(float(gmean(np.array([1.0, 4.0]))), 12)
    2.0
    """
    logs = np.log(_of_dtype(a, dtype))
    return np.exp(_average(logs, axis, weights, keepdims))


@_in_place_of(stats.hmean)
def hmean(
    a: Any, axis: Any = 0, dtype: Any = None, *, weights: Any = None, keepdims: bool = False
) -> Any:
    """Return the harmonic mean, as `scipy.stats.hmean`.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad.scipy.stats import hmean
    >>> round(float(hmean(np.array([1.0, 3.0]))), 12)
    1.5
    """
    inverse = 1 / _of_dtype(a, dtype)
    return 1 / _average(inverse, axis, weights, keepdims)


def _average(x: Any, axis: Any, weights: Any, keepdims: Any) -> Any:
    return np.average(x, axis=axis, weights=weights, keepdims=keepdims)


def _of_dtype(a: Any, dtype: Any) -> Any:
    a = array_of(a)
    return a if dtype is None else a.astype(dtype)


@_in_place_of(stats.moment)
def moment(
    a: Any, order: Any = 1, axis: Any = 0, *, center: Any = None, keepdims: bool = False
) -> Any:
    """Return the mean of a power of the deviations, as `scipy.stats.moment`.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad.scipy.stats import moment
    >>> float(moment(np.array([1.0, 3.0]), order=2))
    1.0
    """
    a = array_of(a)
    orders = np.asarray(order)
    if orders.ndim:
        parts = [moment(a, k, axis, center=center, keepdims=keepdims) for k in orders.tolist()]
        return np.stack(parts)
    if center is None:
        center = np.mean(a, axis=axis, keepdims=True)
    return np.mean(np.power(a - center, int(order)), axis=axis, keepdims=keepdims)


@_in_place_of(stats.skew)
def skew(a: Any, axis: Any = 0, bias: bool = True, *, keepdims: bool = False) -> Any:
    """Return the skewness, as `scipy.stats.skew`.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad.scipy.stats import skew
    >>> float(skew(np.array([1.0, 2.0, 3.0])))
    0.0
    """
    second, third = (moment(a, k, axis, keepdims=keepdims) for k in (2, 3))
    ratio = third / np.power(second, 1.5)
    n = _count(array_of(a), axis)
    return ratio if bias or n < 3 else ratio * math.sqrt(n * (n - 1)) / (n - 2)


@_in_place_of(stats.kurtosis)
def kurtosis(
    a: Any, axis: Any = 0, fisher: bool = True, bias: bool = True, *, keepdims: bool = False
) -> Any:
    """Return the kurtosis, less the 3 of the normal distribution, as `scipy.stats.kurtosis`.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad.scipy.stats import kurtosis
    >>> float(kurtosis(np.array([1.0, 3.0])))
    -2.0
    """
    second, fourth = (moment(a, k, axis, keepdims=keepdims) for k in (2, 4))
    excess = fourth / np.square(second) - 3
    n = _count(array_of(a), axis)
    if not bias and n > 3:
        excess = ((n + 1) * excess + 6) * (n - 1) / ((n - 2) * (n - 3))
    return excess if fisher else excess + 3


@primitive(name="scipy_stats_rankdata")
def _ranks(a: Any, *, method: str = "average", axis: Any = None) -> Any:
    return stats.rankdata(a, method, axis=axis)


_ranks.not_differentiable("ranks are piecewise constant")
along(_ranks)


@_ranks.def_samples
def _ranks_samples(rng: Any) -> Iterator[Sample]:
    for axis in (None, 0, -1):
        yield Sample(rng.normal(size=(3, 4)), fun=rankdata, axis=axis, complex=False)
    yield Sample(np.array([2.0, 1.0, 2.0]), "min", fun=rankdata, complex=False)


@_in_place_of(stats.rankdata)
def rankdata(a: Any, method: str = "average", *, axis: int | None = None) -> Any:
    """Return the rank of each element, as `scipy.stats.rankdata`; it carries no derivative.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad.scipy.stats import rankdata
    >>> rankdata(np.array([3.0, 1.0, 3.0]))
    array([2.5, 1. , 2.5])
    """
    return _ranks(array_of(a), method=method, axis=axis)


@primitive(name="scipy_stats_mode")
def _modes(a: Any, *, axis: Any = 0) -> Any:
    """Return the commonest value along `axis` and its count, both with that axis kept."""
    found = stats.mode(a, axis=axis, keepdims=True)
    # Of nothing SciPy makes float64 counts.
    return found.mode, found.count if np.size(found.count) else found.count.astype(np.int64)


along(_modes)


@_modes.def_jvp
def _modes_jvp(primals: Any, tangents: Any, out: Any, *, axis: Any) -> Any:
    (a,), (a_dot,), (value, count) = primals, tangents, out
    equal = np.equal(a, value)
    return np.sum(_or_zero(equal, a_dot), axis=axis, keepdims=True) / count, None


@_modes.def_vjp
def _modes_vjp(primals: Any, out: Any, *, axis: Any) -> Any:
    (a,), (value, count) = primals, out
    equal = np.equal(a, value)  # these share the cotangent, as those that tie for a maximum do

    def mode_pullback(out_bar: Any) -> Any:
        value_bar, _ = out_bar
        return None if value_bar is None else _or_zero(equal, value_bar / count)

    return mode_pullback


def _or_zero(mask: Any, x: Any) -> Any:
    """Return `x` where `mask` is true, else 0."""
    return np.where(mask, x, 0.0)


@_modes.def_samples
def _modes_samples(rng: Any) -> Iterator[Sample]:
    for axis in (None, 0, 1, -1):
        yield Sample(rng.normal(size=(3, 4)), fun=mode, axis=axis, complex=False)
    x = np.array([[1.0, 2.0, 2.0], [3.0, 3.0, 3.0]])
    yield Sample(x, fun=mode, axis=1, keepdims=True, kinks=True, complex=False)


@_in_place_of(stats.mode)
def mode(a: Any, axis: int | None = 0, *, keepdims: bool = False) -> Any:
    """Return the commonest value and its count, as `scipy.stats.mode`.

    The elements that are equal to it share its derivative.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad.scipy.stats import mode
    >>> float(mode(np.array([1.0, 2.0, 2.0])).mode)
    2.0
    """
    a = array_of(a)
    if axis is None:
        value, count = _modes(np.reshape(a, (-1,)), axis=0)
        if keepdims:
            ones = (1,) * len(shape_of(a))
            value, count = np.reshape(value, ones), np.reshape(count, ones)
        axis = 0
    else:
        value, count = _modes(a, axis=axis)
    if not keepdims:
        value, count = np.squeeze(value, axis), np.squeeze(count, axis)
        if shape_of(value) == ():
            value, count = value[()], count[()]
    return _ModeResult(value, count)


_ModeResult = type(stats.mode([0]))
