"""``ufunc.reduce``, ``accumulate`` and ``reduceat`` of ufuncs in general.

A reduction is a fold, ``r[k] = f(r[k - 1], a[k])``. With the slopes ``g`` and ``h`` of `f` in its
two arguments, a change of ``a[k]`` reaches the result by ``h[k]`` and the ``g`` of all later steps:
their running product from the end. Both slopes come from the elementwise rules, so that every ufunc
that has those can also be folded. For `logaddexp` and `hypot`, of which the order does not matter,
there is a closed form.
"""

from __future__ import annotations

import numpy as np

from funcgrad.core.batch import along
from funcgrad.core.dispatch import discrete
from funcgrad.core.elementwise import Elementwise
from funcgrad.core.primitive import FUNCTIONS, UFUNCS, Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of, zero_wins
from funcgrad.errors import MissingRuleError, user_line
from funcgrad.rules import comparing, elementwise
from funcgrad.rules.cumulative import affine_scan, at_start, exclusive_product, running, shift
from funcgrad.rules.reducing import (
    NOT_GIVEN,
    axes_of,
    batch_reduction,
    cast,
    finish,
    given,
    kept_shape,
    lift,
    parts,
    select,
)
from funcgrad.rules.reductions import mask_samples, reduce_samples, spell

__all__: list[str] = []

_DECLARERS = (comparing, elementwise)  # of the ufuncs, which must be there before this module looks

# A reduction is differentiated by weight: a number for each element, and for the starting value.


def _rules_by_weight(made, weights):
    """Declare the rules, given ``weights(primals, out, axis, keepdims)`` of both."""

    @made.def_jvp
    def weighted_jvp(primals, tangents, out, *, axis, keepdims):
        of_a, of_initial = weights(primals, out, axis, keepdims)
        a_dot, _, initial_dot = parts(tangents)
        out_dot = 0
        if a_dot is not None:
            out_dot = np.sum(zero_wins(of_a * a_dot, a_dot), axis=axis, keepdims=True)
        if initial_dot is not None:
            out_dot = out_dot + zero_wins(of_initial * initial_dot, initial_dot)
        return np.reshape(out_dot, shape_of(out))

    @made.def_vjp
    def weighted_vjp(primals, out, *, axis, keepdims):
        kept = kept_shape(shape_of(primals[0]), axis, keepdims)

        def weighted_pullback(out_bar):
            t = lift(out_bar, kept)
            return zero_wins(t * weights(primals, out, axis, keepdims)[0], t)

        def weighted_pullback_initial(out_bar):
            t = lift(out_bar, kept)
            return np.sum(zero_wins(t * weights(primals, out, axis, keepdims)[1], t))

        return (weighted_pullback, None, weighted_pullback_initial)[: len(primals)]


# In closed form


def _declare_weighted(ufunc, weight):
    """Declare ``ufunc.reduce``, given ``weight(x, out, number)``, see below."""

    def reduction(a, where=True, initial=NOT_GIVEN, *, axis, keepdims):
        return ufunc.reduce(a, axis=axis, keepdims=keepdims, initial=initial, where=where)

    reduction.__doc__ = f"Reduce with `{ufunc.__name__}` over `axis`."
    made = primitive(name=f"reduce_{ufunc.__name__}")(reduction)
    spell(made, ufunc=ufunc, typed=False)

    def weights(primals, out, axis, keepdims):
        a, where, initial = parts(primals)
        out = lift(out, kept_shape(shape_of(a), axis, keepdims))
        number = select(where, np.equal(a, out))
        number = np.sum(number, axis=axis, dtype=np.intp, keepdims=True)
        if initial is not None:
            number = number + np.equal(initial, out)
        of_initial = None if initial is None else weight(initial, out, number)
        return select(where, weight(a, out, number)), of_initial

    _rules_by_weight(made, weights)

    @made.def_samples
    def weighted_samples(rng):
        for sample in reduce_samples(ufunc)(rng):
            axis = {} if "axis" in sample.kwargs or len(sample.args) > 1 else {"axis": None}
            yield Sample(*sample.args, fun=ufunc.reduce, **{**axis, **sample.kwargs})
        for sample in mask_samples(rng):
            yield Sample(*sample.args, fun=ufunc.reduce, **sample.kwargs)
        yield Sample(np.array([-np.inf, 0.5, 2.0]), fun=ufunc.reduce, kinks=True)
        yield Sample(np.array([-np.inf, -np.inf]), fun=ufunc.reduce, kinks=True)
        yield Sample(np.zeros(3), fun=ufunc.reduce, kinks=True)


