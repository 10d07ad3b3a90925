"""`make_regression`: a straight line, or a plane, with noise, as scikit-learn makes it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from funcgrad.data.stages import check_count

__all__ = ["make_regression"]


def make_regression(
    n_samples: int = 100,
    n_features: int = 1,
    *,
    noise: float = 10.0,
    bias: float = 0.0,
    seed: int = 0,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Make a linear regression problem: number for number that of scikit-learn.

    Parameters
    ----------
    n_samples : int, default 100
        How many points.
    n_features : int, default 1
        How many numbers each of them has.
    noise : float, default 10
        Standard deviation of what is added to `y`.
    bias : float, default 0
        The constant in `y`.
    seed : int, default 0
        For NumPy's legacy generator, whose numbers never change.

    Returns
    -------
    x : ndarray of float64, shape (n_samples, n_features)
        Standard normal.
    y : ndarray of float64, shape (n_samples,)
        ``x @ coefficients + bias`` and noise.
    coefficients : ndarray of float64, shape (n_features,)
        Uniform in [0, 100).

    Notes
    -----
    What ``sklearn.datasets.make_regression(n_samples, n_features, n_informative=n_features,
    noise=noise, bias=bias, random_state=seed, coef=True)`` returns.

    Examples
    --------
    >>> x, y, coefficients = make_regression()
    >>> coefficients
    array([42.38550486])
    >>> x[0], y[0]
    (array([-0.35955316]), np.float64(-19.955885...))
    """
    n_samples = check_count(n_samples, "n_samples", "make_regression")
    n_features = check_count(n_features, "n_features", "make_regression")
    generator = np.random.RandomState(seed)  # the recipe is in terms of it
    x = generator.standard_normal((n_samples, n_features))
    coefficients = 100.0 * generator.uniform(size=(n_features, 1))
    y = x @ coefficients + bias
    if noise > 0.0:
        y += generator.normal(scale=noise, size=y.shape)
    order = np.arange(n_samples)
    generator.shuffle(order)
    columns = np.arange(n_features)
    generator.shuffle(columns)
    return x[order][:, columns], y[order, 0], coefficients[columns, 0]
