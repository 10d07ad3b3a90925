"""`implicit_diff`: derivatives for a solver that is a function of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from funcgrad import tree
from funcgrad.core.level import TracerBase, traced_here, traces_in_progress
from funcgrad.errors import ArgumentError, TracerLeakError, user_line
from funcgrad.implicit.attaching import attach
from funcgrad.implicit.plain import detached_leaf, is_conversion, solved, unknowns_of
from funcgrad.implicit.systems import system_by
from funcgrad.transforms.calls import Leaves
from funcgrad.transforms.flat import Transformed, call_origin, check_callable, is_differentiable
from funcgrad.transforms.reverse import argument_numbers
from funcgrad.transforms.stop import stop_gradient
from funcgrad.transforms.stripping import Picks, differentiating, examples_of

__all__ = ["implicit_diff"]


def implicit_diff(
    optimality: Callable[..., Any],
    has_aux: bool = False,
    argnums: int | Sequence[int] | None = None,
    solve: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a decorator that gives a solver the derivative of what it solves.

    Parameters
    ----------
    optimality : callable
        ``optimality(x, *args)`` is zero at the solution: as many equations as unknowns, in any
        structure. Of a minimum it is the gradient: ``fg.grad(objective)``. Of a fixed point of g,
        ``g(x, *args) - x``.
    has_aux : bool
        The solver returns a pair: the solution, and whatever else is wanted, which carries no
        derivative.
    argnums : int or sequence of int, optional
        Of which of `args` to take derivatives, counted from 0 for the first of them, as
        `optimality` gets them after x. By default of all.
    solve : callable, optional
        ``solve(matvec, b)`` solves the linear systems of the derivative, for the Jacobian and for
        its transpose: `matvec` takes and returns vectors of real numbers like `b`, plain ones. By
        default the Jacobian is written out, and the system solved exactly.

    Returns
    -------
    callable
        Decorator of a ``solver(init, *args, **options)`` that returns the solution x. The solver
        gets plain arrays whatever is traced, so it may be any code, such as SciPy's. The
        derivative by `init` is zero; options given by keyword are not differentiated, and not
        handed to `optimality`.

    Raises
    ------
    ShapeError
        There are not as many equations as unknowns.
    SingularJacobianError
        The solution has no derivative, as the Jacobian of `optimality` by x is singular.
    TracerLeakError
        The solver uses a traced value that is not among its arguments.

    See Also
    --------
    custom_root : the same for an equation that closes over what it depends on.
    funcgrad.scipy.optimize : SciPy's solvers, which have their derivatives.

    Notes
    -----
    The derivative is that of the implicit function theorem, as in [1]_: forward, in reverse, and
    of any order. It is as good as the solution: where `optimality` is not quite zero, the
    derivative is that at the point returned. Under `vmap` the solver is run for each example.

    References
    ----------
    .. [1] M. Blondel, Q. Berthet, M. Cuturi, R. Frostig, S. Hoyer, F. Llinares-López, F. Pedregosa,
       and J.-P. Vert, *Efficient and Modular Implicit Differentiation*, NeurIPS 2022.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> def objective(w, x, y, penalty):
    ...     return np.sum((x @ w - y) ** 2) + penalty * np.sum(w**2)
    >>> @fg.implicit_diff(fg.grad(objective))
    ... def ridge(init, x, y, penalty):
    ...     return np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ y)
    >>> x, y = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, 2.0])
    >>> ridge(np.zeros(2), x, y, 1.0)
    array([0.5, 0.8])
    >>> fg.jacobian(ridge, argnums=3)(np.zeros(2), x, y, 1.0)
    array([-0.25, -0.16])
    """
    check_callable("implicit_diff", optimality)
    if solve is not None:
        check_callable("implicit_diff", solve)
    if argnums is not None:
        argument_numbers(argnums, None, "implicit_diff")

    def decorate(solver: Callable[..., Any]) -> Callable[..., Any]:
        return _Implicit(solver, optimality, has_aux, argnums, solve)

    return decorate


class _Implicit(Transformed):
    transform = "implicit_diff"

    def __init__(
        self,
        solver: Callable[..., Any],
        optimality: Callable[..., Any],
        has_aux: bool,
        argnums: int | Sequence[int] | None,
        solve: Callable[..., Any] | None,
    ):
        options = {
            "optimality": optimality,
            "has_aux": has_aux,
            "argnums": argnums,
            "solve": solve,
        }
        super().__init__(_Implicit, solver, options)
        self.optimality = optimality
        self.has_aux = has_aux
        self.argnums = argnums
        self.solve = solve

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Solve."""
        if not args:
            raise ArgumentError(
                f"{self.fun.__name__} takes its arguments by position: the initial guess comes "
                "first",
                where=user_line(),
                fix="write solver(init, *args)",
            )
        if not traces_in_progress():
            return self.fun(*args, **options)
        origin = call_origin("implicit_diff", self.fun)
        args = (args[0], *self._wanted(args[1:]))
        leaves, treedef = tree.flatten((args, options))

        def run(picks: Picks) -> Any:
            plain, own = tree.unflatten(treedef, [detached_leaf(leaf, picks) for leaf in leaves])
            try:
                made = self.fun(*plain, **own)
            except Exception as error:
                if not is_conversion(error):
                    raise
                raise TracerLeakError(
                    f"the solver {origin.name} uses a traced value that is not among its arguments",
                    where=user_line(),
                    fix="pass it as an argument, which optimality then gets too",
                ) from error
            return made if self.has_aux else (made, None)

        def traces() -> list[Any]:
            return examples_of(leaves)

        x, aux = solved(_checking(run, origin.name), traces, (args[0], None), at_once=False)
        where = user_line()
        values, x_treedef = unknowns_of(x, "the solution", origin.name, where)

        def residual(xs: Leaves) -> Leaves:
            made = tree.leaves(self.optimality(tree.unflatten(x_treedef, xs), *args[1:]))
            return [leaf for leaf in made if is_differentiable(leaf)]

        x = tree.unflatten(x_treedef, attach(residual, values, system_by(self.solve), origin))
        return (x, aux) if self.has_aux else x

    def _wanted(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return `args` without the derivatives of those that are not in `argnums`."""
        if self.argnums is None:
            return args
        numbers = (self.argnums,) if isinstance(self.argnums, int) else tuple(self.argnums)
        for number in numbers:
            if not -len(args) <= number < len(args):
                raise ArgumentError(
                    f"argnums={number} of implicit_diff is out of range: {self.fun.__name__} was "
                    f"called with {len(args)} arguments after the initial guess",
                    where=user_line(),
                    fix="count from 0, for the first argument after the initial guess",
                )
        wanted = {number % len(args) for number in numbers}
        return tuple(
            arg if number in wanted else stop_gradient(arg) for number, arg in enumerate(args)
        )


def _checking(run: Callable[[Picks], Any], name: str) -> Callable[[Picks], Any]:
    """Make a solver say so if its result depends on a traced value that it was not given."""

    @functools.wraps(run)
    def checked(picks: Picks) -> Any:
        made = run(picks)
        for leaf in tree.leaves(made):
            if isinstance(leaf, TracerBase) and differentiating([leaf]) is not None:
                raise TracerLeakError(
                    f"the solver {name} uses a traced value that is not among its arguments",
                    where=f"{user_line()}; it returned {traced_here(leaf)}",
                    fix="pass it as an argument, which optimality then gets too",
                )
        return made

    return checked
