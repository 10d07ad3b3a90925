"""What a compiled function keeps, and what it gives back."""

from __future__ import annotations

import gc
import tracemalloc
import weakref

import numpy as np

import funcgrad as fg


def test_no_arguments_are_kept():
    fun = fg.jit(lambda tree, x: tree["w"] * x + tree["b"])
    given = {"w": np.ones(50), "b": np.ones(50)}
    alive = [weakref.ref(x) for x in given.values()]
    fun(given, np.ones(50))
    del given
    gc.collect()
    assert [ref() for ref in alive] == [None, None]


def test_no_arguments_of_pullbacks_are_kept():
    fun = fg.jit(lambda tree: np.sum(np.sin(tree["w"])))
    given = {"w": np.ones(50)}
    alive = weakref.ref(given["w"])
    fg.grad(fun)(given)
    del given
    gc.collect()
    assert alive() is None


def test_no_arguments_are_kept_with_a_static_one():
    fun = fg.jit(lambda x, count: x * count, static_argnums=1)
    x = np.ones(50)
    alive = weakref.ref(x)
    fun(x, 3)
    del x
    gc.collect()
    assert alive() is None


def test_a_step_with_donation_needs_the_state_and_its_work_once():
    """Not the old state beside the new one, as a step without donation does."""
    optimizer = fg.optim.adam(1e-3)
    size = 300_000

    def step(params, state):
        slope = fg.grad(lambda p: np.sum(np.tanh(p) ** 2))(params)
        updates, state = optimizer.update(slope, state, params)
        return fg.optim.apply_updates(params, updates), state

    def peak(fun):
        params = np.linspace(-1, 1, size)
        state = optimizer.init(params)
        for _ in range(3):
            params, state = fun(params, state)
        gc.collect()
        tracemalloc.start()
        params, state = fun(params, state)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    array = 8 * size
    assert peak(fg.jit(step, donate_argnums=(0, 1))) < array / 2
    assert peak(step) > 4 * array
