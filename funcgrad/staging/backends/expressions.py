"""How one equation is written as NumPy code.

Most operations are one call of a NumPy function, on the same arguments with which the operation
itself would call it, so that the results are the same to the last bit. The others are called by
name: `Writer.bind` gives a value that has no source of its own a name in the module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core.elementwise import Elementwise
from funcgrad.staging.equations import HOLE, Equation, FunctionCall, Var, vars_of

__all__ = ["Writer", "Written", "in_numpy", "ufunc_of"]

_NO_VALUE = type(np._NoValue)
# The operators of Python, by the ufunc that does the same for arrays.
_OPERATORS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "remainder": "%",
    "power": "**",
    "greater": ">",
    "greater_equal": ">=",
    "less": "<",
    "less_equal": "<=",
    "equal": "==",
    "not_equal": "!=",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "left_shift": "<<",
    "right_shift": ">>",
}
# Where NumPy has functions, and how these places are called.
_HOMES = (
    (np, "np"),
    (np.linalg, "np.linalg"),
    (np.fft, "np.fft"),
    (np.lib.stride_tricks, "np.lib.stride_tricks"),
    (np.emath, "np.emath"),
)
_BY_KEYWORD = (np.maximum, np.minimum)
_PREFIXES = {"negative": "-", "invert": "~", "positive": "+"}


def in_numpy(function: Any) -> str | None:
    """Return how NumPy's functions are called in source: ``np.sin``; None for others."""
    name = getattr(function, "__name__", "")
    for module, path in _HOMES if name else ():
        if getattr(module, name, None) is function:
            return f"{path}.{name}"
    return None


def ufunc_of(equation: Equation) -> np.ufunc | None:
    """Return the ufunc that computes an equation of arrays, and takes ``out=``."""
    operation, function = equation.operation, equation.function
    if isinstance(operation, Elementwise):
        if function is operation.ufunc:
            return operation.ufunc
        if type(function) is _BUILTIN and function.__module__ == "_operator":
            # ``x ** n`` has ways of its own for some n.
            return None if operation.name == "power" else operation.ufunc
        if operation.name == "square" and function is not None and not equation.params:
            return operation.ufunc  # x ** 2, which of arrays is this ufunc
        return None
    forward = getattr(operation, "forward", None)
    return forward if isinstance(forward, np.ufunc) and not equation.params else None


_BUILTIN = type(math.sin)


