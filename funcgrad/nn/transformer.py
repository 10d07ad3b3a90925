"""Transformers: blocks of attention and of a small network, and stacks of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt

import funcgrad as fg
from funcgrad.errors import ArgumentError, user_line
from funcgrad.nn.attention import KeyValueCache, MultiheadAttention, RotaryPositionalEmbedding
from funcgrad.nn.containers import Dropout
from funcgrad.nn.linear import Linear
from funcgrad.nn.module import Module
from funcgrad.nn.norms import LayerNorm

__all__ = [
    "TransformerDecoder",
    "TransformerDecoderBlock",
    "TransformerEncoder",
    "TransformerEncoderBlock",
]


class TransformerEncoderBlock(Module):
    """Attention of a sequence to itself, then a small network for each position.

    Each is added to what goes in, normalised before (`pre_norm`, Xiong et al., 2020) or after the
    sum (Vaswani et al., 2017).

    Parameters
    ----------
    num_heads : int
        The number of heads.
    size : int
        The number of features.
    mlp_size : int, optional
        The size of the layer in the network; ``4 * size`` by default.
    dropout_p : float
        The probability that a weight of the attention, or a feature of what is added, is dropped.
    activation : callable
        In the network; the exact `gelu` by default.
    pre_norm : bool
        Where to normalise.
    use_bias : bool
        Whether linear maps and normalisations add constants.
    rotary : bool
        Whether queries and keys are turned by their positions; see `RotaryPositionalEmbedding`.
    dtype : dtype, optional
        Of the parameters; float64 by default.
    key : Key
        For the initial values.

    Raises
    ------
    ArgumentError
        `num_heads` does not divide `size`.
    ShapeError
        When called: the last axis has another size.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> block = fg.nn.TransformerEncoderBlock(2, 8, key=fg.random.key(0))
    >>> block(np.ones((10, 5, 8)), is_causal=True).shape
    (10, 5, 8)
    """

    attention: MultiheadAttention
    attention_norm: LayerNorm
    inner: Linear
    outer: Linear
    mlp_norm: LayerNorm
    dropout: Dropout
    rotary: RotaryPositionalEmbedding | None
    activation: Callable[[Any], Any] = fg.static()
    pre_norm: bool = fg.static()

    def __init__(
        self,
        num_heads: int,
        size: int,
        mlp_size: int | None = None,
        dropout_p: float = 0.0,
        activation: Callable[[Any], Any] | None = None,
        pre_norm: bool = True,
        use_bias: bool = True,
        rotary: bool = False,
        dtype: npt.DTypeLike | None = None,
        *,
        key: fg.random.Key,
    ) -> None:
        attention_key, inner_key, outer_key = fg.random.split(key, 3)
        width = 4 * size if mlp_size is None else mlp_size
        self.attention = _attention(num_heads, size, dropout_p, use_bias, dtype, attention_key)
        self.attention_norm = LayerNorm(size, use_bias=use_bias, dtype=dtype)
        self.inner = Linear(size, width, use_bias, dtype, key=inner_key)
        self.outer = Linear(width, size, use_bias, dtype, key=outer_key)
        self.mlp_norm = LayerNorm(size, use_bias=use_bias, dtype=dtype)
        self.dropout = Dropout(dropout_p)
        self.rotary = RotaryPositionalEmbedding(size // num_heads) if rotary else None
        self.activation = _exact_gelu if activation is None else activation
        self.pre_norm = pre_norm

    def __call__(
        self,
        x: Any,
        mask: Any = None,
        *,
        is_causal: bool = False,
        cache: KeyValueCache | None = None,
        key: fg.random.Key | None = None,
    ) -> Any:
        """Transform `x`, of shape (..., time, size).

        Parameters
        ----------
        x : ndarray
            The sequence.
        mask : ndarray of bool, optional
            Where positions may look, (..., time, time), or with an axis of heads before these.
        is_causal : bool
            Whether a position sees none after it.
        cache : KeyValueCache, optional
            Of earlier positions; with one, the result is ``(out, cache)``.
        key : Key, optional
            For dropout.
        """
        keys = (None,) * 3 if key is None else tuple(fg.random.split(key, 3))

        def attend(y: Any) -> Any:
            nonlocal cache
            out, cache = self._attend(y, mask, is_causal, cache, keys[0], keys[1])
            return out

        x = _residual(x, attend, self.attention_norm, self.pre_norm)
        x = self._transformed(x, keys[2])
        return x if cache is None else (x, cache)

    def _attend(
        self, y: Any, mask: Any, is_causal: bool, cache: Any, key: Any, drop_key: Any
    ) -> tuple[Any, Any]:
        """Return the attention of a sequence to itself, before it is added, and the cache."""
        out = self.attention(
            y,
            y,
            y,
            mask,
            is_causal=is_causal,
            cache=cache,
            process_heads=_turn(self.rotary, cache),
            key=key,
        )
        if cache is not None:
            out, cache = out
        return self.dropout(out, key=drop_key), cache

    def _transformed(self, x: Any, key: Any) -> Any:
        """Add what the network makes of each position."""

        def transform(y: Any) -> Any:
            return self.dropout(self.outer(self.activation(self.inner(y))), key=key)

        return _residual(x, transform, self.mlp_norm, self.pre_norm)


class TransformerDecoderBlock(Module):
    """A block that also looks at another sequence, `memory`, between its two parts.

    Parameters
    ----------
    num_heads, size, mlp_size, dropout_p, activation, pre_norm, use_bias, rotary, dtype, key
        See `TransformerEncoderBlock`.
    memory_size : int, optional
        The number of features of `memory`; `size` by default.

    Raises
    ------
    ArgumentError, ShapeError
        As `TransformerEncoderBlock`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> block = fg.nn.TransformerDecoderBlock(2, 8, key=fg.random.key(0))
    >>> block(np.ones((10, 5, 8)), np.ones((10, 7, 8))).shape
    (10, 5, 8)
    """

    block: TransformerEncoderBlock
    cross: MultiheadAttention
    cross_norm: LayerNorm

    def __init__(
        self,
        num_heads: int,
        size: int,
        mlp_size: int | None = None,
        dropout_p: float = 0.0,
        activation: Callable[[Any], Any] | None = None,
        pre_norm: bool = True,
        use_bias: bool = True,
        rotary: bool = False,
        dtype: npt.DTypeLike | None = None,
        *,
        memory_size: int | None = None,
        key: fg.random.Key,
    ) -> None:
        block_key, cross_key = fg.random.split(key)
        self.block = TransformerEncoderBlock(
            num_heads,
            size,
            mlp_size,
            dropout_p,
            activation,
            pre_norm,
            use_bias,
            rotary,
            dtype,
            key=block_key,
        )
        self.cross = _attention(num_heads, size, dropout_p, use_bias, dtype, cross_key, memory_size)
        self.cross_norm = LayerNorm(size, use_bias=use_bias, dtype=dtype)

    def __call__(
        self,
        x: Any,
        memory: Any,
        mask: Any = None,
        memory_mask: Any = None,
        *,
        is_causal: bool = True,
        key: fg.random.Key | None = None,
    ) -> Any:
        """Transform `x`, of shape (..., time, size).

        Parameters
        ----------
        x : ndarray
            The sequence.
        memory : ndarray, shape (..., other time, memory_size)
            What else to look at.
        mask, memory_mask : ndarray of bool, optional
            Where positions may look, (..., time, time) and (..., time, other time).
        is_causal : bool
            Whether a position sees none after it.
        key : Key, optional
            For dropout.
        """
        block = self.block
        keys = (None,) * 5 if key is None else tuple(fg.random.split(key, 5))

        def attend(y: Any) -> Any:
            return block._attend(y, mask, is_causal, None, keys[0], keys[1])[0]

        def look(y: Any) -> Any:
            out = self.cross(y, memory, memory, memory_mask, key=keys[2])
            return block.dropout(out, key=keys[3])

        x = _residual(x, attend, block.attention_norm, block.pre_norm)
        x = _residual(x, look, self.cross_norm, block.pre_norm)
        return block._transformed(x, keys[4])


class TransformerEncoder(Module):
    """A stack of `TransformerEncoderBlock`; with ``is_causal=True`` a decoder-only language model.

    Parameters
    ----------
    num_layers : int
        The number of blocks.
    num_heads, size : int
        Of each.
    dtype : dtype, optional
        Of the parameters; float64 by default.
    key : Key
        For the initial values.
    **options
        The others of `TransformerEncoderBlock`.

    Raises
    ------
    ArgumentError, ShapeError
        As `TransformerEncoderBlock`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> encoder = fg.nn.TransformerEncoder(3, 2, 8, key=fg.random.key(0))
    >>> encoder(np.ones((10, 5, 8))).shape
    (10, 5, 8)
    """

    blocks: tuple[TransformerEncoderBlock, ...]
    norm: LayerNorm | None

    def __init__(
        self,
        num_layers: int,
        num_heads: int,
        size: int,
        dtype: npt.DTypeLike | None = None,
        *,
        key: fg.random.Key,
        **options: Any,
    ) -> None:
        self.blocks = tuple(
            TransformerEncoderBlock(num_heads, size, dtype=dtype, key=block_key, **options)
            for block_key in _layer_keys(type(self).__name__, key, num_layers)
        )
        self.norm = _last_norm(self.blocks, size, dtype, options)

    def __call__(
        self,
        x: Any,
        mask: Any = None,
        *,
        is_causal: bool = False,
        caches: Any = None,
        key: fg.random.Key | None = None,
    ) -> Any:
        """Transform `x`, of shape (..., time, size); see `TransformerEncoderBlock`.

        With `caches`, one for each block, the result is ``(out, caches)``.
        """
        keys = [None] * len(self.blocks) if key is None else fg.random.split(key, len(self.blocks))
        after = []
        for i, (block, block_key) in enumerate(zip(self.blocks, keys, strict=True)):
            if caches is None:
                x = block(x, mask, is_causal=is_causal, key=block_key)
            else:
                x, cache = block(x, mask, is_causal=is_causal, cache=caches[i], key=block_key)
                after.append(cache)
        x = x if self.norm is None else self.norm(x)
        return x if caches is None else (x, after)

    def empty_caches(self, *lead: int) -> list[KeyValueCache]:
        """Return caches of no positions, one for each block.

        Parameters
        ----------
        *lead : int
            The sizes of the axes before the sequence, as of a batch.

        Returns
        -------
        list of KeyValueCache
            Of length 0.
        """
        return [block.attention.empty_cache(*lead) for block in self.blocks]


class TransformerDecoder(Module):
    """A stack of `TransformerDecoderBlock`.

    Parameters
    ----------
    num_layers : int
        The number of blocks.
    num_heads, size : int
        Of each.
    dtype : dtype, optional
        Of the parameters; float64 by default.
    key : Key
        For the initial values.
    **options
        The others of `TransformerDecoderBlock`.

    Raises
    ------
    ArgumentError, ShapeError
        As `TransformerEncoderBlock`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> decoder = fg.nn.TransformerDecoder(2, 2, 8, key=fg.random.key(0))
    >>> decoder(np.ones((10, 5, 8)), np.ones((10, 7, 8))).shape
    (10, 5, 8)
    """

    blocks: tuple[TransformerDecoderBlock, ...]
    norm: LayerNorm | None

    def __init__(
        self,
        num_layers: int,
        num_heads: int,
        size: int,
        dtype: npt.DTypeLike | None = None,
        *,
        key: fg.random.Key,
        **options: Any,
    ) -> None:
        self.blocks = tuple(
            TransformerDecoderBlock(num_heads, size, dtype=dtype, key=block_key, **options)
            for block_key in _layer_keys(type(self).__name__, key, num_layers)
        )
        self.norm = _last_norm(self.blocks, size, dtype, options)

    def __call__(
        self,
        x: Any,
        memory: Any,
        mask: Any = None,
        memory_mask: Any = None,
        *,
        is_causal: bool = True,
        key: fg.random.Key | None = None,
    ) -> Any:
        """Transform `x`, of shape (..., time, size); see `TransformerDecoderBlock`."""
        keys = [None] * len(self.blocks) if key is None else fg.random.split(key, len(self.blocks))
        for block, block_key in zip(self.blocks, keys, strict=True):
            x = block(x, memory, mask, memory_mask, is_causal=is_causal, key=block_key)
        return x if self.norm is None else self.norm(x)


def _exact_gelu(x: Any) -> Any:
    return fg.nn.functional.gelu(x, approximate=False)


def _attention(
    num_heads: int,
    size: int,
    dropout_p: float,
    use_bias: bool,
    dtype: Any,
    key: fg.random.Key,
    memory_size: int | None = None,
) -> MultiheadAttention:
    return MultiheadAttention(
        num_heads,
        size,
        key_size=memory_size,
        value_size=memory_size,
        use_query_bias=use_bias,
        use_key_bias=use_bias,
        use_value_bias=use_bias,
        use_output_bias=use_bias,
        dropout_p=dropout_p,
        dtype=dtype,
        key=key,
    )


def _residual(x: Any, part: Callable[[Any], Any], norm: LayerNorm, pre_norm: bool) -> Any:
    return x + part(norm(x)) if pre_norm else norm(x + part(x))


def _turn(
    rotary: RotaryPositionalEmbedding | None, cache: KeyValueCache | None
) -> Callable[[Any, Any, Any], tuple[Any, Any, Any]] | None:
    """Return what turns queries and keys of shape (..., time, heads, size), by positions."""
    if rotary is None:
        return None
    start = 0 if cache is None else cache.length

    def turn(q: Any, k: Any, v: Any) -> tuple[Any, Any, Any]:
        return rotary(q, start=start, axis=-3), rotary(k, start=start, axis=-3), v

    return turn


def _layer_keys(name: str, key: fg.random.Key, num_layers: int) -> Any:
    if num_layers < 1:
        raise ArgumentError(
            f"{name} cannot have num_layers={num_layers!r}",
            where=user_line(),
            fix="an integer from 1 up",
        )
    return fg.random.split(key, num_layers)


def _last_norm(blocks: Any, size: int, dtype: Any, options: dict[str, Any]) -> LayerNorm | None:
    """Return the normalisation after blocks that leave their sums as they are."""
    if not options.get("pre_norm", True):
        return None
    return LayerNorm(size, use_bias=options.get("use_bias", True), dtype=dtype)
