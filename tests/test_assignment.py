"""Assignment to traced arrays: NumPy's values, the right derivatives, refusals by name."""

import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg
from funcgrad import tree
from funcgrad.core.level import concrete
from funcgrad.core.primitive import DECLARED
from funcgrad.errors import (
    DtypeError,
    MutationError,
    ShapeError,
    TracerConversionError,
    TracerLeakError,
)
from funcgrad.testing import check_grads
from funcgrad.transforms.stop import stop_gradient

X = np.array([0.5, -1.25, 2.0, 0.75])
M = np.arange(12.0).reshape(4, 3) / 7 - 0.6


def fill_zeros(x):
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[i] = np.sin(x[i]) * x[i - 1]
    return np.sum(y**2)


def shifted(x):
    y = x.copy()
    y[1:] += x[:-1]
    y[::2] *= y[1::2]
    return np.sum(y**3)


def overlapping(x):
    y = x * 1
    y[1:] = y[:-1]
    y[:2] = y[2:] * y[1]
    return np.sum(y**2 * np.arange(1.0, 5.0))


def recurrence(x):
    y = np.zeros_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = 0.5 * y[i - 1] ** 2 + x[i]
    return y[-1]


def masked(x):
    y = x**2
    y[x > 0.6] = 3.0
    y[y < 1] *= x[0]
    return np.sum(y * x)


def fancy(x):
    y = np.zeros_like(x)
    y[[0, 2]] = x[[1, 1]]
    y[[3, 3]] = x[:2]  # the last one stays
    y[[0, 0]] += x[2:]
    return np.sum(y**2)


def in_place_operators(x):
    y = x + 0
    y += x
    y -= 1
    y *= x
    y /= 2
    y **= 2
    y += 0.25
    return np.sum(y)


def scalars(x):
    s, p = 0.0, x[0]
    for i in range(len(x)):
        s += x[i] ** 2
        p *= x[i]
    return s + p


def out_argument(x):
    z = np.zeros_like(x)
    np.add(x, x**2, out=z)
    np.multiply(z, x, z)
    return np.sum(z)


def filled(x):
    y = np.empty_like(x)
    y.fill(2.0)
    y[1] = x[1]
    return np.sum(y**2)


def copied_into(x):
    y = np.zeros_like(x)
    np.copyto(y, x**2)
    np.copyto(y, 3 * x, where=np.array([True, False, True, False]))
    return np.sum(y**2)


def put_in(x):
    y = np.zeros_like(x)
    np.put(y, [0, -1], x[1:3])
    np.place(y, np.array([False, True, True, False]), x[:1])
    np.putmask(y, np.array([True, False, False, True]), x**2)
    return np.sum(y**3)


def added_at(x):
    y = x * 1
    np.add.at(y, [0, 0, 2], x[1:])
    np.multiply.at(y, [1, 1, 3], x[:3])
    return np.sum(y**2)


def sorted_in_place(x):
    y = x**2
    y.sort()
    return np.sum(y * np.arange(4.0))


def chosen_by_list(x):
    y = np.zeros_like(x)
    y[:2] = [x[3], 2.0]
    y[2:] = (x[0] * x[1], x[2])
    return np.sum(y**2)


VECTORS = [
    fill_zeros,
    shifted,
    overlapping,
    recurrence,
    masked,
    fancy,
    in_place_operators,
    scalars,
    out_argument,
    filled,
    copied_into,
    put_in,
    added_at,
    sorted_in_place,
    chosen_by_list,
]


def rows(x):
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[i] = x[i] * x[i, 0]
        y[i, 1:] += x[0, :2]
    y[:, 0] -= x[:, 1]
    y[..., -1] = 4.0
    return np.sum(y**2)


def rows_by_iteration(x):
    y = x * 2
    for row in y:
        row *= row[0]
    return np.sum(y**2)


def triangle(x):
    y = x[:3] * 1
    y[np.triu_indices(3)] = x[3, 0]
    y[np.arange(3), np.arange(3)] *= x[3]
    np.fill_diagonal(y, x[0] * x[1])
    return np.sum(y**2)


