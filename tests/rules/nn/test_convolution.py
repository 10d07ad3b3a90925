"""Convolutions beside the laws: sums by plain loops, the fast paths, memory, dtypes."""

import itertools
import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.rules.nn import layout, lowering, runs, tiles, winograd
from funcgrad.rules.nn.convolution import conv, conv_input, conv_kernel, in_order
from funcgrad.rules.nn.scratch import scratch

PLAIN = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1}


def loops(x, w, y, *, stride, padding, dilation, groups):
    """The three sums of the form, each term by itself: ``(y, x, w)``."""
    out, x_bar, w_bar = np.zeros_like(y), np.zeros_like(x), np.zeros_like(w)
    outputs, channels = w.shape[:2]
    for n, o, c in np.ndindex(x.shape[0], outputs, channels):
        source = o // (outputs // groups) * channels + c
        for p in np.ndindex(*y.shape[2:]):
            for k in np.ndindex(*w.shape[2:]):
                q = tuple(
                    i * s + j * d - low
                    for i, j, s, d, (low, _) in zip(p, k, stride, dilation, padding, strict=True)
                )
                if all(0 <= i < size for i, size in zip(q, x.shape[2:], strict=True)):
                    out[(n, o, *p)] += x[(n, source, *q)] * w[(o, c, *k)]
                    x_bar[(n, source, *q)] += y[(n, o, *p)] * w[(o, c, *k)]
                    w_bar[(o, c, *k)] += y[(n, o, *p)] * x[(n, source, *q)]
    return out, x_bar, w_bar


CASES = {
    "1d": ((2, 2, 7), (4, 2, 3), (5,), {**PLAIN, "stride": (1,), "dilation": (1,)}),
    "plain": ((2, 2, 5, 4), (3, 2, 2, 3), (4, 2), PLAIN),
    "all": (
        (2, 4, 6, 7),
        (4, 2, 2, 3),
        (4, 3),
        {"stride": (2, 3), "padding": ((2, 1), (3, 2)), "dilation": (2, 2), "groups": 2},
    ),
    "long-padding": ((1, 1, 2, 2), (1, 1, 2, 2), (7, 3), {**PLAIN, "padding": ((3, 3), (0, 2))}),
    "left-over": ((1, 2, 6, 6), (1, 2, 2, 2), (2, 3), {**PLAIN, "stride": (3, 2)}),
    "3d": (
        (1, 2, 3, 4, 3),
        (2, 1, 2, 2, 2),
        (2, 3, 3),
        {
            "stride": (1, 1, 1),
            "padding": ((0, 0), (0, 0), (1, 0)),
            "dilation": (1, 1, 1),
            "groups": 2,
        },
    ),
}
CASES["1d"][3]["padding"] = ((0, 0),)


@pytest.fixture(params=CASES)
def case(request):
    images, weights, places, params = CASES[request.param]
    rng = np.random.default_rng(0)
    y_shape = (images[0], weights[0], *places)
    return [rng.normal(size=shape) for shape in (images, weights, y_shape)], params


def three(x, w, y, params):
    """The same by the primitives."""
    size, kernel = x.shape[2:], w.shape[2:]
    return (
        conv(x, w, **params),
        conv_input(y, w, size=size, **params),
        conv_kernel(x, y, kernel=kernel, **params),
    )


def test_three_products_are_those_of_plain_loops(case):
    arrays, params = case
    for got, expected in zip(three(*arrays, params), loops(*arrays, **params), strict=True):
        assert_allclose(got, expected, 1e-13, 1e-13)


@pytest.mark.parametrize("gathers", [False, True])
def test_scattering_and_gathering_are_the_same(monkeypatch, gathers):
    monkeypatch.setattr(lowering, "_gathers", lambda *args: gathers)
    rng = np.random.default_rng(0)
    x, w, y = (rng.normal(size=s) for s in ((2, 2, 6, 5), (4, 1, 3, 2), (2, 4, 5, 6)))
    params = {"stride": (1, 1), "padding": ((1, 0), (3, 0)), "dilation": (1, 2), "groups": 2}
    got = conv_input(y, w, size=(6, 5), **params)
    assert_allclose(got, loops(x, w, y, **params)[1], 1e-13, 1e-13)


