"""The pair of pure functions, applying updates, and what happens to leaves and trees."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError, TreeMismatchError

O = fg.optim  # noqa: E741
OPTIMIZERS = {
    "sgd": lambda rate: O.sgd(rate),
    "momentum": lambda rate: O.sgd(rate, momentum=0.5),
    "nesterov": lambda rate: O.sgd(rate, momentum=0.5, nesterov=True),
    "adam": lambda rate: O.adam(rate),
    "nadam": lambda rate: O.adam(rate, nesterov=True),
    "adamw": lambda rate: O.adamw(rate),
    "clipped": lambda rate: O.chain(O.clip(5.0), O.clip_by_global_norm(9.0), O.sgd(rate)),
    "decayed": lambda rate: O.chain(O.add_decayed_weights(1e-3), O.sgd(rate)),
    "adabelief": lambda rate: O.adabelief(rate, eps=1e-8, eps_root=1e-8),
    "adadelta": lambda rate: O.adadelta(rate * 100, eps=1e-3),
    "adafactor": lambda rate: O.adafactor(rate),
    "adafactor-momentum": lambda rate: O.adafactor(rate, momentum=0.5, weight_decay_rate=1e-3),
    "adagrad": lambda rate: O.adagrad(rate * 10),
    "adamaxw": lambda rate: O.adamaxw(rate),
    "adan": lambda rate: O.adan(rate),
    "amsgrad": lambda rate: O.amsgrad(rate),
    "block-clipped": lambda rate: O.chain(
        O.clip_by_block_rms(5.0), O.adaptive_grad_clip(1.0), O.sgd(rate)
    ),
    "centralized": lambda rate: O.chain(O.centralize(), O.zero_nans(), O.sgd(rate)),
    "conditional": lambda rate: O.apply_if_finite(
        O.conditionally_transform(
            O.conditionally_mask(O.adam(rate), lambda step: step >= 0), lambda step: step >= 0
        ),
        3,
    ),
    "ema": lambda rate: O.chain(O.ema(0.5), O.sgd(rate)),
    "flatten": lambda rate: O.flatten(O.adam(rate)),
    "fromage": lambda rate: O.fromage(rate),
    "injected": lambda rate: O.inject_hyperparams(O.adam)(rate),
    "lamb": lambda rate: O.lamb(rate),
    "lars": lambda rate: O.lars(rate, trust_coefficient=0.1),
    "lbfgs": lambda rate: O.lbfgs(rate, memory_size=2, linesearch=None),
    "lion": lambda rate: O.lion(rate, weight_decay=1e-3),
    "lion-refined": lambda rate: O.chain(
        O.scale_by_lion(mode="refined"), O.scale_by_learning_rate(4 * rate)
    ),
    "named": lambda rate: O.named_chain(("first", O.trace(0.5)), ("second", O.sgd(rate))),
    "noisy": lambda rate: O.noisy_sgd(rate, eta=1e-4, key=0),
    "normalized": lambda rate: O.chain(O.normalize_by_update_norm(), O.sgd(rate)),
    "novograd": lambda rate: O.novograd(rate, weight_decay=1e-3),
    "optimistic": lambda rate: O.optimistic_gradient_descent(rate),
    "optimistic-adam": lambda rate: O.optimistic_adam_v2(rate, nesterov=False),
    "partition": lambda rate: O.partition({0: O.adam(rate), 1: O.sgd(rate)}, 0),
    "radam": lambda rate: O.radam(rate, b2=0.9),
    "rmsprop": lambda rate: O.rmsprop(rate),
    "rmsprop-centered": lambda rate: O.rmsprop(rate, eps=1e-3, centered=True, momentum=0.5),
    "rmsprop-corrected": lambda rate: O.rmsprop(rate, bias_correction=True),
    "rprop": lambda rate: O.chain(O.scale_by_rprop(1.0), O.sgd(rate)),
    "sam": lambda rate: O.sam(O.adam(rate), O.sgd(-0.1 * rate), sync_period=1),
    "schedule-free": lambda rate: O.schedule_free_adamw(rate),
    "selective": lambda rate: O.selective_transform(O.adam(rate), freeze_mask=False),
    "sign": lambda rate: O.sign_sgd(rate),
    "signum": lambda rate: O.signum(rate),
    "sm3": lambda rate: O.sm3(rate * 10),
    "steps": lambda rate: O.MultiSteps(O.adam(rate), 1).gradient_transformation(),
    "trust": lambda rate: O.chain(
        O.scale_by_param_block_norm(), O.scale_by_trust_ratio(), O.sgd(rate)
    ),
    "trust-rms": lambda rate: O.chain(O.scale_by_param_block_rms(), O.sgd(rate)),
    "walked": lambda rate: O.chain(
        O.scale_by_distance_over_gradients(reps_rel=0.1), O.sgd(rate * 10)
    ),
    "yogi": lambda rate: O.yogi(rate),
}
every = pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)


def step(optimizer, gradients, params):
    updates, state = optimizer.update(gradients, optimizer.init(params), params)
    return O.apply_updates(params, updates), state


# Applying updates


def test_apply_updates_adds():
    new = O.apply_updates({"w": np.array([1.0, 2.0])}, {"w": np.array([0.5, -1.0])})
    assert_array_equal(new["w"], [1.5, 1.0])


@pytest.mark.parametrize(
    "param",
    [
        np.ones(2, np.float32),
        np.array(1.0, np.float32),
        np.float32(1.0),
        np.float64(1.0),
        1.0,
        1.0 + 1.0j,
        np.ones(2, np.complex64),
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", [np.float64, float, np.float32, np.asarray])
def test_apply_updates_keeps_kind_and_dtype(param, kind):
    update = np.full(np.shape(param), 0.5) if np.ndim(param) else kind(0.5)
    new = O.apply_updates({"p": param}, {"p": update})["p"]
    assert type(new) is type(param)
    assert getattr(new, "dtype", None) == getattr(param, "dtype", None)
    assert_array_equal(new, param + 0.5)


def test_apply_updates_skips_none_for_a_leaf_or_a_subtree():
    params = {"w": 1.0, "act": np.tanh, "frozen": {"a": 2.0, "b": 3.0}}
    new = O.apply_updates(params, {"w": 1.0, "act": None, "frozen": None})
    assert new == {"w": 2.0, "act": np.tanh, "frozen": {"a": 2.0, "b": 3.0}}


def test_apply_updates_does_not_change_its_arguments():
    params, updates = np.ones(3), np.ones(3)
    O.apply_updates(params, updates)
    assert_array_equal(params, np.ones(3))
    assert_array_equal(updates, np.ones(3))


def test_apply_updates_of_another_structure_names_the_path():
    with pytest.raises(TreeMismatchError, match=r"the updates at \['a'\]: .* the parameters"):
        O.apply_updates({"a": {"w": 1.0}}, {"a": {"v": 1.0}})


@pytest.mark.parametrize("param", [np.ones(1), 1.0])
def test_apply_updates_does_not_broadcast(param):
    with pytest.raises(ShapeError, match=r"\['w'\]: the update is float64\[3\], the parameter"):
        O.apply_updates({"w": param}, {"w": np.ones(3)})


@pytest.mark.parametrize("update", [np.ones(3), np.ones(1), np.float64(1.0), np.array(1.0), 1.0])
def test_apply_updates_names_the_leaf_of_another_shape(update):
    with pytest.raises(
        ShapeError, match=r"\['b'\]: the update is float.*, the parameter float64\[2"
    ):
        O.apply_updates({"a": 1.0, "b": np.ones(2)}, {"a": 1.0, "b": update})


def test_apply_updates_refuses_none_for_everything():
    with pytest.raises(TreeMismatchError, match="the updates: None"):
        O.apply_updates({"w": 1.0}, None)
    assert O.apply_updates({}, None) == {}


def test_apply_updates_of_a_value_and_gradients_says_so():
    with pytest.raises(TreeMismatchError, match="value, gradients = value_and_grad") as caught:
        O.apply_updates({"w": 1.0}, (0.5, {"w": 1.0}))
    assert caught.value.what == "the updates do not fit the parameters"


# What optimizers are made of


@pytest.mark.parametrize(
    ("part", "got", "fix"),
    [
        ([O.sgd(0.1)], "a list", r"chain\(\*parts\)"),
        (O.sgd, "the function sgd", r"call it: sgd\(0\.1\)"),
        (0.1, r"float 0\.1", r"optim\.sgd\(0\.1\)"),
        (O.GradientTransformation, "", ""),
    ],
)
@pytest.mark.parametrize(
    "use",
    [lambda part: O.chain(O.clip(1.0), part), lambda part: O.masked(part, True)],
    ids=["chain", "masked"],
)
def test_what_is_no_transformation_is_refused_at_once(use, part, got, fix):
    words = rf"takes optimizers and .*, got .*{got}.*\n  where: argument [01] at .*\n  fix: .*{fix}"
    with pytest.raises(ArgumentError, match=words):
        use(part)


def test_transformations_of_other_libraries_are_taken():
    class Doubled:
        def init(self, params):
            return ()

        def update(self, updates, state, params=None):
            return fg.tree.map(lambda leaf: 2 * leaf, updates), state

    optimizer = O.chain(Doubled(), O.scale(-1.0))
    assert optimizer.update({"w": 1.0}, optimizer.init({"w": 0.0}))[0] == {"w": -2.0}


# All optimizers


@every
@pytest.mark.parametrize(
    "rate", [0.1, np.float64(0.1), np.float32(0.1), np.array(0.1), 1], ids=lambda r: repr(r)
)
def test_parameters_keep_their_kind_and_dtype(make, rate):
    params = {
        "f4": np.ones(2, np.float32),
        "f2": np.ones(2, np.float16),
        "zero_d": np.array(1.0, np.float32),
        "scalar": np.float32(1.0),
        "number": 1.0,
    }
    new, _ = step(make(rate), params, params)
    for name, old in params.items():
        assert type(new[name]) is type(old)
        assert getattr(new[name], "dtype", None) == getattr(old, "dtype", None)


@every
def test_state_keeps_structure_kinds_and_dtypes(make):
    params = {"w": np.ones((2, 3), np.float32), "b": np.array(1.0), "s": 1.0, "t": np.float32(2)}
    optimizer = make(0.1)
    before = optimizer.init(params)
    _, after = step(optimizer, params, params)
    assert fg.tree.structure(before) == fg.tree.structure(after)
    for old, new in zip(fg.tree.leaves(before), fg.tree.leaves(after), strict=True):
        assert type(new) is type(old)
        assert getattr(new, "dtype", None) == getattr(old, "dtype", None)


@every
def test_parameters_that_are_not_floating_are_left_alone(make):
    params = {"w": np.ones(2), "act": np.tanh, "n": 3, "flag": True, "name": "dense"}
    gradients = fg.grad(lambda p: np.sum(p["w"] ** 2))(params)
    assert gradients["act"] is None
    optimizer = make(0.1)
    new, state = step(optimizer, gradients, params)
    updates, _ = optimizer.update(gradients, state, new)
    new = O.apply_updates(new, updates)
    assert np.all(new["w"] < 1)
    assert {k: new[k] for k in ("act", "n", "flag", "name")} == {
        "act": np.tanh,
        "n": 3,
        "flag": True,
        "name": "dense",
    }


@every
def test_complex_parameters_descend(make):
    target = np.array([1.0 - 2.0j, -0.5 + 1.0j])

    def distance(z):
        return np.sum(np.abs(z - target) ** 2)

    optimizer = make(0.05)
    z = np.array([0.3 + 0.4j, 1.0 + 0.0j])
    start, state = distance(z), optimizer.init(z)
    for _ in range(200):
        updates, state = optimizer.update(fg.grad(distance)(z), state, z)
        z = O.apply_updates(z, updates)
    assert z.dtype == np.complex128
    assert distance(z) < 1e-2 * start


@every
def test_nothing_is_changed_in_place(make):
    params, gradients = {"w": np.ones(3)}, {"w": np.full(3, 2.0)}
    optimizer = make(0.1)
    state = optimizer.init(params)
    _, state = optimizer.update(gradients, state, params)
    saved = copy.deepcopy(state)
    updates, _ = optimizer.update(gradients, state, params)
    again, _ = optimizer.update(gradients, state, params)
    assert_array_equal(gradients["w"], 2)
    assert_array_equal(params["w"], 1)
    assert_array_equal(updates["w"], again["w"])
    assert fg.tree.same(saved, state)


@every
def test_state_can_be_pickled(make):
    optimizer = make(0.1)
    state = optimizer.init({"w": 1.0})
    assert fg.tree.same(pickle.loads(pickle.dumps(state)), state)


@every
def test_an_update_can_be_differentiated(make):
    optimizer, params = make(0.1), np.array([1.0, -2.0])
    state = optimizer.init(params)

    def total(gradients):
        return np.sum(optimizer.update(gradients, state, params)[0])

    at = np.array([0.5, 2.0])
    slope = [
        (total(at + e) - total(at - e)) / 2e-6 for e in (np.array([1e-6, 0]), np.array([0, 1e-6]))
    ]
    assert_allclose(fg.grad(total)(at), slope, rtol=1e-6, atol=1e-8)


@every
def test_the_learning_rate_can_be_differentiated(make):
    params = np.ones(2, np.float32)

    def total(rate):
        return np.sum(step(make(rate), np.full(2, 0.5, np.float32), params)[0])

    expected = (total(0.1 + 1e-3) - total(0.1 - 1e-3)) / 2e-3
    assert fg.grad(total)(0.1) == pytest.approx(expected, rel=1e-3)


@every
def test_several_learning_rates_at_once(make):
    params = {"w": np.array([[1.0, -2.0], [0.5, 3.0]]), "b": 2.0}
    gradients = {"w": np.array([[0.1, -1.0], [2.0, 0.3]]), "b": -0.5}

    def two_steps(rate):
        optimizer = make(rate)
        new, state = step(optimizer, gradients, params)
        updates, _ = optimizer.update(gradients, state, new)
        return O.apply_updates(new, updates)

    got = fg.vmap(two_steps)(np.array([0.1, 0.01]))
    for i, rate in enumerate([0.1, 0.01]):
        for name, expected in two_steps(rate).items():
            assert_allclose(got[name][i], expected, rtol=1e-6)


@every
def test_parameter_whose_gradient_is_none_is_skipped(make):
    params = {"w": np.ones(2), "b": np.full(2, 3.0)}
    optimizer = make(0.1)
    state = optimizer.init(params)
    for _ in range(2):
        updates, state = optimizer.update({"w": np.full(2, 0.5), "b": None}, state, params)
        assert updates["b"] is None
    assert np.all(updates["w"] < 0)


def test_gradient_that_is_none_leaves_its_state_alone():
    optimizer = O.adam(0.1)
    state = optimizer.init({"w": 1.0, "b": 1.0})
    updates, (after, _) = optimizer.update({"w": None, "b": 1.0}, state)
    assert updates["w"] is None
    assert after.mu["w"] == 0.0
    assert after.mu["b"] == pytest.approx(0.1)


@pytest.mark.parametrize("make", [OPTIMIZERS["momentum"], OPTIMIZERS["adam"]])
def test_gradients_of_another_structure_name_path_and_arguments(make):
    optimizer = make(0.1)
    state = optimizer.init({"layer": {"weight": 1.0, "bias": 1.0}})
    with pytest.raises(TreeMismatchError) as caught:
        optimizer.update({"layer": {"weight": 1.0, "bais": 1.0}}, state)
    assert caught.value.what == "the gradients do not fit the optimizer state"
    assert caught.value.where == (
        "the gradients at ['layer']: missing key 'bias', unexpected key 'bais' "
        "(compared with the optimizer state)"
    )
    assert caught.value.fix == "rename 'bais' to 'bias'"


@every
def test_a_value_and_gradients_are_not_taken_for_gradients(make):
    optimizer, params = make(0.1), {"w": np.ones(2)}
    both = fg.value_and_grad(lambda p: np.sum(p["w"]))(params)
    with pytest.raises(TreeMismatchError, match="value, gradients = value_and_grad"):
        optimizer.update(both, optimizer.init(params), params)


@pytest.mark.parametrize("make", [OPTIMIZERS["momentum"], OPTIMIZERS["adam"]])
def test_a_value_and_gradients_do_not_fit_a_state(make):
    optimizer, params = make(0.1), {"w": np.ones(2)}
    with pytest.raises(TreeMismatchError, match="value, gradients = value_and_grad"):
        optimizer.update((2.0, params), optimizer.init(params))


def test_parameters_may_be_a_tuple():
    params = (1.0, {"w": 2.0})
    new, _ = step(O.sgd(0.5), params, params)
    assert new == (0.5, {"w": 1.0})


@every
def test_none_for_all_gradients_is_refused(make):
    optimizer, params = make(0.1), {"w": np.ones(2)}
    with pytest.raises(TreeMismatchError, match="the gradients: None"):
        optimizer.update(None, optimizer.init(params), params)


@pytest.mark.parametrize("make", [OPTIMIZERS["momentum"], OPTIMIZERS["adam"]])
def test_none_for_all_gradients_does_not_fit_a_state(make):
    optimizer = make(0.1)
    with pytest.raises(TreeMismatchError, match=r"None \(the optimizer state: 2 leaves\)"):
        optimizer.update(None, optimizer.init({"w": 1.0, "b": 1.0}))


def test_none_is_the_gradient_of_nothing():
    optimizer = O.adam(0.1)
    assert optimizer.update(None, optimizer.init(None), None)[0] is None


@pytest.mark.parametrize("make", [OPTIMIZERS["momentum"], OPTIMIZERS["adam"]])
def test_gradients_of_another_shape_name_the_path(make):
    optimizer = make(0.1)
    with pytest.raises(ShapeError, match=r"\['w'\]: the gradient is float64\[2,1\], the optimizer"):
        optimizer.update({"w": np.ones((2, 1))}, optimizer.init({"w": np.ones(2)}))


def test_state_of_another_optimizer_is_refused():
    with pytest.raises(ArgumentError, match="adam needs a state of type ScaleByAdamState"):
        O.adam(0.1).update({"w": 1.0}, O.sgd(0.1).init({"w": 1.0}))


def test_rate_that_is_no_number_is_refused():
    with pytest.raises(ArgumentError, match=r"learning_rate must be a number, got str '0\.1'"):
        O.sgd("0.1")


@pytest.mark.parametrize(
    "make",
    [O.sgd, O.scale_by_schedule, lambda f: O.adamw(0.1, weight_decay=f)],
    ids=["sgd", "scale_by_schedule", "adamw"],
)
def test_schedule_that_returns_no_number_is_named(make):
    def warmup(count):
        pass

    optimizer = make(warmup)
    with pytest.raises(ArgumentError) as caught:
        optimizer.update({"w": 1.0}, optimizer.init({"w": 1.0}), {"w": 1.0})
    assert caught.value.what == "a schedule must return a number, got NoneType None"
    assert caught.value.where.startswith("warmup(0) at ")
    assert "test_base.py:" in caught.value.where
    assert caught.value.fix == "end the schedule with `return 0.1`, say"


def test_weight_decay_does_not_broadcast():
    decay = O.add_decayed_weights(0.1)
    with pytest.raises(ShapeError, match=r"\['w'\]: the gradient is float64\[1\], the parameter"):
        decay.update({"w": np.ones(1)}, decay.init({"w": np.ones(3)}), {"w": np.ones(3)})


def test_identity_takes_no_extra_arguments_unless_wrapped():
    with pytest.raises(TypeError):
        O.identity().update({"w": 1.0}, O.EmptyState(), None, value=1.0)
    wrapped = O.with_extra_args_support(O.identity())
    assert wrapped.update({"w": 1.0}, O.EmptyState(), None, value=1.0)[0] == {"w": 1.0}