def along_axis(x):
    y = np.zeros_like(x)
    np.put_along_axis(y, np.array([[0, 1], [1, 2], [0, 2], [2, 1]]), x[:, :2], axis=1)
    return np.sum(y**2 * x)


def swapped(x):
    y = x**2
    y[[0, 1]] = y[[1, 0]]
    y[:, [0, 2]] = y[:, [2, 0]]
    return np.sum(y * x)


MATRICES = [rows, rows_by_iteration, triangle, along_axis, swapped]
PROGRAMS = [(f, X) for f in VECTORS] + [(f, M) for f in MATRICES]
IDS = [f.__name__ for f, _ in PROGRAMS]


@pytest.mark.parametrize(("f", "x"), PROGRAMS, ids=IDS)
def test_derivatives_in_all_modes_and_second_order(f, x):
    check_grads(f, (x,), order=2, modes=("fwd", "rev", "lin"))


@pytest.mark.parametrize(("f", "x"), PROGRAMS, ids=IDS)
def test_values_are_those_of_numpy(f, x):
    before = x.copy()
    value, _ = fg.value_and_grad(f)(x)
    out, _ = fg.jvp(f, (x,), (np.ones_like(x),))
    again, _ = fg.linearize(f, x)
    want = f(x.copy())
    assert value == out == again == want
    assert type(value) is type(want)
    assert_array_equal(x, before)


@pytest.mark.parametrize(("f", "x"), PROGRAMS, ids=IDS)
def test_values_in_float32_are_those_of_numpy(f, x):
    x = x.astype(np.float32)
    value, gradient = fg.value_and_grad(f)(x)
    want = f(x.copy())
    assert value == want
    assert value.dtype == want.dtype
    assert gradient.dtype == np.float32


# What a handle is


def test_another_name_of_the_same_array_sees_the_assignment():
    def f(x):
        a = x * 1
        b = a
        a += 1
        b[0] = 5.0
        return np.sum(a * b)  # both are [5, x1 + 1]

    assert_array_equal(fg.grad(f)(np.array([1.0, 2.0])), [0, 6])


def test_what_was_computed_before_keeps_the_old_value():
    def f(x):
        y = x * 1
        z = y**2  # keeps y for the backward pass
        y[0] = 100.0
        y *= 3
        return np.sum(z)

    assert_array_equal(fg.grad(f)(np.array([1.0, 2.0])), [2, 4])


def test_a_python_float_is_rebound_and_not_assigned_to():
    def f(x):
        before = x
        x += 1
        x *= before
        return x

    assert fg.grad(f)(2.0) == 5.0
    assert fg.jvp(f, (2.0,), (1.0,)) == (6.0, 5.0)


def test_an_array_of_no_dimensions_is_assigned_to():
    def f(x):
        y = np.zeros_like(x)
        y[()] = x**2
        z = y
        y += x
        return z * 1.0

    assert fg.grad(f)(np.array(3.0)) == 7.0


def test_an_assigned_part_has_no_derivative_left():
    def f(x):
        y = x * 2
        y[0] = 7.0
        return np.sum(y)

    assert_array_equal(fg.grad(f)(np.ones(3)), [0, 2, 2])


def test_an_overwritten_array_becomes_a_constant():
    def f(x):
        y = x * 2
        y //= 1
        z = x * 3
        z[...] = 1.0
        return np.sum(y * x) + np.sum(z)

    value, gradient = fg.value_and_grad(f)(np.array([0.75, 1.5]))
    assert value == 1 * 0.75 + 3 * 1.5 + 2
    assert_array_equal(gradient, [1, 3])
    _, out_dot = fg.jvp(f, (np.array([0.75, 1.5]),), (np.ones(2),))
    assert out_dot == 4


def test_assignment_casts_to_the_dtype_of_the_array():
    def f(x):
        y = np.zeros_like(x)
        y[:] = x.astype(np.float64) * 3
        assert y.dtype == np.float32
        y += np.float64(1) * x.astype(np.float64)
        return y

    x = np.ones(2, np.float32)
    out, pullback = fg.vjp(f, x)
    assert out.dtype == np.float32
    (x_bar,) = pullback(np.ones(2, np.float32))
    assert x_bar.dtype == np.float32
    assert_array_equal(x_bar, [4, 4])