@pytest.mark.parametrize("elements", [1, 100, 1000])
def test_pieces_make_no_difference(monkeypatch, case, elements):
    arrays, params = case
    monkeypatch.setattr(lowering, "_COLUMNS", elements)
    for got, expected in zip(three(*arrays, params), loops(*arrays, **params), strict=True):
        assert_allclose(got, expected, 1e-13, 1e-13)


def test_third_derivative_is_that_of_the_polynomial():
    # conv(x * x, x) at one place: x**3, of which the third derivative is 6 and symmetric
    x = np.array([[[2.0]]])
    params = {"stride": (1,), "padding": ((0, 0),), "dilation": (1,), "groups": 1}

    def f(v):
        return np.sum(conv(v * v, v, **params))

    def derivative(g):
        return lambda v: np.sum(fg.grad(g)(v))

    assert_array_equal(fg.grad(derivative(derivative(f)))(x), [[[6.0]]])


# Winograd's products

# Along one axis: odd and even numbers of rows, the other axis strided and dilated, groups.
FAST = {
    "plain": ((64, 16, 9, 12), (32, 16, 3, 3), PLAIN),
    "groups": ((80, 32, 12, 13), (64, 16, 3, 2), {**PLAIN, "stride": (1, 2), "groups": 2}),
    "padded": (
        (64, 32, 8, 12),
        (32, 32, 3, 3),
        {**PLAIN, "padding": ((1, 2), (2, 0)), "dilation": (1, 2)},
    ),
}
# Along both: each of the axes odd and even, groups.
SQUARE = {
    "even": ((48, 32, 12, 14), (32, 32, 3, 3), PLAIN),
    "odd": ((48, 40, 13, 15), (32, 40, 3, 3), PLAIN),
    "mixed": ((32, 32, 14, 15), (48, 32, 3, 3), {**PLAIN, "padding": ((1, 1), (2, 0))}),
    "two groups": ((48, 64, 12, 11), (64, 32, 3, 3), {**PLAIN, "groups": 2}),
}
# Along one axis, in many images: odd and even numbers of rows, a window as wide as the images,
# sides of several places, more images than one piece has.
RUNS = {
    "even": ((96, 16, 10, 9), (32, 16, 3, 3), PLAIN),
    "odd": ((96, 16, 9, 8), (32, 16, 3, 3), {**PLAIN, "padding": ((1, 1), (1, 1))}),
    "wide windows": ((128, 32, 6, 5), (16, 32, 3, 5), {**PLAIN, "padding": ((2, 0), (1, 4))}),
    "narrow": ((96, 16, 8, 2), (32, 16, 3, 3), {**PLAIN, "padding": ((1, 2), (2, 2))}),
    "parts": ((700, 32, 6, 4), (32, 32, 3, 2), {**PLAIN, "padding": ((0, 1), (1, 0))}),
}


def fast_arrays(images, weights, params):
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=shape).astype(np.float32) for shape in (images, weights))
    y = rng.normal(size=conv(x, w, **params).shape).astype(np.float32)
    return [x, w, y], params


ALL = [*FAST.values(), *SQUARE.values(), *RUNS.values()]


@pytest.fixture(params=ALL, ids=[*FAST, *SQUARE, *(f"runs {name}" for name in RUNS)])
def fast_case(request):
    return fast_arrays(*request.param)


@pytest.fixture(params=FAST)
def row_case(request):
    return fast_arrays(*FAST[request.param])


@pytest.fixture(params=SQUARE)
def square_case(request):
    return fast_arrays(*SQUARE[request.param])


@pytest.fixture(params=RUNS)
def run_case(request):
    return fast_arrays(*RUNS[request.param])


@pytest.mark.parametrize("elements", [1 << 14, 1 << 30])
def test_winograds_products_are_as_exact_as_a_sum(monkeypatch, row_case, elements):
    arrays, params = row_case
    monkeypatch.setattr(winograd, "_COLUMNS", elements)
    monkeypatch.setattr(lowering, "_gathers", lambda *args: False)
    wide = three(*(a.astype(np.float64) for a in arrays), params)
    used = []
    decide = winograd.is_worth_it
    monkeypatch.setattr(winograd, "is_worth_it", lambda *a: used.append(decide(*a)) or used[-1])
    for got, expected in zip(three(*arrays, params), wide, strict=True):
        assert got.dtype == np.float32
        assert_allclose(got, expected, rtol=0, atol=2e-6 * np.max(np.abs(expected)))
    assert used == [True] * 3


