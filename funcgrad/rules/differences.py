"""Differences of neighbours, and what is made of them: gradients, trapezoids, unwrapped phases."""

from __future__ import annotations

import operator

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from funcgrad.core.batch import along, broadcasting
from funcgrad.core.dispatch import of_shapes
from funcgrad.core.level import detached, is_batched
from funcgrad.core.primitive import Sample, overrides, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.families import linear
from funcgrad.rules.reducing import cast
from funcgrad.rules.spelling import array_of, holds_tracer

__all__: list[str] = []

_NO_VALUE = np._NoValue


@primitive(linear, name="diff")
def difference(a, *, n, axis):
    """Differences of neighbours along an axis, `n` times over."""
    return np.diff(a, n, axis)


@difference.def_vjp
def difference_vjp(primals, out, *, n, axis):
    shape = shape_of(primals[0])
    if not shape or n >= shape[axis]:
        return (None,)  # nothing is left
    width = [(0, 0)] * len(shape)
    width[axis] = (n, n)
    before = (slice(None),) * axis

    def diff_pullback(out_bar):
        # Summation by parts: backward differences, of what is zero beyond the ends.
        if n == 1:
            first, last = out_bar[(*before, slice(0, 1))], out_bar[(*before, slice(-1, None))]
            return np.concatenate([-first, -np.diff(out_bar, 1, axis), last], axis)
        made = np.diff(np.pad(out_bar, width), n, axis)
        return -made if n % 2 else made

    return diff_pullback


along(difference)


@difference.def_call(np.diff)
def diff(a, n=1, axis=-1, prepend=_NO_VALUE, append=_NO_VALUE):
    """Differences of neighbours along an axis."""
    if n == 0:
        return a
    if n < 0:
        raise ValueError("order must be non-negative but got " + repr(n))
    a = array_of(a)
    if not shape_of(a):
        raise ValueError("diff requires input that is at least one dimensional")
    axis = normalize_axis_index(axis, len(shape_of(a)))
    parts = [_edge(prepend, a, axis), a, _edge(append, a, axis)]
    parts = [part for part in parts if part is not None]
    if len(parts) > 1:
        a = np.concatenate(parts, axis)
    return difference.bind(a, n=n, axis=axis)


def _edge(value, a, axis):
    if value is _NO_VALUE:
        return None
    value = array_of(value)
    if shape_of(value) == ():
        shape = list(shape_of(a))
        shape[axis] = 1
        value = np.broadcast_to(value, tuple(shape))
    return value


@difference.def_samples
def difference_samples(rng):
    x = rng.normal(size=(3, 4))
    for n in (0, 1, 2, 3, 4, 6):
        yield Sample(x, n)
    yield Sample(x, axis=0)
    yield Sample(x, 1, -1, np.float64(0.5), rng.normal(size=(3, 2)))
    yield Sample(x, prepend=0.0)
    yield Sample(rng.normal(size=0))


@overrides(np.ediff1d)
def ediff1d(ary, to_end=None, to_begin=None):
    """Differences of neighbours, flattened, with numbers put before and behind."""
    ary = np.ravel(array_of(ary))
    dtype = dtype_of(ary)
    parts = [np.diff(ary)]
    for name, value in (("to_begin", to_begin), ("to_end", to_end)):
        if value is not None:
            value = array_of(value)
            if not np.can_cast(dtype_of(value), dtype, casting="same_kind"):
                raise TypeError(
                    f"dtype of `{name}` must be compatible with input `ary` under the "
                    "`same_kind` rule."
                )
            parts.insert(0 if name == "to_begin" else 2, np.ravel(value))
    return np.concatenate(parts, dtype=dtype) if len(parts) > 1 else parts[0]


@ediff1d.def_samples
def ediff1d_samples(rng):
    x = rng.normal(size=(2, 3))
    yield Sample(x)
    yield Sample(x, np.float64(1.5), rng.normal(size=2))
    yield Sample(rng.normal(size=0))


