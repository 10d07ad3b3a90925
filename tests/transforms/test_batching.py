"""vmap: which axes, how many examples, what passes through, and what is said of mistakes."""

import math
import operator
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.errors import (
    ArgumentError,
    MutationError,
    ShapeError,
    TracerConversionError,
    TracerLeakError,
    TreeMismatchError,
)

X = np.arange(24.0).reshape(2, 3, 4)


def loop(fun, *args):
    return np.stack([fun(*parts) for parts in zip(*args, strict=True)])


# Axes


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_in_axes_takes_examples_along_any_axis(axis):
    got = fg.vmap(np.sum, in_axes=axis)(X)
    assert_array_equal(got, [np.sum(part) for part in np.moveaxis(X, axis, 0)])


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_out_axes_puts_examples_along_any_axis(axis):
    got = fg.vmap(lambda x: 2 * x, out_axes=axis)(X)
    assert_array_equal(got, np.moveaxis(2 * X, 0, axis))


def test_none_in_in_axes_is_the_same_for_all():
    got = fg.vmap(np.multiply, in_axes=(0, None))(X, X[0])
    assert_array_equal(got, [X[0] * X[0], X[1] * X[0]])


def test_in_axes_may_be_a_list():
    got = fg.vmap(np.multiply, in_axes=[0, None])(X, 2.0)
    assert_array_equal(got, 2 * X)


def test_in_axes_may_be_a_pytree_prefix():
    params = {"w": X, "b": (np.ones(4), np.zeros(2))}
    axes = ({"w": 0, "b": (None, 0)},)
    got = fg.vmap(lambda p: p["w"] @ p["b"][0] + p["b"][1], in_axes=axes)(params)
    assert_array_equal(got, X.sum(-1))


def test_one_axis_counts_for_a_whole_subtree():
    got = fg.vmap(lambda p: p["a"] + p["b"][0], in_axes=(1,))({"a": X[0], "b": [X[1]]})
    assert_array_equal(got, (X[0] + X[1]).T)


def test_none_counts_for_a_whole_subtree():
    got = fg.vmap(lambda p, x: p["a"] * p["b"] * x, in_axes=(None, 0))({"a": 2.0, "b": 3.0}, X)
    assert_array_equal(got, 6 * X)


def test_out_axes_may_be_a_pytree_prefix():
    out = fg.vmap(lambda x: {"a": x, "b": (x, x)}, out_axes={"a": 1, "b": -1})(X)
    assert_array_equal(out["a"], np.moveaxis(X, 0, 1))
    assert_array_equal(out["b"][0], np.moveaxis(X, 0, -1))
    assert_array_equal(out["b"][1], np.moveaxis(X, 0, -1))


def test_keyword_arguments_are_mapped_along_their_first_axis():
    got = fg.vmap(lambda x, *, scale: x * scale)(X, scale=np.array([1.0, 10.0]))
    assert_array_equal(got, [X[0], 10 * X[1]])


def test_out_axes_none_returns_what_is_the_same_once():
    same, each = fg.vmap(lambda x, c: (2 * c, x), in_axes=(0, None), out_axes=(None, 0))(X, 3.0)
    assert same == 6.0
    assert_array_equal(each, X)


def test_an_output_that_is_the_same_is_repeated():
    got = fg.vmap(lambda x: np.ones(2))(X)
    assert_array_equal(got, np.ones((2, 2)))
    assert got.flags.writeable


def test_axis_size_says_how_many_examples_there_are():
    got = fg.vmap(lambda: 3.0, axis_size=4)()
    assert_array_equal(got, [3.0] * 4)
    got = fg.vmap(lambda x: x, in_axes=None, axis_size=2)(np.arange(3.0))
    assert_array_equal(got, [[0, 1, 2], [0, 1, 2]])


def test_no_examples_at_all():
    got = fg.vmap(lambda x: np.sin(x) @ np.ones(3))(np.zeros((0, 5, 3)))
    assert got.shape == (0, 5)


def test_leaves_that_are_no_arrays_pass_through():
    out = fg.vmap(lambda p: {"x": p["f"](p["x"]), "name": p["name"], "no": p["no"]})(
        {"f": np.negative, "x": X, "name": "a", "no": None}
    )
    assert_array_equal(out["x"], -X)
    assert out["name"] == "a"
    assert out["no"] is None


