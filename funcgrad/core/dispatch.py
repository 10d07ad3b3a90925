"""From NumPy's protocols to primitives: what NEP 13 and NEP 18 hand us, handed on.

``np.sin(x)`` with a traced `x` arrives in `call_ufunc`, ``np.sum(x)`` in `call_function`, and
both look up who answers for it in the registries of `funcgrad.core.primitive`. A function that
nobody answers for is an error at once: computing it on the bare values would give a zero
gradient without a word.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from funcgrad.core.alternatives import advice, public_module, reason
from funcgrad.core.foreign import argument
from funcgrad.core.level import TracerBase, concrete, detached, holds_tracer, top_trace, traced_here
from funcgrad.core.primitive import FUNCTIONS, UFUNCS, store
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import MissingRuleError, MutationError, ShapeError, user_line

__all__ = [
    "LATE",
    "about_arrays",
    "call_function",
    "call_ufunc",
    "discrete",
    "look_at_all",
    "of_shapes",
]

# Rules for functions of packages that funcgrad does not import: the module that has the functions
# -> the module that has the rules. They load when a function that nobody answers for meets a
# traced value while that package is in use.
LATE: dict[str, str] = {"scipy.special": "funcgrad.rules.scipy.special"}


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: Any) -> Any:
    """Answer for ``ufunc.method(*inputs, **kwargs)`` with a traced argument."""
    if method != "__call__":
        return _call_method(ufunc, method, inputs, kwargs)
    primitive = UFUNCS.get(ufunc)
    if primitive is None:
        handler = FUNCTIONS.get(ufunc)
        if handler is None:
            if _load_late():
                return call_ufunc(ufunc, method, inputs, kwargs)
            raise missing(_name_of(ufunc), inputs)
        return handler(*inputs, **kwargs)
    out = kwargs.pop("out", None)
    where = kwargs.pop("where", True)
    # `dtype` and its like say how NumPy computes the value; the rules see what came of it.
    fun = partial(ufunc, **kwargs) if kwargs else ufunc
    if where is not True:
        # Where the mask is false NumPy computes nothing, so nothing there may be warned of.
        where = detached(where)
        inputs = _as_wide_as(where, inputs)
        if not isinstance(where, TracerBase):
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
        before = dtype_of(result).type(0) if out is None else out[0]
        result = np.where(where, result, before)
        if np.shape(result) == ():
            result = result[()]  # a scalar, as ufuncs make of it
    return result if out is None else store(result, out, stretch=True)


def _as_wide_as(where: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the inputs so that the mask broadcasts into their shape: the result has its shape."""
    shape = np.broadcast_shapes(*map(shape_of, inputs))
    wide = np.broadcast_shapes(shape, shape_of(where))
    if wide == shape:
        return inputs
    return (np.broadcast_to(inputs[0], wide), *inputs[1:])


def _load_late() -> bool:
    """Load the rules for a package that is in use by now; tell whether there were any to load."""
    ready = [package for package in LATE if package in sys.modules]
    for package in ready:
        importlib.import_module(LATE[package])
        del LATE[package]
    return bool(ready)


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
    for module in (np, sys.modules.get("scipy.special")):
        if module is not None and getattr(module, name, None) is ufunc:
            return f"{module.__name__}.{name}"
    return f"ufunc {name}"