def test_a_real_value_goes_into_a_complex_array():
    def f(x):
        y = np.zeros_like(x, dtype=complex)
        y[0] = x[0]
        y[1] = 1j * x[1]
        return np.sum(np.abs(y) ** 2)

    assert_array_equal(fg.grad(f)(np.array([1.0, 2.0])), [2, 4])


def test_gradient_of_leading_axes_of_size_one():
    def f(v):
        y = np.zeros_like(v, shape=(2, 3))
        y[0] = v[None, :]
        return np.sum(y * np.arange(6.0).reshape(2, 3))

    assert_array_equal(fg.grad(f)(np.ones(3)), [0, 1, 2])


# Constants


def test_a_constant_array_takes_a_traced_value():
    def f(x):
        y = np.zeros_like(x) + 1
        z = y.copy()
        y[0] = x[0] ** 2
        return np.sum(y) + np.sum(z)

    assert fg.value_and_grad(f)(np.array([3.0, 0.0]))[0] == 12.0
    assert_array_equal(fg.grad(f)(np.array([3.0, 0.0])), [6, 0])


@pytest.mark.parametrize("make", [np.zeros_like, np.ones_like, lambda x: np.full_like(x, 2.0)])
def test_a_constant_leaves_the_function_as_a_plain_array(make):
    def f(x):
        y = make(x)
        return np.sum(x), {"aux": [y, y + 1]}

    (_, aux), _ = fg.value_and_grad(f, has_aux=True)(X)
    assert type(aux["aux"][0]) is np.ndarray
    assert type(aux["aux"][1]) is np.ndarray
    assert_array_equal(aux["aux"][0], make(X))
    out, out_dot = fg.jvp(lambda x: (x, make(x)), (X,), (X,))
    assert type(out[1]) is np.ndarray
    assert_array_equal(out_dot[1], np.zeros(4))


def test_a_constant_works_where_a_plain_array_is_needed():
    def f(x):
        y = np.zeros_like(x)
        y[1] = 2.0
        weights = np.asarray(y)
        assert type(weights) is np.ndarray
        assert not weights.flags.writeable  # the constant would not see the change
        assert np.array(y).flags.writeable
        assert float(y[1]) == 2.0
        assert y.tolist() == [0.0, 2.0]
        return x @ weights

    assert_array_equal(fg.grad(f)(np.ones(2)), [0, 2])


def test_a_constant_is_printed_as_one():
    shown = []

    def f(x):
        shown.append(repr(np.zeros_like(x)))
        return np.sum(x)

    fg.grad(f)(np.ones(2))
    assert shown == ["Traced(array([0., 0.]), a constant)"]


# Nested transforms


def test_an_outer_array_assigned_between_keeps_what_a_pullback_needs():
    def f(x):
        y = x * 1
        _, pullback = fg.vjp(lambda z: np.sum(np.sin(z) * y), y)
        y[:] = 100.0
        (y_bar,) = pullback(1.0)  # cos(x) x, at the old value
        return np.sum(y_bar)

    x = np.array([0.3, 0.8])
    value, gradient = fg.value_and_grad(f)(x)
    np.testing.assert_allclose(value, np.sum(np.cos(x) * x), rtol=1e-15)
    np.testing.assert_allclose(gradient, np.cos(x) - x * np.sin(x), rtol=1e-14)


def test_writing_to_an_output_leaves_the_pullback_right():
    def f(x):
        out, pullback = fg.vjp(np.exp, x)  # keeps its output
        out *= 0
        return np.sum(pullback(np.ones_like(x))[0])

    x = np.array([0.0, 1.0])
    np.testing.assert_allclose(f(x), 1 + np.e, rtol=1e-15)
    np.testing.assert_allclose(fg.grad(f)(x), [1, np.e], rtol=1e-15)

    def g(x):
        out, pushforward = fg.linearize(np.exp, x)
        out *= 0
        return np.sum(pushforward(np.ones_like(x)))

    np.testing.assert_allclose(g(x), 1 + np.e, rtol=1e-15)
    np.testing.assert_allclose(fg.grad(g)(x), [1, np.e], rtol=1e-15)


