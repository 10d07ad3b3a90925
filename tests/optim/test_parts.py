"""Masks by paths, groups, conditions, accumulation, hyperparameters in the state, and the like."""

import functools
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.errors import ArgumentError, DtypeError, ShapeError, TreeMismatchError

O = fg.optim  # noqa: E741

MODEL = {
    "encoder": {"layers": [{"w": np.ones(2)}, {"w": np.ones(2)}], "norm": np.ones(1)},
    "head": {"w": np.ones(2), "b": 1.0},
}


def once(optimizer, gradients, params=None):
    return optimizer.update(gradients, optimizer.init(gradients), params)[0]


def paths_of_zeros(updates):
    return {
        fg.tree.keystr(path, simple=True, separator=".")
        for path, leaf in fg.tree.leaves_with_path(updates)
        if not np.any(leaf)
    }


# Masks by paths

ENCODER = {"encoder.layers.0.w", "encoder.layers.1.w", "encoder.norm"}


@pytest.mark.parametrize(
    ("pattern", "frozen"),
    [
        ("encoder.*", ENCODER),
        ("encoder", ENCODER),
        ("*.w", {"encoder.layers.0.w", "encoder.layers.1.w", "head.w"}),
        ("encoder.layers.[0]", {"encoder.layers.0.w"}),
        (["head.b", "encoder.norm"], {"head.b", "encoder.norm"}),
        ("*", ENCODER | {"head.w", "head.b"}),
    ],
)
@pytest.mark.parametrize(
    "frozen_by",
    [
        lambda mask: O.chain(O.sgd(0.1), O.freeze(mask)),
        lambda mask: O.selective_transform(O.sgd(0.1), freeze_mask=mask),
    ],
    ids=["freeze", "selective_transform"],
)
def test_freezing_by_a_pattern(pattern, frozen, frozen_by):
    assert paths_of_zeros(once(frozen_by(pattern), MODEL)) == frozen


def test_weight_decay_by_a_pattern():
    optimizer = O.adamw(0.1, weight_decay=0.5, mask="*.w")
    zeros = fg.tree.map(lambda leaf: leaf * 0, MODEL)
    updates = once(optimizer, zeros, MODEL)
    assert_allclose(updates["head"]["w"], -0.05)
    assert updates["head"]["b"] == 0


def test_pattern_that_matches_nothing_names_the_paths():
    optimizer = O.selective_transform(O.sgd(0.1), freeze_mask="encodr.*")
    with pytest.raises(ArgumentError) as caught:
        optimizer.init(MODEL)
    assert caught.value.what == "no parameter matches the pattern 'encodr.*'"
    assert "encoder.layers.0.w, encoder.layers.1.w, encoder.norm" in caught.value.where


def test_frozen_parameters_have_no_state():
    optimizer = O.selective_transform(O.trace(0.9), freeze_mask="encoder")
    state = optimizer.init(MODEL)
    assert len(fg.tree.leaves(state)) == 2


def test_pattern_where_gradients_are_none():
    params = {"a": {"w": 1.0, "act": np.tanh}, "b": {"w": 1.0}}
    gradients = {"a": {"w": 1.0, "act": None}, "b": {"w": 1.0}}
    optimizer = O.selective_transform(O.adam(0.1), freeze_mask="a.*")
    updates, _ = optimizer.update(gradients, optimizer.init(params), params)
    assert updates["a"] == {"w": 0.0, "act": None}
    assert updates["b"]["w"] == pytest.approx(-0.1)


def test_mask_made_by_a_function_where_gradients_are_none():
    params = {"w": np.ones((2, 2)), "b": np.ones(2), "act": np.tanh}
    gradients = {"w": np.zeros((2, 2)), "b": np.zeros(2), "act": None}
    mask = functools.partial(fg.tree.map, lambda leaf: np.ndim(leaf) > 1)
    optimizer = O.adamw(0.1, weight_decay=0.5, mask=mask)
    updates, _ = optimizer.update(gradients, optimizer.init(params), params)
    assert_allclose(updates["w"], -0.05)
    assert_allclose(updates["b"], 0)
    assert updates["act"] is None


