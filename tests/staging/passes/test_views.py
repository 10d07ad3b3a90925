"""Operations on stretched arrays are done on what was stretched."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg

RNG = np.random.default_rng(0)


def text_of(fun, *args):
    return fg.jit(fun).lower(*args).as_text()


def assert_compiled_is_same(fun, *args):
    compiled = fg.jit(fun)
    for _ in range(2):
        for got, want in zip(
            fg.tree.leaves(compiled(*args)), fg.tree.leaves(fun(*args)), strict=True
        ):
            assert got.dtype == want.dtype
            assert got.strides == want.strides
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("shape", [(4,), (3, 1), (1, 4), (1,)])
def test_a_stretched_operand_is_not_stretched_first(shape):
    def fun(x, y):
        wide = np.broadcast_to(y, (3, 4))
        return wide * x + 1, x - wide

    args = RNG.normal(size=(3, 4)), RNG.normal(size=shape)
    assert "broadcast_to" not in text_of(fun, *args)
    assert_compiled_is_same(fun, *args)
    assert_compiled_is_same(fun, np.asfortranarray(args[0]), args[1])


def test_what_is_stretched_twice():
    def fun(x, y):
        return np.broadcast_to(np.broadcast_to(y, (3, 4)), (2, 3, 4)) * x

    args = RNG.normal(size=(2, 3, 4)), RNG.normal(size=4)
    assert "broadcast_to" not in text_of(fun, *args)
    assert_compiled_is_same(fun, *args)


def test_the_gradient_of_a_mean_stretches_nothing():
    def fun(x):
        return np.mean(np.exp(x)) + np.sum(np.mean(np.sin(x), axis=1))

    x = RNG.normal(size=(5, 6)).astype(np.float32)
    assert "broadcast_to" not in text_of(fg.grad(fun), x)
    np.testing.assert_array_equal(fg.jit(fg.grad(fun))(x), fg.grad(fun)(x))


def test_where_nothing_else_has_the_shape_it_is_stretched():
    def fun(x, y):
        return np.broadcast_to(y, (3, 4)) * x, np.broadcast_to(y, (3, 4)) + 1

    args = RNG.normal(size=4), RNG.normal(size=(3, 1))
    assert text_of(fun, *args).count("broadcast_to") == 1
    assert_compiled_is_same(fun, *args)


def test_numbers_stay_of_their_dtype():
    def fun(x, y):
        return np.broadcast_to(y, (5,)) * x

    x = RNG.normal(size=5).astype(np.float32)
    assert_compiled_is_same(fun, x, np.float64(0.1))
    assert_compiled_is_same(fun, x, 0.1)


def test_powers_are_not_taken_another_way():
    def fun(x, y):
        return x ** np.broadcast_to(y, (100,))

    x = np.abs(RNG.normal(size=100)).astype(np.float32)
    for exponent in (0.5, 2.0, 3.0):
        assert_compiled_is_same(fun, x, np.float32(exponent))


def test_transposed_operands_of_products_are_views():
    def fun(x, w):
        return np.sum(np.tanh(x @ w.T) ** 2)

    x, w = RNG.normal(size=(5, 4)), RNG.normal(size=(3, 4))
    source = fg.jit(fg.grad(fun, argnums=(0, 1))).lower(x, w).as_source()
    assert "copy" not in source
    assert "ascontiguous" not in source
    assert source.count("np.matmul(") == 3
