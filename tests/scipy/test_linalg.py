"""scipy.linalg for traced values: closed values, SciPy's results and errors, what is refused."""

import doctest
import inspect

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.errors import MissingRuleError
from funcgrad.scipy import linalg

A = np.array([[2.0, 1.0], [0.0, 4.0]])
P = np.array([[4.0, 2.0], [2.0, 5.0]])  # positive definite
E = np.array([[0.0, 1.0], [0.0, 0.0]])
EXP_A = np.array([[np.exp(2), (np.exp(4) - np.exp(2)) / 2], [0.0, np.exp(4)]])


# The namespace


def test_plain_arguments_go_to_scipy_as_they_are():
    assert_array_equal(linalg.expm(A), scipy.linalg.expm(A))
    assert linalg.cho_factor(P)[1] is scipy.linalg.cho_factor(P)[1]
    assert type(linalg.det(A)) is type(scipy.linalg.det(A))


def test_other_names_are_those_of_scipy():
    assert_array_equal(linalg.hilbert(2), scipy.linalg.hilbert(2))
    assert linalg.LinAlgError is np.linalg.LinAlgError
    with pytest.raises(AttributeError, match=r"funcgrad\.scipy\.linalg.*no_such_name"):
        linalg.no_such_name  # noqa: B018


@pytest.mark.parametrize("name", linalg.__all__)
def test_replaced_functions_have_names_and_signatures_of_scipy(name):
    ours, theirs = getattr(linalg, name), getattr(scipy.linalg, name)
    assert ours.__name__ == theirs.__name__
    assert inspect.signature(ours) == inspect.signature(theirs)
    assert ours.__doc__


@pytest.mark.parametrize("name", sorted(set(linalg._INSTEAD) & set(dir(scipy.linalg))))
def test_functions_without_a_rule_say_what_to_use(name):
    with pytest.raises(MissingRuleError, match=rf"scipy\.linalg\.{name} has no rule") as raised:
        fg.grad(lambda a: getattr(linalg, name)(a))(A)
    assert linalg._INSTEAD[name] in str(raised.value)


def test_refused_functions_take_plain_arrays():
    assert_array_equal(linalg.schur(A)[0], scipy.linalg.schur(A)[0])


@pytest.mark.parametrize(
    "call",
    [
        lambda a: linalg.eigh(a, P),
        lambda a: linalg.eigh(P, a),
        lambda a: linalg.eigh(a, subset_by_index=[0, 0]),
        lambda a: linalg.qr(a, pivoting=True),
        lambda a: linalg.qr(a, mode="r"),
        lambda a: linalg.pinv(a, return_rank=True),
        lambda a: linalg.polar(a[:1]),
    ],
)
def test_options_without_a_rule_are_refused(call):
    with pytest.raises(MissingRuleError):
        fg.vjp(call, P)


@pytest.mark.parametrize(
    "call",
    [
        lambda a: linalg.solve(a - a, np.ones(2)),
        lambda a: linalg.inv(a - a),
        lambda a: linalg.cholesky(-a),
        lambda a: linalg.cho_factor(-a),
        lambda a: linalg.solve_triangular(a - a, np.ones(2)),
        lambda a: linalg.solve_banded((1, 0), a - a, np.ones(2)),
        lambda a: linalg.solve_banded((1, 1), a, np.ones(2)),
        lambda a: linalg.expm(a[:1]),
        lambda a: linalg.det(a * np.nan),
        lambda a: linalg.companion(a[0, :1]),
    ],
)
def test_errors_are_those_of_scipy(call):
    with pytest.raises(ValueError, match=r".") as expected:
        call(A)
    with pytest.raises(expected.type) as raised:
        fg.vjp(call, A)
    assert str(raised.value) == str(expected.value)


# Functions of matrices


def test_exponential_of_commuting_matrices():
    a = np.diag([1.0, 2.0])
    assert_allclose(fg.jvp(linalg.expm, (a,), (a,))[1], a @ np.diag(np.exp([1, 2])), rtol=1e-14)


