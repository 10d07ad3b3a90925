"""The laws of recording, checked on samples of every primitive.

A program gives what the function gives, where it was recorded and elsewhere; so do the programs of
derivatives. What the laws compare with is the function itself, and its derivatives, not recorded.
"""

from __future__ import annotations

import numpy as np
import pytest
from cases import (
    CASES,
    DERIVED,
    SMOOTH,
    WITH_VALUES,
    directions,
    generator,
    is_enough,
    law,
    random_like,
)

import funcgrad as fg
from funcgrad import tree
from funcgrad.errors import SpecialisedError


def first_of_each(cases, count):
    """Return the first cases of every primitive, of which there are thousands."""
    found = {}
    for case in cases:
        if is_enough(case) and not case.label.endswith(("complex", "real")):
            found.setdefault(case.name, []).append(case)
    return [case for several in found.values() for case in several[:count]]


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


# The shape, the dtype, or the way to compute the result depends on the values; or (a determinant)
# the matrix of the sample is singular, and the others are not.
BY_VALUE = {
    "det",
    "gradient",
    "histogram_bin_edges",
    "intersect1d",
    "real_if_close",
    "scipy_det",
    "setdiff1d",
    "setxor1d",
    "tally",
    "trim_zeros",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
}


KINKS = [case for case in DERIVED if case.sample.kinks and is_enough(case)]


def elsewhere(case):
    """Return other values for a case, of the same kinds."""
    rng = generator(case.name, case.label)

    def other(x):
        factor = rng.uniform(0.999, 1.001, size=np.shape(x))
        if isinstance(x, np.ndarray):
            return np.asarray(x * factor).astype(x.dtype)
        return type(x)(x * factor)

    return tuple(map(other, case.values))


def assert_same(got, want):
    """Compare to the last bit, with dtypes."""
    got_leaves, treedef = tree.flatten(got)
    want_leaves, want_treedef = tree.flatten(want)
    assert treedef == want_treedef
    for a, b in zip(got_leaves, want_leaves, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def assert_near(got, want):
    """Compare up to rounding: what is shorter for some values is recorded as it is for all."""
    for a, b in zip(tree.leaves(got), tree.leaves(want), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=0)
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14 * scale)


def called(case):
    """Return the case as a plain function, which programs are named by."""

    def fun(*values):
        return case(*values)

    return fun


@law(first_of_each(CASES, 3))
def test_all_arrays_of_a_call_can_be_recorded(case):
    args, kwargs = case.sample.args, case.sample.kwargs
    program = fg.make_program(case.fun)(*args, **kwargs)
    assert_same(program(*args, **kwargs), case.fun(*args, **kwargs))


@law(first_of_each(WITH_VALUES, 2))
def test_a_program_gives_the_same_value_elsewhere(case):
    program = fg.make_program(called(case))(*case.values)
    assert_same(program(*case.values), case(*case.values))
    if case.sample.kinks:
        return
    values = elsewhere(case)
    try:
        found = program(*values)
    except SpecialisedError:
        assert case.name in BY_VALUE
        return
    assert_same(found, case(*values))


@law(first_of_each(SMOOTH, 1))
def test_the_program_of_a_pullback_is_right_elsewhere(case):
    out = case.floating(*case.values)
    weights = tuple(random_like(generator(case.name, "weights"), x) for x in out)

    def pulled(*values):
        _, pullback = fg.vjp(case.floating, *values)
        return pullback(weights)

    program = fg.make_program(pulled)(*case.values)
    values = elsewhere(case)
    try:
        found = program(*values)
    except SpecialisedError:
        assert case.name in BY_VALUE
        return
    assert_near(found, pulled(*values))


def away_from(case):
    """Return values where a case has no kink, of the same kinds, and finite."""
    rng = generator(case.name, case.label)

    def other(x):
        plain = np.where(np.isfinite(x), x, 1.0)
        moved = plain + 0.3 * rng.uniform(0.1, 1, size=np.shape(x))
        moved = moved.astype(np.asarray(x).dtype)
        return moved if isinstance(x, np.ndarray) else type(x)(moved[()])

    return tuple(map(other, case.values))


def pulled_back(case):
    """Return a function that pulls weights back through a case, whatever its shape is there."""

    def pulled(*values):
        out, pullback = fg.vjp(case.floating, *values)
        rng = generator(case.name, "weights")
        return pullback(
            tuple(random_like(rng, np.asarray(np.zeros(np.shape(x), x.dtype))) for x in out)
        )

    return pulled


@law(KINKS)
def test_recorded_with_care_a_gradient_is_right_at_kinks(case):
    """At ties, zeros and infinities, of which there were none when it was recorded."""
    pulled = pulled_back(case)
    program = fg.make_program(pulled, careful=True)(*away_from(case))
    try:
        found = program(*case.values)
    except SpecialisedError:
        assert case.name in BY_VALUE
        return
    assert_near(found, pulled(*case.values))


@law(first_of_each(SMOOTH, 1))
def test_the_program_of_a_pushforward_is_right_elsewhere(case):
    dots = directions(case)

    def pushed(*values):
        _, out_dot = fg.jvp(case.floating, values, dots)
        return out_dot

    program = fg.make_program(pushed)(*case.values)
    values = elsewhere(case)
    try:
        found = program(*values)
    except SpecialisedError:
        assert case.name in BY_VALUE
        return
    assert_near(found, pushed(*values))


@law(first_of_each(SMOOTH, 1))
def test_a_program_can_be_differentiated(case):
    program = fg.make_program(lambda *values: case.floating(*values))(*case.values)
    dots = directions(case)
    _, found = fg.jvp(program, case.values, dots)
    _, want = fg.jvp(case.floating, case.values, dots)
    assert_near(found, want)
