"""`custom_root` and `fixed_point`: solutions of equations, with their derivatives."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core.level import Origin, concrete, is_batched, looked_at
from funcgrad.core.zero import dtype_of
from funcgrad.errors import ArgumentError, ConvergenceError, describe, user_line
from funcgrad.implicit.attaching import System, attach
from funcgrad.implicit.linear import zeros_like
from funcgrad.implicit.plain import detached_leaf, like_guess, solved, unknowns_of
from funcgrad.implicit.systems import system_by
from funcgrad.transforms.calls import Leaves, Linear, taped
from funcgrad.transforms.flat import call_origin, check_callable
from funcgrad.transforms.stripping import Picks, examples_of, stripped

__all__ = ["custom_root", "fixed_point"]


def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[..., Any],
    tangent_solve: Callable[..., Any] | None = None,
    has_aux: bool = False,
) -> Any:
    """Find a root of a function by a method of your own, with the derivative of an exact root.

    Parameters
    ----------
    f : callable
        Function from a pytree to another of the same structure and shapes. It may close over
        traced values: the root is differentiated by those.
    initial_guess : pytree
        Where to start; floating or complex leaves. The derivative by it is zero.
    solve : callable
        ``solve(f, initial_guess)`` returns the root. It is called with plain arrays, so that it
        may be code that cannot be traced, such as SciPy's.
    tangent_solve : callable, optional
        ``tangent_solve(g, y)`` returns the x with ``g(x) = y``, where the linear function g is the
        derivative of `f` at the root. It must be linear in y, in NumPy code: it is transposed for
        reverse mode. By default the matrix of g is written out and the system solved exactly.
    has_aux : bool
        `solve` returns a pair: the root, and a pytree of whatever else is wanted.

    Returns
    -------
    root : pytree
        Like `initial_guess`.
    aux : pytree
        Only with `has_aux`. It carries no derivative.

    Raises
    ------
    TreeMismatchError, ShapeError
        `f` or `solve` returns something unlike `initial_guess`.
    SingularJacobianError
        The root has no derivative, as that of `f` is singular there.

    See Also
    --------
    implicit_diff : for solvers that are functions of their own.
    fixed_point : for equations ``x = f(x)``.

    Notes
    -----
    The derivative is that of the implicit function theorem [1]_, ``-(df/dx)^-1 df/da`` for
    whatever `f` depends on beside x. Nothing of what `solve` does is recorded. The rule is made of
    derivatives itself, so that there are those of any order.

    Under `vmap` `solve` is given all examples at once, and one after the other if it needs plain
    arrays.

    References
    ----------
    .. [1] S. G. Krantz and H. R. Parks, *The Implicit Function Theorem*, Birkhäuser, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from scipy.optimize import brentq
    >>> def square_root(a):
    ...     def solve(f, guess):
    ...         return brentq(f, 0.0, 10.0)
    ...     return fg.custom_root(lambda x: x * x - a, 1.0, solve, lambda g, y: y / g(1.0))
    >>> round(square_root(9.0), 9), round(fg.grad(square_root)(9.0), 9)  # 1 / (2 * 3)
    (3.0, 0.166666667)
    """
    check_callable("custom_root", f)
    check_callable("custom_root", solve)
    origin = call_origin("custom_root", f)
    name, where = f"custom_root({origin.name})", user_line()
    guess, treedef = unknowns_of(initial_guess, "the initial guess", name, where)

    def residual(xs: Leaves) -> Leaves:
        made = f(tree.unflatten(treedef, xs))
        return like_guess(made, treedef, guess, "the result of f", name, where)

    def run(picks: Picks) -> Any:
        start = tree.unflatten(treedef, [detached_leaf(leaf, picks) for leaf in guess])
        made = solve(stripped(f, origin, picks=picks), start)
        return made if has_aux else (made, None)

    def traces() -> list[Any]:
        return examples_of([*guess, *residual([detached_leaf(leaf, {}) for leaf in guess])])

    x, aux = solved(run, traces, (initial_guess, None))
    values = like_guess(x, treedef, guess, "the root", name, where)
    make: Any = system_by(None)
    if tangent_solve is not None:
        make = functools.partial(_Tangent, tangent_solve, treedef)
    x = tree.unflatten(treedef, attach(residual, values, make, origin))
    return (x, aux) if has_aux else x


class _Tangent(System):
    """Solves by the function that the user gave to `custom_root`."""

    def __init__(self, solve: Callable[..., Any], treedef: Any, *args: Any):
        super().__init__(*args)
        self.solve = solve
        self.treedef = treedef

    def pushing(self) -> Linear:
        """Solve as the user says."""
        product = self.jacobian()

        def g(x: Any) -> Any:
            return tree.unflatten(self.treedef, product(self.treedef.flatten_up_to(x)))

        def solving(dots: Leaves) -> Leaves:
            made = self.solve(g, tree.unflatten(self.treedef, dots))
            name = f"custom_root({self.origin.name})"
            what = "the result of tangent_solve"
            return like_guess(made, self.treedef, self.values, what, name, user_line())

        return solving

    def pulling(self) -> Linear:
        """Transpose that."""
        return taped(self.pushing(), zeros_like(self.outs), self.trace)[1]


def fixed_point(
    f: Callable[..., Any],
    init: Any,
    *args: Any,
    tol: float | None = None,
    maxiter: int = 1000,
    solve: Callable[..., Any] | None = None,
) -> Any:
    """Iterate a function to its fixed point, with the derivative of an exact one.

    Parameters
    ----------
    f : callable
        ``f(x, *args)`` returns the next x: of the same structure and shapes.
    init : pytree
        Where to start; floating or complex leaves. The derivative by it is zero.
    *args : pytree
        What else `f` takes. The fixed point is differentiated by these, and by traced values
        that `f` closes over.
    tol : float, optional
        The iteration ends when no element moves by more than ``tol * (1 + the largest element)``.
        By default the machine epsilon to the power 3/4, of the coarsest dtype in x: 1.8e-12 for
        float64, 6.4e-6 for float32.
    maxiter : int
        How often to call `f` at most.
    solve : callable, optional
        ``solve(matvec, b)`` solves the linear systems of the derivative. See `implicit_diff`.

    Returns
    -------
    pytree
        The last iterate, like `init`, with the dtypes that `f` returns.

    Raises
    ------
    ConvergenceError
        `maxiter` calls were not enough, or x became NaN or infinite.
    TreeMismatchError, ShapeError
        `f` returns something unlike `init`.
    SingularJacobianError
        The fixed point has no derivative.

    See Also
    --------
    custom_root : with a method of your own.

    Notes
    -----
    The derivative solves ``(1 - df/dx) x_dot = df/da a_dot``, as the implicit function theorem
    says [1]_; the iteration is not recorded, and memory does not grow with its length. If the
    iteration is a contraction by q, the error is about ``q / (1 - q)`` times the last step.

    Under `vmap` each example ends by itself, with the value that it has alone.

    References
    ----------
    .. [1] S. G. Krantz and H. R. Parks, *The Implicit Function Theorem*, Birkhäuser, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> def square_root(a):  # by Heron's rule
    ...     return fg.fixed_point(lambda x, a: (x + a / x) / 2, 1.0, a)
    >>> round(float(square_root(9.0)), 6), round(fg.grad(square_root)(9.0), 6)
    (3.0, 0.166667)
    """
    check_callable("fixed_point", f)
    if tol is not None and not tol >= 0:
        raise ArgumentError(
            f"tol of fixed_point must be at least 0, got {describe(tol)}",
            where=user_line(),
            fix="write tol=1e-9, or leave it away",
        )
    origin = call_origin("fixed_point", f)
    name, where = f"fixed_point({origin.name})", user_line()
    start, treedef = unknowns_of(init, "the initial guess", name, where)

    def step(xs: Leaves) -> Leaves:
        made = f(tree.unflatten(treedef, xs), *args)
        return like_guess(made, treedef, start, "the result of f", name, where)

    def residual(xs: Leaves) -> Leaves:
        return [np.subtract(y, x) for x, y in zip(xs, step(xs), strict=True)]

    def run(picks: Picks) -> Leaves:
        xs = [detached_leaf(leaf, picks) for leaf in start]
        return _iterate(stripped(step, origin, picks=picks), xs, tol, maxiter, origin)

    def traces() -> list[Any]:
        return examples_of([*start, *step([detached_leaf(leaf, {}) for leaf in start])])

    values = solved(run, traces, start)
    return tree.unflatten(treedef, attach(residual, values, system_by(solve), origin))


def _iterate(
    step: Callable[[Leaves], Leaves], xs: Leaves, tol: float | None, maxiter: int, origin: Origin
) -> Leaves:
    done: Any = False
    for _ in range(maxiter):
        new = step(xs)
        if tol is None:
            tol = max(float(np.finfo(dtype_of(x)).eps) for x in new) ** 0.75
        if is_batched(done):  # examples that are done stay what they are
            new = [np.where(done, x, y) for x, y in zip(xs, new, strict=True)]
        size = _largest(new)
        if not np.all(np.isfinite(concrete(size))):
            raise ConvergenceError(
                f"the iteration of fixed_point({origin.name}) became NaN or infinite",
                where=str(origin),
                fix="start nearer to the fixed point, or mix old and new x: "
                "0.5 * (x + f(x)) has the same fixed points",
            )
        moved = _largest([np.subtract(y, x) for x, y in zip(xs, new, strict=True)])
        done = np.logical_or(done, np.less_equal(moved, tol * (1.0 + size)))
        xs = new
        if np.all(looked_at(done, "the end of the iteration")):
            return xs
    raise ConvergenceError(
        f"fixed_point({origin.name}) did not converge in {maxiter} iterations",
        where=str(origin),
        fix="give it a larger maxiter= or tol=, or see whether f is a contraction",
    )


def _largest(leaves: Leaves) -> Any:
    """Return the largest absolute value, of each example."""
    largest: Any = 0.0
    for leaf in leaves:
        largest = np.maximum(largest, np.max(np.abs(leaf), initial=0.0))
    return largest
