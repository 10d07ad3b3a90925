"""Zero wins, and cotangents that fit: two repairs that rules share.

A tangent or cotangent that is exactly zero, times an infinite or undefined local derivative,
is zero: a branch that `np.where` did not take must not turn the gradient into NaN. Testing
for that costs one BLAS dot product where all is finite, which is nearly always.
"""

from __future__ import annotations

from cmath import isfinite  # of complex numbers, and faster than .real
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core.level import TracerBase, any_of, concrete, is_recorded
from funcgrad.core.watching import STRICT
from funcgrad.errors import ShapeError, describe, user_line

__all__ = [
    "SHORT",
    "are_finite",
    "as_numpy",
    "dtype_of",
    "fit",
    "guarded",
    "is_finite",
    "is_settled",
    "numpy_number",
    "repaired",
    "selected",
    "shape_of",
    "spread",
    "vdot",
    "zero_wins",
    "zero_wins_among",
]

_ndarray = np.ndarray
# The sum of squares is NaN or infinite if any element is. Without the dispatch to other arrays'
# vdot, which takes as long as the product of short vectors.
vdot = getattr(np.vdot, "_implementation", np.vdot)
# BLAS works on longer vectors with several threads, and waits for them longer than it computes
# when the cores are busy.
SHORT = 8192
_FLOAT = np.dtype(np.float64)
_COMPLEX = np.dtype(np.complex128)


def shape_of(x: Any) -> tuple[int, ...]:
    """Return the shape of an array, tracer or Python number."""
    shape: tuple[int, ...] = getattr(x, "shape", ())
    return shape


def dtype_of(x: Any) -> np.dtype[Any]:
    """Return the dtype of an array, tracer or Python number (float64 or complex128)."""
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return _COMPLEX if isinstance(x, complex) else _FLOAT
    return dtype  # type: ignore[no-any-return]


def is_finite(x: Any) -> bool:
    """Tell whether every element of `x` is finite; may say no when squares overflow.

    Also of what is recorded: the repairs that follow do no harm where all is finite.
    """
    if type(x) is _ndarray:
        return isfinite(vdot(x, x)) if x.size <= SHORT else _is_finite_and_long(x)
    if isinstance(x, TracerBase):
        return are_finite((x,))
    if isinstance(x, float | complex | np.number):
        return isfinite(x)
    return bool(np.all(np.isfinite(x)))


def are_finite(values: Sequence[Any]) -> bool:
    """Tell whether every element of each of `values` is finite, as `is_finite` does of one."""
    recorded = []
    for x in values:
        if isinstance(x, TracerBase):
            if is_recorded(x):
                recorded.append(x)
                continue
            x = concrete(x)
        if not is_finite(x):
            return False
    if not recorded:
        return True
    trace = recorded[0]._trace
    below: Any = recorded[0]
    while not trace.records:
        below = below._value
        trace = below._trace
    return trace.look_finite(recorded)


def _is_finite_and_long(x: Any) -> bool:
    if not x.flags.c_contiguous or x.dtype.kind not in "fc" or x.itemsize < 4:
        return isfinite(np.add.reduce(x, axis=None))
    # Row by row, which takes two thirds of the time of a sum, of float32 one third.
    flat = x.reshape(-1)
    stop = x.size - x.size % SHORT
    rows, rest = flat[:stop].reshape(-1, SHORT), flat[stop:]
    return isfinite(np.add.reduce(np.vecdot(rows, rows))) and isfinite(vdot(rest, rest))


def is_settled(product: Any, factors: Sequence[Any]) -> bool:
    """Tell whether a sum of products has no term in which zero could win: all is finite.

    Where the product is the largest, as that of two vectors can be, it is cheaper to look at the
    factors: if those are finite, the product is, or has overflowed.
    """
    if _elements(product) > sum(map(_elements, factors)) and are_finite(factors):
        return True
    return is_finite(product)


def _elements(x: Any) -> int:
    size: int = getattr(concrete(x), "size", 1)
    return size


def selected(mask: Any, t: Any) -> Any:
    """Return `t` where `mask` is true and 0 elsewhere.

    By a product, as long as all is finite: for a mask without a pattern `numpy.where` takes ten
    times as long, since it branches at each element.
    """
    if type(t) is _ndarray and type(mask) is _ndarray and t.dtype.kind in "fc":
        product = np.multiply(t, mask)
        if is_finite(product):
            return np.add(product, 0, product) if product.shape else product  # no negative zeros
    return np.where(mask, t, 0)


def zero_wins(product: Any, t: Any) -> Any:
    """Return `product`, a (co)tangent `t` times a derivative, with 0 wherever `t` is 0.

    Parameters
    ----------
    product : array_like
        What the rule computed, of the shape of `t`.
    t : array_like
        The tangent or cotangent that went in.
    """
    if is_finite(product) or STRICT.get():
        return product
    if isinstance(product, float | complex):  # a Python number stays one
        return product if t else type(product)(0)
    chosen = _zero_where(np.equal(t, 0), product)
    return chosen[()] if isinstance(product, np.generic) else chosen


def _zero_where(zero: Any, x: Any) -> Any:
    """Return `x` with 0 where `zero` is true and `x` is not finite.

    Finite elements stay what they are, zeros too: they have derivatives of their own.
    """
    lost = np.logical_and(zero, np.logical_not(np.isfinite(x)))
    return np.where(lost, dtype_of(x).type(0), x)


