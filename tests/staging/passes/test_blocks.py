"""Blocks: how large arrays are gone through."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from recorded import prepared

import funcgrad as fg
import funcgrad.nn.functional as F
from funcgrad.staging import machine
from funcgrad.staging.backends import threads
from funcgrad.staging.passes import blocks
from funcgrad.staging.passes.blocks import Block, with_blocks

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Make blocks of arrays that tests can afford."""
    monkeypatch.setattr(blocks, "SMALLEST", 800)
    monkeypatch.setattr(blocks, "FEWEST", 32)
    monkeypatch.setattr(blocks, "MOST", 32)


def with_blocks_of(fun, *args):
    program, trace = prepared(fun, *args)
    return with_blocks(program, trace.layouts).equations


def blocks_of(fun, *args):
    """Return what a program does: the name of an operation, or how many there are in a block."""
    return [
        len(list(e.operation.parts)) if isinstance(e.operation, Block) else e.name
        for e in with_blocks_of(fun, *args)
    ]


def assert_compiled_is_same(fun, *args):
    compiled = fg.jit(fun)
    with np.errstate(all="ignore"):
        want = fg.tree.leaves(fun(*args))
    for _ in range(2):
        for got, expected in zip(fg.tree.leaves(compiled(*args)), want, strict=True):
            assert got.dtype == expected.dtype
            assert got.shape == expected.shape
            if isinstance(expected, np.ndarray) and expected.flags.forc:
                assert got.strides == expected.strides
            np.testing.assert_array_equal(got, expected)
            np.testing.assert_array_equal(np.signbit(got.real), np.signbit(expected.real))


def chain(x):
    return np.sin(x) * 2 + np.cos(x)


def test_a_chain_is_one_block():
    assert blocks_of(chain, np.ones(100)) == [4]
    assert blocks_of(chain, np.ones(10)) == ["sin", "multiply", "cos", "add"]


@pytest.mark.parametrize("shape", [(100,), (128,), (101,), (10, 13), (2, 3, 40), (50, 1, 3)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_blocks_give_the_same(shape, dtype):
    x = RNG.normal(size=shape).astype(dtype)
    assert_compiled_is_same(chain, x)
    assert_compiled_is_same(lambda x: (chain(x), np.exp(x) - 1, chain(x) * x), x)


def test_operands_that_are_rows_or_numbers_are_not_cut():
    def fun(x, row, a):
        return np.tanh(x * row + 1) * a, np.sum(np.sin(x + row) * 2, axis=0)

    x, row = RNG.normal(size=(60, 4)), RNG.normal(size=4)
    assert blocks_of(fun, x, row, 2.0) == [8]
    assert_compiled_is_same(lambda x, row: fun(x, row, 2.0), x, row)


def test_what_stands_between_is_done_before_or_after():
    def fun(x, y):
        a = np.sin(x)
        total = np.sum(y)
        b = a * 2
        mean = np.sum(b)
        c = b + x
        return c * total, mean

    assert blocks_of(fun, np.ones(100), np.ones(3)) == ["reduce_sum", 4, "reduce_sum"]
    assert_compiled_is_same(fun, RNG.normal(size=100), RNG.normal(size=3))


def test_what_needs_a_sum_of_the_chain_comes_after_it():
    def fun(x):
        y = np.exp(x)
        z = y / np.sum(y)
        return np.log(z) * z

    assert_compiled_is_same(fun, RNG.normal(size=200))


def test_blocks_and_views():
    def fun(x):
        y = np.sin(x) * 2
        view = y.reshape(10, 20).T
        z = np.cos(x) + np.exp(x) * 3
        return view @ z.reshape(10, 20), np.tanh(z) * 2 + 1

    assert_compiled_is_same(fun, RNG.normal(size=200))


def test_derivatives_are_blocks():
    def fun(x):
        return np.sum(np.tanh(x) * x + np.exp(-(x**2)))

    assert_compiled_is_same(fg.value_and_grad(fun), RNG.normal(size=333))


def test_other_arrays_than_the_first_may_lie_otherwise():
    compiled = fg.jit(chain)
    x = RNG.normal(size=(20, 30))
    compiled(x)
    for other in (np.asfortranarray(x), x[::-1], np.repeat(x, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(compiled(other), chain(other))


def test_blocks_are_source_too():
    text = fg.jit(chain).lower(np.ones(101)).as_source()
    namespace = {}
    exec(text, namespace)
    x = RNG.normal(size=101)
    np.testing.assert_array_equal(namespace["chain"](x)[0], chain(x))


def test_what_has_to_be_finite_is_checked_on_the_way():
    def slope(x):
        return fg.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x) * x, np.sin(x))))(x)

    compiled = fg.jit(slope)
    x = np.abs(RNG.normal(size=300)) + 0.1
    text = compiled.lower(x).as_source()
    assert "_total[k_] = np.add.reduce(" in text
    np.testing.assert_array_equal(compiled(x), slope(x))
    x[7] = 0.0
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(compiled(x), slope(x))