def test_extra_arguments_like_the_gradients_are_masked_if_wanted():
    seen = []

    def update(updates, state, params=None, *, grad, **extra_args):
        seen.append(grad)
        return updates, state

    inner = O.GradientTransformationExtraArgs(lambda params: (), update)
    gradients = {"w": 1.0, "b": 2.0}
    for compatible in (True, False):
        optimizer = O.masked(inner, {"w": True, "b": False}, mask_compatible_extra_args=compatible)
        optimizer.update(gradients, optimizer.init(gradients), grad=gradients)
    assert seen == [{"w": 1.0, "b": O.MaskedNode()}, gradients]


# Groups


def test_label_without_a_transformation_is_named():
    optimizer = O.partition({"train": O.sgd(0.1)}, {"w": "train", "b": "keep"})
    with pytest.raises(ArgumentError, match="no transformation for the label 'keep'"):
        optimizer.init({"w": 1.0, "b": 1.0})


def test_labels_for_subtrees_and_by_a_function():
    parts = {"fast": O.sgd(1.0), "slow": O.sgd(0.1)}

    def labels(params):
        return {name: "slow" if name == "encoder" else "fast" for name in params}

    updates = once(O.partition(parts, labels), MODEL)
    assert_allclose(updates["encoder"]["norm"], -0.1)
    assert_allclose(updates["head"]["b"], -1.0)


def test_labels_that_do_not_fit_say_so():
    with pytest.raises(TreeMismatchError, match="the mask does not fit the parameters"):
        O.partition({"a": O.sgd(0.1)}, {"w": "a"}).init({"w": 1.0, "b": 1.0})


def test_names_of_a_chain_must_differ():
    with pytest.raises(ArgumentError, match="got 'a' twice"):
        O.named_chain(("a", O.clip(1.0)), ("a", O.sgd(0.1)))


def test_named_chain_with_a_state_of_another_is_refused():
    with pytest.raises(ArgumentError, match="a named_chain of a needs a state of these parts"):
        O.named_chain(("a", O.clip(1.0))).update(1.0, {"b": ()})


# Conditions


def test_steps_that_are_not_finite_are_skipped_until_there_are_too_many():
    optimizer = O.apply_if_finite(O.sgd(0.5), max_consecutive_errors=2)
    state, seen = optimizer.init(0.0), []
    for gradient in [1.0, np.nan, np.inf, np.nan, 1.0]:
        update, state = optimizer.update(gradient, state)
        seen.append((update, state.notfinite_count, state.last_finite, state.total_notfinite))
    assert_array_equal([update for update, *_ in seen], [-0.5, 0, 0, np.nan, -0.5])
    assert [rest for _, *rest in seen] == [
        [0, True, 0],
        [1, False, 1],
        [2, False, 2],
        [3, False, 3],
        [0, True, 3],
    ]


def test_condition_is_given_extra_arguments_if_wanted():
    optimizer = O.conditionally_mask(
        O.scale(1.0), lambda step, value, **_: value < 2, forward_extra_args=True
    )
    state = optimizer.init(0.0)
    assert optimizer.update(3.0, state, value=1.0)[0] == 3.0
    assert optimizer.update(3.0, state, value=5.0)[0] == 0.0


# Accumulation


def test_steps_of_several_gradients_have_the_mean_of_all():
    optimizer = O.MultiSteps(O.sgd(1.0), 4)
    gradients = np.random.default_rng(0).normal(size=(4, 3))
    state, total = optimizer.init(np.zeros(3)), 0
    for gradient in gradients:
        assert not optimizer.has_updated(state)
        update, state = optimizer.update(gradient, state)
        total = total + update
    assert optimizer.has_updated(state)
    assert_allclose(total, -np.mean(gradients, axis=0), rtol=1e-14)
    assert_array_equal(state.acc_grads, np.zeros(3))


def test_gradients_that_are_not_finite_are_left_out():
    optimizer = O.MultiSteps(O.sgd(1.0), 2, should_skip_update_fn=O.skip_not_finite)
    state, steps = optimizer.init(0.0), []
    for gradient in [1.0, np.nan, 3.0]:
        update, state = optimizer.update(gradient, state)
        steps.append((update, state.skip_state["num_not_finite"]))
    assert steps == [(0.0, 0), (0.0, 1), (-2.0, 0)]


