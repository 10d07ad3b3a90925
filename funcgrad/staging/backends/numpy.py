"""The NumPy backend: writes a program as straight-line Python that calls NumPy, and compiles it.

The text that runs is the text that `as_source` shows, where it stands behind the constants that it
mentions and the functions that have no plain NumPy equivalent (see
`funcgrad.staging.backends.module`).
"""

from __future__ import annotations

import builtins
import itertools
import keyword
import linecache
import math
import string
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.core.zero import dtype_of, is_finite
from funcgrad.staging.backends.blocks import BlockWriter
from funcgrad.staging.backends.expressions import Writer, ufunc_of
from funcgrad.staging.backends.loops import fresh, writer_of
from funcgrad.staging.backends.threads import in_blocks
from funcgrad.staging.bodies import Body
from funcgrad.staging.equations import Equation, FunctionCall, Literal, Note, Var, vars_of
from funcgrad.staging.passes.blocks import Block, with_blocks
from funcgrad.staging.passes.buffers import Plan, is_written_into, plan_buffers
from funcgrad.staging.passes.leaves import JOIN, with_leaves
from funcgrad.staging.passes.rewriting import LARGEST, SHIFTED
from funcgrad.staging.printing import letters

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["NotFinite", "Otherwise", "Source", "emit"]


class NotFinite(ArithmeticError):
    """A program met a derivative that is not finite, and was recorded where all are.

    It never reaches the user, as there is another program for that.
    """


class Otherwise(ValueError):
    """A program met a value for which the function takes another way: another program is due."""


class Source:
    """A program as Python source.

    Attributes
    ----------
    name : str
        Of the function.
    lines : list of str
        Its body.
    parameters : list of str
    paths : list of str
        What each parameter is.
    buffers : list of str
        Names of the arrays in reused memory, as `plan` has them.
    plan : Plan
    bound : dict
        The values that the body uses by name.
    """

    def __init__(self, name: str):
        self.name = name
        self.lines: list[str] = []
        self.parameters: list[str] = []
        self.paths: list[str] = []
        self.buffers: list[str] = []
        self.plan = Plan()
        self.bound: dict[str, Any] = {}

    def text(self, *, module: bool = False) -> str:
        """Return the function as source; for a `module`, it makes its memory by itself."""
        parameters = self.parameters if module else ["_work", *self.parameters]
        head = f"def {self.name}({', '.join(parameters)}):"
        work = []
        if self.buffers:
            comma = "," if len(self.buffers) == 1 else ""
            made = "workspace()" if module else "_work"
            work = [f"    {', '.join(self.buffers)}{comma} = {made}"]
        return "\n".join([head, *work, *self.lines, ""])

    def compile(self) -> Any:
        """Return the function."""
        namespace: dict[str, Any] = {
            "np": np,
            "in_blocks": in_blocks,
            "is_finite": is_finite,
            "is_same": is_same,
            "NotFinite": NotFinite,
            "Otherwise": Otherwise,
            **self.bound,
        }
        text = self.text()
        # A name of its own for each, under which tracebacks find the lines as long as it lives.
        filename = f"<jit of {self.name}, {next(_count)}>"
        exec(compile(text, filename, "exec"), namespace)
        function = namespace[self.name]
        weakref.finalize(function, linecache.cache.pop, filename, None)
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        return function


_count = itertools.count(1)
_RESERVED = frozenset(
    {
        "np",
        "in_blocks",
        "is_finite",
        "is_same",
        "NotFinite",
        "Otherwise",
        "_work",
        "workspace",
        *dir(builtins),
    }
)
# Functions of two arguments of one dtype.
_ALIKE = frozenset(
    {
        "add",
        "arctan2",
        "copysign",
        "divide",
        "equal",
        "floor_divide",
        "fmax",
        "fmin",
        "fmod",
        "greater",
        "greater_equal",
        "hypot",
        "less",
        "less_equal",
        "logaddexp",
        "maximum",
        "minimum",
        "multiply",
        "not_equal",
        "remainder",
        "subtract",
    }
)


