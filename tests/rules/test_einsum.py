"""`einsum`: gradients known in closed form, the ways to call it, and what it keeps."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.rules.einsum import _labels, einsum, einsum_args

X = np.array([[1.0, 2.0], [3.0, 4.0]])


def total(spec, *others, **options):
    """Return the function of `x` that sums an einsum of it and `others`."""
    return lambda x: np.sum(np.einsum(spec, x, *others, **options))


def test_gradient_of_the_trace_is_the_identity():
    assert_array_equal(fg.grad(total("ii->"))(X), np.eye(2))


def test_gradient_of_the_diagonal_is_on_the_diagonal():
    _, pullback = fg.vjp(lambda x: np.einsum("ii->i", x), X)
    assert_array_equal(pullback(np.array([5.0, 7.0]))[0], [[5, 0], [0, 7]])


def test_gradient_of_the_diagonal_of_a_cube():
    expected = np.zeros((2, 2, 2))
    expected[0, 0, 0] = expected[1, 1, 1] = 1
    assert_array_equal(fg.grad(total("iii->i"))(np.ones((2, 2, 2))), expected)


def test_off_the_diagonal_the_gradient_is_zero_even_of_an_infinite_one():
    _, pullback = fg.vjp(lambda x: np.einsum("ii->i", x), X)
    assert_array_equal(pullback(np.array([np.inf, 7.0]))[0], [[np.inf, 0], [0, 7]])


def test_a_label_summed_away_has_a_constant_gradient():
    _, pullback = fg.vjp(lambda x: np.einsum("ij,k->k", x, np.array([1.0, 2.0])), np.ones((2, 3)))
    assert_array_equal(pullback(np.array([1.0, 1.0]))[0], np.full((2, 3), 3.0))


def test_repeated_labels_with_a_factor_that_repeats_its_own():
    # f = (sum of x_iij over i) times b_jj, summed over j.
    x, b = np.ones((2, 2, 2)), np.array([[3.0, 9.0], [9.0, 5.0]])
    expected = np.zeros((2, 2, 2))
    expected[0, 0] = expected[1, 1] = [3, 5]
    assert_array_equal(fg.grad(total("iij,jj->", b))(x), expected)


def test_an_axis_of_size_one_sums_over_what_it_was_stretched_to():
    x, b = np.array([2.0]), np.array([1.0, 2.0, 4.0])
    assert_array_equal(fg.grad(total("i,i->i", b))(x), [7])
    assert_array_equal(fg.grad(total("i,i->i", x))(b), [2, 2, 2])
    assert_array_equal(fg.grad(total("i,i->", x))(b), [2, 2, 2])


def test_an_ellipsis_of_size_one_sums_over_what_it_was_stretched_to():
    x, b = np.ones((1, 2)), np.arange(6.0).reshape(3, 2)
    assert_array_equal(fg.grad(total("...j,...j->...", b))(x), [[6, 9]])


@pytest.mark.parametrize(
    "optimize", [False, True, "greedy", "optimal", ["einsum_path", (0, 2), (0, 1)]]
)
def test_three_factors_under_each_kind_of_optimize(optimize):
    # The derivative of sum(A X B) is (row of ones A)' (B column of ones)'.
    a, b = np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[1.0], [3.0]])
    bar = fg.grad(lambda x: np.sum(np.einsum("ij,jk,kl->il", a, x, b, optimize=optimize)))(X)
    assert_array_equal(bar, [[1, 3], [3, 9]])


def test_a_large_contraction_agrees_with_matmul():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(50, 60)), rng.normal(size=(60, 40))
    g = rng.normal(size=(50, 40))
    bars = fg.vjp(lambda x, w: np.einsum("ij,jk->ik", x, w), x, w)[1](g)
    expected = fg.vjp(np.matmul, x, w)[1](g)
    assert_allclose(bars[0], expected[0], rtol=1e-12, atol=1e-12)
    assert_allclose(bars[1], expected[1], rtol=1e-12, atol=1e-12)


def test_sublists_are_labels():
    args, params = einsum_args((X, [0, 27], X, [27, ...], [..., 0]), {"subscripts": None})
    assert params["subscripts"] == "Ab,b...->...A"
    assert [x is X for x in args] == [True, True]


def test_sublists_have_gradients():
    bar = fg.grad(lambda x: np.sum(np.einsum(x, [0, 1], np.array([1.0, 10.0]), [1])))(X)
    assert_array_equal(bar, [[1, 10], [1, 10]])


def test_implicit_output_is_in_alphabetical_order():
    assert _labels("ba,ac", (2, 2)) == (["ba", "ac"], "bc")
    assert _labels("b...a", (3,)) == (["bca"], "cab")


def test_only_the_other_operands_are_kept():
    x, w = X.copy(), X.copy()
    pullback_x, _ = einsum.vjp((x, w), None, subscripts="ij,jk->ik", optimize=False)
    kept = [cell.cell_contents for cell in pullback_x.__closure__]
    lists = [value for value in kept if isinstance(value, list)]
    assert [part is w for part in lists[0]] == [True]
    assert not any(value is x for value in kept)


def test_complex_einsum_does_not_conjugate():
    z, w = np.array([1 + 2j]), np.array([3 + 4j])
    _, pullback = fg.vjp(lambda z, w: np.einsum("i,i->", z, w), z, w)
    z_bar, w_bar = pullback(np.complex128(1))
    assert_array_equal(z_bar, w)
    assert_array_equal(w_bar, z)


def test_python_numbers_are_operands():
    assert fg.grad(lambda a: np.einsum(",i->", a, np.array([1.0, 2.0])))(5.0) == 3.0


def test_second_derivative_of_a_square():
    # f = x_i a_ij x_j
    a = np.array([[1.0, 2.0], [5.0, 3.0]])
    gradient = fg.grad(lambda x: np.einsum("i,ij,j->", x, a, x))
    rows = [fg.jvp(gradient, (np.array([0.3, -0.7]),), (e,))[1] for e in np.eye(2)]
    assert_allclose(rows, a + a.T, rtol=1e-15)


def test_einsum_path_is_a_plan_and_no_derivative():
    def f(x):
        path, _ = np.einsum_path("ij,jk,kl->il", x, x, x)
        return np.sum(np.einsum("ij,jk,kl->il", x, x, x, optimize=path))

    # d sum(x x x) = sum over the three places.
    ones = np.ones((2, 2))
    expected = ones @ (X @ X).T + X.T @ ones @ X.T + (X @ X).T @ ones
    assert_array_equal(fg.grad(f)(X), expected)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.einsum("ij,jk", x, np.ones((3, 2))),
        lambda x: np.einsum("ijk", x),
        lambda x: np.einsum("i", x),
        lambda x: np.einsum("ij,jk->il", x, x),
        lambda x: np.einsum("ij,jk", x),
        lambda x: np.einsum("i-j", x),
        lambda x: np.einsum(x, [0, "a"]),
        lambda x: np.einsum(x, [0, 52]),
        lambda x: np.einsum("i...->i", x),
    ],
)
def test_errors_are_those_of_numpy(call):
    with pytest.raises((ValueError, TypeError)) as expected:
        call(X)
    with pytest.raises(expected.type) as raised:
        fg.grad(call)(X)
    assert str(raised.value) == str(expected.value)


def test_empty_operands_pull_back_to_zeros():
    a, b = np.ones((2, 0)), np.ones((0, 2))
    _, pullback = fg.vjp(lambda *ab: np.einsum("ij,ji->i", *ab), a, b)
    a_bar, b_bar = pullback(np.ones(2))
    assert (a_bar.shape, b_bar.shape) == ((2, 0), (0, 2))
    _, pullback = fg.vjp(lambda a: np.einsum("ij->i", a), a)
    assert pullback(np.ones(2))[0].shape == (2, 0)