def test_answer_to_skipping_must_be_one_bool():
    optimizer = O.MultiSteps(
        O.sgd(1.0), 2, should_skip_update_fn=lambda updates, step, params: (updates > 0, ())
    )
    with pytest.raises(ArgumentError, match="must return one bool, got bool"):
        optimizer.update(np.ones(2), optimizer.init(np.ones(2)))


# Lookahead

# Optax 0.2.8
LOOKAHEAD = [
    [1.0, -2.0],
    [0.9017408995140832, -1.9000000010000004],
    [0.9017408995140832, -1.9000000010000004],
    [0.8018747559289172, -1.8000000020000009],
]


def test_lookahead_takes_the_steps_of_optax():
    optimizer = O.lookahead(O.adam(0.1), 2, 0.5, reset_state=True)
    params = O.LookaheadParams.init_synced({"w": np.array([1.0, -2.0])})
    state, slow = optimizer.init(params), []
    for k in range(4):
        gradient = {"w": np.array([k + 1.0, -1.0])}
        updates, state = optimizer.update(gradient, state, params)
        params = O.apply_updates(params, updates)
        slow.append(params.slow["w"])
    assert_allclose(slow, LOOKAHEAD, rtol=1e-12)
    assert_array_equal(params.fast["w"], params.slow["w"])


def test_lookahead_without_pairs_of_parameters_is_refused():
    optimizer = O.lookahead(O.sgd(0.1), 2, 0.5)
    with pytest.raises(ArgumentError, match="lookahead needs LookaheadParams, got float"):
        optimizer.update(1.0, optimizer.init(1.0), 1.0)


def test_lookahead_leaves_what_has_no_gradient():
    optimizer = O.lookahead(O.sgd(1.0), 1, 0.5)
    params = O.LookaheadParams.init_synced({"w": 1.0, "act": np.tanh})
    updates, _ = optimizer.update({"w": 1.0, "act": None}, optimizer.init(params), params)
    assert updates == O.LookaheadParams({"w": -0.5, "act": None}, {"w": -0.5, "act": None})


# Adversaries and averages


def hills(w):
    return np.sum(np.array([1.0, 4.0]) * w**2 + np.sin(3 * w))


def test_adversary_in_one_update():
    gradient = fg.grad(hills)
    optimizer = O.sam(
        O.adam(0.1),
        O.chain(O.normalize(), O.sgd(0.05, momentum=0.5)),
        sync_period=3,
        opaque_mode=True,
        reset_state=False,
    )
    w = np.array([1.0, -1.0])
    state = optimizer.init(w)
    for _ in range(4):
        updates, state = optimizer.update(
            gradient(w), state, w, grad_fn=lambda w, i: gradient(w) * (i + 1)
        )
        w = O.apply_updates(w, updates)
    assert_allclose(w, [1.3464126688684535, -0.6014811639111568], rtol=1e-12)  # Optax 0.2.8


def test_adversary_leaves_what_has_no_gradient():
    optimizer = O.sam(O.sgd(0.25), O.sgd(0.5))
    params, gradients = {"w": 2.0, "act": np.tanh}, {"w": 1.0, "act": None}
    state = optimizer.init(params)
    for expected in (2.5, 1.75):
        updates, state = optimizer.update(gradients, state, params)
        params = O.apply_updates(params, updates)
        assert params == {"w": expected, "act": np.tanh}


def test_adversary_asks_for_what_is_missing():
    optimizer = O.sam(O.sgd(0.1), O.sgd(0.1), opaque_mode=True)
    with pytest.raises(ArgumentError, match="needs a function for gradients"):
        optimizer.update(1.0, optimizer.init(1.0), 1.0)
    with pytest.raises(ArgumentError, match="no named axes"):
        O.sam(O.sgd(0.1), O.sgd(0.1), batch_axis_name="batch")


