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
    WITH_VALUES,
    Batch,
    Case,
    cube_jvp,
    cube_vjp,
    directions,
    forgetful_jvp,
    forgetful_vjp,
    generator,
    random_like,
    variant,
)

import funcgrad as fg
from funcgrad import tree
from funcgrad.core import batch as batching
from funcgrad.core.elementwise import Elementwise
from funcgrad.core.level import concrete
from funcgrad.core.primitive import DECLARED, Primitive, Sample
from funcgrad.errors import FuncgradError, MissingRuleError, TracerConversionError


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


@pytest.fixture(autouse=True)
def _no_fallback(request, monkeypatch):
    """Let `vmap` loop where a batching rule fails only in the law of what NumPy refuses."""

    def loop(fun, *args):
        batching.loop(fun, *args)  # what NumPy refuses of one example it may refuse of many
        raise AssertionError(f"a batching rule failed, and {fun} was called in a loop")

    if "refuses" not in request.node.name:
        monkeypatch.setattr("funcgrad.transforms.batching.loop", loop)


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


# What NumPy refuses of one example.


def _lesser(x):
    return x[0] if x.ndim and x.shape[0] else None


def _stacked(x):
    return np.stack([x, x])


def _scalar(x):
    finite = x[np.isfinite(x)]
    return np.asarray(finite[0]) if x.ndim and finite.size else None


def _without_columns(x):
    return x[..., :0] if x.ndim and x.shape[-1] else None


def _without_rows(x):
    return x[:0] if x.ndim > 1 and x.shape[0] else None


CHANGES = {
    "fewer-axes": _lesser,
    "more-axes": _stacked,
    "0d": _scalar,
    "no-columns": _without_columns,
    "no-rows": _without_rows,
}


def changed_cases(case):
    """Yield the case with one of its arrays, or all, of another rank or empty; or another axis."""
    for label, change in CHANGES.items():
        made = [change(np.asarray(x)) for x in case.values]
        for k, x in enumerate(made):
            if x is not None:
                values = [*case.values[:k], x, *case.values[k + 1 :]]
                yield variant(case, f"{label}-{k}", values)
        if len(made) > 1 and all(x is not None for x in made):
            yield variant(case, label, made)
    axis = case.sample.kwargs.get("axis")
    if isinstance(axis, int):
        ndim = np.ndim(case.values[0])
        for wrong in (ndim, -ndim - 1, (0, ndim), (0, 0)):
            sample = Sample(*case.sample.args)
            sample.__dict__.update(case.sample.__dict__, kwargs={**case.sample.kwargs})
            sample.kwargs["axis"] = wrong
            yield Case(case.name, f"{case.label}-axis={wrong}", sample, case.made)


def is_numpys(case):
    """Tell whether the case calls a function of NumPy's, and not one that all ufuncs have."""
    if isinstance(case.made, Elementwise) and case.name not in ("add", "exp", "hypot"):
        return False
    module = getattr(case.fun, "__module__", None) or "numpy"  # a method of a ufunc has none
    if not module.startswith("numpy") or case.name == "polydiv":
        return False  # of some quotients NumPy's polydiv never returns
    return any(case.fun is fun for fun in case.made.overridden)


def few_changes(cases):
    """Yield the first call of each function with each change, and one change of the others."""
    seen = set()
    for number, case in enumerate(cases):
        for count, made in enumerate(changed_cases(case)):
            change = made.label.partition("-")[2]
            fresh = (case.name, change) not in seen
            if fresh or count == number % 11:
                seen.add((case.name, change))
                yield Batch(made, range(len(made.values)))


CHANGED = list(few_changes(case for case in WITH_VALUES if case.sample.batch and is_numpys(case)))


def _is_builtin(kind):
    return kind.__module__ == "builtins" and kind not in (object, BaseException, Exception)


@batch_law(CHANGED)
def test_what_numpy_refuses_of_one_example_it_refuses_of_many(batch):
    together = fg.vmap(batch.case, batch.in_axes)
    try:
        expected = batch.loop(batch.case)
    except Exception as error:
        kinds = tuple(filter(_is_builtin, type(error).__mro__))
        with pytest.raises((type(error), FuncgradError)) as raised:
            together(*batch.values)
        assert isinstance(raised.value, kinds)
    else:
        try:
            got = together(*batch.values)
        except (MissingRuleError, TracerConversionError):
            return  # what has no rule says so
        assert_like_a_loop(got, expected, 1e-14)


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
