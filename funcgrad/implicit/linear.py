"""`custom_linear_solve`: the solution of a linear system, by any method, with its derivative."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.errors import MissingRuleError, user_line
from funcgrad.implicit.attaching import System, attach
from funcgrad.implicit.plain import detached_leaf, like_guess, solved, unknowns_of
from funcgrad.transforms.calls import Leaves, Linear, aval_of
from funcgrad.transforms.custom_rules import filled
from funcgrad.transforms.flat import call_origin, check_callable
from funcgrad.transforms.stripping import Picks, examples_of, stripped

__all__ = ["custom_linear_solve"]


def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Callable[..., Any],
    transpose_solve: Callable[..., Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solve a linear system by a method of your own, with the derivative of an exact solution.

    Parameters
    ----------
    matvec : callable
        Linear function from a pytree like `b` to another. It may close over traced values.
    b : pytree
        The right side; floating or complex leaves.
    solve : callable
        ``solve(matvec, b)`` returns the solution. It is called with plain arrays, so that it
        may be code that cannot be traced, such as SciPy's. What it uses of the matrix it must have
        from `matvec`, not from traced values that it closes over.
    transpose_solve : callable, optional
        ``transpose_solve(vecmat, b)`` does the same for the transposed system. Reverse mode
        needs it.
    symmetric : bool
        The map is symmetric: reverse mode uses `solve`.
    has_aux : bool
        `solve` returns a pair: the solution, and a pytree of whatever else is wanted.

    Returns
    -------
    x : pytree
        The solution, like `b`.
    aux : pytree
        Only with `has_aux`. It carries no derivative.

    Raises
    ------
    MissingRuleError
        In reverse mode, without `transpose_solve` or `symmetric`.
    TreeMismatchError, ShapeError
        `matvec` or `solve` returns something unlike `b`.

    See Also
    --------
    custom_root : for equations that are not linear.

    Notes
    -----
    The derivative follows from that of the equation, so it costs one more solution, and
    nothing of what `solve` does is recorded. Transposes are without conjugation.

    Under `vmap` `solve` is given all examples at once, and one after the other if it needs plain
    arrays.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> def by_jacobi(matvec, b):
    ...     diagonal = matvec(np.ones_like(b)) - matvec(np.array([0.0, 1.0])) * [1.0, 0.0]
    ...     x = np.zeros_like(b)
    ...     for _ in range(60):
    ...         x = x + (b - matvec(x)) / [4.0, 3.0]
    ...     return x
    >>> def solution(s):
    ...     a = np.array([[4.0, 1.0], [1.0, 3.0]])
    ...     return fg.custom_linear_solve(
    ...         lambda x: s * (a @ x), np.array([1.0, 2.0]), by_jacobi, symmetric=True
    ...     )
    >>> solution(1.0).round(6)
    array([0.090909, 0.636364])
    >>> fg.jacrev(solution)(1.0).round(6)  # -x / s
    array([-0.090909, -0.636364])
    """
    for fun in (matvec, solve):
        check_callable("custom_linear_solve", fun)
    if symmetric:
        transpose_solve = solve
    origin = call_origin("custom_linear_solve", matvec)
    name, where = f"custom_linear_solve({origin.name})", user_line()
    right, treedef = unknowns_of(b, "the right side", name, where)

    def product(xs: Leaves) -> Leaves:
        made = matvec(tree.unflatten(treedef, xs))
        return like_guess(made, treedef, right, "the product", name, where)

    def residual(xs: Leaves) -> Leaves:
        return [np.subtract(ax, y) for ax, y in zip(product(xs), right, strict=True)]

    def run(picks: Picks) -> Any:
        without = stripped(matvec, origin, picks=picks)
        made = solve(without, tree.unflatten(treedef, [detached_leaf(y, picks) for y in right]))
        return made if has_aux else (made, None)

    x, aux = solved(run, lambda: examples_of(residual(zeros_like(right))), (b, None))
    values = like_guess(x, treedef, right, "the solution", name, where)
    make = functools.partial(_Linear, solve, transpose_solve, treedef, has_aux)
    x = tree.unflatten(treedef, attach(residual, values, make, origin))
    return (x, aux) if has_aux else x


def zeros_like(leaves: Leaves) -> Leaves:
    """Return plain zeros like `leaves`."""
    return filled([None] * len(leaves), [aval_of(leaf) for leaf in leaves])


class _Linear(System):
    """The system itself: its matrix is the same at every solution."""

    def __init__(self, solve: Any, transpose_solve: Any, treedef: Any, has_aux: bool, *args: Any):
        super().__init__(*args)
        self.solve = solve
        self.transpose_solve = transpose_solve
        self.treedef = treedef
        self.has_aux = has_aux

    def pushing(self) -> Linear:
        """Solve the system."""
        return self._solving(self.jacobian(), self.solve, self.transpose_solve)

    def pulling(self) -> Linear:
        """Solve the transposed one."""
        if self.transpose_solve is None:
            raise MissingRuleError(
                f"custom_linear_solve({self.origin.name}) has no transpose_solve, which reverse "
                "mode needs",
                where=f"{user_line()}, in {self.trace.origin}",
                fix="give it transpose_solve=, or symmetric=True if the map is symmetric",
            )
        return self._solving(self.transposed(), self.transpose_solve, self.solve)

    def _solving(self, product: Linear, solve: Any, transpose_solve: Any) -> Linear:
        def matvec(x: Any) -> Any:
            return tree.unflatten(self.treedef, product(self.treedef.flatten_up_to(x)))

        def solving(dots: Leaves) -> Leaves:
            b = tree.unflatten(self.treedef, dots)
            x = custom_linear_solve(matvec, b, solve, transpose_solve, has_aux=self.has_aux)
            leaves: Leaves = self.treedef.flatten_up_to(x[0] if self.has_aux else x)
            return leaves

        return solving
