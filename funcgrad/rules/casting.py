"""Casting and copying: the same elements in another dtype, or in memory of their own.

Both are linear, and all that there is to pull back is what the mechanism undoes by itself.
"""

from __future__ import annotations

import numpy as np

from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import DtypeError, describe, user_line
from funcgrad.rules.families import linear
from funcgrad.rules.spelling import order_a, prototype

__all__ = ["same"]


def same(out_bar):
    """Pull back through a function of which the mechanism undoes all: broadcasting and casts."""
    return out_bar


@primitive(linear, overrides=np.copy)
def copy(a, *, order="K", subok=False):
    """Return a copy, which may be assigned to."""
    return np.copy(a, order, subok)


@copy.def_jvp
def copy_jvp(primals, tangents, out, *, order, subok):
    return tangents[0]  # nobody writes to a tangent


@copy.def_vjp
def copy_vjp(primals, out, *, order, subok):
    return same


@copy.def_batch
def copy_batch(args, batched, *, order, subok):
    (a,) = args
    if order == "A" and len(a):
        order = order_a(prototype(a)[0])
    if order != "F":
        return copy.bind(a, order=order, subok=subok)
    # In C order with all axes reversed, but for the first.
    axes = (0, *range(len(shape_of(a)) - 1, 0, -1))
    return np.transpose(copy.bind(np.transpose(a, axes), order="C", subok=subok), axes)


@copy.def_samples
def copy_samples(rng):
    yield Sample(rng.normal(size=(2, 3)))
    yield Sample(rng.normal(size=(2, 3)), order="F")
    yield Sample(np.float64(1.5))


@primitive(linear, name="astype")
def cast(x, *, dtype):
    """Convert to another dtype; the derivative ends where that one is not floating.

    Real to complex and back are transposes of each other, and the mechanism casts both.
    """
    return x.astype(dtype) if hasattr(x, "astype") else dtype.type(x)


@cast.def_jvp
def cast_jvp(primals, tangents, out, *, dtype):
    return tangents[0] if dtype.kind in "fc" else None


@cast.def_vjp
def cast_vjp(primals, out, *, dtype):
    return same if dtype.kind in "fc" else (None,)


@cast.def_batch
def cast_batch(args, batched, *, dtype):
    return cast.bind(*args, dtype=dtype)


@cast.def_call(np.astype)
def astype(x, dtype, /, *, copy=True, device=None):
    """Convert to another dtype: a copy, unless there is nothing to do and `copy` is false."""
    dtype = np.dtype(dtype)
    if dtype.kind == "O":
        raise DtypeError(
            "a traced array cannot become an array of objects, which would lose its derivative",
            where=f"{user_line()}; {describe(x)}",
            fix="keep its dtype, or write funcgrad.stop_gradient(x).astype(object)",
        )
    if not copy and dtype == dtype_of(x):
        return x
    return cast.bind(x, dtype=dtype)


@cast.def_samples
def cast_samples(rng):
    x = rng.normal(size=(2, 3))
    yield Sample(x, np.float64)
    yield Sample(x, np.complex128)
    yield Sample(x, "float64", copy=False)
    yield Sample(x, int, order=0, complex=False)
