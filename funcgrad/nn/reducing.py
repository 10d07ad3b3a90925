"""What all losses share: how their numbers are reduced, and that shapes have to agree."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.errors import ArgumentError, ShapeError, describe, user_line
from funcgrad.rules.nn.activations import as_real

__all__ = ["beside", "paired", "reduced"]


def reduced(losses: Any, reduction: str, weights: Any = None) -> Any:
    """Return losses as they are, or their sum, or their mean: with weights, over their sum."""
    if reduction == "none":
        return losses
    if reduction == "sum":
        return np.sum(losses)
    if reduction == "mean":
        if weights is None:
            return np.mean(losses)
        total = np.sum(np.broadcast_to(weights, np.shape(losses)))
        # Of nothing the mean is NaN, as NumPy and PyTorch have it.
        return np.sum(losses) / total
    raise ArgumentError(
        f"there is no reduction {reduction!r}",
        where=user_line(),
        fix='"none", "mean" or "sum"',
    )


def beside(x: Any, other: Any) -> Any:
    """Make floats of `x`; integers and lists take the precision of `other`, and do not raise it."""
    dtype = getattr(x, "dtype", None)
    if type(x) is float or (dtype is not None and dtype.kind not in "biu"):
        return as_real(x)
    wanted = getattr(other, "dtype", None)
    x = as_real(x)
    return x if wanted is None or wanted.kind != "f" else x.astype(wanted)


def paired(name: str, first: Any, second: Any, names: str = "predictions and targets") -> Any:
    """Return two arguments as arrays of real numbers; their shapes agree, or one is a number.

    Broadcasting (n, 1) against (n,) would give n * n losses, without a word.
    """
    first, second = beside(first, second), beside(second, first)
    a, b = np.shape(first), np.shape(second)
    if a != b and a and b:
        raise ShapeError(
            f"the shapes of {names} differ",
            where=f"{user_line()} passes {describe(first)} and {describe(second)} to {name}",
            fix="reshape or squeeze one of them; np.broadcast_to if that is what you want",
        )
    return first, second
