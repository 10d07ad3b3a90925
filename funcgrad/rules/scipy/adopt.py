"""SciPy's functions, which do not dispatch: SciPy's own unless something is traced, then another.

`in_place_of` decorates that other function, and `plain_only` makes the one that refuses by name
what has no rule. `adopt` makes a primitive, and the call for it, which is taken apart by the
signature of the SciPy that is installed: what is named as an array goes by position, all else that
was given is static. So a rule sees the options that the caller wrote, and reads others with their
defaults.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from math import prod
from typing import Any, TypeVar, cast

import numpy as np

from funcgrad.core.alternatives import INSTEAD, public_module
from funcgrad.core.batch import count_examples, loop
from funcgrad.core.dispatch import call_function, missing
from funcgrad.core.level import is_tracing
from funcgrad.core.primitive import Primitive, register
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import FuncgradError, MissingRuleError, user_line
from funcgrad.rules.spelling import as_array, holds_tracer

__all__ = [
    "Adopted",
    "adopt",
    "document",
    "fold",
    "folding",
    "full_name",
    "in_place_of",
    "is_traced",
    "no_option",
    "plain_only",
    "pull",
    "push",
]


Call = TypeVar("Call", bound=Callable[..., Any])


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
        result = function(*values, **options)
        return tuple(result) if isinstance(result, list) else result  # of a stack of matrices

    made = Adopted(forward or compute, name=f"scipy_{function.__name__}")
    register(made, ())

    @in_place_of(function)
    def call(*args, **kwargs):
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
        f"{full_name(function)} with {option}= has no rule for traced values",
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


def full_name(function: Any) -> str:
    """Return the name that users know a function by, such as ``scipy.linalg.expm``."""
    return f"{public_module(function)}.{function.__name__}"


def document(call: Any, function: Any, summary: str) -> Any:
    """Give `call` the name and the signature of SciPy's `function`, and a docstring."""
    name = function.__name__
    call.__name__ = call.__qualname__ = name
    call.__signature__ = inspect.signature(function)
    call.__doc__ = (
        f"{summary}\n\nFor arrays that may be traced; parameters and results are those of "
        f"`{full_name(function)}`.\n"
    )
    return call


def is_traced(*values: Any) -> bool:
    """Tell whether one of the values, or of the lists, holds a traced value."""
    return holds_tracer(values)


def in_place_of(function: Callable[..., Any]) -> Callable[[Call], Call]:
    """Declare what is called instead of SciPy's function when an argument holds a traced value."""

    def declare(traced: Call) -> Call:
        @functools.wraps(traced)
        def either(*args: Any, **kwargs: Any) -> Any:
            if is_traced(*args, *kwargs.values()):
                return traced(*args, **kwargs)
            return function(*args, **kwargs)

        return cast(Call, either)

    return declare


def plain_only(value: Any, name: str = "") -> Any:
    """Return a function of SciPy's without a rule so that it refuses traced values by name.

    What is composed of functions with rules alone works as it is. Ufuncs refuse by themselves;
    classes and constants are returned as they are.
    """
    return _refusing(value) if inspect.isroutine(value) else value


@functools.cache
def _refusing(function: Any) -> Any:
    has_alternative = full_name(function) in INSTEAD

    @functools.wraps(function)
    def refusing(*args, **kwargs):
        if has_alternative and is_traced(*args, *kwargs.values()):
            return call_function(function, args, kwargs)
        try:
            return function(*args, **kwargs)
        except (FuncgradError, ValueError) as error:
            refused = isinstance(
                error if error.__cause__ is None else error.__cause__, FuncgradError
            )
            if refused and (is_tracing() or is_traced(*args, *kwargs.values())):
                given = (*args, *kwargs.values())
                raise missing(full_name(function), given) from error
            raise

    return refusing


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
