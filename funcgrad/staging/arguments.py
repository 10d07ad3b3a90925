"""The arguments of a jitted function: which are static, and how a call finds its programs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from funcgrad import tree
from funcgrad.core.level import TracerBase
from funcgrad.errors import ArgumentError, describe, user_line
from funcgrad.staging.record import argument_names, paths_of
from funcgrad.staging.signature import Held, Kinds, is_traced
from funcgrad.staging.structures import flattener
from funcgrad.staging.variants import Programs, name_of

if TYPE_CHECKING:
    from funcgrad.staging.jit import Jitted

__all__ = ["Call", "NamedArguments", "Structure"]


class NamedArguments:
    """The arguments that `static_argnums` and `static_argnames` name, however they are passed."""

    def __init__(self, fun: Callable[..., Any], what: str, options: dict[str, Any]):
        numbers = options[f"{what}_argnums"]
        names = options[f"{what}_argnames"]
        numbers = (numbers,) if isinstance(numbers, int) else tuple(numbers)
        names = (names,) if isinstance(names, str) else tuple(names)
        try:
            parameters = list(inspect.signature(fun).parameters.values())
        except (TypeError, ValueError):  # some builtins have no signature
            parameters = []
        positional = [
            p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        takes_more = any(p.kind is p.VAR_POSITIONAL for p in parameters) or not parameters
        takes_names = any(p.kind is p.VAR_KEYWORD for p in parameters) or not parameters
        self.numbers = set()
        self.names = set(names)
        for number in numbers:
            if type(number) is not int or not (
                takes_more or -len(positional) <= number < len(positional)
            ):
                raise ArgumentError(
                    f"{what}_argnums={number!r} of jit is out of range: {name_of(fun)} has the "
                    f"parameters {positional}",
                    where=user_line(),
                    fix=f"count from 0, or name it with {what}_argnames=",
                )
            if number < 0 and positional:
                number += len(positional)
            self.numbers.add(number)
            if 0 <= number < len(positional):
                self.names.add(positional[number])
        known = {p.name for p in parameters}
        for name in names:
            if name not in known and not takes_names:
                raise ArgumentError(
                    f"{what}_argnames={name!r} of jit names no parameter of {name_of(fun)}, which "
                    f"has {sorted(known)}",
                    where=user_line(),
                    fix="write the name of a parameter",
                )
            if name in positional:
                self.numbers.add(positional.index(name))

    def __bool__(self) -> bool:
        return bool(self.numbers or self.names)

    def hold(self, args: Any, kwargs: Any, names: Callable[[], Sequence[str]]) -> tuple[Any, Any]:
        """Return the arguments with the static ones in a leaf that compares by content."""
        count = len(args)

        def held(place: int, value: Any) -> Held:
            if type(value) is Held:
                return value
            if any(isinstance(leaf, TracerBase) for leaf in tree.leaves(value)):
                raise ArgumentError(
                    f"the argument {names()[place]!r} is static, and {describe(value)} is traced",
                    where=f"{names()[place]}, {user_line()}",
                    fix="give it a plain value, or do not make it static",
                )
            return Held(value, lambda: names()[place])

        numbers = {number % count for number in self.numbers if -count <= number < count}
        args = tuple([held(i, value) if i in numbers else value for i, value in enumerate(args)])
        keys = sorted(kwargs)
        kwargs = {
            key: held(count + keys.index(key), value) if key in self.names else value
            for key, value in kwargs.items()
        }
        return args, kwargs


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

    def __init__(self, jitted: Jitted, args: Any, kwargs: Any):
        self.jitted = jitted
        if jitted.static:
            args, kwargs = jitted.static.hold(
                args, kwargs, lambda: argument_names(jitted.fun, len(args), kwargs)
            )
        self.args, self.kwargs = args, kwargs
        leaves, self.treedef = tree.flatten((args, kwargs))
        self.leaves = leaves
        self.is_traced = is_traced(leaves)
        if self.is_traced:
            return
        types = tuple(map(type, leaves))
        kinds = jitted.kinds.get((self.treedef, types))
        if kinds is None:
            kinds = Kinds(leaves, self.paths)
            jitted.kinds[self.treedef, types] = kinds
            if (
                not kwargs
                and kinds.is_plain
                and len(args) == len(leaves)
                and all(arg is leaf for arg, leaf in zip(args, leaves, strict=True))
            ):
                jitted.flat[types] = kinds
        self.kinds = kinds
        self.types = types
        self.key, self.values = kinds.sort(leaves)

    def remember(self) -> None:
        """Make code that takes the next arguments of this structure apart."""
        jitted = self.jitted
        if self.types in jitted.flat:
            return
        known = jitted.structures.get(self.treedef)
        if known is None:
            known = jitted.structures[self.treedef] = Structure(self.args)
        known.kinds[self.types] = self.kinds
        jitted.last = known

    def paths(self) -> list[str]:
        """Return the paths of the leaves."""
        names = argument_names(self.jitted.fun, len(self.args), self.kwargs)
        return paths_of((self.args, self.kwargs), names)

    def programs(self) -> Programs:
        """Return the programs for the signature."""
        found: Programs | None = self.kinds.entries.get(self.key)
        if found is None:
            found = self.kinds.entries.setdefault(self.key, Programs())
        return found
