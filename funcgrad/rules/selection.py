"""Selecting: each element of the result is one element of an argument.

The one idea: a cotangent goes back to where its element came from, and it is *selected* there
(``np.where(mask, t, 0)``), never multiplied by a mask: what a branch not taken computed, infinite
or NaN as it may be, then has no say.

Functions whose results are positions or truth values are in `funcgrad.rules.discrete`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.batch import broadcasting
from funcgrad.core.level import TracerBase, concrete, detached, looked_at
from funcgrad.core.primitive import Sample, overrides, primitive, store
from funcgrad.core.zero import dtype_of, selected, shape_of
from funcgrad.errors import MissingRuleError, user_line
from funcgrad.rules.indexing import refuse_traced
from funcgrad.rules.spelling import holds_tracer, joined, refuse_batched, stand_in

__all__: list[str] = []

_MISSING: Any = object()
_NUMBERS = (int, float)


def _only(mask: Any, t: Any) -> Any:
    """Return `t` where `mask` is true and 0 elsewhere, as a number if both are numbers."""
    chosen = selected(mask, t)
    return chosen if shape_of(chosen) else chosen[()]


# where


@primitive()
def where(condition, x, y):
    """Elements of `x` where `condition` is true, of `y` elsewhere."""
    return np.where(condition, x, y)


@where.def_jvp
def where_jvp(primals, tangents, out):
    condition, _, _ = primals
    _, x_dot, y_dot = tangents
    if x_dot is None and y_dot is None:
        return None
    if y_dot is None:
        return _only(_truth(condition), x_dot)
    if x_dot is None:
        return _only(np.logical_not(_truth(condition)), y_dot)
    return np.where(_truth(condition), x_dot, y_dot)


@where.def_vjp
def where_vjp(primals, out):
    condition = _truth(primals[0])

    def where_pullback_x(out_bar):
        return _only(condition, out_bar)

    def where_pullback_y(out_bar):
        return _only(np.logical_not(condition), out_bar)

    return None, where_pullback_x, where_pullback_y


def _truth(condition):
    """Return a condition as truth values: a float is true unless it is 0."""
    condition = detached(condition)
    if dtype_of(condition).kind == "b" or isinstance(condition, bool):
        return condition
    return np.not_equal(condition, 0)


broadcasting(where)


@where.def_call(np.where)
def _traced_where(condition, /, *branches):
    if not branches:
        return np.nonzero(condition)
    x, y = branches
    return where.bind(joined(condition), joined(x), joined(y))


@where.def_samples
def where_samples(rng):
    mask = np.array([True, False, True])
    x, y = rng.normal(size=3), rng.normal(size=(2, 3))
    yield Sample(mask, x, y)
    yield Sample(mask, x, 0.0)
    yield Sample(mask, 2, x)
    yield Sample(np.array([[True], [False]]), x, rng.normal(size=(2, 1)))
    yield Sample(True, rng.normal(size=()), rng.normal(size=()))
    yield Sample(np.zeros((0, 3), bool), x, x)
    yield Sample(np.array([0, 2, 0]), x, y)
    yield Sample([True, False, True], x, [1.0, 2.0, 3.0])
    yield Sample(rng.normal(size=3), x, y)


# clip


@primitive()
def clip(a, a_min, a_max):
    """`a` limited to the range from `a_min` to `a_max`.

    At a bound the derivative in `a` is 0, and the bound has it all; of two equal bounds that both
    hold `a`, each has half. So ``clip(x, 0, x)`` is `x` for positive `x`, in its derivative too.
    """
    return np.clip(a, a_min, a_max)


def _at_lower(a, a_min):
    return False if a_min is None else np.less_equal(a, a_min)


def _at_upper(a, a_min, a_max):
    if a_max is None:
        return False
    return np.greater_equal(a if a_min is None else np.maximum(a, a_min), a_max)


def _inside(a, a_min, a_max):
    if type(a_min) in _NUMBERS and type(a_max) in _NUMBERS and a_min < a_max:  # the usual case
        return np.logical_not(np.logical_or(np.less_equal(a, a_min), np.greater_equal(a, a_max)))
    return np.logical_not(np.logical_or(_at_lower(a, a_min), _at_upper(a, a_min, a_max)))


def _lower_part(t, a, a_min, a_max):
    """Return the part of `t` that belongs to the lower bound."""
    held = _at_lower(a, a_min)
    if a_max is None:
        return _only(held, t)
    part = np.where(np.equal(a_min, a_max), t / 2, t)
    return _only(np.logical_and(held, np.less_equal(a_min, a_max)), part)


def _upper_part(t, a, a_min, a_max):
    """Return the part of `t` that belongs to the upper bound."""
    held = _at_upper(a, a_min, a_max)
    if a_min is None:
        return _only(held, t)
    both = np.logical_and(np.equal(a_min, a_max), _at_lower(a, a_min))
    return _only(held, np.where(both, t / 2, t))


@clip.def_jvp
def clip_jvp(primals, tangents, out):
    values = tuple(map(detached, primals))
    a_dot, min_dot, max_dot = tangents
    out_dot = 0 if a_dot is None else _only(_inside(*values), a_dot)
    if min_dot is not None:
        out_dot = out_dot + _lower_part(min_dot, *values)
    if max_dot is not None:
        out_dot = out_dot + _upper_part(max_dot, *values)
    return out_dot


@clip.def_vjp
def clip_vjp(primals, out):
    a, a_min, a_max = map(detached, primals)
    inside = _inside(a, a_min, a_max)

    def clip_pullback_a(out_bar):
        return _only(inside, out_bar)

    def clip_pullback_min(out_bar):
        return _lower_part(out_bar, a, a_min, a_max)

    def clip_pullback_max(out_bar):
        return _upper_part(out_bar, a, a_min, a_max)

    return clip_pullback_a, clip_pullback_min, clip_pullback_max


broadcasting(clip)


@clip.def_call(np.clip)
def _traced_clip(
    a, a_min=_MISSING, a_max=_MISSING, out=None, *, min=_MISSING, max=_MISSING, **kwargs
):
    """Map the spellings of NumPy's signature onto the primitive."""
    if a_min is _MISSING and a_max is _MISSING:
        a_min = None if min is _MISSING else min
        a_max = None if max is _MISSING else max
    elif a_min is _MISSING or a_max is _MISSING:
        name = "a_min" if a_min is _MISSING else "a_max"
        raise TypeError(f"clip() missing 1 required positional argument: '{name}'")
    elif min is not _MISSING or max is not _MISSING:
        raise ValueError(
            "Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided "
            "is forbidden."
        )
    if kwargs:
        raise MissingRuleError(
            f"numpy.clip has no rule for the keywords {sorted(kwargs)} with traced values",
            where=user_line(),
            fix="write np.minimum(np.maximum(x, low), high), which takes them",
        )
    # Not the call of the primitive: there, None for an array would mean that it is left out.
    result = clip.bind(joined(a), joined(a_min), joined(a_max))
    return result if out is None else store(result, out)