def test_average_of_a_schedule_free_optimizer():
    gradient = fg.grad(hills)
    optimizer = O.schedule_free(O.sgd(0.05), 0.05, b1=0.8, state_dtype=np.float32)
    w = np.array([1.0, -1.0])
    state = optimizer.init(w)
    for _ in range(4):
        updates, state = optimizer.update(gradient(w), state, w)
        w = O.apply_updates(w, updates)
    assert state.z.dtype == np.float32
    # Optax 0.2.8
    assert_allclose(w, [1.1249255925416946, -0.2746337912976743], rtol=1e-6)
    average = O.schedule_free_eval_params(state, w)
    assert_allclose(average, [1.1127899922430515, -0.2944493656978013], rtol=1e-6)


def test_average_leaves_what_is_not_trained():
    optimizer = O.schedule_free_sgd(0.5)
    params = {"w": 1.0, "n": 3, "act": np.tanh}
    state = optimizer.init(params)
    updates, state = optimizer.update({"w": 1.0, "n": None, "act": None}, state, params)
    params = O.apply_updates(params, updates)
    assert O.schedule_free_eval_params(state, params) == {"w": 0.5, "n": 3, "act": np.tanh}


# Hyperparameters, learning rate and step in the state


def test_hyperparameters_can_be_changed_in_the_state():
    optimizer = O.inject_hyperparams(O.sgd)(learning_rate=0.1, momentum=0.5)
    state = optimizer.init(0.0)
    state.hyperparams["learning_rate"] = 1.0
    update, state = optimizer.update(1.0, state)
    assert update == -1.0
    assert state.hyperparams == {"learning_rate": 1.0, "momentum": 0.5}


def test_schedules_are_found_in_the_hyperparameters():
    optimizer = O.inject_hyperparams(O.adam)(lambda count: 0.1 * (count + 1), b1=lambda c: 0.5)
    state = optimizer.init(0.0)
    for _ in range(3):
        _, state = optimizer.update(1.0, state)
    assert state.hyperparams["learning_rate"] == pytest.approx(0.3)
    assert state.hyperparams["b1"] == 0.5
    assert state.count == 3


def test_static_arguments_are_not_in_the_state():
    made = O.inject_hyperparams(O.adamw, static_args=("mask", "eps"))
    state = made(0.1, mask=lambda params: fg.tree.map(lambda leaf: True, params)).init(0.0)
    assert "eps" not in state.hyperparams
    assert set(state.hyperparams) >= {"learning_rate", "b1", "b2", "weight_decay"}


def test_static_argument_that_does_not_exist_is_named():
    with pytest.raises(ArgumentError, match="static_args has 'betas'"):
        O.inject_hyperparams(O.adam, static_args="betas")


def test_dtype_of_hyperparameters():
    optimizer = O.inject_hyperparams(O.sgd, hyperparam_dtype=np.float32)(0.1)
    state = optimizer.init(np.ones(2))
    assert state.hyperparams["learning_rate"].dtype == np.float32
    update, _ = optimizer.update(np.ones(2), state)
    assert update.dtype == np.float64
    assert_allclose(update, -np.float64(np.float32(0.1)), rtol=1e-15)


def test_schedule_with_a_state_of_its_own():
    class Halving:
        def init(self):
            return 1.0

        def update(self, state, *, value, **extra_args):
            return state / 2 if value > 1 else state

        def __call__(self, state, **extra_args):
            return state

    optimizer = O.inject_hyperparams(O.sgd)(Halving())
    state, steps = optimizer.init(0.0), []
    for value in [0.0, 2.0, 0.0]:
        update, state = optimizer.update(1.0, state, value=value)
        steps.append(update)
    assert steps == [-1.0, -1.0, -0.5]


def halved(count):
    return 0.5**count


READABLE = {
    "adam": O.adam(halved),
    "masked": O.masked(O.adam(halved), True),
    "chain": O.chain(O.clip(1.0), O.chain(O.adam(halved), O.freeze(False))),
    "named": O.named_chain(
        ("adam", O.adam(halved)),
    ),
    "injected": O.inject_hyperparams(O.adam)(halved),
    "selective": O.selective_transform(O.lion(halved), freeze_mask=False),
    "multi": O.MultiSteps(O.adam(halved), 1).gradient_transformation(),
}


