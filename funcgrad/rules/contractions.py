"""Products that sum, with arrays of any number of axes: `dot`, `tensordot`, `outer`, `kron`...

As in `matmul.py`: linear in each array by itself, a cotangent is a product of `out_bar` with the
other array, and `vdot` conjugates. `einsum` has a file of its own; the functions of `numpy.linalg`
that are these by another name are in `linalg.py`.
"""

from __future__ import annotations

from math import prod
from operator import index
from typing import Any

import numpy as np

from funcgrad.core.batch import align, ndim_of, shift
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, fit, shape_of
from funcgrad.rules.families import multilinear
from funcgrad.rules.matmul import (
    batched_matmul,
    conj,
    contract,
    matmul_pullbacks,
    multiply_pullbacks,
    solid,
)
from funcgrad.rules.spelling import as_arrays

__all__: list[str] = []


def _each_by_scalar(args: Any, batched: Any) -> Any:
    """Multiply examples, where of each pair one is a scalar."""
    x, y = align(args, batched)
    return x * y


def _contraction(args: Any, batched: Any, axes_a: Any, axes_b: Any) -> Any:
    """Sum over pairs of axes of each example, counted from the front in one of them."""
    a, b = args
    if not batched[1]:
        return np.tensordot(solid(a), solid(b), (shift(axes_a, len(shape_of(a)) - 1), axes_b))
    n_a, n_b = ndim_of(a, batched[0]), ndim_of(b, True)
    free_a = [axis for axis in range(n_a) if axis not in axes_a]
    if not batched[0]:
        # The axes of examples and of `b` come first, and have to change places with those of `a`.
        out = np.tensordot(solid(b), solid(a), (shift(axes_b, n_b), axes_a))
        count = len(free_a)
        return np.moveaxis(out, range(-count, 0), range(1, count + 1)) if count else out
    free_b = [axis for axis in range(n_b) if axis not in axes_b]
    shape_a, shape_b = shape_of(a)[1:], shape_of(b)[1:]
    if [shape_a[axis] for axis in axes_a] != [shape_b[axis] for axis in axes_b]:
        raise ValueError("shape-mismatch for sum")
    sizes_a, sizes_b = [shape_a[axis] for axis in free_a], [shape_b[axis] for axis in free_b]
    size, summed = len(a), prod(shape_a[axis] for axis in axes_a)
    # As products of matrices; without free axes they are vectors.
    a = np.transpose(a, (0, *shift((*free_a, *axes_a), n_a)))
    a = np.reshape(a, (size, *([prod(sizes_a)] if free_a else ()), summed))
    b = np.transpose(b, (0, *shift((*axes_b, *free_b), n_b)))
    b = np.reshape(b, (size, summed, *([prod(sizes_b)] if free_b else ())))
    out = batched_matmul(a, b, batched)
    shape = (size, *sizes_a, *sizes_b)
    return out if shape_of(out) == shape else np.reshape(out, shape)


@primitive(multilinear, overrides=(np.dot,), canonical=as_arrays)
def dot(a, b, *, out=None):
    """Sum over the last axis of `a` and the second to last, or only, one of `b`."""
    return np.dot(a, b)


@dot.def_vjp
def dot_vjp(primals, out):
    a, b = primals
    n_a, n_b = len(shape_of(a)), len(shape_of(b))
    if n_a == 0 or n_b == 0:
        return multiply_pullbacks(a, b)
    if n_b <= 2 or n_a == 1:
        return matmul_pullbacks(a, b)
    return contraction_pullbacks(a, b, (n_a - 1,), (n_b - 2,))


@dot.def_batch
def dot_batch(args, batched):
    n_a, n_b = map(ndim_of, args, batched)
    if n_a == 0 or n_b == 0:
        return _each_by_scalar(args, batched)
    if n_b <= 2 or n_a == 1:
        return batched_matmul(*args, batched)
    return _contraction(args, batched, (n_a - 1,), (n_b - 2,))


@dot.def_samples
def dot_samples(rng):
    for shape_a, shape_b in (
        ((), ()),
        ((), (2, 3)),
        ((2, 3), ()),
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((2, 3), (3, 2)),
        ((2, 2, 3), (3,)),
        ((2, 2, 3), (3, 2)),
        ((3,), (2, 3, 2)),
        ((2, 3), (2, 3, 2)),
        ((2, 1, 3), (2, 3, 1)),
        ((2, 0), (0, 3)),
        ((2, 0), (3, 0, 2)),
    ):
        yield Sample(rng.normal(size=shape_a), rng.normal(size=shape_b))
    yield Sample(2.0, rng.normal(size=3))
    yield Sample([1.0, 2.0], rng.normal(size=2))