class Writer:
    """Writes expressions, and collects the values that they need by name.

    Parameters
    ----------
    name_of : callable
        Returns the name of a variable.
    taken : set of str
        Names that mean something else already.
    """

    def __init__(self, name_of: Callable[[Var], str], taken: set[str]):
        self.name_of = name_of
        self.taken = taken
        self.bound: dict[str, Any] = {}
        self._names: dict[Any, str] = {}

    def of(self, name_of: Callable[[Var], str]) -> Writer:
        """Return a writer for other variables, which shares the values."""
        made = Writer(name_of, self.taken)
        made.bound, made._names = self.bound, self._names
        return made

    def bind(self, value: Any, name: str, key: Any = None) -> str:
        """Return a name by which the code can use a value."""
        key = id(value) if key is None else key
        known = self._names.get(key)
        if known is not None:
            return known
        name = "".join(c if c.isalnum() else "_" for c in name) or "value"
        name = f"_{name}" if name[0].isdigit() else name
        found, count = name, 1
        while found in self.taken:
            count += 1
            found = f"{name}_{count}"
        self.taken.add(found)
        self.bound[found] = value
        self._names[key] = found
        return found

    def atom(self, atom: Any) -> str:
        """Write an input."""
        return self.name_of(atom) if type(atom) is Var else self.static(atom.value)

    def static(self, value: Any) -> str:
        """Write a static value so that it is the same value again."""
        kind: Any = type(value)
        if value is None or kind is bool or kind is int or kind is str:
            return repr(value)
        if kind is float:
            if math.isfinite(value):
                return repr(value)
            return "np.nan" if value != value else "np.inf" if value > 0 else "-np.inf"
        if kind is tuple:
            inner = ", ".join(map(self.static, value))
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        if kind is list:
            return f"[{', '.join(map(self.static, value))}]"
        if kind is slice:
            parts = [value.start, value.stop, value.step]
            return f"slice({', '.join(map(self.static, parts))})"
        if value is Ellipsis:
            return "..."
        if kind is _NO_VALUE:
            return "np._NoValue"
        if isinstance(value, np.dtype) and value.isbuiltin == 1:
            return f"np.dtype({value.str!r})"
        name = getattr(value, "__name__", "")
        if isinstance(value, type) and getattr(np, name, None) is value:
            return f"np.{name}"
        if isinstance(value, np.generic) and kind.__module__ == "numpy":
            return self.bind(value, value.dtype.name, (kind, value.tobytes()))
        if kind is np.ndarray:
            return self.bind(value, "array")
        if callable(value):
            return in_numpy(value) or self.bind(value, getattr(value, "__name__", "function"))
        return self.bind(value, kind.__name__.lower())

    def index(self, value: Any) -> str:
        """Write what stands in brackets."""
        if type(value) is tuple and value:
            inner = ", ".join(map(self._index_part, value))
            return f"{inner}," if len(value) == 1 else inner
        return self._index_part(value)

    def _index_part(self, value: Any) -> str:
        if type(value) is not slice:
            return self.static(value)
        parts = ["" if p is None else self.static(p) for p in (value.start, value.stop)]
        text = ":".join(parts)
        return text if value.step is None else f"{text}:{self.static(value.step)}"

    def call(self, equation: Equation, inputs: Sequence[str], out: str | None = None) -> str:
        """Write the right side of an equation.

        Parameters
        ----------
        equation : Equation
        inputs : sequence of str
            How its inputs are written.
        out : str, optional
            The name of the array to write the result to; for those that `takes_out`.
        """
        ufunc = ufunc_of(equation)
        if ufunc is not None:
            if out is None and equation.function is not ufunc:
                written = self._by_operator(equation, inputs)
                if written is not None:
                    return written
            name = in_numpy(ufunc) or self.bind(ufunc, ufunc.__name__)
            given = list(inputs)
            if out is not None:  # by position, which is faster, where NumPy likes that
                given.append(f"out={out}" if ufunc in _BY_KEYWORD else out)
            return f"{name}({', '.join(given)})"
        operation = equation.operation
        if isinstance(operation, FunctionCall):
            return self._function(operation, inputs)
        if equation.function is not None:
            written = self._by_operator(equation, inputs)
            if written is not None:
                return written
            function = self.bind(equation.function, operation.name)
            return f"{function}({', '.join(inputs)})"
        template = TEMPLATES.get(operation.name)
        if template is not None:
            found: str | None = template(self, equation, inputs, out)
            if found is not None:
                return found
        assert out is None
        params = [f"{name}={self.static(value)}" for name, value in equation.params.items()]
        function = self.bind(operation.forward, operation.name)
        return f"{function}({', '.join([*inputs, *params])})"

    def _by_operator(self, equation: Equation, inputs: Sequence[str]) -> str | None:
        function = equation.function
        name = equation.operation.name
        if name == "square" and not equation.params and function is not equation.operation.ufunc:
            return f"{_in_parentheses(inputs[0])} ** 2"
        if type(function) is not _BUILTIN or function.__module__ != "_operator":
            return None
        if len(inputs) == 2 and name in _OPERATORS:
            left, right = map(_in_parentheses, inputs)
            return f"{left} {_OPERATORS[name]} {right}"
        if len(inputs) == 1 and name in _PREFIXES:
            return f"{_PREFIXES[name]}{_in_parentheses(inputs[0])}"
        return f"abs({inputs[0]})" if name == "absolute" else None

    def gives_tuple(self, equation: Equation) -> bool:
        """Tell whether what `call` writes is a tuple of the results."""
        operation = equation.operation
        if isinstance(operation, FunctionCall):
            return len(equation.outputs) != 1 or _has_no_name(operation)
        return equation.several

    def _function(self, operation: FunctionCall, inputs: Sequence[str]) -> str:
        name = in_numpy(operation.function)
        if name is None or _has_no_name(operation):
            return f"{self.bind(operation.bind, f'call_{operation.name}')}({', '.join(inputs)})"
        given = iter(inputs)
        leaves = [
            Written(next(given) if leaf is HOLE else self.static(leaf)) for leaf in operation.leaves
        ]
        args, kwargs = tree.unflatten(operation.treedef, leaves)
        parts = [*map(repr, args), *(f"{key}={value!r}" for key, value in kwargs.items())]
        return f"{name}({', '.join(parts)})"