@overrides(np.trapezoid)
def trapezoid(y, x=None, dx=1.0, axis=-1):
    """Integrate by the trapezoidal rule."""
    y = array_of(y)
    ndim = len(shape_of(y))
    if x is None:
        d = dx
    else:
        x = array_of(x)
        if len(shape_of(x)) == 1:
            d = np.diff(x)
            shape = [1] * ndim
            shape[axis] = shape_of(d)[0]
            d = np.reshape(d, shape)
        else:
            d = np.diff(x, axis=axis)
    place = normalize_axis_index(axis, ndim)
    lead = (slice(None),) * place
    return np.sum(d * (y[(*lead, slice(1, None))] + y[(*lead, slice(None, -1))]) / 2.0, axis=axis)


@trapezoid.def_samples
def trapezoid_samples(rng):
    y = rng.normal(size=(3, 4))
    yield Sample(y)
    yield Sample(y, dx=0.5, axis=0)
    yield Sample(y, rng.normal(size=4))
    yield Sample(y, rng.normal(size=(3, 4)), axis=0)
    yield Sample(rng.normal(size=(2, 1)))


# Numerical derivatives


@overrides(np.gradient)
def gradient(f, *varargs, axis=None, edge_order=1):
    """Central differences inside and one-sided ones at the ends, in NumPy's order of operations."""
    f = array_of(f)
    shape = shape_of(f)
    axes = normalize_axis_tuple(range(len(shape)) if axis is None else axis, len(shape))
    spacings = _spacings(varargs, axes, shape)
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    if dtype_of(f).kind not in "fc":
        f = cast(f, np.float64)
    made = []
    for number, spacing in zip(axes, spacings, strict=True):
        if shape[number] < edge_order + 1:
            of_shapes(np.gradient, f, *varargs, axis=axis, edge_order=edge_order)  # raises
        if not holds_tracer(spacing):
            made.append(gradient_along.bind(f, spacing=spacing, axis=number, edge_order=edge_order))
            continue
        if len(shape_of(spacing)) == 0:
            made.append(_slope(f, spacing, number, edge_order))
            continue
        if dtype_of(spacing).kind in "iu":
            spacing = cast(spacing, np.float64)  # unsigned integers would wrap around
        d = np.diff(spacing)
        slope = _slope(f, d, number, edge_order)
        # Without derivatives; of many examples at once NumPy knows nothing.
        plain, value = detached(d), detached(f)
        alone = not is_batched(plain) and not is_batched(value) and plain.ndim == 1
        if alone and bool(np.all(np.equal(plain, plain[0]))):
            # NumPy computes with the first distance alone, but the derivative is in all of them.
            slope = valued.bind(slope, _slope(value, plain[0], number, edge_order))
        made.append(slope)
    return made[0] if len(made) == 1 else tuple(made)


def _spacings(varargs, axes, shape):
    """Return for each axis the distance of its points, or their coordinates."""
    if not varargs:
        return [1.0] * len(axes)
    if len(varargs) == 1 and len(shape_of(array_of(varargs[0]))) == 0:
        return [varargs[0]] * len(axes)
    if len(varargs) != len(axes):
        raise TypeError("invalid number of arguments")
    spacings = []
    for number, spacing in zip(axes, varargs, strict=True):
        spacing = array_of(spacing) if isinstance(spacing, list | tuple) else spacing
        if len(shape_of(spacing)) > 1:
            raise ValueError("distances must be either scalars or 1d")
        if shape_of(spacing) and shape_of(spacing)[0] != shape[number]:
            raise ValueError(
                "when 1d, distances must match the length of the corresponding dimension"
            )
        if shape_of(spacing) and not holds_tracer(spacing):
            spacing = np.array(spacing)  # the caller may write to it
        spacings.append(spacing)
    return spacings


# Along one axis, of points that are not traced: linear in the values.


