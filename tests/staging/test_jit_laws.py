"""The laws of `jit`, checked on samples of every primitive: it gives what the function gives.

To the last bit, with the same dtypes, at the first call and at a second, with other values; and so
do compiled derivatives, up to rounding where what was recorded is longer than what is run eagerly.
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
from funcgrad import jit
from funcgrad.errors import ShapeError, TracerValueError


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


# Which elements there are depends on the values: `jit` refuses these.
COUNTED = {
    "argwhere",
    "bincount",
    "extract",
    "flatnonzero",
    "intersect1d",
    "nonzero",
    "setdiff1d",
    "setxor1d",
    "trim_zeros",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
}


def check_refused(case, error):
    """Raise unless `jit` may refuse a case, as a shape in it depends on values."""
    if case.name not in COUNTED | BY_VALUE and not isinstance(error, ShapeError):
        raise error


@law(first_of_each(CASES, 3))
def test_all_arrays_of_a_call_can_be_arguments(case):
    args, kwargs = case.sample.args, case.sample.kwargs
    try:
        found = jit(lambda: case.fun(*args, **kwargs))()
    except (ShapeError, TracerValueError) as error:
        check_refused(case, error)
        return
    assert_same(found, case.fun(*args, **kwargs))


@law(first_of_each(WITH_VALUES, 3))
def test_compiled_functions_give_the_same_values(case):
    compiled = jit(called(case))
    try:
        found = compiled(*case.values)
    except (ShapeError, TracerValueError) as error:
        check_refused(case, error)
        return
    want = case(*case.values)
    assert_same(found, want)
    kept = [np.copy(leaf) for leaf in fg.tree.leaves(found)]
    values = case.values if case.sample.kinks else elsewhere(case)
    assert_same(compiled(*values), case(*values))
    assert_same(compiled(*values), case(*values))
    assert_same(fg.tree.leaves(found), [np.asarray(leaf) for leaf in kept])


@law(first_of_each(SMOOTH, 1))
def test_compiled_pullbacks_are_right(case):
    pulled = pulled_at(case)
    compiled = jit(pulled)
    try:
        assert_near(compiled(*case.values), pulled(*case.values))
    except (ShapeError, TracerValueError) as error:
        check_refused(case, error)
        return
    values = elsewhere(case)
    assert_near(compiled(*values), pulled(*values))


@law(first_of_each(SMOOTH, 1))
def test_compiled_pushforwards_are_right(case):
    dots = directions(case)

    def pushed(*values):
        _, out_dot = fg.jvp(case.floating, values, dots)
        return out_dot

    compiled = jit(pushed)
    try:
        assert_near(compiled(*case.values), pushed(*case.values))
    except (ShapeError, TracerValueError) as error:
        check_refused(case, error)
        return
    values = elsewhere(case)
    assert_near(compiled(*values), pushed(*values))


@law(KINKS)
def test_compiled_gradients_are_right_where_others_are_not_finite(case):
    """The program of the first call is for finite derivatives; at the second they are not."""
    pulled = pulled_back(case)
    compiled = jit(pulled)
    try:
        compiled(*away_from(case))
        found = compiled(*case.values)
    except (ShapeError, TracerValueError) as error:
        check_refused(case, error)
        return
    assert_near(found, pulled(*case.values))
