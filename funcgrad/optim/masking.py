"""Transformations for a part of the parameters: by a tree of bools, a function, or by paths.

A path is written with dots, ``"encoder.layers.0.weight"``, and a pattern for paths with the stars
of file names: ``"encoder.*"``. A pattern that matches a node means all that is in it.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Sequence
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
    with_extra_args_support,
)
from funcgrad.optim.leaves import matched

__all__ = ["MaskedNode", "MaskedState", "ParamsPlaceholder", "is_function", "masked", "patterns_of"]


class MaskedNode(NamedTuple):
    """Stands for what a mask left out: a node without leaves.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.tree.leaves({"w": fg.optim.MaskedNode(), "b": 1.0})
    [1.0]
    """


class MaskedState(NamedTuple):
    """The state of the transformation that is applied where a mask is true.

    Attributes
    ----------
    inner_state : pytree
        That state, with a `MaskedNode` for each parameter that is left out.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = fg.optim.masked(fg.optim.trace(0.9), {"w": False, "b": True})
    >>> optimizer.init({"w": 1.0, "b": 2.0})
    MaskedState(inner_state=TraceState(trace={'w': MaskedNode(), 'b': 0.0}))
    """

    inner_state: OptState


class ParamsPlaceholder(NamedTuple):
    """Stands for the parameters where it matters which parts of a state are like them."""


def masked(
    inner: GradientTransformation, mask: Any, *, mask_compatible_extra_args: bool = False
) -> GradientTransformationExtraArgs:
    """Apply a transformation to a part of the parameters; the rest passes unchanged.

    Parameters
    ----------
    inner : GradientTransformation
        What to apply.
    mask : pytree of bool, callable, str or list of str
        Like the parameters, or with one bool for a whole subtree. A callable makes it of a tree
        like the parameters. Strings are patterns of paths: ``"encoder.*"``.
    mask_compatible_extra_args : bool
        Mask extra arguments that have the structure of the gradients, too.

    Returns
    -------
    GradientTransformationExtraArgs
        Its state holds that of `inner`, of the chosen part.

    Raises
    ------
    ArgumentError
        `inner` is no transformation; from `init`: a pattern matches no parameter.
    TreeMismatchError
        From `init` and `update`: the mask does not fit.

    Examples
    --------
    >>> import funcgrad as fg
    >>> optimizer = masked(fg.optim.scale(-0.1), {"w": True, "b": False})
    >>> gradients = {"w": 1.0, "b": 1.0}
    >>> optimizer.update(gradients, optimizer.init(gradients))[0]
    {'w': -0.1, 'b': 1.0}
    >>> optimizer = masked(fg.optim.scale(-0.1), "w*")
    >>> optimizer.update(gradients, optimizer.init(gradients))[0]
    {'w': -0.1, 'b': 1.0}
    """
    check_transformation(inner, "masked", "argument 0")
    inner = with_extra_args_support(inner)
    marks_of = Marks(mask)

    def init(params: Params) -> MaskedState:
        if isinstance(params, ParamsPlaceholder):
            return MaskedState(inner.init(params))
        return MaskedState(inner.init(marks_of.first(params).part(params, "the parameters")))

    def update(
        updates: Updates, state: OptState, params: Params | None = None, **extra_args: Any
    ) -> tuple[Updates, OptState]:
        state = check_state(state, MaskedState, "masked")
        marks = marks_of(updates)
        if mask_compatible_extra_args:
            extra_args = marks.parts_of_like(updates, extra_args)
        updates, inner_state = marks.update(inner, updates, state.inner_state, params, extra_args)
        return updates, MaskedState(inner_state)

    return GradientTransformationExtraArgs(init, update)


class Marked:
    """A mask for one structure: which of its parts are chosen."""

    def __init__(self, marks: Sequence[Any], treedef: tree.TreeDef) -> None:
        self.marks = marks
        self.treedef = treedef

    def split(self, whole: Any, name: str) -> list[Any]:
        """Return the parts of a tree, one for each mark."""
        return tree.check_match(
            self.treedef,
            whole,
            what=f"the mask does not fit {name}",
            where="the mask",
            against=name,
            prefix=True,
            blame="expected",
        )

    def part(self, whole: Any, name: str) -> Any:
        """Return a tree with `MaskedNode` for what is not chosen."""
        return self._part(self.split(whole, name))

    def _part(self, parts: Sequence[Any]) -> Any:
        kept = [
            part if mark else MaskedNode() for mark, part in zip(self.marks, parts, strict=True)
        ]
        return tree.unflatten(self.treedef, kept)

    def parts_of_like(self, updates: Updates, extra_args: dict[str, Any]) -> dict[str, Any]:
        """Mask the arguments that have the structure of the updates."""
        structure = tree.structure(updates)
        return {
            name: self.part(value, name) if tree.structure(value) == structure else value
            for name, value in extra_args.items()
        }

    def update(
        self,
        inner: GradientTransformationExtraArgs,
        updates: Updates,
        state: OptState,
        params: Params | None,
        extra_args: dict[str, Any],
    ) -> tuple[Updates, OptState]:
        """Apply a transformation to the chosen parts."""
        olds = self.split(updates, "the gradients")
        if params is not None:
            params = self.part(_with_holes(params, updates), "the parameters")
        part, state = inner.update(self._part(olds), state, params, **extra_args)
        news = self.treedef.flatten_up_to(part)
        merged = [
            new if mark else old for mark, new, old in zip(self.marks, news, olds, strict=True)
        ]
        return tree.unflatten(self.treedef, merged), state


def _with_holes(params: Params, updates: Updates) -> Params:
    """Return the parameters with None where the updates are: a mask may be made of those."""
    if tree.structure(params) == tree.structure(updates):
        return params
    leaves, others, treedef = matched(
        updates,
        params,
        "the gradients do not fit the parameters",
        "the gradients",
        "the parameters",
    )
    return tree.unflatten(
        treedef,
        [None if leaf is None else old for leaf, old in zip(leaves, others, strict=True)],
    )


class Marks:
    """A mask as the user gave it, for any tree."""

    def __init__(self, mask: Any) -> None:
        self.patterns = patterns_of(mask)
        self.mask = mask
        self.known: tuple[tree.TreeDef, Marked] | None = None

    def __call__(self, like: Any) -> Marked:
        """Return the mask for a tree."""
        if self.patterns is None:
            mask = self.mask
            if is_function(mask):
                mask = mask(like)
            return Marked(*tree.flatten(mask))
        # Paths are walked once for a structure; it is the same at every step.
        structure = tree.structure(like, is_leaf=_is_none)
        if self.known is None or self.known[0] != structure:
            self.known = structure, self._by_paths(like)
        return self.known[1]

    def first(self, params: Params) -> Marked:
        """Return the mask for parameters; raise if a pattern matches none of them."""
        if self.patterns is not None:
            paths = [path for path, _ in tree.leaves_with_path(params, is_leaf=_is_none)]
            for pattern in self.patterns:
                if not any(_matches(pattern, path) for path in paths):
                    raise _no_match(pattern, [_dotted(path) for path in paths])
        return self(params)

    def _by_paths(self, like: Any) -> Marked:
        found, treedef = tree.flatten_with_path(like, is_leaf=_is_none)
        patterns = self.patterns or ()
        return Marked(
            [any(_matches(pattern, path) for pattern in patterns) for path, _ in found], treedef
        )


def _is_none(value: Any) -> bool:
    return value is None


def is_function(mask: Any) -> bool:
    """Tell a function from a mask that happens to be callable, as a model of bools is."""
    leaves = tree.leaves(mask)
    return bool(leaves) and all(callable(leaf) for leaf in leaves)


def patterns_of(mask: Any) -> tuple[str, ...] | None:
    """Return the patterns that a mask consists of; None if it is of another kind."""
    if isinstance(mask, str):
        return (mask,)
    if isinstance(mask, list | tuple) and mask and all(isinstance(one, str) for one in mask):
        return tuple(mask)
    return None


def _dotted(path: tree.KeyPath) -> str:
    return tree.keystr(path, simple=True, separator=".")


def _matches(pattern: str, path: tree.KeyPath) -> bool:
    regex = _regex(pattern)
    return any(regex.match(_dotted(path[:i])) for i in range(1, len(path) + 1))


@functools.cache
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(pattern))


def _no_match(pattern: str, paths: list[str]) -> ArgumentError:
    shown = ", ".join(paths[:8]) + (", ..." if len(paths) > 8 else "")
    return ArgumentError(
        f"no parameter matches the pattern {pattern!r}",
        where=f"{user_line()}; the parameters: {shown}",
        fix=f"write a pattern for a path: {paths[0]!r}, say" if paths else "leave the mask out",
    )
