"""A writer of uncompressed zip files, for arrays: one pass over the memory, and two threads.

`zipfile` computes checksums and writes in turn. Here a second thread computes the checksum of
a large member while it is being written, and it is filled in afterwards. The layout is that of
`zipfile` byte by byte [1]_: a header before each member, a directory of all of them at the end,
numbers of 64 bits where those of 32 are too small.

References
----------
.. [1] PKWARE, ".ZIP File Format Specification", version 6.3.10.
"""

from __future__ import annotations

import struct
import threading
import zlib
from typing import Any, BinaryIO, NamedTuple, Self

__all__ = ["ZipWriter"]

_LARGE = 1 << 20  # bytes from which on a second thread pays
_FULL = 0xFFFFFFFF  # says that the number stands in the extra field, in 64 bits
_MANY = 0xFFFF  # says the same of the number of members
_LIMIT = 0xFFFFFFFF  # from which on numbers do
_DATE = 0x21  # 1980-01-01: no date, so that equal trees give equal files
_UTF8 = 0x800
_CHECKSUM_AT = 14  # in a header


class _Member(NamedTuple):
    name: bytes
    flags: int
    checksum: int
    size: int
    start: int


class ZipWriter:
    """Writes members to a file that is open for writing, and in `close` their directory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._members: list[_Member] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is None:
            self._close()

    def add(self, name: str, head: bytes, body: memoryview) -> None:
        """Write one member, of two parts."""
        encoded = name.encode()
        flags = 0 if encoded.isascii() else _UTF8
        start, size = self._file.tell(), len(head) + len(body)
        checksum = zlib.crc32(head)
        if len(body) < _LARGE:
            checksum = zlib.crc32(body, checksum)
            self._file.write(_header(_Member(encoded, flags, checksum, size, start)))
            self._file.write(head)
            self._file.write(body)
        else:
            self._file.write(_header(_Member(encoded, flags, 0, size, start)))
            checksum = self._write_and_sum(head, body, checksum)
            self._file.seek(start + _CHECKSUM_AT)
            self._file.write(checksum.to_bytes(4, "little"))
            self._file.seek(0, 2)
        self._members.append(_Member(encoded, flags, checksum, size, start))

    def _write_and_sum(self, head: bytes, body: memoryview, checksum: int) -> int:
        results: list[int] = []

        def compute() -> None:
            results.append(zlib.crc32(body, checksum))

        thread = threading.Thread(target=compute)
        thread.start()
        try:
            self._file.write(head)
            self._file.write(body)
        finally:
            thread.join()
        return results[0]

    def _close(self) -> None:
        start = self._file.tell()
        for member in self._members:
            self._file.write(_entry(member))
        size, count = self._file.tell() - start, len(self._members)
        if count >= _MANY or max(start, size) >= _LIMIT:
            end = start + size
            self._file.write(
                struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, count, count, size, start)
            )
            self._file.write(struct.pack("<4sIQI", b"PK\6\7", 0, end, 1))
        few = min(count, _MANY)
        size, start = (_FULL if number >= _LIMIT else number for number in (size, start))
        self._file.write(struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, few, few, size, start, 0))


def _header(member: _Member) -> bytes:
    """Return what stands before a member; its sizes in 64 bits always, as np.savez has them."""
    name, flags, checksum, size, _ = member
    extra = struct.pack("<HHQQ", 1, 16, size, size)
    fields = (45, flags, 0, 0, _DATE, checksum, _FULL, _FULL, len(name), len(extra))
    return struct.pack("<4sHHHHHIIIHH", b"PK\3\4", *fields) + name + extra


def _entry(member: _Member) -> bytes:
    """Return the entry of a member in the directory."""
    name, flags, checksum, size, start = member
    wide = [size, size] if size >= _LIMIT else []
    if start >= _LIMIT:
        wide.append(start)
    extra = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
    size, start = (_FULL if number >= _LIMIT else number for number in (size, start))
    lengths = (len(name), len(extra), 0, 0, 0)
    fields = (45, 45, flags, 0, 0, _DATE, checksum, size, size, *lengths, 0o600 << 16, start)
    return struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\1\2", *fields) + name + extra
