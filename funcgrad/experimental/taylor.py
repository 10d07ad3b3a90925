"""Taylor mode: derivatives of any order along a path, in one run of the function.

How a series goes through an operation is the business of `funcgrad.experimental.series`; here it is
taken from the user, checked, and given back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from funcgrad import tree
from funcgrad.core.convert import like
from funcgrad.core.level import Origin
from funcgrad.core.tracer import Tracer
from funcgrad.core.zero import shape_of
from funcgrad.errors import ArgumentError, TreeMismatchError, describe, user_line
from funcgrad.experimental.series import JetTrace, Series
from funcgrad.transforms.flat import (
    call_origin,
    check_callable,
    check_like,
    differentiable_leaves,
    flatten_output,
    is_differentiable,
    lower,
)

__all__ = ["jet"]


def jet(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    series: Sequence[Any],
    factorial_scaled: bool = True,
) -> tuple[Any, Any]:
    """Push a path through `fun`: its value, and its derivatives of all orders along the path.

    Parameters
    ----------
    fun : callable
        Pure function of ``len(primals)`` pytrees of arrays, returning a pytree of arrays.
    primals : tuple or list of pytree
        Where the path starts: x(0) of each argument.
    series : tuple or list of pytree
        The derivatives of the path there. For each argument a pytree like it, with a list of K
        terms in the place of each leaf: x'(0), x''(0), ... of its shape and dtype. So for an
        argument that is an array it is that list. None stands for zero, as a term or in the place
        of a list.
    factorial_scaled : bool
        If false, the terms are Taylor coefficients in and out: derivative k is divided by k!.

    Returns
    -------
    primals_out : pytree
        ``fun(*primals)``.
    series_out : pytree
        Like it, with a list of K terms in the place of each leaf: the derivatives of ``fun(x(t))``
        by t, at 0. The terms of a leaf that is not floating are None.

    Raises
    ------
    ArgumentError
        `primals` and `series` are not tuples or lists of the same length, or the lists of terms
        are not all of one length.
    TreeMismatchError, ShapeError, DtypeError
        The terms are not like what they belong to.

    See Also
    --------
    funcgrad.jvp : the case K = 1.

    Notes
    -----
    K nested calls of `jvp` give the same, at 2**K times the cost of `fun`. Here sums cost K, and
    products, quotients, exp, log, sin, tanh, roots, matrix products and inverses about K**2 times
    what they do by themselves, and most others, such as powers, no more than K**3 times. These are
    no special cases: the recurrences come out of the forward-mode rules (see
    `funcgrad.experimental.series`). Two kinds of functions still take a time exponential in K, and
    for small K nested `jvp` may be faster there: those whose derivative is made of others of their
    kind with other parameters, such as Bessel functions and ``expm``, and those with a derivative
    by differences, such as the incomplete gamma function in its parameter.

    Terms wait for one another by Python calls. Where a recurrence is long, as for ``x**x``, K
    beyond some 14 meets Python's recursion limit.

    For the derivatives of f by a number x let the path be x + t: ``[1.0, 0.0, 0.0, ...]``.

    References
    ----------
    .. [1] A. Griewank and A. Walther, *Evaluating Derivatives*, 2nd ed., SIAM, 2008, chapter 13.
    .. [2] J. Bettencourt, M. J. Johnson, and D. Duvenaud, *Taylor-Mode Automatic Differentiation
       for Higher-Order Derivatives in JAX*, 2019.

    Examples
    --------
    The first four derivatives of a power, at 2:

    >>> from funcgrad.experimental import jet
    >>> value, terms = jet(lambda x: x**3, (2.0,), ([1.0, 0.0, 0.0, 0.0],))
    >>> value, terms
    (8.0, [12.0, 12.0, 6.0, 0.0])
    """
    check_callable("jet", fun)
    origin = call_origin("jet", fun)
    _check_pair(primals, series, origin)
    primals = tuple(primals)
    leaves, treedef = tree.flatten(primals)
    names = [f"argument {number}" for number in range(len(primals))]
    differentiable_leaves(leaves, primals, names, transform="jet")
    columns, order = _columns(primals, leaves, series, origin)
    rows = [leaves]
    for k in range(1, order + 1):
        dots = tree.unflatten(treedef, [column[k - 1] for column in columns])
        row = check_like(dots, primals, treedef, leaves, f"term of order {k}")
        scale = math.factorial(k) if factorial_scaled else 1
        rows.append([dot if dot is None or scale == 1 else dot / scale for dot in row])
    with JetTrace(origin, order) as trace:
        traced = [
            leaf if all(term is None for term in terms) else trace.variable((leaf, *terms))
            for leaf, *terms in zip(*rows, strict=True)
        ]
        out_leaves, out_treedef = flatten_output(fun(*tree.unflatten(treedef, traced)), origin)
    values = [lower(leaf, trace) for leaf in out_leaves]
    seen = {id(leaf) for row in rows for leaf in row} | set(map(id, values))
    out_terms = []
    for leaf, value in zip(out_leaves, values, strict=True):
        own = type(leaf) is Tracer and leaf._trace is trace
        found: Any = leaf._extra if own else Series(value)
        out_terms.append(
            [_scaled(found.term(k), k, value, seen, factorial_scaled) for k in range(1, order + 1)]
        )
    return (
        tree.unflatten(out_treedef, values),
        tree.unflatten(out_treedef, out_terms),
    )


def _scaled(term: Any, k: int, value: Any, seen: set[int], factorial_scaled: bool) -> Any:
    """Return a term as the user gets it, of the kind of the value that it belongs to."""
    if not is_differentiable(value):
        return None
    if term is not None and factorial_scaled and k > 1:
        term = term * math.factorial(k)
    return like(term, value, seen)


def _check_pair(primals: Any, series: Any, origin: Origin) -> None:
    for what, value in (("primals", primals), ("series", series)):
        if not isinstance(value, tuple | list):
            raise ArgumentError(
                f"{what} of jet must be a tuple or list with one item for each argument, "
                f"got {describe(value)}",
                where=str(origin),
                fix="write jet(f, (x,), ([x1, x2, x3],))",
            )
    if len(primals) != len(series):
        raise ArgumentError(
            f"jet got {len(primals)} primals but {len(series)} series",
            where=str(origin),
            fix="give one list of terms for each primal; None stands for zeros",
        )


def _columns(
    primals: tuple[Any, ...], leaves: list[Any], series: Any, origin: Origin
) -> tuple[list[list[Any]], int]:
    """Return the terms of each leaf, and their number."""
    found: list[Any] = []
    for number, (primal, terms) in enumerate(zip(primals, series, strict=True)):
        structure = tree.structure(primal)
        if terms is None:
            found += [None] * structure.num_leaves
            continue
        try:
            found += structure.flatten_up_to(terms)
        except TreeMismatchError as error:
            raise TreeMismatchError(
                f"series[{number}] does not have the structure of argument {number} of {origin}",
                where=error.where.replace("the tree", f"series[{number}]", 1),
                fix="give a pytree like the argument, with a list of terms for each leaf",
            ) from None
    columns = [
        None if terms is None else _as_list(terms, k, primals) for k, terms in enumerate(found)
    ]
    sizes = {len(column) for column in columns if column is not None}
    if len(sizes) != 1:
        lines = "\n".join(
            f"    {_path(primals, k)}: {len(column)} terms"
            for k, column in enumerate(columns)
            if column is not None
        )
        raise ArgumentError(
            f"the series of jet have different numbers of terms\n{lines}"
            if sizes
            else "no series of jet has terms, so that their number is not known",
            where=str(origin),
            fix="give lists of one length; a term of None is zero",
        )
    order = sizes.pop()
    return [[None] * order if column is None else column for column in columns], order


def _as_list(terms: Any, position: int, primals: Any) -> list[Any]:
    if isinstance(terms, tuple | list):
        return list(terms)
    if shape_of(terms) and hasattr(terms, "dtype"):  # an array of terms
        return [terms[k] for k in range(shape_of(terms)[0])]
    raise ArgumentError(
        f"the series of jet for {_path(primals, position)} must be a list of terms, "
        f"got {describe(terms)}",
        where=user_line(),
        fix="write jet(f, (x,), ([x1, x2, x3],)), also for one term: ([x1],)",
    )


def _path(primals: Any, position: int) -> str:
    """Write which leaf of which argument."""
    path = tree.flatten_with_path(primals)[0][position][0]
    rest = tree.keystr(path[1:])
    return f"argument {position_of(path)}" + (f" at {rest}" if rest else "")


def position_of(path: Any) -> int:
    """Return the number of the argument that a path begins with."""
    number: int = path[0].idx
    return number
