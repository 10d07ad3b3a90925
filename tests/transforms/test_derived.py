"""Jacobians, Hessians and their products."""

import pickle
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.errors import ArgumentError, DtypeError, ShapeError

MODES = [fg.jacrev, fg.jacfwd, fg.jacobian]
X = np.array([0.5, -1.0, 2.0])
A = np.array([[1.0, 2.0, 0.5], [-1.0, 0.3, 0.7]])


def mixed(p, q):
    return {"a": p["x"] * q, "b": np.sum(p["x"]) * p["y"]}


@pytest.mark.parametrize("jac", MODES)
def test_jacobian_of_a_linear_map_is_its_matrix(jac):
    assert_array_equal(jac(lambda x: A @ x)(X), A)


@pytest.mark.parametrize("jac", MODES)
def test_shapes_follow_each_other(jac):
    got = jac(lambda x: np.outer(x, x))(X)
    expected = np.einsum("ik,j->ijk", np.eye(3), X) + np.einsum("jk,i->ijk", np.eye(3), X)
    assert_allclose(got, expected, rtol=1e-15)


@pytest.mark.parametrize("jac", MODES)
@pytest.mark.parametrize("chunk_size", [None, 1, 2, 100])
def test_pytrees_in_and_out_in_chunks(jac, chunk_size):
    p = {"x": np.array([1.0, 2.0]), "y": 3.0, "n": 3}
    got = jac(mixed, argnums=(0, 1), chunk_size=chunk_size)(p, 2.0)
    assert_array_equal(got["a"][0]["x"], 2 * np.eye(2))
    assert_array_equal(got["a"][0]["y"], [0, 0])
    assert got["a"][0]["n"] is None
    assert_array_equal(got["a"][1], [1, 2])
    assert_array_equal(got["b"][0]["x"], [3, 3])
    assert got["b"][0]["y"] == 3.0
    assert got["b"][1] == 0.0
    assert np.shape(got["b"][1]) == ()


@pytest.mark.parametrize("jac", MODES)
def test_arguments_by_name_and_by_keyword(jac):
    def f(x, y):
        return x * y

    assert_array_equal(jac(f, argnames="y")(X, y=2.0), X)
    assert_array_equal(jac(f, argnums=-1)(X, 2.0), X)
    first, second = jac(f, argnums=0, argnames=("y",))(X, y=2.0)
    assert_array_equal(first, 2 * np.eye(3))
    assert_array_equal(second, X)


@pytest.mark.parametrize("jac", MODES)
def test_auxiliary_output(jac):
    got, aux = jac(lambda x: (x * x, {"sum": np.sum(x)}), has_aux=True)(X)
    assert_array_equal(got, np.diag(2 * X))
    assert aux == {"sum": 1.5}


@pytest.mark.parametrize("jac", [fg.value_and_jacrev, fg.value_and_jacfwd, fg.value_and_jacobian])
def test_value_and_jacobian(jac):
    value, got = jac(np.cumsum)(X)
    assert_array_equal(value, np.cumsum(X))
    assert_array_equal(got, np.tril(np.ones((3, 3))))
    (value, aux), got = jac(lambda x: (x, 7), has_aux=True)(X)
    assert aux == 7
    assert_array_equal(value, X)
    assert_array_equal(got, np.eye(3))


@pytest.mark.parametrize("jac", MODES)
def test_dtype_is_kept(jac):
    got = jac(lambda x: x * x)(np.float32([1, 2]))
    assert got.dtype == np.float32


@pytest.mark.parametrize("jac", MODES)
def test_no_elements(jac):
    assert jac(lambda x: x[:0])(X).shape == (0, 3)
    assert jac(lambda x: np.ones(2) * np.sum(x))(np.ones(0)).shape == (2, 0)


@pytest.mark.parametrize("jac", MODES)
def test_holomorphic_function(jac):
    z = np.array([1 + 1j, 2.0])
    assert_allclose(jac(lambda z: z**3, holomorphic=True)(z), np.diag(3 * z**2), rtol=1e-15)


def test_complex_outputs_of_real_arguments():
    assert_array_equal(fg.jacfwd(lambda x: 1j * x)(X), 1j * np.eye(3))
    with pytest.raises(DtypeError, match="jacrev needs real outputs"):
        fg.jacrev(lambda x: 1j * x)(X)


def test_real_outputs_of_complex_arguments():
    z = np.array([1.0 + 2.0j])
    assert_array_equal(fg.jacrev(lambda z: np.real(z * np.conj(z)))(z), [[2.0 - 4.0j]])
    with pytest.raises(DtypeError, match="jacfwd needs real arguments"):
        fg.jacfwd(np.abs)(z)


