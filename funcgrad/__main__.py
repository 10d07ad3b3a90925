"""``python -m funcgrad``: what is installed, and what funcgrad found out about the machine.

For a report of a bug, or of a figure: numbers depend on NumPy's BLAS and on how many threads it
has, and which parts of the library can be used depends on the packages that are installed. Nothing
is imported to find that out but NumPy and funcgrad.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import funcgrad
from funcgrad.staging import machine

__all__ = ["main", "report"]

# Each optional package, the extra that brings it, and what it is for.
OPTIONAL = {
    "scipy": ("scipy", "special functions, statistics, linear algebra, optimizers"),
    "tqdm": ("train", "progress bars"),
    "matplotlib": ("plot", "learning curves"),
    "safetensors": ("safetensors", "weights in the format of that name"),
    "dask": ("dask", "data that does not fit into memory"),
}

# Which variables set the number of threads, by a part of the name of the BLAS; the first that is
# set counts. Where none is, each of these libraries takes all processors.
THREADS = {
    "openblas": ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"),
    "mkl": ("MKL_NUM_THREADS", "OMP_NUM_THREADS"),
    "blis": ("BLIS_NUM_THREADS", "OMP_NUM_THREADS"),
    "accelerate": ("VECLIB_MAXIMUM_THREADS",),
}


def blas(config: Mapping[str, Any]) -> str:
    """Return the name and the version of the BLAS that NumPy was built with."""
    found = config.get("Build Dependencies", {}).get("blas", {})
    name, version = found.get("name", "an unknown BLAS"), found.get("version", "")
    return f"{name} {version}".strip() if version != "unknown" else str(name)


def blas_threads(name: str, environment: Mapping[str, str], processors: int) -> str:
    """Say how many threads a BLAS takes, by the variables of the environment."""
    for kind, variables in THREADS.items():
        if kind in name.lower():
            for variable in variables:
                if variable in environment:
                    return f"{environment[variable]}, by {variable}"
            return f"{processors}, all processors; {variables[0]} sets another number"
    return "unknown"


def processor_count() -> int:
    """Return how many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def optional_parts() -> Iterator[str]:
    """Yield a line for each optional package: its version, or the command that installs it."""
    for name, (extra, purpose) in OPTIONAL.items():
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found = f'not found: pip install "funcgrad[{extra}]"'
        yield f"  {name + ':':13}{found}  ({purpose})"


def report() -> str:
    """Return the text that ``python -m funcgrad`` prints.

    Returns
    -------
    str

    Examples
    --------
    >>> print(report())
    funcgrad ...
    Python ...
    NumPy ...
    """
    config = np.show_config(mode="dicts") or {}
    name, processors = blas(config), processor_count()
    vectors = config.get("SIMD Extensions", {})
    known = ", ".join([*vectors.get("baseline", ()), *vectors.get("found", ())])
    system = f"{platform.system()} {platform.machine()}"
    lines = [
        f"funcgrad {funcgrad.__version__}",
        f"Python {platform.python_version()}, {platform.python_implementation()} on {system}",
        f"NumPy {np.__version__}, with {name}",
        f"  threads:     {blas_threads(name, os.environ, processors)}",
        f"  vectors:     {known or 'unknown'}",
        "Machine",
        f"  processors:  {processors}",
        f"  cache:       {machine.cache_bytes() >> 10} kB a core, which compiled programs fit into",
        f"  threads:     up to {machine.thread_count()} in compiled programs",
        "Optional parts",
        *optional_parts(),
    ]
    return "\n".join(lines)


def main() -> None:
    """Print the report; arguments other than ``--help`` are errors."""
    argparse.ArgumentParser("python -m funcgrad", description="Say what is installed.").parse_args()
    print(report())  # noqa: T201 - what the command is for


if __name__ == "__main__":
    main()
