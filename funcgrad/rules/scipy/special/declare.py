"""SciPy's ufuncs as primitives, whatever the number of their arguments and results.

One or two arguments and one result, with a derivative in each argument: that is the elementwise
kind of the core (`funcgrad.core.elementwise`). All others are `Factors`: each result's derivative
in each argument is a factor for each element, and one function ``partial(t, ...)`` gives its
product with a tangent or cotangent. Its parameters after `t` say what it needs: arguments by their
names, and `out`, the result, or the tuple of results.

An argument for which no derivative is known has no partial; asking for that derivative is an error
that names the argument, never a silent zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.core.batch import align
from funcgrad.core.foreign import argument
from funcgrad.core.level import top_trace
from funcgrad.core.primitive import FUNCTIONS, Primitive, register, store
from funcgrad.core.zero import dtype_of, guarded
from funcgrad.errors import MissingRuleError, user_line

__all__ = ["Factors", "factors", "missing_partial", "narrow", "where_defined"]

Rule = Callable[..., Any]


def factors(ufunc: np.ufunc, arguments: str, *, name: str | None = None) -> Factors:
    """Declare the primitive of any other ufunc.

    Parameters
    ----------
    ufunc : numpy.ufunc
    arguments : str
        The names of its arguments, separated by blanks.
    name : str, optional
        By default that of the ufunc.
    """
    made = Factors(ufunc, tuple(arguments.split()), name=name or ufunc.__name__)
    register(made, (ufunc,), FUNCTIONS)
    return made


class Factors(Primitive):
    """A ufunc whose derivatives are elementwise factors.

    Attributes
    ----------
    ufunc : numpy.ufunc
    arguments : tuple of str
        The names of its arguments.
    products : dict
        ``(argument, result) -> (product, names)``, where ``product(t, kept)`` multiplies with the
        derivative, and `names` are those of what is kept.
    why : dict
        Argument -> why there is no derivative in it.
    """

    __slots__ = ("arguments", "products", "ufunc", "why")

    def __init__(self, ufunc: np.ufunc, arguments: tuple[str, ...], *, name: str):
        super().__init__(ufunc, name=name)
        assert len(arguments) == ufunc.nin
        self.ufunc = ufunc
        self.arguments = arguments
        self.products: dict[tuple[int, int], tuple[Rule, tuple[str, ...]]] = {}
        self.why: dict[int, str] = {}
        self.jvp = self._jvp
        self.vjp = self._vjp
        self.batch = self._batch

    def __call__(self, *args: Any, out: Any = None, where: Any = True, **kwargs: Any) -> Any:
        """Call the ufunc; on traced values without keywords but `out` and `where`."""
        count = self.ufunc.nin
        if len(args) > count and out is None:
            out = args[count:]
        args = args[:count]
        if top_trace(args) is None:  # only `out` is traced, or nothing
            result = self.ufunc(*args, **kwargs)
        elif kwargs:
            raise TypeError(f"{self.name}() of traced values takes no {', '.join(kwargs)}=")
        else:
            result = self.bind(
                *[np.asanyarray(a) if isinstance(a, list | tuple) else argument(a) for a in args]
            )
        if where is not True:
            parts = result if isinstance(result, tuple) else (result,)
            before = out if isinstance(out, tuple) else (out,) * len(parts)
            parts = tuple(
                [
                    np.where(where, x, 0 if y is None else y)
                    for x, y in zip(parts, before, strict=True)
                ]
            )
            result = parts if isinstance(result, tuple) else parts[0]
        return result if out is None else store(result, out, stretch=True)

    def def_partial(self, index: int = 0, result: int = 0) -> Callable[[Rule], Rule]:
        """Declare the product of a (co)tangent with the derivative of a result in an argument."""

        def declare_partial(rule: Rule) -> Rule:
            code = rule.__code__
            names = code.co_varnames[1 : code.co_argcount]

            def product(t: Any, kept: Any) -> Any:
                return rule(t, *kept)

            self.products[index, result] = (guarded(product), names)
            return rule

        return declare_partial

    def no_partial(self, index: int, why: str) -> None:
        """Declare why there is no derivative in argument `index`; asking for it is an error."""
        self.why[index] = why

    def _kept(self, names: tuple[str, ...], primals: Any, out: Any) -> tuple[Any, ...]:
        return tuple(
            [out if name == "out" else primals[self.arguments.index(name)] for name in names]
        )

    def _has(self, index: int) -> bool:
        return any(own == index for own, _ in self.products)

    def _missing(self, index: int) -> MissingRuleError:
        return missing_partial(self.name, self.arguments[index], self.why.get(index))

    def _jvp(self, primals: Any, tangents: Any, out: Any) -> Any:
        several = self.ufunc.nout > 1
        dots: list[Any] = [None] * self.ufunc.nout
        for index, t in enumerate(tangents):
            if t is None:
                continue
            if not self._has(index):
                raise self._missing(index)
            for result in range(self.ufunc.nout):
                if (index, result) in self.products:
                    product, names = self.products[index, result]
                    part = product(t, self._kept(names, primals, out))
                    dots[result] = part if dots[result] is None else dots[result] + part
        return tuple(dots) if several else dots[0]

    def _vjp(self, primals: Any, out: Any) -> Any:
        return tuple([self._pullback(i, primals, out) for i in range(self.ufunc.nin)])

    def _pullback(self, index: int, primals: Any, out: Any) -> Any:
        if not self._has(index):

            def missing_pullback(out_bar: Any) -> Any:
                raise self._missing(index)

            return missing_pullback
        several = self.ufunc.nout > 1
        rules = []
        for result in range(self.ufunc.nout):
            if (index, result) in self.products:
                product, names = self.products[index, result]
                rules.append((product, result, self._kept(names, primals, out)))

        def factors_pullback(out_bar: Any) -> Any:
            total = None
            for product, result, kept in rules:
                bar = out_bar[result] if several else out_bar
                if bar is not None:
                    part = product(bar, kept)
                    total = part if total is None else total + part
            return total

        return factors_pullback

    def _batch(self, args: Any, batched: Any) -> Any:
        return self.bind(*align(args, batched))


def missing_partial(name: str, parameter: str, why: str | None = None) -> MissingRuleError:
    """Make the error for a derivative that is not known."""
    return MissingRuleError(
        f"{name} has no derivative in its argument {parameter!r}" + (f": {why}" if why else ""),
        where=user_line(),
        fix=f"compute {parameter!r} outside of what is differentiated, or pass "
        f"funcgrad.stop_gradient({parameter})",
    )


def narrow(x: Any, like: Any) -> Any:
    """Return a float64 factor in single precision, if the argument that it belongs to is."""
    dtype = dtype_of(like)
    if dtype.kind not in "fc" or dtype.itemsize >= (16 if dtype.kind == "c" else 8):
        return x
    kind = dtype_of(x).kind
    return x.astype(np.complex64 if kind == "c" else np.float32)


def where_defined(out: Any, factor: Any) -> Any:
    """Return a factor, NaN where the function is: a formula may go on where SciPy does not."""
    return np.where(np.isnan(out), np.nan, factor)
