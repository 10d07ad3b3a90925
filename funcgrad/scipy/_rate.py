"""The right-hand side of a differential equation, and the equations derived from it.

A *rate* is called as ``rate(y, t, *leaves)``, with whatever it depends on among its arguments, and
gives dy/dt as a vector. `Rate` is the user's function with the traced leaves of its `args` taken
out; `Sensitivity` and `Adjoint` are the rates of a state that holds tangents, or cotangents, beside
`y`, and are made of another rate by `jvp` and `vjp`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core.level import TracerBase, traced_here
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import ArgumentError, TracerConversionError, user_line
from funcgrad.transforms.forward import jvp
from funcgrad.transforms.reverse import vjp

__all__ = [
    "Adjoint",
    "Rate",
    "Sensitivity",
    "flat",
    "guarded",
    "is_moving",
    "rate_of",
    "size_of",
    "unflat",
]


def is_moving(leaf: Any) -> bool:
    """Tell whether a leaf is floating, and so has derivatives."""
    return dtype_of(leaf).kind in "fc"


# Leaves in one vector of real numbers


def flat(leaf: Any) -> Any:
    """Return the elements of a leaf in one row; of complex ones the real and imaginary parts."""
    if dtype_of(leaf).kind == "c":
        return np.concatenate([np.ravel(np.real(leaf)), np.ravel(np.imag(leaf))])
    return np.ravel(leaf)


def size_of(leaf: Any) -> int:
    """Return the length of `flat` of it."""
    count = 1
    for length in shape_of(leaf):
        count *= length
    return 2 * count if dtype_of(leaf).kind == "c" else count


def unflat(row: Any, shape: tuple[int, ...], is_complex: bool) -> Any:
    """Undo `flat`."""
    if is_complex:
        half = shape_of(row)[0] // 2
        row = row[:half] + 1j * row[half:]
    return np.reshape(row, shape)


# The user's function


def _tracer_in(out: Any) -> TracerBase | None:
    for value in out if isinstance(out, list | tuple) else (out,):
        # Constant arrays that are made by funcgrad.numpy in a transform may be converted.
        if isinstance(value, TracerBase) and value._trace.level:
            return value
    return None


def _closed_over(name: str, what: str) -> ArgumentError:
    return ArgumentError(
        f"the function given to {name} uses a traced value that is not among its arguments",
        where=f"{user_line()}; {what}",
        fix=f"pass it in args: {name}(func, ..., args=(x,)) with func(..., x)",
    )


def guarded(func: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Make a function that SciPy calls say what is wrong if a traced value comes out of it."""

    def plain(*args: Any) -> Any:
        try:
            out = func(*args)
        except TracerConversionError as error:
            raise _closed_over(name, error.where) from error
        found = None if type(out) is np.ndarray else _tracer_in(out)
        if found is not None:
            raise _closed_over(name, f"it returned {traced_here(found)}")
        return out

    return plain


class Rate:
    """The user's function, of which some leaves of `args` are traced."""

    def __init__(
        self,
        func: Callable[..., Any],
        jacobian: Callable[..., Any] | None,
        args: tuple[Any, ...],
        tfirst: bool,
    ):
        self.func = func
        self.jacobian = jacobian
        self.tfirst = tfirst
        leaves, self.treedef = tree.flatten(args)
        self.places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, TracerBase)]
        self.fixed = [None if isinstance(leaf, TracerBase) else leaf for leaf in leaves]

    def _args(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        every = list(self.fixed)
        for place, leaf in zip(self.places, leaves, strict=True):
            every[place] = leaf
        args: tuple[Any, ...] = tree.unflatten(self.treedef, every)
        return args

    def for_scipy(self, leaves: Sequence[Any]) -> dict[str, Any]:
        """Return the arguments of `scipy.integrate.odeint` that say what to integrate."""
        func = guarded(self.func, "odeint")
        return {
            "func": func,
            "args": self._args(leaves),
            "Dfun": self.jacobian,
            "tfirst": self.tfirst,
        }

    def __call__(self, y: Any, t: Any, *leaves: Any) -> Any:
        args = self._args(leaves)
        out = self.func(t, y, *args) if self.tfirst else self.func(y, t, *args)
        return _vector(out, shape_of(y))


def rate_of(
    func: Callable[..., Any], jacobian: Callable[..., Any] | None, args: Any, tfirst: bool
) -> tuple[Rate, list[Any]]:
    """Return the rate, and the traced leaves that it is to be called with."""
    traced = [leaf for leaf in tree.leaves(args) if isinstance(leaf, TracerBase)]
    return Rate(func, jacobian, args, tfirst), traced


def _vector(out: Any, shape: tuple[int, ...]) -> Any:
    """Return what a function returned, a list perhaps, as a vector of float64."""
    if isinstance(out, list | tuple):
        out = np.stack(out) if _tracer_in(out) is not None else np.asarray(out)
    elif not isinstance(out, TracerBase):
        out = np.asarray(out)
    if shape_of(out) != shape:
        out = np.reshape(out, shape)
    return out if dtype_of(out) == np.float64 else out.astype(np.float64)


class _Derived:
    """A rate made of another one, which SciPy calls with its leaves in place."""

    def for_scipy(self, leaves: Sequence[Any]) -> dict[str, Any]:
        """Return the arguments of `scipy.integrate.odeint` that say what to integrate."""
        return {"func": self, "args": tuple(leaves)}

    def __call__(self, state: Any, t: Any, *leaves: Any) -> Any:
        raise NotImplementedError


class Sensitivity(_Derived):
    """The rate of ``(y, y_dot)``: the sensitivity equations.

    Its leaves are those of `rate`, and the tangents of those at `moving`.
    """

    def __init__(self, rate: Any, n: int, count: int, moving: Sequence[int]):
        self.rate = rate
        self.n = n
        self.count = count
        self.moving = moving

    def __call__(self, state: Any, t: Any, *leaves: Any) -> Any:
        """Return the rates of change of both."""
        dots: list[Any] = [None] * self.count
        for k, dot in zip(self.moving, leaves[self.count :], strict=True):
            dots[k] = dot

        def at_t(y: Any, *own: Any) -> Any:
            return self.rate(y, t, *own)

        y, y_dot = state[: self.n], state[self.n :]
        out, out_dot = jvp(at_t, (y, *leaves[: self.count]), (y_dot, *dots))
        return np.concatenate([out, out_dot])


class Adjoint(_Derived):
    """The rate of ``(y, y_bar, theta_bar)``: the adjoint equations.

    ``d y_bar / dt = -y_bar df/dy`` and ``d theta_bar / dt = -y_bar df/dtheta``, with the floating
    leaves `theta`.
    """

    def __init__(self, rate: Any, n: int):
        self.rate = rate
        self.n = n

    def __call__(self, state: Any, t: Any, *leaves: Any) -> Any:
        """Return the rates of change of all three."""
        moving = [k for k, leaf in enumerate(leaves) if is_moving(leaf)]

        def at_t(y: Any, *some: Any) -> Any:
            every = list(leaves)
            for k, leaf in zip(moving, some, strict=True):
                every[k] = leaf
            return self.rate(y, t, *every)

        y, y_bar = state[: self.n], state[self.n : 2 * self.n]
        out, pullback = vjp(at_t, y, *(leaves[k] for k in moving))
        bars = pullback(y_bar)
        return np.concatenate([out, *(-flat(bar) for bar in bars)])
