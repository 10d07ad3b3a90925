"""Initial values of weights, under the names and with the parameters of ``jax.nn.initializers``.

Most here are functions that make an initializer, which is any function of a key, a shape and a
dtype. The axes named by `in_axis` and `out_axis` count the inputs and outputs of a unit; the other
axes, but for those in `batch_axis`, are its receptive field, of which each input is used once at
every place. The default, (..., inputs, outputs), is that of ``x @ weight``; the layers of
`funcgrad.nn` keep weights as (outputs, inputs, ...), which is ``in_axis=1, out_axis=0``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

import funcgrad as fg
from funcgrad.errors import ArgumentError, DtypeError, ShapeError, user_line

__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "gain",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "sparse",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]

Axes = int | Sequence[int]
_UNIT = (-2.0, 2.0)  # where a "truncated normal" is cut, in standard deviations before the cut
# The standard deviation of a standard normal that is cut there.
_CUT_STDDEV = 0.87962566103423978


class Initializer(Protocol):
    """What draws initial values: ``initializer(key, shape, dtype=None)``.

    Examples
    --------
    >>> import funcgrad as fg
    >>> draw: fg.nn.initializers.Initializer = fg.nn.initializers.he_normal()
    >>> draw(fg.random.key(0), (3, 2)).shape
    (3, 2)
    """

    def __call__(
        self, key: fg.random.Key, shape: Sequence[int], dtype: npt.DTypeLike | None = None
    ) -> Any:
        """Draw an array of this shape."""


def zeros(key: Any, shape: Sequence[int], dtype: npt.DTypeLike | None = None) -> Any:
    """Return zeros: an initializer itself.

    Parameters
    ----------
    key : Key or None
        Not used.
    shape : sequence of int
        Of the result.
    dtype : dtype, optional
        Of the result; float64 by default.

    Returns
    -------
    ndarray
        Zeros.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.nn.initializers.zeros(None, (2,))
    array([0., 0.])
    """
    return np.zeros(tuple(shape), dtype or np.float64)


def ones(key: Any, shape: Sequence[int], dtype: npt.DTypeLike | None = None) -> Any:
    """Return ones: an initializer itself.

    Parameters
    ----------
    key : Key or None
        Not used.
    shape : sequence of int
        Of the result.
    dtype : dtype, optional
        Of the result; float64 by default.

    Returns
    -------
    ndarray
        Ones.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.nn.initializers.ones(None, (2,))
    array([1., 1.])
    """
    return np.ones(tuple(shape), dtype or np.float64)


def constant(value: Any, dtype: npt.DTypeLike | None = None) -> Initializer:
    """Make an initializer that fills with a value.

    Parameters
    ----------
    value : array_like
        Broadcast to the shape.
    dtype : dtype, optional
        Of results, where their own is not given; float64 by default.

    Returns
    -------
    Initializer
        Ignores its key.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.nn.initializers.constant(0.5)(None, (2,))
    array([0.5, 0.5])
    """

    def constant_init(key: Any, shape: Sequence[int], dtype: Any = dtype) -> Any:
        return np.full(tuple(shape), value, dtype or np.float64)

    return constant_init


def uniform(scale: float = 0.01, dtype: npt.DTypeLike | None = None) -> Initializer:
    """Make an initializer that draws uniformly from [0, scale).

    Parameters
    ----------
    scale : float
        The upper end; negative values give (scale, 0].
    dtype : dtype, optional
        Of results, where their own is not given; float64 by default.

    Returns
    -------
    Initializer
        Draws such values.

    Examples
    --------
    >>> import funcgrad as fg
    >>> w = fg.nn.initializers.uniform(0.1)(fg.random.key(0), (100,))
    >>> bool(w.min() >= 0), bool(w.max() < 0.1)
    (True, True)
    """

    def uniform_init(key: Any, shape: Sequence[int], dtype: Any = dtype) -> Any:
        kind = _floating(dtype)
        return fg.random.uniform(key, tuple(shape), kind) * kind.type(scale)

    return uniform_init


def normal(stddev: float = 0.01, dtype: npt.DTypeLike | None = None) -> Initializer:
    """Make an initializer that draws from a normal distribution of mean 0.

    Parameters
    ----------
    stddev : float
        The standard deviation.
    dtype : dtype, optional
        Of results, where their own is not given; float64 by default. Complex numbers have this
        standard deviation in all, half the variance in each part.

    Returns
    -------
    Initializer
        Draws such values.

    Examples
    --------
    >>> import funcgrad as fg
    >>> w = fg.nn.initializers.normal(0.1)(fg.random.key(0), (10_000,))
    >>> bool(abs(w.std() - 0.1) < 0.002)
    True
    """

    def normal_init(key: Any, shape: Sequence[int], dtype: Any = dtype) -> Any:
        kind = _inexact(dtype)
        return fg.random.normal(key, tuple(shape), kind) * kind.type(stddev)

    return normal_init


def truncated_normal(
    stddev: float = 0.01,
    dtype: npt.DTypeLike | None = None,
    lower: float = -2.0,
    upper: float = 2.0,
) -> Initializer:
    """Make an initializer that draws from a normal distribution with its ends cut off.

    Parameters
    ----------
    stddev : float
        The standard deviation before the cut.
    dtype : dtype, optional
        Of results, where their own is not given; float64 by default.
    lower, upper : float
        Where it is cut, in units of `stddev`.

    Returns
    -------
    Initializer
        Draws such values.

    Examples
    --------
    >>> import funcgrad as fg
    >>> w = fg.nn.initializers.truncated_normal(0.1)(fg.random.key(0), (1000,))
    >>> bool(abs(w).max() <= 0.2)
    True
    """

    def truncated_normal_init(key: Any, shape: Sequence[int], dtype: Any = dtype) -> Any:
        kind = _floating(dtype)
        return fg.random.truncated_normal(key, lower, upper, tuple(shape), kind) * kind.type(stddev)

    return truncated_normal_init


def variance_scaling(
    scale: float,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: npt.DTypeLike | None = None,
) -> Initializer:
    """Make an initializer whose variance is ``scale / n``, with n from the shape.

    Parameters
    ----------
    scale : float
        The variance times n. See `gain`, of which it is the square, for the values that suit an
        activation function.
    mode : {"fan_in", "fan_out", "fan_avg", "fan_geo_avg"}
        What n is: the number of inputs of a unit, of outputs, the arithmetic or the geometric
        mean of the two.
    distribution : {"normal", "truncated_normal", "uniform"}
        What is drawn from. "truncated_normal" is cut at two standard deviations, and widened so
        that the variance is right after the cut.
    in_axis, out_axis : int or sequence of int
        The axes that count inputs and outputs.
    batch_axis : int or sequence of int
        Axes of independent units, which count as neither.
    dtype : dtype, optional
        Of results, where their own is not given; float64 by default.

    Returns
    -------
    Initializer
        Draws such values.

    Raises
    ------
    ArgumentError
        There is no such mode or distribution.
    ShapeError
        The shape has too few axes; raised when values are drawn.

    Examples
    --------
    >>> import funcgrad as fg
    >>> draw = fg.nn.initializers.variance_scaling(2.0, "fan_in", "normal")
    >>> w = draw(fg.random.key(0), (50, 1000))
    >>> bool(abs(w.var() - 2 / 50) < 0.001)
    True
    """
    if mode not in ("fan_in", "fan_out", "fan_avg", "fan_geo_avg"):
        raise ArgumentError(
            f"variance_scaling has no mode {mode!r}",
            where=user_line(),
            fix="fan_in, fan_out, fan_avg or fan_geo_avg",
        )
    if distribution not in ("normal", "truncated_normal", "uniform"):
        raise ArgumentError(
            f"variance_scaling has no distribution {distribution!r}",
            where=user_line(),
            fix="normal, truncated_normal or uniform",
        )

    def variance_scaling_init(key: Any, shape: Sequence[int], dtype: Any = dtype) -> Any:
        kind = _inexact(dtype)
        shape = tuple(shape)
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        n = {
            "fan_in": fan_in,
            "fan_out": fan_out,
            "fan_avg": (fan_in + fan_out) / 2,
            "fan_geo_avg": math.sqrt(fan_in * fan_out),
        }[mode]
        stddev = math.sqrt(scale / max(n, 1))
        if distribution == "normal":
            return fg.random.normal(key, shape, kind) * kind.type(stddev)
        if kind.kind == "c":
            raise DtypeError(
                f"a {distribution} distribution of complex numbers is not defined here",
                where=f"{user_line()}, dtype={kind.name}",
                fix='distribution="normal"',
            )
        if distribution == "uniform":
            bound = math.sqrt(3) * stddev
            return fg.random.uniform(key, shape, kind, -bound, bound)
        drawn = fg.random.truncated_normal(key, *_UNIT, shape, kind)
        return drawn * kind.type(stddev / _CUT_STDDEV)

    return variance_scaling_init


def _scaled(name: str, scale: float, mode: str, distribution: str, doc: str) -> Any:
    """Make one of the named cases of `variance_scaling`."""

    def make(
        in_axis: Axes = -2,
        out_axis: Axes = -1,
        batch_axis: Axes = (),
        dtype: npt.DTypeLike | None = None,
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""Make an initializer: {doc}

    Parameters
    ----------
    in_axis, out_axis : int or sequence of int
        The axes that count inputs and outputs.
    batch_axis : int or sequence of int
        Axes of independent units, which count as neither.
    dtype : dtype, optional
        Of results, where their own is not given; float64 by default.

    Returns
    -------
    Initializer
        ``variance_scaling({scale}, {mode!r}, {distribution!r}, ...)``.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.nn.initializers.{name}()(fg.random.key(0), (3, 2)).shape
    (3, 2)
    """
    return make