def _declare_logarithmic(ufunc, exp):
    def weight(x, out, number):
        # Of infinite terms those share evenly that equal the result.
        infinite = np.isinf(out)
        share = np.where(np.equal(x, out), 1 / number, 0)
        return np.where(infinite, share, exp(x - np.where(infinite, 0, out)))

    _declare_weighted(ufunc, weight)


def _hypot_weight(x, out, number):
    return x / np.where(np.equal(out, 0), np.inf, out)


_declare_logarithmic(np.logaddexp, np.exp)
_declare_logarithmic(np.logaddexp2, np.exp2)
_declare_weighted(np.hypot, _hypot_weight)

# Any other


def _slope(made, index, x, y, out):
    """Return the derivative of an elementwise function in argument `index`."""
    keep, product = (made.keep0, made.pull0) if index == 0 else (made.keep1, made.pull1)
    one = np.ones(shape_of(out), dtype_of(out))
    if product is None:
        return one * 0  # steps are flat
    values = {"x": x, "y": y, "out": out, None: None}
    return product(one, values[keep] if keep in values else keep(x, y, out))


def _slopes(made, a, out, axis):
    """Return `g` and `h` for each step; the first step takes the element itself."""
    before = shift.bind(out, axis=axis, step=1, fill=1)
    first = at_start(shape_of(a), axis)
    g, h = (_slope(made, index, before, a, out) for index in (0, 1))
    return np.where(first, 0, g), np.where(first, 1, h)


def _declare_accumulate(ufunc, elementary):
    def accumulation(a, *, axis):
        return ufunc.accumulate(a, axis)

    accumulation.__doc__ = f"Accumulate with `{ufunc.__name__}` along `axis`."
    made = primitive(name=f"{ufunc.__name__}_accumulate")(accumulation)

    @made.def_jvp
    def accumulation_jvp(primals, tangents, out, *, axis):
        (a,), (a_dot,) = primals, tangents
        g, h = _slopes(elementary, a, out, axis)
        return affine_scan.bind(zero_wins(h * a_dot, a_dot), g, axis=axis, reverse=False)

    @made.def_vjp
    def accumulation_vjp(primals, out, *, axis):
        (a,) = primals

        def accumulation_pullback(out_bar):
            g, h = _slopes(elementary, a, out, axis)
            g_next = shift.bind(g, axis=axis, step=-1, fill=0)
            t = affine_scan.bind(out_bar, g_next, axis=axis, reverse=True)
            return zero_wins(t * h, t)

        return accumulation_pullback

    along(made)

    @made.def_call(ufunc.accumulate)
    def accumulate(array, axis=0, dtype=None, out=None):
        axis = running(ufunc, array, axis)
        return finish(made.bind(cast(array, dtype), axis=axis), out)

    @made.def_samples
    def accumulation_samples(rng):
        a = _in_domain(rng, elementary, (3, 4))
        yield Sample(a)
        yield Sample(a.T, 1)
        yield Sample(a[:, 0], axis=-1)
        yield Sample(a[:, :0])

    return made


