"""Pseudoinverses and least squares: closed values, ranks that are not full, NumPy's errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg

# Points (0, 1), (1, 3), (2, 4) for a line.
T, Y = np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 4.0])


def line(t):
    return np.stack([np.ones_like(t), t], axis=1)


def test_pseudoinverse_of_a_column_is_its_row_by_the_squared_length():
    # Of (x, y): x / (x**2 + y**2), at (3, 4).
    bar = fg.grad(lambda a: np.linalg.pinv(a)[0, 0])(np.array([[3.0], [4.0]]))
    assert_allclose(bar, [[(16 - 9) / 625], [-24 / 625]], rtol=1e-13)


def test_pseudoinverse_where_the_rank_is_not_full():
    # Of s u u', with u of length one, it is u u' / s: moving along u u' changes s only.
    u = np.array([0.6, 0.8])
    a = 2 * np.outer(u, u)
    dot = fg.jvp(np.linalg.pinv, (a,), (np.outer(u, u),))[1]
    assert_allclose(dot, -np.outer(u, u) / 4, atol=1e-14)


def test_pseudoinverse_of_a_small_value_that_is_cut_off_is_constant():
    a = np.diag([2.0, 1e-12])
    bar = fg.grad(lambda a: np.sum(np.linalg.pinv(a, rcond=1e-6)))(a)
    assert_allclose(np.diag(bar), [-0.25, 0.0], atol=1e-15)


def test_pseudoinverse_of_hermitian_matrices():
    a = np.array([[2.0, 1.0], [1.0, 3.0]])
    bars = [fg.grad(lambda a, h=h: np.linalg.pinv(a, hermitian=h)[0, 0])(a) for h in (False, True)]
    assert_allclose(bars[0], bars[1], rtol=1e-12)
    assert_allclose(bars[1], -np.array([[9.0, -3.0], [-3.0, 1.0]]) / 25, rtol=1e-12)


def test_slope_of_a_line_in_the_measured_values():
    # The slope is sum((t - 1) y) / 2.
    bar = fg.grad(lambda y: np.linalg.lstsq(line(T), y)[0][1])(Y)
    assert_allclose(bar, [-0.5, 0.0, 0.5], atol=1e-14)


def test_slope_of_a_line_in_the_places():
    def slope(t):
        t = t - np.mean(t)
        return np.sum(t * Y) / np.sum(t * t)

    bar = fg.grad(lambda t: np.linalg.lstsq(line(t), Y)[0][1])(T)
    assert_allclose(bar, fg.grad(slope)(T), atol=1e-13)


def test_sum_of_squares_in_the_measured_values():
    # Twice the residuals, that of the line 7/6 + 3/2 t.
    bar = fg.grad(lambda y: np.linalg.lstsq(line(T), y)[1][0])(Y)
    assert_allclose(bar, 2 * (Y - 7 / 6 - 1.5 * T), rtol=1e-13)


def test_second_derivative_of_the_sum_of_squares():
    # The quadratic form is the projection on (1, -2, 1) / sqrt(6), twice.
    gradient = fg.grad(lambda y: np.linalg.lstsq(line(T), y)[1][0])
    dot = fg.jvp(gradient, (Y,), (np.array([1.0, 0.0, 0.0]),))[1]
    assert_allclose(dot, np.array([1, -2, 1]) / 3, atol=1e-13)


def test_shortest_solution_where_there_are_many():
    # x = b a / |a|**2 for one equation a x = b.
    a = np.array([[3.0, 4.0]])
    out, bar = fg.value_and_grad(lambda a: np.linalg.lstsq(a, np.array([50.0]))[0][0])(a)
    assert_allclose(out, 6.0, rtol=1e-14)
    assert_allclose(bar, [[50 * 7 / 625, -50 * 24 / 625]], rtol=1e-13)


def test_no_sum_of_squares_where_the_rank_is_not_full():
    a = np.ones((3, 2))
    out, pullback = fg.vjp(lambda b: np.linalg.lstsq(a, b)[:2], Y)
    assert out[1].shape == (0,)
    assert_allclose(pullback((np.array([1.0, 1.0]), np.zeros(0)))[0], np.ones(3) / 3, atol=1e-15)


def test_singular_values_have_a_derivative():
    bar = fg.grad(lambda a: np.sum(np.linalg.lstsq(a, Y)[3]))(line(T))
    u, _, vh = np.linalg.svd(line(T), full_matrices=False)
    assert_allclose(bar, u @ vh, rtol=1e-13)


def test_rank_is_plain():
    ranks = []
    fg.grad(lambda a: ranks.append(np.linalg.lstsq(a, Y)[2]) or np.sum(a))(line(T))
    assert ranks == [2]


def test_vmap_fits_a_line_for_each_example():
    out = fg.vmap(lambda y: np.linalg.lstsq(line(T), y)[0])(np.stack([T, 2 * T + 1]))
    assert_allclose(out, [[0, 1], [1, 2]], atol=1e-14)


@pytest.mark.parametrize(
    "call",
    [
        lambda a: np.linalg.lstsq(a, np.ones(2)),
        lambda a: np.linalg.lstsq(a[0], Y),
        lambda a: np.linalg.pinv(a[0]),
        lambda a: np.linalg.pinv(a, 1e-3, rtol=1e-3),
        lambda a: np.linalg.pinv(a * np.nan),
    ],
)
def test_errors_are_those_of_numpy(call):
    a = line(T)
    with pytest.raises((ValueError, IndexError)) as expected:
        call(a)
    with pytest.raises(expected.type) as raised:
        fg.vjp(call, a)
    assert str(raised.value) == str(expected.value)


def test_gradients_keep_the_dtype():
    a = line(T).astype(np.float32)
    assert fg.grad(lambda a: np.sum(np.linalg.pinv(a)))(a).dtype == np.float32
    bar = fg.grad(lambda b: np.sum(np.linalg.lstsq(a, b)[0]))(Y.astype(np.float32))
    assert bar.dtype == np.float32
    assert_array_equal(bar.shape, (3,))
