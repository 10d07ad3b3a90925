"""Small made-up data sets, to see whether a model learns at all.

The classification problems are points of the plane with the labels 0 and 1: those of minitorch
(`simple` to `spiral`), that of Terox (`parabola`), and two that everybody draws (`blobs`, `moons`).

>>> from funcgrad import random
>>> from funcgrad.data import toys
>>> points, labels = toys.xor(random.key(0), 50)
>>> points.shape, labels.shape
((50, 2), (50,))
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from funcgrad import random
from funcgrad.data.stages import check_count
from funcgrad.errors import ArgumentError, ShapeError, describe, user_line

__all__ = [
    "blobs",
    "circle",
    "diag",
    "moons",
    "parabola",
    "simple",
    "spiral",
    "split",
    "xor",
]

Labelled: TypeAlias = tuple[NDArray[np.float64], NDArray[np.int64]]


def simple(key: random.Key, n: int) -> Labelled:
    """Return points of the unit square: class 1 left of 0.5.

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    n : int
        How many points.

    Returns
    -------
    points : ndarray of float64, shape (n, 2)
        Uniform in the square [0, 1).
    labels : ndarray of int64, shape (n,)
        1 where ``x < 0.5``, else 0.

    Examples
    --------
    >>> from funcgrad import random
    >>> points, labels = simple(random.key(0), 50)
    >>> np.array_equal(labels, points[:, 0] < 0.5)
    True
    """
    x, _, points = _square(key, n, "simple")
    return points, _labels(x < 0.5)


def diag(key: random.Key, n: int) -> Labelled:
    """Return points of the unit square: class 1 in the corner at the origin.

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    n : int
        How many points.

    Returns
    -------
    points : ndarray of float64, shape (n, 2)
        Uniform in the square [0, 1).
    labels : ndarray of int64, shape (n,)
        1 where ``x + y < 0.5``, else 0.

    Examples
    --------
    >>> from funcgrad import random
    >>> points, labels = diag(random.key(0), 50)
    >>> np.array_equal(labels, points.sum(axis=1) < 0.5)
    True
    """
    x, y, points = _square(key, n, "diag")
    return points, _labels(x + y < 0.5)


def split(key: random.Key, n: int) -> Labelled:
    """Return points of the unit square: class 1 at its left and right edges.

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    n : int
        How many points.

    Returns
    -------
    points : ndarray of float64, shape (n, 2)
        Uniform in the square [0, 1).
    labels : ndarray of int64, shape (n,)
        1 where ``x < 0.2`` or ``x > 0.8``, else 0.

    Examples
    --------
    >>> from funcgrad import random
    >>> points, labels = split(random.key(0), 50)
    >>> np.array_equal(labels, abs(points[:, 0] - 0.5) > 0.3)
    True
    """
    x, _, points = _square(key, n, "split")
    return points, _labels((x < 0.2) | (x > 0.8))


def xor(key: random.Key, n: int) -> Labelled:
    """Return points of the unit square: class 1 in two opposite quarters.

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    n : int
        How many points.

    Returns
    -------
    points : ndarray of float64, shape (n, 2)
        Uniform in the square [0, 1).
    labels : ndarray of int64, shape (n,)
        1 where one of `x` and `y` is below 0.5 and the other above, else 0.

    Examples
    --------
    >>> from funcgrad import random
    >>> points, labels = xor(random.key(0), 50)
    >>> np.array_equal(labels, np.prod(points - 0.5, axis=1) < 0)
    True
    """
    x, y, points = _square(key, n, "xor")
    return points, _labels(((x < 0.5) & (y > 0.5)) | ((x > 0.5) & (y < 0.5)))


def circle(key: random.Key, n: int) -> Labelled:
    """Return points of the unit square: class 1 outside of a circle.

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    n : int
        How many points.

    Returns
    -------
    points : ndarray of float64, shape (n, 2)
        Uniform in the square [0, 1).
    labels : ndarray of int64, shape (n,)
        1 where the squared distance to (0.5, 0.5) is above 0.1, else 0.

    Examples
    --------
    >>> from funcgrad import random
    >>> points, labels = circle(random.key(0), 50)
    >>> np.array_equal(labels, np.hypot(*(points - 0.5).T) > 0.1**0.5)
    True
    """
    x, y, points = _square(key, n, "circle")
    return points, _labels((x - 0.5) ** 2 + (y - 0.5) ** 2 > 0.1)


def spiral(key: random.Key | None, n: int, noise: float = 0.0) -> Labelled:
    """Return points on the two arms of a spiral, a class each.

    Parameters
    ----------
    key : Key or None
        Makes the noise, and is used up if there is any; the points are the same for all keys.
    n : int
        How many points.
    noise : float, default 0
        Standard deviation of what is added to each coordinate.

    Returns
    -------
    points : ndarray of float64, shape (n, 2)
        Around (0.5, 0.5), from the inside to the outside of one arm, then of the other.
    labels : ndarray of int64, shape (n,)
        0 on the first arm, 1 on the second; of an odd number the first has one more.

    Examples
    --------
    >>> points, labels = spiral(None, 51)
    >>> points.shape, labels.sum()
    ((51, 2), np.int64(25))
    """
    n = check_count(n, "n", "spiral")
    first, second = (10.0 * (5 + np.arange(m)) / m for m in (n - n // 2, max(n // 2, 1)))
    arms = [
        np.stack([first * np.cos(first), first * np.sin(first)], axis=1),
        np.stack([second * np.sin(second), -second * np.cos(second)], axis=1)[: n // 2],
    ]
    points = np.concatenate(arms) / 20.0 + 0.5
    labels = _labels(np.arange(n) >= n - n // 2)
    return _noisy(key, points, noise, "spiral"), labels


def parabola(key: random.Key, n: int) -> Labelled:
    """Return points of a square around the origin: class 1 on and above the parabola y = x².

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    n : int
        How many points.

    Returns
    -------
    points : ndarray of float64, shape (n, 2)
        Uniform in the square [-0.5, 0.5).
    labels : ndarray of int64, shape (n,)
        1 where ``y >= x**2``, else 0: five of twelve points on average.

    Examples
    --------
    >>> from funcgrad import random
    >>> points, labels = parabola(random.key(0), 100)
    >>> np.array_equal(labels, points[:, 1] >= points[:, 0] ** 2)
    True
    """
    x, y, _ = _square(key, n, "parabola")
    x, y = x - 0.5, y - 0.5
    return np.stack([x, y], axis=1), _labels(y >= x * x)


def blobs(
    key: random.Key, n: int, centers: int | ArrayLike = 2, std: float = 1.0, features: int = 2
) -> Labelled:
    """Return clouds of points around centers, a class each.

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    n : int
        How many points.
    centers : int or array_like of float, shape (k, features), default 2
        The centers, or how many there are; these are uniform in [-10, 10).
    std : float, default 1
        Standard deviation of each coordinate around the center.
    features : int, default 2
        How many coordinates points have, if `centers` is an int.

    Returns
    -------
    points : ndarray of float64, shape (n, features)
        In random order.
    labels : ndarray of int64, shape (n,)
        The number of the center; classes are equally frequent up to one point.

    Raises
    ------
    ShapeError
        `centers` is an array that has not two axes.

    Examples
    --------
    >>> from funcgrad import random
    >>> points, labels = blobs(random.key(0), 30, centers=[[0.0, 0.0], [9.0, 9.0], [0.0, 9.0]])
    >>> np.bincount(labels)
    array([10, 10, 10])
    """
    n = check_count(n, "n", "blobs")
    place_key, order_key, noise_key = random.split(key, 3)
    if np.ndim(centers) == 0:
        count = check_count(centers, "centers", "blobs")
        features = check_count(features, "features", "blobs")
        middle = random.uniform(place_key, (count, features), minval=-10.0, maxval=10.0)
    else:
        middle = np.asarray(centers, np.float64)
        if middle.ndim != 2 or not len(middle):
            raise ShapeError(
                "blobs() needs centers with two axes, classes and coordinates",
                where=f"argument 'centers' of blobs() is {describe(middle)}, at {user_line()}",
                fix="such as [[0.0, 0.0], [5.0, 5.0]]",
            )
    labels = random.permutation(order_key, n) % len(middle)
    points = middle[labels] + std * random.normal(noise_key, (n, middle.shape[1]))
    return points, labels.astype(np.int64)


def moons(key: random.Key | None, n: int, noise: float = 0.0) -> Labelled:
    """Return points on two half circles that reach into each other, a class each.

    Parameters
    ----------
    key : Key or None
        Makes the noise, and is used up if there is any; the points are the same for all keys.
    n : int
        How many points.
    noise : float, default 0
        Standard deviation of what is added to each coordinate.

    Returns
    -------
    points : ndarray of float64, shape (n, 2)
        The half above, of radius 1 around (0, 0), then the half below, around (1, 0.5).
    labels : ndarray of int64, shape (n,)
        0 on the first half, 1 on the second; of an odd number the second has one more.

    Examples
    --------
    >>> from funcgrad import random
    >>> points, labels = moons(random.key(0), 200, noise=0.1)
    >>> np.bincount(labels)
    array([100, 100])
    """
    n = check_count(n, "n", "moons")
    above, below = np.linspace(0.0, np.pi, n // 2), np.linspace(0.0, np.pi, n - n // 2)
    points = np.concatenate(
        [
            np.stack([np.cos(above), np.sin(above)], axis=1),
            np.stack([1.0 - np.cos(below), 0.5 - np.sin(below)], axis=1),
        ]
    )
    return _noisy(key, points, noise, "moons"), _labels(np.arange(n) >= n // 2)


def _square(
    key: random.Key, n: int, use: str
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the coordinates of points, and the points."""
    points = random.uniform(key, (check_count(n, "n", use), 2))
    return points[:, 0], points[:, 1], points


def _labels(condition: NDArray[np.bool_]) -> NDArray[np.int64]:
    return condition.astype(np.int64)


def _noisy(key: Any, points: NDArray[np.float64], noise: float, use: str) -> NDArray[np.float64]:
    if not noise:
        return points
    if key is None:
        raise ArgumentError(
            f"{use}() needs a key to make noise", where=user_line(), fix="write fg.random.key(0)"
        )
    return points + noise * random.normal(key, points.shape)
