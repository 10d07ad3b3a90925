"""Programs of functions in which examples of a `vmap` go different ways: specialised on which."""

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import SpecialisedError

X = np.array([1.0, 2.0, 3.0])
OTHER = np.array([3.0, 1.0, 8.0])
# The same way as X goes, by other values.
LIKE_X = np.array([1.0625, 2.125, 3.25])


def branch(x):
    return fg.cond(x > 1.5, np.sin, np.cos, x)


def branches(x):
    return fg.switch(x.astype(int) - 1, [np.sin, np.cos, np.exp], x)


def doubled(x):
    return fg.while_loop(lambda c: c < 4.5, lambda c: 2.0 * c, x)


def power(x):
    return fg.fori_loop(0, x.astype(int), lambda i, c: c * x, x)


def fixed(x):
    return fg.fixed_point(lambda z: np.cos(0.3 * z * x), 1.0)


MAPPED = {
    "cond": (branch, [np.cos(1.0625), np.sin(2.125), np.sin(3.25)]),
    "switch": (branches, [np.sin(1.0625), np.cos(2.125), np.exp(3.25)]),
    "while_loop": (doubled, [8.5, 8.5, 6.5]),
    "fori_loop": (power, [1.0625**2, 2.125**3, 3.25**4]),
}


@pytest.mark.parametrize("name", MAPPED)
def test_a_program_is_right_where_examples_go_the_same_ways(name):
    fun, expected = MAPPED[name]
    program = fg.make_program(fg.vmap(fun))(X)
    np.testing.assert_allclose(program(LIKE_X), expected, rtol=1e-14)


@pytest.mark.parametrize("transform", [fg.vmap, lambda f: fg.vmap(fg.grad(f))])
@pytest.mark.parametrize("name", MAPPED)
def test_a_program_refuses_values_by_which_examples_go_other_ways(name, transform):
    program = fg.make_program(transform(MAPPED[name][0]))(X)
    with pytest.raises(SpecialisedError, match="is specialised on"):
        program(OTHER)


def test_a_program_refuses_values_for_which_an_iteration_is_of_another_length():
    program = fg.make_program(fixed)(0.1)
    with pytest.raises(SpecialisedError, match="the end of the iteration"):
        program(1.5)


def test_the_note_says_where_examples_part():
    text = fg.make_program(fg.vmap(branch))(X).as_text(lines=False)
    assert "(the truth value)" in text
