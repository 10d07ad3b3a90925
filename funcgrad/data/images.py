"""Pictures from files, and folders of them with a sub-folder for each class.

The one idea: what is simple is read here, PNG and the portable formats (PGM, PPM); everything else,
JPEG above all, by Pillow, which comes with Matplotlib and is imported when a file needs it.
"""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from funcgrad.data.opening import DataFormatError, file_name, read_bytes
from funcgrad.data.png import SIGNATURE, UnsupportedError, decode_png
from funcgrad.errors import ArgumentError, MissingExtraError, ShapeError, user_line

__all__ = ["ImageFiles", "ImageFolder", "list_image_folder", "read_image", "read_image_folder"]

_SUFFIXES = (
    ".png",
    ".pgm",
    ".ppm",
    ".pnm",
    ".jpg",
    ".jpeg",
    ".bmp",
    ".gif",
    ".tif",
    ".tiff",
    ".webp",
)
# The magic number, and three numbers, between which there are white space and comments.
_PORTABLE = re.compile(rb"P([2356])" + rb"(?:\s|#[^\n]*\n)+(\d+)" * 3 + rb"\s")


class ImageFolder(NamedTuple):
    """What `read_image_folder` has read.

    Attributes
    ----------
    images : ndarray, shape (n, ...)
        The pictures.
    labels : ndarray of int64, shape (n,)
        For each of them the number of its class.
    classes : list of str
        The names of the classes.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     os.mkdir(os.path.join(folder, "cat"))
    ...     with open(os.path.join(folder, "cat", "1.pgm"), "wb") as file:
    ...         _ = file.write(b"P5 2 2 255 " + bytes(4))
    ...     read = read_image_folder(folder)
    >>> read.images.shape, read.labels, read.classes
    ((1, 2, 2), array([0]), ['cat'])
    """

    images: NDArray[Any]
    """Shape (n, height, width) or (n, height, width, channels)."""
    labels: NDArray[np.int64]
    """Shape (n,): places in `classes`."""
    classes: list[str]
    """Names of the sub-folders."""


class ImageFiles(NamedTuple):
    """What `list_image_folder` has found.

    Attributes
    ----------
    paths : list of str
        The files.
    labels : ndarray of int64, shape (n,)
        For each of them the number of its class.
    classes : list of str
        The names of the classes.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     os.mkdir(os.path.join(folder, "cat"))
    ...     with open(os.path.join(folder, "cat", "1.pgm"), "wb") as file:
    ...         _ = file.write(b"P5 2 2 255 " + bytes(4))
    ...     found = list_image_folder(folder)
    >>> os.path.basename(found.paths[0]), found.labels, found.classes
    ('1.pgm', array([0]), ['cat'])
    """

    paths: list[str]
    """Names of files."""
    labels: NDArray[np.int64]
    """Shape (n,): places in `classes`."""
    classes: list[str]
    """Names of the sub-folders."""