def test_two_gradients_that_are_equal_are_two_arrays():
    def f(x):
        a, b = fg.grad(lambda u, v: np.sum((u + v) * x), argnums=(0, 1))(x, x)
        a += 1
        return np.sum(a * b)  # (x + 1) x

    assert_array_equal(fg.grad(f)(np.array([1.0, 2.0])), [3, 5])


def test_a_gradient_may_be_assigned_to():
    def f(x):
        g = fg.grad(np.sum)(x) * 1
        h = fg.grad(lambda z: np.sum(z))(x)
        h[0] = x[0] ** 2
        return np.sum(g) + np.sum(h)

    assert_array_equal(fg.grad(f)(np.array([3.0, 1.0])), [6, 0])


def test_assignment_inside_a_derivative_inside_a_derivative():
    def inner(z, x):
        y = np.zeros_like(z)
        y[0] = z[0] * x[1]
        y[1:] += z[:-1] ** 2
        return np.sum(y**2)

    def f(x):
        g = fg.grad(inner)(x, x)
        g[0] *= x[0]
        return np.sum(g)

    check_grads(f, (np.array([0.5, 1.5]),), order=2, modes=("fwd", "rev", "lin"))


def test_an_outer_array_assigned_inside_works_there_and_raises_outside():
    def f(x):
        y = np.zeros_like(x)

        def inner(z):
            y[0] = z * 2
            return y[0] ** 2

        assert fg.grad(inner)(1.5) == 12.0
        return np.sum(y)

    with pytest.raises(TracerLeakError, match=r"traced by grad\(inner\) was used after"):
        fg.grad(f)(X)


def test_an_escaped_array_is_not_returned_in_silence():
    def f(x):
        y = np.zeros_like(x)

        def inner(z):
            y[0] = z
            return z

        fg.grad(inner)(1.5)
        return np.sum(x), y

    with pytest.raises(TracerLeakError, match="escaped"):
        fg.grad(f, has_aux=True)(X)


# Refusals


def raises(error, f, x, *words):
    """Check the words of the error in each mode."""
    runs = (
        lambda: fg.grad(f)(x),
        lambda: fg.jvp(f, (x,), (np.ones_like(x),)),
        lambda: fg.linearize(f, x),
        lambda: fg.grad(lambda y: fg.jvp(f, (y,), (np.ones_like(x),))[1])(x),
    )
    for run in runs:
        with pytest.raises(error) as caught:
            run()
        for word in words:
            assert re.search(word, str(caught.value)), (word, str(caught.value))


def test_an_argument_is_read_only():
    def by_item(x):
        x[0] = 1.0
        return np.sum(x)

    def by_operator(x):
        x += 1
        return np.sum(x)

    def of_a_view(x):
        y = x[1:]
        y[0] = 2.0
        return np.sum(x)

    def by_out(x):
        np.add(x, 1, out=x)
        return np.sum(x)

    def of_a_reshaped_view(x):
        y = x.reshape(2, 2)
        y += 1
        return np.sum(x)

    def by_copyto(x):
        np.copyto(x, 0.0)
        return np.sum(x)

    for f in (by_item, by_operator, of_a_view, by_out, of_a_reshaped_view, by_copyto):
        raises(MutationError, f, X, "argument of a transformed function", r"y = x\.copy\(\)")


def test_the_error_of_an_argument_names_variable_and_line():
    def f(theta):
        theta[0] = 1.0
        return np.sum(theta)

    raises(MutationError, f, X, r"test_assignment\.py:\d+; 'theta', float64\[4\], traced by")


def test_an_array_with_a_view_alive_is_refused_and_both_are_named():
    def f(x):
        y = x * 1
        v = y[1:]
        y[0] = 2.0
        return np.sum(v)

    raises(MutationError, f, X, "share memory", r"'y': float64\[4\], and 'v': float64\[3\]", "copy")


