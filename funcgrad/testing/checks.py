"""The checks: forward and reverse mode against differences, to any order.

Along a random direction forward mode must give what differences give; reverse mode must give it as
the inner product of the gradient with the direction. Second order is first order again, of the
function that forward or reverse mode computes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core.convert import zeros_like
from funcgrad.core.zero import dtype_of, fit, shape_of
from funcgrad.errors import ArgumentError, GradientCheckError, describe, user_line
from funcgrad.testing.differences import (
    Point,
    checked_args,
    checked_function,
    is_floating,
    random_like,
    vector,
)
from funcgrad.transforms.forward import jvp, linearize
from funcgrad.transforms.reverse import vjp

__all__ = ["check_grads", "check_jvp", "check_vjp"]

# What rounding leaves of a derivative, by the digits of the narrowest number that went in.
_TOLERANCE = {np.float16: 3e-2, np.float32: 1e-3, np.float64: 1e-6, np.longdouble: 1e-6}
# With so few elements a failed check looks at each of them, to name the one that is wrong.
_FEW = 64


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Check the derivatives of `f` at `args` against finite differences.

    Parameters
    ----------
    f : callable
        Pure function of pytrees of arrays that returns a pytree of arrays.
    args : sequence of pytree
        Its arguments. Floating and complex leaves are differentiated, others are left alone.
    order : int
        The highest order of derivative to check. Each order tries every mode over every mode.
    modes : sequence of str
        ``"fwd"`` (`jvp`), ``"rev"`` (`vjp`) and ``"lin"`` (`linearize`).
    atol, rtol : float, optional
        How far a derivative may be off, absolutely and relatively; each 1e-6 for float64, 1e-3 for
        float32, 3e-2 for float16 if not given.
    eps : float, optional
        The largest step of the differences, 0.02 if not given. Smaller ones are tried too.

    Raises
    ------
    GradientCheckError
        A derivative is wrong. The message names the mode, the order, the argument and the element.
    ArgumentError
        `f` is not callable, `args` is not a sequence or has no floating leaf, `order` or `modes`
        make no sense.

    See Also
    --------
    check_jvp, check_vjp : check a rule of your own that no transform knows yet.

    Notes
    -----
    The derivative is tried along one random direction, the same at every call. Narrow floats are
    widened to float64 for the differences, so the errors found are those of the derivative.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad.testing import check_grads
    >>> check_grads(lambda p: np.sum(np.tanh(p["w"]) ** 2), ({"w": np.array([0.5, 2.0])},))
    >>> check_grads(np.floor, (3.0,))  # at a step
    Traceback (most recent call last):
        ...
    funcgrad.errors.GradientCheckError: the JVP of floor is wrong: 0, where differences give ...
      where: argument 0; output 0; mode fwd, order 1
      fix:   see which of the functions it calls fails check_grads alone (at a kink all do)
    """
    f, args = checked_function(f, "check_grads"), checked_args(args, "check_grads")
    unknown = set((modes,) if isinstance(modes, str) else modes) - set(_MODES)
    if unknown or not modes:
        raise ArgumentError(
            f"modes of check_grads must be some of {', '.join(map(repr, _MODES))}, got {modes!r}",
            where=user_line(),
            fix='write modes=("fwd", "rev")',
        )
    if not isinstance(order, int) or order < 1:
        raise ArgumentError(
            f"order of check_grads must be a positive integer, got {order!r}",
            where=user_line(),
            fix="write order=2",
        )
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    _recurse(Point(f, args), order, modes, (), _Limits(atol, rtol, eps))


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Check a function that computes values and tangents against finite differences.

    Parameters
    ----------
    f : callable
        Function of pytrees of arrays.
    f_jvp : callable
        ``f_jvp(args, tangents) -> (out, out_dot)``, such as ``functools.partial(funcgrad.jvp, f)``.
    args : sequence of pytree
        The arguments.
    atol, rtol, eps
        As for `check_grads`.
    err_msg : str
        Added to the message.

    Raises
    ------
    GradientCheckError
        `f_jvp` gives another value than `f`, or a wrong tangent.

    Examples
    --------
    >>> import functools
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.testing import check_jvp
    >>> check_jvp(np.sin, functools.partial(fg.jvp, np.sin), (0.5,))
    """
    point = Point(checked_function(f, "check_jvp"), checked_args(args, "check_jvp"))
    checked_function(f_jvp, "check_jvp", "f_jvp")

    def flat_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
        out, out_dot = f_jvp(point.rebuild(primals), point.rebuild(tangents, dots=True))
        return point.floating(out), point.floating(out_dot)

    _check_push(point, flat_jvp, _Limits(atol, rtol, eps, err_msg))


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Check a function that computes values and pullbacks against finite differences.

    Parameters
    ----------
    f : callable
        Function of pytrees of arrays.
    f_vjp : callable
        ``f_vjp(*args) -> (out, pullback)``, such as ``functools.partial(funcgrad.vjp, f)``, where
        ``pullback(out_bar)`` returns one cotangent for each argument.
    args : sequence of pytree
        The arguments.
    atol, rtol, eps
        As for `check_grads`.
    err_msg : str
        Added to the message.

    Raises
    ------
    GradientCheckError
        `f_vjp` gives another value than `f`, a wrong cotangent, or one that is not shaped like its
        primal.

    Examples
    --------
    >>> import functools
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.testing import check_vjp
    >>> check_vjp(np.sin, functools.partial(fg.vjp, np.sin), (0.5,))
    """
    point = Point(checked_function(f, "check_vjp"), checked_args(args, "check_vjp"))
    checked_function(f_vjp, "check_vjp", "f_vjp")

    def flat_vjp(*primals: Any) -> tuple[Any, Any]:
        out, pullback = f_vjp(*point.rebuild(primals))
        leaves, treedef = tree.flatten(out)

        def flat_pullback(bars: Sequence[Any]) -> tuple[Any, ...]:
            left = list(bars)
            out_bar = [left.pop(0) if is_floating(leaf) else None for leaf in leaves]
            return point.own(pullback(tree.unflatten(treedef, out_bar)))

        return point.floating(out), flat_pullback

    _check_pull(point, flat_vjp, _Limits(atol, rtol, eps, err_msg))


