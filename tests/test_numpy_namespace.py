import subprocess
import sys
import threading

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.core.level import TracerBase
from funcgrad.errors import MutationError, TracerConversionError

X = np.array([1.0, 2.0, 3.0])


def traced(fun, x=X):
    """Return what `fun` computes under `grad`, and the gradient of the sum of it."""
    seen = []

    def total(x):
        y = fun(x)
        seen.append(y)
        return np.sum(y * np.arange(1.0, np.size(y) + 1).reshape(np.shape(y)))

    gradient = fg.grad(total)(x)
    value = seen[0]
    while isinstance(value, TracerBase):
        value = value._value
    return value, gradient


# The namespace


def test_other_names_are_numpys_own():
    assert fnp.sin is np.sin
    assert fnp.linalg.norm is np.linalg.norm
    assert fnp.fft.rfft is np.fft.rfft
    assert fnp.float32 is np.float32
    assert fnp.pi == np.pi


def test_dir_lists_numpys_names():
    assert set(np.__all__) <= set(dir(fnp))


def test_an_unknown_name_is_an_attribute_error_that_names_the_module():
    with pytest.raises(AttributeError, match=r"funcgrad\.numpy.*no attribute 'sinus'"):
        _ = fnp.sinus


def test_names_can_be_imported_from_it():
    code = "from funcgrad.numpy import array, cos, linalg; print(cos.__name__, linalg.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["cos", "numpy.linalg"]


@pytest.mark.parametrize("name", fnp.__all__)
def test_replaced_names_are_numpys(name):
    assert hasattr(np, name)


# array and its kin


def test_array_outside_of_a_transform_is_plain():
    made = fnp.array([1.0, 2.0])
    assert type(made) is np.ndarray
    assert made.dtype == np.float64


def test_array_of_plain_values_leaves_a_transform_as_a_plain_one():
    _, made = fg.grad(lambda x: (x, fnp.array([1.0, 2.0])), has_aux=True)(1.0)
    assert type(made) is np.ndarray


def test_array_of_traced_numbers():
    value, gradient = traced(lambda x: fnp.array([x[0] * x[1], x[2]]))
    np.testing.assert_array_equal(value, [2.0, 3.0])
    np.testing.assert_array_equal(gradient, [2.0, 1.0, 2.0])


def test_array_of_nested_lists_and_tuples():
    value, gradient = traced(lambda x: fnp.array([[x[0], 5.0], (1, x[1])]))
    np.testing.assert_array_equal(value, [[1.0, 5.0], [1.0, 2.0]])
    np.testing.assert_array_equal(gradient, [1.0, 4.0, 0.0])