def test_a_view_is_refused():
    def f(x):
        y = x * 1
        v = y.reshape(2, 2)
        v[0, 0] = 2.0
        return np.sum(y)

    raises(MutationError, f, X, "share memory", r"'v': float64\[2,2\], and 'y': float64\[4\]")


def test_an_item_of_an_item_is_refused():
    def f(x):
        y = x * 1
        y[0][1] = 2.0
        return np.sum(y)

    raises(MutationError, f, M, "share memory", r"float64\[3\], and 'y': float64\[4,3\]")


def test_in_place_operation_on_one_of_two_views_is_refused():
    def f(x):
        y = x * 1
        v, w = y[1:], y[:2]
        v += 1
        return np.sum(w)

    raises(MutationError, f, X, "share memory", "'v'")


def test_a_view_kept_during_an_overlapping_assignment_is_spoilt():
    def f(x):
        y = x * 1
        v = y[:-1]
        y[1:] = v
        return np.sum(v)

    raises(MutationError, f, X, "share memory", "'y'", "'v'")


def test_a_view_that_is_dead_does_no_harm():
    def f(x):
        y = x * 1
        v = y[1:]
        s = np.sum(v**2)
        del v
        y[1:] = 0.0
        return s + np.sum(y)

    assert_array_equal(fg.grad(f)(np.array([1.0, 2.0, 3.0])), [1, 4, 6])


def test_a_view_of_a_dead_array_may_be_assigned_to():
    def f(x):
        y = (x * 2).reshape(2, 2).T
        y[0, 1] = 0.0
        return np.sum(y * np.array([[1.0, 2.0], [3.0, 4.0]]))

    assert_array_equal(fg.grad(f)(X), [2, 6, 0, 8])


def test_in_place_operation_on_a_view_changes_its_array_too():
    def f(x):
        y = x * 1
        v = y[1:]
        v *= 3
        assert_array_equal(stop_gradient(y)[1:], stop_gradient(v))
        return np.sum(y**2) + np.sum(v)

    check_grads(f, (X,), order=2, modes=("fwd", "rev", "lin"))


def test_a_copy_made_by_an_index_array_shares_nothing():
    def f(x):
        y = x * 1
        v = y[[0, 1]]
        y[0] = 0.0
        v[1] = 0.0
        return np.sum(y) + 10 * np.sum(v)

    assert_array_equal(fg.grad(f)(np.ones(3)), [10, 1, 1])


def test_a_broadcast_array_is_read_only():
    def f(x):
        y = np.broadcast_to(x * 1, (2, 4))
        y[0, 0] = 1.0
        return np.sum(y)

    raises(MutationError, f, X, "read-only", "copy it first")


def test_a_scalar_has_no_items():
    def f(x):
        s = np.sum(x)
        s[()] = 1.0
        return s

    raises(MutationError, f, X, "scalar was assigned to", "write x = v")


def test_a_plain_array_takes_no_traced_value():
    def by_item(x):
        y = np.zeros(2)
        y[0] = x[0] ** 2
        return np.sum(y)

    def by_slice(x):
        y = np.zeros(2)
        y[:] = x[:2]
        return np.sum(y)

    for f in (by_item, by_slice):
        raises(TracerConversionError, f, X, r"test_assignment\.py:\d+", r"np\.zeros_like\(x\)")


def test_a_plain_array_takes_no_traced_operand_or_output():
    def by_operator(x):
        y = np.zeros(4)
        y += x
        return np.sum(y)

    def by_out(x):
        y = np.zeros(4)
        np.multiply(x, x, out=y)
        return np.sum(y)

    def by_out_of_a_function(x):
        y = np.zeros(4)
        np.cumsum(x, out=y)
        return np.sum(y)

    for f in (by_operator, by_out, by_out_of_a_function):
        raises(MutationError, f, X, "into a plain NumPy array", r"np\.zeros_like\(x\)")


