"""Layers of matrices: `Linear`, `Bilinear`, `Embedding`, and `Identity`, which does nothing.

Weights are kept as (outputs, inputs), as in Equinox and PyTorch, so that models exchange with
these, and start uniform between plus and minus 1/sqrt(inputs). Arguments may have any number of
axes before those a layer speaks of: a batch needs no `vmap`.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

import funcgrad as fg
from funcgrad.errors import ArgumentError, DtypeError, ShapeError, describe, user_line
from funcgrad.nn.checking import array, expect_last, whole
from funcgrad.nn.module import Module
from funcgrad.rules.nn.affine import affine
from funcgrad.rules.nn.cross_entropy import extremes

__all__ = ["Bilinear", "Embedding", "Identity", "Linear"]

Size = int | Literal["scalar"]


def start(key: fg.random.Key, shape: tuple[int, ...], fan_in: int, dtype: Any) -> Any:
    """Draw what a layer starts from: uniform between plus and minus 1/sqrt(fan-in)."""
    bound = 1 / math.sqrt(max(fan_in, 1))
    return fg.random.uniform(key, shape, np.float64 if dtype is None else dtype, -bound, bound)


def apply(x: Any, weight: Any, bias: Any) -> Any:
    """Return ``x @ weight.T + bias``: by one operation, if there is a bias, all of one dtype."""
    if bias is not None and x.dtype == weight.dtype == bias.dtype:
        return affine(x, weight, bias)
    out = x @ weight.T
    return out if bias is None else out + bias


class Linear(Module):
    """A linear map plus a constant: ``x @ weight.T + bias``.

    Parameters
    ----------
    in_features : int or "scalar"
        The size of the last axis of arguments; "scalar" for an argument without such an axis.
    out_features : int or "scalar"
        The size of the last axis of results; "scalar" for results without such an axis.
    use_bias : bool
        Whether to add a constant.
    dtype : dtype, optional
        Of the parameters; float64 by default.
    key : Key
        For the initial values, uniform between plus and minus 1/sqrt(in_features).

    Attributes
    ----------
    weight : ndarray, shape (out_features, in_features)
        The matrix.
    bias : ndarray, shape (out_features,), or None
        The constant.

    Raises
    ------
    ArgumentError
        A size is negative.
    ShapeError
        When called: the last axis has another size than `in_features`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> layer = fg.nn.Linear(3, 2, key=fg.random.key(0))
    >>> layer(np.ones(3)).shape, layer(np.ones((10, 3))).shape
    ((2,), (10, 2))
    """

    weight: Any
    bias: Any
    in_features: Size = fg.static()
    out_features: Size = fg.static()
    use_bias: bool = fg.static()

    def __init__(
        self,
        in_features: Size,
        out_features: Size,
        use_bias: bool = True,
        dtype: npt.DTypeLike | None = None,
        *,
        key: fg.random.Key,
    ) -> None:
        inputs = _size("Linear", "in_features", in_features)
        outputs = _size("Linear", "out_features", out_features)
        weight_key, bias_key = fg.random.split(key)
        self.weight = start(weight_key, (outputs, inputs), inputs, dtype)
        self.bias = start(bias_key, (outputs,), inputs, dtype) if use_bias else None
        self.in_features = in_features
        self.out_features = out_features
        self.use_bias = use_bias

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Apply the map to the last axis of `x`, of shape (..., in_features).

        `key` is not used; it is there so that layers can be called alike.
        """
        if not hasattr(x, "shape"):
            x = array(x)
        if self.in_features == "scalar":
            x = x[..., None]
        elif x.shape[-1:] != (self.in_features,):
            expect_last(self, x, self.in_features)
        out = apply(x, self.weight, self.bias)
        return out[..., 0] if self.out_features == "scalar" else out


class Bilinear(Module):
    """A form linear in each of two arguments: ``x1 @ weight[k] @ x2 + bias[k]`` for each output k.

    Parameters
    ----------
    in1_features, in2_features : int
        The sizes of the last axes of the two arguments.
    out_features : int
        The size of the last axis of results.
    use_bias : bool
        Whether to add a constant.
    dtype : dtype, optional
        Of the parameters; float64 by default.
    key : Key
        For the initial values, uniform between plus and minus 1/sqrt(in1_features).

    Attributes
    ----------
    weight : ndarray, shape (out_features, in1_features, in2_features)
        The forms.
    bias : ndarray, shape (out_features,), or None
        The constant.

    Raises
    ------
    ArgumentError
        A size is negative.
    ShapeError
        When called: the last axis of an argument has another size.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> layer = fg.nn.Bilinear(3, 4, 2, key=fg.random.key(0))
    >>> layer(np.ones((10, 3)), np.ones((10, 4))).shape
    (10, 2)
    """

    weight: Any
    bias: Any
    in1_features: int = fg.static()
    in2_features: int = fg.static()
    out_features: int = fg.static()
    use_bias: bool = fg.static()

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        use_bias: bool = True,
        dtype: npt.DTypeLike | None = None,
        *,
        key: fg.random.Key,
    ) -> None:
        shape = (
            _size("Bilinear", "out_features", out_features),
            _size("Bilinear", "in1_features", in1_features),
            _size("Bilinear", "in2_features", in2_features),
        )
        weight_key, bias_key = fg.random.split(key)
        self.weight = start(weight_key, shape, in1_features, dtype)
        self.bias = start(bias_key, shape[:1], in1_features, dtype) if use_bias else None
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.use_bias = use_bias

    def __call__(self, x1: Any, x2: Any, *, key: fg.random.Key | None = None) -> Any:
        """Apply the form to the last axes of `x1` and `x2`, whose other axes broadcast."""
        x1, x2 = array(x1), array(x2)
        expect_last(self, x1, self.in1_features)
        expect_last(self, x2, self.in2_features)
        # As products of matrices, which BLAS does: first x1 with the first axis of every form.
        inner = self.weight.shape[0] * self.weight.shape[2]
        left = np.reshape(np.transpose(self.weight, (1, 0, 2)), (self.in1_features, inner))
        forms = np.reshape(x1 @ left, (*x1.shape[:-1], *self.weight.shape[::2]))
        out = np.sum(forms * np.expand_dims(x2, -2), axis=-1)
        return out if self.bias is None else out + self.bias


