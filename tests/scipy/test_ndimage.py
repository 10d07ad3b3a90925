"""`funcgrad.scipy.ndimage`: images between their pixels, kinks, borders, filters, errors."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import ndimage as theirs

import funcgrad as fg
from funcgrad.scipy import ndimage as ours
from funcgrad.testing import check_grads

MODES = ["constant", "nearest", "reflect", "mirror", "wrap", "grid-wrap", "grid-constant"]
RAMP = np.array([0.0, 1.0, 3.0, 2.0])


def look(image, where, **kwargs):
    return ours.map_coordinates(image, np.reshape(where, (-1, 1)), order=1, **kwargs)[0]


# Between the pixels


def test_slope_between_two_pixels_is_their_difference():
    assert fg.grad(lambda c: look(RAMP, c))(1.25) == 2
    bar = fg.grad(lambda image: look(image, 1.25))(RAMP)
    assert_array_equal(bar, [0, 0.75, 0.25, 0])


def test_bilinear_patch():
    # a + b x + c y + d x y
    image = np.array([[1.0, 3.0], [4.0, 10.0]])
    bar, _ = fg.jvp(fg.grad(lambda c: look(image, c)), (np.array([0.25, 0.5]),), (np.zeros(2),))
    assert_allclose(bar, [3 + 4 * 0.5, 2 + 4 * 0.25])
    _, mixed = fg.jvp(
        fg.grad(lambda c: look(image, c)), (np.array([0.25, 0.5]),), (np.array([1.0, 0.0]),)
    )
    assert_allclose(mixed, [0, 4])


def test_nearest_pixel_has_no_slope():
    def nearest(image, c):
        return ours.map_coordinates(image, c, order=0)

    out, pullback = fg.vjp(nearest, RAMP, np.array([[1.4, 1.6]]))
    assert_array_equal(out, [1, 3])
    image_bar, c_bar = pullback(np.array([1.0, 10.0]))
    assert_array_equal(image_bar, [0, 1, 10, 0])
    assert_array_equal(c_bar, [[0, 0]])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [0, 1])
def test_values_are_those_of_scipy_and_derivatives_those_of_the_values(mode, order):
    rng = np.random.default_rng(0)
    image = rng.normal(size=(3, 4))
    points = rng.uniform(-6, 9, size=(2, 40))

    def call(image, points):
        return ours.map_coordinates(image, points, order=order, mode=mode, cval=2.5)

    expected = theirs.map_coordinates(image, points, order=order, mode=mode, cval=2.5)
    assert_array_equal(call(image, points), expected)
    assert_array_equal(fg.vjp(call, image, points)[0], expected)
    check_grads(call, (image, points))


def test_single_precision_images_stay_single():
    image = RAMP.astype(np.float32)
    out, pullback = fg.vjp(lambda image: ours.map_coordinates(image, [[1.25]], order=1), image)
    assert out.dtype == np.float32
    assert pullback(out)[0].dtype == np.float32


def test_integer_images_have_integer_values_and_no_slope():
    image = np.array([0, 10, 20])
    out, out_dot = fg.jvp(
        lambda c: ours.map_coordinates(image, c, order=1), (np.array([[0.52]]),), (np.ones((1, 1)),)
    )
    assert_array_equal(out, theirs.map_coordinates(image, [[0.52]], order=1))
    assert out_dot is None


# On the grid


def slope_at(image, c, **kwargs):
    kwargs = {"mode": "nearest", **kwargs}
    reverse = fg.grad(lambda c: look(image, c, **kwargs))(c)
    _, forward = fg.jvp(lambda c: look(image, c, **kwargs), (c,), (1.0,))
    assert reverse == forward
    return reverse


def test_on_a_pixel_the_slope_nearest_to_zero_counts():
    assert slope_at(RAMP, 1.0) == 1  # of 1 and 2
    assert slope_at(-RAMP, 1.0) == -1
    assert slope_at(RAMP, 2.0) == 0  # of 2 and -1: a maximum


def test_at_the_border_of_an_image_that_goes_on_evenly_it_is_zero():
    for mode in ("nearest", "reflect", "mirror"):
        assert slope_at(RAMP, 0.0, mode=mode) == 0
        assert slope_at(RAMP, 3.0, mode=mode) == 0


def test_at_a_jump_the_slope_inside_counts():
    for mode in ("constant", "wrap"):
        assert slope_at(RAMP, 0.0, mode=mode, cval=9.0) == 1
        assert slope_at(RAMP, 3.0, mode=mode, cval=9.0) == -1


def test_next_to_a_constant_the_image_goes_on_linearly():
    assert slope_at(RAMP, -0.5, mode="grid-constant", cval=-2.0) == 2
    assert slope_at(RAMP, 0.0, mode="grid-constant", cval=-2.0) == 1


def test_each_axis_has_its_own_kink():
    image = np.array([[0.0, 1.0, 3.0], [2.0, 5.0, 9.0], [3.0, 4.0, 0.0]])
    bar = fg.grad(lambda c: look(image, c))(np.array([1.0, 0.5]))
    # Along the first axis 2.5 + 0.5 before, and 0 behind (3.5 - 3.5).
    assert_array_equal(bar, [0, 3])


# Filters

CALLS = [
    ("gaussian_filter", (1.2,), {}),
    ("gaussian_filter", ((0.7, 0.0),), {"order": (1, 0)}),
    ("gaussian_filter", (0.8,), {"order": 2, "truncate": 2.0, "axes": (1,)}),
    ("gaussian_filter", (2.0,), {"radius": 1}),
    ("gaussian_filter1d", (0.9,), {"axis": 0, "order": 1}),
    ("uniform_filter", (3,), {}),
    ("uniform_filter", ((2, 1),), {"origin": (-1, 0)}),
    ("uniform_filter1d", (4,), {"axis": 0, "origin": 1}),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "args", "kwargs"), CALLS)
def test_smoothing(name, args, kwargs, mode):
    image = np.random.default_rng(1).normal(size=(5, 6))

    def call(image):
        return getattr(ours, name)(image, *args, mode=mode, cval=1.5, **kwargs)

    expected = getattr(theirs, name)(image, *args, mode=mode, cval=1.5, **kwargs)
    assert_array_equal(fg.vjp(call, image)[0], expected)
    check_grads(call, (image,))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["correlate", "convolve"])
def test_weights(name, mode):
    rng = np.random.default_rng(2)
    image = rng.normal(size=(4, 5))
    for shape, origin in itertools.product([(3, 2), (2, 3)], [0, (0, -1)]):
        weights = rng.normal(size=shape)

        def call(image, weights, origin=origin):
            return getattr(ours, name)(image, weights, mode=mode, cval=1.5, origin=origin)

        expected = getattr(theirs, name)(image, weights, mode=mode, cval=1.5, origin=origin)
        assert_array_equal(fg.vjp(call, image, weights)[0], expected)
        check_grads(call, (image, weights))


@pytest.mark.parametrize("name", ["correlate1d", "convolve1d"])
def test_weights_along_one_axis(name):
    rng = np.random.default_rng(3)
    for n, origin, axis in itertools.product([2, 3], [0, -1], [0, 1]):
        args = rng.normal(size=(4, 3)), rng.normal(size=n)

        def call(image, weights, axis=axis, origin=origin):
            return getattr(ours, name)(image, weights, axis, origin=origin)

        expected = getattr(theirs, name)(*args, axis, origin=origin)
        assert_array_equal(fg.vjp(call, *args)[0], expected)
        check_grads(call, args)


@pytest.mark.parametrize("name", ["correlate", "convolve", "correlate1d", "convolve1d"])
def test_complex_weights(name):
    rng = np.random.default_rng(4)
    shapes = [(4, 3), (3, 3) if "1d" not in name else (3,)]
    args = [rng.normal(size=shape) + 1j * rng.normal(size=shape) for shape in shapes]
    assert_array_equal(fg.vjp(getattr(ours, name), *args)[0], getattr(theirs, name)(*args))
    check_grads(getattr(ours, name), tuple(args))


def test_filters_batch():
    images = np.random.default_rng(5).normal(size=(3, 4, 5))

    def energy(image):
        return np.sum(ours.gaussian_filter(image, 1.0) ** 2)

    got = fg.vmap(fg.grad(energy))(images)
    assert_allclose(got, np.stack([fg.grad(energy)(image) for image in images]), rtol=1e-12)


# Errors


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda x: ours.map_coordinates(x, [[0.5]]), "order=3"),
        (lambda x: ours.map_coordinates(x, [[0.5]], order=1, output=np.float32), "output="),
        (lambda x: ours.gaussian_filter(x, 1.0, output=np.float32), "output="),
        (lambda x: ours.uniform_filter1d(x, 2, output=np.float32), "output="),
        (lambda x: ours.convolve(x, [1.0], axes=(0,)), "axes="),
    ],
)
def test_what_has_no_rule_says_so(call, match):
    with pytest.raises(fg.errors.MissingRuleError, match=match):
        fg.vjp(call, RAMP)


def test_width_of_a_gaussian_cannot_be_traced():
    with pytest.raises(fg.errors.ArgumentError, match="sigma"):
        fg.grad(lambda sigma: np.sum(ours.gaussian_filter(RAMP, sigma) ** 2))(1.0)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, x: m.map_coordinates(x, np.zeros((2, 3)), order=1),
        lambda m, x: m.map_coordinates(x, np.zeros((1, 3)), order=1, mode="other"),
        lambda m, x: m.map_coordinates(x, np.zeros((1, 3)), order=7),
        lambda m, x: m.map_coordinates(x, np.zeros(1), order=1),
        lambda m, x: m.gaussian_filter(x, 1.0, mode="other"),
        lambda m, x: m.uniform_filter1d(x, 0),
        lambda m, x: m.correlate(x, np.ones((2, 2))),
        lambda m, x: m.correlate1d(x, np.ones(3), origin=5),
    ],
)
def test_errors_are_those_of_scipy(call):
    with pytest.raises((ValueError, RuntimeError, TypeError)) as expected:
        call(theirs, RAMP)
    with pytest.raises(expected.type) as raised:
        fg.vjp(lambda x: call(ours, x), RAMP)
    assert str(raised.value) == str(expected.value)


def test_other_names_are_scipys():
    assert ours.median_filter.__wrapped__ is theirs.median_filter
    assert {"map_coordinates", "median_filter"} <= set(dir(ours))
    with pytest.raises(AttributeError, match="colour"):
        ours.colour  # noqa: B018 - the access is the test


def test_scipys_own_function_says_that_it_cannot_be_traced():
    with pytest.raises(fg.errors.MissingRuleError, match=r"scipy\.ndimage\.median_filter"):
        fg.grad(lambda x: np.sum(ours.median_filter(x, 3)))(RAMP)