# Pieces of one row of tiles and a few examples; everything in one piece.
@pytest.mark.parametrize("elements", [1 << 14, 1 << 30])
def test_products_along_both_axes_are_as_exact_as_a_sum(monkeypatch, square_case, elements):
    arrays, params = square_case
    monkeypatch.setattr(tiles, "_PIECE", elements)
    wide = three(*(a.astype(np.float64) for a in arrays), params)
    used = []
    decide = tiles.is_worth_it
    monkeypatch.setattr(tiles, "is_worth_it", lambda *a: used.append(decide(*a)) or used[-1])
    for got, expected in zip(three(*arrays, params), wide, strict=True):
        assert got.dtype == np.float32
        assert_allclose(got, expected, rtol=0, atol=2e-6 * np.max(np.abs(expected)))
    assert used
    assert all(used)


# Pieces of one row of tiles and some images; as they are; everything in one piece.
@pytest.mark.parametrize(
    ("elements", "product"), [(1, 1 << 17), (1 << 21, 1 << 19), (1 << 30, 1 << 19)]
)
def test_products_of_runs_are_as_exact_as_a_sum(monkeypatch, run_case, elements, product):
    arrays, params = run_case
    monkeypatch.setattr(runs, "_PIECE", elements)
    monkeypatch.setattr(runs, "_PRODUCT", product)
    wide = three(*(a.astype(np.float64) for a in arrays), params)
    used = []
    decide = runs.is_worth_it
    monkeypatch.setattr(runs, "is_worth_it", lambda *a: used.append(decide(*a)) or used[-1])
    for got, expected in zip(three(*arrays, params), wide, strict=True):
        assert got.dtype == np.float32
        assert_allclose(got, expected, rtol=0, atol=2e-6 * np.max(np.abs(expected)))
    assert used == [True] * 3


@pytest.mark.parametrize(
    "other",
    [
        {"dtype": np.dtype(np.float64)},
        {"batch": 8},
        {"shape": (2, 32, 32, 3, 3)},
        {"shape": (1, 32, 32, 5, 3)},
        {"stride": (1, 2)},
        {"padding": ((0, 0), (0, 3))},
        {"dilation": (2, 1)},
    ],
)
def test_products_of_runs_are_for_float32_and_many_neighbours(other):
    asked = {
        "dtype": np.dtype(np.float32),
        "batch": 64,
        "shape": (1, 32, 32, 3, 3),
        "size": (16, 16),
        "stride": (1, 1),
        "padding": ((0, 0), (1, 1)),
        "dilation": (1, 1),
    }
    assert runs.is_worth_it(**asked)
    assert not runs.is_worth_it(**(asked | other))


def test_second_derivatives_along_both_axes_agree_with_differences(square_case):
    second_derivatives_agree_with_differences(square_case)


def test_second_derivatives_of_runs_agree_with_differences(run_case):
    second_derivatives_agree_with_differences(run_case)


def second_derivatives_agree_with_differences(case):
    (x, w, _), params = case

    def loss(x, w):
        return np.sum(conv(x, w, **params) ** 2)

    # The slope in w of the squared gradient in x: a polynomial of degree 4 along a direction, so
    # that its differences, in float64, are exact at a wide step.
    def squared(x, w):
        return np.sum(fg.grad(loss)(x, w) ** 2)

    direction = np.random.default_rng(1).normal(size=w.shape)
    wide_x, wide_w = x.astype(np.float64), w.astype(np.float64)
    values = [squared(wide_x, wide_w + h * direction) for h in (-2, -1, 1, 2)]
    expected = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / 12
    got = np.sum(fg.grad(squared, argnums=1)(x, w) * direction)
    assert_allclose(got, expected, rtol=2e-4)