def call_function(fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Answer for a function, NumPy's or SciPy's, that no primitive answers for."""
    trace = top_trace(_flat(args, kwargs))
    if trace is not None and trace.level == 0:  # of constants there is no derivative to lose
        return fun(*_below(args, trace), **_below(kwargs, trace))
    name = f"{public_module(fun)}.{getattr(fun, '__name__', fun)}"
    raise missing(name, (*args, *kwargs.values()))


def look_at_all(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a NumPy function that hands over only for some of its arguments, such as the array."""
    if holds_tracer((*args, *kwargs.values())):
        return FUNCTIONS[function](*args, **kwargs)
    return function(*args, **kwargs)


def missing(name: str, args: Sequence[Any], instead: str | None = None) -> MissingRuleError:
    """Make the error for a function that nobody answers for, given its full name."""
    return MissingRuleError(
        f"{name} has no rule for traced values: {reason(name)}",
        where=f"{user_line()}; {_operands(args)}",
        fix=instead or advice(name),
    )


def _operands(args: Sequence[Any]) -> str:
    for arg in _flat(args, {}):
        if isinstance(arg, TracerBase):
            return "its argument is " + traced_here(arg)
    return "an argument holds a traced value"


def discrete(*functions: Any) -> None:
    """Declare NumPy functions whose results carry no derivative: comparisons, argmax, tests...

    They are computed on the values below the highest trace among the arguments, and return
    those values plain; under `vmap`, example by example.
    """

    def declare(function: Any) -> None:
        def on_values(*args: Any, **kwargs: Any) -> Any:
            trace = top_trace(_flat(args, kwargs))
            if trace is None:
                return function(*args, **kwargs)
            if trace.ended:
                trace.escaped()
            if trace.lead:
                return _by_example(function, args, kwargs, trace)
            if trace.records:
                return trace.function(function, args, kwargs)
            return function(*_below(args, trace), **_below(kwargs, trace))

        FUNCTIONS[function] = on_values

    for function in functions:
        declare(function)


def _by_example(function: Any, args: Any, kwargs: Any, trace: Any) -> Any:
    """Call `function` for each example, and stack the results."""
    name = function.__name__

    def none(out: Any) -> Any:
        if type(out) in (tuple, list):
            return type(out)(map(none, out))
        like_out = np.asarray(out)
        return type(tracer)(trace, np.zeros((0, *like_out.shape), like_out.dtype), None)

    def stacked(outs: list[Any]) -> Any:
        first = outs[0]
        if type(first) in (tuple, list):
            return type(first)(map(stacked, map(list, zip(*outs, strict=True))))
        if len({shape_of(out) for out in outs}) > 1:
            raise ShapeError(
                f"the results of numpy.{name} differ in shape from example to example",
                where=f"{user_line()}; {_operands((*args, *kwargs.values()))}",
                fix="use what keeps all elements, such as np.where(mask, x, 0), or call it "
                "outside of vmap",
            )
        return type(tracer)(trace, np.stack(outs), None)

    tracer = next(x for x in _flat(args, kwargs) if isinstance(x, TracerBase) and x._trace is trace)
    size = shape_of(tracer._value)[0]
    if not size:  # of what shape would the results be?
        return none(function(*_standing_in(args), **_standing_in(kwargs)))
    outs = [function(*_below(args, trace, i), **_below(kwargs, trace, i)) for i in range(size)]
    return stacked(outs)


def of_shapes(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call NumPy's function for what does not depend on the elements of traced arguments.

    That is a constant, or what it raises of arrays of these shapes.
    """
    return function(*_standing_in(args), **_standing_in(kwargs))


def about_arrays(*functions: Any) -> None:
    """Declare NumPy functions that ask about an array, not of its elements."""

    def declare(function: Any) -> None:
        def on_array(*args: Any, **kwargs: Any) -> Any:
            return of_shapes(function, *args, **kwargs)

        FUNCTIONS[function] = on_array

    for function in functions:
        declare(function)


about_arrays(
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


def _show(function: Any) -> None:
    def of_values(*args: Any, **kwargs: Any) -> Any:
        return function(*map(concrete, args), **kwargs)

    FUNCTIONS[function] = of_values


for _function in (np.array2string, np.array_repr, np.array_str):
    _show(_function)


def _flat(args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    found: list[Any] = []
    for value in (*args, *kwargs.values()):
        found.extend(_flat(value, {}) if isinstance(value, list | tuple) else (value,))
    return found


def _below(value: Any, trace: Any, example: int | None = None) -> Any:
    """Return the values below `trace`, those of one example under `vmap`."""
    if isinstance(value, TracerBase):
        if value._trace is not trace:
            return value
        return value._value if example is None else value._value[example]
    if isinstance(value, list | tuple):
        return type(value)(_below(item, trace, example) for item in value)
    if isinstance(value, dict):
        return {key: _below(item, trace, example) for key, item in value.items()}
    return value


def _standing_in(value: Any) -> Any:
    """Return values with the tracers replaced by what is like them in all but the elements."""
    if isinstance(value, TracerBase):
        plain = concrete(value)
        shape = shape_of(value)
        if shape_of(plain) == shape:
            return plain
        return np.broadcast_to(np.zeros((), dtype_of(value)), shape)
    if isinstance(value, list | tuple):
        return type(value)(map(_standing_in, value))
    if isinstance(value, dict):
        return {key: _standing_in(item) for key, item in value.items()}
    return value
