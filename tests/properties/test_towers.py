"""Towers of transforms over random programs: every pair, and triples, against plain ways.

An operator makes one scalar function of a vector into another: its derivative in a direction (in
every mode), a sum over moved arguments (by `vmap`), the function itself (by `checkpoint`). Each has
a plain way to compute the same: forward mode for derivatives, a loop for `vmap`, nothing for
`checkpoint`. What the one way gives, the other must, in any order of operators.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import assert_close, programs

import funcgrad as fg

SHIFTS = np.array([0.0, 0.11, -0.07])
WEIGHTS = np.array([1.0, -0.5, 0.75])


def slope(f, v):
    return lambda x: fg.jvp(f, (x,), (v,))[1]


def by_grad(f, v):
    return lambda x: fg.grad(f)(x) @ v


def by_vjp(f, v):
    return lambda x: np.sum(fg.vjp(f, x)[1](1.0)[0] * v)


def by_linearize(f, v):
    return lambda x: fg.linearize(f, x)[1](v)


def by_jacfwd(f, v):
    return lambda x: fg.jacfwd(f)(x) @ v


def by_jacrev(f, v):
    return lambda x: fg.jacrev(lambda x: f(x) * np.ones(2))(x)[1] @ v


def by_transpose(f, v):
    def derivative(x):
        _, pushforward = fg.linearize(f, x)
        return fg.linear_transpose(pushforward, v)(1.0)[0] @ v

    return derivative


def by_vmap(f, v):
    return lambda x: fg.vmap(lambda shift: f(x + shift * v))(SHIFTS) @ WEIGHTS


def by_vmap_of_arguments(f, v):
    return lambda x: fg.vmap(f, in_axes=1)(np.stack([x + s * v for s in SHIFTS], 1)) @ WEIGHTS


def by_map(f, v):
    return lambda x: fg.map(lambda shift: f(x + shift * v), SHIFTS, batch_size=2) @ WEIGHTS


def moved(f, v):
    return lambda x: sum(w * f(x + s * v) for s, w in zip(SHIFTS, WEIGHTS, strict=True))


def by_checkpoint(f, v):
    return fg.checkpoint(f)


def same(f, v):
    return f


def by_scan(f, v):
    def total(x):
        def step(carry, parts):
            shift, weight = parts
            return carry + weight * f(x + shift * v), None

        return fg.scan(step, 0.0, (SHIFTS, WEIGHTS))[0]

    return total


def by_cond(f, v):
    return lambda x: fg.cond(np.sum(x) < 100.0, f, lambda x: np.sum(x), x)


def by_custom_vjp(f, v):
    made = fg.custom_vjp(f)
    made.defvjp(lambda x: (f(x), x), lambda x, bar: (bar * fg.grad(f)(x),))
    return made


def by_custom_jvp(f, v):
    made = fg.custom_jvp(f)
    made.defjvp(lambda xs, dots: (f(*xs), fg.jvp(f, xs, dots)[1]))
    return made


# Operator -> the plain way to do the same.
PLAIN = {
    slope: slope,
    by_grad: slope,
    by_vjp: slope,
    by_linearize: slope,
    by_jacfwd: slope,
    by_jacrev: slope,
    by_transpose: slope,
    by_vmap: moved,
    by_vmap_of_arguments: moved,
    by_map: moved,
    by_scan: moved,
    by_checkpoint: same,
    by_cond: same,
    by_custom_vjp: same,
    by_custom_jvp: same,
}


def build(operators, program):
    f = program.scalar
    for number, operator in enumerate(operators):
        f = operator(f, program.direction(number))
    return f


def check(program, operators, rtol):
    x = program.vector()
    expected = build([PLAIN[operator] for operator in operators], program)(x)
    assert_close(build(operators, program)(x), expected, rtol)


def name_of(operators):
    return "-".join(operator.__name__ for operator in operators)


@pytest.mark.parametrize("pair", list(itertools.product(PLAIN, repeat=2)), ids=name_of)
def test_pair_on_a_fixed_program(pair):
    """On a function of assignment, branches, linear algebra, a loop and an inner gradient."""
    check(Fixed(), pair, 1e-11)


class Fixed:
    """A program that is not drawn."""

    def scalar(self, x):
        y = np.copy(x)
        y[0] = np.sin(x[1]) * x[2]
        y[1:] *= np.tanh(x[:2])
        z = np.where(y > 0.0, y * y, np.exp(y))
        a = np.outer(z, x) + 3.0 * np.eye(3)
        carry, out = fg.scan(lambda c, row: (np.sin(c) + row, c * row), z, a)
        inner = fg.grad(lambda t: np.sum(np.cos(t) * x))(z)
        return np.sum(np.linalg.solve(a, carry)) + np.sum(out[::2] * inner)

    def vector(self):
        return np.array([0.4, -0.8, 0.7])

    def direction(self, number):
        return np.array([[0.3, 0.5, -0.2], [0.9, -0.4, 0.1], [-0.6, 0.2, 0.8]])[number % 3]


triples = st.lists(st.sampled_from(list(PLAIN)), min_size=3, max_size=3)


@given(
    programs(kinked=True, most=6), st.lists(st.sampled_from(list(PLAIN)), min_size=2, max_size=2)
)
def test_pair_on_a_random_program(program, pair):
    check(program, pair, 1e-9)


@given(programs(kinked=True, most=5), triples)
def test_triple_on_a_random_program(program, triple):
    check(program, triple, 1e-8)


@given(st.lists(st.sampled_from(list(PLAIN)), min_size=4, max_size=4))
def test_four_levels_on_a_fixed_program(operators):
    check(Fixed(), operators, 1e-10)
