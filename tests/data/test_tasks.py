"""A task of the small frameworks, from data to result: gradflow's line through 100 points."""

import numpy as np

import funcgrad as fg
from funcgrad.data import DataLoader, make_regression

# Squared errors before each update, averaged over an epoch; computed once with NumPy alone.
LOSSES = [
    1643.094652, 1131.117594, 791.209086, 565.373716, 415.212699,
    315.286954, 248.732753, 204.363885, 174.755296, 154.975083,
]  # fmt: skip


def test_line_through_noisy_points_sample_by_sample():
    x, y, _ = make_regression(n_samples=100, n_features=1, noise=10.0, seed=0)
    loader = DataLoader({"x": x, "y": y}, batch_size=1)

    def loss_fn(params, batch):
        return np.mean((batch["x"] @ params["w"] + params["b"] - batch["y"]) ** 2)

    params = {"w": np.zeros(1), "b": 0.0}
    step = fg.value_and_grad(loss_fn)
    means = []
    for epoch in range(10):
        losses = []
        for batch in loader.iterate(epoch=epoch):
            loss, grads = step(params, batch)
            params = fg.tree.map(lambda p, g: p - 1e-3 * g, params, grads)
            losses.append(loss)
        means.append(np.mean(losses))
    assert np.allclose(means, LOSSES, rtol=0, atol=5e-7)
    assert np.allclose(params["w"], 36.962777945562706, rtol=0, atol=1e-9)
    assert np.allclose(params["b"], -0.06397372744270673, rtol=0, atol=1e-9)
