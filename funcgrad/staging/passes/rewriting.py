"""What passes that replace variables by others have in common.

They see programs without regions: those are for transforms, which a program that is compiled does
not meet any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from funcgrad.core.primitive import DECLARED, Primitive
from funcgrad.core.zero import is_finite
from funcgrad.staging.equations import Atom, Constant, Equation, Literal, Var
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
    "is_pure",
    "layout_of",
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