# Nesting, and with other transforms


def test_vmap_of_vmap():
    a, b = np.arange(3.0), np.arange(4.0)
    outer = fg.vmap(fg.vmap(np.multiply, (None, 0)), (0, None))
    assert_array_equal(outer(a, b), np.outer(a, b))
    other = fg.vmap(fg.vmap(np.multiply, (0, None)), (None, 0))
    assert_array_equal(other(a, b), np.outer(b, a))


def test_gradient_for_each_example():
    def loss(w, x, y):
        return (np.tanh(w @ x) - y) ** 2

    w, xs, ys = np.array([0.5, -1.0, 2.0]), X[0].T, np.arange(4.0)
    got = fg.vmap(fg.grad(loss), (None, 0, 0))(w, xs, ys)
    assert_allclose(got, [fg.grad(loss)(w, x, y) for x, y in zip(xs, ys, strict=True)], rtol=1e-14)


def test_gradient_of_a_batched_function():
    w = np.array([0.5, -1.0, 2.0])
    xs = X[0].T

    def total(w):
        return np.sum(fg.vmap(lambda x: np.sin(w @ x))(xs))

    assert_allclose(fg.grad(total)(w), np.cos(xs @ w) @ xs, rtol=1e-13)


def test_forward_mode_of_and_under_vmap():
    def f(x):
        return np.sin(x) * x[0]

    x, d = X[0], X[1]
    _, under = fg.vmap(lambda a, t: fg.jvp(f, (a,), (t,)))(x, d)
    _, of = fg.jvp(fg.vmap(f), (x,), (d,))
    expected = [fg.jvp(f, (a,), (t,))[1] for a, t in zip(x, d, strict=True)]
    assert_allclose(under, expected, rtol=1e-14)
    assert_allclose(of, expected, rtol=1e-14)


def test_jacobian_by_vmap_of_a_pullback():
    x = np.array([0.1, 0.2, 0.3])
    _, pullback = fg.vjp(lambda x: np.cumsum(x**2), x)
    (jacobian,) = fg.vmap(pullback)(np.eye(3))
    assert_allclose(jacobian, np.tril(np.ones((3, 3))) * 2 * x, rtol=1e-15)


def test_hessian_by_vmap():
    def f(x):
        return np.sum(x**3) * x[0]

    x = np.array([1.0, 2.0, 3.0])
    hessian = fg.vmap(lambda v: fg.jvp(fg.grad(f), (x,), (v,))[1])(np.eye(3))
    # f = (x0^3 + x1^3 + x2^3) x0
    expected = [[12, 12, 27], [12, 12, 0], [27, 0, 18]]
    assert_allclose(hessian, expected, rtol=1e-14)


def test_gradient_with_respect_to_a_python_number_for_each_example():
    got = fg.vmap(fg.grad(lambda s, x: s**2 * x), (None, 0))(3.0, np.array([1.0, 2.0]))
    assert_array_equal(got, [6.0, 12.0])


def test_vmap_of_linearize():
    def push(x, d):
        _, pushforward = fg.linearize(np.sin, x)
        return pushforward(d)

    x, d = np.arange(3.0), np.ones(3)
    assert_allclose(fg.vmap(push)(x, d), np.cos(x), rtol=1e-15)


def test_stop_gradient_under_vmap_keeps_the_examples():
    def f(x):
        return np.sum(x * fg.stop_gradient(x))

    assert_array_equal(fg.vmap(fg.grad(f))(X[0]), X[0])


def test_zero_wins_for_each_example():
    f = fg.grad(lambda x: np.where(x > 0, np.sqrt(np.abs(x)), 0.0))
    assert_array_equal(fg.vmap(f)(np.array([0.0, 4.0])), [0.0, 0.25])


# Values that differ from example to example, as NumPy has none


def test_comparisons_give_truth_values_for_each_example():
    got = fg.vmap(lambda x: (x > 1) & ~(x > 2) | (x == 0))(np.arange(4.0))
    assert_array_equal(got, [True, False, True, False])
    assert got.dtype == bool


