"""Fourier transforms: gradients known in closed form, halves of spectra, dtypes, `out=`, errors."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.rules import fft as rules

X = np.array([1.0, -2.0, 0.5, 3.0, 4.0])


def power(transform, **kwargs):
    def total(x):
        y = transform(x, **kwargs)
        return np.sum(np.real(y) ** 2 + np.imag(y) ** 2)

    return total


# By Parseval's theorem the energy of the whole spectrum is n times that of the array.


def test_gradient_of_the_energy_of_a_spectrum():
    assert_allclose(fg.grad(power(np.fft.fft))(X), 2 * 5 * X, rtol=1e-14)


@pytest.mark.parametrize(
    ("norm", "factor"), [(None, 5), ("backward", 5), ("ortho", 1), ("forward", 0.2)]
)
def test_norm_scales_the_gradient_of_the_energy(norm, factor):
    assert_allclose(fg.grad(power(np.fft.fft, norm=norm))(X), 2 * factor * X, rtol=1e-14)
    assert_allclose(fg.grad(power(np.fft.ifft, norm=norm))(X), 2 / factor * X, rtol=1e-14)


def test_gradient_over_several_axes():
    x = np.arange(12.0).reshape(3, 4)
    assert_allclose(fg.grad(power(np.fft.fftn))(x), 24 * x, atol=1e-12)
    assert_allclose(fg.grad(power(np.fft.fft2))(x), 24 * x, atol=1e-12)
    assert_allclose(fg.grad(power(np.fft.ifft2))(x), x / 6, atol=1e-14)


def test_zeros_put_behind_get_no_gradient_and_what_is_cut_off_gets_zero():
    assert_allclose(fg.grad(power(np.fft.fft, n=8))(X), 16 * X, rtol=1e-14)
    assert_allclose(fg.grad(power(np.fft.fft, n=2))(X), [4, -8, 0, 0, 0], rtol=1e-14)


@pytest.mark.parametrize("n", [4, 5, 6, 7])
def test_real_transform_has_the_gradient_of_the_half_that_it_keeps(n):
    def half(x):
        return np.fft.fft(x, n)[: n // 2 + 1]

    expected = fg.grad(power(half))(X)
    assert_allclose(fg.grad(power(np.fft.rfft, n=n))(X), expected, rtol=1e-13, atol=1e-13)


def test_inverse_real_transform_by_hand():
    # n = 4: y0 = (a0 + 2 re(a1) + a2) / 4, of real parts of a0 and a2.
    a = np.array([1 + 5j, 2 - 1j, 3 + 7j])
    bar = fg.grad(lambda a: np.fft.irfft(a)[0])(a)
    assert_array_equal(bar, [0.25, 0.5, 0.25])
    # y1 = (a0 - 2 im(a1) - a2) / 4, and the transpose of -im is multiplication with 1j.
    bar = fg.grad(lambda a: np.fft.irfft(a)[1])(a)
    assert_allclose(bar, [0.25, 0.5j, -0.25], rtol=1e-15)


def test_odd_length_has_no_highest_frequency():
    # n = 3: y0 = (a0 + 2 re(a1)) / 3
    bar = fg.grad(lambda a: np.fft.irfft(a, 3)[0])(np.array([1 + 1j, 2 + 1j, 4 + 0j]))
    assert_allclose(bar, [1 / 3, 2 / 3, 0], rtol=1e-15)


@pytest.mark.parametrize("n", [4, 5])
def test_imaginary_parts_that_do_not_count_have_no_derivative(n):
    a = np.array([1 + 5j, 2 - 1j, 3 + 7j])
    tangent = np.array([1j, 0, 1j if n == 4 else 0])
    _, out_dot = fg.jvp(lambda a: np.fft.irfft(a, n), (a,), (tangent,))
    assert_allclose(out_dot, np.zeros(n), atol=1e-16)


def test_round_trip_is_the_identity():
    x = np.arange(7.0)
    for n in (6, 7):
        jacobian = [
            fg.jvp(lambda x, n=n: np.fft.irfft(np.fft.rfft(x, n), n), (x,), (row,))[1]
            for row in np.eye(7)
        ]
        assert_allclose(jacobian, np.eye(7)[:, :n], atol=1e-15)
        back = [
            fg.vjp(lambda x, n=n: np.fft.hfft(np.fft.ihfft(x, n), n), x)[1](row)[0]
            for row in np.eye(n)
        ]
        assert_allclose(back, np.eye(7)[:n], atol=1e-15)


def test_an_axis_may_be_transformed_twice():
    # Twice the transform is n times the reversed array.
    x = np.arange(10.0).reshape(2, 5)
    out, pullback = fg.vjp(lambda x: np.real(np.fft.fftn(x, axes=(1, 1))), x)
    assert_allclose(out, 5 * x[:, [0, 4, 3, 2, 1]], atol=1e-13)
    assert_allclose(pullback(x)[0], 5 * x[:, [0, 4, 3, 2, 1]], atol=1e-13)


def test_minus_one_stands_for_the_whole_axis():
    x = np.arange(12.0).reshape(3, 4)
    got = fg.grad(power(np.fft.fftn, s=(-1, 2), axes=(0, 1)))(x)
    assert_allclose(got, 2 * 6 * x * [1, 1, 0, 0], rtol=1e-14, atol=1e-13)


def test_shift_moves_the_gradient_back():
    w = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    for shift, back in ((np.fft.fftshift, np.fft.ifftshift), (np.fft.ifftshift, np.fft.fftshift)):
        for axes in (None, 1, (0, 1), -1):
            bar = fg.grad(lambda x, shift=shift, axes=axes: np.sum(w * shift(x, axes)))(w)
            assert_array_equal(bar, back(w, axes))


def test_convolution_theorem():
    a, v = X, np.array([1.0, -1.0, 2.0])

    def by_fft(a, v):
        n = len(a) + len(v) - 1
        return np.sum(np.fft.irfft(np.fft.rfft(a, n) * np.fft.rfft(v, n), n) ** 3)

    def directly(a, v):
        return np.sum(np.convolve(a, v) ** 3)

    got, expected = (fg.grad(f, argnums=(0, 1))(a, v) for f in (by_fft, directly))
    assert_allclose(got[0], expected[0], rtol=1e-12)
    assert_allclose(got[1], expected[1], rtol=1e-12)


# Dtypes


def test_single_precision_stays_single():
    x = X.astype(np.float32)
    out, pullback = fg.vjp(np.fft.rfft, x)
    assert out.dtype == np.complex64
    assert pullback(out)[0].dtype == np.float32
    _, out_dot = fg.jvp(np.fft.irfft, (out,), (out,))
    assert out_dot.dtype == np.float32


# `out=`


@pytest.mark.parametrize("transform", [np.fft.fft, np.fft.rfft, np.fft.ihfft, np.fft.rfftn])
def test_out_is_written_to(transform):
    def f(x):
        y = np.zeros_like(transform(x))
        result = transform(x, out=y)
        assert result is y
        return np.sum(np.real(y) * np.arange(len(y)))

    expected = fg.grad(lambda x: np.sum(np.real(transform(x)) * np.arange(len(transform(x)))))(X)
    assert_array_equal(fg.grad(f)(X), expected)


def test_numpy_leaves_out_alone_in_hfft_and_ifft2():
    a = np.ones((2, 3)) + 0j

    def f(a):
        y = np.zeros_like(np.fft.ifft2(a))
        np.fft.ifft2(a, out=y)
        return np.sum(np.abs(y) ** 2)

    assert f(a) == 0
    assert_array_equal(fg.grad(f)(a), np.zeros((2, 3)))


# What NumPy refuses or warns of


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.fft.fft(x, 0),
        lambda x: np.fft.fft(x, norm="half"),
        lambda x: np.fft.hfft(x, norm="half"),
        lambda x: np.fft.ihfft(x, norm="half"),
        lambda x: np.fft.fft(x, axis=3),
        lambda x: np.fft.rfft(x + 1j),
        lambda x: np.fft.irfft(x[:1]),
        lambda x: np.fft.fftn(x, axes=(4,)),
        lambda x: np.fft.fftn(x, s=(2, 3), axes=(0,)),
        lambda x: np.fft.fftshift(x, axes=2),
        lambda x: np.fft.fft(x[0]),
    ],
)
def test_errors_are_those_of_numpy(call):
    with pytest.raises((ValueError, IndexError, TypeError)) as expected:
        call(X)
    with pytest.raises(expected.type) as raised:
        fg.vjp(call, X)
    assert str(raised.value) == str(expected.value)


@pytest.mark.parametrize("kwargs", [{"s": (3,)}, {"s": (None, 3), "axes": (0, 1)}])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("transform", [np.fft.fftn, np.fft.rfftn, np.fft.irfftn])
def test_deprecated_spellings_mean_what_they_mean_in_numpy(transform, kwargs):
    x = np.arange(12.0).reshape(3, 4)
    out, pullback = fg.vjp(lambda x: transform(x, **kwargs), x)
    assert_array_equal(out, transform(x, **kwargs))
    _, out_dot = fg.jvp(lambda x: transform(x, **kwargs), (x,), (np.cos(x),))
    assert_array_equal(out_dot, transform(np.cos(x), **kwargs))
    assert np.sum(np.real(pullback(out)[0] * np.cos(x))) == pytest.approx(
        np.sum(np.real(out * out_dot))
    )


def test_deprecated_spelling_is_warned_of_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fg.jvp(lambda x: np.fft.fftn(x, s=(3,)), (X,), (X,))
    assert [w.category for w in caught] == [DeprecationWarning]


# Many at once


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
@pytest.mark.parametrize("params", [(None, -1, None), (6, 0, "ortho"), (3, -2, "forward")])
def test_batch_along_one_axis_is_a_loop(name, params):
    made = getattr(rules, name)
    x = np.random.default_rng(0).normal(size=(5, 3, 4))
    params = dict(zip(("n", "axis", "norm"), params, strict=True))
    expected = np.stack([made.bind(row, **params) for row in x])
    assert_array_equal(made.batch((x,), (True,), **params), expected)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
@pytest.mark.parametrize(
    ("s", "axes"), [(None, None), (None, (0, -1)), ((3, -1), (1, 2)), ((5, 4), (-1, -1))]
)
def test_batch_over_several_axes_is_a_loop(name, s, axes):
    made = getattr(rules, name)
    x = np.random.default_rng(0).normal(size=(5, 3, 4, 2))
    params = {"s": s, "axes": axes, "norm": "ortho"}
    expected = np.stack([made.bind(row, **params) for row in x])
    assert_allclose(made.batch((x,), (True,), **params), expected, atol=1e-15)


def test_frequencies_are_constants():
    bar = fg.grad(lambda x: np.sum(np.abs(np.fft.fftfreq(len(x))) * x))(X)
    assert_array_equal(bar, np.abs(np.fft.fftfreq(5)))
