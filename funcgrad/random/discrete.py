"""Samplers of bits, truth values, signs and integers.

One idea: as in `continuous`, a number is a function of the words that belong to it, and nothing is
rejected. A number below a bound that is no power of two would need rejection to be exactly
uniform; here it takes two words instead, which leaves a bias that nobody could ever see.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.core.level import holds_anywhere
from funcgrad.errors import describe

from .arguments import (
    integer_dtype,
    integers,
    is_plain,
    parameter,
    shape_around,
    shape_of,
    shape_tuple,
    wrong,
)
from .batched import of_examples
from .philox import high_product
from .stream import draw, shaped

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from .arguments import Shape
    from .keys import Key

__all__ = ["bernoulli", "bits", "rademacher", "randint"]


def bits(key: Key, shape: Shape = (), dtype: DTypeLike = np.uint64) -> NDArray[Any]:
    """Draw unsigned integers of which every bit is random.

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    shape : int or sequence of int, optional
        Shape of the result.
    dtype : dtype_like, optional
        An integer dtype; fewer than 64 bits are the top ones.

    Returns
    -------
    ndarray of `dtype`, shape `shape`
        A NumPy scalar if `shape` is ``()``.

    Raises
    ------
    ArgumentError
        `key` is not a single key, or `shape` not made of integers.
    ShapeError
        `shape` has a negative length.
    DtypeError
        `dtype` is no integer dtype.

    Examples
    --------
    >>> from funcgrad import random
    >>> random.bits(random.key(0), 3, np.uint8)
    array([...], dtype=uint8)
    """
    lengths, kind = shape_tuple(shape, "bits"), integer_dtype(dtype, "bits")
    words = draw(key, prod(lengths), "bits") >> (64 - 8 * kind.itemsize)
    return shaped(words.astype(kind, copy=False), lengths)


def bernoulli(key: Key, p: Any = 0.5, shape: Shape | None = None) -> NDArray[np.bool_]:
    """Draw True with probability `p`.

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    p : float or array_like, optional
        Probability; may be traced. The result is piecewise constant in it, so its derivative is
        zero: gradients do not see how `p` changes an expectation.
    shape : int or sequence of int, optional
        Shape of the result; by default that of `p`.

    Returns
    -------
    ndarray of bool, shape `shape`
        Where a uniform draw is less than `p`; a NumPy scalar if the shape is ``()``.

    Raises
    ------
    ArgumentError
        `key` is not a single key, or a `p` that is not traced leaves [0, 1].
    ShapeError
        `shape` has a negative length, or `p` does not broadcast to it.

    Examples
    --------
    >>> from funcgrad import random
    >>> keep = random.bernoulli(random.key(0), 0.9, (4, 5))
    >>> keep.dtype, keep.shape
    (dtype('bool'), (4, 5))
    """
    p = parameter(p)
    lengths = shape_around(shape, {"p": shape_of(p)}, "bernoulli")
    if is_plain(p) and not np.all((p >= 0.0) & (p <= 1.0)):
        raise wrong(
            f"got a probability outside [0, 1]: p={describe(p)}",
            "p",
            "bernoulli",
            "give 0 <= p <= 1; logits become probabilities by 1 / (1 + np.exp(-logits))",
        )
    words = draw(key, prod(lengths), "bernoulli")
    out: NDArray[np.bool_] = shaped((words >> 11) * 2.0**-53, lengths) < p
    return out


def rademacher(key: Key, shape: Shape = (), dtype: DTypeLike = np.int64) -> NDArray[Any]:
    """Draw -1 or 1 with equal probability.

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    shape : int or sequence of int, optional
        Shape of the result.
    dtype : dtype_like, optional
        Any dtype that can hold -1 and 1.

    Returns
    -------
    ndarray of `dtype`, shape `shape`
        A NumPy scalar if `shape` is ``()``.

    Raises
    ------
    ArgumentError
        `key` is not a single key, `shape` not made of integers, or `dtype` cannot hold -1.
    ShapeError
        `shape` has a negative length.

    Examples
    --------
    >>> from funcgrad import random
    >>> sorted(set(random.rademacher(random.key(0), 20).tolist()))
    [-1, 1]
    """
    lengths, kind = shape_tuple(shape, "rademacher"), np.dtype(dtype)
    if kind.kind not in "ifc":
        raise wrong(
            f"cannot draw -1 as {kind}",
            "dtype",
            "rademacher",
            "give a signed integer or float dtype, or use random.bernoulli",
        )
    signs = (draw(key, prod(lengths), "rademacher").astype(np.int64) >> 63) | 1
    return shaped(signs.astype(kind, copy=False), lengths)


def randint(
    key: Key,
    shape: Shape,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike = np.int64,
) -> NDArray[Any]:
    """Draw integers with equal probability from ``[minval, maxval)``.

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    shape : int or sequence of int
        Shape of the result; `minval` and `maxval` broadcast to it.
    minval, maxval : int or array_like of int
        Bounds, not differentiated. `maxval` is not drawn, and may be one more than the largest
        `dtype` value.
    dtype : dtype_like, optional
        An integer dtype.

    Returns
    -------
    ndarray of `dtype`, shape `shape`
        A NumPy scalar if `shape` is ``()``.

    Raises
    ------
    ArgumentError
        `key` is not a single key, somewhere `minval` is not less than `maxval`, or a value
        between them does not fit in `dtype`.
    ShapeError
        `shape` has a negative length, or the bounds do not broadcast to it.
    DtypeError
        `dtype` or a bound is not integer.
    TracerConversionError
        A bound is traced by a derivative.

    Notes
    -----
    With ``n = maxval - minval`` and a random 128-bit integer `w`, the result is
    ``minval + floor(w * n / 2**128)``. The probabilities differ from ``1 / n`` by less than
    2**-128: no possible number of draws could show it, and there is no modulo bias.

    Examples
    --------
    >>> from funcgrad import random
    >>> dice = random.randint(random.key(0), (100,), 1, 7)
    >>> sorted(set(dice.tolist()))
    [1, 2, 3, 4, 5, 6]
    """
    lengths, kind = shape_tuple(shape, "randint"), integer_dtype(dtype, "randint")
    low, high = integers(minval, "minval", "randint"), integers(maxval, "maxval", "randint")
    if holds_anywhere(np.greater_equal(low, high), "whether there is an integer between"):
        raise wrong(
            f"got minval={describe(minval)} and maxval={describe(maxval)}, "
            "between which there is no integer",
            "minval",
            "randint",
            "give minval < maxval; maxval itself is not drawn",
        )
    limits = np.iinfo(kind)
    outside = np.less(low, limits.min), np.greater(high, limits.max + 1)
    if any(holds_anywhere(where, "whether the bounds fit the dtype") for where in outside):
        raise wrong(
            f"cannot fit integers from {describe(minval)} to below {describe(maxval)} into {kind}",
            "dtype",
            "randint",
            f"give dtype= a wider type, or bounds within [{limits.min}, {limits.max + 1}]",
        )
    shapes = {"minval": np.shape(low), "maxval": np.shape(high)}
    shape_around(lengths, shapes, "randint")
    count = prod(lengths)
    words = draw(key, 2 * count, "randint").reshape(2, count)
    if isinstance(low, int) and isinstance(high, int):
        start, width = np.uint64(low % 2**64), np.uint64((high - low) % 2**64)
        out = scale.bind(words, width) + start
    else:
        starts, ends = (np.broadcast_to(_word(bound), lengths).ravel() for bound in (low, high))
        out = scale.bind(words, ends - starts) + starts
    return shaped(out.astype(kind, copy=False), lengths)


def _word(value: Any) -> Any:
    """Return integers modulo 2**64, as uint64."""
    if isinstance(value, int):
        return np.asarray(value % 2**64, np.uint64)
    return value.astype(np.uint64)  # wraps, as C casts between integers do


@of_examples(2, 1)
def scale(words: NDArray[np.uint64], width: NDArray[np.uint64] | np.uint64) -> NDArray[np.uint64]:
    """Scale random 128-bit integers to integers below `width`.

    Parameters
    ----------
    words : ndarray of uint64, shape (..., 2, n)
        High and low halves.
    width : ndarray of uint64, shape (..., n), or uint64
        How many integers there are; 0 stands for 2**64.

    Returns
    -------
    ndarray of uint64, shape (..., n)
        ``floor(w * width / 2**128)``.
    """
    high, low = words[..., 0, :], words[..., 1, :]
    carried = high_product(low, width)
    out: NDArray[np.uint64] = high_product(high, width) + (high * width + carried < carried)
    return out if np.all(width) else np.where(np.equal(width, 0), high, out)
