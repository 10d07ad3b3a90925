"""Eigenvalues and eigenvectors: known derivatives, gauges, repeated values."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.errors import RepeatedValueWarning

H = np.array([[2, 0.5 - 1j, 0.25j], [0.5 + 1j, -1, 1.5], [-0.25j, 1.5, 0.5]])
B = np.array([[1.0, -2.0, 0.3], [2.0, 0.5, 0.1], [0.2, -0.4, 3.0]])
G = np.array([[1.0, -2.0, 0.5], [3.0, 0.7, -1.1], [0.4, 2.2, -0.6]])
TWICE = np.diag([2.0, 2.0, 5.0])
# Orthogonal; the elements are exact in decimal but not in binary.
Q = np.array([[0.6, 0.8, 0.0], [-0.8, 0.6, 0.0], [0.0, 0.0, 1.0]])
Q = Q @ np.array([[1.0, 0.0, 0.0], [0.0, 0.28, 0.96], [0.0, -0.96, 0.28]])
SYMMETRIC = (G + G.T) / 2


def symmetric(x):
    return (x + x.swapaxes(-1, -2)) / 2


def both_modes(f, x):
    """Return the gradient of `f` by reverse and by forward mode."""
    basis = np.eye(x.size).reshape((x.size, *x.shape))
    forward = np.array([fg.jvp(f, (x,), (e,))[1] for e in basis]).reshape(x.shape)
    return fg.grad(f)(x), forward


def function_of(fun, weights):
    """Return the sum of the elements of a function of a symmetric matrix, each with a weight."""

    def f(a):
        w, v = np.linalg.eigh(a)
        return np.sum((v * fun(w)) @ v.T * weights)

    return f


# What comes back


def test_results_are_named_tuples_of_numpy():
    for fun in (np.linalg.eigh, np.linalg.eig):
        out, _ = fg.vjp(fun, SYMMETRIC)
        assert type(out) is type(fun(SYMMETRIC))


def test_results_can_be_taken_by_name():
    bar = fg.grad(lambda a: np.sum(np.linalg.eigh(a).eigenvalues ** 2))(SYMMETRIC)
    assert_allclose(bar, 2 * SYMMETRIC, atol=1e-14)


@pytest.mark.parametrize("fun", [np.linalg.eigh, np.linalg.eigvalsh, np.linalg.eig])
def test_errors_are_those_of_numpy(fun):
    for x in (np.ones((2, 3)), np.ones(3)):
        with pytest.raises(np.linalg.LinAlgError) as expected:
            fun(x)
        with pytest.raises(np.linalg.LinAlgError) as caught:
            fg.vjp(fun, x)
        assert str(caught.value) == str(expected.value)


def test_unknown_triangle_is_refused_as_by_numpy():
    with pytest.raises(ValueError, match="UPLO argument must be 'L' or 'U'"):
        fg.vjp(lambda a: np.linalg.eigh(a, "X"), SYMMETRIC)


def test_real_matrix_with_complex_eigenvalues_has_a_real_gradient():
    bar = fg.grad(lambda a: np.imag(np.linalg.eigvals(a)[0]))(np.array([[0.0, 1.0], [-1.0, 0.0]]))
    # The eigenvalues of [[0, b], [-c, 0]] are +-i sqrt(b c).
    assert bar.dtype == np.float64
    assert_allclose(bar, [[0, 0.5], [-0.5, 0]], atol=1e-15)


# Known values


def test_gradient_of_the_eigenvalues_of_two_by_two():
    # (a + c)/2 +- sqrt((a - c)**2/4 + b**2) for [[a, b], [b, c]] = [[1, 2], [2, 4]]: 0 and 5.
    for bar in both_modes(lambda a: np.linalg.eigvalsh(a)[1], np.array([[1.0, 2.0], [2.0, 4.0]])):
        assert_allclose(bar, [[0.2, 0.4], [0.4, 0.8]], atol=1e-15)


def test_gradient_of_the_logarithm_of_the_determinant_is_the_inverse():
    a = SYMMETRIC @ SYMMETRIC + np.eye(3)
    for fun in (np.linalg.eigvalsh, np.linalg.eigvals):
        bar = fg.grad(lambda a, fun=fun: np.sum(np.log(fun(a))))(a)
        assert_allclose(bar, np.linalg.inv(a), rtol=1e-12)


def test_gradient_of_the_square_root_solves_sylvesters_equation():
    a = SYMMETRIC @ SYMMETRIC + np.eye(3)
    direction = symmetric(np.cos(np.arange(9.0)).reshape(3, 3))

    def root(a):
        w, v = np.linalg.eigh(a)
        return (v * np.sqrt(w)) @ v.T

    r, r_dot = fg.jvp(root, (a,), (direction,))
    assert_allclose(r @ r_dot + r_dot @ r, direction, atol=1e-13)


def test_exponential_of_a_general_matrix_commutes_with_its_derivative_along_itself():
    def exponential(a):
        w, v = np.linalg.eig(a)
        return np.real((v * np.exp(w)) @ np.linalg.inv(v))

    out, out_dot = fg.jvp(exponential, (B,), (B,))
    assert_allclose(out_dot, B @ out, rtol=1e-12)


def test_eigenvalues_are_homogeneous():
    # So of a large matrix too, whose eigenvalues LAPACK orders otherwise if asked for vectors.
    a = np.sin(np.arange(150.0**2) ** 1.5).reshape(150, 150)
    w, w_dot = fg.jvp(np.linalg.eigvals, (a,), (a,))
    assert_allclose(w_dot, w, atol=1e-9)


def test_eigenvalues_of_a_large_complex_matrix_are_homogeneous():
    a = np.exp(1j * np.arange(150.0**2) ** 1.5).reshape(150, 150)
    w, w_dot = fg.jvp(np.linalg.eigvals, (a,), (a,))
    assert_allclose(w_dot, w, atol=1e-9)


def test_third_derivative_of_a_trace():
    for eigenvalues in (np.linalg.eigvalsh, np.linalg.eigvals):

        def f(t, eigenvalues=eigenvalues):
            return np.sum(np.real(eigenvalues(SYMMETRIC + t * Q @ TWICE @ Q.T) ** 3))

        cubed = fg.grad(fg.grad(fg.grad(f)))(0.3)
        assert_allclose(cubed, 6 * (8 + 8 + 125), rtol=1e-9)


def test_complex_eigh_agrees_with_jax():
    def f(x):
        w, v = np.linalg.eigh(x)
        sizes = np.abs(v) ** 2 * np.array([[1, -2, 3], [0.5, 1, 4], [2, 0, -1]])
        return np.sum(sizes) + np.sum(np.sin(w) * np.array([1.0, 2.0, 3.0]))

    # jax 0.10.2
    upper = [-0.61333159 - 0.6957729j, -1.06178055 - 1.1381706j, -0.07378721 + 0.17696343j]
    bar = fg.grad(f)(H)
    assert_allclose(np.diagonal(bar), [-1.15191653, -0.70159181, -0.42148159], rtol=1e-7)
    assert_allclose(bar[np.triu_indices(3, 1)], upper, rtol=1e-7)
    assert_allclose(bar, bar.conj().T, atol=1e-15)


def test_eig_agrees_with_pytorch():
    def f(x):
        w, v = np.linalg.eig(x)
        sizes = np.abs(v) ** 2 * np.array([[1, 1, -2], [0.5, 0.5, 1], [2, 2, 0]])
        turning = np.sum(np.imag(w) ** 2) * np.real(w[2])
        return np.sum(sizes) + turning + np.sum(np.abs(w))

    # torch 2.13
    expected = [
        [-1.21736862, -13.04424739, -2.11361709],
        [12.5487898, 1.78724642, -0.40606533],
        [-0.4926129, 1.3179405, 8.88215936],
    ]
    assert_allclose(fg.grad(f)(B), expected, rtol=1e-7)


# Gauges


def test_phase_of_eigenvectors_does_not_matter():
    # exp(i t) times the eigenvectors, by a unitary diagonal change of basis and back.
    turn = np.exp(1j * np.array([0.3, -1.1, 2.0]))

    def f(x):
        w, v = np.linalg.eigh(x)
        return np.sum(np.real((v * np.exp(w)) @ np.conj(v).T * H))

    def turned(x):
        w, v = np.linalg.eigh(np.conj(turn)[:, None] * x * turn)
        v = turn[:, None] * v
        return np.sum(np.real((v * np.exp(w)) @ np.conj(v).T * H))

    assert_allclose(fg.grad(f)(H), fg.grad(turned)(H), atol=1e-12)


def test_general_eigenvectors_keep_their_length_and_their_largest_element_real():
    v, v_dot = fg.jvp(lambda a: np.linalg.eig(a)[1], (B + 0.3j * G,), (G + 1j * B,))
    assert_allclose(np.real(np.sum(np.conj(v) * v_dot, axis=0)), 0, atol=1e-14)
    largest = np.argmax(np.abs(v), axis=0), np.arange(3)
    assert_allclose(np.imag(v_dot[largest]), 0, atol=1e-14)


# One triangle or both


@pytest.mark.parametrize("UPLO", ["L", "U", "l", "u"])
def test_gradient_of_a_symmetric_matrix_is_symmetric(UPLO):
    bar = fg.grad(lambda a: np.linalg.eigvalsh(a, UPLO)[0])(SYMMETRIC)
    assert_array_equal(bar, bar.T)


@pytest.mark.parametrize("UPLO", ["L", "U"])
def test_gradient_of_one_triangle_counts_it_twice(UPLO):
    keep = np.tril if UPLO == "L" else np.triu
    full = fg.grad(lambda a: np.linalg.eigvalsh(a, UPLO)[0])(SYMMETRIC)
    bar = fg.grad(lambda a: np.linalg.eigvalsh(a, UPLO)[0])(keep(SYMMETRIC))
    assert_allclose(bar, keep(2 * full - np.diag(np.diag(full))), rtol=1e-13)


def test_each_matrix_of_a_stack_is_read_in_its_own_way():
    stack = np.stack([SYMMETRIC, np.tril(SYMMETRIC)])
    bars = fg.grad(lambda a: np.sum(np.linalg.eigvalsh(a)[:, 0]))(stack)
    for bar, a in zip(bars, stack, strict=True):
        assert_allclose(bar, fg.grad(lambda a: np.linalg.eigvalsh(a)[0])(a), rtol=1e-13)


def test_vmap_reads_each_matrix_in_its_own_way():
    stack = np.stack([SYMMETRIC, np.tril(SYMMETRIC)])
    gradient = fg.grad(lambda a: np.linalg.eigvalsh(a)[0])
    for bar, a in zip(fg.vmap(gradient)(stack), stack, strict=True):
        assert_allclose(bar, gradient(a), rtol=1e-13)


# Repeated values


def test_matrix_put_together_again_at_a_multiple_of_the_identity():
    weights = np.array([[1.0, 2.0], [4.0, 8.0]])
    for bar in both_modes(function_of(np.positive, weights), 3 * np.eye(2)):
        assert_allclose(bar, [[1, 3], [3, 8]], rtol=1e-14)


def test_matrix_put_together_again_where_the_values_are_equal_but_for_rounding():
    a = symmetric(Q @ (3 * np.eye(3)) @ Q.T)
    for bar in both_modes(function_of(np.positive, G), a):
        assert_allclose(bar, symmetric(G), rtol=1e-13)


@pytest.mark.parametrize("a", [TWICE, symmetric(Q @ TWICE @ Q.T)])
def test_projector_on_a_repeated_eigenspace(a):
    def f(a):
        v = np.linalg.eigh(a)[1][:, :2]
        return np.sum(v @ v.T * G)

    # The same projector as a rational function, (5 - a)/3 at `a`, by its derivative
    # -(p da r + r da p) with r = (1 - p)/3.
    p = (5 * np.eye(3) - a) / 3
    r = (np.eye(3) - p) / 3
    g = symmetric(G)
    for bar in both_modes(f, a):
        assert_allclose(bar, -(p @ g @ r + r @ g @ p), atol=1e-14)


def test_sum_over_a_repeated_eigenvalue():
    for bar in both_modes(lambda a: np.sum(np.exp(np.linalg.eigvalsh(a))), 2 * np.eye(3)):
        assert_allclose(bar, np.exp(2) * np.eye(3), atol=1e-14)


def test_function_of_the_zero_matrix_is_finite():
    for bar in both_modes(lambda a: np.sum(np.linalg.eigh(a)[0] ** 2), np.zeros((2, 2))):
        assert_array_equal(bar, np.zeros((2, 2)))


def test_general_matrix_with_a_repeated_eigenvalue():
    # 2 on a plane that is not perpendicular to the eigenvector of 5.
    s = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    a = s @ TWICE @ np.linalg.inv(s)
    for fun in (np.linalg.eigvals, lambda a: np.linalg.eig(a)[0]):
        bar = fg.grad(lambda a, fun=fun: np.sum(fun(a) ** 3))(a)
        assert_allclose(bar, 3 * (a @ a).T, atol=1e-12)


UNDEFINED = {
    "one of two vectors": lambda a: np.linalg.eigh(a)[1][0, 0] * np.linalg.eigh(a)[1][1, 0],
    "a function of the matrix": function_of(np.sqrt, G),
    "one of two general vectors": lambda a: np.linalg.eig(a)[1][0, 1] * np.linalg.eig(a)[1][1, 1],
}


@pytest.mark.parametrize("f", UNDEFINED.values(), ids=UNDEFINED.keys())
def test_gradient_that_asks_for_single_vectors_warns(f):
    with pytest.warns(RepeatedValueWarning, match="repeated eigenvalue") as caught:
        bar = fg.grad(f)(TWICE)
    assert caught[0].filename == __file__
    assert np.all(np.isfinite(bar))


def test_function_of_a_multiple_of_the_identity_warns():
    with pytest.warns(RepeatedValueWarning):
        fg.grad(function_of(np.sqrt, G))(2 * np.eye(3))


def test_values_apart_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fg.grad(UNDEFINED["one of two vectors"])(TWICE + np.diag([0, 1e-6, 0]))


def test_a_zero_cotangent_wins_where_there_are_no_eigenvectors():
    # A matrix without a basis of eigenvectors: the branch not taken has no derivative.
    defective = np.array([[0.0, 1.0], [0.0, 0.0]])

    def f(a):
        return np.where(np.array(True), np.sum(a), np.sum(np.linalg.eigvals(a)))

    assert_array_equal(fg.grad(f)(defective), np.ones((2, 2)))
