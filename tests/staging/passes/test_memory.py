"""Buffers: where results are written."""

from __future__ import annotations

import numpy as np
import pytest
from recorded import prepared

import funcgrad as fg
from funcgrad.staging.backends.numpy import emit

RNG = np.random.default_rng(0)


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


def test_what_is_copied_in_the_end_keeps_its_memory_until_then():
    def fun(x):
        doubled = x * 2
        return doubled[0], np.sum(np.cos(x))

    assert_compiled_is_same(fun, RNG.normal(size=(3, 4)))