@primitive(linear)
def gradient_along(f, *, spacing, axis, edge_order):
    """Numerical derivative along an axis."""
    return np.gradient(f, spacing, axis=axis, edge_order=edge_order)


@gradient_along.def_vjp
def gradient_along_vjp(primals, out, **params):
    def gradient_along_pullback(out_bar):
        return gradient_transposed.bind(out_bar, **params)

    return gradient_along_pullback


@primitive(linear)
def gradient_transposed(t, *, spacing, axis, edge_order):
    """The transpose of `gradient_along`: what each value contributes to the derivatives."""
    t = np.moveaxis(t, axis, -1)
    weights = _weights(spacing, t.shape[-1], edge_order)
    out = np.zeros(t.shape, t.dtype)
    for into, of, weight in weights:
        out[..., into] += t[..., of] * weight
    return np.moveaxis(out, -1, axis)


def _weights(spacing, n, edge_order):
    """Return (slice of values, slice of derivatives, weight) for all parts of the stencil."""
    inside = slice(1, -1)
    d = np.diff(spacing) if np.ndim(spacing) else None
    if d is None:
        half = 0.5 / spacing
        parts = [(slice(None, -2), inside, -half), (slice(2, None), inside, half)]
        d = np.broadcast_to(spacing, (n - 1,))
    else:
        d1, d2 = d[:-1], d[1:]
        parts = [
            (slice(None, -2), inside, -d2 / (d1 * (d1 + d2))),
            (inside, inside, (d2 - d1) / (d1 * d2)),
            (slice(2, None), inside, d1 / (d2 * (d1 + d2))),
        ]
    if edge_order == 1:
        first, last = (-1 / d[0], 1 / d[0]), (-1 / d[-1], 1 / d[-1])
    else:
        first, last = _one_sided(d[0], d[1]), _one_sided(d[-2], d[-1], last=True)
    parts += [(slice(i, i + 1), slice(0, 1), weight) for i, weight in enumerate(first)]
    start = n - len(last)
    parts += [
        (slice(start + i, start + i + 1), slice(-1, None), weight) for i, weight in enumerate(last)
    ]
    return parts


@gradient_transposed.def_vjp
def gradient_transposed_vjp(primals, out, **params):
    def gradient_transposed_pullback(out_bar):
        return gradient_along.bind(out_bar, **params)

    return gradient_transposed_pullback


along(gradient_along)
along(gradient_transposed)


def _along(f, spacing, **params):
    return gradient_along.bind(f, spacing=np.array(spacing), **params)


def _transposed(t, spacing, **params):
    return gradient_transposed.bind(t, spacing=np.array(spacing), **params)


@gradient_along.def_samples
@gradient_transposed.def_samples
def gradient_along_samples(rng):
    f = rng.normal(size=(2, 4))
    for fun in (_along, _transposed):
        for spacing in (0.5, (0.0, 0.5, 0.7, 2.0), (0.0, 1.0, 2.0, 3.0)):
            for order in (1, 2):
                yield Sample(f, spacing, fun=fun, axis=1, edge_order=order)


# In the points as well: composed in NumPy's order of operations


def _slope(f, d, axis, edge_order):
    """Return the derivative along `axis`, of points that are `d` apart: one distance, or all."""
    ndim, before = len(shape_of(f)), (slice(None),) * axis
    uniform = len(shape_of(d)) == 0

    def part(start, stop):
        return f[(*before, slice(start, stop))]

    def at(place):
        return f[(*before, place)]

    if uniform:
        inside = (part(2, None) - part(None, -2)) / (2.0 * d)
    else:
        d1, d2 = d[0:-1], d[1:]
        shape = (-1,) + (1,) * (ndim - axis - 1)
        a = np.reshape(-(d2) / (d1 * (d1 + d2)), shape)
        b = np.reshape((d2 - d1) / (d1 * d2), shape)
        c = np.reshape(d1 / (d2 * (d1 + d2)), shape)
        inside = a * part(None, -2) + b * part(1, -1) + c * part(2, None)
    if edge_order == 1:
        first = (at(1) - at(0)) / (d if uniform else d[0])
        last = (at(-1) - at(-2)) / (d if uniform else d[-1])
    else:
        a, b, c = (-1.5 / d, 2.0 / d, -0.5 / d) if uniform else _one_sided(d[0], d[1])
        first = a * at(0) + b * at(1) + c * at(2)
        a, b, c = (0.5 / d, -2.0 / d, 1.5 / d) if uniform else _one_sided(d[-2], d[-1], last=True)
        last = a * at(-3) + b * at(-2) + c * at(-1)
    parts = [np.expand_dims(first, axis), inside, np.expand_dims(last, axis)]
    return np.concatenate([cast(values, dtype_of(f)) for values in parts], axis)


