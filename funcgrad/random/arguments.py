"""Checks of the arguments that samplers share: shapes, dtypes, parameters.

One idea: a parameter may be a traced value, so it is never converted. Its values are checked
where it is a plain number or array, and left alone where it is anything else.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.errors import (
    ArgumentError,
    DtypeError,
    ShapeError,
    TracerConversionError,
    describe,
    user_line,
)

from .batched import has_examples
from .stream import BaseKey

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import SupportsIndex, TypeAlias

    from numpy.typing import ArrayLike, DTypeLike

    Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]

FLOAT_BITS = {np.dtype(np.float64): 53, np.dtype(np.float32): 24, np.dtype(np.float16): 11}


def shape_tuple(shape: Shape, use: str, argument: str = "shape") -> tuple[int, ...]:
    """Return `shape` as a tuple of Python ints.

    Raises
    ------
    ArgumentError
        `shape` is neither an int nor a sequence of ints.
    ShapeError
        A length is negative.
    """
    try:
        if isinstance(shape, (tuple, list)):
            lengths = tuple(map(operator.index, shape))
        elif isinstance(shape, np.ndarray) and shape.ndim == 1:
            lengths = tuple(map(operator.index, shape.tolist()))
        else:
            lengths = (operator.index(shape),)  # type: ignore[arg-type]
    except TypeError:
        if isinstance(shape, BaseKey):
            raise wrong(
                f"got a key for {argument}: the key comes first",
                argument,
                use,
                f"random.{use}(key, ...)",
            ) from None
        raise wrong(
            f"got {argument}={shape!r}, which is not made of integers",
            argument,
            use,
            f"give an int or a tuple of ints, such as {argument}=3",
        ) from None
    if lengths and min(lengths) < 0:
        raise ShapeError(
            f"{use}() got {argument}={shape!r}, which has a negative length",
            where=f"argument '{argument}' of {use}() at {user_line()}",
            fix="give lengths of at least 0; -1 has no meaning here",
        )
    return lengths


def float_dtype(dtype: DTypeLike, use: str) -> np.dtype[Any]:
    """Return `dtype` as a NumPy dtype of which samplers can make numbers.

    Raises
    ------
    DtypeError
        It is not float16, float32 or float64.
    """
    found = np.dtype(dtype)
    if found not in FLOAT_BITS:
        raise DtypeError(
            f"{use}() draws float64, float32 or float16, not {found}",
            where=f"argument 'dtype' of {use}() at {user_line()}",
            fix="give a float dtype, or use random.randint or random.bits for integers",
        )
    return found


def integer_dtype(dtype: DTypeLike, use: str) -> np.dtype[Any]:
    """Return `dtype` as a NumPy integer dtype.

    Raises
    ------
    DtypeError
        It is not an integer dtype.
    """
    found = np.dtype(dtype)
    if found.kind not in "iu":
        raise DtypeError(
            f"{use}() draws integers, not {found}",
            where=f"argument 'dtype' of {use}() at {user_line()}",
            fix="give an integer dtype, or use random.uniform or random.normal for floats",
        )
    return found


def is_plain(value: object) -> bool:
    """Whether `value` is a number or array of NumPy or Python, and so has values to look at."""
    return isinstance(value, (bool, int, float, np.generic, np.ndarray))


def parameter(value: Any, dtype: np.dtype[Any] | None = None) -> Any:
    """Return `value`, made an array if it is a list; an array is cast to `dtype`, if given.

    Python's numbers stay as they are: they have no dtype that could spoil that of a result.
    """
    if isinstance(value, (list, tuple)):
        value = np.asarray(value)
    if dtype is None or getattr(value, "dtype", dtype) == dtype:
        return value
    return value.astype(dtype)


def untraced(value: Any, dtype: DTypeLike | None, argument: str, use: str, fix: str) -> Any:
    """Return `value` as an array, for a parameter in which a draw has no derivative.

    One that differs between the examples of vmap stays traced, by that alone.

    Raises
    ------
    TracerConversionError
        It is traced by a derivative.
    """
    if has_examples(value):
        return value if dtype is None else value.astype(dtype)
    try:
        return np.asarray(value, dtype)
    except TracerConversionError:
        raise TracerConversionError(
            f"{argument} of {use}() cannot be traced: draws are not differentiable in it",
            where=f"argument '{argument}' of {use}() at {user_line()}",
            fix=fix,
        ) from None


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of a number, an array or a traced value."""
    return tuple(getattr(value, "shape", ()))


def shape_around(
    shape: Shape | None, parameters: dict[str, tuple[int, ...]], use: str
) -> tuple[int, ...]:
    """Return `shape`, or if that is None the common shape of the parameters.

    Raises
    ------
    ShapeError
        The parameters do not broadcast together, or not to `shape`.
    """
    target = None if shape is None else shape_tuple(shape, use)
    try:
        common = np.broadcast_shapes(*parameters.values())
        if target is None:
            return common
        if np.broadcast_shapes(common, target) == target:
            return target
    except ValueError:
        pass
    found = " and ".join(f"{name} of shape {size}" for name, size in parameters.items())
    goal = "each other" if target is None else f"shape={target}"
    raise ShapeError(
        f"{use}() cannot broadcast {found} to {goal}",
        where=f"arguments of {use}() at {user_line()}",
        fix="shape= is the whole shape of the result, batch axes of the parameters included",
    )


def wrong(what: str, argument: str, use: str, fix: str) -> ArgumentError:
    """Word the error about the value of an argument, to be raised where it was found."""
    return ArgumentError(
        f"{use}() {what}", where=f"argument '{argument}' of {use}() at {user_line()}", fix=fix
    )


def integers(value: ArrayLike, argument: str, use: str) -> Any:
    """Return an int, or an array of integers (traced if only vmap traces it), from `value`.

    Raises
    ------
    DtypeError
        It holds anything but integers.
    TracerConversionError
        It is traced by a derivative.
    """
    if type(value) is int:
        return value
    fix = f"write int(funcgrad.stop_gradient({argument})), or use random.uniform for floats"
    array = untraced(value, None, argument, use, fix)
    if array.dtype.kind not in "iu" and isinstance(value, int):  # an int beyond 64 bits
        return int(value)
    if array.dtype.kind not in "iu":
        raise DtypeError(
            f"{use}() needs integers, got {describe(value)}",
            where=f"argument '{argument}' of {use}() at {user_line()}",
            fix=f"write int({argument}), or use random.uniform for floats",
        )
    return int(array) if array.ndim == 0 and not has_examples(array) else array
