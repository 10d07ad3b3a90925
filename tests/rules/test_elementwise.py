"""Elementwise functions where samples say nothing: poles, tails, branches, zeros, Python numbers.

The right values are limits, closed forms or numbers from an independent source, never the
formula of the rule.
"""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import funcgrad as fg

inf = np.inf


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


def forward(f):
    return lambda x: fg.jvp(f, (x,), (1.0,))[1]


def reverse(f):
    return lambda x: fg.grad(f)(x)


def derivatives(f, x, order=1):
    """Return the derivative by all nestings of the modes, which must be the same number."""
    found = []
    for modes in itertools.product((forward, reverse), repeat=order):
        g = f
        for mode in modes:
            g = mode(g)
        found.append(float(g(x)))
    return found


def assert_derivative(f, x, expected, order=1, rtol=1e-14):
    np.testing.assert_allclose(derivatives(f, x, order), expected, rtol=rtol, atol=0)


# Zero wins: the branch that was not taken


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (lambda x: np.where(x < 2, x * x, np.sqrt(x - 2)), 1.0, 2.0),
        (lambda x: np.sqrt(np.where(x > 0, x, 0.0)), -4.0, 0.0),
        (lambda x: np.where(x > 0, np.log(x), 0.0), -4.0, 0.0),
        (lambda x: np.where(x > 0, np.log(x), 0.0), 0.0, 0.0),
        (lambda x: np.where(x != 0, np.divide(1.0, x), 0.0), 0.0, 0.0),
        (lambda x: np.where(x > 0, x**0.5, 0.0), 0.0, 0.0),
        (lambda x: np.arccos(np.clip(x, -1, 1)), 3.0, 0.0),
        (lambda x: np.arcsin(np.clip(x, -1, 1)), -3.0, 0.0),
        (lambda x: np.arctanh(np.clip(x, -1, 1)), 3.0, 0.0),
        (lambda x: 0 * np.cbrt(x), 0.0, 0.0),
    ],
)
@pytest.mark.parametrize("order", [1, 2])
def test_a_branch_not_taken_makes_no_nan(f, x, expected, order):
    assert_derivative(f, x, expected, order) if order == 1 else assert_finite(f, x)


def assert_finite(f, x):
    assert np.all(np.isfinite(derivatives(f, x, order=2)))


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (np.log, 0.0),
        (np.sqrt, 0.0),
        (np.cbrt, 0.0),
        (lambda x: x**0.5, 0.0),
        (lambda x: np.power(x, 0.5), 0.0),
        (np.log1p, -1.0),
        (np.log2, 0.0),
        (np.arcsin, 1.0),
        (np.arctanh, 1.0),
        (np.arccosh, 1.0),
    ],
)
def test_a_pole_of_the_derivative_is_infinite(f, x):
    assert derivatives(f, x) == [inf, inf]


# Tails: where the function itself is fine, so is its derivative


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (lambda x: 1 / (1 + np.exp(-x)), -900.0, 0.0),
        (lambda x: 1 / (1 + np.exp(-x)), 900.0, 0.0),
        (lambda x: np.logaddexp(0, x), -1000.0, 0.0),
        (lambda x: np.logaddexp(0, x), 1000.0, 1.0),
        (lambda x: np.logaddexp(0, x), -40.0, 4.248354255291589e-18),
        (lambda x: -np.logaddexp(0, -x), -1000.0, 1.0),
        (np.expm1, -40.0, 4.248354255291589e-18),
        (lambda x: np.logaddexp2(0, x), -60.0, 2.0**-60),
        (np.arcsinh, 1e200, 1e-200),
        (np.arctan, 1e200, 0.0),
        (np.tanh, 1000.0, 0.0),
        (np.tanh, 0.5, 0.7864477329659274),
        (lambda x: np.hypot(x, 3e200), 4e200, 0.8),
        (lambda x: np.arctan2(x, 3e200), 4e200, 1.2e-201),
        (lambda x: np.divide(1e200, x), 1e200, -1e-200),
        (lambda x: np.exp(-np.exp(x)), 1000.0, 0.0),
        (np.cosh, 700.0, 5.0711602736750225e303),
    ],
)
def test_tails_neither_overflow_nor_vanish(f, x, expected):
    assert_derivative(f, x, expected, rtol=1e-13)


@pytest.mark.parametrize("c", [3e7, -3e7])
def test_tanh_is_flat_where_it_has_saturated(c):
    assert_derivative(
        lambda v: np.tanh(c * v) * (c * v) ** 2, 1.0, 2 * c * abs(c), order=2, rtol=1e-12
    )


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (-inf, -inf, (0.5, 0.5)),
        (inf, inf, (0.5, 0.5)),
        (inf, 1.0, (1.0, 0.0)),
        (-inf, 1.0, (0.0, 1.0)),
        (inf, -inf, (1.0, 0.0)),
        (1e300, -1e300, (1.0, 0.0)),
    ],
)
@pytest.mark.parametrize("f", [np.logaddexp, np.logaddexp2])
def test_logaddexp_of_infinities_shares_by_weight(f, x, y, expected):
    assert fg.vjp(f, x, y)[1](1.0) == expected
    pushed = fg.jvp(f, (x, y), (1.0, 0.0))[1], fg.jvp(f, (x, y), (0.0, 1.0))[1]
    assert pushed == expected


