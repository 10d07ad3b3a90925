"""What compiled programs need to know of the machine: its cache, and how many threads may run.

Both are asked for once, when the first program with large arrays is compiled.
"""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path

__all__ = ["cache_bytes", "thread_count"]

# Where the system does not say.
_CACHE = 1 << 20
# The lock of the interpreter changes hands at every call; from four threads on, they wait for it.
_MOST_THREADS = 4

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}


@functools.cache
def cache_bytes() -> int:
    """Return how many bytes of the second-level cache each core has.

    Returns
    -------
    int
    """
    return _from_linux(_CACHES) or _from_posix() or _CACHE


def _from_linux(folder: Path) -> int | None:
    """Return the size that Linux has in its files, a core's share of it."""
    for index in sorted(folder.glob("index*")):
        try:
            if (index / "level").read_text().strip() != "2":
                continue
            found = re.fullmatch(r"(\d+)([KM]?)", (index / "size").read_text().strip())
            shared = (index / "shared_cpu_list").read_text().strip()
        except OSError:
            continue
        if found:
            return int(found[1]) * _UNITS[found[2]] // max(_count(shared), 1)
    return None


def _count(ranges: str) -> int:
    """Return how many numbers a list such as ``0-3,8`` has."""
    total = 0
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            total += int(last or first) - int(first) + 1
    return total


def _from_posix() -> int | None:
    try:
        size = os.sysconf("SC_LEVEL2_CACHE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
    return size if size > 0 else None


@functools.cache
def thread_count() -> int:
    """Return on how many threads a program may go through its blocks.

    Returns
    -------
    int
        As many as there are processors for this process, or ``OMP_NUM_THREADS``, if that is less;
        at most 4.
    """
    given = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    wanted = int(given) if given.isdigit() and int(given) > 0 else _MOST_THREADS
    return min(wanted, _processors(), _MOST_THREADS)


def _processors() -> int:
    count = getattr(os, "process_cpu_count", None)
    if count is not None:  # Python 3.13
        return count() or 1
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