def test_exponential_has_divided_differences_beside_the_diagonal():
    a = np.diag([1.0, 3.0])
    dot = fg.jvp(linalg.expm, (a,), (E,))[1]
    assert_allclose(dot, E * (np.exp(3) - np.exp(1)) / 2, rtol=1e-14)


def test_gradient_of_the_trace_of_an_exponential():
    bar = fg.grad(lambda a: np.trace(linalg.expm(a)))(A)
    assert_allclose(bar, EXP_A.T, rtol=1e-13)


def test_third_derivative_of_an_exponential():
    # Along the identity each derivative of expm(a) is expm(a).
    def along(f):
        return lambda a: fg.jvp(f, (a,), (np.eye(2),))[1]

    assert_allclose(along(along(along(linalg.expm)))(A), EXP_A, rtol=1e-12)


def test_exponential_of_a_rotation():
    # expm(t [[0, -1], [1, 0]]) turns by t.
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    bar = fg.grad(lambda t: linalg.expm(t * turn)[1, 0])(0.3)
    assert_allclose(bar, np.cos(0.3), rtol=1e-14)


def test_complex_exponential():
    z = np.array([[0.5 + 0.3j]])
    bar = fg.vjp(linalg.expm, z)[1](np.array([[1 + 0j]]))[0]
    assert_allclose(bar, np.exp(z), rtol=1e-14)


def test_exponentials_of_a_stack_by_vmap():
    stack = np.stack([A, 0 * A])
    assert_allclose(fg.vmap(linalg.expm)(stack), [EXP_A, np.eye(2)], rtol=1e-11)
    bars = fg.vmap(fg.grad(lambda a: np.trace(linalg.expm(a))))(stack)
    assert_allclose(bars, [EXP_A.T, np.eye(2)], rtol=1e-13)


def test_frechet_derivative_can_be_differentiated():
    def f(e):
        return linalg.expm_frechet(np.diag([1.0, 3.0]), e, compute_expm=False)[0, 1]

    assert_allclose(fg.grad(f)(E), E * (np.exp(3) - np.exp(1)) / 2, rtol=1e-14)


def test_root_undoes_the_square():
    def f(a):
        return linalg.sqrtm(a @ a)

    out, dot = fg.jvp(f, (A,), (E,))
    assert_allclose(out, A, rtol=1e-14)
    assert_allclose(dot, E, atol=1e-14)


def test_second_derivative_of_a_root():
    # Along the identity at a diagonal matrix: that of sqrt, -x**(-3/2) / 4.
    def first(a):
        return fg.jvp(linalg.sqrtm, (a,), (np.eye(2),))[1]

    dot = fg.jvp(first, (np.diag([1.0, 4.0]),), (np.eye(2),))[1]
    assert_allclose(dot, np.diag([-1 / 4, -1 / 32]), atol=1e-15)


def test_root_of_a_matrix_with_a_negative_eigenvalue_is_complex():
    out, dot = fg.jvp(linalg.sqrtm, (np.diag([-4.0, 1.0]),), (np.eye(2),))
    assert out.dtype == np.complex128
    assert_allclose(dot, np.diag([1 / 4j, 1 / 2]), atol=1e-15)


def test_logarithm_undoes_the_exponential():
    out, dot = fg.jvp(lambda a: linalg.logm(linalg.expm(a)), (A / 4,), (E + E.T,))
    assert_allclose(out, A / 4, rtol=1e-12, atol=1e-12)
    assert_allclose(dot, E + E.T, rtol=1e-12, atol=1e-12)


def test_gradient_of_the_trace_of_a_logarithm_is_that_of_the_logarithm_of_the_determinant():
    bar = fg.grad(lambda a: np.trace(linalg.logm(a)))(A)
    assert_allclose(bar, np.linalg.inv(A).T, rtol=1e-12, atol=1e-14)


def test_logarithm_of_a_matrix_with_a_negative_eigenvalue():
    out, dot = fg.jvp(linalg.logm, (np.diag([-2.0, 1.0]),), (np.eye(2),))
    assert out.dtype == np.complex128
    assert_allclose(dot, np.diag([-0.5, 1.0]), atol=1e-13)


