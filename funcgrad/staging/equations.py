"""What programs are made of: variables, equations, notes and regions.

Every value of a run has a variable of its own, which is assigned once. An equation computes one or
several of them from others. Notes say what the run took from the values, and regions which
equations transforms treat as one. All of it is immutable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import Any

import attrs
import numpy as np

from funcgrad import tree
from funcgrad.core.boxed import Boxed
from funcgrad.errors import describe, location

__all__ = [
    "FINITE",
    "HOLE",
    "Atom",
    "Constant",
    "Equation",
    "FunctionCall",
    "Leaf",
    "Line",
    "Literal",
    "Note",
    "Region",
    "Var",
    "describe_kind",
    "vars_of",
]


@attrs.frozen(eq=False)
class Var:
    """A value of a program: an argument, a constant, or a result of an equation.

    Attributes
    ----------
    number : int
        Which it is, counted from 0 in the order of the run.
    shape : tuple of int
    dtype : numpy.dtype
    python : type or None
        The type of a Python number, whose dtype is weak: `float`, `complex`, `int` or `bool`.
    """

    number: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    python: type | None

    def __repr__(self) -> str:
        return f"%{self.number}: {self.kind}"

    @property
    def kind(self) -> str:
        """Shape and dtype as messages show them: ``float64[3,4]``, or ``float``."""
        return describe_kind(self)


def describe_kind(value: Any) -> str:
    """Write the shape and dtype of a value, or the type of a Python number."""
    python = getattr(value, "python", None) or (
        type(value) if isinstance(value, bool | int | float | complex) else None
    )
    if python in (bool, int, float, complex):
        return str(python.__name__)
    return describe(value)


@attrs.frozen(eq=False)
class Literal:
    """A number, of Python or a scalar of NumPy, that stands in an equation by value."""

    value: Any


@attrs.frozen(eq=False)
class Constant:
    """An array that the function closes over, with its variable."""

    var: Var
    value: Any


Atom = Var | Literal


@attrs.frozen(eq=False)
class Line:
    """A line of the user's, known by its instruction until somebody wants to read it."""

    code: CodeType
    instruction: int

    @property
    def number(self) -> int:
        """The number of the line."""
        for start, end, number in self.code.co_lines():
            if start <= self.instruction < end and number is not None:
                return number
        return self.code.co_firstlineno

    def __str__(self) -> str:
        return location(self.code, self.number)


class FunctionCall:
    """The operation of an equation that is no primitive: a function of arrays without derivative.

    Attributes
    ----------
    function : callable
        Of NumPy's, say.
    treedef : TreeDef
        The structure of ``(args, kwargs)`` of the call.
    leaves : tuple
        The leaves of that; a `Hole` where an input of the equation goes.
    """

    __slots__ = ("function", "leaves", "name", "treedef")

    def __init__(self, function: Any, treedef: Any, leaves: tuple[Any, ...]):
        self.function = function
        self.name: str = getattr(function, "__name__", type(function).__name__)
        self.treedef = treedef
        self.leaves = leaves

    def bind(self, *inputs: Any) -> tuple[Any, ...]:
        """Call the function; return the leaves of the result."""
        given = iter(inputs)
        filled = [next(given) if leaf is HOLE else leaf for leaf in self.leaves]
        args, kwargs = tree.unflatten(self.treedef, filled)
        return tuple(tree.leaves(self.function(*args, **kwargs)))


class _Hole:
    def __repr__(self) -> str:
        return "."


# Stands for an input of the equation among the arguments of a call.
HOLE = _Hole()


@attrs.frozen(eq=False)
class Equation:
    """One operation: ``outputs = operation(*inputs, **params)``.

    Attributes
    ----------
    operation : Primitive or FunctionCall
        What is computed. It has a `name`.
    inputs : tuple of Var or Literal
    params : dict
        What is static.
    outputs : tuple of Var or None
        None for a result that is no array, nor a number.
    several : bool
        The operation returns a tuple, of one result for each output.
    function : callable or None
        For elementwise operations: what computes the value, of the inputs alone. A ufunc, or the
        operator by which Python computes with its own numbers.
    line : Line or None
        The user's line.
    """

    operation: Any
    inputs: tuple[Atom, ...]
    params: dict[str, Any]
    outputs: tuple[Var | None, ...]
    several: bool
    function: Callable[..., Any] | None
    line: Line | None

    @property
    def name(self) -> str:
        """The name of the operation."""
        return str(self.operation.name)

    def evaluate(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return the results for these inputs, which may be traced."""
        if self.function is not None:
            return (self.function(*values),)
        out = self.operation.bind(*values, **self.params)
        return out if self.several else (out,)


@attrs.frozen(eq=False)
class Note:
    """Something that the run took from the values, and that may be otherwise for others.

    Attributes
    ----------
    what : str
        In a few words: ``the truth value``, ``float()``, ``finite``.
    vars : tuple of Var
        What was looked at.
    value : object
        What it was; of ``finite``, True.
    position : int
        Before which equation.
    line : Line or None
    library : bool
        It was not the user's function that looked, but a rule of ours.
    """

    what: str
    vars: tuple[Var, ...]
    value: Any
    position: int
    line: Line | None
    library: bool

    @property
    def is_of_finite(self) -> bool:
        """Tell whether the run relied on all elements being finite, and on no more."""
        return self.what == FINITE


FINITE = "finite"


@attrs.frozen(eq=False)
class Region:
    """Equations that belong together, because transforms treat them as one.

    Attributes
    ----------
    name : str
        Such as ``custom_vjp(f)``, ``checkpoint``.
    start, stop : int
        They are ``equations[start:stop]``.
    inputs, outputs : tuple of Var, Literal or other value
        The leaves of the arguments and results of a function with rules of its own.
    redo : callable or None
        ``redo(leaves) -> leaves, treedef``: calls that function again, on traced arguments.
    around : callable or None
        ``around(values)``: a context in which to evaluate the equations.
    """

    name: str
    start: int
    stop: int
    inputs: tuple[Any, ...] = ()
    outputs: tuple[Any, ...] = ()
    redo: Callable[[list[Any]], tuple[list[Any], Any]] | None = None
    around: Callable[[list[Any]], Any] | None = None


@attrs.frozen(eq=False)
class Leaf:
    """A leaf of the arguments or of the result.

    Attributes
    ----------
    path : str
        Where it is: ``params['w']``.
    atom : Var, Literal or None
        None for what is static: `value` then.
    value : object
        What a static leaf is; of a leaf that is made of an array (a key), one of its kind.
    """

    path: str
    atom: Atom | None
    value: Any = None

    @property
    def box(self) -> Boxed | None:
        """A leaf of the same kind, if it is not an array but made of one."""
        return self.value if self.atom is not None and isinstance(self.value, Boxed) else None


def vars_of(atoms: Any) -> Iterator[Var]:
    """Yield the variables among literals and static values."""
    return (atom for atom in atoms if isinstance(atom, Var))