@pytest.mark.parametrize(
    "write",
    [
        lambda y, v: np.copyto(y, v),
        lambda y, v: np.put(y, [0], v),
        lambda y, v: np.place(y, np.ones(4, bool), v),
        lambda y, v: np.putmask(y, np.ones(4, bool), v),
        lambda y, v: np.put_along_axis(y, np.array([0, 1, 2, 3]), v, 0),
        lambda y, v: np.add.at(y, [0, 1, 2, 3], v),
    ],
)
def test_functions_that_write_in_place_refuse_a_plain_target(write):
    def f(x):
        y = np.zeros(4)
        write(y, x)
        return np.sum(y)

    raises(MutationError, f, X, r"funcgrad\.at\(")


def test_discrete_results_go_into_plain_arrays():
    def f(x):
        mask = np.zeros(4, bool)
        np.greater(x, 0.6, out=mask)
        steps = np.zeros(4)
        np.floor(x, out=steps)
        return np.sum(x[mask] * steps[mask])

    assert_array_equal(fg.grad(f)(X), [0, 0, 2, 0])


def test_an_output_array_of_another_shape_is_refused():
    def f(x):
        y = np.zeros_like(x, shape=(2, 4))
        np.cumsum(x, out=y)
        return np.sum(y)

    raises(ShapeError, f, X, r"out= has shape \(2, 4\), but the result has shape \(4,\)")


def test_a_ufunc_stretches_its_result_to_the_output_array():
    def f(x):
        y = np.zeros_like(x, shape=(2, 4))
        np.square(x, out=y)
        return np.sum(y)

    assert_array_equal(fg.grad(f)(X), 4 * X)


def test_an_in_place_operation_keeps_shape_and_dtype():
    def grows(x):
        y = x[:1] * 1
        y += x
        return np.sum(y)

    def becomes_complex(x):
        y = x * 1
        y += 1j
        return np.sum(y)

    raises(ShapeError, grows, X, r"from \(1,\) to \(4,\)", "write x = x")
    raises(MutationError, becomes_complex, X, "cannot cast complex128 to float64")


def test_a_complex_value_does_not_go_into_a_real_array():
    def f(x):
        y = np.zeros_like(x)
        y[0] = 1j * x[0]
        return np.sum(y)

    raises(DtypeError, f, X, "drop its imaginary part", r"y\.astype\(complex\)")


def test_wrong_shapes_and_indices_raise_as_in_numpy():
    def wrong_shape(x):
        y = x * 1
        y[:3] = x[:2]
        return np.sum(y)

    def out_of_range(x):
        y = x * 1
        y[9] = 0.0
        return np.sum(y)

    raises(ValueError, wrong_shape, X, "could not broadcast")
    raises(IndexError, out_of_range, X, "index 9 is out of bounds for axis 0 with size 4")


def test_a_traced_value_is_no_index_of_an_assignment():
    def f(x):
        y = x * 1
        y[x[0]] = 0.0
        return np.sum(y)

    raises(TracerConversionError, f, X, "cannot be an index", r"astype\(int\)")


# Parts and attributes


Z = np.array([1.0 + 2.0j, -0.5 + 0.25j, 3.0 - 1.0j])


def weighted(z):
    """A real function of complex numbers in which both parts count, each in its own way."""
    return np.sum(np.real(z) ** 2 * np.array([1.0, 2.0, 3.0]) + np.imag(z) ** 3)


def test_the_real_part_is_assigned_to():
    def f(z, v):
        y = z.copy()
        y.real = v
        return weighted(y)

    v = np.array([2.0, 1.0, -1.0])
    assert f(Z, v) == fg.value_and_grad(f)(Z, v)[0]
    z_bar, v_bar = fg.grad(f, (0, 1))(Z, v)
    # df/dx - i df/dy: nothing of the old real part, 3 y**2 of the imaginary one.
    assert_array_equal(z_bar, -3j * Z.imag**2)
    assert_array_equal(v_bar, 2 * v * [1.0, 2.0, 3.0])


def test_the_imaginary_part_is_assigned_to():
    def f(z, v):
        y = z * 1.0
        y.imag = v
        return weighted(y)

    z_bar, v_bar = fg.grad(f, (0, 1))(Z, 2.0)
    assert_array_equal(z_bar, 2 * Z.real * [1.0, 2.0, 3.0])
    assert v_bar == 36.0


