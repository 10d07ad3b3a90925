"""What passes have in common that replace variables by others, or equations.

They see programs without regions: those are for transforms, which a program that is compiled does
not meet any more.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from funcgrad.core.primitive import DECLARED, Primitive
from funcgrad.core.zero import is_finite
from funcgrad.staging.equations import Atom, Constant, Equation, Literal, Var, vars_of
from funcgrad.transforms.stop import STOPPED

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = [
    "INTERNAL",
    "LARGEST",
    "SHIFTED",
    "VIEW",
    "Layouts",
    "Replacing",
    "Writing",
    "counted_uses",
    "is_pure",
    "is_sum",
    "layout_of",
    "makers",
    "number_of",
    "with_inputs",
    "without_regions",
]

# How arrays lie in memory: see `funcgrad.staging.strict`.
Layouts = dict[int, str]


def view(x: Any, *, dtype: Any) -> Any:
    """Read the bits of an array as those of another dtype, of the same size."""
    return x.view(dtype)


# These stand in no program that transforms see.
VIEW = Primitive(view, name="view", may_alias=True)


def largest(x: Any, *, axis: Any) -> Any:
    """Return the maximum over `axis`, which stays, of length 1."""
    return np.maximum.reduce(x, axis=axis, keepdims=True, initial=-np.inf)


def shifted(x: Any, most: Any, out: Any = None) -> Any:
    """Return `x` less its maximum, and 0 wherever it equals that, infinite as it may be."""
    if is_finite(most):
        return np.subtract(x, most, out)
    with np.errstate(invalid="ignore"):
        made = np.where(np.equal(x, most), 0, x - most)
    if out is None:
        return made
    out[...] = made
    return out


LARGEST = Primitive(largest, name="largest")
SHIFTED = Primitive(shifted, name="shifted")
INTERNAL = frozenset({VIEW, LARGEST, SHIFTED})


class Replacing:
    """Rebuilds a program, with some variables replaced by others, or by numbers."""

    def __init__(self, program: Program):
        self.program = program
        self.replaced: dict[int, Atom] = {}
        self.equations: list[Equation] = []
        # How many equations are kept before each of the program's.
        self._before: list[int] = []

    def inputs(self, equation: Equation) -> tuple[Atom, ...]:
        """Return the inputs of an equation as they are now."""
        replaced = self.replaced
        for atom in equation.inputs:
            if type(atom) is Var and atom.number in replaced:
                return tuple([self.of(atom) for atom in equation.inputs])
        return equation.inputs

    def of(self, atom: Any) -> Any:
        """Return what an atom is now."""
        return self.replaced.get(atom.number, atom) if type(atom) is Var else atom

    def begin(self) -> None:
        """Note that the next equation of the program is looked at."""
        self._before.append(len(self.equations))

    def keep(self, equation: Equation, inputs: tuple[Atom, ...]) -> None:
        """Keep an equation, with these inputs."""
        if inputs is not equation.inputs:
            equation = with_inputs(equation, inputs)
        self.equations.append(equation)

    def program_now(self, constants: Sequence[Constant] | None = None) -> Program:
        """Return the program."""
        program = self.program
        if not self.replaced and constants is None:
            return program
        before = [*self._before, len(self.equations)]
        notes = []
        for note in program.notes:
            found = tuple([self.of(var) for var in note.vars])
            found = tuple([var for var in found if isinstance(var, Var)])
            if found:
                notes.append(attrs.evolve(note, vars=found, position=before[note.position]))
        return attrs.evolve(
            program,
            equations=tuple(self.equations),
            constants=program.constants if constants is None else tuple(constants),
            notes=tuple(notes),
            results=tuple(
                [
                    leaf if leaf.atom is None else attrs.evolve(leaf, atom=self.of(leaf.atom))
                    for leaf in program.results
                ]
            ),
        )


class Writing:
    """Writes a program anew, with other equations in the place of some.

    Attributes
    ----------
    program : Program
        As it was.
    layouts : dict
        How arrays lie in memory; those of new variables are noted.
    equations : list of Equation
        What is written by now.
    """

    def __init__(self, program: Program, layouts: Layouts):
        self.program = program
        self.layouts = layouts
        self.equations: list[Equation] = []
        self._count = program.count

    def new(self, shape: tuple[int, ...], dtype: Any, layout: str = "C") -> Var:
        """Return a new variable of an array that lies so in memory."""
        made = Var(self._count, shape, dtype, None)
        self._count += 1
        self.layouts[made.number] = layout
        return made

    def rewritten(self, write: Callable[[Equation], bool]) -> Program:
        """Return the program as `write` has it.

        That adds to `equations` what takes the place of an equation, or returns False, and the
        equation stays.
        """
        positions = []
        for equation in self.program.equations:
            positions.append(len(self.equations))
            if not write(equation):
                self.equations.append(equation)
        positions.append(len(self.equations))
        return self.program_now(positions)

    def program_now(self, positions: Mapping[int, int] | Sequence[int]) -> Program:
        """Return the program, given how many equations there are before each that was."""
        program = self.program
        return attrs.evolve(
            program,
            equations=tuple(self.equations),
            notes=tuple([attrs.evolve(n, position=positions[n.position]) for n in program.notes]),
            count=self._count,
        )


def makers(program: Program) -> dict[int, Equation]:
    """Return which equation computes each variable."""
    return {
        var.number: equation for equation in program.equations for var in vars_of(equation.outputs)
    }


def counted_uses(program: Program) -> Counter[int]:
    """Count how often each variable is an input, a result, or looked at."""
    found = Counter(var.number for e in program.equations for var in vars_of(e.inputs))
    found.update(var.number for var in vars_of(program.outputs))
    found.update(var.number for note in program.notes for var in note.vars)
    return found


def is_sum(equation: Equation) -> bool:
    """Tell whether an equation adds two arrays or numbers."""
    return equation.name == "add" and equation.function in (np.add, operator.add)


def with_inputs(equation: Equation, inputs: tuple[Atom, ...]) -> Equation:
    """Return an equation with other inputs."""
    return Equation(
        equation.operation,
        inputs,
        equation.params,
        equation.outputs,
        equation.several,
        equation.function,
        equation.line,
    )


def layout_of(atom: Any, layouts: Layouts) -> str | None:
    """Return the order of an array in memory; None of what has gaps, or is no array."""
    return layouts.get(atom.number) if type(atom) is Var else None


def without_regions(program: Program, layouts: Layouts) -> Program:
    """Return a program without its regions."""
    return attrs.evolve(program, regions=()) if program.regions else program


def is_pure(operation: Any) -> bool:
    """Tell whether an operation computes its results, and does no more."""
    if DECLARED.get(operation.name) is operation:
        return True
    return operation is STOPPED or operation in INTERNAL


def number_of(atom: Any) -> Any:
    """Return the value of a literal that is a number; None of others."""
    return atom.value if type(atom) is Literal else None
