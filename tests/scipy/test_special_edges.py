"""Derivatives of special functions at the ends of their domains, beyond them, and far out."""

import numpy as np
import pytest
import scipy.special as sp
from numpy.testing import assert_allclose

import funcgrad as fg
from funcgrad.scipy import special

INF = np.inf


def slope(function, x):
    return fg.grad(function)(np.float64(x))


# Large arguments


@pytest.mark.parametrize("function", [sp.i0e, sp.i1e, sp.k0e, sp.k1e])
@pytest.mark.parametrize("x", [25.0, 31.0])
def test_scaled_bessel_functions_on_both_sides_of_where_the_formula_changes(function, x):
    h = 0.02
    difference = (
        8 * (function(x + h) - function(x - h)) - (function(x + 2 * h) - function(x - 2 * h))
    ) / (12 * h)
    assert_allclose(slope(function, x), difference, rtol=1e-10)


def test_scaled_bessel_functions_of_negative_numbers():
    assert slope(sp.i0e, -31.0) == -slope(sp.i0e, 31.0)
    assert slope(sp.i1e, -31.0) == slope(sp.i1e, 31.0)


@pytest.mark.parametrize(
    ("function", "factor", "second"),
    # sqrt(1 / (2 pi x)) or sqrt(pi / (2 x)), times 1 + second / x: two terms of Hankel's expansion.
    [
        (sp.i0e, 1 / np.sqrt(2 * np.pi), 1 / 8),
        (sp.i1e, 1 / np.sqrt(2 * np.pi), -3 / 8),
        (sp.k0e, np.sqrt(np.pi / 2), -1 / 8),
        (sp.k1e, np.sqrt(np.pi / 2), 3 / 8),
    ],
)
def test_scaled_bessel_functions_keep_their_digits_for_large_arguments(function, factor, second):
    x = 1e9
    expected = -factor * x**-1.5 * (1 / 2 + 3 / 2 * second / x)
    assert_allclose(slope(function, x), expected, rtol=1e-15)
    assert_allclose(fg.grad(fg.grad(function))(np.float64(x)), 3 / 4 * factor * x**-2.5, rtol=1e-8)


@pytest.mark.parametrize("function", [sp.i0e, sp.i1e, sp.k0e, sp.k1e, sp.rgamma, sp.kolmogorov])
def test_what_goes_to_a_limit_has_slope_0_there(function):
    assert slope(function, INF) == 0


def test_other_limits():
    assert slope(sp.exprel, -INF) == 0
    assert_allclose(slope(sp.zetac, INF), 0, atol=1e-300)
    assert slope(lambda x: sp.gammainc(2.0, x), INF) == 0
    assert slope(lambda x: sp.gammaincc(2.0, x), INF) == 0


# Orders that SciPy cuts off


@pytest.mark.parametrize(
    ("function", "order", "whole"),
    [(sp.kn, 2.7, 2), (sp.kn, -2.7, 2), (sp.yn, 2.7, 2), (sp.yn, -2.7, -2), (sp.expn, 2.7, 2)],
)
@pytest.mark.filterwarnings("ignore:floating point number truncated")
def test_an_order_that_is_cut_off_in_the_value_is_so_in_the_derivative(function, order, whole):
    assert function(order, 1.5) == function(whole, 1.5)
    h = 1e-3
    difference = (
        8 * (function(whole, 1.5 + h) - function(whole, 1.5 - h))
        - (function(whole, 1.5 + 2 * h) - function(whole, 1.5 - 2 * h))
    ) / (12 * h)
    assert_allclose(slope(lambda x: function(order, x), 1.5), difference, rtol=1e-10)


@pytest.mark.parametrize("function", [sp.bdtr, sp.bdtrc, sp.bdtri, sp.nbdtr, sp.nbdtrc])
@pytest.mark.filterwarnings("ignore:floating point number truncated", "ignore:non-integer arg")
def test_counts_that_are_cut_off(function):
    assert_allclose(
        slope(lambda p: function(2.3, 5.7, p), 0.3), slope(lambda p: function(2, 5, p), 0.3)
    )


# Finite derivatives at singular points of formulas


