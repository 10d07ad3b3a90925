"""Where to shift, insert or delete differs from example to example: against NumPy's, one by one."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.errors import ShapeError

X = np.arange(18.0).reshape(3, 2, 3) ** 2
SHIFTS = np.array([1, -4, 0])


def looped(fun, *args):
    return np.stack([fun(*example) for example in zip(*args, strict=True)])


@pytest.mark.parametrize(
    "roll",
    [
        lambda x, i: np.roll(x, i),
        lambda x, i: np.roll(x, i, axis=0),
        lambda x, i: np.roll(x, shift=i, axis=-1),
        lambda x, i: np.roll(x, i, axis=(0, 1)),
        lambda x, i: np.roll(x, (i, 1), axis=(0, 1)),
        lambda x, i: np.roll(x, (i, 2 * i), axis=(1, 1)),
        lambda x, i: np.roll(x[:0], i, axis=0),
    ],
)
def test_roll_by_a_shift_that_differs(roll):
    assert_array_equal(fg.vmap(roll)(X, SHIFTS), looped(roll, X, SHIFTS))


def test_roll_of_a_plain_array():
    found = fg.vmap(lambda i: fnp.roll(X[0], i, axis=1))(SHIFTS)
    assert_array_equal(found, [np.roll(X[0], i, axis=1) for i in SHIFTS])


def test_gradient_of_roll_by_a_shift_that_differs():
    weights = np.arange(3.0)
    gradient = fg.vmap(fg.grad(lambda x, i: np.sum(np.roll(x, i) * weights)))(X[:, 0], SHIFTS)
    assert_array_equal(gradient, [np.roll(weights, -i) for i in SHIFTS])


@pytest.mark.parametrize(
    "insert",
    [
        lambda x, i: np.insert(x, i, 1.5),
        lambda x, i: np.insert(x, i, [1.5, 2.5]),
        lambda x, i: np.insert(x, i, x[0], axis=0),
        lambda x, i: np.insert(x, i, [1.5, 2.5], axis=1),
    ],
)
@pytest.mark.parametrize("places", [[0, 1, 2], [-1, -2, 0]])
def test_insert_before_a_place_that_differs(insert, places):
    assert_array_equal(fg.vmap(insert)(X, np.array(places)), looped(insert, X, places))


@pytest.mark.parametrize("places", [[[0, 2], [3, 1], [-1, -1]], [[1], [3], [-3]]])
def test_insert_before_several_places_that_differ(places):
    def insert(x, i):
        return np.insert(x, i, x[:, :1], axis=1)

    places = np.array(places)
    assert_array_equal(fg.vmap(insert)(X, places), looped(insert, X, places))


def test_insert_into_a_plain_array():
    v = np.array([1.0, 2.0, 3.0])
    found = fg.vmap(lambda i: fnp.insert(v, i, 9.0))(np.array([0, 3, -1]))
    assert_array_equal(found, [[9, 1, 2, 3], [1, 2, 3, 9], [1, 2, 9, 3]])


def test_insert_out_of_bounds():
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 3"):
        fg.vmap(lambda x, i: np.insert(x, i, 0.0))(X[:, 0], np.array([0, 4, 1]))


def test_gradient_of_what_is_inserted_and_of_the_rest():
    weights = np.array([1.0, 10.0, 100.0, 1000.0])

    def f(x, v, i):
        return np.sum(np.insert(x, i, v) * weights)

    x_bar, v_bar = fg.vmap(fg.grad(f, (0, 1)))(X[:, 0], np.ones(3), np.array([0, 2, 3]))
    assert_array_equal(v_bar, [1, 100, 1000])
    assert_array_equal(x_bar, [[10, 100, 1000], [1, 10, 1000], [1, 10, 100]])


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_delete_one_place_that_differs(axis):
    places = np.array([0, 1, -1])

    def delete(x, i):
        return np.delete(x, i, axis)

    assert_array_equal(fg.vmap(delete)(X, places), looped(delete, X, places))


def test_delete_out_of_bounds():
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        fg.vmap(lambda x, i: np.delete(x, i))(X[:, 0], np.array([0, 3, 1]))


def test_deleting_several_places_that_differ_is_refused():
    with pytest.raises(ShapeError, match="as many elements as an argument names"):
        fg.vmap(lambda x, i: np.delete(x, i))(X[:, 0], np.array([[0, 1], [2, 2], [0, 0]]))


@pytest.mark.parametrize("repeat", [np.repeat, fnp.repeat])
def test_counts_that_differ_are_refused(repeat):
    with pytest.raises(ShapeError, match="as long as an argument says"):
        fg.vmap(lambda x, i: repeat(x, i))(X[:, 0], np.array([1, 2, 0]))


def test_repeat_of_a_plain_array_with_counts_that_differ_is_refused():
    with pytest.raises(ShapeError, match="as long as an argument says"):
        fg.vmap(lambda i: fnp.repeat(X[0, 0], i))(np.array([1, 2, 0]))
