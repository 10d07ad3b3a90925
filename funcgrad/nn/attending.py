"""Attention as a function.

The one idea: softmax(Q K' / sqrt(d)) V over the last two axes, as two products of stacks of
matrices. Masks are True where a query may look.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.errors import DtypeError, ShapeError, describe, user_line
from funcgrad.nn.checking import array

__all__ = ["attend", "causal_mask", "dot_product_attention"]


def attend(
    query: Any,
    key: Any,
    value: Any,
    mask: Any = None,
    bias: Any = None,
    scale: float | None = None,
    drop: Callable[[Any], Any] | None = None,
) -> Any:
    """Return attention over the last two axes of stacks of queries, keys and values.

    Shapes are (..., T, d), (..., S, d) and (..., S, v), of `mask` and `bias` (..., T, S). A query
    that may look nowhere gets 0.
    """
    if mask is not None:
        mask = array(mask)
        if mask.dtype.kind not in "biu":
            raise DtypeError(
                f"attention takes a mask of bools, not {describe(mask)}",
                where=user_line(),
                fix="True where a query may look: mask == 0 for one of 0 and -inf, which is added",
            )
    factor = 1 / math.sqrt(max(np.shape(query)[-1], 1)) if scale is None else scale
    logits = (query * factor) @ np.swapaxes(key, -1, -2)
    if bias is not None:
        logits = logits + bias
    weights = fg.nn.functional.softmax(logits, axis=-1, where=mask)
    if drop is not None:
        weights = drop(weights)
    return weights @ value


def causal_mask(queries: int, keys: int) -> Any:
    """Return which keys come no later than each query, if both end at the same time."""
    return np.arange(keys) <= np.arange(keys - queries, keys)[:, None]


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: int | tuple[int, int] | None = None,
) -> Any:
    """Return averages of values, weighted by how well their keys match a query.

    Parameters
    ----------
    query : array_like, shape (..., T, N, d)
        T queries of each of N heads.
    key : array_like, shape (..., S, K, d)
        S keys. K divides N: each head of keys serves N / K heads of queries.
    value : array_like, shape (..., S, K, v)
        The values of the keys.
    bias : array_like, optional
        Added to the logits; broadcast against (..., N, T, S).
    mask : array_like of bool, optional
        Where queries may look; broadcast against (..., N, T, S).
    scale : float, optional
        A factor of the products; 1/sqrt(d) by default.
    is_causal : bool
        Whether a query sees no key after its own.
    query_seq_lengths, key_value_seq_lengths : array_like of int, shape (...,), optional
        How many of the queries, and of the keys, are no padding.
    local_window_size : int or pair of int, optional
        How many keys before and after its own a query sees.

    Returns
    -------
    ndarray, shape (..., T, N, v)
        A query that may look nowhere gets 0, and so does padding.

    Raises
    ------
    ShapeError
        The heads or sizes do not fit.
    DtypeError
        The mask is of floats: one that is added is a `bias`.

    Notes
    -----
    Vaswani et al. (2017); with fewer heads of keys, Ainslie et al. (2023).

    Examples
    --------
    >>> import numpy as np
    >>> q, k, v = np.zeros((3, 2, 4)), np.zeros((3, 2, 4)), np.arange(6.0).reshape(3, 2, 1)
    >>> dot_product_attention(q, k, v, is_causal=True)[:, 0, 0]
    array([0., 1., 2.])
    """
    query, key, value = (array(x) for x in (query, key, value))
    if min(query.ndim, key.ndim, value.ndim) < 3 or (
        query.shape[-1] != key.shape[-1]
        or key.shape[-3:-1] != value.shape[-3:-1]
        or query.shape[-2] % max(key.shape[-2], 1)
    ):
        raise ShapeError(
            "the shapes of queries, keys and values do not fit",
            where=f"{user_line()}: query {describe(query)}, key {describe(key)}, "
            f"value {describe(value)}",
            fix="(..., T, N, d), (..., S, K, d) and (..., S, K, v), where K divides N",
        )
    heads, kept = query.shape[-2], key.shape[-2]
    count, keys = query.shape[-3], key.shape[-3]
    masks = [] if mask is None else [mask]
    if is_causal:
        masks.append(np.arange(keys) <= np.arange(count)[:, None])
    if local_window_size is not None:
        before, after = (
            (local_window_size, local_window_size)
            if isinstance(local_window_size, int)
            else local_window_size
        )
        distance = np.arange(keys) - np.arange(count)[:, None]
        masks.append((distance >= -before) & (distance <= after))
    if query_seq_lengths is not None:
        lengths = np.expand_dims(query_seq_lengths, (-1, -2, -3))
        masks.append(np.less(np.arange(count)[:, None], lengths))
    if key_value_seq_lengths is not None:
        lengths = np.expand_dims(key_value_seq_lengths, (-1, -2, -3))
        masks.append(np.less(np.arange(keys), lengths))
    allowed = None
    for one in masks:
        allowed = one if allowed is None else np.logical_and(allowed, one)
    if kept != heads:
        key = np.repeat(key, heads // kept, axis=-2)
        value = np.repeat(value, heads // kept, axis=-2)
    out = attend(
        np.swapaxes(query, -2, -3),
        np.swapaxes(key, -2, -3),
        np.swapaxes(value, -2, -3),
        allowed,
        bias,
        scale,
    )
    return np.swapaxes(out, -2, -3)
