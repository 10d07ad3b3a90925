"""A jitted function under reverse mode: compiled forward and backward passes."""

from __future__ import annotations

import numpy as np
import pytest
from cases import SMOOTH, generator, law, random_like
from recorded import BY_VALUE, assert_near, elsewhere, first_of_each, in_threads

import funcgrad as fg
from funcgrad import jit
from funcgrad.errors import ShapeError, TracerValueError

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


def counted(fun):
    """Return a function that counts how often its Python code runs, and the count."""
    runs = []

    def counting(*args, **kwargs):
        runs.append(1)
        return fun(*args, **kwargs)

    return counting, runs


def loss(w, x):
    return np.sum(np.tanh(x @ w) ** 2)


W, X = RNG.normal(size=(3, 2)), RNG.normal(size=(4, 3))


def test_the_function_is_not_run_again():
    fun, runs = counted(loss)
    compiled = jit(fun)
    slope = fg.grad(compiled)
    slope(W, X)
    before = len(runs)
    for scale in (1.0, 2.0, 3.0):
        np.testing.assert_array_equal(slope(W * scale, X), fg.grad(loss)(W * scale, X))
    assert len(runs) == before


def test_inline_runs_the_function_itself():
    fun, runs = counted(loss)
    slope = fg.grad(jit(fun, inline=True))
    for _ in range(3):
        np.testing.assert_array_equal(slope(W, X), fg.grad(loss)(W, X))
    assert len(runs) == 3


