"""Identities: leaves out operations that change nothing, to the last bit.

``x * 1`` and ``x - 0`` are `x`, with its NaNs, infinities and signs of zeros; ``x + 0`` is not,
where x is -0, unless the numbers are integers; and of complex numbers no product is. What is left
out must give an array of the same dtype that lies in memory in the same order, since sums of it go
in that order.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from funcgrad.core.elementwise import Elementwise
from funcgrad.staging.equations import Equation, Var
from funcgrad.staging.passes.rewriting import (
    Layouts,
    Replacing,
    is_pure,
    layout_of,
    number_of,
    with_inputs,
)

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["with_identities"]


def with_identities(program: Program, layouts: Layouts) -> Program:
    """Return a program without operations that change nothing."""
    made = Replacing(program)
    by_number: dict[int, Equation] = {}
    for equation in program.equations:
        made.begin()
        inputs = made.inputs(equation)
        if inputs is not equation.inputs:
            equation = with_inputs(equation, inputs)
        operation = equation.operation
        out = equation.outputs[0]
        if out is not None and out.shape and len(equation.outputs) == 1 and is_pure(operation):
            changed = _shorter(equation, inputs, by_number, layouts)
            if changed is not None:
                equation, inputs = changed, changed.inputs
                made.replaced.setdefault(-1, out)  # something has changed
            same = _same_as(equation, inputs, by_number)
            if same is not None and _is_like(same, out, layouts):
                made.replaced[out.number] = same
                continue
            by_number[out.number] = equation
        made.keep(equation, inputs)
    return made.program_now()


def _is_like(same: Var, out: Var, layouts: Layouts) -> bool:
    layout = layout_of(same, layouts)
    return (
        same.shape == out.shape
        and same.dtype == out.dtype
        and same.python is out.python
        and layout is not None
        and layout == layout_of(out, layouts)
    )


def _same_as(equation: Equation, inputs: tuple[Any, ...], by_number: dict[int, Equation]) -> Any:
    """Return the variable that the result of an equation is equal to, if there is one."""
    name, params = equation.name, equation.params
    if isinstance(equation.operation, Elementwise):
        if params:
            return None
        if len(inputs) == 2:
            return _of_two(name, *inputs)
        before = by_number.get(inputs[0].number) if type(inputs[0]) is Var else None
        if name == "negative" and before is not None and before.name == "negative":
            return before.inputs[0] if type(before.inputs[0]) is Var else None
        return None
    x = inputs[0] if inputs else None
    if type(x) is not Var:
        return None
    if name in ("reshape", "broadcast_to", "astype", "stop_gradient"):
        return x
    if name == "transpose":
        axes = params["axes"]
        if axes is not None and tuple(axes) == tuple(range(len(x.shape))):
            return x
        if axes is None and len(x.shape) < 2:
            return x
        before = by_number.get(x.number)
        if before is not None and before.name == "transpose" and type(before.inputs[0]) is Var:
            below = before.inputs[0]
            count = len(x.shape)
            first = _axes(before.params["axes"], count)
            second = _axes(axes, count)
            if [first[i] for i in second] == list(range(count)):
                return below
    return None


def _axes(axes: Any, count: int) -> list[int]:
    return list(range(count))[::-1] if axes is None else [axis % count for axis in axes]


def _of_two(name: str, x: Any, y: Any) -> Any:
    """Return the operand that a result of two is equal to, or None."""
    for var, other, is_left in ((x, number_of(y), True), (y, number_of(x), False)):
        if type(var) is not Var or other is None or var.dtype.kind not in "fiu":
            continue
        if name == "multiply" and other == 1:
            return var
        if name == "divide" and other == 1 and is_left and var.dtype.kind == "f":
            return var
        if name == "subtract" and is_left and other == 0 and not _is_negative(other):
            return var
        if name == "add" and other == 0 and (var.dtype.kind != "f" or _is_negative(other)):
            return var
    return None


def _is_negative(zero: Any) -> bool:
    return math.copysign(1.0, zero) < 0


def _shorter(
    equation: Equation, inputs: tuple[Any, ...], by_number: dict[int, Equation], layouts: Layouts
) -> Equation | None:
    """Return an equation that gives the same in one step, of a reshape of a reshape."""
    x = inputs[0] if inputs else None
    if equation.name != "reshape" or type(x) is not Var:
        return None
    before = by_number.get(x.number)
    if (
        before is None
        or before.name != "reshape"
        or type(before.inputs[0]) is not Var
        or not before.inputs[0].shape
        or any(
            params["order"] != "C" or params["copy"] is not None
            for params in (equation.params, before.params)
        )
        or layout_of(before.inputs[0], layouts) != "C"
    ):
        return None
    return Equation(
        equation.operation,
        before.inputs,
        equation.params,
        equation.outputs,
        equation.several,
        equation.function,
        equation.line,
    )
