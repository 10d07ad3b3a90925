"""The axes of a `vmap`: which one of each argument has the examples, and how many these are.

The one idea: `in_axes` and `out_axes` are pytrees that begin as the arguments, or the output, do.
They are spread to one axis for each leaf; what does not fit is said in terms of the arguments.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from funcgrad import tree
from funcgrad.core.boxed import Boxed
from funcgrad.core.foreign import PLAIN, refuse
from funcgrad.core.level import Origin
from funcgrad.core.zero import shape_of
from funcgrad.errors import ArgumentError, ShapeError, TreeMismatchError, describe, user_line

__all__ = ["check_axes", "is_mappable", "number_of_examples", "spread_axes", "with_axes"]

_MAPPABLE = (bool, int, float, complex, Boxed)


def check_axes(axes: Any, what: str) -> None:
    """Raise unless a pytree holds numbers of axes and None."""
    for path, axis in tree.flatten_with_path(axes, is_leaf=_is_none)[0]:
        if axis is not None and (isinstance(axis, bool) or not isinstance(axis, int | np.integer)):
            raise ArgumentError(
                f"{what} of vmap must hold axis numbers and None, got {describe(axis)}",
                where=f"{what}{tree.keystr(path)}, {user_line()}",
                fix=f"write {what}=0",
            )


def _is_none(value: Any) -> bool:
    return value is None


def with_axes(
    args: tuple[Any, ...], kwargs: dict[str, Any], in_axes: Any, origin: Origin
) -> tuple[list[Any], Any, list[Any]]:
    """Flatten the arguments, and find the axis of each leaf."""
    if isinstance(in_axes, tuple | list):
        if len(in_axes) != len(args):
            raise TreeMismatchError(
                f"in_axes of vmap has {len(in_axes)} entries for {len(args)} positional "
                f"argument{'s' * (len(args) != 1)}",
                where=str(origin),
                fix="give one entry for each: an axis, or None for an argument that is the same "
                "for all examples"
                + ("; those given by keyword have none, and their axis is 0" if kwargs else ""),
            )
        entries = list(in_axes)
    else:
        entries = [in_axes] * len(args)
    axes: list[Any] = []
    for number, (arg, entry) in enumerate(zip(args, entries, strict=True)):
        axes += spread_axes(entry, arg, f"in_axes[{number}]", f"argument {number}", origin)
    leaves, treedef = tree.flatten((args, kwargs))
    axes += [0] * (len(leaves) - len(axes))  # keyword arguments
    for position, axis in enumerate(axes):
        leaf = leaves[position]
        if axis is None:
            continue
        if not is_mappable(leaf):
            axes[position] = None  # a string, a function: the same for all examples
            continue
        if type(leaf) not in PLAIN:
            refuse(leaf, lambda position=position: _place(position, (args, kwargs), origin))  # type: ignore[misc]
        ndim = len(shape_of(leaf))
        if not -ndim <= axis < ndim:
            raise ShapeError(
                f"vmap was asked for axis {axis} of {describe(leaf)}, which has no such axis",
                where=_place(position, (args, kwargs), origin),
                fix="give None in in_axes for what is the same for all examples"
                + _or_an_array(position, (args, kwargs))
                if not ndim
                else f"give an axis from {-ndim} to {ndim - 1}, or None",
            )
        axes[position] = normalize_axis_index(axis, ndim)
    return leaves, treedef, axes


def spread_axes(entry: Any, value: Any, what: str, whose: str, origin: Origin) -> list[Any]:
    """Return an axis for each leaf of `value`, where `entry` is a prefix of its structure."""
    if entry is None or isinstance(entry, int | np.integer):
        return [entry] * len(tree.leaves(value))
    prefix, treedef = tree.flatten(entry, is_leaf=_is_none)
    try:
        parts = treedef.flatten_up_to(value)
    except TreeMismatchError as error:
        raise TreeMismatchError(
            f"{what} of vmap does not fit {whose}",
            where=f"{_in_words(error.where, what, whose)}; {origin}",
            fix="give one axis (or None) for the whole, or a pytree that begins as it does",
        ) from None
    return [
        axis
        for axis, part in zip(prefix, parts, strict=True)
        for _ in range(len(tree.leaves(part)))
    ]


def _in_words(where: str, what: str, whose: str) -> str:
    """Return the place where two trees differ, in the user's words for them."""
    return where.replace("the tree", whose, 1).replace("the structure", what)


