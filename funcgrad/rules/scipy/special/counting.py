"""Factorials, combinations and permutations: SciPy's functions, as ones of real numbers.

They are gamma functions inside of their domain, and 0 by definition outside.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special as sp

from funcgrad.core.batch import broadcasting
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import zero_wins
from funcgrad.rules.scipy.special.gamma import binom_slopes, poch_slopes
from funcgrad.rules.spelling import as_arrays

__all__ = ["comb", "factorial", "perm"]


@primitive(canonical=as_arrays)
def factorial(n, *, exact=False, extend="zero"):
    """``gamma(n + 1)``, and 0 for negative numbers unless `extend` says otherwise."""
    return sp.factorial(n, exact=exact, extend=extend)


def _factorial_slope(n, extend):
    rate = sp.gamma(n + 1) * sp.psi(n + 1)
    return rate if extend == "complex" else np.where(np.less(n, 0), 0, rate)


@factorial.def_jvp
def factorial_jvp(primals, tangents, out, *, exact, extend):
    (n,), (n_dot,) = primals, tangents
    return zero_wins(n_dot * _factorial_slope(n, extend), n_dot)


@factorial.def_vjp
def factorial_vjp(primals, out, *, exact, extend):
    (n,) = primals

    def factorial_pullback(out_bar):
        return zero_wins(out_bar * _factorial_slope(n, extend), out_bar)

    return factorial_pullback


broadcasting(factorial)


@factorial.def_samples
def factorial_samples(rng):
    yield Sample(rng.uniform(0.5, 4.0, size=(2, 3)), fun=factorial, complex=False)
    yield Sample(np.array([-1.5, 0.5, 5.0]), fun=factorial, complex=False)
    yield Sample(np.float64(2.5), fun=factorial, complex=False)


def _is_inside(n: Any, k: Any) -> Any:
    return np.less_equal(k, n) & np.greater_equal(n, 0) & np.greater_equal(k, 0)


@primitive(canonical=as_arrays)
def comb(N, k, *, exact=False, repetition=False):
    """The binomial coefficient, and 0 unless ``0 <= k <= N``."""
    return sp.comb(N, k, exact=exact, repetition=repetition)


def _comb_slopes(n, k, repetition):
    """Return the derivatives in `n` and in `k`."""
    if repetition:  # comb(n + k - 1, k)
        by_n, by_k = _comb_slopes(n + k - 1, k, False)
        return by_n, by_n + by_k
    inside = _is_inside(n, k)
    by_n, by_k = binom_slopes(n, k, sp.binom(n, k))
    return np.where(inside, by_n, 0), np.where(inside, by_k, 0)


@primitive(canonical=as_arrays)
def perm(N, k, *, exact=False):
    """The number of ordered choices, and 0 unless ``0 <= k <= N``."""
    return sp.perm(N, k, exact=exact)


def _perm_slopes(n, k):
    """Return the derivatives in `n` and in `k`."""
    inside = _is_inside(n, k)
    by_z, by_m = poch_slopes(n - k + 1, k, sp.poch(n - k + 1, k))
    return np.where(inside, by_z, 0), np.where(inside, by_m - by_z, 0)


def _declare_pair(made: Any, slopes: Any) -> None:
    """Declare the rules of a function of `N` and `k`."""

    @made.def_jvp
    def pair_jvp(primals, tangents, out, *, exact, **params):
        total = None
        for rate, t in zip(slopes(*primals, **params), tangents, strict=True):
            if t is not None:
                part = zero_wins(t * rate, t)
                total = part if total is None else total + part
        return total

    @made.def_vjp
    def pair_vjp(primals, out, *, exact, **params):
        n, k = primals

        def pair_pullback_n(out_bar):
            return zero_wins(out_bar * slopes(n, k, **params)[0], out_bar)

        def pair_pullback_k(out_bar):
            return zero_wins(out_bar * slopes(n, k, **params)[1], out_bar)

        return pair_pullback_n, pair_pullback_k

    broadcasting(made)


_declare_pair(comb, _comb_slopes)
_declare_pair(perm, _perm_slopes)


@comb.def_samples
def comb_samples(rng):
    n, k = rng.uniform(3.0, 5.0, size=(2, 1)), rng.uniform(0.5, 2.0, size=3)
    yield Sample(n, k, fun=comb, complex=False)
    yield Sample(n, np.array([0, 2, 7]), fun=comb, argnums=0, complex=False)
    yield Sample(n, k, fun=comb, repetition=True, complex=False)
    yield Sample(np.float64(4.5), 2, fun=comb, complex=False)


@perm.def_samples
def perm_samples(rng):
    n, k = rng.uniform(3.0, 5.0, size=(2, 1)), rng.uniform(0.5, 2.0, size=3)
    yield Sample(n, k, fun=perm, complex=False)
    yield Sample(n, np.array([0, 2, 7]), fun=perm, argnums=0, complex=False)
