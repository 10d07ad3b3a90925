"""What bounds compiled programs: the least that NumPy takes for the work of each task.

For each task the *floor* is timed beside the compiled program, in the same run: the calls of NumPy
that no program can do without, on arrays of the same shapes, with memory for the results there, and
nothing else. It shows whether products of matrices, memory, or the calls themselves set the limit.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import jit_derivatives
import jit_models
import jit_training
import numpy as np
from jit_task import Task
from measure import best_times

import funcgrad as fg

Product = tuple[int, ...]


def products(*shapes: Product) -> Callable[[], None]:
    """Return what multiplies ``(m, k) @ (k, n)`` for each ``(m, k, n)``, or stacks of such."""
    ready = []
    for *stack, m, k, n in shapes:
        left, right = (np.ones((*stack, *shape), np.float32) for shape in ((m, k), (k, n)))
        ready.append((left, right, np.empty((*stack, m, n), np.float32)))

    def run() -> None:
        for left, right, out in ready:
            np.matmul(left, right, out)

    return run


def with_gradients(*layers: Product) -> list[Product]:
    """Return the products of layers, of the gradients of their weights, and of their inputs."""
    return [*layers, *((k, m, n) for m, k, n in layers), *((m, n, k) for m, k, n in layers)]


def calls(count: int, shape: tuple[int, ...]) -> Callable[[], None]:
    """Return what calls NumPy so often, on arrays of a shape, and computes next to nothing."""
    x, out = np.ones(shape, np.float32), np.empty(shape, np.float32)

    def run() -> None:
        for _ in range(count):
            np.multiply(x, x, out)

    return run


def both(*runs: Callable[[], None]) -> Callable[[], None]:
    """Return what does one after the other."""

    def run() -> None:
        for each in runs:
            each()

    return run


def adam(width: int, batch: int) -> Callable[[], None]:
    """Return the products of a step, and the reading and writing of what Adam reads and writes."""
    layers = [(batch, k, n) for k, n in itertools.pairwise([784, width, width, 10])]
    # Of the first layer no gradient of the input is wanted.
    needed = [shape for shape in with_gradients(*layers) if shape != (batch, width, 784)]
    size = sum(k * n + n for _, k, n in layers)
    moments = [np.zeros(size, np.float32) for _ in range(4)]
    first, second, third, slope = moments

    def update() -> None:
        np.add(first, slope, first)
        np.add(second, slope, second)
        np.add(third, slope, third)

    return both(products(*needed), update)


def lstm(steps: int, batch: int, size: int) -> Callable[[], None]:
    """Return the products, and as many calls on a step's arrays as the two passes make."""
    whole = steps * batch
    outside = [(whole, size, 4 * size), (size, whole, 4 * size), (size, whole, 4 * size)]
    inside = [(batch, size, 4 * size), (batch, 4 * size, size)] * steps
    # Of a step 15 calls forward, 20 backward, and the exponentials of three gates.
    quarters = calls(35 * steps, (batch, size))
    x, out = np.ones((3, batch, size), np.float32), np.empty((3, batch, size), np.float32)

    def exponentials() -> None:
        for _ in range(steps):
            np.exp(x, out)

    return both(products(*outside, *inside), quarters, exponentials)


def lenet(batch: int) -> Callable[[], None]:
    """Return the products, and the gathering of windows for those of the convolutions."""
    dense = with_gradients((batch, 400, 120), (batch, 120, 84), (batch, 84, 10))
    first, second = (6, 25, batch * 28 * 28), (16, 150, batch * 10 * 10)
    convolutions = [first, (25, first[2], 6), second, (150, second[2], 16), (150, 16, second[2])]
    windows = [np.ones(shape[1:], np.float32) for shape in (first, second)]
    columns = [np.empty_like(array) for array in windows]

    def gather() -> None:
        for array, out in zip(windows, columns, strict=True):
            np.copyto(out, array)

    # Both convolutions gather forward and for their kernels, the second scatters besides.
    return both(products(*convolutions, *dense), gather, gather)


def transformer(batch: int, time: int, size: int, heads: int) -> Callable[[], None]:
    """Return the products of a block."""
    rows, part = batch * time, size // heads
    layers = [(rows, size, size)] * 4 + [(rows, size, 4 * size), (rows, 4 * size, size)]
    stack = (batch, heads)
    attention = [(*stack, time, part, time)] * 3 + [(*stack, time, time, part)] * 3
    return products(*with_gradients(*layers), *attention)


