"""What several benchmarks train: LeNet in two libraries, and an epoch on digits in both."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import funcgrad as fg

DIGITS = Path(__file__).parent.parent / "examples" / "data" / "mnist_10k.npz"


def lenets(key: fg.random.Key) -> tuple[fg.nn.Sequential, torch.nn.Sequential]:
    """Return LeNet-5 with ReLU and maxima, float32, of ours and of PyTorch's."""
    nn, relu, keys = fg.nn, fg.nn.functional.relu, fg.random.split(key, 5)
    dtype = np.float32
    ours = nn.Sequential(
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
    theirs = torch.nn.Sequential(
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
    return ours, theirs


def digits(*shape: int) -> tuple[np.ndarray, np.ndarray]:
    """Return 8,000 digits of this shape, float32 from 0 to 1, and their labels."""
    with np.load(DIGITS) as data:
        images = data["images"][:8000].reshape(8000, *shape).astype(np.float32) / 255
        return images, data["labels"][:8000].astype(np.int64)


def epochs(
    model: Any,
    net: torch.nn.Module,
    images: np.ndarray,
    labels: np.ndarray,
    batch: int,
    compiled: Callable[[Any], Any] | None = None,
) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return what trains for an epoch with Adam, loading included, here and in PyTorch.

    Ours runs step by step, or as what `compiled` makes of a step.
    """

    def loss_fn(model: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return fg.nn.losses.softmax_cross_entropy_with_integer_labels(model(x), y, reduction="mean")

    optimizer = fg.optim.adam(1e-3)
    step = fg.train.make_step(loss_fn, optimizer)
    step = step if compiled is None else compiled(step)
    loader = fg.data.DataLoader((images, labels), batch, key=fg.random.key(1))
    state = fg.train.TrainState.create(model, optimizer)
    number = iter(range(10**9))

    def ours() -> None:
        nonlocal state
        for part in loader.iterate(epoch=next(number)):
            state, _ = step(state, part)

    torch_optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    torch_loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.from_numpy(images), torch.from_numpy(labels)),
        batch_size=batch,
        shuffle=True,
    )

    def theirs() -> None:
        for x, y in torch_loader:
            torch_optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x), y).backward()
            torch_optimizer.step()

    return ours, theirs
