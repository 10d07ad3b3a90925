"""What `jit` gains over eager code, and how it compares with JAX, PyTorch and NumPy by hand."""

from __future__ import annotations

import itertools
import time
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


def compiling() -> None:
    """Time how long it takes to compile a thousand operations."""

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


def training() -> None:
    """Time Adam steps of small networks."""
    for width, batch, limits in (
        (64, 32, {"jax": 0.8, "torch": 0.5}),
        (256, 128, {"jax": 0.9, "torch": 0.9}),
        (1024, 256, {"jax": 1.0, "torch": 1.0}),
    ):
        rng = np.random.default_rng(0)
        sizes = [784, width, width, 10]
        params = [
            {"w": (rng.normal(size=(n, m)) / np.sqrt(n)).astype(np.float32), "b": np.zeros(m, "f4")}
            for n, m in itertools.pairwise(sizes)
        ]
        x = rng.normal(size=(batch, 784)).astype(np.float32)
        y = rng.integers(0, 10, size=batch)
        contenders = {"jit": _ours(params, x, y)}
        for make, name in ((_jax, "jax"), (_torch, "torch")):
            try:
                contenders[name] = make(params, x, y)
            except ImportError:
                continue
        times = best_times(contenders, 5.0, pause=0.05)
        report(f"Adam step, MLP 784-{width}-{width}-10, batch {batch}", times, "jit", limits)


def _ours(params: Any, x: Any, y: Any) -> Any:
    optimizer = fg.optim.adam(1e-3)
    rows = np.arange(len(y))

    def loss(params: Any, x: Any, y: Any) -> Any:
        for layer in params[:-1]:
            x = fg.nn.functional.relu(x @ layer["w"] + layer["b"])
        logits = x @ params[-1]["w"] + params[-1]["b"]
        return -np.mean(fg.nn.functional.log_softmax(logits)[rows, y])

    @fg.jit
    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        value, slope = fg.value_and_grad(loss)(params, x, y)
        updates, state = optimizer.update(slope, state, params)
        return fg.optim.apply_updates(params, updates), state, value

    now = [params, optimizer.init(params)]

    def run() -> Any:
        now[0], now[1], value = step(now[0], now[1], x, y)
        return value

    return run


def _jax(params: Any, x: Any, y: Any) -> Any:
    import jax
    import jax.numpy as jnp
    import optax

    optimizer = optax.adam(1e-3)

    def loss(params: Any, x: Any, y: Any) -> Any:
        for layer in params[:-1]:
            x = jax.nn.relu(x @ layer["w"] + layer["b"])
        logits = x @ params[-1]["w"] + params[-1]["b"]
        return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(y)), y])

    @jax.jit
    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        value, slope = jax.value_and_grad(loss)(params, x, y)
        updates, state = optimizer.update(slope, state, params)
        return optax.apply_updates(params, updates), state, value

    params = jax.tree.map(jnp.asarray, params)
    now = [params, optimizer.init(params)]
    given = jnp.asarray(x), jnp.asarray(y)

    def run() -> Any:
        now[0], now[1], value = step(now[0], now[1], *given)
        return jax.block_until_ready((now, value))

    return run


def _torch(params: Any, x: Any, y: Any) -> Any:
    import torch

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
        return value

    return run


if __name__ == "__main__":
    chain()
    overhead()
    compiling()
    large()
    training()
