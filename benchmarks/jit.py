"""What `jit` gains over eager code, and how it compares with JAX, PyTorch and NumPy by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
from measure import best_times, report

import funcgrad as fg


def chain() -> None:
    """Time the gradient of 150 operations on ten numbers."""

    def fun(x: Any) -> Any:
        for _ in range(50):
            x = np.sin(x) * 1.1 + 0.1
        return np.sum(x)

    def by_hand(x: Any) -> Any:
        kept = []
        for _ in range(50):
            kept.append(x)
            x = np.sin(x) * 1.1 + 0.1
        slope = np.ones_like(x)
        for before in reversed(kept):
            slope = slope * 1.1 * np.cos(before)
        return np.sum(x), slope

    x = np.linspace(-1, 1, 10)
    compiled = fg.jit(fg.value_and_grad(fun))
    np.testing.assert_allclose(compiled(x)[1], by_hand(x)[1], rtol=1e-12)
    eager = fg.value_and_grad(fun)
    times = best_times(
        {"jit": lambda: compiled(x), "numpy": lambda: by_hand(x), "eager": lambda: eager(x)}
    )
    report("150 tiny operations, value and gradient", times, "jit", {"numpy": 0.75})


def overhead() -> None:
    """Time a function that does nothing, on one array and on fifty."""
    identity = fg.jit(lambda x: x)
    one, fifty = np.ones(3), {f"{i:02}": np.ones(3) for i in range(50)}
    times = best_times({"one": lambda: identity(one), "fifty": lambda: identity(fifty)}, 2.0)
    for name, limit in (("one", 5), ("fifty", 25)):
        taken = times[name] * 1e6
        print(f"call of identity, {name} leaves: {taken:.1f} us (at most {limit})")


def large() -> None:
    """Time the gradient of a sum over four million elements."""

    def fun(x: Any) -> Any:
        return np.sum(np.tanh(x) * x + np.exp(-(x**2)))

    def by_hand(x: Any) -> Any:
        t, e = np.tanh(x), np.exp(-(x**2))
        return np.sum(t * x + e), t + x * (1 - t * t) - 2 * x * e

    compiled = fg.jit(fg.value_and_grad(fun))
    rng = np.random.default_rng(0)
    for dtype, limit in ((np.float32, 1.8), (np.float64, 1.5)):
        x = rng.normal(size=4_000_000).astype(dtype)
        contenders = {"jit": lambda x=x: compiled(x), "numpy": lambda x=x: by_hand(x)}
        for module in ("jax", "torch"):
            found = _elementwise_of(module, x)
            if found is not None:
                contenders[module] = found
        times = best_times(contenders, 4.0, pause=0.05)
        report(
            f"sum(tanh(x)x + exp(-x^2)), {np.dtype(dtype).name}",
            times,
            "jit",
            {"numpy": 0.7, "jax": limit, "torch": 0.9},
        )


def _elementwise_of(module: str, x: Any) -> Any:
    try:
        if module == "jax":
            import jax
            import jax.numpy as jnp

            jax.config.update("jax_enable_x64", True)
            fun = jax.jit(jax.value_and_grad(lambda x: jnp.sum(jnp.tanh(x) * x + jnp.exp(-(x**2)))))
            given = jnp.asarray(x)
            return lambda: jax.block_until_ready(fun(given))
        import torch

        leaf = torch.tensor(x, requires_grad=True)

        def run() -> Any:
            leaf.grad = None
            value = torch.sum(torch.tanh(leaf) * leaf + torch.exp(-(leaf**2)))
            value.backward()
            return leaf.grad

        return run
    except ImportError:
        return None


def leaves() -> None:
    """Time an Adam update of fifty small leaves, and of one."""
    optimizer = fg.optim.adam(1e-3)

    @fg.jit
    def update(params: Any, state: Any, slopes: Any) -> Any:
        updates, state = optimizer.update(slopes, state, params)
        return fg.optim.apply_updates(params, updates), state

    contenders = {}
    for count in (1, 50):
        params = {f"{i:02}": np.ones(64, np.float32) for i in range(count)}
        state = optimizer.init(params)
        contenders[str(count)] = lambda p=params, s=state: update(p, s, p)
    times = best_times(contenders, 2.0)
    ratio = times["50"] / times["1"]
    print(f"Adam, 50 leaves of 64 elements: {ratio:.1f} times the time of one (at most 10)")


if __name__ == "__main__":
    chain()
    overhead()
    large()
    leaves()
