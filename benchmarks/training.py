"""Training on the eager path: an epoch on digits with its loading; an update of many leaves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from measure import best_times, report

import funcgrad as fg

DIGITS = Path(__file__).parent.parent / "examples" / "data" / "mnist_10k.npz"
WIDTHS = (784, 128, 10)
BATCH = 128


def epochs() -> None:
    """Time one epoch of an MLP with Adam on 8,000 digits, float32, beside PyTorch's DataLoader."""
    with np.load(DIGITS) as data:
        images = data["images"][:8000].reshape(8000, -1).astype(np.float32) / 255
        labels = data["labels"][:8000].astype(np.int64)
    model = fg.nn.MLP(784, 10, WIDTHS[1], 1, dtype=np.float32, key=fg.random.key(0))

    def loss_fn(model: fg.nn.MLP, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return fg.nn.losses.softmax_cross_entropy_with_integer_labels(model(x), y, reduction="mean")

    optimizer = fg.optim.adam(1e-3)
    step = fg.train.make_step(loss_fn, optimizer)
    loader = fg.data.DataLoader((images, labels), BATCH, key=fg.random.key(1))
    state = fg.train.TrainState.create(model, optimizer)
    number = iter(range(10**9))

    def ours() -> None:
        nonlocal state
        for batch in loader.iterate(epoch=next(number)):
            state, _ = step(state, batch)

    net = torch.nn.Sequential(
        torch.nn.Linear(784, WIDTHS[1]), torch.nn.ReLU(), torch.nn.Linear(WIDTHS[1], 10)
    )
    torch_optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    torch_loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.from_numpy(images), torch.from_numpy(labels)),
        batch_size=BATCH,
        shuffle=True,
    )

    def theirs() -> None:
        for x, y in torch_loader:
            torch_optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x), y).backward()
            torch_optimizer.step()

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
    epochs()
    updates()
