"""Assignment under `vmap` where no derivative is involved: integers, booleans, casts to them."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.errors import DtypeError, MutationError, TracerConversionError

X = np.array([[3, 1, 2], [1, 5, 4], [0, 0, 9], [7, 2, -1]])
FLOATS = X + 0.75
PLACES = np.array([0, 2, 1, 1])


def item(x, i):
    x[0] = x[1]


def part_in_place(x, i):
    x[1:] += x[:-1]


def sort(x, i):
    x.sort()


def exchange(x, i):
    x[[0, 1]] = x[[1, 0]]


def add_at(x, i):
    np.add.at(x, [0, 0], x[1])


def multiply_at(x, i):
    np.multiply.at(x, fnp.array([i, i]), 3)


def put_along_axis(x, i):
    np.put_along_axis(x, np.array([0, 1]), x[1:].copy(), 0)


def put_along_axis_where_differs(x, i):
    np.put_along_axis(x, np.argsort(x), x.copy(), 0)


def copyto(x, i):
    np.copyto(x, x * 2, where=x > 1)


def out_where(x, i):
    np.multiply(x, 2, out=x, where=x > 1)


def out(x, i):
    np.cumsum(x, out=x)


def operators(x, i):
    x -= 1
    x *= x[0]
    x //= 2
    x %= 5
    x <<= 2
    x >>= 1
    x |= 1
    x ^= i


def place_that_differs(x, i):
    x[i] = 10


def place_that_differs_in_place(x, i):
    x[i] += i


def mask_that_differs(x, i):
    x[x > 1] = i


def fill(x, i):
    x.fill(7)
    x[0] = i


def put(x, i):
    np.put(x, [0, 2], i)


def place(x, i):
    np.place(x, x > 1, [9, 8])


def place_from_values_that_differ(x, i):
    np.place(x, x > 1, x[:2].copy())


def putmask(x, i):
    np.putmask(x, x > 1, x * 2)


def partition(x, i):
    x.partition(1)


UPDATES = [
    item,
    part_in_place,
    sort,
    exchange,
    add_at,
    multiply_at,
    put_along_axis,
    put_along_axis_where_differs,
    copyto,
    out_where,
    out,
    operators,
    place_that_differs,
    place_that_differs_in_place,
    mask_that_differs,
    fill,
    put,
    place,
    place_from_values_that_differ,
    putmask,
    partition,
]


def check(f, *args):
    """Check that `f` gives under `vmap` what it gives one by one, in the same dtype."""
    want = np.stack([f(*example) for example in zip(*args, strict=True)])
    found = fg.vmap(f)(*args)
    assert_array_equal(found, want)
    assert found.dtype == want.dtype


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint16"])
@pytest.mark.parametrize("update", UPDATES)
def test_integers(update, dtype):
    def f(x, i):
        y = x.copy()
        update(y, i)
        return y

    check(f, abs(X).astype(dtype), PLACES.astype(dtype))


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("update", UPDATES)
def test_integers_along_another_axis(update, axis):
    def f(x, i):
        y = x.copy()
        update(y, i)
        return y

    want = np.stack([f(x, i) for x, i in zip(X, PLACES, strict=True)])
    assert_array_equal(fg.vmap(f, in_axes=(axis, 0))(X.T, PLACES), want)


def view_of_part(x):
    y = x.copy()
    part = y[1:]
    part += 1
    return y


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_view_written_through(axis):
    found = fg.vmap(view_of_part, in_axes=axis)(np.moveaxis(X, 0, axis))
    assert_array_equal(found, X + np.array([0, 1, 1]))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_view_that_is_alive(axis):
    def f(x):
        y = x.copy()
        part = y[1:]
        y[0] = 0
        return part

    with pytest.raises(MutationError, match="share memory"):
        fg.vmap(f, in_axes=axis)(np.moveaxis(X, 0, axis))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_an_argument_is_not_written_to(axis):
    def f(x):
        x[0] = 1
        return x

    with pytest.raises(MutationError, match="an argument of a transformed function"):
        fg.vmap(f, in_axes=axis)(np.moveaxis(X, 0, axis).copy())


def test_an_element_is_a_value():
    def f(x):
        y = x.copy()
        first = y[0]
        y[0] = y[1]
        y[1] = first
        return y

    check(f, X)
    check(f, FLOATS)


def test_booleans():
    def f(x):
        mask = x > 2
        mask[0] = x[1] > 0
        mask |= x < 0
        mask &= x < 9
        mask ^= x == 1
        return mask

    check(f, X)


def test_a_boolean_where_the_place_differs():
    def f(x):
        mask = np.zeros_like(x, dtype=bool)
        mask[np.argmax(x)] = True
        return mask

    check(f, X)
    check(f, FLOATS)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: fnp.zeros(3, dtype=int),
        lambda x: fnp.ones(3, dtype=np.int16),
        lambda x: fnp.full(3, 7),
        lambda x: fnp.arange(3),
        lambda x: fnp.eye(3, dtype=int)[0].copy(),
        lambda x: fnp.array([1, 2, 3]),
        lambda x: fnp.asarray([1, 2, 3]),
        lambda x: fnp.copy(X[0]),
        lambda x: fnp.zeros_like(X[0]),
        lambda x: np.zeros_like(x),
        lambda x: np.ones_like(x, dtype=np.uint8),
        lambda x: np.full_like(x, 4),
    ],
)
def test_new_arrays_take_integers(make):
    def f(x, i):
        y = make(x)
        y[0] = abs(x[0])
        y[i] = 1
        return y

    check(f, X, PLACES)


def test_out_of_a_new_array():
    def f(x):
        return np.add(x, 1, out=np.empty_like(x))

    check(f, X)


def test_an_index_kept_in_an_array():
    def f(x):
        best = np.zeros_like(x, dtype=int)
        best[0] = np.argmax(x)
        return x[best[0]]

    check(f, X)
    check(f, FLOATS)


@pytest.mark.parametrize(
    "update",
    [
        lambda x, i: fg.at(x)[0].set(x[1]),
        lambda x, i: fg.at(x)[0].multiply(2),
        lambda x, i: fg.at(x)[0].add(x[1]),
        lambda x, i: fg.at(x)[i].subtract(x[1]),
        lambda x, i: fg.at(x)[i].max(i),
        lambda x, i: fg.at(x)[x > 1].multiply(3),
    ],
)
def test_at(update):
    check(update, X, PLACES)


# Casts


@pytest.mark.parametrize("dtype", [int, np.int8, np.uint16, bool])
def test_a_float_is_cast_as_numpy_does(dtype):
    def f(x):
        y = fnp.zeros(3, dtype=dtype)
        y[:2] = x[1:]
        return y

    check(f, abs(FLOATS))


@pytest.mark.parametrize("transform", [fg.grad, lambda f: fg.vmap(fg.grad(f))])
def test_a_float_with_a_derivative_is_not(transform):
    def f(x):
        y = np.zeros_like(x, dtype=int)
        y[0] = x[1]
        return x[0] * y[0]

    with pytest.raises(DtypeError, match="has no derivative"):
        transform(f)(FLOATS if transform is not fg.grad else FLOATS[0])


def test_nor_is_one_that_has_it_from_outside():
    def f(x):
        def row(x):
            y = np.zeros_like(x, dtype=int)
            y[0] = x[1]
            return y

        return np.sum(fg.vmap(row)(x))

    with pytest.raises(DtypeError, match="has no derivative"):
        fg.grad(f)(FLOATS)


def test_integers_beside_a_derivative():
    def f(x):
        best = fnp.zeros(1, dtype=int)
        best[0] = np.argmax(x)
        return x[best[0]] ** 2

    largest = np.max(X, axis=1, keepdims=True)
    want = 2 * FLOATS * (largest == X)
    assert_array_equal(fg.vmap(fg.grad(f))(FLOATS), want)
    assert_array_equal(fg.grad(lambda x: np.sum(fg.vmap(f)(x)))(FLOATS), want)


def test_under_two_vmaps():
    def f(x, i):
        y = x.copy()
        y[i] = x[0] + i
        return y

    xs = np.stack([X, X + 1])
    found = fg.vmap(fg.vmap(f, in_axes=(None, 0)), in_axes=(0, None))(X, PLACES)
    assert_array_equal(found, [[f(x, i) for i in PLACES] for x in X])
    found = fg.vmap(fg.vmap(f), in_axes=(0, None))(xs, PLACES)
    assert_array_equal(found, [[f(x, i) for x, i in zip(rows, PLACES, strict=True)] for rows in xs])


def test_a_plain_array_of_integers_takes_none():
    def f(x):
        y = np.zeros(3, dtype=int)
        y[0] = x[0]
        return y

    with pytest.raises(TracerConversionError, match="a plain NumPy array") as caught:
        fg.vmap(f)(X)
    assert "funcgrad.numpy.zeros" in str(caught.value)


def test_placing_nothing():
    def f(x, values):
        y = x.copy()
        np.place(y, y > 100, values)
        return y

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_array_equal(fg.vmap(f)(X, np.zeros((4, 0), int)), X)


def test_placing_from_no_values():
    def f(x, values):
        y = x.copy()
        np.place(y, y > 1, values)
        return y

    with pytest.raises(ValueError, match="Cannot insert from an empty array"):
        fg.vmap(f)(X, np.zeros((4, 0), int))
