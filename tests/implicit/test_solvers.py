"""`implicit_diff`: derivatives for solvers that users bring, against closed forms."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse.linalg as sparse
from numpy.testing import assert_allclose

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError, TracerLeakError

RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(6, 3)), RNG.normal(size=6)


def objective(w, x, y, penalty):
    return 0.5 * np.sum((x @ w - y) ** 2) + 0.5 * penalty * np.sum(w**2)


def closed_form(x, y, penalty):
    return np.linalg.solve(x.T @ x + penalty * np.eye(3), x.T @ y)


def run_scipy(init, x, y, penalty):
    """Minimize with arrays that SciPy needs plain."""
    assert not any(hasattr(value, "_trace") for value in (x, y, penalty))
    found = scipy.optimize.minimize(
        fg.value_and_grad(objective), init, (x, y, penalty), jac=True, method="BFGS", tol=1e-12
    )
    return found.x


ridge = fg.implicit_diff(fg.grad(objective))(run_scipy)


def conjugate_gradients(matvec, b):
    operator = sparse.LinearOperator((b.size, b.size), matvec=matvec)
    return sparse.cg(operator, b, rtol=1e-14)[0]


matrix_free = fg.implicit_diff(fg.grad(objective), solve=conjugate_gradients)(run_scipy)
W0 = np.zeros(3)


@pytest.fixture(params=[ridge, matrix_free], ids=["dense", "matrix-free"])
def solver(request):
    return request.param


def test_value(solver):
    assert_allclose(solver(W0, X, Y, 0.5), closed_form(X, Y, 0.5), rtol=1e-7)


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("jacobian", [fg.jacfwd, fg.jacrev])
def test_jacobian_by_each_argument(solver, number, jacobian):
    found = jacobian(solver, argnums=number + 1)(W0, X, Y, 0.5)
    expected = jacobian(closed_form, argnums=number)(X, Y, 0.5)
    assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_hessian(solver):
    def size(w):
        return np.sum(w**2)

    found = fg.hessian(lambda y, p: size(solver(W0, X, y, p)), argnums=(0, 1))(Y, 0.5)
    expected = fg.hessian(lambda y, p: size(closed_form(X, y, p)), argnums=(0, 1))(Y, 0.5)
    for row, wanted in zip(found, expected, strict=True):
        for part, want in zip(row, wanted, strict=True):
            assert_allclose(part, want, rtol=1e-5, atol=1e-7)


def test_vmap_of_the_jacobian(solver):
    penalties = np.array([0.1, 1.0])
    found = fg.vmap(fg.jacrev(lambda p: solver(W0, X, Y, p)))(penalties)
    expected = [fg.jacrev(lambda p: closed_form(X, Y, p))(p) for p in penalties]
    assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_the_initial_guess_has_no_derivative():
    assert_allclose(fg.jacrev(ridge)(W0, X, Y, 0.5), np.zeros((3, 3)))


def test_root_finder_with_auxiliary_output():
    @fg.implicit_diff(lambda x, a: x**3 - a, has_aux=True)
    def cube_root(init, a):
        root, info = scipy.optimize.brentq(lambda x: x**3 - a, 0.0, 10.0, full_output=True)
        return root, info.iterations

    gradient, iterations = fg.grad(cube_root, argnums=1, has_aux=True)(1.0, 8.0)
    assert_allclose(gradient, 1 / 12, rtol=1e-12)
    assert iterations > 1


def test_pytrees_and_equations_of_another_structure():
    @fg.implicit_diff(lambda x, p: (x["u"] - p["a"], x["u"] * x["v"] - p["b"]))
    def solve(init, p):
        return {"u": p["a"], "v": p["b"] / p["a"]}

    found = fg.jacrev(solve, argnums=1)({"u": 0.0, "v": 0.0}, {"a": 2.0, "b": 3.0})
    assert_allclose([found["v"]["a"], found["v"]["b"]], [-3 / 4, 1 / 2])


def test_options_by_keyword_go_to_the_solver_alone():
    @fg.implicit_diff(lambda x, a: x - a)
    def solve(init, a, *, scale):
        return a * scale

    assert solve(0.0, 2.0, scale=1.0) == 2.0
    assert fg.grad(solve, argnums=1)(0.0, 2.0, scale=1.0) == 1.0


def test_argnums_choose_what_has_derivatives():
    @fg.implicit_diff(lambda x, a, b: x - a * b, argnums=1)
    def product(init, a, b):
        return a * b

    assert fg.grad(product, argnums=(1, 2))(0.0, 2.0, 3.0) == (0.0, 2.0)


def test_optimality_may_close_over_what_is_traced():
    def of(a):
        return fg.implicit_diff(lambda x, b: x**2 - a * b)(
            lambda init, b: np.sqrt(fg.stop_gradient(a) * b)
        )(1.0, 2.0)

    assert_allclose(fg.grad(of)(8.0), 0.25)


def test_decorated_solver_is_called_as_it_is_without_a_transform():
    calls = []

    @fg.implicit_diff(lambda x, a: calls.append("optimality"))
    def solve(init, a):
        return [init, a]

    assert solve("anything", 2) == ["anything", 2]
    assert not calls


def test_decorated_solver_keeps_its_name():
    assert ridge.__name__ == "run_scipy"


# Complaints


def test_solver_that_closes_over_what_is_traced():
    def of(a):
        return fg.implicit_diff(lambda x, b: x - b)(lambda init, b: a * b)(1.0, 1.0)

    with pytest.raises(TracerLeakError, match="not among its arguments"):
        fg.grad(of)(2.0)


def test_foreign_solver_that_closes_over_what_is_traced():
    def of(a):
        @fg.implicit_diff(lambda x: x**2 - a)
        def solve(init):
            return scipy.optimize.brentq(lambda x: x**2 - a, 0.0, 5.0)

        return solve(1.0)

    with pytest.raises(TracerLeakError, match="solver solve uses a traced value"):
        fg.grad(of)(2.0)


def test_too_few_equations():
    solve = fg.implicit_diff(lambda x, a: x[0] - a)(lambda init, a: np.ones(2))
    with pytest.raises(ShapeError, match="1 equations and 2 unknowns"):
        fg.jacobian(solve, argnums=1)(np.ones(2), 1.0)


def test_singular_jacobian():
    solve = fg.implicit_diff(lambda x, a: x[0] * np.ones(2) - a)(lambda init, a: np.ones(2))
    with pytest.raises(np.linalg.LinAlgError, match=r"the solution of .* has no derivative"):
        fg.jacobian(solve, argnums=1)(np.ones(2), 1.0)


def test_argnums_out_of_range():
    solve = fg.implicit_diff(lambda x, a: x - a, argnums=3)(lambda init, a: a)
    with pytest.raises(ArgumentError, match="argnums=3 of implicit_diff is out of range"):
        fg.grad(solve, argnums=1)(1.0, 1.0)


def test_call_without_an_initial_guess():
    solve = fg.implicit_diff(lambda x, a: x - a)(lambda init, a: a)
    with pytest.raises(ArgumentError, match="by position"):
        solve(init=1.0, a=1.0)


def test_optimality_must_be_a_function():
    with pytest.raises(ArgumentError, match="implicit_diff takes a function"):
        fg.implicit_diff(3.0)
