"""Derivatives of solutions that SciPy finds on plain values, by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scipy import optimize

from funcgrad import tree
from funcgrad.core.level import Origin, traces_in_progress
from funcgrad.errors import MissingRuleError, user_line
from funcgrad.implicit.attaching import attach
from funcgrad.implicit.plain import detached_leaf, solved
from funcgrad.implicit.systems import system_by
from funcgrad.transforms.calls import Leaves
from funcgrad.transforms.flat import is_differentiable
from funcgrad.transforms.stripping import Picks, examples_of

__all__ = ["differentiated", "no_derivative", "with_x"]


def differentiated(
    run: Callable[[Picks, Any], tuple[Any, Any]],
    residual: Callable[[Any, Any], Any],
    guess: Any,
    given: Any,
    origin: Origin,
) -> tuple[Any, list[Any]]:
    """Solve with plain values, and return the solution with its derivatives.

    Parameters
    ----------
    run : callable
        Takes what says which example of which `vmap` to take, and the plain guess; returns the
        solution and SciPy's result.
    residual : callable
        The equation that it solves: takes a pytree like the solution, and the solution itself.
    guess : pytree
        The initial guess, perhaps traced.
    given : pytree
        What the problem may depend on, beside what its functions close over.
    origin : Origin
        On whose behalf.

    Returns
    -------
    x : pytree
        The solution.
    results : list
        SciPy's result, of each example.
    """
    results = []

    def run_one(picks: Picks) -> Any:
        start = tree.map(lambda leaf: detached_leaf(leaf, picks), guess)
        x, result = run(picks, start)
        results.append(result)
        return x

    def traces() -> list[Any]:
        if not any(trace.lead for trace in traces_in_progress()):
            return []
        start = tree.map(lambda leaf: detached_leaf(leaf, {}), guess)
        return examples_of(tree.leaves((guess, given, residual(start, start))))

    x = solved(run_one, traces, guess, at_once=False)
    values, treedef = tree.flatten(x)

    def equations(xs: Leaves) -> Leaves:
        made = tree.leaves(residual(tree.unflatten(treedef, xs), x))
        return [leaf for leaf in made if is_differentiable(leaf)]

    return tree.unflatten(treedef, attach(equations, values, system_by(None), origin)), results


def with_x(x: Any, results: Any) -> Any:
    """Return the result of one run, or of one for each example, with a solution that is traced."""
    single = len(results) == 1
    result = optimize.OptimizeResult(results[0] if single else {})
    if single:
        result.setdefault("scipy", results[0])
    else:
        result["scipy"] = [one.get("scipy", one) for one in results]
    result["x"] = x
    return result


def no_derivative(name: str, what: str) -> MissingRuleError:
    return MissingRuleError(
        f"the solution of {name} with {what} has no derivative here",
        where=user_line(),
        fix="write the conditions of the solution as a function (where there are constraints, with "
        "multipliers as further unknowns), and decorate the solver with "
        "funcgrad.implicit_diff(conditions)",
    )