@pytest.mark.parametrize(
    ("name", "derivative"),
    [
        ("cosm", lambda x: -np.sin(x)),
        ("sinm", np.cos),
        ("tanm", lambda x: 1 / np.cos(x) ** 2),
        ("coshm", np.sinh),
        ("sinhm", np.cosh),
        ("tanhm", lambda x: 1 / np.cosh(x) ** 2),
    ],
)
def test_trigonometric_functions_along_the_identity(name, derivative):
    x = np.array([0.3, 0.7])
    dot = fg.jvp(getattr(linalg, name), (np.diag(x),), (np.eye(2),))[1]
    assert_allclose(dot, np.diag(derivative(x)), atol=1e-14)


def test_fractional_power():
    bar = fg.grad(lambda a: np.trace(linalg.fractional_matrix_power(a, 1.5)))(np.diag([1.0, 4.0]))
    assert_allclose(bar, np.diag([1.5, 3.0]), atol=1e-13)


# Systems


@pytest.mark.parametrize("trans", [0, 1, 2])
def test_triangular_system_reads_one_triangle(trans):
    bar = fg.grad(lambda a: np.sum(linalg.solve_triangular(a, np.ones(2), trans)))(A)
    x = scipy.linalg.solve_triangular(A, np.ones(2), trans)
    y = scipy.linalg.solve_triangular(A, np.ones(2), 1 if trans == 0 else 0)
    expected = -np.outer(y, x) if trans == 0 else -np.outer(x, y)
    assert_allclose(bar, np.triu(expected), rtol=1e-14)


def test_unit_diagonal_is_constant():
    a = np.array([[7.0, 0.0], [3.0, 7.0]])

    def f(a):
        return linalg.solve_triangular(a, np.array([1.0, 1.0]), lower=True, unit_diagonal=True)[1]

    assert_array_equal(fg.grad(f)(a), [[0, 0], [-1, 0]])


def test_cholesky_of_a_diagonal_matrix():
    for lower in (False, True):
        bar = fg.grad(lambda a, lower=lower: np.sum(linalg.cholesky(a, lower=lower)))(
            np.diag([4.0, 9.0])
        )
        assert_allclose(np.diag(bar), [1 / 4, 1 / 6], rtol=1e-14)


@pytest.mark.parametrize("lower", [False, True])
def test_solving_by_a_cholesky_factor_is_solving(lower):
    b = np.array([1.0, 2.0])

    def by_factor(a, b):
        return linalg.cho_solve(linalg.cho_factor(a, lower), b)[0]

    bars = fg.grad(by_factor, argnums=(0, 1))(P, b)
    x, y = np.linalg.solve(P, b), np.linalg.solve(P, [1.0, 0.0])
    assert_allclose(bars[1], y, rtol=1e-13)
    assert_allclose(bars[0], -(np.outer(y, x) + np.outer(x, y)) / 2, rtol=1e-13)


def test_solving_by_lu_factors_is_solving():
    a, b = np.array([[0.1, 2.0], [3.0, 4.0]]), np.array([1.0, 2.0])
    bars = fg.grad(lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b)[0], argnums=(0, 1))(a, b)
    x, y = np.linalg.solve(a, b), np.linalg.solve(a.T, [1.0, 0.0])
    assert_allclose(bars[1], y, rtol=1e-13)
    assert_allclose(bars[0], -np.outer(y, x), rtol=1e-13)


def test_factors_of_a_matrix_of_two_rows():
    # Rows exchanged: l = a / c, and u beside it d, b - a d / c, of [[a, b], [c, d]].
    a, b, c, d = 1.0, 2.0, 4.0, 3.0
    bar = fg.grad(lambda m: linalg.lu(m, p_indices=True)[2][1, 1])(np.array([[a, b], [c, d]]))
    assert_allclose(bar, [[-d / c, 1], [a * d / c**2, -a / c]], rtol=1e-14)


def test_permutation_of_the_rows_is_a_matrix():
    p, lower, upper = fg.vjp(linalg.lu, np.array([[1.0, 2.0], [4.0, 3.0]]))[0]
    assert_array_equal(p, [[0, 1], [1, 0]])
    assert_allclose(p @ lower @ upper, [[1, 2], [4, 3]])


