"""Reductions: sums, means, products and extremes over axes.

One primitive a function, of which the array arguments are the array, the mask and the starting
value (`funcgrad.rules.reducing`). It answers for both of NumPy's spellings, ``np.sum(a)`` and
``np.add.reduce(a)``, which differ in the order of their arguments and in the default of `axis`.

Equal extremes share the cotangent evenly. A product is differentiated through the products of
the elements before and behind each, which need no division, so zeros are as good as other
numbers. Variances are in `funcgrad.rules.moments`, reductions that ignore NaN in
`funcgrad.rules.nanreductions`, other ufuncs in `funcgrad.rules.folds`.
"""

from __future__ import annotations

import numpy as np

from funcgrad.core.level import TracerBase
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, selected, shape_of, zero_wins
from funcgrad.rules.cumulative import exclusive_product, is_tame
from funcgrad.rules.reducing import (
    NOT_GIVEN,
    axes_of,
    batch_reduction,
    cast,
    count,
    finish,
    given,
    kept_shape,
    lift,
    parts,
    plus,
    ratio,
    select,
    split,
    stretch,
    unsplit,
)

__all__ = [
    "axis_samples",
    "mask_samples",
    "reduce_fmax",
    "reduce_fmin",
    "reduce_mean",
    "reduce_prod",
    "reduce_samples",
    "reduce_sum",
    "spell",
    "typed_samples",
]

_ndarray = np.ndarray
_FLOAT = np.dtype(np.float64)


def spell(made, *functions, ufunc=None, typed=True):
    """Let `made` answer for NumPy functions, and for the `reduce` of a ufunc.

    The functions have the signature of ``np.sum`` or, if not `typed`, that of ``np.max``.
    """
    bind = made.bind
    batch_reduction(made)

    def function(a, axis=None, dtype=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True):
        if where is True and initial is NOT_GIVEN and out is None and isinstance(a, TracerBase):
            params = {"axis": axis, "dtype": dtype, "keepdims": keepdims}
            return a._trace.process(made, (a,), params)  # as `bind` would find out
        result = bind(*given(a, where, initial), axis=axis, dtype=dtype, keepdims=keepdims)
        return finish(result, out)

    def untyped(a, axis=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True):
        return finish(bind(*given(a, where, initial), axis=axis, keepdims=keepdims), out)

    def method(array, axis=0, dtype=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True):
        if typed:
            return function(array, axis, dtype, out, keepdims, initial, where)
        return untyped(cast(array, dtype), axis, out, keepdims, initial, where)

    made.def_call(*functions)(function if typed else untyped)
    if ufunc is not None:
        made.def_call(ufunc.reduce)(method)


def axis_samples(rng):
    """Yield calls with every form of `axis`, and `keepdims`."""
    a = rng.normal(size=(2, 3, 2))
    for axis in (None, 0, 1, -1, (0, -1), (2, 0), (), (0, 1, 2)):
        yield Sample(a, axis=axis)
    yield Sample(a, axis=1, keepdims=True)
    yield Sample(a, keepdims=True)
    yield Sample(rng.normal(size=(3, 1, 1)), axis=(1, 2))
    yield Sample(np.float64(1.5))
    yield Sample(np.array(1.5), keepdims=True)
    yield Sample(rng.normal(size=(0, 3)), axis=1)


def mask_samples(rng):
    """Yield calls with masks, of the full shape and broadcast."""
    a = rng.normal(size=(3, 4))
    mask = np.array(
        [[True, False, True, True], [False, True, True, False], [True, True, False, False]]
    )
    yield Sample(a, where=mask)
    yield Sample(a, axis=0, where=mask)
    yield Sample(a, axis=1, keepdims=True, where=mask)
    yield Sample(a, axis=1, where=mask[0])
    yield Sample(a, axis=(0, 1), where=mask[:, :1])


