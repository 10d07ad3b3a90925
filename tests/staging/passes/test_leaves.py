"""Chains that many small arrays go through become one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg
from funcgrad.staging.passes import alike

SHAPES = [(3,), (4, 5), (7,), (2, 3, 4), (1,), (64, 64)]


def arrays(shapes=SHAPES, dtype=np.float32, seed=0, order="C"):
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.normal(size=shape).astype(dtype), order=order) for shape in shapes]


def momentum(params, means, gradients):
    means = [0.9 * m + 0.1 * g for m, g in zip(means, gradients, strict=True)]
    steps = [m / (np.sqrt(m * m) + 1e-6) for m in means]
    return [p - 0.01 * s for p, s in zip(params, steps, strict=True)], means


def source_of(fun, *args):
    return fg.jit(fun).lower(*args).as_source()


def assert_same(fun, *args):
    """Assert that the compiled function gives what the function does, bit for bit."""
    compiled = fg.jit(fun)
    for _ in range(2):
        ours, wanted = fg.tree.leaves(compiled(*args)), fg.tree.leaves(fun(*args))
        for out, value in zip(ours, wanted, strict=True):
            assert out.dtype == value.dtype
            assert out.flags.c_contiguous == value.flags.c_contiguous
            assert_array_equal(out, value)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_results_are_the_same_to_the_last_bit(dtype, order):
    given = [arrays(dtype=dtype, seed=seed, order=order) for seed in range(3)]
    assert "np.concatenate" in source_of(momentum, *given)
    assert_same(momentum, *given)


def test_infinities_and_zeros_of_both_signs_are_as_before():
    rng = np.random.default_rng(0)
    special = np.array([0.0, -0.0, np.inf, -np.inf, 1e-45, -1e38, 3.0], np.float32)
    given = [[rng.choice(special, shape) for shape in SHAPES] for _ in range(3)]
    with np.errstate(all="ignore"):
        assert_same(momentum, *given)
        ours, wanted = fg.jit(momentum)(*given), momentum(*given)
    for out, value in zip(fg.tree.leaves(ours), fg.tree.leaves(wanted), strict=True):
        assert_array_equal(np.signbit(out), np.signbit(value))


@pytest.mark.parametrize("name", sorted(alike.EXACT))
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.bool])
def test_what_is_joined_does_not_depend_on_the_place(name, dtype):
    """Each ufunc gives the same for an element by itself as in the middle of many."""
    ufunc = getattr(np, name)
    rng = np.random.default_rng(0)
    values = [(rng.normal(size=200) * 50).astype(dtype) for _ in range(ufunc.nin)]
    with np.errstate(all="ignore"):
        try:
            whole = ufunc(*values)
        except TypeError:
            return  # not of this dtype
        parts = [
            ufunc(*[x[i:j].copy() for x in values])
            for i, j in itertools.pairwise([0, 1, 3, 8, 21, 64, 65, 200])
        ]
    assert_array_equal(np.concatenate(parts), whole)


def test_an_optimizer_makes_as_many_calls_for_fifty_leaves_as_for_one():
    optimizer = fg.optim.adam(1e-3)

    def step(params, state, gradient):
        updates, state = optimizer.update(gradient, state, params)
        return fg.optim.apply_updates(params, updates), state

    def calls(count):
        params = {f"{i}": np.ones(5 + i % 3) for i in range(count)}
        return source_of(step, params, optimizer.init(params), params).count("np.multiply")

    assert calls(50) == calls(1)


def test_results_share_no_elements():
    given = [arrays(seed=seed) for seed in range(3)]
    outs = fg.tree.leaves(fg.jit(momentum)(*given))
    inputs = fg.tree.leaves(given)
    for a, b in itertools.combinations([*outs, *inputs], 2):
        assert not np.shares_memory(a, b)


def test_results_of_one_call_stay_when_there_is_another():
    given = [arrays(seed=seed) for seed in range(3)]
    compiled = fg.jit(momentum)
    first = compiled(*given)
    kept = [x.copy() for x in fg.tree.leaves(first)]
    compiled(*[arrays(seed=seed) for seed in range(3, 6)])
    for out, before in zip(fg.tree.leaves(first), kept, strict=True):
        assert_array_equal(out, before)


def test_who_keeps_a_result_keeps_no_more_than_the_bound():
    count = 3 * alike.TOGETHER // 4096
    given = [arrays([(64, 64)] * count, seed=seed) for seed in range(3)]
    for out in fg.tree.leaves(fg.jit(momentum)(*given)):
        assert out.base is None or out.base.size <= alike.TOGETHER


def test_what_is_computed_is_written_where_it_is_joined():
    def fun(params, x):
        def loss(params):
            y = x
            for layer in params:
                y = y @ layer["w"] + layer["b"]
            return np.sum(y**2)

        slopes = fg.grad(loss)(params)
        return fg.tree.map(lambda p, s: p - 0.1 * s / (np.sqrt(s * s) + 1e-8), params, slopes)

    rng = np.random.default_rng(0)
    params = [{"w": rng.normal(size=(6, 6)), "b": rng.normal(size=6)} for _ in range(4)]
    x = rng.normal(size=(5, 6))
    assert source_of(fun, params, x).count("np.concatenate") == 1  # the parameters, no gradients
    assert_same(fun, params, x)


def test_a_sum_over_all_leaves_stands_between_two_chains():
    def clipped(params, gradients):
        gradients = [g * 2.0 - 1.0 for g in gradients]
        norm = np.sqrt(sum(np.sum(g * g) for g in gradients))
        scale = 1.0 / (norm + 1.0)
        return [
            p - (g * scale) / (np.sqrt(g * g) + 0.1) for p, g in zip(params, gradients, strict=True)
        ]

    given = arrays(), arrays(seed=1)
    assert_same(clipped, *given)


def test_chains_that_need_each_other_are_not_joined():
    def fun(x, y):
        a = x * 2.0 + 1.0
        b = np.sort(a)[:3] * y  # of the same form, of what the first gives
        c = b * 2.0 + 1.0
        return a - x / 3.0, c - y / 3.0

    assert_same(fun, arrays()[2], arrays()[0])


def test_chains_of_other_numbers_are_apart():
    def fun(xs):
        return [x * (2.0 + i) + x / (3.0 + i) - x * 0.5 for i, x in enumerate(xs)]

    assert "np.concatenate" not in source_of(fun, arrays())
    assert_same(fun, arrays())


def test_one_array_may_be_a_part_more_than_once():
    def fun(x, ys):
        mask = x > 0.5
        return [np.where((y == 1.0) | mask, 1.0, y) for y in ys]

    ys = [np.round(y[:3]) for y in arrays([(5,)] * 8)]
    assert_same(fun, arrays([(3,)])[0], ys)


def test_large_arrays_are_left_alone():
    given = [arrays([(300, 300), (200, 200)], seed=seed) for seed in range(3)]
    assert "np.concatenate" not in source_of(momentum, *given)


def test_a_view_of_a_part_is_as_good_as_the_part():
    def fun(params, x):
        slope = [x.T @ x, np.sum(x, axis=0), np.sum(x * 2.0, axis=0)]
        turned = slope[0].T @ slope[0] + slope[0].T
        new = [
            p - 0.1 * s / (np.sqrt(s * s) + 1.0) * (s + 2.0)
            for p, s in zip(params, slope, strict=True)
        ]
        return new, turned, slope[0].T

    x = np.random.default_rng(0).normal(size=(6, 4))
    params = [np.ones((4, 4)), np.ones(4), np.ones(4)]
    assert_same(fun, params, x)


def test_the_standalone_source_gives_the_same():
    given = [arrays(seed=seed) for seed in range(3)]
    namespace = {}
    exec(source_of(momentum, *given), namespace)
    outs = namespace["momentum"](*fg.tree.leaves(given))
    for out, value in zip(outs, fg.tree.leaves(momentum(*given)), strict=True):
        assert_array_equal(out, value)


def test_a_training_step_is_that_without_jit():
    rng = np.random.default_rng(0)
    optimizer = fg.optim.chain(fg.optim.clip_by_global_norm(1.0), fg.optim.adamw(1e-2))
    params = [
        {"w": rng.normal(size=(n, m)).astype(np.float32), "b": np.zeros(m, np.float32)}
        for n, m in itertools.pairwise([8, 16, 16, 3])
    ]

    def loss(params, x, y):
        for layer in params[:-1]:
            x = fg.nn.functional.relu(x @ layer["w"] + layer["b"])
        logits = x @ params[-1]["w"] + params[-1]["b"]
        return -np.mean(fg.nn.functional.log_softmax(logits)[np.arange(5), y])

    def step(params, state, x, y):
        value, slope = fg.value_and_grad(loss)(params, x, y)
        updates, state = optimizer.update(slope, state, params)
        return fg.optim.apply_updates(params, updates), state, value

    compiled = fg.jit(step)
    here = there = (params, optimizer.init(params))
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(5, 8)).astype(np.float32), rng.integers(0, 3, size=5)
        *here, value = compiled(*here, x, y)
        *there, wanted = step(*there, x, y)
        assert value == wanted
    for ours, wanted in zip(fg.tree.leaves(here), fg.tree.leaves(there), strict=True):
        assert_array_equal(ours, wanted)
