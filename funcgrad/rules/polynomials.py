"""NumPy's polynomials in the old form: coefficients, the highest power first.

All but `roots` are composed as NumPy composes them. Roots follow their coefficients implicitly: of
``p(r) = 0`` the derivative says ``dr = -sum(dp[k] * r**(n - k)) / p'(r)``, which exists for simple
roots. Where NumPy strips zeros in front, those coefficients are lost with them.
"""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np

from funcgrad.core.batch import by_loop
from funcgrad.core.dispatch import of_shapes
from funcgrad.core.level import concrete, detached, looked_at
from funcgrad.core.primitive import Sample, overrides, primitive
from funcgrad.core.zero import dtype_of, shape_of, zero_wins
from funcgrad.rules.reducing import cast, plus
from funcgrad.rules.spelling import array_of, as_array

__all__: list[str] = []


def _at_least_1d(p: Any) -> Any:
    p = array_of(p)
    return p if shape_of(p) else np.reshape(p, (1,))


def _is_alone(p: Any) -> bool:
    """Tell whether the values at the bottom of `p` are those of one example."""
    return shape_of(concrete(p)) == shape_of(p)


# Values


@primitive(name="polyval")
def horner(p, x):
    """Value of a polynomial."""
    return np.polyval(p, x)


@horner.def_jvp
def horner_jvp(primals, tangents, out):
    p, x = primals
    p_dot, x_dot = tangents
    out_dot = None if p_dot is None else np.polyval(p_dot, x)
    if x_dot is not None:
        out_dot = plus(out_dot, zero_wins(x_dot * np.polyval(np.polyder(p), x), x_dot))
    return out_dot


@horner.def_vjp
def horner_vjp(primals, out):
    p, x = primals
    (size,) = shape_of(p)

    def horner_pullback_p(out_bar):
        sums = []
        for _ in range(size):
            sums.append(np.sum(out_bar))
            out_bar = zero_wins(out_bar * x, out_bar)
        return np.stack(sums[::-1])

    def horner_pullback_x(out_bar):
        return zero_wins(out_bar * np.polyval(np.polyder(p), x), out_bar)

    return horner_pullback_p, horner_pullback_x


@horner.def_batch
def horner_batch(args, batched):
    p, x = args
    if not batched[0]:
        return horner.bind(p, x)
    behind = (1,) * (len(shape_of(x)) - batched[1])
    coefficients = [np.reshape(column, (-1, *behind)) for column in np.unstack(p, axis=1)]
    return _scheme(coefficients, x)


def _scheme(coefficients, x):
    """Return the value by Horner's scheme, in NumPy's order of operations."""
    y = np.zeros(shape_of(x), dtype_of(x)) if shape_of(x) else dtype_of(x).type(0)
    for coefficient in coefficients:
        y = y * x + coefficient
    return y


@horner.def_call(np.polyval)
def polyval(p, x):
    """`numpy.polyval`; coefficients of more axes make a polynomial for each of their places."""
    p, x = array_of(p), as_array(x)
    if 0 in shape_of(p):
        return of_shapes(np.polyval, p, x)  # zeros
    return horner.bind(p, x) if len(shape_of(p)) == 1 else _scheme(p, x)


@horner.def_samples
def polyval_samples(rng):
    yield Sample(rng.normal(size=4), rng.normal(size=(2, 3)))
    yield Sample(rng.normal(size=3), rng.normal(size=()))
    yield Sample([1, 2, 3], rng.normal(size=2))
    yield Sample(rng.normal(size=3), 2)
    yield Sample(rng.normal(size=1), rng.normal(size=2))
    yield Sample(rng.normal(size=(3, 2)), rng.normal(size=2))
    yield Sample(rng.normal(size=3), rng.normal(size=(0, 2)))


