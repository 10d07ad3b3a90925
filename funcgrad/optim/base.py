"""What all optimizers are made of: a pair of pure functions, and the care that leaves need.

A `GradientTransformation` takes gradients in and gives gradients out, or whatever the next one in
a chain takes for them. Three rules hold for each:

A leaf keeps its kind and its dtype, whatever the dtype of a learning rate: hyperparameters are
turned into Python numbers where they can be (`as_hyperparameter`), and results into the kind of
the leaf where they are not (`like_leaf`).

Where a gradient is None, because the parameter is no floating-point number, there is no update and
no state (`matched` puts trees with such holes side by side).

Gradients of complex parameters are `funcgrad.grad`'s, ``df/dx - i df/dy``, through the whole chain.
`scale_by_learning_rate`, which ends it, conjugates them, so that the update descends.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, Protocol, TypeAlias, TypeVar

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

__all__ = [
    "EmptyState",
    "GradientTransformation",
    "GradientTransformationExtraArgs",
    "OptState",
    "Params",
    "ScalarOrSchedule",
    "Schedule",
    "Updates",
    "apply_updates",
    "as_hyperparameter",
    "check_fit",
    "check_state",
    "check_transformation",
    "identity",
    "init_empty_state",
    "is_trainable",
    "like_leaf",
    "map_updates",
    "matched",
    "missing_params",
    "rate_at",
    "with_extra_args_support",
    "wrong_shape",
    "zeros_for",
]

Params: TypeAlias = Any
"""A pytree of parameters."""

Updates: TypeAlias = Any
"""A pytree like the parameters, of gradients or of what is to be added; None where nothing is."""

OptState: TypeAlias = Any
"""A pytree; what an optimizer knows between steps."""

Schedule: TypeAlias = Callable[[Any], Any]
"""Takes the number of steps done, returns a learning rate."""

ScalarOrSchedule: TypeAlias = Any
"""A number, or a `Schedule`."""

_ndarray = np.ndarray
_AGAINST_STATE = "the gradients do not fit the optimizer state"
_State = TypeVar("_State")


class _Init(Protocol):
    def __call__(self, params: Params) -> OptState: ...


class _Update(Protocol):
    # The names of the arguments are part of it: `params` may be given by keyword.
    def __call__(
        self, updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]: ...


class _UpdateExtraArgs(Protocol):
    def __call__(
        self,
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, OptState]: ...


class GradientTransformation(NamedTuple):
    """A pair of pure functions: an optimizer, or a part of one.

    Attributes
    ----------
    init : callable
        ``init(params) -> state``.
    update : callable
        ``update(updates, state, params=None) -> (updates, state)``.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = fg.optim.sgd(0.1)
    >>> params = {"w": 1.0}
    >>> state = optimizer.init(params)
    >>> updates, state = optimizer.update({"w": 2.0}, state, params)
    >>> fg.optim.apply_updates(params, updates)
    {'w': 0.8}
    """

    init: _Init
    update: _Update


class GradientTransformationExtraArgs(GradientTransformation):
    """A `GradientTransformation` whose `update` takes further keyword arguments.

    ``update(updates, state, params=None, **extra_args)`` ignores those that it does not know, so
    that `chain` can give all of them to each of its parts.
    """

    __slots__ = ()

    update: _UpdateExtraArgs


class EmptyState(NamedTuple):
    """The state of a transformation that has none."""


def init_empty_state(params: Params) -> EmptyState:
    """Return the state of a transformation that has none."""
    return EmptyState()


def identity() -> GradientTransformation:
    """Make a transformation that changes nothing.

    Returns
    -------
    GradientTransformation
        Its updates are the gradients.

    Examples
    --------
    >>> optimizer = identity()
    >>> optimizer.update({"w": 2.0}, optimizer.init({"w": 1.0}))
    ({'w': 2.0}, EmptyState())
    """

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        return updates, state

    return GradientTransformation(init_empty_state, update)


def with_extra_args_support(tx: GradientTransformation) -> GradientTransformationExtraArgs:
    """Let `update` take, and ignore, further keyword arguments.

    Parameters
    ----------
    tx : GradientTransformation
        Any.

    Returns
    -------
    GradientTransformationExtraArgs
        `tx` itself if it takes them already.

    Raises
    ------
    ArgumentError
        `tx` is no transformation.

    Examples
    --------
    >>> optimizer = with_extra_args_support(identity())
    >>> optimizer.update({"w": 2.0}, optimizer.init({"w": 1.0}), value=3.0)
    ({'w': 2.0}, EmptyState())
    """
    if isinstance(tx, GradientTransformationExtraArgs):
        return tx
    check_transformation(tx, "with_extra_args_support", "its argument")

    def update(
        updates: Updates, state: OptState, params: Params | None = None, **extra_args: Any
    ) -> tuple[Updates, OptState]:
        return tx.update(updates, state, params)

    return GradientTransformationExtraArgs(tx.init, update)


def check_transformation(value: Any, use: str, place: str) -> None:
    """Raise if what `use` was given is no transformation."""
    if isinstance(value, type) or not (hasattr(value, "init") and hasattr(value, "update")):
        name = getattr(value, "__name__", None)
        if isinstance(value, list | tuple):
            got, fix = f"a {type(value).__name__}", "give them one by one: chain(*parts)"
        elif callable(value) and name:
            got, fix = f"the function {name}", f"call it: {name}(0.1), say"
        else:
            got, fix = describe(value), "make one: optim.sgd(0.1), say"
        raise ArgumentError(
            f"{use} takes optimizers and other gradient transformations, got {got}",
            where=f"{place} at {user_line()}",
            fix=fix,
        )


def apply_updates(params: Params, updates: Updates) -> Params:
    """Add updates to parameters.

    Parameters
    ----------
    params : pytree
        Arrays, numbers, and whatever else.
    updates : pytree
        Like `params`, with None for a leaf or a subtree that stays as it is.

    Returns
    -------
    pytree
        New parameters, each leaf of the kind, the shape and the dtype that it had.

    Raises
    ------
    TreeMismatchError
        `updates` have another structure.
    ShapeError
        An update has another shape than its parameter.

    Examples
    --------
    >>> import numpy as np
    >>> params = {"w": np.ones(2, np.float32), "activation": np.tanh, "scale": 1.0}
    >>> new = apply_updates(params, {"w": np.full(2, 0.5), "activation": None, "scale": -0.5})
    >>> new["w"], new["scale"], new["activation"] is np.tanh
    (array([1.5, 1.5], dtype=float32), 0.5, True)
    """
    changes, olds, treedef = matched(
        updates, params, "the updates do not fit the parameters", "the updates", "the parameters"
    )
    news = []
    for change, old in zip(changes, olds, strict=True):
        if change is None:
            news.append(old)
            continue
        if getattr(change, "shape", ()) != getattr(old, "shape", ()):
            # NumPy might broadcast them, and a slip would pass for a step.
            fix = "give each update the shape of its parameter"
            raise _wrong_shape(params, updates, "the update", "the parameter", fix)
        new = old + change
        if type(new) is not _ndarray or type(old) is not _ndarray or new.dtype != old.dtype:
            new = like_leaf(new, old)
        news.append(new)
    return tree.unflatten(treedef, news)


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
        if real and (type(leaf) is complex or getattr(leaf, "dtype", _FLOAT).kind == "c"):
            leaf = leaf.real
        if isinstance(leaf, np.generic) or not hasattr(leaf, "dtype"):
            if dtype is not None:
                return np.dtype(dtype).type(0)
            return leaf.dtype.type(0) if isinstance(leaf, np.generic) else type(leaf)(0)
        return np.zeros_like(leaf, dtype)

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


def check_state(state: Any, kind: type[_State], name: str) -> _State:
    """Return the state; raise if it is that of another optimizer."""
    if not isinstance(state, kind):
        raise ArgumentError(
            f"{name} needs a state of type {kind.__name__}, got {type(state).__name__}",
            where=user_line(),
            fix="make the state with its own init: state = optimizer.init(params)",
        )
    return state


def missing_params(name: str) -> ArgumentError:
    """Make the error for an update that needs the parameters."""
    return ArgumentError(
        f"{name} needs the parameters",
        where=user_line(),
        fix="write optimizer.update(gradients, state, params)",
    )


def wrong_shape(updates: Updates, other: Any, against: str = "the optimizer state") -> NoReturn:
    """Raise the error for a gradient whose shape is not that of its state or parameter."""
    fix = "use the parameters that you differentiate with respect to in init and update, too"
    raise _wrong_shape(other, updates, "the gradient", against, fix)


def _wrong_shape(expected: Any, updates: Updates, what: str, against: str, fix: str) -> ShapeError:
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
