"""Loops as operations: one equation of a program for all the steps.

The operation holds the program of a step. To a transform it is a function with rules (see
`funcgrad.transforms.calls`), which are loops again: the derivative of a loop is the loop of the
derivative of a step. Those are in `funcgrad.staging.loop_rules`. A loop for which there is no rule
is unrolled, which is right for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from funcgrad.core.level import TracerBase, concrete, looked_at
from funcgrad.core.tracer import Tracer
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.staging.bodies import Body, Interpreter, Unstructured, is_example, kind_of
from funcgrad.staging.strict import layout_in_memory

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

# Steps after which a loop that need not end is left, where any values of its kind will do.
_ENOUGH = 100

__all__ = ["Loop", "as_laid_out", "unrolled"]


class Loop:
    """The operation of an equation that makes all the steps of a loop.

    The inputs of the equation are constants, which all steps see, then what the carry starts from,
    then arrays, of which each step is given a row. Its outputs are the last carry, and the
    outputs of all steps, stacked.

    Attributes
    ----------
    name : str
    body : Body
        A step. It takes the constants, the carry, the number of the step if there is a `start`, and
        the rows; it returns the carry and the outputs.
    constants, carries, rows : int
        How many there are of each.
    length : int or None
        The number of steps; None for a loop that has a test.
    start : int or None
        The number of the first step.
    reverse : bool
        The last row comes first.
    test : Body or None
        Takes constants and carry, and returns whether to go on.
    """

    may_alias = False
    # What makes a loop on values that are traced: `funcgrad.staging.loop_rules`, which stands
    # above, enters it.
    on_traced: ClassVar[Callable[[Loop, Sequence[Any]], list[Any]]]

    def __init__(
        self,
        name: str,
        body: Body,
        *,
        constants: int,
        carries: int,
        rows: int = 0,
        length: int | None = None,
        start: int | None = None,
        reverse: bool = False,
        test: Body | None = None,
    ):
        self.name = name
        self.body = body
        self.constants = constants
        self.carries = carries
        self.rows = rows
        self.length = length
        self.start = start
        self.reverse = reverse
        self.test = test

    def with_body(self, body: Body, **changes: Any) -> Loop:
        """Return a loop of as many steps of another kind."""
        fields = {
            "name": self.name,
            "constants": self.constants,
            "carries": self.carries,
            "rows": self.rows,
            "length": self.length,
            "start": self.start,
            "reverse": self.reverse,
            "test": self.test,
            **changes,
        }
        return Loop(fields.pop("name"), body, **fields)

    @property
    def outs(self) -> int:
        """How many outputs each step has."""
        return len(self.body.outputs) - self.carries

    @property
    def has_number(self) -> int:
        """Whether a step is given its number."""
        return self.start is not None

    @property
    def statics(self) -> dict[str, Any]:
        """What a program shows beside the inputs."""
        found: dict[str, Any] = {}
        if self.length is not None:
            found["length"] = self.length
        if self.start:
            found["start"] = self.start
        if self.reverse:
            found["reverse"] = True
        return found

    @property
    def is_conditional(self) -> bool:
        """Tell whether a step may find out that the program does not hold."""
        return any(body is not None and body.is_conditional for body in (self.body, self.test))

    def programs(self, inputs: Sequence[Any]) -> list[tuple[str, Program, list[Any]]]:
        """Return the programs within: their names, and what they are given from outside.

        None stands for what is another value at each step.
        """
        constants = list(inputs[: self.constants])
        found = []
        for head, body in (("test", self.test), ("step", self.body)):
            if body is not None:
                more = len(body.inputs) - len(constants)
                found.append((head, body.program, [*constants, *[None] * more]))
        return found

    def split(self, values: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Return constants, carry and arrays."""
        first = self.constants + self.carries
        values = list(values)
        return values[: self.constants], values[self.constants : first], values[first:]

    @property
    def steps(self) -> Any:
        """The places of the rows, in the order of the steps."""
        assert self.length is not None
        return range(self.length)[::-1] if self.reverse else range(self.length)

    def given(self, constants: Any, carry: Any, rows: Any, place: int) -> list[Any]:
        """Return what a step is given."""
        number = [] if self.start is None else [self.start + place]
        return [*constants, *carry, *number, *[row[place] for row in rows]]

    def apply(self, values: Sequence[Any]) -> list[Any]:
        """Make all the steps, on values that may be traced."""
        return Loop.on_traced(self, values)

    def bind(self, *values: Any) -> tuple[Any, ...]:
        """Make all the steps."""
        if any(isinstance(value, TracerBase) for value in values):
            return tuple(self.apply(values))
        with np.errstate(all="ignore"):
            return tuple(_interpreted(self, values))


def _interpreted(loop: Loop, values: Sequence[Any]) -> list[Any]:
    constants, carry, rows = loop.split(values)
    step = Interpreter(loop.body.program)
    kinds = [kind_of(var) for var in loop.body.inputs[loop.constants :][: loop.carries]]
    if loop.test is not None:
        test = Interpreter(loop.test.program)
        left = _ENOUGH if is_example() else -1
        while left and test.run([*constants, *carry])[0]:
            carry = step.run([*constants, *carry])
            _check(carry, kinds)
            left -= 1
        return carry
    columns: list[list[Any]] = [[] for _ in range(loop.outs)]
    for place in loop.steps:
        outs = step.run(loop.given(constants, carry, rows, place))
        carry = outs[: loop.carries]
        _check(carry, kinds)
        for column, out in zip(columns, outs[loop.carries :], strict=True):
            column.append(out)
    return [*carry, *[np.stack(column[::-1] if loop.reverse else column) for column in columns]]


def _check(carry: Sequence[Any], kinds: Sequence[Any]) -> None:
    if [kind_of(value) for value in carry] != kinds:
        raise Unstructured


def unrolled(loop: Loop, values: Sequence[Any]) -> list[Any]:
    """Make all the steps one by one, on values that may be traced."""
    constants, carry, rows = loop.split(values)
    if loop.test is not None:
        left = _ENOUGH if is_example() else -1
        while looked_at(
            loop.test.program.evaluate([*constants, *carry])[0], "the condition of a loop"
        ):
            if not left:
                raise Unstructured
            carry = loop.body.program.evaluate([*constants, *carry])
            left -= 1
        return carry
    columns: list[list[Any]] = [[] for _ in range(loop.outs)]
    for place in loop.steps:
        outs = loop.body.program.evaluate(loop.given(constants, carry, rows, place))
        carry = outs[: loop.carries]
        for column, out in zip(columns, outs[loop.carries :], strict=True):
            column.append(out)
    return [*carry, *[np.stack(column[::-1] if loop.reverse else column) for column in columns]]


def as_laid_out(value: Any, var: Any, layout: str | None) -> Any:
    """Return a value like the variable that it will be: of its dtype and order in memory."""
    if shape_of(value) != var.shape:
        raise Unstructured
    kind = kind_of(concrete(value)) if not isinstance(value, TracerBase) else None
    bottom = concrete(value)
    if var.python is None and type(bottom) in (bool, int, float, complex):
        value = value.astype(var.dtype) if type(value) is Tracer else var.dtype.type(value)
    elif type(bottom) is not var.python and (
        dtype_of(value) != var.dtype or (var.python is not None and kind != kind_of(var))
    ):
        raise Unstructured
    if not var.shape or layout is None or type(bottom) is not np.ndarray:
        return value
    if bottom.shape != var.shape or layout_in_memory(bottom) == layout:  # or there are examples
        return value
    order: Any = layout
    return np.copy(value, order=order) if layout in ("C", "F") else value
