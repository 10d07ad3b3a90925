"""What the laws cannot know of joining, splitting, grids, differences and creation."""

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.core.level import TracerBase, concrete

X = np.arange(6.0).reshape(2, 3)


def weighted(out):
    return np.sum(out * np.arange(1.0, np.size(out) + 1).reshape(np.shape(out)))


def values_of(fun, *args):
    """Return what `fun` computes under `vjp`, and without."""
    return fg.vjp(fun, *args)[0], fun(*args)


def assert_same(got, expected):
    assert type(got) is type(expected)
    if isinstance(expected, list | tuple):
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            assert_same(a, b)
    else:
        assert getattr(got, "dtype", None) == getattr(expected, "dtype", None)
        np.testing.assert_array_equal(got, expected)


# Joining


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.concatenate([x, 1.0], axis=None),
        lambda x: np.concatenate([x, 1], axis=None),
        lambda x: np.concatenate([x, [[1, 2, 3]]]),
        lambda x: np.concatenate([x, np.ones((1, 3), int)]),
        lambda x: np.concatenate([x, x], dtype=np.float16, casting="unsafe"),
        lambda x: np.concatenate([x, x], dtype=int, casting="unsafe"),
        lambda x: np.concatenate([x, 1j * np.ones((1, 3))]),
        lambda x: np.stack([x, np.ones((2, 3), int)]),
        lambda x: np.stack([x[0, 0], 1.0, 2]),
        lambda x: np.hstack([x[0], 1.0, [2, 3]]),
        lambda x: np.vstack([x, [1, 2, 3]]),
        lambda x: np.dstack([x, np.ones((2, 3), bool)]),
        lambda x: np.column_stack([x[0], [1, 2, 3], np.ones((3, 2))]),
        lambda x: np.block([[x, np.ones((2, 1))], [np.zeros((1, 3), int), 5]]),
        lambda x: np.append(x, [1, 2]),
        lambda x: np.insert(x, 1, 5),
        lambda x: np.block(1.0 * x),
        lambda x: np.concatenate(np.stack([x, x]), axis=1),
    ],
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_dtypes_of_mixed_parts_are_numpys(fun, dtype):
    assert_same(*values_of(fun, X.astype(dtype)))


def test_each_part_gets_its_piece_of_the_cotangent():
    a, b = fg.grad(lambda a, b: weighted(np.concatenate([a, np.ones((1, 3)), b])), (0, 1))(X, X[:1])
    np.testing.assert_array_equal(a, [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(b, [[10, 11, 12]])


def test_parts_keep_the_dtype_of_their_gradient():
    a, b = fg.grad(lambda a, b: weighted(np.concatenate([a, b])), (0, 1))(
        np.ones(2, "f4"), np.ones(2)
    )
    assert (a.dtype, b.dtype) == (np.float32, np.float64)
    np.testing.assert_array_equal(a, [1, 2])


def test_a_real_part_among_complex_ones_gets_a_real_cotangent():
    gradient = fg.grad(lambda x: np.sum(np.imag(np.concatenate([x, [1j]]) * (2 + 3j))))(np.ones(2))
    np.testing.assert_array_equal(gradient, [3.0, 3.0])
    assert gradient.dtype == np.float64


def test_stack_of_numbers():
    gradient = fg.grad(lambda x: weighted(np.stack([x * i for i in range(4)])))(2.0)
    assert gradient == 0 * 1 + 1 * 2 + 2 * 3 + 3 * 4


def test_stack_of_different_shapes_is_numpys_error():
    with pytest.raises(ValueError, match="all input arrays must have the same shape"):
        fg.grad(lambda x: np.sum(np.stack([x, x[0]])))(X)


def test_joining_into_out():
    def f(x):
        y = np.zeros_like(x, shape=(4, 3))
        np.concatenate([x, 2 * x], out=y)
        return weighted(y)

    np.testing.assert_array_equal(fg.grad(f)(X), [[15, 18, 21], [24, 27, 30]])


def test_nested_lists_with_traced_numbers_in_a_joined_list():
    gradient = fg.grad(lambda x: weighted(np.concatenate([x, [x[0] * x[1], 1.0]])))(
        np.array([2.0, 3.0])
    )
    np.testing.assert_array_equal(gradient, [1 + 3 * 3, 2 + 3 * 2])


@pytest.mark.parametrize("arrays", [[], [[1.0], [[2.0]]]])
def test_errors_of_block_are_numpys(arrays):
    with pytest.raises(ValueError) as plain:  # noqa: PT011  compared below
        np.block([arrays, [X[0, 0]]] if arrays else [[X], []])
    with pytest.raises(ValueError) as traced:  # noqa: PT011
        fg.grad(lambda x: np.sum(np.block([arrays, [x[0, 0]]] if arrays else [[x], []])))(X)
    assert str(plain.value) == str(traced.value)


# Splitting


SPLITS = {
    "equal": lambda x: np.split(x, 3, axis=1),
    "places": lambda x: np.split(x, [1], axis=1),
    "array of places": lambda x: np.split(x, np.array([1, 2]), axis=-1),
    "backwards": lambda x: np.split(x, [2, 1], axis=1),
    "from the end": lambda x: np.split(x, [-1], axis=1),
    "beyond": lambda x: np.split(x, [1, 7], axis=1),
    "uneven": lambda x: np.array_split(x, 2, axis=1),
    "hsplit": lambda x: np.hsplit(x, 3),
    "hsplit of a vector": lambda x: np.hsplit(x[0], [2]),
    "vsplit": lambda x: np.vsplit(x, 2),
    "dsplit": lambda x: np.dsplit(x[None], 3),
}


@pytest.mark.parametrize("name", SPLITS)
def test_parts_are_numpys(name):
    assert_same(*values_of(SPLITS[name], X))


@pytest.mark.parametrize("name", SPLITS)
def test_parts_send_their_cotangents_to_their_places(name):
    numbers = np.arange(6).reshape(2, 3)
    expected = np.zeros(6)
    for weight, part in enumerate(SPLITS[name](numbers), 1):
        np.add.at(expected, part.ravel(), weight)
    gradient = fg.grad(
        lambda x: sum(weight * np.sum(part) for weight, part in enumerate(SPLITS[name](x), 1))
    )(X)
    np.testing.assert_array_equal(gradient, expected.reshape(2, 3))


def test_a_part_alone_gives_zeros_to_the_others():
    np.testing.assert_array_equal(
        fg.grad(lambda x: np.sum(np.split(x, 3, axis=1)[1]))(X), [[0, 1, 0], [0, 1, 0]]
    )


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.split(x, 4, axis=1),
        lambda x: np.array_split(x, 0),
        lambda x: np.vsplit(x[0], 2),
        lambda x: np.dsplit(x, 1),
        lambda x: np.split(x, 2, axis=3),
    ],
)
def test_errors_of_splitting_are_numpys(fun):
    with pytest.raises((ValueError, IndexError)) as plain:
        fun(X)
    with pytest.raises(type(plain.value)) as traced:
        fg.grad(lambda x: np.sum(fun(x)[0]))(X)
    assert str(plain.value) == str(traced.value)


