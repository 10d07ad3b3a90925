"""Distributions of several numbers: normal, Dirichlet and multinomial.

The arguments have SciPy's layouts, and what SciPy refuses is refused with its exceptions. A batch
of parameters, of which SciPy knows none, is the business of `vmap`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special, stats

from funcgrad.core.level import any_of, concrete, detached, holds_anywhere
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.spelling import array_of
from funcgrad.scipy.stats._wrapped import Frozen, Wrapped, floats, selected
from funcgrad.scipy.stats.continuous import LOG_2PI

__all__ = ["dirichlet", "multinomial", "multivariate_normal"]


def _some(mask: Any) -> bool:
    """Tell whether a mask is true anywhere, in any example of a batch."""
    return holds_anywhere(mask, "whether all numbers are in the domain")


def _squeezed(x: Any) -> Any:
    """Drop the axes of length 1, as SciPy does with results."""
    x = np.squeeze(x)
    return x[()] if shape_of(x) == () else x


class _MultivariateNormal(Wrapped):
    """Normal distribution of vectors, of mean `mean` and covariance `cov`.

    The last axis of `x` holds the components. `cov` may be a number, a vector (of variances) or a
    matrix, of which SciPy reads the lower triangle; its gradient is symmetric: an entry off the
    diagonal has half of what a change of both equal entries makes.

    With ``allow_singular=True`` a covariance of lower rank is taken as SciPy does, on the subspace
    that it spans; derivatives in `cov` are those among covariances of the same rank.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy.stats import multivariate_normal
    >>> cov = np.array([[2.0, 0.0], [0.0, 4.0]])
    >>> fg.grad(multivariate_normal.logpdf)(np.array([2.0, 2.0]), np.zeros(2), cov)
    array([-1. , -0.5])
    """

    def __call__(self, mean: Any = None, cov: Any = 1, *args: Any, **kwds: Any) -> Frozen:
        """Hold the parameters fixed."""
        return _FrozenNormal(self, (mean, cov), {}, args, kwds)

    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """Return the logarithm of the density.

        Parameters
        ----------
        x : array_like
            Points, with their components along the last axis.
        mean : array_like, optional
            Of shape (d,); by default 0.
        cov : array_like, optional
            Of shape (d, d), (d,) or (); by default 1.
        allow_singular : bool, optional
            Whether `cov` may be of lower rank.

        Raises
        ------
        ValueError
            `cov` has a negative eigenvalue, or shapes do not fit.
        numpy.linalg.LinAlgError
            `cov` is singular, and must not be.
        """
        if isinstance(cov, stats.Covariance):
            return self._fallback("logpdf", (x, mean, cov, allow_singular), {})
        x, mean, cov = _normal_arguments(x, mean, cov)
        dim = shape_of(mean)[0]
        if len(shape_of(x)) == 0:
            x = np.reshape(x, (1,))
        elif len(shape_of(x)) == 1:
            x = np.expand_dims(x, 1 if dim == 1 else 0)
        deviation = x - mean
        if _has_full_rank(cov, allow_singular):
            _, logdet = np.linalg.slogdet(cov)
            rows = np.reshape(deviation, (-1, dim))
            distances = np.sum(rows * np.linalg.solve(cov, rows.T).T, axis=-1)
            distances = np.reshape(distances, shape_of(deviation)[:-1])
            return _squeezed(-0.5 * (dim * LOG_2PI + logdet + distances))
        kept, safe, vectors, cutoff = _spectrum(cov)
        rank, logdet = np.sum(kept), np.sum(np.log(safe))
        parts = np.matmul(deviation, vectors)
        distances = np.sum(selected(kept, np.square(parts) / safe, 0.0), axis=-1)
        value = -0.5 * (rank * LOG_2PI + logdet + distances)
        beside = np.sum(np.square(selected(kept, 0.0, parts)), axis=-1)
        return _squeezed(selected(np.less(beside, np.square(1e3 * cutoff)), value, -np.inf))

    def pdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """Return the density; the arguments are those of `logpdf`."""
        if isinstance(cov, stats.Covariance):
            return self._fallback("pdf", (x, mean, cov, allow_singular), {})
        return np.exp(self.logpdf(x, mean, cov, allow_singular))

    def entropy(self, mean: Any = None, cov: Any = 1) -> Any:
        """Return the entropy, in nats, on the subspace that `cov` spans."""
        if isinstance(cov, stats.Covariance):
            return self._fallback("entropy", (mean, cov), {})
        _, mean, cov = _normal_arguments(None, mean, cov)
        if _has_full_rank(cov, True):
            rank, (_, logdet) = shape_of(mean)[0], np.linalg.slogdet(cov)
        else:
            kept, safe, _, _ = _spectrum(cov)
            rank, logdet = np.sum(kept), np.sum(np.log(safe))
        return 0.5 * (rank * (LOG_2PI + 1) + logdet)


class _FrozenNormal(Frozen):
    """A multivariate normal distribution with its parameters."""

    def __init__(self, dist: Any, args: Any, kwds: Any, more: Any, named: Any):
        super().__init__(dist, args, kwds)
        self._options = dict(zip(("allow_singular", "seed"), more, strict=False)) | named
        self.allow_singular = self._options.get("allow_singular", False)
        _, self.mean, self.cov = _normal_arguments(None, *args)
        self.dim = shape_of(self.mean)[0]
        _has_full_rank(self.cov, self.allow_singular)  # an error at once, if it must be

    def logpdf(self, x: Any) -> Any:
        """Return the logarithm of the density at `x`."""
        return self.dist.logpdf(x, *self.args, self.allow_singular)

    def pdf(self, x: Any) -> Any:
        """Return the density at `x`."""
        return self.dist.pdf(x, *self.args, self.allow_singular)

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        return self.dist.entropy(*self.args)

    def _scipys(self) -> tuple[Any, Any]:
        return self.args, self._options


def _normal_arguments(x: Any, mean: Any, cov: Any) -> tuple[Any, Any, Any]:
    """Return `x`, the mean as a vector and the covariance as a symmetric matrix."""
    cov = 1.0 if cov is None else array_of(cov)
    given = [v for v in (x, mean, cov) if v is not None]
    values = iter(floats(given))
    x, mean, cov = (None if v is None else next(values) for v in (x, mean, cov))
    shape = shape_of(cov)
    if mean is None:
        dim = shape[0] if len(shape) > 1 else 1
        mean = np.zeros(dim, dtype_of(cov))
    else:
        dim = int(np.prod(shape_of(mean)))
    if dim == 1:
        mean, cov = np.reshape(mean, (1,)), np.reshape(cov, (1, 1))
    if shape_of(mean) != (dim,):
        raise ValueError(f"Array 'mean' must be a vector of length {dim}.")
    shape = shape_of(cov)
    if len(shape) < 2:
        cov = np.broadcast_to(cov, (dim,)) if len(shape) == 0 else cov
        shape = 2 * shape_of(cov)
        cov = cov * np.eye(shape[0], dtype=dtype_of(cov))
    if len(shape) > 2:
        raise ValueError(
            f"Array 'cov' must be at most two-dimensional, but cov.ndim = {len(shape)}"
        )
    if shape[0] != shape[1]:
        raise ValueError(
            f"Array 'cov' must be square if it is two dimensional, but cov.shape = {shape}."
        )
    if shape[0] != dim:
        raise ValueError(
            f"Dimension mismatch: array 'cov' is of shape {shape}, "
            f"but 'mean' is a vector of length {dim}."
        )
    return x, mean, _symmetric(cov)


def _symmetric(cov: Any) -> Any:
    """Return the matrix that SciPy takes `cov` for: it reads the lower triangle.

    The derivative is that of the symmetric part, so that gradients are symmetric.
    """
    part = 0.5 * (cov + np.swapaxes(cov, -1, -2))
    plain = detached(cov)
    below = np.tril(plain, -1)
    lacking = np.tril(plain) + np.swapaxes(below, -1, -2) - detached(part)
    return part if not any_of(np.not_equal(lacking, 0)) else part + lacking


# Eigenvalues below this part of the largest one count as 0, as in SciPy.
_NEGLIGIBLE = 1e6 * np.finfo(np.float64).eps


def _has_full_rank(cov: Any, allow_singular: bool) -> bool:
    """Tell whether the covariance is positive definite; raise where it may not be as it is."""
    plain = detached(cov)
    if holds_anywhere(np.logical_not(np.isfinite(plain)), "whether all is finite"):
        raise ValueError("array must not contain infs or NaNs")
    values = np.linalg.eigvalsh(plain)
    cutoff = _NEGLIGIBLE * np.max(np.abs(values), axis=-1, keepdims=True)
    if holds_anywhere(np.less(values, -cutoff), "whether an eigenvalue is negative"):
        raise ValueError("The input matrix must be symmetric positive semidefinite.")
    full = not holds_anywhere(np.less_equal(values, cutoff), "whether an eigenvalue is 0")
    if not full and not allow_singular:
        raise np.linalg.LinAlgError(
            "When `allow_singular is False`, the input matrix must be symmetric positive definite."
        )
    return full


def _spectrum(cov: Any) -> tuple[Any, Any, Any, Any]:
    """Return which eigenvalues are not 0, they (1 for others), the vectors, and the cutoff."""
    values, vectors = np.linalg.eigh(cov)
    cutoff = _NEGLIGIBLE * np.max(np.abs(values))
    kept = np.greater(values, cutoff)
    return kept, selected(kept, values, 1.0), vectors, cutoff


class _Dirichlet(Wrapped):
    """Dirichlet distribution of shares that add up to 1, with concentrations `alpha`.

    The *first* axis of `x` holds the shares, as in SciPy; the last share may be left out.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad.scipy.stats import dirichlet
    >>> round(float(dirichlet.pdf(np.array([0.2, 0.3, 0.5]), np.ones(3))), 12)
    2.0
    """

    def logpdf(self, x: Any, alpha: Any) -> Any:
        """Return the logarithm of the density.

        Parameters
        ----------
        x : array_like
            Shares, of shape (K,) or (K, N); K - 1 of them if the last is left out.
        alpha : array_like
            Concentrations, of shape (K,).

        Raises
        ------
        ValueError
            `x` does not lie in the simplex, or shapes do not fit.
        """
        x, alpha = floats([array_of(x), _concentrations(alpha)])
        x = _shares(x, alpha)
        column = np.reshape(alpha, (-1,) + (1,) * (len(shape_of(x)) - 1))
        return _squeezed(np.sum(special.xlogy(column - 1, x), axis=0) - _log_beta(alpha))

    def pdf(self, x: Any, alpha: Any) -> Any:
        """Return the density; the arguments are those of `logpdf`."""
        return np.exp(self.logpdf(x, alpha))

    def entropy(self, alpha: Any) -> Any:
        """Return the entropy, in nats."""
        (alpha,) = floats([_concentrations(alpha)])
        total = np.sum(alpha)
        value = _log_beta(alpha) + (total - shape_of(alpha)[0]) * special.psi(total)
        return value - np.sum((alpha - 1) * special.psi(alpha))

    def mean(self, alpha: Any) -> Any:
        """Return the expected shares."""
        (alpha,) = floats([_concentrations(alpha)])
        return _squeezed(alpha / np.sum(alpha))

    def var(self, alpha: Any) -> Any:
        """Return the variances of the shares."""
        (alpha,) = floats([_concentrations(alpha)])
        total = np.sum(alpha)
        return _squeezed(alpha * (total - alpha) / (np.square(total) * (total + 1)))


def _log_beta(alpha: Any) -> Any:
    return np.sum(special.gammaln(alpha)) - special.gammaln(np.sum(alpha))


def _concentrations(alpha: Any) -> Any:
    alpha = array_of(alpha)
    if _some(np.less_equal(alpha, 0)):
        raise ValueError("All parameters must be greater than 0")
    if len(shape_of(alpha)) != 1:
        raise ValueError(
            f"Parameter vector 'a' must be one dimensional, but a.shape = {shape_of(alpha)}."
        )
    return alpha


def _shares(x: Any, alpha: Any) -> Any:
    """Return all the shares, after SciPy's checks of them."""
    count, shape = shape_of(alpha)[0], shape_of(x)
    if shape[0] not in (count - 1, count):
        raise ValueError(
            "Vector 'x' must have either the same number of entries as, or one entry fewer than, "
            f"parameter vector 'a', but alpha.shape = {(count,)} and x.shape = {shape}."
        )
    if shape[0] != count:
        if len(shape) > 2:
            raise ValueError(
                "The input must be one dimensional or a two dimensional matrix containing "
                "the entries."
            )
        x = np.concatenate([x, np.expand_dims(1 - np.sum(x, axis=0), 0)])
    if _some(np.less(x, 0)):
        raise ValueError("Each entry in 'x' must be greater than or equal to zero.")
    if _some(np.greater(x, 1)):
        raise ValueError("Each entry in 'x' must be smaller or equal one.")
    column = np.reshape(alpha, (-1,) + (1,) * (len(shape) - 1))
    if _some(np.logical_and(np.equal(x, 0), np.less(column, 1))):
        raise ValueError(
            "Each entry in 'x' must be greater than zero if its alpha is less than one."
        )
    total = np.sum(x, axis=0)
    # SciPy's tolerance is for float64.
    slack = 1e-9 if dtype_of(x) == np.float64 else 10 * np.finfo(dtype_of(x)).eps
    if _some(np.greater(np.abs(total - 1.0), slack)):
        raise ValueError(
            "The input vector 'x' must lie within the normal simplex. "
            f"but np.sum(x, 0) = {concrete(total)}."
        )
    return x


