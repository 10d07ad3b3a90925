"""Activation functions of one formula, or of two that meet at 0: for `funcgrad.nn.functional`.

At a kink each has the slope of least size among those beside it, as everywhere here: `leaky_relu`
that of the negative side.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.rules.nn import activations
from funcgrad.rules.nn.activations import as_real
from funcgrad.rules.nn.normal import normal_cdf

__all__ = [
    "arctan",
    "celu",
    "elu",
    "gelu",
    "identity",
    "leaky_relu",
    "log1mexp",
    "mish",
    "rrelu",
    "selu",
    "soft_sign",
    "squareplus",
]

# Klambauer et al. (2017): the values for which mean 0 and variance 1 are a fixed point.
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def identity(x: Any) -> Any:
    """Return the argument.

    Parameters
    ----------
    x : object
        Anything.

    Returns
    -------
    ndarray
        `x`.

    Examples
    --------
    >>> identity(3.0)
    3.0
    """
    return x


def arctan(x: Any) -> Any:
    """Return the arctangent of each element: ``np.arctan``.

    Parameters
    ----------
    x : array_like
        Real numbers.

    Returns
    -------
    ndarray
        Of the dtype of `x`.

    Examples
    --------
    >>> print(arctan(0.0))
    0.0
    """
    return np.arctan(x)


def leaky_relu(x: Any, negative_slope: Any = 0.01) -> Any:
    """Return each element, the negative ones times a small number.

    Parameters
    ----------
    x : array_like
        Real numbers.
    negative_slope : float or array_like
        This number.

    Returns
    -------
    ndarray
        ``where(x > 0, x, negative_slope * x)``, of the dtype of `x`.

    Notes
    -----
    Maas et al. (2013); with a parameter for `negative_slope`, the PReLU of He et al. (2015).

    Examples
    --------
    >>> import numpy as np
    >>> leaky_relu(np.array([-1.0, 2.0]))
    array([-0.01,  2.  ])
    """
    x = as_real(x)
    return np.where(x > 0, x, negative_slope * x)


def rrelu(
    x: Any, key: fg.random.Key | None = None, lower: float = 1 / 8, upper: float = 1 / 3
) -> Any:
    """Return each element, the negative ones times a random number.

    Parameters
    ----------
    x : array_like
        Real numbers.
    key : Key, optional
        For the numbers; without one their mean is taken, as when a trained model is used.
    lower, upper : float
        Between which they are uniform.

    Returns
    -------
    ndarray
        Of the dtype of `x`.

    Notes
    -----
    Xu et al. (2015).

    Examples
    --------
    >>> import numpy as np
    >>> rrelu(np.array([-1.0, 2.0]), lower=0.1, upper=0.3)
    array([-0.2,  2. ])
    """
    x = as_real(x)
    if key is None:
        return leaky_relu(x, (lower + upper) / 2)
    dtype = np.asarray(fg.stop_gradient(x)).dtype if not hasattr(x, "dtype") else x.dtype
    slope = fg.random.uniform(key, np.shape(x), dtype, lower, upper)
    return leaky_relu(x, slope)


def elu(x: Any, alpha: Any = 1.0) -> Any:
    """Return each element, the negative ones as an exponential that ends at ``-alpha``.

    Parameters
    ----------
    x : array_like
        Real numbers.
    alpha : float or array_like
        How far below 0 it goes.

    Returns
    -------
    ndarray
        ``where(x > 0, x, alpha * expm1(x))``, of the dtype of `x`.

    Notes
    -----
    Clevert et al. (2016).

    Examples
    --------
    >>> import numpy as np
    >>> elu(np.array([-1000.0, 2.0]))
    array([-1.,  2.])
    """
    x = as_real(x)
    return np.where(x > 0, x, alpha * np.expm1(_negative(x)))


def celu(x: Any, alpha: Any = 1.0) -> Any:
    """Return each element, the negative ones as an exponential, smooth for every `alpha`.

    Parameters
    ----------
    x : array_like
        Real numbers.
    alpha : float or array_like
        How far below 0 it goes.

    Returns
    -------
    ndarray
        ``where(x > 0, x, alpha * expm1(x / alpha))``, of the dtype of `x`.

    Notes
    -----
    Barron (2017).

    Examples
    --------
    >>> import numpy as np
    >>> celu(np.array([-1000.0, 2.0]), alpha=2.0)
    array([-2.,  2.])
    """
    x = as_real(x)
    return np.where(x > 0, x, alpha * np.expm1(_negative(x) / alpha))


def selu(x: Any) -> Any:
    """Return `elu` with the factors that keep mean 0 and variance 1 from layer to layer.

    Parameters
    ----------
    x : array_like
        Real numbers.

    Returns
    -------
    ndarray
        ``1.0507 * elu(x, 1.6733)``, of the dtype of `x`.

    Notes
    -----
    Klambauer et al. (2017).

    Examples
    --------
    >>> import numpy as np
    >>> selu(np.array([-1000.0, 1.0])).round(4)
    array([-1.7581,  1.0507])
    """
    return _SELU_SCALE * elu(x, _SELU_ALPHA)


def gelu(x: Any, approximate: bool = True) -> Any:
    """Return each element times the normal distribution function of it.

    Parameters
    ----------
    x : array_like
        Real numbers.
    approximate : bool
        Whether to take the approximation by a tanh, the default as in JAX. PyTorch's default is
        the exact one.

    Returns
    -------
    ndarray
        ``x * cdf(x)``, of the dtype of `x`.

    Notes
    -----
    Hendrycks and Gimpel (2016).

    Examples
    --------
    >>> import numpy as np
    >>> gelu(np.array([-1.0, 1.0]), approximate=False).round(6)
    array([-0.158655,  0.841345])
    >>> gelu(np.array([-1.0, 1.0])).round(6)
    array([-0.158808,  0.841192])
    """
    if approximate:
        return activations.gelu_tanh(x)
    x = as_real(x)
    return x * normal_cdf(x)


def mish(x: Any) -> Any:
    """Return each element times the tanh of its `softplus`.

    Parameters
    ----------
    x : array_like
        Real numbers.

    Returns
    -------
    ndarray
        Of the dtype of `x`.

    Notes
    -----
    Misra (2019).

    Examples
    --------
    >>> import numpy as np
    >>> mish(np.array([-1.0, 1.0])).round(6)
    array([-0.303401,  0.865098])
    """
    x = as_real(x)
    return x * np.tanh(activations.softplus(x))


def soft_sign(x: Any) -> Any:
    """Return each element over 1 plus its absolute value.

    Parameters
    ----------
    x : array_like
        Real numbers.

    Returns
    -------
    ndarray
        ``x / (1 + abs(x))``, of the dtype of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> soft_sign(np.array([-1.0, 3.0]))
    array([-0.5 ,  0.75])
    """
    x = as_real(x)
    return x / (np.abs(x) + 1)


def squareplus(x: Any, b: Any = 4) -> Any:
    """Return a smooth form of `relu` without exponentials.

    Parameters
    ----------
    x : array_like
        Real numbers.
    b : float or array_like
        How smooth: 0 gives `relu`.

    Returns
    -------
    ndarray
        ``(x + sqrt(x**2 + b)) / 2``, of the dtype of `x`; without loss where `x` is far below 0.

    Notes
    -----
    Barron (2021).

    Examples
    --------
    >>> import numpy as np
    >>> squareplus(np.array([-1e8, 0.0]))
    array([1.e-08, 1.e+00])
    """
    x = as_real(x)
    size = np.abs(x)
    # Where a square would overflow, b is nothing beside it.
    far = size > 0.5 * math.sqrt(np.finfo(getattr(x, "dtype", float)).max)
    both = np.where(far, size, np.sqrt(np.square(np.where(far, 0, x)) + b)) + size
    return np.where(x < 0, b / 2 / np.where(both > 0, both, 1), both / 2)


def log1mexp(x: Any) -> Any:
    """Return ``log(1 - exp(-x))`` of each element, exact at both ends.

    Parameters
    ----------
    x : array_like
        Positive numbers.

    Returns
    -------
    ndarray
        Of the dtype of `x`; minus infinity at 0.

    Notes
    -----
    Maechler (2012).

    Examples
    --------
    >>> import numpy as np
    >>> log1mexp(np.array([1e-10, 50.0]))
    array([-2.30258509e+01, -1.92874985e-22])
    """
    x = as_real(x)
    near = x < np.log(2)
    small = np.log(-np.expm1(-np.where(near, x, 1)))
    return np.where(near, small, np.log1p(-np.exp(-np.where(near, 1, x))))


def _negative(x: Any) -> Any:
    """Put 0 in the place of positive elements, where an exponential might overflow."""
    return np.where(x > 0, 0, x)