def zero_wins_among(made: Any, product: Callable[..., Any], args: Sequence[Any]) -> Any:
    """Return ``made = product(*args)``, a sum of products of elements of each, where zero wins.

    A term with a factor of exactly 0 is 0: rows of data that are missing (NaN) and masked out after
    a matrix product must not turn the gradient of the weights into NaN.

    Parameters
    ----------
    made : array_like
        What `product` gives.
    product : callable
        Linear in each of its arguments.
    args : sequence of array_like
        The factors, one of them a tangent or cotangent.
    """
    if is_settled(made, args) or STRICT.get():
        return made
    finite = [np.isfinite(arg) for arg in args]
    if not any(any_of(np.logical_not(mask)) for mask in finite):
        return made  # it overflowed
    # The same sum with ones for what is not finite, and for what is not 0 in the others: it
    # counts the terms that are not finite for a good reason.
    count: Any = 0.0
    for index, mask in enumerate(finite):
        others = [np.not_equal(arg, 0) * 1.0 for arg in args]
        others[index] = np.logical_not(mask) * 1.0
        count = count + np.real(product(*others))
    clean = product(*(np.where(mask, arg, 0) for mask, arg in zip(finite, args, strict=True)))
    return np.where(np.greater(count, 0), made, clean)


def guarded(product: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Make a product of a (co)tangent with a residual one in which zero wins."""

    def safe(t: Any, kept: Any) -> Any:
        try:
            made = product(t, kept)
        except ArithmeticError:
            made = as_numpy(product, t, kept)
        return repaired(made, product, t, kept)

    return safe


def repaired(made: Any, product: Callable[[Any, Any], Any], t: Any, kept: Any) -> Any:
    """Return ``made = product(t, kept)`` with 0 where `t` or the derivative is exactly 0.

    In reverse mode the cotangent arrives as 0 where a later factor was 0; in forward mode the
    tangent arrives infinite or undefined, and only then meets that factor. Both modes must agree.
    """
    if is_finite(made) or STRICT.get():
        return made
    factor = as_numpy(product, 1.0, kept)
    flat = np.equal(factor, 0)
    if any_of(flat):
        made = _zero_where(flat, made)
    return zero_wins(made, t)


def as_numpy(product: Callable[[Any, Any], Any], t: Any, kept: Any) -> Any:
    """Multiply Python numbers as NumPy would, to which 1.0 / 0.0 is infinite and no error."""
    if type(kept) is tuple:
        kept = tuple(map(numpy_number, kept))
    return product(numpy_number(t), numpy_number(kept))


def numpy_number(x: Any) -> Any:
    """Return a Python number, traced or not, as NumPy's scalar of it; anything else as it is."""
    # By a function that can be traced: the Python number may be at the bottom of a tracer.
    return np.positive(x) if type(concrete(x)) in (float, complex) else x


def fit(x_bar: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Bring a cotangent to the shape and dtype of its primal.

    The transpose of broadcasting is a sum; that of taking a real number for a complex one is
    the real part.
    """
    got = shape_of(x_bar)
    if got != shape and got[1:] == shape and type(x_bar) is _ndarray:
        x_bar = np.add.reduce(x_bar, 0)  # a bias, the usual case
    elif got != shape:
        extra = len(got) - len(shape)
        summed = list(range(extra))
        for axis, size in enumerate(shape, extra):
            if axis < 0 or (size != 1 and got[axis] != size):
                raise ShapeError(
                    f"a pullback returned {describe(x_bar)} for an argument of shape {shape}",
                    where=user_line(),
                    fix="return a cotangent of that shape; further axes before it, and further "
                    "elements where the argument has one, are summed",
                )
            if got[axis] != size:
                summed.append(axis)
        x_bar = np.sum(x_bar, axis=tuple(summed))
        if shape_of(x_bar) != shape:
            x_bar = np.reshape(x_bar, shape)
    return x_bar if dtype_of(x_bar) == dtype else _cast(x_bar, dtype)


def spread(x_dot: Any, out: Any) -> Any:
    """Bring a tangent to the shape and dtype of the output: the mirror image of `fit`."""
    if (
        type(x_dot) is type(out) is _ndarray
        and x_dot.shape == out.shape
        and x_dot.dtype is out.dtype
    ):
        return x_dot  # nearly always
    shape, dtype = shape_of(out), dtype_of(out)
    if shape_of(x_dot) != shape:
        try:
            x_dot = np.broadcast_to(x_dot, shape)
        except ValueError:
            raise ShapeError(
                f"a forward rule returned {describe(x_dot)} for an output of shape {shape}",
                where=user_line(),
                fix="return a tangent of that shape, or one that can be broadcast to it",
            ) from None
    return x_dot if dtype_of(x_dot) == dtype else _cast(x_dot, dtype)


def _cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """Return `x` as `dtype`, by its real part where that is real."""
    if dtype.kind != "c" and dtype_of(x).kind == "c":
        x = np.real(x)
    if dtype_of(x) == dtype:
        return x
    return x.astype(dtype) if hasattr(x, "astype") else dtype.type(x)