@overrides(np.vander)
def vander(x, N=None, increasing=False):
    """Powers of `x` in columns."""
    x = array_of(x)
    if len(shape_of(x)) != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    (size,) = shape_of(x)
    number = size if N is None else operator.index(N)
    x = cast(x, np.promote_types(dtype_of(x), int))
    if number < 2:
        return np.vander(np.ones(size, dtype_of(x)), number)
    column = np.reshape(x, (size, 1))
    powers = np.cumprod(np.broadcast_to(column, (size, number - 1)), axis=1)
    powers = np.concatenate([np.ones((size, 1), dtype_of(x)), powers], axis=1)
    return powers if increasing else np.flip(powers, 1)


@vander.def_samples
def vander_samples(rng):
    x = rng.normal(size=3)
    yield Sample(x)
    yield Sample(x, 4)
    yield Sample(x, 2, True)
    yield Sample(x, 1, order=0)
    yield Sample(np.array([0.0, 1.0, 2.0]), 4)
    yield Sample(rng.normal(size=0), 2)


# Sums, products and quotients


def _sum(ufunc, a1, a2):
    a1, a2 = _at_least_1d(a1), _at_least_1d(a2)
    missing = shape_of(a2)[0] - shape_of(a1)[0]
    if missing > 0:
        a1 = np.concatenate((np.zeros(missing, dtype_of(a1)), a1))
    elif missing < 0:
        a2 = np.concatenate((np.zeros(-missing, dtype_of(a2)), a2))
    return ufunc(a1, a2)


@overrides(np.polyadd)
def polyadd(a1, a2):
    """Sum of two polynomials."""
    return _sum(np.add, a1, a2)


@overrides(np.polysub)
def polysub(a1, a2):
    """Difference of two polynomials."""
    return _sum(np.subtract, a1, a2)


@overrides(np.polymul)
def polymul(a1, a2):
    """Product of two polynomials, without zeros in front of either.

    Under `vmap` those zeros stay, for the length cannot differ from example to example.
    """
    return np.convolve(_stripped(a1), _stripped(a2))


def _stripped(p):
    """Return the coefficients without zeros in front, which must be the same for all examples."""
    p = _at_least_1d(p)
    if len(shape_of(p)) != 1:
        raise ValueError("Polynomial must be 1d only.")
    if not _is_alone(p) and shape_of(p)[0]:
        return p
    found = np.flatnonzero(looked_at(np.not_equal(p, 0), "which coefficients are 0"))
    return p[found[0] :] if found.size else np.zeros(1, dtype_of(p))


@polyadd.def_samples
@polysub.def_samples
@polymul.def_samples
def binary_samples(rng):
    p, q = rng.normal(size=3), rng.normal(size=2)
    yield Sample(p, q)
    yield Sample(q, p)
    yield Sample(p, p[::-1].copy())
    yield Sample([1, 2, 3], q)
    yield Sample(p, 2)


@overrides(np.polydiv)
def polydiv(u, v):
    """Quotient and remainder, by long division."""
    u, v = _at_least_1d(u) + 0.0, _at_least_1d(v) + 0.0
    dtype = dtype_of(u[0] + v[0])
    m, n = shape_of(u)[0] - 1, shape_of(v)[0] - 1
    scale = 1.0 / v[0]
    quotient, r = [], cast(u, dtype)
    for k in range(m - n + 1):
        d = scale * r[k]
        quotient.append(d)
        parts = [r[:k], r[k : k + n + 1] - d * v, r[k + n + 1 :]]
        r = np.concatenate([cast(part, dtype) for part in parts])
    q = cast(np.stack(quotient), dtype) if quotient else np.zeros(1, dtype)
    while shape_of(r)[-1] > 1 and np.all(
        looked_at(np.less_equal(np.abs(r[..., 0]), 1e-8), "the degree of the remainder")
    ):
        r = r[1:]
    return q, r


