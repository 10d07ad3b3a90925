"""What is paid before any gradient: the import, trees, keys."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
from measure import best_times, report

import funcgrad as fg


def imports():
    """A new interpreter that imports the package, beside one that imports NumPy."""
    # As after any installation: with the compiled files that Python keeps.
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}

    def running(code):
        return lambda: subprocess.run([sys.executable, "-c", code], check=True, env=env)

    times = best_times(
        {
            "import": running("import funcgrad"),
            "gradient": running("import funcgrad; funcgrad.grad(abs)(1.0)"),
            "numpy": running("import numpy"),
        },
        seconds=8,
    )
    gradient = times.pop("gradient")
    report("import funcgrad", times, "import", {"numpy": 1.25})
    times = {"gradient": gradient, "numpy": times["numpy"]}
    report("import and a first gradient", times, "gradient", {})


def trees():
    """``tree.map`` over 100 leaves in nested dicts."""
    leaves = {f"layer{i}": {f"w{j}": np.ones(3) for j in range(10)} for i in range(10)}

    def same(leaf):
        return leaf

    def by_hand(f, node):
        if isinstance(node, dict):
            return {key: by_hand(f, value) for key, value in node.items()}
        return f(node)

    times = best_times(
        {
            "tree.map": lambda: fg.tree.map(same, leaves),
            "by hand": lambda: by_hand(same, leaves),
        }
    )
    report("tree.map, 100 leaves", times, "tree.map", {"by hand": 1.2})


def keys():
    """Splitting and drawing, beside making a NumPy generator."""
    key = fg.random.key(0)
    philox, generator = np.random.Philox, np.random.Generator
    # A fresh equal key each time, as a key must not be used twice.
    fresh = fg.random.fold_in
    times = best_times(
        {
            "split": lambda: fg.random.split(fresh(key, 1)),
            "normal": lambda: fg.random.normal(fresh(key, 1), (10,)),
            "fold_in alone": lambda: fresh(key, 1),
            "Generator": lambda: generator(philox(key=123)),
        }
    )
    base = times.pop("fold_in alone")
    for name in ("split", "normal"):
        times[name] -= base
        report(
            f"random.{name}",
            {name: times[name], "Generator": times["Generator"]},
            name,
            {"Generator": 1.5},
        )


if __name__ == "__main__":
    imports()
    trees()
    keys()
