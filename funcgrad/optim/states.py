"""Looking into states: the learning rate, the number of steps, and what is like the parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from funcgrad import tree
from funcgrad.errors import ArgumentError, user_line
from funcgrad.optim.accumulation import ApplyEvery, MultiStepsState
from funcgrad.optim.base import OptState, Params
from funcgrad.optim.hyperparameters import InjectStatefulHyperparamsState
from funcgrad.optim.masking import ParamsPlaceholder
from funcgrad.optim.scaling import ScaleByLearningRateState
from funcgrad.optim.stepsizes import ReduceLROnPlateauState

__all__ = ["current_learning_rate", "current_step", "found_in", "tree_map_params"]


def tree_map_params(
    initable: Callable[[Params], OptState] | Any,
    f: Callable[..., Any],
    state: OptState,
    /,
    *rest: Any,
    transform_non_params: Callable[[Any], Any] | None = None,
    is_leaf: Callable[[Any], bool] | None = None,
) -> OptState:
    """Apply a function to those parts of a state that are like the parameters.

    Parameters
    ----------
    initable : GradientTransformation or callable
        The optimizer, or its `init`.
    f : callable
        Takes a leaf of such a part, and those of `rest` beside it.
    state : pytree
        The state.
    *rest : pytree
        Like the parameters.
    transform_non_params : callable, optional
        Applied to all other leaves.
    is_leaf : callable, optional
        Tells which nodes `f` is to be given whole.

    Returns
    -------
    pytree
        A state of the same structure.

    Notes
    -----
    The optimizer makes a state for a placeholder without leaves, and what comes out of it as a
    placeholder is like the parameters. Transformations that look at the leaves of parameters when
    they are made do not take part.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = fg.optim.sgd(0.1, momentum=0.9)
    >>> state = optimizer.init({"w": 0.0})
    >>> tree_map_params(optimizer, lambda leaf: leaf + 1.0, state)[0]
    TraceState(trace={'w': 1.0})
    """
    init = getattr(initable, "init", initable)
    marked, treedef = tree.flatten(init(ParamsPlaceholder()), is_leaf=_is_placeholder)
    parts = treedef.flatten_up_to(state)
    news = []
    for mark, part in zip(marked, parts, strict=True):
        if _is_placeholder(mark):
            news.append(tree.map(f, part, *rest, is_leaf=is_leaf))
        else:
            news.append(part if transform_non_params is None else transform_non_params(part))
    return tree.unflatten(treedef, news)


def _is_placeholder(value: Any) -> bool:
    return isinstance(value, ParamsPlaceholder)


def current_learning_rate(state: OptState) -> Any:
    """Return the learning rate of the last step from the state of any optimizer.

    Parameters
    ----------
    state : pytree
        The state; before the first step it has the rate that this will have.

    Returns
    -------
    float
        The rate.

    Raises
    ------
    ArgumentError
        There is none, or there are several: give the part of the state that is meant.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = fg.optim.adam(lambda count: 0.1 / (1 + count))
    >>> state = optimizer.init({"w": 0.0})
    >>> for _ in range(2):
    ...     _, state = optimizer.update({"w": 1.0}, state)
    >>> current_learning_rate(state), current_step(state)
    (0.05, 2)
    """
    # What a line search has found is the last word.
    return _only(state, [_searched, _rates], "learning rate")


def current_step(state: OptState) -> Any:
    """Return the number of steps done from the state of any optimizer.

    Parameters
    ----------
    state : pytree
        The state.

    Returns
    -------
    int
        How many steps are done; not how many gradients were taken in, where several make a step.

    Raises
    ------
    ArgumentError
        The state does not count, or has parts that differ: give the part that is meant.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = fg.optim.sgd(0.1)
    >>> _, state = optimizer.update({"w": 1.0}, optimizer.init({"w": 0.0}))
    >>> current_step(state)
    1
    """
    return _only(state, [_steps, _counts], "number of steps")


def _only(state: OptState, looks: list[Callable[[Any], Any]], what: str) -> Any:
    """Return what the first of `looks` finds that finds anything; raise if that differs."""
    values: list[Any] = []
    for look in looks:
        values = values or list(found_in(state, look))
    same = [value for value in values if value is values[0] or bool(value == values[0])]
    if values and len(same) == len(values):
        return values[0]
    raise ArgumentError(
        f"the state has {len(values)} different {what}s" if values else f"the state has no {what}",
        where=user_line(),
        fix="give the part of it that is meant: state[0], say",
    )


def found_in(state: OptState, look: Callable[[Any], Any]) -> Iterator[Any]:
    """Yield what `look` finds in a node of a state, of the outermost nodes where it is not None."""
    value = look(state)
    if value is not None:
        yield value
    elif isinstance(state, dict):
        for part in state.values():
            yield from found_in(part, look)
    elif isinstance(state, list | tuple):
        for part in state:
            yield from found_in(part, look)


def _searched(node: Any) -> Any:
    return _rates(node) if hasattr(node, "value") else None


def _rates(node: Any) -> Any:
    if isinstance(node, InjectStatefulHyperparamsState):
        return node.hyperparams.get("learning_rate")
    return getattr(node, "learning_rate", None) if isinstance(node, tuple) else None


def _steps(node: Any) -> Any:
    if isinstance(node, MultiStepsState):
        return node.gradient_step
    counting = ScaleByLearningRateState | InjectStatefulHyperparamsState
    return node.count if isinstance(node, counting) else None


def _counts(node: Any) -> Any:
    """Return the count of a transformation that counts all steps."""
    if isinstance(node, ApplyEvery | ReduceLROnPlateauState) or not hasattr(node, "_fields"):
        return None
    return node.count if "count" in node._fields else None
