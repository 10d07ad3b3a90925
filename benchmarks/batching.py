"""`vmap`: what it costs beside the same computation batched by hand."""

from __future__ import annotations

import itertools

import numpy as np
from measure import best_times, report

import funcgrad as fg

WIDTHS = (784, 128, 64, 10)


def network(params, x):
    """Apply the network: to one example as well as to many."""
    for w, b in params:
        x = np.tanh(x @ w + b)
    return x


def loss(params, x, y):
    return np.sum((network(params, x) - y) ** 2)


def gradients_by_hand(params, x, y):
    """Compute the gradient of `loss` for each example as a careful person would write it."""
    layers = [x]
    for w, b in params:
        layers.append(np.tanh(layers[-1] @ w + b))
    t = 2 * (layers[-1] - y)
    gradients = []
    for (w, _), before, after in zip(reversed(params), layers[-2::-1], layers[:0:-1], strict=True):
        t = t * (1 - after * after)
        gradients.append((before[:, :, np.newaxis] * t[:, np.newaxis, :], t))
        if before is not x:
            t = t @ w.T
    return gradients[::-1]


def draw(dtype, count):
    """Draw weights, inputs and targets."""
    rng = np.random.default_rng(0)
    params = [
        ((rng.normal(size=(n, m)) / np.sqrt(n)).astype(dtype), np.zeros(m, dtype))
        for n, m in itertools.pairwise(WIDTHS)
    ]
    x = rng.normal(size=(count, WIDTHS[0])).astype(dtype)
    return params, x, rng.normal(size=(count, WIDTHS[-1])).astype(dtype)


def networks():
    """A 784-128-64-10 network on 1,000 examples."""
    batched = fg.vmap(network, in_axes=(None, 0))
    for dtype in (np.float64, np.float32):
        params, x, _ = draw(dtype, 1000)
        np.testing.assert_array_equal(batched(params, x), network(params, x))
        times = best_times(
            {
                "funcgrad": lambda p=params, x=x: batched(p, x),
                "by hand": lambda p=params, x=x: network(p, x),
            }
        )
        name = np.dtype(dtype).name
        report(f"vmap of an MLP, 1,000 examples, {name}", times, "funcgrad", {"by hand": 1.2})


def gradients():
    """The gradient for each of 100 examples, in all weights of the same network."""
    batched = fg.vmap(fg.grad(loss), in_axes=(None, 0, 0))
    for dtype in (np.float64, np.float32):
        params, x, y = draw(dtype, 100)
        got, expected = batched(params, x, y), gradients_by_hand(params, x, y)
        tolerance = 1e4 * np.finfo(dtype).eps
        for pair, other in zip(got, expected, strict=True):
            for part, want in zip(pair, other, strict=True):
                np.testing.assert_allclose(part, want, tolerance, tolerance)
        times = best_times(
            {
                "funcgrad": lambda p=params, x=x, y=y: batched(p, x, y),
                "by hand": lambda p=params, x=x, y=y: gradients_by_hand(p, x, y),
            }
        )
        name = np.dtype(dtype).name
        report(f"vmap of a gradient, 100 examples, {name}", times, "funcgrad", {"by hand": 1.5})


if __name__ == "__main__":
    networks()
    gradients()
