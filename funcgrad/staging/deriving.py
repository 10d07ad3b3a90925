"""What the rules of loops and of branches share: recording a derivative, and its odds and ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core.level import Trace, concrete, traces_in_progress
from funcgrad.core.tracer import Tracer
from funcgrad.core.zero import are_finite, dtype_of, shape_of, spread
from funcgrad.staging.bodies import (
    Body,
    BodyTrace,
    Recorded,
    Unstructured,
    example_of,
    record_body,
)
from funcgrad.staging.equations import Var
from funcgrad.staging.strict import StrictTrace
from funcgrad.transforms.calls import pushed, taped

__all__ = [
    "as_number",
    "cotangents",
    "evaluated",
    "full_tangents",
    "if_finite",
    "one_like",
    "pushed_through",
    "record",
    "taped_at",
    "zero_of",
]


def recorder() -> StrictTrace:
    """Return the innermost trace that records for `jit`."""
    for trace in reversed(traces_in_progress()):
        if isinstance(trace, StrictTrace):
            return trace
    raise Unstructured


def record(
    fun: Callable[[list[Any], BodyTrace], Sequence[Any]],
    examples: Sequence[Any],
    name: str,
    *,
    is_split: bool = False,
) -> Recorded:
    """Record the body of a rule, which closes over nothing that is traced.

    One that will be split cannot hold functions with rules of their own, of which some equations
    would be in one part and some in the other.
    """
    made = record_body(fun, examples, recorder(), name)
    if made.captured:
        raise Unstructured
    if is_split and any(region.redo is not None for region in made.body.program.regions):
        raise Unstructured
    return made


def evaluated(body: Body, values: Sequence[Any]) -> list[Any]:
    """Evaluate a body on values that may be traced."""
    return body.program.evaluate(values)


def taped_at(
    fun: Callable[[list[Any]], list[Any]], leaves: list[Any], wanted: Sequence[bool], trace: Trace
) -> tuple[list[Any], Callable[[list[Any]], Sequence[Any]]]:
    """Return what a function of leaves gives, and its pullback for those that are wanted."""

    def of_wanted(inner: list[Any]) -> list[Any]:
        given = zip(leaves, inner, strict=True)
        return fun([leaf if new is None else new for leaf, new in given])

    chosen = [leaf if want else None for leaf, want in zip(leaves, wanted, strict=True)]
    return taped(of_wanted, chosen, trace, at_once=True)


def pushed_through(
    fun: Callable[[list[Any]], list[Any]], leaves: list[Any], dots: list[Any], trace: Trace
) -> list[Any]:
    """Return the tangents of what a function of leaves gives."""
    return list(pushed(fun, leaves, dots, trace.origin)[1])


def cotangents(
    made: Sequence[Any], flags: Sequence[bool], own: BodyTrace
) -> tuple[list[Any], list[Var]]:
    """Return cotangents to record with, of the results that are flagged, and their variables."""
    given: list[Any] = [None] * len(made)
    bars: list[Var] = []
    for place, flag in enumerate(flags):
        if flag:
            bar = given[place] = own.variable(one_like(example_of(made[place])))
            bars.append(bar._extra)
    return given, bars


def full_tangents(made: Sequence[Any], dots: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """Return the tangents of the results that are flagged."""
    return [
        as_number(zero_of(out) if dot is None else spread(dot, out))
        for out, dot, flag in zip(made, dots, flags, strict=True)
        if flag
    ]


def if_finite(found: list[Any], again: Callable[[], list[Any]]) -> list[Any]:
    """Return derivatives if all are finite, and else what computes them step by step.

    What is not finite where it is not used (the slope of ``log(0)`` that ``where`` leaves out) is
    repaired operation by operation, as it is met. A body is recorded for one example, of which all
    may be finite; so what comes out of all the steps is looked at here. That is a condition of the
    program: where it fails, another is recorded, carefully.
    """
    return found if are_finite([one for one in found if one is not None]) else again()


def as_number(value: Any) -> Any:
    """Return a derivative with a dtype of its own, which a number of Python has not."""
    if type(concrete(value)) in (float, complex, int):
        dtype = dtype_of(value)
        return value.astype(dtype) if type(value) is Tracer else dtype.type(value)
    return value


def one_like(value: Any) -> Any:
    """Return a derivative to record with."""
    return np.ones(shape_of(value), dtype_of(value))[()]


def zero_of(value: Any) -> Any:
    """Return zeros of the shape and dtype of a value."""
    return np.zeros(shape_of(value), dtype_of(value))[()]
