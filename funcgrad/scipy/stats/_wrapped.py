"""What stands for a distribution of SciPy's, with its parameters or without, and three helpers.

The one idea: everything that has no formula here is SciPy's own, looked up when it is asked for and
called with plain values only. A traced one is refused by name, not converted.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import stats

from funcgrad.core.alternatives import names_with_rules
from funcgrad.core.dispatch import missing
from funcgrad.core.level import TracerBase, concrete, top_trace
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.scipy.adopt import plain_only
from funcgrad.rules.spelling import array_of, holds_tracer

__all__ = [
    "NUMBERS",
    "Frozen",
    "Wrapped",
    "all_of",
    "floats",
    "none_of",
    "selected",
    "untraced",
    "without_formula",
]

NUMBERS = (float, int, bool, complex)


def floats(values: Sequence[Any]) -> list[Any]:
    """Return arrays or NumPy numbers of floating dtype, by NumPy's rules of promotion.

    Python numbers take the dtype of the arrays beside them.
    """
    values = [v if isinstance(v, NUMBERS) else array_of(v) for v in values]
    weak = [type(concrete(v)) in NUMBERS for v in values]
    strong = [dtype_of(v) for v, is_weak in zip(values, weak, strict=True) if not is_weak]
    if all(dtype.kind in "fc" for dtype in strong) and not any(weak):
        return values
    numbers = [v for v, is_weak in zip(values, weak, strict=True) if is_weak]
    least = 0j if any(isinstance(concrete(v), complex) for v in numbers) else 0.0
    dtype = np.result_type(*strong, least)
    return [
        np.multiply(v, dtype.type(1)) if is_weak or dtype_of(v).kind not in "fc" else v
        for v, is_weak in zip(values, weak, strict=True)
    ]


def selected(mask: Any, x: Any, otherwise: Any) -> Any:
    """Return `x` where `mask` is true; a scalar stays one."""
    chosen = np.where(mask, x, otherwise)
    return chosen[()] if shape_of(chosen) == () else chosen


def none_of(mask: Any) -> bool:
    """Tell whether a mask is false throughout, as far as that may be asked."""
    return not isinstance(mask, TracerBase) and not np.any(mask)


def all_of(mask: Any) -> bool:
    """Tell whether a mask is true throughout, as far as that may be asked."""
    return mask is True or (not isinstance(mask, TracerBase) and bool(np.all(mask)))


# Of methods that have no formula anywhere, and of distributions: what to write instead.
_METHODS = {
    "rvs": "draw with funcgrad.random, and shift and scale what was drawn",
    "fit": "fit plain samples, or minimize the sum of -logpdf with funcgrad.optim",
    "interval": "use ppf of both probabilities",
    "stats": "use mean and var",
    "expect": "use funcgrad.scipy.integrate.quad of the function times pdf",
    "moment": "use mean and var, or funcgrad.scipy.integrate.quad of the power times pdf",
}
_DISTRIBUTIONS = {
    "chi": "use chi2 of x**2: logpdf is chi2.logpdf(x**2, df) + log(2 * x), cdf chi2.cdf(x**2, df)",
    "dweibull": "use weibull_min of abs(x), of which the density is half",
    "exponweib": "write its density with weibull_min.logcdf and weibull_min.logpdf",
    "invgauss": "write its density with numpy, and its cdf with norm.cdf",
    "loggamma": "use gamma of exp(x): logpdf is gamma.logpdf(exp(x), c) + x",
    "loguniform": "use uniform of log(x)",
    "matrix_normal": "use multivariate_normal of the vector of all elements",
    "maxwell": "use chi2 of x**2: logpdf is chi2.logpdf(x**2, 3) + log(2 * x)",
    "multivariate_t": "write its density with scipy.special.gammaln and numpy.linalg.solve",
    "nakagami": "use gamma of x**2",
    "ncx2": "write its density with scipy.special.ive",
    "reciprocal": "use uniform of log(x)",
    "truncexpon": "use expon, less what is cut off",
    "weibull_max": "use weibull_min of -x",
    "wishart": "write its density with numpy.linalg.slogdet and scipy.special.multigammaln",
}


def _instead(name: str) -> str:
    """Say what to write instead of a distribution, or of one of its methods."""
    distribution, _, method = name.partition(".")
    if method in _METHODS:
        return _METHODS[method]
    if distribution in _DISTRIBUTIONS:
        return _DISTRIBUTIONS[distribution]
    have = [own for own in names_with_rules("scipy.stats") if hasattr(stats, own)]
    have = [own for own in have if own != distribution and hasattr(getattr(stats, own), "rvs")]
    near = difflib.get_close_matches(distribution, have, n=1, cutoff=0.4) or ["norm"]
    return (
        "write the formula with functions of numpy and scipy.special; "
        f"a distribution that has a rule is scipy.stats.{near[0]}"
    )


def untraced(name: str, function: Callable[..., Any], args: Sequence[Any], kwds: Any) -> Any:
    """Call a function of SciPy that has no counterpart here, with plain values only."""
    everything = (*args, *kwds.values())
    if any(map(holds_tracer, everything)):
        trace = top_trace([v for v in everything if isinstance(v, TracerBase)])
        if trace is None or trace.level > 0:
            raise missing(f"scipy.stats.{name}", everything, _instead(name))
        args = [concrete(v) for v in args]  # constants
        kwds = {key: concrete(v) for key, v in kwds.items()}
    return function(*args, **kwds)


class Wrapped:
    """A distribution of SciPy's name: what has no formula here is SciPy's own, for plain values.

    Attributes
    ----------
    name : str
        As in `scipy.stats`.
    """

    def __init__(self, name: str):
        self.name = name
        self.__name__ = name
        self.__doc__ = type(self).__doc__
        self._of_scipy = getattr(stats, name)

    def __repr__(self) -> str:
        return f"<distribution {self.name}>"

    def __call__(self, *args: Any, **kwds: Any) -> Frozen:
        """Hold the parameters fixed: ``norm(loc, scale).cdf(x)`` is ``norm.cdf(x, loc, scale)``."""
        return Frozen(self, args, kwds)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        found = getattr(self._of_scipy, name)  # such as rvs and fit
        if not callable(found):
            return found

        def of_scipy(*args: Any, **kwds: Any) -> Any:
            return untraced(f"{self.name}.{name}", found, args, kwds)

        return of_scipy

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._of_scipy)})

    def freeze(self, *args: Any, **kwds: Any) -> Frozen:
        """Hold the parameters fixed, as calling the distribution does."""
        return self(*args, **kwds)

    def _fallback(self, name: str, args: Any, kwds: Any) -> Any:
        return untraced(f"{self.name}.{name}", getattr(self._of_scipy, name), args, kwds)


class Frozen:
    """A distribution with its parameters: ``norm(loc, scale)``.

    Its methods are those of the distribution, without the parameters.
    """

    def __init__(self, dist: Any, args: tuple[Any, ...], kwds: dict[str, Any]):
        self.dist, self.args, self.kwds = dist, args, kwds

    def __repr__(self) -> str:
        return f"<{self.dist!r} with parameters>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"'Frozen' object has no attribute {name!r}")
        if not hasattr(type(self.dist), name):  # such as rvs
            frozen = untraced(self.dist.name, self.dist._of_scipy, *self._scipys())
            return getattr(frozen, name)
        method = getattr(self.dist, name)

        def with_parameters(*first: Any, **more: Any) -> Any:
            return method(*first, *self.args, **self.kwds, **more)

        return with_parameters

    def _scipys(self) -> tuple[Any, Any]:
        """Return the arguments that SciPy's own would be made with."""
        return self.args, self.kwds


# What makes distributions of one number, and of several.
_GENERIC = (stats.rv_continuous, stats.rv_discrete, type(stats.multivariate_normal).__bases__[0])


def without_formula(value: Any, name: str) -> Any:
    """Return a function or a distribution of SciPy's so that it refuses traced values by name."""
    if isinstance(value, _GENERIC):
        return _without_formula(name)
    return plain_only(value)


@functools.cache
def _without_formula(name: str) -> Wrapped:
    return Wrapped(name)
