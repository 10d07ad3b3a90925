"""Memory of results, in which what they are computed of is computed too."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg

SHAPE = (160, 150)  # too large to be joined, and too small to be done in blocks


def made(count, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=SHAPE) for _ in range(count)]


def buffers_of(fun, *args):
    plan = fg.jit(fun).lower(*args)._executable.plan
    return sum(size == SHAPE[0] * SHAPE[1] for _, size in plan.slots)


def test_a_chain_needs_no_memory_but_that_of_its_result():
    def fun(x, y):
        return np.tanh(x * y + 1.0) / 2.0 - 3.0

    assert buffers_of(fun, *made(2)) == 0
    assert_array_equal(fg.jit(fun)(*made(2)), fun(*made(2)))


def test_a_product_is_written_where_the_result_will_be():
    def fun(x):
        return (x @ x.T) * 0.5 + 1.0

    x = np.random.default_rng(0).normal(size=(150, 150))
    assert fg.jit(fun).lower(x)._executable.plan.slots == []
    assert_array_equal(fg.jit(fun)(x), fun(x))


def test_what_is_used_afterwards_has_memory_of_its_own():
    def fun(x, y):
        a = x * y
        b = a + 1.0
        return b, np.sum(a * b)

    assert buffers_of(fun, *made(2)) > 0
    for ours, wanted in zip(fg.jit(fun)(*made(2)), fun(*made(2)), strict=True):
        assert_array_equal(ours, wanted)


def test_what_is_looked_at_from_elsewhere_has_memory_of_its_own():
    def fun(x, y):
        a = x * y
        return a[::-1] + a

    assert_array_equal(fg.jit(fun)(*made(2)), fun(*made(2)))


OPERATIONS = (
    lambda x, y, number: x + y,
    lambda x, y, number: x * number,
    lambda x, y, number: np.tanh(x) - y,
    lambda x, y, number: x[::-1] + y,
    lambda x, y, number: np.maximum(x, y),
    lambda x, y, number: (x + number) * np.sum(y, axis=0),
    lambda x, y, number: x.reshape(-1)[::-1].reshape(x.shape) - number,
    lambda x, y, number: np.where(x > y, x, y * number),
    lambda x, y, number: x - np.mean(x * y),
)


def random_function(seed):
    """Make a function of three arrays: operations on earlier results, some of them returned."""
    rng = np.random.default_rng(seed)
    steps = [
        (rng.integers(len(OPERATIONS)), *rng.integers(0, 3 + place, 2), float(rng.normal()))
        for place in range(rng.integers(4, 16))
    ]
    count = 3 + len(steps)
    wanted = [int(place) for place in rng.integers(3, count, rng.integers(1, 4))] + [count - 1]

    def fun(*arrays):
        values = list(arrays)
        for kind, i, j, number in steps:
            values.append(OPERATIONS[kind](values[i], values[j], number))
        return tuple([values[place] for place in wanted])

    return fun


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("donate", [(), (0, 1, 2)])
def test_any_function_gives_what_it_gives_without_jit(seed, donate):
    fun = random_function(seed)
    compiled = fg.jit(fun, donate_argnums=donate)
    owned = fg.jit(lambda *xs: [x * 1.0 + 0.5 for x in xs], donate_argnums=(0, 1, 2))
    for call in range(3):
        given = owned(*made(3, seed + call)) if donate else made(3, seed + call)
        wanted = fun(*[x.copy() for x in given])
        for ours, value in zip(compiled(*given), wanted, strict=True):
            assert_array_equal(ours, value)
