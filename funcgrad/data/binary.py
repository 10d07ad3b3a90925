"""Binary files: IDX (MNIST's own format), NumPy's ``.npz``, and CIFAR-10's.

The one idea: what a header promises is compared with what is there before it is believed.
"""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from funcgrad.data.opening import DataFormatError, decompressed, file_name, read_bytes
from funcgrad.errors import ArgumentError, describe, user_line

__all__ = ["parse_idx", "read_cifar10", "read_idx", "read_npz"]

_NPY, _ZIP = b"\x93NUMPY", b"PK"

# The third byte of an IDX file; numbers are big-endian.
_IDX_DTYPES: dict[int, np.dtype[Any]] = {
    0x08: np.dtype(">u1"),
    0x09: np.dtype(">i1"),
    0x0B: np.dtype(">i2"),
    0x0C: np.dtype(">i4"),
    0x0D: np.dtype(">f4"),
    0x0E: np.dtype(">f8"),
}


def parse_idx(content: bytes) -> NDArray[Any]:
    """Make an array of the bytes of an IDX file, the format of MNIST.

    Parameters
    ----------
    content : bytes
        The file; also if it is compressed by gzip.

    Returns
    -------
    ndarray
        Of dtype uint8, int8, int16, int32, float32 or float64, as the file says, and of its shape.
        A copy, in the byte order of this machine.

    Raises
    ------
    DataFormatError
        It is of another format, or longer or shorter than it says.
    ArgumentError
        `content` are no bytes.

    Notes
    -----
    Two zero bytes, one for the dtype, one for the number of axes, their lengths as big-endian
    32-bit integers, and the data in C order [1]_.

    References
    ----------
    .. [1] Y. LeCun, C. Cortes and C. J. C. Burges, "The MNIST database of handwritten digits".

    Examples
    --------
    >>> parse_idx(bytes([0, 0, 0x0B, 1, 0, 0, 0, 2, 0, 7, 255, 255]))
    array([ 7, -1], dtype=int16)
    """
    if not isinstance(content, (bytes, bytearray, memoryview)):
        raise ArgumentError(
            f"parse_idx() needs bytes, got {describe(content)}",
            where=user_line(),
            fix="write fg.data.read_idx(path) to read a file",
        )
    return _idx(decompressed(bytes(content), "the content"), "the content")


