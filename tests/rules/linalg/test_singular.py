"""Singular values and vectors: known derivatives, null spaces, repeated values and zeros."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.errors import RepeatedValueWarning

TALL = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.25]])
WIDE = np.array([[1, 2 - 1j, 0.5], [0.25j, -1, 3]])
G = np.array([[1.0, -2.0, 0.5], [3.0, 0.7, -1.1], [0.4, 2.2, -0.6]])
TWICE = np.diag([2.0, 2.0, 5.0])
Q = np.array([[0.6, 0.8, 0.0], [-0.8, 0.6, 0.0], [0.0, 0.0, 1.0]])
Q = Q @ np.array([[1.0, 0.0, 0.0], [0.0, 0.28, 0.96], [0.0, -0.96, 0.28]])


def both_modes(f, x):
    """Return the gradient of `f` by reverse and by forward mode."""
    basis = np.eye(x.size).reshape((x.size, *x.shape))
    forward = np.array([fg.jvp(f, (x,), (e,))[1] for e in basis]).reshape(x.shape)
    return fg.grad(f)(x), forward


def length(a):
    """Return the Frobenius norm, of the matrix put together again."""
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return np.linalg.norm((u * s) @ vh)


def nuclear(a):
    return np.sum(np.linalg.svdvals(a))


def polar(a):
    u, _, vh = np.linalg.svd(a, full_matrices=False)
    return np.sum(u @ vh * G)


def test_result_is_the_named_tuple_of_numpy():
    for hermitian in (False, True):
        out, _ = fg.vjp(lambda a, h=hermitian: np.linalg.svd(a, hermitian=h), G)
        assert type(out) is type(np.linalg.svd(G))


def test_hermitian_form_is_bit_identical_to_numpy():
    a = G + G.T
    out, _ = fg.vjp(lambda a: np.linalg.svd(a, hermitian=True), a)
    for got, expected in zip(out, np.linalg.svd(a, hermitian=True), strict=True):
        assert got.tobytes() == expected.tobytes()


def test_error_is_that_of_numpy():
    with pytest.raises(np.linalg.LinAlgError, match="1-dimensional array given"):
        fg.vjp(np.linalg.svd, np.ones(3))


def test_gradient_of_the_sum_of_squares():
    for bar in both_modes(lambda a: np.sum(np.linalg.svdvals(a) ** 2), TALL):
        assert_allclose(bar, 2 * TALL, rtol=1e-14)


def test_gradient_of_the_spectral_norm():
    # The largest singular value of a product of two vectors is that of their lengths.
    a = np.outer([3.0, 4.0], [1.0, 2.0, 2.0])
    for bar in both_modes(lambda a: np.linalg.svd(a, compute_uv=False)[0], a):
        assert_allclose(bar, a / 15, atol=1e-15)


def test_volume_of_a_square_matrix():
    bar = fg.grad(lambda a: np.sum(np.log(np.linalg.svdvals(a))))(G)
    assert_allclose(bar, np.linalg.inv(G).T, rtol=1e-12)


def test_complex_svd_agrees_with_jax():
    weights = np.array([[1, -2j, 3], [0.5j, 1, 4]])

    def f(x):
        u, s, vh = np.linalg.svd(x, full_matrices=False)
        sizes = np.abs(u) ** 2 * np.array([[1, 3], [-2, 0.5]])
        return np.real(np.sum((u @ vh) * weights)) + np.sum(sizes) + s[0] * s[1] ** 2

    # jax 0.10.2
    expected = [
        [6.69262426 - 0.04360482j, 12.07690534 + 4.67322445j, 4.9072559 + 2.07917282j],
        [0.2080371 - 0.95579677j, -0.35933503 - 1.16687217j, 6.51870618 - 0.38574959j],
    ]
    assert_allclose(fg.grad(f)(WIDE), expected, rtol=1e-6)


def test_polar_factor_turns_by_the_antisymmetric_part():
    # At the identity: a step x leads to the rotation (x - x^T)/2.
    def factor(a):
        u, _, vh = np.linalg.svd(a)
        return u @ vh

    _, dot = fg.jvp(factor, (np.eye(3),), (G,))
    assert_allclose(dot, (G - G.T) / 2, atol=1e-15)
    assert_allclose(fg.grad(polar)(np.eye(3)), (G - G.T) / 2, atol=1e-15)


def test_third_derivative_of_a_trace():
    def f(t):
        return np.sum(np.linalg.svdvals(TALL * t) ** 4)

    fourth = np.trace(TALL.T @ TALL @ TALL.T @ TALL)
    assert_allclose(fg.grad(fg.grad(fg.grad(f)))(0.5), 24 * 0.5 * fourth, rtol=1e-10)


# Beyond the last singular value


@pytest.mark.parametrize("a", [TALL, TALL.T])
def test_projector_on_the_null_space(a):
    wide = a.shape[0] < a.shape[1]

    def f(a):
        u, _, vh = np.linalg.svd(a)
        n = vh[2:].T if wide else u[:, 2:]
        return np.sum(n @ n.T * G)

    def by_inverse(a):
        a = a.T if wide else a
        return np.sum((np.eye(3) - a @ np.linalg.solve(a.T @ a, a.T)) * G)

    for bar in both_modes(f, a):
        assert_allclose(bar, fg.grad(by_inverse)(a), atol=1e-13)


def test_vectors_of_the_null_space_do_not_turn_among_themselves():
    a = TALL[:, :1]
    u, u_dot = fg.jvp(lambda a: np.linalg.svd(a)[0], (a,), (G[:, :1],))
    assert_allclose(u.T @ u_dot, -(u_dot.T @ u), atol=1e-15)
    assert_allclose(u[:, 1:].T @ u_dot[:, 1:], np.zeros((2, 2)), atol=1e-15)


# Repeated values


def test_norm_of_a_diagonal_matrix_with_a_repeated_value():
    for bar in both_modes(length, TWICE):
        assert_allclose(bar, TWICE / np.sqrt(33), rtol=1e-15)


def test_norm_where_values_are_equal_but_for_rounding():
    a = Q @ TWICE @ Q.T[::-1]
    for bar in both_modes(length, a):
        assert_allclose(bar, a / np.sqrt(33), atol=1e-14)


def test_gradient_that_asks_for_single_vectors_warns():
    with pytest.warns(RepeatedValueWarning, match="singular vectors") as caught:
        fg.grad(lambda a: np.linalg.svd(a)[0][0, 1] * np.linalg.svd(a)[0][1, 1])(TWICE)
    assert caught[0].filename == __file__


def test_function_that_has_repeated_values_apart_warns():
    def f(a):
        u, s, vh = np.linalg.svd(a)
        return np.sum((u * s**2) @ vh * G)

    with pytest.warns(RepeatedValueWarning):
        fg.grad(f)(TWICE)


# Zeros


@pytest.mark.parametrize("shape", [(2, 2), (3, 2), (2, 3)])
def test_singular_values_of_the_zero_matrix_have_gradient_zero(shape):
    for f in (nuclear, lambda a: np.linalg.svd(a)[1][0], length):
        for bar in both_modes(f, np.zeros(shape)):
            assert_array_equal(bar, np.zeros(shape))


@pytest.mark.parametrize("f", [nuclear, lambda a: np.sum(np.linalg.svd(a, False)[1])])
@pytest.mark.parametrize("shape", [(2, 2), (3, 2), (2, 3)])
def test_nuclear_norm_of_a_singular_matrix_has_the_least_subgradient(f, shape):
    for bar in both_modes(f, np.ones(shape)):
        assert_allclose(bar, np.ones(shape) / np.sqrt(shape[0] * shape[1]), rtol=1e-14)


@pytest.mark.parametrize("shape", [(2, 2), (3, 2), (2, 3)])
def test_norm_of_a_singular_matrix(shape):
    for bar in both_modes(length, np.ones(shape)):
        assert_allclose(bar, np.ones(shape) / np.sqrt(shape[0] * shape[1]), rtol=1e-14)


def test_polar_factor_of_a_singular_matrix_warns():
    with pytest.warns(RepeatedValueWarning, match="zero singular value"):
        bar = fg.grad(polar)(np.diag([1.0, 0.0, 0.0]))
    assert np.all(np.isfinite(bar))


def test_vector_of_a_zero_value_of_a_tall_matrix_warns():
    with pytest.warns(RepeatedValueWarning, match="zero singular value"):
        fg.grad(lambda a: np.linalg.svd(a, False)[0][0, 1] ** 2)(np.ones((3, 2)))


def test_singular_matrix_of_a_stack_does_not_disturb_others():
    stack = np.stack([np.zeros((3, 2)), TALL])
    bars = fg.grad(lambda a: np.sum(np.linalg.svdvals(a)))(stack)
    assert_array_equal(bars[0], np.zeros((3, 2)))
    assert_allclose(bars[1], fg.grad(nuclear)(TALL), rtol=1e-14)
