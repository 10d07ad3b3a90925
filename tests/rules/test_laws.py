"""The laws that every rule obeys, checked on every sample of every primitive.

What the laws compare with is NumPy itself, finite differences, and one mode with another: never a
formula. The cases are those of cases.py; what is declared and has no sample fails. The laws of
`vmap` are in test_batching_laws.py.
"""

from __future__ import annotations

import functools
import gc

import numpy as np
import pytest
from cases import (
    BOTH,
    BROKEN,
    DERIVED,
    NARROW,
    SMOOTH,
    TWICE,
    WITH_VALUES,
    Case,
    cube_jvp,
    cube_vjp,
    directions,
    forgetful_vjp,
    generator,
    law,
    random_like,
    recast,
    variant,
)

import funcgrad as fg
from funcgrad import tree
from funcgrad.core.elementwise import Elementwise
from funcgrad.core.level import TracerBase
from funcgrad.core.primitive import DECLARED, Primitive, Sample
from funcgrad.testing.differences import Point

FIRST = {"rtol": 1e-7, "atol": 1e-8}  # of differences, float64
SECOND = {"rtol": 1e-5, "atol": 1e-6}


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


# Helpers of the laws


def inner(a, b):
    """Return the real part of the bilinear product, and the sum of the absolute terms."""
    total, size = 0.0, 0.0
    for x, y in zip(a, b, strict=True):
        terms = np.real(np.multiply(x, y, dtype=np.result_type(np.asarray(x), np.float64)))
        total, size = total + np.sum(terms), size + np.sum(np.abs(terms))
    return total, size


def assert_identical(got, expected):
    """The same types, containers, dtypes, shapes and bits."""
    assert type(got) is type(expected)
    if isinstance(expected, list | tuple):
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            assert_identical(a, b)
    elif hasattr(expected, "dtype") and expected.dtype.kind != "O":
        assert got.dtype == expected.dtype
        assert got.shape == expected.shape
        if np.asarray(got).tobytes() != np.asarray(expected).tobytes():
            # Bits may differ where both are NaN, of which there are many; nowhere else.
            np.testing.assert_array_equal(got, expected)
            for part in (np.real, np.imag) if expected.dtype.kind in "fc" else ():
                a, b = part(got), part(expected)
                assert np.all(np.isnan(b) | (np.signbit(a) == np.signbit(b)))
    else:
        assert repr(got) == repr(expected)


def vector(leaves):
    return np.concatenate([np.zeros(0), *(np.ravel(leaf) for leaf in leaves)])


def holds_tracer(value):
    return any(isinstance(leaf, TracerBase) for leaf in tree.leaves(value))


# The laws


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_everything_declared_has_samples_or_a_reason(name):
    made = DECLARED[name]
    if name in BROKEN:
        raise BROKEN[name]
    assert (
        isinstance(made, Elementwise)
        or made.samples is not None
        or getattr(made, "reason", None) is not None
    ), f"{name} has no samples"


@law(BOTH + NARROW)
def test_value_is_that_of_numpy_under_every_transform(case):
    expected = case(*case.values)
    dots = directions(case)
    assert_identical(fg.vjp(case, *case.values)[0], expected)
    assert_identical(fg.jvp(case, case.values, dots)[0], expected)
    assert_identical(fg.linearize(case, *case.values)[0], expected)


@law(BOTH)
def test_value_is_that_of_numpy_under_nested_transforms(case):
    expected = case(*case.values)
    dots = directions(case)

    def pulled(*values):
        return fg.vjp(case, *values)[0]

    def pushed(*values):
        return fg.jvp(case, values, dots)[0]

    assert_identical(fg.vjp(pulled, *case.values)[0], expected)
    assert_identical(fg.vjp(pushed, *case.values)[0], expected)
    assert_identical(fg.jvp(pulled, case.values, dots)[0], expected)
    assert_identical(fg.linearize(pushed, *case.values)[0], expected)


@law([case for case in BOTH if case.reason is not None])
def test_discrete_results_are_plain_while_traced(case):
    seen = []

    def observe(*values):
        out = case(*values)
        seen.append(holds_tracer(out))
        return sum((np.sum(x) * 0 for x in values), 0.0)

    fg.vjp(observe, *case.values)
    fg.jvp(observe, case.values, directions(case))
    assert seen == [False, False]


@law(SMOOTH)
def test_jvp_matches_differences(case):
    dots = directions(case)
    _, out_dot = fg.jvp(case.floating, case.values, dots)
    expected = Point(case, case.values).differences(dots, None)
    np.testing.assert_allclose(vector(out_dot), expected, **FIRST)


@law(DERIVED)
def test_vjp_is_the_transpose_of_jvp(case):
    dots = directions(case)
    out, pullback = fg.vjp(case.floating, *case.values)
    _, out_dot = fg.jvp(case.floating, case.values, dots)
    bars = directions(case, out)
    pulled = pullback(bars)
    if all(np.all(np.isfinite(x)) for x in (*case.values, *out)):
        assert not any(np.any(np.isnan(x)) for x in (*pulled, *out_dot))
    got, size = inner(pulled, dots)
    expected, other = inner(bars, out_dot)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12 * (size + other) + 1e-300)


