"""Which operations compute each row of their results from the same rows of their operands.

Such operations can be done on some rows at a time, one after another, with the same results to the
last bit. `Rows` says so of arrays that are cut along their first axis, or, where they lie otherwise
in memory, along the axis that is the slowest there; `Flat` of arrays of one shape, of which any
part of the memory will do. Both collect, equation by equation, what is cut; the rest of the
operands is seen as a whole by each block.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import attrs

from funcgrad.core.elementwise import Elementwise
from funcgrad.core.primitive import DECLARED
from funcgrad.staging.backends.expressions import ufunc_of
from funcgrad.staging.equations import Equation, Var, vars_of
from funcgrad.staging.passes.rewriting import SHIFTED, VIEW, Layouts, is_pure

__all__ = [
    "Flat",
    "Fold",
    "Rows",
    "Scheme",
    "can_be_before",
    "can_move",
    "in_rows",
    "is_composite",
    "schemes",
    "shares_memory",
    "work_of",
]

# Functions of each element that are no ufuncs, and go through memory several times by themselves.
_ELEMENTWISE = frozenset(
    {"clip", "gelu_tanh", "nan_to_num", "normal_cdf", "relu", "sigmoid", "softplus"}
)
_SIMPLE = frozenset({"astype", "where"})
# Functions along the axes that their parameter `axis` names.
_REDUCTIONS = frozenset(
    {"reduce_maximum", "reduce_mean", "reduce_minimum", "reduce_prod", "reduce_sum", "all", "any"}
)
_ALONG = frozenset(
    {
        "cross_entropy",
        "label_entropy",
        "largest",
        "log_softmax",
        "log_sum_exp",
        "root_mean_square",
        "softmax",
        "standardize",
        "std",
        "var",
    }
)
_CHEAP = frozenset(
    {
        "absolute",
        "add",
        "astype",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "conjugate",
        "divide",
        "equal",
        "greater",
        "greater_equal",
        "invert",
        "isnan",
        "largest",
        "less",
        "less_equal",
        "logical_and",
        "logical_not",
        "logical_or",
        "maximum",
        "minimum",
        "multiply",
        "negative",
        "not_equal",
        "reduce_maximum",
        "reduce_mean",
        "reduce_minimum",
        "reduce_sum",
        "relu",
        "shifted",
        "square",
        "sqrt",
        "subtract",
    }
)
# What an exponential takes, about.
_DEAR = 6
_VIEWS = frozenset({"broadcast_to", "expand_dims", "reshape", "squeeze", "swapaxes", "transpose"})


@attrs.frozen(eq=False)
class Fold:
    """A sum of what a chain computes, over all its rows.

    Attributes
    ----------
    equation : Equation
    var : Var
        Of which it is the sum.
    leading : int
        How many axes it goes over, from the first on; 0 if over all of them.
    divisor : int
        By which it is divided: 1, or the number of terms.
    """

    equation: Equation
    var: Var
    leading: int
    divisor: int


class Scheme:
    """How arrays are cut.

    Attributes
    ----------
    axes : tuple of int or None
        The order of the axes in memory, if it is not C order.
    count : int
        The number of rows, or elements.
    cut, whole : set of int
        The numbers of variables, as far as equations have been taken.
    """

    axes: tuple[int, ...] | None = None
    count: int

    def __init__(self, layouts: Layouts):
        self.layouts = layouts
        self.cut: set[int] = set()
        self.whole: set[int] = set()
        self._made: set[int] = set()

    def takes(self, equation: Equation) -> bool:
        """Tell whether an equation can be in the chain, and take it."""
        found = self._operands(equation)
        if found is None:
            return False
        cut, whole = found
        outs = {var.number for var in vars_of(equation.outputs)}
        # What is made in the chain is there block by block, and nothing is both.
        if whole & (self._made | self.cut) or cut & self.whole:
            return False
        self.cut |= cut | outs
        self.whole |= whole
        self._made |= outs
        return True

    def _operands(self, equation: Equation) -> tuple[set[int], set[int]] | None:
        """Return what an equation needs rows of, and what it needs as a whole."""
        raise NotImplementedError

    def fold(self, equation: Equation) -> Fold | None:
        """Return an equation as a sum behind the chain, if it is one."""
        if equation.name not in ("reduce_sum", "reduce_mean") or len(equation.inputs) != 1:
            return None
        (x,), (out,), params = equation.inputs, equation.outputs, equation.params
        if not is_pure(equation.operation) or out is None or not isinstance(x, Var):
            return None
        # Of what is made here alone: rows are written to while they are added up.
        if x.number not in self._made or params.get("dtype") is not None or out.dtype != x.dtype:
            return None
        is_mean = equation.name == "reduce_mean"
        # NumPy adds halves up in single precision; complex numbers it halves elsewhere.
        if x.dtype.kind not in ("f" if is_mean else "fiu") or x.dtype.itemsize < 4:
            return None
        if params.get("keepdims") is not False and params.get("keepdims") != 0:
            return None
        axes = _axes(params.get("axis"), len(x.shape))
        terms = math.prod([x.shape[i] for i in axes])
        if not 0 < terms < 1 << 24 and is_mean:
            return None
        divisor = terms if is_mean else 1
        if len(axes) == len(x.shape):
            return Fold(equation, x, 0, divisor)
        rest = math.prod(x.shape[len(axes) :])
        if axes == list(range(len(axes))) and axes and rest > 1 and self._has_rows(x):
            return Fold(equation, x, len(axes), divisor)
        return None

    def _has_rows(self, x: Var) -> bool:
        """Tell whether rows of an array of the chain can be added to each other."""
        return False

    def is_flat(self, chain: list[Equation], folds: list[Fold], layouts: Layouts) -> bool:
        """Tell whether blocks may be any part of the memory."""
        (out,) = chain[0].outputs[:1]
        assert out is not None
        flat = Flat(out, layouts)
        return all(flat.takes(equation) for equation in chain) and all(
            fold.leading == 0 for fold in folds
        )


class Rows(Scheme):
    """Arrays are cut along the axis that is the slowest in memory."""

    def __init__(self, out: Var, layouts: Layouts):
        super().__init__(layouts)
        self.layout = layouts[out.number]
        self.axes = _order(self.layout, len(out.shape))
        self.count = out.shape[0 if self.axes is None else self.axes[0]]

    def _operands(self, equation: Equation) -> tuple[set[int], set[int]] | None:
        if not all(map(self._is_made_of_rows, vars_of(equation.outputs))):
            return None
        if _is_elementwise(equation):
            return self._of_elements(equation)
        return self._along(equation) if self.axes is None else None

    def _is_made_of_rows(self, out: Var) -> bool:
        if self.layouts.get(out.number) != self.layout:
            return False
        if self.axes is None:
            return bool(out.shape) and out.shape[0] == self.count
        return len(out.shape) == len(self.axes) and out.shape[self.axes[0]] == self.count

    def _of_elements(self, equation: Equation) -> tuple[set[int], set[int]] | None:
        out = equation.outputs[0]
        assert out is not None
        ndim = len(out.shape)
        axis = 0 if self.axes is None else self.axes[0]
        cut, whole = set(), set()
        for var in vars_of(equation.inputs):
            place = axis - ndim + len(var.shape)
            if place < 0 or var.shape[place] == 1:
                whole.add(var.number)
            elif len(var.shape) == ndim:
                cut.add(var.number)
            else:
                return None  # it has the axis, but not in front
        return cut, whole

    def _along(self, equation: Equation) -> tuple[set[int], set[int]] | None:
        """Of a function along other axes than the first."""
        x = equation.inputs[0] if equation.inputs else None
        if not is_pure(equation.operation) or not isinstance(x, Var):
            return None
        name, params = equation.name, equation.params
        if name in _ALONG or (name in _REDUCTIONS and len(equation.inputs) == 1):
            free = 0 not in _axes(params.get("axis"), len(x.shape))
        elif name == "expand_dims":
            out = equation.outputs[0]
            free = out is not None and 0 not in _axes(params["axis"], len(out.shape))
        elif name == "reshape":
            out = equation.outputs[0]
            free = out is not None and out.shape[0] == x.shape[0] and _is_plain(params)
        elif name == "squeeze":
            free = params["axis"] is not None and 0 not in _axes(params["axis"], len(x.shape))
        else:
            return None
        for var in vars_of(equation.inputs):
            if not var.shape or var.shape[0] != self.count:
                return None
            # Sums go in the order of the memory.
            if var.number not in self._made and self.layouts.get(var.number) != "C":
                return None
        return ({var.number for var in vars_of(equation.inputs)}, set()) if free else None

    def _has_rows(self, x: Var) -> bool:
        return self.axes is None


class Flat(Scheme):
    """Arrays of one shape are cut anywhere in their memory; the others are numbers."""

    def __init__(self, out: Var, layouts: Layouts):
        super().__init__(layouts)
        self.shape = out.shape
        self.layout = layouts[out.number]
        self.axes = _order(self.layout, len(out.shape))
        self.count = math.prod(out.shape)

    def _operands(self, equation: Equation) -> tuple[set[int], set[int]] | None:
        if not _is_elementwise(equation):
            return None
        cut, whole = set(), set()
        for var in (*vars_of(equation.outputs), *vars_of(equation.inputs)):
            if var.shape == self.shape and self.layouts.get(var.number) == self.layout:
                cut.add(var.number)
            elif var.shape:
                return None
            else:
                whole.add(var.number)
        return cut, whole


def schemes(equation: Equation, layouts: Layouts) -> Iterator[Scheme]:
    """Yield the ways to cut the results of an equation, if it can begin a chain."""
    out = next(vars_of(equation.outputs), None)
    if out is None or not out.shape or out.number not in layouts or shares_memory(equation):
        return
    for kind in (Rows, Flat):
        scheme = kind(out, layouts)
        if scheme.count > 1:
            yield scheme


def is_composite(equation: Equation) -> bool:
    """Tell whether an operation goes through memory several times by itself."""
    return equation.name in _ELEMENTWISE or equation.name in _ALONG


def work_of(equation: Equation) -> int:
    """Return the work for an element, where an addition is 1: roughly."""
    return 1 if equation.name in _CHEAP or shares_memory(equation) else _DEAR


def shares_memory(equation: Equation) -> bool:
    """Tell whether the result is a view of the operand, or may be."""
    return equation.operation is VIEW or equation.name in _VIEWS


def can_be_before(equation: Equation, is_large: bool) -> bool:
    """Tell whether an equation that a chain may need is no work to speak of, and can be moved."""
    if not is_pure(equation.operation):
        return False
    if shares_memory(equation) or not any(var.shape for var in vars_of(equation.outputs)):
        return True
    return isinstance(equation.operation, Elementwise) and not is_large


def can_move(equation: Equation) -> bool:
    """Tell whether an equation may be in a chain, or before one, as far as it is concerned."""
    name = equation.name
    return _is_elementwise(equation) or (
        is_pure(equation.operation)
        and (name in _REDUCTIONS or name in _ALONG or can_be_before(equation, is_large=False))
    )


def _is_elementwise(equation: Equation) -> bool:
    """Tell whether an equation makes one array, each element of those in its place."""
    if len(equation.outputs) != 1 or equation.outputs[0] is None:
        return False
    operation = equation.operation
    if isinstance(operation, Elementwise):
        return not equation.params or ufunc_of(equation) is not None
    if operation is VIEW or operation is SHIFTED:
        return True
    return DECLARED.get(equation.name) is operation and (
        equation.name in _ELEMENTWISE or equation.name in _SIMPLE
    )


def in_rows(equation: Equation) -> Equation:
    """Return an equation as it is for any number of rows."""
    if equation.name != "reshape" or equation.operation is VIEW:
        return equation
    shape = equation.params["shape"]
    rest = shape[1:] if isinstance(shape, tuple | list) else ()
    return attrs.evolve(equation, params={**equation.params, "shape": (-1, *rest)})


def _is_plain(params: dict[str, Any]) -> bool:
    """Tell whether a reshape is one of memory in C order, which fixes the axes behind the first."""
    shape = params["shape"]
    fixed = isinstance(shape, int) or all(size > 0 for size in shape[1:])
    return params["order"] == "C" and params["copy"] is None and fixed


def _axes(axis: Any, ndim: int) -> list[int]:
    """Return the axes that a parameter names, in order."""
    if axis is None:
        return list(range(ndim))
    return sorted(i % ndim for i in (axis if isinstance(axis, tuple | list) else (axis,)))


def _order(layout: str, ndim: int) -> tuple[int, ...] | None:
    if layout == "C":
        return None
    if layout == "F":
        return tuple(range(ndim))[::-1]
    return tuple(int(axis) for axis in layout)