@pytest.mark.parametrize("name", READABLE)
def test_learning_rate_and_step_can_be_read(name):
    optimizer = READABLE[name]
    state = optimizer.init({"w": 1.0})
    assert (O.current_learning_rate(state), O.current_step(state)) == (1.0, 0)
    for _ in range(3):
        _, state = optimizer.update({"w": 1.0}, state, {"w": 1.0})
    assert (O.current_learning_rate(state), O.current_step(state)) == (0.25, 3)


def test_several_learning_rates_are_not_one():
    optimizer = O.partition({"a": O.sgd(0.1), "b": O.sgd(0.2)}, {"w": "a", "v": "b"})
    state = optimizer.init({"w": 1.0, "v": 1.0})
    with pytest.raises(ArgumentError, match="the state has 2 different learning rates"):
        O.current_learning_rate(state)
    assert O.current_learning_rate(state.inner_states["b"]) == 0.2
    assert O.current_step(state) == 0


def test_state_without_a_learning_rate_says_so():
    with pytest.raises(ArgumentError, match="the state has no learning rate"):
        O.current_learning_rate(O.trace(0.9).init(1.0))


def test_parts_of_a_state_that_are_like_the_parameters():
    optimizer = O.chain(O.masked(O.adam(0.1), {"w": True, "b": False}), O.trace(0.9))
    params = {"w": np.zeros(2), "b": np.zeros(3)}
    state = optimizer.init(params)
    named = O.tree_map_params(
        O.trace(0.9), lambda leaf, name: name, O.trace(0.9).init(params), {"w": "W", "b": "B"}
    )
    assert named.trace == {"w": "W", "b": "B"}
    marked = O.tree_map_params(
        optimizer, lambda leaf: "p", state, transform_non_params=lambda leaf: "other"
    )
    inner = marked[0].inner_state[0]
    assert (inner.count, inner.mu["w"], marked[1].trace) == ("other", "p", {"w": "p", "b": "p"})


# Monitoring


def test_measurements_change_nothing_and_are_kept():
    optimizer = O.chain(
        O.monitor({"norm": O.global_norm, "mean": O.measure_with_ema(O.global_norm, 0.5)}),
        O.snapshot("largest", lambda updates: np.max(updates)),
    )
    state = optimizer.init(np.zeros(2))
    for gradient in (np.array([3.0, 4.0]), np.array([0.0, 1.0])):
        update, state = optimizer.update(gradient, state)
        assert_array_equal(update, gradient)
    assert state[0].measurements["norm"] == 1.0
    assert state[0].measurements["mean"] == pytest.approx((0.25 * 5 + 0.5 * 1) / 0.75)
    assert state[1].measurement == {"largest": 1.0}


# Clipping for each example


def test_gradients_of_examples_are_clipped_one_by_one():
    rng = np.random.default_rng(1)
    grads = {"w": rng.normal(size=(4, 3, 2)), "b": rng.normal(size=(4, 2))}
    for name, g in grads.items():
        grads[name] = g * np.reshape([0.1, 1, 10, 0], (4, *[1] * (g.ndim - 1)))
    sums, count = O.per_example_global_norm_clip(grads, 1.0)
    expected = {"w": 0, "b": 0}
    for i in range(4):
        norm = np.sqrt(np.sum(grads["w"][i] ** 2) + np.sum(grads["b"][i] ** 2))
        for name in expected:
            expected[name] = expected[name] + grads[name][i] * min(1, 1 / norm if norm else 1)
    assert count == 2
    for name in expected:
        assert_allclose(sums[name], expected[name], rtol=1e-12)


@pytest.mark.parametrize(("uniform", "limits"), [(True, [0.5, 0.5]), (False, [0.75, 0.25])])
def test_gradients_of_layers_are_clipped_one_by_one(uniform, limits):
    grads = {"b": np.array([[3.0, 4.0, 0.0]]), "w": np.array([[2.0]])}
    sums, counts = O.per_example_layer_norm_clip(grads, 1.0, uniform)
    assert_allclose(np.linalg.norm(sums["b"]), np.sqrt(limits[0]), rtol=1e-12)
    assert_allclose(np.linalg.norm(sums["w"]), np.sqrt(limits[1]), rtol=1e-12)
    assert counts == {"b": 1, "w": 1}


