"""Files of data: opened whether or not they are compressed, refused with words that say where.

The one idea: what is wrong with a file is a `DataFormatError` that names it, whichever library
found out; a file that is not there, or may not be read, is an OSError as with ``open``.
"""

from __future__ import annotations

import gzip
import os
import zlib

from funcgrad.errors import ArgumentError, FuncgradError, describe, user_line

__all__ = ["DataFormatError", "decompressed", "file_name", "read_bytes"]

_GZIP = b"\x1f\x8b"


class DataFormatError(FuncgradError, ValueError):
    """A file of data is damaged, or not of the format that it was read as.

    Examples
    --------
    >>> import os, tempfile
    >>> import funcgrad as fg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "digits.idx")
    ...     with open(path, "w") as file:
    ...         _ = file.write("hello")
    ...     fg.data.read_idx(path)
    Traceback (most recent call last):
        ...
    funcgrad.data.opening.DataFormatError: ...digits.idx is no IDX file: it begins with 68 65 ...
      where: ...
      fix:   give a file in MNIST's format, such as train-images-idx3-ubyte.gz
    """


def file_name(path: str | os.PathLike[str], use: str) -> str:
    """Return the name of a file, or of a folder, as a string."""
    if isinstance(path, (str, os.PathLike)):
        name = os.fspath(path)
        if isinstance(name, str):
            return name
    raise ArgumentError(
        f"{use}() needs the name of a file",
        where=f"its first argument is {describe(path)}, at {user_line()}",
        fix="give a string or a pathlib.Path",
    )


def read_bytes(path: str | os.PathLike[str], use: str) -> tuple[bytes, str]:
    """Return what is in a file, decompressed if it is a gzip file, and its name."""
    name = file_name(path, use)
    with open(name, "rb") as file:
        return decompressed(file.read(), name), name


def decompressed(content: bytes, name: str) -> bytes:
    """Return bytes as they are, or what they hold if they are those of a gzip file."""
    if not content.startswith(_GZIP):
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as error:
        raise DataFormatError(
            f"{name} is a gzip file that is cut off or damaged",
            where=f"{len(content)} bytes of it, read at {user_line()}",
            fix="download or write it again",
        ) from error
