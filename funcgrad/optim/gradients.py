"""Gradients that are scaled inside of a function."""

from __future__ import annotations

from typing import Any

from funcgrad import custom_vjp, stop_gradient, tree
from funcgrad.optim.leaves import like_leaf

__all__ = ["scale_gradient"]


def scale_gradient(inputs: Any, scale: Any) -> Any:
    """Return the inputs; their gradients are multiplied by a factor.

    Parameters
    ----------
    inputs : pytree
        Of arrays and numbers.
    scale : float
        The factor.

    Returns
    -------
    pytree
        The same.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.grad(lambda x: scale_gradient(x, 0.5) ** 2)(3.0)
    3.0
    """
    if type(scale) in (int, float):
        if scale == 1:
            return inputs
        if scale == 0:
            return stop_gradient(inputs)
    return _scaled(inputs, scale)


@custom_vjp
def _scaled(inputs: Any, scale: Any) -> Any:
    return inputs


def _forward(inputs: Any, scale: Any) -> tuple[Any, Any]:
    return inputs, scale


def _backward(scale: Any, bar: Any) -> tuple[Any, None]:
    return tree.map(lambda leaf: like_leaf(leaf * scale, leaf), bar), None


_scaled.defvjp(_forward, _backward)
