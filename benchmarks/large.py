"""What grows: a chain of a million operations, and the memory of a wide network."""

from __future__ import annotations

import sys

from measure import fresh_process

CHAIN = """
import sys, time, tracemalloc
import numpy as np
import funcgrad as fg

count, traced = int(sys.argv[1]), sys.argv[2] == "memory"

def f(x):
    for _ in range(count):
        x = np.sin(x)
    return x

fg.grad(np.sin)(1.0)
if traced:
    tracemalloc.start()
start = time.perf_counter()
fg.grad(f)(np.float64(1.0))
seconds = time.perf_counter() - start
peak = tracemalloc.get_traced_memory()[1] if traced else 0
print(seconds / count, peak / count)
"""

NETWORK = """
import resource, sys
import numpy as np
width, layers = 1024, 20
rng = np.random.default_rng(0)
params = [
    (rng.normal(size=(width, width)).astype("float32") / np.float32(np.sqrt(width)),
     np.zeros(width, "float32"))
    for _ in range(layers)
]
x = rng.normal(size=(width, width)).astype("float32")

if sys.argv[1] == "funcgrad":
    import funcgrad as fg

    def loss(params, x):
        for w, b in params:
            x = np.tanh(x @ w + b)
        return np.mean(x)

    gradient = fg.grad(loss)(params, x)
else:
    import torch

    params = [tuple(torch.from_numpy(part).requires_grad_() for part in layer) for layer in params]
    x = torch.from_numpy(x)
    for w, b in params:
        x = torch.tanh(x @ w + b)
    x.mean().backward()
    gradient = [part.grad for layer in params for part in layer]
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def long_chain():
    """Time and memory an operation of long chains of scalar operations."""
    per_op = {
        count: min(float(fresh_process(CHAIN, str(count), "time").split()[0]) for _ in range(3))
        for count in (10_000, 1_000_000)
    }
    ratio = per_op[1_000_000] / per_op[10_000]
    missed = "" if ratio <= 1.5 else ", MISSED"
    print(f"time an operation, chain of 1,000,000 / of 10,000: {ratio:.2f}  (at most 1.5{missed})")
    peak = float(fresh_process(CHAIN, "1000000", "memory").split()[1])
    missed = "" if peak <= 600 else ", MISSED"
    print(f"peak memory, chain of 1,000,000: {peak:.0f} bytes an operation  (at most 600{missed})")


def wide_network():
    """Peak resident memory of the gradient of a 20-layer MLP, width and batch 1024, float32."""
    ours, theirs = (float(fresh_process(NETWORK, name)) for name in ("funcgrad", "torch"))
    ratio = ours / theirs
    missed = "" if ratio <= 1 else ", MISSED"
    print(
        f"peak memory, 20-layer MLP: funcgrad / PyTorch {ratio:.2f}  (at most 1.0{missed})"
        f"  {ours:.0f} MiB / {theirs:.0f} MiB"
    )


if __name__ == "__main__":
    long_chain()
    wide_network()
    sys.stdout.flush()
