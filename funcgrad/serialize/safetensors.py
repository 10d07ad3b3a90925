"""The format of PyTorch's world: ``.safetensors``, read and written without its package.

Eight bytes tell the length of a header in JSON, which has the dtype, the shape and the place of
each array; the arrays follow, without gaps [1]_. There is no checksum. What NumPy has no dtype for
becomes float32 when it is read: every bfloat16 and every float8 is a float32 too.

References
----------
.. [1] https://huggingface.co/docs/safetensors, "Format".
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from funcgrad.errors import user_line
from funcgrad.serialize.archive import FileFormatError, bytes_of, damaged, read_into
from funcgrad.serialize.replacing import replacing

__all__ = ["SafetensorsFile", "dtype_code", "is_safetensors", "write_safetensors"]

_CODES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "C64": "<c8",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}
_WIDENED = {"BF16": "<u2", "F8_E5M2": "|u1", "F8_E4M3": "|u1"}
_DTYPES = {code: np.dtype(text) for code, text in (_CODES | _WIDENED).items()}
_LARGEST_HEADER = 100_000_000  # that of the reference implementation
_LENGTH_SIZE = 8


class _Place(NamedTuple):
    code: str
    shape: tuple[int, ...]
    start: int
    end: int


def is_safetensors(path: str) -> bool:
    """Say whether a file is of this format, by its name."""
    return path.lower().endswith(".safetensors")


def dtype_code(dtype: np.dtype[Any]) -> str | None:
    """Return the name that the format has for a dtype, or None if it has none."""
    little = dtype.newbyteorder("<")
    return next((code for code, text in _CODES.items() if np.dtype(text) == little), None)


def write_safetensors(path: str, arrays: Mapping[str, NDArray[Any]], fsync: bool) -> None:
    """Write arrays of dtypes that the format has."""
    # The widest first, then by name, so that each array lies where its dtype wants it.
    names = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    header: dict[str, Any] = {}
    end = 0
    for name in names:
        array = arrays[name]
        start, end = end, end + array.nbytes
        code = dtype_code(array.dtype)
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with replacing(path, fsync, end) as file:
        file.write(len(text).to_bytes(_LENGTH_SIZE, "little"))
        file.write(text)
        for name in names:
            little = arrays[name].dtype.newbyteorder("<")
            file.write(bytes_of(np.asarray(arrays[name], little, order="C")))


class SafetensorsFile:
    """A file to be read: the `names` of its arrays, and `read`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file: BinaryIO = open(path, "rb")  # noqa: SIM115 - closed by __exit__
        try:
            self._places = self._read_header()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def names(self) -> Iterable[str]:
        """The names of the arrays, in the order in which they lie in the file."""
        return self._places.keys()

    def read(self, name: str) -> NDArray[Any]:
        """Return an array, new and writable."""
        code, shape, start, end = self._places[name]
        out: NDArray[Any] = np.empty(shape, _DTYPES[code])
        if out.nbytes:
            self._file.seek(self._data + start)
            if read_into(self._file, out.reshape(-1).view(np.uint8).data) < end - start:
                raise damaged(self.path, f"{name!r} breaks off")
        if code == "BOOL" and out.size and out.view(np.uint8).max() > 1:
            raise damaged(self.path, f"{name!r} has truth values other than 0 and 1")
        return _widened(out, code)

    def _read_header(self) -> dict[str, _Place]:
        size = os.fstat(self._file.fileno()).st_size
        length = int.from_bytes(self._file.read(_LENGTH_SIZE), "little")
        if size < _LENGTH_SIZE + 2:
            raise self._foreign("it is too short" if size else "it is empty")
        if length > _LARGEST_HEADER or _LENGTH_SIZE + length > size:
            raise self._foreign(f"its header would have {length} bytes, the file has {size}")
        text = self._file.read(length)
        if not text.startswith(b"{"):
            raise self._foreign("there is no header at its start")
        try:
            header = json.loads(text.decode(), object_pairs_hook=_without_repeats)
        except (ValueError, RecursionError) as error:
            raise damaged(self.path, f"its header cannot be read: {error}") from error
        self._data = _LENGTH_SIZE + length
        metadata = header.pop("__metadata__", {})
        if not isinstance(metadata, dict) or not all(
            isinstance(value, str) for value in metadata.values()
        ):
            raise damaged(self.path, "its metadata is not a table of text")
        places = {name: self._place(name, entry) for name, entry in header.items()}
        ordered = dict(sorted(places.items(), key=lambda item: item[1][2:]))
        end = 0
        for name, place in ordered.items():
            if place.start != end:
                raise damaged(self.path, f"{name!r} begins at {place.start}, not at {end}")
            end = place.end
        if end != size - self._data:
            raise damaged(self.path, f"its arrays take {end} bytes, there are {size - self._data}")
        return ordered

    def _place(self, name: str, entry: Any) -> _Place:
        """Check the entry of one array."""
        try:
            code, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
            numbers = [*shape, start, end]
        except (TypeError, KeyError, ValueError) as error:
            raise damaged(self.path, f"the header of {name!r} is incomplete") from error
        if any(type(number) is not int or number < 0 for number in numbers) or start > end:
            raise damaged(self.path, f"{name!r} has a size or a place that is no count")
        if not isinstance(code, str) or code not in _DTYPES:
            raise FileFormatError(
                f"{self.path} has an array of dtype {code}, which funcgrad does not know",
                where=f"{name!r}; read at {user_line()}",
                fix=f"convert it before it is saved; known are {', '.join(_DTYPES)}",
            )
        # Python's integers do not overflow, as those of a hostile header would like them to.
        if math.prod(shape) * _DTYPES[code].itemsize != end - start:
            raise damaged(self.path, f"{name!r}: {code} of shape {shape} does not fit its size")
        return _Place(code, tuple(shape), start, end)

    def _foreign(self, reason: str) -> FileFormatError:
        return FileFormatError(
            f"{self.path} is no safetensors file, or damaged",
            where=f"{reason}; read at {user_line()}",
            fix="load another copy of it; files of funcgrad's own format end in .npz",
        )


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name comes twice")
    return found


def _widened(array: NDArray[Any], code: str) -> NDArray[Any]:
    """Return an array as it is, or as float32 if its dtype is none of NumPy's."""
    if code == "BF16":  # the upper half of a float32
        wide: NDArray[Any] = array.astype(np.uint32)
        wide <<= 16
        return wide.view(np.float32)
    if code == "F8_E5M2":  # the upper half of a float16
        return (array.astype(np.uint16) << 8).view(np.float16).astype(np.float32)
    if code == "F8_E4M3":
        table: NDArray[Any] = _e4m3_values()[array]
        return table
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _e4m3_values() -> NDArray[np.float32]:
    """Return all numbers of 4 bits of exponent and 3 of mantissa, without infinities.

    P. Micikevicius et al., "FP8 formats for deep learning", arXiv:2209.05433, 2022, table 1.
    """
    bits = np.arange(256)
    exponent, mantissa = (bits >> 3) & 15, bits & 7
    subnormal = exponent == 0
    size = np.ldexp(mantissa + np.where(subnormal, 0.0, 8.0), np.where(subnormal, 1, exponent) - 10)
    size[(bits & 127) == 127] = np.nan
    signed: NDArray[Any] = np.where(bits < 128, size, -size)
    return signed.astype(np.float32)