def results(*shapes: tuple[int, ...]) -> Callable[[], None]:
    """Return what writes arrays and looks at them once more, as for whether all is finite."""
    made = [np.zeros(shape, np.float32) for shape in shapes]

    def run() -> None:
        for out in made:
            out.fill(1)
            np.vdot(out, out)

    return run


def show(task: Task, floor: Callable[[], None], what: str) -> None:
    """Print a task's time beside its floor."""
    fun, args = task.ours
    compiled = fg.jit(fun)
    beside(task.title, lambda: compiled(*args), floor, what)


def beside(title: str, run: Callable[[], object], floor: Callable[[], None], what: str) -> None:
    """Print the time of a program beside a floor."""
    times = best_times({"jit": run, "floor": floor}, 3.0, pause=0.02)
    taken, least = times["jit"] * 1e6, times["floor"] * 1e6
    print(f"{title:<44} {taken:9.1f} us, {taken / least:5.2f} times {what} ({least:.1f} us)")


def chain() -> None:
    """Show 150 tiny operations and their gradient beside as many calls."""

    def fun(x: np.ndarray) -> np.ndarray:
        for _ in range(50):
            x = np.sin(x) * 1.1 + 0.1
        return np.sum(x)

    compiled, x = fg.jit(fg.value_and_grad(fun)), np.linspace(-1, 1, 10)
    # Forward 150 calls, and 150 backward, where each sine has a cosine and two products.
    beside("150 tiny operations", lambda: compiled(x), calls(300, (10,)), "the calls")


def large() -> None:
    """Show the large elementwise task beside its two functions that take long, on one thread."""

    def fun(x: np.ndarray) -> np.ndarray:
        return np.sum(np.tanh(x) * x + np.exp(-(x**2)))

    compiled = fg.jit(fg.value_and_grad(fun))
    for dtype in (np.float32, np.float64):
        x = np.random.default_rng(0).normal(size=4_000_000).astype(dtype)
        block, out = x[: 1 << 15], np.empty(1 << 15, dtype)

        def functions(block: np.ndarray = block, out: np.ndarray = out) -> None:
            for _ in range(4_000_000 >> 15):
                np.tanh(block, out)
                np.exp(block, out)

        title = f"sum(tanh(x)x + exp(-x^2)), {np.dtype(dtype).name}"
        beside(title, lambda x=x: compiled(x), functions, "tanh and exp in the cache")


def machine() -> None:
    """Print what the machine does."""
    small, large = np.ones(10, np.float32), np.ones(1 << 24, np.float32)
    out_small, out_large = np.empty_like(small), np.empty_like(large)
    n = 1024
    square, out = np.ones((n, n), np.float32), np.empty((n, n), np.float32)
    times = best_times(
        {
            "call": lambda: np.multiply(small, small, out_small),
            "copy": lambda: np.copyto(out_large, large),
            "product": lambda: np.matmul(square, square, out),
        },
        pause=0.02,
    )
    print(f"a call of NumPy on 10 numbers: {times['call'] * 1e6:.2f} us")
    print(f"memory, a copy of 64 MB: {2 * large.nbytes / times['copy'] / 1e9:.1f} GB/s")
    print(f"BLAS, float32: {2 * n**3 / times['product'] / 1e9:.0f} GFLOP/s")


def floors() -> None:
    """Print all of them."""
    machine()
    chain()
    large()
    for width, batch, limits in jit_training.SIZES:
        task = jit_training.adam_step(width, batch, limits)
        show(task, adam(width, batch), "products and update")
    show(jit_models.lenet(), lenet(64), "products and gathering")
    show(jit_models.lstm(), lstm(50, 32, 64), "products and calls")
    show(jit_models.transformer(), transformer(8, 64, 128, 4), "products")
    show(jit_derivatives.hessian(), both(products((30, 500, 30)), calls(10, (500,))), "products")
    each = [(128, 64, 64), (128, 64), (128, 64, 10), (128, 10)]
    show(jit_derivatives.per_example(64, 64, 10), results(*each), "writing the results")


if __name__ == "__main__":
    floors()