# One comparison in each mode


class _Limits:
    """The tolerances and the step that the user chose, and a remark for messages."""

    def __init__(self, atol: Any, rtol: Any, eps: Any, remark: str = ""):
        self.atol = atol
        self.rtol = rtol
        self.eps = eps
        self.remark = remark

    def noting(self, remark: str) -> _Limits:
        """Return the same limits with another remark."""
        return _Limits(self.atol, self.rtol, self.eps, remark)

    def excess(self, point: Point, got: Any, expected: Any, scale: Any) -> Any:
        """Return by how much each element of `got` is off beyond what is allowed; inf for NaN."""
        usual = _TOLERANCE[point.precision]
        atol = usual if self.atol is None else self.atol
        rtol = usual if self.rtol is None else self.rtol
        off = np.abs(got - expected) - (atol + rtol * scale)
        return np.where(np.isnan(off), np.inf, off)

    def error(self, what: str, place: str, fix: str) -> GradientCheckError:
        """Make the error, with the remark after the place."""
        return GradientCheckError(
            what, where="; ".join(filter(None, (place, self.remark))), fix=fix
        )

    def wrong(self, what: str, got: Any, expected: Any, place: str) -> GradientCheckError:
        """Make the error for a number that is off."""
        if not np.isfinite(expected):
            return self.error(
                f"{what} cannot be checked: it is {got:.8g}, and differences are not finite "
                "at steps of any size",
                place,
                "check at a point all around which the function is finite",
            )
        return self.error(
            f"{what} is wrong: {got:.8g}, where differences give {expected:.8g}",
            place,
            "see which of the functions it calls fails check_grads alone (at a kink all do)",
        )


def _check_push(point: Point, rule: Callable[..., Any], limits: _Limits) -> None:
    """Check the tangent along a random direction."""
    what = f"the JVP of {point.__name__}"
    primals = tuple(point.values)

    def compare(dots: Sequence[Any]) -> tuple[Any, Any, Any]:
        out, out_dot = rule(primals, tuple(dots))
        _check_alike(out_dot, out, [f"output {i}" for i in range(len(out))], limits, what)
        got, expected = vector(out_dot), point.differences(dots, limits.eps)
        return got, expected, limits.excess(point, got, expected, np.abs(expected))

    dots = point.random_dots(np.random.default_rng(0))
    out, _ = rule(primals, tuple(dots))
    _check_value(point, out, limits, what)
    if not np.any(compare(dots)[2] > 0):
        return
    # One argument at a time, to see which it is.
    found = []
    for index, name in enumerate(point.names):
        got, expected, excess = compare(_only(dots, index, dots[index]))
        if excess.size:
            k = int(np.argmax(excess))
            place = f"{name}; {_element_name(out, k)}"
            found.append((excess[k], limits.wrong(what, got[k], expected[k], place)))
    raise max(found, key=_first)[1]


def _check_pull(point: Point, rule: Callable[..., Any], limits: _Limits) -> None:
    """Check the gradient of a random combination of the outputs along a random direction."""
    what = f"the VJP of {point.__name__}"
    rng = np.random.default_rng(0)
    dots = point.random_dots(rng)
    out, pullback = rule(*point.values)
    _check_value(point, out, limits, what)
    out_bars = tuple(random_like(rng, leaf) for leaf in out)
    bars = pullback(out_bars)
    _check_alike(bars, point.values, point.names, limits, what)

    def compare(dots: Sequence[Any]) -> tuple[Any, Any, Any]:
        got = np.real(vector(bars) * vector(dots))
        expected = np.real(vector(out_bars) * point.differences(dots, limits.eps))
        scale = np.sum(np.abs(got)) + np.sum(np.abs(expected))
        got, expected = np.sum(got), np.sum(expected)
        return got, expected, limits.excess(point, got, expected, scale)

    if not compare(dots)[2] > 0:
        return
    # One argument at a time, and one element if there are few, to see which it is.
    found = []
    for index, name in enumerate(point.names):
        for place, dot in _coordinates(name, dots[index]):
            got, expected, excess = compare(_only(dots, index, dot))
            found.append((excess, limits.wrong(what, got, expected, place)))
    raise max(found, key=_first)[1]


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _only(dots: Sequence[Any], index: int, dot: Any) -> list[Any]:
    """Return the direction `dot` in one leaf, and zero in all others."""
    return [dot if i == index else zeros_like(other) for i, other in enumerate(dots)]


