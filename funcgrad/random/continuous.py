"""Floating-point samplers: uniform, normal and what follows from them by inversion.

One idea: element `i` of a draw is a function of word `i` alone. The top 53 bits of the word make
a uniform number, and the inverse of a distribution function makes any other number out of that
[1]_. There is no rejection, so a draw has a fixed cost, a draw of float32 is the rounded draw of
float64, and the words of many keys, stacked, go through the same code as the words of one.

What comes after the words is arithmetic on NumPy arrays; parameters may be traced.

.. [1] L. Devroye, *Non-Uniform Random Variate Generation*, Springer, 1986, chapter II.2.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.errors import describe

from . import portable
from .arguments import (
    FLOAT_BITS,
    float_dtype,
    is_plain,
    parameter,
    shape_around,
    shape_of,
    shape_tuple,
    wrong,
)
from .batched import of_examples
from .stream import draw, shaped

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from numpy.typing import DTypeLike, NDArray

    from .arguments import Shape
    from .keys import Key

    Inverse: TypeAlias = Callable[[NDArray[np.uint64]], NDArray[Any]]

__all__ = ["exponential", "gumbel", "laplace", "normal", "uniform"]

_SMALL = 64  # below this many numbers, Python floats are quicker than thirty NumPy calls
_BLOCK = 8192  # numbers at a time, so that the intermediate arrays stay in the cache


def uniform(
    key: Key,
    shape: Shape = (),
    dtype: DTypeLike = np.float64,
    minval: Any = 0.0,
    maxval: Any = 1.0,
) -> NDArray[Any]:
    """Draw from the uniform distribution over ``[minval, maxval)``.

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    shape : int or sequence of int, optional
        Shape of the result; `minval` and `maxval` broadcast to it.
    dtype : dtype_like, optional
        float64, float32 or float16, to which the bounds are cast. Before scaling, all multiples
        of 2**-53 (2**-24, 2**-11) in [0, 1) are equally likely.
    minval, maxval : float or array_like, optional
        Bounds; may be traced, and the result is differentiable in them. `maxval` itself is not
        drawn: where rounding leads to it, the result is `minval`.

    Returns
    -------
    ndarray of `dtype`, shape `shape`
        A NumPy scalar if `shape` is ``()``.

    Raises
    ------
    ArgumentError
        `key` is not a single key, or `shape` not made of integers.
    ShapeError
        `shape` has a negative length, or the bounds do not broadcast to it.
    DtypeError
        `dtype` is no float dtype.

    Examples
    --------
    >>> from funcgrad import random
    >>> random.uniform(random.key(0), 2, minval=-1.0, maxval=1.0)
    array([...])
    """
    lengths, kind = shape_tuple(shape, "uniform"), float_dtype(dtype, "uniform")
    standard = type(minval) is float and type(maxval) is float and minval == 0.0 and maxval == 1.0
    if not standard:
        minval, maxval = parameter(minval, kind), parameter(maxval, kind)
        shapes = {"minval": shape_of(minval), "maxval": shape_of(maxval)}
        shape_around(lengths, shapes, "uniform")
        if is_plain(minval) and is_plain(maxval):
            with np.errstate(over="ignore"):
                width = np.subtract(maxval, minval, dtype=kind)
            if not np.all((width >= 0.0) & (width < np.inf)):
                raise wrong(
                    "got bounds that enclose nothing finite: "
                    f"minval={describe(minval)}, maxval={describe(maxval)}",
                    "minval",
                    "uniform",
                    "give minval <= maxval, closer together than the largest number",
                )
    bits = FLOAT_BITS[kind]
    top = draw(key, prod(lengths), "uniform") >> (64 - bits)
    u = shaped((top * 2.0**-bits).astype(kind, copy=False), lengths)
    if standard:
        return u
    out: NDArray[Any] = u * (maxval - minval) + minval
    out = np.where(out < maxval, out, minval)
    return out if lengths else out[()]


def normal(key: Key, shape: Shape = (), dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Draw from the standard normal distribution.

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    shape : int or sequence of int, optional
        Shape of the result.
    dtype : dtype_like, optional
        float64, float32 or float16; complex128 or complex64 give independent real and imaginary
        parts of variance 1/2.

    Returns
    -------
    ndarray of `dtype`, shape `shape`
        A NumPy scalar if `shape` is ``()``. No value exceeds 8.3 in size.

    Raises
    ------
    ArgumentError
        `key` is not a single key, or `shape` not made of integers.
    ShapeError
        `shape` has a negative length.
    DtypeError
        `dtype` is no float or complex dtype.

    Notes
    -----
    The normal quantile [1]_ of what `uniform` draws (plus 2**-54, for symmetry), in arithmetic that
    is the same on every machine. `numpy.random.Generator.standard_normal` needs about 0.6 of the
    time for large arrays, but its numbers may change with NumPy's version and the C library.

    References
    ----------
    .. [1] M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution",
       Applied Statistics 37, 1988.

    Examples
    --------
    Other means and scales are arithmetic, through which derivatives pass:

    >>> from funcgrad import random
    >>> 10.0 + 0.5 * random.normal(random.key(0), 3)
    array([...])
    """
    lengths, kind = shape_tuple(shape, "normal"), np.dtype(dtype)
    if kind.kind == "c" and kind.itemsize <= 16:
        part = np.dtype(f"f{kind.itemsize // 2}")
        words = draw(key, 2 * prod(lengths), "normal")
        pairs = transform.bind(words, inverse=to_normal, kind=np.dtype(np.float64))
        pairs = (pairs * 0.7071067811865476).astype(part, copy=False)
        return shaped(complex_of.bind(pairs, kind=kind), lengths)
    kind = float_dtype(kind, "normal")
    words = draw(key, prod(lengths), "normal")
    if type(words) is np.ndarray and words.size <= _SMALL:
        out = np.array(portable.normal_quantile_floats(centred(words).tolist()), kind)
    else:
        out = transform.bind(words, inverse=to_normal, kind=kind)
    return shaped(out, lengths)


