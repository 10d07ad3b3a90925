"""Optimizers step by step, against Optax 0.2.8 in float64 and against closed values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg

O = fg.optim  # noqa: E741

PARAMS = {
    "w": np.array([[1.0, -2.0], [0.5, 3.0]]),
    "b": [np.array([0.25, -1.5]), np.array(2.0)],
}
GRADIENTS = [
    {
        "w": np.array([[0.1 * k, -1.0], [2.0, 0.0]]),
        "b": [np.array([k * k - 3.0, 1e-3]), np.array(-0.5)],
    }
    for k in range(1, 6)
]
MASK = {"w": True, "b": False}

MADE = {
    "sgd": O.sgd(0.1),
    "momentum": O.sgd(0.1, momentum=0.9),
    "nesterov": O.sgd(0.1, momentum=0.9, nesterov=True),
    "schedule": O.sgd(lambda count: 0.1 / (1 + 0.5 * count), momentum=0.5),
    "adam": O.adam(0.1),
    "adam-all": O.adam(0.1, b1=0.8, b2=0.9, eps=1e-3, eps_root=1e-4),
    "nadam": O.adam(0.1, nesterov=True),
    "adam-mu-float32": O.adam(0.1, mu_dtype=np.float32),
    "momentum-float32": O.sgd(0.1, momentum=0.9, nesterov=True, accumulator_dtype=np.float32),
    "adamw": O.adamw(0.1, weight_decay=0.01),
    "adamw-mask": O.adamw(0.1, weight_decay=0.1, mask=MASK),
    "adamw-mask-callable": O.adamw(
        0.1, weight_decay=0.1, mask=lambda tree: {key: key == "w" for key in tree}
    ),
    "adamw-schedule": O.adamw(0.1, weight_decay=lambda count: 0.1 / (1 + count)),
    "chain": O.chain(
        O.clip_by_global_norm(1.0), O.add_decayed_weights(0.1), O.trace(0.9), O.scale(-0.1)
    ),
    "clip": O.chain(O.clip(0.5), O.scale_by_adam(), O.scale_by_learning_rate(0.1)),
    "scale-by-schedule": O.chain(O.scale_by_schedule(lambda c: -0.1 * (c + 1)), O.identity()),
}

# Leaves after five steps, in the order of fg.tree.leaves: b[0], b[1], w.
OPTAX = {
    "sgd": [[-3.75, -1.5005], 2.25, [[0.85, -1.5], [-0.5, 3.0]]],
    "momentum": [
        [-5.57088, -1.50131441],
        2.657205,
        [[0.682969, -0.68559], [-2.12882, 3.0]],
    ],
    "nesterov": [
        [-8.988792, -1.501682969],
        2.8414845,
        [[0.5646721, -0.317031], [-2.865938, 3.0]],
    ],
    "schedule": [
        [-1.49, -1.5004270833333333],
        2.2135416666666665,
        [[0.9007083333333333, -1.5729166666666665], [-0.3541666666666667, 3.0]],
    ],
    "adam": [
        [0.17410321422798986, -1.999995000049998],
        2.4999999899999987,
        [[0.5149169317360103, -1.5000000050000013], [2.5000014142184668e-09, 3.0]],
    ],
    "adam-all": [
        [0.15256246300025292, -1.545249378105604],
        2.4989024246418405,
        [[0.5148626638950611, -1.500524448704547], [0.0002561187001240972, 3.0]],
    ],
    "nadam": [
        [0.07027499260590073, -2.0786521839792056],
        2.5786579589278857,
        [[0.3780748924530617, -1.4213420352855346], [-0.07865796760775541, 3.0]],
    ],
    "adam-mu-float32": [
        [0.17410321126539446, -1.9999949881233727],
        2.4999999780348343,
        [[0.5149169361895165, -1.5000000169651662], [1.4465166356392167e-08, 3.0]],
    ],
    "momentum-float32": [
        [-8.988791910409928, -1.5016829689705509],
        2.841484487056732,
        [[0.5646721122413872, -0.31703102588653564], [-2.8659379482269287, 3.0]],
    ],
    "adamw": [
        [0.17255299873946467, -1.991510994547502],
        2.489020969530077,
        [[0.5109031326915875, -1.4910189854999094], [-0.0014960020025940601, 2.9850299700149967]],
    ],
    "adamw-mask": [
        [0.17410321422798986, -1.999995000049998],
        2.4999999899999987,
        [[0.47558089977750034, -1.4118806037009963], [-0.014604473599501122, 2.8529701497000004]],
    ],
    "adamw-schedule": [
        [0.16733525269252042, -1.9633169531811105],
        2.4519986458941636,
        [[0.49492465354336534, -1.4574151874629186], [-0.008615004397289891, 2.9320603787475]],
    ],
    "chain": [
        [-0.1924911849325563, -1.3077739642175195],
        1.9047307355597087,
        [[0.811573935619978, -1.4203426842805829], [-0.21003372208883456, 2.6149020777]],
    ],
    "clip": [
        [0.17895466022304757, -1.999995000049998],
        2.4999999899999987,
        [[0.5149169317360103, -1.5000000100000015], [1.0000001313126283e-08, 3.0]],
    ],
    "scale-by-schedule": [[-17.75, -1.5015], 2.75, [[0.45, -0.5], [-2.5, 3.0]]],
}
OPTAX["adamw-mask-callable"] = OPTAX["adamw-mask"]


def run(optimizer, params, gradients):
    state = optimizer.init(params)
    for gradient in gradients:
        updates, state = optimizer.update(gradient, state, params)
        params = O.apply_updates(params, updates)
    return params, state


@pytest.mark.parametrize("name", MADE)
def test_five_steps_are_those_of_optax(name):
    params, _ = run(MADE[name], PARAMS, GRADIENTS)
    for got, expected in zip(fg.tree.leaves(params), OPTAX[name], strict=True):
        assert_allclose(got, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", MADE)
def test_python_numbers_take_the_same_steps_as_arrays(name):
    params = {"w": 1.0, "b": -2.0}
    gradients = [{"w": 0.3 * k, "b": -1.0} for k in (1, -2, 3)]
    numbers, _ = run(MADE[name], params, gradients)
    arrays, _ = run(
        MADE[name],
        fg.tree.map(lambda x: np.full(1, x), params),
        [fg.tree.map(lambda x: np.full(1, x), g) for g in gradients],
    )
    for key in params:
        assert type(numbers[key]) is float
        # The accumulator may be float32 for one and not round the same way for the other.
        assert_allclose(numbers[key], arrays[key][0], rtol=1e-6 if "float32" in name else 1e-14)


# Closed values


def test_sgd_keeps_the_shape_of_the_gradient():
    updates, _ = O.sgd(0.1).update(
        np.array([[1.0, 2.0], [3.0, 4.0]]), O.sgd(0.1).init(np.zeros((2, 2)))
    )
    assert_allclose(updates, [[-0.1, -0.2], [-0.3, -0.4]])


def test_sgd_does_not_clip():
    params, _ = run(O.sgd(0.1), np.zeros(2), [np.array([2000.0, 1.0])])
    assert_allclose(params, [-200.0, -0.1])


def test_momentum_is_a_sum_not_an_average():
    optimizer = O.sgd(0.1, momentum=0.9)
    state, got = optimizer.init(0.0), []
    for _ in range(2):
        update, state = optimizer.update(1.0, state)
        got.append(update)
    assert_allclose(got, [-0.1, -0.19])


def test_nesterov_with_a_constant_gradient():
    optimizer = O.sgd(0.1, momentum=0.9, nesterov=True)
    state, got = optimizer.init(np.array([1.0])), []
    for _ in range(3):
        update, state = optimizer.update(np.array([1.0]), state)
        got.append(update[0])
    assert_allclose(got, [-0.19, -0.271, -0.3439])


def test_inverse_time_decay_of_the_rate():
    optimizer = O.sgd(lambda count: 0.01 / (1 + 0.1 * count))
    state = optimizer.init(0.0)
    for _ in range(4):
        update, state = optimizer.update(1.0, state)
    assert update == pytest.approx(-0.01 / 1.3)


@pytest.mark.parametrize(("g", "expected"), [(-1.0, 1.0099999999), (4.0, 0.990000000025)])
def test_first_step_of_adam_has_the_size_of_the_rate(g, expected):
    params, _ = run(O.adam(0.01), 1.0, [g])
    assert params == pytest.approx(expected, rel=1e-13)


def test_weight_decay_uses_the_parameter_not_the_gradient():
    optimizer = O.chain(O.add_decayed_weights(0.5), O.sgd(0.1))
    params, _ = run(optimizer, np.array([1.0, 2.0]), [np.zeros(2)])
    assert_allclose(params, [0.95, 1.9])


def test_weight_decay_of_a_complex_parameter_shrinks_it():
    optimizer = O.chain(O.add_decayed_weights(0.5), O.sgd(0.1))
    params, _ = run(optimizer, np.array([1.0 + 2.0j]), [np.zeros(1, complex)])
    assert_allclose(params, [0.95 + 1.9j])


def test_second_moment_of_complex_gradients_is_real():
    optimizer = O.scale_by_adam()
    _, state = optimizer.update(np.array([3.0 + 4.0j]), optimizer.init(np.zeros(1, complex)))
    assert state.nu.dtype == np.float64
    assert_allclose(state.nu, [0.025])


def test_meta_gradient_of_an_adam_step_where_the_gradient_is_zero():
    optimizer = O.adam(0.1, eps_root=1e-6)
    params = np.array([1.0, -2.0])

    def total(gradients):
        return np.sum(optimizer.update(gradients, optimizer.init(params), params)[0])

    expected = -0.1 / (np.sqrt(1e-6) + 1e-8)
    assert_allclose(fg.grad(total)(np.zeros(2)), np.full(2, expected), rtol=1e-12)


def test_meta_gradient_is_finite_without_eps_root_too():
    optimizer = O.adam(0.1)

    def total(gradients):
        return np.sum(optimizer.update(gradients, optimizer.init(np.ones(2)))[0])

    assert_allclose(fg.grad(total)(np.zeros(2)), np.full(2, -0.1 / 1e-8), rtol=1e-12)


def test_adam_state_reads_well():
    state, rest = O.adam(0.1).init({"w": 0.0, "act": np.tanh})
    assert (
        repr(state)
        == "ScaleByAdamState(count=0, mu={'w': 0.0, 'act': None}, nu={'w': 0.0, 'act': None})"
    )
    assert repr(rest) == "ScaleByLearningRateState(count=0, learning_rate=0.1)"


def test_count_is_a_python_int():
    _, state = run(O.adam(lambda count: 0.1), PARAMS, GRADIENTS)
    assert [type(part.count) for part in state] == [int, int]
    assert [part.count for part in state] == [5, 5]


def test_order_in_memory_does_not_change_the_step():
    w = np.asfortranarray(np.random.default_rng(0).normal(size=(3, 4)))
    optimizer = O.adam(0.1)
    one, _ = optimizer.update(w, optimizer.init(w))
    two, _ = optimizer.update(w.copy(order="C"), optimizer.init(w))
    assert_array_equal(one, two)
