"""Check derivatives against finite differences: `check_grads` and what it is made of.

For whoever writes a rule, a `custom_vjp`, or a function whose gradient matters. The one idea: along a
random direction the derivative of any function is a derivative in one variable, which
`numerical_jvp` finds from values of the function alone. Forward mode must give the same;
reverse mode must give it as the inner product of the gradient with the direction. Second order is
first order again, of the function that forward or reverse mode computes.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from funcgrad import tree
from funcgrad.core.convert import like, zeros_like
from funcgrad.core.zero import dtype_of, fit, shape_of
from funcgrad.errors import ArgumentError, GradientCheckError, describe, user_line
from funcgrad.transforms.flat import is_differentiable
from funcgrad.transforms.forward import jvp, linearize
from funcgrad.transforms.reverse import vjp

__all__ = ["check_grads", "check_jvp", "check_vjp", "numerical_jvp"]

# What rounding leaves of a derivative, by the digits of the narrowest number that went in.
_TOLERANCE = {np.float16: 3e-2, np.float32: 1e-3, np.float64: 1e-6, np.longdouble: 1e-6}
# Steps of the differences: the largest, and how many, each a quarter of the one before.
_STEPS = {np.float16: (0.25, 2), np.float32: (0.1, 3), np.float64: (0.02, 6)}
_RATIO = 4
_ENOUGH = 1e-11  # the estimated error at which to stop
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
        `args` is not a sequence or has no floating leaf, `order` or `modes` make no sense.

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
    >>> import funcgrad as fg
    >>> from funcgrad.testing import check_grads
    >>> check_grads(lambda p: np.sum(np.tanh(p["w"]) ** 2), ({"w": np.array([0.5, 2.0])},))
    >>> check_grads(lambda x: x * fg.stop_gradient(x), (3.0,), order=1, modes=["rev"])
    Traceback (most recent call last):
        ...
    funcgrad.errors.GradientCheckError: the VJP of <lambda> is wrong: 3.0, where differences give 6.0
      where: argument 0; mode rev, order 1
      fix:   see which of the functions it calls fails check_grads by itself; at a kink none can pass
    """
    args = _checked(args, "check_grads")
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
    _recurse(_Point(f, args), order, modes, (), _Limits(atol, rtol, eps))


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
    point = _Point(f, _checked(args, "check_jvp"))

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
    point = _Point(f, _checked(args, "check_vjp"))

    def flat_vjp(*primals: Any) -> tuple[Any, Any]:
        out, pullback = f_vjp(*point.rebuild(primals))
        leaves, treedef = tree.flatten(out)

        def flat_pullback(bars: Sequence[Any]) -> tuple[Any, ...]:
            left = list(bars)
            out_bar = [left.pop(0) if _is_floating(leaf) else None for leaf in leaves]
            return point.own(pullback(tree.unflatten(treedef, out_bar)))

        return point.floating(out), flat_pullback

    _check_pull(point, flat_vjp, _Limits(atol, rtol, eps, err_msg))


def numerical_jvp(
    f: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    eps: float | None = None,
) -> Any:
    """Estimate a directional derivative from values of the function alone.

    Parameters
    ----------
    f : callable
        Function of pytrees of arrays.
    primals, tangents : sequence of pytree
        Where, and in which direction; shaped alike, with None in `tangents` for a leaf that is not
        floating.
    eps : float, optional
        The largest step of the differences, 0.02 if not given. Smaller ones are tried too.

    Returns
    -------
    pytree
        The derivative of ``f(*primals)``, in double precision; None for leaves that are not floating.

    Notes
    -----
    Central differences of decreasing step are extrapolated to step 0, and for each element the
    extrapolation with the least estimated error is taken [1]_. Where `f` takes complex numbers too, and is
    analytic, the complex step [2]_, which has no rounding error to speak of, replaces them.

    References
    ----------
    .. [1] C. J. F. Ridders, "Accurate computation of F'(x) and F'(x)F''(x)", Advances in
       Engineering Software 4 (1982), 75-76.
    .. [2] W. Squire and G. Trapp, "Using complex variables to estimate derivatives of real
       functions", SIAM Review 40 (1998), 110-112.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad.testing import numerical_jvp
    >>> round(float(numerical_jvp(np.exp, (1.0,), (1.0,))), 12)
    2.718281828459
    """
    point = _Point(f, _checked(primals, "numerical_jvp"))
    dots = tree.structure(tuple(primals)).flatten_up_to(tuple(tangents))
    dots = [dots[position] for position in point.positions]
    dots = [zeros_like(x) if dot is None else dot for dot, x in zip(dots, point.values, strict=True)]
    vector = point.differences(dots, eps)
    leaves, treedef = tree.flatten(point.fun(*point.args))
    pieces = list(_pieces(vector, [leaf for leaf in leaves if _is_floating(leaf)]))
    return tree.unflatten(treedef, [pieces.pop(0) if _is_floating(x) else None for x in leaves])


