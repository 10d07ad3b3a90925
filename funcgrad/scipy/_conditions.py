"""What surrounds the function in an optimization: bounds, constraints and callbacks.

Users give them for pytrees like x0; SciPy gets them for its vector.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from scipy import optimize
from scipy.sparse.linalg import LinearOperator

from funcgrad import tree
from funcgrad.core.zero import shape_of
from funcgrad.errors import TreeMismatchError, user_line
from funcgrad.scipy._unknowns import Unknowns, join, join_traced
from funcgrad.transforms.derived import jacobian
from funcgrad.transforms.forward import linearize
from funcgrad.transforms.reverse import grad

__all__ = ["boxed", "callback_of", "constraints_of", "limits", "pinned", "rows_of"]

# How far from a bound a solution counts as being there, relative to 1 or the bound.
_SLACK = 1e-6


def limits(bounds: Any, unknowns: Unknowns, what: str) -> Any:
    """Return bounds as SciPy's, for the vector."""
    if bounds is None:
        return None
    if isinstance(bounds, optimize.Bounds):
        shape = unknowns.shapes[0] if len(unknowns.shapes) == 1 else (unknowns.size,)
        sides = [np.broadcast_to(side, shape).ravel() for side in (bounds.lb, bounds.ub)]
        return optimize.Bounds(*sides, bounds.keep_feasible)
    if unknowns.is_alone:
        if len(bounds) == 2 and all(x is None or not np.ndim(x) for x in bounds):
            bounds = [tuple(bounds)] * unknowns.size
        return bounds
    try:
        parts = unknowns.treedef.flatten_up_to(bounds)
    except TreeMismatchError as error:
        if np.shape(bounds) == (unknowns.size, 2):
            return bounds
        raise type(error)(
            f"{what} do not have the structure of x0",
            where=f"{error.where.replace('the tree', 'bounds', 1)}; {user_line()}",
            fix="give a pair (low, high), or None, for each leaf of x0",
        ) from None
    lows, highs = [], []
    low: Any
    high: Any
    for part, shape in zip(parts, unknowns.shapes, strict=True):
        low, high = (None, None) if part is None else part
        lows.append(np.broadcast_to(-np.inf if low is None else low, shape))
        highs.append(np.broadcast_to(np.inf if high is None else high, shape))
    return optimize.Bounds(join(lows), join(highs))


def constraints_of(constraints: Any, unknowns: Unknowns) -> Any:
    """Return constraints on the vector, with exact Jacobians."""
    if isinstance(constraints, list | tuple):
        return [_constraint(one, unknowns) for one in constraints]
    return _constraint(constraints, unknowns)


def _constraint(one: Any, unknowns: Unknowns) -> Any:
    if isinstance(one, dict):
        args = one.get("args", ())
        made = {key: value for key, value in one.items() if key != "args"}
        made["fun"], exact = _joined(one["fun"], unknowns, args)
        jac = one.get("jac")
        made["jac"] = exact if jac is None else rows_of(jac, unknowns, args)
        return made
    if isinstance(one, optimize.NonlinearConstraint):
        fun, exact = _joined(one.fun, unknowns, ())
        jac = one.jac
        hess = one.hess
        # SciPy's defaults; who wants them has to give something else that says so.
        if isinstance(hess, optimize.BFGS):
            hess = _curvature(fun)
        if isinstance(jac, str) and jac == "2-point":
            jac = exact
        elif callable(jac):
            jac = rows_of(jac, unknowns, ())
        if callable(one.hess):
            hess = _weighed(one.hess, unknowns)
        return optimize.NonlinearConstraint(
            fun, one.lb, one.ub, jac, hess, one.keep_feasible, one.finite_diff_rel_step
        )
    return one


def _joined(fun: Any, unknowns: Unknowns, args: Any) -> tuple[Any, Any]:
    """Return a function of the vector, with all that it returns in one, and its Jacobian."""

    def of_vector(vector: Any) -> Any:
        return join_traced(tree.leaves(fun(unknowns.tree(vector), *args)))

    return of_vector, jacobian(of_vector)


