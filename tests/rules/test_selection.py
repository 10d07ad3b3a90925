"""Selecting: kinks, branches not taken, dtypes, results that are plain. Samples: test_laws.py."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg
from funcgrad.errors import MissingRuleError

X = np.array([-2.0, -1.0, 0.5, 1.0, 3.0])


def both(f, *args):
    """Return the derivative of a function of one number, by both modes, which must agree."""
    forward = fg.jvp(f, args, (1.0,) * len(args))[1]
    reverse = fg.grad(f, argnums=tuple(range(len(args))))(*args)
    assert forward == sum(reverse)
    return forward


# where


def test_the_branch_not_taken_has_no_say():
    with np.errstate(all="ignore"):
        assert both(lambda x: np.where(x < 2, x * x, np.sqrt(x - 2))[()], 1.0) == 2.0
        assert both(lambda x: np.where(x > 0, np.log(x), x)[()], 0.0) == 1.0
        f = lambda x: np.sum(np.where(x != 0, x / x, 0) * x)  # noqa: E731
        assert_array_equal(fg.grad(f)(np.array([0.0, 2.0])), [0, 1])


def test_a_mask_before_an_infinite_slope():
    f = lambda x: np.sqrt(np.where(x > 0, x, 0))[()]  # noqa: E731
    assert both(f, -4.0) == 0.0
    assert both(f, 4.0) == 0.25


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.float32(1), 2.0),
        (1.0, np.ones(2, np.float32)),
        (np.ones(2, np.float32), np.ones(2)),
        (1.5, 2.5),
        (np.ones(2, np.float32), 1),
        (np.ones(2), 1j),
    ],
)
def test_where_has_the_dtype_of_numpy_and_gradients_that_of_their_argument(x, y):
    mask = np.array([True, False])
    out, pullback = (
        fg.vjp(lambda x, y: np.where(mask, x, y), x, y)
        if not isinstance(y, int)
        else fg.vjp(lambda x: np.where(mask, x, y), x)
    )
    want = np.where(mask, x, y)
    assert out.dtype == want.dtype
    assert_array_equal(out, want)
    bars = pullback(np.ones(2, out.dtype))
    for bar, primal in zip(bars, (x, y), strict=False):
        assert type(bar) is type(primal)
        assert np.asarray(bar).dtype == np.asarray(primal).dtype


def test_a_traced_condition_is_true_unless_it_is_zero():
    f = lambda c: np.sum(np.where(c, 2 * c, 7.0))  # noqa: E731
    value, gradient = fg.value_and_grad(f)(np.array([0.0, 3.0, np.nan]))
    assert np.isnan(value)
    assert_array_equal(gradient, [0, 2, 2])
    out, out_dot = fg.jvp(lambda c: np.where(c, 1.0, 2.0), (X,), (X,))
    assert_array_equal(out, np.ones(5))
    assert_array_equal(out_dot, np.zeros(5))


def test_where_keeps_the_condition_only():
    from funcgrad.rules.selection import where

    mask = np.array([True, False])
    for pullback in where.vjp((mask, np.ones(2), np.ones(2)), None)[1:]:
        assert [cell.cell_contents is mask for cell in pullback.__closure__] == [True]


def test_where_of_one_argument_finds_positions():
    def f(x):
        (index,) = np.where(x)
        assert type(index) is np.ndarray
        return np.sum(x[index] ** 2)

    assert_array_equal(fg.grad(f)(np.array([0.0, 3.0])), [0, 6])


def test_where_takes_lists_of_traced_values():
    f = lambda x: np.sum(np.where([True, False], [x[0], x[1]], x[:2] * 5))  # noqa: E731
    assert_array_equal(fg.grad(f)(X), [1, 5, 0, 0, 0])


# clip


def test_clip_at_a_bound_is_flat():
    gradient = fg.grad(lambda x: np.sum(np.clip(x, -1, 1)))(X)
    assert_array_equal(gradient, [0, 0, 1, 0, 0])
    out_dot = fg.jvp(lambda x: np.clip(x, -1, 1), (X,), (np.ones(5),))[1]
    assert_array_equal(out_dot, [0, 0, 1, 0, 0])


@pytest.mark.parametrize("x", [0.5, 2.0])
def test_clip_by_itself_is_the_identity(x):
    assert both(lambda x: np.clip(x, 0, x), x) == 1.0
    assert both(lambda x: np.clip(x, x, 9), x) == 1.0
    assert both(lambda x: np.clip(x, x, x), x) == 1.0
    assert both(lambda x: np.clip(1.0, x, x), x) == 1.0
    assert both(lambda x: np.clip(x, 3.0, 1.0), x) == 0.0  # crossed: always the upper bound
    assert both(lambda x: np.clip(0.1, 9.0, x), x) == 1.0


def test_a_bound_has_the_derivative_where_it_holds():
    low, high = np.array([0.0, 0.0, 0.0]), np.array([1.0, 1.0, 1.0])
    x = np.array([-1.0, 0.5, 2.0])
    gradients = fg.grad(lambda *a: np.sum(np.clip(*a)), argnums=(0, 1, 2))(x, low, high)
    assert_array_equal(gradients[0], [0, 1, 0])
    assert_array_equal(gradients[1], [1, 0, 0])
    assert_array_equal(gradients[2], [0, 0, 1])


def test_equal_bounds_share():
    gradients = fg.grad(np.clip, argnums=(0, 1, 2))(0.5, 2.0, 2.0)
    assert gradients == (0.0, 0.5, 0.5)


def test_clip_before_an_infinite_slope():
    assert both(lambda x: np.arccos(np.clip(x, -1, 1)), 3.0) == 0.0
    assert both(lambda x: np.arccos(np.clip(x, -1, 1)), 1.0) == 0.0


@pytest.mark.parametrize(
    ("args", "kwargs", "free"),
    [
        ((0.0, 1.0), {}, [0, 0, 1, 0, 0]),
        ((None, 1.0), {}, [1, 1, 1, 0, 0]),
        ((0.0, None), {}, [0, 0, 1, 1, 1]),
        ((None, None), {}, [1, 1, 1, 1, 1]),
        ((), {"min": 0.0}, [0, 0, 1, 1, 1]),
        ((), {"max": 1.0}, [1, 1, 1, 0, 0]),
        ((), {"min": 0.0, "max": np.float64(1)}, [0, 0, 1, 0, 0]),
        ((), {"a_min": 0.0, "a_max": 1.0}, [0, 0, 1, 0, 0]),
        ((), {}, [1, 1, 1, 1, 1]),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_spellings_of_clip(args, kwargs, free, dtype):
    x = X.astype(dtype)
    out, pullback = fg.vjp(lambda x: np.clip(x, *args, **kwargs), x)
    want = np.clip(x, *args, **kwargs)
    assert out.dtype == want.dtype
    assert_array_equal(out, want)
    (x_bar,) = pullback(np.ones(5, out.dtype))
    assert x_bar.dtype == dtype
    assert_array_equal(x_bar, free)


def test_clip_as_a_method_and_with_out():
    def f(x):
        y = np.zeros_like(x)
        x.clip(-1.5, 2.0, out=y)
        return np.sum(y * x.clip(max=2.0))

    # x**2 where free; 2 * 2 above; -1.5 x below
    assert_array_equal(fg.grad(f)(np.array([-2.0, 1.0, 3.0])), [-1.5, 2, 0])


def test_clip_raises_as_numpy_does():
    for args, kwargs, error in (
        ((0.0,), {}, TypeError),
        ((0.0, 1.0), {"min": 2.0}, ValueError),
        ((), {"a_min": 1.0}, TypeError),
    ):
        with pytest.raises(error):
            np.clip(X, *args, **kwargs)
        with pytest.raises(error):
            fg.grad(lambda x, a=args, k=kwargs: np.sum(np.clip(x, *a, **k)))(X)
    with pytest.raises(MissingRuleError, match=r"np\.minimum"):
        fg.grad(lambda x: np.sum(np.clip(x, 0, 1, where=X > 0)))(X)


def test_the_ufunc_beneath_clip():
    f = lambda x: np.sum(np._core.umath.clip(x, -1.0, 1.0))  # noqa: E731
    assert_array_equal(fg.grad(f)(X), [0, 0, 1, 0, 0])


def test_clip_of_nan_keeps_it():
    value, gradient = fg.value_and_grad(np.clip)(np.nan, 0.0, 1.0)
    assert np.isnan(value)
    assert gradient == 1.0


# select, choose and their kin


def test_select_takes_the_first_that_is_true():
    def f(x):
        return np.sum(np.select([x > 0, x > -1.5], [x**2, 3 * x], 5 * x))

    assert_array_equal(fg.grad(f)(X), [5, 3, 1, 2, 6])


def test_select_hides_what_is_not_chosen():
    with np.errstate(all="ignore"):
        f = lambda x: np.sum(np.select([x > 0, x < 0], [np.sqrt(x), -x], 0.0))  # noqa: E731
        assert_array_equal(fg.grad(f)(np.array([0.0, 4.0, -1.0])), [0, 0.25, -1])


def test_choose_by_number():
    f = lambda x: np.sum(np.choose([1, 0, 1], [x, x**2]))  # noqa: E731
    assert_array_equal(fg.grad(f)(np.array([3.0, 5.0, 7.0])), [6, 1, 14])
    with pytest.raises(ValueError, match="invalid entry in choice array"):
        fg.grad(lambda x: np.sum(np.choose([2, 0, 1], [x, x])))(np.ones(3))


def test_compress_extract_and_methods():
    def f(x):
        part = x.compress([False, True, True])
        return np.sum(part**2) + 10 * np.sum(np.extract(X > 0.7, x))

    assert_array_equal(fg.grad(f)(X), [0, -2, 1, 10, 10])
    with pytest.raises(ValueError, match="condition must be a 1-d array"):
        fg.grad(lambda x: np.sum(np.compress([[True]], x)))(X)


def test_unique_elements_have_the_derivative_of_the_first():
    x = np.array([3.0, 1.0, 3.0, 2.0])

    def f(x):
        values, index, inverse, counts = np.unique(x, True, True, True)
        assert_array_equal(index, [1, 3, 0])
        assert_array_equal(inverse, [2, 0, 2, 1])
        assert_array_equal(counts, [1, 1, 2])
        return np.sum(values * [1.0, 10.0, 100.0])

    assert fg.value_and_grad(f)(x)[0] == 321.0
    assert_array_equal(fg.grad(f)(x), [100, 1, 0, 10])


# Plain results

PLAIN = [
    (np.nonzero, ()),
    (np.flatnonzero, ()),
    (np.argwhere, ()),
    (np.argsort, ()),
    (np.argpartition, (2,)),
    (np.searchsorted, (0.7,)),
    (np.isclose, (1.0,)),
    (np.allclose, (1.0,)),
    (np.array_equal, (X,)),
    (np.array_equiv, (X,)),
    (np.isin, ([1.0, 3.0],)),
    (np.digitize, ([0.0, 1.0],)),
]


@pytest.mark.parametrize(("function", "args"), PLAIN, ids=[f.__name__ for f, _ in PLAIN])
def test_positions_and_truth_values_are_plain(function, args):
    found = []

    def f(x):
        found.append(function(x, *args))
        return np.sum(x)

    fg.grad(f)(X)
    fg.jvp(f, (X,), (X,))
    fg.grad(lambda x: fg.jvp(f, (x,), (x,))[1])(X)
    want = function(X, *args)
    for got in found:
        assert type(got) is type(want)
        assert_array_equal(got, want)


def test_keys_in_a_list():
    f = lambda x: np.sum(x[np.lexsort((x, np.abs(x)))[:2]])  # noqa: E731
    assert_array_equal(fg.grad(f)(X), [0, 1, 1, 0, 0])


def test_indices_of_the_parts_of_a_matrix():
    x = np.arange(9.0).reshape(3, 3)

    def f(x):
        return np.sum(x[np.diag_indices_from(x)]) + 2 * np.sum(x[np.triu_indices_from(x, 1)])

    assert_array_equal(fg.grad(f)(x), [[1, 2, 2], [0, 1, 2], [0, 0, 1]])
