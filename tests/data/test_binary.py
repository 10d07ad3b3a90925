"""IDX, NPZ and CIFAR-10 files: whole ones, and what is wrong with others."""

import gzip
import struct

import numpy as np
import pytest

from funcgrad import errors
from funcgrad.data import DataFormatError, parse_idx, read_cifar10, read_idx, read_npz

IDX_TYPES = {
    0x08: ("B", np.uint8, [0, 1, 2, 253, 254, 255]),
    0x09: ("b", np.int8, [0, 1, -1, 127, -128, 5]),
    0x0B: ("h", np.int16, [0, 1, -1, 32767, -32768, 5]),
    0x0C: ("i", np.int32, [0, 1, -1, 2**31 - 1, -(2**31), 5]),
    0x0D: ("f", np.float32, [0.0, 1.5, -2.25, 1e30, -1e-30, 5.0]),
    0x0E: ("d", np.float64, [0.0, 1.1, -2.2, 1e300, -1e-300, 5.0]),
}


def idx(code, shape, values):
    letter = IDX_TYPES[code][0]
    header = struct.pack(f">BBBB{len(shape)}I", 0, 0, code, len(shape), *shape)
    return header + struct.pack(f">{len(values)}{letter}", *values)


# IDX


@pytest.mark.parametrize("code", IDX_TYPES)
def test_every_dtype(code):
    _, dtype, values = IDX_TYPES[code]
    array = parse_idx(idx(code, (2, 3), values))
    assert array.dtype == np.dtype(dtype)
    assert array.dtype.isnative
    assert array.tolist() == np.array(values, dtype).reshape(2, 3).tolist()
    assert array.flags.writeable


@pytest.mark.parametrize("shape", [(), (0,), (6,), (3, 2), (1, 2, 3), (2, 0, 7)])
def test_every_number_of_axes(shape):
    count = int(np.prod(shape))
    array = parse_idx(idx(0x08, shape, list(range(count))))
    assert array.shape == shape
    assert array.ravel().tolist() == list(range(count))


def test_compressed_files_whatever_their_names(tmp_path):
    content = idx(0x08, (2, 2), [1, 2, 3, 4])
    assert parse_idx(gzip.compress(content)).tolist() == [[1, 2], [3, 4]]
    path = tmp_path / "train-images-idx3-ubyte"
    for written in (content, gzip.compress(content)):
        path.write_bytes(written)
        assert read_idx(path).tolist() == [[1, 2], [3, 4]]


GOOD = idx(0x0B, (2, 3), [1, 2, 3, 4, 5, 6])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "0 bytes, of at least 4"),
        (GOOD[:3], "3 bytes, of at least 4"),
        (GOOD[:7], "within its 2 lengths"),
        (GOOD[:-1], r"cut off\n.*11 bytes of data, and 12 by its shape \(2, 3\) of int16"),
        (GOOD[:12], r"cut off\n.*0 bytes of data"),
        (GOOD + b"\0", r"longer than it says\n.*13 bytes"),
        (b"\x89PNG\r\n", "begins with 89 50 4e 47"),
        (b"\0\1\x08\0", "begins with 00 01 08 00"),
        (b"\0\0\x0a\1\0\0\0\0", "its type is 0a, not one of 08, 09, 0b, 0c, 0d, 0e"),
        (b"\0\0\x0e\3" + b"\xff" * 12 + b"\0" * 8, "cut off"),
        (b"\0\0\x08\xff", "within its 255 lengths"),
        (gzip.compress(GOOD)[:-9], "gzip file that is cut off"),
    ],
)
def test_file_that_is_truncated_or_of_another_type(content, message, tmp_path):
    with pytest.raises(DataFormatError, match=message):
        parse_idx(content)
    path = tmp_path / "digits"
    path.write_bytes(content)
    with pytest.raises(DataFormatError, match="digits"):
        read_idx(path)


def test_name_in_place_of_bytes():
    with pytest.raises(errors.ArgumentError, match=r"needs bytes, got str(.|\n)*read_idx\(path\)"):
        parse_idx("train-images")


# NPZ


def test_npz_by_name(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.arange(3), y=np.ones((2, 2)))
    data = read_npz(path)
    assert sorted(data) == ["x", "y"]
    assert data["x"].tolist() == [0, 1, 2]
    assert list(read_npz(path, ["y"])) == ["y"]
    assert list(read_npz(path, "y")) == ["y"]


def test_npz_without_the_name(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.arange(3))
    with pytest.raises(errors.ArgumentError, match=r"no array 'z'\n.*\['x'\]"):
        read_npz(path, ["z"])


def test_npz_of_objects_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.array([{}], object))
    with pytest.raises(DataFormatError, match="cannot be read as"):
        read_npz(path)


@pytest.mark.parametrize("damage", ["cut", "text", "empty", "npy", "flip"])
def test_npz_that_is_none(tmp_path, damage):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.arange(1000.0))
    content = path.read_bytes()
    if damage == "npy":
        np.save(tmp_path / "b.npy", np.arange(3))
    path.write_bytes(
        {
            "cut": content[:-100],
            "text": b"a,b\n1,2\n",
            "empty": b"",
            "npy": (tmp_path / "b.npy").read_bytes() if damage == "npy" else b"",
            "flip": content[:2000] + bytes([content[2000] ^ 255]) + content[2001:],
        }[damage]
    )
    with pytest.raises(DataFormatError, match=r"a\.npz"):
        read_npz(path)


def test_npy_in_place_of_npz_is_recognised(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    with pytest.raises(DataFormatError, match=r"it is one array, which np\.load reads"):
        read_npz(tmp_path / "a.npy")


def test_text_in_place_of_npz_is_recognised(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(b"a,b\n1,2\n")
    with pytest.raises(DataFormatError, match="it begins with 61 2c 62"):
        read_npz(path)


# CIFAR-10


def cifar(*labels):
    records = [bytes([label]) + bytes((label + i) % 256 for i in range(3072)) for label in labels]
    return b"".join(records)


def test_cifar_file(tmp_path):
    path = tmp_path / "data_batch_1.bin"
    path.write_bytes(cifar(3, 9))
    images, labels = read_cifar10(path)
    assert images.shape == (2, 3, 32, 32)
    assert images.dtype == np.uint8
    assert labels.tolist() == [3, 9]
    assert images[0, 0, 0, :3].tolist() == [3, 4, 5]  # red, then along the row
    assert images[1, 2, 31, 31] == (9 + 3071) % 256  # the last byte is blue


def test_cifar_folder(tmp_path):
    for i in range(1, 6):
        (tmp_path / f"data_batch_{i}.bin").write_bytes(cifar(i))
    (tmp_path / "test_batch.bin").write_bytes(cifar(0, 0))
    assert read_cifar10(tmp_path)[1].tolist() == [1, 2, 3, 4, 5]
    assert read_cifar10(tmp_path, train=False)[1].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "0 bytes"),
        (cifar(1)[:-1], "3072 bytes, no multiple of 3073"),
        (cifar(1, 10), "record 1 has the label 10"),
    ],
)
def test_cifar_that_is_none(tmp_path, content, message):
    path = tmp_path / "a.bin"
    path.write_bytes(content)
    with pytest.raises(DataFormatError, match=message):
        read_cifar10(path)
