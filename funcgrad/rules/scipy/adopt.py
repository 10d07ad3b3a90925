"""Primitives of SciPy functions, which do not dispatch: `adopt` makes one and the call for it.

Without traced arguments the call is SciPy's own. With them, it is taken apart by the signature of
the SciPy that is installed: what is named as an array goes by position, all else that was given is
static. So a rule sees the options that the caller wrote, and reads others with their defaults.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from funcgrad.core.batch import count_examples, loop
from funcgrad.core.primitive import Primitive, register
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import MissingRuleError, user_line
from funcgrad.rules.matmul import as_array
from funcgrad.rules.spelling import holds_tracer

__all__ = [
    "Adopted",
    "adopt",
    "document",
    "fold",
    "folding",
    "no_option",
    "pull",
    "push",
    "refusing",
]


class Adopted(Primitive):
    """A SciPy function that is a primitive; `call` is the function of SciPy's signature."""

    call: Callable[..., Any]


def adopt(
    function: Any,
    *arrays: str,
    summary: str,
    forward: Any = None,
    refused: dict[str, str] | None = None,
) -> Adopted:
    """Make a primitive of a SciPy function.

    Parameters
    ----------
    function : callable
        SciPy's.
    *arrays : str
        Its first parameters, which are arrays.
    summary : str
        The first line of the docstring, and what there is to say of the derivative.
    forward : callable, optional
        What the primitive computes of arrays and options, if not `function` itself.
    refused : dict of str to str, optional
        Options that the rules do not know, and for each what to write instead.
    """
    signature = inspect.signature(function)

    def compute(*values, **options):
        return function(*values, **options)

    made = Adopted(forward or compute, name=f"scipy_{function.__name__}")
    register(made, ())

    def call(*args, **kwargs):
        if not holds_tracer(args) and not holds_tracer(list(kwargs.values())):
            return function(*args, **kwargs)
        given = signature.bind(*args, **kwargs).arguments
        values = [as_array(given.pop(name)) for name in arrays]
        options = {key: value for key, value in given.items() if not key.startswith("overwrite_")}
        for key, instead in (refused or {}).items():
            if options.get(key) is not None and options[key] is not False:
                raise no_option(function, key, instead)
        return made.bind(*values, **options)

    made.call = document(call, function, summary)
    made.overridden = (made.call,)
    return made


def no_option(function: Any, option: str, instead: str) -> MissingRuleError:
    """Make the error for an option that the rules do not know."""
    return MissingRuleError(
        f"scipy.linalg.{function.__name__} with {option}= has no rule for traced values",
        where=user_line(),
        fix=instead,
    )


def push(rules: Primitive, *args: Any, **params: Any) -> Any:
    """Apply the forward-mode rule of another primitive."""
    assert rules.jvp is not None
    return rules.jvp(*args, **params)


def pull(rules: Primitive, *args: Any, **params: Any) -> Any:
    """Apply the reverse-mode rule of another primitive."""
    assert rules.vjp is not None
    return rules.vjp(*args, **params)


def document(call: Any, function: Any, summary: str) -> Any:
    """Give `call` the name and the signature of SciPy's `function`, and a docstring."""
    name = function.__name__
    call.__name__ = call.__qualname__ = name
    call.__signature__ = inspect.signature(function)
    call.__doc__ = (
        f"{summary}\n\nFor arrays that may be traced; parameters and results are those of "
        f"`scipy.linalg.{name}`.\n"
    )
    return call


def refusing(function: Any, instead: str) -> Any:
    """Make a function that refuses traced values, for one of SciPy's without a rule."""

    def call(*args, **kwargs):
        if holds_tracer(args) or holds_tracer(list(kwargs.values())):
            raise MissingRuleError(
                f"scipy.linalg.{function.__name__} has no rule for traced values",
                where=user_line(),
                fix=instead,
            )
        return function(*args, **kwargs)

    return document(call, function, f"`scipy.linalg.{function.__name__}`, of plain arrays only.")


def folding(primitive: Primitive) -> None:
    """Give a batching rule to the solution of systems whose last argument is the right side."""

    def folding_batch(args: Any, batched: Any, **params: Any) -> Any:
        return fold(primitive, args, batched, params)

    primitive.def_batch(folding_batch)


def fold(primitive: Primitive, args: Any, batched: Any, params: dict[str, Any]) -> Any:
    """Solve many systems: right sides for one matrix become the columns of one call."""
    *matrix, right = args
    size = count_examples(args, batched)
    if not size:
        dtype = np.result_type(dtype_of(matrix[0]), dtype_of(right))
        one = shape_of(right)[1:] if batched[-1] else shape_of(right)
        return np.zeros((0, *one), dtype if dtype.kind in "fc" else np.float64)
    ndim = len(shape_of(right)) - batched[-1]
    if any(batched[:-1]) or ndim > 2 or any(len(shape_of(x)) > 2 for x in matrix):
        return loop(primitive.bind, args, batched, params)
    _, n, *rest = shape_of(right)
    right = np.reshape(np.swapaxes(right, 0, 1), (n, size * prod(rest)))
    x = primitive.bind(*matrix, right, **params)
    unfolded = np.reshape(x, (n, size, *rest))
    return np.swapaxes(unfolded, 0, 1)
