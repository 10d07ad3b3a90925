"""Activation functions made of pieces, with two kinks each or a gap: for `funcgrad.nn.functional`.

At a kink each has the slope of least size among those beside it, as everywhere here: `relu6` and
`hard_tanh` none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.rules.nn.activations import as_real

__all__ = [
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "relu6",
    "soft_shrink",
    "sparse_plus",
    "sparse_sigmoid",
    "tanh_shrink",
    "threshold",
]


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
