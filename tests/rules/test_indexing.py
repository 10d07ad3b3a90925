"""Indexing: repeated elements, residuals, errors. The samples run in test_laws.py."""

import operator
import weakref

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg
from funcgrad.errors import TracerConversionError
from funcgrad.rules.indexing import getitem, place, repeats, scatter_add, settle
from funcgrad.testing import check_grads

X = np.array([1.0, 2.0, 3.0, 4.0])
M = np.arange(12.0).reshape(3, 4)


def test_cotangents_of_an_element_named_twice_add_up():
    assert_array_equal(fg.grad(lambda x: np.sum(x[[0, 0, 2]]))(X), [2, 0, 1, 0])
    assert_array_equal(fg.grad(lambda x: np.sum(x[[-1, 3]] * [5, 7]))(X), [0, 0, 0, 12])


def test_cotangents_of_a_row_named_twice_add_up():
    weights = np.arange(12.0).reshape(3, 4)
    gradient = fg.grad(lambda x: np.sum(x[[2, 0, 2]] * weights))(M)
    assert_array_equal(gradient, [[4, 5, 6, 7], [0, 0, 0, 0], [8, 10, 12, 14]])


@pytest.mark.parametrize("width", [1, 200])  # by either way of adding up
def test_an_embedding_table_gets_each_row_as_often_as_it_is_used(width):
    table = np.ones((5, width))
    words = np.array([[0, 1, 1], [4, -1, 1]])
    gradient = fg.grad(lambda t: np.sum(t[words]))(table)
    assert_array_equal(gradient, np.array([1, 3, 0, 0, 2])[:, None] * np.ones(width))


def test_separated_index_arrays():
    x = np.arange(24.0).reshape(2, 3, 4)
    gradient = fg.grad(lambda x: np.sum(x[[0, 0, 1], :, [1, 1, 3]] ** 2))(x)
    want = np.zeros((2, 3, 4))
    want[0, :, 1] = 4 * x[0, :, 1]
    want[1, :, 3] = 2 * x[1, :, 3]
    assert_array_equal(gradient, want)


def test_many_repetitions_in_several_axes():
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(-6, 6, (2, 500))
    gradient = fg.grad(lambda x: np.sum(x[rows, columns]))(np.zeros((6, 6)))
    want = np.zeros((6, 6))
    for i, j in zip(rows, columns, strict=True):
        want[i, j] += 1
    assert_array_equal(gradient, want)


@pytest.mark.parametrize(
    "index", [1, np.int64(-1), slice(None, None, -1), ..., (0,), [2, 2], X > 1.5, None, True, ()]
)
def test_the_value_is_that_of_numpy_in_kind_too(index):
    out, _ = fg.vjp(lambda x: x[index], X)
    want = X[index]
    assert type(out) is type(want)
    assert_array_equal(out, want)


def test_iteration_unpacking_and_contains():
    def f(x):
        a, *_, b = x
        assert 2.0 in x
        return a * b + sum(v**2 for v in x)

    assert_array_equal(fg.grad(f)(X), [6, 4, 6, 9])


def test_second_order_of_a_picked_element():
    hessian = fg.grad(lambda x: np.sum(fg.grad(lambda y: np.sum(y[[0, 0]] ** 3))(x) * x))(X)
    # the inner gradient is 6 x0**2, so this is 6 x0**3
    assert_array_equal(hessian, [18, 0, 0, 0])


def test_an_index_array_may_be_written_to_afterwards():
    def f(x):
        index = np.array([0, 1])
        mask = np.array([True, False, True, False])
        y, z = x[index] ** 2, x[mask]
        w = np.take(x, index)
        index[:] = 3
        mask[:] = True
        return np.sum(y) + np.sum(z) + np.sum(w)

    assert_array_equal(fg.grad(f)(X), [2 + 1 + 1, 4 + 1, 1, 0])


def test_the_pullback_keeps_shape_and_index_but_not_the_array():
    for index in (slice(1, 3), np.array([1, 1])):
        x = X.copy()
        pullback = getitem.vjp((x,), None, index=index)
        dropped = weakref.ref(x)
        del x
        assert dropped() is None
        assert_array_equal(pullback(np.ones(2)), np.bincount(np.arange(4)[index], minlength=4))


def test_out_of_range_is_numpys_own_error():
    for index, words in (
        (7, "index 7 is out of bounds for axis 0 with size 4"),
        ([0, 9], "index 9 is out of bounds"),
        ((0, 0), "too many indices for array"),
        (np.ones(3, bool), "boolean index did not match"),
        (1.0, "only integers, slices"),
        ("a", "only integers, slices"),
    ):
        with pytest.raises(IndexError, match=words):
            fg.grad(lambda x, index=index: np.sum(x[index]))(X)


