"""Passes that leave out what need not be computed: what they leave, and what they must not touch.

Each program is recorded as `jit` does, so that it is known how arrays lie in memory.
"""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.core.level import Origin
from funcgrad.staging.passes.common import with_common_subexpressions
from funcgrad.staging.passes.constants import with_constants_folded
from funcgrad.staging.passes.dead_code import without_dead_code
from funcgrad.staging.passes.identities import with_identities
from funcgrad.staging.passes.pipeline import PASSES, optimised, stages
from funcgrad.staging.passes.rewriting import without_regions
from funcgrad.staging.record import record
from funcgrad.staging.strict import StrictTrace


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


X = np.array([[1.5, -0.0, np.nan], [np.inf, -2.0, 0.0]])


def recorded(fun, *args):
    """Return the program of a call, as `jit` records it, and the layouts."""
    trace = StrictTrace(Origin("jit", fun), list)
    return record(fun, args, {}, trace.origin, trace, integers=True), trace.layouts


def after(improve, fun, *args):
    """Return the names of the operations that a pass leaves; check that it gives the same."""
    program, layouts = recorded(fun, *args)
    made = improve(program, layouts)
    got, want = made(*args), program(*args)
    for a, b in zip(fg.tree.leaves(got), fg.tree.leaves(want), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
        assert np.asarray(a).dtype == np.asarray(b).dtype
    return [equation.name for equation in without_dead_code(made).equations]


# Common subexpressions


@pytest.mark.parametrize(
    ("fun", "names"),
    [
        (lambda x: np.sin(x) + np.sin(x), ["sin", "add"]),
        (lambda x: np.sin(x * 2.0) + np.sin(x * 2.0), ["multiply", "sin", "add"]),
        (lambda x: x.T @ x + x.T @ x, ["transpose", "matmul", "add"]),
        (lambda x: x[:, 0] + x[:, 0], ["getitem", "add"]),
        (lambda x: np.sum(x, 0) + np.sum(x, axis=0), ["reduce_sum", "add"]),
    ],
)
def test_what_is_the_same_is_computed_once(fun, names):
    assert after(with_common_subexpressions, fun, np.ones((2, 3))) == names


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.sin(x) + np.cos(x),
        lambda x: x * 2 + x * 2.0,
        lambda x: x * 0.0 - x * -0.0,
        lambda x: x[:, 0] + x[:, 1],
        lambda x: np.sum(x, 0) + np.sum(x, 0, keepdims=True),
        lambda x: (x - 1) * (1 - x),
        lambda x: np.add(x, True) * np.add(x, 1),
    ],
)
def test_what_differs_is_computed_twice(fun):
    assert len(after(with_common_subexpressions, fun, np.ones((2, 3)))) == 3


def test_calls_that_may_do_more_are_not_merged():
    calls = []

    def noted(x):
        calls.append(1)
        return x

    def fun(x):
        spec = fg.ShapeDtypeStruct((2,), np.float64)
        return fg.pure_callback(noted, spec, x) + fg.pure_callback(noted, spec, x)

    compiled = fg.jit(fun)
    compiled(np.ones(2))
    calls.clear()
    compiled(np.ones(2))
    assert len(calls) == 2


# Identities


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: x * 1,
        lambda x: 1.0 * x,
        lambda x: x / 1,
        lambda x: x - 0.0,
        lambda x: x + -0.0,
        lambda x: np.negative(-x),
        lambda x: x.T.T,
        lambda x: x.transpose(0, 1),
        lambda x: np.swapaxes(np.swapaxes(x, 0, 1), 0, 1),
        lambda x: x.reshape(2, 3),
        lambda x: x.reshape(6).reshape(2, 3),
        lambda x: np.broadcast_to(x, (2, 3)),
        lambda x: x.astype(float),
        lambda x: fg.stop_gradient(x),
    ],
)
def test_what_changes_nothing_is_left_out(fun):
    assert after(with_identities, lambda x: np.sin(fun(np.cos(x))), X) == ["cos", "sin"]


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: x + 0.0,
        lambda x: x + 0,
        lambda x: 0 - x,
        lambda x: 1 / x,
        lambda x: x - -0.0,
        lambda x: x * -1,
        lambda x: x * np.ones(3),
        lambda x: x.astype(np.float32),
        lambda x: x.T,
        lambda x: x.reshape(3, 2),
        lambda x: np.broadcast_to(x, (1, 2, 3)),
    ],
)
def test_what_changes_something_stays(fun):
    assert len(after(with_identities, lambda x: np.sin(fun(np.cos(x))), X)) == 3


def test_complex_products_with_one_stay():
    z = np.array([complex(np.inf, 0.0), complex(-0.0, -0.0)])
    assert "multiply" in after(with_identities, lambda z: (z + z) * 1, z)


def test_a_float_of_an_integer_array_stays():
    assert "multiply" in after(with_identities, lambda x: (x + x) * 1.0, np.arange(3))
    assert after(with_identities, lambda x: (x + x) * 1 + 0, np.arange(3)) == ["add"]


def test_identities_of_what_identities_gave():
    def fun(x):
        x = np.cos(x)
        return np.sin(np.negative(-(x * 1))) + (x / 1).T.T.reshape(6).reshape(3, 2).T

    assert after(with_identities, fun, X) == ["cos", "sin", "reshape", "transpose", "add"]