def test_unstack():
    assert_same(*values_of(lambda x: np.unstack(x, axis=1), X))
    gradient = fg.grad(lambda x: np.unstack(x)[1] @ np.array([1.0, 2.0, 3.0]))(X)
    np.testing.assert_array_equal(gradient, [[0, 0, 0], [1, 2, 3]])


# Grids


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.linspace(x[0], 2.0, 7),
        lambda x: np.linspace(0, x[1]),
        lambda x: np.linspace(x, 2, 5, endpoint=False, axis=1),
        lambda x: np.linspace(x[0], x[1], 5, retstep=True),
        lambda x: np.linspace(x[0], x[1], 1, retstep=True),
        lambda x: np.linspace(x[0], x[1], 5, dtype=np.float32),
        lambda x: np.linspace(x[0], 9.0, 5, dtype=int),
        lambda x: np.logspace(x[0], 2.0, 7),
        lambda x: np.logspace(0, 1, 3, base=x),
        lambda x: np.logspace(x, 1, 3, base=2, dtype=np.float64),
        lambda x: np.geomspace(x[0], 2.0, 7),
        lambda x: np.geomspace(1, x, 4, axis=-1),
        lambda x: np.meshgrid(x, [1.0, 2.0, 3.0]),
        lambda x: np.meshgrid(x, x, x, indexing="ij", sparse=True),
        lambda x: np.diff(x, prepend=0, append=[1, 2]),
        lambda x: np.ediff1d(x, 1.0, [2.0]),
        lambda x: np.trapezoid(x, dx=2),
        lambda x: np.trapezoid([1, 2], x),
    ],
)
def test_values_and_dtypes_of_grids_and_differences_are_numpys(fun, dtype):
    assert_same(*values_of(fun, np.array([0.3, 1.7], dtype)))


def test_a_grid_of_integers_is_plain():
    kinds = []
    fg.grad(lambda x: (kinds.append(type(np.linspace(x, 9.0, 5, dtype=int))), x)[1])(1.5)
    assert kinds == [np.ndarray]


def test_gradient_of_linspace():
    # Element i of 5 is start + i / 4 * (stop - start); weights 1 to 5.
    start, stop = fg.grad(lambda a, b: weighted(np.linspace(a, b, 5)), (0, 1))(0.5, 2.0)
    assert start == 1 + 2 * 0.75 + 3 * 0.5 + 4 * 0.25
    assert stop == 2 * 0.25 + 3 * 0.5 + 4 * 0.75 + 5


