"""Norms: known gradients, kinks, ties."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg

ZERO = np.zeros(3)


def both_modes(f, x):
    """Return the gradient of `f` by reverse and by forward mode."""
    basis = np.eye(x.size).reshape((x.size, *x.shape))
    forward = np.array([fg.jvp(f, (x,), (e,))[1] for e in basis]).reshape(x.shape)
    return fg.grad(f)(x), forward


def test_gradient_of_the_length_of_a_vector():
    for bar in both_modes(np.linalg.norm, np.array([3.0, 4.0])):
        assert_allclose(bar, [0.6, 0.8], rtol=1e-15)


@pytest.mark.parametrize("ord", [None, 1, 2, 3, 2.5, 0.5, np.inf])
def test_norm_at_the_origin_has_gradient_zero(ord):
    for bar in both_modes(lambda x: np.linalg.norm(x, ord), ZERO):
        assert_array_equal(bar, ZERO)


@pytest.mark.parametrize("ord", [None, "fro", 1, np.inf])
def test_norm_of_the_zero_matrix_has_gradient_zero(ord):
    for bar in both_modes(lambda x: np.linalg.norm(x, ord), np.zeros((2, 2))):
        assert_array_equal(bar, np.zeros((2, 2)))


def test_squared_norm_at_the_origin_has_gradient_zero():
    for bar in both_modes(lambda x: np.linalg.norm(x) ** 2, ZERO):
        assert_array_equal(bar, ZERO)


def test_vector_norm_at_the_origin_has_gradient_zero():
    for bar in both_modes(np.linalg.vector_norm, ZERO):
        assert_array_equal(bar, ZERO)


def test_second_derivative_at_the_origin_is_finite():
    gradient = fg.grad(np.linalg.norm)
    assert_array_equal(fg.jvp(gradient, (ZERO,), (np.ones(3),))[1], ZERO)


def test_rows_at_the_origin_do_not_disturb_others():
    x = np.array([[0.0, 0.0], [3.0, 4.0]])
    for bar in both_modes(lambda x: np.sum(np.linalg.norm(x, axis=1)), x):
        assert_allclose(bar, [[0, 0], [0.6, 0.8]], rtol=1e-15)


def test_largest_elements_share():
    for bar in both_modes(lambda x: np.linalg.norm(x, np.inf), np.array([2.0, -7.0, 7.0])):
        assert_array_equal(bar, [0, -0.5, 0.5])


def test_smallest_elements_share():
    for bar in both_modes(lambda x: np.linalg.norm(x, -np.inf), np.array([2.0, -2.0, 7.0])):
        assert_array_equal(bar, [0.5, -0.5, 0])


def test_equal_column_sums_share():
    x = np.array([[1.0, -2.0], [-3.0, 2.0]])
    for bar in both_modes(lambda x: np.linalg.norm(x, 1), x):
        assert_array_equal(bar, [[0.5, -0.5], [-0.5, 0.5]])


def test_largest_row_sum():
    x = np.array([[1.0, -2.0], [-3.0, 2.0]])
    for bar in both_modes(lambda x: np.linalg.norm(x, np.inf), x):
        assert_array_equal(bar, [[0, 0], [-1, 1]])


def test_sum_norm_has_slope_zero_at_its_kinks():
    for bar in both_modes(lambda x: np.linalg.norm(x, 1), np.array([2.0, 0.0, -3.0])):
        assert_array_equal(bar, [1, 0, -1])


def test_count_of_elements_has_gradient_zero():
    for bar in both_modes(lambda x: np.linalg.norm(x, 0), np.array([2.0, 0.0])):
        assert_array_equal(bar, [0, 0])


def test_cubic_norm():
    # (1 + 8)**(1/3); the derivative is x**2 / norm**2.
    for bar in both_modes(lambda x: np.linalg.norm(x, 3), np.array([1.0, 2.0])):
        assert_allclose(bar, np.array([1, 4]) / 9 ** (2 / 3), rtol=1e-14)


def test_high_powers_of_large_numbers_do_not_overflow():
    bar = fg.grad(lambda x: np.linalg.norm(x, 3))(np.array([1e100, 2e100]))
    assert_allclose(bar, np.array([1, 4]) / 9 ** (2 / 3), rtol=1e-13)


def test_norm_of_complex_numbers():
    # JAX's convention: df/dx - i df/dy, for f = |z|.
    bar = fg.grad(np.linalg.norm)(np.array([3 + 4j]))
    assert_allclose(bar, [0.6 - 0.8j], rtol=1e-15)


def test_a_zero_cotangent_wins_over_an_infinite_vector():
    def f(x):
        return np.where(np.array(False), np.linalg.norm(x), 1.0)

    for bar in both_modes(f, np.array([np.inf, 1.0])):
        assert_array_equal(bar, [0, 0])


def test_gradients_keep_the_dtype():
    for dtype in (np.float16, np.float32):
        out, bar = fg.value_and_grad(np.linalg.norm)(np.array([3, 4], dtype))
        assert out.dtype == bar.dtype == dtype


def test_spectral_norm_is_the_largest_singular_value():
    # Of a turned diagonal matrix: the outer product of the vectors that belong to it.
    q = np.array([[0.6, -0.8], [0.8, 0.6]])
    for bar in both_modes(lambda x: np.linalg.norm(x, 2), q @ np.diag([3.0, 1.0])):
        assert_allclose(bar, np.outer(q[:, 0], [1, 0]), atol=1e-15)


def test_least_singular_value():
    for bar in both_modes(lambda x: np.linalg.norm(x, -2), np.diag([3.0, -1.0])):
        assert_allclose(bar, [[0, 0], [0, -1]], atol=1e-15)


def test_equal_singular_values_share():
    for ord in (2, -2):
        for bar in both_modes(lambda x, ord=ord: np.linalg.norm(x, ord), 2 * np.eye(2)):
            assert_allclose(bar, np.eye(2) / 2, atol=1e-15)


def test_singular_values_equal_but_for_rounding_share():
    rng = np.random.default_rng(0)
    q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    for bar in both_modes(lambda x: np.linalg.norm(x, 2), q):
        assert_allclose(bar, q / 4, atol=1e-14)


def test_nuclear_norm_of_a_turned_diagonal_matrix():
    q = np.array([[0.6, -0.8], [0.8, 0.6]])
    for bar in both_modes(lambda x: np.linalg.norm(x, "nuc"), q @ np.diag([3.0, 1.0])):
        assert_allclose(bar, q, atol=1e-15)


def test_nuclear_norm_leaves_out_what_is_zero():
    # A matrix of rank 1, whose other singular value is rounding.
    u = np.array([0.6, 0.8])
    for bar in both_modes(lambda x: np.linalg.norm(x, "nuc"), np.outer(u, u)):
        assert_allclose(bar, np.outer(u, u), atol=1e-15)


@pytest.mark.parametrize("ord", [2, -2, "nuc"])
def test_norm_by_singular_values_of_the_zero_matrix_has_gradient_zero(ord):
    for bar in both_modes(lambda x: np.linalg.norm(x, ord), np.zeros((2, 3))):
        assert_array_equal(bar, np.zeros((2, 3)))


def test_second_derivative_of_the_spectral_norm():
    # The largest singular value of [[a, t], [0, b]] is a + a t**2 / (2 (a**2 - b**2)) + ...
    e = np.array([[0.0, 1.0], [0.0, 0.0]])
    gradient = fg.grad(lambda x: np.linalg.norm(x, 2))
    dot = fg.jvp(gradient, (np.diag([3.0, 1.0]),), (e,))[1]
    assert_allclose(np.sum(dot * e), 3 / 8, rtol=1e-13)


def test_spectral_norms_of_a_stack_along_other_axes():
    x = np.stack([np.diag([3.0, 1.0]), np.diag([1.0, 2.0])], axis=1)  # stacked along axis 1
    for bar in both_modes(lambda x: np.sum(np.linalg.norm(x, 2, axis=(0, 2))), x):
        assert_allclose(bar, np.stack([np.diag([1.0, 0]), np.diag([0, 1.0])], axis=1), atol=1e-15)


def test_complex_spectral_norm():
    # |z| of one number: in JAX's convention conj(z) / |z|.
    bar = fg.grad(lambda x: np.linalg.norm(x, 2))(np.array([[3 + 4j]]))
    assert_allclose(bar, [[0.6 - 0.8j]], rtol=1e-14)


def test_vmap_of_the_norm_of_a_whole_array():
    x = np.array([[[3.0, 0.0], [0.0, 4.0]], [[0.0, 0.0], [5.0, 12.0]]])
    assert_allclose(fg.vmap(np.linalg.norm)(x), [5, 13], rtol=1e-15)
    assert fg.vmap(lambda x: np.linalg.norm(x, keepdims=True))(x).shape == (2, 1, 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.linalg.norm(x, "fro"),
        lambda x: np.linalg.norm(x, axis=1),
        lambda x: np.linalg.norm(x, axis="a"),
        lambda x: np.linalg.norm(np.ones((2, 2, 2)) * x, 2),
        lambda x: np.linalg.norm(np.ones((2, 2)) * x, 3),
        lambda x: np.linalg.norm(np.ones((2, 2)) * x, axis=(0, 0)),
        lambda x: np.linalg.vector_norm(x, axis=2),
        np.linalg.matrix_norm,
    ],
)
def test_errors_are_those_of_numpy(call):
    x = np.array([1.0, 2.0])
    with pytest.raises((ValueError, TypeError)) as expected:
        call(x)
    with pytest.raises(expected.type) as raised:
        fg.grad(call)(x)
    assert str(raised.value) == str(expected.value)


@pytest.mark.parametrize("shape", [(0, 2), (2, 0), (0, 0)])
@pytest.mark.parametrize("ord", [1, 2, np.inf, "fro", "nuc"])
def test_norms_of_empty_matrices_are_0(ord, shape):
    x = np.zeros(shape)
    try:
        np.linalg.norm(x, ord)
    except ValueError as refused:  # before NumPy 2.4
        with pytest.raises(ValueError, match=re.escape(str(refused))):
            fg.grad(lambda x: np.linalg.norm(x, ord))(x)
        return
    value, gradient = fg.value_and_grad(lambda x: np.linalg.norm(x, ord))(x)
    assert value == 0
    assert gradient.shape == shape
    assert fg.jvp(lambda x: np.linalg.norm(x, ord), (x,), (x,))[1] == 0
