"""Compiled programs: what runs when a jitted function is called.

The memory that a run works in is kept for the next one. Each run takes a set of arrays that no
other run has, so that threads, and calls within calls, do not meet. Large results are kept track
of too: where nobody holds one any more, such as the parameters of the step before last, its memory
is as good as fresh memory, and is there already.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from funcgrad.staging.backends.numpy import Source, emit
from funcgrad.staging.passes.pipeline import optimised, stages
from funcgrad.staging.program import Program
from funcgrad.staging.strict import StrictTrace
from funcgrad.staging.structures import builder

__all__ = ["Executable"]


def _take(kept: list[Any]) -> Any:
    """Return an array of these that nobody else holds; None if there is none."""
    for _ in range(len(kept)):
        try:
            found = kept.pop(0)
        except IndexError:  # another thread has taken it
            return None
        if getrefcount(found) == _ALONE and found.flags.writeable:
            return found
        kept.append(found)
    return None


def _count(kept: list[Any]) -> int:
    """Return the count of references to an array that `_take` sees if nobody else holds it."""
    found = kept.pop(0)
    return getrefcount(found)


_ALONE = _count([np.empty(1)])
# Without the lock of the interpreter a count says nothing.
_COUNTS = getattr(sys, "_is_gil_enabled", lambda: True)()
# Arrays of each result that are kept track of: what the caller has, and what it had before.
_TRACKED = 2

_errstate = np.errstate
# Sets of arrays that are kept for the next run.
_KEPT = 4


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

    def __init__(self, program: Program, trace: StrictTrace):
        self.recorded = program
        self._layouts = dict(trace.layouts)  # passes add to it
        self.program = optimised(program, self._layouts)
        self._aliases = trace.aliases
        source = emit(self.program, self._layouts, self._aliases)
        self.plan = source.plan
        self.function = source.compile()
        self._pool: list[Any] = []
        self._results: list[list[Any]] = [[] for _ in self.plan.results]
        # A backward pass may divide by zero where it is not used; integers cannot warn.
        self.is_silent = not any(
            out is not None and out.dtype.kind in "fc"
            for equation in self.program.equations
            for out in equation.outputs
        )
        results = program.results
        self._build = builder(program.out_tree, len(results))
        self._leaves = (
            None if all(leaf.atom is not None and leaf.box is None for leaf in results) else results
        )

    def source(self, *, comments: bool = True) -> Source:
        """Return the source, with the user's lines as comments."""
        return emit(self.program, self._layouts, self._aliases, comments=comments)

    def stages(self) -> list[tuple[str, Program]]:
        """Return the name of each pass, and the program after it."""
        return list(stages(self.recorded, dict(self._layouts)))

    def run(self, values: Sequence[Any]) -> Any:
        """Return the outputs for these values of the variables."""
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
        made = []
        for kept, spec in zip(self._results, self.plan.results, strict=True):
            shape, dtype, order = spec
            found: Any = _take(kept)
            if found is None or found.shape != shape or found.dtype != dtype:
                found = np.empty(shape, dtype, "F" if order == "F" else "C")
            if _COUNTS and len(kept) < _TRACKED:
                kept.append(found)
            made.append(found)
        return made

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
