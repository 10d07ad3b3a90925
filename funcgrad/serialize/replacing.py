"""Files that are written whole or not at all, whatever happens to the process or to the machine.

What is written goes to a temporary file in the same folder. When it is complete and on the disk, it
takes the name of the old one in one step, and the folder is brought to the disk as well. A process
that is killed leaves its temporary file behind. Such files can be told from those that are being
written: a living writer holds a lock on its own, which the system takes from the dead.

Most of the time that a large file takes is the disk's. So it begins to write while the rest is
still being computed, and what the old file held is given back when nobody waits for it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import threading
from collections.abc import Iterator
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows, where nobody can remove a file that is open
    fcntl = None  # type: ignore[assignment]

__all__ = ["given_back", "remove_leftovers", "replacing"]

_PREFIX, _SUFFIX = ".funcgrad-", ".tmp"
_LARGE = 1 << 24  # bytes from which on a thread pays
_PAUSE = 0.005  # seconds


@contextlib.contextmanager
def replacing(path: str, fsync: bool = True, size: int = 0) -> Iterator[BinaryIO]:
    """Open a file to be written, which becomes `path` if the block ends without an exception.

    With `fsync` it is on the disk before that. Without, a loss of power soon after may leave
    an incomplete file; the end of the process cannot. The `size` is about that of the file.
    """
    # A link stays a link: its target is replaced.
    target = os.path.realpath(path)
    is_new = not os.path.exists(target)
    if not is_new and not os.path.isfile(target):  # a folder, or a device such as /dev/null
        raise FileExistsError(errno.EEXIST, "what is there is no file", path)
    folder = os.path.dirname(target)
    try:
        file, temporary = _temporary(folder)
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno, "no such folder", folder) from None
    try:
        with file, given_back(target):
            with _synced_ahead(file, fsync and size >= _LARGE):
                yield file
                file.flush()
            if fsync:
                os.fsync(file.fileno())
            if not is_new:
                with contextlib.suppress(FileNotFoundError):  # somebody removed it meanwhile
                    shutil.copymode(target, temporary)
            if fcntl is None:
                file.close()
            os.replace(temporary, target)  # elsewhere, before the lock is given back
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    if fsync:
        _sync_folder(folder)


@contextlib.contextmanager
def _synced_ahead(file: BinaryIO, pays: bool) -> Iterator[None]:
    """Bring what is written in the block to the disk meanwhile, in a thread, if that `pays`."""
    if not pays:
        yield
        return
    synchronise = getattr(os, "fdatasync", os.fsync)  # macOS and Windows have only the second
    stop = threading.Event()
    errors: list[OSError] = []

    def synchronise_all() -> None:
        try:
            while not stop.wait(_PAUSE):
                synchronise(file.fileno())
        except OSError as error:  # the system tells it once: the fsync at the end would not know
            errors.append(error)

    thread = threading.Thread(target=synchronise_all)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if errors:
        raise errors[0]


@contextlib.contextmanager
def given_back(path: str) -> Iterator[None]:
    """Let the block replace or remove a file, whose space is given back in a thread afterwards.

    That takes as long as writing to the cache of the disk does, and happens when the last one who
    has the file open closes it. A small file, and any under Windows, is left to the block.
    """
    descriptor = None
    if fcntl is not None:
        # There may be none yet, or one that this process may replace and not read.
        with contextlib.suppress(OSError):
            if os.stat(path).st_size >= _LARGE:
                descriptor = os.open(path, os.O_RDONLY)
    try:
        yield
    finally:
        if descriptor is not None:
            threading.Thread(target=os.close, args=(descriptor,)).start()


def remove_leftovers(folder: str) -> None:
    """Remove the temporary files of writers that were killed."""
    for name in os.listdir(folder):
        if name.startswith(_PREFIX) and name.endswith(_SUFFIX):
            # Another process may have been faster, or this one may only read here.
            with contextlib.suppress(OSError):
                _remove_leftover(os.path.join(folder, name))


def _temporary(folder: str) -> tuple[BinaryIO, str]:
    """Make a temporary file and lock it."""
    while True:
        path = os.path.join(folder, f"{_PREFIX}{os.urandom(8).hex()}{_SUFFIX}")
        file = open(path, "xb")  # noqa: SIM115 - closed by the caller
        if fcntl is None:
            return file, path
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:  # some network drives, where leftovers stay for the same reason
            return file, path
        if os.fstat(file.fileno()).st_nlink:
            return file, path
        file.close()  # somebody took it for a leftover before it was locked


def _remove_leftover(path: str) -> None:
    if fcntl is None:
        os.unlink(path)
        return
    with open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # an error if its writer lives
        os.unlink(path)


def _sync_folder(folder: str) -> None:
    """Make a renaming last through a loss of power, where folders can be synchronised."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows
        return
    try:
        os.fsync(descriptor)
    except OSError:  # some network drives
        pass
    finally:
        os.close(descriptor)
