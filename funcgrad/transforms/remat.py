"""`checkpoint`: forget the residuals of a function, and compute them again in the backward pass.

How that is done is the business of `funcgrad.transforms.forgetting`. Other transforms need to know
nothing of it: under `vmap` or `jvp` the operations are those that reverse mode gets to see, and
where nothing records the function is just called.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

from funcgrad.core.level import traces_in_progress
from funcgrad.errors import ArgumentError, describe, user_line
from funcgrad.transforms import checkpoint_policies
from funcgrad.transforms.checkpoint_policies import Policy, everything_saveable, nothing_saveable
from funcgrad.transforms.flat import Transformed
from funcgrad.transforms.forgetting import forgetting, recorders

__all__ = ["checkpoint", "checkpoint_policies", "remat"]


def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    policy: Policy | None = None,
    prevent_cse: bool = True,
    static_argnums: int | Sequence[int] = (),
) -> Any:
    """Make a function of which reverse mode keeps the inputs, and computes the rest again.

    Parameters
    ----------
    fun : callable
        Function of pytrees, in plain NumPy; it may close over traced values.
    policy : callable, optional
        Which results to keep all the same: one of `checkpoint_policies`, or a function
        ``policy(primitive, *args, **params) -> bool`` of an operation. By default none.
    prevent_cse, static_argnums
        For JAX's signature; without meaning here, where nothing is compiled and arguments that are
        not floating pass through untouched.

    Returns
    -------
    callable
        Computes what `fun` does, to the last bit, in every transform.

    Raises
    ------
    ArgumentError
        `fun` or `policy` is no function.

    See Also
    --------
    checkpoint_policies : what to keep.
    checkpoint_name : give a value a name that a policy can mention.
    debug.residuals : how much is kept, by line.

    Notes
    -----
    The backward pass runs the operations of `fun` once more, so a gradient costs about a third more
    time. A chain of n layers with a checkpoint around every sqrt(n) of them needs memory for about
    2 sqrt(n) layers in place of n [1]_. Checkpoints may be nested.

    It is the operations on traced values that are done again, not the Python code. What has no
    derivative (random numbers, ``x > 0``, indices that sort) is kept, and need not repeat itself.

    References
    ----------
    .. [1] T. Chen, B. Xu, C. Zhang, and C. Guestrin, *Training Deep Nets with Sublinear Memory
       Cost*, 2016, arXiv:1604.06174.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> @fg.checkpoint
    ... def layers(x):
    ...     for _ in range(10):
    ...         x = np.tanh(x)
    ...     return x
    >>> round(fg.grad(lambda x: layers(layers(x)))(1.0), 6)
    0.01611
    """
    if fun is None:  # as a decorator with options
        return functools.partial(checkpoint, policy=policy)
    return _Checkpoint(fun, policy)


remat = checkpoint


def _make(fun: Callable[..., Any], policy: Policy | None) -> Any:
    return _Checkpoint(fun, policy)


class _Checkpoint(Transformed):
    transform = "checkpoint"

    def __init__(self, fun: Callable[..., Any], policy: Policy | None):
        super().__init__(_make, fun, {"policy": policy})
        if policy is not None and not callable(policy):
            raise ArgumentError(
                f"policy of checkpoint must be a function, got {describe(policy)}",
                where=user_line(),
                fix="write policy=funcgrad.checkpoint_policies.dots_saveable, or leave it away",
            )
        self.policy = policy

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if self.policy is everything_saveable:
            return self.fun(*args, **kwargs)
        policy = None if self.policy is nothing_saveable else self.policy

        def again(values: Any) -> Any:
            return forgetting(recorders(values), policy)

        with contextlib.ExitStack() as stack:
            for trace in traces_in_progress():
                if trace.records:
                    stack.enter_context(trace.region(repr(self), around=again))
            stack.enter_context(again((args, kwargs)))
            return self.fun(*args, **kwargs)
