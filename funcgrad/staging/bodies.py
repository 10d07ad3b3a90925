"""Bodies: functions recorded as programs of their own, for the inside of loops and branches.

A body is recorded on plain values, whatever transforms are in progress: in the place of a value
that one of them traces stands an example of it. What the function closes over and is traced comes
to light that way wherever it is kept, in a cell, a dict or an attribute, and becomes an input of
the body. What it computes of such values alone is computed outside, once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import attrs
import numpy as np

from funcgrad import tree
from funcgrad.core import assign
from funcgrad.core.level import TracerBase, concrete, traces_in_progress
from funcgrad.core.tracer import Tracer, unwrap
from funcgrad.core.zero import is_finite
from funcgrad.staging.equations import Equation, Leaf, Literal, Note, Var, vars_of
from funcgrad.staging.program import Program
from funcgrad.staging.strict import StrictTrace
from funcgrad.transforms.calls import Rules
from funcgrad.transforms.flat import Transformed

__all__ = [
    "Body",
    "Interpreter",
    "Recorded",
    "Unstructured",
    "example_of",
    "is_example",
    "kind_of",
    "record_body",
]


class Unstructured(Exception):
    """A loop or a branch cannot be one equation of a program: it is unrolled then."""


@attrs.frozen(eq=False)
class Body:
    """A program that is part of an operation.

    Attributes
    ----------
    program : Program
        Its arguments and results are flat.
    layouts, aliases : dict
        Of its variables: see `funcgrad.staging.strict`.
    """

    program: Program
    layouts: dict[int, str]
    aliases: dict[int, list[int]]

    @property
    def is_conditional(self) -> bool:
        """Tell whether it holds under conditions: those of its notes, and of what is in it."""
        return any(not note.is_of_finite for note in self.program.notes) or any(
            getattr(equation.operation, "is_conditional", False)
            for equation in self.program.equations
        )

    @property
    def inputs(self) -> tuple[Var, ...]:
        """The variables of the arguments."""
        return self.program.inputs

    @property
    def outputs(self) -> tuple[Any, ...]:
        """The variables and numbers of the results."""
        return self.program.outputs


def example_of(value: Any) -> Any:
    """Return a plain value of the kind that a traced one has: of a `vmap`, the first example."""
    if not isinstance(value, TracerBase):
        return value
    if value._trace.ended:
        value._trace.escaped()
    below = example_of(value._value)
    if not value._trace.lead:
        return below
    if not below.shape[0]:
        raise Unstructured
    return below[0]


class BodyTrace(StrictTrace):
    """Records a body.

    Parameters
    ----------
    outer : StrictTrace
        That of the program that the body will be part of.
    """

    __slots__ = ("captured",)

    def __init__(self, outer: StrictTrace):
        super().__init__(outer.origin, list, careful=outer.careful)
        # What is traced outside: the tracer, an example, and the variable.
        self.captured: dict[Any, tuple[Tracer, Any, Var]] = {}

    def other(self, value: Any) -> tuple[Any, Any]:
        """Return a plain value in the place of one that is traced outside, and its atom."""
        value = unwrap(value)
        if type(value) is not Tracer:
            return value, self.atom(value)
        extra = value._extra
        key = (value._trace.level, id(value._value), extra if type(extra) is int else id(extra))
        known = self.captured.get(key)
        if known is None:
            example = example_of(value)
            known = self.captured[key] = (value, example, self.new_var(example))
        return known[1], known[2]

    def adopted(self, value: Any) -> Any:
        """Return a value that is traced outside as one that is traced by this."""
        if not isinstance(value, TracerBase):
            return value
        value = unwrap(value)
        if type(value) is not Tracer:
            return value
        made = Tracer(self, *self.other(value))
        made._alias = assign.ARGUMENT
        return made

    def called(
        self, name: str, run: Callable[..., Any], again: Callable[..., Any], leaves: list[Any]
    ) -> tuple[list[Any], Any]:
        """Record a function with rules of its own, which are to see what they are given alone.

        When a derivative of the body is made they are called again, and what they close over would
        be what it was while this recorded.
        """
        if refers_to_tracer([again, *map(vars, getattr(again, "args", ()))]):
            raise Unstructured
        start = len(self.rows)
        made = super().called(name, run, again, leaves)
        rows = self.rows[start:]
        known = {var.number for row in rows for var in vars_of(row[3])}
        known.update(constant.var.number for constant in self.constants())
        known.update(var.number for var in vars_of([self.atom_of(leaf) for leaf in leaves]))
        used = [var for row in rows for var in vars_of(row[1])]
        used += vars_of([out._extra for out in made[0] if type(out) is Tracer])
        if any(var.number not in known for var in used):
            raise Unstructured
        return made

    def solves(self) -> None:
        """Raise: the solution of an equation depends on what that closes over."""
        raise Unstructured

    def look_finite(self, values: Sequence[TracerBase]) -> bool:
        """Tell whether values are finite; nobody need note it.

        What is not finite stays so until it is selected away, from step to step too, and is met
        where the program looks at what comes out of the loop.
        """
        return not self.careful and all(is_finite(concrete(value)) for value in values)


def refers_to_tracer(value: Any) -> bool:
    """Tell whether a function, or what it refers to in its cells and attributes, is traced."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, TracerBase):
            return True
        if id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, tuple | list):
            waiting += found
        elif isinstance(found, dict):
            waiting += found.values()
        elif isinstance(found, partial):
            waiting += [found.func, *found.args, *found.keywords.values()]
        elif isinstance(found, MethodType):
            waiting += [found.__func__, found.__self__]
        elif isinstance(found, FunctionType):
            waiting += [*(found.__defaults__ or ()), *(found.__kwdefaults__ or {}).values()]
            for cell in found.__closure__ or ():
                with contextlib.suppress(ValueError):  # not assigned to yet
                    waiting.append(cell.cell_contents)
        elif isinstance(found, Transformed | Rules):
            waiting += vars(found).values()
    return False