def _or_an_array(position: int, call: tuple[Any, Any]) -> str:
    """Return the words for a number in a list or tuple, which may be meant as one array."""
    path, _ = tree.flatten_with_path(call)[0][position]
    inside = len(path) > 2 and hasattr(path[-1], "idx")
    return "; or, if a list of numbers is meant as one array, write np.array(x)" if inside else ""


def _place(position: int, call: tuple[Any, Any], origin: Origin) -> str:
    return f"{_named(position, call)} of {origin}"


def _named(position: int, call: tuple[Any, Any]) -> str:
    path, _ = tree.flatten_with_path(call)[0][position]
    key = path[1]
    name = f"argument {key.idx}" if hasattr(key, "idx") else f"argument {key.key!r}"
    inner = tree.keystr(path[2:])
    return f"{name}{' at ' + inner if inner else ''}"


def number_of_examples(
    leaves: list[Any], axes: list[Any], axis_size: int | None, call: Any, origin: Origin
) -> int:
    """Return the number of examples; raise unless all arguments agree on it."""
    found = [
        (position, axis, shape_of(leaf)[axis])
        for position, (leaf, axis) in enumerate(zip(leaves, axes, strict=True))
        if axis is not None
    ]
    sizes = [size for *_, size in found]
    if not sizes:
        if axis_size is None:
            raise ArgumentError(
                "vmap found no argument with an axis of examples"
                + (": in_axes is None for all of them" if leaves else ": the call has no arrays"),
                where=str(origin),
                fix="give the axis of one with in_axes=, or the number of examples with axis_size=",
            )
        return int(axis_size)
    # What most of them have, and the first of them if it is a draw.
    want = axis_size if axis_size is not None else max(dict.fromkeys(sizes), key=sizes.count)
    if any(size != want for size in sizes):
        rows = [
            (_named(position, call), describe(leaves[position]), axis, size)
            for position, axis, size in found
        ]
        what = "the arguments of vmap disagree about the number of examples"
        if axis_size is not None:
            what = f"the arguments of vmap do not all have axis_size={axis_size} examples"
        raise ShapeError(
            f"{what}\n{_table(rows, want)}",
            where=str(origin),
            fix="give the axis of examples of each argument with in_axes=, None for those without",
        )
    return int(want)


# How many lines a message lists at most of the arguments that agree, and of those that do not.
_AGREEING, _ODD = 8, 12


def _table(rows: list[tuple[str, str, int, int]], want: int) -> str:
    """List arguments with their axes and sizes, and mark those that have another size."""
    left = {True: _AGREEING, False: _ODD}
    lines = [("argument", "array", "axis", "size")]
    for name, array, axis, size in rows:
        agrees = size == want
        left[agrees] -= 1
        if left[agrees] >= 0:
            mark = "" if agrees else "  <- differs"
            lines.append((name, array, str(axis), f"{size}{mark}"))
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    text = [
        "    " + "  ".join([*(map(str.ljust, line, widths)), line[3]]).rstrip() for line in lines
    ]
    for agrees, number in left.items():
        if number < 0:
            text.append(f"    and {-number} more that {'agree' if agrees else 'differ'}")
    return "\n".join(text)


def is_mappable(leaf: Any) -> bool:
    """Tell whether a leaf is an array or a number; others are the same for all examples."""
    if isinstance(leaf, _MAPPABLE):
        return True
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")
