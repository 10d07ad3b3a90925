"""Saving and loading a pytree of 100 MB, beside NumPy's own archives."""

from __future__ import annotations

import os
import tempfile

import numpy as np
from measure import best_times, report

import funcgrad as fg


def archives():
    """`save` and `load` beside ``np.savez``, which does not wait for the disk, and ``np.load``."""
    rng = np.random.default_rng(0)
    tree = {f"w{i}": rng.normal(size=(1250, 1000)) for i in range(10)}
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs, flat = (os.path.join(folder, name) for name in ("a.npz", "b.npz", "c.npz"))
        tensors = os.path.join(folder, "d.safetensors")

        def savez_and_fsync():
            with open(flat, "wb") as file:
                np.savez(file, **tree)
                file.flush()
                os.fsync(file.fileno())

        def read():
            with np.load(theirs) as file:
                return {name: file[name] for name in file.files}

        times = best_times(
            {
                "save": lambda: fg.save(ours, tree),
                "without fsync": lambda: fg.save(ours, tree, fsync=False),
                "np.savez": lambda: np.savez(theirs, **tree),
                "savez, fsync": savez_and_fsync,
            },
            seconds=15,
            pause=0.1,  # what a file held is given back in a thread, at nobody else's cost
        )
        without = times.pop("without fsync")
        report("100 MB saved", times, "save", {"np.savez": 1.2})
        times = {"fsync=False": without, "np.savez": times["np.savez"]}
        report("100 MB saved, not waiting for the disk", times, "fsync=False", {"np.savez": 1.2})
        times = best_times({"load": lambda: fg.load(ours), "np.load": read}, seconds=5)
        report("100 MB loaded", times, "load", {"np.load": 1.2})
        template = fg.tree.map(np.zeros_like, tree)
        fg.save(tensors, tree)
        times = best_times(
            {
                "load": lambda: fg.load(ours, template),
                "safetensors": lambda: fg.load(tensors, template),
                "np.load": read,
            },
            seconds=5,
        )
        report("100 MB loaded into a template", times, "load", {"np.load": 1.2})