def test_gradients_that_do_not_count_examples_are_refused():
    with pytest.raises(ShapeError, match="must count the same examples"):
        O.per_example_global_norm_clip({"w": np.ones((2, 3)), "b": np.ones(3)}, 1.0)


# Noise


def test_noise_has_the_deviation_that_was_asked_for():
    optimizer = O.add_noise(eta=0.04, gamma=0.5, key=fg.random.key(7))
    zeros = {"w": np.zeros(20000), "z": np.zeros(20000, complex)}
    state = optimizer.init(zeros)
    for count in (1, 2):
        updates, state = optimizer.update(zeros, state)
        for leaf in updates.values():
            assert_allclose(np.std(leaf), 0.2 / count**0.25, rtol=0.02)
            assert abs(np.mean(leaf)) < 0.01


def test_noise_differs_from_step_to_step_and_is_the_same_again():
    optimizer = O.add_noise(0.1, 0.0, key=3)
    first, state = optimizer.update(np.zeros(4), optimizer.init(np.zeros(4)))
    second, _ = optimizer.update(np.zeros(4), state)
    again, _ = optimizer.update(np.zeros(4), state)
    assert not np.any(first == second)
    assert_array_equal(second, again)


def test_noise_without_a_key_warns():
    with pytest.warns(UserWarning, match="takes key 0"):
        O.add_noise(0.1, 0.5)
    with pytest.warns(DeprecationWarning, match="write key=seed"):
        O.noisy_sgd(0.1, seed=1)


# Scaling gradients in a function


@pytest.mark.parametrize("scale", [0.0, 0.5, 1.0, -2.0])
def test_gradients_are_scaled_and_values_are_not(scale):
    params = {"w": np.array([1.0, 2.0]), "b": 3.0}

    def loss(params):
        scaled = O.scale_gradient(params, scale)
        return np.sum(scaled["w"] ** 2) + scaled["b"]

    value, gradient = fg.value_and_grad(loss)(params)
    assert value == 8.0
    assert_allclose(gradient["w"], scale * np.array([2.0, 4.0]))
    assert gradient["b"] == scale


# Parts of a batch


def loss(w, x, y):
    return np.sum((x @ w - y) ** 2)


def test_gradients_of_parts_of_a_batch_add_up():
    rng = np.random.default_rng(2)
    w, x, y = rng.normal(size=3), rng.normal(size=(6, 3)), rng.normal(size=6)
    whole = fg.value_and_grad(loss)(w, x, y)
    parts = O.microbatch(fg.value_and_grad(loss), (1, 2), 2)(w, x, y)
    assert_allclose(parts[0], whole[0], rtol=1e-13)
    assert_allclose(parts[1], whole[1], rtol=1e-12)


def test_parts_of_keyword_arguments_and_other_axes():
    x, y = np.arange(12.0).reshape(2, 6), np.arange(6.0)
    mean = O.microbatch(
        lambda x, y: (np.sum(x, axis=1) * 1.0, np.mean(y)),
        0,
        3,
        (O.AccumulationType.SUM, O.AccumulationType.MEAN),
        argnames="y",
        in_axes=(1, 0),
    )
    total, average = mean(x, y=y)
    assert_array_equal(total, np.sum(x, axis=1))
    assert average == 2.5


def test_results_of_parts_are_put_in_the_order_of_the_batch():
    x = np.arange(6.0)
    joined = O.microbatch(lambda x: x**2, 0, 2, O.AccumulationType.CONCAT)
    assert_array_equal(joined(x), x**2)


def test_only_some_parts_are_computed_if_wanted():
    x = np.arange(6.0)
    kinds = [O.AccumulationType.SUM, O.AccumulationType.RUNNING_MEAN, O.AccumulationType.CONCAT]
    part = O.microbatch(lambda x: [np.sum(x), np.mean(x), x], 0, 2, kinds, num_real_microbatches=1)
    total, mean, joined = part(x)
    assert (total, mean) == (3.0, 1.5)  # of the elements 0 and 3
    assert_array_equal(joined, [0, 0, 0, 3, 0, 0])


