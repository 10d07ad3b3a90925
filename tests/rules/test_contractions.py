"""Products that sum: known gradients, conjugation, memory, errors. The harness runs the samples."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.errors import MutationError
from funcgrad.rules.contractions import dot, outer
from funcgrad.rules.matmul import matmul_pullbacks

X = np.array([[1.0, 2.0], [3.0, 4.0]])
W = np.array([[1.0, 0.0], [2.0, 1.0]])


def kept_by(function):
    """Return the arrays that a pullback keeps alive, those of the functions it calls included."""
    found = []
    for cell in function.__closure__ or ():
        value = cell.cell_contents
        if callable(value):
            found.extend(kept_by(value))
        elif isinstance(value, np.ndarray):
            found.append(value)
    return found


def test_gradient_of_a_matrix_product():
    x_bar, w_bar = fg.grad(lambda x, w: np.sum(x @ w), argnums=(0, 1))(X, W)
    assert_array_equal(x_bar, [[1, 3], [1, 3]])
    assert_array_equal(w_bar, [[4, 4], [6, 6]])


def test_gradient_of_a_product_of_vectors():
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    out, bars = fg.value_and_grad(lambda a, b: a @ b, argnums=(0, 1))(a, b)
    assert out == 11.0
    assert_array_equal(bars[0], [3, 4])
    assert_array_equal(bars[1], [1, 2])


@pytest.mark.parametrize("argnums", [0, 1, (0, 1)])
def test_a_constant_factor_costs_no_product_backward(argnums, monkeypatch):
    calls = []
    product = np.matmul
    gradient = fg.grad(lambda x, w: np.sum(x @ w), argnums=argnums)
    monkeypatch.setattr(np, "matmul", lambda x, w: calls.append(1) or product(x, w))
    gradient(X, W)
    assert len(calls) == np.size(argnums)


def test_each_pullback_keeps_the_other_factor_only():
    x, w = X.copy(), W.copy()
    for rule in (matmul_pullbacks, lambda x, w: dot.vjp((x, w), None)):
        pullback_x, pullback_w = rule(x, w)
        assert [kept is w for kept in kept_by(pullback_x)] == [True]
        assert [kept is x for kept in kept_by(pullback_w)] == [True]


def test_pullback_of_outer_keeps_the_other_vector_only():
    a, b = np.arange(2.0), np.arange(3.0)
    pullback_a, pullback_b = outer.vjp((a, b), None)
    assert [kept is b for kept in kept_by(pullback_a)] == [True]
    assert [kept is a for kept in kept_by(pullback_b)] == [True]


@pytest.mark.parametrize(
    ("shape1", "shape2", "out"),
    [((4, 3), (3, 2), (4, 2)), ((5, 4, 3), (3, 2), (5, 4, 2)), ((2, 4, 3), (2, 3, 5), (2, 4, 5))],
)
def test_cotangents_of_matmul_are_arrays_of_their_own(shape1, shape2, out):
    for pullback in matmul_pullbacks(np.ones(shape1), np.ones(shape2)):
        bar = pullback(np.ones(out))
        assert bar.base is None or bar.base.size == bar.size  # as a matrix it was made
        assert bar.flags.c_contiguous


@pytest.mark.parametrize("stack", [(), (5,)])
def test_cotangent_of_a_transpose_is_one(stack):
    x, w = np.ones((*stack, 4, 3)), np.ones((*stack, 2, 3))
    _, pullback = matmul_pullbacks(x, np.swapaxes(w, -1, -2))
    bar = pullback(np.ones((*stack, 4, 2)))
    assert np.swapaxes(bar, -1, -2).flags.c_contiguous
    pullback, _ = matmul_pullbacks(np.swapaxes(x, -1, -2), np.ones((*stack, 4, 2)))
    bar = pullback(np.ones((*stack, 3, 2)))
    assert np.swapaxes(bar, -1, -2).flags.c_contiguous


def test_one_matrix_for_a_stack_gets_its_cotangent_without_the_stack():
    _, pullback = matmul_pullbacks(np.ones((5, 4, 3)), np.ones((3, 2)))
    assert_array_equal(pullback(np.ones((5, 4, 2))), np.full((3, 2), 20.0))
    pullback, _ = matmul_pullbacks(np.ones((4, 3)), np.ones((5, 3, 2)))
    assert_array_equal(pullback(np.ones((5, 4, 2))), np.full((4, 3), 10.0))


def test_matmul_takes_a_broadcast_cotangent():
    pullback, _ = matmul_pullbacks(X, W)
    assert_array_equal(pullback(np.broadcast_to(1.0, (2, 2))), [[1, 3], [1, 3]])


def test_gradients_keep_the_dtype_of_their_arrays():
    x, w = X.astype(np.float32), W
    x_bar, w_bar = fg.grad(lambda x, w: np.sum(x @ w), argnums=(0, 1))(x, w)
    assert x_bar.dtype == np.float32
    assert w_bar.dtype == np.float64


@pytest.mark.parametrize("function", [np.matmul, np.dot, np.inner, np.outer, np.kron, np.vdot])
def test_half_precision(function):
    x, w = X.astype(np.float16), W.astype(np.float16)
    out, pullback = fg.vjp(function, x, w)
    assert out.dtype == np.float16
    for bar in pullback(np.ones_like(out)):
        assert bar.dtype == np.float16
        assert bar.shape == (2, 2)


def test_matmul_computes_in_the_dtype_asked_for():
    def f(x):
        return np.sum(np.matmul(x, W, dtype=np.float32))

    out, bar = fg.value_and_grad(f)(X)
    assert out.dtype == np.float32
    assert bar.dtype == np.float64
    assert_array_equal(bar, [[1, 3], [1, 3]])


def test_a_real_factor_of_a_complex_product_has_a_real_cotangent():
    _, pullback = fg.vjp(lambda x: x @ np.array([[1 + 2j], [3j]]), np.array([[1.0, 1.0]]))
    (bar,) = pullback(np.array([[1 + 1j]]))
    assert_array_equal(bar, [[-1.0, -3.0]])  # the real parts of (1 + 1j) (1 + 2j), (1 + 1j) 3j


def test_matmul_and_dot_do_not_conjugate():
    z, w = np.array([1 + 2j]), np.array([3 + 4j])
    for function in (np.matmul, np.dot, np.inner):
        _, pullback = fg.vjp(function, z, w)
        z_bar, w_bar = pullback(np.complex128(1))
        assert_array_equal(z_bar, w)
        assert_array_equal(w_bar, z)


@pytest.mark.parametrize("function", [np.vecdot, np.vdot])
def test_conjugating_products(function):
    # f = conj(z) w. Along i in z it falls by i w; the cotangent of z for 1j is conj(1j w).
    z, w = np.array([1 + 2j]), np.array([3 + 4j])
    out, pullback = fg.vjp(function, z, w)
    assert out == (1 - 2j) * (3 + 4j)
    z_bar, w_bar = pullback(np.complex128(1j))
    assert_array_equal(z_bar, [-4 - 3j])
    assert_array_equal(w_bar, [1j * (1 - 2j)])
    _, out_dot = fg.jvp(lambda z: function(z, w), (z,), (np.array([1j]),))
    assert out_dot == -1j * (3 + 4j)


def test_squared_modulus_by_vdot():
    # JAX's convention: df/dx - i df/dy for f = |z|**2.
    bar = fg.grad(lambda z: np.vdot(z, z).real)(np.array([2 + 1j]))
    assert_array_equal(bar, [4 - 2j])


def test_hessian_of_a_quadratic_form():
    a = np.array([[1.0, 2.0], [5.0, 3.0]])
    gradient = fg.grad(lambda x: x @ a @ x)
    columns = [fg.jvp(gradient, (np.array([0.3, -0.7]),), (e,))[1] for e in np.eye(2)]
    assert_allclose(columns, a + a.T, rtol=1e-15)


def test_lists_are_arrays():
    x = np.array([1.0, 2.0])
    assert_array_equal(fg.grad(lambda x: np.dot([3.0, 4.0], x))(x), [3, 4])
    assert_array_equal(fg.grad(lambda x: [3.0, 4.0] @ x)(x), [3, 4])
    assert_array_equal(fg.grad(lambda x: x @ [3.0, 4.0])(x), [3, 4])


def test_integer_factors():
    assert_array_equal(fg.grad(lambda x: np.sum(np.array([[1, 2]]) @ x))(X), [[1, 1], [2, 2]])


def test_dot_with_a_python_number():
    bar = fg.grad(lambda a: np.sum(np.dot(a, np.array([1.0, 2.0]))))(3.0)
    assert bar == 3.0
    assert type(bar) is float


def test_dot_as_a_method():
    assert_array_equal(fg.grad(lambda x: np.sum(x.dot(W)))(X), [[1, 3], [1, 3]])


def test_outer_of_a_ufunc():
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0])
    bars = fg.grad(lambda a, b: np.sum(np.multiply.outer(a, b)), argnums=(0, 1))(a, b)
    assert_array_equal(bars[0], [12, 12])
    assert_array_equal(bars[1], [3, 3, 3])


def test_kron_multiplies_each_element_by_all_of_the_other():
    bars = fg.grad(lambda a, b: np.sum(np.kron(a, b)), argnums=(0, 1))(X, np.array([3.0, 4.0]))
    assert_array_equal(bars[0], np.full((2, 2), 7.0))
    assert_array_equal(bars[1], [10, 10])


def test_tensordot_with_axes_of_arrays():
    bar = fg.grad(lambda x: np.sum(np.tensordot(x, W, axes=np.array([[1], [0]]))))(X)
    assert_array_equal(bar, [[1, 3], [1, 3]])


def test_cross_of_unit_vectors():
    # (a x b)[2] = a0 b1 - a1 b0
    a, b = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
    bars = fg.grad(lambda a, b: np.cross(a, b)[2], argnums=(0, 1))(a, b)
    assert_array_equal(bars[0], [5, -4, 0])
    assert_array_equal(bars[1], [-2, 1, 0])


@pytest.mark.parametrize(
    ("a", "b", "a_bar", "b_bar"),
    [
        ([1.0, 2.0], [3.0, 4.0], [4, -3], [-2, 1]),
        # The sum of the components of a x b for a2 = 0: a1 b2 - a0 b2 + a0 b1 - a1 b0.
        ([1.0, 2.0], [3.0, 4.0, 5.0], [-1, 2], [-2, 1, 1]),
        ([3.0, 4.0, 5.0], [1.0, 2.0], [2, -1, -1], [1, -2]),
    ],
)
def test_cross_in_the_plane_as_long_as_numpy_has_it(a, b, a_bar, b_bar):
    def f(a, b):
        return np.sum(np.cross(a, b))

    a, b = np.array(a), np.array(b)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            f(a, b)
        except ValueError:
            with pytest.raises(ValueError, match="dimension"):
                fg.grad(f)(a, b)
            return
        bars = fg.grad(f, argnums=(0, 1))(a, b)
    assert_array_equal(bars[0], a_bar)
    assert_array_equal(bars[1], b_bar)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x @ np.ones((3, 2)),
        lambda x: np.matmul(x, 2.0),
        lambda x: np.matmul(x, x, axes=[(0, 1), (0, 1)]),
        lambda x: np.matmul(x, x, axis=0),
        lambda x: np.dot(x, np.ones(3)),
        lambda x: np.inner(x, np.ones(3)),
        lambda x: np.tensordot(x, np.ones((3, 3))),
        lambda x: np.tensordot(x, x, axes=(0, 5)),
        lambda x: np.vdot(x, np.ones(3)),
        lambda x: np.vecdot(x, np.ones(3)),
        lambda x: np.cross(x, np.ones(4)),
        lambda x: np.cross(x, x, axis=3),
    ],
)
def test_errors_are_those_of_numpy(call):
    with pytest.raises((ValueError, TypeError, IndexError)) as expected:
        call(X)
    for transform in (fg.grad(call), lambda x: fg.jvp(call, (x,), (x,))):
        with pytest.raises(expected.type) as raised:
            transform(X)
        assert str(raised.value) == str(expected.value)


def test_out_as_a_plain_array_is_refused():
    with pytest.raises(MutationError, match="plain NumPy array"):
        fg.grad(lambda x: np.sum(np.matmul(x, W, out=np.empty((2, 2)))))(X)
