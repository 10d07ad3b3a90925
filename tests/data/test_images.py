"""Pictures and folders of them. The PNG files are Pillow's, with the pixels beside them."""

import base64
import gzip
import struct
import sys
import zlib

import numpy as np
import pytest

from funcgrad import errors
from funcgrad.data import DataFormatError, list_image_folder, read_image, read_image_folder
from funcgrad.data.png import SIGNATURE

PNGS = {
    "gray": (
        "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAECAAAAABjWKqcAAAAIElEQVR4nGNkZ+MU4mARYecQ4mbhFWTn4WcR5+XiEgAA"
        "C5MBBvOw7t4AAAAASUVORK5CYII=",
        [[7, 13, 22, 40, 48], [27, 34, 42, 60, 71], [40, 57, 64, 76, 91], [63, 76, 86, 96, 112]],
    ),
    "rgba": (
        "iVBORw0KGgoAAAANSUhEUgAAAAQAAAADCAYAAAC09K7GAAAAOElEQVR4nAXBgQ2AIAxFwWeCFMiv1AbGcCXndSzvDnve"
        "rzajd5GRlLUD06QNJ+tJ8bm4r8AkNJwfZ5cDA1T0XE8AAAAASUVORK5CYII=",
        [
            [[7, 45, 94, 200], [13, 53, 101, 200], [22, 62, 113, 200], [40, 78, 131, 200]],
            [[27, 66, 110, 200], [34, 78, 125, 200], [42, 88, 138, 200], [60, 94, 143, 200]],
            [[40, 81, 130, 200], [57, 95, 146, 200], [64, 107, 158, 200], [76, 117, 171, 200]],
        ],
    ),
    "gray and opacity": (
        "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAQAAAA3fa6RAAAAFklEQVR4nGNk/8H2i/M7i8gb9p8cPwAnZQYFpv1AxwAA"
        "AABJRU5ErkJggg==",
        [[[7, 248], [13, 242], [22, 233]], [[27, 228], [34, 221], [42, 213]]],
    ),
    "palette, 2 bits": (
        "iVBORw0KGgoAAAANSUhEUgAAAAMAAAADAgMAAAArRl0sAAAADFBMVEU2YZMlUIAVPGwHLV6P4b41AAAADklEQVR4nGP4wTSH"
        "wQEABvoB1zT5TKEAAAAASUVORK5CYII=",
        [
            [[7, 45, 94], [7, 45, 94], [21, 60, 108]],
            [[21, 60, 108], [37, 80, 128], [37, 80, 128]],
            [[37, 80, 128], [54, 97, 147], [54, 97, 147]],
        ],
    ),
    "1 bit": (
        "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAEAQAAAABuSMjtAAAAEElEQVR4nGNgYOBgMmD4AQABwAEzCqI10QAAAABJRU5ErkJg"
        "gg==",
        [
            [0, 0, 0, 0, 0],
            [0, 0, 0, 0, 255],
            [0, 0, 255, 255, 255],
            [255, 255, 255, 255, 255],
        ],
    ),
    "16 bits": (
        "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACEAAAAADoj+WFAAAAFklEQVR4nGNk52Jj4+RkERFhZ+fgAAADRwB7Kk0icAAAAABJ"
        "RU5ErkJggg==",
        [[1802, 3344, 5657], [6942, 8741, 10797]],
    ),
}


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth, color, rows, interlaced=0):
    """Write a PNG of rows that have their filters in front already."""
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlaced)
    packed = zlib.compress(b"".join(map(bytes, rows)))
    return SIGNATURE + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


# Single pictures


@pytest.mark.parametrize("name", PNGS)
def test_png_that_pillow_wrote(name, tmp_path):
    content, pixels = PNGS[name]
    path = tmp_path / "a.png"
    path.write_bytes(base64.b64decode(content))
    image = read_image(path)
    assert image.tolist() == pixels
    assert image.dtype == (np.uint16 if name == "16 bits" else np.uint8)


