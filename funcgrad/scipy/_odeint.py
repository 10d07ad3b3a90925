"""`odeint` as a primitive: values by SciPy, derivatives by further differential equations.

Forward, the sensitivity equations are integrated along with the solution. In reverse, the adjoint
equations are integrated from the last time to the first, and at each time of output its cotangent
joins in. The solution is integrated back with them, each stretch anew from the value that is
known at its end, so that errors do not grow. Both are calls of the primitive, of other
rates, so derivatives of higher order are there as well.

The equations for derivatives are linear in them; they are integrated in units in which the
largest (co)tangent is 1, to which absolute tolerances can refer.
"""

from __future__ import annotations

import weakref
from functools import partial
from typing import Any

import numpy as np
from scipy import integrate

from funcgrad.core.batch import by_loop
from funcgrad.core.level import TracerBase, looked_at
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.scipy._rate import (
    Adjoint,
    Sensitivity,
    is_moving,
    rate_of,
    size_of,
    unflat,
)
from funcgrad.scipy._twin import opaque

__all__ = ["solution"]

# What says how to integrate the derived equations too; the rest is about the ones given.
_SHARED = ("hmax", "hmin", "mxstep", "mxhnil", "mxordn", "mxords")


@primitive(name="scipy.integrate.odeint")
def solution(y0: Any, t: Any, *leaves: Any, rate: Any, options: Any) -> Any:
    """Integrate ``dy/dt = rate(y, t, *leaves)`` from ``y(t[0]) = y0``."""
    return integrate.odeint(y0=y0, t=t, **rate.for_scipy(leaves), **options)


by_loop(solution)


def _for_derived(options: dict[str, Any], n: int, size: int) -> dict[str, Any]:
    """Return the options for a state of `size` numbers that begins with the `n` of `y`."""
    chosen = {name: options[name] for name in _SHARED if name in options}
    for name in ("rtol", "atol"):
        value = options.get(name)
        if value is not None and np.ndim(value):
            value = np.concatenate([value, np.full(size - n, np.min(value))])
        chosen[name] = value
    return chosen


def _largest(arrays: Any) -> float:
    """Return the largest absolute value, as a plain number."""
    return max(
        (
            float(np.max(np.abs(looked_at(x, "the scale of the values")), initial=0.0))
            for x in arrays
        ),
        default=0.0,
    )


def _rates(rate: Any, out: Any, t: Any, leaves: Any) -> Any:
    """Return the rates of change at the times of output."""
    return np.stack([rate(out[i], t[i], *leaves) for i in range(shape_of(t)[0])])


# Forward


@solution.def_jvp
def solution_jvp(primals: Any, tangents: Any, out: Any, *, rate: Any, options: Any) -> Any:
    _, t, *leaves = primals
    given = [index for index, dot in enumerate(tangents) if dot is not None]
    push = partial(_push, count=len(leaves), given=given, rate=rate, options=options)
    return opaque.bind(out, t, *leaves, *(tangents[index] for index in given), fun=push)


def _push(out: Any, t: Any, *rest: Any, count: int, given: Any, rate: Any, options: Any) -> Any:
    """Return the tangent of the solution."""
    leaves = rest[:count]
    dots = dict(zip(given, rest[count:], strict=True))
    n = shape_of(out)[1]
    start = np.reshape(dots[0], (n,)) if 0 in dots else np.zeros(n)
    if 1 in dots:  # to start later is to lag behind
        start = start - rate(out[0], t[0], *leaves) * dots[1][0]
    moving = [index - 2 for index in given if index > 1]
    leaf_dots = [dots[k + 2] for k in moving]
    unit = _largest([start, *leaf_dots]) or 1.0
    together = solution.bind(
        np.concatenate([out[0], start / unit]),
        t,
        *leaves,
        *(dot / unit for dot in leaf_dots),
        rate=Sensitivity(rate, n, count, moving),
        options=_for_derived(options, n, 2 * n),
    )
    out_dot = together[:, n:] * unit
    if 1 in dots:
        out_dot = out_dot + _rates(rate, out, t, leaves) * np.expand_dims(dots[1], 1)
    return out_dot