def _has_no_name(operation: FunctionCall) -> bool:
    """Tell whether a function must be called through the operation, which gives a tuple."""
    return in_numpy(operation.function) is None or operation.name in ("where", "nonzero")


class Written:
    """Stands in a pytree for a leaf, and is shown as its source."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _in_parentheses(text: str) -> str:
    return f"({text})" if text.startswith("-") or " " in text else text


# The operations that are written as something shorter than a call of their forward function.
# Each template returns None where that would not be the same.


def _reduction(ufunc: str) -> Any:
    def write(
        writer: Writer, equation: Equation, inputs: Sequence[str], out: str | None
    ) -> str | None:
        params = equation.params
        (x,) = equation.inputs if len(equation.inputs) == 1 else (None,)
        if not isinstance(x, Var) or not x.shape or set(params) - {"axis", "dtype", "keepdims"}:
            return None
        parts = [inputs[0], writer.static(params["axis"])]
        dtype = params.get("dtype")
        if out is not None or dtype is not None:
            parts.append(writer.static(dtype))
        if out is not None:
            parts.append(out)
        if params.get("keepdims") is True:
            parts.append("keepdims=True")
        elif params.get("keepdims"):
            return None
        return f"{ufunc}({', '.join(parts)})"

    return write


def _mean(w: Writer, equation: Equation, inputs: Sequence[str], out: str | None) -> str | None:
    params, x = equation.params, equation.inputs[0]
    if len(equation.inputs) != 1 or not isinstance(x, Var) or not x.shape:
        return None
    if params["dtype"] is not None or x.dtype not in (np.float32, np.float64):
        return None
    axis = params["axis"]
    axes = range(len(x.shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    count = math.prod([x.shape[i] for i in axes])
    # NumPy divides in double precision, and rounds: the same as long as the count is exact.
    if not 0 < count < 1 << 24 or not isinstance(params["keepdims"], bool):
        return None
    keep = ", keepdims=True" if params["keepdims"] else ""
    return f"np.add.reduce({inputs[0]}, {w.static(axis)}{keep}) / {count}"


def _all(w: Writer, equation: Equation, inputs: Sequence[str], out: str | None) -> str | None:
    x, axis = equation.inputs[0], equation.params["axis"]
    if len(equation.inputs) != 1 or not _is_array(x) or axis is not None:
        return None
    if (
        not isinstance(x, Var)
        or x.dtype != bool
        or type(equation.params["keepdims"]) is not _NO_VALUE
    ):
        return None
    return f"np.logical_and.reduce({inputs[0]}, None)"


def _reshape(w: Writer, equation: Equation, inputs: Sequence[str], out: str | None) -> str | None:
    params = equation.params
    if params["copy"] is not None or params["order"] != "C" or not _is_array(equation.inputs[0]):
        return None
    return f"{inputs[0]}.reshape({w.static(params['shape'])})"


def _transpose(w: Writer, equation: Equation, inputs: Sequence[str], out: str | None) -> str | None:
    if not _is_array(equation.inputs[0]):
        return None
    axes = equation.params["axes"]
    return f"{inputs[0]}.T" if axes is None else f"{inputs[0]}.transpose({w.static(axes)})"


def _getitem(w: Writer, equation: Equation, inputs: Sequence[str], out: str | None) -> str | None:
    return f"{inputs[0]}[{w.index(equation.params['index'])}]"


def _gather(w: Writer, equation: Equation, inputs: Sequence[str], out: str | None) -> str | None:
    return f"{inputs[0]}[{inputs[1]}]"


def _astype(w: Writer, equation: Equation, inputs: Sequence[str], out: str | None) -> str | None:
    if not _is_array(equation.inputs[0]):
        return None
    return f"{inputs[0]}.astype({w.static(equation.params['dtype'])})"


def _view(w: Writer, equation: Equation, inputs: Sequence[str], out: str | None) -> str | None:
    return f"{inputs[0]}.view({w.static(equation.params['dtype'])})"


def _largest(w: Writer, equation: Equation, inputs: Sequence[str], out: str | None) -> str | None:
    axis = w.static(equation.params["axis"])
    given = "None, None, True" if out is None else f"None, {out}, True"
    return f"np.maximum.reduce({inputs[0]}, {axis}, {given}, -np.inf)"


def _shifted(w: Writer, equation: Equation, inputs: Sequence[str], out: str | None) -> str | None:
    given = inputs if out is None else [*inputs, out]
    forward = equation.operation.forward
    return f"{w.bind(forward, forward.__name__)}({', '.join(given)})"


def _plain(name: str, *params: str) -> Any:
    """Write ``np.name(inputs, *params)``, for those forward functions that do no more."""

    def write(w: Writer, equation: Equation, inputs: Sequence[str], out: str | None) -> str | None:
        given = [f"{param}={w.static(equation.params[param])}" for param in params]
        return f"np.{name}({', '.join([*inputs, *given])})"

    return write


def _joined(name: str) -> Any:
    def write(w: Writer, equation: Equation, inputs: Sequence[str], out: str | None) -> str | None:
        params = equation.params
        if params["dtype"] is not None or params["casting"] != "same_kind":
            return None
        one = "," if len(inputs) == 1 else ""
        given = "" if out is None else f", {out}"
        return f"np.{name}(({', '.join(inputs)}{one}), {w.static(params['axis'])}{given})"

    return write


def _join(w: Writer, equation: Equation, inputs: Sequence[str], out: str | None) -> str:
    orders = equation.params["orders"]
    turned = [f"{x}.T" if order == "F" else x for x, order in zip(inputs, orders, strict=True)]
    # Over all axes, if there is more than one.
    axis = 0 if all(len(atom.shape) == 1 for atom in vars_of(equation.inputs)) else None
    return f"np.concatenate(({', '.join(turned)}), {axis}{'' if out is None else f', {out}'})"


def _split(w: Writer, equation: Equation, inputs: Sequence[str], out: str | None) -> str:
    shapes, orders = equation.params["shapes"], equation.params["orders"]
    parts, stop = [], 0
    for var, shape, order in zip(equation.outputs, shapes, orders, strict=True):
        start, stop = stop, stop + math.prod(shape)
        part = "None"
        if var is not None:
            part = f"{inputs[0]}[{start}:{stop}]"
            if len(shape) > 1:
                given = w.static(shape) + (", order='F'" if order == "F" else "")
                part = f"{part}.reshape({given})"
        parts.append(part)
    return ", ".join(parts)


def _is_array(atom: Any) -> bool:
    return isinstance(atom, Var) and bool(atom.shape)


TEMPLATES: dict[str, Any] = {
    "all": _all,
    "astype": _astype,
    "broadcast_to": _plain("broadcast_to", "shape"),
    "concatenate": _joined("concatenate"),
    "copy": _plain("copy", "order", "subok"),
    "expand_dims": _plain("expand_dims", "axis"),
    "gather": _gather,
    "largest": _largest,
    "shifted": _shifted,
    "getitem": _getitem,
    "join_leaves": _join,
    "outer": _plain("outer"),
    "reduce_mean": _mean,
    "reduce_sum": _reduction("np.add.reduce"),
    "reshape": _reshape,
    "split_leaves": _split,
    "squeeze": _plain("squeeze", "axis"),
    "stack": _joined("stack"),
    "transpose": _transpose,
    "view": _view,
    "where": _plain("where"),
}