def is_example() -> bool:
    """Tell whether what is computed here is an example: a body is being recorded.

    It may be that of a branch that is not taken, in which a loop need not come to an end.
    """
    for trace in reversed(traces_in_progress()):
        if isinstance(trace, StrictTrace):
            return isinstance(trace, BodyTrace)
    return False


@attrs.frozen(eq=False)
class Recorded:
    """A body, and what recording it has shown.

    Attributes
    ----------
    body : Body
        Its first arguments are what the function closes over.
    captured : list
        The traced values of those.
    keys : list
        By which the same one is known again.
    values : list
        What the function returned, for the examples.
    trace : BodyTrace
    """

    body: Body
    captured: list[Any]
    keys: list[Any]
    values: list[Any]


def record_body(
    fun: Callable[[list[Any], BodyTrace], Sequence[Any]],
    examples: Sequence[Any],
    outer: StrictTrace,
    name: str,
) -> Recorded:
    """Record ``fun(variables, trace)``, which returns a list of arrays and numbers, as a body."""
    with BodyTrace(outer) as trace, np.errstate(all="ignore"):
        variables = [trace.variable(example) for example in examples]
        inputs = [variable._extra for variable in variables]
        outs = fun(variables, trace)
        del variables
        results = []
        values = []
        for out in outs:
            atom = trace.atom_of(out)
            if not isinstance(atom, Var | Literal):
                raise Unstructured
            results.append(Leaf("", atom))
            own = type(out) is Tracer and out._trace is trace
            values.append(out._value if own else trace.other(out)[0])
        keys, captured = list(trace.captured), list(trace.captured.values())
        arguments = [*[var for _, _, var in captured], *inputs]
        program = Program(
            name=name,
            argument_names=tuple([f"x{i}" for i in range(len(arguments))]),
            arguments=tuple([Leaf(f"x{i}", var) for i, var in enumerate(arguments)]),
            in_tree=tree.structure(((0.0,) * len(arguments), {})),
            constants=tuple(trace.constants()),
            equations=tuple([Equation(*row) for row in trace.rows]),
            results=tuple(results),
            out_tree=tree.structure([0.0] * len(results)),
            notes=tuple(trace.notes),
            regions=tuple(trace.regions),
            count=trace.new_number(),
        )
    if any(isinstance(constant.value, TracerBase) for constant in program.constants):
        raise Unstructured
    body = Body(program, trace.layouts, trace.aliases)
    return Recorded(body, [tracer for tracer, _, _ in captured], keys, values)


def kind_of(atom: Any) -> tuple[Any, ...]:
    """Return what must stay the same of a value from step to step."""
    if isinstance(atom, Var):
        return atom.shape, atom.dtype, atom.python
    value = atom.value if isinstance(atom, Literal) else atom
    python = type(value) if type(value) in (bool, int, float, complex) else None
    if python is not None:
        return (), np.dtype(python), python
    return value.shape, value.dtype, None


class Interpreter:
    """Evaluates a body on plain values, again and again, by a function made of its equations."""

    def __init__(self, program: Program):
        self._given: dict[str, Any] = {"check": self._check}
        notes: dict[int, list[Note]] = {}
        for note in program.notes:
            if not note.is_of_finite:
                notes.setdefault(note.position, []).append(note)
        lines = []
        for constant in program.constants:
            self._given[f"v{constant.var.number}"] = constant.value
        for position, equation in enumerate(program.equations):
            lines += self._checks(notes.get(position, ()))
            outs = ", ".join("_" if var is None else f"v{var.number}" for var in equation.outputs)
            comma = "," if equation.several and len(equation.outputs) == 1 else ""
            inputs = ", ".join(map(self._atom, equation.inputs))
            lines.append(f"{outs}{comma} = {self._bind(_function_of(equation))}({inputs})")
        lines += self._checks(notes.get(len(program.equations), ()))
        arguments = "".join(f"v{var.number}, " for var in program.inputs)
        head = [f"{arguments}= values"] if arguments else []
        outputs = ", ".join(map(self._atom, program.outputs))
        body = "\n    ".join([*head, *lines, f"return [{outputs}]"])
        exec(compile(f"def run(values):\n    {body}\n", "<step>", "exec"), self._given)
        # Returns the outputs for these inputs; raises if a note does not hold.
        self.run: Callable[[Sequence[Any]], list[Any]] = self._given["run"]

    def _bind(self, value: Any) -> str:
        name = f"b{len(self._given)}"
        self._given[name] = value
        return name

    def _atom(self, atom: Any) -> str:
        return f"v{atom.number}" if isinstance(atom, Var) else self._bind(atom.value)

    def _checks(self, notes: Sequence[Note]) -> list[str]:
        return [f"check({self._bind(note.value)}, v{note.vars[0].number})" for note in notes]

    @staticmethod
    def _check(noted: Any, value: Any) -> None:
        if not np.array_equal(value, noted, equal_nan=np.asarray(value).dtype.kind in "fc"):
            raise Unstructured


def _function_of(equation: Equation) -> Callable[..., Any]:
    """Return what computes the results of an equation of plain values."""
    if equation.function is not None:
        return equation.function
    forward = getattr(equation.operation, "forward", None)
    if forward is None:
        bind: Callable[..., Any] = equation.operation.bind
        return bind
    return partial(forward, **equation.params) if equation.params else forward
