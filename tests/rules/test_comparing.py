"""Kinks, ties and steps: what the conventions say, in both modes; and what is plain under both."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.core.level import TracerBase

nan, inf = np.nan, np.inf


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


def both(f, *primals):
    """Return the derivatives in each argument by reverse mode, after checking forward mode."""
    out, pullback = fg.vjp(f, *primals)
    pulled = pullback(np.ones_like(out) if isinstance(out, np.ndarray) else 1.0)
    for index, x in enumerate(primals):
        dots = [None] * len(primals)
        dots[index] = np.ones_like(x) if isinstance(x, np.ndarray) else 1.0
        np.testing.assert_array_equal(fg.jvp(f, primals, dots)[1], pulled[index])
    return pulled


# Kinks


@pytest.mark.parametrize("f", [np.abs, np.fabs, abs, lambda x: np.copysign(x, -1.0)])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_the_slope_of_an_absolute_value_at_zero_is_zero(f, zero):
    assert both(f, zero) == (0.0,)


def test_abs_of_complex_zero_has_gradient_zero():
    assert fg.grad(np.abs)(0j) == 0
    assert fg.jvp(np.abs, (0j,), (1 + 1j,))[1] == 0


def test_gradient_of_the_modulus():
    """It is x/r - i y/r."""
    assert fg.grad(np.abs)(3 - 4j) == pytest.approx(0.6 + 0.8j, rel=1e-15)


@pytest.mark.parametrize(
    ("y", "expected"), [(1.0, [-1, 1]), (-1.0, [1, -1]), (0.0, [-1, 1]), (-0.0, [1, -1])]
)
def test_copysign_follows_the_sign_bit(y, expected):
    (x_bar, y_bar) = both(np.copysign, np.array([-2.0, 3.0]), np.full(2, y))
    np.testing.assert_array_equal(x_bar, expected)
    np.testing.assert_array_equal(y_bar, [0, 0])


# Ties


@pytest.mark.parametrize("f", [np.maximum, np.minimum, np.fmax, np.fmin])
@pytest.mark.parametrize(("x", "y"), [(2.0, 2.0), (0.0, -0.0), (inf, inf), (-inf, -inf)])
def test_equal_arguments_share(f, x, y):
    assert both(f, x, y) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("f", "expected"),
    [(np.maximum, (0, 1)), (np.minimum, (1, 0)), (np.fmax, (0, 1)), (np.fmin, (1, 0))],
)
def test_the_extreme_takes_it_all(f, expected):
    assert both(f, 1.0, 2.0) == expected


def test_rectifier_by_maximum_is_one_half_at_the_kink():
    (x_bar,) = both(lambda x: np.maximum(x, 0), np.array([-1.0, 0.0, 2.0]))
    np.testing.assert_array_equal(x_bar, [0, 0.5, 1])


@pytest.mark.parametrize("f", [np.fmax, np.fmin])
def test_a_nan_that_was_passed_over_gets_nothing(f):
    assert both(f, nan, 1.0) == (0.0, 1.0)
    assert both(f, 1.0, nan) == (1.0, 0.0)


@pytest.mark.parametrize("f", [np.maximum, np.minimum])
def test_a_nan_that_was_taken_is_not_hidden(f):
    assert fg.vjp(f, nan, 1.0)[1](1.0)[0] == 1.0
    assert fg.vjp(f, 1.0, nan)[1](1.0)[1] == 1.0


@pytest.mark.parametrize(("f", "taken"), [(np.maximum, 1), (np.minimum, 0), (np.fmax, 1)])
def test_an_infinite_cotangent_makes_no_nan_in_the_argument_not_taken(f, taken):
    pulled = fg.vjp(f, 1.0, 2.0)[1](inf)
    assert pulled[taken] == inf
    assert pulled[1 - taken] == 0.0


# Steps


@pytest.mark.parametrize(
    ("f", "x", "y", "slope"),
    [
        (np.remainder, 5.5, 2.0, -2.0),
        (np.remainder, -5.5, 2.0, 3.0),
        (np.remainder, 4.0, 2.0, -2.0),
        (np.remainder, 1.0, 0.1, -9.0),  # as 1.0 % 0.1 is 0.0999...
        (lambda x, y: x % y, -5.0, 3.0, 2.0),
        (np.fmod, 5.5, 2.0, -2.0),
        (np.fmod, -5.5, 2.0, 2.0),
        (np.fmod, 4.0, 2.0, -2.0),
        (np.fmod, 1.0, 0.1, -9.0),
    ],
)
def test_remainders_count_the_multiples_that_were_taken_away(f, x, y, slope):
    assert both(f, x, y) == (1.0, slope)


def test_heaviside_passes_its_value_at_the_step():
    (x_bar, half_bar) = both(np.heaviside, np.array([-1.0, 0.0, 1.0]), np.full(3, 0.5))
    np.testing.assert_array_equal(x_bar, [0, 0, 0])
    np.testing.assert_array_equal(half_bar, [0, 1, 0])


# Sign


def test_the_sign_of_a_real_number_is_plain():
    seen = []

    def f(x):
        seen.append(np.sign(x))
        return x * seen[-1]

    np.testing.assert_array_equal(
        fg.vjp(f, np.array([-2.0, 0.0, 3.0]))[1](np.ones(3))[0], [-1, 0, 1]
    )
    assert type(seen[0]) is np.ndarray


def test_the_sign_of_a_complex_number_turns_with_it():
    """Along the number itself the sign stays, across it turns by the angle."""
    z = np.complex128(3 + 4j)
    assert fg.jvp(np.sign, (z,), (z,))[1] == pytest.approx(0, abs=1e-16)
    assert fg.jvp(np.sign, (z,), (1j * z,))[1] == pytest.approx(1j * (0.6 + 0.8j), rel=1e-15)


def test_sign_takes_the_keywords_of_a_ufunc():
    def f(x):
        return x * np.sign(x, where=np.array([True, False]), out=np.zeros_like(x))

    np.testing.assert_array_equal(fg.vjp(f, np.array([-2.0, -2.0]))[1](np.ones(2))[0], [-1, 0])


# Plain results


@pytest.mark.parametrize(
    "f",
    [
        np.floor,
        np.ceil,
        np.trunc,
        np.rint,
        np.fix,
        np.round,
        lambda x: np.around(x, 1),
        lambda x: x.round(2),
        lambda x: round(x[0], 1),
        lambda x: x // 2,
        np.isnan,
        np.signbit,
        lambda x: x > 0,
        lambda x: np.logical_and(x, x),
        np.spacing,
    ],
)
def test_discrete_results_are_plain_and_add_nothing(f):
    seen = []

    def g(x):
        seen.append(f(x))
        return np.sum(x * seen[-1])

    x = np.array([1.3, -2.6])
    np.testing.assert_array_equal(fg.grad(g)(x), np.broadcast_to(f(x), 2) * 1.0)
    assert not isinstance(seen[0], TracerBase)


@pytest.mark.parametrize(
    "f", [np.bitwise_and, np.bitwise_or, np.left_shift, np.gcd, np.lcm, np.bitwise_xor]
)
def test_functions_of_integers_refuse_floats_as_numpy_does(f):
    with pytest.raises(TypeError, match=r"not supported for the input types|contain a loop"):
        fg.grad(lambda x: x * f(x, 1))(2.0)


def test_every_ufunc_of_numpy_is_answered_for():
    from funcgrad.core.primitive import FUNCTIONS, UFUNCS

    ufuncs = {u for u in vars(np).values() if isinstance(u, np.ufunc)}
    assert {u.__name__ for u in ufuncs if u not in UFUNCS and u not in FUNCTIONS} == set()


def test_the_next_float_moves_with_its_argument():
    np.testing.assert_array_equal(
        fg.grad(lambda x, y: 3 * np.nextafter(x, y), argnums=(0, 1))(1.0, 2.0), (3.0, 0.0)
    )
    assert fg.jvp(np.nextafter, (1.0, 2.0), (5.0, 7.0))[1] == 5.0
