"""Taylor coefficients that are pushed through operations: the trace behind `jet`.

The one idea: along a path ``x(t)`` an operation has the slope ``out' = J(x) x'``, which is what its
forward-mode rule computes, as plain NumPy code. Run on series in the place of numbers, the rule
gives the series of the slope; and term k of `out` is term k - 1 of that, divided by k. So the rules
that are there give all orders, if a series computes its terms when they are asked for, each from
terms that come before: then ``out`` may occur in its own slope, as it does in ``exp' = exp x'``.
That is a recurrence for the terms, and it takes a time that grows with their number squared. The
same operation on the same series is done once, and so the recurrence of sine and cosine is found,
each the slope of the other. J. Karczmarczuk, *Functional Differentiation of Computer Programs*,
Higher-Order and Symbolic Computation 14, 2001, has the idea for scalar functions.

Three kinds of operations have no need of it: what is linear is done term by term, a product is
the convolution of its factors, and a quotient is solved for in the product that it came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np

from funcgrad.core import assign
from funcgrad.core.convert import zeros_like
from funcgrad.core.elementwise import Elementwise
from funcgrad.core.level import Origin
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracer import Tracer, unwrap
from funcgrad.core.zero import spread, zero_wins_among
from funcgrad.transforms.calls import CallingTrace, Leaves, Rules, is_floating
from funcgrad.transforms.forward import factor_of, fit_tangent, push_through, wrap_outputs
from funcgrad.transforms.tape import no_rule

__all__ = ["JetTrace", "Series"]


class Series:
    """The Taylor coefficients of a value along the path, as far as they are known.

    Attributes
    ----------
    terms : list
        The first is the value. None stands for a zero. With several results, a term is a tuple.
    """

    __slots__ = ("terms",)

    def __init__(self, *terms: Any):
        self.terms = list(terms)

    def term(self, k: int) -> Any:
        """Return coefficient `k`."""
        terms = self.terms
        while len(terms) <= k:
            terms.append(self._next(len(terms)))
        return terms[k]

    def _next(self, k: int) -> Any:
        return None  # it ends here


class _Slope(Series):
    """The derivative of a series."""

    __slots__ = ("of",)

    def __init__(self, of: Series):
        first = of.term(1)
        super().__init__(zeros_like(of.terms[0]) if first is None else first)
        self.of = of

    def _next(self, k: int) -> Any:
        term = self.of.term(k + 1)
        return None if term is None else (k + 1) * term


class _Linear(Series):
    """What is done to each term by itself, those of several series together."""

    __slots__ = ("parts", "push")

    def __init__(self, out: Any, push: Callable[[list[Any]], Any], parts: Sequence[Series | None]):
        super().__init__(out)
        self.push = push
        self.parts = parts

    def _next(self, k: int) -> Any:
        found = [None if part is None else part.term(k) for part in self.parts]
        return None if all(term is None for term in found) else self.push(found)


class _Product(Series):
    """A product of series: ``sum(product(x[i], y[k - i], ...))``."""

    __slots__ = ("factors", "product")

    def __init__(self, out: Any, product: Callable[[tuple[Any, ...]], Any], factors: list[Series]):
        super().__init__(out)
        self.product = product
        self.factors = factors

    def _next(self, k: int) -> Any:
        made = None
        for orders in _orders(k, len(self.factors)):
            terms = tuple(
                [factor.term(order) for factor, order in zip(self.factors, orders, strict=True)]
            )
            if not any(term is None for term in terms):
                part = self.product(terms)
                made = part if made is None else made + part
        return None if made is None else spread(made, self.terms[0])


def _orders(k: int, count: int) -> Iterator[tuple[int, ...]]:
    """Yield all tuples of `count` natural numbers with the sum `k`."""
    if count == 1:
        yield (k,)
        return
    for first in range(k + 1):
        for rest in _orders(k - first, count - 1):
            yield (first, *rest)


class _Quotient(Series):
    """A quotient ``q`` of series: that for which the terms of ``q * y`` are those of ``x``."""

    __slots__ = ("divide", "x", "y")

    def __init__(self, out: Any, divide: Callable[[Any, Any], Any], x: Series, y: Series):
        super().__init__(out)
        self.divide = divide
        self.x = x
        self.y = y

    def _next(self, k: int) -> Any:
        rest = self.x.term(k)
        for i in range(1, k + 1):
            q, y = self.terms[k - i], self.y.term(i)
            if q is not None and y is not None:
                rest = -(q * y) if rest is None else rest - q * y
        out = self.terms[0]
        return None if rest is None else spread(self.divide(rest, self.y.terms[0]), out)


class _Integral(Series):
    """What has the slope that a rule gives; the rule is run when the first term is asked for."""

    __slots__ = ("rule", "slope")

    def __init__(self, out: Any, rule: Callable[[Series], Any]):
        super().__init__(out)
        self.rule: Any = rule
        self.slope: Any = None

    def _next(self, k: int) -> Any:
        if self.rule is not None:
            self.slope, self.rule = self.rule(self), None
        if type(self.slope) is tuple:
            return tuple(_divided(slope, k) for slope in self.slope)
        return _divided(self.slope, k)


def _divided(slope: Series | None, k: int) -> Any:
    term = None if slope is None else slope.term(k - 1)
    return None if term is None else term / k


class _Solution(Series):
    """What solves an equation: its next term is the one that makes the residual's zero."""

    __slots__ = ("residual", "solve")

    def __init__(
        self,
        outs: tuple[Any, ...],
        residual: Callable[[list[Any], int], list[Any]],
        solve: Callable[[list[Any]], list[Any]],
    ):
        super().__init__(outs)
        self.residual = residual
        self.solve = solve

    def _next(self, k: int) -> Any:
        dots = self.residual(self.terms, k)
        return None if all(dot is None for dot in dots) else tuple(self.solve(dots))


