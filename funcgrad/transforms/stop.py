"""Stopping derivatives: a value that counts as a constant from here on, for all transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core.batch import broadcasting
from funcgrad.core.level import TracerBase
from funcgrad.core.primitive import Primitive

__all__ = ["STOPPED", "stop_gradient"]


def _stop(x: Any) -> Any:
    # A copy, as the caller may write to it and others hold the original.
    return x.copy() if isinstance(x, np.ndarray) else x


# Each trace that meets it drops its derivative and hands on the value, down to the plain one.
STOPPED = Primitive(_stop, name="stop_gradient")
STOPPED.not_differentiable("it is there to stop the derivative")
broadcasting(STOPPED)


def stop_gradient(x: Any) -> Any:
    """Return a pytree of plain values, through which no derivative goes.

    Parameters
    ----------
    x : pytree
        Arrays, traced or not; leaves of any other kind pass through untouched.

    Returns
    -------
    pytree
        Of the same structure. Traced arrays have become plain ones, at all levels of
        differentiation.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.grad(lambda x: x * fg.stop_gradient(x))(3.0)
    3.0
    """
    return tree.map(_stop_leaf, x)


def _stop_leaf(leaf: Any) -> Any:
    return STOPPED.bind(leaf) if isinstance(leaf, TracerBase) else leaf