def test_jacobian_takes_the_cheaper_mode():
    calls = []

    def f(x):
        calls.append(1)
        return np.outer(x, x)

    fg.jacobian(f)(X)
    assert len(calls) == 2  # the second time in forward mode
    fg.jacobian(lambda x: calls.append(1) or np.sum(x))(X)
    assert len(calls) == 3


@pytest.mark.parametrize("jac", MODES)
def test_under_and_over_vmap(jac):
    xs = np.stack([X, 2 * X])
    under = fg.vmap(jac(lambda x: np.sin(A @ x)))(xs)
    expected = np.stack([np.cos(A @ x)[:, None] * A for x in xs])
    assert_allclose(under, expected, rtol=1e-14)
    over = jac(fg.vmap(lambda x: np.sin(A @ x)))(xs)
    assert_allclose(over[[0, 1], :, [0, 1]], expected, rtol=1e-14)
    assert_array_equal(over[0, :, 1], 0)


def test_hessian_of_a_cubic():
    got = fg.hessian(lambda x: np.sum(x**3) * x[0])(np.array([1.0, 2.0, 3.0]))
    assert_allclose(got, [[12, 12, 27], [12, 12, 0], [27, 0, 18]], rtol=1e-14)


def test_hessian_of_several_arguments():
    (xx, xy), (yx, yy) = fg.hessian(lambda x, y: x * x * y, argnums=(0, 1))(2.0, 3.0)
    assert (xx, xy, yx, yy) == (6.0, 4.0, 4.0, 0.0)


def test_hessian_of_a_pytree_and_of_a_vector():
    p = {"x": np.array([1.0, 2.0]), "y": 3.0}
    got = fg.hessian(lambda p: np.sum(p["x"] ** 2) * p["y"])(p)
    assert_array_equal(got["x"]["x"], 6 * np.eye(2))
    assert_array_equal(got["x"]["y"], [2, 4])
    assert_array_equal(got["y"]["x"], [2, 4])
    assert got["y"]["y"] == 0.0
    each = fg.hessian(lambda x: x**3)(np.array([1.0, 2.0]))
    assert_array_equal(each, [[[6, 0], [0, 0]], [[0, 0], [0, 12]]])


@pytest.mark.parametrize("inner", MODES)
@pytest.mark.parametrize("outer", MODES)
def test_second_derivatives_in_every_mix_of_modes(outer, inner):
    def f(x):
        return np.sum(np.sin(x) * x[0])

    got = outer(inner(f))(X)
    assert_allclose(got, fg.hessian(f)(X), rtol=1e-13)
    assert_allclose(got, got.T, rtol=1e-13)


def test_product_with_the_hessian():
    def f(x):
        return np.sum(x**3) * x[0]

    v = np.array([1.0, -1.0, 0.5])
    assert_allclose(fg.hvp(f, (X,), (v,)), fg.hessian(f)(X) @ v, rtol=1e-13)
    product, aux = fg.hvp(lambda x: (f(x), "aux"), (X,), (v,), has_aux=True)
    assert aux == "aux"
    assert_allclose(product, fg.hessian(f)(X) @ v, rtol=1e-13)


def test_product_with_the_hessian_of_several_arguments():
    got = fg.hvp(lambda x, y: x * x * y, (2.0, 3.0), (1.0, None))
    assert got == (6.0, 4.0)


def test_product_with_the_hessian_takes_backward_rules_as_they_are():
    """A rule that is not linear has no transpose, which forward mode inside would ask for."""

    @fg.custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, x_bar: (np.clip(x_bar, -1.0, 1.0),))

    def f(x):
        return np.sum(clipped(x) ** 3 / 3)  # gradient: min(x**2, 1)

    x = np.array([0.5, 0.9, 2.0])
    assert_allclose(fg.hvp(f, (x,), (np.ones(3),)), [1.0, 1.8, 0.0], rtol=1e-15)
    each = fg.vmap(lambda x: fg.hvp(f, (x,), (1.0,)))(x)
    assert_allclose(each, [1.0, 1.8, 0.0], rtol=1e-15)
    product, aux = fg.hvp(lambda x: (f(x), "aux"), (x,), (np.ones(3),), has_aux=True)
    assert_allclose(product, [1.0, 1.8, 0.0], rtol=1e-15)
    assert aux == "aux"


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (
            lambda x: x**2,
            ShapeError,
            r"hvp needs a function that returns a scalar, got float64\[3\]",
        ),
        (lambda x: (np.sum(x), 1), ArgumentError, "a pair whose first item is one"),
        (lambda x: 3, DtypeError, "hvp needs a function that returns a floating-point scalar"),
        (lambda x: None, ArgumentError, "returned None, and hvp needs"),
        (lambda x: np.sum(x * 1j), DtypeError, "hvp needs a real floating-point output"),
    ],
)
def test_product_with_the_hessian_of_what_is_no_scalar(f, error, message):
    with pytest.raises(error, match=message) as caught:
        fg.hvp(f, (X,), (X,))
    assert "hvp(<lambda>) at" in str(caught.value)