@pytest.mark.parametrize(
    ("phi", "m"), [(0.5, 1.0), (-0.5, 1.0), (0.5, 0.3), (2.0, 0.5), (-4.0, -2.0)]
)
def test_incomplete_elliptic_integrals_in_their_parameter(phi, m):
    # The integrals of sin^2 / (2 (1 - m sin^2)^1.5) and of -sin^2 / (2 sqrt(1 - m sin^2)).
    angle, weight = np.polynomial.legendre.leggauss(60)
    angle, weight = phi / 2 * (angle + 1), phi / 2 * weight
    root = np.sqrt(1 - m * np.sin(angle) ** 2)
    by_first = np.sum(weight * np.sin(angle) ** 2 / (2 * root**3))
    by_second = -np.sum(weight * np.sin(angle) ** 2 / (2 * root))
    assert_allclose(slope(lambda q: sp.ellipkinc(phi, q), m), by_first, rtol=1e-13)
    assert_allclose(slope(lambda q: sp.ellipeinc(phi, q), m), by_second, rtol=1e-13)


def test_students_distribution_of_infinite_degrees_is_normal():
    density = np.exp(-0.045) / np.sqrt(2 * np.pi)
    assert_allclose(slope(lambda x: sp.stdtr(INF, x), 0.3), density, rtol=1e-15)
    assert slope(lambda df: sp.stdtr(df, 0.3), INF) == 0


def test_voigt_profile_of_no_width_is_cauchys():
    # gamma / (pi (x^2 + gamma^2)) at 0.5 and 1.
    assert_allclose(slope(lambda x: sp.voigt_profile(x, 0.0, 1.0), 0.5), -1 / np.pi / 1.25**2)
    assert_allclose(slope(lambda g: sp.voigt_profile(0.5, 0.0, g), 1.0), -0.75 / np.pi / 1.25**2)
    assert slope(lambda s: sp.voigt_profile(0.5, s, 1.0), 0.0) == 0
    # Of small widths it is sigma times the second derivative: (6 x^2 - 2) / (pi 1.25^3) at 0.5.
    small = slope(lambda s: sp.voigt_profile(0.5, s, 1.0), 1e-8)
    assert_allclose(small, 1e-8 * (6 * 0.25 - 2) / (np.pi * 1.25**3), rtol=1e-12)


def test_kolmogorovs_distribution_is_flat_at_its_lower_end():
    assert slope(sp.kolmogorov, 0.0) == 0
    assert slope(sp.kolmogorov, -0.3) == 0


@pytest.mark.parametrize(
    ("function", "n", "expected"),
    # Of z^n / (2n + 1)!! (1 -+ z^2 / (2 (2n + 3))), two times differentiated at 0.
    [
        (special.spherical_jn, 0, -1 / 3),
        (special.spherical_jn, 1, 0),
        (special.spherical_jn, 2, 2 / 15),
        (special.spherical_in, 0, 1 / 3),
        (special.spherical_in, 2, 2 / 15),
    ],
)
def test_second_derivative_of_spherical_bessel_functions_at_0(function, n, expected):
    assert_allclose(slope(lambda z: function(n, z, derivative=True), 0.0), expected, atol=1e-16)


# NaN, whose derivative is NaN


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (sp.psi, -1.0),
        (sp.ellipk, 2.0),
        (sp.ellipe, 2.0),
        (sp.exp1, -1.0),
        (lambda x: special.polygamma(-1, x), 1.5),
        (lambda x: sp.gammainc(-2.0, x), 0.3),
        (lambda x: sp.betainc(-2.0, 1.0, x), 0.3),
        (lambda x: sp.betainc(2.0, 1.0, x), 1.3),
        (lambda x: sp.pdtr(-2, x), 0.3),
        (lambda x: sp.bdtr(3, 2, x), 0.3),
        (lambda x: sp.nbdtr(-2, 2, x), 0.3),
        (lambda x: sp.chdtr(-2.0, x), 0.3),
        (lambda x: sp.zeta(x, -0.5), 2.5),
        (lambda x: sp.ellipkinc(x, 2.7), 1.5),
    ],
)
def test_the_derivative_of_nan_is_nan(function, x):
    value, dot = fg.jvp(function, (np.float64(x),), (1.0,))
    assert np.isnan(value)
    assert np.isnan(dot)
    assert np.isnan(slope(function, x))
