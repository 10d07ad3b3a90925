"""What all optimizers are made of: a pair of pure functions.

A `GradientTransformation` takes gradients in and gives gradients out, or whatever the next one in
a chain takes for them. Three rules hold for each; `leaves` has what keeps them:

A leaf keeps its kind and its dtype, whatever the dtype of a learning rate.

Where a gradient is None, because the parameter is no floating-point number, there is no update and
no state.

Gradients of complex parameters are `funcgrad.grad`'s, ``df/dx - i df/dy``, through the whole chain.
`scale_by_learning_rate`, which ends it, conjugates them, so that the update descends.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from funcgrad import tree
from funcgrad.errors import ArgumentError, describe, user_line

__all__ = [
    "EmptyState",
    "GradientTransformation",
    "GradientTransformationExtraArgs",
    "OptState",
    "Params",
    "ScalarOrSchedule",
    "Schedule",
    "Updates",
    "check_state",
    "check_transformation",
    "identity",
    "init_empty_state",
    "missing_params",
    "needing_more",
    "set_to_zero",
    "stateless",
    "stateless_with_tree_map",
    "with_extra_args_support",
    "zeros_like",
]

Params: TypeAlias = Any
"""A pytree of parameters.

Examples
--------
>>> import numpy as np
>>> import funcgrad as fg
>>> def halved(params: fg.optim.Params) -> fg.optim.Params:
...     return fg.tree.map(lambda leaf: leaf / 2, params)
>>> halved({"w": np.ones(2), "b": 1.0})
{'w': array([0.5, 0.5]), 'b': 0.5}
"""

Updates: TypeAlias = Any
"""A pytree like the parameters, of gradients or of what is to be added; None where nothing is.

Examples
--------
>>> import funcgrad as fg
>>> updates: fg.optim.Updates = {"w": -0.5, "b": None}
>>> fg.optim.apply_updates({"w": 1.0, "b": 2.0}, updates)
{'w': 0.5, 'b': 2.0}
"""

OptState: TypeAlias = Any
"""A pytree; what an optimizer knows between steps.

Examples
--------
>>> import funcgrad as fg
>>> state: fg.optim.OptState = fg.optim.trace(0.9).init({"w": 1.0})
>>> fg.tree.leaves(state)
[0.0]
"""

Schedule: TypeAlias = Callable[[Any], Any]
"""Takes the number of steps done, returns a learning rate.

Examples
--------
>>> import funcgrad as fg
>>> def halving(count):
...     return 0.5**count
>>> schedule: fg.optim.Schedule = halving
>>> [schedule(count) for count in range(3)]
[1.0, 0.5, 0.25]
>>> optimizer = fg.optim.sgd(schedule)
"""

ScalarOrSchedule: TypeAlias = Any
"""A number, or a `Schedule`.

Examples
--------
>>> import funcgrad as fg
>>> def stepped(rate: fg.optim.ScalarOrSchedule) -> float:
...     optimizer = fg.optim.sgd(rate)
...     updates, _ = optimizer.update(1.0, optimizer.init(0.0), 0.0)
...     return float(updates)
>>> stepped(0.5), stepped(fg.optim.constant_schedule(0.5))
(-0.5, -0.5)
"""

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

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = fg.optim.chain(fg.optim.sgd(0.1), fg.optim.clip(1.0))
    >>> isinstance(optimizer, fg.optim.GradientTransformationExtraArgs)
    True
    >>> updates, state = optimizer.update({"w": 2.0}, optimizer.init({"w": 1.0}), value=3.0)
    >>> updates
    {'w': -0.2}
    """

    __slots__ = ()

    update: _UpdateExtraArgs


class EmptyState(NamedTuple):
    """The state of a transformation that has none.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.optim.identity().init({"w": 1.0})
    EmptyState()
    """


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


def set_to_zero() -> GradientTransformation:
    """Make a transformation whose updates are zeros: nothing is trained.

    Returns
    -------
    GradientTransformation
        Without state.

    Examples
    --------
    >>> optimizer = set_to_zero()
    >>> optimizer.update({"w": 2.0}, optimizer.init({"w": 1.0}))
    ({'w': 0.0}, EmptyState())
    """

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        return zeros_like(updates), state

    return GradientTransformation(init_empty_state, update)


def zeros_like(updates: Updates) -> Updates:
    """Return zeros of the kinds of the leaves."""

    def zero(leaf: Any) -> Any:
        kind: Any = type(leaf)
        if kind in (int, float, complex) or isinstance(leaf, np.generic):
            return kind(0)
        return np.zeros_like(leaf)

    return tree.map(zero, updates)


def stateless(f: Callable[[Updates, Params | None], Updates]) -> GradientTransformation:
    """Make a transformation of a function.

    Parameters
    ----------
    f : callable
        ``f(updates, params)`` returns the new updates. `params` are None if `update` was given
        none.

    Returns
    -------
    GradientTransformation
        Without state.

    Examples
    --------
    >>> optimizer = stateless(lambda updates, params: {"w": updates["w"] + params["w"]})
    >>> optimizer.update({"w": 2.0}, optimizer.init({"w": 1.0}), {"w": 1.0})
    ({'w': 3.0}, EmptyState())
    """

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        return f(updates, params), EmptyState()

    return GradientTransformation(init_empty_state, update)


def stateless_with_tree_map(f: Callable[[Any, Any], Any]) -> GradientTransformation:
    """Make a transformation of a function of one leaf.

    Parameters
    ----------
    f : callable
        ``f(update, param)`` returns the new update of a leaf. `param` is None if `update` was given
        no parameters.

    Returns
    -------
    GradientTransformation
        Without state. It leaves out gradients that are None.

    Examples
    --------
    >>> optimizer = stateless_with_tree_map(lambda update, param: update + param)
    >>> optimizer.update({"w": 2.0}, optimizer.init({"w": 1.0}), {"w": 1.0})
    ({'w': 3.0}, EmptyState())
    """

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        leaves, treedef = tree.flatten(updates, is_leaf=lambda leaf: leaf is None)
        others = [None] * len(leaves) if params is None else treedef.flatten_up_to(params)
        news = [
            None if leaf is None else f(leaf, param)
            for leaf, param in zip(leaves, others, strict=True)
        ]
        return tree.unflatten(treedef, news), EmptyState()

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


def needing_more(
    init: _Init, update: Callable[..., tuple[Updates, OptState]]
) -> GradientTransformationExtraArgs:
    """Make a transformation whose `update` cannot do without its keyword arguments."""
    kinds = inspect.signature(update).parameters.values()
    needed = [
        kind.name for kind in kinds if kind.kind is kind.KEYWORD_ONLY and kind.default is kind.empty
    ]
    name = update.__qualname__.partition(".")[0]

    def checked(
        updates: Updates, state: OptState, params: Params | None = None, **extra_args: Any
    ) -> tuple[Updates, OptState]:
        missing = [key for key in needed if key not in extra_args]
        if missing:
            given = ", ".join(f"{key}={key}" for key in needed)
            raise ArgumentError(
                f"{name} needs {' and '.join(missing)} as well as the gradients",
                where=user_line(),
                fix=f"write optimizer.update(gradients, state, params, {given})",
            )
        return update(updates, state, params, **extra_args)

    return GradientTransformationExtraArgs(init, checked)


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