def _check_alike(
    dots: Sequence[Any], primals: Sequence[Any], names: list[str], limits: _Limits, what: str
) -> None:
    """Check that each tangent or cotangent has the shape and the dtype of its primal."""
    if len(dots) != len(primals):
        raise limits.error(
            f"{what} gives {len(dots)} floating arrays where {len(primals)} are due",
            ", ".join(names),
            "return one for each, zeros where the derivative is zero",
        )
    for dot, primal, name in zip(dots, primals, names, strict=True):
        if shape_of(dot) != shape_of(primal) or dtype_of(dot) != dtype_of(primal):
            raise limits.error(
                f"{what} gives {describe(dot)} for {describe(primal)}",
                name,
                "return an array of the shape and dtype of the primal",
            )


def _check_value(point: Point, out: Sequence[Any], limits: _Limits, what: str) -> None:
    """Check that the value computed along with the derivative is that of the function."""
    expected = point(*point.values)
    names = [f"output {i}" for i in range(len(expected))]
    _check_alike(out, expected, names, limits, f"the value from {what}")
    tolerance = _TOLERANCE[point.precision]
    for got, right, name in zip(out, expected, names, strict=True):
        if not np.allclose(got, right, tolerance, tolerance, equal_nan=True):
            raise limits.error(
                f"the value from {what} is not what the function returns",
                name,
                "compute it by the same operations",
            )


# The modes of check_grads


def _recurse(
    point: Point, order: int, modes: Sequence[str], inner: tuple[str, ...], limits: _Limits
) -> None:
    for mode in modes:
        check, rule, derived = _MODES[mode]
        trail = (mode, *inner)
        limits = limits.noting(f"mode {' over '.join(trail)}, order {len(trail)}")
        check(point, functools.partial(rule, point), limits)
        if order > 1:
            _recurse(derived(point), order - 1, modes, trail, limits)


def _linearized(fun: Any, primals: Any, tangents: Any) -> tuple[Any, Any]:
    out, pushforward = linearize(fun, *primals)
    return out, pushforward(*tangents)


def _pushed(rule: Callable[..., Any], point: Point) -> Point:
    """Return the function that forward mode computes, of primals and tangents."""

    def tangent(*both: Any) -> Any:
        half = len(both) // 2
        return rule(point, both[:half], both[half:])[1]

    dots = point.random_dots(np.random.default_rng(1))
    return point.derived(tangent, dots, [f"the tangent of {name}" for name in point.names])


def _pulled(point: Point) -> Point:
    """Return the function that reverse mode computes, of primals and cotangents."""
    count = len(point.values)

    def gradient(*both: Any) -> Any:
        out, pullback = vjp(point, *both[:count])
        bars = zip(both[count:], out, strict=True)
        return pullback(tuple(fit(bar, shape_of(leaf), dtype_of(leaf)) for bar, leaf in bars))

    rng = np.random.default_rng(2)
    bars = [random_like(rng, leaf) for leaf in point(*point.values)]
    return point.derived(gradient, bars, [f"the cotangent of output {i}" for i in range(len(bars))])


# Mode -> how it is checked, the transform, and the function that it computes.
_MODES: dict[str, tuple[Any, Any, Any]] = {
    "fwd": (_check_push, jvp, functools.partial(_pushed, jvp)),
    "rev": (_check_pull, vjp, _pulled),
    "lin": (_check_push, _linearized, functools.partial(_pushed, _linearized)),
}


def _coordinates(name: str, dot: Any) -> Iterator[tuple[str, Any]]:
    """Yield directions along one element each, or the whole leaf if it is large."""
    shape = shape_of(dot)
    if shape == () or math.prod(shape) > _FEW:
        yield name, dot
        return
    for index in np.ndindex(*shape):
        alone = np.zeros_like(dot)
        alone[index] = dot[index]
        yield f"{name}, element {list(index)}", alone


def _element_name(out: Sequence[Any], k: int) -> str:
    """Say which output, and which element of it, element `k` of the vector of all is."""
    for i, leaf in enumerate(out):
        size = math.prod(shape_of(leaf))
        if k < size:
            index = np.unravel_index(k, shape_of(leaf))
            return f"output {i}" + (f", element {[int(n) for n in index]}" if index else "")
        k -= size
    raise AssertionError("k counts the elements of out")
