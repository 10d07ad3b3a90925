"""Two ways to make a primitive of a whole function: what it computes, and how it is differentiated.

`twin` has the values of one function and the derivatives of another, for functions of SciPy whose
mathematics is easily written in NumPy, but not to the last bit. `opaque` is one function, computed
on plain values and for each example by itself, for algorithms that look at the values: its
derivatives are opaque too.

They call transforms, so they are not among the rules, which know of none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core.batch import by_loop
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, fit, shape_of
from funcgrad.transforms.forward import jvp
from funcgrad.transforms.reverse import vjp

__all__ = ["opaque", "twin"]

Function = Callable[..., Any]


def pull(fun: Function, arrays: Sequence[Any], index: int, out_bar: Any) -> Any:
    """Pull a cotangent of ``fun(*arrays)`` back to one of the arrays."""

    def of_one(x: Any) -> Any:
        return fun(*arrays[:index], x, *arrays[index + 1 :])

    out, pullback = vjp(of_one, arrays[index])
    return pullback(fit(out_bar, shape_of(out), dtype_of(out)))[0]


@primitive(name="scipy.twin")
def twin(*arrays: Any, value: Function, formula: Function) -> Any:
    """``value(*arrays)``, of which `formula` computes the same but for rounding."""
    return value(*arrays)


@twin.def_jvp
def twin_jvp(primals: Any, tangents: Any, out: Any, *, value: Any, formula: Any) -> Any:
    return jvp(formula, primals, tangents)[1]


@twin.def_vjp
def twin_vjp(primals: Any, out: Any, *, value: Any, formula: Any) -> Any:
    def pullback_to(index: int) -> Function:
        def twin_pullback(out_bar: Any) -> Any:
            return pull(formula, primals, index, out_bar)

        return twin_pullback

    return tuple(map(pullback_to, range(len(primals))))


by_loop(twin)


@primitive(name="scipy.opaque")
def opaque(*arrays: Any, fun: Function) -> Any:
    """``fun(*arrays)``, of plain arrays."""
    return fun(*arrays)


@opaque.def_jvp
def opaque_jvp(primals: Any, tangents: Any, out: Any, *, fun: Any) -> Any:
    count = len(primals)
    moving = [index for index, dot in enumerate(tangents) if dot is not None]

    def pushed(*arrays: Any) -> Any:
        dots = [None] * count
        for index, dot in zip(moving, arrays[count:], strict=True):
            dots[index] = dot
        return jvp(fun, arrays[:count], dots)[1]

    return opaque.bind(*primals, *(tangents[index] for index in moving), fun=pushed)


@opaque.def_vjp
def opaque_vjp(primals: Any, out: Any, *, fun: Any) -> Any:
    def pullback_to(index: int) -> Function:
        def pulled(*arrays: Any) -> Any:
            return pull(fun, arrays[:-1], index, arrays[-1])

        def opaque_pullback(out_bar: Any) -> Any:
            return opaque.bind(*primals, out_bar, fun=pulled)

        return opaque_pullback

    return tuple(map(pullback_to, range(len(primals))))


by_loop(opaque)


def _power(x: Any, y: Any) -> Any:
    return x**2 * np.sum(y)


def _product(x: Any, y: Any) -> Any:
    return x * x * np.sum(y)


def _twin(x: Any, y: Any) -> Any:
    return twin.bind(x, y, value=_power, formula=_product)


def _opaque(x: Any, y: Any) -> Any:
    return opaque.bind(x, y, fun=_product)


@twin.def_samples
def twin_samples(rng: np.random.Generator) -> Any:
    yield Sample(rng.normal(size=3), rng.normal(size=2), fun=_twin)


@opaque.def_samples
def opaque_samples(rng: np.random.Generator) -> Any:
    yield Sample(rng.normal(size=3), rng.normal(size=2), fun=_opaque)
