"""Training on the eager path: an epoch on digits with its loading; an update of many leaves."""

from __future__ import annotations

import numpy as np
import torch
from measure import best_times, report
from networks import digits, epochs

import funcgrad as fg

WIDTH = 128


def mlp_epochs() -> None:
    """Time one epoch of an MLP with Adam on 8,000 digits, float32, beside PyTorch's DataLoader."""
    model = fg.nn.MLP(784, 10, WIDTH, 1, dtype=np.float32, key=fg.random.key(0))
    net = torch.nn.Sequential(
        torch.nn.Linear(784, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 10)
    )
    ours, theirs = epochs(model, net, *digits(784), 128)
    times = best_times({"funcgrad": ours, "PyTorch": theirs}, seconds=8.0, pause=0.05)
    report("epoch of MLP 784-128-10, 8,000 digits", times, "funcgrad", {"PyTorch": 1.0})


def updates() -> None:
    """Time an Adam update of 50 small leaves, the new parameters included."""
    rng = np.random.default_rng(0)
    shapes = [(16, 16) if i % 2 else (16,) for i in range(50)]
    params = {
        f"p{i:02}": rng.normal(size=shape).astype(np.float32) for i, shape in enumerate(shapes)
    }
    grads = fg.tree.map(np.ones_like, params)
    optimizer = fg.optim.adam(1e-3)
    state = optimizer.init(params)

    def ours() -> None:
        nonlocal params, state
        step, state = optimizer.update(grads, state, params)
        params = fg.optim.apply_updates(params, step)

    theirs = [torch.tensor(leaf, requires_grad=True) for leaf in params.values()]
    for leaf in theirs:
        leaf.grad = torch.ones_like(leaf)
    torch_optimizer = torch.optim.Adam(theirs, lr=1e-3)
    times = best_times({"funcgrad": ours, "PyTorch": torch_optimizer.step})
    report("Adam update of 50 small leaves", times, "funcgrad", {"PyTorch": 1.5})


if __name__ == "__main__":
    mlp_epochs()
    updates()