@pytest.mark.parametrize("assume_a", ["gen", "sym", "her", "pos"])
def test_assumptions_do_not_change_a_symmetric_gradient(assume_a):
    b = np.array([1.0, 2.0])
    bar = fg.grad(lambda a: linalg.solve(a, b, assume_a=assume_a)[0])(P)
    x, y = np.linalg.solve(P, b), np.linalg.solve(P, [1.0, 0.0])
    expected = -np.outer(y, x)
    if assume_a != "gen":
        expected = (expected + expected.T) / 2
    assert_allclose(bar, expected, rtol=1e-13)


def dense(ab, below, above):
    """Return the matrix that is stored by diagonals."""
    n = ab.shape[1]
    a = np.zeros((n, n))
    for i in range(n):
        for j in range(max(0, i - below), min(n, i + above + 1)):
            a[i, j] = ab[above + i - j, j]
    return a


def test_banded_system_has_the_gradient_of_the_whole_matrix():
    rng = np.random.default_rng(0)
    below, above = 1, 2
    ab = rng.normal(size=(4, 5))
    ab[above] += 4
    b, weights = rng.normal(size=(2, 5))
    bars = fg.grad(lambda ab, b: weights @ linalg.solve_banded((below, above), ab, b), (0, 1))(
        ab, b
    )
    a = dense(ab, below, above)
    x, y = np.linalg.solve(a, b), np.linalg.solve(a.T, weights)
    assert_allclose(bars[1], y, rtol=1e-12)
    assert_allclose(dense(bars[0], below, above), -np.outer(y, x) * (a != 0), rtol=1e-12)
    assert_array_equal(bars[0][[0, 0, 1, 3], [0, 1, 0, 4]], np.zeros(4))  # the corners


def test_banded_systems_by_vmap():
    rng = np.random.default_rng(1)
    ab, b = rng.normal(size=(3, 3, 4)), rng.normal(size=(3, 4))
    ab[:, 1] += 5
    out = fg.vmap(lambda ab, b: linalg.solve_banded((1, 1), ab, b))(ab, b)
    expected = [np.linalg.solve(dense(m, 1, 1), v) for m, v in zip(ab, b, strict=True)]
    assert_allclose(out, expected, rtol=1e-12)


@pytest.mark.parametrize("lower", [False, True])
def test_hermitian_banded_system_counts_each_element_for_two(lower):
    ab = np.array([[4.0, 5.0], [2.0, 0.0]] if lower else [[0.0, 2.0], [4.0, 5.0]])  # that is P
    b = np.array([1.0, 2.0])
    bar = fg.grad(lambda ab: linalg.solveh_banded(ab, b, lower=lower)[0])(ab)
    x, y = np.linalg.solve(P, b), np.linalg.solve(P, [1.0, 0.0])
    full = -np.outer(y, x)
    off = full[0, 1] + full[1, 0]
    expected = [[full[0, 0], full[1, 1]], [off, 0]] if lower else [[0, off], np.diag(full)]
    assert_allclose(bar, expected, rtol=1e-13)


def test_sylvester_equation_of_numbers():
    # x = q / (a + b)
    a, b, q = (np.array([[value]]) for value in (2.0, 3.0, 10.0))
    bars = fg.grad(lambda *args: linalg.solve_sylvester(*args)[0, 0], (0, 1, 2))(a, b, q)
    assert_allclose(np.ravel(bars), [-10 / 25, -10 / 25, 1 / 5], rtol=1e-14)


def test_sylvester_equation_is_a_system_of_kronecker_products():
    rng = np.random.default_rng(0)
    a, b, q, w = rng.normal(size=(4, 3, 3))
    a, b = a + 3 * np.eye(3), b + 3 * np.eye(3)

    def by_kron(a, b, q):
        system = np.kron(a, np.eye(3)) + np.kron(np.eye(3), b.T)
        return np.sum(w * np.linalg.solve(system, np.ravel(q)).reshape(3, 3))

    got = fg.grad(lambda *args: np.sum(w * linalg.solve_sylvester(*args)), (0, 1, 2))(a, b, q)
    for bar, expected in zip(got, fg.grad(by_kron, (0, 1, 2))(a, b, q), strict=True):
        assert_allclose(bar, expected, rtol=1e-10, atol=1e-12)


