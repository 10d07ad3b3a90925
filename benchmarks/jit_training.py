"""Adam steps of small, middling and large networks, under `jit`, with JAX, and with PyTorch."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
from jit_task import Task, compare

import funcgrad as fg

SIZES = (
    (64, 32, {"jax": 0.8, "torch": 0.5}),
    (256, 128, {"jax": 0.9, "torch": 0.9}),
    (1024, 256, {"jax": 1.0, "torch": 1.0}),
)


def draw(width: int, batch: int) -> tuple[Any, Any, Any]:
    """Return parameters, inputs and labels."""
    rng = np.random.default_rng(0)
    params = [
        {"w": (rng.normal(size=(n, m)) / np.sqrt(n)).astype(np.float32), "b": np.zeros(m, "f4")}
        for n, m in itertools.pairwise([784, width, width, 10])
    ]
    return params, rng.normal(size=(batch, 784)).astype(np.float32), rng.integers(0, 10, size=batch)


def adam_step(width: int, batch: int, limits: dict[str, float]) -> Task:
    """Return the task of a step of an MLP with two inner layers."""
    params, x, y = draw(width, batch)
    return Task(
        f"Adam step, MLP 784-{width}-{width}-10, batch {batch}",
        with_funcgrad(params, x, y),
        with_jax(params, x, y),
        with_torch(params, x, y),
        limits,
        carried=2,
    )


def with_funcgrad(params: Any, x: Any, y: Any) -> Any:
    """Return a step and its arguments."""
    optimizer = fg.optim.adam(1e-3)
    rows = np.arange(len(y))

    def loss(params: Any, x: Any, y: Any) -> Any:
        for layer in params[:-1]:
            x = fg.nn.functional.relu(x @ layer["w"] + layer["b"])
        logits = x @ params[-1]["w"] + params[-1]["b"]
        return -np.mean(fg.nn.functional.log_softmax(logits)[rows, y])

    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        value, slope = fg.value_and_grad(loss)(params, x, y)
        updates, state = optimizer.update(slope, state, params)
        return fg.optim.apply_updates(params, updates), state, value

    return step, (params, optimizer.init(params), x, y)


def with_jax(params: Any, x: Any, y: Any) -> Any:
    """Return a step and its arguments, the optimizer Optax's."""
    optimizer = optax.adam(1e-3)

    def loss(params: Any, x: Any, y: Any) -> Any:
        for layer in params[:-1]:
            x = jax.nn.relu(x @ layer["w"] + layer["b"])
        logits = x @ params[-1]["w"] + params[-1]["b"]
        return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(y)), y])

    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        value, slope = jax.value_and_grad(loss)(params, x, y)
        updates, state = optimizer.update(slope, state, params)
        return optax.apply_updates(params, updates), state, value

    params = jax.tree.map(jnp.asarray, params)
    return step, (params, optimizer.init(params), x, y)


def with_torch(params: Any, x: Any, y: Any) -> Any:
    """Return what does a step, the optimizer fused."""
    leaves = [
        [torch.tensor(layer[name], requires_grad=True) for name in ("w", "b")] for layer in params
    ]
    optimizer = torch.optim.Adam([leaf for layer in leaves for leaf in layer], fused=True)
    given, wanted = torch.tensor(x), torch.tensor(y)

    def run() -> Any:
        optimizer.zero_grad()
        out = given
        for w, b in leaves[:-1]:
            out = torch.relu(out @ w + b)
        out = out @ leaves[-1][0] + leaves[-1][1]
        value = torch.nn.functional.cross_entropy(out, wanted)
        value.backward()
        optimizer.step()
        return value.detach()

    return run


def steps() -> None:
    """Time them."""
    for width, batch, limits in SIZES:
        compare(adam_step(width, batch, limits), 5.0)


if __name__ == "__main__":
    steps()