def reduce_samples(ufunc):
    """Make the samples of a function like ``np.sum``, and of the `reduce` of a ufunc."""

    def samples(rng):
        yield from axis_samples(rng)
        for sample in mask_samples(rng):
            yield Sample(*sample.args, **sample.kwargs, initial=-0.5)
        a = rng.normal(size=(3, 2))
        yield Sample(a, initial=2.0)
        yield Sample(a, axis=1, initial=np.float64(0.3), argnames="initial")
        yield Sample(a, 0, initial=-3.0)
        yield Sample(rng.normal(size=(0, 2)), axis=0, initial=-0.5)
        if ufunc is not None:
            yield Sample(a, fun=ufunc.reduce)
            yield Sample(a, -1, None, None, True, fun=ufunc.reduce)
            yield Sample(a, fun=ufunc.reduce, axis=(0, 1), initial=-0.5)

    return samples


def typed_samples(rng):
    """Yield calls with `dtype`, and without elements, for functions that have an identity."""
    a = rng.normal(size=(3, 2))
    yield Sample(a, 1, np.float64)
    yield Sample(a, dtype=np.complex128)
    yield Sample(rng.normal(size=(0, 3)), axis=0)
    yield Sample(rng.normal(size=(0, 3)))
    yield from mask_samples(rng)


# Sums


@primitive()
def reduce_sum(a, where=True, initial=NOT_GIVEN, *, axis, dtype, keepdims):
    """Add up over `axis`."""
    if where is True and initial is NOT_GIVEN and type(a) is _ndarray:
        return np.add.reduce(a, axis, dtype, keepdims=keepdims)  # np.sum, without its wrapping
    return np.sum(a, axis, dtype, None, keepdims, initial, where)


@reduce_sum.def_jvp
def reduce_sum_jvp(primals, tangents, out, *, axis, dtype, keepdims):
    a_dot = tangents[0]
    if a_dot is not None:
        a_dot = reduce_sum.bind(a_dot, *primals[1:2], axis=axis, dtype=dtype, keepdims=keepdims)
    return a_dot if len(primals) < 3 else plus(a_dot, tangents[2])


@reduce_sum.def_vjp
def reduce_sum_vjp(primals, out, *, axis, dtype, keepdims):
    shape = shape_of(primals[0])  # the residual is the shape, not the array
    kept = kept_shape(shape, axis, keepdims)

    def reduce_sum_pullback_plain(out_bar):
        return stretch(out_bar, kept, shape)

    if len(primals) == 1:
        return reduce_sum_pullback_plain
    where = primals[1]

    def reduce_sum_pullback(out_bar):
        return select(where, stretch(out_bar, kept, shape))

    def reduce_sum_pullback_initial(out_bar):
        return np.sum(out_bar)

    return (reduce_sum_pullback, None, reduce_sum_pullback_initial)[: len(primals)]


spell(reduce_sum, np.sum, ufunc=np.add)


@reduce_sum.def_samples
def reduce_sum_samples(rng):
    yield from reduce_samples(np.add)(rng)
    yield from typed_samples(rng)


@primitive()
def reduce_mean(a, where=True, *, axis, dtype, keepdims):
    """Average over `axis`."""
    if where is True and axis is None and dtype is None and not keepdims and type(a) is _ndarray:
        size = a.size
        if size and a.dtype is _FLOAT:  # what np.mean does, in half the time
            return np.add.reduce(a, None) / size
    return np.mean(a, axis, dtype, None, keepdims, where=where)


@reduce_mean.def_jvp
def reduce_mean_jvp(primals, tangents, out, *, axis, dtype, keepdims):
    # Not np.mean of the tangent: it would warn of an empty slice once more.
    a, where, _ = parts(primals)
    number = count(where, shape_of(a), axis)
    wide = np.float32 if dtype_of(out) == np.float16 else dtype
    total = np.sum(tangents[0], axis=axis, dtype=wide, keepdims=True, where=where)
    return np.reshape(total / number, shape_of(out))