def _one_sided(d1, d2, *, last=False):
    """Return the weights of the first, or last, three points, which are `d1` and `d2` apart."""
    if last:
        return d2 / (d1 * (d1 + d2)), -(d2 + d1) / (d1 * d2), (2.0 * d2 + d1) / (d2 * (d1 + d2))
    return -(2.0 * d1 + d2) / (d1 * (d1 + d2)), (d1 + d2) / (d1 * d2), -d1 / (d2 * (d1 + d2))


@primitive()
def valued(x, value):
    """``value``, which is `x` computed in another order, with the derivatives of `x`."""
    return value.copy()


@valued.def_jvp
def valued_jvp(primals, tangents, out):
    return tangents[0]


@valued.def_vjp
def valued_vjp(primals, out):
    def valued_pullback(out_bar):
        return out_bar

    return valued_pullback, None


broadcasting(valued)


@valued.def_samples
def valued_samples(rng):
    x = rng.normal(size=3)
    yield Sample(x, x, fun=_of_both, argnums=0)


def _of_both(x, value):
    return x if is_batched(x) else valued.bind(x, detached(x))


@gradient.def_samples
def gradient_samples(rng):
    f, g = rng.normal(size=5), rng.normal(size=(3, 4))
    x, y = np.array([0.0, 0.5, 1.7, 2.0, 3.1]), np.array([-1.0, 0.2, 0.7, 2.0])
    for order in (1, 2):
        yield Sample(f, edge_order=order)
        yield Sample(f, np.float64(0.3), edge_order=order)
        yield Sample(f, x, edge_order=order)
        yield Sample(f, np.arange(5.0), edge_order=order, complex=False)
        yield Sample(g, edge_order=order)
        yield Sample(g, 0.5, np.array(y), edge_order=order)
    yield Sample(g, [0, 1, 3], 2)
    yield Sample(g, np.float64(0.3))
    yield Sample(g, y, axis=-1)
    yield Sample(g, axis=0)
    yield Sample(g, y, [0.0, 0.5, 1.0], axis=(1, 0))
    yield Sample(rng.normal(size=2))


@primitive()
def unwrap(p, *, discont=None, axis=-1, period=2 * np.pi):
    """Add multiples of the period where the phase jumps; those are piecewise constant."""
    return np.unwrap(p, discont, axis, period=period)


@unwrap.def_jvp
def unwrap_jvp(primals, tangents, out, **params):
    return tangents[0]


@unwrap.def_vjp
def unwrap_vjp(primals, out, **params):
    def unwrap_pullback(out_bar):
        return out_bar

    return unwrap_pullback


along(unwrap)


@unwrap.def_call(np.unwrap)
def _traced_unwrap(p, discont=None, axis=-1, *, period=2 * np.pi):
    """`numpy.unwrap`."""
    return unwrap(array_of(p), discont=discont, axis=operator.index(axis), period=period)


@unwrap.def_samples
def unwrap_samples(rng):
    x = 4 * rng.normal(size=(3, 5))
    yield Sample(x)
    yield Sample(x, axis=0)
    yield Sample(x, 5.0)
    yield Sample(x, period=3.0)
    yield Sample(x[:, :1])
