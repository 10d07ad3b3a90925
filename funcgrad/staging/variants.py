"""The programs for one signature, and how they are made.

A program may have conditions: the branch that `cond` took, derivatives being finite. Where one does
not hold, another program is made, and the one that holds is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad import tree
from funcgrad.core.level import TracerBase
from funcgrad.errors import ArgumentError, SpecialisedError, user_line
from funcgrad.staging.backends.numpy import NotFinite, Otherwise
from funcgrad.staging.compiled import Executable
from funcgrad.staging.equations import describe_kind
from funcgrad.staging.passes.buffers import is_large
from funcgrad.staging.record import argument_names, paths_of, record
from funcgrad.staging.signature import Held, Kinds
from funcgrad.staging.strict import StrictTrace
from funcgrad.staging.subject import Subject, name_of, origin_of, releasing
from funcgrad.staging.watching import Watched

if TYPE_CHECKING:
    from funcgrad.staging.program import Program

__all__ = ["Programs", "compile_call"]

# Programs that are kept for one signature, which differ in their conditions.
_VARIANTS = 32
# After so many runs in a row that were not finite the program for that is taken at once.
_PATIENCE = 3
_OTHER_WAY = "the function takes another way for these values"


class Programs:
    """The programs for one signature, the one that was used last coming first."""

    __slots__ = ("_careful", "_misses", "_variants")

    def __init__(self) -> None:
        self._variants: tuple[Executable, ...] = ()
        # For derivatives that are not finite.
        self._careful: tuple[Executable, ...] = ()
        self._misses = 0

    def run(self, values: Sequence[Any], subject: Subject, args: Any, kwargs: Any) -> Any:
        """Run the program whose conditions hold, and make it if there is none."""
        if self._misses < _PATIENCE:
            for variant in self._variants:
                try:
                    out = variant.run(values)
                except Otherwise:
                    continue
                except NotFinite:
                    self._misses += 1
                    return self._run_careful(values, subject, args, kwargs)
                self._misses = 0
                if variant is not self._variants[0]:
                    self._variants = _first(variant, self._variants)
                return out
            why = _OTHER_WAY if self._variants else ""
            made = compile_call(subject, args, kwargs, careful=False, why=why)
            if made is None:
                return subject.fun(*args, **kwargs)
            self._variants = _first(made, self._variants)
            try:
                return _run(made, values, subject)
            except NotFinite:
                self._misses += 1
        return self._run_careful(values, subject, args, kwargs)

    def _run_careful(self, values: Sequence[Any], subject: Subject, args: Any, kwargs: Any) -> Any:
        for variant in self._careful:
            try:
                out = variant.run(values)
            except Otherwise:
                continue
            if variant is not self._careful[0]:
                self._careful = _first(variant, self._careful)
            return out
        why = _OTHER_WAY if self._careful else "a derivative is not finite"
        made = compile_call(subject, args, kwargs, careful=True, why=why)
        if made is None:
            return subject.fun(*args, **kwargs)
        self._careful = _first(made, self._careful)
        return _run(made, values, subject)

    def first(self, subject: Subject, args: Any, kwargs: Any) -> Executable:
        """Return a program, to read; make it if there is none."""
        if not self._variants:
            made = compile_call(subject, args, kwargs, careful=False)
            if made is None:
                raise ArgumentError(
                    f"{name_of(subject.fun)} closes over a value that a transform watches",
                    where=user_line(),
                    fix="make it an argument, or call lower outside of the transform",
                )
            self._variants = (made,)
        return self._variants[0]


def _run(made: Executable, values: Sequence[Any], subject: Subject) -> Any:
    """Run a program on the values that it was recorded with."""
    try:
        return made.run(values)
    except Otherwise:
        name = name_of(subject.fun)
        raise SpecialisedError(
            f"{name} went one way when jit recorded it, and goes another for the same arguments",
            where=user_line(),
            fix="compile a function that depends on its arguments alone: give it a random key, or "
            "what else it looks at, as an argument",
        ) from None


def _first(made: Executable, before: tuple[Executable, ...]) -> tuple[Executable, ...]:
    """Put a program first, and drop the one that was not used for longest if there are many."""
    return (made, *[other for other in before if other is not made][: _VARIANTS - 1])


def compile_call(
    subject: Subject, args: Any, kwargs: Any, *, careful: bool, why: str = ""
) -> Executable | None:
    """Record and compile a call; None if the function closes over what a transform watches."""
    fun = subject.fun
    if subject.static:
        args, kwargs = subject.static.hold(
            args, kwargs, lambda: argument_names(fun, len(args), kwargs)
        )
        fun = releasing(fun)
    _note_reason(subject, args, kwargs, why)
    origin = origin_of(subject.fun)
    watched = subject.watched or Watched(subject.fun)
    watched.add(subject.fun, _objects(subject.fun, args, kwargs))

    def paths() -> list[str]:
        names = argument_names(subject.fun, len(args), kwargs)
        leaves = tree.leaves((args, kwargs))
        kinds = Kinds(leaves, list)
        found = paths_of((args, kwargs), names)
        return [found[i] for i in kinds.variable]

    trace = StrictTrace(origin, paths, careful=careful)
    with np.errstate(all="ignore"):  # as when it runs
        program = record(fun, args, kwargs, origin, trace, integers=True)
    if any(isinstance(constant.value, TracerBase) for constant in program.constants):
        return None
    watched.settle()
    subject.watched = watched
    return Executable(program, trace, _donated(subject, program, args, kwargs))


def _donated(subject: Subject, program: Program, args: Any, kwargs: Any) -> list[int]:
    """Return which of the variables of a program are large arrays that may be written to."""
    if not subject.donated:
        return []
    leaves = set(subject.donated.places(args, kwargs))
    inputs = [
        (leaf, number) for number, leaf in enumerate(program.arguments) if leaf.atom is not None
    ]
    return [
        place
        for place, (leaf, number) in enumerate(inputs)
        if number in leaves and leaf.box is None and is_large(leaf.atom)
    ]


def _objects(fun: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Return the arguments that are objects of the user's, such as `self`, by name."""
    names = argument_names(fun, len(args), kwargs)
    values = [*args, *[kwargs[key] for key in sorted(kwargs)]]
    plain = [value.value if type(value) is Held else value for value in values]
    return {
        name: value
        for name, value in zip(names, plain, strict=True)
        if hasattr(value, "__dict__") and _is_leaf(value)
    }


