"""`funcgrad.scipy.signal`: closed values, boundaries, SciPy's own values and errors."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import signal as theirs

import funcgrad as fg
from funcgrad.scipy import signal as ours
from funcgrad.testing import check_grads

X = np.array([1.0, 2.0, 3.0, 4.0])
W = np.array([5.0, -1.0])


def test_gradient_of_a_full_convolution_sums_the_other_array():
    bars = fg.grad(lambda x, w: np.sum(ours.convolve(x, w)), argnums=(0, 1))(X, W)
    assert_array_equal(bars[0], [4, 4, 4, 4])
    assert_array_equal(bars[1], [10, 10])


@pytest.mark.parametrize("method", ["auto", "direct", "fft"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolution_has_the_derivatives_of_numpys(mode, method):
    def cubes(convolve, *args):
        return lambda x, w: np.sum(convolve(x, w, mode, *args) ** 3)

    got = fg.grad(cubes(ours.convolve, method), argnums=(0, 1))(X, W)
    expected = fg.grad(cubes(np.convolve), argnums=(0, 1))(X, W)
    for bar, other in zip(got, expected, strict=True):
        assert_allclose(bar, other, rtol=1e-11)


@pytest.mark.parametrize("convolve", [ours.convolve, ours.fftconvolve, ours.oaconvolve])
def test_methods_agree_in_two_dimensions(convolve):
    rng = np.random.default_rng(0)
    image, weights = rng.normal(size=(9, 8)), rng.normal(size=(3, 2))

    def energy(convolve):
        return lambda image, w: np.sum(convolve(image, w, "same") ** 2)

    got = fg.grad(energy(convolve), argnums=(0, 1))(image, weights)
    expected = fg.grad(energy(ours.convolve2d), argnums=(0, 1))(image, weights)
    for bar, other in zip(got, expected, strict=True):
        assert_allclose(bar, other, rtol=1e-11, atol=1e-12)


def test_correlation_conjugates_its_second_array():
    x, w = np.array([1 + 2j]), np.array([3 + 4j])
    for correlate in (ours.correlate, lambda x, w: ours.correlate2d(x[None], w[None])[0]):
        _, pullback = fg.vjp(correlate, x, w)
        x_bar, w_bar = pullback(np.array([1j]))
        assert_allclose(x_bar, [1j * (3 - 4j)], rtol=1e-14)
        assert_allclose(w_bar, [-1j * (1 - 2j)], rtol=1e-14)


def test_valid_convolution_of_long_arrays_pulls_back_without_the_full_one():
    x, w = np.random.default_rng(2).normal(size=(2, 100_000))
    bars = fg.grad(lambda x, w: ours.convolve(x, w, "valid", "direct")[0], argnums=(0, 1))(x, w)
    assert_array_equal(bars[0], w[::-1])
    assert_array_equal(bars[1], x[::-1])


# Boundaries

BOUNDARIES = [("fill", 0), ("fill", 1.5), ("wrap", 0), ("symm", 0)]


@pytest.mark.parametrize("name", ["convolve2d", "correlate2d"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("boundary", "fillvalue"), BOUNDARIES)
def test_boundaries(name, mode, boundary, fillvalue):
    rng = np.random.default_rng(3)
    shapes = [((5, 6), (3, 2)), ((4, 4), (2, 4)), ((3, 3), (1, 3))]
    for shape1, shape2 in shapes:
        args = rng.normal(size=shape1), rng.normal(size=shape2)

        def call(in1, in2):
            return getattr(ours, name)(in1, in2, mode, boundary, fillvalue)

        expected = getattr(theirs, name)(*args, mode, boundary, fillvalue)
        assert_array_equal(call(*args), expected)
        assert_array_equal(fg.vjp(call, *args)[0], expected)
        check_grads(call, args)


def test_an_integer_image_is_filled_up_with_fractions():
    image, w = np.arange(6).reshape(2, 3), np.ones((2, 2))
    out, _ = fg.vjp(lambda w: ours.convolve2d(image, w, boundary="fill", fillvalue=0.5), w)
    assert_array_equal(out, theirs.convolve2d(image, w, boundary="fill", fillvalue=0.5))


# Filters


def test_gradient_of_an_exponential_average():
    # y[t] = sum over k of decay**k x[t - k]
    decay = 0.5

    def last(decay):
        return ours.lfilter([1.0], np.stack([1.0, -decay]), X)[-1]

    assert fg.grad(last)(decay) == pytest.approx(3 + 2 * decay * 2 + 3 * decay**2, rel=1e-14)
    x_bar = fg.grad(lambda x: ours.lfilter([1.0], [1.0, -decay], x)[-1])(X)
    assert_array_equal(x_bar, [0.125, 0.25, 0.5, 1])


def test_leading_coefficient_divides_the_others():
    b, a = np.array([3.0]), np.array([2.0])
    bars = fg.grad(lambda b, a: np.sum(ours.lfilter(b, a, X)), argnums=(0, 1))(b, a)
    assert_allclose(bars, [[5], [-7.5]], rtol=1e-15)


def test_filter_agrees_with_a_loop():
    b, a = np.array([0.5, -0.2, 0.1]), np.array([1.2, 0.3])

    def loop(b, a, x):
        y = []
        for t in range(len(x)):
            total = sum(b[k] * x[t - k] for k in range(min(len(b), t + 1)))
            if t:
                total = total - a[1] * y[t - 1]
            y.append(total / a[0])
        return np.sum(np.sin(np.stack(y)))

    def by_filter(b, a, x):
        return np.sum(np.sin(ours.lfilter(b, a, x)))

    got = fg.grad(by_filter, argnums=(0, 1, 2))(b, a, X)
    expected = fg.grad(loop, argnums=(0, 1, 2))(b, a, X)
    for bar, other in zip(got, expected, strict=True):
        assert_allclose(bar, other, rtol=1e-13)


def test_state_of_a_filter_is_for_plain_values_only():
    got = ours.lfilter([1.0], [1.0, -0.5], X, zi=[0.3])
    expected = theirs.lfilter([1.0], [1.0, -0.5], X, zi=[0.3])
    assert_array_equal(got[0], expected[0])
    with pytest.raises(fg.errors.MissingRuleError, match="zi="):
        fg.grad(lambda x: ours.lfilter([1.0], [1.0, -0.5], x, zi=[0.3])[0][0])(X)


def test_detrending_takes_out_lines():
    t = np.arange(5.0)
    for line in (np.ones(5), t):
        _, out_dot = fg.jvp(ours.detrend, (t**2,), (line,))
        assert_allclose(out_dot, np.zeros(5), atol=1e-14)


def test_detrending_in_parts():
    # What is left of three points by a straight line is along (1, -2, 1).
    bar = fg.grad(lambda x: ours.detrend(x, bp=[3])[0])(np.arange(6.0) ** 2)
    assert_allclose(bar, [1 / 6, -1 / 3, 1 / 6, 0, 0, 0], atol=1e-15)


def test_real_part_of_the_analytic_signal_is_the_signal():
    for n in (4, 5):
        x = np.random.default_rng(n).normal(size=n)
        _, pullback = fg.vjp(lambda x: np.real(ours.hilbert(x)), x)
        assert_allclose(pullback(x)[0], x, rtol=1e-13)


def test_imaginary_part_is_the_hilbert_transform_of_a_wave():
    t = np.arange(8) * (2 * np.pi / 8)
    _, out_dot = fg.jvp(lambda x: np.imag(ours.hilbert(x)), (t,), (np.cos(t),))
    assert_allclose(out_dot, np.sin(t), atol=1e-15)


# As SciPy


@pytest.mark.parametrize(
    "name", ["convolve", "correlate", "fftconvolve", "oaconvolve", "convolve2d", "correlate2d"]
)
def test_values_and_dtypes_are_those_of_scipy(name):
    rng = np.random.default_rng(4)
    for dtype, mode in itertools.product((np.int64, np.float32, np.complex128), ("full", "same")):
        args = [(5 * rng.normal(size=shape)).astype(dtype) for shape in ((4, 5), (3, 2))]
        got, expected = (getattr(module, name)(*args, mode) for module in (ours, theirs))
        assert got.dtype == expected.dtype
        assert_array_equal(got, expected)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, x: m.convolve(x, [[1.0]]),
        lambda m, x: m.convolve(x, x, "other"),
        lambda m, x: m.convolve(x, x, method="other"),
        lambda m, x: m.correlate(x, x, "other"),
        lambda m, x: m.fftconvolve(x, x, axes=3),
        lambda m, x: m.convolve2d(x, x),
        lambda m, x: m.convolve2d(x[None], x[None], boundary="other"),
        lambda m, x: m.convolve2d(x[None], x[None], "other", "wrap"),
        lambda m, x: m.convolve(x.reshape(2, 2), x[None], "valid"),
        lambda m, x: m.detrend(x, type="other"),
        lambda m, x: m.hilbert(x, 0),
        lambda m, x: m.hilbert(x + 1j),
        lambda m, x: m.lfilter([], [1.0], x),
    ],
)
def test_errors_are_those_of_scipy(call):
    with pytest.raises((ValueError, TypeError)) as expected:
        call(theirs, X)
    with pytest.raises(expected.type) as raised:
        fg.vjp(lambda x: call(ours, x), X)
    assert str(raised.value) == str(expected.value)


def test_other_names_are_scipys():
    assert ours.butter.__wrapped__ is theirs.butter
    assert {"convolve", "butter"} <= set(dir(ours))
    with pytest.raises(AttributeError, match="colour"):
        ours.colour  # noqa: B018 - the access is the test


def test_scipys_own_function_says_that_it_cannot_be_traced():
    with pytest.raises(fg.errors.MissingRuleError, match=r"scipy\.signal\.medfilt"):
        fg.grad(lambda x: np.sum(ours.medfilt(x, 3)))(X)