def test_parts_that_do_not_divide_the_batch_are_refused():
    with pytest.raises(ShapeError, match="parts of 4 do not divide a batch of 6"):
        O.microbatch(np.sum, 0, 4)(np.arange(6.0))
    with pytest.raises(ShapeError, match=r"same number of examples, got \[2, 3\]"):
        O.microbatch(np.add, (0, 1), 1)(np.ones(2), np.ones(3))


def test_means_of_integers_are_refused():
    with pytest.raises(DtypeError, match="a mean is of floating-point numbers"):
        O.microbatch(np.sum, 0, 1, O.AccumulationType.MEAN)(np.arange(3))


def test_one_whole_part_is_the_function_itself():
    assert O.microbatch(np.sum, 0, None) is np.sum


# Helpers


def test_update_moment_leaves_out_none():
    assert O.update_moment({"w": 2.0, "b": None}, {"w": 0.0, "b": 5.0}, 0.5, 2) == {
        "w": 2.0,
        "b": 5.0,
    }


def test_increment_stops_at_the_largest_number():
    top = np.array([0, 126, 127], np.int8)
    assert_array_equal(O.safe_increment(top), np.array([1, 127, 127], np.int8))
    assert O.safe_increment(5) == 6
    with pytest.raises(ArgumentError, match="a count must be a number, got str"):
        O.safe_increment("5")


def test_safe_norm_along_axes_and_of_zeros():
    x = np.array([[3.0, 4.0], [0.0, 0.0]])
    assert_array_equal(O.safe_norm(x, 0.5, axis=1), [5.0, 0.5])
    assert_array_equal(O.safe_norm(x, 0.5, axis=1, keepdims=True), [[5.0], [0.5]])
    assert O.safe_norm(x, 0.5, ord=np.inf, axis=(0, 1)) == 7.0
    assert_array_equal(fg.grad(lambda x: np.sum(O.safe_norm(x, 0.5, axis=1)))(x)[1], 0)


def test_safe_root_mean_squares_has_a_gradient_at_zeros():
    assert_array_equal(fg.grad(O.safe_root_mean_squares)(np.zeros(3), 0.0), np.zeros(3))
    assert O.safe_root_mean_squares(np.array([3.0 + 4.0j]), 1.0) == 5.0


def test_incremental_update_leaves_what_is_no_number():
    new, old = {"w": 1.0, "n": 3, "act": np.tanh}, {"w": 0.0, "n": 2, "act": np.sin}
    assert O.incremental_update(new, old, 0.25) == {"w": 0.25, "n": 3, "act": np.tanh}


def test_periodic_update_under_vmap():
    got = fg.vmap(lambda n: O.periodic_update(1.0, 0.0, n, 3))(np.arange(5))
    assert_array_equal(got, [1, 0, 0, 1, 0])


def test_stateless_with_tree_map_leaves_out_none():
    optimizer = O.stateless_with_tree_map(lambda g, p: g + p)
    assert optimizer.update({"w": 1.0, "b": None}, (), {"w": 2.0, "b": 5.0})[0] == {
        "w": 3.0,
        "b": None,
    }
    optimizer = O.stateless_with_tree_map(lambda g, p: (g, p))
    assert optimizer.update(1.0, ())[0] == (1.0, None)


def test_nan_is_found_where_it_is():
    optimizer = O.zero_nans()
    gradients = {"w": np.array([np.nan, 1.0]), "b": 2.0}
    updates, state = optimizer.update(gradients, optimizer.init(gradients))
    assert state.found_nan == {"w": True, "b": False}
    assert_array_equal(updates["w"], [0, 1])


def test_flatten_with_a_gradient_that_is_none():
    optimizer = O.flatten(O.sgd(0.5, momentum=0.5))
    params = {"w": np.ones(2), "v": 1.0, "act": np.tanh}
    updates, state = optimizer.update(
        {"w": np.ones(2), "v": None, "act": None}, optimizer.init(params), params
    )
    assert_array_equal(updates["w"], [-0.5, -0.5])
    assert updates["v"] is None
    assert_array_equal(state[0].trace, [0, 1, 1])