def takes_out(equation: Equation) -> bool:
    """Tell whether the function of an equation can write into a given array."""
    if ufunc_of(equation) is not None or _is_concatenation(equation):
        return True
    if equation.operation in (JOIN, LARGEST, SHIFTED):
        return True
    return equation.function is None and equation.name == "reduce_sum" and _is_plain_sum(equation)


def _is_concatenation(equation: Equation) -> bool:
    (out, *_) = equation.outputs
    return (
        equation.name == "concatenate"
        and out is not None
        and equation.params["dtype"] is None
        and equation.params["casting"] == "same_kind"
        and all(isinstance(x, Var) and x.dtype == out.dtype for x in equation.inputs)
    )


def _is_plain_sum(equation: Equation) -> bool:
    (x,) = equation.inputs if len(equation.inputs) == 1 else (None,)
    return (
        isinstance(x, Var)
        and bool(x.shape)
        and isinstance(equation.params.get("keepdims"), bool)
        and equation.params.get("dtype") is None
        and equation.outputs[0] is not None
        and equation.outputs[0].dtype == x.dtype
    )


def emit(
    program: Program,
    layouts: dict[int, str],
    aliases: Mapping[int, Sequence[int]],
    *,
    comments: bool = False,
    taken: Collection[str] = (),
    donated: Set[int] = frozenset(),
) -> Source:
    """Write a program as source.

    Parameters
    ----------
    program : Program
    layouts, aliases : dict
        What the recording took down: see `funcgrad.staging.strict`.
    comments : bool
        Put the lines of the user's beside what they have become.
    taken : collection of str
        Names that mean something else in the module.
    donated : set of int
        Arguments, by number, that results may be written to.
    """
    emitter = _Emitter(program, layouts, aliases, comments, reserved=taken, donated=donated)
    with np.errstate(all="ignore"):  # a number may be too large for the dtype that it takes
        emitter.write()
    return emitter.source


def writing_stages(program: Program, layouts: dict[int, str]) -> Iterator[tuple[str, Program]]:
    """Yield the name of each pass that belongs to the writing, and the program after it."""
    program = with_leaves(program, layouts, takes_out)
    yield "leaves", program
    yield "blocks", with_blocks(program, layouts)