# Reverse


class _Once:
    """Computes the cotangents of all arguments when that of the first is asked for.

    They are kept for the others as long as the cotangent of the result is alive.
    """

    def __init__(self, fun: Any):
        self.fun = fun
        self.last: Any = None

    def __call__(self, out_bar: Any) -> Any:
        last = self.last
        # The same array, with the same numbers in it still?
        if (
            last is not None
            and last[0]() is out_bar
            and (isinstance(out_bar, TracerBase) or np.array_equal(last[1], out_bar))
        ):
            return last[2]
        kept = None if isinstance(out_bar, TracerBase) else np.copy(out_bar)
        bars = self.fun(out_bar)
        self.last = weakref.ref(out_bar, self._forget), kept, bars
        return bars

    def _forget(self, dead: Any) -> None:
        last = self.last
        if last is not None and last[0] is dead:
            self.last = None


@solution.def_vjp
def solution_vjp(primals: Any, out: Any, *, rate: Any, options: Any) -> Any:
    y0, t, *leaves = primals

    def bars(out_bar: Any) -> Any:
        pull = partial(_pull, rate=rate, options=options)
        return opaque.bind(out, t, *leaves, out_bar, fun=pull)

    once = _Once(bars)
    start = 0

    def pullback_to(x: Any, size: int) -> Any:
        nonlocal start
        part = slice(start, start + size)
        start += size
        shape, is_complex = shape_of(x), dtype_of(x).kind == "c"

        def solution_pullback(out_bar: Any) -> Any:
            return unflat(once(out_bar)[part], shape, is_complex)

        return solution_pullback

    n, count = shape_of(out)[1], shape_of(t)[0]
    pullbacks = [pullback_to(y0, n), pullback_to(t, count)]
    for leaf in leaves:
        pullbacks.append(pullback_to(leaf, size_of(leaf)) if is_moving(leaf) else None)
    return tuple(pullbacks)


def _pull(out: Any, t: Any, *rest: Any, rate: Any, options: Any) -> Any:
    """Return the cotangents of `y0`, of `t` and of the floating leaves, in one row."""
    *leaves, out_bar = rest
    count, n = shape_of(out)
    unit = _largest([out_bar]) or 1.0
    out_bar = out_bar / unit
    theta_bar: Any = np.zeros(sum(size_of(leaf) for leaf in leaves if is_moving(leaf)))
    size = 2 * n + shape_of(theta_bar)[0]
    params = {"rate": Adjoint(rate, n), "options": _for_derived(options, n, size)}
    times = looked_at(t, "the times")
    arriving = np.zeros(n)  # the cotangent of y just after time i, of all later outputs
    for i in range(count - 1, 0, -1):
        y_bar = arriving + out_bar[i]
        if times[i] == times[i - 1]:
            arriving = y_bar
            continue
        state = np.concatenate([out[i], y_bar, theta_bar])
        back = solution.bind(state, np.stack([t[i], t[i - 1]]), *leaves, **params)[1]
        arriving, theta_bar = back[n : 2 * n], back[2 * n :]
    # The first time moves the start, the others where the solution is looked at.
    weights = np.concatenate([-np.expand_dims(arriving, 0), out_bar[1:]])
    t_bar = np.sum(weights * _rates(rate, out, t, leaves), axis=1)
    return unit * np.concatenate([arriving + out_bar[0], t_bar, theta_bar])


def _growth(y: Any, t: Any, a: Any) -> Any:
    return a  # which every method integrates without error: the laws hold to rounding


def _grow(y0: Any, t: Any, a: Any) -> Any:
    rate, leaves = rate_of(_growth, None, (a,), False)
    return solution.bind(y0, t, *leaves, rate=rate, options={})


@solution.def_samples
def solution_samples(rng: np.random.Generator) -> Any:
    t = np.array([0.1, 0.6, 1.3])
    yield Sample(rng.normal(size=2), t, rng.normal(size=2), fun=_grow, complex=False)
    yield Sample(rng.normal(size=1), t[::-1], rng.normal(size=1), fun=_grow, complex=False)