# Sums behind a chain


@pytest.fixture
def summed(monkeypatch):
    """Make blocks that are large enough for NumPy to halve what it adds up."""
    monkeypatch.setattr(blocks, "FEWEST", 300)
    monkeypatch.setattr(blocks, "MOST", 300)


@pytest.mark.parametrize("count", [1000, 1024, 1300, 3333, 10001])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_sums_of_all_elements_are_numpys(summed, count, dtype):
    def fun(x):
        y = x * x + x
        return np.sum(y), np.sum(x - y)

    x = (RNG.normal(size=count) * 100).astype(dtype)
    assert blocks_of(fun, x) == [5]
    assert_compiled_is_same(fun, x)


def test_means_are_numpys(summed):
    def fun(x):
        return np.mean(np.exp(x)), np.mean(x * 3)

    x = RNG.normal(size=2222).astype(np.float32)
    assert blocks_of(fun, x) == [4]
    assert_compiled_is_same(fun, x)


def test_sums_of_rows_of_which_numpy_halves_no_number_are_taken_of_the_whole(summed):
    def fun(x, row):
        return np.sum(np.exp(x) * row)

    x, row = RNG.normal(size=(64, 40)), RNG.normal(size=40)
    assert blocks_of(fun, x, row) == [3]
    assert_compiled_is_same(fun, x, row)
    assert blocks_of(fun, x[:63], row) == [2, "reduce_sum"]
    assert_compiled_is_same(fun, x[:63], row)


def test_sums_of_half_precision_are_taken_of_the_whole(summed):
    x = RNG.normal(size=1000).astype(np.float16)
    assert blocks_of(lambda x: np.sum(x * x + x), x) == [2, "reduce_sum"]
    assert_compiled_is_same(lambda x: np.sum(x * x + x), x)


@pytest.mark.parametrize("shape", [(60, 4), (301, 2), (40, 3, 5)])
@pytest.mark.parametrize("mean", [np.sum, np.mean])
def test_sums_over_the_first_axes_are_numpys(shape, mean):
    def fun(x):
        y = np.exp(x)
        return y, mean(y * 2, axis=0), mean(y, axis=tuple(range(x.ndim - 1)))

    for dtype in (np.float64, np.float32):
        x = RNG.normal(size=shape).astype(dtype)
        assert blocks_of(fun, x) == [4]
        assert_compiled_is_same(fun, x)


def test_the_sum_of_one_column_is_taken_of_the_whole():
    x = RNG.normal(size=(200, 1))
    assert blocks_of(lambda x: np.sum(np.exp(x) * 2, axis=0), x) == [2, "reduce_sum"]
    assert_compiled_is_same(lambda x: np.sum(np.exp(x) * 2, axis=0), x)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "var", "std"])
