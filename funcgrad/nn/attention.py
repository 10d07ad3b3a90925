"""Attention with several heads as a layer, its cache, and rotary positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError, describe, user_line
from funcgrad.nn.attending import attend, causal_mask
from funcgrad.nn.checking import array, fits
from funcgrad.nn.containers import Dropout
from funcgrad.nn.linear import Linear
from funcgrad.nn.module import Module

__all__ = ["KeyValueCache", "MultiheadAttention", "RotaryPositionalEmbedding"]


class KeyValueCache(Module):
    """Keys and values of the positions so far, for generating one position after another.

    Parameters
    ----------
    key, value : ndarray, shape (..., heads, length, size)
        Of all positions so far.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.nn.KeyValueCache(np.zeros((2, 5, 4)), np.zeros((2, 5, 4))).length
    5
    """

    key: Any
    value: Any

    @property
    def length(self) -> int:
        """The number of positions."""
        return int(np.shape(self.key)[-2])


class MultiheadAttention(Module):
    """Attention with several heads, between four linear maps (Vaswani et al., 2017).

    Parameters
    ----------
    num_heads : int
        The number of heads.
    query_size : int
        The size of a query.
    key_size, value_size, output_size : int, optional
        The sizes of a key, of a value, and of a result; all are `query_size` by default.
    qk_size, vo_size : int, optional
        The sizes of each head, for products and for values; ``query_size // num_heads`` by
        default.
    use_query_bias, use_key_bias, use_value_bias, use_output_bias : bool
        Whether the linear maps add constants.
    dropout_p : float
        The probability that a weight is dropped, in training.
    inference : bool
        Whether nothing is dropped.
    dtype : dtype, optional
        Of the parameters; float64 by default.
    key : Key
        For the initial values.

    Attributes
    ----------
    query_proj, key_proj, value_proj, output_proj : Linear
        The maps.

    Raises
    ------
    ArgumentError
        `num_heads` does not divide `query_size`, where it gives the default.
    ShapeError
        When called: sizes do not fit.
    DtypeError
        When called: the mask is of floats, as masks are that are added.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> attention = fg.nn.MultiheadAttention(2, 8, key=fg.random.key(0))
    >>> x = np.ones((10, 5, 8))
    >>> attention(x, x, x, is_causal=True).shape
    (10, 5, 8)
    """

    query_proj: Linear
    key_proj: Linear
    value_proj: Linear
    output_proj: Linear
    dropout: Dropout
    num_heads: int = fg.static()
    qk_size: int = fg.static()
    vo_size: int = fg.static()

    def __init__(
        self,
        num_heads: int,
        query_size: int,
        key_size: int | None = None,
        value_size: int | None = None,
        output_size: int | None = None,
        qk_size: int | None = None,
        vo_size: int | None = None,
        use_query_bias: bool = False,
        use_key_bias: bool = False,
        use_value_bias: bool = False,
        use_output_bias: bool = False,
        dropout_p: float = 0.0,
        inference: bool = False,
        dtype: npt.DTypeLike | None = None,
        *,
        key: fg.random.Key,
    ) -> None:
        if num_heads < 1 or (None in (qk_size, vo_size) and query_size % num_heads):
            raise ArgumentError(
                f"{num_heads} heads cannot share a query_size of {query_size}",
                where=user_line(),
                fix="a number of heads that divides it, or qk_size= and vo_size=",
            )
        self.num_heads = num_heads
        self.qk_size = query_size // num_heads if qk_size is None else qk_size
        self.vo_size = query_size // num_heads if vo_size is None else vo_size
        keys = fg.random.split(key, 4)
        key_size = query_size if key_size is None else key_size
        value_size = query_size if value_size is None else value_size
        output_size = query_size if output_size is None else output_size
        inner, outer = num_heads * self.qk_size, num_heads * self.vo_size
        self.query_proj = Linear(query_size, inner, use_query_bias, dtype, key=keys[0])
        self.key_proj = Linear(key_size, inner, use_key_bias, dtype, key=keys[1])
        self.value_proj = Linear(value_size, outer, use_value_bias, dtype, key=keys[2])
        self.output_proj = Linear(outer, output_size, use_output_bias, dtype, key=keys[3])
        self.dropout = Dropout(dropout_p, inference)

    def __call__(
        self,
        query: Any,
        key_: Any,
        value: Any,
        mask: Any = None,
        *,
        is_causal: bool = False,
        cache: KeyValueCache | None = None,
        process_heads: Callable[[Any, Any, Any], tuple[Any, Any, Any]] | None = None,
        key: fg.random.Key | None = None,
        inference: bool | None = None,
    ) -> Any:
        """Attend.

        Parameters
        ----------
        query : ndarray, shape (..., T, query_size)
            What looks.
        key_, value : ndarray, shape (..., S, key_size) and (..., S, value_size)
            What is looked at.
        mask : ndarray of bool, optional
            Where queries may look, of shape (..., T, S) for all heads, or (..., heads, T, S).
        is_causal : bool
            Whether a query sees no key after its own; the last query has the place of the last
            key.
        cache : KeyValueCache, optional
            Of earlier positions. With one, the result is ``(out, cache)``, with the new ones
            after them; `KeyValueCache.length` 0 to begin: see `empty_cache`.
        process_heads : callable, optional
            Takes queries, keys and values of shape (..., T, heads, size), and returns such:
            for rotary positions.
        key : Key, optional
            For dropout.
        inference : bool, optional
            Instead of that of the dropout.

        Returns
        -------
        ndarray, shape (..., T, output_size)
            The results; with a cache, and the cache.
        """
        query, key_, value = array(query), array(key_), array(value)
        if query.ndim < 2 or key_.shape[-2:-1] != value.shape[-2:-1] or value.ndim < 2:
            raise self._unfit(query, key_, value)
        q = self._heads(self.query_proj(query), self.qk_size)
        k = self._heads(self.key_proj(key_), self.qk_size)
        v = self._heads(self.value_proj(value), self.vo_size)
        if process_heads is not None:
            q, k, v = process_heads(q, k, v)
        q, k, v = np.swapaxes(q, -2, -3), np.swapaxes(k, -2, -3), np.swapaxes(v, -2, -3)
        if cache is not None:
            k = np.concatenate([cache.key, k], axis=-2)
            v = np.concatenate([cache.value, v], axis=-2)
        count, keys = q.shape[-2], k.shape[-2]
        lead = q.shape[:-2]
        if lead != k.shape[:-2] or lead != v.shape[:-2]:
            try:
                lead = np.broadcast_shapes(lead, k.shape[:-2], v.shape[:-2])
            except ValueError:
                raise self._unfit(query, key_, value) from None
        if mask is not None:
            mask = array(mask)
            mask = np.expand_dims(mask, -3) if mask.ndim == query.ndim else mask
            if not fits(mask.shape, (*lead, count, keys)):
                raise ShapeError(
                    f"the mask of MultiheadAttention expects (..., {count}, {keys}), "
                    f"and was given {describe(mask)}",
                    where=f"{user_line()}: query {describe(query)}, {keys} keys",
                    fix="(..., T, S) for all heads, or (..., heads, T, S); "
                    "mask[..., None, :] of one that says which keys are no padding",
                )
        if is_causal and count > 1:
            causal = causal_mask(count, keys)
            mask = causal if mask is None else np.logical_and(mask, causal)

        def drop(weights: Any) -> Any:
            return self.dropout(weights, key=key, inference=inference)

        out = np.swapaxes(attend(q, k, v, mask, drop=drop), -2, -3)
        out = self.output_proj(np.reshape(out, (*out.shape[:-2], self.num_heads * self.vo_size)))
        return out if cache is None else (out, KeyValueCache(k, v))

    def empty_cache(self, *lead: int) -> KeyValueCache:
        """Return a cache of no positions.

        Parameters
        ----------
        *lead : int
            The sizes of the axes before the sequence, as of a batch.

        Returns
        -------
        KeyValueCache
            Of length 0.
        """
        dtype = self.key_proj.weight.dtype
        return KeyValueCache(
            np.zeros((*lead, self.num_heads, 0, self.qk_size), dtype),
            np.zeros((*lead, self.num_heads, 0, self.vo_size), dtype),
        )

    def _unfit(self, query: Any, key: Any, value: Any) -> ShapeError:
        return ShapeError(
            "MultiheadAttention expects (..., T, query_size), (..., S, key_size) and "
            f"(..., S, value_size), and was given {describe(query)}, {describe(key)} and "
            f"{describe(value)}",
            where=user_line(),
            fix="as many values as keys, and the same axes before those",
        )

    def _heads(self, x: Any, size: int) -> Any:
        return np.reshape(x, (*x.shape[:-1], self.num_heads, size))


class RotaryPositionalEmbedding(Module):
    """Turns pairs of features by angles that grow with the position (Su et al., 2021).

    Parameters
    ----------
    embedding_size : int
        The number of features, which is even.
    theta : float
        The longest wavelength over 2 pi.
    dtype : dtype, optional
        Of sines and cosines; that of the argument by default.

    Raises
    ------
    ArgumentError
        `embedding_size` is odd.
    ShapeError
        When called: the last axis has another size.

    Notes
    -----
    Pairs are (i, i + embedding_size / 2), as in GPT-NeoX and Equinox.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> rotary = fg.nn.RotaryPositionalEmbedding(2)
    >>> rotary(np.array([[1.0, 0.0], [1.0, 0.0]])).round(6)
    array([[1.      , 0.      ],
           [0.540302, 0.841471]])
    """

    embedding_size: int = fg.static()
    theta: float = fg.static()
    dtype: Any = fg.static()

    def __init__(
        self, embedding_size: int, theta: float = 10_000.0, dtype: npt.DTypeLike | None = None
    ) -> None:
        if embedding_size < 0 or embedding_size % 2:
            raise ArgumentError(
                f"RotaryPositionalEmbedding cannot have embedding_size={embedding_size}",
                where=user_line(),
                fix="an even number",
            )
        self.embedding_size, self.theta, self.dtype = embedding_size, theta, dtype

    def __call__(
        self, x: Any, *, start: Any = 0, axis: int = -2, key: fg.random.Key | None = None
    ) -> Any:
        """Turn `x`, of shape (..., time, embedding_size).

        Parameters
        ----------
        x : ndarray
            The features.
        start : int
            The position of the first.
        axis : int
            The axis of the positions: -3 for (..., time, heads, embedding_size).
        key : Key, optional
            Not used.
        """
        x = array(x)
        shape = x.shape
        if len(shape) < 2 or shape[-1] != self.embedding_size:
            raise ShapeError(
                f"RotaryPositionalEmbedding expects (..., time, {self.embedding_size}), "
                f"and was given {describe(x)}",
                where=user_line(),
                fix=f"the last axis has to count {self.embedding_size} features",
            )
        half = self.embedding_size // 2
        frequencies = self.theta ** (-np.arange(half) / max(half, 1))
        angles = (start + np.arange(shape[axis]))[:, None] * frequencies
        angles = np.reshape(angles, (shape[axis], *(1,) * (-axis - 2), half))
        dtype = x.dtype if self.dtype is None else self.dtype
        cos, sin = np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)
        first, second = x[..., :half], x[..., half:]
        turned = [first * cos - second * sin, first * sin + second * cos]
        return np.concatenate(turned, axis=-1)
