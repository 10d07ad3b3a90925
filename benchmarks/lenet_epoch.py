"""Training a convolutional network under `jit`: an epoch on digits, with its loading."""

from __future__ import annotations

from measure import best_times, report
from networks import digits, epochs, lenets

import funcgrad as fg


def lenet_epochs() -> None:
    """Time one epoch of LeNet with Adam on 8,000 digits, float32, beside PyTorch's DataLoader."""
    ours, theirs = epochs(*lenets(fg.random.key(0)), *digits(1, 28, 28), 100, fg.jit)
    times = best_times({"jit": ours, "PyTorch": theirs}, seconds=15.0, pause=0.05)
    report("epoch of LeNet, 8,000 digits", times, "jit", {"PyTorch": 1.5})


if __name__ == "__main__":
    lenet_epochs()
