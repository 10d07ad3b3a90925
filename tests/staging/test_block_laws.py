"""The law of `jit` in blocks of three elements or rows: the same values, for every primitive."""

from __future__ import annotations

import numpy as np
import pytest
from cases import SMOOTH, WITH_VALUES, generator, law, random_like
from recorded import assert_near, assert_same, called, elsewhere, first_of_each

import funcgrad as fg
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
    out = case.floating(*case.values)
    weights = tuple(random_like(generator(case.name, "weights"), x) for x in out)

    def pulled(*values):
        _, pullback = fg.vjp(case.floating, *values)
        return pullback(weights)

    compiled = jit(pulled)
    try:
        compiled(*case.values)
    except (ShapeError, TracerValueError):
        return
    values = elsewhere(case)
    assert_near(compiled(*values), pulled(*values))
