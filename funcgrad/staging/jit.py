"""`jit`: runs a function once to record it, and from then on the NumPy program of that run.

For each signature (`funcgrad.staging.signature`) there is a program. It may have conditions: the
branch that `cond` took, derivatives being finite. Where one does not hold, another program is
made: for the other branch, or with the repairs of derivatives that are not finite. So a call gives
what the function gives, always.

A transform's tracer among the arguments means that the function is part of something larger, which
runs the function itself: `grad(jit(f))` differentiates `f`, and a jitted function that calls it
has its operations in one program.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core.level import Origin, TracerBase
from funcgrad.errors import (
    ArgumentError,
    SpecialisedError,
    TreeMismatchError,
    describe,
    is_ours,
    user_line,
)
from funcgrad.staging.backends.module import module_text
from funcgrad.staging.backends.numpy import NotFinite, Otherwise
from funcgrad.staging.compiled import Executable
from funcgrad.staging.equations import describe_kind
from funcgrad.staging.record import argument_names, paths_of, record
from funcgrad.staging.signature import Held, Kinds, is_traced
from funcgrad.staging.strict import StrictTrace
from funcgrad.staging.structures import flattener
from funcgrad.staging.watching import Watched
from funcgrad.transforms.flat import Transformed

__all__ = ["Compiled", "Jitted", "Lowered", "jit"]

# Programs that are kept for one signature, which differ in their conditions.
_VARIANTS = 32
# After so many runs in a row that were not finite the program for that is taken at once.
_PATIENCE = 3


_OTHER_WAY = "the function takes another way for these values"


def jit(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    donate_argnames: str | Sequence[str] = (),
    inline: bool = False,
) -> Any:
    """Compile a function: record what it does, and run that as NumPy code from then on.

    Parameters
    ----------
    fun : callable
        Function of pytrees, in plain NumPy, transformed or not. It should be pure: what it does
        besides computing its result (printing, appending to a list) happens when it is recorded.
    static_argnums, static_argnames : int or str, or sequence of them
        Arguments, by position or by name, whose values may decide what the function does (`if`,
        `range`, shapes). They are compared by content, also lists, dicts and arrays; for each
        content there is a program of its own.
    donate_argnums, donate_argnames : int or str, or sequence of them
        Arguments whose memory the program may take for its results. It makes no use of that yet.
    inline : bool
        For compatibility: under another transform the operations of a jitted function always
        become part of what is around.

    Returns
    -------
    callable
        Takes what `fun` takes and returns what it returns, in fresh arrays. It has the methods
        ``lower(*args)``, for the program and its source, ``explain()``, for why it was compiled
        again, and ``clear_cache()``.

    Raises
    ------
    TracerValueError
        The function asks for the value of something that it computes: ``if x > 0``.
    ShapeError
        A shape depends on values.
    ArgumentError
        A static argument cannot be compared.

    See Also
    --------
    make_program : records the program, without compiling it.

    Notes
    -----
    A program is made for each signature: the structure of the arguments, shapes and dtypes of
    arrays, the types of numbers, the content of what is static. Numbers of Python are arguments
    like arrays, and weakly typed as always. Leaves that are neither arrays nor numbers, such as
    strings and functions, are static.

    Arrays that the function closes over are constants of the program, with the values that they had
    when it was recorded. That a name in a closure, or a global one, has come to mean another array
    or number is noticed, and the function compiled again; that an array was written to is not.

    Loops, also those of `scan` and its kin, are unrolled. Of `cond` there is a program for each
    branch that is taken, of `while_loop` for each number of steps.

    Results are those of the function itself, to the last bit, as long as arrays lie in memory in
    the order in which they did at the first call; in another order sums may differ in the last bit.
    NumPy's warnings of invalid values are not given.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> @fg.jit
    ... def loss(w, x, y):
    ...     return np.mean((np.tanh(x @ w) - y) ** 2)
    >>> step = fg.jit(fg.value_and_grad(loss))
    >>> value, slope = step(np.zeros(3), np.ones((4, 3)), np.ones(4))
    >>> float(value), slope
    (1.0, array([-2., -2., -2.]))
    """
    options: dict[str, Any] = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
        "inline": inline,
    }
    if fun is None:
        return functools.partial(jit, **options)
    return Jitted(jit, fun, options)


class Jitted(Transformed):
    """A function that `jit` compiles."""

    transform = "jit"

    def __init__(self, make: Callable[..., Any], fun: Callable[..., Any], options: dict[str, Any]):
        super().__init__(make, fun, options)
        self._static = _Named(fun, "static", options)
        _Named(fun, "donate", options)  # checks them
        # By the types of arguments that are leaves all; by structure and types of leaves.
        self._flat: dict[Any, Kinds] = {}
        self._kinds: dict[Any, Kinds] = {}
        # By structure, what takes arguments apart; and that for the last call.
        self._structures: dict[Any, _Structure] = {}
        self._last: _Structure | None = None
        self._watched: Watched | None = None
        # Why it was compiled last, and the arguments of that call by their paths.
        self._reason = "it has not been called"
        self._seen: dict[str, str] | None = None

    def clear_cache(self) -> None:
        """Forget all programs, and the memory that they keep."""
        self._flat.clear()
        self._kinds.clear()
        self._structures.clear()
        self._last = None
        self._seen = None

    def explain(self) -> str:
        """Say why the function was compiled the last time that it was.

        Returns
        -------
        str
            Such as ``x was float64[3], and is float64[4]``.

        Examples
        --------
        >>> import numpy as np
        >>> import funcgrad as fg
        >>> double = fg.jit(lambda x: x * 2)
        >>> _ = double(np.ones(3)), double(np.ones(4))
        >>> double.explain()
        'x was float64[3], and is float64[4]'
        """
        return self._reason

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program for these arguments, which is made if there is none."""
        if self._watched is not None:
            name = self._watched.changed()
            if name is not None:
                self.clear_cache()
                self._watched = None
                self._reason = f"{name}, which the function closes over, has changed"
        if not kwargs:
            kinds = self._flat.get(tuple(map(type, args)))
            if kinds is not None:
                key, values = kinds.sort(args)
                found = kinds.entries.get(key)
                if found is not None:
                    return found.run(values, self, args, kwargs)
            elif self._last is not None and len(args) == self._last.count:
                found = self._last.find(args)
                if found is not None:
                    programs, values = found
                    return programs.run(values, self, args, kwargs)
        call = _Call(self, args, kwargs)
        if call.is_traced:
            return self.fun(*args, **kwargs)
        programs = call.programs()
        if not kwargs and not self._static:
            call.remember()
        return programs.run(call.values, self, args, kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Record and write the program for these arguments, without running it again.

        Parameters
        ----------
        *args, **kwargs
            Those of the function.

        Returns
        -------
        Lowered
            With the methods ``as_text()``, ``as_source()`` and ``compile()``.
        """
        call = _Call(self, args, kwargs)
        if call.is_traced:
            raise ArgumentError(
                "lower needs plain arguments, and a transform watches one of these",
                where=user_line(),
                fix="call it outside of the transform",
            )
        programs = call.programs()
        return Lowered(self, programs, programs.first(self, call.args, call.kwargs))


class _Named:
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
                    f"{what}_argnums={number!r} of jit is out of range: {_name(fun)} has the "
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
                    f"{what}_argnames={name!r} of jit names no parameter of {_name(fun)}, which "
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


class _Structure:
    """Arguments of one structure: what takes them apart, and what is known of such leaves."""

    __slots__ = ("count", "kinds", "take")

    def __init__(self, args: tuple[Any, ...]):
        self.count = len(args)
        self.take = flattener(args)
        self.kinds: dict[Any, Kinds] = {}

    def find(self, args: tuple[Any, ...]) -> tuple[_Programs, Sequence[Any]] | None:
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


class _Call:
    """One call: its leaves, its signature, and the programs for that."""

    def __init__(self, jitted: Jitted, args: Any, kwargs: Any):
        self.jitted = jitted
        if jitted._static:
            args, kwargs = jitted._static.hold(
                args, kwargs, lambda: argument_names(jitted.fun, len(args), kwargs)
            )
        self.args, self.kwargs = args, kwargs
        leaves, self.treedef = tree.flatten((args, kwargs))
        self.is_traced = is_traced(leaves)
        if self.is_traced:
            return
        types = tuple(map(type, leaves))
        kinds = jitted._kinds.get((self.treedef, types))
        if kinds is None:
            kinds = Kinds(leaves, self.paths)
            jitted._kinds[self.treedef, types] = kinds
            if (
                not kwargs
                and kinds.is_plain
                and len(args) == len(leaves)
                and all(arg is leaf for arg, leaf in zip(args, leaves, strict=True))
            ):
                jitted._flat[types] = kinds
        self.kinds = kinds
        self.types = types
        self.key, self.values = kinds.sort(leaves)

    def remember(self) -> None:
        """Make code that takes the next arguments of this structure apart."""
        jitted = self.jitted
        if self.types in jitted._flat:
            return
        known = jitted._structures.get(self.treedef)
        if known is None:
            known = jitted._structures[self.treedef] = _Structure(self.args)
        known.kinds[self.types] = self.kinds
        jitted._last = known

    def paths(self) -> list[str]:
        """Return the paths of the leaves."""
        names = argument_names(self.jitted.fun, len(self.args), self.kwargs)
        return paths_of((self.args, self.kwargs), names)

    def programs(self) -> _Programs:
        """Return the programs for the signature."""
        found: _Programs | None = self.kinds.entries.get(self.key)
        if found is None:
            found = self.kinds.entries.setdefault(self.key, _Programs())
        return found


class _Programs:
    """The programs for one signature, the one that was used last coming first."""

    __slots__ = ("_careful", "_misses", "_variants")

    def __init__(self) -> None:
        self._variants: tuple[Executable, ...] = ()
        # For derivatives that are not finite.
        self._careful: tuple[Executable, ...] = ()
        self._misses = 0

    def run(self, values: Sequence[Any], jitted: Jitted, args: Any, kwargs: Any) -> Any:
        """Run the program whose conditions hold, and make it if there is none."""
        if self._misses < _PATIENCE:
            for variant in self._variants:
                try:
                    out = variant.run(values)
                except Otherwise:
                    continue
                except NotFinite:
                    self._misses += 1
                    return self._run_careful(values, jitted, args, kwargs)
                self._misses = 0
                if variant is not self._variants[0]:
                    self._variants = _first(variant, self._variants)
                return out
            why = _OTHER_WAY if self._variants else ""
            made = _compile(jitted, args, kwargs, careful=False, why=why)
            if made is None:
                return jitted.fun(*args, **kwargs)
            self._variants = _first(made, self._variants)
            try:
                return _run(made, values, jitted)
            except NotFinite:
                self._misses += 1
        return self._run_careful(values, jitted, args, kwargs)

    def _run_careful(self, values: Sequence[Any], jitted: Jitted, args: Any, kwargs: Any) -> Any:
        for variant in self._careful:
            try:
                out = variant.run(values)
            except Otherwise:
                continue
            if variant is not self._careful[0]:
                self._careful = _first(variant, self._careful)
            return out
        why = _OTHER_WAY if self._careful else "a derivative is not finite"
        made = _compile(jitted, args, kwargs, careful=True, why=why)
        if made is None:
            return jitted.fun(*args, **kwargs)
        self._careful = _first(made, self._careful)
        return _run(made, values, jitted)

    def first(self, jitted: Jitted, args: Any, kwargs: Any) -> Executable:
        """Return a program, to read; make it if there is none."""
        if not self._variants:
            made = _compile(jitted, args, kwargs, careful=False)
            if made is None:
                raise ArgumentError(
                    f"{_name(jitted.fun)} closes over a value that a transform watches",
                    where=user_line(),
                    fix="make it an argument, or call lower outside of the transform",
                )
            self._variants = (made,)
        return self._variants[0]


def _run(made: Executable, values: Sequence[Any], jitted: Jitted) -> Any:
    """Run a program on the values that it was recorded with."""
    try:
        return made.run(values)
    except Otherwise:
        name = _name(jitted.fun)
        raise SpecialisedError(
            f"{name} went one way when jit recorded it, and goes another for the same arguments",
            where=user_line(),
            fix="compile a function that depends on its arguments alone: give it a random key, or "
            "what else it looks at, as an argument",
        ) from None


def _first(made: Executable, before: tuple[Executable, ...]) -> tuple[Executable, ...]:
    """Put a program first, and drop the one that was not used for longest if there are many."""
    return (made, *[other for other in before if other is not made][: _VARIANTS - 1])


def _compile(
    jitted: Jitted, args: Any, kwargs: Any, *, careful: bool, why: str = ""
) -> Executable | None:
    """Record and compile a call; None if the function closes over what a transform watches."""
    fun = jitted.fun
    if jitted._static:
        args, kwargs = jitted._static.hold(
            args, kwargs, lambda: argument_names(fun, len(args), kwargs)
        )
        fun = _releasing(fun)
    _note_reason(jitted, args, kwargs, why)
    origin = _origin(jitted.fun)
    watched = jitted._watched or Watched(jitted.fun)

    def paths() -> list[str]:
        names = argument_names(jitted.fun, len(args), kwargs)
        leaves = tree.leaves((args, kwargs))
        kinds = Kinds(leaves, list)
        found = paths_of((args, kwargs), names)
        return [found[i] for i in kinds.variable]

    trace = StrictTrace(origin, paths, careful=careful)
    with np.errstate(all="ignore"):  # as when it runs
        program = record(fun, args, kwargs, origin, trace, integers=True)
    if any(isinstance(constant.value, TracerBase) for constant in program.constants):
        return None
    jitted._watched = watched
    return Executable(program, trace)


def _note_reason(jitted: Jitted, args: Any, kwargs: Any, why: str) -> None:
    """Note why a call is compiled: `why`, or what is new about its arguments."""
    leaves = tree.leaves((args, kwargs))
    paths = paths_of((args, kwargs), argument_names(jitted.fun, len(args), kwargs))
    now = {path: _kind_text(leaf) for path, leaf in zip(paths, leaves, strict=True)}
    before, jitted._seen = jitted._seen, now
    if before is None:
        if not jitted._reason.endswith("has changed"):
            jitted._reason = "it was called for the first time"
        return
    if why:
        jitted._reason = why
        return
    parts = [
        f"{path} was {before[path]}, and is {kind}"
        for path, kind in now.items()
        if path in before and before[path] != kind
    ]
    parts += [f"{path} is new" for path in now if path not in before]
    parts += [f"there is no {path}" for path in before if path not in now]
    jitted._reason = "; ".join(parts[:5]) or "the structure of the arguments is another"


def _kind_text(leaf: Any) -> str:
    if type(leaf) is Held:
        return f"{leaf!r}, which is static"
    return describe_kind(leaf)


def _origin(fun: Callable[..., Any]) -> Origin:
    """Note the line of the call, wherever in here it has come to be recorded."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return Origin("jit", fun, frame.f_code, frame.f_lasti)


def _releasing(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes static arguments in their leaves."""

    @functools.wraps(fun)
    def released(*args: Any, **kwargs: Any) -> Any:
        args = tuple([arg.value if type(arg) is Held else arg for arg in args])
        kwargs = {k: v.value if type(v) is Held else v for k, v in kwargs.items()}
        return fun(*args, **kwargs)

    return released


def _name(fun: Any) -> str:
    return str(getattr(fun, "__name__", type(fun).__name__))


class Lowered:
    """A jitted function for arguments of one signature: its program, and its source."""

    def __init__(self, jitted: Jitted, programs: _Programs, executable: Executable):
        self._jitted = jitted
        self._programs = programs
        self._executable = executable

    def as_text(self, *, optimized: bool = True) -> str:
        """Return the program, as text.

        Parameters
        ----------
        optimized : bool
            As it runs, rather than as it was recorded.
        """
        executable = self._executable
        return (executable.program if optimized else executable.recorded).as_text()

    def as_source(self) -> str:
        """Return the program as a module of Python, which needs NumPy alone if it can.

        It has one function, of the leaves of the arguments, that returns a list of the leaves of
        the result. Where an operation has no plain NumPy equivalent the module imports funcgrad,
        and says so.
        """
        return module_text(self._executable)

    def compile(self) -> Compiled:
        """Return a function that takes arguments of this signature alone."""
        return Compiled(self._jitted, self._executable)

    def __str__(self) -> str:
        return self.as_text()


class Compiled:
    """A jitted function for arguments of one signature; others are an error."""

    def __init__(self, jitted: Jitted, executable: Executable):
        self._jitted = jitted
        self._program = executable.recorded
        self._programs = _Programs()
        self._programs._variants = (executable,)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program; raise if the arguments are not like those that it was made for."""
        call = _Call(self._jitted, args, kwargs)
        if call.is_traced:
            return self._jitted.fun(*args, **kwargs)
        if call.treedef != self._program.in_tree:
            raise TreeMismatchError(
                f"{_name(self._jitted.fun)} was compiled for arguments of another structure: "
                f"{self._program.in_tree}, got {call.treedef}",
                where=user_line(),
                fix="call the jitted function, which compiles again, or lower it for these",
            )
        values = self._program._leaves_of(call.args, call.kwargs)
        return self._programs.run(values, self._jitted, args, kwargs)