# What np.clip calls, and what some libraries call in its place.
_ufunc = getattr(getattr(getattr(np, "_core", None), "umath", None), "clip", None)
if isinstance(_ufunc, np.ufunc):
    clip.def_call(_ufunc)(_traced_clip)


@clip.def_samples
def clip_samples(rng):
    x = rng.normal(size=(2, 5))
    yield Sample(x, -0.5, 0.5, complex=False)
    yield Sample(x, None, 0.5, complex=False)
    yield Sample(x, -0.5, None, complex=False)
    yield Sample(x, min=-0.5, max=0.5, complex=False)
    yield Sample(x, max=0.0, complex=False)
    yield Sample(x, rng.normal(size=5) - 1, rng.normal(size=(2, 1)) + 1, complex=False)
    yield Sample(x, rng.normal(size=5), rng.normal(size=5), complex=False)  # some bounds crossed
    yield Sample(x, [0.0, -1.0, 0.5, -2.0, 0.1], 3.0, complex=False)
    yield Sample(rng.normal(size=()), -1.0, 1.0, complex=False)
    yield Sample(np.zeros((0, 2)), -1.0, 1.0, complex=False)
    yield Sample(np.array([-1.0, 0.0, 1.0]), -1.0, 1.0, kinks=True, complex=False)
    yield Sample(np.zeros(3), np.zeros(3), np.zeros(3), kinks=True, complex=False)


