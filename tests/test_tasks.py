"""The tasks that small frameworks were written for, solved with this library's parts.

Numbers of the first test are what a correct program gives; those of the others, the least that one
reached with five seeds.
"""

import numpy as np
import pytest

import funcgrad as fg

nn, L, F = fg.nn, fg.nn.losses, fg.nn.functional


def key(seed):
    return fg.random.key(seed)


def test_linear_regression_as_in_gradflow():
    x, y, _ = fg.data.make_regression()
    params = {"w": 0.0, "b": 0.0}

    def loss_fn(params, x, y):
        return L.mse(params["w"] * x + params["b"], y)

    data = fg.data.Dataset.from_arrays((x.ravel(), y)).batch(1)
    result = fg.train.fit(params, loss_fn, fg.optim.sgd(1e-3), data, epochs=10, progress=False)
    expected = [
        1643.094652, 1131.117594, 791.209086, 565.373716, 415.212699,
        315.286954, 248.732753, 204.363885, 174.755296, 154.975083,
    ]  # fmt: skip
    np.testing.assert_allclose(result.history["loss"], expected, rtol=1e-8)
    assert result.model["w"] == pytest.approx(36.962777945562706, rel=1e-9)
    assert result.model["b"] == pytest.approx(-0.06397372744270673, rel=1e-9)


def test_least_squares_of_the_same_data():
    x, y, _ = fg.data.make_regression()

    def line(x, w, b):
        return w * x + b

    (w, b), _ = fg.scipy.optimize.curve_fit(line, x.ravel(), y, p0=(0.0, 0.0))
    assert w == pytest.approx(42.61943029, rel=1e-8)
    assert b == pytest.approx(-0.81418183, rel=1e-7)
    assert L.mse(line(x.ravel(), w, b), y) == pytest.approx(114.17148617, rel=1e-9)


def classify(x, y, width, depth, optimizer, epochs, batch_size, seed=0):
    """Train a network for two classes, and return its accuracy on what it was trained on."""
    model = nn.MLP(2, "scalar", width, depth, key=key(seed))

    def loss_fn(model, x, y):
        return L.sigmoid_binary_cross_entropy(model(x), y, reduction="mean")

    result = fg.train.fit(
        model, loss_fn, optimizer, (x, y.astype(float)), epochs=epochs, batch_size=batch_size,
        key=key(seed + 1), progress=False,
    )  # fmt: skip
    return fg.train.accuracy(result.model(x), y)


@pytest.mark.parametrize("name", ["simple", "diag", "split", "xor", "circle"])
def test_point_sets_as_in_minitorch(name):
    x, y = getattr(fg.data.toys, name)(key(0), 50)
    assert classify(x, y, 20, 2, fg.optim.adam(0.02), 400, 50) >= 0.98


def test_a_spiral_is_learnt():
    x, y = fg.data.toys.spiral(key(0), 50)
    x, _ = fg.data.standardize(x)
    assert classify(x, y, 40, 3, fg.optim.adam(0.01), 600, 50) >= 0.98


def test_a_parabola_as_in_terox():
    x, y = fg.data.toys.parabola(key(0), 1000)
    x, _ = fg.data.standardize(x)
    assert classify(x, y, 16, 1, fg.optim.adam(0.05), 60, 50) >= 0.982


def test_a_language_of_alternating_letters():
    """A recurrent network predicts the next of a text, as in metagrad."""
    text = "abcabd" * 60
    vocabulary = sorted(set(text))
    ids = np.array([vocabulary.index(c) for c in text])
    embed, cell, head = fg.random.split(key(0), 3)
    model = {
        "embed": nn.Embedding(4, 8, key=embed),
        "rnn": nn.GRU(8, 16, key=cell),
        "head": nn.Linear(16, 4, key=head),
    }

    def logits(model, ids):
        out, _ = model["rnn"](model["embed"](ids))
        return model["head"](out)

    def loss_fn(model, ids):
        return L.cross_entropy(logits(model, ids[..., :-1]), ids[..., 1:], reduction="mean")

    windows = np.lib.stride_tricks.sliding_window_view(ids, 19)[::6][:48].copy()
    result = fg.train.fit(
        model, loss_fn, fg.optim.adam(0.02), windows, epochs=15, batch_size=16, key=key(1),
        progress=False,
    )  # fmt: skip
    found = np.argmax(logits(result.model, windows[:, :-1]), axis=-1)
    # From the third letter on the next is certain: after "ab" it depends on the one before.
    assert fg.train.accuracy(found[:, 3:], windows[:, 4:]) == 1.0
    assert fg.train.perplexity(result.history[-1]["loss"]) < 1.2
