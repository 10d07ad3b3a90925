"""The law of `jit` in blocks of three elements or rows: the same values, for every primitive."""

from __future__ import annotations

import numpy as np
import pytest
from cases import SMOOTH, WITH_VALUES, law
from recorded import assert_near, assert_same, called, elsewhere, first_of_each, pulled_at

from funcgrad import jit
from funcgrad.errors import ShapeError, TracerValueError
from funcgrad.staging.passes import blocks


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(blocks, "SMALLEST", 0)
    monkeypatch.setattr(blocks, "FEWEST", 3)
    monkeypatch.setattr(blocks, "MOST", 3)
    with np.errstate(all="ignore"):
        yield


@law(first_of_each(WITH_VALUES, 2))
def test_blocks_give_the_same_values(case):
    def fun(*values):
        return case(*values)

    compiled = jit(called(case))
    try:
        compiled(*case.values)
    except (ShapeError, TracerValueError):  # it is refused, whatever blocks there are
        return
    values = case.values if case.sample.kinks else elsewhere(case)
    for given in (case.values, values):
        assert_same(compiled(*given), fun(*given))


@law(first_of_each(SMOOTH, 1))
def test_blocks_give_the_same_derivatives(case):
    pulled = pulled_at(case)
    compiled = jit(pulled)
    try:
        compiled(*case.values)
    except (ShapeError, TracerValueError):
        return
    values = elsewhere(case)
    assert_near(compiled(*values), pulled(*values))
