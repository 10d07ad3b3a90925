"""`while_loop` and `fori_loop`: how often they run, and what they carry."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.control import fori_loop, while_loop
from funcgrad.errors import ArgumentError, DtypeError, MutationError, ShapeError, TreeMismatchError


def test_runs_until_the_condition_fails():
    assert while_loop(lambda n: n < 100, lambda n: n * 2, 1) == 128


def test_returns_what_it_was_given_if_the_condition_fails_at_once():
    init = np.arange(3.0)
    assert while_loop(lambda x: False, lambda x: x + 1, init) is init


def test_reverse_mode():
    def power(x, n):
        return while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * x), (0, 1.0))[1]

    assert fg.grad(power)(2.0, 5) == 80.0
    assert fg.grad(fg.grad(power))(2.0, 5) == 160.0


def test_condition_on_the_value_that_is_differentiated():
    def f(x):
        return while_loop(lambda y: y < 100.0, lambda y: y * x, x)

    assert_allclose(fg.grad(f)(3.0), 5 * 3.0**4)
    assert fg.jvp(f, (3.0,), (1.0,)) == (243.0, 405.0)


def test_each_row_stops_when_it_is_done():
    out = fg.vmap(lambda n: while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2), (0, 1)))(
        np.array([3, 0, 5])
    )
    assert_array_equal(out[0], [3, 0, 5])
    assert_array_equal(out[1], [8, 1, 32])


def test_row_that_is_done_is_not_computed_again():
    """It would warn of the root of a negative number, and never end."""
    sizes = []

    def body(x):
        sizes.append(x._value.shape[0])
        return np.sqrt(x) - 1.0

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = fg.vmap(lambda x: while_loop(lambda x: x >= 0, body, x))(np.array([4.0, 0.5, -1.0]))
    assert_allclose(out, [-1.0, np.sqrt(0.5) - 1.0, -1.0])
    assert sizes == [2, 1, 1]


def test_named_values_are_taken_row_by_row():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = fg.vmap(
            lambda n: while_loop(
                lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] + np.log(n - s[0])), (0, 0.0)
            )[1]
        )(np.array([3, 0, 2]))
    assert_allclose(out, [np.log(6), 0.0, np.log(2)])


def test_condition_that_differs_only_later():
    """It is the same for all rows in the first steps."""

    def f(x):
        return while_loop(
            lambda s: True if s[0] < 2 else s[1] < 50.0, lambda s: (s[0] + 1, s[1] * x), (0, 1.0)
        )

    count, out = fg.vmap(f)(np.array([2.0, 10.0, 5.0]))
    assert_array_equal(count, [6, 2, 3])
    assert_array_equal(out, [64.0, 100.0, 125.0])


def test_condition_in_two_vmaps_of_which_one_comes_later():
    def f(x, y):
        return while_loop(
            lambda s: s[0] < x if s[0] < 1 else s[0] * y < x, lambda s: (s[0] + 1, s[1] + y), (0, y)
        )[1]

    xs, ys = np.array([0, 3, 7]), np.array([1.0, 2.0])
    found = fg.vmap(fg.vmap(f, in_axes=(None, 0)), in_axes=(0, None))(xs, ys)
    assert_array_equal(found, [[f(x, y) for y in ys] for x in xs])


def test_no_rows_at_all():
    out = fg.vmap(lambda x: while_loop(lambda v: v < 3, lambda v: v + 1, x))(np.ones(0))
    assert out.shape == (0,)


def test_rows_of_keys():
    def f(key, n):
        return while_loop(lambda s: s[1] < n, lambda s: (s[0].split(2)[1], s[1] + 1), (key, 0))[0]

    keys = fg.random.key(3).split(3)
    out = fg.vmap(f)(keys, np.array([0, 2, 1]))
    for i, n in enumerate([0, 2, 1]):
        assert out[i] == f(keys[i], n)


def test_many_steps_by_rows():
    out = fg.vmap(lambda n: while_loop(lambda i: i < n, lambda i: i + 1, 0))(np.array([500, 20]))
    assert_array_equal(out, [500, 20])


def test_for_over_a_range():
    seen = []

    def body(i, total):
        seen.append(i)
        return total + i

    assert fori_loop(2, 5, body, 0) == 9
    assert seen == [2, 3, 4]


def test_for_over_nothing():
    assert fori_loop(5, 2, lambda i, x: 1 / 0, "unchanged") == "unchanged"


@pytest.mark.parametrize("bounds", [(np.int32(0), np.array(3)), (0, np.uint8(3))])
def test_bounds_of_any_integer_type(bounds):
    assert fori_loop(*bounds, lambda i, x: x + i, 0) == 3


def test_bounds_that_differ_by_row():
    out = fg.vmap(lambda a, b: fori_loop(a, b, lambda i, x: x + i, 0))(
        np.array([0, 2, 5]), np.array([4, 3, 1])
    )
    assert_array_equal(out, [6, 2, 0])


def test_gradient_of_for():
    """Of x^5 + x^3 + 2x^2 + 3x + 4."""
    found = fg.grad(lambda x: fori_loop(0, 5, lambda i, c: c * x + i, 1.0))(1.3)
    assert_allclose(found, 5 * 1.3**4 + 3 * 1.3**2 + 4 * 1.3 + 3)


@pytest.mark.parametrize("bound", [2.5, "3", None, True, np.ones(2)])
def test_bound_that_is_no_integer(bound):
    with pytest.raises(ArgumentError, match="upper of fori_loop must be an integer"):
        fori_loop(0, bound, lambda i, x: x, 0)


def test_condition_that_is_no_scalar():
    def below(x):
        return x < 3

    with pytest.raises(ArgumentError) as error:
        while_loop(below, lambda x: x, np.zeros(2))
    assert "cond_fun of while_loop must return a scalar that is true or false, got bool[2]" in str(
        error.value
    )
    assert "below (" in str(error.value)


# The carry


def test_integer_start_takes_the_dtype_of_the_first_step():
    out = while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1] + 0.5), (0, 0))
    assert out == (2, 1.0)
    assert isinstance(out[1], float)


def test_python_number_takes_the_dtype_of_the_carry():
    out = fori_loop(0, 3, lambda i, c: np.float32(2.0) if i < 2 else 1, np.float32(0.0))
    assert out == 1.0
    assert out.dtype == np.float32


def test_dtype_that_changes_later():
    def body(i, c):
        return {"a": c["a"] * (1j if i == 3 else 1.0)}

    with pytest.raises(DtypeError) as error:
        fori_loop(0, 5, body, {"a": 1.0})
    words = str(error.value)
    assert "changed at step 3: expected float64[], found complex128[]" in words
    assert "the carry at ['a'] that body (" in words
    assert "test_whiles.py" in words


def test_dtype_of_an_array_of_floats_never_changes():
    with pytest.raises(DtypeError, match=r"step 0: expected float32\[2\], found float64\[2\]"):
        fori_loop(0, 2, lambda i, c: c * np.ones(2), np.ones(2, np.float32))


def test_shape_that_changes():
    with pytest.raises(ShapeError, match=r"step 1: expected float64\[2\], found float64\[3\]"):
        fori_loop(0, 5, lambda i, c: np.ones(2 + i), np.ones(2))


def test_structure_that_changes():
    with pytest.raises(TreeMismatchError, match="carry of while_loop must keep its structure"):
        while_loop(lambda c: True, lambda c: (*c, 1.0), (1.0,))


def test_shape_that_changes_under_vmap():
    with pytest.raises(ShapeError, match=r"step 0: expected float64\[\], found float64\[2\]"):
        fg.vmap(lambda x: while_loop(lambda c: x > 0, lambda c: c * np.ones(2), x))(
            np.array([1.0, -1.0])
        )


def test_carry_is_read_only():
    def body(i, c):
        c += 1
        return c

    start = np.zeros(2)
    with pytest.raises(MutationError, match=r"write c = c \+ x in place of c \+= x"):
        fori_loop(0, 2, body, start)
    assert_array_equal(start, [0.0, 0.0])


def test_carry_that_is_handed_on_is_returned_itself():
    start = np.zeros(2)
    assert fori_loop(0, 3, lambda i, c: c, start) is start


def test_returned_carry_is_writeable():
    out = fori_loop(0, 3, lambda i, c: c[::-1], np.arange(3.0))
    out[0] = 7.0
    assert_array_equal(out, [7.0, 1.0, 0.0])
