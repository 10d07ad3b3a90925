"""Running a user's solver on plain values, whatever the problem refers to.

It is run on all examples of a `vmap` at once where it is NumPy code that can be, else on one
after the other. Nothing that it does is differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core.level import TracerBase
from funcgrad.core.zero import shape_of
from funcgrad.errors import (
    DtypeError,
    ShapeError,
    TracerConversionError,
    TreeMismatchError,
    describe,
)
from funcgrad.transforms.calls import Leaves
from funcgrad.transforms.flat import is_differentiable
from funcgrad.transforms.stripping import Picks, enclosing, one_by_one, only_below

__all__ = ["detached_leaf", "is_conversion", "like_guess", "solved", "unknowns_of"]


def detached_leaf(leaf: Any, picks: Picks) -> Any:
    """Return a leaf without derivatives, and of the vmaps in `picks` one example."""
    if not isinstance(leaf, TracerBase):
        return leaf
    outer = enclosing()
    return only_below(leaf if outer is None else outer.strip(leaf), 1, picks)


def solved(
    run: Callable[[Picks], Any],
    traces: Callable[[], Sequence[Any]],
    empty: Any,
    *,
    at_once: bool = True,
) -> Any:
    """Run a solver, and return its result without derivatives.

    Parameters
    ----------
    run : callable
        Runs it; of the vmaps in its argument, by their level, on the example of that number.
    traces : callable
        Returns the vmaps in which the problem differs from example to example.
    empty : pytree
        Like a result, for no examples.
    at_once : bool
        Whether to try with all examples first.
    """
    if at_once:
        try:
            return tree.map(lambda leaf: detached_leaf(leaf, {}), run({}))
        except Exception as error:
            if not is_conversion(error) or not traces():
                raise
    found = traces()
    if not found:
        return tree.map(lambda leaf: detached_leaf(leaf, {}), run({}))
    treedef = tree.structure(empty)

    def run_one(picks: Picks) -> Leaves:
        nonlocal treedef
        leaves, treedef = tree.flatten(run(picks))
        return [detached_leaf(leaf, picks) for leaf in leaves]

    leaves = one_by_one(run_one, found, tree.leaves(empty))
    return tree.unflatten(treedef, leaves)


def is_conversion(error: BaseException | None) -> bool:
    """Tell whether an error comes of a traced value that was to become a number."""
    while error is not None:
        if isinstance(error, TracerConversionError):
            return True
        error = error.__cause__ or error.__context__
    return False


def unknowns_of(guess: Any, what: str, name: str, where: str) -> tuple[Leaves, Any]:
    """Return the leaves of an initial guess, which must be floating, and its structure."""
    leaves, treedef = tree.flatten(guess)
    for path, leaf in tree.leaves_with_path(guess):
        if is_differentiable(leaf) is not True:
            at = f" at {tree.keystr(path)}" if path else ""
            raise DtypeError(
                f"{what} of {name} must be floating-point (real or complex), got {describe(leaf)}",
                where=f"{what}{at}, {where}",
                fix="write a float (1.0 for 1), or convert it with x.astype(float)",
            )
    return leaves, treedef


def like_guess(made: Any, treedef: Any, guess: Leaves, what: str, name: str, where: str) -> Leaves:
    """Return the leaves of a solution or a residual, which must be like those of the guess."""
    try:
        parts: Leaves = treedef.flatten_up_to(made)
    except TreeMismatchError as error:
        raise TreeMismatchError(
            f"{what} of {name} does not have the structure of what it starts from",
            where=f"{error.where.replace('the tree', what, 1)}; {where}",
            fix=error.fix,
        ) from None
    for number, (part, other) in enumerate(zip(parts, guess, strict=True)):
        if is_differentiable(part) is False and not isinstance(part, int):
            raise DtypeError(
                f"{what} of {name} must be an array or a number, got {describe(part)}",
                where=_place(what, treedef, number, where),
                fix="return what looks like the unknowns",
            )
        if shape_of(part) != shape_of(other):
            raise ShapeError(
                f"{what} of {name} has shape {shape_of(part)}, expected {shape_of(other)}, that of "
                "what it starts from",
                where=_place(what, treedef, number, where),
                fix="keep the shapes of the unknowns",
            )
    return [part if is_differentiable(part) else np.multiply(part, 1.0) for part in parts]


def _place(what: str, treedef: Any, number: int, where: str) -> str:
    """Return where a leaf is."""
    numbers = tree.unflatten(treedef, list(range(treedef.num_leaves)))
    path = tree.leaves_with_path(numbers)[number][0]
    return f"{what}{' at ' + tree.keystr(path) if path else ''}, {where}"
