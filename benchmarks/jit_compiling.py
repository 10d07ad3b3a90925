"""How long it takes to compile: a thousand operations, and each of the tasks of the other files."""

from __future__ import annotations

import time
from typing import Any

import jit_derivatives
import jit_models
import jit_training
import numpy as np
from jit_task import compiling

import funcgrad as fg


def operations() -> None:
    """Time how long it takes to record, optimise and compile a thousand operations."""

    def fun(x: Any) -> Any:
        for _ in range(250):
            x = np.sin(x) * 1.1 + x * 0.5
        return x

    x = np.ones(10)
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        fg.jit(fun)(x)
        best = min(best, time.perf_counter() - start)
    print(f"compile 1000 operations: {best * 1e3:.1f} us each (at most 20)")


def tasks() -> None:
    """Time the first call of each task, beside lowering and compiling by JAX."""
    for width, batch, _ in jit_training.SIZES:
        compiling(jit_training.adam_step(width, batch, {}))
    for make in (jit_models.lenet, jit_models.lstm, jit_models.transformer):
        compiling(make())
    compiling(jit_derivatives.hessian())
    compiling(jit_derivatives.per_example(64, 64, 10))


if __name__ == "__main__":
    operations()
    tasks()
