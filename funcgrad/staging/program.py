"""Programs: one run of a function, written down as a flat list of equations.

A program (in SSA form: see `funcgrad.staging.equations`) can be printed, evaluated on other
arguments, differentiated as any function can, and compiled. How one is recorded is the business of
`funcgrad.staging.record`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from funcgrad import tree
from funcgrad.core.boxed import Boxed
from funcgrad.core.level import TracerBase
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import (
    DtypeError,
    ShapeError,
    SpecialisedError,
    TreeMismatchError,
    user_line,
)
from funcgrad.staging.equations import (
    Atom,
    Constant,
    Equation,
    Leaf,
    Note,
    Region,
    Var,
    describe_kind,
)
from funcgrad.staging.evaluation import Run
from funcgrad.staging.passes.dead_code import without_dead_code
from funcgrad.staging.printing import text_of

__all__ = ["Program"]


@attrs.frozen(eq=False)
class Program:
    """One run of a function, as a flat list of equations.

    Call it to evaluate it on arguments of the same structure, shapes and dtypes, which may be
    traced. Print it to read it.

    Attributes
    ----------
    name : str
        Of the function.
    argument_names : tuple of str
    arguments : tuple of Leaf
        The leaves of the arguments.
    in_tree, out_tree : TreeDef
        The structure of ``(args, kwargs)``, and of the result.
    constants : tuple of Constant
    equations : tuple of Equation
    results : tuple of Leaf
    notes : tuple of Note
        What the run took from the values.
    regions : tuple of Region
        In the order of their starts, outer ones before inner ones.
    count : int
        The number of variables.

    Notes
    -----
    Where the function branched on a value, called ``float()`` of one, or relied on derivatives
    being finite, the program is right for values for which that comes out the same. The notes say
    where that is, and evaluating the program checks it.
    """

    name: str
    argument_names: tuple[str, ...]
    arguments: tuple[Leaf, ...]
    in_tree: Any
    constants: tuple[Constant, ...]
    equations: tuple[Equation, ...]
    results: tuple[Leaf, ...]
    out_tree: Any
    notes: tuple[Note, ...]
    regions: tuple[Region, ...]
    count: int

    @property
    def inputs(self) -> tuple[Var, ...]:
        """The variables of the arguments."""
        return tuple(leaf.atom for leaf in self.arguments if isinstance(leaf.atom, Var))

    @property
    def outputs(self) -> tuple[Atom, ...]:
        """The variables, and numbers, of the result."""
        return tuple(leaf.atom for leaf in self.results if leaf.atom is not None)

    def __str__(self) -> str:
        return self.as_text()

    __repr__ = __str__

    def as_text(self, *, lines: bool = True) -> str:
        """Write the program; with `lines`, the user's line beside each equation.

        Parameters
        ----------
        lines : bool
            Whether to say where each operation stands in the source.

        Returns
        -------
        str
        """
        return text_of(self, lines=lines)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate the program.

        Parameters
        ----------
        *args, **kwargs
            As the function was called, with other values in arrays and numbers.

        Returns
        -------
        pytree
            What the function returns for them, to the last bit.

        Raises
        ------
        TreeMismatchError, ShapeError, DtypeError
            The arguments are not like those that were recorded.
        SpecialisedError
            The function would have taken another way for them.
        """
        made = iter(self.evaluate(self._leaves_of(args, kwargs)))
        leaves = []
        for leaf in self.results:
            value = leaf.value if leaf.atom is None else next(made)
            leaves.append(value if leaf.box is None else leaf.box._rebox(value))
        return tree.unflatten(self.out_tree, leaves)

    def evaluate(self, values: Sequence[Any], *, check: bool = True) -> list[Any]:
        """Evaluate the equations.

        Parameters
        ----------
        values : sequence of array_like
            One for each of `inputs`; traced ones too.
        check : bool
            Raise where a note does not hold for these values.

        Returns
        -------
        list of array_like
            One for each of `outputs`.
        """
        return Run(self, check=check).run(values)

    def pruned(self) -> Program:
        """Return the program without the equations of which no result is used.

        Returns
        -------
        Program
        """
        return without_dead_code(self)

    def _leaves_of(self, args: Any, kwargs: Any, fix: str = "") -> list[Any]:
        """Return the values for `inputs`; raise unless the arguments fit."""
        fix = fix or f"record another: make_program({self.name})(...)"
        leaves, treedef = tree.flatten((args, kwargs))
        if treedef != self.in_tree:
            raise TreeMismatchError(
                f"the arguments of the program of {self.name} differ in structure from those "
                f"it was recorded with: {treedef}, expected {self.in_tree}",
                where=user_line(),
                fix=fix,
            )
        values = []
        for leaf, value in zip(self.arguments, leaves, strict=True):
            if leaf.atom is None:
                if not (value is leaf.value or tree.same(value, leaf.value)):
                    raise SpecialisedError(
                        f"the program of {self.name} was recorded with {leaf.path} = "
                        f"{leaf.value!r}, which is static, got {value!r}",
                        where=f"{leaf.path}, {user_line()}",
                        fix=fix,
                    )
                continue
            if leaf.box is not None and isinstance(value, Boxed):
                value = value._unbox()
            assert isinstance(leaf.atom, Var)
            self._check_like(leaf.path, leaf.atom, value, fix)
            values.append(value)
        return values

    def _check_like(self, path: str, var: Var, value: Any, fix: str) -> None:
        if isinstance(value, list | tuple | str) or value is None:
            error: type[ShapeError | DtypeError] = DtypeError
        elif shape_of(value) != var.shape:
            error = ShapeError
        elif (
            dtype_of(value) != var.dtype
            if var.python is None or isinstance(value, TracerBase)
            else type(value) is not var.python
        ):
            error = DtypeError
        else:
            return
        raise error(
            f"the program of {self.name} was recorded with {path} of {var.kind}, got "
            f"{describe_kind(value)}",
            where=f"{path}, {user_line()}",
            fix=f"convert it, or {fix}",
        )