def test_what_lies_in_memory_in_another_order_stays():
    """A sum of it goes in another order."""
    names = after(with_identities, lambda x: np.sum(x[:, ::2] * 1), np.ones((4, 8)))
    assert names == ["getitem", "multiply", "reduce_sum"]


def test_scalars_keep_their_kind():
    compiled = fg.jit(lambda x: x * 1)
    assert type(compiled(np.array(2.0))) is np.float64
    assert type(compiled(2)) is int


def test_reshapes_of_reshapes_are_one():
    def fun(x):
        return np.sin(x).reshape(6).reshape(3, 2)

    assert after(with_identities, fun, X) == ["sin", "reshape"]


# Constants


def test_uniform_arrays_are_numbers():
    ones, table = np.full((2, 3), 2.0), np.arange(3.0)
    program, layouts = recorded(lambda x: (np.sin(x) * ones + table) * ones, X)
    made = without_dead_code(with_constants_folded(program, layouts))
    assert [constant.var.shape for constant in made.constants] == [(3,)]
    np.testing.assert_array_equal(made(X), program(X))


@pytest.mark.parametrize(
    "constant",
    [
        np.full((4, 3), 2.0)[:, None],
        np.array([0.0, -0.0, 0.0]),
        np.array([np.nan, np.nan, np.nan]),
        np.full(3, 2.0, np.float32),
    ],
    ids=["stretches", "zeros of both signs", "not a number", "of another dtype"],
)
def test_arrays_that_are_no_numbers_stay(constant):
    program, layouts = recorded(lambda x: x * constant, X)
    made = with_constants_folded(program, layouts)
    assert len(without_dead_code(made).constants) == 1


def test_what_becomes_constant_is_computed_before():
    def fun(x):
        zeros = np.zeros_like(x)
        return x + np.exp(zeros) * 3

    program, layouts = recorded(fun, np.ones(3))
    made = optimised(program, layouts)
    assert [equation.name for equation in made.equations] == ["add"]


# All of them


def test_regions_are_left_out():
    program, layouts = recorded(fg.checkpoint(lambda x: np.sin(np.cos(x))), X)
    assert without_regions(program, layouts).regions == ()


def test_stages_show_the_program_after_each_pass():
    program, layouts = recorded(lambda x: (np.sin(x) * 1 + np.sin(x), np.cos(x))[0], X)
    found = list(stages(program, layouts))
    assert [name for name, _ in found] == [name for name, _ in PASSES]
    assert [e.name for e in found[-1][1].equations] == ["sin", "add"]
    assert found[1][1].equations[0].name == "sin"


def test_notes_stay_where_they_are():
    def fun(x):
        y = np.sin(x) * 1
        return fg.cond(np.sum(y) > 0, lambda y: y + np.sin(x), lambda y: y, y)

    compiled = fg.jit(fun)
    for sign in (1.0, -1.0, 1.0):
        x = np.full(3, sign)
        np.testing.assert_array_equal(compiled(x), fun(x))


# Lowering


def test_relu_is_a_maximum_that_is_written_in_place():
    compiled = fg.jit(lambda x: fg.nn.functional.relu(np.sin(x)) * 2)
    text = compiled.lower(X).as_source()
    assert "np.maximum(a, c0, out=t0)" in text
    np.testing.assert_array_equal(compiled(X), np.maximum(np.sin(X), 0) * 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.complex64, np.int32])
@pytest.mark.parametrize("options", [{}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}])
def test_means_are_those_of_numpy(dtype, options):
    x = np.random.default_rng(0).normal(size=(37, 41)) * 100
    x = x.astype(dtype)
    got, want = fg.jit(lambda x: np.mean(x, **options))(x), np.mean(x, **options)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def specials(dtype, size):
    x = np.random.default_rng(1).normal(size=size) * 100
    x = x.astype(dtype)
    if np.dtype(dtype).kind == "f":
        x[:6] = [np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0]
    return x


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.float16])
@pytest.mark.parametrize(
    "fun",
    [
        lambda m, x, y: np.where(m, x, y),
        lambda m, x, y: np.where(m, x, 0),
        lambda m, x, y: np.where(m, 0, x),
        lambda m, x, y: np.where(m, x, -0.0),
        lambda m, x, y: np.where(m, x, 1),
        lambda m, x, y: np.where(m, x, x),
        lambda m, x, y: np.where(m, np.where(m, y, 0), x) + np.where(m, x, 0),
    ],
)
def test_where_of_large_arrays_is_the_same_to_the_last_bit(fun, dtype):
    x, y = specials(dtype, 5000), specials(dtype, 5000)[::-1].copy()
    for mask in (x > y, np.zeros(5000, bool), np.ones(5000, bool)):
        got, want = fg.jit(fun)(mask, x, y), fun(mask, x, y)
        assert got.dtype == want.dtype
        assert got.tobytes() == want.tobytes()


def test_where_of_large_arrays_is_done_by_bits():
    x = np.ones((50, 100))
    text = fg.jit(lambda x: np.where(x > 0, x, 0)).lower(x).as_source()
    assert "np.bitwise_and" in text
    assert "= np.where" not in text
    for other in (np.ones((50, 50, 2)), np.ones(50)):
        text = fg.jit(lambda x, y: np.where(y > 0, x, 0)).lower(other, np.ones(other.shape[-1]))
        assert "= np.where" in text.as_source()