@pytest.mark.parametrize("argnums", [0, 1, (0, 1)])
def test_gradients_with_respect_to_any_argument(argnums):
    got = fg.value_and_grad(jit(loss), argnums=argnums)(W, X)
    want = fg.value_and_grad(loss, argnums=argnums)(W, X)
    for a, b in zip(fg.tree.leaves(got), fg.tree.leaves(want), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_jitted_part_of_a_function():
    inner = jit(lambda p, x: {"a": np.sin(p["w"] * x), "n": 3, "b": [p["v"] * 2.0]})

    def outer(p, x, part):
        made = part(p, x)
        return np.sum(made["a"] * made["b"][0]) * made["n"]

    p, x = {"w": RNG.normal(size=3), "v": 1.5}, RNG.normal(size=3)
    got = fg.grad(lambda p, x: outer(p, x, inner))(p, x)
    want = fg.grad(lambda p, x: outer(p, x, inner.fun))(p, x)
    np.testing.assert_array_equal(got["w"], want["w"])
    assert got["v"] == want["v"]
    assert type(got["v"]) is float


def test_a_result_that_is_not_used():
    fun = jit(lambda x: (np.sin(x), np.sqrt(x)))
    assert fg.grad(lambda x: fun(x)[0])(0.0) == 1.0
    assert fg.grad(lambda x: fun(x)[0])(1.0) == np.cos(1.0)


def test_slopes_that_are_not_finite_are_repaired():
    def fun(x):
        return np.sum(np.where(x > 0, np.sqrt(x), 0.0))

    slope = fg.grad(jit(fun))
    for x in (np.array([4.0, 1.0]), np.array([4.0, 0.0]), np.array([-1.0, 1.0])):
        np.testing.assert_array_equal(slope(x), fg.grad(fun)(x))


def test_each_branch_has_its_slope():
    fun = jit(lambda x: fg.cond(x > 0, lambda x: x * x, lambda x: -3.0 * x, x))
    assert [fg.grad(fun)(x) for x in (2.0, -2.0, 3.0, -1.0)] == [4.0, -3.0, 6.0, -3.0]


def test_branches_may_differ_in_structure():
    fun = jit(lambda x, flag: fg.cond(flag, lambda x: {"a": x * x}, lambda x: {"a": 3.0 * x}, x))
    for flag in (True, False, True, False):
        got = fg.grad(lambda x, flag=flag: fun(x, flag)["a"])(2.0)
        assert got == (4.0 if flag else 3.0)


def test_static_arguments_and_keywords():
    fun = jit(lambda x, n, scale=1.0: x**n * scale, static_argnames="n")
    slope = fg.grad(fun)
    assert slope(2.0, 3) == 12.0
    assert slope(2.0, n=2) == 4.0
    assert slope(2.0, n=2, scale=3.0) == 12.0
    assert fg.grad(lambda s: fun(2.0, 3, scale=s))(1.0) == 8.0


def test_random_keys_beside_what_is_differentiated():
    fun = jit(lambda x, key: np.sum(x * key.normal((3,))))
    for seed in (0, 1, 2):
        got = fg.grad(fun)(np.ones(3), fg.random.key(seed))
        np.testing.assert_array_equal(got, fg.random.key(seed).normal((3,)))


def test_a_pullback_can_be_called_again_and_after_the_result_was_written_to():
    fun = jit(lambda x: np.exp(np.sin(x)))
    x = RNG.normal(size=4)
    out, pullback = fg.vjp(fun, x)
    want = np.exp(np.sin(x)) * np.cos(x)
    out[:] = 0.0
    np.testing.assert_allclose(pullback(np.ones(4))[0], want, rtol=1e-14)
    np.testing.assert_allclose(pullback(np.full(4, 2.0))[0], 2 * want, rtol=1e-14)


def test_pullbacks_of_large_arrays_do_not_share_memory():
    fun = jit(lambda x: np.exp(np.sin(x) * 2) * x)
    x, y = RNG.normal(size=1 << 16), RNG.normal(size=1 << 16)
    _, first = fg.vjp(fun, x)
    _, second = fg.vjp(fun, y)
    ones = np.ones(1 << 16)
    np.testing.assert_array_equal(first(ones)[0], fg.vjp(fun.fun, x)[1](ones)[0])
    np.testing.assert_array_equal(second(ones)[0], fg.vjp(fun.fun, y)[1](ones)[0])


def test_higher_derivatives():
    want = fg.hessian(loss)(W, X)
    np.testing.assert_allclose(fg.hessian(jit(loss))(W, X), want, rtol=1e-13, atol=1e-14)
    cube = jit(lambda x: x**3)
    assert fg.grad(fg.grad(cube))(2.0) == 12.0
    assert fg.grad(fg.grad(fg.grad(cube)))(2.0) == 6.0
    got = fg.jacrev(jit(np.sin))(np.arange(3.0))
    np.testing.assert_allclose(got, np.diag(np.cos(np.arange(3.0))), atol=1e-15)


def test_gradients_for_each_example():
    per_example = fg.vmap(fg.grad(jit(loss)), in_axes=(None, 0))
    want = fg.vmap(fg.grad(loss), in_axes=(None, 0))(W, X)
    np.testing.assert_array_equal(per_example(W, X), want)


def test_branching_is_an_error_as_it_is_without_a_derivative():
    with pytest.raises(TracerValueError, match="the truth value"):
        fg.grad(jit(lambda x: x if x > 0 else -x))(1.0)


def test_a_closure_that_is_differentiated_too():
    def outer(x, y):
        return jit(lambda y: np.sin(y) * x)(y)

    got = fg.grad(outer, argnums=(0, 1))(2.0, 3.0)
    assert got == fg.grad(lambda x, y: np.sin(y) * x, argnums=(0, 1))(2.0, 3.0)


def test_threads():
    slope = fg.grad(jit(loss))
    inputs = [RNG.normal(size=(3, 2)) for _ in range(8)]
    wanted = [fg.grad(loss)(w, X) for w in inputs]
    failed = []

    def work(i):
        for _ in range(20):
            if not np.array_equal(slope(inputs[i], X), wanted[i]):
                failed.append(i)

    in_threads(8, work)
    assert not failed


@law(first_of_each(SMOOTH, 1))
def test_pullbacks_of_compiled_functions_are_right(case):
    compiled = jit(lambda *values: case.floating(*values))
    out = case.floating(*case.values)
    weights = tuple(random_like(generator(case.name, "weights"), x) for x in out)
    for values in (case.values, elsewhere(case)):
        try:
            _, pullback = fg.vjp(compiled, *values)
        except (ShapeError, TracerValueError):
            if case.name in BY_VALUE or case.name in ("bincount", "histogram2d", "histogramdd"):
                return
            raise
        _, want = fg.vjp(case.floating, *values)
        assert_near(pullback(weights), want(weights))