@polydiv.def_samples
def polydiv_samples(rng):
    # Of numbers without rounding, as what is left over is cut off where it is nearly 0.
    u, v = np.array([2.0, -3.0, 0.5, 1.25]), np.array([-2.0, 0.75])
    yield Sample(u, v)
    yield Sample(v, u[:3])
    yield Sample(np.array([3, 5, 2]), v)
    yield Sample(u[1:], v[:1])


# Derivatives and integrals


@overrides(np.polyder)
def polyder(p, m=1):
    """Derivative of order `m` of a polynomial."""
    m = int(m)
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    p = array_of(p)
    if len(shape_of(p)) != 1:
        of_shapes(np.polyder, p, m)  # raises, most often
    for _ in range(m):
        p = p[:-1] * np.arange(shape_of(p)[0] - 1, 0, -1)
    return p


@polyder.def_samples
def polyder_samples(rng):
    p = rng.normal(size=4)
    yield Sample(p)
    yield Sample(p, 2)
    yield Sample(p, m=0)
    yield Sample(p, 4)


@overrides(np.polyint)
def polyint(p, m=1, k=None):
    """Integral of order `m` of a polynomial, with the constants `k`."""
    m = int(m)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    p = array_of(p)
    if len(shape_of(p)) != 1:
        of_shapes(np.polyint, p, m, k)  # raises, most often
    k = _at_least_1d(np.zeros(m, float) if k is None else k)
    if shape_of(k)[0] == 1 and m > 1:
        k = k[0] * np.ones(m, float)
    if shape_of(k)[0] < m:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    for i in np.arange(m):
        p = np.concatenate((p / np.arange(shape_of(p)[0], 0, -1), k[i : i + 1]))
    return p


@polyint.def_samples
def polyint_samples(rng):
    p = rng.normal(size=3)
    yield Sample(p)
    yield Sample(p, 2)
    yield Sample(p, 0)
    yield Sample(p, 2, rng.normal(size=2))
    yield Sample(p, 2, 1.5)
    yield Sample(p, k=np.float64(0.5), argnames="k")


# Roots


@overrides(np.poly)
def poly(seq_of_zeros):
    """Coefficients of the polynomial with these roots, or of the characteristic one of a matrix."""
    zeros = _at_least_1d(seq_of_zeros)
    shape = shape_of(zeros)
    if len(shape) == 2 and shape[0] == shape[1] != 0:
        zeros = np.linalg.eigvals(zeros)
    elif len(shape) == 1:
        zeros = cast(zeros, np.dtype(np.mintypecode(dtype_of(zeros).char)))
    else:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    if shape == (0,):
        return 1.0
    dtype = dtype_of(zeros)
    a = np.ones(1, dtype)
    for zero in zeros:
        factor = np.concatenate([np.ones(1, dtype), np.reshape(-zero, (1,))])
        a = np.convolve(a, factor, mode="full")
    if dtype.kind == "c":
        # The coefficients are real if the roots are in conjugate pairs.
        plain = detached(zeros)
        paired = np.equal(np.sort(plain), np.sort(np.conj(plain)))
        if np.all(looked_at(paired, "whether the roots are in conjugate pairs")):
            a = np.real(a)
    return a


@poly.def_samples
def poly_samples(rng):
    yield Sample(rng.normal(size=3))
    yield Sample(rng.normal(size=1))
    a = rng.normal(size=(3, 3))
    yield Sample(a + a.T, complex=False)
    yield Sample(np.array([[0.5, 2.0], [-1.0, 0.3]]), complex=False)


@primitive(name="roots")
def roots_of(p):
    """Roots of a polynomial.

    At a multiple root the derivative is infinite, of the root nearest to it as of their sum.
    """
    return np.roots(p)


def _slope_at(p, r):
    """Return the derivative of the polynomial at each root."""
    return np.polyval(np.polyder(p), r)


@roots_of.def_jvp
def roots_of_jvp(primals, tangents, out):
    (p,), (p_dot,) = primals, tangents
    if 0 in shape_of(out):
        return None
    change = np.polyval(p_dot, out)
    return zero_wins(-change / _slope_at(p, out), change)