def test_lyapunov_equations_of_numbers():
    # x = q / (2 a), and x = q / (1 - a**2)
    a, q = np.array([[0.5]]), np.array([[3.0]])
    bars = fg.grad(lambda *args: linalg.solve_continuous_lyapunov(*args)[0, 0], (0, 1))(a, q)
    assert_allclose(np.ravel(bars), [-6.0, 1.0], rtol=1e-14)
    bars = fg.grad(lambda *args: linalg.solve_discrete_lyapunov(*args)[0, 0], (0, 1))(a, q)
    assert_allclose(np.ravel(bars), [3 / 0.75**2, 1 / 0.75], rtol=1e-14)


# Decompositions


def test_polar_factor_of_two_columns_turns():
    # A rotation stays, to first order, what it turns by: the other factor takes what is symmetric.
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    u_dot, p_dot = fg.jvp(linalg.polar, (np.eye(2),), (turn + np.diag([1.0, 2.0]),))[1]
    assert_allclose(u_dot, turn, atol=1e-15)
    assert_allclose(p_dot, np.diag([1.0, 2.0]), atol=1e-15)


def test_eigenvalues_of_a_diagonal_matrix():
    bar = fg.grad(lambda a: linalg.eigh(a)[0][1])(np.diag([1.0, 2.0]))
    assert_allclose(bar, np.diag([0.0, 1.0]), atol=1e-15)
    bar = fg.grad(lambda a: linalg.eigvalsh(a)[0])(np.diag([1.0, 2.0]))
    assert_allclose(bar, np.diag([1.0, 0.0]), atol=1e-15)


def test_singular_values_of_a_diagonal_matrix():
    for f in (linalg.svdvals, lambda a: linalg.svd(a)[1]):
        bar = fg.grad(lambda a, f=f: f(a)[0])(np.diag([3.0, -5.0]))
        assert_allclose(bar, np.diag([0.0, -1.0]), atol=1e-15)


def test_triangular_factor_of_a_column_is_its_length():
    bar = fg.grad(lambda a: np.abs(linalg.qr(a, mode="economic")[1][0, 0]))(
        np.array([[3.0], [4.0]])
    )
    assert_allclose(bar, [[0.6], [0.8]], rtol=1e-14)


def test_determinant_of_a_singular_matrix():
    bar = fg.grad(linalg.det)(np.array([[2.0, 1.0], [4.0, 2.0]]))
    assert_allclose(bar, [[2, -4], [-1, 2]], rtol=1e-13)


def test_norm_at_the_origin():
    assert_array_equal(fg.grad(linalg.norm)(np.zeros(3)), np.zeros(3))


# Matrices of structure


def test_block_diagonal_matrix_hands_each_block_its_part():
    weights = np.arange(9.0).reshape(3, 3)

    def f(a, b):
        return np.sum(weights * linalg.block_diag(a, b))

    bars = fg.grad(f, (0, 1))(np.ones((1, 1)), np.ones((2, 2)))
    assert_array_equal(bars[0], [[0]])
    assert_array_equal(bars[1], [[4, 5], [7, 8]])


def test_toeplitz_matrix_sums_over_diagonals():
    bar = fg.grad(lambda c: np.sum(linalg.toeplitz(c)))(np.array([1.0, 2.0, 3.0]))
    assert_array_equal(bar, [3, 4, 2])


def test_toeplitz_matrix_of_complex_numbers_has_conjugates_above():
    c = np.array([1 + 0j, 2 + 1j])
    assert_array_equal(fg.vjp(linalg.toeplitz, c)[0], scipy.linalg.toeplitz(c))


def test_toeplitz_matrix_of_a_row_and_a_column():
    # The first number of the row is not used.
    bars = fg.grad(lambda c, r: np.sum(linalg.toeplitz(c, r)), (0, 1))(np.ones(2), np.ones(3))
    assert_array_equal(bars[0], [2, 1])
    assert_array_equal(bars[1], [0, 2, 1])


