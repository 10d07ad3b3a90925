"""Batching rules, theme by theme: what the laws, which compare each with a loop, do not say."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.errors import MutationError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 2, 3))
W = RNG.normal(size=(3, 5))


def loop(fun, *args):
    """Call `fun` for each example, the first axis of every argument, and stack the results."""
    return np.stack([fun(*example) for example in zip(*args, strict=True)])


def assert_is_loop(fun, *args):
    got, expected = fg.vmap(fun)(*args), loop(fun, *args)
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13)


# Products


def test_vectors_times_one_matrix_are_one_product():
    x = X[:, 0]
    np.testing.assert_array_equal(fg.vmap(lambda v: v @ W)(x), x @ W)
    np.testing.assert_array_equal(fg.vmap(lambda v: np.matvec(W.T, v))(x), x @ W)
    np.testing.assert_array_equal(fg.vmap(lambda v: np.vecmat(v, W))(x), x @ W)


@pytest.mark.parametrize("spoiled", [None, np.nan, np.inf])
def test_multiples_of_unit_vectors_times_a_large_matrix(spoiled):
    """They pick rows, in much less time than a product; not of what is not finite."""
    w = RNG.normal(size=(80, 70))
    if spoiled is not None:
        w[3, 5] = spoiled
    vectors = np.zeros((60, 80))
    vectors[np.arange(60), RNG.permutation(80)[:60]] = RNG.normal(size=60)
    vectors[7] = 0.0
    with np.errstate(invalid="ignore"):
        for rows in (vectors, vectors[:, ::-1], vectors + np.eye(60, 80, 1), np.zeros((60, 80))):
            np.testing.assert_array_equal(fg.vmap(lambda v: v @ w)(rows), rows @ w)
            np.testing.assert_array_equal(fg.vmap(lambda v: w.T @ v)(rows), rows @ w)
        narrow = vectors.astype(np.float32)
        np.testing.assert_array_equal(fg.vmap(lambda v: v @ w)(narrow), narrow @ w)


def test_matrices_times_one_matrix_are_one_product():
    expected = (X.reshape(8, 3) @ W).reshape(4, 2, 5)
    np.testing.assert_array_equal(fg.vmap(lambda m: m @ W)(X), expected)
    np.testing.assert_array_equal(fg.vmap(lambda m: np.dot(m, W))(X), expected)


@pytest.mark.parametrize("product", [np.matmul, np.dot])
def test_gradient_in_a_shared_matrix_is_summed_over_the_examples(product):
    def total(w):
        return np.sum(fg.vmap(lambda m: product(m, w))(X))

    expected = np.sum(X, axis=(0, 1))[:, np.newaxis] * np.ones(5)
    np.testing.assert_allclose(fg.grad(total)(W), expected, rtol=1e-14)


def test_gradient_for_each_example_of_a_product():
    gradient = fg.vmap(fg.grad(lambda w, v: np.sum(v @ w)), in_axes=(None, 0))(W, X[:, 0])
    np.testing.assert_array_equal(gradient, X[:, 0, :, np.newaxis] * np.ones(5))


def test_a_nan_masked_out_of_one_example_stays_out_of_its_gradient():
    x = np.array([[1.0, np.nan], [2.0, 3.0]])
    mask = np.array([[1.0, 0.0], [1.0, 1.0]])
    gradient = fg.vmap(fg.grad(lambda w, v, m: np.dot(w, v * m)), in_axes=(None, 0, 0))
    with np.errstate(invalid="ignore"):
        got = gradient(np.ones(2), np.where(mask, x, 1.0), mask)
        masked = fg.vmap(fg.grad(lambda w, v, m: np.sum(m * (w * v))), in_axes=(None, 0, 0))
        np.testing.assert_array_equal(masked(np.ones(2), x, mask), [[1.0, 0.0], [2.0, 3.0]])
    np.testing.assert_array_equal(got, [[1.0, 0.0], [2.0, 3.0]])


def test_long_einsum_of_examples_is_a_loop():
    a, b = RNG.normal(size=(3, 40, 50)), RNG.normal(size=(3, 50, 60))
    assert_is_loop(lambda x, y: np.einsum("ij,jk->ik", x, y), a, b)
    got = fg.vmap(lambda x: np.einsum("ij,jk->ki", x, b[0]))(a)
    np.testing.assert_allclose(got, loop(lambda x: (x @ b[0]).T, a), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    "product",
    [np.dot, np.inner, np.vdot, np.matmul, lambda a, b: np.tensordot(a, b, 1)],
)
@pytest.mark.parametrize("in_axes", [(0, 0), (0, None), (None, 0)])
def test_lengths_that_do_not_fit_are_refused(product, in_axes):
    a, b = np.ones((2, 2, 3)), np.ones((2, 2, 3, 4))[..., 0]
    a, b = (x if axis == 0 else x[0] for x, axis in zip((a, b[:, :, :2]), in_axes, strict=True))
    with pytest.raises(ValueError, match=r"mismatch|not aligned|size|shape"):
        fg.vmap(lambda x, y: product(x, y[:, :1]), in_axes)(a, b)


@pytest.mark.parametrize("product", [np.matmul, np.vecdot, np.matvec, np.vecmat])
@pytest.mark.parametrize("in_axes", [(0, 0), (0, None), (None, 0)])
def test_examples_with_too_few_axes_are_refused_as_numpy_does(product, in_axes):
    args = [np.ones(2) if axis == 0 else 1.0 for axis in in_axes]
    with pytest.raises(ValueError, match="does not have enough dimensions"):
        fg.vmap(product, in_axes)(*args)


# Axes are those of one example


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.flip(x, 1),
        lambda x: np.roll(x, 1, axis=1),
        lambda x: np.repeat(x, 2, axis=1),
        lambda x: np.delete(x, 0, axis=-2),
        lambda x: np.insert(x, 0, 1.0, axis=1),
        lambda x: np.rot90(x, axes=(0, 1)),
        lambda x: np.concatenate([x, x], axis=1),
        lambda x: np.stack([x, x], axis=2),
        lambda x: np.split(x, 1, axis=1)[0],
        lambda x: np.unstack(x, axis=1)[0],
        lambda x: np.diagonal(x),
        lambda x: np.trace(x, axis1=0, axis2=1),
        lambda x: np.linspace(x, 1.0, 3, axis=2),
        lambda x: np.hypot.reduce(x, axis=1),
        lambda x: np.subtract.accumulate(x, axis=1),
        lambda x: np.add.reduceat(x, [0], axis=1),
        lambda x: np.cross(x, x, axis=1),
    ],
)
def test_an_axis_that_one_example_lacks_is_refused_as_numpy_does(fun):
    x = np.arange(12.0).reshape(4, 3)
    with pytest.raises((ValueError, IndexError)) as expected:
        fun(x[0])
    with pytest.raises(type(expected.value)):
        fg.vmap(fun)(x)


def test_pad_needs_no_width_for_the_axis_of_examples():
    values = [[1.0, 2.0], [3.0, 4.0]]
    assert_is_loop(lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=values), X)
    assert_is_loop(lambda x: np.pad(x, 1, mode="median"), X)
    assert_is_loop(lambda x: np.pad(x, 4, mode="reflect", reflect_type="odd"), X)


def test_a_shared_part_is_repeated_for_each_example():
    shared = np.arange(3.0)
    got = fg.vmap(lambda x: np.concatenate([shared, x, [7.0]]))(X[:, 0])
    np.testing.assert_array_equal(got[:, :3], np.tile(shared, (4, 1)))
    np.testing.assert_array_equal(got[:, 3:6], X[:, 0])
    np.testing.assert_array_equal(got[:, 6], np.full(4, 7.0))


def test_python_numbers_beside_examples_do_not_widen_the_dtype():
    x = X[:, 0].astype(np.float32)
    assert_is_loop(lambda x: np.concatenate([x, 2.0], axis=None), x)
    assert_is_loop(lambda x: np.concatenate([2, x], axis=None), x)
    assert_is_loop(lambda x: np.concatenate([np.float64(2.0), x], axis=None), x)
    assert_is_loop(lambda x: np.linspace(x, 2.0, 3), x)


# Arrays like an example


def test_zeros_like_has_the_shape_and_layout_of_one_example():
    x = np.asfortranarray(X[0])[np.newaxis]
    seen = []

    def look(x):
        made = np.zeros_like(x)
        plain = fnp.asarray(made)
        seen.append((made.shape, np.asarray(made).flags.f_contiguous, plain.dtype))
        return x

    fg.vmap(look)(x)
    fg.vmap(look)(x[:0].astype(np.float32))
    assert seen[0] == ((2, 3), True, np.float64)
    assert seen[1][::2] == ((2, 3), np.float32)


@pytest.mark.parametrize("like", [np.zeros_like, np.ones_like, np.empty_like])
def test_arrays_like_an_example_can_be_assigned_to(like):
    def f(x):
        y = like(x)
        y[...] = 1.0
        y[0] = x[1]
        return y

    assert_is_loop(f, X)
    assert_is_loop(fg.grad(lambda x: np.sum(f(x) ** 2)), X)


def test_full_like_takes_a_value_of_each_example():
    assert_is_loop(lambda x, v: np.full_like(x, v), X, X[:, 0, 0])
    got = fg.vmap(lambda v: fnp.full_like(X[0], v))(X[:, 0])
    np.testing.assert_array_equal(got, loop(lambda v: np.full_like(X[0], v), X[:, 0]))


# Parts of numbers


def test_exponents_differ_from_example_to_example():
    numbers = np.array([0.3, 5.0, -70.0])
    mantissas, exponents = fg.vmap(np.frexp)(numbers)
    np.testing.assert_array_equal(exponents, [-1, 3, 7])
    np.testing.assert_array_equal(mantissas, numbers / [0.5, 8, 128])
    np.testing.assert_array_equal(fg.vmap(np.ldexp)(mantissas, exponents), numbers)
    gradient = fg.vmap(fg.grad(lambda x: np.frexp(x)[0]))(numbers)
    np.testing.assert_array_equal(gradient, [2.0, 1 / 8, 1 / 128])
    gradient = fg.vmap(fg.grad(np.ldexp))(mantissas, exponents)
    np.testing.assert_array_equal(gradient, [0.5, 8, 128])


def test_parts_that_are_constant_have_the_shape_of_one_example():
    assert_is_loop(np.imag, X)
    assert_is_loop(lambda x: np.modf(x)[1], X)


def test_nan_to_num_in_place_writes_to_each_example():
    def f(x):
        y = np.where(x > 0, x, np.nan)
        np.nan_to_num(y, copy=False, nan=-1.0)
        return y

    assert_is_loop(f, X)


# Folds


@pytest.mark.parametrize(
    "fold", [np.logaddexp.reduce, np.hypot.reduce, np.subtract.reduce, np.divide.reduce]
)
def test_each_example_can_have_its_starting_value(fold):
    starts = np.array([1.0, 2.0, 3.0, 4.0])
    assert_is_loop(lambda x, start: fold(x, axis=1, initial=start), X, starts)
    assert_is_loop(lambda x, start: fold(x, axis=0, initial=start, keepdims=True), X, starts)
    gradient = fg.grad(lambda x, start: np.sum(fold(x, axis=0, initial=start)))
    got = fg.vmap(gradient, in_axes=(None, 0))(X[0], starts)
    np.testing.assert_allclose(got, loop(lambda start: gradient(X[0], start), starts), rtol=1e-12)


@pytest.mark.parametrize("fold", [np.logaddexp.reduce, np.hypot.reduce])
def test_each_example_can_have_its_mask(fold):
    assert_is_loop(lambda x: fold(x, axis=1, where=x > 0), X)
    assert_is_loop(lambda x, start: fold(x, axis=1, where=x > 0, initial=start), X, X[:, 0, 0])


# What writes in place: positions and masks of each example

PLACES = RNG.integers(-6, 6, size=(4, 3))
VALUES = RNG.normal(size=(4, 6))


def _put(mode):
    def put(x, values, places):
        np.put(x, places if mode == "raise" else 3 * places, values, mode=mode)

    return put


def _place(x, values, places):
    np.place(x, np.sin(x) > 0.2, values[:2])


def _putmask(x, values, places):
    np.putmask(x, np.sin(x) > 0.2, values[:4])


def _copyto(x, values, places):
    np.copyto(x, values.reshape(2, 3), where=x > 0)


def _put_along_axis(x, values, places):
    np.put_along_axis(x, abs(places[:2, np.newaxis]) % 3, values[:2, np.newaxis], 1)


def _put_along_no_axis(x, values, places):
    np.put_along_axis(x, places % 6, values[:3], None)


def _fill_diagonal(x, values, places):
    np.fill_diagonal(x, values[:2])


WRITERS = [
    _put("raise"),
    _put("wrap"),
    _put("clip"),
    _place,
    _putmask,
    _copyto,
    _put_along_axis,
    _put_along_no_axis,
    _fill_diagonal,
]


@pytest.mark.parametrize("write", WRITERS)
def test_functions_that_write_in_place_write_to_each_example(write):
    def written(x, values, places):
        y = x.copy()
        write(y, values, places)
        return y

    def weighted(x, values, places):
        return np.sum(np.sin(written(x, values, places)))

    assert_is_loop(written, X, VALUES, PLACES)
    gradient = fg.grad(weighted, argnums=(0, 1))
    for part in (0, 1):
        assert_is_loop(lambda *args, part=part: gradient(*args)[part], X, VALUES, PLACES)


def test_a_plain_array_cannot_take_positions_of_each_example():
    with pytest.raises(MutationError, match=r"numpy\.put would write a traced value"):
        fg.vmap(lambda places: np.put(np.zeros(6), places, 1.0))(PLACES)


def test_a_position_out_of_bounds_in_one_example_is_an_index_error():
    with pytest.raises(IndexError, match="index 6 is out of bounds for axis 0 with size 6"):
        fg.vmap(lambda x, i: np.put(x.copy(), i, 1.0))(X, np.array([0, 5, 6, 2]))
