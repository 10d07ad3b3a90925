"""``fg.at(x)[index]``: each method against NumPy's in-place form, and against differences."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg
from funcgrad import at
from funcgrad.errors import ArgumentError, DtypeError
from funcgrad.testing import check_grads

X = np.array([0.5, 1.25, 2.0, 0.75])
OPERATIONS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "mul": np.multiply,
    "divide": np.true_divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
}
INDICES = [1, slice(1, 3), slice(None, None, -1), [0, 0, 2], [[0, 1], [1, 0]], X > 0.6, ..., []]
MODES = ("fwd", "rev", "lin")


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_those_of_ufunc_at(name, index):
    values = np.linspace(0.6, 1.7, X[index].size).reshape(X[index].shape)
    want = X.copy()
    OPERATIONS[name].at(want, index, values)
    before = X.copy()
    assert_array_equal(getattr(at(X)[index], name)(values), want)
    assert_array_equal(X, before)
    out, _ = fg.vjp(lambda x, v: getattr(at(x)[index], name)(v), X, values)
    assert_array_equal(out, want)


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("name", [*OPERATIONS, "set"])
def test_derivatives_in_array_and_values(name, index):
    values = np.linspace(0.6, 1.7, X[index].size).reshape(X[index].shape)
    check_grads(lambda x, v: getattr(at(x)[index], name)(v), (X, values), modes=MODES)


def test_set_is_assignment():
    want = X.copy()
    want[[0, 0]] = [7, 8]
    assert_array_equal(at(X)[[0, 0]].set([7, 8]), want)


def test_it_works_on_arguments_and_lists():
    def f(x):
        y = at(x)[1:].set(x[:-1] * 2)
        z = at([x[0], x[1] * 3])[0].multiply(5.0)
        return np.sum(y) + np.sum(z)

    assert_array_equal(fg.grad(f)(np.array([1.0, 2.0])), [1 + 2 + 5, 3])
    assert_array_equal(at([1.0, 2.0])[0].set(5.0), [5, 2])


def test_a_plain_array_takes_traced_values():
    f = lambda v: np.sum(at(np.zeros(3))[[0, 0]].add(v) ** 2)  # noqa: E731
    assert_array_equal(fg.grad(f)(np.array([1.0, 2.0])), [6, 6])


@pytest.mark.parametrize("name", ["min", "max"])
def test_equal_elements_share_evenly(name):
    def f(x, v):
        return np.sum(getattr(at(x)[[0, 0]], name)(v))

    x_bar, v_bar = fg.grad(f, argnums=(0, 1))(np.ones(2), np.ones(2))
    np.testing.assert_allclose(x_bar, [1 / 3, 1], rtol=1e-15)
    np.testing.assert_allclose(v_bar, [1 / 3, 1 / 3], rtol=1e-15)
    out_dot = fg.jvp(f, (np.ones(2), np.ones(2)), (np.ones(2), np.zeros(2)))[1]
    np.testing.assert_allclose(out_dot, 4 / 3, rtol=1e-15)


def test_a_product_with_a_zero_among_repeated_factors():
    f = lambda v: at(np.ones(2))[[0, 0, 0]].multiply(v)[0]  # noqa: E731
    assert_array_equal(fg.grad(f)(np.array([0.0, 5.0, 7.0])), [35, 0, 0])


def test_apply_repeats_as_often_as_named():
    want = X.copy()
    np.negative.at(want, [0, 0, 1])
    assert_array_equal(at(X)[[0, 0, 1]].apply(np.negative), want)
    check_grads(lambda x: at(x)[[0, 0, 1]].apply(np.sin), (X,), modes=MODES)
    check_grads(lambda x: at(x)[1:].apply(np.exp), (X,), modes=MODES)


def test_dtype_is_that_of_the_array():
    x = X.astype(np.float32)
    for name in [*OPERATIONS, "set"]:
        assert getattr(at(x)[1], name)(np.float64(2.0)).dtype == np.float32
        value = fg.grad(lambda v, name=name: np.sum(getattr(at(x)[1], name)(v)))(np.float64(2.0))
        assert value.dtype == np.float64


def test_an_integer_array_takes_no_traced_values():
    for name in ("set", "add"):
        with pytest.raises(DtypeError, match=r"astype\(") as caught:
            fg.grad(lambda v, name=name: np.sum(getattr(at(np.arange(3))[0], name)(v) * v))(1.0)
        assert "test_at.py" in str(caught.value)
    assert_array_equal(at(np.arange(3))[0].set(7), [7, 1, 2])
    assert_array_equal(at(np.arange(3))[[0, 0]].add(7), [14, 1, 2])


# Out of bounds


def test_out_of_bounds_raises_as_in_numpy():
    for call in (
        lambda: at(X)[9].get(),
        lambda: at(X)[9].set(1.0),
        lambda: at(X)[[0, 9]].add(1.0),
        lambda: at(X)[9].get(mode="promise_in_bounds"),
    ):
        with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 4"):
            call()


def test_get_clips_wraps_and_fills():
    index = [-9, -1, 1, 4]
    assert_array_equal(at(X)[index].get(mode="clip"), X[[0, 3, 1, 3]])
    assert_array_equal(at(X)[index].get(mode="wrap"), X[[3, 3, 1, 0]])
    assert_array_equal(at(X)[index].get(mode="fill"), [np.nan, X[3], X[1], np.nan])
    assert_array_equal(at(X)[index].get(fill_value=0), [0, X[3], X[1], 0])
    assert_array_equal(at(np.arange(3))[5].get(mode="fill"), np.iinfo(int).min)
    assert_array_equal(at(X)[7].get(mode="clip"), X[3])


def test_get_fills_rows_and_columns():
    m = np.arange(6.0).reshape(2, 3)
    filled = at(m)[np.array([0, 2]), 1:].get(mode="fill", fill_value=-1)
    assert_array_equal(filled, [[1, 2], [-1, -1]])
    filled = at(m)[..., 5].get(mode="fill", fill_value=-1)
    assert_array_equal(filled, [-1, -1])
    filled = at(m)[np.array([[0], [9]]), [0, -3]].get(mode="fill", fill_value=-1)
    assert_array_equal(filled, [[0, 0], [-1, -1]])


def test_get_of_what_is_outside_has_no_derivative():
    f = lambda x: np.sum(at(x)[[0, 7, -9, 3, 3]].get(mode="fill", fill_value=0.0))  # noqa: E731
    assert_array_equal(fg.grad(f)(X), [1, 0, 0, 2])


def test_updates_out_of_bounds_are_dropped():
    values = np.array([10.0, 20.0, 30.0])
    assert_array_equal(at(X)[[0, 4, -5]].set(values, mode="drop"), [10, *X[1:]])
    assert_array_equal(at(X)[[0, 0, 4]].add(values, mode="drop"), [30.5, *X[1:]])
    assert_array_equal(at(X)[9].multiply(3.0, mode="drop"), X)
    f = lambda v: np.sum(at(X)[[0, 4, -5]].set(v, mode="drop"))  # noqa: E731
    assert_array_equal(fg.grad(f)(values), [1, 0, 0])


def test_updates_clip_and_wrap():
    assert_array_equal(at(X)[[9, -9]].set(0.0, mode="clip"), [0, X[1], X[2], 0])
    assert_array_equal(at(X)[[5]].set(0.0, mode="wrap"), [X[0], 0, X[2], X[3]])


def test_an_unknown_mode_is_refused():
    with pytest.raises(ArgumentError, match=r"mode='foo'.*unknown"):
        at(X)[0].get(mode="foo")


def test_compatible_keywords_are_taken():
    out = at(X)[[0, 1]].add(1.0, indices_are_sorted=True, unique_indices=True)
    assert_array_equal(out, [1.5, 2.25, 2.0, 0.75])


def test_it_prints_what_it_is():
    assert repr(at(np.ones(2))[0]) == "at(array([1., 1.]))[0]"