def test_a_part_of_a_constant_array_takes_a_traced_value():
    def f(x):
        y = np.zeros_like(x, dtype=complex)
        y.real = x
        y.imag = 2 * x
        return np.sum(np.real(y * y))  # x**2 - 4 x**2

    assert_array_equal(fg.grad(f)(X), -6 * X)


def test_parts_are_assigned_to_under_jvp():
    def f(x):
        y = x + 0j
        y.imag = x**2
        return y

    out, out_dot = fg.jvp(f, (X,), (np.ones(4),))
    assert_array_equal(out, X + 1j * X**2)
    assert_array_equal(out_dot, 1 + 2j * X)


def test_a_part_is_assigned_to_beside_an_infinite_one():
    def f(x):
        y = np.zeros_like(x, dtype=complex)
        y.real = np.inf
        y.imag = x
        return np.sum(np.imag(y))

    value, slope = fg.value_and_grad(f)(X)
    assert value == X.sum()
    assert_array_equal(slope, np.ones(4))


def test_a_part_is_updated_in_place():
    def f(z):
        y = z.copy()
        y.real *= 3.0
        y.imag += y.real
        return np.sum(np.imag(y))

    def plain(z):
        y = z.copy()
        y.real *= 3.0
        y.imag += y.real
        return np.sum(np.imag(y))

    value, slope = fg.value_and_grad(f)(Z)
    assert value == plain(Z)
    assert_array_equal(slope, np.full(3, 3 - 1j))


def test_the_real_part_of_a_real_array_is_the_array():
    def f(x):
        y = np.zeros_like(x)
        y.real = x**2
        return np.sum(y)

    assert_array_equal(fg.grad(f)(X), 2 * X)


def test_the_parts_of_an_argument_are_read_only():
    def f(z):
        z.real = 1.0
        return weighted(z)

    with pytest.raises(MutationError, match="argument of a transformed function"):
        fg.grad(f)(Z)


def test_a_complex_value_does_not_go_into_a_part():
    def f(z):
        y = z.copy()
        y.real = z
        return weighted(y)

    with pytest.raises(DtypeError, match="drop its imaginary part"):
        fg.grad(f)(Z)


def test_the_elements_are_assigned_to_in_order():
    def f(x):
        y = np.zeros_like(M)
        z = y + 0 * x[0]
        z.flat = x
        return np.sum(z * M)

    expected = np.array([M.ravel()[i::4].sum() for i in range(4)])
    np.testing.assert_allclose(fg.grad(f)(X), expected, rtol=1e-14)


# Views


def shared_parts(x, sample, fun):
    """Yield the results that share memory with an argument, and that argument."""
    call = (list(sample.args), dict(sample.kwargs))
    leaves, treedef = tree.flatten(call)
    made = []
    for position, (path, leaf) in enumerate(tree.flatten_with_path(call)[0]):
        if path[0].idx == 1 and path[1].key not in sample.argnames:
            continue
        if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fc":
            array = np.zeros_like(x, shape=leaf.shape, dtype=leaf.dtype)
            array[...] = leaf + 0 * x  # traced, and no argument
            leaves[position] = array
            made.append(array)
    args, kwargs = tree.unflatten(treedef, leaves)
    for part in tree.leaves(fun(*args, **kwargs)):
        for array in made:
            value = concrete(part)
            if part is array or not isinstance(value, np.ndarray):
                continue
            if np.shares_memory(value, concrete(array)):
                yield part, array


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_every_result_that_is_a_view_is_known_as_one(name):
    made = DECLARED[name]
    if made.samples is None:
        return  # elementwise: a new array
    for sample in made.samples(np.random.default_rng(0)):
        fun = sample.fun or (made.overridden or (made,))[0]

        def f(x, sample=sample, fun=fun):
            for part, array in shared_parts(x, sample, fun):
                assert part._alias is not None, (part, array)
                assert part._alias is array._alias
            return x * 1

        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fg.vjp(f, 1.0)