def _declare_reduce(ufunc, elementary, accumulate):
    def reduction(a, where=True, initial=None, *, axis, keepdims):
        return ufunc.reduce(a, axis, keepdims=keepdims, initial=initial, where=where)

    reduction.__doc__ = f"Reduce with `{ufunc.__name__}` over `axis`."
    made = primitive(name=f"reduce_{ufunc.__name__}")(reduction)

    def weights(primals, out, axis, keepdims):
        a, where, initial = parts(primals)
        if axis == ():
            return np.ones(shape_of(out), dtype_of(out)), None
        (place,) = axes_of(axis, len(shape_of(a)))
        if where is not True:
            a = np.where(where, a, _NEUTRAL[ufunc])
        if initial is not None:
            shape = tuple(1 if i == place else n for i, n in enumerate(shape_of(a)))
            start = np.broadcast_to(cast(initial, dtype_of(out)), shape)
            a = np.concatenate([start, cast(a, dtype_of(out))], axis=place)
        g, h = _slopes(elementary, a, accumulate.bind(a, axis=place), place)
        slope = h * exclusive_product(g, place, True)
        if initial is None:
            return select(where, slope), None
        before = (slice(None),) * place
        return select(where, slope[(*before, slice(1, None))]), slope[(*before, slice(None, 1))]

    _rules_by_weight(made, weights)
    batch_reduction(made)

    @made.def_call(ufunc.reduce)
    def reduce(array, axis=0, dtype=None, out=None, keepdims=False, initial=NOT_GIVEN, where=True):
        array = cast(array, dtype)
        args = given(array, where, NOT_GIVEN if initial is None else initial)
        if where is not True and ufunc not in _NEUTRAL:
            start = 1 if len(args) == 3 else NOT_GIVEN
            ufunc.reduce(np.ones(shape_of(array)), axis, initial=start, where=where)  # may raise
            raise MissingRuleError(
                f"numpy.{ufunc.__name__}.reduce with where= has no rule for traced values",
                where=user_line(),
                fix="select the elements first: a[mask]",
            )
        if axis == () and len(args) == 3:  # no fold, but one step
            start = cast(args[2], dtype_of(array))
            return finish(
                ufunc(start, array)
                if where is True
                else np.where(where, ufunc(start, array), start),
                out,
            )
        return finish(made.bind(*args, axis=axis, keepdims=keepdims), out)

    @made.def_samples
    def reduction_samples(rng):
        a = _in_domain(rng, elementary, (3, 4))
        yield Sample(a)
        yield Sample(a.T, 1)
        yield Sample(a.T, -1, keepdims=True)
        yield Sample(a, axis=())
        yield Sample(a[1:], axis=(), initial=a[0, 0], argnames="initial")
        yield Sample(a[:1])
        yield Sample(a[:, :0])
        yield Sample(a[1:], initial=a[0, 0], argnames="initial")
        if ufunc in _NEUTRAL:
            yield Sample(a[1:], initial=a[0, 0], where=a[1:] > 1.0)


# x f neutral == x: stands in for what a mask leaves out.
_NEUTRAL = {np.subtract: 0, np.true_divide: 1, np.float_power: 1}

# On machines with AVX-512, NumPy's values of these reductions of contiguous arrays are wrong (of
# [2, 3, 2], power.reduce makes 4, not (2 ** 3) ** 2). There is no derivative to such a value.
_MISCOMPUTED = {np.power, np.arctan2}


def _in_domain(rng, elementary, shape):
    """Draw an array of which the first row is in the domain of the first argument."""
    domain = elementary.domain
    x, y = domain if isinstance(domain[0], tuple) else (domain, domain)
    a = rng.uniform(*y, size=shape)
    a[0] = rng.uniform(*x, size=shape[1:])
    return a


# reduceat


@primitive()
def segment_sum(a, *, starts, stops, axis):
    """Add up each piece of `a` from a start to a stop."""
    return np.add.reduceat(a, starts, axis)


