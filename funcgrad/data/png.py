"""PNG pictures: all but interlaced ones, decoded with nothing but zlib and NumPy.

The one idea: a row of a PNG is stored as differences to what is left of it and above it [1]_. Two
of the five kinds of differences are sums along an axis, which NumPy does; two depend on each byte
before, and take a loop over pixels.

.. [1] W3C, *Portable Network Graphics (PNG) Specification*, 2nd ed., 2003, sections 5, 9 and 11.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["SIGNATURE", "UnsupportedError", "decode_png"]

SIGNATURE = b"\x89PNG\r\n\x1a\n"

_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by the type of color
_PALETTE = 3


class UnsupportedError(Exception):
    """A picture is well-formed, as far as was looked, and of a kind that is not decoded here."""


def decode_png(content: bytes) -> NDArray[np.uint8] | NDArray[np.uint16]:
    """Return the pixels, shape (height, width) or (height, width, channels).

    Palettes are looked up. A ValueError says what is wrong with the content.
    """
    header, palette, packed = None, None, []
    for kind, data in _chunks(content):
        if header is None:
            if kind != b"IHDR" or len(data) != 13:
                raise ValueError("it does not begin with a header")
            header = struct.unpack(">IIBBBBB", data)
        elif kind == b"PLTE":
            palette = np.frombuffer(data, np.uint8).reshape(-1, 3)
        elif kind == b"IDAT":
            packed.append(data)
    if header is None:
        raise ValueError("it has no header")
    width, height, depth, color, _, _, interlaced = header
    if interlaced:
        raise UnsupportedError("interlaced")
    channels = _CHANNELS.get(color)
    if channels is None or depth not in (1, 2, 4, 8, 16) or not width or not height:
        raise ValueError(f"its header says {width} x {height}, type {color}, depth {depth}")
    line = (width * channels * depth + 7) // 8
    wanted = height * (1 + line)
    # No more is unpacked than the picture has, whatever a stranger has packed; and no header is
    # believed that says more than zlib can pack into what is there, a thousandth of it.
    content = b"".join(packed)
    if wanted > 1100 * (len(content) + 1):
        raise ValueError(f"its header says {width} x {height}, too many for its size")
    unpacked = zlib.decompressobj().decompress(content, wanted)
    if len(unpacked) != wanted:
        raise ValueError(f"it has {len(unpacked)} bytes of pixels, of {wanted}")
    rows = np.frombuffer(unpacked, np.uint8).reshape(height, 1 + line)
    raw = _unfiltered(rows, max(channels * depth // 8, 1))
    pixels = _samples(raw, depth, width * channels).reshape(height, width, channels)
    if color == _PALETTE:
        if palette is None or pixels.max() >= len(palette):
            raise ValueError("its palette is too short")
        return palette[pixels[:, :, 0]]
    if depth < 8:
        pixels = pixels * np.uint8(255 // (2**depth - 1))
    return pixels[:, :, 0] if channels == 1 else pixels


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the type and the data of each chunk, checked, up to the end."""
    position = len(SIGNATURE)
    while position + 12 <= len(content):
        (size,) = struct.unpack_from(">I", content, position)
        kind = content[position + 4 : position + 8]
        data = content[position + 8 : position + 8 + size]
        position += 12 + size
        if position > len(content):
            break
        (check,) = struct.unpack_from(">I", content, position - 4)
        if zlib.crc32(kind + data) != check:
            raise ValueError(f"a checksum is wrong, of a chunk {kind!r}")
        if kind == b"IEND":
            return
        yield kind, data
    raise ValueError("it breaks off before its end")


def _samples(
    raw: NDArray[np.uint8], depth: int, count: int
) -> NDArray[np.uint8] | NDArray[np.uint16]:
    """Return the numbers in rows of bytes, `count` each."""
    if depth == 8:
        return raw
    if depth == 16:
        return raw.view(">u2").astype(np.uint16)
    bits = np.unpackbits(raw, axis=1).reshape(len(raw), -1, depth)
    weights = (1 << np.arange(depth - 1, -1, -1)).astype(np.uint8)
    return (bits @ weights)[:, :count]


def _unfiltered(rows: NDArray[np.uint8], step: int) -> NDArray[np.uint8]:
    """Undo the differences; `step` is the distance in bytes to the pixel on the left."""
    kinds, rows = rows[:, 0], rows[:, 1:]
    out = np.zeros(rows.shape, np.uint8)
    above = np.zeros(rows.shape[1], np.uint8)
    for kind, row, line in zip(kinds.tolist(), rows, out, strict=True):
        if kind == 0:
            line[:] = row
        elif kind == 1:
            for channel in range(step):
                np.cumsum(row[channel::step], dtype=np.uint8, out=line[channel::step])
        elif kind == 2:
            np.add(row, above, out=line)
        elif kind in (3, 4):
            undo = _average if kind == 3 else _paeth
            line[:] = np.frombuffer(undo(row.tolist(), above.tolist(), step), np.uint8)
        else:
            raise ValueError(f"a row has the filter {kind}, of 0 to 4")
        above = line
    return out


def _average(row: list[int], above: list[int], step: int) -> bytearray:
    out = bytearray(len(row))
    for i, value in enumerate(row):
        left = out[i - step] if i >= step else 0
        out[i] = (value + (left + above[i]) // 2) & 255
    return out


def _paeth(row: list[int], above: list[int], step: int) -> bytearray:
    """Undo differences to whichever neighbour is nearest to left + up - corner."""
    out = bytearray(len(row))
    for i, value in enumerate(row):
        up = above[i]
        left, corner = (out[i - step], above[i - step]) if i >= step else (0, 0)
        to_left, to_up = abs(up - corner), abs(left - corner)
        to_corner = abs(left + up - 2 * corner)
        if to_left <= to_up and to_left <= to_corner:
            nearest = left
        else:
            nearest = up if to_up <= to_corner else corner
        out[i] = (value + nearest) & 255
    return out
