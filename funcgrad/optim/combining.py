"""Putting transformations together: one after another, and on a part of the parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

from funcgrad import tree
from funcgrad.errors import ArgumentError, user_line
from funcgrad.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    Updates,
    check_fit,
    check_state,
    check_transformation,
    with_extra_args_support,
)

__all__ = ["MaskedNode", "MaskedState", "chain", "masked"]


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
    >>> optimizer = chain(fg.optim.clip(1.0), fg.optim.scale_by_learning_rate(0.1))
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


class MaskedNode(NamedTuple):
    """Stands for what a mask left out: a node without leaves."""


class MaskedState(NamedTuple):
    """The state of the transformation that is applied where a mask is true."""

    inner_state: OptState


def masked(inner: GradientTransformation, mask: Any) -> GradientTransformationExtraArgs:
    """Apply a transformation to a part of the parameters; the rest passes unchanged.

    Parameters
    ----------
    inner : GradientTransformation
        What to apply.
    mask : pytree of bool, or callable
        Like the parameters, or with one bool for a whole subtree. A callable makes it of a tree
        like the parameters.

    Returns
    -------
    GradientTransformationExtraArgs
        Its state holds that of `inner`, of the chosen part.

    Raises
    ------
    ArgumentError
        `inner` is no transformation.
    TreeMismatchError
        From `init` and `update`: the mask does not fit.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = masked(fg.optim.scale(-0.1), {"w": True, "b": False})
    >>> gradients = {"w": 1.0, "b": 1.0}
    >>> optimizer.update(gradients, optimizer.init(gradients))[0]
    {'w': -0.1, 'b': 1.0}
    """
    check_transformation(inner, "masked", "argument 0")
    inner = with_extra_args_support(inner)

    def choices(like: Any) -> tuple[list[Any], tree.TreeDef]:
        return tree.flatten(mask(like) if callable(mask) else mask)

    def chosen(marks: list[Any], treedef: tree.TreeDef, whole: Any, name: str) -> tuple[Any, Any]:
        parts = tree.check_match(
            treedef,
            whole,
            what=f"the mask does not fit {name}",
            where="the mask",
            against=name,
            prefix=True,
            blame="expected",
        )
        kept = [part if mark else MaskedNode() for mark, part in zip(marks, parts, strict=True)]
        return tree.unflatten(treedef, kept), parts

    def init(params: Params) -> MaskedState:
        part, _ = chosen(*choices(params), params, "the parameters")
        return MaskedState(inner.init(part))

    def update(
        updates: Updates, state: OptState, params: Params | None = None, **extra_args: Any
    ) -> tuple[Updates, OptState]:
        state = check_state(state, MaskedState, "masked")
        marks, treedef = choices(updates)
        part, olds = chosen(marks, treedef, updates, "the gradients")
        if params is not None:
            params, _ = chosen(marks, treedef, params, "the parameters")
        part, inner_state = inner.update(part, state.inner_state, params, **extra_args)
        news = treedef.flatten_up_to(part)
        merged = [new if mark else old for mark, new, old in zip(marks, news, olds, strict=True)]
        return tree.unflatten(treedef, merged), MaskedState(inner_state)

    return GradientTransformationExtraArgs(init, update)
