"""Transformations one after another, and of all parameters as one vector."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.errors import ArgumentError, user_line
from funcgrad.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    Updates,
    check_transformation,
    with_extra_args_support,
)
from funcgrad.optim.leaves import check_fit, is_trainable, like_leaf, matched

__all__ = ["chain", "flatten", "named_chain"]


def chain(*args: GradientTransformation) -> GradientTransformationExtraArgs:
    """Make a transformation that applies several, each to what the one before returned.

    Parameters
    ----------
    *args : GradientTransformation
        In the order in which they see the gradients.

    Returns
    -------
    GradientTransformationExtraArgs
        Its state is the tuple of theirs.

    Raises
    ------
    ArgumentError
        One of `args` is no transformation, such as a list of them or a function that makes one.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = chain(fg.optim.clip(1.0), fg.optim.scale(-0.1))
    >>> optimizer.update({"w": 3.0}, optimizer.init({"w": 1.0}))
    ({'w': -0.1}, (EmptyState(), EmptyState()))
    """
    for i, part in enumerate(args):
        check_transformation(part, "chain", f"argument {i}")
    parts = [with_extra_args_support(part) for part in args]

    def init(params: Params) -> OptState:
        return tuple([part.init(params) for part in parts])

    def update(
        updates: Updates, state: OptState, params: Params | None = None, **extra_args: Any
    ) -> tuple[Updates, OptState]:
        if not isinstance(state, tuple) or len(state) != len(parts):
            raise ArgumentError(
                f"a chain of {len(parts)} needs a state of as many parts, "
                f"got {len(state) if isinstance(state, tuple) else type(state).__name__}",
                where=user_line(),
                fix="make the state with its own init: state = optimizer.init(params)",
            )
        check_fit(updates, params)
        states = []
        for part, old in zip(parts, state, strict=True):
            updates, new = part.update(updates, old, params, **extra_args)
            states.append(new)
        return updates, tuple(states)

    return GradientTransformationExtraArgs(init, update)


def named_chain(
    *args: tuple[str, GradientTransformation],
) -> GradientTransformationExtraArgs:
    """Make a transformation that applies several in turn, each with a name.

    Parameters
    ----------
    *args : tuple of str and GradientTransformation
        In the order in which they see the gradients.

    Returns
    -------
    GradientTransformationExtraArgs
        Its state is a dict of theirs, by name.

    Raises
    ------
    ArgumentError
        Two have the same name, or one is no transformation.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = named_chain(("clip", fg.optim.clip(1.0)), ("scale", fg.optim.scale(-0.1)))
    >>> optimizer.update({"w": 3.0}, optimizer.init({"w": 1.0}))
    ({'w': -0.1}, {'clip': EmptyState(), 'scale': EmptyState()})
    """
    names = [name for name, _ in args]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ArgumentError(
            f"named_chain needs different names, got {twice!r} twice",
            where=user_line(),
            fix="give each part a name of its own",
        )
    for i, (_, part) in enumerate(args):
        check_transformation(part, "named_chain", f"argument {i}")
    parts = {name: with_extra_args_support(part) for name, part in args}

    def init(params: Params) -> OptState:
        return {name: part.init(params) for name, part in parts.items()}

    def update(
        updates: Updates, state: OptState, params: Params | None = None, **extra_args: Any
    ) -> tuple[Updates, OptState]:
        if not isinstance(state, dict) or set(state) != set(names):
            raise ArgumentError(
                f"a named_chain of {', '.join(names)} needs a state of these parts",
                where=user_line(),
                fix="make the state with its own init: state = optimizer.init(params)",
            )
        check_fit(updates, params)
        states = {}
        for name, part in parts.items():
            updates, states[name] = part.update(updates, state[name], params, **extra_args)
        return updates, states

    return GradientTransformationExtraArgs(init, update)


def flatten(inner: GradientTransformation) -> GradientTransformationExtraArgs:
    """Give a transformation all parameters as one vector: faster for many small ones.

    Parameters
    ----------
    inner : GradientTransformation
        What to apply. One that looks at layers sees only one.

    Returns
    -------
    GradientTransformationExtraArgs
        Its state is that of `inner`, for a vector. Where a gradient is None, `inner` sees zeros
        (if `update` has the parameters) and the update is None.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> optimizer = flatten(fg.optim.trace(0.5))
    >>> gradients = {"w": np.ones((2, 1)), "b": 3.0}
    >>> updates, state = optimizer.update(gradients, optimizer.init(gradients))
    >>> updates["b"], state
    (3.0, TraceState(trace=array([3., 1., 1.])))
    """
    check_transformation(inner, "flatten", "argument 0")
    inner = with_extra_args_support(inner)

    def init(params: Params) -> OptState:
        return inner.init(_joined([leaf for leaf in tree.leaves(params) if is_trainable(leaf)]))

    def update(
        updates: Updates, state: OptState, params: Params | None = None, **extra_args: Any
    ) -> tuple[Updates, OptState]:
        weights = None
        if params is None:
            leaves, treedef = tree.flatten(updates)
            filled = leaves
        else:
            leaves, olds, treedef = matched(
                updates,
                params,
                "the gradients do not fit the parameters",
                "the gradients",
                "the parameters",
            )
            filled = [
                np.zeros_like(old) if leaf is None and is_trainable(old) else leaf
                for leaf, old in zip(leaves, olds, strict=True)
            ]
            weights = _joined(
                [old for old, leaf in zip(olds, filled, strict=True) if leaf is not None]
            )
        flat, state = inner.update(
            _joined([leaf for leaf in filled if leaf is not None]), state, weights, **extra_args
        )
        news: list[Any] = []
        start = 0
        for leaf, full in zip(leaves, filled, strict=True):
            end = start if full is None else start + np.size(full)
            part = flat[start:end]
            news.append(None if leaf is None else like_leaf(np.reshape(part, np.shape(leaf)), leaf))
            start = end
        return tree.unflatten(treedef, news), state

    return GradientTransformationExtraArgs(init, update)


def _joined(leaves: list[Any]) -> Any:
    return np.concatenate([np.reshape(leaf, -1) for leaf in leaves]) if leaves else np.zeros(0)
