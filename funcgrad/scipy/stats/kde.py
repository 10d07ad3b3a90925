"""Kernel density estimates with Gaussian kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from funcgrad.core.zero import shape_of
from funcgrad.rules.spelling import array_of
from funcgrad.scipy.stats._wrapped import floats
from funcgrad.scipy.stats.continuous import LOG_2PI

__all__ = ["gaussian_kde"]


class gaussian_kde:
    """Estimate of a density, a sum of Gaussians around the points of a sample.

    As `scipy.stats.gaussian_kde`, differentiable in the sample, the weights, the bandwidth and the
    points of evaluation.

    Parameters
    ----------
    dataset : array_like
        Sample, of shape (d, n), or (n,) for d = 1.
    bw_method : {"scott", "silverman"}, number or callable, optional
        How wide the kernels are: by a rule (of Scott's by default), by a factor of the standard
        deviation, or by a function that is given the estimate and returns the factor.
    weights : array_like, optional
        Of shape (n,); by default all points count the same.

    Attributes
    ----------
    d, n : int
        The number of dimensions, and of points.
    neff, factor, covariance
        The effective number of points, the factor of the bandwidth, and the covariance of a kernel.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy.stats import gaussian_kde
    >>> kde = gaussian_kde(np.array([-1.0, 1.0]))
    >>> float(fg.grad(lambda x: kde(x)[0])(0.0))
    0.0
    """

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None):
        (dataset,) = floats([array_of(dataset)])
        self.dataset = np.atleast_2d(dataset)
        self.d, self.n = shape_of(self.dataset)
        if self.d * self.n <= 1:
            raise ValueError("`dataset` input should have multiple elements.")
        if weights is None:
            self.weights: Any = np.full(self.n, 1 / self.n)
            self.neff: Any = float(self.n)
        else:
            (weights,) = floats([array_of(weights)])
            weights = np.atleast_1d(weights)
            if len(shape_of(weights)) != 1:
                raise ValueError("`weights` input should be one-dimensional.")
            if shape_of(weights)[0] != self.n:
                raise ValueError("`weights` input should be of length n")
            self.weights = weights / np.sum(weights)
            self.neff = 1 / np.sum(np.square(self.weights))
        if self.d > self.n:
            raise ValueError(
                "Number of dimensions is greater than number of samples. Each *column* of "
                "`dataset` is a point; consider transposing it."
            )
        mean = np.sum(self.dataset * self.weights, axis=1, keepdims=True)
        deviation = self.dataset - mean
        # Unbiased for weights that say how reliable each point is, as np.cov has it.
        unbiased = 1 - np.sum(np.square(self.weights))
        self._data_covariance = np.matmul(deviation * self.weights, deviation.T) / unbiased
        self._scale = np.linalg.cholesky(self._data_covariance)
        self.set_bandwidth("scott" if bw_method is None else bw_method)

    def scotts_factor(self) -> Any:
        """Return the factor by Scott's rule."""
        return np.power(self.neff, -1.0 / (self.d + 4))

    def silverman_factor(self) -> Any:
        """Return the factor by Silverman's rule."""
        return np.power(self.neff * (self.d + 2.0) / 4.0, -1.0 / (self.d + 4))

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Set how wide the kernels are, by what the class says of `bw_method`."""
        if bw_method is None:
            return
        if isinstance(bw_method, str):
            if bw_method not in ("scott", "silverman"):
                raise ValueError(
                    "`bw_method` should be 'scott', 'silverman', a scalar or a callable."
                )
            factor = self.scotts_factor() if bw_method == "scott" else self.silverman_factor()
        else:
            factor = bw_method(self) if callable(bw_method) else bw_method
        self.factor = factor
        self.covariance = self._data_covariance * np.square(factor)
        self._root = self._scale * factor

    def logpdf(self, x: Any) -> Any:
        """Return the logarithm of the estimate at points of shape (d, m), (m,) or (d,)."""
        points = self._points(x)
        center = np.linalg.solve(self._root, self.dataset)
        white = np.linalg.solve(self._root, points)
        apart = np.expand_dims(white, 2) - np.expand_dims(center, 1)  # (d, m, n)
        energies = -0.5 * np.sum(np.square(apart), axis=0)
        highest = np.max(energies, axis=1, keepdims=True)
        total = np.sum(np.exp(energies - highest) * self.weights, axis=1)
        logdet = np.sum(np.log(np.abs(np.diagonal(self._root))))
        return np.log(total) + highest[:, 0] - logdet - 0.5 * self.d * LOG_2PI

    def evaluate(self, points: Any) -> Any:
        """Return the estimate at points of shape (d, m), (m,) or (d,)."""
        return np.exp(self.logpdf(points))

    __call__ = evaluate

    def pdf(self, x: Any) -> Any:
        """Return the estimate, as `evaluate` does."""
        return self.evaluate(x)

    def _points(self, points: Any) -> Any:
        (points,) = floats([array_of(points)])
        points = np.atleast_2d(points)
        d, m = shape_of(points)
        if d == self.d:
            return points
        if d == 1 and m == self.d:  # one point
            return np.reshape(points, (self.d, 1))
        raise ValueError(f"points have dimension {d}, dataset has dimension {self.d}")

    def integrate_gaussian(self, mean: Any, cov: Any) -> Any:
        """Return the integral of the estimate times a normal density."""
        mean, cov = floats([array_of(mean), array_of(cov)])
        mean = np.atleast_1d(np.squeeze(mean))
        cov = np.atleast_2d(cov)
        if shape_of(mean) != (self.d,):
            raise ValueError(f"mean does not have dimension {self.d}")
        if shape_of(cov) != (self.d, self.d):
            raise ValueError(f"covariance does not have dimension {self.d}")
        apart = self.dataset - np.expand_dims(mean, 1)
        return np.sum(_overlap(apart, self.covariance + cov) * self.weights)

    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """Return the integral of the estimate, of one dimension, between two bounds."""
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        low, high = floats([low, high])
        width = np.sqrt(self.covariance[0, 0])
        below, above = ((bound - self.dataset[0]) / width for bound in (low, high))
        return np.sum((special.ndtr(above) - special.ndtr(below)) * self.weights)

    def integrate_kde(self, other: gaussian_kde) -> Any:
        """Return the integral of the product of two estimates."""
        if other.d != self.d:
            raise ValueError("KDEs are not the same dimensionality")
        apart = np.expand_dims(self.dataset, 2) - np.expand_dims(other.dataset, 1)
        pairs = np.reshape(apart, (self.d, self.n * other.n))
        overlap = _overlap(pairs, self.covariance + other.covariance)
        both = np.expand_dims(self.weights, 1) * other.weights
        return np.sum(np.reshape(overlap, (self.n, other.n)) * both)

    def resample(self, *args: Any, **kwds: Any) -> Any:
        """Raise: a sample has no derivative, and SciPy's own estimate draws one."""
        raise NotImplementedError(
            "funcgrad.scipy.stats.gaussian_kde has no resample\n"
            "  fix:   use scipy.stats.gaussian_kde(dataset).resample(size)"
        )


def _overlap(apart: Any, cov: Any) -> Any:
    """Return the normal density, of covariance `cov`, of each column of `apart`."""
    root = np.linalg.cholesky(cov)
    energies = 0.5 * np.sum(np.square(np.linalg.solve(root, apart)), axis=0)
    norm = math.pow(2 * math.pi, shape_of(cov)[0] / 2) * np.prod(np.diagonal(root))
    return np.exp(-energies) / norm
