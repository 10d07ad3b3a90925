"""One zip file of arrays and a text about them: written whole or not at all, read with suspicion.

Each member is an ``.npy`` file, stored without compression, as ``np.savez`` does it. The zip format
brings a checksum for each. The text is a member too, a string of shape (), so that whatever reads
``.npz`` files can read all of it.

What a header promises is compared with the size of the file before any memory is set aside.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import shutil
import warnings
import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from funcgrad.errors import FuncgradError, user_line

__all__ = ["ABOUT", "Archive", "FileFormatError", "npy_header", "write_archive"]

ABOUT = "__funcgrad__"
"""The name of the member that describes the others."""

_VERSION = 1
_CHUNK = 1 << 18  # bytes that stay in the cache between the checksum and the copy
_ZIP_START = b"PK\x03\x04"


class FileFormatError(FuncgradError, ValueError):
    """A file is not one that `save` wrote, or it is damaged."""


def write_archive(path: str, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a file in one step: until it is complete, `path` has what it had before."""
    # A link stays a link: its target is replaced.
    target = os.path.realpath(path)
    is_new = not os.path.exists(target)
    if not is_new and not os.path.isfile(target):  # a folder, or a device such as /dev/null
        raise FileExistsError(errno.EEXIST, "what is there is no file", path)
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f".funcgrad-{os.urandom(8).hex()}.tmp")
    text = json.dumps(
        {"format": "funcgrad", "version": _VERSION, **about},
        allow_nan=False,
        separators=(",", ":"),
    )
    try:
        file = open(temporary, "xb")  # noqa: SIM115 - closed below, before it is renamed
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno, "no such folder", folder) from None
    try:
        with file:
            with zipfile.ZipFile(file, "w") as archive:
                _write_member(archive, ABOUT, np.array(text.encode("ascii")))
                for member, array in arrays.items():
                    _write_member(archive, member, array)
            file.flush()
            os.fsync(file.fileno())
        if not is_new:
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    _sync_folder(folder)


def _write_member(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    # A ZipInfo without a date, so that equal trees give equal files.
    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as out:
        out.write(npy_header(array))
        if array.nbytes:
            view = _bytes_of(array if _is_laid_out(array) else array.copy(order="C"))
            for start in range(0, view.size, _CHUNK):
                out.write(view[start : start + _CHUNK].data)


def npy_header(array: NDArray[Any]) -> bytes:
    """Return what comes before the data in an ``.npy`` file.

    Raises ValueError or TypeError for a dtype that such a file does not hold.
    """
    dtype = array.dtype
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that objects would be pickled: they are not
        description = npy.dtype_to_descr(dtype)
        # Types of other packages, such as bfloat16, would come back as raw bytes.
        if dtype.hasobject or npy.descr_to_dtype(description) != dtype:
            raise ValueError(f"no dtype of .npy files: {dtype}")
        out = io.BytesIO()
        npy.write_array_header_1_0(out, npy.header_data_from_array_1_0(array))
    return out.getvalue()


def _is_laid_out(array: NDArray[Any]) -> bool:
    return bool(array.flags.c_contiguous or array.flags.f_contiguous)


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    """View the memory of an array that is contiguous in either order, and not empty."""
    ordered = array if array.flags.c_contiguous else array.T
    return ordered.reshape(-1).view(np.uint8)


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


class Archive:
    """A file to be read: what it is `about`, and `read` for its arrays.

    Whatever is wrong with the file becomes a `FileFormatError`. A file that is not there, or may
    not be read, is an OSError as with ``open``.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._file: BinaryIO = open(path, "rb")  # noqa: SIM115 - closed by __exit__
        try:
            self._size = os.fstat(self._file.fileno()).st_size
            self._zip = self._open()
            self.about: Mapping[str, Any] = self._read_about()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()
        self._file.close()

    def _open(self) -> zipfile.ZipFile:
        start = self._file.read(len(_ZIP_START))
        try:
            archive = zipfile.ZipFile(self._file)
        except Exception as error:
            if start == _ZIP_START:
                raise self.damaged("it breaks off before its end") from error
            reason = "it is no zip archive" if self._size else "it is empty"
            raise self._foreign(reason, "give a path that save has written to") from error
        if sum(info.file_size for info in archive.infolist()) > self._size:
            raise self.damaged("it claims to hold more than its size")
        return archive

    def _read_about(self) -> Mapping[str, Any]:
        if f"{ABOUT}.npy" not in self._zip.namelist():
            raise self._foreign(f"it has no entry {ABOUT!r}", "np.load reads other .npz files")
        text = self.read(ABOUT)
        try:
            about = json.loads(text.item().decode("ascii"))
            version = about["version"]
            if about["format"] != "funcgrad" or type(version) is not int:
                raise ValueError("it says that it is of another format")
        except Exception as error:
            raise self.damaged(f"the entry {ABOUT!r} cannot be read") from error
        if version > _VERSION:
            raise FileFormatError(
                f"{self.path} is of a newer format: {version}, known here are those to {_VERSION}",
                where=user_line(),
                fix="pip install --upgrade funcgrad",
            )
        return about  # type: ignore[no-any-return]

    def read(self, member: str) -> NDArray[Any]:
        """Return an array, new and writable."""
        try:
            info = self._zip.getinfo(f"{member}.npy")
            if info.compress_type != zipfile.ZIP_STORED:
                raise ValueError("it is compressed")
            with self._zip.open(info) as source:
                return _read_array(source, info.file_size)
        except MemoryError:
            raise
        except Exception as error:
            words = str(error.args[0]) if error.args else type(error).__name__
            raise self.damaged(f"entry {member!r}: {words}") from error

    def damaged(self, reason: str) -> FileFormatError:
        """Make the error of a file that must have been ours."""
        return FileFormatError(
            f"{self.path} is damaged",
            where=f"{reason}; read at {user_line()}",
            fix="load another copy of it, or save again",
        )

    def _foreign(self, reason: str, fix: str) -> FileFormatError:
        return FileFormatError(
            f"{self.path} was not written by funcgrad.save",
            where=f"{reason}; read at {user_line()}",
            fix=fix,
        )


def _read_array(source: Any, size: int) -> NDArray[Any]:
    """Read an ``.npy`` file of `size` bytes."""
    version = npy.read_magic(source)
    if version != (1, 0):
        raise ValueError(f"unknown version of .npy: {version}")
    shape, fortran_order, dtype = npy.read_array_header_1_0(source)
    if dtype.hasobject:
        raise ValueError("it holds pickled objects")
    # Python's integers do not overflow, as those of a hostile header would like them to.
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size - source.tell():
        raise ValueError(f"{dtype} of shape {shape} does not fit its size")
    out: NDArray[Any] = np.empty(shape, dtype, order="F" if fortran_order else "C")
    if out.nbytes:
        view = _bytes_of(out)
        for start in range(0, view.size, _CHUNK):
            part = source.read(min(_CHUNK, view.size - start))
            view[start : start + len(part)] = np.frombuffer(part, np.uint8)
            if len(part) < min(_CHUNK, view.size - start):
                raise ValueError("it breaks off")
    source.read()  # nothing, but where the checksum is compared if there was no data
    return out
