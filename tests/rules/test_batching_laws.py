"""The laws of `vmap`, checked on every sample of every primitive: it is a loop over the examples.

So are its derivatives, and derivatives are where it is mapped over them. What the laws compare with
is that loop, in Python.
"""

from __future__ import annotations

import numpy as np
import pytest
from cases import (
    BATCHES,
    COMPLEX_BATCHES,
    Batch,
    Case,
    cube_jvp,
    cube_vjp,
    directions,
    forgetful_jvp,
    forgetful_vjp,
    generator,
    random_like,
)

import funcgrad as fg
from funcgrad import tree
from funcgrad.core.level import concrete
from funcgrad.core.primitive import DECLARED, Primitive, Sample


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


# Their dtype, or shape, depends on the values, and without examples there are none.
BY_VALUE = {"eig", "eigvals", "polydiv", "real_if_close", "roots"}
BY_VALUE |= {name for name in DECLARED if name.startswith("emath_")}


def is_derived(batch):
    return batch.case.reason is None and batch.case.sample.order > 0


def assert_like_a_loop(got, expected, noise=0.0):
    """Agree to rounding, of the largest element, and of numbers of size 1 if that makes `noise`."""
    got = tree.leaves(got)
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        assert isinstance(a, np.ndarray)
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        finite = np.abs(b[np.isfinite(b)])
        np.testing.assert_allclose(a, b, 1e-12, 1e-12 * np.max(finite, initial=0.0) + noise)


def batch_law(batches):
    return pytest.mark.parametrize("batch", batches, ids=repr)


@batch_law(BATCHES + COMPLEX_BATCHES)
def test_vmap_is_a_loop(batch):
    expected = batch.loop(batch.case)
    assert_like_a_loop(fg.vmap(batch.case, batch.in_axes)(*batch.values), expected)
    last = tuple(axis if axis is None else -1 for axis in batch.in_axes)
    moved = batch.change(lambda x: np.moveaxis(x, 0, -1))
    assert_like_a_loop(fg.vmap(batch.case, last)(*moved), expected)


@batch_law([batch for batch in BATCHES if batch.case.name not in BY_VALUE])
def test_vmap_of_no_examples_has_the_shape_and_dtype_of_one(batch):
    none = batch.change(lambda x: x[:0])
    got = tree.leaves(fg.vmap(batch.case, batch.in_axes)(*none))
    for a, b in zip(got, batch.loop(batch.case), strict=True):
        assert a.shape == (0, *b.shape[1:])
        assert a.dtype == b.dtype


@batch_law(BATCHES)
def test_vmap_of_vmap_is_a_loop_in_a_loop(batch):
    twice = batch.change(lambda x: np.stack([x, x[::-1], x], axis=1))
    inner = fg.vmap(batch.case, batch.in_axes)
    outer = fg.vmap(inner, tuple(axis if axis is None else 1 for axis in batch.in_axes))
    expected = [np.stack([x, x[::-1], x]) for x in batch.loop(batch.case)]
    assert_like_a_loop(outer(*twice), expected)


@batch_law([batch for batch in BATCHES + COMPLEX_BATCHES if is_derived(batch)])
def test_vmap_of_derivatives_is_a_loop(batch):
    case = batch.case
    dots, bars = directions(case), directions(case, case.floating(*case.values))

    def pushed(*values):
        return fg.jvp(case.floating, values, dots)[1]

    def pulled(*values):
        return fg.vjp(case.floating, *values)[1](bars)

    for derivative in (pushed, pulled):
        got = fg.vmap(derivative, batch.in_axes)(*batch.values)
        assert_like_a_loop(got, batch.loop(derivative), 1e-14)


@batch_law([batch for batch in BATCHES + COMPLEX_BATCHES if is_derived(batch)])
def test_derivatives_of_vmap_are_those_of_a_loop(batch):
    case = batch.case
    together = fg.vmap(case.floating, batch.in_axes)
    dots = directions(case, batch.values)
    out, out_dot = fg.jvp(together, batch.values, dots)
    rng = generator(case.name, case.label, "cotangents")
    bars = tuple(random_like(rng, x) for x in out)
    pulled = fg.vjp(together, *batch.values)[1](bars)
    pushes, pulls = [], []
    for number in (0, 1):
        values = batch.example(number)
        pushes.append(fg.jvp(case.floating, values, batch.example(number, dots))[1])
        made, pullback = fg.vjp(case.floating, *values)
        pulls.append(
            pullback(tuple(like_scalar(bar[number], x) for bar, x in zip(bars, made, strict=True)))
        )
    stacked = [np.stack(parts) for parts in zip(*pushes, strict=True)]
    assert_like_a_loop(out_dot, stacked, 1e-14)
    for bar, parts, axis in zip(pulled, zip(*pulls, strict=True), batch.in_axes, strict=True):
        expected = np.stack(parts)
        if axis is None:
            bar, expected = np.asarray(bar), np.asarray(np.sum(expected, axis=0))
        assert_like_a_loop([bar], [expected], 1e-14)


def like_scalar(bar, x):
    """Return a NumPy scalar as a Python number, where `x` is one."""
    return bar if hasattr(x, "dtype") else bar.item()


# The laws themselves: each finds a rule that is wrong in its way.


@pytest.mark.parametrize(
    ("check", "change"),
    [
        (test_vmap_is_a_loop, {"batch": lambda x: x[:1] ** 3 + 0 * x}),
        (test_vmap_is_a_loop, {"batch": lambda x: np.float32(x**3)}),
        (test_vmap_is_a_loop, {"batch": lambda x: x[..., :1] ** 3}),
        (test_vmap_of_no_examples_has_the_shape_and_dtype_of_one, {"batch": lambda x: x[:0, 0]}),
        (test_vmap_of_vmap_is_a_loop_in_a_loop, {"batch": lambda x: concrete(x) ** 3}),
        (test_vmap_of_derivatives_is_a_loop, {"jvp": forgetful_jvp}),
        (test_vmap_of_derivatives_is_a_loop, {"vjp": forgetful_vjp}),
        (test_derivatives_of_vmap_are_those_of_a_loop, {"batch": lambda x: concrete(x) ** 3}),
    ],
)
def test_each_law_of_batching_finds_a_wrong_rule(check, change):
    made = Primitive(lambda x: x * x * x, name="cube")
    made.def_jvp(change.get("jvp", cube_jvp))
    made.def_vjp(change.get("vjp", cube_vjp))
    rule = change.get("batch", lambda x: x * x * x)
    made.def_batch(lambda args, batched: rule(*args))
    case = Case("cube", "0", Sample(np.array([[0.5, -1.5], [2.0, 3.0]]), fun=made), made)
    with pytest.raises((AssertionError, ValueError)):
        check(Batch(case, {0}))
