"""`matmul` and the other generalized ufuncs that are products: `vecdot`, `matvec`, `vecmat`.

All are linear in each array by itself, so the tangent is the product rule (`multilinear`), and the
cotangent of one array is a product of `out_bar` with the other. The rules are arranged so that it
comes out of BLAS with its axes in order: an array of its own, not a view to be copied. That of a
transpose is made as the transpose of a product, so that that of the array itself is in order too.

`vecdot` and `vecmat` conjugate their first array. That is linear too, over the real numbers, and
its transpose is by our convention a conjugation of the cotangent.

Under `vmap`, vectors with one matrix for all of them are a matrix themselves, and their products
one product of matrices.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from funcgrad.core.batch import align, ndim_of, shift
from funcgrad.core.foreign import PLAIN, argument
from funcgrad.core.level import TracerBase, concrete
from funcgrad.core.primitive import Primitive, Sample, register, store
from funcgrad.core.zero import dtype_of, fit, is_finite, shape_of
from funcgrad.rules.families import multilinear
from funcgrad.rules.spelling import as_array

__all__ = [
    "batched_matmul",
    "batched_vecdot",
    "conj",
    "contract",
    "matmul_pullbacks",
    "multiply_pullbacks",
    "solid",
    "vecdot",
]

# Multiplications in a product of matrices that take longer than to see which elements are zero.
_WORTH_A_LOOK = 200_000


def solid(x: Any) -> Any:
    """Return a copy of a broadcast array, such as `sum` pulls back: BLAS does not take one."""
    return x.copy() if type(x) is np.ndarray and 0 in x.strides else x


def conj(x: Any) -> Any:
    """Return the conjugate; a real array itself, where NumPy would copy it."""
    return np.conj(x) if dtype_of(x).kind == "c" else x


def rows(x: Any) -> Any:
    """Return `x` as a matrix, all axes but the last in one."""
    *leading, last = shape_of(x)
    return x if len(leading) == 1 else np.reshape(x, (prod(leading), last))


def rows_times(x: Any, matrix: Any) -> Any:
    """Return ``x @ matrix`` as one product of matrices, where NumPy makes many of a stack."""
    lead = shape_of(x)[:-1]
    if len(lead) <= 1:
        return np.matmul(x, matrix)
    return np.reshape(np.matmul(rows(x), matrix), (*lead, shape_of(matrix)[-1]))


def is_turned(x: Any) -> bool:
    """Tell whether the last two axes are swapped in memory, as those of a transpose are."""
    plain = x if type(x) is np.ndarray else concrete(x)
    if type(plain) is not np.ndarray:
        return False
    strides = plain.strides
    return bool(abs(strides[-2]) < abs(strides[-1]))


def turned_product(x1: Any, x2: Any, turned: bool) -> Any:
    """Return ``x1 @ x2``, with its last two axes swapped in memory if it is to be `turned`."""
    if not turned:
        return np.matmul(x1, x2)
    product = np.matmul(np.swapaxes(x2, -1, -2), np.swapaxes(x1, -1, -2))
    return np.swapaxes(product, -1, -2)


def contract(x: Any, y: Any, axes_x: Any, axes_y: Any, places: Any = None) -> Any:
    """Sum over pairs of axes; the others, of `x` and of `y`, go to these places of the result."""
    if places is not None:
        left, right = places
        order = left + right
        if order != tuple(range(len(order))):
            if right + left == tuple(range(len(order))):  # swapped, it needs no transposition
                return contract(y, x, axes_y, axes_x)
            inverse = tuple(sorted(range(len(order)), key=order.__getitem__))
            return np.transpose(np.tensordot(solid(x), solid(y), (axes_x, axes_y)), inverse)
    return np.tensordot(solid(x), solid(y), (axes_x, axes_y))


class Gufunc(Primitive):
    """A generalized ufunc of two arrays; a plain call of it runs no Python but the transform's.

    Its rule is written for a plain call, ``pullbacks(x1, x2)``. `axes`, `axis` and `keepdims` are
    undone around it.
    """

    def __init__(self, ufunc: Any):
        super().__init__(ufunc, name=ufunc.__name__)
        register(self, (ufunc,))
        multilinear(self)
        # The number of core axes of each argument and of the result; "(n?,k)" may have fewer.
        inputs, output = ufunc.signature.split("->")
        self.core = [part.count(",") + 1 for part in inputs[1:-1].split("),(")]
        self.core.append(0 if output == "()" else output.count(",") + 1)
        self.flexible = "?" in inputs

    def bind(self, *args: Any, **params: Any) -> Any:
        """Carry the operation out at the highest level among `args`."""
        x1, x2 = args
        trace = x1._trace if isinstance(x1, TracerBase) else None
        if isinstance(x2, TracerBase) and (trace is None or x2._trace.level > trace.level):
            trace = x2._trace
        if trace is None:
            return self.forward(x1, x2, **params)
        if type(x1) not in PLAIN or type(x2) not in PLAIN:
            args = argument(x1), argument(x2)
        return trace.process(self, args, params)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        x1, x2 = args
        if not kwargs and type(x1) in PLAIN and type(x2) in PLAIN:
            return self.bind(x1, x2)
        out = kwargs.pop("out", None)
        result = self.bind(as_array(x1), as_array(x2), **kwargs)
        return result if out is None else store(result, out)

    def def_pullbacks(self, pullbacks: Any) -> Any:
        """Declare ``pullbacks(x1, x2) -> (pullback1, pullback2)`` for a plain call."""

        def gufunc_vjp(primals, out, *, axes=None, axis=None, keepdims=False, **_):
            x1, x2 = primals
            if axes is None and axis is None and not keepdims:
                return pullbacks(x1, x2)
            return self._around(pullbacks, x1, x2, axes, axis, keepdims)

        self.def_vjp(gufunc_vjp)
        return pullbacks

    def _around(
        self, pullbacks: Any, x1: Any, x2: Any, axes: Any, axis: Any, keepdims: bool
    ) -> Any:
        core1, core2, core_out = self.core
        if self.flexible:
            core1, core2 = min(core1, len(shape_of(x1))), min(core2, len(shape_of(x2)))
            core_out = core1 + core2 - 2
        if axes is None:
            last = (-1 if axis is None else axis,)
            axes = [last, last, last if keepdims else ()]
        else:
            axes = [entry if isinstance(entry, tuple) else (entry,) for entry in (*axes, ())[:3]]
        at1, at2, at_out = axes
        x1 = np.moveaxis(x1, at1, range(-core1, 0))
        x2 = np.moveaxis(x2, at2, range(-core2, 0))

        def around(pullback, x, at, core):
            shape, dtype = shape_of(x), dtype_of(x)

            def gufunc_pullback(out_bar):
                if keepdims:
                    out_bar = np.squeeze(out_bar, at_out)
                else:
                    out_bar = np.moveaxis(out_bar, at_out, range(-core_out, 0))
                x_bar = fit(pullback(out_bar), shape, dtype)
                return np.moveaxis(x_bar, range(-core, 0), at)

            return gufunc_pullback

        pullback1, pullback2 = pullbacks(x1, x2)
        return around(pullback1, x1, at1, core1), around(pullback2, x2, at2, core2)

    def def_batched(self, product: Any) -> Any:
        """Declare ``product(x1, x2, batched, **params)`` of many examples, for a plain call."""

        def gufunc_batch(args, batched, *, axes=None, axis=None, keepdims=False, **params):
            x1, x2 = args
            n1, n2 = map(ndim_of, args, batched)
            core1, core2, core_out = self.core
            if self.flexible:
                core1, core2 = max(1, min(core1, n1)), max(1, min(core2, n2))
                core_out = core1 + core2 - 2
            if n1 < core1 or n2 < core2:
                self.forward(np.ones((1,) * n1), np.ones((1,) * n2))  # raises
            if axes is None and axis is None and not keepdims:
                return product(x1, x2, batched, **params)
            if axes is None:
                last = (-1 if axis is None else axis,)
                axes = [last, last, last if keepdims else ()]
            else:
                axes = [
                    entry if isinstance(entry, tuple) else (entry,) for entry in (*axes, ())[:3]
                ]
            at1, at2, at_out = axes
            x1 = np.moveaxis(x1, _among(at1, n1, batched[0]), range(-core1, 0))
            x2 = np.moveaxis(x2, _among(at2, n2, batched[1]), range(-core2, 0))
            out = product(x1, x2, batched, **params)
            if keepdims:
                out, core_out = np.expand_dims(out, -1), 1
            places = _among(at_out, len(shape_of(out)) - 1, True)
            return np.moveaxis(out, range(-core_out, 0), places) if core_out else out

        self.def_batch(gufunc_batch)
        return product


def _among(axes: tuple[int, ...], ndim: int, is_batched: bool) -> tuple[int, ...]:
    """Return where axes of one example are in `x`, that may hold many."""
    return shift(axes, ndim) if is_batched else axes


matmul = Gufunc(np.matmul)


@matmul.def_pullbacks
def matmul_pullbacks(x1, x2):
    n1, n2 = len(shape_of(x1)), len(shape_of(x2))
    if n1 == 2 and n2 == 2:
        turned1, turned2 = is_turned(x1), is_turned(x2)

        def matmul_pullback1(out_bar):
            return turned_product(solid(out_bar), x2.T, turned1)

        def matmul_pullback2(out_bar):
            return turned_product(x1.T, solid(out_bar), turned2)

    elif n1 == 1 and n2 == 1:
        return multiply_pullbacks(x1, x2)
    elif n2 == 1:

        def matmul_pullback1(out_bar):
            return np.expand_dims(out_bar, -1) * x2

        def matmul_pullback2(out_bar):
            # Of one matrix there is nothing to lay in a row, and nothing to record for it.
            return np.matmul(solid(out_bar) if n1 == 2 else np.ravel(out_bar), rows(x1))

    elif n1 == 1:

        def matmul_pullback1(out_bar):
            if n2 == 2:
                return np.matmul(x2, solid(out_bar))
            return contract(x2, out_bar, (*range(n2 - 2), n2 - 1), tuple(range(n2 - 1)))

        def matmul_pullback2(out_bar):
            return np.expand_dims(x1, -1) * np.expand_dims(out_bar, -2)

    else:
        # Where an argument is one matrix for all, the product sums over the stack as well: the
        # stack of its cotangents is never formed.
        turned1, turned2 = is_turned(x1), is_turned(x2)

        def matmul_pullback1(out_bar):
            if n1 == 2:
                summed = (*range(n2 - 2), n2 - 1)
                return contract(out_bar, x2, summed, summed)
            if n2 == 2:
                return rows_times(solid(out_bar), x2.T)
            return turned_product(solid(out_bar), np.swapaxes(x2, -1, -2), turned1)

        def matmul_pullback2(out_bar):
            if n2 == 2:
                return turned_product(rows(x1).T, rows(solid(out_bar)), turned2)
            return turned_product(np.swapaxes(x1, -1, -2), solid(out_bar), turned2)

    return matmul_pullback1, matmul_pullback2


def examples_times(examples, matrix, **params):
    """Multiply vectors by one matrix.

    A Jacobian is made of unit vectors, and of multiples of them after an elementwise operation:
    their products are multiples of rows of the matrix, if that is finite.
    """
    plain = type(examples) is type(matrix) is np.ndarray and not params
    if plain and matrix.ndim == 2 and len(examples) * matrix.size > _WORTH_A_LOOK:
        nonzero = np.not_equal(examples, 0)
        count = np.count_nonzero(nonzero)
        if count <= len(examples) and examples.dtype == matrix.dtype:
            columns = np.argmax(nonzero, axis=1)
            factors = examples[np.arange(len(examples)), columns, np.newaxis]
            if np.count_nonzero(factors) == count and is_finite(matrix):
                picked = np.take(matrix, columns, axis=0)
                return np.multiply(picked, factors, out=picked)
    return np.matmul(examples, matrix, **params)


@matmul.def_batched
def batched_matmul(x1, x2, batched, **params):
    """Multiply examples; `batched` says which argument has them along its first axis."""
    n1, n2 = ndim_of(x1, batched[0]), ndim_of(x2, batched[1])
    if not batched[1] and n2 <= 2:
        # One matrix, or vector, for all: all rows of all examples in one product.
        if n1 == 1:
            return examples_times(x1, x2, **params)
        out = np.matmul(rows(x1), x2, **params)
        return np.reshape(out, (*shape_of(x1)[:-1], *shape_of(out)[1:]))
    if not batched[0] and n2 == 1:
        if n1 == 1:
            return np.matmul(x2, x1, **params)
        out = examples_times(x2, rows(x1).T, **params)
        return np.reshape(out, (shape_of(out)[0], *shape_of(x1)[:-1]))
    if not batched[0] and n1 == 1:
        return np.matmul(x1, x2, **params)
    if n1 == 1 and n2 == 1:
        return np.vecdot(conj(x1), x2, **params)
    if n2 == 1:
        return np.matvec(*align((x1, x2), batched, (2, 1)), **params)
    if n1 == 1:
        x1, x2 = align((x1, x2), batched, (1, 2))
        return np.matvec(np.swapaxes(x2, -1, -2), x1, **params)
    return np.matmul(*align((x1, x2), batched, (2, 2)), **params)


@matmul.def_samples
def matmul_samples(rng):
    for shape1, shape2 in (
        ((2, 3), (3, 4)),
        ((3,), (3,)),
        ((3,), (3, 2)),
        ((2, 3), (3,)),
        ((3,), (2, 3, 4)),
        ((2, 4, 3), (3,)),
        ((5, 2, 3), (3, 2)),
        ((2, 3), (4, 2, 3, 1)),
        ((2, 1, 2, 3), (4, 3, 2)),
        ((0, 3), (3, 2)),
        ((2, 0), (0, 3)),
        ((2, 2, 0), (0, 3)),
        ((0,), (0,)),
        ((1, 1), (1, 1)),
    ):
        yield Sample(rng.normal(size=shape1), rng.normal(size=shape2))
    yield Sample(rng.normal(size=(3, 2)), rng.normal(size=(3, 4)), axes=[(1, 0), (0, 1), (1, 0)])
    yield Sample(rng.normal(size=3), rng.normal(size=(2, 3, 4)), axes=[(0,), (1, 0), (1,)])
    yield Sample(rng.normal(size=(2, 3)), [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    yield Sample([[1, 2], [3, 4]], rng.normal(size=(2, 3)))


vecdot = Gufunc(np.vecdot)


@vecdot.def_pullbacks
def vecdot_pullbacks(x1, x2):
    def vecdot_pullback1(out_bar):
        return conj(np.expand_dims(out_bar, -1) * x2)

    def vecdot_pullback2(out_bar):
        return np.expand_dims(out_bar, -1) * conj(x1)

    return vecdot_pullback1, vecdot_pullback2


@vecdot.def_batched
def batched_vecdot(x1, x2, batched, **params):
    """Multiply and sum the vectors of each example."""
    return np.vecdot(*align((x1, x2), batched, (1, 1)), **params)


@vecdot.def_samples
def vecdot_samples(rng):
    yield Sample(rng.normal(size=3), rng.normal(size=3))
    yield Sample(rng.normal(size=(2, 3)), rng.normal(size=3))
    yield Sample(rng.normal(size=(2, 1, 3)), rng.normal(size=(4, 3)))
    yield Sample(rng.normal(size=(3, 2)), rng.normal(size=(3, 1)), axis=0)
    yield Sample(rng.normal(size=(3, 2)), rng.normal(size=(3, 2)), axis=-2, keepdims=True)
    yield Sample(rng.normal(size=(3, 2)), rng.normal(size=(2, 3)), keepdims=True, axes=[0, 1, 1])
    yield Sample(rng.normal(size=(3, 2)), rng.normal(size=(2, 3)), axes=[0, 1])
    yield Sample(rng.normal(size=(2, 0)), rng.normal(size=(2, 0)))


matvec = Gufunc(np.matvec)


@matvec.def_pullbacks
def matvec_pullbacks(x1, x2):
    n1, n2 = len(shape_of(x1)), len(shape_of(x2))

    def matvec_pullback1(out_bar):
        if n1 == 2:
            return np.matmul(rows(_vectors(out_bar)).T, rows(_vectors(x2)))
        return np.expand_dims(out_bar, -1) * np.expand_dims(x2, -2)

    def matvec_pullback2(out_bar):
        if n2 == 1:
            return np.matmul(np.ravel(out_bar), rows(x1))
        return np.squeeze(np.matmul(np.expand_dims(out_bar, -2), x1), -2)

    return matvec_pullback1, matvec_pullback2


@matvec.def_batched
def batched_matvec(x1, x2, batched, **params):
    """Multiply the vectors of each example by its matrices, or by one for all."""
    n1, n2 = ndim_of(x1, batched[0]), ndim_of(x2, batched[1])
    if not batched[1] and n2 == 1:
        return batched_matmul(x1, x2, batched, **params)
    if not batched[0] and n1 == 2:
        return batched_matmul(x2, x1.T, (True, False), **params)
    return np.matvec(*align((x1, x2), batched, (2, 1)), **params)


@matvec.def_samples
def matvec_samples(rng):
    yield Sample(rng.normal(size=(2, 3)), rng.normal(size=3))
    yield Sample(rng.normal(size=(2, 3)), rng.normal(size=(4, 3)))
    yield Sample(rng.normal(size=(4, 2, 3)), rng.normal(size=3))
    yield Sample(rng.normal(size=(4, 1, 2, 3)), rng.normal(size=(5, 3)))
    yield Sample(rng.normal(size=(3, 2)), rng.normal(size=(3, 4)), axes=[(1, 0), 0, 0])
    yield Sample(rng.normal(size=(2, 0)), rng.normal(size=(3, 0)))


vecmat = Gufunc(np.vecmat)


@vecmat.def_pullbacks
def vecmat_pullbacks(x1, x2):
    n2 = len(shape_of(x2))

    def vecmat_pullback1(out_bar):
        if n2 == 2:
            return conj(np.matmul(solid(out_bar), x2.T))
        return conj(np.squeeze(np.matmul(x2, np.expand_dims(out_bar, -1)), -1))

    def vecmat_pullback2(out_bar):
        if n2 == 2:
            return np.matmul(rows(_vectors(conj(x1))).T, rows(_vectors(out_bar)))
        return np.expand_dims(conj(x1), -1) * np.expand_dims(out_bar, -2)

    return vecmat_pullback1, vecmat_pullback2


@vecmat.def_batched
def batched_vecmat(x1, x2, batched, **params):
    """Multiply the vectors of each example by its matrices, or by one for all."""
    if not batched[1] and len(shape_of(x2)) == 2:
        return batched_matmul(conj(x1), x2, batched, **params)
    return np.vecmat(*align((x1, x2), batched, (1, 2)), **params)


@vecmat.def_samples
def vecmat_samples(rng):
    yield Sample(rng.normal(size=3), rng.normal(size=(3, 2)))
    yield Sample(rng.normal(size=(4, 3)), rng.normal(size=(3, 2)))
    yield Sample(rng.normal(size=3), rng.normal(size=(4, 3, 2)))
    yield Sample(rng.normal(size=(4, 1, 3)), rng.normal(size=(5, 3, 2)))
    yield Sample(rng.normal(size=(3, 4)), rng.normal(size=(2, 3)), axes=[0, (1, 0), 0])
    yield Sample(rng.normal(size=(2, 0)), rng.normal(size=(0, 3)))


def _vectors(x: Any) -> Any:
    """Return `x` with at least two axes."""
    return x if len(shape_of(x)) > 1 else np.expand_dims(x, 0)


def multiply_pullbacks(a, b):
    """Pullbacks of a product of two vectors, or of any array with a scalar."""

    def multiply_pullback_a(out_bar):
        return out_bar * b

    def multiply_pullback_b(out_bar):
        return out_bar * a

    return multiply_pullback_a, multiply_pullback_b
