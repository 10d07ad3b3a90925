"""Primitives that work across the examples of a `vmap`: sums, gathers, permutations.

The one idea: to the vmap that is meant (`trace`) such an operation is plain NumPy code along the
first axis of its array of examples. To every other transform it is a primitive like others: those
above see an operation on one example, and those below see the NumPy code. What does not differ from
example to example counts as so many equal values.

A function of this kind maps all examples to all examples. Its transpose goes from the cotangents of
all outputs to those of all inputs: where each example has an output, that of their sum is meant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.core.level import Trace, top_trace, traces_in_progress
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracer import Tracer, unwrap
from funcgrad.core.zero import shape_of
from funcgrad.errors import ArgumentError, user_line
from funcgrad.transforms.batching import BatchTrace

__all__ = ["Apart", "all_gather", "all_to_all", "pmax", "pmin", "ppermute", "psum", "psum_scatter"]


class Apart(Trace):
    """A block of code in which each example stands by itself, and none has to do with the others.

    For what would be wrong otherwise without anybody noticing: the matrix of a linear map.
    """

    __slots__ = ()

    def covers(self, base: Trace) -> bool:
        """Tell whether a vmap is around the block."""
        return base.level < self.level


class Across(Primitive):
    """An operation across the examples of the vmap ``trace``.

    Parameters
    ----------
    of_all : callable
        Gets all examples along the first axis, and returns one result that they share, or if `each`
        one for each along the first axis.
    name : str
    each : bool
    of_one : callable, optional
        What it comes to for a value that is the same for all examples; the forward function.
    """

    __slots__ = ("each", "of_all")

    def __init__(
        self,
        of_all: Callable[..., Any],
        *,
        name: str,
        each: bool = False,
        of_one: Callable[..., Any] | None = None,
    ):
        super().__init__(of_one or self.of_copies, name=name)
        self.of_all = of_all
        self.each = each

    def bind(self, *args: Any, **params: Any) -> Any:
        """Carry it out at the highest level, or here when that is not above the vmap."""
        trace: BatchTrace = params["trace"]
        self.check_rows(trace)
        top = top_trace(args)
        if top is None or top.level < trace.level:
            return self.forward(*args, **params)
        if top is trace:
            return self.finish(trace.split(args)[0][0], params)
        return top.process(self, args, params)

    def of_copies(self, x: Any, **params: Any) -> Any:
        """Do with a value that is the same for all examples as with others."""
        return self.finish(np.broadcast_to(unwrap(x), (params["trace"].size, *shape_of(x))), params)

    def finish(self, x: Any, params: Any) -> Any:
        """Return the result for all examples, as one example sees it."""
        out = self.of_all(x, **params)
        return Tracer(params["trace"], out, None) if self.each else out

    def check_rows(self, trace: BatchTrace) -> None:
        """Raise if only some of the examples have come here."""
        for other in traces_in_progress():
            if other.covers(trace):
                raise ArgumentError(
                    f"{self.name} over the axis {trace.axis_name!r} was reached by some of its "
                    "examples only: in a branch of cond that the others do not take, a step of "
                    "while_loop that they do not make, or an equation solved for each by itself",
                    where=f"{user_line()}, in {trace.origin}",
                    fix=f"call {self.name} before the branch, loop or equation, where all examples "
                    f"pass; or make them go one way: cond(pmax(pred, {trace.axis_name!r}), ...)",
                )


def _linear(primitive: Across, transpose: Callable[..., Any]) -> None:
    """Give rules to a linear operation; ``transpose(out_bar, **params)`` is its pullback."""
    primitive.linear = True

    @primitive.def_jvp
    def across_jvp(primals: Any, tangents: Any, out: Any, **params: Any) -> Any:
        return primitive.bind(tangents[0], **params)

    @primitive.def_vjp
    def across_vjp(primals: Any, out: Any, **params: Any) -> Any:
        def across_pullback(out_bar: Any) -> Any:
            return transpose(out_bar, **params)

        return across_pullback


def _along(primitive: Across, *names: str) -> None:
    """Give the rule for the examples of another vmap, where the parameters `names` are axes."""

    @primitive.def_batch
    def across_batch(args: Any, batched: Any, **params: Any) -> Any:
        for name in names:
            axis = params[name]
            params[name] = tuple([k + 1 for k in axis]) if isinstance(axis, tuple) else axis + 1
        return primitive.bind(*args, **params)


# Sums


def _psum(x: Any, *, trace: Any) -> Any:
    return np.sum(x, axis=0)


def _psum_of_one(x: Any, *, trace: Any) -> Any:
    # By the sum of one element, which has the dtype that a sum of small integers has.
    return np.sum(np.expand_dims(x, 0), axis=0) * trace.size


psum = Across(_psum, name="psum", of_one=_psum_of_one)
_linear(psum, psum.bind)
_along(psum)


# Extremes, also along the axes `axes` of each example


def _pmax(x: Any, *, trace: Any, axes: tuple[int, ...]) -> Any:
    return np.max(x, axis=(0, *[axis + 1 for axis in axes]))


def _pmin(x: Any, *, trace: Any, axes: tuple[int, ...]) -> Any:
    return np.min(x, axis=(0, *[axis + 1 for axis in axes]))


def _pmax_of_one(x: Any, *, trace: Any, axes: tuple[int, ...]) -> Any:
    return _pmax(np.expand_dims(x, 0), trace=trace, axes=axes)


def _pmin_of_one(x: Any, *, trace: Any, axes: tuple[int, ...]) -> Any:
    return _pmin(np.expand_dims(x, 0), trace=trace, axes=axes)


pmax = Across(_pmax, name="pmax", of_one=_pmax_of_one)
pmin = Across(_pmin, name="pmin", of_one=_pmin_of_one)


def _ties(x: Any, out: Any, trace: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """Return which elements are the extreme one, and how many of them there are in all."""
    hit = np.equal(x, np.expand_dims(out, axes)) | np.isnan(x)  # a NaN anywhere is the result
    return hit, psum.bind(np.sum(hit, axis=axes, dtype=np.intp), trace=trace)


def _extreme_jvp(primals: Any, tangents: Any, out: Any, *, trace: Any, axes: Any) -> Any:
    hit, number = _ties(primals[0], out, trace, axes)
    own = np.sum(np.where(hit, tangents[0], 0), axis=axes)
    return psum.bind(own, trace=trace) / number


def _extreme_vjp(primals: Any, out: Any, *, trace: Any, axes: Any) -> Any:
    hit, number = _ties(primals[0], out, trace, axes)

    def extreme_pullback(out_bar: Any) -> Any:
        share = psum.bind(out_bar, trace=trace) / number
        return np.where(hit, np.expand_dims(share, axes), 0)

    return extreme_pullback


for _extreme in (pmax, pmin):
    _extreme.def_jvp(_extreme_jvp)
    _extreme.def_vjp(_extreme_vjp)
    _along(_extreme, "axes")


# Gathering, and its transpose


def _all_gather(x: Any, *, trace: Any, axis: int) -> Any:
    return np.copy(np.moveaxis(x, 0, axis), order="C")  # the caller may write to it


def _psum_scatter(x: Any, *, trace: Any, axis: int) -> Any:
    return np.copy(np.moveaxis(np.sum(x, axis=0), axis, 0), order="C")


def _all_gather_transpose(out_bar: Any, **params: Any) -> Any:
    return psum_scatter.bind(out_bar, **params)


def _psum_scatter_transpose(out_bar: Any, **params: Any) -> Any:
    return all_gather.bind(out_bar, **params)


all_gather = Across(_all_gather, name="all_gather")
psum_scatter = Across(_psum_scatter, name="psum_scatter", each=True)
_linear(all_gather, _all_gather_transpose)
_linear(psum_scatter, _psum_scatter_transpose)
_along(all_gather, "axis")
_along(psum_scatter, "axis")


# Going from example to example


def _ppermute(x: Any, *, trace: Any, perm: tuple[tuple[int, int], ...]) -> Any:
    source = np.full(trace.size, -1)
    for start, end in perm:
        source[end] = start
    moved = x[source]
    if np.all(source >= 0):
        return moved
    kept = np.reshape(source >= 0, (-1,) + (1,) * (len(shape_of(x)) - 1))
    return np.where(kept, moved, x.dtype.type(0))


def _ppermute_transpose(out_bar: Any, *, trace: Any, perm: Any) -> Any:
    back = tuple([(end, start) for start, end in perm])
    return ppermute.bind(out_bar, trace=trace, perm=back)


ppermute = Across(_ppermute, name="ppermute", each=True)
_linear(ppermute, _ppermute_transpose)
_along(ppermute)


def _all_to_all(x: Any, *, trace: Any, split_axis: int, concat_axis: int) -> Any:
    # (sender, ..., receiver, ...) -> (receiver, ..., sender, ...)
    moved = np.moveaxis(np.moveaxis(x, split_axis + 1, 0), 1, concat_axis + 1)
    return np.copy(moved, order="C")


def _all_to_all_transpose(out_bar: Any, *, trace: Any, split_axis: int, concat_axis: int) -> Any:
    return all_to_all.bind(out_bar, trace=trace, split_axis=concat_axis, concat_axis=split_axis)


all_to_all = Across(_all_to_all, name="all_to_all", each=True)
_linear(all_to_all, _all_to_all_transpose)
_along(all_to_all, "split_axis", "concat_axis")
