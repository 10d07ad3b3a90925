"""`funcgrad.numpy.vectorize`, `frompyfunc` and `kaiser`, traced and not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.errors import DtypeError

X, Y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([10.0, 100.0])


def product(a, b=2.0, *, c=1.0):
    return a * b + c


def test_plain_arguments_go_to_numpy():
    made = fnp.vectorize(product)(X, Y)
    assert_array_equal(made, np.vectorize(product)(X, Y))
    assert isinstance(fnp.vectorize(product), np.vectorize)


@pytest.mark.parametrize("args", [(X, Y), (X, 3.0), (2.0, Y), (X[:, :1], Y)])
def test_values_are_numpys(args):
    value, _ = fg.vjp(fnp.vectorize(product), *args)
    assert_array_equal(value, np.vectorize(product)(*args))


def test_a_number_gives_an_array_without_axes():
    value, pullback = fg.vjp(fnp.vectorize(product), 3.0)
    assert type(value) is np.ndarray
    assert value.shape == ()
    assert pullback(np.array(1.0)) == (2.0,)


def test_gradients_are_summed_over_what_was_broadcast():
    x_bar, y_bar = fg.vjp(fnp.vectorize(product), X, Y)[1](np.ones((2, 2)))
    assert_array_equal(x_bar, [[10, 100], [10, 100]])
    assert_array_equal(y_bar, [4, 6])


def test_keywords_are_vectorized_too():
    gradient = fg.grad(lambda x: np.sum(fnp.vectorize(product)(2.0, b=x, c=x)))(Y)
    assert_array_equal(gradient, [3, 3])


def test_excluded_arguments_are_passed_whole():
    weighted = fnp.vectorize(lambda w, x: np.sum(w * x), excluded={0, "w"})
    assert_array_equal(fg.grad(lambda w: np.sum(weighted(w, X)))(Y), [10, 10])
    assert_array_equal(fg.grad(lambda x: np.sum(weighted(Y, x)))(X), [[110, 110], [110, 110]])


def test_several_results():
    both = fnp.vectorize(lambda a: (a * a, 3.0 * a))
    (squares, triples), pullback = fg.vjp(both, X)
    assert_array_equal(squares, X**2)
    assert_array_equal(triples, 3 * X)
    assert_array_equal(pullback((np.ones((2, 2)), np.zeros((2, 2))))[0], 2 * X)


def test_signature():
    dot = fnp.vectorize(np.dot, signature="(n),(n)->()")
    assert_array_equal(
        fg.jvp(dot, (X, Y), (X, Y))[0], np.vectorize(np.dot, signature="(n),(n)->()")(X, Y)
    )
    assert_array_equal(fg.grad(lambda y: np.sum(dot(X, y)))(Y), [4, 6])
    outer = fnp.vectorize(np.outer, signature="(n),(m)->(n,m)")
    assert_array_equal(fg.grad(lambda x: np.sum(outer(x, Y)))(X), [[110, 110], [110, 110]])


@pytest.mark.parametrize(
    ("args", "error"),
    [((X,), TypeError), ((X, np.ones(3)), ValueError), ((X, 1.0), ValueError)],
)
def test_signature_is_checked(args, error):
    dot = fnp.vectorize(np.dot, signature="(n),(n)->()")
    with pytest.raises(error):
        dot(*args)
    with pytest.raises(error):
        fg.jvp(lambda x: dot(x, *args[1:]), (X,), (X,))


def test_first_result_decides_the_dtype_unless_that_loses_a_derivative():
    def ramp(x):
        return x * x if x > 1 else 0

    with pytest.raises(DtypeError, match="dtype of the first"):
        fg.grad(lambda x: np.sum(fnp.vectorize(ramp)(x)))(X)
    gradient = fg.grad(lambda x: np.sum(fnp.vectorize(ramp, otypes=[float])(x)))(X)
    assert_array_equal(gradient, [[0, 4], [6, 8]])


def test_nothing_needs_otypes():
    with pytest.raises(ValueError, match="size 0 inputs unless `otypes`"):
        fg.jvp(fnp.vectorize(product), (np.ones(0),), (np.ones(0),))
    value, _ = fg.jvp(fnp.vectorize(product, otypes="d"), (np.ones((0, 2)),), (np.ones((0, 2)),))
    assert value.shape == (0, 2)


def test_as_a_decorator_with_options():
    @fnp.vectorize(otypes=[np.float32])
    def double(x):
        return 2 * x

    value, out_dot = fg.jvp(double, (X,), (X,))
    assert value.dtype == out_dot.dtype == np.float32
    assert_array_equal(out_dot, 2 * X)


def test_second_order_and_batches():
    cube = fnp.vectorize(lambda x: x * x * x)
    assert_array_equal(fg.jvp(fg.grad(lambda x: np.sum(cube(x))), (Y,), (np.ones(2),))[1], 6 * Y)
    assert_array_equal(fg.vmap(fg.grad(lambda x: np.sum(cube(x))))(X), 3 * X**2)


def test_frompyfunc_of_plain_and_traced_arguments():
    times = fnp.frompyfunc(lambda a, b: a * b, 2, 1)
    assert times(X, Y).dtype == object
    assert times.nin == 2
    assert_array_equal(fg.grad(lambda x: np.sum(times(x, Y)))(X), [Y, Y])
    assert fg.grad(lambda x: times(x, 3.0))(2.0) == 3.0


def test_fromfunction_is_numpys_and_lets_traced_values_through():
    gradient = fg.grad(lambda x: np.sum(fnp.fromfunction(lambda i, j: x * i * j, (2, 3))))(2.0)
    assert gradient == 3.0


def test_kaiser_in_its_parameter():
    assert_array_equal(fnp.kaiser(5, 2.0), np.kaiser(5, 2.0))
    value, out_dot = fg.jvp(lambda beta: fnp.kaiser(5, beta), (2.0,), (1.0,))
    assert_array_equal(value, np.kaiser(5, 2.0))
    step = 1e-6
    expected = (np.kaiser(5, 2.0 + step) - np.kaiser(5, 2.0 - step)) / (2 * step)
    assert_allclose(out_dot, expected, atol=1e-9)
    assert_array_equal(fg.jvp(lambda beta: fnp.kaiser(1, beta), (2.0,), (1.0,))[0], [1.0])
