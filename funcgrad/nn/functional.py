"""Activation functions, under the names of ``jax.nn``; convolutions and pooling, as in PyTorch.

All activations take arrays, Python numbers and lists, keep narrow floats narrow, and neither
overflow nor warn for arguments of any size; their derivatives stay right at the ends too. Integers
become float64, but for `relu`. The losses that start from logits are here as well as in
`funcgrad.nn.losses`; convolutions, pooling and `unfold` come from modules of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from funcgrad.errors import ArgumentError, user_line
from funcgrad.nn.activations import (
    arctan,
    celu,
    elu,
    gelu,
    identity,
    leaky_relu,
    log1mexp,
    mish,
    rrelu,
    selu,
    soft_sign,
    squareplus,
)
from funcgrad.nn.adaptive import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
)
from funcgrad.nn.along_axes import (
    glu,
    gumbel_softmax,
    logmeanexp,
    softmin,
    standardize,
)
from funcgrad.nn.attending import dot_product_attention
from funcgrad.nn.conv import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from funcgrad.nn.losses import (
    sigmoid_binary_cross_entropy,
    softmax_cross_entropy,
    softmax_cross_entropy_with_integer_labels,
)
from funcgrad.nn.piecewise import (
    hard_shrink,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    relu6,
    soft_shrink,
    sparse_plus,
    sparse_sigmoid,
    tanh_shrink,
    threshold,
)
from funcgrad.nn.pooling import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    fold,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    unfold,
)
from funcgrad.rules.nn import activations
from funcgrad.rules.nn import softmax as softmaxes

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "arctan",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "celu",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "dot_product_attention",
    "elu",
    "fold",
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
    "log_sigmoid",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "rrelu",
    "selu",
    "sigmoid",
    "sigmoid_binary_cross_entropy",
    "silu",
    "soft_shrink",
    "soft_sign",
    "softmax",
    "softmax_cross_entropy",
    "softmax_cross_entropy_with_integer_labels",
    "softmin",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "standardize",
    "swish",
    "tanh",
    "tanh_shrink",
    "threshold",
    "unfold",
]


def relu(x: Any) -> Any:
    """Return the positive part of each element.

    Parameters
    ----------
    x : array_like
        Real numbers.

    Returns
    -------
    ndarray
        ``maximum(x, 0)``, of the dtype of `x`. The slope at 0 is 0.

    Examples
    --------
    >>> import numpy as np
    >>> relu(np.array([-1.0, 0.0, 2.0]))
    array([0., 0., 2.])
    """
    return activations.relu(x)


def sigmoid(x: Any) -> Any:
    """Return the logistic function of each element.

    Parameters
    ----------
    x : array_like
        Real numbers.

    Returns
    -------
    ndarray
        ``1 / (1 + exp(-x))``, of the dtype of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0]))
    array([0. , 0.5, 1. ])
    """
    return activations.sigmoid(x)


def log_sigmoid(x: Any) -> Any:
    """Return the logarithm of the logistic function of each element.

    Parameters
    ----------
    x : array_like
        Real numbers.

    Returns
    -------
    ndarray
        ``-softplus(-x)``, of the dtype of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> log_sigmoid(np.array([-1000.0, 0.0]))
    array([-1.00000000e+03, -6.93147181e-01])
    """
    return -activations.softplus(-activations.as_real(x))


def softplus(x: Any) -> Any:
    """Return ``log(1 + exp(x))`` of each element.

    Parameters
    ----------
    x : array_like
        Real numbers.

    Returns
    -------
    ndarray
        A smooth form of `relu`, of the dtype of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> softplus(np.array([-1000.0, 0.0, 1000.0]))
    array([0.00000000e+00, 6.93147181e-01, 1.00000000e+03])
    """
    return activations.softplus(x)


def silu(x: Any) -> Any:
    """Return each element times its logistic function; also called `swish`.

    Parameters
    ----------
    x : array_like
        Real numbers.

    Returns
    -------
    ndarray
        ``x * sigmoid(x)``, of the dtype of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> silu(np.array([0.0, 1.0]))
    array([0.        , 0.73105858])
    """
    x = activations.as_real(x)
    return x * activations.sigmoid(x)


swish = silu


def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent of each element: ``np.tanh``.

    Parameters
    ----------
    x : array_like
        Numbers.

    Returns
    -------
    ndarray
        Of the dtype of `x`.

    Examples
    --------
    >>> tanh(0.0)
    np.float64(0.0)
    """
    return np.tanh(x)


