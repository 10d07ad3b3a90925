"""Pictures changed at random: flipped and cropped, each in its own way, by a key.

The one idea: a batch is changed at once, by one look-up of all windows, as a loop over pictures
would cost more than a training step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.typing import ArrayLike, NDArray

from funcgrad import random
from funcgrad.data.stages import check_count, check_key
from funcgrad.errors import ArgumentError, ShapeError, describe, user_line

__all__ = ["random_crop", "random_flip"]


def random_flip(
    key: random.Key, images: ArrayLike, probability: float = 0.5, axis: int = -1
) -> NDArray[Any]:
    """Flip each picture of a batch or not, at random.

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    images : array_like, shape (n, ...)
        The first axis is that of the pictures.
    probability : float, default 0.5
        With which each one is flipped.
    axis : int, default -1
        Along which: -1 swaps left and right in (n, height, width), -2 in (n, height, width, 3).

    Returns
    -------
    ndarray, shape and dtype of `images`
        A copy.

    Raises
    ------
    ShapeError
        There is no axis beside the first one.
    ArgumentError
        The probability is not between 0 and 1.

    Examples
    --------
    >>> from funcgrad import random
    >>> random_flip(random.key(0), np.array([[1, 2, 3], [4, 5, 6]]), probability=1.0)
    array([[3, 2, 1],
           [6, 5, 4]])
    """
    check_key(key, "random_flip")
    pictures = np.asarray(images)
    (axis,) = _axes_of(pictures, (axis,), "random_flip")
    if not 0.0 <= probability <= 1.0:
        raise ArgumentError(
            f"random_flip() got probability={probability}",
            where=f"argument 'probability' of random_flip() at {user_line()}",
            fix="give a number from 0 to 1",
        )
    chosen = random.bernoulli(key, probability, (len(pictures),))
    out = pictures.copy()
    out[chosen] = np.flip(pictures[chosen], axis)
    return out


def random_crop(
    key: random.Key,
    images: ArrayLike,
    size: Sequence[int] | None = None,
    padding: int = 0,
    axes: Sequence[int] = (-2, -1),
) -> NDArray[Any]:
    """Cut a window out of each picture of a batch, at a random place.

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    images : array_like, shape (n, ...)
        The first axis is that of the pictures.
    size : sequence of int, optional
        Lengths of the window along `axes`; those of the pictures if not given.
    padding : int, default 0
        How many zeros to add on each side before. Without `size`, pictures move by up to that many
        pixels.
    axes : sequence of int, default (-2, -1)
        Height and width: (-3, -2) for pictures of shape (n, height, width, 3).

    Returns
    -------
    ndarray of the dtype of `images`
        A copy, with `size` in place of height and width.

    Raises
    ------
    ShapeError
        The pictures have no such axes, or the window is larger than they are with the padding.

    Examples
    --------
    >>> from funcgrad import random
    >>> images = np.ones((2, 3, 3))
    >>> random_crop(random.key(0), images, padding=1).shape
    (2, 3, 3)
    >>> random_crop(random.key(0), images, (2, 2)).shape
    (2, 2, 2)
    """
    check_key(key, "random_crop")
    pictures = np.asarray(images)
    padding = check_count(padding, "padding", "random_crop", least=0)
    places = _axes_of(pictures, axes, "random_crop")
    lengths = [pictures.shape[axis] for axis in places]
    window = lengths if size is None else [check_count(n, "size", "random_crop") for n in size]
    free = [n + 2 * padding - m for n, m in zip(lengths, window, strict=False)]
    if len(window) != len(places) or min(free, default=0) < 0:
        raise ShapeError(
            f"random_crop() cannot cut {tuple(window)} out of {tuple(lengths)} with {padding} "
            "on each side",
            where=f"images are {describe(pictures)}, axes {tuple(axes)}, at {user_line()}",
            fix="give a smaller size, one length for each of axes, or more padding",
        )
    if padding:
        width = [(padding, padding) if axis in places else (0, 0) for axis in range(pictures.ndim)]
        pictures = np.pad(pictures, width)
    windows = np.lib.stride_tricks.sliding_window_view(pictures, window, places)
    # The window's axes come last: bring those of its place next to the pictures.
    windows = np.moveaxis(windows, places, range(1, 1 + len(places)))
    count = len(pictures)
    keys = random.split(key, len(places))
    starts = [
        random.randint(own, (count,), 0, room + 1) for own, room in zip(keys, free, strict=True)
    ]
    cut = windows[(np.arange(count), *starts)]
    return np.moveaxis(cut, range(cut.ndim - len(places), cut.ndim), places)


def _axes_of(images: NDArray[Any], axes: Sequence[int], use: str) -> tuple[int, ...]:
    """Return axes as numbers from 0, none of which is that of the pictures."""
    try:
        found = normalize_axis_tuple(tuple(axes), images.ndim)
    except ValueError:
        found = (0,)
    if 0 in found:
        raise ShapeError(
            f"{use}() needs a batch of pictures with the axes {tuple(axes)}",
            where=f"argument 'images' of {use}() is {describe(images)}, at {user_line()}",
            fix="give a first axis of pictures: images[None] for a single one",
        )
    return found
