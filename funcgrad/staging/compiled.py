"""Compiled programs: what runs when a jitted function is called.

The memory that a run works in is kept for the next one. Each run takes a set of arrays that no
other run has, so that threads, and calls within calls, do not meet. Large results are kept track
of too: where nobody holds one any more, such as the parameters of the step before last, its memory
is as good as fresh memory, and is there already. Donated arguments are written to: see
`funcgrad.staging.donation`.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from funcgrad.staging.backends.numpy import (
    NotFinite,
    Otherwise,
    Source,
    emit,
    writing_stages,
)
from funcgrad.staging.donation import copy_on_own_memory, gone, invalidate, is_ours, shared
from funcgrad.staging.equations import Var
from funcgrad.staging.passes.pipeline import optimised, stages
from funcgrad.staging.program import Program
from funcgrad.staging.recycling import recycled
from funcgrad.staging.showing import SHOWN, texts
from funcgrad.staging.strict import StrictTrace
from funcgrad.staging.structures import builder

__all__ = ["Executable"]


_errstate = np.errstate
# Sets of arrays that are kept for the next run.
_KEPT = 4


@contextlib.contextmanager
def _without_collecting() -> Iterator[None]:
    """Collect no garbage meanwhile.

    Compiling makes many small objects, and little garbage: to look for some, every time that there
    are so many more, takes a tenth of the time.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Executable:
    """A program, optimised and compiled.

    Attributes
    ----------
    recorded : Program
        As it was recorded.
    program : Program
        As it runs.
    """

    __slots__ = (
        "_aliases",
        "_build",
        "_constants",
        "_donated",
        "_layouts",
        "_leaves",
        "_pool",
        "_results",
        "function",
        "is_silent",
        "plan",
        "program",
        "recorded",
    )

    def __init__(self, program: Program, trace: StrictTrace, donated: Sequence[int] = ()):
        with _without_collecting():
            self._compile(program, trace, donated)

    def _compile(self, program: Program, trace: StrictTrace, donated: Sequence[int]) -> None:
        self.recorded = program
        self._layouts = dict(trace.layouts)  # passes add to it
        self.program = optimised(program, self._layouts)
        self._aliases = trace.aliases
        inputs = program.inputs
        source = emit(
            self.program,
            self._layouts,
            self._aliases,
            donated=frozenset([inputs[place].number for place in donated]),
        )
        self.plan = source.plan
        # Of the arguments that are donated: their order in memory, if results are written there,
        # and what is left of them.
        orders = {number: self._layouts[number] for number in self.plan.donated.values()}
        self._constants = [constant.value for constant in program.constants] if donated else []
        names = [leaf.path for leaf in program.arguments if isinstance(leaf.atom, Var)]
        self._donated = {
            place: (orders.get(inputs[place].number, ""), gone(program.name, names[place]))
            for place in donated
        }
        self.function = source.compile()
        self._pool: list[Any] = []
        self._results: list[list[Any]] = [[] for _ in self.plan.results]
        # A backward pass may divide by zero where it is not used; integers cannot warn.
        self.is_silent = not any(
            hasattr(equation.operation, "programs")  # what is in there may be anything
            or any(out is not None and out.dtype.kind in "fc" for out in equation.outputs)
            for equation in self.program.equations
        )
        results = program.results
        self._build = builder(program.out_tree, len(results))
        self._leaves = (
            None if all(leaf.atom is not None and leaf.box is None for leaf in results) else results
        )
        show = SHOWN.get()
        if show is not None:
            for stage, text in texts(self):
                show(program.name, stage, text)

    def source(self, *, comments: bool = True, taken: Collection[str] = ()) -> Source:
        """Return the source, with the user's lines as comments."""
        return emit(self.program, self._layouts, self._aliases, comments=comments, taken=taken)

    def stages(self) -> list[tuple[str, Program]]:
        """Return the name of each pass, and the program after it."""
        layouts = dict(self._layouts)
        found = list(stages(self.recorded, layouts))
        return [*found, *writing_stages(found[-1][1], layouts)]

    def run(self, values: Sequence[Any]) -> Any:
        """Return the outputs for these values of the variables."""
        return self._run_donating(values) if self._donated else self._run(values)

    def _run_donating(self, values: Sequence[Any]) -> Any:
        """Run, writing results into the memory of arguments that are donated."""
        own, given = [], list(values)
        twice = shared([*values, *self._constants], self._donated)
        for place, (order, _) in self._donated.items():
            value = values[place]
            if place not in twice and is_ours(value, order):
                own.append(place)
                if order:
                    given[place] = value.view()
            elif order:
                given[place] = copy_on_own_memory(value, order)
        try:
            outs = self._run(given)
        except (Otherwise, NotFinite):  # before anything was written
            raise
        except BaseException:
            self._invalidate(values, own)
            raise
        self._invalidate(values, own)
        return outs

    def _invalidate(self, values: Sequence[Any], places: Sequence[int]) -> None:
        for place in places:
            invalidate(values[place], self._donated[place][1])

    def _run(self, values: Sequence[Any]) -> Any:
        pool = self._pool
        try:
            work = pool.pop()
        except IndexError:
            work = self.plan.allocate()
        given = (*work, *self._memory()) if self._results else work
        try:
            if self.is_silent:
                outs = self.function(given, *values)
            else:
                with _errstate(all="ignore"):
                    outs = self.function(given, *values)
        finally:
            if len(pool) < _KEPT:
                pool.append(work)
        if self._leaves is not None:
            outs = self._filled(outs)
        return self._build(outs)

    def _memory(self) -> list[Any]:
        """Return arrays for the large results."""
        return [
            recycled(kept, shape, dtype, "F" if order == "F" else "C")
            for kept, (shape, dtype, order) in zip(self._results, self.plan.results, strict=True)
        ]

    def _filled(self, outs: Sequence[Any]) -> list[Any]:
        made = iter(outs)
        leaves = []
        assert self._leaves is not None
        for leaf in self._leaves:
            value = leaf.value if leaf.atom is None else next(made)
            if leaf.atom is None and isinstance(value, np.ndarray):
                value = value.copy(order="K")
            leaves.append(value if leaf.box is None else leaf.box._rebox(value))
        return leaves