def test_infinities_and_nan_stay_where_they_belong(fast_case):
    (x, w, y), params = fast_case
    x[0, 0, 4, 1], x[1, 0, 5, 0] = np.inf, np.nan
    y[0, 0, 2, 2], y[1, 0, 3, 3] = np.inf, np.nan
    with np.errstate(invalid="ignore"):
        wide = three(*(a.astype(np.float64) for a in (x, w, y)), params)
        narrow = three(x, w, y, params)
    for got, expected in zip(narrow, wide, strict=True):
        assert_array_equal(np.isnan(got), np.isnan(expected))
        assert_array_equal(np.isinf(got), np.isinf(expected))
        assert not np.all(np.isnan(got))


def test_float64_is_never_computed_by_winograd():
    shape = (1, 64, 64, 3, 3)
    size, ones = (64, 64), (1, 1)
    assert winograd.is_worth_it(np.dtype(np.float32), 64, shape, size, ones, ones)
    assert not winograd.is_worth_it(np.dtype(np.float64), 64, shape, size, ones, ones)
    assert tiles.is_worth_it(np.dtype(np.float32), 64, shape, size, ones, ones)
    assert not tiles.is_worth_it(np.dtype(np.float64), 64, shape, size, ones, ones)


@pytest.mark.parametrize("shape", [(1, 64, 64, 3, 2), (1, 8, 64, 3, 3), (1, 64, 64, 3, 3, 3)])
def test_products_along_both_axes_are_for_many_channels_and_squares(shape):
    ones = (1,) * (len(shape) - 3)
    assert not tiles.is_worth_it(np.dtype(np.float32), 64, shape, (64,) * len(ones), ones, ones)


@pytest.mark.parametrize("name", ["stride", "dilation"])
def test_products_along_both_axes_are_for_neighbours(name):
    steps = {"stride": (1, 1), "dilation": (1, 1)} | {name: (1, 2)}
    assert not tiles.is_worth_it(np.dtype(np.float32), 64, (1, 64, 64, 3, 3), (64, 64), **steps)


# Dtypes, layout, memory


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (np.float32, np.float32, np.float32),
        (np.float16, np.float16, np.float16),
        (np.float32, np.float64, np.float64),
        (np.complex64, np.float32, np.complex64),
        (np.int64, np.int8, np.float64),
        (np.bool_, np.float64, np.float64),
    ],
)
def test_dtype_is_that_of_products(first, second, expected):
    x, w = np.ones((1, 1, 3, 3), first), np.ones((1, 1, 2, 2), second)
    out = conv(x, w, **PLAIN)
    assert out.dtype == expected
    assert_array_equal(out, np.full((1, 1, 2, 2), 4))


def test_half_precision_is_summed_in_single():
    # Beyond 2048, float16 does not count by ones.
    x, w = np.ones((1, 2052, 1, 1), np.float16), np.ones((1, 2052, 1, 1), np.float16)
    assert conv(x, w, **PLAIN)[0, 0, 0, 0] == 2052


def test_complex_gradient_is_not_conjugated():
    # f = z * w, holomorphic: the pullback of 1 to z is w
    z, w = np.array([[[[1 + 2j]]]]), np.array([[[[3 - 1j]]]])
    _, pullback = fg.vjp(lambda z, w: conv(z, w, **PLAIN), z, w)
    z_bar, w_bar = pullback(np.array([[[[1.0 + 0j]]]]))
    assert_array_equal(z_bar, w)
    assert_array_equal(w_bar, z)


def test_layers_in_a_row_change_the_layout_once():
    x, w = np.ones((4, 2, 6, 6)), np.ones((2, 2, 3, 3))
    out = np.maximum(conv(x, w, **PLAIN), 0)
    assert np.moveaxis(out, 0, -1).flags.c_contiguous


@pytest.mark.parametrize("shape", [(64, 32, 14, 14), (64, 16, 14, 14)], ids=["tiles", "rows"])
def test_images_are_laid_out_once_for_value_and_gradient(monkeypatch, shape):
    moved = []

    def counted(target, source):
        if source.strides[-1] > source.itemsize:
            moved.append(source.shape)
        copy(target, source)

    copy = layout.copy
    monkeypatch.setattr(layout, "copy", counted)
    x, w = np.ones(shape, np.float32), np.ones((32, shape[1], 3, 3), np.float32)

    def loss(x, w):
        return np.sum(fg.nn.functional.conv2d(x, w, padding=1))

    fg.grad(loss, argnums=(0, 1))(x, w)
    assert len(moved) == 1


