"""Buffers and blocks: where results are written, and how large arrays are gone through."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.core.level import Origin
from funcgrad.staging.backends.numpy import emit
from funcgrad.staging.passes import blocks
from funcgrad.staging.passes.blocks import Block, with_blocks
from funcgrad.staging.passes.pipeline import optimised
from funcgrad.staging.record import record
from funcgrad.staging.strict import StrictTrace

RNG = np.random.default_rng(0)


def prepared(fun, *args):
    """Return the program of a call as it is compiled, with what is known about memory."""
    trace = StrictTrace(Origin("jit", fun), list)
    program = record(fun, args, {}, trace.origin, trace, integers=True)
    return optimised(program, trace.layouts), trace


def source_of(fun, *args):
    program, trace = prepared(fun, *args)
    return emit(program, trace.layouts, trace.aliases)


def assert_compiled_is_same(fun, *args):
    compiled = fg.jit(fun)
    for _ in range(2):
        for got, want in zip(
            fg.tree.leaves(compiled(*args)), fg.tree.leaves(fun(*args)), strict=True
        ):
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)


# Buffers


def test_a_chain_goes_on_in_place():
    source = source_of(lambda x: np.exp(np.sin(np.cos(np.tan(x)))), np.ones(3))
    assert len(source.plan.slots) == 1


def test_what_is_used_later_is_not_written_over():
    def fun(x):
        y = np.sin(x)
        z = np.cos(y)
        return np.exp(z) + y * z

    assert len(source_of(fun, np.ones(3)).plan.slots) >= 2
    assert_compiled_is_same(fun, RNG.normal(size=3))


def test_results_are_not_in_buffers():
    source = source_of(lambda x: (np.sin(x), np.cos(np.sin(x))), np.ones(3))
    assert source.plan.slots == []


def test_views_keep_memory_alive():
    def fun(x):
        y = np.sin(x)
        view = y.T
        z = np.cos(x) * 2 + np.exp(x)
        return z + 1, view @ z

    assert_compiled_is_same(fun, RNG.normal(size=(3, 3)))


def test_a_view_beside_what_it_is_a_view_of():
    def fun(x):
        y = np.sin(x)
        return (y + y.T) * 2 - np.cos(x)

    assert_compiled_is_same(fun, RNG.normal(size=(4, 4)))


def test_views_of_views_of_what_an_identity_replaced():
    def fun(x):
        y = np.sin(x) * 1
        view = y.reshape(2, 2).T
        z = np.cos(x) * 2
        return np.exp(z) + 1, view * 2

    assert_compiled_is_same(fun, RNG.normal(size=4))


def test_memory_is_shared_by_arrays_of_one_size():
    def fun(x):
        y = np.sum(np.sin(x))
        z = np.sum(np.cos(x.reshape(3, 2)) * y)
        return np.exp(x) * z

    source = source_of(fun, np.ones((2, 3)))
    assert len(source.plan.slots) == 1
    assert_compiled_is_same(fun, RNG.normal(size=(2, 3)))


def test_an_operand_that_is_stretched_is_not_written_over():
    def fun(x):
        y = np.sin(x)
        return np.exp(y[None, :] * y[:, None]) * 2

    assert_compiled_is_same(fun, RNG.normal(size=5))


def test_sums_and_products_go_into_buffers():
    source = source_of(lambda x: np.exp(np.sum(x @ x, axis=0)) * 2, np.ones((3, 3)))
    assert "np.matmul(x, x, t" in source.text()
    assert "np.add.reduce(a, 0, None, t" in source.text()


@pytest.mark.parametrize("axes", [(1, 2, 0), (0, 2, 1), (2, 0, 1), (1, 0, 2)])
def test_results_keep_the_order_of_the_axes(axes):
    def fun(x):
        y = np.exp(np.sin(x.transpose(axes)) * 2)
        return y + 1, np.sum(y, axis=0), np.sum(y), np.where(y > 1, y, 0)

    x = RNG.normal(size=(20, 30, 40))
    compiled = fg.jit(fun)
    for got, want in zip(compiled(x), fun(x), strict=True):
        np.testing.assert_array_equal(got, want)
    assert compiled(x)[0].strides == fun(x)[0].strides
    namespace = {}
    exec(compiled.lower(x).as_source(), namespace)
    for got, want in zip(namespace["fun"](x), fun(x), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("shape", [(1, 5, 4), (5, 1, 4), (5, 4, 1), (1, 1, 4), (0, 3, 2)])
def test_axes_of_length_one_and_none(shape):
    def fun(x):
        y = np.sin(x.transpose(1, 2, 0)) * 2
        return np.exp(y) + y, np.sum(y * y, axis=1)

    assert_compiled_is_same(fun, RNG.normal(size=shape))


def test_arrays_with_gaps_are_numpys():
    def fun(x):
        return np.exp(x[:, ::2] * 2) + 1, x[::-1, ::3] - 1

    assert_compiled_is_same(fun, RNG.normal(size=(4, 6)))


# Blocks


@pytest.fixture
def small(monkeypatch):
    """Make blocks of arrays that tests can afford."""
    monkeypatch.setattr(blocks, "SMALLEST", 800)
    monkeypatch.setattr(blocks, "ELEMENTS", 32)


def blocks_of(fun, *args):
    program, trace = prepared(fun, *args)
    made = with_blocks(program, trace.layouts)
    return [
        len(e.operation.equations) if isinstance(e.operation, Block) else e.name
        for e in made.equations
    ]


def chain(x):
    return np.sin(x) * 2 + np.cos(x)


def test_a_chain_is_one_block(small):
    assert blocks_of(chain, np.ones(100)) == [4]
    assert blocks_of(chain, np.ones(10)) == ["sin", "multiply", "cos", "add"]


@pytest.mark.parametrize("shape", [(100,), (128,), (101,), (10, 13), (2, 3, 40), (50, 1, 3)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_blocks_give_the_same(small, shape, dtype):
    x = RNG.normal(size=shape).astype(dtype)
    assert_compiled_is_same(chain, x)
    assert_compiled_is_same(lambda x: (chain(x), np.exp(x) - 1, chain(x) * x), x)


def test_operands_that_are_rows_or_numbers_are_not_cut(small):
    def fun(x, row, a):
        return np.tanh(x * row + 1) * a, np.sum(np.sin(x + row) * 2, axis=0)

    x, row = RNG.normal(size=(60, 4)), RNG.normal(size=4)
    assert blocks_of(fun, x, row, 2.0) == [7, "reduce_sum"]
    assert_compiled_is_same(lambda x, row: fun(x, row, 2.0), x, row)


def test_operands_that_are_columns_are_not_cut_into_rows(small):
    x, column = RNG.normal(size=(60, 4)), RNG.normal(size=(60, 1))
    assert_compiled_is_same(lambda x, c: np.tanh(x * c + 1) * 2 - x, x, column)


def test_what_stands_between_is_done_before_or_after(small):
    def fun(x, y):
        a = np.sin(x)
        total = np.sum(y)
        b = a * 2
        mean = np.sum(b)
        c = b + x
        return c * total, mean

    assert blocks_of(fun, np.ones(100), np.ones(3)) == ["reduce_sum", 4, "reduce_sum"]
    assert_compiled_is_same(fun, RNG.normal(size=100), RNG.normal(size=3))


def test_what_needs_a_sum_of_the_chain_comes_after_it(small):
    def fun(x):
        y = np.exp(x)
        z = y / np.sum(y)
        return np.log(z) * z

    assert_compiled_is_same(fun, RNG.normal(size=200))


def test_blocks_and_views(small):
    def fun(x):
        y = np.sin(x) * 2
        view = y.reshape(10, 20).T
        z = np.cos(x) + np.exp(x) * 3
        return view @ z.reshape(10, 20), np.tanh(z) * 2 + 1

    assert_compiled_is_same(fun, RNG.normal(size=200))


def test_derivatives_are_blocks(small):
    def fun(x):
        return np.sum(np.tanh(x) * x + np.exp(-(x**2)))

    assert_compiled_is_same(fg.value_and_grad(fun), RNG.normal(size=333))


def test_other_arrays_than_the_first_may_lie_otherwise(small):
    compiled = fg.jit(chain)
    x = RNG.normal(size=(20, 30))
    compiled(x)
    for other in (np.asfortranarray(x), x[::-1], np.repeat(x, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(compiled(other), chain(other))


def test_arrays_in_fortran_order_are_done_whole(small):
    x = np.asfortranarray(RNG.normal(size=(20, 30)))
    assert blocks_of(chain, x) == ["sin", "multiply", "cos", "add"]
    assert_compiled_is_same(chain, x)


def test_blocks_are_source_too(small):
    text = fg.jit(chain).lower(np.ones(101)).as_source()
    namespace = {}
    exec(text, namespace)
    x = RNG.normal(size=101)
    np.testing.assert_array_equal(namespace["chain"](x)[0], chain(x))


def test_what_has_to_be_finite_is_checked_on_the_way(small):
    def slope(x):
        return fg.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x) * x, np.sin(x))))(x)

    compiled = fg.jit(slope)
    x = np.abs(RNG.normal(size=300)) + 0.1
    text = compiled.lower(x).as_source()
    assert "_total += np.add.reduce(" in text
    np.testing.assert_array_equal(compiled(x), slope(x))
    x[7] = 0.0
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(compiled(x), slope(x))
