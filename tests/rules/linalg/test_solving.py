"""Linear systems and inverses: closed values, NumPy's shapes, and NumPy's errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg

A = np.array([[2.0, 1.0], [0.0, 4.0]])


def test_gradient_of_a_solution_in_the_right_side():
    # The first row of the inverse, [[1/2, -1/8], [0, 1/4]].
    bar = fg.grad(lambda b: np.linalg.solve(A, b)[0])(np.array([1.0, 1.0]))
    assert_allclose(bar, [0.5, -0.125], rtol=1e-15)


def test_gradient_of_a_solution_in_the_matrix():
    # x = b / a, and dx/da = -b / a**2.
    bar = fg.grad(lambda a: np.linalg.solve(a, np.array([3.0]))[0])(np.array([[2.0]]))
    assert_allclose(bar, [[-0.75]], rtol=1e-15)


def test_second_derivative_of_a_solution_in_the_matrix():
    # 2 b / a**3
    gradient = fg.grad(lambda a: np.linalg.solve(a, np.array([3.0]))[0])
    assert_allclose(fg.jvp(gradient, (np.array([[2.0]]),), (np.ones((1, 1)),))[1], [[0.75]])


def test_one_vector_is_solved_for_every_matrix_of_a_stack():
    stack = np.array([[[2.0]], [[4.0]]])
    out, bar = fg.value_and_grad(lambda b: np.sum(np.linalg.solve(stack, b)))(np.array([8.0]))
    assert out == 6.0
    assert_array_equal(bar, [0.75])


def test_two_axes_on_the_right_are_one_matrix_as_in_numpy_2():
    # Not a stack of vectors: of shape (2, 1) for matrices of shape (2, 2, 2).
    stack, b = np.stack([A, 2 * A]), np.array([[1.0], [1.0]])
    out, pullback = fg.vjp(lambda b: np.linalg.solve(stack, b), b)
    assert out.shape == (2, 2, 1)
    # The sum of the columns of both inverses: (1 + 1/2) (1/2, 1/8).
    assert_allclose(pullback(np.ones((2, 2, 1)))[0], [[0.75], [0.1875]], rtol=1e-15)


def test_one_matrix_gets_the_cotangents_of_all_its_right_sides():
    b = np.array([[[1.0]], [[2.0]], [[3.0]]])
    bar = fg.grad(lambda a: np.sum(np.linalg.solve(a, b)))(np.array([[2.0]]))
    assert_allclose(bar, [[-6.0 / 4]], rtol=1e-15)


def test_gradient_of_the_trace_of_an_inverse():
    # d tr(inv(a)) = -tr(inv(a) da inv(a)): minus the transposed square of the inverse.
    bar = fg.grad(lambda a: np.trace(np.linalg.inv(a)))(A)
    assert_allclose(bar, -np.array([[0.25, 0.0], [-0.09375, 0.0625]]), rtol=1e-15)


def test_complex_inverse_is_holomorphic():
    # -1 / z**2 at 1 + 1j
    bar = fg.vjp(np.linalg.inv, np.array([[1 + 1j]]))[1](np.array([[1 + 0j]]))[0]
    assert_allclose(bar, [[0.5j]], rtol=1e-15)


def test_negative_power_of_a_matrix():
    bar = fg.grad(lambda a: np.trace(np.linalg.matrix_power(a, -2)))(np.diag([1.0, 2.0]))
    assert_allclose(bar, np.diag([-2.0, -0.25]), rtol=1e-15)


def test_tensorsolve_with_moved_axes():
    a = np.diag([1.0, 2.0, 3.0, 4.0]).reshape(2, 2, 4).transpose(0, 2, 1)
    bar = fg.grad(lambda b: np.sum(np.linalg.tensorsolve(a, b, axes=(1,))))(np.ones((2, 2)))
    expected = np.linalg.tensorsolve(a.transpose(0, 1, 2), np.ones((2, 2)), axes=(1,))
    assert bar.shape == (2, 2)
    assert_allclose(np.sum(bar), np.sum(expected), rtol=1e-15)  # linear in b


def test_tensorinv_has_the_shape_of_numpy():
    a = np.diag([1.0, 2.0, 4.0, 5.0, 8.0, 10.0]).reshape(2, 3, 6)
    out, bar = fg.value_and_grad(lambda a: np.sum(np.linalg.tensorinv(a)))(a)
    assert_allclose(out, 1 + 0.5 + 0.25 + 0.2 + 0.125 + 0.1, rtol=1e-15)
    assert bar.shape == (2, 3, 6)
    assert_allclose(bar[0, 0, 0], -1.0, rtol=1e-15)
    assert_allclose(bar[1, 2, 5], -0.01, rtol=1e-15)


def test_vmap_solves_a_system_for_each_example():
    b = np.array([[2.0, 4.0], [4.0, 8.0], [0.0, 4.0]])
    out = fg.vmap(lambda b: np.linalg.solve(A, b))(b)
    assert_allclose(out, [[0.5, 1], [1, 2], [-0.5, 1]], rtol=1e-15)


@pytest.mark.parametrize(
    "call",
    [
        lambda a: np.linalg.solve(a - a, np.ones(2)),
        lambda a: np.linalg.inv(a - a),
        lambda a: np.linalg.matrix_power(a - a, -1),
        lambda a: np.linalg.solve(a[0], np.ones(2)),
        lambda a: np.linalg.solve(a[:1], np.ones(2)),
        lambda a: np.linalg.solve(a, np.ones(3)),
        lambda a: np.linalg.solve(a, np.ones((3, 1))),
        lambda a: np.linalg.inv(a[0]),
        lambda a: np.linalg.inv(a.astype(np.float16)),
        lambda a: np.linalg.tensorsolve(a, np.ones(3)),
        lambda a: np.linalg.tensorinv(a, 0),
    ],
)
@pytest.mark.parametrize("transform", [fg.grad, lambda f: fg.vmap(f, None, axis_size=1)])
def test_errors_are_those_of_numpy(call, transform):
    with pytest.raises((ValueError, TypeError)) as expected:
        call(A)
    with pytest.raises(expected.type) as raised:
        transform(call)(A)
    assert str(raised.value) == str(expected.value)
