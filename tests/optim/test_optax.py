"""Every name of Optax 0.2.8: there, with its arguments, and with its numbers step by step."""

import json
from pathlib import Path

import numpy as np
import optax_cases as cases
import pytest
from numpy.testing import assert_allclose

import funcgrad as fg

O = fg.optim  # noqa: E741

NAMES = (Path(__file__).parents[1] / "names" / "optax.txt").read_text(encoding="utf-8").split()
OPTAX = json.loads(cases.VALUES.read_text(encoding="utf-8"))
# What those arguments are by default in Optax: float32, whatever the parameters are.
OTHER_DEFAULTS = {("MultiSteps", "accumulator_dtype=...")}


def found(name):
    return getattr(O, name) if hasattr(O, name) else getattr(fg.nn.losses, name)


def test_the_list_is_long():
    assert len(NAMES) == 151


@pytest.mark.parametrize("name", NAMES)
def test_name_is_there_and_takes_the_arguments_of_optax(name):
    theirs = [arg for arg in OPTAX["signatures"][name] if (name, arg) not in OTHER_DEFAULTS]
    ours = cases.signature(found(name))
    assert [arg for arg in ours if arg in theirs] == theirs
    extra = [arg for arg in ours if arg not in theirs]
    assert all("=" in arg for arg in extra)


def steps(optimizer, arguments):
    params, state = cases.PARAMS, optimizer.init(cases.PARAMS)
    for k in range(5):
        gradient, extra = arguments(k, params)
        updates, state = optimizer.update(gradient, state, params, **extra)
        params = O.apply_updates(params, updates)
        yield updates


def compare(optimizer, arguments, values, rtol=1e-12):
    for updates, expected in zip(steps(optimizer, arguments), values, strict=True):
        for got, value in zip(fg.tree.leaves(updates), expected, strict=True):
            assert got.shape == np.shape(value)
            assert_allclose(got, value, rtol=rtol, atol=1e-13)


def plain(k, params):
    return cases.GRADIENTS[k], {}


def with_value(k, params):
    return cases.GRADIENTS[k], {"value": cases.VALUES_GIVEN[k]}


def searching(k, params):
    def value_fn(params):
        return cases.hills(params, np)

    value, grad = fg.value_and_grad(value_fn)(params)
    return grad, {"value": value, "grad": grad, "value_fn": value_fn}


PLAIN = cases.made(O)
WITH_VALUE = cases.made_with_value(O)
SEARCHING = cases.made_to_search(O)
SCHEDULES = cases.schedules(O)


@pytest.mark.parametrize("name", PLAIN)
def test_five_steps(name):
    compare(PLAIN[name], plain, OPTAX["made"][name], 1e-6 if "float32" in name else 1e-12)


@pytest.mark.parametrize("name", PLAIN)
def test_five_steps_of_numbers(name):
    """Parameters that are Python numbers take the steps of arrays of one element."""
    if "factored" in name or "adafactor" in name or "axis" in name:
        return  # these look at shapes; there is a test below

    def number(tree):
        return {"b": [float(tree["b"][0][0]), float(tree["b"][1])], "w": float(tree["w"][0, 0])}

    def as_array(value):
        return np.full(1, value)

    first = number(cases.PARAMS)
    optimizer = cases.made(O)[name]
    numbers, arrays = first, fg.tree.map(as_array, first)
    states = optimizer.init(numbers), optimizer.init(arrays)
    for k in range(5):
        gradient = number(cases.GRADIENTS[k])
        one, state1 = optimizer.update(gradient, states[0], numbers)
        many, state2 = optimizer.update(fg.tree.map(as_array, gradient), states[1], arrays)
        for a, b in zip(fg.tree.leaves(one), fg.tree.leaves(many), strict=True):
            assert type(a) is float
            assert_allclose(a, b[0], rtol=1e-6 if "float32" in name else 1e-12, atol=1e-14)
        states = state1, state2
        numbers, arrays = O.apply_updates(numbers, one), O.apply_updates(arrays, many)


def test_factored_means_of_numbers_are_those_of_arrays():
    optimizer = O.adafactor(0.1)
    number, _ = optimizer.update(0.5, optimizer.init(4.0), 4.0)
    array, _ = optimizer.update(np.full(1, 0.5), optimizer.init(np.full(1, 4.0)), np.full(1, 4.0))
    assert number == pytest.approx(array[0], rel=1e-14)


@pytest.mark.parametrize("name", WITH_VALUE)
def test_five_steps_with_a_value(name):
    compare(WITH_VALUE[name], with_value, OPTAX["made_with_value"][name])


@pytest.mark.parametrize("name", SEARCHING)
def test_five_steps_along_lines(name):
    compare(SEARCHING[name], searching, OPTAX["made_to_search"][name], 1e-9)


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule(name):
    got = [SCHEDULES[name](count) for count in cases.COUNTS]
    assert_allclose(got, OPTAX["schedules"][name], rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule_of_many_counts_at_once(name):
    counts = np.array(cases.COUNTS)
    got = np.broadcast_to(SCHEDULES[name](counts), counts.shape)
    assert_allclose(got, OPTAX["schedules"][name], rtol=1e-13, atol=1e-15)
