"""Numbers made fit for a model: `one_hot`, `standardize` and its inverse.

The one idea: what was learned from the data to train on is a value, a `Standardizer`, which is
applied to all other data, and which `fg.save` stores beside the model.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from funcgrad.errors import ArgumentError, DtypeError, describe, user_line

__all__ = ["Standardizer", "one_hot", "standardize"]


def one_hot(
    labels: ArrayLike, num_classes: int | None = None, dtype: DTypeLike = np.float64
) -> NDArray[Any]:
    """Make a vector for each label: 1 at its place, and 0 elsewhere.

    Parameters
    ----------
    labels : array_like of int, shape (...)
        From 0 to below `num_classes`.
    num_classes : int, optional
        How many classes there are; one more than the largest label if not given.
    dtype : dtype_like, default float64
        Of the result.

    Returns
    -------
    ndarray of `dtype`, shape (..., num_classes)
        Vectors along the last axis.

    Raises
    ------
    DtypeError
        The labels are no integers.
    ArgumentError
        A label is out of range: it is named with its position.

    See Also
    --------
    funcgrad.nn.functional.one_hot : the same with zeros for labels out of range, as in JAX.

    Examples
    --------
    >>> one_hot([2, 0])
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    places = np.asarray(labels)
    if places.dtype.kind not in "iu":
        raise DtypeError(
            "labels of classes are integers",
            where=f"argument 'labels' of one_hot() is {describe(places)}, at {user_line()}",
            fix="write labels.astype(int)",
        )
    if num_classes is None:
        num_classes = int(places.max(initial=-1)) + 1
    wrong = np.argwhere((places < 0) | (places >= num_classes))
    if len(wrong):
        index = tuple(wrong[0].tolist())
        raise ArgumentError(
            f"a label is {places[index]}, of {num_classes} classes",
            where=f"labels[{', '.join(map(str, index))}] of one_hot(), at {user_line()}",
            fix=f"labels go from 0 to {num_classes - 1}",
        )
    out = np.zeros((*places.shape, num_classes), dtype)
    np.put_along_axis(out, places[..., None].astype(np.intp), 1, -1)
    return out


class Standardizer(NamedTuple):
    """An affine map to mean 0 and standard deviation 1, and back.

    A named tuple, and so a pytree that `fg.save` stores. Called with data it applies the map; it
    works under transforms.

    Parameters
    ----------
    mean : ndarray
        What is subtracted.
    std : ndarray
        What is divided by.

    Examples
    --------
    >>> train, test = np.array([[1.0, 10.0], [3.0, 30.0]]), np.array([[2.0, 40.0]])
    >>> scale = Standardizer.fit(train)
    >>> scale(test)
    array([[0., 2.]])
    >>> scale.inverse(scale(test))
    array([[ 2., 40.]])
    """

    mean: Any
    """What is subtracted."""
    std: Any
    """What is divided by."""

    @classmethod
    def fit(cls, x: ArrayLike, axis: int | tuple[int, ...] | None = 0) -> Standardizer:
        """Take mean and standard deviation from data.

        Parameters
        ----------
        x : array_like of float
            The data to train on. Integers are made float64.
        axis : int, tuple of int or None, default 0
            Over which axes; the others keep numbers of their own. None for all: one number each.

        Returns
        -------
        Standardizer
            With arrays that broadcast against `x`. Where `x` does not vary, `std` is 1.

        Raises
        ------
        ArgumentError
            There are no samples, or `x` has a value that is not finite: it is named.
        """
        values = np.asarray(x)
        if values.dtype.kind not in "fc":
            values = values.astype(np.float64)
        if not values.size:
            raise ArgumentError(
                "there is nothing to take a mean of: the data set is empty",
                where=f"argument 'x' of Standardizer.fit() is {describe(values)}, at {user_line()}",
                fix="give at least one sample",
            )
        finite = np.isfinite(values)
        if not finite.all():
            index = np.argwhere(~finite)[0].tolist()
            raise ArgumentError(
                f"a value is {values[tuple(index)]}, of which there is no mean",
                where=f"x[{', '.join(map(str, index))}] of Standardizer.fit(), at {user_line()}",
                fix="replace it, or leave the sample out",
            )
        mean = values.mean(axis, keepdims=True)
        std = values.std(axis, keepdims=True)
        # Equal values can have a deviation of rounding errors alone.
        same = np.ptp(values, axis=axis, keepdims=True) == 0
        std = np.where(same, 1, std).astype(std.dtype, copy=False)
        return cls(np.where(same, values.max(axis, keepdims=True), mean), std)

    def __call__(self, x: Any) -> Any:
        """Return ``(x - mean) / std``."""
        return (x - self.mean) / self.std

    def inverse(self, z: Any) -> Any:
        """Return ``z * std + mean``: undo the map.

        Parameters
        ----------
        z : array_like
            What the map returned, or what a model made of it.

        Returns
        -------
        ndarray
            On the scale of the data.
        """
        return z * self.std + self.mean


def standardize(
    x: ArrayLike, axis: int | tuple[int, ...] | None = 0
) -> tuple[NDArray[Any], Standardizer]:
    """Scale data to mean 0 and standard deviation 1.

    Parameters
    ----------
    x : array_like of float
        The data to train on.
    axis : int, tuple of int or None, default 0
        Over which axes; None for all.

    Returns
    -------
    z : ndarray, shape of `x`
        The data, scaled.
    scale : Standardizer
        The map, for other data, and its inverse.

    Raises
    ------
    ArgumentError
        There are no samples, or `x` has a value that is not finite: it is named.

    Examples
    --------
    >>> z, scale = standardize([[1.0, 5.0], [3.0, 5.0]])
    >>> z
    array([[-1.,  0.],
           [ 1.,  0.]])
    >>> scale([[4.0, 5.0]])
    array([[2., 0.]])
    """
    scale = Standardizer.fit(x, axis)
    return scale(np.asarray(x)), scale