def test_hankel_and_circulant_matrices():
    bar = fg.grad(lambda c: np.sum(linalg.hankel(c)))(np.ones(3))
    assert_array_equal(bar, [1, 2, 3])
    bar = fg.grad(lambda c: linalg.circulant(c) @ np.array([1.0, 0, 0]) @ np.arange(3.0))(
        np.ones(3)
    )
    assert_array_equal(bar, [0, 1, 2])


def test_companion_matrix_divides_by_the_first_coefficient():
    bar = fg.grad(lambda a: linalg.companion(a)[0, 0])(np.array([2.0, 6.0, 1.0]))
    assert_array_equal(bar, [1.5, -0.5, 0])


# Docstrings

MAIN = [
    "cholesky",
    "det",
    "eigh",
    "expm",
    "expm_frechet",
    "inv",
    "logm",
    "lu_solve",
    "norm",
    "pinv",
    "qr",
    "solve",
    "sqrtm",
    "svd",
]


@pytest.mark.parametrize("name", MAIN)
def test_docstrings_of_the_main_functions_have_an_example_that_runs(name):
    text = getattr(linalg, name).__doc__
    assert f"`scipy.linalg.{name}`" in text
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert len(example.examples) >= 4
    result = doctest.DocTestRunner().run(example)
    assert result.failed == 0


# Stacks of matrices

STACK = np.array(
    [
        [[2.0, -1.0, 0.5], [0.3, 1.5, -0.7], [1.1, 0.4, 3.0]],
        [[0.4, 2.0, 1.0], [1.9, 0.2, -1.0], [-0.6, 0.8, 1.2]],
    ]
)
SIDES = np.array([[[1.0], [2.0], [-1.0]], [[0.5], [0.0], [3.0]]])
OF_STACKS = {
    "eigh": lambda a: linalg.eigh(a + np.swapaxes(a, -1, -2))[0],
    "eigh vectors": lambda a: np.abs(linalg.eigh(a + np.swapaxes(a, -1, -2))[1]),
    "eigvalsh": lambda a: linalg.eigvalsh(a + np.swapaxes(a, -1, -2)),
    "svd": lambda a: linalg.svd(a)[1],
    "svd vectors": lambda a: np.abs(linalg.svd(a[..., :2], full_matrices=False)[0]),
    "lu": lambda a: linalg.lu(a)[2],
    "lu of tall ones": lambda a: linalg.lu(a[..., :2])[1],
    "lu of wide ones": lambda a: linalg.lu(a[..., :2, :], permute_l=True)[1],
    "lu_factor": lambda a: linalg.lu_factor(a)[0],
    "lu_solve": lambda a: linalg.lu_solve(linalg.lu_factor(a), SIDES),
    "lu_solve transposed": lambda a: linalg.lu_solve(linalg.lu_factor(a), SIDES, trans=1),
    "qr": lambda a: np.abs(linalg.qr(a)[1]),
    "solve": lambda a: linalg.solve(a, SIDES),
    "inv": linalg.inv,
    "expm": linalg.expm,
}


@pytest.mark.parametrize("name", OF_STACKS)
def test_stacks_of_matrices_are_differentiated_one_by_one(name):
    function = OF_STACKS[name]
    weights = np.cos(np.arange(function(STACK).size)).reshape(function(STACK).shape)
    out, pullback = fg.vjp(function, STACK)
    assert_array_equal(out, function(STACK))
    direction = np.sin(np.arange(STACK.size)).reshape(STACK.shape)
    h = 1e-5
    slope = (function(STACK + h * direction) - function(STACK - h * direction)) / (2 * h)
    assert_allclose(fg.jvp(function, (STACK,), (direction,))[1], slope, rtol=1e-6, atol=1e-7)
    got = np.sum(pullback(weights)[0] * direction)
    assert_allclose(got, np.sum(weights * slope), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_expm_frechet_has_the_values_and_dtypes_of_scipy(dtype):
    a = A.astype(dtype)
    expected = scipy.linalg.expm_frechet(a, a)
    got = fg.vjp(lambda a: linalg.expm_frechet(a, a), a)[0]
    for x, y in zip(got, expected, strict=True):
        assert_array_equal(x, y)
        assert x.dtype == y.dtype
