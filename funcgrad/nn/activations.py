"""More activation functions, for `funcgrad.nn.functional`: the pieces, the shrinking, the smooth.

At a kink each has the slope of least size among those beside it, as everywhere here: `leaky_relu`
that of the negative side, `relu6` and `hard_tanh` none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.errors import ShapeError, describe, user_line
from funcgrad.rules.nn import activations, normalizing
from funcgrad.rules.nn.activations import as_real

__all__ = [
    "arctan",
    "celu",
    "elu",
    "gelu",
    "glu",
    "gumbel_softmax",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "leaky_relu",
    "log1mexp",
    "logmeanexp",
    "mish",
    "relu6",
    "rrelu",
    "selu",
    "soft_shrink",
    "soft_sign",
    "softmin",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "standardize",
    "tanh_shrink",
    "threshold",
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
    return x * activations.normal_cdf(x)


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


def relu6(x: Any) -> Any:
    """Return `relu`, cut at 6.

    Parameters
    ----------
    x : array_like
        Real numbers.

    Returns
    -------
    ndarray
        ``clip(x, 0, 6)``, of the dtype of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> relu6(np.array([-1.0, 2.0, 8.0]))
    array([0., 2., 6.])
    """
    return np.clip(as_real(x), 0, 6)


def hard_tanh(x: Any) -> Any:
    """Return each element, cut at -1 and 1.

    Parameters
    ----------
    x : array_like
        Real numbers.

    Returns
    -------
    ndarray
        ``clip(x, -1, 1)``, of the dtype of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> hard_tanh(np.array([-3.0, 0.5]))
    array([-1. ,  0.5])
    """
    return np.clip(as_real(x), -1, 1)


def hard_sigmoid(x: Any) -> Any:
    """Return a logistic function made of three straight lines.

    Parameters
    ----------
    x : array_like
        Real numbers.

    Returns
    -------
    ndarray
        ``clip(x + 3, 0, 6) / 6``, of the dtype of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> hard_sigmoid(np.array([-4.0, 0.0, 4.0]))
    array([0. , 0.5, 1. ])
    """
    return np.clip(as_real(x) + 3, 0, 6) / 6


def hard_silu(x: Any) -> Any:
    """Return each element times its `hard_sigmoid`; also called `hard_swish`.

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
    Howard et al. (2019).

    Examples
    --------
    >>> import numpy as np
    >>> hard_silu(np.array([-4.0, 3.0]))
    array([-0.,  3.])
    """
    x = as_real(x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


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
    both = np.sqrt(np.square(x) + b) + np.abs(x)
    return np.where(x < 0, b / 2 / np.where(both > 0, both, 1), both / 2)


def sparse_plus(x: Any) -> Any:
    """Return a smooth form of `relu` that is 0 below -1 and exact above 1.

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
    Its slope is `sparse_sigmoid`.

    Examples
    --------
    >>> import numpy as np
    >>> sparse_plus(np.array([-2.0, 0.0, 2.0]))
    array([0.  , 0.25, 2.  ])
    """
    x = as_real(x)
    return np.where(x >= 1, x, np.square(np.clip(x, -1, 1) + 1) / 4)


def sparse_sigmoid(x: Any) -> Any:
    """Return a logistic function made of three straight lines, from -1 to 1.

    Parameters
    ----------
    x : array_like
        Real numbers.

    Returns
    -------
    ndarray
        ``clip(x + 1, 0, 2) / 2``, of the dtype of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> sparse_sigmoid(np.array([-2.0, 0.0, 2.0]))
    array([0. , 0.5, 1. ])
    """
    return np.clip(as_real(x) + 1, 0, 2) / 2


def threshold(x: Any, threshold: float, value: float) -> Any:
    """Return each element above a threshold, and a value for the others.

    Parameters
    ----------
    x : array_like
        Real numbers.
    threshold, value : float
        The threshold and the value.

    Returns
    -------
    ndarray
        ``where(x > threshold, x, value)``, of the dtype of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> threshold(np.array([0.5, 2.0]), 1.0, -1.0)
    array([-1.,  2.])
    """
    x = as_real(x)
    return np.where(x > threshold, x, value)


def hard_shrink(x: Any, lambd: float = 0.5) -> Any:
    """Return each element, those near 0 as 0.

    Parameters
    ----------
    x : array_like
        Real numbers.
    lambd : float
        How near.

    Returns
    -------
    ndarray
        ``where(abs(x) > lambd, x, 0)``, of the dtype of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> hard_shrink(np.array([-1.0, 0.5]))
    array([-1.,  0.])
    """
    x = as_real(x)
    return np.where(np.abs(x) > lambd, x, 0)


def soft_shrink(x: Any, lambd: float = 0.5) -> Any:
    """Return each element, nearer to 0 by a number; those near 0 as 0.

    Parameters
    ----------
    x : array_like
        Real numbers.
    lambd : float
        This number.

    Returns
    -------
    ndarray
        Of the dtype of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> soft_shrink(np.array([-1.0, 0.2]))
    array([-0.5,  0. ])
    """
    x = as_real(x)
    return x - np.clip(x, -lambd, lambd)


def tanh_shrink(x: Any) -> Any:
    """Return each element less its tanh.

    Parameters
    ----------
    x : array_like
        Real numbers.

    Returns
    -------
    ndarray
        ``x - tanh(x)``, of the dtype of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> tanh_shrink(np.array([0.0, 1.0])).round(6)
    array([0.      , 0.238406])
    """
    x = as_real(x)
    return x - np.tanh(x)


def glu(x: Any, axis: int = -1) -> Any:
    """Return one half of an array times the logistic function of the other.

    Parameters
    ----------
    x : array_like
        Real numbers.
    axis : int
        Along which the halves lie, of an even size.

    Returns
    -------
    ndarray
        ``a * sigmoid(b)`` of the two halves.

    Raises
    ------
    ShapeError
        There are no halves.

    Notes
    -----
    Dauphin et al. (2017).

    Examples
    --------
    >>> import numpy as np
    >>> glu(np.array([2.0, 4.0, 0.0, 0.0]))
    array([1., 2.])
    """
    x = as_real(x)
    shape = np.shape(x)
    if not -len(shape) <= axis < len(shape) or shape[axis] % 2:
        raise ShapeError(
            f"glu cannot halve {describe(x)} along axis {axis}",
            where=user_line(),
            fix="give an axis of an even size",
        )
    a, b = np.split(x, 2, axis=axis)
    return a * activations.sigmoid(b)


def softmin(x: Any, axis: int | tuple[int, ...] | None = -1) -> Any:
    """Return `softmax` of the negative of each element.

    Parameters
    ----------
    x : array_like
        Real numbers.
    axis : int or tuple of int, optional
        Where to sum; None for all axes.

    Returns
    -------
    ndarray
        Positive numbers that sum to 1, in the proportions of ``exp(-x)``.

    Examples
    --------
    >>> import numpy as np
    >>> softmin(np.array([1.0, 1.0, 1000.0]))
    array([0.5, 0.5, 0. ])
    """
    return fg.nn.functional.softmax(-as_real(x), axis)


def gumbel_softmax(
    logits: Any, key: fg.random.Key, temperature: float = 1.0, hard: bool = False, axis: int = -1
) -> Any:
    """Return a smooth form of a random choice with probabilities ``softmax(logits)``.

    Parameters
    ----------
    logits : array_like
        Logarithms of probabilities, up to a constant.
    key : Key
        For the choice.
    temperature : float
        The nearer to 0, the nearer to a choice of one.
    hard : bool
        Whether to return the choice itself, one-hot, with the derivative of the smooth form.
    axis : int
        Along which to choose.

    Returns
    -------
    ndarray
        Positive numbers that sum to 1, of the shape and dtype of `logits`.

    Notes
    -----
    Jang et al. (2017); Maddison et al. (2017).

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> gumbel_softmax(np.zeros(3), fg.random.key(0), hard=True).sum()
    np.float64(1.0)
    """
    logits = as_real(logits)
    noise = fg.random.gumbel(key, np.shape(logits), logits.dtype)
    soft = fg.nn.functional.softmax((logits + noise) / temperature, axis)
    if not hard:
        return soft
    index = np.expand_dims(np.argmax(soft, axis=axis), axis)
    count = np.shape(soft)[axis]
    places = np.reshape(np.arange(count), (-1,) + (1,) * (soft.ndim - 1 - axis % soft.ndim))
    chosen = np.equal(places, index).astype(soft.dtype)
    return chosen + (soft - fg.stop_gradient(soft))


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


def logmeanexp(
    x: Any, axis: int | tuple[int, ...] | None = None, where: Any = None, keepdims: bool = False
) -> Any:
    """Return the logarithm of a mean of exponentials.

    Parameters
    ----------
    x : array_like
        Real numbers of any size.
    axis : int or tuple of int, optional
        Where to average; all axes by default.
    where : array_like of bool, optional
        The elements that count, broadcast against `x`.
    keepdims : bool
        Keep the axes that were averaged, with size 1.

    Returns
    -------
    ndarray
        ``logsumexp(x) - log(n)`` of n elements.

    Examples
    --------
    >>> import numpy as np
    >>> logmeanexp(np.array([1000.0, 1000.0]))
    np.float64(1000.0)
    """
    x = as_real(x)
    counted = np.ones(np.shape(x)) if where is None else np.broadcast_to(where, np.shape(x))
    count = np.sum(counted, axis=axis, keepdims=keepdims).astype(x.dtype)
    total = fg.nn.functional.logsumexp(x, axis=axis, keepdims=keepdims, where=where)
    return total - np.log(count)


def standardize(
    x: Any,
    axis: int | tuple[int, ...] | None = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 1e-5,
    where: Any = None,
) -> Any:
    """Return an array less its mean, over its standard deviation.

    Parameters
    ----------
    x : array_like
        Real numbers.
    axis : int or tuple of int, optional
        Over which mean and variance are taken; None for all axes.
    mean, variance : array_like, optional
        Instead of those of `x`; broadcast against it.
    epsilon : float
        Added to the variance.
    where : array_like of bool, optional
        The elements that count in mean and variance.

    Returns
    -------
    ndarray
        ``(x - mean) / sqrt(variance + epsilon)``, of the dtype of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> standardize(np.array([1.0, 3.0]), epsilon=0.0)
    array([-1.,  1.])
    """
    x = as_real(x)
    if mean is None and variance is None and where is None:
        return normalizing.standardize(x, axis=axis, eps=epsilon)[0]
    options: dict[str, Any] = {"axis": axis, "keepdims": True}
    if where is not None:
        options["where"] = where
    if mean is None:
        mean = np.mean(x, **options)
    if variance is None:
        variance = np.mean(np.square(x - mean), **options)
    return (x - mean) / np.sqrt(variance + epsilon)


def _negative(x: Any) -> Any:
    """Put 0 in the place of positive elements, where an exponential might overflow."""
    return np.where(x > 0, 0, x)
