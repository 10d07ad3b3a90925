"""What is compiled: a function, the arguments that its options name, and why it was compiled last.

The parts of `jit` hand this to each other. Programs, and how calls find them, are in
`funcgrad.staging.variants` and `funcgrad.staging.arguments`.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from funcgrad import tree
from funcgrad.core.level import Origin, TracerBase
from funcgrad.errors import ArgumentError, describe, is_ours, user_line
from funcgrad.staging.signature import Held

if TYPE_CHECKING:
    from funcgrad.staging.watching import Watched

__all__ = ["NamedArguments", "Subject", "name_of", "origin_of", "releasing"]


class Subject:
    """A function that is compiled.

    Attributes
    ----------
    fun : callable
    static, donated : NamedArguments
    watched : Watched or None
        What it closes over, of the programs that there are.
    reason : str
        Why it was compiled last.
    seen : dict or None
        The arguments of that call, in words, by their paths.
    """

    __slots__ = ("donated", "fun", "reason", "seen", "static", "watched")

    def __init__(self, fun: Callable[..., Any], options: dict[str, Any]):
        self.fun = fun
        self.static = NamedArguments(fun, "static", options)
        self.donated = NamedArguments(fun, "donate", options)
        both = self.static.names & self.donated.names or self.static.numbers & self.donated.numbers
        if both:
            raise ArgumentError(
                f"jit cannot make an argument static and take its memory: {sorted(both)}",
                where=user_line(),
                fix="leave it out of static_argnums and static_argnames, or out of those to donate",
            )
        self.watched: Watched | None = None
        self.reason = "it has not been called"
        self.seen: dict[str, str] | None = None

    def forget(self, name: str) -> None:
        """Note that something it closes over has changed, so that no program holds."""
        self.watched = None
        self.seen = None
        self.reason = f"{name}, which the function closes over, has changed"


def _several(given: Any, option: str, kind: type) -> tuple[Any, ...]:
    """Return what an option lists; raise if that is neither one of a kind nor a sequence."""
    if given is None:
        return ()
    if isinstance(given, kind):
        return (given,)
    if isinstance(given, list | tuple | set | frozenset | range) and all(
        isinstance(part, kind) for part in given
    ):
        return tuple(given)
    raise ArgumentError(
        f"{option}={given!r} of jit must be {kind.__name__}, or a sequence of such",
        where=user_line(),
        fix="give a number, or a tuple of numbers" if kind is int else "give a name, or a tuple",
    )


class NamedArguments:
    """The arguments that options of `jit` name, by number or by name, however they are passed."""

    def __init__(self, fun: Callable[..., Any], what: str, options: dict[str, Any]):
        numbers = options[f"{what}_argnums"]
        names = options[f"{what}_argnames"]
        numbers = _several(numbers, f"{what}_argnums", int)
        names = _several(names, f"{what}_argnames", str)
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

    def places(self, args: Any, kwargs: Any) -> list[int]:
        """Return which of the leaves of the arguments belong to those that are named."""
        count = len(args)
        numbers = {number % count for number in self.numbers if -count <= number < count}
        given = [(place in numbers, value) for place, value in enumerate(args)]
        given += [(key in self.names, kwargs[key]) for key in sorted(kwargs)]
        flags = [is_named for is_named, value in given for _ in tree.leaves(value)]
        return [place for place, is_named in enumerate(flags) if is_named]

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


def origin_of(fun: Callable[..., Any]) -> Origin:
    """Note the line of the call, wherever in here it has come to be recorded."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return Origin("jit", fun, frame.f_code, frame.f_lasti)


def releasing(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes static arguments in their leaves."""

    @functools.wraps(fun)
    def released(*args: Any, **kwargs: Any) -> Any:
        args = tuple([arg.value if type(arg) is Held else arg for arg in args])
        kwargs = {k: v.value if type(v) is Held else v for k, v in kwargs.items()}
        return fun(*args, **kwargs)

    return released


def name_of(fun: Any) -> str:
    """Return what to call a function in messages."""
    return str(getattr(fun, "__name__", type(fun).__name__))
