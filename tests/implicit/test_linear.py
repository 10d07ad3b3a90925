"""`custom_linear_solve`: any solver, with the derivatives of `numpy.linalg.solve`."""

import numpy as np
import pytest
import scipy.sparse.linalg as sparse
from numpy.testing import assert_allclose

import funcgrad as fg
from funcgrad.errors import DtypeError, MissingRuleError, ShapeError

A = np.array([[4.0, 1.0], [2.0, 3.0]])
B = np.array([1.0, 2.0])


def by_scipy(matvec, b):
    operator = sparse.LinearOperator((b.size, b.size), matvec=matvec)
    return sparse.gmres(operator, b, rtol=1e-14)[0]


def by_matrix(matvec, b):
    return np.linalg.solve(fg.jacobian(matvec)(b), b)


@pytest.fixture(params=[by_scipy, by_matrix], ids=lambda solve: solve.__name__)
def solution(request):
    solve = request.param
    return lambda a, b: fg.custom_linear_solve(lambda x: a @ x, b, solve, solve)


def same(transform, solution, rtol=1e-11):
    """Check that a transform makes of it what it makes of NumPy's solution."""
    found, expected = (fg.tree.leaves(transform(fun)) for fun in (solution, np.linalg.solve))
    for got, want in zip(found, expected, strict=True):
        assert_allclose(got, want, rtol=rtol, atol=1e-13)


def test_value(solution):
    assert_allclose(solution(A, B), [0.1, 0.6], rtol=1e-13)


@pytest.mark.parametrize("jacobian", [fg.jacrev, fg.jacfwd])
def test_jacobians(solution, jacobian):
    same(lambda fun: jacobian(fun, argnums=(0, 1))(A, B), solution)


@pytest.mark.parametrize("outer", [fg.jacrev, fg.jacfwd])
@pytest.mark.parametrize("inner", [fg.jacrev, fg.jacfwd])
def test_second_derivatives(solution, outer, inner):
    same(lambda fun: outer(inner(fun, argnums=(0, 1)), argnums=(0, 1))(A, B), solution)


def test_vmap(solution):
    matrices = np.stack([A, A + np.eye(2)])
    same(lambda fun: fg.vmap(fun, in_axes=(0, None))(matrices, B), solution)


def test_vmap_of_gradients(solution):
    matrices = np.stack([A, A + np.eye(2)])

    def gradients(fun):
        return fg.vmap(fg.grad(lambda a: np.sum(fun(a, B) ** 2)))(matrices)

    same(gradients, solution)


def test_pytrees():
    def of(s):
        def matvec(x):
            return {"u": 2 * s * x["u"], "v": x["v"] - s * x["u"]}

        def solve(matvec, b):
            u = b["u"] / matvec({"u": 1.0, "v": 0.0})["u"]
            return {"u": u, "v": b["v"] - matvec({"u": u, "v": 0.0})["v"]}

        return fg.custom_linear_solve(matvec, {"u": 3.0, "v": 1.0}, solve)

    found = fg.jacfwd(of)(2.0)  # u = 3 / (2 s), v = 1 + 3 / 2
    assert_allclose([found["u"], found["v"]], [-3 / 8, 0.0], atol=1e-14)


def test_symmetric_system_uses_one_solver():
    spd = A @ A.T

    def of(b):
        return fg.custom_linear_solve(lambda x: spd @ x, b, by_scipy, symmetric=True)

    assert_allclose(fg.jacrev(of)(B), np.linalg.inv(spd), rtol=1e-11)


def test_transposed_system_is_solved_by_its_own_solver():
    seen = []

    def solve_transposed(vecmat, b):
        seen.append(fg.jacobian(vecmat)(b))
        return np.linalg.solve(seen[-1], b)

    fg.grad(
        lambda b: np.sum(fg.custom_linear_solve(lambda x: A @ x, b, by_matrix, solve_transposed))
    )(B)
    assert_allclose(seen[0], A.T)


def test_complex_transpose_is_without_conjugation():
    matrix = np.array([[2 + 1j, 1.0], [0.5j, 3.0]])

    def first(solve):
        return fg.grad(lambda b: np.real(solve(b)[0]))(B + 0j)

    found = first(
        lambda b: fg.custom_linear_solve(
            lambda x: matrix @ x,
            b,
            lambda matvec, b: np.linalg.solve(matrix, b),
            lambda vecmat, b: np.linalg.solve(matrix.T, b),
        )
    )
    assert_allclose(found, np.linalg.inv(matrix)[0], rtol=1e-13)


def test_auxiliary_output():
    def solve(matvec, b):
        return np.linalg.solve(A, b), {"residual": 0.0}

    def of(b):
        x, aux = fg.custom_linear_solve(lambda x: A @ x, b, solve, symmetric=True, has_aux=True)
        return x + aux["residual"]

    assert_allclose(fg.jacfwd(of)(B), np.linalg.inv(A), rtol=1e-13)


def test_reverse_mode_without_a_transposed_solver():
    with pytest.raises(MissingRuleError, match="no transpose_solve"):
        fg.jacrev(lambda b: fg.custom_linear_solve(lambda x: A @ x, b, by_matrix))(B)


def test_product_of_another_structure():
    with pytest.raises(DtypeError, match="the product of custom_linear_solve"):
        fg.jacfwd(lambda b: fg.custom_linear_solve(lambda x: (x, x), b, lambda matvec, b: b))(B)


def test_solution_of_another_shape():
    with pytest.raises(ShapeError, match="the solution of custom_linear_solve"):
        fg.custom_linear_solve(lambda x: A @ x, B, lambda matvec, b: b[:1])


def test_integer_right_side():
    with pytest.raises(DtypeError, match="the right side"):
        fg.custom_linear_solve(lambda x: A @ x, np.array([1, 2]), by_matrix)
