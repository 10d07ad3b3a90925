"""All optimizers under vmap, in scan and in files."""

import json

import numpy as np
import optax_cases as cases
import pytest
from numpy.testing import assert_allclose

import funcgrad as fg

O = fg.optim  # noqa: E741

OPTAX = json.loads(cases.VALUES.read_text(encoding="utf-8"))["made"]
MADE = cases.made(O)
every = pytest.mark.parametrize("name", MADE)


def stacked(trees):
    return fg.tree.map(lambda *leaves: np.stack(leaves), *trees)


def check(updates, values, name):
    rtol = 1e-6 if "float32" in name else 1e-11
    for got, value in zip(fg.tree.leaves(updates), values, strict=True):
        assert_allclose(got, value, rtol=rtol, atol=1e-12)


@every
def test_several_at_once_under_vmap(name):
    optimizer = MADE[name]

    def update(*gradients):
        params, state = cases.PARAMS, optimizer.init(cases.PARAMS)
        for gradient in gradients:
            updates, state = optimizer.update(gradient, state, params)
            params = O.apply_updates(params, updates)
        return updates

    first = stacked([cases.GRADIENTS[0], cases.GRADIENTS[3], cases.GRADIENTS[2]])
    second = stacked([cases.GRADIENTS[1], cases.GRADIENTS[4], cases.GRADIENTS[2]])
    got = fg.vmap(update)(first, second)
    check(fg.tree.map(lambda leaf: leaf[0], got), OPTAX[name][1], name)
    alone = update(cases.GRADIENTS[3], cases.GRADIENTS[4])
    check(fg.tree.map(lambda leaf: leaf[1], got), fg.tree.leaves(alone), name)


@every
def test_states_of_several_at_once(name):
    optimizer = MADE[name]
    params = stacked([cases.PARAMS] * 2)
    state = fg.vmap(optimizer.init)(params)
    for k in range(2):
        gradients = stacked([cases.GRADIENTS[k]] * 2)
        updates, state = fg.vmap(optimizer.update)(gradients, state, params)
        params = O.apply_updates(params, updates)
    check(fg.tree.map(lambda leaf: leaf[1], updates), OPTAX[name][1], name)


@every
def test_training_in_a_scan(name):
    optimizer = MADE[name]

    def step(carry, gradient):
        params, state = carry
        updates, state = optimizer.update(gradient, state, params)
        return (O.apply_updates(params, updates), state), updates

    start = cases.PARAMS, optimizer.init(cases.PARAMS)
    _, updates = fg.scan(step, start, stacked(cases.GRADIENTS))
    for k in range(5):
        check(fg.tree.map(lambda leaf: leaf[k], updates), OPTAX[name][k], name)  # noqa: B023


@every
def test_state_from_a_file_goes_on_alike(name, tmp_path):
    optimizer, params = MADE[name], cases.PARAMS
    state = optimizer.init(params)
    for gradient in cases.GRADIENTS[:2]:
        updates, state = optimizer.update(gradient, state, params)
        params = O.apply_updates(params, updates)
    fg.save(tmp_path / "state.npz", state)
    loaded = fg.load(tmp_path / "state.npz", optimizer.init(cases.PARAMS))
    assert fg.tree.same(loaded, state)
    updates, _ = optimizer.update(cases.GRADIENTS[2], loaded, params)
    check(updates, OPTAX[name][2], name)