@reduce_mean.def_vjp
def reduce_mean_vjp(primals, out, *, axis, dtype, keepdims):
    a, where, _ = parts(primals)
    shape = shape_of(a)
    kept = kept_shape(shape, axis, keepdims)
    number = count(where, shape, axis)

    def reduce_mean_pullback(out_bar):
        if where is True:
            return stretch(ratio(out_bar, number), kept, shape)
        share = np.where(where, ratio(lift(out_bar, kept), number), 0)
        return np.broadcast_to(share, shape)

    return reduce_mean_pullback if len(primals) == 1 else (reduce_mean_pullback, None)


batch_reduction(reduce_mean)


@reduce_mean.def_call(np.mean)
def _mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=True):
    result = reduce_mean.bind(
        *given(a, where, NOT_GIVEN), axis=axis, dtype=dtype, keepdims=keepdims
    )
    return finish(result, out)


@reduce_mean.def_samples
def reduce_mean_samples(rng):
    yield from axis_samples(rng)
    yield from mask_samples(rng)
    a = rng.normal(size=(3, 2))
    yield Sample(a, 1, np.float64)
    yield Sample(a, dtype=np.complex128)


# Products


@primitive()
def reduce_prod(a, where=True, initial=NOT_GIVEN, *, axis, dtype, keepdims):
    """Multiply over `axis`."""
    return np.prod(a, axis, dtype, None, keepdims, initial, where)


def _other_factors(a, where, axis, dtype):
    """Return, for each element, the product of the elements that it is multiplied with."""
    shape = shape_of(a)
    axes = axes_of(axis, len(shape))
    a = cast(a, dtype)
    lines = split(a if where is True else np.where(where, a, 1), axes)
    last = len(shape_of(lines)) - 1
    others = exclusive_product(lines, last, False) * exclusive_product(lines, last, True)
    return unsplit(others, axes, shape)


@reduce_prod.def_jvp
def reduce_prod_jvp(primals, tangents, out, *, axis, dtype, keepdims):
    a, where, initial = parts(primals)
    a_dot = tangents[0]
    out_dot = None
    if a_dot is not None:
        product = a_dot * _other_factors(a, where, axis, dtype)
        product = select(where, zero_wins(product, a_dot))
        out_dot = np.sum(product, axis=axis, keepdims=keepdims)
        if initial is not None:
            out_dot = out_dot * initial
    if len(tangents) > 2 and tangents[2] is not None:
        rest = np.prod(a, axis=axis, dtype=dtype, keepdims=keepdims, where=where)
        out_dot = plus(out_dot, zero_wins(tangents[2] * rest, tangents[2]))
    return out_dot


@reduce_prod.def_vjp
def reduce_prod_vjp(primals, out, *, axis, dtype, keepdims):
    a, where, initial = parts(primals)
    kept = kept_shape(shape_of(a), axis, keepdims)
    # Then a quotient is as good, and takes a quarter of the time.
    tame = len(primals) == 1 and dtype is None and dtype_of(a).kind == "f" and is_tame(a, out)

    def reduce_prod_pullback(out_bar):
        if tame:
            return lift(out_bar * out, kept) / a
        t = lift(out_bar if initial is None else out_bar * initial, kept)
        return select(where, zero_wins(t * _other_factors(a, where, axis, dtype), t))

    def reduce_prod_pullback_initial(out_bar):
        rest = np.prod(a, axis=axis, dtype=dtype, keepdims=keepdims, where=where)
        return np.sum(zero_wins(out_bar * rest, out_bar))

    return (reduce_prod_pullback, None, reduce_prod_pullback_initial)[: len(primals)]


spell(reduce_prod, np.prod, ufunc=np.multiply)


@reduce_prod.def_samples
def reduce_prod_samples(rng):
    yield from reduce_samples(np.multiply)(rng)
    yield from typed_samples(rng)
    yield Sample(np.array([2.0, 3.0, 0.0, 0.0]))
    yield Sample(np.array([[2.0, 0.0], [0.0, 3.0]]), axis=1)


# Extremes


