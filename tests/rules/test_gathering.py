"""Positions, and indices that differ from example to example: against NumPy's, one by one."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.rules.gathering import positions_of, put_back, taken

X = np.arange(24.0).reshape(2, 3, 4)
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "intp"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_an_index_of_any_dtype_reads(dtype):
    index = np.array([2, 0], dtype)
    assert_array_equal(fg.vmap(lambda x, i: x[i])(X, index), X[[0, 1], [2, 0]])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_an_index_of_any_dtype_is_written_to(dtype):
    def f(x, i):
        y = x.copy()
        y[i] = -1.0
        return y

    want = X.copy()
    want[0, 2] = want[1, 0] = -1.0
    assert_array_equal(fg.vmap(f)(X, np.array([2, 0], dtype)), want)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_an_index_of_any_dtype_is_added_to(dtype):
    index = np.array([[2, 2], [0, 1]], dtype)
    found = fg.vmap(lambda x, i: fg.at(x)[i].add(1.0))(X, index)
    want = X.copy()
    want[0, 2] += 2.0
    want[1, :2] += 1.0
    assert_array_equal(found, want)


def test_a_small_dtype_does_not_overflow():
    x = np.arange(600.0).reshape(2, 300)
    index = np.array([127, -1], np.int8)
    assert_array_equal(fg.vmap(lambda x, i: x[i + np.intp(100)])(x, index), [227.0, 399.0])
    wide = x.reshape(2, 2, 150)
    assert_array_equal(fg.vmap(lambda x, i: x[1, i])(wide, index), [277.0, 599.0])


def test_a_small_dtype_beside_a_recorded_index_does_not_overflow():
    """A plain index of a dtype that cannot hold the length of the axis."""
    x = np.arange(600.0).reshape(300, 2)
    rows = np.array([3, 250], np.uint8)
    read = fg.jit(lambda x, columns: x[rows, columns])
    np.testing.assert_array_equal(read(x, np.array([0, -1])), [6.0, 501.0])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_indices_along_another_axis_of_the_arguments(axis):
    index = np.moveaxis(np.array([[2, 0], [1, 1]]), 0, axis)
    x = np.moveaxis(X, 0, axis)
    found = fg.vmap(lambda x, i: x[i], in_axes=axis)(x, index)
    assert_array_equal(found, [X[0][[2, 0]], X[1][[1, 1]]])


@pytest.mark.parametrize("index", [(1, 2), (slice(None), [2, 0]), ([1, 0], ..., [3, 3]), (0, None)])
def test_positions_are_those_in_the_flattened_array(index):
    shape = (2, 3, 4)
    numbers = np.arange(24).reshape(shape)
    assert_array_equal(positions_of(shape, index), numbers[index])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_taken_is_take_along_axis(axis):
    places = np.argsort(np.cos(X), axis=axis)
    assert_array_equal(taken(X, places, axis), np.take_along_axis(X, places, axis))


def test_taken_broadcasts_the_other_axes():
    places = np.array([[3, 0], [1, 1], [2, 2]])
    assert_array_equal(taken(X[0, :1], places, 1), X[0, 0][places])
    assert_array_equal(taken(X[0], places[:1], 1), X[0][:, [3, 0]])


def test_put_back_adds_up_what_is_named_twice():
    places = np.array([[1, 1], [2, 0]])
    made = put_back(np.array([[1.0, 2.0], [3.0, 4.0]]), places, 1, 3)
    assert_array_equal(made, [[0, 3, 0], [4, 0, 3]])


def test_put_back_of_different_places():
    places = np.array([[1, 0], [2, 0]])
    made = put_back(np.array([[1.0, 2.0], [3.0, 4.0]]), places, 1, 3, unique=True)
    assert_array_equal(made, [[2, 1, 0], [4, 0, 3]])


def test_put_back_broadcasts():
    made = put_back(np.ones((1, 2)), np.array([[1, 1], [2, 0]]), 1, 3)
    assert_array_equal(made, [[0, 2, 0], [1, 0, 1]])


def test_values_for_a_mask_that_differs_are_refused_even_if_there_are_enough():
    def f(x):
        y = x.copy()
        y[x > 3.0] = x
        return y

    with pytest.raises(fg.errors.ShapeError, match="as many elements as it is true for"):
        fg.vmap(f)(X[:, 0])


# Plain arrays


V = np.array([1.0, 2.0, 3.0])
PLACES = np.array([0, 2, -1])


@pytest.mark.parametrize(
    "read",
    [
        lambda i: fnp.take(V, i),
        lambda i: fnp.take(V, i, mode="wrap"),
        lambda i: fnp.asarray(V)[i],
        lambda i: fnp.asanyarray(V)[i],
        lambda i: fnp.array(V)[i],
        lambda i: fnp.asarray([1.0, 2.0, 3.0])[i],
        lambda i: fnp.take_along_axis(V, fnp.array([i]), 0)[0],
    ],
)
def test_a_plain_array_is_read(read):
    assert_array_equal(fg.vmap(read)(PLACES), V[PLACES])


def test_asarray_of_a_plain_array_is_not_written_to():
    def f(i):
        y = fnp.asarray(V)
        y[i] = 0.0
        return y

    with pytest.raises(fg.errors.MutationError, match="assigned to in place"):
        fg.vmap(f)(PLACES)


def test_asarray_of_a_plain_array_stays_what_it_is_elsewhere():
    assert fnp.asarray(V) is V
    kept = []
    fg.grad(lambda x: kept.append(fnp.asarray(V)) or x)(1.0)
    assert kept[0] is V


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x, i: np.take(V, i), "take"),
        (lambda x, i: np.roll(V, i), "roll"),
        (lambda x, i: np.max(V, initial=x), "max"),
        (lambda x, i: np.sum(V, initial=x), "sum"),
        (lambda x, i: np.pad(V, 1, constant_values=x), "pad"),
        (lambda x, i: np.interp(9.0, V, V, right=x), "interp"),
        (lambda x, i: np.full_like(V, x), "full"),
        (lambda x, i: np.select([V > 2], [V], x), "select"),
    ],
)
def test_error_of_numpys_function_names_ours(call, name):
    with pytest.raises(fg.errors.FuncgradError, match=f"use funcgrad.numpy.{name}"):
        fg.vmap(call)(np.array([1.5, 4.5, 2.5]), PLACES)


@pytest.mark.parametrize(
    "call",
    [
        lambda f, x: f.max(V, initial=x),
        lambda f, x: f.min(V, initial=x),
        lambda f, x: f.sum(V, initial=x),
        lambda f, x: f.prod(V, initial=x),
        lambda f, x: f.nansum(V, initial=x),
        lambda f, x: f.pad(V, 1, constant_values=((0.0, x),)),
        lambda f, x: f.pad(V, 2, mode="linear_ramp", end_values=x),
        lambda f, x: f.interp(9.0, V, V, right=x),
        lambda f, x: f.full_like(V, x),
        lambda f, x: f.select([V > 2], [V], x),
        lambda f, x: f.resize([x, 1.0], 5),
    ],
)
def test_another_argument_than_the_array(call):
    xs, step = np.array([0.5, 4.5]), 1e-6
    assert_array_equal(fg.vmap(lambda x: call(fnp, x))(xs), [call(np, x) for x in xs])
    for x in xs:
        slope = (call(np, x + step) - call(np, x - step)) / (2 * step)
        found = fg.jvp(lambda x: call(fnp, x), (x,), (1.0,))[1]
        np.testing.assert_allclose(found, slope, atol=1e-8)