def _curvature(fun: Any) -> Any:
    """Return products with the Hessian of the weighed sum of constraints."""

    def of_vector(vector: Any, weights: Any) -> Any:
        def slope(x: Any) -> Any:
            return grad(lambda y: np.sum(fun(y) * weights))(x)

        push = linearize(slope, vector)[1]
        size = len(vector)

        def product(p: Any) -> Any:
            return push(np.ravel(p).astype(float))

        return LinearOperator((size, size), matvec=product, dtype=float)

    return of_vector


def rows_of(jac: Any, unknowns: Unknowns, args: Any) -> Any:
    """Return a Jacobian of the user's as a matrix, one row for each element of the constraint."""

    def of_vector(vector: Any) -> Any:
        made = jac(unknowns.tree(vector), *args)
        if shape_of(made)[-1:] == (unknowns.size,):
            return made
        rows = unknowns.treedef.flatten_up_to(made)
        return np.concatenate(
            [
                np.reshape(row, (*shape_of(row)[: np.ndim(row) - len(shape)], -1))
                for row, shape in zip(rows, unknowns.shapes, strict=True)
            ],
            axis=-1,
        )

    return of_vector


def _weighed(hess: Any, unknowns: Unknowns) -> Any:
    def of_vector(vector: Any, weights: Any) -> Any:
        return unknowns.matrix(hess(unknowns.tree(vector), weights), "the result of hess")

    return of_vector


def callback_of(callback: Any, unknowns: Unknowns) -> Any:
    """Return a callback that SciPy calls with vectors."""
    if callback is None or unknowns.is_vector:
        return callback
    if set(inspect.signature(callback).parameters) == {"intermediate_result"}:

        def with_result(*, intermediate_result: Any) -> Any:
            shown = optimize.OptimizeResult(intermediate_result)
            shown["x"] = unknowns.tree(intermediate_result.x)
            return callback(intermediate_result=shown)

        return with_result

    def with_x(x: Any, *rest: Any) -> Any:
        return callback(unknowns.tree(x), *rest)

    return with_x


def boxed(bounds: Any, unknowns: Unknowns, what: str) -> Any:
    """Return bounds as SciPy's, of those that are given as a pair of two sides, or as ever."""
    if isinstance(bounds, tuple | list) and len(bounds) == 2:
        sides = [None if isinstance(side, dict) else np.shape(side) for side in bounds]
        if all(shape in ((), (unknowns.size,)) for shape in sides) and None not in bounds:
            low, high = (
                np.broadcast_to(np.asarray(side, float), (unknowns.size,)) for side in bounds
            )
            return optimize.Bounds(low, high)
    return limits(bounds, unknowns, what)


def pinned(equations: Any, x: Any, at: Any, box: Any, unknowns: Unknowns) -> Any:
    """Return the equations of a minimum, where elements of `at` that are at a bound stay there."""
    if box is None:
        return equations
    if not isinstance(box, optimize.Bounds):
        pairs = [(None, None) if pair is None else pair for pair in box]
        box = optimize.Bounds(
            [-np.inf if low is None else low for low, _ in pairs],
            [np.inf if high is None else high for _, high in pairs],
        )
    sides = [np.broadcast_to(side, (unknowns.size,)).astype(float) for side in (box.lb, box.ub)]
    # Some methods stay inside of the bounds, by a little.
    slack = [np.where(np.isfinite(side), _SLACK * np.maximum(1.0, abs(side)), 0) for side in sides]
    lows = tree.leaves(unknowns.tree(sides[0] + slack[0]))
    highs = tree.leaves(unknowns.tree(sides[1] - slack[1]))
    made = [
        np.where(np.logical_or(value <= low, value >= high), part - value, equation)
        for equation, part, value, low, high in zip(
            tree.leaves(equations), tree.leaves(x), tree.leaves(at), lows, highs, strict=True
        )
    ]
    return tree.unflatten(tree.structure(at), made)
