"""Keys and samplers under vmap: the same as a loop over the examples, bit for bit."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad import random
from funcgrad.errors import (
    ArgumentError,
    DtypeError,
    ShapeError,
    TracerConversionError,
    TracerLeakError,
    UnhashableTracerError,
    location,
)
from funcgrad.random import philox, stream

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.filterwarnings("error::funcgrad.random.KeyReuseWarning")

MANY = stream._MANY_KEYS + 3  # so many that the cipher runs in NumPy for all of them
X = np.arange(12.0).reshape(3, 4)
DRAWS: dict[str, Callable[[random.Key], Any]] = {
    "bits": lambda k: k.bits((2, 2)),
    "bits int8": lambda k: k.bits((), np.int8),
    "uniform": lambda k: k.uniform((3,)),
    "uniform scalar": lambda k: k.uniform(),
    "uniform float16 scaled": lambda k: k.uniform((3,), np.float16, -1.0, 3),
    "normal": lambda k: k.normal((3,)),
    "normal scalar": lambda k: k.normal(),
    "normal float32": lambda k: k.normal((2, 2), np.float32),
    "normal complex": lambda k: k.normal((2, 3), np.complex64),
    "normal complex scalar": lambda k: k.normal((), complex),
    "normal, more than a few blocks": lambda k: k.normal(70),
    "normal, none": lambda k: k.normal((0, 2)),
    "truncated_normal": lambda k: k.truncated_normal(-1, [2.0, np.inf]),
    "truncated_normal scalar": lambda k: k.truncated_normal(2.0, 3.0, (), np.float32),
    "exponential": lambda k: k.exponential(2),
    "gumbel": lambda k: k.gumbel(2, np.float32),
    "laplace": lambda k: k.laplace(),
    "bernoulli": lambda k: k.bernoulli(0.3, (4,)),
    "bernoulli scalar": lambda k: k.bernoulli(),
    "rademacher": lambda k: k.rademacher(5),
    "rademacher float32": lambda k: k.rademacher((), np.float32),
    "randint": lambda k: k.randint((2, 3), -5, 9),
    "randint uint64": lambda k: k.randint((), 0, 2**64, np.uint64),
    "randint of arrays": lambda k: k.randint(2, [0, 5], 9, np.int8),
    "permutation": lambda k: k.permutation(5),
    "permutation of an array": lambda k: k.permutation(X, axis=1),
    "permutation, independent": lambda k: k.permutation(X, 0, independent=True),
    "choice": lambda k: k.choice(9, (2, 2)),
    "choice scalar": lambda k: k.choice(X[0]),
    "choice from an array": lambda k: k.choice(X, (2,), axis=1),
    "choice, no replace": lambda k: k.choice(9, (2, 2), replace=False),
    "choice, p": lambda k: k.choice(3, (2, 2), p=[1, 2, 0]),
    "choice, p, none": lambda k: k.choice(3, (2, 0), p=[1, 2, 0]),
    "choice, no replace, p": lambda k: k.choice(3, 2, replace=False, p=[1, 2, 0]),
    "categorical": lambda k: k.categorical(X),
    "categorical scalar": lambda k: k.categorical(X[0] - X[0]),
    "categorical, axis": lambda k: k.categorical(X, 0, (5, 4)),
    "categorical, no replace": lambda k: k.categorical(X, shape=(2, 3), replace=False),
    "split": lambda k: random.key_data(k.split()),
    "split into an array": lambda k: random.key_data(random.split(k, (2, 3))),
    "split into many": lambda k: random.key_data(random.split(k, 40)),
    "fold_in": lambda k: random.key_data(k.fold_in(3)),
    "fold_in of -1": lambda k: random.key_data(k.fold_in(-1)),
    "fold_in of many bits": lambda k: random.key_data(k.fold_in(-(2**70))),
    "a draw of a draw": lambda k: k.fold_in(1).split(2)[1].normal(2),
    "clone": lambda k: np.stack([k.clone().normal(), k.normal()]),
    "through the data": lambda k: random.wrap_key_data(random.key_data(k)).normal(),
}


def new_keys(shape: Any, seed: int = 7) -> random.Key:
    return random.split(random.key(seed), shape)


def loop(fun: Callable[..., Any], keys: random.Key, *values: Any) -> Any:
    """Call `fun` for each key, as if unused, and each row of the values; stack the results."""
    rows = zip(keys.clone(), *values, strict=True)
    return np.stack([fun(key.clone(), *row) for key, *row in rows])


def assert_same(got: Any, expected: Any) -> None:
    assert isinstance(got, np.ndarray)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    assert got.tobytes() == expected.tobytes()


# Keys that differ


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("count", [3, MANY])
def test_a_draw_is_that_of_a_loop(name: str, count: int) -> None:
    draw, keys = DRAWS[name], new_keys(count)
    assert_same(fg.vmap(draw)(keys), loop(draw, keys))


@pytest.mark.parametrize("name", DRAWS)
def test_a_draw_for_no_keys_has_the_shape_and_dtype_of_one(name: str) -> None:
    one = np.asarray(DRAWS[name](random.key(0)))
    assert_same(fg.vmap(DRAWS[name])(new_keys(0)), np.empty((0, *one.shape), one.dtype))


@pytest.mark.parametrize("name", DRAWS)
def test_a_nested_draw_is_that_of_a_nested_loop(name: str) -> None:
    draw, keys = DRAWS[name], new_keys((2, 3))
    expected = np.stack([loop(draw, keys[:, column]) for column in range(3)])
    assert_same(fg.vmap(fg.vmap(draw), in_axes=1)(keys), expected)


@pytest.mark.parametrize("name", DRAWS)
def test_a_shared_key_draws_the_same_for_all_examples(name: str) -> None:
    key, draw = random.key(3), DRAWS[name]
    got = fg.vmap(lambda k, x: draw(k), (None, 0))(key.clone(), np.zeros(2))
    assert_same(got, np.stack([draw(key.clone()), draw(key.clone())]))


def test_noise_for_each_example() -> None:
    keys, xs = new_keys(5), np.linspace(0, 1, 15).reshape(5, 3)
    got = fg.vmap(lambda key, x: x + random.normal(key, (3,)))(keys, xs)
    assert_same(got, loop(lambda key, x: x + random.normal(key, (3,)), keys, xs))
    assert len(np.unique(got - xs)) == 15


@pytest.mark.parametrize("count", [4, MANY])
def test_functions_of_keys_map_by_themselves(count: int) -> None:
    keys = new_keys(count)
    assert fg.vmap(random.split)(keys).shape == (count, 2)
    normals = fg.vmap(random.normal)(keys.clone())
    assert_same(normals, np.array([random.normal(key) for key in keys.clone()]))


# Integers that differ


@pytest.mark.parametrize("repeats", [1, MANY])
@pytest.mark.parametrize(
    "numbers",
    [
        np.array([0, 1, -1, -7]),
        np.array([3, 255], np.uint8),
        np.array([-(2**63), 2**63 - 1, -(2**63) + 1, -1]),
        np.array([2**64 - 1, 2**63, 2**63 - 1, 0], np.uint64),
    ],
)
def test_numbers_that_differ_are_folded_in(numbers: Any, repeats: int) -> None:
    numbers = np.tile(numbers, repeats)
    keys = new_keys(len(numbers))
    assert fg.vmap(random.fold_in)(keys, numbers) == random.wrap_key_data(
        loop(lambda k, i: random.key_data(k.fold_in(int(i))), keys, numbers)
    )
    shared = [random.key_data(keys[0].fold_in(int(i))) for i in numbers]
    assert fg.vmap(random.fold_in, (None, 0))(keys[0], numbers) == random.wrap_key_data(shared)
    seeded = [random.key_data(random.key(int(i))) for i in numbers]
    assert fg.vmap(random.key)(numbers) == random.wrap_key_data(seeded)


def test_a_floating_number_that_differs_is_not_folded_in() -> None:
    with pytest.raises(ArgumentError, match=r"fold_in\(\) needs an integer, got float64"):
        fg.vmap(random.fold_in, (None, 0))(random.key(0), np.zeros(3))
    with pytest.raises(ArgumentError, match=r"fold_in\(\) needs an integer, got int64\[2\]"):
        fg.vmap(random.fold_in, (None, 0))(random.key(0), np.zeros((3, 2), int))


# Parameters that differ

LOW, HIGH = np.array([-1.0, 0.5, 2.0]), np.array([0.0, 3.0, np.inf])
WEIGHTS = np.array([[1.0, 0.0, 2.0], [0.5, 0.25, 0.25], [0.0, 3.0, 1.0]])
WITH_PARAMETERS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "uniform minval": (lambda k, a: k.uniform((2,), minval=a, maxval=9.0), (LOW,)),
    "uniform bounds": (lambda k, a, b: k.uniform((), np.float32, a, b), (LOW, LOW + 1)),
    "uniform rows": (lambda k, a: k.uniform((2, 3), maxval=a), (1.0 + WEIGHTS,)),
    "normal": (lambda k, a, b: b * k.normal((4,)) + a, (LOW, LOW**2)),
    "truncated_normal": (lambda k, a, b: k.truncated_normal(a, b, (2,)), (LOW, HIGH)),
    "truncated_normal rows": (lambda k, a: k.truncated_normal(-9, a), (WEIGHTS,)),
    "bernoulli": (lambda k, a: k.bernoulli(a), (WEIGHTS / 3,)),
    "bernoulli shaped": (lambda k, a: k.bernoulli(a, (5,)), (WEIGHTS[1],)),
    "randint": (lambda k, a: k.randint((4,), 0, a), (np.array([1, 50, 2**40]),)),
    "randint rows": (
        lambda k, a, b: k.randint((2, 3), a, b, np.int16),
        (np.array([[0, 5, -9]] * 3), np.array([7, 8, 30])),
    ),
    "permutation": (lambda k, a: k.permutation(a), (WEIGHTS,)),
    "permutation of matrices": (lambda k, a: k.permutation(a, 1, True), (np.stack([X, -X, X]),)),
    "choice": (lambda k, a: k.choice(a, (2,), axis=1), (np.stack([X, -X, X]),)),
    "choice, p": (lambda k, a: k.choice(3, (2, 2), p=a), (WEIGHTS,)),
    "choice, no replace, p": (lambda k, a: k.choice(3, 2, replace=False, p=a), (WEIGHTS,)),
    "categorical": (lambda k, a: k.categorical(a, shape=(4,)), (WEIGHTS,)),
    "categorical, no replace": (lambda k, a: k.categorical(a, 0, 2, False), (WEIGHTS,)),
}


@pytest.mark.parametrize("name", WITH_PARAMETERS)
def test_parameters_that_differ_are_those_of_a_loop(name: str) -> None:
    draw, values = WITH_PARAMETERS[name]
    keys = new_keys(3)
    assert_same(fg.vmap(draw)(keys.clone(), *values), loop(draw, keys, *values))
    axes = (None, *[0] * len(values))
    shared = np.stack([draw(keys[0].clone(), *row) for row in zip(*values, strict=True)])
    assert_same(fg.vmap(draw, axes)(keys[0].clone(), *values), shared)


@pytest.mark.parametrize("name", WITH_PARAMETERS)
def test_parameters_of_one_axis_and_keys_of_another(name: str) -> None:
    draw, values = WITH_PARAMETERS[name]
    keys = new_keys(2)
    axes = (None, *[0] * len(values))
    got = fg.vmap(fg.vmap(draw, axes), (0, *[None] * len(values)))(keys.clone(), *values)
    rows = list(zip(*values, strict=True))
    assert_same(got, np.stack([[draw(key.clone(), *row) for row in rows] for key in keys]))


def test_parameters_of_no_examples() -> None:
    for draw, values in WITH_PARAMETERS.values():
        one = np.asarray(draw(random.key(0), *[x[0] for x in values]))
        got = fg.vmap(draw)(new_keys(0), *[x[:0] for x in values])
        assert_same(got, np.empty((0, *one.shape), one.dtype))


def test_parameters_are_checked_for_every_example() -> None:
    ends, draw = np.array([4, 0]), random.randint
    with pytest.raises(ArgumentError, match="between which there is no integer"):
        fg.vmap(lambda k, end: draw(k, 3, 0, end))(new_keys(2), ends)
    with pytest.raises(ArgumentError, match="into int8"):
        fg.vmap(lambda k, end: draw(k, 3, -1, end, np.int8))(new_keys(2), 100 * ends)
    with pytest.raises(DtypeError, match=r"needs integers, got float64"):
        fg.vmap(lambda k, end: draw(k, 3, -1, end))(new_keys(2), ends / 1)
    with pytest.raises(ArgumentError, match="negative, not finite"):
        fg.vmap(lambda k, p: k.choice(2, p=p))(new_keys(2), np.array([[1.0, 1.0], [0.0, 0.0]]))
    with pytest.raises(ArgumentError, match="draw 2 of 1"):
        fg.vmap(lambda k, p: k.choice(2, 2, False, p))(new_keys(2), np.array([[1, 1], [0, 1]]))
    with pytest.raises(ArgumentError, match="out of order"):
        fg.vmap(lambda k, end: k.truncated_normal(1, end))(new_keys(2), ends)


# Derivatives


def test_the_gradient_for_each_example_passes_through_its_draw() -> None:
    keys, scales = new_keys(4), np.linspace(0.5, 2, 4)

    def loss(scale: Any, key: random.Key) -> Any:
        return np.sum((scale * key.normal((3,))) ** 2)

    got = fg.vmap(fg.grad(loss))(scales, keys.clone())
    squares = loop(lambda key: np.sum(key.normal((3,)) ** 2), keys)
    assert_allclose(got, 2 * scales * squares, rtol=1e-14)


def test_the_gradient_of_a_mean_over_keys() -> None:
    keys = new_keys(100)

    def mean(bounds: Any, keys: random.Key) -> Any:
        def one(key: random.Key) -> Any:
            return key.uniform(minval=bounds[0], maxval=bounds[1])

        return np.mean(fg.vmap(one)(keys))

    u = np.mean([key.uniform() for key in keys.clone()])
    got = fg.grad(mean)(np.array([-1.0, 3.0]), keys.clone())
    assert_allclose(got, [1 - u, u], rtol=1e-14)
    out, dot = fg.jvp(lambda b: mean(b, keys), (np.array([-1.0, 3.0]),), (np.array([1.0, 2.0]),))
    assert_allclose(out, 4 * u - 1, rtol=1e-14)
    assert_allclose(dot, 1 + u, rtol=1e-14)


def test_the_gradient_passes_through_a_random_order() -> None:
    keys, values = new_keys(3), np.stack([X, -X, X + 1])
    weights = np.arange(12.0).reshape(3, 4) ** 2

    def loss(x: Any, key: random.Key) -> Any:
        return np.sum(weights * key.permutation(x, 1))

    expected = np.empty((3, 3, 4))
    for number, key in enumerate(keys):
        expected[number][:, key.clone().permutation(4)] = weights
    assert_array_equal(fg.vmap(fg.grad(loss))(values, keys.clone()), expected)
    total = fg.grad(lambda x: np.sum(fg.vmap(loss)(x, keys.clone())))(values)
    assert_array_equal(total, expected)


def test_a_parameter_without_a_derivative_says_so_for_each_example_too() -> None:
    def loss(p: Any, key: random.Key) -> Any:
        return np.sum(p) * key.choice(3, p=p)

    with pytest.raises(TracerConversionError, match=r"^p of choice\(\) cannot be traced: draws"):
        fg.vmap(fg.grad(loss))(WEIGHTS, new_keys(3))
    with pytest.raises(TracerConversionError, match=r"^p of choice\(\) cannot be traced: draws"):
        fg.grad(lambda p: np.sum(fg.vmap(loss)(p, new_keys(3))))(WEIGHTS)


def test_a_key_in_the_parameters_has_no_gradient() -> None:
    def loss(tree: Any) -> Any:
        return np.sum(tree["w"] * tree["key"].normal(2))

    key = random.key(1)
    grads = fg.grad(loss)({"w": np.ones(2), "key": key})
    assert grads["key"] is None
    assert_array_equal(grads["w"], key.clone().normal(2))


BOUNDS = [(-1.0, 0.5), (2.0, 3.0), (-np.inf, -1.0), (0.5, np.inf), (-9.0, 8.0), (6.0, 9.0)]


@pytest.mark.parametrize("bounds", BOUNDS)
def test_a_truncated_normal_moves_with_its_bounds(bounds: Any) -> None:
    """Against central differences, at the same key."""
    key, step = random.key(5), 1e-5

    def draw(low: Any, high: Any) -> Any:
        return key.clone().truncated_normal(low, high, (20,))

    for number in (0, 1):

        def moved(t: Any, number: int = number) -> Any:
            return draw(*[b + t if i == number else b for i, b in enumerate(bounds)])

        expected = (moved(step) - moved(-step)) / (2 * step)
        if np.isinf(bounds[number]):
            expected = np.zeros(20)
        _, dot = fg.jvp(moved, (0.0,), (1.0,))
        assert_allclose(dot, expected, rtol=1e-6, atol=1e-8)
        weights = np.linspace(-1, 2, 20)
        bar = fg.grad(lambda t, moved=moved, w=weights: np.sum(w * moved(t)))(0.0)
        assert_allclose(bar, weights @ expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("high", [1.5, np.inf])
@pytest.mark.parametrize("at", [-0.3, 0.4])
def test_second_derivatives_of_a_truncated_normal(high: float, at: float) -> None:
    key, step = random.key(5), 1e-5

    def slope(low: Any) -> Any:
        return fg.grad(lambda a: np.sum(key.clone().truncated_normal(a, high, (9,)) ** 2))(low)

    expected = (slope(at + step) - slope(at - step)) / (2 * step)
    assert_allclose(fg.grad(slope)(at), expected, rtol=1e-7)
    _, forward = fg.jvp(slope, (at,), (1.0,))
    assert_allclose(forward, expected, rtol=1e-7)


def test_the_derivatives_of_a_truncated_normal_for_each_example() -> None:
    keys = new_keys(3)

    def slope(low: Any, key: random.Key) -> Any:
        return fg.grad(lambda a: key.truncated_normal(a, 3.5))(low)

    lows = np.array([-2.0, 0.1, 3.0])
    expected = [slope(low, key.clone()) for low, key in zip(lows, keys, strict=True)]
    assert_allclose(fg.vmap(slope)(lows, keys.clone()), expected, rtol=1e-14)
    total = fg.grad(
        lambda lows: np.sum(fg.vmap(lambda a, k: k.truncated_normal(a, 3.5))(lows, keys.clone()))
    )(lows)
    assert_allclose(total, expected, rtol=1e-14)


def test_a_truncated_normal_keeps_its_dtype_under_derivatives() -> None:
    low = np.float32(-1.0)
    out, dot = fg.jvp(
        lambda a: random.key(0).truncated_normal(a, 1.0, (3,), np.float32), (low,), (low,)
    )
    assert out.dtype == dot.dtype == np.float32


# Axes, trees, arrays of keys


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_the_axis_of_an_array_of_keys(axis: int) -> None:
    keys = new_keys((2, 3))
    rows = keys if axis in (0, -2) else [keys[:, i] for i in range(3)]
    got = fg.vmap(lambda row: row[0].normal() - row[-1].uniform(), axis)(keys.clone())
    assert_same(got, np.array([r[0].clone().normal() - r[-1].clone().uniform() for r in rows]))


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_keys_come_out_along_an_axis(axis: int) -> None:
    keys = new_keys(3)
    out = fg.vmap(lambda key: key.split(2), out_axes=axis)(keys.clone())
    expected = np.stack([random.key_data(key.split(2)) for key in keys], axis % 2)
    assert isinstance(out, random.Key)
    assert out == random.wrap_key_data(expected)
    assert out.shape == ((3, 2) if axis in (0, -2) else (2, 3))
    out[0, 1].normal()  # plain again


def test_keys_come_out_of_a_nested_vmap() -> None:
    keys = new_keys((2, 3))
    out = fg.vmap(fg.vmap(lambda key: key.fold_in(1), out_axes=-1), in_axes=1, out_axes=1)(keys)
    assert out == random.wrap_key_data(
        [[random.key_data(key.fold_in(1)) for key in row] for row in keys]
    )


def test_keys_are_leaves_of_trees() -> None:
    keys, xs = new_keys(3), np.arange(3.0)

    def step(state: dict[str, Any]) -> dict[str, Any]:
        k1, k2 = state["key"].split()
        return {"key": k1, "x": state["x"] + k2.normal()}

    out = fg.vmap(step, in_axes=({"key": 0, "x": 0},))({"key": keys.clone(), "x": xs})
    for number, key in enumerate(keys):
        expected = step({"key": key, "x": xs[number]})
        assert out["key"][number] == expected["key"]
        assert out["x"][number] == expected["x"]


def test_keys_as_keyword_arguments_and_axis_size() -> None:
    keys = new_keys(2)
    got = fg.vmap(lambda *, key: key.normal())(key=keys.clone())
    assert_same(got, loop(lambda key: key.normal(), keys))
    key = random.key(0)
    got = fg.vmap(lambda: key.normal(), axis_size=2)()
    assert_same(got, np.full(2, key.clone().normal()))


def test_a_key_that_is_the_same_for_all_comes_out_as_it_went_in() -> None:
    key = random.key(0)
    out = fg.vmap(lambda k, x: (k, k, x), (None, 0), (None, 0, 0))(key, np.zeros(2))
    assert out[0] is key
    assert out[1].shape == (2,)
    assert out[1][0] == out[1][1] == key


def test_keys_are_indexed_inside() -> None:
    keys, shared = new_keys((3, 4)), new_keys(5, seed=8)
    picks = np.array([1, 0, 3])
    rows = np.arange(3)
    for index in (1, -1, slice(1, 3), ..., [2, 0], np.array([True, False, True, False])):
        got = fg.vmap(lambda row, index=index: row[index])(keys)
        assert got == keys[(slice(None), *(index if isinstance(index, tuple) else (index,)))]
    assert fg.vmap(lambda row, i: row[i])(keys, picks) == keys[rows, picks]
    assert fg.vmap(lambda all_keys, i: all_keys[i], (None, 0))(shared, picks) == shared[picks]
    assert fg.vmap(lambda all_keys, i: all_keys[i, 0], (None, 0))(keys, rows) == keys[:, 0]
    assert (
        fg.vmap(lambda all_keys, i, x: all_keys[i], None, axis_size=2)(shared, picks, 1.0)[1]
        == shared[picks]
    )
    assert fg.vmap(lambda row: list(row)[2])(keys) == keys[:, 2]
    assert fg.vmap(lambda row: np.float64(len(row) + row.size + row.ndim))(keys)[0] == 9.0


def test_a_key_inside_is_a_value() -> None:
    keys = new_keys(3)

    def look(key: random.Key) -> Any:
        assert key.shape == ()
        assert bool(key)
        assert repr(key).startswith("Key(shape=(), by vmap(look) at ")
        assert key != 5
        assert key.split() != key.clone()
        with pytest.raises(UnhashableTracerError):
            hash(key)
        with pytest.raises(TracerConversionError):
            pickle.dumps(key)
        with pytest.raises(ArgumentError, match="a single key cannot be indexed"):
            key[0]
        return key == copy.deepcopy(copy.copy(key)), key == random.key(0)

    same, other = fg.vmap(look)(keys)
    assert same.tolist() == [True] * 3
    assert other.tolist() == [False] * 3
    assert fg.vmap(lambda a, b: a == b, (0, None))(keys, keys[1]).tolist() == [False, True, False]


# Reuse


def uses(call: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        call()
    return [str(warning.message) for warning in record]


def test_one_use_in_the_function_is_one_use() -> None:
    assert uses(lambda: fg.vmap(lambda k: k.normal(3))(new_keys(MANY))) == []
    assert uses(lambda: fg.vmap(fg.vmap(lambda k: k.normal(3)))(new_keys((2, 3)))) == []
    key = random.key(0)
    assert uses(lambda: fg.vmap(lambda x: x + key.normal())(np.zeros(3))) == []


def test_two_uses_in_the_function_warn_once_and_name_its_lines() -> None:
    def twice(key: random.Key) -> Any:
        return key.normal() + key.uniform()

    (text,) = uses(lambda: fg.vmap(twice)(new_keys(3)))
    place = location(twice.__code__, twice.__code__.co_firstlineno + 1)
    assert f"first by normal() at {place}, then by uniform() at {place}\n" in text


def test_keys_that_were_mapped_over_are_used() -> None:
    draw = fg.vmap(lambda key: key.normal())
    keys = new_keys(3)
    draw(keys)
    assert len(uses(lambda: draw(keys))) == 1
    assert len(uses(lambda: keys[1].normal())) == 1
    assert len(uses(lambda: draw(keys[:2]))) == 1
    held = new_keys(3)
    first, *_ = held
    draw(held)
    assert len(uses(first.normal)) == 1
    nested = new_keys((2, 3))
    fg.vmap(draw)(nested)
    assert len(uses(lambda: fg.vmap(draw)(nested))) == 1
    assert uses(lambda: draw(new_keys(3))) == []


def test_a_key_that_was_used_before_is_noticed_inside() -> None:
    keys = new_keys(3)
    keys[1].normal()
    assert len(uses(lambda: fg.vmap(lambda key: key.normal())(keys))) == 1
    key = random.key(0)
    key.normal()
    assert len(uses(lambda: fg.vmap(lambda k, x: x * k.normal(), (None, 0))(key, X))) == 1


def test_mapping_over_keys_without_drawing_uses_nothing_up() -> None:
    keys = new_keys(3)
    fg.vmap(lambda key: key.fold_in(3).normal())(keys)
    assert uses(lambda: fg.vmap(lambda key: key.normal())(keys)) == []


def test_keys_that_come_out_remember_their_use() -> None:
    def used(key: random.Key) -> Any:
        key.normal()
        return key

    assert uses(fg.vmap(lambda key: key.split())(new_keys(3))[0, 0].normal) == []
    assert len(uses(fg.vmap(used)(new_keys(3))[0].normal)) == 1

    def partly(key: random.Key) -> Any:
        keys = key.split()
        return keys, keys[0].normal()

    assert uses(fg.vmap(partly)(new_keys(3))[0][0, 1].normal) == []


# Errors


def test_sizes_that_differ_are_named() -> None:
    with pytest.raises(ShapeError, match=r"argument 0  Key\[3\]      0     3\n"):
        fg.vmap(lambda k, x: x, (0, 0))(new_keys(3), np.zeros(2))


def test_a_single_key_has_no_axis_of_examples() -> None:
    with pytest.raises(ShapeError, match=r"axis 0 of Key\[\], .*\n.*\n.*give None in in_axes"):
        fg.vmap(lambda k: k.normal())(random.key(0))
    with pytest.raises(ShapeError, match=r"axis 1 of Key\[2\], .*\n.*\n.*from -1 to 0"):
        fg.vmap(lambda k: k.normal(), 1)(new_keys(2))


def test_the_axes_of_keys_that_come_out_are_checked() -> None:
    with pytest.raises(ShapeError, match="axis 1 of an output with 1 axes"):
        fg.vmap(lambda k: k.fold_in(1), out_axes=1)(new_keys(2))
    with pytest.raises(ShapeError, match="out_axes of vmap is None for an output that differs"):
        fg.vmap(lambda k: k.fold_in(1), out_axes=None)(new_keys(2))


def test_a_sampler_in_the_function_still_takes_single_keys() -> None:
    with pytest.raises(ArgumentError, match=r"one key, got an array of keys of shape \(3,\)"):
        fg.vmap(lambda row: row.normal())(new_keys((2, 3)))


def test_a_key_that_escaped_is_refused() -> None:
    kept: list[random.Key] = []

    def keep(key: random.Key) -> random.Key:
        kept.append(key)
        return key.fold_in(0)

    fg.vmap(keep)(new_keys(2))
    with pytest.raises(TracerLeakError, match=r"traced by vmap\(keep\)"):
        kept[0].normal()


# The cipher


def test_the_cipher_of_many_keys_is_numpys() -> None:
    rng = np.random.default_rng(0)
    data = rng.integers(0, 2**64, (50, 2), np.uint64)
    counters = rng.integers(0, 2**64, (4, 50), np.uint64)
    counters[:, 0] = 2**64 - 1
    got = philox.encrypt(list(counters), data)
    for row, key, counter in zip(got, data, counters.T.tolist(), strict=True):
        number = sum(word << 64 * i for i, word in enumerate(counter))
        before = (number - 1) % 2**256  # NumPy adds one first
        words: Any = tuple(before >> 64 * i & (2**64 - 1) for i in range(4))
        assert row.tolist() == stream.words(key, words, 4).tolist()


def test_the_first_known_answer() -> None:
    """Of Random123's known answers for Philox4x64-10."""
    answer = [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B]
    assert philox.encrypt((0, 0, 0, 0), np.zeros((1, 2), np.uint64)).tolist() == [answer]


def test_a_counter_carries_for_many_keys_as_for_one() -> None:
    keys, counter = new_keys(MANY)._data, (2**64 - 2, 5, 0, 1)
    got = stream.words_of_each.bind(keys, counter=counter, count=13)
    assert_array_equal(got, [stream.words(key, counter, 13) for key in keys])


def test_thousands_of_keys_are_encrypted_in_parts() -> None:
    keys = new_keys(2 * philox._BLOCK + 5)
    draws = fg.vmap(lambda key: key.bits(6))(keys)
    for number in (0, philox._BLOCK // 2 - 1, philox._BLOCK // 2, philox._BLOCK, len(keys) - 1):
        assert_array_equal(draws[number], keys[number].clone().bits(6))
