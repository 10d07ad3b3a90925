"""Functions of samples: `mode`, `rankdata`, `sem`, `zscore`, `entropy`, means and moments.

Values are SciPy's own, traced or not. What is differentiated is the same composed of NumPy
functions, for SciPy's default ``nan_policy="propagate"``.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from scipy import special, stats

from funcgrad.core.batch import along
from funcgrad.core.level import is_batched
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import shape_of
from funcgrad.errors import MissingRuleError, user_line
from funcgrad.rules.scipy.adopt import full_name, in_place_of
from funcgrad.rules.spelling import array_of
from funcgrad.scipy._twin import twin

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


def _propagating(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Declare what is called with traced arguments, for the usual policy for NaN."""

    def declare(traced: Callable[..., Any]) -> Callable[..., Any]:
        @in_place_of(function)
        @functools.wraps(traced)
        def either(*args: Any, **kwds: Any) -> Any:
            policy = kwds.pop("nan_policy", "propagate")
            if policy != "propagate":
                raise MissingRuleError(
                    f"{full_name(function)} has no rule for nan_policy={policy!r}",
                    where=user_line(),
                    fix='use "propagate", and np.nanmean and its like for what leaves out NaN',
                )
            return traced(*args, **kwds)

        return either

    return declare


def _differentiated(function: Callable[..., Any], *arrays: str) -> Callable[..., Any]:
    """Declare a formula for the derivatives of SciPy's function, which computes the values.

    Under `vmap` the formula computes them too, for all examples at once. It does not warn.

    Parameters
    ----------
    function : callable
        SciPy's.
    *arrays : str
        The parameters that are arrays.
    """

    def declare(composed: Callable[..., Any]) -> Any:
        signature = inspect.signature(composed)

        @_propagating(function)
        @functools.wraps(composed)
        def traced(*args: Any, **kwds: Any) -> Any:
            given = signature.bind(*args, **kwds).arguments
            named = [name for name in arrays if given.get(name) is not None]
            values = [array_of(given.pop(name)) for name in named]

            def value(*plain: Any) -> Any:
                return function(**dict(zip(named, plain, strict=True)), **given)

            def formula(*values: Any) -> Any:
                with np.errstate(all="ignore"):
                    return composed(**dict(zip(named, values, strict=True)), **given)

            if any(map(is_batched, values)):
                return formula(*values)
            return twin.bind(*values, value=value, formula=formula)

        return traced

    return declare


def _count(x: Any, axis: Any) -> int:
    """Return how many elements there are along `axis`."""
    shape = shape_of(x)
    if axis is None:
        return math.prod(shape)
    return math.prod(shape[k] for k in normalize_axis_tuple(axis, len(shape)))


def _mean(x: Any, axis: Any, keepdims: bool = False) -> Any:
    return np.sum(x, axis=axis, keepdims=keepdims) / _count(x, axis)


def _spread(x: Any, axis: Any, ddof: int, keepdims: bool = False) -> Any:
    """Return the standard deviation, NaN if there are not enough samples."""
    if _count(x, axis) <= ddof:
        return np.sum(x * np.nan, axis=axis, keepdims=keepdims) * np.nan
    return np.std(x, axis=axis, ddof=ddof, keepdims=keepdims)


@_differentiated(stats.sem, "a")
def sem(a: Any, axis: Any = 0, ddof: int = 1, *, keepdims: bool = False) -> Any:
    """Return the standard error of the mean, as `scipy.stats.sem`.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad.scipy.stats import sem
    >>> float(sem(np.array([1.0, 2.0, 3.0, 2.0, 2.0]), ddof=0)) == (0.4 / 5) ** 0.5
    True
    """
    return _spread(a, axis, ddof, keepdims) / math.sqrt(_count(a, axis))


@_differentiated(stats.zscore, "a")
def zscore(a: Any, axis: Any = 0, ddof: int = 0) -> Any:
    """Return how many standard deviations each element is from the mean, as `scipy.stats.zscore`.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad.scipy.stats import zscore
    >>> zscore(np.array([1.0, 3.0]))
    array([-1.,  1.])
    """
    return (a - _mean(a, axis, True)) / _spread(a, axis, ddof, True)


@_differentiated(stats.variation, "a")
def variation(a: Any, axis: Any = 0, *, ddof: int = 0, keepdims: bool = False) -> Any:
    """Return the standard deviation by the mean, as `scipy.stats.variation`.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad.scipy.stats import variation
    >>> float(variation(np.array([1.0, 3.0])))
    0.5
    """
    return _spread(a, axis, ddof, keepdims) / _mean(a, axis, keepdims)


@_differentiated(stats.entropy, "pk", "qk")
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
    pk = pk / np.sum(pk, axis=axis, keepdims=True)
    if qk is None:
        terms = special.entr(pk)
    else:
        terms = special.rel_entr(pk, qk / np.sum(qk, axis=axis, keepdims=True))
    total = np.sum(terms, axis=axis, keepdims=keepdims)
    return total if base is None else total / math.log(base)


@_differentiated(stats.gmean, "a", "weights")
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
    return np.exp(_average(np.log(_of_dtype(a, dtype)), axis, weights, keepdims))


@_differentiated(stats.hmean, "a", "weights")
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
    a = _of_dtype(a, dtype)
    defined = np.all(np.greater_equal(a, 0), axis=axis, keepdims=keepdims)
    # The product, and not the number NaN, so that the derivative is NaN too.
    return np.where(defined, 1, np.nan) / _average(1 / a, axis, weights, keepdims)


def _average(x: Any, axis: Any, weights: Any, keepdims: Any) -> Any:
    if weights is None:
        return _mean(x, axis, keepdims)
    return np.average(x, axis=axis, weights=weights, keepdims=keepdims)


def _of_dtype(a: Any, dtype: Any) -> Any:
    return a if dtype is None else a.astype(dtype)


@_differentiated(stats.moment, "a", "center")
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
    orders = np.asarray(order)
    if orders.ndim:
        return np.stack([_moment(a, int(k), axis, center, keepdims) for k in orders.tolist()])
    return _moment(a, int(order), axis, center, keepdims)


def _moment(a: Any, order: int, axis: Any, center: Any, keepdims: bool) -> Any:
    if center is None:
        center = _mean(a, axis, True)
    return _mean(np.power(a - center, order), axis, keepdims)


@_differentiated(stats.skew, "a")
def skew(a: Any, axis: Any = 0, bias: bool = True, *, keepdims: bool = False) -> Any:
    """Return the skewness, as `scipy.stats.skew`.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad.scipy.stats import skew
    >>> float(skew(np.array([1.0, 2.0, 3.0])))
    0.0
    """
    second, third = (_moment(a, k, axis, None, keepdims) for k in (2, 3))
    ratio = third / np.power(second, 1.5)
    n = _count(a, axis)
    return ratio if bias or n < 3 else ratio * math.sqrt(n * (n - 1)) / (n - 2)


@_differentiated(stats.kurtosis, "a")
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
    second, fourth = (_moment(a, k, axis, None, keepdims) for k in (2, 4))
    excess = fourth / np.square(second) - 3
    n = _count(a, axis)
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


@_propagating(stats.rankdata)
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


@_propagating(stats.mode)
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