# The function and where it is checked


class _Point:
    """A function at its arguments, as a function of their floating leaves alone."""

    def __init__(self, fun: Callable[..., Any], args: tuple[Any, ...], *, analytic: bool = True):
        self.fun = fun
        self.args = args
        self.leaves, self.treedef = tree.flatten(args)
        self.positions = [i for i, leaf in enumerate(self.leaves) if is_differentiable(leaf)]
        self.values = [self.leaves[position] for position in self.positions]
        self.analytic = analytic  # worth a complex step
        self.__name__ = getattr(fun, "__name__", type(fun).__name__)
        if not self.values:
            raise ArgumentError(
                f"the arguments of {self.__name__} hold no floating-point array to differentiate",
                where=f"{user_line()}: {', '.join(map(describe, self.leaves)) or 'no leaves'}",
                fix="give it a float or an array of floats",
            )

    @functools.cached_property
    def names(self) -> list[str]:
        """How to call each floating leaf in a message."""
        found = tree.flatten_with_path(self.args)[0]
        return [_argument(found[position][0]) for position in self.positions]

    def rebuild(self, values: Sequence[Any], *, dots: bool = False) -> tuple[Any, ...]:
        """Return the arguments (or tangents of them) with other floating leaves."""
        leaves = [None] * len(self.leaves) if dots else list(self.leaves)
        for position, value in zip(self.positions, values, strict=True):
            leaves[position] = value
        rebuilt: tuple[Any, ...] = tree.unflatten(self.treedef, leaves)
        return rebuilt

    def own(self, cotangents: Any) -> tuple[Any, ...]:
        """Return the cotangents of the floating leaves from those of the arguments."""
        leaves = self.treedef.flatten_up_to(cotangents)
        return tuple(leaves[position] for position in self.positions)

    def derived(self, fun: Any, dots: Sequence[Any], names: Sequence[str]) -> _Point:
        """Return the point of a function of the leaves and of as many (co)tangents."""
        made = _Point(fun, (*self.values, *dots), analytic=False)
        made.__name__ = self.__name__
        made.names = [*self.names, *names]
        return made

    @staticmethod
    def floating(out: Any) -> tuple[Any, ...]:
        """Return the floating leaves of an output."""
        return tuple(leaf for leaf in tree.leaves(out) if _is_floating(leaf))

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        return self.floating(self.fun(*self.rebuild(values)))

    @functools.cached_property
    def precision(self) -> Any:
        """The type of the narrowest real number among the leaves."""
        return min((_real_type(x) for x in self.values), key=lambda kind: np.finfo(kind).bits)

    @functools.cached_property
    def wide(self) -> list[Any]:
        """The leaves in double precision, or as they are if the function does not take them so."""
        if self.precision in (np.float64, np.longdouble):
            return self.values
        wide = [_widened(x) for x in self.values]
        try:
            self(*wide)
        except Exception:  # whatever it may be, the function has the first say
            return self.values
        return wide

    def random_dots(self, rng: np.random.Generator) -> list[Any]:
        """Return a random direction."""
        return [_random_like(rng, x) for x in self.values]

    def differences(self, dots: Sequence[Any], eps: float | None) -> npt.NDArray[Any]:
        """Return the directional derivative of all outputs, in one vector."""
        wide = self.wide
        if wide is not self.values:
            dots = [_widened(dot) for dot in dots]
        with np.errstate(all="ignore"):
            found = _extrapolated(self, wide, dots, eps)
            exact = self._complex_step(wide, dots) if self.analytic else None
            if exact is not None and np.allclose(exact, found, rtol=1e-5, atol=1e-7):
                return exact
        return found

    def _complex_step(self, values: Any, dots: Any) -> npt.NDArray[Any] | None:
        """Return the derivative by a step into the complex plane, or None if that cannot be."""
        if any(dtype_of(x).kind == "c" for x in values):
            return None
        step = 1e-30
        moved = [_moved(x, dot, 1j * step) for x, dot in zip(values, dots, strict=True)]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                out = self(*moved)
        except Exception:  # not a function of complex numbers
            return None
        return _vector(out).imag / step


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

    def excess(self, point: _Point, got: Any, expected: Any, scale: Any) -> Any:
        """Return by how much each element of `got` is off beyond what is allowed; inf for NaN."""
        usual = _TOLERANCE[point.precision]
        atol = usual if self.atol is None else self.atol
        rtol = usual if self.rtol is None else self.rtol
        off = np.abs(got - expected) - (atol + rtol * scale)
        return np.where(np.isnan(off), np.inf, off)

    def error(self, what: str, place: str, fix: str) -> GradientCheckError:
        """Make the error, with the remark after the place."""
        return GradientCheckError(what, where="; ".join(filter(None, (place, self.remark))), fix=fix)

    def wrong(self, what: str, got: Any, expected: Any, place: str) -> GradientCheckError:
        """Make the error for a number that is off."""
        return self.error(
            f"{what} is wrong: {got:.8g}, where differences give {expected:.8g}",
            place,
            "see which of the functions it calls fails check_grads alone (at a kink all do)",
        )