def test_gradients_are_no_views(fast_case):
    # A view would be copied when it is returned to the user.
    (x, w, y), params = fast_case
    assert conv(x, w, **params).base is None
    assert conv_input(y, w, size=x.shape[2:], **params).base is None


@pytest.mark.parametrize("order", [(1, 2, 3, 0), (2, 3, 0, 1)])
def test_in_order_moves_the_axes_in_memory(order):
    x = np.random.default_rng(0).normal(size=(40, 24, 9, 8))
    out = in_order(x, axes=order)
    assert_array_equal(out, x)
    assert np.transpose(out, order).flags.c_contiguous
    assert out.base is None
    assert in_order(out, axes=order) is out


def test_in_order_copies_what_was_turned_around():
    x = np.random.default_rng(0).normal(size=(40, 24, 9, 8))[::-1, ::-1, :, ::-1]
    for order in ((1, 2, 3, 0), (2, 3, 0, 1), (1, 3, 2, 0)):
        assert_array_equal(in_order(x, axes=order), x)


def test_result_is_its_own_memory():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(3, 2, 6, 6)), rng.normal(size=(2, 2, 3, 3))
    padded = {**PLAIN, "padding": ((1, 1), (2, 2))}
    first = three(x, w, conv(x, w, **padded), padded)
    kept = [part.copy() for part in first]
    three(x + 1, w - 1, conv(x - 2, w, **padded), padded)
    for part, before in zip(first, kept, strict=True):
        assert_array_equal(part, before)
        assert part.flags.writeable
        assert not np.shares_memory(part, x)
        assert not np.shares_memory(part, w)


def test_arguments_are_not_written_to():
    x, w = np.ones((1, 2, 4, 4)), np.ones((2, 2, 3, 3))
    x.flags.writeable = w.flags.writeable = False
    three(x, w, np.ones((1, 2, 2, 2)), PLAIN)
    assert np.all(x == 1)
    assert np.all(w == 1)


def test_memory_to_work_in_is_used_again_and_not_shared():
    with scratch() as first:
        first.empty((1000,), np.float64)
    with scratch() as second, scratch() as inner:
        a = second.empty((3, 5), np.float32)
        b = second.zeros((7,), np.float64)
        c = inner.zeros((7,), np.float64)
        assert a.base is not None  # a piece of what the first call made it keep
        for x, y in itertools.combinations((a, b, c), 2):
            assert not np.shares_memory(x, y)


def test_threads_compute_side_by_side():
    rng = np.random.default_rng(0)
    images = [rng.normal(size=(4, 3, 9, 9)) for _ in range(4)]
    w = rng.normal(size=(3, 3, 3, 3))
    expected = [conv(x, w, **PLAIN) for x in images]
    wrong = []

    def work(k):
        for _ in range(20):
            if not np.array_equal(conv(images[k], w, **PLAIN), expected[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# Batching


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)], ids=str)
def test_vmap_of_grouped_convolutions_is_a_loop(axes):
    rng = np.random.default_rng(0)
    params = {"stride": (2, 1), "padding": ((1, 0), (0, 1)), "dilation": (1, 2), "groups": 2}
    x, w = rng.normal(size=(3, 2, 4, 5, 6)), rng.normal(size=(3, 6, 2, 2, 2))
    args = [a if axis == 0 else a[0] for a, axis in zip((x, w), axes, strict=True)]

    def loss(x, w):
        return np.sum(np.sin(conv(x, w, **params)))

    got = fg.vmap(fg.grad(loss, argnums=(0, 1)), in_axes=axes)(*args)
    for k in range(3):
        one = [a[k] if axis == 0 else a for a, axis in zip(args, axes, strict=True)]
        for part, expected in zip(got, fg.grad(loss, argnums=(0, 1))(*one), strict=True):
            assert_allclose(part[k], expected, 1e-12, 1e-13)


def test_vmap_of_kernels_is_one_convolution():
    calls = []

    def count(*args):
        calls.append(1)
        return correlate(*args)

    correlate = lowering._correlate
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lowering, "_correlate", count)
        fg.vmap(lambda x, w: conv(x, w, **PLAIN))(
            np.ones((5, 2, 3, 4, 4)), np.ones((5, 2, 3, 2, 2))
        )
    assert len(calls) == 1
