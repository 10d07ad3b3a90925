"""Primitives: everything known about one operation, declared in one place.

The one idea: a primitive has a forward function, which is plain NumPy code on its array
arguments, and rules, which are plain NumPy code too. Array arguments are positional, whatever
is static is a keyword. `bind` hands the call to the trace of the highest level among the
arguments, or runs the forward function when nothing is traced. The registries say which NumPy
function, ufunc or operator a primitive answers for; `funcgrad.core.dispatch` reads them.

Ufuncs whose derivative is a factor for each element are a kind of their own:
`funcgrad.core.elementwise`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from funcgrad.core.foreign import PLAIN, argument
from funcgrad.core.level import TracerBase, holds_tracer, top_trace, traced_here
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import (
    ArgumentError,
    DtypeError,
    MutationError,
    ShapeError,
    describe,
    user_line,
)

__all__ = [
    "DECLARED",
    "FUNCTIONS",
    "UFUNCS",
    "Composed",
    "Primitive",
    "Sample",
    "overrides",
    "primitive",
    "register",
]

Rule = Callable[..., Any]

# Statics that the caller may write to.
_WRITEABLE = frozenset({np.ndarray, list})

# NumPy function, ufunc method or operator -> what answers for it on traced arguments; also ufuncs
# that are not elementwise, such as np.matmul.
FUNCTIONS: dict[Any, Any] = {}
# ufunc -> the elementwise primitive for a plain call of it.
UFUNCS: dict[Any, Any] = {}
# name -> everything that needs a test sample: primitives, and functions composed of them.
DECLARED: dict[str, Any] = {}


class Sample:
    """One call to test a rule with: the arguments as a user would write them.

    Parameters
    ----------
    *args
        Positional arguments. Floating and complex arrays and NumPy scalars, also inside lists and
        tuples, are differentiated; Python numbers are not unless `argnums` says so.
    fun : callable, optional
        The NumPy function to call; by default the first that the primitive answers for.
    argnums : int or tuple of int, optional
        The positional arguments to differentiate, in place of all that hold an array.
    argnames : str or tuple of str, optional
        Keyword arguments to differentiate too.
    kinks : bool
        The sample sits on a kink or a singularity, where finite differences say nothing: only the
        value, and the agreement of the modes with each other, are checked.
    order : {2, 1, 0}
        The highest order to check; 0 for functions that are piecewise constant. A string is not
        meant for the tests but is NumPy's keyword of that name (``order="F"``).
    complex : bool
        False if the call says something else of complex numbers than of real ones, though NumPy
        takes them. Where NumPy raises TypeError, the tests see that by themselves.
    batch : bool
        False if `vmap` cannot do it: the shape of the result depends on the values.
    **kwargs
        Keyword arguments.
    """

    def __init__(
        self,
        *args: Any,
        fun: Callable[..., Any] | None = None,
        argnums: int | tuple[int, ...] | None = None,
        argnames: str | tuple[str, ...] = (),
        kinks: bool = False,
        order: int | str = 2,
        complex: bool = True,
        batch: bool = True,
        **kwargs: Any,
    ):
        self.args = args
        self.fun = fun
        self.argnums = (argnums,) if isinstance(argnums, int) else argnums
        self.argnames = (argnames,) if isinstance(argnames, str) else argnames
        self.kinks = kinks
        self.order = order if isinstance(order, int) else 2
        self.complex = complex
        self.batch = batch
        self.kwargs = kwargs if isinstance(order, int) else {"order": order, **kwargs}


class Primitive:
    """An operation that transforms do not look inside.

    Attributes
    ----------
    name : str
    forward : callable
        Plain NumPy code: positional arrays, keyword statics.
    jvp : callable or None
        ``jvp(primals, tangents, out, **params) -> out_dot``; a tangent of None is zero.
    vjp : callable or None
        ``vjp(primals, out, **params) -> pullbacks``: one function of `out_bar` for each array
        argument, or None where there is no derivative; a single function if there is one array.
        Only the pullbacks that are wanted are kept, and with them the residuals they mention.
    batch : callable or None
        ``batch(args, batched, **params) -> out``: the operation on many examples at once. Where
        ``batched[i]``, the first axis of ``args[i]`` counts the examples, and so must that of the
        result, or of each result. `funcgrad.core.batch` has the rules that many share.
    reason : str or None
        Why there is no derivative, for functions that are piecewise constant.
    may_alias : bool
        The result may share memory with the first argument.
    linear : bool
        The tangents go through the operation itself; no rule asks for the values of its arguments.
    multilinear : bool
        Linear in each argument by itself: a sum of products, in which the transforms let zero win.
    into : callable or None
        ``into(*arrays, *outs)`` does what `forward` does, and writes the results into given arrays,
        in C order; for arrays that fit, which ``fits(*arrays)`` tells of their shapes and dtypes.
    """

    __slots__ = (
        "_array_defaults",
        "_arrays",
        "_static_defaults",
        "_statics",
        "_variadic",
        "batch",
        "canonical",
        "fits",
        "forward",
        "into",
        "jvp",
        "linear",
        "may_alias",
        "multilinear",
        "name",
        "overridden",
        "reason",
        "samples",
        "vjp",
    )

    def __init__(self, forward: Callable[..., Any], *, name: str, may_alias: bool = False):
        self.forward = forward
        self.name = name
        self.may_alias = may_alias
        self.linear = False
        self.multilinear = False
        self.jvp: Rule | None = None
        self.vjp: Rule | None = None
        self.batch: Rule | None = None
        self.reason: str | None = None
        self.into: Callable[..., None] | None = None
        self.fits: Callable[..., bool] | None = None
        self.samples: Callable[..., Iterable[Sample]] | None = None
        self.overridden: tuple[Any, ...] = ()
        self.canonical: Callable[..., Any] | None = None
        code = getattr(forward, "__code__", None)
        if code is not None:
            count = code.co_argcount
            names = code.co_varnames
            self._arrays = names[:count]
            self._variadic = bool(code.co_flags & 0x04)
            self._statics = names[count : count + code.co_kwonlyargcount]
            self._array_defaults = forward.__defaults__ or ()
            self._static_defaults = forward.__kwdefaults__ or {}

    @property
    def __name__(self) -> str:  # as it is called in messages
        return self.name

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def bind(self, *args: Any, **params: Any) -> Any:
        """Carry the operation out at the highest level among `args`."""
        trace = top_trace(args)
        if trace is None:
            return self.forward(*args, **params)
        for arg in args:
            if type(arg) not in PLAIN:
                args = tuple([arg if type(arg) in PLAIN else argument(arg) for arg in args])
                break
        return trace.process(self, args, params)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call with NumPy's own signature: statics may be positional, arrays by keyword."""
        out = None
        if "out" in kwargs:
            out = kwargs.pop("out")
        if not self._variadic:
            count = len(self._arrays)
            if len(args) > count:
                extra = args[count:]
                if len(extra) > len(self._statics):
                    raise TypeError(
                        f"{self.name}() takes at most {count + len(self._statics)} "
                        f"positional arguments, got {len(args)}"
                    )
                kwargs.update(zip(self._statics, extra, strict=False))
                args = args[:count]
                out = kwargs.pop("out", out)
            elif len(args) < count:
                args = self._fill(args, kwargs)
        params = {**self._static_defaults, **kwargs}
        params.pop("out", None)
        if len(params) + ("out" in self._statics) != len(self._statics):
            self._complain(params)
        if self.canonical is not None:
            args, params = self.canonical(args, params)
        for name, value in params.items():
            if type(value) in _WRITEABLE and not holds_tracer(value):
                params[name] = value.copy()  # the caller may write to it before the backward pass
            elif isinstance(value, TracerBase | list):
                if isinstance(value, TracerBase) and value._trace.records:
                    params[name] = value._trace.look(value, f"the argument {name!r} of {self.name}")
                    continue
                raise ArgumentError(
                    f"the argument {name!r} of {self.name} cannot be a traced value",
                    where=user_line(),
                    fix=f"write it outside of {self.name}, as an operation on the result",
                )
        result = self.bind(*args, **params)
        return result if out is None else store(result, out)

    def _fill(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        filled = list(args)
        first_default = len(self._arrays) - len(self._array_defaults)
        for index in range(len(args), len(self._arrays)):
            name = self._arrays[index]
            if name in kwargs:
                filled.append(kwargs.pop(name))
            elif index >= first_default:
                filled.append(self._array_defaults[index - first_default])
            else:
                raise TypeError(f"{self.name}() misses the argument {name!r}")
        return tuple(filled)

    def _complain(self, params: dict[str, Any]) -> None:
        for name in params:
            if name not in self._statics:
                raise TypeError(f"{self.name}() got an unexpected keyword argument {name!r}")
        for name in self._statics:
            if name not in params and name != "out":
                raise TypeError(f"{self.name}() misses the argument {name!r}")

    def def_jvp(self, rule: Rule) -> Rule:
        """Declare the forward-mode rule."""
        self.jvp = self._checked(rule, "def_jvp")
        return rule

    def def_vjp(self, rule: Rule) -> Rule:
        """Declare the reverse-mode rule."""
        self.vjp = self._checked(rule, "def_vjp")
        return rule

    def def_batch(self, rule: Rule) -> Rule:
        """Declare the rule for many examples at once."""
        self.batch = self._checked(rule, "def_batch")
        return rule

    def def_into(
        self, fits: Callable[..., bool]
    ) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Declare the function that writes the results into given arrays, for arrays that fit."""

        def declare(into: Callable[..., None]) -> Callable[..., None]:
            self.into, self.fits = into, fits
            return into

        return declare

    def _checked(self, rule: Rule, declaration: str) -> Rule:
        if callable(rule):
            return rule
        raise ArgumentError(
            f"{declaration} of {self.name} must be given a function, got {describe(rule)}",
            where=user_line(),
            fix=f"write @{self.name}.{declaration} above the rule; functions that give a primitive "
            f"a rule, such as funcgrad.core.batch.by_loop({self.name}), are called by themselves",
        )

    def def_call(self, *functions: Any) -> Callable[[Any], Any]:
        """Declare the function, of NumPy's own signature, that binds this for NumPy's `functions`.

        For calls that `__call__` cannot translate: with the arrays in a list, or between statics.
        """
        self.overridden = (*self.overridden, *functions)

        def declare(call: Any) -> Any:
            for function in functions:
                FUNCTIONS[function] = call
            return call

        return declare

    def def_samples(self, generate: Callable[..., Iterable[Sample]]) -> Callable[..., Any]:
        """Declare the calls that the tests make: a generator of `Sample`, given a random one."""
        self.samples = generate
        return generate

    def not_differentiable(self, reason: str) -> None:
        """Declare that the result carries no derivative, and why."""
        self.reason = reason


def store(result: Any, out: Any, *, stretch: bool = False) -> Any:
    """Write `result` into the array given as ``out=``, as a functional update of a traced one.

    Parameters
    ----------
    result : array_like or tuple of array_like
        What was computed.
    out : array, or tuple of arrays and None
        Where to write it.
    stretch : bool
        Whether `result` is broadcast to the shape of `out`: ufuncs do that, others do not.
    """
    if isinstance(result, tuple):
        if not isinstance(out, tuple):
            out = (out,)
        return tuple(
            part if target is None else store(part, target, stretch=stretch)
            for part, target in zip(result, out, strict=True)
        )
    (out,) = out if isinstance(out, tuple) else (out,)
    shape, want = shape_of(result), shape_of(out)
    if shape != want and not (stretch and len(shape) <= len(want)):
        raise ShapeError(
            f"out= has shape {want}, but the result has shape {shape}",
            where=user_line(),
            fix="leave out= away and use the result",
        )
    if not np.can_cast(dtype_of(result), dtype_of(out), "same_kind"):
        raise DtypeError(
            f"out= is of {dtype_of(out)}, to which the result, {dtype_of(result)}, cannot be cast",
            where=user_line(),
            fix="leave out= away and use the result",
        )
    trace = top_trace((result,))
    if isinstance(out, TracerBase) or trace is None or trace.level == 0:  # nothing to lose
        target: Any = out
        target[...] = result
        return out
    raise MutationError(
        "out= (or an operator such as a += b) would write a traced value into a plain NumPy array",
        where=f"{user_line()}; the array is {describe(out)}, the value {traced_here(result)}",
        fix="leave out= away and write a = a + b, or make the array with np.zeros_like(x) of a "
        "traced x or with funcgrad.numpy.zeros",
    )


def overrides(*functions: Any) -> Callable[[Any], Any]:
    """Declare that the decorated function answers for these NumPy functions on traced arguments.

    For functions that are composed of primitives; it gets `def_samples` like a primitive.
    """

    def declare(fun: Any) -> Any:
        for function in functions:
            FUNCTIONS[function] = fun
        composed = Composed(fun, functions)
        DECLARED[composed.name] = composed
        return composed

    return declare


class Composed:
    """A NumPy function written in terms of others: no rule of its own, but samples to test."""

    def __init__(self, fun: Callable[..., Any], functions: tuple[Any, ...]):
        self.fun = fun
        self.name = fun.__name__
        self.overridden = functions
        self.samples: Callable[..., Iterable[Sample]] | None = None
        self.__doc__ = fun.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it, as NumPy's function is called."""
        return self.fun(*args, **kwargs)

    def def_samples(self, generate: Callable[..., Iterable[Sample]]) -> Callable[..., Any]:
        """Declare the calls that the tests make."""
        self.samples = generate
        return generate


def primitive(
    family: Callable[[Primitive], None] | None = None,
    *,
    overrides: Any = (),
    canonical: Callable[..., Any] | None = None,
    may_alias: bool = False,
    name: str | None = None,
) -> Callable[[Callable[..., Any]], Primitive]:
    """Declare a primitive whose forward function is the decorated one.

    Parameters
    ----------
    family : callable, optional
        Gives the new primitive the rules that its kind shares; see `funcgrad.rules.families`.
    overrides : function or tuple of functions
        The NumPy functions (or ufuncs, bound ufunc methods such as ``np.add.reduce``, functions of
        `operator`) that it answers for.
    canonical : callable, optional
        ``canonical(args, params) -> (args, params)``, applied before any rule sees them.
    may_alias : bool
        The result may be a view of the first argument.
    """

    def declare(forward: Callable[..., Any]) -> Primitive:
        made = Primitive(forward, name=name or forward.__name__, may_alias=may_alias)
        made.canonical = canonical
        functions = overrides if isinstance(overrides, tuple) else (overrides,)
        register(made, functions)
        if family is not None:
            family(made)
        return made

    return _Declaration(declare)


class _Declaration:
    """What ``primitive()`` returns: a decorator, that tells who left the parentheses out."""

    def __init__(self, declare: Callable[[Callable[..., Any]], Primitive]):
        self._declare = declare

    def __call__(self, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Primitive:
        """Declare the primitive."""
        if args or kwargs or not callable(forward):
            raise self._misuse()
        return self._declare(forward)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("def_"):
            raise self._misuse()
        raise AttributeError(name)

    def _misuse(self) -> ArgumentError:
        return ArgumentError(
            "primitive was written above a function without parentheses",
            where=user_line(),
            fix="write @primitive(), or with a family @primitive(linear)",
        )


def register(made: Any, functions: Sequence[Any], registry: dict[Any, Any] = FUNCTIONS) -> None:
    """Enter a primitive under its name and under the functions that it answers for.

    One that is declared again in the same place, as a notebook does, takes the place of the former.
    """
    former = DECLARED.get(made.name)
    if former is not None and _place_of(former) != _place_of(made):
        raise ArgumentError(
            f"there is a primitive named {made.name!r} already",
            where=user_line(),
            fix='give this one another, with @primitive(name="...")',
        )
    DECLARED[made.name] = made
    made.overridden = tuple(functions)
    registry.update(dict.fromkeys(functions, made))


def _place_of(made: Any) -> tuple[Any, Any]:
    """Return where the forward function of a primitive is written."""
    forward = getattr(made, "forward", None) or getattr(made, "fun", None)
    if isinstance(forward, np.ufunc):
        return None, forward
    return getattr(forward, "__module__", None), getattr(forward, "__qualname__", forward)
