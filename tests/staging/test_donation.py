"""Donated arguments: results in their memory, and what is left of them."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg
from funcgrad.errors import ArgumentError
from funcgrad.staging import donation

SHAPE = (300, 200)


def decay(state, gradient):
    return {"m": state["m"] - gradient, "w": state["w"] * 0.9 + gradient}


def made(seed=0):
    rng = np.random.default_rng(seed)
    return {"m": rng.normal(size=SHAPE), "w": rng.normal(size=SHAPE)}


def address(x):
    return x.__array_interface__["data"][0]


@pytest.fixture
def step():
    return fg.jit(decay, donate_argnums=0)


def test_results_take_the_memory_of_earlier_results(step):
    state = step(made(), np.ones(SHAPE))
    before = {key: address(x) for key, x in state.items()}
    state = step(state, np.ones(SHAPE))
    assert {key: address(x) for key, x in state.items()} == before


def test_results_are_those_without_donation(step):
    gradient = np.random.default_rng(1).normal(size=SHAPE)
    state, wanted = made(), made()
    for _ in range(4):
        state, wanted = step(state, gradient), decay(wanted, gradient)
    assert_array_equal(state["w"], wanted["w"])
    assert_array_equal(state["m"], wanted["m"])


@pytest.mark.parametrize("shape", [(200, 100), (400, 300), (1200, 1000)])
def test_an_optimizer_steps_in_place(shape):
    """With arrays that are done as a whole, and such as are done in blocks."""
    rng = np.random.default_rng(0)
    optimizer = fg.optim.adam(1e-2)

    def step(params, state, gradient):
        updates, state = optimizer.update(gradient, state, params)
        return fg.optim.apply_updates(params, updates), state

    compiled, copying = fg.jit(step, donate_argnums=(0, 1)), fg.jit(step)
    params = {"w": rng.normal(size=shape), "b": rng.normal(size=shape[1:])}
    here, there = (params, optimizer.init(params)), (params, optimizer.init(params))
    for number in range(4):
        gradient = {key: rng.normal(size=x.shape) for key, x in params.items()}
        here, there = compiled(*here, gradient), copying(*there, gradient)
        if number == 1:
            places = [address(x) for x in fg.tree.leaves(here) if np.ndim(x) == 2]
    assert [address(x) for x in fg.tree.leaves(here) if np.ndim(x) == 2] == places
    for ours, wanted in zip(fg.tree.leaves(here), fg.tree.leaves(there), strict=True):
        assert_array_equal(ours, wanted)


def test_arrays_of_numpys_own_making_stay_as_they_are(step):
    state = made()
    step(state, np.ones(SHAPE))
    assert_array_equal(state["w"], made()["w"])


def test_an_array_that_somebody_has_a_view_of_is_copied(step):
    state = step(made(), np.ones(SHAPE))
    view, kept = state["w"][:3], state["w"].copy()
    new = step(state, np.ones(SHAPE))
    assert_array_equal(state["w"], kept)
    assert_array_equal(view, kept[:3])
    assert not np.may_share_memory(new["w"], state["w"])
    assert state["m"].shape == (0,)  # of which there is no view


def test_an_array_that_is_given_twice_is_copied():
    add = fg.jit(lambda x, y: x * 2 + y, donate_argnums=0)
    x = add(np.ones(SHAPE), np.ones(SHAPE))
    out = add(x, x)
    assert_array_equal(x, np.full(SHAPE, 3.0))
    assert_array_equal(out, np.full(SHAPE, 9.0))


def test_a_read_only_array_is_copied(step):
    state = step(made(), np.ones(SHAPE))
    state["w"].flags.writeable = False
    kept = state["w"].copy()
    step(state, np.ones(SHAPE))
    assert_array_equal(state["w"], kept)


def test_an_array_that_the_function_closes_over_is_copied():
    double = fg.jit(lambda x: x * 2.0, donate_argnums=0)
    held = double(np.ones(SHAPE))
    add = fg.jit(lambda x: x * 3.0 + held, donate_argnums=0)
    assert_array_equal(add(held), np.full(SHAPE, 8.0))
    assert_array_equal(add(np.ones(SHAPE)), np.full(SHAPE, 5.0))


def test_a_jitted_function_names_what_was_donated(step):
    state = step(made(), np.ones(SHAPE))
    step(state, np.ones(SHAPE))
    with pytest.raises(ArgumentError) as caught:
        step(state, np.ones(SHAPE))
    message = str(caught.value)
    assert "state['m'] has been donated: decay took its memory" in message
    assert "use what decay returned" in message


def test_another_jitted_function_names_it_too(step):
    state = step(made(), np.ones(SHAPE))
    step(state, np.ones(SHAPE))
    total = fg.jit(lambda tree: np.sum(tree["w"]))
    total(made())
    with pytest.raises(ArgumentError, match=r"tree\['m'\] has been donated"):
        total(state)


def test_numpys_errors_say_what_happened(step):
    state = step(made(), np.ones(SHAPE))
    step(state, np.ones(SHAPE))
    for use in (np.sum, np.tanh, np.negative, lambda x: x + 1, lambda x: x @ x):
        with pytest.raises(TypeError):
            use(state["w"])
    with pytest.raises(TypeError, match=r"donated as state\['w'\] of decay"):
        state["w"] + 1
    assert "donated as state['w'] of decay" in repr(state["w"])


def test_a_memoryview_of_what_was_donated_stays_on_its_memory(step):
    state = step(made(), np.ones(SHAPE))
    seen = memoryview(state["w"])
    new = step(state, np.ones(SHAPE))
    del state, new
    gc.collect()
    assert np.isfinite(np.asarray(seen)).all()  # not freed


def test_nothing_is_kept_of_arrays_that_are_gone(step):
    before = len(donation._kept)
    state = made()
    for _ in range(5):
        state = step(state, np.ones(SHAPE))
    del state
    gc.collect()
    assert len(donation._kept) == before


def test_an_argument_may_be_named(step):
    named = fg.jit(decay, donate_argnames="state")
    state = named(gradient=np.ones(SHAPE), state=made())
    place = address(state["w"])
    new = named(gradient=np.ones(SHAPE), state=state)
    assert address(new["w"]) == place


def test_small_arrays_stay_as_they_are():
    double = fg.jit(lambda x: x * 2, donate_argnums=0)
    x = double(double(np.ones(3)))
    double(x)
    assert_array_equal(x, np.full(3, 4.0))


def test_a_result_that_is_read_later_does_not_take_the_memory():
    def fun(x):
        y = x * 2.0
        return y, np.sum(x[::-1] * y)

    compiled = fg.jit(fun, donate_argnums=0)
    x = np.random.default_rng(0).normal(size=SHAPE)
    held = fg.jit(lambda x: x * 1.5, donate_argnums=0)(x)
    wanted = fun(held.copy())
    y, total = compiled(held)
    assert_array_equal(y, wanted[0])
    assert total == wanted[1]


def test_a_result_of_what_lies_elsewhere_does_not_take_the_memory():
    compiled = fg.jit(lambda x: x + x[::-1], donate_argnums=0)
    held = fg.jit(lambda x: x * 1.5, donate_argnums=0)(made()["w"])
    wanted = held + held[::-1]
    assert_array_equal(compiled(held), wanted)


def test_an_argument_that_is_returned_stays_whole():
    compiled = fg.jit(lambda x: (x, x * 2), donate_argnums=0)
    held = fg.jit(lambda x: x * 1.5, donate_argnums=0)(made()["w"])
    wanted = held.copy()
    same, twice = compiled(held)
    assert_array_equal(same, wanted)
    assert_array_equal(twice, wanted * 2)


def test_nothing_is_lost_where_a_condition_fails():
    """Another program is run, on arguments that must not have been written to."""

    def fun(x, flag):
        y = x * 2.0
        return fg.cond(flag, lambda y: y + 1.0, lambda y: y - 1.0, y)

    compiled = fg.jit(fun, donate_argnums=0)
    x = made()["w"]
    for flag in (True, False, True, False):
        wanted = fun(x.copy(), flag)
        x = compiled(x, flag)
        assert_array_equal(x, wanted)


def test_nothing_is_lost_where_a_derivative_is_not_finite():
    def fun(x):
        return x - 0.1 * fg.grad(lambda x: np.sum(np.sqrt(x) ** 2))(x)

    compiled = fg.jit(fun, donate_argnums=0)
    x = compiled(np.abs(made()["w"]))
    zeros = fg.jit(lambda x: x * 0.0, donate_argnums=0)(x)
    with np.errstate(all="ignore"):
        wanted = fun(np.zeros(SHAPE))
    assert_array_equal(compiled(zeros), wanted)


def test_nothing_is_donated_under_a_transform(step):
    state = step(made(), np.ones(SHAPE))
    kept = state["w"].copy()
    fg.grad(lambda state: np.sum(step(state, np.ones(SHAPE))["w"]))(state)
    assert_array_equal(state["w"], kept)


def test_an_argument_is_not_both_static_and_donated():
    with pytest.raises(ArgumentError, match="static and take its memory"):
        fg.jit(decay, static_argnums=0, donate_argnames="state")


def test_the_source_does_not_write_to_its_arguments(step):
    namespace = {}
    exec(step.lower(made(), np.ones(SHAPE)).as_source(), namespace)
    state = made()
    namespace["decay"](state["m"], state["w"], np.ones(SHAPE))
    assert_array_equal(state["w"], made()["w"])


def test_an_order_in_memory_of_another_call_is_right():
    compiled = fg.jit(lambda x, y: np.tanh(x) * 0.5 + y, donate_argnums=0)
    compiled(np.ones(SHAPE), np.ones(SHAPE))
    x = np.asfortranarray(made()["w"])
    out = compiled(x, np.ones(SHAPE))
    assert_array_equal(out, np.tanh(x) * 0.5 + 1)


def test_threads_with_states_of_their_own_do_not_meet(step):
    gradient = np.ones(SHAPE)
    step(made(), gradient)

    def loop(seed):
        state = made(seed)
        for _ in range(5):
            state = step(state, gradient)
        return state

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(loop, range(8)))
    for seed, state in enumerate(found):
        wanted = made(seed)
        for _ in range(5):
            wanted = decay(wanted, gradient)
        assert_array_equal(state["w"], wanted["w"])
        assert_array_equal(state["m"], wanted["m"])
