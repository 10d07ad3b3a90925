"""Polynomials with integer coefficients, and expressions that nest derivatives of them.

An expression is evaluated in two ways: by polynomial algebra, in which a derivative inside another
is a matter of exponents, and by transforms of Python functions, in which it is one of keeping the
levels apart.
"""

import collections
import dataclasses

import numpy as np
from hypothesis import strategies as st

import funcgrad as fg

NAMES = "xyzuv"  # one for each level


class Polynomial(collections.Counter):
    """Maps exponents, one for each of `NAMES`, to coefficients."""

    @classmethod
    def constant(cls, value):
        return cls({(0,) * len(NAMES): value})

    @classmethod
    def variable(cls, name):
        return cls({tuple(int(name == other) for other in NAMES): 1})

    def __add__(self, other):
        made = Polynomial(self)
        made.update(other)
        return made

    def __mul__(self, other):
        made = Polynomial()
        for powers, factor in self.items():
            for others, by in other.items():
                made[tuple(p + q for p, q in zip(powers, others, strict=True))] += factor * by
        return made

    def derivative(self, name):
        place, made = NAMES.index(name), Polynomial()
        for powers, factor in self.items():
            if powers[place]:
                lower = [p - (k == place) for k, p in enumerate(powers)]
                made[tuple(lower)] += factor * powers[place]
        return made

    def substitute(self, name, value):
        place, made = NAMES.index(name), Polynomial()
        for powers, factor in self.items():
            rest = tuple(0 if k == place else p for k, p in enumerate(powers))
            term = Polynomial({rest: factor})
            for _ in range(powers[place]):
                term = term * value
            made = made + term
        return made

    def at(self, x):
        """Return the value of a polynomial of the first variable alone, and that of its size."""
        terms = [factor * x ** powers[0] for powers, factor in self.items()]
        return sum(terms), sum(map(abs, terms))


# Expressions


@dataclasses.dataclass(frozen=True)
class Constant:
    value: int

    def exact(self):
        return Polynomial.constant(self.value)

    def run(self, scope):
        return float(self.value)


@dataclasses.dataclass(frozen=True)
class Variable:
    name: str

    def exact(self):
        return Polynomial.variable(self.name)

    def run(self, scope):
        return scope[self.name]


@dataclasses.dataclass(frozen=True)
class Sum:
    left: object
    right: object

    def exact(self):
        return self.left.exact() + self.right.exact()

    def run(self, scope):
        return self.left.run(scope) + self.right.run(scope)


@dataclasses.dataclass(frozen=True)
class Product:
    left: object
    right: object

    def exact(self):
        return self.left.exact() * self.right.exact()

    def run(self, scope):
        return self.left.run(scope) * self.right.run(scope)


@dataclasses.dataclass(frozen=True)
class Derivative:
    """The derivative of `body` in `name` at `where`, times `weight`."""

    kind: str
    name: str
    body: object
    where: object
    weight: object

    def exact(self):
        slope = self.body.exact().derivative(self.name)
        return slope.substitute(self.name, self.where.exact()) * self.weight.exact()

    def run(self, scope):
        def f(value):
            return self.body.run({**scope, self.name: value})

        where, weight = self.where.run(scope), self.weight.run(scope)
        if self.kind == "grad":
            return fg.grad(f)(where) * weight
        if self.kind == "vjp":
            return fg.vjp(lambda t: f(t) + 0.0 * t, where)[1](weight)[0]
        if self.kind == "jvp":
            return fg.jvp(f, (where,), (weight,))[1]
        if self.kind == "linearize":
            return fg.linearize(f, where)[1](weight)
        if self.kind == "checkpoint":
            return fg.grad(fg.checkpoint(f))(where) * weight
        assert self.kind == "jacfwd"
        return fg.jacfwd(f)(where) * weight


@dataclasses.dataclass(frozen=True)
class Mapped:
    """The sum of `body` with `name` at several places, computed by vmap or by scan."""

    kind: str
    name: str
    body: object
    places: tuple

    def exact(self):
        body, total = self.body.exact(), Polynomial()
        for place in self.places:
            total = total + body.substitute(self.name, place.exact())
        return total

    def run(self, scope):
        def f(value):
            return self.body.run({**scope, self.name: value})

        places = np.stack([place.run(scope) for place in self.places])
        if self.kind == "vmap":
            return np.sum(fg.vmap(f)(places))
        return fg.scan(lambda total, place: (total + f(place), None), 0.0, places)[0]


DERIVATIVES = ["grad", "vjp", "jvp", "linearize", "checkpoint", "jacfwd"]


@st.composite
def simple(draw, names):
    """Draw a variable, a sum or a product."""
    first = Variable(draw(st.sampled_from(names)))
    kind = draw(st.sampled_from(["variable", "constant", "sum", "product"]))
    if kind == "variable":
        return first
    if kind == "constant":
        return Constant(draw(st.integers(1, 3)))
    second = draw(st.sampled_from([*map(Variable, names), Constant(2)]))
    return (Sum if kind == "sum" else Product)(first, second)


@st.composite
def nested(draw, depth, names="x"):
    """Draw an expression of the variables in `names`, with `depth` transforms one in another."""
    around = draw(simple(names))
    join = draw(st.sampled_from([Sum, Product]))
    if not depth:
        return join(around, draw(simple(names)))
    name = NAMES[len(names)]
    body = draw(nested(depth - 1, names + name))
    # The variable matters to the body, and not always to the first power.
    body = Product(body, draw(simple(name)))
    kind = draw(st.sampled_from([*DERIVATIVES, "vmap", "vmap", "scan"]))
    if kind in DERIVATIVES:
        inner = Derivative(kind, name, body, draw(simple(names)), draw(simple(names)))
    else:
        inner = Mapped(kind, name, body, tuple(draw(simple(names)) for _ in range(2)))
    return join(around, inner)