def _check_push(point: _Point, rule: Callable[..., Any], limits: _Limits) -> None:
    """Check the tangent along a random direction."""
    what = f"the JVP of {point.__name__}"
    primals = tuple(point.values)

    def compare(dots: Sequence[Any]) -> tuple[Any, Any, Any]:
        out, out_dot = rule(primals, tuple(dots))
        _check_alike(out_dot, out, [f"output {i}" for i in range(len(out))], limits, what)
        got, expected = _vector(out_dot), point.differences(dots, limits.eps)
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


def _check_pull(point: _Point, rule: Callable[..., Any], limits: _Limits) -> None:
    """Check the gradient of a random combination of the outputs along a random direction."""
    what = f"the VJP of {point.__name__}"
    rng = np.random.default_rng(0)
    dots = point.random_dots(rng)
    out, pullback = rule(*point.values)
    _check_value(point, out, limits, what)
    out_bars = tuple(_random_like(rng, leaf) for leaf in out)
    bars = pullback(out_bars)
    _check_alike(bars, point.values, point.names, limits, what)

    def compare(dots: Sequence[Any]) -> tuple[Any, Any, Any]:
        got = np.real(_vector(bars) * _vector(dots))
        expected = np.real(_vector(out_bars) * point.differences(dots, limits.eps))
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


def _check_value(point: _Point, out: Sequence[Any], limits: _Limits, what: str) -> None:
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
    point: _Point, order: int, modes: Sequence[str], inner: tuple[str, ...], limits: _Limits
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


def _pushed(rule: Callable[..., Any], point: _Point) -> _Point:
    """Return the function that forward mode computes, of primals and tangents."""

    def tangent(*both: Any) -> Any:
        half = len(both) // 2
        return rule(point, both[:half], both[half:])[1]

    dots = point.random_dots(np.random.default_rng(1))
    return point.derived(tangent, dots, [f"the tangent of {name}" for name in point.names])


def _pulled(point: _Point) -> _Point:
    """Return the function that reverse mode computes, of primals and cotangents."""
    count = len(point.values)

    def gradient(*both: Any) -> Any:
        out, pullback = vjp(point, *both[:count])
        bars = zip(both[count:], out, strict=True)
        return pullback(tuple(fit(bar, shape_of(leaf), dtype_of(leaf)) for bar, leaf in bars))

    rng = np.random.default_rng(2)
    bars = [_random_like(rng, leaf) for leaf in point(*point.values)]
    return point.derived(gradient, bars, [f"the cotangent of output {i}" for i in range(len(bars))])


