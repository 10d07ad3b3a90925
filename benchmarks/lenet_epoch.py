"""Training a convolutional network under `jit`: an epoch on digits, with its loading."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from measure import best_times, report

import funcgrad as fg

DIGITS = Path(__file__).parent.parent / "examples" / "data" / "mnist_10k.npz"
BATCH = 100


def lenet_epochs() -> None:
    """Time one epoch of LeNet with Adam on 8,000 digits, float32, beside PyTorch's DataLoader."""
    with np.load(DIGITS) as data:
        images = data["images"][:8000, None].astype(np.float32) / 255
        labels = data["labels"][:8000].astype(np.int64)
    model = _lenet(fg.random.key(0))

    def loss_fn(model: fg.nn.Sequential, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return fg.nn.losses.softmax_cross_entropy_with_integer_labels(model(x), y, reduction="mean")

    optimizer = fg.optim.adam(1e-3)
    step = fg.jit(fg.train.make_step(loss_fn, optimizer))
    loader = fg.data.DataLoader((images, labels), BATCH, key=fg.random.key(1))
    state = fg.train.TrainState.create(model, optimizer)
    number = iter(range(10**9))

    def ours() -> None:
        nonlocal state
        for batch in loader.iterate(epoch=next(number)):
            state, _ = step(state, batch)

    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 6, 5, padding=2),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2, 2),
        torch.nn.Conv2d(6, 16, 5),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2, 2),
        torch.nn.Flatten(),
        torch.nn.Linear(400, 120),
        torch.nn.ReLU(),
        torch.nn.Linear(120, 84),
        torch.nn.ReLU(),
        torch.nn.Linear(84, 10),
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

    times = best_times({"jit": ours, "PyTorch": theirs}, seconds=15.0, pause=0.05)
    report("epoch of LeNet, 8,000 digits", times, "jit", {"PyTorch": 1.5})


def _lenet(key: fg.random.Key) -> fg.nn.Sequential:
    nn, relu, keys = fg.nn, fg.nn.functional.relu, fg.random.split(key, 5)
    dtype = np.float32
    return nn.Sequential(
        [
            nn.Conv2d(1, 6, 5, padding=2, dtype=dtype, key=keys[0]),
            relu,
            nn.MaxPool2d(2, 2),
            nn.Conv2d(6, 16, 5, dtype=dtype, key=keys[1]),
            relu,
            nn.MaxPool2d(2, 2),
            nn.Flatten(),
            nn.Linear(400, 120, dtype=dtype, key=keys[2]),
            relu,
            nn.Linear(120, 84, dtype=dtype, key=keys[3]),
            relu,
            nn.Linear(84, 10, dtype=dtype, key=keys[4]),
        ]
    )


if __name__ == "__main__":
    lenet_epochs()
