"""The care that leaves need: their kinds and dtypes, trees side by side, gradients that are None.

Hyperparameters are turned into Python numbers where they can be (`as_hyperparameter`), which do not
decide the dtype of a result, and results into the kind of the leaf where they are not
(`like_leaf`). `matched` puts trees with holes side by side, and `each_leaf` applies a function of
one gradient, and of what the state has for it, to all of them: one walk, however many sums and
means there are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from funcgrad import tree
from funcgrad.errors import (
    ArgumentError,
    ShapeError,
    TreeMismatchError,
    describe,
    location,
    user_line,
)
from funcgrad.optim.base import OptState, Params, Schedule, Updates

__all__ = [
    "abs_square",
    "aligned",
    "as_hyperparameter",
    "check_fit",
    "each_leaf",
    "full_for",
    "is_complex",
    "is_trainable",
    "like_leaf",
    "map_updates",
    "map_with_params",
    "matched",
    "rate_at",
    "scalars_for",
    "shape_mismatch",
    "wrong_shape",
    "zeros_for",
]

_ndarray = np.ndarray
_AGAINST_STATE = "the gradients do not fit the optimizer state"
_AGAINST_PARAMS = "the gradients do not fit the parameters"


# Leaves


def is_trainable(leaf: Any) -> bool:
    """Tell whether a leaf of the parameters is a floating-point or complex number or array."""
    dtype = getattr(leaf, "dtype", None)
    if dtype is None:
        return isinstance(leaf, float | complex)
    return getattr(dtype, "kind", "") in ("f", "c")


def zeros_for(params: Params, dtype: Any = None, *, real: bool = False) -> Any:
    """Return zeros like the parameters, None for those that are not trained.

    Parameters
    ----------
    params : pytree
        The parameters.
    dtype : dtype, optional
        Of the arrays; that of each parameter by default.
    real : bool
        Make the zeros of complex parameters real.
    """

    def zero(leaf: Any) -> Any:
        if not is_trainable(leaf):
            return None
        kind = dtype
        if is_complex(leaf):
            if real:
                leaf = leaf.real
            elif dtype is not None:
                kind = np.result_type(dtype, np.complex64)
        if isinstance(leaf, np.generic) or not hasattr(leaf, "dtype"):
            if kind is not None:
                return np.dtype(kind).type(0)
            return leaf.dtype.type(0) if isinstance(leaf, np.generic) else type(leaf)(0)
        if type(leaf) is _ndarray:  # memory that is zero takes no room until it is written to
            order: Any = "F" if leaf.flags.fnc else "C"
            return np.zeros(leaf.shape, leaf.dtype if kind is None else kind, order)
        return np.zeros_like(leaf, kind)

    return tree.map(zero, params)


_FLOAT = np.dtype(np.float64)


def as_hyperparameter(value: Any, name: str) -> Any:
    """Return a number in its Python form, which does not decide the dtype of what it multiplies.

    Traced values and arrays with axes are left as they are; `like_leaf` repairs what they do.
    """
    if type(value) is float or type(value) is int:
        return value
    if isinstance(value, np.generic) or (type(value) is _ndarray and value.ndim == 0):
        value = value.item()
    if _is_number(value):
        return value
    raise ArgumentError(
        f"{name} must be a number, got {describe(value)}",
        where=user_line(),
        fix=f"write {name}=0.1, say",
    )


def _is_number(value: Any) -> bool:
    return hasattr(value, "dtype") or isinstance(value, int | float)


def rate_at(schedule: Schedule, count: Any) -> Any:
    """Return what a schedule gives after `count` steps, as `as_hyperparameter` does."""
    value = schedule(count)
    if not _is_number(value):
        name = getattr(schedule, "__name__", type(schedule).__name__)
        code = getattr(schedule, "__code__", None)
        raise ArgumentError(
            f"a schedule must return a number, got {describe(value)}",
            where=f"{name}({count})"
            + (f" at {location(code, code.co_firstlineno)}" if code else f" at {user_line()}"),
            fix="end the schedule with `return 0.1`, say",
        )
    return as_hyperparameter(value, "the learning rate")


def like_leaf(value: Any, leaf: Any) -> Any:
    """Return `value` as the kind of number or array that `leaf` is, and with its dtype."""
    if type(value) is _ndarray and type(leaf) is not _ndarray and value.ndim == 0:
        value = value[()]
    if type(leaf) is float or type(leaf) is complex:
        kind: Any = type(leaf)
        return kind(value) if isinstance(value, np.generic | float | complex) else value
    dtype = getattr(leaf, "dtype", None)
    if dtype is not None and getattr(value, "dtype", None) != dtype:
        value = value.astype(dtype) if hasattr(value, "astype") else dtype.type(value)
    if type(leaf) is _ndarray and isinstance(value, np.generic):
        return np.asarray(value)  # of shape (): NumPy's operations make numbers of such arrays
    return value


# Trees


def _is_none(x: Any) -> bool:
    return x is None


def matched(
    updates: Updates,
    other: Any,
    what: str = _AGAINST_STATE,
    where: str = "the gradients",
    against: str = "the optimizer state",
) -> tuple[list[Any], list[Any], tree.TreeDef]:
    """List the leaves of the updates and of a tree that belongs to them, and their structure.

    Where `updates` have None, the other tree may have anything, which is listed beside it.
    """
    leaves, treedef = tree.flatten(updates)
    others, expected = tree.flatten(other)
    if treedef == expected:
        return leaves, others, treedef
    if updates is None and others:  # all would be left as it is, and nobody would see
        raise TreeMismatchError(
            what,
            where=f"{where}: None ({against}: {_size(expected)})",
            fix="give the gradients: gradients = funcgrad.grad(loss)(params)",
        )
    leaves, treedef = tree.flatten(updates, is_leaf=_is_none)
    try:
        others = treedef.flatten_up_to(other)
        fits = all(
            leaf is None or tree.structure(old).is_leaf
            for leaf, old in zip(leaves, others, strict=True)
        )
    except TreeMismatchError:
        fits = False
    if not fits:
        words = functools.partial(_fix, updates, expected, against)
        tree.check_match(expected, updates, what=what, where=where, against=against, fix=words)
    return leaves, others, treedef


def aligned(
    updates: Updates, others: Sequence[Any], params_at: int | None = None
) -> tuple[list[Any], list[list[Any]], tree.TreeDef]:
    """List the leaves of the updates and, beside them, of several trees; and their structure.

    The trees are parts of the state, but that at `params_at`, which is the parameters.
    """
    leaves, treedef = tree.flatten(updates)
    sides = []
    for other in others:
        side, structure = tree.flatten(other)
        if structure != treedef:
            break
        sides.append(side)
    else:
        return leaves, sides, treedef
    # Holes, or a mistake: one of the trees has something where the updates are None.
    sides = []
    leaves, treedef = tree.flatten(updates, is_leaf=_is_none)
    for i, other in enumerate(others):
        if i == params_at:
            matched(updates, other, _AGAINST_PARAMS, "the gradients", "the parameters")
        else:
            matched(updates, other)
        sides.append(treedef.flatten_up_to(other))
    return leaves, sides, treedef


def _size(treedef: tree.TreeDef) -> str:
    return f"{treedef.num_leaves} {'leaf' if treedef.num_leaves == 1 else 'leaves'}"


def _fix(updates: Any, expected: tree.TreeDef, against: str) -> str:
    if type(updates) is tuple and len(updates) == 2 and tree.structure(updates[1]) == expected:
        return "take the gradients out of the pair: value, gradients = value_and_grad(f)(params)"
    return f"give it the structure of {against}"


def check_fit(updates: Updates, params: Params | None) -> None:
    """Raise if what is given for gradients is None, or a tuple unlike the parameters.

    Those are the usual slips: nothing was returned, or all that `value_and_grad` returns was
    passed on. Other trees are compared where leaves meet, in the state or in `apply_updates`.
    """
    if params is not None and (updates is None or type(updates) is tuple):
        against = "the parameters"
        what = f"the gradients do not fit {against}"
        matched(updates, params, what, "the gradients", against)


def map_updates(fun: Callable[[Any], Any], updates: Updates) -> Updates:
    """Apply a function to each leaf and return results of the kind and dtype of the leaf."""

    def apply(leaf: Any) -> Any:
        new = fun(leaf)
        if type(new) is _ndarray and type(leaf) is _ndarray and new.dtype == leaf.dtype:
            return new
        return like_leaf(new, leaf)

    return tree.map(apply, updates)


def each_leaf(
    fun: Callable[..., tuple[Any, ...]],
    updates: Updates,
    *states: OptState,
    params: Params | None = None,
    same_shape: bool = True,
) -> tuple[Any, ...]:
    """Return new updates and states, from a function of single leaves.

    Parameters
    ----------
    fun : callable
        ``fun(gradient, *states)`` returns the update and the new states, for one parameter. With
        `params` the parameter comes last.
    updates : pytree
        The gradients; where they are None, the update is None and the states stay.
    *states : pytree
        Trees like the parameters.
    params : pytree, optional
        The parameters.
    same_shape : bool
        Raise if a leaf of the first state, or without one the parameter, has another shape than
        its gradient.
    """
    columns = list(states) if params is None else [*states, params]
    leaves, sides, treedef = aligned(updates, columns, None if params is None else len(states))
    count = len(states)
    outs: list[list[Any]] = [[] for _ in range(count + 1)]
    for row in zip(leaves, *sides, strict=True):
        leaf = row[0]
        if leaf is None:
            news: tuple[Any, ...] = row
        else:
            if same_shape and getattr(leaf, "shape", ()) != getattr(row[1], "shape", ()):
                wrong_shape(updates, *((states[0],) if states else (params, "the parameter")))
            news = fun(*row)
        for out, new, old in zip(outs, news, row):  # noqa: B905 - the row may end with a parameter
            if type(new) is _ndarray and type(old) is _ndarray and new.dtype == old.dtype:
                out.append(new)
            else:
                out.append(new if new is old else like_leaf(new, old))
    return tuple([tree.unflatten(treedef, out) for out in outs])


def map_with_params(fun: Callable[[Any, Any], Any], updates: Updates, params: Params) -> Updates:
    """Apply a function to each leaf and its parameter; results are as the leaf."""
    (new,) = each_leaf(lambda leaf, param: (fun(leaf, param),), updates, params=params)
    return new


def is_complex(leaf: Any) -> bool:
    """Tell whether a leaf is a complex number or array."""
    return type(leaf) is complex or getattr(leaf, "dtype", _FLOAT).kind == "c"


def abs_square(leaf: Any) -> Any:
    """Return the square of the magnitude of each element: real."""
    if is_complex(leaf):
        return np.square(np.real(leaf)) + np.square(np.imag(leaf))
    return leaf * leaf


def scalars_for(params: Params, of: Callable[[Any], Any] | None = None) -> Any:
    """Return one real number for each parameter, None for those that are not trained."""

    def scalar(leaf: Any) -> Any:
        if not is_trainable(leaf):
            return None
        dtype = getattr(leaf, "dtype", None)
        zero = 0.0 if dtype is None else np.zeros((), dtype).real[()]
        return zero if of is None else like_leaf(of(leaf), zero)

    return tree.map(scalar, params)


def full_for(params: Params, value: Any, *, real: bool = False) -> Any:
    """Return trees like `zeros_for`'s, filled with a number."""
    return tree.map(lambda zero: like_leaf(zero + value, zero), zeros_for(params, real=real))


def wrong_shape(updates: Updates, other: Any, against: str = "the optimizer state") -> NoReturn:
    """Raise the error for a gradient whose shape is not that of its state or parameter."""
    fix = "use the parameters that you differentiate with respect to in init and update, too"
    raise shape_mismatch(other, updates, "the gradient", against, fix)


def shape_mismatch(
    expected: Any, updates: Updates, what: str, against: str, fix: str
) -> ShapeError:
    """Make the error for the first leaf whose shape is not that of the other tree's."""
    paths = dict(tree.leaves_with_path(expected))
    for path, leaf in tree.leaves_with_path(updates):
        old = paths.get(path)
        if old is not None and getattr(leaf, "shape", ()) != getattr(old, "shape", ()):
            return ShapeError(
                f"{what} has another shape than {against}",
                where=f"{tree.keystr(path) or 'the root'}: {what} is {describe(leaf)}, "
                f"{against} {describe(old)}",
                fix=fix,
            )
    raise AssertionError("no shape is wrong")