def exponential(key: Key, shape: Shape = (), dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Draw from the exponential distribution of mean 1.

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    shape : int or sequence of int, optional
        Shape of the result.
    dtype : dtype_like, optional
        float64, float32 or float16.

    Returns
    -------
    ndarray of `dtype`, shape `shape`
        None is negative; a NumPy scalar if `shape` is ``()``.

    Raises
    ------
    ArgumentError, ShapeError, DtypeError
        As `uniform`.

    Examples
    --------
    >>> from funcgrad import random
    >>> waiting_times = random.exponential(random.key(0), 4) / 0.1  # at rate 0.1
    """
    return _inverse(key, shape, dtype, to_exponential, "exponential")


def gumbel(key: Key, shape: Shape = (), dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Draw from the standard Gumbel distribution, whose distribution function is exp(-exp(-x)).

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    shape : int or sequence of int, optional
        Shape of the result.
    dtype : dtype_like, optional
        float64, float32 or float16.

    Returns
    -------
    ndarray of `dtype`, shape `shape`
        A NumPy scalar if `shape` is ``()``.

    Raises
    ------
    ArgumentError, ShapeError, DtypeError
        As `uniform`.

    Examples
    --------
    Added to logits, their largest is a categorical draw:

    >>> from funcgrad import random
    >>> logits = np.log([0.1, 0.2, 0.7])
    >>> int(np.argmax(logits + random.gumbel(random.key(0), 3))) in {0, 1, 2}
    True
    """
    return _inverse(key, shape, dtype, to_gumbel, "gumbel")


def laplace(key: Key, shape: Shape = (), dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Draw from the Laplace distribution, whose density is exp(-abs(x)) / 2.

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    shape : int or sequence of int, optional
        Shape of the result.
    dtype : dtype_like, optional
        float64, float32 or float16.

    Returns
    -------
    ndarray of `dtype`, shape `shape`
        A NumPy scalar if `shape` is ``()``.

    Raises
    ------
    ArgumentError, ShapeError, DtypeError
        As `uniform`.

    Examples
    --------
    >>> from funcgrad import random
    >>> random.laplace(random.key(0), (2, 3)).shape
    (2, 3)
    """
    return _inverse(key, shape, dtype, to_laplace, "laplace")


def centred(words: NDArray[np.uint64]) -> NDArray[Any]:
    """Map words to the odd multiples of 2**-54 in (-0.5, 0.5): symmetric, and never an end."""
    return ((words >> 11) + (0.5 - 2.0**52)) * 2.0**-53


def opened(words: NDArray[np.uint64]) -> NDArray[Any]:
    """Map words to the odd multiples of 2**-53 in (0, 1); near 1 a float64 has no finer ones."""
    return ((words >> 12) + 0.5) * 2.0**-52


def to_normal(words: NDArray[np.uint64]) -> NDArray[Any]:
    """Map words to `normal` numbers."""
    q = centred(words)
    return portable.normal_quantile(q, 0.5 - np.abs(q))


def to_exponential(words: NDArray[np.uint64]) -> NDArray[Any]:
    """Map words to `exponential` numbers; none is 0."""
    out: NDArray[Any] = -portable.log(opened(words))
    return out


def to_gumbel(words: NDArray[np.uint64]) -> NDArray[Any]:
    """Map words to `gumbel` numbers."""
    out: NDArray[Any] = -portable.log(to_exponential(words))
    return out


def to_laplace(words: NDArray[np.uint64]) -> NDArray[Any]:
    """Map words to `laplace` numbers."""
    q = centred(words)
    out: NDArray[Any] = np.copysign(portable.log(1.0 - 2.0 * np.abs(q)), q)
    return out


@of_examples(0)
def transform(
    words: NDArray[np.uint64],
    *,
    inverse: Inverse,
    kind: np.dtype[Any],
) -> NDArray[Any]:
    """Turn words into numbers by an inverse distribution function, block by block."""
    flat, out = words.reshape(-1), np.empty(words.size, kind)
    for start in range(0, words.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        out[block] = inverse(flat[block])
    return out.reshape(words.shape)


@of_examples(1)
def complex_of(pairs: NDArray[Any], *, kind: np.dtype[Any]) -> NDArray[Any]:
    """Join each two numbers along the last axis to a complex one."""
    return pairs.view(kind)


def _inverse(
    key: Key,
    shape: Shape,
    dtype: DTypeLike,
    inverse: Inverse,
    use: str,
) -> NDArray[Any]:
    """Draw by inversion alone: what the samplers without parameters share."""
    lengths, kind = shape_tuple(shape, use), float_dtype(dtype, use)
    out = transform.bind(draw(key, prod(lengths), use), inverse=inverse, kind=kind)
    return shaped(out, lengths)
