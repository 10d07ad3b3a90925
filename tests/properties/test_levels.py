"""No confusion of perturbations: derivatives inside others, against polynomial algebra.

J. M. Siskind and B. A. Pearlmutter, "Perturbation confusion and referential transparency", 2005;
the same, "Nesting forward-mode AD in a functional framework", 2008; O. Manzyuk et al.,
"Perturbation confusion in forward automatic differentiation of higher-order functions", 2019.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polynomials import DERIVATIVES, Derivative, nested

import funcgrad as fg


def derivative(kind, f, x):
    if kind == "jvp":
        return fg.jvp(f, (x,), (1.0,))[1]
    if kind == "linearize":
        return fg.linearize(f, x)[1](1.0)
    return {"grad": fg.grad, "vjp": fg.grad, "checkpoint": fg.grad, "jacfwd": fg.jacfwd}[kind](f)(x)


@given(st.integers(1, 4).flatmap(nested), st.sampled_from(DERIVATIVES), st.integers(1, 3))
def test_nested_transforms_against_polynomial_algebra(expression, kind, x):
    exact = expression.exact()
    value, size = exact.at(x)
    assert abs(expression.run({"x": float(x)}) - value) <= 1e-13 * size
    slope, size = exact.derivative("x").at(x)
    found = derivative(kind, lambda x: expression.run({"x": x}), float(x))
    assert abs(found - slope) <= 1e-13 * size


@given(nested(4), st.integers(1, 3))
def test_four_levels_inside_vmap(expression, x):
    exact = expression.exact().derivative("x")
    slopes = fg.vmap(fg.grad(lambda x: expression.run({"x": x})))(np.array([x, x + 1.0]))
    for found, place in zip(slopes, (x, x + 1), strict=True):
        slope, size = exact.at(place)
        assert abs(found - slope) <= 1e-13 * size


@given(nested(2), st.lists(st.sampled_from(DERIVATIVES), min_size=2, max_size=2))
def test_higher_derivatives_of_nested_derivatives(expression, kinds):
    exact = expression.exact().derivative("x").derivative("x")
    slope, size = exact.at(2)
    outer, inner = kinds
    found = derivative(
        outer, lambda x: derivative(inner, lambda x: expression.run({"x": x}), x), 2.0
    )
    assert abs(found - slope) <= 1e-13 * size


# The classics


@pytest.mark.parametrize("inner", DERIVATIVES)
@pytest.mark.parametrize("outer", DERIVATIVES)
def test_product_of_variable_and_inner_derivative(outer, inner):
    """d/dx (x * d/dy (x + y)) = 1; who confuses the two perturbations gets 2."""
    assert derivative(outer, lambda x: x * derivative(inner, lambda y: x + y, 1.0), 1.0) == 1.0
    assert derivative(outer, lambda x: x * derivative(inner, lambda y: x * y, 2.0), 3.0) == 6.0


@pytest.mark.parametrize("inner", DERIVATIVES)
@pytest.mark.parametrize("outer", DERIVATIVES)
def test_higher_order_function_that_is_differentiated_twice(outer, inner):
    """Manzyuk et al., section 1: s(u)(f)(x) = f(x + u); the derivative of s at 0 is d/dx."""

    def s(u):
        return lambda f: lambda x: f(x + u)

    def d_hat(f):
        return lambda x: derivative(outer, lambda u: s(u)(f)(x), 0.0)

    def d_hat_too(f):
        return lambda x: derivative(inner, lambda u: s(u)(f)(x), 0.0)

    assert d_hat(d_hat_too(np.exp))(1.0) == pytest.approx(math.e, rel=1e-15)


def test_inner_function_that_ignores_its_variable():
    assert fg.grad(lambda x: fg.jvp(lambda y: x, (1.0,), (1.0,))[1] + x)(2.0) == 1.0
    assert fg.jvp(lambda x: x * fg.grad(lambda y: x + 0.0 * y)(1.0), (2.0,), (1.0,))[1] == 0.0


def test_minimum_inside_a_minimum():
    """Siskind and Pearlmutter's saddle: gradient descent inside gradient descent."""

    def inner(x):
        y = 0.0
        for _ in range(60):
            y = y - 0.2 * fg.grad(lambda y, x=x: (y - x) ** 2 + y**2 / 2 + x * y)(y)
        return y  # 2 (y - x) + y + x = 0, so y = x / 3

    def outer(x):
        return (x - 1.0) ** 2 + inner(x) ** 2

    assert fg.grad(outer)(0.5) == pytest.approx(2 * (0.5 - 1.0) + 2 * 0.5 / 9, rel=1e-12)
    second = fg.grad(fg.grad(outer))(0.5)
    assert second == pytest.approx(2 + 2 / 9, rel=1e-12)


def test_vmap_of_an_inner_derivative_at_the_outer_variable():
    """sum_i d/dx (x * d/dy (x y**2 a_i) at y = x) = sum_i a_i 6 x**2."""
    a = np.array([1.0, -2.0, 4.0])

    def f(x):
        each = fg.vmap(lambda a: x * fg.grad(lambda y: x * y**2 * a)(x))
        return np.sum(each(a))

    for kind in DERIVATIVES:
        assert derivative(kind, f, 2.0) == 3.0 * 24.0
    np.testing.assert_array_equal(fg.vmap(fg.grad(f))(np.array([1.0, 2.0])), [18.0, 72.0])


def test_expression_that_confusion_would_get_wrong():
    """The strategy draws them: here is one whose value is known without polynomial algebra."""
    from polynomials import Product, Sum, Variable

    x, y = Variable("x"), Variable("y")
    expression = Product(x, Derivative("jvp", "y", Sum(x, y), x, Variable("x")))
    assert expression.exact().derivative("x").at(3) == (6, 6)
    assert fg.jvp(lambda x: expression.run({"x": x}), (3.0,), (1.0,))[1] == 6.0
