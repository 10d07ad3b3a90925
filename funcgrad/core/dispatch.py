"""From NumPy's protocols to primitives: what NEP 13 and NEP 18 hand us, handed on.

``np.sin(x)`` with a traced `x` arrives in `call_ufunc`, ``np.sum(x)`` in `call_function`, and
both look up who answers for it in the registries of `funcgrad.core.primitive`. A function that
nobody answers for is an error at once: computing it on the bare values would give a zero
gradient without a word.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from funcgrad.core.foreign import argument
from funcgrad.core.level import TracerBase, concrete, top_trace, traced_here
from funcgrad.core.primitive import FUNCTIONS, UFUNCS, store
from funcgrad.errors import MissingRuleError, MutationError, user_line

__all__ = ["call_function", "call_ufunc", "discrete"]


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: Any) -> Any:
    """Answer for ``ufunc.method(*inputs, **kwargs)`` with a traced argument."""
    if method != "__call__":
        return _call_method(ufunc, method, inputs, kwargs)
    primitive = UFUNCS.get(ufunc)
    if primitive is None:
        handler = FUNCTIONS.get(ufunc)
        if handler is None:
            raise missing(_name_of(ufunc), inputs)
        return handler(*inputs, **kwargs)
    out = kwargs.pop("out", None)
    where = kwargs.pop("where", True)
    # `dtype` and its like say how NumPy computes the value; the rules see what came of it.
    fun = partial(ufunc, **kwargs) if kwargs else ufunc
    if where is not True:
        # Where the mask is false NumPy computes nothing, so nothing there may be warned of.
        where = concrete(where)
        fun = partial(fun, where=where, out=None)
    trace = top_trace(inputs)
    if trace is None:  # only `out` is traced
        result = fun(*inputs)
    elif len(inputs) == 1:
        result = trace.unary(primitive, fun, *inputs)
    else:
        x, y = (np.asanyarray(a) if isinstance(a, list | tuple) else argument(a) for a in inputs)
        result = trace.binary(primitive, fun, x, y)
    if where is not True:
        # There `out` stays as it was, and without `out` NumPy leaves whatever was in memory:
        # zeros are as good, and the same every time.
        before = np.zeros_like(concrete(result)) if out is None else out[0]
        result = np.where(where, result, before)
        if np.shape(result) == ():
            result = result[()]  # a scalar, as ufuncs make of it
    return result if out is None else store(result, out, stretch=True)


def _call_method(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: Any) -> Any:
    if method == "outer":
        # Python numbers become arrays here, of float64 whatever the other argument is.
        x, y = (np.reshape(a, np.shape(a)) for a in map(argument, inputs))
        return ufunc(np.reshape(x, x.shape + (1,) * y.ndim), y, **kwargs)
    if method == "at":
        if isinstance(inputs[0], TracerBase):
            return FUNCTIONS[np.ufunc.at](ufunc, *inputs, **kwargs)
        raise MutationError(
            f"numpy.{ufunc.__name__}.at writes in place, which cannot be recorded",
            where=f"{user_line()}; " + _operands(inputs),
            fix=f"use funcgrad.at(x)[index].{ufunc.__name__}(values), which returns a new array",
        )
    handler = FUNCTIONS.get(getattr(ufunc, method))
    if handler is None:
        raise missing(f"{_name_of(ufunc)}.{method}", inputs)
    # NumPy hands over what was given by these keywords among the inputs as well.
    for name in ("array", "indices")[: len(inputs)]:
        kwargs.pop(name, None)
    return handler(*inputs, **kwargs)


def _name_of(ufunc: np.ufunc) -> str:
    name: str = ufunc.__name__
    return f"numpy.{name}" if getattr(np, name, None) is ufunc else f"ufunc {name}"


def call_function(fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Answer for a NumPy function that no primitive answers for."""
    trace = top_trace(_flat(args, kwargs))
    if trace is not None and trace.level == 0:  # of constants there is no derivative to lose
        return fun(*_below(args, trace), **_below(kwargs, trace))
    module = getattr(fun, "__module__", "numpy")
    raise missing(f"{module}.{getattr(fun, '__name__', fun)}", (*args, *kwargs.values()))


# Other packages' ufuncs that have a counterpart here.
_INSTEAD = {
    "ufunc expit": "funcgrad.nn.functional.sigmoid",
    "ufunc log_expit": "funcgrad.nn.functional.log_sigmoid",
}


def missing(name: str, args: tuple[Any, ...]) -> MissingRuleError:
    """Make the error for a function that nobody answers for."""
    instead = _INSTEAD.get(name)
    return MissingRuleError(
        f"{name} has no rule for traced values",
        where=f"{user_line()}; {_operands(args)}",
        fix=f"use {instead}"
        if instead
        else "write it with functions that have one, or add the rule: "
        "docs/how-to/add-a-primitive.md",
    )


def _operands(args: tuple[Any, ...]) -> str:
    for arg in args:
        if isinstance(arg, TracerBase):
            return "its argument is " + traced_here(arg)
    return "an argument holds a traced value"


def discrete(*functions: Any) -> None:
    """Declare NumPy functions whose results carry no derivative: comparisons, argmax, tests...

    They are computed on the values below the highest trace among the arguments, and return
    those values plain.
    """

    def declare(function: Any) -> None:
        def on_values(*args: Any, **kwargs: Any) -> Any:
            trace = top_trace(_flat(args, kwargs))
            if trace is not None and trace.ended:
                trace.escaped()
            return function(*_below(args, trace), **_below(kwargs, trace))

        FUNCTIONS[function] = on_values

    for function in functions:
        declare(function)


# What is asked about an array, not of its elements.
discrete(
    np.array2string,
    np.array_repr,
    np.array_str,
    np.can_cast,
    np.common_type,
    np.iscomplexobj,
    np.isrealobj,
    np.may_share_memory,
    np.min_scalar_type,
    np.ndim,
    np.result_type,
    np.shape,
    np.shares_memory,
    np.size,
)


def _flat(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    found: list[Any] = []
    for value in (*args, *kwargs.values()):
        found.extend(value if isinstance(value, list | tuple) else (value,))
    return found


def _below(value: Any, trace: Any) -> Any:
    if isinstance(value, TracerBase):
        return value._value if value._trace is trace else value
    if isinstance(value, list | tuple):
        return type(value)(_below(item, trace) for item in value)
    if isinstance(value, dict):
        return {key: _below(item, trace) for key, item in value.items()}
    return value
