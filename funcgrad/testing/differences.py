"""Derivatives from values alone: what the checks compare with.

The one idea: a function of pytrees, at a point, is a function of a list of floating arrays, and
along a direction it is a function of one number, of which the derivative is found by differences.
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
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import ArgumentError, describe, user_line
from funcgrad.transforms.flat import is_differentiable

__all__ = ["Point", "numerical_jvp"]

# Steps of the differences: the largest, and how many, each a quarter of the one before.
_STEPS = {np.float16: (0.25, 2), np.float32: (0.1, 3), np.float64: (0.02, 6)}
_RATIO = 4
_MOST = 40  # steps, where the usual ones leave the domain
_ENOUGH = 1e-11  # the estimated error at which to stop


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
        The derivative of ``f(*primals)``, in double precision; None for leaves that are not
        floating.

    Raises
    ------
    ArgumentError
        `f` is not callable, or `primals` is not a sequence or has no floating leaf.

    Notes
    -----
    Central differences of decreasing step are extrapolated to step 0, and for each element the
    extrapolation with the least estimated error is taken [1]_. Where `f` takes complex numbers too,
    and is analytic, the complex step [2]_, which has no rounding error to speak of, replaces them.

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
    point = Point(checked_function(f, "numerical_jvp"), checked_args(primals, "numerical_jvp"))
    dots = tree.structure(tuple(primals)).flatten_up_to(tuple(tangents))
    dots = [dots[position] for position in point.positions]
    dots = [
        zeros_like(x) if dot is None else dot for dot, x in zip(dots, point.values, strict=True)
    ]
    leaves, treedef = tree.flatten(point.fun(*point.args))
    found = point.differences(dots, eps)
    parts = list(pieces(found, [leaf for leaf in leaves if is_floating(leaf)]))
    return tree.unflatten(treedef, [parts.pop(0) if is_floating(x) else None for x in leaves])


# The function and where it is differentiated


class Point:
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
        return [argument(found[position][0]) for position in self.positions]

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

    def derived(self, fun: Any, dots: Sequence[Any], names: Sequence[str]) -> Point:
        """Return the point of a function of the leaves and of as many (co)tangents."""
        made = Point(fun, (*self.values, *dots), analytic=False)
        made.__name__ = self.__name__
        made.names = [*self.names, *names]
        return made

    @staticmethod
    def floating(out: Any) -> tuple[Any, ...]:
        """Return the floating leaves of an output."""
        return tuple(leaf for leaf in tree.leaves(out) if is_floating(leaf))

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        """Return the floating outputs for other floating leaves."""
        return self.floating(self.fun(*self.rebuild(values)))

    @functools.cached_property
    def precision(self) -> Any:
        """The type of the narrowest real number among the leaves."""
        return min((real_type(x) for x in self.values), key=lambda kind: np.finfo(kind).bits)

    @functools.cached_property
    def wide(self) -> list[Any]:
        """The leaves in double precision, or as they are if the function does not take them so."""
        if self.precision in (np.float64, np.longdouble):
            return self.values
        wide = [widened(x) for x in self.values]
        try:
            self(*wide)
        except Exception:  # whatever it may be, the function has the first say
            return self.values
        return wide

    def random_dots(self, rng: np.random.Generator) -> list[Any]:
        """Return a random direction."""
        return [random_like(rng, x) for x in self.values]

    def differences(self, dots: Sequence[Any], eps: float | None) -> npt.NDArray[Any]:
        """Return the directional derivative of all outputs, in one vector."""
        wide = self.wide
        if wide is not self.values:
            dots = [widened(dot) for dot in dots]
        with np.errstate(all="ignore"):
            found = extrapolated(self, wide, dots, eps)
            exact = self._complex_step(wide, dots) if self.analytic else None
            if exact is not None and np.allclose(exact, found, rtol=1e-5, atol=1e-7):
                return exact
        return found

    def _complex_step(self, values: Any, dots: Any) -> npt.NDArray[Any] | None:
        """Return the derivative by a step into the complex plane, or None if that cannot be."""
        if any(dtype_of(x).kind == "c" for x in values):
            return None
        step = 1e-30
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                out = self(*(moved(x, dot, 1j * step) for x, dot in zip(values, dots, strict=True)))
        except Exception:  # not a function of complex numbers
            return None
        exact: npt.NDArray[Any] = vector(out).imag / step
        return exact


# Differences


def extrapolated(point: Point, values: Any, dots: Any, eps: float | None) -> npt.NDArray[Any]:
    """Extrapolate central differences to step 0, each element by itself.

    Near the edge of its domain a function is finite, or smooth, at small steps only: where the
    usual ones are no use, smaller ones follow. An element that is finite at none of them is NaN.
    """
    kind = point.precision if values is point.values else np.float64
    largest, count = _STEPS.get(kind, _STEPS[np.float64])
    step = largest if eps is None else eps
    best: Any = np.nan
    least: Any = np.inf
    settled: Any = np.False_  # what the usual steps found: smaller ones could only add rounding
    rounding = np.finfo(point.precision).eps
    enough = max(1e-4, rounding**0.4)
    before: list[Any] = []
    taken, last = 0, count
    while taken < last and (taken < count or _moves(values, dots, step, rounding)):
        ahead = vector(point(*(moved(x, dot, step) for x, dot in zip(values, dots, strict=True))))
        back = vector(point(*(moved(x, dot, -step) for x, dot in zip(values, dots, strict=True))))
        row = [(ahead - back) / (2 * step)]
        factor = 1.0
        for finer, coarser in zip(row, before, strict=False):  # the row grows on the way
            factor *= _RATIO**2  # the error is a series in the square of the step
            row.append(finer + (finer - coarser) / (factor - 1))
            error = np.maximum(np.abs(row[-1] - finer), np.abs(row[-1] - coarser))
            better = (error < least) & ~settled
            if taken >= count:
                better &= error > 0  # so small steps agree exactly where they are rounded away
            best, least = np.where(better, row[-1], best), np.where(better, error, least)
        if np.all((least <= _ENOUGH * (1 + np.abs(best))) | settled):
            break
        before = row
        step /= _RATIO
        taken += 1
        if taken >= count:
            settled = settled | (least <= enough * (1 + np.abs(best)))
            last = count if np.all(settled) else _MOST
    return np.broadcast_to(best, row[0].shape)


def _moves(values: Any, dots: Any, step: float, rounding: float) -> bool:
    """Tell whether a step is above the rounding of at least one of the elements it is added to."""
    least = rounding**0.6 * np.abs(vector(values))
    return bool(np.any(step * np.abs(vector(dots)) > least))


def moved(x: Any, dot: Any, step: Any) -> Any:
    moved = x + step * dot
    return np.asarray(moved) if isinstance(x, np.ndarray) else moved  # 0-d: + makes a scalar


def vector(leaves: Sequence[Any]) -> npt.NDArray[Any]:
    """Join all elements into one vector, in double precision."""
    if not leaves:
        return np.zeros(0)
    parts = [np.ravel(leaf) for leaf in leaves]
    return np.concatenate([part.astype(widened(part[:0]).dtype) for part in parts])


def pieces(vector: npt.NDArray[Any], leaves: Sequence[Any]) -> Iterator[Any]:
    """Part a vector into arrays of the shapes of `leaves`."""
    start = 0
    for leaf in leaves:
        shape = shape_of(leaf)
        stop = start + math.prod(shape)
        piece = np.reshape(vector[start:stop], shape)
        yield (piece.real if dtype_of(leaf).kind == "f" else piece)[()]
        start = stop


def is_floating(leaf: Any) -> bool:
    return is_differentiable(leaf) is True


def real_type(x: Any) -> Any:
    return np.finfo(dtype_of(x)).dtype.type


def widened(x: Any) -> Any:
    dtype = dtype_of(x)
    if dtype.itemsize >= (16 if dtype.kind == "c" else 8):
        return x
    return x.astype(np.complex128 if dtype.kind == "c" else np.float64)


def random_like(rng: np.random.Generator, x: Any) -> Any:
    """Return normal variates of the shape, dtype and kind of `x`."""
    made: Any = rng.normal(size=shape_of(x))
    if dtype_of(x).kind == "c":
        made = made + 1j * rng.normal(size=shape_of(x))
    return like(np.asarray(made), x, set())


def argument(path: Any) -> str:
    inner = tree.keystr(path[1:])
    return f"argument {path[0].idx}" + (f" at {inner}" if inner else "")


def checked_function(f: Any, name: str, argument: str = "f") -> Any:
    if not callable(f):
        raise ArgumentError(
            f"{argument} of {name} must be a function, got {describe(f)}",
            where=user_line(),
            fix=f"write {name}(f, (x,)), with f itself, not what it returns"
            if argument == "f"
            else "give the function that computes the derivative of f",
        )
    return f


def checked_args(args: Any, name: str) -> tuple[Any, ...]:
    if not isinstance(args, list | tuple):
        raise ArgumentError(
            f"args of {name} must be a tuple or list with one item for each argument, "
            f"got {describe(args)}",
            where=user_line(),
            fix=f"write {name}(f, (x,))",
        )
    return tuple(args)