# select and choose


@primitive(name="select")
def _select(*arrays, count):
    """The first choice whose condition is true; `count` conditions come first, the default last."""
    return np.select(list(arrays[:count]), list(arrays[count:-1]), arrays[-1])


@_select.def_jvp
def select_jvp(primals, tangents, out, *, count):
    zero = dtype_of(out).type(0)
    dots = [zero if x_dot is None else x_dot for x_dot in tangents[count:]]
    return _select.bind(*primals[:count], *dots, count=count)


@_select.def_vjp
def select_vjp(primals, out, *, count):
    conditions = primals[:count]

    def pullback_for(number):
        def select_pullback(out_bar):
            before: Any = np.zeros((), bool)
            for condition in conditions[:number]:
                before = np.logical_or(before, condition)
            taken = np.logical_not(before)
            if number < count:
                taken = np.logical_and(conditions[number], taken)
            return _only(taken, out_bar)

        return select_pullback

    return (None,) * count + tuple(map(pullback_for, range(count + 1)))


broadcasting(_select)


@_select.def_call(np.select)
def _traced_select(condlist, choicelist, default=0):
    """`numpy.select`."""
    if len(condlist) != len(choicelist) or len(condlist) == 0:
        return np.select(list(map(concrete, condlist)), list(map(concrete, choicelist)))
    conditions = [
        part if isinstance(part, TracerBase) else np.array(part)
        for part in map(detached, map(joined, condlist))
    ]
    choices = (*map(joined, choicelist), joined(default))
    return _select.bind(*conditions, *choices, count=len(conditions))


@_select.def_samples
def select_samples(rng):
    x, y = rng.normal(size=4), rng.normal(size=(2, 4))
    first, second = np.array([True, False, False, True]), np.array([True, True, False, False])
    yield Sample([first, second], [x, y])
    yield Sample([first, second], [x, y], 3.0)
    yield Sample([first, second], [x, 2 * x], default=rng.normal(size=(2, 1)))
    yield Sample([first], [x], rng.normal(size=4))
    yield Sample([np.zeros(0, bool)], [rng.normal(size=1)])


@primitive(name="choose")
def _choose(a, *choices, mode):
    """From each place of the arrays `choices`, the element of the one that `a` numbers there."""
    return np.choose(a, choices, mode=mode)


@_choose.def_jvp
def choose_jvp(primals, tangents, out, *, mode):
    zero = dtype_of(out).type(0)
    dots = [zero if x_dot is None else x_dot for x_dot in tangents[1:]]
    return _choose.bind(primals[0], *dots, mode=mode)


@_choose.def_vjp
def choose_vjp(primals, out, *, mode):
    a, count = primals[0], len(primals) - 1

    def pullback_for(number):
        def choose_pullback(out_bar):
            settled = np.clip(a, 0, count - 1) if mode == "clip" else np.mod(a, count)
            return _only(np.equal(settled, number), out_bar)

        return choose_pullback

    return (None, *map(pullback_for, range(count)))


broadcasting(_choose)


@_choose.def_call(np.choose)
def _traced_choose(a, choices, out=None, mode="raise"):
    """`numpy.choose`."""
    a = joined(a)
    if isinstance(a, TracerBase) and dtype_of(a).kind not in "iub":
        refuse_traced(a)  # they are no numbers of arrays
    a = detached(a)
    if not isinstance(a, TracerBase):
        a = np.array(a)
    result = _choose.bind(a, *map(joined, choices), mode=mode)
    return result if out is None else store(result, out)