def _share_vjp(primals, out, axis, keepdims, hits):
    """Give the cotangent in equal parts to whatever equals `out`, the starting value included."""
    a, where, initial = parts(primals)
    shape, dtype = shape_of(a), dtype_of(out)
    kept = kept_shape(shape, axis, keepdims)
    out = lift(out, kept)
    hit, number, start = _ties(a, where, initial, out, axis, hits)

    def extreme_pullback(out_bar):
        share = cast(ratio(lift(out_bar, kept), number), dtype)
        return selected(hit, share)

    def extreme_pullback_initial(out_bar):
        return np.sum(np.where(start, ratio(lift(out_bar, kept), number), 0))

    return (extreme_pullback, None, extreme_pullback_initial)[: len(primals)]


def _share_jvp(primals, tangents, out, axis, keepdims, hits):
    a, where, initial = parts(primals)
    lifted = lift(out, kept_shape(shape_of(a), axis, keepdims))
    hit, number, start = _ties(a, where, initial, lifted, axis, hits)
    total = None
    if tangents[0] is not None:
        dtype = np.float32 if dtype_of(a) == np.float16 else None
        total = np.sum(np.where(hit, tangents[0], 0), axis=axis, dtype=dtype, keepdims=True)
    if len(tangents) > 2 and tangents[2] is not None:
        total = plus(total, np.where(start, tangents[2], 0))
    return np.reshape(total / number, shape_of(out))


def _ties(a, where, initial, out, axis, hits):
    """Return which elements equal the result, how many in all, and if the starting value does."""
    hit = hits(a, out)
    if where is not True:
        hit = np.logical_and(hit, where)
    # Counted as integers: 70000 equal numbers in float16 are too many for it.
    number = (
        np.count_nonzero(hit)
        if axis is None and type(hit) is _ndarray
        else np.sum(hit, axis=axis, dtype=np.intp, keepdims=True)
    )
    if initial is None:
        return hit, number, None
    start = hits(cast(initial, dtype_of(out)), out)
    return hit, number + start, start


def _hits_or_nan(a, out):
    return np.equal(a, out) | np.isnan(a)  # a NaN anywhere is the result


def _hits_or_all_nan(a, out):
    return np.equal(a, out) | (np.isnan(a) & np.isnan(out))  # NaN is the result of nothing else


def _declare_extreme(ufunc, hits, *functions):
    reduce = functions[0] if functions else ufunc.reduce

    def extreme(a, where=True, initial=NOT_GIVEN, *, axis, keepdims):
        if where is True and initial is NOT_GIVEN and type(a) is _ndarray:
            return ufunc.reduce(a, axis, None, None, keepdims)
        return reduce(a, axis=axis, keepdims=keepdims, initial=initial, where=where)

    extreme.__doc__ = f"Reduce with `{ufunc.__name__}` over `axis`."
    made = primitive(name=f"reduce_{ufunc.__name__}")(extreme)
    spell(made, *functions, ufunc=ufunc, typed=False)

    @made.def_vjp
    def extreme_vjp(primals, out, *, axis, keepdims):
        return _share_vjp(primals, out, axis, keepdims, hits)

    @made.def_jvp
    def extreme_jvp(primals, tangents, out, *, axis, keepdims):
        return _share_jvp(primals, tangents, out, axis, keepdims, hits)

    @made.def_samples
    def extreme_samples(rng):
        yield from reduce_samples(ufunc)(rng)
        yield Sample(np.array([[2.0, 7.0, 7.0], [1.0, 1.0, 1.0]]), axis=1, kinks=True)
        yield Sample(np.array([2.0, np.nan, 7.0]), kinks=True)
        yield Sample(np.array([-np.inf, -np.inf]), kinks=True)

    return made


reduce_maximum = _declare_extreme(np.maximum, _hits_or_nan, np.max, np.amax)
reduce_minimum = _declare_extreme(np.minimum, _hits_or_nan, np.min, np.amin)
reduce_fmax = _declare_extreme(np.fmax, _hits_or_all_nan)
reduce_fmin = _declare_extreme(np.fmin, _hits_or_all_nan)