# Mode -> how it is checked, the transform, and the function that it computes.
_MODES: dict[str, tuple[Any, Any, Any]] = {
    "fwd": (_check_push, jvp, functools.partial(_pushed, jvp)),
    "rev": (_check_pull, vjp, _pulled),
    "lin": (_check_push, _linearized, functools.partial(_pushed, _linearized)),
}


# Differences


def _extrapolated(point: _Point, values: Any, dots: Any, eps: float | None) -> npt.NDArray[Any]:
    """Extrapolate central differences to step 0, each element by itself."""
    kind = point.precision if values is point.values else np.float64
    largest, count = _STEPS.get(kind, _STEPS[np.float64])
    step = largest if eps is None else eps
    best: Any = None
    least: Any = None
    before: list[Any] = []
    for _ in range(count):
        ahead = _vector(point(*(_moved(x, dot, step) for x, dot in zip(values, dots, strict=True))))
        back = _vector(point(*(_moved(x, dot, -step) for x, dot in zip(values, dots, strict=True))))
        row = [(ahead - back) / (2 * step)]
        if best is None:
            best, least = row[0], np.full(row[0].shape, np.inf)
        factor = 1.0
        for k, coarser in enumerate(before):
            factor *= _RATIO**2  # the error is a series in the square of the step
            row.append(row[k] + (row[k] - coarser) / (factor - 1))
            error = np.maximum(np.abs(row[k + 1] - row[k]), np.abs(row[k + 1] - coarser))
            better = error < least
            best, least = np.where(better, row[k + 1], best), np.where(better, error, least)
        if np.all(least <= _ENOUGH * (1 + np.abs(best))):
            break
        before = row
        step /= _RATIO
    return best


def _moved(x: Any, dot: Any, step: Any) -> Any:
    moved = x + step * dot
    return np.asarray(moved) if isinstance(x, np.ndarray) else moved  # 0-d: + makes a scalar


def _vector(leaves: Sequence[Any]) -> npt.NDArray[Any]:
    """Join all elements into one vector, in double precision."""
    if not leaves:
        return np.zeros(0)
    parts = [np.ravel(leaf) for leaf in leaves]
    return np.concatenate([part.astype(_widened(part[:0]).dtype) for part in parts])


def _pieces(vector: npt.NDArray[Any], leaves: Sequence[Any]) -> Iterator[Any]:
    """Part a vector into arrays of the shapes of `leaves`."""
    start = 0
    for leaf in leaves:
        shape = shape_of(leaf)
        stop = start + math.prod(shape)
        piece = np.reshape(vector[start:stop], shape)
        yield (piece.real if dtype_of(leaf).kind == "f" else piece)[()]
        start = stop


def _is_floating(leaf: Any) -> bool:
    return is_differentiable(leaf) is True


def _real_type(x: Any) -> Any:
    return np.finfo(dtype_of(x)).dtype.type


def _widened(x: Any) -> Any:
    dtype = dtype_of(x)
    if dtype.itemsize >= (16 if dtype.kind == "c" else 8):
        return x
    return x.astype(np.complex128 if dtype.kind == "c" else np.float64)


def _random_like(rng: np.random.Generator, x: Any) -> Any:
    """Return normal variates of the shape, dtype and kind of `x`."""
    made: Any = rng.normal(size=shape_of(x))
    if dtype_of(x).kind == "c":
        made = made + 1j * rng.normal(size=shape_of(x))
    return like(np.asarray(made), x, set())


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


def _argument(path: Any) -> str:
    inner = tree.keystr(path[1:])
    return f"argument {path[0].idx}" + (f" at {inner}" if inner else "")


def _checked(args: Any, name: str) -> tuple[Any, ...]:
    if not isinstance(args, list | tuple):
        raise ArgumentError(
            f"args of {name} must be a tuple or list with one item for each argument, "
            f"got {describe(args)}",
            where=user_line(),
            fix=f"write {name}(f, (x,))",
        )
    return tuple(args)
