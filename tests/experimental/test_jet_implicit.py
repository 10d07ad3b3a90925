"""Taylor mode through solutions of equations: terms of all orders, by closed inverses of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize as scipy_optimize

import funcgrad as fg
from funcgrad.experimental import jet
from funcgrad.scipy import optimize

# x + x**3 = t at t = 2: the derivatives of the inverse of a cubic at x = 1, by Lagrange:
# x' = 1/4, x'' = -6/4**3, x''' = (3 * 6**2 - 6 * 4) / 4**5.
CUBIC = [1 / 4, -6 / 4**3, (3 * 6**2 - 6 * 4) / 4**5]


def cubic(x, t):
    return x + x**3 - t


def by_root(t):
    return fg.custom_root(
        lambda x: cubic(x, t), 0.5, lambda f, x: scipy_optimize.brentq(f, 0.0, 2.0, xtol=1e-15)
    )


def by_tangent_solve(t):
    def solve(f, x):
        return scipy_optimize.brentq(f, 0.0, 2.0, xtol=1e-15)

    return fg.custom_root(lambda x: cubic(x, t), 0.5, solve, lambda g, y: y / g(1.0))


@fg.implicit_diff(cubic)
def by_solver(init, t):
    return scipy_optimize.brentq(cubic, 0.0, 2.0, (t,), xtol=1e-15)


def by_iteration(t):
    return fg.fixed_point(lambda x: x - 0.25 * cubic(x, t), 0.9, tol=1e-15)


def by_minimum(t):
    return optimize.minimize(lambda x: x**2 / 2 + x**4 / 4 - t * x, 0.5, tol=1e-14).x


def by_scipy(t):
    return optimize.root({"a": lambda x, t: cubic(x, t)}["a"], 0.5, (t,), tol=1e-15).x


SOLVERS = {
    "custom_root": by_root,
    "tangent_solve": by_tangent_solve,
    "implicit_diff": lambda t: by_solver(0.5, t),
    "fixed_point": by_iteration,
    "minimize": by_minimum,
    "root": by_scipy,
}


@pytest.mark.parametrize("name", SOLVERS)
def test_three_derivatives_of_a_solution(name):
    value, terms = jet(SOLVERS[name], (2.0,), ([1.0, 0.0, 0.0],))
    assert_allclose(value, 1.0, rtol=1e-12)
    assert_allclose(terms, CUBIC, rtol=1e-9)


def test_solution_of_a_linear_system():
    # s**2 diag(1, 2) x = s: x = (1, 1/2) / s, with derivatives -1, 2, -6 at s = 1.
    def solution(s):
        return fg.custom_linear_solve(
            lambda x: s * s * np.array([1.0, 2.0]) * x,
            s * np.ones(2),
            lambda matvec, b: b / matvec(np.ones(2)),
            symmetric=True,
        )

    _, terms = jet(solution, (1.0,), ([1.0, 0.0, 0.0],))
    assert_allclose(terms, [[-1.0, -0.5], [2.0, 1.0], [-6.0, -3.0]], rtol=1e-12)


def test_solution_in_the_path_of_another():
    # x(t) of the cubic, and y = x**2 of an equation of its own.
    def square(t):
        x = by_root(t)
        return fg.fixed_point(lambda y: 0.5 * (y + x * x), 0.9, tol=1e-15)

    one, two, three = CUBIC
    _, terms = jet(square, (2.0,), ([1.0, 0.0, 0.0],))
    assert_allclose(terms, [2 * one, 2 * one**2 + 2 * two, 6 * one * two + 2 * three], rtol=1e-9)


def test_pytree_of_unknowns():
    # a**2 = t, b = a: both have the derivatives of the root, at 4.
    def both(t):
        found = optimize.root(lambda x: {"a": x["a"] ** 2 - t, "b": x["b"] - x["a"]}, START).x
        return found["a"] + found["b"]

    START = {"a": 1.5, "b": 1.5}
    _, terms = jet(both, (4.0,), ([1.0, 0.0, 0.0],))
    assert_allclose(terms, [1 / 2, -1 / 16, 3 / 128], rtol=1e-9)


def test_examples_of_vmap_inside():
    # sqrt(a t), for each a: derivatives sqrt(a) * (1/2, -1/4, 3/8) at t = 1.
    a = np.array([1.0, 4.0, 9.0])

    def roots(t):
        return fg.vmap(lambda a: fg.fixed_point(lambda x: 0.5 * (x + a * t / x), 1.0, tol=1e-15))(a)

    _, terms = jet(roots, (1.0,), ([1.0, 0.0, 0.0],))
    assert_allclose(terms, np.outer([1 / 2, -1 / 4, 3 / 8], np.sqrt(a)), rtol=1e-9)


def test_examples_of_vmap_outside():
    made = fg.vmap(lambda t: jet(by_iteration, (t,), ([1.0, 0.0, 0.0],))[1][2])(
        np.array([2.0, 2.0])
    )
    assert_allclose(made, [CUBIC[2]] * 2, rtol=1e-9)


def test_gradient_of_a_second_derivative():
    made = fg.grad(lambda t: jet(by_root, (t,), ([1.0, 0.0],))[1][1])(2.0)
    assert_allclose(made, CUBIC[2], rtol=1e-9)


def test_jet_of_a_gradient():
    made = jet(fg.grad(by_root), (2.0,), ([1.0, 0.0],))[1]
    assert_allclose(made, CUBIC[1:], rtol=1e-9)