def test_more_than_five_axes_need_to_be_told_the_units():
    gradients = np.ones((1, 2, 2, 2, 2, 2, 2))
    with pytest.raises(ShapeError, match="up to five axes"):
        once(O.adaptive_grad_clip(0.1), gradients, gradients)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: O.cosine_decay_schedule(1.0, 0), "positive decay_steps, got 0"),
        (lambda: O.linear_onecycle_schedule(0, 1.0), "positive transition_steps, got 0"),
        (lambda: O.piecewise_constant_schedule(1.0, {1: -1.0}), "not negative, got -1.0"),
        (lambda: O.piecewise_constant_schedule(1.0, [3]), r"factors by the number of steps, not l"),
        (lambda: O.join_schedules([O.constant_schedule(1.0)], [3]), "1 schedules and 1 boundaries"),
        (lambda: O.join_schedules([], []), "0 schedules and 0 boundaries"),
        (lambda: O.MultiSteps(O.sgd(1.0), 0), "not every 0"),
        (lambda: O.piecewise_interpolate_schedule("cubic", 1.0), "'linear' or 'cosine'"),
        (lambda: O.warmup_inverse_sqrt_schedule(1.0, 0), "positive warmup_steps, got 0"),
        (lambda: O.scale_by_lion(mode="soft"), "mode must be"),
        (lambda: O.scale_by_polyak(variant="x"), "variant must be"),
        (lambda: O.scale_by_lbfgs(0), "memory_size must be at least 1"),
        (lambda: O.scale_by_zoom_linesearch(5, initial_guess_strategy="two"), "'keep' or 'one'"),
        (lambda: O.lookahead(O.sgd(1.0), 0, 0.5), "sync_period must be at least 1"),
        (lambda: O.reduce_on_plateau(factor=2.0), "factor must be between 0 and 1"),
        (lambda: O.reduce_on_plateau(rtol=0.0), "one of them positive"),
        (lambda: O.add_noise(0.1, 0.1, key=1, seed=1), "a key or a seed"),
    ],
)
def test_argument_out_of_range_is_named(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()


def test_optimistic_adam_warns_and_takes_no_schedule():
    with pytest.warns(DeprecationWarning, match="optimistic_adam_v2"):
        O.optimistic_adam(0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ArgumentError, match="no schedule"):
            O.optimistic_adam(lambda count: 0.1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: O.adaptive_grad_clip(0.1),
        lambda: O.keep_params_nonnegative(),
        lambda: O.lamb(0.1),
        lambda: O.scale_by_factored_rms(),
        lambda: O.scale_by_param_block_rms(),
        lambda: O.scale_by_distance_over_gradients(),
        lambda: O.scale_by_lbfgs(),
        lambda: O.novograd(0.1, weight_decay=0.1),
    ],
)
def test_parameters_that_are_missing_are_asked_for(make):
    with pytest.raises(ArgumentError, match="needs the parameters"):
        once(make(), {"w": np.ones(2)})


@pytest.mark.parametrize(
    ("optimizer", "needed"),
    [
        (O.lbfgs(), "scale_by_zoom_linesearch needs value and grad and value_fn"),
        (O.scale_by_backtracking_linesearch(5), "needs value and grad and value_fn"),
        (O.reduce_on_plateau(), "reduce_on_plateau needs value as"),
        (O.polyak_sgd(), "scale_by_polyak needs value as"),
    ],
)
def test_update_says_what_it_needs_besides_gradients(optimizer, needed):
    params = {"w": np.ones(3)}
    with pytest.raises(ArgumentError, match=needed) as caught:
        optimizer.update(params, optimizer.init(params), params)
    assert "update(gradients, state, params, value=value" in caught.value.fix


@pytest.mark.parametrize("argument", ["lr", "betas", "momentun"])
@pytest.mark.parametrize("make", [O.sgd, O.adam, O.lbfgs, O.inject_hyperparams(O.adamw)])
def test_unknown_argument_of_an_optimizer_is_named(make, argument):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{argument}'"):
        make(**{"learning_rate": 0.1, argument: 0.9})
