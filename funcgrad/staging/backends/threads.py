"""Threads: go through the blocks of large arrays on several of them.

NumPy lets other threads run while it computes, so two of them go through an array in less time
than one, if the blocks are large enough to make up for the lock of the interpreter changing hands.
Whoever calls does blocks too, and only ever waits for blocks that others have begun: a call
that finds the threads busy, with the blocks of another call, does all of its own. So nothing can
wait for each other, and no more threads compute than there are processors.

The threads are started by the first call that needs them, and again after a fork. Which thread does
a block makes no difference to the results: whatever is summed over blocks is summed in their order.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from funcgrad.staging.machine import thread_count

__all__ = ["in_blocks"]

# Sets of arrays that a thread keeps to work in.
_KEPT = 8


def in_blocks(piece: Callable[..., None], ends: Sequence[tuple[int, int]], *work: Any) -> None:
    """Call ``piece(k, start, stop, *work)`` for each block, in any order and on several threads.

    Parameters
    ----------
    piece : callable
        It must release the lock of the interpreter most of the time to be worth it.
    ends : sequence of (int, int)
        The start and the end of each block.
    *work : ndarray
        What `piece` may write to. Other threads have arrays like these.

    Raises
    ------
    Exception
        What the first `piece` to fail has raised; blocks that nobody had begun are left out.
    """
    count = min(thread_count(), len(ends))
    team = _team
    if count > 1 and team.lock.acquire(blocking=False):
        try:
            team.run(_Job(piece, ends, work), count)
        finally:
            team.lock.release()
        return
    for k, (start, stop) in enumerate(ends):
        piece(k, start, stop, *work)


class _Job:
    """The blocks of one call, which threads take one after another."""

    def __init__(self, piece: Callable[..., None], ends: Sequence[tuple[int, int]], work: Any):
        self._piece = piece
        self._work = work
        self._ends = ends
        self._next: Iterator[int] = itertools.count()  # of which each number goes to one thread
        self.error: BaseException | None = None

    def go(self, kept: dict[Any, Any] | None = None) -> None:
        """Do blocks until none is left; in arrays of this thread's own, if it keeps some."""
        try:
            work = self._work if kept is None else _like(self._work, kept)
            for k in self._next:
                if k >= len(self._ends) or self.error is not None:
                    return
                self._piece(k, *self._ends[k], *work)
        except BaseException as error:
            self.error = error


def _like(work: Any, kept: dict[Any, Any]) -> Any:
    """Return arrays like these, which nobody else has."""
    key = tuple([(array.shape, array.dtype) for array in work])
    found = kept.get(key)
    if found is None:
        if len(kept) >= _KEPT:
            kept.pop(next(iter(kept)))
        found = kept[key] = tuple([np.empty_like(array) for array in work])
    return found


class _Team:
    """Threads that wait for a job; whoever holds `lock` may give them one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._members: list[_Member] = []

    def run(self, job: _Job, count: int) -> None:
        """Do a job on this thread and others; raise what one of them has raised."""
        helping: list[_Member] = []
        try:
            for place in range(count - 1):
                if place == len(self._members):
                    self._members.append(_Member())
                self._members[place].begin(job)
                helping.append(self._members[place])
            job.go()
        except RuntimeError:  # no more threads can be started
            job.go()
        except BaseException as error:  # an interrupt, after which nobody knows who has begun
            job.error = error
            self._members = []
        for member in helping:
            member.wait(job)
        if job.error is not None:
            raise job.error


class _Member:
    """One thread. A lock that one side holds and the other releases is the fastest signal."""

    def __init__(self) -> None:
        self._job: _Job | None = None
        self._begin, self._done = threading.Lock(), threading.Lock()
        self._begin.acquire()
        self._done.acquire()
        threading.Thread(target=self._serve, name="funcgrad", daemon=True).start()

    def begin(self, job: _Job) -> None:
        self._job = job
        self._begin.release()

    def wait(self, job: _Job) -> None:
        """Wait until it has done its last block, come what may: it writes to arrays of the call."""
        while self._job is not None:
            try:
                self._done.acquire()
                self._job = None
            except BaseException as error:
                job.error = error

    def _serve(self) -> None:
        kept: dict[Any, Any] = {}
        # Programs warn of nothing, and that is set for each thread by itself.
        with np.errstate(all="ignore"):
            while True:
                self._begin.acquire()
                assert self._job is not None
                self._job.go(kept)
                self._done.release()


_team = _Team()


def _forget() -> None:
    """Begin anew: a forked process has the memory, but not the threads."""
    global _team
    _team = _Team()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