@primitive(multilinear, overrides=(np.inner,), canonical=as_arrays)
def inner(a, b):
    """Sum over the last axes of both."""
    return np.inner(a, b)


@inner.def_vjp
def inner_vjp(primals, out):
    a, b = primals
    n_a, n_b = len(shape_of(a)), len(shape_of(b))
    if n_a == 0 or n_b == 0 or n_a == n_b == 1:
        return multiply_pullbacks(a, b)
    return contraction_pullbacks(a, b, (n_a - 1,), (n_b - 1,))


@inner.def_batch
def inner_batch(args, batched):
    n_a, n_b = map(ndim_of, args, batched)
    if n_a == 0 or n_b == 0:
        return _each_by_scalar(args, batched)
    return _contraction(args, batched, (n_a - 1,), (n_b - 1,))


@inner.def_samples
def inner_samples(rng):
    for shape_a, shape_b in (
        ((), (2,)),
        ((2, 3), ()),
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (2, 3)),
        ((2, 3), (4, 3)),
        ((2, 1, 3), (2, 3)),
        ((2, 0), (3, 0)),
    ):
        yield Sample(rng.normal(size=shape_a), rng.normal(size=shape_b))


def tensordot_args(args: Any, params: Any) -> Any:
    """Write the axes as an integer, or as a pair of tuples."""
    axes = params["axes"]
    if np.iterable(axes):
        pair = tuple(tuple(axis) if np.iterable(axis) else axis for axis in axes)
        params = {**params, "axes": pair}
    return as_arrays(args, params)


@primitive(multilinear, overrides=(np.tensordot,), canonical=tensordot_args)
def tensordot(a, b, *, axes=2):
    """Sum over pairs of axes."""
    return np.tensordot(a, b, axes)


@tensordot.def_vjp
def tensordot_vjp(primals, out, *, axes):
    a, b = primals
    return contraction_pullbacks(a, b, *_pairs(axes, len(shape_of(a)), len(shape_of(b))))


