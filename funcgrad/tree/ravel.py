"""`ravel`: a tree of arrays as one vector, and back.

What optimizers from elsewhere (SciPy's) and matrix methods need. Everything is done by NumPy
functions on whatever the leaves are, so a traced tree gives a traced vector and gradients flow
through in both directions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.errors import DtypeError, ShapeError, describe
from funcgrad.tree.operations import leaves_with_path
from funcgrad.tree.paths import keystr
from funcgrad.tree.treedef import TreeDef, flatten, unflatten

__all__ = ["Unravel", "ravel"]

_NUMBERS = (bool, int, float, complex)
# Objects, strings, bytes, times: no arithmetic that a vector could be for.
_NOT_NUMERIC = "OSUMm"


class Unravel:
    """From a vector back to a tree like the one that `ravel` was given.

    It holds the structure, shapes and dtypes of that tree, and none of its values. It can be
    pickled.
    """

    __slots__ = ("_dtype", "_kinds", "_shapes", "_size", "_sizes", "_treedef")

    def __init__(
        self,
        treedef: TreeDef,
        shapes: list[tuple[int, ...]],
        kinds: list[Any],
        dtype: np.dtype[Any],
    ) -> None:
        self._treedef = treedef
        self._shapes = shapes
        self._kinds = kinds  # of each leaf: its dtype, or the class of a Python number
        self._dtype = dtype
        self._sizes = [_size(shape) for shape in shapes]
        self._size = sum(self._sizes)

    def __call__(self, vector: Any) -> Any:
        """Build the tree.

        Parameters
        ----------
        vector : array_like, shape (size,)
            As many elements as the leaves had together.

        Returns
        -------
        pytree
            Leaves have the shapes and dtypes of the original ones. Python numbers are Python
            numbers again, unless `vector` is traced.

        Raises
        ------
        ShapeError
            `vector` has another shape.
        DtypeError
            `vector` is complex and the original tree was real.
        """
        if not hasattr(vector, "shape"):
            vector = np.asarray(vector)
        if tuple(vector.shape) != (self._size,):
            raise ShapeError(
                "the vector does not have the length of the tree",
                where=f"unravel got {describe(vector)}, the leaves have {self._size} elements",
                fix=f"give a vector of shape ({self._size},)",
            )
        if vector.dtype.kind == "c" and self._dtype.kind != "c":
            raise DtypeError(
                "a complex vector cannot become a tree of real leaves",
                where=f"unravel got {describe(vector)}, the tree was {self._dtype}",
                fix="give its real part: unravel(np.real(vector))",
            )
        leaves, start = [], 0
        for shape, kind, size in zip(self._shapes, self._kinds, self._sizes, strict=True):
            part = vector[start : start + size]
            start += size
            leaves.append(_leaf(part, shape, kind))
        return unflatten(self._treedef, leaves)

    def __reduce__(self) -> tuple[object, ...]:
        return Unravel, (self._treedef, self._shapes, self._kinds, self._dtype)

    def __repr__(self) -> str:
        return f"Unravel({self._dtype}[{self._size}] -> {self._treedef!r})"


def ravel(tree: Any) -> tuple[Any, Unravel]:
    """Join all leaves to one vector.

    Parameters
    ----------
    tree : pytree of array_like
        Leaves are numeric arrays of any shape, or Python numbers.

    Returns
    -------
    vector : ndarray, shape (size,)
        The elements of all leaves, in leaf order. A copy. Its dtype is that which NumPy promotes
        those of the leaves to, a Python float counting as float64 (so nothing is rounded);
        float64 if there are no leaves.
    unravel : callable
        Takes such a vector and returns a tree like `tree`: each leaf with its shape and dtype.

    Raises
    ------
    DtypeError
        A leaf is not numeric. It says where.

    Examples
    --------
    >>> vector, unravel = ravel({"w": np.ones((2, 2)), "b": 3.0})
    >>> vector
    array([3., 1., 1., 1., 1.])
    >>> unravel(2 * vector)
    {'w': array([[2., 2.],
           [2., 2.]]), 'b': 6.0}
    """
    leaves, treedef = flatten(tree)
    kinds = []
    for i, leaf in enumerate(leaves):
        kind = _kind(leaf)
        if kind is None:
            raise DtypeError(
                "only numeric leaves can be joined to a vector",
                where=f"the tree at {_path(tree, i)}: {describe(leaf)}",
                fix="set such leaves apart first: fg.tree.partition(tree, predicate)",
            )
        kinds.append(kind)
    dtype = np.result_type(*kinds) if kinds else np.dtype(np.float64)
    shapes = [tuple(getattr(leaf, "shape", ())) for leaf in leaves]
    unravel = Unravel(treedef, shapes, kinds, dtype)
    if not leaves:
        return np.zeros(0), unravel
    parts = [
        _cast(np.ravel(leaf), dtype) if hasattr(leaf, "shape") else np.full(1, leaf, dtype)
        for leaf in leaves
    ]
    return np.concatenate(parts), unravel


def _kind(leaf: Any) -> Any:
    """Return the dtype of an array, the class of a Python number, None for anything else."""
    dtype = getattr(leaf, "dtype", None)
    if dtype is not None and hasattr(leaf, "shape"):
        return None if dtype.kind in _NOT_NUMERIC else dtype
    return next((cls for cls in _NUMBERS if isinstance(leaf, cls)), None)


def _leaf(part: Any, shape: tuple[int, ...], kind: Any) -> Any:
    """Turn a piece of the vector into a leaf like the original."""
    if part.dtype.kind == "c" and np.dtype(kind).kind != "c":
        part = np.real(part)  # promotion made it complex; the imaginary part is not the leaf's
    if not isinstance(kind, type):
        return _cast(np.reshape(part, shape), kind)
    if isinstance(part, np.ndarray):
        return kind(part[0])
    return part[0]


def _cast(array: Any, dtype: Any) -> Any:
    return array if array.dtype == dtype else array.astype(dtype)


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


def _path(tree: Any, i: int) -> str:
    return keystr(leaves_with_path(tree)[i][0]) or "the root"