class _Item(Series):
    """One of several results."""

    __slots__ = ("index", "of")

    def __init__(self, of: Series, index: int):
        super().__init__(of.terms[0][index])
        self.of = of
        self.index = index

    def _next(self, k: int) -> Any:
        terms = self.of.term(k)
        return None if terms is None else terms[self.index]


class JetTrace(CallingTrace):
    """Carries series along, `_extra` of its tracers.

    What the user's function does is computed to the last order at once, so that no chain of series
    waits for another. What a rule does, in the meantime, waits until it is asked for.

    Parameters
    ----------
    origin : Origin
        The call that it belongs to.
    order : int
        The last coefficient.
    """

    __slots__ = ("known", "order")

    def __init__(self, origin: Origin, order: int):
        super().__init__(origin)
        self.order = order
        # While a rule runs: the series that are there already, by the operation that made them.
        self.known: dict[Any, Any] | None = None

    def variable(self, terms: Sequence[Any]) -> Tracer:
        """Make an independent variable of a value and its coefficients."""
        made = Tracer(self, unwrap(terms[0]), Series(*map(unwrap, terms)))
        made._alias = assign.ARGUMENT
        return made

    def unary(self, primitive: Elementwise, fun: Callable[[Any], Any], x: Any) -> Any:
        """Push through an elementwise function of one argument."""
        return self._elementwise(primitive, fun, (x,))

    def binary(self, primitive: Elementwise, fun: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
        """Push through an elementwise function of two arguments."""
        return self._elementwise(primitive, fun, (x, y))

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Push through any other operation."""
        primals, series = self.split(args)
        key = _key(primitive, params, primals, series)
        found = self._found(key)
        if found is not None:
            out = tuple(part.terms[0] for part in found) if type(found) is tuple else found.terms[0]
            return wrap_outputs(self, primitive, args, params, out, found)
        out = primitive.bind(*primals, **params)
        if primitive.reason is not None:
            return out
        jvp_rule = primitive.jvp
        if jvp_rule is None:
            raise no_rule(primitive, "jvp", primals, params)

        def rule(dots: list[Any]) -> Any:
            return fit_tangent(jvp_rule(primals, dots, out, **params), out)

        def slope(made: Series) -> Any:
            values = [self._traced(*pair) for pair in zip(primals, series, strict=True)]
            outs = self._outputs(out, made)
            dots = [None if part is None else self._slope(part) for part in series]
            return self._series(fit_tangent(jvp_rule(values, dots, outs, **params), outs))

        def product(factors: tuple[Any, ...]) -> Any:
            return zero_wins_among(primitive.bind(*factors, **params), bind, factors)

        def bind(*factors: Any) -> Any:
            return primitive.bind(*factors, **params)

        node: Series
        if primitive.linear:
            node = _Linear(out, rule, series)
        elif primitive.multilinear:
            factors = [
                Series(x) if part is None else part for x, part in zip(primals, series, strict=True)
            ]
            node = _Product(out, product, factors)
        else:
            node = _Integral(out, slope)
        extra = self._finished(node, key, (primals, series))
        return wrap_outputs(self, primitive, args, params, out, extra)

    def call(self, rules: Rules, leaves: Leaves) -> tuple[Leaves, Any]:
        """Push through a function that has rules of its own."""
        primals, series = self.split(leaves)
        series = [None if fixed else part for part, fixed in zip(series, rules.fixed, strict=True)]
        outs, treedef = rules.run(primals)
        if all(part is None for part in series):
            return outs, treedef
        outs = list(map(unwrap, outs))
        if rules.equation is not None:
            return self._solved(rules, primals, outs), treedef

        def slope(made: Series) -> Any:
            values = [self._traced(*pair) for pair in zip(primals, series, strict=True)]
            dots = [None if part is None else self._slope(part) for part in series]
            _, _, out_dots = rules.jvp(self, values, dots)
            return tuple(
                self._series(dot if dot is None else spread(dot, out))
                for dot, out in zip(out_dots, outs, strict=True)
            )

        if self.known is None:
            extra: Any = self._called(slope, outs)
        else:
            extra = self._finished(_Integral(tuple(outs), slope), None, None)
        return [
            out if part is None or not is_floating(out) else Tracer(self, out, part)
            for out, part in zip(outs, extra, strict=True)
        ], treedef

    def _solved(self, rules: Rules, primals: Leaves, outs: Leaves) -> Leaves:
        """Return the solution of an equation, term by term.

        As the residual of ``x0 + ... + x[k-1] t**(k-1)`` is zero up to order k - 1, and another
        term adds ``J(x0) x[k]`` to that of order k, each takes one solution with the same J.
        """
        solve = rules.linear(self, primals, ())[2]

        def residual(terms: list[Any], k: int) -> list[Any]:
            known, order = self.known, self.order
            self.known, self.order = None, k
            try:
                paths = [
                    [None if term is None else term[place] for term in terms]
                    for place in range(len(outs))
                ]
                made = rules.equation([Tracer(self, path[0], Series(*path)) for path in paths])  # type: ignore[misc]
            finally:
                self.known, self.order = known, order
            found = [out._extra if self._is_own(out) else None for out in made]
            return [None if series is None else series.term(k) for series in found]

        extra = self._finished(_Solution(tuple(outs), residual, solve), None, None)
        return [
            out if part is None else Tracer(self, out, part)
            for out, part in zip(outs, extra, strict=True)
        ]

    def _is_own(self, value: Any) -> bool:
        return type(value) is Tracer and value._trace is self

    def _called(self, slope: Callable[[Any], Any], outs: Leaves) -> list[Series | None]:
        """Return the series of the results of a function with rules.

        Such a rule is code of the user's, of any length, and does not see the results. It is run as
        the function is: at once, to one order less.
        """
        if not self.order:
            return [None for _ in outs]
        self.order -= 1
        try:
            with np.errstate(all="ignore"):
                slopes = slope(None)
        finally:
            self.order += 1
        return [
            self._ended(Series(out, *(_divided(part, k) for k in range(1, self.order + 1))))
            for out, part in zip(outs, slopes, strict=True)
        ]

    def _elementwise(self, primitive: Elementwise, fun: Callable[..., Any], args: Any) -> Any:
        primals, series = self.split(args)
        key = _key(primitive, {"": fun}, primals, series)
        found = self._found(key)
        if found is not None:
            return Tracer(self, found.terms[0], found)
        out = fun(*primals)
        if primitive.discrete:
            return out
        x, y = primals if len(primals) == 2 else (primals[0], None)
        keeps = (primitive.keep0, primitive.keep1)
        # What is kept, of each argument that varies, is another one, which does not.
        others = [(None,) if y is None or series[1] is not None else (None, "y")]
        others.append((None,) if series[0] is not None else (None, "x"))
        node: Series
        if all(part is None or keeps[i] in others[i] for i, part in enumerate(series)):
            node = self._linear(primitive, series, x, y, out, primals)
        elif primitive.ufunc is np.multiply:
            node = _Product(out, _Times(primitive), series)
        elif primitive.ufunc is np.true_divide:
            x_series = Series(x) if series[0] is None else series[0]
            node = _Quotient(out, primitive.push0, x_series, series[1])
        else:

            def slope(made: Series) -> Any:
                pair = [self._traced(*both) for both in zip(primals, series, strict=True)]
                x, y = pair if len(pair) == 2 else (pair[0], None)
                traced = self._traced(out, made)
                dots = [
                    push_through(primitive, index, self._slope(part), x, y, traced, pair)
                    for index, part in enumerate(series)
                    if part is not None
                ]
                dots = [dot for dot in dots if dot is not None]
                return self._series(reduce(np.add, dots)) if dots else None

            node = _Integral(out, slope)
        extra = self._finished(node, key, (primals, series))
        return out if extra is None else Tracer(self, out, extra)

    def _linear(
        self, primitive: Elementwise, series: Any, x: Any, y: Any, out: Any, args: Any
    ) -> Series:
        products = [
            None if part is None else factor_of(primitive, index, x, y, out, args)
            for index, part in enumerate(series)
        ]

        def push(dots: list[Any]) -> Any:
            found = [
                spread(product[0](dot, product[1]), out)
                for dot, product in zip(dots, products, strict=True)
                if dot is not None and product is not None
            ]
            return reduce(np.add, found) if found else None

        return _Linear(out, push, series)

    def split(self, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the values and the series of arguments, None for the series of a constant."""
        if self.ended:
            self.escaped()
        primals, series = [], []
        for arg in args:
            own = type(arg) is Tracer and arg._trace is self
            primals.append(arg._value if own else unwrap(arg))
            series.append(arg._extra if own else None)
        return primals, series

    def _traced(self, value: Any, series: Series | None) -> Any:
        return value if series is None else Tracer(self, value, series)

    def _outputs(self, out: Any, made: Series) -> Any:
        if type(out) is not tuple:
            return self._traced(out, made)
        return tuple(self._traced(part, _Item(made, index)) for index, part in enumerate(out))

    def _slope(self, series: Series) -> Any:
        slope = _Slope(series)
        return Tracer(self, slope.terms[0], slope)

    def _series(self, value: Any) -> Any:
        """Return the series of what a rule returned."""
        if type(value) is tuple:
            return tuple(self._series(part) for part in value)
        if value is None:
            return None
        own = type(value) is Tracer and value._trace is self
        return value._extra if own else Series(value)

    def _found(self, key: Any) -> Any:
        """Return the series that the same operation has made already, or None."""
        return None if self.known is None or key not in self.known else self.known[key][0]

    def _finished(self, node: Series, key: Any, args: Any) -> Any:
        """Return what the tracers of the results carry: None for a constant."""
        value = node.terms[0]
        parts: Any = node
        if type(value) is tuple:
            parts = tuple(_Item(node, index) for index in range(len(value)))
        # The ids in the key are those of `args`, which are kept alive with it.
        if self.known is not None:
            if key is not None:
                self.known[key] = (parts, args)
            return parts
        self.known = {} if key is None else {key: (parts, args)}
        try:
            with np.errstate(all="ignore"):
                node.term(self.order)
        finally:
            self.known = None
        return tuple(map(self._ended, parts)) if type(parts) is tuple else self._ended(parts)

    def _ended(self, series: Series) -> Series | None:
        """Return a series that keeps nothing but its terms; None for a constant."""
        terms = [series.term(k) for k in range(self.order + 1)]
        return None if all(term is None for term in terms[1:]) else Series(*terms)


class _Times:
    """The product of two terms, in which zero wins."""

    __slots__ = ("primitive",)

    def __init__(self, primitive: Elementwise):
        self.primitive = primitive

    def __call__(self, terms: tuple[Any, ...]) -> Any:
        return self.primitive.push0(*terms)


def _key(primitive: Any, params: dict[str, Any], primals: list[Any], series: list[Any]) -> Any:
    """Return what is equal for two calls that do the same; None if that cannot be known."""
    ids = [id(x if part is None else part) for x, part in zip(primals, series, strict=True)]
    key = (primitive, *ids, *params.items())
    try:
        hash(key)
    except TypeError:
        return None
    return key
