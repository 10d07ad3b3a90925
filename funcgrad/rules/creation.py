"""Creation: arrays like a traced one, and grids between traced ends.

What `zeros_like` and its kin make of a tracer are constants that may be assigned to: see
`funcgrad.core.constant`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.batch import align, ndim_of, shift
from funcgrad.core.constant import assignable
from funcgrad.core.primitive import Sample, overrides, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.families import linear
from funcgrad.rules.spelling import array_of, holds_tracer, prototype

__all__ = ["filled", "full_like"]


# Like a traced array


@overrides(np.zeros_like)
def zeros_like(a, *args, **kwargs):
    """Make an array of zeros."""
    return assignable(np.zeros_like(prototype(a), *args, **kwargs))


@overrides(np.ones_like)
def ones_like(a, *args, **kwargs):
    """Make an array of ones."""
    return assignable(np.ones_like(prototype(a), *args, **kwargs))


@overrides(np.empty_like)
def empty_like(a, *args, **kwargs):
    """Make an array to be assigned to."""
    return assignable(np.empty_like(prototype(a), *args, **kwargs))


@overrides(np.full_like)
def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, **kwargs):
    """Make an array of one value, which may be traced."""
    value = prototype(a)
    if not holds_tracer(fill_value):
        return assignable(np.full_like(value, fill_value, dtype, order, subok, shape, **kwargs))
    like = np.empty_like(value, dtype, order, subok, shape, **kwargs)
    return filled(fill_value, like.shape, like.dtype, "F" if like.flags.fnc else "C")


def filled(fill_value: Any, shape: Any, dtype: Any, order: Any) -> Any:
    """Return an array full of a traced value."""
    value = array_of(fill_value)
    if dtype is not None and dtype_of(value) != dtype:
        value = value.astype(dtype)
    return np.copy(np.broadcast_to(value, shape), order=order)


@zeros_like.def_samples
@ones_like.def_samples
def like_samples(rng):
    yield Sample(rng.normal(size=(2, 3)), order=0)
    yield Sample(rng.normal(size=(2, 3)), shape=(4,))
    yield Sample(rng.normal(size=3), int, order=0)
    yield Sample(np.float64(1.5))


@empty_like.def_samples
def empty_like_samples(rng):
    yield Sample(rng.normal(size=(2, 0)), order=0)  # no elements: there is nothing to compare


@full_like.def_samples
def full_like_samples(rng):
    x = rng.normal(size=(2, 3))
    yield Sample(x, 1.5)
    yield Sample(x, np.float64(1.5))
    yield Sample(x, rng.normal(size=3), shape=(4, 3))
    yield Sample(x, np.float64(1.5), dtype=int, order=0, complex=False)


# Grids


@primitive(linear, overrides=np.linspace)
def linspace(start, stop, *, num=50, endpoint=True, retstep=False, dtype=None, axis=0, device=None):
    """Numbers at equal steps between two ends, and the step."""
    return np.linspace(start, stop, num, endpoint, retstep, dtype, axis)


def _weights(num: int, endpoint: bool, out_bar: Any, axis: int) -> tuple[Any, Any]:
    """Return the share of `stop` in each number, with the new axis first, and the cotangent so."""
    steps = num - 1 if endpoint else num
    out_bar = np.moveaxis(out_bar, axis, 0)
    shape = (num,) + (1,) * (np.ndim(out_bar) - 1)
    w = np.arange(num, dtype=dtype_of(out_bar).type(0).real.dtype)
    return (w / steps if steps > 0 else 0 * w).reshape(shape), out_bar


@linspace.def_vjp
def linspace_vjp(primals, out, *, num, endpoint, retstep, dtype, axis, device):
    steps = num - 1 if endpoint else num

    def start_pullback(out_bar):
        return pulled(out_bar, start=True)

    def stop_pullback(out_bar):
        return pulled(out_bar, start=False)

    def pulled(out_bar, start):
        out_bar, step_bar = out_bar if retstep else (out_bar, None)
        bar = None
        if out_bar is not None:
            w, out_bar = _weights(num, endpoint, out_bar, axis)
            bar = np.sum(((1 - w) if start else w) * out_bar, axis=0)
        if step_bar is not None and steps > 0:
            step_bar = step_bar / (-steps if start else steps)
            bar = step_bar if bar is None else bar + step_bar
        return bar

    return start_pullback, stop_pullback


@linspace.def_batch
def linspace_batch(args, batched, *, axis, retstep, **params):
    axis = shift(axis, 1 + max(map(ndim_of, args, batched)))
    start, stop = align(args, batched)
    made = linspace.bind(start, stop, axis=axis, retstep=retstep, **params)
    if not retstep:
        return made
    out, step = made
    ends = list(shape_of(out))
    del ends[axis]
    if shape_of(step) != tuple(ends):  # NaN, for want of a step
        step = np.full(ends, step)
    return out, step


@linspace.def_samples
def linspace_samples(rng):
    a, b = np.float64(0.5), np.float64(2.5)
    yield Sample(a, b)
    yield Sample(a, b, 5, False)
    yield Sample(a, b, num=4, retstep=True)
    yield Sample(rng.normal(size=(2, 1)), rng.normal(size=3), 4, axis=-1)
    yield Sample(rng.normal(size=3), 2.0, num=3, axis=1)
    for num in (0, 1, 2):
        yield Sample(a, b, num)
    yield Sample(a, b, 5, dtype=np.float64)


@overrides(np.logspace)
def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    """Powers of `base`, their exponents at equal steps."""
    if np.ndim(base):  # NumPy brings all three to as many axes then
        start, stop, base = array_of(start), array_of(stop), array_of(base)
        shapes = [shape_of(part) for part in (start, stop, base)]
        ndmax = max(map(len, shapes))
        start, stop, base = (
            np.reshape(part, (1,) * (ndmax - len(shape)) + shape)
            for part, shape in zip((start, stop, base), shapes, strict=True)
        )
        base = np.expand_dims(base, axis)
    made = np.power(base, np.linspace(start, stop, num, endpoint, axis=axis))
    return made if dtype is None else made.astype(dtype, copy=False)


@logspace.def_samples
def logspace_samples(rng):
    a, b = np.float64(0.5), np.float64(1.5)
    yield Sample(a, b, 4)
    yield Sample(a, b, 3, False, np.float64(2.0))
    yield Sample(rng.normal(size=2), 1.0, num=3, base=2.0, axis=-1)
    yield Sample(a, b, 3, True, rng.uniform(1.0, 2.0, size=2), argnums=(0, 1, 4))


@primitive(overrides=np.geomspace)
def geomspace(start, stop, *, num=50, endpoint=True, dtype=None, axis=0):
    """Numbers at equal ratios between two ends: start**(1 - w) * stop**w."""
    return np.geomspace(start, stop, num, endpoint, dtype, axis)


@geomspace.def_jvp
def geomspace_jvp(primals, tangents, out, *, num, endpoint, dtype, axis):
    w, moved = _weights(num, endpoint, out, axis)
    out_dot: Any = 0
    for share, x, x_dot in zip((1 - w, w), primals, tangents, strict=True):
        if x_dot is not None:
            out_dot = out_dot + share * (moved * (x_dot / x))
    return np.moveaxis(out_dot, 0, axis)


@geomspace.def_vjp
def geomspace_vjp(primals, out, *, num, endpoint, dtype, axis):
    start, stop = primals

    def start_pullback(out_bar):
        w, bar = _weights(num, endpoint, out_bar * out, axis)
        return np.sum((1 - w) * bar, axis=0) / start

    def stop_pullback(out_bar):
        w, bar = _weights(num, endpoint, out_bar * out, axis)
        return np.sum(w * bar, axis=0) / stop

    return start_pullback, stop_pullback


@geomspace.def_batch
def geomspace_batch(args, batched, *, axis, **params):
    axis = shift(axis, 1 + max(map(ndim_of, args, batched)))
    return geomspace.bind(*align(args, batched), axis=axis, **params)


@geomspace.def_samples
def geomspace_samples(rng):
    a, b = np.float64(0.5), np.float64(2.5)
    yield Sample(a, b, 4)
    yield Sample(-a, -b, 4, endpoint=False)
    yield Sample(rng.uniform(0.5, 2.0, size=(2, 1)), rng.uniform(0.5, 2.0, size=3), 3, axis=-1)
    for num in (0, 1, 2):
        yield Sample(a, b, num)


@overrides(np.meshgrid)
def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    """Coordinates of the points of a grid."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    ndim = len(xi)
    made = []
    for place, x in enumerate(xi):
        if indexing == "xy" and ndim > 1 and place < 2:
            place = 1 - place
        shape = (1,) * place + (-1,) + (1,) * (ndim - place - 1)
        made.append(np.reshape(array_of(x), shape))
    if not sparse:
        made = list(np.broadcast_arrays(*made))
    return tuple(x.copy() for x in made) if copy else tuple(made)


@meshgrid.def_samples
def meshgrid_samples(rng):
    x, y, z = (rng.normal(size=n) for n in (2, 3, 4))
    yield Sample(x, y)
    yield Sample(x, y, z, indexing="ij")
    yield Sample(x, y, z, sparse=True)
    yield Sample(x, np.float64(1.5), copy=False)
    yield Sample(x)