def softmax(x: Any, axis: int | tuple[int, ...] | None = -1, where: Any = None) -> Any:
    """Return positive numbers that sum to 1 over an axis, in the proportions of ``exp(x)``.

    Parameters
    ----------
    x : array_like
        Real numbers of any size. Minus infinity gives 0; if all are equal, infinite or not, all
        get the same share.
    axis : int or tuple of int, optional
        Where to sum; None for all axes.
    where : array_like of bool, optional
        The elements that count, broadcast against `x`; the others are 0 in the result.

    Returns
    -------
    ndarray
        ``exp(x) / sum(exp(x))``, of the shape and dtype of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> softmax(np.array([1000.0, 1000.0, 0.0]))
    array([0.5, 0.5, 0. ])
    """
    if where is None:
        return softmaxes.softmax(x, axis=axis)
    masked = np.where(where, activations.as_real(x), -np.inf)
    return np.where(where, softmaxes.softmax(masked, axis=axis), 0)


def log_softmax(x: Any, axis: int | tuple[int, ...] | None = -1, where: Any = None) -> Any:
    """Return the logarithm of `softmax`.

    Parameters
    ----------
    x : array_like
        Real numbers of any size.
    axis : int or tuple of int, optional
        Where the probabilities sum to 1; None for all axes.
    where : array_like of bool, optional
        The elements that count, broadcast against `x`; the others are minus infinity in the result.

    Returns
    -------
    ndarray
        ``x - log(sum(exp(x)))``, of the shape and dtype of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> log_softmax(np.array([1e4, 0.0]))
    array([     0., -10000.])
    """
    if where is None:
        return softmaxes.log_softmax(x, axis=axis)
    masked = np.where(where, activations.as_real(x), -np.inf)
    return np.where(where, softmaxes.log_softmax(masked, axis=axis), -np.inf)


def logsumexp(
    a: Any,
    axis: int | tuple[int, ...] | None = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    """Return the logarithm of a sum of exponentials.

    Parameters
    ----------
    a : array_like
        Real numbers of any size.
    axis : int or tuple of int, optional
        Where to sum; all axes by default.
    b : array_like, optional
        Factors of the exponentials, broadcast against `a`; they may be 0 or negative.
    keepdims : bool
        Keep the axes that were summed, with size 1.
    return_sign : bool
        Return the logarithm of the absolute value of the sum, and its sign.
    where : array_like of bool, optional
        The terms that count, broadcast against `a`.

    Returns
    -------
    out : ndarray
        ``log(sum(b * exp(a)))``. The sum of nothing gives minus infinity; a negative sum NaN
        unless `return_sign`.
    sign : ndarray
        Only with `return_sign`: 1, 0 or -1, of the shape of `out`.

    Examples
    --------
    >>> import numpy as np
    >>> logsumexp(np.array([1000.0, 1000.0]))
    np.float64(1000.6931471805599)
    >>> logsumexp(np.array([1.0, 0.0]), b=np.array([1.0, -1.0])).round(6)
    np.float64(0.541325)
    """
    if where is not None:
        a = np.where(where, activations.as_real(a), -np.inf)
    if b is None:
        out = softmaxes.log_sum_exp(a, axis=axis, keepdims=keepdims)
        if not return_sign:
            return out
        b = 1.0
    else:
        if where is not None:
            b = np.where(where, activations.as_real(b), 0)
        out = softmaxes.weighted_log_sum_exp(a, b, axis=axis, keepdims=keepdims)
    sign = softmaxes.weighted_sign(a, b, axis=axis, keepdims=keepdims)
    return (out, sign) if return_sign else np.where(np.less(sign, 0), np.nan, out)[()]


def one_hot(x: Any, num_classes: int, *, dtype: npt.DTypeLike = np.float64, axis: int = -1) -> Any:
    """Return vectors that are 1 at the place each integer says, and 0 elsewhere.

    Parameters
    ----------
    x : array_like of int
        Class numbers. One that is negative or too large gives a vector of zeros.
    num_classes : int
        The length of the vectors.
    dtype : dtype
        Of the result.
    axis : int
        Where the new axis goes.

    Returns
    -------
    ndarray
        Of the shape of `x` with one axis more.

    Raises
    ------
    ArgumentError
        `x` holds no integers.

    Examples
    --------
    >>> import numpy as np
    >>> one_hot(np.array([0, 2]), 3)
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    if not hasattr(x, "dtype"):
        x = np.asarray(x)
    if x.dtype.kind not in "iu":
        raise ArgumentError(
            f"one_hot needs integers, got dtype {x.dtype}",
            where=user_line(),
            fix="convert the classes with x.astype(int)",
        )
    x = np.expand_dims(x, axis)
    ndim = x.ndim
    classes = np.arange(num_classes).reshape((-1,) + (1,) * (ndim - 1 - axis % ndim))
    return np.equal(x, classes).astype(dtype)
