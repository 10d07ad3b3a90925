"""The frame of a distribution of one number: arguments, location and scale, support.

The one idea: a distribution says its formulas for the standard form only, loc 0 and scale 1, on
arguments that are valid and lie inside of its support. Everything around them is here and the
same for all. Where an argument is outside, a formula gets a harmless point instead and its result
is replaced, so no derivative comes from there, and none of it can be NaN. When everything is
inside, which is usual, nothing is replaced at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from funcgrad.core.zero import dtype_of
from funcgrad.scipy.stats._wrapped import NUMBERS, Wrapped, all_of, floats, none_of, selected

__all__ = ["Continuous", "Discrete", "Distribution", "Positive"]

Formula = Callable[..., Any]


def _both(first: Any, second: Any) -> Any:
    return second if first is True else first if second is True else np.logical_and(first, second)


class Distribution(Wrapped):
    """What distributions of one number have in common."""

    # The names of the shape parameters, and values that are valid.
    _shapes: ClassVar[tuple[str, ...]] = ()
    _typical: ClassVar[tuple[float, ...]] = ()
    # The names of the parameters that many distributions have.
    _common: ClassVar[tuple[str, ...]] = ()
    # The bounds of the standard form, if they depend on no parameter, and a point inside.
    _support: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    _middle: ClassVar[float] = 0.0

    # The formulas of the standard form; None where there is none, and SciPy answers.
    _log_density: Any = None
    _cdf: Any = None
    _ppf: Any = None
    _entropy: Any = None
    _mean: Any = None
    _var: Any = None

    def __init__(self, name: str):
        super().__init__(name)
        self._parameters = (*self._shapes, *self._common)

    # What a distribution may say anew

    def _valid(self, *shapes: Any) -> Any:
        """Tell where the shape parameters are valid: where they are positive."""
        valid: Any = True
        for shape in shapes:
            valid = _both(valid, np.greater(shape, 0))
        return valid

    def _bounds(self, *shapes: Any) -> tuple[Any, Any]:
        """Return the bounds of the support of the standard form."""
        return self._support

    def _inner(self, *shapes: Any) -> Any:
        """Return a point inside of the support of the standard form."""
        return self._middle

    def _density(self, x: Any, *shapes: Any) -> Any:
        logarithm = self._log_density(x, *shapes)
        pole = np.equal(logarithm, np.inf)
        if none_of(pole):
            return np.exp(logarithm)
        # Where the density is infinite it has no derivative; 0, as the terms of it may cancel.
        return selected(pole, np.inf, np.exp(selected(pole, 0.0, logarithm)))

    def _sf(self, x: Any, *shapes: Any) -> Any:
        return 1 - self._cdf(x, *shapes)

    def _logcdf(self, x: Any, *shapes: Any) -> Any:
        return _log_share(self._cdf(x, *shapes), self._sf(x, *shapes))

    def _logsf(self, x: Any, *shapes: Any) -> Any:
        return _log_share(self._sf(x, *shapes), self._cdf(x, *shapes))

    def _isf(self, q: Any, *shapes: Any) -> Any:
        return self._ppf(1 - q, *shapes)

    # Arguments

    def _split(self, first: Sequence[Any], args: Any, kwds: Any) -> tuple[Any, Any, Any, Any]:
        """Return the first argument, shape parameters, loc and scale; None for a default."""
        names = self._parameters
        if len(args) > len(names):
            raise TypeError(
                f"{self.name} takes at most {len(names)} parameters "
                f"({', '.join(names)}), got {len(args)}"
            )
        given = dict(zip(names, args, strict=False))
        for name, value in kwds.items():
            if name not in names:
                raise TypeError(f"{self.name} got an unexpected keyword argument {name!r}")
            if name in given:
                raise TypeError(f"{self.name} got multiple values for argument {name!r}")
            given[name] = value
        for name in self._shapes:
            if name not in given:
                raise TypeError(f"{self.name} misses the argument {name!r}")
        given = {name: given[name] for name in names if name in given}
        for name, default in (("loc", 0), ("scale", 1)):
            value = given.get(name)
            if value is None or (type(value) in NUMBERS and value == default):
                given.pop(name, None)
        count = len(first)
        values = floats([*first, *given.values()])
        named = dict(zip(given, values[count:], strict=True))
        shapes = [named[name] for name in self._shapes]
        return (values[0] if count else None), shapes, named.get("loc"), named.get("scale")

    def _checked(self, shapes: list[Any], scale: Any) -> tuple[Any, list[Any], Any]:
        """Return where all parameters are valid, and the parameters with valid ones elsewhere."""
        valid = self._valid(*shapes) if shapes else True
        if not all_of(valid):
            shapes = [selected(valid, v, t) for v, t in zip(shapes, self._typical, strict=True)]
        if scale is not None:
            positive = np.greater(scale, 0)
            if not all_of(positive):
                scale = selected(positive, scale, 1.0)
            valid = _both(valid, positive)
        return valid, shapes, scale

    def _function(
        self,
        formula: Formula,
        x: Any,
        args: Any,
        kwds: Any,
        below: float,
        above: float,
        inside_of: Callable[..., Any],
        finish: Callable[[Any, Any], Any] | None = None,
    ) -> Any:
        """Evaluate a function of a point.

        Parameters
        ----------
        formula : callable
            For the standard form, inside of the support.
        x, args, kwds
            As the user gave them.
        below, above : float
            The values on either side of the support.
        inside_of : callable
            ``inside_of(x, lower, upper)`` says where the formula holds.
        finish : callable, optional
            ``finish(value, scale)``, where a scale is given.
        """
        x, shapes, loc, scale = self._split((x,), args, kwds)
        given = (x, *shapes, loc, scale)
        valid, shapes, scale = self._checked(shapes, scale)
        if loc is not None:
            x = np.subtract(x, loc)
        if scale is not None:
            x = np.divide(x, scale)
        lower, upper = self._bounds(*shapes)
        inside = inside_of(x, lower, upper)
        if all_of(inside) and all_of(valid):
            value = formula(x, *shapes)
            return value if scale is None or finish is None else finish(value, scale)
        value = formula(selected(inside, x, self._inner(*shapes)), *shapes)
        if scale is not None and finish is not None:
            value = finish(value, scale)
        if below == above:
            value = selected(inside, value, below)
        else:
            one = dtype_of(value).type
            beyond = selected(self._is_above(x, upper), one(above), one(below))
            value = selected(inside, value, beyond)
        defined = _both(valid, np.logical_not(np.isnan(x)))
        return value if all_of(defined) else selected(defined, value, _undefined(given))

    def _is_above(self, x: Any, upper: Any) -> Any:
        return np.greater_equal(x, upper)

    def _quantile(self, formula: Formula, q: Any, args: Any, kwds: Any, *, rising: bool) -> Any:
        """Evaluate a function of a probability, to `loc` and `scale`."""
        q, shapes, loc, scale = self._split((q,), args, kwds)
        given = (q, *shapes, loc, scale)
        valid, shapes, scale = self._checked(shapes, scale)
        inside = np.logical_and(np.greater(q, 0), np.less(q, 1))
        if all_of(inside) and all_of(valid):
            return _moved(formula(q, *shapes), loc, scale)
        value = _moved(formula(selected(inside, q, 0.5), *shapes), loc, scale)
        # As numbers of the dtype of the result, which they do not decide.
        one = dtype_of(value).type
        ends = [one(end) if type(end) in NUMBERS else end for end in self._ends(*shapes)]
        first, last = (_moved(end, loc, scale) for end in (ends if rising else reversed(ends)))
        value = selected(inside, value, selected(np.equal(q, 0), first, last))
        possible = np.logical_and(np.greater_equal(q, 0), np.less_equal(q, 1))
        defined = _both(valid, possible)
        return value if all_of(defined) else selected(defined, value, _undefined(given))

    def _ends(self, *shapes: Any) -> tuple[Any, Any]:
        """Return the quantiles of probability 0 and 1."""
        return self._bounds(*shapes)

    def _number(self, formula: Formula, args: Any, kwds: Any, kind: str) -> Any:
        """Evaluate a function of the parameters alone."""
        _, shapes, loc, scale = self._split((), args, kwds)
        given = (*shapes, loc, scale)
        valid, shapes, scale = self._checked(shapes, scale)
        value = formula(*shapes)
        if kind == "location":
            value = _moved(value, loc, scale)
        elif scale is not None:
            value = value * np.square(scale) if kind == "square" else value + np.log(scale)
        if type(value) in NUMBERS:
            value = np.float64(value)
        return value if all_of(valid) else selected(valid, value, _undefined(given))

    # Methods with the same words for all

    def ppf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        """Return the quantile of probability `q`: the inverse of `cdf`.

        Where the distribution has no formula for it, SciPy answers, without derivatives.
        """
        if self._ppf is None:
            return self._fallback("ppf", (q, *args), kwds)
        return self._quantile(self._ppf, q, args, kwds, rising=True)

    def isf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        """Return the point that is exceeded with probability `q`: the inverse of `sf`."""
        if self._ppf is None:
            return self._fallback("isf", (q, *args), kwds)
        return self._quantile(self._isf, q, args, kwds, rising=False)

    def median(self, *args: Any, **kwds: Any) -> Any:
        """Return the quantile of probability one half."""
        return self.ppf(0.5, *args, **kwds)

    def mean(self, *args: Any, **kwds: Any) -> Any:
        """Return the expected value."""
        if self._mean is None:
            return self._fallback("mean", args, kwds)
        return self._number(self._mean, args, kwds, "location")

    def var(self, *args: Any, **kwds: Any) -> Any:
        """Return the variance."""
        if self._var is None:
            return self._fallback("var", args, kwds)
        return self._number(self._var, args, kwds, "square")

    def std(self, *args: Any, **kwds: Any) -> Any:
        """Return the standard deviation."""
        return np.sqrt(self.var(*args, **kwds))

    def entropy(self, *args: Any, **kwds: Any) -> Any:
        """Return the entropy, in nats."""
        if self._entropy is None:
            return self._fallback("entropy", args, kwds)
        return self._number(self._entropy, args, kwds, "logarithm")


def _undefined(values: Sequence[Any]) -> Any:
    """Return NaN that depends on all values, so that each derivative is NaN as well."""
    total: Any = None
    for value in values:
        if value is not None:
            part = np.multiply(value, np.nan)
            total = part if total is None else total + part
    return total


def _log_share(part: Any, rest: Any) -> Any:
    """Return the logarithm of a part of 1; where it is nearly 1, by the rest, which is exact."""
    large = np.greater(part, 0.5)
    with np.errstate(divide="ignore"):  # it has underflowed
        small = np.log(selected(large, 0.5, part))
    return selected(large, np.log1p(-selected(large, rest, 0.5)), small)


def _moved(value: Any, loc: Any, scale: Any) -> Any:
    """Return a point of the standard form in the units of the user."""
    infinite = isinstance(value, float | np.floating) and np.isinf(value)  # and so it remains
    if scale is not None and not infinite:
        value = value * scale
    if loc is not None:
        value = value + loc
    return value


def _inside_open(x: Any, lower: Any, upper: Any) -> Any:
    return np.logical_and(np.less(lower, x), np.less(x, upper))


def _inside_closed(x: Any, lower: Any, upper: Any) -> Any:
    inside = np.isfinite(x)  # an infinite value has density 0
    if not (isinstance(lower, float) and lower == -np.inf):
        inside = np.logical_and(inside, np.less_equal(lower, x))
    if not (isinstance(upper, float) and upper == np.inf):
        inside = np.logical_and(inside, np.less_equal(x, upper))
    return inside


def _inside_counts(k: Any, lower: Any, upper: Any) -> Any:
    return np.logical_and(_inside_closed(k, lower, upper), np.equal(np.floor(k), k))


def _inside_steps(k: Any, lower: Any, upper: Any) -> Any:
    return np.logical_and(np.less_equal(lower, k), np.less(k, upper))


def _less_log(value: Any, scale: Any) -> Any:
    return value - np.log(scale)


class Continuous(Distribution):
    """A distribution with a density.

    Every method takes a point (or a probability), then the shape parameters, `loc` and `scale`, by
    position or by name, as in `scipy.stats`. All of them broadcast, and all may be traced.
    """

    _common = ("loc", "scale")
    # Whether the density is defined at the bounds of the support.
    _closed: ClassVar[bool] = True

    def logpdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the density: -inf outside of the support."""
        within = _inside_closed if self._closed else _inside_open
        return self._function(self._log_density, x, args, kwds, -np.inf, -np.inf, within, _less_log)

    def pdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the density: 0 outside of the support."""
        within = _inside_closed if self._closed else _inside_open
        return self._function(self._density, x, args, kwds, 0.0, 0.0, within, np.divide)

    def cdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the probability of values up to `x`."""
        if self._cdf is None:
            return self._fallback("cdf", (x, *args), kwds)
        return self._function(self._cdf, x, args, kwds, 0.0, 1.0, _inside_open)

    def sf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the probability of values above `x`."""
        if self._cdf is None:
            return self._fallback("sf", (x, *args), kwds)
        return self._function(self._sf, x, args, kwds, 1.0, 0.0, _inside_open)

    def logcdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of `cdf`."""
        if self._cdf is None:
            return self._fallback("logcdf", (x, *args), kwds)
        return self._function(self._logcdf, x, args, kwds, -np.inf, 0.0, _inside_open)

    def logsf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of `sf`."""
        if self._cdf is None:
            return self._fallback("logsf", (x, *args), kwds)
        return self._function(self._logsf, x, args, kwds, 0.0, -np.inf, _inside_open)


class Positive(Continuous):
    """A distribution of positive numbers."""

    _support = (0.0, np.inf)
    _middle = 1.0


class Discrete(Distribution):
    """A distribution of integers.

    Every method takes a count `k` (or a probability), then the shape parameters and `loc`, by
    position or by name, as in `scipy.stats`. The probability of what is no integer is 0. The
    derivative of `pmf` and `logpmf` in `k`, and in a parameter that is an integer, is that of the
    formula, which continues it smoothly; `cdf` is constant between integers.
    """

    _common = ("loc",)

    def logpmf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the probability of `k`."""
        return self._function(self._log_density, k, args, kwds, -np.inf, -np.inf, _inside_counts)

    def pmf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """Return the probability of `k`."""
        return self._function(self._density, k, args, kwds, 0.0, 0.0, _inside_counts)

    def _steps(
        self, name: str, formula: Formula, k: Any, args: Any, kwds: Any, ends: tuple[float, float]
    ) -> Any:
        if self._cdf is None:
            return self._fallback(name, (k, *args), kwds)

        def at_floor(x: Any, *shapes: Any) -> Any:
            return formula(np.floor(x), *shapes)

        return self._function(at_floor, k, args, kwds, *ends, _inside_steps)

    def cdf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """Return the probability of values up to `k`."""
        return self._steps("cdf", self._cdf, k, args, kwds, (0.0, 1.0))

    def sf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """Return the probability of values above `k`."""
        return self._steps("sf", self._sf, k, args, kwds, (1.0, 0.0))

    def logcdf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of `cdf`."""
        return self._steps("logcdf", self._logcdf, k, args, kwds, (-np.inf, 0.0))

    def logsf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of `sf`."""
        return self._steps("logsf", self._logsf, k, args, kwds, (0.0, -np.inf))

    def _ends(self, *shapes: Any) -> tuple[Any, Any]:
        lower, upper = self._bounds(*shapes)
        return lower - 1, upper  # as SciPy: the first point before any probability