@pytest.mark.parametrize(
    ("kind", "row", "expected"),
    [
        # Worked out by hand, below the row 10, 20, 30.
        (0, [1, 2, 3], [1, 2, 3]),
        (1, [250, 2, 10], [250, 252, 6]),
        (2, [1, 250, 3], [11, 14, 33]),
        (3, [1, 2, 3], [6, 15, 25]),
        # Paeth takes 10 (up); of 11, 20, 10 the nearest to 11 + 20 - 10, 20; of 22, 30, 20 the
        # nearest to 32, 30. Then: 10; of 100, 20, 10 the nearest to 110, 100; of 100, 30, 20, 100.
        (4, [1, 2, 3], [11, 22, 33]),
        (4, [90, 0, 0], [100, 100, 100]),
    ],
)
def test_each_filter_of_png(kind, row, expected, tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(png(3, 2, 8, 0, [[0, 10, 20, 30], [kind, *row]]))
    assert read_image(path).tolist() == [[10, 20, 30], expected]


@pytest.mark.parametrize(
    ("content", "pixels"),
    [
        (b"P5 2 1 255\n\x07\xff", [[7, 255]]),
        (b"P5\n# drawn by hand\n2 # wide\n1\n255\n\x07\x0a", [[7, 10]]),
        (b"P2\n2 2\n255\n0 1\n2\n255\n", [[0, 1], [2, 255]]),
        (b"P6 1 2 255 \x01\x02\x03\x04\x05\x06", [[[1, 2, 3]], [[4, 5, 6]]]),
        (b"P3 1 1 255 1 2 3", [[[1, 2, 3]]]),
        (b"P5 2 1 65535 \x01\x02\xff\xff", [[258, 65535]]),
        (b"P2 3 1 15 0 1 15", [[0, 17, 255]]),
        (b"P5 1 1 255 \x20", [[32]]),
    ],
)
def test_portable_formats(content, pixels, tmp_path):
    path = tmp_path / "a.pnm"
    path.write_bytes(content)
    assert read_image(path).tolist() == pixels
    path.write_bytes(gzip.compress(content))
    assert read_image(path).tolist() == pixels


GRAY = base64.b64decode(PNGS["gray"][0])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GRAY[:-20], "breaks off"),
        (GRAY[:40], "breaks off"),
        (GRAY[:45] + b"\0" + GRAY[46:], "checksum is wrong"),
        (png(3, 2, 8, 0, [[0, 1, 2, 3]]), "4 bytes of pixels, of 8"),
        (png(3, 1, 8, 0, [[5, 1, 2, 3]]), "filter 5"),
        (png(3, 1, 8, 9, [[0, 1, 2, 3]]), "type 9"),
        (png(0, 1, 8, 0, [[0]]), "0 x 1"),
        (png(1, 1, 8, 3, [[0, 1]]), "palette is too short"),
        (SIGNATURE, "breaks off"),
        (SIGNATURE + chunk(b"IEND", b""), "no header"),
        (SIGNATURE + chunk(b"IDAT", b"") + chunk(b"IEND", b""), "not begin with a header"),
        (b"P5 3 3 255 \x01", "1 bytes of pixels, of 9"),
        (b"P2 2 1 255 1", "1 numbers of 2"),
        (b"P2 2 1 255 1 x", "invalid literal"),
        (b"P2 1 1 9 12", "a value is 12"),
        (b"P5 1 1 70000 \x01", "largest value is 70000"),
    ],
)
def test_picture_that_is_damaged(content, message, tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(content)
    with pytest.raises(DataFormatError, match=rf"a\.png is a picture that is damaged\n.*{message}"):
        read_image(path)


def test_header_of_a_huge_picture_sets_no_memory_aside(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(png(2**31 - 1, 2**31 - 1, 16, 6, [[0, 1]]))
    with pytest.raises(DataFormatError, match="2147483647 x 2147483647, too many"):
        read_image(path)


@pytest.mark.parametrize("content", [b"\xff\xd8\xff\xe0", png(1, 1, 8, 0, [[0, 1]], interlaced=1)])
def test_other_formats_name_the_package(content, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    path = tmp_path / "a.jpg"
    path.write_bytes(content)
    with pytest.raises(errors.MissingExtraError, match=r"pip install 'funcgrad\[plot\]'"):
        read_image(path)


# Folders


def pgm(*pixels, width):
    return f"P5 {width} {len(pixels) // width} 255 ".encode() + bytes(pixels)


@pytest.fixture
def folder(tmp_path):
    for name, pixels in {
        "dog/b.pgm": (5, 6),
        "dog/A/a.PGM": (3, 4),
        "cat/1.pgm": (1, 2),
        "dog/.hidden.pgm": (0,),
        "dog/notes.txt": (0,),
        ".cache/x.pgm": (0,),
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pgm(*pixels, width=len(pixels)))
    (tmp_path / "README").write_text("not a folder")
    return tmp_path


def test_folder_has_a_class_for_each_sub_folder(folder):
    images, labels, classes = read_image_folder(folder)
    assert images.tolist() == [[[1, 2]], [[3, 4]], [[5, 6]]]
    assert labels.tolist() == [0, 1, 1]
    assert classes == ["cat", "dog"]


def test_folder_is_listed_in_order(folder):
    paths, labels, classes = list_image_folder(str(folder))
    assert [path[len(str(folder)) + 1 :] for path in paths] == [
        "cat/1.pgm",
        "dog/A/a.PGM",
        "dog/b.pgm",
    ]
    assert labels.tolist() == [0, 1, 1]
    assert classes == ["cat", "dog"]


def test_pictures_of_two_shapes_are_named(folder):
    (folder / "dog" / "c.pgm").write_bytes(pgm(1, 2, 3, 4, width=2))
    with pytest.raises(
        errors.ShapeError, match=r"1\.pgm is uint8\[1, 2\], .*c\.pgm is uint8\[2, 2\]"
    ):
        read_image_folder(folder)


def test_folder_without_classes(tmp_path):
    (tmp_path / "a.pgm").write_bytes(pgm(1, width=1))
    with pytest.raises(errors.ArgumentError, match="no sub-folders: the data set is empty"):
        read_image_folder(tmp_path)


def test_class_without_pictures(folder):
    (folder / "cow").mkdir()
    with pytest.raises(errors.ArgumentError, match=r"a class has no pictures: .*cow"):
        read_image_folder(folder)