_GLOROT = "(Glorot and Bengio, 2010), for tanh and other functions linear around 0."
_HE = "(He et al., 2015), for relu and its relatives."
_LECUN = "(LeCun et al., 1998; Klambauer et al., 2017), for selu."
_NORMAL, _UNIFORM = "truncated_normal", "uniform"

glorot_normal = _scaled(
    "glorot_normal", 1.0, "fan_avg", _NORMAL, f"truncated normal, variance 1/mean fan {_GLOROT}"
)
glorot_uniform = _scaled(
    "glorot_uniform", 1.0, "fan_avg", _UNIFORM, f"uniform, variance 1/mean fan {_GLOROT}"
)
he_normal = _scaled(
    "he_normal", 2.0, "fan_in", _NORMAL, f"truncated normal, variance 2/fan-in {_HE}"
)
he_uniform = _scaled("he_uniform", 2.0, "fan_in", _UNIFORM, f"uniform, variance 2/fan-in {_HE}")
lecun_normal = _scaled(
    "lecun_normal", 1.0, "fan_in", _NORMAL, f"truncated normal, variance 1/fan-in {_LECUN}"
)
lecun_uniform = _scaled(
    "lecun_uniform", 1.0, "fan_in", _UNIFORM, f"uniform, variance 1/fan-in {_LECUN}"
)
xavier_normal, xavier_uniform = glorot_normal, glorot_uniform
kaiming_normal, kaiming_uniform = he_normal, he_uniform


def gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor by which a standard deviation is multiplied to suit an activation function.

    Parameters
    ----------
    nonlinearity : str
        "linear", "conv", "sigmoid", "tanh", "relu", "leaky_relu" or "selu", as in PyTorch.
    param : float, optional
        The negative slope of "leaky_relu"; 0.01 by default.

    Returns
    -------
    float
        For ``variance_scaling(gain(...) ** 2, ...)``.

    Raises
    ------
    ArgumentError
        There is no such function here.

    Examples
    --------
    >>> import funcgrad as fg
    >>> round(fg.nn.initializers.gain("leaky_relu", 0.2), 6)
    1.38675
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    gains = {"linear": 1.0, "conv": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "selu": 0.75}
    gains["relu"] = math.sqrt(2)
    if nonlinearity not in gains:
        raise ArgumentError(
            f"no gain is known for {nonlinearity!r}",
            where=user_line(),
            fix=f"one of leaky_relu, {', '.join(gains)}",
        )
    return gains[nonlinearity]


def orthogonal(
    scale: float = 1.0, column_axis: int = -1, dtype: npt.DTypeLike | None = None
) -> Initializer:
    """Make an initializer of matrices with orthonormal columns, or with orthonormal rows.

    Parameters
    ----------
    scale : float
        A factor.
    column_axis : int
        The axis that counts columns; all others together count rows.
    dtype : dtype, optional
        Of results, where their own is not given; float64 by default.

    Returns
    -------
    Initializer
        Draws uniformly (by Haar's measure) from these matrices (Saxe et al., 2014; Mezzadri,
        2007).

    Raises
    ------
    ShapeError
        The shape has fewer than two axes; raised when values are drawn.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> q = fg.nn.initializers.orthogonal()(fg.random.key(0), (5, 3))
    >>> bool(np.allclose(q.T @ q, np.eye(3)))
    True
    """

    def orthogonal_init(key: Any, shape: Sequence[int], dtype: Any = dtype) -> Any:
        kind = _inexact(dtype)
        shape = tuple(shape)
        _at_least(2, shape, "orthogonal")
        columns = shape[column_axis]
        rest = [n for axis, n in enumerate(shape) if axis != column_axis % len(shape)]
        rows = math.prod(rest)
        tall = (max(rows, columns), min(rows, columns))
        q, r = np.linalg.qr(fg.random.normal(key, tall, np.promote_types(kind, np.float32)))
        diagonal = np.diagonal(r)
        size = np.abs(diagonal)
        q = q * np.where(size > 0, diagonal / np.where(size > 0, size, 1), 1)
        matrix = q if rows >= columns else q.T
        return np.moveaxis(np.reshape(matrix, (*rest, columns)), -1, column_axis).astype(
            kind
        ) * kind.type(scale)

    return orthogonal_init