def test_integers_may_be_mapped():
    got = fg.vmap(lambda n: n * 2)(np.arange(3))
    assert_array_equal(got, [0, 2, 4])
    assert got.dtype == np.arange(3).dtype


def test_shape_is_that_of_one_example():
    seen = []

    def look(x):
        seen.append((x.shape, x.ndim, x.size, len(x), np.shape(x), np.ndim(x), np.size(x), x.dtype))
        return x

    fg.vmap(look)(X)
    assert seen == [((3, 4), 2, 12, 3, (3, 4), 2, 12, np.dtype(float))]


def test_index_that_differs():
    k = np.array([2, -1])
    assert_array_equal(fg.vmap(lambda x, k: x[k])(X, k), [X[0][2], X[1][-1]])
    assert_array_equal(fg.vmap(lambda x, k: x[:, k])(X, k), [X[0][:, 2], X[1][:, -1]])
    assert_array_equal(fg.vmap(lambda x, k: x[k, 1:])(X, k), [X[0][2, 1:], X[1][-1, 1:]])


@pytest.mark.parametrize(
    "index",
    [
        lambda k: k,
        lambda k: (..., k),
        lambda k: (slice(None), k),
        lambda k: (k, slice(1, None)),
        lambda k: (None, k),
        lambda k: (k, [0, 2]),
        lambda k: (slice(None), k, [0, 1]),
        lambda k: ([0, 2], slice(None), k),
        lambda k: ([[0], [1]], None, [k, k]),
        lambda k: (0, slice(None), [k, k]),
        lambda k: (slice(None, None, -1), [k, 0]),
        lambda k: (np.array([True, False, True]), k),
        lambda k: (k, k, k),
    ],
)
def test_index_that_differs_is_that_of_numpy(index):
    x = np.arange(60.0).reshape(3, 4, 5)
    k = np.array([2, 0, -1])
    got = fg.vmap(lambda k: _at(x, index(k)))(k)
    assert_array_equal(got, np.stack([x[index(i)] for i in k]))


def _at(x, index):
    return fg.vmap(lambda x: x[index], in_axes=None, out_axes=None, axis_size=1)(x)


def test_index_that_differs_out_of_bounds_is_numpys_error():
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        fg.vmap(lambda x, k: x[k])(X, np.array([0, 3]))


def test_gradient_through_an_index_that_differs():
    f = fg.grad(lambda x, k: x[k] ** 2)
    got = fg.vmap(f)(X[0], np.array([1, 0, 3]))
    assert_array_equal(got, [[0, 2, 0, 0], [8, 0, 0, 0], [0, 0, 0, 22]])


def test_assignment_at_an_index_that_differs():
    def f(x, k):
        y = x.copy()
        y[k] = 10 * x[0]
        return y

    k = np.array([1, 3, 0])
    expected = loop(f, X[0], k)
    assert_array_equal(fg.vmap(f)(X[0], k), expected)
    got = fg.vmap(fg.grad(lambda x, k: np.sum(f(x, k))))(X[0], k)
    assert_array_equal(got, [[11, 0, 1, 1], [11, 1, 1, 0], [10, 1, 1, 1]])


def test_take_by_indices_that_differ():
    k = np.array([[1, 1], [0, -1]])
    for axis in (None, 0, 1, -1):
        got = fg.vmap(lambda x, k, axis=axis: np.take(x, k, axis))(X, k)
        assert_array_equal(got, loop(lambda x, k, axis=axis: np.take(x, k, axis), X, k))
    got = fg.vmap(lambda x, k: np.take(x, k, mode="wrap"))(X, k + 20)
    assert_array_equal(got, loop(lambda x, k: np.take(x, k, mode="wrap"), X, k + 20))


def test_take_along_axis_by_indices_that_differ():
    def f(x):
        return np.take_along_axis(x, np.argsort(-x, axis=1), axis=1)

    assert_array_equal(fg.vmap(f)(X), X[..., ::-1])


def test_shared_argument_may_be_indexed():
    table = np.array([10, 20, 30])
    got = fg.vmap(lambda t, k: t[k], (None, 0))(table, np.array([2, 0]))
    assert_array_equal(got, [30, 10])


