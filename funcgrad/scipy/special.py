"""SciPy's special functions for traced code: ``from funcgrad.scipy import special``.

Nearly all of scipy.special are ufuncs, which take traced values as they are: they are SciPy's own
objects here. The few that are written in Python, and would make plain arrays of their arguments,
are replaced; untraced they return what SciPy's do, because they call them.
"""

from __future__ import annotations

from typing import Any

from scipy import special as _special

from funcgrad.core.alternatives import offer
from funcgrad.core.namespace import standing_in
from funcgrad.rules.scipy import special as _rules  # declares the rules of the ufuncs too
from funcgrad.rules.scipy.adopt import in_place_of, plain_only

# What is replaced; other names are looked up in SciPy when they are asked for.
__all__ = [
    "comb",
    "factorial",
    "log_softmax",
    "logsumexp",
    "multigammaln",
    "perm",
    "polygamma",
    "softmax",
    "sph_harm_y",
    "spherical_in",
    "spherical_jn",
    "spherical_kn",
    "spherical_yn",
]


@in_place_of(_special.comb)
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    """Return the number of ways to choose `k` of `N`, as `scipy.special.comb` does.

    Examples
    --------
    >>> comb(5.0, 2.0)
    np.float64(10.0)
    """
    return _rules.counting.comb(N, k, exact=exact, repetition=repetition)


@in_place_of(_special.factorial)
def factorial(n: Any, exact: bool = False, extend: str = "zero") -> Any:
    """Return ``n!``, as `scipy.special.factorial` does.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.grad(factorial)(0.0)  # minus Euler's constant
    -0.5772156649015329
    """
    return _rules.counting.factorial(n, exact=exact, extend=extend)


@in_place_of(_special.perm)
def perm(N: Any, k: Any, exact: bool = False) -> Any:
    """Return the number of ordered choices of `k` of `N`, as `scipy.special.perm` does.

    Examples
    --------
    >>> perm(5.0, 2.0)
    np.float64(20.0)
    """
    return _rules.counting.perm(N, k, exact=exact)


@in_place_of(_special.multigammaln)
def multigammaln(a: Any, d: int) -> Any:
    """Return the logarithm of the multivariate gamma function, as `scipy.special.multigammaln`.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.grad(multigammaln)(2.5, 1)
    0.7031566406452432
    """
    return _rules.gamma.multigammaln(a, d=d)


@in_place_of(_special.polygamma)
def polygamma(n: Any, x: Any) -> Any:
    """Return the derivative of order `n` of digamma, as `scipy.special.polygamma` does.

    Examples
    --------
    >>> import funcgrad as fg
    >>> round(fg.grad(lambda x: polygamma(0, x))(1.0), 12)
    1.644934066848
    """
    return _rules.gamma.polygamma(n, x)


@in_place_of(_special.softmax)
def softmax(x: Any, axis: int | tuple[int, ...] | None = None) -> Any:
    """Return ``exp(x) / sum(exp(x))``, as `scipy.special.softmax` does.

    Examples
    --------
    >>> import numpy as np
    >>> softmax(np.array([0.0, 900.0]))
    array([0., 1.])
    """
    return _rules.exponentials.softmax(x, axis=axis)


@in_place_of(_special.log_softmax)
def log_softmax(x: Any, axis: int | tuple[int, ...] | None = None) -> Any:
    """Return ``log(softmax(x))``, as `scipy.special.log_softmax` does.

    Examples
    --------
    >>> import numpy as np
    >>> log_softmax(np.array([0.0, 900.0]))
    array([-900.,    0.])
    """
    return _rules.exponentials.log_softmax(x, axis=axis)


@in_place_of(_special.logsumexp)
def logsumexp(
    a: Any,
    axis: int | tuple[int, ...] | None = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Any:
    """Return ``log(sum(b * exp(a)))``, as `scipy.special.logsumexp` does.

    The gradient in `a` is finite wherever the result is, and where all terms are minus infinity.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.grad(logsumexp)(np.array([-np.inf, -np.inf]))
    array([0.5, 0.5])
    """
    params: dict[str, Any] = {"axis": axis, "keepdims": keepdims, "return_sign": return_sign}
    if b is None:
        return _rules.exponentials.logsumexp(a, **params)
    return _rules.exponentials.weighted_logsumexp(a, b, **params)


@in_place_of(_special.sph_harm_y)
def sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, *, diff_n: int = 0) -> Any:
    """Return spherical harmonics, as `scipy.special.sph_harm_y` does (SciPy 1.15 or later).

    With `diff_n` SciPy returns derivatives as well; that takes plain values only.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.grad(lambda theta: sph_harm_y(1, 0, theta, 0.0).real)(0.0)
    0.0
    """
    if diff_n:
        return plain_only(_special.sph_harm_y)(n, m, theta, phi, diff_n=diff_n)
    return _rules.spherical.sph_harm_y(n, m, theta, phi)


@in_place_of(_special.spherical_in)
def spherical_in(n: Any, z: Any, derivative: bool = False) -> Any:
    """Return the modified spherical Bessel function of the first kind, as SciPy does.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.grad(lambda z: spherical_in(0, z))(1.0) == spherical_in(0, 1.0, derivative=True)
    np.True_
    """
    return _rules.spherical.spherical_in(n, z, derivative=derivative)


@in_place_of(_special.spherical_jn)
def spherical_jn(n: Any, z: Any, derivative: bool = False) -> Any:
    """Return the spherical Bessel function of the first kind, as SciPy does.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.grad(lambda z: spherical_jn(0, z))(1.0) == spherical_jn(0, 1.0, derivative=True)
    np.True_
    """
    return _rules.spherical.spherical_jn(n, z, derivative=derivative)


@in_place_of(_special.spherical_kn)
def spherical_kn(n: Any, z: Any, derivative: bool = False) -> Any:
    """Return the modified spherical Bessel function of the second kind, as SciPy does.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.grad(lambda z: spherical_kn(0, z))(1.0) == spherical_kn(0, 1.0, derivative=True)
    np.True_
    """
    return _rules.spherical.spherical_kn(n, z, derivative=derivative)


@in_place_of(_special.spherical_yn)
def spherical_yn(n: Any, z: Any, derivative: bool = False) -> Any:
    """Return the spherical Bessel function of the second kind, as SciPy does.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.grad(lambda z: spherical_yn(0, z))(1.0) == spherical_yn(0, 1.0, derivative=True)
    np.True_
    """
    return _rules.spherical.spherical_yn(n, z, derivative=derivative)


offer("scipy.special", __all__)

__getattr__, __dir__ = standing_in(__name__, _special, __all__, plain_only)