def delta_orthogonal(
    scale: float = 1.0, column_axis: int = -1, dtype: npt.DTypeLike | None = None
) -> Initializer:
    """Make an initializer of convolution kernels: orthogonal in the middle, zero elsewhere.

    Parameters
    ----------
    scale : float
        A factor.
    column_axis : int
        The axis that counts outputs; the one before the last two otherwise counts inputs.
    dtype : dtype, optional
        Of results, where their own is not given; float64 by default.

    Returns
    -------
    Initializer
        For shapes (..., inputs, outputs) with one to three axes before these (Xiao et al., 2018).

    Raises
    ------
    ShapeError
        The shape has not 3 to 5 axes, or more inputs than outputs; raised when values are drawn.

    Examples
    --------
    >>> import funcgrad as fg
    >>> w = fg.nn.initializers.delta_orthogonal()(fg.random.key(0), (3, 2, 4))
    >>> bool((w[[0, 2]] == 0).all()), w[1].shape
    (True, (2, 4))
    """

    def delta_orthogonal_init(key: Any, shape: Sequence[int], dtype: Any = dtype) -> Any:
        kind = _inexact(dtype)
        shape = tuple(shape)
        if len(shape) not in (3, 4, 5) or shape[-1] < shape[-2]:
            raise ShapeError(
                f"delta_orthogonal cannot make an array of shape {shape}",
                where=user_line(),
                fix="give (..., inputs, outputs) with 1 to 3 axes before and inputs <= outputs",
            )
        kernel = np.zeros(shape, kind)
        middle = tuple((n - 1) // 2 for n in shape[:-2])
        matrix = orthogonal(scale, column_axis, kind)(key, (shape[-1], shape[-1]))
        kernel[middle] = matrix[: shape[-2]]
        return kernel

    return delta_orthogonal_init


def sparse(
    sparsity: float, stddev: float = 0.01, in_axis: int = -2, dtype: npt.DTypeLike | None = None
) -> Initializer:
    """Make an initializer of normal values of which each unit has a share of inputs at zero.

    Parameters
    ----------
    sparsity : float
        The share, from 0 to 1, of zeros along `in_axis`; rounded up to whole inputs.
    stddev : float
        The standard deviation of the others.
    in_axis : int
        The axis that counts inputs.
    dtype : dtype, optional
        Of results, where their own is not given; float64 by default.

    Returns
    -------
    Initializer
        Draws such values (Martens, 2010).

    Raises
    ------
    ArgumentError
        `sparsity` is not from 0 to 1.

    Examples
    --------
    >>> import funcgrad as fg
    >>> w = fg.nn.initializers.sparse(0.5)(fg.random.key(0), (4, 3))
    >>> (w == 0).sum(axis=0)
    array([2, 2, 2])
    """
    if not 0 <= sparsity <= 1:
        raise ArgumentError(
            f"a share of zeros is from 0 to 1, not {sparsity}",
            where=f"{user_line()}, argument sparsity",
            fix="sparse(0.9) sets nine inputs of ten to zero",
        )

    def sparse_init(key: Any, shape: Sequence[int], dtype: Any = dtype) -> Any:
        kind = _inexact(dtype)
        shape = tuple(shape)
        _at_least(1, shape, "sparse")
        values_key, place_key = fg.random.split(key)
        values = fg.random.normal(values_key, shape, kind) * kind.type(stddev)
        zeros = math.ceil(sparsity * shape[in_axis])
        order = np.argsort(fg.random.uniform(place_key, shape), axis=in_axis)
        rank = np.argsort(order, axis=in_axis)
        return np.where(rank < zeros, kind.type(0), values)

    return sparse_init


def _fans(shape: tuple[int, ...], in_axis: Axes, out_axis: Axes, batch_axis: Axes) -> Any:
    """Return the numbers of inputs and of outputs of a unit."""
    _at_least(2, shape, "variance_scaling")
    sizes = [_size(shape, axes) for axes in (in_axis, out_axis, batch_axis)]
    receptive = math.prod(shape) / max(math.prod(sizes), 1)
    return sizes[0] * receptive, sizes[1] * receptive


def _size(shape: tuple[int, ...], axes: Axes) -> int:
    return math.prod(shape[axis] for axis in ([axes] if isinstance(axes, int) else axes))


def _at_least(ndim: int, shape: tuple[int, ...], name: str) -> None:
    if len(shape) < ndim:
        raise ShapeError(
            f"{name} needs at least {ndim} {'axes' if ndim > 1 else 'axis'}, not shape {shape}",
            where=user_line(),
            fix="use it for weights; biases are mostly started with zeros",
        )


def _inexact(dtype: Any) -> np.dtype[Any]:
    kind = np.dtype(dtype or np.float64)
    if kind.kind not in "fc":
        raise DtypeError(
            f"initial values cannot be of dtype {kind.name}",
            where=user_line(),
            fix="a floating-point dtype, such as numpy.float32",
        )
    return kind


def _floating(dtype: Any) -> np.dtype[Any]:
    kind = _inexact(dtype)
    if kind.kind == "c":
        raise DtypeError(
            "this distribution is not defined for complex numbers",
            where=f"{user_line()}, dtype={kind.name}",
            fix="nn.initializers.normal",
        )
    return kind
