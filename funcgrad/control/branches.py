"""Branches: `cond` and `switch`, an ``if`` that may have another answer for each example.

Where the predicate is the same for all examples of a `vmap`, the branch is simply called. Where it
is not, each branch is run on the rows that take it (`funcgrad.control.rows`), and the results are
put together.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.control.alike import Returned, call_branch, check_alike
from funcgrad.control.carry import place_of
from funcgrad.control.closures import rebound
from funcgrad.control.rows import Piece, Rows, RowsTrace, adopt, merge, split
from funcgrad.control.structured import branched
from funcgrad.core.level import Origin, TracerBase, is_batched, is_recorded, looked_at
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import ArgumentError, describe
from funcgrad.staging.bodies import Unstructured
from funcgrad.transforms.flat import call_origin, check_callable

__all__ = ["cond", "switch", "truth"]


class _Absent:
    """No operand given by keyword: None is one."""

    def __repr__(self) -> str:
        return "<no operand>"


_ABSENT = _Absent()

# On what a program that records a branch is specialised.
_TRUTH = "the truth value"
_INDEX = "the index of switch"


def cond(
    pred: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = _ABSENT,
) -> Any:
    """Call one of two functions.

    The same as ``true_fun(*operands) if pred else false_fun(*operands)``.

    Parameters
    ----------
    pred : bool or scalar
        Which one.
    true_fun, false_fun : callable
        Functions of the operands, returning pytrees.
    *operands : pytree
        What they are called with.
    operand : pytree, optional
        Another way to give one operand.

    Returns
    -------
    pytree
        What the function returned.

    Raises
    ------
    ArgumentError
        `pred` is not a scalar, or is neither a number nor a truth value.
    TreeMismatchError, ShapeError
        The two functions return different structures or shapes.

    Notes
    -----
    Only the function that is chosen is called, so the other may be one that would raise, or divide
    by zero. Under `vmap` with a `pred` that differs from example to example, each is called once at
    most, for those examples that choose it, and an integer next to a float becomes a float.

    The two must return the same structure and shapes. What a function would have returned cannot be
    known, so a difference is an error where both are run: under `vmap`; in
    `funcgrad.debug.check_branches`, which runs both; and when the one is called for the first time,
    if the other was before, on operands of the same shapes.

    When `jit` records, all branches are called once, to be part of one program, of which those that
    are chosen are run. Where one of them raises, or they return other dtypes, there is a program
    for each instead, and the others are not called.

    What a branch refers to by name, without its being an operand, is taken row by row too. If it is
    in a container or an attribute, operations on that alone are computed for all examples.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.control import cond
    >>> def root(x):
    ...     return cond(x > 0, np.sqrt, lambda x: 0.0 * x, x)
    >>> float(root(4.0)), float(fg.grad(root)(4.0))
    (2.0, 0.25)
    >>> fg.vmap(fg.grad(root))(np.array([4.0, 0.0, -1.0]))
    array([0.25, 0.  , 0.  ])
    """
    origin = call_origin("cond", true_fun)
    check_callable("cond", true_fun)
    check_callable("cond", false_fun)
    operands = _with_keyword(operands, operand, origin)
    if isinstance(pred, TracerBase) and shape_of(pred) == () and is_recorded(pred):
        try:
            return branched("cond", pred, (true_fun, false_fun), operands, is_truth=True)
        except Unstructured:
            pass  # there is a program for each
    taken = truth(pred, "pred of cond must be", origin)
    if taken is True or taken is False:
        return call_branch(1 - taken, (true_fun, false_fun), operands, origin)
    rows, plain = split(taken, _TRUTH)
    return _by_rows(rows, 1 - plain, [true_fun, false_fun], operands, origin)


def switch(
    index: Any,
    branches: Sequence[Callable[..., Any]],
    *operands: Any,
    operand: Any = _ABSENT,
) -> Any:
    """Call one of several functions.

    The same as ``branches[index](*operands)``, with the index brought into range: below 0 is the
    first, beyond the end the last.

    Parameters
    ----------
    index : int
        Which one.
    branches : sequence of callable
        Functions of the operands, returning pytrees.
    *operands : pytree
        What they are called with.
    operand : pytree, optional
        Another way to give one operand.

    Returns
    -------
    pytree
        What the function returned.

    Raises
    ------
    ArgumentError
        `index` is not an integer, or there are no branches.
    TreeMismatchError, ShapeError
        The branches return different structures or shapes.

    Notes
    -----
    As with `cond`, only what is chosen is called, under `vmap` on the examples that choose it, and
    a branch that returns otherwise than the others is noticed where another has been called too.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.control import switch
    >>> switch(1, [np.sin, np.negative, np.square], 3.0)
    np.float64(-3.0)
    >>> fg.vmap(lambda i: switch(i, [np.negative, np.square], 3.0))(np.array([0, 1, 7]))
    array([-3.,  9.,  9.])
    """
    first = branches[0] if isinstance(branches, Sequence) and branches else branches
    origin = call_origin("switch", first)
    branches = _checked(branches, origin)
    operands = _with_keyword(operands, operand, origin)
    (index,) = adopt([index])
    if shape_of(index) != () or (dtype_of(index).kind not in "iu" and not _is_int(index)):
        raise ArgumentError(
            f"index of switch must be an integer, got {describe(index)}",
            where=str(origin),
            fix="write int(i), or cond for a truth value",
        )
    last = len(branches) - 1
    if is_recorded(index) and not is_batched(index) and len(branches) > 1:
        try:
            return branched("switch", index, branches, operands, is_truth=False)
        except Unstructured:
            pass  # there is a program for each
    if not is_batched(index):
        number = operator.index(looked_at(index, _INDEX))
        return call_branch(min(max(number, 0), last), branches, operands, origin)
    rows, plain = split(index, _INDEX)
    return _by_rows(rows, np.clip(plain, 0, last), branches, operands, origin)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _checked(branches: Any, origin: Origin) -> list[Callable[..., Any]]:
    if not isinstance(branches, Sequence) or not branches or not all(map(callable, branches)):
        raise ArgumentError(
            f"branches of switch must be a list of functions, got {describe(branches)}",
            where=str(origin),
            fix="write switch(i, [f, g], x)",
        )
    return list(branches)


def _with_keyword(operands: tuple[Any, ...], operand: Any, origin: Origin) -> tuple[Any, ...]:
    if operand is _ABSENT:
        return operands
    if operands:
        raise ArgumentError(
            f"{origin.transform} was given operands both by position and as operand=",
            where=str(origin),
            fix="give all of them by position",
        )
    return (operand,)


def truth(value: Any, what: str, origin: Origin, fun: Any = None) -> Any:
    """Return True or False, or a batched scalar as it is."""
    if value is True or value is False:
        return value
    (value,) = adopt([value])  # made of what has all rows, it has more than are asked for
    if shape_of(value) == ():
        if is_batched(value):
            if dtype_of(value).kind in "biufc":
                return value
        else:
            plain = looked_at(value, _TRUTH)
            if isinstance(plain, bool | int | float | complex | np.generic | np.ndarray):
                return bool(plain)
    raise ArgumentError(
        f"{what} a scalar that is true or false, got {describe(value)}",
        where=str(origin) if fun is None else f"{place_of(fun)}; {origin}",
        fix="reduce it with np.all or np.any" if shape_of(value) else "write a comparison: x > 0",
    )


def _by_rows(
    rows: Rows, which: Any, branches: Sequence[Any], operands: tuple[Any, ...], origin: Origin
) -> Any:
    """Call each branch on the rows that take it."""
    numbers = [int(number) for number in np.unique(which)]
    if len(numbers) < 2:  # all rows take one, or there are no rows
        return branches[numbers[0] if numbers else 0](*operands)
    leaves, treedef = tree.flatten(operands)
    pieces: list[Piece] = []
    first: Returned | None = None
    for number in numbers:
        chosen = np.flatnonzero(which == number)
        with RowsTrace(Rows(rows.bases, rows.flat[chosen])) as trace:
            own = [trace.adopt(leaf) for leaf in leaves]
            branch = rebound(branches[number], trace.adopt)
            out = branch(*tree.unflatten(treedef, own))
            returned = Returned(branches[number], out)
            if first is None:
                first = returned
            else:
                check_alike(first, returned, out, origin)
            pieces.append((chosen, [trace.draw(part) for part in tree.leaves(out)]))
    assert first is not None
    structure, paths = first.structure, first.paths

    def place(position: int) -> str:
        words = tree.keystr(paths[position])
        return f"the output{f' at {words}' if words else ''} of the branches of {origin}"

    return tree.unflatten(structure, merge(rows, pieces, place))