@pytest.mark.parametrize("x", [-inf, inf, 800.0])
def test_logaddexp_has_no_curvature_at_its_ends(x):
    assert derivatives(lambda x: np.logaddexp(x, 1.0), x, order=2) == [0, 0, 0, 0]


# Powers


@pytest.mark.parametrize("f", [np.power, np.float_power, lambda x, y: x**y])
def test_power_at_zero_by_exponent(f):
    y = [0, 1, 3]
    pulled = fg.grad(lambda x: np.sum(f(x * np.ones(3), y)))(0.0)
    assert pulled == 1.0
    _, pushed = fg.jvp(lambda x: f(x, np.array(y)), (np.zeros(3),), (np.ones(3),))
    np.testing.assert_array_equal(pushed, [0, 1, 0])


def test_zero_to_a_traced_power_is_flat_in_the_exponent():
    _, pullback = fg.vjp(np.power, np.zeros(3), np.array([0.0, 1.0, 3.0]))
    x_bar, y_bar = pullback(np.ones(3))
    np.testing.assert_array_equal(x_bar, [0, 1, 0])
    np.testing.assert_array_equal(y_bar, [0, 0, 0])


def test_difference_to_the_power_of_its_subtrahend():
    assert fg.vjp(lambda a, b: (a - b) ** b, 1.0, 1.0)[1](3.0) == (3.0, -3.0)


@pytest.mark.parametrize("outer", [forward, reverse])
@pytest.mark.parametrize("inner", [forward, reverse])
def test_mixed_second_derivative_of_a_power_at_exponent_zero(inner, outer):
    assert outer(lambda y: inner(lambda x: x**y)(2.0))(0.0) == pytest.approx(0.5, rel=1e-15)
    assert outer(lambda x: inner(lambda y: x**y)(0.0))(2.0) == pytest.approx(0.5, rel=1e-15)


@pytest.mark.parametrize(("order", "expected"), [(1, 0), (2, -2), (3, 0), (4, 12)])
def test_derivatives_of_a_bell_at_its_top(order, expected):
    found = derivatives(lambda x: np.exp(-(x**2)), 0.0, order)
    assert found == [expected] * 2**order


@pytest.mark.parametrize(
    ("y", "expected"), [(0, 0.0), (1, 1.0), (2, -4.0), (3, 12.0), (-1, -0.25), (-2, 0.25)]
)
def test_negative_numbers_to_integer_powers_need_no_logarithm(y, expected):
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        assert_derivative(lambda x: x**y, -2.0, expected)


def test_a_negative_python_float_to_a_fraction_is_complex_as_in_python():
    out, pullback = fg.vjp(lambda x: x ** (1 / 3), -8.0)
    assert out == (-8.0) ** (1 / 3)
    # The derivative is (-8) ** (-2/3) / 3; what comes back to a real number is the real part.
    assert pullback(1 + 0j)[0] == pytest.approx(-1 / 24, rel=1e-14)


# Python numbers


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (lambda x: x**-2, 1e-120, -inf),  # overflows in Python
        (lambda x: np.divide(x, 0.0), 1.0, inf),
        (np.reciprocal, 0.0, -inf),
    ],
)
def test_what_python_refuses_numpy_computes(f, x, expected):
    assert derivatives(f, x) == [expected, expected]


@pytest.mark.parametrize("f", [np.log, np.sqrt, lambda x: x**0.5])
def test_what_python_refuses_numpy_computes_at_every_level(f):
    assert derivatives(f, 0.0, order=2) == [-inf] * 4


def test_lists_are_operands():
    _, pullback = fg.vjp(
        lambda x: [1, 2, 4] * x + (1, 1, 1) - np.divide([6, 6, 6], x), np.full(3, 2.0)
    )
    np.testing.assert_array_equal(pullback(np.ones(3))[0], [2.5, 3.5, 5.5])


def test_the_gradient_of_a_python_float_is_one():
    for f in (lambda x: x * x, np.sin, lambda x: 2 / x, lambda x: x**3, np.sinc):
        assert type(fg.grad(f)(0.5)) is float


# Complex numbers


@pytest.mark.parametrize(
    ("f", "z", "expected"),
    [
        (lambda z: z.real**2 + z.imag**2, 2 + 1j, 4 - 2j),
        (lambda z: np.real(z * np.conj(z)), 2 + 1j, 4 - 2j),
        (lambda z: np.real(z), 2 + 1j, 1),
        (lambda z: np.imag(z), 2 + 1j, -1j),
        (lambda z: np.real(np.exp(z)), 0.5j, np.exp(0.5j)),
        (lambda z: np.real(z**2), 1 + 2j, 2 + 4j),
        (lambda z: np.real(2.0**z), 1 + 2j, np.log(2) * 2 ** (1 + 2j)),
    ],
)
def test_gradient_of_a_real_function_of_a_complex_number(f, z, expected):
    """It is df/dx - i df/dy."""
    np.testing.assert_allclose(fg.grad(f)(z), expected, rtol=1e-14)