class _Emitter:
    """Writes a program; within that of another, the program of a step of a loop, or of a branch.

    Parameters
    ----------
    names : dict, optional
        What the arguments are called, by number.
    outer : _Emitter, optional
        That of the program around.
    reserved : collection of str
        Names that mean something else.
    donated : set of int
        Arguments that may be written to.
    """

    def __init__(
        self,
        program: Program,
        layouts: dict[int, str],
        aliases: Mapping[int, Sequence[int]],
        comments: bool,
        names: dict[int, str] | None = None,
        outer: _Emitter | None = None,
        reserved: Collection[str] = (),
        donated: Set[int] = frozenset(),
    ):
        if outer is None:
            program = with_leaves(program, layouts, takes_out)
        program = with_blocks(program, layouts)
        self.program = program
        self.comments = comments
        self.layouts = layouts
        self.aliases = aliases
        self.plan = plan_buffers(
            program, takes_out, layouts, aliases, is_inner=outer is not None, donated=donated
        )
        self.names: dict[int, str] = names or {}
        # The numbers that stand beside arrays, and what they are called.
        self.numbers: dict[Any, str] = {}
        self.counts: dict[str, int] = {}
        # What results are written to, where that is not for the plan to say.
        self.targets: dict[int, str] = {}
        if outer is None:
            self.root = self
            # Under the name of a builtin function it would hide that one.
            self.source = Source(_free(_identifier(program.name), set(_RESERVED)))
            self.source.plan = self.plan
            self.taken = taken = {*_RESERVED, self.source.name, *reserved}
            self.writer = Writer(self._name, taken)
            for leaf in program.arguments:
                if isinstance(leaf.atom, Var):
                    name = _free(_identifier(leaf.path), taken)
                    self.names[leaf.atom.number] = name
                    self.source.parameters.append(name)
                    self.source.paths.append(leaf.path)
            for out, taken_from in self.plan.donated.items():
                self.targets[out] = self.names[taken_from]
            self.fresh = letters(string.ascii_lowercase, taken)
            self.buffers = self.source.buffers
        else:
            self.root = outer.root
            self.source = outer.source
            self.taken = taken = outer.taken
            self.writer = outer.writer.of(self._name)
            self.fresh = outer.fresh
            self.buffers = []
        for equation in program.equations:
            block = equation.operation
            for part in block.parts if isinstance(block, Block) else (equation,):
                for var in part.outputs:
                    if var is not None:
                        self.names[var.number] = next(self.fresh)
        taken.update(self.names.values())
        known = 0 if outer is None else len(self.root.plan.views)
        for place in range(len(self.plan.views)):
            self.buffers.append(_free(f"t{known + place}", taken))
        if outer is not None:
            self._add_memory(self.plan, self.buffers)
            self._add_fresh()
        self.blocks = BlockWriter(
            self.writer,
            self.names,
            lambda name: _free(name, taken),
            self._inputs,
            takes_out,
            self.target,
            {var.number for note in program.notes if note.is_of_finite for var in note.vars},
        )
        for constant in program.constants:
            name = self.writer.bind(constant.value, "const")
            self.names[constant.var.number] = name
        self.inner = {}
        for equation in program.equations:
            inner = writer_of(self, equation)
            if inner is not None:
                self.inner[id(equation)] = inner
        if outer is None:
            for place in range(len(self.plan.results)):
                self.buffers.append(_free(f"r{place}", taken))

    def _add_memory(self, plan: Plan, names: Sequence[str]) -> None:
        """Let the function have the memory of a program within."""
        whole = self.root.plan
        first = len(whole.slots)
        whole.slots += plan.slots
        whole.views += [
            (first + slot, shape, order, start) for slot, shape, order, start in plan.views
        ]
        self.root.buffers += names

    def _add_fresh(self) -> None:
        """Let what blocks give to the next step be written into fresh memory."""
        for equation in self.program.equations:
            if isinstance(equation.operation, Block):
                for var in equation.operation.arrays(equation):
                    if var.number not in self.plan.places:
                        self.targets[var.number] = fresh(var, self.layouts[var.number])

    def memory(self, var: Var, order: str) -> str:
        """Return the name of an array like a variable, which is not used for anything else."""
        plan = Plan()
        plan.slots.append((var.dtype, math.prod(var.shape)))
        plan.view(0, var.shape, order)
        name = _free(f"t{len(self.root.plan.views)}", self.taken)
        self._add_memory(plan, [name])
        return name

    def within(self, body: Body, names: dict[int, str]) -> _Emitter:
        """Return what writes a body, the arguments of which have these names."""
        return _Emitter(body.program, body.layouts, body.aliases, self.comments, names, self)

    def free(self, stem: str) -> str:
        """Return a name that is not taken: ``row1``, ``row2``."""
        counts = self.root.counts
        counts[stem] = counts.get(stem, 0) + 1
        return _free(f"{stem}{counts[stem]}", self.taken)

    @property
    def is_empty(self) -> bool:
        """Tell whether there is nothing to write."""
        return not self.program.equations and not self.program.notes

    def written(self, equation: Equation) -> Sequence[Var | None]:
        """Return the results of an equation that are written into arrays that it is given."""
        if is_written_into(equation, self.layouts):
            return equation.outputs
        return equation.outputs if len(equation.outputs) == 1 and takes_out(equation) else ()

    def _name(self, var: Var) -> str:
        return self.names[var.number]

    def write(self) -> None:
        """Write the body of the function."""
        lines = self.source.lines
        lines.extend(self.equations())
        outs = []
        for atom, copied in zip(self.program.outputs, self.plan.copied, strict=True):
            text = self.writer.atom(atom)
            outs.append(f'{text}.copy("K")' if copied and _is_array(atom) else text)
        lines.append(f"    return [{', '.join(outs)}]")
        self.source.bound = self.writer.bound

    def equations(self) -> Iterator[str]:
        """Write the equations."""
        program = self.program
        notes: dict[int, list[Note]] = {}
        for note in program.notes:
            notes.setdefault(note.position, []).append(note)
        before = None
        for position, equation in enumerate(program.equations):
            if position in notes:
                yield from self._guards(notes[position])
            if self.comments and equation.line is not None:
                place = str(equation.line)
                if place != before:
                    yield f"    # {place}{_code_at(equation.line)}"
                    before = place
            if isinstance(equation.operation, Block):
                yield from self.blocks.write(equation, equation.operation)
            elif id(equation) in self.inner:
                yield from self.inner[id(equation)].lines()
            elif equation.operation is JOIN:
                yield from self._join(equation)
            elif is_written_into(equation, self.layouts):
                yield from self._written_into(equation)
            else:
                yield "    " + self._statement(equation)
                if isinstance(equation.operation, FunctionCall) or equation.name == "bincount":
                    yield from self._shapes(equation)
        yield from self._guards(notes.get(len(program.equations), ()))

    def _statement(self, equation: Equation) -> str:
        out = equation.outputs[0] if len(equation.outputs) == 1 else None
        target = None if out is None else self.target(out)
        inputs = self._inputs(equation)
        left = ", ".join("_" if v is None else self._name(v) for v in equation.outputs)
        if len(equation.outputs) == 1 and self.writer.gives_tuple(equation):
            left = f"({left},)"
        return f"{left} = {self.writer.call(equation, inputs, target)}"

    def _written_into(self, equation: Equation) -> Iterator[str]:
        """Write the call of a function that is given the arrays for its results."""
        outs = list(vars_of(equation.outputs))
        names = ", ".join(map(self._name, outs))
        targets = [self.target(var) or fresh(var, "C") for var in outs]
        yield f"    {names} = {', '.join(targets)}"
        into = equation.operation.into
        inputs = ", ".join(self._inputs(equation))
        yield f"    {self.writer.bind(into, into.__name__)}({inputs}, {names})"

    def _join(self, equation: Equation) -> Iterator[str]:
        """Write how arrays come to lie one behind the other, where some are there already."""
        (out,) = equation.outputs
        assert out is not None
        pieces = self.plan.pieces.get(out.number)
        if pieces is None:
            yield "    " + self._statement(equation)
            return
        for atom, (place, is_there) in zip(equation.inputs, pieces, strict=True):
            if not is_there:
                yield f"    np.copyto({self.buffers[place]}, {self.writer.atom(atom)})"
        yield f"    {self._name(out)} = {self.target(out)}"

    def target(self, var: Var) -> str | None:
        """Return the name of the array that a result is written to, if there is one."""
        place = self.plan.places.get(var.number)
        if place is not None:
            return self.buffers[place]
        if var.number in self.targets:
            return self.targets[var.number]
        place = self.plan.result_places.get(var.number)
        return None if place is None else self.buffers[len(self.plan.views) + place]

    def _inputs(self, equation: Equation) -> list[str]:
        """Write the inputs; numbers beside arrays as arrays, which NumPy need not convert."""
        inputs = equation.inputs
        if len(inputs) == 2 and equation.name in _ALIKE and ufunc_of(equation) is not None:
            x, y = inputs
            if type(x) is Literal:
                if _is_like(x, y):
                    return [self._number(x.value, y), self.writer.atom(y)]
            elif type(y) is Literal and _is_like(y, x):
                return [self.writer.atom(x), self._number(y.value, x)]
        return [self.writer.atom(atom) for atom in inputs]

    def _number(self, value: Any, array: Any) -> str:
        """Return the name of an array of no axes that has this value, and the dtype of another."""
        kind = type(value)
        # Of 0.0 and -0.0, which are equal, each is one of its own.
        given = (kind, value, array.dtype, kind is float and math.copysign(1.0, value))
        name = self.numbers.get(given)
        if name is None:
            made = np.array(value, array.dtype)
            key = (made.dtype, made.tobytes())
            name = self.writer.bind(made, f"c{len(self.writer.bound)}", key)
            if kind is float or kind is int:
                self.numbers[given] = name
        return name

    def _shapes(self, equation: Equation) -> Iterator[str]:
        """Write the check that results have the shape that the program counts on."""
        for var in equation.outputs:
            if var is not None and var.shape:
                yield f"    if {self._name(var)}.shape != {var.shape}:"
                yield "        raise Otherwise"

    def _checked_name(self, var: Var) -> str:
        """Return the name of what is finite if a variable is."""
        return self.blocks.sums.get(var.number) or self._name(var)

    def _guards(self, notes: Sequence[Note]) -> Iterator[str]:
        checked = {var.number: var for note in notes if note.is_of_finite for var in note.vars}
        finite = []
        for whole, parts in self.plan.wholes.items():
            if all(number in checked for number in parts):  # they lie in one array
                finite.append(self.buffers[self.plan.places[whole]])
                for number in parts:
                    del checked[number]
        finite += [self._checked_name(var) for var in checked.values()]
        if finite:
            tests = [f"is_finite({name})" for name in finite]
            test = tests[0] if len(tests) == 1 else f"({' and '.join(tests)})"
            yield f"    if not {test}:"
            yield "        raise NotFinite"
        for note in notes:
            if note.is_of_finite:
                continue
            name = self._name(note.vars[0])
            value = note.value
            if isinstance(value, bool | np.bool) and note.vars[0].shape == ():
                test = f"not {name}" if value else name
            else:
                test = f"not is_same({name}, {self.writer.bind(value, 'noted')})"
            if self.comments:
                yield f"    # {note.what}: {note.line or ''}"
            yield f"    if {test}:"
            yield "        raise Otherwise"