@roots_of.def_vjp
def roots_of_vjp(primals, out):
    (p,) = primals
    (size,) = shape_of(p)

    def roots_of_pullback(out_bar):
        t = zero_wins(-out_bar / _slope_at(p, out), out_bar)
        return np.matmul(t, np.vander(out, size))

    return None if 0 in shape_of(out) else roots_of_pullback


by_loop(roots_of)


@roots_of.def_call(np.roots)
def roots(p):
    """`numpy.roots`."""
    p = _at_least_1d(p)
    if len(shape_of(p)) != 1:
        raise ValueError("Input must be a rank-1 array.")
    return roots_of.bind(p)


@roots_of.def_samples
def roots_of_samples(rng):
    yield Sample(np.array([1.0, -6.0, 11.0, -6.0]))
    yield Sample(np.array([2.0, 0.3, 1.0]))
    yield Sample(np.array([2.0, 0.3]))
    yield Sample(np.array([1.0, -3.0, 1.0, 0.0, 0.0])[:4], kinks=True)
    yield Sample(np.array([3.0]), order=0)


# Least squares


@overrides(np.polyfit)
def polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False):
    """Coefficients of the polynomial that fits points best, by NumPy's way with `lstsq`."""
    order = int(deg) + 1
    x, y = array_of(x) + 0.0, array_of(y) + 0.0
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if len(shape_of(x)) != 1:
        raise TypeError("expected 1D vector for x")
    (size,) = shape_of(x)
    if size == 0:
        raise TypeError("expected non-empty vector for x")
    if not 1 <= len(shape_of(y)) <= 2:
        raise TypeError("expected 1D or 2D array for y")
    if shape_of(y)[0] != size:
        raise TypeError("expected x and y to have same length")
    rcond = size * np.finfo(dtype_of(x)).eps if rcond is None else rcond
    left, right = np.vander(x, order), y
    if w is not None:
        w = array_of(w) + 0.0
        if len(shape_of(w)) != 1:
            raise TypeError("expected a 1-d array for weights")
        if shape_of(w)[0] != size:
            raise TypeError("expected w and y to have the same length")
        left = left * w[:, np.newaxis]
        right = right * (w[:, np.newaxis] if len(shape_of(y)) == 2 else w)
    scale = np.sqrt(np.sum(left * left, axis=0))
    left = left / scale
    c, residuals, rank, singular = np.linalg.lstsq(left, right, rcond)
    c = np.transpose(np.transpose(c) / scale)
    if np.any(concrete(rank) != order) and not full:
        warnings.warn("Polyfit may be poorly conditioned", np.exceptions.RankWarning, stacklevel=2)
    if full:
        return c, residuals, rank, singular, rcond
    if not cov:
        return c
    base = np.linalg.inv(np.dot(np.transpose(left), left)) / np.outer(scale, scale)
    if cov == "unscaled":
        factor: Any = 1
    elif size <= order:
        raise ValueError(
            "the number of data points must exceed order to scale the covariance matrix"
        )
    else:
        factor = residuals / (size - order)
    return c, (base if len(shape_of(y)) == 1 else base[:, :, np.newaxis]) * factor


@polyfit.def_samples
def polyfit_samples(rng):
    x, y = np.array([-1.0, 0.1, 0.7, 1.5, 2.0]), rng.normal(size=5)
    w = rng.uniform(0.5, 1.5, size=5)
    real: Any = {"complex": False}
    yield Sample(x, y, 2, **real)
    yield Sample(x, rng.normal(size=(5, 2)), 1, **real)
    yield Sample(x, y, 1, w=w, argnames="w", **real)
    yield Sample([-1, 0, 1, 2, 3], y, 2)
    yield Sample(x, y, 1, cov=True, **real)
    yield Sample(x, y, 1, cov="unscaled", **real)
    yield Sample(x, y, 2, full=True, argnums=1, **real)
