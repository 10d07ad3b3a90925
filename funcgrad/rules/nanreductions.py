"""Reductions that ignore NaN: those of `funcgrad.rules.reductions` with a mask.

Values are NumPy's own. The derivative is that of the plain reduction over the elements that
are not NaN; the cotangent of a NaN is zero, which stays zero whatever it was computed from.
"""

from __future__ import annotations

import numpy as np

from funcgrad.core.primitive import Sample, primitive
from funcgrad.rules.moments import declare_spread
from funcgrad.rules.reducing import NOT_GIVEN, batch_reduction
from funcgrad.rules.reductions import (
    axis_samples,
    mask_samples,
    reduce_fmax,
    reduce_fmin,
    reduce_mean,
    reduce_prod,
    reduce_samples,
    reduce_sum,
    spell,
)

__all__: list[str] = []


def _present(a, where):
    """Return the mask of the elements that count."""
    present = np.logical_not(np.isnan(a))
    return present if where is True else np.logical_and(present, where)


def _declare(function, of, typed=True):
    """Declare `function`, which has the rules of the primitive `of` with a mask."""

    def reduction(a, where=True, initial=NOT_GIVEN, **params):
        if initial is not NOT_GIVEN:
            params["initial"] = initial
        return function(a, where=where, **params)

    made = primitive(name=function.__name__)(reduction)
    spell(made, function, typed=typed)

    def masked(primals):
        a, *rest = primals
        return (a, _present(a, rest[0] if rest else True), *rest[1:])

    @made.def_jvp
    def nan_jvp(primals, tangents, out, **params):
        a_dot, *rest = tangents
        return of.jvp(masked(primals), (a_dot, None, *rest[1:]), out, **params)

    @made.def_vjp
    def nan_vjp(primals, out, **params):
        return of.vjp(masked(primals), out, **params)[: len(primals)]

    batch_reduction(made)
    return made


def _with_gaps(samples):
    """Make the same calls once more with a NaN in the array, where no result is NaN for it."""

    def gapped(rng):
        for sample in samples(rng):
            (a, *rest), kwargs = sample.args, sample.kwargs
            yield sample
            if a.shape and a.shape[-1] > 1 and a.size and kwargs.get("axis") != ():
                a = a.copy()
                a[(0,) * a.ndim] = np.nan
                yield Sample(a, *rest, kinks=True, **kwargs)

    return gapped


def _moment_samples(rng):
    yield from axis_samples(rng)
    yield from mask_samples(rng)


_declare(np.nansum, reduce_sum).def_samples(_with_gaps(reduce_samples(None)))
_declare(np.nanprod, reduce_prod).def_samples(_with_gaps(reduce_samples(None)))
_declare(np.nanmax, reduce_fmax, typed=False).def_samples(_with_gaps(reduce_samples(None)))
_declare(np.nanmin, reduce_fmin, typed=False).def_samples(_with_gaps(reduce_samples(None)))
_declare(np.nanmean, reduce_mean).def_samples(_with_gaps(_moment_samples))
declare_spread(np.nanvar, False, _present).def_samples(_with_gaps(_moment_samples))
declare_spread(np.nanstd, True, _present).def_samples(_with_gaps(_moment_samples))
