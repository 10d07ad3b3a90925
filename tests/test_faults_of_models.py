"""What six small frameworks get wrong in layers, losses and optimizers, by the fault's number.

The rest of the list is in test_faults.py, which says where the numbers are from.
"""

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import ShapeError, TreeMismatchError

nn, L = fg.nn, fg.nn.losses


def key(seed=0):
    return fg.random.key(seed)


def test_a9_a10_sgd_neither_transposes_nor_clips():
    optimizer = fg.optim.sgd(0.1)
    grads = np.array([[1.0, 2.0], [3.0, 4000.0]])
    updates, _ = optimizer.update(grads, optimizer.init(grads))
    np.testing.assert_allclose(updates, [[-0.1, -0.2], [-0.3, -400.0]])


def rows(n):
    return fg.data.Dataset.from_arrays(np.arange(n))


def test_a13_a14_every_sample_comes_once_in_batches_and_a_rest():
    sizes = [len(batch) for batch in rows(100).batch(16)]
    assert sizes == [16] * 6 + [4]
    assert [len(batch) for batch in rows(100).batch(16, drop_last=True)] == [16] * 6
    assert sum(len(batch) for batch in rows(100).batch(10)) == 100


def test_a15_batches_have_numbers():
    np.testing.assert_array_equal(rows(100).batch(10)[3], np.arange(30, 40))


def test_r14_batches_are_not_windows():
    drawn = np.concatenate(list(rows(60_000).shuffle(key()).batch(64)))
    assert len(np.unique(drawn)) == 60_000


def test_c36_decay_of_the_rate_does_not_compound():
    schedule = fg.optim.inverse_time_schedule(0.01, 1, 0.1)
    assert schedule(3) == pytest.approx(0.0076923, rel=1e-4)


def test_r10_a_warm_restart_is_on_time():
    schedule = fg.optim.sgdr_schedule(
        [{"init_value": 0.1, "peak_value": 0.1, "decay_steps": 8, "warmup_steps": 0}] * 2
    )
    assert schedule(8) == pytest.approx(0.1)
    assert schedule(7) < 0.01


def test_a16_residuals_do_not_broadcast():
    with pytest.raises(ShapeError):
        L.mse(np.array([[1.0], [2.0]]), np.array([1.0, 2.0]))


def test_a17_r26_a_layer_used_twice_is_stepped_once():
    layer = nn.Linear("scalar", "scalar", use_bias=False, key=key())
    layer = layer.replace(weight=np.array([[3.0]]))
    value, grads = fg.value_and_grad(lambda layer: layer(layer(2.0)))(layer)
    assert value == 18.0
    np.testing.assert_array_equal(grads.weight, [[12.0]])
    optimizer = fg.optim.sgd(0.1)
    updates, _ = optimizer.update(grads, optimizer.init(layer))
    np.testing.assert_allclose(fg.optim.apply_updates(layer, updates).weight, [[1.8]])


def test_a18_initial_weights_have_mean_zero_and_the_right_size():
    init = nn.initializers
    he = init.variance_scaling(2.0, "fan_in", "normal")(key(), (256, 128))
    assert abs(he.mean()) < 0.002
    assert he.std() == pytest.approx(0.0883883, rel=0.02)
    xavier = init.xavier_uniform()(key(), (256, 128))
    assert np.abs(xavier).max() == pytest.approx(0.125, rel=1e-3)
    np.testing.assert_array_equal(xavier, init.xavier_uniform()(key(), (256, 128)))


def test_a19_c33_parameters_are_found_wherever_they_are():
    class Model(nn.Module):
        parts: dict

    model = Model({"layers": [nn.Linear(2, 1, key=key())]})
    assert len(fg.tree.leaves(model)) == 2
    assert nn.count_parameters(model) == 3


def test_c28_the_order_of_predictions_and_targets():
    # PyTorch's and Optax's: predictions first; both can be named.
    assert L.l2_loss(predictions=np.array([1.0]), targets=np.array([3.0])) == 2.0
    assert L.hinge_loss(np.array([0.5]), np.array([-1.0])) == 1.5


def test_c34_what_is_saved_does_not_change_and_must_fit(tmp_path):
    path = tmp_path / "weights.npz"
    model = {"w": np.ones((2, 1))}
    fg.save(path, model)
    model["w"] -= 1.0
    np.testing.assert_array_equal(fg.load(path)["w"], np.ones((2, 1)))
    with pytest.raises(TreeMismatchError):
        fg.load(path, {"w": np.ones((7, 7))})


def test_d6_d7_every_weight_is_its_own():
    model = nn.MLP(2, 1, width_size=16, depth=1, key=key())
    assert nn.count_parameters(model) == 65
    paths = [fg.tree.keystr(path) for path, _ in fg.tree.leaves_with_path(model)]
    assert len(set(paths)) == len(paths)


@pytest.mark.parametrize("p", [0.5, 0.2])
def test_r4_dropout_keeps_the_mean(p):
    out = nn.Dropout(p)(np.ones(100_000), key=key())
    assert out.mean() == pytest.approx(1.0, abs=0.01)


def test_r8_adagrad_moves():
    optimizer = fg.optim.adagrad(0.1, initial_accumulator_value=0.0)
    params, grads = np.array([1.0, 2.0]), np.array([1.0, -1.0])
    updates, _ = optimizer.update(grads, optimizer.init(params))
    np.testing.assert_allclose(params + updates, [0.9, 2.1], rtol=1e-6)


def test_r9_adam_with_decay_of_the_parameters():
    optimizer = fg.optim.chain(fg.optim.add_decayed_weights(0.5), fg.optim.adam(0.1))
    params, grads = np.array([1.0, 2.0]), np.array([1.0, -1.0])
    updates, _ = optimizer.update(grads, optimizer.init(params), params)
    # The second element: -1 + 0.5 * 2 is 0, and stays.
    np.testing.assert_allclose(params + updates, [0.9, 2.0], rtol=1e-6)


def test_r12_a_padding_row_has_no_gradient():
    table = nn.Embedding(weight=np.ones((4, 2)), padding_idx=0)
    grads = fg.grad(lambda table: np.sum(table(np.array([0, 1, 1]))))(table)
    np.testing.assert_array_equal(grads.weight, [[0, 0], [2, 2], [0, 0], [0, 0]])


def test_r12_gru_cells_can_be_built():
    assert nn.GRUCell(3, 2, key=key())(np.ones(3), np.zeros(2)).shape == (2,)


def test_r13_both_directions_are_in_the_output_once():
    layer = nn.GRU(3, 2, bidirectional=True, key=key())
    x = np.random.default_rng(0).normal(size=(5, 3))
    out, _ = layer(x)
    forward, backward = layer.cells[0]
    one_way = nn.GRU(3, 2, key=key())
    ahead, _ = one_way.replace(cells=((forward,),))(x)
    back, _ = one_way.replace(cells=((backward,),))(x[::-1])
    np.testing.assert_allclose(out, np.concatenate([ahead, back[::-1]], axis=1), rtol=1e-12)


def test_r15_normalising_takes_every_pixel():
    assert fg.nn.functional.standardize(
        np.zeros(1), mean=0.1307, variance=0.3081**2, epsilon=0.0
    ) == pytest.approx(-0.4242129, rel=1e-6)


def test_r16_linear_without_bias():
    assert nn.Linear(2, 1, use_bias=False, key=key())(np.ones(2)).shape == (1,)


def test_r24_nothing_is_dropped_when_a_model_is_used():
    model = nn.inference_mode(nn.Sequential([nn.Dropout(0.5)]))
    x = np.ones(100)
    np.testing.assert_array_equal(model(x), x)
