"""Derivatives of order 5: right in every mode, at a cost that grows as it must and no faster."""

import functools
import itertools
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import funcgrad as fg
from funcgrad.scipy import special


def by_grad(f):
    return fg.grad(f)


def by_jvp(f):
    return lambda x: fg.jvp(f, (x,), (1.0,))[1]


def by_linearize(f):
    return lambda x: fg.linearize(f, x)[1](1.0)


def by_vjp(f):
    return lambda x: fg.vjp(f, x)[1](1.0)[0]


def by_jacfwd(f):
    return fg.jacfwd(f)


def by_checkpoint(f):
    return fg.grad(fg.checkpoint(f))


MODES = [by_grad, by_jvp, by_linearize, by_vjp, by_jacfwd, by_checkpoint]


def self_power(x):
    return x**x


# Function, place, and the derivatives of orders 1 to 5 there, as mpmath computes them.
CASES = {
    "exp of sin": (
        lambda x: np.exp(np.sin(x)),
        0.7,
        [
            1.4566392950360747,
            -0.11281116823489033,
            -3.419707631274328,
            -4.5128990156576877,
            11.088395941029029,
        ],
    ),
    "tanh": (
        np.tanh,
        0.4,
        [
            0.85563878608117768,
            -0.65019813767372767,
            -0.97015124915411732,
            4.0752243920817787,
            1.0074920302673313,
        ],
    ),
    "bell": (
        lambda x: 1.0 / (1.0 + x * x),
        0.6,
        [
            -0.64878892733564014,
            0.063606757581925444,
            2.6939332622933157,
            -10.069235845581633,
            4.8064336967819707,
        ],
    ),
    "root": (
        lambda x: np.sqrt(1.0 + x**3),
        0.8,
        [
            0.78072005835882661,
            1.456104870748605,
            -0.33378290476886736,
            -4.3251567139040431,
            17.683237873350393,
        ],
    ),
    "log of cos": (
        lambda x: np.log(2.0 + np.cos(x)),
        1.1,
        [
            -0.36322496285314884,
            -0.31680229475856803,
            0.065934589131126674,
            0.2129479150953356,
            0.54673434231052426,
        ],
    ),
    "self power": (
        self_power,
        1.3,
        [
            1.7754606438173387,
            3.3231678183679807,
            6.0943033287285556,
            13.490717163551948,
            27.494071883628619,
        ],
    ),
    "erf": (
        special.erf,
        0.5,
        [
            0.87878257893544479,
            -0.87878257893544479,
            -0.87878257893544479,
            4.393912894677224,
            0.87878257893544479,
        ],
    ),
    "log of gamma": (
        special.gammaln,
        2.5,
        [
            0.70315664064524319,
            0.49035775610023486,
            -0.2362040516417274,
            0.22390584881725205,
            -0.31375599950673136,
        ],
    ),
}


def derivatives(f, kinds):
    """Yield the derivatives of orders 1, 2, ... by the modes given, innermost first."""
    for kind in kinds:
        f = kind(f)
        yield f


def name_of(kind):
    return kind.__name__


@pytest.mark.parametrize("kind", MODES, ids=name_of)
@pytest.mark.parametrize("name", CASES)
def test_five_orders_in_one_mode(name, kind):
    f, x, exact = CASES[name]
    found = [derivative(x) for derivative in derivatives(f, [kind] * 5)]
    assert_allclose(found, exact, rtol=1e-11)


@pytest.mark.parametrize("start", range(len(MODES)))
@pytest.mark.parametrize("name", CASES)
def test_five_orders_in_mixed_modes(name, start):
    f, x, exact = CASES[name]
    kinds = [MODES[(start + k) % len(MODES)] for k in range(5)]
    found = [derivative(x) for derivative in derivatives(f, kinds)]
    assert_allclose(found, exact, rtol=1e-11)


@pytest.mark.parametrize("kind", MODES, ids=name_of)
@pytest.mark.parametrize("name", CASES)
def test_fifth_order_under_vmap(name, kind):
    f, x, exact = CASES[name]
    *_, fifth = derivatives(f, [kind] * 5)
    assert_allclose(fg.vmap(fifth)(np.array([x, x]))[1], exact[4], rtol=1e-11)


@pytest.mark.parametrize("name", CASES)
def test_fifth_order_through_a_loop_and_a_condition(name):
    f, x, exact = CASES[name]

    def in_a_loop(x):
        both = fg.fori_loop(0, 2, lambda i, c: (c[1], fg.cond(i < 1, f, np.sin, x)), (x, x))
        return both[0]

    *_, fifth = derivatives(in_a_loop, [by_jvp, by_grad, by_jvp, by_grad, by_jvp])
    assert_allclose(fifth(x), exact[4], rtol=1e-11)


def test_fifth_derivative_of_a_vector_function_in_five_directions():
    """Of the product of five numbers: 1 for all directions different, else 0."""
    x = np.array([0.5, 2.0, -1.0, 3.0, 1.5])

    def along(k):
        unit = np.eye(5)[k]
        return lambda f: lambda x: fg.jvp(f, (x,), (unit,))[1]

    for places, expected in (
        ([0, 1, 2, 3, 4], 1.0),
        ([4, 2, 0, 1, 3], 1.0),
        ([0, 1, 2, 3, 0], 0.0),
    ):
        kinds = [along(k) for k in places]
        assert functools.reduce(lambda f, kind: kind(f), kinds, np.prod)(x) == expected
    tensor = np.prod
    for kind in (fg.jacfwd, fg.grad, fg.jacfwd, fg.jacrev, fg.jacfwd)[1:]:
        tensor = kind(tensor)
    fourth = tensor(x)
    assert fourth.shape == (5, 5, 5, 5)
    assert fourth[0, 1, 2, 3] == fourth[3, 1, 0, 2] == 1.5


# Cost, in calls of Python functions: that does not depend on the machine.


def calls(f, x):
    """Count the function calls that it takes to compute ``f(x)``."""
    f(x)  # so that nothing is loaded or cached for the first time
    count = 0

    def note(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        f(x)
    finally:
        sys.setprofile(before)
    return count


def chain(length):
    def f(x):
        for _ in range(length):
            x = np.sin(x * 1.1)
        return x

    return f


@pytest.mark.parametrize("kind", MODES, ids=name_of)
def test_each_order_costs_about_three_times_the_one_before(kind):
    """A product with its tangent is three products: 3**n, and more where all is done twice."""
    costs = [calls(f, 0.3) for f in derivatives(chain(10), [kind] * 5)]
    ratios = [after / before for before, after in itertools.pairwise(costs)]
    assert max(ratios[1:]) < (6.0 if kind is by_checkpoint else 4.0)


@pytest.mark.parametrize("kind", MODES, ids=name_of)
def test_fifth_order_costs_twice_as_much_for_twice_the_program(kind):
    *_, short = derivatives(chain(5), [kind] * 5)
    *_, long = derivatives(chain(10), [kind] * 5)
    assert calls(long, 0.3) < 2.2 * calls(short, 0.3)