@primitive()
def segment_spread(t, *, starts, stops, axis, size):
    """Give each element of `t` to all places of its piece: the transpose of `segment_sum`."""
    lengths = np.subtract(stops, starts)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    places = np.arange(len(owners)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    places += np.repeat(starts, lengths)
    moved = np.moveaxis(t, axis, 0)
    spread = np.zeros((size, *moved.shape[1:]), t.dtype)
    np.add.at(spread, places, moved[owners])
    return np.moveaxis(spread, 0, axis)


along(segment_sum)
along(segment_spread)


@segment_sum.def_jvp
def segment_sum_jvp(primals, tangents, out, **params):
    return segment_sum.bind(tangents[0], **params)


@segment_sum.def_vjp
def segment_sum_vjp(primals, out, *, starts, stops, axis):
    size = shape_of(primals[0])[axis]

    def segment_sum_pullback(out_bar):
        return segment_spread.bind(out_bar, starts=starts, stops=stops, axis=axis, size=size)

    return segment_sum_pullback


@segment_spread.def_jvp
def segment_spread_jvp(primals, tangents, out, **params):
    return segment_spread.bind(tangents[0], **params)


@segment_spread.def_vjp
def segment_spread_vjp(primals, out, *, starts, stops, axis, size):
    def segment_spread_pullback(out_bar):
        return segment_sum.bind(out_bar, starts=starts, stops=stops, axis=axis)

    return segment_spread_pullback


def _pieces(ufunc, array, indices, axis):
    """Return `axis` from 0, and the starts and stops of the pieces that `reduceat` reduces."""
    shape = shape_of(array)
    axis = running(ufunc, array, axis)
    starts = np.array(indices)
    if starts.ndim != 1 or starts.size == 0 or starts.min() < 0 or starts.max() >= shape[axis]:
        ufunc.reduceat(np.ones(shape), indices, axis)  # raises, or has nothing to do
    stops = np.append(starts[1:], shape[axis])
    return axis, starts, np.maximum(stops, starts + 1)


@segment_sum.def_call(np.add.reduceat)
def _add_reduceat(array, indices, axis=0, dtype=None, out=None):
    axis, starts, stops = _pieces(np.add, array, indices, axis)
    result = segment_sum.bind(cast(array, dtype), starts=starts, stops=stops, axis=axis)
    return finish(result, out)


@segment_sum.def_samples
def segment_sum_samples(rng):
    a = rng.normal(size=(6, 2))
    yield Sample(a, [0, 2, 3])
    yield Sample(a, [1, 5])
    yield Sample(a, np.array([0, 4, 1, 5, 2, 2, 3]))
    yield Sample(a.T, [0, 3], axis=-1)
    yield Sample(a[:, 0], [0, 3], 0)


@segment_spread.def_samples
def segment_spread_samples(rng):
    starts, stops = np.array([0, 4, 1]), np.array([4, 5, 6])
    yield Sample(
        rng.normal(size=(3, 2)), fun=segment_spread, starts=starts, stops=stops, axis=0, size=6
    )


def _declare_reduceat(ufunc):
    def reduceat(array, indices, axis=0, dtype=None, out=None):
        axis, starts, stops = _pieces(ufunc, array, indices, axis)
        before = (slice(None),) * axis
        pieces = [
            ufunc.reduce(array[(*before, slice(start, stop))], axis, dtype, keepdims=True)
            if stop > start + 1
            else cast(array[(*before, slice(start, stop))], dtype)
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
        ]
        return finish(np.concatenate(pieces, axis=axis), out)

    FUNCTIONS[ufunc.reduceat] = reduceat


for _ufunc, _elementary in list(UFUNCS.items()):
    if not isinstance(_elementary, Elementwise) or _elementary.nin != 2:
        continue
    if _elementary.discrete:
        for _method in (_ufunc.reduce, _ufunc.accumulate, _ufunc.reduceat):
            if _method not in FUNCTIONS:
                discrete(_method)
        continue
    if _ufunc.accumulate not in FUNCTIONS:
        _accumulate = _declare_accumulate(_ufunc, _elementary)
        if _ufunc.reduce not in FUNCTIONS and _ufunc not in _MISCOMPUTED:
            _declare_reduce(_ufunc, _elementary, _accumulate)
    if _ufunc.reduceat not in FUNCTIONS and _ufunc not in _MISCOMPUTED:
        _declare_reduceat(_ufunc)