def test_reductions_of_each_row_are_in_the_block(name):
    def fun(x):
        part = getattr(np, name)(x * 2, axis=-1, keepdims=True)
        return np.exp(x - part) + part

    x = RNG.normal(size=(60, 7))
    assert blocks_of(fun, x) == [5]
    assert_compiled_is_same(fun, x)
    assert_compiled_is_same(fun, x.astype(np.float32).reshape(20, 3, 7))


def test_what_is_only_summed_is_never_there_as_a_whole(monkeypatch):
    monkeypatch.undo()

    def fun(x):
        y = np.tanh(x) * x
        return np.sum(y), np.mean(np.exp(-np.square(y)))

    x = RNG.normal(size=1_000_000)
    compiled = fg.jit(fun)
    want = compiled(x)
    compiled.clear_cache()
    assert want == fun(x)
    lowered = compiled.lower(x)
    namespace = {}
    exec(lowered.as_source(), namespace)
    tracemalloc.start()
    namespace["fun"](x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < x.nbytes / 2


# Functions of ours, and rows


@pytest.mark.parametrize("function", [F.sigmoid, F.silu, F.softplus, F.gelu, F.relu, np.cbrt])
def test_functions_of_each_element_are_in_the_block(function):
    x = RNG.normal(size=(30, 5))
    assert [*map(type, blocks_of(lambda x: function(x) * 2, x))] == [int]
    assert_compiled_is_same(lambda x: function(x) * 2, x)
    assert_compiled_is_same(fg.grad(lambda x: np.sum(function(x) ** 2)), x)


@pytest.mark.parametrize("function", [F.softmax, F.log_softmax, F.logsumexp])
def test_functions_along_the_last_axis_are_in_the_block(function):
    def fun(x):
        return function(x * 2, axis=-1) + 1

    x = RNG.normal(size=(30, 5))
    assert [*map(type, blocks_of(fun, x))] == [int]
    for array in (x, x.astype(np.float32), x.reshape(10, 3, 5), np.where(x < -1, -np.inf, x)):
        assert_compiled_is_same(fun, array)
        assert_compiled_is_same(fg.grad(lambda x: np.sum(np.sin(fun(x)))), array)


def test_what_goes_along_the_first_axis_is_not():
    x = RNG.normal(size=(30, 5))
    found = blocks_of(lambda x: F.softmax(x * 2, axis=0), x)
    assert found == ["multiply", "largest", 2, "reduce_sum", "divide"]
    assert_compiled_is_same(lambda x: F.softmax(x * 2, axis=0) + 1, x)


def layer_norm(x, scale, shift):
    mean = np.mean(x, axis=-1, keepdims=True)
    variance = np.var(x, axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * scale + shift


def test_a_layer_norm_and_its_gradient_are_one_block_each():
    args = RNG.normal(size=(64, 8)), RNG.normal(size=8), RNG.normal(size=8)
    assert [*map(type, blocks_of(layer_norm, *args))] == [int]
    assert_compiled_is_same(layer_norm, *args)
    slopes = fg.grad(lambda *args: np.sum(np.sin(layer_norm(*args))), argnums=(0, 1, 2))
    assert [*map(type, blocks_of(slopes, *args))] == [int]
    assert_compiled_is_same(slopes, *args)


def test_a_softmax_reads_memory_once(monkeypatch):
    monkeypatch.undo()
    x = RNG.normal(size=(4096, 256))
    compiled = fg.jit(lambda x: F.softmax(x))
    compiled(x)
    kept = [compiled(x), compiled(x)]  # the memory of the results is there now
    tracemalloc.start()
    kept.append(compiled(x))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * x.nbytes
    np.testing.assert_array_equal(kept[-1], F.softmax(x))


# Order in memory


@pytest.mark.parametrize("axes", [(1, 0, 2), (2, 1, 0), (1, 2, 0)])
def test_arrays_in_another_order_are_cut_along_their_slowest_axis(axes):
    def fun(x, row):
        y = np.tanh(x.transpose(axes)) * 2
        return y, y + row

    x = RNG.normal(size=(6, 7, 8))
    row = RNG.normal(size=x.transpose(axes).shape[-1])
    assert blocks_of(lambda x: fun(x, 1.0), x) == ["transpose", 3]
    assert_compiled_is_same(lambda x: fun(x, 1.0), x)
    assert_compiled_is_same(fun, x, row)


def test_arrays_in_fortran_order_are_blocks(summed):
    def fun(x):
        return chain(x), np.sum(np.exp(x))

    x = np.asfortranarray(RNG.normal(size=(40, 50)))
    assert blocks_of(fun, x) == [6]
    assert_compiled_is_same(fun, x)


def test_columns_are_cut_with_the_rows():
    x, column = RNG.normal(size=(60, 4)), RNG.normal(size=(60, 1))
    fun = lambda x, column: np.tanh(x * column + 1) * 2 - x  # noqa: E731
    assert blocks_of(fun, x, column) == [5]
    assert_compiled_is_same(fun, x, column)


def test_one_array_both_as_rows_and_as_a_whole(small):
    def fun(x, v):
        return np.exp(x * v) * 2, np.sin(v) + 1

    x, v = RNG.normal(size=(120, 120)), RNG.normal(size=120)
    assert_compiled_is_same(fun, x, v)


def test_where_is_in_the_block():
    x = RNG.normal(size=(30, 40))
    fun = lambda x: np.where(x > 0, np.exp(x), x * 2) + 1  # noqa: E731
    assert [*map(type, blocks_of(fun, x))] == [int]
    assert_compiled_is_same(fun, x)


def test_conditions_on_what_is_finite_do_not_cut_a_chain():
    def fun(x):
        y = np.sqrt(np.abs(x) + 1)
        return np.sum(y * np.log(y))

    x = RNG.normal(size=(40, 30))
    made = with_blocks_of(fg.grad(fun), x)
    assert [isinstance(e.operation, Block) for e in made].count(True) == 1
    compiled = fg.jit(fg.grad(fun))
    np.testing.assert_array_equal(compiled(x), fg.grad(fun)(x))
    x[3, 4] = np.nan
    np.testing.assert_array_equal(compiled(x), fg.grad(fun)(x))


def test_what_has_to_be_finite_and_no_more_is_not_kept():
    def normed(x):
        variance = np.var(x, axis=-1, keepdims=True)
        return np.sum(np.sin((x - np.mean(x, axis=-1, keepdims=True)) / np.sqrt(variance)))

    x = RNG.normal(size=(40, 30))
    assert [var.shape for var in block_of(fg.grad(normed), x).checked] == [(40, 1)]
    compiled = fg.jit(fg.grad(normed))
    np.testing.assert_array_equal(compiled(x), fg.grad(normed)(x))
    x[7, 3] = np.inf
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(compiled(x), fg.grad(normed)(x))


def test_conditions_on_values_do():
    def fun(x):
        y = np.exp(x)
        z = fg.cond(np.sum(x) > 0, np.sin, np.cos, y)
        return z * 2 + y

    for x in (np.ones(200), -np.ones(200)):
        assert_compiled_is_same(fun, x)


# How large blocks are


def block_of(fun, *args):
    (found,) = [e.operation for e in with_blocks_of(fun, *args) if isinstance(e.operation, Block)]
    return found


@pytest.fixture
def with_cache(monkeypatch):
    """Return a function that sets the size of the cache."""
    monkeypatch.setattr(blocks, "FEWEST", 1 << 4)
    monkeypatch.setattr(blocks, "MOST", 1 << 20)
    return lambda size: monkeypatch.setattr(machine, "cache_bytes", lambda: size)


def test_blocks_fit_the_cache(with_cache):
    x = np.ones(1 << 14, np.float32)
    sizes = []
    for cache in (1 << 12, 1 << 13, 1 << 14):
        with_cache(cache)
        sizes.append(block_of(chain, x).size)
        # The operand, the result, and two arrays between them.
        assert sizes[-1] * 4 * 4 <= blocks.CACHES * cache < sizes[-1] * 4 * 4 * 4
    assert sizes == [sizes[0], 2 * sizes[0], 4 * sizes[0]]


def test_blocks_of_wider_numbers_have_fewer_elements(with_cache):
    with_cache(1 << 13)
    sizes = [block_of(chain, np.ones(1 << 14, dtype)).size for dtype in ("f4", "f8", "c16")]
    assert sizes == [sizes[0], sizes[0] // 2, sizes[0] // 4]


def test_chains_of_more_arrays_have_smaller_blocks(with_cache):
    with_cache(1 << 13)
    many = [np.ones(1 << 14)] * 8
    total = block_of(lambda *xs: np.exp(sum(x * x for x in xs)), *many)
    assert total.size < block_of(chain, many[0]).size


def test_what_fits_the_cache_is_done_whole(with_cache):
    with_cache(1 << 20)
    assert blocks_of(chain, np.ones(1 << 12)) == ["sin", "multiply", "cos", "add"]


def test_few_long_rows_are_cut_only_where_any_part_will_do():
    x, row = RNG.normal(size=(4, 500)), RNG.normal(size=500)
    fun = lambda x, row: np.tanh(x * row + 1) * 2  # noqa: E731
    assert blocks_of(fun, x, row) == ["multiply", 3]
    assert blocks_of(lambda x: fun(x, 3.0), x) == [4]
    assert_compiled_is_same(fun, x, row)


# Threads


@pytest.fixture
def threaded(monkeypatch):
    """Return a function that sets the number of threads; all blocks are worth it."""
    monkeypatch.setattr(blocks, "WORK", 0)
    return lambda count: monkeypatch.setattr(threads, "thread_count", lambda: count)


def test_results_do_not_depend_on_the_number_of_threads(threaded, summed):
    def fun(x):
        return np.sum(np.tanh(x) * x + np.exp(-(x**2)))

    x = RNG.normal(size=20_000)
    want = fg.value_and_grad(fun)(x)
    compiled = fg.jit(fg.value_and_grad(fun))
    assert "in_blocks(" in compiled.lower(x).as_source()
    for count in (1, 2, 3, 8):
        threaded(count)
        for _ in range(5):
            value, slope = compiled(x)
            assert value == want[0]
            np.testing.assert_array_equal(slope, want[1])


def test_sums_of_rows_are_not_threaded(threaded):
    def fun(x):
        return np.sum(np.exp(x) * 2, axis=0)

    x = RNG.normal(size=(200, 8))
    assert not block_of(fun, x).is_threaded
    assert block_of(lambda x: np.exp(x) * 2, x).is_threaded


def test_many_threads_may_call_what_is_threaded(threaded):
    threaded(2)
    compiled = fg.jit(lambda x: np.sum(np.tanh(x) * x) * np.exp(x))
    arrays = [RNG.normal(size=5000) for _ in range(8)]
    want = [np.sum(np.tanh(x) * x) * np.exp(x) for x in arrays]
    compiled(arrays[0])
    with ThreadPoolExecutor(8) as pool:
        for _ in range(10):
            for got, expected in zip(pool.map(compiled, arrays), want, strict=True):
                np.testing.assert_array_equal(got, expected)


def test_small_work_is_not_threaded(monkeypatch):
    monkeypatch.undo()
    wide = np.ones(1 << 18, np.float32)
    assert not block_of(lambda x: np.maximum(x * 2 + 1, 0), wide).is_threaded
    assert block_of(lambda x: np.tanh(x) * np.exp(x) + np.sin(x), wide).is_threaded
