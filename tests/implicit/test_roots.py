"""`custom_root` and `fixed_point`: derivatives of what an equation defines."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq

import funcgrad as fg
from funcgrad.errors import (
    ArgumentError,
    ConvergenceError,
    DtypeError,
    ShapeError,
    SingularJacobianError,
    TreeMismatchError,
)


def newton(f, x):
    """Solve as NumPy code, which can be traced."""
    for _ in range(40):
        slope = fg.jacobian(f)(x)
        x = x - (np.linalg.solve(slope, f(x)) if np.ndim(x) else f(x) / slope)
    return x


def between(f, x):
    """Solve as code that cannot be traced."""
    return brentq(f, 0.0, 10.0, xtol=1e-15)


def by_hand(g, y):
    return y / g(1.0)


def cube_root(solve, tangent_solve):
    return lambda a: fg.custom_root(lambda x: x**3 - a, 1.0, solve, tangent_solve)


WAYS = {
    "SciPy, and a linear solver": cube_root(between, by_hand),
    "SciPy": cube_root(between, None),
    "NumPy, and a linear solver": cube_root(newton, by_hand),
    "NumPy": cube_root(newton, None),
}
A = np.array([1.0, 8.0, 20.0])
D1 = A ** (-2 / 3) / 3
D2 = -2 / 9 * A ** (-5 / 3)
D3 = 10 / 27 * A ** (-8 / 3)


@pytest.fixture(params=WAYS)
def root(request):
    return WAYS[request.param]


def test_root_is_what_the_solver_returns(root):
    assert_allclose(root(8.0), 2.0, rtol=1e-14)


def test_value_is_the_same_to_the_last_bit_when_traced(root):
    assert fg.value_and_grad(root)(8.0)[0] == root(8.0)


@pytest.mark.parametrize("derivative", [fg.grad, fg.jacfwd, fg.jacrev])
def test_first_derivative(root, derivative):
    assert_allclose(derivative(root)(8.0), D1[1], rtol=1e-13)


def test_linearize(root):
    out, push = fg.linearize(root, 8.0)
    assert_allclose([out, push(1.0), push(3.0)], [2.0, D1[1], 3 * D1[1]], rtol=1e-13)


@pytest.mark.parametrize("outer", [fg.grad, fg.jacfwd])
@pytest.mark.parametrize("inner", [fg.grad, fg.jacfwd])
def test_second_derivative(root, outer, inner):
    assert_allclose(outer(inner(root))(8.0), D2[1], rtol=1e-12)


def test_third_derivative(root):
    assert_allclose(fg.grad(fg.hessian(root))(8.0), D3[1], rtol=1e-12)


def test_vmap_is_a_loop(root):
    assert_allclose(fg.vmap(root)(A), np.cbrt(A), rtol=1e-14)


def test_vmap_of_the_gradient(root):
    assert_allclose(fg.vmap(fg.grad(root))(A), D1, rtol=1e-13)


def test_gradient_of_vmap(root):
    assert_allclose(fg.grad(lambda a: np.sum(fg.vmap(root)(a)))(A), D1, rtol=1e-13)


def test_vmap_of_the_hessian(root):
    assert_allclose(fg.vmap(fg.hessian(root))(A), D2, rtol=1e-12)


def test_hessian_of_vmap(root):
    found = fg.hessian(lambda a: np.sum(fg.vmap(root)(a)))(A)
    assert_allclose(found, np.diag(D2), rtol=1e-12, atol=1e-15)


def test_gradient_by_what_all_examples_share(root):
    found = fg.grad(lambda t: np.sum(fg.vmap(lambda a: root(a * t))(A)))(1.0)
    assert_allclose(found, np.sum(A * D1), rtol=1e-13)


def test_vmap_in_vmap(root):
    found = fg.vmap(lambda b: fg.vmap(fg.grad(lambda a: root(a * b)))(A))(A[:2])
    product = A[:2, None] * A
    assert_allclose(found, A[:2, None] * product ** (-2 / 3) / 3, rtol=1e-13)


def test_vmap_over_no_examples(root):
    assert fg.vmap(root)(np.zeros(0)).shape == (0,)


def test_checkpoint_changes_nothing(root):
    found = fg.grad(fg.checkpoint(lambda a: root(a) * a))(8.0)
    assert_allclose(found, fg.grad(lambda a: np.cbrt(a) * a)(8.0), rtol=1e-13)


def test_hessian_through_checkpoint(root):
    found = fg.hessian(fg.checkpoint(lambda a: root(a) * a))(8.0)
    assert_allclose(found, fg.hessian(lambda a: np.cbrt(a) * a)(8.0), rtol=1e-12)


# y = 0.5 (a + 0.1 y)^(1/3), so a = 8 y^3 - 0.1 y and da/dy = 24 y^2 - 0.1.


def nested(root):
    return lambda a: fg.custom_root(lambda y: y - 0.5 * root(a + 0.1 * y), 1.0, newton)


def test_a_root_within_a_root(root):
    y = nested(root)(8.0)
    assert_allclose(8 * y**3 - 0.1 * y, 8.0, rtol=1e-13)
    assert_allclose(fg.grad(nested(root))(8.0), 1 / (24 * y**2 - 0.1), rtol=1e-12)
    assert_allclose(fg.jacfwd(nested(root))(8.0), 1 / (24 * y**2 - 0.1), rtol=1e-12)


def test_second_derivative_of_a_root_within_a_root(root):
    y = nested(root)(8.0)
    expected = -48 * y / (24 * y**2 - 0.1) ** 3
    assert_allclose(fg.hessian(nested(root))(8.0), expected, rtol=1e-11)
    assert_allclose(fg.grad(fg.grad(nested(root)))(8.0), expected, rtol=1e-11)


def test_vmap_of_a_root_within_a_root(root):
    found = fg.vmap(fg.grad(nested(root)))(np.array([8.0, 9.0]))
    assert_allclose(found, [fg.grad(nested(root))(a) for a in (8.0, 9.0)], rtol=1e-12)


# What the function closes over


class Holder:
    """Has what a function refers to, where no look at its cells finds it."""

    def __init__(self, value):
        self.state = {"values": [value]}

    def equation(self, x):
        return x**2 - np.exp(self.state["values"][0])


def test_traced_values_in_containers_are_found():
    def root_of_exp(a):
        return fg.custom_root(Holder(a).equation, 1.0, newton)

    assert_allclose(fg.grad(root_of_exp)(2.0), 0.5 * np.exp(1.0), rtol=1e-13)
    assert_allclose(fg.hessian(root_of_exp)(2.0), 0.25 * np.exp(1.0), rtol=1e-13)


def test_functions_with_rules_of_their_own_keep_them():
    @fg.custom_jvp
    def shifted(x):
        return fg.pure_callback(lambda x: x + 1.0, x, x)

    @shifted.defjvp
    def shifted_jvp(primals, tangents):
        return shifted(primals[0]), 6.0 * tangents[0]

    def of(a):
        return fg.custom_root(lambda x: shifted(x) - a, 1.0, lambda f, x: 2.0)

    assert_allclose(fg.grad(of)(3.0), 1 / 6, rtol=1e-14)


def test_a_derivative_within_the_equation():
    def argmin(a):  # of (x - a)^4 / 4 + x^2 / 2, at a = 2: (x - 2)^3 + x = 0, x = 1
        def objective(x):
            return (x - a) ** 4 / 4 + x**2 / 2

        return fg.custom_root(fg.grad(objective), 0.5, newton)

    assert_allclose(argmin(2.0), 1.0, rtol=1e-14)
    assert_allclose(fg.grad(argmin)(2.0), 3 / 4, rtol=1e-13)
    assert_allclose(fg.hessian(argmin)(2.0), 6 / 64, rtol=1e-12)


# The t with w(t) = s, where w = t / (1 + t) is a root itself, by the derivative of (w - s)^2:
# t = s / (1 - s).


def weight(t):
    return fg.custom_root(lambda w: (1 + t) * w - t, 0.5, newton)


def level_reached(solve):
    def of(s):
        def slope(t):
            return fg.grad(lambda t: (weight(t) - s) ** 2)(t)

        return fg.custom_root(slope, 0.4, solve)

    return of


TWO_LEVELS = {
    "NumPy": level_reached(newton),
    "SciPy": level_reached(lambda f, t: brentq(f, 0.1, 0.9, xtol=1e-15)),
}


@pytest.mark.parametrize("of", TWO_LEVELS.values(), ids=TWO_LEVELS)
def test_derivative_of_a_root_within_the_equation(of):
    assert_allclose(of(0.3), 0.3 / 0.7, rtol=1e-12)
    assert_allclose(fg.grad(of)(0.3), 0.7**-2, rtol=1e-10)
    assert_allclose(fg.jacfwd(of)(0.3), 0.7**-2, rtol=1e-10)
    assert_allclose(fg.hessian(of)(0.3), 2 * 0.7**-3, rtol=1e-9)


@pytest.mark.parametrize("of", TWO_LEVELS.values(), ids=TWO_LEVELS)
def test_vmap_of_the_derivative_of_a_root_within_the_equation(of):
    s = np.array([0.3, 0.4])
    assert_allclose(fg.vmap(of)(s), s / (1 - s), rtol=1e-12)
    assert_allclose(fg.vmap(fg.grad(of))(s), (1 - s) ** -2, rtol=1e-10)


def test_vmap_and_loops_within_the_equation():
    def of(a):
        def f(x):
            cubes = fg.vmap(lambda s: fg.fori_loop(0, 3, lambda i, v: v * x, s))(np.array([1.0, 2]))
            return np.sum(cubes) - 3 * a

        return fg.custom_root(f, 1.5, between)

    assert_allclose(fg.vmap(fg.hessian(of))(A), D2, rtol=1e-10)


def test_root_in_the_branches_of_cond_under_vmap():
    def of(a):
        return fg.cond(a > 0, lambda: WAYS["SciPy"](a), lambda: -a)

    a = np.array([1.0, 8.0, -3.0])
    assert_allclose(fg.vmap(of)(a), [1, 2, 3], rtol=1e-13)
    assert_allclose(fg.vmap(fg.grad(of))(a), [1 / 3, 1 / 12, -1], rtol=1e-12)


def test_root_in_a_loop():
    def of(a):
        return fg.scan(lambda c, x: (c + WAYS["NumPy"](c * x), c), a, np.ones(3))[0]

    step = 1e-5
    expected = (of(2 + step) - of(2 - step)) / (2 * step)
    assert_allclose(fg.grad(of)(2.0), expected, rtol=1e-9)


def test_assignment_in_the_equation():
    def of(a):
        def f(x):
            y = np.zeros_like(x)
            y[0] = x[0] - a
            y[1] = x[1] * x[0] - a**3
            return y

        return fg.custom_root(f, np.ones(2), newton)

    assert_allclose(fg.jacobian(of)(3.0), [1.0, 6.0], rtol=1e-13)


def test_the_initial_guess_has_no_derivative():
    found = fg.grad(lambda x: fg.custom_root(lambda y: y**2 - 4.0, x, newton))(1.0)
    assert found == 0.0


def test_auxiliary_output_is_returned_without_derivative():
    def of(a):
        def solve(f, x):
            return newton(f, x), {"steps": 40, "guess": x}

        root, aux = fg.custom_root(lambda x: x**2 - a, 1.0, solve, has_aux=True)
        return root + aux["guess"], aux["steps"]

    gradient, steps = fg.grad(of, has_aux=True)(4.0)
    assert_allclose(gradient, 0.25, rtol=1e-14)
    assert steps == 40


# Kinds of unknowns


def test_pytrees_in_and_out():
    def of(p):
        def f(x):
            return {"a": x["a"] ** 2 - p["u"], "b": [x["b"][0] * x["a"] - p["v"]]}

        def solve(f, guess):
            a = np.sqrt(p["u"])
            return {"a": a, "b": [p["v"] / a]}

        return fg.custom_root(f, {"a": 1.0, "b": [np.ones(2)]}, solve)

    found = fg.jacobian(of)({"u": 4.0, "v": np.array([3.0, 4.0])})
    assert_allclose(found["a"]["u"], 0.25)
    assert_allclose(found["a"]["v"], [0.0, 0.0])
    assert_allclose(found["b"][0]["u"], [-3 / 16, -4 / 16])
    assert_allclose(found["b"][0]["v"], np.eye(2) / 2)


def test_single_precision_is_kept():
    def of(a):
        return np.sum(fg.custom_root(lambda x: x**3 - a, np.ones(2, np.float32), newton))

    found = fg.grad(of)(np.array([8.0, 1.0], np.float32))
    assert found.dtype == np.float32
    assert_allclose(found, [1 / 12, 1 / 3], rtol=1e-6)


def complex_root(z):
    def solve(f, x):
        for _ in range(30):
            x = x - f(x) / (2 * x)
        return x

    return fg.custom_root(lambda x: x * x - z, 1 + 0j, solve)


def test_holomorphic_derivative():
    found = fg.grad(complex_root, holomorphic=True)(3 + 4j)
    assert_allclose(found, 1 / (2 * (2 + 1j)), rtol=1e-14)


def test_gradient_of_a_real_function_of_a_complex_root():
    """|sqrt(z)| is sqrt(|z|), with gradient conj(z) / (2 |z|^1.5)."""
    found = fg.grad(lambda z: np.abs(complex_root(z)))(3 + 4j)
    assert_allclose(found, (3 - 4j) / (2 * 5**1.5), rtol=1e-13)


def test_an_equation_that_is_not_holomorphic():
    """conj(x) = z^2: the real part of x is that of z^2, with gradient 2 z."""

    def real_part(z):
        def solve(f, x):
            return np.conj(-f(0j))

        return np.real(fg.custom_root(lambda x: np.conj(x) - z * z, 1 + 0j, solve))

    assert_allclose(fg.grad(real_part)(3 + 4j), 6 + 8j, rtol=1e-14)


# Complaints


def test_singular_jacobian_is_reported_as_numpy_does():
    def double_root(a):
        return fg.custom_root(lambda x: (x - a) ** 2, 1.0, lambda f, x: 2.0)

    with pytest.raises(np.linalg.LinAlgError, match="singular") as error:
        fg.grad(double_root)(2.0)
    assert isinstance(error.value, SingularJacobianError)
    assert "test_roots.py" in error.value.where


def test_integer_guess_is_refused():
    with pytest.raises(DtypeError, match=r"initial guess of custom_root\(.*got int 1"):
        fg.custom_root(lambda x: x - 1.0, 1, newton)


def test_guess_is_named_by_its_path():
    with pytest.raises(DtypeError, match=r"the initial guess at \['b'\]"):
        fg.custom_root(lambda x: x, {"a": 1.0, "b": "x"}, newton)


def test_result_of_another_structure():
    guess = {"x": 1.0}
    with pytest.raises(TreeMismatchError, match="the result of f of custom_root"):
        fg.grad(lambda a: fg.custom_root(lambda x: [a], guess, lambda f, x: x)["x"])(1.0)


def test_result_of_another_shape():
    with pytest.raises(ShapeError, match=r"has shape \(1,\), expected \(2,\)"):
        fg.jacobian(lambda a: fg.custom_root(lambda x: x[:1] * a, np.ones(2), lambda f, x: x))(1.0)


def test_solution_of_another_shape():
    with pytest.raises(ShapeError, match="the root of custom_root"):
        fg.custom_root(lambda x: x, np.ones(2), lambda f, x: np.ones(3))


def test_wrong_result_of_tangent_solve():
    def of(a):
        return fg.custom_root(lambda x: x - a, 1.0, newton, lambda g, y: np.ones(2) * y)

    with pytest.raises(ShapeError, match="the result of tangent_solve"):
        fg.jacfwd(of)(1.0)


# fixed_point


def cosine(a):
    return fg.fixed_point(lambda x, a: np.cos(a * x), 1.0, a)


X = 0.7390851332151607  # the fixed point of the cosine
SLOPE = -X * np.sin(X) / (1 + np.sin(X))


def test_fixed_point():
    assert_allclose(cosine(1.0), X, rtol=1e-11)


@pytest.mark.parametrize("derivative", [fg.grad, fg.jacfwd])
def test_derivative_of_a_fixed_point(derivative):
    assert_allclose(derivative(cosine)(1.0), SLOPE, rtol=1e-10)


def test_second_derivative_of_a_fixed_point():
    step = 1e-4
    expected = (fg.grad(cosine)(1 + step) - fg.grad(cosine)(1 - step)) / (2 * step)
    assert_allclose(fg.hessian(cosine)(1.0), expected, rtol=1e-6)


def test_each_example_ends_by_itself():
    a = np.array([0.1, 0.5, 1.0, 1.2])
    assert np.array_equal(fg.vmap(cosine)(a), [cosine(each) for each in a])


def test_vmap_of_the_derivative_of_a_fixed_point():
    a = np.array([0.5, 1.0])
    assert_allclose(fg.vmap(fg.grad(cosine))(a), [fg.grad(cosine)(each) for each in a], rtol=1e-12)


def test_fixed_point_of_a_function_that_closes_over_what_is_traced():
    found = fg.grad(lambda a: fg.fixed_point(lambda x: np.cos(a * x), 1.0))(1.0)
    assert_allclose(found, SLOPE, rtol=1e-10)


def test_fixed_point_with_a_linear_solver_of_the_users():
    m = np.array([[0.2, 0.1], [-0.3, 0.4]])

    def by_series(matvec, b):
        x = np.zeros_like(b)
        for _ in range(200):  # matvec is that of m - 1
            x = x + (matvec(x) - b)
        return x

    def of(b, solve):
        return fg.fixed_point(lambda x: m @ x + b, np.zeros(2), solve=solve)

    expected = np.linalg.inv(np.eye(2) - m)
    assert_allclose(fg.jacrev(lambda b: of(b, by_series))(np.ones(2)), expected, rtol=1e-11)
    assert_allclose(fg.jacfwd(lambda b: of(b, by_series))(np.ones(2)), expected, rtol=1e-11)


def test_tolerance_of_single_precision_is_coarser():
    calls = []

    def f(x):
        calls.append(x)
        return np.cos(x)

    fg.fixed_point(f, np.float32(1.0))
    single = len(calls)
    fg.fixed_point(f, 1.0)
    assert single < len(calls) - single


def test_fixed_point_that_is_not_reached():
    with pytest.raises(ConvergenceError, match="did not converge in 20 iterations"):
        fg.fixed_point(lambda x: x + 1.0, 1.0, maxiter=20)


@pytest.mark.parametrize("factor", [1e300, np.nan])
def test_iteration_that_blows_up(factor):
    with np.errstate(over="ignore"), pytest.raises(ConvergenceError, match="NaN or infinite"):
        fg.fixed_point(lambda x: x * factor, 1.0)


def test_convergence_error_is_a_runtime_error():
    assert issubclass(ConvergenceError, RuntimeError)


def test_negative_tolerance():
    with pytest.raises(ArgumentError, match="tol of fixed_point"):
        fg.fixed_point(np.cos, 1.0, tol=-1.0)