def test_assignment_to_an_array_made_inside():
    def f(x):
        y = np.zeros_like(x)
        y[1:] += x[:-1]
        y[0] = x[-1]
        return y

    assert_array_equal(fg.vmap(f)(X[0]), np.roll(X[0], 1, axis=1))
    z = fg.vmap(lambda x: fnp.array([x[0], 2.0, x[1]]))(X[0])
    assert_array_equal(z, [[x[0], 2.0, x[1]] for x in X[0]])


def test_arguments_are_read_only():
    def f(x):
        x[0] = 1.0
        return x

    with pytest.raises(MutationError, match="copy it first"):
        fg.vmap(f)(X)
    with pytest.raises(MutationError, match="copy it first"):
        fg.vmap(lambda c, x: f(c) + x, (None, 0))(X[0], X)


def test_results_share_no_memory_with_arguments():
    got = fg.vmap(lambda x: x)(X)
    assert not np.shares_memory(got, X)


def test_loop_over_the_elements_of_an_example():
    got = fg.vmap(lambda x: sum(v * v for v in x))(X[0])
    assert_array_equal(got, np.sum(X[0] ** 2, axis=1))


# Mistakes


def test_sizes_that_disagree_are_listed():
    with pytest.raises(ShapeError, match="disagree") as caught:
        fg.vmap(lambda x, y, z: x)(np.ones(3), {"a": np.ones((4, 2))}, z=np.ones(3))
    _, *table, where, _ = str(caught.value).split("\n")
    assert table == [
        "    argument             array         axis  size",
        "    argument 0           float64[3]    0     3",
        "    argument 1 at ['a']  float64[4,2]  0     4  <- differs",
        "    argument 'z'         float64[3]    0     3",
    ]
    assert "test_batching.py" in where


def test_the_odd_one_is_marked_wherever_it_is():
    with pytest.raises(ShapeError, match="disagree") as caught:
        fg.vmap(lambda x, y, z: x, in_axes=(0, 1, 0))(np.ones(2), np.ones((2, 3)), np.ones(3))
    marked = [line for line in str(caught.value).split("\n") if line.endswith("<- differs")]
    assert marked == ["    argument 0  float64[2]    0     2  <- differs"]


def test_the_first_is_right_if_it_is_a_draw():
    with pytest.raises(ShapeError, match="disagree") as caught:
        fg.vmap(lambda x, y: x)(np.ones(9), np.ones(3))
    assert "argument 1  float64[3]  0     3  <- differs" in str(caught.value)


def test_many_arguments_that_agree_are_not_all_listed():
    with pytest.raises(ShapeError, match="disagree") as caught:
        fg.vmap(lambda p: p)([np.ones(3)] * 40 + [np.ones(4)])
    text = str(caught.value)
    assert "argument 0 at [40]  float64[4]  0     4  <- differs" in text
    assert "and 32 more that agree" in text
    assert len(text.split("\n")) == 14


def test_axis_size_that_disagrees():
    with pytest.raises(ShapeError, match="axis_size=5"):
        fg.vmap(np.sin, axis_size=5)(np.ones(3))


@pytest.mark.parametrize("axis", [1, -2])
def test_axis_that_an_argument_lacks(axis):
    with pytest.raises(ShapeError, match=r"axis -?\d of float64\[3\], which has no such axis"):
        fg.vmap(np.sin, in_axes=axis)(np.ones(3))


def test_number_has_no_axis():
    with pytest.raises(ShapeError, match="no such axis") as caught:
        fg.vmap(np.multiply)(np.ones(3), 2.0)
    assert "None in in_axes" in str(caught.value)
    assert "argument 1" in str(caught.value)


def test_too_few_in_axes():
    with pytest.raises(TreeMismatchError, match="2 entries for 1 positional argument"):
        fg.vmap(np.sin, in_axes=(0, 0))(np.ones(3))
    with pytest.raises(TreeMismatchError, match=r"2 entries for 1 .*\n.*\n.*given by keyword"):
        fg.vmap(lambda x, y: x, in_axes=(0, 0))(np.ones(3), y=np.ones(3))


def test_in_axes_of_another_structure():
    with pytest.raises(TreeMismatchError, match="of vmap does not fit argument 0\n") as caught:
        fg.vmap(lambda p: p["a"], in_axes=({"b": 0},))({"a": np.ones(3)})
    assert str(caught.value).startswith("in_axes[0] of vmap")
    assert "missing key 'b', unexpected key 'a' (compared with in_axes[0])" in str(caught.value)


