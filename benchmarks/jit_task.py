"""One program in funcgrad, JAX and PyTorch: that they agree, how long it takes, and to compile.

What is compared is a `Task`: the same mathematics three times, with the same numbers. Each of the
three returns its results in the same order, so that they can be compared before they are timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from measure import best_times, report

import funcgrad as fg


@dataclass
class Task:
    """The same program several times; what is to be compiled as a function and its arguments.

    The first `carried` results of a call take the place of the first arguments of the next one, as
    in training, and the memory of these is given away; what is compared then is the rest.
    """

    title: str
    ours: tuple[Callable[..., Any], tuple[Any, ...]]
    jax: tuple[Callable[..., Any], tuple[Any, ...]]
    torch: Callable[[], Any] | None = None
    limits: dict[str, float] = field(default_factory=dict)
    carried: int = 0


def compare(task: Task, seconds: float = 4.0) -> None:
    """Check that all agree, and print how long a call takes."""
    fun, args = task.ours
    if task.carried:  # of which the memory is ours to give away
        args = fg.tree.map(lambda leaf: leaf.copy() if hasattr(leaf, "copy") else leaf, args)
    theirs, their_args = task.jax
    their_args = jax.tree.map(jax.numpy.array, their_args)
    given = tuple(range(task.carried))
    contenders = {
        "jit": _repeated(fg.jit(fun, donate_argnums=given), args, task.carried),
        "jax": _repeated(_waiting(jax.jit(theirs, donate_argnums=given)), their_args, task.carried),
    }
    if task.torch is not None:
        contenders["torch"] = task.torch
    results = {name: arrays(run()) for name, run in contenders.items()}
    for name, got in results.items():
        agree(name, got, results["jit"])
    report(task.title, best_times(contenders, seconds, pause=0.05), "jit", task.limits)


def _repeated(fun: Callable[..., Any], args: tuple[Any, ...], carried: int) -> Callable[[], Any]:
    """Return what calls a function again and again."""
    now = list(args)

    def run() -> Any:
        out = fun(*now)
        if not carried:
            return out
        now[:carried] = out[:carried]
        return out[carried:]

    return run


def _waiting(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that returns when its results are there."""
    return lambda *args: jax.block_until_ready(fun(*args))


def compiling(task: Task) -> None:
    """Print how long the first call takes, beside lowering and compiling by JAX."""
    fun, args = task.ours
    theirs, their_args = task.jax
    their_args = jax.tree.map(jax.numpy.asarray, their_args)

    def ours() -> float:
        compiled = fg.jit(fun)
        start = time.perf_counter()
        compiled(*args)
        return time.perf_counter() - start

    def with_jax() -> float:
        jax.clear_caches()
        start = time.perf_counter()
        jax.jit(theirs).lower(*their_args).compile()
        return time.perf_counter() - start

    ours(), with_jax()  # what is imported and looked up once
    times = {"jit": min(ours() for _ in range(7)), "jax": min(with_jax() for _ in range(3))}
    report(f"compile: {task.title}", times, "jit", {"jax": 0.1})


def arrays(results: Any) -> list[Any]:
    """Return all arrays of a result."""
    return [np.asarray(leaf) for leaf in fg.tree.leaves(results) if hasattr(leaf, "shape")]


def agree(name: str, got: list[Any], expected: list[Any]) -> None:
    """Raise unless all results are the same, but for what float32 rounds."""
    least = 1e-6 * max(float(np.max(np.abs(one), initial=0)) for one in expected)
    assert len(got) == len(expected), f"{name} has {len(got)} results, and not {len(expected)}"
    for one, other in zip(got, expected, strict=True):
        one = one.reshape(other.shape)
        scale = float(np.max(np.abs(other), initial=0))
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-4 * scale + least, err_msg=name)