class _Multinomial(Wrapped):
    """Multinomial distribution: counts of `n` trials with outcomes of probabilities `p`.

    The last axes of `x` and `p` hold the outcomes. Where `p` does not add up to 1, the last
    probability is what the others leave, as in SciPy before 1.18; derivatives in `p` are those of
    the formula, in which all probabilities are free.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad.scipy.stats import multinomial
    >>> round(float(multinomial.pmf([1, 1], n=2, p=[0.5, 0.5])), 12)
    0.5
    """

    def logpmf(self, x: Any, n: Any, p: Any) -> Any:
        """Return the logarithm of the probability of the counts `x`.

        Parameters
        ----------
        x : array_like
            Counts, of shape (..., K).
        n : array_like
            Numbers of trials, of shape (...).
        p : array_like
            Probabilities, of shape (..., K).

        Raises
        ------
        ValueError
            `x` is a number, or has another number of outcomes than `p`.
        """
        x, n, p = floats([array_of(x), n, array_of(p)])
        if len(shape_of(x)) == 0:
            raise ValueError("x must be an array.")
        kinds = shape_of(p)[-1]
        if shape_of(x)[-1] != kinds and 0 not in shape_of(x):
            raise ValueError(
                "Size of each quantile should be size of p: "
                f"received {shape_of(x)[-1]}, but expected {kinds}."
            )
        p = _completed(p)
        valid = np.all(np.logical_and(np.greater_equal(p, 0), np.less_equal(p, 1)), axis=-1)
        safe_p = selected(np.expand_dims(valid, -1), p, 1 / kinds)
        positive = np.greater_equal(n, 0)
        counts = np.logical_and(np.greater_equal(x, 0), np.equal(np.floor(x), x))
        inside = np.logical_and(np.all(counts, axis=-1), np.equal(np.sum(x, axis=-1), n))
        x = selected(np.expand_dims(inside, -1), x, 0.0)
        terms = special.xlogy(x, safe_p) - special.gammaln(x + 1)
        value = special.gammaln(selected(positive, n, 0.0) + 1) + np.sum(terms, axis=-1)
        value = selected(inside, value, -np.inf)
        return selected(np.logical_and(valid, positive), value, np.nan)

    def pmf(self, x: Any, n: Any, p: Any) -> Any:
        """Return the probability of the counts `x`; the arguments are those of `logpmf`."""
        return np.exp(self.logpmf(x, n, p))

    def mean(self, n: Any, p: Any) -> Any:
        """Return the expected counts."""
        n, p = floats([n, array_of(p)])
        return np.expand_dims(n, -1) * _completed(p)


def _completed(p: Any) -> Any:
    """Return probabilities that add up to 1."""
    off = np.greater(np.abs(1 - np.sum(p, axis=-1)), 10 * np.finfo(dtype_of(p)).eps)
    if not _some(off):
        return p
    rest, last = p[..., :-1], p[..., -1]
    last = selected(off, 1 - np.sum(rest, axis=-1), last)
    return np.concatenate([rest, np.expand_dims(last, -1)], axis=-1)


multivariate_normal = _MultivariateNormal("multivariate_normal")
dirichlet = _Dirichlet("dirichlet")
multinomial = _Multinomial("multinomial")