@_choose.def_samples
def choose_samples(rng):
    x, y = rng.normal(size=3), rng.normal(size=(2, 3))
    yield Sample(np.array([0, 1, 0]), [x, y])
    yield Sample(np.array([[0], [1]]), [x, rng.normal(size=3)])
    yield Sample([0, 1, 1], rng.normal(size=(2, 3)))
    yield Sample(np.array([-1, 5, 1]), [x, x + 1], mode="wrap")
    yield Sample(np.array([-1, 5, 1]), [x, x + 1], mode="clip")
    yield Sample(1, [rng.normal(size=()), rng.normal(size=())])


# By a list of truth values


@overrides(np.compress)
def compress(condition, a, axis=None, out=None):
    """Slices of `a` along `axis` where `condition` is true."""
    condition = detached(condition)
    refuse_batched(condition, "numpy.compress takes as many elements as a mask has")
    condition = np.asarray(condition)
    if condition.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    return np.take(a, np.flatnonzero(condition), axis=axis, out=out)


@compress.def_samples
def compress_samples(rng):
    x = rng.normal(size=(3, 4))
    yield Sample([True, False, True], x, axis=0)
    yield Sample([0, 1], x, axis=1)
    yield Sample(np.array([True, False, True]), x)
    yield Sample([False], x, axis=-1)


@overrides(np.extract)
def extract(condition, arr):
    """Elements of `arr` where `condition` is true, in one dimension."""
    condition = detached(condition)
    refuse_batched(condition, "numpy.extract takes as many elements as a mask has")
    return np.take(np.ravel(arr), np.flatnonzero(condition))


@extract.def_samples
def extract_samples(rng):
    x = rng.normal(size=(3, 4))
    yield Sample(np.arange(12).reshape(3, 4) % 5 == 0, x)
    yield Sample(np.zeros((3, 4), bool), x)


# Each value once: those elements of the array, so they have a derivative


@overrides(np.unique)
def unique(
    ar,
    return_index=False,
    return_inverse=False,
    return_counts=False,
    axis=None,
    *,
    equal_nan=True,
    **kwargs,
):
    """The different values of `ar`, sorted; each has the derivative of its first occurrence."""
    refuse_batched(ar, "numpy.unique gives as many elements as there are different ones")
    plain = looked_at(ar, "which elements are the same")
    found = np.unique(plain, True, True, True, axis, equal_nan=equal_nan, **kwargs)
    _, index, inverse, counts = found
    values = np.take(np.ravel(ar) if axis is None else ar, index, axis=0 if axis is None else axis)
    wanted = (return_index, index), (return_inverse, inverse), (return_counts, counts)
    extras = tuple(part for want, part in wanted if want)
    return (values, *extras) if extras else values


@unique.def_samples
def unique_samples(rng):
    x = rng.normal(size=4)
    yield Sample(x, complex=False, batch=False)
    yield Sample(rng.normal(size=(2, 3)), complex=False, batch=False)
    yield Sample(rng.normal(size=(3, 2)), axis=0, complex=False, batch=False)


# An index made of lists of positions; of floats it is of no use as one, but it keeps them


@overrides(np.ix_)
def ix_(*args):
    """Each sequence along an axis of its own."""
    shapes = np.ix_(*(stand_in(shape_of(arg)) if holds_tracer(arg) else arg for arg in args))
    return tuple(
        np.reshape(arg, (1,) * place + (-1,) + (1,) * (len(args) - place - 1))
        if holds_tracer(arg)
        else plain
        for place, (arg, plain) in enumerate(zip(args, shapes, strict=True))
    )


@ix_.def_samples
def ix_samples(rng):
    yield Sample(rng.normal(size=2), [0, 1])
    yield Sample(rng.normal(size=3), rng.normal(size=1))
