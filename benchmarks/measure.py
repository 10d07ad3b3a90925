"""How all benchmarks here measure: contenders in turn, in one process, the best of many rounds.

With ``CPU_TIME=1`` in the environment it is the time of the processor that counts, of all threads.
On one core that is what an idle machine would take, however busy this one is.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable

clock = time.process_time if os.environ.get("CPU_TIME") else time.perf_counter


def best_times(
    contenders: dict[str, Callable[[], object]], seconds: float = 3.0, pause: float = 0.0
) -> dict[str, float]:
    """Time each contender, in seconds a call.

    They take turns, so a change of the machine's speed hits all alike, and the best round
    of each counts, since what else the machine does only ever adds. Libraries with threads of their
    own let them spin for a while, which slows whoever is next: then give a `pause`, in seconds.
    """
    counts = {}
    for name, run in contenders.items():
        run()  # warm up: imports, caches, first allocations
        start = clock()
        run()
        counts[name] = max(1, int(0.01 / max(clock() - start, 1e-7)))
    best = dict.fromkeys(contenders, float("inf"))
    end = time.perf_counter() + seconds
    rounds = 0
    while rounds < 5 or time.perf_counter() < end:
        for name, run in contenders.items():
            gc.collect(0)
            if pause:
                time.sleep(pause)
                run()
                run()
            start = clock()
            for _ in range(counts[name]):
                run()
            best[name] = min(best[name], (clock() - start) / counts[name])
        rounds += 1
    return best


def report(title: str, times: dict[str, float], ours: str, limits: dict[str, float]) -> None:
    """Print the ratio of `ours` to each other contender, beside the figure to stay below."""
    for name, seconds in times.items():
        if name == ours:
            continue
        ratio = times[ours] / seconds
        limit = limits.get(name)
        verdict = (
            "" if limit is None else f"  (at most {limit}{'' if ratio <= limit else ', MISSED'})"
        )
        print(
            f"{title:<46} {ours} / {name:<12} {ratio:6.2f}{verdict:<24}"
            f" {times[ours] * 1e6:10.1f} us / {seconds * 1e6:.1f} us"
        )
    sys.stdout.flush()


def fresh_process(code: str, *args: str) -> str:
    """Run `code` in a new interpreter and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *args], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()