def _pairs(axes: Any, n_a: int, n_b: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes to sum over, counted from the front."""
    if not isinstance(axes, tuple):
        return tuple(range(n_a - axes, n_a)), tuple(range(axes))
    axes_a, axes_b = (axis if isinstance(axis, tuple) else (axis,) for axis in axes)
    return tuple(axis % n_a for axis in axes_a), tuple(axis % n_b for axis in axes_b)


@tensordot.def_batch
def tensordot_batch(args, batched, *, axes):
    return _contraction(args, batched, *_pairs(axes, *map(ndim_of, args, batched)))


def contraction_pullbacks(a, b, axes_a, axes_b):
    """Pullbacks of a sum over pairs of axes, counted from the front."""
    free_a = tuple(axis for axis in range(len(shape_of(a))) if axis not in axes_a)
    free_b = tuple(axis for axis in range(len(shape_of(b))) if axis not in axes_b)
    middle = len(free_a)
    first, last = tuple(range(middle)), tuple(range(middle, middle + len(free_b)))
    # The axes of the cotangents in the order in which `contract` finds them in the other array.
    paired_a = tuple(axes_a[axes_b.index(axis)] for axis in sorted(axes_b))
    paired_b = tuple(axes_b[axes_a.index(axis)] for axis in sorted(axes_a))

    def contraction_pullback_a(out_bar):
        return contract(out_bar, b, last, free_b, (free_a, paired_a))

    def contraction_pullback_b(out_bar):
        return contract(a, out_bar, free_a, first, (paired_b, free_b))

    return contraction_pullback_a, contraction_pullback_b


@tensordot.def_samples
def tensordot_samples(rng):
    a, b = rng.normal(size=(2, 3, 4)), rng.normal(size=(3, 4, 2))
    yield Sample(a, b)
    yield Sample(a, rng.normal(size=(4, 2)), axes=1)
    yield Sample(rng.normal(size=2), rng.normal(size=(2, 1)), axes=0)
    yield Sample(a, b, axes=([0, -1], [2, 1]))
    yield Sample(a, b, axes=(1, 0))
    yield Sample(a, b, axes=((1, 2, 0), (0, 1, 2)))
    yield Sample(a, b, axes=((2, 0, 1), (1, 2, 0)))
    yield Sample(a, rng.normal(size=(4, 5, 3)), axes=([1, 2], [2, 0]))
    yield Sample(rng.normal(size=()), rng.normal(size=2), axes=0)
    yield Sample(rng.normal(size=(2, 0)), rng.normal(size=(0, 3)), axes=1)
    yield Sample(rng.normal(size=(0, 2)), rng.normal(size=(2, 3)), axes=1)


@primitive(multilinear, overrides=(np.outer,), canonical=as_arrays)
def outer(a, b, *, out=None):
    """All products of an element of `a` with one of `b`, both flattened."""
    return np.outer(a, b)


@outer.def_vjp
def outer_vjp(primals, out):
    a, b = primals
    shape_a, shape_b = shape_of(a), shape_of(b)

    def outer_pullback_a(out_bar):
        a_bar = np.matmul(solid(out_bar), np.ravel(b))
        return a_bar if len(shape_a) == 1 else np.reshape(a_bar, shape_a)

    def outer_pullback_b(out_bar):
        b_bar = np.matmul(np.ravel(a), solid(out_bar))
        return b_bar if len(shape_b) == 1 else np.reshape(b_bar, shape_b)

    return outer_pullback_a, outer_pullback_b


@outer.def_batch
def outer_batch(args, batched):
    a, b = map(_flat, args, batched)
    return np.expand_dims(a, -1) * np.expand_dims(b, -2)


def _flat(x: Any, is_batched: bool) -> Any:
    """Return each example with its elements in one row."""
    shape = shape_of(x)
    return np.reshape(x, (*shape[:is_batched], prod(shape[is_batched:])))


@outer.def_samples
def outer_samples(rng):
    yield Sample(rng.normal(size=2), rng.normal(size=3))
    yield Sample(rng.normal(size=(2, 2)), rng.normal(size=(1, 3)))
    yield Sample(rng.normal(size=()), rng.normal(size=3))
    yield Sample(rng.normal(size=2), rng.normal(size=0))


@primitive(multilinear, overrides=(np.vdot,), canonical=as_arrays)
def vdot(a, b):
    """Sum of the products of the elements, those of `a` conjugated."""
    return np.vdot(a, b)


@vdot.def_vjp
def vdot_vjp(primals, out):
    a, b = primals
    shape_a, shape_b = shape_of(a), shape_of(b)

    def vdot_pullback_a(out_bar):
        return conj(out_bar * (b if shape_a == shape_b else np.reshape(b, shape_a)))

    def vdot_pullback_b(out_bar):
        return out_bar * conj(a if shape_a == shape_b else np.reshape(a, shape_b))

    return vdot_pullback_a, vdot_pullback_b


@vdot.def_batch
def vdot_batch(args, batched):
    return np.vecdot(*map(_flat, args, batched))


@vdot.def_samples
def vdot_samples(rng):
    yield Sample(rng.normal(size=3), rng.normal(size=3))
    yield Sample(rng.normal(size=(2, 3)), rng.normal(size=6))
    yield Sample(rng.normal(size=()), rng.normal(size=()))
    yield Sample(rng.normal(size=0), rng.normal(size=0))


@primitive(multilinear, overrides=(np.kron,), canonical=as_arrays)
def kron(a, b):
    """Kronecker product: a block of multiples of `b` for each element of `a`."""
    return np.kron(a, b)


@kron.def_vjp
def kron_vjp(primals, out):
    a, b = primals
    shape_a, shape_b = shape_of(a), shape_of(b)
    ndim = max(len(shape_a), len(shape_b))
    if ndim == 0:
        return multiply_pullbacks(a, b)
    full_a = (1,) * (ndim - len(shape_a)) + shape_a
    full_b = (1,) * (ndim - len(shape_b)) + shape_b
    # Axis i of the result runs over the pairs of axis i of `a` and axis i of `b`.
    split = tuple(size for pair in zip(full_a, full_b, strict=True) for size in pair)
    every = tuple(range(ndim))
    even, odd = tuple(range(0, 2 * ndim, 2)), tuple(range(1, 2 * ndim, 2))

    def kron_pullback_a(out_bar):
        blocks = np.reshape(out_bar, split)
        return np.reshape(contract(blocks, np.reshape(b, full_b), odd, every), shape_a)

    def kron_pullback_b(out_bar):
        blocks = np.reshape(out_bar, split)
        return np.reshape(contract(blocks, np.reshape(a, full_a), even, every), shape_b)

    return kron_pullback_a, kron_pullback_b


@kron.def_batch
def kron_batch(args, batched):
    a, b = args
    shape_a, shape_b = (shape_of(x)[own:] for x, own in zip(args, batched, strict=True))
    ndim = max(len(shape_a), len(shape_b))
    shape_a = (1,) * (ndim - len(shape_a)) + shape_a
    shape_b = (1,) * (ndim - len(shape_b)) + shape_b
    spread_a = [size for n in shape_a for size in (n, 1)]
    spread_b = [size for n in shape_b for size in (1, n)]
    made = np.reshape(a, (*shape_of(a)[: batched[0]], *spread_a)) * np.reshape(
        b, (*shape_of(b)[: batched[1]], *spread_b)
    )
    sizes = (n * m for n, m in zip(shape_a, shape_b, strict=True))
    return np.reshape(made, (shape_of(made)[0], *sizes))


@kron.def_samples
def kron_samples(rng):
    yield Sample(rng.normal(size=(2, 3)), rng.normal(size=(3, 2)))
    yield Sample(rng.normal(size=2), rng.normal(size=(2, 1, 2)))
    yield Sample(rng.normal(size=(2, 1, 2)), rng.normal(size=3))
    yield Sample(rng.normal(size=()), rng.normal(size=(2, 2)))
    yield Sample(rng.normal(size=()), rng.normal(size=()))
    yield Sample(rng.normal(size=(0, 2)), rng.normal(size=(2, 2)))


def cross_args(args: Any, params: Any) -> Any:
    """Spell `axis` out as the axes of the two arrays and of the result."""
    axis = params["axis"]
    if axis is not None:
        params = {"axisa": axis, "axisb": axis, "axisc": axis, "axis": None}
    return as_arrays(args, params)


@primitive(multilinear, overrides=(np.cross,), canonical=cross_args)
def cross(a, b, *, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """Cross product of vectors along an axis.

    As ``a x b . c = b x c . a = c x a . b``, a cotangent is a cross product too.
    """
    return np.cross(a, b, axisa, axisb, axisc)


@cross.def_vjp
def cross_vjp(primals, out, *, axisa, axisb, axisc, axis):
    a, b = primals
    shape_a, shape_b = shape_of(a), shape_of(b)
    flat = shape_a[axisa] == 2 and shape_b[axisb] == 2  # only the third component is returned

    def product(x, axis_x, y, axis_y, shape, axis):
        made = np.cross(_in_space(x, axis_x), _in_space(y, axis_y))
        # Back to the shape of the argument before its axis moves back.
        length = shape[axis]
        made = made[..., :length] if length == 2 else made
        moved = list(shape)
        del moved[axis]
        return np.moveaxis(fit(made, (*moved, length), dtype_of(made)), -1, axis)

    def cross_pullback_a(out_bar):
        if flat:
            out_bar = _upright(out_bar)
        return product(b, axisb, out_bar, -1 if flat else axisc, shape_a, axisa)

    def cross_pullback_b(out_bar):
        if flat:
            out_bar = _upright(out_bar)
        return product(out_bar, -1 if flat else axisc, a, axisa, shape_b, axisb)

    return cross_pullback_a, cross_pullback_b


def _in_space(x: Any, axis: int) -> Any:
    """Return `x` with its vectors along the last axis; those of the plane get a third component."""
    x = np.moveaxis(x, axis, -1)
    if shape_of(x)[-1] == 3:
        return x
    return np.concatenate([x, np.zeros((*shape_of(x)[:-1], 1), dtype_of(x))], -1)


def _upright(x: Any) -> Any:
    """Return the vectors along the third axis of these lengths."""
    x = np.expand_dims(x, -1)
    return np.concatenate([np.zeros((*shape_of(x)[:-1], 2), dtype_of(x)), x], -1)


@cross.def_batch
def cross_batch(args, batched, *, axisa, axisb, axisc, axis):
    n_a, n_b = map(ndim_of, args, batched)
    axisa, axisb, axisc = map(index, (axisa, axisb, axisc))
    a = np.moveaxis(args[0], shift(axisa, n_a) if batched[0] else axisa, -1)
    b = np.moveaxis(args[1], shift(axisb, n_b) if batched[1] else axisb, -1)
    flat = shape_of(a)[-1] == 2 and shape_of(b)[-1] == 2
    out = np.cross(*align((a, b), batched, (1, 1)))
    return out if flat else np.moveaxis(out, -1, shift(axisc, len(shape_of(out)) - 1))


@cross.def_samples
def cross_samples(rng):
    yield Sample(rng.normal(size=3), rng.normal(size=3))
    yield Sample(rng.normal(size=(2, 3)), rng.normal(size=3))
    yield Sample(rng.normal(size=(2, 1, 3)), rng.normal(size=(4, 3)))
    yield Sample(rng.normal(size=(3, 2)), rng.normal(size=(2, 3)), axisa=0, axisc=0)
    yield Sample(rng.normal(size=(3, 2, 1)), rng.normal(size=(3, 2, 4)), axis=0)
    yield Sample(rng.normal(size=(2, 3, 4)), rng.normal(size=(3, 2, 4)), -2, 0, 1)
    yield Sample(rng.normal(size=(0, 3)), rng.normal(size=(0, 3)))
