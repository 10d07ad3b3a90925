"""`quad` as a primitive: the integral of a function of one variable, by SciPy.

The derivative in a parameter of the function is the integral of the function's own derivative, and
that in an end is the value of the function there. So derivatives are calls of the primitive again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import integrate

from funcgrad.core.batch import by_loop
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.scipy._rate import is_moving
from funcgrad.transforms.forward import jvp
from funcgrad.transforms.reverse import vjp

__all__ = ["integral"]


@primitive(name="scipy.integrate.quad")
def integral(a: Any, b: Any, *leaves: Any, func: Any, options: Any) -> Any:
    """Integrate ``func(x, *leaves)`` from a to b; also an estimate of the error."""
    return integrate.quad(func, a, b, leaves, **options)


by_loop(integral)


def _value(func: Callable[..., Any], x: Any, leaves: Any) -> Any:
    return np.reshape(func(x, *leaves), ())[()]


@integral.def_jvp
def integral_jvp(primals: Any, tangents: Any, out: Any, *, func: Any, options: Any) -> Any:
    a, b, *leaves = primals
    a_dot, b_dot, *dots = tangents
    terms = []
    if a_dot is not None:
        terms.append(-_value(func, a, leaves) * a_dot)
    if b_dot is not None:
        terms.append(_value(func, b, leaves) * b_dot)
    moving = [k for k, dot in enumerate(dots) if dot is not None]
    if moving:
        pushed = partial(_pushed, func=func, count=len(leaves), moving=moving)
        given = [dots[k] for k in moving]
        terms.append(integral.bind(a, b, *leaves, *given, func=pushed, options=options)[0])
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total, None


def _pushed(x: Any, *rest: Any, func: Any, count: int, moving: Any) -> Any:
    """Return the derivative of the function in the direction of the tangents."""
    dots: list[Any] = [None] * count
    for k, dot in zip(moving, rest[count:], strict=True):
        dots[k] = dot

    def at_x(*leaves: Any) -> Any:
        return _value(func, x, leaves)

    return jvp(at_x, rest[:count], dots)[1]


@integral.def_vjp
def integral_vjp(primals: Any, out: Any, *, func: Any, options: Any) -> Any:
    a, b, *leaves = primals

    def integral_pullback_a(out_bars: Any) -> Any:
        return None if out_bars[0] is None else -_value(func, a, leaves) * out_bars[0]

    def integral_pullback_b(out_bars: Any) -> Any:
        return None if out_bars[0] is None else _value(func, b, leaves) * out_bars[0]

    def pullback_to(k: int) -> Any:
        shape = shape_of(leaves[k])

        def integral_pullback(out_bars: Any) -> Any:
            """Integrate the derivative in each element."""
            if out_bars[0] is None:  # only the error, which carries no derivative
                return None
            parts = [
                integral.bind(
                    a,
                    b,
                    *leaves,
                    func=partial(_partial, func=func, k=k, place=place),
                    options=options,
                )[0]
                for place in np.ndindex(shape)
            ]
            if not parts:
                return np.zeros(shape)
            return out_bars[0] * np.reshape(np.stack(parts), shape)

        return integral_pullback

    pullbacks = [pullback_to(k) if is_moving(leaf) else None for k, leaf in enumerate(leaves)]
    return (integral_pullback_a, integral_pullback_b, *pullbacks)


def _partial(x: Any, *leaves: Any, func: Any, k: int, place: Any) -> Any:
    """Return the derivative of the function in one element of one leaf."""

    def of_leaf(leaf: Any) -> Any:
        return _value(func, x, (*leaves[:k], leaf, *leaves[k + 1 :]))

    out, pullback = vjp(of_leaf, leaves[k])
    bar = pullback(1.0 if isinstance(out, float) else dtype_of(out).type(1))[0]
    return bar[place] if shape_of(bar) else bar


def _wave(x: Any, k: Any, shift: Any) -> Any:
    return np.sum(np.cos(k * x + shift))


def _integrate_wave(a: Any, b: Any, k: Any, shift: Any) -> Any:
    return integral.bind(a, b, k, shift, func=_wave, options={})[0]


@integral.def_samples
def integral_samples(rng: np.random.Generator) -> Any:
    yield Sample(
        np.float64(-0.3),
        np.float64(0.8),
        rng.normal(size=2),
        np.float64(0.4),
        fun=_integrate_wave,
        complex=False,
    )
