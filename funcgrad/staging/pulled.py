"""A jitted function under reverse mode: its forward and its backward pass, both compiled.

The two are recorded together, as one program of the arguments and of the cotangents of the results.
What in it does not depend on the cotangents is the forward pass; what the rest needs of that is
handed over. Where that program does not hold, because a derivative is not finite, a cotangent is
traced itself, or the function takes another way, the function is differentiated as if it were not
jitted: that is right in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from funcgrad import tree
from funcgrad.core.boxed import Boxed
from funcgrad.core.level import Origin, Trace, TracerBase, concrete, traces_in_progress
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.staging.backends.numpy import NotFinite, Otherwise
from funcgrad.staging.compiled import Executable
from funcgrad.staging.equations import Leaf, Note, Var, vars_of
from funcgrad.staging.passes.pipeline import optimised
from funcgrad.staging.program import Program
from funcgrad.staging.record import record
from funcgrad.staging.splits import repeated_views
from funcgrad.staging.strict import StrictTrace
from funcgrad.transforms.calls import Rules, is_floating
from funcgrad.transforms.reverse import vjp
from funcgrad.transforms.tape import ReverseTrace

__all__ = ["Pulled", "PulledRules", "watching"]


def watching(leaves: Sequence[Any]) -> ReverseTrace | None:
    """Return the trace of reverse mode that alone watches these leaves; None if there is more."""
    found = None
    for leaf in leaves:
        if isinstance(leaf, Boxed):
            leaf = leaf._unbox()
            if isinstance(leaf, TracerBase):
                return None
        if not isinstance(leaf, TracerBase):
            continue
        trace = leaf._trace
        if type(trace) is not ReverseTrace or isinstance(leaf._value, TracerBase):
            return None
        if found is not None and found is not trace:
            return None
        found = trace
    if found is not None and any(trace.records for trace in traces_in_progress()):
        return None
    return found


class Pulled:
    """The compiled passes of a function for leaves of one signature.

    Parameters
    ----------
    flat : callable
        ``flat(leaves)``: the function, of all its leaves.
    leaves : list
        An example.
    variable : list of int
        Which of them are variables.
    wanted : tuple of bool
        Which of them are differentiated.
    """

    def __init__(
        self,
        flat: Callable[[list[Any]], Any],
        leaves: list[Any],
        variable: Sequence[int],
        wanted: tuple[bool, ...],
        origin: Origin,
    ):
        self.flat = flat
        self.variable = list(variable)
        self.places = [place for place, want in enumerate(wanted) if want]
        self.is_of_others = False
        # Of the results: the structure, which are floating, and shapes and dtypes of these.
        self.treedef: Any = None
        self.floating: list[bool] = []
        self.kinds: list[tuple[tuple[int, ...], Any]] = []
        trace = StrictTrace(origin, list)
        bars: list[Leaf] = []
        with np.errstate(all="ignore"):
            program = record(
                self._joint(leaves, trace, bars),
                (self.values(leaves),),
                {},
                origin,
                trace,
                integers=True,
            )
        if any(isinstance(constant.value, TracerBase) for constant in program.constants):
            self.is_of_others = True
            return
        self._split(optimised(program, trace.layouts), trace, bars)

    def values(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the values of the leaves that are variables."""
        found = [leaves[place] for place in self.variable]
        return [leaf._unbox() if isinstance(leaf, Boxed) else leaf for leaf in found]

    def _joint(
        self, template: list[Any], trace: StrictTrace, bars: list[Leaf]
    ) -> Callable[..., Any]:
        """Return the function to record, which makes the cotangents and puts them in `bars`."""

        def joint(values: list[Any]) -> Any:
            leaves = list(template)
            for place, value in zip(self.variable, values, strict=True):
                before = template[place]
                leaves[place] = before._rebox(value) if isinstance(before, Boxed) else value
            made, pull, rest, self.floating, self.treedef = self.by_hand(leaves)
            self.kinds = [(shape_of(out), dtype_of(out)) for out in made]
            given = []
            for number, out in enumerate(made):
                bar = trace.variable(_one_like(out))
                bars.append(Leaf(f"bar{number}", bar._extra))
                given.append(bar)
            return made, rest, pull(tuple(given))

        return joint

    def by_hand(self, leaves: list[Any]) -> Any:
        """Differentiate the function as if it were not jitted.

        Return the floating results and their pullback, the others, which is which, and the
        structure of all.
        """
        floating: list[bool] = []
        treedef: Any = None

        def of_wanted(*values: Any) -> Any:
            given = list(leaves)
            for place, value in zip(self.places, values, strict=True):
                given[place] = value
            nonlocal treedef
            outs, treedef = tree.flatten(self.flat(given))
            floating[:] = [is_floating(out) for out in outs]
            return (
                tuple([out for out, is_one in zip(outs, floating, strict=True) if is_one]),
                [out for out, is_one in zip(outs, floating, strict=True) if not is_one],
            )

        made, pull, rest = vjp(of_wanted, *[leaves[place] for place in self.places], has_aux=True)
        return made, pull, rest, floating, treedef

    def _split(self, program: Program, trace: StrictTrace, bars: list[Leaf]) -> None:
        """Compile what does not depend on the cotangents, and what does."""
        first = [leaf for leaf in program.arguments if isinstance(leaf.atom, Var)]
        depends = {var.number for var in vars_of(leaf.atom for leaf in bars)}
        forward, backward = [], []
        ahead = [0]
        for equation in program.equations:
            if any(var.number in depends for var in vars_of(equation.inputs)):
                depends.update(var.number for var in vars_of(equation.outputs))
                backward.append(equation)
            else:
                forward.append(equation)
            ahead.append(len(forward))
        views = repeated_views(forward, backward, program.results[len(self.floating) :])
        backward = [*views, *backward]
        early: list[Note] = []
        late: list[Note] = []
        for note in program.notes:
            before = ahead[note.position]
            if any(var.number in depends for var in note.vars):
                position = note.position - before + len(views)
                late.append(attrs.evolve(note, position=position))
            else:
                early.append(attrs.evolve(note, position=before))
        outs = program.results[: len(self.floating)]
        slopes = program.results[len(outs) :]
        assert len(slopes) == len(self.places)
        needed: dict[int, Var] = {}
        own = {v.number for leaf in program.results for v in vars_of((leaf.atom,))} & depends
        own |= {var.number for equation in backward for var in vars_of(equation.outputs)}
        constants = {constant.var.number for constant in program.constants}
        used = [
            *[var for equation in backward for var in vars_of(equation.inputs)],
            *[var for note in late for var in note.vars],
            *vars_of(leaf.atom for leaf in slopes),
        ]
        for var in used:
            if var.number not in own | depends | constants:
                needed[var.number] = var
        given = {leaf.atom.number: i for i, leaf in enumerate(first) if isinstance(leaf.atom, Var)}
        self.from_inputs = [given[number] for number in needed if number in given]
        kept = [var for number, var in needed.items() if number not in given]
        passed = [var for number, var in needed.items() if number in given]
        self.count = len(outs)
        results = (*outs, *[Leaf(f"residual{i}", var) for i, var in enumerate(kept)])
        self.forward = Executable(
            attrs.evolve(
                program,
                arguments=tuple(first),
                equations=tuple(forward),
                results=results,
                out_tree=tree.structure([0.0] * len(results)),
                notes=tuple(early),
            ),
            trace,
        )
        residuals = [Leaf(f"residual{i}", var) for i, var in enumerate((*kept, *passed))]
        self.backward = Executable(
            attrs.evolve(
                program,
                name=f"{program.name}, backward",
                argument_names=tuple([leaf.path for leaf in (*residuals, *bars)]),
                arguments=(*residuals, *bars),
                in_tree=tree.structure(((0.0,) * (len(residuals) + len(bars)), {})),
                equations=tuple(backward),
                results=tuple(slopes),
                out_tree=tree.structure((0.0,) * len(slopes)),
                notes=tuple(late),
            ),
            trace,
        )

    def run(self, leaves: list[Any]) -> tuple[list[Any], Any, Any]:
        """Return the leaves of the results, their structure, and their pullback."""
        values = self.values(leaves)
        try:
            made = self.forward.run(values)
        except (NotFinite, Otherwise):
            return self._run_by_hand(leaves)
        outs, kept = made[: self.count], made[self.count :]
        floating = iter(outs[: len(self.kinds)])
        others = iter(outs[len(self.kinds) :])
        ordered = [next(floating) if is_one else next(others) for is_one in self.floating]
        residuals = [*kept, *[values[i] for i in self.from_inputs]]

        def pull(bars: list[Any]) -> list[Any]:
            slopes: list[Any] = [None] * len(leaves)
            given = [bar for bar, is_one in zip(bars, self.floating, strict=True) if is_one]
            for place, slope in zip(self.places, self._pull(leaves, residuals, given), strict=True):
                slopes[place] = slope
            return slopes

        return ordered, self.treedef, pull

    def _run_by_hand(self, leaves: list[Any]) -> tuple[list[Any], Any, Any]:
        made, pulled, rest, floating, treedef = self.by_hand(leaves)
        ones, others = iter(made), iter(rest)
        ordered = [next(ones) if is_one else next(others) for is_one in floating]

        def pull(bars: list[Any]) -> list[Any]:
            slopes: list[Any] = [None] * len(leaves)
            given = [bar for bar, is_one in zip(bars, floating, strict=True) if is_one]
            for place, slope in zip(self.places, pulled(tuple(given)), strict=True):
                slopes[place] = slope
            return slopes

        return ordered, treedef, pull

    def _pull(self, leaves: list[Any], residuals: list[Any], bars: list[Any]) -> Sequence[Any]:
        if not any(isinstance(bar, TracerBase) for bar in bars):
            given = [
                np.zeros(shape, dtype)[()] if bar is None else bar
                for bar, (shape, dtype) in zip(bars, self.kinds, strict=True)
            ]
            if all(
                shape_of(bar) == shape and dtype_of(bar) == dtype
                for bar, (shape, dtype) in zip(given, self.kinds, strict=True)
            ):
                try:
                    found: Sequence[Any] = self.backward.run([*residuals, *given])
                    return found
                except (NotFinite, Otherwise):
                    pass
        _, pull, _, _, _ = self.by_hand(leaves)
        slopes: Sequence[Any] = pull(tuple(bars))
        return slopes


def _one_like(out: Any) -> Any:
    """Return a cotangent to record with: of the kind of the result."""
    value = concrete(out)
    if isinstance(value, float | complex) and not isinstance(value, np.generic):
        return type(value)(1.0)
    return np.ones(shape_of(value), dtype_of(value))[()]


class PulledRules(Rules):
    """What reverse mode asks a jitted function for."""

    def __init__(self, name: str, pulled: Pulled, count: int):
        self.name = name
        self.fixed = [place not in set(pulled.places) for place in range(count)]
        self.owner = None
        self.pulled = pulled

    def run(self, leaves: list[Any]) -> tuple[list[Any], Any]:
        """Return the leaves and the structure of the output."""
        return tree.flatten(self.pulled.flat(leaves))

    def vjp(self, trace: Trace, leaves: list[Any], wanted: Sequence[bool]) -> Any:
        """Return leaves and structure of the output, and the pullback."""
        return self.pulled.run(leaves)