class Embedding(Module):
    """A table with a row of numbers for each of a range of integers.

    Parameters
    ----------
    num_embeddings : int, optional
        The number of rows.
    embedding_size : int, optional
        The size of each.
    weight : ndarray, optional
        The table itself, instead of the sizes.
    dtype : dtype, optional
        Of the table; float64 by default.
    padding_idx : int, optional
        A row that is zero, and whose gradient is.
    key : Key, optional
        For the initial values, standard normal.

    Attributes
    ----------
    weight : ndarray, shape (num_embeddings, embedding_size)
        The table.

    Raises
    ------
    ArgumentError
        Neither the sizes with a key, nor the table, are given.
    DtypeError
        When called: with numbers that are no integers.
    IndexError
        When called: an integer is not in the range. Negative ones are not taken from the end.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> table = fg.nn.Embedding(100, 8, key=fg.random.key(0))
    >>> table(3).shape, table(np.array([[3, 7, 3]])).shape
    ((8,), (1, 3, 8))
    """

    weight: Any
    num_embeddings: int = fg.static()
    embedding_size: int = fg.static()
    padding_idx: int | None = fg.static()

    def __init__(
        self,
        num_embeddings: int | None = None,
        embedding_size: int | None = None,
        weight: Any = None,
        dtype: npt.DTypeLike | None = None,
        *,
        padding_idx: int | None = None,
        key: fg.random.Key | None = None,
    ) -> None:
        if weight is None:
            if num_embeddings is None or embedding_size is None or key is None:
                raise ArgumentError(
                    "Embedding needs its two sizes and a key, or its table",
                    where=user_line(),
                    fix="Embedding(num_embeddings, embedding_size, key=key), "
                    "or Embedding(weight=table)",
                )
            shape = (
                _size("Embedding", "num_embeddings", num_embeddings),
                _size("Embedding", "embedding_size", embedding_size),
            )
            weight = fg.random.normal(key, shape, np.float64 if dtype is None else dtype)
        elif np.ndim(weight) != 2:
            raise ShapeError(
                f"the table of an Embedding has 2 axes, not {describe(weight)}",
                where=f"{user_line()}, argument weight",
                fix="one row for each integer",
            )
        self.num_embeddings, self.embedding_size = np.shape(weight)
        if padding_idx is not None:
            if not 0 <= padding_idx < self.num_embeddings:
                raise ArgumentError(
                    f"padding_idx={padding_idx} is none of {self.num_embeddings} rows",
                    where=user_line(),
                    fix=f"an integer from 0 to {self.num_embeddings - 1}",
                )
            weight = fg.at(weight)[padding_idx].set(0)
        self.weight = weight
        self.padding_idx = padding_idx

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Return the rows of the integers `x`, of any shape, along a new last axis."""
        index = np.asarray(x) if isinstance(x, int | float | list | tuple) else x
        if np.dtype(index.dtype).kind not in "iu":
            raise DtypeError(
                f"Embedding takes integers, not {describe(x)}",
                where=user_line(),
                fix="x.astype(int)",
            )
        _in_range(index, self.num_embeddings)
        out = fg.numpy.take(self.weight, index, axis=0)
        if self.padding_idx is None:
            return out
        return np.where(np.expand_dims(index, -1) == self.padding_idx, 0, out)


class Identity(Module):
    """Returns its argument: a place in a model where there is no layer.

    Parameters
    ----------
    *args, **kwargs
        Ignored, so that it can stand for any layer.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.nn.Identity(3, 2, use_bias=False)(5.0)
    5.0
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Return `x`."""
        return x


def _size(layer: str, name: str, value: Any) -> int:
    """Return a size as an integer."""
    return 1 if value == "scalar" else whole(layer, name, value)


def _in_range(index: Any, count: int) -> None:
    """Raise IndexError unless all integers are rows of the table."""
    for number in extremes(index, 0, count - 1):
        if not 0 <= number < count:
            raise IndexError(
                f"{number} is none of the {count} rows of an Embedding, at {user_line()}: "
                f"give integers from 0 to {count - 1}"
            )
