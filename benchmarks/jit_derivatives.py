"""A Hessian, and the gradient for each of many examples, under `jit`."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jit_task import Task, compare

import funcgrad as fg


def hessian() -> Task:
    """Return the task of the Hessian of a logistic regression, 30 parameters, 500 rows."""
    rng = np.random.default_rng(0)
    w, rows = rng.normal(size=30).astype(np.float32), rng.normal(size=(500, 30)).astype(np.float32)
    labels = rng.integers(0, 2, size=500).astype(np.float32)

    def negative_log_likelihood(w: Any, rows: Any, labels: Any, np: Any = np) -> Any:
        scores = np.dot(rows, w)
        return np.sum(np.logaddexp(np.float32(0), scores) - labels * scores)

    def with_jax(w: Any, rows: Any, labels: Any) -> Any:
        return negative_log_likelihood(w, rows, labels, jnp)

    return Task(
        "Hessian, logistic regression",
        (fg.hessian(negative_log_likelihood), (w, rows, labels)),
        (jax.hessian(with_jax), (w, rows, labels)),
        limits={"jax": 1.0},
    )


def per_example(*widths: int) -> Task:
    """Return the task of 128 gradients of the loss of an MLP."""
    rng = np.random.default_rng(0)
    params = [
        ((rng.normal(size=(n, m)) / np.sqrt(n)).astype(np.float32), np.zeros(m, np.float32))
        for n, m in itertools.pairwise(widths)
    ]
    xs = rng.normal(size=(128, widths[0])).astype(np.float32)
    ys = rng.normal(size=(128, widths[-1])).astype(np.float32)

    def loss(params: Any, x: Any, y: Any, np: Any = np) -> Any:
        for w, b in params[:-1]:
            x = np.tanh(x @ w + b)
        w, b = params[-1]
        return np.mean((x @ w + b - y) ** 2)

    def with_jax(params: Any, x: Any, y: Any) -> Any:
        return loss(params, x, y, jnp)

    return Task(
        f"128 gradients, MLP {'-'.join(map(str, widths))}",
        (fg.vmap(fg.grad(loss), in_axes=(None, 0, 0)), (params, xs, ys)),
        (jax.vmap(jax.grad(with_jax), in_axes=(None, 0, 0)), (params, xs, ys)),
        limits={"jax": 1.0},
    )


def derivatives() -> None:
    """Time them."""
    compare(hessian())
    compare(per_example(10, 64, 1))
    compare(per_example(64, 64, 10))


if __name__ == "__main__":
    derivatives()