def is_same(value: Any, noted: Any) -> bool:
    """Tell whether a value is what it was when the program was recorded."""
    same = np.equal(value, noted)
    if dtype_of(np.asarray(value)).kind in "fc":
        same = same | (np.isnan(value) & np.isnan(noted))
    return bool(np.all(same))


def _is_like(number: Any, array: Any) -> bool:
    """Tell whether a number of Python takes the dtype of an array that it meets, exactly so."""
    if not isinstance(number, Literal) or not isinstance(array, Var) or not array.shape:
        return False
    kind = type(number.value)
    if isinstance(number.value, np.generic):
        return bool(number.value.dtype == array.dtype)
    if kind is int:
        return array.dtype.kind in "fc" and abs(number.value) < 1 << 10
    return (kind is float and array.dtype.kind in "fc") or (
        kind is complex and array.dtype.kind == "c"
    )


def _is_array(atom: Any) -> bool:
    return isinstance(atom, Var) and atom.python is None


def _identifier(path: str) -> str:
    """Make a name of a path: ``params['w']`` becomes ``params_w``."""
    parts = "".join(c if c.isalnum() and c.isascii() else " " for c in path).split()
    name = "_".join(parts) or "function"
    return f"_{name}" if name[0].isdigit() or keyword.iskeyword(name) else name


def _free(name: str, taken: set[str]) -> str:
    while name in taken or keyword.iskeyword(name):
        name += "_"
    taken.add(name)
    return name


def _code_at(line: Any) -> str:
    text = linecache.getline(line.code.co_filename, line.number).strip()
    return f": {text}" if text else ""
