"""`funcgrad.scipy.optimize`: SciPy's methods, exact derivatives, and those of solutions."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.optimize as so
from numpy.testing import assert_allclose

import funcgrad as fg
from funcgrad.errors import DtypeError, MissingRuleError, ShapeError, TreeMismatchError
from funcgrad.scipy import optimize

START = np.array([1.3, 0.7, 0.8, 1.9, 1.2])


def rosen(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def rosen_of_tree(p):
    return rosen(np.concatenate([p["a"], p["b"]]))


TREE = {"a": START[:2], "b": START[2:]}


def counted(fun):
    """Count the calls of a function."""

    def counting(*args):
        counting.calls += 1
        return fun(*args)

    counting.calls = 0
    return counting


# minimize: what SciPy is given

WITH_DERIVATIVES = {
    "CG": {},
    "BFGS": {},
    "L-BFGS-B": {},
    "TNC": {},
    "SLSQP": {},
    "Newton-CG": {"hess": so.rosen_hess},
    "trust-ncg": {"hessp": so.rosen_hess_prod},
    "trust-krylov": {"hessp": so.rosen_hess_prod},
    "trust-exact": {"hess": so.rosen_hess},
    "trust-constr": {"hessp": so.rosen_hess_prod},
}


@pytest.mark.parametrize("method", WITH_DERIVATIVES)
def test_the_run_is_that_of_scipy_with_hand_written_derivatives(method):
    found = optimize.minimize(rosen, START, method=method)
    expected = so.minimize(
        so.rosen, START, method=method, jac=so.rosen_der, **WITH_DERIVATIVES[method]
    )
    assert found.nit == expected.nit
    assert_allclose(found.x, expected.x, rtol=1e-5)


@pytest.mark.parametrize("method", WITH_DERIVATIVES)
def test_the_run_of_a_pytree_is_that_of_its_vector(method):
    found = optimize.minimize(rosen_of_tree, TREE, method=method)
    expected = optimize.minimize(rosen, START, method=method)
    assert found.nit == expected.nit
    assert_allclose(np.concatenate([found.x["a"], found.x["b"]]), expected.x, rtol=1e-6)


@pytest.mark.parametrize("method", ["Nelder-Mead", "Powell", "COBYQA"])
def test_methods_without_derivatives_are_given_none(method):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # SciPy's, of a gradient that it does not use
        found = optimize.minimize(
            lambda p: np.sum((p["x"] - 2.0) ** 2), {"x": np.zeros(2)}, method=method
        )
    assert_allclose(found.x["x"], 2.0, rtol=1e-3)


def test_function_runs_once_for_value_and_gradient():
    fun = counted(rosen)
    result = optimize.minimize(fun, START, method="L-BFGS-B")
    assert fun.calls == result.nfev


def test_hessian_at_one_point_is_linearized_once():
    fun = counted(rosen)
    result = optimize.minimize(fun, START, method="trust-ncg")
    assert fun.calls <= result.nfev + result.njev


def test_a_method_of_the_users_gets_the_exact_gradient():
    def descend(fun, x0, args, jac, **_):
        x = x0
        for _ in range(100):
            x = x - 0.1 * jac(x)
        return so.OptimizeResult(x=x, fun=fun(x), success=True)

    found = optimize.minimize(lambda p: (p["x"] - 3.0) ** 2, {"x": 0.0}, method=descend)
    assert_allclose(found.x["x"], 3.0, rtol=1e-6)


# minimize: pytrees


def quadratic(p, t):
    first, second = p["b"]
    return (
        (p["a"] - t) ** 2
        + np.sum((first - t) ** 2)
        + (second - 3 * t) ** 2
        + np.sum((p["c"] - t) ** 2)
    )


MIXED = {"a": np.float32(1.0), "b": [np.ones((2, 2)), 2], "c": np.zeros(3, np.int64)}


def test_result_has_the_structure_shapes_and_dtypes_of_the_guess():
    x = optimize.minimize(quadratic, MIXED, 2.0).x
    assert type(x["a"]) is np.float32
    assert x["b"][0].shape == (2, 2)
    assert type(x["b"][1]) is float  # integers are promoted, as SciPy does
    assert x["c"].dtype == np.float64
    assert_allclose([x["a"], x["b"][1], *x["c"]], [2, 6, 2, 2, 2], rtol=1e-5)


def test_gradient_in_the_result_is_a_pytree():
    result = optimize.minimize(quadratic, MIXED, 2.0)
    assert fg.tree.structure(result.jac) == fg.tree.structure(result.x)


def test_result_of_scipy_is_kept():
    result = optimize.minimize(quadratic, MIXED, (2.0,))
    assert result.scipy.x.shape == (9,)
    assert result.scipy.jac.shape == (9,)
    assert (result.nfev, result.message) == (result.scipy.nfev, result.scipy.message)


@pytest.mark.parametrize("x0", [1, 1.0, np.float64(1.0)])
def test_number(x0):
    assert_allclose(optimize.minimize(lambda x: (x - 2) ** 2, x0).x, 2.0, rtol=1e-6)


@pytest.mark.parametrize("x0", [[0, 1], (0.0, 1.0)])
def test_list_of_numbers_is_an_array_as_in_scipy(x0):
    found = optimize.minimize(lambda x: np.sum((x - [1.0, 2.0]) ** 2), x0)
    assert_allclose(found.x, [1.0, 2.0], rtol=1e-6)


def test_auxiliary_output_is_that_of_the_solution():
    def loss(x):
        return (x - 2.0) ** 2, {"twice": 2 * x}

    result = optimize.minimize(loss, 1.0, has_aux=True)
    assert result.aux["twice"] == 2 * result.x


def test_callback_gets_pytrees():
    seen = []
    optimize.minimize(rosen_of_tree, TREE, callback=seen.append)
    assert seen[0]["a"].shape == (2,)


def test_callback_with_the_intermediate_result_gets_pytrees():
    seen = []

    def callback(intermediate_result):
        seen.append(intermediate_result)

    optimize.minimize(rosen_of_tree, TREE, callback=callback)
    assert_allclose(rosen_of_tree(seen[-1].x), seen[-1].fun)


def test_callback_can_stop():
    def stop(x):
        raise StopIteration

    assert optimize.minimize(rosen_of_tree, TREE, callback=stop, method="BFGS").nit == 1


BOUNDS = {"a": (0, 1), "b": [(None, 1.5), None], "c": (0, [1, 2, 3])}


@pytest.mark.parametrize("method", [None, "L-BFGS-B", "TNC", "SLSQP"])
def test_bounds_as_a_pytree(method):
    x = optimize.minimize(quadratic, MIXED, 2.0, method=method, bounds=BOUNDS).x
    assert_allclose([x["a"], x["b"][0][0, 0], x["b"][1]], [1.0, 1.5, 6.0], rtol=1e-5)
    assert_allclose(x["c"], [1, 2, 2], rtol=1e-5)


@pytest.mark.parametrize(
    "bounds", [[(0, 1), (0, None)], so.Bounds([0, 0], [1, np.inf]), [(0, 1), (None, None)]]
)
def test_bounds_as_scipy_takes_them(bounds):
    found = optimize.minimize(lambda x: np.sum((x - 2) ** 2), np.zeros(2), bounds=bounds)
    assert_allclose(found.x, [1, 2], rtol=1e-6)


def test_scalar_bounds_for_a_pytree():
    found = optimize.minimize(
        lambda p: (p["x"] - 2) ** 2 + p["y"] ** 2,
        {"x": 0.0, "y": 1.0},
        bounds=so.Bounds(0.5, 1.5),
    )
    assert_allclose([found.x["x"], found.x["y"]], [1.5, 0.5])


def on_the_circle(p):
    return np.sum(p["x"] ** 2) - 2.0


@pytest.mark.parametrize("method", [None, "SLSQP", "trust-constr"])
def test_constraint_of_a_pytree(method):
    constraint = {"type": "eq", "fun": on_the_circle}
    if method == "trust-constr":
        constraint = so.NonlinearConstraint(on_the_circle, 0.0, 0.0)
    found = optimize.minimize(
        lambda p: np.sum(p["x"]),
        {"x": np.array([-2.0, -0.5])},
        method=method,
        constraints=constraint,
    )
    assert_allclose(found.x["x"], [-1.0, -1.0], rtol=1e-4)


def test_jacobian_of_a_constraint_is_exact():
    """By differences it would be called three times as often."""
    fun = counted(on_the_circle)
    result = optimize.minimize(
        lambda p: np.sum(p["x"]),
        {"x": np.array([-2.0, -0.5])},
        constraints={"type": "eq", "fun": fun},
    )
    assert fun.calls <= 2 * (result.nfev + result.njev)


def test_constraints_with_derivatives_of_the_users():
    def slope(p):
        return {"x": 2 * p["x"]}

    found = optimize.minimize(
        lambda p: np.sum(p["x"]),
        {"x": np.array([-2.0, -0.5])},
        constraints=[{"type": "eq", "fun": on_the_circle, "jac": slope}],
    )
    assert_allclose(found.x["x"], [-1.0, -1.0], rtol=1e-6)


# minimize: derivatives of the user's


def test_gradient_of_the_users():
    jac = counted(lambda p: {"x": so.rosen_der(p["x"])})
    found = optimize.minimize(lambda p: rosen(p["x"]), {"x": START}, jac=jac)
    assert jac.calls == found.njev
    assert_allclose(found.x["x"], 1.0, rtol=1e-4)


def test_gradient_returned_with_the_value():
    found = optimize.minimize(lambda x: (rosen(x), so.rosen_der(x)), START, jac=True)
    assert_allclose(found.x, 1.0, rtol=1e-4)


def test_differences_of_scipy():
    fun = counted(rosen)
    optimize.minimize(fun, START, jac="2-point", options={"maxiter": 3})
    assert fun.calls > 6 * 3


def test_hessian_of_the_users_as_a_pytree_of_pytrees():
    found = optimize.minimize(
        rosen_of_tree, TREE, method="trust-exact", hess=fg.hessian(rosen_of_tree)
    )
    assert_allclose(found.x["b"], 1.0, rtol=1e-4)


def test_product_of_the_users():
    def product(p, v):
        return fg.hvp(rosen_of_tree, (p,), (v,))

    hessp = counted(product)
    found = optimize.minimize(rosen_of_tree, TREE, method="trust-ncg", hessp=hessp)
    assert hessp.calls > 0
    assert_allclose(found.x["b"], 1.0, rtol=1e-4)


# minimize: derivatives of the solution

POINT = np.array([0.5, 1.0])
TIGHT = {"method": "trust-exact", "options": {"gtol": 1e-12}}


def far(x, t):
    """Of the form x^4 / 4 + x^2 / 2 in each element, about t and 0: x = 1 at t = 2."""
    return np.sum((x - t) ** 4 / 4 + x**2 / 2)


def solution(t):
    return optimize.minimize(far, np.zeros(2), (t,), **TIGHT).x


def slope_of(x, t):
    """The derivative of the solution: (x - t)^3 + x = 0."""
    return 3 * (x - t) ** 2 / (3 * (x - t) ** 2 + 1)


@pytest.mark.parametrize("jacobian", [fg.jacrev, fg.jacfwd])
def test_jacobian_of_the_solution(jacobian):
    x = solution(POINT)
    assert_allclose(jacobian(solution)(POINT), np.diag(slope_of(x, POINT)), rtol=1e-9, atol=1e-12)


def test_hessian_of_the_solution():
    found = fg.hessian(lambda t: np.sum(solution(t)))(np.full(2, 2.0))
    assert_allclose(found, np.diag([6 / 64, 6 / 64]), rtol=1e-8, atol=1e-12)


def test_vmap_runs_scipy_for_each_example():
    points = np.stack([POINT, 2 * POINT])
    found = fg.vmap(solution)(points)
    assert_allclose(found, [solution(t) for t in points], rtol=1e-12)


def test_vmap_of_the_jacobian():
    points = np.stack([POINT, 2 * POINT])
    found = fg.vmap(fg.jacrev(solution))(points)
    assert_allclose(found, [fg.jacrev(solution)(t) for t in points], rtol=1e-10, atol=1e-12)


def test_solution_of_a_function_that_closes_over_what_is_traced():
    def closed(t):
        return optimize.minimize(lambda x: far(x, t), np.zeros(2), **TIGHT).x

    assert_allclose(fg.jacrev(closed)(POINT), fg.jacrev(solution)(POINT), rtol=1e-12)


def test_value_at_the_solution_has_the_derivative_of_the_envelope():
    found = fg.grad(lambda t: optimize.minimize(far, np.zeros(2), (t,), **TIGHT).fun)(POINT)
    assert_allclose(found, (POINT - solution(POINT)) ** 3, rtol=1e-8)


def test_solution_does_not_depend_on_the_guess():
    found = fg.grad(lambda x0: np.sum(optimize.minimize(far, x0, (POINT,)).x))(np.zeros(2))
    assert_allclose(found, [0.0, 0.0], atol=1e-12)


def test_minimum_of_a_function_of_a_minimum():
    """The t with w(t) = s, where w = t / (1 + t) is a minimum itself: t = s / (1 - s)."""

    def weight(t):
        return optimize.minimize(lambda w: (w - t) ** 2 + t * w**2, 0.0, **TIGHT).x

    def of(s):
        return optimize.minimize(lambda t: (weight(t) - s) ** 2, 0.4, tol=1e-12).x

    assert_allclose(of(0.3), 0.3 / 0.7, rtol=1e-6)
    assert_allclose(fg.grad(of)(0.3), 0.7**-2, rtol=1e-5)
    assert_allclose(fg.vmap(fg.grad(of))(np.array([0.3, 0.4])), [0.7**-2, 0.6**-2], rtol=1e-5)


def test_element_at_a_bound_stays_there():
    def bounded(t):
        return optimize.minimize(
            lambda x: np.sum((x - t) ** 2), np.zeros(2), bounds=[(0, 1), (0, 1)]
        ).x

    found = fg.jacobian(bounded)(np.array([0.5, 2.0]))
    assert_allclose(found, [[1, 0], [0, 0]], atol=1e-9)


def test_auxiliary_output_of_a_traced_run():
    def twice(t):
        result = optimize.minimize(lambda x: ((x - t) ** 2, 2 * x), 0.0, has_aux=True)
        return result.aux

    assert_allclose(fg.grad(twice)(3.0), 2.0)


def test_constrained_solution_has_no_derivative():
    def constrained(t):
        return optimize.minimize(
            lambda p: np.sum((p["x"] - t) ** 2),
            {"x": np.array([-2.0, -0.5])},
            constraints={"type": "eq", "fun": on_the_circle},
        ).x["x"]

    with pytest.raises(MissingRuleError, match="minimize with constraints") as error:
        fg.jacobian(constrained)(POINT)
    assert "funcgrad.implicit_diff" in error.value.fix


def test_constrained_solution_may_be_computed_inside_of_a_transform():
    def shifted(t):
        found = optimize.minimize(
            lambda p: np.sum(p["x"]),
            {"x": np.array([-2.0, -0.5])},
            constraints={"type": "eq", "fun": on_the_circle},
        )
        return np.sum(found.x["x"]) + t

    assert fg.grad(shifted)(1.0) == 1.0


def test_traced_bounds_have_no_derivative():
    with pytest.raises(MissingRuleError, match="bounds that are traced"):
        fg.grad(lambda b: optimize.minimize(lambda x: (x - 2) ** 2, 0.0, bounds=[(0.0, b)]).x)(1.0)


# minimize: complaints


def test_function_that_is_no_scalar():
    with pytest.raises(ShapeError, match=r"minimize needs a function that returns a scalar.*\[2\]"):
        optimize.minimize(lambda x: x, np.ones(2))


def test_function_that_is_no_scalar_without_derivatives():
    with pytest.raises(ShapeError, match=r"minimize needs .* got shape \(2,\)"):
        optimize.minimize(lambda x: x, np.ones(2), method="Nelder-Mead")


@pytest.mark.parametrize("leaf", ["text", 1j, np.array([1j])])
def test_guess_that_is_no_real_number(leaf):
    with pytest.raises(DtypeError, match=r"x0 of minimize needs real numbers") as error:
        optimize.minimize(lambda x: 0.0, {"a": leaf})
    assert "x0['a']" in error.value.where


def test_gradient_of_another_structure():
    with pytest.raises(TreeMismatchError, match="the gradient of jac"):
        optimize.minimize(lambda p: p["x"] ** 2, {"x": 1.0}, jac=lambda p: {"y": 2 * p["x"]})


def test_gradient_of_another_shape():
    with pytest.raises(ShapeError, match="the gradient of jac has shape"):
        optimize.minimize(
            lambda p: np.sum(p["x"] ** 2), {"x": np.ones(2)}, jac=lambda p: {"x": np.ones(3)}
        )


def test_bounds_of_another_structure():
    with pytest.raises(TreeMismatchError, match="bounds of minimize"):
        optimize.minimize(lambda p: p["x"] ** 2, {"x": 1.0}, bounds={"y": (0, 1)})


def test_nan_ends_as_in_scipy():
    found = optimize.minimize(lambda x: x * np.nan, 1.0)
    assert not found.success


# minimize_scalar


def lowest(a):
    return optimize.minimize_scalar(lambda x, a: np.cosh(x - a**2), args=(a,)).x


def test_minimize_scalar_is_scipys():
    expected = so.minimize_scalar(lambda x: np.cosh(x - 9.0))
    assert optimize.minimize_scalar(lambda x: np.cosh(x - 9.0)).x == expected.x


def test_derivatives_of_a_minimum_of_one_number():
    assert_allclose(fg.grad(lowest)(3.0), 6.0, rtol=1e-7)
    assert_allclose(fg.hessian(lowest)(3.0), 2.0, rtol=1e-6)


def test_vmap_of_a_minimum_of_one_number():
    assert_allclose(fg.vmap(lowest)(np.array([1.0, 2.0])), [1.0, 4.0], rtol=1e-7)


# root, fsolve


def pair(x, a):
    return [x[0] + 0.5 * (x[0] - x[1]) ** 3 - a, 0.5 * (x[1] - x[0]) ** 3 + x[1]]


# Of SciPy's documentation.
ROOT = [0.8411639, 0.1588361]


@pytest.mark.parametrize("method", ["hybr", "lm", "broyden1", "df-sane"])
def test_root_of_a_list(method):
    assert_allclose(optimize.root(pair, [0, 0], 1.0, method=method).x, ROOT, rtol=1e-4)


@pytest.mark.parametrize("method", ["hybr", "lm"])
def test_root_by_the_exact_jacobian(method):
    assert optimize.root(pair, [0, 0], 1.0, method=method).njev >= 1


def test_root_of_a_pytree():
    def circle_and_line(p, r):
        return p["x"] ** 2 + p["y"] ** 2 - r**2, p["x"] - p["y"]

    def crossing(r):
        return optimize.root(circle_and_line, {"x": 1.0, "y": 1}, (r,), tol=1e-13).x

    assert_allclose(list(crossing(2.0).values()), np.sqrt([2.0, 2.0]), rtol=1e-12)
    found = fg.jacobian(crossing)(2.0)
    assert_allclose(list(found.values()), np.sqrt([0.5, 0.5]), rtol=1e-12)


def squares(a):
    return optimize.root(lambda x: x**2 - a, np.ones(2), tol=1e-14).x


def test_derivatives_of_a_root():
    a = np.array([4.0, 9.0])
    assert_allclose(fg.jacrev(squares)(a), np.diag([1 / 4, 1 / 6]), rtol=1e-12)
    found = fg.hessian(lambda a: np.sum(squares(a)))(a)
    assert_allclose(found, np.diag(-0.25 * a**-1.5), rtol=1e-11, atol=1e-15)


def test_vmap_of_a_root():
    a = np.array([[4.0, 9.0], [1.0, 16.0]])
    assert_allclose(fg.vmap(squares)(a), np.sqrt(a), rtol=1e-12)


@pytest.mark.parametrize(
    "jac", [False, lambda x: np.diag(2 * x)], ids=["differences", "of the user's"]
)
def test_root_by_another_jacobian(jac):
    assert_allclose(optimize.root(lambda x: x**2 - 4, np.ones(2), jac=jac).x, 2.0, rtol=1e-6)


def test_root_with_the_jacobian_returned_by_the_function():
    def both(x, a):
        return x**2 - a, np.diag(2 * x)

    def of(a):
        return np.sum(optimize.root(both, np.ones(2), (a,), jac=True).x)

    assert_allclose(fg.grad(of)(4.0), 0.5, rtol=1e-6)


def test_too_many_equations_have_no_derivative():
    with pytest.raises(ShapeError, match="4 equations and 2 unknowns"):
        fg.grad(
            lambda a: np.sum(
                optimize.root(lambda x: np.concatenate([x, x]) * a, np.ones(2), method="lm").x
            )
        )(1.0)


def test_fsolve():
    assert_allclose(optimize.fsolve(lambda x: x**2 - 4, [1, 1]), [2, 2])
    assert_allclose(optimize.fsolve(lambda x: x**2 - 4, 1), [2])


def test_jacobian_of_fsolve():
    found = fg.jacobian(lambda a: optimize.fsolve(lambda x, a: x**2 - a, np.ones(2), a))(
        np.array([1.0, 4.0])
    )
    assert_allclose(found, np.diag([0.5, 0.25]), rtol=1e-7, atol=1e-12)


def test_details_of_fsolve():
    x, info, flag, message = optimize.fsolve(lambda x: x**2 - 4, [1.0], full_output=True)
    assert (flag, type(message)) == (1, str)
    assert info["nfev"] > 0
    assert_allclose(x, [2.0])


# Roots of one number

BRACKETING = ["bisect", "brenth", "brentq", "ridder", "toms748"]
D1, D2 = 1 / 12, -2 / 9 * 8.0 ** (-5 / 3)


@pytest.mark.parametrize("method", [*BRACKETING, None])
def test_root_scalar_in_a_bracket(method):
    def of(a):
        return optimize.root_scalar(
            lambda x, a: x**3 - a, (a,), method=method, bracket=(0.1, 5.0), xtol=1e-13
        ).root

    assert_allclose([of(8.0), fg.grad(of)(8.0), fg.hessian(of)(8.0)], [2, D1, D2], rtol=1e-10)


@pytest.mark.parametrize("method", ["newton", "halley", None])
def test_root_scalar_from_a_guess(method):
    def of(a):
        return optimize.root_scalar(lambda x: x**3 - a, method=method, x0=1.5).root

    assert_allclose([of(8.0), fg.grad(of)(8.0), fg.hessian(of)(8.0)], [2, D1, D2], rtol=1e-10)


def test_newton_is_given_the_exact_derivative():
    found = optimize.root_scalar(lambda x: x**3 - 8, method="newton", x0=1.5)
    expected = so.root_scalar(
        lambda x: x**3 - 8, method="newton", x0=1.5, fprime=lambda x: 3 * x**2
    )
    assert found.iterations == expected.iterations
    assert found.root == expected.root


def test_halley_is_given_exact_derivatives():
    found = optimize.root_scalar(lambda x: x**3 - 8, method="halley", x0=1.5)
    expected = so.root_scalar(
        lambda x: x**3 - 8,
        method="halley",
        x0=1.5,
        fprime=lambda x: 3 * x**2,
        fprime2=lambda x: 6 * x,
    )
    assert found.iterations == expected.iterations


def test_derivative_returned_with_the_value():
    def of(a):
        return optimize.root_scalar(lambda x: (x**3 - a, 3 * x**2), fprime=True, x0=1.5).root

    assert_allclose(fg.grad(of)(8.0), D1, rtol=1e-10)


def test_vmap_of_root_scalar():
    def of(a):
        return optimize.root_scalar(lambda x: x**3 - a, bracket=(0.0, 5.0)).root

    assert_allclose(fg.vmap(of)(np.array([1.0, 8.0])), [1, 2], rtol=1e-10)
    assert_allclose(fg.vmap(fg.grad(of))(np.array([1.0, 8.0])), [1 / 3, D1], rtol=1e-9)


def test_traced_bracket_has_no_derivative_of_its_own():
    def of(a):
        return optimize.root_scalar(lambda x: x**3 - a, bracket=(0.0 * a, a)).root

    assert_allclose(fg.grad(of)(8.0), D1, rtol=1e-9)


@pytest.mark.parametrize("name", BRACKETING)
def test_functions_of_a_bracket(name):
    solver = getattr(optimize, name)

    def of(a):
        return solver(lambda x, a: x**3 - a, 0.0, 5.0, (a,), xtol=1e-13)

    assert of(8.0) == getattr(so, name)(lambda x: x**3 - 8, 0.0, 5.0, xtol=1e-13)
    assert_allclose(fg.grad(of)(8.0), D1, rtol=1e-10)


def test_details_of_brentq():
    root, info = optimize.brentq(lambda x: x**3 - 8, 0.0, 5.0, full_output=True)
    assert info.root == root
    gradient = fg.grad(
        lambda a: optimize.brentq(lambda x: x**3 - a, 0.0, 5.0, full_output=True)[0]
    )(8.0)
    assert_allclose(gradient, D1, rtol=1e-9)


def test_newton_of_an_array():
    def of(a):
        return optimize.newton(lambda x: x**3 - a, np.ones(2), maxiter=100)

    a = np.array([1.0, 8.0])
    assert_allclose(of(a), [1, 2], rtol=1e-9)
    assert_allclose(fg.jacobian(of)(a), np.diag([1 / 3, D1]), rtol=1e-8, atol=1e-12)


def test_newton_of_a_number():
    found = optimize.newton(lambda x, a: x**3 - a, 1.5, args=(8.0,))
    assert found == so.newton(lambda x: x**3 - 8, 1.5, lambda x: 3 * x**2)


# least_squares, curve_fit

T = np.linspace(0, 2, 9)
DATA = 3 * np.exp(-0.5 * T) + 0.01 * np.cos(9 * T)
EXACT = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}


def decay(t, scale, rate):
    return scale * np.exp(-rate * t)


def misfit(p, y):
    return decay(T, p["scale"], p["rate"]) - y


P0 = {"scale": 1.0, "rate": 0.1}


def differences(fun, x, step=1e-4):
    rows = [(fun(x + step * v) - fun(x - step * v)) / (2 * step) for v in np.eye(len(x))]
    return np.stack(rows, axis=-1)


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares_of_a_pytree(method):
    found = optimize.least_squares(misfit, P0, args=(DATA,), method=method)
    expected = so.least_squares(
        lambda p: decay(T, *p) - DATA,
        [1.0, 0.1],
        lambda p: np.stack([np.exp(-p[1] * T), -p[0] * T * np.exp(-p[1] * T)], axis=1),
        method=method,
    )
    # Leaves of a dict are in the order of its keys.
    assert_allclose([found.x["scale"], found.x["rate"]], expected.x, rtol=1e-6)
    assert found.scipy.jac.shape == (9, 2)
    assert set(found.grad) == {"scale", "rate"}


def test_least_squares_of_a_vector_is_that_of_scipy_with_the_jacobian():
    def residuals(x):
        return np.array([10 * (x[1] - x[0] ** 2), 1 - x[0]])

    def jacobian(x):
        return np.array([[-20 * x[0], 10.0], [-1.0, 0.0]])

    def traced(x):
        return np.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])

    found = optimize.least_squares(traced, [-1.2, 1.0])
    expected = so.least_squares(residuals, [-1.2, 1.0], jacobian)
    assert (found.nfev, found.njev) == (expected.nfev, expected.njev)
    assert np.array_equal(found.x, expected.x)


@pytest.mark.parametrize("bounds", [{"scale": (0, 2.5), "rate": None}, (0, 2.5)])
def test_bounds_of_least_squares(bounds):
    found = optimize.least_squares(misfit, P0, args=(DATA,), bounds=bounds)
    assert_allclose(found.x["scale"], 2.5, rtol=1e-6)


def fitted_rate(y):
    return optimize.least_squares(misfit, P0, args=(y,), **EXACT).x["rate"]


@pytest.mark.parametrize("derivative", [fg.grad, fg.jacfwd])
def test_derivative_of_a_fit(derivative):
    assert_allclose(derivative(fitted_rate)(DATA), differences(fitted_rate, DATA), rtol=1e-5)


def test_element_of_a_fit_that_is_at_a_bound():
    def scale(y):
        return optimize.least_squares(misfit, P0, args=(y,), bounds=(0, 2.5)).x["scale"]

    assert_allclose(fg.grad(scale)(DATA), np.zeros(9), atol=1e-12)


def test_robust_loss_and_scales():
    found = optimize.least_squares(
        misfit, P0, args=(DATA,), loss="soft_l1", x_scale={"scale": 1.0, "rate": 0.5}
    )
    assert_allclose(found.x["rate"], 0.5, rtol=1e-2)


def test_robust_fit_has_no_derivative():
    def robust(y):
        return optimize.least_squares(misfit, P0, args=(y,), loss="soft_l1").x["rate"]

    with pytest.raises(MissingRuleError, match="loss='soft_l1'"):
        fg.grad(robust)(DATA)


def test_curve_fit_has_the_covariance_of_the_exact_jacobian():
    def by_hand(t, scale, rate):
        return np.stack([np.exp(-rate * t), -scale * t * np.exp(-rate * t)], axis=1)

    popt, pcov = optimize.curve_fit(decay, T, DATA)
    expected, covariance = so.curve_fit(decay, T, DATA, jac=by_hand)
    assert_allclose(popt, expected, rtol=1e-9)
    assert_allclose(pcov, covariance, rtol=1e-9)


def test_curve_fit_of_a_pytree():
    popt, pcov = optimize.curve_fit(lambda t, p: decay(t, p["scale"], p["rate"]), T, DATA, P0)
    expected, covariance = optimize.curve_fit(decay, T, DATA)
    assert_allclose([popt["scale"], popt["rate"]], expected, rtol=1e-6)
    order = [list(popt).index(name) for name in ("scale", "rate")]
    found = np.diag(pcov)
    assert_allclose(sorted(found[order]), sorted(np.diag(covariance)), rtol=1e-6)


def fitted(y):
    return optimize.curve_fit(decay, T, y, **EXACT)[0]


def test_jacobian_of_a_curve_fit_by_the_data():
    assert_allclose(fg.jacobian(fitted)(DATA), differences(fitted, DATA), rtol=1e-5, atol=1e-8)


def test_jacobian_of_a_curve_fit_by_the_errors():
    def of(sigma):
        return optimize.curve_fit(decay, T, DATA, sigma=sigma, **EXACT)[0]

    found = fg.jacobian(of)(1 + T)
    assert_allclose(found, differences(of, 1 + T), rtol=1e-4, atol=1e-8)


def test_jacobian_of_a_curve_fit_with_correlated_errors():
    covariance = 0.5 * np.eye(9) + 0.5

    def of(y):
        return optimize.curve_fit(decay, T, y, sigma=covariance, **EXACT)[0]

    assert_allclose(fg.jacobian(of)(DATA), differences(of, DATA), rtol=1e-4, atol=1e-6)


def test_curve_fit_of_lists():
    def slope(y):
        return optimize.curve_fit(lambda x, a, b: a * x + b, [0, 1, 2], [y, 3.0, 5.0])[0][0]

    assert_allclose(fg.grad(slope)(1.0), -0.5, rtol=1e-6)


def test_vmap_of_a_curve_fit():
    found = fg.vmap(fitted)(np.stack([DATA, 2 * DATA]))
    assert_allclose(found, [fitted(DATA), fitted(2 * DATA)], rtol=1e-9)


def test_bounds_of_a_curve_fit():
    def of(y):
        return optimize.curve_fit(decay, T, y, bounds=([0, 0], [2.5, 9]))[0]

    assert_allclose(of(DATA)[0], 2.5, rtol=1e-6)
    assert_allclose(fg.jacobian(of)(DATA)[0], np.zeros(9), atol=1e-12)


# The namespace


def test_other_names_are_scipys():
    assert optimize.Bounds is so.Bounds
    assert optimize.linear_sum_assignment(np.eye(2))[1].tolist() == [1, 0]


def test_loading_the_package_does_not_load_scipy():
    code = "import funcgrad, sys; funcgrad.implicit_diff; print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"