def test_out_axes_of_another_structure():
    with pytest.raises(TreeMismatchError, match="out_axes of vmap does not fit the output"):
        fg.vmap(lambda x: x, out_axes=(0, 0))(np.ones(3))
    with pytest.raises(TreeMismatchError, match="it has a tuple of 2, out_axes has a tuple of 3"):
        fg.vmap(lambda x: (x, x), out_axes=(0, 0, 0))(np.ones(3))


def test_in_axes_that_is_a_dict():
    with pytest.raises(ArgumentError, match="in_axes"):
        fg.vmap(np.sin, in_axes={"x": 0})


@pytest.mark.parametrize("axes", ["0", 1.0, True, (0, "a")])
def test_in_axes_of_another_type(axes):
    with pytest.raises(ArgumentError, match="in_axes"):
        fg.vmap(np.sin, in_axes=axes)


def test_nothing_says_how_many_examples():
    with pytest.raises(ArgumentError, match="axis_size"):
        fg.vmap(np.sin, in_axes=None)(np.ones(3))


def test_out_axes_none_for_what_differs():
    with pytest.raises(ShapeError, match="out_axes of vmap is None"):
        fg.vmap(np.sin, out_axes=None)(np.ones(3))


def test_out_axes_none_names_the_output():
    def parts(x):
        return {"a": [1.0, x], "b": x}

    with pytest.raises(
        ShapeError, match=r"the output at \['a'\]\[1\] of vmap\(parts\) at .*batching"
    ):
        fg.vmap(parts, out_axes={"a": None, "b": 0})(np.ones(3))


def test_out_axes_beyond_the_output():
    with pytest.raises(ShapeError, match="axis 1 of an output with 1 axes"):
        fg.vmap(np.sin, out_axes=1)(np.ones(3))
    with pytest.raises(ShapeError, match=r"axis 2 of an output.*\n.*the output at \[1\] of vmap"):
        fg.vmap(lambda x: (x, x), out_axes=(0, 2))(np.ones((3, 1)))


def test_branch_on_a_batched_value():
    with pytest.raises(TracerConversionError, match="no truth value") as caught:
        fg.vmap(lambda x: x if x > 0 else -x)(np.ones(3))
    assert "np.where" in str(caught.value)
    with pytest.raises(TracerConversionError, match="no truth value"):
        fg.vmap(fg.grad(lambda x: x if x > 0 else -x))(np.ones(3))


def test_mask_that_differs():
    with pytest.raises(ShapeError, match="boolean mask") as caught:
        fg.vmap(lambda x: np.sum(x[x > 0]))(X)
    assert "where=mask" in str(caught.value)


def test_mask_that_is_the_same_works():
    mask = np.array([True, False, True])
    assert_array_equal(fg.vmap(lambda x: x[mask])(X), X[:, mask])


def test_plain_array_indexed_by_what_differs():
    with pytest.raises(TracerConversionError, match="differs from example to example") as caught:
        fg.vmap(lambda k: X[k])(np.array([0, 1]))
    assert "funcgrad.numpy.take" in str(caught.value)


def test_range_of_a_length_that_differs():
    with pytest.raises(TracerConversionError, match="length of a loop differs") as caught:
        fg.vmap(lambda n: sum(range(n)))(np.array([1, 2]))
    assert "funcgrad.fori_loop(0, n, " in str(caught.value)


def test_axis_that_differs():
    with pytest.raises(TracerConversionError, match="the same for all examples"):
        fg.vmap(lambda n: operator.index(n))(np.array([1, 2]))


def test_leaked_value():
    kept = []
    fg.vmap(lambda x: kept.append(x) or x)(np.ones(3))
    with pytest.raises(TracerLeakError, match="vmap"):
        kept[0] + 1


def test_function_that_is_none():
    with pytest.raises(ArgumentError, match="vmap takes a function"):
        fg.vmap(np.ones(3))


def test_vmapped_function_can_be_pickled():
    made = pickle.loads(pickle.dumps(fg.vmap(np.sum, in_axes=1)))
    assert_array_equal(made(X[0]), X[0].sum(0))
    assert repr(made) == "vmap(sum)"