def test_a_traced_index_is_refused():
    for f in (
        lambda x: x[x[0]],
        lambda x: x[[x[0], x[1]]],
        lambda x: np.sum(x[x[1] :]),
        lambda x: np.sum(x[None, x]),
        lambda x: np.take(x, x[0]),
        lambda x: np.take(x, [x[0]]),
    ):
        for run in (lambda f=f: fg.grad(f)(X), lambda f=f: fg.jvp(f, (X,), (X,))):
            with pytest.raises(TracerConversionError) as caught:
                run()
            assert "cannot be an index" in str(caught.value)
            assert "np.floor(x).astype(int)" in str(caught.value)


def test_a_traced_index_of_a_plain_array_is_refused():
    for f in (lambda x: X[x[0]] * x[0], lambda x: [1, 2, 3][x[0]] * x[0]):
        with pytest.raises(TracerConversionError, match=r"cannot be (an|the) index"):
            fg.grad(f)(X)


def test_an_integer_made_of_a_traced_value_is_an_index():
    assert_array_equal(fg.grad(lambda x: x[np.floor(x[1]).astype(int)] ** 2)(X), [0, 0, 6, 0])
    assert_array_equal(fg.grad(lambda x: x[np.argmax(x)])(X), [0, 0, 0, 1])


def test_a_python_number_has_no_items():
    with pytest.raises(TypeError, match="not subscriptable"):
        fg.grad(lambda x: x[0])(1.0)


def test_an_array_of_no_dimensions():
    x = np.array(2.0)
    assert fg.grad(lambda x: x[()] ** 2)(x) == 4.0
    assert fg.grad(lambda x: np.sum(x[None] * np.ones(3)))(x) == 3.0
    assert fg.grad(lambda x: x[...])(x) == 1.0


def test_the_gradient_of_a_view_is_an_array_of_its_own():
    gradient = fg.grad(lambda x: np.sum(x[::-1].T[1:] * 1.0))(X)
    assert gradient.base is None
    assert_array_equal(gradient, [1, 1, 1, 0])


@pytest.mark.parametrize(
    ("shape", "index"),
    [
        ((4,), [0, 0]),
        ((4,), np.array([[1, -1]])),
        ((3, 4), [2, -3]),
        ((3, 4), ([0, 1], [1, -1])),
        ((2, 3, 4), ([0, -1], slice(1, 3), [1, 1])),
        ((2, 3, 4), (..., [0, 0])),
        ((3, 4), (np.array([True, False, True]), [1, 1])),
    ],
)
def test_place_numbers_the_elements_that_an_index_names(shape, index):
    numbers = np.arange(np.prod(shape)).reshape(shape)
    assert_array_equal(place(shape, settle(index)), numbers[index])


@pytest.mark.parametrize(
    ("index", "want"),
    [
        (0, False),
        (slice(2), False),
        ((0, None, ...), False),
        (np.int32(1), False),
        (np.array(1), False),
        (np.array([True]), False),
        (True, False),
        (np.array([1]), True),
        ((slice(2), np.array([1])), True),
    ],
)
def test_only_arrays_of_integers_can_name_an_element_twice(index, want):
    assert repeats(settle(index)) is want


def test_complex_elements():
    z = np.array([1 + 2j, 3 - 1j])
    assert_array_equal(fg.grad(lambda z: np.abs(z[0]) ** 2)(z), [2 - 4j, 0])


def test_scatter_add_is_the_transpose_of_getitem():
    t = np.array([1.0, 10.0, 100.0])
    index = settle([3, 0, 3])
    out = scatter_add.bind(t, shape=(4,), index=index)
    assert_array_equal(out, [10, 0, 0, 101])
    assert np.vdot(X, out) == np.vdot(X[index], t)


def test_rosenbrock():
    def rosenbrock(x):
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    # by hand, at (1, 2, 2): [-400 x0 (x1 - x0**2) - 2 (1 - x0),
    #   200 (x1 - x0**2) - 400 x1 (x2 - x1**2) - 2 (1 - x1), 200 (x2 - x1**2)]
    gradient = fg.grad(rosenbrock)(np.array([1.0, 2.0, 2.0]))
    assert_array_equal(gradient, [-400, 200 + 1600 + 2, -400])
    check_grads(rosenbrock, (np.array([0.3, -0.2, 1.1]),), modes=("fwd", "rev", "lin"))


def test_getitem_answers_for_the_operator():
    assert_array_equal(fg.grad(lambda x: operator.getitem(x, 2) ** 2)(X), [0, 0, 6, 0])