def read_image(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Read a picture.

    Parameters
    ----------
    path : str or path-like
        A PNG, PGM or PPM file, also if it is compressed by gzip; with Pillow installed, of any
        format that it reads.

    Returns
    -------
    ndarray of uint8, shape (height, width) or (height, width, channels)
        Gray, or two (gray and opacity), three or four channels of color (and opacity). uint16 if
        the file has more than 8 bits a channel.

    Raises
    ------
    DataFormatError
        The file is damaged, or no picture.
    MissingExtraError
        It takes Pillow to read it, which is not installed.
    OSError
        The file is not there, or cannot be read.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "tiny.pgm")
    ...     with open(path, "wb") as file:
    ...         _ = file.write(b"P5 3 2 255 " + bytes([0, 1, 2, 253, 254, 255]))
    ...     read_image(path)
    array([[  0,   1,   2],
           [253, 254, 255]], dtype=uint8)
    """
    content, name = read_bytes(path, "read_image")
    try:
        if content.startswith(SIGNATURE):
            return decode_png(content)
        if _PORTABLE.match(content):
            return _decode_portable(content)
    except UnsupportedError:
        pass
    except Exception as error:
        raise DataFormatError(
            f"{name} is a picture that is damaged",
            where=f"{error}; read at {user_line()}",
            fix="download or write it again",
        ) from error
    return _by_pillow(name)


def _decode_portable(content: bytes) -> NDArray[Any]:
    match = _PORTABLE.match(content)
    assert match is not None
    kind, width, height, most = map(int, match.groups())
    shape = (height, width, 3) if kind in (3, 6) else (height, width)
    count = int(np.prod(shape, dtype=object))
    if not 0 < most < 65536:
        raise ValueError(f"its largest value is {most}")
    dtype = np.dtype(np.uint8 if most < 256 else np.uint16)
    body = content[match.end() :]
    if kind in (2, 3):
        words = body.split()
        if len(words) < count:
            raise ValueError(f"it has {len(words)} numbers of {count}")
        data = np.array(list(map(int, words[:count])))
    else:
        if len(body) < count * dtype.itemsize:
            raise ValueError(f"it has {len(body)} bytes of pixels, of {count * dtype.itemsize}")
        data = np.frombuffer(body, dtype.newbyteorder(">"), count)
    if data.size and data.max() > most:
        raise ValueError(f"a value is {data.max()}, above its largest, {most}")
    if most not in (255, 65535):
        data = np.rint(data * ((255 if most < 256 else 65535) / most))
    return data.astype(dtype).reshape(shape)


def _by_pillow(name: str) -> NDArray[Any]:
    try:
        from PIL import Image  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingExtraError(
            f"{name} is of a format that is read by Pillow, which is not installed",
            where=f"read at {user_line()}",
            fix="pip install 'funcgrad[plot]', or convert it to PNG",
        ) from error
    try:
        with Image.open(name) as image:
            if image.mode in ("1", "P", "CMYK", "YCbCr", "LAB", "HSV"):
                return np.array(image.convert("L" if image.mode == "1" else "RGB"))
            return np.array(image)
    except Exception as error:
        raise DataFormatError(
            f"{name} is no picture, or damaged",
            where=f"{error}; read at {user_line()}",
            fix="give a file of pixels, such as PNG",
        ) from error


def list_image_folder(folder: str | os.PathLike[str]) -> ImageFiles:
    """List pictures in sub-folders, one for each class, without reading them.

    Parameters
    ----------
    folder : str or path-like
        Has sub-folders, whose names are the classes. Folders within these are searched, too; files
        and folders whose names begin with a dot are left out, and so is what is no picture by its
        name.

    Returns
    -------
    ImageFiles
        Named tuple of `paths` (sorted, by class), `labels` and `classes` (sorted).

    Raises
    ------
    ArgumentError
        There are no sub-folders, or one has no pictures.
    OSError
        The folder is not there, or cannot be read.

    Examples
    --------
    For pictures of several sizes, or too many for the memory:

    >>> def batches(folder, prepare):
    ...     paths, labels, classes = list_image_folder(folder)
    ...     pairs = Dataset.from_sequence(list(zip(paths, labels)))
    ...     return pairs.map(prepare).batch(32).prefetch(2)
    """
    name = file_name(folder, "list_image_folder")
    with os.scandir(name) as entries:
        classes = sorted(
            entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")
        )
    if not classes:
        raise ArgumentError(
            f"{name} has no sub-folders: the data set is empty",
            where=user_line(),
            fix="put the pictures of each class into a folder of its own, named as the class",
        )
    paths: list[str] = []
    labels: list[int] = []
    for label, kind in enumerate(classes):
        found = sorted(_pictures(os.path.join(name, kind)))
        if not found:
            raise ArgumentError(
                f"a class has no pictures: {os.path.join(name, kind)}",
                where=user_line(),
                fix=f"remove the folder, or add files named *{', *'.join(_SUFFIXES[:4])}, ...",
            )
        paths += found
        labels += [label] * len(found)
    return ImageFiles(paths, np.array(labels, np.int64), classes)


def _pictures(folder: str) -> list[str]:
    found = []
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [
            os.path.join(parent, name)
            for name in files
            if not name.startswith(".") and name.lower().endswith(_SUFFIXES)
        ]
    return found


def read_image_folder(folder: str | os.PathLike[str]) -> ImageFolder:
    """Read pictures in sub-folders, one for each class.

    Parameters
    ----------
    folder : str or path-like
        See `list_image_folder`.

    Returns
    -------
    ImageFolder
        Named tuple of `images`, `labels` and `classes`.

    Raises
    ------
    ShapeError
        Two pictures have different shapes or dtypes; both are named.
    ArgumentError
        There are no sub-folders, or one has no pictures.
    DataFormatError, MissingExtraError, OSError
        See `read_image`.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for kind in ("cat", "dog"):
    ...         os.mkdir(os.path.join(folder, kind))
    ...         with open(os.path.join(folder, kind, "1.pgm"), "wb") as file:
    ...             _ = file.write(b"P5 2 2 255 " + bytes(4))
    ...     images, labels, classes = read_image_folder(folder)
    >>> images.shape, labels, classes
    ((2, 2, 2), array([0, 1]), ['cat', 'dog'])
    """
    paths, labels, classes = list_image_folder(file_name(folder, "read_image_folder"))
    first = read_image(paths[0])
    images = np.empty((len(paths), *first.shape), first.dtype)
    for i, path in enumerate(paths):
        image = read_image(path) if i else first
        if image.shape != first.shape or image.dtype != first.dtype:
            raise ShapeError(
                "the pictures of a folder have different shapes",
                where=f"{paths[0]} is {first.dtype}{list(first.shape)}, {path} is "
                f"{image.dtype}{list(image.shape)}, read at {user_line()}",
                fix="bring them to one size: Dataset.from_sequence(list_image_folder(folder).paths)"
                ".map(lambda path: resize(read_image(path)))",
            )
        images[i] = image
    return ImageFolder(images, labels, classes)