def test_array_of_rows():
    value, gradient = traced(lambda x: fnp.array([x, [4.0, 5.0, 6.0]]))
    np.testing.assert_array_equal(value, [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(gradient, [1.0, 2.0, 3.0])


def test_array_of_a_python_number_has_no_axes():
    value, gradient = traced(lambda x: fnp.array(x), 2.0)
    assert isinstance(value, np.ndarray)
    assert value.shape == ()
    assert gradient == 1.0


def test_array_with_dtype():
    value, gradient = traced(lambda x: fnp.array([x[0], 2.0], dtype=np.float32))
    assert value.dtype == np.float32
    assert gradient.dtype == np.float64
    np.testing.assert_array_equal(gradient, [1.0, 0.0, 0.0])


def test_array_cast_to_integers_is_plain():
    kinds = []
    fg.grad(lambda x: (kinds.append(fnp.array([x, 2.5], dtype=int)), x)[1])(1.5)
    assert type(kinds[0]) is np.ndarray
    np.testing.assert_array_equal(kinds[0], [1, 2])


def test_array_of_float32_beside_a_python_number_is_float64_as_numpys():
    value, _ = traced(lambda x: fnp.array([x[0], 2.0]), X.astype("f4"))
    assert value.dtype == np.array([np.float32(1), 2.0]).dtype == np.float64


def test_array_ndmin():
    value, gradient = traced(lambda x: fnp.array(x, ndmin=3))
    assert value.shape == (1, 1, 3)
    np.testing.assert_array_equal(gradient, [1.0, 2.0, 3.0])


def test_array_copies_so_that_it_can_be_assigned_to():
    def f(x):
        y = fnp.array(x)
        y[0] = x[1] * x[1]
        return y

    value, gradient = traced(f)
    np.testing.assert_array_equal(value, [4.0, 2.0, 3.0])
    np.testing.assert_array_equal(gradient, [0.0, 6.0, 3.0])


def test_array_without_a_copy_shares_memory():
    def f(x):
        y = x * 1.0
        z = fnp.array(y, copy=None)
        assert z is y
        return z

    traced(f)


def test_array_that_must_not_copy_a_list_raises():
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        fg.grad(lambda x: fnp.array([x], copy=False)[0])(1.0)


def test_ragged_lists_raise():
    with pytest.raises(ValueError, match="shape"):
        fg.grad(lambda x: np.sum(fnp.array([[x], [x, x]])))(1.0)


def test_asarray_returns_a_traced_array_itself():
    def f(x):
        assert fnp.asarray(x) is x
        assert fnp.asanyarray(x) is x
        return x

    traced(f)


def test_asarray_of_a_list():
    value, gradient = traced(lambda x: fnp.asarray([x[1], 7.0]))
    np.testing.assert_array_equal(value, [2.0, 7.0])
    np.testing.assert_array_equal(gradient, [0.0, 1.0, 0.0])


def test_contiguous_arrays_have_the_layout_that_was_asked_for():
    x = np.arange(6.0).reshape(2, 3)
    c, gradient = traced(lambda x: fnp.ascontiguousarray(x.T), x)
    assert c.flags.c_contiguous
    np.testing.assert_array_equal(gradient, [[1, 3, 5], [2, 4, 6]])
    f, gradient = traced(fnp.asfortranarray, x)
    assert f.flags.f_contiguous
    np.testing.assert_array_equal(gradient, [[1, 2, 3], [4, 5, 6]])


def test_asarray_chkfinite_raises_for_infinity():
    with pytest.raises(ValueError, match="infs or NaNs"):
        fg.grad(lambda x: np.sum(fnp.asarray_chkfinite([x, 1.0 / 0.5, np.inf])))(1.0)
    assert fg.grad(lambda x: np.sum(fnp.asarray_chkfinite([x, 1.0])))(1.0) == 1.0


def test_isscalar():
    seen = []

    def f(x):
        seen.append(fnp.isscalar(x))
        seen.append(fnp.isscalar(fnp.array([x])))
        return x

    fg.grad(f)(1.0)
    assert seen == [True, False]


def test_array_in_a_thread_started_inside_of_a_transform():
    def f(x):
        made = []
        thread = threading.Thread(target=lambda: made.append(fnp.array([x, 2 * x])))
        thread.start()
        thread.join()
        return np.sum(made[0])

    assert fg.grad(f)(1.0) == 3.0


def test_second_derivative_through_array():
    assert fg.grad(fg.grad(lambda x: np.sum(fnp.array([x**3, x]))))(2.0) == 12.0


def test_forward_mode_through_array():
    _, dot = fg.jvp(lambda x: fnp.array([x * x, 1.0]), (3.0,), (1.0,))
    np.testing.assert_array_equal(dot, [6.0, 0.0])


def test_numpys_own_array_of_a_traced_value_says_what_to_use():
    with pytest.raises(TracerConversionError, match=r"funcgrad\.numpy\.array"):
        fg.grad(lambda x: np.sum(np.array([x, 1.0])))(1.0)


# Creation


CREATED = {
    "zeros": lambda: fnp.zeros(3),
    "ones": lambda: fnp.ones((2, 3)),
    "empty": lambda: fnp.empty(0),
    "full": lambda: fnp.full(3, 2.0),
    "eye": lambda: fnp.eye(2, 3),
    "identity": lambda: fnp.identity(2),
    "tri": lambda: fnp.tri(2),
    "arange": lambda: fnp.arange(3.0),
    "zeros-float32": lambda: fnp.zeros(3, np.float32),
    "zeros-int": lambda: fnp.zeros(3, int),
    "zeros-fortran": lambda: fnp.zeros((2, 3), order="F"),
}


@pytest.mark.parametrize("name", CREATED)
def test_creation_outside_of_a_transform_gives_plain_arrays(name):
    made = CREATED[name]()
    assert type(made) is np.ndarray


@pytest.mark.parametrize("name", CREATED)
def test_creation_inside_of_a_transform_gives_the_same_values(name):
    expected = CREATED[name]()
    value, _ = traced(lambda x: CREATED[name]() + 0 * x[0] if "int" not in name else x)
    if "int" not in name:
        assert value.shape == expected.shape
        np.testing.assert_array_equal(value, expected)
    made, _ = fg.vjp(lambda x: (CREATED[name](), x), 1.0)
    assert type(made[0]) is np.ndarray
    assert made[0].dtype == expected.dtype
    assert made[0].flags.f_contiguous == expected.flags.f_contiguous


@pytest.mark.parametrize("name", ["zeros", "ones", "full", "arange"])
def test_created_arrays_take_traced_values(name):
    def f(x):
        y = CREATED[name]()
        y[..., 1] = x * x
        return np.sum(y)

    assert fg.grad(f)(3.0) == (12.0 if name == "ones" else 6.0)


def test_integer_arrays_stay_plain_inside_of_a_transform():
    kinds = []
    fg.grad(lambda x: (kinds.append(type(fnp.zeros(3, int))), x)[1])(1.0)
    assert kinds == [np.ndarray]


def test_full_of_a_traced_value():
    value, gradient = traced(lambda x: fnp.full((2, 2), x), 3.0)
    np.testing.assert_array_equal(value, np.full((2, 2), 3.0))
    assert gradient == 10.0


def test_full_of_a_traced_row_with_dtype_and_order():
    value, gradient = traced(lambda x: fnp.full((2, 3), x, np.float32, "F"))
    assert value.dtype == np.float32
    assert value.flags.f_contiguous
    np.testing.assert_array_equal(gradient, [5.0, 7.0, 9.0])


def test_full_of_a_traced_value_can_be_assigned_to():
    def f(x):
        y = fnp.full(3, x)
        y[0] = 0.0
        return y

    value, gradient = traced(f, 2.0)
    np.testing.assert_array_equal(value, [0.0, 2.0, 2.0])
    assert gradient == 5.0


def test_a_loop_that_fills_an_array():
    def f(x):
        y = fnp.empty(4)
        y[0] = x
        for i in range(1, 4):
            y[i] = y[i - 1] * x
        return np.sum(y)

    assert fg.grad(f)(2.0) == 1 + 4 + 12 + 32


def test_a_view_of_a_created_array_keeps_it_from_being_assigned_to():
    def f(x):
        y = fnp.zeros(3)
        v = y[1:]
        y[0] = x
        return np.sum(v)

    with pytest.raises(MutationError, match="share memory"):
        fg.grad(f)(1.0)


# r_ and c_


@pytest.mark.parametrize(
    ("key", "joiner"),
    [
        (lambda x: (x, 0, 5.0, x), "r_"),
        (lambda x: (slice(0, 3), x), "r_"),
        (lambda x: ("0,2", x, x), "r_"),
        (lambda x: ("0,2,0", x, x), "r_"),
        (lambda x: ("0,3,-1", x, x), "r_"),
        (lambda x: ("1", np.ones((3, 1)), x.reshape(3, 1)), "r_"),
        (lambda x: (x, x * 2), "c_"),
        (lambda x: (x.reshape(1, 3), 0, 0, x.reshape(1, 3)), "c_"),
    ],
)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_joiners_give_numpys_values(key, joiner, dtype):
    x = X.astype(dtype)
    expected = getattr(np, joiner)[key(x)]
    value, _ = traced(lambda x: getattr(fnp, joiner)[key(x)], x)
    assert value.dtype == expected.dtype
    np.testing.assert_array_equal(value, expected)


def test_joiners_have_the_gradient_of_their_parts():
    _, gradient = traced(lambda x: fnp.r_[x, 0.0, x[0]])
    np.testing.assert_array_equal(gradient, [6.0, 2.0, 3.0])
    _, gradient = traced(lambda x: fnp.c_[x, x])
    np.testing.assert_array_equal(gradient, [3.0, 7.0, 11.0])


def test_joiners_of_plain_values_are_numpys():
    np.testing.assert_array_equal(fnp.r_[1:4, 0], [1, 2, 3, 0])
    np.testing.assert_array_equal(fnp.c_[[1, 2], [3, 4]], [[1, 3], [2, 4]])


# Constants


def test_functions_without_a_rule_take_created_arrays_which_have_no_derivative():
    def f(x):
        counts, edges = np.histogram(fnp.arange(4.0), bins=2)
        assert type(edges) is np.ndarray
        return x * counts[0]

    assert fg.grad(f)(1.0) == 2.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: fnp.array([0.0, 0.0]),
        lambda: fnp.asarray([0.0, 0.0]),
        lambda: fnp.zeros_like(np.ones(2)),
        lambda: fnp.ones_like(np.ones(2)),
        lambda: fnp.empty_like(np.ones(2)),
        lambda: fnp.full_like(np.ones(2), 3.0),
        lambda: fnp.linspace(0.0, 1.0, 2),
        lambda: fnp.copy(np.ones(2)),
    ],
)
def test_new_arrays_take_traced_values(make):
    def f(x):
        y = make()
        y[:] = x
        return np.sum(y**2)

    np.testing.assert_array_equal(fg.grad(f)(np.array([1.0, 3.0])), [2.0, 6.0])
    assert type(make()) is np.ndarray


def test_submodules_are_importable():
    import funcgrad.numpy.fft
    import funcgrad.numpy.linalg

    assert funcgrad.numpy.linalg.norm is np.linalg.norm
    assert funcgrad.numpy.fft.fft is np.fft.fft
