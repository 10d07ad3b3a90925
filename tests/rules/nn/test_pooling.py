"""Window functions beside the laws: ties, NaN, infinities, integers, memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.rules.nn.pooling import fold, max_window, sum_window, unfold

PAIR = {"window": (2,), "stride": (1,), "padding": ((0, 0),), "dilation": (1,)}


def shares(x, bar, **params):
    return fg.vjp(lambda v: max_window(v, **{**PAIR, **params}), np.array(x))[1](np.array(bar))[0]


def test_equal_maxima_share_the_cotangent():
    assert_array_equal(shares([3.0, 3.0, 1.0], [4.0, 10.0]), [2.0, 12.0, 0.0])


def test_equal_maxima_share_the_tangent():
    x, x_dot = np.array([3.0, 3.0, 1.0]), np.array([4.0, 10.0, 100.0])
    _, out_dot = fg.jvp(lambda v: max_window(v, **PAIR), (x,), (x_dot,))
    assert_array_equal(out_dot, [7.0, 10.0])


def test_shares_of_many_ties_add_up_to_one():
    x = np.zeros((17, 17))  # more than 255 in one window
    params = {"window": (17, 17), "stride": (1, 1), "padding": ((0, 0),) * 2, "dilation": (1, 1)}
    x_bar = fg.grad(lambda v: np.sum(max_window(v, **params)))(x)
    assert_allclose(x_bar, np.full((17, 17), 1 / 289), rtol=1e-15)


def test_padding_takes_no_share_from_minus_infinity():
    x_bar = shares([-np.inf, 1.0], [6.0, 10.0, 100.0], padding=((1, 1),))
    assert_array_equal(x_bar, [6.0, 110.0])


def test_nan_is_the_maximum_and_takes_the_cotangent():
    params = {**PAIR, "stride": (2,)}
    x = np.array([np.nan, 5.0, 2.0, 3.0])
    assert_array_equal(max_window(x, **params), [np.nan, 3.0])
    assert_array_equal(shares(x, [7.0, 11.0], stride=(2,)), [7.0, 0.0, 0.0, 11.0])


def test_infinite_cotangent_reaches_only_the_maximum():
    assert_array_equal(shares([1.0, 2.0], [np.inf]), [0.0, np.inf])


def test_second_derivative_of_a_maximum_is_zero():
    x = np.array([1.0, 2.0, 5.0, 3.0])

    def f(v):
        return np.sum(max_window(v, **PAIR) ** 2)

    # The windows have the maxima x[1], x[2], x[2].
    hessian = np.stack([fg.jvp(fg.grad(f), (x,), (row,))[1] for row in np.eye(4)])
    assert_array_equal(hessian, np.diag([0.0, 2.0, 4.0, 0.0]))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float16, np.float32])
def test_maximum_keeps_the_dtype(dtype):
    out = max_window(np.array([1, 3, 2], dtype), **{**PAIR, "padding": ((1, 1),)})
    assert out.dtype == dtype
    assert_array_equal(out, [1, 3, 3, 2])


def test_complex_numbers_have_no_maximum():
    with pytest.raises(fg.errors.DtypeError, match="takes real numbers"):
        max_window(np.ones(3, complex), **PAIR)


def test_window_of_one_element_copies():
    x = np.arange(3.0)
    params = {"window": (1,), "stride": (1,), "padding": ((0, 0),)}
    assert not np.shares_memory(sum_window(x, **params), x)
    assert not np.shares_memory(max_window(x, dilation=(1,), **params), x)


def test_layout_in_memory_is_kept():
    params = {"window": (2, 2), "stride": (2, 2), "padding": ((0, 0), (1, 1))}
    x = np.moveaxis(np.ones((3, 6, 6, 4)), -1, 0)
    out = sum_window(x, **params)
    assert np.moveaxis(out, 0, -1).flags.c_contiguous
    most = max_window(x, dilation=(1, 1), **params)
    assert np.moveaxis(most, 0, -1).flags.c_contiguous


def test_fold_counts_how_often_unfold_sees_an_element():
    params = {"window": (2, 2), "stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1)}
    seen = fold(unfold(np.ones((1, 3, 3)), **params), size=(3, 3), **params)
    assert_array_equal(seen[0], [[1, 2, 1], [2, 4, 2], [1, 2, 1]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (1, 2, 3, 0), (3, 2, 1, 0)])
@pytest.mark.parametrize(("size", "window"), [((6, 4), (2, 2)), ((7, 5), (2, 2)), ((7, 6), (3, 2))])
def test_windows_apart_give_each_maximum_its_share(dtype, order, size, window):
    """In any order in memory, with ties, and with a rest that no window sees."""
    rng = np.random.default_rng(0)
    shape = (2, 3, *size)
    x = rng.integers(0, 3, [shape[axis] for axis in order]).astype(dtype)
    x = x.transpose(np.argsort(order))
    places = tuple(n // k for n, k in zip(size, window, strict=True))
    bar = rng.normal(size=(2, 3, *places)).astype(dtype)
    expected = np.zeros(shape, dtype)
    for at in np.ndindex(2, 3, *places):
        part = (
            *at[:2],
            *(slice(p * k, (p + 1) * k) for p, k in zip(at[2:], window, strict=True)),
        )
        hits = x[part] == x[part].max()
        expected[part] = np.where(hits, bar[at] / hits.sum(), 0)
    params = {"padding": ((0, 0),) * 2, "dilation": (1, 1)}
    got = shares(x, bar, window=window, stride=window, **params)
    assert got.dtype == dtype
    assert_allclose(got, expected, rtol=1e-6)


def test_infinite_cotangent_of_windows_apart_reaches_only_the_maximum():
    assert_array_equal(shares([1.0, 2.0, 5.0], [-np.inf], stride=(2,)), [0.0, -np.inf, 0.0])
