"""Peak memory of Adam steps of a large network: each library in a process of its own."""

from __future__ import annotations

import ctypes
import gc
import sys
from pathlib import Path
from typing import Any

from measure import fresh_process

STEPS = """
import sys
sys.path.insert(0, sys.argv[2])
import jit_memory
jit_memory.peak(sys.argv[1])
"""


def large_network() -> None:
    """Print what steps of an MLP 784-1024-1024-10, batch 256, add to the memory of a process."""
    here = str(Path(__file__).parent)
    found = {
        name: min(float(fresh_process(STEPS, name, here)) for _ in range(3))
        for name in ("funcgrad", "jax", "torch")
    }
    for name, limit in (("torch", 1.0), ("jax", None)):
        ratio = found["funcgrad"] / found[name]
        missed = "" if limit is None or ratio <= limit else ", MISSED"
        verdict = "" if limit is None else f"  (at most {limit}{missed})"
        print(
            f"peak memory, Adam steps, MLP 784-1024-1024-10: jit / {name} {ratio:.2f}{verdict}"
            f"  {found['funcgrad']:.0f} MB / {found[name]:.0f} MB"
        )
    sys.stdout.flush()


def peak(name: str) -> None:
    """Print by how many megabytes the steps of a large network make this process grow."""
    run_steps(name, 8, 32)  # what is loaded and looked up once
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    before = megabytes("VmRSS:")
    run_steps(name, 1024, 256)
    print(max(megabytes("VmHWM:"), megabytes("VmRSS:")) - before)


def run_steps(name: str, width: int, batch: int) -> None:
    """Make a few steps with a library."""
    import jit_training

    drawn = jit_training.draw(width, batch)
    if name == "torch":
        run = jit_training.with_torch(*drawn)
        del drawn
        for _ in range(8):
            run()
        return
    import jax

    import funcgrad as fg

    make = {"funcgrad": jit_training.with_funcgrad, "jax": jit_training.with_jax}[name]
    compiler: Any = {"funcgrad": fg.jit, "jax": jax.jit}[name]
    step, (params, state, x, y) = make(*drawn)
    del drawn
    step = compiler(step, donate_argnums=(0, 1))
    for _ in range(8):
        params, state, value = step(params, state, x, y)
    float(value)


def megabytes(what: str) -> float:
    """Return what Linux says of the memory of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith(what))


if __name__ == "__main__":
    large_network()
