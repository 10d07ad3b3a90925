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
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.core.zero import dtype_of, is_finite
from funcgrad.staging.backends.expressions import Writer, ufunc_of
from funcgrad.staging.equations import Equation, FunctionCall, Literal, Note, Var, vars_of
from funcgrad.staging.passes.blocks import Block, with_blocks
from funcgrad.staging.passes.buffers import Plan, plan_buffers
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
    {"np", "is_finite", "is_same", "NotFinite", "Otherwise", "_work", "workspace", *dir(builtins)}
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
    if ufunc_of(equation) is not None:
        return True
    return equation.function is None and equation.name == "reduce_sum" and _is_plain_sum(equation)


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
) -> Source:
    """Write a program as source.

    Parameters
    ----------
    program : Program
    layouts, aliases : dict
        What the recording took down: see `funcgrad.staging.strict`.
    comments : bool
        Put the lines of the user's beside what they have become.
    """
    emitter = _Emitter(program, layouts, aliases, comments)
    with np.errstate(all="ignore"):  # a number may be too large for the dtype that it takes
        emitter.write()
    return emitter.source


class _Emitter:
    def __init__(
        self,
        program: Program,
        layouts: dict[int, str],
        aliases: Mapping[int, Sequence[int]],
        comments: bool,
    ):
        program = with_blocks(program, layouts)
        self.program = program
        self.comments = comments
        self.layouts = layouts
        self.source = Source(_identifier(program.name))
        self.source.plan = self.plan = plan_buffers(program, takes_out, layouts, aliases)
        self.taken = taken = {*_RESERVED, self.source.name}
        self.names: dict[int, str] = {}
        # What arrays are called in loops over blocks: their parts, all elements in a row, the ends
        # of a block, and the parts of buffers.
        self.parts: dict[int, str] = {}
        self.flat: dict[int, str] = {}
        self.ends: tuple[str, ...] = ()
        self.pieces: dict[str, str] = {}
        # What has to be finite, and the sums by which that is seen.
        self.checked = {
            var.number for note in program.notes if note.is_of_finite for var in note.vars
        }
        self.sums: dict[int, str] = {}
        for leaf in program.arguments:
            if isinstance(leaf.atom, Var):
                name = _free(_identifier(leaf.path), taken)
                self.names[leaf.atom.number] = name
                self.source.parameters.append(name)
                self.source.paths.append(leaf.path)
        fresh = letters(string.ascii_lowercase, taken)
        for equation in program.equations:
            inner = getattr(equation.operation, "equations", (equation,))
            for part in inner:
                for var in part.outputs:
                    if var is not None:
                        self.names[var.number] = next(fresh)
        taken.update(self.names.values())
        for place in range(len(self.plan.views)):
            self.source.buffers.append(_free(f"t{place}", taken))
        for place in range(len(self.plan.results)):
            self.source.buffers.append(_free(f"r{place}", taken))
        self.writer = Writer(self._name, taken)
        for constant in program.constants:
            name = self.writer.bind(constant.value, "const")
            self.names[constant.var.number] = name

    def _name(self, var: Var) -> str:
        return self.names[var.number]

    def write(self) -> None:
        program, lines = self.program, self.source.lines
        notes: dict[int, list[Note]] = {}
        for note in program.notes:
            notes.setdefault(note.position, []).append(note)
        before = None
        for position, equation in enumerate(program.equations):
            if position in notes:
                lines.extend(self._guards(notes[position]))
            if self.comments and equation.line is not None:
                place = str(equation.line)
                if place != before:
                    lines.append(f"    # {place}{_code_at(equation.line)}")
                    before = place
            if isinstance(equation.operation, Block):
                lines.extend(self._blocks(equation, equation.operation))
            else:
                lines.append("    " + self._statement(equation))
                if isinstance(equation.operation, FunctionCall) or equation.name == "bincount":
                    lines.extend(self._shapes(equation))
        lines.extend(self._guards(notes.get(len(program.equations), ())))
        outs = []
        for atom, copied in zip(program.outputs, self.plan.copied, strict=True):
            text = self.writer.atom(atom)
            outs.append(f'{text}.copy("K")' if copied and _is_array(atom) else text)
        lines.append(f"    return [{', '.join(outs)}]")
        self.source.bound = self.writer.bound

    def _statement(self, equation: Equation) -> str:
        out = equation.outputs[0] if len(equation.outputs) == 1 else None
        target = None if out is None else self._target(out)
        inputs = self._inputs(equation)
        left = ", ".join("_" if v is None else self._name(v) for v in equation.outputs)
        if len(equation.outputs) == 1 and self.writer.gives_tuple(equation):
            left = f"({left},)"
        return f"{left} = {self.writer.call(equation, inputs, target)}"

    def _target(self, var: Var) -> str | None:
        """Return the name of the array that a result is written to, if there is one."""
        place = self.plan.places.get(var.number)
        if place is not None:
            return self.source.buffers[place]
        place = self.plan.result_places.get(var.number)
        return None if place is None else self.source.buffers[len(self.plan.views) + place]

    def _blocks(self, equation: Equation, block: Block) -> Iterator[str]:
        """Write the loop over the blocks of arrays."""
        taken, buffers, places = self.taken, self.source.buffers, self.plan.places
        outputs = [var for var in equation.outputs if var is not None]
        parts: dict[int, str] = {}
        # Like the arrays, but with a _ behind, are called their parts.
        for var in (*vars_of(equation.inputs), *outputs):
            if var.shape == block.shape:
                if var.number not in self.parts:
                    self.parts[var.number] = _free(f"{self._name(var)}_", taken)
                parts[var.number] = self.parts[var.number]
        for var in outputs:
            yield f"    {self._name(var)} = {self._target(var)}"
        flat: dict[int, str] = {}
        for var in (*vars_of(equation.inputs), *outputs):
            if var.number not in parts or var.number in flat:
                continue
            name = self._name(var)
            if block.is_flat and len(block.shape) > 1:
                if var.number not in self.flat:
                    self.flat[var.number] = _free(f"{name}_flat", taken)
                    yield f"    {self.flat[var.number]} = {name}.reshape(-1)"
                flat[var.number] = self.flat[var.number]
            else:
                flat[var.number] = name
        count = math.prod(block.shape) if block.is_flat else block.shape[0]
        if not self.ends:
            self.ends = (_free("i", taken), _free("j", taken))
        i, j = self.ends
        checked = [var for var in outputs if var.number in self.checked]
        for var in checked:
            # Its elements are added up while they are in the cache: finite if all of them are.
            self.sums[var.number] = _free(f"{self._name(var)}_total", taken)
            yield f"    {self.sums[var.number]} = 0.0"
        yield f"    for {i} in range(0, {count}, {block.size}):"
        yield f"        {j} = min({i} + {block.size}, {count})"
        for number, part in parts.items():
            yield f"        {part} = {flat[number]}[{i}:{j}]"
        own = {var.number for var in outputs}
        used = {
            buffers[places[var.number]]
            for inner in block.equations
            for var in vars_of(inner.outputs)
            if var.number not in own
        }
        work = {name: name for name in sorted(used)}
        if count % block.size:
            for name in work:
                if name not in self.pieces:
                    self.pieces[name] = _free(f"{name}_", taken)
                work[name] = self.pieces[name]
                yield f"        {work[name]} = {name}[:{j} - {i}]"
        names = {**self.names}
        self.names.update(parts)
        for inner in block.equations:
            (out,) = inner.outputs
            assert out is not None
            inputs = self._inputs(inner)
            if out.number in own:
                yield f"        {self.writer.call(inner, inputs, parts[out.number])}"
            else:
                target = work[buffers[places[out.number]]]
                yield f"        {self._name(out)} = {self.writer.call(inner, inputs, target)}"
        self.names = names
        for var in checked:
            part = parts[var.number]
            yield f"        {self.sums[var.number]} += np.add.reduce({part}, None)"

    def _inputs(self, equation: Equation) -> list[str]:
        """Write the inputs; numbers beside arrays as arrays, which NumPy need not convert."""
        inputs = equation.inputs
        if len(inputs) == 2 and equation.name in _ALIKE and ufunc_of(equation) is not None:
            pairs: Any = (inputs, inputs[::-1])
            for number, array in pairs:
                if _is_like(number, array):
                    made = np.array(number.value, array.dtype)
                    key = (made.dtype, made.tobytes())
                    name = self.writer.bind(made, f"c{len(self.writer.bound)}", key)
                    other = self.writer.atom(array)
                    return [name, other] if number is inputs[0] else [other, name]
        return [self.writer.atom(atom) for atom in inputs]

    def _shapes(self, equation: Equation) -> Iterator[str]:
        """Write the check that results have the shape that the program counts on."""
        for var in equation.outputs:
            if var is not None and var.shape:
                yield f"    if {self._name(var)}.shape != {var.shape}:"
                yield "        raise Otherwise"

    def _checked_name(self, var: Var) -> str:
        """Return the name of what is finite if a variable is."""
        return self.sums.get(var.number) or self._name(var)

    def _guards(self, notes: Sequence[Note]) -> Iterator[str]:
        finite: dict[str, None] = {}
        for note in notes:
            if note.is_of_finite:
                finite.update(dict.fromkeys(self._checked_name(var) for var in note.vars))
        if finite:
            parts = [f"is_finite({name})" for name in finite]
            test = parts[0] if len(parts) == 1 else f"({' and '.join(parts)})"
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