@pytest.mark.parametrize("transform", [fg.jacfwd, fg.jacrev, fg.jacobian, fg.value_and_jacrev])
@pytest.mark.parametrize("out", ["text", 3, (1, True)])
def test_jacobian_of_what_has_no_derivative(transform, out):
    with pytest.raises(DtypeError, match="needs a function that returns floating-point") as caught:
        transform(lambda x: out)(X)
    assert f"{transform.__name__}(<lambda>) at" in str(caught.value)


def test_jacobian_is_none_for_the_outputs_that_have_no_derivative():
    positions, rows = fg.jacrev(lambda x: (np.argmax(x), 2.0 * x))(np.ones(2))
    assert positions is None
    assert_array_equal(rows, 2.0 * np.eye(2))


def test_product_with_a_hessian_of_zeros():
    assert_array_equal(fg.hvp(lambda x: 3.0, (X,), (X,)), np.zeros(3))
    assert_array_equal(fg.hvp(np.sum, (X,), (X,)), np.zeros(3))
    assert_array_equal(fg.hvp(lambda x: np.sum(x**3), (X,), (None,)), np.zeros(3))


def test_jacobian_does_not_keep_an_array_from_being_written_to():
    """It is read-only while the function runs, as for a gradient, and not copied."""
    held = np.ones((200, 200))
    fg.jacrev(lambda x: held @ x)(np.ones(200))
    fg.jacfwd(lambda x: held @ x)(np.ones(200))
    held[0, 0] = 2.0
    with pytest.raises(fg.errors.MutationError):
        fg.jacrev(lambda x: np.sum(held @ x) + held.fill(0.0))(np.ones(200))


@pytest.mark.parametrize("jac", MODES)
def test_value_that_is_an_argument_is_a_copy(jac):
    x = X.copy()
    value, _ = getattr(fg, f"value_and_{jac.__name__}")(lambda x: x)(x)
    value[0] = 7.0
    assert_array_equal(x, X)


def test_derivative_of_each_element():
    assert_array_equal(fg.elementwise_grad(np.square)(X), 2 * X)
    twice = fg.elementwise_grad(fg.elementwise_grad(np.sin))
    assert_allclose(twice(X), -np.sin(X), rtol=1e-15)
    by_y = fg.elementwise_grad(lambda x, y: x * y**2, argnums=1)(X, 2.0 * X)
    assert_array_equal(by_y, 4 * X**2)
    assert fg.elementwise_grad(np.square)(3.0) == 6.0


@pytest.mark.parametrize("chunk_size", [0, -1, 1.5, True, "all"])
def test_chunk_size_of_another_kind(chunk_size):
    with pytest.raises(ArgumentError, match="chunk_size of jacrev"):
        fg.jacrev(np.sin, chunk_size=chunk_size)


def test_integer_argument_is_refused_by_name():
    with pytest.raises(DtypeError, match="jacfwd needs") as caught:
        fg.jacfwd(np.square)(np.arange(3))
    assert "argument 0" in str(caught.value)
    assert "test_derived.py" in str(caught.value)


def test_jacobians_can_be_pickled():
    made = pickle.loads(pickle.dumps(fg.jacrev(np.cumsum)))
    assert_array_equal(made(X), np.tril(np.ones((3, 3))))
    assert repr(made) == "jacrev(cumsum)"


@pytest.mark.parametrize("jac", [fg.jacfwd, fg.jacrev])
def test_chunks_bound_memory(jac):
    """A hidden layer of 5000 elements, 40 times at once or 4 times."""
    into, out_of = np.ones((5000, 40)) / 40, np.ones((40, 5000)) / 5000

    def network(x):
        return out_of @ np.tanh(np.sin(into @ x))

    def peak(chunk_size):
        fun, x = jac(network, chunk_size=chunk_size), np.ones(40)
        fun(x)
        tracemalloc.start()
        try:
            fun(x)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(4) < 0.5 * peak(None)
