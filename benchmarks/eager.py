"""Eager gradients: what tracing and the backward pass cost beside the arithmetic."""

from __future__ import annotations

import itertools

import autograd
import autograd.numpy as anp
import numpy as np
import torch
from measure import best_times, report

import funcgrad as fg

STEPS = 50


def chain(x, sin):
    y = x
    for _ in range(STEPS):
        y = sin(y * x + 0.1)
    return y


def chain_by_hand(x):
    """Compute value and gradient of ``sum(chain(x))`` as a careful person would write it."""
    y = x
    ys, us = [], []
    for _ in range(STEPS):
        ys.append(y)
        u = y * x + 0.1
        us.append(u)
        y = np.sin(u)
    y_bar = np.ones_like(y)
    x_bar = np.zeros_like(x)
    for y_in, u in zip(reversed(ys), reversed(us), strict=True):
        u_bar = y_bar * np.cos(u)
        x_bar = x_bar + u_bar * y_in
        y_bar = u_bar * x
    return np.sum(y), x_bar + y_bar


def chains():
    """150 tiny operations on short and on longer arrays."""
    ours = fg.value_and_grad(lambda x: np.sum(chain(x, np.sin)))
    theirs = autograd.value_and_grad(lambda x: anp.sum(chain(x, anp.sin)))
    for size in (10, 1000):
        x = np.linspace(0.1, 0.9, size)
        leaf = torch.tensor(x, requires_grad=True)

        def with_torch(leaf=leaf):
            leaf.grad = None
            out = chain(leaf, torch.sin).sum()
            out.backward()
            return out.detach(), leaf.grad

        np.testing.assert_allclose(ours(x)[1], chain_by_hand(x)[1], rtol=1e-12)
        times = best_times(
            {
                "funcgrad": lambda x=x: ours(x),
                "by hand": lambda x=x: chain_by_hand(x),
                "autograd": lambda x=x: theirs(x),
                "PyTorch": with_torch,
            }
        )
        limits = {"by hand": 3.5, "autograd": 0.3, "PyTorch": 1.0}
        report(
            f"150 operations, float64[{size}]",
            times,
            "funcgrad",
            limits if size == 10 else {"by hand": 1.6},
        )


def mlp():
    """An MLP 10-64-64-1 on a batch of 32, mean squared error."""
    rng = np.random.default_rng(0)
    sizes = (10, 64, 64, 1)
    params = [
        {"w": rng.normal(size=(m, n)) / np.sqrt(m), "b": np.zeros(n)}
        for m, n in itertools.pairwise(sizes)
    ]
    x, y = rng.normal(size=(32, 10)), rng.normal(size=(32, 1))

    def loss(params, x, y, tanh=np.tanh):
        for layer in params[:-1]:
            x = tanh(x @ layer["w"] + layer["b"])
        error = x @ params[-1]["w"] + params[-1]["b"] - y
        return (error * error).mean()

    ours = fg.value_and_grad(loss)
    leaves = [{k: torch.tensor(v, requires_grad=True) for k, v in p.items()} for p in params]
    tx, ty = torch.tensor(x), torch.tensor(y)
    flat = [leaf for layer in leaves for leaf in layer.values()]

    def with_torch():
        for leaf in flat:
            leaf.grad = None
        out = loss(leaves, tx, ty, torch.tanh)
        out.backward()
        return out.detach()

    theirs = autograd.value_and_grad(lambda p, x, y: loss(p, x, y, anp.tanh))
    times = best_times(
        {
            "funcgrad": lambda: ours(params, x, y),
            "PyTorch": with_torch,
            "autograd": lambda: theirs(params, x, y),
        }
    )
    report("MLP 10-64-64-1, batch 32", times, "funcgrad", {"PyTorch": 1.0})


def rosenbrock():
    """SciPy's L-BFGS-B on the 10-dimensional Rosenbrock function."""
    from scipy.optimize import minimize

    def f(x, sum=np.sum):
        return sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    ours, theirs = fg.grad(f), autograd.grad(lambda x: f(x, anp.sum))
    start = np.full(10, -1.0)
    found = minimize(f, start, jac=ours, method="L-BFGS-B")
    assert found.fun < 1e-8 or found.success
    times = best_times(
        {
            "funcgrad": lambda: minimize(f, start, jac=ours, method="L-BFGS-B"),
            "autograd": lambda: minimize(f, start, jac=theirs, method="L-BFGS-B"),
        }
    )
    report("L-BFGS-B, Rosenbrock in 10 dimensions", times, "funcgrad", {"autograd": 0.35})


if __name__ == "__main__":
    chains()
    mlp()
    rosenbrock()