def read_idx(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Read an array from an IDX file, the format of MNIST.

    Parameters
    ----------
    path : str or path-like
        The file, also if it is compressed by gzip, whatever its name.

    Returns
    -------
    ndarray
        See `parse_idx`.

    Raises
    ------
    DataFormatError
        The file is of another format, or longer or shorter than it says.
    OSError
        The file is not there, or cannot be read.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "labels-idx1-ubyte")
    ...     with open(path, "wb") as file:
    ...         _ = file.write(bytes([0, 0, 8, 1, 0, 0, 0, 3, 5, 0, 4]))
    ...     read_idx(path)
    array([5, 0, 4], dtype=uint8)
    """
    content, name = read_bytes(path, "read_idx")
    return _idx(content, name)


def _idx(content: bytes, name: str) -> NDArray[Any]:
    fix = "give a file in MNIST's format, such as train-images-idx3-ubyte.gz"
    if len(content) < 4:
        raise _refused(name, f"it has {len(content)} bytes, of at least 4", fix)
    if content[0] or content[1]:
        raise _refused(name, f"it begins with {content[:4].hex(' ')}, not with 00 00", fix)
    dtype = _IDX_DTYPES.get(content[2])
    if dtype is None:
        known = ", ".join(f"{code:02x}" for code in _IDX_DTYPES)
        raise _refused(name, f"its type is {content[2]:02x}, not one of {known}", fix)
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise _refused(name, f"it breaks off within its {content[3]} lengths", "download it again")
    shape = [int(length) for length in np.frombuffer(content, ">u4", content[3], 4)]
    wanted = math.prod(shape) * dtype.itemsize
    if len(content) - start != wanted:
        raise DataFormatError(
            f"{name} is {'cut off' if len(content) - start < wanted else 'longer than it says'}",
            where=f"it has {len(content) - start} bytes of data, and {wanted} by its shape "
            f"{tuple(shape)} of {dtype.newbyteorder('=')}; read at {user_line()}",
            fix="download or write it again",
        )
    data = np.frombuffer(content, dtype, offset=start).reshape(shape)
    return data.astype(dtype.newbyteorder("="))


def _refused(name: str, reason: str, fix: str) -> DataFormatError:
    return DataFormatError(
        f"{name} is no IDX file: {reason}", where=f"read at {user_line()}", fix=fix
    )


def read_npz(
    path: str | os.PathLike[str], names: str | Sequence[str] | None = None
) -> dict[str, NDArray[Any]]:
    """Read arrays from a file of NumPy's, ``.npz``.

    Parameters
    ----------
    path : str or path-like
        The file. It may come from a stranger: nothing in it is executed.
    names : str or sequence of str, optional
        Which arrays; all if not given.

    Returns
    -------
    dict of ndarray
        By their names.

    Raises
    ------
    DataFormatError
        The file is of another format, damaged, or has arrays of Python objects.
    ArgumentError
        There is no array of that name.
    OSError
        The file is not there, or cannot be read.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "digits.npz")
    ...     np.savez(path, images=np.zeros((2, 8, 8)), labels=np.array([3, 5]))
    ...     read_npz(path, ["labels"])
    {'labels': array([3, 5])}
    """
    name = file_name(path, "read_npz")
    with open(name, "rb") as file:  # np.load would add .npz, and read single arrays
        try:
            start = file.read(len(_NPY))
            if start == _NPY:
                raise ValueError("it is one array, which np.load reads")
            if not start.startswith(_ZIP):
                raise ValueError(f"it begins with {start.hex(' ') or 'nothing'}, and is no archive")
            file.seek(0)
            with np.load(file, allow_pickle=False) as found:
                known = list(found.files)
                wanted = known if names is None else [names] if isinstance(names, str) else names
                for key in wanted:
                    if key not in known:
                        raise ArgumentError(
                            f"there is no array {key!r}",
                            where=f"{name} has {known}, read at {user_line()}",
                            fix=f"give some of {known}",
                        )
                return {key: found[key] for key in wanted}
        except ArgumentError:
            raise
        except (ValueError, EOFError, TypeError, OSError, zipfile.BadZipFile, KeyError) as error:
            raise DataFormatError(
                f"{name} cannot be read as an .npz file of numbers",
                where=f"{error}; read at {user_line()}",
                fix="write it by np.savez; fg.load reads what fg.save has written",
            ) from error


_RECORD = 1 + 3 * 32 * 32
_CIFAR_FILES = {
    True: [f"data_batch_{i}.bin" for i in range(1, 6)],
    False: ["test_batch.bin"],
}


def read_cifar10(
    path: str | os.PathLike[str], train: bool = True
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read the images and labels of CIFAR-10, in its binary version.

    Parameters
    ----------
    path : str or path-like
        One file, also if it is compressed by gzip; or the folder ``cifar-10-batches-bin``.
    train : bool, default True
        Of a folder: whether to read its five files to train on, or the one to test with.

    Returns
    -------
    images : ndarray of uint8, shape (n, 3, 32, 32)
        Red, green and blue.
    labels : ndarray of int64, shape (n,)
        Classes from 0 to 9: airplane, automobile, bird, cat, deer, dog, frog, horse, ship, truck.

    Raises
    ------
    DataFormatError
        A file has not a whole number of records of 3,073 bytes, or a label above 9.
    OSError
        A file is not there, or cannot be read.

    References
    ----------
    .. [1] A. Krizhevsky, "Learning multiple layers of features from tiny images", 2009.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "test_batch.bin")
    ...     with open(path, "wb") as file:
    ...         _ = file.write(bytes([7]) + bytes(3072))
    ...     images, labels = read_cifar10(folder, train=False)
    >>> images.shape, labels
    ((1, 3, 32, 32), array([7]))
    """
    name = file_name(path, "read_cifar10")
    files = [name]
    if os.path.isdir(name):
        files = [os.path.join(name, file) for file in _CIFAR_FILES[bool(train)]]
    records = np.concatenate([_records(file) for file in files])
    images = records[:, 1:].reshape(-1, 3, 32, 32)
    return images.copy(), records[:, 0].astype(np.int64)


def _records(path: str) -> NDArray[np.uint8]:
    content, name = read_bytes(path, "read_cifar10")
    if not content or len(content) % _RECORD:
        raise DataFormatError(
            f"{name} is no file of CIFAR-10, or is cut off",
            where=f"it has {len(content)} bytes, no multiple of {_RECORD}; read at {user_line()}",
            fix="give a file of the binary version, such as data_batch_1.bin",
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, _RECORD)
    for i in np.flatnonzero(records[:, 0] > 9):
        raise DataFormatError(
            f"{name} is no file of CIFAR-10: a label is above 9",
            where=f"record {i} has the label {records[i, 0]}; read at {user_line()}",
            fix="give a file of CIFAR-10 (CIFAR-100 has two labels a record)",
        )
    return records
