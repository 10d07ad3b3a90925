"""Convolutions and pooling for users: PyTorch's values, ways to write an argument, errors.

Values and gradients that are written out come from PyTorch 2.13, for the cotangent `ramp`.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.testing import check_grads

F = fg.nn.functional


def ramp(*shape, modulus=7):
    """Small integers, up and down."""
    flat = np.arange(np.prod(shape)) % modulus - modulus // 2
    return flat.astype(float).reshape(shape)


def assert_values(fun, args, shape, out, *bars):
    got, pullback = fg.vjp(fun, *args)
    assert got.shape == shape
    assert_allclose(np.ravel(got), out, 1e-13, 1e-13)
    for bar, arg, expected in zip(pullback(ramp(*shape, modulus=3)), args, bars, strict=True):
        assert bar.shape == arg.shape
        assert_allclose(np.ravel(bar), expected, 1e-13, 1e-13)


# Convolutions


def test_conv2d_with_all_its_arguments():
    assert_values(
        lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1, dilation=(1, 2), groups=2),
        (ramp(1, 2, 3, 4), ramp(2, 1, 2, 2, modulus=5), np.array([1.0, -1.0])),
        (1, 2, 2, 2),
        [-1, 1, -2, 1, -1, -4, -1, -2],
        [0, -1, 0, 0, 0, 1, 0, 1, 0, 1, 0, -1, 0, -1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0],
        [-2, 5, 1, 0, 0, 0, 3, 1],
        [-1, 0],
    )


def test_conv1d():
    assert_values(
        lambda x, w: F.conv1d(x, w, stride=2, padding=1),
        (ramp(1, 2, 5), ramp(2, 2, 3, modulus=5)),
        (1, 2, 3),
        [1, 6, -5, -9, 16, -2],
        [1, -1, 0, -3, -1, 0, 3, 0, 3, 0],
        [0, 4, 2, -2, -3, -3, 0, 4, 2, -2, -3, -3],
    )


def test_conv3d():
    assert_values(
        F.conv3d,
        (ramp(1, 1, 2, 2, 3), ramp(1, 1, 2, 1, 2, modulus=5)),
        (1, 1, 1, 2, 2),
        [5, 3, -1, -3],
        [2, 1, 0, -2, 1, 1, 0, -1, 0, 0, 1, -1],
        [2, 1, -4, 2],
    )


def test_conv_transpose2d():
    assert_values(
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1),
        (ramp(1, 2, 2, 2), ramp(2, 1, 3, 3, modulus=5), np.array([10.0])),
        (1, 1, 4, 4),
        [5, 16, 8, 18, 4, -4, 14, 11, 11, 18, 7, 4, 7, 15, 13, 10],
        [-1, 3, 4, -5, -1, -2, -1, 5],
        [0, 0, -1, 0, 0, 3, -2, 3, -3, -3, 3, 3, 3, 4, -8, 2, -8, 4],
        [-1],
    )


def test_conv_transpose1d_of_groups():
    assert_values(
        lambda x, w: F.conv_transpose1d(x, w, stride=3, dilation=2, groups=2, output_padding=2),
        (ramp(1, 2, 2), ramp(2, 1, 2, modulus=5)),
        (1, 2, 8),
        [6, 0, 3, 4, 0, 2, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0],
        [5, -5, -1, 0],
    )


def test_output_padding_brings_back_what_padding_left_away():
    assert_values(
        lambda x, w: F.conv_transpose1d(x, w, padding=1, dilation=2, output_padding=1),
        (ramp(1, 1, 3), ramp(1, 1, 2, modulus=5)),
        (1, 1, 4),
        [4, 5, 2, 1],
        [0, 1, 1],
        [2, -1],
    )


def test_conv_transpose3d_is_the_transpose_of_conv3d():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 3, 4, 5, 3)), rng.normal(size=(2, 3, 2, 3, 1))
    params = {"stride": (1, 2, 1), "padding": (1, 0, 0)}
    out = F.conv3d(x, w, **params)
    y = rng.normal(size=out.shape)
    back = F.conv_transpose3d(y, w, **params)
    assert back.shape == x.shape
    assert_allclose(np.vdot(y, out), np.vdot(back, x), rtol=1e-12)


@pytest.mark.parametrize("padding", ["SAME", "same"])
@pytest.mark.parametrize(("stride", "length"), [(1, 7), (2, 4), (3, 3), (5, 2)])
def test_same_padding_divides_the_length_by_the_stride(padding, stride, length):
    x, w = np.ones((1, 1, 7)), np.ones((1, 1, 4))
    assert F.conv1d(x, w, stride=stride, padding=padding).shape == (1, 1, length)
    assert F.conv_transpose1d(x, w, stride=stride, padding=padding).shape == (1, 1, 7 * stride)


def test_same_padding_puts_the_odd_zero_behind():
    assert_array_equal(
        F.conv1d(np.ones((1, 1, 4)), np.ones((1, 1, 2)), padding="SAME"), [[[2, 2, 2, 1]]]
    )


@pytest.mark.parametrize(
    "padding", [1, (1, 1), [1], ((1, 1), (1, 1)), [[1, 1]], np.int64(1), "SAME"], ids=str
)
def test_padding_can_be_written_in_many_ways(padding):
    x, w = ramp(1, 1, 4, 5), ramp(1, 1, 3, 3, modulus=5)
    assert_array_equal(F.conv2d(x, w, padding=padding), F.conv2d(np.pad(x[0, 0], 1)[None, None], w))


def test_pairs_of_padding_are_for_the_sides():
    x = np.ones((1, 1, 2, 2))
    out = F.conv2d(x, np.ones((1, 1, 1, 1)), padding=((1, 0), (0, 2)))
    assert_array_equal(out[0, 0], [[0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]])


def test_pairs_cut_the_sides_of_a_transposed_convolution():
    x = np.array([[[1.0, 2.0, 3.0]]])
    out = F.conv_transpose1d(x, np.ones((1, 1, 2)), padding=((1, 0),))
    assert_array_equal(out, [[[3, 5, 3]]])


@pytest.mark.parametrize("fun", [F.conv2d, F.conv_transpose2d])
def test_batch_may_be_missing(fun):
    x, w = ramp(2, 3, 4), ramp(2, 2, 2, 2, modulus=5)
    assert_array_equal(fun(x, w, np.ones(2)), fun(x[None], w, np.ones(2))[0])


def test_empty_batch_gives_zero_gradients():
    x, w = np.ones((0, 2, 4, 4)), np.ones((3, 2, 2, 2))
    out, pullback = fg.vjp(F.conv2d, x, w)
    assert out.shape == (0, 3, 3, 3)
    x_bar, w_bar = pullback(np.ones(out.shape))
    assert x_bar.shape == x.shape
    assert_array_equal(w_bar, np.zeros(w.shape))


def test_buffer_size_of_numpy_is_left_alone():
    size = np.getbufsize()
    fg.vjp(F.conv2d, np.ones((8, 2, 20, 20)), np.ones((3, 2, 2, 2)))[1](np.ones((8, 3, 19, 19)))
    assert np.getbufsize() == size


def test_lists_are_taken():
    assert_array_equal(F.conv1d([[1, 2, 4]], [[[1, -1]]], [1]), [[0.0, -1.0]])


def test_float32_stays_float32():
    x, w, b = (np.ones(s, np.float32) for s in ((1, 1, 3, 3), (1, 1, 2, 2), (1,)))
    out, pullback = fg.vjp(F.conv2d, x, w, b)
    assert out.dtype == np.float32
    assert all(bar.dtype == np.float32 for bar in pullback(out))


@pytest.mark.parametrize("order", [1, 2])
def test_gradients_match_differences(order):
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=(2, 2, 4, 4)), rng.normal(size=(2, 1, 3, 2)), rng.normal(size=2)

    def fun(x, w, b):
        return np.tanh(F.conv2d(x, w, b, stride=(1, 2), padding="SAME", groups=2))

    check_grads(fun, (x, w, b), order=order)


def test_hessian_of_a_convolution_in_image_and_kernel():
    # f = x w at one place: the mixed derivative is 1
    x, w = np.array([[[2.0]]]), np.array([[[5.0]]])
    mixed = fg.grad(lambda w: np.sum(fg.grad(lambda x: np.sum(F.conv1d(x, w)))(x)))(w)
    assert_array_equal(mixed, [[[1.0]]])


def test_vmap_over_images_and_kernels():
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=(3, 2, 2, 5, 5)), rng.normal(size=(3, 4, 2, 2, 2)), np.ones((3, 4))
    for in_axes in ((0, None, None), (None, 0, 0), (0, 0, 0)):
        args = [a if axis == 0 else a[0] for a, axis in zip((x, w, b), in_axes, strict=True)]
        got = fg.vmap(F.conv2d, in_axes)(*args)
        for k in range(3):
            one = [a[k] if axis == 0 else a for a, axis in zip(args, in_axes, strict=True)]
            assert_allclose(got[k], F.conv2d(*one), 1e-12, 1e-13)


# Pooling


def test_max_pool2d_in_ceil_mode():
    assert_values(
        lambda x: F.max_pool2d(x, 2, 2, ceil_mode=True),
        (ramp(1, 1, 3, 5, modulus=11),),
        (1, 1, 2, 3),
        [1, 3, 4, 5, -3, -2],
        [0, 0, 0, 0, 0, 0, -1, 0, 0, 1, -1, 0, 0, 0, 1],
    )


def test_max_pool2d_padded_and_dilated():
    assert_values(
        lambda x: F.max_pool2d(x, 2, 1, padding=1, dilation=2),
        (ramp(1, 1, 3, 4, modulus=11),),
        (1, 1, 3, 4),
        [0, 1, 2, 1, 4, 5, 4, 5, 0, 1, 2, 1],
        [0, 0, 0, 0, 0, 0, -1, 1, 0, -1, 1, 0],
    )


@pytest.mark.parametrize(
    ("include", "out", "bar"),
    [
        (True, [-15, -21, -6, 6, 30, -9], [-0.25, 0, 0, 0.25] * 3),
        (False, [-60, -42, -24, 12, 30, -18], [-1, 0, 0, 1, -0.5, 0, 0, 0.5, -0.5, 0, 0, 0.5]),
    ],
)
def test_avg_pool2d_counts_padding_or_not(include, out, bar):
    assert_values(
        lambda x: F.avg_pool2d(x, 2, 2, padding=1, ceil_mode=True, count_include_pad=include),
        (12 * ramp(1, 1, 3, 4, modulus=11),),
        (1, 1, 2, 3),
        out,
        bar,
    )


def test_avg_pool1d_in_ceil_mode_counts_nothing_beyond_the_padding():
    third = 1 / 3
    assert_values(
        lambda x: F.avg_pool1d(x, 3, 2, padding=1, ceil_mode=True),
        (12 * ramp(1, 1, 6, modulus=11),),
        (1, 1, 4),
        [-36, -36, -12, 0],
        [-third, -third, 0, third, third, -third / 2],
    )


def test_adaptive_avg_pool2d_of_parts_that_overlap():
    assert_values(
        lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
        (4 * ramp(1, 1, 3, 4, modulus=11),),
        (1, 1, 2, 3),
        [-10, -6, -2, 6, 10, 3],
        [-0.25, -0.25, 0.25, 0.25, -0.5, -0.5, 0.5, 0.5, -0.25, -0.25, 0.25, 0.25],
    )


def test_adaptive_max_pool2d_of_parts_that_overlap():
    assert_values(
        lambda x: F.adaptive_max_pool2d(x, (2, 3)),
        (4 * ramp(1, 1, 3, 4, modulus=11),),
        (1, 1, 2, 3),
        [0, 4, 8, 16, 20, 20],
        [0, 0, 0, 0, 0, -1, 0, 1, 0, -1, 1, 0],
    )


def test_unfold():
    assert_values(
        lambda x: F.unfold(x, (2, 2), dilation=(1, 2), padding=(0, 1), stride=(1, 2)),
        (ramp(1, 1, 3, 3, modulus=11),),
        (1, 4, 4),
        [0, -4, 0, -1, -4, 0, -1, 0, 0, -1, 0, 2, -1, 0, 2, 0],
        [0, 0, 0, 0, -4, 0, 0, 2, 0],
    )


@pytest.mark.parametrize("fun", [F.adaptive_avg_pool3d, F.adaptive_max_pool3d])
def test_adaptive_size_of_none_keeps_an_axis(fun):
    x = ramp(2, 3, 4, 5, 6)
    assert_array_equal(fun(x, None), x)
    assert fun(x, (2, None, 3)).shape == (2, 3, 2, 5, 3)


def test_global_average_is_the_mean():
    x = ramp(2, 3, 4, 5)
    assert_allclose(F.adaptive_avg_pool2d(x, 1)[..., 0, 0], np.mean(x, axis=(2, 3)), rtol=1e-14)


@pytest.mark.parametrize("fun", [F.max_pool2d, F.avg_pool2d])
def test_same_padding_of_pooling(fun):
    assert fun(np.ones((1, 1, 5, 4)), 2, padding="SAME").shape == (1, 1, 3, 2)
    assert fun(np.ones((1, 1, 5, 4)), 2, padding="valid").shape == (1, 1, 2, 2)


@pytest.mark.parametrize("fun", [F.max_pool1d, F.avg_pool1d])
def test_vmap_of_pooling_is_pooling_of_the_batch(fun):
    x = ramp(3, 2, 2, 6)
    got = fg.vmap(lambda v: fun(v, 3, 2, padding=1))(x)
    assert_array_equal(got, fun(x.reshape(6, 2, 6), 3, 2, padding=1).reshape(3, 2, 2, 3))


@pytest.mark.parametrize("order", [1, 2])
def test_gradients_of_pooling_match_differences(order):
    x = np.random.default_rng(0).normal(size=(2, 2, 5, 4))

    def fun(x):
        top = F.max_pool2d(x**3, 2, 1, padding=1)
        return F.avg_pool2d(top**2, (3, 2), ceil_mode=True)

    check_grads(fun, (x,), order=order)


# Errors


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: F.conv2d(np.ones((1, 1, 3, 3)), np.ones((1, 1, 5, 5))),
            r"window of \(5, 5\) is larger than the input of \(3, 3\)",
        ),
        (
            lambda: F.conv2d(np.ones((1, 1, 3, 3)), np.ones((1, 1, 3, 3)), padding=1, dilation=3),
            r"dilated to \(7, 7\), is larger than the input of \(3, 3\), padded to \(5, 5\)",
        ),
        (
            lambda: F.max_pool1d(np.ones((1, 1, 3)), 4),
            r"window of \(4,\) is larger than the input of \(3,\)",
        ),
        (lambda: F.conv2d(np.ones((3, 3)), np.ones((1, 1, 2, 2))), r"got float64\[3,3\]"),
        (lambda: F.conv2d(np.ones((1, 1, 3, 3)), np.ones((2, 2))), r"kernel of shape"),
        (
            lambda: F.conv2d(np.ones((1, 3, 4, 4)), np.ones((2, 2, 2, 2))),
            r"float64\[1,3,4,4\] and kernel float64\[2,2,2,2\] do not fit",
        ),
        (lambda: F.conv1d(np.ones((1, 4, 4)), np.ones((3, 2, 2)), groups=2), "groups=2"),
        (lambda: F.conv_transpose1d(np.ones((1, 3, 4)), np.ones((2, 1, 2))), "do not fit"),
        (lambda: F.conv1d(np.ones((1, 1, 4)), np.ones((2, 1, 2)), np.ones(3)), "each of 2 outputs"),
        (
            lambda: F.conv_transpose1d(np.ones((1, 1, 1)), np.ones((1, 1, 2)), padding=1),
            r"leaves \(0,\)",
        ),
        (lambda: F.fold(np.ones((4, 3)), (2, 3), 2), r"got float64\[4,3\]"),
        (lambda: F.adaptive_avg_pool1d(np.ones((1, 0)), 2), "images with elements"),
    ],
)
def test_shapes_that_do_not_fit(call, words):
    with pytest.raises(ShapeError, match=words):
        call()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"stride": 0}, "stride=0"),
        ({"stride": (1, 2, 3)}, r"stride=\(1, 2, 3\)"),
        ({"dilation": 1.5}, "dilation=1.5"),
        ({"padding": -1}, "padding=-1"),
        ({"padding": "full"}, "padding='full' is no padding for 2 axes"),
        ({"padding": ((1, 2, 3), (0, 0))}, "no padding for 2 axes"),
        ({"groups": 0}, "groups=0"),
    ],
)
def test_arguments_that_make_no_sense(arguments, words):
    with pytest.raises(ArgumentError, match=words):
        F.conv2d(np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2)), **arguments)


def test_window_outside_of_the_image_is_refused():
    for fun in (F.max_pool2d, F.avg_pool2d):
        with pytest.raises(ArgumentError, match="can lie outside of the image"):
            fun(np.ones((1, 1, 3, 3)), 2, padding=2)


def test_output_padding_is_less_than_the_stride():
    with pytest.raises(ArgumentError, match="output_padding=2"):
        F.conv_transpose1d(np.ones((1, 1, 3)), np.ones((1, 1, 2)), stride=2, output_padding=2)


def test_complex_images_have_no_maxima():
    with pytest.raises(DtypeError, match="real numbers"):
        F.max_pool1d(np.ones((1, 4), complex), 2)