def _is_leaf(value: Any) -> bool:
    """Tell whether a value is no container of leaves, whose attributes would be variables."""
    leaves = tree.leaves(value)
    return len(leaves) == 1 and leaves[0] is value


def _note_reason(subject: Subject, args: Any, kwargs: Any, why: str) -> None:
    """Note why a call is compiled: `why`, or what is new about its arguments."""
    leaves = tree.leaves((args, kwargs))
    paths = paths_of((args, kwargs), argument_names(subject.fun, len(args), kwargs))
    now = {path: _kind_text(leaf) for path, leaf in zip(paths, leaves, strict=True)}
    before, subject.seen = subject.seen, now
    if before is None:
        if not subject.reason.endswith("has changed"):
            subject.reason = "it was called for the first time"
        return
    if why:
        subject.reason = why
        return
    parts = [
        f"{path} was {before[path]}, and is {kind}"
        for path, kind in now.items()
        if path in before and before[path] != kind
    ]
    parts += [f"{path} is new" for path in now if path not in before]
    parts += [f"there is no {path}" for path in before if path not in now]
    subject.reason = "; ".join(parts[:5]) or "the structure of the arguments is another"


def _kind_text(leaf: Any) -> str:
    if type(leaf) is Held:
        return f"{leaf!r}, which is static"
    return describe_kind(leaf)
