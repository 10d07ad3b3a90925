"""Groups of parameters: each with an optimizer of its own, or frozen."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

from funcgrad import tree
from funcgrad.errors import ArgumentError, user_line
from funcgrad.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    Updates,
    check_state,
    check_transformation,
    set_to_zero,
    with_extra_args_support,
)
from funcgrad.optim.masking import (
    Marked,
    Marks,
    MaskedState,
    ParamsPlaceholder,
    is_function,
    masked,
)

__all__ = ["PartitionState", "freeze", "multi_transform", "partition", "selective_transform"]


class PartitionState(NamedTuple):
    """The states of the groups, by label."""

    inner_states: Mapping[Hashable, OptState]


def partition(
    transforms: Mapping[Hashable, GradientTransformation],
    param_labels: Any,
    *,
    mask_compatible_extra_args: bool = False,
) -> GradientTransformationExtraArgs:
    """Apply to each group of parameters a transformation of its own.

    Parameters
    ----------
    transforms : mapping
        The transformations, by label.
    param_labels : pytree, or callable
        The label of each parameter, or one for a whole subtree. A callable makes them of a tree
        like the parameters.
    mask_compatible_extra_args : bool
        Give each transformation its part of extra arguments that have the structure of the
        gradients.

    Returns
    -------
    GradientTransformationExtraArgs
        Its state is a `PartitionState`.

    Raises
    ------
    ArgumentError
        One of `transforms` is no transformation; from `init`: a label has none.
    TreeMismatchError
        From `init` and `update`: the labels do not fit.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = partition(
    ...     {"fast": fg.optim.sgd(1.0), "slow": fg.optim.sgd(0.25)}, {"w": "fast", "b": "slow"}
    ... )
    >>> gradients = {"w": 1.0, "b": 1.0}
    >>> optimizer.update(gradients, optimizer.init(gradients))[0]
    {'w': -1.0, 'b': -0.25}
    """
    for label, part in transforms.items():
        check_transformation(part, "partition", f"transforms[{label!r}]")
    parts = {label: with_extra_args_support(part) for label, part in transforms.items()}

    def marks_of(like: Any) -> dict[Hashable, Marked]:
        labels, treedef = tree.flatten(
            param_labels(like) if is_function(param_labels) else param_labels
        )
        for label in labels:
            if label not in parts:
                raise ArgumentError(
                    f"there is no transformation for the label {label!r}",
                    where=f"{user_line()}: partition has {', '.join(map(repr, parts))}",
                    fix=f"add one to transforms, or set_to_zero() to freeze: {{{label!r}: ...}}",
                )
        return {part: Marked([label == part for label in labels], treedef) for part in parts}

    def init(params: Params) -> PartitionState:
        if isinstance(params, ParamsPlaceholder):
            return PartitionState(
                {label: MaskedState(part.init(params)) for label, part in parts.items()}
            )
        marks = marks_of(params)
        return PartitionState(
            {
                label: MaskedState(part.init(marks[label].part(params, "the parameters")))
                for label, part in parts.items()
            }
        )

    def update(
        updates: Updates, state: OptState, params: Params | None = None, **extra_args: Any
    ) -> tuple[Updates, OptState]:
        olds = check_state(state, PartitionState, "partition").inner_states
        marks = marks_of(updates)
        news: dict[Hashable, OptState] = {}
        for label, part in parts.items():
            own = extra_args
            if mask_compatible_extra_args:
                own = marks[label].parts_of_like(updates, extra_args)
            updates, inner = marks[label].update(
                part, updates, olds[label].inner_state, params, own
            )
            news[label] = MaskedState(inner)
        return updates, PartitionState(news)

    return GradientTransformationExtraArgs(init, update)


def multi_transform(
    transforms: Mapping[Hashable, GradientTransformation],
    param_labels: Any,
    *,
    mask_compatible_extra_args: bool = False,
) -> GradientTransformationExtraArgs:
    """Do what `partition` does, under its older name.

    Parameters
    ----------
    transforms, param_labels, mask_compatible_extra_args
        As for `partition`.

    Returns
    -------
    GradientTransformationExtraArgs
        Its state is a `PartitionState`.

    Examples
    --------
    >>> import funcgrad as fg
    >>> parts = {"train": fg.optim.sgd(1.0), "keep": fg.optim.set_to_zero()}
    >>> optimizer = multi_transform(parts, {"w": "train", "b": "keep"})
    >>> gradients = {"w": 1.0, "b": 1.0}
    >>> optimizer.update(gradients, optimizer.init(gradients))[0]
    {'w': -1.0, 'b': 0.0}
    """
    return partition(
        transforms, param_labels, mask_compatible_extra_args=mask_compatible_extra_args
    )


def freeze(mask: Any) -> GradientTransformation:
    """Make the updates of a part of the parameters zero.

    Parameters
    ----------
    mask : pytree of bool, callable, str or list of str
        Which part: see `masked`. Strings are patterns of paths, such as ``"encoder.*"``.

    Returns
    -------
    GradientTransformation
        Its place is behind the optimizer in a `chain`. `selective_transform` saves the optimizer
        the work, and the state, for what is frozen.

    Examples
    --------
    >>> import funcgrad as fg
    >>> params = {"encoder": {"w": 1.0}, "head": {"w": 1.0}}
    >>> optimizer = fg.optim.chain(fg.optim.sgd(0.1), freeze("encoder.*"))
    >>> optimizer.update(params, optimizer.init(params))[0]
    {'encoder': {'w': 0.0}, 'head': {'w': -0.1}}
    """
    return masked(set_to_zero(), mask)


def selective_transform(
    optimizer: GradientTransformation, *, freeze_mask: Any
) -> GradientTransformation:
    """Apply an optimizer to all but a part of the parameters, which stays frozen.

    Parameters
    ----------
    optimizer : GradientTransformation
        The optimizer. It keeps no state for what is frozen.
    freeze_mask : pytree of bool, callable, str or list of str
        What is frozen: see `masked`. Strings are patterns of paths, such as ``"encoder.*"``.

    Returns
    -------
    GradientTransformation
        Its state is a `PartitionState`, of the labels "train" and "freeze".

    Raises
    ------
    ArgumentError
        From `init`: a pattern matches no parameter.

    Examples
    --------
    >>> import funcgrad as fg
    >>> params = {"encoder": {"w": 1.0}, "head": {"w": 1.0}}
    >>> optimizer = selective_transform(fg.optim.sgd(0.1), freeze_mask="encoder.*")
    >>> optimizer.update(params, optimizer.init(params))[0]
    {'encoder': {'w': 0.0}, 'head': {'w': -0.1}}
    """
    marks_of = Marks(freeze_mask)

    def labels(like: Any) -> Any:
        marks = marks_of(like)
        return tree.unflatten(
            marks.treedef, ["freeze" if mark else "train" for mark in marks.marks]
        )

    made = partition({"train": optimizer, "freeze": set_to_zero()}, labels)

    def init(params: Params) -> OptState:
        if not isinstance(params, ParamsPlaceholder):
            marks_of.first(params)
        return made.init(params)

    return GradientTransformationExtraArgs(init, made.update)