def test_gradient_of_the_step_of_linspace():
    start, stop = fg.grad(lambda a, b: np.linspace(a, b, 5, retstep=True)[1], (0, 1))(0.5, 2.0)
    assert (start, stop) == (-0.25, 0.25)


def test_gradient_of_geomspace():
    # 1, sqrt(x), x: the derivative of the sum is 1 / (2 sqrt(x)) + 1.
    assert fg.grad(lambda x: np.sum(np.geomspace(1.0, x, 3)))(4.0) == 1.25


def test_meshgrid_without_copies_is_read_only():
    def f(x):
        grid = np.meshgrid(x * 1.0, np.ones(2), copy=False)[0]
        grid[0, 0] = 1.0
        return np.sum(grid)

    with pytest.raises(fg.errors.MutationError):
        fg.grad(f)(np.ones(3))


def test_meshgrid_refuses_another_indexing():
    with pytest.raises(ValueError, match="Valid values for `indexing`"):
        fg.grad(lambda x: np.sum(np.meshgrid(x, indexing="yx")[0]))(np.ones(2))


# Differences


def test_higher_differences_have_binomial_weights():
    gradient = fg.grad(lambda x: np.diff(x, 3)[0])(np.ones(5))
    np.testing.assert_array_equal(gradient, [-1, 3, -3, 1, 0])


def test_differences_of_too_few_elements_have_gradient_zero():
    np.testing.assert_array_equal(fg.grad(lambda x: np.sum(np.diff(x, 4)))(np.ones(3)), np.zeros(3))


def test_zeroth_difference_is_the_array_itself():
    def f(x):
        assert np.diff(x, 0) is x
        return np.sum(x)

    fg.grad(f)(np.ones(3))


def test_gradient_of_the_trapezoidal_rule():
    x = np.array([0.0, 1.0, 3.0])
    y = np.array([2.0, 5.0, 1.0])
    y_bar, x_bar = fg.grad(np.trapezoid, (0, 1))(y, x)
    np.testing.assert_array_equal(y_bar, [0.5, 1.5, 1.0])
    np.testing.assert_array_equal(x_bar, [-3.5, 3.5 - 3.0, 3.0])


def test_ediff1d_refuses_ends_of_another_kind():
    with pytest.raises(TypeError, match="same_kind"):
        fg.grad(lambda x: np.sum(np.ediff1d(x, [1j])))(np.ones(2))


# Arrays like a traced one


LIKE = {
    "zeros_like": np.zeros_like,
    "ones_like": np.ones_like,
    "full_like": lambda x, **kwargs: np.full_like(x, 2.0, **kwargs),
}


@pytest.mark.parametrize("name", LIKE)
def test_arrays_like_a_traced_one_take_traced_values(name):
    def f(x):
        y = LIKE[name](x)
        y[0] = x[0] ** 2
        return np.sum(y)

    np.testing.assert_array_equal(fg.grad(f)(np.array([3.0, 4.0])), [6.0, 0.0])


@pytest.mark.parametrize("name", LIKE)
@pytest.mark.parametrize("kwargs", [{"shape": (3,)}, {"dtype": "f4"}, {"order": "F"}])
def test_arrays_like_a_traced_one_have_numpys_shape_dtype_and_layout(name, kwargs):
    got, expected = values_of(lambda x: LIKE[name](x, **kwargs), X)
    assert_same(got, expected)
    assert got.strides == expected.strides


def test_integer_arrays_like_a_traced_one_are_plain():
    kinds = []

    def f(x):
        kinds.append(type(np.zeros_like(x, dtype=int)))
        kinds.append(type(np.full_like(x, 1.5, bool)))
        return np.sum(x)

    fg.grad(f)(X)
    assert kinds == [np.ndarray, np.ndarray]


def test_a_view_of_zeros_like_keeps_it_from_being_assigned_to():
    def f(x):
        y = np.zeros_like(x)
        v = y[1:]
        y[0] = 1.0
        return np.sum(v * x[1:])

    with pytest.raises(fg.errors.MutationError, match="share memory"):
        fg.grad(f)(np.ones(3))


def test_full_like_of_a_traced_value():
    assert fg.grad(lambda v: np.sum(np.full_like(v * np.ones(3), v)))(2.0) == 3.0
    gradient = fg.grad(lambda x: weighted(np.full_like(x, x[0], shape=(2, 3))))(np.ones((2, 3)))
    np.testing.assert_array_equal(gradient, [[5, 7, 9], [0, 0, 0]])


def test_full_like_of_a_traced_value_can_be_assigned_to():
    def f(x):
        y = np.full_like(x, x[0])
        assert isinstance(y, TracerBase)
        y[1] = 0.0
        assert concrete(y).tolist() == [2.0, 0.0]
        return np.sum(y)

    np.testing.assert_array_equal(fg.grad(f)(np.array([2.0, 3.0])), [1.0, 0.0])
