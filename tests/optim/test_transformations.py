"""Chains, masks, clipping and factors."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.errors import ArgumentError, TreeMismatchError

O = fg.optim  # noqa: E741


def once(optimizer, gradients, params=None):
    return optimizer.update(gradients, optimizer.init(gradients), params)[0]


# Chains


def test_chain_applies_in_order():
    assert once(O.chain(O.clip(1.0), O.scale(3.0)), 2.0) == 3.0
    assert once(O.chain(O.scale(3.0), O.clip(1.0)), 2.0) == 1.0


def test_chain_of_chains():
    optimizer = O.chain(O.clip_by_global_norm(1.0), O.sgd(0.1, momentum=0.9))
    assert_allclose(once(optimizer, np.array([3.0, 4.0])), [-0.06, -0.08])


def test_empty_chain_changes_nothing():
    assert O.chain().update({"w": 1.0}, ()) == ({"w": 1.0}, ())


def test_chain_gives_extra_arguments_to_those_that_take_them():
    def update(updates, state, params=None, *, value, **extra_args):
        return fg.tree.map(lambda g: g * value, updates), state

    scaled = O.GradientTransformationExtraArgs(lambda params: O.EmptyState(), update)
    optimizer = O.chain(O.scale(2.0), scaled)
    assert optimizer.update(1.0, optimizer.init(0.0), None, value=5.0)[0] == 10.0


def test_chain_with_a_state_of_another_length_is_refused():
    with pytest.raises(ArgumentError, match="a chain of 3 needs a state of as many parts, got 2"):
        O.adamw(0.1).update(1.0, O.adam(0.1).init(1.0), 1.0)


# Masks


def test_mask_with_one_bool_for_a_subtree():
    gradients = {"a": {"w": 1.0, "b": 2.0}, "c": 3.0}
    got = once(O.masked(O.scale(10.0), {"a": True, "c": False}), gradients)
    assert got == {"a": {"w": 10.0, "b": 20.0}, "c": 3.0}


def test_mask_keeps_no_state_for_what_it_leaves_out():
    state = O.masked(O.trace(0.9), {"w": True, "b": False}).init({"w": 1.0, "b": 1.0})
    assert state.inner_state.trace == {"w": 0.0, "b": O.MaskedNode()}


def test_mask_that_does_not_fit_says_so():
    with pytest.raises(TreeMismatchError, match=r"the mask at the root: missing key 'b'"):
        O.adamw(0.1, mask={"w": True}).init({"w": 1.0, "b": 1.0})


def test_weight_decay_without_parameters_is_refused():
    with pytest.raises(ArgumentError, match="add_decayed_weights needs the parameters"):
        once(O.adamw(0.1), {"w": 1.0})


# Clipping


def test_clip_limits_each_element():
    got = once(O.clip(1.0), {"w": np.array([-3.0, 0.5, np.nan])})
    assert_array_equal(got["w"], [-1.0, 0.5, np.nan])


def test_clip_limits_both_parts_of_complex_numbers():
    assert_array_equal(once(O.clip(1.0), np.array([3.0 - 0.5j])), [1.0 - 0.5j])


def test_clip_by_global_norm_scales_all_leaves_together():
    got = once(O.clip_by_global_norm(1.0), {"w": np.array([3.0]), "b": 4.0})
    assert_allclose(got["w"], [0.6])
    assert got["b"] == pytest.approx(0.8)


def test_clip_by_global_norm_leaves_small_gradients_as_they_are():
    gradients = {"w": np.array([0.3, 0.4])}
    assert once(O.clip_by_global_norm(1.0), gradients)["w"] is gradients["w"]


def test_clip_to_norm_zero_of_zeros_is_zeros():
    got = once(O.clip_by_global_norm(0.0), {"w": np.zeros(3), "b": np.zeros(())})
    assert_array_equal(got["w"], np.zeros(3))
    assert_array_equal(got["b"], 0.0)


def test_clip_by_global_norm_shows_nan():
    assert np.all(np.isnan(once(O.clip_by_global_norm(1.0), np.array([np.nan, 1.0]))))


@pytest.mark.parametrize(
    ("dtype", "size", "rtol"),
    [(np.float16, 6e4, 1e-3), (np.float32, 1e30, 1e-6), (float, 1e200, 0)],
)
def test_clip_by_global_norm_of_gradients_whose_squares_overflow(dtype, size, rtol):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = once(O.clip_by_global_norm(1.0), np.full(4, size, dtype))
    assert got.dtype == dtype
    assert_allclose(got, 0.5, rtol=max(rtol, 1e-15))


def test_global_norm_of_squares_that_underflow():
    assert O.global_norm([np.full(4, 1e-200)]) == pytest.approx(2e-200)


def test_global_norm_of_complex_leaves():
    assert O.global_norm([np.array([3.0 + 4.0j]), 12.0]) == 13.0


def test_global_norm_of_nothing_is_zero():
    assert O.global_norm({}) == 0.0
    assert O.global_norm([None, np.zeros((0, 3))]) == 0.0


def test_global_norm_has_a_gradient_also_at_zero():
    gradient = fg.grad(O.global_norm)
    assert_allclose(gradient({"w": np.array([3.0, 4.0])})["w"], [0.6, 0.8])
    assert_array_equal(gradient({"w": np.zeros(2)})["w"], np.zeros(2))


# Factors


def test_scale_by_learning_rate_flips_the_sign_unless_told():
    assert once(O.scale_by_learning_rate(0.5), 2.0) == -1.0
    assert once(O.scale_by_learning_rate(0.5, flip_sign=False), 2.0) == 1.0


def test_scale_by_learning_rate_without_one_changes_nothing():
    assert once(O.scale_by_learning_rate(None), 2.0) == 2.0


def test_scale_by_learning_rate_conjugates_and_scale_does_not():
    assert once(O.scale_by_learning_rate(1.0), 2.0 + 1.0j) == -2.0 + 1.0j
    assert once(O.scale(-1.0), 2.0 + 1.0j) == -2.0 - 1.0j


def test_schedule_sees_the_number_of_steps_done():
    optimizer = O.scale_by_schedule(lambda count: [1.0, 10.0, 100.0][count])
    state, got = optimizer.init(0.0), []
    for _ in range(3):
        update, state = optimizer.update(1.0, state)
        got.append(update)
    assert got == [1.0, 10.0, 100.0]


def test_schedule_that_returns_a_numpy_scalar_keeps_float32():
    optimizer = O.sgd(lambda count: np.float64(0.1))
    assert once(optimizer, np.ones(2, np.float32)).dtype == np.float32


def test_a_schedule_scales_float32_leaves_in_float32_also_when_compiled():
    optimizer = fg.optim.scale_by_learning_rate(fg.optim.cosine_decay_schedule(4e-3, 1600))
    slope = {"w": np.linspace(0, 1, 999, dtype=np.float32)}
    state = optimizer.update(slope, optimizer.init(slope))[1]
    eager, compiled = optimizer.update(slope, state)[0], fg.jit(optimizer.update)(slope, state)[0]
    assert compiled["w"].dtype == np.float32
    np.testing.assert_array_equal(compiled["w"], eager["w"])