@law(DERIVED)
def test_linearize_gives_the_tangents_of_jvp(case):
    dots = directions(case)
    _, out_dot = fg.jvp(case.floating, case.values, dots)
    _, pushforward = fg.linearize(case.floating, *case.values)
    for _ in range(2):
        for got, expected in zip(pushforward(*dots), out_dot, strict=True):
            assert_identical(got, expected)


@functools.cache
def gradient_of(case):
    """Return the gradient of a random combination of the outputs, and its differences."""
    bars = directions(case, case.floating(*case.values))

    def gradient(*values):
        return fg.vjp(case.floating, *values)[1](bars)

    point = Point(gradient, case.values, analytic=False)
    return gradient, point.differences(directions(case), None)


@law(TWICE)
def test_second_order_forward_over_reverse_matches_differences(case):
    gradient, expected = gradient_of(case)
    _, got = fg.jvp(gradient, case.values, directions(case))
    np.testing.assert_allclose(vector(got), expected, **SECOND)


@law(TWICE)
def test_second_order_reverse_over_reverse_matches_differences(case):
    gradient, differences = gradient_of(case)
    first, pullback = fg.vjp(gradient, *case.values)
    rng = generator(case.name, case.label, "reverse")
    weights = tuple(random_like(rng, x) for x in first)
    got, size = inner(pullback(weights), directions(case))
    terms = np.real(vector(weights) * differences)
    size += np.sum(np.abs(terms))
    np.testing.assert_allclose(got, np.sum(terms), rtol=0, atol=1e-5 * size + 1e-6)


@law([case for case in TWICE if len(case.values) > 1])
def test_mixed_second_derivatives_are_symmetric(case):
    gradient, _ = gradient_of(case)
    dots = directions(case)
    first = (dots[0], *(None for _ in dots[1:]))
    others = (None, *dots[1:])
    _, across = fg.jvp(gradient, case.values, first)
    _, back = fg.jvp(gradient, case.values, others)
    got, size = inner(across[1:], dots[1:])
    expected, other = inner(back[:1], dots[:1])
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-11 * (size + other) + 1e-13)


@law([case for case in NARROW if case.reason is None and case.sample.order > 0])
def test_narrow_floats_have_the_derivatives_of_wide_ones(case):
    wide = tuple(recast(x, np.float64) for x in case.values)
    dots = directions(case)
    wide_dots = tuple(recast(x, np.float64) for x in dots)
    out, out_dot = fg.jvp(case.floating, case.values, dots)
    out, pullback = fg.vjp(case.floating, *case.values)
    expected_out, expected_dot = fg.jvp(case.floating, wide, wide_dots)
    bars = directions(case, out)
    bars_in = pullback(bars)
    expected_bars = fg.vjp(case.floating, *wide)[1](
        tuple(
            recast(bar, np.float64) if hasattr(y, "dtype") else bar
            for bar, y in zip(bars, expected_out, strict=True)
        )
    )
    for bar, x in zip(bars_in, case.values, strict=True):
        assert type(bar) is type(x)
        assert np.asarray(bar).dtype == np.asarray(x).dtype
    for dot, x in zip(out_dot, out, strict=True):
        assert type(dot) is type(x)
        assert np.asarray(dot).dtype == np.asarray(x).dtype
    narrowest = min((x.dtype for x in case.values if hasattr(x, "dtype")), key=lambda d: d.itemsize)
    tolerance = 2e-2 if narrowest == np.float16 else 1e-4
    if not case.sample.kinks:
        np.testing.assert_allclose(vector(out_dot), vector(expected_dot), tolerance, tolerance)
        np.testing.assert_allclose(vector(bars_in), vector(expected_bars), tolerance, tolerance)


def layouts(values):
    """Yield the same arrays laid out otherwise in memory."""

    def strided(x):
        wide = np.full([2 * n for n in x.shape], np.nan, x.dtype)
        wide[tuple(slice(None, None, 2) for _ in x.shape)] = x
        return wide[tuple(slice(None, None, 2) for _ in x.shape)]

    def reversed_(x):
        back = tuple(slice(None, None, -1) for _ in x.shape)
        return x[back].copy()[back]

    def read_only(x):
        x = x.copy()
        x.flags.writeable = False
        return x

    for change in (np.asfortranarray, strided, reversed_, read_only):
        yield (
            change.__name__.strip("_"),
            tuple(change(x) if isinstance(x, np.ndarray) and x.ndim else x for x in values),
        )


