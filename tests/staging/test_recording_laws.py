"""The laws of recording, checked on samples of every primitive.

A program gives what the function gives, where it was recorded and elsewhere; so do the programs of
derivatives. What the laws compare with is the function itself, and its derivatives, not recorded.
"""

from __future__ import annotations

import numpy as np
import pytest
from cases import CASES, SMOOTH, WITH_VALUES, directions, law
from recorded import (
    BY_VALUE,
    KINKS,
    assert_near,
    assert_same,
    away_from,
    called,
    elsewhere,
    first_of_each,
    pulled_at,
    pulled_back,
)

import funcgrad as fg
from funcgrad.errors import SpecialisedError


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


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
    pulled = pulled_at(case)
    program = fg.make_program(pulled)(*case.values)
    values = elsewhere(case)
    try:
        found = program(*values)
    except SpecialisedError:
        assert case.name in BY_VALUE
        return
    assert_near(found, pulled(*values))


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
