"""L-BFGS and line searches: what they reach, what they keep, and when they give up."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.errors import ArgumentError

O = fg.optim  # noqa: E741

SEARCHES = {
    "zoom": lambda: O.scale_by_zoom_linesearch(20),
    "zoom-one": lambda: O.scale_by_zoom_linesearch(20, initial_guess_strategy="one"),
    "backtracking": lambda: O.scale_by_backtracking_linesearch(30, store_grad=True),
}
searches = pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)


def minimised(optimizer, fun, params, steps):
    state = optimizer.init(params)
    value_and_grad = O.value_and_grad_from_state(fun)
    for _ in range(steps):
        value, grad = value_and_grad(params, state=state)
        updates, state = optimizer.update(grad, state, params, value=value, grad=grad, value_fn=fun)
        params = O.apply_updates(params, updates)
    return params, state


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


@searches
def test_lbfgs_finds_the_minimum_of_a_valley(search):
    params, state = minimised(O.lbfgs(linesearch=search()), rosenbrock, np.zeros(4), 100)
    assert_allclose(params, np.ones(4), atol=1e-6)
    assert state[-1].value < 1e-12


@searches
def test_values_of_steepest_descent_fall(search):
    optimizer, params = O.chain(O.sgd(1.0), search()), np.array([-1.2, 1.0])
    state, values = optimizer.init(params), [rosenbrock(params)]
    for _ in range(10):
        value, grad = fg.value_and_grad(rosenbrock)(params)
        updates, state = optimizer.update(
            grad, state, params, value=value, grad=grad, value_fn=rosenbrock
        )
        params = O.apply_updates(params, updates)
        values.append(rosenbrock(params))
        assert state[-1].value == values[-1]
    assert np.all(np.diff(values) < 0)


@searches
def test_complex_parameters(search):
    target = np.array([1.0 - 2.0j, -0.5 + 1.0j])

    def distance(z):
        return np.sum(np.array([1.0, 10.0]) * np.abs(z - target) ** 2)

    params, _ = minimised(O.lbfgs(linesearch=search()), distance, np.array([3.0j, 1.0]), 25)
    assert_allclose(params, target, atol=1e-7)


def test_lbfgs_of_a_tree_with_leaves_of_all_kinds():
    params = {"w": np.zeros(2), "b": 0.0, "act": np.tanh, "n": 3, "s": np.float32(0)}

    def fun(p):
        return np.sum((p["w"] - [1.0, 2.0]) ** 2) + (p["b"] - 3.0) ** 2 + (p["s"] + 1) ** 2

    new, state = minimised(O.lbfgs(), fun, params, 8)
    assert_allclose(new["w"], [1.0, 2.0], rtol=1e-6)
    assert new["b"] == pytest.approx(3.0)
    assert new["s"] == pytest.approx(-1.0, rel=1e-6)
    assert new["s"].dtype == np.float32
    assert new["act"] is np.tanh
    assert new["n"] == 3
    assert state[0].diff_params_memory["act"] is None


def test_quadratic_in_as_many_steps_as_directions():
    """With exact line searches L-BFGS is conjugate gradients: n steps for n dimensions."""
    curvature = np.array([1.0, 3.0, 10.0])

    def fun(x):
        return 0.5 * np.sum(curvature * x**2)

    exact = O.scale_by_zoom_linesearch(50, curv_rtol=1e-9, stepsize_precision=0.0)
    params, _ = minimised(O.lbfgs(linesearch=exact), fun, np.ones(3), 3)
    assert np.max(np.abs(params)) < 1e-6


def test_value_and_gradient_in_the_state_are_those_of_the_new_parameters():
    params, state = minimised(O.lbfgs(), rosenbrock, np.zeros(3), 4)
    value, grad = fg.value_and_grad(rosenbrock)(params)
    assert state[-1].value == value
    assert_array_equal(state[-1].grad, grad)


def test_value_and_gradient_are_computed_once():
    calls = []

    def counted(x):
        calls.append(None)
        return rosenbrock(x)

    _, state = minimised(O.lbfgs(), counted, np.zeros(3), 3)
    before = len(calls)
    O.value_and_grad_from_state(counted)(np.zeros(3), state=state)
    assert len(calls) == before


def test_state_without_a_gradient_says_so():
    optimizer = O.chain(O.sgd(1.0), O.scale_by_backtracking_linesearch(5))
    with pytest.raises(ArgumentError, match="the state has no gradient to give"):
        O.value_and_grad_from_state(rosenbrock)(np.zeros(2), state=optimizer.init(np.zeros(2)))


def test_further_arguments_of_the_function():
    def fun(x, center, *, scale):
        return scale * np.sum((x - center) ** 2)

    optimizer, params = O.lbfgs(), np.zeros(2)
    state = optimizer.init(params)
    extra = {"center": np.array([1.0, 2.0]), "scale": 3.0}
    for _ in range(4):
        value, grad = fg.value_and_grad(lambda x: fun(x, **extra))(params)
        updates, state = optimizer.update(
            grad, state, params, value=value, grad=grad, value_fn=fun, **extra
        )
        params = O.apply_updates(params, updates)
    assert_allclose(params, [1.0, 2.0], rtol=1e-6)


@searches
def test_argument_that_the_function_does_not_take_is_named(search):
    optimizer = search()
    with pytest.raises(ArgumentError, match="'batch', which value_fn does not take"):
        optimizer.update(
            1.0, optimizer.init(1.0), 1.0, value=1.0, grad=1.0, value_fn=rosenbrock, batch=3
        )


@searches
def test_no_step_is_taken_where_no_value_is_finite(search):
    def broken(x):
        return x * np.nan

    optimizer = search()
    update, state = optimizer.update(
        -1.0, optimizer.init(1.0), 1.0, value=1.0, grad=1.0, value_fn=broken
    )
    assert update == 0.0
    assert state.info.decrease_error == math.inf


@searches
def test_search_after_one_that_failed_finds_a_step(search):
    optimizer = O.chain(O.sgd(1.0), search())
    state = optimizer.init(1.0)
    for fun in (lambda x: x * np.nan, lambda x: x**2):
        update, state = optimizer.update(2.0, state, 1.0, value=1.0, grad=2.0, value_fn=fun)
    assert -2.0 < update < 0.0


@searches
def test_steps_that_leave_the_domain_are_shortened(search):
    def barrier(x):
        return x - np.log(x)  # NaN for negative x, least at 1

    optimizer = O.chain(O.sgd(1.0), search())
    value, grad = fg.value_and_grad(barrier)(0.1)
    update, _ = optimizer.update(
        grad, optimizer.init(0.1), 0.1, value=value, grad=grad, value_fn=barrier
    )
    assert barrier(0.1 + update) < value


def test_verbose_says_why_a_search_failed(capsys):
    def up(x):
        return -x

    for optimizer in (
        O.scale_by_zoom_linesearch(3, verbose=True),
        O.scale_by_backtracking_linesearch(3, verbose=True),
    ):
        optimizer.update(-1.0, optimizer.init(1.0), 1.0, value=-1.0, grad=-1.0, value_fn=up)
    out = capsys.readouterr().out
    assert "scale_by_zoom_linesearch: no step size meets the conditions" in out
    assert "the updates do not descend" in out
    assert "scale_by_backtracking_linesearch: the value did not fall enough" in out


def test_memory_of_changes_is_a_ring():
    optimizer = O.scale_by_lbfgs(memory_size=2)
    state, points = optimizer.init(np.zeros(1)), [0.0, 1.0, 3.0, 6.0]
    for point in points:
        _, state = optimizer.update(np.array([2 * point]), state, np.array([point]))
    assert_array_equal(state.diff_params_memory, [[3.0], [2.0]])
    assert_array_equal(state.diff_updates_memory, [[6.0], [4.0]])
    assert_allclose(state.weights_memory, [1 / 18, 1 / 8])


def test_parameters_that_are_changed_in_place_are_remembered():
    optimizer, params = O.scale_by_lbfgs(), np.array([1.0])
    _, state = optimizer.update(np.array([2.0]), optimizer.init(params), params)
    params += 1.0
    _, state = optimizer.update(np.array([4.0]), state, params)
    assert_array_equal(state.diff_params_memory[0], [1.0])


@searches
def test_learning_rate_that_was_found_can_be_read(search):
    for optimizer in (O.lbfgs(linesearch=search()), O.lbfgs(0.5, linesearch=search())):
        _, state = minimised(optimizer, rosenbrock, np.zeros(2), 3)
        assert O.current_learning_rate(state) == state[-1].learning_rate
        assert O.current_step(state) == 3