@law(
    [
        case
        for case in WITH_VALUES
        if any(isinstance(x, np.ndarray) and x.ndim and x.size > 1 for x in case.values)
    ]
)
def test_layout_in_memory_does_not_matter(case):
    differentiable = case.reason is None and case.sample.order > 0
    dots = directions(case)
    if differentiable:
        out, pullback = fg.vjp(case.floating, *case.values)
        bars = directions(case, out)
        expected = pullback(bars)
        _, expected_dot = fg.jvp(case.floating, case.values, dots)
    for label, values in layouts(case.values):
        value = case(*values)
        assert_identical(fg.vjp(case, *values)[0], value)
        assert_identical(fg.jvp(case, values, dots)[0], value)
        if differentiable:
            got = fg.vjp(case.floating, *values)[1](bars)
            np.testing.assert_allclose(vector(got), vector(expected), 1e-12, 1e-13, err_msg=label)
            for bar, x in zip(got, values, strict=True):
                assert np.shape(bar) == np.shape(x)
            _, out_dot = fg.jvp(case.floating, values, dots)
            np.testing.assert_allclose(
                vector(out_dot), vector(expected_dot), 1e-12, 1e-13, err_msg=label
            )


@law(DERIVED)
def test_derivatives_are_like_their_primals_and_share_no_memory(case):
    dots = directions(case)
    out, pullback = fg.vjp(case.floating, *case.values)
    bars = directions(case, out)
    pulled = pullback(bars)
    pushed, out_dot = fg.jvp(case.floating, case.values, dots)
    for bar, x in zip(pulled, case.values, strict=True):
        assert type(bar) is type(x)
        assert np.shape(bar) == np.shape(x)
        assert np.asarray(bar).dtype == np.asarray(x).dtype
    for dot, x in zip(out_dot, pushed, strict=True):
        assert type(dot) is type(x)
        assert np.shape(dot) == np.shape(x)
        assert np.asarray(dot).dtype == np.asarray(x).dtype
    fresh = [x for x in (*pulled, *out_dot) if isinstance(x, np.ndarray)]
    others = [x for x in (*case.values, *dots, *bars, *out, *pushed) if isinstance(x, np.ndarray)]
    for position, x in enumerate(fresh):
        assert x.flags.writeable
        for y in (*fresh[position + 1 :], *others):
            assert not np.shares_memory(x, y)


# The laws themselves: each finds a rule that is wrong in its way.


def wrong_factor_jvp(primals, tangents, out):
    return cube_jvp(primals, tangents, out) * (1 + 1e-6)


def wrong_factor_vjp(primals, out):
    pullback = cube_vjp(primals, out)
    return lambda out_bar: pullback(out_bar) * (1 + 1e-9)


def by_memory(x):
    x = np.reshape(np.ravel(x, "K"), x.shape)
    return x * x * x


def nan_vjp(primals, out):
    return lambda out_bar: out_bar * np.nan


@pytest.mark.parametrize(
    ("check", "change"),
    [
        (test_jvp_matches_differences, {"jvp": wrong_factor_jvp}),
        (test_vjp_is_the_transpose_of_jvp, {"vjp": wrong_factor_vjp}),
        (test_vjp_is_the_transpose_of_jvp, {"vjp": nan_vjp}),
        (
            test_second_order_forward_over_reverse_matches_differences,
            {"jvp": cube_jvp, "vjp": forgetful_vjp},
        ),
        (
            test_second_order_reverse_over_reverse_matches_differences,
            {"jvp": cube_jvp, "vjp": forgetful_vjp},
        ),
        (test_value_is_that_of_numpy_under_every_transform, {"forward": lambda x: x**3 + 1e-15}),
        (
            test_value_is_that_of_numpy_under_every_transform,
            {"forward": lambda x: x * x * (x + 0j)},
        ),
        (test_layout_in_memory_does_not_matter, {"forward": by_memory}),
    ],
)
def test_each_law_finds_a_wrong_rule(check, change):
    made = Primitive(change.get("forward", lambda x: x * x * x), name="cube")
    made.def_jvp(change.get("jvp", cube_jvp))
    made.def_vjp(change.get("vjp", cube_vjp))
    case = Case("cube", "0", Sample(np.array([[0.5, -1.5], [2.0, 3.0]]), fun=made), made)
    if "forward" in change:  # what NumPy would compute: without tracers
        case = variant(case, "cube", case.values)
        case.fun = Either(made)
    with pytest.raises(AssertionError):
        check(case)


class Either:
    """The cube on plain arrays, and the primitive on tracers."""

    def __init__(self, made):
        self.made = made

    def __call__(self, x):
        return self.made(x) if isinstance(x, TracerBase) else x * x * x


@law(DERIVED[::23])
def test_no_tracer_outlives_its_transform(case):
    gc.freeze()  # look at what is new only
    dots = directions(case)
    fg.jvp(case.floating, case.values, dots)
    out, pullback = fg.vjp(case.floating, *case.values)
    pullback(directions(case, out))
    fg.linearize(case.floating, *case.values)
    gc.collect()
    left = [found for found in gc.get_objects() if issubclass(type(found), TracerBase)]
    gc.unfreeze()
    assert not left
