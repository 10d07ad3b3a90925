"""How a call of a jitted function finds its programs: by the structure and kinds of its leaves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from funcgrad import tree
from funcgrad.staging.record import argument_names, paths_of
from funcgrad.staging.signature import Held, Kinds, is_traced, refuse_donated
from funcgrad.staging.structures import flattener
from funcgrad.staging.subject import Subject
from funcgrad.staging.variants import Programs

__all__ = ["Call", "Known"]


class Known:
    """What is known of the calls of a function.

    Attributes
    ----------
    subject : Subject
    flat : dict
        By the types of arguments that are leaves all.
    kinds : dict
        By the structure and the types of leaves.
    structures : dict
        By structure, what takes arguments apart.
    last : Structure or None
        That for the last call.
    """

    __slots__ = ("flat", "kinds", "last", "structures", "subject")

    def __init__(self, subject: Subject):
        self.subject = subject
        self.flat: dict[Any, Kinds] = {}
        self.kinds: dict[Any, Kinds] = {}
        self.structures: dict[Any, Structure] = {}
        self.last: Structure | None = None

    def clear(self) -> None:
        """Forget all programs."""
        self.flat.clear()
        self.kinds.clear()
        self.structures.clear()
        self.last = None

    def find(self, args: tuple[Any, ...]) -> tuple[Programs, Sequence[Any]] | None:
        """Return the programs for arguments, and the values of their variables, if at hand."""
        kinds = self.flat.get(tuple(map(type, args)))
        if kinds is not None:
            key, values = kinds.sort(args)
            programs = kinds.entries.get(key)
            return None if programs is None else (programs, values)
        if self.last is not None and len(args) == self.last.count:
            return self.last.find(args)
        return None


class Structure:
    """Arguments of one structure: what takes them apart, and what is known of such leaves."""

    __slots__ = ("count", "kinds", "take")

    def __init__(self, args: tuple[Any, ...]):
        self.count = len(args)
        self.take = flattener(args)
        self.kinds: dict[Any, Kinds] = {}

    def find(self, args: tuple[Any, ...]) -> tuple[Programs, Sequence[Any]] | None:
        """Return the programs for arguments, and the values of their variables, if there are."""
        try:
            leaves = self.take(*args)
        except KeyError:  # a dict with other keys
            return None
        if leaves is None:
            return None
        kinds = self.kinds.get(tuple(map(type, leaves)))
        if kinds is None or (kinds.has_boxed and is_traced(leaves)):
            return None
        key, values = kinds.sort(leaves)
        programs = kinds.entries.get(key)
        return None if programs is None else (programs, values)


class Call:
    """One call: its leaves, its signature, and the programs for that."""

    def __init__(self, known: Known, args: Any, kwargs: Any):
        self.known = known
        subject = known.subject
        if subject.static:
            args, kwargs = subject.static.hold(
                args, kwargs, lambda: argument_names(subject.fun, len(args), kwargs)
            )
        self.args, self.kwargs = args, kwargs
        leaves, self.treedef = tree.flatten((args, kwargs))
        self.leaves = leaves
        # What `paths` returns, for what is kept, which must not keep the arguments.
        self.kept_paths = functools.partial(_paths, subject.fun, self.treedef, len(leaves))
        self.is_traced = is_traced(leaves)
        if self.is_traced:
            return
        types = tuple(map(type, leaves))
        kinds = known.kinds.get((self.treedef, types))
        if kinds is None:
            kinds = Kinds(leaves, self.kept_paths)
            known.kinds[self.treedef, types] = kinds
            if (
                not kwargs
                and kinds.is_plain
                and len(args) == len(leaves)
                and all(arg is leaf for arg, leaf in zip(args, leaves, strict=True))
            ):
                known.flat[types] = kinds
        self.kinds = kinds
        self.types = types
        self.key, self.values = kinds.sort(leaves)

    def remember(self) -> None:
        """Make code that takes the next arguments of this structure apart."""
        known = self.known
        if self.types in known.flat:
            return
        structure = known.structures.get(self.treedef)
        if structure is None:
            structure = known.structures[self.treedef] = Structure(self.args)
        structure.kinds[self.types] = self.kinds
        known.last = structure

    def paths(self) -> list[str]:
        """Return the paths of the leaves."""
        return self.kept_paths()

    def programs(self) -> Programs:
        """Return the programs for the signature."""
        found: Programs | None = self.kinds.entries.get(self.key)
        if found is None:
            refuse_donated(self.leaves, self.paths)
            for part in self.key:
                if type(part) is Held:
                    part.keep()
            found = self.kinds.entries.setdefault(self.key, Programs())
        return found


def _paths(fun: Callable[..., Any], treedef: Any, count: int) -> list[str]:
    """Return the paths of the leaves of arguments of this structure."""
    args, kwargs = tree.unflatten(treedef, list(range(count)))
    return paths_of((args, kwargs), argument_names(fun, len(args), kwargs))
