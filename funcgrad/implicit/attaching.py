"""The derivative of a solution, by the equation that it solves.

The one idea: x solves r(x) = 0, whatever else the function r refers to. So when something of that
moves by which r at the solution moves by r_dot, the solution moves by -J^-1 r_dot, with J the
derivative of r at x: the implicit function theorem. `attach` computes r at the solution, where r is
zero, but is traced by whoever differentiates something that r refers to. It takes r for the
argument of a function that returns x, and that has -J^-1 for its derivative. So there is no need to
know what r refers to.

One level of differentiation is attached after the other, the lowest first. J is itself computed
with derivatives of lower levels, so that derivatives of any order come out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core.level import Origin, Trace, traces_in_progress
from funcgrad.core.zero import fit
from funcgrad.transforms.batching import shared
from funcgrad.transforms.calls import CallingTrace, Leaves, Linear, Rules, aval_of, call, taped
from funcgrad.transforms.custom_rules import filled
from funcgrad.transforms.forward import note
from funcgrad.transforms.stripping import (
    differentiating,
    enclosing,
    only_below,
    rewrapped,
    stripped,
    within,
)

__all__ = ["Residual", "System", "attach"]

# From the unknowns' leaves, all floating, to those of the residual, all floating too.
Residual = Callable[[Leaves], Leaves]


class System:
    """The linear system ``J x_dot = r_dot`` at a solution.

    Parameters
    ----------
    residual : callable
        The equation, without whatever is traced by `trace` or above.
    values : list
        The solution.
    outs : list
        Leaves like those of the residual there.
    trace : Trace
        On whose behalf.
    """

    def __init__(
        self, residual: Residual, values: Leaves, outs: Leaves, trace: Trace, origin: Origin
    ):
        self.residual = residual
        self.values = values
        self.outs = outs
        self.trace = trace
        self.origin = origin

    def pushing(self) -> Linear:
        """Return the function that solves ``J x_dot = r_dot`` for `x_dot`."""
        raise NotImplementedError

    def pulling(self) -> Linear:
        """Return the function that solves ``J^T r_bar = x_bar`` for `r_bar`."""
        raise NotImplementedError

    def jacobian(self) -> Linear:
        """Return the product with J."""
        _, push, _ = note(self.residual, (self.values,), ["the solution"], self.origin)
        avals = [aval_of(value) for value in self.values]

        def product(dots: Leaves) -> Leaves:
            fitted = [
                fit(dot, aval.shape, aval.dtype)
                for dot, aval in zip(dots, avals, strict=True)
                if aval is not None
            ]
            made: Leaves = push(fitted)
            return made

        return product

    def transposed(self) -> Linear:
        """Return the product with the transpose of J."""
        zeros = filled([None] * len(self.values), [aval_of(value) for value in self.values])
        avals = [aval_of(value) for value in self.values]
        _, pull = taped(self.jacobian(), zeros, self.trace)

        def product(bars: Leaves) -> Leaves:
            return filled(pull(bars), avals)

        return product


class _Solution(Rules):
    """A function of the residual that returns the solution, with its derivative."""

    def __init__(
        self,
        values: Leaves,
        system: Callable[[Trace, Leaves], System],
        name: str,
        equation: Residual,
    ):
        self.values = values
        self.system = system
        self.name = name
        self.equation = equation
        self.fixed: Sequence[bool] = ()
        # `checkpoint` asks again, when what the residual refers to can no longer be used.
        self.solves: dict[str, Linear] = {}

    def run(self, leaves: Leaves) -> tuple[Leaves, Any]:
        """Return the solution."""
        return self.values, None

    def vjp(self, trace: Trace, leaves: Leaves, wanted: Sequence[bool]) -> tuple[Leaves, Any, Any]:
        """Return the solution, and ``-J^-T``."""
        if "pull" not in self.solves:
            self.solves["pull"] = _seen(self.system(trace, leaves).pulling(), trace)
        solve = self.solves["pull"]
        avals = [aval_of(value) for value in self.values]

        def pull(bars: Leaves) -> Leaves:
            return list(map(_negated, solve(filled(bars, avals))))

        return self.values, None, pull

    def jvp(self, trace: Trace, leaves: Leaves, dots: Leaves) -> tuple[Leaves, Any, Leaves]:
        """Return the solution and its tangent."""
        outs, treedef, push = self.linear(trace, leaves, ())
        return outs, treedef, push(dots)

    def linear(
        self, trace: Trace, leaves: Leaves, wanted: Sequence[bool]
    ) -> tuple[Leaves, Any, Any]:
        """Return the solution, and ``-J^-1``."""
        if "push" not in self.solves:
            self.solves["push"] = _seen(self.system(trace, leaves).pushing(), trace)
        solve = self.solves["push"]
        avals = [aval_of(leaf) for leaf in leaves]

        def push(dots: Leaves) -> Leaves:
            return list(map(_negated, solve(filled(dots, avals))))

        return self.values, None, push


def _seen(solve: Linear, trace: Trace) -> Linear:
    """Let results for a trace inside of a function that is stripped be seen by that."""
    outer = enclosing()
    if outer is None or outer.level > trace.level:
        return solve

    def solving(dots: Leaves) -> Leaves:
        return [None if made is None else outer.enter(made) for made in solve(dots)]

    return solving


def _negated(value: Any) -> Any:
    return None if value is None else np.negative(value)


def attach(
    residual: Residual,
    values: Leaves,
    system: Callable[..., System],
    origin: Origin,
) -> Leaves:
    """Return the leaves of a solution with their derivatives.

    Parameters
    ----------
    residual : callable
        The equation: its result at `values` is zero, or nearly.
    values : list
        The solution: floating leaves that are not traced but by `vmap`.
    system : callable
        Makes a `System` of the parameters of that class.
    origin : Origin
        On whose behalf.
    """
    if not traces_in_progress():
        return values
    equation = within(residual, origin)

    def up_to(level: int, xs: Leaves) -> Leaves:
        return [only_below(out, level + 1) for out in equation(xs)]

    level = 0
    while True:
        # As constants that are traced, of which np.zeros_like(x) is one that may be assigned to.
        outs = equation(list(map(shared, values)))
        trace = differentiating(outs, above=level)
        if trace is None:
            for other in traces_in_progress():
                if isinstance(other, CallingTrace):
                    other.solves()
            return rewrapped(values)
        level = trace.level
        outs = [only_below(out, level + 1) for out in outs]
        system_of = _Maker(residual, values, system, origin)
        rules = _Solution(values, system_of, origin.transform, functools.partial(up_to, level))
        rules.fixed = [False] * len(outs)
        values, _ = call(rules, outs)


class _Maker:
    """Makes the system for the trace that asks, which is without what that traces."""

    def __init__(self, residual: Residual, values: Leaves, system: Any, origin: Origin):
        self.residual = residual
        self.values = values
        self.system = system
        self.origin = origin

    def __call__(self, trace: Trace, leaves: Leaves) -> System:
        below = stripped(self.residual, self.origin, low=trace.level)
        made: System = self.system(below, self.values, leaves, trace, self.origin)
        return made
