"""Stacks of matrices: transposes, diagonals, vectors as columns, and matrices to sample.

The last two axes are those of the matrices, and all others count them; what is here is what the
rules of linear algebra say of a matrix again and again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.zero import shape_of
from funcgrad.rules.matmul import conj

__all__ = [
    "adjoint",
    "as_matrix",
    "columns",
    "diagonal_of",
    "from_diagonal",
    "hermitian_part",
    "regular",
    "transposed",
    "uncolumns",
]


def transposed(x: Any) -> Any:
    """Return the matrices of a stack, transposed."""
    return np.swapaxes(x, -1, -2)


def columns(x: Any, vector: bool) -> Any:
    """Return vectors as matrices of one column; matrices as they are."""
    return np.expand_dims(x, -1) if vector else x


def uncolumns(x: Any, vector: bool) -> Any:
    """Undo `columns`."""
    return np.squeeze(x, -1) if vector else x


def adjoint(x: Any) -> Any:
    """Return the conjugate transpose of each matrix of a stack."""
    return conj(transposed(x))


def hermitian_part(x: Any) -> Any:
    """Return the nearest Hermitian matrix; this is its own transpose as well."""
    return (x + adjoint(x)) / 2


def diagonal_of(x: Any) -> Any:
    """Return the diagonal of each matrix of a stack."""
    return np.diagonal(x, axis1=-2, axis2=-1)


def from_diagonal(w: Any) -> Any:
    """Return diagonal matrices."""
    return np.where(np.eye(shape_of(w)[-1], dtype=bool), np.expand_dims(w, -2), 0)


def as_matrix(x: Any) -> Any:
    """Return a scalar for each matrix so that it broadcasts against the matrices."""
    return np.expand_dims(x, (-2, -1))


def regular(rng: Any, *shape: int) -> Any:
    """Draw matrices that are far from singular."""
    return rng.normal(size=shape) + 2 * np.eye(shape[-1])
