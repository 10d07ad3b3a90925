"""The unknowns of an optimization: a pytree for the user, a vector of float64 for SciPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core.level import is_array
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import DtypeError, ShapeError, TreeMismatchError, describe, user_line
from funcgrad.transforms.flat import is_differentiable

__all__ = ["Unknowns", "applied", "as_guess", "join", "join_traced"]


def as_guess(x0: Any, name: str) -> Any:
    """Return an initial guess with floating leaves: a list of numbers as an array, as in SciPy."""
    if type(x0) in (list, tuple) and all(isinstance(x, int | float | np.generic) for x in x0):
        return np.asarray(x0, dtype=float)
    return tree.map_with_path(lambda path, leaf: _as_float(path, leaf, name), x0)


def _as_float(path: Any, leaf: Any, name: str) -> Any:
    kind = dtype_of(leaf).kind if is_differentiable(leaf) is not False else "O"
    if isinstance(leaf, int):  # promoted, as SciPy does
        return float(leaf)
    if kind in "iub":
        return leaf.astype(float)
    if kind != "f":
        raise DtypeError(
            f"x0 of {name} needs real numbers, got {describe(leaf)}",
            where=f"x0{tree.keystr(path)}, {user_line()}",
            fix="give real and imaginary part as two leaves"
            if kind == "c"
            else "close over what is no number, or set it apart with funcgrad.tree.partition",
        )
    return leaf


class Unknowns:
    """Turns a pytree like `guess`, of plain leaves, into a vector of float64 and back."""

    def __init__(self, guess: Any):
        self.guess = guess
        leaves, self.treedef = tree.flatten(guess)
        self.shapes = [shape_of(leaf) for leaf in leaves]
        # Of each leaf its dtype, or None for a Python number; and whether it is an array.
        self.dtypes = [getattr(leaf, "dtype", None) for leaf in leaves]
        self.arrays = [is_array(leaf) for leaf in leaves]
        self.ends = np.cumsum([int(np.prod(shape, dtype=int)) for shape in self.shapes]).tolist()
        self.size: int = self.ends[-1] if self.ends else 0
        # The usual case: SciPy's vector is what the function takes.
        self.is_alone = len(leaves) == 1 and leaves[0] is guess
        only = guess if self.is_alone else None
        self.is_vector = type(only) is np.ndarray and only.ndim == 1 and only.dtype == np.float64

    def vector(self) -> Any:
        """Return the guess as a vector."""
        return join(tree.leaves(self.guess))

    def tree(self, vector: Any) -> Any:
        """Return a vector as a pytree like the guess."""
        if self.is_vector:
            return vector
        leaves = []
        start = 0
        for shape, dtype, end, array in zip(
            self.shapes, self.dtypes, self.ends, self.arrays, strict=True
        ):
            part = vector[start:end]
            start = end
            if dtype is None:
                leaves.append(float(part[0]) if type(part) is np.ndarray else part[0])
                continue
            if not array:
                part = part[0]
            elif len(shape) != 1:
                part = np.reshape(part, shape)
            leaves.append(part if part.dtype == dtype else part.astype(dtype))
        return tree.unflatten(self.treedef, leaves)

    def of(self, value: Any, what: str) -> Any:
        """Return what must be like the guess, a gradient say, as a vector; or a vector as it is."""
        if type(value) is np.ndarray and value.shape == (self.size,):
            return value
        try:
            parts = self.treedef.flatten_up_to(value)
        except TreeMismatchError as error:
            raise TreeMismatchError(
                f"{what} does not have the structure of x0",
                where=f"{error.where.replace('the tree', what, 1)}; {user_line()}",
                fix=error.fix,
            ) from None
        for (path, part), shape in zip(
            tree.leaves_with_path(tree.unflatten(self.treedef, parts)), self.shapes, strict=True
        ):
            if np.shape(part) != shape:
                raise ShapeError(
                    f"{what} has shape {np.shape(part)}, expected {shape}, that of x0",
                    where=f"{what}{tree.keystr(path)}, {user_line()}",
                    fix="return a pytree like x0",
                )
        return join(parts)

    def matrix(self, value: Any, what: str) -> Any:
        """Return a Hessian as a matrix: a pytree of pytrees like the guess, or one as it is."""
        if shape_of(value) == (self.size, self.size) or not self.size:
            return value
        try:
            rows = self.treedef.flatten_up_to(value)
            blocks = [self.treedef.flatten_up_to(row) for row in rows]
        except TreeMismatchError:
            return value  # SciPy says what is wrong with it, or knows its kind
        sizes = [int(np.prod(shape, dtype=int)) for shape in self.shapes]
        return np.block(
            [
                [np.reshape(block, (m, n)) for block, n in zip(row, sizes, strict=True)]
                for row, m in zip(blocks, sizes, strict=True)
            ]
        )


def join(leaves: Sequence[Any]) -> Any:
    """Join arrays and numbers to one vector of float64."""
    if len(leaves) == 1 and type(leaves[0]) is np.ndarray:
        vector = leaves[0].ravel()
        return vector if vector.dtype == np.float64 else vector.astype(float)
    parts = [np.ravel(leaf) for leaf in leaves]
    joined: Any = np.concatenate(parts) if parts else np.zeros(0)
    return joined if joined.dtype == np.float64 else joined.astype(float)


def join_traced(leaves: Any) -> Any:
    """Join leaves to one vector, in a way that can be traced."""
    joined: Any = np.concatenate([np.ravel(leaf) for leaf in leaves]) if leaves else np.zeros(0)
    return joined if joined.dtype == np.float64 else joined.astype(float)


def applied(function: Any, args: Any) -> Any:
    return lambda *x: function(*x, *args)
