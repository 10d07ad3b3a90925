"""What `checkpoint` keeps for the backward pass.

A policy is a function ``policy(primitive, *args, **params) -> bool`` of one operation: whether its
result is kept for the backward pass. The names here are those of ``jax.checkpoint_policies``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.core.zero import shape_of
from funcgrad.errors import ArgumentError, describe, user_line
from funcgrad.transforms.named_values import NAMED

__all__ = [
    "checkpoint_dots",
    "checkpoint_dots_with_no_batch_dims",
    "dots_saveable",
    "dots_with_no_batch_dims_saveable",
    "everything_saveable",
    "nothing_saveable",
    "save_any_names_but_these",
    "save_anything_except_these_names",
    "save_from_both_policies",
    "save_only_these_names",
]

Policy = Callable[..., bool]


# Products of matrices, by the names of their primitives.
_DOTS = frozenset(
    {
        "dot",
        "einsum",
        "inner",
        "linalg_matmul",
        "linalg_tensordot",
        "linalg_vecdot",
        "matmul",
        "matvec",
        "multi_dot",
        "tensordot",
        "vdot",
        "vecdot",
        "vecmat",
    }
)


def everything_saveable(primitive: Any, *args: Any, **params: Any) -> bool:
    """Keep all results, as without a checkpoint.

    Examples
    --------
    >>> import funcgrad as fg
    >>> policy = fg.checkpoint_policies.everything_saveable
    >>> fg.grad(fg.checkpoint(lambda x: x**2, policy=policy))(3.0)
    6.0
    """
    return True


def nothing_saveable(primitive: Any, *args: Any, **params: Any) -> bool:
    """Keep no result, as by default.

    Examples
    --------
    >>> import funcgrad as fg
    >>> policy = fg.checkpoint_policies.nothing_saveable
    >>> fg.grad(fg.checkpoint(lambda x: x**2, policy=policy))(3.0)
    6.0
    """
    return False


def dots_saveable(primitive: Any, *args: Any, **params: Any) -> bool:
    """Keep products of matrices, which take the most time, and compute the rest again.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> layer = fg.checkpoint(
    ...     lambda x: np.tanh(x @ x), policy=fg.checkpoint_policies.dots_saveable
    ... )
    >>> fg.grad(lambda x: np.sum(layer(x)))(np.zeros((1, 1)))
    array([[0.]])
    """
    name: str = primitive.name
    return name in _DOTS


checkpoint_dots = dots_saveable

# How many axes of each operand are not those of a batch of products, where that depends on them.
_CORE = {
    "linalg_matmul": (2, 2),
    "linalg_vecdot": (1, 1),
    "matmul": (2, 2),
    "matvec": (2, 1),
    "vecdot": (1, 1),
    "vecmat": (1, 2),
}


def dots_with_no_batch_dims_saveable(primitive: Any, *args: Any, **params: Any) -> bool:
    """Keep products of matrices, unless they are many products at once, as those of attention.

    Many at once are ``matmul`` and the like of two operands with further axes, and an ``einsum``
    with an index that several operands and the result have.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> policy = fg.checkpoint_policies.dots_with_no_batch_dims_saveable
    >>> layer = fg.checkpoint(lambda x: np.tanh(x @ x), policy=policy)
    >>> fg.grad(lambda x: np.sum(layer(x)))(np.zeros((1, 1)))
    array([[0.]])
    """
    name: str = primitive.name
    if name == "einsum":
        return not _has_batch(params["subscripts"])
    core = _CORE.get(name)
    if core is None:
        return name in _DOTS
    return not all(len(shape_of(x)) > count for x, count in zip(args, core, strict=True))


checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


def _has_batch(subscripts: str) -> bool:
    """Tell whether an index of several operands of an einsum is one of the result."""
    inputs, arrow, output = subscripts.replace(" ", "").replace("...", "*").partition("->")
    operands = inputs.split(",")
    if not arrow:  # the result has the indices that are there once, and the axes of an ellipsis
        return sum("*" in operand for operand in operands) > 1
    return any(sum(label in operand for operand in operands) > 1 for label in output)


def _checked(names: tuple[str, ...], policy: str) -> frozenset[str]:
    # Without the call, ``policy=save_only_these_names``, the policy is asked with a primitive.
    for name in names:
        if not isinstance(name, str):
            raise ArgumentError(
                f"{policy} takes names, which are strings, got {describe(name)}",
                where=user_line(),
                fix=f'write checkpoint(f, policy={policy}("hidden", "scores"))',
            )
    return frozenset(names)


def save_only_these_names(*names: str) -> Policy:
    """Make the policy that keeps the values to which `checkpoint_name` gave one of these names.

    Parameters
    ----------
    *names : str
        Names that `checkpoint_name` gives.

    Returns
    -------
    callable
        For the argument `policy` of `checkpoint`.

    Raises
    ------
    ArgumentError
        A name is no string.

    Examples
    --------
    >>> import funcgrad as fg
    >>> policy = fg.checkpoint_policies.save_only_these_names("hidden", "attention")
    """
    chosen = _checked(names, "save_only_these_names")

    def only_these_names(primitive: Any, *args: Any, **params: Any) -> bool:
        return primitive is NAMED and params["name"] in chosen

    return only_these_names


def save_anything_except_these_names(*names: str) -> Policy:
    """Make the policy that keeps all but the values with one of these names.

    Parameters
    ----------
    *names : str
        Names that `checkpoint_name` gives.

    Returns
    -------
    callable
        For the argument `policy` of `checkpoint`.

    Raises
    ------
    ArgumentError
        A name is no string.

    Examples
    --------
    >>> import funcgrad as fg
    >>> policy = fg.checkpoint_policies.save_anything_except_these_names("scores")
    """
    chosen = _checked(names, "save_anything_except_these_names")

    def anything_except(primitive: Any, *args: Any, **params: Any) -> bool:
        return not (primitive is NAMED and params["name"] in chosen)

    # The operation that makes the value does not know that it is to have a name.
    anything_except.forgets = chosen  # type: ignore[attr-defined]
    return anything_except


def save_any_names_but_these(*names: str) -> Policy:
    """Make the policy that keeps the values that have a name, but for these names.

    Parameters
    ----------
    *names : str
        Names that `checkpoint_name` gives.

    Returns
    -------
    callable
        For the argument `policy` of `checkpoint`.

    Raises
    ------
    ArgumentError
        A name is no string.

    Examples
    --------
    >>> import funcgrad as fg
    >>> policy = fg.checkpoint_policies.save_any_names_but_these("scores")
    """
    chosen = _checked(names, "save_any_names_but_these")

    def any_names_but(primitive: Any, *args: Any, **params: Any) -> bool:
        return primitive is NAMED and params["name"] not in chosen

    return any_names_but


def save_from_both_policies(first: Policy, second: Policy) -> Policy:
    """Make the policy that keeps what one of two policies keeps.

    Parameters
    ----------
    first, second : callable
        The policies.

    Returns
    -------
    callable
        For the argument `policy` of `checkpoint`.

    Examples
    --------
    >>> import funcgrad as fg
    >>> policies = fg.checkpoint_policies
    >>> policy = policies.save_from_both_policies(
    ...     policies.dots_saveable, policies.save_only_these_names("hidden")
    ... )
    """

    def from_both(primitive: Any, *args: Any, **params: Any) -> bool:
        return first(primitive, *args, **params) or second(primitive, *args, **params)

    return from_both
