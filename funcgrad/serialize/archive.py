"""One zip file of arrays and a text about them: written whole or not at all, read with suspicion.

Each member is an ``.npy`` file, stored without compression, as ``np.savez`` does it. The zip format
brings a checksum for each. The text is a member too, a string of shape (), so that whatever reads
``.npz`` files can read all of it.

What a header promises is compared with the size of the file before any memory is set aside.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from funcgrad.errors import FuncgradError, user_line
from funcgrad.serialize.replacing import replacing
from funcgrad.serialize.zipping import ZipWriter

__all__ = [
    "ABOUT",
    "Archive",
    "FileFormatError",
    "bytes_of",
    "damaged",
    "npy_header",
    "read_into",
    "write_archive",
]

ABOUT = "__funcgrad__"
"""The name of the member that describes the others."""

_VERSION = 1
_CHUNK = 1 << 18  # bytes that stay in the cache between the copy and the checksum
_ZIP_START = b"PK\x03\x04"
_HEADER_SIZE = 30
_LONGEST_HEADER = 10_000  # NumPy parses none that is longer
_ENCRYPTED = 1


class FileFormatError(FuncgradError, ValueError):
    """A file is not one that `save` wrote, or it is damaged.

    Examples
    --------
    >>> import os, tempfile
    >>> import funcgrad as fg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "params.fg")
    ...     with open(path, "w") as file:
    ...         _ = file.write("hello")
    ...     fg.load(path)
    Traceback (most recent call last):
        ...
    funcgrad.serialize.archive.FileFormatError: ...params.fg was not written by funcgrad.save
      where: it is no zip archive; ...
      fix:   give a path that save has written to
    """


def write_archive(
    path: str, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], fsync: bool = True
) -> None:
    """Write a file of our format in one step: see `replacing`."""
    text = json.dumps(
        {"format": "funcgrad", "version": _VERSION, **about},
        allow_nan=False,
        separators=(",", ":"),
    )
    size = sum(array.nbytes for array in arrays.values())
    with replacing(path, fsync, size) as file, ZipWriter(file) as archive:
        for name, array in {ABOUT: np.array(text.encode("ascii")), **arrays}.items():
            archive.add(f"{name}.npy", npy_header(array), bytes_of(array))


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
    if out.tell() > _LONGEST_HEADER:
        raise ValueError(f"a dtype too long to be read again: {len(dtype.names or ())} fields")
    return out.getvalue()


def bytes_of(array: NDArray[Any]) -> memoryview:
    """Return the memory of an array, after a copy if it is contiguous in no order."""
    if not array.nbytes:
        return memoryview(b"")
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        array = array.copy(order="C")
    return _flat_bytes(array).data


def _flat_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """View the memory of an array that is contiguous in either order, and not empty."""
    ordered = array if array.flags.c_contiguous else array.T
    return ordered.reshape(-1).view(np.uint8)


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
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & _ENCRYPTED:
                raise ValueError("it is compressed or encrypted")
            self._file.seek(_data_start(self._file, info))
            return _read_array(self._file, info.file_size, info.CRC)
        except MemoryError:
            raise
        except Exception as error:
            words = str(error.args[0]) if error.args else type(error).__name__
            raise self.damaged(f"entry {member!r}: {words}") from error

    @contextlib.contextmanager
    def damage_named(self) -> Iterator[None]:
        """Turn whatever a file of the right form and wrong content causes into `damaged`."""
        try:
            yield
        except (FuncgradError, MemoryError):
            raise
        except Exception as error:
            raise self.damaged("its structure cannot be read") from error

    def damaged(self, reason: str) -> FileFormatError:
        """Make the error of a file that must have been ours."""
        return damaged(self.path, reason)

    def _foreign(self, reason: str, fix: str) -> FileFormatError:
        return FileFormatError(
            f"{self.path} was not written by funcgrad.save",
            where=f"{reason}; read at {user_line()}",
            fix=fix,
        )


def damaged(path: str, reason: str) -> FileFormatError:
    """Make the error of a file that is of the right format, and not as it was written."""
    return FileFormatError(
        f"{path} is damaged",
        where=f"{reason}; read at {user_line()}",
        fix="load another copy of it, or save again",
    )


def _data_start(file: BinaryIO, info: zipfile.ZipInfo) -> int:
    """Return where the content of a member begins, after its header."""
    file.seek(info.header_offset)
    header = file.read(_HEADER_SIZE)
    if len(header) < _HEADER_SIZE or not header.startswith(_ZIP_START):
        raise ValueError("its header is not where the directory says")
    lengths = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    return info.header_offset + _HEADER_SIZE + lengths


def _read_array(file: BinaryIO, size: int, checksum: int) -> NDArray[Any]:
    """Read an ``.npy`` file of `size` bytes from where `file` stands."""
    start = file.tell()
    version = npy.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"unknown version of .npy: {version}")
    shape, fortran_order, dtype = npy.read_array_header_1_0(file)
    if dtype.hasobject:
        raise ValueError("it holds pickled objects")
    if np.empty(0, dtype).itemsize != dtype.itemsize:  # text of no length becomes longer
        raise ValueError(f"no dtype of arrays: {dtype}")
    head_size = file.tell() - start
    # Python's integers do not overflow, as those of a hostile header would like them to.
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size - head_size:
        raise ValueError(f"{dtype} of shape {shape} does not fit its size")
    out: NDArray[Any] = np.empty(shape, dtype, order="F" if fortran_order else "C")
    file.seek(start)
    found = zlib.crc32(file.read(head_size))
    if out.nbytes:
        view = _flat_bytes(out).data
        for begin in range(0, len(view), _CHUNK):
            part = view[begin : begin + _CHUNK]
            if read_into(file, part) < len(part):
                raise ValueError("it breaks off")
            found = zlib.crc32(part, found)
    if found != checksum:
        raise ValueError("its checksum is another one")
    return out


def read_into(file: BinaryIO, view: memoryview) -> int:
    """Fill memory from a file, and return how many bytes there were."""
    count = 0
    while count < len(view):
        got: int = file.readinto(view[count:])  # type: ignore[attr-defined]
        if not got:
            break
        count += got
    return count
