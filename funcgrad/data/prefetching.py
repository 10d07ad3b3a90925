"""`prefetch`: a thread that makes the next items while the last one is being used.

The one idea: the thread walks along the pipeline before it and puts each item into a `Channel` of
bounded size, together with the place after it. So the place of the walk outside is that of the last
item that was taken, and what lies in the channel is simply made again when a pass is resumed.

The thread knows the channel, and not the iterator outside. When that is closed or forgotten, the
channel is closed, at which the thread ends.

A process that is forked has no threads but the one that forked it, and the locks of others stay as
they were. So each walk begins again there, after the last item that was taken.
"""

from __future__ import annotations

import contextvars
import os
import threading
import weakref
from collections import deque
from typing import Any

from typing_extensions import override

from funcgrad.data.stages import DataIterator, Place, Stage, fields_of

__all__ = ["Prefetched"]

_END = object()


class Prefetched(Stage):
    """The items of another stage, made ahead in a thread."""

    def __init__(self, source: Stage, count: int) -> None:
        self.length = source.length
        self.is_random = source.is_random
        self._source = source
        self._count = count

    @override
    def start(self, epoch: int, place: Place | None) -> DataIterator:
        inner = None if place is None else fields_of(place, ("source",))[0]
        return PrefetchWalk(self._source, epoch, inner, self._count)


class Channel:
    """A queue of bounded size between two threads, which can be closed from either side."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: deque[Any] = deque()
        self._closed = False
        # Of an RLock: the garbage collector may close a channel within any of its methods.
        self._changed = threading.Condition(threading.RLock())

    def put(self, entry: Any) -> bool:
        """Wait for room and add an entry; return whether more are wanted."""
        with self._changed:
            while len(self._entries) >= self._size and not self._closed:
                self._changed.wait()
            if self._closed:
                return False
            self._entries.append(entry)
            self._changed.notify_all()
            return True

    def get(self) -> Any:
        """Wait for an entry and remove it; None if the channel is closed."""
        with self._changed:
            while not self._entries and not self._closed:
                self._changed.wait()
            if self._closed:
                return None
            entry = self._entries.popleft()
            self._changed.notify_all()
            return entry

    def close(self) -> None:
        """Wake up both sides, and let go of what has not been taken."""
        with self._changed:
            self._closed = True
            self._entries.clear()
            self._changed.notify_all()


def _produce(source: DataIterator, channel: Channel) -> None:
    """Walk along `source` until it ends, or nobody wants more of it."""
    try:
        for item in source:
            if not channel.put((item, source.place(), None)):
                break
            del item
        else:
            channel.put((_END, source.place(), None))
    except BaseException as error:
        channel.put((_END, None, error))
    finally:
        source.close()


class PrefetchWalk(DataIterator):
    """The side of the channel that items are taken from."""

    def __init__(self, stage: Stage, epoch: int, place: Place | None, size: int) -> None:
        source = stage.start(epoch, place)
        self._stage = stage
        self._inner_epoch = epoch
        self._source: DataIterator | None = source
        self._size = size
        self._place = source.place()
        self._channel: Channel | None = None
        self._thread: threading.Thread | None = None

    def __next__(self) -> Any:
        if self._source is not None:
            self._begin(self._source)
        entry = None if self._channel is None else self._channel.get()
        if entry is None:
            raise StopIteration
        item, place, error = entry
        if error is not None:  # with its own traceback, which shows where in the thread it was
            self._finish()
            raise error
        self._place = place
        if item is _END:
            self._finish()
            raise StopIteration
        return item

    def _begin(self, source: DataIterator) -> None:
        self._source = None
        channel = self._channel = Channel(self._size)
        # As in the thread that asks: NumPy's errstate and the modes of fg.debug are in the context.
        self._thread = threading.Thread(
            target=contextvars.copy_context().run,
            args=(_produce, source, channel),
            name="funcgrad-prefetch",
            daemon=True,
        )
        self._closing = weakref.finalize(self, channel.close)
        _WALKS.add(self)
        self._thread.start()

    def begin_again(self) -> None:
        """Go on in a forked process, where the thread is not."""
        if self._thread is not None:
            self._closing.detach()
            self._thread = self._channel = None
            self._source = self._stage.start(self._inner_epoch, self._place)

    def _finish(self) -> None:
        """Let the thread end, and wait for it."""
        if self._thread is not None:
            self._closing()
            if self._thread is not threading.current_thread():
                self._thread.join()
            self._thread = self._channel = None

    @override
    def place(self) -> dict[str, Any]:
        return {"source": self._place}

    @override
    def close(self) -> None:
        if self._source is not None:
            self._source.close()
            self._source = None
        self._finish()


_WALKS: weakref.WeakSet[PrefetchWalk] = weakref.WeakSet()
"""Those that have a thread, or had one."""


def _after_fork() -> None:
    for walk in list(_WALKS):
        walk.begin_again()


if hasattr(os, "register_at_fork"):  # there is no forking under Windows
    os.register_at_fork(after_in_child=_after_fork)