# Found by a reading of the first version


WIDE = np.array([[True, False, True], [False, True, True]])


def test_mask_of_a_ufunc_with_more_axes_than_its_argument():
    def f(x):
        return np.where(WIDE, np.sin(x, out=None, where=WIDE), 0)

    x = np.arange(6.0).reshape(2, 3) + 0.5
    assert_array_equal(fg.vmap(f)(x), [f(x[0]), f(x[1])])
    gradient = fg.grad(lambda x: np.sum(f(x)))(x[0])
    assert_allclose(gradient, np.cos(x[0]) * WIDE.sum(0), rtol=1e-15)


def test_mask_of_a_ufunc_that_stretches_its_argument():
    gradient = fg.grad(lambda x: np.sum(np.square(x, where=WIDE[0])))(np.array([0.5]))
    assert_array_equal(gradient, [2.0])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint64])
def test_narrow_integers_as_indices(dtype):
    table = np.arange(400).reshape(200, 2)
    k = np.array([90, 7, 5], dtype)
    assert_array_equal(fg.vmap(lambda t, k: t[k], (None, 0))(table, k), table[k])
    got = fg.vmap(lambda t, k: np.take_along_axis(t, k, 0), (None, 0))(table, k[:, None, None])
    assert_array_equal(got, table[k][:, None])


def test_mask_of_the_wrong_length_beside_an_index_that_differs():
    k = np.array([0, 1])
    with pytest.raises(IndexError, match="boolean index did not match"):
        fg.vmap(lambda x, k: x[..., k, np.array([True, False])], (None, 0))(X, k)


def test_ellipsis_of_no_axes_keeps_arrays_apart():
    k = np.array([0, 1, -1])

    def f(x, k):
        return x[None, k, ..., k, np.array([0, 1])]

    assert_array_equal(fg.vmap(f, (None, 0))(X, k), [f(X, i) for i in k])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_views_are_known_whatever_the_axis_of_the_examples(axis):
    def f(x):
        y = x * 1.0
        v = y.ravel()
        y[0, 0] = 5.0
        return v

    with pytest.raises(MutationError, match="share memory"):
        fg.vmap(f, in_axes=axis)(np.zeros((4, 3, 2)))


def test_outputs_share_no_memory():
    x = np.ones(3)
    first, second, same = fg.vmap(lambda x, c: (2 * x, x, c), (0, None), (0, 0, None))(x, x)
    both = fg.vmap(lambda x: (2 * x,) * 2)(x)
    for out in (first, second, same):
        assert not np.shares_memory(out, x)
    assert not np.shares_memory(*both)


def test_mask_that_differs_may_be_assigned_one_value():
    def f(x):
        y = x.copy()
        y[x > 5] = -1.0
        return y

    assert_array_equal(fg.vmap(f)(X), np.where(X > 5, -1, X))
    assert_array_equal(fg.vmap(lambda x: fg.at(x)[x > 5].set(x[0, 0]))(X)[1], np.full((3, 4), 12))
    gradient = fg.vmap(fg.grad(lambda x: np.sum(f(x))))(X)
    assert_array_equal(gradient, X <= 5)


@pytest.mark.parametrize("function", [round, math.floor, math.ceil, math.trunc])
def test_python_rounding_of_a_batched_number(function):
    with pytest.raises(TracerConversionError):
        fg.vmap(lambda x: function(x))(np.ones(2))


def test_batched_numbers_can_be_formatted():
    seen = []
    fg.vmap(lambda x: seen.append(f"{x:.1f}") or x)(np.array([1.0, 2.5]))
    assert seen == ["[1.0 2.5]"]


def test_no_examples_of_a_function_with_several_results():
    (got,) = fg.vmap(np.nonzero)(np.ones((0, 3)))
    assert got.shape[0] == 0


def test_a_list_of_numbers_is_no_array():
    with pytest.raises(ShapeError, match=r"at \[0\] of vmap(.|\n)*write np\.array\(x\)"):
        fg.vmap(np.sin)([1.0, 2.0])
    with pytest.raises(ShapeError) as caught:
        fg.vmap(np.sin)(1.0)
    assert "np.array" not in str(caught.value)
