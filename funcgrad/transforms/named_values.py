"""`checkpoint_name`: a name for a value, for the policies of `checkpoint` to mention."""

from __future__ import annotations

from typing import Any

from funcgrad import tree
from funcgrad.core.batch import broadcasting
from funcgrad.core.level import TracerBase
from funcgrad.core.primitive import Primitive
from funcgrad.errors import ArgumentError, describe, user_line

__all__ = ["NAMED", "checkpoint_name"]


def _same(x: Any, *, name: str) -> Any:
    return x


# The identity, which policies know by its parameter.
NAMED = Primitive(_same, name="checkpoint_name", may_alias=True)
NAMED.linear = True
broadcasting(NAMED)


@NAMED.def_jvp
def _named_jvp(primals: Any, tangents: Any, out: Any, *, name: str) -> Any:
    """Hand the tangent on."""
    (x_dot,) = tangents
    return x_dot


@NAMED.def_vjp
def _named_vjp(primals: Any, out: Any, *, name: str) -> Any:
    """Hand the cotangent back."""

    def named_pullback(out_bar: Any) -> Any:
        return out_bar

    return named_pullback


def checkpoint_name(x: Any, name: str) -> Any:
    """Return `x`, under a name that the policy of a `checkpoint` can mention.

    Parameters
    ----------
    x : pytree
        Arrays, traced or not.
    name : str
        The name.

    Returns
    -------
    pytree
        The same values.

    Raises
    ------
    ArgumentError
        The name is not a string.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> policy = fg.checkpoint_policies.save_only_these_names("hidden")
    >>> @fg.checkpoint(policy=policy)
    ... def f(x):
    ...     hidden = fg.checkpoint_name(np.exp(x), "hidden")
    ...     return np.sin(hidden)
    >>> bool(np.isclose(fg.grad(f)(0.0), np.cos(1.0)))
    True
    """
    if not isinstance(name, str):
        raise ArgumentError(
            f"checkpoint_name needs a string for a name, got {describe(name)}",
            where=user_line(),
            fix='write checkpoint_name(x, "name")',
        )
    return tree.map(lambda leaf: _give(leaf, name), x)


def _give(leaf: Any, name: str) -> Any:
    return NAMED.bind(leaf, name=name) if isinstance(leaf, TracerBase) else leaf