CUT = {
    np.sqrt: ("x", -2.0),
    np.log: ("x", -2.0),
    np.arcsin: ("x", 2.0, -2.0),
    np.arccos: ("x", 2.0, -2.0),
    np.arctanh: ("x", 2.0, -2.0),
    np.arccosh: ("x", 0.5, -2.0),
    np.arctan: ("y", 2.0, -2.0),
    np.arcsinh: ("y", 2.0, -2.0),
}


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize(
    ("f", "axis", "at"),
    [(f, axis, at) for f, (axis, *points) in CUT.items() for at in points],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_on_a_branch_cut_the_derivative_is_that_of_the_side(f, axis, at, zero):
    """The sign of zero says which side; along the cut the function is smooth."""

    def along(t):
        return f(np.complex128(complex(t, zero) if axis == "x" else complex(zero, t)))

    h = 1e-5
    expected = (along(at + h) - along(at - h)) / (2 * h)
    z = np.complex128(complex(at, zero) if axis == "x" else complex(zero, at))
    _, got = fg.jvp(f, (z,), (np.complex128(1 if axis == "x" else 1j),))
    np.testing.assert_allclose(got, expected, rtol=1e-8)


# float16, whose squares overflow at 256


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (np.arcsinh, 300.0, 1 / 300),
        (np.sqrt, 300.0, 0.5 / 300**0.5),
        (lambda x: np.hypot(x, np.float16(300)), 400.0, 0.8),
        (lambda x: np.arctan2(x, np.float16(300)), 400.0, 0.0012),
    ],
)
def test_float16_does_not_overflow_on_the_way(f, x, expected):
    got = fg.grad(f)(np.float16(x))
    assert got.dtype == np.float16
    assert float(got) == pytest.approx(expected, rel=3e-3)


def test_large_float16_arrays_are_not_taken_for_infinite():
    x = np.full(2000, 20, np.float16)
    (x_bar,) = fg.vjp(lambda x: x * x * x, x)[1](np.ones(2000, np.float16))
    np.testing.assert_array_equal(x_bar, np.full(2000, 1200, np.float16))


# Memory: what the backward pass keeps


@pytest.mark.parametrize(
    ("f", "kept"),
    [
        (lambda x: x + 1.0, 0),
        (np.negative, 0),
        (lambda x: x - x, 0),
        (np.exp, 1),
        (np.tanh, 1),
        (np.sin, 1),
        (lambda x: x * 2.0, 0),
    ],
    ids=["add", "negative", "subtract", "exp", "tanh", "sin", "multiply"],
)
def test_only_the_residual_that_a_rule_needs_is_kept(f, kept):
    """Of 10 operations on a megabyte each keeps as many arrays as it says."""
    import tracemalloc

    x = np.zeros(2**17)

    def repeated(x):
        for _ in range(10):
            x = f(x)
        return x

    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    pullback = fg.vjp(repeated, x)[1]
    held = (tracemalloc.get_traced_memory()[0] - before) / 2**20
    tracemalloc.stop()
    assert callable(pullback)
    # With the copy of the argument, and the output if nothing else refers to it.
    assert held <= 10 * kept + 2.1
    assert held >= 10 * kept


def test_the_root_of_a_negative_number_has_no_slope():
    with np.errstate(invalid="ignore"):
        slope = fg.grad(lambda x: np.power(x, 0.5))(-2.0)
    assert np.isnan(slope)


def test_hypot_is_flat_at_the_origin_to_second_order():
    second = fg.hessian(lambda x: np.hypot(x[0], x[1]))(np.zeros(2))
    np.testing.assert_array_equal(second, np.zeros((2, 2)))


@pytest.mark.parametrize(("f", "curvature"), [(np.logaddexp, 0.25), (np.logaddexp2, np.log(2) / 4)])
def test_logaddexp_of_equal_terms_is_curved_also_beside_infinities(f, curvature):
    x = np.array([[1.0, 1.0], [np.inf, np.inf]])
    with np.errstate(invalid="ignore"):
        found = fg.hessian(lambda x: np.sum(f(x[:, 0], x[:, 1])))(x)[0, :, 0]
    np.testing.assert_allclose(found, curvature * np.array([[1, -1], [-1, 1]]), rtol=1e-14)


@pytest.mark.parametrize("f", [np.logaddexp, np.logaddexp2])
def test_compiled_logaddexp_is_curved_at_ties(f):
    def total(x):
        return f(x[0], x[1])

    at = np.ones(2)
    np.testing.assert_allclose(fg.jit(fg.hessian(total))(at), fg.hessian(total)(at), rtol=1e-14)
