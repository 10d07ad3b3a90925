"""Samples and batches: trees of arrays that agree in the length of their first axis.

The one idea: a data set of arrays is one pytree, of which sample `i` is row `i` of every leaf, and
a batch is some rows of every leaf. `rows_of` checks such a tree, `collate` makes it of samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.errors import ArgumentError, ShapeError, TreeMismatchError, describe, user_line

__all__ = ["collate", "rows_of"]


def rows_of(arrays: Any, use: str, *, may_be_empty: bool = False) -> tuple[list[Any], Any, int]:
    """Return the leaves of a tree of arrays, its structure, and how many rows all of them have.

    Raises
    ------
    ArgumentError
        A leaf is no array, there are none, or they have no rows.
    ShapeError
        An array has no axis, or another number of rows than the first one.
    """
    leaves, treedef = tree.flatten(arrays)
    if not leaves:
        raise ArgumentError(
            f"{use} got a tree without arrays",
            where=f"its argument is {describe(arrays)}, at {user_line()}",
            fix="give arrays in a dict or a tuple, such as {'x': x, 'y': y}",
        )
    count = None
    for leaf in leaves:
        shape = getattr(leaf, "shape", None)
        if not isinstance(shape, tuple) or not hasattr(leaf, "dtype") or not shape:
            raise _no_rows(arrays, use)
        if count is None:
            count = shape[0]
        elif shape[0] != count:
            raise _uneven(arrays, use)
    assert count is not None
    if not count and not may_be_empty:
        raise ArgumentError(
            f"{use} got no samples: the data set is empty",
            where=f"{_place(arrays, 0)} is {describe(leaves[0])}, at {user_line()}",
            fix="look at what read or selected the data",
        )
    return leaves, treedef, count


def _place(arrays: Any, index: int) -> str:
    path, _ = tree.leaves_with_path(arrays)[index]
    return tree.keystr(path) or "the array"


def _no_rows(arrays: Any, use: str) -> ArgumentError | ShapeError:
    for path, leaf in tree.leaves_with_path(arrays):
        where = f"{tree.keystr(path) or 'the argument'} is {describe(leaf)}, at {user_line()}"
        if not hasattr(leaf, "dtype") or not isinstance(getattr(leaf, "shape", None), tuple):
            return ArgumentError(
                f"{use} needs arrays",
                where=where,
                fix="make arrays of lists by np.array; a list of samples is a sequence: "
                "Dataset.from_sequence(samples)",
            )
        if not leaf.shape:
            return ShapeError(
                f"{use} needs arrays with a first axis of samples",
                where=where,
                fix="leave single numbers out of the tree",
            )
    raise AssertionError("all leaves have rows")


def _uneven(arrays: Any, use: str) -> ShapeError:
    pairs = tree.leaves_with_path(arrays)
    (path, leaf), *others = pairs
    count = leaf.shape[0]
    other = [
        f"{tree.keystr(path)} is {describe(leaf)}"
        for path, leaf in others
        if leaf.shape[:1] != (count,)
    ]
    return ShapeError(
        f"{use} needs arrays of equally many samples",
        where=f"{tree.keystr(path)} is {describe(leaf)}, but {', '.join(other)}, at {user_line()}",
        fix="give arrays whose first axes have one length, a row for each sample",
    )


def collate(samples: Sequence[Any]) -> Any:
    """Stack samples: make a batch, with one new axis in front, of pytrees of one structure.

    Parameters
    ----------
    samples : sequence of pytree
        At least one. Leaves are arrays or numbers, of equal shapes in all samples; strings become
        a list of strings.

    Returns
    -------
    pytree of ndarray
        As each sample, with leaves of shape ``(len(samples), ...)``.

    Raises
    ------
    ArgumentError
        There are no samples.
    TreeMismatchError
        Two samples have different structures.
    ShapeError
        A leaf has not the same shape in all samples: it is named by its path.

    Examples
    --------
    >>> batch = collate([{"x": np.zeros(3), "y": 1}, {"x": np.ones(3), "y": 0}])
    >>> batch["x"].shape, batch["y"]
    ((2, 3), array([1, 0]))
    """
    if not len(samples):
        raise ArgumentError(
            "collate got no samples", where=user_line(), fix="give at least one sample"
        )
    first, treedef = tree.flatten(samples[0])
    columns: list[list[Any]] = [[leaf] for leaf in first]
    for i, sample in enumerate(samples[1:], start=1):
        leaves, found = tree.flatten(sample)
        if found != treedef:
            raise TreeMismatchError(
                "the samples of a batch have different structures",
                where=f"sample {i} of the batch is {found}, sample 0 is {treedef}",
                fix="make samples of one structure, or give batch(..., collate=) a function of a "
                "list of samples",
            )
        for column, leaf in zip(columns, leaves, strict=True):
            column.append(leaf)
    return tree.unflatten(
        treedef, [_stack(column, samples[0], k) for k, column in enumerate(columns)]
    )


def _stack(column: list[Any], sample: Any, k: int) -> Any:
    if isinstance(column[0], (str, bytes)):
        return column
    try:
        return np.stack(column)
    except ValueError as error:
        shapes = [np.shape(leaf) for leaf in column]
        odd = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
        if odd is None:
            raise
        raise ShapeError(
            "the samples of a batch have different shapes",
            where=f"{_place(sample, k)} has the shape {shapes[0]} in sample 0 of the batch, and "
            f"{shapes[odd]} in sample {odd}",
            fix="pad them: batch(size, collate=fg.data.pad_sequences)",
        ) from error
