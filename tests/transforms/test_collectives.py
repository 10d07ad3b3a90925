"""Collectives: what they compute, and their derivatives inside and outside of the vmap.

The reference is always the same function of the whole batch, in NumPy, and differences of that.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg

X = np.random.default_rng(0).normal(size=(3, 3, 2)) + 0.1
WEIGHTS = np.random.default_rng(1).normal(size=(3, 3, 2))
DIRECTION = np.random.default_rng(2).normal(size=(3, 3, 2))
COLUMN = np.array([1.0, -2.0, 0.5]).reshape(3, 1, 1)

# A function of one example, of shape (3, 2); and the same of the batch of all three.
CASES = {
    "psum": (
        lambda x: np.sin(fg.psum(x**2, "i")) * x,
        lambda xs: np.sin(np.sum(xs**2, 0)) * xs,
    ),
    "pmean": (
        lambda x: np.exp(fg.pmean(x, "i")) * x**2,
        lambda xs: np.exp(np.mean(xs, 0)) * xs**2,
    ),
    "pmax": (
        lambda x: fg.pmax(x**2, "i") * x,
        lambda xs: np.max(xs**2, 0) * xs,
    ),
    "pmin": (
        lambda x: fg.pmin(np.sin(x), "i") * x,
        lambda xs: np.min(np.sin(xs), 0) * xs,
    ),
    "all_gather": (
        lambda x: np.sum(np.tanh(fg.all_gather(x, "i")) * COLUMN, 0) * x,
        lambda xs: np.sum(np.tanh(xs) * COLUMN, 0) * xs,
    ),
    "all_gather_axis": (
        lambda x: np.cumsum(fg.all_gather(x, "i", axis=-1) ** 2, -1)[..., 1] * x,
        lambda xs: (xs[0] ** 2 + xs[1] ** 2) * xs,
    ),
    "all_gather_tiled": (
        lambda x: fg.all_gather(x, "i", axis=1, tiled=True)[:, 2:4] ** 2 * x,
        lambda xs: xs[1] ** 2 * xs,
    ),
    "gather_and_index": (
        lambda x: fg.all_gather(x**2, "i")[(fg.axis_index("i") + 1) % 3] * x,
        lambda xs: np.roll(xs, -1, 0) ** 2 * xs,
    ),
    "psum_scatter": (
        lambda x: fg.psum_scatter(x**2, "i") * x,
        lambda xs: np.sum(xs**2, 0)[:, None, :] * xs,
    ),
    "psum_scatter_axis": (
        lambda x: fg.psum_scatter(x.T**2, "i", scatter_dimension=-1) * x,
        lambda xs: np.sum(xs**2, 0)[:, None, :] * xs,
    ),
    "ppermute": (
        lambda x: fg.ppermute(x**2, "i", [(0, 2), (2, 1)]) * x,
        lambda xs: np.stack([0 * xs[0], xs[2] ** 2, xs[0] ** 2]) * xs,
    ),
    "pshuffle": (
        lambda x: fg.pshuffle(x**2, "i", [2, 0, 1]) * x,
        lambda xs: xs[[2, 0, 1]] ** 2 * xs,
    ),
    "all_to_all": (
        lambda x: fg.all_to_all(x**2, "i", 0, 0) * x,
        lambda xs: np.swapaxes(xs, 0, 1) ** 2 * xs,
    ),
    "all_to_all_axis": (
        lambda x: fg.all_to_all(x**2, "i", 0, 1).T * x,
        lambda xs: np.swapaxes(xs, 0, 1) ** 2 * xs,
    ),
    "all_to_all_tiled": (
        lambda x: fg.all_to_all(x**2, "i", 0, 1, tiled=True).reshape(3, 2) * x,
        lambda xs: np.swapaxes(xs, 0, 1) ** 2 * xs,
    ),
    "axis_index": (
        lambda x: (fg.axis_index("i") + 1) * x**2 / fg.axis_size("i"),
        lambda xs: np.arange(1, 4).reshape(3, 1, 1) * xs**2 / 3,
    ),
}


@pytest.fixture(params=CASES)
def case(request):
    of_one, of_all = CASES[request.param]
    return of_one, fg.vmap(of_one, axis_name="i"), of_all


def numerical_gradient(fun, x, step=1e-6):
    """Differences of a scalar function, element by element."""
    made = np.empty_like(x)
    for index in np.ndindex(x.shape):
        moved = x.copy()
        moved[index] += step
        up = fun(moved)
        moved[index] -= 2 * step
        made[index] = (up - fun(moved)) / (2 * step)
    return made


def numerical_jvp(fun, x, x_dot, step=1e-6):
    return (fun(x + step * x_dot) - fun(x - step * x_dot)) / (2 * step)


# Values


def test_value_is_that_of_the_whole_batch(case):
    _, mapped, of_all = case
    assert_allclose(mapped(X), of_all(X), rtol=1e-14)


def test_along_another_axis_of_the_array(case):
    of_one, _, of_all = case
    moved = fg.vmap(of_one, in_axes=2, out_axes=1, axis_name="i")(np.moveaxis(X, 0, 2))
    assert_allclose(np.moveaxis(moved, 1, 0), of_all(X), rtol=1e-14)


def test_float32_stays(case):
    _, mapped, of_all = case
    out = mapped(X.astype(np.float32))
    assert_allclose(out, of_all(X.astype(np.float32)), rtol=1e-5, atol=1e-6)


def test_complex_operands():
    z = X + 1j * WEIGHTS
    for name in ("psum", "psum_scatter", "all_gather", "ppermute", "all_to_all", "pmean"):
        of_one, of_all = CASES[name]
        assert_allclose(fg.vmap(of_one, axis_name="i")(z), of_all(z), rtol=1e-13)


def test_inside_of_another_vmap(case):
    _, mapped, of_all = case
    batches = np.stack([X, WEIGHTS], axis=1)
    out = fg.vmap(mapped, in_axes=1, out_axes=1)(batches)
    assert_allclose(out, np.stack([of_all(X), of_all(WEIGHTS)], axis=1), rtol=1e-13)


def test_around_another_vmap(case):
    """The collective is called in a vmap that is not the one that it names."""
    of_one, _, of_all = case
    batches = np.stack([X, WEIGHTS], axis=-1)
    out = fg.vmap(fg.vmap(of_one, in_axes=-1, out_axes=-1), axis_name="i")(batches)
    assert_allclose(out, np.stack([of_all(X), of_all(WEIGHTS)], axis=-1), rtol=1e-13)


# Derivatives outside


def test_gradient_of_the_batch(case):
    _, mapped, of_all = case
    got = fg.grad(lambda xs: np.sum(WEIGHTS * mapped(xs)))(X)
    want = numerical_gradient(lambda xs: np.sum(WEIGHTS * of_all(xs)), X)
    assert_allclose(got, want, rtol=1e-6, atol=1e-8)


def test_jvp_of_the_batch(case):
    _, mapped, of_all = case
    out, out_dot = fg.jvp(mapped, (X,), (DIRECTION,))
    assert_allclose(out, of_all(X), rtol=1e-14)
    assert_allclose(out_dot, numerical_jvp(of_all, X, DIRECTION), rtol=1e-6, atol=1e-8)


def test_second_derivative_of_the_batch(case):
    _, mapped, of_all = case
    got = fg.hvp(lambda xs: np.sum(WEIGHTS * np.sin(mapped(xs))), (X,), (DIRECTION,))

    def numerical(xs):
        return numerical_gradient(lambda xs: np.sum(WEIGHTS * np.sin(of_all(xs))), xs, 1e-4)

    want = numerical_jvp(numerical, X, DIRECTION, 1e-4)
    assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_gradient_through_two_vmaps(case):
    of_one, _, of_all = case
    both = np.stack([X, WEIGHTS], axis=-1)
    mapped = fg.vmap(fg.vmap(of_one, in_axes=-1, out_axes=-1), axis_name="i")
    got = fg.grad(lambda xs: np.sum(np.sin(mapped(xs))))(both)
    for k, xs in enumerate((X, WEIGHTS)):
        want = numerical_gradient(lambda xs: np.sum(np.sin(of_all(xs))), xs)
        assert_allclose(got[..., k], want, rtol=1e-6, atol=1e-8)


# Derivatives inside: what counts is the sum of what all examples return


def test_gradient_for_each_example(case):
    of_one, _, of_all = case
    got = fg.vmap(fg.grad(lambda x: np.sum(np.sin(of_one(x)))), axis_name="i")(X)
    want = numerical_gradient(lambda xs: np.sum(np.sin(of_all(xs))), X)
    assert_allclose(got, want, rtol=1e-6, atol=1e-8)


def test_jvp_for_each_example(case):
    of_one, _, of_all = case

    def push(x, x_dot):
        return fg.jvp(of_one, (x,), (x_dot,))

    out, out_dot = fg.vmap(push, axis_name="i")(X, DIRECTION)
    assert_allclose(out, of_all(X), rtol=1e-14)
    assert_allclose(out_dot, numerical_jvp(of_all, X, DIRECTION), rtol=1e-6, atol=1e-8)


def test_linearize_for_each_example(case):
    of_one, _, of_all = case

    def push(x, x_dot):
        _, pushforward = fg.linearize(of_one, x)
        return pushforward(x_dot)

    out_dot = fg.vmap(push, axis_name="i")(X, DIRECTION)
    assert_allclose(out_dot, numerical_jvp(of_all, X, DIRECTION), rtol=1e-6, atol=1e-8)


def test_jacobian_for_each_example(case):
    """Rows are gradients of the sum over the examples, columns tangents of all of them."""
    of_one, _, of_all = case
    rows = fg.vmap(fg.jacrev(of_one), axis_name="i")(X)
    columns = fg.vmap(fg.jacfwd(of_one), axis_name="i")(X)
    for index in np.ndindex(3, 2):
        want = numerical_gradient(lambda xs, at=index: np.sum(of_all(xs)[(slice(None), *at)]), X)
        assert_allclose(rows[(slice(None), *index)], want, rtol=1e-6, atol=1e-8)
        unit = np.zeros_like(X)
        unit[(slice(None), *index)] = 1
        want = numerical_jvp(of_all, X, unit)
        assert_allclose(columns[(..., *index)], want, rtol=1e-6, atol=1e-8)


def test_second_gradient_for_each_example(case):
    of_one, _, of_all = case

    def first(x):
        return fg.grad(lambda x: np.sum(np.sin(of_one(x))))(x)

    got = fg.vmap(fg.grad(lambda x, v: np.sum(first(x) * v)), axis_name="i")(X, DIRECTION)

    def numerical(xs):
        gradient = numerical_gradient(lambda xs: np.sum(np.sin(of_all(xs))), xs, 1e-4)
        return np.sum(gradient * DIRECTION)

    want = numerical_gradient(numerical, X, 1e-4)
    assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_forward_over_reverse_for_each_example(case):
    of_one, _, of_all = case

    def product(x, v):
        return fg.jvp(fg.grad(lambda x: np.sum(np.sin(of_one(x)))), (x,), (v,))[1]

    got = fg.vmap(product, axis_name="i")(X, DIRECTION)

    def numerical(xs):
        return numerical_gradient(lambda xs: np.sum(np.sin(of_all(xs))), xs, 1e-4)

    want = numerical_jvp(numerical, X, DIRECTION, 1e-4)
    assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_gradient_outside_of_gradients_inside(case):
    of_one, _, of_all = case
    inner = fg.vmap(fg.grad(lambda x: np.sum(np.sin(of_one(x)))), axis_name="i")
    got = fg.grad(lambda xs: np.sum(WEIGHTS * inner(xs)))(X)

    def numerical(xs):
        gradient = numerical_gradient(lambda xs: np.sum(np.sin(of_all(xs))), xs, 1e-4)
        return np.sum(gradient * WEIGHTS)

    assert_allclose(got, numerical_gradient(numerical, X, 1e-4), rtol=1e-4, atol=1e-5)


def test_third_derivative():
    def cubic(x):
        return fg.psum(x, "i") ** 3

    third = fg.grad(fg.grad(fg.grad(lambda t: fg.vmap(cubic, axis_name="i")(t * V)[0])))
    assert_allclose(third(0.5), 6 * np.sum(V) ** 3, rtol=1e-13)


V = np.array([1.0, 2.0, 3.0])


# What JAX 0.10.2 returned for the same, with jax.vmap and jax.lax


@pytest.mark.parametrize(
    ("fun", "want"),
    [
        (lambda x: fg.psum(x**2, "i"), [6, 12, 18]),
        (lambda x: fg.psum(x, "i") * x, [12, 12, 12]),
        (lambda x: fg.pmean(x**2, "i"), [2, 4, 6]),
        (lambda x: np.sum(fg.all_gather(x**2, "i") * np.arange(3)), [0, 12, 36]),
    ],
)
def test_gradients_inside_are_those_of_jax(fun, want):
    assert_array_equal(fg.vmap(fg.grad(fun), axis_name="i")(V), want)


def test_gradients_inside_by_what_is_shared_are_those_of_jax():
    def by_shared(fun):
        return fg.vmap(lambda x: fg.grad(lambda w: fun(w, x))(3.0), axis_name="i")(V)

    assert_array_equal(by_shared(lambda w, x: fg.psum(w * 2, "i")), [6, 6, 6])
    assert_array_equal(by_shared(lambda w, x: fg.psum(w * x, "i")), [3, 6, 9])
    assert_array_equal(by_shared(lambda w, x: fg.psum(w, "i") * x), [6, 6, 6])


def test_complex_gradient_inside_is_that_of_jax():
    z = V + 1j
    got = fg.vmap(fg.grad(lambda z: fg.psum(np.real(z * z), "i")), axis_name="i")(z)
    assert_array_equal(got, [6 + 6j, 12 + 6j, 18 + 6j])


@pytest.mark.parametrize(
    ("fun", "xs", "want"),
    [
        (lambda x: fg.psum_scatter(x, "i"), np.arange(9.0).reshape(3, 3), [9, 12, 15]),
        (lambda x: fg.pshuffle(x, "i", [2, 0, 1]), V, [3, 1, 2]),
        (
            lambda x: (
                fg.all_to_all(x, "i", 0, 1, tiled=True)[:, :, 0]
                if x.ndim == 3
                else fg.all_to_all(x, "i", 0, 1, tiled=True)
            ),
            np.arange(18.0).reshape(3, 6, 1),
            [
                [[0, 6, 12], [1, 7, 13]],
                [[2, 8, 14], [3, 9, 15]],
                [[4, 10, 16], [5, 11, 17]],
            ],
        ),
    ],
)
def test_values_are_those_of_jax(fun, xs, want):
    assert_array_equal(fg.vmap(fun, axis_name="i")(xs), want)


# Ties and NaN


def test_examples_that_tie_share_the_maximum():
    x = np.array([2.0, 7.0, 7.0])
    largest = fg.vmap(lambda x: fg.pmax(x, "i"), axis_name="i", out_axes=None)
    assert_array_equal(fg.grad(largest)(x), [0, 0.5, 0.5])
    # All three return it, and so it counts three times.
    inside = fg.vmap(fg.grad(lambda x: fg.pmax(x, "i")), axis_name="i")(x)
    assert_array_equal(inside, [0, 1.5, 1.5])


def test_examples_that_tie_share_the_minimum_in_forward_mode():
    x, x_dot = np.array([2.0, 2.0, 7.0]), np.array([1.0, 4.0, 100.0])

    def push(x, x_dot):
        return fg.jvp(lambda x: fg.pmin(x, "i"), (x,), (x_dot,))[1]

    assert_array_equal(fg.vmap(push, axis_name="i")(x, x_dot), [2.5, 2.5, 2.5])


def test_ties_over_two_axes_share_equally():
    """One maximum in the first row and two in the second are three."""
    x = np.array([[7.0, 1.0], [7.0, 7.0]])

    def inner(x):
        return fg.pmax(x, ("i", "j"))

    def for_each(fun):
        return fg.vmap(fg.vmap(fun, axis_name="j"), axis_name="i")

    assert_array_equal(for_each(inner)(x), np.full((2, 2), 7.0))
    third = np.array([[1, 0], [1, 1]]) / 3
    assert_allclose(fg.grad(lambda x: for_each(inner)(x)[0, 0])(x), third)
    assert_allclose(for_each(fg.grad(inner))(x), 4 * third)
    halfway = fg.vmap(fg.grad(lambda x: np.sum(fg.vmap(inner, axis_name="j")(x))), axis_name="i")
    assert_allclose(halfway(x), 4 * third)


def test_maximum_with_nan_is_nan_and_its_derivative_goes_there():
    x = np.array([2.0, np.nan, 7.0])
    assert np.isnan(fg.vmap(lambda x: fg.pmax(x, "i"), axis_name="i")(x)).all()
    inside = fg.vmap(fg.grad(lambda x: fg.pmax(x, "i")), axis_name="i")(x)
    outside = 3 * fg.grad(np.max)(x)
    assert_array_equal(inside, outside)


def test_gradient_where_nothing_is_sent_is_zero():
    x = np.array([1.0, 2.0, np.inf])
    got = fg.vmap(fg.grad(lambda x: fg.ppermute(x, "i", [(0, 1)])), axis_name="i")(x)
    assert_array_equal(got, [1, 0, 0])


# Operands of other kinds


def collect(fun, *args, **options):
    """Return what is the same for all examples, once."""
    return fg.vmap(fun, axis_name="i", out_axes=None, **options)(*args)


def test_constant_is_multiplied_by_the_number_of_examples():
    made = collect(lambda x: (fg.psum(2, "i"), fg.psum(0.5, "i"), fg.psum(True, "i")), V)
    assert made == (6, 1.5, 3)
    assert [type(part) for part in made] == [int, float, int]


def test_value_that_all_share():
    def shared(x, c):
        return {
            "psum": fg.psum(c, "i"),
            "pmean": fg.pmean(c, "i"),
            "pmax": fg.pmax(c, "i"),
            "pmin": fg.pmin(c, "i"),
            "all_gather": fg.all_gather(c, "i"),
        }

    c = np.array([0.1, 0.2])
    made = collect(shared, V, c, in_axes=(0, None))
    assert_array_equal(made["psum"], 3 * c)
    for name in ("pmean", "pmax", "pmin"):
        assert_allclose(made[name], c, rtol=1e-15)
    assert_array_equal(made["all_gather"], [c, c, c])


def test_value_that_all_share_is_sent():
    sent = fg.vmap(lambda x: fg.ppermute(3.0, "i", [(2, 0)]), axis_name="i")(V)
    assert_array_equal(sent, [3, 0, 0])
    dealt = fg.vmap(lambda x: fg.psum_scatter(V, "i"), axis_name="i")(V)
    assert_array_equal(dealt, 3 * V)


def test_gradient_by_a_value_that_all_share():
    def loss(w):
        return np.sum(fg.vmap(lambda x: x * fg.psum(w**2, "i"), axis_name="i")(V))

    assert_allclose(fg.grad(loss)(2.0), 2 * 2.0 * 3 * np.sum(V), rtol=1e-14)


def test_gradient_inside_by_the_maximum_of_what_all_share():
    """Each example has a third of the maximum of all three, which counts three times."""
    made = fg.vmap(lambda x: fg.grad(lambda w: fg.pmax(w, "i"))(3.0), axis_name="i")(V)
    assert_array_equal(made, [1, 1, 1])


@pytest.mark.parametrize("differentiated", [False, True])
def test_value_that_all_share_inside_of_a_derivative(differentiated):
    def values(w):
        return (
            fg.psum(w, "i"),
            fg.pmax(w, "i"),
            fg.all_gather(w, "i"),
            fg.ppermute(w, "i", [(0, 1)]),
            fg.psum_scatter(fg.all_gather(w, "i"), "i"),
        )

    def for_each(x):
        return fg.jvp(values, (2.0,), (1.0,)) if differentiated else (values(2.0), ())

    made, dots = fg.vmap(for_each, axis_name="i")(V)
    want = [[6, 6, 6], [2, 2, 2], [[2, 2, 2]] * 3, [0, 2, 0], [6, 6, 6]]
    for got, value in zip(made, want, strict=True):
        assert_array_equal(got, value)
    for got, value in zip(dots, want if differentiated else (), strict=True):
        assert_array_equal(got, np.asarray(value) / 2)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, bool])
def test_small_integers_are_summed_as_numpy_does(kind):
    x = np.array([100, 100, 1]).astype(kind)
    made = collect(lambda x: fg.psum(x, "i"), x)
    assert made == np.sum(x)
    assert made.dtype == np.sum(x).dtype
    shared = collect(lambda y: fg.psum(x, "i"), V)
    assert_array_equal(shared, np.sum([x, x, x], 0))
    assert shared.dtype == made.dtype


def test_mean_of_integers_is_exact():
    assert collect(lambda x: fg.pmean(x, "i"), np.ones(10, int)) == 1.0


def test_extremes_of_integers_and_truth_values():
    n, flags = np.array([3, -1, 2]), np.array([True, False, True])
    made = collect(lambda n, b: (fg.pmax(n, "i"), fg.pmin(n, "i"), fg.pmax(b, "i")), n, flags)
    assert made == (3, -1, True)
    assert made[0].dtype == n.dtype
    assert made[2].dtype == bool


def test_truth_values_are_sent_as_such():
    sent = fg.vmap(lambda x: fg.ppermute(x, "i", [(0, 1)]), axis_name="i")(V > 0)
    assert_array_equal(sent, [False, True, False])
    assert sent.dtype == bool


def test_pytrees():
    def sums(p):
        return fg.psum(p, "i")

    made = collect(sums, {"a": V, "b": (X, np.array([1, 2, 3]))})
    assert made["a"] == 6
    assert_allclose(made["b"][0], np.sum(X, 0), rtol=1e-15)
    assert made["b"][1] == 6


def test_pytree_is_gathered_and_sent():
    p = {"a": V, "b": [X]}
    gathered = collect(lambda p: fg.all_gather(p, "i", axis=0), p)
    assert_array_equal(gathered["b"][0], X)
    sent = fg.vmap(lambda p: fg.ppermute(p, "i", [(0, 2)]), axis_name="i")(p)
    assert_array_equal(sent["a"], [0, 0, 1])
    assert_array_equal(sent["b"][0][2], X[0])


def test_no_examples():
    made = fg.vmap(lambda x: (fg.psum(x, "i"), fg.axis_index("i")), axis_name="i")(np.ones((0, 2)))
    assert made[0].shape == (0, 2)
    assert made[1].shape == (0,)
    assert collect(lambda x: fg.psum(x, "i"), np.ones((0, 2))).tolist() == [0, 0]


def test_sum_is_the_same_for_all_and_can_be_branched_upon():
    def scaled(x):
        return x / fg.psum(x, "i") if fg.psum(x, "i") > 5 else x

    assert_allclose(fg.vmap(scaled, axis_name="i")(V), V / 6)
    assert_allclose(fg.vmap(scaled, axis_name="i")(V / 2), V / 2)


def test_writing_to_what_was_gathered_leaves_the_argument_alone():
    x = V.copy()

    def overwrite(x):
        all_of_them = fg.all_gather(x, "i")
        all_of_them[0] = -1.0
        return np.sum(all_of_them)

    assert_array_equal(fg.vmap(overwrite, axis_name="i")(x), [4, 4, 4])
    assert_array_equal(x, V)


def test_what_was_gathered_takes_traced_values():
    def replaced(x):
        all_of_them = fg.all_gather(x, "i")
        all_of_them[fg.axis_index("i")] = 10 * x
        return all_of_them

    assert_array_equal(fg.vmap(replaced, axis_name="i")(V), [[10, 2, 3], [1, 20, 3], [1, 2, 30]])


# Several axes


def nested(fun, **options):
    return fg.vmap(fg.vmap(fun, axis_name="j", **options), axis_name="i", **options)


TABLE = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("names", [("i", "j"), ("j", "i")])
def test_reductions_over_two_axes(names):
    def reduced(x):
        return tuple(f(x, names) for f in (fg.psum, fg.pmean, fg.pmax, fg.pmin))

    assert nested(reduced, out_axes=None)(TABLE) == (15, 2.5, 5, 0)


def test_one_of_two_axes():
    assert_array_equal(nested(lambda x: fg.psum(x, "i"))(TABLE), [[3, 5, 7], [3, 5, 7]])
    assert_array_equal(nested(lambda x: fg.psum(x, "j"))(TABLE), [[3, 3, 3], [12, 12, 12]])


def test_gathering_over_two_axes_varies_the_last_fastest():
    assert_array_equal(
        nested(lambda x: fg.all_gather(x, ("i", "j")), out_axes=None)(TABLE), [0, 1, 2, 3, 4, 5]
    )
    assert_array_equal(
        nested(lambda x: fg.all_gather(x, ("j", "i")), out_axes=None)(TABLE), [0, 3, 1, 4, 2, 5]
    )


def test_number_over_two_axes():
    assert_array_equal(nested(lambda x: fg.axis_index(("i", "j")))(TABLE), [[0, 1, 2], [3, 4, 5]])
    assert_array_equal(nested(lambda x: fg.axis_index(("j", "i")))(TABLE), [[0, 2, 4], [1, 3, 5]])
    assert nested(lambda x: fg.axis_size(("i", "j")), out_axes=None)(TABLE) == 6


@pytest.mark.parametrize("names", [("i", "j"), ("j", "i")])
def test_dealing_out_over_two_axes(names):
    x = np.random.default_rng(5).normal(size=(2, 3, 6))
    made = nested(lambda x: fg.psum_scatter(x, names))(x)
    total = np.sum(x, (0, 1))
    assert_allclose(made, total.reshape(2, 3) if names[0] == "i" else total.reshape(3, 2).T)
    tiled = nested(lambda x: fg.psum_scatter(x, names, tiled=True))(x)
    assert_allclose(tiled[..., 0], made)


@pytest.mark.parametrize("names", [("i", "j"), ("j", "i")])
@pytest.mark.parametrize("collective", [fg.psum, fg.pmax, fg.pmin, fg.all_gather])
def test_gradient_inside_over_two_axes(collective, names):
    table = np.random.default_rng(6).normal(size=(2, 3))
    weights = np.arange(1.0, 7.0) if collective is fg.all_gather else 1.0

    def for_each(fun):
        return nested(fun)(table)

    def of_one(x):
        return np.sum(np.sin(collective(x**2, names)) * weights) * x

    got = for_each(fg.grad(of_one))
    want = numerical_gradient(lambda table: np.sum(nested(of_one)(table)), table)
    assert_allclose(got, want, rtol=1e-6, atol=1e-8)


def test_no_axis_at_all():
    assert_array_equal(fg.vmap(lambda x: fg.psum(x, ()), axis_name="i")(V), V)
    assert_array_equal(fg.vmap(lambda x: fg.pmax(x, ()), axis_name="i")(V), V)
    assert collect(lambda x: fg.axis_size(()), V) == 1


def test_inner_name_hides_the_outer_one():
    def inner(y):
        return fg.vmap(lambda x: fg.psum(x * y, "i"), axis_name="i")(V)

    assert_array_equal(
        fg.vmap(inner, axis_name="i")(np.array([1.0, 10.0])), [[6, 6, 6], [60, 60, 60]]
    )


def test_outer_name_counts_again_after_the_inner_vmap():
    def outer(y):
        inside = fg.vmap(lambda x: fg.axis_size("i"), axis_name="i", out_axes=None)(V)
        return inside, fg.axis_size("i")

    assert fg.vmap(outer, axis_name="i", out_axes=None)(np.ones(2)) == (3, 2)


def test_any_hashable_is_a_name():
    assert collect(lambda x: fg.axis_size("i"), V) == 3
    name = object()
    made = fg.vmap(lambda x: fg.psum(x, name), axis_name=name, out_axes=None)(V)
    assert made == 6


def test_number_of_examples_without_arguments():
    made = fg.vmap(lambda: fg.axis_index("i") ** 2, axis_name="i", axis_size=4)()
    assert_array_equal(made, [0, 1, 4, 9])
